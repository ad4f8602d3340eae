#include "tools/bench/vector_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/atomic_file.h"
#include "engine/status.h"
#include "engine/temporary_file.h"

typedef void draw_fn(gx_sparse_vectors *g, uint64_t number, gx_sparse_vector *out);

/* A file being written. */
typedef struct vector_file {
    const gx_vector_files_options *opt;
    gx_atomic_file out;
    char path[4096];
    uint64_t n;
    draw_fn *draw;
    char prefix; /* of ids */
    uint64_t n_terms;
} vector_file;

static gx_status check_cancel(const vector_file *f, uint64_t i, gx_error *err)
{
    return i % 1024 == 0 && f->opt->cancel && f->opt->cancel(NULL) ? gx_fail(err, GX_ECANCELLED, "cancelled") : GX_OK;
}

static gx_status write_json(vector_file *f, gx_sparse_vectors *g, gx_error *err)
{
    gx_sparse_vector v;
    FILE *to = f->out.file;
    gx_status st = GX_OK;
    for (uint64_t i = 0; i < f->n && (st = check_cancel(f, i, err)) == GX_OK; ++i) {
        f->draw(g, i, &v);
        f->n_terms += v.n;
        fprintf(to, "{\"id\": \"%c%" PRIu64 "\", \"vector\": {", f->prefix, i);
        for (uint32_t t = 0; t < v.n; ++t)
            fprintf(to, "%s\"%u\": %.5g", t ? ", " : "", v.terms[t], (double)v.weights[t]);
        fputs("}}\n", to);
    }
    return st;
}

/* Columns and values wait in temporary files, for the offsets of all rows stand before them. */
enum { COLUMNS, VALUES, N_SPOOLS };

static gx_status spool_vectors(vector_file *f, gx_sparse_vectors *g, int64_t *ends, FILE *const *spools, gx_error *err)
{
    gx_sparse_vector v;
    gx_status st = GX_OK;
    for (uint64_t i = 0; i < f->n && (st = check_cancel(f, i, err)) == GX_OK; ++i) {
        f->draw(g, i, &v);
        f->n_terms += v.n;
        ends[i + 1] = (int64_t)f->n_terms;
        fwrite(v.terms, sizeof *v.terms, v.n, spools[COLUMNS]); /* each file keeps an error */
        fwrite(v.weights, sizeof *v.weights, v.n, spools[VALUES]);
    }
    return st;
}

static gx_status append_spool(vector_file *f, FILE *spool, gx_error *err)
{
    char buffer[65536];
    size_t n;
    if (fflush(spool) || ferror(spool) || fseeko(spool, 0, SEEK_SET))
        return gx_fail(err, GX_EIO, "cannot write a temporary file beside %s: %s", f->path, strerror(errno));
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

static gx_status write_csr(vector_file *f, gx_sparse_vectors *g, gx_error *err)
{
    char *dir = gx_directory_of(f->path);
    int64_t *ends = calloc(f->n + 1, sizeof *ends);
    FILE *spools[N_SPOOLS] = {NULL};
    gx_status st =
        ends && dir ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the offsets of %" PRIu64 " vectors", f->n);
    for (int i = 0; i < N_SPOOLS && st == GX_OK; ++i)
        st = open_spool(&spools[i], dir, err);
    if (st == GX_OK)
        st = spool_vectors(f, g, ends, spools, err);
    if (st == GX_OK) {
        const int64_t head[3] = {(int64_t)f->n, GX_SPARSE_N_TERMS, (int64_t)f->n_terms};
        fwrite(head, sizeof *head, 3, f->out.file);
        fwrite(ends, sizeof *ends, f->n + 1, f->out.file);
    }
    for (int i = 0; i < N_SPOOLS; ++i) {
        if (st == GX_OK)
            st = append_spool(f, spools[i], err);
        if (spools[i])
            fclose(spools[i]);
    }
    free(ends);
    free(dir);
    return st;
}

static gx_status write_file(vector_file *f, gx_sparse_vectors *g, gx_error *err)
{
    gx_status st = gx_atomic_file_stream(&f->out, err);
    if (st == GX_OK)
        st = f->opt->csr ? write_csr(f, g, err) : write_json(f, g, err);
    return st == GX_OK ? gx_atomic_file_sync(&f->out, err) : st;
}

gx_status gx_vector_files_write(const gx_vector_files_options *opt, gx_vector_files_counts *counts, gx_error *err)
{
    vector_file files[2] = {
        {.opt = opt, .n = opt->n_documents, .draw = gx_sparse_document, .prefix = 'd'},
        {.opt = opt, .n = opt->n_queries, .draw = gx_sparse_query, .prefix = 'q'},
    };
    const char *const kind = opt->csr ? "csr" : "jsonl";
    gx_sparse_vectors *g = gx_sparse_vectors_open(opt->shape, opt->seed);
    gx_status st = g ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory to generate vectors");
    uint32_t n_open = 0;
    if (st == GX_OK && strlen(opt->base) > sizeof files[0].path - 32)
        st = gx_fail(err, GX_EUSAGE, "the name %.80s... is too long", opt->base);
    while (st == GX_OK && n_open < 2) {
        vector_file *f = &files[n_open];
        snprintf(f->path, sizeof f->path, "%s.%s%s", opt->base, n_open ? "queries." : "", kind);
        st = gx_atomic_file_open(&f->out, f->path, opt->force ? GX_ATOMIC_FILE_FORCE : 0, err);
        n_open += st == GX_OK;
    }
    for (int i = 1; i >= 0 && st == GX_OK; --i)
        st = write_file(&files[i], g, err);
    for (int i = 0; i < 2 && st == GX_OK; ++i)
        st = gx_atomic_file_commit(&files[i].out, err);
    while (n_open-- > 0)
        gx_atomic_file_close(&files[n_open].out);
    gx_sparse_vectors_close(g);
    if (st == GX_OK)
        *counts = (gx_vector_files_counts){opt->n_documents ? (double)files[0].n_terms / (double)opt->n_documents : 0,
                                           opt->n_queries ? (double)files[1].n_terms / (double)opt->n_queries : 0};
    return st;
}
