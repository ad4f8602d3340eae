/* facet_set.h: a set of documents, and the answer of a facet of it.
 *
 *   gx_facet_make: count (facet_counts.h) -> show the groups -> their figures (figures.h) and inner facets
 */
#ifndef GX_QUERY_ANSWERS_FACET_SET_H
#define GX_QUERY_ANSWERS_FACET_SET_H

#include "engine/api/gpuidx_advanced.h"
#include "query/facet/facet_counts.h"

/* Documents of one file, listed by group. */
typedef struct gx_grouped_docs {
    uint32_t *docs, *slots; /* [n] as they came; then docs by slot */
    size_t n, max_docs, max_slots;
    size_t *starts; /* [slots + 1] */
} gx_grouped_docs;

typedef struct gx_facet_set {
    const gx_index *ix;
    const uint64_t *words; /* a bit a document of ix; NULL: the documents are .. */
    const gx_grouped_docs *listed;
    uint32_t group; /* .. those of this group in listed[files] */
    uint64_t n_matches;
    uint64_t *local, *scratch; /* words of the largest file */
} gx_facet_set;

uint64_t *gx_facet_words(uint64_t n_docs); /* zeros for so many documents, and a little more; NULL: no memory */

/* GX_ENOMEM; close in either case. */
gx_status gx_facet_set_open(gx_facet_set *s, const gx_index *ix, const uint64_t *words, uint64_t n_matches,
                            gx_error *err);
void gx_facet_set_close(gx_facet_set *s);

/* An answer, with all that it points to. */
typedef struct gx_facet_made {
    gx_facet_answer shown;
    gx_facet_group *groups; /* [shown.n] */
    size_t *at;             /* [shown.n] where their texts begin */
    char *texts;            /* [n_texts] */
    size_t n_texts, max_texts;
    gx_figures *figures;         /* [shown.n * shown.n_sums] */
    gx_value **percentiles;      /* [shown.n_sums] each of all groups */
    gx_sum *sums;                /* [shown.n_sums], whose percentiles figures point to, and names .. */
    char **names;                /* .. are these, [shown.n_sums] */
    struct gx_facet_made *inner; /* [shown.n] */
    gx_facet_answer *inner_shown;
} gx_facet_made;

/* The groups of a count that has ended, as *made shows them; column NULL: of GX_FACET_ALL. The groups that are shown
 * come first in c afterwards. GX_ENOMEM. */
gx_status gx_facet_show(gx_facet_made *made, gx_facet_count *c, const gx_column *column, uint64_t n_matches,
                        gx_error *err);

/* All of it; facet is full-sized and checked. Statuses of gx_facet_check, GX_ENOMEM. */
gx_status gx_facet_make(gx_facet_made *made, const gx_facet_set *s, const gx_facet *facet, uint32_t column,
                        gx_error *err);
void gx_facet_made_free(gx_facet_made *made);

#endif
