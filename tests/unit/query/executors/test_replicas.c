/* An engine on several GPUs. Fakes, which search by the CPU engine, show which GPU does what; where
 * this machine has two GPUs, or emulated ones, these answer as the CPU engine does. */
#include <pthread.h>
#include <unistd.h>

#include "engine/status.h"
#include "index/index.h"
#include "query/engine/session.h"
#include "query/filter/mask.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

#define N_QUERIES 600u
#define K 12u
#define N_FAKES 3u

static gen_collection *collection;
static gx_index *ix;
static char texts[N_QUERIES][80];
static gx_query queries[N_QUERIES];
static uint64_t seed;

typedef struct answer {
    uint32_t docids[N_QUERIES * K], n_hits[N_QUERIES];
    float scores[N_QUERIES * K];
} answer;

static gx_status search(gx_session *s, uint32_t n, gx_query_options opt, answer *a, gx_error *err)
{
    const gx_results out = {sizeof out, a->docids, a->scores, a->n_hits, NULL};
    opt.k = K;
    memset(a, 0xee, sizeof *a);
    return gx_search(s, queries, n, &opt, &out, err);
}

static void assert_same(const answer *a, const answer *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        if (a->n_hits[i] != b->n_hits[i] ||
            memcmp(a->docids + i * K, b->docids + i * K, a->n_hits[i] * sizeof *a->docids) != 0 ||
            memcmp(a->scores + i * K, b->scores + i * K, a->n_hits[i] * sizeof *a->scores) != 0)
            fail_msg("seed %llu: query %u of %u, '%s', has another answer than on the CPU", (unsigned long long)seed, i,
                     n, texts[i]);
    }
}

/* The CPU engine's answers; words (NULL: none) are those of a mask. */
static answer *reference_of(const gx_index *index, gx_query_options opt, const uint64_t *words)
{
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    gx_engine *en;
    gx_session *s;
    gx_mask *mask = NULL;
    gx_error err = {0};
    answer *a = malloc(sizeof *a);
    assert_non_null(a);
    eo.kind = GX_ENGINE_CPU;
    assert_int_equal(gx_engine_open(&en, index, &eo, &err), GX_OK);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    if (words)
        assert_int_equal(gx_mask_open(&mask, en, words, &err), GX_OK);
    opt.mask = mask;
    assert_int_equal(search(s, N_QUERIES, opt, a, &err), GX_OK);
    gx_mask_close(mask);
    gx_session_close(s);
    gx_engine_close(en);
    return a;
}

static answer *reference(gx_query_options opt, const uint64_t *words)
{
    return reference_of(ix, opt, words);
}

/* A mask of the index, or of any with fewer documents. */
static uint64_t *random_words(void)
{
    gen_rng r = {seed + 5};
    uint64_t *words = malloc((ix->n_docs / 64 + 1) * sizeof *words);
    assert_non_null(words);
    for (uint32_t i = 0; i <= ix->n_docs / 64; ++i)
        words[i] = gen_u64(&r) | gen_u64(&r);
    return words;
}

/* ---- fakes ---- */

typedef struct fake_gpu {
    void *cpu; /* its state */
    int number;
} fake_gpu;

typedef struct fake_workspace {
    void *cpu;
    fake_gpu *gpu;
} fake_workspace;

/* By the GPU's number. Guarded by fake_lock where threads write. */
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t n_states, n_docs_on[8], n_workspaces[8], n_masks[8], n_searched[8];
static int too_small = -1, failing = -1, without_workspaces = -1, without_masks = -1;

static gx_status fake_state_open(void **state, const gx_index *index, const gx_engine_options *opt, gx_error *err)
{
    *state = NULL;
    if (opt->device < 0 || opt->device >= 8)
        return gx_fail(err, GX_ENOGPU, "there is no GPU %d", opt->device);
    if (opt->device == too_small)
        return gx_fail(err, GX_ENOGPU, "the index needs more memory on GPU %d", opt->device);
    fake_gpu *g = calloc(1, sizeof *g);
    g->number = opt->device;
    assert_int_equal(gx_executor_cpu.state_open(&g->cpu, index, opt, err), GX_OK);
    __atomic_add_fetch(&n_states, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&n_docs_on[g->number], index->n_docs, __ATOMIC_SEQ_CST);
    *state = g;
    return GX_OK;
}

static void fake_state_close(void *state)
{
    fake_gpu *g = state;
    gx_executor_cpu.release_index(g->cpu);
    free(g);
    __atomic_sub_fetch(&n_states, 1, __ATOMIC_SEQ_CST);
}

static const char *fake_describe(const void *state)
{
    static const char *const names[] = {"GPU 0: a fake", "GPU 1: a fake", "GPU 2: a fake"};
    return names[((const fake_gpu *)state)->number];
}

static gx_status fake_workspace_open(void **exec, void *state, gx_error *err)
{
    fake_gpu *g = state;
    *exec = NULL;
    if (g->number == without_workspaces)
        return gx_fail(err, GX_ECUDA, "no memory for a session on GPU %d", g->number);
    fake_workspace *w = calloc(1, sizeof *w);
    w->gpu = g;
    assert_int_equal(gx_executor_cpu.workspace_open(&w->cpu, g->cpu, err), GX_OK);
    n_workspaces[g->number] += 1;
    *exec = w;
    return GX_OK;
}

static void fake_workspace_close(void *exec)
{
    fake_workspace *w = exec;
    n_workspaces[w->gpu->number] -= 1;
    gx_executor_cpu.workspace_close(w->cpu);
    free(w);
}

static gx_status fake_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work,
                          gx_error *err)
{
    fake_workspace *w = exec;
    const int number = w->gpu->number;
    for (uint32_t i = 0; i < n; ++i) {
        if (plans[i].mask && plans[i].mask->device != &n_masks[number])
            return gx_fail(err, GX_EINTERNAL, "GPU %d was given a mask that it does not have", number);
    }
    pthread_mutex_lock(&fake_lock);
    n_searched[number] += n;
    pthread_mutex_unlock(&fake_lock);
    if (number == failing)
        return gx_fail(err, GX_ECUDA, "GPU %d fell off the bus", number);
    return gx_executor_cpu.run(w->cpu, plans, n, hits, work, err);
}

static gx_status fake_mask_open(void **mask, void *state, const uint32_t *words, gx_error *err)
{
    const int number = ((const fake_gpu *)state)->number;
    (void)words;
    *mask = NULL;
    if (number == without_masks)
        return gx_fail(err, GX_ECUDA, "no memory for a mask on GPU %d", number);
    n_masks[number] += 1;
    *mask = &n_masks[number];
    return GX_OK;
}

static void fake_mask_close(void *state, void *mask)
{
    assert_ptr_equal(mask, &n_masks[((const fake_gpu *)state)->number]);
    n_masks[((const fake_gpu *)state)->number] -= 1;
}

static void fake_memory(const void *exec, uint64_t *device, uint64_t *pinned)
{
    *device = 100 + (uint64_t)((const fake_workspace *)exec)->gpu->number;
    *pinned = 1;
}

static const gx_executor fake = {
    "gpu",    fake_state_open, fake_state_close, fake_describe, fake_workspace_open, fake_workspace_close,
    fake_run, fake_mask_open,  fake_mask_close,  fake_memory};

static gx_engine_options on_fakes(gx_engine_kind kind, uint32_t n)
{
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    opt.kind = kind;
    opt.n_devices = n;
    for (uint32_t i = 0; i < n; ++i)
        opt.devices[i] = (int)i;
    return opt;
}

static gx_engine *open_fakes(gx_engine_kind kind)
{
    const gx_engine_options opt = on_fakes(kind, N_FAKES);
    gx_engine *en;
    gx_error err = {0};
    if (gx_engine_open_with(&en, ix, &opt, &fake, &err) != GX_OK)
        fail_msg("%s", err.text);
    assert_int_equal(gx_engine_get_kind(en), GX_ENGINE_GPU);
    assert_int_equal(n_states, N_FAKES);
    memset(n_searched, 0, sizeof n_searched);
    return en;
}

static void assert_nothing_open(void)
{
    assert_int_equal(n_states, 0);
    for (int i = 0; i < 8; ++i) {
        assert_int_equal(n_workspaces[i], 0);
        assert_int_equal(n_masks[i], 0);
    }
}

/* ---- who does what ---- */

static void sessions_go_to_the_gpu_with_the_fewest(void **state)
{
    (void)state;
    gx_session *s[7];
    gx_error err = {0};
    gx_engine *en = open_fakes(GX_ENGINE_GPU);
    assert_string_equal(gx_engine_describe(en), "GPU 0: a fake, GPU 1: a fake, GPU 2: a fake");
    for (int i = 0; i < 6; ++i)
        assert_int_equal(gx_session_open(&s[i], en, &err), GX_OK);
    for (uint32_t g = 0; g < N_FAKES; ++g)
        assert_int_equal(n_workspaces[g], 2);
    gx_session_close(s[1]);
    assert_int_equal(n_workspaces[1], 1);
    assert_int_equal(gx_session_open(&s[1], en, &err), GX_OK);
    assert_int_equal(n_workspaces[1], 2);
    without_workspaces = 0; /* a session that cannot be opened does not count */
    for (int i = 0; i < 3; ++i)
        assert_int_equal(gx_session_open(&s[6], en, &err), GX_ECUDA);
    assert_null(s[6]);
    without_workspaces = -1;
    assert_int_equal(gx_session_open(&s[6], en, &err), GX_OK);
    assert_int_equal(n_workspaces[0], 3);
    for (int i = 0; i < 7; ++i)
        gx_session_close(s[i]);
    gx_engine_close(en);
    assert_nothing_open();
}

static void a_large_batch_is_split_over_gpus_without_sessions(void **state)
{
    (void)state;
    const gx_query_options opt = GX_QUERY_OPTIONS;
    gx_session *s, *other;
    gx_error err = {0};
    gx_session_memory memory = {.size = sizeof memory};
    answer *want = reference(opt, NULL), *got = malloc(sizeof *got);
    gx_engine *en = open_fakes(GX_ENGINE_GPU);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    gx_session_get_memory(s, &memory);
    assert_int_equal(memory.device, 100);
    assert_int_equal(search(s, 255, opt, got, &err), GX_OK); /* too small */
    assert_int_equal(n_searched[0], 255);
    assert_same(want, got, 255);
    assert_int_equal(search(s, N_QUERIES, opt, got, &err), GX_OK);
    assert_same(want, got, N_QUERIES);
    assert_int_equal(n_searched[0], 255 + 200);
    assert_int_equal(n_searched[1], 200);
    assert_int_equal(n_searched[2], 200);
    assert_true(gx_session_stats(s)->postings > 0);
    gx_session_get_memory(s, &memory);
    assert_int_equal(memory.device, 100 + 101 + 102);
    assert_int_equal(memory.pinned, 3);
    assert_int_equal(gx_session_open(&other, en, &err), GX_OK); /* on GPU 1 */
    memset(n_searched, 0, sizeof n_searched);
    assert_int_equal(search(s, N_QUERIES, opt, got, &err), GX_OK);
    assert_same(want, got, N_QUERIES);
    assert_int_equal(n_searched[0], 300);
    assert_int_equal(n_searched[1], 0);
    assert_int_equal(n_searched[2], 300);
    gx_session_close(other);
    gx_session_close(s);
    without_workspaces = 2; /* it is left out, and not asked again */
    memset(n_searched, 0, sizeof n_searched);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(search(s, N_QUERIES, opt, got, &err), GX_OK);
        assert_same(want, got, N_QUERIES);
        without_workspaces = -1;
    }
    assert_int_equal(n_searched[0], 600);
    assert_int_equal(n_searched[1], 600);
    assert_int_equal(n_searched[2], 0);
    gx_session_close(s);
    gx_engine_close(en);
    assert_nothing_open();
    free(want);
    free(got);
}

static void each_gpu_reads_its_own_mask(void **state)
{
    (void)state;
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_session *s, *other;
    gx_mask *mask;
    gx_error err = {0};
    uint64_t *words = random_words();
    answer *want = reference(opt, words), *got = malloc(sizeof *got);
    gx_engine *en = open_fakes(GX_ENGINE_GPU);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    assert_int_equal(gx_session_open(&other, en, &err), GX_OK);
    assert_int_equal(gx_mask_open(&mask, en, words, &err), GX_OK);
    opt.mask = mask;
    assert_int_equal(search(s, N_QUERIES, opt, got, &err), GX_OK); /* by GPU 0 and 2 */
    assert_same(want, got, N_QUERIES);
    assert_int_equal(search(other, 10, opt, got, &err), GX_OK); /* by GPU 1 */
    assert_same(want, got, 10);
    for (uint32_t g = 0; g < N_FAKES; ++g)
        assert_true(n_searched[g] > 0);
    gx_mask_close(mask);
    without_masks = 2;
    assert_int_equal(gx_mask_open(&mask, en, words, &err), GX_ECUDA);
    assert_non_null(strstr(err.text, "GPU 2"));
    without_masks = -1;
    gx_session_close(s);
    gx_session_close(other);
    gx_engine_close(en);
    assert_nothing_open();
    free(words);
    free(want);
    free(got);
}

static uint32_t n_cancelling, most_cancelling, n_cancels, cancel_after;

static bool cancel(void *user)
{
    const uint32_t now = __atomic_add_fetch(&n_cancelling, 1, __ATOMIC_SEQ_CST);
    assert_ptr_equal(user, &n_cancels);
    if (now > most_cancelling)
        most_cancelling = now;
    usleep(100); /* for others to come in */
    __atomic_sub_fetch(&n_cancelling, 1, __ATOMIC_SEQ_CST);
    return ++n_cancels > cancel_after;
}

static void a_split_batch_is_cancelled_by_one_thread_at_a_time(void **state)
{
    (void)state;
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_session *s;
    gx_error err = {0};
    answer *want = reference(opt, NULL), *got = malloc(sizeof *got);
    gx_engine *en = open_fakes(GX_ENGINE_GPU);
    opt.cancel = cancel;
    opt.user = &n_cancels;
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    cancel_after = UINT32_MAX;
    assert_int_equal(search(s, N_QUERIES, opt, got, &err), GX_OK);
    assert_same(want, got, N_QUERIES);
    assert_true(n_cancels > 0);
    assert_int_equal(most_cancelling, 1);
    cancel_after = n_cancels + 1;
    assert_int_equal(search(s, N_QUERIES, opt, got, &err), GX_ECANCELLED);
    cancel_after = UINT32_MAX;
    assert_int_equal(search(s, N_QUERIES, opt, got, &err), GX_OK);
    assert_same(want, got, N_QUERIES);
    gx_session_close(s);
    gx_engine_close(en);
    assert_nothing_open();
    free(want);
    free(got);
}

/* ---- parts of a collection ---- */

#define N_PARTS 5u

static const uint32_t part_docs[N_PARTS] = {200, 600, 100, 300, 300};

/* Documents [first, first + n) of some that are the same at every call. */
static void build(const char *path, uint32_t first, uint32_t n)
{
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *b;
    gx_error err = {0};
    o.path = path;
    o.analyzer = "whitespace";
    if (gx_builder_open(&b, &o, &err) != GX_OK)
        fail_msg("%s", err.text);
    for (uint32_t d = first; d < first + n; ++d) {
        gen_rng r = {seed + 1000 + d};
        char id[16], text[600];
        size_t len = 0;
        for (uint32_t words = 1 + gen_below(&r, 40); words; --words)
            len += (size_t)snprintf(text + len, sizeof text - len, "t%07u ", gen_below(&r, gen_below(&r, 2) ? 60 : 6));
        const gx_document doc = {
            .size = sizeof doc, .id = id, .id_len = (size_t)sprintf(id, "%u", d), .text = text, .text_len = len};
        if (gx_builder_add(b, &doc, &err) != GX_OK)
            fail_msg("%s", err.text);
    }
    assert_int_equal(gx_builder_finish(b, &err), GX_OK);
    gx_builder_abort(b);
}

/* One index, and a collection of the same documents. */
static void open_both(gx_index **one, gx_index **parts)
{
    char dir[] = "/tmp/gpuidx-test-replicas-XXXXXX", paths[N_PARTS + 2][64], command[80];
    const char *files[N_PARTS];
    gx_error err = {0};
    uint32_t n = 0;
    assert_non_null(mkdtemp(dir));
    for (uint32_t i = 0; i < N_PARTS + 2; ++i)
        snprintf(paths[i], sizeof paths[i], "%s/%u", dir, i);
    for (uint32_t i = 0; i < N_PARTS; n += part_docs[i++])
        build(files[i] = paths[i], n, part_docs[i]);
    build(paths[N_PARTS], 0, n);
    assert_int_equal(gx_collect(paths[N_PARTS + 1], files, N_PARTS, &err), GX_OK);
    assert_int_equal(gx_index_open(one, paths[N_PARTS], NULL, &err), GX_OK);
    assert_int_equal(gx_index_open(parts, paths[N_PARTS + 1], NULL, &err), GX_OK);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void parts_are_spread_over_gpus_by_their_bytes(void **state)
{
    (void)state;
    gx_index *one, *parts;
    gx_error err = {0};
    uint64_t *words = random_words();
    answer *got = malloc(sizeof *got);
    open_both(&one, &parts);
    for (int joined = 0; joined < 2; ++joined) {
        gx_engine_options eo = on_fakes(GX_ENGINE_GPU, 2);
        gx_engine *en;
        gx_session *s[3];
        gx_mask *mask;
        eo.spread = GX_SPREAD_PARTS;
        eo.join = joined ? GX_JOIN_ALWAYS : GX_JOIN_NEVER;
        memset(n_docs_on, 0, sizeof n_docs_on);
        assert_int_equal(gx_engine_open_with(&en, parts, &eo, &fake, &err), GX_OK);
        assert_int_equal(n_states, joined ? 2 : N_PARTS);
        assert_int_equal(n_docs_on[0] + n_docs_on[1], 1500); /* each once */
        assert_in_range(n_docs_on[0], 600, 900);
        assert_string_equal(gx_engine_describe(en), "GPU 0: a fake, GPU 1: a fake");
        assert_int_equal(gx_mask_open(&mask, en, words, &err), GX_OK);
        for (int i = 0; i < 3; ++i) /* each begins at another part */
            assert_int_equal(gx_session_open(&s[i], en, &err), GX_OK);
        for (int i = 0; i < 12; ++i) {
            gx_query_options opt = GX_QUERY_OPTIONS;
            opt.op = (gx_op)(i % 3);
            answer *want = reference_of(one, opt, i < 6 ? NULL : words);
            opt.mask = i < 6 ? NULL : mask;
            assert_int_equal(search(s[i / 3 % 3], N_QUERIES, opt, got, &err), GX_OK);
            assert_same(want, got, N_QUERIES);
            free(want);
        }
        for (int i = 0; i < 3; ++i)
            gx_session_close(s[i]);
        gx_mask_close(mask);
        gx_engine_close(en);
        assert_nothing_open();
    }
    free(words);
    free(got);
    gx_index_close(one);
    gx_index_close(parts);
}

static void what_cannot_be_spread_is_refused(void **state)
{
    (void)state;
    gx_index *one, *parts;
    gx_engine *en;
    gx_error err = {0};
    gx_engine_options opt = on_fakes(GX_ENGINE_AUTO, 2);
    open_both(&one, &parts);
    opt.spread = GX_SPREAD_PARTS;
    assert_int_equal(gx_engine_open_with(&en, one, &opt, &fake, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "is one file"));
    opt.spread = (gx_spread)2;
    assert_int_equal(gx_engine_open_with(&en, parts, &opt, &fake, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "spread is 2"));
    opt.spread = GX_SPREAD_PARTS;
    opt.join = GX_JOIN_NEVER;
    too_small = 1; /* then all parts are on the CPU */
    assert_int_equal(gx_engine_open_with(&en, parts, &opt, &fake, &err), GX_OK);
    assert_int_equal(gx_engine_get_kind(en), GX_ENGINE_CPU);
    assert_int_equal(n_states, 0);
    gx_engine_close(en);
    opt.kind = GX_ENGINE_GPU;
    assert_int_equal(gx_engine_open_with(&en, parts, &opt, &fake, &err), GX_ENOGPU);
    assert_non_null(strstr(err.text, "more memory on GPU 1"));
    too_small = -1;
    assert_nothing_open();
    gx_index_close(one);
    gx_index_close(parts);
}

/* ---- what goes wrong ---- */

static void a_list_of_gpus_that_is_wrong_is_refused(void **state)
{
    (void)state;
    gx_engine_options opt = on_fakes(GX_ENGINE_AUTO, 3);
    gx_engine *en;
    gx_error err = {0};
    opt.devices[2] = 0;
    assert_int_equal(gx_engine_open_with(&en, ix, &opt, &fake, &err), GX_EUSAGE);
    assert_null(en);
    assert_non_null(strstr(err.text, "GPU 0 is listed twice"));
    opt.n_devices = GX_MAX_DEVICES + 1;
    assert_int_equal(gx_engine_open_with(&en, ix, &opt, &fake, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "at most 16"));
    for (int round = 0; round < 2; ++round) { /* one that is not there; one that is too small */
        opt = on_fakes(GX_ENGINE_GPU, 3);
        opt.devices[1] = round ? 1 : 8;
        too_small = round ? 1 : -1;
        assert_int_equal(gx_engine_open_with(&en, ix, &opt, &fake, &err), GX_ENOGPU);
        assert_null(en);
        assert_non_null(strstr(err.text, round ? "more memory on GPU 1" : "no GPU 8"));
        assert_int_equal(n_states, 0);
        opt.kind = GX_ENGINE_AUTO;
        assert_int_equal(gx_engine_open_with(&en, ix, &opt, &fake, &err), GX_OK);
        assert_int_equal(gx_engine_get_kind(en), GX_ENGINE_CPU);
        assert_int_equal(gx_engine_get_fallback(en, &err), GX_ENOGPU);
        assert_non_null(strstr(err.text, round ? "more memory on GPU 1" : "no GPU 8"));
        gx_engine_close(en);
    }
    too_small = -1;
    opt = on_fakes(GX_ENGINE_GPU, 1); /* one, which is not number 0 */
    opt.devices[0] = 2;
    assert_int_equal(gx_engine_open_with(&en, ix, &opt, &fake, &err), GX_OK);
    assert_string_equal(gx_engine_describe(en), "GPU 2: a fake");
    gx_engine_close(en);
    assert_nothing_open();
}

static void a_gpu_that_fails_midway_is_replaced_by_the_cpu(void **state)
{
    (void)state;
    const gx_query_options opt = GX_QUERY_OPTIONS;
    gx_session *s;
    gx_error err = {0};
    answer *want = reference(opt, NULL), *got = malloc(sizeof *got);
    gx_engine *en = open_fakes(GX_ENGINE_AUTO);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    failing = 1;
    assert_int_equal(search(s, N_QUERIES, opt, got, &err), GX_OK);
    assert_same(want, got, N_QUERIES);
    assert_int_equal(gx_engine_get_fallback(en, &err), GX_ECUDA);
    assert_non_null(strstr(err.text, "GPU 1 fell off the bus"));
    gx_session_close(s);
    gx_engine_close(en);
    en = open_fakes(GX_ENGINE_GPU);
    assert_int_equal(gx_session_open(&s, en, &err), GX_OK);
    assert_int_equal(search(s, N_QUERIES, opt, got, &err), GX_ECUDA);
    assert_non_null(strstr(err.text, "GPU 1 fell off the bus"));
    failing = -1;
    gx_session_close(s);
    gx_engine_close(en);
    assert_nothing_open();
    free(want);
    free(got);
}

/* ---- GPUs ---- */

/* An engine on two GPUs; false: this machine does not have them. */
static bool open_two(gx_engine **en, uint64_t device_memory)
{
    gx_engine_options opt = on_fakes(GX_ENGINE_GPU, 0);
    gx_device *all;
    uint32_t n;
    gx_error err = {0};
    if (gx_devices(&all, &n, &err) != GX_OK)
        return false;
    for (uint32_t i = 0; i < n && opt.n_devices < 2; ++i) {
        if (all[i].usable)
            opt.devices[opt.n_devices++] = all[i].number;
    }
    free(all);
    opt.device_memory = device_memory;
    if (opt.n_devices < 2)
        return false;
    if (gx_engine_open(en, ix, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    return true;
}

typedef struct worker {
    pthread_t thread;
    gx_session *s;
    gx_query_options opt;
    answer got;
    gx_status st;
    gx_error err;
} worker;

static void *work(void *user)
{
    worker *w = user;
    for (int turn = 0; turn < 2 && w->st == GX_OK; ++turn)
        w->st = search(w->s, N_QUERIES, w->opt, &w->got, &w->err);
    return NULL;
}

/* From one session, whose batches are split; then from three at once. */
static void two_gpus_answer_as_the_cpu_does(void **state)
{
    (void)state;
    gx_engine *en;
    gx_mask *mask;
    gx_error err = {0};
    if (!open_two(&en, 0))
        skip();
    uint64_t *words = random_words();
    worker *w = calloc(3, sizeof *w);
    assert_int_equal(gx_mask_open(&mask, en, words, &err), GX_OK);
    for (uint32_t n = 1; n <= 3; n += 2) {
        for (uint32_t i = 0; i < n; ++i)
            assert_int_equal(gx_session_open(&w[i].s, en, &err), GX_OK);
        for (uint32_t turn = 0; turn < 6; ++turn) {
            gx_query_options opt = GX_QUERY_OPTIONS;
            opt.op = (gx_op)(turn % 3);
            opt.preset = turn == 4 ? GX_BM25_LUCENE : GX_BM25;
            answer *want = reference(opt, turn < 3 ? NULL : words);
            opt.mask = turn < 3 ? NULL : mask;
            for (uint32_t i = 0; i < n; ++i) {
                w[i].opt = opt;
                assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
            }
            for (uint32_t i = 0; i < n; ++i)
                pthread_join(w[i].thread, NULL);
            for (uint32_t i = 0; i < n; ++i) {
                if (w[i].st != GX_OK)
                    fail_msg("%s", w[i].err.text);
                assert_same(want, &w[i].got, N_QUERIES);
            }
            free(want);
        }
        for (uint32_t i = 0; i < n; ++i)
            gx_session_close(w[i].s);
    }
    gx_mask_close(mask);
    gx_engine_close(en);
    free(words);
    free(w);
}

static void gpus_that_are_not_there_or_too_small_are_named(void **state)
{
    (void)state;
    gx_engine_options opt = on_fakes(GX_ENGINE_GPU, 2);
    gx_engine *en;
    gx_error err = {0};
    if (!open_two(&en, 0))
        skip();
    const bool emulated = strstr(gx_engine_describe(en), "emulated") != NULL;
    gx_engine_close(en);
    opt.devices[1] = 1000;
    assert_int_equal(gx_engine_open(&en, ix, &opt, &err), GX_ENOGPU);
    assert_non_null(strstr(err.text, "no GPU 1000"));
    opt.devices[1] = 1;
    opt.device_memory = 1 << 20;
    assert_int_equal(gx_engine_open(&en, ix, &opt, &err), GX_ENOGPU);
    assert_non_null(strstr(err.text, "MiB may be used"));
    if (!emulated)
        return;
    opt.device_memory = 0;
    setenv("GX_EMULATED_MEMORY", "513", 1); /* MiB, of the second GPU; half a GiB stays free */
    assert_int_equal(gx_engine_open(&en, ix, &opt, &err), GX_ENOGPU);
    assert_null(en);
    assert_non_null(strstr(err.text, "1.0 MiB may be used"));
    opt.kind = GX_ENGINE_AUTO;
    assert_int_equal(gx_engine_open(&en, ix, &opt, &err), GX_OK);
    assert_int_equal(gx_engine_get_kind(en), GX_ENGINE_CPU);
    gx_engine_close(en);
    unsetenv("GX_EMULATED_MEMORY");
    opt.kind = GX_ENGINE_GPU;
    assert_int_equal(gx_engine_open(&en, ix, &opt, &err), GX_OK);
    gx_engine_close(en);
}

/* ---- the program ---- */

static int open_index(void **state)
{
    char path[] = "/tmp/gpuidx-test-replicas-XXXXXX";
    const char *given = getenv("GX_TEST_SEED");
    gx_error err = {0};
    (void)state;
    seed = given ? strtoull(given, NULL, 0) : 20240611;
    gen_rng r = {seed + 1};
    const int fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    unlink(path);
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    collection = gen_open(seed, GEN_CLUSTERED, 4000, 60);
    if (gen_write(collection, path, codec, codec, &err) != GX_OK || gx_index_open(&ix, path, NULL, &err) != GX_OK) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    unlink(path);
    for (uint32_t i = 0; i < N_QUERIES; ++i) {
        size_t len = 0;
        for (uint32_t n = 1 + gen_below(&r, 4); n; --n)
            len += (size_t)snprintf(texts[i] + len, sizeof texts[i] - len, "t%07u ",
                                    gen_below(&r, gen_below(&r, 3) ? 60 : 8));
        queries[i] = (gx_query)GX_TEXT_QUERY(texts[i], len);
    }
    return 0;
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
        cmocka_unit_test(sessions_go_to_the_gpu_with_the_fewest),
        cmocka_unit_test(a_large_batch_is_split_over_gpus_without_sessions),
        cmocka_unit_test(each_gpu_reads_its_own_mask),
        cmocka_unit_test(a_split_batch_is_cancelled_by_one_thread_at_a_time),
        cmocka_unit_test(parts_are_spread_over_gpus_by_their_bytes),
        cmocka_unit_test(what_cannot_be_spread_is_refused),
        cmocka_unit_test(a_list_of_gpus_that_is_wrong_is_refused),
        cmocka_unit_test(a_gpu_that_fails_midway_is_replaced_by_the_cpu),
        cmocka_unit_test(two_gpus_answer_as_the_cpu_does),
        cmocka_unit_test(gpus_that_are_not_there_or_too_small_are_named),
    };
    return cmocka_run_group_tests(tests, open_index, close_index);
}
