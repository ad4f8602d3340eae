/* facet_slots.h: which documents of a set are in which of a facet's groups.
 *
 *   documents of a file    3   4   7   9                     groups that are shown, by number: the slots
 *   raw values             5   2   5   8                     2: slot 0    5: slot 1
 *   pairs                  (3, 1)  (4, 0)  (7, 1)            the document 9 is in none of them
 *
 * A document of several values has a pair for each group that it is in. Pairs come some hundreds at a time, by
 * document.
 */
#ifndef GX_QUERY_FACET_FACET_SLOTS_H
#define GX_QUERY_FACET_FACET_SLOTS_H

#include "query/facet/facet_counts.h"

#define GX_SLOTS_AT_ONCE 1024u

typedef struct gx_slots {
    const gx_facet_count *counted; /* after gx_facet_count_end; NULL: all documents are in slot 0 */
    uint32_t n;                    /* the slots are the first n of its groups */
    uint64_t n_matches;            /* about how many documents are looked at */
    bool one_file;                 /* ordinals of strings are those of the file */
    gx_count_table keys;           /* a group's key and 1 + its slot; not of strings */
    /* of the file at hand */
    const gx_index *ix;
    const gx_column *c;
    uint32_t *map; /* [n_map] of a raw value: 2 + its slot, 1: none, 0: not looked up yet; NULL: `ordinals` or `keys` */
    uint64_t n_map;
    size_t max_map;
    gx_count_table ordinals; /* of a string: 1 + its slot */
    uint32_t docs[GX_SLOTS_AT_ONCE + 16], slots[GX_SLOTS_AT_ONCE], n_pairs;
} gx_slots;

typedef gx_status gx_pairs_use(void *user, const uint32_t *docs, const uint32_t *slots, uint32_t n, gx_error *err);

/* GX_ENOMEM. counted stays as long; close in either case. */
gx_status gx_slots_open(gx_slots *s, const gx_facet_count *counted, uint32_t n, uint64_t n_matches, bool one_file,
                        gx_error *err);
/* Hand the pairs of a file's documents, words[ceil(n_docs / 64)], to `use`. Its statuses, GX_ENOMEM. */
gx_status gx_slots_each(gx_slots *s, const gx_index *ix, uint32_t column, const uint64_t *words, gx_pairs_use *use,
                        void *user, gx_error *err);
void gx_slots_close(gx_slots *s);

#endif
