/* rewrite.h: an index made into another: with other codecs, another order of documents, or less
 * stored.
 *
 *   open index --decode--> lists --[docids mapped, sorted]--> writer --> new file
 *
 * Terms, tfs, lengths, ids, titles, texts and the META section stay what they are, so the same
 * query has the same scores; only ties fall differently where docids change.
 */
#ifndef GX_INDEX_CONVERT_REWRITE_H
#define GX_INDEX_CONVERT_REWRITE_H

#include "codecs/codec.h"
#include "index/index.h"

typedef struct gx_rewrite_options {
    size_t size;
    bool force;                   /* replace an existing file */
    const gx_codec *docids, *tfs; /* tfs NULL: as docids */
    const uint32_t *new_docids;   /* [n_docs] a permutation: the new docid of each old one. NULL: order stays */
    bool drop_titles, drop_texts;
    const uint8_t *uuid;        /* [16], for reproducible files; NULL: a random one */
    bool (*cancel)(void *user); /* asked now and then; may be NULL */
    void *user;
} gx_rewrite_options;
#define GX_REWRITE_OPTIONS ((gx_rewrite_options){.size = sizeof(gx_rewrite_options)})

/* Write ix anew to path, which must not be ix's own file while it is open unless force (the old
 * mapping lives on). Memory: 24 bytes a posting of the longest list, and 4 bytes a document when
 * the order changes. GX_ECORRUPT (a list does not decode to rising docids below n_docs),
 * GX_ECANCELLED, and the writer's failures. */
gx_status gx_index_rewrite(const gx_index *ix, const char *path, const gx_rewrite_options *opt, gx_error *err);

#endif
