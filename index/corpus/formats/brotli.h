/* brotli.h: decompress Brotli (RFC 7932), by its library, where that was there when this one was built. */
#ifndef GX_INDEX_CORPUS_FORMATS_BROTLI_H
#define GX_INDEX_CORPUS_FORMATS_BROTLI_H

#include "index/corpus/source_reader.h"

extern const bool gx_has_brotli; /* false: the functions are not to be called */

typedef struct gx_brotli gx_brotli;

gx_brotli *gx_brotli_open(void); /* NULL: no memory */
void gx_brotli_close(gx_brotli *z);

/* Decompress to the *n bytes at `to`; *n becomes those that are written. *in goes behind the bytes that are used, of
 * all that there are. *more false: the stream has ended. false: it is damaged, or cut off. */
bool gx_brotli_read(gx_brotli *z, gx_span *in, char *to, size_t *n, bool *more);

#endif
