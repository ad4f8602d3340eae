/* Thresholds of pairs: never above the k-th best score that scoring every posting finds, hardly
 * below it where the query is a pair, and the answers are the same with them. */
#include <math.h>
#include <unistd.h>

#include "codecs/codec.h"
#include "query/engine/session.h"
#include "query/exec/pairs.h"
#include "tests/support/gen.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

static uint64_t test_seed(void)
{
    const char *s = getenv("GX_TEST_SEED");
    return s ? strtoull(s, NULL, 0) : 20261122;
}

typedef struct fixture {
    gen_collection *c;
    gx_index *ix;
    void *state, *exec;
} fixture;

static void open_fixture(fixture *f, uint64_t seed, uint32_t n_docs, uint32_t n_terms)
{
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    f->c = gen_open(seed, (gen_shape)(seed % GEN_N_SHAPES), n_docs, n_terms);
    if (gen_write(f->c, in_dir("pairs.gx"), gx_codec_by_name("gpubp128"), gx_codec_by_name("gpubp128"), &err) !=
            GX_OK ||
        gx_index_open(&f->ix, in_dir("pairs.gx"), NULL, &err) != GX_OK ||
        gx_executor_cpu.state_open(&f->state, f->ix, &opt, &err) != GX_OK ||
        gx_executor_cpu.workspace_open(&f->exec, f->state, &err) != GX_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    unlink(in_dir("pairs.gx"));
}

static void close_fixture(fixture *f)
{
    gx_executor_cpu.workspace_close(f->exec);
    gx_executor_cpu.release_index(f->state);
    gx_index_close(f->ix);
    gen_close(f->c);
}

/* The list's place among the longest. */
static uint32_t rank_of(const gx_index *ix, uint32_t list)
{
    uint32_t rank = 0;
    for (uint32_t t = 0; t < ix->n_terms; ++t)
        rank += ix->lists[t].df > ix->lists[list].df || (ix->lists[t].df == ix->lists[list].df && t < list);
    return rank;
}

/* A plan of random lists, and what is known of it by scoring every posting. Returns the k-th best
 * score, 0: there are fewer. */
static uint32_t score_all(const fixture *f, gx_plan *plan, uint64_t *keys)
{
    gx_error err = {0};
    gx_hits hits = {keys, 0};
    plan->prune = false;
    if (gx_executor_cpu.run(f->exec, plan, 1, &hits, NULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    plan->prune = true;
    return hits.n == plan->k ? gx_key_score(keys[plan->k - 1]) : 0;
}

static void a_floor_is_never_above_the_kth_score(void **state)
{
    (void)state;
    static const uint32_t ks[] = {1, 2, 10, 33, 100};
    const uint64_t seed = test_seed();
    uint32_t n_queries = 0, n_raised = 0, n_pairs = 0;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t turn = 0; turn < 60; ++turn) {
        gen_rng r = {seed + turn};
        fixture f;
        gx_pair_thresholds *pairs;
        gx_error err = {0};
        gx_query_options opt = GX_QUERY_OPTIONS;
        open_fixture(&f, seed + turn, 1 + gen_below(&r, turn % 3 ? 3000 : 200), 2 + gen_below(&r, 40));
        opt.preset = (gx_preset)gen_below(&r, GX_N_PRESETS);
        opt.k = ks[gen_below(&r, sizeof ks / sizeof *ks)];
        opt.k1 = gen_below(&r, 2) ? (float)gen_below(&r, 40) / 10 : NAN;
        opt.b = gen_below(&r, 2) ? (float)gen_below(&r, 11) / 10 : NAN;
        if (opt.preset == GX_IMPACT)
            opt.k1 = opt.b = NAN;         /* it has none */
        opt.op = (gx_op)gen_below(&r, 3); /* does not matter */
        const uint32_t n_lists = gen_below(&r, 50);
        if (gx_pair_thresholds_make(&pairs, &(gx_pair_engine){f.ix, &gx_executor_cpu, f.state}, &opt, n_lists,
                                    1 + gen_below(&r, 4), &err) != GX_OK)
            fail_msg("%s", err.text);
        for (uint32_t q = 0; q < 100; ++q) {
            uint32_t ids[6];
            const uint32_t n = 1 + gen_below(&r, gen_below(&r, 2) ? 2 : 6);
            uint64_t keys[100], pruned[100];
            gx_plan plan;
            opt.op = GX_OP_OR;
            for (uint32_t i = 0; i < n; ++i)
                ids[i] = gen_below(&r, f.ix->n_terms); /* some say a term twice */
            if (gx_plan_make_ids(&plan, f.ix, ids, NULL, n, &opt, &err) != GX_OK)
                fail_msg("%s", err.text);
            const uint32_t kth = score_all(&f, &plan, keys);
            gx_pair_thresholds_apply(pairs, &plan);
            if (plan.initial_threshold > kth)
                fail_msg("turn %u: an initial threshold of %u, and the %u-th score is %u", turn, plan.initial_threshold,
                         plan.k, kth);
            const bool is_pair =
                n == 2 && plan.n_terms == 2 && rank_of(f.ix, ids[0]) < n_lists && rank_of(f.ix, ids[1]) < n_lists;
            if (is_pair && kth > 100 && plan.initial_threshold < kth - kth / 100000 - 8)
                fail_msg("turn %u: a pair's threshold is %u, and its %u-th score %u", turn, plan.initial_threshold,
                         plan.k, kth);
            gx_hits hits = {pruned, 0};
            assert_int_equal(gx_executor_cpu.run(f.exec, &plan, 1, &hits, NULL, &err), GX_OK);
            if (kth)
                assert_int_equal(hits.n, plan.k);
            assert_memory_equal(pruned, keys, hits.n * sizeof *keys);
            n_queries += 1;
            n_raised += plan.initial_threshold != 0;
            n_pairs += is_pair && kth;
            gx_plan_free(&plan);
        }
        gx_pair_thresholds_free(pairs);
        close_fixture(&f);
    }
    print_message("%u queries, %u with an initial threshold, %u of them a pair\n", n_queries, n_raised, n_pairs);
    assert_true(n_raised > n_queries / 10 && n_pairs > n_queries / 50);
}

/* Only where the scorer is the pairs', and k no greater. */
static void a_floor_is_for_its_scorer_and_k(void **state)
{
    (void)state;
    fixture f;
    gx_pair_thresholds *pairs;
    gx_error err = {0};
    gx_query_options opt = GX_QUERY_OPTIONS;
    const uint32_t ids[] = {0, 1};
    open_fixture(&f, 4 * GEN_N_SHAPES, 2000, 20);
    assert_int_equal(
        gx_pair_thresholds_make(&pairs, &(gx_pair_engine){f.ix, &gx_executor_cpu, f.state}, &opt, 20, 2, &err), GX_OK);
    for (int turn = 0; turn < 8; ++turn) {
        gx_query_options o = opt;
        gx_plan plan;
        bool raised = true;
        switch (turn) {
        case 1:
            o.k = 3;
            break;
        case 2:
            o.op = GX_OP_AND_OR;
            break;
        case 3:
            o.k = 11;
            raised = false;
            break;
        case 4:
            o.b = .5f;
            raised = false;
            break;
        case 5:
            o.k1 = 1;
            raised = false;
            break;
        case 6:
            o.preset = GX_BM25_LUCENE_LOSSY;
            raised = false;
            break;
        case 7:
            o.op = GX_OP_AND;
            raised = false;
            break;
        default:
            break;
        }
        assert_int_equal(gx_plan_make_ids(&plan, f.ix, ids, NULL, 2, &o, &err), GX_OK);
        gx_pair_thresholds_apply(pairs, &plan);
        assert_int_equal(plan.initial_threshold != 0, raised);
        plan.initial_threshold = UINT32_MAX; /* what is known already stays */
        gx_pair_thresholds_apply(pairs, &plan);
        assert_int_equal(plan.initial_threshold, UINT32_MAX);
        gx_plan_free(&plan);
    }
    gx_pair_thresholds_free(pairs);
    close_fixture(&f);
}

static bool at_once(void *user)
{
    (void)user;
    return true;
}

static void an_engine_learns_pairs_or_says_why_not(void **state)
{
    (void)state;
    fixture f;
    gx_engine *en;
    gx_error err = {0};
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    gx_query_options opt = GX_QUERY_OPTIONS;
    const uint32_t ids[] = {0, 1};
    gx_plan plan;
    open_fixture(&f, 4 * GEN_N_SHAPES, 2000, 20);
    eo.kind = GX_ENGINE_CPU;
    assert_int_equal(gx_engine_open(&en, f.ix, &eo, &err), GX_OK);
    assert_int_equal(gx_engine_precompute_pair_thresholds(en, &opt, GX_MAX_PAIRED + 1, 1, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "4096"));
    opt.k = 0;
    assert_int_equal(gx_engine_precompute_pair_thresholds(en, &opt, 20, 1, &err), GX_EUSAGE);
    opt.k = 10;
    opt.cancel = at_once;
    assert_int_equal(gx_engine_precompute_pair_thresholds(en, &opt, 20, 3, &err), GX_ECANCELLED);
    opt.cancel = NULL;
    assert_int_equal(gx_plan_make_ids(&plan, f.ix, ids, NULL, 2, &opt, &err), GX_OK);
    gx_engine_apply_known_threshold(en, &plan);
    assert_int_equal(plan.initial_threshold, 0);
    assert_int_equal(gx_engine_precompute_pair_thresholds(en, NULL, 20, 0, &err), GX_OK);
    gx_engine_apply_known_threshold(en, &plan);
    assert_true(plan.initial_threshold > 0);
    for (uint32_t k = 1; k < 64; ++k) { /* and again, which is nothing new */
        opt.k = 100 + k;
        assert_int_equal(gx_engine_precompute_pair_thresholds(en, &opt, 3, 1, &err), GX_OK);
        assert_int_equal(gx_engine_precompute_pair_thresholds(en, &opt, 3, 1, &err), GX_OK);
    }
    opt.k = 1000;
    assert_int_equal(gx_engine_precompute_pair_thresholds(en, &opt, 3, 1, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "64"));
    gx_plan_free(&plan);
    gx_engine_close(en);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_floor_is_never_above_the_kth_score),
        cmocka_unit_test(a_floor_is_for_its_scorer_and_k),
        cmocka_unit_test(an_engine_learns_pairs_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
