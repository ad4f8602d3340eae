#include "tools/bench/codecs/baseline_codecs.h"

#include <string.h>

#include "codecs/words/pack.h"

/* A width that bytes tell: no greater than there are. */
static uint32_t clamp_width(uint8_t width)
{
    return width < 32 ? width : 32;
}

static inline uint32_t load_32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
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
            const uint32_t b = gx_max_bit_width(in + i + 32 * k, 32);
            uint32_t words[32];
            gx_pack(in + i + 32 * k, 32, b, words);
            widths[k] = (uint8_t)b;
            memcpy(p, words, 4 * b);
            p += 4 * b;
        }
    }
    return (uint64_t)(p - out);
}

static gx_cursor open_stream(const uint8_t *bytes, uint64_t n)
{
    (void)n;
    return (gx_cursor){NULL, bytes, 0};
}

/* 32 integers of b bits, or their running sum from last on. b is known when this is compiled, so
 * that shifts and masks are constants. */
__attribute__((always_inline)) static inline uint32_t unpack_32(const uint8_t *in, const uint32_t b, bool docids,
                                                                uint32_t last, uint32_t *out)
{
    const uint32_t mask = gx_low_bits(b);
#pragma GCC unroll 32
    for (uint32_t i = 0; i < 32; ++i) {
        const uint32_t k = i * b / 32, shift = i * b % 32;
        uint32_t v = 0;
        if (b > 0) {
            v = load_32(in + 4 * k) >> shift;
            if (shift + b > 32)
                v |= load_32(in + 4 * k + 4) << (32 - shift);
            if (shift + b != 32)
                v &= mask;
        }
        out[i] = docids ? last += v : v;
    }
    return last;
}

typedef uint32_t unpack_32_fn(const uint8_t *in, uint32_t last, uint32_t *out);

/* A function for each width: one switch over all of them takes compilers minutes where every access
 * is instrumented. */
#define UNPACK_32(w)                                                                                                   \
    static uint32_t integers_32_##w(const uint8_t *in, uint32_t last, uint32_t *out)                                   \
    {                                                                                                                  \
        return unpack_32(in, w, false, last, out);                                                                     \
    }                                                                                                                  \
    static uint32_t docids_32_##w(const uint8_t *in, uint32_t last, uint32_t *out)                                     \
    {                                                                                                                  \
        return unpack_32(in, w, true, last, out);                                                                      \
    }
UNPACK_32(0)
GX_WIDTHS(UNPACK_32)
#undef UNPACK_32

#define INTEGERS(w) integers_32_##w,
#define DOCIDS(w) docids_32_##w,
static unpack_32_fn *const unpack_32_of[2][33] = {{INTEGERS(0) GX_WIDTHS(INTEGERS)}, {DOCIDS(0) GX_WIDTHS(DOCIDS)}};
#undef INTEGERS
#undef DOCIDS

static void bp32_step(gx_cursor *c, uint32_t *out, bool docids)
{
    const uint8_t *p = c->data;
    uint32_t last = c->last;
    for (uint32_t i = 0; i < GX_STEP; i += 128) {
        const uint8_t *const widths = p;
        p += 4;
        for (int k = 0; k < 4; ++k) {
            const uint32_t b = clamp_width(widths[k]);
            last = unpack_32_of[docids][b](p, last, out + i + 32 * k);
            p += 4 * b;
        }
    }
    c->data = p;
    c->last = last;
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

typedef __m128i unpack_fn(const __m128i *in, __m128i last, uint32_t *out);

#define UNPACK(w)                                                                                                      \
    static __m128i integers_##w(const __m128i *in, __m128i last, uint32_t *out)                                        \
    {                                                                                                                  \
        return vertical_unpack(in, w, false, last, out);                                                               \
    }                                                                                                                  \
    static __m128i docids_##w(const __m128i *in, __m128i last, uint32_t *out)                                          \
    {                                                                                                                  \
        return vertical_unpack(in, w, true, last, out);                                                                \
    }
UNPACK(0)
GX_WIDTHS(UNPACK)
#undef UNPACK

#define INTEGERS(w) integers_##w,
#define DOCIDS(w) docids_##w,
static unpack_fn *const unpack[2][33] = {{INTEGERS(0) GX_WIDTHS(INTEGERS)}, {DOCIDS(0) GX_WIDTHS(DOCIDS)}};
#undef INTEGERS
#undef DOCIDS

static uint64_t simdbp_encode(const uint32_t *in, uint64_t n, uint8_t *out)
{
    uint8_t *p = out;
    for (uint64_t i = 0; i < n; i += 2048) {
        uint8_t *const widths = p;
        p += 16;
        for (int k = 0; k < 16; ++k) {
            const uint32_t *const block = in + i + 128 * k, b = gx_max_bit_width(block, 128);
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

/* Lists that do not lie in the caches are fetched so many bytes ahead: the processor itself prefetches within pages. */
enum { CACHE_LINE = 64, PREFETCHED = 4096 };

static void simdbp_step(gx_cursor *c, uint32_t *out, bool docids)
{
    const uint8_t *const widths = c->data;
    __m128i last = _mm_set1_epi32((int)c->last);
    c->data += 16;
    for (int k = 0; k < 16; ++k) {
        const uint32_t b = clamp_width(widths[k]);
        for (uint32_t i = 0; i < 16 * b; i += CACHE_LINE)
            __builtin_prefetch(c->data + PREFETCHED + i);
        last = unpack[docids][b]((const __m128i *)c->data, last, out + 128 * k);
        c->data += 16 * b;
    }
    c->last = (uint32_t)_mm_cvtsi128_si32(last);
}
#endif

/* ---- VarintGB: a byte with the lengths of four integers before each four ---- */

static uint32_t put_group(const uint32_t *in, uint8_t *p, uint8_t *control)
{
    uint32_t at = 0, c = 0;
    for (uint32_t j = 0; j < 4; ++j) {
        const uint32_t more = (gx_bit_width(in[j] | 1) - 1) / 8;
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
        p += put_group(in + i, p, control);
    }
    return (uint64_t)(p - out);
}

/* Where the second to fourth integer of a group begin, and where the next group does, by the
 * control byte. */
typedef struct group_shape {
    uint8_t begins[3], bytes;
} group_shape;

#define MORE(c, j) ((c) >> (2 * (j)) & 3)
#define SHAPE(c)                                                                                                       \
    {                                                                                                                  \
        {MORE(c, 0) + 1, MORE(c, 0) + MORE(c, 1) + 2, MORE(c, 0) + MORE(c, 1) + MORE(c, 2) + 3},                       \
            MORE(c, 0) + MORE(c, 1) + MORE(c, 2) + MORE(c, 3) + 4                                                      \
    }
#define SHAPES_4(c) SHAPE(c), SHAPE(c + 1), SHAPE(c + 2), SHAPE(c + 3)
#define SHAPES_16(c) SHAPES_4(c), SHAPES_4(c + 4), SHAPES_4(c + 8), SHAPES_4(c + 12)
#define SHAPES_64(c) SHAPES_16(c), SHAPES_16(c + 16), SHAPES_16(c + 32), SHAPES_16(c + 48)
static const group_shape shapes[256] = {SHAPES_64(0), SHAPES_64(64), SHAPES_64(128), SHAPES_64(192)};

static inline uint32_t load_bytes(const uint8_t *p, uint32_t more)
{
    static const uint32_t masks[4] = {0xff, 0xffff, 0xffffff, 0xffffffff};
    return load_32(p) & masks[more];
}

__attribute__((always_inline)) static inline const uint8_t *varintgb_groups(const uint8_t *p, uint32_t *out,
                                                                            uint32_t *last, bool docids)
{
    uint32_t before = *last;
    for (uint32_t i = 0; i < GX_STEP; i += 4) {
        const uint32_t control = *p++;
        const group_shape s = shapes[control];
        uint32_t v[4] = {load_bytes(p, control & 3), load_bytes(p + s.begins[0], control >> 2 & 3),
                         load_bytes(p + s.begins[1], control >> 4 & 3), load_bytes(p + s.begins[2], control >> 6)};
        p += s.bytes;
        for (uint32_t j = 0; j < 4; ++j)
            out[i + j] = docids ? before += v[j] : v[j];
    }
    *last = before;
    return p;
}

static void varintgb_step(gx_cursor *c, uint32_t *out, bool docids)
{
    c->data = docids ? varintgb_groups(c->data, out, &c->last, true) : varintgb_groups(c->data, out, &c->last, false);
}

/* ---- StreamVByte: the control bytes of all groups of four before all their bytes. Debian's
 * libstreamvbyte has the portable decoder alone on x86-64, a fourteenth as fast as this one ---- */

#if defined __x86_64__
#include <tmmintrin.h>

/* For each control byte, which byte of the group each byte of the four integers is; 0x80: none, a
 * zero. */
#define FROM(c, j, k, begin) (k) <= MORE(c, j) ? (begin) + (k) : 0x80
#define FROM_4(c, j, begin) FROM(c, j, 0, begin), FROM(c, j, 1, begin), FROM(c, j, 2, begin), FROM(c, j, 3, begin)
#define PLACES(c)                                                                                                      \
    {                                                                                                                  \
        FROM_4(c, 0, 0), FROM_4(c, 1, MORE(c, 0) + 1), FROM_4(c, 2, MORE(c, 0) + MORE(c, 1) + 2),                      \
            FROM_4(c, 3, MORE(c, 0) + MORE(c, 1) + MORE(c, 2) + 3)                                                     \
    }
#define PLACES_4(c) PLACES(c), PLACES(c + 1), PLACES(c + 2), PLACES(c + 3)
#define PLACES_16(c) PLACES_4(c), PLACES_4(c + 4), PLACES_4(c + 8), PLACES_4(c + 12)
#define PLACES_64(c) PLACES_16(c), PLACES_16(c + 16), PLACES_16(c + 32), PLACES_16(c + 48)
static const uint8_t places[256][16]
    __attribute__((aligned(16))) = {PLACES_64(0), PLACES_64(64), PLACES_64(128), PLACES_64(192)};

#define BYTES(c) MORE(c, 0) + MORE(c, 1) + MORE(c, 2) + MORE(c, 3) + 4
#define BYTES_4(c) BYTES(c), BYTES(c + 1), BYTES(c + 2), BYTES(c + 3)
#define BYTES_16(c) BYTES_4(c), BYTES_4(c + 4), BYTES_4(c + 8), BYTES_4(c + 12)
#define BYTES_64(c) BYTES_16(c), BYTES_16(c + 16), BYTES_16(c + 32), BYTES_16(c + 48)
static const uint8_t group_bytes[256] = {BYTES_64(0), BYTES_64(64), BYTES_64(128), BYTES_64(192)};

static uint64_t streamvbyte_encode(const uint32_t *in, uint64_t n, uint8_t *out)
{
    uint8_t *p = out + n / 4;
    for (uint64_t i = 0; i < n; i += 4)
        p += put_group(in + i, p, out + i / 4);
    return (uint64_t)(p - out);
}

static gx_cursor streamvbyte_open(const uint8_t *bytes, uint64_t n)
{
    return (gx_cursor){bytes, bytes + n / 4, 0};
}

/* Eight control bytes are loaded at once: loads are what bounds the loop. */
__attribute__((target("ssse3"), always_inline)) static inline void streamvbyte_groups(gx_cursor *cursor, uint32_t *out,
                                                                                      bool docids)
{
    const uint8_t *p = cursor->data;
    __m128i last = _mm_set1_epi32((int)cursor->last);
    for (uint32_t i = 0; i < GX_STEP / 4; i += 8) {
        uint64_t controls;
        memcpy(&controls, cursor->control + i, 8);
#pragma GCC unroll 8
        for (uint32_t j = 0; j < 8; ++j, controls >>= 8) {
            const uint32_t c = controls & 0xff;
            __m128i v =
                _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), _mm_load_si128((const __m128i *)places[c]));
            p += group_bytes[c];
            if (docids) {
                v = _mm_add_epi32(v, _mm_slli_si128(v, 4));
                v = _mm_add_epi32(v, _mm_slli_si128(v, 8));
                v = _mm_add_epi32(v, last);
                last = _mm_shuffle_epi32(v, 0xff);
            }
            _mm_storeu_si128((__m128i *)(out + 4 * (i + j)), v);
        }
    }
    cursor->control += GX_STEP / 4;
    cursor->data = p;
    cursor->last = (uint32_t)_mm_cvtsi128_si32(last);
}

__attribute__((target("ssse3"))) static void streamvbyte_step(gx_cursor *c, uint32_t *out, bool docids)
{
    if (docids)
        streamvbyte_groups(c, out, true);
    else
        streamvbyte_groups(c, out, false);
}
#endif

static const gx_baseline bp32 = {"bp32", "BP32", "Anh and Moffat 2010", bp32_encode, open_stream, bp32_step};
static const gx_baseline varintgb = {"varintgb",      "VarintGB",  "Dean, WSDM 2009",
                                     varintgb_encode, open_stream, varintgb_step};
#if defined __x86_64__
static const gx_baseline simdbp = {"simdbp128",   "SIMD-BP",   "Lemire and Boytsov 2015",
                                   simdbp_encode, open_stream, simdbp_step};
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
