#include "index/corpus/line_cuts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAST_PIECES 4u /* shorter rests of a file are not cut */

struct gx_line_cuts {
    const char *path;
    int fd;             /* the source's */
    gx_source *readers; /* [n_readers], one a thread */
    uint32_t n_readers;
    size_t piece_bytes;
    uint64_t at, size; /* where the next piece begins; of the file, when it was opened */
    bool cut;          /* no piece is left */
    uint64_t lines;    /* before the piece whose turn it is */
};

/* ---- cutting ---- */

/* The first line that begins at or behind `from`; the file's end: UINT64_MAX. */
static uint64_t find_line(const gx_line_cuts *c, uint64_t from)
{
    char bytes[4096];
    for (uint64_t at = from - 1;;) { /* a line that begins at `from` follows a line end */
        const ssize_t n = pread(c->fd, bytes, sizeof bytes, (off_t)at);
        if (n <= 0)
            return UINT64_MAX;
        const char *end = memchr(bytes, '\n', (size_t)n);
        if (end)
            return at + (uint64_t)(end - bytes) + 1;
        at += (uint64_t)n;
    }
}

bool gx_line_cuts_claim(gx_line_cuts *c, gx_line_piece *p)
{
    if (c->cut)
        return false;
    p->begin = c->at;
    p->end = c->size - c->at > 2 * c->piece_bytes ? find_line(c, c->at + c->piece_bytes) : UINT64_MAX;
    p->bytes = (size_t)((p->end < c->size ? p->end : c->size) - p->begin);
    c->at = p->end;
    c->cut = p->end >= c->size;
    if (c->cut)
        p->end = UINT64_MAX; /* and what has been appended since */
    return true;
}

/* ---- reading ---- */

/* Make the words of an error those of a bad document of the reader's. */
static void add_place(const gx_source *reader, gx_error *err)
{
    gx_error with_place = {.status = err->status};
    const int n =
        snprintf(with_place.text, sizeof with_place.text, "%s:%" PRIu64 ": ", reader->doc.file, reader->doc.line);
    if (n > 0 && (size_t)n < sizeof with_place.text)
        snprintf(with_place.text + n, sizeof with_place.text - (size_t)n, "%.900s", err->text);
    *err = with_place;
}

/* Read a record. *more: another may follow. */
static bool read_record(gx_source *reader, gx_line_piece *p, gx_piece_document_fn *look, void *user, bool *more)
{
    gx_error err = {0};
    gx_status st = gx_source_read_record(reader, more, &err);
    const bool found = !st && *more;
    if (!st && !found)
        return true;
    if (!st && look && (st = look(user, &reader->doc.doc, &err)) == GX_EINPUT)
        add_place(reader, &err);
    *more = st == GX_OK || st == GX_EINPUT;
    if (!st)
        return gx_doc_batch_add(&p->docs, &reader->doc.doc, reader->doc.line);
    ++p->n_errors;
    if (!gx_doc_batch_add_error(&p->docs, &err, reader->rec.line))
        return false;
    p->docs.docs[p->docs.n - 1].left_out = found; /* the record is good, and look refuses it */
    return true;
}

void gx_line_cuts_read(gx_line_cuts *c, uint32_t number, gx_line_piece *p, const atomic_bool *stop,
                       gx_piece_document_fn *look, void *user)
{
    gx_source *const reader = &c->readers[number];
    gx_doc_batch_clear(&p->docs);
    p->n_errors = 0;
    reader->counts = (gx_source_counts){0};
    reader->in.bytes = reader->in.raw_bytes = reader->in.nul_bytes = reader->in.too_long = 0;
    gx_input_open_range(&reader->in, c->path, c->fd, p->begin, p->end);
    bool more = true, memory = true;
    while (more && memory && !atomic_load_explicit(stop, memory_order_relaxed))
        memory = read_record(reader, p, look, user, &more);
    p->no_memory = !memory;
    p->counts = gx_source_get_counts(reader);
    p->lines = reader->in.line - 1;
    gx_input_close(&reader->in);
}

/* ---- opening and closing ---- */

static bool is_of_lines(gx_source_format format)
{
    return format == GX_SOURCE_JSONL || format == GX_SOURCE_TSV || format == GX_SOURCE_VECTORS;
}

/* Whether the rest of the open file can be cut, and where it begins and ends. */
static bool can_cut(const gx_source *s, size_t least, uint64_t *at, uint64_t *size)
{
    struct stat st;
    const gx_input *in = &s->in;
    if (!is_of_lines(s->format) || in->archive || in->layers[0].unpack || in->latin1 || in->nul_bytes || in->fd < 0 ||
        fstat(in->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    const off_t read_to = lseek(in->fd, 0, SEEK_CUR);
    if (read_to < 0 || (uint64_t)read_to < in->end - in->begin)
        return false;
    *at = (uint64_t)read_to - (in->end - in->begin);
    *size = (uint64_t)st.st_size;
    return *size > *at && *size - *at >= least;
}

static gx_status open_reader(gx_source *reader, const gx_source *s, gx_error *err)
{
    reader->opt = s->opt;
    reader->in = GX_INPUT_INIT;
    reader->in.max_record = s->in.max_record;
    reader->format = s->format;
    reader->n_given = s->n_given;
    reader->n_columns = s->n_columns;
    memcpy(reader->given, s->given, sizeof s->given);
    memcpy(reader->columns, s->columns, sizeof s->columns);
    return gx_json_fields_parse(reader, err);
}

gx_status gx_line_cuts_open(gx_line_cuts **out, const gx_source *s, uint32_t n_readers, size_t piece_bytes,
                            gx_error *err)
{
    uint64_t at, size;
    *out = NULL;
    if (!can_cut(s, LEAST_PIECES * piece_bytes, &at, &size))
        return GX_OK;
    gx_line_cuts *c = calloc(1, sizeof *c);
    if (!c || !(c->readers = calloc(n_readers, sizeof *c->readers))) {
        free(c);
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    }
    c->path = s->in.path;
    c->fd = s->in.fd;
    c->piece_bytes = piece_bytes;
    c->at = at;
    c->size = size;
    c->lines = s->in.line - 1;
    gx_status st = GX_OK;
    for (; st == GX_OK && c->n_readers < n_readers; ++c->n_readers)
        st = open_reader(&c->readers[c->n_readers], s, err);
    if (st) {
        gx_line_cuts_close(c);
        return st;
    }
    *out = c;
    return GX_OK;
}

void gx_line_cuts_take(gx_source *s)
{
    const size_t unread = s->in.end - s->in.begin; /* the readers read it again */
    s->in.bytes -= unread;
    s->in.raw_bytes -= unread;
    s->in.begin = s->in.end;
}

void gx_line_cuts_close(gx_line_cuts *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n_readers; ++i)
        gx_source_free_buffers(&c->readers[i]);
    free(c->readers);
    free(c);
}

void gx_line_piece_free(gx_line_piece *p)
{
    gx_doc_batch_free(&p->docs);
}

/* ---- a piece's turn ---- */

gx_status gx_line_cuts_begin(gx_line_cuts *c, gx_source *s, const gx_line_piece *p, gx_error *err)
{
    if (s->opt.cancel && s->opt.cancel(s->opt.user))
        return gx_fail(err, GX_ECANCELLED, "interrupted while reading %s", c->path);
    s->counts.empty += p->counts.empty;
    s->counts.latin1 += p->counts.latin1;
    s->counts.replaced += p->counts.replaced;
    s->in.bytes += p->counts.bytes;
    s->in.raw_bytes += p->counts.raw_bytes;
    s->in.nul_bytes += p->counts.nul_bytes;
    s->in.too_long += p->counts.too_long;
    return p->no_memory ? gx_fail(err, GX_ENOMEM, "no memory to read %s", c->path) : GX_OK;
}

void gx_line_cuts_end(gx_line_cuts *c, const gx_line_piece *p)
{
    c->lines += p->lines;
}

const char *gx_line_cuts_path(const gx_line_cuts *c)
{
    return c->path;
}

uint64_t gx_line_cuts_line(const gx_line_cuts *c, const gx_line_piece *p, size_t i)
{
    return c->lines + p->docs.docs[i].line;
}

/* A reader's words begin with the path and, mostly, with a line of the piece. */
gx_status gx_line_cuts_error(const gx_line_cuts *c, const gx_line_piece *p, size_t i, gx_error *err)
{
    size_t n;
    const char *const words = gx_doc_batch_error(&p->docs, i, &n);
    const size_t path = strlen(c->path);
    const gx_status st = p->docs.docs[i].status;
    char *end;
    if (n > path + 2 && memcmp(words, c->path, path) == 0 && words[path] == ':' && words[path + 1] >= '0' &&
        words[path + 1] <= '9') {
        const uint64_t line = strtoull(words + path + 1, &end, 10);
        return gx_fail(err, st, "%s:%" PRIu64 "%.*s", c->path, c->lines + line, (int)(words + n - end), end);
    }
    return gx_fail(err, st, "%.*s", (int)n, words);
}
