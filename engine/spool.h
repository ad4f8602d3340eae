/* spool.h: a sequence of bytes that grows: a buffer in memory, and behind it, once that is full, an
 * unlinked temporary file in the output's directory. Made once from front to back, then read once
 * from front to back. */
#ifndef GX_ENGINE_SPOOL_H
#define GX_ENGINE_SPOOL_H

#include <string.h>

#include "engine/gpuidx.h"

typedef struct gx_spool {
    const char *dir;
    uint8_t *buffer;
    size_t n, max;       /* bytes in the buffer; its size */
    uint64_t file_bytes; /* bytes in the file */
    int fd;              /* -1: no file yet */
} gx_spool;

gx_spool gx_spool_make(const char *dir); /* dir must outlive it */
void gx_spool_free(gx_spool *s);

static inline uint64_t gx_spool_bytes(const gx_spool *s)
{
    return s->file_bytes + s->n;
}

/* Room for n more bytes behind the last, at *room, to be written by the caller and then counted by
 * gx_spool_commit. */
gx_status gx_spool_grow(gx_spool *s, size_t n, gx_error *err);

static inline gx_status gx_spool_reserve(gx_spool *s, size_t n, uint8_t **room, gx_error *err)
{
    if (s->max - s->n < n) {
        const gx_status st = gx_spool_grow(s, n, err);
        if (st != GX_OK)
            return st;
    }
    *room = s->buffer + s->n;
    return GX_OK;
}

static inline void gx_spool_commit(gx_spool *s, size_t n)
{
    s->n += n;
}

static inline gx_status gx_spool_u32(gx_spool *s, uint32_t value, gx_error *err)
{
    uint8_t *room;
    const gx_status st = gx_spool_reserve(s, sizeof value, &room, err);
    if (st == GX_OK) {
        memcpy(room, &value, sizeof value);
        s->n += sizeof value;
    }
    return st;
}

gx_status gx_spool_add(gx_spool *s, const void *data, size_t n, gx_error *err);

/* Read n bytes from offset on, all of them present. */
gx_status gx_spool_read(const gx_spool *s, uint64_t offset, void *data, size_t n, gx_error *err);

#endif
