/* The kernels in AVX-512 with VBMI (Ice Lake, Zen 4 and later): 16 candidates a vector, compressed
 * with VPCOMPRESSD; packed integers of any width by one byte permutation, one multishift and one
 * mask. */
#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vpopcntdq,bmi2,popcnt,lzcnt")
#include <immintrin.h>

#include "codecs/packed_tables.h"
#include "query/cpu/kernels.h"

typedef uint32_t u32;

#define LANES(at, n) ((__mmask16)((n) - (at) >= 16 ? 0xffff : (1u << ((n) - (at))) - 1))

/* Write the lanes of m to the column a at `to`, without gaps. */
static inline void compress_store(u32 *a, u32 to, __mmask16 m, __m512i v)
{
    _mm512_storeu_si512(a + to, _mm512_maskz_compress_epi32(m, v));
}

static inline __m512i splat(u32 x)
{
    return _mm512_set1_epi32((int)x);
}
static inline u32 count(__mmask16 m)
{
    return (u32)_mm_popcnt_u32(m);
}

static inline __m512i impact16(__m512i tf, __m512 w, __m512 K)
{
    const __m512 f = _mm512_cvtepu32_ps(tf);
    const __m512 x = _mm512_div_ps(_mm512_mul_ps(w, f), _mm512_add_ps(f, K));
    return _mm512_max_epu32(_mm512_cvtps_epi32(x), splat(1));
}

/* ---- packed blocks ---- */

/* 64 integers of up to 8 bits to bytes: lane q of 8 bytes takes b bytes. */
#define FROM8(b, q, t) (q) * (b) + (t)
#define SHIFT8(b, q, t) (t) * (b)
static const _Alignas(64) uint8_t from8[9][64] = {GX_ROWS_TO_8(FROM8)}, shift8[9][64] = {GX_ROWS_TO_8(SHIFT8)};

/* 32 integers of up to 12 bits to 16 bits each: lane q of 8 bytes takes 4 integers. */
#define FROM16(b, q, t) (q) * 4 * (b) / 8 + (t)
#define SHIFT16(b, q, t) (q) * 4 * (b) % 8 + (t) / 2 * (b) + 8 * ((t)&1)
static const _Alignas(64) uint8_t from16[13][64] = {GX_ROWS_TO_12(FROM16)}, shift16[13][64] = {GX_ROWS_TO_12(SHIFT16)};

/* 16 integers of up to 25 bits to 32 bits each; the shifts lie in the lanes' first bytes. */
#define FROM32(b, q, t) (2 * (q) + (t) / 4) * (b) / 8 + (t) % 4
#define SHIFT32(b, q, t) ((t) % 4 ? 0 : (2 * (q) + (t) / 4) * (b) % 8)
static const _Alignas(64) uint8_t from32[26][64] = {GX_ROWS_TO_25(FROM32)}, shift32[26][64] = {GX_ROWS_TO_25(SHIFT32)};

/* tf - 1 of postings 64 g to 64 g + 63, as bytes. */
static inline __m512i tfs64(const u32 *words, u32 b, u32 g)
{
    const __m512i bytes =
        _mm512_permutexvar_epi8(_mm512_load_si512(from8[b]), _mm512_loadu_si512((const uint8_t *)words + 8 * b * g));
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(_mm512_load_si512(shift8[b]), bytes),
                            _mm512_set1_epi8((char)((1 << b) - 1)));
}

/* Inclusive sums of 16 lanes. */
static inline __m512i sums16(__m512i x)
{
    const __m512i zero = _mm512_setzero_si512();
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
    return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
}

/* d[i] = first - 1 + sum over j <= i of (v[j] + 1), v[0] being 0. Sums of 8 fit 16 bits when b <=
 * 12: each vector of 32 is summed in its 16-byte lanes, then the lanes' totals are. */
static inline void unpack_narrow(const uint8_t *p, u32 b, u32 n, u32 first, u32 *docids)
{
    const __m512i from = _mm512_load_si512(from16[b]), shift = _mm512_load_si512(shift16[b]);
    const __m512i mask = _mm512_set1_epi16((short)((1 << b) - 1)), one = _mm512_set1_epi16(1);
    const __m512i lane_ends = _mm512_castsi128_si512(_mm_setr_epi16(7, 15, 23, 31, 7, 15, 23, 31));
    const __m512i lane_of_8 = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    __m512i x[4];
#pragma GCC unroll 4
    for (u32 g = 0; g < 4; ++g) {
        if (32 * g >= n) {
            x[g] = _mm512_setzero_si512();
            continue;
        }
        __m512i v = _mm512_permutexvar_epi8(from, _mm512_loadu_si512(p + 4 * b * g));
        v = _mm512_add_epi16(_mm512_and_si512(_mm512_multishift_epi64_epi8(shift, v), mask), one);
        v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 2));
        v = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 4));
        x[g] = _mm512_add_epi16(v, _mm512_bslli_epi128(v, 8));
    }
    const __m128i t01 = _mm512_castsi512_si128(_mm512_permutexvar_epi16(lane_ends, x[0]));
    const __m128i t1 = _mm512_castsi512_si128(_mm512_permutexvar_epi16(lane_ends, x[1]));
    const __m128i t2 = _mm512_castsi512_si128(_mm512_permutexvar_epi16(lane_ends, x[2]));
    const __m128i t3 = _mm512_castsi512_si128(_mm512_permutexvar_epi16(lane_ends, x[3]));
    const __m256i ends = _mm256_set_m128i(_mm_unpacklo_epi64(t2, t3), _mm_unpacklo_epi64(t01, t1));
    const __m512i totals = _mm512_cvtepu16_epi32(ends);
    const __m512i before = _mm512_add_epi32(_mm512_sub_epi32(sums16(totals), totals), splat(first - 1));
#pragma GCC unroll 4
    for (u32 g = 0; g < 4; ++g) {
        const __m512i lo = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x[g]));
        const __m512i hi = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x[g], 1));
        _mm512_store_si512(
            docids + 32 * g,
            _mm512_add_epi32(lo, _mm512_permutexvar_epi32(_mm512_add_epi32(lane_of_8, splat(4 * g)), before)));
        _mm512_store_si512(
            docids + 32 * g + 16,
            _mm512_add_epi32(hi, _mm512_permutexvar_epi32(_mm512_add_epi32(lane_of_8, splat(4 * g + 2)), before)));
    }
}

static inline void unpack_wide(const uint8_t *p, u32 b, u32 n, u32 first, u32 *docids)
{
    const __m512i from = _mm512_load_si512(from32[b]), shift = _mm512_load_si512(shift32[b]),
                  mask = splat((1u << b) - 1);
    __m512i carry = splat(first - 1);
    for (u32 v = 0; 16 * v < n; ++v) {
        const __m512i bytes = _mm512_permutexvar_epi8(from, _mm512_loadu_si512(p + 2 * b * v));
        __m512i x = _mm512_add_epi32(_mm512_and_si512(_mm512_srlv_epi32(bytes, shift), mask), splat(1));
        x = _mm512_add_epi32(sums16(x), carry);
        _mm512_store_si512(docids + 16 * v, x);
        carry = _mm512_permutexvar_epi32(splat(15), x);
    }
}

/* docids is aligned and has room for 128. */
static void unpack_docids(const u32 *words, u32 bits, u32 n, u32 first, u32 *docids)
{
    if (bits <= 12)
        unpack_narrow((const uint8_t *)words, bits, n, first, docids);
    else
        unpack_wide((const uint8_t *)words, bits, n, first, docids);
}

/* Append 16 postings' candidates. */
static inline void append16(gx_cpu_columns *c, __mmask16 m, __m512i doc, __m512i tf, const gx_cpu_bound *b)
{
    m &= _mm512_cmplt_epu32_mask(doc, splat(c->n_docs));
    const __m512 f = _mm512_cvtepu32_ps(tf);
    const __m512 x = _mm512_div_ps(_mm512_mul_ps(_mm512_set1_ps(b->w), f), _mm512_add_ps(f, _mm512_set1_ps(b->min_K)));
    const __m512i bound = _mm512_min_epu32(_mm512_add_epi32(_mm512_cvtps_epi32(x), splat(2)), splat(b->most));
    compress_store(c->doc, c->n, m, doc);
    compress_store(c->tf, c->n, m, tf);
    compress_store(c->score, c->n, m, bound);
    _mm512_storeu_si512(c->remaining_ub + c->n, splat(b->remaining_ub));
    _mm512_storeu_si512(c->list_mask + c->n, splat(UINT32_MAX));
    c->n += count(m);
}

static bool scan_packed_block(gx_cpu_columns *c, const u32 *docids, u32 docid_bits, const u32 *tfs, u32 tf_bits, u32 n,
                              u32 first, const gx_cpu_bound *b)
{
    uint64_t m[2] = {n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1, 0};
    __m512i t[2] = {tfs64(tfs, tf_bits, 0), _mm512_setzero_si512()};
    _Alignas(64) u32 unpacked[128];
    if (n > 64) {
        m[1] = n >= 128 ? UINT64_MAX : (UINT64_C(1) << (n - 64)) - 1;
        t[1] = tfs64(tfs, tf_bits, 1);
    }
    if (b->min_tf > 1) {
        if (b->min_tf > 256)
            return false;
        const __m512i least = _mm512_set1_epi8((char)(b->min_tf - 1));
        m[0] &= _mm512_cmpge_epu8_mask(t[0], least);
        m[1] &= _mm512_cmpge_epu8_mask(t[1], least);
        if (!(m[0] | m[1]))
            return false;
    }
    unpack_docids(docids, docid_bits, n, first, unpacked);
    _Alignas(64) uint8_t bytes[128];
    _mm512_store_si512(bytes, t[0]);
    _mm512_store_si512(bytes + 64, t[1]);
    for (u32 v = 0; v < 8; ++v) {
        const __mmask16 lanes = (__mmask16)(m[v / 4] >> 16 * (v % 4));
        if (!lanes)
            continue;
        const __m512i tf = _mm512_add_epi32(
            _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)(const void *)(bytes + 16 * v))), splat(1));
        append16(c, lanes, _mm512_load_si512(unpacked + 16 * v), tf, b);
    }
    return true;
}

/* ---- decoded blocks ---- */

static bool any_tf_reaches(const u32 *tfs, u32 n, u32 min_tf)
{
    for (u32 v = 0; v < n; v += 16) {
        if (_mm512_mask_cmpge_epu32_mask(LANES(v, n), _mm512_loadu_si512(tfs + v), splat(min_tf)))
            return true;
    }
    return false;
}

static void append_decoded_block(gx_cpu_columns *c, const u32 *docids, const u32 *tfs, u32 n, const gx_cpu_bound *b)
{
    for (u32 v = 0; v < n; v += 16) {
        const __m512i tf = _mm512_loadu_si512(tfs + v);
        const __mmask16 m = _mm512_mask_cmpge_epu32_mask(LANES(v, n), tf, splat(b->min_tf));
        if (m)
            append16(c, m, _mm512_loadu_si512(docids + v), tf, b);
    }
}

static u32 count_below(const u32 *docids, u32 n, u32 doc)
{
    for (u32 v = 0; v < n; v += 16) {
        const __mmask16 m = _mm512_mask_cmpge_epu32_mask(LANES(v, n), _mm512_loadu_si512(docids + v), splat(doc));
        if (m)
            return v + (u32)__builtin_ctz(m);
    }
    return n;
}

static float saturate_tfs(const u32 *docids, const u32 *tfs, u32 n, u32 n_docs, const u32 *lens, gx_scorer norm,
                          float *parts, float *min_K)
{
    const __m512 c0 = _mm512_set1_ps(norm.c0), c1 = _mm512_set1_ps(norm.c1);
    __m512 most = _mm512_setzero_ps(), least = _mm512_set1_ps(INFINITY);
    for (u32 v = 0; v < n; v += 16) {
        const __m512i doc = _mm512_loadu_si512(docids + v);
        const __mmask16 m = _mm512_mask_cmplt_epu32_mask(LANES(v, n), doc, splat(n_docs));
        const __m512 len = _mm512_cvtepu32_ps(_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), m, doc, lens, 4));
        const __m512 K = _mm512_add_ps(c0, _mm512_mul_ps(c1, len)), f = _mm512_cvtepu32_ps(_mm512_loadu_si512(tfs + v));
        const __m512 x = _mm512_maskz_div_ps(m, f, _mm512_add_ps(f, K));
        most = _mm512_mask_max_ps(most, m, most, x);
        least = _mm512_mask_min_ps(least, m, least, K);
        _mm512_storeu_ps(parts + v, x);
    }
    *min_K = _mm512_reduce_min_ps(least);
    return _mm512_reduce_max_ps(most);
}

/* ---- steps of a batch ---- */

static void apply_presence_map(gx_cpu_columns *c, const u32 *map, u32 shift, u32 mask, u32 ub, u32 bit, u32 T, bool all)
{
    const __m128i by = _mm_cvtsi32_si128((int)shift);
    const u32 n = c->n;
    u32 to = 0;
    for (u32 v = 0; v < n; v += 16) {
        const __m512i doc = _mm512_load_si512(c->doc + v), score = _mm512_load_si512(c->score + v);
        const __m512i slot = _mm512_srl_epi32(doc, by),
                      word = _mm512_and_si512(_mm512_srli_epi32(slot, 5), splat(mask));
        const u32 last = (v + 15 < n ? v + 15 : n - 1), w0 = c->doc[v] >> shift >> 5 & mask,
                  w1 = c->doc[last] >> shift >> 5 & mask;
        __mmask16 m = LANES(v, n);
        __m512i words;
        if (w1 - w0 < 32) /* neighbours are close: two loads and a permutation instead of a gather */
            words = _mm512_permutex2var_epi32(_mm512_loadu_si512(map + w0), _mm512_sub_epi32(word, splat(w0)),
                                              _mm512_loadu_si512(map + w0 + 16));
        else
            words = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), m, word, map, 4);
        const __mmask16 absent =
            _mm512_testn_epi32_mask(words, _mm512_sllv_epi32(splat(1), _mm512_and_si512(slot, splat(31))));
        __m512i remaining_ub = _mm512_load_si512(c->remaining_ub + v), list_mask = _mm512_load_si512(c->list_mask + v);
        remaining_ub = _mm512_mask_sub_epi32(remaining_ub, absent, remaining_ub, splat(ub));
        list_mask = _mm512_mask_andnot_epi32(list_mask, absent, splat(bit), list_mask);
        m = _mm512_mask_cmpge_epu32_mask(m, _mm512_add_epi32(score, remaining_ub), splat(T));
        if (all)
            m &= (__mmask16)~absent;
        const __m512i tf = _mm512_load_si512(c->tf + v);
        compress_store(c->doc, to, m, doc);
        compress_store(c->tf, to, m, tf);
        compress_store(c->score, to, m, score);
        compress_store(c->remaining_ub, to, m, remaining_ub);
        compress_store(c->list_mask, to, m, list_mask);
        to += count(m);
    }
    c->n = to;
}

static void score_own(gx_cpu_columns *c, const u32 *lens, gx_scorer norm, float w, u32 T)
{
    const __m512 c0 = _mm512_set1_ps(norm.c0), c1 = _mm512_set1_ps(norm.c1), weight = _mm512_set1_ps(w);
    const u32 n = c->n;
    u32 to = 0;
    for (u32 v = 0; v < n; v += 16) {
        const __m512i doc = _mm512_load_si512(c->doc + v), remaining_ub = _mm512_load_si512(c->remaining_ub + v),
                      list_mask = _mm512_load_si512(c->list_mask + v);
        __mmask16 m = LANES(v, n);
        const __m512 len = _mm512_cvtepu32_ps(_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), m, doc, lens, 4));
        const __m512 K = _mm512_add_ps(c0, _mm512_mul_ps(c1, len));
        const __m512i score = impact16(_mm512_load_si512(c->tf + v), weight, K);
        m = _mm512_mask_cmpge_epu32_mask(m, _mm512_add_epi32(score, remaining_ub), splat(T));
        compress_store(c->doc, to, m, doc);
        compress_store(c->score, to, m, score);
        compress_store(c->remaining_ub, to, m, remaining_ub);
        compress_store(c->list_mask, to, m, list_mask);
        _mm512_storeu_ps(c->K + to, _mm512_maskz_compress_ps(m, K));
        to += count(m);
    }
    c->n = to;
}

/* Of 8 documents: whether the bitmap has them, and how many bits come before within the word. */
static inline __mmask8 bits8(const uint64_t *bits, __m256i doc, __mmask8 m, __m256i *before)
{
    const __m512i word = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), m, _mm256_srli_epi32(doc, 6), bits, 8);
    const __m512i bit =
        _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_cvtepu32_epi64(_mm256_and_si256(doc, _mm256_set1_epi32(63))));
    *before =
        _mm512_cvtepi64_epi32(_mm512_popcnt_epi64(_mm512_and_si512(word, _mm512_sub_epi64(bit, _mm512_set1_epi64(1)))));
    return _mm512_mask_test_epi64_mask(m, word, bit);
}

static u32 dense_positions(const gx_cpu_columns *c, gx_cpu_dense d, u32 bit, u32 *pos)
{
    const u32 n = c->n;
    u32 asked = 0;
    for (u32 v = 0; v < n; v += 16) {
        const __m512i doc = _mm512_load_si512(c->doc + v);
        const __mmask16 m = _mm512_mask_test_epi32_mask(LANES(v, n), _mm512_load_si512(c->list_mask + v), splat(bit));
        __m256i lo, hi;
        const __mmask8 in_lo = bits8(d.bits, _mm512_castsi512_si256(doc), (__mmask8)m, &lo);
        const __mmask8 in_hi = bits8(d.bits, _mm512_extracti64x4_epi64(doc, 1), (__mmask8)(m >> 8), &hi);
        const __mmask16 in = (__mmask16)(in_lo | in_hi << 8);
        const __m512i rank =
            _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), in, _mm512_srli_epi32(doc, 6), d.rank, 4);
        const __m512i sum = _mm512_add_epi32(rank, _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1));
        _mm512_storeu_si512(pos + v, _mm512_mask_mov_epi32(splat(UINT32_MAX), in, sum));
        asked += count(m);
    }
    return asked;
}

static void add_list_score(gx_cpu_columns *c, const u32 *tfs, float w, u32 ub, u32 bit, u32 T, bool all)
{
    const __m512 weight = _mm512_set1_ps(w);
    const u32 n = c->n;
    u32 to = 0;
    for (u32 v = 0; v < n; v += 16) {
        const __m512i doc = _mm512_load_si512(c->doc + v), list_mask = _mm512_load_si512(c->list_mask + v),
                      tf = _mm512_loadu_si512(tfs + v);
        const __m512 K = _mm512_load_ps(c->K + v);
        const __mmask16 held = _mm512_test_epi32_mask(tf, tf), asked = _mm512_test_epi32_mask(list_mask, splat(bit));
        __m512i score = _mm512_load_si512(c->score + v), remaining_ub = _mm512_load_si512(c->remaining_ub + v);
        score = _mm512_mask_add_epi32(score, held, score, impact16(tf, weight, K));
        remaining_ub = _mm512_mask_sub_epi32(remaining_ub, asked, remaining_ub, splat(ub));
        __mmask16 m = _mm512_mask_cmpge_epu32_mask(LANES(v, n), _mm512_add_epi32(score, remaining_ub), splat(T));
        if (all)
            m &= held;
        compress_store(c->doc, to, m, doc);
        compress_store(c->score, to, m, score);
        compress_store(c->remaining_ub, to, m, remaining_ub);
        compress_store(c->list_mask, to, m, list_mask);
        _mm512_storeu_ps(c->K + to, _mm512_maskz_compress_ps(m, K));
        to += count(m);
    }
    c->n = to;
}

const gx_cpu_kernels gx_cpu_avx512 = {
    "avx512",
    "AVX-512",
    scan_packed_block,
    25,
    8,
    unpack_docids,
    any_tf_reaches,
    append_decoded_block,
    apply_presence_map,
    score_own,
    dense_positions,
    add_list_score,
    count_below,
    saturate_tfs,
};
#endif
