/* writer_documents.c: documents on their way into the file: ids, titles, lengths, and texts in frames. */
#include "index/write/writer_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"

#define FRAME_BYTES (64u << 10) /* of texts, before compression */
#define TEXT_LEVEL 3            /* zstd's */

static gx_status add_string(gx_spooled_strings *p, const char *bytes, size_t len, gx_error *err)
{
    const gx_status st = gx_spool_u32(&p->lens, (uint32_t)len, err);
    return st == GX_OK ? gx_spool_add(&p->bytes, bytes, len, err) : st;
}

gx_status gx_writer_end_frame(gx_writer *w, gx_error *err)
{
    gx_open_frame *f = &w->frame;
    if (f->n == 0)
        return GX_OK;
    const size_t raw = f->n * sizeof *f->ends + f->n_bytes;
    const gx_text_frame entry = {gx_spool_bytes(&w->text), f->first_doc, (uint32_t)raw};
    char *whole = malloc(raw);
    if (!whole)
        return gx_fail(err, GX_ENOMEM, "out of memory: %zu bytes of text", raw);
    memcpy(whole, f->ends, f->n * sizeof *f->ends);
    if (f->n_bytes)
        memcpy(whole + f->n * sizeof *f->ends, f->bytes, f->n_bytes);
    uint8_t *room;
    const size_t bound = ZSTD_compressBound(raw);
    gx_status st = gx_spool_add(&w->text_frames, &entry, sizeof entry, err);
    if (st == GX_OK)
        st = gx_spool_reserve(&w->text, bound, &room, err);
    if (st == GX_OK) {
        const size_t n = ZSTD_compressCCtx(f->zstd, room, bound, whole, raw, TEXT_LEVEL);
        if (ZSTD_isError(n))
            st = gx_fail(err, GX_ENOMEM, "cannot compress %zu bytes of text: %s", raw, ZSTD_getErrorName(n));
        else
            gx_spool_commit(&w->text, n);
    }
    free(whole);
    f->n = f->n_bytes = 0;
    return st;
}

static gx_status add_text(gx_writer *w, const char *text, size_t len, gx_error *err)
{
    gx_open_frame *f = &w->frame;
    if (len > GX_MAX_TEXT)
        return gx_fail(err, GX_EUSAGE, "document %u has a text of %zu bytes; the most that is stored is %u",
                       w->counts.n_docs, len, GX_MAX_TEXT);
    if (f->n == 0)
        f->first_doc = w->counts.n_docs;
    gx_status st = gx_grow(&f->ends, &f->max_ends, f->n + 1, sizeof *f->ends, err);
    if (st == GX_OK)
        st = gx_grow(&f->bytes, &f->max_bytes, f->n_bytes + len, 1, err);
    if (st != GX_OK)
        return st;
    if (len)
        memcpy(f->bytes + f->n_bytes, text, len);
    char *p = f->bytes + f->n_bytes;
    for (char *const end = p + len; w->fields_in_texts && (p = memchr(p, GX_FIELD_SEPARATOR, (size_t)(end - p))); ++p)
        *p = '\n';
    f->n_bytes += len;
    f->ends[f->n++] = (uint32_t)f->n_bytes;
    return f->n * sizeof *f->ends + f->n_bytes >= FRAME_BYTES ? gx_writer_end_frame(w, err) : GX_OK;
}

static gx_status add_document(gx_writer *w, const gx_document *doc, uint32_t n_tokens, gx_error *err)
{
    const uint32_t docid = w->counts.n_docs;
    if (w->counts.n_terms && !w->n_docs_announced)
        return gx_fail(err, GX_EUSAGE, "a document is added after the first list");
    if (w->n_docs_announced && docid == w->n_docs_announced)
        return gx_fail(err, GX_EUSAGE, "%s was to have %u documents; another is added", w->path, w->n_docs_announced);
    if (docid == UINT32_MAX - 1)
        return gx_fail(err, GX_EUSAGE, "%s would have more than %u documents", w->path, UINT32_MAX - 1);
    if (doc->id_len > GX_MAX_STRING || doc->title_len > GX_MAX_STRING)
        return gx_fail(err, GX_EUSAGE, "document %u has %s of %zu bytes; the most is %u", docid,
                       doc->id_len > GX_MAX_STRING ? "an id" : "a title",
                       doc->id_len > GX_MAX_STRING ? doc->id_len : doc->title_len, GX_MAX_STRING);
    gx_status st = add_string(&w->doc_ids, doc->id, doc->id_len, err);
    if (st == GX_OK)
        st = add_string(&w->titles, doc->title, doc->title_len, err);
    if (st == GX_OK && w->store_text)
        st = add_text(w, doc->text, doc->text_len, err);
    if (st == GX_OK)
        st = gx_spool_u32(&w->doc_lens, n_tokens, err);
    if (st != GX_OK)
        return st;
    w->any_title |= doc->title_len > 0;
    w->counts.n_tokens += n_tokens;
    w->counts.n_docs = docid + 1;
    return GX_OK;
}

gx_status gx_writer_add_document(gx_writer *w, const gx_document *doc, uint32_t n_tokens, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return gx_writer_repeat_failure(w, err);
    return gx_writer_record_failure(w, add_document(w, doc, n_tokens, &words), &words, err);
}

gx_status gx_writer_add_title_positions(gx_writer *w, const uint32_t *title_positions, size_t n, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return gx_writer_repeat_failure(w, err);
    for (size_t i = 0; i < n; ++i)
        if (title_positions[i] > w->most_title_positions)
            w->most_title_positions = title_positions[i];
    const gx_status st = gx_spool_add(&w->title_positions, title_positions, n * sizeof *title_positions, &words);
    return gx_writer_record_failure(w, st, &words, err);
}

static bool append_string(char **strings, size_t *n, size_t *max, const char *p, size_t len)
{
    if (!gx_reserve(strings, max, *n + len + 1, 1))
        return false;
    if (len)
        memcpy(*strings + *n, p, len);
    *n += len;
    return true;
}

bool gx_document_pack_add(gx_document_pack *p, const gx_document *doc, uint32_t n_tokens, uint32_t title_positions)
{
    if (!gx_reserve(&p->id_lens, &p->max_id_lens, p->n + (size_t)1, sizeof *p->id_lens) ||
        !gx_reserve(&p->title_lens, &p->max_title_lens, p->n + (size_t)1, sizeof *p->title_lens) ||
        !gx_reserve(&p->n_tokens, &p->max_n_tokens, p->n + (size_t)1, sizeof *p->n_tokens) ||
        !gx_reserve(&p->title_positions, &p->max_title_positions, p->n + (size_t)1, sizeof *p->title_positions) ||
        !append_string(&p->ids, &p->n_ids, &p->max_ids, doc->id, doc->id_len) ||
        !append_string(&p->titles, &p->n_titles, &p->max_titles, doc->title, doc->title_len))
        return false;
    p->id_lens[p->n] = (uint32_t)doc->id_len;
    p->title_lens[p->n] = (uint32_t)doc->title_len;
    p->title_positions[p->n] = title_positions;
    p->n_tokens[p->n++] = n_tokens;
    p->sum_tokens += n_tokens;
    return true;
}

void gx_document_pack_clear(gx_document_pack *p)
{
    p->n = 0;
    p->n_ids = p->n_titles = 0;
    p->sum_tokens = 0;
}

void gx_document_pack_free(gx_document_pack *p)
{
    free(p->id_lens);
    free(p->title_lens);
    free(p->n_tokens);
    free(p->title_positions);
    free(p->ids);
    free(p->titles);
    *p = (gx_document_pack){0};
}

static gx_status add_strings(gx_spooled_strings *to, const uint32_t *lens, uint32_t n, const char *bytes,
                             size_t n_bytes, gx_error *err)
{
    const gx_status st = gx_spool_add(&to->lens, lens, n * sizeof *lens, err);
    return st == GX_OK ? gx_spool_add(&to->bytes, bytes, n_bytes, err) : st;
}

static gx_status add_pack(gx_writer *w, const gx_document_pack *p, gx_error *err)
{
    assert(!w->store_text && !w->n_docs_announced);
    if (w->counts.n_terms)
        return gx_fail(err, GX_EUSAGE, "documents are added after the first list");
    if (p->n > UINT32_MAX - 1 - w->counts.n_docs)
        return gx_fail(err, GX_EUSAGE, "%s would have more than %u documents", w->path, UINT32_MAX - 1);
    gx_status st = add_strings(&w->doc_ids, p->id_lens, p->n, p->ids, p->n_ids, err);
    if (st == GX_OK)
        st = add_strings(&w->titles, p->title_lens, p->n, p->titles, p->n_titles, err);
    if (st == GX_OK)
        st = gx_spool_add(&w->doc_lens, p->n_tokens, p->n * sizeof *p->n_tokens, err);
    if (st != GX_OK)
        return st;
    w->any_title |= p->n_titles > 0;
    w->counts.n_tokens += p->sum_tokens;
    w->counts.n_docs += p->n;
    return GX_OK;
}

gx_status gx_writer_add_pack(gx_writer *w, const gx_document_pack *p, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return gx_writer_repeat_failure(w, err);
    const gx_status st = gx_writer_record_failure(w, add_pack(w, p, &words), &words, err);
    return st == GX_OK && w->with_positions ? gx_writer_add_title_positions(w, p->title_positions, p->n, err) : st;
}
