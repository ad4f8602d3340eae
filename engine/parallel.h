/* parallel.h: every thread of gpuidx is started here.
 *
 *   gx_parallel_for      calls a function once for each item 0 .. n - 1, from several threads
 *   gx_parallel_run      calls a function in several threads at once, the caller's included
 *   gx_threads_start     starts threads that work while the caller does something else
 *
 * The threads block all signals, so that the system delivers signals to the program's own threads.
 * If the system refuses to start a thread, the threads that run do all the work.
 */
#ifndef GX_ENGINE_PARALLEL_H
#define GX_ENGINE_PARALLEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* number: the thread's or the item's. */
typedef void gx_parallel_fn(void *user, uint32_t number);

typedef struct gx_threads gx_threads;

/* Start up to n threads. The first calls work(user, first), the next work(user, first + 1), and so
 * on, once each. Returns NULL if no thread can be started. */
gx_threads *gx_threads_start(uint32_t n, uint32_t first, gx_parallel_fn *work, void *user);

/* The number of threads that were started; 0 for NULL. */
uint32_t gx_threads_count(const gx_threads *threads);

/* Wait until all threads have returned from work, and free `threads`, which may be NULL. */
void gx_threads_join(gx_threads *threads);

/* Call work(user, 0) in the caller's thread and work(user, 1) to work(user, n - 1) in n - 1 more
 * threads, all at once. Returns when all calls have returned. If a thread cannot be started, the
 * calls for its number and for higher numbers are not made. The result is the number of calls made,
 * at least 1. */
uint32_t gx_parallel_run(uint32_t n, gx_parallel_fn *work, void *user);

/* Call work(user, i) once for every i < n, in any order, from up to n_threads threads, of which the
 * caller's is one. Returns when all calls have returned. */
void gx_parallel_for(uint32_t n_threads, uint32_t n, gx_parallel_fn *work, void *user);

#ifdef __cplusplus
}
#endif
#endif
