/* positions.h: the positions of a block of postings, in a Rice code.
 *
 * A block of postings has N values: for each posting its first position, then each gap less one
 * (p[i] - p[i-1] - 1). It is one stream of bits, which begins at the lowest bit of its first word:
 *
 *   | b: 5 bits | N x b low bits of each value | for each value (value >> b) zeros and a one | 0 .. |
 *
 * The b of a block is the least of those with the fewest bits. Value i can be read by itself: its low bits have
 * their place, and its high ones are found by counting ones.
 */
#ifndef GX_CODECS_POSITIONS_H
#define GX_CODECS_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The words of a block, behind which GX_READ_SLACK bytes are readable. */
typedef struct gx_block_positions {
    const uint32_t *words; /* [n_words] */
    size_t n_words;
} gx_block_positions;

#define GX_MAX_POSITION ((uint32_t)INT32_MAX) /* positions are at most this */

/* The most words that n values take. */
uint64_t gx_positions_max_words(uint64_t n);

/* Encode values[n], n >= 1, to words. Returns the number of words. */
uint64_t gx_positions_encode(const uint32_t *values, uint64_t n, uint32_t *words);

/* values becomes the values [first, first + n) of a block of all, first + n <= all. false: the block is damaged, and
 * what is in values means nothing; nothing outside the block and the slack behind it is read. */
bool gx_positions_decode(gx_block_positions b, uint64_t all, uint64_t first, uint64_t n, uint32_t *values);

/* A place in a block: its first `n` values are behind, and the high part of the next one begins at `bit`. */
typedef struct gx_position_place {
    uint64_t n, bit; /* n 0: the block's begin, whatever `bit` is */
} gx_position_place;

/* The same from *place on, which must not be behind `first`, and which moves behind the last one. */
bool gx_positions_decode_on(gx_block_positions b, uint64_t all, uint64_t first, uint64_t n, uint32_t *values,
                            gx_position_place *place);

#define GX_SUMS_ROOM 80u /* integers behind the sums of a block that may be written */

/* sums[i] becomes the sum of the first i + 1 values, each and one more: positions run on from posting to posting, 1 too
 * high. sums has room for GX_SUMS_ROOM more. false: the block is damaged, or the last sum is above GX_MAX_POSITION, and
 * what is in sums means nothing. */
bool gx_positions_sums(gx_block_positions b, uint32_t all, uint32_t *sums);

/* Whether the encoder has made the block of these values, [all], as gx_positions_decode gives them. */
bool gx_positions_valid(gx_block_positions b, uint64_t all, const uint32_t *values);

#endif
