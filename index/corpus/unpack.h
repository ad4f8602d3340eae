/* unpack.h: decompress streams of gzip, bzip2, xz and zstd, each by its own library. A stream may
 * have several members end to end. Where a format has checksums they are verified, and bytes behind
 * the last member are an error, unless all are zero, as in the blocks of a tape. */
#ifndef GX_INDEX_CORPUS_UNPACK_H
#define GX_INDEX_CORPUS_UNPACK_H

#include "engine/gpuidx.h"

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
void gx_unpack_close(gx_unpack *z);               /* z may be NULL */
void gx_unpack_feed_by(gx_unpack *z, void *user); /* another user from now on */
const char *gx_unpack_name(const gx_unpack *z);

/* Decompress up to max bytes into `to`; *n = 0 only at the end of the stream. GX_EINPUT, now and
 * whenever asked again: the stream is broken or truncated; err holds the reason, without the file's
 * name. GX_ENOMEM, and the
 * statuses of feed. */
gx_status gx_unpack_read(gx_unpack *z, char *to, size_t max, size_t *n, gx_error *err);

#endif
