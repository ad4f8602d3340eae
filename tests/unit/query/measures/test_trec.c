/* Judgements and runs as TREC writes them. */
#include "query/measures/trec.h"

#include "engine/random.h"
#include "tests/support/scratch.h"

static const char *put(const char *text, size_t n)
{
    const char *path = in_dir("table");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* "qid[docno=value@line docno=value@line] qid[..]". Lives until the next call. */
static const char *read_table(const char *text, gx_trec_kind kind)
{
    static char seen[1 << 12];
    gx_error err = {0};
    gx_trec_table t;
    size_t at = 0, next = 0;
    if (gx_trec_read(&t, put(text, strlen(text)), kind, &err) != GX_OK)
        fail_msg("%s", err.text);
    seen[0] = 0;
    for (const gx_trec_topic *p = t.topics; p < t.topics + t.n_topics; ++p) {
        assert_int_equal(p->first, next); /* topics follow each other and leave nothing out */
        next += p->n;
        at += (size_t)snprintf(seen + at, sizeof seen - at, "%s%s[", at ? " " : "", p->qid);
        for (const gx_trec_row *r = t.rows + p->first; r < t.rows + next; ++r) {
            assert_string_equal(r->qid, p->qid);
            at += (size_t)snprintf(seen + at, sizeof seen - at, "%s%s=%g@%u", r == t.rows + p->first ? "" : " ",
                                   r->docno, (double)r->value, r->line);
        }
        at += (size_t)snprintf(seen + at, sizeof seen - at, "]");
    }
    assert_int_equal(next, t.n_rows);
    gx_trec_free(&t);
    return seen;
}

/* Reading fails, and the message ends so, behind the file's name. */
static void expect_error(const char *text, gx_trec_kind kind, const char *reason)
{
    gx_error err = {0};
    gx_trec_table t;
    const char *path = put(text, strlen(text));
    assert_int_equal(gx_trec_read(&t, path, kind, &err), GX_EINPUT);
    if (strncmp(err.text, path, strlen(path)) != 0 || strcmp(err.text + strlen(path), reason) != 0)
        fail_msg("'%s' instead of 'PATH%s'", err.text, reason);
}

static void rows_are_sorted_by_query_and_document(void **state)
{
    (void)state;
    assert_string_equal(read_table("2 0 d1 1\n10 0 b 0\n2 0 D1 -1\n10 0 a 2\n", GX_TREC_QRELS),
                        "10[a=2@4 b=0@2] 2[D1=-1@3 d1=1@1]"); /* byte order: 10 before 2 */
    assert_string_equal(read_table("1 Q0 d2 1 2.5 bm25\n1 Q0 d1 2 -1e-3 bm25\n", GX_TREC_RUN),
                        "1[d1=-0.001@2 d2=2.5@1]");
}

static void blanks_blank_lines_and_line_ends_do_not_matter(void **state)
{
    (void)state;
    assert_string_equal(read_table("\n  1 \t0  a\t1  \r\n\r\n \t \n1 0 b 2", GX_TREC_QRELS), "1[a=1@2 b=2@5]");
    assert_string_equal(read_table("\xef\xbb\xbf"
                                   "1 0 a 1\n",
                                   GX_TREC_QRELS),
                        "1[a=1@1]");
    assert_string_equal(read_table("", GX_TREC_QRELS), "");
    assert_string_equal(read_table("\n\n", GX_TREC_RUN), "");
}

static void a_line_of_another_number_of_fields_is_refused(void **state)
{
    (void)state;
    expect_error("1 0 a 1\n1 0 b\n", GX_TREC_QRELS,
                 ":2: 3 fields where a line of qrels has 4: qid iteration docno relevance");
    expect_error("one\n", GX_TREC_QRELS, ":1: 1 field where a line of qrels has 4: qid iteration docno relevance");
    expect_error("1 0 a 1\n", GX_TREC_RUN, ":1: 4 fields where a line of a run has 6: qid Q0 docno rank score tag");
    expect_error("1 Q0 a 1 2.0 my tag is long\n", GX_TREC_RUN,
                 ":1: more than 6 fields where a line of a run has 6: qid Q0 docno rank score tag");
}

static void a_value_that_is_no_number_is_refused(void **state)
{
    (void)state;
    expect_error("1 0 a one\n", GX_TREC_QRELS, ":1: \"one\" is not an integer relevance");
    expect_error("1 0 a 1.5\n", GX_TREC_QRELS, ":1: \"1.5\" is not an integer relevance");
    expect_error("1 0 a 16777217\n", GX_TREC_QRELS, ":1: \"16777217\" is out of range for a relevance");
    expect_error("1 0 a -16777217\n", GX_TREC_QRELS, ":1: \"-16777217\" is out of range for a relevance");
    expect_error("1 0 a 99999999999999999999\n", GX_TREC_QRELS,
                 ":1: \"99999999999999999999\" is out of range for a relevance");
    assert_string_equal(read_table("1 0 a 16777216\n1 0 b -16777216", GX_TREC_QRELS),
                        "1[a=1.67772e+07@1 b=-1.67772e+07@2]");
    expect_error("1 Q0 a 1 high t\n", GX_TREC_RUN, ":1: \"high\" is not a score");
    expect_error("1 Q0 a 1 nan t\n", GX_TREC_RUN, ":1: \"nan\" is not a score");
    expect_error("1 Q0 a 1 2,5 t\n", GX_TREC_RUN, ":1: \"2,5\" is not a score");
    assert_string_equal(read_table("1 Q0 a x inf t\n", GX_TREC_RUN), "1[a=inf@1]"); /* the rank is not read */
}

static void a_document_that_a_query_names_twice_is_refused(void **state)
{
    (void)state;
    expect_error("1 0 a 1\n2 0 a 1\n1 0 b 1\n1 0 a 2\n", GX_TREC_QRELS,
                 ":4: document a is there twice for query 1 (first in line 1)");
}

static void a_file_that_is_no_text_or_not_there_is_refused(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_trec_table t;
    assert_int_equal(gx_trec_read(&t, put("1 0 a\0 1\n", 9), GX_TREC_QRELS, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "NUL"));
    assert_int_equal(gx_trec_read(&t, in_dir("missing"), GX_TREC_QRELS, &err), GX_ENOTFOUND);
}

static void a_topic_is_found_by_its_id(void **state)
{
    (void)state;
    gx_error err = {0};
    gx_trec_table t;
    static const char text[] = "51 0 a 1\n7 0 a 1\n51 0 b 1\n100 0 c 0\n";
    assert_int_equal(gx_trec_read(&t, put(text, strlen(text)), GX_TREC_QRELS, &err), GX_OK);
    assert_int_equal(gx_trec_find(&t, "51")->n, 2);
    assert_string_equal(gx_trec_find(&t, "7")->qid, "7");
    assert_string_equal(t.rows[gx_trec_find(&t, "100")->first].docno, "c");
    assert_null(gx_trec_find(&t, "5"));
    assert_null(gx_trec_find(&t, "8"));
    gx_trec_free(&t);
    assert_null(gx_trec_find(&t, "51")); /* an empty table */
}

/* ---- against an oracle ---- */

typedef struct plain_row {
    uint32_t qid, docno, line;
    int value;
} plain_row;

static int by_text(const void *a, const void *b)
{
    const plain_row *x = a, *y = b;
    char p[32], q[32];
    snprintf(p, sizeof p, "%u", x->qid);
    snprintf(q, sizeof q, "%u", y->qid);
    const int c = strcmp(p, q);
    if (c)
        return c;
    snprintf(p, sizeof p, "d%u", x->docno);
    snprintf(q, sizeof q, "d%u", y->docno);
    return strcmp(p, q);
}

static void random_tables_come_back(void **state)
{
    (void)state;
    enum { N_QUERIES = 30, N_DOCS = 120 };
    static plain_row want[N_QUERIES * N_DOCS];
    static char text[N_QUERIES * N_DOCS * 32];
    uint64_t seed = 1992;
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t run = 0; run < 20; ++run) {
        static bool taken[N_QUERIES][N_DOCS];
        size_t n = 0, at = 0;
        gx_error err = {0};
        gx_trec_table t;
        memset(taken, 0, sizeof taken);
        for (uint64_t tries = gx_random_next(&seed) % 3000; tries > 0; --tries) {
            const uint32_t qid = (uint32_t)(gx_random_next(&seed) % N_QUERIES);
            const uint32_t docno = (uint32_t)(gx_random_next(&seed) % N_DOCS);
            if (taken[qid][docno])
                continue;
            taken[qid][docno] = true;
            want[n] = (plain_row){qid, docno, (uint32_t)n + 1, (int)(gx_random_next(&seed) % 7) - 2};
            at += (size_t)sprintf(text + at, "%u 0 d%u %d\n", qid, docno, want[n].value);
            ++n;
        }
        qsort(want, n, sizeof *want, by_text);
        if (gx_trec_read(&t, put(text, at), GX_TREC_QRELS, &err) != GX_OK)
            fail_msg("%s", err.text);
        assert_int_equal(t.n_rows, n);
        for (size_t i = 0; i < n; ++i) {
            char qid[16], docno[16];
            sprintf(qid, "%u", want[i].qid);
            sprintf(docno, "d%u", want[i].docno);
            assert_string_equal(t.rows[i].qid, qid);
            assert_string_equal(t.rows[i].docno, docno);
            assert_int_equal((int)t.rows[i].value, want[i].value);
            assert_int_equal(t.rows[i].line, want[i].line);
            const gx_trec_topic *topic = gx_trec_find(&t, qid);
            assert_non_null(topic);
            assert_in_range(i, topic->first, topic->first + topic->n - 1);
        }
        gx_trec_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_sorted_by_query_and_document),
        cmocka_unit_test(blanks_blank_lines_and_line_ends_do_not_matter),
        cmocka_unit_test(a_line_of_another_number_of_fields_is_refused),
        cmocka_unit_test(a_value_that_is_no_number_is_refused),
        cmocka_unit_test(a_document_that_a_query_names_twice_is_refused),
        cmocka_unit_test(a_file_that_is_no_text_or_not_there_is_refused),
        cmocka_unit_test(a_topic_is_found_by_its_id),
        cmocka_unit_test(random_tables_come_back),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
