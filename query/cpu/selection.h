/* selection.h: the documents that a plan's mask and filter allow, in the form with which the search
 * of that plan takes the least time.
 *
 *   masks    a bit a document: the caller's mask, the filter's mask that the engine keeps, or a
 *            mask made here from the filter for this plan. The search looks candidates up in them
 *   filter   the search tests a candidate's values
 *
 * If few documents are allowed, they drive the search from some list on: they are the candidates, and
 * the search only looks them up in that list and the later ones.
 */
#ifndef GX_QUERY_CPU_SELECTION_H
#define GX_QUERY_CPU_SELECTION_H

#include "query/cpu/filter_program.h"
#include "query/cpu/sieve.h"
#include "query/filter/filter_collect.h"
#include "query/filter/mask.h"
#include "query/plan/plan.h"

typedef struct gx_cpu_selection {
    uint32_t n_docs;
    uint32_t n_masks;
    const gx_mask *masks[2]; /* [n_masks] */
    bool gaps;               /* gx_cpu_selection_may_allow may be false */
    const gx_filter *filter; /* or NULL */
    bool any;                /* there is a mask or a filter */
    uint32_t allowed;        /* about the number of documents that are; n_docs without a mask or a filter */
    uint32_t first, end;     /* all documents that are allowed are in [first, end) */
    uint32_t rarest;         /* node of the filter that selects the fewest; UINT32_MAX: not known */
    gx_cpu_program program;  /* what all documents of the filter are */
    uint32_t n_met;          /* clauses, from the first on, that select all of the few documents */
    uint32_t n_masked;       /* clauses, from the first on, that the masks have answered */
    bool more;               /* the filter has other conditions */
    gx_cpu_sieve sieve;      /* of the filter; its documents are about `allowed` of those that pass */
    /* Few documents, which may drive from some list on: those of spans, or of masks[0] and masks[1],
     * that the filter allows; it allows all of them if `exact`. */
    bool few, exact;
    uint32_t n_spans; /* 0: the documents of the masks, which rise */
    gx_filter_span spans[GX_FILTER_SPANS];
    bool unordered, repeated; /* docids need not rise; may come again */
    uint32_t n;
    uint64_t cost; /* of looking the few documents up, in postings that are read */
    gx_mask made;  /* words and groups are NULL until needed, and all 0 between plans */
    bool has_made; /* the plan has set bits of it */
} gx_cpu_selection;

void gx_cpu_selection_free(gx_cpu_selection *s);

/* Choose the form for a plan. GX_ENOMEM. The caller calls gx_cpu_selection_end after each call. */
gx_status gx_cpu_selection_begin(gx_cpu_selection *s, const gx_plan *plan, gx_error *err);
void gx_cpu_selection_end(gx_cpu_selection *s);

/* The whole selection as one mask; NULL if all documents are allowed. Otherwise as
 * gx_cpu_selection_begin. */
gx_status gx_cpu_selection_mask(gx_cpu_selection *s, const gx_plan *plan, const gx_mask **mask, gx_error *err);

/* Of the candidates from number `from` on, drop those that the masks, or the filter, do not allow. They
 * are known to be selected by the clauses before number `clause`. */
void gx_cpu_selection_apply_masks(const gx_cpu_selection *s, const gx_cpu_kernels *k, gx_cpu_columns *c, uint32_t from);
void gx_cpu_selection_apply_other_masks(const gx_cpu_selection *s, const gx_cpu_kernels *k, gx_cpu_columns *c);
void gx_cpu_selection_apply_filter(const gx_cpu_selection *s, const gx_cpu_kernels *k, gx_cpu_columns *c, uint32_t from,
                                   uint32_t clause);

/* Whether a document of [begin, end) may be allowed. Also true if it would take long to find out.
 */
bool gx_cpu_selection_may_allow(const gx_cpu_selection *s, uint32_t begin, uint32_t end);

/* Of a selection of few documents: whether looking them up takes less time than reading df postings. */
bool gx_cpu_selection_drives(const gx_cpu_selection *s, uint32_t df);

/* The next documents of a selection that drives, those from *at on (0 at first): *n of them, at most
 * max >= 64, readable up to a multiple of 16. room: for max docids, where they may be written. *at
 * moves behind them; it becomes UINT32_MAX if there are no more. The caller applies the filter to
 * them, and the masks if there are spans. */
const uint32_t *gx_cpu_selection_next(const gx_cpu_selection *s, uint32_t *at, uint32_t *room, uint32_t max,
                                      uint32_t *n);

#endif
