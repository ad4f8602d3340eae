/* lower_bound.h: binary search, in a header that both C and CUDA code include. */
#ifndef GX_ENGINE_LOWER_BOUND_H
#define GX_ENGINE_LOWER_BOUND_H

#include <stdint.h>

#include "engine/hd.h"

/* Declare p: the least of [begin, end) for which `reached`, an expression in p, holds, or end. If it holds for one it
 * holds for all behind it. begin >= end: p is begin. */
#define GX_FIRST(type, p, begin, end, reached)                                                                         \
    type p = (begin);                                                                                                  \
    for (type low_##p = p, high_##p = (end);                                                                           \
         p = low_##p < high_##p ? low_##p + (high_##p - low_##p) / 2 : low_##p, low_##p < high_##p;)                   \
        if (reached)                                                                                                   \
            high_##p = p;                                                                                              \
        else                                                                                                           \
            low_##p = p + 1

/* Returns the least p in [lo, hi) with b[p] >= x, or hi. b[lo .. hi) rises. */
GX_HD uint32_t gx_lower_bound(const uint32_t *b, uint32_t lo, uint32_t hi, uint32_t x)
{
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (b[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

#endif
