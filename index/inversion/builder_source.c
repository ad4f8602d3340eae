/* builder_source.c: documents of a source, which the inverter's threads read and check; each piece is then ordered. */
#include "index/inversion/builder_state.h"

#include <inttypes.h>
#include <stdlib.h>

#include "engine/clock.h"
#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/corpus/pieces.h"
#include "index/corpus/source.h"
#include "index/corpus/unpack_ahead.h"

#define AHEAD_SHARE 4 /* of the memory as many parts as this, besides it, are for what is decompressed ahead */

/* A source on its way into the builder. */
typedef struct feed {
    gx_builder *builder;
    gx_source *source;
    gx_feed_options opt;
    uint64_t n;               /* documents taken so far, bad ones included */
    gx_pieces *pieces;        /* that threads read */
    gx_vector_check **checks; /* [threads] of an index of vectors */
    gx_doc_parts parts;
} feed;

/* A batch that a thread reads. */
typedef struct reading {
    const feed *feed;
    gx_inverter_batch *batch;
    gx_vector_check *check;
} reading;

static bool fill_piece(void *user, gx_inverter_batch *x)
{
    return gx_pieces_fill(((feed *)user)->pieces, &x->piece);
}

/* Check a document that has been read, and keep what the order needs of it. */
static gx_status look_at_document(void *user, size_t i, const gx_document *doc, gx_error *err)
{
    const reading *r = user;
    const gx_builder *b = r->feed->builder;
    gx_inverter_batch *x = r->batch;
    gx_status st = gx_builder_check_by(b, r->check, doc, err);
    if (st == GX_OK)
        st = gx_grow(&x->keys, &x->max_keys, i + 1, sizeof *x->keys, err);
    if (st == GX_OK && b->check)
        st = gx_grow(&x->weights, &x->max_weights, i + 1, sizeof *x->weights, err);
    if (st != GX_OK)
        return st;
    x->keys[i] = gx_external_ids_key(&b->ids, doc->id, doc->id_len);
    if (b->check)
        x->weights[i] = gx_document_weights(doc);
    x->text_bytes += doc->title_len + doc->text_len;
    return GX_OK;
}

static void read_piece(void *user, uint32_t thread, gx_inverter_batch *x, const atomic_bool *stop)
{
    const feed *f = user;
    reading r = {f, x, f->checks ? f->checks[thread] : NULL};
    x->text_bytes = 0;
    gx_pieces_read(f->pieces, thread, &x->piece, stop, look_at_document, &r);
    for (size_t i = 0; f->builder->check && i < x->piece.docs.n; ++i)
        x->piece.docs.docs[i].has_vector = true;
}

/* A document is bad: ask whether to go on. */
static gx_status meet_bad(const feed *f, gx_status st, const gx_error *err)
{
    return st == GX_EINPUT && f->opt.bad && f->opt.bad(f->opt.user, err) ? GX_OK : st;
}

/* Put the place of a document in a file before the words. */
static gx_status fail_at(const char *file, uint64_t line, gx_status st, gx_error *err)
{
    const gx_error why = *err;
    return gx_fail(err, st, "%s:%" PRIu64 ": %.900s", file, line, why.text);
}

/* Give the i-th document of the batch a docid, or leave it out. */
static gx_status order_document(feed *f, gx_inverter_batch *x, size_t i, gx_error *err)
{
    gx_builder *b = f->builder;
    const gx_line_piece *p = &x->piece;
    gx_batch_document *const d = &p->docs.docs[i];
    size_t id_len;
    const char *id = gx_doc_batch_id(&p->docs, i, &id_len);
    gx_document doc;
    gx_status st = GX_OK;
    bool skip = false;
    if (b->columns) {
        if (!gx_doc_batch_get(&p->docs, i, &f->parts, &doc))
            return gx_doc_indexer_no_memory(err);
        st = gx_columns_set(b->columns, doc.values, doc.n_values, err);
    }
    char digits[GX_NUMBER_DIGITS];
    if (p->docs.numbered) {
        const size_t at = gx_write_number(digits, p->docs.number + d->line);
        id = digits + at;
        id_len = sizeof digits - at;
        x->keys[i] = gx_external_ids_key(&b->ids, id, id_len);
    }
    if (st == GX_OK)
        st = gx_builder_admit(b, x->keys[i], id, id_len, b->check ? x->weights[i] : (gx_weight_range){0}, &skip, err);
    d->left_out = skip || st != GX_OK;
    return st ? fail_at(gx_pieces_path(p, i), gx_pieces_line(p, i), st, err) : GX_OK;
}

/* Order the documents of a piece. *n_kept get docids. Returns the status that ends the build, with
 * the number of documents looked at in *n. */
static gx_status order_documents(feed *f, gx_inverter_batch *x, size_t *n, uint32_t *n_kept, gx_error *err)
{
    gx_doc_batch *docs = &x->piece.docs;
    const uint32_t before = f->builder->n_docs;
    uint64_t bad = 0;
    gx_status st = GX_OK;
    size_t i = 0;
    for (; i < docs->n && st == GX_OK && (f->opt.limit == 0 || f->n < f->opt.limit); ++i, ++f->n) {
        if (i + 16 < docs->n && x->piece.n_errors == 0)
            gx_external_ids_prefetch(&f->builder->ids, x->keys[i + 16]);
        if (x->piece.n_errors && docs->docs[i].status != GX_OK) {
            st = gx_pieces_error(&x->piece, i, err);
            bad += !docs->docs[i].left_out;
        } else {
            st = order_document(f, x, i, err);
            if (docs->docs[i].left_out)
                x->text_bytes -= docs->docs[i].title_len + docs->docs[i].text_len;
        }
        st = meet_bad(f, st, err);
    }
    gx_source_add_counts(f->source, i - bad, bad);
    *n = i;
    *n_kept = f->builder->n_docs - before;
    return st;
}

static bool wants_more(const feed *f)
{
    return f->opt.limit == 0 || f->n < f->opt.limit;
}

static gx_status order_piece(void *user, gx_inverter_batch *x, uint32_t *n_docs, bool *more, gx_error *err)
{
    feed *f = user;
    gx_doc_batch *docs = &x->piece.docs;
    size_t n = 0;
    gx_status st = gx_pieces_begin(f->pieces, &x->piece, err);
    if (st == GX_OK)
        st = order_documents(f, x, &n, n_docs, err);
    for (size_t i = n; i < docs->n; ++i) { /* behind the limit, or behind a failure */
        docs->docs[i].left_out = true;
        if (docs->docs[i].status == GX_OK)
            x->text_bytes -= docs->docs[i].title_len + docs->docs[i].text_len;
    }
    gx_pieces_end(f->pieces, &x->piece);
    f->builder->counts.text_bytes += x->text_bytes;
    if (f->opt.progress)
        f->opt.progress(f->opt.user);
    *more = wants_more(f);
    return st;
}

/* Add documents that threads read. */
static gx_status feed_pieces(feed *f, gx_error *err)
{
    gx_builder *b = f->builder;
    gx_parallel_inverter *c = b->inverter;
    const gx_inverter_feed pieces = {fill_piece, read_piece, order_piece, f};
    const double t = gx_clock_seconds(), read = gx_parallel_inverter_read_seconds(c);
    gx_status st = gx_pieces_open(&f->pieces, f->source, gx_parallel_inverter_threads(c),
                                  gx_parallel_inverter_piece_bytes(c), err);
    if (st)
        return st;
    b->done = true;
    st = gx_parallel_inverter_run(c, &pieces, err);
    if (st == GX_OK && wants_more(f))
        st = gx_pieces_failure(f->pieces, err);
    b->counts.adding += gx_clock_seconds() - t;
    b->counts.reading += gx_parallel_inverter_read_seconds(c) - read;
    b->done = st != GX_OK && st != GX_EINPUT;
    gx_pieces_close(f->pieces);
    return st;
}

/* Add a document that the caller's thread has read. */
static gx_status add_read_document(feed *f, const gx_source_document *d, gx_status st, gx_error *err)
{
    if (st == GX_OK && (st = gx_builder_add(f->builder, &d->doc, err)) != GX_OK)
        fail_at(d->file, d->line, st, err);
    if (f->opt.progress && f->n % 16 == 0)
        f->opt.progress(f->opt.user);
    ++f->n;
    return meet_bad(f, st, err);
}

/* Add documents that this thread reads. */
static gx_status feed_documents(feed *f, gx_error *err)
{
    gx_status st = GX_OK;
    while (st == GX_OK && wants_more(f)) {
        const gx_source_document *d;
        st = gx_source_next(f->source, &d, err);
        if (st == GX_OK && !d)
            return GX_OK;
        st = add_read_document(f, d, st, err);
    }
    return st;
}

/* Checks of vectors, one a thread. */
static gx_status open_checks(feed *f, uint32_t threads, gx_error *err)
{
    if (!f->builder->check)
        return GX_OK;
    f->checks = calloc(threads, sizeof *f->checks);
    bool good = f->checks;
    for (uint32_t i = 0; i < threads && good; ++i)
        good = gx_vector_check_open(&f->checks[i]);
    return good ? GX_OK : gx_doc_indexer_no_memory(err);
}

static bool help_unpack(void *user)
{
    return gx_unpack_ahead_work(user);
}

static void wake_inverter(void *user)
{
    gx_parallel_inverter_wake(user);
}

/* Add documents that threads read, whose compressed files they decompress too. */
static gx_status feed_ahead(feed *f, gx_error *err)
{
    gx_parallel_inverter *const c = f->builder->inverter;
    struct gx_unpack_ahead *ahead = NULL;
    gx_status st = gx_source_begin_ahead(f->source, gx_parallel_inverter_threads(c),
                                         f->builder->opt.memory / AHEAD_SHARE, wake_inverter, c, &ahead, err);
    if (ahead)
        gx_parallel_inverter_set_help(c, help_unpack, ahead);
    if (st == GX_OK)
        st = feed_pieces(f, err);
    if (ahead)
        gx_parallel_inverter_set_help(c, NULL, NULL);
    gx_source_end_ahead(f->source);
    return st;
}

gx_status gx_builder_add_source(gx_builder *b, gx_source *s, const gx_feed_options *opt, gx_error *err)
{
    feed f = {.builder = b, .source = s, .opt = GX_FEED_OPTIONS};
    if (b->done)
        return gx_fail(err, GX_EUSAGE, "the builder takes no more documents: it finished or failed before");
    gx_status st =
        gx_sized_read(&f.opt, sizeof f.opt, opt, GX_SIZE_THROUGH(gx_feed_options, user), "gx_feed_options", err);
    if (st != GX_OK)
        return st;
    const uint32_t threads = gx_parallel_inverter_threads(b->inverter);
    st = open_checks(&f, threads, err);
    const double t = gx_clock_seconds(), adding = b->counts.adding;
    const double before = gx_parallel_inverter_caller_seconds(b->inverter);
    if (st == GX_OK)
        st = threads > 1 ? feed_ahead(&f, err) : feed_documents(&f, err);
    b->counts.reading += gx_clock_seconds() - t - (b->counts.adding - adding) -
                         (gx_parallel_inverter_caller_seconds(b->inverter) - before);
    for (uint32_t i = 0; f.checks && i < threads; ++i)
        gx_vector_check_close(f.checks[i]);
    free(f.checks);
    gx_doc_parts_free(&f.parts);
    return st;
}
