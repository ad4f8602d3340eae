/* order.h: compute another order of an index's documents, for gx_index_rewrite.
 *
 * If documents that share terms have near docids, d-gaps are short, and lists pack into fewer bits.
 * Documents of high score then also stand together, so that a search skips more blocks. Recursive
 * graph bisection (Dhulipala et al., KDD 2016; Mackenzie, Petri and Moffat, SIGIR 2021) finds such
 * an order. It cuts the documents into two halves, moves those that would make d-gaps shorter in
 * the other half, and treats each half in the same way.
 */
#ifndef GX_INDEX_CONVERT_ORDER_H
#define GX_INDEX_CONVERT_ORDER_H

#include "index/index.h"

typedef enum gx_order_kind {
    GX_ORDER_KEEP,   /* the present order */
    GX_ORDER_RANDOM, /* a random order, which the seed decides */
    GX_ORDER_BP,     /* recursive graph bisection, which begins with the present order */
    GX_ORDER_ID      /* by external id, in byte order; where ids are URLs, this puts the pages of a site together */
} gx_order_kind;

typedef struct gx_order_options {
    size_t size;
    gx_order_kind kind;
    uint64_t seed;              /* of GX_ORDER_RANDOM */
    uint32_t threads;           /* of GX_ORDER_BP, at most 256; 0: one. The order is the same for any number */
    uint32_t min_df;            /* of GX_ORDER_BP: it ignores terms of fewer documents; 0: 16 */
    uint32_t iterations;        /* of GX_ORDER_BP: most rounds of moves in a range of documents; 0: 20 */
    uint32_t leaf;              /* of GX_ORDER_BP: ranges of at most this many documents are not cut; 0: 16 */
    bool (*cancel)(void *user); /* called now and then, by any of the threads; true: stop. May be NULL */
    /* Receives the progress: `done` of `total` units of work. Any of the threads may call it, but
     * one thread at a time. May be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} gx_order_options;
#define GX_ORDER_OPTIONS ((gx_order_options){.size = sizeof(gx_order_options)})

/* Compute an order. new_docids[n_docs] receives a permutation: the new docid of each document.
 * GX_ECORRUPT (a list decodes to docids that do not rise or are too large), GX_ECANCELLED,
 * GX_ENOMEM.
 *
 * Memory of GX_ORDER_BP, in bytes, where its terms are those of at least min_df documents:
 *     8   for each posting of its terms
 *    25   for each document
 *     4   for each term of the index
 *    16   for each of its terms and each thread
 * Memory of GX_ORDER_ID: 8 bytes for each document. */
gx_status gx_order_make(const gx_index *ix, const gx_order_options *opt, uint32_t *new_docids, gx_error *err);

/* The mean of log2(gap) over all postings, where gap is the difference from the docid before in the
 * list, and from -1 for the first. It compares orders independently of codecs. 0: ix has no
 * postings. */
double gx_order_gap_bits(const gx_index *ix);

#endif
