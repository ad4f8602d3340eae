/* What `gpuidx bench query` measures of a collection, wide ones among them: its answers are the judge's (of
 * support/wide_world.h), and its counts are of the postings that the parts have.
 *
 *   GX_TEST_CASES=200 GX_TEST_SEED=5 build/tests/test_query_bench     the long form
 */
#include <math.h>

#include "query/exec/wide_hits.h"
#include "tests/support/scratch.h"
#include "tests/support/wide_world.h"
#include "tools/bench/query/query_report.h"

enum { QUERIES = 12, K = 30 };

static uint64_t base_seed;
static uint32_t n_cases;

static void open_bench(query_bench *b, const world *w, const world_engines *engines, query_text *texts)
{
    *b = (query_bench){.ix = w->ix, .n = QUERIES, .runs = 1, .texts = texts};
    for (uint32_t e = 0; e < engines->n; ++e) {
        if (b->n_engines == 2 || e == 1) /* a cache of results would answer */
            continue;
        b->engines[b->n_engines++] =
            (query_engine){.name = engines->names[e], .en = engines->engines[e], .session = engines->sessions[e]};
    }
}

static bool is_known(const world *w, uint32_t word)
{
    bool known = false;
    for (uint32_t i = 0; i < w->n && word < WORLD_WORDS; ++i)
        known = known || (w->docs[i].live && w->docs[i].tfs[word]);
    return known;
}

/* Documents, deleted ones among them, of the query's words that live documents have. */
static uint64_t count_postings(const world *w, const world_query *q)
{
    uint64_t n = 0;
    for (uint32_t t = 0; t < q->n; ++t)
        for (uint32_t i = 0; i < w->n && is_known(w, q->words[t]); ++i)
            n += w->docs[i].tfs[q->words[t]] != 0;
    return n;
}

static void check_wanted(const query_bench *b, const world *w, const world_query *queries)
{
    static world_answer want;
    for (uint32_t i = 0; i < b->n; ++i) {
        uint64_t docids[K];
        double scores[K];
        world_judge(w, &queries[i], &want);
        for (uint32_t j = 0; j < b->want[i].n; ++j) {
            docids[j] = gx_hits_docid(&b->want[i], j);
            scores[j] = ldexp(gx_key_score(b->want[i].keys[j]), -b->engines[0].plans[i].exponent);
        }
        world_compare(w, &queries[i], "exhaustive", &want, b->want[i].n, docids, scores);
    }
}

static void check_row(query_bench *b, const world *w, const query_engine *e, const world_query *queries)
{
    gx_error err = {0};
    query_row row;
    uint64_t postings = 0;
    gx_list_sizes sizes = {0};
    const bool gpu = gx_engine_get_kind(e->en) == GX_ENGINE_GPU;
    for (uint32_t i = 0; i < b->n; ++i) {
        postings += count_postings(w, &queries[i]);
        gx_engine_add_list_sizes(e->en, &e->plans[i], &sizes);
    }
    world_check(w, query_measure(b, e, GX_ALGORITHM_TAAT, 0, 5, &row, &err), &err);
    assert_int_equal(row.different, 0);
    if (b->op == GX_OP_OR && !gpu) {
        assert_true(row.work.postings == postings && row.work.blocks_decoded == sizes.blocks);
        assert_true(fabs(row.bytes - (double)sizes.bytes) < 1e-3);
    }
    assert_true(gpu || b->op == GX_OP_AND_OR || sizes.postings == row.work.postings);
    assert_true(b->op == GX_OP_AND || sizes.postings == postings);
    world_check(w, query_measure(b, e, GX_ALGORITHM_AUTO, 0, 1, &row, &err), &err);
    assert_int_equal(row.different, 0);
}

static void answers_and_counts_are_true(void **state)
{
    (void)state;
    static world w;
    for (uint32_t c = 0; c < n_cases; ++c) {
        gx_error err = {0};
        query_bench b;
        world_engines engines;
        world_query queries[QUERIES];
        query_text texts[QUERIES] = {0};
        char words[QUERIES][64];
        world_open(&w, scratch_dir, base_seed + c);
        world_place_at(&w, (int)(c % WORLD_PLACES));
        world_open_engines(&engines, &w);
        for (uint32_t i = 0; i < QUERIES; ++i) {
            world_draw_query(&w, &queries[i]);
            queries[i].preset = GX_BM25;
            queries[i].k = K;
            queries[i].least_year = queries[i].most_year = 0;
            texts[i].text = (char *)world_text(&queries[i], words[i]);
            texts[i].len = strlen(texts[i].text);
        }
        open_bench(&b, &w, &engines, texts);
        for (uint32_t e = 0; e < b.n_engines && c == 0; ++e)
            print_message("%s: %s\n", b.engines[e].name, gx_engine_describe(b.engines[e].en));
        for (gx_op op = GX_OP_OR; op <= GX_OP_AND_OR; ++op) {
            for (uint32_t i = 0; i < QUERIES; ++i)
                queries[i].op = op;
            world_check(&w, query_plan_all(&b, op, K, &err), &err);
            check_wanted(&b, &w, queries);
            for (uint32_t e = 0; e < b.n_engines; ++e)
                check_row(&b, &w, &b.engines[e], queries);
        }
        query_free_plans(&b);
        world_close_engines(&engines);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_and_counts_are_true),
    };
    base_seed = world_number("GX_TEST_SEED", 1);
    n_cases = (uint32_t)world_number("GX_TEST_CASES", 2 * WORLD_PLACES);
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
