/* pairs.h: thresholds of pairs: of every two of an index's longest lists, the score of the k-th
 * best document of their OR.
 *
 * No document of a query with both terms, and others, scores less than it does of the two alone, so
 * the k-th best score of the query is not lower: a search that begins there leaves out from the
 * beginning what it else finds out to be too low. Mallia, Siedlaczek and Suel, "A comparison of
 * top-k threshold estimation techniques for disjunctive query processing" (CIKM 2020), where this
 * is Q_k of pairs.
 */
#ifndef GX_QUERY_EXEC_PAIRS_H
#define GX_QUERY_EXEC_PAIRS_H

#include "query/exec/exec.h"

typedef struct gx_pair_thresholds gx_pair_thresholds;

/* The engine that answers the pairs: an index, an executor, and the state that the executor has
 * prepared for the index. */
typedef struct gx_pair_engine {
    const gx_index *ix;
    const gx_executor *ops;
    void *state;
} gx_pair_engine;

/* Of the n_lists longest lists (all, if there are fewer), by opt's scorer, k1, b and k, found by
 * n_threads sessions on the state. GX_EUSAGE (n_lists above GX_MAX_PAIRED), GX_ENOMEM, and what the
 * engine may fail with. */
gx_status gx_pair_thresholds_make(gx_pair_thresholds **out, const gx_pair_engine *engine, const gx_query_options *opt,
                                  uint32_t n_lists, uint32_t n_threads, gx_error *err);
void gx_pair_thresholds_free(gx_pair_thresholds *p);

/* Whether they are those that gx_pair_thresholds_make would make. */
bool gx_pair_thresholds_match(const gx_pair_thresholds *p, const gx_query_options *opt, uint32_t n_lists);

/* Raise plan->initial_threshold by what is known of the plan's lists, if its scorer, k1 and b are
 * the pairs', its k is not greater and it has no mask. Thread-safe. */
void gx_pair_thresholds_apply(const gx_pair_thresholds *p, gx_plan *plan);

#endif
