/* clock.h: reading clocks. Durations are measured by the monotonic clock, which changes to the time
 * of day do not affect. */
#ifndef GX_ENGINE_CLOCK_H
#define GX_ENGINE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The time of the given clock in nanoseconds. The moment from which it counts depends on the
 * clock. */
static inline uint64_t gx_clock_nanoseconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The time of the monotonic clock in seconds. Only differences have a meaning. */
static inline double gx_clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
