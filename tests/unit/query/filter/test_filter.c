/* Filters: what an expression means, what is wrong with one, and random ones against an evaluator
 * that looks at one document after another; searches under filters against exhaustive ones.
 *
 * GX_TEST_SEED is the seed of all that is random, 16 without it. GX_TEST_CASES=N makes N times as many
 * cases: 3,000 filters, 2,560 queries with filters that are answered in ten ways, and 2,000 of an index with
 * a value of each attribute in every document; on a GPU 320 queries of the one index and 640 of the other.
 * GX_TEST_FILTER=PATTERN runs the tests with such names. */
#include <time.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "engine/status.h"
#include "index/attributes/attribute_order.h"
#include "query/engine/session.h"
#include "query/filter/mask.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

enum { N_DOCS = 1500 };

enum { YEAR, PRICE, WHEN, CAT, TAGS, OPEN, BIG, YEARS, PRICES, WHENS, OPENS, BIGS, N_ATTRIBUTES };
static const gx_attribute attributes[N_ATTRIBUTES] = {
    {"year", GX_ATTRIBUTE_INT},    {"price", GX_ATTRIBUTE_FLOAT},   {"when", GX_ATTRIBUTE_DATE},
    {"cat", GX_ATTRIBUTE_KEYWORD}, {"tags", GX_ATTRIBUTE_KEYWORDS}, {"open", GX_ATTRIBUTE_BOOL},
    {"big", GX_ATTRIBUTE_INT},     {"years", GX_ATTRIBUTE_INT},     {"prices", GX_ATTRIBUTE_FLOAT},
    {"whens", GX_ATTRIBUTE_DATE},  {"opens", GX_ATTRIBUTE_BOOL},    {"bigs", GX_ATTRIBUTE_INT}};

/* Values of YEARS and all behind it, in the order in which they are given; equal ones are possible. */
enum { MOST_VALUES = 4 };
typedef struct several {
    uint32_t n;
    int64_t v[MOST_VALUES]; /* of PRICES: four times the value */
} several;

typedef struct doc {
    bool has[N_ATTRIBUTES];
    int64_t year, big;
    double price;
    int64_t when;  /* seconds */
    uint32_t cat;  /* "c%02u" */
    uint32_t tags; /* bits: "t%u" */
    bool open;
    several more[N_ATTRIBUTES - YEARS];
} doc;

static doc docs[N_DOCS];
static gx_index *ix;
static gx_engine *en;
static gx_session *s;
static uint64_t seed = 16;

/* n, as often as GX_TEST_CASES says. */
static uint32_t times(uint32_t n)
{
    const char *given = getenv("GX_TEST_CASES");
    return n * (given ? (uint32_t)strtoul(given, NULL, 10) : 1);
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(gx_random_next(&seed) % n);
}

static int64_t seconds_of(int year, int month)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = 1};
    return timegm(&tm);
}

static void say_date(char text[32], int64_t second)
{
    struct tm tm;
    const time_t t = (time_t)second;
    gmtime_r(&t, &tm);
    snprintf(text, 32, "%04d-%02d-%02dT%02d:%02d:%02dZ", (tm.tm_year + 1900) % 10000, (tm.tm_mon + 1) % 100,
             tm.tm_mday % 100, tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100);
}

static int64_t draw_value(uint32_t attribute)
{
    switch (attribute) {
    case YEARS:
        return 1990 + below(30);
    case PRICES:
        return (int64_t)below(200) - 40;
    case WHENS:
        return seconds_of(2000 + (int)below(4), 1 + (int)below(12)) + below(28 * 86400);
    case OPENS:
        return below(2);
    default:
        return below(3) ? (int64_t)gx_random_next(&seed) : below(2) ? INT64_MIN : INT64_MAX;
    }
}

/* Draw a document's values of YEARS and all behind it, and add their texts to values[*n]. */
static void add_several(doc *x, gx_attribute_value *values, char (*texts)[32], uint32_t *n)
{
    for (uint32_t a = YEARS; a < N_ATTRIBUTES; ++a) {
        several *own = &x->more[a - YEARS];
        own->n = below(below(2) ? 2 : MOST_VALUES + 1);
        x->has[a] = own->n > 0;
        for (uint32_t i = 0; i < own->n; ++i, ++*n) {
            const int64_t v = own->v[i] = draw_value(a);
            char *const text = texts[*n];
            if (a == WHENS)
                say_date(text, v);
            else if (a == PRICES)
                snprintf(text, 32, "%g", (double)v / 4);
            else
                snprintf(text, 32, "%lld", (long long)v);
            values[*n] = (gx_attribute_value){a, text, strlen(text)};
        }
    }
}

static void add_document(gx_builder *b, uint32_t d)
{
    char texts[40][32], id[16], text[200] = "";
    gx_attribute_value values[40];
    uint32_t n = 0;
    doc *x = &docs[d];
    gx_error err = {0};
    *x = (doc){.year = 1990 + below(30),
               .big = below(3)   ? (int64_t)gx_random_next(&seed)
                      : below(2) ? INT64_MIN
                                 : INT64_MAX,
               .price = (double)below(200) / 4 - 10,
               .cat = below(50),
               .tags = gx_random_next(&seed) & gx_random_next(&seed) & 0xff,
               .open = below(2)};
    const int year = 2000 + (int)below(4), month = 1 + (int)below(12);
    x->when = seconds_of(year, month) + below(28 * 86400);
    for (uint32_t i = 0; i < YEARS; ++i)
        x->has[i] = below(5) != 0 || i == OPEN;
    x->has[TAGS] = x->tags != 0;
#define PUT(attribute, ...)                                                                                            \
    values[n] = (gx_attribute_value){attribute, texts[n], (size_t)snprintf(texts[n], sizeof texts[n], __VA_ARGS__)}, ++n
    if (x->has[YEAR])
        PUT(YEAR, "%lld", (long long)x->year);
    if (x->has[BIG])
        PUT(BIG, "%lld", (long long)x->big);
    if (x->has[PRICE])
        PUT(PRICE, "%g", x->price);
    if (x->has[WHEN]) {
        char when[32];
        say_date(when, x->when);
        PUT(WHEN, "%s", when);
    }
    if (x->has[CAT])
        PUT(CAT, "c%02u", x->cat);
    for (uint32_t t = 0; t < 8; ++t)
        if (x->tags >> t & 1)
            PUT(TAGS, "t%u", t);
    PUT(OPEN, "%s", x->open ? "true" : "false");
    add_several(x, values, texts, &n);
    for (uint32_t words = 3 + below(20); words; --words)
        sprintf(text + strlen(text), "w%u ", below(30) * below(2) + below(3));
    const gx_document document = {sizeof document, id,     NULL, text, (size_t)sprintf(id, "doc%u", d), 0,
                                  strlen(text),    values, n};
    if (gx_builder_add(b, &document, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static int open_all(void **state)
{
    gx_builder *b;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_engine_options cpu = GX_ENGINE_OPTIONS;
    if (make_dir(state) != 0)
        return -1;
    o.path = in_dir("index.gx");
    o.analyzer = "whitespace";
    o.attributes = attributes;
    o.n_attributes = N_ATTRIBUTES;
    if (gx_builder_open(&b, &o, NULL) != GX_OK)
        return -1;
    for (uint32_t d = 0; d < N_DOCS; ++d)
        add_document(b, d);
    const gx_status st = gx_builder_finish(b, NULL);
    gx_builder_abort(b);
    cpu.kind = GX_ENGINE_CPU;
    return st || gx_index_open(&ix, in_dir("index.gx"), NULL, NULL) || gx_engine_open(&en, ix, &cpu, NULL) ||
           gx_session_open(&s, en, NULL);
}

static int close_all(void **state)
{
    gx_session_close(s);
    gx_engine_close(en);
    gx_index_close(ix);
    return remove_dir(state);
}

/* ---- random filters ---- */

typedef struct text {
    char p[200000];
    size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void say(text *t, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    t->n += (size_t)vsnprintf(t->p + t->n, sizeof t->p - t->n, format, ap);
    va_end(ap);
    assert_true(t->n < sizeof t->p);
}

/* Whether a value meets a condition on a and b: a, <a, <=a, >a, >=a, [a, b], {a, b}, [a, b}, {a,
 * b], [a, *] or [*, b}. below_a: the value lies below all that a stands for; above_a: above all. */
static bool holds(uint32_t form, int below_a, int above_a, int below_b, int above_b)
{
    switch (form) {
    case 0:
        return !below_a && !above_a;
    case 1:
        return below_a;
    case 2:
        return !above_a;
    case 3:
        return above_a;
    case 4:
        return !below_a;
    case 5:
        return !below_a && !above_b;
    case 6:
        return above_a && below_b;
    case 7:
        return !below_a && below_b;
    case 8:
        return above_a && !above_b;
    case 9:
        return !below_a;
    default:
        return below_b;
    }
}

static void say_condition(text *t, const char *name, uint32_t form, const char *a, const char *b)
{
    static const char *const signs[] = {"", "<", "<=", ">", ">="};
    if (form < 5)
        say(t, "%s:%s%s", name, signs[form], a);
    else if (form < 9)
        say(t, "%s:%c%s TO %s %c", name, form == 6 || form == 8 ? '{' : '[', a, b, form == 6 || form == 7 ? '}' : ']');
    else
        say(t, "%s:[ %s  TO  %s%c", name, form == 9 ? a : "*", form == 9 ? "*" : b, form == 9 ? ']' : '}');
}

/* What an operand stands for: [first, last], or x of a float. */
typedef struct operand {
    char text[40];
    int64_t first, last;
    double x;
} operand;

static operand draw_operand(uint32_t attribute)
{
    operand o = {.text = ""};
    const int year = 1999 + (int)below(6), month = 1 + (int)below(12);
    switch (attribute) {
    case YEAR:
    case YEARS:
        o.first = o.last = 1985 + below(40);
        sprintf(o.text, "%lld", (long long)o.first);
        break;
    case BIG:
    case BIGS:
        o.first = o.last =
            below(2)   ? attribute == BIG ? docs[below(N_DOCS)].big : docs[below(N_DOCS)].more[BIGS - YEARS].v[0]
              : below(2) ? INT64_MIN
                       : INT64_MAX;
        sprintf(o.text, "\"%lld\"", (long long)o.first);
        break;
    case PRICE:
    case PRICES:
        o.x = (double)below(240) / 4 - 15;
        sprintf(o.text, "%g", o.x);
        break;
    case WHEN:
    case WHENS:
        if (below(2)) {
            o.first = seconds_of(year, 1);
            o.last = seconds_of(year + 1, 1) - 1;
            sprintf(o.text, "%d", year);
        } else {
            o.first = seconds_of(year, month);
            o.last = seconds_of(year, month + 1) - 1;
            sprintf(o.text, "%d-%02d", year, month);
        }
        break;
    case CAT:
        o.first = o.last = below(60);
        sprintf(o.text, below(2) ? "c%02u" : "\"c%02u\"", (unsigned)o.first);
        break;
    case TAGS:
        o.first = o.last = below(10);
        sprintf(o.text, "t%u", (unsigned)o.first);
        break;
    default:
        o.first = o.last = below(2);
        strcpy(o.text, o.first ? below(2) ? "true" : "1" : "false");
    }
    return o;
}

/* Whether one value meets the condition. quarters: they are four times the values. */
static bool any_meets(const several *x, bool quarters, uint32_t form, const operand *a, const operand *b)
{
    bool any = false;
    for (uint32_t i = 0; i < x->n; ++i) {
        const int64_t v = x->v[i];
        const double y = (double)v / 4;
        any |= quarters ? holds(form, y<a->x, y> a->x, y<b->x, y> b->x)
                        : holds(form, v<a->first, v> a->last, v<b->first, v> b->last);
    }
    return any;
}

static bool meets(const doc *x, uint32_t attribute, uint32_t form, const operand *a, const operand *b)
{
    const int64_t values[N_ATTRIBUTES] = {x->year, 0, x->when, x->cat, 0, x->open, x->big};
    if (attribute >= YEARS)
        return any_meets(&x->more[attribute - YEARS], attribute == PRICES, form, a, b);
    if (!x->has[attribute])
        return false;
    if (attribute == PRICE)
        return holds(form, x->price<a->x, x->price> a->x, x->price<b->x, x->price> b->x);
    for (uint32_t t = 0; attribute == TAGS && t < 8; ++t)
        if (x->tags >> t & 1 && holds(form, t<a->first, t> a->last, t<b->first, t> b->last))
            return true;
    const int64_t v = values[attribute];
    return attribute != TAGS && holds(form, v<a->first, v> a->last, v<b->first, v> b->last);
}

/* A filter, appended to t, and the documents that it selects. */
static void draw_filter(text *t, uint32_t depth, bool *in)
{
    const uint32_t kind = depth ? below(6) : 5;
    bool *other = calloc(N_DOCS, sizeof *other);
    assert_non_null(other);
    if (kind == 0) {
        say(t, "NOT ");
        if (below(2)) {
            say(t, "(");
            draw_filter(t, depth - 1, in);
            say(t, ")");
        } else {
            draw_filter(t, 0, in);
        }
        for (uint32_t d = 0; d < N_DOCS; ++d)
            in[d] = !in[d];
    } else if (kind < 5) {
        const bool conjunction = kind < 3;
        say(t, "( ");
        draw_filter(t, depth - 1, in);
        say(t, below(2) ? ")" : " )");
        for (uint32_t more = 1 + below(3); more; --more) {
            say(t, conjunction ? " AND (" : "  OR (");
            draw_filter(t, depth - 1, other);
            say(t, ")");
            for (uint32_t d = 0; d < N_DOCS; ++d)
                in[d] = conjunction ? in[d] && other[d] : in[d] || other[d];
        }
    } else if (below(8) == 0) {
        const uint32_t attribute = below(N_ATTRIBUTES), id = below(N_DOCS + 3);
        const bool has = below(2);
        if (has)
            say(t, "has:%s", attributes[attribute].name);
        else
            say(t, "id:doc%u", id);
        for (uint32_t d = 0; d < N_DOCS; ++d)
            in[d] = has ? docs[d].has[attribute] : d == id;
    } else {
        const uint32_t attribute = below(N_ATTRIBUTES), form = attribute == OPEN || attribute == OPENS ? 0 : below(11);
        const operand a = draw_operand(attribute), b = draw_operand(attribute);
        say_condition(t, attributes[attribute].name, form, a.text, b.text);
        for (uint32_t d = 0; d < N_DOCS; ++d)
            in[d] = meets(&docs[d], attribute, form, &a, &b);
    }
    free(other);
}

static gx_filter *open_filter(const char *p, size_t n)
{
    gx_filter *f;
    gx_error err = {0};
    if (gx_filter_open(&f, ix, p, n, NULL, &err) != GX_OK)
        fail_msg("'%.*s': %s", (int)n, p, err.text);
    return f;
}

/* The best k of a query under each of two masks, one answer found by bounds, the other by scoring
 * every posting. */
static void compare_searches(const gx_mask *a, const gx_mask *b)
{
    static uint32_t docids[2][N_DOCS];
    static double scores[2][N_DOCS];
    char query[60];
    uint32_t n[2];
    uint64_t matches[2];
    gx_error err = {0};
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.k = 1 + (below(2) ? below(20) : below(N_DOCS));
    opt.op = (gx_op)below(3);
    opt.count = true;
    sprintf(query, "w%u w%u w%u", below(4), below(30), below(30));
    for (int i = 0; i < 2; ++i) {
        const gx_results out = {sizeof out, docids[i], NULL, &n[i], &matches[i], scores[i]};
        opt.mask = i ? b : a;
        opt.prune = i == 0;
        if (gx_search(s, &(gx_query)GX_TEXT_QUERY(query, strlen(query)), 1, &opt, &out, &err) != GX_OK)
            fail_msg("%s", err.text);
    }
    assert_int_equal(n[0], n[1]);
    assert_int_equal(matches[0], matches[1]);
    assert_memory_equal(docids[0], docids[1], n[0] * sizeof docids[0][0]);
    assert_memory_equal(scores[0], scores[1], n[0] * sizeof scores[0][0]);
}

static void random_filters_select_what_a_look_at_each_document_does(void **state)
{
    enum { N_WORDS = (N_DOCS + 63) / 64 };
    static text t;
    static bool in[N_DOCS];
    const uint32_t n_cases = times(3000);
    uint64_t n_selected = 0;
    (void)state;
    for (uint32_t i = 0; i < n_cases; ++i) {
        uint64_t words[N_WORDS], want[N_WORDS] = {0}, again[N_WORDS];
        uint32_t n, n_want = 0;
        size_t len, len_again;
        t.n = 0;
        draw_filter(&t, below(4), in);
        for (uint32_t d = 0; d < N_DOCS; ++d) {
            want[d / 64] |= (uint64_t)in[d] << d % 64;
            n_want += in[d];
        }
        gx_filter *f = open_filter(t.p, t.n);
        memset(words, 0xa5, sizeof words);
        assert_int_equal(gx_filter_evaluate(f, words, &n, NULL), GX_OK);
        if (memcmp(words, want, sizeof want) != 0 || n != n_want)
            fail_msg("case %u: %.*s: %u documents, not %u", i, (int)t.n, t.p, n, n_want);
        n_selected += n;
        const char *canonical = gx_filter_text(f, &len);
        gx_filter *g = open_filter(canonical, len);
        const char *twice = gx_filter_text(g, &len_again);
        assert_int_equal(len, len_again);
        assert_memory_equal(canonical, twice, len);
        assert_int_equal(gx_filter_evaluate(g, again, NULL, NULL), GX_OK);
        assert_memory_equal(words, again, sizeof words);
        gx_filter_close(g);
        gx_filter_close(f);
        if (i % 4 == 0) {
            gx_mask *a, *b;
            assert_int_equal(gx_mask_open(&a, en, words, NULL), GX_OK);
            assert_int_equal(gx_mask_open(&b, en, want, NULL), GX_OK);
            compare_searches(a, b);
            gx_mask_close(a);
            gx_mask_close(b);
        }
    }
    assert_true(n_selected > (uint64_t)n_cases * N_DOCS / 10 && n_selected < (uint64_t)n_cases * N_DOCS * 9 / 10);
}

/* ---- a filter a query ---- */

enum { BATCH = 64, MOST_HITS = 60 };

typedef struct answers {
    uint32_t docids[BATCH * MOST_HITS], n[BATCH];
    double scores[BATCH * MOST_HITS];
    uint64_t matches[BATCH];
} answers;

static void search_batch(gx_session *session, const gx_query *queries, uint32_t n, const gx_query_options *opt,
                         answers *out, uint32_t at)
{
    gx_error err = {0};
    const gx_results r = {sizeof r,          out->docids + (size_t)at * opt->k, NULL, out->n + at,
                          out->matches + at, out->scores + (size_t)at * opt->k};
    if (gx_search(session, queries, n, opt, &r, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static void compare_answers(const answers *a, const answers *b, const gx_query_options *opt, const char *what,
                            uint32_t batch)
{
    for (uint32_t q = 0; q < BATCH; ++q) {
        const size_t at = (size_t)q * opt->k;
        if (a->n[q] != b->n[q] || a->matches[q] != b->matches[q] ||
            memcmp(a->docids + at, b->docids + at, a->n[q] * sizeof a->docids[0]) != 0 ||
            memcmp(a->scores + at, b->scores + at, a->n[q] * sizeof a->scores[0]) != 0)
            fail_msg("%s: batch %u, query %u: %u results of %llu, not %u of %llu", what, batch, q, b->n[q],
                     (unsigned long long)b->matches[q], a->n[q], (unsigned long long)a->matches[q]);
    }
}

/* An engine that reads masks alone, as a GPU does, and has room for a given number.
 * Its kernels are the CPU's. */
static struct {
    gx_executor executor;
    uint32_t n_open, most, greatest;
} masked;

static gx_status masked_open(void **mask, void *state, const uint32_t *words, gx_error *err)
{
    (void)state, (void)words;
    if (masked.n_open == masked.most)
        return gx_fail(err, GX_ECUDA, "there is no room for another mask");
    masked.greatest = ++masked.n_open > masked.greatest ? masked.n_open : masked.greatest;
    *mask = malloc(1);
    assert_non_null(*mask);
    return GX_OK;
}

static void masked_close(void *state, void *mask)
{
    (void)state;
    --masked.n_open;
    free(mask);
}

static gx_status masked_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work,
                            gx_error *err)
{
    gx_plan copies[BATCH];
    assert_true(n <= BATCH);
    for (uint32_t i = 0; i < n; ++i) {
        copies[i] = plans[i];
        assert_true(!plans[i].filter || (plans[i].mask && plans[i].mask->device));
        copies[i].filter = NULL;
    }
    return gx_executor_cpu.run(exec, copies, n, hits, work, err);
}

/* The engine answers the batch, however few masks it has room for. */
static void search_masked(const gx_query *queries, const gx_query_options *given, const uint64_t *common,
                          const answers *want, uint32_t batch)
{
    static answers got;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_query_options opt = *given;
    gx_engine *gpu;
    gx_session *session;
    gx_mask *mask = NULL;
    masked.executor = gx_executor_cpu;
    masked.executor.name = "gpu";
    masked.executor.mask_open = masked_open;
    masked.executor.mask_close = masked_close;
    masked.executor.run = masked_run;
    masked.most = batch % 3 == 0 ? 3 : batch % 3 == 1 ? 7 : UINT32_MAX;
    masked.greatest = 0;
    o.kind = GX_ENGINE_GPU;
    o.filter_memory = batch % 2 ? UINT64_C(5) * gx_mask_bytes(N_DOCS) : o.filter_memory;
    assert_int_equal(gx_engine_open_with(&gpu, ix, &o, &masked.executor, NULL), GX_OK);
    assert_int_equal(gx_session_open(&session, gpu, NULL), GX_OK);
    if (common)
        assert_int_equal(gx_mask_open(&mask, gpu, common, NULL), GX_OK);
    opt.mask = mask;
    search_batch(session, queries, BATCH, &opt, &got, 0);
    compare_answers(want, &got, &opt, "by masks", batch);
    assert_true(masked.greatest > 0 && (o.filter_memory > 1 << 20 || masked.greatest <= 6 + (common != NULL)));
    gx_mask_close(mask);
    gx_session_close(session);
    gx_engine_close(gpu);
    assert_int_equal(masked.n_open, 0);
}

/* A batch of queries with filters, and the answers of a search a query under a mask of the documents that a
 * look at each selects. */
typedef struct drawn_batch {
    gx_query queries[BATCH];
    gx_filter *filters[BATCH];
    char texts[BATCH][200];
    answers want;
} drawn_batch;

static void close_drawn(drawn_batch *b)
{
    for (uint32_t q = 0; q < BATCH; ++q)
        gx_filter_close(b->filters[q]);
}

/* Every search by the exhaustive CPU engine, of the documents that are in common_words too. */
static void draw_batch(drawn_batch *b, const gx_query_options *opt, const uint64_t *common_words)
{
    enum { N_WORDS = (N_DOCS + 63) / 64 };
    static text t;
    static bool in[N_DOCS];
    gx_query_options exhaustive = *opt;
    exhaustive.prune = false;
    for (uint32_t q = 0; q < BATCH; ++q) {
        uint64_t words[N_WORDS] = {0};
        gx_mask *mask;
        const uint32_t same = below(q + 1);
        b->filters[q] = NULL;
        sprintf(b->texts[q], "w%u w%u w%u", below(4), below(30), below(30));
        b->queries[q] = (gx_query)GX_TEXT_QUERY(b->texts[q], strlen(b->texts[q]));
        for (uint32_t d = 0; d < N_DOCS; ++d)
            in[d] = true;
        if (q % 8 == 1 && b->queries[same].filter) { /* one that another query has */
            b->queries[q].filter = b->queries[same].filter;
            assert_int_equal(gx_filter_evaluate(b->queries[q].filter, words, NULL, NULL), GX_OK);
        } else {
            t.n = 0;
            if (q % 8 != 2) {
                draw_filter(&t, below(4), in);
                b->queries[q].filter = b->filters[q] = open_filter(t.p, t.n);
            }
            for (uint32_t d = 0; d < N_DOCS; ++d)
                words[d / 64] |= (uint64_t)in[d] << d % 64;
        }
        for (uint32_t w = 0; w < N_WORDS; ++w)
            words[w] &= common_words[w];
        assert_int_equal(gx_mask_open(&mask, en, words, NULL), GX_OK);
        exhaustive.mask = mask;
        search_batch(s, &(gx_query)GX_TEXT_QUERY(b->texts[q], strlen(b->texts[q])), 1, &exhaustive, &b->want, q);
        gx_mask_close(mask);
    }
}

/* Queries with filters in one call, by each algorithm and by engines that keep masks and that keep
 * none, against a search a query under a mask. */
static void queries_have_filters_of_their_own(void **state)
{
    enum { N_WORDS = (N_DOCS + 63) / 64 };
    static drawn_batch b;
    static answers got;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_engine *forgetful;
    gx_session *other;
    (void)state;
    o.kind = GX_ENGINE_CPU;
    o.filter_memory = 0;
    o.result_cache = 1 << 20;
    assert_int_equal(gx_engine_open(&forgetful, ix, &o, NULL), GX_OK);
    assert_int_equal(gx_session_open(&other, forgetful, NULL), GX_OK);
    const uint32_t n_batches = times(40);
    for (uint32_t batch = 0; batch < n_batches; ++batch) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        gx_mask *common[2] = {NULL, NULL};
        uint64_t common_words[N_WORDS];
        opt.k = 1 + below(below(2) ? 10 : MOST_HITS);
        opt.op = (gx_op)below(3);
        opt.count = true;
        memset(common_words, 0xff, sizeof common_words);
        if (batch % 4 == 3) {
            for (uint32_t w = 0; w < N_WORDS; ++w)
                common_words[w] = gx_random_next(&seed);
            assert_int_equal(gx_mask_open(&common[0], en, common_words, NULL), GX_OK);
            assert_int_equal(gx_mask_open(&common[1], forgetful, common_words, NULL), GX_OK);
        }
        draw_batch(&b, &opt, common_words);
        opt.mask = common[0];
        for (int algorithm = 0; algorithm < GX_N_ALGORITHMS; ++algorithm) {
            opt.algorithm = (gx_algorithm)algorithm;
            search_batch(s, b.queries, BATCH, &opt, &got, 0);
            compare_answers(&b.want, &got, &opt, algorithm ? "another algorithm" : "auto", batch);
        }
        opt.algorithm = GX_ALGORITHM_AUTO;
        search_masked(b.queries, &opt, common[0] ? common_words : NULL, &b.want, batch);
        for (int again = 0; again < 3; ++again) { /* by then filters have masks */
            search_batch(s, b.queries, BATCH, &opt, &got, 0);
            compare_answers(&b.want, &got, &opt, "again", batch);
        }
        opt.prune = false;
        search_batch(s, b.queries, BATCH, &opt, &got, 0);
        compare_answers(&b.want, &got, &opt, "exhaustive", batch);
        opt.prune = true;
        opt.mask = common[1];
        for (int again = 0; again < 2; ++again) { /* then from the cache of results */
            search_batch(other, b.queries, BATCH, &opt, &got, 0);
            compare_answers(&b.want, &got, &opt, "without memory", batch);
        }
        close_drawn(&b);
        gx_mask_close(common[0]);
        gx_mask_close(common[1]);
    }
    assert_true(gx_session_stats(other)->cached > 0);
    const gx_search_stats *work = gx_session_stats(s);
    assert_true(work->driven > 0 && work->masked > 0 && work->tested > 0);
    gx_session_close(other);
    gx_engine_close(forgetful);
}

/* ---- on a GPU ---- */

typedef struct gpu_engine {
    gx_engine *en;
    gx_session *s;
} gpu_engine;

/* An engine on n GPUs. Skips the test where there are fewer. */
static gpu_engine open_gpus(const gx_index *index, uint32_t n, uint64_t device_memory)
{
    gpu_engine g;
    gx_device *all;
    uint32_t n_all;
    gx_error err = {0};
    gx_engine_options o = GX_ENGINE_OPTIONS;
    if (gx_devices(&all, &n_all, &err) != GX_OK)
        skip();
    for (uint32_t i = 0; i < n_all && o.n_devices < n; ++i) {
        if (all[i].usable)
            o.devices[o.n_devices++] = all[i].number;
    }
    free(all);
    if (o.n_devices < n)
        skip();
    o.kind = GX_ENGINE_GPU;
    o.device_memory = device_memory;
    if (gx_engine_open(&g.en, index, &o, &err) != GX_OK || gx_session_open(&g.s, g.en, &err) != GX_OK)
        fail_msg("%s", err.text);
    return g;
}

static void close_gpu(gpu_engine g)
{
    gx_session_close(g.s);
    gx_engine_close(g.en);
}

/* The batch at once, and in pieces of 1, of 3 and of 20, which other kernels search. */
static void compare_on_gpu(gpu_engine g, const drawn_batch *b, const gx_query_options *opt, uint32_t batch)
{
    static answers got;
    static const uint32_t pieces[] = {BATCH, 20, 3, 1};
    const uint32_t n = pieces[batch % 4];
    for (uint32_t i = 0; i < BATCH; i += n) {
        gx_error err = {0};
        const gx_results r = {sizeof r,        got.docids + (size_t)i * opt->k, NULL, got.n + i,
                              got.matches + i, got.scores + (size_t)i * opt->k};
        if (gx_search(g.s, b->queries + i, BATCH - i < n ? BATCH - i : n, opt, &r, &err) != GX_OK)
            fail_msg("%s", err.text);
    }
    compare_answers(&b->want, &got, opt, "on a GPU", batch);
}

static void queries_on_a_gpu_have_filters_of_their_own(void **state)
{
    enum { N_WORDS = (N_DOCS + 63) / 64 };
    static drawn_batch b;
    const gpu_engine g = open_gpus(ix, 1, 0);
    (void)state;
    for (uint32_t n = times(5), batch = 0; batch < n; ++batch) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        gx_mask *common = NULL;
        uint64_t common_words[N_WORDS];
        opt.k = 1 + below(below(2) ? 10 : MOST_HITS);
        opt.op = (gx_op)below(3);
        opt.count = true;
        memset(common_words, 0xff, sizeof common_words);
        if (batch % 4 == 3) {
            for (uint32_t w = 0; w < N_WORDS; ++w)
                common_words[w] = gx_random_next(&seed);
            assert_int_equal(gx_mask_open(&common, g.en, common_words, NULL), GX_OK);
        }
        draw_batch(&b, &opt, common_words);
        opt.mask = common;
        opt.algorithm = below(2) ? GX_ALGORITHM_AUTO : (gx_algorithm)below(GX_N_ALGORITHMS);
        opt.prune = below(8) != 0;
        compare_on_gpu(g, &b, &opt, below(4));
        close_drawn(&b);
        gx_mask_close(common);
    }
    const gx_search_stats *work = gx_session_stats(g.s);
    assert_true(work->masked > 0 && work->tested > 0);
    close_gpu(g);
}

/* A batch so large that it is split. */
static void two_gpus_test_filters(void **state)
{
    enum { TIMES = 5 };
    static drawn_batch b;
    static gx_query queries[TIMES * BATCH];
    static answers got[TIMES];
    static uint32_t docids[TIMES * BATCH * MOST_HITS], n_hits[TIMES * BATCH];
    static double scores[TIMES * BATCH * MOST_HITS];
    uint64_t all[(N_DOCS + 63) / 64];
    const gpu_engine g = open_gpus(ix, 2, 0);
    (void)state;
    memset(all, 0xff, sizeof all);
    for (uint32_t n = times(2), batch = 0; batch < n; ++batch) {
        gx_error err = {0};
        gx_query_options opt = GX_QUERY_OPTIONS;
        const gx_results r = {sizeof r, docids, NULL, n_hits, NULL, scores};
        opt.k = 1 + below(MOST_HITS);
        opt.op = (gx_op)below(3);
        draw_batch(&b, &opt, all);
        for (uint32_t q = 0; q < TIMES * BATCH; ++q)
            queries[q] = b.queries[q % BATCH];
        if (gx_search(g.s, queries, TIMES * BATCH, &opt, &r, &err) != GX_OK)
            fail_msg("%s", err.text);
        for (uint32_t i = 0; i < TIMES; ++i) {
            const size_t hits = (size_t)BATCH * opt.k;
            memcpy(got[i].docids, docids + i * hits, hits * sizeof *docids);
            memcpy(got[i].scores, scores + i * hits, hits * sizeof *scores);
            memcpy(got[i].n, n_hits + (size_t)i * BATCH, BATCH * sizeof *n_hits);
            memcpy(got[i].matches, b.want.matches, sizeof got[i].matches);
            compare_answers(&b.want, &got[i], &opt, "on two GPUs", batch);
        }
        close_drawn(&b);
    }
    assert_true(gx_session_stats(g.s)->tested > 0);
    close_gpu(g);
}

/* Without memory for columns, filters become masks. */
static void a_gpu_without_memory_for_columns_reads_masks(void **state)
{
    static drawn_batch b;
    uint64_t all[(N_DOCS + 63) / 64];
    const gpu_engine g = open_gpus(ix, 1, 6 << 20);
    gx_query_options opt = GX_QUERY_OPTIONS;
    (void)state;
    memset(all, 0xff, sizeof all);
    opt.count = true;
    draw_batch(&b, &opt, all);
    compare_on_gpu(g, &b, &opt, 0);
    close_drawn(&b);
    const gx_search_stats *work = gx_session_stats(g.s);
    assert_true(work->masked > 0 && work->tested == 0);
    close_gpu(g);
}

/* ---- columns in which every document has a value, among them dates that nearly rise ---- */

enum { N_MANY = 20000, DAYS = 4000 };
typedef struct many_values {
    uint32_t day, r, wide, kind;
} many_values;
static many_values many[N_MANY];

/* No document of kind ODD_KIND has the word ODD_WORD. */
enum { ODD_KIND = 4, ODD_WORD = 5 };

static void add_word(char *words, uint32_t word, uint32_t kind)
{
    sprintf(words + strlen(words), "w%u ", word == ODD_WORD && kind == ODD_KIND ? word + 1 : word);
}

static void add_many(gx_builder *b, uint32_t d)
{
    static const char *const names[] = {"day", "r", "wide", "kind"};
    char texts[4][32], id[16], words[300] = "";
    gx_attribute_value values[4];
    gx_error err = {0};
    many[d] =
        (many_values){(uint32_t)((uint64_t)d * DAYS / N_MANY) + below(60), below(1000), below(1u << 20), below(9)};
    const uint32_t numbers[] = {many[d].day, many[d].r, many[d].wide, many[d].kind};
    for (uint32_t i = 0; i < 4; ++i) {
        const int n = snprintf(texts[i], sizeof texts[i], names[i][0] == 'k' ? "k%u" : "%u", numbers[i]);
        values[i] = (gx_attribute_value){i, texts[i], (size_t)n};
    }
    for (uint32_t left = 3 + below(20); left; --left)
        add_word(words, below(2) ? below(3) : below(1 + below(300)), many[d].kind);
    const gx_document document = {sizeof document, id,     NULL, words, (size_t)sprintf(id, "doc%u", d), 0,
                                  strlen(words),   values, 4};
    if (gx_builder_add(b, &document, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static void open_many(gx_index **out)
{
    static const gx_attribute columns[] = {
        {"day", GX_ATTRIBUTE_INT}, {"r", GX_ATTRIBUTE_INT}, {"wide", GX_ATTRIBUTE_INT}, {"kind", GX_ATTRIBUTE_KEYWORD}};
    gx_builder *b;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    (void)remove(in_dir("many.gx")); /* another test's, with other values */
    o.path = in_dir("many.gx");
    o.analyzer = "whitespace";
    o.attributes = columns;
    o.n_attributes = 4;
    assert_int_equal(gx_builder_open(&b, &o, NULL), GX_OK);
    for (uint32_t d = 0; d < N_MANY; ++d)
        add_many(b, d);
    assert_int_equal(gx_builder_finish(b, NULL), GX_OK);
    gx_builder_abort(b);
    assert_int_equal(gx_index_open(out, in_dir("many.gx"), NULL, NULL), GX_OK);
}

/* One condition to the filter, and to `in` what it selects: of those of before too if `both`, else of either. */
static void draw_condition(char *filter, bool *in, bool first, bool both)
{
    static const uint32_t most[] = {DAYS + 60, 1000, 1u << 20, 9};
    const uint32_t column = below(2) ? 0 : below(4), span = most[column] / (1 + below(below(2) ? 4 : 300));
    const uint32_t low = below(most[column] + 5), high = low + below(span + 1);
    const bool negated = below(8) == 0;
    const char *const joint = first ? "" : both ? " AND " : " OR ", *const not = negated ? "NOT " : "";
    if (column == 3)
        sprintf(filter + strlen(filter), "%s%skind:k%u", joint, not, low);
    else
        sprintf(filter + strlen(filter), "%s%s%s:[%u TO %u]", joint, not, column ? column == 1 ? "r" : "wide" : "day",
                low, high);
    for (uint32_t d = 0; d < N_MANY; ++d) {
        const uint32_t values[] = {many[d].day, many[d].r, many[d].wide, many[d].kind}, x = values[column];
        const bool selected = (x >= low && x <= (column == 3 ? low : high)) != negated;
        in[d] = first ? selected : both ? in[d] && selected : in[d] || selected;
    }
}

static void filters_of_full_columns_bound_what_is_read(void **state)
{
    enum { N_WORDS = (N_MANY + 63) / 64 };
    static bool in[N_MANY];
    static uint64_t words[N_WORDS];
    static answers want, got;
    gx_index *index;
    gx_engine *engine;
    gx_session *session;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    (void)state;
    open_many(&index);
    o.kind = GX_ENGINE_CPU;
    o.filter_memory = 0;
    assert_int_equal(gx_engine_open(&engine, index, &o, NULL), GX_OK);
    assert_int_equal(gx_session_open(&session, engine, NULL), GX_OK);
    for (uint32_t n = times(2000), i = 0; i < n; ++i) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        gx_filter *f;
        gx_mask *mask;
        char filter[400] = "", query[100];
        const uint32_t conditions = 1 + below(below(2) ? 1 : 4);
        const bool both = below(4) != 0;
        for (uint32_t c = 0; c < conditions; ++c)
            draw_condition(filter, in, c == 0, both);
        assert_int_equal(gx_filter_open(&f, index, filter, strlen(filter), NULL, NULL), GX_OK);
        memset(words, 0, sizeof words);
        for (uint32_t d = 0; d < N_MANY; ++d)
            words[d / 64] |= (uint64_t)in[d] << d % 64;
        assert_int_equal(gx_mask_open(&mask, engine, words, NULL), GX_OK);
        sprintf(query, "w%u w%u w%u w%u", below(3), below(300), below(30), below(300));
        gx_query q = GX_TEXT_QUERY(query, strlen(query));
        opt.k = 1 + below(below(2) ? 10 : MOST_HITS);
        opt.op = (gx_op)below(3);
        opt.prune = false;
        opt.mask = mask;
        search_batch(session, &q, 1, &opt, &want, 0);
        opt.prune = true;
        opt.mask = NULL;
        q.filter = f;
        search_batch(session, &q, 1, &opt, &got, 0);
        if (want.n[0] != got.n[0] || memcmp(want.docids, got.docids, want.n[0] * sizeof want.docids[0]) != 0 ||
            memcmp(want.scores, got.scores, want.n[0] * sizeof want.scores[0]) != 0)
            fail_msg("case %u, '%s' under '%s': %u results, not %u", i, query, filter, got.n[0], want.n[0]);
        gx_filter_close(f);
        gx_mask_close(mask);
    }
    const gx_search_stats *work = gx_session_stats(session);
    assert_true(work->driven > 0 && work->tested > 0);
    assert_non_null(index->columns[0].order);
    assert_non_null(index->columns[0].order->zones);
    assert_null(index->columns[1].order->zones);
    gx_session_close(session);
    gx_engine_close(engine);
    gx_index_close(index);
}

/* A likely threshold that no document of the filter reaches: the search notices by its first postings, and
 * reads the list once more. */
static void a_misjudged_filter_is_noticed_early(void **state)
{
    static const char filter[] = "kind:k4", query[] = "w5";
    static answers got;
    gx_index *index;
    gx_engine *engine;
    gx_session *session;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_query q = GX_TEXT_QUERY(query, strlen(query));
    gx_filter *f;
    gx_plan plan;
    (void)state;
    open_many(&index);
    o.kind = GX_ENGINE_CPU;
    o.filter_memory = 0;
    assert_int_equal(gx_engine_open(&engine, index, &o, NULL), GX_OK);
    assert_int_equal(gx_session_open(&session, engine, NULL), GX_OK);
    assert_int_equal(gx_filter_open(&f, index, filter, strlen(filter), NULL, NULL), GX_OK);
    assert_int_equal(gx_plan_make(&plan, index, query, strlen(query), &opt, NULL), GX_OK);
    const uint32_t n_blocks = (plan.terms[0].df + 127) / 128;
    assert_true(plan.terms[0].df > 1000); /* else no threshold is likely */
    q.filter = f;
    const gx_search_stats before = *gx_session_stats(session);
    search_batch(session, &q, 1, &opt, &got, 0);
    const gx_search_stats *after = gx_session_stats(session);
    assert_int_equal(got.n[0], 0);
    assert_int_equal(after->tested - before.tested, 2);
    assert_in_range(after->blocks_decoded - before.blocks_decoded, n_blocks, n_blocks + 3);
    gx_plan_free(&plan);
    gx_filter_close(f);
    gx_session_close(session);
    gx_engine_close(engine);
    gx_index_close(index);
}

/* A batch of queries of 1 to 12 terms, each with a filter of its own. */
static void draw_many(drawn_batch *b, const gx_index *index, gx_engine *engine, gx_session *session,
                      const gx_query_options *opt)
{
    enum { N_WORDS = (N_MANY + 63) / 64 };
    static bool in[N_MANY];
    static uint64_t words[N_WORDS];
    gx_query_options exhaustive = *opt;
    exhaustive.prune = false;
    for (uint32_t q = 0; q < BATCH; ++q) {
        gx_mask *mask;
        char filter[400] = "", *query = b->texts[q];
        const uint32_t conditions = 1 + below(below(2) ? 1 : 4), n_terms = 1 + below(below(8) ? 5 : 24);
        const bool both = below(8) != 0;
        for (uint32_t c = 0; c < conditions; ++c)
            draw_condition(filter, in, c == 0, both);
        assert_int_equal(gx_filter_open(&b->filters[q], index, filter, strlen(filter), NULL, NULL), GX_OK);
        memset(words, 0, sizeof words);
        for (uint32_t d = 0; d < N_MANY; ++d)
            words[d / 64] |= (uint64_t)in[d] << d % 64;
        query[0] = 0;
        for (uint32_t t = 0; t < n_terms; ++t)
            sprintf(query + strlen(query), "w%u ", below(1 + below(300)));
        assert_int_equal(gx_mask_open(&mask, engine, words, NULL), GX_OK);
        b->queries[q] = (gx_query)GX_TEXT_QUERY(query, strlen(query));
        exhaustive.mask = mask;
        search_batch(session, &b->queries[q], 1, &exhaustive, &b->want, q);
        b->queries[q].filter = b->filters[q];
        gx_mask_close(mask);
    }
}

static void rare_filters_drive_the_search_on_a_gpu(void **state)
{
    static drawn_batch b;
    gx_index *index;
    gx_engine *engine;
    gx_session *session;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    (void)state;
    const gpu_engine first = open_gpus(ix, 1, 0); /* before an index is built for nothing */
    close_gpu(first);
    open_many(&index);
    const gpu_engine g = open_gpus(index, 1, 0);
    o.kind = GX_ENGINE_CPU;
    assert_int_equal(gx_engine_open(&engine, index, &o, NULL), GX_OK);
    assert_int_equal(gx_session_open(&session, engine, NULL), GX_OK);
    for (uint32_t n = times(10), batch = 0; batch < n; ++batch) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        opt.k = 1 + below(below(2) ? 10 : MOST_HITS);
        opt.op = (gx_op)below(3);
        opt.count = true;
        draw_many(&b, index, engine, session, &opt);
        opt.algorithm = below(4) ? GX_ALGORITHM_AUTO : GX_ALGORITHM_BLOCK_MAX;
        compare_on_gpu(g, &b, &opt, batch % 2 ? 0 : below(4));
        close_drawn(&b);
    }
    const gx_search_stats *work = gx_session_stats(g.s);
    assert_true(work->driven > 0 && work->tested > 0 && work->binned > 0);
    close_gpu(g);
    gx_session_close(session);
    gx_engine_close(engine);
    gx_index_close(index);
}

/* 20,000 documents of the same words, of which all have the greatest score that is possible. */
static void open_equals(gx_index **out, uint32_t *values)
{
    static const gx_attribute column = {"r", GX_ATTRIBUTE_INT};
    gx_builder *b;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    char words[400] = "";
    for (int i = 0; i < 20; ++i)
        strcat(words, "same other ");
    (void)remove(in_dir("equals.gx"));
    o.path = in_dir("equals.gx");
    o.analyzer = "whitespace";
    o.attributes = &column;
    o.n_attributes = 1;
    assert_int_equal(gx_builder_open(&b, &o, NULL), GX_OK);
    for (uint32_t d = 0; d < N_MANY; ++d) {
        char id[16], number[16];
        values[d] = below(1000);
        const gx_attribute_value value = {0, number, (size_t)sprintf(number, "%u", values[d])};
        const gx_document document = {sizeof document, id,     NULL, words, (size_t)sprintf(id, "doc%u", d), 0,
                                      strlen(words),   &value, 1};
        assert_int_equal(gx_builder_add(b, &document, NULL), GX_OK);
    }
    assert_int_equal(gx_builder_finish(b, NULL), GX_OK);
    gx_builder_abort(b);
    assert_int_equal(gx_index_open(out, in_dir("equals.gx"), NULL, NULL), GX_OK);
}

/* A first threshold above what any document can reach would leave all lists unread, and old answers. */
static void a_likely_threshold_on_a_gpu_is_one_that_can_be_reached(void **state)
{
    static uint32_t values[N_MANY];
    static drawn_batch b;
    static answers got;
    gx_index *index;
    gx_query_options opt = GX_QUERY_OPTIONS;
    (void)state;
    const gpu_engine first = open_gpus(ix, 1, 0);
    close_gpu(first);
    open_equals(&index, values);
    const gpu_engine g = open_gpus(index, 1, 0);
    for (uint32_t q = 0; q < BATCH; ++q) {
        const int n = sprintf(b.texts[q], "r:[%u TO %u]", 10 * q, 10 * q + 9);
        assert_int_equal(gx_filter_open(&b.filters[q], index, b.texts[q], (size_t)n, NULL, NULL), GX_OK);
        b.queries[q] = (gx_query)GX_TEXT_QUERY("same other", 10);
        b.queries[q].filter = b.filters[q];
    }
    search_batch(g.s, b.queries, BATCH, &opt, &got, 0);
    for (uint32_t q = 0; q < BATCH; ++q) {
        uint32_t d = 0;
        assert_int_equal(got.n[q], opt.k);
        for (uint32_t i = 0; i < opt.k; ++i, ++d) { /* of equal scores the first docids */
            while (values[d] / 10 != q)
                ++d;
            assert_int_equal(got.docids[q * opt.k + i], d);
        }
    }
    close_drawn(&b);
    close_gpu(g);
    gx_index_close(index);
}

static void a_filter_of_another_index_is_refused(void **state)
{
    gx_index *again;
    gx_filter *f;
    gx_error err = {0};
    uint32_t docid, n;
    const gx_results out = {sizeof out, &docid, NULL, &n, NULL, NULL};
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_query q = GX_TEXT_QUERY("w1", 2);
    (void)state;
    opt.k = 1;
    assert_int_equal(gx_index_open(&again, in_dir("index.gx"), NULL, NULL), GX_OK);
    assert_int_equal(gx_filter_open(&f, again, "has:year", 8, NULL, NULL), GX_OK);
    q.filter = f;
    assert_int_equal(gx_search(s, &q, 1, &opt, &out, &err), GX_EUSAGE);
    assert_string_equal(err.text, "the filter is of another index than the engine's");
    gx_filter_close(f);
    gx_index_close(again);
}

/* ---- by hand ---- */

static void one_way_of_writing(void **state)
{
    static const char *const rows[][2] = {
        {" year:2019 ", "year:\"2019\""},
        {"((year:2019))", "year:\"2019\""},
        {"year:[2015 TO *]", "year:[\"2015\" TO *]"},
        {"cat:\"a \\\"b\\\\\"", "cat:\"a \\\"b\\\\\""},
        {"cat:a\\ b", "cat:\"a b\""},
        {"cat:\"*\" OR cat:[\"*\" TO b]", "cat:\"*\" OR cat:[\"*\" TO \"b\"]"},
        {"has:year OR open:true AND NOT has:cat", "has:year OR open:\"true\" AND NOT has:cat"},
        {"(has:year OR has:cat) AND (has:when AND has:tags)", "(has:year OR has:cat) AND (has:when AND has:tags)"},
        {"NOT(has:year)", "NOT has:year"},
        {"price:<=-2.5", "price:<=\"-2.5\""},
        {"id:doc1", "id:\"doc1\""},
        {"when:2019-05-31T12:30:00Z", "when:\"2019-05-31T12:30:00Z\""}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        size_t len;
        gx_filter *f = open_filter(rows[i][0], strlen(rows[i][0]));
        const char *p = gx_filter_text(f, &len);
        if (len != strlen(rows[i][1]) || memcmp(p, rows[i][1], len) != 0)
            fail_msg("'%s': %.*s", rows[i][0], (int)len, p);
        gx_filter_close(f);
    }
}

static void errors_name_the_column(void **state)
{
    static const char *const rows[][2] = {
        {"", "column 1: a condition is expected"},
        {"yaer:2019", "column 1: the index has no attribute 'yaer'; did you mean year?"},
        {"has:prize", "column 5: the index has no attribute 'prize'; did you mean price?"},
        {"nothingnear:1", "column 1: the index has no attribute 'nothingnear'"},
        {"year", "column 5: a colon is expected behind 'year'"},
        {"year:", "column 6: a value is expected"},
        {"year:x", "column 6: year is of type int, and 'x' is no whole number"},
        {"year:1 price:2", "column 8: AND or OR is expected"},
        {"year:1 AND", "column 11: a condition is expected"},
        {"year:1 AND OR year:2", "column 14: a colon is expected behind 'OR'"},
        {"(year:1", "column 8: AND, OR or the ) to the ( at column 1 is expected"},
        {"year:1)", "column 7: a ) without a ("},
        {"year:[1 2]", "column 9: TO is expected"},
        {"year:[1 TO 2", "column 13: ] or } is expected"},
        {"year:[1 TO x]", "column 12: year is of type int, and 'x'"},
        {"cat:\"\xc3\xa4\xc3\xb6 ", "column 5: a quote is opened and never closed"},
        {"cat:\"\xc3\xa4\" year:2", "column 9: AND or OR is expected"},
        {"when:2019-02-30", "column 6: when is of type date, and '2019-02-30' is no date: there is no such day"},
        {"price:nan", "column 7: price is of type float, and 'nan' is no number"},
        {"open:>0", "column 6: open is true or false, and has no ranges"},
        {"id:@list", "column 4: files of ids cannot be read here"},
        {"year:99999999999999999999", "is outside the range of 64 bits"},
        {"NOT", "column 4: a condition is expected"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        gx_filter *f = (gx_filter *)1;
        gx_error err = {0};
        if (gx_filter_open(&f, ix, rows[i][0], strlen(rows[i][0]), NULL, &err) != GX_EUSAGE ||
            !strstr(err.text, rows[i][1]))
            fail_msg("'%s': '%s'", rows[i][0], err.text);
        assert_null(f);
    }
}

static void long_and_deep_expressions_end(void **state)
{
    static char p[1 << 20];
    static const char *const repeated[] = {"(", "NOT ", "year:1 OR ", "[", "\"", "\\", "year:[", "a", "(year:1 AND "};
    (void)state;
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; ++i) {
        gx_filter *f;
        gx_error err = {0};
        for (size_t at = 0, n = strlen(repeated[i]); at < sizeof p; ++at)
            p[at] = repeated[i][at % n];
        assert_int_equal(gx_filter_open(&f, ix, p, sizeof p, NULL, &err), GX_EUSAGE);
        assert_non_null(strstr(err.text, "column "));
        if (p[0] == '(' || p[0] == 'N')
            assert_non_null(strstr(err.text, "nest deeper than 64 levels"));
        if (i == 2)
            assert_non_null(strstr(err.text, "more than 16384 conditions"));
    }
    for (int depth = 64; depth <= 10000; depth += 9936) {
        gx_filter *f;
        gx_error err = {0};
        memset(p, '(', (size_t)depth);
        strcpy(p + depth, "year:1");
        memset(p + depth + 6, ')', (size_t)depth);
        assert_int_equal(gx_filter_open(&f, ix, p, 2 * (size_t)depth + 6, NULL, &err), depth == 64 ? GX_OK : GX_EUSAGE);
        gx_filter_close(f);
    }
}

static gx_status two_ids(void *user, const char *file, uint64_t *words, gx_error *err)
{
    (void)err;
    *(int *)user += 1;
    if (strcmp(file, "a list") != 0)
        return GX_ENOTFOUND;
    words[0] = 5;
    return GX_OK;
}

static void files_of_ids_are_the_callers(void **state)
{
    int calls = 0;
    uint64_t words[(N_DOCS + 63) / 64];
    uint32_t n;
    gx_filter *f;
    gx_error err = {0};
    gx_filter_options opt;
    gx_filter_options_init(&opt, sizeof opt);
    opt.read_ids = two_ids;
    opt.user = &calls;
    (void)state;
    assert_int_equal(gx_filter_open(&f, ix, "id:@\"a list\"", 12, &opt, &err), GX_OK);
    assert_int_equal(gx_filter_evaluate(f, words, &n, &err), GX_OK);
    assert_int_equal(n, 2);
    assert_int_equal(words[0], 5);
    gx_filter_close(f);
    assert_int_equal(gx_filter_open(&f, ix, "id:@other", 9, &opt, &err), GX_ENOTFOUND);
    assert_null(f);
    assert_int_equal(calls, 2);
    opt.size = 1;
    assert_int_equal(gx_filter_open(&f, ix, "has:year", 8, &opt, &err), GX_EUSAGE);
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    print_message("seed %llu\n", (unsigned long long)seed);
    cmocka_set_test_filter(getenv("GX_TEST_FILTER"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_way_of_writing),
        cmocka_unit_test(errors_name_the_column),
        cmocka_unit_test(long_and_deep_expressions_end),
        cmocka_unit_test(files_of_ids_are_the_callers),
        cmocka_unit_test(random_filters_select_what_a_look_at_each_document_does),
        cmocka_unit_test(queries_have_filters_of_their_own),
        cmocka_unit_test(queries_on_a_gpu_have_filters_of_their_own),
        cmocka_unit_test(two_gpus_test_filters),
        cmocka_unit_test(a_gpu_without_memory_for_columns_reads_masks),
        cmocka_unit_test(rare_filters_drive_the_search_on_a_gpu),
        cmocka_unit_test(a_likely_threshold_on_a_gpu_is_one_that_can_be_reached),
        cmocka_unit_test(filters_of_full_columns_bound_what_is_read),
        cmocka_unit_test(a_misjudged_filter_is_noticed_early),
        cmocka_unit_test(a_filter_of_another_index_is_refused),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
