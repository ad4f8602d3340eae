#include "query/engine/list_sizes.h"

#include "query/engine/engine.h"

static void add_list(gx_list_sizes *sum, const gx_index *ix, uint32_t number)
{
    const gx_list l = gx_index_list(ix, number);
    sum->postings += l.df;
    sum->blocks += l.n_blocks;
    sum->bytes += l.n_blocks ? 4 * (uint64_t)l.tf_ends[l.n_blocks - 1] : 0;
}

void gx_list_sizes_add(gx_list_sizes *sum, const gx_index *ix, const gx_plan *plan)
{
    for (uint32_t t = 0; t < plan->n_terms; ++t)
        add_list(sum, ix, plan->terms[t].list);
}

/* The lists of all terms that the part has; a part's plan of an AND-then-OR is that of the AND. */
static void add_all_terms(gx_list_sizes *sum, const gx_index *part, const gx_query_plan *query)
{
    for (uint32_t t = 0; t < query->n_terms; ++t) {
        const uint32_t number = gx_index_find_term(part, query->terms[t].term, query->terms[t].len);
        if (number != UINT32_MAX)
            add_list(sum, part, number);
    }
}

void gx_engine_add_list_sizes(const gx_engine *en, const gx_plan *plan, gx_list_sizes *sum)
{
    if (!en->parts) {
        gx_list_sizes_add(sum, en->ix, plan);
        return;
    }
    for (uint32_t i = en->parts->range.begin; i < en->parts->range.end; ++i) {
        const gx_index *part = en->parts->ix->parts->parts[i].ix;
        if (!plan->parts) /* a plan of the only part */
            gx_list_sizes_add(sum, part, plan);
        else if (plan->op == GX_OP_AND_OR)
            add_all_terms(sum, part, &plan->parts->query);
        else
            gx_list_sizes_add(sum, part, &plan->parts->plans[i]);
    }
}
