/* serving_flags.h: the flags that `serve` and `mcp` share, and how they are read. */
#ifndef GX_SERVE_SERVING_FLAGS_H
#define GX_SERVE_SERVING_FLAGS_H

#include "tools/cli/search_flags.h"
#include "tools/serve/serve.h"

/* The defaults of searches, of SERVE_SEARCH_FLAGS. 0, or the exit code with the message printed. */
int serve_read_defaults(gx_search_setup *s, const cli_args *a);

/* clang-format off */
#define SERVE_SEARCH_FLAGS \
    {"op", 0, CLI_CHOICE, CLI_OPS, "or", "which documents match, where the request does not say"}, \
    {"scorer", 0, CLI_CHOICE, CLI_PRESETS, "bm25", "the formula of the scores, where the request does not say"}, \
    {"k1", 0, CLI_NUMBER, "X", NULL, "BM25's k1, where the request does not say", .max = 3.4e38}, \
    {"b", 0, CLI_NUMBER, "X", NULL, "BM25's b, where the request does not say", .max = 1}

/* Those that catalog_open reads. */
#define SERVE_ENGINE_FLAGS \
    {"caller-time", 0, CLI_NUMBER, "US", "200", \
     "the thread that reads a request answers it itself on the CPU, where that is predicted to take at most this " \
     "many " \
     "microseconds and no query waits. 0: other threads always answer", .max = 1e6}, \
    {"engine", 0, CLI_CHOICE, CLI_ENGINES, "auto", \
     "where to search; `auto`: on a GPU and the CPU, each query where it is answered sooner, and on the CPU alone " \
     "where no GPU can be used; `gpu`: the same, and without a GPU the server does not start"}, \
    {"cpu-threads", 0, CLI_COUNT, "N", "0", \
     "threads that search on the CPU beside those that read requests; 0: a quarter of the processors", .max = 512}, \
    {"gpu-threads", 0, CLI_COUNT, "N", "4", "batches that the GPU has at once, each with a thread of its own", \
    .min = 1, \
     .max = 64}, \
    {"gpu-batch", 0, CLI_COUNT, "N", "1024", "most queries of a batch for the GPU", .min = 1, .max = 1 << 16}, \
    {"batch-time", 0, CLI_NUMBER, "US", "25", \
     "microseconds after which a batch that is not full starts while the GPU has another one", .max = 1e6}, \
    {"gpu-timeout", 0, CLI_NUMBER, "S", "10", \
     "seconds that a batch may take on the GPU; then the CPU answers its queries", .max = 1e6}, \
    {"profile", 0, CLI_TEXT, "FILE", NULL, \
     "what queries cost on each processor, from `gpuidx calibrate`. Without this flag: the profile beside the index, " \
     "or the one in the user's cache folder, or that of an NVIDIA H200"}, \
    CLI_DEVICE_FLAGS, \
    CLI_DEVICES_FLAGS, \
    CLI_RESIDENCY_FLAGS, \
    {"check", 0, CLI_CHOICE, "structure|checksum|full", "structure", \
     "how much of the indexes is verified before they are served. `structure`: what later reads rely on, takes no " \
     "time; `checksum`: also the checksums, reads the whole file; `full`: also decodes every list"}, \
    {"load", 0, CLI_CHOICE, "map|read", "map", \
     "how indexes come into memory. `map`: pages are read when they are first used, and processes share them; " \
     "`read`: " \
     "the whole file is read first"}
/* clang-format on */

#endif
