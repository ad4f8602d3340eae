/* bitmap_pool.h: a pool of equal slots of memory, such as arrays for decompressed columns, which
 * queries take and give back.
 *
 * A query takes neighbouring slots. If they are not free it waits, and queries are served in the
 * order in which they came, so that none fails and none waits for ever. The pool only counts: the
 * memory is the caller's. All functions may be called from several threads at once.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_POOL_H
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_POOL_H

#include "engine/api/gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bitmap_pool bitmap_pool;

/* A pool of n_slots, at least 1. GX_ENOMEM. */
gx_status bitmap_pool_open(bitmap_pool **out, uint32_t n_slots, gx_error *err);
void bitmap_pool_close(bitmap_pool *p); /* p may be NULL; nobody may wait */

/* Take n neighbouring slots, at least 1 and at most n_slots: the number of the first. Waits until
 * all calls that came before have been served and the slots are free. */
uint32_t bitmap_pool_take(bitmap_pool *p, uint32_t n);
/* Give back the n slots from `first` on, of which each was taken. */
void bitmap_pool_give(bitmap_pool *p, uint32_t first, uint32_t n);

/* As the pool of Tran et al. does it: key, of the client, is hashed to a place, and the first n neighbouring slots that
 * are free from there on, around the end, are locked. False: there are none, and the query fails. Never waits for other
 * clients, and passes those by that wait. */
bool bitmap_pool_try(bitmap_pool *p, uint64_t key, uint32_t n, uint32_t *first);

/* How many calls of bitmap_pool_take had to wait. */
uint64_t bitmap_pool_waits(bitmap_pool *p);

#ifdef __cplusplus
}
#endif
#endif
