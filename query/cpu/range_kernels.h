/* range_kernels.h: the loops of the search over ranges of documents (block_max.c), in the instruction
 * sets of kernels.h, with the same results.
 *
 *   range     GX_RANGE_DOCS documents with neighbouring docids, for which a list has one bound
 *   segment   GX_SEGMENT_DOCS documents; a dense list's postings are found by segment
 *   tile      64 ranges: the bounds of a dense list for one tile fill a cache line
 *
 * A bound is 8 bits of a list's greatest part (lists.h); a query gives the list a weight of 16 bits,
 * and the product's 16 high bits count units of the query's score.
 */
#ifndef GX_QUERY_CPU_RANGE_KERNELS_H
#define GX_QUERY_CPU_RANGE_KERNELS_H

#include "query/cpu/kernels.h"

#define GX_RANGE_SHIFT 5u
#define GX_RANGE_DOCS (1u << GX_RANGE_SHIFT)
#define GX_SEGMENT_SHIFT 8u
#define GX_SEGMENT_DOCS (1u << GX_SEGMENT_SHIFT)
#define GX_TILE_RANGES 64u
#define GX_TILE_SHIFT (GX_RANGE_SHIFT + 6u)
#define GX_TILE_DOCS (1u << GX_TILE_SHIFT)
#define GX_SEGMENT_RANGES (GX_SEGMENT_DOCS / GX_RANGE_DOCS)

/* A posting of a dense list: the document's place in its segment, and tf << GX_SEGMENT_SHIFT. A list
 * whose tfs are all below 256 has postings of 16 bits. */
typedef uint16_t gx_narrow_posting;
typedef uint32_t gx_wide_posting;

typedef struct gx_range_kernels {
    /* sums[i] += bounds[i] * weight >> 8 for i < n, a multiple of 64. No sum reaches 2^16. */
    void (*add_bounds)(uint16_t *sums, const uint8_t *bounds, uint32_t n, uint32_t weight);

    /* The same for the 64 ranges of a tile and n_lists lists at once. */
    void (*add_tile)(uint16_t *sums, const uint8_t *const *bounds, const uint32_t *weights, uint32_t n_lists);

    /* Bit i: sums[i] >= least, for i < 64. */
    uint64_t (*reach)(const uint16_t *sums, uint32_t least);

    /* Add the impacts of n postings of one segment: scores[d] += the impact of d's tf with K[d]. */
    void (*add_narrow)(uint32_t *scores, const gx_narrow_posting *postings, uint32_t n, const float *K, float w);

    /* The greatest of GX_RANGE_DOCS scores. */
    uint32_t (*greatest)(const uint32_t *scores);
} gx_range_kernels;

/* Those of the same instruction set. */
const gx_range_kernels *gx_range_kernels_like(const gx_cpu_kernels *kernels);

#endif
