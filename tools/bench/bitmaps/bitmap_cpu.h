/* bitmap_cpu.h: the OR of neighbouring columns of a bitmap index on the CPU, in several ways, timed.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_CPU_H
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_CPU_H

#include "tools/bench/bitmaps/bitmap_index.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bitmap_way {
    BITMAP_WAH_PAIRS,  /* WAH columns two by two, the results compressed too; one thread only */
    BITMAP_WAH_CHUNKS, /* the atoms of all columns into chunks of the result, a tile of it at a time */
    BITMAP_PLAIN,      /* columns kept decompressed, a tile of the result at a time */
    BITMAP_CONTAINERS, /* ours, tools/bench/bitmaps/containers.h: the columns of 65,536 rows at a time */
    BITMAP_ROARING,    /* CRoaring; threads share the rows, and each has bitmaps of its own rows */
    BITMAP_N_WAYS
} bitmap_way;

typedef struct bitmap_cpu bitmap_cpu;

/* Prepare columns [first, first + n) for all ways and for up to max_threads threads. The index must
 * outlive it. GX_ENOMEM. */
gx_status bitmap_cpu_open(bitmap_cpu **out, const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t max_threads,
                          gx_error *err);
void bitmap_cpu_close(bitmap_cpu *c);

const char *bitmap_way_name(bitmap_way way);
/* Whether this program has the way for that number of threads: CRoaring may not be there. */
bool bitmap_cpu_can(bitmap_way way, uint32_t n_threads);
/* Bytes of the columns as the way keeps them. */
uint64_t bitmap_cpu_bytes(const bitmap_cpu *c, bitmap_way way);

/* OR the columns `runs` times, at least 2, by n_threads threads, at most max_threads: the mean time
 * of all runs but the first, the result to chunks[n_chunks]. Starting threads is not part of the
 * time. GX_ENOMEM. */
gx_status bitmap_cpu_or(bitmap_cpu *c, bitmap_way way, uint32_t n_threads, uint32_t runs, uint64_t *chunks,
                        double *seconds, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
