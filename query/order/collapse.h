/* collapse.h: what groups.c asks of an attribute's values: a table of those seen, and filters of them. */
#ifndef GX_QUERY_ORDER_COLLAPSE_H
#define GX_QUERY_ORDER_COLLAPSE_H

#include "query/order/groups.h"

/* The value of a document of the index or collection: 0.0 and -0.0 are one. */
gx_sort_value gx_collapse_value(const gx_index *ix, const gx_collapse *by, uint64_t docid);
/* The same of a document of one file. */
gx_sort_value gx_collapse_value_in(const gx_index *file, const gx_collapse *by, uint32_t docid);

/* Values that have numbers, those of heads[0, n). All zero at first; freed by free(slots). */
typedef struct gx_value_table {
    uint32_t *slots; /* [n_slots], a power of two: the number of a value plus 1, or 0 */
    size_t n_slots;
} gx_value_table;

/* The number of the head that has the value; SIZE_MAX: none has. */
size_t gx_value_table_find(const gx_value_table *t, const gx_head *heads, const gx_collapse *by,
                           const gx_sort_value *value);
/* The last of heads[n], whose value no other one has, is new. false: no memory. */
bool gx_value_table_add(gx_value_table *t, const gx_head *heads, size_t n, const gx_collapse *by);

/* The filter that selects the documents with one of the values of n heads, of which those with keep[i] == 0 are left
 * out (NULL: none is); except: all others. It also has the conditions of `also`, which must outlive it (NULL: none).
 * GX_ENOMEM. */
gx_status gx_collapse_filter(gx_filter **out, const gx_index *ix, const gx_collapse *by, const gx_head *heads, size_t n,
                             const uint8_t *keep, bool except, const gx_filter *also, gx_error *err);

#endif
