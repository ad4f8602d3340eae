/* inflate.h: gzip streams by zlib: members joined end to end, checksums and lengths verified,
 * nothing lost in silence. (libarchive neither looks at gzip's checksum nor says that it stops at
 * what is no further member.) */
#ifndef GX_INDEX_CORPUS_INFLATE_H
#define GX_INDEX_CORPUS_INFLATE_H

#include "engine/gpuidx.h"

typedef struct gx_inflate gx_inflate;

/* Gives the next compressed bytes; *n = 0 at their end. The block stays valid until the next call.
 * */
typedef gx_status gx_inflate_feed(void *user, const char **block, size_t *n, gx_error *err);

gx_inflate *gx_inflate_open(gx_inflate_feed *feed, void *user); /* NULL: no memory */
void gx_inflate_close(gx_inflate *z);

/* Up to max bytes; *n = 0 only at the end. GX_EINPUT with the reason alone in err, GX_ENOMEM, and
 * what feed returns. */
gx_status gx_inflate_read(gx_inflate *z, char *to, size_t max, size_t *n, gx_error *err);

#endif
