/* Simple-9 (Anh and Moffat, Inf. Retr. 2005), Simple-16 (Zhang, Long and Suel, WWW 2008) and
 * Simple-8b (Anh and Moffat, SPE 2010). Each word of 32 or 64 bits holds as many integers as fit.
 * The top 4 bits of the word are its selector (simple.h).
 *
 * The encoder takes the selector with the most integers that fit. The last word of a block may have
 * room for more integers than are left; these are 0. A block of zeros takes no words. A word of 64
 * bits is two of 32, the lower one first.
 */
#include <string.h>

#include "codecs/codec.h"
#include "codecs/compared/simple.h"
#include "codecs/words/bits.h"

enum { BLOCK = 128, N_SELECTORS = 16 };

typedef struct scheme {
    uint8_t runs[N_SELECTORS][6];  /* n0, b0, n1, b1, n2, b2 */
    uint8_t count[N_SELECTORS];    /* integers in a word; 0: the selector does not exist or is an escape */
    uint32_t size;                 /* length of a word, in 32-bit words */
    uint32_t limit;                /* integers of this value or more are escaped; 0: none */
    uint32_t escape, escape_shift; /* an escape is a word with word >> escape_shift == escape */
} scheme;

#define RUN_ROW(s, n0, b0, n1, b1, n2, b2) [s] = {n0, b0, n1, b1, n2, b2},
#define COUNT_ROW(s, n0, b0, n1, b1, n2, b2) [s] = (n0) + (n1) + (n2),

static const scheme simple9 = {{GX_SIMPLE9(RUN_ROW)}, {GX_SIMPLE9(COUNT_ROW)}, 1,
                               GX_SIMPLE9_LIMIT,      GX_SIMPLE9_ESCAPE,       28};
static const scheme simple16 = {{GX_SIMPLE16(RUN_ROW)}, {GX_SIMPLE16(COUNT_ROW)}, 1,
                                GX_SIMPLE16_LIMIT,      GX_SIMPLE16_ESCAPE,       20};
static const scheme simple8b = {{GX_SIMPLE8B(RUN_ROW)}, {GX_SIMPLE8B(COUNT_ROW)}, 2, 0, 0, 0};

static uint32_t max_words(uint32_t n)
{
    return 2 * n;
}

/* ---- words ---- */

static inline uint64_t get_word(const scheme *s, const uint32_t *words)
{
    return s->size == 2 ? (uint64_t)words[1] << 32 | words[0] : words[0];
}

static inline uint32_t selector_of(const scheme *s, uint64_t word)
{
    return (uint32_t)(word >> (32 * s->size - 4));
}

static inline uint64_t data_of(const scheme *s, uint64_t word)
{
    return word & (((uint64_t)1 << (32 * s->size - 4)) - 1);
}

static inline bool is_escape(const scheme *s, uint64_t word)
{
    return s->limit && word >> s->escape_shift == s->escape;
}

/* ---- encoding ---- */

/* How many of n integers, whose widths are given, a word of this selector takes. 0: they do not
 * fit. */
static uint32_t count_fitting(const uint8_t *runs, const uint8_t *widths, uint32_t n)
{
    uint32_t i = 0;
    for (uint32_t r = 0; r < 6; r += 2) {
        for (const uint32_t end = i + runs[r] < n ? i + runs[r] : n; i < end; ++i) {
            if (widths[i] > runs[r + 1])
                return 0;
        }
    }
    return i;
}

/* Packs in[n] into a word of this selector. */
static uint64_t pack(const scheme *s, uint32_t selector, const uint32_t *in, uint32_t n)
{
    const uint8_t *const runs = s->runs[selector];
    uint64_t word = (uint64_t)selector << (32 * s->size - 4);
    uint32_t at = 0, i = 0;
    for (uint32_t r = 0; r < 6; r += 2) {
        for (uint32_t k = 0; k < runs[r] && i < n; ++k, at += runs[r + 1])
            word |= (uint64_t)in[i++] << at;
    }
    return word;
}

static inline uint32_t simple_encode(const scheme *s, const uint32_t *in, uint32_t n, uint32_t *out)
{
    uint32_t rest[BLOCK], any = 0, used = 0; /* rest: the integers less what an escape holds */
    uint8_t widths[BLOCK];
    for (uint32_t i = 0; i < n; ++i) {
        rest[i] = in[i];
        widths[i] = (uint8_t)gx_bit_width(in[i]);
        any |= in[i];
    }
    for (uint32_t i = 0; any && i < n;) {
        if (s->limit && rest[i] >= s->limit) {
            out[used++] = s->escape << s->escape_shift | rest[i] >> GX_SIMPLE_LOW;
            rest[i] &= gx_low_bits(GX_SIMPLE_LOW);
            widths[i] = (uint8_t)gx_bit_width(rest[i]);
        }
        uint32_t selector = 0, m;
        while ((m = s->count[selector] ? count_fitting(s->runs[selector], widths + i, n - i) : 0) == 0)
            ++selector;
        const uint64_t word = pack(s, selector, rest + i, m);
        out[used++] = (uint32_t)word;
        if (s->size == 2)
            out[used++] = (uint32_t)(word >> 32);
        i += m;
    }
    return used;
}

/* ---- decoding ---- */

/* Unpacks n integers of b bits. */
static inline uint32_t *unpack_run(uint32_t *out, uint64_t data, uint32_t at, uint32_t n, uint32_t b)
{
    for (uint32_t k = 0; k < n; ++k)
        out[k] = (uint32_t)(data >> (at + k * b) & (((uint64_t)1 << b) - 1));
    return out + n;
}

/* Unpacks a whole word. All widths are constants here. */
#define UNPACK(s, n0, b0, n1, b1, n2, b2)                                                                              \
    case s:                                                                                                            \
        unpack_run(unpack_run(unpack_run(out, data, 0, n0, b0), data, (n0) * (b0), n1, b1), data,                      \
                   (n0) * (b0) + (n1) * (b1), n2, b2);                                                                 \
        break;

static inline void unpack9(uint32_t selector, uint32_t data, uint32_t *out)
{
    switch (selector) {
        GX_SIMPLE9(UNPACK)
    }
}

static inline void unpack16(uint32_t selector, uint32_t data, uint32_t *out)
{
    switch (selector) {
        GX_SIMPLE16(UNPACK)
    }
}

static inline void unpack8b(uint32_t selector, uint64_t data, uint32_t *out)
{
    switch (selector) {
        GX_SIMPLE8B(UNPACK)
    }
}

static inline void unpack(const scheme *s, uint32_t selector, uint64_t data, uint32_t *out)
{
    if (s == &simple9)
        unpack9(selector, (uint32_t)data, out);
    else if (s == &simple16)
        unpack16(selector, (uint32_t)data, out);
    else
        unpack8b(selector, data, out);
}

/* Integer i of a word, i < its count. */
static inline uint32_t unpack_one(const uint8_t *runs, uint64_t data, uint32_t i)
{
    for (; i >= runs[0]; runs += 2) {
        data >>= runs[0] * runs[1];
        i -= runs[0];
    }
    return (uint32_t)(data >> i * runs[1] & (((uint64_t)1 << runs[1]) - 1));
}

static inline void simple_decode(const scheme *s, const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t *out)
{
    uint32_t p = 0, high = 0;
    for (uint32_t k = 0; p < n && n_words - k >= s->size; k += s->size) {
        const uint64_t word = get_word(s, words + k), data = data_of(s, word);
        if (is_escape(s, word)) {
            high = (uint32_t)(word & GX_SIMPLE_HIGH) << GX_SIMPLE_LOW;
            continue;
        }
        const uint32_t selector = selector_of(s, word), count = s->count[selector];
        if (count == 0)
            continue;
        if (count <= n - p) {
            unpack(s, selector, data, out + p);
        } else {
            for (uint32_t i = 0; i < n - p; ++i)
                out[p + i] = unpack_one(s->runs[selector], data, i);
        }
        out[p] += high;
        high = 0;
        p += count < n - p ? count : n - p;
    }
    memset(out + p, 0, (n - p) * sizeof *out);
}

static inline uint32_t at(const scheme *s, const uint32_t *words, uint32_t n_words, uint32_t i)
{
    uint32_t high = 0;
    for (uint32_t k = 0; n_words - k >= s->size; k += s->size) {
        const uint64_t word = get_word(s, words + k);
        if (is_escape(s, word)) {
            high = (uint32_t)(word & GX_SIMPLE_HIGH) << GX_SIMPLE_LOW;
            continue;
        }
        const uint32_t selector = selector_of(s, word), count = s->count[selector];
        if (i < count)
            return unpack_one(s->runs[selector], data_of(s, word), i) + (i ? 0 : high);
        i -= count;
        high = count ? 0 : high;
    }
    return 0;
}

/* The bits that the first m integers of a word take. */
static uint32_t run_bits(const uint8_t *runs, uint32_t m)
{
    uint32_t bits = 0;
    for (uint32_t r = 0; r < 6; r += 2) {
        const uint32_t k = runs[r] < m ? runs[r] : m;
        bits += k * runs[r + 1];
        m -= k;
    }
    return bits;
}

static inline bool simple_valid(const scheme *s, const uint32_t *words, uint32_t n_words, uint32_t n)
{
    uint32_t p = 0;
    uint64_t any = 0;
    bool escaped = false;
    if (n_words == 0)
        return true;
    if (n_words % s->size)
        return false;
    for (uint32_t k = 0; k < n_words; k += s->size) {
        const uint64_t word = get_word(s, words + k), data = data_of(s, word);
        if (p == n)
            return false;
        if (is_escape(s, word)) {
            const uint32_t high = (uint32_t)(word & GX_SIMPLE_HIGH);
            if (escaped || high < s->limit >> GX_SIMPLE_LOW || (word & ((1u << s->escape_shift) - 1)) != high)
                return false;
            any = 1;
            escaped = true;
            continue;
        }
        const uint32_t selector = selector_of(s, word), count = s->count[selector];
        if (count == 0)
            return false;
        const uint32_t m = count < n - p ? count : n - p;
        const uint8_t *const runs = s->runs[selector];
        if (data >> run_bits(runs, m) || (runs[1] > 32 && data >> 32) ||
            (escaped && unpack_one(runs, data, 0) > gx_low_bits(GX_SIMPLE_LOW)))
            return false;
        escaped = false;
        any |= data;
        p += m;
    }
    return p == n && !escaped && any;
}

/* ---- the codecs ---- */

#define SIMPLE(scheme, title, source, id, docids, tfs)                                                                 \
    static uint32_t encode_##scheme(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)                      \
    {                                                                                                                  \
        (void)param;                                                                                                   \
        return simple_encode(&scheme, in, n, out);                                                                     \
    }                                                                                                                  \
    static bool valid_##scheme(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)                     \
    {                                                                                                                  \
        (void)param;                                                                                                   \
        return simple_valid(&scheme, words, n_words, n);                                                               \
    }                                                                                                                  \
    static void decode_##scheme(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)     \
    {                                                                                                                  \
        (void)param;                                                                                                   \
        simple_decode(&scheme, words, n_words, n, out);                                                                \
    }                                                                                                                  \
    static uint32_t at_##scheme(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)        \
    {                                                                                                                  \
        (void)n;                                                                                                       \
        (void)param;                                                                                                   \
        return at(&scheme, words, n_words, i);                                                                         \
    }                                                                                                                  \
    const gx_codec gx_codec_##scheme = {                                                                               \
        #scheme,         title,          source,          id,          BLOCK, false, NULL,         max_words,          \
        encode_##scheme, valid_##scheme, decode_##scheme, at_##scheme, NULL,  NULL,  {docids, tfs}}

SIMPLE(simple9, "Simple-9", "Anh and Moffat, Inf. Retr. 2005", GX_CODEC_SIMPLE9, 23, 24);
SIMPLE(simple16, "Simple-16", "Zhang, Long and Suel, WWW 2008", GX_CODEC_SIMPLE16, 27, 34);
SIMPLE(simple8b, "Simple-8b", "Anh and Moffat, SPE 2010", GX_CODEC_SIMPLE8B, 15, 24);
