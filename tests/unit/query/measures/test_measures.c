#include <math.h>
#include <unistd.h>

#include "query/measures/comparison.h"
#include "tests/support/test.h"

/* A file with those bytes, gone when the program ends. */
static const char *file_with(const char *bytes, size_t len)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/gpuidx-test-measures-%d", (int)getpid());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
    return path;
}

static gx_trec_table read_table(const char *text, gx_trec_kind kind)
{
    gx_trec_table t = {0};
    gx_error err = {0};
    if (gx_trec_read(&t, file_with(text, strlen(text)), kind, &err) != GX_OK)
        fail_msg("%s", err.text);
    return t;
}

static const char qrels_text[] = "q1 0 a 2\n"
                                 "q1 0 b 1\n"
                                 "q1 0 c 0\n"
                                 "q1 0 d 1\n"
                                 "q1 0 e -1\n"
                                 "q2 0 x 1\n"
                                 "q3 0 y 0\n"
                                 "q4 0 z 1\n";

/* q1 ranks b, u, a, e, c: relevances 1, 0, 2, 0, 0. The ranks stated are wrong on purpose. */
static const char run_text[] = "q1 Q0 a 1 3.0 t\n"
                               "q1 Q0 b 2 5.5 t\n"
                               "q1 Q0 c 3 1.0 t\n"
                               "q1 Q0 e 4 2e0 t\n"
                               "q1 Q0 u 5 4 t\n"
                               "q2 Q0 w 1 2 t\n"
                               "q3 Q0 y 1 2 t\n"
                               "q9 Q0 y 1 2 t\n";

static double value_of(const char *measure, const char *qid, bool complete)
{
    gx_trec_table qrels = read_table(qrels_text, GX_TREC_QRELS), run = read_table(run_text, GX_TREC_RUN);
    gx_measure *m;
    size_t n;
    gx_error err = {0};
    if (gx_measures_parse(&m, &n, measure, &err) != GX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(n, 1);
    gx_evaluation ev;
    assert_int_equal(gx_evaluate(&ev, &qrels, &run, m, n, 1, complete, &err), GX_OK);
    double value = qid ? NAN : ev.all[0];
    for (size_t i = 0; qid && i < ev.n_queries; ++i)
        if (!strcmp(ev.qids[i], qid))
            value = ev.values[i];
    gx_evaluation_free(&ev);
    free(m);
    gx_trec_free(&qrels);
    gx_trec_free(&run);
    return value;
}

#define NEAR(actual, expected) assert_true(fabs((actual) - (expected)) < 1e-12)

static void values_are_those_computed_by_hand(void **state)
{
    (void)state;
    NEAR(value_of("map", "q1", false), (1.0 / 1 + 2.0 / 3) / 3);
    NEAR(value_of("map@2", "q1", false), 1.0 / 3);
    NEAR(value_of("P@2", "q1", false), 0.5);
    NEAR(value_of("P@10", "q1", false), 0.2);
    NEAR(value_of("recall@2", "q1", false), 1.0 / 3);
    NEAR(value_of("recall@100", "q1", false), 2.0 / 3);
    NEAR(value_of("success@1", "q1", false), 1);
    NEAR(value_of("success@1", "q2", false), 0);
    NEAR(value_of("recip_rank", "q1", false), 1);
    NEAR(value_of("Rprec", "q1", false), 2.0 / 3);
    NEAR(value_of("num_ret", "q1", false), 5);
    NEAR(value_of("num_rel", "q1", false), 3);
    NEAR(value_of("num_rel_ret", "q1", false), 2);
    const double ideal = 2 + 1 / log2(3) + 1 / log2(4);
    NEAR(value_of("ndcg", "q1", false), (1 + 2 / log2(4)) / ideal);
    NEAR(value_of("ndcg@10", "q1", false), (1 + 2 / log2(4)) / ideal);
    NEAR(value_of("ndcg@2", "q1", false), 1 / (2 + 1 / log2(3)));
}

/* One query ranks a, b, d, c, x: relevant, not, not, relevant, not judged; R is 2, N is 3. */
static double value_of_five(const char *measure)
{
    gx_trec_table qrels = read_table("1 0 a 1\n1 0 b 0\n1 0 c 3\n1 0 d 0\n1 0 e 0\n", GX_TREC_QRELS);
    gx_trec_table run =
        read_table("1 Q0 a 0 5 t\n1 Q0 b 0 4 t\n1 Q0 d 0 3 t\n1 Q0 c 0 2 t\n1 Q0 x 0 1 t\n", GX_TREC_RUN);
    gx_measure *m;
    size_t n;
    gx_error err = {0};
    gx_evaluation ev;
    if (gx_measures_parse(&m, &n, measure, &err) != GX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(gx_evaluate(&ev, &qrels, &run, m, n, 1, false, &err), GX_OK);
    const double value = ev.all[0];
    gx_evaluation_free(&ev);
    free(m);
    gx_trec_free(&qrels);
    gx_trec_free(&run);
    return value;
}

static void answers_without_a_judgement_do_not_count_in_bpref(void **state)
{
    (void)state;
    NEAR(value_of_five("bpref"), (1 + (1 - 2.0 / 2)) / 2);
    NEAR(value_of("bpref", "q1", false), 2.0 / 3); /* u and e are not judged */
    NEAR(value_of_five("judged@3"), 1);
    NEAR(value_of_five("judged@5"), 4.0 / 5);
    NEAR(value_of_five("judged@100"), 4.0 / 5); /* of five answers */
    NEAR(value_of("judged@10", "q1", false), 3.0 / 5);
}

static void precision_is_interpolated_from_higher_recall(void **state)
{
    (void)state;
    NEAR(value_of_five("iprec@0"), 1);
    NEAR(value_of_five("iprec_at_recall_0.50"), 1); /* floor(2 * 0.5 + 0.9): the first relevant answer */
    NEAR(value_of_five("iprec@.6"), 0.5);
    NEAR(value_of_five("iprec_at_recall.1.0"), 0.5);
    NEAR(value_of("iprec@0.7", "q1", false), 2.0 / 3); /* floor(2.1 + 0.9) is 2 in doubles */
    NEAR(value_of("iprec@1", "q1", false), 0);
}

static void expected_reciprocal_rank_counts_grades_up_to_the_highest(void **state)
{
    (void)state;
    NEAR(value_of_five("ERR@1"), 1.0 / 16);
    NEAR(value_of_five("ERR@5"), 1.0 / 16 + 15.0 / 16 * (7.0 / 16) / 4);
}

static void the_geometric_mean_has_a_floor(void **state)
{
    (void)state;
    NEAR(value_of("gm_map", NULL, false), cbrt(5.0 / 9 * 1e-5 * 1e-5));
    NEAR(value_of("gm_map", NULL, true), sqrt(sqrt(5.0 / 9 * 1e-5 * 1e-5 * 1e-5)));
}

/* The values of t and its p are SciPy's. */
static void paired_tests_are_those_of_the_textbooks(void **state)
{
    (void)state;
    const double d[4] = {0.1, 0.2, -0.05, 0.15};
    gx_paired_test t = gx_paired_test_of(d, 4, 1, 1000);
    assert_int_equal(t.better, 3);
    assert_int_equal(t.worse, 1);
    NEAR(t.t, 1.851640199545103);
    NEAR(t.t_p, 0.1611618472135195);
    assert_true(t.exact);
    NEAR(t.random_p, 4.0 / 16); /* as far as 0.4: the signs as they are, all +, and the opposites of both */

    double many[80];
    for (size_t i = 0; i < 80; ++i)
        many[i] = i % 4 == 3 ? -0.0625 : 1.0 / (double)(2 << i % 4);
    t = gx_paired_test_of(many, 80, 1, 1000);
    assert_true(fabs(t.t_p / 2.03333046850125e-13 - 1) < 1e-9);
    assert_false(t.exact);
    NEAR(t.random_p, 1.0 / 1001);
    assert_true(gx_paired_test_of(many, 8, 3, 100).random_p != gx_paired_test_of(many, 8, 4, 100).random_p);

    const double none[3] = {0, 0, 0};
    t = gx_paired_test_of(none, 3, 1, 1000);
    assert_true(t.t == 0 && t.t_p == 1 && t.random_p == 1);
    t = gx_paired_test_of(d, 1, 1, 1000);
    assert_true(isnan(t.t) && isnan(t.t_p) && t.random_p == 1);
}

static void a_query_without_relevant_documents_scores_nothing(void **state)
{
    (void)state;
    NEAR(value_of("map", "q3", false), 0);
    NEAR(value_of("recall@10", "q3", false), 0);
    NEAR(value_of("ndcg@10", "q3", false), 0);
    NEAR(value_of("Rprec", "q3", false), 0);
}

static void means_are_over_queries_in_both_files(void **state)
{
    (void)state;
    NEAR(value_of("num_q", NULL, false), 3); /* q1, q2, q3 */
    NEAR(value_of("recip_rank", NULL, false), 1.0 / 3);
    NEAR(value_of("num_ret", NULL, false), 7);
    NEAR(value_of("num_rel", NULL, false), 4);
}

static void complete_means_are_over_all_judged_queries(void **state)
{
    (void)state;
    NEAR(value_of("num_q", NULL, true), 4);
    NEAR(value_of("recip_rank", NULL, true), 1.0 / 4);
    NEAR(value_of("num_rel", NULL, true), 5);
    NEAR(value_of("map", "q4", true), 0);
}

static void ties_rank_by_falling_docno_and_scores_are_floats(void **state)
{
    (void)state;
    gx_trec_table qrels = read_table("1 0 b 1\n", GX_TREC_QRELS);
    gx_trec_table run = read_table("1 Q0 a 1 1.00000000001 t\n1 Q0 b 2 1.0 t\n1 Q0 c 3 1 t\n", GX_TREC_RUN);
    gx_ranking r;
    gx_error err;
    assert_int_equal(gx_ranking_make(&r, &qrels, qrels.topics, &run, run.topics, 1, &err), GX_OK);
    assert_int_equal(r.rels[0], GX_NOT_JUDGED); /* c */
    assert_int_equal(r.rels[1], 1);             /* b */
    assert_int_equal(r.rels[2], GX_NOT_JUDGED); /* a: its score is the same float */
    gx_ranking_free(&r);
    gx_trec_free(&qrels);
    gx_trec_free(&run);
}

static void the_level_decides_what_is_relevant(void **state)
{
    (void)state;
    gx_trec_table qrels = read_table(qrels_text, GX_TREC_QRELS), run = read_table(run_text, GX_TREC_RUN);
    gx_ranking r;
    gx_error err;
    const gx_trec_topic *judged = gx_trec_find(&qrels, "q1"), *answers = gx_trec_find(&run, "q1");
    assert_int_equal(gx_ranking_make(&r, &qrels, judged, &run, answers, 2, &err), GX_OK);
    gx_measure *m;
    size_t n;
    assert_int_equal(gx_measures_parse(&m, &n, "num_rel recip_rank", &err), GX_OK);
    NEAR(gx_measure_value(&m[0], &r), 1);
    NEAR(gx_measure_value(&m[1], &r), 1.0 / 3);
    free(m);
    gx_ranking_free(&r);
    gx_trec_free(&qrels);
    gx_trec_free(&run);
}

static void measures_have_several_spellings(void **state)
{
    (void)state;
    gx_measure *m;
    size_t n;
    gx_error err;
    assert_int_equal(gx_measures_parse(&m, &n, "ndcg@10,ndcg_cut.10,ndcg_cut_10,nDCG@10,P.5,10,MAP,mrr", &err), GX_OK);
    assert_int_equal(n, 5);
    const char *const names[] = {"ndcg_cut_10", "P_5", "P_10", "map", "recip_rank"};
    for (size_t i = 0; i < n; ++i)
        assert_string_equal(m[i].name, names[i]);
    free(m);
    assert_int_equal(gx_measures_parse(&m, &n, "recall", &err), GX_OK);
    assert_int_equal(n, 9);
    assert_string_equal(m[8].name, "recall_1000");
    free(m);
    assert_int_equal(gx_measures_parse(&m, &n, "iprec,iprec@0.5,.25,ERR.5,10", &err), GX_OK);
    assert_int_equal(n, 11 + 1 + 2);
    assert_string_equal(m[10].name, "iprec_at_recall_1.00");
    assert_string_equal(m[11].name, "iprec_at_recall_0.25");
    assert_string_equal(m[13].name, "err_10");
    free(m);
    assert_int_equal(gx_measures_parse(&m, &n, "official", &err), GX_OK);
    free(m);
}

static void unknown_measures_are_refused(void **state)
{
    (void)state;
    const char *const lists[] = {
        "",          ",",       "mapp",        "P@0",         "P@99999999999", "10",      "num_ret@5", "ndcg@x", "@5",
        "iprec@1.1", "iprec@2", "iprec@0.5,3", "iprec@0.123", "iprec@-1",      "bpref@5", "err@0.5",   ".5"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
        gx_measure *m;
        size_t n;
        gx_error err = {0};
        assert_int_equal(gx_measures_parse(&m, &n, lists[i], &err), GX_EUSAGE);
        assert_null(m);
        assert_true(strlen(err.text) > 0);
    }
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        gx_trec_kind kind;
        const char *text, *where, *what;
    } cases[] = {
        {GX_TREC_QRELS, "1 0 a\n", ":1:", "3 fields"},
        {GX_TREC_QRELS, "1 0 a 1\n\n1 0 b one\n", ":3:", "one"},
        {GX_TREC_QRELS, "1 0 a 1.5\n", ":1:", "1.5"},
        {GX_TREC_QRELS, "1 0 a 99999999999\n", ":1:", "range"},
        {GX_TREC_QRELS, "1 0 a 1\n1 0 b 1\n1 0 a 1\n", ":3:", "twice"},
        {GX_TREC_RUN, "1 Q0 a 1 2.0 t\n1 Q0 b 2 nan t\n", ":2:", "nan"},
        {GX_TREC_RUN, "1 Q0 a 1 2.0\n", ":1:", "5 fields"},
        {GX_TREC_RUN, "1 Q0 a 1 2.0 t x y z\n", ":1:", "more than 6"},
        {GX_TREC_RUN, "1 Q0 a 1 2.0x t\n", ":1:", "2.0x"},
        {GX_TREC_RUN, "1 Q0 a 1 2.0 t\n2 Q0 a 1 2 t\n1 Q0 a 2 1 t\n", ":3:", "line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        gx_trec_table t;
        gx_error err = {0};
        const char *path = file_with(cases[i].text, strlen(cases[i].text));
        assert_int_equal(gx_trec_read(&t, path, cases[i].kind, &err), GX_EINPUT);
        assert_non_null(strstr(err.text, path));
        assert_non_null(strstr(err.text, cases[i].where));
        assert_non_null(strstr(err.text, cases[i].what));
    }
    gx_trec_table t;
    gx_error err = {0};
    assert_int_equal(gx_trec_read(&t, file_with("1 0 a\0 1\n", 9), GX_TREC_QRELS, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "NUL"));
    assert_int_equal(gx_trec_read(&t, "/nonexistent/qrels", GX_TREC_QRELS, &err), GX_ENOTFOUND);
    assert_int_equal(gx_trec_read(&t, "/", GX_TREC_QRELS, &err), GX_EIO);
}

static void carriage_returns_boms_tabs_and_no_last_newline_are_fine(void **state)
{
    (void)state;
    gx_trec_table t = read_table("\xef\xbb\xbf"
                                 "7\t0\ta\t1\r\n\r\n 7  0  b  0",
                                 GX_TREC_QRELS);
    assert_int_equal(t.n_rows, 2);
    assert_int_equal(t.n_topics, 1);
    assert_string_equal(t.topics[0].qid, "7");
    assert_string_equal(t.rows[1].docno, "b");
    assert_int_equal(t.rows[1].line, 3);
    gx_trec_free(&t);
    t = read_table("", GX_TREC_RUN);
    assert_int_equal(t.n_rows, 0);
    assert_null(gx_trec_find(&t, "7"));
    gx_trec_free(&t);
}

static int forget_file(void **state)
{
    (void)state;
    return remove(file_with("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_computed_by_hand),
        cmocka_unit_test(answers_without_a_judgement_do_not_count_in_bpref),
        cmocka_unit_test(precision_is_interpolated_from_higher_recall),
        cmocka_unit_test(expected_reciprocal_rank_counts_grades_up_to_the_highest),
        cmocka_unit_test(the_geometric_mean_has_a_floor),
        cmocka_unit_test(paired_tests_are_those_of_the_textbooks),
        cmocka_unit_test(a_query_without_relevant_documents_scores_nothing),
        cmocka_unit_test(means_are_over_queries_in_both_files),
        cmocka_unit_test(complete_means_are_over_all_judged_queries),
        cmocka_unit_test(ties_rank_by_falling_docno_and_scores_are_floats),
        cmocka_unit_test(the_level_decides_what_is_relevant),
        cmocka_unit_test(measures_have_several_spellings),
        cmocka_unit_test(unknown_measures_are_refused),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(carriage_returns_boms_tabs_and_no_last_newline_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, forget_file);
}
