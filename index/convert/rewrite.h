/* rewrite.h: make a new index file from an open index, with other codecs, another order of
 * documents, or without titles or texts.
 *
 *   open index --decode--> lists --[docids mapped, sorted]--> writer --> new file
 *
 * Terms, tfs, lengths, ids, titles, texts and the META section stay the same, so a query gives the
 * same scores. If docids change, documents of equal score may come in another order.
 */
#ifndef GX_INDEX_CONVERT_REWRITE_H
#define GX_INDEX_CONVERT_REWRITE_H

#include "codecs/codec.h"
#include "index/index.h"

typedef struct gx_rewrite_options {
    size_t size;
    bool force;                   /* replace an existing file */
    const gx_codec *docids, *tfs; /* tfs NULL: as docids */
    const uint32_t *new_docids;   /* [n_docs] a permutation: the new docid of each old one; NULL: keep the order */
    bool drop_titles, drop_texts;
    const uint8_t *uuid;        /* [16], for reproducible files; NULL: a random one */
    bool (*cancel)(void *user); /* called now and then; true: stop. May be NULL */
    void *user;
} gx_rewrite_options;
#define GX_REWRITE_OPTIONS ((gx_rewrite_options){.size = sizeof(gx_rewrite_options)})

/* Write ix to a new file at path. With force, path may be the file of ix itself: the mapping of the
 * old file stays valid. Memory: 24 bytes for each posting of the longest list, and 4 bytes for each
 * document if the order changes. GX_EUSAGE (new_docids is no permutation), GX_ECORRUPT (a list does
 * not decode to rising docids below n_docs), GX_ECANCELLED, GX_ENOMEM, and the writer's
 * statuses. */
gx_status gx_index_rewrite(const gx_index *ix, const char *path, const gx_rewrite_options *opt, gx_error *err);

#endif
