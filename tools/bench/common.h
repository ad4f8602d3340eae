/* common.h: the benchmarks, what their reports begin with, the machine; and the folder of their plots. */
#ifndef GX_TOOLS_BENCH_COMMON_H
#define GX_TOOLS_BENCH_COMMON_H

#include <jansson.h>
#include <stdio.h>

#include "engine/api/gpuidx.h"
#include "tools/cli/cli.h"

/* The commands of gpuidx-bench, which bench.c lists. */
extern const cli_command cmd_bench_codecs, cmd_bench_bitmaps, cmd_bench_query, cmd_bench_schedule, cmd_generate;

/* A line: gpuidx's version, the CPU, the instructions that its decoders use, and the seed. */
void bench_print_machine(uint64_t seed);
/* The same into a report: "gpuidx", "cpu", "simd", "seed". */
void bench_put_machine(json_t *report, uint64_t seed);

/* Flags that would count for nothing beside `with` are refused; 0, or the exit code. others ends at NULL. */
int bench_refuse(const cli_args *a, const char *with, const char *const *others, const char *why);
#define BENCH_REFUSE(a, with, why, ...) bench_refuse(a, with, (const char *const[]){__VA_ARGS__, NULL}, why)

/* A number, or null where nothing was measured: 0. */
json_t *bench_json(double x);
/* The report to stdout, which then is no more; NULL: there was no memory for it. 0, or the exit
 * code. */
int bench_print_json(json_t *report);

/* The flag of commands with --plot; and whether plots that exist are replaced, which is false until it is told. */
#define BENCH_FORCE_FLAG                                                                                               \
    {                                                                                                                  \
        "force", 0, CLI_SWITCH, NULL, NULL, "replace plots that exist in the folder of `--plot`"                       \
    }
void bench_plot_force(bool force);

/* What a plot is of; NULL where there is none. */
typedef struct bench_subject {
    const char *index, *log, *gpu;
} bench_subject;
/* Into a gnuplot script: a title of two lines, what is drawn, and of which index and log, on which machine, by which
 * version, when; and lines of colours that stand out from white. */
void bench_put_title(FILE *f, const char *what, const bench_subject *of);

/* The folder of plots: made where there is none, and written to; 0, or the exit code. */
int bench_plot_dir(const char *dir);

/* A gnuplot script, DIR/NAME.gp, which makes NAME.png and NAME.svg; one at a time. NULL with the message printed and
 * *exit_code set, also where one of the three exists and is not to be replaced. */
FILE *bench_script_begin(const char *dir, const char *name, int *exit_code);
/* Write it, and have gnuplot draw by it. A warning where it cannot, or, once, where there is no gnuplot; no empty image
 * is left. Returns the exit code. */
int bench_script_end(const char *dir, const char *name);

#endif
