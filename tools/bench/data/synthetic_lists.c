#include "tools/bench/data/synthetic_lists.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"

/* ---- mt19937 (Matsumoto and Nishimura 1998) ---- */

typedef struct mt19937_state {
    uint32_t state[624];
    uint32_t next;
} mt19937_state;

static void mt19937_seed(mt19937_state *t, uint32_t seed)
{
    t->state[0] = seed;
    for (uint32_t i = 1; i < 624; ++i)
        t->state[i] = 1812433253u * (t->state[i - 1] ^ t->state[i - 1] >> 30) + i;
    t->next = 624;
}

static uint32_t mt19937_next(mt19937_state *t)
{
    if (t->next == 624) {
        for (uint32_t i = 0; i < 624; ++i) {
            const uint32_t y = (t->state[i] & 0x80000000u) | (t->state[(i + 1) % 624] & 0x7fffffffu);
            t->state[i] = t->state[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        t->next = 0;
    }
    uint32_t y = t->state[t->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* An integer of lo .. hi. */
static uint32_t random_between(mt19937_state *t, uint32_t lo, uint32_t hi)
{
    const uint32_t range = hi - lo + 1, scaling = UINT32_MAX / range, past = range * scaling;
    uint32_t x;
    do
        x = mt19937_next(t);
    while (x >= past);
    return lo + x / scaling;
}

/* A number of [0, 1). */
static double random_real(mt19937_state *t)
{
    const double low = mt19937_next(t), high = mt19937_next(t);
    return (low + high * 4294967296.0) / 18446744073709551616.0;
}

/* ---- lists ---- */

typedef struct list_generator {
    mt19937_state random;
    uint64_t *set; /* a bit an integer of the range; all 0 between uses */
} list_generator;

/* Fewer than 64 integers: kept sorted in out itself. */
static void few(list_generator *m, uint32_t *out, uint32_t n, uint32_t range)
{
    for (uint32_t have = 0; have < n;) {
        const uint32_t x = random_between(&m->random, 1, range - 1);
        uint32_t i = have;
        while (i > 0 && out[i - 1] > x)
            --i;
        if (i > 0 && out[i - 1] == x)
            continue;
        memmove(out + i + 1, out + i, (have - i) * sizeof *out);
        out[i] = x;
        ++have;
    }
}

/* n integers of [0, range): drawn until n differ, or, where they are more than half of the range,
 * those not drawn. */
static void uniform(list_generator *m, uint32_t *out, uint32_t n, uint32_t range, uint32_t add)
{
    const bool inverse = 2 * (uint64_t)n > range;
    const uint32_t want = inverse ? range - n : n;
    if (n < 64 && !inverse) {
        few(m, out, n, range);
        for (uint32_t i = 0; i < n; ++i)
            out[i] += add;
        return;
    }
    for (uint32_t have = 0; have < want;) {
        const uint32_t x = random_between(&m->random, 1, range - 1);
        uint64_t *const w = m->set + x / 64, bit = 1ull << x % 64;
        have += !(*w & bit);
        *w |= bit;
    }
    uint32_t k = 0;
    for (uint32_t w = 0; w <= (range - 1) / 64; ++w) {
        uint64_t bits = inverse ? ~m->set[w] : m->set[w];
        m->set[w] = 0;
        for (; bits && k < n; bits &= bits - 1)
            out[k++] = add + 64 * w + (uint32_t)__builtin_ctzll(bits);
    }
}

/* n integers of [lo, hi): split list and range in two, at a random place, until few are left; a
 * half may be uniform. */
static void clustered(list_generator *m, uint32_t *out, uint32_t n, uint32_t lo, uint32_t hi)
{
    const uint32_t range = hi - lo, half = n / 2;
    if (range == n || n < 10) {
        uniform(m, out, n, range, lo);
        return;
    }
    const uint32_t cut = half + random_between(&m->random, 1, range - n);
    const double p = random_real(&m->random);
    if (p <= 0.25) {
        uniform(m, out, half, cut, lo);
        clustered(m, out + half, n - half, lo + cut, hi);
    } else if (p <= 0.5) {
        clustered(m, out, half, lo, lo + cut);
        uniform(m, out + half, n - half, range - cut, lo + cut);
    } else {
        clustered(m, out, half, lo, lo + cut);
        clustered(m, out + half, n - half, lo + cut, hi);
    }
}

gx_status gx_synthetic_list(gx_model model, uint32_t seed, uint32_t n, uint32_t range, uint32_t *out, gx_error *err)
{
    list_generator m = {.set = calloc(range / 64 + 1, sizeof *m.set)};
    if (!m.set)
        return gx_fail(err, GX_ENOMEM, "no memory to generate a list of %u integers below %u", n, range);
    mt19937_seed(&m.random, seed);
    if (model == GX_UNIFORM)
        uniform(&m, out, n, range, 0);
    else
        clustered(&m, out, n, 0, range);
    free(m.set);
    return GX_OK;
}

void gx_to_gaps(uint32_t *list, uint64_t n)
{
    for (uint64_t i = n; i-- > 1;)
        list[i] -= list[i - 1];
}
