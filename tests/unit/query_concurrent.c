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

enum { COMPANY = 3, ERRANDS = 24, ERRAND_K = 10, MOST_ERRANDS = 40 };

typedef struct company {
    const engine_row *row;
    fixture f;
    test_query tests[ERRANDS];
    gx_query_options opt[ERRANDS];
    oracle_answer want[ERRANDS];
} company;

/* Of one thread, or of all in turns. */
typedef struct errands {
    pthread_t thread;
    company *all;
    gx_session *sessions[COMPANY];
    uint32_t n_sessions, turns;
    uint64_t linger_hits; /* of sessions that are closed: queries answered by lingering kernels */
    gen_rng r;
    char wrong[600];
} errands;

static bool is_right(const company *c, uint32_t i, const uint32_t *docids, const float *scores, uint32_t n_hits)
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
static void *run_errands(void *user)
{
    errands *e = user;
    uint32_t at = 0;
    for (uint32_t turn = 0; turn < e->turns && !e->wrong[0]; ++turn) {
        uint32_t docids[MOST_ERRANDS * ERRAND_K], n_hits[MOST_ERRANDS];
        float scores[MOST_ERRANDS * ERRAND_K];
        gx_query queries[MOST_ERRANDS];
        gx_error err = {0};
        const gx_results out = {sizeof out, docids, scores, n_hits, NULL};
        const uint32_t i = gen_below(&e->r, ERRANDS), n = gen_below(&e->r, 6)   ? 1
                                                          : gen_below(&e->r, 2) ? 2
                                                                                : 1 + gen_below(&e->r, MOST_ERRANDS);
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
            if (!is_right(e->all, i, docids + q * ERRAND_K, scores + q * ERRAND_K, n_hits[q]))
                snprintf(e->wrong, sizeof e->wrong, "turn %u, query %u of %u: a wrong answer to '%.400s'", turn, q, n,
                         e->all->tests[i].text);
        }
    }
    return NULL;
}

/* A GPU that has answered a query alone waits for the next. Whoever comes instead, and when,
 * answers stay the same. */
void a_query_alone_is_answered_in_any_company(void **state)
{
    static company c;
    errands together = {.all = &c, .n_sessions = COMPANY}, apart[COMPANY];
    gx_error err = {0};
    gen_rng r = {base_seed() + 79};
    c.row = *state;
    open_collection(&c.f, base_seed() + 79, GEN_CLUSTERED, 6000, 50, pick_codec(1), pick_codec(1));
    if (!open_engine(&c.f, c.row, UINT64_MAX)) {
        close_collection(&c.f);
        skip();
    }
    for (uint32_t i = 0; i < ERRANDS; ++i) {
        make_query(&c.tests[i], &r, c.f.c, i % 9 ? 5 : 30);
        c.opt[i] = (gx_query_options)GX_QUERY_OPTIONS;
        c.opt[i].k = c.tests[i].q.k = ERRAND_K;
        c.opt[i].op = c.tests[i].q.op = (gx_op)(i % 3);
        c.opt[i].preset = c.tests[i].q.preset = i % 4 ? GX_BM25 : GX_BM25_LUCENE;
        c.opt[i].prune = i % 11 != 10;
        c.opt[i].algorithm = i % 13 == 12 ? GX_ALGORITHM_PMF : GX_ALGORITHM_AUTO;
        c.tests[i].q.k1 = c.tests[i].q.b = NAN;
        c.want[i] = oracle_search(c.f.c, &c.tests[i].q);
    }
    together.r = r;
    together.turns = least_cases() < 3000 ? least_cases() : 3000;
    for (uint32_t s = 0; s < COMPANY; ++s)
        assert_int_equal(gx_session_open(&together.sessions[s], c.f.en, &err), GX_OK);
    (void)run_errands(&together);
    if (together.wrong[0])
        fail_msg("%s, seed %llu: %s", c.row->name, (unsigned long long)base_seed(), together.wrong);
    for (uint32_t s = 0; s < COMPANY; ++s)
        together.linger_hits += gx_session_stats(together.sessions[s])->linger_hits;
    /* that one knows of one thread, and its kernels cannot stay */
    const bool threads = !strstr(gx_engine_describe(c.f.en), "emulated");
    assert_int_equal(together.linger_hits > 0, gx_engine_get_kind(c.f.en) == GX_ENGINE_GPU && threads);
    for (uint32_t s = 0; s < COMPANY && threads; ++s) {
        apart[s] = (errands){.all = &c, .n_sessions = 1, .turns = together.turns / 3, .r = {r.state + 1 + s}};
        apart[s].sessions[0] = together.sessions[s];
        assert_int_equal(pthread_create(&apart[s].thread, NULL, run_errands, &apart[s]), 0);
    }
    for (uint32_t s = 0; s < COMPANY; ++s) {
        if (threads) {
            pthread_join(apart[s].thread, NULL);
            together.sessions[s] = apart[s].sessions[0];
        }
        if (threads && apart[s].wrong[0])
            fail_msg("%s, seed %llu, thread %u: %s", c.row->name, (unsigned long long)base_seed(), s, apart[s].wrong);
        gx_session_close(together.sessions[s]);
    }
    for (uint32_t i = 0; i < ERRANDS; ++i)
        oracle_free(&c.want[i]);
    close_collection(&c.f);
}

/* ---- a session that never rests ---- */

typedef struct restless {
    pthread_t thread;
    gx_session *s;
    const gx_query *query;
    time_t end;    /* at which it gives up */
    uint32_t stop; /* atomic */
    uint64_t n;
    gx_status st;
} restless;

static void *ask_again_and_again(void *user)
{
    restless *r = user;
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
void a_session_that_never_rests_leaves_room_for_others(void **state)
{
    const engine_row *row = *state;
    const gx_query query = GX_TEXT_QUERY("t0000000 t0000001", 17);
    fixture f;
    gx_error err = {0};
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    const bool timed = least_cases() >= 1000; /* else by a tool, under which a launch may last until the kernel ends */
    restless r = {.query = &query};
    open_collection(&f, base_seed() + 80, GEN_CLUSTERED, 6000, 50, pick_codec(1), pick_codec(1));
    if (!open_engine(&f, row, UINT64_MAX) || strstr(gx_engine_describe(f.en), "emulated")) {
        close_collection(&f);
        skip();
    }
    close_engine(&f);
    eo.kind = row->kind;
    eo.linger_us = 1000000;
    assert_int_equal(gx_engine_open(&f.en, f.ix, &eo, &err), GX_OK);
    assert_int_equal(gx_session_open(&r.s, f.en, &err), GX_OK);
    r.end = time(NULL) + (timed ? 60 : 5);
    assert_int_equal(pthread_create(&r.thread, NULL, ask_again_and_again, &r), 0);
    const time_t begin = time(NULL);
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
    const double seconds = difftime(time(NULL), begin);
    __atomic_store_n(&r.stop, 1u, __ATOMIC_RELAXED);
    pthread_join(r.thread, NULL);
    if (st != GX_OK)
        fail_msg("%s: %s", row->name, err.text);
    assert_int_equal(r.st, GX_OK);
    assert_true(r.n > 0 || row->kind == GX_ENGINE_CPU); /* which may be done before the thread begins */
    if (timed && seconds > 30)
        fail_msg("%s: the others took %.0f s", row->name, seconds);
    gx_session_close(r.s);
    close_collection(&f);
}
