/* prior.h: what a document's value of an attribute adds to its score. */
#ifndef GX_QUERY_PLAN_PRIOR_H
#define GX_QUERY_PLAN_PRIOR_H

#include "engine/api/gpuidx_advanced.h"
#include "index/attributes/attributes.h"

#define GX_MAX_PRIOR_UNITS (UINT64_C(1) << 52)

/* What x adds, in units of 2^-exponent. Rises with x, but for the last bit of a logarithm. */
uint64_t gx_prior_units(const gx_prior *prior, double x, int exponent);

/* The document's value, of several the greatest. false: it has none. */
bool gx_prior_value(const gx_index *ix, uint32_t column, uint64_t docid, double *x);

/* The greatest value of all documents, deleted ones among them, and of 0. Takes a pass over the column once. */
double gx_prior_greatest(const gx_index *ix, uint32_t column);

/* A prior whose attribute has been found; prior NULL: there is none. */
typedef struct gx_document_prior {
    const gx_prior *prior;
    uint32_t column;
} gx_document_prior;

/* What the document's value adds: 0 where it has none. */
uint64_t gx_document_prior_units(const gx_document_prior *p, const gx_index *ix, uint64_t docid, int exponent);

/* gx_prior_check, with the attribute's number. */
gx_status gx_prior_find(uint32_t *column, const gx_prior *prior, const gx_index *ix, gx_error *err);

#endif
