/* cost_model.h: what a query costs on each engine, predicted from the lengths of its lists.
 *
 *   gx_query_features --rule--> leaf --weights . basis--> nanoseconds
 *
 * A small tree of rules chooses a leaf: by operator, k, number of terms and lengths, or of a batch by
 * operator, k and the kernels that the GPU searches it with, which its size and its longest query decide.
 * Each leaf has a linear model over a basis of functions of the features. Ding, He, Yan and Suel (WWW
 * 2009, section 9) use rules with linear models too, over the same lengths.
 *
 * The basis of a query: lengths, their square roots and logarithms, lengths up to those of a block of
 * 128 postings, which one warp reads, and the rest of gx_query_features. That of a batch: of its queries
 * of one list, of 2 to 6 lists, and of more, each the number, the sum of their predicted times alone on
 * the GPU and the greatest of these; the greatest and the norm of all these times; 1 and the square root
 * of the batch's size. Numbers and sums are what each query adds to the batch; the rest is its fixed
 * part, and what its slowest query makes it wait for. The weights of batches are not negative.
 */
#ifndef GX_QUERY_SCHEDULE_COST_MODEL_H
#define GX_QUERY_SCHEDULE_COST_MODEL_H

#include "engine/api/gpuidx_advanced.h" /* gx_cost_profile */
#include "query/plan/plan.h"

/* The features of a plan that an engine runs. */
gx_query_features gx_plan_features(const gx_plan *plan);

/* What a query costs, in ns: as gx_cost_predict says on the CPU and alone on the GPU, and what it
 * adds to the cost of a batch, at least 1. */
typedef struct gx_query_costs {
    double cpu, gpu_alone, gpu;
} gx_query_costs;
gx_query_costs gx_cost_of_query(const gx_cost_profile *p, const gx_query_features *f);

/* The part of a predicted batch that is not the sum of what its queries add, in ns: the queries have one
 * operator and k. */
double gx_cost_fixed(const gx_cost_profile *p, const gx_query_features *f, uint32_t n);

/* The leaf of a query, or of a batch of n queries, below GX_COST_LEAVES. Rules about features of `without`,
 * a set of 1 << gx_cost_feature, are left out. */
uint32_t gx_cost_leaf(const gx_query_features *f, uint32_t n, gx_cost_kind kind, uint32_t without);

/* Write the basis of a query, or of a batch of n queries, whose times alone are those that p predicts.
 * Functions of features of `without` are 0. p may be NULL, but for batches. */
void gx_cost_basis(const gx_cost_profile *p, const gx_query_features *f, uint32_t n, gx_cost_kind kind,
                   uint32_t without, double basis[GX_COST_TERMS]);

/* A measured cost. */
typedef struct gx_cost_sample {
    double basis[GX_COST_TERMS];
    double ns; /* > 0 */
    uint32_t leaf;
} gx_cost_sample;

/* Set the weights of one kind so that the relative errors of the n samples are small: least squares,
 * with samples far off counting less; with weights that are at least 0 unless any_sign. A leaf of
 * fewer than GX_COST_LEAST_SAMPLES takes its weights from the samples of all lengths, then of all
 * numbers of terms, then of all. GX_ENOMEM. */
#define GX_COST_LEAST_SAMPLES 40u
gx_status gx_cost_fit(double weights[GX_COST_LEAVES][GX_COST_TERMS], const gx_cost_sample *samples, size_t n,
                      bool any_sign, gx_error *err);

/* The weights w >= 0 that minimise |A w - b|^2, given the n x n matrix A' A and A' b, for n <=
 * GX_COST_TERMS (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23). */
void gx_least_squares(const double *ata, const double *atb, uint32_t n, double *w);

#endif
