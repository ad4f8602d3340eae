/* join.h: the lists of a collection as those of one index, for a merge or for searching.
 *
 *   parts' lists --decode, docids of the collection--> encode --> an index file without a name
 *
 * Several threads do that, a range of terms each. The index that gx_index_join makes has lists,
 * lengths and terms, and neither ids, titles, texts nor attributes: its docids are those of the
 * collection.
 */
#ifndef GX_INDEX_CONVERT_JOIN_H
#define GX_INDEX_CONVERT_JOIN_H

#include "index/index.h"
#include "index/write/writer.h"

typedef struct gx_join_options {
    uint32_t n_threads;         /* at least 1 */
    bool positions;             /* the writer's lists have positions or fields, and so have the parts' */
    bool fields;                /* they have fields, which do not follow from positions */
    uint32_t *doc_tfs;          /* [n_docs] to which each document's tfs are added; NULL: not wanted */
    bool (*cancel)(void *user); /* called now and then; true: stop. May be NULL */
    void *user;
} gx_join_options;

/* Give the lists of a collection's live documents to a writer that has its documents. GX_ECORRUPT (a
 * list does not decode to rising docids of the part, to tfs of at least 1, or to as many live documents as
 * the deletes leave), GX_ECANCELLED, GX_EIO, GX_ENOMEM. */
gx_status gx_join_lists(const gx_index *collection, gx_writer *w, const gx_join_options *o, gx_error *err);

/* Join the live documents of a collection, with n_threads >= 1. The file lies in $TMPDIR or /tmp and is
 * gone when *out is closed. GX_ECORRUPT, GX_EIO, GX_ENOMEM. */
gx_status gx_index_join(gx_index **out, const gx_index *collection, uint32_t n_threads, gx_error *err);

#endif
