/* range_kernels_body.h: the loops of range_kernels.h, included once an instruction set by
 * range_kernels.c, which defines KERNELS, the table's name, and VECTOR, the bytes of a vector: 16 by
 * NEON's intrinsics, 32 and 64 by those of AVX2 and AVX-512, 1 for plain C. */

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(KERNELS, x)
#define FETCH_AHEAD 512 /* bytes of a row */

/* ---- bounds ---- */

#if VECTOR == 64
/* sum, and 32 bounds in units. */
static inline __m512i NAME(add_units)(__m512i sum, const uint8_t *bounds, __m512i weight)
{
    const __m512i row = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)bounds));
    return _mm512_add_epi16(sum, _mm512_mulhi_epu16(_mm512_slli_epi16(row, 8), weight));
}

/* 128 sums at a time, so that each line is read once. */
static uint32_t NAME(sum_long)(uint16_t *sums, const uint8_t *const *rows, const uint16_t *weights, uint32_t n_lists,
                               size_t at, uint32_t n)
{
    uint32_t i = 0;
    for (; i + 128 <= n; i += 128) {
        __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
        for (uint32_t l = 0; l < n_lists; ++l) {
            const uint8_t *row = rows[l] + at + i;
            const __m512i weight = _mm512_set1_epi16((short)weights[l]);
            gx_prefetch(row + FETCH_AHEAD);
            gx_prefetch(row + FETCH_AHEAD + 64);
            a = NAME(add_units)(a, row, weight);
            b = NAME(add_units)(b, row + 32, weight);
            c = NAME(add_units)(c, row + 64, weight);
            d = NAME(add_units)(d, row + 96, weight);
        }
        _mm512_storeu_si512(sums + i, a);
        _mm512_storeu_si512(sums + i + 32, b);
        _mm512_storeu_si512(sums + i + 64, c);
        _mm512_storeu_si512(sums + i + 96, d);
    }
    return i;
}

static void NAME(sum_bounds)(uint16_t *sums, const uint8_t *const *rows, const uint16_t *weights, uint32_t n_lists,
                             size_t at, uint32_t n)
{
    for (uint32_t i = NAME(sum_long)(sums, rows, weights, n_lists, at, n); i < n; i += 32) {
        __m512i sum = _mm512_setzero_si512();
        for (uint32_t l = 0; l < n_lists; ++l)
            sum = NAME(add_units)(sum, rows[l] + at + i, _mm512_set1_epi16((short)weights[l]));
        _mm512_storeu_si512(sums + i, sum);
    }
}

/* Add bounds, those of the ranges of the set, which are one after another. */
static inline void NAME(add_row)(uint16_t *sums, const uint8_t *bounds, uint32_t ranges, __m512i weight)
{
    const __m256i packed = _mm256_loadu_si256((const __m256i *)(const void *)bounds);
    const __m512i row = _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_maskz_expand_epi8(ranges, packed)), 8);
    _mm512_storeu_si512(sums, _mm512_add_epi16(_mm512_loadu_si512(sums), _mm512_mulhi_epu16(row, weight)));
}

static inline __m512i NAME(set_weight)(uint32_t weight)
{
    return _mm512_set1_epi16((short)weight);
}

static void NAME(add_tiles)(uint16_t *sums, const uint8_t *bounds, const uint32_t *starts, const uint8_t *present,
                            uint32_t weight, uint32_t n_tiles)
{
    const __m512i factor = NAME(set_weight)(weight);
    for (uint32_t i = 0; i < n_tiles; i += 4, sums += 4 * GX_TILE_SEGMENTS) {
        uint32_t in;
        memcpy(&in, present + i, sizeof in);
        NAME(add_row)(sums, bounds + starts[i], in, factor);
    }
}

static uint32_t NAME(reach)(const uint16_t *sums, uint32_t least)
{
    if (least > UINT16_MAX)
        return 0;
    return _mm512_cmpge_epu16_mask(_mm512_loadu_si512(sums), _mm512_set1_epi16((short)least));
}
#elif VECTOR == 32
/* Sums of 32 bounds in units. unpacklo and unpackhi leave the middle quarters exchanged, which `store` puts right. */
typedef struct NAME(sums32) {
    __m256i lo, hi;
} NAME(sums32);

static inline void NAME(add_units)(NAME(sums32) * sum, const uint8_t *bounds, __m256i weight)
{
    const __m256i row = _mm256_loadu_si256((const __m256i *)(const void *)bounds), zero = _mm256_setzero_si256();
    sum->lo = _mm256_add_epi16(sum->lo, _mm256_mulhi_epu16(_mm256_unpacklo_epi8(zero, row), weight));
    sum->hi = _mm256_add_epi16(sum->hi, _mm256_mulhi_epu16(_mm256_unpackhi_epi8(zero, row), weight));
}

static inline void NAME(store)(uint16_t *sums, NAME(sums32) sum)
{
    _mm256_storeu_si256((__m256i *)(void *)sums, _mm256_permute2x128_si256(sum.lo, sum.hi, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(sums + 16), _mm256_permute2x128_si256(sum.lo, sum.hi, 0x31));
}

/* 64 sums at a time, so that each line is read once. */
static uint32_t NAME(sum_long)(uint16_t *sums, const uint8_t *const *rows, const uint16_t *weights, uint32_t n_lists,
                               size_t at, uint32_t n)
{
    uint32_t i = 0;
    for (; i + 64 <= n; i += 64) {
        NAME(sums32) a = {_mm256_setzero_si256(), _mm256_setzero_si256()}, b = a;
        for (uint32_t l = 0; l < n_lists; ++l) {
            const uint8_t *row = rows[l] + at + i;
            const __m256i weight = _mm256_set1_epi16((short)weights[l]);
            gx_prefetch(row + FETCH_AHEAD);
            NAME(add_units)(&a, row, weight);
            NAME(add_units)(&b, row + 32, weight);
        }
        NAME(store)(sums + i, a);
        NAME(store)(sums + i + 32, b);
    }
    return i;
}

static void NAME(sum_bounds)(uint16_t *sums, const uint8_t *const *rows, const uint16_t *weights, uint32_t n_lists,
                             size_t at, uint32_t n)
{
    for (uint32_t i = NAME(sum_long)(sums, rows, weights, n_lists, at, n); i < n; i += 32) {
        NAME(sums32) sum = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        for (uint32_t l = 0; l < n_lists; ++l)
            NAME(add_units)(&sum, rows[l] + at + i, _mm256_set1_epi16((short)weights[l]));
        NAME(store)(sums + i, sum);
    }
}

/* The bounds of 8 ranges, of which those of the set have some, one after the other. */
static inline __m128i NAME(of_ranges)(const uint8_t *bounds, uint32_t ranges)
{
    return _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(const void *)bounds),
                            _mm_loadl_epi64((const __m128i *)(const void *)&places[ranges & 255]));
}

/* Add bounds, those of the ranges of the set, which are one after another. unpacklo and unpackhi exchange the
 * middle quarters, which is made good beforehand. */
static inline void NAME(add_row)(uint16_t *sums, const uint8_t *bounds, uint32_t ranges, __m256i weight)
{
    const __m128i a = NAME(of_ranges)(bounds, ranges);
    const __m128i b = NAME(of_ranges)(bounds + __builtin_popcount(ranges & 0xff), ranges >> 8);
    const __m128i c = NAME(of_ranges)(bounds + __builtin_popcount(ranges & 0xffff), ranges >> 16);
    const __m128i d = NAME(of_ranges)(bounds + __builtin_popcount(ranges & 0xffffff), ranges >> 24);
    const __m256i row = _mm256_set_m128i(_mm_unpacklo_epi64(b, d), _mm_unpacklo_epi64(a, c)),
                  zero = _mm256_setzero_si256();
    __m256i *to = (__m256i *)(void *)sums;
    const __m256i lo = _mm256_mulhi_epu16(_mm256_unpacklo_epi8(zero, row), weight);
    const __m256i hi = _mm256_mulhi_epu16(_mm256_unpackhi_epi8(zero, row), weight);
    _mm256_storeu_si256(to, _mm256_add_epi16(_mm256_loadu_si256(to), lo));
    _mm256_storeu_si256(to + 1, _mm256_add_epi16(_mm256_loadu_si256(to + 1), hi));
}

static inline __m256i NAME(set_weight)(uint32_t weight)
{
    return _mm256_set1_epi16((short)weight);
}

static void NAME(add_tiles)(uint16_t *sums, const uint8_t *bounds, const uint32_t *starts, const uint8_t *present,
                            uint32_t weight, uint32_t n_tiles)
{
    const __m256i factor = NAME(set_weight)(weight);
    for (uint32_t i = 0; i < n_tiles; i += 4, sums += 4 * GX_TILE_SEGMENTS) {
        uint32_t in;
        memcpy(&in, present + i, sizeof in);
        NAME(add_row)(sums, bounds + starts[i], in, factor);
    }
}

static uint32_t NAME(reach)(const uint16_t *sums, uint32_t least)
{
    if (least > UINT16_MAX)
        return 0;
    const __m256i at_least = _mm256_set1_epi16((short)least);
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)sums),
                  b = _mm256_loadu_si256((const __m256i *)(const void *)(sums + 16));
    const __m256i both = _mm256_packs_epi16(_mm256_cmpeq_epi16(_mm256_max_epu16(a, at_least), a),
                                            _mm256_cmpeq_epi16(_mm256_max_epu16(b, at_least), b));
    return (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(both, 0xd8));
}
#elif VECTOR == 16
/* sum, and 8 bounds in units. */
static inline uint16x8_t NAME(add_units)(uint16x8_t sum, uint8x8_t bounds, uint16x8_t weight)
{
    const uint16x8_t row = vshll_n_u8(bounds, 8);
    const uint32x4_t lo = vmull_u16(vget_low_u16(row), vget_low_u16(weight)), hi = vmull_high_u16(row, weight);
    return vaddq_u16(sum, vuzp2q_u16(vreinterpretq_u16_u32(lo), vreinterpretq_u16_u32(hi)));
}

static void NAME(sum_bounds)(uint16_t *sums, const uint8_t *const *rows, const uint16_t *weights, uint32_t n_lists,
                             size_t at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 32) {
        uint16x8_t a = vdupq_n_u16(0), b = a, c = a, d = a;
        for (uint32_t l = 0; l < n_lists; ++l) {
            const uint8_t *row = rows[l] + at + i;
            const uint8x16_t low = vld1q_u8(row), high = vld1q_u8(row + 16);
            const uint16x8_t weight = vdupq_n_u16(weights[l]);
            gx_prefetch(row + FETCH_AHEAD);
            a = NAME(add_units)(a, vget_low_u8(low), weight);
            b = NAME(add_units)(b, vget_high_u8(low), weight);
            c = NAME(add_units)(c, vget_low_u8(high), weight);
            d = NAME(add_units)(d, vget_high_u8(high), weight);
        }
        vst1q_u16(sums + i, a);
        vst1q_u16(sums + i + 8, b);
        vst1q_u16(sums + i + 16, c);
        vst1q_u16(sums + i + 24, d);
    }
}

/* Add bounds, those of the ranges of the set, which are one after another. */
static inline void NAME(add_row)(uint16_t *sums, const uint8_t *bounds, uint32_t ranges, uint16x8_t weight)
{
    const uint32_t ones = vget_lane_u32(vreinterpret_u32_u8(vcnt_u8(vcreate_u8(ranges))), 0);
    const uint32_t before = ones * 0x01010100u; /* byte i: the ranges of the bytes below it */
    for (uint32_t i = 0; i < 4; ++i) {
        const uint8x8_t place = vcreate_u8(places[ranges >> 8 * i & 255]);
        const uint8x8_t row = vtbl1_u8(vld1_u8(bounds + (before >> 8 * i & 255)), place);
        vst1q_u16(sums + 8 * i, NAME(add_units)(vld1q_u16(sums + 8 * i), row, weight));
    }
}

static inline uint16x8_t NAME(set_weight)(uint32_t weight)
{
    return vdupq_n_u16((uint16_t)weight);
}

static void NAME(add_tiles)(uint16_t *sums, const uint8_t *bounds, const uint32_t *starts, const uint8_t *present,
                            uint32_t weight, uint32_t n_tiles)
{
    const uint16x8_t factor = NAME(set_weight)(weight);
    for (uint32_t i = 0; i < n_tiles; ++i, sums += GX_TILE_SEGMENTS) {
        const uint8x8_t row = vtbl1_u8(vld1_u8(bounds + starts[i]), vcreate_u8(places[present[i]]));
        vst1q_u16(sums, NAME(add_units)(vld1q_u16(sums), row, factor));
    }
}

static uint32_t NAME(reach)(const uint16_t *sums, uint32_t least)
{
    static const uint8_t bit_of[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    if (least > UINT16_MAX)
        return 0;
    const uint16x8_t at_least = vdupq_n_u16((uint16_t)least);
    const uint16x8_t a = vcgeq_u16(vld1q_u16(sums), at_least), b = vcgeq_u16(vld1q_u16(sums + 8), at_least),
                     c = vcgeq_u16(vld1q_u16(sums + 16), at_least), d = vcgeq_u16(vld1q_u16(sums + 24), at_least);
    const uint8x16_t low = vuzp1q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b)),
                     high = vuzp1q_u8(vreinterpretq_u8_u16(c), vreinterpretq_u8_u16(d));
    uint8x16_t sum = vpaddq_u8(vandq_u8(low, vld1q_u8(bit_of)), vandq_u8(high, vld1q_u8(bit_of)));
    sum = vpaddq_u8(sum, sum);
    return vgetq_lane_u32(vreinterpretq_u32_u8(vpaddq_u8(sum, sum)), 0);
}
#else
static void NAME(sum_bounds)(uint16_t *sums, const uint8_t *const *rows, const uint16_t *weights, uint32_t n_lists,
                             size_t at, uint32_t n)
{
    memset(sums, 0, n * sizeof *sums);
    for (uint32_t l = 0; l < n_lists; ++l) {
        for (uint32_t i = 0; i < n; ++i)
            sums[i] = (uint16_t)(sums[i] + ((uint32_t)rows[l][at + i] * weights[l] >> 8));
    }
}

static inline void NAME(add_row)(uint16_t *sums, const uint8_t *bounds, uint32_t ranges, uint32_t weight)
{
    for (uint32_t left = ranges; left; left &= left - 1)
        sums[__builtin_ctz(left)] += (uint16_t)(*bounds++ * weight >> 8);
}

static inline uint32_t NAME(set_weight)(uint32_t weight)
{
    return weight;
}

static void NAME(add_tiles)(uint16_t *sums, const uint8_t *bounds, const uint32_t *starts, const uint8_t *present,
                            uint32_t weight, uint32_t n_tiles)
{
    for (uint32_t i = 0; i < n_tiles; ++i, sums += GX_TILE_SEGMENTS) {
        const uint8_t *next = bounds + starts[i];
        for (uint32_t left = present[i]; left; left &= left - 1)
            sums[__builtin_ctz(left)] += (uint16_t)(*next++ * weight >> 8);
    }
}

static uint32_t NAME(reach)(const uint16_t *sums, uint32_t least)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < GX_SEGMENT_RANGES; ++i)
        bits |= (uint32_t)(sums[i] >= least) << i;
    return bits;
}
#endif

static void NAME(add_common)(uint16_t (*sums)[GX_SEGMENT_RANGES], const uint32_t *segments, uint32_t n,
                             const gx_range_rows *list, uint32_t weight)
{
    const gx_range_rows l = *list;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_segment_start *start = l.segments + segments[i];
        NAME(add_row)(sums[i], l.bounds + start->start, start->ranges, NAME(set_weight)(weight));
    }
}

static void NAME(add_sparse)(uint16_t (*sums)[GX_SEGMENT_RANGES], const uint32_t *segments, uint32_t n,
                             const gx_range_rows *list, uint32_t weight)
{
    const gx_range_rows l = *list;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t tile = segments[i] / GX_TILE_SEGMENTS, bit = 1u << segments[i] % GX_TILE_SEGMENTS;
        const uint32_t present = l.present[tile], before = (uint32_t)__builtin_popcount(present & (bit - 1));
        const gx_segment_start *start = l.segments + l.tiles[tile] + before;
        NAME(add_row)(sums[i], l.bounds + start->start, present & bit ? start->ranges : 0, NAME(set_weight)(weight));
    }
}

/* ---- scores ---- */

/* What a score must be above. */
static inline int32_t NAME(least_of)(uint32_t rest, const gx_range_limit *limit)
{
    const uint32_t most = (rest + limit->slack) * limit->unit + limit->slack; /* below 2^32: units are small */
    return most < limit->threshold ? (int32_t)(limit->threshold - 1 - most) : -1;
}

/* The documents of a range in a dense list, a bit each, and where their tfs begin. */
typedef struct NAME(range_members) {
    uint32_t members;
    const uint8_t *tfs;
} NAME(range_members);

static inline NAME(range_members) NAME(members_of)(const gx_dense_rows *l, uint32_t id)
{
    const uint64_t *bits = l->bits + (size_t)(id / GX_SEGMENT_RANGES) * 4, *in = bits_before[id % GX_SEGMENT_RANGES];
#if VECTOR == 16 /* which counts bits in vectors alone */
    const uint8x16_t low = vcntq_u8(vreinterpretq_u8_u64(vandq_u64(vld1q_u64(bits), vld1q_u64(in)))),
                     high = vcntq_u8(vreinterpretq_u8_u64(vandq_u64(vld1q_u64(bits + 2), vld1q_u64(in + 2))));
    const uint32_t before = vaddlvq_u8(vaddq_u8(low, high));
#else
    const int before = __builtin_popcountll(bits[0] & in[0]) + __builtin_popcountll(bits[1] & in[1]) +
                       __builtin_popcountll(bits[2] & in[2]) + __builtin_popcountll(bits[3] & in[3]);
#endif
    return (NAME(range_members)){bits[id % GX_SEGMENT_RANGES / 8] >> id % 8 * 8 & 255,
                                 l->tfs + l->starts[id / GX_SEGMENT_RANGES] + before};
}

static inline void NAME(take_bound)(gx_range_group *g, uint32_t i, const uint8_t *bounds, uint32_t weight)
{
    g->rest[i] = (uint16_t)(g->rest[i] - (bounds[g->ids[i]] * weight >> 8));
}

#if VECTOR == 16
static inline uint32x4_t NAME(impacts_of)(uint32x4_t tf, const float *K, float w, bool linear)
{
    const float32x4_t f = vcvtq_f32_u32(tf), product = vmulq_n_f32(f, w);
    const float32x4_t x = linear ? product : vdivq_f32(product, vaddq_f32(f, vld1q_f32(K)));
    return vandq_u32(vmaxq_u32(vcvtnq_u32_f32(x), vdupq_n_u32(1)), vtstq_u32(tf, tf));
}

/* A byte permutation brings each tf to its document's place, 0 to the others. linear: w has been divided by
 * GX_LINEAR_K, a power of two. */
static inline void NAME(add_range)(gx_range_group *g, uint32_t i, const gx_dense_rows *l, float w, bool linear)
{
    const NAME(range_members) m = NAME(members_of)(l, g->ids[i]);
    const uint16x8_t tf = vmovl_u8(vtbl1_u8(vld1_u8(m.tfs), vcreate_u8(places[m.members])));
    uint32_t *const to = g->scores[i];
    const float *const K = g->K[i];
    vst1q_u32(to, vaddq_u32(vld1q_u32(to), NAME(impacts_of)(vmovl_u16(vget_low_u16(tf)), K, w, linear)));
    vst1q_u32(to + 4, vaddq_u32(vld1q_u32(to + 4), NAME(impacts_of)(vmovl_high_u16(tf), K + 4, w, linear)));
}

static inline void NAME(add_each)(gx_range_group *g, const gx_dense_rows *l, uint32_t weight, float w, bool linear)
{
    const uint32_t n = g->n;
    for (uint32_t i = 0; i < n; ++i)
        NAME(add_range)(g, i, l, w, linear);
    for (uint32_t i = 0; i < n; ++i)
        NAME(take_bound)(g, i, l->bounds, weight);
}

static void NAME(add_dense)(gx_range_group *g, const gx_dense_rows *list, uint32_t weight, float w, bool linear)
{
    const gx_dense_rows l = *list;
    if (linear)
        NAME(add_each)(g, &l, weight, w * (1 / GX_LINEAR_K), true);
    else
        NAME(add_each)(g, &l, weight, w, false);
}

/* Which of n postings, 16 of them at most, are in the ranges of live: bit i for the i-th. */
#define BITS_A_POSTING 1
static inline uint32_t NAME(live_of)(const gx_narrow_posting *postings, uint32_t n, uint32_t live)
{
    static const uint8_t bit_of[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t range = vshrq_n_u8(
        vcombine_u8(vmovn_u16(vld1q_u16(postings)), vmovn_u16(vld1q_u16(postings + 8))), GX_RANGE_SHIFT);
    const uint8x16_t byte = vqtbl1q_u8(vreinterpretq_u8_u32(vdupq_n_u32(live)), vshrq_n_u8(range, 3));
    const uint8x16_t bit = vqtbl1q_u8(vld1q_u8(bit_of), vandq_u8(range, vdupq_n_u8(7)));
    const uint8x16_t in = vandq_u8(vtstq_u8(byte, bit), vld1q_u8(bit_of));
    const uint32_t bits = vaddv_u8(vget_low_u8(in)) | (uint32_t)vaddv_u8(vget_high_u8(in)) << 8;
    return bits & (n < 16 ? (1u << n) - 1 : UINT32_MAX);
}

static uint32_t NAME(best_of)(const uint32_t *scores, uint32_t least)
{
    static const uint16_t bit_of[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint32x4_t a = vcgeq_u32(vld1q_u32(scores), vdupq_n_u32(least)),
                     b = vcgeq_u32(vld1q_u32(scores + 4), vdupq_n_u32(least));
    return vaddvq_u16(vandq_u16(vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)), vld1q_u16(bit_of)));
}

static inline bool NAME(reaches)(const uint32_t *scores, int32_t least)
{
    return (int32_t)vmaxvq_u32(vmaxq_u32(vld1q_u32(scores), vld1q_u32(scores + 4))) > least;
}

static inline void NAME(move)(void *to, const void *from)
{
    vst1q_u8(to, vld1q_u8(from));
    vst1q_u8((uint8_t *)to + 16, vld1q_u8((const uint8_t *)from + 16));
}
#elif VECTOR > 1
/* A byte permutation brings each tf to its document's place, 0 to the others. */
static inline __m128i NAME(place)(NAME(range_members) m)
{
    return _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(const void *)m.tfs),
                            _mm_loadl_epi64((const __m128i *)(const void *)&places[m.members]));
}

/* linear: w has been divided by GX_LINEAR_K, a power of two. */
static inline void NAME(add_range)(gx_range_group *g, uint32_t i, const gx_dense_rows *l, float w, bool linear)
{
    const __m256i tf = _mm256_cvtepu8_epi32(NAME(place)(NAME(members_of)(l, g->ids[i])));
    const __m256 f = _mm256_cvtepi32_ps(tf), product = _mm256_mul_ps(_mm256_set1_ps(w), f);
    const __m256 x = linear ? product : _mm256_div_ps(product, _mm256_add_ps(f, _mm256_load_ps(g->K[i])));
    const __m256i impact = _mm256_and_si256(_mm256_max_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(1)),
                                            _mm256_cmpgt_epi32(tf, _mm256_setzero_si256()));
    __m256i *to = (__m256i *)(void *)g->scores[i];
    _mm256_store_si256(to, _mm256_add_epi32(_mm256_load_si256(to), impact));
}

#if VECTOR == 64
/* Ranges i and i + 1. */
static inline void NAME(add_ranges)(gx_range_group *g, uint32_t i, const gx_dense_rows *l, float w, bool linear)
{
    const __m128i a = NAME(place)(NAME(members_of)(l, g->ids[i])), b = NAME(place)(NAME(members_of)(l, g->ids[i + 1]));
    const __m512i tf = _mm512_cvtepu8_epi32(_mm_unpacklo_epi64(a, b));
    const __m512 f = _mm512_cvtepi32_ps(tf), product = _mm512_mul_ps(_mm512_set1_ps(w), f);
    const __m512 x = linear ? product : _mm512_div_ps(product, _mm512_add_ps(f, _mm512_load_ps(g->K[i])));
    const __m512i impact =
        _mm512_maskz_max_epi32(_mm512_test_epi32_mask(tf, tf), _mm512_cvtps_epi32(x), _mm512_set1_epi32(1));
    _mm512_store_si512(g->scores[i], _mm512_add_epi32(_mm512_load_si512(g->scores[i]), impact));
}
#endif

static inline void NAME(add_each)(gx_range_group *g, const gx_dense_rows *l, uint32_t weight, float w, bool linear)
{
    const uint32_t n = g->n;
    uint32_t i = 0;
#if VECTOR == 64
    for (; i + 1 < n; i += 2)
        NAME(add_ranges)(g, i, l, w, linear);
#endif
    for (; i < n; ++i)
        NAME(add_range)(g, i, l, w, linear);
    for (i = 0; i < n; ++i)
        NAME(take_bound)(g, i, l->bounds, weight);
}

static void NAME(add_dense)(gx_range_group *g, const gx_dense_rows *list, uint32_t weight, float w, bool linear)
{
    const gx_dense_rows l = *list;
    if (linear)
        NAME(add_each)(g, &l, weight, w * (1 / GX_LINEAR_K), true);
    else
        NAME(add_each)(g, &l, weight, w, false);
}

/* Which of n postings, 16 of them at most, are in the ranges of live: bit 2 i for the i-th. */
#define BITS_A_POSTING 2
static inline uint32_t NAME(live_of)(const gx_narrow_posting *postings, uint32_t n, uint32_t live)
{
    const __m256i high = _mm256_set1_epi16((short)0x8000), seven = _mm256_set1_epi16(7);
    const __m256i bit_of = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));
    const __m256i place = _mm256_slli_epi16(_mm256_loadu_si256((const __m256i *)(const void *)postings), 8);
    const __m256i range = _mm256_srli_epi16(place, 8 + GX_RANGE_SHIFT);
    const __m256i byte =
        _mm256_shuffle_epi8(_mm256_set1_epi32((int)live), _mm256_or_si256(_mm256_srli_epi16(range, 3), high));
    const __m256i bit = _mm256_shuffle_epi8(bit_of, _mm256_or_si256(_mm256_and_si256(range, seven), high));
    const __m256i in = _mm256_cmpeq_epi16(_mm256_and_si256(byte, bit), bit);
    return (uint32_t)_mm256_movemask_epi8(in) & 0x55555555 & (n < 16 ? (1u << 2 * n) - 1 : UINT32_MAX);
}

static uint32_t NAME(best_of)(const uint32_t *scores, uint32_t least)
{
    const __m256i score = _mm256_loadu_si256((const __m256i *)(const void *)scores);
    const __m256i less = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)least), score); /* both are below 2^31 */
    return ~(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(less)) & 255;
}

static inline bool NAME(reaches)(const uint32_t *scores, int32_t least)
{
    const __m256i more =
        _mm256_cmpgt_epi32(_mm256_load_si256((const __m256i *)(const void *)scores), _mm256_set1_epi32(least));
    return !_mm256_testz_si256(more, more);
}

static inline void NAME(move)(void *to, const void *from)
{
    _mm256_store_si256(to, _mm256_load_si256(from));
}
#else
static void NAME(add_dense)(gx_range_group *g, const gx_dense_rows *list, uint32_t weight, float w, bool linear)
{
    for (uint32_t i = 0; i < g->n; ++i) {
        const NAME(range_members) m = NAME(members_of)(list, g->ids[i]);
        const uint8_t *tfs = m.tfs;
        for (uint32_t left = m.members; left; left &= left - 1, ++tfs) {
            const uint32_t d = (uint32_t)__builtin_ctz(left);
            g->scores[i][d] += gx_bm25_impact(w, *tfs, linear ? GX_LINEAR_K : g->K[i][d]);
        }
        NAME(take_bound)(g, i, list->bounds, weight);
    }
}

#define BITS_A_POSTING 1
static inline uint32_t NAME(live_of)(const gx_narrow_posting *postings, uint32_t n, uint32_t live)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < n && i < 16; ++i)
        bits |= (live >> (postings[i] % GX_SEGMENT_DOCS >> GX_RANGE_SHIFT) & 1) << i;
    return bits;
}

static uint32_t NAME(best_of)(const uint32_t *scores, uint32_t least)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < GX_RANGE_DOCS; ++i)
        bits |= (uint32_t)(scores[i] >= least) << i;
    return bits;
}

static inline bool NAME(reaches)(const uint32_t *scores, int32_t least)
{
    uint32_t most = 0;
    for (uint32_t d = 0; d < GX_RANGE_DOCS; ++d)
        most = scores[d] > most ? scores[d] : most;
    return (int32_t)most > least;
}

static inline void NAME(move)(void *to, const void *from)
{
    memmove(to, from, GX_RANGE_DOCS * sizeof(uint32_t));
}
#endif

static uint32_t NAME(find)(const gx_range_group *g, const gx_range_rows *list, gx_range_hit *hits)
{
    const gx_range_rows l = *list;
    const uint32_t shift = l.wide ? 2 : 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_segments; ++i) {
        const uint32_t segment = g->segments[i];
        const gx_segment_start *start = l.segments + segment;
        uint32_t all = UINT32_MAX;
        if (l.present) {
            const uint32_t tile = segment / GX_TILE_SEGMENTS, bit = 1u << segment % GX_TILE_SEGMENTS;
            const uint32_t present = l.present[tile];
            start = l.segments + l.tiles[tile] + (uint32_t)__builtin_popcount(present & (bit - 1));
            all = present & bit ? UINT32_MAX : 0;
        }
        const uint32_t ranges = start->ranges & g->live[i] & all;
        hits[n] = (gx_range_hit){start, i, ranges};
        n += ranges != 0;
    }
    for (uint32_t i = 0; i < n; ++i)
        gx_prefetch((const char *)l.postings + ((size_t)hits[i].start->start << shift));
    return n;
}

/* Of a segment, whose ranges in the group are `live`, the place of a range. */
static inline uint32_t NAME(slot_of)(uint32_t first, uint32_t live, uint32_t range)
{
    return first + (uint32_t)__builtin_popcount(live & ((UINT32_C(1) << range) - 1));
}

/* Take the bounds of a list's ranges out of `rest`. */
static inline void NAME(take_bounds)(gx_range_group *g, const gx_range_hit *h, const uint8_t *bounds, uint32_t weight)
{
    const uint32_t first = g->first[h->place], live = g->live[h->place], ranges = h->start->ranges;
    for (uint32_t left = h->ranges; left; left &= left - 1) {
        const uint32_t below = (left & -left) - 1;
        uint16_t *rest = &g->rest[first + (uint32_t)__builtin_popcount(live & below)];
        const uint32_t bound = bounds[h->start->start + (uint32_t)__builtin_popcount(ranges & below)];
        *rest = (uint16_t)(*rest - (bound * weight >> 8));
    }
}

static inline void NAME(add_postings)(gx_range_group *g, const gx_range_rows *list, const gx_range_hit *h,
                                      uint32_t weight, const uint32_t *impacts, float w)
{
    const gx_narrow_posting *postings = (const gx_narrow_posting *)list->postings + h->start->start;
    const uint32_t n = h->start[1].start - h->start->start, first = g->first[h->place], live = g->live[h->place];
    for (uint32_t at = 0; at < n; at += 16) {
        for (uint32_t left = NAME(live_of)(postings + at, n - at, live); left; left &= left - 1) {
            const gx_narrow_posting p = postings[at + (uint32_t)__builtin_ctz(left) / BITS_A_POSTING];
            const uint32_t slot = NAME(slot_of)(first, live, p % GX_SEGMENT_DOCS >> GX_RANGE_SHIFT);
            const uint32_t d = p % GX_RANGE_DOCS, tf = p >> GX_SEGMENT_SHIFT;
            g->scores[slot][d] += impacts ? impacts[tf] : gx_bm25_impact(w, tf, g->K[slot][d]);
        }
    }
    NAME(take_bounds)(g, h, list->bounds, weight);
}

static void NAME(add_linear)(gx_range_group *g, const gx_range_rows *list, const gx_range_hit *hits, uint32_t n,
                             uint32_t weight, const uint32_t *impacts)
{
    for (uint32_t i = 0; i < n; ++i)
        NAME(add_postings)(g, list, &hits[i], weight, impacts, 0);
}

static void NAME(add_narrow)(gx_range_group *g, const gx_range_rows *list, const gx_range_hit *hits, uint32_t n,
                             uint32_t weight, float w)
{
    for (uint32_t i = 0; i < n; ++i)
        NAME(add_postings)(g, list, &hits[i], weight, NULL, w);
}

/* What the group says of its segments, from ids. */
static inline void NAME(list_segments)(gx_range_group *g)
{
    uint32_t n = 0, last = UINT32_MAX, live = 0;
    for (uint32_t i = 0; i < g->n; ++i) {
        const uint32_t segment = g->ids[i] / GX_SEGMENT_RANGES, bit = UINT32_C(1) << g->ids[i] % GX_SEGMENT_RANGES;
        if (segment != last) {
            g->segments[n] = last = segment;
            g->first[n++] = i;
            live = 0;
        }
        g->live[n - 1] = live |= bit;
    }
    g->n_segments = n;
}

static void NAME(keep)(gx_range_group *g, const gx_range_limit *limit, bool linear)
{
    const gx_range_limit l = *limit;
    const uint32_t n = g->n;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const bool reaches = NAME(reaches)(g->scores[i], NAME(least_of)(g->rest[i], &l));
        NAME(move)(g->scores[kept], g->scores[i]);
        if (!linear)
            NAME(move)(g->K[kept], g->K[i]);
        g->ids[kept] = g->ids[i];
        g->rest[kept] = g->rest[i];
        kept += reaches;
    }
    g->n = kept;
    if (kept < n)
        NAME(list_segments)(g);
}

static const gx_range_kernels KERNELS = {
    NAME(sum_bounds), NAME(add_common), NAME(add_sparse), NAME(add_tiles), NAME(reach),   NAME(add_dense),
    NAME(find),       NAME(add_linear), NAME(add_narrow), NAME(keep),      NAME(best_of),
};

#undef BITS_A_POSTING
#undef JOIN_
#undef JOIN
#undef NAME
#undef FETCH_AHEAD
#undef KERNELS
#undef VECTOR
