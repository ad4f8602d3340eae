/* bench.c: the program gpuidx-bench: its texts, and the list of its commands. */
#include "tools/bench/common.h"

static const cli_command *const commands[] = {
    &cmd_bench_codecs, &cmd_bench_bitmaps, &cmd_bench_query, &cmd_bench_schedule,
    &cmd_generate,     &cmd_completion,    &cmd_help,        NULL,
};

static const cli_section examples[] = {
    {"gpuidx-bench codecs", "How small codecs make lists, and how fast they decode them."},
    {"gpuidx-bench query corpus.gx log.txt", "Every engine, operator and algorithm on an index and a log."},
    {NULL},
};

const cli_program cli_this = {
    .name = "gpuidx-bench",
    .summary = "measure this machine, and print the papers' tables",
    .description = "Measures how fast this machine does what `gpuidx` is made of, and prints the tables of the papers. "
                   "Each benchmark has flags of its own: `gpuidx-bench codecs --help`. `gpuidx bench` and "
                   "`gpuidx generate` start this program.",
    .examples = examples,
    .commands = commands,
};
