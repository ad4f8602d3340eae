/* text_terms.h: the terms of a text that has few, found in all parts of a collection at once.
 *
 * The terms' bytes are those of the parts' lexicons, so that nothing is copied.
 */
#ifndef GX_QUERY_PLAN_TEXT_TERMS_H
#define GX_QUERY_PLAN_TEXT_TERMS_H

#include "index/read/collection.h"
#include "query/plan/plan.h"

#define GX_FEW_TERMS 24u
#define GX_FEW_IDS 128u /* terms times parts of most queries */

typedef struct gx_text_terms {
    const gx_parts *parts;
    uint32_t n;                        /* different terms that the collection has */
    uint32_t n_unknown;                /* different terms that it lacks */
    gx_query_term terms[GX_FEW_TERMS]; /* [n], by rising df, then by bytes; without weights */
    /* Of term t part i's number: ids[t.number * parts->n + i]; UINT32_MAX: the part lacks the term. */
    uint32_t ids[GX_FEW_IDS];
    uint64_t unknown[GX_FEW_TERMS]; /* [n_unknown] hashes of their bytes */
} gx_text_terms;

/* Find the terms of text[len] by the analyzer of the collection ix. *few: whether they are few, else *out is
 * undefined. GX_ENOMEM. Thread-safe. */
gx_status gx_text_terms_find(gx_text_terms *out, bool *few, const gx_index *ix, const char *text, size_t len,
                             gx_error *err);

#endif
