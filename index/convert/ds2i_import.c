/* ds2i_import.c: the files of ds2i and PISA to an index. */
#include "index/convert/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/memory/grow.h"
#include "engine/status.h"

/* A file in memory. bytes is NULL if the file does not exist or is empty. */
typedef struct mapped_file {
    char *path;
    const uint8_t *bytes;
    size_t n;
    bool found;
} mapped_file;

typedef struct name {
    const char *text; /* points into the file of names, or into digits */
    uint32_t len;
    char digits[11];
} name;

typedef struct list {
    uint64_t docs, freqs; /* byte offsets of the two sequences */
    name term;
} list;

typedef struct import {
    gx_import_setup *setup;
    const gx_import_options *opt;
    mapped_file docs, freqs, sizes, terms, documents;
    uint32_t n_docs;
    list *lists;
    size_t n_lists, max_lists;
    uint32_t *doc_tfs; /* by document: the sum of its tfs, modulo 2^32 */
    uint64_t sum_tfs;
    gx_writer *writer;
} import;

static gx_status map_file(mapped_file *m, const char *base, const char *suffix, bool needed, gx_error *err)
{
    if (asprintf(&m->path, "%s%s", base, suffix) < 0) {
        m->path = NULL;
        return gx_fail(err, GX_ENOMEM, "no memory");
    }
    const int fd = open(m->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 && errno == ENOENT && !needed)
        return GX_OK;
    if (fd < 0)
        return gx_fail(err, errno == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot open %s: %s", m->path, strerror(errno));
    void *bytes = MAP_FAILED;
    const int failed = fstat(fd, &st);
    if (failed == 0 && st.st_size > 0)
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int e = errno;
    close(fd);
    if (failed || (st.st_size > 0 && bytes == MAP_FAILED))
        return gx_fail(err, GX_EIO, "cannot read %s: %s", m->path, strerror(e));
    m->found = true;
    m->n = (size_t)st.st_size;
    m->bytes = m->n ? bytes : NULL;
    return GX_OK;
}

static void unmap_file(mapped_file *m)
{
    if (m->bytes)
        munmap((void *)m->bytes, m->n);
    free(m->path);
}

static uint32_t read_u32(const mapped_file *m, uint64_t at)
{
    uint32_t x;
    memcpy(&x, m->bytes + at, sizeof x);
    return x;
}

/* Reads the header of the sequence at *at: it has *n numbers from byte *first on. Moves *at behind
 * it. */
static gx_status next_sequence(const mapped_file *m, uint64_t *at, uint32_t *n, uint64_t *first, gx_error *err)
{
    if (m->n - *at < 4)
        return gx_fail(err, GX_EINPUT, "%s: byte %llu: the file ends where a sequence's length should be", m->path,
                       (unsigned long long)*at);
    *n = read_u32(m, *at);
    *first = *at + 4;
    if ((m->n - *first) / 4 < *n)
        return gx_fail(err, GX_EINPUT, "%s: byte %llu: a sequence of %u numbers does not fit: %llu bytes are left",
                       m->path, (unsigned long long)*at, *n, (unsigned long long)(m->n - *first));
    *at = *first + 4 * (uint64_t)*n;
    return GX_OK;
}

static gx_status add_list_offsets(import *im, uint64_t docs, uint64_t freqs, gx_error *err)
{
    if (!gx_reserve(&im->lists, &im->max_lists, im->n_lists + 1, sizeof *im->lists))
        return gx_fail(err, GX_ENOMEM, "%s: no memory for a directory of %zu lists", im->docs.path, im->n_lists + 1);
    im->lists[im->n_lists++] = (list){.docs = docs, .freqs = freqs};
    return GX_OK;
}

/* Walks through both files in parallel, stores where each list begins, and checks that the files
 * agree. */
static gx_status find_lists(import *im, gx_error *err)
{
    uint64_t d = 0, f = 0, first;
    uint32_t n = 0, m = 0;
    gx_status st = next_sequence(&im->docs, &d, &n, &first, err);
    if (st != GX_OK)
        return st;
    if (n != 1)
        return gx_fail(err, GX_EINPUT,
                       "%s: byte 0: the first sequence must be the number of documents alone; it has "
                       "%u numbers",
                       im->docs.path, n);
    im->n_docs = read_u32(&im->docs, first);
    while (d < im->docs.n) {
        const uint64_t docs = d, freqs = f;
        if ((st = next_sequence(&im->docs, &d, &n, &first, err)) != GX_OK ||
            (st = next_sequence(&im->freqs, &f, &m, &first, err)) != GX_OK ||
            (st = add_list_offsets(im, docs, freqs, err)) != GX_OK)
            return st;
        if (n != m)
            return gx_fail(err, GX_EINPUT, "%s: byte %llu: list %zu has %u tfs but %u docids in %s", im->freqs.path,
                           (unsigned long long)freqs, im->n_lists - 1, m, n, im->docs.path);
    }
    if (f != im->freqs.n)
        return gx_fail(err, GX_EINPUT, "%s: byte %llu: there are more lists than in %s", im->freqs.path,
                       (unsigned long long)f, im->docs.path);
    return GX_OK;
}

/* The next line of m, from *at on, without its line end. Returns false at the end of the file. */
static bool next_line(const mapped_file *m, size_t *at, const char **text, size_t *len)
{
    if (*at >= m->n)
        return false;
    *text = (const char *)m->bytes + *at;
    const char *end = memchr(*text, '\n', m->n - *at);
    *len = end ? (size_t)(end - *text) : m->n - *at;
    *at += *len + 1;
    if (*len && (*text)[*len - 1] == '\r')
        --*len;
    return true;
}

static gx_status read_name(const mapped_file *names, size_t *at, size_t i, size_t n, const char *what, name *out,
                           gx_error *err)
{
    size_t len;
    if (!names->found) {
        out->len = (uint32_t)snprintf(out->digits, sizeof out->digits, "%zu", i);
        out->text = NULL;
        return GX_OK;
    }
    if (!next_line(names, at, &out->text, &len))
        return gx_fail(err, GX_EINPUT, "%s: line %zu: the file ends, but there are %zu %s", names->path, i + 1, n,
                       what);
    if (len == 0 || len > GX_MAX_STRING)
        return gx_fail(err, GX_EINPUT, "%s: line %zu: a name of %zu bytes; 1 to %u are possible", names->path, i + 1,
                       len, GX_MAX_STRING);
    out->len = (uint32_t)len;
    return GX_OK;
}

static const char *text_of(const name *n)
{
    return n->text ? n->text : n->digits;
}

static int by_term(const void *a, const void *b)
{
    const name *x = &((const list *)a)->term, *y = &((const list *)b)->term;
    const int c = memcmp(text_of(x), text_of(y), x->len < y->len ? x->len : y->len);
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

static gx_status name_lists(import *im, gx_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < im->n_lists; ++i) {
        const gx_status st = read_name(&im->terms, &at, i, im->n_lists, "lists", &im->lists[i].term, err);
        if (st != GX_OK)
            return st;
    }
    qsort(im->lists, im->n_lists, sizeof *im->lists, by_term);
    for (size_t i = 1; i < im->n_lists; ++i)
        if (by_term(&im->lists[i - 1], &im->lists[i]) == 0)
            return gx_fail(err, GX_EINPUT, "%s: two lists are called \"%.*s\"", im->terms.path,
                           (int)(im->lists[i].term.len < 80 ? im->lists[i].term.len : 80), text_of(&im->lists[i].term));
    return GX_OK;
}

static gx_status add_documents(import *im, gx_error *err)
{
    uint64_t at = 0, first;
    uint32_t n = 0;
    size_t line = 0;
    gx_status st = next_sequence(&im->sizes, &at, &n, &first, err);
    if (st == GX_OK && n != im->n_docs)
        st = gx_fail(err, GX_EINPUT, "%s: byte 0: lengths of %u documents, but %s has %u", im->sizes.path, n,
                     im->docs.path, im->n_docs);
    for (uint32_t d = 0; st == GX_OK && d < n; ++d) {
        name id;
        if ((st = read_name(&im->documents, &line, d, n, "documents", &id, err)) == GX_OK)
            st = gx_writer_add_document(im->writer, &(gx_document){.id = text_of(&id), .id_len = id.len},
                                        read_u32(&im->sizes, first + 4 * (uint64_t)d), err);
        im->setup->source = im->docs.path;
        if (st == GX_OK)
            st = gx_import_add_document(im->setup, text_of(&id), id.len, err);
    }
    return st;
}

static gx_status check_list(import *im, const list *l, const uint32_t *docids, const uint32_t *tfs, uint32_t df,
                            gx_error *err)
{
    uint64_t least = 0;
    for (uint32_t i = 0; i < df; ++i) {
        if (docids[i] < least || docids[i] >= im->n_docs)
            return gx_fail(err, GX_EINPUT, "%s: byte %llu: docid %u where one in [%llu, %u) must stand", im->docs.path,
                           (unsigned long long)(l->docs + 4 + 4 * (uint64_t)i), docids[i], (unsigned long long)least,
                           im->n_docs);
        if (tfs[i] == 0)
            return gx_fail(err, GX_EINPUT, "%s: byte %llu: a tf of 0", im->freqs.path,
                           (unsigned long long)(l->freqs + 4 + 4 * (uint64_t)i));
        im->doc_tfs[docids[i]] += tfs[i];
        im->sum_tfs += tfs[i];
        least = (uint64_t)docids[i] + 1;
    }
    return GX_OK;
}

static gx_status add_lists(import *im, gx_error *err)
{
    for (size_t i = 0; i < im->n_lists; ++i) {
        const list *l = &im->lists[i];
        const uint32_t df = read_u32(&im->docs, l->docs);
        /* the file is a row of u32, so this is aligned */
        const uint32_t *docids = (const uint32_t *)(const void *)(im->docs.bytes + l->docs + 4);
        const uint32_t *tfs = (const uint32_t *)(const void *)(im->freqs.bytes + l->freqs + 4);
        if (df == 0)
            continue;
        if (im->opt->cancel && im->opt->cancel(im->opt->user))
            return gx_fail(err, GX_ECANCELLED, "cancelled");
        gx_status st = check_list(im, l, docids, tfs, df, err);
        if (st == GX_OK)
            st = gx_writer_add_list(im->writer, text_of(&l->term), l->term.len, df, docids, tfs, err);
        if (st != GX_OK)
            return st;
    }
    return GX_OK;
}

/* Refuses lengths that are not the sums of the documents' tfs. Where already the totals differ,
 * they are lengths of another kind (quantised, or counted before stop words left): they are
 * taken. */
static gx_status check_lengths(const import *im, gx_error *err)
{
    const uint64_t first = 4; /* behind the number of lengths */
    uint64_t n_tokens = 0;
    for (uint32_t d = 0; d < im->n_docs; ++d)
        n_tokens += read_u32(&im->sizes, first + 4 * (uint64_t)d);
    if (n_tokens != im->sum_tfs)
        return GX_OK;
    for (uint32_t d = 0; d < im->n_docs; ++d) {
        const uint32_t length = read_u32(&im->sizes, first + 4 * (uint64_t)d);
        if (length != im->doc_tfs[d])
            return gx_fail(err, GX_EINPUT, "%s: byte %llu: document %u has length %u, but its tfs add up to %u",
                           im->sizes.path, (unsigned long long)(first + 4 * (uint64_t)d), d, length, im->doc_tfs[d]);
    }
    return GX_OK;
}

static gx_status read_all(import *im, const char *base, gx_error *err)
{
    const gx_import_options *o = im->opt;
    gx_status st = map_file(&im->docs, base, ".docs", true, err);
    if (st == GX_OK)
        st = map_file(&im->freqs, base, ".freqs", true, err);
    if (st == GX_OK)
        st = map_file(&im->sizes, base, ".sizes", true, err);
    if (st == GX_OK)
        st = map_file(&im->terms, o->terms ? o->terms : base, o->terms ? "" : ".terms", o->terms != NULL, err);
    if (st == GX_OK)
        st = map_file(&im->documents, o->documents ? o->documents : base, o->documents ? "" : ".documents",
                      o->documents != NULL, err);
    if (st == GX_OK)
        st = find_lists(im, err);
    if (st == GX_OK && !(im->doc_tfs = calloc((size_t)im->n_docs + 1, sizeof *im->doc_tfs)))
        st = gx_fail(err, GX_ENOMEM, "%s: no memory for the lengths of %u documents", im->docs.path, im->n_docs);
    return st == GX_OK ? name_lists(im, err) : st;
}

static gx_status import_files(const char *base, const char *path, gx_import_setup *setup, gx_error *err)
{
import im = {.setup = setup, .opt = & setup->options };
    gx_status st = read_all(&im, base, err);
    if (st == GX_OK)
        st = gx_writer_open(&im.writer, path, &setup->writer, err);
    if (st == GX_OK)
        st = add_documents(&im, err);
    if (st == GX_OK)
        st = add_lists(&im, err);
    if (st == GX_OK)
        st = check_lengths(&im, err);
    if (st == GX_OK)
        st = gx_import_end_documents(setup, err);
    if (st == GX_OK)
        st = gx_writer_finish_with(im.writer, setup->analyzer, err);
    gx_writer_close(im.writer);
    unmap_file(&im.docs);
    unmap_file(&im.freqs);
    unmap_file(&im.sizes);
    unmap_file(&im.terms);
    unmap_file(&im.documents);
    free(im.lists);
    free(im.doc_tfs);
    return st;
}

gx_status gx_ds2i_import(const char *base, const char *path, const gx_import_options *opt, gx_error *err)
{
    gx_import_setup setup;
    gx_status st = gx_import_setup_open(&setup, opt, path, err);
    if (st == GX_OK)
        st = import_files(base, path, &setup, err);
    gx_import_setup_close(&setup);
    return st;
}
