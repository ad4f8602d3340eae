/* eliasfano.h: a block of Elias-Fano taken apart (eliasfano.c), for the host and the device. */
#ifndef GX_CODECS_WORDS_ELIASFANO_H
#define GX_CODECS_WORDS_ELIASFANO_H

#include "codecs/words/bits.h"

#define GX_EF_B_BITS 5u    /* where the high bits begin */
#define GX_EF_MAX_HIGH 13u /* most words of high bits that an encoder writes, the bits of b included */

typedef struct gx_ef_block {
    uint32_t b, n_high; /* bits of a low part; words before the low parts */
} gx_ef_block;

/* The parts of a block of n_words >= 1 words whose first word is given. Whatever the bytes are, the
 * low parts lie within the block. */
GX_HD gx_ef_block gx_ef_open(uint32_t first, uint32_t n_words, uint32_t n)
{
    const uint32_t b = first & 31, n_low = gx_div_up(n * b, 32);
    gx_ef_block e;
    e.b = n_low <= n_words ? b : 0;
    e.n_high = n_low <= n_words ? n_words - n_low : n_words;
    return e;
}

#ifndef __CUDACC__
#include <string.h>

/* 64 bits of words[n_words] from word k on, without the bits of b. Bits past the end are 0. */
static inline uint64_t gx_ef_high_bits(const uint32_t *words, uint32_t n_words, uint32_t k)
{
    uint64_t x;
    memcpy(&x, words + k, 8); /* there are words behind, or slack */
    x = k + 1 < n_words ? x : x & 0xffffffffu;
    return k ? x : x & ~(uint64_t)gx_low_bits(GX_EF_B_BITS);
}

/* gx_simd.add_high_parts, given the places of the set bits, modulo 256. */
static inline void gx_ef_add_high_parts(const uint8_t *places, uint32_t n, uint32_t b, uint32_t first, uint32_t step,
                                        uint32_t *out)
{
    for (uint32_t i = 0; i < n; ++i)
        out[i] += ((uint32_t)(uint8_t)(places[i] - i) << b) + first + i * step;
}

static inline void gx_ef_select_bits(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t *places)
{
    uint32_t i = 0;
    for (uint32_t k = 0; k < n_words && i < n; k += 2) {
        const uint32_t base = 32 * k - GX_EF_B_BITS;
        for (uint64_t x = gx_ef_high_bits(words, n_words, k); x && i < n; x &= x - 1)
            places[i++] = (uint8_t)(base + (uint32_t)__builtin_ctzll(x));
    }
    for (; i < n; ++i)
        places[i] = 0;
}
#endif

#endif
