#include "engine/files/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/files/temporary_file.h"
#include "engine/status.h"

#define BUFFER_BYTES (256u << 10)

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

static gx_status open_file(gx_spool *s, gx_error *err)
{
    if (s->fd >= 0)
        return GX_OK;
    s->fd = gx_temporary_file_open(s->dir);
    if (s->fd < 0)
        return gx_fail(err, errno == ENOENT || errno == ENOTDIR ? GX_ENOTFOUND : GX_EIO,
                       "cannot make a temporary file in directory %s: %s", s->dir, strerror(errno));
    return GX_OK;
}

static gx_status flush_to_file(gx_spool *s, gx_error *err)
{
    if (s->n == 0)
        return GX_OK;
    const gx_status st = open_file(s, err);
    if (st != GX_OK)
        return st;
    const int e = gx_write_all(s->fd, s->buffer, s->n);
    if (e)
        return gx_fail(err, GX_EIO, "cannot write temporary data in directory %s: %s", s->dir, strerror(e));
    s->file_bytes += s->n;
    s->n = 0;
    return GX_OK;
}

gx_status gx_spool_grow(gx_spool *s, size_t n, gx_error *err)
{
    const gx_status st = flush_to_file(s, err);
    if (st != GX_OK)
        return st;
    const size_t max = n > BUFFER_BYTES ? n : BUFFER_BYTES;
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
    while (n) { /* in pieces, so that a long string does not enlarge the buffer */
        const size_t piece = n < BUFFER_BYTES ? n : BUFFER_BYTES;
        uint8_t *room;
        const gx_status st = gx_spool_reserve(s, piece, &room, err);
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
    if (offset < s->file_bytes) {
        const size_t file_bytes = s->file_bytes - offset < n ? (size_t)(s->file_bytes - offset) : n;
        const int e = gx_pread_all(s->fd, p, file_bytes, offset);
        if (e)
            return gx_fail(err, GX_EIO, "cannot read back temporary data in directory %s: %s", s->dir, strerror(e));
        p += file_bytes;
        n -= file_bytes;
        offset += file_bytes;
    }
    if (n)
        memcpy(p, s->buffer + (offset - s->file_bytes), n);
    return GX_OK;
}
