/* PForDelta (Ding et al., WWW 2009, section 4.2). One width b serves the whole list. An integer
 * that needs more than b bits is an exception. The exceptions of a block form two arrays, their
 * positions (as gaps) and their high parts. Each array is coded by PForDelta once more, with its
 * own width in each block.
 *
 *     | n integers of b bits | header | e gaps    | e high parts | the arrays' exceptions | 0 .. |
 *       ceil(n b / 32) words   1 word   g bits each  a bits each    first those of the gaps
 *
 * A gap is the number of integers between two exceptions; the first gap counts from the block's
 * start. A high part is (integer >> b) - 1. An exception of an array is its index there, 7 bits,
 * and its own high part, which has the same width for all exceptions of that array.
 *
 * The fields of the header, from the lowest bit:
 *
 *     e - 1                                    7 bits
 *     g                                        3
 *     a                                        5
 *     number of exceptions of the gaps         4
 *     width of their high parts                3
 *     number of exceptions of the high parts   4
 *     width of their high parts                5
 *
 * A block without exceptions has no header. A block of zeros takes no words. A block that would not
 * be shorter than its integers stores them as n words.
 */
#include <string.h>

#include "codecs/codec.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"

enum { BLOCK = 128, MAX_B = 31, POSITION_BITS = 7, MAX_NESTED = 15, MAX_NESTED_WIDTH = 25 };

/* An array that PForDelta codes once more: its width, its number of exceptions and their width. */
typedef struct nested_array {
    uint32_t width, n_nested, nested_width;
} nested_array;

typedef struct header {
    uint32_t e;
    nested_array gaps, high_parts;
} header;

static uint32_t nested_bits(nested_array a, uint32_t e)
{
    return e * a.width + a.n_nested * (POSITION_BITS + a.nested_width);
}

static uint32_t exception_words(header h)
{
    return 1 + gx_div_up(nested_bits(h.gaps, h.e) + nested_bits(h.high_parts, h.e), 32);
}

static header read_header(uint32_t x)
{
    return (header){(x & 127) + 1, {x >> 7 & 7, x >> 15 & 15, x >> 19 & 7}, {x >> 10 & 31, x >> 22 & 15, x >> 26 & 31}};
}

static uint32_t header_word(header h)
{
    return (h.e - 1) | h.gaps.width << 7 | h.high_parts.width << 10 | h.gaps.n_nested << 15 |
           h.gaps.nested_width << 19 | h.high_parts.n_nested << 22 | h.high_parts.nested_width << 26;
}

static uint32_t max_words(uint32_t n)
{
    return n;
}

/* The b that is estimated to make the list shortest. The estimate for an exception is its high
 * bits, plus 7 bits for its position and the widths. */
static uint8_t param(const uint32_t *values, uint64_t n)
{
    uint64_t count[33] = {0}, least = UINT64_MAX, e = 0, above = 0; /* above: high bits of all exceptions */
    uint8_t best = 0;
    for (uint64_t i = 0; i < n; ++i)
        count[gx_bit_width(values[i])] += 1;
    for (uint8_t b = MAX_B + 1; b-- > 0;) {
        e += count[b + 1];
        above += e;
        const uint64_t bits = n * b + e * 7 + above;
        if (bits < least) {
            least = bits;
            best = b;
        }
    }
    return best;
}

/* The width, at most max_width, that makes an array of e integers shortest. If no width will do,
 * the result has n_nested > MAX_NESTED. */
static nested_array choose_nested_width(const uint32_t *v, uint32_t e, uint32_t max_width)
{
    uint32_t count[34] = {0}, max = 0, n_nested = 0;
    for (uint32_t i = 0; i < e; ++i) {
        count[gx_bit_width(v[i])] += 1;
        max = v[i] > max ? v[i] : max;
    }
    nested_array best = {0, MAX_NESTED + 1, 0};
    uint32_t least = UINT32_MAX;
    for (uint32_t b = gx_bit_width(max) + 1; b-- > 0;) {
        n_nested += count[b + 1];
        const nested_array a = {b, n_nested, n_nested ? gx_bit_width((max >> b) - 1) : 0};
        if (n_nested > MAX_NESTED || a.nested_width > MAX_NESTED_WIDTH)
            break;
        if (b <= max_width && nested_bits(a, e) < least) {
            least = nested_bits(a, e);
            best = a;
        }
    }
    return best;
}

/* Writes the low bits of the array's e integers. */
static void put_slots(uint32_t *words, uint32_t *at, const uint32_t *v, uint32_t e, nested_array a)
{
    for (uint32_t i = 0; i < e; ++i, *at += a.width)
        gx_write_bits(words, *at, v[i] & gx_low_bits(a.width), a.width);
}

/* Writes the array's exceptions. */
static void put_nested_exceptions(uint32_t *words, uint32_t *at, const uint32_t *v, uint32_t e, nested_array a)
{
    for (uint32_t i = 0; i < e; ++i) {
        if ((uint64_t)v[i] >> a.width == 0)
            continue;
        gx_write_bits(words, *at, i, POSITION_BITS);
        gx_write_bits(words, *at + POSITION_BITS, (v[i] >> a.width) - 1, a.nested_width);
        *at += POSITION_BITS + a.nested_width;
    }
}

static uint32_t pfordelta_encode(const uint32_t *in, uint32_t n, uint8_t b, uint32_t *out)
{
    uint32_t low[BLOCK], gaps[BLOCK], high_parts[BLOCK], e = 0, next = 0, any = 0;
    b = b > MAX_B ? 32 : b;
    for (uint32_t i = 0; i < n; ++i) {
        low[i] = in[i] & gx_low_bits(b);
        any |= in[i];
        if ((uint64_t)in[i] >> b) {
            gaps[e] = i - next;
            high_parts[e++] = (in[i] >> b) - 1;
            next = i + 1;
        }
    }
    if (any == 0)
        return 0;
    const uint32_t row = gx_packed_words(n, b);
    const header h = {e, choose_nested_width(gaps, e, 7), choose_nested_width(high_parts, e, 31)};
    const uint32_t n_words = row + (e ? exception_words(h) : 0);
    if (n_words >= n || (e && (h.gaps.n_nested > MAX_NESTED || h.high_parts.n_nested > MAX_NESTED))) {
        memcpy(out, in, n * sizeof *out);
        return n;
    }
    gx_pack(low, n, b, out);
    if (e) {
        uint32_t *const behind = out + row + 1, at = 0;
        out[row] = header_word(h);
        memset(behind, 0, (n_words - row - 1) * sizeof *behind);
        put_slots(behind, &at, gaps, e, h.gaps);
        put_slots(behind, &at, high_parts, e, h.high_parts);
        put_nested_exceptions(behind, &at, gaps, e, h.gaps);
        put_nested_exceptions(behind, &at, high_parts, e, h.high_parts);
    }
    return n_words;
}

static uint32_t read_bits_or_zero(const uint32_t *words, uint32_t at, uint32_t b)
{
    return b ? gx_bits_at(words, at, b) : 0;
}

/* Reads an array into v: its low bits start at bit `at`, its exceptions at bit `deep`. Returns
 * false if no encoder can have written the positions of the exceptions. */
static bool get_nested_array(const uint32_t *words, uint32_t at, uint32_t deep, uint32_t e, nested_array a, uint32_t *v)
{
    bool good = a.n_nested > 0 || a.nested_width == 0;
    for (uint32_t i = 0; i < e; ++i)
        v[i] = read_bits_or_zero(words, at + i * a.width, a.width);
    for (uint32_t k = 0, next = 0; k < a.n_nested; ++k, deep += POSITION_BITS + a.nested_width) {
        const uint32_t place = read_bits_or_zero(words, deep, POSITION_BITS);
        good = good && place >= next && place < e;
        next = place + 1;
        if (place < e)
            v[place] += (read_bits_or_zero(words, deep + POSITION_BITS, a.nested_width) + 1) << a.width;
    }
    return good;
}

/* Reads the exceptions of a compressed block. Returns false if no encoder can have written them; *e
 * and the first *e values of both arrays are then still safe to use. */
static bool get_exceptions(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t b, uint32_t *e, uint32_t *gaps,
                           uint32_t *high_parts)
{
    const uint32_t row = gx_packed_words(n, b <= MAX_B ? b : 32);
    *e = 0;
    if (row >= n_words)
        return row == n_words && b <= MAX_B;
    const header h = read_header(words[row]);
    if (exception_words(h) != n_words - row || h.e > n || h.high_parts.nested_width > MAX_NESTED_WIDTH)
        return false;
    const uint32_t at = h.e * h.gaps.width, deep = at + h.e * h.high_parts.width;
    const uint32_t deeper = deep + h.gaps.n_nested * (POSITION_BITS + h.gaps.nested_width);
    *e = h.e;
    const bool good_gaps = get_nested_array(words + row + 1, 0, deep, h.e, h.gaps, gaps);
    return get_nested_array(words + row + 1, at, deeper, h.e, h.high_parts, high_parts) && good_gaps;
}

static bool pfordelta_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t b)
{
    uint32_t e, gaps[BLOCK], high_parts[BLOCK];
    if (!gx_is_compressed(n_words, n))
        return n_words == 0 || n_words == n;
    if (!get_exceptions(words, n_words, n, b, &e, gaps, high_parts))
        return false;
    const uint32_t row = gx_packed_words(n, b);
    if (n * b % 32 && words[row - 1] >> n * b % 32)
        return false;
    uint32_t position = 0;
    for (uint32_t k = 0; k < e; ++k, ++position) {
        position += gaps[k];
        if (position >= n || (uint64_t)high_parts[k] + 1 > UINT32_MAX >> b)
            return false;
    }
    if (e == 0)
        return true;
    const header h = read_header(words[row]);
    const uint32_t bits = nested_bits(h.gaps, h.e) + nested_bits(h.high_parts, h.e);
    return words[row] >> 31 == 0 && (bits % 32 == 0 || words[n_words - 1] >> bits % 32 == 0);
}

static void pfordelta_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t b, uint32_t *out)
{
    uint32_t e, gaps[BLOCK], high_parts[BLOCK];
    if (!gx_is_compressed(n_words, n)) {
        gx_copy_uncompressed(words, n_words, n, out);
        return;
    }
    if (!get_exceptions(words, n_words, n, b, &e, gaps, high_parts)) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    gx_simd_best()->unpack(words, n, b, out);
    for (uint32_t k = 0, position = 0; k < e; ++k, ++position) {
        position += gaps[k];
        if (position >= n)
            break;
        out[position] += (high_parts[k] + 1) << b;
    }
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t b, uint32_t i)
{
    uint32_t e, gaps[BLOCK], high_parts[BLOCK];
    if (!gx_is_compressed(n_words, n))
        return n_words ? words[i] : 0;
    if (!get_exceptions(words, n_words, n, b, &e, gaps, high_parts))
        return 0;
    uint32_t x = read_bits_or_zero(words, i * b, b);
    for (uint32_t k = 0, position = 0; k < e && position <= i; ++k, ++position) {
        position += gaps[k];
        if (position == i)
            x += (high_parts[k] + 1) << b;
    }
    return x;
}

const gx_codec gx_codec_pfordelta = {"pfordelta",
                                     "PForDelta",
                                     "Ding et al., WWW 2009, 4.2",
                                     GX_CODEC_PFORDELTA,
                                     BLOCK,
                                     false,
                                     param,
                                     max_words,
                                     pfordelta_encode,
                                     pfordelta_valid,
                                     pfordelta_decode,
                                     at,
                                     NULL,
                                     NULL,
                                     {20, 37},
                                     MAX_B};
