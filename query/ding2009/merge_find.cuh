/* merge_find.cuh: one level of Parallel Merge Find on the device. */
#ifndef GX_QUERY_DING2009_MERGE_FIND_CUH
#define GX_QUERY_DING2009_MERGE_FIND_CUH

#include "query/ding2009/merge_find.h"

namespace gx {

/* Finds every 2^shift-th element of a in b. Each is searched between the positions that the level
 * before found. The threads of one row of thread blocks share the work. */
__device__ __forceinline__ void find_level(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b,
                                           uint32_t levels, uint32_t level, uint32_t *positions)
{
    if (n_a == 0)
        return;
    const uint32_t shift = gx_merge_find_shift(n_a, levels, level), count = ((n_a - 1) >> shift) + 1;
    const uint32_t above = level > 1 ? gx_merge_find_shift(n_a, levels, level - 1) : 32;
    for (uint32_t x = blockIdx.x * blockDim.x + threadIdx.x; x < count; x += gridDim.x * blockDim.x) {
        const uint32_t i = x << shift;
        uint32_t lo = 0, hi = n_b;
        if (level > 1) {
            const uint32_t splitter = i >> above << above;
            if (i == splitter)
                continue; /* found by the level before */
            lo = positions[splitter];
            if (n_a - splitter > 1u << above)
                hi = positions[splitter + (1u << above)];
        }
        positions[i] = gx_lower_bound(b, lo, hi, a[i]);
    }
}

/* Returns the most elements that a level has for lists a of up to `most` elements. */
static inline uint64_t level_bound(uint32_t most, uint32_t levels, uint32_t level)
{
    return (uint64_t)(most >> gx_merge_find_shift(most, levels, level)) + 1;
}

} // namespace gx

#endif
