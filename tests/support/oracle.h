/* oracle.h: the dumbest right answer to a query, from a collection's plain arrays. It shares no
 * code with the engine: its own BM25, in the engine's fixed point and in double, its own sort.
 */
#ifndef GX_TESTS_SUPPORT_ORACLE_H
#define GX_TESTS_SUPPORT_ORACLE_H

#include "tests/support/gen.h"

typedef struct oracle_query {
    uint32_t n_terms, n_unknown;  /* different ones */
    const uint32_t *terms, *qtfs; /* [n_terms] */
    gx_op op;
    gx_preset preset;
    uint32_t k;
    float k1, b;          /* NaN: the preset's own */
    const uint64_t *mask; /* a bit a document, set where it may be an answer; NULL: all may */
    bool unscored;        /* of OR: documents of the mask that hold none of the terms match, too */
} oracle_query;

typedef struct oracle_hit {
    uint32_t docid, fixed; /* fixed: the engine's integer score */
    double exact;
} oracle_hit;

typedef struct oracle_answer {
    uint32_t n_hits;
    uint64_t n_matches;
    int exponent;     /* a float score is fixed * 2^-exponent */
    oracle_hit *hits; /* [n_hits], best first; the caller frees */
    double *exact;    /* [n_hits] the best exact scores of any documents, falling; the caller frees */
} oracle_answer;

oracle_answer oracle_search(const gen_collection *c, const oracle_query *q);
void oracle_free(oracle_answer *a);

#endif
