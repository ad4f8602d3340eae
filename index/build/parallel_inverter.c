#include "index/build/parallel_inverter.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parallel.h"
#include "engine/status.h"

#define MAX_BATCH (512u << 10) /* bytes of documents */

/* A document of a batch: id, title and text lie at begin. Its vector, if it has one, lies behind
 * them: the bytes of its terms, zeros up to a multiple of 8, and at `vector` gx_weighted_terms whose
 * pointers are missing until the batch is inverted, for its bytes may move. */
typedef struct batch_entry {
    size_t begin, title_len, text_len, vector;
    uint32_t id_len, n_tokens, n_vector;
    bool has_vector;
} batch_entry;

typedef struct batch {
    char *bytes; /* [max] */
    size_t n, max;
    batch_entry *docs;                /* [max_docs] */
    uint32_t n_docs, max_docs, first; /* first: docid */
    bool done;
} batch;

typedef struct worker {
    gx_parallel_inverter *owner;
    gx_doc_indexer *indexer;
    gx_indexer_counts counts; /* as of its last batch; under the lock */
} worker;

struct gx_parallel_inverter {
    gx_document_sink_fn *document_sink;
    void *user;
    worker *workers; /* [n_workers], the caller first */
    uint32_t n_workers;
    gx_threads *threads; /* of workers 1 .., as many as the system gave */
    uint32_t n_docs;
    double caller_seconds;

    batch *batches; /* [n_batches] */
    uint32_t n_batches;
    size_t batch_bytes;
    batch *filling; /* or NULL */

    pthread_mutex_t lock;      /* of what follows, and of batches' done */
    pthread_cond_t work, room; /* a batch to invert, or the end; a batch is handed on, or an error */
    bool locks;
    uint64_t n_queued, n_taken, n_delivered; /* batches that came so far, in order */
    size_t in_flight;                        /* bytes of those not handed on */
    bool delivering, closing;
    double delivery_seconds;
    gx_status st; /* the first error's */
    gx_error err;
    atomic_bool stop; /* an error, or close */
};

/* ---- batches ---- */

static gx_document document_of(const batch *b, const batch_entry *e)
{
    const char *p = b->bytes + e->begin;
    return (gx_document){sizeof(gx_document), p,          p + e->id_len, p + e->id_len + e->title_len, e->id_len,
                         e->title_len,        e->text_len};
}

/* The same with its vector. */
static gx_document whole_document_of(const batch *b, const batch_entry *e)
{
    gx_document doc = document_of(b, e);
    if (!e->has_vector)
        return doc;
    gx_weighted_term *vector = (gx_weighted_term *)(void *)(b->bytes + e->vector);
    const char *term = doc.text + doc.text_len;
    for (uint32_t i = 0; i < e->n_vector; term += vector[i++].len)
        vector[i].term = term;
    doc.vector = vector;
    doc.n_vector = e->n_vector;
    return doc;
}

static bool reserve_bytes(batch *b, size_t n, size_t least)
{
    if (n <= b->max)
        return true;
    const size_t max = n > least ? n : least;
    char *p = realloc(b->bytes, max);
    if (!p)
        return false;
    b->bytes = p;
    b->max = max;
    return true;
}

static bool reserve_docs(batch *b)
{
    if (b->n_docs < b->max_docs)
        return true;
    const uint32_t max = 2 * b->max_docs + 64;
    batch_entry *p = realloc(b->docs, max * sizeof *p);
    if (!p)
        return false;
    b->docs = p;
    b->max_docs = max;
    return true;
}

/* Empty the batch. Free what a document longer than a whole batch has needed. */
static void clear_batch(batch *b, size_t batch_bytes)
{
    if (b->max > batch_bytes) {
        free(b->bytes);
        b->bytes = NULL;
        b->max = 0;
    }
    b->n = b->n_docs = 0;
    b->done = false;
}

/* ---- with the lock held ---- */

static void record_failure(gx_parallel_inverter *c, gx_status st, const gx_error *err)
{
    if (c->st == GX_OK) {
        c->st = st;
        c->err = *err;
    }
    atomic_store(&c->stop, true);
    pthread_cond_broadcast(&c->work);
    pthread_cond_broadcast(&c->room);
}

static gx_status deliver_batch(gx_parallel_inverter *c, const batch *b, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < b->n_docs && st == GX_OK && !atomic_load_explicit(&c->stop, memory_order_relaxed); ++i) {
        const gx_document doc = document_of(b, &b->docs[i]);
        st = c->document_sink(c->user, &doc, b->docs[i].n_tokens, err);
    }
    return st;
}

/* Deliver, in order, all batches that come next, unless another thread does so. The lock is not
 * held meanwhile. */
static void deliver_batches(gx_parallel_inverter *c)
{
    if (c->delivering)
        return;
    c->delivering = true;
    for (batch *b;
         b = &c->batches[c->n_delivered % c->n_batches], c->n_delivered < c->n_taken && b->done && c->st == GX_OK;) {
        gx_error err = {0};
        pthread_mutex_unlock(&c->lock);
        const double t = gx_clock_seconds();
        const gx_status st = deliver_batch(c, b, &err);
        const double took = gx_clock_seconds() - t;
        const size_t bytes = b->n;
        clear_batch(b, c->batch_bytes);
        pthread_mutex_lock(&c->lock);
        c->delivery_seconds += took;
        c->in_flight -= bytes;
        ++c->n_delivered;
        if (st != GX_OK)
            record_failure(c, st, &err);
        pthread_cond_broadcast(&c->room);
    }
    c->delivering = false;
}

static gx_status invert_batch(gx_parallel_inverter *c, gx_doc_indexer *v, batch *b, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < b->n_docs && st == GX_OK && !atomic_load_explicit(&c->stop, memory_order_relaxed); ++i) {
        const gx_document doc = whole_document_of(b, &b->docs[i]);
        st = gx_doc_indexer_add(v, b->first + i, &doc, &b->docs[i].n_tokens, err);
    }
    return st;
}

/* Take the next batch from the queue, which is not empty, and invert it. The lock is not held
 * meanwhile. */
static void invert_next_batch(gx_parallel_inverter *c, worker *m)
{
    batch *b = &c->batches[c->n_taken++ % c->n_batches];
    gx_error err = {0};
    pthread_mutex_unlock(&c->lock);
    const gx_status st = invert_batch(c, m->indexer, b, &err);
    pthread_mutex_lock(&c->lock);
    m->counts = *gx_doc_indexer_get_counts(m->indexer);
    b->done = true;
    if (st != GX_OK)
        record_failure(c, st, &err);
    deliver_batches(c);
}

static gx_status first_failure(const gx_parallel_inverter *c, gx_error *err)
{
    return c->st == GX_OK ? GX_OK : gx_fail(err, c->st, "%s", c->err.text);
}

/* ---- threads ---- */

static void finish_indexer(gx_parallel_inverter *c, worker *m)
{
    gx_error err = {0};
    const gx_status st = gx_doc_indexer_finish(m->indexer, &err);
    pthread_mutex_lock(&c->lock);
    m->counts = *gx_doc_indexer_get_counts(m->indexer);
    if (st != GX_OK)
        record_failure(c, st, &err);
    pthread_mutex_unlock(&c->lock);
}

static void inverter_thread(void *user, uint32_t number)
{
    gx_parallel_inverter *c = user;
    worker *m = &c->workers[number];
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->stop) && (c->n_taken < c->n_queued || !c->closing)) {
        if (c->n_taken < c->n_queued)
            invert_next_batch(c, m);
        else
            pthread_cond_wait(&c->work, &c->lock);
    }
    const bool stopped = atomic_load(&c->stop);
    pthread_mutex_unlock(&c->lock);
    if (!stopped)
        finish_indexer(c, m);
}

/* ---- opening and closing ---- */

static gx_status open_batch_ring(gx_parallel_inverter *c, uint32_t n, uint64_t memory)
{
    c->n_batches = 2 * n + 2;
    c->batch_bytes = memory / n / 16 < MAX_BATCH ? memory / n / 16 : MAX_BATCH;
    if (!(c->batches = calloc(c->n_batches, sizeof *c->batches)) || pthread_mutex_init(&c->lock, NULL) != 0)
        return GX_ENOMEM;
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->room, NULL);
    c->locks = true;
    return GX_OK;
}

gx_status gx_parallel_inverter_open(gx_parallel_inverter **out, const gx_analyzer *analyzer,
                                    const gx_parallel_inverter_options *opt, gx_error *err)
{
    *out = NULL;
    gx_parallel_inverter *c = calloc(1, sizeof *c);
    if (!c)
        return gx_doc_indexer_no_memory(err);
    uint64_t n = opt->threads < GX_MAX_INVERTER_THREADS ? opt->threads : GX_MAX_INVERTER_THREADS, memory = opt->memory;
    if (n > memory >> 20)
        n = memory >> 20;
    if (n == 0)
        n = 1;
    gx_status st = GX_OK;
    c->document_sink = opt->document_sink;
    c->user = opt->user;
    if (!(c->workers = calloc(n, sizeof *c->workers)))
        st = gx_doc_indexer_no_memory(err);
    if (st == GX_OK && n > 1) {
        if (open_batch_ring(c, (uint32_t)n, memory) != GX_OK)
            st = gx_doc_indexer_no_memory(err);
        memory -= (uint64_t)c->n_batches * c->batch_bytes;
    }
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        c->workers[i].owner = c;
        st = gx_doc_indexer_open(&c->workers[i].indexer, analyzer, opt->dir, memory / n, (uint32_t)n, err);
        c->n_workers += st == GX_OK;
    }
    if (st != GX_OK) {
        gx_parallel_inverter_close(c);
        return st;
    }
    c->threads = gx_threads_start(c->n_workers - 1, 1, inverter_thread, c);
    *out = c;
    return GX_OK;
}

void gx_parallel_inverter_close(gx_parallel_inverter *c)
{
    if (!c)
        return;
    if (c->locks) {
        pthread_mutex_lock(&c->lock);
        atomic_store(&c->stop, true);
        pthread_cond_broadcast(&c->work);
        pthread_mutex_unlock(&c->lock);
        gx_threads_join(c->threads);
        c->threads = NULL;
        pthread_cond_destroy(&c->room);
        pthread_cond_destroy(&c->work);
        pthread_mutex_destroy(&c->lock);
    }
    for (uint32_t i = 0; i < c->n_workers; ++i)
        gx_doc_indexer_close(c->workers[i].indexer);
    for (uint32_t i = 0; c->batches && i < c->n_batches; ++i) {
        free(c->batches[i].bytes);
        free(c->batches[i].docs);
    }
    free(c->batches);
    free(c->workers);
    free(c);
}

/* ---- the caller's side ---- */

/* Put the batch that is being filled, if there is one, into the queue. */
static void queue_batch(gx_parallel_inverter *c)
{
    if (!c->filling)
        return;
    pthread_mutex_lock(&c->lock);
    c->in_flight += c->filling->n;
    ++c->n_queued;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
    c->filling = NULL;
}

/* Whether a batch is free, and the limit of memory allows `bytes` more. One document is always
 * allowed, whatever its length. */
static bool has_room(const gx_parallel_inverter *c, size_t bytes)
{
    return c->n_queued - c->n_delivered < c->n_batches &&
           (c->in_flight == 0 || c->in_flight + bytes <= c->n_batches * c->batch_bytes);
}

/* Help until there is a batch to fill. */
static gx_status begin_batch(gx_parallel_inverter *c, size_t bytes, gx_error *err)
{
    pthread_mutex_lock(&c->lock);
    while (c->st == GX_OK && !has_room(c, bytes)) {
        if (c->n_taken < c->n_queued)
            invert_next_batch(c, &c->workers[0]);
        else
            pthread_cond_wait(&c->room, &c->lock);
    }
    const gx_status st = first_failure(c, err);
    c->filling = st == GX_OK ? &c->batches[c->n_queued % c->n_batches] : NULL;
    pthread_mutex_unlock(&c->lock);
    if (st == GX_OK)
        c->filling->first = c->n_docs;
    return st;
}

/* Bytes of the vector's terms. */
static size_t vector_bytes(const gx_document *doc)
{
    size_t n = 0;
    for (uint32_t i = 0; doc->vector && i < doc->n_vector; ++i)
        n += doc->vector[i].len;
    return n;
}

/* Copy the document's vector to the batch, whose bytes are enough, and whose end is that of the
 * document's text. */
static void append_vector(batch *b, batch_entry *e, const gx_document *doc)
{
    for (uint32_t i = 0; i < doc->n_vector; ++i) {
        memcpy(b->bytes + b->n, doc->vector[i].term, doc->vector[i].len);
        b->n += doc->vector[i].len;
    }
    for (; b->n % 8; ++b->n)
        b->bytes[b->n] = 0;
    e->has_vector = true;
    e->vector = b->n;
    e->n_vector = doc->n_vector;
    if (doc->n_vector)
        memcpy(b->bytes + b->n, doc->vector, doc->n_vector * sizeof *doc->vector);
    b->n += doc->n_vector * sizeof *doc->vector;
}

static gx_status append_to_batch(gx_parallel_inverter *c, const gx_document *doc, gx_error *err)
{
    const size_t texts = doc->id_len + doc->title_len + doc->text_len;
    const size_t bytes = texts + (doc->vector ? vector_bytes(doc) + 8 + doc->n_vector * sizeof *doc->vector : 0);
    if (c->filling && c->filling->n + bytes + (c->filling->n_docs + 1) * sizeof(batch_entry) > c->batch_bytes &&
        c->filling->n_docs)
        queue_batch(c);
    if (!c->filling) {
        const gx_status st = begin_batch(c, bytes, err);
        if (st != GX_OK)
            return st;
    }
    batch *b = c->filling;
    if (!reserve_docs(b) || !reserve_bytes(b, b->n + bytes, c->batch_bytes))
        return gx_doc_indexer_no_memory(err);
    char *p = b->bytes + b->n;
    memcpy(p, doc->id, doc->id_len);
    if (doc->title_len)
        memcpy(p + doc->id_len, doc->title, doc->title_len);
    if (doc->text_len)
        memcpy(p + doc->id_len + doc->title_len, doc->text, doc->text_len);
    batch_entry *e = &b->docs[b->n_docs++];
    *e = (batch_entry){
        .begin = b->n, .title_len = doc->title_len, .text_len = doc->text_len, .id_len = (uint32_t)doc->id_len};
    b->n += texts;
    if (doc->vector)
        append_vector(b, e, doc);
    return GX_OK;
}

static gx_status add_unbatched(gx_parallel_inverter *c, const gx_document *doc, gx_error *err)
{
    uint32_t n_tokens;
    gx_doc_indexer *v = c->workers[0].indexer;
    gx_status st = gx_doc_indexer_add(v, c->n_docs, doc, &n_tokens, err);
    if (st != GX_OK)
        return st;
    const double t = gx_doc_indexer_stamp(v);
    st = c->document_sink(c->user, doc, n_tokens, err);
    c->delivery_seconds += gx_clock_seconds() - t;
    return st;
}

gx_status gx_parallel_inverter_add(gx_parallel_inverter *c, const gx_document *doc, gx_error *err)
{
    const double t = gx_clock_seconds();
    const gx_status st = c->batches ? append_to_batch(c, doc, err) : add_unbatched(c, doc, err);
    ++c->n_docs;
    c->caller_seconds += gx_clock_seconds() - t;
    return st;
}

gx_status gx_parallel_inverter_finish(gx_parallel_inverter *c, gx_error *err)
{
    if (!c->batches)
        return gx_doc_indexer_finish(c->workers[0].indexer, err);
    queue_batch(c);
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    pthread_cond_broadcast(&c->work);
    while (c->st == GX_OK && c->n_taken < c->n_queued)
        invert_next_batch(c, &c->workers[0]);
    pthread_mutex_unlock(&c->lock);
    if (!atomic_load(&c->stop))
        finish_indexer(c, &c->workers[0]);
    gx_threads_join(c->threads); /* the last of them to be done has handed on what was left */
    c->threads = NULL;
    return first_failure(c, err);
}

gx_status gx_parallel_inverter_merge(gx_parallel_inverter *c, const gx_list_sink *sink, gx_error *err)
{
    gx_postings_buffer **buffers = malloc(c->n_workers * sizeof *buffers);
    if (!buffers)
        return gx_doc_indexer_no_memory(err);
    for (uint32_t i = 0; i < c->n_workers; ++i)
        buffers[i] = gx_doc_indexer_postings(c->workers[i].indexer);
    const gx_status st = gx_parallel_merge(buffers, c->n_workers, c->n_workers, sink, err);
    free(buffers);
    return st;
}

void gx_parallel_inverter_get_counts(gx_parallel_inverter *c, gx_indexer_counts *sum)
{
    *sum = (gx_indexer_counts){0};
    if (c->batches)
        pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->n_workers; ++i) {
        const gx_indexer_counts *t =
            c->batches ? &c->workers[i].counts : gx_doc_indexer_get_counts(c->workers[i].indexer);
        sum->tokens += t->tokens;
        sum->empty += t->empty;
        sum->dropped_tokens += t->dropped_tokens;
        sum->replaced_bytes += t->replaced_bytes;
        sum->memory_bytes += t->memory_bytes;
        sum->spills += t->spills;
        for (int s = 0; s < GX_N_STAGES; ++s)
            sum->seconds[s] += t->seconds[s];
    }
    sum->seconds[GX_STAGE_DOCUMENTS] += c->delivery_seconds;
    if (c->batches)
        pthread_mutex_unlock(&c->lock);
}

double gx_parallel_inverter_caller_seconds(const gx_parallel_inverter *c)
{
    return c->caller_seconds;
}
