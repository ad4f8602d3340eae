/* facet_ordinals.h: an attribute as a facet groups it, for an engine that counts matches itself.
 *
 *   values of a document --gx_facet_ordinals_make--> ordinals: the numbers of its groups
 *   ordinals, matches    --the engine--------------> counts: of each ordinal, the matches that have it
 *   counts               --gx_facet_count_take-----> groups, as facet_counts.h makes them
 *
 * There are n groups. Ordinal n stands for a document without a value, ordinal n + 1 for a value that is in no
 * group, which only a damaged file has. So there are n + 2 counts.
 */
#ifndef GX_QUERY_FACET_FACET_ORDINALS_H
#define GX_QUERY_FACET_FACET_ORDINALS_H

#include "query/facet/facet_counts.h"

#define GX_MAX_ORDINALS (1u << 20) /* groups of a facet; one with more is counted without ordinals */

typedef struct gx_facet_ordinals {
    const gx_index *ix;
    uint32_t column;
    gx_facet_grouping grouping; /* never GX_FACET_BINS, whose bins are made of values */
    double width;               /* of GX_FACET_WIDTH */
    uint32_t n;
    uint64_t *keys;             /* [n] of gx_counted_group, rising; NULL: of strings */
    gx_counted_string *strings; /* [n] of a keyword, in order, their counts 0; else NULL */
    /* Until gx_facet_ordinals_drop: */
    void *ordinals; /* [n_ordinals], each of `bytes` bytes */
    uint64_t n_ordinals;
    uint32_t bytes;   /* 1, 2 or 4 */
    uint32_t *starts; /* [n_docs + 1] where the ordinals of a document of several values begin; they rise, and
                       * differ. NULL: one a document */
} gx_facet_ordinals;

/* What the engine has counted of one query: counts[] has the n + 2 counts of each facet, one facet after another. */
typedef struct gx_match_counts {
    uint64_t n_matches;
    uint32_t *counts;
} gx_match_counts;

static inline uint64_t gx_n_counts(const gx_facet_ordinals *o)
{
    return (uint64_t)o->n + 2;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a facet of the column can be counted by ordinals: not one that has more than GX_MAX_ORDINALS strings, or
 * bins of several values a document. Of wide values only gx_facet_ordinals_make can tell. */
bool gx_facet_has_ordinals(const gx_index *ix, uint32_t column, const gx_facet *f);

/* What the facet's ordinals are of, without the ordinals; and whether they are of what `o` is. */
gx_facet_ordinals gx_facet_ordinals_of(uint32_t column, const gx_facet *f);
bool gx_facet_ordinals_suit(const gx_facet_ordinals *o, uint32_t column, const gx_facet *f);

/* Make the ordinals that count a facet of the column, which is full-sized and checked, of an index that is one
 * file. *out is NULL, with GX_OK, where there can be none. Takes a pass over the values, of wide ones two.
 * GX_ENOMEM. */
gx_status gx_facet_ordinals_make(gx_facet_ordinals **out, const gx_index *ix, uint32_t column, const gx_facet *f,
                                 gx_error *err);
void gx_facet_ordinals_drop(gx_facet_ordinals *o);  /* free what an engine has copied */
void gx_facet_ordinals_close(gx_facet_ordinals *o); /* NULL is fine */

#ifdef __cplusplus
}
#endif

/* The groups of f, as gx_facet_count_end leaves them, of counts[n + 2] of n_matches documents. f->facet and f->type
 * are set, all else is 0; o stays as long as f. GX_ENOMEM. */
gx_status gx_facet_count_take(gx_facet_count *f, const gx_facet_ordinals *o, const uint32_t *counts, uint64_t n_matches,
                              gx_error *err);

#endif
