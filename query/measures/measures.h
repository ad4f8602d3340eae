/* measures.h: measures of the quality of a run, by the definitions of trec_eval.
 *
 *   qrels, run --gx_ranking_make--> relevances of one query's answers --gx_measure_value--> number
 *
 * Answers are ranked by falling score, a float, and those of equal score by falling docno. The
 * ranks that the run states are ignored. A document is relevant if its judgement is at least
 * `level`, by default 1. A judgement below 0 counts as no judgement.
 *
 *   num_ret, num_rel, num_rel_ret   counts of answers, relevant documents and relevant answers;
 *                                   their values over all queries are sums
 *   map, map_cut_k                  the sum of the precisions at the relevant answers (among the
 *                                   first k), divided by the number of relevant documents
 *   P_k                             relevant answers among the first k, divided by k
 *   recall_k                        relevant answers among the first k, divided by the number of
 *                                   relevant documents
 *   success_k                       1 if a relevant answer is among the first k, else 0
 *   ndcg, ndcg_cut_k                gain: the relevance; discount: log2(rank + 1); the ideal
 *                                   ranking is made from the qrels
 *   Rprec                           precision of the first R answers, where R is the number of
 *                                   relevant documents
 *   recip_rank, recip_rank_k        1 / rank of the first relevant answer (among the first k)
 *   bpref                           for each relevant answer 1 - n / min(R, N), where n is the
 *                                   number of judged and not relevant answers above it, at most R,
 *                                   and N the number of documents that are judged and not relevant;
 *                                   the sum is divided by R. Answers that are not judged do not
 *                                   count
 *   gm_map                          the geometric mean over queries of average precision, each at
 *                                   least 0.00001; a query alone has its logarithm
 *   iprec_at_recall_r               the greatest precision at a rank where recall is r or more,
 *                                   that is, where floor(r R + 0.9) relevant answers have been seen
 *
 * Two that trec_eval lacks:
 *
 *   err_k         expected reciprocal rank (Chapelle et al., CIKM 2009) of the first k, as
 *                 gdeval.pl computes it: an answer of grade g stops the reader with probability
 *                 (2^g - 1) / 2^G; the sum over ranks i of the probability that the reader stops at
 *                 i, times 1 / i. G is 4, or the greatest judgement in the qrels if that is more
 *   judged_k      judged answers among the first k, divided by k, or by the number of answers if
 *                 there are fewer, as ir_measures computes it
 */
#ifndef GX_QUERY_MEASURES_MEASURES_H
#define GX_QUERY_MEASURES_MEASURES_H

#include "query/measures/trec.h"

#define GX_NOT_JUDGED (-1)

typedef struct gx_ranking {
    int32_t *rels;                           /* [n_ret] by rank; GX_NOT_JUDGED where a document is not judged */
    int32_t *ideal;                          /* [n_judged] the judgements, falling; a negative one is stored as 0 */
    size_t n_ret, n_judged, n_rel, n_nonrel; /* n_nonrel: documents that are judged and not relevant */
    int32_t level;                           /* the least judgement of a relevant document */
    int32_t max_grade;                       /* of expected reciprocal rank; gx_ranking_make: 4 */
} gx_ranking;

/* Make the ranking of one query. `judged` is its topic in qrels, and `answers` its topic in run, or
 * NULL if the run has no answers to it. GX_ENOMEM. */
gx_status gx_ranking_make(gx_ranking *out, const gx_trec_table *qrels, const gx_trec_topic *judged,
                          const gx_trec_table *run, const gx_trec_topic *answers, int32_t level, gx_error *err);
void gx_ranking_free(gx_ranking *r);

/* The value of a measure for one query. */
double gx_measure_value(const gx_measure *m, const gx_ranking *r);

/* The values over all queries, totals[n_measures], of the values[n_queries * n_measures] of each. 0
 * where there are no queries. */
void gx_measures_total(double *totals, const gx_measure *measures, size_t n_measures, const double *values,
                       size_t n_queries);

/* The greatest judgement, at least 4: G of expected reciprocal rank. */
int32_t gx_greatest_grade(const gx_trec_table *qrels);

/* What the evaluations of all queries have in common; the members are those of gx_evaluate. */
typedef struct gx_evaluation_setup {
    const gx_trec_table *qrels;
    const gx_measure *measures;
    size_t n_measures;
    int32_t level;
    int32_t max_grade; /* gx_greatest_grade(qrels) */
} gx_evaluation_setup;

/* Evaluate one query into values[n_measures]; judged, run and answers as of gx_ranking_make.
 * GX_ENOMEM. */
gx_status gx_evaluate_topic(double *values, const gx_evaluation_setup *setup, const gx_trec_topic *judged,
                            const gx_trec_table *run, const gx_trec_topic *answers, gx_error *err);

#endif
