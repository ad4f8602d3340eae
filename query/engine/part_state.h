/* part_state.h: what the files share that search a collection's parts (collection.h).
 *
 *   collection.c      engines of the parts
 *   part_masks.c      masks
 *   part_plan.c       plans
 *   part_sessions.c   sessions, and how they run plans
 *   part_hits.c       the answers of parts and shards, merged
 *   part_matches.c    all documents that match
 */
#ifndef GX_QUERY_ENGINE_PART_STATE_H
#define GX_QUERY_ENGINE_PART_STATE_H

#include "query/engine/collection.h"
#include "query/engine/list_sizes.h"
#include "query/exec/batch_buffer.h"
#include "query/exec/wide_hits.h"
#include "query/facet/count.h"

struct gx_part_sessions {
    const gx_part_engines *e;
    uint32_t first;        /* the part that is searched first, counted from the range's begin */
    gx_session **sessions; /* [e->n] */
    gx_counter **counters; /* [e->n], NULL until a search counts */
    uint64_t and_fell_to_or;
    gx_list_sizes again;   /* of the ANDs of these, whose lists the ORs count again; without bytes */
    gx_batch_buffer batch; /* of one part's plans */
    uint64_t *keys;        /* [max_keys] that shards exchange, */
    uint32_t *highs;       /* [max_highs] with their upper halves, of a wide collection */
    uint32_t *counts;      /* [max_counts] how many of each query, and its k */
    size_t max_keys, max_highs, max_counts;
    gx_candidate *candidates; /* [max_candidates] of one plan */
    size_t max_candidates;
};

/* Words for the largest part. NULL: no memory. */
uint64_t *gx_part_words_alloc(const gx_part_engines *e);

/* Part i's mask and filter of a plan, and whether it is to be filled. */
void gx_part_sessions_give_documents(const gx_part_sessions *s, const gx_plan *plan, uint32_t i, gx_plan *here);

/* Add what a part has found to the hits of the parts before. `found` may lie in their place. */
void gx_part_hits_take(const gx_part *part, gx_hits *hits, uint32_t k, gx_hits *found);

/* The hits of the plans that are run become those of all shards. instead: as of run_part (part_sessions.c). */
gx_status gx_part_sessions_exchange(gx_part_sessions *s, const gx_plan *plans, gx_part_plans *const *instead,
                                    uint32_t n, gx_hits *hits, gx_error *err);

#endif
