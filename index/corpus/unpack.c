#include "index/corpus/unpack.h"

#include <bzlib.h>
#include <limits.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "engine/status.h"

typedef enum progress { GOES_ON, MEMBER_ENDS, NO_MEMORY, DAMAGED, NO_MEMBER } progress;

typedef struct compression {
    const char *name;
    bool (*init)(gx_unpack *z); /* false: no memory */
    void (*end)(gx_unpack *z);
    bool (*begin_member)(gx_unpack *z); /* after the first; false: no memory */
    /* Decompress as much of `in` as `out` has room for. NO_MEMBER: no member begins with these
     * bytes. */
    progress (*step)(gx_unpack *z);
} compression;

struct gx_unpack {
    const compression *by;
    gx_unpack_feed *feed;
    void *user;
    const char *in, *why; /* why: DAMAGED in the library's words, or NULL */
    char *out;
    size_t n_in, n_out;
    bool fed_all, in_member, any;
    gx_error broken; /* GX_EINPUT since then */
    z_stream gzip;
    bz_stream bzip2;
    lzma_stream xz;
    ZSTD_DStream *zstd;
};

/* Most bytes that a library takes at once, whose counts have 32 bits. */
static unsigned at_once(size_t n)
{
    return n < UINT_MAX ? (unsigned)n : UINT_MAX;
}

static void advance(gx_unpack *z, size_t taken, size_t given)
{
    z->in += taken;
    z->n_in -= taken;
    z->out += given;
    z->n_out -= given;
}

/* ---- gzip ---- */

static bool init_gzip(gx_unpack *z)
{
    return inflateInit2(&z->gzip, 15 + 16) == Z_OK; /* 15: the largest window; 16: gzip only */
}

static void end_gzip(gx_unpack *z)
{
    inflateEnd(&z->gzip);
}

static bool next_gzip(gx_unpack *z)
{
    return inflateReset(&z->gzip) == Z_OK;
}

static progress step_gzip(gx_unpack *z)
{
    if (!z->in_member && z->n_in && (unsigned char)*z->in != 0x1f)
        return NO_MEMBER;
    const unsigned n_in = at_once(z->n_in), n_out = at_once(z->n_out);
    z->gzip.next_in = (Bytef *)z->in;
    z->gzip.avail_in = n_in;
    z->gzip.next_out = (Bytef *)z->out;
    z->gzip.avail_out = n_out;
    const int rc = inflate(&z->gzip, Z_NO_FLUSH);
    advance(z, n_in - z->gzip.avail_in, n_out - z->gzip.avail_out);
    z->why = z->gzip.msg;
    return rc == Z_OK || rc == Z_BUF_ERROR ? GOES_ON
           : rc == Z_STREAM_END            ? MEMBER_ENDS
           : rc == Z_MEM_ERROR             ? NO_MEMORY
                                           : DAMAGED;
}

/* ---- bzip2 ---- */

static bool init_bzip2(gx_unpack *z)
{
    z->bzip2 = (bz_stream){0};
    return BZ2_bzDecompressInit(&z->bzip2, 0, 0) == BZ_OK;
}

static void end_bzip2(gx_unpack *z)
{
    BZ2_bzDecompressEnd(&z->bzip2);
}

static bool next_bzip2(gx_unpack *z)
{
    end_bzip2(z);
    return init_bzip2(z);
}

static progress step_bzip2(gx_unpack *z)
{
    const unsigned n_in = at_once(z->n_in), n_out = at_once(z->n_out);
    z->bzip2.next_in = (char *)z->in;
    z->bzip2.avail_in = n_in;
    z->bzip2.next_out = z->out;
    z->bzip2.avail_out = n_out;
    const int rc = BZ2_bzDecompress(&z->bzip2);
    advance(z, n_in - z->bzip2.avail_in, n_out - z->bzip2.avail_out);
    z->why = "a block is damaged";
    return rc == BZ_OK                 ? GOES_ON
           : rc == BZ_STREAM_END       ? MEMBER_ENDS
           : rc == BZ_MEM_ERROR        ? NO_MEMORY
           : rc == BZ_DATA_ERROR_MAGIC ? NO_MEMBER
                                       : DAMAGED;
}

/* ---- xz: the library joins the members itself ---- */

static bool init_xz(gx_unpack *z)
{
    z->xz = (lzma_stream)LZMA_STREAM_INIT;
    return lzma_stream_decoder(&z->xz, UINT64_MAX, LZMA_CONCATENATED) == LZMA_OK;
}

static void end_xz(gx_unpack *z)
{
    lzma_end(&z->xz);
}

static progress step_xz(gx_unpack *z)
{
    const size_t n_in = z->n_in, n_out = z->n_out;
    z->xz.next_in = (const uint8_t *)z->in;
    z->xz.avail_in = n_in;
    z->xz.next_out = (uint8_t *)z->out;
    z->xz.avail_out = n_out;
    const lzma_ret rc = lzma_code(&z->xz, z->fed_all ? LZMA_FINISH : LZMA_RUN);
    advance(z, n_in - z->xz.avail_in, n_out - z->xz.avail_out);
    z->why =
        rc == LZMA_OPTIONS_ERROR ? "its options are not supported" : "its data, a checksum or what follows it is wrong";
    return rc == LZMA_OK || rc == LZMA_BUF_ERROR ? GOES_ON
           : rc == LZMA_STREAM_END               ? MEMBER_ENDS
           : rc == LZMA_MEM_ERROR                ? NO_MEMORY
                                                 : DAMAGED;
}

/* ---- zstd: frames, and skippable frames among them ---- */

static bool init_zstd(gx_unpack *z)
{
    z->zstd = ZSTD_createDStream();
    return z->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(z->zstd, ZSTD_d_windowLogMax,
                                                           ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound));
}

static void end_zstd(gx_unpack *z)
{
    ZSTD_freeDStream(z->zstd);
}

static progress step_zstd(gx_unpack *z)
{
    ZSTD_inBuffer in = {z->in, z->n_in, 0};
    ZSTD_outBuffer out = {z->out, z->n_out, 0};
    const size_t rc = ZSTD_decompressStream(z->zstd, &out, &in);
    advance(z, in.pos, out.pos);
    if (!ZSTD_isError(rc))
        return rc == 0 ? MEMBER_ENDS : GOES_ON;
    z->why = ZSTD_getErrorName(rc);
    return ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation ? NO_MEMORY
           : ZSTD_getErrorCode(rc) == ZSTD_error_prefix_unknown  ? NO_MEMBER
                                                                 : DAMAGED;
}

/* ---- streams ---- */

static const compression compressions[] = {
    {"gzip", init_gzip, end_gzip, next_gzip, step_gzip},
    {"bzip2", init_bzip2, end_bzip2, next_bzip2, step_bzip2},
    {"xz", init_xz, end_xz, NULL, step_xz},
    {"zstd", init_zstd, end_zstd, NULL, step_zstd},
};

const char *gx_unpack_recognize(const char *p, size_t n)
{
    if (n >= 3 && !memcmp(p, "\x1f\x8b\x08", 3))
        return "gzip";
    /* "BZh" alone could begin a text: a level and pi, or the root of pi, follow */
    if (n >= 10 && !memcmp(p, "BZh", 3) && (!memcmp(p + 4, "1AY&SY", 6) || !memcmp(p + 4, "\x17rE8P\x90", 6)))
        return "bzip2";
    if (n >= 6 && !memcmp(p,
                          "\xfd"
                          "7zXZ\0",
                          6))
        return "xz";
    if (n >= 4 && (!memcmp(p, "\x28\xb5\x2f\xfd", 4) || ((*p & 0xf0) == 0x50 && !memcmp(p + 1, "\x2a\x4d\x18", 3))))
        return "zstd"; /* pzstd begins with a skippable frame */
    return NULL;
}

gx_unpack *gx_unpack_open(const char *name, gx_unpack_feed *feed, void *user)
{
    gx_unpack *z = calloc(1, sizeof *z);
    if (!z)
        return NULL;
    for (size_t i = 0; i < sizeof compressions / sizeof *compressions; ++i)
        if (!strcmp(compressions[i].name, name))
            z->by = &compressions[i];
    if (!z->by || !z->by->init(z)) {
        gx_unpack_close(z);
        return NULL;
    }
    z->feed = feed;
    z->user = user;
    return z;
}

void gx_unpack_close(gx_unpack *z)
{
    if (z && z->by)
        z->by->end(z);
    free(z);
}

void gx_unpack_feed_by(gx_unpack *z, void *user)
{
    z->user = user;
}

const char *gx_unpack_name(const gx_unpack *z)
{
    return z->by->name;
}

static gx_status refill(gx_unpack *z, gx_error *err)
{
    if (z->n_in || z->fed_all)
        return GX_OK;
    const gx_status st = z->feed(z->user, &z->in, &z->n_in, err);
    z->fed_all = !st && z->n_in == 0;
    return st;
}

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to decompress");
}

static gx_status no_member(const gx_unpack *z, gx_error *err)
{
    return gx_fail(err, GX_EINPUT, "what follows the stream is no %s", z->by->name);
}

/* Between members: begin the next one, or find the end of the stream, with n_in 0. Zero bytes up to
 * the end are skipped. */
static gx_status find_member(gx_unpack *z, gx_error *err)
{
    bool padding = false;
    for (;;) {
        const gx_status st = refill(z, err);
        if (st || !z->n_in)
            return st;
        if (*z->in != 0 || !z->any)
            break;
        padding = true;
        ++z->in;
        --z->n_in;
    }
    if (padding)
        return no_member(z, err);
    if (z->any && z->by->begin_member && !z->by->begin_member(z))
        return no_memory(err);
    return GX_OK;
}

static gx_status unpack_some(gx_unpack *z, char *to, size_t max, size_t *n, gx_error *err)
{
    z->out = to;
    z->n_out = max;
    while (z->out == to) {
        const gx_status st = z->in_member ? refill(z, err) : find_member(z, err);
        if (st)
            return st;
        if (!z->in_member && !z->n_in)
            break;
        const size_t had = z->n_in;
        const progress p = z->by->step(z);
        if (p == NO_MEMORY)
            return no_memory(err);
        if (p == NO_MEMBER && z->any)
            return no_member(z, err);
        if (p == DAMAGED || p == NO_MEMBER)
            return gx_fail(err, GX_EINPUT, "%s", z->why ? z->why : "its data is wrong");
        z->in_member = p != MEMBER_ENDS;
        z->any = true;
        if (z->in_member && z->fed_all && z->n_in == had && z->out == to)
            return gx_fail(err, GX_EINPUT, "it ends too early");
    }
    *n = (size_t)(z->out - to);
    return GX_OK;
}

gx_status gx_unpack_read(gx_unpack *z, char *to, size_t max, size_t *n, gx_error *err)
{
    if (!z->broken.status) {
        const gx_status st = unpack_some(z, to, max, n, err);
        if (st == GX_EINPUT)
            z->broken = *err;
        return st;
    }
    *err = z->broken;
    return err->status;
}
