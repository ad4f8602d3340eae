#include "tools/shell/shell.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/progress.h"
#include "tools/shell/line_editor.h"

typedef struct shell {
    ask *k;
    bool leave;
} shell;

static volatile sig_atomic_t interrupted; /* Ctrl-C since it was last cleared */

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static bool is_interrupted(void *user)
{
    (void)user;
    return interrupted != 0;
}

/* ---- values ---- */

static void complain(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
}

/* word as one of choices, or -1 after saying so. */
static int read_choice(const char *command, const char *choices, const char *word)
{
    char why[256];
    const int i = cli_choice_index(choices, word);
    if (i < 0) {
        char buf[64];
        const char *nearest = cli_nearest_choice(choices, word, buf);
        snprintf(why, sizeof why, "'%s' is not one of %s%s%s%s", word, choices, nearest ? "; did you mean " : "",
                 nearest ? nearest : "", nearest ? "?" : "");
        complain(command, why);
    }
    return i;
}

static void print_choice(const char *choices, int i)
{
    for (; i > 0; --i)
        choices = strchr(choices, '|') + 1;
    printf("%.*s\n", (int)strcspn(choices, "|"), choices);
}

static bool read_number(const char *command, cli_kind kind, double min, double max, const char *word, double *number)
{
    const cli_flag flag = {"", 0, kind, "", NULL, "", min, max};
    char why[96], text[160];
    uint64_t count;
    if (cli_read_number(&flag, word, number, &count, why, sizeof why))
        return true;
    snprintf(text, sizeof text, "'%.40s' %s", word, why);
    complain(command, text);
    return false;
}

/* The docid of a word: an id, or # and a docid; UINT64_MAX after saying that there is none. */
static uint64_t read_document(shell *s, const char *command, const char *word)
{
    char why[160];
    uint64_t docid = UINT64_MAX;
    if (word[0] == '#') {
        double number;
        if (!read_number(command, CLI_COUNT, 0, 0x1p53, word + 1, &number))
            return UINT64_MAX;
        docid = (uint64_t)number;
    } else {
        docid = gx_index_find_doc64(s->k->ix, word, strlen(word));
    }
    gx_index_stats st = {.size = sizeof st};
    gx_index_get_stats(s->k->ix, &st);
    if (docid < st.n_documents)
        return docid;
    snprintf(why, sizeof why, "there is no document '%.80s' in this index", word);
    complain(command, why);
    return UINT64_MAX;
}

/* The number of the choice that the command's argument names. Without an argument, prints `now` and
 * keeps it; with a bad one, complains and keeps it. */
static int choose(const char *command, const char *choices, int now, const char *arg)
{
    const int i = *arg ? read_choice(command, choices, arg) : -1;
    if (!*arg)
        print_choice(choices, now);
    return i >= 0 ? i : now;
}

/* "on", "off", or nothing: print. */
static void set_switch(const char *command, bool *value, const char *arg)
{
    const int i = *arg ? read_choice(command, "on|off", arg) : -2;
    if (i >= 0)
        *value = i == 0;
    else if (i == -2)
        puts(*value ? "on" : "off");
}

/* ---- commands ---- */

static void set_k(shell *s, const char *arg)
{
    double n;
    if (!*arg)
        printf("%u\n", s->k->options.k);
    else if (read_number(".k", CLI_COUNT, 1, (double)UINT32_MAX, arg, &n)) {
        s->k->options.k = (uint32_t)n;
        ask_note_large_k(s->k);
    }
}

static void set_count(const char *name, uint32_t *value, double least, double most, const char *arg)
{
    double n;
    if (!*arg)
        printf("%u\n", *value);
    else if (read_number(name, CLI_COUNT, least, most, arg, &n))
        *value = (uint32_t)n;
}

static void set_max_expansions(shell *s, const char *arg)
{
    set_count(".max-expansions", &s->k->options.expansion.max_words, 1, GX_MAX_TERMS, arg);
}

static void set_fuzzy_prefix(shell *s, const char *arg)
{
    set_count(".fuzzy-prefix", &s->k->options.expansion.fixed_prefix, 0, GX_MAX_FUZZY_CHARACTERS, arg);
}

static void set_expansion_scoring(shell *s, const char *arg)
{
    gx_expansion_scoring *scoring = &s->k->options.expansion.scoring;
    *scoring = (gx_expansion_scoring)choose(".expansion-scoring", GX_EXPANSION_SCORING_WORDS, (int)*scoring, arg);
}

static void set_synonyms(shell *s, const char *arg)
{
    static gx_synonyms *synonyms; /* as long as the program */
    gx_error err = {0};
    gx_synonyms *read = NULL;
    if (!*arg) {
        printf("%s\n", s->k->options.synonyms ? "on" : "off");
        return;
    }
    if (strcmp(arg, "off") != 0 && gx_synonyms_read(&read, s->k->ix, arg, &err)) {
        cli_fail_error(&err);
        return;
    }
    gx_synonyms_close(synonyms);
    s->k->options.synonyms = synonyms = read;
}

static void set_op(shell *s, const char *arg)
{
    s->k->options.op = (gx_op)choose(".op", CLI_OPS, (int)s->k->options.op, arg);
}

static void set_syntax(shell *s, const char *arg)
{
    s->k->kind = cli_query_kind(choose(".syntax", CLI_SYNTAXES, s->k->kind == GX_QUERY_BOOLEAN, arg));
}

static void set_quotes(shell *s, const char *arg)
{
    s->k->options.quotes = (gx_quotes)choose(".quotes", GX_QUOTES_WORDS_LIST, (int)s->k->options.quotes, arg);
}

static void set_sdm(shell *s, const char *arg)
{
    char text[GX_SDM_BYTES];
    gx_error err = {0};
    gx_query_options o = s->k->options;
    gx_sdm_write(&o.sdm, text);
    if (!*arg)
        puts(text);
    else if (gx_sdm_read(&o.sdm, arg, &err) || gx_sdm_check(&o, s->k->ix, &err))
        complain(".sdm", err.text);
    else
        s->k->options = o;
}

static void set_scorer(shell *s, const char *arg)
{
    s->k->options.preset = (gx_preset)choose(".scorer", CLI_PRESETS, (int)s->k->options.preset, arg);
}

static void set_algorithm(shell *s, const char *arg)
{
    s->k->options.algorithm = (gx_algorithm)choose(".algorithm", CLI_ALGORITHMS, (int)s->k->options.algorithm, arg);
}

static void set_parameter(const char *command, float *value, double max, const char *arg)
{
    double x;
    if (!*arg && isnan(*value))
        puts("the scorer's own");
    else if (!*arg)
        printf("%g\n", *value);
    else if (strcmp(arg, "default") == 0)
        *value = NAN;
    else if (read_number(command, CLI_NUMBER, 0, max, arg, &x))
        *value = (float)x;
}

static void set_k1(shell *s, const char *arg)
{
    set_parameter(".k1", &s->k->options.k1, 0, arg);
}
static void set_b(shell *s, const char *arg)
{
    set_parameter(".b", &s->k->options.b, 1, arg);
}
static void set_query_k1(shell *s, const char *arg)
{
    set_parameter(".query-k1", &s->k->options.query_k1, 0, arg);
}
static void set_query_b(shell *s, const char *arg)
{
    set_parameter(".query-b", &s->k->options.query_b, 1, arg);
}
static void set_prune(shell *s, const char *arg)
{
    set_switch(".prune", &s->k->options.prune, arg);
}
static void set_prior(shell *s, const char *arg)
{
    char text[GX_PRIOR_BYTES];
    gx_error err = {0};
    gx_prior prior = s->k->options.prior;
    gx_prior_write(&prior, text);
    if (!*arg)
        puts(text);
    else if (strcmp(arg, "off") == 0)
        s->k->options.prior.weight = 0;
    else if (gx_prior_read(&prior, arg, &err) || gx_prior_check(&prior, s->k->ix, &err))
        complain(".prior", err.text);
    else if (s->k->both.gpu)
        complain(".prior", "a service of both engines has none: not of hybrid");
    else
        s->k->options.prior = prior;
}

static void set_approximate(shell *s, const char *arg)
{
    char text[GX_APPROXIMATE_BYTES];
    gx_error err = {0};
    gx_query_options o = s->k->options;
    gx_approximate_write(&o, text);
    if (!*arg) {
        puts(text);
    } else if (gx_approximate_read(&o, arg, &err)) {
        complain(".approximate", err.text);
    } else if (s->k->service && cli_skips_blocks(&o)) {
        complain(".approximate", "threshold and blocks are of the CPU engine, not of hybrid");
    } else {
        cli_settle_approximate(&o, s->k->en);
        s->k->options = o;
    }
}
static void set_timing(shell *s, const char *arg)
{
    set_switch(".timing", &s->k->timing, arg);
}
static void set_snippets(shell *s, const char *arg)
{
    set_switch(".snippets", &s->k->snippets, arg);
}

static void set_rm3(shell *s, const char *arg)
{
    char why[160];
    gx_index_stats stats = {.size = sizeof stats};
    const gx_rm3_options *now = &s->k->rm3;
    gx_rm3_options to;
    gx_index_get_stats(s->k->ix, &stats);
    if (!*arg && now->fb_docs)
        printf("%u,%u,%g\n", now->fb_docs, now->fb_terms, now->weight);
    else if (!*arg)
        puts("off");
    else if (!cli_read_rm3(&to, arg, why, sizeof why))
        complain(".rm3", why);
    else if (to.fb_docs && !stats.texts)
        complain(".rm3", "this index stores no texts, of which feedback terms are taken");
    else
        s->k->rm3 = to;
}

/* `which` of the filter's parts: .only, .not and .filter. */
static void set_filter_part(shell *s, int which, const char *arg)
{
    const document_filter *f = &s->k->filter;
    const char *parts[3] = {f->only, f->except, f->expression};
    if (!*arg) {
        puts(parts[which] ? parts[which] : "off");
        return;
    }
    parts[which] = strcmp(arg, "off") ? arg : NULL;
    ask_set_filter(s->k, parts[0], parts[1], parts[2]);
}

static void set_only(shell *s, const char *arg)
{
    set_filter_part(s, 0, arg);
}
static void set_not(shell *s, const char *arg)
{
    set_filter_part(s, 1, arg);
}
static void set_filter(shell *s, const char *arg)
{
    set_filter_part(s, 2, arg);
}

/* The old texts belong to the list that is replaced. */
static void set_counts(shell *s, const char *facets, const char *sums)
{
    char *own[2] = {facets ? strdup(facets) : NULL, sums ? strdup(sums) : NULL};
    if ((facets && !own[0]) || (sums && !own[1]))
        cli_fail(GX_ENOMEM, "no memory for facets");
    else
        ask_set_facets(s->k, own[0], own[1]);
    free(own[0]);
    free(own[1]);
}

static void set_facets(shell *s, const char *arg)
{
    if (!*arg)
        puts(s->k->facets.text ? s->k->facets.text : "off");
    else
        set_counts(s, strcmp(arg, "off") ? arg : NULL, s->k->facets.sums);
}

static void set_sums(shell *s, const char *arg)
{
    if (!*arg)
        puts(s->k->facets.sums ? s->k->facets.sums : "off");
    else
        set_counts(s, s->k->facets.text, strcmp(arg, "off") ? arg : NULL);
}

static void set_shown(shell *s, const char *arg)
{
    if (!*arg)
        puts(s->k->shown.n ? s->k->shown.text : "off");
    else
        ask_set_shown(s->k, strcmp(arg, "off") ? arg : NULL);
}

static void set_sort(shell *s, const char *arg)
{
    if (!*arg)
        puts(s->k->page.sort ? s->k->page.sort : "off");
    else
        ask_set_sort(s->k, strcmp(arg, "off") ? arg : NULL);
}

static void set_collapse(shell *s, const char *arg)
{
    if (!*arg)
        puts(s->k->page.collapse ? s->k->page.collapse : "off");
    else
        ask_set_collapse(s->k, strcmp(arg, "off") ? arg : NULL);
}

static void show_next(shell *s, const char *arg)
{
    (void)arg;
    ask_next(s->k);
}

static void show_all(shell *s, const char *arg)
{
    uint32_t n_hits;
    (void)arg;
    ask_query(s->k, "1", 1, "", 0, &n_hits);
}

static void set_engine(shell *s, const char *arg)
{
    const int i = *arg ? read_choice(".engine", CLI_ENGINES, arg) : -1;
    if (!*arg)
        puts(gx_engine_describe(s->k->en));
    else if (i >= 0)
        ask_set_engine(s->k, (gx_engine_kind)i);
}

static void set_format(shell *s, const char *arg)
{
    s->k->format = (out_format)choose(".format", OUT_FORMATS, (int)s->k->format, arg);
}

static void explain(shell *s, const char *arg)
{
    uint64_t docid;
    if (!*arg || cli_choice_index("on|off", arg) >= 0)
        set_switch(".explain", &s->k->explain, arg);
    else if (!s->k->last)
        complain(".explain", "there is no query yet whose scores could be explained");
    else if ((docid = read_document(s, ".explain", arg)) != UINT64_MAX)
        ask_explain(s->k, docid);
}

static void show_document(shell *s, const char *arg)
{
    gx_error err = {0};
    const uint64_t docid = *arg ? read_document(s, ".doc", arg) : UINT64_MAX;
    if (!*arg)
        complain(".doc", "which one? Its id is missing");
    else if (docid != UINT64_MAX && out_put_document(stdout, s->k->ix, docid, &err))
        cli_fail_error(&err);
}

static void show_stats(shell *s, const char *arg)
{
    gx_index_stats st = {.size = sizeof st};
    (void)arg;
    gx_index_get_stats(s->k->ix, &st);
    printf("documents   %llu\n", (unsigned long long)st.n_documents);
    printf("terms       %u\n", st.n_terms);
    printf("postings    %llu\n", (unsigned long long)st.n_postings);
    printf("tokens      %llu (%.1f a document)\n", (unsigned long long)st.n_tokens, st.avgdl);
    printf("file        %s\n", show_bytes(st.file_bytes));
    printf("engine      %s\n", gx_engine_describe(s->k->en));
    printf("queries     %llu", (unsigned long long)s->k->n_asked);
    if (s->k->n_asked)
        printf(" (%.3f ms each)", 1e3 * s->k->seconds / (double)s->k->n_asked);
    putchar('\n');
}

static void show_settings(shell *s, const char *arg);

static void leave(shell *s, const char *arg)
{
    (void)arg;
    s->leave = true;
}

static void help(shell *s, const char *arg);

static const struct command {
    const char *name, *arg, *help;
    void (*run)(shell *s, const char *arg);
} commands[] = {
    {".help", "", "list these commands", help},
    {".k", "N", "the most results of a query", set_k},
    {".op", CLI_OPS, "which documents match", set_op},
    {".syntax", CLI_SYNTAXES, "how queries are read", set_syntax},
    {".quotes", GX_QUOTES_WORDS_LIST, "what quotes mean in the plain syntax", set_quotes},
    {".sdm", "WORDS,ORDERED,UNORDERED|on|off", "weigh pairs of words of plain queries, too", set_sdm},
    {".only", "FILE|off", "search only the documents whose ids the file has", set_only},
    {".not", "FILE|off", "leave out the documents whose ids the file has", set_not},
    {".filter", "EXPRESSION|off", "search only the documents that it selects, as in year:>=2015", set_filter},
    {".facet", "NAME[:N],...|off", "count the matches by attributes, as in category:20,year", set_facets},
    {".sort", "NAME[:desc],...|off", "order results by attributes, as in price:desc,year", set_sort},
    {".collapse", "NAME[:N]|off", "show the best N (1) results of each value of an attribute", set_collapse},
    {".next", "", "show the next page of the last query", show_next},
    {".all", "", "list the documents that the filters leave, without a query", show_all},
    {".scorer", "NAME", "bm25, bm25:lucene, bm25:pisa, ...", set_scorer},
    {".k1", "X|default", "BM25's k1", set_k1},
    {".b", "X|default", "BM25's b", set_b},
    {".rm3", "DOCS,TERMS,WEIGHT|on|off", "expand queries by terms of their best documents", set_rm3},
    {".prune", "on|off", "skip postings that cannot change the answer", set_prune},
    {".algorithm", CLI_ALGORITHMS, "how the answer is found", set_algorithm},
    {".prior", "NAME:w=X,form=F|off", "add a number of each document to its score: log, sat or linear", set_prior},
    {".approximate", "X", "give up some of the answer for speed: 0 (exact) to 1, or terms:X,blocks:N", set_approximate},
    {".max-expansions", "N", "the most words that neutrin* or neutrino~1 stands for", set_max_expansions},
    {".fuzzy-prefix", "N", "characters at the beginning of word~ without typing errors", set_fuzzy_prefix},
    {".expansion-scoring", GX_EXPANSION_SCORING_WORDS, "how neutrin* and neutrino~1 score", set_expansion_scoring},
    {".synonyms", "FILE|off", "replace words of queries by the rules of the file", set_synonyms},
    {".query-k1", "X|default", "weigh long queries by BM25, too; default: off", set_query_k1},
    {".query-b", "X|default", "the b of .query-k1", set_query_b},
    {".engine", CLI_ENGINES, "where to search", set_engine},
    {".format", OUT_FORMATS, "how results are printed", set_format},
    {".explain", "on|off|DOC", "explain every score, or the last query's for one document", explain},
    {".show", "NAME,...|all|off", "print the values of these attributes", set_shown},
    {".sums", "NAME[:FIGURE],...|off", "figures of all matches, as in price:avg:p50,year:min", set_sums},
    {".snippets", "on|off", "show the best part of stored texts", set_snippets},
    {".timing", "on|off", "show the time a query took", set_timing},
    {".doc", "ID", "show a document (#N: by docid)", show_document},
    {".settings", "", "show all settings", show_settings},
    {".stats", "", "the index, the engine, and the queries so far", show_stats},
    {".quit", "", "leave, as Ctrl-D does", leave},
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void help(shell *s, const char *arg)
{
    (void)s, (void)arg;
    for (size_t i = 0; i < N_COMMANDS; ++i) {
        enum { COLUMN = 32 };
        int at = printf("%s %s", commands[i].name, commands[i].arg);
        if (at + 1 > COLUMN) {
            putchar('\n');
            at = 0;
        }
        printf("%*s", COLUMN - at, "");
        cli_put_wrapped(stdout, commands[i].help, COLUMN, COLUMN);
    }
    cli_put_wrapped(stdout, "A setting without a value is shown. All else is a query. Ctrl-C cancels a running query.",
                    0, 0);
}

static void show_settings(shell *s, const char *arg)
{
    (void)arg;
    for (size_t i = 0; i < N_COMMANDS; ++i)
        if (*commands[i].arg && commands[i].run != show_document) {
            printf("%-13s", commands[i].name);
            commands[i].run(s, "");
        }
}

static const char *command_name(size_t i)
{
    return i < N_COMMANDS ? commands[i].name : NULL;
}

/* A word such as quit or help, which is a command of other shells, is a query here. Tell which
 * command may have been meant. */
static void hint(const char *line)
{
    const int i = cli_choice_index("exit|quit|bye|:q|help|?|\\?|h", line);
    if (i >= 0)
        cli_note("'%s' was searched for; %s", line,
                 i < 4 ? "to leave, type .quit or Ctrl-D" : ".help lists the commands");
}

static void run_command(shell *s, char *line)
{
    const char *names[N_COMMANDS];
    char *arg = line + strcspn(line, " \t");
    if (*arg)
        *arg++ = 0;
    arg += strspn(arg, " \t");
    for (size_t i = 0; i < N_COMMANDS; ++i) {
        names[i] = commands[i].name + 1; /* all begin with a dot, which makes none of them nearer */
        if (strcmp(line, commands[i].name) == 0) {
            commands[i].run(s, arg);
            return;
        }
    }
    const char *nearest = cli_nearest(line + 1, names, N_COMMANDS);
    if (nearest)
        fprintf(stderr, "%s: there is no such command; did you mean .%s?\n", line, nearest);
    else
        fprintf(stderr, "%s: there is no such command; .help lists them\n", line);
}

/* ---- the loop ---- */

static void greet(const shell *s)
{
    gx_index_stats st = {.size = sizeof st};
    if (cli_quiet())
        return;
    gx_index_get_stats(s->k->ix, &st);
    fprintf(isatty(STDOUT_FILENO) ? stdout : stderr, "gpuidx %s: %s %s, %s. Type a query, or .help\n", gx_version(),
            show_count(st.n_documents), st.n_documents == 1 ? "document" : "documents", gx_engine_describe(s->k->en));
}

int shell_run(ask *k)
{
    shell s = {k, false};
    struct sigaction action = {.sa_handler = on_interrupt}, old; /* no SA_RESTART: reading a line ends too */
    line_editor *editor = line_open("gpuidx> ", command_name, &interrupted);
    char *line;

    if (!editor)
        return cli_fail(GX_ENOMEM, "no memory for the shell");
    sigaction(SIGINT, &action, &old);
    k->options.cancel = k->stop = is_interrupted;
    k->page.kept = true;
    greet(&s);
    while (!s.leave && (interrupted || !cli_output_failed())) {
        if (interrupted) /* a write that the interrupt cut short is no failure */
            clearerr(stdout);
        interrupted = 0;
        fflush(stdout);
        line = line_read(editor);
        if (!line && interrupted) {
            putchar('\n');
            continue;
        }
        if (!line)
            break;
        interrupted = 0;
        line += strspn(line, " \t");
        size_t len = strlen(line);
        while (len && strchr(" \t\r\n", line[len - 1]))
            line[--len] = 0;
        uint32_t n_hits;
        if (line[0] == '.' && line[1] >= 'a' && line[1] <= 'z')
            run_command(&s, line);
        else if (len)
            ask_query(k, "1", 1, line, len, &n_hits), hint(line); /* what went wrong was said; the shell goes on */
    }
    if (!s.leave)
        putchar('\n');
    k->options.cancel = k->stop = NULL;
    sigaction(SIGINT, &old, NULL);
    line_close(editor);
    return 0;
}
