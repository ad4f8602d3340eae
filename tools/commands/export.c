/* export.c: `gpuidx export`: an index for other engines. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"
#include "tools/cli/signals.h"

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Bytes of a file; 0 if it is none. */
static uint64_t bytes_of(const char *base, const char *suffix)
{
    char path[4096];
    struct stat st;
    if ((size_t)snprintf(path, sizeof path, "%s%s", base, suffix) >= sizeof path || stat(path, &st) ||
        !S_ISREG(st.st_mode))
        return 0;
    return (uint64_t)st.st_size;
}

/* What was written to output, one file (CIFF) or several. */
static void tell_postings(const gx_index *ix, const char *output, bool ciff)
{
    static const char *const suffixes[] = {".docs", ".freqs", ".sizes", ".terms", ".documents"};
    gx_index_stats st = {.size = sizeof st};
    uint64_t bytes = ciff ? bytes_of(output, "") : 0;
    gx_index_get_stats(ix, &st);
    for (size_t i = 0; !ciff && i < sizeof suffixes / sizeof *suffixes; ++i)
        bytes += bytes_of(output, suffixes[i]);
    cli_note("%s: %s document%s, %s term%s, %s posting%s as %s%s%s", strcmp(output, "-") ? output : "standard output",
             show_count(st.n_documents), plural(st.n_documents), show_count(st.n_terms), plural(st.n_terms),
             show_count(st.n_postings), plural(st.n_postings), ciff ? "CIFF" : "ds2i", bytes ? ", " : "",
             bytes ? show_bytes(bytes) : "");
}

static void tell_attributes(const gx_index *ix, const char *path)
{
    const uint32_t n = gx_index_n_attributes(ix);
    gx_index_stats st = {.size = sizeof st};
    const uint64_t bytes = bytes_of(path, "");
    gx_index_get_stats(ix, &st);
    cli_note("%s: %u attribute%s of %s document%s%s%s", strcmp(path, "-") ? path : "standard output", n, plural(n),
             show_count(st.n_documents), plural(st.n_documents), bytes ? ", " : "", bytes ? show_bytes(bytes) : "");
}

static gx_export_options options_of(const cli_args *a)
{
    gx_export_options opt = GX_EXPORT_OPTIONS;
    opt.force = cli_switch(a, "force");
    opt.cancel = is_stopped;
    return opt;
}

/* Attributes without postings. */
static int export_attributes(const cli_args *a, const char *path)
{
    gx_error err = {0};
    gx_index *ix;
    if (gx_index_open(&ix, a->argv[0], NULL, &err))
        return cli_fail_error(&err);
    const gx_export_options opt = options_of(a);
    stop_on_signals();
    const gx_status st = gx_attributes_export(ix, path, &opt, &err);
    if (st == GX_OK)
        tell_attributes(ix, path);
    gx_index_close(ix);
    return st ? stop_fail(&err) : stop_done(path);
}

static void note_losses(const gx_index *ix, bool ciff)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(ix, &stats);
    if (gx_index_field(ix, 0, NULL))
        cli_note("fields are left out: %s has no place for them; the tfs are those of all fields",
                 ciff ? "CIFF" : "ds2i");
    if (stats.positions)
        cli_note("positions are left out: %s has no place for them", ciff ? "CIFF" : "ds2i");
    if (stats.impacts && !ciff)
        cli_warn("ds2i has no place for the unit of impacts (gpuidx info tells it); import the files with --impacts");
}

static int run(const cli_args *a)
{
    gx_error err = {0};
    gx_index *ix;
    const char *output = cli_text(a, "output"), *format = cli_text(a, "format");
    const char *attributes = cli_text(a, "attributes");
    if (!output && !attributes)
        return cli_usage(a, "--output: where do the files go?");
    if (!output && format)
        return cli_usage(a, "--format: of what? --output names the files of postings");
    if (attributes && (cli_same_file(attributes, a->argv[0]) || (output && strcmp(attributes, output) == 0)))
        return cli_usage(a, "--attributes: %s is %s; give another name", attributes,
                         output && strcmp(attributes, output) == 0 ? "the output, too" : "what is exported");
    if (!output)
        return export_attributes(a, attributes);
    const bool to_stdout = strcmp(output, "-") == 0;
    const bool ciff =
        format ? strcmp(format, "ciff") == 0 : to_stdout || ends_with(output, ".ciff") || ends_with(output, ".ciff.gz");
    if (to_stdout && !ciff)
        return cli_usage(a, "-o -: ds2i is several files, and standard output is one; give the files' name");
    if (to_stdout && isatty(STDOUT_FILENO))
        return cli_usage(a, "-o -: standard output is a terminal, and CIFF is binary; redirect it");
    if (ciff && ends_with(output, ".gz"))
        return cli_usage(a, "--output: CIFF is written uncompressed: compress it afterwards");
    if (ciff && cli_same_file(output, a->argv[0]))
        return cli_usage(a, "--output: %s is what is exported; give another name", output);
    if (gx_index_open(&ix, a->argv[0], NULL, &err))
        return cli_fail_error(&err);
    note_losses(ix, ciff);
    const gx_export_options opt = options_of(a);
    stop_on_signals();
    gx_status st = attributes ? gx_attributes_export(ix, attributes, &opt, &err) : GX_OK;
    if (st == GX_OK)
        st = (ciff ? gx_ciff_export : gx_ds2i_export)(ix, output, &opt, &err);
    if (st == GX_OK) {
        tell_postings(ix, output, ciff);
        if (attributes)
            tell_attributes(ix, attributes);
    }
    gx_index_close(ix);
    return st ? stop_fail(&err) : stop_done(output);
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "OUTPUT", NULL,
     "ciff: the file, or `-` for standard output; ds2i: the files are `OUTPUT.docs`, `OUTPUT.freqs`, "
     "and so on"},
    {"format", 'f', CLI_CHOICE, "ciff|ds2i", NULL,
     "the format to write, see Formats; without it, `ciff` where `OUTPUT` ends in "
     "`.ciff`, else `ds2i`"},
    {"attributes", 0, CLI_TEXT, "FILE", NULL,
     "write the documents' attributes to `FILE`, tab-separated values that `gpuidx import --attributes` reads, or `-` "
     "for standard output; may stand without `-o`. See Attributes"},
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace files that exist"},
    {NULL},
};

static const cli_section sections[] = {
    {"Formats", "  ciff  one file of the Common Index File Format; its description tells the\n"
                "        analyzer, which an import of ours takes from there\n"
                "  ds2i  OUTPUT.docs, OUTPUT.freqs and OUTPUT.sizes as ds2i and PISA read\n"
                "        them; OUTPUT.terms and OUTPUT.documents, the names of both, one a line\n"
                "\n"
                "The files of ds2i get their names when all are complete, OUTPUT.docs last. With `--force` the old "
                "OUTPUT.docs is removed before, so that a program that is killed in between leaves no set of old and "
                "new files that could be read."},
    {"Attributes",
     "Neither format holds attributes; `--attributes` writes them to a file of their own. The first line names the "
     "columns, `id` and each attribute with its type and what else `build --attr` takes; then comes a line a "
     "document:\n"
     "\n"
     "  id<TAB>year:int<TAB>price:float:bitmaps=range:bins=25<TAB>tags:keywords\n"
     "  doc7<TAB>2019<TAB>3.5<TAB>red,blue\n"
     "  doc9<TAB><TAB>-1<TAB>\n"
     "\n"
     "Tabs part fields, and commas several values; an empty field is no value. In a field two characters stand for "
     "one that would mean something else:\n"
     "\n"
     "  \\t  a tab              \\n  a line end       \\r  a carriage return\n"
     "  \\\\  a backslash        \\,  a comma          \\0  a NUL\n"
     "\n"
     "Numbers have as many digits as it takes to read the same value back; dates are in UTC. An import gives each "
     "document the same values again, to the bit."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx export corpus.gx -o corpus.ciff", "For programs that read CIFF, such as Anserini, PISA and Terrier."},
    {"gpuidx export corpus.gx -o - | zstd >corpus.ciff.zst", "The same, compressed."},
    {"gpuidx export papers.gx -o papers.ciff --attributes papers.tsv", "With the documents' attributes."},
    {"gpuidx export corpus.gx -o pisa/inv", "Postings for PISA's `compress_inverted_index`."},
    {NULL},
};

const cli_command cmd_export = {
    .name = "export",
    .summary = "write an index's postings for another engine",
    .synopsis = "[OPTIONS] INDEX [-o OUTPUT] [--attributes FILE]",
    .description =
        "Writes the postings, lengths and names of an index as files that other programs read, and its "
        "attributes. Titles, texts, positions and fields are left out. An index that the format cannot hold is refused "
        "with exit code 3: CIFF takes no name that is empty or not UTF-8, ds2i none with a line end.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
