/* bits.h: arithmetic on bits and bytes that all codecs share, for the host and the device. */
#ifndef GX_CODECS_WORDS_BITS_H
#define GX_CODECS_WORDS_BITS_H

#include <stdint.h>

#include "engine/hd.h"

/* Bits that x needs, 0 for 0. */
GX_HD uint32_t gx_bit_width(uint32_t x)
{
#ifdef __CUDA_ARCH__
    return 32u - (uint32_t)__clz((int)x);
#else
    return x ? 32u - (uint32_t)__builtin_clz(x) : 0;
#endif
}

/* The word whose low b bits are set, b <= 32. */
GX_HD uint32_t gx_low_bits(uint32_t b)
{
    return (uint32_t)(((uint64_t)1 << b) - 1);
}

GX_HD uint32_t gx_div_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

/* The b <= 32 bits from bit `at` of words on, lowest first. It reads the word after the one that
 * holds bit `at`, even where no bit of it is needed. */
GX_HD uint32_t gx_bits_at(const uint32_t *words, uint32_t at, uint32_t b)
{
    const uint32_t *w = words + (at >> 5);
    return (uint32_t)(((uint64_t)w[1] << 32 | w[0]) >> (at & 31)) & gx_low_bits(b);
}

/* The width at which n integers fill n_words as GPU-BP does: 32 n_words / n, at most 32. n >= 1. */
GX_HD uint32_t gx_packed_width(uint32_t n_words, uint32_t n)
{
    return n_words >= n ? 32 : 32 * n_words / n;
}

/* The sum of sixteen 2-bit numbers. */
GX_HD uint32_t gx_sum_2bit(uint32_t x)
{
#ifdef __CUDA_ARCH__
    return (uint32_t)__popc(x & 0x55555555u) + 2 * (uint32_t)__popc(x & 0xaaaaaaaau);
#else /* a CPU that may lack the popcount instruction */
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    x = (x & 0x0f0f0f0fu) + (x >> 4 & 0x0f0f0f0fu);
    return x * 0x01010101u >> 24;
#endif
}

#endif
