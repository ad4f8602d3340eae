/* new_folder.c: the folder of a collection that is being made. */
#include "index/commit/new_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/files/temporary_file.h"
#include "engine/status.h"
#include "index/commit/files.h"

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

gx_status gx_new_folder_copy(gx_new_folder *to, int from, const char *from_path, const char *name, gx_error *err)
{
    struct stat s;
    gx_atomic_file f = GX_ATOMIC_FILE_INIT;
    char *path = gx_path_in(to->aside, name);
    gx_status st = path ? GX_OK : gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK && fstat(from, &s) != 0)
        st = gx_fail(err, GX_EIO, "cannot look at %s: %s", from_path, strerror(errno));
    if (st == GX_OK)
        st = gx_atomic_file_open_in(&f, &to->place, path, GX_ATOMIC_FILE_SEEK, err);
    if (st == GX_OK)
        st = copy_bytes(from, &f, (uint64_t)s.st_size, from_path, err);
    if (st == GX_OK && fchmod(f.fd, s.st_mode & 0777) != 0) /* as a link would have */
        st = gx_fail(err, GX_EIO, "cannot set the mode of %s: %s", path, strerror(errno));
    if (st == GX_OK)
        st = gx_atomic_file_sync(&f, err);
    if (st == GX_OK)
        st = gx_atomic_file_commit(&f, err);
    gx_atomic_file_close(&f);
    free(path);
    return st;
}

gx_status gx_new_folder_link(gx_new_folder *to, int dir_fd, const char *path, const char *name, gx_error *err)
{
    const char *from = gx_name_in(dir_fd, path);
    if (linkat(dir_fd, from, to->place.dir_fd, name, 0) == 0)
        return GX_OK;
    const int fd = openat(dir_fd, from, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return gx_fail(err, gx_status_of_errno(errno), "cannot open %s: %s", path, strerror(errno));
    const gx_status st = gx_new_folder_copy(to, fd, path, name, err);
    close(fd);
    return st;
}

/* ---- the folder ---- */

static gx_status name_folder(const gx_new_folder *to, const char *parent, gx_error *err)
{
    if ((errno = gx_fsync(to->place.dir_fd)))
        return gx_fail(err, GX_EIO, "cannot write %s to disk: %s", to->path, strerror(errno));
    if (renameat2(AT_FDCWD, to->aside, AT_FDCWD, to->path, RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || rename(to->aside, to->path) != 0)) /* rename replaces an empty folder at most */
        return gx_fail(err, gx_status_of_errno(errno), "cannot make the folder %s: %s", to->path, strerror(errno));
    return (errno = gx_sync_folder(parent))
               ? gx_fail(err, GX_EIO, "%s is in place, but its folder cannot be written to disk: %s", to->path,
                         strerror(errno))
               : GX_OK;
}

gx_status gx_new_folder_make(const char *path, gx_folder_fill_fn *fill, const void *user, gx_error *err)
{
    char *parent = gx_directory_of(path);
    gx_new_folder to = {.path = path, .place = {-1, NULL, &to.files}};
    gx_status st = parent ? gx_folder_aside(&to.aside, &to.place.dir_fd, path, parent, err)
                          : gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK) {
        st = fill(&to, user, err);
        if (st == GX_OK)
            st = name_folder(&to, parent, err);
        if (st != GX_OK && access(to.aside, F_OK) == 0)
            gx_remove_folder(to.aside);
    }
    gx_unsynced_forget(&to.files);
    if (to.place.dir_fd >= 0)
        close(to.place.dir_fd);
    free(to.aside);
    free(parent);
    return st;
}
