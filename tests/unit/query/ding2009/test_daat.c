/* Document at a time decodes the blocks at which its pointers stand, which are counted here by a second form, and no
 * others; Parallel Merge Find decodes no more of the longer lists, and of all queries together no more blocks (Ding et
 * al. 2009, section 3). Both find what an exhaustive search finds. */
#include "query/engine/engine.h"
#include "tests/support/gen.h"
#include "tests/support/test.h"
#include "tools/bench/data/collection.h"

enum { DOCS = 60000, LISTS = 12, MOST_TERMS = 4, QUERIES = 150, BLOCK = 128, TOP = 10 };

typedef struct world {
    uint32_t *docids[LISTS], dfs[LISTS];
    gx_synth *synth;
    gx_engine *en;
    gx_session *session;
} world;

static void check(gx_status st, const gx_error *err)
{
    if (st != GX_OK)
        fail_msg("%s", err->text);
}

/* Lists of all lengths, every third one in clusters. */
static void open_world(world *w, const char *codec, gen_rng *r)
{
    gx_synth_options so = GX_SYNTH_OPTIONS;
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    gx_error err = {0};
    for (uint32_t i = 0; i < LISTS; ++i) {
        const uint32_t every = 1u << (1 + i % 9);
        w->docids[i] = malloc(DOCS * sizeof(uint32_t));
        w->dfs[i] = 0;
        for (uint32_t d = gen_below(r, every); d < DOCS;) {
            w->docids[i][w->dfs[i]++] = d;
            d += i % 3 == 2 && gen_below(r, 40) ? 1 + gen_below(r, 2)
                                                : 1 + gen_below(r, 2 * every * (i % 3 == 2 ? 20 : 1));
        }
    }
    const gx_synth_lists lists = {(const uint32_t *const *)w->docids, w->dfs, NULL, NULL};
    so.n_docs = DOCS;
    so.n_terms = LISTS;
    so.threads = 1;
    so.codec = gx_codec_by_name(codec);
    eo.kind = GX_ENGINE_CPU;
    check(gx_synth_open_lists(&w->synth, &so, &lists, &err), &err);
    check(gx_engine_open(&w->en, &w->synth->ix, &eo, &err), &err);
    check(gx_session_open(&w->session, w->en, &err), &err);
}

static void close_world(world *w)
{
    gx_session_close(w->session);
    gx_engine_close(w->en);
    gx_synth_close(w->synth);
    for (uint32_t i = 0; i < LISTS; ++i)
        free(w->docids[i]);
}

/* The blocks that an AND by document at a time decodes of its lists, in the order of their lengths. */
static void count_blocks(const world *w, const uint32_t *terms, uint32_t n, uint64_t *decoded)
{
    bool *seen[MOST_TERMS];
    uint32_t at[MOST_TERMS] = {0}, docid = 0;
    for (uint32_t i = 0; i < n; ++i) {
        seen[i] = calloc(DOCS / BLOCK + 1, sizeof **seen);
        seen[i][0] = true;
    }
    for (bool going = true; going;) {
        uint32_t next = docid;
        for (uint32_t i = 0; i < n && next == docid && going; ++i) {
            const uint32_t *v = w->docids[terms[i]], df = w->dfs[terms[i]], before = at[i] / BLOCK;
            while (at[i] < df && v[at[i]] < docid)
                ++at[i];
            /* of blocks that were passed, one may have held the docid: the last whose head is not beyond it */
            const uint32_t ahead = (at[i] < df ? at[i] : df - 1) / BLOCK;
            if (ahead > before && (at[i] == df || v[ahead * BLOCK] > docid) && at[i] % BLOCK == 0 && at[i] < df)
                seen[i][ahead - 1] = true;
            seen[i][ahead] = true;
            going = at[i] < df;
            next = going ? v[at[i]] : next;
        }
        docid = next == docid ? docid + 1 : next;
    }
    for (uint32_t i = 0; i < n; ++i) {
        decoded[i] = 0;
        for (uint32_t j = 0; j <= DOCS / BLOCK; ++j)
            decoded[i] += seen[i][j];
        free(seen[i]);
    }
}

/* Returns the blocks that were decoded. */
static uint64_t run(world *w, gx_plan *plan, gx_algorithm algorithm, uint64_t *keys, gx_hits *hits)
{
    gx_error err = {0};
    const uint64_t before = gx_session_stats(w->session)->blocks_decoded;
    *hits = (gx_hits){keys, 0, NULL};
    plan->algorithm = algorithm;
    plan->prune = algorithm != GX_ALGORITHM_AUTO;
    check(gx_session_run(w->session, plan, 1, hits, &err), &err);
    return gx_session_stats(w->session)->blocks_decoded - before;
}

static void query(world *w, const uint32_t *terms, uint32_t n, gx_op op, uint64_t total[2])
{
    uint64_t keys[3][TOP], decoded[MOST_TERMS], of_daat = 0, longer = 0;
    gx_hits hits[3];
    gx_query_options qo = GX_QUERY_OPTIONS;
    gx_plan plan;
    gx_error err = {0};
    qo.op = op;
    qo.k = TOP;
    check(gx_plan_make_ids(&plan, &w->synth->ix, terms, NULL, n, &qo, &err), &err);
    run(w, &plan, GX_ALGORITHM_AUTO, keys[0], &hits[0]);
    const uint64_t daat = run(w, &plan, GX_ALGORITHM_DAAT, keys[1], &hits[1]);
    const uint64_t pmf = run(w, &plan, GX_ALGORITHM_PMF, keys[2], &hits[2]);
    for (int i = 1; i < 3; ++i) {
        assert_int_equal(hits[i].n, hits[0].n);
        assert_memory_equal(keys[i], keys[0], hits[0].n * sizeof **keys);
    }
    if (op == GX_OP_AND) {
        uint32_t sorted[MOST_TERMS];
        for (uint32_t i = 0; i < n; ++i)
            sorted[i] = plan.terms[i].list;
        count_blocks(w, sorted, n, decoded);
        for (uint32_t i = 0; i < n; ++i) {
            of_daat += decoded[i];
            longer += i ? decoded[i] : 0;
        }
        assert_int_equal(daat, of_daat);
        if (n == 2)
            assert_true(pmf - (w->dfs[sorted[0]] + BLOCK - 1) / BLOCK <= longer);
        total[0] += daat;
        total[1] += pmf;
    }
    gx_plan_free(&plan);
}

static void both_decode_what_they_need(const char *codec)
{
    gen_rng r = {35};
    world w;
    uint64_t total[2] = {0, 0};
    open_world(&w, codec, &r);
    for (uint32_t q = 0; q < QUERIES; ++q) {
        uint32_t terms[MOST_TERMS], n = 0;
        const uint32_t wanted = 1 + gen_below(&r, MOST_TERMS);
        while (n < wanted) {
            const uint32_t t = gen_below(&r, LISTS);
            bool known = false;
            for (uint32_t i = 0; i < n; ++i)
                known |= terms[i] == t;
            if (!known)
                terms[n++] = t;
        }
        query(&w, terms, n, q % 5 == 4 ? GX_OP_OR : q % 5 == 3 ? GX_OP_AND_OR : GX_OP_AND, total);
    }
    print_message("%s: %llu blocks document at a time, %llu by Parallel Merge Find\n", codec,
                  (unsigned long long)total[0], (unsigned long long)total[1]);
    assert_true(total[1] <= total[0]);
    close_world(&w);
}

static void blocks_of_packed_lists(void **state)
{
    (void)state;
    both_decode_what_they_need("gpubp128");
}

static void blocks_of_pfordelta(void **state)
{
    (void)state;
    both_decode_what_they_need("pfordelta");
    both_decode_what_they_need("gpupfd128");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_packed_lists),
        cmocka_unit_test(blocks_of_pfordelta),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
