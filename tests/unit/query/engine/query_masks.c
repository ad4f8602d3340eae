/* query_masks.c: answers under masks, by every engine in every way, against the oracle's. Queries
 * of one batch have different masks, or none. */
#include <math.h>

#include "tests/support/query_fixture.h"
#include "tests/support/test.h"

enum { N_MASKS = 9, MAX_PAIR_BATCH = 24 };

typedef struct masks {
    uint64_t *words[N_MASKS]; /* the last is NULL: no mask */
    gx_mask *of[N_MASKS];
} masks;

/* Bits at and past n_docs are random: they must not matter. */
static uint64_t *random_mask(gen_rng *r, uint32_t n_docs, uint32_t kind)
{
    static const uint32_t percents[] = {0, 0, 1, 50, 99, 100};
    const size_t n_words = ((size_t)n_docs + 63) / 64;
    uint64_t *words = calloc(n_words + 1, sizeof *words);
    assert_non_null(words);
    const uint32_t percent = kind < 6 ? percents[kind] : gen_below(r, 101), run = kind == 7 ? 1 + gen_below(r, 600) : 1;
    for (uint32_t d = 0; d < n_docs; d += run) {
        const bool in = gen_below(r, 100) < percent;
        for (uint32_t i = d; in && i < n_docs && i < d + run; ++i)
            words[i / 64] |= UINT64_C(1) << i % 64;
    }
    if (kind == 1 && n_docs) {
        const uint32_t d = gen_below(r, n_docs);
        words[d / 64] |= UINT64_C(1) << d % 64;
    }
    for (uint64_t d = n_docs; d < 64 * (uint64_t)n_words; ++d)
        words[d / 64] |= (uint64_t)gen_below(r, 2) << d % 64;
    return words;
}

static void open_masks(masks *m, const fixture *f, gen_rng *r)
{
    memset(m, 0, sizeof *m);
    for (uint32_t i = 0; i + 1 < N_MASKS; ++i) {
        gx_error err = {0};
        m->words[i] = random_mask(r, f->c->n_docs, i);
        if (gx_mask_open(&m->of[i], f->en, m->words[i], &err) != GX_OK)
            fail_msg("mask %u: %s", i, err.text);
    }
}

static void close_masks(masks *m)
{
    for (uint32_t i = 0; i < N_MASKS; ++i) {
        gx_mask_close(m->of[i]);
        free(m->words[i]);
    }
}

/* ---- a batch ---- */

typedef struct batch {
    uint32_t n;
    gx_query_options opt[MAX_PAIR_BATCH]; /* whose k is the largest */
    test_query tests[MAX_PAIR_BATCH];
    oracle_answer want[MAX_PAIR_BATCH];
    gx_plan plans[MAX_PAIR_BATCH];
    gx_hits hits[MAX_PAIR_BATCH];
    uint64_t *keys;
} batch;

/* Operators, k and masks differ from query to query. */
static void make_batch(batch *b, const fixture *f, const masks *m, gen_rng *r, uint32_t n)
{
    const uint32_t ks[] = {1, 2, 10, 10, 33, 100, 1000, f->c->n_docs}, one = gen_below(r, 3 * N_MASKS);
    b->n = n;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t mask = one < N_MASKS ? one : gen_below(r, N_MASKS);
        gx_query_options *opt = &b->opt[i];
        test_query *t = &b->tests[i];
        make_query(t, r, f->c, gen_below(r, 8) ? 5 : 20);
        *opt = (gx_query_options)GX_QUERY_OPTIONS;
        opt->op = t->q.op = (gx_op)gen_below(r, 3);
        opt->k = t->q.k = ks[gen_below(r, sizeof ks / sizeof *ks)];
        opt->preset = t->q.preset = gen_below(r, 4) ? GX_BM25 : gen_below(r, 2) ? GX_IMPACT : GX_BM25_LUCENE_LOSSY;
        opt->mask = m->of[mask];
        t->q.mask = m->words[mask];
        t->q.k1 = t->q.b = NAN;
        b->want[i] = oracle_search(f->c, &t->q);
    }
}

static void free_batch(batch *b)
{
    for (uint32_t i = 0; i < b->n; ++i)
        oracle_free(&b->want[i]);
}

/* As plans of one run. */
static void run_as_batch(batch *b, const fixture *f, const engine_row *row, const search_variant *way,
                         uint32_t recursion)
{
    gx_error err = {0};
    uint64_t *keys = b->keys;
    for (uint32_t i = 0; i < b->n; ++i) {
        gx_query_options opt = b->opt[i];
        opt.prune = way->prune;
        opt.algorithm = opt.k <= ding2009_max_k() ? way->algorithm : GX_ALGORITHM_AUTO;
        opt.recursion = recursion;
        if (gx_plan_make(&b->plans[i], f->ix, b->tests[i].text, strlen(b->tests[i].text), &opt, &err) != GX_OK)
            fail_msg("%s: %s", row->name, err.text);
        gx_engine_apply_known_threshold(f->en, &b->plans[i]);
        b->hits[i] = (gx_hits){keys, 0};
        keys += b->plans[i].k;
    }
    if (gx_session_run(f->s, b->plans, b->n, b->hits, &err) != GX_OK)
        fail_msg("%s: collection seed %llu: %s", row->name, (unsigned long long)f->c->seed, err.text);
    for (uint32_t i = 0; i < b->n; ++i) {
        const gx_hits *h = &b->hits[i];
        uint32_t *docids = malloc((h->n + 1) * sizeof *docids);
        float *scores = malloc((h->n + 1) * sizeof *scores);
        assert_true(docids && scores);
        for (uint32_t x = 0; x < h->n; ++x) {
            docids[x] = gx_key_docid(h->keys[x]);
            scores[x] = ldexpf((float)gx_key_score(h->keys[x]), -b->plans[i].exponent);
        }
        check_answer(f, row, &b->tests[i], &b->opt[i], &b->want[i], (engine_answer){docids, scores, h->n});
        gx_plan_free(&b->plans[i]);
        free(docids);
        free(scores);
    }
}

/* By gx_search, a query a call, matches counted. */
static void run_one_by_one(batch *b, const fixture *f, const engine_row *row, const search_variant *way)
{
    uint32_t *docids = malloc((f->c->n_docs + 1000) * sizeof *docids);
    float *scores = malloc((f->c->n_docs + 1000) * sizeof *scores);
    assert_true(docids && scores);
    for (uint32_t i = 0; i < b->n; ++i) {
        gx_error err = {0};
        uint32_t n_hits;
        uint64_t n_matches;
        gx_query_options opt = b->opt[i];
        const gx_results out = {sizeof out, docids, scores, &n_hits, &n_matches};
        opt.prune = way->prune;
        opt.count = true;
        if (gx_search(f->s, &(gx_query)GX_TEXT_QUERY(b->tests[i].text, strlen(b->tests[i].text)), 1, &opt, &out,
                      &err) != GX_OK)
            fail_msg("%s: %s", row->name, err.text);
        check_answer(f, row, &b->tests[i], &opt, &b->want[i], (engine_answer){docids, scores, n_hits});
        assert_int_equal(n_matches, b->want[i].n_matches);
    }
    free(docids);
    free(scores);
}

/* ---- tests ---- */

void answers_under_masks_equal_the_oracles(void **state)
{
    static const uint32_t sizes[] = {1, 2, 64, 130, 700, 2500, 6000, 20000};
    static batch b;
    const engine_row *row = *state;
    const uint64_t seed = test_seed() + 5000;
    uint32_t n_cases = 0;
    for (uint32_t i = 0; n_cases < min_cases() / 4 || i < min_cases() / 400; ++i) {
        gen_rng r = {seed + i};
        const gx_codec *codec = pick_codec(i % 3 ? 1 : i);
        const uint32_t n_docs = sizes[gen_below(&r, sizeof sizes / sizeof *sizes)];
        fixture f;
        masks m;
        gx_error err = {0};
        gx_query_options learnt = GX_QUERY_OPTIONS;
        open_collection(&f, seed + i, (gen_shape)(i % GEN_N_SHAPES), n_docs, 4 + gen_below(&r, 40), codec, codec);
        if (!open_engine(&f, row, gen_below(&r, 3) ? UINT64_MAX : gen_below(&r, 2) * 4096)) {
            close_collection(&f);
            skip();
        }
        if (i == 0)
            print_message("seed %llu, %s\n", (unsigned long long)seed, gx_engine_describe(f.en));
        learnt.k = 1000; /* thresholds of pairs, which are not a masked query's */
        if (gx_engine_precompute_pair_thresholds(f.en, &learnt, 6, 1, &err) != GX_OK)
            fail_msg("pairs: %s", err.text);
        open_masks(&m, &f, &r);
        b.keys = malloc(((size_t)n_docs + 1000) * MAX_PAIR_BATCH * sizeof *b.keys);
        assert_non_null(b.keys);
        for (uint32_t left = n_docs > 5000 ? 30 : 60; left;) {
            const uint32_t most = left < MAX_PAIR_BATCH ? left : MAX_PAIR_BATCH,
                           n = 1 + gen_below(&r, gen_below(&r, 2) && most > 4 ? 4 : most);
            make_batch(&b, &f, &m, &r, n);
            for (uint32_t way = 0; way < N_SEARCH_VARIANTS; ++way) {
                if (ways[way].alone)
                    run_one_by_one(&b, &f, row, &ways[way]);
                else
                    run_as_batch(&b, &f, row, &ways[way], gen_below(&r, GX_MAX_RECURSION + 1));
            }
            free_batch(&b);
            left -= n;
            n_cases += n;
        }
        free(b.keys);
        close_masks(&m);
        close_collection(&f);
    }
    print_message("%u cases\n", n_cases);
}

void a_mask_that_is_wrong_is_refused(void **state)
{
    const engine_row *row = *state;
    fixture f, other;
    gx_mask *m;
    gx_error err = {0};
    uint32_t docids[10], n_hits;
    const uint64_t words[2] = {UINT64_MAX, UINT64_MAX};
    const gx_results out = {sizeof out, docids, NULL, &n_hits, NULL};
    gx_query_options opt = GX_QUERY_OPTIONS;
    open_collection(&f, test_seed(), GEN_UNIFORM, 100, 5, pick_codec(1), pick_codec(1));
    open_collection(&other, test_seed(), GEN_UNIFORM, 100, 5, pick_codec(1), pick_codec(1));
    if (!open_engine(&f, row, UINT64_MAX) || !open_engine(&other, row, UINT64_MAX)) {
        close_collection(&f);
        close_collection(&other);
        skip();
    }
    assert_int_equal(gx_mask_open(&m, f.en, NULL, &err), GX_EUSAGE);
    assert_null(m);
    assert_non_null(strstr(err.text, "no words"));
    assert_int_equal(gx_mask_open(&m, f.en, words, &err), GX_OK);
    assert_string_equal(err.text, "");
    opt.mask = m;
    assert_int_equal(gx_search(other.s, &(gx_query)GX_TEXT_QUERY("t0000000", 8), 1, &opt, &out, &err), GX_EUSAGE);
    assert_non_null(strstr(err.text, "another engine's"));
    assert_int_equal(gx_search(f.s, &(gx_query)GX_TEXT_QUERY("t0000000", 8), 1, &opt, &out, &err), GX_OK);
    assert_true(n_hits > 0);
    gx_mask_close(m);
    gx_mask_close(NULL);
    close_collection(&f);
    close_collection(&other);
}
