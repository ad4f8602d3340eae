/* query_recall.c: the recall of answers that need not be exact, against their speed: series of settings of
 * gx_approximate_read on every engine.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "tools/bench/common.h"
#include "tools/bench/query/query_report.h"
#include "tools/bench/query_draw.h"
#include "tools/cli/cli.h"

/* Terms that are left out; on the CPU also budgets of blocks (in percent of all), and both. The first point of an
 * engine is the exact answer. */
typedef enum series { TERMS, BLOCKS, BOTH, N_SERIES } series;
#define MOST_VALUES 13
#define MOST_POINTS (1 + N_SERIES * MOST_VALUES) /* of an engine */
#define TERMS_OF_BOTH .3f
#define BLOCK 256u /* documents */
static const struct {
    const char *title;
    uint32_t n;
    double values[MOST_VALUES];
} all_series[N_SERIES] = {
    {"terms", 13, {.05, .1, .15, .2, .25, .3, .35, .4, .45, .5, .6, .7, .8}},
    {"blocks", 9, {30, 20, 15, 12, 10, 8, 6, 4, 2}},
    {"terms:0.3 and blocks", 7, {20, 15, 12, 10, 8, 6, 4}},
};

/* A setting on an engine. */
typedef struct recall_point {
    series kind;
    gx_query_options options; /* those of the approximation count */
    double recall;
    query_row row;
} recall_point;

/* Of the exact answers' results, the share that the hits have, or others of equal score. */
static double recall_of(const query_bench *b)
{
    uint64_t wanted = 0, found = 0;
    for (uint32_t i = 0; i < b->n; ++i) {
        const gx_hits *hits = &b->hits[i], *want = &b->want[i];
        wanted += want->n;
        for (uint32_t j = 0; j < hits->n && want->n; ++j)
            found += gx_key_score(hits->keys[j]) >= gx_key_score(want->keys[want->n - 1]);
    }
    return wanted ? (double)found / (double)wanted : 1;
}

static gx_query_options setting(const query_bench *b, series of, double value)
{
    gx_query_options o = GX_QUERY_OPTIONS;
    if (of == TERMS)
        o.approximate = (float)value;
    else
        o.block_budget = (uint64_t)(value / 100 * (double)gx_index_n_docs(b->ix) / BLOCK) + 1;
    if (of == BOTH)
        o.approximate = TERMS_OF_BOTH;
    return o;
}

/* p->options say what. */
static gx_status measure(query_bench *b, const query_engine *e, uint32_t batch, recall_point *p, gx_error *err)
{
    char text[GX_APPROXIMATE_BYTES];
    gx_approximate_write(&p->options, text);
    cli_note("%s, approximate %s", e->name, text);
    for (uint32_t q = 0; q < b->n; ++q) {
        e->plans[q].approximate = p->options.approximate;
        e->plans[q].block_budget = (uint32_t)p->options.block_budget;
    }
    const gx_status st = query_measure(b, e, GX_ALGORITHM_AUTO, 0, batch, &p->row, err);
    p->recall = recall_of(b);
    if (st == GX_OK && strcmp(text, "0") == 0 && p->row.different)
        return gx_fail(err, GX_EINTERNAL, "%u exact answers differ from the exhaustive ones", p->row.different);
    return st;
}

static double speed(const query_bench *b, const recall_point *p)
{
    return b->n / p->row.seconds;
}

/* The exact answers of the point's engine. */
static const recall_point *exact_of(const recall_point *points, const recall_point *p)
{
    while (points->row.engine != p->row.engine)
        ++points;
    return points;
}

static void print(const query_bench *b, const recall_point *points, uint32_t n, query_format format)
{
    char text[GX_APPROXIMATE_BYTES];
    if (format == QUERY_CSV) {
        puts("engine,k,batch,approximate,recall,queries_per_second,times_exact,mean_us,p50_us,p99_us,lookups");
    } else {
        bench_print_machine(b->seed);
        printf("%u queries, OR, top %u; %llu documents, %llu postings\n%-4s %5s %-23s %8s %10s %7s %9s %9s %9s %9s\n",
               b->n, b->k, (unsigned long long)gx_index_n_docs(b->ix), (unsigned long long)b->ix->n_postings, "",
               "batch", "approximate", "recall", "queries/s", "times", "mean us", "p50", "p99", "look-ups");
    }
    for (uint32_t i = 0; i < n; ++i) {
        const recall_point *p = &points[i];
        const double times = speed(b, p) / speed(b, exact_of(points, p));
        gx_approximate_write(&p->options, text);
        const char *quote = strchr(text, ',') ? "\"" : "";
        if (format == QUERY_CSV)
            printf("%s,%u,%u,%s%s%s,%.5f,%.1f,%.3f,%.3f,%.3f,%.3f,%.1f\n", p->row.engine->name, b->k, p->row.batch,
                   quote, text, quote, p->recall, speed(b, p), times, p->row.mean * 1e6, p->row.percentiles[0] * 1e6,
                   p->row.percentiles[3] * 1e6, (double)p->row.work.lookups / b->n);
        else
            printf("%-4s %5u %-23s %8.4f %10.0f %7.2f %9.1f %9.1f %9.1f %9.1f\n", p->row.engine->name, p->row.batch,
                   text, p->recall, speed(b, p), times, p->row.mean * 1e6, p->row.percentiles[0] * 1e6,
                   p->row.percentiles[3] * 1e6, (double)p->row.work.lookups / b->n);
    }
}

static int print_json(const query_bench *b, const recall_point *points, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; ++i) {
        const recall_point *p = &points[i];
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:f, s:I, s:f, s:f, s:{s:o, s:o, s:o}}", "engine", p->row.engine->name, "batch",
                            (int)p->row.batch, "approximate", (double)p->options.approximate, "block_budget",
                            (json_int_t)p->options.block_budget, "recall", p->recall, "queries_per_second", speed(b, p),
                            "latency_us", "mean", bench_json(p->row.mean * 1e6), "p50",
                            bench_json(p->row.percentiles[0] * 1e6), "p99", bench_json(p->row.percentiles[3] * 1e6)));
    }
    json_t *root = json_pack("{s:i, s:s, s:I, s:I, s:I, s:i, s:o}", "schema", 2, "figure", "recall", "documents",
                             (json_int_t)gx_index_n_docs(b->ix), "queries", (json_int_t)b->n, "k", (json_int_t)b->k,
                             "runs", (int)b->runs, "rows", list);
    bench_put_machine(root, b->seed);
    return bench_print_json(root);
}

/* A series of an engine, with its exact answer, as data; "$cpu", "$cpu_1", ... */
static void plot_data(FILE *f, const query_bench *b, const recall_point *points, uint32_t n, const query_engine *e,
                      series of)
{
    fprintf(f, of ? "$%s_%d << END\n" : "$%s << END\n", e->name, (int)of);
    for (uint32_t i = 0; i < n; ++i) {
        const recall_point *p = &points[i];
        if (p->row.engine != e || (p->kind != of && p != exact_of(points, p)))
            continue;
        fprintf(f, "%.5f %.1f %g\n", p->recall, speed(b, p),
                of == TERMS ? p->options.approximate : (double)p->options.block_budget);
    }
    fputs("END\n", f);
}

static int plot(const query_bench *b, const recall_point *points, uint32_t n, const char *dir)
{
    int code = 0;
    FILE *f = draw_begin(dir, "recall", &code);
    if (!f)
        return code;
    fprintf(f,
            "set grid\n"
            "set logscale y\n"
            "set key bottom left\n"
            "set format y '%%g'\n"
            "set xlabel 'recall@%u'\n"
            "set ylabel 'queries/s'\n",
            b->k);
    query_put_title(f, b, "Queries per second by recall", b->k);
    char lines[2 * N_SERIES * 160] = "";
    size_t len = 0;
    for (uint32_t e = 0; e < b->n_engines; ++e) {
        const char *name = b->engines[e].name;
        const bool gpu = gx_engine_get_kind(b->engines[e].en) == GX_ENGINE_GPU;
        for (series of = TERMS; of < (gpu ? TERMS + 1 : N_SERIES); ++of) {
            char data[32];
            plot_data(f, b, points, n, &b->engines[e], of);
            snprintf(data, sizeof data, of ? "$%s_%d" : "$%s", name, (int)of);
            len += (size_t)snprintf(lines + len, sizeof lines - len,
                                    "%s%s using 1:2 with linespoints title '%s: %s', %s using 1:2:3 with labels offset "
                                    "0,1 notitle",
                                    len ? ", " : "", data, gpu ? "GPU" : "one core", all_series[of].title, data);
        }
    }
    for (int t = 0; t < DRAW_FORMATS; ++t) {
        draw_format(f, "recall", t);
        fprintf(f, "%s\nunset output\n", lines);
    }
    return draw_end(f, dir, "recall");
}

int query_recall(query_bench *b, uint32_t k, uint32_t batch, query_format format, const char *dir)
{
    gx_error err = {0};
    recall_point points[2 * MOST_POINTS];
    uint32_t n = 0;
    if (query_plan_all(b, GX_OP_OR, k, &err))
        return cli_fail_error(&err);
    for (uint32_t e = 0; e < b->n_engines; ++e) {
        const bool gpu = gx_engine_get_kind(b->engines[e].en) == GX_ENGINE_GPU;
        const uint32_t begin = n;
        points[n++] = (recall_point){.kind = TERMS, .options = GX_QUERY_OPTIONS};
        for (series of = TERMS; of < (gpu ? TERMS + 1 : N_SERIES); ++of) {
            for (uint32_t i = 0; i < all_series[of].n; ++i)
                points[n++] = (recall_point){.kind = of, .options = setting(b, of, all_series[of].values[i])};
        }
        for (uint32_t i = begin; i < n; ++i) {
            if (measure(b, &b->engines[e], gpu ? batch : 1, &points[i], &err))
                return cli_fail_error(&err);
        }
    }
    int code = 0;
    if (format == QUERY_JSON)
        code = print_json(b, points, n);
    else
        print(b, points, n, format);
    return dir && code == 0 ? plot(b, points, n, dir) : code;
}
