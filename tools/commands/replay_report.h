/* replay_report.h: the reports of `gpuidx replay`: for people on a terminal (replay_report.c), and for
 * programs in JSON (replay_json.c). */
#ifndef GX_TOOLS_COMMANDS_REPLAY_REPORT_H
#define GX_TOOLS_COMMANDS_REPLAY_REPORT_H

#include <stdio.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/document_filter.h"
#include "tools/cli/hybrid.h"

enum { REPLAY_N_PERCENTILES = 5 };
static const double replay_percentiles[REPLAY_N_PERCENTILES] = {50, 90, 95, 99, 99.9};

/* What was replayed, on what, and what came of it. */
typedef struct replay_facts {
    const cli_args *a;
    const gx_index *ix;
    const gx_engine *en, *other;
    const gx_replay_options *opt;
    const gx_replay_report *r;
    const document_filter *filter;
    bool cache;           /* there is a result cache */
    const hybrid *hybrid; /* NULL: one engine searches */
} replay_facts;

/* Whether queries arrive at times of their own. */
static inline bool replay_is_open_loop(const gx_replay_options *opt)
{
    return opt->rate > 0 || opt->arrivals != GX_ARRIVALS_FIXED;
}

/* Print the report. */
void replay_put_report(FILE *out, const replay_facts *f);

/* Write the report to the file at path, "-": stdout. 0, or the exit code with the message
 * printed. */
int replay_write_report(const replay_facts *f, const char *path);

#endif
