/* attribute_export.c: an index's attributes to a file (attribute_file.h). */
#include <stdio.h>
#include <string.h>

#include "engine/files/atomic_file.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/attributes/types.h"
#include "index/convert/attribute_file.h"
#include "index/read/collection.h"
#include "index/write/bitmap_maker.h"

typedef struct export
{
    const gx_index *ix;
    const gx_export_options *opt;
    FILE *out;
}
export;

/* commas: those of a value are not to part values. */
static void put_escaped(FILE *out, const char *p, size_t n, bool commas)
{
    for (size_t i = 0; i < n; ++i) {
        static const char from[] = "\\\t\n\r", to[] = "\\tnr";
        const char *at = p[i] ? strchr(from, p[i]) : NULL;
        if (at || !p[i] || (commas && p[i] == ',')) {
            putc_unlocked('\\', out);
            putc_unlocked(at ? to[at - from] : p[i] ? ',' : '0', out);
        } else {
            putc_unlocked(p[i], out);
        }
    }
}

/* "bitmaps=range:bins=25:by=width", as far as it is not automatic. */
static void put_bitmap_options(FILE *out, const gx_bitmap_options *o)
{
    static const char *const binnings[] = {"quantiles", "width", "lloyd"};
    if (o->encoding != GX_BITMAPS_AUTO)
        fprintf(out, ":bitmaps=%s", gx_bitmap_encoding_name(o->encoding));
    if (o->bins)
        fprintf(out, ":bins=%u", o->bins);
    if (o->binning != GX_BINS_QUANTILES)
        fprintf(out, ":by=%s", binnings[o->binning]);
}

static void put_header(const export *ex)
{
    fputs("id", ex->out);
    for (uint32_t i = 0; i < ex->ix->n_columns; ++i) {
        const gx_column *c = &ex->ix->columns[i];
        fprintf(ex->out, "\t%.*s:%s", (int)c->name_len, c->name, gx_attribute_type_name(c->type));
        const gx_bitmap_options asked = gx_bitmap_options_asked(c->type, &c->bitmaps.asked);
        put_bitmap_options(ex->out, &asked);
    }
    putc('\n', ex->out);
}

static gx_status put_strings(const export *ex, const gx_index *file, const gx_column *c, uint32_t docid, gx_error *err)
{
    const gx_value_span span = gx_column_values(c, docid);
    for (uint64_t v = span.begin; v < span.end; ++v) {
        const uint64_t ordinal = gx_column_raw(c, v);
        size_t len;
        if (ordinal >= c->n_strings)
            return gx_fail(err, GX_ECORRUPT, "%s: attribute %.*s: document %u has string %llu, of %u", file->path,
                           (int)c->name_len, c->name, docid, (unsigned long long)ordinal, c->n_strings);
        const char *p = gx_column_string(file, c, (uint32_t)ordinal, &len);
        if (v > span.begin)
            putc_unlocked(',', ex->out);
        put_escaped(ex->out, p, len, c->starts != NULL);
    }
    return GX_OK;
}

static void put_number(const export *ex, const gx_column *c, uint64_t raw)
{
    char text[GX_VALUE_TEXT];
    gx_type_of(c->type)->print((int64_t)((uint64_t)c->base + raw), text);
    fputs(text, ex->out);
}

static gx_status put_values(const export *ex, const gx_index *file, const gx_column *c, uint32_t docid, gx_error *err)
{
    const gx_value_span span = gx_column_values(c, docid);
    if (!gx_column_has(c, docid))
        return GX_OK;
    if (gx_is_keyword(c->type))
        return put_strings(ex, file, c, docid, err);
    for (uint64_t v = span.begin; v < span.end; ++v) {
        if (v > span.begin)
            putc_unlocked(',', ex->out);
        put_number(ex, c, gx_column_raw(c, v));
    }
    return GX_OK;
}

static gx_status put_document(const export *ex, uint64_t docid, gx_error *err)
{
    size_t len;
    uint32_t local = (uint32_t)docid;
    const char *id = gx_index_doc_id(ex->ix, docid, &len);
    const gx_index *file = ex->ix->parts ? gx_parts_find(ex->ix->parts, docid, &local)->ix : ex->ix;
    gx_status st = GX_OK;
    if (!id || len == 0)
        return gx_fail(err, GX_EINPUT, "%s: document %llu has no id, by which its attributes could be found",
                       ex->ix->path, (unsigned long long)docid);
    put_escaped(ex->out, id, len, false);
    for (uint32_t i = 0; i < ex->ix->n_columns && st == GX_OK; ++i) {
        putc_unlocked('\t', ex->out);
        st = put_values(ex, file, &file->columns[i], local, err);
    }
    putc_unlocked('\n', ex->out);
    return st;
}

static gx_status put_documents(const export *ex, gx_error *err)
{
    const gx_export_options *o = ex->opt;
    gx_status st = GX_OK;
    for (uint64_t d = 0; d < gx_index_n_docs(ex->ix) && st == GX_OK; ++d)
        st = d % 4096 == 0 && o->cancel && o->cancel(o->user) ? gx_fail(err, GX_ECANCELLED, "cancelled")
                                                              : put_document(ex, d, err);
    return st;
}

gx_status gx_attributes_export(const gx_index *ix, const char *path, const gx_export_options *opt, gx_error *err)
{
    gx_export_options o = GX_EXPORT_OPTIONS;
    gx_atomic_file file = GX_ATOMIC_FILE_INIT;
    gx_status st = gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_export_options, user), "gx_export_options", err);
    if (st == GX_OK && ix->n_columns == 0)
        st = gx_fail(err, GX_EUSAGE, "%s has no attributes", ix->path);
    if (st == GX_OK)
        st = gx_atomic_file_open(&file, path, o.force ? GX_ATOMIC_FILE_FORCE : 0, err);
    if (st == GX_OK)
        st = gx_atomic_file_stream(&file, err);
    if (st == GX_OK) {
        const export ex = {ix, &o, file.file};
        put_header(&ex);
        st = put_documents(&ex, err);
    }
    if (st == GX_OK)
        st = gx_atomic_file_sync(&file, err);
    if (st == GX_OK)
        st = gx_atomic_file_commit(&file, err);
    gx_atomic_file_close(&file);
    return st;
}
