/* The cost model: least squares, rules, fits that are known, and the profile's file. */
#include "query/schedule/cost_model.h"

#include <math.h>
#include <unistd.h>

#include "tests/support/gen.h"
#include "tests/support/scratch.h"
#include "tests/support/test.h"

static const char *path(void)
{
    return in_dir("profile");
}

static void assert_near(double a, double b, double most)
{
    if (!(fabs(a - b) <= most))
        fail_msg("%.17g is not %.17g", a, b);
}

static double uniform(gen_rng *rng)
{
    return (double)(gen_u64(rng) >> 11) * 0x1p-53;
}

/* ---- least squares ---- */

static void weights_that_are_positive_are_found(void **state)
{
    (void)state;
    const double ata[4] = {2, 1, 1, 3}, atb[2] = {2 * 4 + 5, 4 + 3 * 5};
    double w[2];
    gx_least_squares(ata, atb, 2, w);
    assert_near(w[0], 4, 1e-9);
    assert_near(w[1], 5, 1e-9);
}

/* At the minimum the gradient is 0 where a weight is above 0, and does not fall where it is 0. */
static void no_weight_is_negative_and_none_can_be_better(void **state)
{
    (void)state;
    enum { N = 6, ROWS = 40 };
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        gen_rng rng = {seed};
        double a[ROWS][N], b[ROWS], ata[N * N] = {0}, atb[N] = {0}, w[N];
        for (int r = 0; r < ROWS; ++r) {
            b[r] = uniform(&rng);
            for (int i = 0; i < N; ++i)
                a[r][i] = uniform(&rng) - 0.3;
        }
        for (int i = 0; i < N; ++i) {
            for (int r = 0; r < ROWS; ++r)
                atb[i] += a[r][i] * b[r];
            for (int j = 0; j < N; ++j)
                for (int r = 0; r < ROWS; ++r)
                    ata[i * N + j] += a[r][i] * a[r][j];
        }
        gx_least_squares(ata, atb, N, w);
        for (int i = 0; i < N; ++i) {
            double gradient = -atb[i];
            for (int j = 0; j < N; ++j)
                gradient += ata[i * N + j] * w[j];
            if (!(w[i] >= 0) || (w[i] > 0 && fabs(gradient) > 1e-7) || gradient < -1e-7)
                fail_msg("seed %d: weight %d is %g, its gradient %g", (int)seed, i, w[i], gradient);
        }
    }
}

/* ---- the model ---- */

static gx_query_features random_features(gen_rng *rng)
{
    gx_query_features f = {.n_terms = 1 + gen_below(rng, 8), .k = gen_below(rng, 2) ? 10 : 1000};
    f.op = (gx_op)gen_below(rng, 3);
    f.shortest = 1 + gen_below(rng, 1000);
    f.second = f.n_terms > 1 ? f.shortest + gen_below(rng, 10000) : 0;
    const double others = f.n_terms > 2 ? f.second + gen_below(rng, 1000000) : 0;
    f.sum = f.shortest + f.second + others;
    f.longest = others > 0 ? others : f.second > 0 ? f.second : f.shortest;
    f.essential = f.shortest + (gen_below(rng, 2) ? f.second : 0);
    f.capped[0] = fmin(f.shortest, 128) + fmin(f.second, 128) + fmin(others, 128);
    f.capped[1] = fmin(f.shortest, 1000) + fmin(f.second, 1000) + fmin(others, 1000);
    f.capped[2] = f.shortest + fmin(f.second, 10000) + fmin(others, 10000);
    return f;
}

static gx_plan plan_of(gx_plan_term *terms, uint32_t n, uint32_t k)
{
    return (gx_plan){.terms = terms, .n_terms = n, .k = k};
}

static void features_are_the_lengths_of_the_lists(void **state)
{
    (void)state;
    gx_plan_term terms[] = {{.df = 5, .w = 100}, {.df = 500, .w = 60}, {.df = 20000, .w = 20}, {.df = 30000, .w = 10}};
    gx_plan plan = plan_of(terms, 4, 10);
    const gx_query_features f = gx_plan_features(&plan);
    assert_true(f.shortest == 5 && f.second == 500 && f.longest == 30000 && f.sum == 50505 && f.n_terms == 4);
    assert_true(f.capped[0] == 5 + 3 * 128 && f.capped[1] == 505 + 2000 && f.capped[2] == 505 + 20000);
    assert_true(f.missing == 0);
    /* the list of 500 makes 48 the threshold, which the weights of the lists after it, 30, do not reach */
    assert_true(f.essential == 505);
    plan.initial_threshold = 25; /* less than what is known */
    assert_true(gx_plan_features(&plan).essential == 505);
    plan.initial_threshold = 95;
    assert_true(gx_plan_features(&plan).essential == 5);
    plan.initial_threshold = 0;
    plan.k = 1000; /* the threshold is 16 */
    assert_true(gx_plan_features(&plan).essential == 20505);
    plan.k = 40000; /* there is none */
    assert_true(gx_plan_features(&plan).essential == 50505);
    plan.n_terms = 0;
    assert_true(gx_plan_features(&plan).essential == 0);
}

static void long_queries_are_never_told_to_cost_nothing(void **state)
{
    (void)state;
    gx_query_features f = {.op = GX_OP_OR, .n_terms = 4, .k = 10, .shortest = 2174, .second = 90000, .longest = 9e6};
    gx_cost_profile *p = calloc(1, sizeof *p);
    assert_non_null(p);
    f.sum = 1.2e7;
    /* the weights of a fit that says less than nothing of this query */
    p->weights[GX_COST_CPU][gx_cost_leaf(&f, 1, GX_COST_CPU, 0)][0] = -86000;
    assert_true(gx_cost_predict(p, GX_COST_CPU, &f, 1) > 20000);
    assert_true(gx_cost_of_query(p, &f).cpu > 20000);
    gx_query_features small = f;
    small.shortest = small.second = small.longest = small.sum = 40;
    p->weights[GX_COST_CPU][gx_cost_leaf(&small, 1, GX_COST_CPU, 0)][0] = -86000;
    assert_true(gx_cost_predict(p, GX_COST_CPU, &small, 1) < 4000);
    free(p);
}

static void costs_that_are_linear_are_learnt(void **state)
{
    (void)state;
    enum { N = 6000 };
    gen_rng rng = {7};
    gx_cost_profile *p = calloc(1, sizeof *p);
    gx_cost_sample *samples = malloc(N * sizeof *samples);
    gx_query_features *all = malloc(N * sizeof *all);
    for (int i = 0; i < N; ++i) {
        const gx_query_features f = all[i] = random_features(&rng);
        gx_cost_basis(NULL, &f, 1, GX_COST_CPU, 0, samples[i].basis);
        samples[i].leaf = gx_cost_leaf(&f, 1, GX_COST_CPU, 0);
        samples[i].ns = 500 * (1 + f.op) * f.n_terms + 2 * f.shortest + 30 * sqrt(f.sum);
    }
    assert_int_equal(gx_cost_fit(p->weights[GX_COST_CPU], samples, N, true, NULL), GX_OK);
    for (int i = 0; i < N; ++i) {
        const double predicted = gx_cost_predict(p, GX_COST_CPU, &all[i], 1);
        if (fabs(predicted / samples[i].ns - 1) > 0.02)
            fail_msg("query %d: %g ns instead of %g", i, predicted, samples[i].ns);
    }
    free(all);
    free(samples);
    free(p);
}

static void a_batch_costs_its_fixed_part_and_its_queries(void **state)
{
    (void)state;
    gen_rng rng = {8};
    gx_cost_profile p;
    gx_query_features batch[64];
    gx_cost_profile_init(&p);
    double sum = 0;
    for (int i = 0; i < 64; ++i) {
        batch[i] = random_features(&rng);
        batch[i].op = GX_OP_OR;
        batch[i].k = 10;
        const gx_query_costs costs = gx_cost_of_query(&p, &batch[i]);
        sum += costs.gpu;
        assert_near(costs.cpu, gx_cost_predict(&p, GX_COST_CPU, &batch[i], 1), 1e-6 * costs.cpu);
        assert_near(costs.gpu_alone, gx_cost_predict(&p, GX_COST_GPU_ALONE, &batch[i], 1), 1e-6 * costs.gpu_alone);
    }
    const double fixed = gx_cost_fixed(&p, batch, 64);
    assert_true(fixed > 0 && sum > 0);
    assert_near(gx_cost_predict(&p, GX_COST_GPU_BATCH, batch, 64), fixed + sum, 1e-6 * (fixed + sum));
}

/* A batch takes as long as its slowest query alone and 100 ns for each query, 5,000 if it is long. */
static void batches_that_wait_for_their_slowest_query_are_learnt(void **state)
{
    (void)state;
    enum { N = 3000, MOST = 16 };
    gen_rng rng = {17};
    gx_cost_profile *p = malloc(sizeof *p);
    gx_cost_sample *samples = malloc(N * sizeof *samples);
    gx_query_features(*all)[MOST] = malloc(N * sizeof *all);
    uint32_t *sizes = malloc(N * sizeof *sizes);
    gx_cost_profile_init(p);
    for (int i = 0; i < N; ++i) {
        const gx_op op = (gx_op)gen_below(&rng, 3);
        sizes[i] = 2 + gen_below(&rng, MOST - 1);
        samples[i].ns = 0;
        double added = 0;
        for (uint32_t q = 0; q < sizes[i]; ++q) {
            all[i][q] = random_features(&rng);
            all[i][q].op = op;
            all[i][q].k = 10;
            const double alone = gx_cost_predict(p, GX_COST_GPU_ALONE, &all[i][q], 1);
            samples[i].ns = fmax(samples[i].ns, alone);
            added += all[i][q].n_terms > 6 ? 5000 : 100;
        }
        samples[i].ns += added;
        gx_cost_basis(p, all[i], sizes[i], GX_COST_GPU_BATCH, 0, samples[i].basis);
        samples[i].leaf = gx_cost_leaf(all[i], sizes[i], GX_COST_GPU_BATCH, 0);
    }
    assert_int_equal(gx_cost_fit(p->weights[GX_COST_GPU_BATCH], samples, N, false, NULL), GX_OK);
    for (int i = 0; i < N; ++i) {
        const double predicted = gx_cost_predict(p, GX_COST_GPU_BATCH, all[i], sizes[i]);
        if (fabs(predicted / samples[i].ns - 1) > 0.03)
            fail_msg("batch %d: %g ns instead of %g", i, predicted, samples[i].ns);
    }
    free(sizes);
    free(all);
    free(samples);
    free(p);
}

static void bytes_that_are_not_resident_cost(void **state)
{
    (void)state;
    gx_cost_profile *p = malloc(sizeof *p);
    gx_query_features f = {.shortest = 10, .second = 20, .longest = 20, .sum = 30, .n_terms = 2, .k = 10};
    uint32_t missing = 0;
    gx_cost_profile_init(p);
    const gx_query_costs before = gx_cost_of_query(p, &f);
    while (strcmp(gx_cost_term_name(GX_COST_GPU_ALONE, missing), "bytes not resident"))
        ++missing;
    f.missing = 1e6;
    p->weights[GX_COST_GPU_ALONE][gx_cost_leaf(&f, 1, GX_COST_GPU_ALONE, 0)][missing] = 0.5;
    const gx_query_costs after = gx_cost_of_query(p, &f);
    assert_near(after.gpu_alone, before.gpu_alone + 5e5, 1);
    assert_near(after.cpu, before.cpu, 1e-9);
    gx_cost_profile_init(p); /* the library's own knows it, too */
    for (int op = 0; op < 3; ++op) {
        f.op = (gx_op)op;
        f.missing = 0;
        const gx_query_costs resident = gx_cost_of_query(p, &f);
        f.missing = 5e6;
        const gx_query_costs absent = gx_cost_of_query(p, &f);
        assert_true(absent.gpu > resident.gpu + 5000 && absent.gpu_alone > resident.gpu_alone + 5000);
        assert_near(absent.cpu, resident.cpu, 1e-9);
    }
    free(p);
}

static void a_feature_that_is_left_out_changes_nothing(void **state)
{
    (void)state;
    gen_rng rng = {9};
    for (int i = 0; i < 200; ++i) {
        const gx_query_features f = random_features(&rng);
        gx_query_features g = f;
        g.shortest += 5;
        g.k = f.k == 10 ? 1000 : 10;
        g.op = (gx_op)((f.op + 1) % 3);
        const uint32_t without =
            1u << GX_COST_FEATURE_SHORTEST | 1u << GX_COST_FEATURE_K | 1u << GX_COST_FEATURE_OPERATOR;
        double a[GX_COST_TERMS], b[GX_COST_TERMS];
        gx_cost_basis(NULL, &f, 1, GX_COST_CPU, without, a);
        gx_cost_basis(NULL, &g, 1, GX_COST_CPU, without, b);
        assert_memory_equal(a, b, sizeof a);
        assert_int_equal(gx_cost_leaf(&f, 1, GX_COST_CPU, without), gx_cost_leaf(&g, 1, GX_COST_CPU, without));
        assert_int_not_equal(gx_cost_leaf(&f, 1, GX_COST_CPU, 0), gx_cost_leaf(&g, 1, GX_COST_CPU, 0));
    }
}

static void the_default_is_above_0_for_every_query(void **state)
{
    (void)state;
    gen_rng rng = {10};
    gx_cost_profile p;
    gx_cost_profile_init(&p);
    for (int i = 0; i < 1000; ++i) {
        gx_query_features f = random_features(&rng);
        if (i == 0)
            f = (gx_query_features){.k = 1};
        for (int kind = 0; kind < GX_N_COST_KINDS; ++kind) {
            const double ns = gx_cost_predict(&p, (gx_cost_kind)kind, &f, 1);
            assert_true(isfinite(ns) && ns > 0);
        }
    }
}

/* ---- the file ---- */

static void a_profile_is_read_as_it_was_written(void **state)
{
    (void)state;
    gen_rng rng = {11};
    gx_cost_profile *p = malloc(sizeof *p), *q = malloc(sizeof *q);
    gx_error err = {0};
    gx_cost_profile_init(p);
    p->measured[GX_COST_CPU] = true;
    for (uint32_t leaf = 0; leaf < GX_COST_LEAVES; ++leaf)
        for (uint32_t i = 0; i < GX_COST_TERMS; ++i)
            p->weights[GX_COST_CPU][leaf][i] = gen_below(&rng, 3) && leaf % 5 ? uniform(&rng) * 1e4 : 0;
    assert_int_equal(gx_cost_profile_write(p, path(), false, &err), GX_OK);
    assert_int_equal(gx_cost_profile_write(p, path(), false, &err), GX_EEXISTS);
    assert_int_equal(gx_cost_profile_write(p, path(), true, &err), GX_OK);
    assert_int_equal(gx_cost_profile_read(q, path(), &err), GX_OK);
    assert_memory_equal(p, q, sizeof *p);
    free(p);
    free(q);
}

static void a_bad_profile_is_refused_and_says_why(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "profile"},
        {"{\"schema\": 1", "profile"},
        {"[]", "no profile of this version"},
        {"{\"schema\": 9, \"models\": {}}", "no profile of this version"},
        {"{\"schema\": 2, \"models\": {}}", "no profile of this version"},
        {"{\"schema\": 3, \"models\": {\"cpu\": 3}}", "no array"},
        {"{\"schema\": 3, \"models\": {\"cpu\": [{}]}}", "number of a leaf"},
        {"{\"schema\": 3, \"models\": {\"cpu\": [{\"leaf\": 288}]}}", "number of a leaf"},
        {"{\"schema\": 3, \"models\": {\"cpu\": [{\"leaf\": 1, \"sum\": \"x\"}]}}", "weight"},
        {"{\"schema\": 3, \"models\": {\"cpu\": [{\"leaf\": 1, \"moon\": 1}]}}", "no known name"},
    };
    gx_cost_profile p, before;
    memset(&p, 7, sizeof p);
    before = p;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        gx_error err = {0};
        FILE *f = fopen(path(), "w");
        fputs(bad[i][0], f);
        fclose(f);
        assert_int_equal(gx_cost_profile_read(&p, path(), &err), GX_EINPUT);
        assert_non_null(strstr(err.text, path()));
        assert_non_null(strstr(err.text, bad[i][1]));
        assert_memory_equal(&p, &before, sizeof p);
    }
    gx_error err = {0};
    assert_int_equal(gx_cost_profile_read(&p, "/nonexistent/x", &err), GX_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_that_are_positive_are_found),
        cmocka_unit_test(no_weight_is_negative_and_none_can_be_better),
        cmocka_unit_test(features_are_the_lengths_of_the_lists),
        cmocka_unit_test(long_queries_are_never_told_to_cost_nothing),
        cmocka_unit_test(costs_that_are_linear_are_learnt),
        cmocka_unit_test(batches_that_wait_for_their_slowest_query_are_learnt),
        cmocka_unit_test(bytes_that_are_not_resident_cost),
        cmocka_unit_test(a_batch_costs_its_fixed_part_and_its_queries),
        cmocka_unit_test(a_feature_that_is_left_out_changes_nothing),
        cmocka_unit_test(the_default_is_above_0_for_every_query),
        cmocka_unit_test(a_profile_is_read_as_it_was_written),
        cmocka_unit_test(a_bad_profile_is_refused_and_says_why),
    };
    return cmocka_run_group_tests_name("cost_model", tests, make_dir, remove_dir);
}
