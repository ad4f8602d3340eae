/* The searches for an OR of many lists, over ranges of documents and by accumulators, and the choice between them,
 * against a judge of its own: sums of impacts over plain arrays, sorted. Each row is an instruction set. */
#include <math.h>
#include <unistd.h>

#include "query/cpu/block_max.h"
#include "query/cpu/choice.h"
#include "query/filter/mask.h"
#include "tests/support/collection.h"
#include "tests/support/gen.h"
#include "tests/support/vectors.h"

typedef struct fixture {
    collection *c;
    gx_index *ix;
    gx_cpu_lists *lists;
    gx_ranges *ranges;
    gx_cpu_searcher *s;
} fixture;

static const gx_cpu_kernels *kernels_named(const char *name)
{
    setenv("GX_CPU", name, 1);
    const gx_cpu_kernels *k = gx_cpu_choose();
    unsetenv("GX_CPU");
    return k;
}

static uint64_t test_seed(void)
{
    const char *s = getenv("GX_TEST_SEED");
    return s ? strtoull(s, NULL, 0) : 20261123;
}

/* Documents of a topic have neighbouring docids, each term a topic where it is frequent and great,
 * and a share of the other documents. most_tf: of the greatest. */
static void fill_list(posting_list *l, gen_rng *r, uint32_t n_docs, uint32_t most_tf)
{
    const uint32_t topics = 1 + n_docs / 500, home = gen_below(r, topics), rarity = gen_below(r, 14);
    const uint32_t greatest = 1 + gen_below(r, gen_below(r, 4) ? most_tf < 255 ? most_tf : 255 : most_tf);
    for (uint32_t d = 0; d < n_docs; ++d) {
        const bool at_home = d / 500 == home && rarity < 11;
        if (gen_below(r, at_home ? 3 : 2 << rarity))
            continue;
        l->docids[l->df] = d;
        l->tfs[l->df++] = 1 + (at_home ? gen_below(r, greatest) : gen_below(r, 1 + greatest / 4));
    }
    if (l->df == 0) {
        l->docids[0] = gen_below(r, n_docs);
        l->tfs[l->df++] = greatest;
    }
}

static void open_fixture(fixture *f, const gx_cpu_kernels *k, gen_rng *r, uint32_t n_docs, uint32_t n_terms,
                         uint32_t most_tf, uint64_t memory)
{
    char path[] = "/tmp/gpuidx-test-block-max-XXXXXX";
    const int fd = mkstemp(path);
    gx_error err = {0};
    assert_true(fd >= 0);
    close(fd);
    f->c = collection_make(gen_u64(r), n_docs, n_terms);
    memset(f->c->doc_lens, 0, n_docs * sizeof *f->c->doc_lens);
    for (uint32_t t = 0; t < n_terms; ++t) {
        posting_list *l = &f->c->lists[t];
        l->df = 0;
        fill_list(l, r, n_docs, most_tf);
        for (uint32_t i = 0; i < l->df; ++i)
            f->c->doc_lens[l->docids[i]] += l->tfs[i];
    }
    const gx_codec *codec = gx_codec_by_name(gen_below(r, 2) ? "gpubp128" : "gpuvbyte128");
    if (collection_write(f->c, path, codec, codec, &err) != GX_OK || gx_index_open(&f->ix, path, NULL, &err) != GX_OK ||
        gx_cpu_lists_open(&f->lists, f->ix, k, UINT64_MAX, &err) != GX_OK ||
        gx_cpu_searcher_open(&f->s, f->ix, k, f->lists, &err) != GX_OK)
        fail_msg("%s", err.text);
    f->ranges = gx_ranges_open(f->ix, f->lists, k, memory);
    assert_non_null(f->ranges);
    f->s->ranges = f->ranges;
    unlink(path);
}

static void close_fixture(fixture *f)
{
    gx_cpu_searcher_close(f->s);
    gx_ranges_close(f->ranges);
    gx_cpu_lists_close(f->lists);
    gx_index_close(f->ix);
    collection_free(f->c);
}

/* ---- a query ---- */

typedef struct test_query {
    gx_plan plan;
    gx_plan_term terms[GX_MAX_TERMS];
    gx_mask mask;
    uint32_t *words;
    bool *groups;
} test_query;

static uint32_t most_tf_of(const posting_list *l)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < l->df; ++i)
        most = l->tfs[i] > most ? l->tfs[i] : most;
    return most;
}

/* Weights that differ by up to 2^20, scaled so that no score is above 2^30. */
static void weigh_terms(const fixture *f, test_query *q, gen_rng *r, bool linear)
{
    double weights[GX_MAX_TERMS], total = 0;
    const uint32_t spread = 1 + gen_below(r, 20);
    for (uint32_t i = 0; i < q->plan.n_terms; ++i) {
        weights[i] = ldexp(1 + gen_below(r, 1000) / 1000.0, -(int)gen_below(r, spread));
        total += weights[i] * (linear ? most_tf_of(&f->c->lists[q->terms[i].list]) : 1);
    }
    for (uint32_t i = 0; i < q->plan.n_terms; ++i)
        q->terms[i].w = (float)(weights[i] / total * 0x1.fffp29 * (linear ? 0x1p60 : 1));
}

static void make_mask(const fixture *f, test_query *q, gen_rng *r)
{
    const uint32_t n_docs = f->c->n_docs, rarity = gen_below(r, 9);
    q->words = calloc(gx_mask_n_words(n_docs) + GX_MASK_SLACK, sizeof *q->words);
    q->groups = calloc(n_docs / GX_MASK_GROUP + 1, sizeof *q->groups);
    assert_true(q->words && q->groups);
    for (uint32_t d = 0; d < n_docs; ++d) {
        if (gen_below(r, 1u << rarity) == 0) {
            q->words[d / 32] |= UINT32_C(1) << d % 32;
            q->groups[d / GX_MASK_GROUP] = true;
        }
    }
    q->mask = (gx_mask){.words = q->words, .groups = q->groups};
    q->plan.mask = &q->mask;
}

static void make_query(const fixture *f, test_query *q, gen_rng *r)
{
    const uint32_t n = f->c->n_terms, most = gen_below(r, 4) ? 70 : GX_MAX_TERMS;
    const bool linear = gen_below(r, 2);
    static const uint32_t ks[] = {1, 10, 10, 10, 100, 1000, 10000};
    uint32_t wanted = 1 + gen_below(r, most < n ? most : n);
    q->plan = (gx_plan){.op = GX_OP_OR, .k = ks[gen_below(r, 7)], .prune = true, .terms = q->terms};
    q->plan.k = q->plan.k < f->c->n_docs ? q->plan.k : f->c->n_docs;
    q->words = NULL;
    q->groups = NULL;
    for (uint32_t t = 0; t < n && wanted; ++t) { /* wanted ones of those left, any set as likely as any other */
        if (gen_below(r, n - t) < wanted) {
            q->terms[q->plan.n_terms++] = (gx_plan_term){.list = t, .df = f->c->lists[t].df, .qtf = 1};
            --wanted;
        }
    }
    const double k1 = gen_below(r, 30) / 10.0, b = gen_below(r, 11) / 10.0;
    q->plan.norm = linear ? (gx_scorer){GX_LINEAR_K, 0, 0}
                          : (gx_scorer){(float)(k1 * (1 - b)), (float)(k1 * b / f->ix->avgdl), gen_below(r, 4) == 0};
    weigh_terms(f, q, r, linear);
    if (gen_below(r, 3) == 0)
        make_mask(f, q, r);
}

static void free_query(test_query *q)
{
    free(q->words);
    free(q->groups);
}

/* ---- the judge ---- */

static uint32_t lossy_length(uint32_t dl)
{
    if (dl < 40)
        return dl;
    uint32_t unit = 1;
    while ((dl - 24) / unit >= 16)
        unit *= 2;
    return (dl - 24) / unit * unit + 24;
}

static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static int by_df(const void *a, const void *b)
{
    const uint32_t x = ((const gx_plan_term *)a)->df, y = ((const gx_plan_term *)b)->df;
    return (x > y) - (x < y);
}

static uint64_t count_postings(const test_query *q)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < q->plan.n_terms; ++i)
        n += q->terms[i].df;
    return n;
}

/* The answer's keys; the caller frees. */
static uint64_t *judge(const fixture *f, const test_query *q, uint32_t *n_hits)
{
    const collection *c = f->c;
    uint32_t *scores = calloc(c->n_docs, sizeof *scores), n = 0;
    uint64_t *keys = malloc(c->n_docs * sizeof *keys);
    assert_true(scores && keys);
    for (uint32_t i = 0; i < q->plan.n_terms; ++i) {
        const posting_list *l = &c->lists[q->terms[i].list];
        for (uint32_t x = 0; x < l->df; ++x) {
            const uint32_t dl = c->doc_lens[l->docids[x]];
            const float len = (float)(q->plan.norm.lossy ? lossy_length(dl) : dl), scaled = q->plan.norm.c1 * len;
            const float K = q->plan.norm.c0 + scaled, tf = (float)l->tfs[x], above = q->terms[i].w * tf, below = tf + K;
            const long impact = lrintf(above / below);
            scores[l->docids[x]] += impact > 1 ? (uint32_t)impact : 1;
        }
    }
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        if (scores[d] && (!q->words || q->words[d / 32] >> d % 32 & 1))
            keys[n++] = (uint64_t)scores[d] << 32 | (uint32_t)~d;
    }
    qsort(keys, n, sizeof *keys, falling);
    *n_hits = n < q->plan.k ? n : q->plan.k;
    free(scores);
    return keys;
}

static void check_hits(const fixture *f, const test_query *q, uint64_t seed, const gx_hits *hits, const uint64_t *want,
                       uint32_t n_want)
{
    for (uint32_t i = 0; i < n_want || hits->n != n_want; ++i) {
        if (hits->n != n_want || hits->keys[i] != want[i])
            fail_msg("seed %llu: wrong at rank %u (%u hits, %u wanted): %u documents, %u terms, k %u, c0 %g c1 %g, %s",
                     (unsigned long long)seed, i, hits->n, n_want, f->c->n_docs, q->plan.n_terms, q->plan.k,
                     q->plan.norm.c0, q->plan.norm.c1, q->words ? "masked" : "no mask");
    }
}

/* The other ways to answer an OR of many lists, in any order of these: adding their impacts up, as far as that is worth
 * it, and bounds of ranges within a limit. */
static void check_other_ways(fixture *f, test_query *q, gen_rng *r, uint64_t seed, gx_hits *hits, const uint64_t *want,
                             uint32_t n_want)
{
    gx_error err = {0};
    bool done;
    if (gen_below(r, 2)) /* plans have them so */
        qsort(q->terms, q->plan.n_terms, sizeof *q->terms, by_df);
    for (int may_switch = 0; may_switch < 2; ++may_switch) {
        assert_int_equal(gx_cpu_accumulate(f->s, &q->plan, may_switch, hits, &err), GX_OK);
        check_hits(f, q, seed, hits, want, n_want);
        for (uint32_t d = 0; d < f->c->n_docs; ++d)
            assert_int_equal(f->s->scores[d], 0);
    }
    assert_int_equal(gx_cpu_block_max_within(f->s, &q->plan, pow(10, gen_below(r, 7)), hits, &done, &err), GX_OK);
    if (done)
        check_hits(f, q, seed, hits, want, n_want);
    else
        assert_int_equal(hits->n, 0);
    assert_int_equal(gx_cpu_answer(f->s, &q->plan, GX_OP_OR, count_postings(q), hits, &err), GX_OK);
    check_hits(f, q, seed, hits, want, n_want);
}

static void check_query(fixture *f, test_query *q, gen_rng *r, uint64_t seed, uint64_t *keys)
{
    gx_error err = {0};
    uint32_t n_want;
    uint64_t *want = judge(f, q, &n_want);
    gx_hits hits = {keys, 0};
    bool done;
    if (!q->words && n_want == q->plan.k && gen_below(r, 3) == 0) /* a threshold that is known beforehand */
        q->plan.initial_threshold = (uint32_t)(want[n_want - 1] >> 32) - gen_below(r, 2);
    if (gx_cpu_block_max(f->s, &q->plan, &hits, &done, &err) != GX_OK)
        fail_msg("%s", err.text);
    assert_true(done);
    check_hits(f, q, seed, &hits, want, n_want);
    check_other_ways(f, q, r, seed, &hits, want, n_want);
    free(want);
}

/* ---- tests ---- */

static const uint32_t sizes[] = {1, 31, 32, 33, 255, 256, 257, 1000, 2047, 2048, 2049, 5000, 20000, 50000, 12345};
#define N_SIZES (sizeof sizes / sizeof *sizes)
#define CASES_A_COLLECTION 250u

static void answers_are_the_judges(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    test_query *q = malloc(sizeof *q);
    uint64_t *keys = malloc(20000 * sizeof *keys);
    uint32_t n_cases = 0;
    assert_true(q && keys);
    for (size_t i = 0; i < N_SIZES; ++i) {
        const uint64_t seed = test_seed() + i;
        gen_rng r = {seed};
        fixture f;
        open_fixture(&f, k, &r, sizes[i], i % 5 == 4 ? 1500 : 90, i % 3 == 2 ? 65535 : 255, UINT64_MAX);
        for (uint32_t x = 0; x < CASES_A_COLLECTION; ++x, ++n_cases) {
            make_query(&f, q, &r);
            check_query(&f, q, &r, seed, keys);
            free_query(q);
        }
        close_fixture(&f);
    }
    print_message("%s: %u queries, seed %llu\n", k->name, n_cases, (unsigned long long)test_seed());
    free(keys);
    free(q);
}

/* No tables are made beyond the budget, and a list whose tfs do not fit has none. */
static void what_has_no_ranges_is_left_to_other_searches(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    static test_query q;
    uint64_t keys[10];
    gx_error err = {0};
    if (!k)
        skip();
    for (uint32_t i = 0; i < 3; ++i) {
        gen_rng r = {test_seed() + i};
        fixture f;
        bool done = true;
        gx_hits hits = {keys, 7};
        open_fixture(&f, k, &r, 5000, 90, 255, i == 0 ? 10000 : UINT64_MAX);
        q.plan = (gx_plan){.op = GX_OP_OR, .k = 10, .n_terms = 90, .prune = true, .terms = q.terms};
        q.plan.norm = (gx_scorer){GX_LINEAR_K, 0, 0};
        for (uint32_t t = 0; t < 90; ++t)
            q.terms[t] = (gx_plan_term){.list = t, .df = f.c->lists[t].df, .w = 0x1p75f, .qtf = 1};
        if (i == 1)
            f.ix->n_docs = 4000; /* as if the lists were damaged: docids that are too great are dropped */
        assert_int_equal(gx_cpu_block_max(f.s, &q.plan, &hits, &done, &err), GX_OK);
        assert_int_equal(done, i > 0);
        assert_true(i > 0 || gx_ranges_bytes(f.ranges) <= 10000);
        for (uint32_t x = 0; i == 1 && x < hits.n; ++x)
            assert_true(gx_key_docid(keys[x]) < 4000);
        close_fixture(&f);
    }
}

static bool stop(void *user)
{
    return ++*(int *)user > 0;
}

static void a_cancelled_search_leaves_nothing_behind(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    static test_query q;
    uint64_t *keys = malloc(20000 * sizeof *keys);
    gx_error err = {0};
    fixture f;
    bool done;
    int calls = 0;
    gen_rng r = {test_seed()};
    open_fixture(&f, k, &r, 20000, 90, 255, UINT64_MAX);
    for (uint32_t x = 0; x < 20; ++x) {
        gx_hits hits = {keys, 0};
        make_query(&f, &q, &r);
        q.plan.cancel = stop;
        q.plan.user = &calls;
        assert_int_equal(gx_cpu_block_max(f.s, &q.plan, &hits, &done, &err), GX_ECANCELLED);
        assert_int_equal(gx_cpu_accumulate(f.s, &q.plan, x % 2, &hits, &err), GX_ECANCELLED);
        q.plan.cancel = NULL;
        check_query(&f, &q, &r, test_seed(), keys);
        free_query(&q);
    }
    assert_int_equal(calls, 40);
    close_fixture(&f);
    free(keys);
}

#define ON(test, name)                                                                                                 \
    {                                                                                                                  \
#test " " name, test, NULL, NULL, (void *)name                                                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(answers_are_the_judges, "portable"),
        ON(answers_are_the_judges, VECTORS),
        ON(answers_are_the_judges, "avx512"),
        ON(what_has_no_ranges_is_left_to_other_searches, "portable"),
        ON(what_has_no_ranges_is_left_to_other_searches, VECTORS),
        ON(a_cancelled_search_leaves_nothing_behind, VECTORS),
        ON(a_cancelled_search_leaves_nothing_behind, "avx512"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
