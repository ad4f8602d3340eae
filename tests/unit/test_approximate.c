/* Answers that need not be exact, against a judge of its own: which terms the first pass leaves out,
 * its candidates and their scores from plain arrays. And where answers are exact all the same. */
#include <math.h>
#include <unistd.h>

#include "query/approximate.h"
#include "query/session.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

#define N_DOCS 6000u
#define N_TERMS 60u
#define MAX_K 300u
#define N_BATCH 5u

static char path[] = "/tmp/gpuidx-test-approximate-XXXXXX";
static gen_collection *c;
static gx_index *ix;

static uint32_t env_uint(const char *name, uint32_t otherwise)
{
    const char *s = getenv(name);
    return s ? (uint32_t)strtoul(s, NULL, 0) : otherwise;
}

static int open_index(void **state)
{
    (void)state;
    gx_error err = {0};
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    c = gen_open(env_uint("GX_TEST_SEED", 11), GEN_CLUSTERED, N_DOCS, N_TERMS);
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    if (gen_write(c, path, codec, codec, &err) || gx_index_open(&ix, path, NULL, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int close_index(void **state)
{
    (void)state;
    gx_index_close(ix);
    gen_close(c);
    return unlink(path);
}

/* ---- the judge ---- */

static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The impacts of those of the plan's terms that `taken` marks (NULL: all), added to scores[N_DOCS]. */
static void add_impacts(const gx_plan *plan, const bool *taken, uint32_t *scores)
{
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        size_t len;
        const char *name = gx_index_term(ix, plan->terms[i].list, &len);
        const gen_list *l = &c->lists[strtoul(name + 1, NULL, 10)];
        for (uint32_t x = 0; (!taken || taken[i]) && x < l->df; ++x) {
            const float len_part = plan->norm.c1 * (float)c->doc_lens[l->docids[x]], K = plan->norm.c0 + len_part;
            const float above = plan->terms[i].w * (float)l->tfs[x], below = (float)l->tfs[x] + K;
            const long impact = lrintf(above / below);
            scores[l->docids[x]] += impact > 1 ? (uint32_t)impact : 1;
        }
    }
}

/* The k best of the documents that score and of which `allowed` (NULL: all) has a bit, to keys. */
static uint32_t best_of(const uint32_t *scores, const uint64_t *allowed, uint32_t k, uint64_t *keys)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < N_DOCS; ++d) {
        if (scores[d] && (!allowed || allowed[d / 64] >> d % 64 & 1))
            keys[n++] = (uint64_t)scores[d] << 32 | (uint32_t)~d;
    }
    qsort(keys, n, sizeof *keys, falling);
    return n < k ? n : k;
}

/* Leave the lightest terms out, one after another, while the share allows it. */
static bool leave_out(const gx_plan *plan, float share, bool *taken)
{
    double total = 0, gone = 0;
    uint32_t n = plan->n_terms;
    for (uint32_t i = 0; i < n; ++i) {
        taken[i] = true;
        total += plan->terms[i].w;
    }
    for (; n > 1; --n) {
        uint32_t least = UINT32_MAX;
        for (uint32_t i = 0; i < plan->n_terms; ++i) {
            if (taken[i] && (least == UINT32_MAX || plan->terms[i].w <= plan->terms[least].w))
                least = i;
        }
        gone += plan->terms[least].w;
        if (gone > share * total)
            break;
        taken[least] = false;
    }
    return n < plan->n_terms;
}

/* The answer's keys; *passes: the answer is that of two passes. */
static uint32_t judge(const gx_plan *plan, const gx_query_options *opt, const uint64_t *allowed, uint64_t *keys,
                      bool *passes)
{
    static uint32_t first[N_DOCS], all[N_DOCS];
    bool taken[GX_MAX_TERMS];
    memset(first, 0, sizeof first);
    memset(all, 0, sizeof all);
    add_impacts(plan, NULL, all);
    *passes = opt->approximate > 0 && opt->op == GX_OP_OR && opt->prune && leave_out(plan, opt->approximate, taken);
    if (!*passes)
        return best_of(all, allowed, plan->k, keys);
    add_impacts(plan, taken, first);
    const uint32_t n = best_of(first, allowed, 2 * plan->k + 40, keys);
    if (n < plan->k) {
        *passes = false;
        return best_of(all, allowed, plan->k, keys);
    }
    for (uint32_t i = 0; i < n; ++i)
        keys[i] = (uint64_t)all[(uint32_t)~keys[i]] << 32 | (uint32_t)keys[i];
    qsort(keys, n, sizeof *keys, falling);
    return n < plan->k ? n : plan->k;
}

/* ---- queries ---- */

typedef struct batch {
    gx_query queries[N_BATCH];
    gx_weighted_term terms[N_BATCH][N_TERMS];
    char names[N_BATCH][N_TERMS][16];
} batch;

static void make_batch(batch *b, gen_rng *r)
{
    for (uint32_t i = 0; i < N_BATCH; ++i) {
        const uint32_t n = 1 + gen_below(r, gen_below(r, 2) ? 6 : N_TERMS - 1), spread = 1 + gen_below(r, 8);
        for (uint32_t t = 0; t < n; ++t) {
            gen_term_name(gen_below(r, N_TERMS), b->names[i][t]);
            b->terms[i][t] = (gx_weighted_term){b->names[i][t], strlen(b->names[i][t]),
                                                (float)(1 + gen_below(r, 7)) / (float)(1u << gen_below(r, spread))};
        }
        b->queries[i] =
            (gx_query){.size = sizeof(gx_query), .kind = GX_QUERY_TERMS, .terms = b->terms[i], .n_terms = n};
    }
}

static gx_query_options make_options(gen_rng *r)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.preset = gen_below(r, 2) ? GX_IMPACT : GX_BM25;
    opt.k = 1 + gen_below(r, gen_below(r, 3) ? 20 : MAX_K);
    opt.approximate = (float)gen_below(r, 11) / 10;
    opt.prune = gen_below(r, 8) > 0;
    if (gen_below(r, 3) == 0)
        opt.algorithm = GX_ALGORITHM_BLOCK_MAX;
    return opt;
}

static void check_batch(gx_engine *en, gx_session *s, const batch *b, const gx_query_options *opt,
                        const uint64_t *allowed, uint32_t *n_passes)
{
    static uint32_t docids[N_BATCH * MAX_K];
    static double scores[N_BATCH * MAX_K];
    static uint64_t keys[N_DOCS];
    uint32_t n_hits[N_BATCH];
    uint64_t n_matches[N_BATCH];
    gx_error err = {0};
    const gx_results out = {sizeof out, docids, NULL, n_hits, n_matches, scores};
    if (gx_search(s, b->queries, N_BATCH, opt, &out, &err) != GX_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < N_BATCH; ++i) {
        gx_plan plan;
        bool passes;
        if (gx_engine_plan(&plan, en, &b->queries[i], opt, &err) != GX_OK)
            fail_msg("%s", err.text);
        const uint32_t n = judge(&plan, opt, allowed, keys, &passes);
        *n_passes += passes;
        for (uint32_t j = 0; j < n || n != n_hits[i]; ++j) {
            const size_t at = (size_t)i * opt->k + j;
            if (n != n_hits[i] || docids[at] != (uint32_t)~keys[j] ||
                scores[at] != ldexp((double)(keys[j] >> 32), -plan.exponent))
                fail_msg("query %u of a batch: wrong at rank %u (%u hits, %u wanted): %u terms, k %u, approximate %g, "
                         "%s%s",
                         i, j, n_hits[i], n, plan.n_terms, opt->k, opt->approximate, gx_preset_name(opt->preset),
                         allowed ? ", masked" : "");
        }
        gx_plan_free(&plan);
    }
}

typedef struct engine_row {
    gx_engine_kind kind;
    uint64_t map_memory, result_cache;
} engine_row;

static void answers_are_the_judges(void **state)
{
    const engine_row *row = *state;
    const uint32_t n_cases = env_uint("GX_TEST_CASES", row->kind == GX_ENGINE_CPU ? 400 : 100);
    gx_engine_options eopt = GX_ENGINE_OPTIONS;
    gx_engine *en;
    gx_session *s;
    gx_error err = {0};
    static batch b;
    uint64_t words[N_DOCS / 64 + 1];
    uint32_t n_passes = 0;
    eopt.kind = row->kind;
    eopt.map_memory = row->map_memory;
    eopt.result_cache = row->result_cache;
    const gx_status st = gx_engine_open(&en, ix, &eopt, &err);
    if (st == GX_ENOGPU)
        skip();
    if (st != GX_OK || gx_session_open(&s, en, &err) != GX_OK)
        fail_msg("%s", err.text);
    gen_rng r = {env_uint("GX_TEST_SEED", 11) + 1};
    for (uint32_t i = 0; i < n_cases; ++i) {
        gx_query_options opt = make_options(&r);
        gx_mask *mask = NULL;
        const bool masked = gen_below(&r, 4) == 0;
        for (size_t w = 0; w < sizeof words / sizeof *words; ++w)
            words[w] = gen_u64(&r) & gen_u64(&r);
        if (masked && gx_mask_open(&mask, en, words, &err) != GX_OK)
            fail_msg("%s", err.text);
        opt.mask = mask;
        make_batch(&b, &r);
        check_batch(en, s, &b, &opt, masked ? words : NULL, &n_passes);
        if (row->result_cache) { /* again, from the cache, and for fewer results */
            check_batch(en, s, &b, &opt, masked ? words : NULL, &n_passes);
            opt.k = 1 + opt.k / 2;
            check_batch(en, s, &b, &opt, masked ? words : NULL, &n_passes);
        }
        gx_mask_close(mask);
    }
    assert_true(n_passes > n_cases); /* of N_BATCH queries each */
    assert_true(row->result_cache == 0 || gx_session_stats(s)->cached > n_cases);
    gx_session_close(s);
    gx_engine_close(en);
}

/* AND and AND-then-OR know no approximation, and what is no share is refused. */
static void other_operators_are_exact_and_bad_shares_refused(void **state)
{
    (void)state;
    gx_engine_options eopt = GX_ENGINE_OPTIONS;
    gx_engine *en;
    gx_session *s;
    gx_error err = {0};
    static batch b;
    static uint32_t docids[2][N_BATCH * 10];
    static double scores[2][N_BATCH * 10];
    uint32_t n_hits[2][N_BATCH];
    gen_rng r = {5};
    eopt.kind = GX_ENGINE_CPU;
    if (gx_engine_open(&en, ix, &eopt, &err) != GX_OK || gx_session_open(&s, en, &err) != GX_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < 100; ++i) {
        make_batch(&b, &r);
        for (int way = 0; way < 2; ++way) {
            gx_query_options opt = GX_QUERY_OPTIONS;
            opt.op = i % 2 ? GX_OP_AND : GX_OP_AND_OR;
            opt.approximate = way ? 0.9f : 0;
            const gx_results out = {sizeof out, docids[way], NULL, n_hits[way], NULL, scores[way]};
            assert_int_equal(gx_search(s, b.queries, N_BATCH, &opt, &out, &err), GX_OK);
        }
        assert_memory_equal(n_hits[0], n_hits[1], sizeof n_hits[0]);
        for (uint32_t q = 0; q < N_BATCH; ++q) {
            assert_memory_equal(docids[0] + q * 10, docids[1] + q * 10, n_hits[0][q] * sizeof **docids);
            assert_memory_equal(scores[0] + q * 10, scores[1] + q * 10, n_hits[0][q] * sizeof **scores);
        }
    }
    const float bad[] = {-0.01f, 1.01f, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_query_options opt = GX_QUERY_OPTIONS;
        const gx_results out = {sizeof out, docids[0], NULL, n_hits[0], NULL, scores[0]};
        opt.approximate = bad[i];
        assert_int_equal(gx_search(s, b.queries, N_BATCH, &opt, &out, &err), GX_EUSAGE);
        assert_non_null(strstr(err.text, "between 0 and 1"));
    }
    gx_session_close(s);
    gx_engine_close(en);
}

static engine_row rows[] = {
    {GX_ENGINE_CPU, UINT64_MAX, 0},
    {GX_ENGINE_CPU, 0, 0}, /* scores are added by the compressed lists */
    {GX_ENGINE_CPU, UINT64_MAX, 1 << 20},
    {GX_ENGINE_GPU, UINT64_MAX, 0},
};

#define ON(i, name)                                                                                                    \
    {                                                                                                                  \
        "answers_are_the_judges " name, answers_are_the_judges, NULL, NULL, &rows[i]                                   \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {ON(0, "cpu"), ON(1, "cpu without tables"), ON(2, "cpu with a cache"),
                                       ON(3, "gpu"),
                                       cmocka_unit_test(other_operators_are_exact_and_bad_shares_refused)};
    if (getenv("GX_TEST_FILTER"))
        cmocka_set_test_filter(getenv("GX_TEST_FILTER"));
    return cmocka_run_group_tests(tests, open_index, close_index);
}
