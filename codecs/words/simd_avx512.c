/* AVX-512 with byte permutation (VBMI, VBMI2): sixteen integers at a time. */
#ifdef __x86_64__
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")

#include <immintrin.h>
#include <string.h>

#include "codecs/words/bits.h"
#include "codecs/words/eliasfano.h"
#include "codecs/words/simd.h"
#include "codecs/words/unpack_avx512.h"

#define INLINE __attribute__((always_inline)) static inline

extern const gx_simd gx_simd_avx2;

static bool usable(void)
{
    return gx_simd_avx2.usable() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

static void prefix_sum(uint32_t *v, uint32_t n, uint32_t head)
{
    __m512i next = gx_first_prefix(head, 1);
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_si512(v + i, gx_add_prefix(_mm512_loadu_si512(v + i), &next));
    uint32_t before = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(next)) - 1;
    for (; i < n; ++i)
        v[i] = before += v[i] + 1;
}

/* Integers 16 g to 16 g + 15 of more than 25 bits: each is cut from two neighbouring words. */
INLINE __m512i unpack16_wide(const uint32_t *words, size_t g, uint32_t b)
{
    const __m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i bit = _mm512_mullo_epi32(index, _mm512_set1_epi32((int)b)), word = _mm512_srli_epi32(bit, 5);
    const __m512i after = _mm512_min_epu32(_mm512_add_epi32(word, _mm512_set1_epi32(1)), _mm512_set1_epi32(15));
    const __m512i w = _mm512_loadu_si512((const uint8_t *)words + 2 * b * g);
    const __m512i shifted = _mm512_shrdv_epi32(_mm512_permutexvar_epi32(word, w), _mm512_permutexvar_epi32(after, w),
                                               _mm512_and_si512(bit, _mm512_set1_epi32(31)));
    return _mm512_and_si512(shifted, _mm512_set1_epi32((int)gx_low_bits(b)));
}

static void unpack(const uint32_t *words, uint32_t n, uint32_t b, uint32_t *out)
{
    if (b <= 25) {
        const gx_unpacker512 u = gx_unpack_words_from(words, b);
        for (size_t g = 0; 16 * g < n; ++g)
            _mm512_storeu_si512(out + 16 * g, gx_unpack_words(&u, g));
    } else {
        for (size_t g = 0; 16 * g < n; ++g)
            _mm512_storeu_si512(out + 16 * g, unpack16_wide(words, g, b));
    }
}

static void unpack_docids(const uint32_t *words, uint32_t n, uint32_t b, uint32_t head, uint32_t *out)
{
    if (b <= 16 && n % 128 == 0) {
        const gx_unpacker512 u = gx_unpack_halves_from(words, b);
        __m512i prefix = gx_first_prefix(head, 2);
        for (size_t g = 0; 128 * g < n; ++g)
            gx_unpack_docids128(&u, g, 128, &prefix, out + 128 * g);
    } else if (b <= 25) {
        gx_unpack_docids16(words, b, n, head, out);
    } else {
        __m512i prefix = gx_first_prefix(head, 1);
        for (size_t g = 0; 16 * g < n; ++g)
            _mm512_storeu_si512(out + 16 * g, gx_add_prefix(unpack16_wide(words, g, b), &prefix));
    }
}

/* The bytes of sixteen integers, as bits of the 64 bytes that they expand to: 0001, 0011, 0111 or
 * 1111 for each integer. */
INLINE uint64_t byte_mask(uint32_t selectors)
{
    const uint64_t ones = 0x1111111111111111u, x = _pdep_u64(selectors, 0x3333333333333333u);
    const uint64_t low = x & ones, high = x >> 1 & ones;
    return ones | (low | high) << 1 | high << 2 | (low & high) << 3;
}

INLINE __m512i expand(uint64_t mask, const uint8_t *data)
{
    __m512i w = _mm512_loadu_si512(data), zero = _mm512_setzero_si512();
    /* Zen 4 is slow to expand from memory, and waits for the old value of the target register. The
     * asm keeps the load separate and the target a known zero. */
    __asm__("" : "+v"(w), "+v"(zero));
    return _mm512_mask_expand_epi8(zero, mask, w);
}

INLINE bool decode_vbyte(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, bool docids,
                         uint32_t head, uint32_t *out)
{
    __m512i next = gx_first_prefix(head, 1);
    for (uint32_t i = 0; i < n; i += 16) {
        if (data > end)
            return false;
        const uint64_t mask = byte_mask(selectors[i / 16]);
        const __m512i v = expand(mask, data);
        data += _mm_popcnt_u64(mask);
        _mm512_storeu_si512(out + i, docids ? gx_add_prefix(v, &next) : v);
    }
    return true;
}

static bool bytes(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    return decode_vbyte(selectors, data, end, n, false, 0, out);
}

/* Whether each of 128 integers has at most two bytes. */
INLINE bool two_bytes(const uint32_t *selectors)
{
    return _mm256_testz_si256(_mm256_loadu_si256((const __m256i *)selectors), _mm256_set1_epi32((int)0xaaaaaaaa));
}

static bool bytes_docids(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t head,
                         uint32_t *out)
{
    uint32_t i = 0;
    for (; i + 128 <= n && two_bytes(selectors); i += 128, selectors += 8) {
        const uint8_t *from[5] = {data};
        uint64_t mask[4];
        for (int k = 0; k < 4; ++k) {
            memcpy(&mask[k], selectors + 2 * k, 8);
            mask[k] = mask[k] << 1 | 0x5555555555555555u; /* 32 integers: 01 or 11 for each */
            from[k + 1] = from[k] + _mm_popcnt_u64(mask[k]);
        }
        if (from[3] > end)
            return false;
        __m512i v[4], next = gx_first_prefix(head, 2);
        for (int k = 0; k < 4; ++k)
            v[k] = expand(mask[k], from[k]);
        gx_add_prefix_pairs(v, &next, out + i);
        data = from[4];
        head = out[i + 127] + 1;
    }
    return i == n || decode_vbyte(selectors, data, end, n - i, true, head, out + i);
}

static uint8_t *put_bytes(const uint32_t *in, uint32_t n, uint32_t *selectors, uint8_t *data)
{
    const uint8_t *const room = data + 4 * (size_t)n;
    for (uint32_t i = 0; i < n; i += 16) {
        const __mmask16 here = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        const __m512i v = _mm512_maskz_loadu_epi32(here, in + i);
        const uint32_t two = _mm512_cmpgt_epu32_mask(v, _mm512_set1_epi32(0xff));
        const uint32_t three = _mm512_cmpgt_epu32_mask(v, _mm512_set1_epi32(0xffff));
        const uint32_t four = _mm512_cmpgt_epu32_mask(v, _mm512_set1_epi32(0xffffff));
        selectors[i / 16] = _pdep_u32(two ^ three ^ four, 0x55555555u) | _pdep_u32(three, 0xaaaaaaaau);
        const uint64_t mask = _pdep_u64(here, 0x1111111111111111u) | _pdep_u64(two, 0x2222222222222222u) |
                              _pdep_u64(three, 0x4444444444444444u) | _pdep_u64(four, 0x8888888888888888u);
        const __m512i packed = _mm512_maskz_compress_epi8(mask, v);
        const size_t length = (size_t)_mm_popcnt_u64(mask);
        if (room - data >= 64)
            _mm512_storeu_si512(data, packed);
        else
            _mm512_mask_storeu_epi8(data, length == 64 ? ~0ull : (1ull << length) - 1, packed);
        data += length;
    }
    return data;
}

/* Decodes up to sixteen integers from the next 64 bytes: finds the bytes that end integers, gathers
 * the bytes of each integer, and closes the gaps between their groups of seven bits by
 * multiplication. */
static bool su(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    uint8_t count[64];
    for (uint8_t k = 0; k < 64; ++k)
        count[k] = k;
    const __m512i places = _mm512_loadu_si512(count), minus_one = _mm512_set1_epi32(-1), one = _mm512_set1_epi32(1);
    const __m512i first_byte = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    for (uint32_t i = 0; i < n;) {
        if (data > end)
            return false;
        const __m512i w = _mm512_loadu_si512(data);
        const uint64_t ends = ~(uint64_t)_mm512_movepi8_mask(w);
        __m512i v;
        uint32_t here = 16;
        if ((ends & 0xffff) == 0xffff) {
            v = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(w));
            data += 16;
        } else {
            const __m512i last = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(_mm512_maskz_compress_epi8(ends, places)));
            const __m512i first = _mm512_add_epi32(_mm512_alignr_epi32(last, minus_one, 15), one);
            const __m512i more = _mm512_sub_epi32(last, first);
            const __m512i from = _mm512_add_epi8(_mm512_shuffle_epi8(first, first_byte), _mm512_set1_epi32(0x03020100));
            const __m512i beyond = _mm512_max_epi32(_mm512_sub_epi32(_mm512_set1_epi32(24), _mm512_slli_epi32(more, 3)),
                                                    _mm512_setzero_si512());
            const __m512i x = _mm512_srlv_epi32(_mm512_sllv_epi32(_mm512_permutexvar_epi8(from, w), beyond), beyond);
            const __m512i sevens = _mm512_and_si512(x, _mm512_set1_epi8(0x7f));
            v = _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_set1_epi16((short)0x8001), sevens),
                                  _mm512_set1_epi32(0x40000001));
            const __mmask16 five = _mm512_cmpgt_epi32_mask(more, _mm512_set1_epi32(3));
            if (five) {
                const __m512i fifth = _mm512_permutexvar_epi8(_mm512_add_epi32(first, _mm512_set1_epi32(4)), w);
                v = _mm512_mask_or_epi32(v, five, v, _mm512_slli_epi32(fifth, 28));
            }
            const uint32_t there = (uint32_t)_mm_popcnt_u64(ends);
            here = there < 16 ? there : 16;
            if (here == 0)
                return false;
            data += _tzcnt_u64(_pdep_u64(1ull << (here - 1), ends)) + 1;
        }
        if (i + 16 <= n)
            _mm512_storeu_si512(out + i, v);
        else
            _mm512_mask_storeu_epi32(out + i, (__mmask16)((1u << (n - i)) - 1), v);
        i += here;
    }
    return true;
}

static bool gb(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    return gx_simd_avx2.gb(data, end, n, out);
}

static bool gu(const uint8_t *groups, uint32_t n_groups, bool complete, uint32_t n, uint32_t *out)
{
    return gx_simd_avx2.gu(groups, n_groups, complete, n, out);
}

/* The positions of the set bits of x are what remains of the bytes 0 .. 63 when x compresses
 * them. */
static void add_high_parts(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t b, uint32_t first,
                           uint32_t step, uint32_t *out)
{
    static const uint8_t numbers[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                        32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                        48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i to_63 = _mm512_loadu_si512(numbers), sixteen = _mm512_set1_epi32(16);
    uint8_t places[128 + 64];
    uint32_t i = 0;
    for (uint32_t k = 0; k < n_words && i < n; k += 2) {
        const uint64_t x = gx_ef_high_bits(words, n_words, k);
        const __m512i here = _mm512_add_epi8(to_63, _mm512_set1_epi8((char)(32 * k - GX_EF_B_BITS)));
        _mm512_storeu_si512(places + i, _mm512_maskz_compress_epi8(x, here));
        i += (uint32_t)_mm_popcnt_u64(x);
    }
    if (i < n)
        memset(places + i, 0, n - i);
    __m512i number = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)numbers));
    __m512i base =
        _mm512_add_epi32(_mm512_set1_epi32((int)first), _mm512_mullo_epi32(number, _mm512_set1_epi32((int)step)));
    const __m512i next = _mm512_set1_epi32((int)(16 * step)), byte = _mm512_set1_epi32(0xff);
    const __m128i shift = _mm_cvtsi32_si128((int)b);
    for (uint32_t j = 0; j < n; j += 16) {
        const __m512i place = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(places + j)));
        const __m512i h = _mm512_and_si512(_mm512_sub_epi32(place, number), byte);
        const __m512i prefix_sum = _mm512_add_epi32(_mm512_sll_epi32(h, shift), base);
        const __mmask16 there = n - j >= 16 ? 0xffff : (__mmask16)((1u << (n - j)) - 1);
        _mm512_mask_storeu_epi32(out + j, there,
                                 _mm512_add_epi32(prefix_sum, _mm512_maskz_loadu_epi32(there, out + j)));
        number = _mm512_add_epi32(number, sixteen);
        base = _mm512_add_epi32(base, next);
    }
}

const gx_simd gx_simd_avx512 = {"avx512",   "AVX-512", usable, unpack, unpack_docids, bytes, bytes_docids, put_bytes,
                                prefix_sum, su,        gb,     gu,     add_high_parts};
#else
typedef int gx_no_avx512;
#endif
