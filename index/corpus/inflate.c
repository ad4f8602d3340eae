#include "index/corpus/inflate.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "engine/status.h"

struct gx_inflate {
    z_stream z;
    gx_inflate_feed *feed;
    void *user;
    bool fed_all, in_member, any;
};

gx_inflate *gx_inflate_open(gx_inflate_feed *feed, void *user)
{
    gx_inflate *z = calloc(1, sizeof *z);
    if (z && inflateInit2(&z->z, 15 + 16) != Z_OK) { /* 15: the largest window; 16: gzip only */
        free(z);
        z = NULL;
    }
    if (z) {
        z->feed = feed;
        z->user = user;
    }
    return z;
}

void gx_inflate_close(gx_inflate *z)
{
    if (z)
        inflateEnd(&z->z);
    free(z);
}

static gx_status refill(gx_inflate *z, gx_error *err)
{
    const char *block = NULL;
    size_t n = 0;
    if (z->z.avail_in || z->fed_all)
        return GX_OK;
    const gx_status st = z->feed(z->user, &block, &n, err);
    if (st)
        return st;
    z->fed_all = n == 0;
    z->z.next_in = (Bytef *)block;
    z->z.avail_in = (uInt)n;
    return GX_OK;
}

/* Between members: begin the next member, or find the end. Zeros up to the end, which pad the
 * blocks of a tape, are skipped. */
static gx_status begin_member(gx_inflate *z, gx_error *err)
{
    bool padding = false;
    for (;;) {
        const gx_status st = refill(z, err);
        if (st)
            return st;
        if (!z->z.avail_in)
            return GX_OK;
        if (*z->z.next_in != 0)
            break;
        padding = z->any;
        if (!padding)
            break;
        ++z->z.next_in;
        --z->z.avail_in;
    }
    if (padding || (z->any && *z->z.next_in != 0x1f))
        return gx_fail(err, GX_EINPUT, "what follows the stream is no gzip");
    inflateReset(&z->z);
    z->in_member = z->any = true;
    return GX_OK;
}

gx_status gx_inflate_read(gx_inflate *z, char *to, size_t max, size_t *n, gx_error *err)
{
    z->z.next_out = (Bytef *)to;
    z->z.avail_out = max < UINT_MAX ? (uInt)max : UINT_MAX;
    const uInt room = z->z.avail_out;
    while (z->z.avail_out == room) {
        gx_status st = z->in_member ? refill(z, err) : begin_member(z, err);
        if (st)
            return st;
        if (!z->z.avail_in && z->fed_all) {
            if (z->in_member)
                return gx_fail(err, GX_EINPUT, "it ends too early");
            break;
        }
        switch (inflate(&z->z, Z_NO_FLUSH)) {
        case Z_OK:
        case Z_BUF_ERROR: /* zlib needs more bytes */
            break;
        case Z_STREAM_END:
            z->in_member = false;
            break;
        case Z_MEM_ERROR:
            return gx_fail(err, GX_ENOMEM, "no memory to decompress");
        default:
            return gx_fail(err, GX_EINPUT, "%s", z->z.msg ? z->z.msg : "it is no gzip");
        }
    }
    *n = room - z->z.avail_out;
    return GX_OK;
}
