/* builder_spool.c: documents on their way to the writer. Those that a later one may replace wait in a temporary file
 * until the end. */
#include "index/inversion/builder_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/files/temporary_file.h"
#include "engine/status.h"

FILE *gx_builder_open_spool(const char *dir)
{
    const int fd = gx_temporary_file_open(dir);
    if (fd < 0)
        return NULL;
    FILE *f = fdopen(fd, "w+b");
    if (!f)
        close(fd);
    return f;
}

static gx_status write_document(gx_builder *b, const gx_document *doc, uint32_t n_tokens, uint32_t title_positions,
                                gx_error *err)
{
    const bool title = b->opt.store_titles, text = b->opt.store_text;
    const gx_document kept = {.size = sizeof kept,
                              .id = doc->id,
                              .id_len = doc->id_len,
                              .title = title ? doc->title : NULL,
                              .title_len = title ? doc->title_len : 0,
                              .text = text ? doc->text : NULL,
                              .text_len = text ? doc->text_len : 0};
    const gx_status st = gx_writer_add_document(b->writer, &kept, n_tokens, err);
    const bool titled = b->opt.positions && !b->opt.n_fields;
    return st == GX_OK && titled ? gx_writer_add_title_positions(b->writer, &title_positions, 1, err) : st;
}

/* A document in the spooled file: this struct, then id, title and text as far as the index stores
 * them. */
typedef struct spooled_document {
    uint32_t id_len, title_len, text_len, n_tokens, title_positions;
} spooled_document;

static gx_status spool_document(gx_builder *b, const gx_document *doc, uint32_t n_tokens, uint32_t title_positions,
                                gx_error *err)
{
    const spooled_document h = {(uint32_t)doc->id_len, b->opt.store_titles ? (uint32_t)doc->title_len : 0,
                                b->opt.store_text ? (uint32_t)doc->text_len : 0, n_tokens, title_positions};
    if (fwrite(&h, sizeof h, 1, b->spooled) == 1 && fwrite(doc->id, 1, h.id_len, b->spooled) == h.id_len &&
        (h.title_len == 0 || fwrite(doc->title, 1, h.title_len, b->spooled) == h.title_len) &&
        (h.text_len == 0 || fwrite(doc->text, 1, h.text_len, b->spooled) == h.text_len))
        return GX_OK;
    return gx_fail(err, GX_EIO, "cannot write a temporary file in %s: %s", b->dir, strerror(errno));
}

gx_status gx_builder_take_document(void *user, const gx_document *doc, uint32_t n_tokens, uint32_t title_positions,
                                   gx_error *err)
{
    gx_builder *b = user;
    return (b->spooled ? spool_document : write_document)(b, doc, n_tokens, title_positions, err);
}

/* Whether documents go to the writer in packs: their texts are not stored, and none is taken out
 * later. */
static bool takes_packs(const gx_builder *b)
{
    return !b->opt.store_text && !b->spooled;
}

gx_status gx_builder_pack_batch(void *user, gx_inverter_batch *x, gx_error *err)
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
        if (!gx_document_pack_add(&x->pack, &doc, d->n_tokens, d->title_positions))
            return gx_doc_indexer_no_memory(err);
    }
    return GX_OK;
}

gx_status gx_builder_take_batch(void *user, gx_inverter_batch *x, gx_error *err)
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
        st = gx_doc_batch_get(&x->piece.docs, i, &parts, &doc)
                 ? gx_builder_take_document(b, &doc, d->n_tokens, d->title_positions, err)
                 : gx_doc_indexer_no_memory(err);
    }
    return st;
}

static gx_status read_spooled(gx_builder *b, char *to, size_t n, gx_error *err)
{
    if (n == 0 || fread(to, 1, n, b->spooled) == n)
        return GX_OK;
    return gx_fail(err, GX_EIO, "cannot read back a temporary file in %s: %s", b->dir,
                   ferror(b->spooled) ? strerror(errno) : "it ends too early");
}

gx_status gx_builder_write_spooled(gx_builder *b, gx_error *err)
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
        if (gx_builder_is_deleted(b, d)) {
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
        st = write_document(b, &doc, h.n_tokens, h.title_positions, err);
    }
    if (b->columns)
        gx_columns_leave_out(b->columns, b->remap);
    free(buffer);
    return st;
}
