#include "tools/bench/codecs/size_models.h"

#include <stdlib.h>

#include "codecs/words/bits.h"

enum { HEADER_BITS = 32, WORD_BITS = 32, BLOCK = 128, RICE_HEADER_BITS = 8, QUANTUM = 256 };

/* How many integers have each width. */
static void count_widths(const uint32_t *v, uint64_t n, uint64_t count[34])
{
    for (int b = 0; b < 34; ++b)
        count[b] = 0;
    for (uint64_t i = 0; i < n; ++i)
        count[gx_bit_width(v[i])] += 1;
}

/* ---- PForDelta, whole lists ---- */

static uint64_t pfordelta(const uint32_t *v, uint64_t n, uint32_t levels, uint32_t *space);

/* Bits of the e exceptions of v[n] beyond b bits; space[2 e], and behind it what deeper levels take. */
static uint64_t exceptions(const uint32_t *v, uint64_t n, uint32_t b, uint64_t e, uint32_t levels, uint32_t *space)
{
    if (e == 0)
        return 0;
    if (levels == 0)
        return 2 * e * WORD_BITS;
    uint32_t *const gaps = space, *const high = space + e;
    uint64_t k = 0, next = 0;
    for (uint64_t i = 0; i < n; ++i) {
        if ((uint64_t)v[i] >> b == 0)
            continue;
        gaps[k] = (uint32_t)(i - next);
        high[k++] = (v[i] >> b) - 1;
        next = i + 1;
    }
    return pfordelta(gaps, e, levels - 1, space + 2 * e) + pfordelta(high, e, levels - 1, space + 2 * e);
}

/* Most integers fit into the width: those that leave more than half of them as exceptions are not tried. */
static uint64_t pfordelta(const uint32_t *v, uint64_t n, uint32_t levels, uint32_t *space)
{
    uint64_t count[34], e = 0, least = UINT64_MAX;
    count_widths(v, n, count);
    for (uint32_t b = 33; b-- > 0;) {
        e += count[b + 1];
        if (2 * e > n)
            break;
        if (n * b >= least)
            continue;
        const uint64_t bits = HEADER_BITS + n * b + exceptions(v, n, b, e, levels, space);
        least = bits < least ? bits : least;
    }
    return least;
}

uint64_t size_pfordelta_whole(const uint32_t *v, uint64_t n, uint32_t levels)
{
    uint32_t *space = malloc((2 * n + 2) * sizeof *space); /* n + n / 2 + n / 4 + .. */
    const uint64_t bits = space ? pfordelta(v, n, levels, space) : UINT64_MAX;
    free(space);
    return bits;
}

/* ---- PForDelta, a width a block ---- */

/* Bits of a block of width b. The slot of an exception has the distance to the next one, less one; where that does not
 * fit, integers between become exceptions. */
static uint64_t block_bits(const uint32_t *v, uint32_t n, uint32_t b)
{
    uint32_t e = 0, last = 0, most = 0;
    for (uint32_t i = 0; i < n; ++i) {
        if ((uint64_t)v[i] >> b == 0)
            continue;
        e += e ? 1 + (b < 7 ? (i - last - 1) >> b : 0) : 1;
        last = i;
        most = v[i] > most ? v[i] : most;
    }
    const uint32_t each = most < 1 << 8 ? 8 : most < 1 << 16 ? 16 : 32;
    return HEADER_BITS + (uint64_t)n * b + (uint64_t)e * each;
}

uint64_t size_pfordelta_blocks(const uint32_t *v, uint64_t n)
{
    uint64_t bits = 0;
    for (uint64_t i = 0; i < n; i += BLOCK) {
        const uint32_t len = n - i < BLOCK ? (uint32_t)(n - i) : BLOCK;
        uint64_t least = UINT64_MAX;
        for (uint32_t b = 0; b <= 32; ++b) {
            const uint64_t of_b = block_bits(v + i, len, b);
            least = of_b < least ? of_b : least;
        }
        bits += least;
    }
    return bits;
}

/* ---- Rice ---- */

uint64_t size_rice(const uint32_t *v, uint64_t n)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t b = 0; b < 32; ++b) {
        uint64_t bits = RICE_HEADER_BITS + n * (b + 1);
        for (uint64_t i = 0; i < n; ++i)
            bits += v[i] >> b;
        least = bits < least ? bits : least;
    }
    return least;
}

/* ---- Elias-Fano, whole lists ---- */

static uint32_t low_bits(uint64_t n, uint64_t universe)
{
    uint32_t b = 0;
    while (n << (b + 1) <= universe)
        ++b;
    return b;
}

uint64_t size_eliasfano(uint64_t n, uint64_t universe)
{
    const uint32_t b = low_bits(n, universe);
    return n * b + n + ((universe - 1) >> b) + 1;
}

uint64_t size_eliasfano_pointers(uint64_t n, uint64_t universe)
{
    const uint64_t zeros = ((universe - 1) >> low_bits(n, universe)) + 1, length = n + zeros;
    uint32_t width = 0;
    while (length >> width)
        ++width;
    return (n / QUANTUM + zeros / QUANTUM) * width;
}
