#include "query/replay/histogram.h"
#include "tests/support/test.h"

static gx_histogram *histogram(void)
{
    gx_histogram *h = calloc(1, sizeof *h);
    assert_non_null(h);
    return h;
}

static void an_empty_histogram_is_all_zero(void **state)
{
    (void)state;
    gx_histogram *h = histogram();
    assert_int_equal(gx_histogram_quantile(h, 0.5), 0);
    assert_true(gx_histogram_mean(h) == 0);
    gx_histogram_add(h, 7, 0);
    assert_int_equal(h->n, 0);
    free(h);
}

static void small_values_are_exact(void **state)
{
    (void)state;
    gx_histogram *h = histogram();
    for (uint64_t v = 1; v <= 1000; ++v)
        gx_histogram_add(h, v, 1);
    assert_int_equal(gx_histogram_quantile(h, 0), 1);
    assert_int_equal(gx_histogram_quantile(h, 0.5), 500);
    assert_int_equal(gx_histogram_quantile(h, 0.99), 990);
    assert_int_equal(gx_histogram_quantile(h, 0.999), 999);
    assert_int_equal(gx_histogram_quantile(h, 1), 1000);
    assert_true(gx_histogram_mean(h) == 500.5);
    free(h);
}

static void large_values_are_right_to_three_digits(void **state)
{
    (void)state;
    gx_histogram *h = histogram();
    for (uint64_t v = 1; v && v < UINT64_MAX / 3; v = v * 3 + 1) {
        memset(h, 0, sizeof *h);
        gx_histogram_add(h, v, 1);
        gx_histogram_add(h, UINT64_MAX, 1);
        const uint64_t q = gx_histogram_quantile(h, 0.5);
        assert_true(q >= v && (double)(q - v) <= 0.002 * (double)v);
        assert_true(gx_histogram_quantile(h, 1) == UINT64_MAX);
        assert_true(h->min == v && h->max == UINT64_MAX);
    }
    free(h);
}

static void neighbours_never_change_places(void **state)
{
    (void)state;
    gx_histogram *h = histogram();
    uint64_t before = 0;
    for (uint32_t bits = 9; bits < 64; ++bits)
        for (int64_t d = -2; d <= 2; ++d) {
            memset(h, 0, sizeof *h);
            gx_histogram_add(h, (UINT64_C(1) << bits) + (uint64_t)d, 1);
            gx_histogram_add(h, UINT64_MAX, 9);
            const uint64_t q = gx_histogram_quantile(h, 0.1);
            assert_true(q >= before);
            before = q;
        }
    free(h);
}

static void merging_equals_adding_all_to_one(void **state)
{
    (void)state;
    gx_histogram *a = histogram(), *b = histogram(), *all = histogram();
    for (uint64_t v = 5; v < 1u << 30; v = v * 2 + v % 7) {
        gx_histogram_add(v % 2 ? a : b, v, v % 3 + 1);
        gx_histogram_add(all, v, v % 3 + 1);
    }
    gx_histogram_merge(a, b);
    assert_true(a->n == all->n && a->min == all->min && a->max == all->max);
    assert_memory_equal(a->buckets, all->buckets, sizeof all->buckets);
    gx_histogram *empty = histogram();
    gx_histogram_merge(empty, all);
    assert_memory_equal(empty->buckets, all->buckets, sizeof all->buckets);
    assert_true(empty->min == all->min);
    free(a);
    free(b);
    free(all);
    free(empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_histogram_is_all_zero),         cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(large_values_are_right_to_three_digits), cmocka_unit_test(neighbours_never_change_places),
        cmocka_unit_test(merging_equals_adding_all_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
