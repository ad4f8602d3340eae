/* parallel_inverter.h: documents inverted by one thread or several, and handed on in their order.
 *
 *   gx_crew_put, gx_crew_add -> the batch at hand
 *   a full batch             -> a queue -> the next thread that is free; also the caller's, when no
 *   batch is left to fill
 *                            -> the thread's own inversion: batches come in order, so its docids
 *                            rise
 *   a batch that is done     -> receive, by one thread at a time, when all before it have been
 *   there
 *   gx_crew_finish           -> inversions sealed, each by its thread
 *   gx_crew_merge            -> the lists, whoever inverted which documents, by as many threads
 *                            (parallel_merge.h)
 *
 * Batches are a ring: number i lies at i % n_batches, and is free again when it has been handed on.
 * With one thread there are no batches: a document goes straight from the caller's memory to the
 * inversion and to receive.
 */
#ifndef GX_INDEX_BUILD_PARALLEL_INVERTER_H
#define GX_INDEX_BUILD_PARALLEL_INVERTER_H

#include "index/build/doc_indexer.h"
#include "index/build/parallel_merge.h"

typedef struct gx_crew gx_crew; /* its functions are for one thread at a time */

#define GX_MAX_CREW 256u

/* A document and its length; docids are 0, 1, 2, ... Not called by two threads at once. doc lives
 * until it returns. */
typedef gx_status gx_receive_fn(void *user, const gx_document *doc, uint32_t n_tokens, gx_error *err);

typedef struct gx_crew_options {
    /* the caller's included; fewer are used where memory has fewer MiB, or the system gives fewer
     * */
    uint32_t threads;
    uint64_t memory; /* bytes for batches and inversions together */
    const char *dir; /* where temporary files may be made */
    gx_receive_fn *receive;
    void *user;
} gx_crew_options;

/* The analyzer and dir outlive it. */
gx_status gx_crew_open(gx_crew **out, const gx_analyzer *analyzer, const gx_crew_options *opt, gx_error *err);
void gx_crew_close(gx_crew *c); /* ends the threads */

/* An addition, in halves: put does what needs no docid, and may come to nothing; add gives the
 * document that was put last the next docid. Failures may be those of documents added before; after
 * one only close is left. receive's statuses, GX_EIO, GX_ENOMEM. */
gx_status gx_crew_put(gx_crew *c, const gx_document *doc, gx_error *err);
gx_status gx_crew_add(gx_crew *c, const gx_document *doc, gx_error *err);

/* Invert what is left, hand it on, end the threads. The same statuses. */
gx_status gx_crew_finish(gx_crew *c, gx_error *err);

/* After gx_crew_finish: every list to the sink. Its statuses, GX_EIO, GX_ENOMEM. */
gx_status gx_crew_merge(gx_crew *c, const gx_list_sink *sink, gx_error *err);

/* over the batches done so far; seconds in receive are GX_STAGE_DOCUMENTS */
void gx_crew_get_tally(gx_crew *c, gx_tally *sum);
double gx_crew_own_seconds(const gx_crew *c); /* that put and add took of the caller's thread */

#endif
