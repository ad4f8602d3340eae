/* hybrid.h: `--engine=hybrid`: the CPU and a GPU together, as a service. */
#ifndef GX_TOOLS_CLI_HYBRID_H
#define GX_TOOLS_CLI_HYBRID_H

#include "tools/cli/search_flags.h"

/* clang-format off */
/* What `--engine=hybrid` does; cli_hybrid_open reads them where the command has them. */
#define CLI_HYBRID_FLAGS \
    {"cpu-threads", 0, CLI_COUNT, "N", "0", \
     "with `--engine=hybrid`, threads that answer on the CPU, besides those that read and plan; 0: a quarter of the " \
     "processors", .max = 512}, \
    {"gpu-threads", 0, CLI_COUNT, "N", "4", \
     "with `--engine=hybrid`, batches that the GPU has at once, each with a thread of its own", .min = 1, .max = 64}, \
    {"gpu-batch", 0, CLI_COUNT, "N", "1024", "with `--engine=hybrid`, most queries of a batch for the GPU", .min = 1, \
     .max = 1 << 16}, \
    {"batch-time", 0, CLI_NUMBER, "US", "25", \
     "with `--engine=hybrid`, microseconds after which a batch that is not full starts while the GPU has another " \
     "one; a GPU that has none starts at once", .max = 1e6}, \
    {"gpu-timeout", 0, CLI_NUMBER, "S", "10", \
     "with `--engine=hybrid`, seconds that a batch may take on the GPU. Then the CPU answers its queries, and the " \
     "GPU is used again once it has answered", .max = 1e6}, \
    {"profile", 0, CLI_TEXT, "FILE", NULL, \
     "with `--engine=hybrid`, what queries cost, from `gpuidx calibrate`. Without this flag: the profile beside the " \
     "index, or the one in the user's cache folder, or that of an NVIDIA H200"}, \
    {"decisions", 0, CLI_TEXT, "FILE", NULL, \
     "with `--engine=hybrid`, write all decisions of the scheduler; `gpuidx bench schedule --repeat` makes them again"}
/* clang-format on */

typedef struct hybrid {
    gx_engine *gpu; /* NULL: the CPU answers all */
    gx_service_options options;
    gx_cost_profile *profile;
} hybrid;

/* Whether the command's --engine is hybrid. cli_engine_options gives those of its CPU engine. */
bool hybrid_is_asked(const cli_args *a);

/* Open the GPU engine beside `cpu`, and set the options of a service. Where no GPU can be used, a
 * note says so. 0, or the exit code with the message printed; close in either case. */
int hybrid_open(hybrid *h, const cli_args *a, const char *index_path, const gx_index *ix, gx_engine *cpu);
void hybrid_close(hybrid *h); /* after the service */

#endif
