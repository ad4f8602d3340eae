#include "query/filter/filter_kernels.h"

#include <string.h>

#include "codecs/words/simd.h"

/* ---- portable ---- */

/* 64 bytes of 0 or 1 as bits. */
static uint64_t pack(const uint8_t flags[64])
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < 8; ++i) {
        uint64_t x;
        memcpy(&x, flags + 8 * i, 8);
        word |= x * 0x0102040810204080u >> 56 << 8 * i; /* byte j of x becomes bit j */
    }
    return word;
}

#define SELECT(NAME, TYPE)                                                                                             \
    static void select_##NAME(const TYPE *values, uint32_t n, TYPE low, TYPE high, uint64_t *words)                    \
    {                                                                                                                  \
        for (uint64_t d = 0; d < n; d += 64) {                                                                         \
            uint8_t flags[64] = {0};                                                                                   \
            const uint64_t left = n - d;                                                                               \
            if (left >= 64)                                                                                            \
                for (uint32_t i = 0; i < 64; ++i)                                                                      \
                    flags[i] = (uint8_t)((values[d + i] >= low) & (values[d + i] <= high));                            \
            else                                                                                                       \
                for (uint32_t i = 0; i < left; ++i)                                                                    \
                    flags[i] = (uint8_t)((values[d + i] >= low) & (values[d + i] <= high));                            \
            words[d / 64] = pack(flags);                                                                               \
        }                                                                                                              \
    }
SELECT(u8, uint8_t)
SELECT(u16, uint16_t)
SELECT(u32, uint32_t)
SELECT(u64, uint64_t)
SELECT(double, double)

static uint64_t count(const uint64_t *words, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += (uint64_t)__builtin_popcountll(words[i]);
    return sum;
}

/* The bits that the last word, of fewer than 64 documents, has in common with the other; 0: it has 64. */
static uint64_t last_of_both(const uint64_t *words, const uint32_t *other, uint32_t n_docs)
{
    const size_t w = n_docs / 64;
    if (n_docs % 64 == 0)
        return 0;
    const uint64_t x = other[2 * w] | (n_docs % 64 > 32 ? (uint64_t)other[2 * w + 1] << 32 : 0);
    return words[w] & x & ((UINT64_C(1) << n_docs % 64) - 1);
}

static uint64_t count_both(const uint64_t *words, const uint32_t *other, uint32_t n_docs)
{
    uint64_t sum = (uint64_t)__builtin_popcountll(last_of_both(words, other, n_docs)), x;
    for (size_t w = 0; w < n_docs / 64; ++w) {
        memcpy(&x, other + 2 * w, sizeof x);
        sum += (uint64_t)__builtin_popcountll(words[w] & x);
    }
    return sum;
}

static void rank(const uint64_t *words, size_t n, uint32_t *ranks)
{
    ranks[0] = 0;
    for (size_t w = 0; w < n; ++w)
        ranks[w + 1] = ranks[w] + (uint32_t)__builtin_popcountll(words[w]);
}

static uint32_t list(const uint64_t *words, uint32_t n, uint32_t first, uint32_t *out)
{
    uint32_t at = 0;
    for (uint32_t w = 0; w < n; ++w)
        for (uint64_t left = words[w]; left; left &= left - 1)
            out[at++] = first + 64 * w + (uint32_t)__builtin_ctzll(left);
    return at;
}

static const gx_filter_kernels portable = {select_u8, select_u16, select_u32, select_u64, select_double,
                                           count,     count_both, rank,       list};

/* ---- AVX2 ---- */

#ifdef __x86_64__
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("avx2,popcnt")

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

/* A value is in [low, high] where value - low is at most high - low, as unsigned numbers: where the
 * smaller one of the two is the first. The bits of 64 values: */
static inline uint64_t word_u8(const uint8_t *v, __m256i low, __m256i span)
{
    const __m256i a = _mm256_sub_epi8(load(v), low), b = _mm256_sub_epi8(load(v + 32), low);
    const uint32_t x = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(a, span), a));
    const uint32_t y = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(b, span), b));
    return (uint64_t)y << 32 | x;
}

static inline uint32_t half_u16(const uint16_t *v, __m256i low, __m256i span)
{
    __m256i a = _mm256_sub_epi16(load(v), low), b = _mm256_sub_epi16(load(v + 16), low);
    a = _mm256_cmpeq_epi16(_mm256_min_epu16(a, span), a);
    b = _mm256_cmpeq_epi16(_mm256_min_epu16(b, span), b);
    return (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xd8));
}

static inline uint64_t word_u16(const uint16_t *v, __m256i low, __m256i span)
{
    return (uint64_t)half_u16(v + 32, low, span) << 32 | half_u16(v, low, span);
}

static inline uint64_t word_u32(const uint32_t *v, __m256i low, __m256i span)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < 64; i += 8) {
        const __m256i a = _mm256_sub_epi32(load(v + i), low);
        const __m256i is_in = _mm256_cmpeq_epi32(_mm256_min_epu32(a, span), a);
        word |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(is_in)) << i;
    }
    return word;
}

static inline uint64_t word_u64(const uint64_t *v, __m256i low, __m256i span)
{
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN), most = _mm256_xor_si256(span, sign);
    uint64_t outside = 0;
    for (uint32_t i = 0; i < 64; i += 4) {
        const __m256i a = _mm256_xor_si256(_mm256_sub_epi64(load(v + i), low), sign);
        outside |= (uint64_t)(uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(a, most))) << i;
    }
    return ~outside;
}

static inline uint64_t word_double(const double *v, __m256d low, __m256d high)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < 64; i += 4) {
        const __m256d a = _mm256_loadu_pd(v + i);
        const __m256d is_in = _mm256_and_pd(_mm256_cmp_pd(a, low, _CMP_GE_OQ), _mm256_cmp_pd(a, high, _CMP_LE_OQ));
        word |= (uint64_t)(uint32_t)_mm256_movemask_pd(is_in) << i;
    }
    return word;
}

#define SELECT_AVX2(NAME, TYPE, A, B)                                                                                  \
    static void select_##NAME##_avx2(const TYPE *values, uint32_t n, TYPE low, TYPE high, uint64_t *words)             \
    {                                                                                                                  \
        const uint32_t whole = n / 64 * 64;                                                                            \
        for (uint32_t d = 0; d < whole; d += 64)                                                                       \
            words[d / 64] = word_##NAME(values + d, A, B);                                                             \
        if (whole < n)                                                                                                 \
            select_##NAME(values + whole, n - whole, low, high, words + whole / 64);                                   \
    }
SELECT_AVX2(u8, uint8_t, _mm256_set1_epi8((char)low), _mm256_set1_epi8((char)(high - low)))
SELECT_AVX2(u16, uint16_t, _mm256_set1_epi16((short)low), _mm256_set1_epi16((short)(high - low)))
SELECT_AVX2(u32, uint32_t, _mm256_set1_epi32((int)low), _mm256_set1_epi32((int)(high - low)))
SELECT_AVX2(u64, uint64_t, _mm256_set1_epi64x((long long)low), _mm256_set1_epi64x((long long)(high - low)))
SELECT_AVX2(double, double, _mm256_set1_pd(low), _mm256_set1_pd(high))

static uint64_t count_avx2(const uint64_t *words, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += (uint64_t)_mm_popcnt_u64(words[i]);
    return sum;
}

static uint64_t count_both_avx2(const uint64_t *words, const uint32_t *other, uint32_t n_docs)
{
    uint64_t sum = (uint64_t)_mm_popcnt_u64(last_of_both(words, other, n_docs)), x;
    for (size_t w = 0; w < n_docs / 64; ++w) {
        memcpy(&x, other + 2 * w, sizeof x);
        sum += (uint64_t)_mm_popcnt_u64(words[w] & x);
    }
    return sum;
}

static void rank_avx2(const uint64_t *words, size_t n, uint32_t *ranks)
{
    ranks[0] = 0;
    for (size_t w = 0; w < n; ++w)
        ranks[w + 1] = ranks[w] + (uint32_t)_mm_popcnt_u64(words[w]);
}

#pragma GCC pop_options

static const gx_filter_kernels avx2 = {select_u8_avx2,  select_u16_avx2,    select_u32_avx2,
                                       select_u64_avx2, select_double_avx2, count_avx2,
                                       count_both_avx2, rank_avx2,          list};

/* ---- AVX-512 ---- */

#pragma GCC push_options
#pragma GCC target("avx512f,popcnt")

/* 16 bits at a time, and no branch for each bit, of which one a word would be predicted wrongly. */
static uint32_t list_avx512(const uint64_t *words, uint32_t n, uint32_t first, uint32_t *out)
{
    const __m512i step = _mm512_set1_epi32(16);
    __m512i numbers = _mm512_add_epi32(_mm512_set1_epi32((int)first),
                                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    uint32_t at = 0;
    for (uint32_t w = 0; w < n; ++w)
        for (uint32_t i = 0; i < 64; i += 16) {
            const uint32_t bits = (uint32_t)(words[w] >> i) & 0xffff;
            _mm512_storeu_si512(out + at, _mm512_maskz_compress_epi32((__mmask16)bits, numbers));
            at += (uint32_t)_mm_popcnt_u32(bits);
            numbers = _mm512_add_epi32(numbers, step);
        }
    return at;
}

#pragma GCC pop_options

static const gx_filter_kernels avx512 = {select_u8_avx2,  select_u16_avx2,    select_u32_avx2,
                                         select_u64_avx2, select_double_avx2, count_avx2,
                                         count_both_avx2, rank_avx2,          list_avx512};
#endif

const gx_filter_kernels *gx_filter_kernels_best(void)
{
#ifdef __x86_64__
    if (strcmp(gx_simd_best()->name, "avx512") == 0)
        return &avx512;
    if (strcmp(gx_simd_best()->name, "portable") != 0)
        return &avx2;
#endif
    return &portable;
}
