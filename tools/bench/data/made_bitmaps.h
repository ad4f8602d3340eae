/* made_bitmaps.h: bitmap columns of an attribute as index files have them (index/attributes/bitmap_columns.h), made in
 * memory. */
#ifndef GX_TOOLS_BENCH_DATA_MADE_BITMAPS_H
#define GX_TOOLS_BENCH_DATA_MADE_BITMAPS_H

#include "index/attributes/attributes.h"
#include "index/write/bitmap_maker.h"

typedef struct made_bitmaps {
    gx_bitmaps bitmaps; /* words has GX_READ_SLACK bytes more; without columns the encoding is GX_BITMAPS_NONE */
    uint32_t n_words;   /* of all columns */
    uint8_t *bytes;
} made_bitmaps;

/* Make the columns by the index's writer. Statuses of gx_bitmaps_make. Free them by made_bitmaps_close. */
gx_status made_bitmaps_open(made_bitmaps *out, const gx_bitmap_source *s, const gx_bitmap_options *o, gx_error *err);

/* The same of n_docs documents that have a value each, below n_values. */
gx_status made_bitmaps_of_values(made_bitmaps *out, const uint8_t *values, uint32_t n_docs, uint32_t n_values,
                                 gx_bitmap_encoding encoding, gx_error *err);
void made_bitmaps_close(made_bitmaps *m);

/* Words of a column. */
static inline uint64_t made_bitmaps_words(const made_bitmaps *m, uint32_t column)
{
    return m->bitmaps.directory[column].end - (column ? m->bitmaps.directory[column - 1].end : 0);
}

#endif
