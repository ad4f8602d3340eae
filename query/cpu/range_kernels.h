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

/* A posting of a common list: the document's place in its segment, and tf << GX_SEGMENT_SHIFT. A list
 * whose tfs are all below 256 has postings of 16 bits. */
typedef uint16_t gx_narrow_posting;
typedef uint32_t gx_wide_posting;

/* A posting of a sparse list: the document's place in its tile, and tf << GX_TILE_SHIFT. */
typedef uint32_t gx_tile_posting;

/* Where a common list's postings of a segment begin, and a bit a range that has some. */
typedef struct gx_segment_start {
    uint32_t start, ranges;
} gx_segment_start;

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

    /* Add common lists' bounds of a segment's ranges, where they have postings. Of list l and the
     * segment they are at bounds[l] + starts[l][segment].start, readable 32 bytes past the end. */
    void (*add_common)(uint16_t *sums, const gx_segment_start *const *starts, const uint8_t *const *bounds,
                       const uint16_t *weights, uint32_t n_lists, uint32_t segment);

    /* Add a sparse list's bounds of tiles to those of their segments that have postings of it. n_tiles
     * is a multiple of 4. */
    void (*add_tiles)(uint16_t *sums, const uint8_t *bounds, const uint8_t *present, uint32_t weight, uint32_t n_tiles);

    /* Of n postings of one tile, those of its given segment are [*begin, *end). Postings are readable 32
     * bytes past the end. */
    void (*find_sparse)(const gx_tile_posting *postings, uint32_t n, uint32_t segment, uint32_t *begin, uint32_t *end);

    /* Bit i: sums[i] >= least, for i < 32. */
    uint32_t (*reach)(const uint16_t *sums, uint32_t least);

    /* Add the impacts of a dense list in n ranges of a segment: bits[4] has its documents, tfs[] theirs
     * in order, readable 8 bytes past the end, and scores[GX_SEGMENT_DOCS] the sums. */
    void (*add_dense)(uint32_t *scores, const uint64_t *bits, const uint8_t *tfs, const uint8_t *ranges, uint32_t n,
                      const gx_range_scorer *scorer);

    /* Of n ranges, keep those r that have a score (below 2^31) above least[r], and set the scores of the others to 0.
     * Returns how many are left. */
    uint32_t (*keep)(uint32_t *scores, uint8_t *ranges, uint32_t n, const int32_t *least);

    /* As add_dense, of n postings of a common list, those in the ranges of `live` alone; linear: impacts[tf]
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
