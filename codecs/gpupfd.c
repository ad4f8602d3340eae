/* GPU-PFD128: bit packing with patched exceptions, after NewPFD and OptPFD (Yan et al., WWW 2009),
 * for decoders that work on a block all at once.
 *
 * The width b is chosen so that the block is smallest. Integers that need more keep their low b
 * bits in the row; what is above (it is at least 1, and 1 less is stored) goes into h bits behind
 * the row, with the position, of which the upper three bits are told by a map, as Elias and Fano
 * do: exception k at position p sets bit k + p / 16 of it.
 *
 *     | 128 integers of b bits | map of e + 7 bits | e times: p % 16: 4, above: h | 0 .. | e: 5 |
 *     h: 5 | b: 5 |
 *       4 b words                                                                  the last word's
 *       top 15 bits
 *
 * The map fits a word, and one lane of a warp has one bit of it, so that a lane finds its exception
 * without looking at the others'. Blocks of zeros take no words, and those that nothing makes
 * shorter 128; blocks of fewer than 128 integers are GPU-BP's (gpubp.c).
 */
#include <string.h>

#include "codecs/codec.h"
#include "codecs/pack.h"
#include "codecs/simd.h"

enum { BLOCK = 128, MAX_EXCEPTIONS = 25, MAX_ABOVE = 28, LOW = 4, HEADER = 15 };

/* A block's last word, taken apart. */
typedef struct patches {
    uint32_t b, h, e;
} patches;

/* Whether the block has a last word to take apart. */
static bool has_header(uint32_t n_words, uint32_t n)
{
    return n == BLOCK && n_words - 1 < BLOCK - 1;
}

static uint32_t map_bits(patches p)
{
    return p.e ? p.e + (BLOCK >> LOW) - 1 : 0;
}

static uint32_t words_of(patches p)
{
    return 4 * p.b + gx_div_up(map_bits(p) + p.e * (LOW + p.h) + HEADER, 32);
}

/* false: no encoder wrote this. */
static bool read_patches(const uint32_t *words, uint32_t n_words, patches *p)
{
    const uint32_t last = words[n_words - 1];
    *p = (patches){last >> 17 & 31, last >> 22 & 31, last >> 27};
    return p->e <= MAX_EXCEPTIONS && p->h <= MAX_ABOVE && words_of(*p) == n_words;
}

/* The exceptions, one after another: false when there is none left. */
typedef struct walk {
    const uint32_t *behind; /* the row */
    patches p;
    uint32_t map, k, position, above;
} walk;

static walk walk_of(const uint32_t *words, patches p)
{
    const uint32_t *const behind = words + 4 * p.b;
    return (walk){behind, p, p.e ? behind[0] & gx_low_bits(map_bits(p)) : 0, 0, 0, 0};
}

static bool next(walk *w)
{
    if (w->map == 0 || w->k == w->p.e)
        return false;
    const uint32_t bit = (uint32_t)__builtin_ctz(w->map), b = LOW + w->p.h;
    const uint32_t x = gx_bits_at(w->behind, map_bits(w->p) + w->k * b, b);
    w->position = ((bit - w->k) << LOW | (x & gx_low_bits(LOW))) % BLOCK;
    w->above = ((x >> LOW) + 1) << w->p.b;
    w->map &= w->map - 1;
    w->k += 1;
    return true;
}

static uint32_t max_words(uint32_t n)
{
    return n;
}

/* The best width and its exceptions; b == 32: as they are. */
static patches choose(const uint32_t *in)
{
    uint32_t count[34] = {0}, max = 0, e = 0;
    for (uint32_t i = 0; i < BLOCK; ++i) {
        count[gx_width(in[i])] += 1;
        max = in[i] > max ? in[i] : max;
    }
    patches best = {32, 0, 0};
    uint32_t least = BLOCK;
    for (uint32_t b = gx_width(max) + 1; b-- > 0;) {
        e += count[b + 1];
        if (e > MAX_EXCEPTIONS)
            break;
        const patches p = {b, e ? gx_width((max >> b) - 1) : 0, e};
        if (p.h <= MAX_ABOVE && words_of(p) < least) {
            least = words_of(p);
            best = p;
        }
    }
    return best;
}

static uint32_t encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const uint32_t widest = gx_max_width(in, n);
    const patches p = n == BLOCK && widest ? choose(in) : (patches){32, 0, 0};
    if (p.b == 32) {
        const uint32_t n_words = n == BLOCK && widest ? BLOCK : gx_div_up(n * widest, 32);
        gx_pack(in, n, gx_packed_width(n_words, n), out);
        return n_words;
    }
    const uint32_t n_words = words_of(p);
    uint32_t low[BLOCK], *const behind = out + 4 * p.b, e = 0;
    for (uint32_t i = 0; i < BLOCK; ++i)
        low[i] = in[i] & gx_low_bits(p.b);
    gx_pack(low, BLOCK, p.b, out);
    memset(behind, 0, (n_words - 4 * p.b) * sizeof *out);
    for (uint32_t i = 0; i < BLOCK; ++i) {
        if (in[i] >> p.b == 0)
            continue;
        const uint32_t at = map_bits(p) + e * (LOW + p.h);
        gx_put_bits(behind, e + (i >> LOW), 1, 1);
        gx_put_bits(behind, at, i & gx_low_bits(LOW), LOW);
        gx_put_bits(behind, at + LOW, (in[i] >> p.b) - 1, p.h);
        ++e;
    }
    out[n_words - 1] |= p.b << 17 | p.h << 22 | p.e << 27;
    return n_words;
}

static bool valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    if (!has_header(n_words, n)) {
        const uint32_t bits = n * gx_packed_width(n_words, n);
        return n_words == gx_div_up(bits, 32) && (bits % 32 == 0 || words[n_words - 1] >> bits % 32 == 0);
    }
    patches p;
    if (!read_patches(words, n_words, &p) || p.b + p.h > 32 || (p.e == 0 && p.h))
        return false;
    walk w = walk_of(words, p);
    if ((uint32_t)__builtin_popcount(w.map) != p.e)
        return false;
    for (uint32_t before = 0; next(&w); before = w.position + 1) {
        if (w.position < before)
            return false;
    }
    const uint32_t at = map_bits(p) + p.e * (LOW + p.h), end = (n_words - 4 * p.b) * 32 - HEADER;
    return at == end || gx_bits_at(w.behind, at, end - at) == 0;
}

static void decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (!has_header(n_words, n)) {
        gx_simd_best()->unpack(words, n, gx_packed_width(n_words, n), out);
        return;
    }
    patches p;
    if (!read_patches(words, n_words, &p)) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    gx_simd_best()->unpack(words, n, p.b, out);
    for (walk w = walk_of(words, p); next(&w);)
        out[w.position] += w.above;
}

static void decode_docids(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t head,
                          uint32_t *out)
{
    uint32_t b = gx_packed_width(n_words, n);
    if (has_header(n_words, n)) {
        const uint32_t last = words[n_words - 1];
        b = last >> 17 & 31;
        if (last >> 22 || 4 * b + 1 != n_words) { /* exceptions, or damage */
            decode(words, n_words, n, param, out);
            gx_simd_best()->sum(out, n, head);
            return;
        }
    }
    gx_simd_best()->unpack_docids(words, n, b, head, out);
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)param;
    patches p = {gx_packed_width(n_words, n), 0, 0};
    if (has_header(n_words, n) && !read_patches(words, n_words, &p))
        return 0;
    uint32_t x = p.b ? gx_bits_at(words, i * p.b, p.b) : 0;
    for (walk w = walk_of(words, p); next(&w);) {
        if (w.position == i)
            x += w.above;
    }
    return x;
}

const gx_codec gx_codec_gpupfd128 = {"gpupfd128",
                                     "GPU-PFD128",
                                     "after Yan et al., WWW 2009",
                                     GX_CODEC_GPUPFD128,
                                     BLOCK,
                                     true,
                                     NULL,
                                     max_words,
                                     encode,
                                     valid,
                                     decode,
                                     at,
                                     decode_docids,
                                     NULL,
                                     {13, 12}};
