/* schedule_measure.h: the part of `gpuidx bench schedule` that offers queries to real engines. */
#ifndef GX_TOOLS_BENCH_SCHEDULE_SCHEDULE_MEASURE_H
#define GX_TOOLS_BENCH_SCHEDULE_SCHEDULE_MEASURE_H

#include "tools/cli/cli.h"

/* Measure the index and the log that the command's arguments name. Returns the exit code. */
int schedule_measure(const cli_args *a);

#endif
