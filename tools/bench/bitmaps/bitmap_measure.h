#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_MEASURE_H
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_MEASURE_H

/* bitmap_measure.h: what `gpuidx bench bitmaps` measures of its data sets on a GPU, and the tables
 * that the figures go to. One thread. */

#include "tools/bench/bitmaps/bitmap_cpu.h"
#include "tools/bench/bitmaps/bitmap_index.h"
#include "tools/bench/bitmaps/bitmap_report.h"
#include "tools/cli/cli.h"

/* What is measured, and the tables that all data sets share. */
typedef struct bitmap_bench {
    bitmap_report report;
    uint32_t n_columns, runs, n_threads, figure; /* figure 0: everything */
    uint64_t seed, n_rows;                       /* n_rows 0: those of the data set */
    bool gpu;
    int device;
    double read_speed; /* bytes a second, of the GPU's memory */
    bitmap_table *data, *storage, *times[3], *speedups[3], *cpu, *stored;
} bitmap_bench;

/* A data set, and the right answer to its query. */
typedef struct bitmap_data {
    const bitmap_shape *shape;
    bitmap_index *ix;
    uint32_t first, n; /* the columns of the query */
    uint64_t *want, *got;
    double cpu_seconds[2][BITMAP_N_WAYS]; /* by one thread, and by all; 0: not measured */
    double ours;                          /* our kernel's seconds for WAH columns; 0: not measured */
    double sets;                          /* for columns in containers */
    double reductions[2];                 /* decompressed columns: by the ideal hybrid, and by ours */
} bitmap_data;

/* Whether the command prints the figure. */
static inline bool bitmap_wants(const bitmap_bench *b, uint32_t figure)
{
    return b->figure == 0 || b->figure == figure;
}

/* Compare d->got with d->want. 0, or the exit code, an error having been told of. */
int bitmap_check_answer(const bitmap_data *d, const char *what);

/* Open the GPU that the flags name, and measure how fast its memory reads. b->gpu says whether there
 * is one. 0, or the exit code: with --engine=gpu none is an error. */
int bitmap_open_gpu(bitmap_bench *b, const cli_args *a);

/* Measure the n data sets on the GPU, of which the first n_paper are the paper's; their results are
 * checked. Nothing without a GPU. 0, or the exit code. */
int bitmap_measure_gpu(bitmap_bench *b, bitmap_data *sets, uint32_t n, uint32_t n_paper);

#endif
