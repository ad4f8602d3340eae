/* sieve.h: a filter as operations on bitmaps (attribute_bins.h), which let all documents pass that it selects and
 * few others. Kernels answer it for a group of GX_CPU_GROUP documents at once, remember that for the plan, and read
 * a bit for each posting then. What passes is tested by the filter's program.
 *
 *   a:[10 TO 20] AND NOT b:7     bitmap of a's bins before 20's end, without that of those before 10's
 *                                AND all but the bitmaps of bins that have b's value 7 alone
 */
#ifndef GX_QUERY_CPU_SIEVE_H
#define GX_QUERY_CPU_SIEVE_H

#include "query/cpu/kernels/kernels.h"
#include "query/filter/filter.h"

#define GX_CPU_SIEVE_COST 3.0f           /* of a group, in costs of clauses */
#define GX_CPU_SIEVE_COST_OF_BITMAP 1.0f /* and of each bitmap of it */

void gx_cpu_sieve_free(gx_cpu_sieve *s);

/* Make the sieve of a filter of one file; columns get their bins. s->n_steps becomes 0 where there is none: it would
 * let most documents pass, or there is no memory. Zeros are a sieve before its first use. */
void gx_cpu_sieve_make(gx_cpu_sieve *s, const gx_filter *f);

#endif
