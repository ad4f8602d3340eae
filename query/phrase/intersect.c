#include "query/phrase/intersect.h"

#include "codecs/words/simd.h"

static uint64_t sum_portable(const uint32_t *values, uint32_t n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; ++i)
        sum += values[i];
    return sum;
}

static uint32_t intersect_portable(const uint32_t *docids, uint32_t n, const uint32_t *block, uint32_t *from,
                                   uint32_t *at)
{
    uint32_t found = 0, j = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t d = docids[i];
        while (block[j + 7] < d)
            j += 8;
        while (block[j] < d)
            ++j;
        from[found] = i;
        at[found] = j;
        found += block[j] == d;
    }
    return found;
}

static void keep_portable(uint32_t *array, const uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i)
        array[i] = array[from[i]];
}

static uint32_t within_portable(const uint32_t *docids, const uint32_t *at, uint32_t n, uint32_t base,
                                const uint32_t *tfs, const uint32_t *lens, const uint32_t *most, uint32_t first,
                                uint32_t *from)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t tf = tfs[at[i] - base];
        from[kept] = first + i;
        kept += lens[docids[i]] <= most[tf < GX_LIMIT_TFS ? tf : GX_LIMIT_TFS - 1];
    }
    return kept;
}

static void begins_portable(const uint32_t *values, uint32_t n, uint32_t *sums)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; ++i) {
        sums[i] = sum;
        sum += values[i];
    }
    sums[n] = sum;
}

/* Both rise. */
static uint32_t keep_starts_portable(uint32_t *starts, uint32_t n, const uint32_t *positions, uint32_t n_positions,
                                     uint32_t add)
{
    uint32_t kept = 0, j = 0;
    for (uint32_t i = 0; i < n; ++i) {
        while (j < n_positions && positions[j] + add < starts[i])
            ++j;
        if (j == n_positions)
            break;
        starts[kept] = starts[i];
        kept += positions[j] + add == starts[i];
    }
    return kept;
}

static uint32_t first_starts_portable(const gx_block_places *b, const uint32_t *at, uint32_t n, uint32_t add,
                                      uint32_t *starts, uint32_t used, uint32_t *begin, uint32_t *n_starts)
{
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t *begins = b->begins + (at[i] - b->base), more = add - b->sums[(int64_t)begins[0] - 1] - 1;
        begin[i] = used;
        n_starts[i] = begins[1] - begins[0];
        for (uint32_t j = begins[0]; j < begins[1]; ++j)
            starts[used++] = b->sums[j] + more;
    }
    return used;
}

static void next_starts_portable(const gx_block_places *b, const uint32_t *at, uint32_t n, uint32_t add,
                                 uint32_t *starts, const uint32_t *begin, uint32_t *n_starts)
{
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t *begins = b->begins + (at[i] - b->base), more = add - b->sums[(int64_t)begins[0] - 1] - 1;
        if (n_starts[i])
            n_starts[i] =
                keep_starts_portable(starts + begin[i], n_starts[i], b->sums + begins[0], begins[1] - begins[0], more);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,popcnt")
static uint32_t intersect_avx2(const uint32_t *docids, uint32_t n, const uint32_t *block, uint32_t *from, uint32_t *at)
{
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    uint32_t found = 0, j = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t d = docids[i];
        while (block[j + 7] < d)
            j += 8;
        const __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(block + j)), sign);
        const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(d ^ 0x80000000u)), x);
        const uint32_t k = j + (uint32_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(below)));
        from[found] = i;
        at[found] = k;
        found += block[k] == d;
    }
    return found;
}
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,popcnt")
static uint32_t intersect_avx512(const uint32_t *docids, uint32_t n, const uint32_t *block, uint32_t *from,
                                 uint32_t *at)
{
    uint32_t found = 0, j = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t d = docids[i];
        while (block[j + 15] < d)
            j += 16;
        const __m512i x = _mm512_loadu_si512(block + j);
        const uint32_t below = _mm512_cmplt_epu32_mask(x, _mm512_set1_epi32((int)d));
        const uint32_t k = j + (uint32_t)_mm_popcnt_u32(below);
        from[found] = i;
        at[found] = k;
        found += block[k] == d;
    }
    return found;
}

/* The places that are read rise, and none is before those that are written. */
static void keep_avx512(uint32_t *array, const uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16) {
        const __mmask16 there = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
        const __m512i places = _mm512_maskz_loadu_epi32(there, from + i);
        _mm512_mask_storeu_epi32(array + i, there,
                                 _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), there, places, array, 4));
    }
}

static uint32_t within_avx512(const uint32_t *docids, const uint32_t *at, uint32_t n, uint32_t base,
                              const uint32_t *tfs, const uint32_t *lens, const uint32_t *most, uint32_t first,
                              uint32_t *from)
{
    const __m512i zero = _mm512_setzero_si512(), last = _mm512_set1_epi32((int)GX_LIMIT_TFS - 1);
    const __m512i limits = _mm512_loadu_si512(most), begin = _mm512_set1_epi32((int)base);
    __m512i number = _mm512_add_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                      _mm512_set1_epi32((int)first));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i += 16) {
        const __mmask16 there = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
        const __m512i posting = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(there, at + i), begin);
        const __m512i tf = _mm512_min_epu32(_mm512_mask_i32gather_epi32(zero, there, posting, tfs, 4), last);
        const __m512i doc = _mm512_maskz_loadu_epi32(there, docids + i);
        const __m512i len = _mm512_mask_i32gather_epi32(zero, there, doc, lens, 4);
        const __mmask16 good = _mm512_mask_cmple_epu32_mask(there, len, _mm512_permutexvar_epi32(tf, limits));
        _mm512_storeu_si512(from + kept, _mm512_maskz_compress_epi32(good, number));
        kept += (uint32_t)_mm_popcnt_u32(good);
        number = _mm512_add_epi32(number, _mm512_set1_epi32(16));
    }
    return kept;
}

static void begins_avx512(const uint32_t *values, uint32_t n, uint32_t *sums)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i sum = zero;
    for (uint32_t i = 0; i <= n; i += 16) {
        const __m512i value = _mm512_loadu_si512(values + i);
        __m512i x = _mm512_add_epi32(value, _mm512_alignr_epi32(value, zero, 15));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
        x = _mm512_add_epi32(_mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8)), sum);
        _mm512_storeu_si512(sums + i, _mm512_sub_epi32(x, value));
        sum = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), x);
    }
}

static uint64_t sum_avx512(const uint32_t *values, uint32_t n)
{
    __m512i sum = _mm512_setzero_si512();
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8)
        sum = _mm512_add_epi64(sum,
                               _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(values + i))));
    uint64_t rest = 0;
    for (; i < n; ++i)
        rest += values[i];
    return rest + (uint64_t)_mm512_reduce_add_epi64(sum);
}

#define MANY_POSITIONS 64u /* compared with each start, at most */

static uint32_t keep_starts_avx512(uint32_t *starts, uint32_t n, const uint32_t *positions, uint32_t n_positions,
                                   uint32_t add)
{
    uint32_t kept = 0;
    if (n_positions > MANY_POSITIONS)
        return keep_starts_portable(starts, n, positions, n_positions, add);
    if (n_positions <= 16) {
        const __mmask16 there = (__mmask16)((1u << n_positions) - 1);
        const __m512i x = _mm512_maskz_loadu_epi32(there, positions);
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t s = starts[i];
            starts[kept] = s;
            kept += _mm512_mask_cmpeq_epi32_mask(there, x, _mm512_set1_epi32((int)(s - add))) != 0;
        }
        return kept;
    }
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t s = starts[i];
        const __m512i y = _mm512_set1_epi32((int)(s - add));
        uint32_t found = 0;
        for (uint32_t j = 0; j < n_positions; j += 16) {
            const uint32_t left = n_positions - j;
            const __mmask16 there = (__mmask16)(left < 16 ? (1u << left) - 1 : 0xffff);
            found |= _mm512_mask_cmpeq_epi32_mask(there, _mm512_maskz_loadu_epi32(there, positions + j), y);
        }
        starts[kept] = s;
        kept += found != 0;
    }
    return kept;
}

static uint32_t first_starts_avx512(const gx_block_places *b, const uint32_t *at, uint32_t n, uint32_t add,
                                    uint32_t *starts, uint32_t used, uint32_t *begin, uint32_t *n_starts)
{
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t *begins = b->begins + (at[i] - b->base), some = begins[1] - begins[0];
        const uint32_t *sums = b->sums + begins[0];
        const __m512i more = _mm512_set1_epi32((int)(add - sums[-1] - 1));
        begin[i] = used;
        n_starts[i] = some;
        for (uint32_t j = 0; j < some; j += 16)
            _mm512_storeu_si512(starts + used + j, _mm512_add_epi32(_mm512_loadu_si512(sums + j), more));
        used += some;
    }
    return used;
}

static void next_starts_avx512(const gx_block_places *b, const uint32_t *at, uint32_t n, uint32_t add, uint32_t *starts,
                               const uint32_t *begin, uint32_t *n_starts)
{
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t *begins = b->begins + (at[i] - b->base), some = begins[1] - begins[0], old = n_starts[i];
        const uint32_t *sums = b->sums + begins[0];
        const uint32_t more = add - sums[-1] - 1;
        uint32_t *mine = starts + begin[i];
        if (old == 0)
            continue;
        if (old > 16 || some > MANY_POSITIONS) {
            n_starts[i] = keep_starts_avx512(mine, old, sums, some, more);
            continue;
        }
        const __mmask16 there = (__mmask16)((1u << old) - 1);
        const __m512i x = _mm512_maskz_loadu_epi32(there, mine);
        const __m512i wanted = _mm512_sub_epi32(x, _mm512_set1_epi32((int)more));
        uint32_t found = 0;
        for (uint32_t j = 0; j < some; ++j)
            found |= _mm512_cmpeq_epi32_mask(wanted, _mm512_set1_epi32((int)sums[j]));
        found &= there;
        _mm512_mask_storeu_epi32(mine, there, _mm512_maskz_compress_epi32((__mmask16)found, x));
        n_starts[i] = (uint32_t)_mm_popcnt_u32(found);
    }
}
#pragma GCC pop_options
#endif

gx_intersect_fn *gx_intersect_best(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    const char c = gx_simd_best()->name[0] == 'a' ? gx_simd_best()->name[3] : 0; /* avx2, avx512 */
    if (c == '5')
        return intersect_avx512;
    if (c == '2')
        return intersect_avx2;
#endif
    return intersect_portable;
}

gx_keep_fn *gx_keep_best(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (gx_intersect_best() == intersect_avx512)
        return keep_avx512;
#endif
    return keep_portable;
}

gx_within_fn *gx_within_best(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (gx_intersect_best() == intersect_avx512)
        return within_avx512;
#endif
    return within_portable;
}

gx_begins_fn *gx_begins_best(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (gx_intersect_best() == intersect_avx512)
        return begins_avx512;
#endif
    return begins_portable;
}

gx_sum_fn *gx_sum_best(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (gx_intersect_best() == intersect_avx512)
        return sum_avx512;
#endif
    return sum_portable;
}

gx_keep_starts_fn *gx_keep_starts_best(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (gx_intersect_best() == intersect_avx512)
        return keep_starts_avx512;
#endif
    return keep_starts_portable;
}

gx_first_starts_fn *gx_first_starts_best(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (gx_intersect_best() == intersect_avx512)
        return first_starts_avx512;
#endif
    return first_starts_portable;
}

gx_next_starts_fn *gx_next_starts_best(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (gx_intersect_best() == intersect_avx512)
        return next_starts_avx512;
#endif
    return next_starts_portable;
}
