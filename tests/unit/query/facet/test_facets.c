/* Facets: counts against a look at one document after another, of one file, of a collection with deleted
 * documents, and of its joined parts; what a group's text means as a filter; what is refused.
 *
 * GX_TEST_SEED is the seed of all that is random, 17 without it. GX_TEST_CASES=N makes N times as many
 * queries: 300 of each engine, each with every facet. */
#include <math.h>

#include "engine/random.h"
#include "tests/support/facets.h"
#include "tests/support/scratch.h"

enum { N_DOCS = 1700, N_FILES = 3, N_WORDS = 20 };
enum { YEAR, PRICE, WHEN, CAT, TAGS, OPEN, BIG, R, YEARS, PRICES, WHENS, N_ATTRIBUTES }; /* YEARS on: several values */
static const gx_attribute attributes[N_ATTRIBUTES] = {
    {"year", GX_ATTRIBUTE_INT},     {"price", GX_ATTRIBUTE_FLOAT},   {"when", GX_ATTRIBUTE_DATE},
    {"cat", GX_ATTRIBUTE_KEYWORD},  {"tags", GX_ATTRIBUTE_KEYWORDS}, {"open", GX_ATTRIBUTE_BOOL},
    {"big", GX_ATTRIBUTE_INT},      {"r", GX_ATTRIBUTE_INT},         {"years", GX_ATTRIBUTE_INT},
    {"prices", GX_ATTRIBUTE_FLOAT}, {"whens", GX_ATTRIBUTE_DATE}};

enum { MOST_VALUES = 5 };
typedef struct several {
    uint32_t n;
    int64_t v[MOST_VALUES]; /* of PRICES: four times the value */
} several;

typedef struct doc {
    bool has[N_ATTRIBUTES], deleted;
    int64_t number[N_ATTRIBUTES]; /* of int, date, bool; of cat "c%02lld", of tags bits: "t%u" */
    double price;
    uint32_t words; /* bits: "w%u" */
    several more[N_ATTRIBUTES - YEARS];
} doc;
static doc docs[N_DOCS];
static uint64_t seed = 17;

/* An index and its documents: live[docid]. */
typedef struct target {
    gx_index *ix;
    gx_engine *en;
    gx_session *s;
    const char *what;
    uint32_t n, live[N_DOCS];
} target;
static target targets[4];

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

static void draw_document(doc *x)
{
    struct tm tm = {.tm_year = 100 + (int)below(4), .tm_mon = (int)below(12), .tm_mday = 1};
    *x = (doc){.price = (double)below(300) / 4 - 10, .deleted = below(5) == 0};
    x->number[YEAR] = 1990 + below(30);
    x->number[WHEN] = timegm(&tm) + below(28 * 86400) - (below(20) == 0 ? INT64_C(4000000000) : 0);
    x->number[CAT] = below(1 + below(50));
    x->number[TAGS] = (int64_t)(gx_random_next(&seed) & gx_random_next(&seed) & 0xff);
    x->number[OPEN] = below(2);
    x->number[BIG] = below(3) ? (int64_t)gx_random_next(&seed) : below(2) ? INT64_MIN : INT64_MAX;
    x->number[R] = below(100000);
    for (uint32_t i = 0; i < YEARS; ++i)
        x->has[i] = i == R || below(5) != 0;
    for (uint32_t i = YEARS; i < N_ATTRIBUTES; ++i) {
        several *own = &x->more[i - YEARS];
        own->n = i == YEARS ? below(MOST_VALUES + 1) : 1 + below(MOST_VALUES); /* else in columns too */
        x->has[i] = own->n > 0;
        for (uint32_t j = 0; j < own->n; ++j)
            own->v[j] = i == YEARS    ? 1990 + below(30)
                        : i == PRICES ? (int64_t)below(300) - 40
                                      : 946684800 + (int64_t)below(1000) * 86400 * (1 + below(2));
    }
    x->has[TAGS] = x->number[TAGS] != 0;
    for (uint32_t w = 0; w < N_WORDS; ++w)
        x->words |= (uint32_t)(below(1 + w) == 0) << w;
}

/* The values of YEARS and all behind it. */
static void add_several(const doc *x, doc_values *v)
{
    for (uint32_t a = YEARS; a < N_ATTRIBUTES; ++a)
        for (uint32_t i = 0; i < x->more[a - YEARS].n; ++i) {
            const int64_t value = x->more[a - YEARS].v[i];
            if (a == PRICES)
                snprintf(next_text(v), VALUE_BYTES, "%g", (double)value / 4);
            else if (a == WHENS)
                print_date(next_text(v), value);
            else
                snprintf(next_text(v), VALUE_BYTES, "%lld", (long long)value);
            add_value(v, a);
        }
}

static void add_document(gx_builder *b, uint32_t d)
{
    char id[16];
    doc_values v = {0};
    const doc *x = &docs[d];
    for (uint32_t i = 0; i < YEARS; ++i) {
        if (!x->has[i] || i == TAGS)
            continue;
        if (i == PRICE)
            snprintf(next_text(&v), VALUE_BYTES, "%g", x->price);
        else if (i == WHEN)
            print_date(next_text(&v), x->number[i]);
        else
            snprintf(next_text(&v), VALUE_BYTES, i == CAT ? "c%02lld" : "%lld", (long long)x->number[i]);
        add_value(&v, i);
    }
    for (uint32_t t = 0; t < 8; ++t)
        if (x->number[TAGS] >> t & 1) {
            snprintf(next_text(&v), VALUE_BYTES, "t%u", t);
            add_value(&v, TAGS);
        }
    add_several(x, &v);
    sprintf(id, "doc%u", d);
    add_of_words(b, id, x->words, &v);
}

static void open_target(uint32_t i, const char *path, const char *what, gx_join join, bool with_deleted)
{
    target *t = &targets[i];
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_error err = {0};
    o.kind = GX_ENGINE_CPU;
    o.join = join;
    t->what = what;
    if (gx_index_open(&t->ix, path, NULL, &err) || gx_engine_open(&t->en, t->ix, &o, &err) ||
        gx_session_open(&t->s, t->en, &err))
        fail_msg("%s", err.text);
    for (uint32_t d = 0; d < N_DOCS; ++d)
        if (with_deleted || !docs[d].deleted)
            t->live[t->n++] = d;
    assert_int_equal(gx_index_n_docs(t->ix), t->n);
}

static void delete_documents(const char *path)
{
    gx_collection *c;
    char id[16];
    bool found;
    assert_int_equal(gx_collection_open(&c, path, NULL, NULL), GX_OK);
    for (uint32_t d = 0; d < N_DOCS; ++d)
        if (docs[d].deleted)
            assert_int_equal(gx_collection_delete(c, id, (size_t)sprintf(id, "doc%u", d), &found, NULL), GX_OK);
    assert_int_equal(gx_collection_commit(c, NULL), GX_OK);
    gx_collection_close(c);
}

static int open_all(void **state)
{
    static gx_bitmap_options columns[N_ATTRIBUTES], none[N_ATTRIBUTES];
    static const char *const texts[N_ATTRIBUTES] = {
        "bins=40", "bins=300", "bins=30:by=width", "bitmaps=equality", "bitmaps=equality", "bitmaps=equality",
        "bins=7",  "bins=25",  "bins=40",          "bins=20:by=lloyd", "bins=2000"};
    static char files[N_FILES][300], folder[300];
    const char *paths[N_FILES];
    if (make_dir(state) != 0)
        return -1;
    for (uint32_t d = 0; d < N_DOCS; ++d)
        draw_document(&docs[d]);
    for (uint32_t i = 0; i < N_ATTRIBUTES; ++i) {
        assert_int_equal(gx_bitmap_options_read(&columns[i], texts[i], NULL), GX_OK);
        none[i].encoding = GX_BITMAPS_NONE;
    }
    build(in_dir("columns.gx"), (attributes_of){attributes, columns, N_ATTRIBUTES}, add_document, 0, N_DOCS);
    build(in_dir("values.gx"), (attributes_of){attributes, none, N_ATTRIBUTES}, add_document, 0, N_DOCS);
    for (uint32_t f = 0; f < N_FILES; ++f) {
        snprintf(files[f], sizeof files[f], "%s/%u.gx", scratch_dir, f);
        build(files[f], (attributes_of){attributes, f ? columns : none, N_ATTRIBUTES}, add_document,
              f * N_DOCS / N_FILES, (f + 1) * N_DOCS / N_FILES);
        paths[f] = files[f];
    }
    snprintf(folder, sizeof folder, "%s/folder", scratch_dir);
    assert_int_equal(gx_collect(folder, paths, N_FILES, NULL), GX_OK);
    delete_documents(folder);
    open_target(0, in_dir("columns.gx"), "bitmap columns", GX_JOIN_NEVER, true);
    open_target(1, in_dir("values.gx"), "values alone", GX_JOIN_NEVER, true);
    open_target(2, folder, "a collection", GX_JOIN_NEVER, false);
    open_target(3, folder, "joined parts", GX_JOIN_ALWAYS, false);
    return 0;
}

static int close_all(void **state)
{
    char command[400];
    for (uint32_t i = 0; i < 4; ++i) {
        gx_session_close(targets[i].s);
        gx_engine_close(targets[i].en);
        gx_index_close(targets[i].ix);
    }
    snprintf(command, sizeof command, "rm -r %s/folder", scratch_dir);
    return system(command) || remove_dir(state);
}

/* ---- what matches ---- */

typedef struct question {
    uint32_t words; /* bits */
    gx_op op;
    uint32_t k;
    int64_t low, high; /* of the filter on r; low > high: no filter */
    bool in[N_DOCS];   /* by docid: it matches */
    uint32_t n;
} question;

static bool is_allowed(const question *q, const doc *x, uint32_t docid, const uint64_t *mask)
{
    return (q->low > q->high || (x->number[R] >= q->low && x->number[R] <= q->high)) &&
           (!mask || (mask[docid / 64] >> docid % 64 & 1));
}

static void judge(question *q, const target *t, const uint64_t *mask)
{
    uint32_t n_all = 0;
    for (uint32_t d = 0; d < t->n; ++d)
        n_all += (docs[t->live[d]].words & q->words) == q->words && is_allowed(q, &docs[t->live[d]], d, mask);
    const bool all = q->op == GX_OP_AND || (q->op == GX_OP_AND_OR && n_all >= q->k);
    q->n = 0;
    for (uint32_t d = 0; d < t->n; ++d) {
        const doc *x = &docs[t->live[d]];
        q->in[d] = (all ? (x->words & q->words) == q->words : x->words & q->words) && is_allowed(q, x, d, mask);
        q->n += q->in[d];
    }
}

/* ---- counts ---- */

static const char *const asked[] = {"year:all",
                                    "price:all",
                                    "when:all",
                                    "cat:all",
                                    "tags:all",
                                    "open:all",
                                    "big:all",
                                    "year:bins=7",
                                    "price:bins=11",
                                    "when:bins=5",
                                    "big:bins=3",
                                    "r:bins=10",
                                    "r:all",
                                    "r:width=999",
                                    "year:width=8",
                                    "price:width=2.5",
                                    "price:width=0.1",
                                    "big:width=4e18",
                                    "when:all:by=month",
                                    "when:all:by=day",
                                    "year:bins=stored",
                                    "price:bins=stored",
                                    "when:bins=stored",
                                    "r:bins=stored",
                                    "years:all",
                                    "prices:all",
                                    "whens:all",
                                    "years:bins=7",
                                    "prices:bins=11",
                                    "whens:bins=5",
                                    "years:width=8",
                                    "prices:width=2.5",
                                    "whens:all:by=month",
                                    "whens:all:by=day",
                                    "years:bins=stored",
                                    "prices:bins=stored",
                                    "whens:bins=stored"};
enum { N_ASKED = sizeof asked / sizeof *asked };

static bool is_price_in(double price, const gx_facet_group *g)
{
    return price >= g->low && (g->text[g->len - 1] == '}' ? price < g->high : price <= g->high);
}

static bool is_value_in(uint32_t a, int64_t v, const gx_facet_group *g)
{
    return a == PRICES ? is_price_in((double)v / 4, g) : v >= g->first && v <= g->last;
}

/* Whether a document is in the group, by what the group says of itself. */
static bool is_in(const doc *x, uint32_t a, const gx_facet_group *g)
{
    char text[40];
    bool any = false;
    if (!x->has[a])
        return false;
    for (uint32_t i = 0; a >= YEARS && i < x->more[a - YEARS].n; ++i)
        any |= is_value_in(a, x->more[a - YEARS].v[i], g);
    if (a >= YEARS)
        return any;
    if (a == PRICE)
        return is_price_in(x->price, g);
    if (a == CAT)
        return sprintf(text, "c%02lld", (long long)x->number[CAT]) == (int)g->len && memcmp(text, g->text, g->len) == 0;
    if (a == TAGS)
        return g->len == 2 && g->text[0] == 't' && x->number[TAGS] >> (g->text[1] - '0') & 1;
    return x->number[a] >= g->first && x->number[a] <= g->last;
}

/* Each value of a match is in one group. */
static void check_several(const target *t, const question *q, uint32_t a, const gx_facet_answer *answer)
{
    for (uint32_t d = 0; d < t->n; d += 7) {
        const several *own = &docs[t->live[d]].more[a - YEARS];
        for (uint32_t i = 0; q->in[d] && i < own->n; ++i) {
            uint32_t n = 0;
            for (uint32_t g = 0; g < answer->n; ++g)
                n += is_value_in(a, own->v[i], &answer->groups[g]);
            assert_int_equal(n, 1);
        }
    }
}

/* The group's text selects its documents. */
static void compare_filter(const target *t, const question *q, const gx_facet_answer *a, const gx_facet_group *g)
{
    static uint64_t words[N_DOCS / 64 + 1];
    char text[200];
    gx_filter *f;
    gx_error err = {0};
    uint64_t n = 0;
    const int len = snprintf(text, sizeof text, "%s:%s", a->name, g->text);
    if (gx_filter_open(&f, t->ix, text, (size_t)len, NULL, &err) || gx_filter_evaluate(f, words, NULL, &err))
        fail_msg("%s: %s", text, err.text);
    gx_filter_close(f);
    for (uint32_t d = 0; d < t->n; ++d)
        n += q->in[d] && (words[d / 64] >> d % 64 & 1);
    if (n != g->count)
        fail_msg("%s: the filter selects %llu matches, not %llu", text, (unsigned long long)n,
                 (unsigned long long)g->count);
}

static void compare_answer(const target *t, const question *q, const char *text, const gx_facet_answer *a)
{
    uint32_t attribute = 0;
    uint64_t n_present = 0, sum = 0, n_tags = 0;
    const bool bins = strstr(text, "bins=") && !strstr(text, "stored");
    while (strcmp(attributes[attribute].name, a->name) != 0)
        ++attribute;
    for (uint32_t d = 0; d < t->n; ++d) {
        n_present += q->in[d] && docs[t->live[d]].has[attribute];
        n_tags += q->in[d] ? (uint64_t)__builtin_popcountll((uint64_t)docs[t->live[d]].number[TAGS]) : 0;
    }
    if (a->n_present != n_present || a->n_missing != q->n - n_present || a->n != a->n_groups)
        fail_msg("%s, %s: %llu of %u matches have a value, not %llu", t->what, text, (unsigned long long)n_present,
                 q->n, (unsigned long long)a->n_present);
    for (uint32_t i = 0; i < a->n; ++i) {
        const gx_facet_group *g = &a->groups[i];
        uint64_t n = 0;
        for (uint32_t d = 0; d < t->n; ++d)
            n += q->in[d] && is_in(&docs[t->live[d]], attribute, g);
        if (n != g->count || (n == 0 && !bins))
            fail_msg("%s, %s, %s: %llu, not %llu", t->what, text, g->text, (unsigned long long)g->count,
                     (unsigned long long)n);
        sum += g->count;
        if (a->n < 60 || below(20) == 0)
            compare_filter(t, q, a, g);
        if (i && !strstr(text, "all") && attribute != PRICE && attribute != PRICES)
            assert_true(a->groups[i - 1].last < g->first);
        if (i && strstr(text, "all"))
            assert_true(a->groups[i - 1].count >= g->count);
    }
    if (attribute >= YEARS)
        check_several(t, q, attribute, a);
    else
        assert_int_equal(sum, attribute == TAGS ? n_tags : n_present);
    if (bins && n_present) {
        uint32_t n = 0;
        assert_int_equal(sscanf(strstr(text, "bins="), "bins=%u", &n), 1);
        assert_true(a->n == n || (a->n && a->groups[a->n - 1].first - a->groups[0].first + 1 == a->n) ||
                    ((attribute == PRICE || attribute == PRICES) && a->n == 1));
        assert_true(a->groups[0].count > 0 && a->groups[a->n - 1].count > 0);
    }
}

/* The first three by count are those of all. */
static void compare_best(const target *t, const gx_query *query, const gx_query_options *opt, gx_facet facet,
                         const gx_facet_answer *all)
{
    gx_facets *best;
    gx_error err = {0};
    facet.n = 3;
    if (gx_count_facets(&best, t->s, query, opt, &facet, 1, &err))
        fail_msg("%s", err.text);
    const gx_facet_answer *a = gx_facets_get(best, 0);
    assert_int_equal(a->n, all->n < 3 ? all->n : 3);
    assert_int_equal(a->n_groups, all->n_groups);
    for (uint32_t i = 0; i < a->n; ++i) {
        assert_string_equal(a->groups[i].text, all->groups[i].text);
        assert_int_equal(a->groups[i].count, all->groups[i].count);
    }
    gx_facets_close(best);
}

static void ask(target *t, question *q, const gx_facet *facets, const uint32_t *numbers, uint32_t n)
{
    static uint64_t mask_words[N_DOCS / 64 + 1];
    char text[100] = "", filter_text[60];
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_filter *filter = NULL;
    gx_mask *mask = NULL;
    gx_facets *got = NULL;
    gx_error err = {0};
    for (uint32_t w = 0; w < N_WORDS; ++w)
        if (q->words >> w & 1)
            sprintf(text + strlen(text), "w%u ", w);
    gx_query query = GX_TEXT_QUERY(text, strlen(text));
    opt.op = q->op;
    opt.k = q->k;
    if (q->low <= q->high)
        assert_int_equal(
            gx_filter_open(&filter, t->ix, filter_text,
                           (size_t)sprintf(filter_text, "r:[%lld TO %lld]", (long long)q->low, (long long)q->high),
                           NULL, NULL),
            GX_OK);
    if (below(3) == 0) {
        for (uint32_t w = 0; w <= N_DOCS / 64; ++w)
            mask_words[w] = gx_random_next(&seed);
        assert_int_equal(gx_mask_open(&mask, t->en, mask_words, NULL), GX_OK);
    }
    query.filter = filter;
    opt.mask = mask;
    judge(q, t, mask ? mask_words : NULL);
    if (gx_count_facets(&got, t->s, &query, &opt, facets, n, &err))
        fail_msg("%s: %s", t->what, err.text);
    if (gx_facets_n_matches(got) != q->n)
        fail_msg("%s, '%s': %llu matches, not %u", t->what, text, (unsigned long long)gx_facets_n_matches(got), q->n);
    for (uint32_t i = 0; i < n; ++i)
        compare_answer(t, q, asked[numbers[i]], gx_facets_get(got, i));
    const uint32_t any = below(n);
    if (facets[any].order == GX_FACET_BY_COUNT)
        compare_best(t, &query, &opt, facets[any], gx_facets_get(got, any));
    gx_facets_close(got);
    gx_mask_close(mask);
    gx_filter_close(filter);
}

static void counts_are_those_of_a_look_at_each_document(void **state)
{
    static question q;
    const char *given = getenv("GX_TEST_CASES");
    const uint32_t n_cases = 300 * (given ? (uint32_t)strtoul(given, NULL, 10) : 1);
    gx_facet facets[N_ASKED];
    uint32_t numbers[N_ASKED];
    (void)state;
    for (uint32_t i = 0; i < n_cases; ++i) {
        q = (question){.op = (gx_op)below(3), .k = 1 + below(200), .low = 1};
        for (uint32_t w = 1 + below(4); w; --w)
            q.words |= 1u << below(N_WORDS);
        if (below(2)) {
            q.low = below(100000);
            q.high = q.low + below(100000);
        }
        for (uint32_t t = 0; t < 4; ++t) {
            uint32_t n = 0;
            for (uint32_t a = 0; a < N_ASKED; ++a) {
                if (t && strstr(asked[a], "stored"))
                    continue;
                numbers[n] = a;
                assert_int_equal(gx_facet_read(&facets[n++], asked[a], NULL), GX_OK);
            }
            ask(&targets[t], &q, facets, numbers, n);
        }
    }
}

static void boolean_queries_are_counted(void **state)
{
    static const char *const texts[] = {"+w1 -w2 (w5 OR w7)", "+w1 +r:[20000 TO 90000]", "w1 OR r:<30000",
                                        "r:[20000 TO 90000]"};
    gx_facet facet;
    (void)state;
    assert_int_equal(gx_facet_read(&facet, "cat:all", NULL), GX_OK);
    for (uint32_t i = 0; i < 4 * 4; ++i) {
        const target *t = &targets[i % 4];
        gx_query query = GX_TEXT_QUERY(texts[i / 4], strlen(texts[i / 4]));
        query.kind = GX_QUERY_BOOLEAN;
        static question q;
        gx_facets *got;
        q.n = 0;
        for (uint32_t d = 0; d < t->n; ++d) {
            const uint32_t w = docs[t->live[d]].words;
            const int64_t r = docs[t->live[d]].number[R];
            const bool holds[] = {(w >> 1 & 1) && !(w >> 2 & 1), /* the group only adds to the score */
                                  (w >> 1 & 1) && r >= 20000 && r <= 90000, (w >> 1 & 1) || r < 30000,
                                  r >= 20000 && r <= 90000};
            q.in[d] = holds[i / 4];
            q.n += q.in[d];
        }
        assert_int_equal(gx_count_facets(&got, t->s, &query, NULL, &facet, 1, NULL), GX_OK);
        assert_int_equal(gx_facets_n_matches(got), q.n);
        compare_answer(t, &q, "cat:all", gx_facets_get(got, 0));
        gx_facets_close(got);
    }
}

static void a_set_of_documents_is_counted(void **state)
{
    static question q;
    static uint64_t words[N_DOCS / 64 + 1];
    gx_facet facet;
    gx_facets *got;
    (void)state;
    assert_int_equal(gx_facet_read(&facet, "tags:all", NULL), GX_OK);
    memset(words, 0xff, sizeof words); /* bits behind the last document do not count */
    for (uint32_t i = 0; i < 4; ++i) {
        for (uint32_t d = 0; d < targets[i].n; ++d)
            q.in[d] = true;
        q.n = targets[i].n;
        assert_int_equal(gx_count_facets_of(&got, targets[i].ix, words, &facet, 1, NULL), GX_OK);
        assert_int_equal(gx_facets_n_matches(got), targets[i].n);
        compare_answer(&targets[i], &q, "tags:all", gx_facets_get(got, 0));
        gx_facets_close(got);
    }
}

static void what_matches_nothing_has_no_groups(void **state)
{
    gx_facet facets[2];
    gx_query query = GX_TEXT_QUERY("nowhere", 7);
    gx_facets *got;
    (void)state;
    assert_int_equal(gx_facet_read(&facets[0], "price:bins=5", NULL), GX_OK);
    assert_int_equal(gx_facet_read(&facets[1], "cat", NULL), GX_OK);
    for (uint32_t i = 0; i < 4; ++i) {
        assert_int_equal(gx_count_facets(&got, targets[i].s, &query, NULL, facets, 2, NULL), GX_OK);
        assert_int_equal(gx_facets_n_matches(got), 0);
        for (uint32_t f = 0; f < 2; ++f)
            assert_int_equal(gx_facets_get(got, f)->n_groups, 0);
        assert_null(gx_facets_get(got, 2));
        gx_facets_close(got);
    }
}

static void bad_facets_are_refused(void **state)
{
    static const char *const rows[][2] = {
        {"", "begins with no name"},
        {"yaer", "no attribute 'yaer'; did you mean year?"},
        {"cat:0", "'0' is neither a number of groups"},
        {"cat:", "'' is neither a number of groups"},
        {"cat:4294967296", "is neither a number of groups"},
        {"cat:bins=3", "cat is of type keyword and has no bins"},
        {"year:bins=0", "bins=0 is neither a number from 1 to 4096 nor 'stored'"},
        {"year:bins=4097", "bins=4097 is neither"},
        {"year:width=0", "the width is no number above 0"},
        {"year:width=nan", "the width is no number above 0"},
        {"year:width=0.5", "year is of type int and has whole numbers, and the width is none"},
        {"when:width=5", "has no ranges of a width"},
        {"year:by=month", "year is of type int and has no years, months and days"},
        {"when:by=week", "by=week is none of year, month, day"},
        {"cat:order=size", "is none of order=count, order=value"},
        {"year:sort=value", "'sort=value' is neither"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        gx_facet f;
        gx_error err = {0};
        gx_status st = gx_facet_read(&f, rows[i][0], &err);
        if (st == GX_OK)
            st = gx_facets_check(targets[0].ix, &f, 1, &err);
        if (st != GX_EUSAGE || !strstr(err.text, rows[i][1]))
            fail_msg("'%s': '%s'", rows[i][0], err.text);
    }
    gx_facet stored;
    gx_error err = {0};
    assert_int_equal(gx_facet_read(&stored, "year:bins=stored", NULL), GX_OK);
    assert_int_equal(gx_facets_check(targets[1].ix, &stored, 1, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "has no bitmap columns"));
    assert_int_equal(gx_facets_check(targets[2].ix, &stored, 1, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "bins of its own in each file"));
    stored.size = 8;
    assert_int_equal(gx_facets_check(targets[0].ix, &stored, 1, &err), GX_EUSAGE);
}

static void counting_is_cancelled(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; ++i)
        assert_counting_is_cancelled(targets[i].s);
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_a_look_at_each_document),
        cmocka_unit_test(boolean_queries_are_counted),
        cmocka_unit_test(a_set_of_documents_is_counted),
        cmocka_unit_test(what_matches_nothing_has_no_groups),
        cmocka_unit_test(bad_facets_are_refused),
        cmocka_unit_test(counting_is_cancelled),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
