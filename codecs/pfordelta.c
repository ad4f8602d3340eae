/* PForDelta (Ding et al., WWW 2009, section 4.2): one width b for the whole list; what is above it
 * in the integers that need more, and where these are, are two arrays, and each is coded by
 * PForDelta once more, with a width of its own a block.
 *
 *     | n integers of b bits | header | e gaps of g bits | e aboves of a bits | exceptions of the
 *     gaps | of the aboves | 0 .. |
 *       ceil(n b / 32) words   a word   bits in a row, to the block's end
 *
 * The gaps are those between the exceptions' positions, less one, the first from -1 on; above is
 * (integer >> b) - 1. An exception of these arrays is its place there, 7 bits, and what is above
 * its width, less one, in a width that serves all. The header has, from the lowest bit: e - 1: 7,
 * g: 3, a: 5, gaps' exceptions: 4, their width: 3, aboves' exceptions: 4, their width: 5. A block
 * without exceptions has no header. Blocks of zeros take no words; one that would not be shorter
 * than its integers has them as they are, n words.
 */
#include <string.h>

#include "codecs/codec.h"
#include "codecs/pack.h"
#include "codecs/simd.h"

enum { BLOCK = 128, MAX_B = 31, PLACE = 7, MAX_DEEP = 15, MAX_DEEP_WIDTH = 25 };

/* An array coded once more: its width, its exceptions and their width. */
typedef struct inner {
    uint32_t width, n_deep, deep_width;
} inner;

typedef struct header {
    uint32_t e;
    inner gaps, aboves;
} header;

static uint32_t inner_bits(inner a, uint32_t e)
{
    return e * a.width + a.n_deep * (PLACE + a.deep_width);
}

static uint32_t words_of(header h)
{
    return 1 + gx_div_up(inner_bits(h.gaps, h.e) + inner_bits(h.aboves, h.e), 32);
}

static header read_header(uint32_t x)
{
    return (header){(x & 127) + 1, {x >> 7 & 7, x >> 15 & 15, x >> 19 & 7}, {x >> 10 & 31, x >> 22 & 15, x >> 26 & 31}};
}

static uint32_t header_word(header h)
{
    return (h.e - 1) | h.gaps.width << 7 | h.aboves.width << 10 | h.gaps.n_deep << 15 | h.gaps.deep_width << 19 |
           h.aboves.n_deep << 22 | h.aboves.deep_width << 26;
}

static uint32_t max_words(uint32_t n)
{
    return n;
}

/* The b that seems to make the list shortest, an exception costing its bits above, and 7 for its
 * place and the widths. */
static uint8_t param(const uint32_t *values, uint64_t n)
{
    uint64_t count[33] = {0}, least = UINT64_MAX, e = 0, above = 0; /* above: bits over b of all exceptions */
    uint8_t best = 0;
    for (uint64_t i = 0; i < n; ++i)
        count[gx_width(values[i])] += 1;
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

/* The width that makes an array of e shortest, at most max_width; n_deep > MAX_DEEP: none will do.
 * */
static inner choose(const uint32_t *v, uint32_t e, uint32_t max_width)
{
    uint32_t count[34] = {0}, max = 0, n_deep = 0;
    for (uint32_t i = 0; i < e; ++i) {
        count[gx_width(v[i])] += 1;
        max = v[i] > max ? v[i] : max;
    }
    inner best = {0, MAX_DEEP + 1, 0};
    uint32_t least = UINT32_MAX;
    for (uint32_t b = gx_width(max) + 1; b-- > 0;) {
        n_deep += count[b + 1];
        const inner a = {b, n_deep, n_deep ? gx_width((max >> b) - 1) : 0};
        if (n_deep > MAX_DEEP || a.deep_width > MAX_DEEP_WIDTH)
            break;
        if (b <= max_width && inner_bits(a, e) < least) {
            least = inner_bits(a, e);
            best = a;
        }
    }
    return best;
}

/* The array's e slots. */
static void put_slots(uint32_t *words, uint32_t *at, const uint32_t *v, uint32_t e, inner a)
{
    for (uint32_t i = 0; i < e; ++i, *at += a.width)
        gx_put_bits(words, *at, v[i] & gx_low_bits(a.width), a.width);
}

/* And its exceptions. */
static void put_deep(uint32_t *words, uint32_t *at, const uint32_t *v, uint32_t e, inner a)
{
    for (uint32_t i = 0; i < e; ++i) {
        if ((uint64_t)v[i] >> a.width == 0)
            continue;
        gx_put_bits(words, *at, i, PLACE);
        gx_put_bits(words, *at + PLACE, (v[i] >> a.width) - 1, a.deep_width);
        *at += PLACE + a.deep_width;
    }
}

static uint32_t encode(const uint32_t *in, uint32_t n, uint8_t b, uint32_t *out)
{
    uint32_t low[BLOCK], gaps[BLOCK], aboves[BLOCK], e = 0, next = 0, any = 0;
    b = b > MAX_B ? 32 : b;
    for (uint32_t i = 0; i < n; ++i) {
        low[i] = in[i] & gx_low_bits(b);
        any |= in[i];
        if ((uint64_t)in[i] >> b) {
            gaps[e] = i - next;
            aboves[e++] = (in[i] >> b) - 1;
            next = i + 1;
        }
    }
    if (any == 0)
        return 0;
    const uint32_t row = gx_row_words(n, b);
    const header h = {e, choose(gaps, e, 7), choose(aboves, e, 31)};
    const uint32_t n_words = row + (e ? words_of(h) : 0);
    if (n_words >= n || (e && (h.gaps.n_deep > MAX_DEEP || h.aboves.n_deep > MAX_DEEP))) {
        memcpy(out, in, n * sizeof *out);
        return n;
    }
    gx_pack(low, n, b, out);
    if (e) {
        uint32_t *const behind = out + row + 1, at = 0;
        out[row] = header_word(h);
        memset(behind, 0, (n_words - row - 1) * sizeof *behind);
        put_slots(behind, &at, gaps, e, h.gaps);
        put_slots(behind, &at, aboves, e, h.aboves);
        put_deep(behind, &at, gaps, e, h.gaps);
        put_deep(behind, &at, aboves, e, h.aboves);
    }
    return n_words;
}

static uint32_t bits_at(const uint32_t *words, uint32_t at, uint32_t b)
{
    return b ? gx_bits_at(words, at, b) : 0;
}

/* The slots from bit `at` on, their exceptions from `deep` on; false: places that no encoder wrote.
 * */
static bool get_inner(const uint32_t *words, uint32_t at, uint32_t deep, uint32_t e, inner a, uint32_t *v)
{
    bool good = a.n_deep > 0 || a.deep_width == 0;
    for (uint32_t i = 0; i < e; ++i)
        v[i] = bits_at(words, at + i * a.width, a.width);
    for (uint32_t k = 0, next = 0; k < a.n_deep; ++k, deep += PLACE + a.deep_width) {
        const uint32_t place = bits_at(words, deep, PLACE);
        good = good && place >= next && place < e;
        next = place + 1;
        if (place < e)
            v[place] += (bits_at(words, deep + PLACE, a.deep_width) + 1) << a.width;
    }
    return good;
}

/* A coded block's exceptions, taken apart; false: no encoder wrote them. *e, and what can be read
 * safely, in any case. */
static bool get_exceptions(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t b, uint32_t *e, uint32_t *gaps,
                           uint32_t *aboves)
{
    const uint32_t row = gx_row_words(n, b <= MAX_B ? b : 32);
    *e = 0;
    if (row >= n_words)
        return row == n_words && b <= MAX_B;
    const header h = read_header(words[row]);
    if (words_of(h) != n_words - row || h.e > n || h.aboves.deep_width > MAX_DEEP_WIDTH)
        return false;
    const uint32_t at = h.e * h.gaps.width, deep = at + h.e * h.aboves.width;
    const uint32_t deeper = deep + h.gaps.n_deep * (PLACE + h.gaps.deep_width);
    *e = h.e;
    const bool good_gaps = get_inner(words + row + 1, 0, deep, h.e, h.gaps, gaps);
    return get_inner(words + row + 1, at, deeper, h.e, h.aboves, aboves) && good_gaps;
}

static bool valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t b)
{
    uint32_t e, gaps[BLOCK], aboves[BLOCK];
    if (!gx_is_coded(n_words, n))
        return n_words == 0 || n_words == n;
    if (!get_exceptions(words, n_words, n, b, &e, gaps, aboves))
        return false;
    const uint32_t row = gx_row_words(n, b);
    if (n * b % 32 && words[row - 1] >> n * b % 32)
        return false;
    uint32_t position = 0;
    for (uint32_t k = 0; k < e; ++k, ++position) {
        position += gaps[k];
        if (position >= n || (uint64_t)aboves[k] + 1 > UINT32_MAX >> b)
            return false;
    }
    if (e == 0)
        return true;
    const header h = read_header(words[row]);
    const uint32_t bits = inner_bits(h.gaps, h.e) + inner_bits(h.aboves, h.e);
    return words[row] >> 31 == 0 && (bits % 32 == 0 || words[n_words - 1] >> bits % 32 == 0);
}

static void decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t b, uint32_t *out)
{
    uint32_t e, gaps[BLOCK], aboves[BLOCK];
    if (!gx_is_coded(n_words, n)) {
        gx_get_plain(words, n_words, n, out);
        return;
    }
    if (!get_exceptions(words, n_words, n, b, &e, gaps, aboves)) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    gx_simd_best()->unpack(words, n, b, out);
    for (uint32_t k = 0, position = 0; k < e; ++k, ++position) {
        position += gaps[k];
        if (position >= n)
            break;
        out[position] += (aboves[k] + 1) << b;
    }
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t b, uint32_t i)
{
    uint32_t e, gaps[BLOCK], aboves[BLOCK];
    if (!gx_is_coded(n_words, n))
        return n_words ? words[i] : 0;
    if (!get_exceptions(words, n_words, n, b, &e, gaps, aboves))
        return 0;
    uint32_t x = bits_at(words, i * b, b);
    for (uint32_t k = 0, position = 0; k < e && position <= i; ++k, ++position) {
        position += gaps[k];
        if (position == i)
            x += (aboves[k] + 1) << b;
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
                                     encode,
                                     valid,
                                     decode,
                                     at,
                                     NULL,
                                     NULL,
                                     {20, 37},
                                     MAX_B};
