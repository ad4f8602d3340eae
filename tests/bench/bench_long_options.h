/* bench_long_options.h: the options of bench_long, as bench_long.c tells them. */
#ifndef GX_TESTS_BENCH_LONG_OPTIONS_H
#define GX_TESTS_BENCH_LONG_OPTIONS_H

#include "tools/bench/data/sparse_collection.h"

#define MAX_VALUES 8
#define MAX_SETTINGS 64 /* of --approximate */

#define EXHAUSTIVE GX_N_ALGORITHMS /* of --algorithm: every posting is scored */
extern const char *const algorithm_names[EXHAUSTIVE + 1];

typedef struct numbers {
    uint32_t n;
    uint64_t of[MAX_VALUES];
} numbers;

typedef struct options {
    gx_sparse_options sparse;
    const char *index, *log;
    uint32_t times, queries, runs, sessions, check, alone, scatter_add, groups;
    numbers terms, k, map_memory; /* --map-memory: bytes, for an engine each */
    numbers algorithms;           /* of gx_algorithm */
    bool on_cpu;
    const char *approximate[MAX_SETTINGS];
    uint32_t n_approximate;
} options;

/* Exits with 2 if the command line is wrong. */
options parse_options(int argc, char **argv);

#endif
