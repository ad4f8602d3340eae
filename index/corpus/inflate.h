/* inflate.h: decompress gzip streams by zlib. A stream may have several members end to end.
 * Checksums and lengths are verified, and bytes behind the last member are an error, unless all are
 * zero. (libarchive does not verify gzip's checksum, and it stops without an error at bytes that
 * are no further member.) */
#ifndef GX_INDEX_CORPUS_INFLATE_H
#define GX_INDEX_CORPUS_INFLATE_H

#include "engine/gpuidx.h"

typedef struct gx_inflate gx_inflate;

/* Gives the next n compressed bytes at *block; *n = 0 at the end of the stream. The block stays
 * valid until the next call. */
typedef gx_status gx_inflate_feed(void *user, const char **block, size_t *n, gx_error *err);

gx_inflate *gx_inflate_open(gx_inflate_feed *feed, void *user); /* NULL: no memory */
void gx_inflate_close(gx_inflate *z);

/* Decompress up to max bytes into `to`; *n = 0 only at the end of the stream. GX_EINPUT: the stream
 * is broken or truncated; err holds the reason, without the file's name. GX_ENOMEM, and the
 * statuses of feed. */
gx_status gx_inflate_read(gx_inflate *z, char *to, size_t max, size_t *n, gx_error *err);

#endif
