/* test_changes.c: random sequences of add, delete, update, merge, commit and reload of a
 * collection. After commits it must equal an index that is built of the live documents: statistics,
 * terms, lists, documents, and the answers of every engine there is here, to the bit.
 *
 *   GX_TEST_CASES=2000 GX_TEST_SEED=5 build/tests/test_changes     the long form
 */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "index/read/collection.h"
#include "query/engine/engine.h"
#include "query/engine/session.h"
#include "tests/support/test.h"

enum { MOST_WORDS = 40, VOCABULARY = 90, N_QUERIES = 12, N_ENGINES = 8, MOST_TEXT = 512 };

typedef struct model_doc {
    uint64_t id, seed; /* of its text */
} model_doc;

/* What the collection should have, in order. */
typedef struct model {
    model_doc *docs;
    uint32_t n, max;
} model;

typedef struct sequence {
    uint64_t seed, random, next_id;
    char dir[64];
    model committed, now, backup; /* backup: of the folder DIR.backup, if has_backup */
    bool has_backup;
    gx_collection *writer;
    gx_index *ix; /* a commit that is open, NULL: none */
    gx_engine *engines[N_ENGINES];
    gx_session *sessions[N_ENGINES]; /* which follow the commits */
    uint32_t n_checks;
} sequence;

static const gx_attribute attributes[] = {{"year", GX_ATTRIBUTE_INT}, {"tag", GX_ATTRIBUTE_KEYWORDS}};
static uint64_t base_seed;

static uint32_t below(uint64_t *r, uint32_t n)
{
    return (uint32_t)((gx_random_next(r) >> 32) * n >> 32);
}

static void check(gx_status st, const gx_error *err, const sequence *s, const char *what)
{
    if (st != GX_OK)
        fail_msg("seed %llu: %s: %s", (unsigned long long)s->seed, what, err->text);
}

/* ---- documents ---- */

typedef struct made_doc {
    char id[24], title[16], text[MOST_WORDS * 5 + 1], year[12], tags[24];
    gx_attribute_value values[3];
    gx_document doc;
} made_doc;

static void make_doc(made_doc *m, const model_doc *d)
{
    uint64_t r = d->seed;
    const uint32_t n = below(&r, MOST_WORDS);
    char *p = m->text;
    sprintf(m->id, "d%llu", (unsigned long long)d->id);
    sprintf(m->title, "w%02u", below(&r, VOCABULARY));
    for (uint32_t i = 0; i < n; ++i) { /* some words in most documents, most in few */
        const uint32_t a = below(&r, VOCABULARY), b = below(&r, VOCABULARY);
        p += sprintf(p, "w%02u ", a * b / VOCABULARY);
    }
    *p = 0;
    sprintf(m->year, "%u", 1990 + below(&r, 20));
    sprintf(m->tags, "t%u", below(&r, 5));
    m->values[0] = (gx_attribute_value){0, m->year, below(&r, 3) ? strlen(m->year) : 0};
    m->values[1] = (gx_attribute_value){1, m->tags, strlen(m->tags)};
    m->values[2] = (gx_attribute_value){1, "all", 3};
    m->doc = (gx_document){sizeof m->doc,   m->id,         m->title,
                           m->text,         strlen(m->id), strlen(m->title),
                           strlen(m->text), m->values,     below(&r, 4) ? 3 : 2};
}

static void put_doc(model *m, model_doc d)
{
    if (m->n == m->max) {
        m->max = 2 * m->max + 64;
        assert_non_null(m->docs = realloc(m->docs, m->max * sizeof *m->docs));
    }
    m->docs[m->n++] = d;
}

static void take_doc(model *m, uint32_t i)
{
    memmove(m->docs + i, m->docs + i + 1, (m->n - i - 1) * sizeof *m->docs);
    --m->n;
}

static void copy_model(model *to, const model *from)
{
    to->n = 0;
    for (uint32_t i = 0; i < from->n; ++i)
        put_doc(to, from->docs[i]);
}

static void build(const sequence *s, const char *path, const model_doc *docs, uint32_t n)
{
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b;
    gx_error err = {0};
    o.path = path;
    o.force = true;
    o.store_text = true;
    o.memory = 1 << 20;
    o.analyzer = "simple";
    o.attributes = attributes;
    o.n_attributes = 2;
    check(gx_builder_open(&b, &o, &err), &err, s, "builder");
    for (uint32_t i = 0; i < n; ++i) {
        made_doc m;
        make_doc(&m, &docs[i]);
        check(gx_builder_add(b, &m.doc, &err), &err, s, "add to a builder");
    }
    check(gx_builder_finish(b, &err), &err, s, "finish");
    gx_builder_abort(b);
}

/* ---- what must be equal ---- */

static void same_documents(const sequence *s, const gx_index *a, const gx_index *b)
{
    char *x = NULL, *y = NULL;
    size_t x_cap = 0, y_cap = 0, x_len, y_len;
    gx_error err = {0};
    for (uint32_t d = 0; d < gx_index_n_docs(a); ++d) {
        const char *p = gx_index_doc_id(a, d, &x_len), *q = gx_index_doc_id(b, d, &y_len);
        if (x_len != y_len || memcmp(p, q, x_len) || gx_index_doc_len(a, d) != gx_index_doc_len(b, d) ||
            gx_index_find_doc(a, p, x_len) != d)
            fail_msg("seed %llu: document %u differs", (unsigned long long)s->seed, d);
        p = gx_index_doc_title(a, d, &x_len), q = gx_index_doc_title(b, d, &y_len);
        assert_true(x_len == y_len && memcmp(p, q, x_len) == 0);
        check(gx_index_doc_text(a, d, &x, &x_cap, &x_len, &err), &err, s, "text");
        check(gx_index_doc_text(b, d, &y, &y_cap, &y_len, &err), &err, s, "text");
        assert_true(x_len == y_len && memcmp(x, y, x_len) == 0);
    }
    free(x);
    free(y);
}

/* The postings of a term, one by one: blocks differ. */
static uint32_t read_list(const sequence *s, const gx_index *ix, uint32_t term, uint32_t *docids, uint32_t *tfs)
{
    gx_postings *p;
    gx_error err = {0};
    const uint32_t *d, *t;
    uint32_t n, total = 0;
    check(gx_postings_open(&p, ix, term, &err), &err, s, "postings");
    do {
        check(gx_postings_next(p, &d, &t, &n, &err), &err, s, "postings");
        memcpy(docids + total, d, n * sizeof *d);
        memcpy(tfs + total, t, n * sizeof *t);
        total += n;
    } while (n);
    gx_postings_close(p);
    return total;
}

static void same_terms(const sequence *s, const gx_index *a, const gx_index *b, uint32_t n_terms)
{
    const size_t n = gx_index_n_docs(a) + 1;
    uint32_t *x = malloc(4 * n * sizeof *x);
    assert_non_null(x);
    for (uint32_t t = 0; t < n_terms; ++t) {
        size_t a_len, b_len;
        const char *p = gx_index_term(a, t, &a_len), *q = gx_index_term(b, t, &b_len);
        assert_true(a_len == b_len && memcmp(p, q, a_len) == 0);
        assert_int_equal(gx_index_find_term(a, p, a_len), t);
        assert_int_equal(gx_index_cf(a, t), gx_index_cf(b, t));
        const uint32_t df = read_list(s, a, t, x, x + n), other = read_list(s, b, t, x + 2 * n, x + 3 * n);
        if (df != other || df != gx_index_df(a, t) || df != gx_index_df(b, t) || memcmp(x, x + 2 * n, df * sizeof *x) ||
            memcmp(x + n, x + 3 * n, df * sizeof *x))
            fail_msg("seed %llu: the list of %.*s differs", (unsigned long long)s->seed, (int)a_len, p);
    }
    free(x);
}

static void same_statistics(const sequence *s, const gx_index *a, const gx_index *b)
{
    gx_index_stats x = {.size = sizeof x}, y = {.size = sizeof y};
    gx_index_get_stats(a, &x);
    gx_index_get_stats(b, &y);
    if (x.n_docs != y.n_docs || x.n_terms != y.n_terms || x.n_postings != y.n_postings || x.n_tokens != y.n_tokens ||
        x.avgdl != y.avgdl || x.min_doc_len != y.min_doc_len || x.max_doc_len != y.max_doc_len)
        fail_msg("seed %llu: %u documents, %u terms, %llu postings, %llu tokens; a fresh build has %u, %u, %llu, %llu",
                 (unsigned long long)s->seed, x.n_docs, x.n_terms, (unsigned long long)x.n_postings,
                 (unsigned long long)x.n_tokens, y.n_docs, y.n_terms, (unsigned long long)y.n_postings,
                 (unsigned long long)y.n_tokens);
    same_terms(s, a, b, x.n_terms);
    for (uint32_t i = 0; i < 2; ++i) {
        gx_attribute_info p = {.size = sizeof p}, q = {.size = sizeof q};
        assert_int_equal(gx_index_get_attribute(a, i, &p), GX_OK);
        assert_int_equal(gx_index_get_attribute(b, i, &q), GX_OK);
        assert_true(p.n_present == q.n_present && p.n_values == q.n_values && p.n_distinct == q.n_distinct &&
                    p.min_int == q.min_int && p.max_int == q.max_int);
    }
}

/* A query of any kind. */
static void make_query(uint64_t *r, char text[MOST_TEXT], gx_weighted_term terms[4], char words[4][8], gx_query *q)
{
    const uint32_t n = 1 + below(r, 4), kind = below(r, 4);
    char *p = text;
    *p = 0;
    for (uint32_t i = 0; i < n; ++i) {
        static const char *const signs[] = {"", "", "+", "-"};
        sprintf(words[i], "w%02u", below(r, below(r, 2) ? VOCABULARY + 3 : 12));
        p += sprintf(p, "%s%s ", kind == 1 && i ? signs[below(r, 4)] : "", words[i]);
        terms[i] =
            (gx_weighted_term){words[i], strlen(words[i]), ldexpf((float)(1 + below(r, 1000)), (int)below(r, 12) - 8)};
    }
    for (uint32_t more = kind == 0 && below(r, 6) == 0 ? 20 + below(r, 80) : 0; more; --more) /* of many terms, too */
        p += sprintf(p, "w%02u ", below(r, VOCABULARY + 3));
    *q = (gx_query){.size = sizeof *q, .text = text, .len = strlen(text), .terms = terms, .n_terms = n};
    q->kind = kind == 1 ? GX_QUERY_BOOLEAN : kind == 2 ? GX_QUERY_TERMS : GX_QUERY_TEXT;
}

/* filter: as text, NULL: none. */
static void answer(const sequence *s, gx_engine *en, const gx_query *query, gx_query_options o, const uint64_t *words,
                   const char *filter, gx_results *out)
{
    gx_session *session = NULL, *own = NULL;
    gx_mask *mask = NULL;
    gx_filter *f = NULL;
    gx_error err = {0};
    gx_query two[2] = {*query, *query}; /* one with a filter beside one without */
    uint32_t n = filter ? 2 : 1, n_hits[2];
    const uint32_t max = gx_index_n_docs(gx_engine_index(en)) + o.k;
    if (filter)
        check(gx_filter_open(&f, gx_engine_index(en), filter, strlen(filter), NULL, &err), &err, s, filter);
    two[0].filter = f;
    for (int e = 0; e < N_ENGINES && !session; ++e)
        session = en == s->engines[e] ? s->sessions[e] : NULL;
    if (!session)
        check(gx_session_open(&own, en, &err), &err, s, "session");
    session = own ? own : session;
    if (words)
        check(gx_mask_open(&mask, en, words, &err), &err, s, "mask");
    o.mask = mask;
    uint32_t *docids = calloc(2 * max, sizeof *docids);
    double *scores = calloc(2 * max, sizeof *scores);
    uint64_t matches[2] = {0};
    assert_true(docids && scores);
    gx_results both = {sizeof both, docids, NULL, n_hits, matches, scores};
    for (int times = 0; times < 2; ++times) /* filters are kept */
        check(gx_search(session, two, n, &o, &both, &err), &err, s, "search");
    memcpy(out->docids, docids, n_hits[0] * sizeof *docids);
    memcpy(out->exact_scores, scores, n_hits[0] * sizeof *scores);
    *out->n_hits = n_hits[0];
    *out->n_matches = matches[0];
    free(docids);
    free(scores);
    gx_filter_close(f);
    gx_mask_close(mask);
    gx_session_close(own);
}

/* The words of a filter, or of a random set of documents; NULL: all. */
static const char *const filters[] = {"year:[1995 TO 2001] OR tag:t3", "NOT has:year AND tag:all",
                                      "id:d7 OR year:1999"};

static uint64_t *choose_documents(const sequence *s, uint64_t r, const gx_index *ix)
{
    const uint32_t n = gx_index_n_docs(ix), kind = below(&r, 4);
    gx_filter *f;
    gx_error err = {0};
    if (n == 0 || kind < 2)
        return NULL;
    uint64_t *words = calloc(n / 64 + 1, sizeof *words);
    assert_non_null(words);
    const char *text = filters[below(&r, 3)];
    if (kind == 2) {
        check(gx_filter_open(&f, ix, text, strlen(text), NULL, &err), &err, s, text);
        check(gx_filter_evaluate(f, words, NULL, &err), &err, s, text);
        gx_filter_close(f);
    }
    for (uint32_t d = 0; kind == 3 && d < n; ++d)
        words[d / 64] |= (uint64_t)(below(&r, 4) != 0) << d % 64;
    return words;
}

static void same_answers(const sequence *s, const gx_index *a, const gx_index *b, gx_engine *x, gx_engine *y,
                         uint64_t r)
{
    static const uint32_t ks[] = {1, 3, 10, 1000};
    const uint32_t n_docs = gx_index_n_docs(a);
    for (uint32_t i = 0; i < N_QUERIES; ++i) {
        gx_query_options o = GX_QUERY_OPTIONS;
        gx_weighted_term terms[4];
        char text[MOST_TEXT], words[4][8];
        gx_query q;
        make_query(&r, text, terms, words, &q);
        o.op = q.kind == GX_QUERY_BOOLEAN ? GX_OP_OR : (gx_op)below(&r, 3);
        o.k = ks[below(&r, 4)];
        o.preset = (gx_preset)below(&r, GX_N_PRESETS);
        o.prune = below(&r, 4) != 0;
        o.count = below(&r, 2);
        if (q.kind == GX_QUERY_BOOLEAN && text[0] == '-')
            continue;
        const uint32_t max = o.k < n_docs + 1 ? n_docs + 1 : o.k;
        uint32_t *docids = calloc(2 * max, sizeof *docids), n[2] = {0};
        double *scores = calloc(2 * max, sizeof *scores);
        uint64_t matches[2] = {0};
        assert_true(docids && scores);
        gx_results one = {sizeof one, docids, NULL, &n[0], &matches[0], scores};
        gx_results two = {sizeof two, docids + max, NULL, &n[1], &matches[1], scores + max};
        const uint64_t choice = gx_random_next(&r);
        uint64_t *of_a = choose_documents(s, choice, a), *of_b = choose_documents(s, choice, b);
        if (of_a)
            assert_memory_equal(of_a, of_b, (n_docs + 63) / 64 * 8);
        const char *filter = below(&r, 3) ? NULL : filters[below(&r, 3)];
        answer(s, x, &q, o, of_a, filter, &one);
        answer(s, y, &q, o, of_b, filter, &two);
        if (n[0] != n[1] || memcmp(docids, docids + max, n[0] * sizeof *docids) ||
            memcmp(scores, scores + max, n[0] * sizeof *scores) || (o.count && matches[0] != matches[1]))
            fail_msg(
                "seed %llu, %s: query '%s' (kind %d, op %d, k %u, scorer %s, prune %d, mask %d) has %u results and "
                "%llu matches, and %u and %llu in a fresh build, or others",
                (unsigned long long)s->seed, gx_engine_describe(x), text, (int)q.kind, (int)o.op, o.k,
                gx_preset_name(o.preset), o.prune, of_a != NULL, n[0], (unsigned long long)matches[0], n[1],
                (unsigned long long)matches[1]);
        if (n[0] && q.kind == GX_QUERY_TEXT) {
            gx_explanation e;
            gx_error err = {0};
            q.filter = NULL;
            check(gx_explain(&e, a, &q, &o, docids[0], &err), &err, s, "explain");
            assert_true(ldexp(e.sum, -e.exponent) == scores[0]);
            gx_explanation_free(&e);
        }
        free(of_a);
        free(of_b);
        free(docids);
        free(scores);
    }
}

/* ---- the reader ---- */

static void close_reader(sequence *s)
{
    for (int e = 0; e < N_ENGINES; ++e) {
        gx_session_close(s->sessions[e]);
        gx_engine_close(s->engines[e]);
        s->sessions[e] = NULL;
        s->engines[e] = NULL;
    }
    gx_index_close(s->ix);
    s->ix = NULL;
}

/* The engine's session goes on with the one that is open now: a new one, which is opened first or last. */
static void follow(sequence *s, int e, bool first)
{
    gx_session *old = s->sessions[e];
    gx_error err = {0};
    s->sessions[e] = NULL;
    if (!first)
        gx_session_close(old);
    if (s->engines[e])
        check(gx_session_open(&s->sessions[e], s->engines[e], &err), &err, s, "session");
    if (first)
        gx_session_close(old);
}

/* An engine of a later commit can be opened on an earlier one again, whose answers stay what they were. */
static void go_back(const sequence *s, gx_engine *later, const gx_index *ix, gx_engine *en, uint64_t r)
{
    gx_engine *back;
    gx_error err = {0};
    check(gx_engine_reopen(&back, later, ix, &err), &err, s, "an earlier commit");
    same_answers(s, ix, ix, back, en, r);
    gx_engine_close(back);
}

/* The last commit, parts and engines shared with what is open. */
static void reload(sequence *s)
{
    static const gx_engine_options options[N_ENGINES] = {
        {.kind = GX_ENGINE_CPU},
        {.kind = GX_ENGINE_CPU, .join = GX_JOIN_ALWAYS},
        {.kind = GX_ENGINE_CPU, .join = GX_JOIN_NEVER},
        {.kind = GX_ENGINE_GPU},
        {.kind = GX_ENGINE_GPU, .join = GX_JOIN_NEVER},
        {.kind = GX_ENGINE_GPU, .n_devices = 2}, /* this and what follows: where there are two GPUs */
        {.kind = GX_ENGINE_GPU, .n_devices = 2, .spread = GX_SPREAD_PARTS},
        {.kind = GX_ENGINE_GPU, .join = GX_JOIN_NEVER, .n_devices = 2, .spread = GX_SPREAD_PARTS},
    };
    gx_error err = {0};
    gx_index *ix = NULL;
    if (s->ix && below(&s->random, 4) == 0)
        close_reader(s);
    if (s->ix)
        check(gx_index_reopen(&ix, s->ix, NULL, &err), &err, s, "reopen");
    else
        check(gx_index_open(&ix, s->dir, NULL, &err), &err, s, "open");
    if (!ix)
        return;
    for (int e = 0; e < N_ENGINES; ++e) {
        gx_engine_options o = GX_ENGINE_OPTIONS;
        gx_engine *old = s->engines[e];
        o.kind = options[e].kind;
        o.join = options[e].join;
        o.n_devices = options[e].n_devices;
        o.devices[1] = 1;
        o.spread = options[e].spread;
        o.filter_memory = e % 2 ? 1 << 10 : o.filter_memory;
        if (old)
            check(gx_engine_reopen(&s->engines[e], old, ix, &err), &err, s, "engine");
        else if (gx_engine_open(&s->engines[e], ix, &o, &err) != GX_OK && o.kind == GX_ENGINE_CPU)
            fail_msg("seed %llu: %s", (unsigned long long)s->seed, err.text);
        if (e == 0 && old) /* small parts were joined when it was opened again */
            assert_int_equal(gx_engine_n_searched(s->engines[e]), 1);
        if (old && below(&s->random, 4) == 0)
            go_back(s, s->engines[e], s->ix, old, gx_random_next(&s->random));
        follow(s, e, below(&s->random, 2));
        gx_engine_close(old);
    }
    gx_index_close(s->ix);
    s->ix = ix;
}

static void compare(sequence *s)
{
    char path[96];
    gx_error err = {0};
    gx_index *fresh;
    gx_engine *en;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    o.kind = GX_ENGINE_CPU;
    reload(s);
    sprintf(path, "%s.fresh.gx", s->dir);
    build(s, path, s->committed.docs, s->committed.n);
    check(gx_index_open(&fresh, path, NULL, &err), &err, s, "fresh");
    check(gx_engine_open(&en, fresh, &o, &err), &err, s, "engine");
    same_statistics(s, s->ix, fresh);
    same_documents(s, s->ix, fresh);
    const uint64_t r = gx_random_next(&s->random);
    for (int e = 0; e < N_ENGINES; ++e)
        if (s->engines[e])
            same_answers(s, s->ix, fresh, s->engines[e], en, r);
    gx_engine_close(en);
    gx_index_close(fresh);
    unlink(path);
    ++s->n_checks;
}

/* ---- the writer ---- */

static void open_writer(sequence *s)
{
    gx_error err = {0};
    gx_collection_options o = GX_COLLECTION_OPTIONS;
    o.memory = 1 << 20;
    check(gx_collection_open(&s->writer, s->dir, &o, &err), &err, s, "writer");
}

static void add_some(sequence *s, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const model_doc d = {s->next_id++, gx_random_next(&s->random)};
        gx_error err = {0};
        made_doc m;
        make_doc(&m, &d);
        check(gx_collection_add(s->writer, &m.doc, &err), &err, s, "add");
        put_doc(&s->now, d);
        if (below(&s->random, 10) == 0) /* an id that is taken is refused, and does no harm */
            assert_int_equal(gx_collection_add(s->writer, &m.doc, &err), GX_EINPUT);
    }
}

static void delete_some(sequence *s, uint32_t n)
{
    for (uint32_t i = 0; i < n && s->now.n; ++i) {
        const uint32_t at = below(&s->random, s->now.n);
        char id[24];
        bool found;
        gx_error err = {0};
        sprintf(id, "d%llu", (unsigned long long)s->now.docs[at].id);
        check(gx_collection_delete(s->writer, id, strlen(id), &found, &err), &err, s, "delete");
        assert_true(found);
        take_doc(&s->now, at);
        check(gx_collection_delete(s->writer, id, strlen(id), &found, &err), &err, s, "delete");
        assert_false(found);
    }
}

static void update_some(sequence *s, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const bool is_new = s->now.n == 0 || below(&s->random, 6) == 0;
        const uint32_t at = is_new ? 0 : below(&s->random, s->now.n);
        const model_doc d = {is_new ? s->next_id++ : s->now.docs[at].id, gx_random_next(&s->random)};
        gx_error err = {0};
        made_doc m;
        bool replaced;
        make_doc(&m, &d);
        check(gx_collection_update(s->writer, &m.doc, &replaced, &err), &err, s, "update");
        assert_int_equal(replaced, !is_new);
        if (!is_new)
            take_doc(&s->now, at);
        put_doc(&s->now, d);
    }
}

static void commit(sequence *s)
{
    gx_error err = {0};
    check(gx_collection_commit(s->writer, &err), &err, s, "commit");
    copy_model(&s->committed, &s->now);
}

static void remove_collection(const char *dir)
{
    char command[128];
    sprintf(command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

/* Copy the last commit, or put the copy back: then commits with the numbers of those that are lost follow, and readers
 * that have these open see the difference. */
static void back_up_or_restore(sequence *s)
{
    char backup[96];
    const char *dir = s->dir;
    gx_error err = {0};
    sprintf(backup, "%s.backup", s->dir);
    if (!s->has_backup) {
        check(gx_collect(backup, &dir, 1, &err), &err, s, "back up");
        copy_model(&s->backup, &s->committed);
        s->has_backup = true;
        return;
    }
    gx_collection_close(s->writer);
    remove_collection(s->dir);
    assert_int_equal(rename(backup, s->dir), 0);
    s->has_backup = false;
    open_writer(s);
    copy_model(&s->committed, &s->backup);
    copy_model(&s->now, &s->backup);
}

static void step(sequence *s)
{
    gx_error err = {0};
    const uint32_t kind = below(&s->random, 23), some = 1 + below(&s->random, below(&s->random, 3) ? 12 : 90);
    if (kind < 7) {
        add_some(s, some);
    } else if (kind < 11) {
        delete_some(s, below(&s->random, 12) ? some : s->now.n);
    } else if (kind < 14) {
        update_some(s, some);
    } else if (kind < 15) { /* what is not committed goes */
        gx_collection_close(s->writer);
        open_writer(s);
        copy_model(&s->now, &s->committed);
    } else if (kind < 17) {
        check(gx_collection_merge(s->writer, kind == 15 ? GX_MERGE_ALL : GX_MERGE_TIERS, &err), &err, s, "merge");
        copy_model(&s->committed, &s->now);
    } else if (kind < 20) {
        back_up_or_restore(s);
    } else {
        compare(s); /* sees the last commit, not what is pending */
        return;
    }
    if (below(&s->random, 3))
        commit(s);
}

/* The parts with which a collection begins. */
static void begin(sequence *s)
{
    const uint32_t n_parts = 1 + below(&s->random, 3);
    char paths[3][96];
    const char *files[3];
    gx_error err = {0};
    for (uint32_t i = 0; i < n_parts; ++i) {
        const uint32_t first = s->now.n, n = below(&s->random, 200);
        for (uint32_t j = 0; j < n; ++j)
            put_doc(&s->now, (model_doc){s->next_id++, gx_random_next(&s->random)});
        sprintf(paths[i], "%s.part.%u.gx", s->dir, i);
        files[i] = paths[i];
        build(s, paths[i], s->now.docs + first, n);
    }
    check(gx_collect(s->dir, files, n_parts, &err), &err, s, "collect");
    for (uint32_t i = 0; i < n_parts; ++i)
        unlink(paths[i]);
    copy_model(&s->committed, &s->now);
}

static void a_collection_equals_a_fresh_build_of_its_documents(void **state)
{
    (void)state;
    const char *cases = getenv("GX_TEST_CASES"), *seed = getenv("GX_TEST_SEED");
    const uint32_t n = cases ? (uint32_t)atoi(cases) : 60;
    uint64_t n_checks = 0;
    const char *gpus = "";
    base_seed = seed ? strtoull(seed, NULL, 10) : 1;
    for (uint32_t i = 0; i < n; ++i) {
        sequence s = {.seed = base_seed + i, .random = base_seed + i};
        sprintf(s.dir, "%s/gpuidx-changes-%d", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", getpid());
        begin(&s);
        open_writer(&s);
        for (uint32_t j = 4 + below(&s.random, 24); j; --j)
            step(&s);
        commit(&s);
        compare(&s);
        gpus = s.engines[N_ENGINES - 1] ? ", one GPU and two" : s.engines[3] ? " and GPU" : gpus;
        n_checks += s.n_checks;
        close_reader(&s);
        gx_collection_close(s.writer);
        free(s.now.docs);
        free(s.committed.docs);
        free(s.backup.docs);
        remove_collection(s.dir);
        strcat(s.dir, ".backup");
        remove_collection(s.dir);
    }
    print_message("%u sequences from seed %llu, %llu comparisons, engines: CPU%s\n", n, (unsigned long long)base_seed,
                  (unsigned long long)n_checks, gpus);
}

static void a_second_writer_is_refused(void **state)
{
    (void)state;
    sequence s = {.seed = 1, .random = 1};
    gx_collection *other;
    gx_error err = {0};
    sprintf(s.dir, "/tmp/gpuidx-changes-%d", getpid());
    begin(&s);
    open_writer(&s);
    assert_int_equal(gx_collection_open(&other, s.dir, NULL, &err), GX_EIO);
    assert_non_null(strstr(err.text, "another process"));
    gx_collection_close(s.writer);
    open_writer(&s);
    gx_collection_close(s.writer);
    assert_int_equal(gx_collection_open(&other, "/tmp", NULL, &err), GX_ENOTFOUND);
    free(s.now.docs);
    free(s.committed.docs);
    remove_collection(s.dir);
}

static void end(sequence *s)
{
    free(s->now.docs);
    free(s->committed.docs);
    remove_collection(s->dir);
}

/* A collection whose first two parts have documents. */
static gx_index *begin_with_parts(sequence *s)
{
    for (uint64_t seed = 1;; ++seed) {
        gx_index *ix;
        gx_error err = {0};
        *s = (sequence){.seed = seed, .random = seed};
        sprintf(s->dir, "/tmp/gpuidx-changes-%d", getpid());
        begin(s);
        check(gx_index_open(&ix, s->dir, NULL, &err), &err, s, "open");
        if (ix->parts->n > 1 && ix->parts->parts[0].n_live && ix->parts->parts[1].n_live)
            return ix;
        gx_index_close(ix);
        end(s);
    }
}

/* The last docids that there can be: as if a part before had nearly all documents. */
static void docids_go_up_to_the_last_number(void **state)
{
    (void)state;
    static const gx_engine_options options[] = {{.kind = GX_ENGINE_CPU}, {.kind = GX_ENGINE_GPU}};
    sequence s;
    gx_error err = {0};
    gx_index *ix = begin_with_parts(&s);
    const uint32_t first = (uint32_t)ix->parts->parts[1].base, shift = UINT32_MAX - 1 - ix->n_docs;
    for (int e = 0; e < 2; ++e) {
        gx_engine_options o = GX_ENGINE_OPTIONS;
        gx_engine *en;
        gx_session *session;
        uint32_t docids[2][1000], n[2], n_late = 0;
        double scores[2][1000];
        const gx_query q = GX_TEXT_QUERY("w00 w01 w02", 11);
        gx_query_options options_of_query = GX_QUERY_OPTIONS;
        options_of_query.k = 1000;
        o.kind = options[e].kind;
        o.join = GX_JOIN_NEVER;
        if (gx_engine_open(&en, ix, &o, &err) != GX_OK)
            continue;
        check(gx_session_open(&session, en, &err), &err, &s, "session");
        for (int shifted = 0; shifted < 2; ++shifted) {
            const gx_results out = {sizeof out, docids[shifted], NULL, &n[shifted], NULL, scores[shifted]};
            for (uint32_t i = 1; i < ix->parts->n; ++i)
                ix->parts->parts[i].base += shifted ? shift : 0;
            check(gx_search(session, &q, 1, &options_of_query, &out, &err), &err, &s, "search");
        }
        for (uint32_t i = 0; i < n[0]; ++i) {
            const bool late = docids[0][i] >= first;
            assert_int_equal(docids[1][i], docids[0][i] + (late ? shift : 0));
            assert_true(scores[0][i] == scores[1][i]);
            n_late += late;
        }
        assert_int_equal(n[0], n[1]);
        assert_true(n_late > 0 && n_late < n[0]);
        size_t len;
        char last[24];
        ix->n_docs += shift;
        const char *id = gx_index_doc_id(ix, UINT32_MAX - 2, &len); /* the last one's */
        ix->n_docs -= shift;
        assert_int_equal(len, sprintf(last, "d%llu", (unsigned long long)s.now.docs[s.now.n - 1].id));
        assert_memory_equal(id, last, len);
        for (uint32_t i = 1; i < ix->parts->n; ++i)
            ix->parts->parts[i].base -= shift;
        gx_session_close(session);
        gx_engine_close(en);
    }
    gx_index_close(ix);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(docids_go_up_to_the_last_number),
        cmocka_unit_test(a_collection_equals_a_fresh_build_of_its_documents),
        cmocka_unit_test(a_second_writer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
