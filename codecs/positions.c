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

/* The same where it is below 2^32. */
static uint32_t sum_few(const uint32_t *values, uint32_t n, uint32_t b)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; ++i)
        sum += values[i] >> b;
    return sum;
}

/* What sum_high may be asked of: whether sums are below 2^32. */
typedef struct block_sums {
    const uint32_t *values;
    uint64_t n;
    bool few;
} block_sums;

static inline uint64_t sum_of(const block_sums *s, uint32_t b)
{
    return s->few ? sum_few(s->values, (uint32_t)s->n, b) : sum_high(s->values, s->n, b);
}

/* The least b with the fewest bits. With each step of b the low parts grow by n bits, and the high parts shrink by
 * less than with the step before: v >> b loses ceil((v >> b) / 2). So the first step that does not pay ends the search,
 * and from any b the search knows where to go. */
static uint32_t choose_b(const uint32_t *values, uint64_t n, uint64_t *high)
{
    uint32_t any = 0, b = 0;
    for (uint64_t i = 0; i < n; ++i)
        any |= values[i];
    const block_sums s = {values, n, n <= UINT32_MAX / ((uint64_t)any + 1)};
    const uint64_t mean = sum_of(&s, 0) / n;
    while (b < MAX_B && mean >> b > 1)
        ++b;
    uint64_t sum = sum_of(&s, b);
    bool fell = false;
    for (; b > 0; --b, fell = true) {
        const uint64_t before = sum_of(&s, b - 1);
        if (before > sum + n)
            break;
        sum = before;
    }
    for (; !fell && b < MAX_B; ++b) {
        const uint64_t next = sum_of(&s, b + 1);
        if (sum <= next + n)
            break;
        sum = next;
    }
    *high = sum;
    return b;
}

uint64_t gx_positions_max_words(uint64_t n)
{
    return (HEAD_BITS + n * (MAX_B + 2)) / 32 + 4; /* at b = 31 a value takes at most 33 bits; put_bytes writes more */
}

/* The bit stream: bits of `open`, the lowest first, on their way to the bytes from `at` on. */
typedef struct bit_writer {
    uint8_t *at;
    uint64_t open;
    uint32_t n; /* bits of open */
} bit_writer;

/* Write the whole bytes of open; fewer than 8 bits are left. Up to 8 bytes behind them are written, too. */
static inline void put_bytes(bit_writer *w)
{
    memcpy(w->at, &w->open, sizeof w->open);
    w->at += w->n / 8;
    w->open >>= w->n & 56;
    w->n &= 7;
}

/* The low b bits of each value, 1 <= b <= 31. */
static void put_low(bit_writer *w, const uint32_t *values, uint64_t n, uint32_t b)
{
    const uint32_t mask = ((uint32_t)1 << b) - 1, at_once = 56 / b;
    while (n) {
        const uint32_t some = n < at_once ? (uint32_t)n : at_once;
        uint64_t open = w->open;
        uint32_t bits = w->n;
        for (uint32_t i = 0; i < some; ++i, bits += b)
            open |= (uint64_t)(values[i] & mask) << bits;
        w->open = open;
        w->n = bits;
        put_bytes(w);
        values += some;
        n -= some;
    }
}

/* value >> b zeros and a one for each value. */
static void put_high(bit_writer *w, const uint32_t *values, uint64_t n, uint32_t b)
{
    for (uint64_t i = 0; i < n; ++i) {
        uint32_t zeros = values[i] >> b;
        if (w->n + zeros >= 56) {
            put_bytes(w);
            for (; w->n + zeros >= 56; zeros -= 48) {
                w->n += 48;
                put_bytes(w);
            }
        }
        w->open |= (uint64_t)1 << (w->n + zeros);
        w->n += zeros + 1;
    }
    put_bytes(w);
    put_bytes(w); /* zeros up to the word's end */
}

uint64_t gx_positions_encode(const uint32_t *values, uint64_t n, uint32_t *words)
{
    uint64_t high;
    const uint32_t b = choose_b(values, n, &high);
    bit_writer w = {(uint8_t *)words, b, HEAD_BITS};
    if (b)
        put_low(&w, values, n, b);
    put_high(&w, values, n, b);
    return (HEAD_BITS + n * (b + 1) + high + 31) / 32;
}

static inline __attribute__((always_inline)) uint64_t word_at(const uint32_t *words, uint64_t bit)
{
    uint64_t x;
    memcpy(&x, (const uint8_t *)words + bit / 8, sizeof x);
    return x >> bit % 8;
}

/* The bits from `bit` on of 64 that begin at a multiple of 64, up to the block's last one. */
static inline __attribute__((always_inline)) uint64_t ones_from(const gx_block_positions *b, uint64_t bit)
{
    uint64_t x;
    memcpy(&x, b->words + bit / 64 * 2, sizeof x);
    if (bit / 64 * 2 + 1 == b->n_words) /* half of it is the next block's */
        x &= UINT32_MAX;
    return x & UINT64_MAX << bit % 64;
}

/* x without its lowest n ones, of which it has more. Counts of halves narrow it down to 8 bits. */
static inline __attribute__((always_inline)) uint64_t drop_ones(uint64_t x, uint32_t n)
{
    uint32_t from = 0;
    for (uint32_t width = 32; width >= 8; width /= 2) {
        const uint32_t here = (uint32_t)__builtin_popcountll(x >> from & (((uint64_t)1 << width) - 1));
        const bool beyond = n >= here;
        n -= beyond ? here : 0;
        from += beyond ? width : 0;
    }
    for (x &= UINT64_MAX << from; n; --n)
        x &= x - 1;
    return x;
}

/* Move behind the n-th one from `*bit` on, n >= 1. false: there are fewer. */
static inline __attribute__((always_inline)) bool skip_ones(const gx_block_positions *b, uint64_t *bit, uint64_t n)
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
    x = drop_ones(x, (uint32_t)n - 1);
    *bit = (at & ~(uint64_t)63) + (uint64_t)__builtin_ctzll(x) + 1;
    return true;
}

/* Add the high parts of n values, whose ones come from `bit` on, to values. *behind: where those of the next one begin.
 */
static inline __attribute__((always_inline)) bool add_high(const gx_block_positions *block, uint64_t bit, uint32_t b,
                                                           uint64_t n, uint32_t *values, uint64_t *behind)
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
    *behind = before;
    return true;
}

static inline __attribute__((always_inline)) bool decode(gx_block_positions block, uint64_t all, uint64_t first,
                                                         uint64_t n, uint32_t *values, gx_position_place *place)
{
    const uint64_t bits = (uint64_t)block.n_words * 32;
    if (n == 0)
        return true;
    const uint32_t b = bits ? block.words[0] & MAX_B : 0, mask = ((uint32_t)1 << b) - 1;
    if (all > bits / (b + 1) || HEAD_BITS + all * (b + 1) > bits)
        return false;
    uint64_t bit = place->n ? place->bit : HEAD_BITS + all * b;
    if ((first > place->n && !skip_ones(&block, &bit, first - place->n)) || bit >= bits)
        return false;
    place->n = first + n;
    uint64_t low = HEAD_BITS + first * b;
    for (uint64_t i = 0; i < n; ++i, low += b)
        values[i] = (uint32_t)word_at(block.words, low) & mask;
    return add_high(&block, bit, b, n, values, &place->bit);
}

#ifdef __x86_64__
/* Counts and searches of bits are instructions of most processors, not of all. */
__attribute__((target("popcnt,bmi,bmi2"))) static bool decode_bmi(gx_block_positions block, uint64_t all,
                                                                  uint64_t first, uint64_t n, uint32_t *values,
                                                                  gx_position_place *place)
{
    return decode(block, all, first, n, values, place);
}
#endif

bool gx_positions_decode_on(gx_block_positions block, uint64_t all, uint64_t first, uint64_t n, uint32_t *values,
                            gx_position_place *place)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
        return decode_bmi(block, all, first, n, values, place);
#endif
    return decode(block, all, first, n, values, place);
}

bool gx_positions_decode(gx_block_positions block, uint64_t all, uint64_t first, uint64_t n, uint32_t *values)
{
    gx_position_place begin = {0, 0};
    return gx_positions_decode_on(block, all, first, n, values, &begin);
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
