#include "index/write/columns.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/attributes/types.h"
#include "index/write/bitmap_maker.h"
#include "index/write/dictionary.h"

typedef struct column {
    char *name;
    gx_attribute_type type;
    gx_spool values;  /* u64 a document: the value; of several, and of keywords, how many */
    gx_spool several; /* of keywords: u32 each, numbers in the dictionary; else the values of documents with several */
    uint8_t *present, *many;      /* a bit a document: it has a value; it has several, which are not keywords */
    size_t max_present, max_many; /* bytes; documents past `many` do not have several */
    gx_dictionary strings;

    uint64_t next; /* the document at hand, as in `values` */
    bool has_next, many_next;
    uint32_t *row;     /* of keywords: [next] */
    uint64_t *numbers; /* where many_next: [next] */
    size_t max_row, max_numbers;

    gx_bitmap_options bitmaps;
    gx_column_entry entry; /* when the columns are written */
} column;

struct gx_columns {
    column *columns; /* [n] */
    uint32_t n, n_docs;
    const uint32_t *remap;
    const char *dir;
};

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for the attributes of documents");
}

/* ---- open and close ---- */

static gx_status open_column(gx_columns *c, const gx_attribute *a, const gx_bitmap_options *bitmaps, gx_error *err)
{
    column *col = &c->columns[c->n];
    const char *name = a->name ? a->name : "", *fault = gx_attribute_name_fault(name, strlen(name));
    if (fault)
        return gx_fail(err, GX_EUSAGE, "the attribute's name '%.80s' %s", name, fault);
    if (!gx_type_of(a->type))
        return gx_fail(err, GX_EUSAGE, "the attribute %s has no type", name);
    for (uint32_t i = 0; i < c->n; ++i)
        if (strcmp(c->columns[i].name, name) == 0)
            return gx_fail(err, GX_EUSAGE, "there are two attributes %s", name);
    fault = bitmaps ? gx_bitmap_options_fault(a->type, bitmaps) : NULL;
    if (fault)
        return gx_fail(err, GX_EUSAGE, "the attribute %s %s", name, fault);
    col->type = a->type;
    col->bitmaps = bitmaps ? *bitmaps : (gx_bitmap_options){GX_BITMAPS_AUTO, GX_BINS_QUANTILES, 0};
    col->values = gx_spool_make(c->dir);
    col->several = gx_spool_make(c->dir);
    col->strings = gx_dictionary_make();
    ++c->n;
    return (col->name = strdup(name)) ? GX_OK : no_memory(err);
}

gx_status gx_columns_open(gx_columns **out, const gx_attribute *attributes, const gx_bitmap_options *bitmaps,
                          uint32_t n, const char *dir, gx_error *err)
{
    gx_status st = GX_OK;
    *out = NULL;
    if (n == 0 || n > GX_MAX_ATTRIBUTES || !attributes)
        return gx_fail(err, GX_EUSAGE, "%u attributes, not 1 to %u", attributes ? n : 0, GX_MAX_ATTRIBUTES);
    gx_columns *c = calloc(1, sizeof *c);
    if (!c || !(c->columns = calloc(n, sizeof *c->columns))) {
        free(c);
        return no_memory(err);
    }
    c->dir = dir;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = open_column(c, &attributes[i], bitmaps ? &bitmaps[i] : NULL, err);
    if (st == GX_OK)
        *out = c;
    else
        gx_columns_close(c);
    return st;
}

void gx_columns_close(gx_columns *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n; ++i) {
        column *col = &c->columns[i];
        gx_spool_free(&col->values);
        gx_spool_free(&col->several);
        free(col->name);
        free(col->present);
        free(col->many);
        free(col->row);
        free(col->numbers);
        gx_dictionary_free(&col->strings);
    }
    free(c->columns);
    free(c);
}

/* ---- documents ---- */

static int compare_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int compare_whole(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_floats(const void *a, const void *b)
{
    const uint64_t x = gx_sort_key(GX_ATTRIBUTE_FLOAT, *(const uint64_t *)a),
                   y = gx_sort_key(GX_ATTRIBUTE_FLOAT, *(const uint64_t *)b);
    return (x > y) - (x < y);
}

/* Leave each string in a row once. */
static void finish_keywords(column *col)
{
    const uint64_t n = col->next;
    if (n < 2)
        return;
    qsort(col->row, (size_t)n, sizeof *col->row, compare_u32);
    col->next = 1;
    for (uint64_t j = 1; j < n; ++j)
        if (col->row[j] != col->row[j - 1])
            col->row[col->next++] = col->row[j];
}

/* Leave each number once, in order. If one is left, the document has one value. */
static void finish_numbers(column *col)
{
    const uint64_t n = col->next;
    qsort(col->numbers, (size_t)n, sizeof *col->numbers,
          col->type == GX_ATTRIBUTE_FLOAT ? compare_floats : compare_whole);
    col->next = 1;
    for (uint64_t j = 1; j < n; ++j)
        if (col->numbers[j] != col->numbers[j - 1])
            col->numbers[col->next++] = col->numbers[j];
    col->many_next = col->next > 1;
    if (!col->many_next)
        col->next = col->numbers[0];
}

static void finish_row(gx_columns *c)
{
    for (uint32_t i = 0; i < c->n; ++i) {
        column *col = &c->columns[i];
        if (col->type == GX_ATTRIBUTE_KEYWORDS)
            finish_keywords(col);
        else if (col->many_next)
            finish_numbers(col);
    }
}

static gx_status push_keyword(column *col, uint32_t number, gx_error *err)
{
    if (gx_grow(&col->row, &col->max_row, (size_t)col->next + 1, sizeof *col->row, err) != GX_OK)
        return no_memory(err);
    col->row[col->next++] = number;
    return GX_OK;
}

/* The document has one more value, that is no string. */
static gx_status push_number(column *col, uint64_t number, gx_error *err)
{
    if (!col->has_next) {
        col->has_next = true;
        col->next = number;
        return GX_OK;
    }
    const uint64_t n = col->many_next ? col->next : 1;
    if (gx_grow(&col->numbers, &col->max_numbers, (size_t)n + 1, sizeof *col->numbers, err) != GX_OK)
        return no_memory(err);
    if (!col->many_next)
        col->numbers[0] = col->next;
    col->numbers[n] = number;
    col->next = n + 1;
    col->many_next = true;
    return GX_OK;
}

static gx_status set_string(column *col, const char *p, size_t n, gx_error *err)
{
    uint32_t number = 0;
    if (n > GX_MAX_STRING)
        return gx_fail(err, GX_EINPUT, "the attribute %s: a value of %zu bytes; the most is %u", col->name, n,
                       GX_MAX_STRING);
    const gx_status st = gx_dictionary_number(&col->strings, p, n, &number, err);
    if (st == GX_OK && col->type == GX_ATTRIBUTE_KEYWORDS)
        return push_keyword(col, number, err);
    col->next = number;
    return st;
}

static gx_status set_value(column *col, const char *p, size_t n, gx_error *err)
{
    const gx_type *type = gx_type_of(col->type);
    int64_t number = 0, last;
    if (col->has_next && col->type == GX_ATTRIBUTE_KEYWORD)
        return gx_fail(err, GX_EINPUT, "the attribute %s has several values, which its type keyword does not take",
                       col->name);
    if (type->is_string) {
        col->has_next = true;
        return set_string(col, p, n, err);
    }
    const char *fault = type->parse(p, n, false, &number, &last);
    if (fault)
        return gx_fail(err, GX_EINPUT, "the attribute %s: '%.*s' %s", col->name, (int)(n < 60 ? n : 60), p, fault);
    return push_number(col, (uint64_t)number, err);
}

static void clear_row(gx_columns *c)
{
    for (uint32_t i = 0; i < c->n; ++i) {
        c->columns[i].next = 0;
        c->columns[i].has_next = c->columns[i].many_next = false;
    }
}

gx_status gx_columns_set(gx_columns *c, const gx_attribute_value *values, uint32_t n, gx_error *err)
{
    gx_status st = GX_OK;
    clear_row(c);
    for (uint32_t i = 0; values && i < n && st == GX_OK; ++i) {
        const gx_attribute_value *v = &values[i];
        if (v->attribute >= c->n)
            return gx_fail(err, GX_EUSAGE, "a value is of attribute %u, and there are %u", v->attribute, c->n);
        if (v->len)
            st = set_value(&c->columns[v->attribute], v->text, v->len, err);
    }
    finish_row(c);
    return st;
}

gx_status gx_columns_copy(gx_columns *c, const gx_index *ix, uint32_t docid, gx_error *err)
{
    clear_row(c);
    for (uint32_t i = 0; i < c->n; ++i) {
        column *col = &c->columns[i];
        const gx_column *from = &ix->columns[i];
        if (!gx_column_has(from, docid))
            continue;
        const gx_value_span span = gx_column_values(from, docid);
        for (uint64_t v = span.begin; v < span.end && !gx_is_keyword(col->type); ++v) {
            const gx_status st = push_number(col, (uint64_t)from->base + gx_column_raw(from, v), err);
            if (st != GX_OK)
                return st;
        }
        col->has_next = true;
        for (uint64_t v = span.begin; v < span.end && gx_is_keyword(col->type); ++v) {
            const uint64_t ordinal = gx_column_raw(from, v);
            size_t len;
            if (ordinal >= from->n_strings)
                return gx_fail(err, GX_ECORRUPT, "%s: attribute %s: document %u has string %llu, of %u", ix->path,
                               col->name, docid, (unsigned long long)ordinal, from->n_strings);
            const char *p = gx_column_string(ix, from, (uint32_t)ordinal, &len);
            const gx_status st = set_string(col, p, len, err);
            if (st != GX_OK)
                return st;
        }
    }
    finish_row(c);
    return GX_OK;
}

/* Bit `docid` becomes `value`; bits behind the last are 0. */
static gx_status set_bit(uint8_t **bits, size_t *max, uint32_t docid, bool value, gx_error *err)
{
    const size_t had = *max;
    if (gx_grow(bits, max, docid / 8 + (size_t)1, 1, err) != GX_OK)
        return no_memory(err);
    memset(*bits + had, 0, *max - had);
    (*bits)[docid / 8] |= (uint8_t)(value << docid % 8);
    return GX_OK;
}

static gx_status add_value(column *col, uint32_t docid, gx_error *err)
{
    gx_status st = gx_spool_add(&col->values, &col->next, sizeof col->next, err);
    if (st == GX_OK && col->type == GX_ATTRIBUTE_KEYWORDS && col->next)
        st = gx_spool_add(&col->several, col->row, (size_t)col->next * sizeof *col->row, err);
    if (st == GX_OK && col->many_next)
        st = gx_spool_add(&col->several, col->numbers, (size_t)col->next * sizeof *col->numbers, err);
    if (st == GX_OK && col->many_next)
        st = set_bit(&col->many, &col->max_many, docid, true, err);
    return st == GX_OK ? set_bit(&col->present, &col->max_present, docid, col->has_next, err) : st;
}

gx_status gx_columns_add(gx_columns *c, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < c->n && st == GX_OK; ++i)
        st = add_value(&c->columns[i], c->n_docs, err);
    ++c->n_docs;
    return st;
}

void gx_columns_leave_out(gx_columns *c, const uint32_t *remap)
{
    c->remap = remap;
}

/* ---- the sections ---- */

/* A walk through a column's values. */
typedef struct walk {
    const gx_columns *c;
    const column *col;
    uint32_t docid, n_read; /* n_read: documents that are read */
    bool has;
    uint64_t n, value;       /* value: as in the column's `values` */
    uint32_t *keywords;      /* [n] */
    const uint64_t *numbers; /* [n] of other types: `several` or &value */
    uint64_t *several;
    size_t max_keywords, max_several;
    uint64_t several_at; /* in bytes */
    uint64_t buffer[1024];
} walk;

static void end_walk(walk *w)
{
    free(w->keywords);
    free(w->several);
}

/* Whether the document's values are in the spool of several, and bytes of each. */
static bool is_several(const column *col, uint32_t docid, size_t *size)
{
    *size = col->type == GX_ATTRIBUTE_KEYWORDS ? sizeof *col->row : sizeof *col->numbers;
    return col->type == GX_ATTRIBUTE_KEYWORDS || (docid / 8 < col->max_many && col->many[docid / 8] >> docid % 8 & 1);
}

/* The values of the document at hand. */
static gx_status read_several(walk *w, size_t size, gx_error *err)
{
    const bool keywords = w->col->type == GX_ATTRIBUTE_KEYWORDS;
    const gx_status st = keywords ? gx_grow(&w->keywords, &w->max_keywords, (size_t)w->value, sizeof *w->keywords, err)
                                  : gx_grow(&w->several, &w->max_several, (size_t)w->value, sizeof *w->several, err);
    const size_t bytes = (size_t)w->value * size;
    const uint64_t at = w->several_at;
    if (st != GX_OK)
        return no_memory(err);
    w->n = w->value;
    w->numbers = w->several;
    w->several_at += bytes;
    return gx_spool_read(&w->col->several, at, keywords ? (void *)w->keywords : w->several, bytes, err);
}

/* The next document that goes into the file; *more false: there is none. */
static gx_status step(walk *w, bool *more, gx_error *err)
{
    bool several;
    size_t size;
    for (;; ++w->docid) {
        if (w->docid == w->c->n_docs) {
            *more = false;
            return GX_OK;
        }
        if (w->docid == w->n_read) {
            const uint32_t left = w->c->n_docs - w->n_read, some = left < 1024 ? left : 1024;
            const gx_status st = gx_spool_read(&w->col->values, (uint64_t)w->n_read * 8, w->buffer, some * 8, err);
            if (st != GX_OK)
                return st;
            w->n_read += some;
        }
        w->value = w->buffer[w->docid % 1024];
        several = is_several(w->col, w->docid, &size);
        if (!w->c->remap || w->c->remap[w->docid] != UINT32_MAX)
            break;
        w->several_at += several ? w->value * size : 0;
    }
    w->has = w->col->present[w->docid / 8] >> w->docid % 8 & 1;
    ++w->docid;
    *more = true;
    w->n = w->has;
    w->numbers = &w->value;
    return several && w->has ? read_several(w, size, err) : GX_OK;
}

static uint8_t width_of(uint64_t most)
{
    return most >> 32 ? 8 : most >> 16 ? 4 : most >> 8 ? 2 : 1;
}

static bool has_starts(const gx_column_entry *e)
{
    return e->type == GX_ATTRIBUTE_KEYWORDS || e->several;
}

/* Fill in the column's entry, except for its places in the file, and number its strings. */
static gx_status measure(const gx_columns *c, column *col, uint32_t n_docs, gx_error *err)
{
    walk w = {.c = c, .col = col};
    const bool keyword = gx_is_keyword(col->type), keywords = col->type == GX_ATTRIBUTE_KEYWORDS;
    int64_t least = INT64_MAX, most = INT64_MIN;
    uint64_t n = 0, n_docs_seen = 0;
    gx_column_entry *e = &col->entry;
    bool more;
    gx_status st;
    *e = (gx_column_entry){.type = (uint8_t)col->type};
    if (keyword && !(col->strings.ordinals = calloc((size_t)col->strings.n + 1, sizeof(uint32_t))))
        return no_memory(err);
    while ((st = step(&w, &more, err)) == GX_OK && more) {
        ++n_docs_seen;
        e->n_present += w.has;
        e->several |= !keyword && w.n > 1;
        n += w.n;
        for (uint64_t i = 0; i < w.n; ++i) {
            const int64_t value = keywords ? 0 : (int64_t)w.numbers[i];
            least = value < least ? value : least;
            most = value > most ? value : most;
            if (keyword)
                col->strings.ordinals[keywords ? w.keywords[i] : w.numbers[i]] = 1;
        }
    }
    end_walk(&w);
    if (st == GX_OK && n_docs_seen != n_docs)
        st = gx_fail(err, GX_EUSAGE, "%llu documents have attributes, of %u", (unsigned long long)n_docs_seen, n_docs);
    if (st == GX_OK && n > UINT32_MAX && has_starts(e))
        st = gx_fail(err, GX_EINPUT, "the attribute %s has more than 2^32 values", col->name);
    if (st == GX_OK && keyword)
        st = gx_dictionary_sort(&col->strings, err);
    e->n_values = has_starts(e) ? n : n_docs;
    e->n_strings = keyword ? col->strings.n_used : 0;
    e->width = gx_type_of(col->type)->width;
    if (keyword) {
        e->width = width_of(e->n_strings ? e->n_strings - 1 : 0);
    } else if (!e->width) {
        e->base = e->n_present ? least : 0;
        e->width = e->n_present ? width_of((uint64_t)most - (uint64_t)least) : 1;
    }
    return st;
}

static uint64_t column_bytes(const gx_column_entry *e, uint32_t n_docs)
{
    const uint64_t more = has_starts(e)           ? gx_column_padded(((uint64_t)n_docs + 1) * 4)
                          : e->n_present < n_docs ? ((uint64_t)n_docs + 63) / 64 * 8
                                                  : 0;
    return gx_column_padded(e->n_values * e->width) + more;
}

static gx_status pad(gx_section_writer *s, gx_error *err)
{
    static const uint8_t zeros[8];
    const uint64_t bytes = gx_section_writer_section_bytes(s);
    return gx_section_writer_add(s, zeros, (size_t)(gx_column_padded(bytes) - bytes), err);
}

/* A value as the file has it, of types other than keywords. */
static uint64_t number_in_file(const column *col, uint64_t value)
{
    return col->type == GX_ATTRIBUTE_KEYWORD ? col->strings.ordinals[value] : value - (uint64_t)col->entry.base;
}

static gx_status write_row(walk *w, const column *col, gx_section_writer *s, gx_error *err)
{
    const uint8_t width = col->entry.width; /* little-endian: the low bytes come first */
    const uint32_t *ordinals = col->strings.ordinals;
    gx_status st = GX_OK;
    if (col->type == GX_ATTRIBUTE_KEYWORDS) {
        for (uint64_t i = 0; i < w->n; ++i)
            w->keywords[i] = ordinals[w->keywords[i]];
        if (w->n)
            qsort(w->keywords, (size_t)w->n, sizeof *w->keywords, compare_u32);
        for (uint64_t i = 0; i < w->n && st == GX_OK; ++i)
            st = gx_section_writer_add(s, &w->keywords[i], width, err);
        return st;
    }
    for (uint64_t i = 0; i < w->n && st == GX_OK; ++i) {
        const uint64_t x = number_in_file(col, w->numbers[i]);
        st = gx_section_writer_add(s, &x, width, err);
    }
    const uint64_t none = 0;
    return w->n || has_starts(&col->entry) ? st : gx_section_writer_add(s, &none, width, err);
}

typedef enum part { VALUES, STARTS, PRESENCE } part;

static gx_status write_part(const gx_columns *c, const column *col, part what, gx_section_writer *s, gx_error *err)
{
    walk w = {.c = c, .col = col};
    uint32_t start = 0, n = 0;
    uint64_t word = 0;
    bool more;
    gx_status st = what == STARTS ? gx_section_writer_add(s, &start, sizeof start, err) : GX_OK;
    while (st == GX_OK && (st = step(&w, &more, err)) == GX_OK && more) {
        if (what == VALUES) {
            st = write_row(&w, col, s, err);
        } else if (what == STARTS) {
            start += (uint32_t)w.n;
            st = gx_section_writer_add(s, &start, sizeof start, err);
        } else {
            word |= (uint64_t)w.has << n % 64;
            if (++n % 64 == 0) {
                st = gx_section_writer_add(s, &word, sizeof word, err);
                word = 0;
            }
        }
    }
    if (st == GX_OK && what == PRESENCE && n % 64)
        st = gx_section_writer_add(s, &word, sizeof word, err);
    end_walk(&w);
    return st == GX_OK ? pad(s, err) : st;
}

static gx_status write_values(const gx_columns *c, gx_section_writer *s, uint32_t n_docs, gx_error *err)
{
    gx_status st = gx_section_writer_begin(s, GX_SEC_ATTRIBUTE_VALUES, 0, err);
    for (uint32_t i = 0; i < c->n && st == GX_OK; ++i) {
        const column *col = &c->columns[i];
        st = write_part(c, col, VALUES, s, err);
        if (st == GX_OK && has_starts(&col->entry))
            st = write_part(c, col, STARTS, s, err);
        else if (st == GX_OK && col->entry.n_present < n_docs)
            st = write_part(c, col, PRESENCE, s, err);
    }
    return st;
}

/* Give each string of the section, in order: the names, then the strings of each attribute. */
static gx_status each_string(const gx_columns *c, gx_status (*f)(void *user, const char *p, size_t n, gx_error *err),
                             void *user, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < c->n && st == GX_OK; ++i)
        st = f(user, c->columns[i].name, strlen(c->columns[i].name), err);
    for (uint32_t i = 0; i < c->n; ++i)
        for (uint32_t o = 0; o < c->columns[i].entry.n_strings && st == GX_OK; ++o) {
            size_t len;
            const char *p = gx_dictionary_get(&c->columns[i].strings, c->columns[i].strings.order[o], &len);
            st = f(user, p, len, err);
        }
    return st;
}

typedef struct string_writer {
    gx_section_writer *s;
    uint64_t end;
    uint32_t width;
} string_writer;

static gx_status count_bytes(void *user, const char *p, size_t n, gx_error *err)
{
    (void)p, (void)err;
    ((string_writer *)user)->end += n;
    return GX_OK;
}

static gx_status write_offset(void *user, const char *p, size_t n, gx_error *err)
{
    string_writer *w = user;
    (void)p;
    w->end += n;
    return gx_section_writer_add(w->s, &w->end, w->width, err);
}

static gx_status write_bytes(void *user, const char *p, size_t n, gx_error *err)
{
    return gx_section_writer_add(((string_writer *)user)->s, p, n, err);
}

static gx_status write_strings(const gx_columns *c, gx_section_writer *s, gx_error *err)
{
    string_writer w = {.s = s};
    each_string(c, count_bytes, &w, err);
    w.width = w.end > UINT32_MAX ? 8 : 4;
    w.end = 0;
    gx_status st = gx_section_writer_begin(s, GX_SEC_ATTRIBUTE_STRINGS, w.width, err);
    if (st == GX_OK)
        st = gx_section_writer_add(s, &w.end, w.width, err);
    if (st == GX_OK)
        st = each_string(c, write_offset, &w, err);
    return st == GX_OK ? each_string(c, write_bytes, &w, err) : st;
}

/* ---- bitmap columns ---- */

static gx_status rewind_rows(void *user, gx_error *err)
{
    walk *w = user;
    (void)err;
    *w = (walk){.c = w->c,
                .col = w->col,
                .keywords = w->keywords,
                .max_keywords = w->max_keywords,
                .several = w->several,
                .max_several = w->max_several};
    return GX_OK;
}

static gx_status next_row(void *user, gx_bitmap_row *row, gx_error *err)
{
    walk *w = user;
    const column *col = w->col;
    const uint32_t *ordinals = col->strings.ordinals;
    bool more;
    const gx_status st = step(w, &more, err);
    if (st != GX_OK)
        return st;
    *row = (gx_bitmap_row){.n = (uint32_t)w->n};
    if (col->type == GX_ATTRIBUTE_KEYWORDS) {
        row->several = w->keywords;
        for (uint32_t i = 0; i < row->n; ++i)
            w->keywords[i] = ordinals[w->keywords[i]];
    } else if (w->n > 1) {
        row->numbers = w->several;
        for (uint32_t i = 0; i < row->n; ++i)
            w->several[i] = number_in_file(col, w->several[i]);
    } else if (w->n) {
        row->value = number_in_file(col, w->value);
    }
    return GX_OK;
}

static gx_status make_bitmaps(const gx_columns *c, const column *col, uint32_t n_docs, gx_spool *out,
                              gx_bitmaps_entry *entry, gx_error *err)
{
    const gx_column_entry *e = &col->entry;
    walk *w = calloc(1, sizeof *w);
    if (!w)
        return no_memory(err);
    *w = (walk){.c = c, .col = col};
    const gx_bitmap_source source = {.type = col->type,
                                     .width = e->width,
                                     .n_docs = n_docs,
                                     .n_strings = e->n_strings,
                                     .n_values = has_starts(e) ? e->n_values : e->n_present,
                                     .several = e->several,
                                     .user = w,
                                     .rewind = rewind_rows,
                                     .next = next_row};
    const gx_status st = gx_bitmaps_make(&source, &col->bitmaps, out, entry, err);
    end_walk(w);
    free(w);
    return st;
}

/* The section is left out where it says nothing, unless `always`. */
static gx_status write_bitmaps(const gx_columns *c, gx_section_writer *s, uint32_t n_docs, bool always, gx_error *err)
{
    static const uint8_t slack[GX_READ_SLACK];
    gx_bitmaps_entry entries[GX_MAX_ATTRIBUTES];
    gx_spool parts = gx_spool_make(c->dir);
    gx_status st = GX_OK;
    bool any = always;
    for (uint32_t i = 0; i < c->n && st == GX_OK; ++i) {
        st = make_bitmaps(c, &c->columns[i], n_docs, &parts, &entries[i], err);
        if (st == GX_EINPUT) {
            gx_error words = *err;
            gx_fail(err, st, "attribute %s: %s", c->columns[i].name, words.text);
        }
        entries[i].begin += entries[i].encoding != GX_BITMAPS_NONE ? c->n * sizeof *entries : 0;
        any |= entries[i].encoding != GX_BITMAPS_NONE || entries[i].asked_encoding != GX_BITMAPS_AUTO ||
               entries[i].asked_bins || entries[i].asked_binning;
    }
    if (st == GX_OK && any) {
        st = gx_section_writer_begin(s, GX_SEC_ATTRIBUTE_BITMAPS, c->n, err);
        if (st == GX_OK)
            st = gx_section_writer_add(s, entries, c->n * sizeof *entries, err);
        if (st == GX_OK)
            st = gx_section_writer_add_spool(s, &parts, err);
        if (st == GX_OK)
            st = gx_section_writer_add(s, slack, sizeof slack, err);
    }
    gx_spool_free(&parts);
    return st;
}

gx_status gx_columns_write(gx_columns *c, gx_section_writer *s, uint32_t n_docs, bool all, gx_error *err)
{
    uint64_t at = 0, string = c->n;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < c->n && st == GX_OK; ++i) {
        gx_column_entry *e = &c->columns[i].entry;
        st = measure(c, &c->columns[i], n_docs, err);
        e->values = at;
        e->first_string = gx_is_keyword(c->columns[i].type) ? (uint32_t)string : 0;
        at += column_bytes(e, n_docs);
        string += e->n_strings;
    }
    if (st == GX_OK && string >= UINT32_MAX)
        st = gx_fail(err, GX_EINPUT, "the attributes have more than 2^32 different strings");
    if (st == GX_OK)
        st = gx_section_writer_begin(s, GX_SEC_ATTRIBUTES, c->n, err);
    for (uint32_t i = 0; i < c->n && st == GX_OK; ++i)
        st = gx_section_writer_add(s, &c->columns[i].entry, sizeof c->columns[i].entry, err);
    if (st == GX_OK)
        st = write_values(c, s, n_docs, err);
    if (st == GX_OK)
        st = write_strings(c, s, err);
    return st == GX_OK ? write_bitmaps(c, s, n_docs, all, err) : st;
}
