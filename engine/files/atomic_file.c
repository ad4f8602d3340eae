#include "engine/files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/files/temporary_file.h"
#include "engine/status.h"

/* ---- opening ---- */

static gx_status cannot_write(const gx_atomic_file *o, int e, gx_error *err)
{
    return gx_fail(err, gx_status_of_errno(e), "cannot write %s: %s", o->path, strerror(e));
}

static gx_status exists(const gx_atomic_file *o, const char *how, gx_error *err)
{
    return gx_fail(err, GX_EEXISTS, "%s %s", o->path, how);
}

/* A device, a FIFO or a socket, or standard output. */
static gx_status open_through(gx_atomic_file *o, gx_error *err)
{
    o->fd = strcmp(o->path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                      : open(o->path, O_WRONLY | O_NOCTTY | O_CLOEXEC); /* EINTR ends the wait */
    return o->fd < 0 ? cannot_write(o, errno, err) : GX_OK;
}

/* The new file has the owner and the mode of the one that it replaces. */
static void keep_attributes(const gx_atomic_file *o, const struct stat *old)
{
    struct stat now;
    if (fstat(o->fd, &now) == 0 && (now.st_uid != old->st_uid || now.st_gid != old->st_gid) &&
        fchown(o->fd, old->st_uid, old->st_gid))
        return; /* not ours to give away: then the mode, which was made for another owner, is not taken over */
    if ((now.st_mode & 0777) != (old->st_mode & 0777) && fchmod(o->fd, old->st_mode & 0777))
        return;
}

/* Set o->target; *old is what stands there, of st_mode 0 if nothing does. */
static gx_status find_target(gx_atomic_file *o, unsigned flags, struct stat *old, gx_error *err)
{
    struct stat link;
    old->st_mode = 0;
    if (lstat(o->path, &link) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return gx_fail(err, GX_EIO, "cannot look at %s: %s", o->path, strerror(errno));
        o->target = strdup(o->path);
        return o->target ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory");
    }
    if (stat(o->path, old) != 0) {
        old->st_mode = 0;
        if (!o->force)
            return exists(o, "exists", err);
        return gx_fail(err, gx_status_of_errno(errno), "%s is a link whose file cannot be found: %s", o->path,
                       strerror(errno));
    }
    if (!S_ISREG(old->st_mode)) {
        if (S_ISDIR(old->st_mode) || flags & GX_ATOMIC_FILE_SEEK)
            return gx_fail(err, GX_EEXISTS, "%s exists and is not a file: give another name", o->path);
        return GX_OK;
    }
    if (!o->force)
        return exists(o, "exists", err);
    o->target = S_ISLNK(link.st_mode) ? realpath(o->path, NULL) : strdup(o->path);
    return o->target ? GX_OK : cannot_write(o, errno, err);
}

/* A new file belongs to those whose files stand beside it. Where the group cannot be theirs, it may do what all may. */
static void take_attributes_of_neighbour(const gx_atomic_file *o)
{
    struct stat old, now;
    if (fstatat(o->at, o->place->like, &old, 0) != 0 || !S_ISREG(old.st_mode) || fstat(o->fd, &now) != 0)
        return;
    mode_t mode = old.st_mode & 0777;
    if ((now.st_uid != old.st_uid || now.st_gid != old.st_gid) && fchown(o->fd, old.st_uid, old.st_gid) &&
        fchown(o->fd, (uid_t)-1, old.st_gid))
        mode = (mode & 0707) | (mode & 0007) << 3;
    if ((now.st_mode & 0777) != mode && fchmod(o->fd, mode))
        return;
}

/* Set o->target to the name in the place; GX_EEXISTS: it is taken. */
static gx_status find_target_in_place(gx_atomic_file *o, gx_error *err)
{
    struct stat old;
    if (fstatat(o->at, gx_name_in(o->at, o->path), &old, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!o->force)
            return exists(o, "exists", err);
        if (S_ISDIR(old.st_mode))
            return gx_fail(err, GX_EEXISTS, "%s exists and is not a file", o->path);
    } else if (errno != ENOENT) {
        return gx_fail(err, GX_EIO, "cannot look at %s: %s", o->path, strerror(errno));
    }
    o->target = strdup(o->path);
    return o->target ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory");
}

/* Open from now on, so that commit does not fail for want of a descriptor. Returns 0 or an errno. */
static int open_directory(gx_atomic_file *o)
{
    o->dir_fd =
        o->place ? fcntl(o->place->dir_fd, F_DUPFD_CLOEXEC, 0) : open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return o->dir_fd >= 0 || (errno == EACCES && !o->place) ? 0 : errno;
}

gx_status gx_atomic_file_open_in(gx_atomic_file *o, const gx_place *place, const char *path, unsigned flags,
                                 gx_error *err)
{
    struct stat old = {.st_mode = 0};
    gx_status st = GX_OK;
    int e;
    *o = GX_ATOMIC_FILE_INIT;
    o->force = flags & GX_ATOMIC_FILE_FORCE;
    o->place = place;
    o->at = place ? place->dir_fd : AT_FDCWD;
    if (!(o->path = strdup(path)))
        return gx_fail(err, GX_ENOMEM, "no memory");
    if (!place && strcmp(path, "-") == 0)
        return open_through(o, err);
    if (!(flags & GX_ATOMIC_FILE_UNNAMED))
        st = place ? find_target_in_place(o, err) : find_target(o, flags, &old, err);
    if (st != GX_OK)
        return st;
    if (!o->target && !(flags & GX_ATOMIC_FILE_UNNAMED))
        return open_through(o, err);
    if (!(o->dir = gx_directory_of(o->target ? o->target : path)))
        return gx_fail(err, GX_ENOMEM, "no memory");
    if (!place) /* the owner of a place sweeps it */
        gx_temporary_files_sweep(o->at, o->dir);
    if ((e = open_directory(o)))
        return cannot_write(o, e, err);
    if ((o->fd = gx_temporary_file_open_nameable(o->at, o->dir, &o->temporary)) < 0)
        return cannot_write(o, errno, err);
    if (place && place->like)
        take_attributes_of_neighbour(o);
    else if (old.st_mode)
        keep_attributes(o, &old);
    return GX_OK;
}

gx_status gx_atomic_file_open(gx_atomic_file *o, const char *path, unsigned flags, gx_error *err)
{
    return gx_atomic_file_open_in(o, NULL, path, flags, err);
}

/* ---- writing ---- */

/* stdio gives up a write that a signal interrupts; this one goes on. */
static ssize_t write_stream(void *cookie, const char *bytes, size_t n)
{
    const gx_atomic_file *o = cookie;
    const int e = gx_write_all(o->fd, bytes, n);
    errno = e ? e : errno;
    return e ? 0 : (ssize_t)n;
}

gx_status gx_atomic_file_stream(gx_atomic_file *o, gx_error *err)
{
    enum { BUFFER_BYTES = 256 << 10 };
    o->buffer = malloc(BUFFER_BYTES);
    o->file = o->buffer ? fopencookie(o, "w", (cookie_io_functions_t){.write = write_stream}) : NULL;
    if (!o->file || setvbuf(o->file, o->buffer, _IOFBF, BUFFER_BYTES))
        return gx_fail(err, GX_ENOMEM, "no memory to write %s", o->path);
    return GX_OK;
}

/* Leave the file to the place's owner. False: there is none, or no room for one more. */
static bool is_synced_later(const gx_atomic_file *o)
{
    gx_unsynced *u = o->place ? o->place->unsynced : NULL;
    const int fd = u && u->n < sizeof u->fds / sizeof *u->fds ? fcntl(o->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0)
        return false;
    u->fds[u->n++] = fd;
    return true;
}

gx_status gx_atomic_file_sync(gx_atomic_file *o, gx_error *err)
{
    int e = 0;
    if (o->file) {
        errno = 0;
        if (ferror(o->file) | fflush(o->file))
            e = errno ? errno : EIO;
    }
    if (!e && !is_synced_later(o))
        e = gx_fsync(o->fd);
    return e ? cannot_write(o, e, err) : GX_OK;
}

/* ---- files that are synced later ---- */

void gx_unsynced_forget(gx_unsynced *u)
{
    for (uint32_t i = 0; i < u->n; ++i)
        close(u->fds[i]);
    u->n = 0;
}

static void forget_unlinked(gx_unsynced *u)
{
    struct stat s;
    uint32_t n = 0;
    for (uint32_t i = 0; i < u->n; ++i) {
        if (fstat(u->fds[i], &s) == 0 && s.st_nlink == 0)
            close(u->fds[i]);
        else
            u->fds[n++] = u->fds[i];
    }
    u->n = n;
}

int gx_unsynced_sync(gx_unsynced *u)
{
    int e = 0;
    forget_unlinked(u);
    /* All data first: then the file system's journal has all of them by the first fsync, and the others find nothing
     * left to do. Whether that works is of no concern. */
    for (uint32_t i = 0; i < u->n; ++i)
        (void)sync_file_range(u->fds[i], 0, 0, SYNC_FILE_RANGE_WRITE);
    for (uint32_t i = 0; i < u->n; ++i)
        (void)sync_file_range(u->fds[i], 0, 0,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    for (uint32_t i = 0; i < u->n; ++i) {
        const int here = gx_fsync(u->fds[i]);
        e = e ? e : here;
    }
    gx_unsynced_forget(u);
    return e;
}

/* ---- the name ---- */

/* Replacing a file is rename(2) everywhere, also in a folder that is known by its descriptor: by its name in /proc, if
 * there is one. So one system call stands for it, which tests let fail. */
static int replace(int at, const char *from, const char *to)
{
    enum { MAX_NAME = 320 };
    char a[MAX_NAME], b[MAX_NAME];
    if (at == AT_FDCWD)
        return rename(from, to) ? errno : 0;
    if (snprintf(a, sizeof a, "/proc/self/fd/%d/%s", at, from) < MAX_NAME &&
        snprintf(b, sizeof b, "/proc/self/fd/%d/%s", at, to) < MAX_NAME && access(a, F_OK) == 0)
        return rename(a, b) ? errno : 0;
    return renameat(at, from, at, to) ? errno : 0;
}

/* From the temporary name to the real one; without force never over another file. */
static int rename_to(int at, const char *from, const char *to, bool force)
{
    from = gx_name_in(at, from);
    to = gx_name_in(at, to);
    if (force)
        return replace(at, from, to);
    if (renameat2(at, from, at, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    return linkat(at, from, at, to, 0) ? errno
                                       : 0; /* a file system without RENAME_NOREPLACE; the caller unlinks from */
}

static int give_name(gx_atomic_file *o)
{
    if (!o->temporary) {
        int e = gx_temporary_file_link_as(o->fd, o->at, o->target);
        if (e != EEXIST || !o->force)
            return e;
        if ((e = gx_temporary_file_link(o->fd, o->at, o->dir, &o->temporary)) != 0)
            return e;
    }
    return rename_to(o->at, o->temporary, o->target, o->force);
}

gx_status gx_atomic_file_withdraw(gx_atomic_file *o, gx_error *err)
{
    if (!o->target || unlinkat(o->at, gx_name_in(o->at, o->target), 0) == 0 || errno == ENOENT)
        return GX_OK;
    return gx_fail(err, gx_status_of_errno(errno), "cannot replace %s: %s", o->path, strerror(errno));
}

gx_status gx_atomic_file_commit(gx_atomic_file *o, gx_error *err)
{
    if (!o->target) {
        o->committed = true;
        return GX_OK;
    }
    int e = give_name(o);
    if (e == EEXIST)
        return exists(o, "has come into being meanwhile", err);
    if (e)
        return gx_fail(err, gx_status_of_errno(e), "cannot put %s in its place: %s", o->path, strerror(e));
    o->committed = true;
    gx_temporary_name_drop(o->at, o->temporary);
    o->temporary = NULL;
    e = o->dir_fd >= 0 && !(o->place && o->place->unsynced) ? gx_fsync(o->dir_fd) : 0;
    return e ? gx_fail(err, GX_EIO, "%s is in place, but its directory cannot be written to disk: %s", o->path,
                       strerror(e))
             : GX_OK;
}

void gx_atomic_file_close(gx_atomic_file *o)
{
    if (o->file)
        fclose(o->file);
    free(o->buffer);
    gx_temporary_name_drop(o->at, o->temporary);
    if (o->fd >= 0)
        close(o->fd);
    if (o->dir_fd >= 0)
        close(o->dir_fd);
    free(o->target);
    free(o->dir);
    free(o->path);
    *o = GX_ATOMIC_FILE_INIT;
}

gx_status gx_write_file(const char *path, const void *bytes, size_t n, bool force, gx_error *err)
{
    gx_atomic_file out;
    gx_status st = gx_atomic_file_open(&out, path, force ? GX_ATOMIC_FILE_FORCE : 0, err);
    const int e = st == GX_OK ? gx_write_all(out.fd, bytes, n) : 0;
    if (e)
        st = cannot_write(&out, e, err);
    if (st == GX_OK)
        st = gx_atomic_file_sync(&out, err);
    if (st == GX_OK)
        st = gx_atomic_file_commit(&out, err);
    gx_atomic_file_close(&out);
    return st;
}
