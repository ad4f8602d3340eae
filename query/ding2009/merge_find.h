/* merge_find.h: Parallel Merge Find (Ding, He, Yan, Suel, WWW 2009, section 7): where each element
 * of one sorted list belongs in another.
 *
 *   a   | .  .  .  8  .  .  .  . 14  .  .  .  . 24  .  . |     splitters of a are found in b first;
 *       they part both lists
 *   b   | .  .  8  .  .  .  .  .  . 15  . 24  .  .  .  . |     into segments, and a segment of a is
 *       only looked for in its
 *                                                             segment of b: again by splitters,
 *                                                             levels times over
 *
 * Level j of `levels` takes every 2^shift-th element of a. Without levels every element is looked
 * for in all of b. The GPU looks for all elements of a level at once (pmf.cu); the CPU goes through
 * the segments in order.
 */
#ifndef GX_QUERY_DING2009_MERGE_FIND_H
#define GX_QUERY_DING2009_MERGE_FIND_H

#include "engine/gpuidx.h"
#include "engine/hd.h"

/* Of level 1 .. levels + 1, which is 0: each level takes about n^(1 / (levels + 1)) times as many
 * elements as the one before. */
GX_HD uint32_t gx_merge_find_shift(uint32_t n, uint32_t levels, uint32_t level)
{
    uint32_t bits = 0;
    while (bits < 32 && n >> bits)
        ++bits;
    return bits * (levels + 1 - level) / (levels + 1);
}

/* The least p in [lo, hi) with b[p] >= x, or hi. */
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

#ifdef __cplusplus
extern "C" {
#endif

/* pos[i] = the least p with b[p] >= a[i], or n_b. Lists that do not rise give some positions <=
 * n_b. No overlap. */
void gx_merge_find_cpu(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, uint32_t levels,
                       uint32_t *pos);

/* What two rising lists have in common, to out[n_a]; returns its length. positions [n_a]: scratch.
 * */
uint32_t gx_intersect_cpu(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, uint32_t levels,
                          uint32_t *positions, uint32_t *out);
/* The same on a GPU, copied there before; waits. *seconds: the median time of `repeat`
 * intersections. Where built with CUDA. GX_ENOGPU, GX_ECUDA, GX_ENOMEM. */
gx_status gx_intersect_cuda(int device, const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b,
                            uint32_t levels, uint32_t repeat, uint32_t *out, uint32_t *n_out, double *seconds,
                            gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
