/* count.h: how many documents match a plan, exactly, whatever the scores. */
#ifndef GX_QUERY_FACET_COUNT_H
#define GX_QUERY_FACET_COUNT_H

#include "index/index.h"
#include "query/plan/plan.h"

typedef struct gx_counter gx_counter; /* workspace of one thread: a bit a document */

gx_status gx_counter_open(gx_counter **out, const gx_index *ix, gx_error *err);
void gx_counter_close(gx_counter *c);

/* Where the counter may find the documents of a list that the masks of all plans allow: a bit a document; NULL: of this
 * list nowhere. fn NULL: of no list. */
typedef const uint32_t *gx_list_bits_fn(void *user, uint32_t list);
void gx_counter_use_bits(gx_counter *c, gx_list_bits_fn *fn, void *user);

/* Of the documents that the plan's mask allows, those that hold any of its terms, and those that
 * hold all, whatever its operator; of a plan that is to be filled, `any` is of all that are allowed. Either
 * is NULL where it is not asked for, which saves time. GX_ECANCELLED when the plan's cancel function says so. */
gx_status gx_count_any_and_all(gx_counter *c, const gx_plan *plan, uint64_t *any, uint64_t *all, gx_error *err);

/* The documents that gx_count_any_and_all has counted: a bit a document, of those that hold any term or of
 * those that hold all. Of a plan without terms they are undefined. */
const uint64_t *gx_counter_any(const gx_counter *c);
const uint64_t *gx_counter_all(const gx_counter *c);

/* Whether the documents that match are those that hold all terms, of which there are `all`, and not those
 * that hold any: with GX_OP_AND_OR where they are at least k. */
static inline bool gx_count_is_of_all(const gx_plan *plan, uint64_t all)
{
    return plan->op == GX_OP_AND || (plan->op == GX_OP_AND_OR && all >= plan->k);
}

#endif
