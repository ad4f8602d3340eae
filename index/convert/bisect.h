/* bisect.h: recursive graph bisection, the work of GX_ORDER_BP; see order.h for what it is for.
 *
 *   lists --turned round--> forward lists: each document's terms           (terms of at least
 *   min_df documents) a range of documents, cut in the middle:
 *       degrees            documents of each half that hold a term
 *       scores             what a document's d-gaps, d log2(n / d) for d documents of n, gain on
 *                          the other side
 *       the half with the smaller scores goes left, by selection, not by sorting; until nothing
 *       moves, at most 20 times
 *   its halves, each with forward lists of its own, its terms numbered anew and those of one
 *   document left out; so down to ranges of 16 documents
 *
 * A range's halves are written to the other one of two sets of arrays, and theirs back to the
 * first, each to its own part: so ranges are independent of each other, for any number of threads,
 * and small ranges stay in cache.
 */
#ifndef GX_INDEX_CONVERT_BISECT_H
#define GX_INDEX_CONVERT_BISECT_H

#include "index/convert/order.h"

gx_status gx_bisect(const gx_index *ix, const gx_order_options *opt, uint32_t *new_docids, gx_error *err);

#endif
