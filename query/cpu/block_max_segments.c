/* block_max_segments.c: some segments after the other of the search of block_max.c, a batch at a time:
 *
 *   bounds of ranges by the heavy and the rare lists              a list at a time, in all segments
 *   segments go that cannot reach T with the light lists' bound of the whole segment
 *   bounds of ranges by the light lists, too
 *   ranges that reach T, a group at a time: scores                lists by falling greatest impact, a few
 *                                                                 at a time; ranges below T are dropped
 */
#include <string.h>

#include "engine/memory/prefetch.h"
#include "query/cpu/block_max_state.h"
#include "query/filter/mask.h"

#define LISTS_AT_A_TIME 4u

_Static_assert(GX_BLOCK_MAX_BATCH <= GX_GROUP_SEGMENTS, "a batch's segments fit a group");

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
    const uint32_t least = gx_block_max_least_sum(b, s->best.threshold, b->n_terms);
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

/* ---- the scores of a group of ranges ---- */

/* What a step reads of a dense list: which documents it has and where their tfs begin. */
static inline void prefetch_bits(const gx_cpu_block_max_state *b, uint32_t term)
{
    const gx_range_list *l = b->terms[term].list;
    for (uint32_t i = 0; i < b->group.n_segments; ++i) {
        gx_prefetch(l->bits + (size_t)b->group.segments[i] * 4);
        gx_prefetch(l->starts + b->group.segments[i]);
    }
}

static inline void prefetch_tfs(const gx_cpu_block_max_state *b, uint32_t term)
{
    const gx_range_list *l = b->terms[term].list;
    for (uint32_t i = 0; i < b->group.n_segments; ++i) {
        gx_prefetch(l->bytes + l->starts[b->group.segments[i]]);
        gx_prefetch(l->bytes + l->starts[b->group.segments[i]] + 64);
    }
}

static inline void K_of(float *restrict K, const uint32_t *restrict lens, uint32_t n, gx_scorer norm)
{
    for (uint32_t i = 0; i < n; ++i) {
        const float product = norm.c1 * (float)lens[i];
        K[i] = norm.c0 + product;
    }
}

/* K of the group's documents. */
static void find_K(gx_cpu_searcher *s, gx_range_group *g)
{
    const uint32_t *lens = gx_cpu_params_lens(s->params), n_docs = s->ix->n_docs;
    for (uint32_t i = 0; i < g->n; ++i) {
        const uint32_t begin = g->ids[i] * GX_RANGE_DOCS;
        if (begin < n_docs && n_docs - begin >= GX_RANGE_DOCS)
            K_of(g->K[i], lens + begin, GX_RANGE_DOCS, s->norm);
        else if (begin < n_docs)
            K_of(g->K[i], lens + begin, n_docs - begin, s->norm);
    }
}

/* Add a posting to a segment's scores, if its range is in the group. */
static inline void add_posting(gx_cpu_block_max_state *b, uint32_t segment, const gx_range_term *t, uint32_t docid,
                               uint32_t tf)
{
    gx_range_group *g = &b->group;
    const uint32_t range = docid % GX_SEGMENT_DOCS >> GX_RANGE_SHIFT, live = g->live[segment];
    if (live >> range & 1) {
        const uint32_t i = g->first[segment] + (uint32_t)__builtin_popcount(live & ((UINT32_C(1) << range) - 1));
        const float K = b->linear ? GX_LINEAR_K : g->K[i][docid % GX_RANGE_DOCS];
        g->scores[i][docid % GX_RANGE_DOCS] += gx_bm25_impact(t->w, tf, K);
    }
}

/* Add the impacts of the rare lists, and take their bounds out of `rest`. */
static void score_rare(gx_cpu_block_max_state *b)
{
    gx_range_group *g = &b->group;
    for (uint32_t i = 0; i < g->n_segments; ++i) {
        uint16_t added[GX_SEGMENT_RANGES] = {0};
        if (b->rare[g->segments[i]] == GX_BLOCK_MAX_NO_RUN)
            continue;
        for (uint32_t r = b->rare[g->segments[i]]; r != GX_BLOCK_MAX_NO_RUN; r = b->runs[r].next) {
            const gx_posting_run *run = &b->runs[r];
            const gx_range_term *t = &b->terms[run->term];
            for (uint32_t x = run->begin; x < run->end; ++x)
                add_posting(b, i, t, t->list->docids[x], t->list->tfs[x]);
            add_rare(b, run, added);
        }
        uint16_t *rest = g->rest + g->first[i];
        for (uint32_t left = g->live[i]; left; left &= left - 1, ++rest)
            *rest = (uint16_t)(*rest - added[__builtin_ctz(left)]);
    }
}

static void score_wide(gx_cpu_block_max_state *b, uint32_t term, const gx_range_hit *hits, uint32_t n)
{
    const gx_range_term *t = &b->terms[term];
    gx_range_group *g = &b->group;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_segment_start *start = hits[i].start;
        const uint32_t first = g->first[hits[i].place], live = g->live[hits[i].place];
        const gx_wide_posting *postings = t->list->postings;
        for (uint32_t x = start->start; x < start[1].start; ++x)
            add_posting(b, hits[i].place, t, postings[x], postings[x] >> GX_SEGMENT_SHIFT);
        for (uint32_t left = hits[i].ranges; left; left &= left - 1) {
            const uint32_t below = (left & -left) - 1;
            const uint32_t bound =
                t->bounds->ranges[start->start + (uint32_t)__builtin_popcount(start->ranges & below)];
            uint16_t *rest = &g->rest[first + (uint32_t)__builtin_popcount(live & below)];
            *rest = (uint16_t)(*rest - (bound * t->weight >> 8));
        }
    }
}

static void score_list(gx_cpu_block_max_state *b, uint32_t term, const gx_range_hit *hits, uint32_t n)
{
    const gx_range_term *t = &b->terms[term];
    const gx_range_list *l = t->list;
    if (term < b->n_dense) {
        const gx_dense_rows rows = {l->bits, l->starts, l->bytes, t->bounds->ranges};
        b->kernels->add_dense(&b->group, &rows, t->weight, t->w, b->linear);
    } else if (l->wide) {
        score_wide(b, term, hits, n);
    } else if (t->impacts) {
        b->kernels->add_linear(&b->group, &b->rows[term], hits, n, t->weight, t->impacts);
    } else {
        b->kernels->add_narrow(&b->group, &b->rows[term], hits, n, t->weight, t->w);
    }
}

/* The next lists by falling greatest impact, at most LISTS_AT_A_TIME. Returns how many. */
static uint32_t next_lists(const gx_cpu_block_max_state *b, uint32_t *dense, uint32_t *found, uint32_t *lists)
{
    uint32_t n = 0;
    for (; n < LISTS_AT_A_TIME && (*dense < b->n_dense || *found < b->n_found); ++n) {
        const bool is_found =
            *dense == b->n_dense || (*found < b->n_found && b->terms[*found].rank < b->terms[*dense].rank);
        lists[n] = is_found ? (*found)++ : (*dense)++;
    }
    return n;
}

/* Add the impacts of all lists, and drop the ranges that cannot reach the threshold any more after a few lists each. */
static void score_lists(gx_cpu_searcher *s, gx_cpu_block_max_state *b)
{
    const gx_range_limit limit = {s->best.threshold, b->unit, b->n_terms};
    gx_range_hit hits[LISTS_AT_A_TIME][GX_GROUP_SEGMENTS];
    uint32_t lists[2][LISTS_AT_A_TIME], n_hits[LISTS_AT_A_TIME], dense = 0, found = b->n_dense;
    uint32_t n = next_lists(b, &dense, &found, lists[0]), n_next;
    for (uint32_t i = 0; i < n; ++i) {
        if (lists[0][i] < b->n_dense)
            prefetch_bits(b, lists[0][i]);
    }
    for (uint32_t step = 0; b->group.n && n; ++step, n = n_next) {
        const uint32_t *now = lists[step % 2], *next = lists[(step + 1) % 2];
        n_next = next_lists(b, &dense, &found, lists[(step + 1) % 2]);
        for (uint32_t i = 0; i < n; ++i) {
            if (now[i] < b->n_dense)
                prefetch_tfs(b, now[i]);
            else
                n_hits[i] = b->kernels->find(&b->group, &b->rows[now[i]], hits[i]);
        }
        for (uint32_t i = 0; i < n_next; ++i) {
            if (next[i] < b->n_dense)
                prefetch_bits(b, next[i]);
        }
        for (uint32_t i = 0; i < n; ++i)
            score_list(b, now[i], hits[i], n_hits[i]);
        b->kernels->keep(&b->group, &limit, b->linear);
    }
}

/* Score the group's ranges, and empty it. The next one may have twice as many: the first ones make the threshold rise,
 * and more ranges at a time are read faster. */
static void score_group(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan)
{
    gx_range_group *g = &b->group;
    if (g->n == 0)
        return;
    memset(g->scores, 0, g->n * sizeof *g->scores);
    if (!b->linear)
        find_K(s, g);
    if (b->n_runs)
        score_rare(b);
    score_lists(s, b);
    for (uint32_t i = 0; i < g->n; ++i) {
        for (uint32_t left = b->kernels->best_of(g->scores[i], s->best.threshold); left; left &= left - 1) {
            const uint32_t d = (uint32_t)__builtin_ctz(left), docid = g->ids[i] * GX_RANGE_DOCS + d;
            if (!plan->mask || gx_mask_has(plan->mask, docid))
                gx_cpu_best_add(&s->best, g->scores[i][d], docid);
        }
    }
    g->n = g->n_segments = 0;
    b->max_ranges = 2 * b->max_ranges < GX_GROUP_RANGES ? 2 * b->max_ranges : GX_GROUP_RANGES;
}

/* The ranges of the batch's i-th segment that may reach the threshold go to the group. */
static void add_to_group(gx_cpu_searcher *s, gx_cpu_block_max_state *b, uint32_t i)
{
    const uint32_t least = gx_block_max_least_sum(b, s->best.threshold, b->n_terms);
    const uint32_t live = b->live[i] & b->kernels->reach(b->batch_sums[i], least);
    const uint32_t *lens = b->linear ? NULL : gx_cpu_params_lens(s->params);
    gx_range_group *g = &b->group;
    if (!live)
        return;
    g->segments[g->n_segments] = b->batch[i];
    g->live[g->n_segments] = live;
    g->first[g->n_segments++] = g->n;
    for (uint32_t left = live; left; left &= left - 1) {
        const uint32_t range = (uint32_t)__builtin_ctz(left), id = b->batch[i] * GX_SEGMENT_RANGES + range;
        if (lens)
            gx_prefetch(lens + (size_t)id * GX_RANGE_DOCS);
        g->rest[g->n] = b->batch_sums[i][range];
        g->ids[g->n++] = id;
    }
}

/* ---- a batch ---- */

/* Keep the segments whose ranges, or some of them, may reach the threshold, and bound these. */
static void bound_batch(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, const uint32_t *segments,
                        uint32_t n)
{
    const uint32_t least = gx_block_max_least_sum(b, s->best.threshold, b->n_terms);
    b->n_batch = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t live = plan->mask ? gx_block_max_allowed(s, plan->mask, segments[i]) : UINT32_MAX;
        b->batch[b->n_batch] = segments[i];
        b->live[b->n_batch] = live;
        b->n_batch += live && b->sums[segments[i]] >= least;
    }
    bound_heavy(s, b);
    bound_light(s, b);
}

uint32_t gx_block_max_count(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan,
                            const uint32_t *segments, uint32_t n)
{
    uint32_t n_ranges = 0;
    bound_batch(s, b, plan, segments, n);
    for (uint32_t i = 0; i < b->n_batch; ++i)
        n_ranges += (uint32_t)__builtin_popcount(b->live[i]);
    return n_ranges;
}

void gx_block_max_batch(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, const uint32_t *segments,
                        uint32_t n)
{
    bound_batch(s, b, plan, segments, n);
    for (uint32_t i = 0; i < b->n_batch; ++i) {
        if (b->group.n + GX_SEGMENT_RANGES > b->max_ranges)
            score_group(s, b, plan);
        add_to_group(s, b, i);
    }
    score_group(s, b, plan);
}
