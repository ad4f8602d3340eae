/* intersect.h: the candidates of a block: one loop, in a version for each instruction set. */
#ifndef GX_QUERY_PHRASE_INTERSECT_H
#define GX_QUERY_PHRASE_INTERSECT_H

#include <stdint.h>

#define GX_BLOCK_PAD 16u /* docids behind a block's last one, all UINT32_MAX */

/* Which of docids[n], rising, are in the rising block[], whose docids go on to GX_BLOCK_PAD times UINT32_MAX. from[i]
 * and at[i] tell the places of the i-th of them in docids and block. Returns their number. All docids are below
 * UINT32_MAX. */
typedef uint32_t gx_intersect_fn(const uint32_t *docids, uint32_t n, const uint32_t *block, uint32_t *from,
                                 uint32_t *at);

/* The best version that this CPU can run, or the one that GX_CPU names. */
gx_intersect_fn *gx_intersect_best(void);

/* The sum of values[n]. */
typedef uint64_t gx_sum_fn(const uint32_t *values, uint32_t n);
gx_sum_fn *gx_sum_best(void);

/* Keep of starts[n] those that some positions[j] + add is. Returns how many they are. */
typedef uint32_t gx_keep_starts_fn(uint32_t *starts, uint32_t n, const uint32_t *positions, uint32_t n_positions,
                                   uint32_t add);
gx_keep_starts_fn *gx_keep_starts_best(void);

#endif
