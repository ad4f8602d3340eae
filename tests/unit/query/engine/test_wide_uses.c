/* What else is done with a collection of more than 2^32 - 2 documents: facets, services, replays, feedback,
 * approximate answers, processes that share the search, and what is refused. As in test_wide.c.
 *
 *   GX_TEST_CASES=200 GX_TEST_SEED=5 build/tests/test_wide_uses     the long form
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>

#include "query/engine/session.h"
#include "query/exec/wide_hits.h"
#include "tests/support/scratch.h"
#include "tests/support/wide_world.h"

static uint64_t base_seed;
static uint32_t n_cases;

static gx_engine *open_cpu(const world *w, gx_engine_options o)
{
    gx_error err = {0};
    gx_engine *en;
    o.kind = GX_ENGINE_CPU;
    world_check(w, gx_engine_open(&en, w->ix, &o, &err), &err);
    return en;
}

/* ---- facets, filters as bits ---- */

static void check_years(const gx_facets *f, const world_answer *matches)
{
    const gx_facet_answer *a = gx_facets_get(f, 0);
    uint64_t n = 0, missing = 0;
    for (uint64_t i = 0; i < matches->n_matches; ++i)
        missing += matches->hits[i].doc->year == 0;
    assert_true(gx_facets_n_matches(f) == matches->n_matches && a->n_missing == missing);
    for (uint32_t g = 0; g < a->n; ++g) {
        uint64_t want = 0;
        for (uint64_t i = 0; i < matches->n_matches; ++i)
            want += matches->hits[i].doc->year == (uint32_t)a->groups[g].first;
        assert_true(a->groups[g].count == want && want > 0);
        n += want;
    }
    assert_true(n + missing == matches->n_matches);
}

/* Bits of all documents: it takes a gigabyte. */
static void facets_and_filters_count_documents(void **state)
{
    (void)state;
    static world w;
    static world_answer matches;
    gx_error err = {0};
    gx_facet facet = GX_FACET;
    gx_session *s;
    gx_facets *f;
    gx_filter *filter;
    char text[64];
    uint32_t n, want = 0;
    const world_query q = {.n = 2, .words = {1, 2}, .k = 1};
    facet.name = "year";
    facet.name_len = 4;
    facet.n = 0;
    world_open(&w, scratch_dir, base_seed);
    world_place_at(&w, WORLD_BORDER_IN_A_PART);
    gx_engine *en = open_cpu(&w, (gx_engine_options)GX_ENGINE_OPTIONS);
    world_check(&w, gx_session_open(&s, en, &err), &err);
    const gx_query query = {.size = sizeof query, .text = world_text(&q, text), .len = strlen(text)};
    const gx_query_options o = world_options(&q);
    world_judge(&w, &q, &matches);
    world_check(&w, gx_count_facets(&f, s, &query, &o, &facet, 1, &err), &err);
    check_years(f, &matches);
    gx_facets_close(f);

    uint64_t *words = malloc((w.n_docs / 64 + 1) * sizeof *words);
    assert_non_null(words);
    world_check(&w, gx_filter_open(&filter, w.ix, "year:>2000", 10, NULL, &err), &err);
    world_check(&w, gx_filter_evaluate(filter, words, &n, &err), &err);
    matches.n_matches = 0;
    for (uint32_t i = 0; i < w.n; ++i) {
        const world_doc *d = &w.docs[i];
        const bool selected = d->live && d->year > 2000;
        want += selected;
        if (d->live)
            assert_true((words[d->docid / 64] >> d->docid % 64 & 1) == selected);
        if (selected)
            matches.hits[matches.n_matches++] = (world_hit){d->docid, 0, d};
    }
    assert_int_equal(n, want);
    world_check(&w, gx_count_facets_of(&f, w.ix, words, &facet, 1, &err), &err);
    check_years(f, &matches);
    gx_facets_close(f);
    free(words);
    gx_filter_close(filter);
    gx_session_close(s);
    gx_engine_close(en);
    world_close(&w);
}

/* ---- services and replays ---- */

static void a_service_answers(void **state)
{
    (void)state;
    static world w;
    static world_answer want;
    for (uint32_t c = 0; c < n_cases; ++c) {
        gx_error err = {0};
        gx_service *s;
        gx_service_options o = GX_SERVICE_OPTIONS;
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        gx_engine *en = open_cpu(&w, (gx_engine_options)GX_ENGINE_OPTIONS);
        o.cpu = en;
        o.callers = c % 2;
        world_check(&w, gx_service_open(&s, &o, &err), &err);
        for (uint32_t i = 0; i < 20; ++i) {
            char text[64];
            world_query q;
            gx_ticket *ticket;
            gx_service_answer answer;
            uint64_t docids[1000];
            world_draw_query(&w, &q);
            const gx_query_options options = world_options(&q);
            const gx_query query = {.size = sizeof query, .text = world_text(&q, text), .len = strlen(text)};
            gx_submission sub = GX_SUBMISSION(&query, 1, &options);
            sub.tickets = &ticket;
            world_check(&w, gx_service_submit(s, &sub, NULL, &err), &err);
            assert_int_equal(gx_ticket_wait(ticket, -1, &answer), GX_OK);
            assert_int_equal(answer.status, GX_OK);
            assert_true(!answer.docids == gx_index_is_wide(w.ix) && !answer.docids64 != gx_index_is_wide(w.ix));
            for (uint32_t j = 0; j < answer.n_hits; ++j)
                docids[j] = answer.docids64 ? answer.docids64[j] : answer.docids[j];
            world_judge(&w, &q, &want);
            world_compare(&w, &q, "from a service", &want, answer.n_hits, docids, answer.scores);
            gx_ticket_close(ticket);
        }
        gx_service_close(s);
        gx_engine_close(en);
        world_close(&w);
    }
}

static void write_log(world *w, world_query *queries, uint32_t n)
{
    char text[64];
    FILE *f = fopen(in_dir("log"), "w");
    assert_non_null(f);
    for (uint32_t i = 0; i < n; ++i) {
        world_draw_query(w, &queries[i]);
        queries[i].op = GX_OP_OR;
        queries[i].preset = GX_BM25;
        queries[i].k = 40;
        fprintf(f, "%u\t%s\n", i, world_text(&queries[i], text));
    }
    assert_int_equal(fclose(f), 0);
}

static void check_run(const world *w, const world_query *queries, uint32_t n)
{
    static world_answer want;
    FILE *f = fopen(in_dir("run"), "r");
    assert_non_null(f);
    for (uint32_t i = 0; i < n; ++i) {
        world_judge(w, &queries[i], &want);
        for (uint32_t j = 0; j < want.n; ++j) {
            uint32_t qid, number, rank;
            double score;
            assert_int_equal(fscanf(f, "%u Q0 d%u %u %lf gpuidx\n", &qid, &number, &rank, &score), 4);
            assert_true(qid == i && rank == j + 1 && number == want.hits[j].doc->number);
            assert_true(fabs(score - ldexp(want.hits[j].score, -want.exponent)) <= 1e-9 * score);
        }
    }
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

/* By its own threads, and by a service; each answer is also verified by the exhaustive search. */
static void a_replay_writes_the_run(void **state)
{
    enum { N_QUERIES = 50 };
    (void)state;
    static world w;
    static world_query queries[N_QUERIES];
    static gx_replay_report report;
    for (uint32_t c = 0; c < n_cases; ++c) {
        gx_error err = {0};
        gx_replay_options o = GX_REPLAY_OPTIONS;
        gx_service_options service = GX_SERVICE_OPTIONS;
        gx_engine_options cached = GX_ENGINE_OPTIONS;
        cached.result_cache = c % 3 ? 0 : 1 << 20;
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        write_log(&w, queries, N_QUERIES);
        gx_engine *en = open_cpu(&w, cached);
        service.cpu = en;
        o.log = in_dir("log");
        o.run_path = in_dir("run");
        o.force = true;
        o.query.k = 40;
        o.threads = 2;
        o.batch = 7;
        o.verify_every = 1;
        o.service = c % 2 ? &service : NULL;
        world_check(&w, gx_replay(en, &o, &report, &err), &err);
        assert_true(report.queries == N_QUERIES && report.verified == N_QUERIES && report.exhaustive_differs == 0);
        check_run(&w, queries, N_QUERIES);
        gx_engine_close(en);
        world_close(&w);
    }
}

/* ---- two passes ---- */

/* Of an approximate answer every score is the document's own, and they come in order. */
static void approximate_answers_have_true_scores(void **state)
{
    (void)state;
    static world w;
    static world_answer want;
    uint32_t n_other = 0;
    for (uint32_t c = 0; c < n_cases; ++c) {
        gx_error err = {0};
        gx_session *s;
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        gx_engine *en = open_cpu(&w, (gx_engine_options)GX_ENGINE_OPTIONS);
        world_check(&w, gx_session_open(&s, en, &err), &err);
        for (uint32_t i = 0; i < 30; ++i) {
            char text[64];
            uint64_t docids[1000];
            double scores[1000];
            uint32_t n, at = 0;
            world_query q;
            world_draw_query(&w, &q);
            q.op = GX_OP_OR;
            gx_query_options o = world_options(&q);
            o.approximate = .6f;
            q.k = WORLD_DOCS;
            world_judge(&w, &q, &want);
            const gx_query query = {.size = sizeof query, .text = world_text(&q, text), .len = strlen(text)};
            const gx_results out = {.size = sizeof out, .docids64 = docids, .n_hits = &n, .exact_scores = scores};
            world_check(&w, gx_search(s, &query, 1, &o, &out, &err), &err);
            assert_int_equal(n, want.n < o.k ? want.n : o.k);
            for (uint32_t j = 0; j < n; ++j, ++at) { /* the judge's order, with gaps */
                while (at < want.n && want.hits[at].docid != docids[j])
                    ++at;
                assert_true(at < want.n && scores[j] == ldexp(want.hits[at].score, -want.exponent));
            }
            n_other += at > n;
        }
        gx_session_close(s);
        gx_engine_close(en);
        world_close(&w);
    }
    assert_true(n_other > 0); /* else all were exact */
}

/* The terms of the best document alone expand the query. */
static void feedback_reads_the_best_document(void **state)
{
    (void)state;
    static world w;
    static world_answer want;
    for (uint32_t c = 0; c < n_cases; ++c) {
        gx_error err = {0};
        gx_session *s;
        gx_rm3_options rm3 = GX_RM3_OPTIONS;
        gx_weighted_term *terms;
        char text[64];
        uint32_t n;
        world_query q = {.n = 1, .words = {3}, .k = 1};
        rm3.fb_docs = 1;
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        world_judge(&w, &q, &want);
        gx_engine *en = open_cpu(&w, (gx_engine_options)GX_ENGINE_OPTIONS);
        world_check(&w, gx_session_open(&s, en, &err), &err);
        const gx_query query = {.size = sizeof query, .text = world_text(&q, text), .len = strlen(text)};
        const gx_query_options o = world_options(&q);
        if (want.n) {
            world_check(&w, gx_rm3_expand(&terms, &n, s, w.ix, &query, &o, &rm3, &err), &err);
            for (uint32_t i = 0; i < n; ++i)
                assert_true(terms[i].len == 2 && want.hits[0].doc->tfs[terms[i].term[1] - '0'] > 0);
            free(terms);
        }
        gx_session_close(s);
        gx_engine_close(en);
        world_close(&w);
    }
}

/* ---- several processes, as threads ---- */

typedef struct meeting {
    pthread_barrier_t barrier;
    uint64_t *keys[2];
    uint32_t *highs[2], *n_keys[2];
} meeting;

typedef struct process {
    gx_shard shard;
    meeting *m;
    world *w;
    world_query queries[20];
    uint64_t docids[20][40];
    double scores[20][40];
    uint32_t n[20];
} process;

/* As gpuidx-mpi does it: the best of both, without those that both have. */
static gx_status exchange(void *user, uint64_t *keys, uint32_t *highs, uint32_t *n_keys, const uint32_t *ks, uint32_t n,
                          gx_error *err)
{
    process *p = user;
    meeting *m = p->m;
    const uint32_t me = p->shard.number;
    size_t n_all = 0;
    (void)err;
    m->keys[me] = keys;
    m->highs[me] = highs;
    m->n_keys[me] = n_keys;
    for (uint32_t i = 0; i < n; ++i)
        n_all += ks[i];
    uint64_t *both = malloc(n_all * sizeof *both);
    uint32_t *both_highs = malloc(n_all * sizeof *both_highs), *n_both = calloc(n, sizeof *n_both);
    pthread_barrier_wait(&m->barrier);
    for (size_t q = 0, at = 0; q < n; at += ks[q++]) {
        const gx_hits a = {m->keys[0] + at, m->n_keys[0][q], highs ? m->highs[0] + at : NULL};
        const gx_hits b = {m->keys[1] + at, m->n_keys[1][q], highs ? m->highs[1] + at : NULL};
        for (uint32_t i = 0, j = 0; n_both[q] < ks[q] && (i < a.n || j < b.n); ++n_both[q]) {
            const bool first = j == b.n || (i < a.n && !gx_hits_better(&b, j, &a, i));
            const gx_hits *from = first ? &a : &b;
            const uint32_t x = first ? i : j;
            both[at + n_both[q]] = from->keys[x];
            both_highs[at + n_both[q]] = from->highs ? from->highs[x] : 0;
            const bool same = i < a.n && j < b.n && !gx_hits_better(&a, i, &b, j) && !gx_hits_better(&b, j, &a, i);
            i += first || same;
            j += !first || same;
        }
    }
    pthread_barrier_wait(&m->barrier);
    memcpy(keys, both, n_all * sizeof *keys);
    if (highs)
        memcpy(highs, both_highs, n_all * sizeof *highs);
    memcpy(n_keys, n_both, n * sizeof *n_keys);
    free(both);
    free(both_highs);
    free(n_both);
    return GX_OK;
}

static void *run_process(void *user)
{
    process *p = user;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_session *s;
    gx_error err = {0};
    p->shard.exchange = exchange;
    p->shard.user = p;
    o.shard = &p->shard;
    gx_engine *en = open_cpu(p->w, o);
    world_check(p->w, gx_session_open(&s, en, &err), &err);
    for (uint32_t i = 0; i < 20; ++i) {
        char text[64];
        const gx_query_options options = world_options(&p->queries[i]);
        const gx_query query = {.size = sizeof query, .text = world_text(&p->queries[i], text), .len = strlen(text)};
        const gx_results out = {
            .size = sizeof out, .docids64 = p->docids[i], .n_hits = &p->n[i], .exact_scores = p->scores[i]};
        world_check(p->w, gx_search(s, &query, 1, &options, &out, &err), &err);
    }
    gx_session_close(s);
    gx_engine_close(en);
    return NULL;
}

static void processes_that_share_the_search_agree(void **state)
{
    (void)state;
    static world w;
    static world_answer want;
    static process p[2];
    for (uint32_t c = 0; c < n_cases; ++c) {
        meeting m;
        pthread_t thread;
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        assert_int_equal(pthread_barrier_init(&m.barrier, NULL, 2), 0);
        p[0] = (process){.shard = {.number = 0, .n = 2}, .m = &m, .w = &w};
        for (uint32_t i = 0; i < 20; ++i) {
            world_draw_query(&w, &p[0].queries[i]);
            p[0].queries[i].k = p[0].queries[i].k > 40 ? 40 : p[0].queries[i].k;
        }
        p[1] = p[0];
        p[1].shard.number = 1;
        assert_int_equal(pthread_create(&thread, NULL, run_process, &p[1]), 0);
        run_process(&p[0]);
        pthread_join(thread, NULL);
        pthread_barrier_destroy(&m.barrier);
        for (uint32_t i = 0; i < 20; ++i) {
            world_judge(&w, &p[0].queries[i], &want);
            for (int x = 0; x < 2; ++x)
                world_compare(&w, &p[0].queries[i], "of a process", &want, p[x].n[i], p[x].docids[i], p[x].scores[i]);
        }
        world_close(&w);
    }
}

/* ---- changes ---- */

static void set_sizes(const gx_collection *c, const uint32_t *n)
{
    const gx_parts *p = gx_collection_index(c)->parts;
    for (uint32_t i = 0; i < p->n; ++i)
        p->parts[i].n_live = p->parts[i].ix->n_docs = n[i];
}

static uint64_t count_merges(const gx_collection *c)
{
    gx_collection_counts n = {.size = sizeof n};
    assert_int_equal(gx_collection_get_counts(c, &n), GX_OK);
    return n.merges;
}

/* A collection of four parts and more, none of whose documents is deleted. */
static void open_several_parts(world *w)
{
    for (uint64_t seed = base_seed;; ++seed) {
        bool whole = true;
        world_open(w, scratch_dir, seed);
        for (uint32_t i = 0; i < w->n; ++i)
            whole = whole && w->docs[i].live;
        if (whole && w->n_parts >= 4)
            return;
        world_close(w);
    }
}

/* As if each part had a quarter of 2^32 documents: all together may, but no part can have them. */
static void no_part_of_more_documents_than_docids_is_made(void **state)
{
    (void)state;
    static const uint32_t quarters[WORLD_PARTS] = {1u << 30, 1u << 30, 1u << 30, 1u << 30, 1u << 30};
    static world w;
    char path[80];
    uint32_t sizes[WORLD_PARTS];
    gx_error err = {0};
    gx_collection *c;
    open_several_parts(&w);
    for (uint32_t i = 0; i < w.n_parts; ++i)
        sizes[i] = w.first[i + 1] - w.first[i];
    snprintf(path, sizeof path, "%s/wide", scratch_dir);
    world_check(&w, gx_collection_open(&c, path, NULL, &err), &err);
    gx_index *ix = (gx_index *)gx_collection_index(c);
    set_sizes(c, quarters);
    world_check(&w, gx_collection_merge(c, GX_MERGE_TIERS, &err), &err);
    assert_int_equal(count_merges(c), 0);
    set_sizes(c, sizes);
    ix->n_docs = UINT32_MAX;
    assert_int_equal(gx_collection_merge(c, GX_MERGE_ALL, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "cannot become one"));
    ix->n_docs = w.n;
    world_check(&w, gx_collection_merge(c, GX_MERGE_TIERS, &err), &err);
    assert_int_equal(count_merges(c), 1);
    gx_collection_close(c);
    world_close(&w);
}

/* Parts that have more than 2^32 - 2 documents together make a collection. */
static void parts_add_up(void **state)
{
    (void)state;
    static world w;
    gx_error err = {0};
    open_several_parts(&w);
    gx_index *whole = calloc(1, sizeof *whole);
    gx_part *parts = calloc(4, sizeof *parts);
    assert_true(whole && parts);
    for (uint32_t i = 0; i < 4; ++i) {
        parts[i].ix = gx_index_share(w.ix->parts->parts[i].ix);
        parts[i].ix->n_docs = 1u << 30;
    }
    whole->path = strdup("whole");
    world_check(&w, gx_collection_of_parts(whole, parts, 4, &err), &err);
    assert_true(gx_index_is_wide(whole) && gx_index_n_docs(whole) == UINT64_C(1) << 32);
    assert_true(whole->parts->parts[3].base == UINT64_C(3) << 30);
    assert_true(gx_index_n_words(whole) == (size_t)1 << 26);
    gx_index_close(whole);
    world_close(&w);
}

/* ---- what is refused ---- */

static void what_takes_32_bits_is_refused(void **state)
{
    (void)state;
    static world w;
    gx_error err = {0};
    gx_session *s;
    gx_engine *joined;
    uint64_t key;
    uint32_t docid, n = 0;
    world_open(&w, scratch_dir, base_seed);
    world_place_at(&w, WORLD_JUST_WIDE);
    gx_engine *en = open_cpu(&w, (gx_engine_options)GX_ENGINE_OPTIONS);
    world_check(&w, gx_session_open(&s, en, &err), &err);
    const gx_query query = GX_TEXT_QUERY("w1", 2);
    const gx_query_options options = GX_QUERY_OPTIONS;
    gx_results out = {.size = sizeof out, .docids = &docid, .n_hits = &n};
    assert_int_equal(gx_search(s, &query, 1, &options, &out, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "docids64"));
    gx_plan plan;
    gx_hits hits = {&key, 0};
    world_check(&w, gx_engine_plan(&plan, en, &query, &(gx_query_options)GX_QUERY_OPTIONS, &err), &err);
    plan.k = 1;
    assert_int_equal(gx_session_run(s, &plan, 1, &hits, &err), GX_EUSAGE);
    gx_plan_free(&plan);
    gx_session_close(s);
    gx_engine_close(en);

    gx_engine_options o = GX_ENGINE_OPTIONS;
    o.kind = GX_ENGINE_CPU;
    o.join = GX_JOIN_ALWAYS;
    assert_int_equal(gx_engine_open(&joined, w.ix, &o, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "cannot be joined"));
    const gx_rewrite_options rewrite = GX_REWRITE_OPTIONS;
    assert_int_equal(gx_index_rewrite(w.ix, in_dir("one.gx"), &rewrite, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "4294967295 documents"));
    assert_int_equal(gx_ciff_export(w.ix, in_dir("one.ciff"), NULL, &err), GX_EUSAGE);
    world_place_at(&w, WORLD_JUST_NARROW);
    assert_int_equal(gx_engine_open(&joined, w.ix, &o, &err), GX_OK); /* the parts that are there */
    gx_engine_close(joined);
    world_close(&w);
}

int main(void)
{
    base_seed = world_number("GX_TEST_SEED", 1);
    n_cases = (uint32_t)world_number("GX_TEST_CASES", 2 * WORLD_PLACES);
    print_message("%u cases from seed %" PRIu64 "\n", n_cases, base_seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facets_and_filters_count_documents),
        cmocka_unit_test(a_service_answers),
        cmocka_unit_test(a_replay_writes_the_run),
        cmocka_unit_test(approximate_answers_have_true_scores),
        cmocka_unit_test(feedback_reads_the_best_document),
        cmocka_unit_test(processes_that_share_the_search_agree),
        cmocka_unit_test(no_part_of_more_documents_than_docids_is_made),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(what_takes_32_bits_is_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
