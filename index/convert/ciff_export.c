#include "index/convert/ciff.h"

#include <pb_encode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/files/atomic_file.h"
#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "engine/text/c_locale.h"
#include "index/convert/rewrite.h"
#include "index/write/writer.h"

typedef struct export
{
    const gx_index *ix;
    gx_atomic_file out;
    uint8_t *message; /* [max] the message being written */
    size_t max;
    uint32_t *docids, *tfs; /* of one list; room for the longest */
}
export;

/* The longest posting has a tag, a length below 128, and two fields of a tag and at most 5
 * bytes. */
enum { POSTING_BYTES = 2 + 2 * (1 + 5), FIELD_BYTES = 1 + 10 };

/* ---- fields: proto3 leaves out those of value 0 ---- */

static void put_number(pb_ostream_t *s, uint32_t tag, uint64_t value)
{
    if (value) {
        pb_encode_tag(s, PB_WT_VARINT, tag);
        pb_encode_varint(s, value);
    }
}

static void put_text(pb_ostream_t *s, uint32_t tag, const char *text, size_t n)
{
    pb_encode_tag(s, PB_WT_STRING, tag);
    pb_encode_string(s, (const pb_byte_t *)text, n);
}

static uint8_t *put_varint(uint8_t *to, uint32_t v)
{
    for (; v >= 128; v >>= 7)
        *to++ = (uint8_t)(v | 128);
    *to++ = (uint8_t)v;
    return to;
}

/* Writes a posting of at most POSTING_BYTES and returns its end. Does not use nanopb, because
 * nearly all bytes of an export are postings. */
static uint8_t *put_posting(uint8_t *to, uint32_t gap, uint32_t tf)
{
    uint8_t *const length = to + 1;
    *to = GX_CIFF_POSTINGS << 3 | PB_WT_STRING;
    to += 2;
    if (gap) {
        *to++ = GX_CIFF_GAP << 3 | PB_WT_VARINT;
        to = put_varint(to, gap);
    }
    *to++ = GX_CIFF_TF << 3 | PB_WT_VARINT;
    to = put_varint(to, tf);
    *length = (uint8_t)(to - length - 1);
    return to;
}

/* ---- messages ---- */

/* Opens a stream into ex->message, which then has room for n bytes. */
static gx_status begin_message(export *ex, size_t n, pb_ostream_t *s, gx_error *err)
{
    if (!gx_reserve(&ex->message, &ex->max, n, 1))
        return gx_fail(err, GX_ENOMEM, "no memory for a message of %zu bytes", n);
    *s = pb_ostream_from_buffer(ex->message, n);
    return GX_OK;
}

/* Writes the message to the file: what s has written and n_more bytes after it. */
static gx_status end_message(export *ex, const pb_ostream_t *s, size_t n_more, gx_error *err)
{
    pb_byte_t length[10];
    pb_ostream_t l = pb_ostream_from_buffer(length, sizeof length);
    if (s->errmsg) /* a bound on a message's length is wrong */
        return gx_fail(err, GX_EINTERNAL, "%s: a message did not fit: %s", ex->out.path, PB_GET_ERROR(s));
    pb_encode_varint(&l, s->bytes_written + n_more);
    fwrite(length, 1, l.bytes_written, ex->out.file); /* the file keeps an error until it is synced */
    fwrite(ex->message, 1, s->bytes_written + n_more, ex->out.file);
    return GX_OK;
}

static gx_status put_header(export *ex, gx_error *err)
{
    const gx_index *ix = ex->ix;
    const double average = ix->n_docs ? (double)ix->n_tokens / ix->n_docs : 0;
    char maker[sizeof GX_CIFF_MAKER GX_VERSION GX_CIFF_IMPACTS GX_CIFF_UNIT + 32], unit[sizeof GX_CIFF_UNIT + 32] = "";
    if (ix->units)
        return gx_fail(err, GX_EINPUT, "%s: each list has a unit of impacts of its own, which CIFF cannot hold",
                       ix->path);
    if (ix->impact_unit != 1)
        gx_print(unit, sizeof unit, GX_CIFF_UNIT "%.17g", ix->impact_unit);
    snprintf(maker, sizeof maker, "%s%s%s", GX_CIFF_MAKER GX_VERSION, ix->impacts ? GX_CIFF_IMPACTS : "", unit);
    char *json = ix->analyzer ? gx_analyzer_json(ix->analyzer) : strdup(""), *description = NULL;
    pb_ostream_t s;
    if (!json || asprintf(&description, "%s" GX_CIFF_ANALYZER "%s", maker, json) < 0) {
        free(json);
        return gx_fail(err, GX_ENOMEM, "no memory");
    }
    size_t n = strlen(description);
    if (!*json || n > GX_MAX_STRING)
        n = strlen(maker); /* without the analyzer */
    gx_status st = begin_message(ex, 8 * FIELD_BYTES + n, &s, err);
    if (st == GX_OK) {
        put_number(&s, GX_CIFF_VERSION, 1);
        put_number(&s, GX_CIFF_N_LISTS, ix->n_terms);
        put_number(&s, GX_CIFF_N_DOCS, ix->n_docs);
        put_number(&s, GX_CIFF_TOTAL_LISTS, ix->n_terms);
        put_number(&s, GX_CIFF_TOTAL_DOCS, ix->n_docs);
        put_number(&s, GX_CIFF_TOTAL_TERMS, ix->n_tokens);
        if (average > 0) {
            pb_encode_tag(&s, PB_WT_64BIT, GX_CIFF_AVERAGE);
            pb_encode_fixed64(&s, &average);
        }
        put_text(&s, GX_CIFF_DESCRIPTION, description, n);
        st = end_message(ex, &s, 0, err);
    }
    free(json);
    free(description);
    return st;
}

/* A term, or the name of a document. bytes may point to digits. */
typedef struct ciff_name {
    const char *bytes;
    size_t len;
    char digits[11];
} ciff_name;

/* Name i of n, or the digits of i if there are no names. */
static gx_status name_of(const export *ex, const gx_strings *names, uint32_t i, uint32_t n, ciff_name *name,
                         gx_error *err)
{
    if (names->n == 0) {
        name->len = (size_t)snprintf(name->digits, sizeof name->digits, "%0*u", snprintf(NULL, 0, "%u", n - 1), i);
        name->bytes = name->digits;
        return GX_OK;
    }
    name->bytes = gx_strings_get(names, i, &name->len);
    if (name->len == 0 || !gx_ciff_is_utf8(name->bytes, name->len))
        return gx_fail(err, GX_EINPUT, "%s: %s %u is %s, which CIFF cannot hold", ex->ix->path,
                       names == &ex->ix->terms ? "term" : "the name of document", i, name->len ? "not UTF-8" : "empty");
    return GX_OK;
}

/* Decodes list t to ex->docids and ex->tfs, and adds up its tfs. */
static gx_status load_list(export *ex, uint32_t t, const gx_list *l, uint64_t *cf, gx_error *err)
{
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK], n = 0;
    uint64_t least = 0;
    *cf = 0;
    for (uint32_t j = 0; j < l->n_blocks; ++j) {
        const uint32_t some = gx_list_decode_docids(l, j, docids);
        gx_list_decode_tfs(l, j, tfs);
        for (uint32_t i = 0; i < some; ++i, ++n) {
            if (docids[i] < least || docids[i] >= ex->ix->n_docs)
                return gx_fail(err, GX_ECORRUPT, "%s: list %u does not decode to rising docids", ex->ix->path, t);
            if (tfs[i] > INT32_MAX)
                return gx_fail(err, GX_EINPUT, "%s: list %u has a tf of %u; the most of CIFF is 2^31 - 1", ex->ix->path,
                               t, tfs[i]);
            least = (uint64_t)docids[i] + 1;
            ex->docids[n] = docids[i];
            ex->tfs[n] = tfs[i];
            *cf += tfs[i];
        }
    }
    return GX_OK;
}

static gx_status put_list(export *ex, uint32_t t, gx_error *err)
{
    const gx_list l = gx_index_list(ex->ix, t);
    ciff_name term;
    uint64_t cf;
    pb_ostream_t s;
    gx_status st = name_of(ex, &ex->ix->terms, t, ex->ix->n_terms, &term, err);
    if (st == GX_OK)
        st = load_list(ex, t, &l, &cf, err);
    if (st == GX_OK)
        st = begin_message(ex, 3 * FIELD_BYTES + term.len + POSTING_BYTES * (size_t)l.df, &s, err);
    if (st != GX_OK)
        return st;
    put_text(&s, GX_CIFF_TERM, term.bytes, term.len);
    put_number(&s, GX_CIFF_DF, l.df);
    put_number(&s, GX_CIFF_CF, cf);
    uint8_t *const postings = ex->message + s.bytes_written, *end = postings;
    for (uint32_t i = 0, last = 0; i < l.df; last = ex->docids[i++])
        end = put_posting(end, ex->docids[i] - last, ex->tfs[i]);
    return end_message(ex, &s, (size_t)(end - postings), err);
}

static gx_status put_document(export *ex, uint32_t d, gx_error *err)
{
    ciff_name name;
    pb_ostream_t s;
    gx_status st = name_of(ex, &ex->ix->doc_ids, d, ex->ix->n_docs, &name, err);
    if (st == GX_OK && ex->ix->doc_lens[d] > INT32_MAX)
        st = gx_fail(err, GX_EINPUT, "%s: document %u has a length of %u; the most of CIFF is 2^31 - 1", ex->ix->path,
                     d, ex->ix->doc_lens[d]);
    if (st == GX_OK)
        st = begin_message(ex, 3 * FIELD_BYTES + name.len, &s, err);
    if (st != GX_OK)
        return st;
    put_number(&s, GX_CIFF_DOCID, d);
    put_text(&s, GX_CIFF_NAME, name.bytes, name.len);
    put_number(&s, GX_CIFF_LENGTH, ex->ix->doc_lens[d]);
    return end_message(ex, &s, 0, err);
}

static gx_status put_all(export *ex, const gx_export_options *opt, gx_error *err)
{
    const gx_index *ix = ex->ix;
    uint32_t max_df = 1;
    for (uint32_t t = 0; t < ix->n_terms; ++t)
        max_df = ix->lists[t].df > max_df ? ix->lists[t].df : max_df;
    ex->docids = calloc(max_df, sizeof *ex->docids);
    ex->tfs = calloc(max_df, sizeof *ex->tfs);
    if (!ex->docids || !ex->tfs)
        return gx_fail(err, GX_ENOMEM, "no memory for a list of %u postings", max_df);
    if (ix->n_docs > INT32_MAX || ix->n_terms > INT32_MAX)
        return gx_fail(err, GX_EINPUT, "%s has %u documents and %u lists; the most of CIFF is 2^31 - 1", ix->path,
                       ix->n_docs, ix->n_terms);
    gx_status st = put_header(ex, err);
    for (uint32_t t = 0; st == GX_OK && t < ix->n_terms; ++t)
        st = opt->cancel && opt->cancel(opt->user) ? gx_fail(err, GX_ECANCELLED, "cancelled") : put_list(ex, t, err);
    for (uint32_t d = 0; st == GX_OK && d < ix->n_docs; ++d)
        st = put_document(ex, d, err);
    return st;
}

gx_status gx_ciff_export(const gx_index *ix, const char *path, const gx_export_options *opt, gx_error *err)
{
    gx_export_options o = GX_EXPORT_OPTIONS;
    gx_status st = gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_export_options, user), "gx_export_options", err);
    if (st != GX_OK)
        return st;
    if (ix->parts) {
        gx_index *flat;
        if ((st = gx_index_flatten(&flat, ix, path, err)) == GX_OK)
            st = gx_ciff_export(flat, path, &o, err);
        gx_index_close(flat);
        return st;
    }
    export ex = {.ix = ix, .out = GX_ATOMIC_FILE_INIT};
    st = gx_atomic_file_open(&ex.out, path, o.force ? GX_ATOMIC_FILE_FORCE : 0, err);
    if (st == GX_OK)
        st = gx_atomic_file_stream(&ex.out, err);
    if (st == GX_OK)
        st = put_all(&ex, &o, err);
    if (st == GX_OK)
        st = gx_atomic_file_sync(&ex.out, err);
    if (st == GX_OK)
        st = gx_atomic_file_commit(&ex.out, err);
    gx_atomic_file_close(&ex.out);
    free(ex.message);
    free(ex.docids);
    free(ex.tfs);
    return st;
}
