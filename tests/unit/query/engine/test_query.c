/* Whole queries on random collections: every engine of this build against the oracle, to the bit.
 * Each row of the table runs the same cases; GX_TEST_SEED chooses other ones. GX_TEST_FILTER: the
 * tests whose names match, as `*(GPU)`. Where a tool makes all slow: GX_TEST_CASES, fewer random
 * cases; GX_TEST_NAMED_K, named algorithms only for k up to that. */
#include <math.h>

#include "codecs/words/simd.h"
#include "query/engine/session.h"
#include "tests/support/query_fixture.h"
#include "tests/support/test.h"
#include "tests/support/vectors.h"

/* ---- a random batch ---- */

#define MAX_BATCH 40

static gx_query_options pick_options(gen_rng *r, const gen_collection *c)
{
    static const float k1s[] = {NAN, NAN, 0, .5f, .9f, 1.2f, 2, 1000}, bs[] = {NAN, NAN, 0, .25f, .4f, .75f, 1};
    const uint32_t N = c->n_docs,
                   ks[] = {1, 10, 10, 100, 1000, 10000, N, N + 1, 1 + gen_below(r, N), N > 1 ? N - 1 : 1, 2};
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.op = (gx_op)gen_below(r, 3);
    opt.preset = (gx_preset)gen_below(r, GX_N_PRESETS);
    opt.k = ks[gen_below(r, sizeof ks / sizeof *ks)];
    opt.k1 = k1s[gen_below(r, sizeof k1s / sizeof *k1s)];
    opt.b = bs[gen_below(r, sizeof bs / sizeof *bs)];
    if (opt.preset == GX_IMPACT)
        opt.k1 = opt.b = NAN; /* it has none */
    return opt;
}

/* ---- a batch in every way ---- */

static uint32_t n_left_out; /* batches that were not run by a named algorithm */

/* One batch of n queries in every way. */
static void check_batch(fixture *f, const engine_row *row, gen_rng *r, uint32_t n, uint32_t max_words)
{
    static test_query tests[MAX_BATCH];
    gx_query queries[MAX_BATCH];
    oracle_answer want[MAX_BATCH];
    gx_query_options opt = pick_options(r, f->c);
    opt.count = gen_below(r, 4) == 0;
    if (gen_below(r, 8) == 0) { /* it and those after it may begin at thresholds of pairs */
        gx_error err = {0};
        const gx_status st = gx_engine_precompute_pair_thresholds(f->en, &opt, gen_below(r, 12), 1, &err);
        if (st != GX_OK)
            fail_msg("%s: collection seed %llu: pairs: %s", row->name, (unsigned long long)f->c->seed, err.text);
    }
    for (uint32_t i = 0; i < n; ++i) {
        make_query(&tests[i], r, f->c, max_words);
        tests[i].q.op = opt.op;
        tests[i].q.preset = opt.preset;
        tests[i].q.k = opt.k;
        tests[i].q.k1 = opt.k1;
        tests[i].q.b = opt.b;
        queries[i] = (gx_query)GX_TEXT_QUERY(tests[i].text, strlen(tests[i].text));
        want[i] = oracle_search(f->c, &tests[i].q);
    }
    const size_t room = (size_t)n * opt.k;
    uint32_t *docids = malloc(room * sizeof *docids), n_hits[MAX_BATCH];
    float *scores = malloc(room * sizeof *scores);
    uint64_t n_matches[MAX_BATCH];
    assert_non_null(docids);
    assert_non_null(scores);
    for (size_t way = 0; way < N_SEARCH_VARIANTS; ++way) {
        gx_error err = {0};
        const uint32_t step = ways[way].alone ? 1 : n;
        if (ways[way].alone && n == 1) /* was so before */
            continue;
        if (ways[way].algorithm != GX_ALGORITHM_AUTO && opt.k > ding2009_max_k()) {
            ++n_left_out;
            continue;
        }
        opt.prune = ways[way].prune;
        opt.algorithm = ways[way].algorithm;
        opt.recursion = gen_below(r, GX_MAX_RECURSION + 1);
        memset(docids, 0xee, room * sizeof *docids);
        for (uint32_t i = 0; i < n; i += step) {
            const gx_results out = {sizeof out, docids + (size_t)i * opt.k, scores + (size_t)i * opt.k, n_hits + i,
                                    n_matches + i};
            if (gx_search(f->s, queries + i, step, &opt, &out, &err) != GX_OK)
                fail_msg("%s: collection seed %llu: %s", row->name, (unsigned long long)f->c->seed, err.text);
        }
        for (uint32_t i = 0; i < n; ++i) {
            check_answer(f, row, &tests[i], &opt, &want[i],
                         (engine_answer){docids + (size_t)i * opt.k, scores + (size_t)i * opt.k, n_hits[i]});
            if (opt.count)
                assert_int_equal(n_matches[i], want[i].n_matches);
        }
    }
    for (uint32_t i = 0; i < n; ++i)
        oracle_free(&want[i]);
    free(docids);
    free(scores);
}

/* ---- tests ---- */

/* Bytes for the CPU engine's maps of dense lists, and no more. */
static uint64_t dense_maps(const gen_collection *c)
{
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < c->n_terms; ++t)
        bytes += c->lists[t].df * 16ull > c->n_docs ? 4 * (3 * (c->n_docs / 64 + 1ull) + 32) : 0;
    return bytes;
}

static void answers_equal_the_oracles(void **state)
{
    static const uint32_t sizes[] = {1, 2, 33, 130, 300, 700, 1025, 2500, 2500, 6000, 20000, 150};
    const engine_row *row = *state;
    const uint64_t seed = test_seed();
    uint32_t n_cases = 0, n_codecs = 1;
    while (gx_codecs[n_codecs])
        ++n_codecs;
    for (uint32_t i = 0; n_cases < min_cases() || i < min_cases() / 100; ++i) {
        gen_rng r = {seed + i};
        const gx_codec *docids = pick_codec(i), *tfs = pick_codec(i / n_codecs + i);
        if (tfs->block_len != docids->block_len)
            tfs = docids;
        const uint32_t n_docs = sizes[gen_below(&r, sizeof sizes / sizeof *sizes)];
        const gen_shape shape = (gen_shape)(i % GEN_N_SHAPES);
        fixture f;
        open_collection(&f, seed + i, shape, n_docs, 4 + gen_below(&r, 60), docids, tfs);
        const uint64_t maps[] = {UINT64_MAX, 0, 1, 4096, 100000, dense_maps(f.c), UINT64_MAX};
        if (!open_engine(&f, row, maps[gen_below(&r, sizeof maps / sizeof *maps)])) {
            close_collection(&f);
            skip();
        }
        if (i == 0)
            print_message("seed %llu, %s\n", (unsigned long long)seed, gx_engine_describe(f.en));
        for (uint32_t left = n_docs > 5000 ? 40 : 120; left;) {
            uint32_t n = gen_below(&r, 2) ? 1 : 1 + gen_below(&r, MAX_BATCH);
            n = n < left ? n : left;
            check_batch(&f, row, &r, n, gen_below(&r, 8) ? 5 : 40);
            left -= n;
            n_cases += n;
        }
        close_collection(&f);
    }
    print_message("%u cases\n", n_cases);
    if (n_left_out)
        print_message("%u batches not by a named algorithm: k is above %u\n", n_left_out, ding2009_max_k());
}

/* Few queries many times over, in batches around the borders of what engines take at once. */
static void batches_of_every_size_have_the_same_answers(void **state)
{
    enum { DIFFERENT = 37, MOST = 1100, K = 100 };
    static const uint32_t sizes[] = {1,   2,   3,   4,   5,   31,  32,   33,   255,  256,
                                     257, 511, 512, 513, 768, 769, 1023, 1024, 1025, MOST};
    static test_query tests[DIFFERENT];
    const engine_row *row = *state;
    oracle_answer want[3][DIFFERENT];
    fixture f;
    gen_rng r = {test_seed() + 77};
    open_collection(&f, test_seed() + 77, GEN_CLUSTERED, 2500, 50, pick_codec(1), pick_codec(1));
    if (!open_engine(&f, row, UINT64_MAX)) {
        close_collection(&f);
        skip();
    }
    gx_query *queries = malloc(MOST * sizeof *queries);
    uint32_t *docids = malloc((size_t)MOST * K * sizeof *docids), *n_hits = malloc(MOST * sizeof *n_hits);
    float *scores = malloc((size_t)MOST * K * sizeof *scores);
    assert_true(queries && docids && n_hits && scores);
    for (uint32_t i = 0; i < DIFFERENT; ++i) {
        make_query(&tests[i], &r, f.c, i % 9 ? 5 : 30);
        tests[i].q.k1 = tests[i].q.b = NAN;
        for (int op = GX_OP_OR; op <= GX_OP_AND_OR; ++op) {
            tests[i].q.op = (gx_op)op;
            tests[i].q.k = op == GX_OP_AND ? K : 10;
            want[op][i] = oracle_search(f.c, &tests[i].q);
        }
    }
    for (uint32_t i = 0; i < MOST; ++i)
        queries[i] = (gx_query)GX_TEXT_QUERY(tests[i % DIFFERENT].text, strlen(tests[i % DIFFERENT].text));
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; ++size) {
        for (int op = GX_OP_OR; op <= GX_OP_AND_OR; ++op) {
            const size_t way = (size + (size_t)op) % (N_SEARCH_VARIANTS);
            gx_query_options opt = GX_QUERY_OPTIONS;
            gx_error err = {0};
            opt.op = (gx_op)op;
            opt.k = op == GX_OP_AND ? K : 10;
            opt.prune = ways[way].prune;
            opt.algorithm = ways[way].algorithm;
            const gx_results out = {sizeof out, docids, scores, n_hits, NULL};
            if (gx_search(f.s, queries, sizes[size], &opt, &out, &err) != GX_OK)
                fail_msg("%s: %u queries: %s", row->name, sizes[size], err.text);
            for (uint32_t i = 0; i < sizes[size]; ++i)
                check_answer(&f, row, &tests[i % DIFFERENT], &opt, &want[op][i % DIFFERENT],
                             (engine_answer){docids + (size_t)i * opt.k, scores + (size_t)i * opt.k, n_hits[i]});
        }
    }
    for (uint32_t i = 0; i < 3 * DIFFERENT; ++i)
        oracle_free(&want[i / DIFFERENT][i % DIFFERENT]);
    free(queries);
    free(docids);
    free(n_hits);
    free(scores);
    close_collection(&f);
}

/* Short queries in lists of the GPU's fastest codec, in batches so small that their lists enter the queue in turn. */
static void batches_whose_lists_go_in_turn_equal_the_oracles(void **state)
{
    enum { DIFFERENT = 70, MOST = 512 };
    const uint32_t sizes[] = {33, 64, 65, 200, MOST}, ks[] = {1, 10, 32, 33, 400},
                   docs[] = {700, min_cases() < 1000 ? 20000 : 150000};
    static test_query tests[DIFFERENT];
    const engine_row *row = *state;
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    const uint64_t seed = test_seed() + 1313;
    for (size_t c = 0; c < sizeof docs / sizeof *docs; ++c) {
        fixture f;
        gen_rng r = {seed + c};
        open_collection(&f, seed + c, c ? GEN_CLUSTERED : GEN_UNIFORM, docs[c], 40, codec, codec);
        if (!open_engine(&f, row, UINT64_MAX)) {
            close_collection(&f);
            skip();
        }
        for (size_t way = 0; way < sizeof ks / sizeof *ks; ++way) {
            gx_query queries[MOST];
            oracle_answer want[DIFFERENT];
            gx_query_options opt = GX_QUERY_OPTIONS;
            const uint32_t n = sizes[gen_below(&r, sizeof sizes / sizeof *sizes)];
            gx_error err = {0};
            opt.op = way % 3 == 2 ? GX_OP_AND : GX_OP_OR;
            opt.k = ks[way];
            for (uint32_t i = 0; i < DIFFERENT; ++i) {
                make_query(&tests[i], &r, f.c, 6);
                tests[i].q.k1 = tests[i].q.b = NAN;
                tests[i].q.op = opt.op;
                tests[i].q.k = opt.k;
                want[i] = oracle_search(f.c, &tests[i].q);
            }
            for (uint32_t i = 0; i < n; ++i)
                queries[i] = (gx_query)GX_TEXT_QUERY(tests[i % DIFFERENT].text, strlen(tests[i % DIFFERENT].text));
            uint32_t *docids = malloc((size_t)n * opt.k * sizeof *docids), n_hits[MOST];
            float *scores = malloc((size_t)n * opt.k * sizeof *scores);
            assert_true(docids && scores);
            const gx_results out = {sizeof out, docids, scores, n_hits, NULL};
            if (gx_search(f.s, queries, n, &opt, &out, &err) != GX_OK)
                fail_msg("%s: collection seed %llu, %u queries: %s", row->name, (unsigned long long)f.c->seed, n,
                         err.text);
            for (uint32_t i = 0; i < n; ++i)
                check_answer(&f, row, &tests[i % DIFFERENT], &opt, &want[i % DIFFERENT],
                             (engine_answer){docids + (size_t)i * opt.k, scores + (size_t)i * opt.k, n_hits[i]});
            for (uint32_t i = 0; i < DIFFERENT; ++i)
                oracle_free(&want[i]);
            free(docids);
            free(scores);
        }
        close_collection(&f);
    }
}

/* A GPU's part of a batch is sent and waited for once; memory is got the first time at most. */
static void a_warm_session_neither_allocates_nor_waits_midway(void **state)
{
    enum { MOST = 600, K = 40 };
    static const uint32_t sizes[] = {1, 3, 4, 5, 64, MOST};
    static test_query tests[MOST];
    const engine_row *row = *state;
    fixture f;
    gen_rng r = {test_seed() + 78};
    open_collection(&f, test_seed() + 78, GEN_CLUSTERED, 2500, 50, pick_codec(1), pick_codec(1));
    if (!open_engine(&f, row, UINT64_MAX)) {
        close_collection(&f);
        skip();
    }
    gx_query *queries = malloc(MOST * sizeof *queries);
    uint32_t *docids = malloc((size_t)MOST * K * sizeof *docids), *n_hits = malloc(MOST * sizeof *n_hits);
    assert_true(queries && docids && n_hits);
    for (uint32_t i = 0; i < MOST; ++i) {
        make_query(&tests[i], &r, f.c, i % 9 ? 5 : 30);
        queries[i] = (gx_query)GX_TEXT_QUERY(tests[i].text, strlen(tests[i].text));
    }
    for (int turn = 0; turn < 2; ++turn) {
        const gx_search_stats before = *gx_session_stats(f.s);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes * 6; ++i) {
            gx_query_options opt = GX_QUERY_OPTIONS;
            gx_error err = {0};
            opt.op = (gx_op)(i % 3);
            opt.k = i / 3 % 2 ? 10 : K;
            const gx_results out = {sizeof out, docids, NULL, n_hits, NULL};
            if (gx_search(f.s, queries, sizes[i / 6], &opt, &out, &err) != GX_OK)
                fail_msg("%s: %s", row->name, err.text);
        }
        const gx_search_stats *after = gx_session_stats(f.s);
        if (row->kind != GX_ENGINE_GPU)
            assert_int_equal(after->parts, 0);
        else if (turn)
            assert_true(after->parts > before.parts);
        if (turn) {
            assert_int_equal(after->allocations - before.allocations, 0);
            assert_int_equal(after->waits - before.waits, after->parts - before.parts);
        }
    }
    free(queries);
    free(docids);
    free(n_hits);
    close_collection(&f);
}

static void long_queries_are_answered_up_to_1024_terms(void **state)
{
    const engine_row *row = *state;
    fixture f;
    open_collection(&f, test_seed(), GEN_UNIFORM, 900, 1100, pick_codec(0), pick_codec(0));
    if (!open_engine(&f, row, UINT64_MAX)) {
        close_collection(&f);
        skip();
    }
    static test_query t;
    for (uint32_t n = GX_MAX_TERMS - 1; n <= GX_MAX_TERMS + 1; ++n) {
        size_t len = 0;
        static char text[(GX_MAX_TERMS + 2) * 12];
        for (uint32_t i = 0; i < n; ++i) {
            char word[16];
            gen_term_name(i, word);
            len += (size_t)sprintf(text + len, " %s", word);
        }
        memset(&t, 0, sizeof t);
        for (uint32_t i = 0; i < n && i < GX_MAX_TERMS; ++i) {
            t.terms[i] = i;
            t.qtfs[i] = 1;
        }
        t.q = (oracle_query){.n_terms = n, .terms = t.terms, .qtfs = t.qtfs, .k = 10, .k1 = NAN, .b = NAN};
        for (size_t way = 0; way < N_SEARCH_VARIANTS; ++way) {
            gx_query_options opt = GX_QUERY_OPTIONS;
            gx_error err = {0};
            uint32_t docids[10], n_hits;
            float scores[10];
            const gx_results out = {sizeof out, docids, scores, &n_hits, NULL};
            opt.prune = ways[way].prune;
            opt.algorithm = ways[way].algorithm;
            const gx_status st = gx_search(f.s, &(gx_query)GX_TEXT_QUERY(text, len), 1, &opt, &out, &err);
            if (n > GX_MAX_TERMS) {
                assert_int_equal(st, GX_EUSAGE);
                assert_non_null(strstr(err.text, "1024 different terms"));
                continue;
            }
            assert_int_equal(st, GX_OK);
            oracle_answer want = oracle_search(f.c, &t.q);
            check_answer(&f, row, &t, &opt, &want, (engine_answer){docids, scores, n_hits});
            oracle_free(&want);
        }
    }
    close_collection(&f);
}

static bool say_stop(void *user)
{
    return ++*(int *)user > 0;
}

static void a_search_stops_when_told_to_and_the_session_goes_on(void **state)
{
    const engine_row *row = *state;
    fixture f;
    gx_error err = {0};
    int asked = 0;
    open_collection(&f, test_seed(), GEN_UNIFORM, 5000, 30, pick_codec(0), pick_codec(0));
    if (!open_engine(&f, row, UINT64_MAX)) {
        close_collection(&f);
        skip();
    }
    gx_query_options opt = GX_QUERY_OPTIONS;
    uint32_t docids[10], n_hits;
    const gx_results out = {sizeof out, docids, NULL, &n_hits, NULL};
    const char *text = "t0000000 t0000020 t0000021 t0000022";
    opt.user = &asked;
    for (size_t way = 0; way < N_SEARCH_VARIANTS; ++way) {
        for (int op = GX_OP_OR; op <= GX_OP_AND; ++op) {
            opt.cancel = say_stop;
            opt.prune = ways[way].prune;
            opt.algorithm = ways[way].algorithm;
            opt.op = (gx_op)op;
            asked = 0;
            assert_int_equal(gx_search(f.s, &(gx_query)GX_TEXT_QUERY(text, strlen(text)), 1, &opt, &out, &err),
                             GX_ECANCELLED);
            assert_true(asked > 0);
        }
    }
    opt = (gx_query_options)GX_QUERY_OPTIONS;
    opt.cancel = NULL;
    assert_int_equal(gx_search(f.s, &(gx_query)GX_TEXT_QUERY(text, strlen(text)), 1, &opt, &out, &err), GX_OK);
    assert_int_equal(n_hits, 10);
    gen_rng r = {1};
    for (int i = 0; i < 20; ++i)
        check_batch(&f, row, &r, 2, 4);
    close_collection(&f);
}

static void options_out_of_range_are_refused(void **state)
{
    const engine_row *row = *state;
    const struct {
        uint32_t k;
        float k1, b;
        const char *says;
    } cases[] = {
        {0, NAN, NAN, "k is 0"},        {1, -.5f, NAN, "k1 is -0.5"}, {1, INFINITY, NAN, "k1 is inf"},
        {1, -INFINITY, NAN, "k1 is"},   {1, NAN, -.1f, "b is -0.1"},  {1, NAN, 1.01f, "b is 1.01"},
        {1, NAN, INFINITY, "b is inf"},
    };
    fixture f;
    open_collection(&f, test_seed(), GEN_UNIFORM, 10, 5, pick_codec(0), pick_codec(0));
    if (!open_engine(&f, row, UINT64_MAX)) {
        close_collection(&f);
        skip();
    }
    gx_query_options wrong[2] = {GX_QUERY_OPTIONS, GX_QUERY_OPTIONS};
    wrong[0].algorithm = GX_N_ALGORITHMS;
    wrong[1].recursion = GX_MAX_RECURSION + 1;
    for (int i = 0; i < 2; ++i) {
        gx_error err = {0};
        uint32_t docids[10], n_hits;
        char said[32];
        const gx_results out = {sizeof out, docids, NULL, &n_hits, NULL};
        snprintf(said, sizeof said, i ? "recursion is %d" : "algorithm %d", i ? GX_MAX_RECURSION + 1 : GX_N_ALGORITHMS);
        assert_int_equal(gx_search(f.s, &(gx_query)GX_TEXT_QUERY("t0000000", 8), 1, &wrong[i], &out, &err), GX_EUSAGE);
        assert_non_null(strstr(err.text, said));
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        gx_error err = {0};
        uint32_t docid, n_hits;
        const gx_results out = {sizeof out, &docid, NULL, &n_hits, NULL};
        opt.k = cases[i].k;
        opt.k1 = cases[i].k1;
        opt.b = cases[i].b;
        assert_int_equal(gx_search(f.s, &(gx_query)GX_TEXT_QUERY("t0000000", 8), 1, &opt, &out, &err), GX_EUSAGE);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
    }
    close_collection(&f);
}

static engine_row rows[] = {
    {"CPU, portable", GX_ENGINE_CPU, "portable", 0},
    {"CPU, " VECTORS_TITLE, GX_ENGINE_CPU, VECTORS, 0},
    {"CPU, AVX-512", GX_ENGINE_CPU, "avx512", 0},
    {"GPU", GX_ENGINE_GPU, NULL, 0},
    {"two GPUs", GX_ENGINE_GPU, NULL, 2},
};

#define ROWS(test)                                                                                                     \
    {#test " (CPU, portable)", test, NULL, NULL, &rows[0]},                                                            \
        {#test " (CPU, " VECTORS_TITLE ")", test, NULL, NULL, &rows[1]},                                               \
        {#test " (CPU, AVX-512)", test, NULL, NULL, &rows[2]},                                                         \
    {                                                                                                                  \
#test " (GPU)", test, NULL, NULL, &rows[3]                                                                     \
    }

#define ROW_OF_GPU(test)                                                                                               \
    {                                                                                                                  \
#test " (GPU)", test, NULL, NULL, &rows[3]                                                                     \
    }

#define ROW_OF_TWO(test)                                                                                               \
    {                                                                                                                  \
#test " (two GPUs)", test, NULL, NULL, &rows[4]                                                                \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROWS(answers_equal_the_oracles),
        ROWS(batches_of_every_size_have_the_same_answers),
        ROWS(batches_whose_lists_go_in_turn_equal_the_oracles),
        ROWS(a_warm_session_neither_allocates_nor_waits_midway),
        ROWS(answers_under_masks_equal_the_oracles),
        ROWS(a_mask_that_is_wrong_is_refused),
        ROWS(a_sessions_memory_follows_its_batches_up_to_100_megabytes),
        ROWS(a_limit_on_device_memory_holds_for_all_sessions_together),
        ROW_OF_GPU(answers_with_lists_in_host_memory_are_the_cpus),
        ROW_OF_GPU(an_index_larger_than_device_memory_is_searched_within_it),
        ROW_OF_GPU(a_pool_of_lists_is_shared_by_concurrent_sessions),
        ROW_OF_GPU(an_engine_opens_beside_one_that_has_pinned_the_lists),
        ROW_OF_GPU(lists_of_a_warming_log_are_there_before_the_first_query),
        ROW_OF_GPU(options_of_residency_out_of_range_are_refused),
        ROWS(answers_to_boolean_queries_equal_the_oracles),
        ROWS(answers_over_parts_equal_those_over_one_index),
        ROWS(answers_to_weighted_terms_are_those_to_repeated_words),
        ROWS(a_single_query_is_right_among_concurrent_sessions),
        ROWS(a_busy_session_does_not_starve_others),
        ROWS(long_queries_are_answered_up_to_1024_terms),
        ROWS(a_search_stops_when_told_to_and_the_session_goes_on),
        ROWS(options_out_of_range_are_refused),
        ROW_OF_TWO(answers_equal_the_oracles),
        ROW_OF_TWO(answers_under_masks_equal_the_oracles),
        ROW_OF_TWO(answers_to_boolean_queries_equal_the_oracles),
        ROW_OF_TWO(a_pool_of_lists_is_shared_by_concurrent_sessions),
        ROW_OF_TWO(an_engine_opens_beside_one_that_has_pinned_the_lists),
        ROW_OF_TWO(lists_of_a_warming_log_are_there_before_the_first_query),
        ROW_OF_TWO(answers_over_parts_equal_those_over_one_index),
        ROW_OF_TWO(a_single_query_is_right_among_concurrent_sessions),
        ROW_OF_TWO(a_search_stops_when_told_to_and_the_session_goes_on),
    };
    gx_simd_best(); /* chosen before rows set GX_CPU */
    if (getenv("GX_TEST_FILTER"))
        cmocka_set_test_filter(getenv("GX_TEST_FILTER"));
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
