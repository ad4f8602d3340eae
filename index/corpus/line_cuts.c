#include "index/corpus/line_cuts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAST_PIECES 4u               /* shorter rests of a file are not cut */
#define READ_BYTES ((size_t)64 << 10) /* least that is asked of the system at once */

struct gx_line_cuts {
    const char *path;
    int fd;             /* the source's */
    gx_source *readers; /* [n_readers], one a thread */
    uint32_t n_readers;
    size_t piece_bytes;
    uint64_t at, size; /* where the next piece begins; of the file, when it was opened */
    bool of_lines;     /* records are lines */
    bool plain;        /* a document's id is the number of its line, over all files */
    bool cut;          /* no piece is left */
    uint64_t lines;    /* before the piece whose turn it is */
};

/* ---- cutting ---- */

/* Behind the first end of a record at or behind `from`; the file's end: UINT64_MAX. A record ends
 * with a line, or, in TREC's formats, with </DOC>: whether it stands in a document or between two,
 * no document is open behind it. */
static uint64_t find_end(const gx_line_cuts *c, uint64_t from)
{
    const size_t before = c->of_lines ? 0 : GX_TREC_END_TAG - 1; /* bytes of a tag that may be cut off */
    char bytes[4096];
    for (uint64_t at = from;;) {
        const ssize_t n = pread(c->fd, bytes, sizeof bytes, (off_t)at);
        if (n <= 0)
            return UINT64_MAX;
        const char *end = memchr(bytes, '\n', (size_t)n);
        if (c->of_lines && end)
            return at + (uint64_t)(end - bytes) + 1;
        for (const char *p = bytes; !c->of_lines && (p = memchr(p, '<', (size_t)(bytes + n - p))); ++p) {
            const size_t n_tag = gx_trec_end_tag(p, bytes + n);
            if (n_tag)
                return at + (uint64_t)(p - bytes) + n_tag;
        }
        if (n <= (ssize_t)before)
            return UINT64_MAX;
        at += (uint64_t)n - before;
    }
}

bool gx_line_cuts_claim(gx_line_cuts *c, gx_line_piece *p)
{
    if (c->cut)
        return false;
    p->begin = c->at;
    p->end = c->size - c->at > 2 * c->piece_bytes ? find_end(c, c->at + c->piece_bytes - 1) : UINT64_MAX;
    p->bytes = (size_t)((p->end < c->size ? p->end : c->size) - p->begin);
    c->at = p->end;
    c->cut = p->end >= c->size;
    if (c->cut)
        p->end = UINT64_MAX; /* and what has been appended since */
    return true;
}

/* ---- reading ---- */

void gx_piece_add_place(const char *path, uint64_t line, gx_error *err)
{
    gx_error with_place = {.status = err->status};
    const int n = snprintf(with_place.text, sizeof with_place.text, "%s:%" PRIu64 ": ", path, line);
    if (n > 0 && (size_t)n < sizeof with_place.text)
        snprintf(with_place.text + n, sizeof with_place.text - (size_t)n, "%.900s", err->text);
    *err = with_place;
}

bool gx_piece_read_record(gx_source *reader, gx_line_piece *p, gx_piece_document_fn *look, void *user, bool *more)
{
    gx_error err = {0};
    gx_status st = gx_source_read_record(reader, more, &err);
    const bool found = !st && *more;
    if (!st && !found)
        return true;
    if (!st && look && (st = look(user, p->docs.n, &reader->doc.doc, &err)) == GX_EINPUT)
        gx_piece_add_place(reader->doc.file, reader->doc.line, &err);
    *more = st == GX_OK || st == GX_EINPUT;
    if (!st)
        return gx_doc_batch_add(&p->docs, &reader->doc.doc, reader->doc.line);
    ++p->n_errors;
    if (!gx_doc_batch_add_error(&p->docs, &err, reader->rec.line))
        return false;
    p->docs.docs[p->docs.n - 1].left_out = found; /* the record is good, and look refuses it */
    return true;
}

void gx_line_cuts_load(const gx_line_cuts *c, gx_line_piece *p)
{
    p->raw.n = 0;
    p->failed = (gx_error){0};
    for (uint64_t at = p->begin; at < p->end; at = p->begin + p->raw.n) {
        const uint64_t rest = p->end == UINT64_MAX ? p->bytes : p->end - at;
        const size_t some = rest < READ_BYTES ? READ_BYTES : rest > (1u << 30) ? 1u << 30 : (size_t)rest;
        if (!gx_scratch_reserve(&p->raw, some + GX_INPUT_SLACK)) {
            gx_fail(&p->failed, GX_ENOMEM, "no memory to read %s", c->path);
            break;
        }
        const ssize_t n =
            pread(c->fd, p->raw.p + p->raw.n, some < p->end - at ? some : (size_t)(p->end - at), (off_t)at);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR) {
            gx_fail(&p->failed, GX_EIO, "cannot read %s: %s", c->path, strerror(errno));
            break;
        }
        p->raw.n += n > 0 ? (size_t)n : 0;
    }
    if (p->failed.status)
        p->raw.n = 0;
    else if (gx_scratch_reserve(&p->raw, GX_INPUT_SLACK))
        memset(p->raw.p + p->raw.n, 0, GX_INPUT_SLACK);
    else
        gx_fail(&p->failed, GX_ENOMEM, "no memory to read %s", c->path);
}

void gx_piece_parse(gx_source *reader, const char *path, gx_line_piece *p, bool fresh, bool numbered,
                    const atomic_bool *stop, gx_piece_document_fn *look, void *user)
{
    gx_doc_batch_clear(&p->docs);
    p->docs.numbered = numbered;
    p->n_errors = 0;
    reader->counts = (gx_source_counts){0};
    reader->notes.n = 0;
    reader->in.bytes = reader->in.raw_bytes = reader->in.nul_bytes = reader->in.too_long = 0;
    gx_input_open_bytes(&reader->in, path, p->raw.p, p->raw.n, fresh);
    p->docs.raw = p->raw.p;
    p->docs.n_raw = p->raw.n;
    bool more = p->raw.n > 0, memory = true;
    while (more && memory && !atomic_load_explicit(stop, memory_order_relaxed))
        memory = gx_piece_read_record(reader, p, look, user, &more);
    if (memory && p->failed.status) {
        ++p->n_errors;
        memory = gx_doc_batch_add_error(&p->docs, &p->failed, reader->in.line);
    }
    p->no_memory = !memory;
    p->counts = gx_source_get_counts(reader);
    p->notes.n = 0;
    gx_notes_merge(&p->notes, &reader->notes, 0);
    p->docs.number = 0;
    p->lines = reader->in.line - 1;
    gx_input_close(&reader->in);
}

void gx_line_cuts_read(gx_line_cuts *c, uint32_t number, gx_line_piece *p, const atomic_bool *stop,
                       gx_piece_document_fn *look, void *user)
{
    gx_line_cuts_load(c, p);
    gx_piece_parse(&c->readers[number], c->path, p, true, c->plain, stop, look, user);
}

/* ---- opening and closing ---- */

bool gx_format_is_of_lines(gx_source_format f)
{
    return f == GX_SOURCE_JSONL || f == GX_SOURCE_TSV || f == GX_SOURCE_VECTORS || f == GX_SOURCE_PLAIN;
}

bool gx_format_is_of_trec(gx_source_format f)
{
    return f == GX_SOURCE_TRECTEXT || f == GX_SOURCE_TRECWEB;
}

/* The formats whose first record must have been read: it may name the columns, or be the proof that
 * there is one. */
static bool needs_first_record(gx_source_format f)
{
    return f == GX_SOURCE_TSV || gx_format_is_of_trec(f) || f == GX_SOURCE_CSV;
}

bool gx_line_cuts_wait(const gx_source *s)
{
    return s->first && needs_first_record(s->format);
}

/* Whether the rest of the open file can be cut, and where it begins and ends. */
static bool can_cut(const gx_source *s, size_t least, uint64_t *at, uint64_t *size)
{
    struct stat st;
    const gx_input *in = &s->in;
    if (!(gx_format_is_of_lines(s->format) || gx_format_is_of_trec(s->format)) || in->archive ||
        gx_input_is_packed(in) || in->latin1 || in->nul_bytes || in->fd < 0 || fstat(in->fd, &st) != 0 ||
        !S_ISREG(st.st_mode))
        return false;
    const off_t read_to = lseek(in->fd, 0, SEEK_CUR);
    if (read_to < 0 || (uint64_t)read_to < in->end - in->begin)
        return false;
    *at = (uint64_t)read_to - (in->end - in->begin);
    *size = (uint64_t)st.st_size;
    return *size > *at && *size - *at >= least;
}

gx_status gx_piece_open_reader(gx_source *reader, const gx_source *s, gx_error *err)
{
    reader->opt = s->opt;
    reader->in = GX_INPUT_INIT;
    reader->in.max_record = s->in.max_record;
    reader->format = s->format;
    reader->n_given = s->n_given;
    reader->n_columns = s->n_columns;
    reader->delimiter = s->delimiter;
    memcpy(reader->given, s->given, sizeof s->given);
    memcpy(reader->columns, s->columns, sizeof s->columns);
    return gx_json_members_parse(reader, err);
}

gx_status gx_line_cuts_open(gx_line_cuts **out, gx_source *s, uint32_t n_readers, size_t piece_bytes, gx_error *err)
{
    uint64_t at = 0, size = 0;
    *out = NULL;
    if (!can_cut(s, LEAST_PIECES * piece_bytes, &at, &size))
        return GX_OK;
    gx_line_cuts *c = calloc(1, sizeof *c);
    if (!c || !(c->readers = calloc(n_readers + (size_t)1, sizeof *c->readers))) {
        free(c);
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    }
    c->path = s->in.path;
    c->fd = s->in.fd;
    c->piece_bytes = piece_bytes;
    c->of_lines = gx_format_is_of_lines(s->format);
    c->plain = s->format == GX_SOURCE_PLAIN;
    c->at = at;
    c->size = size;
    c->lines = s->in.line - 1;
    gx_status st = GX_OK;
    for (; st == GX_OK && c->n_readers < n_readers; ++c->n_readers)
        st = gx_piece_open_reader(&c->readers[c->n_readers], s, err);
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

void gx_line_cuts_use(gx_line_cuts *c, int fd, const char *path)
{
    c->fd = fd;
    c->path = path;
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

void gx_line_piece_clear(gx_line_piece *p, size_t most)
{
    if (p->docs.max_bytes > most)
        gx_doc_batch_free(&p->docs);
    if (p->raw.cap > most) {
        free(p->raw.p);
        p->raw = (gx_scratch){0};
    }
    gx_doc_batch_clear(&p->docs);
}

void gx_line_piece_free(gx_line_piece *p)
{
    gx_doc_batch_free(&p->docs);
    gx_piece_of_corpus_free(p->origin);
    free(p->raw.p);
}

/* ---- a piece's turn ---- */

void gx_piece_add_counts(const gx_line_piece *p, uint64_t lines, gx_source *s)
{
    gx_notes_merge(&s->notes, &p->notes, lines);
    s->counts.empty += p->counts.empty;
    s->counts.latin1 += p->counts.latin1;
    s->counts.replaced += p->counts.replaced;
    s->in.bytes += p->counts.bytes;
    s->in.raw_bytes += p->counts.raw_bytes;
    s->in.nul_bytes += p->counts.nul_bytes;
    s->in.too_long += p->counts.too_long;
}

gx_status gx_line_cuts_begin(gx_line_cuts *c, gx_source *s, gx_line_piece *p, gx_error *err)
{
    if (s->opt.cancel && s->opt.cancel(s->opt.user))
        return gx_fail(err, GX_ECANCELLED, "interrupted while reading %s", c->path);
    p->docs.number = s->plain_lines;
    if (c->plain)
        s->plain_lines += p->lines;
    gx_piece_add_counts(p, c->lines, s);
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

gx_status gx_line_cuts_error(const gx_line_cuts *c, const gx_line_piece *p, size_t i, gx_error *err)
{
    return gx_piece_error(p, i, c->path, c->lines, err);
}

/* A reader's words begin with the path and, mostly, with a line of the piece. */
gx_status gx_piece_error(const gx_line_piece *p, size_t i, const char *file, uint64_t lines, gx_error *err)
{
    size_t n;
    const char *const words = gx_doc_batch_error(&p->docs, i, &n);
    const size_t path = strlen(file);
    const gx_status st = p->docs.docs[i].status;
    char *end;
    if (p->failed.status && i + 1 == p->docs.n) /* words about the file, not about a record of the piece */
        return gx_fail(err, st, "%.*s", (int)n, words);
    if (n > path + 2 && memcmp(words, file, path) == 0 && words[path] == ':' && words[path + 1] >= '0' &&
        words[path + 1] <= '9') {
        const uint64_t line = strtoull(words + path + 1, &end, 10);
        return gx_fail(err, st, "%s:%" PRIu64 "%.*s", file, lines + line, (int)(words + n - end), end);
    }
    return gx_fail(err, st, "%.*s", (int)n, words);
}
