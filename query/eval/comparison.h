/* comparison.h: several runs over the same queries, with paired tests of each run against the first.
 *
 *   evaluations (measures.h) --gx_compare--> totals over the queries that all have, tests
 *
 * The tests are two-sided and paired by query; d is a query's value in the run less its value in the
 * first run. gm_map is tested by its logarithms.
 *
 *   t-test          t = mean(d) / (s / sqrt(n)), with n - 1 degrees of freedom
 *   randomisation   the share of assignments of signs to the d whose mean is as far from 0 as the one
 *                   observed (Smucker, Allan and Carterette, CIKM 2007). Where there are no more
 *                   assignments than `trials`, each is tried, and p is exact. Else p is
 *                   (1 + those as far) / (1 + trials); the signs of a trial are the bits of splitmix64
 *                   (random.h), 64 queries a number, the lowest bit first, 1: the sign is changed
 */
#ifndef GX_QUERY_EVAL_COMPARISON_H
#define GX_QUERY_EVAL_COMPARISON_H

#include "query/eval/measures.h"

typedef struct gx_paired_test {
    size_t better, worse; /* queries with d > 0, d < 0 */
    double t, t_p;        /* NaN for fewer than two queries; where every d is 0, t is 0 and p is 1 */
    double random_p;
    bool exact; /* random_p is of all assignments */
} gx_paired_test;

/* Test the differences d[n], n >= 1; trials >= 1. */
gx_paired_test gx_paired_test_of(const double *d, size_t n, uint64_t seed, uint64_t trials);

typedef struct gx_comparison {
    size_t n_runs, n_queries, n_measures;
    const char **qids;     /* [n_queries] in byte order; the strings belong to the table of qrels */
    double *values;        /* [n_runs][n_queries][n_measures] */
    double *all;           /* [n_runs][n_measures] */
    gx_paired_test *tests; /* [n_runs][n_measures]; those of run 0 are zero */
} gx_comparison;

/* Compare n_runs >= 1 evaluations of the same qrels and measures over the queries that all of them
 * have. Without such a query n_queries is 0 and nothing is tested. GX_ENOMEM. */
gx_status gx_compare(gx_comparison *out, const gx_evaluation *runs, size_t n_runs, const gx_measure *measures,
                     uint64_t seed, uint64_t trials, gx_error *err);
void gx_comparison_free(gx_comparison *c);

#endif
