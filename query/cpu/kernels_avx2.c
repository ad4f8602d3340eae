/* The kernels in AVX2 with BMI2: 8 candidates a vector, compressed by a table of permutations. */
#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC target("avx2,bmi,bmi2,popcnt,lzcnt")
#include <immintrin.h>

#include "codecs/unpack_avx2.h"
#include "query/cpu/kernels.h"

typedef uint32_t u32;

/* For every set of lanes their numbers, one a byte, lowest first. */
#define PLACE(m, i) ((uint64_t)((m) >> (i)&1) * (i) << 8 * __builtin_popcount((m) & ((1u << (i)) - 1)))
#define ORDER1(m)                                                                                                      \
    PLACE(m, 0) | PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) | PLACE(m, 6) | PLACE(m, 7)
#define ORDER4(m) ORDER1(m), ORDER1(m + 1), ORDER1(m + 2), ORDER1(m + 3)
#define ORDER16(m) ORDER4(m), ORDER4(m + 4), ORDER4(m + 8), ORDER4(m + 12)
#define ORDER64(m) ORDER16(m), ORDER16(m + 16), ORDER16(m + 32), ORDER16(m + 48)
static const uint64_t orders[256] = {ORDER64(0), ORDER64(64), ORDER64(128), ORDER64(192)};

static inline __m256i load(const u32 *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
static inline void store(u32 *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}
static inline __m256i splat(u32 x)
{
    return _mm256_set1_epi32((int)x);
}
static inline __m256i at_least(__m256i a, __m256i b)
{
    return _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
}
static inline u32 bits_of(__m256i lanes)
{
    return (u32)_mm256_movemask_ps(_mm256_castsi256_ps(lanes));
}
static inline u32 first_lanes(u32 at, u32 n)
{
    return n - at >= 8 ? 0xff : (1u << (n - at)) - 1;
}

/* As vector lanes. */
static inline __m256i lanes_of(u32 at, u32 n)
{
    return _mm256_cmpgt_epi32(splat(n - at < 8 ? n - at : 8), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline __m256i order_of(u32 m)
{
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)orders[m]));
}

/* Write the lanes of the order to the column a at `to`, without gaps. */
static inline void compress_store(u32 *a, u32 to, __m256i order, __m256i v)
{
    store(a + to, _mm256_permutevar8x32_epi32(v, order));
}

/* Rounded once: both halves are exact. */
static inline __m256 to_float(__m256i x)
{
    const __m256 hi = _mm256_cvtepi32_ps(_mm256_srli_epi32(x, 16)),
                 lo = _mm256_cvtepi32_ps(_mm256_and_si256(x, splat(0xffff)));
    return _mm256_add_ps(_mm256_mul_ps(hi, _mm256_set1_ps(65536)), lo);
}

static inline __m256i impact8(__m256i tf, __m256 w, __m256 K)
{
    const __m256 f = to_float(tf);
    return _mm256_max_epu32(_mm256_cvtps_epi32(_mm256_div_ps(_mm256_mul_ps(w, f), _mm256_add_ps(f, K))), splat(1));
}

/* ---- packed blocks ---- */

static void unpack_docids(const u32 *words, u32 bits, u32 n, u32 first, u32 *docids)
{
    gx_unpack_docids8(words, bits, n, first, docids);
}

/* Append 8 postings' candidates, those of m. */
static inline void append8(gx_cpu_columns *c, u32 m, __m256i doc, __m256i tf, const gx_cpu_bound *b)
{
    m &= ~bits_of(at_least(doc, splat(c->n_docs)));
    const __m256 f = to_float(tf);
    const __m256 x = _mm256_div_ps(_mm256_mul_ps(_mm256_set1_ps(b->w), f), _mm256_add_ps(f, _mm256_set1_ps(b->min_K)));
    const __m256i order = order_of(m),
                  bound = _mm256_min_epu32(_mm256_add_epi32(_mm256_cvtps_epi32(x), splat(2)), splat(b->most));
    compress_store(c->doc, c->n, order, doc);
    compress_store(c->tf, c->n, order, tf);
    compress_store(c->score, c->n, order, bound);
    store(c->remaining_ub + c->n, splat(b->remaining_ub));
    store(c->list_mask + c->n, splat(UINT32_MAX));
    c->n += (u32)__builtin_popcount(m);
}

static void append_decoded_block(gx_cpu_columns *c, const u32 *docids, const u32 *tfs, u32 n, const gx_cpu_bound *b)
{
    for (u32 v = 0; v < n; v += 8) {
        const __m256i tf = load(tfs + v);
        const u32 m = bits_of(at_least(tf, splat(b->min_tf))) & first_lanes(v, n);
        if (m)
            append8(c, m, load(docids + v), tf, b);
    }
}

static bool scan_packed_block(gx_cpu_columns *c, const u32 *docids, u32 docid_bits, const u32 *tfs, u32 tf_bits, u32 n,
                              u32 first, const gx_cpu_bound *b)
{
    _Alignas(64) u32 unpacked_docids[128], unpacked_tfs[128];
    const gx_unpacker8 u = gx_unpack_from(tfs, tf_bits);
    __m256i any = _mm256_setzero_si256();
    if (b->min_tf > 1 && (b->min_tf - 1) >> tf_bits) /* more than the width can say */
        return false;
    for (u32 g = 0; 8 * g < n; ++g) {
        const __m256i tf = _mm256_add_epi32(gx_unpack8(&u, g), splat(1));
        any = _mm256_or_si256(any, at_least(tf, splat(b->min_tf)));
        store(unpacked_tfs + 8 * g, tf);
    }
    if (b->min_tf > 1 && !bits_of(any)) /* lanes past n may have said yes; append_decoded_block looks again */
        return false;
    unpack_docids(docids, docid_bits, n, first, unpacked_docids);
    append_decoded_block(c, unpacked_docids, unpacked_tfs, n, b);
    return true;
}

/* ---- decoded blocks ---- */

static bool any_tf_reaches(const u32 *tfs, u32 n, u32 min_tf)
{
    for (u32 v = 0; v < n; v += 8) {
        if (bits_of(at_least(load(tfs + v), splat(min_tf))) & first_lanes(v, n))
            return true;
    }
    return false;
}

static u32 count_below(const u32 *docids, u32 n, u32 doc)
{
    for (u32 v = 0; v < n; v += 8) {
        const u32 m = bits_of(at_least(load(docids + v), splat(doc))) & first_lanes(v, n);
        if (m)
            return v + (u32)__builtin_ctz(m);
    }
    return n;
}

static inline __m256i gather(const u32 *base, __m256i at, __m256i lanes)
{
    return _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), (const int *)base, at, lanes, 4);
}

static float saturate_tfs(const u32 *docids, const u32 *tfs, u32 n, u32 n_docs, const u32 *lens, gx_scorer norm,
                          float *parts, float *min_K)
{
    const __m256 c0 = _mm256_set1_ps(norm.c0), c1 = _mm256_set1_ps(norm.c1), infinity = _mm256_set1_ps(INFINITY);
    __m256 most = _mm256_setzero_ps(), least = infinity;
    float out[8], least_of = INFINITY, most_of = 0;
    for (u32 v = 0; v < n; v += 8) {
        const __m256i doc = load(docids + v), lanes = _mm256_andnot_si256(at_least(doc, splat(n_docs)), lanes_of(v, n));
        const __m256 K = _mm256_add_ps(c0, _mm256_mul_ps(c1, to_float(gather(lens, doc, lanes)))),
                     f = to_float(load(tfs + v));
        const __m256 x = _mm256_and_ps(_mm256_div_ps(f, _mm256_add_ps(f, K)), _mm256_castsi256_ps(lanes));
        most = _mm256_max_ps(most, x);
        least = _mm256_min_ps(least, _mm256_blendv_ps(infinity, K, _mm256_castsi256_ps(lanes)));
        _mm256_storeu_ps(parts + v, x);
    }
    _mm256_storeu_ps(out, least);
    for (u32 i = 0; i < 8; ++i)
        least_of = out[i] < least_of ? out[i] : least_of;
    _mm256_storeu_ps(out, most);
    for (u32 i = 0; i < 8; ++i)
        most_of = out[i] > most_of ? out[i] : most_of;
    *min_K = least_of;
    return most_of;
}

/* ---- steps of a batch ---- */

static void apply_presence_map(gx_cpu_columns *c, const u32 *map, u32 shift, u32 mask, u32 ub, u32 bit, u32 T, bool all)
{
    const __m128i by = _mm_cvtsi32_si128((int)shift);
    const u32 n = c->n;
    u32 to = 0;
    for (u32 v = 0; v < n; v += 8) {
        const __m256i doc = load(c->doc + v), score = load(c->score + v), tf = load(c->tf + v);
        const __m256i slot = _mm256_srl_epi32(doc, by),
                      word = _mm256_and_si256(_mm256_srli_epi32(slot, 5), splat(mask));
        const u32 last = v + 7 < n ? v + 7 : n - 1, w0 = c->doc[v] >> shift >> 5 & mask,
                  w1 = c->doc[last] >> shift >> 5 & mask;
        __m256i words;
        if (w1 - w0 < 8) /* neighbours are close: a load and a permutation instead of a gather */
            words = _mm256_permutevar8x32_epi32(load(map + w0), _mm256_sub_epi32(word, splat(w0)));
        else
            words = gather(map, word, lanes_of(v, n));
        const __m256i there =
            _mm256_cmpgt_epi32(_mm256_and_si256(_mm256_srlv_epi32(words, _mm256_and_si256(slot, splat(31))), splat(1)),
                               _mm256_setzero_si256());
        const __m256i remaining_ub = _mm256_sub_epi32(load(c->remaining_ub + v), _mm256_andnot_si256(there, splat(ub)));
        const __m256i list_mask = _mm256_andnot_si256(_mm256_andnot_si256(there, splat(bit)), load(c->list_mask + v));
        u32 m = bits_of(at_least(_mm256_add_epi32(score, remaining_ub), splat(T))) & first_lanes(v, n);
        if (all)
            m &= bits_of(there);
        const __m256i order = order_of(m);
        compress_store(c->doc, to, order, doc);
        compress_store(c->tf, to, order, tf);
        compress_store(c->score, to, order, score);
        compress_store(c->remaining_ub, to, order, remaining_ub);
        compress_store(c->list_mask, to, order, list_mask);
        to += (u32)__builtin_popcount(m);
    }
    c->n = to;
}

static void score_own(gx_cpu_columns *c, const u32 *lens, gx_scorer norm, float w, u32 T)
{
    const __m256 c0 = _mm256_set1_ps(norm.c0), c1 = _mm256_set1_ps(norm.c1), weight = _mm256_set1_ps(w);
    const u32 n = c->n;
    u32 to = 0;
    for (u32 v = 0; v < n; v += 8) {
        const __m256i doc = load(c->doc + v), remaining_ub = load(c->remaining_ub + v),
                      list_mask = load(c->list_mask + v);
        const __m256 K = _mm256_add_ps(c0, _mm256_mul_ps(c1, to_float(gather(lens, doc, lanes_of(v, n)))));
        const __m256i score = impact8(load(c->tf + v), weight, K);
        const u32 m = bits_of(at_least(_mm256_add_epi32(score, remaining_ub), splat(T))) & first_lanes(v, n);
        const __m256i order = order_of(m);
        compress_store(c->doc, to, order, doc);
        compress_store(c->score, to, order, score);
        compress_store(c->remaining_ub, to, order, remaining_ub);
        compress_store(c->list_mask, to, order, list_mask);
        _mm256_storeu_ps(c->K + to, _mm256_permutevar8x32_ps(K, order));
        to += (u32)__builtin_popcount(m);
    }
    c->n = to;
}

static u32 dense_positions(const gx_cpu_columns *c, gx_cpu_dense d, u32 bit, u32 *pos)
{
    return gx_cpu_dense_positions_scalar(c, d, bit, pos);
}

static void add_list_score(gx_cpu_columns *c, const u32 *tfs, float w, u32 ub, u32 bit, u32 T, bool all)
{
    const __m256 weight = _mm256_set1_ps(w);
    const __m256i zero = _mm256_setzero_si256();
    const u32 n = c->n;
    u32 to = 0;
    for (u32 v = 0; v < n; v += 8) {
        const __m256i doc = load(c->doc + v), list_mask = load(c->list_mask + v), tf = load(tfs + v);
        const __m256 K = _mm256_load_ps(c->K + v);
        const __m256i lacking = _mm256_cmpeq_epi32(tf, zero),
                      unasked = _mm256_cmpeq_epi32(_mm256_and_si256(list_mask, splat(bit)), zero);
        const __m256i score =
            _mm256_add_epi32(load(c->score + v), _mm256_andnot_si256(lacking, impact8(tf, weight, K)));
        const __m256i remaining_ub =
            _mm256_sub_epi32(load(c->remaining_ub + v), _mm256_andnot_si256(unasked, splat(ub)));
        u32 m = bits_of(at_least(_mm256_add_epi32(score, remaining_ub), splat(T))) & first_lanes(v, n);
        if (all)
            m &= ~bits_of(lacking);
        const __m256i order = order_of(m);
        compress_store(c->doc, to, order, doc);
        compress_store(c->score, to, order, score);
        compress_store(c->remaining_ub, to, order, remaining_ub);
        compress_store(c->list_mask, to, order, list_mask);
        _mm256_storeu_ps(c->K + to, _mm256_permutevar8x32_ps(K, order));
        to += (u32)__builtin_popcount(m);
    }
    c->n = to;
}

const gx_cpu_kernels gx_cpu_avx2 = {
    "avx2",
    "AVX2",
    scan_packed_block,
    25,
    25,
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
