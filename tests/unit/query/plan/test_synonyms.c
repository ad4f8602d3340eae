/* Rules of synonyms, words that count as one, query-side weights and several scorers, by hand. tests/groups.py compares
 * answers with brute force. */
#include <math.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "query/plan/synonyms.h"
#include "tests/support/test.h"

static char path[64];

typedef struct fixture {
    gx_index *ix;
    gx_engine *en;
    gx_session *session;
} fixture;

static void open_index(fixture *f, bool positions)
{
    static const char *const texts[] = {"a new york taxi", "new yorker taxi taxi magazine", "a yellow cab in york",
                                        "the television", "tv and telly"};
    gx_error err = {0};
    gx_builder *b;
    gx_builder_options build = GX_BUILDER_OPTIONS;
    gx_engine_options options = GX_ENGINE_OPTIONS;
    options.kind = GX_ENGINE_CPU;
    snprintf(path, sizeof path, "/tmp/test_synonyms.%d.gx", (int)getpid());
    build.path = path;
    build.force = true;
    build.analyzer = "simple";
    build.positions = positions;
    if (gx_builder_open(&b, &build, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 5; ++i) {
        const char id[2] = {(char)('a' + i), 0};
        gx_document doc = {.size = sizeof doc, .id = id, .id_len = 1, .text = texts[i], .text_len = strlen(texts[i])};
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

/* The docids and scores of the answer; their number. */
static uint32_t search(fixture *f, gx_query_kind kind, const char *text, const gx_query_options *opt,
                       uint32_t docids[10], float scores[10])
{
    gx_error err = {0};
    gx_query q = GX_TEXT_QUERY(text, strlen(text));
    uint32_t n = 0;
    gx_results r = {.size = sizeof r, .docids = docids, .scores = scores, .n_hits = &n};
    q.kind = kind;
    if (gx_search(f->session, &q, 1, opt, &r, &err))
        fail_msg("%s: %s", text, err.text);
    return n;
}

static gx_synonyms *read_rules(const gx_index *ix, const char *rules)
{
    gx_error err = {0};
    gx_synonyms *s;
    if (gx_synonyms_open(&s, ix, rules, strlen(rules), &err))
        fail_msg("%s: %s", rules, err.text);
    return s;
}

static void the_longest_entry_is_replaced(void **state)
{
    (void)state;
    fixture f;
    open_index(&f, true);
    gx_synonyms *s = read_rules(f.ix, "# words\nnew york, nyc\nnew => fresh, new\n\ntv => television\ntv, telly\n");
    const gx_synonym_term words[] = {{"new", 3, 0}, {"york", 4, 1}, {"x", 1, 2}};
    assert_int_equal(gx_synonyms_n(s), 5);
    const gx_synonym_group *g = gx_synonyms_find(s, words, 3, false);
    assert_int_equal(g->from.n, 2);
    assert_int_equal(g->n, 2);
    assert_int_equal(g->n_single, 1);
    g = gx_synonyms_find(s, words, 1, false);
    assert_int_equal(g->n, 2);
    assert_int_equal(g->n_single, 2);
    assert_null(gx_synonyms_find(s, words, 3, true));
    assert_non_null(gx_synonyms_find(s, words, 2, true));
    assert_null(gx_synonyms_find(s, words + 1, 1, false));
    assert_int_equal(gx_synonyms_find(s, &(gx_synonym_term){"tv", 2, 0}, 1, true)->n, 3); /* rules add up */
    gx_synonyms_close(s);
    close_index(&f);
}

static void wrong_rules_are_told_with_their_place(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"a => b => c", "line 1, column 8: a second =>"},
        {"a, b\n  , c", "line 2, column 3: a word is expected here"},
        {"a, b\n=> c", "line 2, column 1: a word is expected here"},
        {"a =>", "line 1, column 5: a word is expected here"},
        {"a, =>b", "line 1, column 4: a word is expected here"},
        {"alone", "line 1, column 6: one entry alone"},
        {"\xc3\xa4, \xff", "line 1, column 4: this is not UTF-8"},
        {"a => b\nb => c\nc => d\nx => a\nd => b", "a circle"},
        {"a b => c\nc => a b", "a circle"},
        {"a, !!", "line 1, column 4: analysis leaves nothing"},
    };
    fixture f;
    open_index(&f, true);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        gx_synonyms *s;
        gx_error err = {0};
        assert_int_equal(gx_synonyms_open(&s, f.ix, wrong[i][0], strlen(wrong[i][0]), &err), GX_EINPUT);
        assert_null(s);
        if (!strstr(err.text, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], err.text);
    }
    gx_synonyms *s = read_rules(f.ix, "a => a, b\nb => c\nc, d\nd, e\n\\=\\> x\\, => y\n#\n"); /* no circles */
    gx_synonyms_close(s);
    gx_synonyms_close(NULL);
    close_index(&f);
}

static void phrases_need_positions(void **state)
{
    (void)state;
    fixture f, bare;
    gx_synonyms *s;
    gx_error err = {0};
    gx_query_options opt = GX_QUERY_OPTIONS;
    open_index(&bare, false);
    assert_int_equal(gx_synonyms_open(&s, bare.ix, "nyc, new york", 13, &err), GX_EINPUT);
    assert_non_null(strstr(err.text, "line 1, column 6"));
    close_index(&bare);
    open_index(&f, true);
    uint32_t docids[10], hits;
    float scores[10];
    opt.synonyms = s = read_rules(f.ix, "nyc, new york\n");
    assert_int_equal(search(&f, GX_QUERY_TEXT, "nyc", &opt, docids, scores), 1);
    assert_int_equal(docids[0], 0);
    opt.op = GX_OP_AND;
    assert_int_equal(search(&f, GX_QUERY_TEXT, "taxi new york", &opt, docids, scores), 1);
    opt.op = GX_OP_AND_OR;
    gx_query q = GX_TEXT_QUERY("nyc taxi", 8);
    gx_results r = {.size = sizeof r, .docids = docids, .scores = scores, .n_hits = &hits};
    assert_int_equal(gx_search(f.session, &q, 1, &opt, &r, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "AND first and then OR"));
    gx_synonyms_close(s);
    close_index(&f);
}

static void words_score_as_one_or_by_a_constant(void **state)
{
    (void)state;
    fixture f;
    uint32_t docids[10], hits;
    float scores[10];
    gx_error err = {0};
    gx_query_options opt = GX_QUERY_OPTIONS;
    open_index(&f, true);
    opt.expansion.scoring = GX_EXPANSION_CONSTANT;
    assert_int_equal(search(&f, GX_QUERY_BOOLEAN, "york*^2.5 taxi*^0.5", &opt, docids, scores), 3);
    for (int i = 0; i < 3; ++i)
        assert_true(fabsf(scores[i] - (docids[i] == 2 ? 2.5f : 3)) < 1e-6f);
    opt.expansion.scoring = GX_EXPANSION_ONE;
    assert_int_equal(search(&f, GX_QUERY_BOOLEAN, "york*", &opt, docids, scores), 3);
    const double idf = log(1 + (5 - 2 + .5) / 2.5), K = .9 * (1 - .4 + .4 * 4 / 3.8);
    assert_int_equal(docids[0], 0);
    assert_true(fabs(scores[0] - idf / (1 + K)) < 1e-6);
    opt.preset = GX_IMPACT;
    gx_query q = GX_TEXT_QUERY("york*", 5);
    q.kind = GX_QUERY_BOOLEAN;
    gx_results r = {.size = sizeof r, .docids = docids, .scores = scores, .n_hits = &hits};
    assert_int_equal(gx_search(f.session, &q, 1, &opt, &r, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "need term frequencies"));
    opt.preset = GX_BM25;
    opt.expansion.scoring = (gx_expansion_scoring)3;
    assert_int_equal(gx_search(f.session, &q, 1, &opt, &r, &err), GX_EUSAGE);
    close_index(&f);
}

static void several_scorers_answer_one_query(void **state)
{
    (void)state;
    static const gx_scorer_choice scorers[] = {{GX_BM25, NAN, NAN}, {GX_BM25_ATIRE, 2, .5f}, {GX_BM25, 9, 2}};
    fixture f;
    uint32_t docids[3][10], hits[3], own[10];
    float scores[3][10], own_scores[10];
    gx_results r[3];
    gx_error err = {0};
    gx_query q = GX_TEXT_QUERY("taxi york", 9);
    gx_query_options opt = GX_QUERY_OPTIONS;
    open_index(&f, true);
    for (int i = 0; i < 3; ++i)
        r[i] = (gx_results){.size = sizeof *r, .docids = docids[i], .scores = scores[i], .n_hits = &hits[i]};
    assert_int_equal(gx_search_scorers(f.session, &q, 1, NULL, scorers, 2, r, &err), GX_OK);
    for (int i = 0; i < 2; ++i) {
        opt.preset = scorers[i].preset;
        opt.k1 = scorers[i].k1;
        opt.b = scorers[i].b;
        assert_int_equal(search(&f, GX_QUERY_TEXT, "taxi york", &opt, own, own_scores), hits[i]);
        assert_memory_equal(own, docids[i], hits[i] * sizeof *own);
        assert_memory_equal(own_scores, scores[i], hits[i] * sizeof *own_scores);
    }
    assert_int_equal(gx_search_scorers(f.session, &q, 1, NULL, scorers, 3, r, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "scorer 3: b is 2"));
    close_index(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_entry_is_replaced),    cmocka_unit_test(wrong_rules_are_told_with_their_place),
        cmocka_unit_test(phrases_need_positions),           cmocka_unit_test(words_score_as_one_or_by_a_constant),
        cmocka_unit_test(several_scorers_answer_one_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
