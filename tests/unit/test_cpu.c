/* The CPU engine's parts: what is derived from lists holds for every posting, and the search equals
 * the accumulators even where the executor would not choose it. Each row is an instruction set. */
#include <math.h>
#include <unistd.h>

#include "query/cpu/search.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"

static const gx_cpu_kernels *kernels_named(const char *name)
{
    setenv("GX_CPU", name, 1);
    const gx_cpu_kernels *k = gx_cpu_choose();
    unsetenv("GX_CPU");
    return k;
}

typedef struct fixture {
    gen_collection *c;
    gx_index *ix;
    gx_cpu_lists *lists;
    gx_cpu_searcher *s;
} fixture;

static void open_fixture(fixture *f, const gx_cpu_kernels *k, uint64_t seed, uint32_t n_docs, const gx_codec *codec,
                         uint64_t maps)
{
    char path[] = "/tmp/gpuidx-test-cpu-XXXXXX";
    gx_error err = {0};
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    f->c = gen_open(seed, (gen_shape)(seed % GEN_N_SHAPES), n_docs, 40);
    if (gen_write(f->c, path, codec, codec, &err) != GX_OK || gx_index_open(&f->ix, path, NULL, &err) != GX_OK ||
        gx_cpu_lists_open(&f->lists, f->ix, k, maps, &err) != GX_OK ||
        gx_cpu_searcher_open(&f->s, f->ix, k, f->lists, &err) != GX_OK)
        fail_msg("%s", err.text);
    unlink(path);
}

static void close_fixture(fixture *f)
{
    gx_cpu_searcher_close(f->s);
    gx_cpu_lists_close(f->lists);
    gx_index_close(f->ix);
    gen_close(f->c);
}

/* The part of the posting with the greatest tf, of a linear scorer. */
static float unit_of(const gen_list *l, gx_scorer s)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < l->df; ++i)
        most = l->tfs[i] > most ? l->tfs[i] : most;
    return gx_scorer_is_linear(s) ? (float)most / GX_LINEAR_K : 1;
}

static gx_scorer norm_of(const fixture *f, double k1, double b, uint32_t lossy)
{
    return (gx_scorer){(float)(k1 * (1 - b)), (float)(k1 * b / f->ix->avgdl), lossy};
}

/* Against every posting: the list's and the block's bounds, as an impact at several weights and as
 * counts of the k-th. */
static void check_bounds(fixture *f, uint32_t term, gx_scorer norm)
{
    static const float weights[] = {0, 1.5f, 1000, 0x1.2345p22f, 0x1p30f};
    const gen_list *l = &f->c->lists[term];
    gx_cpu_params *p = gx_cpu_lists_params(f->lists, norm);
    assert_non_null(p);
    const gx_cpu_bounds *b = gx_cpu_params_bounds(f->lists, p, term, &f->s->scratch);
    assert_non_null(b);
    const float unit = unit_of(l, norm);
    uint32_t reach[GX_CPU_N_KTH] = {0};
    for (uint32_t i = 0; i < l->df; ++i) {
        const gx_cpu_block *block = &b->blocks[i / f->ix->block_len];
        const float K = gx_bm25_K(norm, f->c->doc_lens[l->docids[i]]), tf = (float)l->tfs[i];
        assert_true(K >= block->min_K);
        assert_true(tf / (tf + K) <= block->most && block->most <= b->most);
        for (size_t w = 0; w < sizeof weights / sizeof *weights; ++w) {
            const float weight = weights[w] / unit;
            const uint32_t impact = gx_bm25_impact(weight, l->tfs[i], K);
            const gx_cpu_bound bound = {.w = weight * (1 + 2e-6f), .min_K = block->min_K, .most = UINT32_MAX};
            assert_true(impact <= gx_cpu_bound_of(&bound, l->tfs[i]));
            assert_true(impact <= ceil((double)weight * block->most * (1 + 1e-6)) + 1);
        }
        for (uint32_t q = 0; q < GX_CPU_N_KTH; ++q)
            reach[q] += tf / (tf + K) >= b->kth[q] * (1 - 0x1p-22f); /* a rounding or two below, if linear */
    }
    for (uint32_t q = 0; q < GX_CPU_N_KTH; ++q) {
        if (b->kth[q] > 0)
            assert_true(reach[q] >= gx_cpu_kth_ranks[q]);
        if (q == 0 && gx_scorer_is_linear(norm) && l->df >= gx_cpu_kth_ranks[1])
            assert_true(b->kth[q] > 0);
    }
}

static void bounds_hold_for_every_posting(void **state)
{
    static const double k1s[] = {0, 0.5, 0.9, 1.2, 2, 1000}, bs[] = {0, 0.4, 0.75, 1};
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    for (uint64_t seed = 0; seed < GEN_N_SHAPES; ++seed) {
        fixture f;
        open_fixture(&f, k, seed, 3000, gx_codecs[seed % 3], UINT64_MAX);
        for (uint32_t term = 0; term < f.c->n_terms; term += 3) {
            for (uint32_t i = 0; i < 24; ++i)
                check_bounds(&f, term, norm_of(&f, k1s[i % 6], bs[i / 6], i % 5 == 4));
            check_bounds(&f, term, (gx_scorer){GX_LINEAR_K, 0, 0});
        }
        close_fixture(&f);
    }
}

static void maps_hold_every_posting_and_ranks_count_them(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    for (uint64_t seed = 0; seed < 8; ++seed) {
        fixture f;
        uint32_t n_dense = 0, n_maps = 0;
        /* seed 6: a list of 1,024 is just not dense */
        open_fixture(&f, k, seed, seed < 4 ? 3000 : seed == 6 ? 16 * 1024 : 40000, gx_codecs[seed % 3], UINT64_MAX);
        for (uint32_t term = 0; term < f.c->n_terms; ++term) {
            const gen_list *l = &f.c->lists[term];
            const gx_cpu_map *m = gx_cpu_lists_map(f.lists, term, &f.s->scratch);
            assert_non_null(m);
            uint32_t at = 0;
            for (uint32_t d = 0; m->map && d < f.c->n_docs; ++d) {
                const uint32_t slot = d >> m->map_shift;
                const bool held = at < l->df && l->docids[at] == d, set = m->map[slot / 32] >> slot % 32 & 1;
                assert_true(set || !held);
                if (m->rank) {
                    assert_int_equal(set, held);
                    if (d % 64 == 0)
                        assert_int_equal(m->rank[d / 64], at);
                }
                at += held;
            }
            n_maps += m->map != NULL;
            n_dense += m->rank != NULL;
        }
        assert_true(n_dense > 0 && n_maps > n_dense);
        close_fixture(&f);
    }
}

static void maps_stay_within_their_budget_and_longer_lists_come_first(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    uint64_t last = 0;
    for (uint64_t budget = 0; budget < 2000000; budget = budget * 3 / 2 + 500) {
        fixture f;
        uint32_t least_mapped = UINT32_MAX, greatest_unmapped = 0;
        open_fixture(&f, k, 3, 20000, gx_codecs[0], budget);
        for (uint32_t term = 0; term < f.c->n_terms; ++term) {
            const gx_cpu_map *m = gx_cpu_lists_map(f.lists, term, &f.s->scratch);
            const uint32_t df = f.c->lists[term].df;
            assert_non_null(m);
            if (m->map && df < least_mapped)
                least_mapped = df;
            if (!m->map && df >= 64 && df > greatest_unmapped)
                greatest_unmapped = df;
        }
        const uint64_t used = gx_cpu_lists_map_bytes(f.lists);
        assert_true(used <= budget);
        assert_true(used >= last);
        assert_true(least_mapped > greatest_unmapped);
        last = used;
        close_fixture(&f);
    }
    assert_true(last > 0);
}

/* The search against the accumulators, for every k and operator, on the same plan. */
static void the_search_equals_the_accumulators(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    uint32_t n_cases = 0, n_codecs = 0;
    if (!k)
        skip();
    while (gx_codecs[n_codecs])
        ++n_codecs;
    for (uint64_t seed = 0; seed < 24; ++seed) {
        fixture f;
        gen_rng r = {seed};
        gx_error err = {0};
        const uint32_t n_docs = 1 + gen_below(&r, seed % 6 == 5 ? 30000 : 4000);
        static const uint64_t maps[] = {UINT64_MAX, 0, UINT64_MAX, 20000};
        open_fixture(&f, k, seed, n_docs, gx_codecs[seed % n_codecs], maps[seed % 4]);
        uint64_t *fast = malloc(n_docs * sizeof *fast), *slow = malloc(n_docs * sizeof *slow);
        assert_non_null(fast);
        assert_non_null(slow);
        for (uint32_t i = 0; i < (n_docs > 4000 ? 60 : 200); ++i, ++n_cases) {
            const uint32_t ks[] = {1, 10, 64, 65, 100, 1000, n_docs, 1 + gen_below(&r, n_docs)};
            uint32_t ids[GX_CPU_MAX_LISTS],
                n = gen_below(&r, 10) ? 1 + gen_below(&r, 6) : 1 + gen_below(&r, GX_CPU_MAX_LISTS);
            gx_query_options opt = GX_QUERY_OPTIONS;
            gx_plan plan;
            opt.k = ks[gen_below(&r, 8)];
            opt.preset = (gx_preset)gen_below(&r, GX_N_PRESETS);
            for (uint32_t t = 0; t < n; ++t)
                ids[t] = gen_below(&r, f.c->n_terms);
            assert_int_equal(gx_plan_make_ids(&plan, f.ix, ids, NULL, n, &opt, &err), GX_OK);
            for (int op = GX_OP_OR; op <= GX_OP_AND; ++op) {
                gx_hits a = {fast, 0}, b = {slow, 0};
                assert_int_equal(gx_cpu_search(f.s, &plan, (gx_op)op, &a, &err), GX_OK);
                assert_int_equal(gx_cpu_exhaust(f.s, &plan, (gx_op)op, &b, &err), GX_OK);
                uint32_t x = 0;
                while (x < a.n && x < b.n && a.keys[x] == b.keys[x])
                    ++x;
                if (a.n != b.n || x < a.n)
                    fail_msg("seed %llu, case %u, %s: %u hits for %u, the first difference at %u of k %u",
                             (unsigned long long)seed, i, op == GX_OP_AND ? "AND" : "OR", a.n, b.n, x, plan.k);
            }
            gx_plan_free(&plan);
        }
        free(fast);
        free(slow);
        close_fixture(&f);
    }
    print_message("%s: %u cases\n", k->title, n_cases);
}

/* An index whose lists were damaged after it was checked: any answer will do, but nothing is read
 * or written outside. */
static void damaged_lists_do_no_harm(void **state)
{
    const gx_cpu_kernels *k = kernels_named(*state);
    if (!k)
        skip();
    for (uint64_t seed = 0; seed < 30; ++seed) {
        fixture f;
        gen_rng r = {seed};
        gx_error err = {0};
        open_fixture(&f, k, seed, 3000, gx_codecs[1 + seed % 2], seed % 4 < 2 ? UINT64_MAX : 0);
        const size_t n_bytes = f.ix->payload_words * 4;
        uint8_t *damaged = malloc(n_bytes + GX_READ_SLACK);
        assert_non_null(damaged);
        memcpy(damaged, f.ix->payload, n_bytes);
        memset(damaged + n_bytes, 0, GX_READ_SLACK);
        for (uint32_t i = 0; i < n_bytes / 50 + 1; ++i)
            damaged[gen_below(&r, (uint32_t)n_bytes)] = seed % 3 ? (uint8_t)gen_u64(&r) : 0xff;
        f.ix->payload = (const uint32_t *)(const void *)damaged;
        uint64_t keys[3000];
        for (uint32_t i = 0; i < 40; ++i) {
            uint32_t ids[5];
            gx_plan plan;
            gx_query_options opt = GX_QUERY_OPTIONS;
            opt.k = i % 2 ? 10 : 1000;
            opt.k1 = i % 4 ? 0.9f : 0;
            for (uint32_t t = 0; t < 5; ++t)
                ids[t] = gen_below(&r, f.c->n_terms);
            assert_int_equal(gx_plan_make_ids(&plan, f.ix, ids, NULL, 5, &opt, &err), GX_OK);
            for (int op = GX_OP_OR; op <= GX_OP_AND; ++op) {
                gx_hits hits = {keys, 0};
                assert_int_equal(gx_cpu_search(f.s, &plan, (gx_op)op, &hits, &err), GX_OK);
                for (uint32_t x = 0; x < hits.n; ++x)
                    assert_true(gx_key_docid(keys[x]) < f.ix->n_docs);
                assert_int_equal(gx_cpu_exhaust(f.s, &plan, (gx_op)op, &hits, &err), GX_OK);
            }
            gx_hits hits = {keys, 0};
            plan.recursion = i % (GX_MAX_RECURSION + 1);
            assert_int_equal(gx_cpu_intersect(f.s, &plan, &hits, &err), GX_OK);
            for (uint32_t x = 0; x < hits.n; ++x)
                assert_true(gx_key_docid(keys[x]) < f.ix->n_docs);
            gx_plan_free(&plan);
        }
        close_fixture(&f);
        free(damaged);
    }
}

/* ---- the k best ---- */

static int falling(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static void the_k_best_are_those_of_a_sort(void **state)
{
    static const uint32_t ks[] = {1, 2, 63, 64, 65, 100, 1000, 5000}, ranges[] = {1, 2, 50, 5000, 1u << 20, 1u << 30};
    gen_rng r = {7};
    gx_cpu_best *best = calloc(1, sizeof *best);
    uint64_t *keys = malloc(60000 * sizeof *keys), *out = malloc(5000 * sizeof *out);
    (void)state;
    assert_non_null(best);
    assert_non_null(keys);
    assert_non_null(out);
    for (int i = 0; i < 200; ++i) {
        const uint32_t k = ks[gen_below(&r, 8)], range = ranges[gen_below(&r, 6)],
                       n = gen_below(&r, gen_below(&r, 2) ? 60000 : 300);
        assert_true(gx_cpu_best_begin(best, k, 1));
        for (uint32_t x = 0; x < n; ++x) {
            const uint32_t score = 1 + gen_below(&r, range), docid = x * 7919u % 65537u;
            keys[x] = gx_key(score, docid);
            gx_cpu_best_add(best, score, docid);
        }
        const uint32_t got = gx_cpu_best_finish(best, out);
        qsort(keys, n, sizeof *keys, falling);
        assert_int_equal(got, n < k ? n : k);
        assert_memory_equal(out, keys, got * sizeof *out);
        if (n >= k)
            assert_true(best->threshold <= gx_key_score(out[k - 1]));
    }
    gx_cpu_best_free(best);
    free(best);
    free(keys);
    free(out);
}

#define ROWS(test)                                                                                                     \
    {#test " (portable)", test, NULL, NULL, "portable"}, {#test " (AVX2)", test, NULL, NULL, "avx2"},                  \
    {                                                                                                                  \
#test " (AVX-512)", test, NULL, NULL, "avx512"                                                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROWS(bounds_hold_for_every_posting),
        ROWS(maps_hold_every_posting_and_ranks_count_them),
        ROWS(maps_stay_within_their_budget_and_longer_lists_come_first),
        ROWS(the_search_equals_the_accumulators),
        ROWS(damaged_lists_do_no_harm),
        cmocka_unit_test(the_k_best_are_those_of_a_sort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
