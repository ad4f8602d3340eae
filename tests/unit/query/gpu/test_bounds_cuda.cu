/* What the GPU engine derives from lists, against every posting: bounds of lists and of queries,
 * k-th best impacts, presence maps and their ranks, tf classes, tables of blocks. Skipped where
 * there is no GPU. */
#include "query/gpu/sub_batch.cuh"

extern "C" {
#include "tests/support/gen.h"
#include "tests/support/test.h"
}
#include <unistd.h>

using namespace gx;

struct fixture {
    gen_collection *c;
    gx_index *ix;
    gpu_prepared_index *s;
    uint32_t *maps, *tables; /* copies */
};

/* False: there is no GPU. */
static bool open_fixture(fixture *f, uint64_t seed, uint32_t n_docs, uint32_t n_terms, const gx_codec *codec,
                         uint64_t map_memory)
{
    char path[] = "/tmp/gpuidx-test-bounds-XXXXXX";
    gx_error err = {};
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    memset(f, 0, sizeof *f);
    f->c = gen_open(seed, (gen_shape)(seed % GEN_N_SHAPES), n_docs, n_terms);
    if (gen_write(f->c, path, codec, codec, &err) != GX_OK || gx_index_open(&f->ix, path, NULL, &err) != GX_OK)
        fail_msg("%s", err.text);
    unlink(path);
    gx_engine_options opt = {sizeof opt, GX_ENGINE_GPU, 0, 0, map_memory};
    const gx_status st = gpu_prepare_index((void **)&f->s, f->ix, &opt, &err);
    if (st == GX_ENOGPU) {
        gx_index_close(f->ix);
        gen_close(f->c);
        return false;
    }
    if (st != GX_OK)
        fail_msg("%s", err.text);
    f->maps = (uint32_t *)malloc(f->s->map_words * 4);
    f->tables = (uint32_t *)malloc(f->s->table_words * 4);
    assert_true(f->maps && f->tables);
    assert_int_equal(cudaMemcpy(f->maps, f->s->maps, f->s->map_words * 4, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_int_equal(cudaMemcpy(f->tables, f->s->tables, f->s->table_words * 4, cudaMemcpyDeviceToHost), cudaSuccess);
    return true;
}

static void close_fixture(fixture *f)
{
    gpu_release_index(f->s);
    gx_index_close(f->ix);
    gen_close(f->c);
    free(f->maps);
    free(f->tables);
}

static gx_scorer norm_of(const fixture *f, double k1, double b, uint32_t lossy)
{
    return {(float)(k1 * (1 - b)), (float)(k1 * b / f->ix->avgdl), lossy};
}

/* ---- maps ---- */

static void maps_hold_every_posting_at_every_size(void **)
{
    static const uint64_t budgets[] = {0, 64, 600, 2000, 8000, 40000, UINT64_MAX};
    uint32_t n_maps = 0, n_exact = 0, n_classes = 0, n_tables = 0, n_without = 0;
    for (uint64_t seed = 0; seed < 28; ++seed) {
        fixture f;
        if (!open_fixture(&f, seed, seed % 3 ? 3000 : 40000, 40, gx_codecs[seed % 3], budgets[seed % 7]))
            skip();
        for (uint32_t term = 0; term < f.c->n_terms; ++term) {
            const gen_list *l = &f.c->lists[term];
            if (f.s->aux_of[term] == UINT32_MAX)
                continue;
            const list_aux *n = &f.s->aux_lists[f.s->aux_of[term]];
            assert_int_equal(n->list, term);
            const uint32_t *heads = f.ix->heads + f.ix->lists[term].first_block;
            for (uint32_t i = 0; i < l->df; ++i) {
                const uint32_t doc = l->docids[i], slot = doc >> n->map_shift;
                if (n->map_shift != NO_MAP_SHIFT)
                    assert_true(f.maps[n->map + slot / 32] >> slot % 32 & 1);
                if (n->classes != NO_CLASSES) {
                    const uint32_t c = f.maps[n->classes + slot / 16] >> slot % 16 * 2 & 3;
                    assert_true(c == CLASS_ANY || l->tfs[i] <= class_tf(c));
                    assert_true(c >= tf_class(l->tfs[i]));
                }
                if (n->map_shift == EXACT_SLOTS && doc % (32 * RANK_WORDS) == 0)
                    assert_int_equal(f.maps[n->map + f.s->X.rank_offset + doc / (32 * RANK_WORDS)], i);
                if (n->table_shift != NO_TABLE_SHIFT) { /* the block is the table's or a later one */
                    const uint32_t from = f.tables[n->table + (doc >> n->table_shift)];
                    assert_true(from <= i / f.ix->block_len);
                    assert_true(from == 0 || heads[from] <= doc);
                }
            }
            if (n->map_shift == EXACT_SLOTS) { /* and nothing else */
                uint32_t bits = 0;
                for (uint32_t w = 0; w < (f.c->n_docs + 31) / 32; ++w)
                    bits += (uint32_t)__builtin_popcount(f.maps[n->map + w]);
                assert_int_equal(bits, l->df);
            }
            n_maps += n->map_shift != NO_MAP_SHIFT;
            n_without += n->map_shift == NO_MAP_SHIFT;
            n_exact += n->map_shift == EXACT_SLOTS;
            n_classes += n->classes != NO_CLASSES;
            n_tables += n->table_shift != NO_TABLE_SHIFT;
        }
        close_fixture(&f);
    }
    print_message("%u maps, %u of them dense, %u with classes; %u lists without; %u tables\n", n_maps, n_exact,
                  n_classes, n_without, n_tables);
    assert_true(n_exact && n_classes && n_without && n_tables && n_maps > n_exact);
}

/* ---- bounds ---- */

static int falling(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static void lists_bounds_hold_for_every_posting(void **)
{
    static const double k1s[] = {0, 0.5, 0.9, 1.2, 2, 1000}, bs[] = {0, 0.4, 0.75, 1};
    for (uint64_t seed = 0; seed < 8; ++seed) {
        fixture f;
        if (!open_fixture(&f, seed, seed % 2 ? 3000 : 12000, 40, gx_codecs[seed % 3], UINT64_MAX))
            skip();
        for (uint32_t i = 0; i < 25; ++i) {
            gx_error err = {};
            gpu_call_counts calls = {};
            bounds *b;
            const gx_scorer norm =
                i == 24 ? gx_scorer{GX_LINEAR_K, 0, 0} : norm_of(&f, k1s[i % 6], bs[i / 6], i % 5 == 4);
            assert_int_equal(acquire_bounds(f.s, norm, &calls, &b, &err), GX_OK);
            for (uint32_t term = 0; term < f.c->n_terms; ++term) {
                const gen_list *l = &f.c->lists[term];
                const uint32_t number = f.s->aux_of[term];
                const float unit = i == 24 ? b->best[term] * (1 - 0x1p-22f) : 1; /* a rounding or two below */
                uint32_t reach[N_KTH] = {};
                for (uint32_t p = 0; p < l->df; ++p) {
                    const float tf = (float)l->tfs[p],
                                saturation = tf / (tf + gx_bm25_K(norm, f.c->doc_lens[l->docids[p]]));
                    assert_true(saturation <= b->best[term]);
                    for (uint32_t q = 0; number != UINT32_MAX && q < N_KTH; ++q)
                        reach[q] += saturation >= b->kth[(size_t)number * N_KTH + q] / 256.0f * unit;
                }
                if (i == 24 && number != UINT32_MAX)
                    assert_int_equal(b->kth[(size_t)number * N_KTH], 255);
                for (uint32_t q = 0; number != UINT32_MAX && q < N_KTH; ++q)
                    assert_true(b->kth[(size_t)number * N_KTH + q] == 0 || reach[q] >= kth_ranks[q]);
            }
            release_bounds(f.s, b);
        }
        close_fixture(&f);
    }
}

/* The query's lists as the kernels get them: no impact is above its list's bound, no sum of later
 * lists' above rest, and the first threshold is not above the k-th best score. */
static void check_query(const fixture *f, gpu_session *x, sub_batch *p, const gx_plan *plan, bool conjunctive,
                        uint32_t *scores, uint32_t *holders)
{
    const request j = {0, conjunctive ? GX_OP_AND : GX_OP_OR, false, 0};
    const uint32_t n_docs = f->c->n_docs;
    uint32_t number, n = 0, remaining_ub = 0;
    gx_error err = {};
    begin_description(p);
    assert_int_equal(add_query(x, p, {plan, &j, conjunctive, NO_QUERY}, &number, &err), GX_OK);
    assert_int_equal(number, 0);
    memset(scores, 0, n_docs * sizeof *scores);
    memset(holders, 0, n_docs * sizeof *holders);
    for (uint32_t i = plan->n_terms; i--;) {
        const gpu_term *t = &p->terms[i];
        uint32_t term = 0;
        while (f->ix->lists[term].first_block != t->at.first_block)
            ++term;
        const gen_list *l = &f->c->lists[term];
        assert_int_equal(t->weight.remaining_ub, remaining_ub);
        for (uint32_t x = 0; x < l->df; ++x) {
            const uint32_t doc = l->docids[x],
                           impact = gx_bm25_impact(t->weight.w, l->tfs[x], gx_bm25_K(plan->norm, f->c->doc_lens[doc]));
            assert_true(impact <= t->filter.bound);
            scores[doc] += impact;
            holders[doc] += 1;
            assert_true(scores[doc] <= remaining_ub + t->filter.bound);
        }
        remaining_ub += t->filter.bound;
    }
    for (uint32_t d = 0; d < n_docs; ++d) {
        if (conjunctive ? holders[d] == plan->n_terms : scores[d] != 0)
            scores[n++] = scores[d];
    }
    qsort(scores, n, sizeof *scores, falling);
    if (n >= plan->k)
        assert_true(p->queries[0].initial_threshold <= scores[plan->k - 1]);
    else
        assert_int_equal(p->queries[0].initial_threshold, 1);
}

static void queries_bounds_hold_for_every_document(void **)
{
    uint32_t n_cases = 0;
    sub_batch p = {};
    p.queries = (gpu_query *)calloc(1, sizeof *p.queries);
    p.terms = (gpu_term *)calloc(64, sizeof *p.terms);
    assert_true(p.queries && p.terms);
    for (uint64_t seed = 0; seed < 12; ++seed) {
        fixture f;
        gen_rng r = {seed};
        const uint32_t n_docs = seed % 2 ? 3000 : 12000;
        if (!open_fixture(&f, seed, n_docs, 40, gx_codecs[seed % 3], UINT64_MAX))
            skip();
        uint32_t *scores = (uint32_t *)malloc(n_docs * 4), *holders = (uint32_t *)malloc(n_docs * 4);
        assert_true(scores && holders);
        for (uint32_t i = 0; i < 100; ++i) {
            const uint32_t ks[] = {1, 10, 100, 1000, n_docs, 1 + gen_below(&r, n_docs)}, n = 1 + gen_below(&r, 8);
            gx_query_options opt = GX_QUERY_OPTIONS;
            gx_error err = {};
            gx_plan plan;
            gpu_session x = {};
            x.s = f.s;
            uint32_t ids[8];
            for (uint32_t t = 0; t < n; ++t)
                ids[t] = gen_below(&r, f.c->n_terms);
            opt.op = gen_below(&r, 2) ? GX_OP_AND : GX_OP_OR;
            opt.k = ks[gen_below(&r, 6)];
            opt.preset = (gx_preset)gen_below(&r, GX_N_PRESETS);
            assert_int_equal(gx_plan_make_ids(&plan, f.ix, ids, NULL, n, &opt, &err), GX_OK);
            check_query(&f, &x, &p, &plan, opt.op == GX_OP_AND, scores, holders);
            for (uint32_t used = 0; used < x.n_bounds_used; ++used)
                release_bounds(f.s, x.bounds_used[used]);
            gx_plan_free(&plan);
            ++n_cases;
        }
        free(scores);
        free(holders);
        close_fixture(&f);
    }
    free(p.queries);
    free(p.terms);
    print_message("%u cases\n", n_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_hold_every_posting_at_every_size),
        cmocka_unit_test(lists_bounds_hold_for_every_posting),
        cmocka_unit_test(queries_bounds_hold_for_every_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
