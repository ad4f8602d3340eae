/* rewrite.h: what gx_index_rewrite offers to other code of the library. */
#ifndef GX_INDEX_CONVERT_REWRITE_H
#define GX_INDEX_CONVERT_REWRITE_H

#include "engine/api/gpuidx_advanced.h"
#include "index/index.h"

/* Write the live documents of a collection, without titles and texts, to an index file without a
 * name in the directory of path ("-": $TMPDIR or /tmp), and open it. It is gone when *out is
 * closed. For code that reads the sections of one file. */
gx_status gx_index_flatten(gx_index **out, const gx_index *ix, const char *path, gx_error *err);

/* gx_index_rewrite of a collection with several threads, at least one, to a place. */
gx_status gx_collection_rewrite(const gx_index *ix, const char *path, const gx_place *place,
                                const gx_rewrite_options *opt, uint32_t n_threads, gx_error *err);

/* The codecs that hold most postings of an index, of a collection those of its first part; "auto"
 * where the lists differ and can be so chosen; NULL where it has no postings. GX_ENOMEM. */
gx_status gx_codecs_of_index(const gx_index *ix, const char **docid_codec, const char **tf_codec, gx_error *err);

#endif
