#include "query/cpu/choice.h"

#include <math.h>

#include "query/cpu/block_max.h"
#include "query/filter/filter.h"
#include "query/filter/mask.h"

/* ---- what ways take, in ns ---- */

#define LIST_NS 100.0  /* accumulate: a list */
#define POSTING_NS 1.5 /* a posting */
#define LINE_NS 6.0    /* a cache line of the accumulators, which hold LINE_DOCS documents */
#define LINE_DOCS 16u
#define CURSOR_NS 300.0    /* list at a time: a list .. */
#define SELECTED_NS 15.0   /* .. a list and a document of the few that a filter allows .. */
#define MOST_GUESS_NS 3000 /* .. about how many these are .. */
#define PAIR_NS 30.0       /* .. and two lists, of which one's candidates are looked up in the other, at the least */
#define FOUND_NS 4.0       /* .. and a posting of those that it reads in any case .. */
#define MOST_FOUND 2000.0  /* .. of which it leaves out the rest */
#define LOOK_UP_NS 8.0     /* a look-up, of which a document takes .. */
#define MOST_LOOKED_UP 3u  /* .. so many until it cannot reach the threshold */
#define OPEN_NS 100.0      /* block-max: a list .. */
#define RARE_NS 12.0       /* .. a posting of a rare one .. */
#define SEGMENT_NS 0.06    /* .. a segment's bound by another one */
#define FILTER_NS 1.0      /* .. and a document's bit in a mask of the filter */
#define LEAST_TIMES 2      /* .. of learned weights, as often as this */
#define MOST_TRIED 0.3     /* of the limit: what block-max may take until it tells whether it is worth it */
#define DOCS_A_RESULT 1024 /* with fewer documents for each result, too many ranges have one for it to be worth it */

double gx_cpu_cost_of_accumulation(const gx_plan *plan, uint32_t n_docs, uint32_t begin, uint32_t end)
{
    const uint32_t n_lines = n_docs / LINE_DOCS + 1;
    double n_postings = 0, n_read = 0;
    for (uint32_t i = begin; i < end; ++i) {
        n_postings += plan->terms[i].df;
        n_read += plan->terms[i].df < n_lines ? plan->terms[i].df : n_lines;
    }
    return LIST_NS * (end - begin) + POSTING_NS * n_postings + LINE_NS * n_read;
}

double gx_cpu_cost_of_look_ups(uint32_t n, uint32_t n_lists)
{
    return LOOK_UP_NS * n * (n_lists < MOST_LOOKED_UP ? n_lists : MOST_LOOKED_UP) + CURSOR_NS * n_lists;
}

/* The bounds of segments. */
static double cost_of_bounds(const gx_cpu_searcher *s, const gx_plan *plan)
{
    const uint32_t n_tiles = gx_ranges_n_tiles(s->ix);
    const double row = SEGMENT_NS * gx_ranges_n_segments(s->ix);
    double cost = OPEN_NS * plan->n_terms + (plan->filter && !plan->filter_mask ? FILTER_NS * s->ix->n_docs : 0);
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        cost += plan->terms[i].df < n_tiles ? RARE_NS * plan->terms[i].df : row;
    return cost;
}

static double least_cost_of_lists(const gx_plan *plan, uint64_t n_postings)
{
    const double found = n_postings < MOST_FOUND ? (double)n_postings : MOST_FOUND;
    return CURSOR_NS * plan->n_terms + PAIR_NS * plan->n_terms * plan->n_terms + FOUND_NS * found;
}

/* ---- ways ---- */

/* Whether the plan's mask tells nothing of postings of kept documents (cpu/lists.h): it allows all of these. */
static bool allows_kept(const gx_cpu_searcher *s, const gx_plan *plan)
{
    return plan->mask && !plan->filter && !plan->filter_mask && plan->mask->n == gx_cpu_lists_n_kept(s->lists);
}

/* By bounds of ranges, which read one mask. Ranges have kept documents alone. Where blocks are skipped, those without
 * a document that the mask allows do not count. */
static gx_status answer_by_ranges(gx_cpu_searcher *s, const gx_plan *plan, double limit, gx_hits *hits, bool *done,
                                  gx_error *err)
{
    gx_plan masked = *plan;
    *done = false;
    gx_status st = gx_cpu_selection_mask(&s->selection, plan, &masked.mask, err);
    if (allows_kept(s, plan) && !gx_plan_skips_blocks(plan))
        masked.mask = NULL;
    if (st == GX_OK)
        st = gx_cpu_block_max_within(s, &masked, limit, hits, done, err);
    gx_cpu_selection_end(&s->selection);
    return st;
}

/* By an algorithm that reads one mask. */
static gx_status answer_masked(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, gx_hits *hits, gx_error *err)
{
    gx_plan masked = *plan;
    gx_status st = gx_cpu_selection_mask(&s->selection, plan, &masked.mask, err);
    if (st == GX_OK && plan->prune && plan->algorithm == GX_ALGORITHM_PMF && op == GX_OP_AND)
        st = gx_cpu_intersect(s, &masked, hits, err);
    else if (st == GX_OK && plan->prune && plan->algorithm == GX_ALGORITHM_DAAT)
        st = gx_cpu_document_at_a_time(s, &masked, op, hits, err);
    else if (st == GX_OK)
        st = gx_cpu_exhaust(s, &masked, op, hits, err);
    gx_cpu_selection_end(&s->selection);
    return st;
}

gx_status gx_cpu_try_block_max(gx_cpu_searcher *s, const gx_plan *plan, uint32_t threshold, uint64_t most, double limit,
                               gx_hits *hits, bool *done, bool *again, gx_error *err)
{
    gx_plan known = *plan;
    *done = false;
    *again = plan->k <= s->ix->n_docs / DOCS_A_RESULT;
    if (!*again || gx_block_max_slack(plan->n_terms, most) > threshold / 2 ||
        cost_of_bounds(s, plan) > MOST_TRIED * limit)
        return GX_OK;
    *again = false;
    known.initial_threshold = threshold;
    return answer_by_ranges(s, &known, limit, hits, done, err);
}

/* ---- choosing ---- */

#define UNSEEN_SHARE 256u /* one document in so many is allowed, if the sample of a filter has none */

/* Returns whether the threshold and the maps should save more than they cost. They save little if
 * most documents are wanted. Short lists are pruned even so, because accumulators need a pass over
 * all documents. */
static bool worth_pruning(const gx_plan *plan, uint64_t n_postings, uint32_t n_docs)
{
    return plan->prune && (plan->k <= n_postings / 8 || n_postings <= n_docs / 4);
}

/* The least numbers of terms for which bounds of ranges are faster than list at a time. BM25 weighs
 * rare terms so much that the lists of common ones are left unread; learned weights do not. The more
 * results, the more ranges have one. */
#define MIN_TERMS_OF_WEIGHTS 6u
#define MAX_TERMS_OF_WEIGHTS 256u
#define MIN_TERMS_OF_BM25 16u
#define MIN_TERMS_OF_BM25_DEEP 24u
#define DEEP 100u /* results */
#define MIN_TERMS_OF_ONE_LONG 9u

/* Whether the plan has too many lists for list at a time. */
static bool has_many_lists(const gx_plan *plan)
{
    if (!gx_scorer_is_linear(plan->norm))
        return plan->n_terms >= (plan->k > DEEP ? MIN_TERMS_OF_BM25_DEEP : MIN_TERMS_OF_BM25);
    /* the heavy lists alone are as hard to leave out */
    return plan->n_terms + plan->n_left_out >= MIN_TERMS_OF_WEIGHTS;
}

/* Of a plan with many lists, whether block-max is taken at once. Of learned weights the greatest make a threshold that
 * leaves most ranges out, unless there are so many lists that the units of bounds are too coarse. */
static bool suits_bounds(const gx_cpu_searcher *s, const gx_plan *plan, double cost)
{
    return gx_scorer_is_linear(plan->norm) && plan->n_terms <= MAX_TERMS_OF_WEIGHTS &&
           LEAST_TIMES * cost_of_bounds(s, plan) < cost;
}

/* Whether the plan allows so few documents that they are better looked up in all lists, as list at a time does. */
static bool allows_few(const gx_plan *plan, uint32_t n_docs, double limit)
{
    double allowed = INFINITY;
    if (plan->mask)
        allowed = plan->mask->n;
    if (plan->filter_mask && plan->filter_mask->n < allowed)
        allowed = plan->filter_mask->n;
    if (plan->filter && !plan->filter_mask && MOST_GUESS_NS < limit) {
        const uint32_t guess = gx_filter_guess(plan->filter);
        const double likely = guess ? guess : n_docs / UNSEEN_SHARE;
        allowed = likely < allowed ? likely : allowed;
    }
    return allowed * plan->n_terms * SELECTED_NS < limit;
}

/* Of many lists, whether all but the longest are added in less time than list at a time takes at the least. Their
 * documents give a threshold then, with which accumulation looks these up in the longest, or tries block-max. */
static bool has_one_long_list(const gx_plan *plan, uint64_t n_postings, uint32_t n_docs)
{
    const uint32_t n = plan->n_terms;
    return n >= MIN_TERMS_OF_ONE_LONG && plan->k <= DEEP && n_postings - plan->terms[n - 1].df >= plan->k &&
           gx_cpu_cost_of_accumulation(plan, n_docs, 0, n - 1) < least_cost_of_lists(plan, n_postings);
}

typedef enum way { LIST_AT_A_TIME, ACCUMULATE, BLOCK_MAX, EXHAUST } way;

static way choose(const gx_cpu_searcher *s, const gx_plan *plan, gx_op op, uint64_t n_postings)
{
    const uint32_t n_docs = s->ix->n_docs;
    if (op == GX_OP_OR && gx_plan_skips_blocks(plan))
        return BLOCK_MAX;
    if (!plan->prune || plan->algorithm == GX_ALGORITHM_PMF || plan->algorithm == GX_ALGORITHM_TAAT ||
        plan->algorithm == GX_ALGORITHM_DAAT)
        return EXHAUST;
    if (op == GX_OP_OR && plan->algorithm == GX_ALGORITHM_BLOCK_MAX)
        return BLOCK_MAX;
    if (op == GX_OP_OR) {
        const double cost = gx_cpu_cost_of_accumulation(plan, n_docs, 0, plan->n_terms);
        if (has_many_lists(plan) && suits_bounds(s, plan, cost))
            return BLOCK_MAX;
        const bool suits = has_many_lists(plan) || has_one_long_list(plan, n_postings, n_docs);
        if ((suits && !allows_few(plan, n_docs, cost)) || cost < least_cost_of_lists(plan, n_postings))
            return ACCUMULATE;
    }
    return worth_pruning(plan, n_postings, n_docs) ? LIST_AT_A_TIME : op == GX_OP_OR ? ACCUMULATE : EXHAUST;
}

gx_status gx_cpu_answer(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, uint64_t n_postings, gx_hits *hits,
                        gx_error *err)
{
    const way chosen = choose(s, plan, op, n_postings);
    bool done = false;
    if (chosen == BLOCK_MAX) {
        const gx_status st = answer_by_ranges(s, plan, INFINITY, hits, &done, err);
        if (st != GX_OK || done)
            return st;
    }
    if (chosen == LIST_AT_A_TIME || (chosen == BLOCK_MAX && worth_pruning(plan, n_postings, s->ix->n_docs)))
        return gx_cpu_search(s, plan, op, hits, err);
    return chosen == ACCUMULATE ? gx_cpu_accumulate(s, plan, true, hits, err) : answer_masked(s, plan, op, hits, err);
}
