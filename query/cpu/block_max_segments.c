/* block_max_segments.c: some segments after the other of the search of block_max.c, a batch at a time:
 *
 *   bounds of ranges by the heavy and the rare lists              a list at a time, in all segments
 *   segments go that cannot reach T with the light lists' bound of the whole segment
 *   bounds of ranges by the light lists, too
 *   of each segment that is left, ranges that reach T: scores     lists by falling greatest impact, a few
 *                                                                 at a time; ranges below T are dropped
 */
#include <string.h>

#include "engine/prefetch.h"
#include "query/cpu/block_max_state.h"
#include "query/mask.h"

#define LISTS_AT_A_TIME 4u
#define FETCH_REST 2u /* after so many times the lines of all lists are fetched */

/* ---- bounds ---- */

uint32_t gx_block_max_allowed(const gx_cpu_searcher *s, const gx_mask *mask, uint32_t segment)
{
    const size_t first = (size_t)segment * (GX_SEGMENT_DOCS / 32), n_words = gx_mask_n_words(s->ix->n_docs);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < GX_SEGMENT_DOCS / 32 && first + i < n_words; ++i) {
        for (uint32_t j = 0; j < 32 / GX_RANGE_DOCS; ++j)
            bits |= (uint32_t)((mask->words[first + i] >> j * GX_RANGE_DOCS & 255) != 0) << (i * 4 + j);
    }
    return bits;
}

/* Add a rare list's bounds of a segment's ranges. */
static void add_rare(const gx_cpu_block_max_state *b, const gx_posting_run *run, uint16_t *sums)
{
    const gx_range_term *t = &b->terms[run->term];
    for (uint32_t i = run->begin, end, most; i < run->end; i = end) {
        const uint32_t range = t->list->docids[i] >> GX_RANGE_SHIFT;
        most = 0;
        for (end = i; end < run->end && t->list->docids[end] >> GX_RANGE_SHIFT == range; ++end) {
            const uint8_t bound = gx_block_max_bound(t, end, t->list->tfs[end]);
            most = bound > most ? bound : most;
        }
        sums[range % GX_SEGMENT_RANGES] += (uint16_t)(most * t->weight >> 8);
    }
}

static inline void add_found(const gx_cpu_block_max_state *b, uint32_t term, uint16_t (*sums)[GX_SEGMENT_RANGES],
                             const uint32_t *segments, uint32_t n)
{
    if (b->terms[term].list->form == GX_RANGE_COMMON)
        b->kernels->add_common(sums, segments, n, &b->rows[term], b->weights[term]);
    else
        b->kernels->add_sparse(sums, segments, n, &b->rows[term], b->weights[term]);
}

/* Keep the segments of the batch whose ranges, or some of them, reach the threshold; with light, if the light
 * lists are not added yet. */
static void keep_segments(const gx_cpu_searcher *s, gx_cpu_block_max_state *b, bool light)
{
    const uint32_t least = gx_block_max_least_sum(b, gx_block_max_bar(s, b), b->n_terms);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_batch; ++i) {
        const uint32_t rest = light ? b->light[b->batch[i]] : 0;
        const uint32_t live = b->live[i] & b->kernels->reach(b->batch_sums[i], least > rest ? least - rest : 0);
        if (!live)
            continue;
        if (n < i)
            memcpy(b->batch_sums[n], b->batch_sums[i], sizeof b->batch_sums[i]);
        b->batch[n] = b->batch[i];
        b->live[n++] = live;
    }
    b->n_batch = n;
}

/* sums = the bounds of the ranges of the batch's i-th segment by dense lists [begin, end). The rows of the next one are
 * asked for: those of one segment lie in as many places as there are lists. */
static void bound_dense(const gx_cpu_block_max_state *b, uint16_t *sums, uint32_t i, uint32_t begin, uint32_t end)
{
    for (uint32_t l = begin; i + 1 < b->n_batch && l < end; ++l)
        gx_prefetch(b->of_ranges[l] + (size_t)b->batch[i + 1] * GX_SEGMENT_RANGES);
    b->kernels->sum_bounds(sums, b->of_ranges + begin, b->weights + begin, end - begin,
                           (size_t)b->batch[i] * GX_SEGMENT_RANGES, GX_SEGMENT_RANGES);
}

static void bound_heavy(const gx_cpu_searcher *s, gx_cpu_block_max_state *b)
{
    for (uint32_t i = 0; i < b->n_batch; ++i) {
        bound_dense(b, b->batch_sums[i], i, 0, b->heavy_dense);
        for (uint32_t run = b->rare[b->batch[i]]; run != GX_BLOCK_MAX_NO_RUN; run = b->runs[run].next)
            add_rare(b, &b->runs[run], b->batch_sums[i]);
    }
    for (uint32_t i = b->n_dense; i < b->heavy_found; ++i)
        add_found(b, i, b->batch_sums, b->batch, b->n_batch);
    keep_segments(s, b, true);
}

static void bound_light(const gx_cpu_searcher *s, gx_cpu_block_max_state *b)
{
    uint16_t added[GX_SEGMENT_RANGES];
    for (uint32_t i = 0; i < b->n_batch; ++i) {
        bound_dense(b, added, i, b->heavy_dense, b->n_dense);
        for (uint32_t j = 0; j < GX_SEGMENT_RANGES; ++j)
            b->batch_sums[i][j] = (uint16_t)(b->batch_sums[i][j] + added[j]);
    }
    for (uint32_t i = b->heavy_found; i < b->n_found; ++i)
        add_found(b, i, b->batch_sums, b->batch, b->n_batch);
    keep_segments(s, b, false);
}

/* ---- what scores are read from ---- */

/* Of dense lists [begin, end) which documents they have and where their tfs begin. */
static inline void prefetch_bits(const gx_cpu_block_max_state *b, uint32_t segment, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; ++i) {
        __builtin_prefetch(b->terms[i].list->bits + (size_t)segment * 4);
        __builtin_prefetch(b->terms[i].list->starts + segment);
    }
}

static inline void prefetch_tfs(const gx_cpu_block_max_state *b, uint32_t segment, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; ++i) {
        const gx_range_list *l = b->terms[i].list;
        __builtin_prefetch(l->bytes + l->starts[segment]);
        __builtin_prefetch(l->bytes + l->starts[segment] + 64);
    }
}

/* The lengths of the documents of ranges. */
static inline void prefetch_lens(const gx_cpu_searcher *s, uint32_t segment, uint32_t ranges)
{
    const uint32_t *lens = gx_cpu_params_lens(s->params) + ((size_t)segment << GX_SEGMENT_SHIFT);
    for (; ranges; ranges &= ranges - 1)
        gx_prefetch(lens + (size_t)__builtin_ctz(ranges) * GX_RANGE_DOCS);
}

/* The postings of lists [begin, end) that are found by segment. */
static inline void prefetch_postings(const gx_cpu_block_max_state *b, uint32_t segment, uint32_t live, uint32_t begin,
                                     uint32_t end)
{
    for (uint32_t i = begin; i < end; ++i) {
        const gx_range_list *l = b->terms[i].list;
        const gx_segment_start *start = gx_range_list_start(l, segment);
        if (start && start->ranges & live)
            __builtin_prefetch((const char *)l->postings + (size_t)start->start * (l->wide ? 4 : 2));
    }
}

/* ---- the scores of a segment's documents ---- */

static inline void K_of(float *restrict K, const uint32_t *restrict lens, uint32_t n, gx_scorer norm)
{
    for (uint32_t i = 0; i < n; ++i) {
        const float product = norm.c1 * (float)lens[i];
        K[i] = norm.c0 + product;
    }
}

/* K of the documents of n ranges. */
static void find_K(gx_cpu_searcher *s, gx_cpu_block_max_state *b, uint32_t segment, const uint8_t *ranges, uint32_t n)
{
    const uint32_t *lens = gx_cpu_params_lens(s->params) + ((size_t)segment << GX_SEGMENT_SHIFT);
    const uint32_t first = segment << GX_SEGMENT_SHIFT, left = first < s->ix->n_docs ? s->ix->n_docs - first : 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t begin = ranges[i] * GX_RANGE_DOCS;
        if (begin + GX_RANGE_DOCS <= left)
            K_of(b->K + begin, lens + begin, GX_RANGE_DOCS, s->norm);
        else if (begin < left)
            K_of(b->K + begin, lens + begin, left - begin, s->norm);
    }
}

static inline void add_posting(gx_cpu_block_max_state *b, uint32_t live, const gx_range_term *t, uint32_t place,
                               uint32_t tf)
{
    const uint32_t d = place % GX_SEGMENT_DOCS;
    if (live >> (d >> GX_RANGE_SHIFT) & 1)
        b->scores[d] += gx_bm25_impact(t->w, tf, b->K[d]);
}

/* Add the impacts of a list's postings from start on. */
static void score_found(gx_cpu_block_max_state *b, uint32_t term, const gx_segment_start *start, uint32_t live)
{
    const gx_range_term *t = &b->terms[term];
    const gx_range_list *l = t->list;
    const gx_range_scorer scorer = {t->w, b->linear, b->K};
    const uint32_t begin = start->start, end = start[1].start;
    const gx_narrow_posting *narrow = l->postings;
    const gx_wide_posting *wide = l->postings;
    if (t->impacts) {
        b->kernels->add_linear(b->scores, narrow + begin, end - begin, live, t->impacts);
    } else if (!l->wide) {
        b->kernels->add_narrow(b->scores, narrow + begin, end - begin, live, &scorer);
    } else {
        for (uint32_t i = begin; i < end; ++i)
            add_posting(b, live, t, wide[i], wide[i] >> GX_SEGMENT_SHIFT);
    }
}

/* Add the impacts of the rare lists, and their bounds. */
static void score_rare(gx_cpu_block_max_state *b, uint32_t segment, uint32_t live, uint16_t *added)
{
    for (uint32_t i = b->rare[segment]; i != GX_BLOCK_MAX_NO_RUN; i = b->runs[i].next) {
        const gx_posting_run *run = &b->runs[i];
        const gx_range_term *t = &b->terms[run->term];
        for (uint32_t x = run->begin; x < run->end; ++x)
            add_posting(b, live, t, t->list->docids[x], t->list->tfs[x]);
        add_rare(b, run, added);
    }
}

static void score_dense(gx_cpu_block_max_state *b, uint32_t term, size_t segment, const uint8_t *ranges, uint32_t n)
{
    const gx_range_list *l = b->terms[term].list;
    const gx_range_scorer scorer = {b->terms[term].w, b->linear, b->K};
    b->kernels->add_dense(b->scores, l->bits + segment * 4, l->bytes + l->starts[segment], ranges, n, &scorer);
}

/* The lists that are to be added to a segment's scores: the dense ones from the first number on, and those
 * that are found by segment from the second on. */
typedef struct next_lists {
    uint32_t dense, found;
} next_lists;

/* Add the impacts of the next few lists in n ranges, and their bounds. */
static void score_few(gx_cpu_block_max_state *b, next_lists *next, uint32_t segment, uint32_t live,
                      const uint8_t *ranges, uint32_t n, uint16_t *added)
{
    const uint8_t *rows[LISTS_AT_A_TIME];
    uint16_t weights[LISTS_AT_A_TIME];
    uint32_t n_rows = 0, n_found = 0, found[LISTS_AT_A_TIME];
    while (n_rows + n_found < LISTS_AT_A_TIME && (next->dense < b->n_dense || next->found < b->n_found)) {
        if (next->found == b->n_found ||
            (next->dense < b->n_dense && b->terms[next->dense].rank < b->terms[next->found].rank)) {
            score_dense(b, next->dense, segment, ranges, n);
            weights[n_rows] = b->weights[next->dense];
            rows[n_rows++] = b->of_ranges[next->dense++];
        } else {
            const uint32_t term = next->found++;
            const gx_segment_start *start = gx_range_list_start(b->terms[term].list, segment);
            if (!start || !(start->ranges & live))
                continue;
            score_found(b, term, start, live);
            found[n_found++] = term;
        }
    }
    b->kernels->sum_bounds(added, rows, weights, n_rows, (size_t)segment * GX_SEGMENT_RANGES, GX_SEGMENT_RANGES);
    for (uint32_t i = 0; i < n_found; ++i)
        add_found(b, found[i], (uint16_t(*)[GX_SEGMENT_RANGES])(void *)added, &segment, 1);
}

/* Add the impacts of all lists in n ranges, whose bounds are `rest`, and drop the ranges that cannot reach the
 * threshold any more, after a few lists each. Returns how many are left. */
static uint32_t score_ranges(gx_cpu_searcher *s, gx_cpu_block_max_state *b, uint32_t segment, uint16_t *rest,
                             uint32_t live, uint8_t *ranges, uint32_t n)
{
    const gx_range_limit limit = {s->best.threshold, b->unit, b->n_terms};
    next_lists next = {0, b->n_dense};
    uint16_t added[GX_SEGMENT_RANGES] = {0};
    if (b->rare[segment] != GX_BLOCK_MAX_NO_RUN) {
        score_rare(b, segment, live, added);
        for (uint32_t j = 0; j < GX_SEGMENT_RANGES; ++j)
            rest[j] = (uint16_t)(rest[j] - added[j]);
    }
    for (uint32_t times = 0; n && (next.dense < b->n_dense || next.found < b->n_found || !times); ++times) {
        if (times == FETCH_REST) { /* few segments need all lists */
            prefetch_bits(b, segment, b->first_dense, b->n_dense);
            prefetch_tfs(b, segment, b->first_dense, b->n_dense);
            prefetch_postings(b, segment, live, b->first_found, b->n_found);
        }
        score_few(b, &next, segment, live, ranges, n, added);
        for (uint32_t j = 0; j < GX_SEGMENT_RANGES; ++j)
            rest[j] = (uint16_t)(rest[j] - added[j]);
        live = b->kernels->keep(b->scores, ranges, &n, rest, &limit);
    }
    return n;
}

static void score_segment(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, uint32_t segment,
                          uint16_t *sums, uint32_t live)
{
    uint8_t ranges[GX_SEGMENT_RANGES];
    uint32_t n = 0;
    live &= b->kernels->reach(sums, gx_block_max_least_sum(b, gx_block_max_bar(s, b), b->n_terms));
    for (uint32_t left = live; left; left &= left - 1)
        ranges[n++] = (uint8_t)__builtin_ctz(left);
    if (n == 0)
        return;
    if (!b->linear)
        find_K(s, b, segment, ranges, n);
    n = score_ranges(s, b, segment, sums, live, ranges, n);
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t *scores = b->scores + ranges[i] * GX_RANGE_DOCS;
        const uint32_t first = (segment << GX_SEGMENT_SHIFT) + ranges[i] * GX_RANGE_DOCS;
        for (uint32_t left = b->kernels->best_of(scores, s->best.threshold); left; left &= left - 1) {
            const uint32_t d = (uint32_t)__builtin_ctz(left);
            if (!plan->mask || gx_mask_has(plan->mask, first + d))
                gx_cpu_best_add(&s->best, scores[d], first + d);
        }
        memset(scores, 0, GX_RANGE_DOCS * sizeof *scores);
    }
}

/* ---- a batch ---- */

void gx_block_max_batch(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, const uint32_t *segments,
                        uint32_t n)
{
    const uint32_t least = gx_block_max_least_sum(b, gx_block_max_bar(s, b), b->n_terms);
    b->n_batch = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t live = plan->mask ? gx_block_max_allowed(s, plan->mask, segments[i]) : UINT32_MAX;
        b->batch[b->n_batch] = segments[i];
        b->live[b->n_batch] = live;
        b->n_batch += live && b->sums[segments[i]] >= least;
    }
    bound_heavy(s, b);
    bound_light(s, b);
    for (uint32_t i = 0; i < b->n_batch + 2; ++i) { /* what a segment needs is fetched before */
        if (i < b->n_batch)
            prefetch_bits(b, b->batch[i], 0, b->first_dense);
        if (i >= 1 && i - 1 < b->n_batch) {
            if (!b->linear)
                prefetch_lens(s, b->batch[i - 1], b->live[i - 1]);
            prefetch_tfs(b, b->batch[i - 1], 0, b->first_dense);
            prefetch_postings(b, b->batch[i - 1], b->live[i - 1], b->n_dense, b->first_found);
        }
        if (i >= 2)
            score_segment(s, b, plan, b->batch[i - 2], b->batch_sums[i - 2], b->live[i - 2]);
    }
}
