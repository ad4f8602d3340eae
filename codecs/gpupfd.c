/* GPU-PFD128: bit packing with patched exceptions, after NewPFD and OptPFD (Yan et al., WWW 2009), for decoders that work
 * on a block all at once.
 *
 * The width b is chosen so that the block is smallest. Integers that need more keep their low b bits in the row; what
 * is above (it is at least 1, and 1 less is stored) goes into h bits, with its position, behind the row:
 *
 *     | 128 integers of b bits | e positions of 7 bits | e times h bits | 0 .. | e - 1: 5 | h: 5 | b: 5 |
 *       4 b words                rising                                          the last word's top 15 bits
 *
 * Blocks whose length is a multiple of 4 words have no exceptions and are GPU-BP's (gpubp.c), as are blocks of fewer than
 * 128; where a patched block came out so long, a word of padding is put before its last.
 */
#include <string.h>

#include "codecs/codecs.h"
#include "codecs/pack.h"
#include "codecs/simd.h"

enum { BLOCK = 128, MAX_EXCEPTIONS = 32 };

/* A patched block's last word, taken apart. */
typedef struct patches {
    uint32_t b, h, e;
} patches;

static bool is_patched(uint32_t n_words, uint32_t n) { return n == BLOCK && n_words % 4 != 0; }

static uint32_t words_of(patches p)
{
    const uint32_t n_words = 4 * p.b + gx_div_up(p.e * (7 + p.h) + 15, 32);
    return n_words % 4 ? n_words : n_words + 1;
}

/* false: no encoder wrote this. */
static bool read_patches(const uint32_t *words, uint32_t n_words, patches *p)
{
    const uint32_t last = words[n_words - 1];
    *p = (patches){last >> 17 & 31, last >> 22 & 31, (last >> 27) + 1};
    return words_of(*p) == n_words;
}

static uint32_t position(const uint32_t *words, patches p, uint32_t i) { return gx_bits_at(words + 4 * p.b, 7 * i, 7); }

static uint32_t above(const uint32_t *words, patches p, uint32_t i)
{
    const uint32_t x = p.h ? gx_bits_at(words + 4 * p.b, 7 * p.e + p.h * i, p.h) : 0;
    return (x + 1) << p.b;
}

static uint32_t max_words(uint32_t n) { return n + 1; }

/* The best width and its exceptions; e == 0: none is better than the plain form. */
static patches choose(const uint32_t *in)
{
    uint32_t count[34] = {0}, greatest = 0;
    for (uint32_t i = 0; i < BLOCK; ++i) {
        count[gx_width(in[i])] += 1;
        greatest |= in[i];
    }
    uint32_t max = 0;
    for (uint32_t i = 0; i < BLOCK; ++i)
        max = in[i] > max ? in[i] : max;
    const uint32_t widest = gx_width(greatest);
    patches best = {widest, 0, 0};
    uint32_t least = 4 * widest, e = 0;
    for (uint32_t b = widest; b-- > 0;) {
        e += count[b + 1];
        if (e > MAX_EXCEPTIONS)
            break;
        const patches p = {b, gx_width((max >> b) - 1), e};
        if (p.h < 32 && words_of(p) < least) {
            least = words_of(p);
            best = p;
        }
    }
    return best;
}

static uint32_t encode(const uint32_t *in, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    const patches p = n == BLOCK ? choose(in) : (patches){0, 0, 0};
    if (p.e == 0) {
        const uint32_t n_words = gx_div_up(n * gx_max_width(in, n), 32);
        gx_pack(in, n, gx_packed_width(n_words, n), out);
        return n_words;
    }
    uint32_t low[BLOCK], positions[MAX_EXCEPTIONS], highs[MAX_EXCEPTIONS], e = 0;
    for (uint32_t i = 0; i < BLOCK; ++i) {
        low[i] = in[i] & gx_mask(p.b);
        if (in[i] >> p.b) {
            positions[e] = i;
            highs[e++] = (in[i] >> p.b) - 1;
        }
    }
    const uint32_t n_words = words_of(p);
    gx_pack(low, BLOCK, p.b, out);
    uint32_t *const behind = out + 4 * p.b;
    memset(behind, 0, (n_words - 4 * p.b) * sizeof *out);
    for (uint32_t i = 0; i < e; ++i) {
        const uint32_t at[2] = {7 * i, 7 * e + p.h * i}, value[2] = {positions[i], highs[i]};
        for (int k = 0; k < (p.h ? 2 : 1); ++k) {
            const uint64_t bits = (uint64_t)value[k] << at[k] % 32;
            behind[at[k] / 32] |= (uint32_t)bits;
            if (bits >> 32)
                behind[at[k] / 32 + 1] |= (uint32_t)(bits >> 32);
        }
    }
    out[n_words - 1] |= p.b << 17 | p.h << 22 | (p.e - 1) << 27;
    return n_words;
}

static bool valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    (void)param;
    if (!is_patched(n_words, n)) {
        const uint32_t bits = n * gx_packed_width(n_words, n);
        return n_words == gx_div_up(bits, 32) && (bits % 32 == 0 || words[n_words - 1] >> bits % 32 == 0);
    }
    patches p;
    if (!read_patches(words, n_words, &p) || p.b + p.h > 32)
        return false;
    for (uint32_t i = 1; i < p.e; ++i) {
        if (position(words, p, i) <= position(words, p, i - 1))
            return false;
    }
    return true;
}

static void decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    (void)param;
    if (!is_patched(n_words, n)) {
        gx_simd_best()->unpack(words, n, gx_packed_width(n_words, n), out);
        return;
    }
    patches p;
    if (!read_patches(words, n_words, &p)) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    gx_simd_best()->unpack(words, n, p.b, out);
    for (uint32_t i = 0; i < p.e; ++i)
        out[position(words, p, i)] += above(words, p, i);
}

static void decode_docids(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t head, uint32_t *out)
{
    if (is_patched(n_words, n)) {
        decode(words, n_words, n, param, out);
        gx_simd_best()->sum(out, n, head);
    } else {
        gx_simd_best()->unpack_docids(words, n, gx_packed_width(n_words, n), head, out);
    }
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t i)
{
    (void)param;
    if (!is_patched(n_words, n)) {
        const uint32_t b = gx_packed_width(n_words, n);
        return b ? gx_bits_at(words, i * b, b) : 0;
    }
    patches p;
    if (!read_patches(words, n_words, &p))
        return 0;
    uint32_t x = p.b ? gx_bits_at(words, i * p.b, p.b) : 0;
    for (uint32_t k = 0; k < p.e; ++k) {
        if (position(words, p, k) == i)
            x += above(words, p, k);
    }
    return x;
}

const gx_codec gx_codec_gpupfd128 = {"gpupfd128", "GPU-PFD128", "after Yan et al., WWW 2009", GX_CODEC_GPUPFD128, BLOCK, true,
                                     NULL, max_words, encode, valid, decode, at, decode_docids};
