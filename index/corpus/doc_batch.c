#include "index/corpus/doc_batch.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"

typedef struct gx_batch_value {
    uint32_t attribute;
    size_t begin, len;
} gx_batch_value;

typedef struct gx_batch_weight {
    size_t begin, len;
    float weight;
} gx_batch_weight;

/* Append bytes, for which there is room. */
static void append(gx_doc_batch *b, const char *p, size_t n)
{
    if (n)
        memcpy(b->bytes + b->n_bytes, p, n);
    b->n_bytes += n;
}

static bool reserve(gx_doc_batch *b, size_t n_bytes)
{
    return gx_reserve(&b->bytes, &b->max_bytes, b->n_bytes + n_bytes + 1, 1) &&
           gx_reserve(&b->docs, &b->max, b->n + 1, sizeof *b->docs);
}

/* Append the document's values and its vector. */
static bool append_parts(gx_doc_batch *b, const gx_document *doc)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < doc->n_values; ++i)
        bytes += doc->values[i].len;
    for (uint32_t i = 0; i < doc->n_vector; ++i)
        bytes += doc->vector[i].len;
    if (!gx_reserve(&b->values, &b->max_values, b->n_values + doc->n_values + 1, sizeof *b->values) ||
        !gx_reserve(&b->weights, &b->max_weights, b->n_weights + doc->n_vector + 1, sizeof *b->weights) ||
        !gx_reserve(&b->bytes, &b->max_bytes, b->n_bytes + bytes + 1, 1))
        return false;
    for (uint32_t i = 0; i < doc->n_values; ++i) {
        const gx_attribute_value *v = &doc->values[i];
        b->values[b->n_values++] = (gx_batch_value){v->attribute, b->n_bytes, v->len};
        append(b, v->text, v->len);
    }
    for (uint32_t i = 0; i < doc->n_vector; ++i) {
        const gx_weighted_term *t = &doc->vector[i];
        b->weights[b->n_weights++] = (gx_batch_weight){b->n_bytes, t->len, t->weight};
        append(b, t->term, t->len);
    }
    return true;
}

/* Where the string [n] is, which is copied unless it lies in raw. There is room. */
static size_t place_string(gx_doc_batch *b, const char *p, size_t n, bool *is_raw)
{
    *is_raw = b->raw && p >= b->raw && p <= b->raw + b->n_raw;
    if (*is_raw)
        return (size_t)(p - b->raw);
    append(b, p, n);
    return b->n_bytes - n;
}

bool gx_doc_batch_add(gx_doc_batch *b, const gx_document *doc, uint64_t line)
{
    static const char zeros[GX_NUMBER_DIGITS];
    const char *const id = b->numbered ? zeros : doc->id;
    const size_t id_len = b->numbered ? sizeof zeros : doc->id_len;
    const size_t most = b->raw ? 0 : doc->title_len + doc->text_len;
    gx_batch_document d = {.title_len = doc->title_len,
                           .text_len = doc->text_len,
                           .first_value = b->n_values,
                           .first_weight = b->n_weights,
                           .line = line,
                           .id_len = (uint32_t)id_len,
                           .n_values = doc->n_values,
                           .n_vector = doc->n_vector,
                           .has_title = doc->title != NULL,
                           .has_vector = doc->vector != NULL};
    if (!reserve(b, id_len + most))
        return false;
    d.id = place_string(b, id, id_len, &d.id_is_raw);
    if (b->raw && !reserve(b, doc->title_len))
        return false;
    d.title = place_string(b, doc->title, doc->title_len, &d.title_is_raw);
    if (b->raw && !reserve(b, doc->text_len))
        return false;
    d.text = place_string(b, doc->text, doc->text_len, &d.text_is_raw);
    b->docs[b->n++] = d;
    return (doc->n_values == 0 && doc->n_vector == 0) || append_parts(b, doc);
}

bool gx_doc_batch_add_error(gx_doc_batch *b, const gx_error *err, uint64_t line)
{
    const size_t n = strlen(err->text);
    if (!reserve(b, n))
        return false;
    b->docs[b->n++] = (gx_batch_document){.text = b->n_bytes, .text_len = n, .line = line, .status = err->status};
    append(b, err->text, n);
    return true;
}

bool gx_doc_batch_set_error(gx_doc_batch *b, size_t i, const gx_error *err)
{
    const size_t n = strlen(err->text);
    if (!reserve(b, n))
        return false;
    b->docs[i] = (gx_batch_document){.text = b->n_bytes, .text_len = n, .line = b->docs[i].line, .status = err->status};
    append(b, err->text, n);
    return true;
}

static const char *string_at(const gx_doc_batch *b, size_t at, bool is_raw)
{
    return (is_raw ? b->raw : b->bytes) + at;
}

bool gx_doc_batch_get(const gx_doc_batch *b, size_t i, gx_doc_parts *parts, gx_document *doc)
{
    static const gx_weighted_term none;
    const gx_batch_document *d = &b->docs[i];
    const size_t skip = b->numbered ? gx_write_number(b->bytes + d->id, b->number + d->line) : 0;
    *doc = (gx_document){.size = sizeof *doc,
                         .id = string_at(b, d->id, d->id_is_raw) + skip,
                         .title = d->has_title ? string_at(b, d->title, d->title_is_raw) : NULL,
                         .text = string_at(b, d->text, d->text_is_raw),
                         .id_len = d->id_len - skip,
                         .title_len = d->title_len,
                         .text_len = d->text_len,
                         .vector = d->has_vector ? &none : NULL};
    if (d->n_values) {
        if (!gx_reserve(&parts->values, &parts->max_values, d->n_values, sizeof *parts->values))
            return false;
        for (uint32_t k = 0; k < d->n_values; ++k) {
            const gx_batch_value *v = &b->values[d->first_value + k];
            parts->values[k] = (gx_attribute_value){v->attribute, b->bytes + v->begin, v->len};
        }
        doc->values = parts->values;
        doc->n_values = d->n_values;
    }
    if (d->n_vector) {
        if (!gx_reserve(&parts->vector, &parts->max_vector, d->n_vector, sizeof *parts->vector))
            return false;
        for (uint32_t k = 0; k < d->n_vector; ++k) {
            const gx_batch_weight *w = &b->weights[d->first_weight + k];
            parts->vector[k] = (gx_weighted_term){b->bytes + w->begin, w->len, w->weight};
        }
        doc->vector = parts->vector;
        doc->n_vector = d->n_vector;
    }
    return true;
}

const char *gx_doc_batch_error(const gx_doc_batch *b, size_t i, size_t *n)
{
    *n = b->docs[i].text_len;
    return b->bytes + b->docs[i].text;
}

const char *gx_doc_batch_id(const gx_doc_batch *b, size_t i, size_t *n)
{
    *n = b->docs[i].id_len;
    return string_at(b, b->docs[i].id, b->docs[i].id_is_raw);
}

void gx_doc_batch_clear(gx_doc_batch *b)
{
    b->n = b->n_bytes = b->n_values = b->n_weights = 0;
    b->numbered = false;
    b->raw = NULL;
}

void gx_doc_batch_free(gx_doc_batch *b)
{
    free(b->bytes);
    free(b->docs);
    free(b->values);
    free(b->weights);
    *b = (gx_doc_batch){0};
}

void gx_doc_parts_free(gx_doc_parts *parts)
{
    free(parts->values);
    free(parts->vector);
    *parts = (gx_doc_parts){0};
}
