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
    uint32_t n_word_lists, n_lists; /* those of words; and those of phrases behind them */
    struct gx_view_phrases *phrases; /* NULL: the file has no positions */
    gx_list_entry *entries;         /* [n_lists] */
    float *units;                   /* [n_lists], or NULL: all lists have GX_VIEW_UNIT */
    _Atomic(gx_made_list *) *lists; /* [n_lists] */
    pthread_mutex_t locks[GX_VIEW_LOCKS];
    pthread_mutex_t image_lock; /* of what follows */
    uint8_t *image;             /* [image_bytes] (view_image.c), or NULL */
    size_t image_bytes;
    atomic_int failed; /* gx_status */
};

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
gx_status gx_view_score(gx_view *v, const gx_index *ix, uint32_t list, gx_field_postings *p, uint32_t *df);

struct gx_view_phrases *gx_view_phrases_open(void); /* NULL: no memory */
void gx_view_phrases_close(struct gx_view_phrases *p);

/* The phrase of a list, as gx_view_phrase_of; in how many documents each field has the rarest of its words, dfs[n], and
 * the sums of their idfs by field, idfs[n]. */
gx_status gx_view_phrase_dfs(const gx_view *v, const char *name, size_t len, uint64_t *dfs, double *idfs);

/* The list of a list's phrase in that field alone. UINT32_MAX: there is none, or the list is of another field. */
uint32_t gx_view_phrase_in_field(const gx_index *ix, uint32_t list, uint32_t field);

#endif
