/* attribute_bins.h: the documents of a column's value ranges as bitmaps, derived from its order in memory.
 *
 * The order is cut into up to GX_BINS bins of about as many places each, between two values where there are few
 * different ones. A range of values then lies in few bitmaps, and those bins that it cuts hold other values too:
 *
 *   one value a document        bitmap i has the documents of bins [0, i). Those of bins [i, j) are in bitmap j and
 *                               not in bitmap i
 *   several values a document   bitmap 2^l + i, of n = 2^s bins, has the documents of bins [i, i + 1) 2^(s - l).
 *                               Those of bins [i, j) are in one of at most 2 s such bitmaps
 */
#ifndef GX_INDEX_ATTRIBUTES_ATTRIBUTE_BINS_H
#define GX_INDEX_ATTRIBUTES_ATTRIBUTE_BINS_H

#include "index/attributes/attribute_order.h"

#define GX_BINS 64u      /* a power of two */
#define GX_BINS_SHIFT 6u /* its logarithm */

typedef struct gx_column_bins {
    uint32_t n;                   /* bins; GX_BINS where a document may have several values, some perhaps empty */
    uint64_t places[GX_BINS + 1]; /* bin i has places [places[i], places[i + 1]) of the order; all are in the n bins */
    uint32_t *bits[2 * GX_BINS];  /* atomic; NULL until needed. Bits of documents, with GX_BITS_SLACK */
} gx_column_bins;

/* The bins of a column, made at their first use, which makes the order too. They belong to the order. NULL: no
 * memory. Thread-safe. */
const gx_column_bins *gx_column_get_bins(const gx_index *ix, gx_column *c);

/* Bitmap number `at` of the bins, made at its first use: an eighth of a byte a document. NULL: no memory.
 * Thread-safe. */
const uint32_t *gx_column_get_bin_bits(const gx_index *ix, gx_column *c, const gx_column_bins *bins, uint32_t at);

/* The bins [*first, *stop) that hold all of places [begin, end), or, if `inner`, those that hold no others. The
 * latter may be none, and *stop is *first then. begin < end. */
void gx_bins_of(const gx_column_bins *bins, uint64_t begin, uint64_t end, bool inner, uint32_t *first, uint32_t *stop);

void gx_column_bins_free(gx_column_bins *bins); /* NULL is fine */

#endif
