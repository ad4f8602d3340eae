/* collect.c: make a collection of finished index files.
 *
 *   files --opened, compared--> links in COLLECTION.RANDOM.tmp/ --manifest--> COLLECTION/
 *
 * The folder gets its name last, by a rename that replaces nothing. One that a killed process has
 * left is removed by the next collect beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/files/atomic_file.h"
#include "engine/files/temporary_file.h"
#include "engine/status.h"
#include "index/commit/files.h"
#include "index/read/collection.h"

/* ---- external ids ---- */

typedef struct id_place {
    uint64_t hash;
    uint32_t part, docid;
} id_place;

static int by_hash(const void *a, const void *b)
{
    const id_place *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

/* How many of a file's documents may have ids: none where all ids together have no byte. */
static uint32_t count_ids(const gx_index *ix)
{
    const gx_strings *ids = &ix->doc_ids;
    size_t len;
    return ids->n && gx_strings_get(ids, ids->n - 1, &len) + len > ids->bytes ? ids->n : 0;
}

/* GX_EUSAGE where an id is in two files. A deletion by id must find one document. */
static gx_status check_ids(gx_index *const *files, uint32_t n, gx_error *err)
{
    uint64_t n_docs = 0, at = 0;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n; ++i)
        n_docs += count_ids(files[i]);
    id_place *places = malloc((n_docs + 1) * sizeof *places);
    if (!places)
        return gx_fail(err, GX_ENOMEM, "no memory to compare %llu ids", (unsigned long long)n_docs);
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t d = 0, n_ids = count_ids(files[i]); d < n_ids; ++d) {
            size_t len;
            const char *id = gx_index_doc_id(files[i], d, &len);
            if (id)
                places[at++] = (id_place){XXH3_64bits(id, len), i, d};
        }
    qsort(places, at, sizeof *places, by_hash);
    for (uint64_t i = 1; i < at && st == GX_OK; ++i) {
        size_t a_len, b_len;
        if (places[i].hash != places[i - 1].hash)
            continue;
        const char *a = gx_index_doc_id(files[places[i - 1].part], places[i - 1].docid, &a_len);
        const char *b = gx_index_doc_id(files[places[i].part], places[i].docid, &b_len);
        if (a_len == b_len && memcmp(a, b, a_len) == 0)
            st = gx_fail(
                err, GX_EUSAGE, "%s and %s both have a document \"%.*s\"; an id must be unique in a collection",
                files[places[i - 1].part]->path, files[places[i].part]->path, (int)(a_len < 200 ? a_len : 200), a);
    }
    free(places);
    return st;
}

/* ---- files ---- */

static gx_status copy_bytes(int from, gx_atomic_file *to, uint64_t n, const char *path, gx_error *err)
{
    off_t at = 0;
    while ((uint64_t)at < n) {
        char buffer[1 << 16];
        const ssize_t got = copy_file_range(from, &at, to->fd, NULL, (size_t)(n - (uint64_t)at), 0);
        if (got > 0)
            continue;
        const ssize_t read = pread(from, buffer, sizeof buffer, at);
        if (read < 0 && errno == EINTR)
            continue;
        if (read <= 0)
            return gx_fail(err, GX_EIO, "cannot read %s: %s", path, read ? strerror(errno) : "it became shorter");
        if ((errno = gx_write_all(to->fd, buffer, (size_t)read)))
            return gx_fail(err, GX_EIO, "cannot write a copy of %s: %s", path, strerror(errno));
        at += read;
    }
    return GX_OK;
}

/* Give the file a name in the folder, or copy it there. */
static gx_status link_or_copy(const gx_index *ix, const char *dir, const char *name, gx_error *err)
{
    char *to = gx_path_in(dir, name), *real = realpath(ix->path, NULL);
    gx_atomic_file f = GX_ATOMIC_FILE_INIT;
    gx_status st =
        to && real ? GX_OK : gx_fail(err, to ? GX_EIO : GX_ENOMEM, "cannot find %s: %s", ix->path, strerror(errno));
    int from = -1;
    if (st == GX_OK && link(real, to) != 0) {
        if ((from = open(real, O_RDONLY | O_CLOEXEC)) < 0)
            st = gx_fail(err, GX_EIO, "cannot open %s: %s", ix->path, strerror(errno));
        if (st == GX_OK)
            st = gx_atomic_file_open(&f, to, GX_ATOMIC_FILE_SEEK, err);
        if (st == GX_OK)
            st = copy_bytes(from, &f, ix->file_bytes, ix->path, err);
        if (st == GX_OK)
            st = gx_atomic_file_sync(&f, err);
        if (st == GX_OK)
            st = gx_atomic_file_commit(&f, err);
        gx_atomic_file_close(&f);
        if (from >= 0)
            close(from);
    }
    free(to);
    free(real);
    return st;
}

static void set_part(gx_manifest_part *p, const gx_index *ix, uint64_t number)
{
    snprintf(p->file, sizeof p->file, GX_PART_NAME, (unsigned long long)number);
    memcpy(p->uuid, ix->header->uuid, sizeof p->uuid);
    p->bytes = ix->file_bytes;
    p->n_docs = ix->n_docs;
    p->n_tokens = ix->n_tokens;
}

static gx_status fill_folder(const char *dir, gx_index *const *files, uint32_t n, gx_error *err)
{
    gx_manifest m = {.commit = 1, .next = n + 1ull, .n_parts = n, .parts = calloc(n, sizeof *m.parts)};
    gx_status st = m.parts && getrandom(m.uuid, sizeof m.uuid, 0) == sizeof m.uuid
                       ? GX_OK
                       : gx_fail(err, GX_ENOMEM, "no memory for a manifest of %u parts", n);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        set_part(&m.parts[i], files[i], i + 1);
        st = link_or_copy(files[i], dir, m.parts[i].file, err);
    }
    if (st == GX_OK)
        st = gx_manifest_write(&m, dir, false, err);
    gx_manifest_free(&m);
    return st;
}

static gx_status make_folder(const char *path, gx_index *const *files, uint32_t n, gx_error *err)
{
    char *aside = NULL, *parent = gx_directory_of(path);
    int lock = -1;
    gx_status st =
        parent ? gx_folder_aside(&aside, &lock, path, parent, err) : gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK) {
        st = fill_folder(aside, files, n, err);
        if (st == GX_OK && (errno = gx_sync_folder(aside)))
            st = gx_fail(err, GX_EIO, "cannot write %s to disk: %s", path, strerror(errno));
        if (st == GX_OK && renameat2(AT_FDCWD, aside, AT_FDCWD, path, RENAME_NOREPLACE) != 0 &&
            (errno != EINVAL || rename(aside, path) != 0)) /* rename replaces an empty folder at most */
            st = gx_fail(err, gx_status_of_errno(errno), "cannot make the folder %s: %s", path, strerror(errno));
        if (st != GX_OK)
            gx_remove_folder(aside);
        else if ((errno = gx_sync_folder(parent)))
            st = gx_fail(err, GX_EIO, "%s is in place, but its folder cannot be written to disk: %s", path,
                         strerror(errno));
    }
    if (lock >= 0)
        close(lock);
    free(aside);
    free(parent);
    return st;
}

gx_status gx_collect(const char *path, const char *const *names, size_t n, gx_error *err)
{
    struct stat s;
    if (n == 0 || n > GX_MAX_PARTS)
        return gx_fail(err, GX_EUSAGE, "a collection has 1 to %u parts, not %zu", GX_MAX_PARTS, n);
    if (lstat(path, &s) == 0)
        return gx_fail(err, GX_EEXISTS, "%s exists already", path);
    gx_index **files = calloc(n, sizeof(gx_index *));
    gx_status st = files ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %zu indexes", n);
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        if ((st = gx_index_open(&files[i], names[i], NULL, err)) != GX_OK)
            break;
        if (files[i]->parts)
            st = gx_fail(err, GX_EUSAGE, "%s is a collection itself: give its parts, or merge it into one index",
                         names[i]);
        else
            st = gx_parts_agree(files[0], files[i], err);
    }
    if (st == GX_OK)
        st = check_ids(files, (uint32_t)n, err);
    if (st == GX_OK)
        st = make_folder(path, files, (uint32_t)n, err);
    for (size_t i = 0; files && i < n; ++i)
        gx_index_close(files[i]);
    free(files);
    return st;
}
