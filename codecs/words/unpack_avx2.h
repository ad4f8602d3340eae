/* unpack_avx2.h: eight packed integers at a time in AVX2, for codecs and for the CPU engine's
 * kernels. The file that includes it asks the compiler for AVX2 first.
 */
#ifndef GX_CODECS_WORDS_UNPACK_AVX2_H
#define GX_CODECS_WORDS_UNPACK_AVX2_H

#include <immintrin.h>

#include "codecs/words/packed_tables.h"

/* The first 32 bytes of a row are those of GX_HALF_FROM and GX_HALF_SHIFT. */
static const _Alignas(64) uint8_t ymm_from[26][64] = {GX_ROWS_TO_25(GX_HALF_FROM)}, ymm_shift[26][64] = {
                                                                                    GX_ROWS_TO_25(GX_HALF_SHIFT)};

typedef struct gx_unpacker8 {
    __m256i from, shift, mask;
    const uint8_t *p;
    uint32_t b, half;
} gx_unpacker8;

static inline gx_unpacker8 gx_unpack_from(const uint32_t *words, uint32_t b)
{
    return (gx_unpacker8){_mm256_load_si256((const __m256i *)(const void *)ymm_from[b]),
                          _mm256_load_si256((const __m256i *)(const void *)ymm_shift[b]),
                          _mm256_set1_epi32((int)((1u << b) - 1)),
                          (const uint8_t *)words,
                          b,
                          4 * b / 8};
}

/* Integers 8 g to 8 g + 7. */
static inline __m256i gx_unpack8(const gx_unpacker8 *u, uint32_t g)
{
    const uint8_t *p = u->p + u->b * g;
    const __m256i bytes = _mm256_set_m128i(_mm_loadu_si128((const __m128i *)(const void *)(p + u->half)),
                                           _mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(bytes, u->from), u->shift), u->mask);
}

/* Inclusive sums of 8 lanes. */
static inline __m256i gx_sums8(__m256i x)
{
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
    const __m256i low = _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(3)); /* the low half's total */
    return _mm256_add_epi32(x, _mm256_blend_epi32(_mm256_setzero_si256(), low, 0xf0));
}

/* docids[i] = first - 1 + (v[0] + 1) + .. + (v[i] + 1) of n packed integers v,
 * up to a multiple of 8. */
static inline void gx_unpack_docids8(const uint32_t *words, uint32_t b, uint32_t n, uint32_t first, uint32_t *docids)
{
    const gx_unpacker8 u = gx_unpack_from(words, b);
    __m256i carry = _mm256_set1_epi32((int)(first - 1));
    for (uint32_t g = 0; 8 * g < n; ++g) {
        const __m256i x = gx_sums8(_mm256_add_epi32(gx_unpack8(&u, g), _mm256_set1_epi32(1)));
        _mm256_storeu_si256((__m256i *)(void *)(docids + 8 * g), _mm256_add_epi32(x, carry));
        carry = _mm256_add_epi32(carry, _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(7)));
    }
}

#endif
