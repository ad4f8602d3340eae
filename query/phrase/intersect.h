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

/* Keep array[from[0]], array[from[1]], ... array[from[n - 1]]; from rises. Up to 16 integers are written behind. */
typedef void gx_keep_fn(uint32_t *array, const uint32_t *from, uint32_t n);
gx_keep_fn *gx_keep_best(void);

#define GX_LIMIT_TFS 16u /* tfs for which limits of lengths are kept; the last one is of all greater ones, too */

/* Which of n documents are, for their tf, not too long: lens[docids[i]] <= most[min(tf, 15)], where the tf is
 * tfs[at[i] - base]. from[j] becomes first and the number of the j-th. Returns how many they are. */
typedef uint32_t gx_within_fn(const uint32_t *docids, const uint32_t *at, uint32_t n, uint32_t base,
                              const uint32_t *tfs, const uint32_t *lens, const uint32_t *most, uint32_t first,
                              uint32_t *from);
gx_within_fn *gx_within_best(void);

/* sums[i] becomes the sum of the first i values, i <= n. Up to 16 integers are written behind them. values go on for
 * 16. Modulo 2^32. */
typedef void gx_begins_fn(const uint32_t *values, uint32_t n, uint32_t *sums);
gx_begins_fn *gx_begins_best(void);

/* The sum of values[n]. */
typedef uint64_t gx_sum_fn(const uint32_t *values, uint32_t n);
gx_sum_fn *gx_sum_best(void);

/* Keep of starts[n] those that some positions[j] + add, modulo 2^32, is. Returns how many they are. */
typedef uint32_t gx_keep_starts_fn(uint32_t *starts, uint32_t n, const uint32_t *positions, uint32_t n_positions,
                                   uint32_t add);
gx_keep_starts_fn *gx_keep_starts_best(void);

/* The positions of a block of postings: those of posting base + i are sums[j] - sums[begins[i] - 1] - 1,
 * begins[i] <= j < begins[i + 1]. sums[-1] is 0. */
typedef struct gx_block_places {
    const uint32_t *sums, *begins;
    uint32_t base;
} gx_block_places;

/* The positions of postings at[n], all in the block, and add become starts, which go on for 16 more. Of the i-th
 * posting: starts[begin[i]], and n_starts[i] of them. The first begins at `used`. Returns the end. */
typedef uint32_t gx_first_starts_fn(const gx_block_places *b, const uint32_t *at, uint32_t n, uint32_t add,
                                    uint32_t *starts, uint32_t used, uint32_t *begin, uint32_t *n_starts);
gx_first_starts_fn *gx_first_starts_best(void);

/* Of the starts of posting at[i] keep those at which a position stands, too, less add. */
typedef void gx_next_starts_fn(const gx_block_places *b, const uint32_t *at, uint32_t n, uint32_t add, uint32_t *starts,
                               const uint32_t *begin, uint32_t *n_starts);
gx_next_starts_fn *gx_next_starts_best(void);

#endif
