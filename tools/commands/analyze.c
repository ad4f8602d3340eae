/* analyze.c: `gpuidx analyze`: the terms that analysis makes of a text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/lookup.h"
#include "tools/cli/output.h"

enum { MAX_TEXT = 1 << 30 }; /* bytes of standard input */

static int put_terms(const cli_args *a, const gx_index *ix, const char *text, size_t len)
{
    gx_error err = {0};
    gx_text_term *terms;
    size_t n;
    gx_status (*const of_index)(const gx_index *, const char *, size_t, gx_text_term **, size_t *, gx_error *) =
        cli_switch(a, "query") ? gx_index_analyze_query : gx_index_analyze;
    const gx_status st = ix ? of_index(ix, text, len, &terms, &n, &err)
                            : gx_analyze_text(cli_text(a, "analyzer"), cli_text(a, "stemmer"), cli_text(a, "stopwords"),
                                              cli_text(a, "fold"), cli_text(a, "ngrams"), text, len, &terms, &n, &err);
    if (st)
        return cli_fail_error(&err);
    if (lookup_json(a))
        fputs("{\"schema\":1,\"terms\":[", stdout);
    for (size_t i = 0; i < n && !cli_output_failed(); ++i) {
        const gx_text_term *t = &terms[i];
        if (lookup_json(a)) {
            printf("%s{\"begin\":%zu,\"end\":%zu,\"position\":%u,\"text\":", i ? "," : "", t->begin, t->end,
                   t->position);
            out_put_json(stdout, text + t->begin, t->end - t->begin);
            fputs(",\"term\":", stdout);
            out_put_json(stdout, t->term, t->len);
            putchar('}');
        } else {
            printf("%zu\t%zu\t", t->begin, t->end);
            out_put_clean(stdout, t->term, t->len);
            putchar('\n');
        }
    }
    if (lookup_json(a))
        puts("]}");
    free(terms);
    return 0;
}

/* All of standard input; the caller frees. */
static int read_all(char **text, size_t *len)
{
    size_t cap = 1 << 16;
    *len = 0;
    for (*text = NULL;; cap *= 2) {
        char *grown = realloc(*text, cap);
        if (!grown)
            return cli_fail(GX_ENOMEM, "no memory for a text of %zu bytes", cap);
        *text = grown;
        *len += fread(*text + *len, 1, cap - *len, stdin);
        if (ferror(stdin))
            return cli_fail(GX_EIO, "cannot read standard input: %s", strerror(errno));
        if (*len < cap)
            return 0;
        if (cap >= MAX_TEXT)
            return cli_fail(GX_EINPUT, "standard input: a text of more than %d bytes", MAX_TEXT);
    }
}

static int run(const cli_args *a)
{
    gx_index *ix = NULL;
    char *text = NULL;
    size_t len = 0;
    const char *path = cli_text(a, "index");
    if (path && (cli_given(a, "analyzer") || cli_given(a, "stemmer") || cli_given(a, "stopwords") ||
                 cli_given(a, "fold") || cli_given(a, "ngrams")))
        return cli_usage(a, "--index has an analyzer of its own; leave out --analyzer, --stemmer, --stopwords, --fold "
                            "and --ngrams");
    if (!path && cli_switch(a, "query"))
        return cli_usage(a, "--query: of which --index?");
    int code = path ? lookup_open(&ix, path) : 0;
    if (code == 0 && (a->argc == 0 || (a->argc == 1 && strcmp(a->argv[0], "-") == 0)))
        code = read_all(&text, &len);
    else
        for (int i = 0; i < a->argc && code == 0; ++i) {
            char *grown = realloc(text, len + strlen(a->argv[i]) + 2);
            if (!grown) {
                code = cli_fail(GX_ENOMEM, "no memory for the text");
                break;
            }
            text = grown;
            len += (size_t)sprintf(text + len, "%s%s", i ? " " : "", a->argv[i]);
        }
    if (code == 0)
        code = put_terms(a, ix, text, len);
    free(text);
    gx_index_close(ix);
    return code;
}

static const cli_flag flags[] = {
    {"index", 'i', CLI_TEXT, "INDEX", NULL,
     "make terms as this index does for its documents and queries, instead of with the flags below. Use it to see why "
     "a query finds nothing, or too much"},
    {"query", 0, CLI_SWITCH, NULL, NULL,
     "with `--index`, make the terms of a query, which lack those that stand in documents for shorter queries alone, "
     "such as the single characters of a row of Han"},
    {"analyzer", 0, CLI_TEXT, "NAME", "english",
     "how terms are made, without an index: `english`, `simple`, `whitespace`, `multilingual`, `code`, or a language, "
     "such as `german`. `gpuidx help build` has what they do"},
    CLI_WORD_FLAGS,
    {"fold", 0, CLI_CHOICE, "none|unicode", NULL,
     "`unicode`: first make one spelling of those that Unicode has for a word: without accents, ligatures, full-width "
     "characters and soft hyphens; without it the analyzer's own. `gpuidx help build` has all of it"},
    {"ngrams", 0, CLI_TEXT, "LENGTHS", NULL,
     "divide words into n-grams of characters: `3`, or their beginnings: `edge:2-15`. `gpuidx help build` has more"},
    LOOKUP_FORMAT_FLAG,
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx analyze -i corpus.gx 'The compressed indexes'", "What the index makes of a query."},
    {"gpuidx analyze --analyzer=simple --stemmer=german -f json <text", "A text, with a stemmer of Snowball's."},
    {NULL},
};

const cli_command cmd_analyze = {
    .name = "analyze",
    .summary = "print the terms that analysis makes of a text",
    .synopsis = "[OPTIONS] [TEXT...]",
    .description = "Shows what words become before they are indexed or searched for. Each term is a line of three "
                   "columns with tabs between: the byte of the text where its word begins, from 0, the byte behind its "
                   "end, and the term. Words that analysis leaves out, such as stop words, have no line. Without "
                   "`TEXT`, or with `-`, the text is standard input.\n"
                   "\n"
                   "With `--format=json` all is one JSON object: `schema` (1) and `terms`, each with `begin`, `end`, "
                   "`position` (of the word in the text, from 0; words left out count), `text` (the word) and `term`.",
    .examples = examples,
    .flags = flags,
    .min_args = 0,
    .max_args = -1,
    .run = run,
};
