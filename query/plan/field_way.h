/* field_way.h: a plan on a view of fields whose score is that of a document's best field: the ways by which it is
 * scored, one for each field. What matches the plan is said by its terms, and what a document scores by its ways.
 */
#ifndef GX_QUERY_PLAN_FIELD_WAY_H
#define GX_QUERY_PLAN_FIELD_WAY_H

#include "query/plan/plan.h"

/* The OR of the plan's terms in the field alone, at the plan's scale and with its mask and filter. terms[plan->n_terms]
 * hold its terms. Of a view of a file. */
gx_plan gx_plan_way(const gx_plan *plan, const struct gx_index *view, uint32_t field, gx_plan_term *terms);

/* The weight of a list of such a view in a plan of that exponent. */
float gx_way_weight(const struct gx_index *view, uint32_t list, double qtf, int exponent);

/* Whether a plan is to be scored by its ways on the index. */
bool gx_plan_has_ways(const gx_plan *plan, const struct gx_index *ix);

#endif
