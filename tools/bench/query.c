/* bench_query.c: `gpuidx bench query`: engines and algorithms on an index and a log, compared and
 * timed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "query/eval/query_log.h"
#include "tools/bench/common.h"
#include "tools/bench/gpu_list.h"
#include "tools/bench/query_report.h"
#include "tools/search_flags.h"

enum { MAX_CHOICES = 16 };

typedef struct choices {
    gx_op ops[3];
    gx_algorithm algorithms[GX_N_ALGORITHMS];
    uint32_t ks[MAX_CHOICES], batches[MAX_CHOICES];
    uint32_t n_ops, n_algorithms, n_ks, n_batches;
} choices;

/* ---- lists in flags ---- */

/* The next word of "a,b,..", to word; false at the end. */
static bool next_word(const char **list, char word[32])
{
    const size_t len = strcspn(*list, ",");
    if (!**list)
        return false;
    snprintf(word, 32, "%.*s", (int)len, *list);
    *list += len + ((*list)[len] == ',');
    return true;
}

/* Words of the flag as places in all ("or|and"), each once; 0, or the exit code. */
static int read_words(const cli_args *a, const char *flag, const char *all, int *out, uint32_t most, uint32_t *n)
{
    const char *list = cli_text(a, flag);
    char word[32];
    for (*n = 0; next_word(&list, word);) {
        const int i = cli_choice_index(all, word);
        bool known = false;
        if (i < 0)
            return cli_usage(a, "--%s: there is no %s; it is %s, or several with commas", flag, word, all);
        for (uint32_t k = 0; k < *n; ++k)
            known |= out[k] == i;
        if (known)
            continue;
        if (*n == most)
            return cli_usage(a, "--%s: at most %u", flag, most);
        out[(*n)++] = i;
    }
    return *n ? 0 : cli_usage(a, "--%s: none is named", flag);
}

static int read_numbers(const cli_args *a, const char *flag, uint32_t *out, uint32_t *n)
{
    const char *list = cli_text(a, flag);
    const cli_flag form = {.name = flag, .kind = CLI_COUNT, .min = 1, .max = UINT32_MAX};
    char word[32], why[128];
    for (*n = 0; next_word(&list, word);) {
        double unused;
        uint64_t value;
        if (!cli_read_number(&form, word, &unused, &value, why, sizeof why))
            return cli_usage(a, "--%s: %s: %s", flag, word, why);
        bool known = false;
        for (uint32_t k = 0; k < *n; ++k)
            known |= out[k] == value;
        if (known)
            continue;
        if (*n == MAX_CHOICES)
            return cli_usage(a, "--%s: at most %d numbers", flag, MAX_CHOICES);
        out[(*n)++] = (uint32_t)value;
    }
    return *n ? 0 : cli_usage(a, "--%s: no number is given", flag);
}

static int read_choices(const cli_args *a, choices *c)
{
    int words[MAX_CHOICES], code;
    *c = (choices){0};
    if ((code = read_words(a, "op", CLI_OPS, words, 3, &c->n_ops)))
        return code;
    for (uint32_t i = 0; i < c->n_ops; ++i)
        c->ops[i] = (gx_op)words[i];
    if ((code = read_words(a, "algorithm", CLI_ALGORITHMS, words, GX_N_ALGORITHMS, &c->n_algorithms)))
        return code;
    for (uint32_t i = 0; i < c->n_algorithms; ++i)
        c->algorithms[i] = (gx_algorithm)words[i];
    if ((code = read_numbers(a, "top", c->ks, &c->n_ks)) ||
        (code = read_numbers(a, "batch", c->batches, &c->n_batches)))
        return code;
    const uint64_t table = cli_given(a, "table") ? cli_count(a, "table") : 0;
    if (table && cli_given(a, "op"))
        return cli_usage(a, "--table has operators of its own; leave out --op");
    if (table && cli_given(a, "figure"))
        return cli_usage(a, "--table and --figure: one of them");
    if (table) { /* what the paper measured, and ours */
        const bool ours = cli_given(a, "algorithm");
        c->n_ops = 3;
        c->ops[0] = GX_OP_AND, c->ops[1] = GX_OP_OR, c->ops[2] = GX_OP_AND_OR;
        c->n_ops = table == 3 ? 2 : 3;
        c->n_ks = 1;
        if (!ours) {
            c->n_algorithms = 2;
            c->algorithms[0] = GX_ALGORITHM_PMF, c->algorithms[1] = GX_ALGORITHM_AUTO;
        }
    }
    return 0;
}

/* ---- index, queries, engines ---- */

/* The log's first queries, as `replay` has them. */
static gx_status read_log(query_bench *b, const char *path, uint32_t most, gx_error *err)
{
    gx_log *log;
    gx_status st = gx_log_open(&log, path, NULL, err);
    uint32_t room = 0;
    bool more = st == GX_OK;
    while (more && b->n < most) {
        gx_log_query q;
        if ((st = gx_log_next(log, &q, &more, err)) != GX_OK)
            break;
        if (!more)
            break;
        if (b->n == room) {
            room = 2 * room + 1024;
            query_text *texts = realloc(b->texts, room * sizeof *texts);
            b->texts = texts ? texts : b->texts;
            if (!texts) {
                st = GX_ENOMEM;
                break;
            }
        }
        b->texts[b->n] = (query_text){strndup(q.text, q.len), q.len};
        if (!b->texts[b->n++].text) {
            st = GX_ENOMEM;
            break;
        }
    }
    const uint64_t blank = log ? gx_log_get_counts(log).blank : 0;
    if (blank)
        cli_warn("%s: %" PRIu64 " blank line%s passed over", path, blank, blank == 1 ? "" : "s");
    gx_log_close(log);
    if (st == GX_ENOMEM) {
        err->status = st;
        snprintf(err->text, sizeof err->text, "no memory for %u queries", b->n);
    }
    return st;
}

static int open_queries(query_bench *b, const cli_args *a, gx_index **ix, gx_synth **synth)
{
    gx_error err = {0};
    int code = 0;
    const uint32_t most = (uint32_t)cli_count(a, "limit");
    if (cli_given(a, "documents")) {
        gx_synth_options opt = GX_SYNTH_OPTIONS;
        opt.n_docs = (uint32_t)cli_count(a, "documents");
        opt.n_queries = most;
        opt.seed = cli_count(a, "seed");
        opt.codec = gx_codec_by_name("gpubp128");
        cli_note("making a collection of %u documents", opt.n_docs);
        if (gx_synth_open(synth, &opt, &err))
            return cli_fail_error(&err);
        b->ix = &(*synth)->ix;
        b->synth = *synth;
        b->n = most;
        return 0;
    }
    if ((code = cli_open_index(ix, a, a->argv[0])))
        return code;
    b->ix = *ix;
    if (read_log(b, a->argv[1], most, &err))
        return cli_fail_error(&err);
    return b->n ? 0 : cli_fail(GX_EINPUT, "%s has no query", a->argv[1]);
}

static int open_engine(query_bench *b, gx_engine_options options, gx_engine_kind kind, bool must)
{
    gx_error err = {0};
    query_engine *e = &b->engines[b->n_engines];
    options.kind = kind;
    *e = (query_engine){.name = kind == GX_ENGINE_GPU ? "gpu" : "cpu"};
    if (gx_engine_open(&e->en, b->ix, &options, &err)) {
        if (must)
            return cli_fail_error(&err);
        cli_note("no GPU is measured: %s", err.text);
        return 0;
    }
    ++b->n_engines;
    return gx_session_open(&e->session, e->en, &err) ? cli_fail_error(&err) : 0;
}

static int open_engines(query_bench *b, const cli_args *a)
{
    const gx_engine_options options = cli_engine_options(a);
    int code = 0;
    if (options.kind != GX_ENGINE_GPU)
        code = open_engine(b, options, GX_ENGINE_CPU, true);
    if (!code && options.kind != GX_ENGINE_CPU)
        code = open_engine(b, options, GX_ENGINE_GPU, options.kind == GX_ENGINE_GPU);
    return code;
}

static int measure_memory(query_bench *b)
{
    gx_error err = {0};
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < b->n_engines && st == GX_OK; ++i) {
        query_engine *e = &b->engines[i];
        if (gx_engine_get_kind(e->en) == GX_ENGINE_CPU)
            st = query_core_read_speed(&e->read_speed, &err);
#if GX_CUDA
        else
            st = gx_gpu_memory_speed((uint64_t)512 << 20, 0, 9, &e->read_speed, &err);
#endif
    }
    return st ? cli_fail_error(&err) : 0;
}

/* ---- measuring ---- */

/* Thresholds of pairs on the last engine; plans are raised by it for all. */
static int precompute_pair_thresholds(query_bench *b, const cli_args *a, gx_op op, uint32_t k)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    opt.op = op;
    opt.k = k;
    return cli_precompute_pair_thresholds(b->engines[b->n_engines - 1].en, a, &opt);
}

static int measure(query_bench *b, const cli_args *a, const choices *c, uint32_t recursion)
{
    gx_error err = {0};
    b->max_rows = (size_t)c->n_ops * c->n_ks * b->n_engines * c->n_algorithms * c->n_batches;
    b->rows = calloc(b->max_rows, sizeof *b->rows);
    if (!b->rows)
        return cli_fail(GX_ENOMEM, "no memory for the report");
    for (uint32_t o = 0; o < c->n_ops; ++o) {
        for (uint32_t k = 0; k < c->n_ks; ++k) {
            cli_note("%s, top %u", query_op_name(c->ops[o]), c->ks[k]);
            const int code = precompute_pair_thresholds(b, a, c->ops[o], c->ks[k]);
            if (code)
                return code;
            if (query_plan_all(b, c->ops[o], c->ks[k], &err))
                return cli_fail_error(&err);
            for (uint32_t e = 0; e < b->n_engines; ++e) {
                const bool gpu = gx_engine_get_kind(b->engines[e].en) == GX_ENGINE_GPU;
                for (uint32_t i = 0; i < c->n_algorithms; ++i) {
                    for (uint32_t batch = 0; batch < (gpu ? c->n_batches : 1); ++batch) {
                        if (query_measure(b, &b->engines[e], c->algorithms[i], recursion, gpu ? c->batches[batch] : 1,
                                          &b->rows[b->n_rows], &err))
                            return cli_fail_error(&err);
                        ++b->n_rows;
                    }
                }
            }
        }
    }
    return 0;
}

static void close_bench(query_bench *b)
{
    query_free_plans(b);
    for (uint32_t e = 0; e < b->n_engines; ++e) {
        gx_session_close(b->engines[e].session);
        gx_engine_close(b->engines[e].en);
    }
    for (uint32_t i = 0; b->texts && i < b->n; ++i)
        free(b->texts[i].text);
    free(b->texts);
    free(b->rows);
}

/* Into b's rows what the same takes for as many queries of a collection so small that its lists
 * have a block or a few. */
static int measure_fixed(query_bench *b, const cli_args *a, const choices *c, uint32_t recursion)
{
    gx_error err = {0};
    gx_synth *synth;
    gx_synth_options opt = GX_SYNTH_OPTIONS;
    opt.n_docs = 1000;
    opt.n_queries = b->n;
    opt.seed = b->seed;
    opt.codec = gx_codec_by_name("gpubp128");
    cli_note("as many queries of %u documents", opt.n_docs);
    if (gx_synth_open(&synth, &opt, &err))
        return cli_fail_error(&err);
    query_bench few = {.ix = &synth->ix, .synth = synth, .n = b->n, .runs = b->runs, .seed = b->seed};
    int code = open_engines(&few, a);
    if (!code)
        code = measure(&few, a, c, recursion);
    for (size_t i = 0; !code && i < b->n_rows && i < few.n_rows; ++i)
        b->rows[i].fixed_seconds = few.rows[i].seconds;
    close_bench(&few);
    gx_synth_close(synth);
    return code;
}

static int report(const query_bench *b, const cli_args *a, query_format format)
{
    const uint64_t table = cli_given(a, "table") ? cli_count(a, "table") : 0;
    int code = 0;
    if (format == QUERY_JSON)
        code = query_print_json(b, (uint32_t)table);
    else if (table == 2)
        query_print_table2(b, format);
    else if (table == 3)
        query_print_table3(b, format);
    else
        query_print_rows(b, format);
    uint32_t different = 0;
    for (size_t i = 0; i < b->n_rows; ++i)
        different += b->rows[i].different;
    if (!code && different)
        code = cli_fail(GX_EINTERNAL, "%u answers differ from the exhaustive ones", different);
    return code;
}

static int draw_figure(const cli_args *a, query_format format)
{
    bool gpu = false;
    const bool ratios = cli_choice(a, "figure") == 1;
    int code;
    if (a->argc || cli_given(a, "documents"))
        return cli_usage(a, "--figure generates its lists; it takes neither an index nor a collection");
    if (cli_given(a, "plot") && (code = bench_plot_dir(cli_text(a, "plot"))) != 0)
        return code;
    if (cli_choice(a, "engine") != GX_ENGINE_CPU) {
        gx_error err = {0};
        char name[128];
        gx_status st = GX_ENOGPU;
#if GX_CUDA
        st = gx_gpu_name(name, sizeof name, &err);
#else
        err.status = st;
        snprintf(err.text, sizeof err.text, "this gpuidx was built without CUDA");
#endif
        gpu = st == GX_OK;
        if (gpu)
            cli_note("GPU: %s", name);
        else if (cli_choice(a, "engine") == GX_ENGINE_GPU)
            return cli_fail_error(&err);
        else
            cli_note("no GPU is measured: %s", err.text);
    }
    return query_figure(ratios, gpu, (uint32_t)cli_count(a, "device"), (uint32_t)cli_count(a, "seed"), format,
                        cli_text(a, "plot"));
}

static int run(const cli_args *a)
{
    query_bench b = {.runs = (uint32_t)cli_count(a, "runs"),
                     .pairs = (uint32_t)cli_count(a, "pair-thresholds"),
                     .seed = cli_count(a, "seed")};
    gx_index *ix = NULL;
    gx_synth *synth = NULL;
    choices c;
    const query_format format = (query_format)cli_choice(a, "format");
    int code = read_choices(a, &c);
    if (code)
        return code;
    if (cli_given(a, "figure"))
        return draw_figure(a, format);
    if (a->argc != (cli_given(a, "documents") ? 0 : 2))
        return cli_usage(a, "give an index and a query log, or --documents for a generated collection and none of "
                            "them");
    if (cli_given(a, "plot") && (code = bench_plot_dir(cli_text(a, "plot"))) != 0)
        return code;
    code = open_queries(&b, a, &ix, &synth);
    if (!code)
        code = open_engines(&b, a);
    if (!code)
        code = measure_memory(&b);
    if (!code)
        code = measure(&b, a, &c, (uint32_t)cli_count(a, "recursion"));
    if (!code)
        code = measure_fixed(&b, a, &c, (uint32_t)cli_count(a, "recursion"));
    if (!code)
        code = report(&b, a, format);
    if (!code && cli_given(a, "plot"))
        code = query_plot(&b, cli_text(a, "plot"), c.ops, c.n_ops, c.ks[0]);
    close_bench(&b);
    gx_index_close(ix);
    gx_synth_close(synth);
    return code;
}

static const cli_flag flags[] = {
    {"op", 0, CLI_TEXT, "OP,..", "or,and,and-or", "operators"},
    {"top", 'k', CLI_TEXT, "N,..", "10,1000", "numbers of results"},
    {"algorithm", 0, CLI_TEXT, "NAME,..", "auto,pmf,taat",
     "ways to the answer, as `gpuidx query --algorithm` has "
     "them"},
    {"recursion", 0, CLI_COUNT, "N", "0", "levels of recursion of Parallel Merge Find", .max = GX_MAX_RECURSION},
    {"batch", 0, CLI_TEXT, "N,..", "1,1024", "queries that a GPU is given at once; the CPU is given one"},
    {"limit", 0, CLI_COUNT, "N", "1000", "the log's first `N` queries, or `N` generated ones", .min = 1, .max = 1e8},
    {"documents", 0, CLI_COUNT, "N", NULL, "a generated collection of `N` documents instead of an index and a log",
     .min = 1000, .max = 4e9},
    {"seed", 0, CLI_COUNT, "N", "1", "another number, another collection, or other lists of --figure"},
    {"runs", 0, CLI_COUNT, "N", "3", "answer the queries `N` times", .min = 1, .max = 1000},
    {"table", 0, CLI_COUNT, "N", NULL,
     "Ding et al.'s Table 2 (time by operator) or 3 (shares of the steps), of `pmf` and of ours; with its own "
     "operators and the first number of results",
     .min = 2, .max = 3},
    {"figure", 0, CLI_CHOICE, "recursion|ratio", NULL,
     "their Figure 6, intersection by levels of recursion, of lists of equal length; or of 200,000 integers with "
     "longer lists"},
    {"format", 0, CLI_CHOICE, "table|json|csv", "table", "of the report; JSON has all that was measured"},
    {"plot", 0, CLI_TEXT, "DIR", NULL,
     "also measure and draw throughput by batch size, latency by rate (open loop) and time by postings into `DIR`, "
     "as PNG and SVG (needs gnuplot)"},
    {"engine", 0, CLI_CHOICE, CLI_ENGINES, "auto",
     "which to measure; `auto`: the CPU, and a GPU where one can be "
     "used"},
    {"device", 0, CLI_COUNT, "N", "0", "the number of the GPU, as `gpuidx devices` lists them", .max = 1023},
    {"device-memory", 0, CLI_BYTES, "SIZE", "0", "the most GPU memory to use; 0: what is free"},
    {"map-memory", 0, CLI_BYTES, "SIZE", NULL,
     "the most memory for tables derived from the index: the host's for the CPU engine, the GPU's on a GPU; 0: "
     "none; without it, no limit"},
    CLI_LINGER_FLAG,
    CLI_PAIR_THRESHOLDS_FLAG,
    CLI_INDEX_FLAGS,
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx bench query corpus.gx log.txt", "Every engine, operator and algorithm."},
    {"gpuidx bench query corpus.gx log.txt --op=or -k 10 --algorithm=auto --plot=plots", "One of them, and the plots."},
    {"gpuidx bench query --documents=25205179 --limit=100 --table=2", "Ding et al.'s Table 2, on a collection of "
                                                                      "GOV2's size and shape."},
    {"gpuidx bench query --figure=recursion", "Their Figure 6."},
    {NULL},
};

const cli_command cmd_bench_query = {
    .name = "bench query",
    .summary = "measure engines and algorithms on a query log",
    .synopsis = "[OPTIONS] INDEX LOG\n[OPTIONS] --documents=N\n[OPTIONS] --figure=recursion|ratio",
    .description = "Answers a log's queries by every engine, operator, number of results and algorithm, from plans, "
                   "on one thread. All answers of all are compared with the exhaustive ones, docids and score bits, "
                   "before they are timed; if any differs the program fails.\n"
                   "\n"
                   "Percentiles are of a batch's latency, that of 99 from 100 batches on and that of 99.9 from "
                   "1,000. `postings` and `blocks` are those of the queries' lists, all of which an exhaustive "
                   "search reads; `decoded` are the blocks whose docids were; `KB read` is those blocks' payload, "
                   "docids and term frequencies, at the mean size of a block of these lists; `touched` the postings "
                   "of those blocks and those looked up one by one; and `memory` the share of what was read in what "
                   "the memory gives, measured in the same run. A GPU counts nothing of these for a few queries "
                   "alone. `fixed` is what as many queries take whose lists have a few postings, those of a "
                   "generated collection of 1,000 documents, and `ps each` the time beyond that of a posting "
                   "touched. Of a GPU also, a batch: the parts that it went in; how often the host waited for the "
                   "GPU, which is once a part, for its end, where nothing is in the way; how often memory of the GPU "
                   "was got or given back. `plan` is the time from text to plan, which is not in the latencies; the "
                   "other times are the engine's own stages, and the steps of `pmf` and `taat`, on a GPU by its "
                   "events.\n"
                   "\n"
                   "Plots: throughput by batch size; latency at a fixed rate of queries, whether or not earlier ones "
                   "are answered, from when each was due, those that are due together in one batch; the time of each "
                   "query alone by its postings.",
    .examples = examples,
    .flags = flags,
    .min_args = 0,
    .max_args = 2,
    .run = run,
};
