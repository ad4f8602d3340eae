#include <math.h>
#include <unistd.h>

#include "index/index.h"
#include "query/plan/plan.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

static gen_collection *collection;
static gx_index *ix;

static gx_plan plan_of(const char *text, const gx_query_options *opt)
{
    gx_plan plan;
    gx_error err = {0};
    if (gx_plan_make(&plan, ix, text, strlen(text), opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    return plan;
}

static void terms_are_ordered_by_df_and_repetitions_are_weights(void **state)
{
    (void)state;
    const gx_query_options opt = GX_QUERY_OPTIONS;
    gx_plan p = plan_of(" t0000000 t0000005\tt0000001 t0000005 zebra t0000005 yak zebra\n", &opt);
    assert_int_equal(p.n_terms, 3);
    assert_int_equal(p.n_unknown, 2);
    assert_int_equal(p.terms[0].list, 1);
    assert_int_equal(p.terms[0].df, 1);
    assert_int_equal(p.terms[0].qtf, 1);
    assert_int_equal(p.terms[1].list, 5);
    assert_int_equal(p.terms[1].qtf, 3);
    assert_int_equal(p.terms[2].list, 0);
    assert_int_equal(p.terms[2].df, collection->n_docs);
    gx_plan_free(&p);
}

static void weights_fill_the_scale_and_no_more(void **state)
{
    (void)state;
    const char *texts[] = {"t0000000", "t0000001", "t0000000 t0000001 t0000002 t0000003", "t0000004 t0000004 t0000000"};
    for (int preset = 0; preset < GX_N_PRESETS; ++preset) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
            gx_query_options opt = GX_QUERY_OPTIONS;
            opt.preset = (gx_preset)preset;
            gx_plan p = plan_of(texts[i], &opt);
            double sum = 0;
            for (uint32_t t = 0; t < p.n_terms; ++t)
                sum += preset == GX_IMPACT
                           ? ldexp(p.terms[t].w, -GX_LINEAR_EXPONENT) * gx_index_max_tf(ix, p.terms[t].list)
                           : p.terms[t].w;
            if (sum > 0)
                assert_true(sum > 0.99 * (1 << 29) && sum < 1.01 * (1 << 30));
            else
                assert_int_equal(p.exponent, 30);
            gx_plan_free(&p);
        }
    }
}

static void the_weight_is_the_presets(void **state)
{
    (void)state;
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.preset = GX_BM25_PISA;
    opt.k1 = 2;
    opt.b = 0.25f;
    gx_plan p = plan_of("t0000003 t0000003", &opt);
    const double df = p.terms[0].df, n = collection->n_docs, avgdl = (double)collection->n_tokens / n;
    const double weight = 2 * 3 * fmax(1e-6, log((n - df + .5) / (df + .5)));
    assert_true(fabs(ldexp(p.terms[0].w, -p.exponent) / weight - 1) < 1e-6);
    assert_true(p.norm.c0 == 1.5f);
    assert_true(p.norm.c1 == (float)(.5 / avgdl));
    assert_int_equal(p.norm.lossy, 0);
    gx_plan_free(&p);
    opt.preset = GX_BM25_LUCENE_LOSSY;
    p = plan_of("t0000003", &opt);
    assert_int_equal(p.norm.lossy, 1);
    gx_plan_free(&p);
}

static void k_is_clamped_to_the_number_of_documents(void **state)
{
    (void)state;
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.k = UINT32_MAX;
    gx_plan p = plan_of("t0000000", &opt);
    assert_int_equal(p.k, collection->n_docs);
    gx_plan_free(&p);
}

static void an_unknown_term_empties_and_but_not_or(void **state)
{
    (void)state;
    gx_query_options opt = GX_QUERY_OPTIONS;
    const struct {
        gx_op given, planned;
        uint32_t n_terms;
    } cases[] = {{GX_OP_OR, GX_OP_OR, 2}, {GX_OP_AND, GX_OP_AND, 0}, {GX_OP_AND_OR, GX_OP_OR, 2}};
    for (size_t i = 0; i < 3; ++i) {
        opt.op = cases[i].given;
        gx_plan p = plan_of("t0000000 nothing t0000004", &opt);
        assert_int_equal(p.op, cases[i].planned);
        assert_int_equal(p.n_terms, cases[i].n_terms);
        gx_plan_free(&p);
    }
    opt.op = GX_OP_AND_OR;
    gx_plan p = plan_of("t0000000 t0000004", &opt);
    assert_int_equal(p.op, GX_OP_AND_OR);
    gx_plan_free(&p);
}

static void an_empty_query_has_no_terms(void **state)
{
    (void)state;
    const gx_query_options opt = GX_QUERY_OPTIONS;
    const char *texts[] = {"", " ", "\n\t ", "unknown"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        gx_plan p = plan_of(texts[i], &opt);
        assert_int_equal(p.n_terms, 0);
        gx_plan_free(&p);
    }
}

static void any_number_of_repetitions_is_one_term(void **state)
{
    (void)state;
    const uint32_t n = 100000;
    const gx_query_options opt = GX_QUERY_OPTIONS;
    char *text = malloc(n * 9 + 1);
    assert_non_null(text);
    for (uint32_t i = 0; i < n; ++i)
        memcpy(text + i * 9, i % 4 ? "t0000003 " : "xxxxxxxx ", 9);
    text[n * 9] = 0;
    gx_plan p = plan_of(text, &opt);
    assert_int_equal(p.n_terms, 1);
    assert_int_equal(p.n_unknown, 1);
    assert_int_equal(p.terms[0].qtf, 75000);
    gx_plan_free(&p);
    free(text);
}

/* 1,024 different words, known or not, are the limit; before and after repetitions. */
static void a_1025th_different_term_is_refused(void **state)
{
    (void)state;
    const gx_query_options opt = GX_QUERY_OPTIONS;
    char *text = malloc(20000);
    assert_non_null(text);
    for (uint32_t n = GX_MAX_TERMS; n <= GX_MAX_TERMS + 1; ++n) {
        size_t len = 0;
        gx_error err = {0};
        gx_plan p;
        for (uint32_t i = 0; i < n; ++i)
            len += (size_t)sprintf(text + len, i < 10 ? "t%07u " : "q%u q10 ", i);
        const gx_status st = gx_plan_make(&p, ix, text, len, &opt, &err);
        if (n > GX_MAX_TERMS) {
            assert_int_equal(st, GX_EUSAGE);
            continue;
        }
        assert_int_equal(st, GX_OK);
        assert_int_equal(p.n_terms, 10);
        assert_int_equal(p.n_unknown, GX_MAX_TERMS - 10);
        gx_plan_free(&p);
    }
    free(text);
}

static void ids_and_words_give_the_same_plan(void **state)
{
    (void)state;
    const gx_query_options opt = GX_QUERY_OPTIONS;
    const uint32_t ids[] = {7, 4, 7, 0}, qtf[] = {2, 1, 1, 1};
    gx_plan a = plan_of("t0000000 t0000007 t0000004 t0000007 t0000007", &opt), b;
    gx_error err = {0};
    assert_int_equal(gx_plan_make_ids(&b, ix, ids, qtf, 4, &opt, &err), GX_OK);
    assert_int_equal(a.n_terms, b.n_terms);
    assert_int_equal(a.exponent, b.exponent);
    for (uint32_t i = 0; i < a.n_terms; ++i) {
        assert_int_equal(a.terms[i].list, b.terms[i].list);
        assert_int_equal(a.terms[i].df, b.terms[i].df);
        assert_true(a.terms[i].qtf == b.terms[i].qtf && a.terms[i].w == b.terms[i].w);
    }
    gx_plan_free(&a);
    gx_plan_free(&b);
}

static void impacts_are_refused_to_a_scorer_of_tfs(void **state)
{
    (void)state;
    const gx_weighted_term term = {"t0000003", 8, 1};
    ix->impacts = true;
    for (int preset = 0; preset < GX_N_PRESETS; ++preset) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        const gx_status expected = preset == GX_IMPACT ? GX_OK : GX_EUSAGE;
        const gx_collection_stats stats = gx_collection_stats_of(ix);
        gx_query_plan query;
        gx_plan p;
        gx_error err = {0};
        opt.preset = (gx_preset)preset;
        assert_int_equal(gx_query_options_check(&opt, ix, &err), expected);
        assert_int_equal(gx_plan_make(&p, ix, "t0000003", 8, &opt, &err), expected);
        if (expected == GX_OK)
            gx_plan_free(&p);
        else
            assert_non_null(strstr(err.text, "holds impacts instead of term frequencies"));
        assert_int_equal(gx_query_plan_make(&query, &term, 1, &stats, &opt, &err), GX_OK);
        assert_int_equal(gx_plan_bind(&p, &query, ix, &err), expected);
        if (expected == GX_OK)
            gx_plan_free(&p);
        gx_query_plan_free(&query);
    }
    ix->impacts = false;
}

static int open_index(void **state)
{
    (void)state;
    char path[] = "/tmp/gpuidx-test-plan-XXXXXX";
    gx_error err = {0};
    const int fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    collection = gen_open(1, GEN_UNIFORM, 500, 20);
    if (gen_write(collection, path, gx_codecs[0], gx_codecs[0], &err) != GX_OK ||
        gx_index_open(&ix, path, NULL, &err) != GX_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    return unlink(path);
}

static int close_index(void **state)
{
    (void)state;
    gx_index_close(ix);
    gen_close(collection);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_are_ordered_by_df_and_repetitions_are_weights),
        cmocka_unit_test(weights_fill_the_scale_and_no_more),
        cmocka_unit_test(the_weight_is_the_presets),
        cmocka_unit_test(k_is_clamped_to_the_number_of_documents),
        cmocka_unit_test(an_unknown_term_empties_and_but_not_or),
        cmocka_unit_test(an_empty_query_has_no_terms),
        cmocka_unit_test(any_number_of_repetitions_is_one_term),
        cmocka_unit_test(a_1025th_different_term_is_refused),
        cmocka_unit_test(ids_and_words_give_the_same_plan),
        cmocka_unit_test(impacts_are_refused_to_a_scorer_of_tfs),
    };
    return cmocka_run_group_tests(tests, open_index, close_index);
}
