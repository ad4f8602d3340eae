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

/* Or the low b <= 32 bits of value, whose others are 0, into words from bit `at` on. */
static inline void gx_put_bits(uint32_t *words, uint32_t at, uint32_t value, uint32_t b)
{
    const uint64_t bits = (uint64_t)value << (at & 31);
    if (b == 0)
        return;
    words[at >> 5] |= (uint32_t)bits;
    if ((at & 31) + b > 32)
        words[(at >> 5) + 1] |= (uint32_t)(bits >> 32);
}

/* The bits that the widest of n integers needs, 0..32. */
uint32_t gx_max_width(const uint32_t *in, uint32_t n);

#endif
