#include "index/corpus/unpack.h"

#include <bzlib.h>
#include <inttypes.h>
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
    gx_unpack_options opt;
    gx_unpack_feed *feed;
    void *user;
    const char *in, *why; /* why: DAMAGED in the library's words, or NULL */
    char *out;
    size_t n_in, n_out;
    uint64_t fed, member; /* where in the file: behind the bytes that were fed; where the member begins */
    bool fed_all, in_member, any, stopped;
    gx_error broken; /* GX_EINPUT since then */
    z_stream gzip;
    bz_stream bzip2;
    char *held;                 /* [BZIP2_ROOM], of bzip2: bytes that have not been given, from held_at to n_held */
    size_t held_at, n_held;     /* 0 <= held_at <= n_held */
    bool held_whole, held_ends; /* they can be given; the member ends behind them */
    lzma_stream xz;
    ZSTD_DStream *zstd;
    size_t hint; /* of zstd: bytes that the library asks for */
    bool full;   /* of zstd: the last call has filled its room */
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

/* The library loses what a call has given if the call fails, so that calls fill a buffer of a fixed size, of which
 * nothing is given before it is full or the member ends. What a damaged member gives does not depend on blocks then. */
enum { BZIP2_ROOM = 16 << 10 };

static bool init_bzip2(gx_unpack *z)
{
    z->bzip2 = (bz_stream){0};
    z->n_held = z->held_at = 0;
    z->held_whole = false;
    return (z->held || (z->held = malloc(BZIP2_ROOM))) && BZ2_bzDecompressInit(&z->bzip2, 0, 0) == BZ_OK;
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

/* Decompress to the buffer. */
static progress call_bzip2(gx_unpack *z)
{
    const unsigned n_in = at_once(z->n_in), n_out = (unsigned)(BZIP2_ROOM - z->n_held);
    z->bzip2.next_in = (char *)z->in;
    z->bzip2.avail_in = n_in;
    z->bzip2.next_out = z->held + z->n_held;
    z->bzip2.avail_out = n_out;
    const int rc = BZ2_bzDecompress(&z->bzip2);
    const unsigned taken = n_in - z->bzip2.avail_in, given = n_out - z->bzip2.avail_out;
    z->in += taken;
    z->n_in -= taken;
    z->n_held += given;
    z->why = "a block is damaged";
    z->held_ends = rc == BZ_STREAM_END;
    z->held_whole = z->held_ends || z->n_held == BZIP2_ROOM || (rc == BZ_OK && z->fed_all && !taken && !given);
    return rc == BZ_OK || rc == BZ_STREAM_END ? GOES_ON
           : rc == BZ_MEM_ERROR               ? NO_MEMORY
           : rc == BZ_DATA_ERROR_MAGIC        ? NO_MEMBER
                                              : DAMAGED;
}

static progress step_bzip2(gx_unpack *z)
{
    progress p = GOES_ON;
    while (p == GOES_ON && !z->held_whole) {
        p = call_bzip2(z);
        if (z->n_in || !z->fed_all) /* behind the last byte: until nothing comes any more */
            break;
    }
    if (p != GOES_ON || !z->held_whole)
        return p;
    const size_t rest = z->n_held - z->held_at, n = rest < z->n_out ? rest : z->n_out;
    memcpy(z->out, z->held + z->held_at, n);
    advance(z, 0, n);
    z->held_at += n;
    if (z->held_at < z->n_held)
        return GOES_ON;
    z->n_held = z->held_at = 0;
    z->held_whole = false;
    return z->held_ends ? MEMBER_ENDS : GOES_ON;
}

/* ---- xz: the library joins the members itself ---- */

static bool init_xz(gx_unpack *z)
{
    z->xz = (lzma_stream)LZMA_STREAM_INIT;
#if LZMA_VERSION >= 50040002 /* the first stable release with this function */
    const lzma_mt several = {.flags = LZMA_CONCATENATED,
                             .threads = z->opt.threads,
                             .memlimit_threading = z->opt.threads_memory,
                             .memlimit_stop = UINT64_MAX};
    if (z->opt.threads > 1)
        return lzma_stream_decoder_mt(&z->xz, &several) == LZMA_OK;
#endif
    return lzma_stream_decoder(&z->xz, z->opt.memory ? z->opt.memory : UINT64_MAX, LZMA_CONCATENATED) == LZMA_OK;
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

enum { ZSTD_LEAST_HEAD = 5, ZSTD_BLOCK_HEAD = 3 }; /* bytes of the heads of a frame, at least, and of a block */

static bool init_zstd(gx_unpack *z)
{
    int most = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound; /* of the window, as a power of 2 */
    z->zstd = ZSTD_createDStream();
    while (z->opt.memory && most > 10 && (uint64_t)1 << most > z->opt.memory)
        --most;
    return z->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(z->zstd, ZSTD_d_windowLogMax, most));
}

static void end_zstd(gx_unpack *z)
{
    ZSTD_freeDStream(z->zstd);
}

/* Of what the library asks for, the head of the next block is not given: what the call gives would be lost with an
 * error in that head, and so would depend on the room for it. */
static size_t take_zstd(const gx_unpack *z)
{
    const size_t want = !z->in_member               ? ZSTD_LEAST_HEAD
                        : z->hint > ZSTD_BLOCK_HEAD ? z->hint - ZSTD_BLOCK_HEAD
                                                    : z->hint;
    return want && want < z->n_in ? want : z->n_in;
}

static size_t call_zstd(gx_unpack *z, size_t n_in)
{
    ZSTD_inBuffer in = {z->in, n_in, 0};
    ZSTD_outBuffer out = {z->out, z->n_out, 0};
    const size_t rc = ZSTD_decompressStream(z->zstd, &out, &in);
    if (ZSTD_isError(rc))
        return rc;
    z->full = out.pos == out.size; /* the library may hold more of the block */
    z->hint = rc;
    advance(z, in.pos, out.pos);
    return rc;
}

static progress step_zstd(gx_unpack *z)
{
    const char *const out = z->out;
    size_t rc = z->full ? call_zstd(z, 0) : 0;
    if (z->out == out)
        rc = call_zstd(z, take_zstd(z));
    if (!ZSTD_isError(rc))
        return rc == 0 ? MEMBER_ENDS : GOES_ON;
    z->why = ZSTD_getErrorCode(rc) == ZSTD_error_dstSize_tooSmall /* which of the two it is depends on its buffers */
                 ? ZSTD_getErrorString(ZSTD_error_corruption_detected)
                 : ZSTD_getErrorName(rc);
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
    static const gx_unpack_options whole;
    return gx_unpack_open_part(name, &whole, feed, user);
}

gx_unpack *gx_unpack_open_part(const char *name, const gx_unpack_options *opt, gx_unpack_feed *feed, void *user)
{
    gx_unpack *z = calloc(1, sizeof *z);
    if (!z)
        return NULL;
    z->opt = *opt;
    z->fed = z->member = opt->at;
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
    if (z)
        free(z->held);
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

uint64_t gx_unpack_at(const gx_unpack *z)
{
    return z->fed - z->n_in;
}

bool gx_unpack_stopped(const gx_unpack *z)
{
    return z->stopped;
}

uint64_t gx_unpack_memory(gx_unpack *z)
{
    switch (*z->by->name) {
    case 'g':
        return 48 << 10; /* a window, and tables */
    case 'b':
        return 4 << 20; /* the larger of its two ways, with the largest blocks */
    case 'x':
        return lzma_memusage(&z->xz);
    default:
        return ZSTD_sizeof_DStream(z->zstd);
    }
}

static gx_status refill(gx_unpack *z, gx_error *err)
{
    if (z->n_in || z->fed_all)
        return GX_OK;
    const gx_status st = z->feed(z->user, &z->in, &z->n_in, err);
    z->fed += st ? 0 : z->n_in;
    z->fed_all = !st && z->n_in == 0;
    return st;
}

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to decompress");
}

static gx_status no_member(const gx_unpack *z, gx_error *err)
{
    return gx_fail(err, GX_EINPUT, "what follows the stream is no %s (at byte %" PRIu64 ")", z->by->name,
                   gx_unpack_at(z));
}

/* The member is bad; of all but a file's first, which begins at 0, the words tell where it is. */
static gx_status bad_member(const gx_unpack *z, const char *why, gx_error *err)
{
    if (z->member == 0)
        return gx_fail(err, GX_EINPUT, "%s", why);
    return gx_fail(err, GX_EINPUT, "%s (in the member at byte %" PRIu64 ")", why, z->member);
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
    z->member = gx_unpack_at(z);
    return GX_OK;
}

/* Whether a member has ended where the caller wants to stop. */
static bool is_at_stop(const gx_unpack *z)
{
    return z->opt.stop && !z->in_member && z->any && gx_unpack_at(z) >= atomic_load(z->opt.stop);
}

static gx_status unpack_some(gx_unpack *z, char *to, size_t max, size_t *n, gx_error *err)
{
    z->out = to;
    z->n_out = max;
    z->stopped = false;
    while (z->out == to) {
        if ((z->stopped = is_at_stop(z)))
            break;
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
        if (p == DAMAGED || p == NO_MEMBER) {
            const gx_status bad = bad_member(z, z->why ? z->why : "its data is wrong", &z->broken);
            if (z->out != to) /* first what has come out before */
                break;
            *err = z->broken;
            return bad;
        }
        z->in_member = p != MEMBER_ENDS;
        z->any = true;
        if (z->in_member && z->fed_all && z->n_in == had && z->out == to)
            return bad_member(z, "it ends too early", err);
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

/* ---- places where members may begin ---- */

/* The least bytes from which may_begin can tell. */
enum { LEAST_HEAD = 18 };

/* Whether the n >= LEAST_HEAD bytes at p are as a member begins, but for chance. */
static bool may_begin(const char *name, const unsigned char *p, size_t n)
{
    switch (*name) {
    case 'g': /* the method deflate, no unknown flags, a level and a system as compressors write them */
        return p[1] == 0x8b && p[2] == 8 && !(p[3] & 0xe0) && (p[8] == 0 || p[8] == 2 || p[8] == 4) &&
               (p[9] <= 13 || p[9] == 255);
    case 'b':
        return !memcmp(p, "BZh", 3) && p[3] >= '1' && p[3] <= '9' && gx_unpack_recognize((const char *)p, n);
    default: /* zstd: no reserved bit */
        return !memcmp(p, "\x28\xb5\x2f\xfd", 4) && !(p[4] & 0x08);
    }
}

size_t gx_unpack_find_member(const char *name, const char *p, size_t n, bool more, size_t *seen)
{
    const int first = *name == 'g' ? 0x1f : *name == 'b' ? 'B' : 0x28;
    const size_t whole = n < LEAST_HEAD ? 0 : n - LEAST_HEAD + 1; /* places with a head behind them */
    *seen = more ? whole : n;
    if (*name == 'x')
        return n;
    for (size_t i = 0; i < whole; ++i) {
        const char *q = memchr(p + i, first, whole - i);
        if (!q)
            break;
        i = (size_t)(q - p);
        if (may_begin(name, (const unsigned char *)q, n - i))
            return i;
    }
    return n;
}
