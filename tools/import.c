/* import.c: `gpuidx import`: other engines' collections become an index. */
#include "index/ds2i.h"
#include "tools/cli.h"
#include "tools/stop.h"

/* Whether path is one of the files that BASE stands for. */
static bool is_input(const char *base, const char *path)
{
    static const char *const suffixes[] = {".docs", ".freqs", ".sizes", ".terms", ".documents"};
    char file[4096];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(file, sizeof file, "%s%s", base, suffixes[i]);
        if (cli_same_file(file, path))
            return true;
    }
    return false;
}

static int run(const cli_args *a)
{
    gx_error err = {0};
    gx_ds2i_options opt = GX_DS2I_OPTIONS;
    const char *tf_codec = cli_text(a, "tf-codec"), *path = cli_text(a, "output");
    if (!path)
        return cli_usage(a, "--output: where does the index go?");
    if (is_input(a->argv[0], path))
        return cli_usage(a, "--output: %s is what is imported; give another name", path);
    opt.force = cli_switch(a, "force");
    opt.terms = cli_text(a, "terms");
    opt.documents = cli_text(a, "documents");
    opt.cancel = is_stopped;
    if (gx_codec_find(&opt.docids, cli_text(a, "codec"), &err) ||
        (tf_codec && gx_codec_find(&opt.tfs, tf_codec, &err)))
        return cli_fail_error(&err);
    stop_on_signals();
    return gx_ds2i_import(a->argv[0], path, &opt, &err) ? stop_fail(&err) : 0;
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "FILE", NULL, "where the index goes"},
    {"format", 'f', CLI_CHOICE, "ds2i", "ds2i", "what the collection is"},
    {"terms", 0, CLI_TEXT, "FILE", NULL, "the lists' names, one a line; without it `BASE.terms`, or numbers"},
    {"documents", 0, CLI_TEXT, "FILE", NULL, "the documents' names, one a line; without it `BASE.documents`, or numbers"},
    CLI_CODEC_FLAGS,
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace `FILE` if it exists"},
    {NULL},
};

static const cli_section sections[] = {
    {"Formats",
     "  ds2i  BASE.docs, BASE.freqs and BASE.sizes of ds2i and PISA: sequences\n"
     "        of 32-bit numbers, each with its length before it"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx import gov2/inv -o gov2.gx --terms=gov2/fwd.terms --documents=gov2/fwd.documents", "What PISA's invert made."},
    {NULL},
};

const cli_command cmd_import = {
    .name = "import",
    .summary = "make an index of another engine's collection",
    .synopsis = "[OPTIONS] BASE -o FILE",
    .description = "Reads postings that another program has made. Queries of the new index are split at white space and "
                   "otherwise taken as they are: their words must be the collection's terms.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
