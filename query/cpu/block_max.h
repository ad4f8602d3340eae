/* block_max.h: exact top-k of long OR queries by bounds of ranges of documents.
 *
 * List at a time (search.c) prunes a query of a few terms, whose sum of bounds soon lies below the
 * threshold. A query of 44 learned weights, or a whole abstract, has so many lists that hardly any
 * can be left out. Its best documents stand out from their neighbours instead: if documents that
 * share terms have neighbouring docids, few ranges of 8 documents have bounds above the threshold.
 *
 * A plan for which gx_plan_skips_blocks holds need not be answered exactly: only the block_budget segments of the
 * greatest bounds are searched. What is found depends on the plan and the index alone: initial_threshold is ignored,
 * which differs by what else was searched.
 */
#ifndef GX_QUERY_CPU_BLOCK_MAX_H
#define GX_QUERY_CPU_BLOCK_MAX_H

#include "query/cpu/ranges.h"
#include "query/cpu/search.h"

/* Answer plan under GX_OP_OR. n_terms >= 1. *done is false if a list has no ranges (no memory, no
 * budget, a tf above 65535): then nothing was searched, and another algorithm must answer.
 * GX_ENOMEM, GX_ECANCELLED. */
gx_status gx_cpu_block_max(gx_cpu_searcher *s, const gx_plan *plan, gx_hits *hits, bool *done, gx_error *err);
/* The same, unless that is likely to take longer than limit ns, of which a sample of the segments tells: then *done is
 * false, too. */
gx_status gx_cpu_block_max_within(gx_cpu_searcher *s, const gx_plan *plan, double limit, gx_hits *hits, bool *done,
                                  gx_error *err);
/* How far the bound of n lists, whose greatest impacts sum up to most, may be above what it stands for by its units. */
uint64_t gx_block_max_slack(uint32_t n, uint64_t most);
void gx_cpu_block_max_free(gx_cpu_block_max_state *b);

#endif
