/* bitmap_sets.h: sets of rows from columns in containers on the GPU (tools/bench/bitmaps/containers.cuh): to a mask, to
 * their number, or to row numbers; timed.
 *
 * All functions use the current device, and fail with GX_ENOGPU where none can be used and with GX_ECUDA where it
 * fails.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_SETS_H
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_SETS_H

#include "tools/bench/bitmaps/bitmap_index.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bitmap_operation { BITMAP_OR, BITMAP_AND, BITMAP_ANDNOT } bitmap_operation;

/* The rows so far OR, AND, or AND NOT the union of columns [first, first + n). */
typedef struct bitmap_step {
    bitmap_operation operation;
    uint32_t first, n;
} bitmap_step;

enum { BITMAP_MAX_STEPS = 16 };

/* What a query gives; NULL: not wanted. */
typedef struct bitmap_rows {
    uint32_t *mask; /* [ceil(n_rows / 32)] bit r % 32 of word r / 32 is row r */
    uint64_t *count;
    uint32_t *rows; /* [n_rows], count of them; with mask and count alone */
} bitmap_rows;

typedef struct bitmap_sets bitmap_sets;

/* Columns [first, first + n) of the index in containers in GPU memory, made by up to n_threads threads. GX_ENOMEM. */
gx_status bitmap_sets_open(bitmap_sets **out, const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t n_threads,
                           gx_error *err);
void bitmap_sets_close(bitmap_sets *s);

/* Bytes of the first n columns, directory and data; they are what a query reads. */
uint64_t bitmap_sets_bytes(const bitmap_sets *s, uint32_t n);

/* A query of at most BITMAP_MAX_STEPS steps that begins with no rows, `runs` times: the mean of all but the first, by
 * events. Column 0 is the first that lies on the GPU. cold: the L2 cache is overwritten before each run. The results go
 * to the host after the timing. */
gx_status bitmap_sets_query(bitmap_sets *s, const bitmap_step *steps, uint32_t n_steps, uint32_t runs, bool cold,
                            const bitmap_rows *answer, double *seconds, gx_error *err);

/* The rows of the index's first attribute whose bin is low to high, inclusive, from bitmap columns in the forms that
 * index files have (index/attributes/bitmap_columns.h), to the host's mask [ceil(n_rows / 32)]: by two columns of a
 * range encoding, or by the OR of columns. The index has values. Timed as bitmap_sets_query; beside it a core of the
 * CPU. */
typedef struct bitmap_stored {
    bool range; /* encoding; false: equality */
    uint32_t low, high;
    uint64_t bytes;                 /* out: of the columns that are read */
    double seconds[2], cpu_seconds; /* out: cold, warm */
} bitmap_stored;

gx_status bitmap_stored_query(const bitmap_index *ix, bitmap_stored *q, uint32_t runs, uint32_t *mask, gx_error *err);

/* Seconds that a kernel takes that does nothing. */
gx_status bitmap_launch_time(uint32_t runs, double *seconds, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
