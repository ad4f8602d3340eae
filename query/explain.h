/* explain.h: why a document has its score: the formula with its numbers, term by term, from the
 * lists themselves.
 *
 * It shares the arithmetic of bm25.h and plan.h with the engines but none of their paths through
 * the lists, so the sum is an independent check of a printed score: equal to the bit.
 */
#ifndef GX_QUERY_EXPLAIN_H
#define GX_QUERY_EXPLAIN_H

#include "index/index.h"
#include "query/plan.h"

typedef struct gx_explain_term {
    const char *term; /* the index's bytes */
    size_t term_len;
    uint32_t df;
    double qtf;      /* how often the query says it, or the weight that it gives */
    uint32_t tf;     /* 0: the document lacks the term */
    double idf;      /* as the preset has it, without qtf; 1 where it has none */
    double weight;   /* idf, times k1 + 1 where the preset has it, times qtf */
    uint32_t impact; /* fixed point; 0 where tf is */
    float score;     /* impact * 2^-exponent */
} gx_explain_term;

typedef struct gx_explanation {
    uint32_t docid, n_docs, dl, counted_dl; /* counted_dl: dl, or what the preset keeps of it */
    double avgdl, k1, b;                    /* k1, b: 0 where linear */
    float K;       /* k1 (1 - b + b counted_dl / avgdl), in single precision as it is used; 0 where linear */
    bool times_k1; /* the preset multiplies by k1 + 1 */
    bool linear;   /* the preset's score is weight * tf: it has no k1, b and K */
    const char *preset, *formula;
    int exponent;
    uint32_t n_unknown; /* different terms of the query that the index lacks */
    uint32_t n_terms;
    gx_explain_term *terms; /* [n_terms], by rising df */
    uint32_t sum;           /* of the impacts */
    float score;            /* sum * 2^-exponent: what gx_search returns */
} gx_explanation;

/* Explain what the query gives to the document. docid < n_docs. Whether the document matches under
 * opt->op is not asked. Free with gx_explanation_free. GX_EUSAGE as gx_search, GX_ENOMEM. */
gx_status gx_explain(gx_explanation *out, const gx_index *ix, const gx_query *query, const gx_query_options *opt,
                     uint32_t docid, gx_error *err);
void gx_explanation_free(gx_explanation *e); /* accepts a zeroed one */

#endif
