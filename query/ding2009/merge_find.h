/* merge_find.h: Parallel Merge Find (Ding, He, Yan, Suel, WWW 2009, section 7): finds where each
 * element of a sorted list belongs in another sorted list.
 *
 *   a   | .  .  .  8  .  .  .  . 14  .  .  .  . 24  .  . |   splitters of a are found in b first;
 *   b   | .  .  8  .  .  .  .  .  . 15  . 24  .  .  .  . |   they divide both lists into segments
 *
 * The elements of a segment of a are then searched only in the matching segment of b, again by
 * splitters, `levels` times. Level j takes every 2^shift-th element of a. With 0 levels every
 * element is searched in all of b. The GPU searches all elements of a level at once (pmf.cu). The
 * CPU goes through the segments in order. */
#ifndef GX_QUERY_DING2009_MERGE_FIND_H
#define GX_QUERY_DING2009_MERGE_FIND_H

#include "engine/api/gpuidx.h"
#include "engine/hd.h"
#include "engine/lower_bound.h"

/* Returns the shift of level 1 .. levels + 1; the last level has shift 0. Each level has about
 * n^(1 / (levels + 1)) times as many elements as the one before. */
GX_HD uint32_t gx_merge_find_shift(uint32_t n, uint32_t levels, uint32_t level)
{
    uint32_t bits = 0;
    while (bits < 32 && n >> bits)
        ++bits;
    return bits * (levels + 1 - level) / (levels + 1);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Sets pos[i] to the least p with b[p] >= a[i], or to n_b. If a list is not sorted, positions are
 * arbitrary but <= n_b. The arrays must not overlap. */
void gx_merge_find_cpu(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, uint32_t levels,
                       uint32_t *pos);

/* Writes the elements that two sorted lists have in common to out[n_a] and returns their number.
 * positions is scratch, [n_a]. */
uint32_t gx_intersect_cpu(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, uint32_t levels,
                          uint32_t *positions, uint32_t *out);
/* Two sorted lists, and how many levels find the elements of a in b. */
typedef struct gx_list_pair {
    const uint32_t *a, *b; /* [n_a], [n_b] */
    uint32_t n_a, n_b, levels;
} gx_list_pair;

/* The same on a GPU, with builds that have CUDA. Copies the lists to the device and waits for the
 * result. *seconds: the median time of `repeat` intersections. GX_ENOGPU, GX_ECUDA, GX_ENOMEM. */
gx_status gx_intersect_cuda(int device, const gx_list_pair *lists, uint32_t repeat, uint32_t *out, uint32_t *n_out,
                            double *seconds, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
