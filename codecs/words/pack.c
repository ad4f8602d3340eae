/* Each loop handles 32 integers at a constant width. The compiler unrolls it, and all shifts become
 * constants. */
#include "codecs/words/pack.h"

__attribute__((always_inline)) static inline void pack32(const uint32_t *in, const uint32_t b, uint32_t *words)
{
    uint64_t acc = 0;
    uint32_t have = 0, k = 0;
#pragma GCC unroll 32
    for (uint32_t i = 0; i < 32; ++i) {
        acc |= (uint64_t)in[i] << have;
        have += b;
        if (have >= 32) {
            words[k++] = (uint32_t)acc;
            acc >>= 32;
            have -= 32;
        }
    }
}

__attribute__((always_inline)) static inline void unpack32(const uint32_t *words, const uint32_t b, uint32_t *out)
{
    const uint32_t mask = gx_low_bits(b);
#pragma GCC unroll 32
    for (uint32_t i = 0; i < 32; ++i) {
        const uint32_t k = i * b >> 5, shift = i * b & 31;
        uint32_t x = words[k] >> shift;
        if (shift + b > 32)
            x |= words[k + 1] << (32 - shift);
        out[i] = x & mask;
    }
}

uint32_t gx_any_bits(const uint32_t *in, uint32_t n)
{
    uint32_t any = 0;
    for (uint32_t i = 0; i < n; ++i)
        any |= in[i];
    return any;
}

uint32_t gx_max_bit_width(const uint32_t *in, uint32_t n)
{
    return gx_bit_width(gx_any_bits(in, n));
}

/* Aligned, since where its loop begins in a cache line changes its speed by up to a tenth. */
__attribute__((aligned(64))) void gx_pack(const uint32_t *in, uint32_t n, uint32_t b, uint32_t *words)
{
    const uint32_t whole = n & ~31u;
#define CASE(w)                                                                                                        \
    case w:                                                                                                            \
        for (uint32_t i = 0; i < whole; i += 32)                                                                       \
            pack32(in + i, w, words + i / 32 * w);                                                                     \
        break;
    switch (b) {
    case 0:
        return;
        GX_WIDTHS(CASE)
    }
#undef CASE
    words += whole / 32 * b;
    uint64_t acc = 0;
    uint32_t have = 0;
    for (uint32_t i = whole; i < n; ++i) {
        acc |= (uint64_t)in[i] << have;
        have += b;
        if (have >= 32) {
            *words++ = (uint32_t)acc;
            acc >>= 32;
            have -= 32;
        }
    }
    if (have)
        *words = (uint32_t)acc;
}

void gx_unpack(const uint32_t *words, uint32_t n, uint32_t b, uint32_t *out)
{
    const uint32_t whole = n & ~31u;
#define CASE(w)                                                                                                        \
    case w:                                                                                                            \
        for (uint32_t i = 0; i < whole; i += 32)                                                                       \
            unpack32(words + i / 32 * w, w, out + i);                                                                  \
        break;
    switch (b) {
    case 0:
        for (uint32_t i = 0; i < n; ++i)
            out[i] = 0;
        return;
        GX_WIDTHS(CASE)
    }
#undef CASE
    for (uint32_t i = whole; i < n; ++i)
        out[i] = gx_bits_at(words, i * b, b);
}

bool gx_packed_is_valid(const uint32_t *words, uint32_t n_words, uint32_t n)
{
    const uint32_t bits = n * gx_packed_width(n_words, n);
    return n_words == gx_div_up(bits, 32) && (bits % 32 == 0 || words[n_words - 1] >> bits % 32 == 0);
}
