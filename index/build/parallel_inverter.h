/* parallel_inverter.h: documents to postings on one thread or several. Documents come out in the
 * order in which they went in.
 *
 *   gx_parallel_inverter_add         copies the document into the batch that is being filled
 *   a full batch                     enters a queue; the next free thread takes it, or the caller's
 *                                    thread when no batch is free to fill
 *   that thread                      gives the batch to its own document indexer; batches are taken
 *                                    in order, so docids rise in every indexer
 *   a finished batch                 is delivered to the document_sink function when all batches
 *   before it
 *                                    have been; one thread at a time does that
 *   gx_parallel_inverter_finish      every thread finishes its own indexer
 *   gx_parallel_inverter_merge       threads merge the lists of all indexers (parallel_merge.h)
 *
 * The batches form a ring: batch i lies at i % n_batches, which is free again after delivery. With
 * one thread there are no batches: each document goes straight from the caller's memory to the
 * indexer and to the document_sink function.
 */
#ifndef GX_INDEX_BUILD_PARALLEL_INVERTER_H
#define GX_INDEX_BUILD_PARALLEL_INVERTER_H

#include "index/build/doc_indexer.h"
#include "index/build/parallel_merge.h"

typedef struct gx_parallel_inverter gx_parallel_inverter; /* its functions are for one thread at a time */

#define GX_MAX_INVERTER_THREADS 256u

/* Receives each document and its length in tokens, in order: docids are 0, 1, 2, ... It is never
 * called by two threads at once. doc is valid until it returns. */
typedef gx_status gx_document_sink_fn(void *user, const gx_document *doc, uint32_t n_tokens, gx_error *err);

typedef struct gx_parallel_inverter_options {
    /* threads, the caller's included. Fewer run where memory has fewer MiB than that, or where the
     * system refuses threads. */
    uint32_t threads;
    uint64_t memory; /* bytes for all batches and indexers together */
    const char *dir; /* where temporary files may be made */
    gx_document_sink_fn *document_sink;
    void *user;
} gx_parallel_inverter_options;

/* analyzer and opt->dir must outlive the inverter. */
gx_status gx_parallel_inverter_open(gx_parallel_inverter **out, const gx_analyzer *analyzer,
                                    const gx_parallel_inverter_options *opt, gx_error *err);
void gx_parallel_inverter_close(gx_parallel_inverter *c); /* ends the threads */

/* The document gets the next docid. A failure may stem from a document added earlier; after one the
 * only valid call is close. Statuses of document_sink, GX_EIO, GX_ENOMEM. */
gx_status gx_parallel_inverter_add(gx_parallel_inverter *c, const gx_document *doc, gx_error *err);

/* Index the remaining batches, deliver them, end the threads. The same statuses. */
gx_status gx_parallel_inverter_finish(gx_parallel_inverter *c, gx_error *err);

/* After gx_parallel_inverter_finish: give every list to the sink. Statuses of the sink, GX_EIO,
 * GX_ENOMEM. */
gx_status gx_parallel_inverter_merge(gx_parallel_inverter *c, const gx_list_sink *sink, gx_error *err);

/* Sums over all finished batches. Time spent in the document_sink function counts as
 * GX_STAGE_DOCUMENTS. */
void gx_parallel_inverter_get_counts(gx_parallel_inverter *c, gx_indexer_counts *sum);
/* Seconds that additions have taken of the caller's thread. */
double gx_parallel_inverter_caller_seconds(const gx_parallel_inverter *c);

#endif
