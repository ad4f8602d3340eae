/* join.h: the lists of a collection as one index, for searching.
 *
 *   parts' lists --decode, docids of the collection--> encode --> an index file without a name
 *
 * Several threads do that, a range of terms each. The index has lists, lengths and terms, and
 * neither ids, titles, texts nor attributes: its docids are those of the collection.
 */
#ifndef GX_INDEX_CONVERT_JOIN_H
#define GX_INDEX_CONVERT_JOIN_H

#include "index/index.h"

/* Join the live documents of a collection, with as many threads as there are processors. The file
 * lies in $TMPDIR or /tmp and is gone when *out is closed. GX_ECORRUPT, GX_EIO, GX_ENOMEM. */
gx_status gx_index_join(gx_index **out, const gx_index *collection, gx_error *err);

#endif
