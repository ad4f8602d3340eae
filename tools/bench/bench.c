/* bench.c: `gpuidx bench WORD`: the benchmarks that there are. Each is a command of its own, in
 * bench_WORD.c. */
#include <stddef.h>

#include "tools/cli/cli.h"

static const cli_command *const benchmarks[] = {
    &cmd_bench_bitmaps, &cmd_bench_codecs, &cmd_bench_query, &cmd_bench_schedule, NULL,
};

const cli_command cmd_bench = {
    .name = "bench",
    .summary = "measure this machine, and print the papers' tables",
    .synopsis = "BENCHMARK [OPTIONS]",
    .description = "Measures how fast this machine does what gpuidx is made of, and prints the tables of the papers. "
                   "Each benchmark has flags of its own: `gpuidx bench codecs --help`.",
    .subcommands = benchmarks,
};
