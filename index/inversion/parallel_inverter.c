#include "index/inversion/parallel_inverter.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parallel.h"
#include "engine/status.h"

#define MAX_BATCH (1u << 20) /* bytes of documents */

typedef gx_inverter_batch batch;

typedef struct worker {
    gx_parallel_inverter *owner;
    gx_doc_indexer *indexer;
    gx_doc_parts parts;
    gx_indexer_counts counts; /* as of its last batch; under the lock */
    double inverting;         /* seconds of its batches; under the lock */
} worker;

struct gx_parallel_inverter {
    gx_document_sink_fn *document_sink;
    gx_batch_fn *pack, *batch_sink;
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

    pthread_mutex_t lock; /* of what follows, and of batches' read and done */
    pthread_cond_t work;  /* threads: a batch to invert or to read, or the end */
    pthread_cond_t room;  /* the caller: a batch is read, or handed on, or an error */
    bool locks;
    /* Batches that came so far. Those behind n_claimed are filled, and not read yet. */
    uint64_t n_filled, n_claimed, n_ordered, n_taken, n_delivered;
    size_t in_flight;                /* bytes of those not handed on */
    const gx_inverter_feed *feed;    /* or NULL: nothing is left to fill */
    const gx_inverter_feed *reading; /* the same until all is read */
    uint32_t n_reading;              /* threads that use the feed */
    bool delivering, closing;
    bool (*help)(void *user); /* or NULL */
    void *help_user;
    uint32_t n_helping; /* threads in it */
    uint64_t n_wakes;   /* calls that have said that there may be work for it */
    double delivery_seconds, read_seconds;
    gx_status st; /* the first error's */
    gx_error err;
    atomic_bool stop; /* an error, or close */
};

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

/* Empty the batch. Free what a document longer than a whole batch has needed. */
static void clear_batch(batch *b, size_t batch_bytes)
{
    gx_line_piece_clear(&b->piece, 2 * batch_bytes);
    gx_document_pack_clear(&b->pack);
    b->read = b->done = false;
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
        const gx_status st = c->batch_sink(c->user, b, &err);
        const double took = gx_clock_seconds() - t;
        clear_batch(b, c->batch_bytes);
        pthread_mutex_lock(&c->lock);
        c->delivery_seconds += took;
        c->in_flight -= b->bytes;
        ++c->n_delivered;
        if (st != GX_OK)
            record_failure(c, st, &err);
        pthread_cond_signal(&c->room);
    }
    c->delivering = false;
}

static gx_status invert_batch(gx_parallel_inverter *c, worker *m, batch *b, gx_error *err)
{
    gx_doc_batch *const docs = &b->piece.docs;
    uint32_t docid = b->first;
    gx_status st = GX_OK;
    for (size_t i = 0; i < docs->n && st == GX_OK && !atomic_load_explicit(&c->stop, memory_order_relaxed); ++i) {
        gx_batch_document *const d = &docs->docs[i];
        gx_document doc;
        if (d->left_out || d->status != GX_OK)
            continue;
        st = gx_doc_batch_get(docs, i, &m->parts, &doc)
                 ? gx_doc_indexer_add(m->indexer, docid++, &doc, &d->n_tokens, err)
                 : gx_doc_indexer_no_memory(err);
        d->title_positions = gx_doc_indexer_title_positions(m->indexer);
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
    const double began = gx_clock_seconds();
    gx_status st = invert_batch(c, m, b, &err);
    const double t = gx_clock_seconds();
    if (st == GX_OK && !atomic_load_explicit(&c->stop, memory_order_relaxed))
        st = c->pack(c->user, b, &err);
    const double took = gx_clock_seconds() - t;
    pthread_mutex_lock(&c->lock);
    c->delivery_seconds += took;
    m->inverting += t - began;
    m->counts = *gx_doc_indexer_get_counts(m->indexer);
    b->done = true;
    if (st != GX_OK)
        record_failure(c, st, &err);
    deliver_batches(c);
}

/* Whether a batch is free, and the limit of memory allows `bytes` more. One document is always
 * allowed, whatever its length. */
static bool has_room(const gx_parallel_inverter *c, size_t bytes)
{
    return c->n_filled - c->n_delivered < c->n_batches &&
           (c->in_flight == 0 || c->in_flight + bytes <= c->n_batches * c->batch_bytes);
}

/* Whether read_next_batch finds something to read. */
static bool can_read(const gx_parallel_inverter *c)
{
    return c->n_claimed < c->n_filled;
}

/* Take the feed's next piece, of which can_read tells, and read it. The lock is not held
 * meanwhile. */
static void read_next_batch(gx_parallel_inverter *c, const worker *m)
{
    const gx_inverter_feed *const feed = c->reading;
    batch *b = &c->batches[c->n_claimed % c->n_batches];
    ++c->n_claimed;
    ++c->n_reading;
    pthread_mutex_unlock(&c->lock);
    const double t = gx_clock_seconds();
    feed->read(feed->user, (uint32_t)(m - c->workers), b, &c->stop);
    const double took = gx_clock_seconds() - t;
    pthread_mutex_lock(&c->lock);
    c->read_seconds += took;
    --c->n_reading;
    b->read = true;
    pthread_cond_signal(&c->room);
}

/* Fill the next batch, for which there is room, on the caller's thread. The lock is not held
 * meanwhile. */
static void fill_next_batch(gx_parallel_inverter *c)
{
    const gx_inverter_feed *const feed = c->feed;
    batch *b = &c->batches[c->n_filled % c->n_batches];
    pthread_mutex_unlock(&c->lock);
    const double t = gx_clock_seconds();
    const bool more = feed->fill(feed->user, b);
    const double took = gx_clock_seconds() - t;
    pthread_mutex_lock(&c->lock);
    c->read_seconds += took;
    if (more) {
        ++c->n_filled;
        c->in_flight += b->bytes = b->piece.bytes;
        pthread_cond_signal(&c->work);
    } else {
        c->feed = NULL;
    }
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

/* Let the thread do other work than the inverter's. false: there is none, and no one has said meanwhile that there
 * is. The lock is not held meanwhile. */
static bool help_others(gx_parallel_inverter *c)
{
    bool (*const help)(void *user) = c->help;
    void *const user = c->help_user;
    const uint64_t before = c->n_wakes;
    if (!help)
        return false;
    ++c->n_helping;
    pthread_mutex_unlock(&c->lock);
    const double t = gx_clock_seconds();
    const bool did = help(user);
    const double took = gx_clock_seconds() - t;
    pthread_mutex_lock(&c->lock);
    c->read_seconds += did ? took : 0;
    if (--c->n_helping == 0 && !c->help)
        pthread_cond_broadcast(&c->room);
    if (did && c->help)
        pthread_cond_signal(&c->work); /* there may be more */
    return did || c->n_wakes != before;
}

static void inverter_thread(void *user, uint32_t number)
{
    gx_parallel_inverter *c = user;
    worker *m = &c->workers[number];
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->stop) && (c->n_taken < c->n_ordered || !c->closing)) {
        if (c->n_taken < c->n_ordered)
            invert_next_batch(c, m);
        else if (can_read(c))
            read_next_batch(c, m);
        else if (!help_others(c))
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
    c->n_batches = 4 * n + 2;
    c->batch_bytes = memory / n / 32 < MAX_BATCH ? memory / n / 32 : MAX_BATCH;
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
    c->pack = opt->pack;
    c->batch_sink = opt->batch_sink;
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
        if (st == GX_OK && opt->positions)
            gx_doc_indexer_keep_positions(c->workers[i].indexer);
        if (st == GX_OK && opt->n_fields)
            st = gx_doc_indexer_set_fields(c->workers[i].indexer, opt->n_fields, opt->field_weights, err);
    }
    if (st != GX_OK) {
        gx_parallel_inverter_close(c);
        return st;
    }
    c->threads = gx_threads_start(c->n_workers - 1, 1, inverter_thread, c);
    *out = c;
    return GX_OK;
}

/* Free a worker, or a batch, whose numbers come after those of the workers: each has much memory. */
static void free_memory_of(void *user, uint32_t number)
{
    gx_parallel_inverter *const c = user;
    if (number < c->n_workers) {
        worker *m = &c->workers[number];
        gx_doc_indexer_close(m->indexer);
        gx_doc_parts_free(&m->parts);
        return;
    }
    batch *b = &c->batches[number - c->n_workers];
    gx_line_piece_free(&b->piece);
    gx_document_pack_free(&b->pack);
    free(b->keys);
    free(b->weights);
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
    gx_parallel_for(c->n_workers, c->n_workers + (c->batches ? c->n_batches : 0), free_memory_of, c);
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
    c->in_flight += c->filling->bytes = c->filling->piece.docs.n_bytes;
    c->n_filled = c->n_claimed = ++c->n_ordered;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
    c->filling = NULL;
}

/* Help until there is a batch to fill. */
static gx_status begin_batch(gx_parallel_inverter *c, size_t bytes, gx_error *err)
{
    pthread_mutex_lock(&c->lock);
    while (c->st == GX_OK && !has_room(c, bytes)) {
        if (c->n_taken < c->n_ordered)
            invert_next_batch(c, &c->workers[0]);
        else
            pthread_cond_wait(&c->room, &c->lock);
    }
    const gx_status st = first_failure(c, err);
    c->filling = st == GX_OK ? &c->batches[c->n_claimed % c->n_batches] : NULL;
    pthread_mutex_unlock(&c->lock);
    if (st == GX_OK)
        c->filling->first = c->n_docs;
    return st;
}

/* Bytes that the document takes in a batch. */
static size_t bytes_of(const gx_document *doc)
{
    size_t n = doc->id_len + doc->title_len + doc->text_len + sizeof(gx_batch_document);
    for (uint32_t i = 0; doc->vector && i < doc->n_vector; ++i)
        n += doc->vector[i].len + sizeof(gx_weighted_term);
    return n;
}

static gx_status append_to_batch(gx_parallel_inverter *c, const gx_document *doc, gx_error *err)
{
    const size_t bytes = bytes_of(doc);
    gx_document own = *doc;
    own.n_values = 0; /* the builder has used them */
    if (c->filling && c->filling->piece.docs.n) {
        const gx_doc_batch *b = &c->filling->piece.docs;
        if (b->n_bytes + b->n * sizeof(gx_batch_document) + b->n_weights * sizeof(gx_weighted_term) + bytes >
            c->batch_bytes)
            queue_batch(c);
    }
    if (!c->filling) {
        const gx_status st = begin_batch(c, bytes, err);
        if (st != GX_OK)
            return st;
    }
    return gx_doc_batch_add(&c->filling->piece.docs, &own, 0) ? GX_OK : gx_doc_indexer_no_memory(err);
}

static gx_status add_unbatched(gx_parallel_inverter *c, const gx_document *doc, gx_error *err)
{
    uint32_t n_tokens;
    gx_doc_indexer *v = c->workers[0].indexer;
    gx_status st = gx_doc_indexer_add(v, c->n_docs, doc, &n_tokens, err);
    if (st != GX_OK)
        return st;
    const gx_indexer_timing timing = gx_doc_indexer_timing(v);
    st = c->document_sink(c->user, doc, n_tokens, gx_doc_indexer_title_positions(v), err);
    if (timing.weight)
        c->delivery_seconds += timing.weight * (gx_clock_seconds() - timing.stamp);
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

/* ---- a feed ---- */

uint32_t gx_parallel_inverter_threads(const gx_parallel_inverter *c)
{
    return c->n_workers;
}

size_t gx_parallel_inverter_piece_bytes(const gx_parallel_inverter *c)
{
    return c->batch_bytes;
}

/* Put the next batch, which has been read, in order. The lock is not held meanwhile. */
static gx_status order_next_batch(gx_parallel_inverter *c, const gx_inverter_feed *feed, bool *more, gx_error *err)
{
    batch *b = &c->batches[c->n_ordered % c->n_batches];
    uint32_t n_docs = 0;
    pthread_mutex_unlock(&c->lock);
    const gx_status st = feed->order(feed->user, b, &n_docs, more, err);
    b->first = c->n_docs;
    c->n_docs += n_docs;
    pthread_mutex_lock(&c->lock);
    ++c->n_ordered;
    pthread_cond_signal(&c->work);
    return st;
}

/* Nothing is claimed any more, and what has been read and is not in order is dropped. */
static void drop_feed(gx_parallel_inverter *c)
{
    c->feed = NULL;
    c->n_claimed = c->n_filled;
    while (c->n_reading)
        pthread_cond_wait(&c->room, &c->lock);
    for (; c->n_ordered < c->n_filled; ++c->n_ordered)
        gx_doc_batch_clear(&c->batches[c->n_ordered % c->n_batches].piece.docs);
    c->reading = NULL;
    pthread_cond_broadcast(&c->work);
}

gx_status gx_parallel_inverter_run(gx_parallel_inverter *c, const gx_inverter_feed *feed, gx_error *err)
{
    const uint32_t others = gx_threads_count(c->threads);
    gx_status st = GX_OK;
    bool more = true;
    queue_batch(c);
    pthread_mutex_lock(&c->lock);
    c->feed = c->reading = feed;
    pthread_cond_broadcast(&c->work);
    while (st == GX_OK && more && c->st == GX_OK && (c->feed || c->n_ordered < c->n_filled)) {
        if (c->n_ordered < c->n_claimed && c->batches[c->n_ordered % c->n_batches].read)
            st = order_next_batch(c, feed, &more, err);
        else if (c->feed && has_room(c, c->batch_bytes))
            fill_next_batch(c);
        else if (can_read(c))
            read_next_batch(c, &c->workers[0]);
        else if (c->n_ordered - c->n_taken > others / 2) /* the other threads have enough until this one is done */
            invert_next_batch(c, &c->workers[0]);
        else
            pthread_cond_wait(&c->room, &c->lock);
    }
    drop_feed(c);
    if (st == GX_OK)
        st = first_failure(c, err);
    pthread_mutex_unlock(&c->lock);
    return st;
}

/* ---- other work ---- */

void gx_parallel_inverter_set_help(gx_parallel_inverter *c, bool (*help)(void *user), void *user)
{
    if (!c->batches)
        return;
    pthread_mutex_lock(&c->lock);
    c->help = help;
    c->help_user = user;
    ++c->n_wakes;
    pthread_cond_broadcast(&c->work);
    while (!help && c->n_helping)
        pthread_cond_wait(&c->room, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void gx_parallel_inverter_wake(gx_parallel_inverter *c)
{
    pthread_mutex_lock(&c->lock);
    ++c->n_wakes;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
}

/* ---- the end ---- */

gx_status gx_parallel_inverter_finish(gx_parallel_inverter *c, gx_error *err)
{
    if (!c->batches)
        return gx_doc_indexer_finish(c->workers[0].indexer, err);
    queue_batch(c);
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    pthread_cond_broadcast(&c->work);
    while (c->st == GX_OK && c->n_taken < c->n_ordered)
        invert_next_batch(c, &c->workers[0]);
    pthread_mutex_unlock(&c->lock);
    if (!atomic_load(&c->stop))
        finish_indexer(c, &c->workers[0]);
    gx_threads_join(c->threads); /* the last of them to be done has handed on what was left */
    c->threads = NULL;
    return first_failure(c, err);
}

const uint32_t *gx_parallel_inverter_field_positions(const gx_parallel_inverter *c, uint32_t i, size_t *n)
{
    return gx_doc_indexer_field_positions(c->workers[i].indexer, n);
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

/* Stages are estimated by few documents. One during which the system ran other programs counts for many, so that the
 * stages may add up to more time than passed: then all are taken down by the same factor. */
static double at_most(double estimated, double passed)
{
    return estimated > passed ? passed > 0 ? passed / estimated : 0 : 1;
}

void gx_parallel_inverter_get_counts(gx_parallel_inverter *c, gx_indexer_counts *sum)
{
    double delivery = 1; /* factor of its seconds, which are measured where there are batches */
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
        const double estimated = t->seconds[GX_STAGE_ANALYSE] + t->seconds[GX_STAGE_INVERT];
        const double factor = c->batches ? at_most(estimated, c->workers[i].inverting - t->spilling)
                                         : at_most(estimated + c->delivery_seconds, c->caller_seconds - t->spilling);
        delivery = c->batches ? 1 : factor;
        for (int s = 0; s < GX_N_STAGES; ++s)
            sum->seconds[s] += t->seconds[s] * (s == GX_STAGE_ANALYSE || s == GX_STAGE_INVERT ? factor : 1);
    }
    sum->seconds[GX_STAGE_DOCUMENTS] += c->delivery_seconds * delivery;
    if (c->batches)
        pthread_mutex_unlock(&c->lock);
}

double gx_parallel_inverter_caller_seconds(const gx_parallel_inverter *c)
{
    return c->caller_seconds;
}

double gx_parallel_inverter_read_seconds(gx_parallel_inverter *c)
{
    if (!c->batches)
        return 0;
    pthread_mutex_lock(&c->lock);
    const double seconds = c->read_seconds;
    pthread_mutex_unlock(&c->lock);
    return seconds;
}
