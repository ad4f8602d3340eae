#include "query/measures/comparison.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/random.h"
#include "engine/status.h"

/* ---- the t distribution ---- */

/* The continued fraction of the incomplete beta function, by Lentz's method. It converges within
 * some sqrt(max(a, b)) steps for x below (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int m = 1; m < 100000; ++m) {
        const double terms[2] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                                 -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))};
        double step = 1;
        for (int i = 0; i < 2; ++i) {
            d = 1 + terms[i] * d;
            c = 1 + terms[i] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            step = d * c;
            f *= step;
        }
        if (fabs(step - 1) < DBL_EPSILON)
            break;
    }
    return f;
}

/* The regularized incomplete beta function I_x(a, b). */
static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* P(|T| >= |t|) with v degrees of freedom. */
static double two_sided_t(double t, double v)
{
    return isinf(t) ? 0 : incomplete_beta(v / 2, 0.5, v / (v + t * t));
}

/* ---- paired tests ---- */

static void test_by_t(gx_paired_test *out, const double *d, size_t n)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; ++i)
        mean += d[i] / (double)n;
    for (size_t i = 0; i < n; ++i)
        squares += (d[i] - mean) * (d[i] - mean);
    out->t = out->t_p = NAN;
    if (n < 2)
        return;
    if (out->better + out->worse == 0) {
        out->t = 0;
        out->t_p = 1;
        return;
    }
    out->t = mean / sqrt(squares / (double)(n - 1) / (double)n);
    out->t_p = two_sided_t(out->t, (double)(n - 1));
}

/* The absolute sum of d with the signs of the set bits changed. */
static double sum_with_signs(const double *d, size_t n, uint64_t *seed)
{
    double sum = 0;
    uint64_t bits = 0;
    for (size_t i = 0; i < n; ++i) {
        if (i % 64 == 0)
            bits = gx_random_next(seed);
        sum += bits & 1 ? -d[i] : d[i];
        bits >>= 1;
    }
    return fabs(sum);
}

static double sum_of_assignment(const double *d, size_t n, uint64_t bits)
{
    double sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += bits >> i & 1 ? -d[i] : d[i];
    return fabs(sum);
}

static void test_by_randomisation(gx_paired_test *out, const double *d, size_t n, uint64_t seed, uint64_t trials)
{
    double sum = 0, magnitude = 0;
    uint64_t as_far = 0;
    for (size_t i = 0; i < n; ++i) {
        sum += d[i];
        magnitude += fabs(d[i]);
    }
    const double far = fabs(sum) - 1e-12 * magnitude; /* equal sums differ by what was rounded */
    out->exact = n < 63 && UINT64_C(1) << n <= trials;
    const uint64_t last = out->exact ? UINT64_C(1) << n : trials;
    for (uint64_t i = 0; i < last; ++i)
        as_far += (out->exact ? sum_of_assignment(d, n, i) : sum_with_signs(d, n, &seed)) >= far;
    out->random_p = out->exact ? (double)as_far / (double)last : (double)(as_far + 1) / ((double)last + 1);
}

gx_paired_test gx_paired_test_of(const double *d, size_t n, uint64_t seed, uint64_t trials)
{
    gx_paired_test test = {0};
    for (size_t i = 0; i < n; ++i) {
        test.better += d[i] > 0;
        test.worse += d[i] < 0;
    }
    test_by_t(&test, d, n);
    test_by_randomisation(&test, d, n, seed, trials);
    return test;
}

/* ---- several runs ---- */

/* The queries' positions in each evaluation: at[run] moves to qid, or behind it where the run lacks
 * it. */
static bool all_have(const gx_evaluation *runs, size_t n_runs, size_t *at, const char *qid)
{
    bool all = true;
    for (size_t r = 0; r < n_runs; ++r) {
        while (at[r] < runs[r].n_queries && strcmp(runs[r].qids[at[r]], qid) < 0)
            ++at[r];
        all = all && at[r] < runs[r].n_queries && strcmp(runs[r].qids[at[r]], qid) == 0;
    }
    return all;
}

static void test_against_first(gx_comparison *c, double *d, uint64_t seed, uint64_t trials)
{
    const size_t nm = c->n_measures, nq = c->n_queries;
    for (size_t r = 1; r < c->n_runs; ++r)
        for (size_t m = 0; m < nm; ++m) {
            for (size_t q = 0; q < nq; ++q)
                d[q] = c->values[(r * nq + q) * nm + m] - c->values[q * nm + m];
            c->tests[r * nm + m] = gx_paired_test_of(d, nq, seed, trials);
        }
}

gx_status gx_compare(gx_comparison *out, const gx_evaluation *runs, size_t n_runs, const gx_measure *measures,
                     uint64_t seed, uint64_t trials, gx_error *err)
{
    const size_t nm = runs[0].n_measures, most = runs[0].n_queries;
    gx_comparison c = {.n_runs = n_runs, .n_measures = nm};
    size_t *at = calloc(n_runs, sizeof *at);
    size_t *places = malloc((most * n_runs + 1) * sizeof *places); /* [query][run] */
    double *d = malloc((most + 1) * sizeof *d);
    c.qids = malloc((most + 1) * sizeof *c.qids);
    c.values = malloc((n_runs * most * nm + 1) * sizeof *c.values);
    c.all = malloc(n_runs * nm * sizeof *c.all);
    c.tests = calloc(n_runs * nm, sizeof *c.tests);
    const bool room = at && places && d && c.qids && c.values && c.all && c.tests;
    for (size_t i = 0; room && i < most; ++i)
        if (all_have(runs, n_runs, at, runs[0].qids[i])) {
            memcpy(places + c.n_queries * n_runs, at, n_runs * sizeof *at);
            c.qids[c.n_queries++] = runs[0].qids[i];
        }
    for (size_t r = 0; room && r < n_runs; ++r) {
        double *values = c.values + r * c.n_queries * nm;
        for (size_t q = 0; q < c.n_queries; ++q)
            memcpy(values + q * nm, runs[r].values + places[q * n_runs + r] * nm, nm * sizeof *values);
        gx_measures_total(c.all + r * nm, measures, nm, values, c.n_queries);
    }
    if (room && c.n_queries)
        test_against_first(&c, d, seed, trials);
    free(d);
    free(places);
    free(at);
    if (!room) {
        gx_comparison_free(&c);
        return gx_fail(err, GX_ENOMEM, "no memory to compare %zu runs of %zu queries", n_runs, most);
    }
    *out = c;
    return GX_OK;
}

void gx_comparison_free(gx_comparison *c)
{
    free(c->qids);
    free(c->values);
    free(c->all);
    free(c->tests);
    *c = (gx_comparison){0};
}
