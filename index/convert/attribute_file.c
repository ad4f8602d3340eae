#include "index/convert/attribute_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/files/atomic_file.h"
#include "engine/files/spool.h"
#include "engine/files/temporary_file.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/corpus/input.h"
#include "index/write/external_ids.h"

#define MAX_LINE ((size_t)64 << 20)
#define WINDOW ((size_t)1 << 20) /* bytes of rows that are read at once */
#define ID UINT32_MAX            /* what a column is, beside the number of an attribute */
#define NOTHING (UINT32_MAX - 1)

typedef struct span {
    char *p;
    size_t n;
} span;

/* Where the row of a document lies in the spool. */
typedef struct place {
    uint64_t at;
    uint32_t bytes; /* 0: there is none */
} place;

struct gx_attribute_file {
    const gx_import_options *opt;
    char *dir;
    gx_input in;
    uint64_t line;
    uint32_t *columns; /* [n_columns] of the file: an attribute's number, ID or NOTHING */
    uint32_t n_columns;
    span *fields; /* [n_columns] of a line */
    gx_attribute attributes[GX_MAX_ATTRIBUTES];
    gx_bitmap_options bitmaps[GX_MAX_ATTRIBUTES];
    uint32_t n_attributes;
    char *names; /* the header, of which the names are part, where opt has none */
    gx_columns *values;
    gx_external_ids ids;
    place *places; /* [n_docs] */
    size_t max_docs;
    uint32_t n_docs;
    gx_spool rows; /* of each: values, each as its attribute, its length and its bytes */
    gx_attribute_value *row;
    size_t n_row, max_row;
    uint8_t *packed, *window; /* a row; [max_window] bytes of the spool from window_at on */
    size_t max_packed, n_window, max_window;
    uint64_t window_at;
    gx_import_counts counts;
};

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for the attributes of documents");
}

/* "FILE:LINE: " and what err says. */
static gx_status with_line(const gx_attribute_file *f, gx_error *err)
{
    gx_error why = *err;
    return gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": %.800s", f->in.path, f->line, why.text);
}

/* ---- fields ---- */

/* Cut a line into fields. Returns their number; only the first `max` are written. */
static uint32_t split(char *line, size_t n, span *fields, uint32_t max)
{
    uint32_t count = 0;
    for (char *p = line, *const end = line + n;;) {
        char *tab = memchr(p, '\t', (size_t)(end - p)), *to = tab ? tab : end;
        if (count < max)
            fields[count] = (span){p, (size_t)(to - p)};
        ++count;
        if (!tab)
            return count;
        p = tab + 1;
    }
}

/* What a backslash and c stand for; -1: nothing. */
static int unescape(char c)
{
    static const char from[] = "\\,tnr0", to[] = "\\,\t\n\r";
    const char *at = c ? strchr(from, c) : NULL;
    return at ? (unsigned char)to[at - from] : -1;
}

/* Take the field's first value, up to a comma where they part values, with what its escapes stand for,
 * in place. *more: another follows. GX_EINPUT. */
static gx_status take_value(span *field, bool commas, span *out, bool *more, gx_error *err)
{
    char *to = field->p;
    const char *p = field->p, *const end = field->p + field->n;
    *out = (span){to, 0};
    for (; p < end && !(commas && *p == ','); ++p) {
        const int c = *p != '\\' ? (unsigned char)*p : p + 1 < end ? unescape(*++p) : -1;
        if (c < 0)
            return gx_fail(err, GX_EINPUT, "a backslash is followed by none of \\ , t n r 0");
        *to++ = (char)c;
    }
    out->n = (size_t)(to - out->p);
    *more = p < end;
    *field = (span){(char *)p + *more, (size_t)(end - p) - *more};
    return GX_OK;
}

/* ---- the header ---- */

static gx_status add_attribute(gx_attribute_file *f, gx_attribute a, const gx_bitmap_options *bitmaps, gx_error *err)
{
    if (f->n_attributes == GX_MAX_ATTRIBUTES)
        return gx_fail(err, GX_EINPUT, "more than %u attributes", GX_MAX_ATTRIBUTES);
    f->attributes[f->n_attributes] = a;
    f->bitmaps[f->n_attributes] = *bitmaps;
    ++f->n_attributes;
    return GX_OK;
}

/* "year:int:bins=25" of the header, NUL-terminated. */
static gx_status read_typed_name(gx_attribute_file *f, char *name, gx_error *err)
{
    gx_attribute_type type;
    gx_bitmap_options bitmaps = {0};
    gx_error why = {0};
    char *colon = strchr(name, ':'), *more = colon ? strchr(colon + 1, ':') : NULL;
    if (!colon)
        return gx_fail(err, GX_EINPUT,
                       "the column '%.80s' has no type: write NAME:TYPE, as in year:int, or name the "
                       "columns to take and their types",
                       name);
    *colon = 0;
    if (more)
        *more++ = 0;
    if (!gx_attribute_type_find(colon + 1, &type))
        return gx_fail(err, GX_EINPUT, "the column '%.80s' is of type '%.40s': there is no such type", name, colon + 1);
    if (more && gx_bitmap_options_read(&bitmaps, more, &why))
        return gx_fail(err, GX_EINPUT, "the column '%.80s': %.300s", name, why.text);
    return add_attribute(f, (gx_attribute){name, type}, &bitmaps, err);
}

/* The number of the attribute that the caller named, or NOTHING. */
static uint32_t find_given(const gx_attribute_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n_attributes; ++i)
        if (strcmp(f->attributes[i].name, name) == 0)
            return i;
    return NOTHING;
}

static gx_status read_column(gx_attribute_file *f, uint32_t i, char *name, gx_error *err)
{
    if (strcmp(name, "id") == 0) {
        f->columns[i] = ID;
        return GX_OK;
    }
    if (f->opt->n_attributes) {
        name[strcspn(name, ":")] = 0;
        f->columns[i] = find_given(f, name);
        return GX_OK;
    }
    f->columns[i] = f->n_attributes;
    return read_typed_name(f, name, err);
}

/* Each column that is taken stands once. */
static gx_status check_columns(const gx_attribute_file *f, gx_error *err)
{
    for (uint32_t a = 0; a <= f->n_attributes; ++a) {
        const uint32_t what = a < f->n_attributes ? a : ID;
        const char *name = a < f->n_attributes ? f->attributes[a].name : "id";
        uint32_t n = 0;
        for (uint32_t i = 0; i < f->n_columns; ++i)
            n += f->columns[i] == what;
        if (n != 1)
            return gx_fail(err, GX_EINPUT, n ? "two columns are named '%.80s'" : "no column is named '%.80s'", name);
    }
    return f->n_attributes ? GX_OK : gx_fail(err, GX_EINPUT, "there is no column beside id");
}

static gx_status read_names(gx_attribute_file *f, const char *line, size_t len, gx_error *err)
{
    const size_t mark = len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    gx_status st = GX_OK;
    if (!(f->names = strndup(line + mark, len - mark)))
        return no_memory(err);
    f->n_columns = split(f->names, strlen(f->names), NULL, 0);
    f->columns = malloc(f->n_columns * sizeof *f->columns);
    f->fields = malloc(f->n_columns * sizeof *f->fields);
    if (!f->columns || !f->fields)
        return no_memory(err);
    split(f->names, strlen(f->names), f->fields, f->n_columns);
    for (uint32_t i = 0; i < f->n_columns; ++i)
        f->fields[i].p[f->fields[i].n] = 0;
    for (uint32_t i = 0; i < f->n_columns && st == GX_OK; ++i)
        st = read_column(f, i, f->fields[i].p, err);
    return st == GX_OK ? check_columns(f, err) : st;
}

static gx_status read_header(gx_attribute_file *f, gx_error *err)
{
    char *line;
    size_t len;
    bool found;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < f->opt->n_attributes && st == GX_OK; ++i) {
        const gx_bitmap_options automatic = {0};
        st = add_attribute(f, f->opt->attributes[i], f->opt->bitmaps ? &f->opt->bitmaps[i] : &automatic, err);
    }
    if (st == GX_OK)
        st = gx_input_line(&f->in, &line, &len, &found, err);
    if (st != GX_OK)
        return st;
    f->line = 1;
    if (!found)
        st = gx_fail(err, GX_EINPUT, "the file is empty; its first line names the columns, as in id<TAB>year:int");
    else
        st = read_names(f, line, len, err);
    if (st == GX_OK)
        st = gx_columns_open(&f->values, f->attributes, f->bitmaps, f->n_attributes, f->dir, err);
    return st == GX_EINPUT || (st == GX_EUSAGE && !f->opt->n_attributes) ? with_line(f, err) : st;
}

/* ---- open and close ---- */

gx_status gx_attribute_file_open(gx_attribute_file **out, const gx_import_options *opt, const char *path, gx_error *err)
{
    *out = NULL;
    gx_attribute_file *f = calloc(1, sizeof *f);
    if (!f)
        return no_memory(err);
    f->opt = opt;
    f->in = GX_INPUT_INIT;
    f->in.binary = true;
    f->in.max_record = MAX_LINE;
    f->in.cancel = opt->cancel;
    f->in.user = opt->user;
    f->counts.size = sizeof f->counts;
    f->dir = gx_directory_of(path);
    f->rows = gx_spool_make(f->dir);
    gx_status st =
        f->dir && gx_external_ids_open(&f->ids) ? gx_input_open(&f->in, opt->attributes_file, err) : no_memory(err);
    if (st == GX_OK)
        st = read_header(f, err);
    if (st == GX_OK)
        *out = f;
    else
        gx_attribute_file_close(f);
    return st;
}

void gx_attribute_file_close(gx_attribute_file *f)
{
    if (!f)
        return;
    gx_input_free(&f->in);
    gx_columns_close(f->values);
    gx_external_ids_close(&f->ids);
    gx_spool_free(&f->rows);
    free(f->columns);
    free(f->fields);
    free(f->names);
    free(f->places);
    free(f->row);
    free(f->packed);
    free(f->window);
    free(f->dir);
    free(f);
}

gx_columns *gx_attribute_file_columns(gx_attribute_file *f)
{
    return f->values;
}

gx_status gx_attribute_file_add_document(gx_attribute_file *f, const char *id, size_t len, gx_error *err)
{
    uint32_t *docid = gx_external_ids_insert(&f->ids, gx_external_ids_key(&f->ids, id, len));
    if (!docid || !gx_reserve(&f->places, &f->max_docs, f->n_docs + (size_t)1, sizeof *f->places))
        return no_memory(err);
    if (*docid != UINT32_MAX)
        return gx_fail(err, GX_EINPUT,
                       "documents %u and %u have the same id, '%.*s', so that no attributes can be given to it", *docid,
                       f->n_docs, (int)(len < 80 ? len : 80), id);
    f->places[f->n_docs] = (place){0, 0};
    *docid = f->n_docs++;
    return GX_OK;
}

/* ---- lines ---- */

static gx_status push_value(gx_attribute_file *f, uint32_t attribute, span value, gx_error *err)
{
    if (value.n == 0)
        return GX_OK;
    if (!gx_reserve(&f->row, &f->max_row, f->n_row + 1, sizeof *f->row))
        return no_memory(err);
    f->row[f->n_row++] = (gx_attribute_value){attribute, value.p, value.n};
    return GX_OK;
}

/* The values of a line into f->row, and its id. */
static gx_status read_fields(gx_attribute_file *f, char *line, size_t len, span *id, gx_error *err)
{
    const uint32_t n = split(line, len, f->fields, f->n_columns);
    gx_status st = GX_OK;
    f->n_row = 0;
    if (n != f->n_columns)
        return gx_fail(err, GX_EINPUT, "%u field%s, where the header has %u", n, n == 1 ? "" : "s", f->n_columns);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        const uint32_t what = f->columns[i];
        const bool several = what < f->n_attributes && f->attributes[what].type != GX_ATTRIBUTE_KEYWORD;
        bool more = what != NOTHING;
        for (span value; more && st == GX_OK;) {
            st = take_value(&f->fields[i], several, &value, &more, err);
            if (what == ID)
                *id = value;
            else if (st == GX_OK)
                st = push_value(f, what, value, err);
        }
    }
    return st;
}

static void put(uint8_t **to, const void *from, size_t n)
{
    memcpy(*to, from, n);
    *to += n;
}

/* The row goes to the spool. */
static gx_status keep_row(gx_attribute_file *f, uint32_t docid, gx_error *err)
{
    size_t n = 4;
    for (size_t i = 0; i < f->n_row; ++i)
        n += 8 + f->row[i].len;
    if (n > UINT32_MAX)
        return gx_fail(err, GX_EINPUT, "a line of more than 4 GiB");
    if (!gx_reserve(&f->packed, &f->max_packed, n, 1))
        return no_memory(err);
    const uint32_t n_row = (uint32_t)f->n_row;
    uint8_t *to = f->packed;
    put(&to, &n_row, 4);
    for (size_t i = 0; i < f->n_row; ++i) {
        const uint32_t len = (uint32_t)f->row[i].len;
        put(&to, &f->row[i].attribute, 4);
        put(&to, &len, 4);
        put(&to, f->row[i].text, len);
    }
    f->places[docid] = (place){gx_spool_bytes(&f->rows), (uint32_t)n};
    return gx_spool_add(&f->rows, f->packed, n, err);
}

static gx_status read_line(gx_attribute_file *f, char *line, size_t len, gx_error *err)
{
    span id = {line, 0};
    gx_status st = read_fields(f, line, len, &id, err);
    if (st != GX_OK)
        return st;
    const uint32_t *docid = gx_external_ids_find(&f->ids, gx_external_ids_key(&f->ids, id.p, id.n));
    const int shown = (int)(id.n < 80 ? id.n : 80);
    if (!docid)
        return gx_fail(err, GX_EINPUT, "no document has the id '%.*s'", shown, id.p);
    if (f->places[*docid].bytes)
        return gx_fail(err, GX_EINPUT, "document '%.*s' has an earlier line", shown, id.p);
    if ((st = gx_columns_set(f->values, f->row, (uint32_t)f->n_row, err)) != GX_OK)
        return st;
    return keep_row(f, *docid, err);
}

/* Tell of a bad line, or fail. */
static gx_status meet_bad_line(gx_attribute_file *f, gx_error *err)
{
    const gx_status st = with_line(f, err);
    if (!f->opt->skip_bad)
        return st;
    ++f->counts.skipped;
    if (f->opt->say)
        f->opt->say(f->opt->user, err->text);
    gx_clear_error(err);
    return GX_OK;
}

static gx_status read_lines(gx_attribute_file *f, gx_error *err)
{
    gx_status st = GX_OK;
    for (bool found = true; st == GX_OK;) {
        char *line;
        size_t len;
        ++f->line;
        st = gx_input_line(&f->in, &line, &len, &found, err);
        if (st == GX_OK && !found)
            break;
        if (st == GX_EINPUT) /* a line that is too long, or a broken stream: it says where */
            return st;
        if (len == 0)
            continue;
        ++f->counts.lines;
        if (st == GX_OK && (st = read_line(f, line, len, err)) == GX_EINPUT)
            st = meet_bad_line(f, err);
    }
    return st;
}

/* ---- the columns ---- */

/* The row of a document, read from the spool, into f->row. */
static gx_status take_row(gx_attribute_file *f, place at, gx_error *err)
{
    f->n_row = 0;
    if (!at.bytes)
        return GX_OK;
    if (at.at < f->window_at || at.at + at.bytes > f->window_at + f->n_window) {
        const uint64_t left = gx_spool_bytes(&f->rows) - at.at;
        const size_t want = at.bytes > WINDOW ? at.bytes : left < WINDOW ? (size_t)left : WINDOW;
        if (!gx_reserve(&f->window, &f->max_window, want, 1))
            return no_memory(err);
        const gx_status st = gx_spool_read(&f->rows, at.at, f->window, want, err);
        if (st != GX_OK)
            return st;
        f->window_at = at.at;
        f->n_window = want;
    }
    const uint8_t *p = f->window + (at.at - f->window_at);
    uint32_t n, head[2];
    memcpy(&n, p, 4);
    p += 4;
    if (!gx_reserve(&f->row, &f->max_row, n + (size_t)1, sizeof *f->row))
        return no_memory(err);
    for (; f->n_row < n; p += head[1]) {
        memcpy(head, p, 8);
        p += 8;
        f->row[f->n_row++] = (gx_attribute_value){head[0], (const char *)p, head[1]};
    }
    return GX_OK;
}

gx_status gx_attribute_file_read(gx_attribute_file *f, gx_error *err)
{
    const gx_import_options *o = f->opt;
    gx_status st = read_lines(f, err);
    for (uint32_t d = 0; d < f->n_docs && st == GX_OK; ++d) {
        if (d % 4096 == 0 && o->cancel && o->cancel(o->user))
            return gx_fail(err, GX_ECANCELLED, "cancelled");
        st = take_row(f, f->places[d], err);
        if (st == GX_OK)
            st = gx_columns_set(f->values, f->row, (uint32_t)f->n_row, err);
        if (st == GX_OK)
            st = gx_columns_add(f->values, err);
        f->counts.without_line += f->places[d].bytes == 0;
    }
    if (st == GX_OK && o->counts)
        *o->counts = f->counts;
    return st;
}
