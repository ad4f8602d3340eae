/* The result cache: answers with a cache against answers without, and the memory that it takes. */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "query/engine/result_cache.h"
#include "query/engine/session.h"
#include "query/filter/mask.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

#define N_TERMS 40u
#define MAX_K 60u
#define N_CASES 6000u
#define N_THREADS 4u

static char path[] = "/tmp/gpuidx-test-result-cache-XXXXXX";
static gx_index *ix;
static uint64_t first_seed = 1000; /* GX_TEST_SEED */

static int open_index(void **state)
{
    (void)state;
    gx_error err = {0};
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    gen_collection *c = gen_open(5, GEN_UNIFORM, 3000, N_TERMS);
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    if (gen_write(c, path, codec, codec, &err) || gx_index_open(&ix, path, NULL, &err))
        fail_msg("%s", err.text);
    gen_close(c);
    return 0;
}

static int close_index(void **state)
{
    (void)state;
    gx_index_close(ix);
    return unlink(path);
}

static gx_engine *open_engine(uint64_t cache)
{
    gx_engine *en;
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    opt.kind = GX_ENGINE_CPU;
    opt.result_cache = cache;
    if (gx_engine_open(&en, ix, &opt, &err) != GX_OK)
        fail_msg("%s", err.text);
    return en;
}

static gx_session *open_session(gx_engine *en)
{
    gx_session *s;
    gx_error err = {0};
    if (gx_session_open(&s, en, &err) != GX_OK)
        fail_msg("%s", err.text);
    return s;
}

typedef struct answer {
    uint32_t docids[4 * MAX_K], n_hits[4];
    double scores[4 * MAX_K];
} answer;

static void search(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *opt, answer *a)
{
    gx_error err = {0};
    gx_results out = {.size = sizeof out, .docids = a->docids, .n_hits = a->n_hits, .exact_scores = a->scores};
    if (gx_search(s, queries, n, opt, &out, &err) != GX_OK)
        fail_msg("%s", err.text);
}

static void compare(const answer *a, const answer *b, uint32_t n, uint32_t k, uint64_t seed)
{
    for (uint32_t i = 0; i < n; ++i)
        if (a->n_hits[i] != b->n_hits[i] ||
            memcmp(a->docids + (size_t)i * k, b->docids + (size_t)i * k, a->n_hits[i] * sizeof *a->docids) ||
            memcmp(a->scores + (size_t)i * k, b->scores + (size_t)i * k, a->n_hits[i] * sizeof *a->scores))
            fail_msg("seed %llu: query %u of a batch differs", (unsigned long long)seed, i);
}

/* Few different queries, so that many come again, under options of all kinds. The two engines have
 * a mask each of the same documents. */
static void one_case(gen_rng *rng, gx_session *with, gx_session *without, gx_mask *masks[3][2], uint64_t seed)
{
    static _Thread_local char texts[4][64];
    static _Thread_local answer a, b;
    static const gx_preset presets[] = {GX_BM25, GX_BM25_LUCENE, GX_BM25_LUCENE_LOSSY};
    gx_query queries[4];
    gx_query_options opt = GX_QUERY_OPTIONS;
    const uint32_t n = 1 + gen_below(rng, 4), which = gen_below(rng, 4);
    opt.k = 1 + gen_below(rng, gen_below(rng, 2) ? 5 : MAX_K);
    opt.op = (gx_op)gen_below(rng, 3);
    opt.preset = presets[gen_below(rng, 3)];
    opt.k1 = gen_below(rng, 4) ? NAN : 1.5f;
    opt.b = gen_below(rng, 4) ? NAN : 0;
    opt.prune = gen_below(rng, 8) > 0;
    opt.approximate = gen_below(rng, 3) ? 0 : 0.2f + 0.2f * (float)gen_below(rng, 2);
    opt.block_budget = gen_below(rng, 3) ? 0 : 1 + gen_below(rng, 3);
    for (uint32_t i = 0; i < n; ++i) {
        texts[i][0] = 0;
        for (uint32_t m = gen_below(rng, 4); m; --m) {
            char term[16];
            gen_term_name(gen_below(rng, 6), term);
            strcat(strcat(texts[i], " "), term);
        }
        queries[i] = (gx_query)GX_TEXT_QUERY(texts[i], strlen(texts[i]));
    }
    opt.mask = which < 3 ? masks[which][0] : NULL;
    search(with, queries, n, &opt, &a);
    opt.mask = which < 3 ? masks[which][1] : NULL;
    search(without, queries, n, &opt, &b);
    compare(&a, &b, n, opt.k, seed);
}

/* Open the same random mask on both engines. */
static void open_masks(gen_rng *rng, gx_engine *with, gx_engine *without, gx_mask *pair[2])
{
    uint64_t words[3000 / 64 + 1];
    gx_error err = {0};
    for (size_t w = 0; w < sizeof words / sizeof *words; ++w)
        words[w] = gen_u64(rng);
    assert_int_equal(gx_mask_open(&pair[0], with, words, &err), GX_OK);
    assert_int_equal(gx_mask_open(&pair[1], without, words, &err), GX_OK);
}

static void close_masks(gx_mask *pair[2])
{
    gx_mask_close(pair[0]);
    gx_mask_close(pair[1]);
}

/* A cache for everything, and caches that forget. Masks are closed and opened anew meanwhile, often
 * in the memory of the one before. */
static void answers_are_those_without_a_cache(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {64 << 20, 60000, 8000, 600, 1};
    gx_engine *without = open_engine(0);
    gx_session *plain = open_session(without);
    uint64_t cached[5];
    for (size_t z = 0; z < 5; ++z) {
        const uint64_t seed = first_seed + z;
        gen_rng rng = {seed};
        gx_engine *with = open_engine(sizes[z]);
        gx_session *s = open_session(with);
        gx_mask *masks[3][2];
        for (int i = 0; i < 3; ++i)
            open_masks(&rng, with, without, masks[i]);
        for (uint32_t i = 0; i < N_CASES; ++i) {
            if (gen_below(&rng, 50) == 0) {
                const uint32_t m = gen_below(&rng, 3);
                close_masks(masks[m]);
                open_masks(&rng, with, without, masks[m]);
            }
            one_case(&rng, s, plain, masks, seed);
        }
        cached[z] = gx_session_stats(s)->cached;
        for (int i = 0; i < 3; ++i)
            close_masks(masks[i]);
        gx_session_close(s);
        gx_engine_close(with);
    }
    assert_true(cached[0] > N_CASES / 4);
    assert_true(cached[0] > cached[2] && cached[2] > cached[3]);
    assert_int_equal(cached[4], 0); /* nothing fits one byte */
    gx_session_close(plain);
    gx_engine_close(without);
}

typedef struct worker {
    pthread_t thread;
    gx_engine *with, *without;
    uint64_t seed;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    gen_rng rng = {w->seed};
    gx_session *s = open_session(w->with), *plain = open_session(w->without);
    gx_mask *masks[3][2];
    for (int i = 0; i < 3; ++i)
        open_masks(&rng, w->with, w->without, masks[i]);
    for (uint32_t i = 0; i < N_CASES / N_THREADS; ++i)
        one_case(&rng, s, plain, masks, w->seed);
    for (int i = 0; i < 3; ++i)
        close_masks(masks[i]);
    gx_session_close(s);
    gx_session_close(plain);
    return NULL;
}

static void threads_share_a_cache(void **state)
{
    (void)state;
    worker workers[N_THREADS];
    gx_engine *with = open_engine(100000), *without = open_engine(0);
    const uint64_t seed = first_seed + 1000;
    for (uint32_t i = 0; i < N_THREADS; ++i) {
        workers[i] = (worker){.with = with, .without = without, .seed = seed + i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < N_THREADS; ++i)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    gx_engine_close(with);
    gx_engine_close(without);
}

/* The plan of a query of one term with a weight of its own. */
static gx_plan plan_of(gx_plan_term *term, uint32_t number, uint32_t k)
{
    *term = (gx_plan_term){.list = number, .df = 1, .w = 1};
    return (gx_plan){.op = GX_OP_OR, .k = k, .n_terms = 1, .prune = true, .terms = term};
}

static void memory_stays_within_the_budget_and_old_answers_go_first(void **state)
{
    (void)state;
    static const uint64_t budgets[] = {500, 5000, 100000, 3 << 20};
    uint64_t keys[MAX_K], found[MAX_K];
    gx_error err = {0};
    for (size_t z = 0; z < 4; ++z) {
        gx_result_cache *c;
        gx_plan_term term;
        uint32_t n_found = 0, last = 0, i;
        assert_int_equal(gx_result_cache_open(&c, budgets[z], false, &err), GX_OK);
        for (i = 0; i < 20000; ++i) {
            const gx_plan plan = plan_of(&term, i, MAX_K);
            gx_hits hits = {keys, i % (MAX_K + 1)};
            for (uint32_t j = 0; j < hits.n; ++j)
                keys[j] = i * 1000ull + j;
            gx_result_cache_add(c, &plan, &hits);
            assert_in_range(gx_result_cache_bytes(c), 0, budgets[z]);
        }
        for (uint32_t j = 0; j < i; ++j) {
            const gx_plan plan = plan_of(&term, j, MAX_K);
            gx_hits hits = {found, 0};
            if (!gx_result_cache_find(c, &plan, &hits))
                continue;
            ++n_found;
            last = j;
            assert_int_equal(hits.n, j % (MAX_K + 1));
            for (uint32_t r = 0; r < hits.n; ++r)
                assert_int_equal(found[r], j * 1000ull + r);
        }
        assert_true(n_found > 0 && n_found < 20000 && last > 20000 - 2 * (MAX_K + 1));
        gx_result_cache_close(c);
    }
}

static void an_answer_serves_a_smaller_k_and_all_when_it_is_complete(void **state)
{
    (void)state;
    gx_result_cache *c;
    gx_plan_term term;
    uint64_t keys[5] = {50, 40, 30, 20, 10}, found[MAX_K] = {0};
    gx_error err = {0};
    gx_hits full = {keys, 5}, hits = {found, 0};
    assert_int_equal(gx_result_cache_open(&c, 1 << 20, false, &err), GX_OK);
    gx_plan plan = plan_of(&term, 7, 5);
    gx_result_cache_add(c, &plan, &full);
    plan.k = 3;
    assert_true(gx_result_cache_find(c, &plan, &hits));
    assert_int_equal(hits.n, 3);
    assert_int_equal(found[2], 30);
    plan.k = 6; /* there may be a sixth */
    assert_false(gx_result_cache_find(c, &plan, &hits));
    gx_result_cache_add(c, &plan, &full); /* there is none */
    plan.k = 1000;
    assert_true(gx_result_cache_find(c, &plan, &hits));
    assert_int_equal(hits.n, 5);
    plan.op = GX_OP_AND_OR;
    gx_result_cache_add(c, &plan, &full);
    plan.k = 3;
    assert_false(gx_result_cache_find(c, &plan, &hits)); /* the AND alone may have three */
    plan.op = GX_OP_OR;
    plan.prune = false;
    assert_false(gx_result_cache_find(c, &plan, &hits));
    gx_result_cache_close(c);
}

int main(void)
{
    if (getenv("GX_TEST_SEED"))
        first_seed = strtoull(getenv("GX_TEST_SEED"), NULL, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_without_a_cache),
        cmocka_unit_test(threads_share_a_cache),
        cmocka_unit_test(memory_stays_within_the_budget_and_old_answers_go_first),
        cmocka_unit_test(an_answer_serves_a_smaller_k_and_all_when_it_is_complete),
    };
    return cmocka_run_group_tests(tests, open_index, close_index);
}
