/* attribute_order.h: the documents of a column in order of their values, derived from the column in
 * memory. The documents with a value in a range follow each other there.
 *
 *   values     d0: 7   d1: 3   d2: none   d3: 7   d4: 5
 *   docids     1  4  0  3
 *   starts     of 3: 0, of 5: 1, of 7: 2        where there are few different values
 *
 * Where neighbours have similar values, as dates of documents that came in their order, there are zones
 * too: the least and the greatest value of every GX_ZONE_DOCS documents.
 */
#ifndef GX_INDEX_ATTRIBUTES_ATTRIBUTE_ORDER_H
#define GX_INDEX_ATTRIBUTES_ATTRIBUTE_ORDER_H

#include "index/attributes/attributes.h"

#define GX_ZONE_DOCS 1024u

#define GX_SAMPLE_PLACES 64u
#define GX_BITS_SLACK 48u /* words of 0 behind bits of documents, which kernels may read */

/* The values of GX_ZONE_DOCS documents. Of none the least is UINT64_MAX, the greatest 0. */
typedef struct gx_zone {
    uint64_t least, most;
    uint64_t most_before;  /* of this zone and those before it */
    uint64_t least_behind; /* of this zone and those behind it */
} gx_zone;

typedef struct gx_column_order {
    uint64_t n;        /* values of all documents */
    uint64_t n_starts; /* raw values below it have a start; 0: no starts */
    uint32_t *starts;  /* [n_starts + 1], where n_starts > 0 */
    uint32_t *places;  /* [n] numbers of the values in the column, where the column has starts and this has none */
    gx_zone *zones;    /* [ceil(n_docs / GX_ZONE_DOCS)], or NULL */
    uint64_t *samples; /* sort keys of the values at every GX_SAMPLE_PLACES-th place; NULL: there are starts */
    struct gx_column_codes *codes; /* atomic; NULL until needed (attribute_codes.h) */
    struct gx_column_bins *bins;   /* atomic; likewise (attribute_bins.h) */
    struct gx_column_sets *sets;   /* atomic; likewise (attribute_sets.h) */
    uint32_t **documents;          /* atomic; [n_starts], likewise: bits of the documents of common values */
    uint32_t n_documents;          /* atomic; of those that are not NULL, or under way */
    uint32_t docids[];             /* [n] by value, then by docid; 16 more may be read */
} gx_column_order;

/* The order of a column, made at its first use: 4 bytes a value, and 4 bytes a different value where
 * there are starts, or an eighth of a byte a value where there are samples; 8 bytes a value where there are
 * places. A document of several values is there for each of them. It belongs to the column. NULL: no memory.
 * Thread-safe. */
const gx_column_order *gx_column_get_order(const gx_index *ix, gx_column *c);
void gx_column_free_order(gx_column *c);

/* Publish `made`, from malloc, at *at, which was NULL. If another thread published first, free `made` and return
 * theirs. NULL: nothing was made. Thread-safe. */
void *gx_column_keep_made(void **at, void *made);

/* docids[begin, end) have a value from low to high, as the column has its values (doubles' bits of a
 * float). */
void gx_column_order_range(const gx_column *c, const gx_column_order *o, uint64_t low, uint64_t high, uint64_t *begin,
                           uint64_t *end);

/* Where the docids with such a value begin and end, by a look at the samples alone: the first place is in
 * [begin_least, begin_most], and the end in [end_least, end_most]. Exact where there are starts. */
typedef struct gx_place_bounds {
    uint64_t begin_least, begin_most, end_least, end_most;
} gx_place_bounds;

gx_place_bounds gx_column_order_bracket(const gx_column *c, const gx_column_order *o, uint64_t low, uint64_t high);

/* By the zones, documents with such a value are in [*first, *end) alone. Without zones: in [0, n_docs). */
void gx_column_order_bound(const gx_column_order *o, uint32_t n_docs, uint64_t low, uint64_t high, uint32_t *first,
                           uint32_t *end);

/* By the zones, all documents of [*first, *end) have such a value, of a column of which all documents have one. Without
 * zones: [0, 0). */
void gx_column_order_inside(const gx_column_order *o, uint32_t n_docs, uint64_t low, uint64_t high, uint32_t *first,
                            uint32_t *end);

#endif
