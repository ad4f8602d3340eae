/* Engines and sessions: many threads on one engine, and a CPU in place of a GPU that fails. */
#include <pthread.h>
#include <unistd.h>

#include "engine/status.h"
#include "query/engine/session.h"
#include "query/filter/mask.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

#define N_QUERIES 150u
#define K 20u

static gen_collection *collection;
static gx_index *ix;
static char texts[N_QUERIES][80];
static gx_query queries[N_QUERIES];

typedef struct answer {
    uint32_t docids[N_QUERIES * K], n_hits[N_QUERIES];
    float scores[N_QUERIES * K];
} answer;

static gx_status search_masked(gx_session *s, const gx_mask *mask, answer *a, gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    const gx_results out = {sizeof out, a->docids, a->scores, a->n_hits, NULL};
    opt.k = K;
    opt.mask = mask;
    return gx_search(s, queries, N_QUERIES, &opt, &out, err);
}

static gx_status search(gx_session *s, answer *a, gx_error *err)
{
    return search_masked(s, NULL, a, err);
}

static void assert_same(const answer *a, const answer *b)
{
    for (uint32_t i = 0; i < N_QUERIES; ++i) {
        assert_int_equal(a->n_hits[i], b->n_hits[i]);
        assert_memory_equal(a->docids + i * K, b->docids + i * K, a->n_hits[i] * sizeof *a->docids);
        assert_memory_equal(a->scores + i * K, b->scores + i * K, a->n_hits[i] * sizeof *a->scores);
    }
}

static gx_engine *cpu_engine(void)
{
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    gx_engine *en;
    gx_error err = {0};
    opt.kind = GX_ENGINE_CPU;
    if (gx_engine_open(&en, ix, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    return en;
}

static answer *reference(void)
{
    gx_session *s;
    gx_error err = {0};
    gx_engine *en = cpu_engine();
    answer *a = calloc(1, sizeof *a);
    assert_non_null(a);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    assert_int_equal(search(s, a, &err), GX_OK);
    gx_session_close(s);
    gx_engine_close(en);
    return a;
}

/* ---- threads ---- */

typedef struct worker {
    pthread_t thread;
    gx_engine *en;
    answer *a;
    gx_status st;
} worker;

static void *work(void *user)
{
    worker *w = user;
    gx_session *s;
    gx_error err;
    w->st = gx_session_open(&s, w->en, &err);
    if (w->st == GX_OK)
        w->st = search(s, w->a, &err);
    gx_session_close(s);
    return NULL;
}

static void threads_share_an_engine_and_answer_alike(void **state)
{
    (void)state;
    answer *want = reference();
    for (int round = 0; round < 5; ++round) { /* maps and bounds are made anew, by whoever comes first */
        worker workers[4];
        gx_engine *en = cpu_engine();
        for (int i = 0; i < 4; ++i) {
            workers[i] = (worker){.en = en, .a = calloc(1, sizeof(answer))};
            assert_non_null(workers[i].a);
            assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < 4; ++i) {
            pthread_join(workers[i].thread, NULL);
            assert_int_equal(workers[i].st, GX_OK);
            assert_same(workers[i].a, want);
            free(workers[i].a);
        }
        gx_engine_close(en);
    }
    free(want);
}

/* ---- a GPU that fails ---- */

static int runs_left, opens_left, masks_left, masks_open;

static gx_status fake_state_open(void **state, const gx_index *index, const gx_engine_options *opt, gx_error *err)
{
    return gx_executor_cpu.state_open(state, index, opt, err);
}

static const char *fake_describe(const void *state)
{
    (void)state;
    return "GPU 0: a fake";
}

static gx_status fake_exec_open(void **exec, void *state, gx_error *err)
{
    *exec = NULL;
    if (opens_left-- <= 0)
        return gx_fail(err, GX_ECUDA, "no memory on the fake");
    return gx_executor_cpu.workspace_open(exec, state, err);
}

static gx_status fake_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work,
                          gx_error *err)
{
    for (uint32_t i = 0; i < n; ++i) {
        if (plans[i].mask && !plans[i].mask->device)
            return gx_fail(err, GX_ECUDA, "the fake lacks the mask");
    }
    if (runs_left-- <= 0)
        return gx_fail(err, GX_ECUDA, "the fake fell off the bus");
    return gx_executor_cpu.run(exec, plans, n, hits, work, err);
}

static void fake_state_close(void *state)
{
    gx_executor_cpu.release_index(state);
}

static void fake_exec_close(void *exec)
{
    gx_executor_cpu.workspace_close(exec);
}

static gx_status fake_mask_open(void **mask, void *state, const uint32_t *words, gx_error *err)
{
    (void)state, (void)words;
    *mask = NULL;
    if (masks_left-- <= 0)
        return gx_fail(err, GX_ECUDA, "no memory for a mask on the fake");
    ++masks_open;
    *mask = &masks_open;
    return GX_OK;
}

static void fake_mask_close(void *state, void *mask)
{
    (void)state;
    assert_ptr_equal(mask, &masks_open);
    --masks_open;
}

static const gx_executor fake = {"gpu",           fake_state_open, fake_state_close, fake_describe,  fake_exec_open,
                                 fake_exec_close, fake_run,        fake_mask_open,   fake_mask_close};

static gx_engine *fake_engine(gx_engine_kind kind)
{
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    gx_engine *en;
    gx_error err = {0};
    opt.kind = kind;
    assert_int_equal(gx_engine_open_with(&en, ix, &opt, &fake, &err), GX_OK);
    assert_int_equal(gx_engine_get_kind(en), GX_ENGINE_GPU);
    return en;
}

static void a_failing_gpu_is_replaced_by_the_cpu_and_the_engine_says_why(void **state)
{
    (void)state;
    gx_session *s, *other;
    gx_error err = {0};
    answer *want = reference(), *got = calloc(1, sizeof *got);
    assert_non_null(got);
    gx_engine *en = fake_engine(GX_ENGINE_AUTO);
    runs_left = 1;
    opens_left = 2;
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    assert_int_equal(gx_session_open(&other, en, &err), GX_OK);
    assert_int_equal(search(s, got, &err), GX_OK); /* by the GPU */
    assert_int_equal(gx_engine_get_fallback(en, &err), GX_OK);
    assert_string_equal(err.text, "");
    assert_int_equal(search(s, got, &err), GX_OK); /* it fails; the CPU answers */
    assert_string_equal(err.text, "");
    assert_int_equal(gx_engine_get_fallback(en, &err), GX_ECUDA);
    assert_int_equal(err.status, GX_ECUDA);
    assert_non_null(strstr(err.text, "fell off the bus"));
    assert_same(got, want);
    assert_int_equal(search(s, got, &err), GX_OK);
    assert_int_equal(search(other, got, &err), GX_OK); /* fails for this session too */
    assert_string_equal(err.text, "");
    assert_int_equal(gx_engine_get_fallback(en, NULL), GX_ECUDA);
    assert_same(got, want);
    gx_session_close(s);
    gx_session_close(other);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK); /* no room for a third session on the GPU */
    assert_int_equal(search(s, got, &err), GX_OK);
    assert_same(got, want);
    gx_session_close(s);
    gx_engine_close(en);
    free(want);
    free(got);
}

static void a_mask_holds_when_the_cpu_stands_in(void **state)
{
    (void)state;
    gx_session *s;
    gx_mask *mask;
    gx_error err = {0};
    answer *want = calloc(1, sizeof *want), *got = calloc(1, sizeof *got);
    uint64_t *words = malloc((ix->n_docs / 64 + 1) * sizeof *words);
    assert_true(want && got && words);
    memset(words, 0x5a, (ix->n_docs / 64 + 1) * sizeof *words);
    gx_engine *en = cpu_engine();
    assert_int_equal(gx_mask_open(&mask, en, words, &err), GX_OK);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    assert_int_equal(search_masked(s, mask, want, &err), GX_OK);
    gx_session_close(s);
    gx_mask_close(mask);
    gx_engine_close(en);
    for (int copied = 0; copied < 2; ++copied) { /* to the GPU, which then fails; or not even that */
        en = fake_engine(GX_ENGINE_AUTO);
        runs_left = 0;
        opens_left = 1;
        masks_left = copied;
        assert_int_equal(gx_mask_open(&mask, en, words, &err), GX_OK);
        assert_int_equal(masks_open, copied);
        assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
        assert_int_equal(search_masked(s, mask, got, &err), GX_OK);
        assert_int_equal(gx_engine_get_fallback(en, &err), GX_ECUDA);
        assert_non_null(strstr(err.text, copied ? "fell off the bus" : "lacks the mask"));
        assert_same(got, want);
        gx_session_close(s);
        gx_mask_close(mask);
        assert_int_equal(masks_open, 0);
        gx_engine_close(en);
    }
    en = fake_engine(GX_ENGINE_GPU);
    masks_left = 0;
    assert_int_equal(gx_mask_open(&mask, en, words, &err), GX_ECUDA);
    assert_null(mask);
    assert_non_null(strstr(err.text, "no memory for a mask"));
    gx_engine_close(en);
    free(words);
    free(want);
    free(got);
}

static void a_gpu_that_was_asked_for_by_name_fails_aloud(void **state)
{
    (void)state;
    gx_session *s;
    gx_error err = {0};
    answer *got = calloc(1, sizeof *got);
    assert_non_null(got);
    gx_engine *en = fake_engine(GX_ENGINE_GPU);
    runs_left = 0;
    opens_left = 1;
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    assert_int_equal(search(s, got, &err), GX_ECUDA);
    assert_non_null(strstr(err.text, "fell off the bus"));
    gx_session_close(s);
    assert_int_equal(gx_session_open(&s, en, &err), GX_ECUDA);
    assert_null(s);
    gx_engine_close(en);
    free(got);
}

static void without_a_gpu_auto_says_why_it_is_the_cpu(void **state)
{
    (void)state;
    gx_engine *en;
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    assert_int_equal(gx_engine_open_with(&en, ix, NULL, NULL, &err), GX_OK);
    assert_int_equal(gx_engine_get_kind(en), GX_ENGINE_CPU);
    assert_string_equal(err.text, "");
    assert_int_equal(gx_engine_get_fallback(en, &err), GX_ENOGPU);
    assert_non_null(strstr(err.text, "without CUDA"));
    gx_engine_close(en);
    opt.kind = GX_ENGINE_GPU;
    assert_int_equal(gx_engine_open_with(&en, ix, &opt, NULL, &err), GX_ENOGPU);
    assert_null(en);
}

/* Queries by the ten thousand go through in parts of bounded size. */
static void a_batch_of_any_size_is_answered_in_place(void **state)
{
    (void)state;
    const uint32_t n = 140001;
    gx_session *s;
    gx_error err = {0};
    gx_engine *en = cpu_engine();
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_query *many = malloc(n * sizeof *many);
    uint32_t *docids = malloc(2 * (size_t)n * sizeof *docids), *n_hits = malloc(n * sizeof *n_hits);
    assert_true(many && docids && n_hits);
    for (uint32_t i = 0; i < n; ++i)
        many[i] = i % 3 ? (gx_query)GX_TEXT_QUERY("t0000001", 8) : (gx_query)GX_TEXT_QUERY("nowhere", 7);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    opt.k = 2;
    memset(docids, 0xee, 2 * (size_t)n * sizeof *docids);
    assert_int_equal(gx_search(s, many, n, &opt, &(gx_results){sizeof(gx_results), docids, NULL, n_hits, NULL}, &err),
                     GX_OK);
    for (uint32_t i = 0; i < n; ++i) {
        assert_int_equal(n_hits[i], i % 3 ? 1 : 0);
        assert_int_equal(docids[2 * (size_t)i], i % 3 ? collection->lists[1].docids[0] : 0xeeeeeeee);
        assert_int_equal(docids[2 * (size_t)i + 1], 0xeeeeeeee);
    }
    gx_session_close(s);
    gx_engine_close(en);
    free(many);
    free(docids);
    free(n_hits);
}

static bool always(void *user)
{
    (void)user;
    return true;
}

static void a_search_ends_when_its_time_is_over_or_its_caller_says_so(void **state)
{
    (void)state;
    uint32_t docids[N_QUERIES * K], again[N_QUERIES * K], n_hits[N_QUERIES], n_again[N_QUERIES];
    const gx_results out = {sizeof out, docids, NULL, n_hits, NULL}, more = {sizeof more, again, NULL, n_again, NULL};
    gx_session *s;
    gx_error err = {0};
    gx_engine *en = cpu_engine();
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.k = K;
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    assert_int_equal(gx_search(s, queries, N_QUERIES, &opt, &out, &err), GX_OK);
    opt.seconds = 1e-9;
    assert_int_equal(gx_search(s, queries, N_QUERIES, &opt, &more, &err), GX_EDEADLINE);
    assert_non_null(strstr(err.text, "longer than"));
    opt.seconds = 1000;
    opt.cancel = always;
    assert_int_equal(gx_search(s, queries, N_QUERIES, &opt, &more, &err), GX_ECANCELLED);
    opt.cancel = NULL;
    assert_int_equal(gx_search(s, queries, N_QUERIES, &opt, &more, &err), GX_OK);
    for (uint32_t i = 0; i < N_QUERIES; ++i) {
        assert_int_equal(n_hits[i], n_again[i]);
        assert_memory_equal(docids + i * K, again + i * K, n_hits[i] * sizeof *docids);
    }
    opt.seconds = -1;
    assert_int_equal(gx_search(s, queries, N_QUERIES, &opt, &more, &err), GX_EUSAGE);
    gx_session_close(s);
    gx_engine_close(en);
}

static void results_need_a_place(void **state)
{
    (void)state;
    gx_session *s;
    gx_error err = {0};
    gx_engine *en = cpu_engine();
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    assert_int_equal(gx_search(s, queries, 1, NULL, NULL, &err), GX_EUSAGE);
    assert_int_equal(gx_search(s, queries, 1, NULL, &(gx_results){.size = sizeof(gx_results)}, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "docids"));
    gx_session_close(s);
    gx_engine_close(en);
}

static int open_index(void **state)
{
    (void)state;
    char path[] = "/tmp/gpuidx-test-session-XXXXXX";
    gx_error err = {0};
    gen_rng r = {5};
    const int fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    collection = gen_open(5, GEN_CLUSTERED, 20000, 200);
    if (gen_write(collection, path, gx_codecs[1], gx_codecs[1], &err) != GX_OK ||
        gx_index_open(&ix, path, NULL, &err) != GX_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    for (uint32_t i = 0; i < N_QUERIES; ++i) {
        int len = 0;
        for (uint32_t t = 1 + gen_below(&r, 5); t; --t)
            len += sprintf(texts[i] + len, "t%07u ", gen_below(&r, collection->n_terms));
        queries[i] = (gx_query)GX_TEXT_QUERY(texts[i], (size_t)len);
    }
    return unlink(path);
}

static int close_index(void **state)
{
    (void)state;
    gx_index_close(ix);
    gen_close(collection);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_an_engine_and_answer_alike),
        cmocka_unit_test(a_failing_gpu_is_replaced_by_the_cpu_and_the_engine_says_why),
        cmocka_unit_test(a_mask_holds_when_the_cpu_stands_in),
        cmocka_unit_test(a_gpu_that_was_asked_for_by_name_fails_aloud),
        cmocka_unit_test(without_a_gpu_auto_says_why_it_is_the_cpu),
        cmocka_unit_test(a_batch_of_any_size_is_answered_in_place),
        cmocka_unit_test(a_search_ends_when_its_time_is_over_or_its_caller_says_so),
        cmocka_unit_test(results_need_a_place),
    };
    return cmocka_run_group_tests(tests, open_index, close_index);
}
