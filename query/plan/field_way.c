#include "query/plan/field_way.h"

#include <math.h>

#include "index/index.h"

bool gx_plan_has_ways(const gx_plan *plan, const gx_index *ix)
{
    return plan->way == 0 && gx_view_is_best(ix);
}

float gx_way_weight(const gx_index *view, uint32_t list, double qtf, int exponent)
{
    return (float)ldexp(qtf * gx_index_unit(view, list), exponent + GX_LINEAR_EXPONENT);
}

static bool is_behind(const gx_plan_term *a, const gx_plan_term *b)
{
    return a->df != b->df ? a->df > b->df : a->list > b->list;
}

/* title:word and word are one list of the title, which counts for both. */
static bool add_to_same(gx_plan *way, uint32_t list, double qtf)
{
    for (uint32_t i = 0; i < way->n_terms; ++i)
        if (way->terms[i].list == list) {
            way->terms[i].qtf += qtf;
            return true;
        }
    return false;
}

gx_plan gx_plan_way(const gx_plan *plan, const gx_index *view, uint32_t field, gx_plan_term *terms)
{
    gx_plan way = *plan;
    way.way = field + 1;
    way.op = GX_OP_OR;
    way.approximate = 0;
    way.fill = false;
    way.terms = terms;
    way.n_terms = way.n_unknown = way.n_phrases = 0;
    way.phrases = NULL;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        uint32_t list, at = way.n_terms;
        if (!gx_view_in_field(view, plan->terms[i].list, field, &list) || add_to_same(&way, list, plan->terms[i].qtf))
            continue;
        const gx_plan_term t = {.list = list, .df = view->lists[list].df, .qtf = plan->terms[i].qtf};
        for (; at && is_behind(&terms[at - 1], &t); --at)
            terms[at] = terms[at - 1];
        terms[at] = t;
        ++way.n_terms;
    }
    for (uint32_t i = 0; i < way.n_terms; ++i)
        terms[i].w = gx_way_weight(view, terms[i].list, terms[i].qtf, plan->exponent);
    return way;
}
