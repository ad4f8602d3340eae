/* result_cache.h: the answers to recent queries, so that a query that comes again need not be
 * searched.
 *
 *   gx_plan --all of it that the answer depends on--> key (bytes) --> keys of the answer
 *
 * Two plans have equal keys only if their answers are equal to the bit: equal lists with equal
 * weights, operator, scorer, threshold, mask and filter. Keys are compared whole, not by their
 * hash. An answer of k results also answers a plan that wants fewer, unless the operator is
 * AND-then-OR, whose answer depends on k.
 *
 * The cache is split into shards by hash. Each shard has a lock and forgets the answer that was
 * used longest ago when it is full (LRU).
 */
#ifndef GX_QUERY_ENGINE_RESULT_CACHE_H
#define GX_QUERY_ENGINE_RESULT_CACHE_H

#include "query/exec/exec.h"

typedef struct gx_result_cache gx_result_cache;

/* A cache that takes at most `bytes` of memory, its tables included. wide: answers have gx_hits.highs. GX_ENOMEM. */
gx_status gx_result_cache_open(gx_result_cache **out, uint64_t bytes, bool wide, gx_error *err);
void gx_result_cache_close(gx_result_cache *c); /* NULL is fine */

/* Whether the cache has the answer to the plan; then it is copied to hits->keys. The plan's base is
 * not added. False for a plan that asks for exhaustive scoring. Thread-safe. */
bool gx_result_cache_find(gx_result_cache *c, const gx_plan *plan, gx_hits *hits);

/* Keep an answer, to whose keys no base has been added. Keeps nothing where memory lacks, or where
 * the answer is larger than a shard. Thread-safe. */
void gx_result_cache_add(gx_result_cache *c, const gx_plan *plan, const gx_hits *hits);

/* Bytes that the cache takes now. Thread-safe. */
uint64_t gx_result_cache_bytes(gx_result_cache *c);

#endif
