/* synonyms.h: what the words of a query are replaced by (gpuidx_expansion.h has the form of the rules).
 *
 *   terms of a query, one behind another --gx_synonyms_find--> the entry that they begin with, and what replaces it
 */
#ifndef GX_QUERY_PLAN_SYNONYMS_H
#define GX_QUERY_PLAN_SYNONYMS_H

#include "engine/api/gpuidx_expansion.h"

typedef struct gx_synonym_term {
    const char *term; /* [len] */
    size_t len;
    uint32_t offset; /* from the first term of its entry */
} gx_synonym_term;

/* A word, or several in a row. */
typedef struct gx_synonym_entry {
    const gx_synonym_term *terms; /* [n] */
    uint32_t n;
} gx_synonym_entry;

/* What an entry is replaced by. */
typedef struct gx_synonym_group {
    gx_synonym_entry from;
    const gx_synonym_entry *to; /* [n], different ones, those of one term first */
    uint32_t n, n_single;
} gx_synonym_group;

/* The longest entry that is replaced and that terms[n] begin with; NULL: none is. whole: it is to be all of them. */
const gx_synonym_group *gx_synonyms_find(const gx_synonyms *s, const gx_synonym_term *terms, uint32_t n, bool whole);

/* GX_EUSAGE: ix has another analysis than the index that the rules were read for, or lacks positions. */
gx_status gx_synonyms_check(const gx_synonyms *s, const gx_index *ix, gx_error *err);

#endif
