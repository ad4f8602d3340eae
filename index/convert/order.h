/* order.h: other orders of an index's documents, for gx_index_rewrite.
 *
 * Documents that share terms and have near docids make short d-gaps, so lists pack into fewer bits,
 * and documents of high score stand together, so that a search skips more blocks. An order that
 * achieves this is found by recursive graph bisection (Dhulipala et al., KDD 2016; Mackenzie, Petri
 * and Moffat, SIGIR 2021): documents are cut into two halves, those that would make d-gaps shorter
 * on the other side change over, and each half is treated likewise.
 */
#ifndef GX_INDEX_CONVERT_ORDER_H
#define GX_INDEX_CONVERT_ORDER_H

#include "index/index.h"

typedef enum gx_order_kind {
    GX_ORDER_KEEP,   /* as it is */
    GX_ORDER_RANDOM, /* a function of the seed */
    GX_ORDER_BP,     /* recursive graph bisection; begins with the order as it is */
    GX_ORDER_ID      /* by external id, as bytes; of a Web collection whose ids are URLs, it puts sites together */
} gx_order_kind;

typedef struct gx_order_options {
    size_t size;
    gx_order_kind kind;
    uint64_t seed;              /* of GX_ORDER_RANDOM */
    uint32_t threads;           /* of GX_ORDER_BP, at most 256; 0: one. The order is the same for any number */
    uint32_t min_df;            /* GX_ORDER_BP looks at terms of at least so many documents; 0: 16 */
    uint32_t iterations;        /* most rounds of changing over, in a range of documents; 0: 20 */
    uint32_t leaf;              /* ranges of at most so many documents stay as they are; 0: 16 */
    bool (*cancel)(void *user); /* asked now and then, by any of the threads; may be NULL */
    /* How far it has come, done of total; by any of the threads, but one at a time; may be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} gx_order_options;
#define GX_ORDER_OPTIONS ((gx_order_options){.size = sizeof(gx_order_options)})

/* new_docids[n_docs] out: a permutation, the new docid of each document.
 * Memory: GX_ORDER_BP 8 bytes a posting of the terms it looks at, 25 a document, 4 a term of the
 * index, and 16 a term that it looks at a thread; GX_ORDER_ID 8 bytes a document.
 * GX_ECORRUPT (a list decodes to docids that do not rise or are too large), GX_ECANCELLED,
 * GX_ENOMEM. */
gx_status gx_order_make(const gx_index *ix, const gx_order_options *opt, uint32_t *new_docids, gx_error *err);

/* The mean of log2 of the gaps between a list's neighbouring docids, the first one's counting from
 * -1: what orders are compared by, whatever the codec. 0 where there are no postings. */
double gx_order_gap_bits(const gx_index *ix);

#endif
