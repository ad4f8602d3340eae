/* view_state.h: what the files of views share. */
#ifndef GX_INDEX_FIELDS_VIEW_STATE_H
#define GX_INDEX_FIELDS_VIEW_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "index/fields/view.h"
#include "index/made_list.h"
#include "index/parts.h"

#define GX_VIEW_LOCKS 64u
#define GX_KNOWN_LENS 256u /* lengths whose norms are kept */

struct gx_view {
    gx_index *base;
    gx_view_profile profile;
    gx_deletes *deletes;    /* a copy with counts of the view's lists; NULL: none is deleted */
    gx_view_counts *counts; /* NULL: BM25F, which needs none */
    float norms[GX_MAX_FIELDS][GX_KNOWN_LENS];
    uint32_t n_lists;
    gx_list_entry *entries;         /* [n_lists] */
    float *units;                   /* [n_lists], or NULL: all lists have GX_VIEW_UNIT */
    _Atomic(gx_made_list *) *lists; /* [n_lists] */
    pthread_mutex_t locks[GX_VIEW_LOCKS];
    pthread_mutex_t image_lock; /* of what follows */
    uint8_t *image;             /* [image_bytes] (view_image.c), or NULL */
    size_t image_bytes;
    atomic_int failed; /* gx_status */
};

/* The postings of a list of a file with fields. */
typedef struct gx_field_postings {
    uint32_t df;
    uint32_t *docids, *tfs; /* [df] */
    uint32_t *field_tfs;    /* [(n_fields - 1) * df] field by field */
    uint32_t *memory;       /* the caller's to free, also after a failure */
} gx_field_postings;

/* GX_ENOMEM, GX_ECORRUPT. */
gx_status gx_field_postings_read(gx_field_postings *p, const gx_index *ix, uint32_t term);

/* The tf of the i-th posting in each field, tfs[n_fields]. */
void gx_field_postings_tfs(const gx_field_postings *p, uint32_t i, uint32_t n_fields, uint32_t *tfs);

static inline float gx_field_norm_of(const gx_field_norm *n, uint32_t len)
{
    const float product = n->c1 * (float)len;
    return n->c0 + product;
}

/* Make of the postings those of the view's list, in place: docids and impacts, [*df]. Sets the list's unit, and how
 * many
 * of its documents are deleted. GX_ENOMEM, GX_ECORRUPT. */
gx_status gx_view_score(gx_view *v, uint32_t list, gx_field_postings *p, uint32_t *df);

#endif
