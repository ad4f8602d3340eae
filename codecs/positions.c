#include "codecs/positions.h"

#include <string.h>

#include "codecs/codec.h"

#define HEAD_BITS 5u
#define MAX_B 31u

/* Bits of all high parts without their ones. */
static uint64_t sum_high(const uint32_t *values, uint64_t n, uint32_t b)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; ++i)
        sum += values[i] >> b;
    return sum;
}

/* The least b with the fewest bits. With each step of b the low parts grow by n bits, and the high parts shrink by
 * less than with the step before: v >> b loses ceil((v >> b) / 2). So the first step that does not pay ends the search,
 * and from any b the search knows where to go. */
static uint32_t choose_b(const uint32_t *values, uint64_t n, uint64_t *high)
{
    uint64_t mean = sum_high(values, n, 0) / n;
    uint32_t b = 0;
    while (b < MAX_B && mean >> b > 1)
        ++b;
    uint64_t sum = sum_high(values, n, b);
    while (b > 0) {
        const uint64_t before = sum_high(values, n, b - 1);
        if (before > sum + n)
            break;
        --b;
        sum = before;
    }
    while (b < MAX_B) {
        const uint64_t next = sum_high(values, n, b + 1);
        if (sum <= next + n)
            break;
        ++b;
        sum = next;
    }
    *high = sum;
    return b;
}

uint64_t gx_positions_max_words(uint64_t n)
{
    return (HEAD_BITS + n * (MAX_B + 2)) / 32 + 2; /* at b = 31 a value takes at most 33 bits */
}

/* The bit stream: bits of `open`, the lowest first, on their way to the words. */
typedef struct bit_writer {
    uint32_t *at;
    uint64_t open;
    uint32_t n; /* bits of open, below 32 between the calls */
} bit_writer;

static inline void put_bits(bit_writer *w, uint64_t bits, uint32_t n)
{
    w->open |= bits << w->n;
    w->n += n;
    if (w->n >= 32) {
        *w->at++ = (uint32_t)w->open;
        w->open >>= 32;
        w->n -= 32;
    }
}

/* zeros, and a one behind them */
static inline void put_unary(bit_writer *w, uint32_t zeros)
{
    for (; zeros >= 32; zeros -= 32)
        put_bits(w, 0, 32);
    put_bits(w, (uint64_t)1 << zeros, zeros + 1);
}

uint64_t gx_positions_encode(const uint32_t *values, uint64_t n, uint32_t *words)
{
    uint64_t high;
    const uint32_t b = choose_b(values, n, &high), mask = ((uint32_t)1 << b) - 1;
    bit_writer w = {words, b, HEAD_BITS};
    for (uint64_t i = 0; b && i < n; ++i)
        put_bits(&w, values[i] & mask, b);
    for (uint64_t i = 0; i < n; ++i)
        put_unary(&w, values[i] >> b);
    if (w.n)
        *w.at++ = (uint32_t)w.open;
    return (uint64_t)(w.at - words);
}

static inline uint64_t word_at(const uint32_t *words, uint64_t bit)
{
    uint64_t x;
    memcpy(&x, (const uint8_t *)words + bit / 8, sizeof x);
    return x >> bit % 8;
}

/* The bits from `bit` on of 64 that begin at a multiple of 64, up to the block's last one. */
static inline uint64_t ones_from(const gx_block_positions *b, uint64_t bit)
{
    uint64_t x;
    memcpy(&x, b->words + bit / 64 * 2, sizeof x);
    if (bit / 64 * 2 + 1 == b->n_words) /* half of it is the next block's */
        x &= UINT32_MAX;
    return x & UINT64_MAX << bit % 64;
}

/* Move behind the n-th one from `*bit` on, n >= 1. false: there are fewer. */
static bool skip_ones(const gx_block_positions *b, uint64_t *bit, uint64_t n)
{
    const uint64_t end = (uint64_t)b->n_words * 32;
    uint64_t at = *bit, x = ones_from(b, at), here;
    while ((here = (uint64_t)__builtin_popcountll(x)) < n) {
        n -= here;
        at = (at | 63) + 1;
        if (at >= end)
            return false;
        x = ones_from(b, at);
    }
    while (--n)
        x &= x - 1;
    *bit = (at & ~(uint64_t)63) + (uint64_t)__builtin_ctzll(x) + 1;
    return true;
}

/* Add the high parts of n values, whose ones come from `bit` on, to values. */
static bool add_high(const gx_block_positions *block, uint64_t bit, uint32_t b, uint64_t n, uint32_t *values)
{
    const uint64_t end = (uint64_t)block->n_words * 32;
    uint64_t at = bit & ~(uint64_t)63, before = bit;
    for (uint64_t i = 0; i < n; at += 64) {
        if (at >= end)
            return false;
        uint64_t x = ones_from(block, at < bit ? bit : at);
        for (; x && i < n; x &= x - 1) {
            const uint64_t one = at + (uint64_t)__builtin_ctzll(x);
            values[i++] |= (uint32_t)((one - before) << b);
            before = one + 1;
        }
    }
    return true;
}

bool gx_positions_decode(gx_block_positions block, uint64_t all, uint64_t first, uint64_t n, uint32_t *values)
{
    const uint64_t bits = (uint64_t)block.n_words * 32;
    if (n == 0)
        return true;
    const uint32_t b = bits ? block.words[0] & MAX_B : 0, mask = ((uint32_t)1 << b) - 1;
    if (all > bits / (b + 1) || HEAD_BITS + all * (b + 1) > bits)
        return false;
    uint64_t bit = HEAD_BITS + all * b;
    if (bit >= bits || (first && !skip_ones(&block, &bit, first)) || bit >= bits)
        return false;
    uint64_t low = HEAD_BITS + first * b;
    for (uint64_t i = 0; i < n; ++i, low += b)
        values[i] = (uint32_t)word_at(block.words, low) & mask;
    return add_high(&block, bit, b, n, values);
}

bool gx_positions_valid(gx_block_positions block, uint64_t all, const uint32_t *values)
{
    uint64_t high;
    if (all == 0)
        return block.n_words == 0;
    const uint32_t b = choose_b(values, all, &high);
    const uint64_t bits = HEAD_BITS + all * (b + 1) + high;
    if (block.n_words != (bits + 31) / 32 || (block.words[0] & MAX_B) != b)
        return false;
    return bits % 32 == 0 || block.words[block.n_words - 1] >> bits % 32 == 0;
}
