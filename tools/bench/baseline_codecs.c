#include "tools/bench/baseline_codecs.h"

#include <string.h>

#include "codecs/pack.h"

/* A width that bytes tell: no greater than there are. */
static uint32_t told_width(uint8_t width)
{
    return width < 32 ? width : 32;
}

static void sum(gx_cursor *c, uint32_t *out)
{
    uint32_t last = c->last;
    for (uint32_t i = 0; i < GX_STEP; ++i)
        out[i] = last += out[i];
    c->last = last;
}

/* ---- BP32: four widths in a word, then four times 32 integers (Anh and Moffat 2010; Lemire and
 * Boytsov 2015) ---- */

static uint64_t bp32_encode(const uint32_t *in, uint64_t n, uint8_t *out)
{
    uint8_t *p = out;
    for (uint64_t i = 0; i < n; i += 128) {
        uint8_t *const widths = p;
        p += 4;
        for (int k = 0; k < 4; ++k) {
            const uint32_t b = gx_max_width(in + i + 32 * k, 32);
            uint32_t words[32];
            gx_pack(in + i + 32 * k, 32, b, words);
            widths[k] = (uint8_t)b;
            memcpy(p, words, 4 * b);
            p += 4 * b;
        }
    }
    return (uint64_t)(p - out);
}

static gx_cursor one_stream(const uint8_t *bytes, uint64_t n)
{
    (void)n;
    return (gx_cursor){bytes, bytes, 0};
}

static void bp32_step(gx_cursor *c, uint32_t *out, bool docids)
{
    for (uint32_t i = 0; i < GX_STEP; i += 128) {
        const uint8_t *const widths = c->data;
        c->data += 4;
        for (int k = 0; k < 4; ++k) {
            const uint32_t b = told_width(widths[k]);
            gx_unpack((const uint32_t *)c->data, 32, b, out + i + 32 * k);
            c->data += 4 * b;
        }
    }
    if (docids)
        sum(c, out);
}

/* ---- SIMD-BP128: sixteen widths, then sixteen times 128 integers, integer 4 k + l in lane l
 * (Lemire and Boytsov) ---- */

#if defined __x86_64__
#include <emmintrin.h>

__attribute__((always_inline)) static inline __m128i vertical_unpack(const __m128i *in, const int b, bool docids,
                                                                     __m128i last, uint32_t *out)
{
    const __m128i mask = _mm_set1_epi32((int)gx_low_bits((uint32_t)b));
#pragma GCC unroll 32
    for (int i = 0; i < 32; ++i) {
        const int k = i * b / 32, shift = i * b % 32;
        __m128i v = _mm_setzero_si128();
        if (b > 0) {
            v = _mm_srli_epi32(_mm_loadu_si128(in + k), shift);
            if (shift + b > 32)
                v = _mm_or_si128(v, _mm_slli_epi32(_mm_loadu_si128(in + k + 1), 32 - shift));
            v = _mm_and_si128(v, mask);
        }
        if (docids) {
            v = _mm_add_epi32(v, _mm_slli_si128(v, 4));
            v = _mm_add_epi32(v, _mm_slli_si128(v, 8));
            v = _mm_add_epi32(v, last);
            last = _mm_shuffle_epi32(v, 0xff);
        }
        _mm_storeu_si128((__m128i *)(out + 4 * i), v);
    }
    return last;
}

#define WIDTHS(X)                                                                                                      \
    X(0)                                                                                                               \
    X(1)                                                                                                               \
    X(2)                                                                                                               \
    X(3)                                                                                                               \
    X(4)                                                                                                               \
    X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) \
        X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32)

typedef __m128i unpack_fn(const __m128i *in, __m128i last, uint32_t *out);

/* A function a width: one switch of all of them takes compilers minutes where every access is
 * instrumented. */
#define UNPACK(w)                                                                                                      \
    static __m128i integers_##w(const __m128i *in, __m128i last, uint32_t *out)                                        \
    {                                                                                                                  \
        return vertical_unpack(in, w, false, last, out);                                                               \
    }                                                                                                                  \
    static __m128i docids_##w(const __m128i *in, __m128i last, uint32_t *out)                                          \
    {                                                                                                                  \
        return vertical_unpack(in, w, true, last, out);                                                                \
    }
WIDTHS(UNPACK)
#undef UNPACK

#define INTEGERS(w) integers_##w,
#define DOCIDS(w) docids_##w,
static unpack_fn *const unpack[2][33] = {{WIDTHS(INTEGERS)}, {WIDTHS(DOCIDS)}};
#undef INTEGERS
#undef DOCIDS

static uint64_t simdbp_encode(const uint32_t *in, uint64_t n, uint8_t *out)
{
    uint8_t *p = out;
    for (uint64_t i = 0; i < n; i += 2048) {
        uint8_t *const widths = p;
        p += 16;
        for (int k = 0; k < 16; ++k) {
            const uint32_t *const block = in + i + 128 * k, b = gx_max_width(block, 128);
            widths[k] = (uint8_t)b;
            for (uint32_t lane = 0; lane < 4; ++lane) {
                uint32_t column[32], words[32];
                for (uint32_t j = 0; j < 32; ++j)
                    column[j] = block[4 * j + lane];
                gx_pack(column, 32, b, words);
                for (uint32_t w = 0; w < b; ++w)
                    memcpy(p + 16 * w + 4 * lane, &words[w], 4);
            }
            p += 16 * b;
        }
    }
    return (uint64_t)(p - out);
}

static void simdbp_step(gx_cursor *c, uint32_t *out, bool docids)
{
    const uint8_t *const widths = c->data;
    __m128i last = _mm_set1_epi32((int)c->last);
    c->data += 16;
    for (int k = 0; k < 16; ++k) {
        const uint32_t b = told_width(widths[k]);
        last = unpack[docids][b]((const __m128i *)c->data, last, out + 128 * k);
        c->data += 16 * b;
    }
    c->last = (uint32_t)_mm_cvtsi128_si32(last);
}
#endif

/* ---- VarintGB and StreamVByte: the lengths of four integers in a byte; before each four, or all
 * before all ---- */

static uint32_t put_four(const uint32_t *in, uint8_t *p, uint8_t *control)
{
    uint32_t at = 0, c = 0;
    for (uint32_t j = 0; j < 4; ++j) {
        const uint32_t more = (gx_width(in[j] | 1) - 1) / 8;
        memcpy(p + at, &in[j], 4);
        at += more + 1;
        c |= more << (2 * j);
    }
    *control = (uint8_t)c;
    return at;
}

static uint64_t varintgb_encode(const uint32_t *in, uint64_t n, uint8_t *out)
{
    uint8_t *p = out;
    for (uint64_t i = 0; i < n; i += 4) {
        uint8_t *const control = p++;
        p += put_four(in + i, p, control);
    }
    return (uint64_t)(p - out);
}

static void varintgb_step(gx_cursor *c, uint32_t *out, bool docids)
{
    const uint8_t *p = c->data;
    for (uint32_t i = 0; i < GX_STEP; i += 4) {
        uint32_t control = *p++;
        for (uint32_t j = 0; j < 4; ++j, control >>= 2) {
            uint32_t x;
            memcpy(&x, p, 4);
            out[i + j] = x & 0xffffffffu >> (24 - 8 * (control & 3));
            p += (control & 3) + 1;
        }
    }
    c->data = p;
    if (docids)
        sum(c, out);
}

#if defined __x86_64__
static uint64_t streamvbyte_encode(const uint32_t *in, uint64_t n, uint8_t *out)
{
    uint8_t *p = out + n / 4;
    for (uint64_t i = 0; i < n; i += 4)
        p += put_four(in + i, p, out + i / 4);
    return (uint64_t)(p - out);
}

static gx_cursor streamvbyte_open(const uint8_t *bytes, uint64_t n)
{
    return (gx_cursor){bytes, bytes + n / 4, 0};
}

#include <tmmintrin.h>

__attribute__((target("ssse3"))) static void streamvbyte_step(gx_cursor *c, uint32_t *out, bool docids)
{
    static _Thread_local uint8_t places[256][16], lengths[256]; /* made when first used */
    if (!lengths[0]) {
        for (uint32_t s = 0; s < 256; ++s) {
            uint8_t at = 0;
            for (uint32_t j = 0; j < 4; ++j) {
                const uint32_t more = s >> (2 * j) & 3;
                for (uint32_t k = 0; k < 4; ++k)
                    places[s][4 * j + k] = k <= more ? (uint8_t)(at + k) : 0x80;
                at = (uint8_t)(at + more + 1);
            }
            lengths[s] = at;
        }
    }
    __m128i last = _mm_set1_epi32((int)c->last);
    for (uint32_t i = 0; i < GX_STEP; i += 4) {
        const uint8_t control = *c->control++;
        __m128i v = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)c->data),
                                     _mm_loadu_si128((const __m128i *)places[control]));
        c->data += lengths[control];
        if (docids) {
            v = _mm_add_epi32(v, _mm_slli_si128(v, 4));
            v = _mm_add_epi32(v, _mm_slli_si128(v, 8));
            v = _mm_add_epi32(v, last);
            last = _mm_shuffle_epi32(v, 0xff);
        }
        _mm_storeu_si128((__m128i *)(out + i), v);
    }
    c->last = (uint32_t)_mm_cvtsi128_si32(last);
}
#endif

static const gx_baseline bp32 = {"bp32", "BP32", "Anh and Moffat 2010", bp32_encode, one_stream, bp32_step};
static const gx_baseline varintgb = {"varintgb",      "VarintGB", "Dean, WSDM 2009",
                                     varintgb_encode, one_stream, varintgb_step};
#if defined __x86_64__
static const gx_baseline simdbp = {"simdbp128",   "SIMD-BP",  "Lemire and Boytsov 2015",
                                   simdbp_encode, one_stream, simdbp_step};
static const gx_baseline streamvbyte = {"streamvbyte",      "StreamVByte",    "Lemire et al. 2018",
                                        streamvbyte_encode, streamvbyte_open, streamvbyte_step};
#endif

const gx_baseline *const gx_baselines[] = {&bp32,
#if defined __x86_64__
                                           &simdbp,
#endif
                                           &varintgb,
#if defined __x86_64__
                                           &streamvbyte,
#endif
                                           NULL};
