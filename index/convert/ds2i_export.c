/* ds2i_export.c: an index to the files of ds2i and PISA. */
#include "index/convert/ds2i.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/files/atomic_file.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/convert/rewrite.h"
#include "index/index.h"

enum { DOCS, FREQS, SIZES, TERMS, DOCUMENTS, N_FILES };
static const char *const suffixes[N_FILES] = {".docs", ".freqs", ".sizes", ".terms", ".documents"};

typedef struct export
{
    const gx_index *ix;
    const gx_export_options *opt;
    const char *base;
    gx_atomic_file files[N_FILES];
    gx_atomic_file *beside; /* or NULL */
}
export;

static gx_status open_outputs(export *ex, const char *base, gx_error *err)
{
    gx_status st = GX_OK;
    for (int i = 0; i < N_FILES && st == GX_OK; ++i) {
        char *path = NULL;
        if (asprintf(&path, "%s%s", base, suffixes[i]) < 0)
            return gx_fail(err, GX_ENOMEM, "no memory");
        st = gx_atomic_file_open(&ex->files[i], path, ex->opt->force ? GX_ATOMIC_FILE_FORCE : 0, err);
        if (st == GX_OK)
            st = gx_atomic_file_stream(&ex->files[i], err);
        free(path);
    }
    return st;
}

static void put_numbers(export *ex, int which, const uint32_t *numbers, size_t n)
{
    fwrite(numbers, sizeof *numbers, n, ex->files[which].file); /* the stream keeps errors until commit */
}

/* The name of document or term i, a line. */
static gx_status put_name(export *ex, int which, uint32_t i, const char *text, size_t len, gx_error *err)
{
    if (len && memchr(text, '\n', len))
        return gx_fail(err, GX_EINPUT, "%s: the name of %s %u, \"%.*s\", holds a line end, which ds2i cannot hold",
                       ex->ix->path, which == TERMS ? "term" : "document", i, (int)(len < 80 ? len : 80), text);
    if (len)
        fwrite(text, 1, len, ex->files[which].file);
    putc('\n', ex->files[which].file);
    return GX_OK;
}

static int digits_of(uint32_t n)
{
    int digits = 1;
    while (n >= 10) {
        n /= 10;
        ++digits;
    }
    return digits;
}

/* Writes i, one of n numbers, as a name: its digits, with leading zeros. */
static void put_number(export *ex, int which, uint32_t i, uint32_t n)
{
    fprintf(ex->files[which].file, "%0*u\n", digits_of(n - 1), i);
}

static gx_status put_documents(export *ex, gx_error *err)
{
    const gx_index *ix = ex->ix;
    put_numbers(ex, DOCS, (const uint32_t[]){1, ix->n_docs}, 2);
    put_numbers(ex, SIZES, &ix->n_docs, 1);
    put_numbers(ex, SIZES, ix->doc_lens, ix->n_docs);
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        size_t len;
        if (ix->doc_ids.n == 0) {
            put_number(ex, DOCUMENTS, d, ix->n_docs);
            continue;
        }
        const char *id = gx_index_doc_id(ix, d, &len);
        const gx_status st = put_name(ex, DOCUMENTS, d, id ? id : "", len, err);
        if (st != GX_OK)
            return st;
    }
    return GX_OK;
}

static gx_status put_list(export *ex, uint32_t t, gx_error *err)
{
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
    const gx_list l = gx_index_list(ex->ix, t);
    put_numbers(ex, DOCS, &l.df, 1);
    put_numbers(ex, FREQS, &l.df, 1);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        put_numbers(ex, DOCS, docids, gx_list_decode_docids(&l, j, docids));
        put_numbers(ex, FREQS, tfs, gx_list_decode_tfs(&l, j, tfs));
    }
    if (ex->ix->terms.n == 0) {
        put_number(ex, TERMS, t, ex->ix->n_terms);
        return GX_OK;
    }
    size_t len;
    const char *term = gx_strings_get(&ex->ix->terms, t, &len);
    return put_name(ex, TERMS, t, term, len, err);
}

/* A file could not be committed. Without force those that are in place are removed. With force they
 * have replaced others: then the set lacks its first file, unless all are in place, and the
 * message says so. */
static gx_status take_back(export *ex, gx_status st, gx_error *err)
{
    gx_error why = {.text = ""};
    for (int i = 0; i < N_FILES + 1; ++i) {
        const gx_atomic_file *o = i < N_FILES ? &ex->files[i] : ex->beside;
        if (!ex->opt->force && o && o->committed && o->target)
            unlink(o->target);
    }
    if (!ex->opt->force || !ex->files[DOCS].target || ex->files[DOCS].committed)
        return st;
    if (err)
        why = *err;
    return gx_fail(err, st,
                   "%.500s; %.200s%s is missing now, so that no program reads old and new files as one set: "
                   "write them again",
                   why.text, ex->base, suffixes[DOCS]);
}

/* Give the files their names. A process can be killed between two of them, so the first file,
 * which every reader of the set needs, is taken away before and gets its name last: old and new
 * files never stand together as a set that can be read. */
static gx_status commit_outputs(export *ex, gx_error *err)
{
    gx_status st = GX_OK;
    for (int i = 0; i < N_FILES && st == GX_OK; ++i)
        st = gx_atomic_file_sync(&ex->files[i], err);
    if (st == GX_OK && ex->opt->force)
        st = gx_atomic_file_withdraw(&ex->files[DOCS], err);
    if (st != GX_OK)
        return st;
    if (ex->beside)
        st = gx_atomic_file_commit(ex->beside, err);
    for (int i = DOCS + 1; i < N_FILES && st == GX_OK; ++i)
        st = gx_atomic_file_commit(&ex->files[i], err);
    if (st == GX_OK)
        st = gx_atomic_file_commit(&ex->files[DOCS], err);
    return st == GX_OK ? st : take_back(ex, st, err);
}

gx_status gx_ds2i_export(const gx_index *ix, const char *base, const gx_export_options *opt, gx_error *err)
{
    return gx_ds2i_export_with(ix, base, opt, NULL, err);
}

gx_status gx_ds2i_export_with(const gx_index *ix, const char *base, const gx_export_options *opt,
                              gx_atomic_file *beside, gx_error *err)
{
    gx_export_options o = GX_EXPORT_OPTIONS;
    gx_status st = gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_export_options, user), "gx_export_options", err);
    if (st != GX_OK)
        return st;
    if (ix->parts) {
        gx_index *flat;
        if ((st = gx_index_flatten(&flat, ix, base, err)) == GX_OK)
            st = gx_ds2i_export_with(flat, base, &o, beside, err);
        gx_index_close(flat);
        return st;
    }
    export ex = {.ix = ix, .opt = &o, .base = base, .beside = beside};
    for (int i = 0; i < N_FILES; ++i)
        ex.files[i] = GX_ATOMIC_FILE_INIT;
    st = open_outputs(&ex, base, err);
    if (st == GX_OK)
        st = put_documents(&ex, err);
    for (uint32_t t = 0; st == GX_OK && t < ix->n_terms; ++t) {
        if (o.cancel && o.cancel(o.user))
            st = gx_fail(err, GX_ECANCELLED, "cancelled");
        else
            st = put_list(&ex, t, err);
    }
    if (st == GX_OK)
        st = commit_outputs(&ex, err);
    for (int i = 0; i < N_FILES; ++i)
        gx_atomic_file_close(&ex.files[i]);
    return st;
}
