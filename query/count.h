/* count.h: how many documents match a plan, exactly, whatever the scores. */
#ifndef GX_QUERY_COUNT_H
#define GX_QUERY_COUNT_H

#include "index/index.h"
#include "query/plan.h"

typedef struct gx_counter gx_counter; /* workspace of one thread: a bit a document */

gx_status gx_counter_open(gx_counter **out, const gx_index *ix, gx_error *err);
void gx_counter_close(gx_counter *c);

/* The number of documents that match and that the plan's mask allows: with GX_OP_AND_OR those of
 * AND when there are at least k, else those of OR. GX_ECANCELLED when the plan's cancel function
 * says so. */
gx_status gx_count_matches(gx_counter *c, const gx_plan *plan, uint64_t *n, gx_error *err);

/* Of the documents that the plan's mask allows, those that hold any of its terms, and those that
 * hold all, whatever its operator. GX_ECANCELLED. */
gx_status gx_count_any_and_all(gx_counter *c, const gx_plan *plan, uint64_t *any, uint64_t *all, gx_error *err);

#endif
