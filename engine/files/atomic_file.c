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

gx_status gx_atomic_file_open(gx_atomic_file *o, const char *path, unsigned flags, gx_error *err)
{
    struct stat old;
    *o = GX_ATOMIC_FILE_INIT;
    o->force = flags & GX_ATOMIC_FILE_FORCE;
    if (!(o->path = strdup(path)))
        return gx_fail(err, GX_ENOMEM, "no memory");
    if (strcmp(path, "-") == 0)
        return open_through(o, err);
    gx_status st = find_target(o, flags, &old, err);
    if (st != GX_OK)
        return st;
    if (!o->target)
        return open_through(o, err);
    if (!(o->dir = gx_directory_of(o->target)))
        return gx_fail(err, GX_ENOMEM, "no memory");
    gx_temporary_files_sweep(o->dir);
    /* Open from now on, so that commit does not fail for want of a descriptor. */
    if ((o->dir_fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 && errno != EACCES)
        return cannot_write(o, errno, err);
    if ((o->fd = gx_temporary_file_open_nameable(o->dir, &o->temporary)) < 0)
        return cannot_write(o, errno, err);
    if (old.st_mode)
        keep_attributes(o, &old);
    return GX_OK;
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

gx_status gx_atomic_file_sync(gx_atomic_file *o, gx_error *err)
{
    int e = 0;
    if (o->file) {
        errno = 0;
        if (ferror(o->file) | fflush(o->file))
            e = errno ? errno : EIO;
    }
    e = e ? e : gx_fsync(o->fd);
    return e ? cannot_write(o, e, err) : GX_OK;
}

/* ---- the name ---- */

/* From the temporary name to the real one; without force never over another file. */
static int rename_to(const char *from, const char *to, bool force)
{
    if (force)
        return rename(from, to) ? errno : 0;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    return link(from, to) ? errno : 0; /* a file system without RENAME_NOREPLACE; the caller unlinks from */
}

static int give_name(gx_atomic_file *o)
{
    if (!o->temporary) {
        int e = gx_temporary_file_link_as(o->fd, o->target);
        if (e != EEXIST || !o->force)
            return e;
        if ((e = gx_temporary_file_link(o->fd, o->dir, &o->temporary)) != 0)
            return e;
    }
    return rename_to(o->temporary, o->target, o->force);
}

gx_status gx_atomic_file_withdraw(gx_atomic_file *o, gx_error *err)
{
    if (!o->target || unlink(o->target) == 0 || errno == ENOENT)
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
    gx_temporary_name_drop(o->temporary);
    o->temporary = NULL;
    e = o->dir_fd >= 0 ? gx_fsync(o->dir_fd) : 0;
    return e ? gx_fail(err, GX_EIO, "%s is in place, but its directory cannot be written to disk: %s", o->path,
                       strerror(e))
             : GX_OK;
}

void gx_atomic_file_close(gx_atomic_file *o)
{
    if (o->file)
        fclose(o->file);
    free(o->buffer);
    gx_temporary_name_drop(o->temporary);
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
