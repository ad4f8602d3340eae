/* approximate.h: answers that need not be exact, in less time (gx_query_options.approximate; its
 * block_budget is that of cpu/block_max.h).
 *
 *   plan --the terms that weigh most--> first pass --its 2 k + 40 best, exactly--> candidates
 *   candidates + the impacts of the terms left out --> exact scores --> the k best
 *
 * The terms left out are those that weigh least, as many as have together at most the share
 * plan.approximate of the weight of all; of equal ones the later in the plan's order, which is that
 * of the collection whatever its parts. The heaviest term stays. So every engine has the same
 * candidates and the same answer, in every order and batch. Every score is the document's own; what
 * can be missing is a document.
 *
 * Answered exactly all the same: AND and AND-then-OR; a plan whose prune is false; a query of which
 * no term is light enough to be left out. One whose first pass finds fewer than k documents is searched
 * by all terms.
 *
 * After Lassance, Dejean, Clinchant and Tonellotto, "Two-Step SPLADE: Simple, Efficient and Effective
 * Approximation of SPLADE" (ECIR 2024).
 */
#ifndef GX_QUERY_PLAN_APPROXIMATE_H
#define GX_QUERY_PLAN_APPROXIMATE_H

#include "engine/api/gpuidx_advanced.h"
#include "index/index.h"
#include "query/plan/plan.h"

/* Whether the options ask for exact answers; they are full-sized. */
bool gx_query_options_are_exact(const gx_query_options *opt);
/* GX_EUSAGE: approximate or block_budget is out of its range. */
gx_status gx_approximate_check(const gx_query_options *opt, gx_error *err);

/* A plan's terms, divided. Both parts are plans of the same index or collection, with the scale of
 * the whole. */
typedef struct gx_two_passes {
    gx_plan first; /* k is that of the candidates */
    gx_plan rest;  /* what the first pass leaves out; it is not run */
} gx_two_passes;

/* Whether the plan is to be answered in two passes. */
bool gx_plan_is_approximate(const gx_plan *plan);

/* The candidates that a plan wants: at least plan->k, at most the documents. */
uint32_t gx_first_pass_k(const gx_plan *plan, uint32_t n_docs);

/* Divide a plan for which gx_plan_is_approximate holds. GX_ENOMEM: nothing is left to free. */
gx_status gx_two_passes_make(gx_two_passes *out, const gx_plan *plan, uint32_t n_docs, gx_error *err);
void gx_two_passes_free(gx_two_passes *p);

/* Add to scores[n] what the plan's terms add to them in docids[n], which rise: by the compressed
 * lists. What engines do faster: gx_executor.add_scores. Of one index. */
void gx_add_scores(const gx_index *ix, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n);

#endif
