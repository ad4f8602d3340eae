/* block_max.c: exact top-k of an OR, a range of documents at a time.
 *
 *   bounds of all tiles from the lists' bounds of tiles             SIMD, a byte a list and tile
 *   tiles by falling bound, until the bound is below T:             (T: the k-th best score so far)
 *     bounds of the tile's 64 ranges                                SIMD, a cache line a dense list
 *     the segments of the ranges that reach T, by falling bound:
 *       each list's postings of the segment -> accumulators         exact integers
 *       documents of the ranges that reach T -> the k best
 *
 * Mallia, Suel and Tonellotto, "Faster Learned Sparse Retrieval with Block-Max Pruning" (SIGIR
 * 2024), section 3, visit ranges by falling bound; Carlson, Xie, He and Yang, "Dynamic Superblock
 * Pruning for Fast Learned Sparse Retrieval" (SIGIR 2025), section 3, go from groups of ranges to
 * ranges and finish a group before the next. Here bounds are not less than any score, and scores are
 * the sums of bm25.h, so that answers are those of the exhaustive search.
 *
 * Why no answer is lost: let list i have the greatest impact ub (search.c), and a range the bound b.
 * No posting of the range has an impact above ub b / 255 + 1. A unit is U = ceil(sum of ub / 60,000),
 * so that sums of units stay below 2^16. The list's weight is ceil(256 ub / (255 U)), and b times
 * that weight, / 256 and rounded down, is less than a unit below ub b / (255 U). So the sum of n
 * lists is less than n units too low: a range is left out if (sum + n) U + n < T.
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
#define BUCKET_SHIFT 5u           /* tiles are sorted by bounds without this many low bits */
#define N_BUCKETS (65536u >> BUCKET_SHIFT)
#define CANCEL_EVERY 64u /* tiles */
#define TABLE_TFS 256u   /* impacts of a linear scorer are looked up for tfs below */
#define NO_RUN UINT32_MAX
#define TILE_SEGMENTS (GX_TILE_RANGES / GX_SEGMENT_RANGES)

typedef struct range_term {
    const gx_range_list *list;
    const gx_range_bounds *bounds;
    uint32_t weight; /* of a bound, in 1/256 units */
    float w;
    const uint32_t *impacts; /* [TABLE_TFS] of a linear scorer's narrow lists; else NULL */
} range_term;

/* A list's postings [begin, end) lie in one tile. */
typedef struct posting_run {
    uint32_t term, begin, end;
    uint32_t next; /* of the same tile, of a rare list; NO_RUN: none */
} posting_run;

struct gx_cpu_block_max_state {
    const gx_range_kernels *kernels;
    uint32_t n_tiles, n_dense, n_terms; /* of the plan: dense lists come first */
    uint32_t max_terms, unit;
    bool linear;
    range_term *terms; /* [max_terms] */
    uint32_t *impacts; /* [max_terms][TABLE_TFS] */
    uint16_t *sums;    /* [n_tiles, up to a multiple of 64] bounds of tiles in units */
    uint32_t *order;   /* [n_tiles] tiles by falling bound */
    uint32_t *rare;    /* [n_tiles] the first of the tile's runs, NO_RUN: none */
    posting_run *runs; /* of rare lists */
    uint32_t n_runs, max_runs;
    uint32_t counts[N_BUCKETS + 1];
    /* the tile under way */
    uint32_t n_present, n_sparse;
    const range_term **present; /* [max_terms] dense lists */
    const uint8_t **rows;       /* [max_terms] their bounds */
    uint32_t *weights;          /* [max_terms] */
    posting_run *sparse;        /* [max_terms] */
    _Alignas(64) uint16_t range_sums[GX_TILE_RANGES];
    _Alignas(64) uint32_t scores[GX_SEGMENT_DOCS]; /* accumulators, all 0 between segments */
    _Alignas(64) float K[GX_SEGMENT_DOCS];
};

void gx_cpu_block_max_free(gx_cpu_block_max_state *b)
{
    if (!b)
        return;
    free(b->terms);
    free(b->impacts);
    free(b->sums);
    free(b->order);
    free(b->rare);
    free(b->runs);
    free(b->present);
    free(b->rows);
    free(b->weights);
    free(b->sparse);
    free(b);
}

static size_t sums_of(uint32_t n_tiles)
{
    return ((size_t)n_tiles + 127) & ~(size_t)63;
}

static gx_cpu_block_max_state *open_state(const gx_cpu_searcher *s)
{
    gx_cpu_block_max_state *b = aligned_alloc(64, (sizeof *b + 63) / 64 * 64);
    if (!b)
        return NULL;
    memset(b, 0, sizeof *b);
    b->kernels = gx_range_kernels_like(s->kernels);
    b->n_tiles = gx_ranges_n_tiles(s->ix);
    b->sums = calloc(sums_of(b->n_tiles), sizeof *b->sums);
    b->order = malloc(sums_of(b->n_tiles) * sizeof *b->order);
    b->rare = malloc(sums_of(b->n_tiles) * sizeof *b->rare);
    if (!b->sums || !b->order || !b->rare) {
        gx_cpu_block_max_free(b);
        return NULL;
    }
    memset(b->rare, 0xff, sums_of(b->n_tiles) * sizeof *b->rare);
    return b;
}

static bool reserve_terms(gx_cpu_block_max_state *b, uint32_t n)
{
    if (n <= b->max_terms)
        return true;
    if (!gx_resize(&b->terms, n, sizeof *b->terms) || !gx_resize(&b->impacts, n, TABLE_TFS * sizeof *b->impacts) ||
        !gx_resize(&b->present, n, sizeof *b->present) || !gx_resize(&b->rows, n, sizeof *b->rows) ||
        !gx_resize(&b->weights, n, sizeof *b->weights) || !gx_resize(&b->sparse, n, sizeof *b->sparse))
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
    if (!b->linear || t->list->form != GX_RANGE_DENSE || t->list->wide)
        return NULL;
    for (uint32_t tf = 1; tf <= t->list->max_tf; ++tf)
        impacts[tf] = gx_bm25_impact(t->w, tf, GX_LINEAR_K);
    return impacts;
}

/* The plan's lists, the dense ones first. *done: all have ranges. */
static bool open_terms(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan)
{
    uint64_t total = 0;
    uint32_t dense = 0, other = plan->n_terms;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const gx_plan_term *t = &plan->terms[i];
        const gx_cpu_bounds *bounds = gx_cpu_params_bounds(s->lists, s->params, t->list, &s->scratch);
        range_term r = {.list = gx_ranges_list(s->ranges, t->list, &s->scratch), .w = t->w};
        if (!bounds || !r.list)
            return false;
        r.bounds = gx_ranges_bounds(s->ranges, r.list, s->params, plan->norm, t->list, &s->scratch);
        if (!r.bounds)
            return false;
        r.weight = greatest_impact(t->w, bounds->most);
        total += r.weight;
        b->terms[r.list->form == GX_RANGE_DENSE ? dense++ : --other] = r;
    }
    b->n_dense = dense;
    b->n_terms = plan->n_terms;
    b->unit = (uint32_t)((total + MOST_UNITS - 1) / MOST_UNITS);
    for (uint32_t i = 0; i < b->n_terms; ++i) {
        range_term *t = &b->terms[i];
        const uint64_t units = 255 * (uint64_t)b->unit;
        t->weight = (uint32_t)((256 * (uint64_t)t->weight + units - 1) / units);
        t->impacts = make_impacts(b, i, t);
    }
    return true;
}

static inline uint32_t weigh(const range_term *t, uint8_t bound)
{
    return bound * t->weight >> 8;
}

/* The least sum of n lists' bounds that can belong to a score of T. */
static inline uint32_t least_sum(const gx_cpu_block_max_state *b, uint32_t T, uint32_t n)
{
    if (T <= b->n_terms)
        return 0;
    const uint32_t units = (T - b->n_terms + b->unit - 1) / b->unit;
    return units > n ? units - n : 0;
}

/* The runs of a rare list, and their bounds to the tiles. */
static bool add_rare(gx_cpu_block_max_state *b, uint32_t term)
{
    const range_term *t = &b->terms[term];
    const uint32_t *docids = t->list->docids, df = t->list->df;
    if (b->n_runs + df > b->max_runs) {
        const uint32_t max = 2 * (b->n_runs + df);
        if (!gx_resize(&b->runs, max, sizeof *b->runs))
            return false;
        b->max_runs = max;
    }
    for (uint32_t i = 0, end; i < df; i = end) {
        const uint32_t tile = docids[i] >> GX_TILE_SHIFT;
        uint8_t most = 0;
        for (end = i; end < df && docids[end] >> GX_TILE_SHIFT == tile; ++end)
            most = t->bounds->postings[end] > most ? t->bounds->postings[end] : most;
        b->sums[tile] += weigh(t, most);
        b->runs[b->n_runs] = (posting_run){term, i, end, b->rare[tile]};
        b->rare[tile] = b->n_runs++;
    }
    return true;
}

static bool bound_tiles(gx_cpu_block_max_state *b)
{
    const uint32_t n = (b->n_tiles + 63) & ~63u;
    memset(b->sums, 0, n * sizeof *b->sums);
    for (uint32_t i = 0; i < b->n_terms; ++i) {
        const range_term *t = &b->terms[i];
        if (t->list->form != GX_RANGE_RARE)
            b->kernels->add_bounds(b->sums, t->bounds->tiles, n, t->weight);
        else if (!add_rare(b, i))
            return false;
    }
    return true;
}

/* The tiles whose bound is at least `least`, by falling bound; returns their number. */
static uint32_t sort_tiles(gx_cpu_block_max_state *b, uint32_t least)
{
    uint32_t n = 0;
    memset(b->counts, 0, sizeof b->counts);
    for (uint32_t i = 0; i < b->n_tiles; ++i)
        b->counts[N_BUCKETS - 1 - (b->sums[i] >> BUCKET_SHIFT)] += b->sums[i] >= least;
    for (uint32_t i = 0; i < N_BUCKETS; ++i) {
        const uint32_t count = b->counts[i];
        b->counts[i] = n;
        n += count;
    }
    for (uint32_t i = 0; i < b->n_tiles; ++i) {
        if (b->sums[i] >= least)
            b->order[b->counts[N_BUCKETS - 1 - (b->sums[i] >> BUCKET_SHIFT)]++] = i;
    }
    return n;
}

/* ---- a tile ---- */

static void prefetch_tile(const gx_cpu_block_max_state *b, uint32_t tile)
{
    for (uint32_t i = 0; i < b->n_terms; ++i) {
        const range_term *t = &b->terms[i];
        if (t->list->form == GX_RANGE_RARE || !t->bounds->tiles[tile])
            continue;
        if (i < b->n_dense) {
            __builtin_prefetch(t->bounds->ranges + (size_t)tile * GX_TILE_RANGES);
            __builtin_prefetch(t->list->starts + (size_t)tile * TILE_SEGMENTS);
        } else {
            __builtin_prefetch(t->list->starts + tile);
        }
    }
}

/* Add what a run's postings can be worth to their ranges: the greatest of those in one range. */
static void bound_run(gx_cpu_block_max_state *b, const posting_run *run)
{
    const range_term *t = &b->terms[run->term];
    uint32_t range = UINT32_MAX, added = 0;
    for (uint32_t i = run->begin; i < run->end; ++i) {
        const uint32_t at = t->list->docids[i] >> GX_RANGE_SHIFT & (GX_TILE_RANGES - 1);
        const uint32_t units = weigh(t, t->bounds->postings[i]);
        if (at != range)
            added = 0;
        range = at;
        if (units > added) {
            b->range_sums[at] += (uint16_t)(units - added);
            added = units;
        }
    }
}

/* The bounds of the tile's ranges. */
static void bound_ranges(gx_cpu_block_max_state *b, uint32_t tile)
{
    b->n_present = b->n_sparse = 0;
    for (uint32_t i = 0; i < b->n_dense; ++i) {
        const range_term *t = &b->terms[i];
        if (!t->bounds->tiles[tile])
            continue;
        b->present[b->n_present] = t;
        b->rows[b->n_present] = t->bounds->ranges + (size_t)tile * GX_TILE_RANGES;
        b->weights[b->n_present++] = t->weight;
    }
    for (uint32_t i = b->n_dense; i < b->n_terms; ++i) {
        const range_term *t = &b->terms[i];
        if (t->list->form != GX_RANGE_SPARSE || !t->bounds->tiles[tile])
            continue;
        const uint32_t begin = t->list->starts[tile];
        __builtin_prefetch(t->list->docids + begin);
        __builtin_prefetch(t->bounds->postings + begin);
        b->sparse[b->n_sparse++] = (posting_run){i, begin, t->list->starts[tile + 1], NO_RUN};
    }
    for (uint32_t i = b->rare[tile]; i != NO_RUN; i = b->runs[i].next)
        b->sparse[b->n_sparse++] = b->runs[i];
    memset(b->range_sums, 0, sizeof b->range_sums);
    b->kernels->add_tile(b->range_sums, b->rows, b->weights, b->n_present);
    for (uint32_t i = 0; i < b->n_sparse; ++i)
        bound_run(b, &b->sparse[i]);
}

/* ---- a segment ---- */

/* Where the lists' postings of a segment begin, all at once: one miss of the cache instead of one
 * after the other. */
static void prefetch_segment(const gx_cpu_block_max_state *b, uint32_t segment)
{
    for (uint32_t i = 0; i < b->n_present; ++i) {
        const gx_range_list *l = b->present[i]->list;
        const char *at = (const char *)l->postings + (size_t)l->starts[segment] * (l->wide ? 4 : 2);
        __builtin_prefetch(at);
        __builtin_prefetch(at + 64);
    }
}

static void add_dense(gx_cpu_block_max_state *b, const range_term *t, uint32_t segment)
{
    const uint32_t begin = t->list->starts[segment], end = t->list->starts[segment + 1];
    if (t->list->wide) {
        const gx_wide_posting *p = t->list->postings;
        for (uint32_t i = begin; i < end; ++i) {
            const uint32_t d = p[i] & (GX_SEGMENT_DOCS - 1);
            b->scores[d] += gx_bm25_impact(t->w, p[i] >> GX_SEGMENT_SHIFT, b->K[d]);
        }
        return;
    }
    const gx_narrow_posting *p = t->list->postings;
    if (!t->impacts) {
        b->kernels->add_narrow(b->scores, p + begin, end - begin, b->K, t->w);
        return;
    }
    for (uint32_t i = begin; i < end; ++i)
        b->scores[p[i] & (GX_SEGMENT_DOCS - 1)] += t->impacts[p[i] >> GX_SEGMENT_SHIFT];
}

static void add_run(gx_cpu_block_max_state *b, const posting_run *run, uint32_t segment)
{
    const range_term *t = &b->terms[run->term];
    for (uint32_t i = run->begin; i < run->end; ++i) {
        const uint32_t docid = t->list->docids[i], d = docid & (GX_SEGMENT_DOCS - 1);
        if (docid >> GX_SEGMENT_SHIFT == segment)
            b->scores[d] += gx_bm25_impact(t->w, t->list->tfs[i], b->K[d]);
    }
}

/* K of the segment's documents. */
static void find_K(gx_cpu_searcher *s, gx_cpu_block_max_state *b, uint32_t segment)
{
    const uint32_t *lens = gx_cpu_params_lens(s->params), first = segment << GX_SEGMENT_SHIFT;
    const uint32_t left = s->ix->n_docs - first, n = left < GX_SEGMENT_DOCS ? left : GX_SEGMENT_DOCS;
    for (uint32_t d = 0; d < n; ++d) {
        const float product = s->norm.c1 * (float)lens[first + d];
        b->K[d] = s->norm.c0 + product;
    }
}

static void score_segment(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, uint32_t segment,
                          uint32_t ranges)
{
    prefetch_segment(b, segment);
    if (!b->linear)
        find_K(s, b, segment);
    for (uint32_t i = 0; i < b->n_present; ++i)
        add_dense(b, b->present[i], segment);
    for (uint32_t i = 0; i < b->n_sparse; ++i)
        add_run(b, &b->sparse[i], segment);
    for (uint32_t left = ranges; left; left &= left - 1) {
        const uint32_t first = (uint32_t)__builtin_ctz(left) * GX_RANGE_DOCS;
        if (b->kernels->greatest(b->scores + first) < s->best.threshold)
            continue;
        for (uint32_t d = first; d < first + GX_RANGE_DOCS; ++d) {
            const uint32_t docid = (segment << GX_SEGMENT_SHIFT) + d;
            if (b->scores[d] >= s->best.threshold && (!plan->mask || gx_mask_has(plan->mask, docid)))
                gx_cpu_best_add(&s->best, b->scores[d], docid);
        }
    }
    memset(b->scores, 0, sizeof b->scores);
}

/* The ranges of the tile that have documents: all, but for those of the last tile. */
static uint64_t ranges_with_documents(const gx_cpu_searcher *s, uint32_t tile)
{
    const uint64_t n = ((uint64_t)s->ix->n_docs + GX_RANGE_DOCS - 1) / GX_RANGE_DOCS - (uint64_t)tile * GX_TILE_RANGES;
    return n < GX_TILE_RANGES ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/* The ranges of the tile that the mask allows a document of. */
static uint64_t allowed_ranges(const gx_cpu_searcher *s, const gx_mask *mask, uint32_t tile)
{
    const uint32_t first = tile * GX_TILE_RANGES;
    const size_t n_words = gx_mask_n_words(s->ix->n_docs);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < GX_TILE_RANGES && first + i < n_words; ++i)
        bits |= (uint64_t)(mask->words[first + i] != 0) << i;
    return bits;
}

/* The ranges of a tile that reach the threshold, a segment at a time by falling bound. */
static void search_tile(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, uint32_t tile)
{
    const uint32_t n_lists = b->n_present + b->n_sparse;
    const uint64_t allowed = plan->mask ? allowed_ranges(s, plan->mask, tile) : ranges_with_documents(s, tile);
    uint64_t live = b->kernels->reach(b->range_sums, least_sum(b, s->best.threshold, n_lists)) & allowed;
    while (live) {
        uint32_t most = 0, segment = 0;
        for (uint64_t left = live; left; left &= left - 1) {
            const uint32_t i = (uint32_t)__builtin_ctzll(left);
            if (b->range_sums[i] >= most) {
                most = b->range_sums[i];
                segment = i / GX_SEGMENT_RANGES;
            }
        }
        const uint64_t of_segment = (UINT64_C(1) << GX_SEGMENT_RANGES) - 1;
        const uint32_t ranges = (uint32_t)(live >> segment * GX_SEGMENT_RANGES & of_segment);
        const uint32_t before = s->best.threshold;
        score_segment(s, b, plan, tile * TILE_SEGMENTS + segment, ranges);
        live &= ~(of_segment << segment * GX_SEGMENT_RANGES);
        if (s->best.threshold != before)
            live &= b->kernels->reach(b->range_sums, least_sum(b, s->best.threshold, n_lists));
    }
}

/* ---- the whole ---- */

static gx_status search_tiles(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, gx_error *err)
{
    const uint32_t n = sort_tiles(b, least_sum(b, s->best.threshold, b->n_terms));
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t tile = b->order[i], least = least_sum(b, s->best.threshold, b->n_terms);
        if (plan->cancel && i % CANCEL_EVERY == 0 && plan->cancel(plan->user))
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled");
        if (b->sums[tile] >> BUCKET_SHIFT < least >> BUCKET_SHIFT)
            break;
        if (b->sums[tile] < least)
            continue;
        if (i + 1 < n)
            prefetch_tile(b, b->order[i + 1]);
        bound_ranges(b, tile);
        search_tile(s, b, plan, tile);
    }
    return GX_OK;
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
    if (!bound_tiles(b) || !gx_cpu_best_begin(&s->best, k, initial_threshold(s, plan)))
        gx_fail(err, st, "no memory to search %u lists for %u results", plan->n_terms, plan->k);
    else
        st = search_tiles(s, b, plan, err);
    hits->n = st == GX_OK ? gx_cpu_best_finish(&s->best, hits->keys) : 0;
    for (uint32_t i = 0; i < b->n_runs; ++i) {
        const posting_run *run = &b->runs[i];
        b->rare[b->terms[run->term].list->docids[run->begin] >> GX_TILE_SHIFT] = NO_RUN;
    }
    b->n_runs = 0;
    return st;
}
