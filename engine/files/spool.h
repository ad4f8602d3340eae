/* spool.h: a growing sequence of bytes. The bytes are collected in a buffer in memory. When it is
 * full, they move to an unlinked temporary file. A spool is meant to be written once and then read
 * once, from front to back. */
#ifndef GX_ENGINE_FILES_SPOOL_H
#define GX_ENGINE_FILES_SPOOL_H

#include <string.h>

#include "engine/api/gpuidx.h"

typedef struct gx_spool {
    const char *dir;     /* where the temporary file is made */
    uint8_t *buffer;     /* [max] */
    size_t n, max;       /* bytes in the buffer; room in the buffer */
    uint64_t file_bytes; /* bytes in the file */
    int fd;              /* -1: no file yet */
} gx_spool;

gx_spool gx_spool_make(const char *dir); /* an empty spool; dir must outlive it */
void gx_spool_free(gx_spool *s);

/* The length of the sequence in bytes. */
static inline uint64_t gx_spool_bytes(const gx_spool *s)
{
    return s->file_bytes + s->n;
}

/* Make room for n bytes in the buffer, by moving its bytes to the file. Only gx_spool_reserve calls
 * it. GX_ENOTFOUND (no such directory), GX_EIO, GX_ENOMEM. */
gx_status gx_spool_grow(gx_spool *s, size_t n, gx_error *err);

/* Point *room to room for n bytes behind the last byte. The caller writes up to n bytes there and
 * then adds them to the sequence with gx_spool_commit. Statuses of gx_spool_grow. */
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

/* Add the n bytes that the caller has written at *room. */
static inline void gx_spool_commit(gx_spool *s, size_t n)
{
    s->n += n;
}

/* Add a u32 in the machine's byte order. Statuses of gx_spool_grow. */
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

/* Add n bytes. Statuses of gx_spool_grow. */
gx_status gx_spool_add(gx_spool *s, const void *data, size_t n, gx_error *err);

/* Read n bytes from offset on; offset + n <= gx_spool_bytes(s). GX_EIO. */
gx_status gx_spool_read(const gx_spool *s, uint64_t offset, void *data, size_t n, gx_error *err);

#endif
