/* Sums without rounding, and what is listed of bits, in each instruction set. */
#include "query/facet/exact_sum.h"

#include <float.h>
#include <math.h>

#include "engine/random.h"
#include "query/facet/sort_keys.h"
#include "query/filter/filter_kernels.h"
#include "tests/support/test.h"

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void add(gx_exact_sum *s, double x)
{
    const gx_float_parts p = gx_float_split(bits_of(x));
    gx_exact_sum_add(s, p.mantissa, p.exponent);
}

static double sum_of(const double *values, uint32_t n, uint64_t divisor)
{
    gx_exact_sum s = {0};
    for (uint32_t i = 0; i < n; ++i)
        add(&s, values[i]);
    return gx_exact_sum_round(&s, divisor);
}

#define SUM(divisor, ...)                                                                                              \
    sum_of((const double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double), divisor)
#define SAME(a, b) assert_int_equal(bits_of(a), bits_of(b))

static void a_sum_is_rounded_once(void **state)
{
    (void)state;
    SAME(SUM(1, 0.0), 0.0);
    SAME(SUM(1, -0.0), 0.0);
    SAME(SUM(1, 1e16, 1.0, -1e16), 1.0);
    SAME(SUM(1, 1.0, DBL_EPSILON / 2), 1.0);                     /* a tie goes to the even one */
    SAME(SUM(1, 1.0, DBL_EPSILON / 2, 5e-324), 1 + DBL_EPSILON); /* and no tie does not */
    SAME(SUM(1, 1 + DBL_EPSILON, DBL_EPSILON / 2), 1 + 2 * DBL_EPSILON);
    SAME(SUM(1, DBL_MAX, DBL_MAX, -DBL_MAX), DBL_MAX);
    SAME(SUM(1, DBL_MAX, DBL_MAX), INFINITY);
    SAME(SUM(1, -DBL_MAX, -DBL_MAX), -INFINITY);
    SAME(SUM(1, 5e-324, 5e-324), 1e-323);
    SAME(SUM(1, DBL_MIN, -5e-324), DBL_MIN - 5e-324);
}

static void an_average_is_rounded_once(void **state)
{
    (void)state;
    SAME(SUM(2, DBL_MAX, DBL_MAX), DBL_MAX); /* whose sum is no double */
    SAME(SUM(3, 1.0), 1.0 / 3);
    SAME(SUM(3, -1.0), -1.0 / 3);
    SAME(SUM(2, 5e-324), 0.0); /* a tie */
    SAME(SUM(2, 5e-324, 1e-323), 1e-323);
    SAME(SUM(UINT64_MAX, 5e-324), 0.0);
}

static void a_wide_number_is_rounded_as_the_sum_is(void **state)
{
    uint64_t random = 7;
    (void)state;
    SAME(gx_wide_round(0, 0, 1), 0.0);
    SAME(gx_wide_round(((gx_wide)1 << 126), 0, 1), 0x1p126);
    SAME(gx_wide_round(-((gx_wide)1 << 53) - 1, 0, 1), -0x1p53);
    for (int round = 0; round < 20000; ++round) {
        const uint64_t a = gx_random_next(&random), b = gx_random_next(&random), c = gx_random_next(&random);
        const gx_wide v = (gx_wide)(((unsigned __int128)a << 64 | b) << 1) >> (c % 127 + 1);
        const uint64_t n = (gx_random_next(&random) >> (c >> 8) % 64) | 1;
        const int exponent = c >> 16 & 1 ? -1074 : (int)(c >> 20 & 511) - 300;
        gx_exact_sum s = {0};
        gx_exact_sum_add(&s, v, exponent);
        SAME(gx_wide_round(v, exponent, n), gx_exact_sum_round(&s, n));
    }
}

static void keys_are_sorted(void **state)
{
    enum { MOST = 3000 };
    static uint64_t keys[MOST], scratch[MOST];
    uint64_t random = 3;
    (void)state;
    for (uint32_t n = 0; n < MOST; n = n * 2 + 1) {
        uint64_t sum = 0;
        const int shift = (int)(gx_random_next(&random) % 64);
        for (uint32_t i = 0; i < n; ++i)
            sum += keys[i] = gx_random_next(&random) >> shift;
        gx_sort_keys(keys, scratch, n);
        for (uint32_t i = 0; i < n; ++i) {
            assert_true(i == 0 || keys[i - 1] <= keys[i]);
            sum -= keys[i];
        }
        assert_int_equal(sum, 0);
    }
}

static void bits_are_listed(void **state)
{
    enum { WORDS = 20 };
    uint64_t words[WORDS], random = 5;
    uint32_t out[64 * WORDS + 16];
    (void)state;
    for (int round = 0; round < 200; ++round) {
        uint32_t at = 0;
        for (int w = 0; w < WORDS; ++w)
            words[w] = round % 4 == 0   ? 0
                       : round % 4 == 1 ? UINT64_MAX
                                        : gx_random_next(&random) & gx_random_next(&random);
        const uint32_t n = gx_filter_kernels_best()->list(words, WORDS, 128, out);
        for (uint32_t i = 0; i < 64 * WORDS; ++i)
            if (words[i / 64] >> i % 64 & 1)
                assert_int_equal(out[at++], 128 + i);
        assert_int_equal(n, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_is_rounded_once),
        cmocka_unit_test(an_average_is_rounded_once),
        cmocka_unit_test(a_wide_number_is_rounded_as_the_sum_is),
        cmocka_unit_test(keys_are_sorted),
        cmocka_unit_test(bits_are_listed),
    };
    return cmocka_run_group_tests_name("exact_sum", tests, NULL, NULL);
}
