#include "query/cpu/first_threshold.h"

#include <math.h>

uint32_t gx_cpu_known_threshold(const gx_plan *plan, bool all)
{
    return plan->initial_threshold > 1 && (!all || plan->op == GX_OP_AND) ? plan->initial_threshold : 1;
}

double gx_cpu_likely_rank(uint32_t k, double share)
{
    return (k + 3 * sqrt(k * (1 - share)) + 1) / share;
}

/* About the impact of the posting of such a rank in the list of bounds b: between the ranks that are
 * known, impacts are taken to fall with the rank's logarithm. 0: not known. */
static double impact_of_rank(const gx_cpu_bounds *b, double rank)
{
    uint32_t q = 0;
    while (q < GX_CPU_N_KTH && gx_cpu_kth_ranks[q] < rank)
        ++q;
    if (q == GX_CPU_N_KTH || b->kth[q] == 0)
        return 0;
    const double above = b->kth[q - 1], steps = log10(rank / gx_cpu_kth_ranks[q - 1]);
    return above - (above - b->kth[q]) * steps;
}

uint32_t gx_cpu_first_threshold(const gx_cpu_searcher *s, const gx_plan *plan, double share)
{
    uint32_t q = 0, threshold = gx_cpu_known_threshold(plan, false);
    const double rank = gx_cpu_likely_rank(plan->k, share);
    while (q < GX_CPU_N_KTH && gx_cpu_kth_ranks[q] < plan->k)
        ++q;
    for (uint32_t i = 0; q < GX_CPU_N_KTH && i < plan->n_terms; ++i) {
        const gx_cpu_bounds *b = s->order[i]->bounds;
        const double impact = s->guesses ? impact_of_rank(b, rank) : b->kth[q];
        const double least = (double)s->order[i]->w * impact / s->params_slack - 1;
        if (least > threshold)
            threshold = (uint32_t)least;
    }
    return threshold;
}
