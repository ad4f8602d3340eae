/* query_memory.c: what a session holds of a GPU's memory, and that it stays within what it may. */
#include "tests/support/query_fixture.h"
#include "tests/support/test.h"

enum { N_DOCS = 9000, N_TERMS = 40, N_BATCH = 1024 };

typedef struct answers {
    uint32_t *docids, *n_hits;
    float *scores;
} answers;

static answers search(gx_session *s, const gx_query *queries, uint32_t n, gx_op op, uint32_t k)
{
    gx_error err = {0};
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.op = op;
    opt.k = k;
    answers a = {calloc((size_t)n * k, sizeof *a.docids), calloc(n, sizeof *a.n_hits),
                 calloc((size_t)n * k, sizeof *a.scores)};
    assert_true(a.docids && a.n_hits && a.scores);
    if (gx_search(s, queries, n, &opt, &(gx_results){sizeof(gx_results), a.docids, a.scores, a.n_hits, NULL}, &err))
        fail_msg("seed %llu: %s", (unsigned long long)test_seed(), err.text);
    return a;
}

static void free_answers(answers *a)
{
    free(a->docids);
    free(a->n_hits);
    free(a->scores);
}

/* The same batch to a session and to the CPU. */
static void check_search(gx_session *s, gx_session *cpu, const gx_query *queries, uint32_t n, gx_op op, uint32_t k)
{
    answers got = search(s, queries, n, op, k), want = search(cpu, queries, n, op, k);
    for (uint32_t i = 0; i < n; ++i) {
        if (got.n_hits[i] != want.n_hits[i] ||
            memcmp(got.docids + (size_t)i * k, want.docids + (size_t)i * k, got.n_hits[i] * sizeof *got.docids) != 0 ||
            memcmp(got.scores + (size_t)i * k, want.scores + (size_t)i * k, got.n_hits[i] * sizeof *got.scores) != 0)
            fail_msg("seed %llu: op %d k %u, query %u '%s' of %u: another answer than the CPU's",
                     (unsigned long long)test_seed(), op, k, i, queries[i].text, n);
    }
    free_answers(&got);
    free_answers(&want);
}

static gx_session *open_session(gx_engine *en)
{
    gx_error err = {0};
    gx_session *s;
    if (gx_session_open(&s, en, &err) != GX_OK)
        fail_msg("%s", err.text);
    return s;
}

static gx_session_memory memory_of(const gx_session *s)
{
    gx_session_memory m = {.size = sizeof m};
    gx_session_get_memory(s, &m);
    return m;
}

/* A collection, N_BATCH queries, and a CPU engine beside the fixture's. */
typedef struct scene {
    fixture f;
    test_query *tests;
    gx_query queries[N_BATCH];
    gx_engine *cpu;
    gx_session *on_cpu;
} scene;

static bool open_scene(scene *c, const engine_row *row)
{
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    gen_rng r = {test_seed() + 91};
    memset(c, 0, sizeof *c);
    open_collection(&c->f, test_seed() + 91, GEN_CLUSTERED, N_DOCS, N_TERMS, pick_codec(1), pick_codec(1));
    if (!open_engine(&c->f, row, UINT64_MAX)) {
        close_collection(&c->f);
        return false;
    }
    opt.kind = GX_ENGINE_CPU;
    assert_int_equal(gx_engine_open(&c->cpu, c->f.ix, &opt, &err), GX_OK);
    c->on_cpu = open_session(c->cpu);
    c->tests = calloc(N_BATCH, sizeof *c->tests);
    assert_non_null(c->tests);
    for (uint32_t i = 0; i < N_BATCH; ++i) {
        make_query(&c->tests[i], &r, c->f.c, 3);
        c->queries[i] = (gx_query)GX_TEXT_QUERY(c->tests[i].text, strlen(c->tests[i].text));
    }
    return true;
}

static void close_scene(scene *c)
{
    gx_session_close(c->on_cpu);
    gx_engine_close(c->cpu);
    close_collection(&c->f);
    free(c->tests);
}

void a_sessions_memory_follows_its_batches_up_to_100_megabytes(void **state)
{
    const engine_row *row = *state;
    static scene c;
    if (!open_scene(&c, row))
        skip();
    const bool gpu = row->kind == GX_ENGINE_GPU;
    gx_session *s = c.f.s;
    const gx_session_memory fresh = memory_of(s);
    assert_int_equal(fresh.device > 0 && fresh.pinned > 0, gpu);
    check_search(s, c.on_cpu, c.queries, 1, GX_OP_OR, 10);
    assert_int_equal(memory_of(s).device, fresh.device); /* a query alone needs no more */
    assert_true(fresh.device < 4000000 && fresh.pinned < 4000000);
    check_search(s, c.on_cpu, c.queries, 64, GX_OP_OR, 10);
    const gx_session_memory small = memory_of(s);
    check_search(s, c.on_cpu, c.queries, N_BATCH, GX_OP_OR, 1000);
    const gx_session_memory large = memory_of(s);
    assert_true(large.device + large.pinned <= 100000000);
    if (gpu) { /* 7,096 candidates and 1,000 answers of 8 bytes each; a few queries have no known word */
        const uint64_t n = N_BATCH * 9 / 10;
        assert_true(large.device > small.device);
        if (large.device < n * 7096 * 8 || large.pinned < n * 1000 * 8)
            fail_msg("device %llu, pinned %llu bytes", (unsigned long long)large.device,
                     (unsigned long long)large.pinned);
    }
    check_search(s, c.on_cpu, c.queries, N_BATCH, GX_OP_AND_OR, 1000); /* too much at once: it goes in sub-batches */
    check_search(s, c.on_cpu, c.queries, N_BATCH, GX_OP_AND, 1000);
    const gx_session_memory most = memory_of(s);
    assert_true(most.device + most.pinned <= 100000000);
    check_search(s, c.on_cpu, c.queries, 8, GX_OP_OR, N_DOCS);
    assert_int_equal(memory_of(s).device, most.device);
    close_scene(&c);
}

void a_limit_on_device_memory_holds_for_all_sessions_together(void **state)
{
    enum { LIMIT = 20000000, N_SESSIONS = 3 };
    const engine_row *row = *state;
    static scene c;
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    gx_engine *en;
    gx_session *sessions[N_SESSIONS];
    if (row->kind != GX_ENGINE_GPU || !open_scene(&c, row))
        skip();
    opt.kind = GX_ENGINE_GPU;
    opt.device_memory = LIMIT;
    assert_int_equal(gx_engine_open(&en, c.f.ix, &opt, &err), GX_OK);
    uint64_t sum = 0;
    for (int i = 0; i < N_SESSIONS; ++i)
        sessions[i] = open_session(en);
    for (int i = 0; i < N_SESSIONS; ++i) {
        check_search(sessions[i], c.on_cpu, c.queries, 400, GX_OP_OR, 1000);
        sum += memory_of(sessions[i]).device;
    }
    assert_true(sum < LIMIT);
    /* the first has taken what the others could not grow into; still they answer */
    assert_true(memory_of(sessions[0]).device > memory_of(sessions[N_SESSIONS - 1]).device);
    gx_session *more[32];
    int n = 0;
    while (n < 32 && gx_session_open(&more[n], en, &err) == GX_OK)
        ++n;
    assert_true(n < 32);
    assert_int_equal(err.status, GX_ECUDA);
    assert_non_null(strstr(err.text, "open fewer sessions"));
    while (n)
        gx_session_close(more[--n]);
    for (int i = 0; i < N_SESSIONS; ++i)
        gx_session_close(sessions[i]);
    gx_session *again = open_session(en); /* what they gave back can be taken again */
    check_search(again, c.on_cpu, c.queries, 400, GX_OP_OR, 1000);
    assert_true(memory_of(again).device < LIMIT);
    gx_session_close(again);
    gx_engine_close(en);
    close_scene(&c);
}
