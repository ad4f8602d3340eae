/* part_plans.h: the plan of a query of a collection: one for each part, with the weights of the whole. */
#ifndef GX_QUERY_PLAN_PART_PLANS_H
#define GX_QUERY_PLAN_PART_PLANS_H

#include "index/index.h"
#include "query/plan/plan.h"

/* A plan's part for each part of the collection. */
typedef struct gx_part_plans {
    const gx_index *ix; /* the collection */
    gx_query_plan query;
    bool own_terms; /* query's terms are freed with it; else they lie behind the plans */
    uint32_t n;
    gx_plan plans[]; /* [n], each with the operator of the whole, but AND for GX_OP_AND_OR */
} gx_part_plans;

void gx_part_plans_free(gx_part_plans *p); /* accepts NULL */

/* The plans of some of the query's terms, those with taken[i] == with, and another k. GX_ENOMEM. */
gx_status gx_part_plans_take(gx_part_plans **out, const gx_part_plans *p, const bool *taken, bool with, uint32_t k,
                             gx_error *err);

/* Bind *query to the parts of ix. Its terms are copied, or, with `takes`, become the result's, also where this fails.
 * ids: as of gx_plan_bind_ids, p->n a term. GX_ENOMEM. */
gx_status gx_part_plans_bind(gx_part_plans **out, const gx_index *ix, gx_query_plan *query, bool takes, gx_op op,
                             const uint32_t *ids, gx_error *err);

/* The same query with another operator. */
gx_status gx_part_plans_rebind(gx_part_plans **out, const gx_index *ix, const gx_query_plan *query, gx_op op,
                               gx_error *err);

#endif
