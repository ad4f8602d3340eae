/* timing.h: processor time of the calling thread, for benchmarks of one core. */
#ifndef GX_TESTS_BENCH_TIMING_H
#define GX_TESTS_BENCH_TIMING_H

#include <time.h>

/* Seconds that this thread has run: it leaves out what other programs take of a processor. */
static inline double own_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least time between two readings of own_time(): the clock is a system call, which takes
 * about as long as a short AND query. */
static inline double clock_cost(void)
{
    double least = 1;
    for (int i = 0; i < 10000; ++i) {
        const double t = own_time(), took = own_time() - t;
        least = took < least ? took : least;
    }
    return least;
}

/* For qsort: doubles, the least first. */
static inline int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
