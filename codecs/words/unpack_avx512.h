/* unpack_avx512.h: packed integers in AVX-512 with VBMI, and docids from them, for codecs and for
 * the CPU engine's kernels. The file that includes it asks the compiler for AVX-512 first.
 *
 * A vector has 64 integers of up to 8 bits as bytes, 32 of up to 16 bits as halves of a word, or 16
 * of up to 25 bits as words. Each kind takes one byte permutation, one shift of each lane and one
 * mask. A vector of n integers is read with 64 bytes, of which n b / 8 belong to it.
 */
#ifndef GX_CODECS_WORDS_UNPACK_AVX512_H
#define GX_CODECS_WORDS_UNPACK_AVX512_H

#include <immintrin.h>
#include <stddef.h>

#include "codecs/words/packed_tables.h"

/* Bytes: the 8 integers of 64-bit lane q begin at byte q b. */
#define ZMM_FROM8(b, q, t) (q) * (b) + (t)
#define ZMM_SHIFT8(b, q, t) (t) * (b)
static const _Alignas(64) uint8_t zmm_from8[][64] = {GX_ROWS_TO_8(ZMM_FROM8)}, zmm_shift8[][64] = {
                                                                                   GX_ROWS_TO_8(ZMM_SHIFT8)};

/* Halves: the 4 integers of 64-bit lane q begin at bit 4 q b. Both bytes of a half have a shift of
 * their own. */
#define ZMM_FROM16(b, q, t) (q) * 4 * (b) / 8 + (t)
#define ZMM_SHIFT16(b, q, t) (q) * 4 * (b) % 8 + (t) / 2 * (b) + 8 * ((t)&1)
static const _Alignas(64) uint8_t zmm_from16[][64] = {GX_ROWS_TO_16(ZMM_FROM16)}, zmm_shift16[][64] = {
                                                                                      GX_ROWS_TO_16(ZMM_SHIFT16)};

/* Words: the shift of each lies in its first byte. */
#define ZMM_BIT32(b, q, t) (2 * (q) + (t) / 4) * (b)
#define ZMM_FROM32(b, q, t) ZMM_BIT32(b, q, t) / 8 + (t) % 4
#define ZMM_SHIFT32(b, q, t) ((t) % 4 ? 0 : ZMM_BIT32(b, q, t) % 8)
static const _Alignas(64) uint8_t zmm_from32[][64] = {GX_ROWS_TO_25(ZMM_FROM32)}, zmm_shift32[][64] = {
                                                                                      GX_ROWS_TO_25(ZMM_SHIFT32)};

typedef struct gx_unpacker512 {
    __m512i from, shift, mask;
    const uint8_t *p;
    size_t step; /* bytes that a vector of integers takes */
} gx_unpacker512;

static inline gx_unpacker512 gx_unpack_halves_from(const uint32_t *words, uint32_t b)
{
    return (gx_unpacker512){_mm512_load_si512(zmm_from16[b]), _mm512_load_si512(zmm_shift16[b]),
                            _mm512_set1_epi16((short)((1u << b) - 1)), (const uint8_t *)words, 4 * b};
}

static inline gx_unpacker512 gx_unpack_words_from(const uint32_t *words, uint32_t b)
{
    return (gx_unpacker512){_mm512_load_si512(zmm_from32[b]), _mm512_load_si512(zmm_shift32[b]),
                            _mm512_set1_epi32((int)((1u << b) - 1)), (const uint8_t *)words, 2 * b};
}

/* Integers 64 g to 64 g + 63 as bytes. b <= 8. */
static inline __m512i gx_unpack_bytes(const uint32_t *words, uint32_t b, uint32_t g)
{
    const __m512i from = _mm512_load_si512(zmm_from8[b]), shift = _mm512_load_si512(zmm_shift8[b]);
    const __m512i bytes = _mm512_permutexvar_epi8(from, _mm512_loadu_si512((const uint8_t *)words + 8 * b * g));
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(shift, bytes), _mm512_set1_epi8((char)((1 << b) - 1)));
}

/* Integers 32 g to 32 g + 31 as halves. b <= 16. */
static inline __m512i gx_unpack_halves(const gx_unpacker512 *u, size_t g)
{
    const __m512i bytes = _mm512_permutexvar_epi8(u->from, _mm512_loadu_si512(u->p + u->step * g));
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(u->shift, bytes), u->mask);
}

/* Integers 16 g to 16 g + 15 as words. b <= 25. */
static inline __m512i gx_unpack_words(const gx_unpacker512 *u, size_t g)
{
    const __m512i bytes = _mm512_permutexvar_epi8(u->from, _mm512_loadu_si512(u->p + u->step * g));
    return _mm512_and_si512(_mm512_srlv_epi32(bytes, u->shift), u->mask);
}

/* ---- docids: docids[i] = first - 1 + (v[0] + 1) + .. + (v[i] + 1) ---- */

/* Inclusive sums of 16 lanes: first within 128 bits, where shifts are cheap, then across. */
static inline __m512i gx_sums16(__m512i v)
{
    const __m512i four_before = _mm512_setr_epi32(0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11);
    const __m512i eight_before = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7);
    v = _mm512_add_epi32(v, _mm512_bslli_epi128(v, 4));
    v = _mm512_add_epi32(v, _mm512_bslli_epi128(v, 8));
    v = _mm512_add_epi32(v, _mm512_maskz_permutexvar_epi32(0xfff0, four_before, v));
    return _mm512_add_epi32(v, _mm512_maskz_permutexvar_epi32(0xff00, eight_before, v));
}

/* What to add to the sums of the first vector to get docids. Each lane stands for `each` integers.
 */
static inline __m512i gx_first_prefix(uint32_t first, int each)
{
    const __m512i lanes = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    return _mm512_add_epi32(_mm512_set1_epi32((int)(first - 1)), _mm512_mullo_epi32(lanes, _mm512_set1_epi32(each)));
}

/* The same for the next vector, given the sums of this one. */
static inline __m512i gx_next_prefix(__m512i prefix, __m512i sums, int each)
{
    const __m512i all = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums);
    return _mm512_add_epi32(prefix, _mm512_add_epi32(all, _mm512_set1_epi32(16 * each)));
}

/* The docids of 16 integers. *prefix: of each 1. */
static inline __m512i gx_add_prefix(__m512i v, __m512i *prefix)
{
    const __m512i sums = gx_sums16(v), docids = _mm512_add_epi32(sums, *prefix);
    *prefix = gx_next_prefix(*prefix, sums, 1);
    return docids;
}

/* The docids of 128 integers in halves. *prefix: of each 2. A vector gives 32 docids for little
 * more than the cost of sixteen: the sums of pairs give every second docid, and the others follow
 * by subtraction. The sums of the four vectors are independent and in a loop of their own, so that
 * the CPU computes them in parallel. */
static inline void gx_add_prefix_pairs(const __m512i v[4], __m512i *prefix, uint32_t *docids)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    __m512i odd[4], sums[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
        odd[k] = _mm512_srli_epi32(v[k], 16);
        sums[k] = gx_sums16(_mm512_add_epi32(_mm512_and_si512(v[k], _mm512_set1_epi32(0xffff)), odd[k]));
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k, docids += 32) {
        const __m512i odd_docids = _mm512_add_epi32(sums[k], *prefix);
        const __m512i even_docids = _mm512_sub_epi32(odd_docids, _mm512_add_epi32(odd[k], _mm512_set1_epi32(1)));
        *prefix = gx_next_prefix(*prefix, sums[k], 2);
        _mm512_storeu_si512(docids, _mm512_permutex2var_epi32(even_docids, low, odd_docids));
        _mm512_storeu_si512(docids + 16, _mm512_permutex2var_epi32(even_docids, high, odd_docids));
    }
}

/* 128 docids from integers 128 g on, b <= 16; those from n on are undefined, and their integers are
 * not read. */
static inline void gx_unpack_docids128(const gx_unpacker512 *u, size_t g, uint32_t n, __m512i *prefix, uint32_t *docids)
{
    __m512i v[4];
#pragma GCC unroll 4
    for (uint32_t k = 0; k < 4; ++k)
        v[k] = 32 * k < n ? gx_unpack_halves(u, 4 * g + k) : _mm512_setzero_si512();
    gx_add_prefix_pairs(v, prefix, docids);
}

/* n docids, b <= 25; up to a multiple of 16 is written. */
static inline void gx_unpack_docids16(const uint32_t *words, uint32_t b, uint32_t n, uint32_t first, uint32_t *docids)
{
    const gx_unpacker512 u = gx_unpack_words_from(words, b);
    __m512i prefix = gx_first_prefix(first, 1);
    for (size_t g = 0; 16 * g < n; ++g)
        _mm512_storeu_si512(docids + 16 * g, gx_add_prefix(gx_unpack_words(&u, g), &prefix));
}

#endif
