/* Searches of a collection whose engine makes lists without the documents deleted (cpu/lists.h). Engines are opened
 * after some commits with deletes, and again on later ones, with any budget and codec; several sessions use the lists
 * first at the same time. Every answer must be what an engine finds that scores every posting of the index's lists. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "query/engine/engine.h"
#include "query/executors/cpu.h"
#include "tests/support/gen.h"
#include "tests/support/indexes.h"

enum { N_DOCS = 6000, N_WORDS = 60, N_QUERIES = 100, N_ROUNDS = 4, N_THREADS = 3, MOST_TERMS = 24 };

static uint64_t n_live_lists; /* made in all cases */

static void good_of(gx_status st, const gx_error *err, uint64_t seed)
{
    if (st != GX_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err->text);
}

/* What a thread searches: the same queries of an engine and of one that scores every posting. */
typedef struct searcher {
    pthread_t thread;
    uint64_t seed, random;
    gx_engine *en, *all;
    char wrong[512]; /* "": nothing */
} searcher;

typedef struct collection_case {
    uint64_t seed;
    gen_rng r;
    uint32_t n_parts;
    const char *codec;
    char path[300], part_paths[3][300];
    bool deleted[N_DOCS];
    gx_index *ix[N_ROUNDS + 1];
    gx_engine *en[N_ROUNDS + 1];
} collection_case;

/* ---- documents ---- */

/* Word w is in about 1 / (1 + w^2 / 30) of all documents, in some of them many times. */
static size_t draw_text(gen_rng *r, char *text)
{
    char *p = text;
    *p = 0;
    for (uint32_t w = 0; w < N_WORDS; ++w) {
        uint32_t tf = 1 + (gen_below(r, 6) ? 0 : gen_below(r, gen_below(r, 30) ? 8 : 90));
        if (gen_below(r, 1 + w * w / 30))
            continue;
        while (tf--)
            p += sprintf(p, "w%u ", w);
    }
    return (size_t)(p - text);
}

static void build_part(collection_case *c, uint32_t p)
{
    static char text[1 << 16];
    static const gx_attribute year = {"year", GX_ATTRIBUTE_INT};
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b;
    gx_error err;
    o.path = c->part_paths[p];
    o.analyzer = "whitespace";
    o.docid_codec = c->codec;
    o.attributes = &year;
    o.n_attributes = 1;
    good_of(gx_builder_open(&b, &o, &err), &err, c->seed);
    for (uint32_t i = p; i < N_DOCS; i += c->n_parts) {
        char id[16], value[16];
        const gx_attribute_value of_year = {0, value, (size_t)sprintf(value, "%u", i % 1000)};
        const gx_document d = {.size = sizeof d,
                               .id = id,
                               .id_len = (size_t)sprintf(id, "d%u", i),
                               .text = text,
                               .text_len = draw_text(&c->r, text),
                               .values = &of_year,
                               .n_values = 1};
        good_of(gx_builder_add(b, &d, &err), &err, c->seed);
    }
    good_of(gx_builder_finish(b, &err), &err, c->seed);
    gx_builder_abort(b);
}

/* Delete one document in some, from 2 to 200, and in some commits a range of them besides. */
static void delete_some(collection_case *c)
{
    static const uint32_t shares[] = {2, 5, 10, 10, 30, 200};
    const uint32_t share = shares[gen_below(&c->r, 6)], first = gen_below(&c->r, N_DOCS),
                   n = gen_below(&c->r, 2) ? gen_below(&c->r, N_DOCS / 3) : 0;
    gx_collection *writer;
    gx_error err;
    good_of(gx_collection_open(&writer, c->path, NULL, &err), &err, c->seed);
    for (uint32_t i = 0; i < N_DOCS; ++i) {
        char id[16];
        bool found;
        const bool gone = gen_below(&c->r, share) == 0 || i - first < n;
        if (!gone || c->deleted[i] || (i < 40 && c->n_parts > 1)) /* each part has some */
            continue;
        good_of(gx_collection_delete(writer, id, (size_t)sprintf(id, "d%u", i), &found, &err), &err, c->seed);
        c->deleted[i] = true;
    }
    good_of(gx_collection_commit(writer, &err), &err, c->seed);
    gx_collection_close(writer);
}

/* ---- searches ---- */

typedef struct found {
    uint32_t n, docids[N_DOCS];
    uint64_t n_matches;
    double scores[N_DOCS];
} found;

/* What a query asks for; words and filter are NULL where it asks for none. */
typedef struct question {
    char text[512];
    gx_query_options o;
    const char *filter;
    uint64_t *words;
} question;

static gx_status ask(const question *q, gx_session *s, gx_engine *en, const gx_query_options *o, found *f,
                     gx_error *err)
{
    gx_query query = {.size = sizeof query, .text = q->text, .len = strlen(q->text)};
    gx_query_options own = *o;
    const gx_results out = {sizeof out, f->docids, NULL, &f->n, &f->n_matches, f->scores};
    gx_filter *filter = NULL;
    gx_mask *mask = NULL;
    gx_status st = GX_OK;
    f->n_matches = 0;
    if (q->filter)
        st = gx_filter_open(&filter, gx_engine_index(en), q->filter, strlen(q->filter), NULL, err);
    if (st == GX_OK && q->words)
        st = gx_mask_open(&mask, en, q->words, err);
    query.filter = filter;
    own.mask = mask;
    if (st == GX_OK)
        st = gx_search(s, &query, 1, &own, &out, err);
    gx_filter_close(filter);
    gx_mask_close(mask);
    return st;
}

static void draw_question(gen_rng *r, question *q, uint64_t *words)
{
    static const uint32_t ks[] = {1, 3, 10, 100, 1000, N_DOCS};
    static const gx_algorithm algorithms[] = {GX_ALGORITHM_AUTO, GX_ALGORITHM_AUTO, GX_ALGORITHM_BLOCK_MAX,
                                              GX_ALGORITHM_PMF};
    static const char *const filters[] = {"year:[100 TO 900]", "year:7 OR year:8", "NOT year:[200 TO 250]"};
    char *p = q->text;
    for (uint32_t n = gen_below(r, 4) ? 1 + gen_below(r, 5) : 1 + gen_below(r, MOST_TERMS); n; --n)
        p += sprintf(p, "w%u ", gen_below(r, N_WORDS + 1));
    q->o = (gx_query_options)GX_QUERY_OPTIONS;
    q->o.op = (gx_op)gen_below(r, 3);
    q->o.k = ks[gen_below(r, 6)];
    q->o.preset = gen_below(r, 3) ? GX_BM25 : GX_IMPACT;
    q->o.algorithm = algorithms[gen_below(r, 4)];
    q->o.count = gen_below(r, 2);
    q->filter = gen_below(r, 4) ? NULL : filters[gen_below(r, 3)];
    q->words = gen_below(r, 5) ? NULL : words;
    const uint32_t share = 1 + gen_below(r, 8);
    for (uint32_t d = 0; q->words && d < N_DOCS; ++d) {
        words[d / 64] &= ~(UINT64_C(1) << d % 64);
        words[d / 64] |= (uint64_t)(gen_below(r, share) == 0) << d % 64;
    }
}

static void *search(void *user)
{
    searcher *s = user;
    gen_rng r = {s->random};
    found *found_by = malloc(2 * sizeof *found_by);
    uint64_t words[N_DOCS / 64 + 1] = {0};
    question q;
    gx_session *one = NULL, *every = NULL;
    gx_error err = {0};
    gx_status st = found_by ? gx_session_open(&one, s->en, &err) : GX_ENOMEM;
    if (st == GX_OK)
        st = gx_session_open(&every, s->all, &err);
    for (uint32_t i = 0; i < N_QUERIES && st == GX_OK && !s->wrong[0]; ++i) {
        draw_question(&r, &q, words);
        gx_query_options exhaustive = q.o;
        exhaustive.prune = false;
        exhaustive.algorithm = GX_ALGORITHM_AUTO;
        st = ask(&q, one, s->en, &q.o, &found_by[0], &err);
        if (st == GX_OK)
            st = ask(&q, every, s->all, &exhaustive, &found_by[1], &err);
        const uint32_t n = found_by[0].n, m = found_by[1].n;
        if (st == GX_OK &&
            (n != m || memcmp(found_by[0].docids, found_by[1].docids, n * sizeof *found_by->docids) != 0 ||
             memcmp(found_by[0].scores, found_by[1].scores, n * sizeof *found_by->scores) != 0 ||
             (q.o.count && found_by[0].n_matches != found_by[1].n_matches)))
            snprintf(s->wrong, sizeof s->wrong,
                     "query %u '%.200s', operator %d, k %u, scorer %s, algorithm %d, filter %s, mask %d: %u results of "
                     "%u, or others",
                     i, q.text, (int)q.o.op, q.o.k, gx_preset_name(q.o.preset), (int)q.o.algorithm,
                     q.filter ? q.filter : "none", q.words != NULL, n, m);
    }
    if (st != GX_OK && !s->wrong[0])
        snprintf(s->wrong, sizeof s->wrong, "%.500s", err.text);
    gx_session_close(one);
    gx_session_close(every);
    free(found_by);
    return NULL;
}

/* Threads search at the same time, in which lists may be used for the first time. */
static void compare(collection_case *c, uint32_t round)
{
    searcher s[N_THREADS];
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_engine *all;
    gx_error err;
    o.kind = GX_ENGINE_CPU;
    o.join = GX_JOIN_NEVER;
    good_of(gx_engine_open(&all, c->ix[round], &o, &err), &err, c->seed);
    for (uint32_t i = 0; i < N_THREADS; ++i) {
        s[i] = (searcher){.seed = c->seed, .random = gen_u64(&c->r), .en = c->en[round], .all = all};
        assert_int_equal(pthread_create(&s[i].thread, NULL, search, &s[i]), 0);
    }
    for (uint32_t i = 0; i < N_THREADS; ++i)
        pthread_join(s[i].thread, NULL);
    for (uint32_t i = 0; i < N_THREADS; ++i) {
        if (s[i].wrong[0])
            fail_msg("seed %llu, commit %u: %s", (unsigned long long)c->seed, round, s[i].wrong);
    }
    gx_engine_close(all);
}

static uint32_t count_live_lists(gx_engine *en)
{
    uint32_t n = 0;
    const gx_engine *part;
    for (uint32_t i = 0; (part = gx_engine_of_part(en, i)); ++i)
        n += gx_cpu_state_n_live_lists(part->state);
    return n;
}

/* ---- a case ---- */

static void make_collection(collection_case *c)
{
    static const char *const codecs[] = {"gpubp128", "gpubp256", "gpuvbyte128", "rice", "ef128", "auto"};
    const char *names[3];
    char name[32];
    gx_error err;
    c->codec = codecs[gen_below(&c->r, 2) ? 0 : gen_below(&c->r, 6)];
    c->n_parts = 1 + gen_below(&c->r, 3);
    for (uint32_t p = 0; p < c->n_parts; ++p) {
        sprintf(name, "%llu.%u.gx", (unsigned long long)c->seed, p);
        names[p] = strcpy(c->part_paths[p], in_dir(name));
        build_part(c, p);
    }
    sprintf(name, "%llu", (unsigned long long)c->seed);
    strcpy(c->path, in_dir(name));
    good_of(gx_collect(c->path, names, c->n_parts, &err), &err, c->seed);
}

/* The engine is opened on one commit, and again on those that follow. */
static void run_case(uint64_t seed)
{
    static const uint64_t memory[] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 2 << 20, 200000, 0};
    collection_case c = {.seed = seed, .r = {seed}};
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_error err;
    print_message("seed %llu\n", (unsigned long long)seed);
    make_collection(&c);
    const uint32_t first = gen_below(&c.r, N_ROUNDS);
    o.kind = GX_ENGINE_CPU;
    o.join = GX_JOIN_NEVER;
    o.map_memory = memory[gen_below(&c.r, 6)];
    good_of(gx_index_open(&c.ix[0], c.path, NULL, &err), &err, seed);
    for (uint32_t i = 0; i <= N_ROUNDS; ++i) {
        if (i) {
            delete_some(&c);
            good_of(gx_index_reopen(&c.ix[i], c.ix[i - 1], NULL, &err), &err, seed);
            assert_non_null(c.ix[i]);
        }
        if (i > first)
            good_of(gx_engine_reopen(&c.en[i], c.en[i - 1], c.ix[i], &err), &err, seed);
        else if (i == first)
            good_of(gx_engine_open(&c.en[i], c.ix[i], &o, &err), &err, seed);
        if (i >= first && gen_below(&c.r, 2))
            compare(&c, i);
    }
    for (uint32_t i = first; i <= N_ROUNDS; ++i)
        compare(&c, i);
    n_live_lists += count_live_lists(c.en[first]);
    if (first == 0 || o.map_memory == 0)
        assert_int_equal(count_live_lists(c.en[first]), 0);
    for (uint32_t i = 0; i <= N_ROUNDS; ++i) {
        gx_engine_close(c.en[i]);
        gx_index_close(c.ix[i]);
    }
    remove_collection(c.path);
}

static void lists_without_deleted_documents_lose_no_result(void **state)
{
    (void)state;
    const char *seed = getenv("GX_TEST_SEED"), *cases = getenv("GX_TEST_CASES");
    const uint64_t n = cases ? strtoull(cases, NULL, 0) : 16;
    n_live_lists = 0;
    for (uint64_t i = 0; i < n; ++i)
        run_case((seed ? strtoull(seed, NULL, 0) : 1) + i);
    print_message("%llu live lists\n", (unsigned long long)n_live_lists);
    if (n >= 16)
        assert_true(n_live_lists > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_without_deleted_documents_lose_no_result)};
    return cmocka_run_group_tests_name("live lists", tests, make_dir, remove_dir);
}
