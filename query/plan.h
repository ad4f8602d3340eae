/* plan.h: a query made concrete: which lists, with what weights, under which operator.
 *
 * Score scale: with W = sum of the terms' weights (idf, times k1 + 1 where the preset has it, times
 * the number of repetitions), w_i = float(weight_i) * 2^e where e is the greatest integer with W *
 * 2^e <= 2^30. A score's float is score * 2^-e. Where W is 0, e is 30, so that scores of 1 print as
 * 0.
 */
#ifndef GX_QUERY_PLAN_H
#define GX_QUERY_PLAN_H

#include "engine/gpuidx.h"
#include "query/bm25.h"

typedef struct gx_plan_term {
    uint32_t list; /* term id, which is the list's number */
    uint32_t df;   /* >= 1 */
    uint32_t qtf;  /* how often the query says it */
    float w;       /* scaled weight, 0 <= w <= 2^30 */
} gx_plan_term;

typedef struct gx_plan {
    /* GX_OP_AND_OR with an unknown term, or of one term, is planned as GX_OP_OR: that is its answer
     * */
    gx_op op;
    uint32_t k;         /* 1 <= k <= max(1, n_docs) */
    uint32_t n_terms;   /* different known terms, <= GX_MAX_TERMS; 0: no hit */
    uint32_t n_unknown; /* different terms that the index lacks. op == GX_OP_AND and n_unknown > 0: n_terms is 0 */
    bool prune;
    gx_algorithm algorithm; /* with prune */
    uint32_t recursion;
    int exponent;        /* e */
    uint32_t floor;      /* of an OR, the k-th best score is not lower; 0 unless somebody knows (pairs.h) */
    const gx_mask *mask; /* the documents that may be returned; NULL: all */
    gx_norm norm;
    gx_plan_term *terms; /* [n_terms], by rising df, then rising list; the plan's own */
    bool (*cancel)(void *user);
    void *user;
} gx_plan;

struct gx_index;

/* k, preset, k1, b, algorithm and recursion of opt are in their ranges? Else GX_EUSAGE, saying
 * which is not. */
gx_status gx_query_options_check(const gx_query_options *opt, gx_error *err);

/* text -> plan, with the index's analyzer. opt is full-sized and checked. GX_EUSAGE (too many
 * terms), GX_ENOMEM: nothing is left to free. Thread-safe. */
gx_status gx_plan_make(gx_plan *out, const struct gx_index *ix, const char *text, size_t len,
                       const gx_query_options *opt, gx_error *err);
/* The same from term ids (< n_terms of the index; repetitions add up), qtf each (NULL: 1); for logs
 * of term numbers and tests. */
gx_status gx_plan_make_ids(gx_plan *out, const struct gx_index *ix, const uint32_t *ids, const uint32_t *qtf,
                           uint32_t n, const gx_query_options *opt, gx_error *err);
void gx_plan_free(gx_plan *plan);

/* A selection key: score above, docid below, so that a greater key is a better result. */
GX_HD uint64_t gx_key(uint32_t score, uint32_t docid)
{
    return (uint64_t)score << 32 | (uint32_t)~docid;
}
GX_HD uint32_t gx_key_score(uint64_t key)
{
    return (uint32_t)(key >> 32);
}
GX_HD uint32_t gx_key_docid(uint64_t key)
{
    return ~(uint32_t)key;
}

#endif
