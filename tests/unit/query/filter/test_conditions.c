/* Conditions in boolean queries: random queries of words and conditions on attributes, against a judge that
 * looks at one document after another, of one file, of a collection with deleted documents and of its joined
 * parts, on the CPU and on a GPU where there is one; what is refused, and where.
 *
 * The judge knows which documents match. Their scores are those of a search for the words alone, under a
 * mask of these documents, which other tests check; documents without any of the words follow by docid.
 *
 * GX_TEST_SEED is the seed of all that is random, 18 without it. GX_TEST_CASES=N makes N times as many
 * queries: 700 of each index and engine. GX_TEST_FILTER=PATTERN runs the tests with such names. */
#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "engine/status.h"
#include "query/engine/session.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

enum { N_PAPERS = 5200, N_PARTS = 4, N_VOCABULARY = 12, MOST_WEIGHT = 64 };
static const gx_attribute columns[] = {
    {"year", GX_ATTRIBUTE_INT}, {"venue", GX_ATTRIBUTE_KEYWORD}, {"price", GX_ATTRIBUTE_FLOAT}};

typedef struct paper {
    uint32_t vocabulary;            /* bits: "w%u" */
    uint32_t year, venue, quarters; /* price = quarters / 4; UINT32_MAX: has no value */
    bool deleted;
} paper;
static paper papers[N_PAPERS];
static uint64_t seed = 18;

/* An index, the papers that its docids are, and its engines. */
typedef struct shelf {
    const char *what;
    gx_index *ix;
    uint32_t n, paper[N_PAPERS];
    gx_engine *en[2]; /* of the CPU, of a GPU or NULL */
    gx_session *s[2];
} shelf;
static shelf shelves[3];

static uint32_t draw(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

static uint32_t n_cases(void)
{
    const char *times = getenv("GX_TEST_CASES");
    return 700 * (times ? (uint32_t)strtoul(times, NULL, 10) : 1);
}

/* ---- the indexes ---- */

static void add_paper(gx_builder *b, uint32_t p)
{
    char id[16], body[400] = "", texts[3][24];
    gx_attribute_value values[3];
    const paper *x = &papers[p];
    uint32_t n = 0;
    size_t len = 0;
    gx_error err = {0};
    for (uint32_t w = 0; w < N_VOCABULARY; ++w)
        for (uint32_t tf = x->vocabulary >> w & 1 ? 1 + (p + w) % 3 : 0; tf; --tf)
            len += (size_t)sprintf(body + len, "w%u ", w);
    if (x->year != UINT32_MAX)
        values[n] = (gx_attribute_value){0, texts[n], (size_t)sprintf(texts[n], "%u", x->year)}, ++n;
    if (x->venue != UINT32_MAX)
        values[n] = (gx_attribute_value){1, texts[n], (size_t)sprintf(texts[n], "v%u", x->venue)}, ++n;
    if (x->quarters != UINT32_MAX)
        values[n] = (gx_attribute_value){2, texts[n], (size_t)sprintf(texts[n], "%g", x->quarters / 4.)}, ++n;
    const gx_document document = {.size = sizeof document,
                                  .id = id,
                                  .text = body,
                                  .id_len = (size_t)sprintf(id, "p%u", p),
                                  .text_len = len,
                                  .values = values,
                                  .n_values = n};
    if (gx_builder_add(b, &document, &err))
        fail_msg("%s", err.text);
}

static void make_index(const char *path, uint32_t begin, uint32_t end)
{
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b;
    o.attributes = columns;
    o.n_attributes = 3;
    o.path = path;
    o.analyzer = "whitespace";
    assert_int_equal(gx_builder_open(&b, &o, NULL), GX_OK);
    for (uint32_t p = begin; p < end; ++p)
        add_paper(b, p);
    assert_int_equal(gx_builder_finish(b, NULL), GX_OK);
    gx_builder_abort(b);
}

static void open_shelf(shelf *h, const char *what, const char *path, gx_join join)
{
    gx_error err = {0};
    h->what = what;
    assert_int_equal(gx_index_open(&h->ix, path, NULL, NULL), GX_OK);
    for (uint32_t p = 0; p < N_PAPERS; ++p)
        if (h == shelves || !papers[p].deleted)
            h->paper[h->n++] = p;
    assert_int_equal(gx_index_n_docs(h->ix), h->n);
    for (int gpu = 0; gpu < 2; ++gpu) {
        gx_engine_options o = GX_ENGINE_OPTIONS;
        o.kind = gpu ? GX_ENGINE_GPU : GX_ENGINE_CPU;
        o.join = join;
        const gx_status st = gx_engine_open(&h->en[gpu], h->ix, &o, &err);
        if (gpu && st == GX_ENOGPU)
            continue;
        if (st || gx_session_open(&h->s[gpu], h->en[gpu], &err))
            fail_msg("%s: %s", what, err.text);
    }
}

static int open_shelves(void **state)
{
    static char files[N_PARTS][300], folder[300];
    const char *paths[N_PARTS];
    gx_collection *c;
    bool found;
    if (make_dir(state))
        return -1;
    for (uint32_t p = 0; p < N_PAPERS; ++p)
        papers[p] = (paper){.vocabulary = (1u << draw(N_VOCABULARY)) | (1u << draw(4)) | draw(2),
                            .year = draw(9) ? 2000 + draw(20) : UINT32_MAX,
                            .venue = draw(9) ? draw(6) * draw(6) : UINT32_MAX,
                            .quarters = draw(9) ? draw(100) : UINT32_MAX,
                            .deleted = draw(7) == 0};
    make_index(in_dir("whole.gx"), 0, N_PAPERS);
    for (uint32_t i = 0; i < N_PARTS; ++i) {
        snprintf(files[i], sizeof files[i], "%s/part%u.gx", scratch_dir, i);
        make_index(files[i], N_PAPERS / N_PARTS * i, N_PAPERS / N_PARTS * (i + 1));
        paths[i] = files[i];
    }
    snprintf(folder, sizeof folder, "%s/folder", scratch_dir);
    assert_int_equal(gx_collect(folder, paths, N_PARTS, NULL), GX_OK);
    assert_int_equal(gx_collection_open(&c, folder, NULL, NULL), GX_OK);
    for (uint32_t p = 0; p < N_PAPERS; ++p) {
        char id[16];
        const size_t len = (size_t)sprintf(id, "p%u", p);
        if (papers[p].deleted)
            assert_int_equal(gx_collection_delete(c, id, len, &found, NULL), GX_OK);
    }
    assert_int_equal(gx_collection_commit(c, NULL), GX_OK);
    gx_collection_close(c);
    open_shelf(&shelves[0], "one file", in_dir("whole.gx"), GX_JOIN_NEVER);
    open_shelf(&shelves[1], "parts", folder, GX_JOIN_NEVER);
    open_shelf(&shelves[2], "joined parts", folder, GX_JOIN_ALWAYS);
    return 0;
}

static int close_shelves(void **state)
{
    char command[400];
    for (shelf *h = shelves; h < shelves + 3; ++h) {
        for (int gpu = 0; gpu < 2; ++gpu) {
            gx_session_close(h->s[gpu]);
            gx_engine_close(h->en[gpu]);
        }
        gx_index_close(h->ix);
    }
    snprintf(command, sizeof command, "rm -r %s/folder", scratch_dir);
    return system(command) || remove_dir(state);
}

/* ---- random queries, and the papers that they match ---- */

typedef struct question {
    char text[6000];
    size_t len;
    uint32_t weights[N_VOCABULARY]; /* of words that score; 0: none */
    bool selects, unknown_scores;
    bool in[N_PAPERS];
} question;

__attribute__((format(printf, 2, 3))) static void write_out(question *q, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    q->len += (size_t)vsnprintf(q->text + q->len, sizeof q->text - q->len, format, list);
    va_end(list);
    assert_true(q->len < sizeof q->text);
}

static void ask_condition(question *q, bool negated, bool *in)
{
    const uint32_t kind = draw(8), low = 1998 + draw(23), high = low + draw(9), venue = draw(30), at = draw(110);
    static const char *const forms[] = {"year:%u",           "year:[%u TO %u]", "year:{%u TO %u}", "price:<=%g",
                                        "NOT venue:\"v%u\"", "venue:v%u",       "has:year",        "id:p%u"};
    q->selects = q->selects || (!negated && kind != 4);
    if (kind == 4)
        write_out(q, "(");
    if (kind < 3)
        write_out(q, forms[kind], low, high); /* the first form leaves one out */
    else if (kind == 3)
        write_out(q, "price:<=%g", at / 4.);
    else
        write_out(q, forms[kind], kind == 7 ? at : venue);
    if (kind == 4)
        write_out(q, ")");
    for (uint32_t p = 0; p < N_PAPERS; ++p) {
        const paper *x = &papers[p];
        const bool dated = x->year != UINT32_MAX;
        const bool holds[] = {x->year == low,
                              dated && x->year >= low && x->year <= high,
                              dated && x->year > low && x->year < high,
                              x->quarters != UINT32_MAX && x->quarters <= at,
                              x->venue != venue,
                              x->venue == venue,
                              dated,
                              p == at};
        in[p] = holds[kind];
    }
}

static void ask_word(question *q, uint32_t weight, bool negated, bool *in)
{
    const uint32_t w = draw(N_VOCABULARY + 1), boost = draw(5) ? 1 : 2;
    write_out(q, boost > 1 ? "w%u^%u" : "w%u", w, boost);
    for (uint32_t p = 0; p < N_PAPERS; ++p)
        in[p] = w < N_VOCABULARY && (papers[p].vocabulary >> w & 1);
    if (!negated && w < N_VOCABULARY)
        q->weights[w] += weight * boost;
    q->unknown_scores = q->unknown_scores || (!negated && w == N_VOCABULARY);
}

static void ask_group(question *q, uint32_t depth, uint32_t weight, bool negated, bool *in);

static void ask_leaf(question *q, uint32_t depth, uint32_t weight, bool negated, bool *in)
{
    const uint32_t kind = draw(depth ? 4 : 3);
    if (kind == 0)
        ask_condition(q, negated, in);
    else if (kind < 3)
        ask_word(q, weight, negated, in);
    else
        ask_group(q, depth, weight, negated, in);
}

/* NOT or - once or several times; whether they negate what follows. */
static bool ask_nots(question *q)
{
    static const char *const signs[] = {"NOT ", "-", "NOT -", "-NOT "};
    bool negates = false;
    for (uint32_t n = draw(3) ? 1 : 1 + draw(3); n; --n) {
        const uint32_t sign = draw(4);
        write_out(q, "%s", signs[sign]);
        negates ^= sign < 2;
    }
    return negates;
}

/* "(a AND NOT b AND c)" or "(a OR NOT b OR c)". */
static void ask_group(question *q, uint32_t depth, uint32_t weight, bool negated, bool *in)
{
    const bool all = draw(2);
    const uint32_t n = 1 + draw(3);
    bool *one = calloc(N_PAPERS, 1);
    assert_non_null(one);
    write_out(q, "(");
    for (uint32_t i = 0; i < n; ++i) {
        const bool nots = n > 1 && draw(4) == 0;
        write_out(q, "%s", i ? (all ? " AND " : " OR ") : "");
        const bool negates = nots && ask_nots(q);
        ask_leaf(q, depth - 1, weight, negated || nots, one);
        for (uint32_t p = 0; p < N_PAPERS; ++p) {
            const bool x = one[p] != negates;
            in[p] = i == 0 ? x : all ? in[p] && x : in[p] || x;
        }
    }
    write_out(q, ")");
    free(one);
}

/* What is written in the first lines of manuals: + - and words side by side, or AND. */
static void ask_query(question *q, gx_op op)
{
    static bool one[N_PAPERS], needed[N_PAPERS], any[N_PAPERS];
    bool required = false, optional = false;
    const bool series = draw(3) == 0;
    *q = (question){.len = 0};
    memset(needed, 1, sizeof needed);
    for (uint32_t n = 1 + draw(4), i = 0; i < n; ++i) {
        const uint32_t sign = series ? (i && draw(3) == 0 ? 1 : 0) : draw(4); /* 0: needed, 1: excluded */
        write_out(q, "%s%s", i ? (series ? " AND " : " ") : "", sign == 0 && !series ? "+" : "");
        const bool negates = sign == 1 && ask_nots(q);
        ask_leaf(q, 2, 1, sign == 1, one);
        for (uint32_t p = 0; p < N_PAPERS; ++p) {
            if (sign < 2)
                needed[p] = needed[p] && one[p] != negates;
            else
                any[p] = !optional ? one[p] : op == GX_OP_AND ? any[p] && one[p] : any[p] || one[p];
        }
        required = required || sign == 0;
        optional = optional || sign > 1;
    }
    for (uint32_t p = 0; p < N_PAPERS; ++p)
        q->in[p] = needed[p] && (required || !optional || any[p]);
}

/* ---- the comparison ---- */

typedef struct found {
    uint32_t n, docids[N_PAPERS];
    double scores[N_PAPERS];
    uint64_t n_matches;
} found;

/* What the judge says: the best by score under a mask, then the others. */
static void judge(found *want, const shelf *h, const question *q, const gx_query_options *given)
{
    static uint64_t words[N_PAPERS / 64 + 1];
    static bool scored[N_PAPERS];
    char names[N_VOCABULARY][8];
    gx_weighted_term terms[N_VOCABULARY];
    uint32_t n = 0;
    gx_mask *mask;
    gx_error err = {0};
    gx_query_options o = *given;
    memset(words, 0, sizeof words);
    memset(scored, 0, sizeof scored);
    for (uint32_t d = 0; d < h->n; ++d)
        words[d / 64] |= (uint64_t)q->in[h->paper[d]] << d % 64;
    for (uint32_t w = 0; w < N_VOCABULARY; ++w)
        if (q->weights[w])
            terms[n] = (gx_weighted_term){names[n], (size_t)sprintf(names[n], "w%u", w), (float)q->weights[w]}, ++n;
    const gx_query query = {.size = sizeof query, .kind = GX_QUERY_TERMS, .terms = terms, .n_terms = n};
    const gx_results out = {sizeof out, want->docids, NULL, &want->n, &want->n_matches, want->scores};
    assert_int_equal(gx_mask_open(&mask, h->en[0], words, NULL), GX_OK);
    o.op = GX_OP_OR;
    o.mask = mask;
    o.prune = false;
    o.k = N_PAPERS;
    o.count = true;
    if (gx_search(h->s[0], &query, 1, &o, &out, &err))
        fail_msg("%s", err.text);
    gx_mask_close(mask);
    for (uint32_t i = 0; i < want->n; ++i)
        scored[want->docids[i]] = true;
    for (uint32_t d = 0; q->selects && d < h->n; ++d) {
        if (scored[d] || !q->in[h->paper[d]])
            continue;
        want->scores[want->n] = 0;
        want->docids[want->n++] = d;
    }
    want->n_matches = want->n;
    want->n = want->n < given->k ? want->n : given->k;
}

static void compare(const shelf *h, int gpu, const question *q, const gx_query_options *o, const found *want)
{
    static found got;
    gx_error err = {0};
    gx_query query = GX_TEXT_QUERY(q->text, q->len);
    const gx_results out = {sizeof out, got.docids, NULL, &got.n, &got.n_matches, got.scores};
    query.kind = GX_QUERY_BOOLEAN;
    const gx_status st = gx_search(h->s[gpu], &query, 1, o, &out, &err);
    bool scores = q->unknown_scores;
    for (uint32_t w = 0; w < N_VOCABULARY; ++w)
        scores = scores || q->weights[w];
    if (st == GX_EUSAGE && !scores && !q->selects) {
        assert_non_null(strstr(err.text, "only excludes"));
        return;
    }
    if (st)
        fail_msg("%s: '%s': %s", h->what, q->text, err.text);
    if (got.n != want->n || got.n_matches != want->n_matches ||
        memcmp(got.docids, want->docids, want->n * sizeof want->docids[0]) != 0 ||
        memcmp(got.scores, want->scores, want->n * sizeof want->scores[0]) != 0)
        fail_msg("%s, %s, op %d, k %u: '%s': %u of %llu results, not %u of %llu, or others", h->what,
                 gpu ? "GPU" : "CPU", o->op, o->k, q->text, got.n, (unsigned long long)got.n_matches, want->n,
                 (unsigned long long)want->n_matches);
}

static void compare_random(int gpu)
{
    static question q;
    static found want;
    uint64_t n_results = 0, n_scored = 0;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (const shelf *h = shelves; h < shelves + 3; ++h) {
        if (!h->s[gpu])
            skip();
        for (uint32_t i = n_cases(); i; --i) {
            gx_query_options o = GX_QUERY_OPTIONS;
            o.op = draw(3) ? GX_OP_OR : GX_OP_AND;
            o.k = draw(3) ? 10 : draw(2) ? 1 : 1 + draw(N_PAPERS);
            o.count = true;
            o.prune = draw(5) > 0;
            ask_query(&q, o.op);
            judge(&want, h, &q, &o);
            compare(h, gpu, &q, &o, &want);
            n_results += want.n;
            n_scored += want.n && want.scores[0] > 0;
        }
    }
    assert_true(n_results > n_cases() && n_scored > n_cases());
}

static void random_queries_find_what_a_look_at_each_paper_does(void **state)
{
    (void)state;
    compare_random(0);
}

static void random_queries_find_the_same_on_a_gpu(void **state)
{
    (void)state;
    compare_random(1);
}

/* ---- hand-made ---- */

/* The plan of a query: whether it has a mask, a filter with this text (NULL: none), and is to be filled. */
static void expect_plan(const char *text, bool mask, const char *filter, bool fill)
{
    gx_query query = GX_TEXT_QUERY(text, strlen(text));
    const gx_query_options o = GX_QUERY_OPTIONS;
    gx_error err = {0};
    gx_plan plan;
    size_t len;
    query.kind = GX_QUERY_BOOLEAN;
    if (gx_engine_plan(&plan, shelves[0].en[0], &query, &o, &err))
        fail_msg("'%s': %s", text, err.text);
    const char *got = plan.filter ? gx_filter_text(plan.filter, &len) : NULL;
    if (!filter != !got || (filter && (strlen(filter) != len || memcmp(filter, got, len) != 0)))
        fail_msg("'%s': filter '%.*s'", text, got ? (int)len : 0, got ? got : "");
    assert_int_equal(plan.mask != NULL, mask);
    assert_int_equal(plan.fill, fill);
    gx_plan_free(&plan);
}

static void conditions_that_all_results_must_meet_are_the_plans_filter(void **state)
{
    (void)state;
    expect_plan("w1 AND year:2016", false, "year:\"2016\"", false);
    expect_plan("w1 AND w2 AND year:[2015 TO *] AND NOT venue:v1", false, "year:[\"2015\" TO *] AND NOT venue:\"v1\"",
                false);
    expect_plan("+w1 +year:2016", false, "year:\"2016\"", false);
    expect_plan("w1 w2 -year:2016 -(has:venue price:<3)", false,
                "NOT year:\"2016\" AND NOT (has:venue OR price:<\"3\")", false);
    expect_plan("+(year:2016 OR (venue:v1 AND NOT has:price)) +(w1 OR w2)", false,
                "year:\"2016\" OR venue:\"v1\" AND NOT has:price", false);
    expect_plan("year:2016", false, "year:\"2016\"", true);
    expect_plan("+year:2016 w1 w2", false, "year:\"2016\"", true);
    expect_plan("+w1 year:2016", false, NULL, false);
    expect_plan("w1 OR year:2016", true, NULL, true);
    expect_plan("(w1 AND year:2016) OR (w2 AND year:2017)", true, NULL, false);
    expect_plan("year:2016 AND NOT w1", true, "year:\"2016\"", true);
}

/* The bases of filters of queries: both hold. */
static void a_filter_of_the_query_holds_beside_its_conditions(void **state)
{
    static const char *const filters[] = {"venue:v1 OR venue:v2", "venue:v1 AND has:price", "NOT year:2003", "id:p7"};
    static const char *const texts[] = {"w0 AND year:<2010", "w0 OR year:2005", "year:2003 OR year:2004", "w0 w1"};
    static found one, both;
    (void)state;
    for (const shelf *h = shelves; h < shelves + 3; ++h) {
        for (uint32_t i = 0; i < 4 * 4; ++i) {
            gx_filter *f;
            uint32_t n = 0;
            gx_query_options o = GX_QUERY_OPTIONS;
            gx_query query = GX_TEXT_QUERY(texts[i % 4], strlen(texts[i % 4]));
            uint64_t words[N_PAPERS / 64 + 1];
            const gx_results all = {sizeof all, one.docids, NULL, &one.n, &one.n_matches, one.scores},
                             some = {sizeof some, both.docids, NULL, &both.n, &both.n_matches, both.scores};
            query.kind = GX_QUERY_BOOLEAN;
            o.k = N_PAPERS;
            o.count = true;
            assert_int_equal(gx_filter_open(&f, h->ix, filters[i / 4], strlen(filters[i / 4]), NULL, NULL), GX_OK);
            assert_int_equal(gx_filter_evaluate(f, words, NULL, NULL), GX_OK);
            assert_int_equal(gx_search(h->s[0], &query, 1, &o, &all, NULL), GX_OK);
            query.filter = f;
            assert_int_equal(gx_search(h->s[0], &query, 1, &o, &some, NULL), GX_OK);
            for (uint32_t d = 0; d < one.n; ++d) {
                if (!(words[one.docids[d] / 64] >> one.docids[d] % 64 & 1))
                    continue;
                assert_true(n < both.n && both.docids[n] == one.docids[d] && both.scores[n] == one.scores[d]);
                ++n;
            }
            assert_int_equal(n, both.n);
            assert_int_equal(n, both.n_matches);
            gx_filter_close(f);
        }
    }
}

static void mistakes_in_conditions_are_told_with_their_column(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"w1 AND yaer:2016", "column 8: the index has no attribute 'yaer'; did you mean year? (fields cannot be "
                             "searched; write \\: for a colon in a word)"},
        {"w1 has:yaer", "column 8: the index has no attribute 'yaer'; did you mean year?"},
        {"\xc3\xa4 year:x", "column 8: year is of type int, and 'x' "},
        {"w1 -year:[2015 TO 2o16]", "column 19: year is of type int, and '2o16' "},
        {"w1 OR price:<cheap", "column 14: price is of type float, and 'cheap' "},
        {"w1 AND id:@list", "column 11: files of ids cannot be read here"},
        {"-year:2016", "column 1: the query only excludes; at least one word or condition to look for"},
        {"title:(w1 w2)", "column 1: the index has no attribute 'title'"},
    };
    (void)state;
    for (const shelf *h = shelves; h < shelves + 3; ++h) {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
            static found none;
            gx_error err = {0};
            gx_query query = GX_TEXT_QUERY(bad[i].text, strlen(bad[i].text));
            const gx_results out = {sizeof out, none.docids, NULL, &none.n, NULL, NULL};
            query.kind = GX_QUERY_BOOLEAN;
            assert_int_equal(gx_search(h->s[0], &query, 1, NULL, &out, &err), GX_EUSAGE);
            if (strncmp(err.text, bad[i].says, strlen(bad[i].says)) != 0)
                fail_msg("'%s': '%s', not '%s'", bad[i].text, err.text, bad[i].says);
        }
    }
}

/* Deep groups of words and conditions, and thousands of conditions, are answered or refused. */
static void large_queries_of_conditions_are_answered(void **state)
{
    enum { MANY = 2000 };
    static char text[MANY * 24];
    static found got;
    size_t len = 0;
    gx_error err = {0};
    const gx_results out = {sizeof out, got.docids, NULL, &got.n, NULL, got.scores};
    (void)state;
    for (uint32_t i = 0; i < MANY; ++i)
        len += (size_t)sprintf(text + len, "%s%s%u", i ? " OR " : "", i % 5 ? "year:" : "w", i % 5 ? 1000 + i : i % 7);
    gx_query query = GX_TEXT_QUERY(text, len);
    query.kind = GX_QUERY_BOOLEAN;
    if (gx_search(shelves[0].s[0], &query, 1, NULL, &out, &err))
        fail_msg("%s", err.text);
    assert_int_equal(got.n, 10);
    len = 0;
    for (uint32_t i = 0; i < 60; ++i)
        len += (size_t)sprintf(text + len, i % 2 ? "(year:20%02u OR " : "(w1 AND ", i % 20);
    len += (size_t)sprintf(text + len, "w2");
    memset(text + len, ')', 60);
    query.len = len + 60;
    if (gx_search(shelves[1].s[0], &query, 1, NULL, &out, &err))
        fail_msg("%s", err.text);
    assert_true(got.n > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_queries_find_what_a_look_at_each_paper_does),
        cmocka_unit_test(random_queries_find_the_same_on_a_gpu),
        cmocka_unit_test(conditions_that_all_results_must_meet_are_the_plans_filter),
        cmocka_unit_test(a_filter_of_the_query_holds_beside_its_conditions),
        cmocka_unit_test(mistakes_in_conditions_are_told_with_their_column),
        cmocka_unit_test(large_queries_of_conditions_are_answered),
    };
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    if (getenv("GX_TEST_FILTER"))
        cmocka_set_test_filter(getenv("GX_TEST_FILTER"));
    return cmocka_run_group_tests(tests, open_shelves, close_shelves);
}
