/* import.c: `gpuidx import`: other engines' collections become an index. */
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/attribute_list.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"
#include "tools/cli/signals.h"

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Whether the index's words are those between white space, as they are: where nothing told how terms were made. */
static bool takes_words_as_they_are(const gx_index *ix)
{
    size_t len;
    const char *meta = gx_index_meta(ix, &len);
    json_t *root = json_loadb(meta, len, 0, NULL), *analyzer = json_object_get(root, "analyzer");
    const char *tokenizer = json_string_value(json_object_get(analyzer, "tokenizer"));
    const char *stemmer = json_string_value(json_object_get(analyzer, "stemmer"));
    const bool is = tokenizer && stemmer && strcmp(tokenizer, "word") != 0 && strcmp(stemmer, "none") == 0;
    json_decref(root);
    return is;
}

/* What the new index holds, in the words of `gpuidx build`; told: --analyzer was given. */
static void tell_index(const char *path, bool told)
{
    gx_index *ix;
    gx_index_stats st = {.size = sizeof st};
    gx_index_sizes sizes;
    const gx_index_options light = {sizeof light, GX_CHECK_STRUCTURE, GX_LOAD_MAP};
    cli_json_memory_may_fail();
    if (gx_index_open(&ix, path, &light, NULL))
        return;
    gx_index_get_stats(ix, &st);
    gx_index_measure(ix, &sizes);
    cli_note("%s: %s document%s, %s term%s, %s posting%s, %s (lists: %.2f bits a posting)", path, show_count(st.n_docs),
             plural(st.n_docs), show_count(st.n_terms), plural(st.n_terms), show_count(st.n_postings),
             plural(st.n_postings), show_bytes(st.file_bytes), show_bits(&sizes));
    if (!told && takes_words_as_they_are(ix))
        cli_note("words of queries are looked up as they are, since nothing tells how the terms were made; "
                 "--analyzer=english is for those of Anserini");
    gx_index_close(ix);
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

enum { MAX_REPORTS = 20 }; /* bad lines of attributes that are shown one by one */

static uint64_t n_bad;

static void say_bad(void *user, const char *text)
{
    (void)user;
    if (n_bad++ < MAX_REPORTS)
        cli_warn("%s; skipped", text);
}

/* What --attributes and --attr say. 0, or the exit code with the message printed. */
static int read_attribute_flags(const cli_args *a, attribute_list *list, gx_import_counts *counts,
                                gx_import_options *opt)
{
    const int code = attribute_list_read(list, a);
    opt->attributes_file = cli_text(a, "attributes");
    opt->attributes = list->attributes;
    opt->bitmaps = list->bitmaps;
    opt->n_attributes = list->n;
    opt->skip_bad = cli_choice(a, "on-error") == 1;
    opt->say = say_bad;
    opt->counts = counts;
    if (code == 0 && !opt->attributes_file && (list->n || cli_given(a, "on-error")))
        return cli_usage(a, "--%s: of which file? --attributes names it", list->n ? "attr" : "on-error");
    if (code == 0 && opt->attributes_file && strcmp(opt->attributes_file, "-") == 0 && strcmp(a->argv[0], "-") == 0)
        return cli_usage(a, "--attributes=-: standard input is what is imported; give a file");
    return code;
}

static void warn_odd(void *user, const char *text)
{
    (void)user;
    cli_warn("%s", text);
}

static void tell_counts(const cli_args *a, const gx_import_counts *c)
{
    if (!cli_text(a, "attributes"))
        return;
    if (c->without_line)
        cli_note("%s document%s no line in %s, and so no attributes", show_count(c->without_line),
                 c->without_line == 1 ? " has" : "s have", cli_text(a, "attributes"));
    if (c->skipped > MAX_REPORTS)
        cli_warn("%s bad lines were skipped; the first %d are shown", show_count(c->skipped), MAX_REPORTS);
}

static int import(const cli_args *a, attribute_list *list)
{
    int base_len;
    gx_error err = {0};
    gx_import_counts counts = {0};
    gx_import_options opt = GX_IMPORT_OPTIONS;
    const char *path = cli_text(a, "output"), *format = cli_text(a, "format");
    opt.force = cli_switch(a, "force");
    opt.docid_codec = cli_text(a, "codec");
    opt.tf_codec = cli_text(a, "tf-codec");
    opt.analyzer = cli_text(a, "analyzer");
    opt.stemmer = cli_text(a, "stemmer");
    opt.stopwords = cli_text(a, "stopwords");
    opt.fold = cli_text(a, "fold");
    opt.ngrams = cli_text(a, "ngrams");
    opt.impacts = cli_switch(a, "impacts");
    opt.terms = cli_text(a, "terms");
    opt.documents = cli_text(a, "documents");
    opt.cancel = is_stopped;
    opt.keep_duplicates = cli_choice(a, "duplicates") == 1;
    opt.warn = warn_odd;
    if (!path)
        return cli_usage(a, "--output: where does the index go?");
    const int bad = read_attribute_flags(a, list, &counts, &opt);
    if (bad)
        return bad;
    if (opt.attributes_file && cli_same_file(opt.attributes_file, path))
        return cli_usage(a, "--output: %s is what is imported; give another name", path);
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
    if (!opt.analyzer && (opt.stemmer || opt.stopwords || opt.fold || opt.ngrams))
        return cli_usage(a, "--%s: of which --analyzer?",
                         opt.stemmer     ? "stemmer"
                         : opt.stopwords ? "stopwords"
                         : opt.fold      ? "fold"
                                         : "ngrams");
    stop_on_signals();
    const gx_status st = (ciff ? gx_ciff_import : gx_ds2i_import)(a->argv[0], path, &opt, &err);
    if (st == GX_OK) {
        tell_index(path, opt.analyzer != NULL);
        tell_counts(a, &counts);
    }
    return st ? stop_fail(&err) : stop_done(path);
}

static int run(const cli_args *a)
{
    attribute_list list = {0};
    const int code = import(a, &list);
    attribute_list_free(&list);
    return code;
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
    {"analyzer", 0, CLI_TEXT, "NAME", NULL,
     "how the collection's terms were made, see `gpuidx help build`; queries are analysed in the same way. Give it "
     "so that queries match; "
     "without it `whitespace`, or what a CIFF file written by `gpuidx export` names"},
    CLI_WORD_FLAGS,
    {"fold", 0, CLI_CHOICE, "none|unicode", NULL,
     "`unicode`: the terms were folded, and queries will be, as `gpuidx build` does; "
     "without it the analyzer's own, or what an export of ours tells"},
    {"ngrams", 0, CLI_TEXT, "LENGTHS", NULL,
     "the terms are n-grams of words, such as `edge:2-15`, see `gpuidx help build`"},
    {"impacts", 0, CLI_SWITCH, NULL, NULL,
     "the collection's term frequencies are impacts: numbers of at least 1 that add up to a document's score. The "
     "index is then searched with the scorer `impact`"},
    {"duplicates", 0, CLI_CHOICE, "fail|keep", "fail",
     "what to do with documents of one id, which runs cannot tell apart: `fail`, or `keep` them all, with a warning"},
    {"attributes", 0, CLI_TEXT, "FILE", NULL,
     "give the documents the attributes that `FILE` has, by which `query --filter` selects them: tab-separated values, "
     "as `gpuidx export --attributes` writes them, or any table with a column `id`; see Attributes"},
    {"attr", 0, CLI_LIST, "NAME:TYPE", NULL,
     "take the column `NAME` of `FILE`, with this type (`gpuidx help build`); may be given several "
     "times. Without it, all columns are taken, with the types that the first line gives"},
    {"on-error", 0, CLI_CHOICE, "fail|skip", "fail",
     "what to do with a bad line of the attributes' `FILE`: `fail`, or `skip` it and go on"},
    CLI_CODEC_FLAGS,
    {"force", 0, CLI_SWITCH, NULL, NULL, "replace `FILE` if it exists"},
    {NULL},
};

static const cli_section sections[] = {
    {"Formats", "  ciff  a file of the Common Index File Format (Anserini, PISA, Terrier,\n"
                "        JASS), or - for stdin; gz, bz2, xz, zstd are read as they are\n"
                "  ds2i  INPUT.docs, INPUT.freqs and INPUT.sizes of ds2i and PISA: sequences\n"
                "        of 32-bit numbers, each with its length before it"},
    {"Attributes",
     "Neither format holds attributes. `--attributes` takes them from a file with a line a document, in any order, "
     "which may be compressed. Its first line names the columns: `id`, and each attribute with its type behind a "
     "colon, as in `year:int`, unless `--attr` gives the types. Tabs part fields, and commas the values of an "
     "attribute of any type but `keyword`; an empty field is no value. `gpuidx help export` says what a backslash "
     "means.\n"
     "\n"
     "A line is bad if it has too many or too few fields, a value that is not of its type, an id that no document has, "
     "or an id that an earlier line has. It ends the import with exit code 3, and its file and line are told; with "
     "`--on-error=skip` it is told and left out. A document without a line has no attributes; a note says how many "
     "there are."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx import robust04.ciff.gz -o robust04.gx --analyzer=english", "What Anserini exported: Porter's stems "
                                                                         "without stop words."},
    {"gpuidx import papers.ciff -o papers.gx --attributes papers.tsv", "What `gpuidx export` wrote of an index with "
                                                                       "attributes."},
    {"gpuidx import robust04.ciff.gz -o robust04.gx --attributes meta.tsv --attr=date:date,source:keyword",
     "Two columns of a table."},
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
    .common = "output format terms documents impacts attributes attr on-error codec force",
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
