/* GPU-PFD128: bit packing with patched exceptions, after NewPFD and OptPFD (Yan et al., WWW 2009).
 * All lanes of a warp decode a block at the same time.
 *
 * The encoder chooses the width b that makes the block shortest. An integer that needs more than b
 * bits is an exception. Its low b bits are packed with the other integers. Its high bits, less one
 * (they are at least 1), are stored in h bits behind the packed integers, together with its
 * position. The upper three bits of a position are in a map, as in Elias-Fano: exception k at
 * position p sets bit k + p / 16 of the map.
 *
 *     | 128 integers of b bits | map        | e exceptions            | 0 .. | b | h | e |
 *       4 b words                e + 7 bits   p % 16: 4 bits, high: h         5   5   5 bits
 *
 * b, h and e are the top 15 bits of the last word. The map fits in a word, and each lane of a warp
 * has one bit of it. A lane therefore finds its exception without looking at the others. A block of
 * zeros takes no words. A block that is not shorter than its integers takes 128 words. Blocks of
 * fewer than 128 integers are coded as in GPU-BP (gpubp.c).
 */
#include <string.h>

#include "codecs/codec.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"

enum { BLOCK = 128, MAX_EXCEPTIONS = 25, MAX_HIGH_BITS = 28, LOW_POSITION_BITS = 4, HEADER_BITS = 15 };

/* The fields of a block's last word. */
typedef struct pfd_header {
    uint32_t b, h, e;
} pfd_header;

/* Whether the block ends in such a word. */
static bool has_header(uint32_t n_words, uint32_t n)
{
    return n == BLOCK && n_words - 1 < BLOCK - 1;
}

static uint32_t map_bits(pfd_header p)
{
    return p.e ? p.e + (BLOCK >> LOW_POSITION_BITS) - 1 : 0;
}

static uint32_t block_words(pfd_header p)
{
    return 4 * p.b + gx_div_up(map_bits(p) + p.e * (LOW_POSITION_BITS + p.h) + HEADER_BITS, 32);
}

/* Returns false if no encoder can have written this block. */
static bool read_pfd_header(const uint32_t *words, uint32_t n_words, pfd_header *p)
{
    const uint32_t last = words[n_words - 1];
    *p = (pfd_header){last >> 17 & 31, last >> 22 & 31, last >> 27};
    return p->e <= MAX_EXCEPTIONS && p->h <= MAX_HIGH_BITS && block_words(*p) == n_words;
}

/* Iterates over the exceptions. next_exception returns false after the last one. */
typedef struct exception_cursor {
    const uint32_t *behind; /* the word behind the packed integers */
    pfd_header p;
    uint32_t map, k, position, above;
} exception_cursor;

static exception_cursor first_exception(const uint32_t *words, pfd_header p)
{
    const uint32_t *const behind = words + 4 * p.b;
    return (exception_cursor){behind, p, p.e ? behind[0] & gx_low_bits(map_bits(p)) : 0, 0, 0, 0};
}

static bool next_exception(exception_cursor *w)
{
    if (w->map == 0 || w->k == w->p.e)
        return false;
    const uint32_t bit = (uint32_t)__builtin_ctz(w->map), b = LOW_POSITION_BITS + w->p.h;
    const uint32_t x = gx_bits_at(w->behind, map_bits(w->p) + w->k * b, b);
    w->position = ((bit - w->k) << LOW_POSITION_BITS | (x & gx_low_bits(LOW_POSITION_BITS))) % BLOCK;
    w->above = ((x >> LOW_POSITION_BITS) + 1) << w->p.b;
    w->map &= w->map - 1;
    w->k += 1;
    return true;
}

static uint32_t max_words(uint32_t n)
{
    return n;
}

/* The width that makes the block shortest, and its exceptions. b = 32: store the integers as
 * words. */
static pfd_header choose_width(const uint32_t *in)
{
    uint32_t count[34] = {0}, max = 0, e = 0;
    for (uint32_t i = 0; i < BLOCK; ++i) {
        count[gx_bit_width(in[i])] += 1;
        max = in[i] > max ? in[i] : max;
    }
    pfd_header best = {32, 0, 0};
    uint32_t least = BLOCK;
    for (uint32_t b = gx_bit_width(max) + 1; b-- > 0;) {
        e += count[b + 1];
        if (e > MAX_EXCEPTIONS)
            break;
        const pfd_header p = {b, e ? gx_bit_width((max >> b) - 1) : 0, e};
        if (p.h <= MAX_HIGH_BITS && block_words(p) < least) {
            least = block_words(p);
            best = p;
        }
    }
    return best;
}

static uint32_t gpupfd_encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const uint32_t widest = gx_max_bit_width(in, n);
    const pfd_header p = n == BLOCK && widest ? choose_width(in) : (pfd_header){32, 0, 0};
    if (p.b == 32) {
        const uint32_t n_words = n == BLOCK && widest ? BLOCK : gx_div_up(n * widest, 32);
        gx_pack(in, n, gx_packed_width(n_words, n), out);
        return n_words;
    }
    const uint32_t n_words = block_words(p);
    uint32_t low[BLOCK], *const behind = out + 4 * p.b, e = 0;
    for (uint32_t i = 0; i < BLOCK; ++i)
        low[i] = in[i] & gx_low_bits(p.b);
    gx_pack(low, BLOCK, p.b, out);
    memset(behind, 0, (n_words - 4 * p.b) * sizeof *out);
    for (uint32_t i = 0; i < BLOCK; ++i) {
        if (in[i] >> p.b == 0)
            continue;
        const uint32_t at = map_bits(p) + e * (LOW_POSITION_BITS + p.h);
        gx_write_bits(behind, e + (i >> LOW_POSITION_BITS), 1, 1);
        gx_write_bits(behind, at, i & gx_low_bits(LOW_POSITION_BITS), LOW_POSITION_BITS);
        gx_write_bits(behind, at + LOW_POSITION_BITS, (in[i] >> p.b) - 1, p.h);
        ++e;
    }
    out[n_words - 1] |= p.b << 17 | p.h << 22 | p.e << 27;
    return n_words;
}

static bool gpupfd_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    if (!has_header(n_words, n))
        return gx_packed_is_valid(words, n_words, n);
    pfd_header p;
    if (!read_pfd_header(words, n_words, &p) || p.b + p.h > 32 || (p.e == 0 && p.h))
        return false;
    exception_cursor w = first_exception(words, p);
    if ((uint32_t)__builtin_popcount(w.map) != p.e)
        return false;
    for (uint32_t before = 0; next_exception(&w); before = w.position + 1) {
        if (w.position < before)
            return false;
    }
    const uint32_t at = map_bits(p) + p.e * (LOW_POSITION_BITS + p.h), end = (n_words - 4 * p.b) * 32 - HEADER_BITS;
    return at == end || gx_bits_at(w.behind, at, end - at) == 0;
}

static void gpupfd_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (!has_header(n_words, n)) {
        gx_simd_best()->unpack(words, n, gx_packed_width(n_words, n), out);
        return;
    }
    pfd_header p;
    if (!read_pfd_header(words, n_words, &p)) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    gx_simd_best()->unpack(words, n, p.b, out);
    for (exception_cursor w = first_exception(words, p); next_exception(&w);)
        out[w.position] += w.above;
}

static void gpupfd_decode_docids(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t head,
                                 uint32_t *out)
{
    uint32_t b = gx_packed_width(n_words, n);
    if (has_header(n_words, n)) {
        const uint32_t last = words[n_words - 1];
        b = last >> 17 & 31;
        if (last >> 22 || 4 * b + 1 != n_words) { /* exceptions, or a damaged block */
            gpupfd_decode(words, n_words, n, param, out);
            gx_simd_best()->prefix_sum(out, n, head);
            return;
        }
    }
    gx_simd_best()->unpack_docids(words, n, b, head, out);
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)param;
    pfd_header p = {gx_packed_width(n_words, n), 0, 0};
    if (has_header(n_words, n) && !read_pfd_header(words, n_words, &p))
        return 0;
    uint32_t x = p.b ? gx_bits_at(words, i * p.b, p.b) : 0;
    for (exception_cursor w = first_exception(words, p); next_exception(&w);) {
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
                                     gpupfd_encode,
                                     gpupfd_valid,
                                     gpupfd_decode,
                                     at,
                                     gpupfd_decode_docids,
                                     NULL,
                                     {13, 12}};
