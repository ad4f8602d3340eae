#include "index/build/builder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/clock.h"
#include "engine/gpuidx_advanced.h"
#include "engine/grow.h"
#include "engine/parallel.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "engine/temporary_file.h"
#include "index/analysis/analyzer.h"
#include "index/build/external_ids.h"
#include "index/build/parallel_inverter.h"
#include "index/build/quantizer.h"
#include "index/build/vector_check.h"
#include "index/build/writer.h"
#include "index/corpus/pieces.h"
#include "index/corpus/source.h"
#include "index/corpus/unpack_ahead.h"

#define AHEAD_SHARE 4 /* of the memory as many parts as this, besides it, are for what is decompressed ahead */
#define MAX_MEMORY ((uint64_t)32 << 30) /* chains are addressed in 2^32 units of 16 bytes, strings in bytes */

struct gx_builder {
    gx_builder_options opt;
    char *path, *dir, *source;
    gx_analyzer *analyzer;
    gx_parallel_inverter *inverter; /* NULL at the end */
    gx_writer *writer;
    gx_columns *columns; /* NULL: there are no attributes */
    gx_external_ids ids;
    gx_builder_counts counts;
    uint32_t n_docs; /* docids given, those of documents taken out later included */

    /* GX_DUPLICATES_LAST: the writer wants no document that is taken out later, so all wait in a
     * file. */
    FILE *spooled;
    gx_weight_range *ranges; /* [max_ranges] of vectors: those of each document's weights */
    size_t max_ranges;
    uint8_t *tombstones;   /* [max_tombstones] a bit a docid */
    size_t max_tombstones; /* in bytes */
    uint32_t *remap;       /* [n_docs] at the end: the docid in the index, or UINT32_MAX */
    /* Of vectors. */
    gx_vector_check *check;
    gx_weight_range range; /* of all weights in the index */
    double unit;           /* at the end */
    bool done;
    double stamp; /* when the stage at hand began */
};

/* Add the time since the stamp to the stage, and set the stamp for the next one. */
static void end_stage(gx_builder *b, enum gx_builder_stage stage)
{
    b->stamp = gx_stage_lap(b->counts.seconds, stage, b->stamp);
}

/* ---- opening ---- */

static FILE *open_doc_spool(const char *dir)
{
    const int fd = gx_temporary_file_open(dir);
    if (fd < 0)
        return NULL;
    FILE *f = fdopen(fd, "w+b");
    if (!f)
        close(fd);
    return f;
}

static gx_document_sink_fn write_or_spool_document;
static gx_batch_fn pack_batch, take_batch;

/* A copy of the analyzer, which the caller may close before it closes the copy. */
static gx_status copy_analyzer(gx_builder *b, const gx_analyzer *like, gx_error *err)
{
    char *json = gx_analyzer_json(like);
    const gx_status st =
        json ? gx_analyzer_open_json(&b->analyzer, json, strlen(json), err) : gx_doc_indexer_no_memory(err);
    free(json);
    return st;
}

static gx_status open_parts(gx_builder *b, const gx_analyzer *like, gx_error *err)
{
    gx_writer_options w = GX_WRITER_OPTIONS;
    w.force = b->opt.force;
    w.store_text = b->opt.store_text;
    w.impacts = b->opt.vector_bits != 0;
    w.list_units = w.impacts && b->opt.list_units;
    gx_status st = gx_codec_find_pair(&w.docids, &w.tfs, b->opt.docid_codec, b->opt.tf_codec, err);
    const char *analyzer = b->opt.analyzer ? b->opt.analyzer : w.impacts ? "whitespace" : NULL;
    const gx_analyzer_options an = {analyzer, b->opt.stemmer, b->opt.stopwords, b->opt.fold};
    if (st == GX_OK)
        st = like ? copy_analyzer(b, like, err) : gx_analyzer_open(&b->analyzer, &an, err);
    if (st == GX_OK && (!gx_external_ids_open(&b->ids) || (w.impacts && !gx_vector_check_open(&b->check))))
        st = gx_doc_indexer_no_memory(err);
    if (st == GX_OK && b->opt.n_attributes)
        st = gx_columns_open(&b->columns, b->opt.attributes, b->opt.bitmaps, b->opt.n_attributes, b->dir, err);
    w.columns = b->columns;
    w.threads = b->opt.threads;
    if (st == GX_OK)
        st = gx_writer_open(&b->writer, b->path, &w, err);
    if (st == GX_OK && b->opt.duplicates == GX_DUPLICATES_LAST && !(b->spooled = open_doc_spool(b->dir)))
        st = gx_fail(err, GX_EIO, "cannot make a temporary file in %s: %s", b->dir, strerror(errno));
    const gx_parallel_inverter_options inverter = {.threads = b->opt.threads ? b->opt.threads : 1,
                                                   .memory = b->opt.memory,
                                                   .dir = b->dir,
                                                   .document_sink = write_or_spool_document,
                                                   .pack = pack_batch,
                                                   .batch_sink = take_batch,
                                                   .user = b};
    if (st == GX_OK)
        st = gx_parallel_inverter_open(&b->inverter, b->analyzer, &inverter, err);
    return st;
}

gx_status gx_builder_open(gx_builder **out, const gx_builder_options *opt, gx_error *err)
{
    return gx_builder_open_like(out, opt, NULL, err);
}

gx_status gx_builder_open_like(gx_builder **out, const gx_builder_options *opt, const gx_analyzer *analyzer,
                               gx_error *err)
{
    *out = NULL;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_status st =
        gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_builder_options, threads), "gx_builder_options", err);
    if (st != GX_OK)
        return st;
    if (!o.path || !*o.path)
        return gx_fail(err, GX_EUSAGE, "no path is given for the index");
    if (o.memory == 0)
        o.memory = 512u << 20;
    if (o.memory > MAX_MEMORY)
        o.memory = MAX_MEMORY;
    if (o.memory < 1u << 20)
        return gx_fail(err, GX_EUSAGE, "%llu bytes of memory are too few to build with; the least is 1 MiB",
                       (unsigned long long)o.memory);
    if (o.vector_bits && (o.vector_bits < GX_MIN_IMPACT_BITS || o.vector_bits > GX_MAX_IMPACT_BITS))
        return gx_fail(err, GX_EUSAGE, "weights of %u bits; it must be %u to %u", o.vector_bits, GX_MIN_IMPACT_BITS,
                       GX_MAX_IMPACT_BITS);
    gx_builder *b = calloc(1, sizeof *b);
    if (!b)
        return gx_doc_indexer_no_memory(err);
    b->opt = o;
    b->counts.size = sizeof b->counts;
    b->path = strdup(o.path);
    b->dir = gx_directory_of(o.path);
    b->source = o.source ? strdup(o.source) : NULL;
    st = !b->path || !b->dir || (o.source && !b->source) ? gx_doc_indexer_no_memory(err) : open_parts(b, analyzer, err);
    if (st != GX_OK) {
        gx_builder_abort(b);
        return st;
    }
    *out = b;
    return GX_OK;
}

void gx_builder_abort(gx_builder *b)
{
    if (!b)
        return;
    gx_parallel_inverter_close(b->inverter); /* first: its threads use the others */
    gx_writer_close(b->writer);
    gx_columns_close(b->columns);
    gx_analyzer_close(b->analyzer);
    gx_external_ids_close(&b->ids);
    if (b->spooled)
        fclose(b->spooled);
    gx_vector_check_close(b->check);
    free(b->ranges);
    free(b->tombstones);
    free(b->remap);
    free(b->path);
    free(b->dir);
    free(b->source);
    free(b);
}

/* ---- documents ---- */

/* Whether the builder would take the document, but for its values and an id that comes again. Any
 * thread may ask; check: of its own. */
static gx_status check_document(const gx_builder *b, gx_vector_check *check, const gx_document *doc, gx_error *err)
{
    const size_t title_len = b->opt.store_titles ? doc->title_len : 0;
    if (doc->id_len == 0)
        return gx_fail(err, GX_EINPUT, "the document has no id; give it one");
    for (size_t i = 0; i < doc->id_len; ++i)
        if ((unsigned char)doc->id[i] <= ' ' || doc->id[i] == 127)
            return gx_fail(err, GX_EINPUT,
                           "the id \"%.*s\" holds white space or a control character, which runs and "
                           "qrels cannot hold; replace it",
                           (int)(doc->id_len < 200 ? doc->id_len : 200), doc->id);
    if (doc->id_len > GX_MAX_STRING || title_len > GX_MAX_STRING)
        return gx_fail(err, GX_EINPUT, "the document's %s is %zu bytes long; the most is %u",
                       doc->id_len > GX_MAX_STRING ? "id" : "title",
                       doc->id_len > GX_MAX_STRING ? doc->id_len : title_len, GX_MAX_STRING);
    if (doc->text_len > GX_MAX_TEXT)
        return gx_fail(err, GX_EINPUT, "the document's text is %zu bytes long; the most is %u", doc->text_len,
                       GX_MAX_TEXT);
    if (doc->vector && doc->n_vector && !b->check)
        return gx_fail(err, GX_EUSAGE, "the document has a vector, and the index is of texts");
    if (check) {
        const gx_status st = gx_vector_check_run(check, doc->vector, doc->n_vector, err);
        if (st != GX_OK)
            return st;
    }
    if (doc->values && doc->n_values && !b->columns)
        return gx_fail(err, GX_EUSAGE, "the document has values of attributes, and the index none");
    return GX_OK;
}

gx_status gx_builder_check(const gx_builder *b, const gx_document *doc, gx_error *err)
{
    const gx_status st = check_document(b, b->check, doc, err);
    return st == GX_OK && b->columns ? gx_columns_set(b->columns, doc->values, doc->n_values, err) : st;
}

/* Mark the document docid as deleted: it does not go into the index. */
static gx_status mark_deleted(gx_builder *b, uint32_t docid, gx_error *err)
{
    const size_t at = docid / 8;
    if (at >= b->max_tombstones) {
        const size_t max = at + at / 2 + 4096;
        uint8_t *p = realloc(b->tombstones, max);
        if (!p)
            return gx_doc_indexer_no_memory(err);
        memset(p + b->max_tombstones, 0, max - b->max_tombstones);
        b->tombstones = p;
        b->max_tombstones = max;
    }
    b->tombstones[at] |= (uint8_t)(1u << docid % 8);
    return GX_OK;
}

static bool is_deleted(const gx_builder *b, uint32_t docid)
{
    return docid / 8 < b->max_tombstones && b->tombstones[docid / 8] >> docid % 8 & 1;
}

/* Apply the policy to an id that the document docid has already. *skip: the new document is not
 * added. */
static gx_status resolve_duplicate(gx_builder *b, const char *id, size_t id_len, uint32_t docid, bool *skip,
                                   gx_error *err)
{
    switch (b->opt.duplicates) {
    case GX_DUPLICATES_FIRST:
        ++b->counts.duplicates;
        *skip = true;
        return GX_OK;
    case GX_DUPLICATES_LAST:
        ++b->counts.duplicates;
        *skip = false;
        return mark_deleted(b, docid, err);
    default:
        return gx_fail(err, GX_EINPUT, "the id \"%.*s\" is that of document %u already",
                       (int)(id_len < 200 ? id_len : 200), id, docid + 1);
    }
}

static gx_weight_range range_of(const gx_document *doc)
{
    gx_weight_range r = {0};
    for (uint32_t i = 0; i < doc->n_vector; ++i)
        gx_weight_range_add(&r, doc->vector[i].weight);
    return r;
}

/* Take the weights of the next document into account for the unit. Where a later document may
 * replace this one, keep them apart. GX_ENOMEM. */
static gx_status count_weights(gx_builder *b, gx_weight_range r, gx_error *err)
{
    if (b->opt.duplicates != GX_DUPLICATES_LAST) {
        gx_weight_range_merge(&b->range, r);
        return GX_OK;
    }
    const gx_status st = gx_grow(&b->ranges, &b->max_ranges, b->n_docs + (size_t)1, sizeof *b->ranges, err);
    if (st == GX_OK)
        b->ranges[b->n_docs] = r;
    return st;
}

/* Give the document whose values were set last the next docid. *skip: an earlier one keeps its
 * place. The weights are those of its vector. GX_EINPUT: its id comes again; GX_EIO, GX_ENOMEM. */
static gx_status admit_document(gx_builder *b, gx_id_key key, const char *id, size_t id_len, gx_weight_range weights,
                                bool *skip, gx_error *err)
{
    *skip = false;
    if (b->n_docs == UINT32_MAX - 1)
        return gx_fail(err, GX_EINPUT, "an index holds at most %u documents; split the collection", UINT32_MAX - 1);
    uint32_t *docid = gx_external_ids_insert(&b->ids, key);
    if (!docid)
        return gx_doc_indexer_no_memory(err);
    gx_status st = *docid != UINT32_MAX ? resolve_duplicate(b, id, id_len, *docid, skip, err) : GX_OK;
    if (st != GX_OK || *skip)
        return st;
    *docid = b->n_docs;
    if (b->columns)
        st = gx_columns_add(b->columns, err);
    if (st == GX_OK && b->check)
        st = count_weights(b, weights, err);
    if (st == GX_OK)
        ++b->n_docs, ++b->counts.documents;
    return st;
}

static gx_status write_document(gx_builder *b, const gx_document *doc, uint32_t n_tokens, gx_error *err)
{
    const bool title = b->opt.store_titles, text = b->opt.store_text;
    const gx_document kept = {.size = sizeof kept,
                              .id = doc->id,
                              .id_len = doc->id_len,
                              .title = title ? doc->title : NULL,
                              .title_len = title ? doc->title_len : 0,
                              .text = text ? doc->text : NULL,
                              .text_len = text ? doc->text_len : 0};
    return gx_writer_add_document(b->writer, &kept, n_tokens, err);
}

/* A document in the spooled file: this struct, then id, title and text as far as the index stores
 * them. */
typedef struct spooled_document {
    uint32_t id_len, title_len, text_len, n_tokens;
} spooled_document;

static gx_status spool_document(gx_builder *b, const gx_document *doc, uint32_t n_tokens, gx_error *err)
{
    const spooled_document h = {(uint32_t)doc->id_len, b->opt.store_titles ? (uint32_t)doc->title_len : 0,
                                b->opt.store_text ? (uint32_t)doc->text_len : 0, n_tokens};
    if (fwrite(&h, sizeof h, 1, b->spooled) == 1 && fwrite(doc->id, 1, h.id_len, b->spooled) == h.id_len &&
        (h.title_len == 0 || fwrite(doc->title, 1, h.title_len, b->spooled) == h.title_len) &&
        (h.text_len == 0 || fwrite(doc->text, 1, h.text_len, b->spooled) == h.text_len))
        return GX_OK;
    return gx_fail(err, GX_EIO, "cannot write a temporary file in %s: %s", b->dir, strerror(errno));
}

/* Receive the next document, from the caller's thread. */
static gx_status write_or_spool_document(void *user, const gx_document *doc, uint32_t n_tokens, gx_error *err)
{
    gx_builder *b = user;
    return b->spooled ? spool_document(b, doc, n_tokens, err) : write_document(b, doc, n_tokens, err);
}

/* Whether documents go to the writer in packs: their texts are not stored, and none is taken out
 * later. */
static bool takes_packs(const gx_builder *b)
{
    return !b->opt.store_text && !b->spooled;
}

static gx_status pack_batch(void *user, gx_inverter_batch *x, gx_error *err)
{
    const gx_builder *b = user;
    gx_doc_batch *docs = &x->piece.docs;
    gx_doc_parts none = {0};
    gx_document doc;
    for (size_t i = 0; i < docs->n && takes_packs(b); ++i) {
        gx_batch_document *const d = &docs->docs[i];
        if (d->left_out || d->status != GX_OK)
            continue;
        d->n_values = d->n_vector = 0; /* they are indexed */
        if (!gx_doc_batch_get(docs, i, &none, &doc))
            return gx_doc_indexer_no_memory(err);
        doc.title_len = b->opt.store_titles ? doc.title_len : 0;
        if (!gx_document_pack_add(&x->pack, &doc, d->n_tokens))
            return gx_doc_indexer_no_memory(err);
    }
    return GX_OK;
}

/* Receive the next batch in order, from one of the inverter's threads. gx_builder_add may run at
 * the same time. */
static gx_status take_batch(void *user, gx_inverter_batch *x, gx_error *err)
{
    gx_builder *b = user;
    gx_doc_parts parts = {0};
    gx_status st = takes_packs(b) && x->pack.n ? gx_writer_add_pack(b->writer, &x->pack, err) : GX_OK;
    for (size_t i = 0; !takes_packs(b) && i < x->piece.docs.n && st == GX_OK; ++i) {
        gx_batch_document *const d = &x->piece.docs.docs[i];
        gx_document doc;
        if (d->left_out || d->status != GX_OK)
            continue;
        d->n_values = d->n_vector = 0; /* they are indexed */
        st = gx_doc_batch_get(&x->piece.docs, i, &parts, &doc) ? write_or_spool_document(b, &doc, d->n_tokens, err)
                                                               : gx_doc_indexer_no_memory(err);
    }
    return st;
}

gx_status gx_builder_add(gx_builder *b, const gx_document *document, gx_error *err)
{
    gx_document own = {0}, *const doc = &own;
    if (b->done)
        return gx_fail(err, GX_EUSAGE, "the builder takes no more documents: it finished or failed before");
    gx_status st = gx_sized_read(doc, sizeof own, document, GX_SIZE_THROUGH(gx_document, text_len), "gx_document", err);
    if (st == GX_OK)
        st = gx_builder_check(b, doc, err);
    if (st != GX_OK)
        return st;
    static const gx_weighted_term none;
    if (b->check && !doc->vector)
        doc->vector = &none;
    bool skip;
    const gx_id_key key = gx_external_ids_key(&b->ids, doc->id, doc->id_len);
    b->done = true; /* until all has gone well */
    st = admit_document(b, key, doc->id, doc->id_len, b->check ? range_of(doc) : (gx_weight_range){0}, &skip, err);
    if (st == GX_OK && !skip)
        st = gx_parallel_inverter_add(b->inverter, doc, err);
    if (st == GX_OK && !skip)
        b->counts.text_bytes += doc->title_len + doc->text_len;
    b->done = st != GX_OK && st != GX_EINPUT;
    return st;
}

gx_status gx_builder_add_many(gx_builder *b, const gx_document *docs, size_t n, size_t *n_added, gx_error *err)
{
    gx_status st = n ? gx_sized_check(docs->size, GX_SIZE_THROUGH(gx_document, text_len), "gx_document", err) : GX_OK;
    const size_t size = st == GX_OK && n ? docs->size : 0;
    const char *const first = (const char *)docs;
    *n_added = 0;
    for (size_t i = 1; st == GX_OK && i < n; ++i) {
        const size_t other = ((const gx_document *)(first + i * size))->size;
        if (other != size)
            st =
                gx_fail(err, GX_EUSAGE, "documents of one call have the same size; document %zu has %zu, the first %zu",
                        i, other, size);
    }
    for (size_t i = 0; st == GX_OK && i < n; ++i)
        if ((st = gx_builder_add(b, (const gx_document *)(first + i * size), err)) == GX_OK)
            ++*n_added;
    return st;
}

/* ---- documents of a source ---- */

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
    gx_status st = check_document(b, r->check, doc, err);
    if (st == GX_OK)
        st = gx_grow(&x->keys, &x->max_keys, i + 1, sizeof *x->keys, err);
    if (st == GX_OK && b->check)
        st = gx_grow(&x->weights, &x->max_weights, i + 1, sizeof *x->weights, err);
    if (st != GX_OK)
        return st;
    x->keys[i] = gx_external_ids_key(&b->ids, doc->id, doc->id_len);
    if (b->check)
        x->weights[i] = range_of(doc);
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
        st = admit_document(b, x->keys[i], id, id_len, b->check ? x->weights[i] : (gx_weight_range){0}, &skip, err);
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

uint32_t gx_builder_find(const gx_builder *b, const char *id, size_t len)
{
    const uint32_t *docid = gx_external_ids_find(&b->ids, gx_external_ids_key(&b->ids, id, len));
    return docid ? *docid : UINT32_MAX;
}

uint32_t gx_builder_forget(gx_builder *b, const char *id, size_t len)
{
    uint32_t *place = gx_external_ids_find(&b->ids, gx_external_ids_key(&b->ids, id, len)), docid = UINT32_MAX;
    if (place) {
        docid = *place;
        *place = UINT32_MAX;
    }
    return docid;
}

/* What the inverter has done so far, besides what the builder counted. */
static void add_indexer_counts(const gx_builder *b, gx_builder_counts *c)
{
    gx_indexer_counts t;
    gx_parallel_inverter_get_counts(b->inverter, &t);
    c->dropped_tokens += t.dropped_tokens;
    c->replaced_bytes += t.replaced_bytes;
    c->memory_bytes = t.memory_bytes;
    c->spills = t.spills;
    c->tokens += t.tokens;
    c->empty += t.empty;
    c->adding += gx_parallel_inverter_caller_seconds(b->inverter);
    for (int s = 0; s < GX_N_STAGES; ++s)
        c->seconds[s] += t.seconds[s];
}

gx_status gx_builder_get_counts(const gx_builder *b, gx_builder_counts *counts)
{
    gx_builder_counts c = b->counts;
    if (b->inverter)
        add_indexer_counts(b, &c);
    return gx_sized_write(counts, &c, sizeof c, GX_SIZE_THROUGH(gx_builder_counts, seconds));
}

/* ---- the end ---- */

static gx_status read_spooled(gx_builder *b, char *to, size_t n, gx_error *err)
{
    if (n == 0 || fread(to, 1, n, b->spooled) == n)
        return GX_OK;
    return gx_fail(err, GX_EIO, "cannot read back a temporary file in %s: %s", b->dir,
                   ferror(b->spooled) ? strerror(errno) : "it ends too early");
}

/* Hand the documents that stay to the writer, and number them. */
static gx_status write_spooled_documents(gx_builder *b, gx_error *err)
{
    char *buffer = NULL;
    size_t max = 0;
    uint32_t next = 0;
    gx_status st = GX_OK;
    if (fflush(b->spooled) || fseeko(b->spooled, 0, SEEK_SET))
        return gx_fail(err, GX_EIO, "cannot write a temporary file in %s: %s", b->dir, strerror(errno));
    if (!(b->remap = malloc((b->n_docs + 1ull) * sizeof *b->remap)))
        return gx_doc_indexer_no_memory(err);
    for (uint32_t d = 0; d < b->n_docs && st == GX_OK; ++d) {
        spooled_document h;
        if ((st = read_spooled(b, (char *)&h, sizeof h, err)) != GX_OK)
            break;
        const size_t n = (size_t)h.id_len + h.title_len + h.text_len;
        if (n > max) {
            char *p = realloc(buffer, n);
            if (!p) {
                st = gx_doc_indexer_no_memory(err);
                break;
            }
            buffer = p;
            max = n;
        }
        if ((st = read_spooled(b, buffer, n, err)) != GX_OK)
            break;
        if (is_deleted(b, d)) {
            b->remap[d] = UINT32_MAX;
            b->counts.tokens -= h.n_tokens;
            b->counts.empty -= h.n_tokens == 0;
            --b->counts.documents;
            continue;
        }
        b->remap[d] = next++;
        if (b->ranges)
            gx_weight_range_merge(&b->range, b->ranges[d]);
        const gx_document doc = {
            sizeof doc,  buffer,    h.title_len ? buffer + h.id_len : NULL, buffer + h.id_len + h.title_len, h.id_len,
            h.title_len, h.text_len};
        st = write_document(b, &doc, h.n_tokens, err);
    }
    if (b->columns)
        gx_columns_leave_out(b->columns, b->remap);
    free(buffer);
    return st;
}

#define TIMED_POSTINGS 1024u /* of which one list is timed */

/* Lists of a range of terms, encoded by one of the inverter's threads. */
typedef struct encoded_range {
    const gx_builder *builder;
    gx_list_encoder encoded;
    uint64_t postings, untimed; /* untimed: postings coded since a list was timed */
    double seconds;             /* that coding took, estimated by the lists that are timed */
    uint32_t *docids, *tfs;     /* [max_kept] */
    uint32_t max_kept;
    uint32_t *impacts; /* [max_impacts] */
    uint32_t max_impacts;
} encoded_range;

static void *make_range(void *user)
{
    encoded_range *r = calloc(1, sizeof *r);
    if (r) {
        r->builder = user;
        gx_writer_open_encoded(r->builder->writer, &r->encoded);
    }
    return r;
}

static void free_range(void *output)
{
    encoded_range *r = output;
    gx_list_encoder_close(&r->encoded);
    free(r->docids);
    free(r->tfs);
    free(r->impacts);
    free(r);
}

/* Remove the postings of deleted documents from a list. */
static gx_status remap_list(encoded_range *r, gx_term_postings *l, gx_error *err)
{
    if (l->df > r->max_kept) {
        free(r->docids);
        free(r->tfs);
        r->max_kept = 0;
        r->docids = malloc(l->df * sizeof *r->docids);
        r->tfs = malloc(l->df * sizeof *r->tfs);
        if (!r->docids || !r->tfs)
            return gx_doc_indexer_no_memory(err);
        r->max_kept = l->df;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->df; ++i) {
        const uint32_t d = r->builder->remap[l->docids[i]];
        if (d == UINT32_MAX)
            continue;
        r->docids[n] = d;
        r->tfs[n++] = l->tfs[i];
    }
    l->df = n;
    l->docids = r->docids;
    l->tfs = r->tfs;
    return GX_OK;
}

/* Turn a list's weights into impacts. */
static gx_status quantize_list(encoded_range *r, gx_term_postings *l, gx_error *err)
{
    if (l->df > r->max_impacts) {
        free(r->impacts);
        r->max_impacts = 0;
        if (!(r->impacts = malloc(l->df * sizeof *r->impacts)))
            return gx_doc_indexer_no_memory(err);
        r->max_impacts = l->df;
    }
    gx_weight_range own = {0};
    for (uint32_t i = 0; r->builder->opt.list_units && i < l->df; ++i)
        gx_weight_range_add(&own, gx_weight_of_bits(l->tfs[i]));
    const double unit =
        r->builder->opt.list_units ? gx_impact_unit(own, r->builder->opt.vector_bits) : r->builder->unit;
    for (uint32_t i = 0; i < l->df; ++i)
        r->impacts[i] = gx_quantize(gx_weight_of_bits(l->tfs[i]), unit);
    l->tfs = r->impacts;
    l->unit = (float)unit;
    return GX_OK;
}

static gx_status encode_list(void *output, const gx_term_postings *list, gx_error *err)
{
    encoded_range *r = output;
    gx_term_postings l = *list;
    gx_status st = GX_OK;
    if (r->builder->remap && r->builder->counts.duplicates && ((st = remap_list(r, &l, err)) != GX_OK || l.df == 0))
        return st;
    if (r->builder->check && (st = quantize_list(r, &l, err)) != GX_OK)
        return st;
    r->postings += l.df;
    r->untimed += l.df;
    if (r->untimed < TIMED_POSTINGS)
        return gx_list_encoder_add(&r->encoded, &l, err);
    const double t = gx_clock_seconds();
    st = gx_list_encoder_add(&r->encoded, &l, err);
    r->seconds += (gx_clock_seconds() - t) * (double)r->untimed / l.df;
    r->untimed = 0;
    return st;
}

static gx_status write_range(void *user, void *output, double seconds, gx_error *err)
{
    gx_builder *b = user;
    encoded_range *r = output;
    const double t = gx_clock_seconds(), coding = r->seconds < seconds ? r->seconds : seconds;
    b->counts.terms += (uint32_t)r->encoded.n_lists;
    b->counts.postings += r->postings;
    b->counts.seconds[GX_STAGE_MERGE] += seconds - coding;
    const gx_status st = gx_writer_add_encoded(b->writer, &r->encoded, err);
    b->counts.seconds[GX_STAGE_LISTS] += coding + gx_clock_seconds() - t;
    r->seconds = 0;
    r->postings = 0;
    return st;
}

/* The META section; the caller frees. NULL: out of memory. */
static char *make_meta(const gx_builder *b)
{
    char created[32] = "", *analyzer = gx_analyzer_json(b->analyzer), *text = NULL;
    const time_t t = time(NULL);
    struct tm tm;
    if (gmtime_r(&t, &tm))
        strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_t *an = analyzer ? json_loads(analyzer, 0, NULL) : NULL;
    json_t *root =
        an ? json_pack("{s:o, s:s+, s:s}", "analyzer", an, "generator", "gpuidx ", gx_version(), "created", created)
           : NULL;
    json_t *source = root && b->source ? json_string(b->source) : NULL; /* NULL also where it is not UTF-8 */
    if (source)
        json_object_set_new(root, "source", source);
    if (root && b->check)
        json_object_set_new(root, "impacts",
                            json_pack("{s:s, s:i, s:s}", "of", "vectors", "bits", (int)b->opt.vector_bits, "scale",
                                      b->opt.list_units ? "list" : "collection"));
    if (root)
        text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    free(analyzer);
    return text;
}

static void close_inverter(void *user, uint32_t number)
{
    (void)number;
    gx_parallel_inverter_close(user);
}

gx_status gx_builder_finish(gx_builder *b, gx_error *err)
{
    if (b->done)
        return gx_fail(err, GX_EUSAGE, "the builder cannot finish: it finished or failed before");
    b->done = true;
    gx_external_ids_close(&b->ids); /* no id is looked up any more */
    gx_status st = gx_parallel_inverter_finish(b->inverter, err);
    if (st != GX_OK)
        return st;
    add_indexer_counts(b, &b->counts);
    gx_parallel_inverter *inverter = b->inverter;
    b->inverter = NULL; /* its sums are in the counts */
    b->stamp = gx_clock_seconds();
    if (b->spooled)
        st = write_spooled_documents(b, err);
    end_stage(b, GX_STAGE_DOCUMENTS);
    if (b->check) {
        b->unit = gx_impact_unit(b->range, b->opt.vector_bits);
        gx_writer_set_unit(b->writer, b->unit);
    }
    const gx_list_sink sink = {make_range, free_range, encode_list, write_range, b};
    if (st == GX_OK)
        st = gx_parallel_inverter_merge(inverter, &sink, err);
    /* to free its memory takes a while, in which the file gets its last sections */
    gx_threads *const closing = b->opt.threads > 1 ? gx_threads_start(1, 0, close_inverter, inverter) : NULL;
    if (!closing)
        gx_parallel_inverter_close(inverter);
    b->counts.memory_bytes = 0;
    b->stamp = gx_clock_seconds();
    char *meta = st == GX_OK ? make_meta(b) : NULL;
    if (st == GX_OK)
        st = meta ? gx_writer_finish(b->writer, meta, err) : gx_doc_indexer_no_memory(err);
    free(meta);
    gx_threads_join(closing);
    end_stage(b, GX_STAGE_DOCUMENTS);
    return st;
}

void gx_builder_keep_unnamed(gx_builder *b)
{
    gx_writer_keep_unnamed(b->writer);
}

char *gx_builder_unnamed_path(const gx_builder *b)
{
    return gx_writer_unnamed_path(b->writer);
}
