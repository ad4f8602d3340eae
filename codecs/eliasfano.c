/* Elias-Fano (Vigna, WSDM 2013), one block at a time. It codes the sums s[i] = v[0] + .. + v[i] of
 * a block's integers.
 *
 *     | b      | high bits in unary: for each i, bit (s[i] >> b) + i is set | 0 .. | n low parts |
 *       5 bits   padded with zeros to a whole word                                   b bits each
 *
 * b = floor(log2(s[n-1] / n)), or 0 if that is below 1. There are thus at most 3 n high bits. Sums
 * may exceed 32 bits, but their low parts do not; integers and docids are sums and differences
 * modulo 2^32. A block of zeros takes no words.
 *
 * The i-th sum follows from the position of the i-th set bit. In a block of docids, the i-th sum is
 * docid - head - i. A single docid can thus be read without its neighbours, and can be found by
 * counting the bits of at most 13 words.
 */
#include <string.h>

#include "codecs/codec.h"
#include "codecs/words/eliasfano.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"

enum { BLOCK = 128 };

static uint32_t max_words(uint32_t n)
{
    return gx_div_up(GX_EF_B_BITS + 3 * n, 32) + n;
}

/* ---- encoding ---- */

static uint32_t low_width(uint64_t last, uint32_t n)
{
    const uint64_t mean = last / n; /* below 2^32 */
    return mean ? gx_bit_width((uint32_t)mean) - 1 : 0;
}

static uint32_t ef128_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; ++i)
        sum += in[i];
    if (sum == 0)
        return 0;
    const uint32_t b = low_width(sum, n), high = gx_div_up(GX_EF_B_BITS + n + (uint32_t)(sum >> b), 32);
    const uint32_t n_words = high + gx_div_up(n * b, 32);
    memset(out, 0, n_words * sizeof *out);
    out[0] = b;
    sum = 0;
    for (uint32_t i = 0; i < n; ++i) {
        sum += in[i];
        const uint32_t at = GX_EF_B_BITS + (uint32_t)(sum >> b) + i;
        out[at / 32] |= UINT32_C(1) << at % 32;
        gx_write_bits(out + high, i * b, (uint32_t)sum & gx_low_bits(b), b);
    }
    return n_words;
}

/* ---- reading ---- */

static uint32_t lowest_set_bit(uint64_t x)
{
    return (uint32_t)__builtin_ctzll(x);
}

static uint32_t count_bits(uint64_t x) /* for CPUs without POPCNT */
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (uint32_t)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}

/* Iterates over the set bits of a block's high part. */
typedef struct bits {
    const uint32_t *words;
    uint32_t n_words, k; /* the iterator is at words k and k + 1 */
    uint64_t left;       /* the bits of these two words that it has not passed */
} bits;

static inline bits open_high_bits(const uint32_t *words, gx_ef_block e)
{
    return (bits){words, e.n_high, 0, e.n_high ? gx_ef_high_bits(words, e.n_high, 0) : 0};
}

/* Moves to the next two words. Returns false if there are none. */
static inline bool refill_high_bits(bits *s)
{
    if (s->k + 2 >= s->n_words)
        return false;
    s->k += 2;
    s->left = gx_ef_high_bits(s->words, s->n_words, s->k);
    return true;
}

/* Sets *at to the position of the next set bit, counted from the end of the field b. Returns false
 * if there is none. */
static inline bool next_high_bit(bits *s, uint32_t *at)
{
    while (s->left == 0) {
        if (!refill_high_bits(s))
            return false;
    }
    *at = 32 * s->k + lowest_set_bit(s->left) - GX_EF_B_BITS;
    s->left &= s->left - 1;
    return true;
}

static inline uint32_t low_part(const uint32_t *words, gx_ef_block e, uint32_t i)
{
    return e.b ? gx_bits_at(words + e.n_high, i * e.b, e.b) : 0;
}

/* out[i] = sum i + first + i * step, modulo 2^32. */
static void sums(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t first, uint32_t step, uint32_t *out)
{
    const gx_ef_block e = gx_ef_open(words[0], n_words, n);
    gx_simd_best()->unpack(words + e.n_high, n, e.b, out);
    gx_simd_best()->add_high_parts(words, e.n_high, n, e.b, first, step, out);
}

static void ef128_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (n_words == 0) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    sums(words, n_words, n, 0, 0, out);
    for (uint32_t i = n - 1; i > 0; --i)
        out[i] -= out[i - 1];
}

static void ef128_decode_docids(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t head,
                                uint32_t *out)
{
    (void)param;
    if (n_words == 0) {
        for (uint32_t i = 0; i < n; ++i)
            out[i] = head + i;
    } else {
        sums(words, n_words, n, head, 1, out);
    }
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)param;
    if (n_words == 0)
        return 0;
    const gx_ef_block e = gx_ef_open(words[0], n_words, n);
    bits s = open_high_bits(words, e);
    const uint32_t before = i ? i - 1 : 0;
    uint32_t r = before, place = 0; /* r: set bits still to skip */
    for (uint32_t c; r >= (c = count_bits(s.left)); r -= c) {
        if (!refill_high_bits(&s))
            return 0;
    }
    for (; r > 0; --r)
        s.left &= s.left - 1;
    uint32_t sum = 0, v = 0;
    for (uint32_t k = before; k <= i && next_high_bit(&s, &place); ++k) {
        const uint32_t last = sum;
        sum = ((place - k) << e.b) + low_part(words, e, k);
        v = sum - last;
    }
    return v;
}

/* Counts bits, 64 at a time, until the next 64 may contain a docid that is great enough. From there
 * it goes bit by bit. */
static uint32_t ef128_next_geq(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t head,
                               uint32_t docid, uint32_t *found)
{
    (void)param;
    const uint32_t want = docid > head ? docid - head : 0;
    if (n_words == 0) {
        *found = head + want;
        return want < n ? want : n;
    }
    const gx_ef_block e = gx_ef_open(words[0], n_words, n);
    bits s = open_high_bits(words, e);
    uint32_t i = 0, at;
    /* s.left holds the bits of words k and k + 1; i set bits come before them. Every sum that ends
     * in these words is below (zeros + 1) << b. */
    for (;;) {
        const uint32_t to = i + count_bits(s.left), zeros = 32 * (s.k + 2) - GX_EF_B_BITS - to;
        if ((((uint64_t)zeros + 1) << e.b) + to > (uint64_t)want + 1 || !refill_high_bits(&s))
            break;
        i = to;
    }
    for (; i < n && next_high_bit(&s, &at); ++i) {
        const uint64_t high = (uint64_t)(at - i) << e.b;
        if (high + gx_low_bits(e.b) + i < want)
            continue;
        const uint64_t d = high + low_part(words, e, i) + i;
        if (d >= want) {
            *found = head + (uint32_t)d;
            return i;
        }
    }
    return n;
}

static bool ef128_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    if (n_words == 0)
        return true;
    const gx_ef_block e = gx_ef_open(words[0], n_words, n);
    if (e.b != (words[0] & 31) || e.n_high == 0)
        return false;
    bits s = open_high_bits(words, e);
    uint64_t sum = 0, before = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; ++i, before = sum) {
        if (!next_high_bit(&s, &at))
            return false;
        sum = ((uint64_t)(at - i) << e.b) + low_part(words, e, i);
        if (sum < before || sum - before > UINT32_MAX)
            return false;
    }
    const uint32_t spare = n * e.b % 32; /* used bits of the last word */
    return sum > 0 && e.b == low_width(sum, n) && s.left == 0 && e.n_high == gx_div_up(GX_EF_B_BITS + at + 1, 32) &&
           (spare == 0 || words[n_words - 1] >> spare == 0);
}

const gx_codec gx_codec_ef128 = {"ef128",      "Elias-Fano", "Vigna, WSDM 2013",  GX_CODEC_ELIASFANO, BLOCK,
                                 true,         NULL,         max_words,           ef128_encode,       ef128_valid,
                                 ef128_decode, at,           ef128_decode_docids, ef128_next_geq,     {14, 27}};
