/* The benchmark's lists and coders give the sizes of Mallia et al.'s Table 1, and what they decode
 * is what was encoded. */
#include "tests/support/test.h"
#include "tools/bench/codecs/codec_timing.h"
#include "tools/bench/data/synthetic_lists.h"

/* Sparse lists, 2^16 of 2^29: Uniform, Clustered, as printed in the paper. */
static const struct {
    const char *title;
    double uniform, clustered;
} table1[] = {
    {"BP32", 15.71, 13.91},         {"SIMD-BP", 16.04, 14.26},       {"GPU-BP128", 16.22, 14.45},
    {"GPU-BP256", 16.20, 14.58},    {"VarintGB", 17.76, 16.27},      {"StreamVByte", 17.76, 16.27},
    {"GPU-VByte128", 18.16, 16.68}, {"GPU-VByte1024", 17.78, 16.27},
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
        fail_msg("%s, %s: %.4f bits an integer; the paper has %.2f", title,
                 model == GX_UNIFORM ? "uniform" : "clustered", bits, want);
}

static void sizes_are_those_of_the_paper(void **state)
{
    (void)state;
    const uint32_t n = 1u << 16;
    uint32_t *const list = malloc(n * sizeof *list);
    const uint64_t begins[] = {0, n};
    const gx_bench_lists lists = {list, begins, 1, (const uint32_t[]){0}, 1, true};
    assert_non_null(list);
    for (int model = GX_UNIFORM; model <= GX_CLUSTERED; ++model) {
        gx_codec_speed s;
        gx_error err = {0};
        assert_int_equal(gx_synthetic_list((gx_model)model, 1, n, 1u << 29, list, &err), GX_OK);
        for (uint32_t i = 1; i < n; ++i)
            assert_true(list[i] > list[i - 1] && list[i] < 1u << 29);
        for (const gx_codec *const *c = gx_codecs; *c; ++c) {
            if (gx_bench_codec(*c, &lists, false, false, &s, &err) != GX_OK)
                fail_msg("%s", err.text);
            near((*c)->title, (gx_model)model, s.paper_bits);
        }
        for (const gx_baseline *const *b = gx_baselines; *b; ++b) {
            if (gx_bench_baseline(*b, &lists, false, &s, &err) != GX_OK)
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

/* Lists of odd lengths, some decoded more than once: sizes are of each list once, speeds count no
 * filling. */
static void many_lists_are_measured_as_they_are_asked_for(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {1, 127, 128, 129, 1023, 1024, 1025, 3000, 2};
    enum { N_LISTS = sizeof lengths / sizeof *lengths };
    const uint32_t order[] = {7, 0, 7, 3, 8, 5, 6, 4, 2, 1, 0};
    uint64_t begins[N_LISTS + 1] = {0}, n = 0;
    uint32_t values[8192];
    for (uint32_t i = 0; i < N_LISTS; ++i) {
        begins[i + 1] = begins[i] + lengths[i];
        for (uint64_t k = begins[i], docid = 5 * i; k < begins[i + 1]; ++k)
            values[k] = (uint32_t)(docid += 1 + k * 7919 % (50 * i + 3));
    }
    for (uint32_t i = 0; i < sizeof order / sizeof *order; ++i)
        n += lengths[order[i]];
    for (int docids = 0; docids < 2; ++docids) {
        const gx_bench_lists lists = {values, begins, N_LISTS, order, sizeof order / sizeof *order, docids};
        for (const gx_codec *const *c = gx_codecs; *c; ++c) {
            gx_codec_speed s;
            gx_error err = {0};
            uint64_t blocks = 0;
            if (gx_bench_codec(*c, &lists, true, false, &s, &err) != GX_OK)
                fail_msg("%s", err.text);
            assert_int_equal(s.n, n);
            assert_true(s.encode > 0 && s.integers > 0 && (s.docids > 0) == docids && (s.docid_bits > 0) == docids);
            for (uint32_t i = 0; i < N_LISTS; ++i)
                blocks += (lengths[i] + (*c)->block_len - 1) / (*c)->block_len;
            if (strcmp((*c)->name, "raw") == 0)
                assert_true(s.bits == 32.0 * (double)(begins[N_LISTS] + blocks + N_LISTS) / (double)begins[N_LISTS]);
        }
        for (const gx_baseline *const *b = gx_baselines; *b; ++b) {
            gx_codec_speed s;
            gx_error err = {0};
            if (gx_bench_baseline(*b, &lists, true, &s, &err) != GX_OK)
                fail_msg("%s", err.text);
            assert_int_equal(s.n, n);
            assert_true(s.bits > 0 && s.encode > 0 && s.integers > 0 && (s.docids > 0) == docids);
        }
    }
}

/* Where a codec was told to decode to, in all calls together. */
static uintptr_t places;
static void decode_and_note(const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param, uint32_t *out)
{
    places |= (uintptr_t)out;
    gx_codec_raw.decode(words, n_words, n, param, out);
}

/* The heap puts arrays where earlier ones left room: 16, 32 or 48 bytes behind a cache line. */
static void blocks_are_decoded_to_whole_cache_lines(void **state)
{
    (void)state;
    uint32_t values[1024];
    const uint64_t begins[] = {0, 1024};
    const gx_bench_lists lists = {values, begins, 1, (const uint32_t[]){0}, 1, true};
    gx_codec noting = gx_codec_raw;
    noting.decode = decode_and_note;
    noting.decode_docids = NULL;
    for (uint32_t i = 0; i < 1024; ++i)
        values[i] = 3 * i;
    for (size_t i = 1; i <= 8; ++i) {
        void *const before = malloc(16 * i);
        gx_codec_speed s;
        gx_error err = {0};
        if (gx_bench_codec(&noting, &lists, true, false, &s, &err) != GX_OK)
            fail_msg("%s", err.text);
        free(before);
    }
    assert_true(places != 0);
    assert_int_equal(places % 64, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_those_of_the_paper),
        cmocka_unit_test(gaps_add_up_again),
        cmocka_unit_test(many_lists_are_measured_as_they_are_asked_for),
        cmocka_unit_test(blocks_are_decoded_to_whole_cache_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
