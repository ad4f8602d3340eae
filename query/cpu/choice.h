/* choice.h: which of its ways (search.h) the CPU engine takes for a plan.
 *
 * What a way takes is estimated in ns of a core of 2024; only the ratios matter. Of an OR of many words:
 *
 *   list at a time   looks each candidate up in all later lists, and pays for each list once more for each 16 lists
 *   accumulate       n postings, of which the longest lists may be left out
 *   block-max        what it takes to tell the bounds of segments, and then by how many ranges reach the threshold
 *
 * The first two are estimated before the search. Block-max is begun while an accumulation is under way, once that has a
 * threshold and the lists that are left take far longer than the bounds of segments. A sample of these tells whether it
 * goes on (block_max.h), or the accumulation does.
 */
#ifndef GX_QUERY_CPU_CHOICE_H
#define GX_QUERY_CPU_CHOICE_H

#include "query/cpu/search.h"

/* Answer plan under op, which is GX_OP_OR or GX_OP_AND. n_terms >= 1; its lists have n_postings. GX_ENOMEM,
 * GX_ECANCELLED. */
gx_status gx_cpu_answer(gx_cpu_searcher *s, const gx_plan *plan, gx_op op, uint64_t n_postings, gx_hits *hits,
                        gx_error *err);

/* The accumulation of lists [begin, end) of the plan. */
double gx_cpu_cost_of_accumulation(const gx_plan *plan, uint32_t n_docs, uint32_t begin, uint32_t end);
/* To look n documents up in so many lists. */
double gx_cpu_cost_of_look_ups(uint32_t n, uint32_t n_lists);
/* Answer the plan by block-max, if that is likely to take less than limit ns; k documents are known to have a score of
 * threshold or more, and the lists' greatest impacts sum up to most. *done: whether it was answered; else *again:
 * whether to try with a greater limit may be worth it. */
gx_status gx_cpu_try_block_max(gx_cpu_searcher *s, const gx_plan *plan, uint32_t threshold, uint64_t most, double limit,
                               gx_hits *hits, bool *done, bool *again, gx_error *err);

#endif
