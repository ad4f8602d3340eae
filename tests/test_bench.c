/* The benchmark's lists and coders give the sizes of Mallia et al.'s Table 1, and what they decode is what was encoded. */
#include "codecs/bench.h"
#include "codecs/synthetic.h"
#include "tests/test.h"

/* Sparse lists, 2^16 of 2^29: Uniform, Clustered, as printed in the paper. */
static const struct {
    const char *title;
    double uniform, clustered;
} table1[] = {
    {"BP32", 15.71, 13.91},          {"SIMD-BP", 16.04, 14.26},       {"GPU-BP128", 16.22, 14.45},
    {"GPU-BP256", 16.20, 14.58},     {"VarintGB", 17.76, 16.27},      {"StreamVByte", 17.76, 16.27},
    {"GPU-VByte128", 18.16, 16.68},  {"GPU-VByte1024", 17.78, 16.27},
};

static double printed(const char *title, gx_model model)
{
    for (size_t i = 0; i < sizeof table1 / sizeof *table1; ++i) {
        if (strcmp(table1[i].title, title) == 0)
            return model == GX_UNIFORM ? table1[i].uniform : table1[i].clustered;
    }
    return 0;
}

static void near(const char *title, gx_model model, double bits)
{
    const double want = printed(title, model);
    if (want > 0 && (bits > want + 0.01 || bits < want - 0.01))
        fail_msg("%s, %s: %.4f bits an integer; the paper has %.2f", title, model == GX_UNIFORM ? "uniform" : "clustered", bits, want);
}

static void sizes_are_those_of_the_paper(void **state)
{
    (void)state;
    const uint32_t n = 1u << 16;
    uint32_t *const list = malloc(n * sizeof *list);
    assert_non_null(list);
    for (int model = GX_UNIFORM; model <= GX_CLUSTERED; ++model) {
        gx_codec_speed s;
        gx_error err = {0};
        assert_int_equal(gx_synthetic_list((gx_model)model, 1, n, 1u << 29, list, &err), GX_OK);
        for (uint32_t i = 1; i < n; ++i)
            assert_true(list[i] > list[i - 1] && list[i] < 1u << 29);
        for (const gx_codec *const *c = gx_codecs; *c; ++c) {
            if (gx_bench_codec(*c, list, n, false, false, &s, &err) != GX_OK)
                fail_msg("%s", err.text);
            near((*c)->title, (gx_model)model, s.paper_bits);
        }
        for (const gx_baseline *const *b = gx_baselines; *b; ++b) {
            if (gx_bench_baseline(*b, list, n, false, &s, &err) != GX_OK)
                fail_msg("%s", err.text);
            near((*b)->title, (gx_model)model, s.paper_bits);
        }
    }
    free(list);
}

static void gaps_add_up_again(void **state)
{
    (void)state;
    uint32_t list[] = {7, 8, 100, 4000000000u};
    gx_to_gaps(list, 4);
    assert_int_equal(list[0], 7);
    assert_int_equal(list[1], 1);
    assert_int_equal(list[2], 92);
    assert_int_equal(list[3], 3999999900u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_those_of_the_paper),
        cmocka_unit_test(gaps_add_up_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
