/* parallel_inverter.h: documents to postings on one thread or several. Documents come out in the
 * order in which they went in.
 *
 * Documents travel in batches. They come from the caller one by one, or from a feed, whose pieces of
 * input the threads split themselves:
 *
 *   gx_parallel_inverter_add    copies the document into the batch that is being filled
 *   gx_parallel_inverter_run    the caller's thread fills a batch with the next piece of the feed, a
 *                               free thread reads it to documents; the caller's thread puts batches
 *                               in order, and gives docids
 *   a batch in order            enters a queue; the next free thread takes it, or the caller's
 *                               thread when nothing is left to read
 *   that thread                 gives the batch to its own document indexer; batches are taken in
 *                               order, so docids rise in every indexer
 *   a finished batch            is packed by that thread, and goes to the sink when all batches
 *                               before it have gone; one thread at a time does that
 *   gx_parallel_inverter_finish every thread finishes its own indexer
 *   gx_parallel_inverter_merge  threads merge the lists of all indexers (parallel_merge.h)
 *
 *   the ring:  ... delivered | inverted or being inverted | in order | read or being read | free ...
 *                        n_delivered                  n_taken    n_ordered            n_claimed
 *
 * Batch i lies at i % n_batches, which is free again after delivery. With one thread there are no
 * batches: each document goes straight from the caller's memory to the indexer and to the
 * document_sink function.
 */
#ifndef GX_INDEX_INVERSION_PARALLEL_INVERTER_H
#define GX_INDEX_INVERSION_PARALLEL_INVERTER_H

#include "index/corpus/line_cuts.h"
#include "index/inversion/doc_indexer.h"
#include "index/inversion/parallel_merge.h"
#include "index/write/external_ids.h"
#include "index/write/quantizer.h"
#include "index/write/writer.h"

typedef struct gx_parallel_inverter gx_parallel_inverter; /* its functions are for one thread at a time */

#define GX_MAX_INVERTER_THREADS 256u

typedef struct gx_inverter_batch {
    gx_line_piece piece; /* the documents, and of a feed's batch their place in the input */
    gx_document_pack pack;
    uint32_t first; /* docid of the first document that is not left out */
    /* the feed's: */
    gx_id_key *keys;          /* [max_keys] */
    gx_weight_range *weights; /* [max_weights] */
    size_t max_keys, max_weights;
    uint64_t text_bytes;
    /* the inverter's, under its lock: */
    size_t bytes; /* counted as in flight */
    bool read, done;
} gx_inverter_batch;

/* With one thread: receives each document, its length in tokens, and the positions of its title, in order: docids are
 * 0, 1, 2, ... It is never called by two threads at once. doc is valid until it returns. */
typedef gx_status gx_document_sink_fn(void *user, const gx_document *doc, uint32_t n_tokens, uint32_t title_positions,
                                      gx_error *err);

/* With several: pack is called for an inverted batch by the thread that has inverted it. sink
 * receives the batches in order, and is never called by two threads at once. The documents' lengths
 * are their n_tokens, beside title_positions. */
typedef gx_status gx_batch_fn(void *user, gx_inverter_batch *batch, gx_error *err);

typedef struct gx_parallel_inverter_options {
    /* threads, the caller's included. Fewer run where memory has fewer MiB than that, or where the
     * system refuses threads. */
    uint32_t threads;
    uint64_t memory; /* bytes for all batches and indexers together */
    bool positions;  /* terms' positions are kept, as details of the postings */
    uint32_t n_fields;             /* gx_doc_indexer_set_fields; 0: none */
    const uint32_t *field_weights; /* [n_fields] fixed; or NULL */
    const char *dir; /* where temporary files may be made */
    gx_document_sink_fn *document_sink;
    gx_batch_fn *pack, *batch_sink;
    void *user;
} gx_parallel_inverter_options;

/* Where batches come from that the inverter's threads read. */
typedef struct gx_inverter_feed {
    /* The caller's thread calls it to fill an empty batch with a piece of input, which a thread will then read;
     * false: nothing is left. */
    bool (*fill)(void *user, gx_inverter_batch *batch);
    /* Read the piece. thread: below gx_parallel_inverter_threads. Ends early when *stop is true. */
    void (*read)(void *user, uint32_t thread, gx_inverter_batch *batch, const atomic_bool *stop);
    /* On the caller's thread, in the order of filling: *n_docs of the batch's documents get docids,
     * the others are left out, also when it fails. *more false: no further batch is wanted. */
    gx_status (*order)(void *user, gx_inverter_batch *batch, uint32_t *n_docs, bool *more, gx_error *err);
    void *user;
} gx_inverter_feed;

/* analyzer and opt->dir must outlive the inverter. */
gx_status gx_parallel_inverter_open(gx_parallel_inverter **out, const gx_analyzer *analyzer,
                                    const gx_parallel_inverter_options *opt, gx_error *err);
void gx_parallel_inverter_close(gx_parallel_inverter *c); /* ends the threads */

/* The document gets the next docid. A failure may stem from a document added earlier; after one the
 * only valid call is close. Statuses of document_sink, GX_EIO, GX_ENOMEM. */
gx_status gx_parallel_inverter_add(gx_parallel_inverter *c, const gx_document *doc, gx_error *err);

/* The number of threads; 1: gx_parallel_inverter_run must not be called. Bytes that a feed's piece
 * should have. */
uint32_t gx_parallel_inverter_threads(const gx_parallel_inverter *c);
size_t gx_parallel_inverter_piece_bytes(const gx_parallel_inverter *c);

/* Take all batches of the feed, until one is the last that is wanted, or order fails; its failure
 * is returned, and the inverter takes further documents. Else statuses as of
 * gx_parallel_inverter_add. No thread uses the feed any more when the call returns. */
gx_status gx_parallel_inverter_run(gx_parallel_inverter *c, const gx_inverter_feed *feed, gx_error *err);

/* From now on threads without other work call help, which returns false if it finds nothing to do. They ask again
 * after gx_parallel_inverter_wake, which any thread may call. help NULL: never again; no thread is in it any more. */
void gx_parallel_inverter_set_help(gx_parallel_inverter *c, bool (*help)(void *user), void *user);
void gx_parallel_inverter_wake(gx_parallel_inverter *c);

/* Index the remaining batches, deliver them, end the threads. The same statuses. */
gx_status gx_parallel_inverter_finish(gx_parallel_inverter *c, gx_error *err);

/* After gx_parallel_inverter_finish: give every list to the sink. Statuses of the sink, GX_EIO,
 * GX_ENOMEM. */
gx_status gx_parallel_inverter_merge(gx_parallel_inverter *c, const gx_list_sink *sink, gx_error *err);

/* The same: as gx_doc_indexer_field_positions, of indexer i < gx_parallel_inverter_threads. */
const uint32_t *gx_parallel_inverter_field_positions(const gx_parallel_inverter *c, uint32_t i, size_t *n);

/* Sums over all finished batches. Time spent in the sinks and in pack counts as GX_STAGE_DOCUMENTS. */
void gx_parallel_inverter_get_counts(gx_parallel_inverter *c, gx_indexer_counts *sum);
/* Seconds that additions have taken of the caller's thread; that reading a feed has taken of all
 * threads. */
double gx_parallel_inverter_caller_seconds(const gx_parallel_inverter *c);
double gx_parallel_inverter_read_seconds(gx_parallel_inverter *c);

#endif
