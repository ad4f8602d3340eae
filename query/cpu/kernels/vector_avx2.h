/* vector_avx2.h: the vectors of kernels_template.h in AVX2 with BMI2, which have 8 lanes. A table
 * of permutations brings the lanes that are kept together. The file that includes this header asks
 * the compiler for AVX2 first.
 */
#ifndef GX_QUERY_CPU_KERNELS_VECTOR_AVX2_H
#define GX_QUERY_CPU_KERNELS_VECTOR_AVX2_H

#include <immintrin.h>

#include "codecs/words/unpack_avx2.h"
#include "query/cpu/kernels/kernels.h"

#define LANES 8u
typedef __m256i vec, lanes, order;
typedef __m256 fvec;
typedef uint32_t bits;

/* For every set of lanes, their numbers, lowest first, a byte each. */
#define PLACE(m, i) ((uint64_t)((m) >> (i)&1) * (i) << 8 * __builtin_popcount((m) & ((1u << (i)) - 1)))
#define ORDER1(m)                                                                                                      \
    PLACE(m, 0) | PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) | PLACE(m, 6) | PLACE(m, 7)
#define ORDER4(m) ORDER1(m), ORDER1(m + 1), ORDER1(m + 2), ORDER1(m + 3)
#define ORDER16(m) ORDER4(m), ORDER4(m + 4), ORDER4(m + 8), ORDER4(m + 12)
#define ORDER64(m) ORDER16(m), ORDER16(m + 16), ORDER16(m + 32), ORDER16(m + 48)
static const uint64_t orders[256] = {ORDER64(0), ORDER64(64), ORDER64(128), ORDER64(192)};

#define as_f(x) _mm256_castsi256_ps(x)
#define bits_of(m) ((bits)_mm256_movemask_ps(as_f(m)))
#define first_bits(at, n) ((n) - (at) >= 8 ? 0xffu : (1u << ((n) - (at))) - 1)
#define first_lanes(at, n)                                                                                             \
    _mm256_cmpgt_epi32(v_splat((n) - (at) < 8 ? (n) - (at) : 8), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define count(m) ((uint32_t)__builtin_popcount(m))

#define v_load(a) _mm256_loadu_si256((const __m256i *)(const void *)(a))
#define v_store(a, x) _mm256_storeu_si256((__m256i *)(void *)(a), x)
#define v_splat(x) _mm256_set1_epi32((int)(x))
#define v_add(a, b) _mm256_add_epi32(a, b)
#define v_sub(a, b) _mm256_sub_epi32(a, b)
#define v_min(a, b) _mm256_min_epu32(a, b)
#define v_max(a, b) _mm256_max_epu32(a, b)
#define v_and(a, b) _mm256_and_si256(a, b)
#define v_or(a, b) _mm256_or_si256(a, b)
#define v_without(a, b) _mm256_andnot_si256(b, a)
#define v_shift(a, by) _mm256_srl_epi32(a, _mm_cvtsi32_si128((int)(by)))
#define v_shift_each(a, b) _mm256_srlv_epi32(a, b)
#define v_left_each(a, b) _mm256_sllv_epi32(a, b)
#define v_load_bytes(a) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(a)))
#define v_word(slot) _mm256_srli_epi32(slot, 5)
#define v_bit(slot) _mm256_sllv_epi32(v_splat(1), v_and(slot, v_splat(31)))
#define v_at_least(m, a, b) ((m)&bits_of(at_least(a, b)))
#define v_below(m, a, b) ((m) & ~bits_of(at_least(a, b)))
#define v_bytes_in(m, x, low, span) ((m) & ~bits_of(clear(bytes_in(x, low, span), v_splat(-1))))
#define v_halves_in(m, x, low, span) ((m) & ~bits_of(clear(halves_in(x, low, span), v_splat(-1))))
#define v_any(x, b) (~bits_of(clear(x, b)))
#define v_none(x, b) bits_of(clear(x, b))
#define v_add_where(a, x, b, y) v_add(a, _mm256_andnot_si256(clear(x, b), y))
#define v_sub_where(a, x, b, y) v_sub(a, _mm256_andnot_si256(clear(x, b), y))
#define v_sub_unless(a, x, b, y) v_sub(a, v_and(clear(x, b), y))
#define v_clear_unless(a, x, b, y) _mm256_andnot_si256(v_and(clear(x, b), y), a)
#define v_lanes_below(m, a, b) _mm256_andnot_si256(at_least(a, b), m)
#define v_gather(base, at, m) _mm256_mask_i32gather_epi32(v_splat(0), (const int *)(base), at, m, 4)
#define v_gather_bytes(base, at, m) _mm256_mask_i32gather_epi32(v_splat(0), (const int *)(const void *)(base), at, m, 1)
#define v_of8(base, at, m) _mm256_permutevar8x32_epi32(v_load(base), at)

#define f_load(a) _mm256_loadu_ps(a)
#define f_store(a, x) _mm256_storeu_ps(a, x)
#define f_splat(x) _mm256_set1_ps(x)
#define f_round(x) _mm256_cvtps_epi32(x)
#define f_add(a, b) _mm256_add_ps(a, b)
#define f_mul(a, b) _mm256_mul_ps(a, b)
#define f_div(a, b) _mm256_div_ps(a, b)
#define f_div_where(m, a, b) _mm256_and_ps(f_div(a, b), as_f(m))
#define f_max(a, b) _mm256_max_ps(a, b)
#define f_min_where(m, a, b) _mm256_min_ps(a, _mm256_blendv_ps(a, b, as_f(m)))

#define compress_store(a, to, o, x) v_store((a) + (to), _mm256_permutevar8x32_epi32(x, o))
#define compress_store_f(a, to, o, x) f_store((a) + (to), _mm256_permutevar8x32_ps(x, o))

static inline __m256i at_least(__m256i a, __m256i b)
{
    return _mm256_cmpeq_epi32(v_max(a, b), a);
}

/* The lanes in which x has no bit of b. */
static inline __m256i clear(__m256i x, __m256i b)
{
    return _mm256_cmpeq_epi32(v_and(x, b), _mm256_setzero_si256());
}

/* All bits of those numbers of x that are in [low, low + span]: of bytes, and of 16 bits. */
static inline __m256i bytes_in(__m256i x, __m256i low, __m256i span)
{
    const __m256i offset = _mm256_sub_epi8(x, low);
    return _mm256_cmpeq_epi8(_mm256_min_epu8(offset, span), offset);
}

static inline __m256i halves_in(__m256i x, __m256i low, __m256i span)
{
    const __m256i offset = _mm256_sub_epi16(x, low);
    return _mm256_cmpeq_epi16(_mm256_min_epu16(offset, span), offset);
}

static inline order order_of(bits m)
{
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)orders[m]));
}

/* Both halves of x are exact, so that their sum is rounded once. */
static inline __m256 f_from(__m256i x)
{
    const __m256 hi = _mm256_cvtepi32_ps(_mm256_srli_epi32(x, 16)), lo = _mm256_cvtepi32_ps(v_and(x, v_splat(0xffff)));
    return f_add(f_mul(hi, f_splat(65536)), lo);
}

static inline float f_least(__m256 x)
{
    float a[8];
    f_store(a, x);
    for (uint32_t i = 1; i < 8; ++i)
        a[0] = a[i] < a[0] ? a[i] : a[0];
    return a[0];
}

static inline float f_greatest(__m256 x)
{
    float a[8];
    f_store(a, x);
    for (uint32_t i = 1; i < 8; ++i)
        a[0] = a[i] > a[0] ? a[i] : a[0];
    return a[0];
}

/* Where the words are close, one load and a permutation replace the gather. */
static inline __m256i v_gather_near(const uint32_t *base, __m256i at, uint32_t low, uint32_t high, __m256i m)
{
    if (high - low < 8)
        return _mm256_permutevar8x32_epi32(v_load(base + low), v_sub(at, v_splat(low)));
    return v_gather(base, at, m);
}

/* Loads of one number each take less time than a gather on AMD's processors. */
static inline __m256i v_pick16(const void *base, const uint32_t *at)
{
    const uint16_t *const b = base;
    __m128i x = _mm_cvtsi32_si128(b[at[0]]);
    x = _mm_insert_epi16(x, b[at[1]], 1);
    x = _mm_insert_epi16(x, b[at[2]], 2);
    x = _mm_insert_epi16(x, b[at[3]], 3);
    x = _mm_insert_epi16(x, b[at[4]], 4);
    x = _mm_insert_epi16(x, b[at[5]], 5);
    x = _mm_insert_epi16(x, b[at[6]], 6);
    x = _mm_insert_epi16(x, b[at[7]], 7);
    return _mm256_cvtepu16_epi32(x);
}

static inline __m256i v_pick8(const void *base, const uint32_t *at)
{
    const uint8_t *const b = base;
    __m128i x = _mm_cvtsi32_si128(b[at[0]]);
    x = _mm_insert_epi8(x, b[at[1]], 1);
    x = _mm_insert_epi8(x, b[at[2]], 2);
    x = _mm_insert_epi8(x, b[at[3]], 3);
    x = _mm_insert_epi8(x, b[at[4]], 4);
    x = _mm_insert_epi8(x, b[at[5]], 5);
    x = _mm_insert_epi8(x, b[at[6]], 6);
    x = _mm_insert_epi8(x, b[at[7]], 7);
    return _mm256_cvtepu8_epi32(x);
}

/* ---- packed blocks ---- */

#define MAX_DOCID_BITS 25
#define MAX_TF_BITS 25
#define SCAN_END(n) (n)

static void unpack_docids(const uint32_t *words, uint32_t b, uint32_t n, uint32_t first, uint32_t *docids)
{
    gx_unpack_docids8(words, b, n, first, docids);
}

typedef struct block_tfs {
    uint64_t reaching[2]; /* a bit a posting */
    gx_unpacker8 less_one;
} block_tfs;

static inline bool unpack_tfs(block_tfs *t, const uint32_t *words, uint32_t b, uint32_t n, uint32_t min_tf)
{
    const uint64_t low = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1, high = n >= 128 ? UINT64_MAX
                                                                               : n > 64 ? (UINT64_C(1) << (n - 64)) - 1
                                                                                        : 0;
    t->less_one = gx_unpack_from(words, b);
    t->reaching[0] = low;
    t->reaching[1] = high;
    if (min_tf <= 1)
        return true;
    if ((min_tf - 1) >> b) /* more than the width can say */
        return false;
    const gx_unpacker8 u = t->less_one;
    const vec least = v_splat(min_tf - 1);
    uint64_t reaching[2] = {0, 0};
    for (uint32_t g = 0; 8 * g < n; ++g)
        reaching[g / 8] |= (uint64_t)v_at_least(0xffu, gx_unpack8(&u, g), least) << 8 * g % 64;
    t->reaching[0] = reaching[0] & low;
    t->reaching[1] = reaching[1] & high;
    return t->reaching[0] | t->reaching[1];
}

static inline bits reaching_tfs(const block_tfs *t, uint32_t at)
{
    return t->reaching[at / 64] >> at % 64 & 0xff;
}

static inline vec tfs_at(const block_tfs *t, uint32_t at)
{
    return v_add(gx_unpack8(&t->less_one, at / 8), v_splat(1));
}

#endif
