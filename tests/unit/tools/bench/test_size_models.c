/* Sizes that are counted equal those of lists that are written, bit by bit, by a second form that tries every width. */
#include "tests/support/gen.h"
#include "tests/support/test.h"
#include "tools/bench/codecs/size_models.h"

enum { MOST = 600 };

static uint32_t width_of(uint64_t x)
{
    uint32_t b = 0;
    while (x >> b)
        ++b;
    return b;
}

/* Bits of v[n], written with width b: header, slots, then the arrays of exceptions. */
static uint64_t written(const uint32_t *v, uint32_t n, uint32_t levels);
static uint64_t written_with(const uint32_t *v, uint32_t n, uint32_t levels, uint32_t b)
{
    uint32_t gaps[MOST], high[MOST], e = 0, since = 0;
    uint64_t bits = 32;
    for (uint32_t i = 0; i < n; ++i) {
        bits += b;
        if (width_of(v[i]) <= b) {
            ++since;
            continue;
        }
        gaps[e] = since;
        high[e++] = (uint32_t)((uint64_t)v[i] >> b) - 1;
        since = 0;
    }
    if (2 * e > n)
        return UINT64_MAX;
    if (e && levels)
        return bits + written(gaps, e, levels - 1) + written(high, e, levels - 1);
    return bits + 64ull * e;
}

static uint64_t written(const uint32_t *v, uint32_t n, uint32_t levels)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t b = 0; b <= 32; ++b) {
        const uint64_t bits = written_with(v, n, levels, b);
        least = bits < least ? bits : least;
    }
    return least;
}

/* A block whose exceptions are linked, written: marks forced exceptions one by one. */
static uint64_t block_written(const uint32_t *v, uint32_t n)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t b = 0; b <= 32; ++b) {
        uint32_t e = 0, most = 0, at = 0;
        for (uint32_t i = 0; i < n; ++i) {
            if (width_of(v[i]) <= b)
                continue;
            if (e)
                while (i - at > UINT64_C(1) << b) { /* the slot has the distance less one */
                    at += 1u << b;
                    ++e;
                }
            at = i;
            ++e;
            most = v[i] > most ? v[i] : most;
        }
        const uint64_t bits = 32 + (uint64_t)n * b + (uint64_t)e * (most < 256 ? 8 : most < 65536 ? 16 : 32);
        least = bits < least ? bits : least;
    }
    return least;
}

static uint32_t draw(gen_rng *r, uint32_t shape)
{
    const uint32_t x = gen_below(r, 1u << 16) << 16 | gen_below(r, 1u << 16);
    switch (shape) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return x;
    case 3:
        return gen_below(r, 20) ? x & 7 : x >> gen_below(r, 28);
    default:
        return x >> gen_below(r, 32);
    }
}

static void sizes_are_those_of_lists_that_are_written(void **state)
{
    gen_rng r = {35};
    uint32_t v[MOST];
    (void)state;
    for (int turn = 0; turn < 300; ++turn) {
        const uint32_t n = 1 + gen_below(&r, turn % 4 ? 200 : MOST), shape = (uint32_t)turn % 6;
        uint64_t blocks = 0, rice = UINT64_MAX;
        for (uint32_t i = 0; i < n; ++i)
            v[i] = draw(&r, shape);
        for (uint32_t levels = 0; levels < SIZE_LEVELS; ++levels)
            assert_int_equal(size_pfordelta_whole(v, n, levels), written(v, n, levels));
        for (uint32_t i = 0; i < n; i += 128)
            blocks += block_written(v + i, n - i < 128 ? n - i : 128);
        assert_int_equal(size_pfordelta_blocks(v, n), blocks);
        for (uint32_t b = 0; b < 32; ++b) {
            uint64_t bits = 8;
            for (uint32_t i = 0; i < n; ++i)
                bits += b + 1 + (v[i] >> b);
            rice = bits < rice ? bits : rice;
        }
        assert_int_equal(size_rice(v, n), rice);
    }
}

/* The high parts of n integers are written in unary: a one for each, a zero for each step. */
static void elias_fano_has_a_one_an_integer_and_a_zero_a_step(void **state)
{
    gen_rng r = {36};
    (void)state;
    for (int turn = 0; turn < 2000; ++turn) {
        const uint64_t n = 1 + gen_below(&r, 3000), universe = n + gen_below(&r, turn % 2 ? 1u << 30 : 5000);
        uint32_t b = 0;
        while ((2ull << b) * n <= universe)
            ++b;
        uint64_t bits = 0;
        for (uint64_t i = 0; i < n; ++i)
            bits += b + 1;
        for (uint64_t high = 0; high <= (universe - 1) >> b; ++high)
            ++bits;
        assert_int_equal(size_eliasfano(n, universe), bits);
        const uint64_t zeros = ((universe - 1) >> b) + 1;
        assert_int_equal(size_eliasfano_pointers(n, universe), (n / 256 + zeros / 256) * width_of(bits - n * b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_those_of_lists_that_are_written),
        cmocka_unit_test(elias_fano_has_a_one_an_integer_and_a_zero_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
