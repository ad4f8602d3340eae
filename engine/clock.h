/* clock.h: the monotonic clock, which runs on whatever happens to the time of day. */
#ifndef GX_ENGINE_CLOCK_H
#define GX_ENGINE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of the given clock, since a moment that never changes while the system runs. */
static inline uint64_t gx_clock_nanoseconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Seconds of the monotonic clock. Only differences mean something. */
static inline double gx_clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
