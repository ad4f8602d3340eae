/* Rice coding (Ding et al., WWW 2009, section 4.1). An integer x is x >> b in unary and its low b
 * bits in binary. One b serves the whole list. The two parts of a block are stored separately, so
 * that many lanes can decode each:
 *
 *     | n integers of b bits | for each integer x >> b zeros and a one | 0 .. |
 *       ceil(n b / 32) words   to the end of the block
 *
 * A block of zeros takes no words. A block that would not be shorter than its integers stores them
 * as n words, which also bounds the cost of a large integer.
 */
#include <string.h>

#include "codecs/codec.h"
#include "codecs/words/pack.h"
#include "codecs/words/simd.h"

enum { BLOCK = 128, MAX_B = 31 };

static uint32_t max_words(uint32_t n)
{
    return n;
}

/* The b that makes the blocks shortest. */
static uint8_t param(const uint32_t *values, uint64_t n)
{
    uint64_t least = UINT64_MAX, bits[MAX_B + 1] = {0};
    for (uint64_t at = 0; at < n; at += BLOCK) {
        const uint32_t m = n - at < BLOCK ? (uint32_t)(n - at) : BLOCK;
        uint64_t unary[MAX_B + 1] = {0};
        for (uint32_t i = 0; i < m; ++i) {
            for (uint32_t b = 0; b <= MAX_B; ++b)
                unary[b] += values[at + i] >> b;
        }
        for (uint32_t b = 0; b <= MAX_B; ++b) {
            const uint64_t all = unary[b] + (uint64_t)m * (b + 1), plain = 32ull * m;
            bits[b] += all < plain ? all : plain;
        }
    }
    uint8_t best = 0;
    for (uint8_t b = 0; b <= MAX_B; ++b) {
        if (bits[b] < least) {
            least = bits[b];
            best = b;
        }
    }
    return best;
}

static uint32_t rice_encode(const uint32_t *in, uint32_t n, uint8_t b, uint32_t *out)
{
    uint64_t ones_end = n; /* bits of the unary part */
    uint32_t any = 0;
    for (uint32_t i = 0; i < n; ++i) {
        ones_end += b <= MAX_B ? in[i] >> b : 0;
        any |= in[i];
    }
    if (any == 0)
        return 0;
    const uint64_t n_words = gx_packed_words(n, b <= MAX_B ? b : 32) + (ones_end + 31) / 32;
    if (b > MAX_B || n_words >= n) {
        memcpy(out, in, n * sizeof *out);
        return n;
    }
    uint32_t low[BLOCK], *const unary = out + gx_packed_words(n, b), at = 0;
    for (uint32_t i = 0; i < n; ++i)
        low[i] = in[i] & gx_low_bits(b);
    gx_pack(low, n, b, out);
    memset(unary, 0, (size_t)(ones_end + 31) / 32 * sizeof *unary);
    for (uint32_t i = 0; i < n; ++i) {
        at += in[i] >> b;
        gx_write_bits(unary, at++, 1, 1);
    }
    return (uint32_t)n_words;
}

static bool rice_valid(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t b)
{
    if (!gx_is_compressed(n_words, n))
        return n_words == 0 || n_words == n;
    const uint32_t row = gx_packed_words(n, b <= MAX_B ? b : 32);
    if (row >= n_words || (n * b % 32 && words[row - 1] >> n * b % 32))
        return false;
    uint32_t ones = 0;
    for (uint32_t k = row; k < n_words; ++k)
        ones += (uint32_t)__builtin_popcount(words[k]);
    return ones == n && words[n_words - 1]; /* the last word holds the last one */
}

static void rice_decode(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t b, uint32_t *out)
{
    if (!gx_is_compressed(n_words, n)) {
        gx_copy_uncompressed(words, n_words, n, out);
        return;
    }
    const uint32_t row = gx_packed_words(n, b <= MAX_B ? b : 32);
    if (row >= n_words) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    gx_simd_best()->unpack(words, n, b, out);
    uint32_t i = 0, before = 0; /* before: position after the previous one */
    for (uint32_t k = row; k < n_words; ++k) {
        for (uint32_t w = words[k]; w && i < n; w &= w - 1) {
            const uint32_t bit = (k - row) * 32 + (uint32_t)__builtin_ctz(w);
            out[i++] += (bit - before) << b;
            before = bit + 1;
        }
    }
}

static uint32_t at(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t b, uint32_t i)
{
    if (!gx_is_compressed(n_words, n))
        return n_words ? words[i] : 0;
    const uint32_t row = gx_packed_words(n, b <= MAX_B ? b : 32);
    if (row >= n_words)
        return 0;
    const uint32_t low = b ? gx_bits_at(words, i * b, b) : 0;
    uint32_t before = 0, ones = 0;
    for (uint32_t k = row; k < n_words; ++k) {
        const uint32_t in_word = (uint32_t)__builtin_popcount(words[k]);
        if (ones + in_word < i) { /* integers i - 1 and i do not end in this word */
            ones += in_word;
            continue;
        }
        for (uint32_t w = words[k]; w; w &= w - 1) {
            const uint32_t bit = (k - row) * 32 + (uint32_t)__builtin_ctz(w);
            if (ones == i)
                return low + ((bit - before) << b);
            before = bit + 1;
            ++ones;
        }
    }
    return low;
}

const gx_codec gx_codec_rice = {"rice",        "Rice",      "Ding et al., WWW 2009, 4.1",
                                GX_CODEC_RICE, BLOCK,       false,
                                param,         max_words,   rice_encode,
                                rice_valid,    rice_decode, at,
                                NULL,          NULL,        {27, 51},
                                MAX_B};
