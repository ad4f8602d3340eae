/* pack.h: integers of b bits in a row, integer i at bit i * b, lowest bit first, in 32-bit words.
 *
 *     b = 5    word 0: |..6|  5  |  4  |  3  |  2  |  1  |  0  |     integer 6 goes on in word 1
 */
#ifndef GX_PACK_H
#define GX_PACK_H

#include "codecs/bits.h"

/* Pack n integers, each < 2^b, b <= 32, to exactly ceil(n * b / 32) words; bits left over are 0. */
void gx_pack(const uint32_t *in, uint32_t n, uint32_t b, uint32_t *words);

/* The reverse. Reads up to one word past the last. */
void gx_unpack(const uint32_t *words, uint32_t n, uint32_t b, uint32_t *out);

/* The bits that the widest of n integers needs, 0..32. */
uint32_t gx_max_width(const uint32_t *in, uint32_t n);

#endif
