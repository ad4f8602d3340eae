/* bitmap_gpu.h: range queries over neighbouring columns of a bitmap index on the GPU: the
 * configurations of Tran, Schaffner, Sawin, Myre and Chiu, and ours; timed.
 *
 * All functions use the current device, and fail with GX_ENOGPU where none can be used and with
 * GX_ECUDA where it fails.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_GPU_H
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_GPU_H

#include "tools/bench/bitmaps/bitmap_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is stored beside the compressed columns. */
typedef enum bitmap_metadata {
    BITMAP_NO_METADATA,
    BITMAP_STAGE2_32, /* StartingPoints, in 32 bits */
    BITMAP_STAGE2_64,
    BITMAP_STAGE4_32,   /* WordIndex, in 32 bits */
    BITMAP_DECOMPRESSED /* the columns themselves, 64 bits a word */
} bitmap_metadata;

/* One of the paper's configurations. */
typedef struct bitmap_config {
    const char *name;
    bool reuse; /* of data structures; false: the baseline */
    bitmap_metadata metadata;
    bool pool;
    double paper; /* the mean speedup over the baseline that the paper has; 0: it has none */
} bitmap_config;

enum { BITMAP_N_CONFIGS = 11 };
extern const bitmap_config bitmap_configs[BITMAP_N_CONFIGS]; /* the baseline first */

/* Reductions of decompressed columns (Nelson et al. 2019), and one of ours. */
typedef enum bitmap_reduction {
    BITMAP_COA,
    BITMAP_ROA,
    BITMAP_HYBRID,
    BITMAP_IDEAL_HYBRID, /* at most 1,024 columns */
    BITMAP_STREAM,       /* ours: a thread a word of the result, in a register */
    BITMAP_N_REDUCTIONS
} bitmap_reduction;

const char *bitmap_reduction_name(bitmap_reduction r);

/* How a query is run. */
typedef struct bitmap_plan {
    const bitmap_config *config;
    bitmap_reduction reduction;
    bool a_column; /* stages, and memory calls, for each column by itself; false: for all columns at once */
    bool no_calls; /* arrays are taken from the pool although the configuration has none */
    bool steps;    /* measure each step; the steps then wait for one another */
    bool hashed;   /* the pool is the paper's: all arrays of the query at a hashed place, or it fails with GX_ENOMEM */
} bitmap_plan;

/* Where the time of a query went, in seconds. */
typedef struct bitmap_steps {
    double memory, stages[5], reduction;
    uint32_t memory_calls;
} bitmap_steps;

typedef struct bitmap_gpu bitmap_gpu;
typedef struct bitmap_client bitmap_client;

/* Columns [first, first + n) in GPU memory, with all metadata, and a pool of n_slots arrays of a
 * decompressed column, at least 5; 0: 5 n, which is enough for every configuration. The index must
 * outlive it. Shared by all threads. GX_ENOMEM. */
gx_status bitmap_gpu_open(bitmap_gpu **out, const bitmap_index *ix, uint32_t first, uint32_t n, uint32_t n_slots,
                          gx_error *err);
void bitmap_gpu_close(bitmap_gpu *g);

/* What a thread needs to ask queries. all_reductions: also BITMAP_COA, which takes memory for half
 * of the columns. */
gx_status bitmap_client_open(bitmap_client **out, bitmap_gpu *g, bool all_reductions, gx_error *err);
void bitmap_client_close(bitmap_client *c);

/* OR the first n columns, `runs` times: the mean of all runs but the first (of one: that one), from
 * the host's first step to the result in GPU memory: *seconds by the host's clock. kernel_seconds:
 * by the GPU's events; NULL: not wanted. A query whose arrays are more than the pool has takes its
 * columns in groups. The result goes to chunks[n_chunks], which may be NULL. steps may be NULL. */
gx_status bitmap_gpu_query(bitmap_client *c, const bitmap_plan *plan, uint32_t n, uint32_t runs, uint64_t *chunks,
                           double *seconds, double *kernel_seconds, bitmap_steps *steps, gx_error *err);

/* How many queries had to wait for the pool. */
uint64_t bitmap_gpu_waits(bitmap_gpu *g);

/* Seconds that copying the result to the host takes, from pinned memory. */
gx_status bitmap_gpu_copy_time(bitmap_client *c, uint32_t runs, double *seconds, gx_error *err);

/* A form of our kernel (tools/bench/bitmaps/wah.cuh). */
typedef struct bitmap_variant {
    uint32_t tile, warps, rows;
    uint32_t step; /* columns after which a tile of ones is done; 0: never */
} bitmap_variant;

extern const bitmap_variant bitmap_variants[]; /* the best first, the best with early exit second; ends at tile 0 */

/* What a run of our kernel writes; NULL: not wanted. */
typedef struct bitmap_answer {
    uint64_t *chunks; /* [n_chunks] */
    uint32_t *mask;   /* [ceil(n_rows / 32)] */
    uint64_t *count;
} bitmap_answer;

/* OR the first n columns by our kernel, `runs` times: the mean of all but the first, by events.
 * cold: the L2 cache is overwritten before each run. The results go to the host after the timing. */
gx_status bitmap_gpu_ours(bitmap_client *c, uint32_t variant, uint32_t n, uint32_t runs, bool cold,
                          const bitmap_answer *answer, double *seconds, gx_error *err);
/* Decompressed columns by a reduction, timed in the same way. */
gx_status bitmap_gpu_reduce(bitmap_client *c, bitmap_reduction r, uint32_t n, uint32_t runs, bool cold,
                            uint64_t *chunks, double *seconds, gx_error *err);

/* Encodings of an attribute's range other than a column a bin. */
typedef enum bitmap_encoding {
    BITMAP_BY_COLUMNS, /* two range-encoded columns */
    BITMAP_BY_SLICES,
    BITMAP_BY_VALUES, /* the forward column */
    BITMAP_N_ENCODINGS
} bitmap_encoding;

const char *bitmap_encoding_name(bitmap_encoding e);
/* Bytes that the encoding reads for a range of n_rows rows of n_bins bins. */
uint64_t bitmap_encoding_bytes(bitmap_encoding e, uint64_t n_rows, uint32_t n_bins);

/* The rows of the index's first attribute whose bin is low to high, inclusive, to the host's
 * mask[ceil(n_rows / 32)]; timed as bitmap_gpu_ours. The index has values. */
gx_status bitmap_gpu_range(const bitmap_index *ix, bitmap_encoding e, uint32_t low, uint32_t high, uint32_t runs,
                           bool cold, uint32_t *mask, double *seconds, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
