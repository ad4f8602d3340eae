/* filter_kernels.h: the inner loops of a filter's evaluation, in one version for each instruction set
 * (engine/isa.h). All versions give the same results. */
#ifndef GX_QUERY_FILTER_FILTER_KERNELS_H
#define GX_QUERY_FILTER_FILTER_KERNELS_H

#include "engine/api/gpuidx.h"

typedef struct gx_filter_kernels {
    /* Bit i % 64 of word i / 64 says whether values[i] is in [low, high], low <= high, for i < n. The
     * last word is filled up with zeros. */
    void (*select_u8)(const uint8_t *values, uint32_t n, uint8_t low, uint8_t high, uint64_t *words);
    void (*select_u16)(const uint16_t *values, uint32_t n, uint16_t low, uint16_t high, uint64_t *words);
    void (*select_u32)(const uint32_t *values, uint32_t n, uint32_t low, uint32_t high, uint64_t *words);
    void (*select_u64)(const uint64_t *values, uint32_t n, uint64_t low, uint64_t high, uint64_t *words);
    void (*select_double)(const double *values, uint32_t n, double low, double high, uint64_t *words);

    uint64_t (*count)(const uint64_t *words, size_t n); /* bits that are set */

    /* Bits that are set in both, of n_docs documents; `other` has its words in halves, the lower one first,
     * and no more of them than it takes. */
    uint64_t (*count_both)(const uint64_t *words, const uint32_t *other, uint32_t n_docs);

    /* ranks[w], w <= n, become the bits that are set in words before word w. */
    void (*rank)(const uint64_t *words, size_t n, uint32_t *ranks);

    /* The numbers of the bits that are set, the first bit being number `first`, to out [64 n + 16], of which more than
     * their number, which is returned, may be overwritten. */
    uint32_t (*list)(const uint64_t *words, uint32_t n, uint32_t first, uint32_t *out);
} gx_filter_kernels;

/* The best version that this CPU can run, or the one that GX_CPU names. */
const gx_filter_kernels *gx_filter_kernels_best(void);

#endif
