/* AVX-512 with byte permutation (VBMI, VBMI2): sixteen integers at a time. */
#ifdef __x86_64__
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,bmi2,popcnt")

#include <immintrin.h>
#include <string.h>

#include "codecs/bits.h"
#include "codecs/simd.h"

#define INLINE __attribute__((always_inline)) static inline

static bool usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

/* A running sum over blocks of sixteen: each lane of last has the docid before. */
INLINE __m512i running(__m512i v, __m512i *last)
{
    const __m512i zero = _mm512_setzero_si512();
    const __m512i count = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 15));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 14));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 12));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 8));
    v = _mm512_add_epi32(v, count);
    const __m512i docids = _mm512_add_epi32(v, *last);
    *last = _mm512_add_epi32(*last, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), v));
    return docids;
}

static void sum(uint32_t *v, uint32_t n, uint32_t head)
{
    __m512i last = _mm512_set1_epi32((int)(head - 1));
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_si512(v + i, running(_mm512_loadu_si512(v + i), &last));
    uint32_t before = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(last));
    for (; i < n; ++i)
        v[i] = before += v[i] + 1;
}

/* Sixteen integers of b bits take 2 b bytes. Up to 25 bits an integer lies in four bytes, wherever it begins; wider ones
 * are cut from two neighbouring words. b is a constant where this is inlined, and so are the permutations. */
INLINE void unpack_width(const uint32_t *words, uint32_t n, const int b, bool docids, uint32_t head, uint32_t *out)
{
    const uint8_t *p = (const uint8_t *)words;
    const __m512i mask = _mm512_set1_epi32((int)gx_mask((uint32_t)b));
    const __m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i bit = _mm512_mullo_epi32(index, _mm512_set1_epi32(b));
    __m512i last = _mm512_set1_epi32((int)(head - 1));
    __m512i pick, next, shift;
    if (b <= 25) {
        const __m512i byte = _mm512_srli_epi32(bit, 3);
        pick = _mm512_add_epi32(_mm512_mullo_epi32(byte, _mm512_set1_epi32(0x01010101)), _mm512_set1_epi32(0x03020100));
        shift = _mm512_and_si512(bit, _mm512_set1_epi32(7));
        next = pick;
    } else {
        pick = _mm512_srli_epi32(bit, 5);
        next = _mm512_min_epu32(_mm512_add_epi32(pick, _mm512_set1_epi32(1)), _mm512_set1_epi32(15));
        shift = _mm512_and_si512(bit, _mm512_set1_epi32(31));
    }
    for (uint32_t i = 0; i < n; i += 16, p += 2 * b) {
        const __m512i w = _mm512_loadu_si512(p);
        __m512i v;
        if (b <= 25)
            v = _mm512_srlv_epi32(_mm512_permutexvar_epi8(pick, w), shift);
        else
            v = _mm512_shrdv_epi32(_mm512_permutexvar_epi32(pick, w), _mm512_permutexvar_epi32(next, w), shift);
        v = _mm512_and_si512(v, mask);
        _mm512_storeu_si512(out + i, docids ? running(v, &last) : v);
    }
}

#define WIDTHS(X) \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) \
    X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32)

static void unpack(const uint32_t *words, uint32_t n, uint32_t b, uint32_t *out)
{
    switch (b) {
    case 0:
        for (uint32_t i = 0; i < n; i += 16)
            _mm512_storeu_si512(out + i, _mm512_setzero_si512());
        return;
#define CASE(w)                                     \
    case w:                                         \
        unpack_width(words, n, w, false, 0, out);   \
        return;
    WIDTHS(CASE)
#undef CASE
    }
}

static void unpack_docids(const uint32_t *words, uint32_t n, uint32_t b, uint32_t head, uint32_t *out)
{
    switch (b) {
    case 0:
        for (uint32_t i = 0; i < n; ++i)
            out[i] = head + i;
        return;
#define CASE(w)                                      \
    case w:                                          \
        unpack_width(words, n, w, true, head, out);  \
        return;
    WIDTHS(CASE)
#undef CASE
    }
}

/* The bytes of sixteen integers, as bits of the 64 that they are spread to: 0001, 0011, 0111 or 1111 each. */
INLINE uint64_t byte_mask(uint32_t selectors)
{
    const uint64_t ones = 0x1111111111111111u, x = _pdep_u64(selectors, 0x3333333333333333u);
    const uint64_t low = x & ones, high = x >> 1 & ones;
    return ones | (low | high) << 1 | high << 2 | (low & high) << 3;
}

INLINE bool spread(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, bool docids, uint32_t head,
                   uint32_t *out)
{
    __m512i last = _mm512_set1_epi32((int)(head - 1));
    for (uint32_t i = 0; i < n; i += 16) {
        if (data > end)
            return false;
        const uint64_t mask = byte_mask(selectors[i / 16]);
        __m512i w = _mm512_loadu_si512(data);
        __m512i zero = _mm512_setzero_si512();
        /* Zen 4 expands slowly from memory, and waits for what its target held before: say that it held zeros. */
        __asm__("" : "+v"(w), "+v"(zero));
        const __m512i v = _mm512_mask_expand_epi8(zero, mask, w);
        data += _mm_popcnt_u64(mask);
        _mm512_storeu_si512(out + i, docids ? running(v, &last) : v);
    }
    return true;
}

static bool bytes(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out)
{
    return spread(selectors, data, end, n, false, 0, out);
}

static bool bytes_docids(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t head, uint32_t *out)
{
    return spread(selectors, data, end, n, true, head, out);
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

const gx_simd gx_simd_avx512 = {"AVX-512", usable, unpack, unpack_docids, bytes, bytes_docids, put_bytes, sum};
#else
typedef int gx_no_avx512;
#endif
