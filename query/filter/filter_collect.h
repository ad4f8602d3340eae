/* filter_collect.h: the documents of rare filters, found by the orders of columns (index/attributes/attribute_order.h)
 * without a look at the others.
 */
#ifndef GX_QUERY_FILTER_FILTER_COLLECT_H
#define GX_QUERY_FILTER_FILTER_COLLECT_H

#include "query/filter/filter.h"

#define GX_FILTER_SPANS 14u

/* Documents that follow each other in an order. */
typedef struct gx_filter_span {
    const uint32_t *docids; /* [n], readable up to a multiple of 16 */
    uint32_t n;
} gx_filter_span;

/* All documents that the filter selects, and where `exact` is false perhaps others. */
typedef struct gx_filter_documents {
    uint64_t n;        /* documents at most */
    uint64_t selected; /* about how many of them the filter selects */
    uint32_t node;     /* the conjunct whose documents these are: the root, or a node below ANDs alone. UINT32_MAX:
                        * exactly the filter's documents */
    uint32_t n_spans;  /* 0: gx_filter_mark finds them */
    gx_filter_span spans[GX_FILTER_SPANS];
    bool rising;   /* the docids of the spans rise; else they come in any order, .. */
    bool repeated; /* .. and a document may come again */
    bool exact;
} gx_filter_documents;

/* Count the documents. n and selected are UINT64_MAX where they cannot be found so, or for want of
 * memory. The first use of an attribute makes its order. Where they are 2 `few` or more, n may be up to
 * 2 GX_SAMPLE_PLACES too many for each range, there are no spans, and fewer values are read. Thread-safe. */
gx_filter_documents gx_filter_find(const gx_filter *f, uint64_t few);

/* Set the bits of the documents in words, and groups[i] of GX_MASK_GROUP documents where one of them
 * is. Returns how many bits it has set. gx_filter_find has counted them. */
uint32_t gx_filter_mark(const gx_filter *f, uint32_t *words, bool *groups);

/* The documents that the filter selects are in [*first, *end) alone, by the zones of columns whose orders
 * have been made. */
void gx_filter_bound(const gx_filter *f, uint32_t *first, uint32_t *end);

/* Whether the orders of all attributes in the filter have been made. */
bool gx_filter_has_orders(const gx_filter *f);

#endif
