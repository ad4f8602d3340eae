/* range_kernels.h: the loops of the search over ranges of documents (block_max.c), in the instruction
 * sets of kernels.h, with the same results.
 *
 *   range     GX_RANGE_DOCS documents with neighbouring docids, for which a list has one bound
 *   segment   32 ranges: a list's bounds for one segment are a row of 32 bytes
 *   tile      8 segments; lists of few postings are found by tile
 *
 * A bound is 8 bits of a list's greatest part (lists.h); a query gives the list a weight of 16 bits,
 * and the product's 16 high bits count units of the query's score.
 */
#ifndef GX_QUERY_CPU_RANGE_KERNELS_H
#define GX_QUERY_CPU_RANGE_KERNELS_H

#include "query/cpu/kernels.h"

#define GX_RANGE_SHIFT 3u
#define GX_RANGE_DOCS (1u << GX_RANGE_SHIFT)
#define GX_SEGMENT_RANGES 32u
#define GX_SEGMENT_SHIFT (GX_RANGE_SHIFT + 5u)
#define GX_SEGMENT_DOCS (1u << GX_SEGMENT_SHIFT)
#define GX_TILE_SHIFT (GX_SEGMENT_SHIFT + 3u)
#define GX_TILE_DOCS (1u << GX_TILE_SHIFT)
#define GX_TILE_SEGMENTS (GX_TILE_DOCS / GX_SEGMENT_DOCS)

/* A posting of a common or a sparse list: the document's place in its segment, and tf << GX_SEGMENT_SHIFT.
 * A list whose tfs are all below 256 has postings of 16 bits. */
typedef uint16_t gx_narrow_posting;
typedef uint32_t gx_wide_posting;

/* Where such a list's postings of a segment begin, and a bit a range that has some. */
typedef struct gx_segment_start {
    uint32_t start, ranges;
} gx_segment_start;

/* Where a common or a sparse list's bounds of ranges are. */
typedef struct gx_range_rows {
    const gx_segment_start *segments; /* common: one a segment, sparse: one a segment that has postings, and the end */
    const uint8_t *present;           /* sparse: a bit a segment that has postings, a byte a tile */
    const uint32_t *tiles;            /* sparse: starts before each tile */
    const uint8_t *bounds;            /* those of segment s's ranges are at s's start, one after another; readable
                                       * 32 bytes past the end */
} gx_range_rows;

/* What a range must reach: the k-th best score so far, for lists whose bounds are sums of units, each sum less than
 * `slack` units and `slack` too low (block_max.c). */
typedef struct gx_range_limit {
    uint32_t threshold, unit, slack;
} gx_range_limit;

/* What turns tfs into impacts (bm25.h). */
typedef struct gx_range_scorer {
    float w;
    bool linear;    /* K is GX_LINEAR_K */
    const float *K; /* [GX_SEGMENT_DOCS] of the segment's documents, if not linear */
} gx_range_scorer;

typedef struct gx_range_kernels {
    /* sums[i] = the sum over lists l of rows[l][at + i] * weights[l] >> 8, for i < n, a multiple of 32. No
     * sum reaches 2^16. */
    void (*sum_bounds)(uint16_t *sums, const uint8_t *const *rows, const uint16_t *weights, uint32_t n_lists, size_t at,
                       uint32_t n);

    /* Add a common or a sparse list's bounds of the ranges of n segments to sums[n]. */
    void (*add_common)(uint16_t (*sums)[GX_SEGMENT_RANGES], const uint32_t *segments, uint32_t n,
                       const gx_range_rows *list, uint32_t weight);
    void (*add_sparse)(uint16_t (*sums)[GX_SEGMENT_RANGES], const uint32_t *segments, uint32_t n,
                       const gx_range_rows *list, uint32_t weight);

    /* Add a sparse list's bounds of segments. Those of a tile's segments that `present` has a bit of are at
     * bounds + starts[tile], one after another, readable 32 bytes past the end. n_tiles is a multiple of 4. */
    void (*add_tiles)(uint16_t *sums, const uint8_t *bounds, const uint32_t *starts, const uint8_t *present,
                      uint32_t weight, uint32_t n_tiles);

    /* Bit i: sums[i] >= least, for i < 32. */
    uint32_t (*reach)(const uint16_t *sums, uint32_t least);

    /* Add the impacts of a dense list in n ranges of a segment: bits[4] has its documents, tfs[] theirs
     * in order, readable 8 bytes past the end, and scores[GX_SEGMENT_DOCS] the sums. */
    void (*add_dense)(uint32_t *scores, const uint64_t *bits, const uint8_t *tfs, const uint8_t *ranges, uint32_t n,
                      const gx_range_scorer *scorer);

    /* Of *n ranges, keep those that can reach the threshold: range r, if a score of it (below 2^31) is at least
     * threshold - (rest[r] + slack) * unit - slack, where rest[r] bounds what is still to be added. The scores of
     * the others become 0. Returns a bit each of the ranges that are left. */
    uint32_t (*keep)(uint32_t *scores, uint8_t *ranges, uint32_t *n, const uint16_t *rest, const gx_range_limit *limit);

    /* As add_dense, of n narrow postings, those in the ranges of `live` alone; linear: impacts[tf]
     * has the impacts. The postings are readable 32 bytes past the end. */
    void (*add_linear)(uint32_t *scores, const gx_narrow_posting *postings, uint32_t n, uint32_t live,
                       const uint32_t *impacts);
    void (*add_narrow)(uint32_t *scores, const gx_narrow_posting *postings, uint32_t n, uint32_t live,
                       const gx_range_scorer *scorer);

    /* Bit i: scores[i] >= least, for the documents of a range. */
    uint32_t (*best_of)(const uint32_t *scores, uint32_t least);
} gx_range_kernels;

/* Those of the same instruction set. */
const gx_range_kernels *gx_range_kernels_like(const gx_cpu_kernels *kernels);

#endif
