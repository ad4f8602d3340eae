/* unpack.h: decompress streams of gzip, bzip2, xz and zstd, each by its own library. A stream may
 * have several members end to end. Where a format has checksums they are verified, and bytes behind
 * the last member are an error, unless all are zero, as in the blocks of a tape. */
#ifndef GX_INDEX_CORPUS_UNPACK_H
#define GX_INDEX_CORPUS_UNPACK_H

#include <stdatomic.h>

#include "engine/api/gpuidx.h"

#define GX_UNPACK_LOOK 10u /* bytes that gx_unpack_recognize looks at */

typedef struct gx_unpack gx_unpack;

/* Gives the next n compressed bytes at *block; *n = 0 at the end of the stream. The block stays
 * valid until the next call. */
typedef gx_status gx_unpack_feed(void *user, const char **block, size_t *n, gx_error *err);

/* The compression whose stream begins with the n bytes at p:
 * "gzip", "bzip2", "xz", "zstd", or NULL. */
const char *gx_unpack_recognize(const char *p, size_t n);

/* Begin a stream of that compression. NULL: no memory. */
gx_unpack *gx_unpack_open(const char *compression, gx_unpack_feed *feed, void *user);

/* How a part of a stream is decompressed. All zero: as gx_unpack_open does. */
typedef struct gx_unpack_options {
    uint64_t at; /* where the fed bytes begin in the file; a member begins there */
    /* Stop where a member ends at this place of the file or behind it. NULL: at the end alone. It may
     * change meanwhile. Without effect on xz, whose members the library joins. */
    const _Atomic uint64_t *stop;
    uint64_t memory;  /* a member that needs more bytes than this is refused as if it were damaged; 0: no limit */
    uint32_t threads; /* of the library, for blocks of xz; 0 or 1: none but the caller's */
    uint64_t threads_memory; /* most bytes that these threads take; a block that needs more is for one thread */
} gx_unpack_options;
gx_unpack *gx_unpack_open_part(const char *compression, const gx_unpack_options *opt, gx_unpack_feed *feed, void *user);

/* Where in the file the next byte to be decompressed is. Whether the last call of gx_unpack_read gave nothing
 * because of `stop`; it may be called again. */
uint64_t gx_unpack_at(const gx_unpack *z);
bool gx_unpack_stopped(const gx_unpack *z);
uint64_t gx_unpack_memory(gx_unpack *z); /* bytes that the decompressor holds, about */

/* The first place in the n bytes at p where a member may begin; n: there is none. more: bytes behind these
 * exist, which are not known yet; *seen is set to the number of bytes that need not be looked at again. A
 * place may turn out to be none. The answer is n for xz. */
size_t gx_unpack_find_member(const char *compression, const char *p, size_t n, bool more, size_t *seen);
void gx_unpack_close(gx_unpack *z);               /* z may be NULL */
void gx_unpack_feed_by(gx_unpack *z, void *user); /* another user from now on */
const char *gx_unpack_name(const gx_unpack *z);

/* Decompress up to max bytes into `to`; *n = 0 only at the end of the stream. GX_EINPUT, now and
 * whenever asked again: the stream is broken or truncated; err holds the reason, without the file's
 * name. GX_ENOMEM, and the
 * statuses of feed. */
gx_status gx_unpack_read(gx_unpack *z, char *to, size_t max, size_t *n, gx_error *err);

#endif
