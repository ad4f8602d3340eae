/* attribute_rows.h: up to four columns side by side, derived from their orders in memory: a word a document, which
 * has a byte of each column. The byte is the value's place in the column's order, in GX_ROW_CODES steps. So one
 * look at memory tells of conditions on several columns, but for values at the ends of a range.
 *
 *   places       of f: d0: 7   d1: 3   of r: d0: 1   d1: -   of 8 documents
 *   words        d0: 221 | 31 << 8     d1: 94 | NONE << 8
 */
#ifndef GX_INDEX_ATTRIBUTES_ATTRIBUTE_ROWS_H
#define GX_INDEX_ATTRIBUTES_ATTRIBUTE_ROWS_H

#include "index/attributes/attribute_order.h"

#define GX_ROW_COLUMNS 4u
#define GX_ROW_CODES 253u
#define GX_ROW_UNUSED 254u /* no document has it */
#define GX_ROW_NONE 255u   /* no value */
#define GX_MAX_ROWS 8u     /* sets of columns of an index */

typedef struct gx_attribute_rows {
    struct gx_attribute_rows *next;
    uint32_t n_columns, columns[GX_ROW_COLUMNS]; /* numbers in the index; column i is byte i */
    uint32_t words[];                            /* [n_docs] */
} gx_attribute_rows;

/* Rows of a set of n columns, which have one value a document or none, and perhaps of others: made at their first
 * use, 4 bytes a document. They belong to the index. NULL: no memory, there are GX_MAX_ROWS others, or more than
 * GX_ROW_COLUMNS columns. Thread-safe. */
const gx_attribute_rows *gx_attribute_get_rows(const gx_index *ix, const uint32_t *columns, uint32_t n);
void gx_attribute_rows_free(gx_attribute_rows *rows); /* and the next; NULL is fine */

/* Places within the bounds, of which there are some at most, have bytes [first, last]; other places have some of these
 * bytes too, but none of [inner_first, inner_last], which may be the unused one alone. */
typedef struct gx_row_range {
    uint32_t first, last, inner_first, inner_last;
} gx_row_range;

gx_row_range gx_row_range_of(const gx_column_order *o, const gx_place_bounds *b);

#endif
