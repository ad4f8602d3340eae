/* filter_program.h: a filter as the program that kernels run on vectors of documents (kernels.h).
 *
 *   a AND (b OR NOT c) AND d     clauses   a       b OR NOT c                    d
 *                                tests     0: a    1: b, if unmet 2: NOT c       3: d
 */
#ifndef GX_QUERY_CPU_FILTER_PROGRAM_H
#define GX_QUERY_CPU_FILTER_PROGRAM_H

#include "query/cpu/kernels/kernels.h"
#include "query/filter/filter.h"

/* Make the program of a filter of one file; columns that tests need get their codes (attribute_codes.h). Its
 * first clause is that of node `first`, if that is the root or a child of a root that is an AND; *n_first is
 * the number of clauses of this node, 0 or 1. Returns false if the filter selects fewer documents: some of
 * its conditions are none that kernels test. Thread-safe. */
bool gx_cpu_program_make(gx_cpu_program *out, const gx_filter *f, uint32_t first, uint32_t *n_first);

#endif
