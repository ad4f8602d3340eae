/* bitmap_columns.h: columns of a bit a document, stored beside the values of an attribute.
 *
 *   document    0  1  2  3  4  5           bins: 3 to 3, 5 to 5, 7 to 7
 *   value       7  3  -  7  5  3
 *
 *   equality                               range: the documents of the bins up to this one
 *   bin 0       0  1  0  0  0  1           bin 0       0  1  1  0  0  1
 *   bin 1       0  0  0  0  1  0           bin 1       0  1  1  0  1  1
 *   bin 2       1  0  0  1  0  0
 *
 * A range of values is the OR of some columns of the first kind, and of the second kind one column
 * without another. Each column has the smallest of three forms (format.h), about. The columns say
 * nothing that the values do not say. The check of the structure has verified that all parts lie
 * inside the section; only GX_CHECK_FULL verifies the columns themselves.
 */
#ifndef GX_INDEX_ATTRIBUTES_BITMAP_COLUMNS_H
#define GX_INDEX_ATTRIBUTES_BITMAP_COLUMNS_H

#include "index/index.h"

struct gx_column;

typedef struct gx_bitmaps {
    gx_bitmap_encoding encoding; /* not GX_BITMAPS_AUTO */
    gx_bitmap_options asked;
    uint32_t n_bins, n_columns;
    const void *least, *greatest;     /* [n_bins] values as the column has them; NULL: bin i is string i */
    const gx_bitmap_entry *directory; /* [n_columns] */
    const uint32_t *words;
    uint64_t bytes; /* in the file */
} gx_bitmaps;

/* Columns of a range encoding and of an equality encoding. */
static inline uint32_t gx_bitmaps_n_columns(gx_bitmap_encoding e, uint32_t n_bins)
{
    return e == GX_BITMAPS_EQUALITY ? n_bins : e == GX_BITMAPS_RANGE && n_bins ? n_bins - 1 : 0;
}

static inline gx_bitmap_form gx_bitmap_form_of(gx_bitmap_entry e)
{
    return (gx_bitmap_form)(e.n >> 30);
}

static inline uint32_t gx_bitmap_n(gx_bitmap_entry e)
{
    return e.n & 0x3fffffffu;
}

/* A bin's least and greatest value, as the column has them. */
uint64_t gx_bitmaps_least(const struct gx_column *c, uint32_t bin);
uint64_t gx_bitmaps_greatest(const struct gx_column *c, uint32_t bin);

/* The bins that have values in [low, high], values as the column has them: [*first, *last]. false:
 * none. */
bool gx_bitmaps_find(const struct gx_column *c, uint64_t low, uint64_t high, uint32_t *first, uint32_t *last);

/* Set, or clear, the bits of a column's documents in words [ceil(n_docs / 64)]. In a range encoding a
 * document without a value is where the last one before it that has a value is; the caller drops it.
 * Documents from n_docs on, which a damaged column can have, are left out. */
void gx_bitmap_set(const gx_bitmaps *b, uint32_t column, uint32_t n_docs, uint64_t *words);
void gx_bitmap_clear(const gx_bitmaps *b, uint32_t column, uint32_t n_docs, uint64_t *words);

/* Decode block j of a column that is a list or runs: at most 128 numbers to numbers [160]. Returns how
 * many, 0 behind the last block. */
uint32_t gx_bitmap_block(const gx_bitmaps *b, uint32_t column, uint32_t j, uint32_t *numbers);

/* Set the bitmaps of ix->columns, after gx_columns_bind. GX_ECORRUPT. */
gx_status gx_bitmaps_bind(gx_index *ix, gx_error *err);

/* The checks of the structure and of the contents (check_parts.h), after those of the values. */
gx_status gx_bitmaps_check_structure(const gx_index *ix, gx_error *err);
gx_status gx_bitmaps_check_contents(const gx_index *ix, gx_error *err);

#endif
