/* parallel.h: the one place where gpuidx starts threads.
 *
 *   gx_parallel_for      items 0 .. n - 1 shared out among threads, each item once
 *   gx_parallel_run      one function in several threads at once, the caller's included
 *   gx_threads_start     threads that work while the caller does something else
 *
 * Threads that gpuidx starts block all signals: these go to the threads of the program. Where the
 * system refuses a thread, the work is done by those that there are.
 */
#ifndef GX_ENGINE_PARALLEL_H
#define GX_ENGINE_PARALLEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* thread, or item: a number from 0. */
typedef void gx_parallel_fn(void *user, uint32_t number);

typedef struct gx_threads gx_threads;

/* Start up to n threads, which call work(user, first), work(user, first + 1), ..., once each.
 * Returns NULL where not even one can be started. */
gx_threads *gx_threads_start(uint32_t n, uint32_t first, gx_parallel_fn *work, void *user);

/* How many threads were started. threads may be NULL: 0. */
uint32_t gx_threads_count(const gx_threads *threads);

/* Wait until all have returned, and free threads, which may be NULL. */
void gx_threads_join(gx_threads *threads);

/* work(user, 0) in the caller's thread and work(user, 1 .. n - 1) in threads of their own, all at
 * once. Returns when all have returned. A number whose thread cannot be started is not called; the
 * result says how many were, at least 1. */
uint32_t gx_parallel_run(uint32_t n, gx_parallel_fn *work, void *user);

/* work(user, i) for every i < n, once each and in any order, by up to n_threads threads, the
 * caller's included. */
void gx_parallel_for(uint32_t n_threads, uint32_t n, gx_parallel_fn *work, void *user);

#ifdef __cplusplus
}
#endif
#endif
