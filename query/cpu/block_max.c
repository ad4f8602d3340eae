/* block_max.c: exact top-k of an OR, a range of documents at a time.
 *
 *   bounds of all segments from the lists' bounds of segments       SIMD, a byte a list and segment
 *   segments by falling bound, until the bound is below T:          (T: the k-th best score so far)
 *     bounds of the segment's 32 ranges by lists of great impacts   SIMD, a row of up to 32 bytes a list
 *     if one reaches T with the other lists' bound of the segment: bounds of ranges by the others, too
 *   in groups of ranges that reach T: postings -> accumulators      lists by falling greatest impact, 4 at a
 *                                                                   time; ranges below T are dropped between
 *     documents of the ranges that are left and reach T -> the k best
 *
 * Mallia, Suel and Tonellotto, "Faster Learned Sparse Retrieval with Block-Max Pruning" (SIGIR
 * 2024), section 3, visit ranges by falling bound; Carlson, Xie, He and Yang, "Dynamic Superblock
 * Pruning for Fast Learned Sparse Retrieval" (SIGIR 2025), section 3, go from groups of ranges to
 * ranges and finish a group before the next. Here bounds are not less than any score, and scores are
 * the sums of bm25.h, so that answers are those of the exhaustive search.
 *
 * Why no answer is lost: let list i have the greatest impact ub (search.c), and a range the bound b of
 * `levels`. No posting of the range has an impact above ub b / levels + 1. A unit is U >= sum of ub /
 * 60,000, so that sums of units stay below 2^16. The list's weight is ceil(256 ub / (levels U)), for
 * which U is great enough to be below 2^16, and b times that weight, / 256 and rounded down, is less
 * than a unit below ub b / (levels U). So the sum of n lists is less than n units too low: a range is
 * left out if (sum + n) U + n < T.
 */
#include "query/cpu/block_max.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/cpu/block_max_state.h"

#define MOST_UNITS 60000u
#define ROUNDING_SLACK (1 + 1e-6) /* what three roundings of 2^-24 can be worth, and then some */
#define HEAVY_SHARE 0.8           /* of the sum of ub */
#define FIRST_PHASE 64u           /* segments, about */
#define PHASE_GROWTH 8u
#define SAMPLED 32u          /* segments that tell how long the search may take: .. */
#define BOUND_SEGMENT_NS 6.0 /* .. to bound a segment's ranges by a list */
#define SCORE_RANGE_NS 2.5   /* .. to score a range by a list .. */
#define RANGE_NS 50.0        /* .. and by rare lists, and to choose its best documents */
#define FIRST_LIMIT 4        /* times the limit: before the first phase, in which the threshold rises most */
#define COUNTED 4u           /* one segment of so many is counted: phases need not be exact */

void gx_cpu_block_max_free(gx_cpu_block_max_state *b)
{
    if (!b)
        return;
    free(b->terms);
    free(b->impacts);
    free(b->of_ranges);
    free(b->of_segments);
    free(b->weights);
    free(b->segment_weights);
    free(b->rows);
    free(b->sums);
    free(b->light);
    free(b->order);
    free(b->rare);
    free(b->runs);
    free(b);
}

static size_t sums_of(uint32_t n)
{
    return ((size_t)n + 127) & ~(size_t)63;
}

static gx_cpu_block_max_state *open_state(const gx_cpu_searcher *s)
{
    gx_cpu_block_max_state *b = aligned_alloc(64, (sizeof *b + 63) / 64 * 64);
    if (!b)
        return NULL;
    memset(b, 0, sizeof *b);
    b->kernels = gx_range_kernels_like(s->kernels);
    b->n_segments = gx_ranges_n_segments(s->ix);
    b->sums = calloc(sums_of(b->n_segments), sizeof *b->sums);
    b->light = calloc(sums_of(b->n_segments), sizeof *b->light);
    b->order = malloc(sums_of(b->n_segments) * sizeof *b->order);
    b->rare = malloc(sums_of(b->n_segments) * sizeof *b->rare);
    if (!b->sums || !b->light || !b->order || !b->rare) {
        gx_cpu_block_max_free(b);
        return NULL;
    }
    memset(b->rare, 0xff, sums_of(b->n_segments) * sizeof *b->rare);
    return b;
}

static bool reserve_terms(gx_cpu_block_max_state *b, uint32_t n)
{
    if (n <= b->max_terms)
        return true;
    if (!gx_resize(&b->terms, n, sizeof *b->terms) ||
        !gx_resize(&b->impacts, n, GX_BLOCK_MAX_TFS * sizeof *b->impacts) ||
        !gx_resize(&b->of_ranges, n, sizeof *b->of_ranges) || !gx_resize(&b->of_segments, n, sizeof *b->of_segments) ||
        !gx_resize(&b->weights, n, sizeof *b->weights) ||
        !gx_resize(&b->segment_weights, n, sizeof *b->segment_weights) || !gx_resize(&b->rows, n, sizeof *b->rows))
        return false;
    b->max_terms = n;
    return true;
}

/* ---- before the search ---- */

static uint32_t greatest_impact(float w, float most)
{
    return (uint32_t)ceil((double)w * most * ROUNDING_SLACK) + 1;
}

/* A score that at least k documents have, by one list alone or as the plan says. Under a mask
 * nothing is known. Where blocks are skipped that could hold results, the plan's is ignored: which documents are found
 * must not depend on what else was searched. */
static uint32_t initial_threshold(gx_cpu_searcher *s, const gx_plan *plan)
{
    const bool known = plan->initial_threshold > 1 && !gx_plan_skips_blocks(plan);
    uint32_t q = 0, threshold = known ? plan->initial_threshold : 1;
    if (plan->mask)
        return 1;
    while (q < GX_CPU_N_KTH && gx_cpu_kth_ranks[q] < plan->k)
        ++q;
    for (uint32_t i = 0; q < GX_CPU_N_KTH && i < plan->n_terms; ++i) {
        const gx_cpu_bounds *bounds = gx_cpu_params_bounds(s->lists, s->params, plan->terms[i].list, &s->scratch);
        const double least = bounds ? (double)plan->terms[i].w * bounds->kth[q] / ROUNDING_SLACK - 1 : 0;
        if (least > threshold)
            threshold = (uint32_t)least;
    }
    return threshold;
}

static const uint32_t *make_impacts(gx_cpu_block_max_state *b, uint32_t i, const gx_range_term *t)
{
    uint32_t *impacts = b->impacts + (size_t)i * GX_BLOCK_MAX_TFS;
    if (!b->linear || t->list->form == GX_RANGE_DENSE || t->list->form == GX_RANGE_RARE || t->list->wide)
        return NULL;
    for (uint32_t tf = 1; tf <= t->list->max_tf; ++tf)
        impacts[tf] = gx_bm25_impact(t->w, tf, GX_LINEAR_K);
    return impacts;
}

static bool open_term(gx_cpu_searcher *s, gx_range_term *r, const gx_plan *plan, const gx_plan_term *t)
{
    const gx_cpu_bounds *bounds = gx_cpu_params_bounds(s->lists, s->params, t->list, &s->scratch);
    *r = (gx_range_term){.list = gx_ranges_list(s->ranges, t->list, &s->scratch), .w = t->w};
    if (!bounds || !r->list)
        return false;
    r->bounds = gx_ranges_bounds(s->ranges, r->list, s->params, plan->norm, t->list, &s->scratch);
    if (!r->bounds)
        return false;
    /* where bounds are tfs, `most` must be the part of the greatest tf */
    r->ub = greatest_impact(t->w, r->bounds->scale ? (float)r->list->max_tf / GX_LINEAR_K : bounds->most);
    return true;
}

uint64_t gx_block_max_slack(uint32_t n, uint64_t most)
{
    return n * (most / MOST_UNITS + 1);
}

/* Units are as small as they may be: see the head of this file. */
static void choose_unit(gx_cpu_block_max_state *b)
{
    uint64_t total = 0, unit = 1;
    for (uint32_t i = 0; i < b->n_terms; ++i) {
        const uint64_t units = (uint64_t)b->terms[i].bounds->levels * UINT16_MAX;
        const uint64_t least = (256 * (uint64_t)b->terms[i].ub + units - 1) / units;
        unit = least > unit ? least : unit;
        total += b->terms[i].ub;
    }
    const uint64_t least = (total + MOST_UNITS - 1) / MOST_UNITS;
    b->unit = (uint32_t)(least > unit ? least : unit);
    for (uint32_t i = 0; i < b->n_terms; ++i) {
        gx_range_term *t = &b->terms[i];
        const uint64_t units = (uint64_t)t->bounds->levels * b->unit;
        t->weight = (uint16_t)((256 * (uint64_t)t->ub + units - 1) / units);
    }
}

static int by_falling_ub(const void *a, const void *b)
{
    const uint32_t x = ((const gx_range_term *)a)->ub, y = ((const gx_range_term *)b)->ub;
    return (x < y) - (x > y);
}

/* Where a list stands among the query's: dense, found by segment, rare. */
static inline uint32_t group_of(const gx_range_list *l)
{
    return l->form == GX_RANGE_DENSE ? 0 : l->form == GX_RANGE_RARE ? 2 : 1;
}

/* Dense lists and those that are found by segment, together by falling ub. */
static void rank_terms(gx_cpu_block_max_state *b)
{
    double total = 0, above = 0;
    b->heavy_dense = 0;
    b->heavy_found = b->n_dense;
    for (uint32_t i = 0; i < b->n_found; ++i)
        total += b->terms[i].ub;
    for (uint32_t i = 0, j = b->n_dense, rank = 0; i < b->n_dense || j < b->n_found; ++rank) {
        const bool dense = j == b->n_found || (i < b->n_dense && b->terms[i].ub >= b->terms[j].ub);
        gx_range_term *t = &b->terms[dense ? i++ : j++];
        t->rank = rank;
        if (above < HEAVY_SHARE * total)
            ++*(dense ? &b->heavy_dense : &b->heavy_found);
        above += t->ub;
    }
}

/* The plan's lists. False: one of them has no ranges. */
static bool open_terms(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan)
{
    uint32_t counts[3] = {0};
    gx_range_term r;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        if (!open_term(s, &r, plan, &plan->terms[i]))
            return false;
        ++counts[group_of(r.list)];
    }
    b->n_dense = counts[0];
    b->n_found = b->n_dense + counts[1];
    b->n_terms = plan->n_terms;
    uint32_t at[3] = {0, b->n_dense, b->n_found};
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        open_term(s, &r, plan, &plan->terms[i]);
        b->terms[at[group_of(r.list)]++] = r;
    }
    qsort(b->terms, b->n_dense, sizeof *b->terms, by_falling_ub);
    qsort(b->terms + b->n_dense, b->n_found - b->n_dense, sizeof *b->terms, by_falling_ub);
    rank_terms(b);
    choose_unit(b);
    for (uint32_t i = 0; i < b->n_terms; ++i) {
        gx_range_term *t = &b->terms[i];
        t->impacts = make_impacts(b, i, t);
        b->of_ranges[i] = t->bounds->ranges;
        b->rows[i] = (gx_range_rows){t->list->segments, t->list->present,  t->list->starts,
                                     t->bounds->ranges, t->list->postings, t->list->wide};
        b->weights[i] = t->weight;
    }
    return true;
}

/* The runs of a rare list, and their bounds to the segments. */
static bool add_rare(gx_cpu_block_max_state *b, uint32_t term)
{
    const gx_range_term *t = &b->terms[term];
    const uint32_t *docids = t->list->docids, df = t->list->df;
    if (b->n_runs + df > b->max_runs) {
        const uint32_t max = 2 * (b->n_runs + df);
        if (!gx_resize(&b->runs, max, sizeof *b->runs))
            return false;
        b->max_runs = max;
    }
    for (uint32_t i = 0, end; i < df; i = end) {
        const uint32_t segment = docids[i] >> GX_SEGMENT_SHIFT;
        uint32_t most = 0;
        for (end = i; end < df && docids[end] >> GX_SEGMENT_SHIFT == segment; ++end) {
            const uint8_t bound = gx_block_max_bound(t, end, t->list->tfs[end]);
            most = bound > most ? bound : most;
        }
        b->sums[segment] += (uint16_t)(most * t->weight >> 8);
        b->runs[b->n_runs] = (gx_posting_run){term, i, end, b->rare[segment]};
        b->rare[segment] = b->n_runs++;
    }
    return true;
}

static inline void add_row(gx_cpu_block_max_state *b, uint32_t term, uint32_t *n)
{
    b->of_segments[*n] = b->terms[term].bounds->segments;
    b->segment_weights[(*n)++] = b->weights[term];
}

/* Bounds of all segments by terms [dense, end_dense) and [found, end_found). */
static void bound_by(gx_cpu_block_max_state *b, uint16_t *sums, uint32_t dense, uint32_t end_dense, uint32_t found,
                     uint32_t end_found)
{
    uint32_t n = 0;
    for (uint32_t i = dense; i < end_dense; ++i)
        add_row(b, i, &n);
    for (uint32_t i = found; i < end_found; ++i) {
        if (b->terms[i].list->form != GX_RANGE_SPARSE)
            add_row(b, i, &n);
    }
    b->kernels->sum_bounds(sums, b->of_segments, b->segment_weights, n, 0, (b->n_segments + 63) & ~63u);
    for (uint32_t i = found; i < end_found; ++i) {
        const gx_range_term *t = &b->terms[i];
        if (t->list->form == GX_RANGE_SPARSE)
            b->kernels->add_tiles(sums, t->bounds->segments, t->list->starts, t->list->present, t->weight,
                                  (b->n_segments / GX_TILE_SEGMENTS + 3) & ~3u);
    }
}

static bool bound_segments(gx_cpu_block_max_state *b)
{
    bound_by(b, b->light, b->heavy_dense, b->n_dense, b->heavy_found, b->n_found);
    bound_by(b, b->sums, 0, b->heavy_dense, b->n_dense, b->heavy_found);
    for (uint32_t i = 0; i < b->n_segments; ++i)
        b->sums[i] = (uint16_t)(b->sums[i] + b->light[i]);
    for (uint32_t i = b->n_found; i < b->n_terms; ++i) {
        if (!add_rare(b, i))
            return false;
    }
    return true;
}

/* The least bound of about the n segments that have the greatest ones. */
static uint32_t bound_of_rank(const gx_cpu_block_max_state *b, uint32_t n)
{
    uint32_t bucket = GX_BLOCK_MAX_BUCKETS;
    for (uint32_t above = 0; bucket && above < n;)
        above += b->counts[--bucket];
    return bucket << GX_BLOCK_MAX_BUCKET_SHIFT;
}

/* Count every step-th bound step times. */
static void count_bounds(gx_cpu_block_max_state *b, uint32_t step)
{
    const uint16_t *sums = b->sums;
    const uint32_t n = b->n_segments;
    uint32_t *counts = b->counts;
    memset(b->counts, 0, sizeof b->counts);
    for (uint32_t i = 0; i < n; i += step)
        counts[sums[i] >> GX_BLOCK_MAX_BUCKET_SHIFT] += step;
}

/* The segments with bounds of at least `least` and below `most`, by docid; returns their number. */
static uint32_t list_segments(gx_cpu_block_max_state *b, uint32_t least, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_segments; i += 32) {
        uint32_t in = b->kernels->reach(b->sums + i, least) & ~b->kernels->reach(b->sums + i, most);
        if (b->n_segments - i < 32)
            in &= (UINT32_C(1) << (b->n_segments - i)) - 1;
        for (; in; in &= in - 1)
            b->order[n++] = i + (uint32_t)__builtin_ctz(in);
    }
    return n;
}

/* Set b->least so that a budget of n segments, which may be all, has those of the greatest bounds above 0. Of those
 * whose bound is b->least the first ones stay, and the others' bounds become 0. The bounds are counted. */
static void apply_budget(gx_cpu_block_max_state *b, uint32_t n)
{
    enum { WIDTH = 1 << GX_BLOCK_MAX_BUCKET_SHIFT };
    uint32_t bucket = GX_BLOCK_MAX_BUCKETS, counts[WIDTH] = {0}, at = WIDTH - 1;
    while (bucket && b->counts[bucket - 1] <= n)
        n -= b->counts[--bucket];
    if (bucket == 0)
        return;
    const uint32_t begin = (bucket - 1) * WIDTH, n_in = list_segments(b, begin, begin + WIDTH);
    for (uint32_t i = 0; i < n_in; ++i)
        ++counts[b->sums[b->order[i]] - begin];
    for (; at && counts[at] <= n; --at)
        n -= counts[at];
    b->least = begin + at ? begin + at : 1;
    for (uint32_t i = 0; i < n_in; ++i) {
        uint16_t *sum = &b->sums[b->order[i]];
        if (*sum == begin + at && n)
            --n;
        else if (*sum == begin + at)
            *sum = 0;
    }
}

/* The segments with bounds of at least `least` and below `most`. */
static gx_status search_phase(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, uint32_t least,
                              uint32_t most, gx_error *err)
{
    const uint32_t n = list_segments(b, least, most);
    for (uint32_t i = 0; i < n; i += GX_BLOCK_MAX_BATCH) {
        if (plan->cancel && plan->cancel(plan->user))
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
        gx_block_max_batch(s, b, plan, b->order + i, n - i < GX_BLOCK_MAX_BATCH ? n - i : GX_BLOCK_MAX_BATCH);
    }
    return GX_OK;
}

/* Whether to search the segments with bounds of at least `least` and below `most` is likely to take longer than the
 * limit, if the threshold stays. Of a sample of them the ranges are bounded, but not scored. */
static bool exceeds(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, uint32_t least, uint32_t most,
                    double limit)
{
    const uint32_t n = list_segments(b, least, most), n_sampled = n < SAMPLED ? n : SAMPLED;
    uint32_t sampled[SAMPLED];
    for (uint32_t i = 0; i < n_sampled; ++i)
        sampled[i] = b->order[(uint64_t)i * n / n_sampled];
    const double n_ranges = n ? (double)gx_block_max_count(s, b, plan, sampled, n_sampled) * n / n_sampled : 0;
    const double lists = b->n_found + 1;
    return lists * (BOUND_SEGMENT_NS * n + SCORE_RANGE_NS * n_ranges) + RANGE_NS * n_ranges > limit;
}

/* The segments with the greatest bounds make the threshold rise; the others, some times as many in each
 * phase, are read by docid, as they lie in memory. */
static gx_status search_segments(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, bool *done,
                                 gx_error *err)
{
    uint32_t most = UINT32_MAX;
    gx_status st = GX_OK;
    *done = true;
    b->max_ranges = GX_SEGMENT_RANGES;
    for (uint64_t n = FIRST_PHASE; most && st == GX_OK; n *= PHASE_GROWTH) {
        const uint32_t bar = gx_block_max_least_sum(b, s->best.threshold, b->n_terms);
        const uint32_t known = bar > b->least ? bar : b->least;
        const uint32_t rank = n < b->n_segments ? bound_of_rank(b, (uint32_t)n) : 0;
        const uint32_t least = rank > known ? rank : known;
        if (b->limit < INFINITY && n <= FIRST_PHASE * PHASE_GROWTH && known < most &&
            exceeds(s, b, plan, known, most, n == FIRST_PHASE ? FIRST_LIMIT * b->limit : b->limit)) {
            *done = false;
            return GX_OK;
        }
        if (least < most)
            st = search_phase(s, b, plan, least, most, err);
        if (rank <= known)
            break;
        most = least < most ? least : most;
    }
    return st;
}

/* The bounds of segments are counted; the plan's budget is applied to them. A segment without a document that the mask
 * allows is not counted by it. */
static void count_segments(const gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan)
{
    const uint32_t n_blocks = (uint32_t)(((uint64_t)s->ix->n_docs + GX_SEGMENT_DOCS - 1) / GX_SEGMENT_DOCS);
    const bool budget = gx_plan_skips_blocks(plan) && plan->block_budget && plan->block_budget < n_blocks;
    for (uint32_t i = 0; budget && plan->mask && i < b->n_segments; ++i) {
        if (b->sums[i] && !gx_block_max_allowed(s, plan->mask, i))
            b->sums[i] = 0;
    }
    b->least = 0;
    count_bounds(b, budget ? 1 : COUNTED);
    if (budget)
        apply_budget(b, plan->block_budget);
}

/* The k best of the segments that are counted. The first threshold is one of all documents, and within a budget there
 * may be fewer that reach it: then the search begins again without one. */
static gx_status search_counted(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, uint32_t k,
                                bool *done, gx_error *err)
{
    const uint32_t first = initial_threshold(s, plan);
    gx_status st = GX_OK;
    for (uint32_t threshold = first;; threshold = 1) {
        if (!gx_cpu_best_begin(&s->best, k, threshold))
            return gx_fail(err, GX_ENOMEM, "no memory to search %u lists for %u results", plan->n_terms, plan->k);
        st = search_segments(s, b, plan, done, err);
        if (st != GX_OK || threshold == 1 || !b->least || s->best.n >= k)
            return st;
    }
}

gx_status gx_cpu_block_max_within(gx_cpu_searcher *s, const gx_plan *plan, double limit, gx_hits *hits, bool *done,
                                  gx_error *err)
{
    *done = false;
    if (!s->params || s->coarse || memcmp(&s->norm, &plan->norm, sizeof s->norm) != 0) {
        s->params = gx_cpu_lists_params(s->lists, plan->norm);
        s->params_slack = ROUNDING_SLACK;
        s->norm = plan->norm;
        s->coarse = false;
    }
    if (!s->block_max && !(s->block_max = open_state(s)))
        return gx_fail(err, GX_ENOMEM, "no memory for the ranges of %u documents", s->ix->n_docs);
    gx_cpu_block_max_state *b = s->block_max;
    b->linear = gx_scorer_is_linear(plan->norm);
    b->limit = limit;
    if (!s->params || !reserve_terms(b, plan->n_terms))
        return gx_fail(err, GX_ENOMEM, "no memory to search %u lists", plan->n_terms);
    if (!open_terms(s, b, plan))
        return GX_OK;
    *done = true;
    uint64_t most_hits = 0; /* memory goes by what can be found rather than by what is asked for */
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        most_hits += plan->terms[i].df;
    const uint32_t k = plan->k < most_hits ? plan->k : (uint32_t)most_hits;
    gx_status st = GX_ENOMEM;
    if (bound_segments(b)) {
        count_segments(s, b, plan);
        st = search_counted(s, b, plan, k, done, err);
    } else {
        gx_fail(err, st, "no memory to search %u lists for %u results", plan->n_terms, plan->k);
    }
    hits->n = st == GX_OK && *done ? gx_cpu_best_finish(&s->best, hits->keys) : 0;
    for (uint32_t i = 0; i < b->n_runs; ++i) {
        const gx_posting_run *run = &b->runs[i];
        b->rare[b->terms[run->term].list->docids[run->begin] >> GX_SEGMENT_SHIFT] = GX_BLOCK_MAX_NO_RUN;
    }
    b->n_runs = 0;
    return st;
}

gx_status gx_cpu_block_max(gx_cpu_searcher *s, const gx_plan *plan, gx_hits *hits, bool *done, gx_error *err)
{
    return gx_cpu_block_max_within(s, plan, INFINITY, hits, done, err);
}
