#include "query/facet/exact_sum.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define DIGIT_BITS 32
#define MOST_ADDED (1u << 30)
#define FRACTION 4 /* digits of a quotient below those of the sum: 2^-128 is less than any difference that matters */

/* Each digit but the last becomes 0 to 2^32 - 1. */
static void take_carries(gx_exact_sum *s)
{
    for (uint32_t i = 0; i + 1 < GX_SUM_DIGITS; ++i) {
        const int64_t low = s->digits[i] & 0xffffffff;
        s->digits[i + 1] += (s->digits[i] - low) / (INT64_C(1) << DIGIT_BITS);
        s->digits[i] = low;
    }
    s->n_added = 0;
}

void gx_exact_sum_add(gx_exact_sum *s, gx_wide v, int exponent)
{
    const uint32_t bit = (uint32_t)(exponent - GX_SUM_UNIT), shift = bit % DIGIT_BITS;
    uint32_t i = bit / DIGIT_BITS;
    const bool negative = v < 0;
    unsigned __int128 left = negative ? -(unsigned __int128)v : (unsigned __int128)v;
    uint64_t over = 0; /* what the shift moves out of the piece before */
    assert(exponent >= GX_SUM_UNIT && i + 6 < GX_SUM_DIGITS);
    for (; left || over; left >>= DIGIT_BITS, ++i) {
        const uint64_t piece = ((uint64_t)left & 0xffffffff) << shift | over;
        const int64_t digit = (int64_t)(piece & 0xffffffff);
        s->digits[i] += negative ? -digit : digit;
        over = piece >> DIGIT_BITS;
    }
    if (++s->n_added == MOST_ADDED)
        take_carries(s);
}

/* A number without a sign, its lowest digit first. */
typedef struct magnitude {
    uint32_t digits[GX_SUM_DIGITS + FRACTION];
    bool more; /* it is greater, by less than its lowest bit */
} magnitude;

enum { N_DIGITS = GX_SUM_DIGITS + FRACTION };

static void divide(magnitude *m, uint64_t n)
{
    unsigned __int128 left = 0;
    for (uint32_t i = N_DIGITS; i-- > 0;) {
        left = left << DIGIT_BITS | m->digits[i];
        m->digits[i] = (uint32_t)(left / n);
        left %= n;
    }
    m->more = left != 0;
}

/* A number whose highest 64 bits are `head`, the first of them set, of the weight 2^top; more: and lower bits. */
static double nearest(uint64_t head, bool more, int top)
{
    const int kept = top < -1022 ? 53 + 1022 + top : 53; /* bits that a double has for it */
    if (kept < 0)
        return 0;
    const uint64_t last = kept ? UINT64_C(1) << (64 - kept) : 0, half = kept ? last >> 1 : UINT64_C(1) << 63,
                   below = head & (half - 1), whole = kept ? head & -last : 0;
    const bool up = (head & half) && (below || more || (head & last));
    const uint64_t n = kept ? whole >> (64 - kept) : 0;
    return ldexp((double)(n + up), top - kept + 1);
}

static double round_magnitude(const magnitude *m)
{
    uint32_t i = N_DIGITS;
    while (i > 0 && !m->digits[i - 1])
        --i;
    if (!i--)
        return 0;
    const int zeros = __builtin_clz(m->digits[i]);
    const uint64_t high = (uint64_t)m->digits[i] << DIGIT_BITS | (i > 0 ? m->digits[i - 1] : 0),
                   low = i > 1 ? m->digits[i - 2] : 0;
    const uint64_t head = zeros ? high << zeros | low >> (DIGIT_BITS - zeros) : high;
    bool more = m->more || (uint32_t)(low << zeros);
    for (uint32_t j = 0; j + 2 < i && !more; ++j)
        more = m->digits[j] != 0;
    const int top = (int)i * DIGIT_BITS + DIGIT_BITS - 1 - zeros; /* the number of the highest bit */
    return nearest(head, more, top - DIGIT_BITS * FRACTION + GX_SUM_UNIT);
}

double gx_exact_sum_round(const gx_exact_sum *s, uint64_t n)
{
    gx_exact_sum of = *s;
    magnitude m = {0};
    take_carries(&of);
    const bool negative = of.digits[GX_SUM_DIGITS - 1] < 0;
    if (negative) {
        for (uint32_t i = 0; i < GX_SUM_DIGITS; ++i)
            of.digits[i] = -of.digits[i];
        take_carries(&of);
    }
    for (uint32_t i = 0; i < GX_SUM_DIGITS; ++i)
        m.digits[i + FRACTION] = (uint32_t)of.digits[i];
    if (n > 1)
        divide(&m, n);
    const double x = round_magnitude(&m);
    return negative ? -x : x;
}

double gx_wide_round(gx_wide v, int exponent, uint64_t n)
{
    unsigned __int128 m = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
    const gx_wide small = INT64_C(1) << 53;
    if (exponent == 0 && v > -small && v < small && n < (uint64_t)small)
        return (double)(int64_t)v / (double)n;
    if (!v)
        return 0;
    const uint64_t high = (uint64_t)(m >> 64);
    const int zeros = high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)m);
    m <<= zeros;
    bool more = m % n != 0;
    m /= n; /* at least 64 bits of it are left */
    const uint64_t top = (uint64_t)(m >> 64);
    const int empty = top ? __builtin_clzll(top) : 64;
    m <<= empty;
    more = more || (uint64_t)m;
    const double x = nearest((uint64_t)(m >> 64), more, exponent + 127 - zeros - empty);
    return v < 0 ? -x : x;
}
