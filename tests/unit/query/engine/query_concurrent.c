/* query_concurrent.c: queries alone, whoever else uses the engine meanwhile. A GPU that has
 * answered one waits for the session's next one, and must neither lose nor mix up queries for that,
 * nor keep others waiting.
 */
#include <math.h>
#include <pthread.h>
#include <time.h>

#include "tests/support/query_fixture.h"
#include "tests/support/test.h"

/* ---- sessions that take turns ---- */

enum { N_SESSIONS = 3, N_QUERIES = 24, LOAD_K = 10, MAX_BATCH = 40 };

typedef struct concurrent_sessions {
    const engine_row *row;
    fixture f;
    test_query tests[N_QUERIES];
    gx_query_options opt[N_QUERIES];
    oracle_answer want[N_QUERIES];
} concurrent_sessions;

/* Of one thread, or of all in turns. */
typedef struct load {
    pthread_t thread;
    concurrent_sessions *all;
    gx_session *sessions[N_SESSIONS];
    uint32_t n_sessions, turns;
    uint64_t linger_hits; /* of sessions that are closed: queries answered by lingering kernels */
    gen_rng r;
    char wrong[600];
} load;

static bool is_right(const concurrent_sessions *c, uint32_t i, const uint32_t *docids, const float *scores,
                     uint32_t n_hits)
{
    const oracle_answer *w = &c->want[i];
    bool right = n_hits == w->n_hits;
    for (uint32_t h = 0; h < w->n_hits && right; ++h) {
        const float score = ldexpf((float)w->hits[h].fixed, -w->exponent);
        right = docids[h] == w->hits[h].docid && memcmp(&score, &scores[h], sizeof score) == 0;
    }
    return right;
}

/* One query many times over, now and then with many others at once, at once or after a pause about
 * as long as a GPU waits for it. */
static void *run_load(void *user)
{
    load *e = user;
    uint32_t at = 0;
    for (uint32_t turn = 0; turn < e->turns && !e->wrong[0]; ++turn) {
        uint32_t docids[MAX_BATCH * LOAD_K], n_hits[MAX_BATCH];
        float scores[MAX_BATCH * LOAD_K];
        gx_query queries[MAX_BATCH];
        gx_error err = {0};
        const gx_results out = {sizeof out, docids, scores, n_hits, NULL};
        const uint32_t i = gen_below(&e->r, N_QUERIES), n = gen_below(&e->r, 6)   ? 1
                                                            : gen_below(&e->r, 2) ? 2
                                                                                  : 1 + gen_below(&e->r, MAX_BATCH);
        const struct timespec pause = {0, gen_below(&e->r, 3) ? 0 : 1000 * (long)gen_below(&e->r, 200)};
        if (gen_below(&e->r, 5) == 0)
            at = gen_below(&e->r, e->n_sessions);
        if (gen_below(&e->r, 60) == 0 &&
            gx_engine_precompute_pair_thresholds(e->all->f.en, &e->all->opt[i], 12, 1, &err) != GX_OK)
            snprintf(e->wrong, sizeof e->wrong, "pairs: %.500s", err.text);
        if (gen_below(&e->r, 40) == 0) {
            e->linger_hits += gx_session_stats(e->sessions[at])->linger_hits;
            gx_session_close(e->sessions[at]);
            e->sessions[at] = NULL;
            if (gx_session_open(&e->sessions[at], e->all->f.en, &err) != GX_OK)
                snprintf(e->wrong, sizeof e->wrong, "session: %.500s", err.text);
        }
        for (uint32_t q = 0; q < n; ++q)
            queries[q] = (gx_query)GX_TEXT_QUERY(e->all->tests[i].text, strlen(e->all->tests[i].text));
        if (pause.tv_nsec)
            nanosleep(&pause, NULL);
        if (!e->wrong[0] && gx_search(e->sessions[at], queries, n, &e->all->opt[i], &out, &err) != GX_OK)
            snprintf(e->wrong, sizeof e->wrong, "search: %.500s", err.text);
        for (uint32_t q = 0; q < n && !e->wrong[0]; ++q) {
            if (!is_right(e->all, i, docids + q * LOAD_K, scores + q * LOAD_K, n_hits[q]))
                snprintf(e->wrong, sizeof e->wrong, "turn %u, query %u of %u: a wrong answer to '%.400s'", turn, q, n,
                         e->all->tests[i].text);
        }
    }
    return NULL;
}

/* A GPU that has answered a query alone waits for the next. Whoever comes instead, and when,
 * answers stay the same. */
void a_single_query_is_right_among_concurrent_sessions(void **state)
{
    static concurrent_sessions c;
    load together = {.all = &c, .n_sessions = N_SESSIONS}, apart[N_SESSIONS];
    gx_error err = {0};
    gen_rng r = {test_seed() + 79};
    c.row = *state;
    open_collection(&c.f, test_seed() + 79, GEN_CLUSTERED, 6000, 50, pick_codec(1), pick_codec(1));
    if (!open_engine(&c.f, c.row, UINT64_MAX)) {
        close_collection(&c.f);
        skip();
    }
    for (uint32_t i = 0; i < N_QUERIES; ++i) {
        make_query(&c.tests[i], &r, c.f.c, i % 9 ? 5 : 30);
        c.opt[i] = (gx_query_options)GX_QUERY_OPTIONS;
        c.opt[i].k = c.tests[i].q.k = LOAD_K;
        c.opt[i].op = c.tests[i].q.op = (gx_op)(i % 3);
        c.opt[i].preset = c.tests[i].q.preset = i % 4 ? GX_BM25 : GX_BM25_LUCENE;
        c.opt[i].prune = i % 11 != 10;
        c.opt[i].algorithm = i % 13 == 12 ? GX_ALGORITHM_PMF : GX_ALGORITHM_AUTO;
        c.tests[i].q.k1 = c.tests[i].q.b = NAN;
        c.want[i] = oracle_search(c.f.c, &c.tests[i].q);
    }
    together.r = r;
    together.turns = min_cases() < 3000 ? min_cases() : 3000;
    for (uint32_t s = 0; s < N_SESSIONS; ++s)
        assert_int_equal(gx_session_open(&together.sessions[s], c.f.en, &err), GX_OK);
    (void)run_load(&together);
    if (together.wrong[0])
        fail_msg("%s, seed %llu: %s", c.row->name, (unsigned long long)test_seed(), together.wrong);
    for (uint32_t s = 0; s < N_SESSIONS; ++s)
        together.linger_hits += gx_session_stats(together.sessions[s])->linger_hits;
    /* that one knows of one thread, and its kernels cannot stay */
    const bool threads = !strstr(gx_engine_describe(c.f.en), "emulated");
    assert_int_equal(together.linger_hits > 0, gx_engine_get_kind(c.f.en) == GX_ENGINE_GPU && threads);
    for (uint32_t s = 0; s < N_SESSIONS && threads; ++s) {
        apart[s] = (load){.all = &c, .n_sessions = 1, .turns = together.turns / 3, .r = {r.state + 1 + s}};
        apart[s].sessions[0] = together.sessions[s];
        assert_int_equal(pthread_create(&apart[s].thread, NULL, run_load, &apart[s]), 0);
    }
    for (uint32_t s = 0; s < N_SESSIONS; ++s) {
        if (threads) {
            pthread_join(apart[s].thread, NULL);
            together.sessions[s] = apart[s].sessions[0];
        }
        if (threads && apart[s].wrong[0])
            fail_msg("%s, seed %llu, thread %u: %s", c.row->name, (unsigned long long)test_seed(), s, apart[s].wrong);
        gx_session_close(together.sessions[s]);
    }
    for (uint32_t i = 0; i < N_QUERIES; ++i)
        oracle_free(&c.want[i]);
    close_collection(&c.f);
}

/* ---- a session that never rests ---- */

typedef struct busy_session {
    pthread_t thread;
    gx_session *s;
    const gx_query *query;
    time_t end;    /* at which it gives up */
    uint32_t stop; /* atomic */
    uint64_t n;
    gx_status st;
} busy_session;

static void *search_repeatedly(void *user)
{
    busy_session *r = user;
    gx_query_options opt = GX_QUERY_OPTIONS;
    uint32_t docids[10], n_hits;
    gx_error err;
    const gx_results out = {sizeof out, docids, NULL, &n_hits, NULL};
    while (r->st == GX_OK && !__atomic_load_n(&r->stop, __ATOMIC_RELAXED) && time(NULL) < r->end) {
        r->st = gx_search(r->s, r->query, 1, &opt, &out, &err);
        r->n += 1;
    }
    return NULL;
}

/* It asks one query after another, and the GPU would wait a second for each. Others have their turn
 * soon all the same. */
void a_busy_session_does_not_starve_others(void **state)
{
    const engine_row *row = *state;
    const gx_query query = GX_TEXT_QUERY("t0000000 t0000001", 17);
    fixture f;
    gx_error err = {0};
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    const bool timed = min_cases() >= 1000; /* else by a tool, under which a launch may last until the kernel ends */
    busy_session r = {.query = &query};
    open_collection(&f, test_seed() + 80, GEN_CLUSTERED, 6000, 50, pick_codec(1), pick_codec(1));
    if (!open_engine(&f, row, UINT64_MAX) || strstr(gx_engine_describe(f.en), "emulated")) {
        close_collection(&f);
        skip();
    }
    close_engine(&f);
    eo.kind = row->kind;
    eo.linger_us = 1000000;
    assert_int_equal(gx_engine_open(&f.en, f.ix, &eo, &err), GX_OK);
    assert_int_equal(gx_session_open(&r.s, f.en, &err), GX_OK);
    r.end = time(NULL) + (timed ? 1200 : 5);
    assert_int_equal(pthread_create(&r.thread, NULL, search_repeatedly, &r), 0);
    gx_status st = GX_OK;
    for (uint32_t turn = 0, turns = timed ? 40 : 6; turn < turns && st == GX_OK; ++turn) {
        uint32_t docids[20], n_hits[2];
        gx_query_options opt = GX_QUERY_OPTIONS;
        const gx_results out = {sizeof out, docids, NULL, n_hits, NULL};
        const gx_query two[] = {query, query};
        gx_session *s;
        opt.algorithm = turn % 4 == 1 ? GX_ALGORITHM_PMF : GX_ALGORITHM_AUTO;
        opt.op = turn % 3 ? GX_OP_AND : GX_OP_OR;
        opt.k1 = turn % 4 == 2 ? 1 + (float)turn / 100 : NAN;
        opt.prune = turn % 5 != 4;
        if ((st = gx_session_open(&s, f.en, &err)) == GX_OK)
            st = gx_search(s, two, 1 + turn % 2, &opt, &out, &err);
        gx_session_close(s);
    }
    const bool gave_up = time(NULL) >= r.end;
    __atomic_store_n(&r.stop, 1u, __ATOMIC_RELAXED);
    pthread_join(r.thread, NULL);
    if (st != GX_OK)
        fail_msg("%s: %s", row->name, err.text);
    assert_int_equal(r.st, GX_OK);
    assert_true(r.n > 0 || row->kind == GX_ENGINE_CPU); /* which may be done before the thread begins */
    if (timed && gave_up)
        fail_msg("%s: the others had no turn before it ended", row->name);
    gx_session_close(r.s);
    close_collection(&f);
}
