#include "index/corpus/pieces.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/memory/grow.h"

enum { MOST_FILES = 1024 }; /* of the format `files`, in a piece */

/* A file whose pieces are read or wait for their turn. */
typedef struct corpus_file {
    struct corpus_file *next;
    char *path;
    gx_source_format format;
    uint8_t columns[GX_MAX_COLUMNS]; /* [n_columns] of tsv and csv */
    unsigned n_columns;
    char delimiter;
    bool has_columns;   /* they are known */
    gx_line_cuts *cuts; /* NULL, or its rest is in ranges */
    int fd;             /* of the ranges; -1: none */
    uint64_t lines;     /* before the piece whose turn it is */
    uint32_t n_pieces;  /* whose turn is not over */
    bool filled;        /* no piece follows */
} corpus_file;

/* A whole file in a piece. */
typedef struct whole_file {
    size_t begin, n;   /* in the piece's bytes */
    size_t path, name; /* in its names */
} whole_file;

enum kind { DOCUMENTS, RANGE, BYTES, FILES };

struct gx_piece_of_corpus {
    enum kind kind;
    corpus_file *file; /* NULL: an error that belongs to no open file, or whole files */
    uint64_t base;     /* lines of the file before those of DOCUMENTS */
    uint64_t numbers;  /* of `plain`, that DOCUMENTS have taken */
    uint64_t n_files;  /* opened for this piece and, without a piece of their own, before it */
    whole_file *files; /* [n_whole] */
    size_t n_whole, max_files;
    gx_scratch names;
};
typedef struct gx_piece_of_corpus place;

struct gx_pieces {
    gx_source *source;
    gx_source *readers; /* [n_readers] */
    uint32_t n_readers;
    size_t piece_bytes;
    corpus_file *files; /* all that are left */
    corpus_file *file;  /* the open one, or NULL */
    uint64_t n_files;   /* opened, and not yet counted in a piece */
    uint64_t alone;     /* in.bytes up to which the source's thread reads records itself */
    gx_error pending;   /* to be given next; GX_OK: none */
    bool over;          /* nothing follows what is pending */
};

/* ---- files ---- */

static void free_file(corpus_file *f)
{
    gx_line_cuts_close(f->cuts);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f);
}

/* Free the file if no piece is left of it. */
static void release_file(gx_pieces *c, corpus_file *f)
{
    if (!f->filled || f->n_pieces)
        return;
    corpus_file **at = &c->files;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    free_file(f);
}

static bool no_memory(gx_pieces *c)
{
    gx_fail(&c->pending, GX_ENOMEM, "no memory to read %s", c->source->in.path ? c->source->in.path : "the corpus");
    c->over = true;
    return false;
}

/* Note the source's open file. false: no memory. */
static bool begin_file(gx_pieces *c)
{
    const gx_source *s = c->source;
    corpus_file *f = calloc(1, sizeof *f);
    if (!f || !(f->path = strdup(s->in.path))) {
        free(f);
        return no_memory(c);
    }
    f->fd = -1;
    f->format = s->format;
    f->next = c->files;
    c->files = c->file = f;
    c->alone = 0;
    return true;
}

static void end_file(gx_pieces *c)
{
    corpus_file *const f = c->file;
    c->file = NULL;
    gx_source_close_file(c->source);
    f->filled = true;
    release_file(c, f);
}

/* Go to the next file, unless one is open. false: there is none, or an error is pending. */
static bool open_next(gx_pieces *c)
{
    gx_source *const s = c->source;
    bool end = false;
    while (!s->reading) {
        const uint64_t bad = s->counts.bad, files = s->counts.files;
        const gx_status st = gx_source_continue(s, &end, &c->pending);
        c->n_files += s->counts.files - files;
        s->counts.files = files;
        s->counts.bad = bad;    /* it is counted when its turn comes */
        c->pending.status = st; /* damage behind the first bytes is told of when these have been read */
        c->over = end || (st && st != GX_EINPUT);
        if (st || end)
            return false;
    }
    return c->file || s->format == GX_SOURCE_FILES || begin_file(c);
}

/* ---- filling ---- */

static bool start_piece(gx_pieces *c, gx_line_piece *p)
{
    if (!p->origin && !(p->origin = calloc(1, sizeof *p->origin)))
        return no_memory(c);
    p->origin->kind = DOCUMENTS;
    p->origin->file = NULL;
    p->origin->n_whole = p->origin->names.n = 0;
    p->origin->base = p->origin->n_files = 0;
    p->failed = (gx_error){0};
    p->counts = (gx_source_counts){0};
    p->notes.n = 0;
    p->raw.n = p->lines = p->n_errors = 0;
    p->no_memory = false;
    return true;
}

/* The piece belongs to the open file. */
static void use_file(gx_pieces *c, gx_line_piece *p, enum kind kind)
{
    corpus_file *const f = c->file;
    const gx_source *s = c->source;
    p->origin->kind = kind;
    p->origin->file = f;
    ++f->n_pieces;
    if (kind == DOCUMENTS || f->has_columns)
        return;
    f->has_columns = true;
    f->n_columns = s->n_columns;
    f->delimiter = s->delimiter;
    memcpy(f->columns, s->columns, sizeof f->columns);
}

static size_t document_bytes(const gx_doc_batch *b)
{
    return b->n_bytes + b->n * sizeof *b->docs;
}

static bool is_cut(gx_source_format f)
{
    return gx_format_is_of_lines(f) || gx_format_is_of_trec(f) || f == GX_SOURCE_CSV || f == GX_SOURCE_WARC;
}

/* Whether the source's thread reads the next record itself. */
static bool reads_alone(const gx_pieces *c)
{
    const gx_source *s = c->source;
    return !is_cut(s->format) || gx_line_cuts_wait(s) || s->in.bytes < c->alone;
}

/* Add a record to the piece, as a document or an error. false: no memory. */
static bool add_record(gx_pieces *c, gx_line_piece *p, gx_status st, gx_error *err)
{
    const gx_source *s = c->source;
    if (!st)
        return gx_doc_batch_add(&p->docs, &s->doc.doc, s->doc.line - p->origin->base);
    ++p->n_errors;
    err->status = st;
    c->over = st != GX_EINPUT;
    return gx_doc_batch_add_error(&p->docs, err, s->rec.line);
}

/* Read records of the open file to the piece. */
static void fill_documents(gx_pieces *c, gx_line_piece *p)
{
    gx_source *const s = c->source;
    const gx_source_counts before = s->counts;
    const uint64_t plain_lines = s->plain_lines;
    bool found, ended = false, memory = true;
    use_file(c, p, DOCUMENTS);
    p->origin->base = s->in.line - 1;
    p->docs.numbered = s->format == GX_SOURCE_PLAIN;
    p->docs.number = 0;
    while (memory && !c->over && document_bytes(&p->docs) < c->piece_bytes && reads_alone(c)) {
        gx_error err = {0};
        const gx_status st = gx_source_read_record(s, &found, &err);
        ended = !st && !found;
        if (ended)
            break;
        memory = add_record(c, p, st, &err);
    }
    p->lines = s->in.line - 1 - p->origin->base;
    p->origin->numbers = s->plain_lines - plain_lines;
    s->plain_lines = plain_lines;
    s->counts.documents = before.documents; /* they are counted in their turn */
    s->counts.bad = before.bad;
    p->no_memory = !memory;
    p->bytes = p->docs.n_bytes;
    if (ended)
        end_file(c);
}

/* Bytes at the beginning of the window that are whole records. */
static size_t whole_records(gx_source *s, size_t enough, bool *odd)
{
    const gx_input *in = &s->in;
    const char *const begin = in->buf + in->begin;
    const size_t n = in->end - in->begin;
    if (s->format == GX_SOURCE_CSV)
        return gx_whole_csv(s, enough, odd);
    if (s->format == GX_SOURCE_WARC)
        return gx_whole_warc(s, enough, odd);
    if (!gx_format_is_of_lines(s->format))
        return gx_whole_trec(s, enough, odd);
    const char *end = n > 2 * enough ? memchr(begin + enough, '\n', n - enough) : NULL;
    if (!end && n)
        end = memrchr(begin, '\n', n);
    *odd = !end && n > in->max_record;
    return end ? (size_t)(end + 1 - begin) : 0;
}

/* Move n bytes of the window to the piece. false: no memory. */
static bool take_bytes(gx_line_piece *p, gx_input *in, size_t n)
{
    const bool memory = gx_scratch_add(&p->raw, in->buf + in->begin, n);
    gx_input_consume(in, n);
    return memory;
}

/* Read more, where the window holds no whole record. An error names the line that the reader would be at. */
static gx_status fill_window(gx_source *s, gx_error *err)
{
    const uint64_t line = s->in.line;
    s->in.line += s->format == GX_SOURCE_WARC ? gx_warc_lines_ahead(s) : 0;
    const gx_status st = gx_input_fill(&s->in, err);
    s->in.line = line;
    return st;
}

/* Fill the piece with whole records of the open file. */
static void fill_bytes(gx_pieces *c, gx_line_piece *p)
{
    gx_source *const s = c->source;
    gx_input *const in = &s->in;
    bool odd = false, memory = true;
    use_file(c, p, BYTES);
    while (memory && !odd && p->raw.n < c->piece_bytes && s->reading) {
        const size_t n = whole_records(s, c->piece_bytes - p->raw.n, &odd);
        memory = take_bytes(p, in, n);
        if (n || odd)
            continue;
        if (in->eof) { /* a last record without an end */
            memory = memory && take_bytes(p, in, in->end - in->begin);
            end_file(c);
        } else {
            const gx_status st = fill_window(s, &p->failed);
            p->failed.status = st;
            c->over = st && st != GX_EINPUT;
            if (st)
                break;
        }
    }
    if (odd)
        c->alone = in->bytes + 1; /* until more is read: records of the window, at least */
    memory = memory && gx_scratch_reserve(&p->raw, GX_INPUT_SLACK);
    if (memory)
        memset(p->raw.p + p->raw.n, 0, GX_INPUT_SLACK);
    else
        no_memory(c);
    p->bytes = p->raw.n;
}

/* Take the next range of the open file. false: its rest is not in ranges. */
static bool fill_range(gx_pieces *c, gx_line_piece *p)
{
    gx_source *const s = c->source;
    corpus_file *const f = c->file;
    gx_error err;
    if (!f->cuts && s->may_cut && gx_line_cuts_open(&f->cuts, s, 0, c->piece_bytes, &err) == GX_OK && f->cuts) {
        f->fd = fcntl(s->in.fd, F_DUPFD_CLOEXEC, 0);
        if (f->fd < 0) {
            gx_line_cuts_close(f->cuts);
            f->cuts = NULL;
        } else {
            gx_line_cuts_use(f->cuts, f->fd, f->path);
            gx_line_cuts_take(s);
        }
    }
    s->may_cut = false; /* it is tried once */
    if (!f->cuts)
        return false;
    use_file(c, p, RANGE);
    if (gx_line_cuts_claim(f->cuts, p))
        return true;
    --f->n_pieces;
    p->origin->kind = DOCUMENTS; /* none so far */
    p->origin->file = NULL;
    end_file(c);
    return false;
}

static bool add_name(gx_scratch *names, const char *name, size_t *at)
{
    *at = names->n;
    return gx_scratch_add(names, name, strlen(name) + 1);
}

/* Read the open file to its end. false: it is longer than a document may be, or fails (pending). */
static bool read_whole(gx_pieces *c)
{
    gx_input *const in = &c->source->in;
    while (!in->eof && in->end - in->begin <= in->max_record) {
        const gx_status st = gx_input_fill(in, &c->pending);
        if (st) {
            c->pending.status = st;
            c->over = st != GX_EINPUT;
            c->source->first = false;
            return false;
        }
    }
    return in->end - in->begin <= in->max_record;
}

/* Add the open file, whose bytes are in the window, to the piece. false: no memory. */
static bool add_whole(gx_pieces *c, gx_line_piece *p)
{
    gx_source *const s = c->source;
    place *const origin = p->origin;
    whole_file w = {p->raw.n, s->in.end - s->in.begin, 0, 0};
    if (!gx_reserve(&origin->files, &origin->max_files, origin->n_whole + 1, sizeof *origin->files) ||
        !add_name(&origin->names, s->in.path, &w.path) || !add_name(&origin->names, s->file.name, &w.name) ||
        !gx_scratch_add(&p->raw, s->in.buf + s->in.begin, w.n) || !gx_scratch_reserve(&p->raw, GX_INPUT_SLACK))
        return no_memory(c);
    origin->files[origin->n_whole++] = w;
    memset(p->raw.p + p->raw.n, 0, GX_INPUT_SLACK);
    s->in.begin = s->in.end;
    gx_source_close_file(s);
    return true;
}

/* Fill the piece with whole files, as many as it has room for. */
static void fill_files(gx_pieces *c, gx_line_piece *p)
{
    gx_source *const s = c->source;
    p->origin->kind = FILES;
    do
        if (!s->first || !read_whole(c) || !add_whole(c, p))
            break;
    while (p->raw.n < c->piece_bytes && p->origin->n_whole < MOST_FILES && open_next(c) &&
           s->format == GX_SOURCE_FILES);
    p->bytes = p->raw.n;
}

/* Give the pending error. */
static bool fill_error(gx_pieces *c, gx_line_piece *p)
{
    const gx_error err = c->pending;
    c->pending = (gx_error){0};
    ++p->n_errors;
    p->no_memory = !gx_doc_batch_add_error(&p->docs, &err, 0);
    p->bytes = p->docs.n_bytes;
    return true;
}

bool gx_pieces_fill(gx_pieces *c, gx_line_piece *p)
{
    gx_source *const s = c->source;
    bool any = false;
    if (!start_piece(c, p))
        return false;
    gx_doc_batch_clear(&p->docs);
    p->docs.numbered = false;
    while (!any && !c->pending.status && !c->over && open_next(c)) {
        if (s->format == GX_SOURCE_FILES && s->first) {
            fill_files(c, p);
            any = p->origin->n_whole > 0;
        }
        if (any || c->pending.status || !s->reading)
            continue;
        if (!c->file && !begin_file(c))
            break;
        if (reads_alone(c)) {
            fill_documents(c, p);
            any = true;
        } else if (!(any = fill_range(c, p)) && s->reading) {
            fill_bytes(c, p);
            any = true;
        }
    }
    if (!any && c->pending.status)
        any = fill_error(c, p);
    p->origin->n_files = c->n_files;
    c->n_files = 0;
    return any || p->origin->n_files > 0;
}

gx_status gx_pieces_failure(const gx_pieces *c, gx_error *err)
{
    return c->pending.status ? gx_fail(err, c->pending.status, "%s", c->pending.text) : GX_OK;
}

/* ---- reading ---- */

/* Documents that the source's thread has read: look at each. */
static void look_at_documents(gx_line_piece *p, const atomic_bool *stop, gx_piece_document_fn *look, void *user)
{
    const place *origin = p->origin;
    gx_doc_parts parts = {0};
    for (size_t i = 0; i < p->docs.n && !p->no_memory && !atomic_load_explicit(stop, memory_order_relaxed); ++i) {
        gx_document doc;
        gx_error err = {0};
        if (p->docs.docs[i].status)
            continue;
        p->no_memory = !gx_doc_batch_get(&p->docs, i, &parts, &doc);
        const gx_status st = p->no_memory ? GX_OK : look(user, i, &doc, &err);
        if (!st)
            continue;
        err.status = st;
        if (st == GX_EINPUT)
            gx_piece_add_place(origin->file->path, origin->base + p->docs.docs[i].line, &err);
        ++p->n_errors;
        p->no_memory = !gx_doc_batch_set_error(&p->docs, i, &err);
        p->docs.docs[i].left_out = true;
    }
    gx_doc_parts_free(&parts);
}

/* Split whole files to their documents. */
static void read_files(gx_source *reader, gx_line_piece *p, const atomic_bool *stop, gx_piece_document_fn *look,
                       void *user)
{
    const place *origin = p->origin;
    bool memory = true;
    reader->format = GX_SOURCE_FILES;
    reader->counts = (gx_source_counts){0};
    reader->notes.n = 0;
    reader->in.bytes = reader->in.raw_bytes = reader->in.nul_bytes = reader->in.too_long = 0;
    p->docs.raw = p->raw.p;
    p->docs.n_raw = p->raw.n;
    for (size_t i = 0; i < origin->n_whole && memory && !atomic_load_explicit(stop, memory_order_relaxed); ++i) {
        const whole_file *w = &origin->files[i];
        bool more;
        gx_input_open_bytes(&reader->in, origin->names.p + w->path, p->raw.p + w->begin, w->n, false);
        reader->file.name = origin->names.p + w->name;
        reader->first = true;
        memory = gx_piece_read_record(reader, p, look, user, &more);
        gx_input_close(&reader->in);
    }
    reader->first = false;
    p->no_memory = !memory;
    p->counts = gx_source_get_counts(reader);
    gx_notes_merge(&p->notes, &reader->notes, 0);
}

void gx_pieces_read(gx_pieces *c, uint32_t number, gx_line_piece *p, const atomic_bool *stop,
                    gx_piece_document_fn *look, void *user)
{
    gx_source *const reader = &c->readers[number];
    const corpus_file *f = p->origin->file;
    if (p->origin->kind == DOCUMENTS) {
        look_at_documents(p, stop, look, user);
        return;
    }
    if (p->origin->kind == FILES) {
        read_files(reader, p, stop, look, user);
        return;
    }
    reader->format = f->format;
    reader->n_columns = f->n_columns;
    reader->delimiter = f->delimiter;
    memcpy(reader->columns, f->columns, f->n_columns);
    if (p->origin->kind == RANGE)
        gx_line_cuts_load(f->cuts, p);
    gx_piece_parse(reader, f->path, p, p->origin->kind == RANGE, f->format == GX_SOURCE_PLAIN, stop, look, user);
}

/* ---- a piece's turn ---- */

gx_status gx_pieces_begin(gx_pieces *c, gx_line_piece *p, gx_error *err)
{
    gx_source *const s = c->source;
    const char *path = p->origin->file ? p->origin->file->path : "the corpus";
    if (s->opt.cancel && s->opt.cancel(s->opt.user))
        return gx_fail(err, GX_ECANCELLED, "interrupted while reading %s", path);
    p->docs.number = s->plain_lines;
    if (p->docs.numbered) /* a line in which the file fails has a number, too */
        s->plain_lines +=
            p->origin->kind == DOCUMENTS ? p->origin->numbers : p->lines + (p->failed.status == GX_EINPUT);
    s->counts.files += p->origin->n_files;
    gx_piece_add_counts(p, p->origin->file ? p->origin->file->lines : 0, s);
    return p->no_memory ? gx_fail(err, GX_ENOMEM, "no memory to read %s", path) : GX_OK;
}

void gx_pieces_end(gx_pieces *c, gx_line_piece *p)
{
    corpus_file *const f = p->origin->file;
    p->origin->file = NULL;
    if (!f)
        return;
    f->lines += p->lines;
    --f->n_pieces;
    release_file(c, f);
}

const char *gx_pieces_path(const gx_line_piece *p, size_t i)
{
    const place *origin = p->origin;
    return origin->kind == FILES ? origin->names.p + origin->files[i].path : origin->file->path;
}

uint64_t gx_pieces_line(const gx_line_piece *p, size_t i)
{
    const place *origin = p->origin;
    const uint64_t line = p->docs.docs[i].line;
    return origin->kind == FILES ? line : origin->kind == DOCUMENTS ? origin->base + line : origin->file->lines + line;
}

gx_status gx_pieces_error(const gx_line_piece *p, size_t i, gx_error *err)
{
    const place *origin = p->origin;
    if (origin->kind == RANGE || origin->kind == BYTES)
        return gx_piece_error(p, i, origin->file->path, origin->file->lines, err);
    size_t n;
    const char *const words = gx_doc_batch_error(&p->docs, i, &n);
    return gx_fail(err, p->docs.docs[i].status, "%.*s", (int)n, words);
}

void gx_piece_of_corpus_free(struct gx_piece_of_corpus *origin)
{
    if (!origin)
        return;
    free(origin->files);
    free(origin->names.p);
    free(origin);
}

/* ---- opening and closing ---- */

gx_status gx_pieces_open(gx_pieces **out, gx_source *s, uint32_t n_readers, size_t piece_bytes, gx_error *err)
{
    gx_pieces *c = calloc(1, sizeof *c);
    gx_status st = GX_OK;
    *out = NULL;
    if (!c || !(c->readers = calloc(n_readers, sizeof *c->readers)))
        st = gx_fail(err, GX_ENOMEM, "no memory to read the corpus");
    for (; !st && c->n_readers < n_readers; ++c->n_readers)
        st = gx_piece_open_reader(&c->readers[c->n_readers], s, err);
    if (st) {
        gx_pieces_close(c);
        return st;
    }
    c->source = s;
    c->piece_bytes = piece_bytes;
    *out = c;
    return GX_OK;
}

void gx_pieces_close(gx_pieces *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n_readers; ++i)
        gx_source_free_buffers(&c->readers[i]);
    while (c->files) {
        corpus_file *const f = c->files;
        c->files = f->next;
        free_file(f);
    }
    free(c->readers);
    free(c);
}
