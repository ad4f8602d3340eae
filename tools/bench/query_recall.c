/* query_recall.c: the recall of answers that need not be exact, against their speed: a series of
 * gx_query_options.approximate on every engine.
 */
#include <stdlib.h>

#include "engine/status.h"
#include "tools/bench/common.h"
#include "tools/bench/query_draw.h"
#include "tools/bench/query_report.h"
#include "tools/cli.h"

static const float shares[] = {0, .05f, .1f, .15f, .2f, .25f, .3f, .35f, .4f, .45f, .5f, .6f, .7f, .8f};
enum { N_SHARES = sizeof shares / sizeof *shares };

/* A share on an engine. */
typedef struct recall_point {
    float share;
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

static gx_status measure(query_bench *b, const query_engine *e, float share, uint32_t batch, recall_point *p,
                         gx_error *err)
{
    for (uint32_t i = 0; i < b->n; ++i)
        b->plans[i].approximate = share;
    const gx_status st = query_measure(b, e, GX_ALGORITHM_AUTO, 0, batch, &p->row, err);
    p->share = share;
    p->recall = recall_of(b);
    if (st == GX_OK && share == 0 && p->row.different)
        return gx_fail(err, GX_EINTERNAL, "%u exact answers differ from the exhaustive ones", p->row.different);
    return st;
}

static double speed(const query_bench *b, const recall_point *p)
{
    return b->n / p->row.seconds;
}

static void print(const query_bench *b, const recall_point *points, uint32_t n, query_format format)
{
    if (format == QUERY_CSV) {
        puts("engine,k,batch,approximate,recall,queries_per_second,times_exact,mean_us,p50_us,p99_us,lookups");
    } else {
        bench_print_machine(b->seed);
        printf("%u queries, OR, top %u; %u documents, %llu postings\n%-4s %5s %11s %8s %10s %7s %9s %9s %9s %9s\n",
               b->n, b->k, b->ix->n_docs, (unsigned long long)b->ix->n_postings, "", "batch", "approximate", "recall",
               "queries/s", "times", "mean us", "p50", "p99", "look-ups");
    }
    for (uint32_t i = 0; i < n; ++i) {
        const recall_point *p = &points[i];
        const double times = speed(b, p) / speed(b, &points[i / N_SHARES * N_SHARES]);
        if (format == QUERY_CSV)
            printf("%s,%u,%u,%g,%.5f,%.1f,%.3f,%.3f,%.3f,%.3f,%.1f\n", p->row.engine->name, b->k, p->row.batch,
                   p->share, p->recall, speed(b, p), times, p->row.mean * 1e6, p->row.percentiles[0] * 1e6,
                   p->row.percentiles[3] * 1e6, (double)p->row.work.lookups / b->n);
        else
            printf("%-4s %5u %11g %8.4f %10.0f %7.2f %9.1f %9.1f %9.1f %9.1f\n", p->row.engine->name, p->row.batch,
                   p->share, p->recall, speed(b, p), times, p->row.mean * 1e6, p->row.percentiles[0] * 1e6,
                   p->row.percentiles[3] * 1e6, (double)p->row.work.lookups / b->n);
    }
}

static int print_json(const query_bench *b, const recall_point *points, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; ++i) {
        const recall_point *p = &points[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:f, s:f, s:f, s:{s:o, s:o, s:o}}", "engine", p->row.engine->name,
                                        "batch", (int)p->row.batch, "approximate", (double)p->share, "recall",
                                        p->recall, "queries_per_second", speed(b, p), "latency_us", "mean",
                                        bench_json(p->row.mean * 1e6), "p50", bench_json(p->row.percentiles[0] * 1e6),
                                        "p99", bench_json(p->row.percentiles[3] * 1e6)));
    }
    json_t *root = json_pack("{s:i, s:s, s:I, s:I, s:I, s:i, s:o}", "schema", 2, "figure", "recall", "documents",
                             (json_int_t)b->ix->n_docs, "queries", (json_int_t)b->n, "k", (json_int_t)b->k, "runs",
                             (int)b->runs, "rows", list);
    bench_put_machine(root, b->seed);
    return bench_print_json(root);
}

static int plot(const query_bench *b, const recall_point *points, const char *dir)
{
    int code = 0;
    FILE *f = draw_begin(dir, "recall", &code);
    if (!f)
        return code;
    fprintf(f,
            "set grid\n"
            "set logscale y\n"
            "set key bottom left\n"
            "set xlabel 'recall@%u'\n"
            "set ylabel 'queries/s'\n",
            b->k);
    for (uint32_t e = 0; e < b->n_engines; ++e) {
        fprintf(f, "$%s << END\n", b->engines[e].name);
        for (uint32_t i = 0; i < N_SHARES; ++i) {
            const recall_point *p = &points[e * N_SHARES + i];
            fprintf(f, "%.5f %.1f %g\n", p->recall, speed(b, p), p->share);
        }
        fputs("END\n", f);
    }
    for (int t = 0; t < DRAW_FORMATS; ++t) {
        draw_format(f, "recall", t);
        for (uint32_t e = 0; e < b->n_engines; ++e)
            fprintf(f, "%s$%s using 1:2 with linespoints title '%s', $%s using 1:2:3 with labels offset 0,1 notitle",
                    e ? ", " : "", b->engines[e].name, e ? "GPU" : "one core", b->engines[e].name);
        fputs("\nunset output\n", f);
    }
    return draw_end(f, dir, "recall");
}

int query_recall(query_bench *b, uint32_t k, uint32_t batch, query_format format, const char *dir)
{
    gx_error err = {0};
    recall_point points[2 * N_SHARES];
    uint32_t n = 0;
    if (query_plan_all(b, GX_OP_OR, k, &err))
        return cli_fail_error(&err);
    for (uint32_t e = 0; e < b->n_engines; ++e) {
        const bool gpu = gx_engine_get_kind(b->engines[e].en) == GX_ENGINE_GPU;
        for (uint32_t i = 0; i < N_SHARES; ++i) {
            cli_note("%s, approximate %g", b->engines[e].name, shares[i]);
            if (measure(b, &b->engines[e], shares[i], gpu ? batch : 1, &points[n++], &err))
                return cli_fail_error(&err);
        }
    }
    int code = 0;
    if (format == QUERY_JSON)
        code = print_json(b, points, n);
    else
        print(b, points, n, format);
    return dir && code == 0 ? plot(b, points, dir) : code;
}
