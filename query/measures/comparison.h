/* comparison.h: several runs over the same queries, with paired tests of each against the first.
 *
 *   evaluations (measures.h) --gx_compare--> totals over the queries that all have, tests
 *
 * The tests are two-sided and paired by query; d is a query's value in the run less its value in
 * the first run. gm_map is tested by its logarithms.
 *
 *   t-test          t = mean(d) / (s / sqrt(n)), with n - 1 degrees of freedom
 *   randomisation   the share of assignments of signs to the d whose mean is as far from 0 as the
 *                   one observed (Smucker, Allan and Carterette, CIKM 2007). Where there are no
 *                   more assignments than `trials`, each is tried, and p is exact. Else p is
 *                   (1 + those as far) / (1 + trials); the signs of a trial are the bits of
 *                   splitmix64 (random.h), 64 queries a number, the lowest bit first, 1: the sign
 *                   is changed
 */
#ifndef GX_QUERY_MEASURES_COMPARISON_H
#define GX_QUERY_MEASURES_COMPARISON_H

#include "engine/api/gpuidx_advanced.h" /* gx_compare */
#include "query/measures/measures.h"

/* Test the differences d[n], n >= 1; trials >= 1. */
gx_paired_test gx_paired_test_of(const double *d, size_t n, uint64_t seed, uint64_t trials);

#endif
