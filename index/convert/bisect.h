/* bisect.h: recursive graph bisection, which computes GX_ORDER_BP. order.c says what it is for.
 *
 *   1. The lists of terms of at least min_df documents are inverted into forward lists, which hold
 *      each document's terms.
 *   2. The collection is the first range of documents. A range is cut in the middle into two
 *      halves. Then these steps are repeated until no document moves, but at most 20 times
 *      (`iterations`):
 *        degrees   for each term, count the documents of each half that contain it
 *        scores    for each document, compute how many bits its d-gaps take less in the right half
 *                  than in the left; a term of d of n documents costs d log2(n / (d + 1)) bits
 *        moves     the documents with the smaller scores become the left half, by selection, not
 *                  by sorting
 *   3. Each half gets forward lists of its own: its terms are numbered anew, and terms of one
 *      document are left out. It becomes a range, down to ranges of 16 documents (`leaf`).
 *
 * There are two sets of arrays. The halves of a range in one set are written to the same places of
 * the other set. So ranges are independent of each other, any number of threads may work on them,
 * and small ranges stay in cache.
 */
#ifndef GX_INDEX_CONVERT_BISECT_H
#define GX_INDEX_CONVERT_BISECT_H

#include "engine/api/gpuidx_advanced.h" /* gx_order_options */
#include "index/index.h"

/* Fill new_docids[n_docs] as gx_order_make does for GX_ORDER_BP, with its statuses. */
gx_status gx_bisect(const gx_index *ix, const gx_order_options *opt, uint32_t *new_docids, gx_error *err);

#endif
