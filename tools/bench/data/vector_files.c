#include "tools/bench/data/vector_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/files/atomic_file.h"
#include "engine/files/temporary_file.h"
#include "engine/parallel.h"
#include "engine/status.h"

#define CHUNK_VECTORS 1024u
#define CHUNKS_A_THREAD 4u

typedef void draw_fn(gx_sparse_vectors *g, uint64_t number, gx_sparse_vector *out);

/* Vectors that a thread draws one after the other: number `first` and those behind it. */
typedef struct chunk {
    gx_sparse_vectors *generator;
    uint64_t first;
    uint32_t n, n_terms;
    uint32_t ends[CHUNK_VECTORS]; /* [n] behind each vector's terms */
    uint32_t *terms;              /* [n_terms] for rows of a matrix */
    float *weights;               /* [n_terms] */
    char *text;                   /* [text_bytes] for lines of JSON, or NULL: no memory */
    size_t text_bytes;
} chunk;

/* A file being written. */
typedef struct vector_file {
    const gx_vector_files_options *opt;
    gx_atomic_file out;
    char path[4096];
    uint64_t n;
    draw_fn *draw;
    char prefix; /* of ids */
    uint64_t n_terms;
    chunk *chunks; /* [n_chunks] */
    uint32_t n_chunks, threads;
} vector_file;

/* Takes a chunk that has been drawn. `user` is the caller's. */
typedef gx_status take_fn(vector_file *f, const chunk *c, void *user, gx_error *err);

static void draw_rows(void *user, uint32_t number)
{
    const vector_file *f = user;
    chunk *c = &f->chunks[number];
    gx_sparse_vector v;
    c->n_terms = 0;
    for (uint32_t i = 0; i < c->n; ++i) {
        f->draw(c->generator, c->first + i, &v);
        memcpy(c->terms + c->n_terms, v.terms, v.n * sizeof *v.terms);
        memcpy(c->weights + c->n_terms, v.weights, v.n * sizeof *v.weights);
        c->ends[i] = c->n_terms += v.n;
    }
}

static void draw_lines(void *user, uint32_t number)
{
    const vector_file *f = user;
    chunk *c = &f->chunks[number];
    gx_sparse_vector v;
    FILE *to = open_memstream(&c->text, &c->text_bytes);
    c->n_terms = 0;
    for (uint32_t i = 0; i < c->n && to; ++i) {
        f->draw(c->generator, c->first + i, &v);
        c->n_terms += v.n;
        fprintf(to, "{\"id\": \"%c%" PRIu64 "\", \"vector\": {", f->prefix, c->first + i);
        for (uint32_t t = 0; t < v.n; ++t)
            fprintf(to, "%s\"%u\": %.5g", t ? ", " : "", v.terms[t], (double)v.weights[t]);
        fputs("}}\n", to);
    }
    const bool bad = !to || ferror(to);
    if ((to && fclose(to)) || bad) {
        free(to ? c->text : NULL);
        c->text = NULL;
    }
}

/* Draw all vectors by the file's threads, and give them to `take` in their order. */
static gx_status draw_all(vector_file *f, gx_parallel_fn *draw, take_fn *take, void *user, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint64_t i = 0; i < f->n && st == GX_OK;) {
        uint32_t n = 0;
        if (f->opt->cancel && f->opt->cancel(NULL))
            return gx_fail(err, GX_ECANCELLED, "cancelled");
        for (; n < f->n_chunks && i < f->n; ++n) {
            f->chunks[n].first = i;
            f->chunks[n].n = f->n - i < CHUNK_VECTORS ? (uint32_t)(f->n - i) : CHUNK_VECTORS;
            i += f->chunks[n].n;
        }
        gx_parallel_for(f->threads, n, draw, f);
        for (uint32_t j = 0; j < n; ++j) {
            if (st == GX_OK)
                st = take(f, &f->chunks[j], user, err);
            f->n_terms += f->chunks[j].n_terms;
            free(f->chunks[j].text);
            f->chunks[j].text = NULL;
        }
    }
    return st;
}

static gx_status write_lines(vector_file *f, const chunk *c, void *user, gx_error *err)
{
    (void)user;
    if (!c->text)
        return gx_fail(err, GX_ENOMEM, "no memory for lines of %s", f->path);
    if (fwrite(c->text, 1, c->text_bytes, f->out.file) != c->text_bytes)
        return gx_fail(err, GX_EIO, "cannot write %s: %s", f->path, strerror(errno));
    return GX_OK;
}

/* Columns and values wait in temporary files, for the offsets of all rows stand before them. */
enum { COLUMNS, VALUES, N_SPOOLS };

typedef struct matrix_parts {
    int64_t *ends; /* [n + 1] */
    FILE *spools[N_SPOOLS];
} matrix_parts;

static gx_status cannot_spool(const vector_file *f, gx_error *err)
{
    return gx_fail(err, GX_EIO, "cannot write a temporary file beside %s: %s", f->path, strerror(errno));
}

static gx_status spool_rows(vector_file *f, const chunk *c, void *user, gx_error *err)
{
    const matrix_parts *m = user;
    for (uint32_t i = 0; i < c->n; ++i)
        m->ends[c->first + i + 1] = (int64_t)(f->n_terms + c->ends[i]);
    if (fwrite(c->terms, sizeof *c->terms, c->n_terms, m->spools[COLUMNS]) != c->n_terms ||
        fwrite(c->weights, sizeof *c->weights, c->n_terms, m->spools[VALUES]) != c->n_terms)
        return cannot_spool(f, err);
    return GX_OK;
}

static gx_status append_spool(vector_file *f, FILE *spool, gx_error *err)
{
    char buffer[65536];
    size_t n;
    if (fflush(spool) || ferror(spool) || fseeko(spool, 0, SEEK_SET))
        return cannot_spool(f, err);
    while ((n = fread(buffer, 1, sizeof buffer, spool)) > 0)
        fwrite(buffer, 1, n, f->out.file);
    return ferror(spool) ? gx_fail(err, GX_EIO, "cannot read a temporary file beside %s: %s", f->path, strerror(errno))
                         : GX_OK;
}

static gx_status open_spool(FILE **out, const char *dir, gx_error *err)
{
    const int fd = gx_temporary_file_open(dir);
    *out = fd >= 0 ? fdopen(fd, "w+b") : NULL;
    if (*out)
        return GX_OK;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    return gx_fail(err, GX_EIO, "cannot make a temporary file in %s: %s", dir, strerror(why));
}

static gx_status write_csr(vector_file *f, gx_error *err)
{
    char *dir = gx_directory_of(f->path);
    matrix_parts m = {.ends = calloc(f->n + 1, sizeof *m.ends)};
    gx_status st =
        m.ends && dir ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the offsets of %" PRIu64 " vectors", f->n);
    for (int i = 0; i < N_SPOOLS && st == GX_OK; ++i)
        st = open_spool(&m.spools[i], dir, err);
    if (st == GX_OK)
        st = draw_all(f, draw_rows, spool_rows, &m, err);
    if (st == GX_OK) {
        const int64_t head[3] = {(int64_t)f->n, GX_SPARSE_N_TERMS, (int64_t)f->n_terms};
        fwrite(head, sizeof *head, 3, f->out.file);
        fwrite(m.ends, sizeof *m.ends, f->n + 1, f->out.file);
    }
    for (int i = 0; i < N_SPOOLS; ++i) {
        if (st == GX_OK)
            st = append_spool(f, m.spools[i], err);
        if (m.spools[i])
            fclose(m.spools[i]);
    }
    free(m.ends);
    free(dir);
    return st;
}

static gx_status write_file(vector_file *f, gx_error *err)
{
    gx_status st = gx_atomic_file_stream(&f->out, err);
    if (st == GX_OK)
        st = f->opt->csr ? write_csr(f, err) : draw_all(f, draw_lines, write_lines, NULL, err);
    return st == GX_OK ? gx_atomic_file_sync(&f->out, err) : st;
}

static void free_chunks(chunk *chunks, uint32_t n)
{
    for (uint32_t i = 0; chunks && i < n; ++i) {
        gx_sparse_vectors_close(chunks[i].generator);
        free(chunks[i].terms);
        free(chunks[i].weights);
    }
    free(chunks);
}

/* NULL: no memory. */
static chunk *make_chunks(const gx_vector_files_options *opt, uint32_t n)
{
    chunk *chunks = calloc(n, sizeof *chunks);
    for (uint32_t i = 0; chunks && i < n; ++i) {
        chunk *c = &chunks[i];
        const size_t most = (size_t)CHUNK_VECTORS * GX_SPARSE_MAX_VECTOR;
        c->generator = gx_sparse_vectors_open(opt->shape, opt->seed);
        c->terms = opt->csr ? malloc(most * sizeof *c->terms) : NULL;
        c->weights = opt->csr ? malloc(most * sizeof *c->weights) : NULL;
        if (!c->generator || (opt->csr && !(c->terms && c->weights))) {
            free_chunks(chunks, n);
            return NULL;
        }
    }
    return chunks;
}

gx_status gx_vector_files_write(const gx_vector_files_options *opt, gx_vector_files_counts *counts, gx_error *err)
{
    vector_file files[2] = {
        {.opt = opt, .n = opt->n_documents, .draw = gx_sparse_document, .prefix = 'd'},
        {.opt = opt, .n = opt->n_queries, .draw = gx_sparse_query, .prefix = 'q'},
    };
    const char *const kind = opt->csr ? "csr" : "jsonl";
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t threads = opt->threads ? opt->threads : processors > 0 ? (uint32_t)processors : 1;
    const uint32_t n_chunks = CHUNKS_A_THREAD * threads;
    chunk *chunks = make_chunks(opt, n_chunks);
    gx_status st = chunks ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory to generate vectors by %u threads", threads);
    uint32_t n_open = 0;
    if (st == GX_OK && strlen(opt->base) > sizeof files[0].path - 32)
        st = gx_fail(err, GX_EUSAGE, "the name %.80s... is too long", opt->base);
    while (st == GX_OK && n_open < 2) {
        vector_file *f = &files[n_open];
        f->chunks = chunks;
        f->n_chunks = n_chunks;
        f->threads = threads;
        snprintf(f->path, sizeof f->path, "%s.%s%s", opt->base, n_open ? "queries." : "", kind);
        st = gx_atomic_file_open(&f->out, f->path, opt->force ? GX_ATOMIC_FILE_FORCE : 0, err);
        n_open += st == GX_OK;
    }
    for (int i = 1; i >= 0 && st == GX_OK; --i)
        st = write_file(&files[i], err);
    for (int i = 0; i < 2 && st == GX_OK; ++i)
        st = gx_atomic_file_commit(&files[i].out, err);
    while (n_open-- > 0)
        gx_atomic_file_close(&files[n_open].out);
    free_chunks(chunks, n_chunks);
    if (st == GX_OK)
        *counts = (gx_vector_files_counts){opt->n_documents ? (double)files[0].n_terms / (double)opt->n_documents : 0,
                                           opt->n_queries ? (double)files[1].n_terms / (double)opt->n_queries : 0};
    return st;
}
