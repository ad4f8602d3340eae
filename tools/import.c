/* import.c: `gpuidx import`: other engines' collections become an index. */
#include <string.h>
#include <sys/stat.h>

#include "engine/gpuidx_advanced.h"
#include "tools/cli.h"
#include "tools/signals.h"

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Whether path is one of the files that BASE stands for. */
static bool is_input(const char *base, const char *path)
{
    static const char *const suffixes[] = {"", ".docs", ".freqs", ".sizes", ".terms", ".documents"};
    char file[4096];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; ++i) {
        snprintf(file, sizeof file, "%s%s", base, suffixes[i]);
        if (cli_same_file(file, path))
            return true;
    }
    return false;
}

/* The format of INPUT, where --format does not tell: "ciff" for a file, "ds2i" for the base of
 * files' names. NULL: INPUT can be either. */
static const char *guess(const char *input)
{
    char docs[4096];
    snprintf(docs, sizeof docs, "%s.docs", input);
    const bool file = strcmp(input, "-") == 0 || is_file(input), base = is_file(docs);
    return !file ? "ds2i" : !base ? "ciff" : NULL;
}

/* "x.docs" and the like: one of the files of a ds2i collection,
 * where the base of their names is meant. */
static bool is_part_of_ds2i(const char *input, int *base_len)
{
    static const char *const suffixes[] = {".docs", ".freqs", ".sizes"};
    const size_t len = strlen(input);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; ++i) {
        const size_t n = strlen(suffixes[i]);
        *base_len = (int)(len - n);
        if (len > n && strcmp(input + len - n, suffixes[i]) == 0)
            return true;
    }
    return false;
}

static int run(const cli_args *a)
{
    int base_len;
    gx_error err = {0};
    gx_import_options opt = GX_IMPORT_OPTIONS;
    const char *path = cli_text(a, "output"), *format = cli_text(a, "format");
    opt.force = cli_switch(a, "force");
    opt.docid_codec = cli_text(a, "codec");
    opt.tf_codec = cli_text(a, "tf-codec");
    opt.analyzer = cli_text(a, "analyzer");
    opt.stemmer = cli_text(a, "stemmer");
    opt.stopwords = cli_text(a, "stopwords");
    opt.fold = cli_text(a, "fold");
    opt.impacts = cli_switch(a, "impacts");
    opt.terms = cli_text(a, "terms");
    opt.documents = cli_text(a, "documents");
    opt.cancel = is_stopped;
    if (!path)
        return cli_usage(a, "--output: where does the index go?");
    if (is_input(a->argv[0], path))
        return cli_usage(a, "--output: %s is what is imported; give another name", path);
    if ((!format || strcmp(format, "ds2i") == 0) && is_part_of_ds2i(a->argv[0], &base_len))
        return cli_usage(a, "%s is one file of a ds2i collection; name them all by what comes before the dot: %.*s",
                         a->argv[0], base_len, a->argv[0]);
    if (cli_is_index(a->argv[0]))
        return cli_fail(GX_EINPUT,
                        "%s is an index already: search it with 'gpuidx query', or change its codecs with "
                        "'gpuidx recode'",
                        a->argv[0]);
    if (!format && !(format = guess(a->argv[0])))
        return cli_usage(a, "--format: %s is a file, and so is %s.docs; which is it?", a->argv[0], a->argv[0]);
    const bool ciff = strcmp(format, "ciff") == 0;
    if (ciff && (opt.terms || opt.documents))
        return cli_usage(a, "--%s: a CIFF file brings its names", opt.terms ? "terms" : "documents");
    if (!opt.analyzer && (opt.stemmer || opt.stopwords || opt.fold))
        return cli_usage(a, "--%s: of which --analyzer?",
                         opt.stemmer     ? "stemmer"
                         : opt.stopwords ? "stopwords"
                                         : "fold");
    stop_on_signals();
    const gx_status st = (ciff ? gx_ciff_import : gx_ds2i_import)(a->argv[0], path, &opt, &err);
    return st ? stop_fail(&err) : stop_done(path);
}

static const cli_flag flags[] = {
    {"output", 'o', CLI_TEXT, "FILE", NULL, "the index file to make"},
    {"format", 'f', CLI_CHOICE, "ciff|ds2i", NULL,
     "the format of the collection, see Formats; without it, `ciff` where `INPUT` is a file, else `ds2i`"},
    {"terms", 0, CLI_TEXT, "FILE", NULL,
     "for ds2i: a file with the term of each list, one on each line; without it `INPUT.terms`, and without that file "
     "the terms are numbers"},
    {"documents", 0, CLI_TEXT, "FILE", NULL,
     "for ds2i: a file with the id of each document, one on each line; without it `INPUT.documents`, and without that "
     "file the ids are numbers"},
    {"analyzer", 0, CLI_CHOICE, "english|simple|whitespace", NULL,
     "how the collection's terms were made; queries are analysed in the same way. Give it so that queries match; "
     "without it `whitespace`, or what a CIFF file written by `gpuidx export` names"},
    CLI_WORD_FLAGS,
    {"fold", 0, CLI_CHOICE, "none|unicode", NULL,
     "`unicode`: the terms were folded, and queries will be, as `gpuidx build` does; "
     "without it `none`, or what an export of ours tells"},
    {"impacts", 0, CLI_SWITCH, NULL, NULL,
     "the collection's term frequencies are impacts: numbers of at least 1 that add up to a document's score. The "
     "index is then searched with the scorer `impact`"},
    CLI_CODEC_FLAGS,
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace `FILE` if it exists"},
    {NULL},
};

static const cli_section sections[] = {
    {"Formats", "  ciff  a file of the Common Index File Format (Anserini, PISA, Terrier,\n"
                "        JASS), or - for stdin; gz, bz2, xz, zstd are read as they are\n"
                "  ds2i  INPUT.docs, INPUT.freqs and INPUT.sizes of ds2i and PISA: sequences\n"
                "        of 32-bit numbers, each with its length before it"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx import robust04.ciff.gz -o robust04.gx --analyzer=english", "What Anserini exported: Porter's stems "
                                                                         "without stop words."},
    {"gpuidx import splade.ciff -o splade.gx --impacts", "A CIFF file whose scores are quantised impacts."},
    {"gpuidx import gov2/inv -o gov2.gx --terms=gov2/fwd.terms --documents=gov2/fwd.documents", "What PISA's invert "
                                                                                                "made."},
    {NULL},
};

const cli_command cmd_import = {
    .name = "import",
    .summary = "make an index of another engine's collection",
    .synopsis = "[OPTIONS] INPUT -o FILE",
    .description = "Reads postings that another program has made. Neither format tells how its terms were made: "
                   "unless --analyzer does, queries of the new index are split at white space and otherwise taken as "
                   "they are, so that their words must be the collection's terms.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
