/* gx_rm3_expand: a query by hand, and what it refuses.
 * tests/rm3.py compares it with a second implementation. */
#include <math.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "tests/support/test.h"

static char path[64];

typedef struct fixture {
    gx_index *ix;
    gx_engine *en;
    gx_session *session;
} fixture;

/* An index of 21 documents, with these texts and titles first
 * and others that have none of their words. */
static void open_index(fixture *f, const char *const titles[], const char *const texts[], int n, bool titles_too)
{
    gx_error err = {0};
    gx_builder *b;
    gx_builder_options build = GX_BUILDER_OPTIONS;
    gx_engine_options options = GX_ENGINE_OPTIONS;
    options.kind = GX_ENGINE_CPU;
    build.path = path;
    build.force = true;
    build.analyzer = "whitespace";
    build.store_text = texts != NULL;
    build.store_titles = titles_too;
    if (gx_builder_open(&b, &build, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 21; ++i) {
        char id[16], filler[32];
        snprintf(filler, sizeof filler, "other%d", i);
        const char *text = texts && i < n ? texts[i] : filler, *title = titles && i < n ? titles[i] : NULL;
        gx_document doc = {.size = sizeof doc, .id = id, .title = title, .text = text};
        doc.id_len = (size_t)snprintf(id, sizeof id, "d%d", i);
        doc.title_len = title ? strlen(title) : 0;
        doc.text_len = strlen(text);
        if (gx_builder_add(b, &doc, &err))
            fail_msg("%s", err.text);
    }
    if (gx_builder_finish(b, &err))
        fail_msg("%s", err.text);
    gx_builder_abort(b);
    if (gx_index_open(&f->ix, path, NULL, &err) || gx_engine_open(&f->en, f->ix, &options, &err) ||
        gx_session_open(&f->session, f->en, &err))
        fail_msg("%s", err.text);
}

static void close_index(fixture *f)
{
    gx_session_close(f->session);
    gx_engine_close(f->en);
    gx_index_close(f->ix);
    unlink(path);
}

static const char *const titles[] = {"apple tree", NULL};
static const char *const texts[] = {"apple apple bark x Leaf a-b everlastinglastinglove bark root", "apple root sap"};

static void check_term(const gx_weighted_term *t, const char *term, double weight)
{
    assert_int_equal(t->len, strlen(term));
    assert_memory_equal(t->term, term, t->len);
    if (!(fabs(t->weight - weight) < 1e-6))
        fail_msg("%s: %g, not %g", term, t->weight, weight);
}

/* The only feedback document is d1 of three words, each tf 1;
 * the query says two words, one unknown. */
static void weights_are_those_of_the_definition(void **state)
{
    (void)state;
    fixture f;
    gx_error err = {0};
    gx_weighted_term *terms;
    uint32_t n;
    const gx_query query = GX_TEXT_QUERY("sap unheard", 11);
    gx_rm3_options rm3 = {sizeof rm3, 1, 2, 0.6};
    open_index(&f, titles, texts, 2, true);
    assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &query, NULL, &rm3, &err), GX_OK);
    assert_int_equal(n, 4); /* of apple, root and sap, equally frequent, the first two in byte order stay */
    check_term(&terms[0], "sap", 0.3);
    check_term(&terms[1], "unheard", 0.3);
    check_term(&terms[2], "apple", 0.2);
    check_term(&terms[3], "root", 0.2);
    free(terms);

    const gx_query tree = GX_TEXT_QUERY("tree", 4);
    rm3 = (gx_rm3_options){sizeof rm3, 5, 100, 0};
    assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &tree, NULL, &rm3, &err), GX_OK);
    assert_int_equal(n, 4); /* not x (a byte), Leaf, a-b (other characters), nor the word of 22 bytes */
    check_term(&terms[0], "apple", 3.0 / 7);
    check_term(&terms[1], "bark", 2.0 / 7);
    check_term(&terms[2], "root", 1.0 / 7);
    check_term(&terms[3], "tree", 1.0 / 7);
    free(terms);
    close_index(&f);
}

/* apple is in 3 of 21 documents, more than a tenth;
 * a query of weighted terms keeps their weights' shares. */
static void frequent_terms_are_left_out(void **state)
{
    (void)state;
    static const char *const three[] = {"apple bark", "apple", "apple"};
    fixture f;
    gx_error err = {0};
    gx_weighted_term *terms;
    uint32_t n;
    const gx_weighted_term given[2] = {{"bark", 4, 3}, {"apple", 5, 1}};
    const gx_query query = {.size = sizeof query, .kind = GX_QUERY_TERMS, .terms = given, .n_terms = 2};
    gx_rm3_options rm3;
    gx_rm3_options_init(&rm3, sizeof rm3);
    open_index(&f, NULL, three, 3, true);
    assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &query, NULL, &rm3, &err), GX_OK);
    assert_int_equal(n, 2);
    check_term(&terms[0], "bark", 0.5 * 0.75 + 0.5);
    check_term(&terms[1], "apple", 0.5 * 0.25);
    free(terms);
    close_index(&f);
}

static void a_query_without_results_stays_as_it_is(void **state)
{
    (void)state;
    fixture f;
    gx_error err = {0};
    gx_weighted_term *terms;
    uint32_t n;
    const gx_query unknown = GX_TEXT_QUERY("unheard", 7), empty = GX_TEXT_QUERY("", 0);
    open_index(&f, titles, texts, 2, true);
    assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &unknown, NULL, NULL, &err), GX_OK);
    assert_int_equal(n, 1);
    check_term(&terms[0], "unheard", 0.5);
    free(terms);
    assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &empty, NULL, NULL, &err), GX_OK);
    assert_int_equal(n, 0);
    free(terms);
    close_index(&f);
}

static void what_cannot_be_expanded_is_refused(void **state)
{
    (void)state;
    fixture f;
    gx_error err = {0};
    gx_weighted_term *terms;
    uint32_t n;
    const gx_query apple = GX_TEXT_QUERY("apple", 5), blank = {0};
    const gx_query boolean = {.size = sizeof boolean, .kind = GX_QUERY_BOOLEAN, .text = "+apple", .len = 6};
    const size_t size = sizeof(gx_rm3_options);
    const gx_rm3_options bad[] = {{size, 0, 10, 0.5},    {size, 1001, 10, 0.5}, {size, 10, 0, 0.5},
                                  {size, 10, 1025, 0.5}, {size, 10, 10, 1.5},   {size, 10, 10, -1},
                                  {size, 10, 10, NAN},   {0, 10, 10, 0.5}};
    open_index(&f, titles, texts, 2, true);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        terms = (gx_weighted_term *)&f;
        assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &apple, NULL, &bad[i], &err), GX_EUSAGE);
        assert_null(terms);
    }
    assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &boolean, NULL, NULL, &err), GX_EUSAGE);
    assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &blank, NULL, NULL, &err), GX_EUSAGE);
    close_index(&f);

    open_index(&f, NULL, NULL, 0, true); /* no texts */
    const gx_query other = GX_TEXT_QUERY("other3", 6);
    assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &other, NULL, NULL, &err), GX_ENOTFOUND);
    assert_non_null(strstr(err.text, "no text is stored"));
    close_index(&f);

    open_index(&f, titles, texts, 2, false); /* texts without the titles that were indexed with them */
    assert_int_equal(gx_rm3_expand(&terms, &n, f.session, f.ix, &apple, NULL, NULL, &err), GX_ENOTFOUND);
    assert_non_null(strstr(err.text, "document 0 have 9 terms, and the document was indexed with 11"));
    close_index(&f);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/gpuidx-test-rm3-%d.gx", (int)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_the_definition),
        cmocka_unit_test(frequent_terms_are_left_out),
        cmocka_unit_test(a_query_without_results_stays_as_it_is),
        cmocka_unit_test(what_cannot_be_expanded_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
