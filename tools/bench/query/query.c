/* bench_query.c: `gpuidx-bench query`: engines and algorithms on an index and a log, compared and
 * timed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/device.h"
#include "query/engine/engine.h"
#include "query/log/query_log.h"
#include "tools/bench/common.h"
#include "tools/bench/kernels/gpu_list.h"
#include "tools/bench/query/query_report.h"
#include "tools/cli/search_flags.h"

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
            c->n_algorithms = 3;
            c->algorithms[0] = GX_ALGORITHM_DAAT, c->algorithms[1] = GX_ALGORITHM_PMF;
            c->algorithms[2] = GX_ALGORITHM_AUTO;
        }
    }
    return 0;
}

/* ---- index, queries, engines ---- */

/* False: no memory; what there is can be freed. */
static bool copy_query(query_text *out, const gx_log_query *q)
{
    size_t len = q->terms ? 0 : q->len;
    for (uint32_t i = 0; q->terms && i < q->n_terms; ++i)
        len += q->terms[i].len;
    *out = (query_text){.text = malloc(len + 1), .len = len};
    if (q->terms)
        out->terms = malloc((q->n_terms + 1ull) * sizeof *out->terms);
    if (!out->text || (q->terms && !out->terms))
        return false;
    if (!q->terms)
        memcpy(out->text, q->text, len);
    char *at = out->text;
    for (uint32_t i = 0; q->terms && i < q->n_terms; ++i) {
        const gx_weighted_term *t = &q->terms[i];
        memcpy(at, t->term, t->len);
        out->terms[out->n_terms++] = (gx_weighted_term){at, t->len, t->weight};
        at += t->len;
    }
    return true;
}

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
        if (!copy_query(&b->texts[b->n++], &q)) {
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
        if (gx_codec_find(&opt.codec, cli_text(a, "codec"), &err))
            return cli_usage(a, "--codec=%s: %s", cli_text(a, "codec"), err.text);
        cli_note("making a collection of %u documents", opt.n_docs);
        if (gx_synth_open(synth, &opt, &err))
            return cli_fail_error(&err);
        b->ix = &(*synth)->ix;
        b->synth = *synth;
        b->n = most;
        snprintf(b->index, sizeof b->index, "generated collection of %u documents, seed %llu", opt.n_docs,
                 (unsigned long long)opt.seed);
        return 0;
    }
    if ((code = cli_open_index(ix, a, a->argv[0])))
        return code;
    b->ix = *ix;
    snprintf(b->index, sizeof b->index, "%s", a->argv[0]);
    b->log = a->argv[1];
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

/* part: b's index stands for one part of what is measured, which lies on one GPU where parts are spread. */
static int open_engines(query_bench *b, const cli_args *a, bool part)
{
    gx_engine_options options = cli_engine_options(a);
    int code = cli_add_devices(&options, a);
    if (part && options.spread == GX_SPREAD_PARTS) {
        options.spread = GX_SPREAD_COPIES;
        options.n_devices = options.n_devices ? 1 : 0;
    }
    if (!code)
        code = cli_add_residency(&options, a);
    if (!code && options.kind != GX_ENGINE_GPU)
        code = open_engine(b, options, GX_ENGINE_CPU, true);
    if (!code && options.kind != GX_ENGINE_CPU)
        code = open_engine(b, options, GX_ENGINE_GPU, options.kind == GX_ENGINE_GPU);
    const gx_engine *last = b->n_engines ? b->engines[b->n_engines - 1].en : NULL;
    const bool gpu = last && gx_engine_get_kind(last) == GX_ENGINE_GPU;
    if (!code && !part)
        cli_tell_ignored(a, gpu);
    return !code && gpu ? cli_warm(b->engines[b->n_engines - 1].en, a) : code;
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

static bool has_algorithm(const choices *c, gx_algorithm algorithm)
{
    for (uint32_t i = 0; i < c->n_algorithms; ++i)
        if (c->algorithms[i] == algorithm)
            return true;
    return false;
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
                    if (gpu && c->algorithms[i] == GX_ALGORITHM_DAAT && has_algorithm(c, GX_ALGORITHM_PMF))
                        continue; /* it is pmf there */
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
    for (uint32_t i = 0; b->texts && i < b->n; ++i) {
        free(b->texts[i].text);
        free(b->texts[i].terms);
    }
    free(b->texts);
    free(b->rows);
}

/* Into b's rows what the same takes for as many queries of an index so small that its lists have a block or a few;
 * of a collection, for each of the parts that are searched. */
static int measure_fixed(query_bench *b, const cli_args *a, const choices *c, uint32_t recursion)
{
    gx_error err = {0};
    gx_synth *synth;
    gx_synth_options opt = GX_SYNTH_OPTIONS;
    opt.n_docs = 1000;
    opt.n_queries = b->n;
    opt.seed = b->seed;
    if (gx_codec_find(&opt.codec, cli_text(a, "codec"), &err))
        return cli_fail_error(&err);
    cli_note("as many queries of %u documents", opt.n_docs);
    if (gx_synth_open(&synth, &opt, &err))
        return cli_fail_error(&err);
    query_bench few = {.ix = &synth->ix, .synth = synth, .n = b->n, .runs = b->runs, .seed = b->seed};
    int code = open_engines(&few, a, true);
    if (!code)
        code = measure(&few, a, c, recursion);
    for (size_t i = 0; !code && i < b->n_rows && i < few.n_rows; ++i)
        b->rows[i].fixed_seconds = few.rows[i].seconds * gx_engine_n_searched(b->rows[i].engine->en);
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
    bool told = false;
    for (size_t i = 0; i < b->n_rows; ++i)
        told |= b->rows[i].joules > 0;
    if (b->energy && !told)
        cli_note("no energy is measured: there is no GPU that tells it");
    if (!code && different)
        code = cli_fail(GX_EINTERNAL, "%u answers differ from the exhaustive ones", different);
    return code;
}

#define OF_AN_INDEX                                                                                                    \
    "device-memory", "map-memory", "join", "resident", "residency-policy", "warm", "devices", "spread", "linger",      \
        "pair-thresholds", "check", "load"

/* Flags that count for nothing in what is asked for; 0, or the exit code. */
static int check_flags(const cli_args *a, const choices *c)
{
    const bool figure = cli_given(a, "figure");
    if (figure && cli_choice(a, "figure") == 2)
        return BENCH_REFUSE(a, "--figure=recall", "it is of OR by the engines' own algorithms", "op", "algorithm",
                            "recursion");
    if (figure)
        return BENCH_REFUSE(a, cli_choice(a, "figure") ? "--figure=ratio" : "--figure=recursion",
                            "two lists are intersected, by all levels of recursion", "op", "top", "algorithm",
                            "recursion", "batch", "limit", "runs", "codec", "energy", OF_AN_INDEX);
    bool pmf = has_algorithm(c, GX_ALGORITHM_PMF), and = false;
    for (uint32_t i = 0; i < c->n_ops; ++i)
        and |= c->ops[i] != GX_OP_OR;
    if (cli_given(a, "recursion") && !(pmf && and))
        return cli_usage(a, "--recursion is of AND by Parallel Merge Find; none is measured here: --algorithm=pmf "
                            "--op=and");
    if (!cli_given(a, "documents") && cli_given(a, "codec"))
        return cli_usage(a, "--codec is of a collection that is made (--documents); an index has its own");
    if (cli_given(a, "documents"))
        return BENCH_REFUSE(a, "--documents", "the collection is made in memory", "check", "load");
    return 0;
}

static int draw_figure(const cli_args *a, query_format format)
{
    bool gpu = false;
    char name[128] = "";
    const bool ratios = cli_choice(a, "figure") == 1;
    int code;
    if (a->argc || cli_given(a, "documents"))
        return cli_usage(a, "--figure generates its lists; it takes neither an index nor a collection");
    if (cli_given(a, "plot") && (code = bench_plot_dir(cli_text(a, "plot"))) != 0)
        return code;
    if (cli_choice(a, "engine") != GX_ENGINE_CPU) {
        gx_error err = {0};
        gx_status st = gx_device_use(0, &err);
#if GX_CUDA
        if (st == GX_OK)
            st = gx_gpu_name(name, sizeof name, &err);
#endif
        gpu = st == GX_OK;
        if (gpu)
            cli_note("GPU: %s", name);
        else if (cli_choice(a, "engine") == GX_ENGINE_GPU)
            return cli_fail_error(&err);
        else
            cli_note("no GPU is measured: %s", err.text);
    }
    return query_figure(ratios, gpu ? name : NULL, (uint32_t)cli_count(a, "device"), (uint32_t)cli_count(a, "seed"),
                        format, cli_text(a, "plot"));
}

static int run(const cli_args *a)
{
    query_bench b = {.runs = (uint32_t)cli_count(a, "runs"),
                     .pairs = (uint32_t)cli_count(a, "pair-thresholds"),
                     .seed = cli_count(a, "seed"),
                     .energy = cli_switch(a, "energy")};
    gx_index *ix = NULL;
    gx_synth *synth = NULL;
    choices c;
    const query_format format = (query_format)cli_choice(a, "format");
    int code = read_choices(a, &c);
    bench_plot_force(cli_switch(a, "force"));
    if (code)
        return code;
    const bool recall = cli_given(a, "figure") && cli_choice(a, "figure") == 2;
    if ((code = check_flags(a, &c)))
        return code;
    if (cli_given(a, "figure") && !recall)
        return draw_figure(a, format);
    if (a->argc != (cli_given(a, "documents") ? 0 : 2))
        return cli_usage(a, "give an index and a query log, or --documents for a generated collection and none of "
                            "them");
    if (cli_given(a, "plot") && (code = bench_plot_dir(cli_text(a, "plot"))) != 0)
        return code;
    code = open_queries(&b, a, &ix, &synth);
    if (!code)
        code = open_engines(&b, a, false);
    if (!code && recall) {
        code = query_recall(&b, c.ks[0], c.batches[c.n_batches - 1], format, cli_text(a, "plot"));
        goto done;
    }
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
done:
    close_bench(&b);
    gx_index_close(ix);
    gx_synth_close(synth);
    return code;
}

static const cli_flag flags[] = {
    {"op", 0, CLI_TEXT, "OP,..", "or,and,and-or",
     "the operators to measure, separated by commas, as `gpuidx query --op` has them"},
    {"top", 'k', CLI_TEXT, "N,..", "10,1000", "the numbers of results to measure, separated by commas"},
    {"algorithm", 0, CLI_TEXT, "NAME,..", "auto,pmf,taat",
     "the algorithms to measure, separated by commas, as `gpuidx query --algorithm` has them"},
    {"recursion", 0, CLI_COUNT, "N", "0",
     "how many times Parallel Merge Find (`pmf`) splits a list before it looks up every docid; it pays above 5 M "
     "integers",
     .max = GX_MAX_RECURSION},
    {"batch", 0, CLI_TEXT, "N,..", "1,1024",
     "how many queries the GPU is given at once, separated by commas. The CPU is always given one"},
    {"limit", 0, CLI_COUNT, "N", "1000", "measure the first `N` queries of the log, or make `N` of them", .min = 1,
     .max = 1e8},
    {"documents", 0, CLI_COUNT, "N", NULL,
     "make a collection of `N` documents and queries for it, as `gpuidx generate` does, instead of reading an index "
     "and "
     "a log",
     .min = 1000, .max = 4e9},
    {"codec", 0, CLI_TEXT, "NAME", "gpubp128",
     "with `--documents`: the codec of its lists, such as `pfordelta`, the paper's, or `gpupfd128`, which has a width "
     "for each block as the paper's CPU has"},
    {"seed", 0, CLI_COUNT, "N", "1",
     "the seed of the random numbers: the same seed gives the same collection for `--documents` and the same lists for "
     "`--figure`"},
    {"runs", 0, CLI_COUNT, "N", "3", "answer the queries `N` times; more runs give steadier figures", .min = 1,
     .max = 1000},
    {"table", 0, CLI_COUNT, "N", NULL,
     "print a table as Ding et al. (WWW 2009) have it, for `daat` and `pmf`, theirs, and for our own algorithm: 2: "
     "time by operator; 3: shares of the steps. It has its own operators, and takes the first number of `-k`. A GPU "
     "has no `daat`; of the CPU's, seeking and scoring are one step: intersection of an AND, scoring of an OR",
     .min = 2, .max = 3},
    {"figure", 0, CLI_CHOICE, "recursion|ratio|recall", NULL,
     "print the numbers of their Figure 6, the speed of intersections: `recursion`: of two lists of equal length, by "
     "levels of recursion; `ratio`: of 200,000 integers with longer lists. `recall`: of an index and a log, or of "
     "`--documents`, the recall and the speed of ORs for series of `--approximate`, as `gpuidx query` has it: terms; "
     "on the CPU also threshold, blocks, and terms with threshold"},
    {"format", 0, CLI_CHOICE, "table|json|csv", "table", "how the report is printed. `json` has all that was measured"},
    {"plot", 0, CLI_TEXT, "DIR", NULL,
     "also measure and draw, into the folder `DIR`, as PNG and SVG: throughput by batch size, latency by the rate at "
     "which queries arrive, and time by postings; needs gnuplot"},
    BENCH_FORCE_FLAG,
    {"energy", 0, CLI_SWITCH, NULL, NULL,
     "also tell what a query takes of a GPU's energy, idle power and all, as NVML counts it while all queries are "
     "answered for a second"},
    {"engine", 0, CLI_CHOICE, CLI_ENGINES, "auto",
     "which engine to measure. `auto`: the CPU, and a GPU where one can be used"},
    {"device", 0, CLI_COUNT, "N", "0", "the number of the GPU, as `gpuidx devices` lists them", .max = 1023},
    {"device-memory", 0, CLI_BYTES, "SIZE", "0",
     "use at most this many bytes of GPU memory, such as `20G`; 0: all that is free less a reserve"},
    {"map-memory", 0, CLI_BYTES, "SIZE", NULL,
     "the most memory for tables derived from the index: host memory for the CPU engine, GPU memory for the GPU "
     "engine. "
     "0: no tables; without this flag, no limit"},
    CLI_JOIN_FLAG,
    CLI_RESIDENCY_FLAGS,
    CLI_DEVICES_FLAGS,
    CLI_LINGER_FLAG,
    CLI_PAIR_THRESHOLDS_FLAG,
    CLI_INDEX_FLAGS,
    {NULL},
};

static const cli_section sections[] = {
    {"Columns",
     "Percentiles are those of the latency of a batch: the 99th is printed from 100 batches on, the 99.9th from 1,000. "
     "Times are the engine's own, of queries that have been read and planned already; `plan` is the time from text to "
     "plan.\n"
     "\n"
     "  postings  postings of the queries' lists, which an exhaustive search reads\n"
     "  blocks    blocks of these lists\n"
     "  decoded   how often the docids of a block were decoded; a block that is\n"
     "            needed again can be decoded again\n"
     "  look-ups  documents that were looked up in a list one by one\n"
     "  touched   postings of the decoded blocks, and look-ups\n"
     "  KB read   bytes of the decoded blocks, at the mean size of a block\n"
     "  memory    the bytes read per second, as a share of what the memory gives\n"
     "  fixed     the time of as many queries whose lists have a few postings\n"
     "  ps each   the time beyond that, for each posting touched, in picoseconds\n"
     "\n"
     "A GPU does not count these for batches of a few queries. For each batch it also tells into how many parts it was "
     "divided, how often the host waited for the GPU (normally once for each part), and how often GPU memory was "
     "allocated or freed."},
    {"Collections",
     "The figures of a collection (`gpuidx collect`) are sums over its parts, which are searched one after another. "
     "Postings of deleted documents count, since they are in the lists until parts are merged; a word that they alone "
     "have is unknown. A part that lacks a word of an AND counts nothing, because none of its lists is read. `fixed` "
     "is the time of the few postings in one index, times the number of parts. A GPU engine joins parts (`--join`) "
     "and counts what the joined ones have; the report says how many there are. Pair thresholds are of one index: "
     "`--pair-thresholds` is refused. The exhaustive answers take the CPU memory for each document of all parts: 4 "
     "bytes, and 6 with AND."},
    {"Plots",
     "Throughput by batch size; latency at a fixed rate of queries, whether or not earlier ones are answered, counted "
     "from the moment at which each was due; and the time of each query, answered alone, by its postings. With "
     "`--figure`, that figure alone."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx-bench query corpus.gx log.txt", "Every engine, operator and algorithm."},
    {"gpuidx-bench query corpus.gx log.txt --op=or -k 10 --algorithm=auto --plot=plots", "One of them, and the plots."},
    {"gpuidx-bench query --documents=25205179 --limit=100 --table=2", "Ding et al.'s Table 2, on a collection of "
                                                                      "GOV2's size and shape."},
    {"gpuidx-bench query --figure=recursion", "Their Figure 6."},
    {"gpuidx-bench query --figure=recall splade.gx queries.jsonl -k 10 --plot=plots",
     "What exactness costs, in numbers and drawn."},
    {NULL},
};

const cli_command cmd_bench_query = {
    .name = "query",
    .summary = "measure engines and algorithms on a query log",
    .synopsis = "[OPTIONS] INDEX LOG\n[OPTIONS] --documents=N\n[OPTIONS] --figure=recursion|ratio\n"
                "[OPTIONS] --figure=recall INDEX LOG",
    .description =
        "Measures how fast queries are answered, by every engine, operator, number of results and "
        "algorithm, on one thread. First all answers are compared with those of an exhaustive search, docids "
        "and scores to the bit; if any differs the program fails. The queries are those of a log or, with "
        "`--documents`, made by random numbers.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 0,
    .max_args = 2,
    .run = run,
};
