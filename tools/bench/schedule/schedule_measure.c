#include "tools/bench/schedule/schedule_measure.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/bench/common.h"
#include "tools/bench/query_draw.h"
#include "tools/cli/profile.h"
#include "tools/cli/progress.h"
#include "tools/cli/search_flags.h"
#include "tools/cli/signals.h"

enum {
    LEAST_QUERIES = 1000,
    WARM_UP = 20000,
    WARM_UP_BATCHES = 8,
    MOST_LISTED = 16,
    GPU_BATCH = 1024,
    SERVICE_BATCH = 256,
    N_LIMITS = 3
};

#define CARRIED 0.98     /* of what is offered, from which on a rate is carried */
#define NEAR_ENOUGH 1.02 /* a search for a rate ends at this ratio */
#define LATE_AT 0.9      /* of the rate that is carried late queries are counted */

static const uint64_t limits[N_LIMITS] = {1000000, 5000000, 50000000}; /* ns */

/* Who answers: in the order of the names. */
typedef enum bench_system { SYSTEM_HYBRID, SYSTEM_GPU, SYSTEM_CPU, N_SYSTEMS } bench_system;
static const char *const system_names[N_SYSTEMS] = {"hybrid", "gpu", "cpu"};

/* What is measured: an engine, or both, with some threads. */
typedef struct setup {
    bench_system system;
    uint32_t cores, cpu_threads, gpu_threads, submitters;
} setup;

/* What came of a rate. */
typedef struct point {
    setup how;
    double rate, answered; /* queries a second */
    uint64_t queries;
    double mean, p50, p99, p999; /* ns */
    uint64_t above[N_LIMITS];    /* queries that took longer */
    double cpu_share;
} point;

/* What a measurement needs. */
typedef struct bench {
    const cli_args *a;
    gx_index *ix;
    gx_engine *cpu, *gpu;
    gx_cost_profile *profile;
    gx_replay_report *report;
    cpu_set_t processors; /* of the process, before it is kept to some */
    point *points;        /* [n] */
    size_t n;
} bench;

/* ---- opening ---- */

static void close_bench(bench *b)
{
    gx_engine_close(b->gpu);
    gx_engine_close(b->cpu);
    gx_index_close(b->ix);
    free(b->profile);
    free(b->report);
    free(b->points);
}

static int open_bench(bench *b, const cli_args *a)
{
    gx_error err = {0};
    char *where = NULL;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    int code = cli_open_index(&b->ix, a, a->argv[0]);
    if (code)
        return code;
    b->a = a;
    sched_getaffinity(0, sizeof b->processors, &b->processors);
    o.device = (int)cli_count(a, "device");
    o.device_memory = cli_count(a, "device-memory");
    if (cli_given(a, "map-memory"))
        o.map_memory = cli_count(a, "map-memory");
    o.linger_us = (uint32_t)cli_count(a, "linger");
    o.join = (gx_join)cli_choice(a, "join");
    if ((code = cli_add_residency(&o, a)))
        return code;
    o.kind = GX_ENGINE_CPU;
    if (gx_engine_open(&b->cpu, b->ix, &o, &err))
        return cli_fail_error(&err);
    o.kind = GX_ENGINE_GPU;
    if (gx_engine_open(&b->gpu, b->ix, &o, &err))
        cli_note("the CPU answers all queries: %s", err.text);
    if (b->gpu && (code = cli_warm(b->gpu, a)))
        return code;
    b->profile = malloc(sizeof *b->profile);
    b->report = malloc(sizeof *b->report);
    if (!b->profile || !b->report)
        return cli_fail(GX_ENOMEM, "no memory for a report");
    code = profile_read(b->profile, &where, NULL, a->argv[0], b->ix);
    free(where);
    return code;
}

/* ---- one rate ---- */

/* Keep the process, and the threads that it starts from here on, to its first n processors. */
static void keep_to(const bench *b, uint32_t n)
{
    cpu_set_t some;
    CPU_ZERO(&some);
    for (int i = 0; i < CPU_SETSIZE && n; ++i) {
        if (CPU_ISSET(i, &b->processors)) {
            CPU_SET(i, &some);
            --n;
        }
    }
    sched_setaffinity(0, sizeof some, &some);
}

/* The latencies above a limit in ns. */
static uint64_t count_above(const gx_histogram *h, uint64_t limit)
{
    uint64_t low = 0, high = h->n; /* at least `low` are not above it, and at most `high` */
    while (low < high) {
        const uint64_t middle = low + (high - low + 1) / 2;
        if (gx_histogram_quantile(h, (double)middle / (double)h->n) <= limit)
            low = middle;
        else
            high = middle - 1;
    }
    return h->n - low;
}

static point point_of(const gx_replay_report *r, const setup *s, double rate)
{
    const gx_histogram *h = &r->latency;
    const double answered = r->service.answered ? (double)r->service.answered : 1;
    point p = {.how = *s,
               .rate = rate,
               .answered = (double)r->queries / r->seconds,
               .queries = r->queries,
               .mean = gx_histogram_mean(h),
               .p50 = (double)gx_histogram_quantile(h, 0.5),
               .p99 = (double)gx_histogram_quantile(h, 0.99),
               .p999 = (double)gx_histogram_quantile(h, 0.999)};
    for (int i = 0; i < N_LIMITS; ++i)
        p.above[i] = count_above(h, limits[i]);
    p.cpu_share =
        s->system == SYSTEM_HYBRID ? (double)r->service.by[GX_PROCESSOR_CPU] / answered : s->system == SYSTEM_CPU;
    return p;
}

/* Queries before those that are measured. Each session of a GPU needs full batches: its memory grows with the first
 * ones, and the GPU answers nobody meanwhile. */
static uint64_t warm_up(const bench *b, const setup *s, uint64_t n)
{
    if (s->system == SYSTEM_CPU || !b->gpu)
        return n < WARM_UP ? n : WARM_UP;
    return (uint64_t)WARM_UP_BATCHES * GPU_BATCH * (s->system == SYSTEM_GPU ? s->submitters : s->gpu_threads);
}

/* Offer queries at a rate. The point is added to those of the report. */
static int offer(bench *b, const setup *s, double rate, uint64_t n, point *out)
{
    const cli_args *a = b->a;
    gx_error err = {0};
    gx_service_options service = GX_SERVICE_OPTIONS;
    gx_replay_options opt = GX_REPLAY_OPTIONS;
    gx_engine *en = s->system == SYSTEM_GPU ? b->gpu : b->cpu;
    service.cpu = b->cpu;
    service.gpu = b->gpu;
    service.cpu_threads = s->cpu_threads;
    service.gpu_threads = s->gpu_threads;
    service.callers = s->submitters;
    service.profile = b->profile;
    opt.log = a->argv[1];
    opt.query.op = (gx_op)cli_choice(a, "op");
    opt.query.k = (uint32_t)cli_count(a, "top");
    opt.query.cancel = is_stopped;
    opt.threads = s->submitters;
    opt.batch = s->system == SYSTEM_HYBRID ? SERVICE_BATCH : s->system == SYSTEM_GPU ? GPU_BATCH : 1;
    opt.service = s->system == SYSTEM_HYBRID ? &service : NULL;
    opt.warmup = warm_up(b, s, n);
    opt.rate = rate;
    opt.arrivals = GX_ARRIVALS_POISSON;
    opt.seed = cli_count(a, "seed");
    opt.queries = n;
    point *grown = realloc(b->points, (b->n + 1) * sizeof *grown);
    if (!grown)
        return cli_fail(GX_ENOMEM, "no memory for a report");
    b->points = grown;
    if (gx_replay(en, &opt, b->report, &err))
        return stop_fail(&err);
    *out = b->points[b->n++] = point_of(b->report, s, rate);
    return 0;
}

static void print_head(void)
{
    printf("engine cores   offered  answered      mean       p50       p99     p99.9   > 1 ms   > 5 ms  > 50 ms   on "
           "the\n"
           "                    /s        /s        us        us        us        us                              "
           "CPU\n");
}

static void print_point(const point *p)
{
    const double us = 1e-3;
    printf("%-6s %5u %9.0f %9.0f %9.1f %9.1f %9.1f %9.1f", system_names[p->how.system], p->how.cores, p->rate,
           p->answered, p->mean * us, p->p50 * us, p->p99 * us, p->p999 * us);
    for (int i = 0; i < N_LIMITS; ++i)
        printf(" %8" PRIu64, p->above[i]);
    printf(" %6.1f %%\n", 100 * p->cpu_share);
    fflush(stdout);
}

static uint64_t queries_at(const bench *b, double rate)
{
    const double n = rate * cli_number(b->a, "seconds");
    return n < LEAST_QUERIES ? LEAST_QUERIES : (uint64_t)n;
}

static bool is_carried(const point *p)
{
    return p->answered > CARRIED * p->rate;
}

/* ---- rates ---- */

/* Rates from the least up, to the first that is not carried. */
static int offer_rates(bench *b, const setup *s)
{
    const double least = cli_number(b->a, "least-rate"), most = cli_number(b->a, "most-rate");
    const double step = pow(10, 1.0 / (double)cli_count(b->a, "per-decade"));
    int code = 0;
    for (double rate = least; rate <= most * 1.0001 && !code; rate *= step) {
        point p;
        code = offer(b, s, rate, queries_at(b, rate), &p);
        if (!code && !cli_switch(b->a, "json"))
            print_point(&p);
        if (!code && p.queries > LEAST_QUERIES && p.answered < 0.9 * rate)
            break;
    }
    return code;
}

/* Whether a rate is carried within a 99th percentile; asked twice before the answer is no. */
static int try_rate(bench *b, const setup *s, double rate, double within, point *out, bool *good)
{
    int code = 0;
    *good = false;
    for (int i = 0; i < 2 && !code && !*good; ++i) {
        code = offer(b, s, rate, queries_at(b, rate), out);
        *good = !code && out->p99 <= within && is_carried(out);
    }
    return code;
}

/* The greatest rate within a 99th percentile, and the late queries below it. */
static int find_capacity(bench *b, const setup *s)
{
    const double within = 1e6 * cli_number(b->a, "within"), most = cli_number(b->a, "most-rate");
    double low = 0, high = 0;
    bool good;
    point p = {0}, best = {0};
    int code = 0;
    for (double rate = cli_number(b->a, "least-rate"); !code && !high && rate <= most * 1.0001; rate *= 1.5) {
        code = try_rate(b, s, rate, within, &p, &good);
        *(good ? &low : &high) = rate;
        best = good ? p : best;
    }
    while (!code && low && high > NEAR_ENOUGH * low) {
        const double rate = sqrt(low * high);
        code = try_rate(b, s, rate, within, &p, &good);
        *(good ? &low : &high) = rate;
        best = good ? p : best;
    }
    if (code || !low)
        return code ? code
                    : (cli_warn("%s, %u %s: not even the least rate is carried within %g ms", system_names[s->system],
                                s->cores, s->cores == 1 ? "core" : "cores", within * 1e-6),
                       0);
    const bool shown = !cli_switch(b->a, "json");
    if (shown)
        print_point(&best);
    code = offer(b, s, LATE_AT * low, cli_count(b->a, "queries"), &p);
    if (!code && shown)
        print_point(&p);
    return code;
}

/* ---- what is measured ---- */

/* Numbers from 1 to 512, separated by commas. */
static int read_list(const cli_args *a, const char *flag, uint32_t *list, uint32_t *n)
{
    const char *text = cli_text(a, flag);
    for (*n = 0; text && *text && *n < MOST_LISTED; ++*n) {
        char *end;
        const unsigned long number = strtoul(text, &end, 10);
        if (end == text || (*end && *end != ',') || number < 1 || number > 512)
            return cli_usage(a, "--%s=%s: numbers from 1 to 512, separated by commas", flag, cli_text(a, flag));
        list[*n] = (uint32_t)number;
        text = *end ? end + 1 : end;
    }
    return 0;
}

static int read_engines(const cli_args *a, bool wanted[N_SYSTEMS])
{
    const char *text = cli_text(a, "engines");
    while (*text) {
        const size_t n = strcspn(text, ",");
        int i = 0;
        while (i < N_SYSTEMS && (strlen(system_names[i]) != n || memcmp(system_names[i], text, n)))
            ++i;
        if (i == N_SYSTEMS)
            return cli_usage(a, "--engines=%s: hybrid, gpu and cpu, separated by commas", cli_text(a, "engines"));
        wanted[i] = true;
        text += n + (text[n] == ',');
    }
    return 0;
}

static uint32_t share(uint64_t given, uint32_t otherwise)
{
    return given ? (uint32_t)given : otherwise ? otherwise : 1;
}

/* Threads for so many cores. */
static setup setup_of(const bench *b, bench_system system, uint32_t cores, uint32_t cpu_threads)
{
    setup s = {.system = system, .cores = cores, .submitters = cores};
    if (system != SYSTEM_HYBRID)
        return s;
    s.cpu_threads = share(cpu_threads, cores / (b->gpu ? 16 : 4));
    s.gpu_threads = b->gpu ? share(cli_count(b->a, "gpu-threads"), cores * 5 / 16) : 1;
    const uint32_t others = s.cpu_threads + (b->gpu ? s.gpu_threads : 0);
    s.submitters = share(cli_count(b->a, "submitters"), cores > others ? cores - others : 1);
    return s;
}

static int measure_all(bench *b, const bool wanted[N_SYSTEMS])
{
    uint32_t cores[MOST_LISTED], threads[MOST_LISTED] = {0}, n_cores, n_threads = 0;
    const uint32_t all = (uint32_t)CPU_COUNT(&b->processors);
    int code = read_list(b->a, "cores", cores, &n_cores);
    if (!code && (cli_given(b->a, "cpu-threads") || !n_cores))
        code = read_list(b->a, "cpu-threads", threads, &n_threads);
    if (!n_cores)
        cores[n_cores++] = all;
    n_threads += !n_threads;
    for (uint32_t c = 0; c < n_cores && !code; ++c) {
        const uint32_t n = cores[c] < all ? cores[c] : all;
        keep_to(b, n);
        for (int system = 0; system < N_SYSTEMS && !code; ++system) {
            if (!wanted[system] || (system == SYSTEM_GPU && !b->gpu))
                continue;
            for (uint32_t t = 0; t < (system == SYSTEM_HYBRID ? n_threads : 1) && !code; ++t) {
                const setup s = setup_of(b, (bench_system)system, n, threads[t]);
                code = cli_given(b->a, "within") ? find_capacity(b, &s) : offer_rates(b, &s);
            }
        }
    }
    sched_setaffinity(0, sizeof b->processors, &b->processors);
    return code;
}

/* ---- the report ---- */

static json_t *point_json(const point *p)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f}", "engine",
                     system_names[p->how.system], "cores", (int)p->how.cores, "cpu_threads", (int)p->how.cpu_threads,
                     "gpu_threads", (int)p->how.gpu_threads, "submitters", (int)p->how.submitters, "rate", p->rate,
                     "answered_per_second", p->answered, "queries", (json_int_t)p->queries, "mean_us", p->mean * 1e-3,
                     "p50_us", p->p50 * 1e-3, "p99_us", p->p99 * 1e-3, "p99.9_us", p->p999 * 1e-3, "above_1_ms",
                     (json_int_t)p->above[0], "above_5_ms", (json_int_t)p->above[1], "above_50_ms",
                     (json_int_t)p->above[2], "cpu_share", p->cpu_share);
}

static int print_json(const bench *b)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < b->n; ++i)
        json_array_append_new(rows, point_json(&b->points[i]));
    json_t *root =
        json_pack("{s:o, s:o}", "gpu", b->gpu ? json_string(gx_engine_describe(b->gpu)) : json_null(), "rates", rows);
    bench_put_machine(root, cli_count(b->a, "seed"));
    return bench_print_json(root);
}

static bool is_same_setup(const setup *a, const setup *b)
{
    return a->system == b->system && a->cores == b->cores && a->cpu_threads == b->cpu_threads;
}

/* Where the points of the setup that begins at `i` end. */
static size_t end_of_setup(const bench *b, size_t i)
{
    size_t end = i;
    while (end < b->n && is_same_setup(&b->points[end].how, &b->points[i].how))
        ++end;
    return end;
}

/* Medians and 99th percentiles by rate, a pair of curves for each setup. */
static int plot_points(const bench *b, const char *dir)
{
    int code = 0;
    FILE *f = draw_begin(dir, "schedule", &code);
    if (!f)
        return code;
    fputs("set grid\nset logscale xy\nset key outside right\nset xlabel 'queries a second'\nset ylabel 'ms'\n"
          "set format y '%g'\n",
          f);
    bench_put_title(f, "Latency by rate",
                    &(bench_subject){b->a->argv[0], b->a->argv[1], b->gpu ? gx_engine_describe(b->gpu) : NULL});
    for (size_t i = 0; i < b->n; i = end_of_setup(b, i)) {
        fprintf(f, "$s%zu << END\n", i);
        for (size_t j = i; j < end_of_setup(b, i); ++j)
            fprintf(f, "%.8g %.8g %.8g\n", b->points[j].rate, b->points[j].p50 * 1e-6, b->points[j].p99 * 1e-6);
        fputs("END\n", f);
    }
    for (int format = 0; format < DRAW_FORMATS; ++format) {
        draw_format(f, "schedule", format);
        for (size_t i = 0; i < b->n; i = end_of_setup(b, i)) {
            const setup *s = &b->points[i].how;
            for (int q = 0; q < 2; ++q)
                fprintf(f, "%s$s%zu using 1:%d with linespoints title '%s, %u core%s, %s'", i || q ? ", " : "", i,
                        2 + q, system_names[s->system], s->cores, plural(s->cores), q ? "p99" : "p50");
        }
        fputs("\nunset output\n", f);
    }
    return draw_end(f, dir, "schedule");
}

int schedule_measure(const cli_args *a)
{
    bench b = {0};
    bool wanted[N_SYSTEMS] = {false};
    const bool json = cli_switch(a, "json");
    int code = read_engines(a, wanted);
    if (!code && !wanted[SYSTEM_HYBRID])
        code = BENCH_REFUSE(a, "--engines without hybrid", "each thread plans and answers", "cpu-threads",
                            "gpu-threads", "submitters");
    if (code)
        return code;
    stop_on_signals();
    code = open_bench(&b, a);
    if (!code)
        cli_tell_ignored(a, b.gpu && (wanted[SYSTEM_GPU] || wanted[SYSTEM_HYBRID]));
    if (!code && !json)
        print_head();
    if (!code)
        code = measure_all(&b, wanted);
    if (!code && json)
        code = print_json(&b);
    if (!code && cli_given(a, "plot"))
        code = plot_points(&b, cli_text(a, "plot"));
    close_bench(&b);
    stop_die(NULL);
    return code;
}
