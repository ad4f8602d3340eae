/* schedule.c: `gpuidx-bench schedule`: what the CPU and a GPU carry together: simulated, and real. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"
#include "tools/bench/common.h"
#include "tools/bench/query_draw.h"
#include "tools/bench/schedule/schedule_measure.h"
#include "tools/bench/schedule/schedule_simulate.h"
#include "tools/cli/cli.h"
#include "tools/cli/profile.h"
#include "tools/cli/progress.h"
#include "tools/cli/search_flags.h"
#include "tools/cli/signals.h"

enum { MAX_COSTS = 1 << 20, N_CURVE = 8 };

/* ---- tables of costs ---- */

typedef struct cost_table {
    const char *name;
    sim_cost *costs; /* [n] */
    size_t n;
    double fixed; /* ns of a batch besides its queries */
    bool batches; /* the GPU's batches are simulated too */
} cost_table;

static double uniform(uint64_t *random)
{
    return (double)(gx_random_next(random) >> 11) * 0x1p-53;
}

/* AND queries on the hardware of 2009. The paper does not print their costs. These are assumed: a
 * query has 2 to 5 lists, whose lengths are log-uniform from 2,000 to 8 million, as those of GOV2
 * are. What it costs grows with the shortest list, from which blocks of the others are skipped, and
 * with the number of lists. The CPU begins at once and takes long for long lists; the GPU begins
 * late and takes less for them. The constants are such that the CPU alone ends below 100 queries a
 * second, and both in parallel above 300, as the paper says. */
static bool make_costs_of_2009(cost_table *t, uint64_t seed)
{
    enum { N = 1000 };
    t->name = "costs as of 2009 (assumed)";
    t->costs = malloc(N * sizeof *t->costs);
    if (!t->costs)
        return false;
    for (t->n = 0; t->n < N; ++t->n) {
        const uint32_t lists = 2 + (uint32_t)(4 * uniform(&seed));
        double shortest = 8e6;
        for (uint32_t i = 0; i < lists; ++i)
            shortest = fmin(shortest, 2000 * pow(4000, uniform(&seed)));
        const double work = pow(shortest / 1e6, 0.6) * sqrt(lists - 1);
        const double gpu = 3e6 + 9e6 * work;
        t->costs[t->n] = (sim_cost){0.3e6 + 45e6 * work, gpu, gpu};
    }
    return true;
}

/* The costs of one operator and k that `gpuidx calibrate --costs` wrote: the n-th query of the CPU is
 * the n-th of the GPU. What a query adds to a batch, and a batch's fixed part, are fitted to the
 * batches by least squares. */
typedef struct batch_sums {
    double n, x, y, xx, xy;
} batch_sums;

static int add_row(cost_table *t, batch_sums *b, size_t n_of[2], const char *line, int op, uint32_t k)
{
    char kind[16];
    int row_op, held_out;
    uint32_t row_k, queries;
    double ns;
    if (sscanf(line, "%15s %d %u %d %u %lf", kind, &row_op, &row_k, &held_out, &queries, &ns) != 6 || !(ns > 0) ||
        queries < 1)
        return -1;
    if (row_op != op || row_k != k)
        return 0;
    if (strcmp(kind, "gpu_batch") == 0) { /* each relative to its time */
        const double w = 1 / (ns * ns);
        b->n += w;
        b->x += w * queries;
        b->y += w * ns;
        b->xx += w * queries * queries;
        b->xy += w * queries * ns;
        return 0;
    }
    const int gpu = strcmp(kind, "gpu_alone") == 0;
    if ((!gpu && strcmp(kind, "cpu") != 0) || n_of[gpu] == MAX_COSTS)
        return -1;
    *(gpu ? &t->costs[n_of[gpu]].alone : &t->costs[n_of[gpu]].cpu) = ns;
    ++n_of[gpu];
    return 0;
}

static int read_costs(cost_table *t, const char *path, int op, uint32_t k)
{
    char line[4096]; /* a row is below 1,000 bytes */
    size_t n_of[2] = {0, 0};
    batch_sums b = {0};
    uint64_t number = 1;
    FILE *f = fopen(path, "r");
    if (!f)
        return cli_fail(GX_ENOTFOUND, "cannot open %s", path);
    t->costs = calloc(MAX_COSTS, sizeof *t->costs);
    int code = t->costs ? 0 : cli_fail(GX_ENOMEM, "no memory for costs");
    if (!code && (!fgets(line, sizeof line, f) || strncmp(line, "kind\top\tk\t", 10)))
        code = cli_fail(GX_EINPUT, "%s:1: this is no table of `gpuidx calibrate --costs`", path);
    while (!code && fgets(line, sizeof line, f)) {
        ++number;
        if (add_row(t, &b, n_of, line, op, k))
            code = cli_fail(GX_EINPUT, "%s:%" PRIu64 ": this is no row of costs", path, number);
    }
    fclose(f);
    t->name = path;
    t->n = n_of[0] < n_of[1] ? n_of[0] : n_of[1];
    if (!code && !t->n)
        code = cli_fail(GX_EINPUT, "%s has no query of this operator and k on both the CPU and the GPU", path);
    const double det = b.n * b.xx - b.x * b.x;
    const double each = det > 0 ? (b.n * b.xy - b.x * b.y) / det : 0;
    t->batches = each > 0;
    t->fixed = t->batches ? fmax(0, (b.y - each * b.x) / b.n) : 0;
    for (size_t i = 0; i < t->n; ++i)
        t->costs[i].gpu = t->batches ? each : t->costs[i].alone;
    return code;
}

/* ---- the simulation ---- */

/* A system's curve: mean delays at parts of the greatest rate that it carries. */
typedef struct curve {
    double rate; /* queries a second */
    double rates[N_CURVE], means[N_CURVE], cpu_share;
} curve;

static const double parts[N_CURVE] = {0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1};

static gx_status draw_curve(curve *c, sim_system system, const sim_options *opt, gx_error *err)
{
    double mean = 0;
    for (size_t i = 0; i < opt->n_costs; ++i)
        mean += fmin(opt->costs[i].cpu, opt->costs[i].alone) / (double)opt->n_costs;
    gx_status st = sim_find_rate(&c->rate, system, opt, 0.001e9 / mean, err);
    for (int i = 0; i < N_CURVE && st == GX_OK && c->rate > 0; ++i) {
        sim_options o = *opt;
        sim_result r;
        o.rate = c->rates[i] = parts[i] * c->rate;
        st = sim_run(&r, system, &o, err);
        c->means[i] = r.mean;
        c->cpu_share = r.cpu_share;
    }
    return st;
}

static void print_curves(const cost_table *t, const curve *curves, int n, const sim_options *o)
{
    double cpu = 0, alone = 0;
    for (size_t i = 0; i < t->n; ++i) {
        cpu += t->costs[i].cpu / (double)t->n;
        alone += t->costs[i].alone / (double)t->n;
    }
    printf("%s%s%s: %s queries, mean cost %.4g ms on the CPU, %.4g ms on the GPU", cli_paint(stdout, CLI_BOLD), t->name,
           cli_paint(stdout, CLI_PLAIN), show_count(t->n), cpu * 1e-6, alone * 1e-6);
    if (t->batches)
        printf(", %.4g us a batch and %.4g us for each query of one", t->fixed * 1e-3, t->costs[0].gpu * 1e-3);
    printf(
        "\n%u thread%s of the CPU, Poisson, %s queries a run or 40 deadlines, to the first of more than %g ms\n",
        o->cpu_threads, plural(o->cpu_threads), show_count(o->n_queries), o->deadline * 1e-6);
    printf("%-26s %12s   mean delay in ms at a part of that rate of\n%-26s %12s ", "", "queries/s", "", "carried");
    for (int i = 0; i < N_CURVE; ++i)
        printf(" %8.2g", parts[i]);
    printf("  on the CPU\n");
    for (int s = 0; s < n; ++s) {
        char rate[32];
        snprintf(rate, sizeof rate, "%.1f", curves[s].rate);
        printf("%-26s %12s ", sim_system_name((sim_system)s),
               curves[s].rate < 1000 ? rate : show_count((uint64_t)curves[s].rate));
        for (int i = 0; i < N_CURVE; ++i)
            printf(" %8.4g", curves[s].means[i] * 1e-6);
        printf("  %.0f %%\n", 100 * curves[s].cpu_share);
    }
    printf("in parallel: %.2f times the CPU alone, %.2f times the GPU alone\n\n",
           curves[SIM_PARALLEL].rate / curves[SIM_CPU].rate, curves[SIM_PARALLEL].rate / curves[SIM_GPU].rate);
}

static json_t *curves_json(const cost_table *t, const curve *curves, int n, const sim_options *o)
{
    json_t *systems = json_array();
    for (int s = 0; s < n; ++s) {
        json_t *points = json_array();
        for (int i = 0; i < N_CURVE; ++i)
            json_array_append_new(
                points, json_pack("{s:f, s:f}", "rate", curves[s].rates[i], "mean_ms", curves[s].means[i] * 1e-6));
        json_array_append_new(systems,
                              json_pack("{s:s, s:f, s:f, s:o}", "system", sim_system_name((sim_system)s), "rate",
                                        curves[s].rate, "cpu_share", curves[s].cpu_share, "curve", points));
    }
    json_t *root =
        json_pack("{s:s, s:I, s:i, s:f, s:f, s:o}", "costs", t->name, "queries", (json_int_t)t->n, "cpu_threads",
                  (int)o->cpu_threads, "deadline_ms", o->deadline * 1e-6, "error", o->error, "systems", systems);
    bench_put_machine(root, o->seed);
    return root;
}

static int plot_curves(const cost_table *t, const curve *curves, int n, const char *dir)
{
    int code = 0;
    FILE *f = draw_begin(dir, "figure7", &code);
    if (!f)
        return code;
    fputs("set grid\nset logscale x\nset key outside right\nset xlabel 'queries a second'\n"
          "set format y '%g'\nset ylabel 'mean delay in ms'\n",
          f);
    bench_put_title(f, "Simulated delay by rate", &(bench_subject){t->name, NULL, NULL});
    for (int s = 0; s < n; ++s) {
        fprintf(f, "$s%d << END\n", s);
        for (int i = 0; i < N_CURVE; ++i)
            fprintf(f, "%.8g %.8g\n", curves[s].rates[i], curves[s].means[i] * 1e-6);
        fputs("END\n", f);
    }
    for (int format = 0; format < DRAW_FORMATS; ++format) {
        draw_format(f, "figure7", format);
        for (int s = 0; s < n; ++s)
            fprintf(f, "%s$s%d with linespoints title '%s'", s ? ", " : "", s, sim_system_name((sim_system)s));
        fputs("\nunset output\n", f);
    }
    return draw_end(f, dir, "figure7");
}

static int simulate(const cli_args *a)
{
    cost_table t = {0};
    curve curves[N_SIM_SYSTEMS] = {0};
    gx_error err = {0};
    const char *path = cli_text(a, "costs");
    char *rest;
    const unsigned long cpu_threads = strtoul(cli_text(a, "cpu-threads"), &rest, 10);
    int code = 0;
    if (path)
        code = read_costs(&t, path, cli_choice(a, "op"), (uint32_t)cli_count(a, "top"));
    else if (!make_costs_of_2009(&t, cli_count(a, "seed")))
        code = cli_fail(GX_ENOMEM, "no memory for costs");
    const sim_options o = {.costs = t.costs,
                           .n_costs = t.n,
                           .n_queries = cli_count(a, "queries"),
                           .seed = cli_count(a, "seed"),
                           .cpu_threads = *rest || cpu_threads > 1024 ? 0 : (uint32_t)cpu_threads,
                           .batch = 1024,
                           .fixed = t.fixed,
                           .batch_wait = 25e3,
                           .deadline = cli_number(a, "deadline") * 1e6,
                           .error = cli_number(a, "error") / 100};
    const int n = t.batches ? N_SIM_SYSTEMS : SIM_PARALLEL + 1;
    if (!code && !o.cpu_threads)
        code = cli_usage(a, "--cpu-threads=%s: a simulation needs one number, from 1 to 1,024",
                         cli_text(a, "cpu-threads"));
    for (int s = 0; s < n && !code; ++s)
        if (draw_curve(&curves[s], (sim_system)s, &o, &err))
            code = cli_fail_error(&err);
    if (!code && cli_switch(a, "json"))
        code = bench_print_json(curves_json(&t, curves, n, &o));
    else if (!code)
        print_curves(&t, curves, n, &o);
    if (!code && cli_given(a, "plot"))
        code = plot_curves(&t, curves, n, cli_text(a, "plot"));
    free(t.costs);
    return code;
}

/* ---- decisions ---- */

static int repeat(const char *path)
{
    uint64_t n = 0;
    gx_error err = {0};
    if (gx_decisions_repeat(path, &n, &err)) {
        cli_fail_error(&err);
        return err.status == GX_EINTERNAL ? 1 : gx_status_exit(err.status);
    }
    printf("%s decisions, made again from %s, are the same\n", show_count(n), path);
    return 0;
}

/* ---- the command ---- */

#define OF_ENGINES                                                                                                     \
    "device", "device-memory", "map-memory", "join", "linger", "resident", "residency-policy", "warm", "check", "load"

/* Flags that count for nothing in what is asked for; 0, or the exit code. */
static int check_flags(const cli_args *a)
{
    if (cli_text(a, "repeat"))
        return BENCH_REFUSE(a, "--repeat", "decisions are made again as they were logged", "costs", "op", "top",
                            "cpu-threads", "gpu-threads", "submitters", "engines", "cores", "seconds", "least-rate",
                            "most-rate", "per-decade", "within", "queries", "deadline", "error", "seed", "json", "plot",
                            OF_ENGINES);
    if (!cli_switch(a, "simulate")) {
        const int code = BENCH_REFUSE(a, "INDEX", "it is of a simulation: --simulate", "costs", "deadline", "error");
        if (!code && !cli_given(a, "within") && cli_given(a, "queries"))
            return cli_usage(a, "--queries: they are counted below the rate that --within finds, or simulated");
        return code || !cli_given(a, "within")
                   ? code
                   : BENCH_REFUSE(a, "--within", "rates are searched for, not taken in turn", "per-decade");
    }
    const int code = BENCH_REFUSE(a, "--simulate", "no query is answered", "gpu-threads", "submitters", "engines",
                                  "cores", "seconds", "least-rate", "most-rate", "per-decade", "within", OF_ENGINES);
    return code || cli_given(a, "costs") ? code
                                         : BENCH_REFUSE(a, "--simulate",
                                                        "the assumed costs are of one kind of query; --costs=FILE has "
                                                        "those of several",
                                                        "op", "top");
}

static int run(const cli_args *a)
{
    bench_plot_force(cli_switch(a, "force"));
    if (cli_text(a, "repeat") && cli_switch(a, "simulate"))
        return cli_usage(a, "--repeat and --simulate: one of them");
    if (a->argc == 1 || (a->argc && cli_text(a, "repeat")))
        return cli_usage(a, "--simulate, --repeat, or INDEX and LOG: one of them");
    if (!cli_text(a, "repeat") && cli_switch(a, "simulate") == (a->argc > 0))
        return cli_usage(a, "--simulate, --repeat, or INDEX and LOG: one of them");
    const int code = check_flags(a);
    if (code)
        return code;
    if (cli_text(a, "repeat"))
        return repeat(cli_text(a, "repeat"));
    return a->argc ? schedule_measure(a) : simulate(a);
}

static const cli_flag flags[] = {
    {"simulate", 0, CLI_SWITCH, NULL, NULL,
     "simulate the CPU alone, the GPU alone, the better of both in series, and both in parallel, on a table of costs: "
     "Figure 7 of Ding et al. (2009); with the costs of batches also the GPU in batches"},
    {"costs", 0, CLI_TEXT, "FILE", NULL,
     "the table of costs, which `gpuidx calibrate` has measured and written with its flag of this name; without it, "
     "costs as those of 2009 may have been"},
    {"op", 0, CLI_CHOICE, CLI_OPS, "and", "the operator of the queries, or whose costs are taken"},
    {"top", 'k', CLI_COUNT, "N", "10", "results of a query, or whose costs are taken; calibrate measures 10 and 1,000",
     .min = 1, .max = UINT32_MAX},
    {"cpu-threads", 0, CLI_TEXT, "LIST", "1",
     "threads of the CPU that answer beside a GPU, such as 1,4,16, each measured in turn; a simulation takes the "
     "first. Without this flag, with `--cores`, a sixteenth of the cores"},
    {"gpu-threads", 0, CLI_COUNT, "N", "0", "batches that the GPU has at once; 0: five sixteenths of the cores",
     .max = 64},
    {"submitters", 0, CLI_COUNT, "N", "0",
     "threads that plan and submit, besides those that answer; 0: the cores that are left", .max = 512},
    {"engines", 0, CLI_TEXT, "LIST", "hybrid",
     "what is offered the queries: hybrid, gpu, cpu, or several of them, separated by commas. `gpu` and `cpu` have a "
     "thread for each core, which plans and answers"},
    {"cores", 0, CLI_TEXT, "LIST", NULL,
     "let the threads run on so many processors alone, such as 1,4,16, each measured in turn; without this flag, all"},
    {"seconds", 0, CLI_NUMBER, "S", "1", "how long each rate is offered", .min = 0.01, .max = 1000},
    {"least-rate", 0, CLI_NUMBER, "Q/S", "1000", "the first rate", .min = 1, .max = 1e9},
    {"most-rate", 0, CLI_NUMBER, "Q/S", "3200000", "the greatest rate; the first that is not carried is the last",
     .min = 1000, .max = 1e9},
    {"per-decade", 0, CLI_COUNT, "N", "2", "rates between one and its tenfold", .min = 1, .max = 100},
    {"within", 0, CLI_NUMBER, "MS", NULL,
     "instead, search for the greatest rate that each carries with a 99th percentile of so much; then offer nine "
     "tenths of it, and count late queries among `--queries`",
     .min = 1e-6, .max = 1e6},
    {"queries", 0, CLI_COUNT, "N", "20000",
     "queries of a simulated run, or at nine tenths of what is carried; a simulated run is at least 40 deadlines long",
     .min = 100, .max = 10000000},
    {"deadline", 0, CLI_NUMBER, "MS", "500", "a run ends with the first query that takes longer", .min = 1e-3,
     .max = 1e6},
    {"error", 0, CLI_NUMBER, "PERCENT", "22",
     "how wrong predicted costs are: they differ from the true ones by a random factor of this standard deviation; the "
     "paper has a mean error of 22 %",
     .max = 300},
    {"seed", 0, CLI_COUNT, "N", "1", "of arrivals, the drawing of queries, and errors"},
    {"json", 0, CLI_SWITCH, NULL, NULL, "print a report for programs instead of tables"},
    {"plot", 0, CLI_TEXT, "DIR", NULL, "also draw delays by rate into that folder; needs gnuplot"},
    BENCH_FORCE_FLAG,
    {"repeat", 0, CLI_TEXT, "FILE", NULL,
     "make the decisions of a log of `gpuidx replay` again, and say whether they are the same; exit with 1 if one is "
     "not"},
    CLI_DEVICE_FLAGS,
    CLI_RESIDENCY_FLAGS,
    CLI_INDEX_FLAGS,
    {NULL},
};

static const cli_section sections[] = {
    {"The simulation",
     "Queries arrive by a Poisson process, each drawn from the table. `CPU only` and `GPU only` answer first come, "
     "first served. `CPU+GPU serialized` answers each query by the better one, one query at a time in the whole "
     "system. `CPU+GPU parallel` has the scheduler of hybrid searches, which does not know the costs, but predictions "
     "of them. A rate is carried if no query of a run takes longer than the deadline. The greatest such rate is "
     "searched for, and mean delays are shown at parts of it.\n"
     "\n"
     "Without a table the costs are assumed, since the paper does not print them: on the CPU 0.3 ms and on the GPU "
     "3 ms, and 45 or 9 ms times (s / 10^6)^0.6 (n - 1)^0.5 more, for n lists of which the shortest has s postings. "
     "These constants were chosen to give the two rates that the paper's text has: the CPU alone ends below 100 "
     "queries a second, both in parallel beyond 300."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx-bench schedule corpus.gx log.txt --op=or --engines=cpu,gpu,hybrid --cores=1,4,16",
     "Delays at rates from 1,000 queries a second up, by each engine and by both, on 1, 4 and 16 cores."},
    {"gpuidx-bench schedule corpus.gx log.txt --op=or --engines=gpu,hybrid --within=5 --queries=1000000",
     "What the GPU carries alone and with the CPU, if 99 of 100 queries are to be answered within 5 ms."},
    {"gpuidx-bench schedule --simulate", "Figure 7, without a GPU, in seconds."},
    {"gpuidx-bench schedule --simulate --costs costs.tsv --op=or --cpu-threads=16",
     "With the costs of this machine, which `gpuidx calibrate --costs costs.tsv` has measured."},
    {NULL},
};

const cli_command cmd_bench_schedule = {
    .name = "schedule",
    .summary = "what a CPU and a GPU carry together",
    .synopsis = "[OPTIONS] INDEX LOG\n--simulate [OPTIONS]\n--repeat=FILE",
    .description =
        "Offers the queries of a log to both engines together, or to each of `--engines`, at rates from 1,000 "
        "a second up, and prints delays, late queries and what the CPU answered; or finds the greatest rate "
        "that is carried within a delay. Or simulates queues of queries in front of a CPU and a GPU on "
        "tables of costs, as Figure 7 of Ding, He, Yan and Suel (WWW 2009) does. Or makes logged decisions "
        "of the scheduler again.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 0,
    .max_args = 2,
    .run = run,
};
