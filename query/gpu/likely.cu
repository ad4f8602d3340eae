/* The first threshold of a search.
 *
 * A filter leaves a share of all documents. If it has nothing to do with the query, k of them are among the best
 * k / share, and somewhat more, of all. How many documents reach a score is estimated from what is stored of each
 * list, its impacts at some ranks, as if the lists had nothing to do with each other:
 *
 *   expected[level]   documents whose score by the lists so far is of that level: all are of level 0 at first
 *   a list            moves the share of documents that it holds, band by band of its ranks, to higher levels
 *
 * Lists of a real query have more documents in common than that, so that more documents reach a score. */
#include "query/gpu/likely.cuh"

#include <math.h>

namespace gx {

uint32_t find_kth(uint32_t k)
{
    uint32_t i = 0;
    while (i < N_KTH && kth_ranks[i] < k)
        ++i;
    return i;
}

/* Returns the impact of a posting with the stored impact of list t, as a fraction. */
static double impact_of(const gx_plan_term *t, const bounds *b, double stored)
{
    const double unit = gx_scorer_is_linear(b->norm) ? b->best[t->list] : 1;
    return (double)t->w * unit * stored / 256 * (1 - 0x1p-20) - 2;
}

uint32_t kth_impact(const gpu_prepared_index *s, const bounds *b, const gx_plan_term *t, uint32_t k, uint32_t kth)
{
    const uint32_t number = s->aux_of[t->list];
    if (number == UINT32_MAX || t->df < k || kth == N_KTH)
        return 1;
    const double x = impact_of(t, b, b->kth[(size_t)number * N_KTH + kth]);
    return x > 1 ? (uint32_t)x : 1;
}

/* ---- one list ---- */

constexpr double TIMES_AFTER_A_MISS = 16;
constexpr uint32_t MOST_GUESSES = 2;

/* Returns a rank among all documents, by their scores, that is likely to hold k documents which a query may
 * return. */
static double find_likely_rank(uint32_t k, double share, uint32_t n_docs, uint32_t guesses)
{
    const double least = 1.0 / (n_docs + 1.0);
    double rank = (k + 3 * sqrt((double)k) + 2) / (share > least ? share : least);
    for (uint32_t i = 0; i < guesses; ++i)
        rank *= TIMES_AFTER_A_MISS;
    return rank;
}

/* Returns about the impact of the posting of that rank in a list of the plan, the greatest of them, or 1. */
static double likely_impact(const gpu_prepared_index *s, const bounds *b, const gx_plan *plan, double rank)
{
    double best = 1;
    uint32_t above = 1;
    while (above < N_KTH && kth_ranks[above] < rank)
        ++above;
    if (above == N_KTH)
        return 1;
    const double from = kth_ranks[above - 1], to = kth_ranks[above];
    const double steps = rank > from ? log(rank / from) / log(to / from) : 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const gx_plan_term *t = &plan->terms[i];
        if (s->aux_of[t->list] == UINT32_MAX)
            continue;
        const uint8_t *kth = b->kth + (size_t)s->aux_of[t->list] * N_KTH + above;
        const double x = kth[0] ? impact_of(t, b, kth[-1] - (kth[-1] - kth[0]) * steps) : 1;
        best = x > best ? x : best;
    }
    return best;
}

/* ---- all lists ---- */

constexpr uint32_t LEVELS = 64;
constexpr double FIRST_BAND = 1.0 / 8; /* of the rank that is looked for: better ranks are counted with that one */
constexpr double NOT_KNOWN = 0.5;      /* of the last impact that is known: the impact of a list's last posting */
constexpr double TOWARDS_LAST = 0.6;   /* where in a band of ranks its impact is taken */
constexpr double WIDTH = 0.75;         /* levels that a band has at least, where there are more ranks */
constexpr double MARGIN = 0.995;

/* Expected documents by score: expected[l] of about l levels. A level is 1 / LEVELS of the greatest score. */
struct score_levels {
    double levels_a_score;
    uint32_t end;                /* levels from here on are empty */
    float before[4];             /* 0 */
    float expected[LEVELS + 12]; /* what lies beyond LEVELS is not used */
};

/* Adds `share` times the documents of `from`, raised by `levels`, of which a fraction is split between two. */
static void add_raised(const score_levels *from, double share, double levels, score_levels *to)
{
    levels = levels < LEVELS - 2 ? levels > 0 ? levels : 0 : LEVELS - 2;
    const uint32_t up = (uint32_t)levels, n = from->end + 1 < LEVELS - up ? from->end + 1 : LEVELS - up;
    const float high = (float)(share * (levels - up)), low = (float)share - high;
    const float *const have = from->expected, *const below = have - 1;
    float *const at = to->expected + up;
    for (uint32_t l = 0; l < n; ++l)
        at[l] += low * have[l] + high * below[l];
    to->end = to->end > up + n ? to->end : up + n;
}

/* Adds a list. first: the rank with which the first band ends, at least. */
static void add_list(const gpu_prepared_index *s, const bounds *b, const gx_plan_term *t, double first,
                     score_levels *all)
{
    const double n_docs = s->ix->n_docs, a_level = impact_of(t, b, 1) * all->levels_a_score;
    const uint8_t *kth = b->kth + (size_t)s->aux_of[t->list] * N_KTH;
    const score_levels others = *all;
    const float share = (float)(1 - t->df / n_docs);
    for (uint32_t l = 0; l < others.end; ++l)
        all->expected[l] = share * others.expected[l];
    uint32_t i = 0;
    while (i + 1 < N_KTH && kth_ranks[i] < first && kth_ranks[i + 1] <= t->df)
        ++i;
    double rank = 0, stored = kth[i];
    for (; i < N_KTH && kth_ranks[i] <= t->df; ++i) {
        const bool last = i + 1 == N_KTH || kth_ranks[i + 1] > t->df;
        if (!last && rank > 0 && (stored - kth[i]) * a_level < WIDTH)
            continue;
        add_raised(&others, (kth_ranks[i] - rank) / n_docs, (stored + (kth[i] - stored) * TOWARDS_LAST) * a_level, all);
        rank = kth_ranks[i];
        stored = kth[i];
    }
    if (rank < t->df)
        add_raised(&others, (t->df - rank) / n_docs, stored * (1 + (NOT_KNOWN - 1) * TOWARDS_LAST) * a_level, all);
}

/* Returns about the score that `rank` documents reach, or 1. */
static double likely_score(const gpu_prepared_index *s, const bounds *b, const gx_plan *plan, double rank)
{
    score_levels all = {};
    double greatest = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const gx_plan_term *t = &plan->terms[i];
        greatest += impact_of(t, b, gx_scorer_is_linear(b->norm) ? 256 : 256.0 * b->best[t->list]);
    }
    if (greatest < LEVELS)
        return 1;
    all.levels_a_score = (LEVELS - 2) / greatest;
    all.expected[0] = (float)s->ix->n_docs;
    all.end = 1;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        if (s->aux_of[plan->terms[i].list] != UINT32_MAX)
            add_list(s, b, &plan->terms[i], rank * FIRST_BAND, &all);
    }
    double reached = 0;
    for (uint32_t l = all.end < LEVELS ? all.end : LEVELS; l-- > 1;) {
        const double n = all.expected[l];
        if (reached + n >= rank)
            return (l + 0.5 - (rank - reached) / n) / all.levels_a_score * MARGIN;
        reached += n;
    }
    return 1;
}

constexpr uint32_t MOST_TERMS = SHORT_QUERY_TERMS; /* for more the estimate would take too long */

uint32_t likely_threshold(const gpu_prepared_index *s, const bounds *b, const gx_plan *plan, double share,
                          uint32_t guesses)
{
    if (guesses >= MOST_GUESSES)
        return 1;
    const double rank = find_likely_rank(plan->k, share, s->ix->n_docs, guesses);
    double best = likely_impact(s, b, plan, rank);
    if (plan->n_terms > 1 && plan->n_terms <= MOST_TERMS) {
        const double x = likely_score(s, b, plan, rank);
        best = x > best ? x : best;
    }
    return (uint32_t)best;
}

} // namespace gx
