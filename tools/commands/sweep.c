/* sweep.c: `gpuidx sweep`: the effectiveness of many scorers and parameters in one process. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/progress.h"
#include "tools/cli/search_flags.h"
#include "tools/cli/signals.h"

#define MAX_VALUES 1000u     /* most values of one flag */
#define MAX_SETTINGS 100000u /* most settings */

static void on_progress(void *user, size_t n_done)
{
    progress *p = user;
    progress_share(p, n_done, p->total);
}

/* ---- the settings ---- */

typedef struct settings {
    gx_sweep_setting *items; /* [n], and what each searches by: */
    char **fields;           /* [n], or NULL: none is by fields */
    gx_field_scoring *scorings;
    size_t n;
} settings;

static void free_settings(settings *s)
{
    for (size_t i = 0; s->fields && i < s->n; ++i)
        free(s->fields[i]);
    free(s->fields);
    free(s->scorings);
    free(s->items);
}

/* The next word of a list with commas, into word[]; false at the end. */
static bool next_word(const char **list, char word[64])
{
    const size_t len = strcspn(*list, ",");
    if (**list == 0)
        return false;
    snprintf(word, 64, "%.*s", (int)(len < 63 ? len : 63), *list);
    *list += len + ((*list)[len] == ',');
    return true;
}

/* The values that are tried where neither --k1 nor --b is given: pairs round those that the scorers have. */
#define K1_GRID "0.6,0.9,1.2,1.5,2"
#define B_GRID "0.2,0.4,0.6,0.75,0.9"

/* The numbers of --k1 or --b into values[MAX_VALUES], a NaN for the scorer's own; their number, or 0 with *code set
 * and the message printed. Where the flag is not given: the scorer's own if the other one is, else the grid. */
static size_t read_values(const cli_args *a, const char *name, const char *other, const char *grid, double max,
                          float *values, int *code)
{
    const cli_flag flag = {"", 0, CLI_NUMBER, "", NULL, "", 0, max};
    const char *list = cli_given(a, name) ? cli_text(a, name) : cli_given(a, other) ? "default" : grid;
    char word[64], why[96];
    size_t n = 0;
    while (next_word(&list, word)) {
        double number = NAN;
        uint64_t count;
        if (strcmp(word, "default") && !cli_read_number(&flag, word, &number, &count, why, sizeof why)) {
            *code = cli_usage(a, "--%s: '%s' %s", name, word, why);
            return 0;
        }
        if (n == MAX_VALUES) {
            *code = cli_usage(a, "--%s: more than %u values", name, MAX_VALUES);
            return 0;
        }
        values[n++] = (float)number;
    }
    if (n == 0)
        *code = cli_usage(a, "--%s: no value is given", name);
    return n;
}

/* A scorer without parameters gets one setting, and --k1 and --b do not matter to it. */
static bool has_parameters(gx_preset preset)
{
    return preset != GX_IMPACT;
}

static int read_settings(settings *out, const cli_args *a, const gx_index *ix)
{
    static float k1[MAX_VALUES], b[MAX_VALUES];
    gx_index_stats stats = {.size = sizeof stats};
    int code = 0;
    const size_t n_k1 = read_values(a, "k1", "b", K1_GRID, 0, k1, &code);
    const size_t n_b = code ? 0 : read_values(a, "b", "k1", B_GRID, 1, b, &code);
    const char *list = cli_text(a, "scorer");
    char word[64];
    if (code)
        return code;
    gx_index_get_quick_stats(ix, &stats);
    if (stats.impacts && !cli_given(a, "scorer"))
        list = "impact";
    size_t n_scorers = 0;
    while (next_word(&list, word)) {
        gx_preset preset;
        if (!gx_preset_find(word, &preset))
            return cli_usage(a, "--scorer: '%s' is not one of " CLI_PRESETS, word);
        const size_t more = has_parameters(preset) ? n_k1 * n_b : 1;
        if (out->n + more > MAX_SETTINGS)
            return cli_usage(a, "there are more than %u settings; give fewer values", MAX_SETTINGS);
        gx_sweep_setting *grown = realloc(out->items, (out->n + more) * sizeof *grown);
        if (!grown)
            return cli_fail(GX_ENOMEM, "no memory for %zu settings", out->n + more);
        out->items = grown;
        for (size_t i = 0; i < more; ++i) {
            const bool has = has_parameters(preset);
            out->items[out->n++] = (gx_sweep_setting){preset, has ? k1[i / n_b] : NAN, has ? b[i % n_b] : NAN};
        }
        ++n_scorers;
    }
    return n_scorers ? 0 : cli_usage(a, "--scorer: no scorer is given");
}

/* ---- fields ---- */

/* What --fields tries: "title^1|2|3,text:b=0.4|0.75", of whose values with | between every combination is taken. */
typedef struct variants {
    char **texts; /* [n] */
    size_t n;
} variants;

static void free_variants(variants *v)
{
    for (size_t i = 0; i < v->n; ++i)
        free(v->texts[i]);
    free(v->texts);
}

/* Of the text the variant of that number: each value is one of its alternatives, the last value's turn first. NULL: no
 * memory. *left: 0 where there is such a variant. */
static char *make_variant(const char *text, size_t number, size_t *left)
{
    size_t len = strlen(text), at = len;
    char *out = calloc(1, len + 1), *end = out ? out + len : NULL;
    char *to = end;
    while (at && out) { /* from behind, value by value */
        size_t begin = at, n = 1, from;
        while (begin && !strchr(",^:=", text[begin - 1]))
            --begin;
        for (size_t i = begin; i < at; ++i)
            n += text[i] == '|';
        from = begin;
        for (size_t skip = number % n; skip; --skip)
            from += strcspn(text + from, "|") + 1;
        number /= n;
        const size_t chosen = strcspn(text + from, "|,^:=");
        to -= chosen;
        memcpy(to, text + from, chosen);
        if (begin)
            *--to = text[begin - 1];
        at = begin ? begin - 1 : 0;
    }
    if (out)
        memmove(out, to, (size_t)(end - to) + 1);
    *left = number;
    return out;
}

static int read_variants(variants *out, const cli_args *a)
{
    const char *text = cli_text(a, "fields");
    for (size_t left = 0;;) {
        char *variant = make_variant(text, out->n, &left);
        char **grown = variant && !left ? realloc(out->texts, (out->n + 1) * sizeof *grown) : NULL;
        if (variant && left) {
            free(variant);
            return 0;
        }
        if (!grown) {
            free(variant);
            return cli_fail(GX_ENOMEM, "no memory for %zu settings", out->n);
        }
        out->texts = grown;
        out->texts[out->n++] = variant;
        if (out->n > MAX_SETTINGS)
            return cli_usage(a, "--fields: there are more than %u settings; give fewer values", MAX_SETTINGS);
    }
}

static size_t read_scorings(const cli_args *a, gx_field_scoring scorings[GX_N_FIELD_SCORINGS], int *code)
{
    const char *list = cli_text(a, "field-scoring");
    char word[64];
    size_t n = 0;
    while (next_word(&list, word)) {
        if (n == GX_N_FIELD_SCORINGS || !gx_field_scoring_find(&scorings[n], word)) {
            *code = cli_usage(a, "--field-scoring: '%s' is not one of bm25f, best, sum, or there are too many", word);
            return 0;
        }
        ++n;
    }
    return n;
}

/* Every setting by every variant of the fields and every scoring. */
static int multiply_settings(settings *s, const cli_args *a)
{
    gx_field_scoring scorings[GX_N_FIELD_SCORINGS];
    int code = 0;
    variants v = {0};
    if (!cli_given(a, "fields"))
        return cli_given(a, "field-scoring") ? cli_usage(a, "--field-scoring needs --fields") : 0;
    const size_t n_scorings = read_scorings(a, scorings, &code);
    if (!code)
        code = read_variants(&v, a);
    const size_t n = s->n * v.n * n_scorings;
    if (!code && n > MAX_SETTINGS)
        code = cli_usage(a, "there are more than %u settings; give fewer values", MAX_SETTINGS);
    settings all = {0};
    if (!code) {
        all = (settings){calloc(n + 1, sizeof *all.items), calloc(n + 1, sizeof *all.fields),
                         calloc(n + 1, sizeof *all.scorings), n};
        if (!all.items || !all.fields || !all.scorings)
            code = cli_fail(GX_ENOMEM, "no memory for %zu settings", n);
    }
    for (size_t i = 0; i < n && !code; ++i) {
        all.items[i] = s->items[i / (v.n * n_scorings)];
        all.scorings[i] = scorings[i / v.n % n_scorings];
        if (!(all.fields[i] = strdup(v.texts[i % v.n])))
            code = cli_fail(GX_ENOMEM, "no memory for %zu settings", n);
    }
    free_variants(&v);
    free_settings(code ? &all : s);
    if (!code)
        *s = all;
    return code;
}

/* ---- the report ---- */

typedef struct facts {
    const cli_args *a;
    const gx_sweep_options *opt;
    const gx_sweep_report *r;
    size_t best;
    double seconds;
} facts;

/* The first of the settings whose first measure is greatest. */
static size_t find_best(const gx_sweep_options *opt, const gx_sweep_report *r)
{
    size_t best = 0;
    for (size_t i = 1; i < opt->n_settings; ++i)
        if (r->values[i * opt->n_measures] > r->values[best * opt->n_measures])
            best = i;
    return best;
}

static const char *parameter(char text[24], float value)
{
    if (isnan(value))
        return "-";
    snprintf(text, 24, "%g", value);
    return text;
}

static void put_row(const facts *f, size_t i)
{
    const gx_sweep_setting *s = &f->opt->settings[i];
    char k1[24], b[24];
    printf("%-18s  %6s  %6s", gx_preset_name(s->preset), parameter(k1, s->k1), parameter(b, s->b));
    for (size_t m = 0; m < f->opt->n_measures; ++m) {
        const gx_measure *measure = &f->opt->measures[m];
        const int width = (int)strlen(measure->name);
        printf(gx_measure_is_count(measure) ? "  %*.0f" : "  %*.4f", width < 10 ? 10 : width,
               f->r->values[i * f->opt->n_measures + m]);
    }
    if (f->opt->fields)
        printf("  %-5s  %s", gx_field_scoring_name(f->opt->field_scorings[i]), f->opt->fields[i]);
    putchar('\n');
}

static void print_table(const facts *f)
{
    printf("%-18s  %6s  %6s", "scorer", "k1", "b");
    for (size_t m = 0; m < f->opt->n_measures; ++m)
        printf("  %10s", f->opt->measures[m].name);
    puts(f->opt->fields ? "  by     fields" : "");
    for (size_t i = 0; i < f->opt->n_settings; ++i)
        put_row(f, i);
    printf("\nbest by %s, of %s setting%s over %s quer%s:\n", f->opt->measures[0].name, show_count(f->opt->n_settings),
           plural(f->opt->n_settings), show_count(f->r->n_evaluated[f->best]), plural_y(f->r->n_evaluated[f->best]));
    put_row(f, f->best);
}

static json_t *number_or_null(float x)
{
    char text[24];
    return isnan(x) ? json_null() : json_real(strtod(parameter(text, x), NULL)); /* 0.9, as it was given */
}

static json_t *setting_json(const facts *f, size_t i)
{
    const gx_sweep_setting *s = &f->opt->settings[i];
    json_t *values = json_object();
    for (size_t m = 0; m < f->opt->n_measures; ++m)
        json_object_set_new(values, f->opt->measures[m].name, json_real(f->r->values[i * f->opt->n_measures + m]));
    json_t *root =
        json_pack("{s:s, s:o, s:o, s:I, s:o}", "scorer", gx_preset_name(s->preset), "k1", number_or_null(s->k1), "b",
                  number_or_null(s->b), "queries_evaluated", (json_int_t)f->r->n_evaluated[i], "values", values);
    if (root && f->opt->fields) {
        json_object_set_new(root, "fields", json_string(f->opt->fields[i]));
        json_object_set_new(root, "field_scoring", json_string(gx_field_scoring_name(f->opt->field_scorings[i])));
    }
    return root;
}

static int print_json(const facts *f)
{
    json_t *all = json_array();
    bool good = all;
    for (size_t i = 0; good && i < f->opt->n_settings; ++i)
        good = !json_array_append_new(all, setting_json(f, i));
    json_t *root = json_pack("{s:i, s:s, s:I, s:I, s:f, s:o, s:o}", "schema", 1, "measure", f->opt->measures[0].name,
                             "queries_searched", (json_int_t)f->r->n_searched, "queries_missing_from_log",
                             (json_int_t)f->r->n_missing, "seconds", f->seconds, "best", setting_json(f, f->best),
                             "settings", all);
    int code = good && root ? 0 : cli_fail(GX_ENOMEM, "no memory for the report");
    if (!code && json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)))
        code = cli_fail(GX_EIO, "cannot write the report");
    if (!code)
        putchar('\n');
    json_decref(root);
    return code;
}

/* ---- the command ---- */

/* The results that the measures look at: the greatest of their cutoffs, or 1,000 where one has none. */
static uint32_t results_of(const gx_measure *measures, size_t n)
{
    uint32_t k = 1;
    for (size_t i = 0; i < n; ++i) {
        const bool by_rank = measures[i].cutoff != UINT32_MAX && strncmp(measures[i].name, "iprec", 5) != 0;
        if (!by_rank)
            return 1000;
        k = measures[i].cutoff > k ? measures[i].cutoff : k;
    }
    return k;
}

static int sweep(const cli_args *a, gx_engine *en, gx_sweep_options *opt)
{
    gx_sweep_report r;
    gx_error err = {0};
    progress p = progress_begin("settings", opt->n_settings);
    const double begin = progress_clock();
    opt->progress = on_progress;
    opt->user = &p;
    const gx_status st = gx_sweep(&r, en, opt, &err);
    progress_end(&p);
    if (st == GX_EUSAGE && opt->read.form == GX_LOG_GUESS)
        return cli_fail(st, "%s; -f says the form of the log, --columns the columns of a TSV or CSV log", err.text);
    if (st)
        return cli_fail_error(&err);
    facts f = {a, opt, &r, find_best(opt, &r), progress_clock() - begin};
    int code = 0;
    if (r.n_searched == 0)
        code = cli_fail(GX_EINPUT, "%s and %s have no query in common", a->argv[1], a->argv[2]);
    else if (cli_switch(a, "json"))
        code = print_json(&f);
    else
        print_table(&f);
    if (r.n_searched && r.n_missing && !opt->complete)
        cli_note("%zu of %zu judged queries are not in %s and are left out; --complete counts them as 0", r.n_missing,
                 opt->qrels->n_topics, a->argv[1]);
    if (r.n_searched && opt->n_settings > 1)
        cli_warn("the best setting was chosen on the queries that it is measured on, so its value is too high an "
                 "estimate for others: choose on training queries, and report test queries once");
    gx_sweep_report_free(&r);
    return code;
}

static int run(const cli_args *a)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    gx_index *ix = NULL;
    gx_engine *en = NULL;
    gx_measure *measures = NULL;
    gx_trec_table qrels = {0};
    settings s = {0};
    gx_error err = {0};
    gx_engine_options engine = cli_engine_options(a);
    gx_sweep_options opt = GX_SWEEP_OPTIONS;
    opt.log = a->argv[1];
    opt.qrels = &qrels;
    opt.level = (int32_t)cli_count(a, "level");
    opt.complete = cli_switch(a, "complete");
    opt.kind = cli_query_kind(cli_choice(a, "syntax"));
    opt.threads = (uint32_t)cli_count(a, "threads");
    if (opt.threads == 0)
        opt.threads = cores > 0 ? (uint32_t)cores : 1;
    opt.query.op = (gx_op)cli_choice(a, "op");
    opt.query.query_k1 = cli_given(a, "query-k1") ? (float)cli_number(a, "query-k1") : NAN;
    opt.query.query_b = cli_given(a, "query-b") ? (float)cli_number(a, "query-b") : NAN;
    opt.query.cancel = is_stopped;
    gx_log_form_find(cli_text(a, "format"), &opt.read.form);
    gx_log_encoding_find(cli_text(a, "encoding"), &opt.read.encoding);
    opt.read.columns = cli_text(a, "columns");
    opt.read.number = cli_choice(a, "ids") == 1;
    opt.read.topic_fields = cli_text(a, "topic-fields");
    opt.read.members = cli_text(a, "members");
    if (strcmp(a->argv[1], "-") == 0 && strcmp(a->argv[2], "-") == 0)
        return cli_usage(a, "- -: standard input cannot be both the log and the judgements");
    if (gx_measures_parse(&measures, &opt.n_measures, cli_text(a, "measures"), &err))
        return err.status == GX_EUSAGE ? cli_usage(a, "--measures: %s", err.text) : cli_fail_error(&err);
    opt.measures = measures;
    opt.query.k = cli_given(a, "top") ? (uint32_t)cli_count(a, "top") : results_of(measures, opt.n_measures);
    stop_on_signals();
    int code = cli_open_index(&ix, a, a->argv[0]);
    if (!code)
        code = cli_add_synonyms(&opt.query, a, ix);
    if (!code)
        code = read_settings(&s, a, ix);
    if (!code)
        code = multiply_settings(&s, a);
    if (!code && gx_trec_read(&qrels, a->argv[2], GX_TREC_QRELS, &err))
        code = cli_fail_error(&err);
    if (!code && qrels.n_topics == 0)
        code = cli_fail(GX_EINPUT, "%s holds no judgement", a->argv[2]);
    if (!code)
        code = cli_add_residency(&engine, a);
    if (!code)
        code = cli_open_engine(&en, ix, &engine);
    if (!code)
        cli_tell_ignored(a, gx_engine_get_kind(en) == GX_ENGINE_GPU);
    if (!code)
        code = cli_warm(en, a);
    opt.settings = s.items;
    opt.n_settings = s.n;
    opt.fields = (const char *const *)s.fields;
    opt.field_scorings = s.scorings;
    if (!code)
        code = sweep(a, en, &opt);
    gx_engine_close(en);
    gx_index_close(ix);
    gx_trec_free(&qrels);
    free(measures);
    free_settings(&s);
    stop_die(NULL); /* if a signal has come */
    return code;
}

static const cli_flag flags[] = {
    {"k1", 0, CLI_TEXT, "LIST", NULL,
     "the values of BM25's k1 to try, separated by commas, each at least 0, or `default`, each scorer's own; usual "
     "ones "
     "are 0.6 to 2. k1 says how much repeated words count. Without this flag: `default` if `--b` is given, else "
     "`" K1_GRID "`"},
    {"b", 0, CLI_TEXT, "LIST", NULL,
     "the values of BM25's b to try, separated by commas, each from 0 to 1, or `default`, each scorer's own; usual "
     "ones "
     "are 0.2 to 0.9. b says how much long documents are marked down. Without this flag: `default` if `--k1` is given, "
     "else `" B_GRID "`"},
    {"scorer", 0, CLI_TEXT, "LIST", "bm25",
     "the scorers to try, separated by commas; `gpuidx help query` has their formulas. Every scorer is tried with "
     "every "
     "k1 and every b; `impact` has neither and is tried once"},
    {"fields", 0, CLI_TEXT, "NAME^W:b=B,...", NULL,
     "search by these fields, as `gpuidx query` does; values with | between are tried one by one, in every "
     "combination: "
     "`title^1|2|3|5,text:b=0.4|0.75`"},
    {"field-scoring", 0, CLI_TEXT, "LIST", "bm25f",
     "how fields are scored together, separated by commas: `bm25f`, `best`, `sum`"},
    {"query-k1", 0, CLI_NUMBER, "X", NULL,
     "weigh the words of the queries by BM25, too, with this k1, in all settings: see `gpuidx help query`",
     .max = 3.4e38},
    {"synonyms", 0, CLI_TEXT, "FILE", NULL,
     "replace words of the queries by the rules of `FILE`: see `gpuidx help query`"},
    {"query-b", 0, CLI_NUMBER, "X", NULL, "the b of `--query-k1`, from 0 to 1", .max = 1},
    {"measures", 'm', CLI_TEXT, "LIST", "ndcg@10",
     "what to measure, as `gpuidx eval` names it, separated by commas. The best setting is the one in which the first "
     "measure is greatest"},
    {"top", 'k', CLI_COUNT, "N", NULL,
     "search for the `N` best results of each query. Without this flag, as many as the measures look at: the greatest "
     "cutoff (10 of `ndcg@10`), or 1,000 where a measure, such as `map`, has none",
     .min = 1, .max = UINT32_MAX},
    {"op", 0, CLI_CHOICE, CLI_OPS, "or",
     "which documents match. `or`: those with at least one of the query's words; `and`: those with all of them; "
     "`and-or`: as `and` where that gives `-k` results, else as `or`"},
    {"syntax", 0, CLI_CHOICE, CLI_SYNTAXES, "plain",
     "how queries are read. `plain`: every word is searched for, and signs mean nothing; `boolean`: as `gpuidx help "
     "query` describes"},
    CLI_LOG_FLAGS,
    {"complete", 'c', CLI_SWITCH, NULL, NULL,
     "average over all queries of `QRELS`: those that `LOG` lacks, or that have no results, count as 0. Without this "
     "flag they are left out, and a note says how many"},
    {"level", 'l', CLI_COUNT, "N", "1",
     "the least judgement of a relevant document: with 2, documents judged 1 are not relevant", .min = 1,
     .max = 1 << 24},
    {"threads", 'j', CLI_COUNT, "N", "0",
     "threads to use; 0: one for each processor. Each thread tries one setting at a time, on the same index",
     .max = 1024},
    {"json", 0, CLI_SWITCH, NULL, NULL, "print one JSON object instead, for programs; its \"schema\" is 1"},
    {"engine", 0, CLI_CHOICE, CLI_ENGINES, "auto",
     "where to search; `auto` takes a GPU where one can be used that has room for the index, else the CPU"},
    {"device", 0, CLI_COUNT, "N", "0", "the number of the GPU, as `gpuidx devices` lists them", .max = 1023},
    {"device-memory", 0, CLI_BYTES, "SIZE", "0", "the most GPU memory to use; 0: all that is free less a reserve"},
    {"map-memory", 0, CLI_BYTES, "SIZE", NULL,
     "the most memory for tables derived from the index. 0: no tables; without this flag, no limit"},
    CLI_RESIDENCY_FLAGS,
    CLI_JOIN_FLAG,
    CLI_LINGER_FLAG,
    CLI_INDEX_FLAGS,
    {NULL},
};

static const cli_section sections[] = {
    {"Choosing parameters",
     "Only queries that `QRELS` judges are searched. The values are those that `gpuidx replay` with the same options "
     "and `gpuidx eval` of its run give. The best setting is chosen and measured on the same queries, so its value is "
     "too high an estimate for other queries. Choose the setting on training queries, and measure it once on test "
     "queries; with one set of queries only, choose on one half and measure on the other."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx sweep corpus.gx train.tsv train.qrels", "25 pairs of k1 and b by nDCG@10, and the best."},
    {"gpuidx sweep corpus.gx train.tsv train.qrels --k1=0.6,0.9,1.2 --b=0.3,0.4,0.75",
     "Nine settings by nDCG@10, and the best."},
    {"gpuidx sweep corpus.gx train.tsv train.qrels --k1=0.9 --b=0.4 --fields='title^1|2|3|5,text'",
     "Four weights of the title, by BM25F."},
    {"gpuidx sweep corpus.gx train.tsv train.qrels --scorer=bm25,bm25:atire --k1=0.9,1.2 -m map,ndcg@10 -j 4",
     "Two scorers, by MAP, on four threads."},
    {NULL},
};

const cli_command cmd_sweep = {
    .name = "sweep",
    .summary = "find good scoring parameters",
    .synopsis = "[OPTIONS] INDEX LOG QRELS",
    .description =
        "Finds out which scorer and which of its parameters k1 and b suit a collection: answers the queries "
        "of a log with every combination of them, compares the answers with relevance judgements, and prints a "
        "table of the measures, and the best setting. `LOG` and `QRELS` are as for `gpuidx replay` and `gpuidx "
        "eval`.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .common = "k1 b scorer measures top op format columns complete threads json engine",
    .min_args = 3,
    .max_args = 3,
    .run = run,
};
