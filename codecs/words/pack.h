/* pack.h: integers of b bits in a row, integer i at bit i * b, lowest bit first, in 32-bit words.
 *
 *     b = 5    word 0: |..6|  5  |  4  |  3  |  2  |  1  |  0  |     integer 6 goes on in word 1
 */
#ifndef GX_CODECS_WORDS_PACK_H
#define GX_CODECS_WORDS_PACK_H

#include <stdbool.h>
#include <string.h>

#include "codecs/words/bits.h"

/* X(b) for every width that takes bits. */
/* clang-format off */
#define GX_WIDTHS(X)                                \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)         \
    X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)  \
    X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) \
    X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32)
/* clang-format on */

/* Pack n integers, each < 2^b, b <= 32, to exactly ceil(n * b / 32) words; bits left over are 0. */
void gx_pack(const uint32_t *in, uint32_t n, uint32_t b, uint32_t *words);

/* Unpack what gx_pack packed. Reads up to one word past the last. */
void gx_unpack(const uint32_t *words, uint32_t n, uint32_t b, uint32_t *out);

/* Combine value by OR into words from bit `at` on. value has at most b <= 32 significant bits. */
static inline void gx_write_bits(uint32_t *words, uint32_t at, uint32_t value, uint32_t b)
{
    const uint64_t bits = (uint64_t)value << (at & 31);
    if (b == 0)
        return;
    words[at >> 5] |= (uint32_t)bits;
    if ((at & 31) + b > 32)
        words[(at >> 5) + 1] |= (uint32_t)(bits >> 32);
}

/* How many words n integers of b bits take. */
static inline uint32_t gx_packed_words(uint32_t n, uint32_t b)
{
    return gx_div_up(n * b, 32);
}

/* A block that a codec would not make shorter than n words is stored as plain words, and a block of
 * zeros takes no words. gx_is_compressed: whether a block is neither. gx_copy_uncompressed: the
 * integers of a block that is one of the two. */
static inline bool gx_is_compressed(uint32_t n_words, uint32_t n)
{
    return n_words > 0 && n_words < n;
}

static inline void gx_copy_uncompressed(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t *out)
{
    if (n_words)
        memcpy(out, words, n * sizeof *out);
    else
        memset(out, 0, n * sizeof *out);
}

/* The bits that at least one of n integers has. */
uint32_t gx_any_bits(const uint32_t *in, uint32_t n);

/* The number of bits that the widest of n integers needs, 0..32. */
uint32_t gx_max_bit_width(const uint32_t *in, uint32_t n);

/* Whether gx_pack can have made n_words words of n integers, of the width that gx_packed_width
 * says: their number is that width's, and the bits left over are 0. */
bool gx_packed_is_valid(const uint32_t *words, uint32_t n_words, uint32_t n);

#endif
