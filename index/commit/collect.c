/* collect.c: make a collection of finished index files, or of the last commit of another one.
 *
 *   files --opened, compared--> links in COLLECTION.RANDOM.tmp/ --manifest--> COLLECTION/
 *   collection --manifest--> links in COPY.RANDOM.tmp/ --opened--> COPY/
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

#include "engine/api/gpuidx_advanced.h"
#include "engine/files/atomic_file.h"
#include "engine/files/temporary_file.h"
#include "engine/status.h"
#include "index/commit/files.h"
#include "index/commit/new_folder.h"
#include "index/read/collection.h"

#define MAX_TRIES 1000u /* commits that writers may replace while one is being copied */

/* ---- a collection of files ---- */

static gx_status link_index(gx_new_folder *to, const gx_index *ix, const char *name, gx_error *err)
{
    char *real = realpath(ix->path, NULL); /* not the link that leads to it */
    const gx_status st = real ? gx_new_folder_link(to, AT_FDCWD, real, name, err)
                              : gx_fail(err, GX_EIO, "cannot find %s: %s", ix->path, strerror(errno));
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

typedef struct file_list {
    gx_part *files; /* [n] open, without deletes */
    uint32_t n;
} file_list;

static gx_status fill_with_files(gx_new_folder *to, const void *user, gx_error *err)
{
    const file_list *l = user;
    bool placed;
    gx_manifest m = {.commit = 1, .next = l->n + 1ull, .n_parts = l->n, .parts = calloc(l->n, sizeof *m.parts)};
    gx_status st = m.parts && getrandom(m.uuid, sizeof m.uuid, 0) == sizeof m.uuid
                       ? GX_OK
                       : gx_fail(err, GX_ENOMEM, "no memory for a manifest of %u parts", l->n);
    for (uint32_t i = 0; i < l->n && st == GX_OK; ++i) {
        set_part(&m.parts[i], l->files[i].ix, i + 1);
        st = link_index(to, l->files[i].ix, m.parts[i].file, err);
    }
    if (st == GX_OK)
        st = gx_manifest_write(&m, &to->place, to->path, false, &placed, err);
    gx_manifest_free(&m);
    return st;
}

/* ---- a copy of a commit ---- */

static void empty_folder(const gx_new_folder *to, const gx_manifest *m)
{
    for (uint32_t i = 0; i < m->n_parts; ++i) {
        unlinkat(to->place.dir_fd, m->parts[i].file, 0);
        unlinkat(to->place.dir_fd, m->parts[i].deletes.file, 0);
    }
    unlinkat(to->place.dir_fd, GX_MANIFEST_NAME, 0);
}

static gx_status copy_named(gx_new_folder *to, int from_fd, const char *from, const char *name, gx_error *err)
{
    char *path = gx_path_in(from, name);
    const gx_status st =
        path ? gx_new_folder_link(to, from_fd, path, name, err) : gx_fail(err, GX_ENOMEM, "out of memory");
    free(path);
    return st;
}

/* The manifest is copied first, and to the byte, for it tells commits apart. *again: a writer has removed a file of
 * that
 * commit meanwhile, so that another manifest has come in its place. */
static gx_status copy_commit(gx_new_folder *to, int from_fd, const char *from, bool *again, gx_error *err)
{
    gx_manifest m = {0};
    char *path = gx_path_in(from, GX_MANIFEST_NAME);
    gx_status st = path ? gx_manifest_read(&m, from_fd, from, err) : gx_fail(err, GX_ENOMEM, "out of memory");
    const int fd = st == GX_OK ? openat(from_fd, GX_MANIFEST_NAME, O_RDONLY | O_CLOEXEC) : -1;
    if (st == GX_OK)
        st = fd >= 0 ? gx_new_folder_copy(to, fd, path, GX_MANIFEST_NAME, err)
                     : gx_fail(err, gx_status_of_errno(errno), "cannot open %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    gx_manifest_free(&m);
    if (st != GX_OK || (st = gx_manifest_read(&m, to->place.dir_fd, to->path, err)) != GX_OK)
        return st;
    for (uint32_t i = 0; i < m.n_parts && st == GX_OK; ++i) {
        st = copy_named(to, from_fd, from, m.parts[i].file, err);
        if (st == GX_OK && m.parts[i].deletes.file[0])
            st = copy_named(to, from_fd, from, m.parts[i].deletes.file, err);
    }
    *again = st == GX_ENOTFOUND && !gx_manifest_is_last(&m, from_fd);
    if (*again)
        empty_folder(to, &m);
    gx_manifest_free(&m);
    return st;
}

static gx_status fill_with_commit(gx_new_folder *to, const void *user, gx_error *err)
{
    const char *from = user;
    gx_index *ix;
    bool again = true;
    gx_status st = GX_OK;
    const int fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return gx_fail(err, gx_status_of_errno(errno), "cannot open %s: %s", from, strerror(errno));
    for (uint32_t tries = 0; again && tries < MAX_TRIES; ++tries)
        st = copy_commit(to, fd, from, &again, err);
    close(fd);
    if (st == GX_OK && (st = gx_index_open_folder(&ix, to->place.dir_fd, to->aside, GX_CHECK_CHECKSUM, err)) == GX_OK)
        gx_index_close(ix);
    if (st == GX_OK && (errno = gx_unsynced_sync(&to->files)))
        st = gx_fail(err, GX_EIO, "cannot write %s to disk: %s", to->path, strerror(errno));
    return st;
}

static gx_status collect_files(const char *path, const char *const *names, uint32_t n, gx_error *err)
{
    file_list l = {calloc(n, sizeof *l.files), n};
    gx_status st = l.files ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %u indexes", n);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        if ((st = gx_index_open(&l.files[i].ix, names[i], NULL, err)) != GX_OK)
            break;
        if (l.files[i].ix->parts)
            st =
                gx_fail(err, GX_EUSAGE,
                        "%s is a collection itself: give its parts, or merge it into one index; alone it can be copied",
                        names[i]);
        else
            st = gx_parts_agree(l.files[0].ix, l.files[i].ix, err);
    }
    if (st == GX_OK)
        st = gx_parts_check_ids(l.files, n, err);
    if (st == GX_OK)
        st = gx_new_folder_make(path, fill_with_files, &l, err);
    for (uint32_t i = 0; l.files && i < n; ++i)
        gx_index_close(l.files[i].ix);
    free(l.files);
    return st;
}

gx_status gx_collect(const char *path, const char *const *names, size_t n, gx_error *err)
{
    struct stat s;
    if (n == 0 || n > GX_MAX_PARTS)
        return gx_fail(err, GX_EUSAGE, "a collection has 1 to %u parts, not %zu", GX_MAX_PARTS, n);
    if (lstat(path, &s) == 0)
        return gx_fail(err, GX_EEXISTS, "%s exists already", path);
    if (n == 1 && stat(names[0], &s) == 0 && S_ISDIR(s.st_mode))
        return gx_new_folder_make(path, fill_with_commit, names[0], err);
    return collect_files(path, names, (uint32_t)n, err);
}
