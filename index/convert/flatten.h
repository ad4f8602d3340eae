/* flatten.h: a collection as one index file, for code that reads the sections of one. */
#ifndef GX_INDEX_CONVERT_FLATTEN_H
#define GX_INDEX_CONVERT_FLATTEN_H

#include "index/index.h"

/* Write the live documents of a collection, without titles and texts, to an index file without a
 * name in the directory of path ("-": $TMPDIR or /tmp), and open it. It is gone when *out is
 * closed. */
gx_status gx_index_flatten(gx_index **out, const gx_index *ix, const char *path, gx_error *err);

#endif
