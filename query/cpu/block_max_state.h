/* block_max_state.h: what a search over ranges of documents keeps; of block_max.c, which chooses the
 * segments, and block_max_segments.c, which searches them.
 *
 * A query's lists are of three groups: dense ones, those that are found by segment (common and sparse
 * ones), and rare ones, whose postings are told to their segments before the search. Of the first two
 * groups those of the greatest impacts are heavy: many segments are left out by these lists' bounds of
 * ranges and the other, light, lists' bound of the whole segment.
 */
#ifndef GX_QUERY_CPU_BLOCK_MAX_STATE_H
#define GX_QUERY_CPU_BLOCK_MAX_STATE_H

#include "query/cpu/ranges.h"
#include "query/cpu/search.h"

#define GX_BLOCK_MAX_BUCKET_SHIFT 5u /* bounds of segments are counted without this many low bits */
#define GX_BLOCK_MAX_BUCKETS (65536u >> GX_BLOCK_MAX_BUCKET_SHIFT)
#define GX_BLOCK_MAX_BATCH 64u /* segments that are searched together, at most */
#define GX_BLOCK_MAX_TFS 256u  /* impacts of a linear scorer are looked up for tfs below */
#define GX_BLOCK_MAX_NO_RUN UINT32_MAX

typedef struct gx_range_term {
    const gx_range_list *list;
    const gx_range_bounds *bounds;
    uint32_t ub;
    uint32_t rank;   /* of a list that is not rare: how many of them go before it */
    uint16_t weight; /* of a bound, in 1/256 units */
    float w;
    const uint32_t *impacts; /* [GX_BLOCK_MAX_TFS] of a linear scorer's narrow lists; else NULL */
} gx_range_term;

/* A rare list's postings [begin, end) lie in one segment. */
typedef struct gx_posting_run {
    uint32_t term, begin, end;
    uint32_t next; /* of the same segment; GX_BLOCK_MAX_NO_RUN: none */
} gx_posting_run;

struct gx_cpu_block_max_state {
    const gx_range_kernels *kernels;
    uint32_t n_segments, n_terms, max_terms, unit;
    uint32_t n_dense, n_found;         /* terms[0, n_dense) are dense, [n_dense, n_found) are found by segment */
    uint32_t heavy_dense, heavy_found; /* terms[0, heavy_dense) and [n_dense, heavy_found) are heavy */
    bool linear;
    double limit;         /* ns that the search may take; INFINITY: no limit */
    uint32_t least;       /* units: segments with smaller bounds are out of the plan's budget */
    gx_range_term *terms; /* [max_terms] each group by falling ub, but for the rare ones */
    uint32_t *impacts;    /* [max_terms][GX_BLOCK_MAX_TFS] */
    /* [max_terms] as in terms: */
    const uint8_t **of_ranges; /* dense lists' bounds of ranges */
    gx_range_rows *rows;       /* and those of lists that are found by segment */
    uint16_t *weights;
    /* [max_terms] room for lists' bounds of segments, and their weights */
    const uint8_t **of_segments;
    uint16_t *segment_weights;
    /* [n_segments, up to a multiple of 64] bounds of segments in units, by all lists, and by the light ones */
    uint16_t *sums, *light;
    uint32_t *order;      /* [n_segments] segments by falling bound */
    uint32_t *rare;       /* [n_segments] the first of the segment's runs, GX_BLOCK_MAX_NO_RUN: none */
    gx_posting_run *runs; /* of rare lists */
    uint32_t n_runs, max_runs;
    uint32_t counts[GX_BLOCK_MAX_BUCKETS + 1];
    /* segments that are searched together, in docid order; their ranges that may reach the threshold, and
     * bounds of those */
    uint32_t n_batch, batch[GX_BLOCK_MAX_BATCH], live[GX_BLOCK_MAX_BATCH];
    _Alignas(64) uint16_t batch_sums[GX_BLOCK_MAX_BATCH][GX_SEGMENT_RANGES];
    gx_range_group group; /* ranges of the batch that are scored together */
    uint32_t max_ranges;  /* of the group; grows during a search */
};

/* The least sum of n lists' bounds that can belong to a score of T. */
static inline uint32_t gx_block_max_least_sum(const gx_cpu_block_max_state *b, uint32_t T, uint32_t n)
{
    if (T <= b->n_terms)
        return 0;
    const uint32_t units = (T - b->n_terms + b->unit - 1) / b->unit;
    return units > n ? units - n : 0;
}

static inline uint8_t gx_block_max_bound(const gx_range_term *t, uint32_t i, uint32_t tf)
{
    return t->bounds->postings ? t->bounds->postings[i] : (uint8_t)(tf * t->bounds->scale);
}

/* The ranges of the segment that the mask allows a document of, a bit each. */
uint32_t gx_block_max_allowed(const gx_cpu_searcher *s, const gx_mask *mask, uint32_t segment);

/* Count the ranges of n segments, GX_BLOCK_MAX_BATCH of them at most, whose bounds reach the threshold. */
uint32_t gx_block_max_count(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan,
                            const uint32_t *segments, uint32_t n);
/* Search n segments, GX_BLOCK_MAX_BATCH of them at most, by rising docid. */
void gx_block_max_batch(gx_cpu_searcher *s, gx_cpu_block_max_state *b, const gx_plan *plan, const uint32_t *segments,
                        uint32_t n);

#endif
