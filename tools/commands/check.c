/* check.c: `gpuidx check`: is an index whole? */
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"
#include "tools/cli/lookup.h"
#include "tools/cli/output.h"

#define LEVELS "header|structure|checksum|full" /* as gx_check counts them */

static void print_json(const char *path, const char *level, gx_status st, const gx_error *err)
{
    fputs("{\"schema\":1,\"file\":", stdout);
    out_put_json(stdout, path, strlen(path));
    printf(",\"level\":\"%s\",\"ok\":%s,\"status\":\"%s\"", level, st ? "false" : "true", gx_status_name(st));
    if (st) {
        fputs(",\"error\":", stdout);
        out_put_json(stdout, err->text, strlen(err->text));
    }
    puts("}");
}

/* An index without damage may have been built with another stemmer. */
static void tell_analysis(const char *path)
{
    gx_index *ix;
    gx_index_options options = GX_INDEX_OPTIONS;
    options.check = GX_CHECK_STRUCTURE;
    if (gx_index_open(&ix, path, &options, NULL))
        return;
    lookup_tell_analysis(ix, path);
    gx_index_close(ix);
}

static int run(const cli_args *a)
{
    int worst = 0;
    for (int i = 0; i < a->argc; ++i) {
        const char *path = a->argv[i], *level = cli_text(a, "level");
        gx_error err = {0};
        const gx_status st = gx_index_verify(path, (gx_check)cli_choice(a, "level"), &err);
        if (cli_switch(a, "json"))
            print_json(path, level, st, &err);
        else if (st)
            cli_fail_error(&err);
        else
            printf("%s: no damage found (%s)\n", path, level);
        if (st == GX_OK && cli_choice(a, "level") >= GX_CHECK_STRUCTURE)
            tell_analysis(path);
        const int code = st == GX_ECORRUPT ? 1 : gx_status_exit(st); /* damage is what was asked for */
        if (code > worst)
            worst = code;
    }
    return worst;
}

static const cli_flag flags[] = {
    {"level", 'l', CLI_CHOICE, LEVELS, "full", "how much is verified; each level includes those before it"},
    {"json", 0, CLI_SWITCH, NULL, NULL, "print a JSON object for each file, with \"schema\": 1, instead"},
    {NULL},
};

static const cli_section sections[] = {
    {"Levels", "  header     magic, version, sizes, the section table, their checksum\n"
               "  structure  every offset, count and bound that a query relies on\n"
               "  checksum   the checksum of every section\n"
               "  full       every list decoded and coded again, every stored text decoded"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx check corpus.gx", "Everything."},
    {"gpuidx check --level=checksum *.gx", "Find files that have changed since they were built."},
    {NULL},
};

const cli_command cmd_check = {
    .name = "check",
    .summary = "verify that an index is whole",
    .synopsis = "[OPTIONS] INDEX...",
    .description = "Verifies index files. Exits with 1 if any is damaged, truncated or of an unknown version, naming "
                   "the section, the place and the reason.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
