/* Parallel Merge Find: every element is found where a search from the front finds it, at every
 * number of levels. */
#include "engine/api/gpuidx.h"
#include "query/ding2009/merge_find.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

static uint32_t from_the_front(const uint32_t *b, uint32_t n_b, uint32_t x)
{
    uint32_t p = 0;
    while (p < n_b && b[p] < x)
        ++p;
    return p;
}

static void check(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b)
{
    uint32_t pos[1024];
    for (uint32_t levels = 0; levels <= GX_MAX_RECURSION; ++levels) {
        memset(pos, 0xee, sizeof pos);
        gx_merge_find_cpu(a, n_a, b, n_b, levels, pos);
        for (uint32_t i = 0; i < n_a; ++i)
            assert_int_equal(pos[i], from_the_front(b, n_b, a[i]));
        for (uint32_t i = n_a; i < 1024; ++i)
            assert_int_equal(pos[i], 0xeeeeeeee);
    }
}

static void finds_nothing_for_an_empty_list(void **state)
{
    const uint32_t b[] = {1, 2, 3};
    (void)state;
    check(NULL, 0, b, 3);
    check(b, 3, NULL, 0);
}

static void finds_the_first_and_the_last(void **state)
{
    const uint32_t a[] = {0, 5, UINT32_MAX}, b[] = {0, 5, 6, UINT32_MAX};
    (void)state;
    check(a, 3, b, 4);
    check(b, 4, a, 3);
}

static void finds_every_element_of_random_lists(void **state)
{
    gen_rng r = {11};
    uint32_t a[1024], b[1024];
    (void)state;
    for (int i = 0; i < 2000; ++i) {
        const uint32_t n_a = gen_below(&r, 1 + gen_below(&r, 1024)), n_b = gen_below(&r, 1 + gen_below(&r, 1024));
        const uint32_t gap = 1 + gen_below(&r, 50);
        for (uint32_t j = 0, x = 0; j < n_a; ++j)
            a[j] = x += 1 + gen_below(&r, gap);
        for (uint32_t j = 0, x = 0; j < n_b; ++j)
            b[j] = x += 1 + gen_below(&r, gap);
        check(a, n_a, b, n_b);
    }
}

static void positions_of_lists_that_do_not_rise_stay_in_range(void **state)
{
    gen_rng r = {12};
    uint32_t a[1000], b[1000], pos[1000];
    (void)state;
    for (int i = 0; i < 500; ++i) {
        const uint32_t n_b = gen_below(&r, 1001);
        for (uint32_t j = 0; j < 1000; ++j) {
            a[j] = (uint32_t)gen_u64(&r);
            b[j] = (uint32_t)gen_u64(&r);
        }
        gx_merge_find_cpu(a, 1000, b, n_b, (uint32_t)i % (GX_MAX_RECURSION + 1), pos);
        for (uint32_t j = 0; j < 1000; ++j)
            assert_true(pos[j] <= n_b);
    }
}

/* Intersections against a merge, on either engine; some lists are long enough for many blocks of
 * threads. */
static void check_intersections(bool on_gpu)
{
    gen_rng r = {13};
    enum { MAX = 300000 };
    uint32_t *a = malloc(MAX * sizeof *a), *b = malloc(MAX * sizeof *b), *out = malloc(MAX * sizeof *out),
             *positions = malloc(MAX * sizeof *positions);
    assert_true(a && b && out && positions);
    for (int i = 0; i < 60; ++i) {
        const uint32_t most = i % 10 == 9 ? MAX : 3000, gap = 1 + gen_below(&r, 9);
        const uint32_t n_a = gen_below(&r, most), n_b = gen_below(&r, most);
        for (uint32_t j = 0, x = 0; j < n_a; ++j)
            a[j] = x += 1 + gen_below(&r, gap);
        for (uint32_t j = 0, x = 0; j < n_b; ++j)
            b[j] = x += 1 + gen_below(&r, gap);
        for (uint32_t levels = 0; levels <= GX_MAX_RECURSION; ++levels) {
            gx_error err = {0};
            uint32_t n = UINT32_MAX, at = 0;
#if GX_CUDA
            double seconds;
            if (on_gpu) {
                const gx_status st =
                    gx_intersect_cuda(0, &(gx_list_pair){a, b, n_a, n_b, levels}, 1, out, &n, &seconds, &err);
                if (st == GX_ENOGPU)
                    skip();
                if (st != GX_OK)
                    fail_msg("%s", err.text);
            }
#endif
            if (!on_gpu)
                n = gx_intersect_cpu(a, n_a, b, n_b, levels, positions, out);
            (void)err;
            for (uint32_t x = 0, y = 0; x < n_a && y < n_b;) {
                if (a[x] < b[y]) {
                    ++x;
                } else if (a[x] > b[y]) {
                    ++y;
                } else {
                    assert_true(at < n);
                    assert_int_equal(out[at++], a[x++]);
                }
            }
            assert_int_equal(at, n);
        }
    }
    free(a);
    free(b);
    free(out);
    free(positions);
}

static void intersections_are_those_of_a_merge(void **state)
{
    (void)state;
    check_intersections(false);
}

static void intersections_on_a_gpu_are_those_of_a_merge(void **state)
{
    (void)state;
#if GX_CUDA
    check_intersections(true);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intersections_are_those_of_a_merge),
        cmocka_unit_test(intersections_on_a_gpu_are_those_of_a_merge),
        cmocka_unit_test(finds_nothing_for_an_empty_list),
        cmocka_unit_test(finds_the_first_and_the_last),
        cmocka_unit_test(finds_every_element_of_random_lists),
        cmocka_unit_test(positions_of_lists_that_do_not_rise_stay_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
