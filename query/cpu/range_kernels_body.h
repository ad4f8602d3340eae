/* range_kernels_body.h: the loops of range_kernels.h, included once an instruction set by
 * range_kernels.c, which defines KERNELS, the table's name, and VECTOR, the bytes of a vector: 32 and
 * 64 by intrinsics, 1 for plain C. */

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(KERNELS, x)

/* ---- bounds ---- */

#if VECTOR == 64
static void NAME(sum_bounds)(uint16_t *sums, const uint8_t *const *rows, const uint16_t *weights, uint32_t n_lists,
                             size_t at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 32) {
        __m512i sum = _mm512_setzero_si512();
        for (uint32_t l = 0; l < n_lists; ++l) {
            const __m512i row =
                _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(rows[l] + at + i)));
            const __m512i weight = _mm512_set1_epi16((short)weights[l]);
            sum = _mm512_add_epi16(sum, _mm512_mulhi_epu16(_mm512_slli_epi16(row, 8), weight));
        }
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
/* unpacklo and unpackhi leave the middle quarters exchanged, which the permutations put right. */
static void NAME(sum_bounds)(uint16_t *sums, const uint8_t *const *rows, const uint16_t *weights, uint32_t n_lists,
                             size_t at, uint32_t n)
{
    const __m256i zero = _mm256_setzero_si256();
    for (uint32_t i = 0; i < n; i += 32) {
        __m256i lo = zero, hi = zero;
        for (uint32_t l = 0; l < n_lists; ++l) {
            const __m256i row = _mm256_loadu_si256((const __m256i *)(const void *)(rows[l] + at + i));
            const __m256i weight = _mm256_set1_epi16((short)weights[l]);
            lo = _mm256_add_epi16(lo, _mm256_mulhi_epu16(_mm256_unpacklo_epi8(zero, row), weight));
            hi = _mm256_add_epi16(hi, _mm256_mulhi_epu16(_mm256_unpackhi_epi8(zero, row), weight));
        }
        _mm256_storeu_si256((__m256i *)(void *)(sums + i), _mm256_permute2x128_si256(lo, hi, 0x20));
        _mm256_storeu_si256((__m256i *)(void *)(sums + i + 16), _mm256_permute2x128_si256(lo, hi, 0x31));
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

/* What a score must be above, for each range. */
static inline void NAME(find_least)(int32_t *least, const uint16_t *rest, const gx_range_limit *limit)
{
    for (uint32_t i = 0; i < GX_SEGMENT_RANGES; ++i) {
        const uint32_t most = (rest[i] + limit->slack) * limit->unit + limit->slack; /* below 2^32: units are small */
        least[i] = most < limit->threshold ? (int32_t)(limit->threshold - 1 - most) : -1;
    }
}

#if VECTOR > 1
/* The documents of a range in a dense list, and where their tfs begin. */
typedef struct NAME(range_members) {
    uint32_t members;
    const uint8_t *tfs;
} NAME(range_members);

typedef struct NAME(dense_segment) {
    const uint64_t *bits;
    const uint8_t *tfs;
    uint32_t before[4]; /* documents before each word */
} NAME(dense_segment);

static inline NAME(dense_segment) NAME(open_segment)(const uint64_t *bits, const uint8_t *tfs)
{
    NAME(dense_segment) s = {bits, tfs, {0}};
    for (uint32_t i = 1; i < 4; ++i)
        s.before[i] = s.before[i - 1] + (uint32_t)__builtin_popcountll(bits[i - 1]);
    return s;
}

static inline NAME(range_members) NAME(members_of)(const NAME(dense_segment) * s, uint32_t range)
{
    const uint64_t word = s->bits[range / 8], below = (UINT64_C(1) << range % 8 * 8) - 1;
    return (NAME(range_members)){word >> range % 8 * 8 & 255,
                                 s->tfs + s->before[range / 8] + (uint32_t)__builtin_popcountll(word & below)};
}

/* A byte permutation brings each tf to its document's place, 0 to the others. */
static inline __m128i NAME(place)(NAME(range_members) m)
{
    return _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(const void *)m.tfs),
                            _mm_loadl_epi64((const __m128i *)(const void *)&places[m.members]));
}

/* K NULL: w has been divided by GX_LINEAR_K, a power of two. */
static inline void NAME(add_range)(uint32_t *scores, NAME(range_members) m, __m256 w, const float *K)
{
    const __m256i tf = _mm256_cvtepu8_epi32(NAME(place)(m));
    const __m256 f = _mm256_cvtepi32_ps(tf), product = _mm256_mul_ps(w, f);
    const __m256 x = K ? _mm256_div_ps(product, _mm256_add_ps(f, _mm256_loadu_ps(K))) : product;
    const __m256i impact = _mm256_and_si256(_mm256_max_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(1)),
                                            _mm256_cmpgt_epi32(tf, _mm256_setzero_si256()));
    __m256i *to = (__m256i *)(void *)scores;
    _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), impact));
}

#if VECTOR == 64
/* Two ranges. */
static inline void NAME(add_ranges)(uint32_t *scores, const NAME(dense_segment) * s, const uint8_t *ranges, __m512 w,
                                    const float *K)
{
    const uint32_t a = ranges[0], b = ranges[1];
    const __m128i both = _mm_unpacklo_epi64(NAME(place)(NAME(members_of)(s, a)), NAME(place)(NAME(members_of)(s, b)));
    const __m512i tf = _mm512_cvtepu8_epi32(both);
    const __m512 f = _mm512_cvtepi32_ps(tf), product = _mm512_mul_ps(w, f);
    __m512 x = product;
    if (K) {
        const __m512 K_a = _mm512_castps256_ps512(_mm256_loadu_ps(K + a * 8));
        x = _mm512_div_ps(product, _mm512_add_ps(f, _mm512_insertf32x8(K_a, _mm256_loadu_ps(K + b * 8), 1)));
    }
    const __m512i impact =
        _mm512_maskz_max_epi32(_mm512_test_epi32_mask(tf, tf), _mm512_cvtps_epi32(x), _mm512_set1_epi32(1));
    __m256i *to_a = (__m256i *)(void *)(scores + a * 8), *to_b = (__m256i *)(void *)(scores + b * 8);
    _mm256_storeu_si256(to_a, _mm256_add_epi32(_mm256_loadu_si256(to_a), _mm512_castsi512_si256(impact)));
    _mm256_storeu_si256(to_b, _mm256_add_epi32(_mm256_loadu_si256(to_b), _mm512_extracti64x4_epi64(impact, 1)));
}
#endif

static inline void NAME(add_each)(uint32_t *scores, const NAME(dense_segment) * s, const uint8_t *ranges, uint32_t n,
                                  float w, const float *K)
{
    uint32_t i = 0;
#if VECTOR == 64
    for (; i + 1 < n; i += 2)
        NAME(add_ranges)(scores, s, ranges + i, _mm512_set1_ps(w), K);
#endif
    for (; i < n; ++i)
        NAME(add_range)
    (scores + ranges[i] * 8, NAME(members_of)(s, ranges[i]), _mm256_set1_ps(w), K ? K + ranges[i] * 8 : NULL);
}

static void NAME(add_dense)(uint32_t *scores, const uint64_t *bits, const uint8_t *tfs, const uint8_t *ranges,
                            uint32_t n, const gx_range_scorer *scorer)
{
    const NAME(dense_segment) s = NAME(open_segment)(bits, tfs);
    if (scorer->linear)
        NAME(add_each)(scores, &s, ranges, n, scorer->w * (1 / GX_LINEAR_K), NULL);
    else
        NAME(add_each)(scores, &s, ranges, n, scorer->w, scorer->K);
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

static uint32_t NAME(keep)(uint32_t *scores, uint8_t *ranges, uint32_t *n, const uint16_t *rest,
                           const gx_range_limit *limit)
{
    int32_t least[GX_SEGMENT_RANGES];
    uint32_t kept = 0, live = 0;
    NAME(find_least)(least, rest, limit);
    for (uint32_t i = 0; i < *n; ++i) {
        const uint32_t range = ranges[i];
        __m256i *of = (__m256i *)(void *)(scores + range * 8);
        const __m256i score = _mm256_loadu_si256(of), need = _mm256_set1_epi32(least[range]);
        const bool reaches = !_mm256_testz_si256(_mm256_set1_epi32(-1), _mm256_cmpgt_epi32(score, need));
        _mm256_storeu_si256(of, _mm256_and_si256(score, _mm256_set1_epi32(-(int)reaches)));
        ranges[kept] = (uint8_t)range;
        kept += reaches;
        live |= (uint32_t)reaches << range;
    }
    *n = kept;
    return live;
}
#else
static uint32_t NAME(keep)(uint32_t *scores, uint8_t *ranges, uint32_t *n, const uint16_t *rest,
                           const gx_range_limit *limit)
{
    int32_t least[GX_SEGMENT_RANGES];
    uint32_t kept = 0, live = 0;
    NAME(find_least)(least, rest, limit);
    for (uint32_t i = 0; i < *n; ++i) {
        uint32_t *of = scores + ranges[i] * GX_RANGE_DOCS, most = 0;
        for (uint32_t d = 0; d < GX_RANGE_DOCS; ++d)
            most = of[d] > most ? of[d] : most;
        if ((int32_t)most > least[ranges[i]]) {
            live |= UINT32_C(1) << ranges[i];
            ranges[kept++] = ranges[i];
        } else {
            memset(of, 0, GX_RANGE_DOCS * sizeof *of);
        }
    }
    *n = kept;
    return live;
}

static void NAME(add_dense)(uint32_t *scores, const uint64_t *bits, const uint8_t *tfs, const uint8_t *ranges,
                            uint32_t n, const gx_range_scorer *scorer)
{
    for (uint32_t word = 0, next = 0; word < 4; ++word) {
        uint64_t live = 0;
        for (; next < n && ranges[next] / 8 == word; ++next)
            live |= UINT64_C(255) << ranges[next] % 8 * 8;
        for (uint64_t left = bits[word]; left; left &= left - 1, ++tfs) {
            const uint32_t d = word * 64 + (uint32_t)__builtin_ctzll(left);
            if (live >> d % 64 & 1)
                scores[d] += gx_bm25_impact(scorer->w, *tfs, scorer->linear ? GX_LINEAR_K : scorer->K[d]);
        }
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
#endif

static void NAME(add_linear)(uint32_t *scores, const gx_narrow_posting *postings, uint32_t n, uint32_t live,
                             const uint32_t *impacts)
{
    for (uint32_t at = 0; at < n; at += 16) {
        for (uint32_t left = NAME(live_of)(postings + at, n - at, live); left; left &= left - 1) {
            const gx_narrow_posting p = postings[at + (uint32_t)__builtin_ctz(left) / BITS_A_POSTING];
            scores[p % GX_SEGMENT_DOCS] += impacts[p >> GX_SEGMENT_SHIFT];
        }
    }
}

static void NAME(add_narrow)(uint32_t *scores, const gx_narrow_posting *postings, uint32_t n, uint32_t live,
                             const gx_range_scorer *scorer)
{
    for (uint32_t at = 0; at < n; at += 16) {
        for (uint32_t left = NAME(live_of)(postings + at, n - at, live); left; left &= left - 1) {
            const gx_narrow_posting p = postings[at + (uint32_t)__builtin_ctz(left) / BITS_A_POSTING];
            const uint32_t d = p % GX_SEGMENT_DOCS;
            scores[d] += gx_bm25_impact(scorer->w, p >> GX_SEGMENT_SHIFT, scorer->K[d]);
        }
    }
}

static const gx_range_kernels KERNELS = {
    NAME(sum_bounds), NAME(add_common), NAME(add_sparse), NAME(add_tiles),  NAME(reach),
    NAME(add_dense),  NAME(keep),       NAME(add_linear), NAME(add_narrow), NAME(best_of),
};

#undef BITS_A_POSTING
#undef JOIN_
#undef JOIN
#undef NAME
#undef KERNELS
#undef VECTOR
