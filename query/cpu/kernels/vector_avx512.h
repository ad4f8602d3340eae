/* vector_avx512.h: the vectors of kernels_template.h in AVX-512 with VBMI (Ice Lake, Zen 4 and
 * later), which have 16 lanes. VPCOMPRESSD brings lanes together. Packed integers of any width take
 * one byte permutation, one shift of each and one mask. The file that includes this header asks the
 * compiler for AVX-512 first.
 */
#ifndef GX_QUERY_CPU_KERNELS_VECTOR_AVX512_H
#define GX_QUERY_CPU_KERNELS_VECTOR_AVX512_H

#include <immintrin.h>

#include "codecs/words/unpack_avx512.h"
#include "query/cpu/kernels/kernels.h"

#define LANES 16u
typedef __m512i vec;
typedef __m512 fvec;
typedef __mmask16 bits, lanes, order;

#define first_bits(at, n) ((__mmask16)((n) - (at) >= 16 ? 0xffff : (1u << ((n) - (at))) - 1))
#define first_lanes(at, n) first_bits(at, n)
#define count(m) ((uint32_t)_mm_popcnt_u32(m))

#define v_load(a) _mm512_loadu_si512(a)
#define v_store(a, x) _mm512_storeu_si512(a, x)
#define v_splat(x) _mm512_set1_epi32((int)(x))
#define v_add(a, b) _mm512_add_epi32(a, b)
#define v_sub(a, b) _mm512_sub_epi32(a, b)
#define v_min(a, b) _mm512_min_epu32(a, b)
#define v_max(a, b) _mm512_max_epu32(a, b)
#define v_and(a, b) _mm512_and_si512(a, b)
#define v_or(a, b) _mm512_or_si512(a, b)
#define v_without(a, b) _mm512_andnot_si512(b, a)
#define v_shift(a, by) _mm512_srl_epi32(a, _mm_cvtsi32_si128((int)(by)))
#define v_shift_each(a, b) _mm512_srlv_epi32(a, b)
#define v_left_each(a, b) _mm512_sllv_epi32(a, b)
#define v_load_bytes(a) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(a)))
#define v_word(slot) _mm512_srli_epi32(slot, 5)
#define v_bit(slot) _mm512_sllv_epi32(v_splat(1), v_and(slot, v_splat(31)))
#define v_at_least(m, a, b) _mm512_mask_cmpge_epu32_mask(m, a, b)
#define v_below(m, a, b) _mm512_mask_cmplt_epu32_mask(m, a, b)
#define v_bytes_in(m, x, low, span)                                                                                    \
    ((bits)((m)&any_of(_mm512_movm_epi8(_mm512_cmple_epu8_mask(_mm512_sub_epi8(x, low), span)))))
#define v_halves_in(m, x, low, span)                                                                                   \
    ((bits)((m)&any_of(_mm512_movm_epi16(_mm512_cmple_epu16_mask(_mm512_sub_epi16(x, low), span)))))
#define v_any(x, b) _mm512_test_epi32_mask(x, b)
#define v_none(x, b) _mm512_testn_epi32_mask(x, b)
#define v_add_where(a, x, b, y) _mm512_mask_add_epi32(a, v_any(x, b), a, y)
#define v_sub_where(a, x, b, y) _mm512_mask_sub_epi32(a, v_any(x, b), a, y)
#define v_sub_unless(a, x, b, y) _mm512_mask_sub_epi32(a, v_none(x, b), a, y)
#define v_clear_unless(a, x, b, y) _mm512_mask_andnot_epi32(a, v_none(x, b), y, a)
#define v_lanes_below(m, a, b) v_below(m, a, b)
#define v_gather(base, at, m) _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), m, at, base, 4)
#define v_gather_bytes(base, at, m) _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), m, at, base, 1)
#define v_pick16(base, at) v_shift(v_gather_bytes((const uint8_t *)(base)-2, v_add(v_load(at), v_load(at)), 0xffff), 16)
#define v_pick8(base, at) v_shift(v_gather_bytes((const uint8_t *)(base)-3, v_load(at), 0xffff), 24)
#define v_of8(base, at, m)                                                                                             \
    _mm512_permutexvar_epi32(at, _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)(base))))

#define f_load(a) _mm512_loadu_ps(a)
#define f_store(a, x) _mm512_storeu_ps(a, x)
#define f_splat(x) _mm512_set1_ps(x)
#define f_from(x) _mm512_cvtepu32_ps(x)
#define f_round(x) _mm512_cvtps_epi32(x)
#define f_add(a, b) _mm512_add_ps(a, b)
#define f_mul(a, b) _mm512_mul_ps(a, b)
#define f_div(a, b) _mm512_div_ps(a, b)
#define f_div_where(m, a, b) _mm512_maskz_div_ps(m, a, b)
#define f_max(a, b) _mm512_max_ps(a, b)
#define f_min_where(m, a, b) _mm512_mask_min_ps(a, m, a, b)
#define f_least(x) _mm512_reduce_min_ps(x)
#define f_greatest(x) _mm512_reduce_max_ps(x)

#define order_of(m) (m)
#define compress_store(a, to, o, x) v_store((a) + (to), _mm512_maskz_compress_epi32(o, x))
#define compress_store_f(a, to, o, x) f_store((a) + (to), _mm512_maskz_compress_ps(o, x))

/* The lanes of which a bit is set. */
static inline __mmask16 any_of(__m512i x)
{
    return _mm512_test_epi32_mask(x, x);
}

/* Where the words are close, two loads and a permutation replace the gather. */
static inline __m512i v_gather_near(const uint32_t *base, __m512i at, uint32_t low, uint32_t high, __mmask16 m)
{
    if (high - low < 32)
        return _mm512_permutex2var_epi32(v_load(base + low), v_sub(at, v_splat(low)), v_load(base + low + 16));
    return v_gather(base, at, m);
}

/* ---- the bitmap of a dense list ---- */

/* Of 8 documents: whether the bitmap has them, and how many bits come before within the word. */
static inline __mmask8 bits8(const uint64_t *bitmap, __m256i doc, __mmask8 m, __m256i *before)
{
    const __m512i word = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), m, _mm256_srli_epi32(doc, 6), bitmap, 8);
    const __m512i bit =
        _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_cvtepu32_epi64(_mm256_and_si256(doc, _mm256_set1_epi32(63))));
    *before =
        _mm512_cvtepi64_epi32(_mm512_popcnt_epi64(_mm512_and_si512(word, _mm512_sub_epi64(bit, _mm512_set1_epi64(1)))));
    return _mm512_mask_test_epi64_mask(m, word, bit);
}

#define OWN_DENSE_POSITIONS
static uint32_t dense_positions(const gx_cpu_columns *c, gx_cpu_dense d, uint32_t bit, uint32_t *pos)
{
    const uint32_t n = c->n;
    uint32_t asked = 0;
    for (uint32_t v = 0; v < n; v += 16) {
        const __m512i doc = v_load(c->doc + v);
        const __mmask16 m = _mm512_mask_test_epi32_mask(first_bits(v, n), v_load(c->list_mask + v), v_splat(bit));
        __m256i lo, hi;
        const __mmask8 in_lo = bits8(d.bits, _mm512_castsi512_si256(doc), (__mmask8)m, &lo);
        const __mmask8 in_hi = bits8(d.bits, _mm512_extracti64x4_epi64(doc, 1), (__mmask8)(m >> 8), &hi);
        const __mmask16 in = (__mmask16)(in_lo | in_hi << 8);
        const __m512i rank = v_gather(d.rank, _mm512_srli_epi32(doc, 6), in);
        const __m512i sum = v_add(rank, _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1));
        v_store(pos + v, _mm512_mask_mov_epi32(v_splat(UINT32_MAX), in, sum));
        asked += count(m);
    }
    return asked;
}

/* ---- packed blocks ---- */

#define MAX_DOCID_BITS 25
#define MAX_TF_BITS 8
#define SCAN_END(n) 128u

static void unpack_docids(const uint32_t *words, uint32_t b, uint32_t n, uint32_t first, uint32_t *docids)
{
    if (b > 16) {
        gx_unpack_docids16(words, b, n, first, docids);
        return;
    }
    const gx_unpacker512 u = gx_unpack_halves_from(words, b);
    __m512i prefix = gx_first_prefix(first, 2);
    gx_unpack_docids128(&u, 0, n, &prefix, docids);
}

typedef struct block_tfs {
    uint64_t reaching[2]; /* a bit a posting */
    __m512i less_one[2];  /* the tfs less one, a byte each */
} block_tfs;

static inline bool unpack_tfs(block_tfs *t, const uint32_t *words, uint32_t b, uint32_t n, uint32_t min_tf)
{
    uint64_t low = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1, high = 0;
    const __m512i low_tfs = gx_unpack_bytes(words, b, 0);
    __m512i high_tfs = _mm512_setzero_si512();
    if (n > 64) {
        high = n >= 128 ? UINT64_MAX : (UINT64_C(1) << (n - 64)) - 1;
        high_tfs = gx_unpack_bytes(words, b, 1);
    }
    if (min_tf > 1) {
        const __m512i least = _mm512_set1_epi8((char)(min_tf - 1));
        if (min_tf > 256)
            return false;
        low &= _mm512_cmpge_epu8_mask(low_tfs, least);
        high &= _mm512_cmpge_epu8_mask(high_tfs, least);
        if (!(low | high))
            return false;
    }
    *t = (block_tfs){{low, high}, {low_tfs, high_tfs}};
    return true;
}

static inline __mmask16 reaching_tfs(const block_tfs *t, uint32_t at)
{
    return (__mmask16)(t->reaching[at / 64] >> at % 64);
}

static inline __m512i tfs_at(const block_tfs *t, uint32_t at)
{
    const __m128i bytes = _mm_load_si128((const __m128i *)(const void *)t->less_one + at / 16);
    return v_add(_mm512_cvtepu8_epi32(bytes), v_splat(1));
}

#endif
