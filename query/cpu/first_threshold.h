/* first_threshold.h: the threshold from which a search begins: a score that at least k documents reach, or are
 * likely to reach.
 */
#ifndef GX_QUERY_CPU_FIRST_THRESHOLD_H
#define GX_QUERY_CPU_FIRST_THRESHOLD_H

#include "query/cpu/search.h"

/* The one that the plan has, where the search is of the plan's operator (AND if `all`). */
uint32_t gx_cpu_known_threshold(const gx_plan *plan, bool all);

/* Of as many of the best documents a selection that allows this share of all is likely to allow k: if it is
 * not correlated with the query, k and three standard deviations on average. */
double gx_cpu_likely_rank(uint32_t k, double share);

/* A score that at least k documents reach, by one of the lists alone, or as the plan has it. Under
 * a mask or a filter, which allows this share of what the lists hold, it is likely; the plan's is known. The
 * cursors are open. */
uint32_t gx_cpu_first_threshold(const gx_cpu_searcher *s, const gx_plan *plan, double share);

#endif
