/* attribute_sets.h: the different sets of values that documents have in a column of several values, numbered, derived
 * from its order in memory. A condition on the column is a bit a set. So one look at a short number tests a document,
 * however many values it has.
 *
 *   values      d0: c, a   d1: b   d2: -   d3: c, a   d4: b, c
 *   sets        0: {a, c}  1: {b}  2: {}  3: {b, c}              the most frequent first
 *   numbers     d0: 0   d1: 1   d2: 2   d3: 0   d4: 3
 *   [b TO b]    bits of 1 and 3
 */
#ifndef GX_INDEX_ATTRIBUTES_ATTRIBUTE_SETS_H
#define GX_INDEX_ATTRIBUTES_ATTRIBUTE_SETS_H

#include "index/attributes/attribute_order.h"

#define GX_SET_OTHER UINT16_MAX /* the number of all sets behind the first GX_SET_OTHER */
#define GX_SET_TABLES 512u

/* The sets with a value from low to high. */
typedef struct gx_set_table {
    uint64_t low, high;
    uint32_t n_docs; /* of these sets, but for GX_SET_OTHER */
    uint32_t bits[]; /* a bit a number, [2^16 / 32] or as many as there are numbers; that of GX_SET_OTHER is 0 */
} gx_set_table;

typedef struct gx_column_sets {
    uint32_t n;              /* sets that have a number of their own; 0: documents have too many different ones */
    bool others;             /* some documents have the number GX_SET_OTHER: their values tell */
    const uint16_t *numbers; /* [n_docs]; 4 bytes may be read before it */
    uint32_t *counts;        /* [n] documents */
    uint32_t *starts;        /* [n_starts + 1] of the order's raw values: sets[starts[v]], .. have value v */
    uint16_t *sets;
    gx_set_table *tables[GX_SET_TABLES]; /* atomic; NULL until needed */
} gx_column_sets;

/* The sets of a column whose order has starts, made at their first use, which makes the order too: 2 bytes a document,
 * 2 bytes for each value of each set. They belong to the order. NULL: the column has one value a document or many
 * different values, more than a document in 32 would have GX_SET_OTHER, or no memory. Thread-safe. */
const gx_column_sets *gx_column_get_sets(const gx_index *ix, gx_column *c);

/* The table of the values from low to high, as the column has them: made at its first use, up to 8 KB, and kept with
 * the sets. NULL: no memory, or GX_SET_TABLES others are there. Thread-safe. */
const gx_set_table *gx_column_get_set_table(const gx_column *c, const gx_column_sets *sets, uint64_t low,
                                            uint64_t high);

void gx_column_sets_free(gx_column_sets *sets); /* NULL is fine */

#endif
