/* block_max.c: exact top-k of an OR, a range of documents at a time.
 *
 *   bounds of all segments from the lists' bounds of segments       SIMD, a byte a list and segment
 *   segments by falling bound, until the bound is below T:          (T: the k-th best score so far)
 *     bounds of the segment's 32 ranges                             SIMD, a row of 32 bytes a dense list
 *     in the ranges that reach T: postings of lists that are not dense -> accumulators    exact integers
 *     in those that still reach T: dense lists, 4 at a time, ranges below T are dropped between
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

#include "engine/grow.h"
#include "engine/status.h"
#include "query/mask.h"

#define MOST_UNITS 60000u
#define ROUNDING_SLACK (1 + 1e-6) /* what three roundings of 2^-24 can be worth, and then some */
#define BUCKET_SHIFT 5u           /* bounds are counted without this many low bits */
#define N_BUCKETS (65536u >> BUCKET_SHIFT)
#define CANCEL_EVERY 64u /* segments */
#define TABLE_TFS 256u   /* impacts of a linear scorer are looked up for tfs below */
#define AHEAD 3u         /* segments whose bounds are on their way from memory */
#define LISTS_AT_A_TIME 4u
#define FIRST_PHASE 64u /* segments, about */
#define PHASE_GROWTH 8u
#define NO_RUN UINT32_MAX
#define NO_SEGMENT UINT32_MAX
#define N_PENDING 4u /* a power of two */

typedef struct range_term {
    const gx_range_list *list;
    const gx_range_bounds *bounds;
    uint32_t ub;
    uint16_t weight; /* of a bound, in 1/256 units */
    float w;
    const uint32_t *impacts; /* [TABLE_TFS] of a linear scorer's common lists that are not wide; else NULL */
} range_term;

/* A rare list's postings [begin, end) lie in one segment. */
typedef struct posting_run {
    const range_term *term;
    uint32_t begin, end;
    uint32_t next; /* of the same segment; NO_RUN: none */
} posting_run;

/* A segment some of whose ranges reach the threshold. It is scored some segments later, when what
 * it needs has come from memory. */
typedef struct pending_segment {
    uint32_t segment, live;            /* its ranges */
    uint16_t sums[GX_SEGMENT_RANGES];  /* bounds by all lists */
    uint16_t dense[GX_SEGMENT_RANGES]; /* and by the dense ones */
} pending_segment;

struct gx_cpu_block_max_state {
    const gx_range_kernels *kernels;
    uint32_t n_segments, n_terms, max_terms, unit;
    uint32_t ends[GX_N_RANGE_FORMS]; /* of the plan's lists in terms, by their forms */
    bool linear;
    range_term *terms; /* [max_terms] */
    uint32_t *impacts; /* [max_terms][TABLE_TFS] */
    /* [max_terms] as in terms: */
    const uint8_t **of_ranges;       /* dense and common lists' bounds of ranges */
    const uint8_t **of_segments;     /* dense and common lists' bounds of segments */
    const gx_segment_start **starts; /* common lists' */
    uint16_t *weights;
    uint16_t *sums;    /* [n_segments, up to a multiple of 64] bounds of segments in units */
    uint32_t *order;   /* [n_segments] segments by falling bound */
    uint32_t *rare;    /* [n_segments] the first of the segment's runs, NO_RUN: none */
    posting_run *runs; /* of rare lists */
    uint32_t n_runs, max_runs;
    uint32_t counts[N_BUCKETS + 1];
    pending_segment pending[N_PENDING]; /* those that wait, number i at i % N_PENDING */
    uint32_t first_pending, end_pending;
    _Alignas(64) uint32_t scores[GX_SEGMENT_DOCS]; /* accumulators, all 0 between segments */
    _Alignas(64) float K[GX_SEGMENT_DOCS];
};

void gx_cpu_block_max_free(gx_cpu_block_max_state *b)
{
    if (!b)
        return;
    free(b->terms);
    free(b->impacts);
    free(b->of_ranges);
    free(b->of_segments);
    free(b->starts);
    free(b->weights);
    free(b->sums);
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
    b->order = malloc(sums_of(b->n_segments) * sizeof *b->order);
    b->rare = malloc(sums_of(b->n_segments) * sizeof *b->rare);
    if (!b->sums || !b->order || !b->rare) {
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
    if (!gx_resize(&b->terms, n, sizeof *b->terms) || !gx_resize(&b->impacts, n, TABLE_TFS * sizeof *b->impacts) ||
        !gx_resize(&b->of_ranges, n, sizeof *b->of_ranges) || !gx_resize(&b->of_segments, n, sizeof *b->of_segments) ||
        !gx_resize(&b->starts, n, sizeof *b->starts) || !gx_resize(&b->weights, n, sizeof *b->weights))
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
 * nothing is known. */
static uint32_t initial_threshold(gx_cpu_searcher *s, const gx_plan *plan)
{
    uint32_t q = 0, threshold = plan->initial_threshold > 1 ? plan->initial_threshold : 1;
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

static const uint32_t *make_impacts(gx_cpu_block_max_state *b, uint32_t i, const range_term *t)
{
    uint32_t *impacts = b->impacts + (size_t)i * TABLE_TFS;
    if (!b->linear || t->list->form != GX_RANGE_COMMON || t->list->wide)
        return NULL;
    for (uint32_t tf = 1; tf <= t->list->max_tf; ++tf)
        impacts[tf] = gx_bm25_impact(t->w, tf, GX_LINEAR_K);
    return impacts;
}

static bool open_term(gx_cpu_searcher *s, range_term *r, const gx_plan *plan, const gx_plan_term *t)
{
    const gx_cpu_bounds *bounds = gx_cpu_params_bounds(s->lists, s->params, t->list, &s->scratch);
    *r = (range_term){.list = gx_ranges_list(s->ranges, t->list, &s->scratch), .w = t->w};
    if (!bounds || !r->list)
        return false;
    r->bounds = gx_ranges_bounds(s->ranges, r->list, s->params, plan->norm, t->list, &s->scratch);
    if (!r->bounds)
        return false;
    /* where bounds are tfs, `most` must be the part of the greatest tf */
    r->ub = greatest_impact(t->w, r->bounds->scale ? (float)r->list->max_tf / GX_LINEAR_K : bounds->most);
    return true;
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
        range_term *t = &b->terms[i];
        const uint64_t units = (uint64_t)t->bounds->levels * b->unit;
        t->weight = (uint16_t)((256 * (uint64_t)t->ub + units - 1) / units);
    }
}

static int by_falling_ub(const void *a, const void *b)
{
    const uint32_t x = ((const range_term *)a)->ub, y = ((const range_term *)b)->ub;
    return (x < y) - (x > y);
}

/* The plan's lists, by their forms, the dense ones by falling ub. False: one of them has no ranges. */
static bool open_terms(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan)
{
    uint32_t at[GX_N_RANGE_FORMS] = {0};
    range_term r;
    memset(b->ends, 0, sizeof b->ends);
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        if (!open_term(s, &r, plan, &plan->terms[i]))
            return false;
        ++b->ends[r.list->form];
    }
    for (uint32_t f = 1; f < GX_N_RANGE_FORMS; ++f) {
        at[f] = b->ends[f - 1];
        b->ends[f] += b->ends[f - 1];
    }
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        open_term(s, &r, plan, &plan->terms[i]);
        b->terms[at[r.list->form]++] = r;
    }
    qsort(b->terms, b->ends[GX_RANGE_DENSE], sizeof *b->terms, by_falling_ub);
    b->n_terms = plan->n_terms;
    choose_unit(b);
    for (uint32_t i = 0; i < b->n_terms; ++i) {
        range_term *t = &b->terms[i];
        t->impacts = make_impacts(b, i, t);
        b->of_ranges[i] = t->bounds->ranges;
        b->of_segments[i] = t->bounds->segments;
        b->starts[i] = t->list->segments;
        b->weights[i] = t->weight;
    }
    return true;
}

static inline uint8_t bound_of(const range_term *t, uint32_t i, uint32_t tf)
{
    return t->bounds->postings ? t->bounds->postings[i] : (uint8_t)(tf * t->bounds->scale);
}

/* The least sum of n lists' bounds that can belong to a score of T. */
static inline uint32_t least_sum(const gx_cpu_block_max_state *b, uint32_t T, uint32_t n)
{
    if (T <= b->n_terms)
        return 0;
    const uint32_t units = (T - b->n_terms + b->unit - 1) / b->unit;
    return units > n ? units - n : 0;
}

/* The runs of a rare list, and their bounds to the segments. */
static bool add_rare(gx_cpu_block_max_state *b, const range_term *t)
{
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
            const uint8_t bound = bound_of(t, end, t->list->tfs[end]);
            most = bound > most ? bound : most;
        }
        b->sums[segment] += (uint16_t)(most * t->weight >> 8);
        b->runs[b->n_runs] = (posting_run){t, i, end, b->rare[segment]};
        b->rare[segment] = b->n_runs++;
    }
    return true;
}

static bool bound_segments(gx_cpu_block_max_state *b)
{
    const uint32_t n_common = b->ends[GX_RANGE_COMMON], n_sparse = b->ends[GX_RANGE_SPARSE];
    const uint32_t n_tiles = b->n_segments / GX_TILE_SEGMENTS;
    b->kernels->sum_bounds(b->sums, b->of_segments, b->weights, n_common, 0, (b->n_segments + 63) & ~63u);
    for (uint32_t i = n_common; i < n_sparse; ++i) {
        const range_term *t = &b->terms[i];
        b->kernels->add_tiles(b->sums, t->bounds->tiles, t->list->present, t->weight, (n_tiles + 3) & ~3u);
    }
    for (uint32_t i = n_sparse; i < b->n_terms; ++i) {
        if (!add_rare(b, &b->terms[i]))
            return false;
    }
    return true;
}

/* The least bound of about the n segments that have the greatest ones. */
static uint32_t bound_of_rank(const gx_cpu_block_max_state *b, uint32_t n)
{
    uint32_t bucket = N_BUCKETS;
    for (uint32_t above = 0; bucket && above < n;)
        above += b->counts[--bucket];
    return bucket << BUCKET_SHIFT;
}

static void count_bounds(gx_cpu_block_max_state *b)
{
    memset(b->counts, 0, sizeof b->counts);
    for (uint32_t i = 0; i < b->n_segments; ++i)
        ++b->counts[b->sums[i] >> BUCKET_SHIFT];
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

/* ---- the bounds of a segment's ranges ---- */

/* What bound_ranges reads of a segment, but for the cache lines that are there since `last` was asked
 * for: a line has the rows of 2 segments, and 8 starts. */
static inline void prefetch_bounds(const gx_cpu_block_max_state *b, uint32_t segment, uint32_t last)
{
    const uint32_t n_dense = b->ends[GX_RANGE_DENSE];
    for (uint32_t i = 0; i < n_dense && segment / 2 != last / 2; ++i)
        __builtin_prefetch(b->of_ranges[i] + (size_t)segment * GX_SEGMENT_RANGES);
    for (uint32_t i = n_dense; i < b->ends[GX_RANGE_COMMON] && segment / 8 != last / 8; ++i)
        __builtin_prefetch(b->starts[i] + segment);
}

/* The common lists' bounds, once their starts are there. */
static inline void prefetch_common(const gx_cpu_block_max_state *b, uint32_t segment)
{
    for (uint32_t i = b->ends[GX_RANGE_DENSE]; i < b->ends[GX_RANGE_COMMON]; ++i)
        __builtin_prefetch(b->of_ranges[i] + b->starts[i][segment].start);
}

/* A sparse list's postings of a segment, which begin at *begin, among those of its tile. Returns
 * where they end. */
static inline uint32_t find_sparse(const gx_cpu_block_max_state *b, const gx_range_list *l, uint32_t segment,
                                   uint32_t *begin)
{
    const uint32_t tile = segment / GX_TILE_SEGMENTS, first = l->starts[tile];
    uint32_t end;
    b->kernels->find_sparse((const gx_tile_posting *)l->postings + first, l->starts[tile + 1] - first,
                            segment % GX_TILE_SEGMENTS, begin, &end);
    *begin += first;
    return first + end;
}

static inline bool is_present(const gx_range_list *l, uint32_t segment)
{
    return l->present[segment / GX_TILE_SEGMENTS] >> segment % GX_TILE_SEGMENTS & 1;
}

/* The bounds of the ranges from postings, which rise: added is what the list has added to the last one. */
typedef struct range_adder {
    uint16_t *sums;
    uint32_t range, added;
} range_adder;

static inline void add_bound(range_adder *a, const range_term *t, uint32_t place, uint8_t bound)
{
    const uint32_t range = place % GX_SEGMENT_DOCS >> GX_RANGE_SHIFT, units = (uint32_t)bound * t->weight >> 8;
    if (range != a->range)
        *a = (range_adder){a->sums, range, 0};
    if (units > a->added) {
        a->sums[range] += (uint16_t)(units - a->added);
        a->added = units;
    }
}

/* The bounds of the segment's ranges by the dense, the common and the rare lists. Returns how much
 * each sparse list could add to any of them. */
static uint32_t bound_ranges(gx_cpu_block_max_state *b, uint32_t segment, uint16_t *sums, uint16_t *dense)
{
    const uint32_t n_dense = b->ends[GX_RANGE_DENSE], n_common = b->ends[GX_RANGE_COMMON];
    uint32_t rest = 0;
    b->kernels->sum_bounds(sums, b->of_ranges, b->weights, n_dense, (size_t)segment * GX_SEGMENT_RANGES,
                           GX_SEGMENT_RANGES);
    memcpy(dense, sums, GX_SEGMENT_RANGES * sizeof *sums);
    b->kernels->add_common(sums, b->starts + n_dense, b->of_ranges + n_dense, b->weights + n_dense, n_common - n_dense,
                           segment);
    for (uint32_t i = b->rare[segment]; i != NO_RUN; i = b->runs[i].next) {
        const posting_run *run = &b->runs[i];
        range_adder a = {sums, NO_RUN, 0};
        for (uint32_t x = run->begin; x < run->end; ++x)
            add_bound(&a, run->term, run->term->list->docids[x], bound_of(run->term, x, run->term->list->tfs[x]));
    }
    for (uint32_t i = n_common; i < b->ends[GX_RANGE_SPARSE]; ++i) {
        const range_term *t = &b->terms[i];
        if (!is_present(t->list, segment))
            continue;
        __builtin_prefetch(t->list->starts + segment / GX_TILE_SEGMENTS);
        rest += (uint32_t)t->bounds->tiles[segment / GX_TILE_SEGMENTS] * t->weight >> 8;
    }
    return rest;
}

/* The same by the sparse lists, where they have postings. */
static void bound_sparse(gx_cpu_block_max_state *b, uint32_t segment, uint16_t *sums)
{
    for (uint32_t i = b->ends[GX_RANGE_COMMON]; i < b->ends[GX_RANGE_SPARSE]; ++i) {
        const range_term *t = &b->terms[i];
        if (!is_present(t->list, segment))
            continue;
        const gx_tile_posting *p = t->list->postings;
        range_adder a = {sums, NO_RUN, 0};
        uint32_t x;
        for (const uint32_t end = find_sparse(b, t->list, segment, &x); x < end; ++x)
            add_bound(&a, t, p[x], bound_of(t, x, p[x] >> GX_TILE_SHIFT));
    }
}

/* ---- the scores of its documents ---- */

/* Of a segment that will be scored: which documents dense lists have, and where their tfs begin; but for
 * the lines that are there since `last` was asked for. */
static inline void prefetch_starts(const gx_cpu_block_max_state *b, uint32_t segment, uint32_t last)
{
    const uint32_t n_dense = b->ends[GX_RANGE_DENSE];
    for (uint32_t i = 0; i < n_dense && segment / 2 != last / 2; ++i)
        __builtin_prefetch(b->terms[i].list->bits + (size_t)segment * 4);
    for (uint32_t i = 0; i < n_dense && segment / 16 != last / 16; ++i)
        __builtin_prefetch(b->terms[i].list->starts + segment);
}

/* The postings, once their starts are there. */
static inline void prefetch_postings(const gx_cpu_block_max_state *b, uint32_t segment, uint32_t live)
{
    uint32_t i = 0;
    for (; i < b->ends[GX_RANGE_DENSE]; ++i) {
        const gx_range_list *l = b->terms[i].list;
        __builtin_prefetch(l->bytes + l->starts[segment]);
        __builtin_prefetch(l->bytes + l->starts[segment] + 64);
    }
    for (; i < b->ends[GX_RANGE_COMMON]; ++i) {
        const gx_range_list *l = b->terms[i].list;
        if (l->segments[segment].ranges & live)
            __builtin_prefetch((const char *)l->postings + (size_t)l->segments[segment].start * (l->wide ? 4 : 2));
    }
}

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

static inline void add_posting(gx_cpu_block_max_state *b, uint32_t live, const range_term *t, uint32_t place,
                               uint32_t tf)
{
    const uint32_t d = place % GX_SEGMENT_DOCS;
    if (live >> (d >> GX_RANGE_SHIFT) & 1)
        b->scores[d] += gx_bm25_impact(t->w, tf, b->K[d]);
}

static void score_common(gx_cpu_block_max_state *b, const range_term *t, uint32_t segment, uint32_t live)
{
    const gx_range_list *l = t->list;
    const gx_range_scorer scorer = {t->w, b->linear, b->K};
    const uint32_t begin = l->segments[segment].start, end = l->segments[segment + 1].start;
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

/* Add the impacts of the lists that are not dense. */
static void score_others(gx_cpu_block_max_state *b, uint32_t segment, uint32_t live)
{
    uint32_t i = b->ends[GX_RANGE_DENSE], x;
    for (; i < b->ends[GX_RANGE_COMMON]; ++i) {
        if (b->starts[i][segment].ranges & live)
            score_common(b, &b->terms[i], segment, live);
    }
    for (; i < b->ends[GX_RANGE_SPARSE]; ++i) {
        const range_term *t = &b->terms[i];
        const gx_tile_posting *p = t->list->postings;
        if (!is_present(t->list, segment))
            continue;
        for (const uint32_t end = find_sparse(b, t->list, segment, &x); x < end; ++x)
            add_posting(b, live, t, p[x], p[x] >> GX_TILE_SHIFT);
    }
    for (i = b->rare[segment]; i != NO_RUN; i = b->runs[i].next) {
        const posting_run *run = &b->runs[i];
        for (x = run->begin; x < run->end; ++x)
            add_posting(b, live, run->term, run->term->list->docids[x], run->term->list->tfs[x]);
    }
}

/* Drop those of n ranges that cannot reach the threshold any more, if what is still to be added to the
 * scores of a range is bounded by `rest`. Returns how many are left. */
static uint32_t drop_ranges(gx_cpu_block_max_state *b, uint32_t T, const uint16_t *rest, uint8_t *ranges, uint32_t n)
{
    int32_t least[GX_SEGMENT_RANGES];
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t most = (rest[ranges[i]] + b->n_terms) * b->unit + b->n_terms; /* below 2^32: units are small */
        least[ranges[i]] = most < T ? (int32_t)(T - 1 - most) : -1;
    }
    return b->kernels->keep(b->scores, ranges, n, least);
}

/* Add the impacts of the dense lists in n ranges, a few lists at a time, and drop the ranges that
 * cannot reach the threshold any more. Returns how many are left. */
static uint32_t score_dense(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const pending_segment *p, uint8_t *ranges,
                            uint32_t n)
{
    const size_t segment = p->segment;
    uint16_t rest[GX_SEGMENT_RANGES], added[GX_SEGMENT_RANGES];
    gx_range_scorer scorer = {.linear = b->linear, .K = b->K};
    memcpy(rest, p->dense, sizeof rest);
    for (uint32_t i = 0, end; i < b->ends[GX_RANGE_DENSE] && n; i = end) {
        end = i + LISTS_AT_A_TIME < b->ends[GX_RANGE_DENSE] ? i + LISTS_AT_A_TIME : b->ends[GX_RANGE_DENSE];
        b->kernels->sum_bounds(added, b->of_ranges + i, b->weights + i, end - i, segment * GX_SEGMENT_RANGES,
                               GX_SEGMENT_RANGES);
        for (uint32_t j = i; j < end; ++j) {
            const gx_range_list *l = b->terms[j].list;
            scorer.w = b->terms[j].w;
            b->kernels->add_dense(b->scores, l->bits + segment * 4, l->bytes + l->starts[segment], ranges, n, &scorer);
        }
        for (uint32_t j = 0; j < GX_SEGMENT_RANGES; ++j)
            rest[j] = (uint16_t)(rest[j] - added[j]);
        n = drop_ranges(b, s->best.threshold, rest, ranges, n);
    }
    return n;
}

/* Score the ranges of `live`: by the lists that are not dense first, which have few postings there and
 * often the greatest weights, so that many ranges are dropped before the others. */
static void score_segment(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, const pending_segment *p,
                          uint32_t live)
{
    uint8_t ranges[GX_SEGMENT_RANGES];
    uint32_t n = 0;
    for (uint32_t left = live; left; left &= left - 1)
        ranges[n++] = (uint8_t)__builtin_ctz(left);
    if (!b->linear)
        find_K(s, b, p->segment, ranges, n);
    score_others(b, p->segment, live);
    n = drop_ranges(b, s->best.threshold, p->dense, ranges, n);
    n = score_dense(s, b, p, ranges, n);
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t *scores = b->scores + ranges[i] * GX_RANGE_DOCS;
        const uint32_t first = (p->segment << GX_SEGMENT_SHIFT) + ranges[i] * GX_RANGE_DOCS;
        for (uint32_t left = b->kernels->best_of(scores, s->best.threshold); left; left &= left - 1) {
            const uint32_t d = (uint32_t)__builtin_ctz(left);
            if (!plan->mask || gx_mask_has(plan->mask, first + d))
                gx_cpu_best_add(&s->best, scores[d], first + d);
        }
        memset(scores, 0, GX_RANGE_DOCS * sizeof *scores);
    }
}

/* Score the segment that has waited for the longest time. */
static void score_pending(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan)
{
    const pending_segment *p = &b->pending[b->first_pending++ % N_PENDING];
    const uint32_t live = p->live & b->kernels->reach(p->sums, least_sum(b, s->best.threshold, b->n_terms));
    if (live)
        score_segment(s, b, plan, p, live);
}

/* The ranges of the segment that the mask allows a document of. */
static uint32_t allowed_ranges(const gx_cpu_searcher *s, const gx_mask *mask, uint32_t segment)
{
    const size_t first = (size_t)segment * (GX_SEGMENT_DOCS / 32), n_words = gx_mask_n_words(s->ix->n_docs);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < GX_SEGMENT_DOCS / 32 && first + i < n_words; ++i) {
        for (uint32_t j = 0; j < 32 / GX_RANGE_DOCS; ++j)
            bits |= (uint32_t)((mask->words[first + i] >> j * GX_RANGE_DOCS & 255) != 0) << (i * 4 + j);
    }
    return bits;
}

/* ---- the whole ---- */

/* Find the ranges of a segment that reach the threshold; it waits if there are some. */
static void search_segment(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, uint32_t segment)
{
    pending_segment *p = &b->pending[b->end_pending % N_PENDING];
    const uint32_t allowed = plan->mask ? allowed_ranges(s, plan->mask, segment) : UINT32_MAX;
    const uint32_t least = least_sum(b, s->best.threshold, b->n_terms);
    if (b->sums[segment] < least || !allowed)
        return;
    const uint32_t rest = bound_ranges(b, segment, p->sums, p->dense);
    if (rest) {
        if (!(b->kernels->reach(p->sums, least > rest ? least - rest : 0) & allowed))
            return;
        bound_sparse(b, segment, p->sums);
    }
    p->segment = segment;
    p->live = b->kernels->reach(p->sums, least) & allowed;
    if (!p->live)
        return;
    if (b->end_pending == b->first_pending) {
        prefetch_starts(b, segment, NO_SEGMENT);
    } else {
        const pending_segment *last = &b->pending[(b->end_pending - 1) % N_PENDING];
        prefetch_starts(b, segment, last->segment);
        prefetch_postings(b, last->segment, last->live);
    }
    if (++b->end_pending - b->first_pending == N_PENDING)
        score_pending(s, b, plan);
}

/* The segments with bounds of at least `least` and below `most`. */
static gx_status search_phase(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, uint32_t least,
                              uint32_t most, gx_error *err)
{
    const uint32_t n = list_segments(b, least, most);
    b->first_pending = b->end_pending = 0;
    for (uint32_t i = 0; i < AHEAD && i < n; ++i)
        prefetch_bounds(b, b->order[i], i ? b->order[i - 1] : NO_SEGMENT);
    for (uint32_t i = 0; i < n; ++i) {
        if (plan->cancel && i % CANCEL_EVERY == 0 && plan->cancel(plan->user))
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
        if (i + AHEAD < n)
            prefetch_bounds(b, b->order[i + AHEAD], b->order[i + AHEAD - 1]);
        if (i + 1 < n)
            prefetch_common(b, b->order[i + 1]);
        search_segment(s, b, plan, b->order[i]);
    }
    while (b->first_pending != b->end_pending)
        score_pending(s, b, plan);
    return GX_OK;
}

/* The segments with the greatest bounds make the threshold rise; the others, some times as many in each
 * phase, are read by docid, as they lie in memory. */
static gx_status search_segments(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, gx_error *err)
{
    uint32_t most = UINT32_MAX;
    gx_status st = GX_OK;
    count_bounds(b);
    for (uint64_t n = FIRST_PHASE; most && st == GX_OK; n *= PHASE_GROWTH) {
        const uint32_t known = least_sum(b, s->best.threshold, b->n_terms);
        const uint32_t rank = n < b->n_segments ? bound_of_rank(b, (uint32_t)n) : 0;
        const uint32_t least = rank > known ? rank : known;
        if (least < most)
            st = search_phase(s, b, plan, least, most, err);
        if (rank <= known)
            break;
        most = least < most ? least : most;
    }
    return st;
}

gx_status gx_cpu_block_max(gx_cpu_searcher *s, const gx_plan *plan, gx_hits *hits, bool *done, gx_error *err)
{
    *done = false;
    if (!s->params || memcmp(&s->norm, &plan->norm, sizeof s->norm) != 0) {
        s->params = gx_cpu_lists_params(s->lists, plan->norm);
        s->norm = plan->norm;
    }
    if (!s->block_max && !(s->block_max = open_state(s)))
        return gx_fail(err, GX_ENOMEM, "no memory for the ranges of %u documents", s->ix->n_docs);
    gx_cpu_block_max_state *b = s->block_max;
    b->linear = gx_scorer_is_linear(plan->norm);
    if (!s->params || !reserve_terms(b, plan->n_terms))
        return gx_fail(err, GX_ENOMEM, "no memory to search %u lists", plan->n_terms);
    if (!open_terms(s, b, plan))
        return GX_OK;
    *done = true;
    uint64_t most_hits = 0; /* memory goes by what can be found rather than by what is asked for */
    for (uint32_t i = 0; i < plan->n_terms; ++i)
        most_hits += plan->terms[i].df;
    const uint32_t k = plan->k < most_hits ? plan->k : (uint32_t)most_hits;
    for (uint32_t d = 0; b->linear && d < GX_SEGMENT_DOCS; ++d)
        b->K[d] = GX_LINEAR_K;
    gx_status st = GX_ENOMEM;
    if (!bound_segments(b) || !gx_cpu_best_begin(&s->best, k, initial_threshold(s, plan)))
        gx_fail(err, st, "no memory to search %u lists for %u results", plan->n_terms, plan->k);
    else
        st = search_segments(s, b, plan, err);
    hits->n = st == GX_OK ? gx_cpu_best_finish(&s->best, hits->keys) : 0;
    for (uint32_t i = 0; i < b->n_runs; ++i) {
        const posting_run *run = &b->runs[i];
        b->rare[run->term->list->docids[run->begin] >> GX_SEGMENT_SHIFT] = NO_RUN;
    }
    b->n_runs = 0;
    return st;
}
