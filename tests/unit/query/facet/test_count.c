/* The number of matches, against counting over plain arrays. */
#include "query/facet/count.h"

#include "query/engine/session.h"
#include "query/filter/filter.h"
#include "tests/support/collection.h"
#include "tests/support/indexes.h"

typedef struct fixture {
    collection *c;
    gx_index *ix;
    gx_engine *en;
    gx_counter *counter;
} fixture;

static void open_fixture(fixture *f, uint64_t seed, uint32_t n_docs, uint32_t n_terms)
{
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    opt.kind = GX_ENGINE_CPU;
    f->c = collection_make(seed, n_docs, n_terms);
    assert_int_equal(collection_write(f->c, in_dir("a.gx"), gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
    f->ix = open_index("a.gx");
    assert_int_equal(gx_engine_open(&f->en, f->ix, &opt, &err), GX_OK);
    assert_int_equal(gx_counter_open(&f->counter, f->ix, &err), GX_OK);
}

static void close_fixture(fixture *f)
{
    gx_counter_close(f->counter);
    gx_engine_close(f->en);
    gx_index_close(f->ix);
    collection_free(f->c);
}

/* Documents that hold any, and all, of the n terms ids[n], of those that `allowed` has (a byte a
 * document; NULL: all). */
static void count_plainly(const collection *c, const uint32_t *ids, uint32_t n, const uint8_t *allowed, uint64_t *any,
                          uint64_t *all)
{
    uint32_t *held = calloc(c->n_docs + 1, sizeof *held);
    assert_non_null(held);
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t j = 0; j < c->lists[ids[i]].df; ++j)
            ++held[c->lists[ids[i]].docids[j]];
    *any = *all = 0;
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        *any += held[d] && (!allowed || allowed[d]);
        *all += held[d] == n && (!allowed || allowed[d]);
    }
    free(held);
}

/* The number of documents that match the plan. */
static gx_status count_matches(gx_counter *c, const gx_plan *plan, uint64_t *n, gx_error *err)
{
    uint64_t any, all;
    const gx_status st = gx_count_any_and_all(c, plan, &any, &all, err);
    *n = gx_count_is_of_all(plan, all) ? all : any;
    return st;
}

/* n different terms, any of them. */
static void pick_terms(uint64_t *seed, const collection *c, uint32_t n, uint32_t *ids)
{
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t j = 0;
        ids[i] = (uint32_t)(gx_random_next(seed) % c->n_terms);
        while (ids[j] != ids[i])
            ++j;
        i -= j < i;
    }
}

static uint64_t matches(const fixture *f, const gx_plan *plan)
{
    gx_error err = {0};
    uint64_t n = UINT64_MAX;
    assert_int_equal(count_matches(f->counter, plan, &n, &err), GX_OK);
    return n;
}

/* Each operator, with k on both sides of where AND has too few. */
static void assert_counts(const fixture *f, gx_plan *plan, uint64_t any, uint64_t all)
{
    gx_error err = {0};
    uint64_t got_any, got_all;
    assert_int_equal(gx_count_any_and_all(f->counter, plan, &got_any, &got_all, &err), GX_OK);
    assert_int_equal(got_any, any);
    assert_int_equal(got_all, all);
    plan->op = GX_OP_OR;
    assert_int_equal(matches(f, plan), any);
    plan->op = GX_OP_AND;
    assert_int_equal(matches(f, plan), all);
    plan->op = GX_OP_AND_OR;
    plan->k = (uint32_t)all;
    assert_int_equal(matches(f, plan), all);
    plan->k = (uint32_t)all + 1;
    assert_int_equal(matches(f, plan), any);
}

static void counts_are_those_of_plain_arrays(void **state)
{
    (void)state;
    uint64_t seed = 20261126;
    printf("seed %llu\n", (unsigned long long)seed);
    const uint32_t sizes[] = {1, 63, 64, 65, 1000, 3001};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        fixture f;
        open_fixture(&f, seed + s, sizes[s], 40);
        uint64_t *words = calloc(sizes[s] / 64 + 1, sizeof *words);
        uint8_t *allowed = malloc(sizes[s]);
        for (uint32_t q = 0; q < 60; ++q) {
            const gx_query_options opt = GX_QUERY_OPTIONS;
            gx_error err = {0};
            gx_plan plan;
            uint32_t ids[6];
            uint64_t any, all;
            const uint32_t n = 1 + (uint32_t)(gx_random_next(&seed) % 6);
            pick_terms(&seed, f.c, n, ids);
            assert_int_equal(gx_plan_make_ids(&plan, f.ix, ids, NULL, n, &opt, &err), GX_OK);
            count_plainly(f.c, ids, n, NULL, &any, &all);
            assert_counts(&f, &plan, any, all);

            gx_mask *mask;
            const uint64_t share = gx_random_next(&seed) % 101;
            memset(words, 0, (sizes[s] / 64 + 1) * sizeof *words);
            for (uint32_t d = 0; d < sizes[s]; ++d) {
                allowed[d] = gx_random_next(&seed) % 100 < share;
                words[d / 64] |= (uint64_t)allowed[d] << d % 64;
            }
            assert_int_equal(gx_mask_open(&mask, f.en, words, &err), GX_OK);
            plan.mask = mask;
            count_plainly(f.c, ids, n, allowed, &any, &all);
            assert_counts(&f, &plan, any, all);

            gx_filter *filter; /* on top of the mask: all but one document */
            char text[64];
            const uint32_t without = (uint32_t)(gx_random_next(&seed) % sizes[s]);
            snprintf(text, sizeof text, "NOT id:%s", f.c->ids[without]);
            assert_int_equal(gx_filter_open(&filter, f.ix, text, strlen(text), NULL, &err), GX_OK);
            plan.filter = filter;
            allowed[without] = 0;
            count_plainly(f.c, ids, n, allowed, &any, &all);
            assert_counts(&f, &plan, any, all);
            plan.filter = NULL;
            gx_filter_close(filter);
            plan.mask = NULL;
            gx_mask_close(mask);
            gx_plan_free(&plan);
        }
        free(words);
        free(allowed);
        close_fixture(&f);
    }
}

static void of_no_terms_nothing_matches(void **state)
{
    (void)state;
    const gx_query_options opt = GX_QUERY_OPTIONS;
    gx_error err = {0};
    gx_plan plan;
    fixture f;
    open_fixture(&f, 7, 100, 5);
    assert_int_equal(gx_plan_make(&plan, f.ix, "unheard of", 10, &opt, &err), GX_OK);
    assert_counts(&f, &plan, 0, 0);
    gx_plan_free(&plan);
    close_fixture(&f);
}

static uint32_t asked;

static bool cancel_at_the_third(void *user)
{
    (void)user;
    return ++asked == 3;
}

static void counting_is_cancelled_between_lists(void **state)
{
    (void)state;
    const gx_query_options opt = GX_QUERY_OPTIONS;
    const uint32_t ids[] = {0, 1, 2, 3};
    gx_error err = {0};
    gx_plan plan;
    uint64_t n;
    fixture f;
    open_fixture(&f, 8, 100, 5);
    assert_int_equal(gx_plan_make_ids(&plan, f.ix, ids, NULL, 4, &opt, &err), GX_OK);
    plan.cancel = cancel_at_the_third;
    assert_int_equal(count_matches(f.counter, &plan, &n, &err), GX_ECANCELLED);
    assert_int_equal(asked, 3);
    gx_plan_free(&plan);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_plain_arrays),
        cmocka_unit_test(of_no_terms_nothing_matches),
        cmocka_unit_test(counting_is_cancelled_between_lists),
    };
    return cmocka_run_group_tests_name("count", tests, make_dir, remove_dir);
}
