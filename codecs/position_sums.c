/* position_sums.c: all positions of a block at once.
 *
 * With AVX-512 a value takes no step of its own. The ones of the high parts are where the sums of these parts end: bit
 * e of the i-th one tells the zeros before it, e - first - i. So ones become indexes, 64 bits a time, and of the low
 * parts, which have their places, 16 are summed at a time. */
#include <string.h>

#include "codecs/positions.h"
#include "codecs/words/simd.h"

#define HEAD_BITS 5u
#define MAX_B 31u

static bool sums_portable(gx_block_positions block, uint32_t n, uint32_t *sums)
{
    uint64_t sum = 0;
    if (!gx_positions_decode(block, n, 0, n, sums))
        return false;
    for (uint32_t i = 0; i < n; ++i)
        sums[i] = (uint32_t)(sum += sums[i] + (uint64_t)1);
    return sum <= GX_MAX_POSITION;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define AVX512_MAX_B 25u /* a low part and 7 bits before it are in 32 */

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,popcnt,bmi,bmi2")
/* The bits from `first` on that are one, n of them. Up to 64 more are written. false: there are fewer. */
static bool find_ones(gx_block_positions block, uint32_t first, uint32_t n, uint32_t *ones)
{
    uint8_t numbers[64];
    for (uint32_t i = 0; i < 64; ++i)
        numbers[i] = (uint8_t)i;
    const __m512i iota = _mm512_loadu_si512(numbers);
    uint32_t found = 0, at = first & ~63u;
    uint64_t keep = UINT64_MAX << first % 64;
    for (; found < n; at += 64, keep = UINT64_MAX) {
        const size_t word = at / 32;
        uint64_t x;
        if (word >= block.n_words)
            return false;
        memcpy(&x, block.words + word, sizeof x);
        x &= word + 1 == block.n_words ? keep & UINT32_MAX : keep;
        const __m512i here = _mm512_maskz_compress_epi8(x, iota), begin = _mm512_set1_epi32((int)at);
        const uint32_t some = (uint32_t)_mm_popcnt_u64(x);
        uint32_t *out = ones + found;
        _mm512_storeu_si512(out, _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(here)), begin));
        _mm512_storeu_si512(out + 16,
                            _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(here, 1)), begin));
        if (some > 32) {
            _mm512_storeu_si512(out + 32,
                                _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(here, 2)), begin));
            _mm512_storeu_si512(out + 48,
                                _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(here, 3)), begin));
        }
        found += some;
    }
    return true;
}

static inline __m512i prefix_sums(__m512i x)
{
    const __m512i zero = _mm512_setzero_si512();
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
    return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
}

/* sums: the ones of the high parts. 16 low parts are 2 b bytes, so that all such rows begin at the same bit. */
static void add_low(const uint8_t *bytes, uint32_t first, uint32_t n, uint32_t b, uint32_t *sums)
{
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i bit =
        _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32((int)b)), _mm512_set1_epi32((int)HEAD_BITS));
    const __m512i places = _mm512_add_epi32(
        _mm512_mullo_epi32(_mm512_srli_epi32(bit, 3), _mm512_set1_epi32(0x01010101)), _mm512_set1_epi32(0x03020100));
    const __m512i shift = _mm512_and_si512(bit, _mm512_set1_epi32(7)), one = _mm512_set1_epi32(1);
    const __m512i mask = _mm512_set1_epi32((int)(((uint32_t)1 << b) - 1)), last = _mm512_set1_epi32(15);
    const __m128i up = _mm_cvtsi32_si128((int)b);
    __m512i before = _mm512_add_epi32(lane, _mm512_set1_epi32((int)first)), sum = _mm512_setzero_si512();
    for (uint32_t i = 0; i < n; i += 16, bytes += 2 * (size_t)b) {
        __m512i low = _mm512_permutexvar_epi8(places, _mm512_loadu_si512(bytes));
        low = _mm512_add_epi32(_mm512_and_si512(_mm512_srlv_epi32(low, shift), mask), one);
        low = _mm512_add_epi32(prefix_sums(low), sum);
        sum = _mm512_permutexvar_epi32(last, low);
        const __m512i high = _mm512_sll_epi32(_mm512_sub_epi32(_mm512_loadu_si512(sums + i), before), up);
        _mm512_storeu_si512(sums + i, _mm512_add_epi32(high, low));
        before = _mm512_add_epi32(before, _mm512_set1_epi32(16));
    }
}

static bool sums_avx512(gx_block_positions block, uint32_t n, uint32_t *sums)
{
    const uint64_t bits = (uint64_t)block.n_words * 32;
    const uint32_t b = bits ? block.words[0] & MAX_B : 0;
    if (n == 0 || b > AVX512_MAX_B || bits << b > GX_MAX_POSITION / 2)
        return sums_portable(block, n, sums);
    if (HEAD_BITS + n * (uint64_t)(b + 1) > bits || n > bits)
        return false;
    const uint32_t first = HEAD_BITS + n * b;
    if (!find_ones(block, first, n, sums))
        return false;
    add_low((const uint8_t *)block.words, first, n, b, sums);
    return true;
}
#pragma GCC pop_options
#endif

bool gx_positions_sums(gx_block_positions block, uint32_t n, uint32_t *sums)
{
#if defined(__x86_64__) && defined(__GNUC__)
    static int usable; /* 0: not yet known; 1: no; 2: yes */
    int can = __atomic_load_n(&usable, __ATOMIC_RELAXED);
    if (!can) {
        can = strcmp(gx_simd_best()->name, "avx512") == 0 && __builtin_cpu_supports("avx512vbmi") &&
                      __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw")
                  ? 2
                  : 1;
        __atomic_store_n(&usable, can, __ATOMIC_RELAXED);
    }
    if (can == 2)
        return sums_avx512(block, n, sums);
#endif
    return sums_portable(block, n, sums);
}
