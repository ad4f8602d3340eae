#include "engine/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "engine/status.h"

#define BUFFER (256u << 10)

static int open_named(const char *dir, char **name)
{
    for (int attempt = 0; attempt < 100; ++attempt) {
        uint64_t random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            return -1;
        if (asprintf(name, "%s/.gpuidx-%016llx.tmp", dir, (unsigned long long)random) < 0) {
            *name = NULL;
            errno = ENOMEM;
            return -1;
        }
        const int fd = open(*name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        const int e = errno;
        free(*name);
        *name = NULL;
        errno = e;
        if (e != EEXIST)
            return -1;
    }
    return -1;
}

int gx_temp_open(const char *dir, bool nameable, char **name)
{
    *name = NULL;
    if (nameable && access("/proc/self/fd", F_OK) != 0)
        return open_named(dir, name);
#ifdef O_TMPFILE
    const int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd >= 0)
        return fd;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return -1;
#endif
    return open_named(dir, name);
}

int gx_write_all(int fd, const void *data, size_t n)
{
    const uint8_t *p = data;
    while (n) {
        const ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done ? errno : ENOSPC;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int gx_pread_all(int fd, void *data, size_t n, uint64_t offset)
{
    uint8_t *p = data;
    while (n) {
        const ssize_t done = pread(fd, p, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done ? errno : EIO;
        p += done;
        n -= (size_t)done;
        offset += (uint64_t)done;
    }
    return 0;
}

gx_spool gx_spool_make(const char *dir)
{
    return (gx_spool){.dir = dir, .fd = -1};
}

void gx_spool_free(gx_spool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->buffer);
    *s = gx_spool_make(s->dir);
}

static gx_status to_file(gx_spool *s, gx_error *err)
{
    if (s->fd >= 0)
        return GX_OK;
    char *name;
    s->fd = gx_temp_open(s->dir, false, &name);
    if (s->fd < 0)
        return gx_fail(err, errno == ENOENT || errno == ENOTDIR ? GX_ENOTFOUND : GX_EIO,
                       "cannot make a temporary file in directory %s: %s", s->dir, strerror(errno));
    if (name)
        unlink(name);
    free(name);
    return GX_OK;
}

static gx_status flush(gx_spool *s, gx_error *err)
{
    if (s->n == 0)
        return GX_OK;
    const gx_status st = to_file(s, err);
    if (st != GX_OK)
        return st;
    const int e = gx_write_all(s->fd, s->buffer, s->n);
    if (e)
        return gx_fail(err, GX_EIO, "cannot write temporary data in directory %s: %s", s->dir, strerror(e));
    s->filed += s->n;
    s->n = 0;
    return GX_OK;
}

gx_status gx_spool_make_room(gx_spool *s, size_t n, gx_error *err)
{
    const gx_status st = flush(s, err);
    if (st != GX_OK)
        return st;
    const size_t max = n > BUFFER ? n : BUFFER;
    if (max > s->max) {
        uint8_t *grown = realloc(s->buffer, max);
        if (!grown)
            return gx_fail(err, GX_ENOMEM, "out of memory: %zu bytes for a buffer", max);
        s->buffer = grown;
        s->max = max;
    }
    return GX_OK;
}

gx_status gx_spool_add(gx_spool *s, const void *data, size_t n, gx_error *err)
{
    const uint8_t *p = data;
    while (n) { /* long strings pass through in pieces, so that they do not grow the buffer */
        const size_t piece = n < BUFFER ? n : BUFFER;
        uint8_t *room;
        const gx_status st = gx_spool_room(s, piece, &room, err);
        if (st != GX_OK)
            return st;
        memcpy(room, p, piece);
        s->n += piece;
        p += piece;
        n -= piece;
    }
    return GX_OK;
}

gx_status gx_spool_read(const gx_spool *s, uint64_t offset, void *data, size_t n, gx_error *err)
{
    uint8_t *p = data;
    if (offset < s->filed) {
        const size_t filed = s->filed - offset < n ? (size_t)(s->filed - offset) : n;
        const int e = gx_pread_all(s->fd, p, filed, offset);
        if (e)
            return gx_fail(err, GX_EIO, "cannot read back temporary data in directory %s: %s", s->dir, strerror(e));
        p += filed;
        n -= filed;
        offset += filed;
    }
    if (n)
        memcpy(p, s->buffer + (offset - s->filed), n);
    return GX_OK;
}
