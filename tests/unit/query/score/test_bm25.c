#include <float.h>

#include "engine/random.h"
#include "query/score/bm25.h"
#include "tests/support/test.h"

static void presets_are_found_by_their_names(void **state)
{
    (void)state;
    for (int p = 0; p < GX_N_PRESETS; ++p) {
        gx_preset found = GX_N_PRESETS;
        assert_true(gx_preset_find(gx_preset_name((gx_preset)p), &found));
        assert_int_equal(found, p);
    }
    gx_preset untouched = GX_BM25_PISA;
    assert_false(gx_preset_find("bm25:", &untouched));
    assert_false(gx_preset_find("BM25", &untouched));
    assert_false(gx_preset_find("", &untouched));
    assert_int_equal(untouched, GX_BM25_PISA);
    assert_string_equal(gx_preset_name(GX_BM25_LUCENE_LOSSY), "bm25:lucene-lossy");
}

/* N = 1000; the logarithms are worked out by hand to twelve digits. */
static void idfs_are_those_of_the_literature(void **state)
{
    (void)state;
    const struct {
        gx_preset preset;
        double df, idf;
    } cases[] = {
        {GX_BM25, 10, 4.557379522152},
        {GX_BM25, 1000, 0.000499625291},
        {GX_BM25_LUCENE, 500, 0.693147180560},
        {GX_BM25_PISA, 10, 4.546834608975},
        {GX_BM25_PISA, 1000, 1e-6},
        {GX_BM25_ATIRE, 10, 4.605170185988},
        {GX_BM25_ATIRE, 1000, 0},
        {GX_BM25_ROBERTSON, 501, 0},
        {GX_BM25_ROBERTSON, 10, 4.546834608975},
        {GX_BM25_LUCENE_LOSSY, 10, 4.557379522152},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_true(fabs(gx_preset_get(cases[i].preset)->idf(1000, cases[i].df) - cases[i].idf) < 1e-11);
}

/* Lucene's SmallFloat by its definition: 24 + values of 4-bit mantissas. */
static uint32_t lucene_encode_decode(uint32_t i)
{
    if (i < 24)
        return i;
    uint32_t v = i - 24, bits = 32 - (v ? (uint32_t)__builtin_clz(v) : 32), code;
    if (bits < 4)
        code = v;
    else
        code = ((v >> (bits - 4)) & 7) | (bits - 4 + 1) << 3;
    const uint32_t mantissa = code & 7, exponent = code >> 3;
    return 24 + (exponent ? (mantissa | 8) << (exponent - 1) : mantissa);
}

static void lossy_lengths_are_lucenes(void **state)
{
    (void)state;
    for (uint32_t dl = 0; dl < 300000; ++dl)
        assert_int_equal(gx_lossy_length(dl), lucene_encode_decode(dl));
    assert_int_equal(gx_lossy_length(UINT32_MAX), lucene_encode_decode(UINT32_MAX));
}

static void an_impact_is_rounded_to_nearest_and_at_least_1(void **state)
{
    (void)state;
    assert_int_equal(gx_bm25_impact(0, 5, 1), 1);
    assert_int_equal(gx_bm25_impact(8, 1, 1), 4);
    assert_int_equal(gx_bm25_impact(10, 1, 3), 2); /* 2.5: to even */
    assert_int_equal(gx_bm25_impact(14, 1, 3), 4); /* 3.5: to even */
    assert_int_equal(gx_bm25_impact(1024, 7, 0), 1024);
    assert_int_equal(gx_bm25_impact(0x1p30f, UINT32_MAX, 0), 1 << 30);
    assert_int_equal(gx_bm25_impact(0x1p30f, 1, FLT_MAX), 1);
    assert_int_equal(gx_bm25_impact(0x1p30f, 1, INFINITY), 1);
}

static void a_linear_impact_is_the_rounded_product(void **state)
{
    (void)state;
    const gx_scorer linear = {GX_LINEAR_K, 0, 0};
    uint64_t seed = 11;
    for (uint32_t i = 0; i < 1000000; ++i) {
        const uint32_t tf = ((uint32_t)gx_random_next(&seed) >> gx_random_next(&seed) % 32) | 1,
                       dl = (uint32_t)gx_random_next(&seed);
        const float w = ldexpf((float)(1 + gx_random_next(&seed) % 0xffffff), -24) * 0x1p30f / (float)tf;
        const float product = w * (float)tf;
        const uint32_t impact = (uint32_t)lrintf(product);
        assert_int_equal(gx_bm25_impact(w * GX_LINEAR_K, tf, gx_bm25_K(linear, dl)), impact ? impact : 1);
    }
    assert_int_equal(gx_bm25_impact(0.25f * GX_LINEAR_K, UINT32_MAX, GX_LINEAR_K), 1 << 30);
    assert_int_equal(gx_bm25_impact(GX_LINEAR_K, 7, GX_LINEAR_K), 7);
    assert_int_equal(gx_bm25_impact(0x1p-30f * GX_LINEAR_K, 7, GX_LINEAR_K), 1);
}

/* Impacts themselves are not monotone in tf to the last bit, which this test also shows. */
static void a_bound_holds_for_every_smaller_tf_and_greater_K(void **state)
{
    (void)state;
    const float weights[] = {0, 0.3f, 1, 777.7f, 123456.7f, 0x1.3579bp29f, 0x1p30f};
    uint32_t n_falls = 0;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; ++i) {
        for (float K = 0; K < 50; K = K * 1.37f + 0.001f) {
            uint32_t greatest = 0, last = 0;
            for (uint32_t tf = 1; tf < 70000; tf += 1 + tf / 7) {
                const uint32_t impact = gx_bm25_impact(weights[i], tf, K);
                n_falls += impact < last;
                last = impact;
                greatest = impact > greatest ? impact : greatest;
                assert_true(gx_bm25_bound(weights[i], tf, K) >= greatest);
                assert_true(gx_bm25_impact(weights[i], tf, K * 1.01f) <= impact);
            }
        }
    }
    assert_true(n_falls > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_found_by_their_names),
        cmocka_unit_test(idfs_are_those_of_the_literature),
        cmocka_unit_test(lossy_lengths_are_lucenes),
        cmocka_unit_test(an_impact_is_rounded_to_nearest_and_at_least_1),
        cmocka_unit_test(a_linear_impact_is_the_rounded_product),
        cmocka_unit_test(a_bound_holds_for_every_smaller_tf_and_greater_K),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
