/* deletes.h: which documents of an index file are deleted, and what that takes from its statistics.
 *
 *   part-000001.000004.del  <--gx_deletes_write--  gx_deletes  --gx_deletes_rank--> live docids
 *
 * The live documents of a part are numbered from 0 in their order, as a fresh build would number
 * them. A gx_deletes does not change once it is open, and belongs to all who hold a reference.
 */
#ifndef GX_INDEX_DELETES_H
#define GX_INDEX_DELETES_H

#include <stdatomic.h>

#include "index/index.h"
#include "index/manifest.h"

typedef struct gx_deletes {
    atomic_uint n_more; /* holders but one */
    uint32_t n_docs;    /* of the index file */
    uint32_t n_deleted;
    uint64_t n_tokens;                 /* the sum of the deleted documents' lengths */
    uint64_t n_postings;               /* theirs */
    uint32_t min_doc_len, max_doc_len; /* of the live documents; 0 where there are none */
    uint64_t *live;                    /* [ceil(n_docs / 64)] a bit a document, set where it is live */
    uint32_t *before;                  /* [ceil(n_docs / 64) + 1] live documents before each word */
    uint32_t *dfs;                     /* [n_terms] deleted documents that hold the term */
} gx_deletes;

/* Read a file of deletes of the index, as the manifest names it, in folder dir, which dir_fd is. GX_ENOTFOUND, GX_EIO,
 * GX_ECORRUPT, GX_ENOMEM. */
gx_status gx_deletes_open(gx_deletes **out, int dir_fd, const char *dir, const gx_manifest_deletes *m,
                          const gx_index *ix, gx_error *err);

/* Whether its counts are those of its deleted documents, by the index's lists: GX_ECORRUPT, naming the file.
 * GX_ENOMEM. */
gx_status gx_deletes_check(const gx_deletes *d, const gx_index *ix, const char *file, gx_error *err);

/* Delete documents: those of `words` (a bit a document) that are live in `old` (NULL: all are).
 * Walks the blocks of lists that can hold one of them. GX_ECORRUPT, GX_ENOMEM. */
gx_status gx_deletes_make(gx_deletes **out, const gx_index *ix, const gx_deletes *old, const uint64_t *words,
                          gx_error *err);

/* Write them to a new file m->file in the place, folder dir; sets the rest of m. GX_EEXISTS, GX_EIO, GX_ENOMEM. */
gx_status gx_deletes_write(const gx_deletes *d, const gx_place *place, const char *dir, const gx_index *ix,
                           gx_manifest_deletes *m, gx_error *err);

gx_deletes *gx_deletes_share(gx_deletes *d);
void gx_deletes_close(gx_deletes *d); /* accepts NULL */

static inline bool gx_deletes_is_live(const gx_deletes *d, uint32_t docid)
{
    return !d || (d->live[docid / 64] >> docid % 64 & 1);
}

/* Live documents before docid <= n_docs. */
static inline uint32_t gx_deletes_rank(const gx_deletes *d, uint32_t docid)
{
    const uint64_t below = (UINT64_C(1) << docid % 64) - 1;
    return d ? d->before[docid / 64] + (below ? (uint32_t)__builtin_popcountll(d->live[docid / 64] & below) : 0)
             : docid;
}

/* Documents that are deleted, and those that are about to be. */
typedef struct gx_live {
    const gx_deletes *deletes; /* NULL: none is deleted */
    const uint64_t *gone;      /* [n_words] a bit a document; those behind are not about to be */
    size_t n_words;
} gx_live;

/* The first document of an index file with this id that is live (live NULL: any), or UINT32_MAX. A
 * part can have several of an id, of which one at most is live. Thread-safe. */
uint32_t gx_index_find_live_doc(const gx_index *ix, const gx_live *live, const char *id, size_t len);

/* The docid of live document number `rank`, which is below their number. */
uint32_t gx_deletes_select(const gx_deletes *d, uint32_t rank);

#endif
