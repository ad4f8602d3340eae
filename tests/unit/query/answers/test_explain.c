/* Explanations against searches: two ways through the lists, one score. */
#include "query/answers/explain.h"

#include <math.h>
#include <unistd.h>

#include "tests/support/collection.h"

static char path[64];

typedef struct fixture {
    gx_index *ix;
    gx_engine *en;
    gx_session *session;
} fixture;

static void open_random(fixture *f, uint64_t seed, uint32_t n_docs, uint32_t n_terms)
{
    gx_error err = {0};
    gx_engine_options options = GX_ENGINE_OPTIONS;
    collection *c = collection_make(seed, n_docs, n_terms);
    options.kind = GX_ENGINE_CPU;
    if (collection_write(c, path, gx_codecs[0], NULL, &err) || gx_index_open(&f->ix, path, NULL, &err) ||
        gx_engine_open(&f->en, f->ix, &options, &err) || gx_session_open(&f->session, f->en, &err))
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    collection_free(c);
}

static void close_all(fixture *f)
{
    gx_session_close(f->session);
    gx_engine_close(f->en);
    gx_index_close(f->ix);
    unlink(path);
}

/* A query of up to n terms of the index, some said twice, some unknown. */
static void make_query(char *text, const gx_index *ix, uint64_t *seed, int n)
{
    *text = 0;
    for (int i = 0; i < n; ++i) {
        size_t len;
        const char *term = gx_strings_get(&ix->terms, (uint32_t)(gx_random_next(seed) % ix->n_terms), &len);
        for (uint64_t times = 1 + gx_random_next(seed) % 3 / 2; times > 0; --times)
            text += sprintf(text, "%.*s ", (int)len, term);
        if (gx_random_next(seed) % 8 == 0)
            text += sprintf(text, "unheard-of ");
    }
}

static void check_query(const fixture *f, const char *text, const gx_query_options *options, uint64_t seed)
{
    enum { K = 50 };
    uint32_t docids[K], n_hits;
    float scores[K];
    gx_error err = {0};
    const gx_query query = GX_TEXT_QUERY(text, strlen(text));
    const gx_results results = {sizeof results, docids, scores, &n_hits, NULL};
    assert_int_equal(options->k, K);
    if (gx_search(f->session, &query, 1, options, &results, &err))
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    for (uint32_t i = 0; i < n_hits; ++i) {
        gx_explanation e;
        uint32_t sum = 0;
        if (gx_explain(&e, f->ix, &query, options, docids[i], &err))
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
        for (uint32_t t = 0; t < e.n_terms; ++t) {
            const gx_explain_term *x = &e.terms[t];
            assert_int_equal(x->impact > 0, x->tf > 0);
            sum += x->impact;
            if (x->tf) { /* the numbers that are printed do make the score that is printed */
                const double norm = e.k1 * (1 - e.b + e.b * e.counted_dl / e.avgdl);
                const double plain = x->weight * x->tf / (e.linear ? 1 : x->tf + norm);
                assert_true(fabs(plain - (double)x->score) <= 1e-5 * (1 + plain));
            }
        }
        assert_int_equal(sum, e.sum);
        if (memcmp(&e.score, &scores[i], sizeof e.score) != 0)
            fail_msg("seed %llu, query '%s', docid %u: explained %.9g, found %.9g", (unsigned long long)seed, text,
                     docids[i], e.score, scores[i]);
        gx_explanation_free(&e);
    }
}

static void the_sum_is_the_score_of_the_search(void **state)
{
    (void)state;
    uint64_t seed = 5;
    char text[2048];
    for (int round = 0; round < 20; ++round) {
        fixture f;
        open_random(&f, gx_random_next(&seed), 1 + (uint32_t)(gx_random_next(&seed) % 2000), 20);
        for (int i = 0; i < 40; ++i) {
            const uint64_t query_seed = seed;
            gx_query_options options = GX_QUERY_OPTIONS;
            options.k = 50;
            options.op = (gx_op)(gx_random_next(&seed) % 3);
            options.preset = (gx_preset)(gx_random_next(&seed) % GX_N_PRESETS);
            if (options.preset != GX_IMPACT && gx_random_next(&seed) % 2) {
                options.k1 = (float)(gx_random_next(&seed) % 300) / 100;
                options.b = (float)(gx_random_next(&seed) % 101) / 100;
            }
            make_query(text, f.ix, &seed, 1 + (int)(gx_random_next(&seed) % 6));
            check_query(&f, text, &options, query_seed);
        }
        close_all(&f);
    }
}

static void a_document_without_the_terms_scores_nothing(void **state)
{
    (void)state;
    fixture f;
    gx_query_options options = GX_QUERY_OPTIONS;
    gx_explanation e;
    open_random(&f, 7, 300, 10);
    assert_int_equal(gx_explain(&e, f.ix, &(gx_query)GX_TEXT_QUERY("nothing of this", 15), &options, 0, NULL), GX_OK);
    assert_int_equal(e.n_terms, 0);
    assert_int_equal(e.n_unknown, 3);
    assert_int_equal(e.sum, 0);
    assert_true(e.score == 0);
    gx_explanation_free(&e);
    close_all(&f);
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    fixture f;
    gx_query_options options = GX_QUERY_OPTIONS;
    gx_explanation e;
    gx_error err = {0};
    open_random(&f, 7, 30, 4);
    options.b = 2;
    assert_int_equal(gx_explain(&e, f.ix, &(gx_query)GX_TEXT_QUERY("x", 1), &options, 0, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "b is 2"));
    close_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_is_the_score_of_the_search),
        cmocka_unit_test(a_document_without_the_terms_scores_nothing),
        cmocka_unit_test(options_out_of_range_are_refused),
    };
    snprintf(path, sizeof path, "/tmp/gx-test-explain-%d.gx", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
