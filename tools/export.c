/* export.c: `gpuidx export`: an index for other engines. */
#include "index/ds2i.h"
#include "tools/cli.h"
#include "tools/stop.h"

static int run(const cli_args *a)
{
    gx_error err = {0};
    gx_index *ix;
    gx_ds2i_options opt = GX_DS2I_OPTIONS;
    const char *base = cli_text(a, "output");
    if (!base)
        return cli_usage(a, "--output: where do the files go?");
    opt.force = cli_switch(a, "force");
    opt.cancel = is_stopped;
    if (gx_index_open(&ix, a->argv[0], NULL, &err))
        return cli_fail_error(&err);
    stop_on_signals();
    const int code = gx_ds2i_export(ix, base, &opt, &err) ? stop_fail(&err) : 0;
    gx_index_close(ix);
    return code;
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "BASE", NULL, "the files are `BASE.docs`, `BASE.freqs`, and so on"},
    {"format", 'f', CLI_CHOICE, "ds2i", "ds2i", "what is written"},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace files that exist"},
    {NULL},
};

static const cli_section sections[] = {
    {"Formats",
     "  ds2i  BASE.docs, BASE.freqs and BASE.sizes as ds2i and PISA read them;\n"
     "        BASE.terms and BASE.documents, the names of both, one a line"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx export corpus.gx -o pisa/inv", "Postings for PISA's `compress_inverted_index`."},
    {NULL},
};

const cli_command cmd_export = {
    .name = "export",
    .summary = "write an index's postings for another engine",
    .synopsis = "[OPTIONS] INDEX -o BASE",
    .description = "Writes the postings, lengths and names of an index as files that other programs read.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
