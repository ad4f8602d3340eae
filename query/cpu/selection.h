/* selection.h: the documents that a plan's mask and filter allow, in the form that makes the search
 * of that plan cheapest.
 *
 *   masks    a bit a document: the caller's, the filter's that is kept, or one made here for the
 *            plan from the filter. A candidate is looked up
 *   filter   a candidate is tested by its values
 *
 * Where few documents are allowed, they drive the search: they are the candidates, and lists are
 * only looked up in.
 */
#ifndef GX_QUERY_CPU_SELECTION_H
#define GX_QUERY_CPU_SELECTION_H

#include "query/cpu/kernels.h"
#include "query/mask.h"
#include "query/plan.h"

typedef struct gx_cpu_selection {
    uint32_t n_docs;
    uint32_t n_masks;
    const gx_mask *masks[2]; /* [n_masks] */
    const gx_filter *filter; /* or NULL */
    bool any;                /* there is a mask or a filter */
    bool drives;             /* its documents, those of masks[0] that the rest allows, are the candidates */
    gx_mask made;            /* words and groups are NULL until needed, and all 0 between plans */
    uint32_t *passed;        /* [gx_mask_n_words(n_docs) + GX_MASK_SLACK] scratch, all 0; or NULL */
} gx_cpu_selection;

void gx_cpu_selection_free(gx_cpu_selection *s);

/* Choose for a plan. GX_ENOMEM. Each call is followed by gx_cpu_selection_end. */
gx_status gx_cpu_selection_begin(gx_cpu_selection *s, const gx_plan *plan, gx_error *err);
void gx_cpu_selection_end(gx_cpu_selection *s);

/* The whole selection as one mask; NULL: all documents are allowed. As gx_cpu_selection_begin. */
gx_status gx_cpu_selection_mask(gx_cpu_selection *s, const gx_plan *plan, const gx_mask **mask, gx_error *err);

/* Drop the candidates that the masks, or the filter, do not allow; docids rise. */
void gx_cpu_selection_apply_masks(const gx_cpu_selection *s, const gx_cpu_kernels *k, gx_cpu_columns *c, uint32_t T);
void gx_cpu_selection_apply_filter(const gx_cpu_selection *s, const gx_cpu_kernels *k, gx_cpu_columns *c, uint32_t T);

/* Whether documents from begin to before end may be allowed: true too where that would take long to
 * find out. */
bool gx_cpu_selection_may_allow(const gx_cpu_selection *s, uint32_t begin, uint32_t end);

/* Where a selection drives: its documents from *at on, rising, at most max >= 64 of them. Returns
 * their number; *at moves behind them, and becomes UINT32_MAX where there are no more. The filter is
 * not applied to them. */
uint32_t gx_cpu_selection_next(const gx_cpu_selection *s, uint32_t *at, uint32_t *docids, uint32_t max);

#endif
