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
#ifndef GX_QUERY_CPU_KERNELS_RANGE_KERNELS_H
#define GX_QUERY_CPU_KERNELS_RANGE_KERNELS_H

#include "query/cpu/kernels/kernels.h"

#define GX_RANGE_SHIFT 3u
#define GX_RANGE_DOCS (1u << GX_RANGE_SHIFT)
#define GX_SEGMENT_RANGES 32u
#define GX_SEGMENT_SHIFT (GX_RANGE_SHIFT + 5u)
#define GX_SEGMENT_DOCS (1u << GX_SEGMENT_SHIFT)
#define GX_TILE_SHIFT (GX_SEGMENT_SHIFT + 3u)
#define GX_TILE_DOCS (1u << GX_TILE_SHIFT)
#define GX_TILE_SEGMENTS (GX_TILE_DOCS / GX_SEGMENT_DOCS)
#define GX_GROUP_RANGES 512u  /* that are scored together, at most */
#define GX_GROUP_SEGMENTS 64u /* and in so many segments */

/* A posting of a common or a sparse list: the document's place in its segment, and tf << GX_SEGMENT_SHIFT.
 * A list whose tfs are all below 256 has postings of 16 bits. */
typedef uint16_t gx_narrow_posting;
typedef uint32_t gx_wide_posting;

/* Where such a list's postings of a segment begin, and a bit a range that has some. */
typedef struct gx_segment_start {
    uint32_t start, ranges;
} gx_segment_start;

/* Where a common or a sparse list's bounds of ranges and its postings are. */
typedef struct gx_range_rows {
    const gx_segment_start *segments; /* common: one a segment, sparse: one a segment that has postings, and the end */
    const uint8_t *present;           /* sparse: a bit a segment that has postings, a byte a tile; common: NULL */
    const uint32_t *tiles;            /* sparse: starts before each tile */
    const uint8_t *bounds;            /* those of segment s's ranges are at s's start, one after another; readable
                                       * 32 bytes past the end */
    const void *postings;             /* gx_narrow_posting, or gx_wide_posting where the list is wide */
    bool wide;
} gx_range_rows;

/* A dense list: see ranges.h. */
typedef struct gx_dense_rows {
    const uint64_t *bits;
    const uint32_t *starts;
    const uint8_t *tfs, *bounds;
} gx_dense_rows;

/* What a range must reach: the k-th best score so far, for lists whose bounds are sums of units, each sum less than
 * `slack` units and `slack` too low (block_max.c). */
typedef struct gx_range_limit {
    uint32_t threshold, unit, slack;
} gx_range_limit;

/* Ranges of some segments that are scored together, by rising docid. The i-th of them is range ids[i] %
 * GX_SEGMENT_RANGES of segment ids[i] / GX_SEGMENT_RANGES, so that its first document is ids[i] * GX_RANGE_DOCS. */
typedef struct gx_range_group {
    uint32_t n, n_segments;
    uint32_t segments[GX_GROUP_SEGMENTS]; /* those of which a range is left */
    uint32_t live[GX_GROUP_SEGMENTS];     /* a bit each of the segment's ranges in the group */
    uint32_t first[GX_GROUP_SEGMENTS];    /* the place in the group of the first of them */
    uint32_t ids[GX_GROUP_RANGES];
    uint16_t rest[GX_GROUP_RANGES]; /* bounds of what is still to be added, in units */
    _Alignas(64) uint32_t scores[GX_GROUP_RANGES][GX_RANGE_DOCS];
    _Alignas(64) float K[GX_GROUP_RANGES][GX_RANGE_DOCS]; /* of bm25.h; unless the scorer is linear */
} gx_range_group;

/* A segment of a group in which a list has postings of the group's ranges. */
typedef struct gx_range_hit {
    const gx_segment_start *start;
    uint32_t place;  /* of the segment in the group */
    uint32_t ranges; /* those of the group that have postings */
} gx_range_hit;

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

    /* Add the impacts of a dense list to the group's scores, and take its bounds out of `rest`. w is the list's; if
     * linear, K is GX_LINEAR_K. tfs are readable 8 bytes past the end. */
    void (*add_dense)(gx_range_group *g, const gx_dense_rows *list, uint32_t weight, float w, bool linear);

    /* The segments in which a common or a sparse list has postings of the group's ranges: hits[GX_GROUP_SEGMENTS].
     * Their postings are prefetched. Returns their number. */
    uint32_t (*find)(const gx_range_group *g, const gx_range_rows *list, gx_range_hit *hits);

    /* As add_dense, of a narrow list in n segments that were found. Linear: impacts[tf] has the impacts. The postings
     * are readable 32 bytes past the end. */
    void (*add_linear)(gx_range_group *g, const gx_range_rows *list, const gx_range_hit *hits, uint32_t n,
                       uint32_t weight, const uint32_t *impacts);
    void (*add_narrow)(gx_range_group *g, const gx_range_rows *list, const gx_range_hit *hits, uint32_t n,
                       uint32_t weight, float w);

    /* Keep the ranges that can reach the threshold: range i, if a score of it (below 2^31) is at least threshold -
     * (rest[i] + slack) * unit - slack. Linear: K is not kept. */
    void (*keep)(gx_range_group *g, const gx_range_limit *limit, bool linear);

    /* Bit i: scores[i] >= least, for the documents of a range. */
    uint32_t (*best_of)(const uint32_t *scores, uint32_t least);
} gx_range_kernels;

/* Those of the same instruction set. */
const gx_range_kernels *gx_range_kernels_like(const gx_cpu_kernels *kernels);

#endif
