/* bitmap_ewah.h: columns of a bitmap index under EWAH (ewah.h) and their OR, for bitmap_cpu.c. Threads share
 * the rows: each share has bitmaps of its own. */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_EWAH_H
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_EWAH_H

#include "engine/api/gpuidx.h"

typedef struct bitmap_ewah bitmap_ewah;

/* How the OR is made. */
typedef enum bitmap_ewah_way {
    BITMAP_EWAH_MERGED, /* columns two by two, the smallest first; the result is coded, too */
    BITMAP_EWAH_BUFFER  /* the words of all columns into words of the result, some thousands at a time */
} bitmap_ewah_way;

/* Code n columns of n_rows rows, which are chunks (tools/bench/bitmaps/wah.h): column i is chunks[i * n_chunks ...].
 * They are coded whole, and in shares for up to max_threads threads. GX_ENOMEM. */
gx_status bitmap_ewah_open(bitmap_ewah **out, const uint64_t *chunks, uint32_t n, uint64_t n_rows,
                           uint32_t max_threads);
void bitmap_ewah_close(bitmap_ewah *e); /* accepts NULL */

uint64_t bitmap_ewah_bytes(const bitmap_ewah *e); /* of the whole columns */

/* Shares of an OR by that number of threads, and the OR of one of them. Different shares may be made by
 * different threads. false: no memory. */
uint32_t bitmap_ewah_n_shares(const bitmap_ewah *e, uint32_t n_threads);
bool bitmap_ewah_or(bitmap_ewah *e, bitmap_ewah_way way, uint32_t n_threads, uint32_t share);

/* Forget coded results of an OR before. */
void bitmap_ewah_clear(bitmap_ewah *e);

/* The result, as chunks[n_chunks]. */
void bitmap_ewah_copy(bitmap_ewah *e, bitmap_ewah_way way, uint32_t n_threads, uint64_t *chunks);

#endif
