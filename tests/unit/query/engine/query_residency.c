/* query_residency.c: a GPU engine whose lists are not all in the GPU's memory: the CPU engine's answers by
 * every policy and share, from several sessions, and the memory that it takes. */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "engine/device.h"
#include "tests/support/query_fixture.h"
#include "tests/support/test.h"

enum { N_TERMS = 60, N_QUERIES = 200, K = 30, N_SESSIONS = 3 };

typedef struct answers {
    uint32_t docids[N_QUERIES * K], n_hits[N_QUERIES];
    float scores[N_QUERIES * K];
} answers;

/* A collection, its queries, and a session of the CPU engine. */
typedef struct scene {
    fixture f;
    test_query *tests;
    gx_query queries[N_QUERIES];
    gx_engine *cpu;
    gx_session *on_cpu;
    gen_rng random;
} scene;

/* Whether the row's GPUs are here. */
static bool has_gpu(const engine_row *row)
{
    gx_device *all = NULL;
    uint32_t n = 0;
    const bool usable =
        row->kind == GX_ENGINE_GPU && gx_devices(&all, &n, NULL) == GX_OK && n && n >= row->n_devices && all[0].usable;
    free(all);
    return usable;
}

static gx_session *open_session(gx_engine *en)
{
    gx_error err = {0};
    gx_session *s;
    if (gx_session_open(&s, en, &err) != GX_OK)
        fail_msg("%s", err.text);
    return s;
}

static void open_scene(scene *c, uint64_t seed, uint32_t n_docs, const gx_codec *codec)
{
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    memset(c, 0, sizeof *c);
    c->random = (gen_rng){seed};
    open_collection(&c->f, seed, GEN_CLUSTERED, n_docs, N_TERMS, codec, codec);
    opt.kind = GX_ENGINE_CPU;
    assert_int_equal(gx_engine_open(&c->cpu, c->f.ix, &opt, &err), GX_OK);
    c->on_cpu = open_session(c->cpu);
    c->tests = calloc(N_QUERIES, sizeof *c->tests);
    assert_non_null(c->tests);
    for (uint32_t i = 0; i < N_QUERIES; ++i) {
        make_query(&c->tests[i], &c->random, c->f.c, i % 16 ? 4 : 30);
        c->queries[i] = (gx_query)GX_TEXT_QUERY(c->tests[i].text, strlen(c->tests[i].text));
    }
}

static void close_scene(scene *c)
{
    gx_session_close(c->on_cpu);
    gx_engine_close(c->cpu);
    close_collection(&c->f);
    free(c->tests);
}

static gx_engine_options on_gpu(gx_residency_policy policy, double share)
{
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    opt.kind = GX_ENGINE_GPU;
    opt.residency_policy = policy;
    opt.resident_share = share;
    return opt;
}

static gx_engine *open_gpu(const scene *c, const engine_row *row, const gx_engine_options *opt)
{
    gx_error err = {0};
    gx_engine_options own = *opt;
    gx_engine *en;
    own.n_devices = row->n_devices;
    for (uint32_t i = 0; i < row->n_devices; ++i)
        own.devices[i] = (int)i;
    if (gx_engine_open(&en, c->f.ix, &own, &err) != GX_OK)
        fail_msg("%s", err.text);
    return en;
}

/* Queries [first, first + n), n at a time or one. */
static void search(gx_session *s, const scene *c, uint32_t first, uint32_t n, bool alone, const gx_query_options *opt,
                   answers *out)
{
    gx_error err = {0};
    for (uint32_t i = 0; i < n; i += alone ? 1 : n) {
        const gx_results r = {.size = sizeof r,
                              .docids = out->docids + (size_t)i * K,
                              .scores = out->scores + (size_t)i * K,
                              .n_hits = out->n_hits + i};
        if (gx_search(s, c->queries + first + i, alone ? 1 : n, opt, &r, &err) != GX_OK)
            fail_msg("%s", err.text);
    }
}

/* Whether a batch's answers are the CPU's, in one of the ways. */
static void check(scene *c, gx_session *s, gen_rng *r, const char *name)
{
    static _Thread_local answers want, got;
    gx_query_options opt = GX_QUERY_OPTIONS;
    const search_variant way = ways[gen_below(r, N_SEARCH_VARIANTS)];
    const uint32_t n = gen_below(r, 3) ? 1 + gen_below(r, 40) : 1 + gen_below(r, 5),
                   first = gen_below(r, N_QUERIES - n);
    opt.op = (gx_op)gen_below(r, 3);
    opt.preset = (gx_preset)gen_below(r, GX_N_PRESETS);
    opt.k = K;
    search(c->on_cpu, c, first, n, false, &opt, &want);
    opt.prune = way.prune;
    opt.algorithm = way.algorithm;
    search(s, c, first, n, way.alone, &opt, &got);
    for (uint32_t i = 0; i < n; ++i) {
        const size_t at = (size_t)i * K, m = want.n_hits[i];
        if (got.n_hits[i] != m || memcmp(got.docids + at, want.docids + at, m * sizeof *got.docids) != 0 ||
            memcmp(got.scores + at, want.scores + at, m * sizeof *got.scores) != 0)
            fail_msg("%s: collection seed %llu, op %d, algorithm %d, prune %d: another answer than the CPU's to '%s'",
                     name, (unsigned long long)c->f.c->seed, opt.op, opt.algorithm, opt.prune,
                     c->queries[first + i].text);
    }
}

void answers_with_lists_in_host_memory_are_the_cpus(void **state)
{
    static const double shares[] = {0, .03, .2, .6, .99};
    const engine_row *row = *state;
    static scene c;
    if (!has_gpu(row))
        skip();
    for (uint32_t i = 0; i < 15; ++i) {
        gen_rng r = {test_seed() + 300 + i};
        char name[64];
        gx_engine_options opt =
            on_gpu((gx_residency_policy)(i % GX_N_RESIDENCY_POLICIES), shares[(i + i / GX_N_RESIDENCY_POLICIES) % 5]);
        opt.map_memory = gen_below(&r, 3) ? UINT64_MAX : gen_below(&r, 20000);
        snprintf(name, sizeof name, "policy %d, share %g", opt.residency_policy, opt.resident_share);
        open_scene(&c, test_seed() + 300 + i, i % 3 ? 3000 : 9000, pick_codec(i));
        gx_engine *en = open_gpu(&c, row, &opt);
        assert_non_null(strstr(gx_engine_describe(en), "in pinned host memory"));
        gx_session *s[2] = {open_session(en), open_session(en)};
        for (uint32_t turn = 0; turn < 12; ++turn)
            check(&c, s[turn % 2], &r, name);
        const gx_search_stats *w = gx_session_stats(s[0]);
        assert_true(w->lists > 0 && w->list_bytes > w->lists && w->resident_lists <= w->lists);
        assert_true(w->resident_bytes <= w->list_bytes);
        if (opt.resident_share == 0)
            assert_int_equal(w->resident_lists, 0);
        else if (opt.resident_share > .5 && opt.residency_policy == GX_RESIDENCY_STATIC)
            assert_true(w->resident_lists > 0); /* others may still be on their way */
        gx_session_close(s[0]);
        gx_session_close(s[1]);
        gx_engine_close(en);
        close_scene(&c);
    }
}

/* The least device_memory with which an engine opens, in steps of 4 KiB. */
static uint64_t least_memory(const scene *c, double share)
{
    uint64_t refused = 1 << 12, opens = 64 << 20;
    while (opens - refused > 4096) {
        gx_engine_options opt = on_gpu(GX_RESIDENCY_GDSF, share);
        gx_engine *en;
        gx_error err = {0};
        opt.device_memory = refused + (opens - refused) / 2;
        const gx_status st = gx_engine_open(&en, c->f.ix, &opt, &err);
        if (st == GX_OK) {
            opens = opt.device_memory;
            gx_engine_close(en);
        } else {
            assert_int_equal(st, GX_ENOGPU);
            assert_non_null(strstr(err.text, "even with its lists in host memory"));
            refused = opt.device_memory;
        }
    }
    return opens;
}

/* Bytes of the GPU that nobody has taken. */
static uint64_t free_memory(void)
{
    gx_device *all = NULL;
    uint32_t n = 0;
    assert_int_equal(gx_devices(&all, &n, NULL), GX_OK);
    const uint64_t bytes = all[0].free_memory;
    free(all);
    return bytes;
}

/* Queries of few words, as they come. */
static void check_plain(const scene *c, gx_session *s)
{
    static answers want, got;
    gx_query_options opt = GX_QUERY_OPTIONS;
    for (uint32_t i = 0; i < 60; i += 12) {
        opt.op = (gx_op)(i / 12 % 3);
        opt.k = K;
        search(c->on_cpu, c, 1 + i, 12, false, &opt, &want);
        search(s, c, 1 + i, 12, false, &opt, &got);
        for (uint32_t q = 0; q < 12; ++q) {
            const size_t at = (size_t)q * K, n = want.n_hits[q];
            assert_int_equal(got.n_hits[q], n);
            assert_memory_equal(got.docids + at, want.docids + at, n * sizeof *got.docids);
            assert_memory_equal(got.scores + at, want.scores + at, n * sizeof *got.scores);
        }
    }
}

void an_index_larger_than_device_memory_is_searched_within_it(void **state)
{
    const engine_row *row = *state;
    static scene c;
    if (!has_gpu(row))
        skip();
    open_scene(&c, test_seed() + 350, 20000, pick_codec(1));
    const uint64_t least = least_memory(&c, 1), payload = c.f.ix->payload_words * 4;
    gx_engine_options opt = on_gpu(GX_RESIDENCY_GDSF, 1);
    for (uint32_t i = 0; i < 4; ++i) {
        gen_rng r = {test_seed() + 351 + i};
        opt.device_memory = i < 2 ? least + i * payload / 3 : least + (4 << 20);
        opt.resident_share = i < 2 ? 1 : .4; /* with 4 MiB more all would fit */
        const uint64_t before = free_memory();
        gx_engine *en = open_gpu(&c, row, &opt);
        const bool emulated = strstr(gx_engine_describe(en), "emulated") != NULL;
        assert_non_null(strstr(gx_engine_describe(en), "% of the payload, the rest in pinned host memory"));
        gx_session *s = open_session(en);
        check_plain(&c, s);
        for (uint32_t turn = 0; i >= 2 && turn < 6; ++turn)
            check(&c, s, &r, "within the memory");
        if (emulated)
            assert_true(before - free_memory() <= opt.device_memory);
        gx_session_close(s);
        gx_engine_close(en);
    }
    opt.resident_share = 1;
    opt.device_memory = 64 << 20; /* it fits: nothing is in host memory, and nothing is counted */
    gx_engine *en = open_gpu(&c, row, &opt);
    gx_session *s = open_session(en);
    assert_null(strstr(gx_engine_describe(en), "payload"));
    check(&c, s, &c.random, "whole");
    assert_int_equal(gx_session_stats(s)->lists, 0);
    gx_session_close(s);
    gx_engine_close(en);
    close_scene(&c);
}

typedef struct worker {
    pthread_t thread;
    scene *c;
    gx_session *s;
    gen_rng r;
    uint32_t n_wrong;
} worker;

static void *work(void *user)
{
    worker *w = user;
    static _Thread_local answers want, got;
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.k = K;
    for (uint32_t turn = 0; turn < 25; ++turn) {
        const uint32_t n = 1 + gen_below(&w->r, 40), first = gen_below(&w->r, N_QUERIES - n);
        opt.op = (gx_op)gen_below(&w->r, 3);
        gx_session *cpu = NULL;
        gx_error err;
        if (gx_session_open(&cpu, w->c->cpu, &err) != GX_OK)
            ++w->n_wrong;
        search(cpu, w->c, first, n, false, &opt, &want);
        search(w->s, w->c, first, n, turn % 4 == 0, &opt, &got);
        for (uint32_t i = 0; i < n; ++i)
            w->n_wrong += got.n_hits[i] != want.n_hits[i] ||
                          memcmp(got.docids + (size_t)i * K, want.docids + (size_t)i * K, want.n_hits[i] * 4) != 0 ||
                          memcmp(got.scores + (size_t)i * K, want.scores + (size_t)i * K, want.n_hits[i] * 4) != 0;
        gx_session_close(cpu);
    }
    return NULL;
}

/* Lists come and go while other sessions search. */
void a_pool_of_lists_is_shared_by_concurrent_sessions(void **state)
{
    const engine_row *row = *state;
    static scene c;
    if (!has_gpu(row))
        skip();
    open_scene(&c, test_seed() + 360, 4000, pick_codec(1));
    for (int policy = 0; policy < GX_RESIDENCY_STATIC; ++policy) {
        const gx_engine_options opt = on_gpu((gx_residency_policy)policy, .15);
        gx_engine *en = open_gpu(&c, row, &opt);
        worker workers[N_SESSIONS];
        for (uint32_t i = 0; i < N_SESSIONS; ++i) {
            workers[i] = (worker){.c = &c, .s = open_session(en), .r = {test_seed() + 361 + i}};
            assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (uint32_t i = 0; i < N_SESSIONS; ++i) {
            pthread_join(workers[i].thread, NULL);
            if (workers[i].n_wrong)
                fail_msg("seed %llu, policy %d: %u wrong answers", (unsigned long long)test_seed(), policy,
                         workers[i].n_wrong);
            gx_session_close(workers[i].s);
        }
        gx_engine_close(en);
    }
    close_scene(&c);
}

/* The first engine pins the pages of the index file that its lists lie in; the first and the last of these pages hold
 * bytes of other sections too, which the second engine copies. */
void an_engine_opens_beside_one_that_has_pinned_the_lists(void **state)
{
    const engine_row *row = *state;
    static scene c;
    if (!has_gpu(row))
        skip();
    for (uint32_t i = 0; i < 4; ++i) {
        open_scene(&c, test_seed() + 365 + i, 300 + 1500 * i, pick_codec(i));
        const gx_engine_options eo = on_gpu(GX_RESIDENCY_GDSF, .5);
        gx_engine *first = open_gpu(&c, row, &eo), *second = open_gpu(&c, row, &eo);
        gx_session *s[] = {open_session(first), open_session(second)};
        check(&c, s[0], &c.random, "the engine that pins");
        check(&c, s[1], &c.random, "the engine beside it");
        gx_session_close(s[0]);
        gx_engine_close(first); /* the lists stay pinned */
        check(&c, s[1], &c.random, "the engine that is left");
        gx_session_close(s[1]);
        gx_engine_close(second);
        close_scene(&c);
    }
}

/* A log of two terms, then queries of these and of others. */
void lists_of_a_warming_log_are_there_before_the_first_query(void **state)
{
    const engine_row *row = *state;
    static scene c;
    static answers got;
    char path[] = "/tmp/gpuidx-test-warm-XXXXXX";
    if (!has_gpu(row))
        skip();
    open_scene(&c, test_seed() + 370, 3000, pick_codec(1));
    const int fd = mkstemp(path);
    FILE *log = fd < 0 ? NULL : fdopen(fd, "w");
    assert_non_null(log);
    for (int i = 0; i < 20; ++i)
        fprintf(log, "t0000005 t0000009 unknown\n");
    assert_int_equal(fclose(log), 0);
    c.queries[0] = (gx_query)GX_TEXT_QUERY("t0000009 t0000005", 17);
    c.queries[1] = (gx_query)GX_TEXT_QUERY("t0000030 t0000005", 17);
    for (int policy = 0; policy < GX_N_RESIDENCY_POLICIES; ++policy) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        gx_engine_options eo = on_gpu((gx_residency_policy)policy, .5);
        gx_error err = {0};
        uint64_t n = 0;
        gx_engine *en = open_gpu(&c, row, &eo);
        assert_int_equal(gx_engine_warm(en, "/nonexistent/log", NULL, &n, &err), GX_ENOTFOUND);
        if (gx_engine_warm(en, path, NULL, &n, &err) != GX_OK)
            fail_msg("%s", err.text);
        assert_int_equal(n, 20);
        gx_session *s = open_session(en);
        opt.k = K;
        search(s, &c, 0, 2, false, &opt, &got);
        const gx_search_stats *w = gx_session_stats(s);
        assert_int_equal(w->lists, 4);
        /* static: the shortest lists are there too */
        assert_in_range(w->resident_lists, 3, policy == GX_RESIDENCY_STATIC ? 4 : 3);
        assert_in_range(w->resident_queries, 1, policy == GX_RESIDENCY_STATIC ? 2 : 1);
        assert_true(w->resident_bytes > 0 && w->resident_bytes <= w->list_bytes);
        gx_session_close(s);
        gx_engine_close(en);
    }
    assert_int_equal(gx_engine_warm(c.cpu, path, NULL, NULL, NULL), GX_OK); /* nothing to do */
    unlink(path);
    close_scene(&c);
}

void options_of_residency_out_of_range_are_refused(void **state)
{
    const engine_row *row = *state;
    static scene c;
    gx_engine *en;
    gx_error err = {0};
    open_scene(&c, test_seed() + 380, 300, pick_codec(0));
    const double shares[] = {-.01, 1.01, NAN};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i) {
        gx_engine_options opt = on_gpu(GX_RESIDENCY_STATIC, shares[i]);
        opt.kind = row->kind;
        assert_int_equal(gx_engine_open(&en, c.f.ix, &opt, &err), GX_EUSAGE);
        assert_non_null(strstr(err.text, "resident_share"));
    }
    gx_engine_options opt = on_gpu(GX_N_RESIDENCY_POLICIES, 1);
    opt.kind = row->kind;
    assert_int_equal(gx_engine_open(&en, c.f.ix, &opt, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "residency_policy is 2"));
    close_scene(&c);
}
