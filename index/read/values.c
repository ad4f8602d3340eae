/* values.c: the values of documents' attributes (gpuidx_values.h). */
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/status.h"
#include "index/attributes/types.h"
#include "index/read/collection.h"

gx_status gx_index_find_attribute(const gx_index *ix, const char *name, size_t len, uint32_t *number, gx_error *err)
{
    char why[GX_NO_ATTRIBUTE_TEXT];
    *number = gx_column_find(ix, name, len, why);
    return *number == UINT32_MAX ? gx_fail(err, GX_EUSAGE, "%s", why) : GX_OK;
}

/* The columns of one attribute: of a file one, of a collection one a segment. */
static const gx_column *column_of(const gx_index *file, uint32_t attribute)
{
    return &file->columns[attribute];
}

static bool has_several(const gx_index *ix, uint32_t attribute)
{
    if (!ix->parts) {
        const gx_column *c = column_of(ix, attribute);
        return c->type != GX_ATTRIBUTE_KEYWORD && c->starts;
    }
    for (uint32_t i = 0; i < ix->parts->n; ++i) {
        if (has_several(ix->parts->parts[i].ix, attribute))
            return true;
    }
    return false;
}

/* Room for n documents, or for n values. */
static bool grow(void **array, uint64_t *max, uint64_t n, size_t bytes)
{
    if (n <= *max)
        return true;
    const uint64_t wanted = n > 2 * *max ? n : 2 * *max;
    void *more = wanted < SIZE_MAX / bytes ? realloc(*array, wanted * bytes) : NULL;
    if (!more)
        return false;
    *array = more;
    *max = wanted;
    return true;
}

static gx_status read_string(gx_value *out, const gx_index *file, const gx_column *c, uint64_t ordinal, gx_error *err)
{
    if (ordinal >= c->n_strings)
        return gx_fail(err, GX_ECORRUPT, "%s: attribute %.*s: a document has string %llu, of %u", file->path,
                       (int)c->name_len, c->name, (unsigned long long)ordinal, c->n_strings);
    out->string = gx_column_string(file, c, (uint32_t)ordinal, &out->len);
    return GX_OK;
}

static gx_status read_value(gx_value *out, const gx_index *file, const gx_column *c, uint64_t i, gx_error *err)
{
    const uint64_t raw = gx_column_raw(c, i);
    *out = (gx_value){0};
    if (gx_is_keyword(c->type))
        return read_string(out, file, c, raw, err);
    *out = gx_value_of_bits(c->type, (int64_t)((uint64_t)c->base + raw));
    return GX_OK;
}

/* Add the values of one document of a file behind the first *n_values. */
static gx_status add_document(gx_values *out, uint64_t *n_values, const gx_index *file, uint32_t attribute,
                              uint32_t docid, gx_error *err)
{
    const gx_column *c = column_of(file, attribute);
    if (!gx_column_has(c, docid))
        return GX_OK;
    const gx_value_span span = gx_column_values(c, docid);
    const uint64_t n = span.end - span.begin;
    if (!grow((void **)&out->values, &out->max_values, *n_values + n, sizeof *out->values))
        return gx_fail(err, GX_ENOMEM, "no memory for %llu values of an attribute",
                       (unsigned long long)(*n_values + n));
    gx_status st = GX_OK;
    for (uint64_t i = span.begin; i < span.end && st == GX_OK; ++i)
        st = read_value(&out->values[(*n_values)++], file, c, i, err);
    return st;
}

gx_status gx_index_values(const gx_index *ix, uint32_t attribute, const uint64_t *docids, uint64_t n, gx_values *out,
                          gx_error *err)
{
    const uint64_t n_docs = gx_index_n_docs(ix);
    uint64_t n_values = 0;
    if (attribute >= gx_index_n_attributes(ix))
        return gx_fail(err, GX_ENOTFOUND, "%s has %u attributes, and number %u, counted from 0, was asked for",
                       ix->path, gx_index_n_attributes(ix), attribute);
    if (!grow((void **)&out->starts, &out->max_n, n + 1, sizeof *out->starts))
        return gx_fail(err, GX_ENOMEM, "no memory for an attribute's values of %llu documents", (unsigned long long)n);
    out->type = column_of(ix->parts ? ix->parts->parts[0].ix : ix, attribute)->type;
    out->several = has_several(ix, attribute);
    out->n = n;
    out->starts[0] = 0;
    gx_status st = GX_OK;
    for (uint64_t i = 0; i < n && st == GX_OK; ++i) {
        uint32_t local = (uint32_t)docids[i];
        if (docids[i] >= n_docs)
            return gx_fail(err, GX_ENOTFOUND, "%s has %llu documents, and none has docid %llu", ix->path,
                           (unsigned long long)n_docs, (unsigned long long)docids[i]);
        const gx_index *file = ix->parts ? gx_parts_find(ix->parts, docids[i], &local)->ix : ix;
        st = add_document(out, &n_values, file, attribute, local, err);
        out->starts[i + 1] = n_values;
    }
    return st;
}

void gx_values_free(gx_values *values)
{
    free(values->starts);
    free(values->values);
    *values = (gx_values){0};
}

void gx_text_add_value(gx_text *t, gx_attribute_type type, const gx_value *value)
{
    char text[GX_VALUE_TEXT];
    if (gx_is_keyword(type)) {
        gx_text_add(t, value->string, value->len);
        return;
    }
    gx_type_of(type)->print(gx_value_bits(type, value), text);
    gx_text_add_string(t, text);
}

void gx_text_add_json_value(gx_text *t, gx_attribute_type type, const gx_value *value)
{
    const bool quoted = gx_type_of(type)->is_quoted;
    if (gx_is_keyword(type)) {
        gx_text_add_json(t, value->string, value->len);
        return;
    }
    const size_t begin = t->len;
    gx_text_add_string(t, quoted ? "\"" : "");
    gx_text_add_value(t, type, value);
    gx_text_add_string(t, quoted ? "\"" : "");
    if (type == GX_ATTRIBUTE_FLOAT && !t->failed) { /* a float remains one where JSON's readers tell the two apart */
        const char *text = t->bytes + begin;
        const size_t len = t->len - begin;
        if (!memchr(text, '.', len) && !memchr(text, 'e', len))
            gx_text_add_string(t, ".0");
    }
}

/* The member of one attribute, behind `mark`. */
static void add_member(gx_text *t, const gx_index *ix, uint32_t attribute, const gx_values *v, const char *mark)
{
    const gx_column *c = column_of(ix->parts ? ix->parts->parts[0].ix : ix, attribute);
    gx_text_add_string(t, mark);
    gx_text_add_json(t, c->name, c->name_len);
    gx_text_add_string(t, v->several ? ":[" : ":");
    for (uint64_t i = 0; i < v->starts[1]; ++i) {
        gx_text_add_string(t, i ? "," : "");
        gx_text_add_json_value(t, v->type, &v->values[i]);
    }
    gx_text_add_string(t, v->several ? "]" : "");
}

gx_status gx_text_add_attributes(gx_text *t, const gx_index *ix, uint64_t docid, const uint32_t *numbers, uint32_t n,
                                 gx_values *values, gx_error *err)
{
    const char *mark = "{";
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t attribute = numbers ? numbers[i] : i;
        const gx_status st = gx_index_values(ix, attribute, &docid, 1, values, err);
        if (st)
            return st;
        if (values->starts[1] == 0)
            continue;
        add_member(t, ix, attribute, values, mark);
        mark = ",";
    }
    gx_text_add_string(t, *mark == '{' ? "{}" : "}");
    return GX_OK;
}
