/* measures.h: how good a run is, by trec_eval's definitions.
 *
 *   qrels and run --gx_ranking_make--> the relevances of one query's answers, best first
 *   --gx_measure_value--> a number
 *
 * Answers are ranked by falling score (a float), ties by falling docno; the ranks that the run
 * states are ignored. A document is relevant when its judgement is at least the level (1).
 * Judgements below 0 count as none.
 *
 *   num_ret, num_rel, num_rel_ret                 counts; over queries they add up
 *   map, map_cut_k     sum of precisions at the relevant answers (among the first k) / relevant
 *                      documents
 *   P_k                relevant among the first k / k
 *   recall_k, success_k                           relevant among the first k / relevant documents;
 *   1 if there is any ndcg, ndcg_cut_k   gain = relevance, discount log2(rank + 1), ideal ranking
 *   from the qrels
 *   Rprec              precision after as many answers as there are relevant documents
 *   recip_rank, recip_rank_k                      1 / rank of the first relevant answer (among the
 *   first k)
 */
#ifndef GX_QUERY_EVAL_MEASURES_H
#define GX_QUERY_EVAL_MEASURES_H

#include "query/eval/trec.h"

typedef struct gx_ranking {
    int32_t *rels;  /* [n_ret] by rank; 0 where a document is not judged */
    int32_t *ideal; /* [n_judged] the judgements, falling; negative ones are 0 */
    size_t n_ret, n_judged, n_rel;
    int32_t level; /* least relevance that counts as relevant */
} gx_ranking;

/* answers: a topic of run, or NULL for none. GX_ENOMEM. */
gx_status gx_ranking_make(gx_ranking *out, const gx_trec_table *qrels, const gx_trec_topic *judged,
                          const gx_trec_table *run, const gx_trec_topic *answers, int32_t level, gx_error *err);
void gx_ranking_free(gx_ranking *r);

typedef struct gx_measure {
    const struct gx_measure_kind *kind;
    uint32_t cutoff; /* >= 1, UINT32_MAX: none */
    char name[32];   /* trec_eval's: "map", "P_10", "ndcg_cut_10" */
} gx_measure;

/* A list: "map,ndcg@10,recall@100"; trec_eval's spellings too: "P_5", "P.5,10,20", "ndcg_cut.10",
 * "ndcg_cut_10". A measure that needs a cutoff and has none gets trec_eval's
 * (5,10,15,20,30,100,200,500,1000). "num_q" and "official" (the usual few) are understood. The
 * array (*n of them) is the caller's to free. GX_EUSAGE, GX_ENOMEM. */
gx_status gx_measures_parse(gx_measure **out, size_t *n, const char *list, gx_error *err);

double gx_measure_value(const gx_measure *m, const gx_ranking *r);
bool gx_measure_is_count(const gx_measure *m); /* an integer, summed over queries rather than averaged */

/* A run against qrels: every measure for every query, and over all of them. */
typedef struct gx_evaluation {
    size_t n_measures, n_queries;
    const char **qids; /* [n_queries], by bytes; the qrels table's strings */
    double *values;    /* [n_queries * n_measures] */
    double *all;       /* [n_measures] means, or sums for counts */
    size_t n_missing;  /* queries of the qrels that the run lacks */
    size_t n_unjudged; /* queries of the run that the qrels lack: left out */
} gx_evaluation;

/* complete: average over all queries of the qrels, those without answers being 0; else over those
 * that both have. */
gx_status gx_evaluate(gx_evaluation *out, const gx_trec_table *qrels, const gx_trec_table *run,
                      const gx_measure *measures, size_t n_measures, int32_t level, bool complete, gx_error *err);
void gx_evaluation_free(gx_evaluation *ev);

#endif
