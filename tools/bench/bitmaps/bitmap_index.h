/* bitmap_index.h: bitmap indexes of generated rows, for `gpuidx bench bitmaps`.
 *
 * A row has a value in each attribute, and an attribute has bins, each of them a column: a bit a
 * row, compressed by WAH. Every row has exactly one bit set in an attribute's columns. The columns
 * of an attribute are neighbours, so that a range of its values is a range of columns.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_INDEX_H
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_INDEX_H

#include "tools/bench/bitmaps/wah.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How rows are drawn. */
typedef struct bitmap_shape {
    const char *name, *title;
    uint64_t n_rows;
    uint32_t n_attributes, n_columns; /* columns are divided among the attributes as evenly as may be */
    double skew; /* an attribute's k-th bin of n is drawn with probability k^-skew over their sum */
    double run;  /* a value is drawn for a run of rows of this mean length, at least 1; lengths are geometric */
} bitmap_shape;

/* The data sets of Tran, Schaffner, Sawin, Myre and Chiu, "Increasing the Efficiency of GPU Bitmap
 * Index Query Processing", and two of our own; the last has no name. The paper's three real sets
 * are stand-ins: rows, attributes and columns as published, lengths of runs such that the sizes of
 * the paper's Figure 4 result. */
extern const bitmap_shape bitmap_shapes[];

/* Chunks of a tile of our GPU kernel: of a column, each tile has a sample. */
enum { BITMAP_TILE = 512 };

/* Where chunk number k * tile of a column lies: `skip` chunks behind the first one of an atom. */
typedef struct bitmap_sample {
    uint32_t atom, skip;
} bitmap_sample;

typedef struct bitmap_index {
    bitmap_shape shape;
    uint64_t n_chunks; /* of a column; less than 2^32 */
    uint32_t n_columns;
    uint64_t *atoms;  /* of all columns, one column behind another */
    uint64_t *begins; /* [n_columns + 1] */
    uint8_t *values;  /* [n_rows] the first attribute's bin of each row; NULL where it has more than 256 */
} bitmap_index;

/* Draw an index from a seed, by up to n_threads threads; the columns are checked (gx_wah_check).
 * GX_ENOMEM; GX_EUSAGE: too many rows. Free it by bitmap_index_close. */
gx_status bitmap_index_open(bitmap_index **out, const bitmap_shape *shape, uint64_t seed, uint32_t n_threads,
                            gx_error *err);
void bitmap_index_close(bitmap_index *ix);

static inline gx_wah bitmap_column(const bitmap_index *ix, uint32_t i)
{
    return (gx_wah){ix->atoms + ix->begins[i], ix->begins[i + 1] - ix->begins[i], ix->shape.n_rows};
}

static inline uint32_t bitmap_n_tiles(const bitmap_index *ix, uint32_t tile)
{
    return (uint32_t)((ix->n_chunks + tile - 1) / tile);
}

/* Samples of columns [first, first + n): [n_tiles + 1][n], the last row {number of atoms, 0}. NULL:
 * no memory. The caller frees them with free(). */
bitmap_sample *bitmap_make_samples(const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t tile);

/* The columns of an attribute: *first and *n. */
void bitmap_attribute(const bitmap_shape *shape, uint32_t attribute, uint32_t *first, uint32_t *n);

#ifdef __cplusplus
}
#endif
#endif
