/* order.c: compute another order of an index's documents, for gx_index_rewrite.
 *
 * If documents that share terms have near docids, d-gaps are short, and lists pack into fewer bits.
 * Documents of high score then also stand together, so that a search skips more blocks. Recursive
 * graph bisection (Dhulipala et al., KDD 2016; Mackenzie, Petri and Moffat, SIGIR 2021) finds such
 * an order. It cuts the documents into two halves, moves those that would make d-gaps shorter in
 * the other half, and treats each half in the same way.
 */
#include "engine/api/gpuidx_advanced.h" /* gx_order_make */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/random.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/convert/bisect.h"

static void identity_order(uint32_t n, uint32_t *order)
{
    for (uint32_t d = 0; d < n; ++d)
        order[d] = d;
}

static void random_order(uint32_t n, uint64_t seed, uint32_t *order)
{
    identity_order(n, order);
    for (uint32_t d = n; d > 1; --d) { /* Fisher-Yates shuffle; the high half of the product is below d */
        const uint32_t e = (uint32_t)((gx_random_next(&seed) >> 32) * d >> 32), swap = order[d - 1];
        order[d - 1] = order[e];
        order[e] = swap;
    }
}

static int by_id(const void *a, const void *b, void *index)
{
    size_t x_len, y_len;
    const uint32_t d = *(const uint32_t *)a, e = *(const uint32_t *)b;
    const char *x = gx_index_doc_id(index, d, &x_len), *y = gx_index_doc_id(index, e, &y_len);
    const size_t n = x_len < y_len ? x_len : y_len;
    const int c = n ? memcmp(x, y, n) : 0;
    if (c)
        return c;
    return x_len != y_len ? (x_len < y_len ? -1 : 1) : d < e ? -1 : d > e;
}

static gx_status sort_ids(const gx_index *ix, uint32_t *order, gx_error *err)
{
    uint32_t *docs = malloc(((size_t)ix->n_docs + 1) * sizeof *docs);
    if (!docs)
        return gx_fail(err, GX_ENOMEM, "%s: no memory to sort %u ids", ix->path, ix->n_docs);
    identity_order(ix->n_docs, docs);
    qsort_r(docs, ix->n_docs, sizeof *docs, by_id, (void *)(uintptr_t)ix);
    for (uint32_t d = 0; d < ix->n_docs; ++d)
        order[docs[d]] = d;
    free(docs);
    return GX_OK;
}

gx_status gx_order_make(const gx_index *ix, const gx_order_options *opt, uint32_t *new_docids, gx_error *err)
{
    gx_order_options o = GX_ORDER_OPTIONS;
    const gx_status st =
        gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_order_options, user), "gx_order_options", err);
    if (st != GX_OK)
        return st;
    if (ix->parts)
        return gx_fail(
            err, GX_EUSAGE,
            "%s is a collection, whose documents are in the order of its parts: make it one index first, with recode",
            ix->path);
    switch (o.kind) {
    case GX_ORDER_KEEP:
        identity_order(ix->n_docs, new_docids);
        return GX_OK;
    case GX_ORDER_RANDOM:
        random_order(ix->n_docs, o.seed, new_docids);
        return GX_OK;
    case GX_ORDER_BP:
        return gx_bisect(ix, &o, new_docids, err);
    case GX_ORDER_ID:
        return sort_ids(ix, new_docids, err);
    }
    return gx_fail(err, GX_EUSAGE, "gx_order_options.kind is %d, which is no gx_order_kind", (int)o.kind);
}

double gx_order_gap_bits(const gx_index *ix)
{
    uint32_t docids[GX_MAX_BLOCK];
    double bits = 0;
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        const gx_list l = gx_index_list(ix, t);
        uint32_t last = UINT32_MAX;
        for (uint32_t j = 0; j < l.n_blocks; ++j) {
            const uint32_t n = gx_list_decode_docids(&l, j, docids);
            for (uint32_t i = 0; i < n; ++i) {
                bits += log2f((float)(docids[i] - last));
                last = docids[i];
            }
        }
    }
    return ix->n_postings ? bits / (double)ix->n_postings : 0;
}
