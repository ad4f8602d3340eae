/* open.c: open, verify and close an index file, and decode blocks of its lists. */
#include "index/attributes/attribute_order.h"
#include "index/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codecs/decode.h"
#include "engine/files/temporary_file.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "engine/text/json_text.h"
#include "index/analysis/analyzer.h"
#include "index/check/check.h"
#include "index/check/check_parts.h"
#include "index/fields/view.h"
#include "index/joined_lists.h"
#include "index/positions.h"
#include "index/read/collection.h"

/* ---- open and close ---- */

static gx_status map_file(gx_index *ix, int fd, size_t n, gx_error *err)
{
    /* Without MAP_POPULATE: a page fault maps 16 pages of the page cache at once,
     * which is cheaper. */
    void *file = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED)
        return gx_fail(err, errno == ENOMEM ? GX_ENOMEM : GX_EIO, "cannot map %s: %s", ix->path, strerror(errno));
    ix->file = file;
    ix->file_bytes = n;
    return GX_OK;
}

/* Read the n bytes of the file into memory of our own,
 * which munmap frees as it frees a mapped file. */
static gx_status read_file(gx_index *ix, int fd, size_t n, gx_error *err)
{
    uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return gx_fail(err, GX_ENOMEM, "no memory for the %zu bytes of %s", n, ix->path);
    ix->file = p;
    ix->file_bytes = n;
#ifdef MADV_HUGEPAGE
    madvise(p, n, MADV_HUGEPAGE); /* failure only costs time */
#endif
    for (size_t at = 0; at < n;) {
        const ssize_t got = pread(fd, p + at, n - at, (off_t)at);
        if (got == 0)
            return gx_fail(err, GX_ECORRUPT, "%s was truncated while it was read: it had %zu bytes, and now has %zu",
                           ix->path, n, at);
        if (got < 0 && errno != EINTR)
            return gx_fail(err, gx_status_of_errno(errno), "cannot read %s: %s", ix->path, strerror(errno));
        at += got > 0 ? (size_t)got : 0;
    }
    return GX_OK;
}

static gx_status load_file(gx_index *ix, int dir_fd, gx_load load, gx_error *err)
{
    struct stat s;
    gx_status st = GX_OK;
    const int fd = openat(dir_fd, gx_name_in(dir_fd, ix->path), O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO does not
                                                                                                      * make it wait */
    if (fd < 0)
        return gx_fail(err, errno == ENOENT || errno == ENOTDIR ? GX_ENOTFOUND : GX_EIO, "cannot open %s: %s", ix->path,
                       strerror(errno));
    if (fstat(fd, &s) != 0)
        st = gx_fail(err, GX_EIO, "cannot look at %s: %s", ix->path, strerror(errno));
    else if (!S_ISREG(s.st_mode))
        st = gx_fail(err, GX_EIO, "cannot open %s: it is not a file", ix->path);
    if (st == GX_OK && s.st_size > 0)
        st = (load == GX_LOAD_READ ? read_file : map_file)(ix, fd, (size_t)s.st_size, err);
    close(fd);
    return st;
}

static gx_status open_analyzer(gx_index *ix, gx_error *err)
{
    gx_error why;
    json_t *root = gx_json_load(ix->meta, ix->meta_len, 0, NULL); /* valid: gx_check_structure has checked it */
    char *text = gx_json_dump(json_object_get(root, "analyzer"), JSON_COMPACT);
    ix->without_titles = json_is_false(json_object_get(root, "titles"));
    json_decref(root);
    if (!text)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    ix->analyzer_text = text;
    const gx_status st = gx_analyzer_open_json(&ix->analyzer, text, strlen(text), &why);
    if (st == GX_OK || st == GX_ENOMEM)
        return st == GX_OK ? st : gx_fail(err, st, "%s", why.text);
    return gx_corrupt(err, ix, GX_SEC_META, "its analyzer: %s", why.text);
}

static gx_status open_collection(gx_index **out, int dir_fd, const char *path, gx_check level, gx_load load,
                                 const gx_index *old, gx_error *err)
{
    *out = NULL;
    gx_index *ix = calloc(1, sizeof *ix);
    if (!ix || !(ix->path = strdup(path))) {
        gx_index_close(ix);
        return gx_fail(err, GX_ENOMEM, "out of memory");
    }
    gx_error why = {0};
    const gx_status st =
        gx_collection_bind(ix, dir_fd, level < GX_CHECK_STRUCTURE ? GX_CHECK_STRUCTURE : level, load, old, &why);
    if (st == GX_OK) {
        *out = ix;
        return st;
    }
    gx_index_close(ix);
    return gx_fail(err, st, "%s", why.text);
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

gx_status gx_index_open_at(gx_index **out, const char *path, gx_check level, gx_load load, gx_error *err)
{
    return is_folder(path) ? open_collection(out, AT_FDCWD, path, level, load, NULL, err)
                           : gx_index_open_in(out, AT_FDCWD, path, level, load, err);
}

gx_status gx_index_open_folder(gx_index **out, int dir_fd, const char *path, gx_check level, gx_error *err)
{
    return open_collection(out, dir_fd, path, level, GX_LOAD_MAP, NULL, err);
}

gx_status gx_index_open_in(gx_index **out, int dir_fd, const char *path, gx_check level, gx_load load, gx_error *err)
{
    *out = NULL;
    gx_index *ix = calloc(1, sizeof *ix);
    if (!ix || !(ix->path = strdup(path)) || !gx_id_table_open(&ix->id_table)) {
        gx_index_close(ix);
        return gx_fail(err, GX_ENOMEM, "out of memory");
    }
    gx_status st = load_file(ix, dir_fd, load, err);
    if (st == GX_OK)
        st = gx_check_header(ix, err);
    if (st == GX_OK && level >= GX_CHECK_CHECKSUM) { /* before the structure: its message names the cause, damage */
        if (load == GX_LOAD_MAP)                     /* start reading the whole file; failure only costs time */
            madvise((void *)(uintptr_t)ix->file, (size_t)ix->file_bytes, MADV_WILLNEED);
        st = gx_check_checksums(ix, err);
    }
    if (st == GX_OK && level >= GX_CHECK_STRUCTURE)
        st = gx_check_structure(ix, err);
    if (st == GX_OK && level >= GX_CHECK_FULL)
        st = gx_check_contents(ix, err);
    if (st == GX_OK && level >= GX_CHECK_STRUCTURE)
        st = open_analyzer(ix, err);
    if (st == GX_OK && !gx_max_tfs_open(&ix->max_tfs, ix->n_terms))
        st = gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK)
        *out = ix;
    else
        gx_index_close(ix);
    return st;
}

gx_status gx_index_open(gx_index **out, const char *path, const gx_index_options *opt, gx_error *err)
{
    gx_index_options o = GX_INDEX_OPTIONS;
    *out = NULL;
    const gx_status st =
        gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_index_options, check), "gx_index_options", err);
    if (st != GX_OK)
        return st;
    if (o.load != GX_LOAD_MAP && o.load != GX_LOAD_READ)
        return gx_fail(err, GX_EUSAGE, "gx_index_options.load is %d, which is no gx_load", (int)o.load);
    return gx_index_open_at(out, path, o.check < GX_CHECK_STRUCTURE ? GX_CHECK_STRUCTURE : o.check, o.load, err);
}

gx_status gx_index_verify(const char *path, gx_check level, gx_error *err)
{
    gx_index *ix;
    const gx_status st = gx_index_open_at(&ix, path, level, GX_LOAD_MAP, err);
    gx_index_close(ix);
    return st;
}

void gx_index_close(gx_index *ix)
{
    if (!ix || __atomic_fetch_sub(&ix->n_more, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    if (ix->view) {
        gx_view_close(ix);
        return;
    }
    if (ix->parts) {
        gx_fields_close(ix->fields);
        gx_parts_close(ix->parts);
        free(ix->path);
        free(ix);
        return;
    }
    if (ix->analyzer)
        gx_analyzer_close(ix->analyzer);
    free(ix->analyzer_text);
    gx_id_table_close(ix->id_table);
    gx_max_tfs_close(ix->max_tfs);
    free(ix->term_tree);
    free(ix->df_maxima);
    if (ix->file)
        munmap((void *)(uintptr_t)ix->file, (size_t)ix->file_bytes);
    for (uint32_t i = 0; ix->columns && i < ix->n_columns; ++i)
        gx_column_free_order(&ix->columns[i]);
    free(ix->columns);
    gx_fields_close(ix->fields);
    free(ix->path);
    free(ix);
}

gx_index *gx_index_share(gx_index *ix)
{
    __atomic_fetch_add(&ix->n_more, 1, __ATOMIC_RELAXED);
    return ix;
}

gx_status gx_index_reopen(gx_index **out, const gx_index *old, const gx_index_options *opt, gx_error *err)
{
    gx_index_options o = GX_INDEX_OPTIONS;
    *out = NULL;
    gx_manifest m;
    gx_status st = gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_index_options, check), "gx_index_options", err);
    if (st == GX_OK && old->parts && old->parts->parts[0].ix->view)
        st = gx_fail(err, GX_EUSAGE, "%s: a view of fields stays as it is: open the index anew, and a view of it",
                     old->path);
    if (st != GX_OK || !old->parts)
        return st;
    if ((st = gx_manifest_read(&m, AT_FDCWD, old->path, err)) != GX_OK)
        return st;
    /* not by its number: another history has come to it where a backup was put back and changed */
    const bool same = m.commit == old->parts->commit && m.checksum == old->parts->checksum &&
                      memcmp(m.uuid, old->parts->uuid, sizeof m.uuid) == 0;
    gx_manifest_free(&m);
    return same ? GX_OK : open_collection(out, AT_FDCWD, old->path, o.check, o.load, old, err);
}

uint64_t gx_index_n_docs(const gx_index *ix)
{
    return ix->n_docs + ix->n_docs_beyond;
}

uint32_t gx_index_n_parts(const gx_index *ix)
{
    return ix->parts ? ix->parts->n : 0;
}

uint64_t gx_index_commit(const gx_index *ix)
{
    return ix->parts ? ix->parts->commit : 0;
}

gx_status gx_index_get_part(const gx_index *ix, uint32_t i, gx_part_info *out)
{
    if (i >= gx_index_n_parts(ix))
        return GX_ENOTFOUND;
    const gx_part *p = &ix->parts->parts[i];
    const gx_part_info info = {.size = sizeof info,
                               .path = p->ix->path,
                               .n_docs = p->n_live,
                               .n_deleted = p->deletes ? p->deletes->n_deleted : 0,
                               .bytes = p->ix->file_bytes};
    return gx_sized_write(out, &info, sizeof info, GX_SIZE_THROUGH(gx_part_info, bytes));
}

static gx_status get_stats(const gx_index *ix, uint32_t n_terms, gx_index_stats *st)
{
    uint64_t device_bytes = ix->header->device_bytes;
    if (ix->parts) {
        device_bytes = 0;
        for (uint32_t i = 0; i < ix->parts->n; ++i)
            device_bytes += ix->parts->parts[i].ix->header->device_bytes;
    }
    gx_index_stats whole = {.size = sizeof whole,
                            .n_docs = ix->n_docs,
                            .n_terms = n_terms,
                            .n_postings = ix->n_postings,
                            .n_tokens = ix->n_tokens,
                            .block_len = ix->block_len,
                            .file_bytes = ix->file_bytes,
                            .device_bytes = device_bytes,
                            .impacts = ix->impacts && !ix->view,
                            .titles = ix->titles.n > 0,
                            .texts = ix->text != NULL,
                            .avgdl = ix->avgdl,
                            .min_doc_len = ix->min_doc_len,
                            .max_doc_len = ix->max_doc_len,
                            .version = ix->header->version,
                            .impact_unit = ix->view    ? 1
                                           : ix->units ? 0
                                                       : ix->impact_unit,
                            .n_documents = gx_index_n_docs(ix),
                            .positions = gx_index_has_positions(ix)};
    memcpy(whole.uuid, ix->parts ? ix->parts->uuid : ix->header->uuid, sizeof whole.uuid);
    return gx_sized_write(st, &whole, sizeof whole, GX_SIZE_THROUGH(gx_index_stats, device_bytes));
}

gx_status gx_index_get_stats(const gx_index *ix, gx_index_stats *st)
{
    uint32_t n_terms = ix->n_terms;
    if (ix->parts)
        gx_parts_terms(ix->parts, &n_terms);
    return get_stats(ix, n_terms, st);
}

gx_status gx_index_get_quick_stats(const gx_index *ix, gx_index_stats *st)
{
    return get_stats(ix, ix->n_terms, st);
}

const char *gx_index_meta(const gx_index *ix, size_t *len)
{
    *len = ix->meta_len;
    return ix->meta;
}

/* ---- lists ---- */

gx_list gx_index_list(const gx_index *ix, uint32_t term)
{
    if (ix->joined)
        return gx_joined_list(ix, term);
    if (ix->view)
        return gx_view_list(ix, term);
    const gx_list_entry *e = &ix->lists[term];
    const gx_coding coding = ix->header->codings[e->coding];
    return (gx_list){.df = e->df,
                     .n_blocks = (e->df - 1) / ix->block_len + 1,
                     .block_len = ix->block_len,
                     .docids = gx_codec_by_id(coding.docids),
                     .tfs = gx_codec_by_id(coding.tfs),
                     .docid_param = e->docid_param,
                     .tf_param = e->tf_param,
                     .heads = ix->heads + e->first_block,
                     .docid_ends = ix->docid_ends + e->first_block,
                     .tf_ends = ix->tf_ends + e->first_block,
                     .payload = ix->payload + ((uint64_t)e->payload_hi << 32 | e->payload_lo)};
}

uint32_t gx_list_decode_docids(const gx_list *l, uint32_t j, uint32_t *docids)
{
    const uint32_t n = gx_list_block_n(l, j), begin = j ? l->docid_ends[j - 1] : 0;
    gx_decode_docids(l->docids, l->payload + begin, l->docid_ends[j] - begin, n, l->docid_param, l->heads[j], docids);
    return n;
}

uint32_t gx_list_decode_tfs(const gx_list *l, uint32_t j, uint32_t *tfs)
{
    const uint32_t n = gx_list_block_n(l, j), begin = j ? l->tf_ends[j - 1] : l->docid_ends[l->n_blocks - 1];
    l->tfs->decode(l->payload + begin, l->tf_ends[j] - begin, n, l->tf_param, tfs);
    for (uint32_t i = 0; i < n; ++i)
        tfs[i] += 1;
    return n;
}
