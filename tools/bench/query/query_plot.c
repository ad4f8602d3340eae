/* query_plot.c: throughput against batch size, latency against rate, time against postings:
 * measured, and drawn by gnuplot. */
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "tools/bench/common.h"
#include "tools/bench/query/query_report.h"
#include "tools/bench/query_draw.h"
#include "tools/cli/cli.h"

enum { MAX_BATCH = 4096, MAX_OFFERED = 1 << 20, MAX_BATCHES = 8, N_RATES = 8 };

/* ---- scripts ---- */

FILE *draw_begin(const char *dir, const char *name, int *exit_code)
{
    return bench_script_begin(dir, name, exit_code);
}

void draw_format(FILE *f, const char *name, int format)
{
    static const char *const terminals[DRAW_FORMATS][2] = {{"pngcairo size 1100,700", "png"},
                                                           {"svg size 1100,700", "svg"}};
    fprintf(f, "set terminal %s\nset output '%s.%s'\nplot ", terminals[format][0], name, terminals[format][1]);
}

int draw_end(FILE *f, const char *dir, const char *name)
{
    (void)f;
    return bench_script_end(dir, name);
}

void query_put_title(FILE *f, const query_bench *b, const char *what, uint32_t k)
{
    char title[128];
    const query_engine *last = &b->engines[b->n_engines - 1];
    const bool gpu = gx_engine_get_kind(last->en) == GX_ENGINE_GPU;
    snprintf(title, sizeof title, "%s, top %u", what, k);
    bench_put_title(f, title, &(bench_subject){b->index, b->log, gpu ? gx_engine_describe(last->en) : NULL});
}

/* ---- throughput against batch size ---- */

/* Block numbers of the script's data: engine, operator. */
static void open_series(FILE *f, uint32_t e, uint32_t o)
{
    fprintf(f, "$s%u_%u << END\n", e, o);
}

static void draw_series(FILE *f, const query_bench *b, const gx_op *ops, uint32_t n_ops, const char *columns,
                        const char *style, const char *words)
{
    for (uint32_t e = 0; e < b->n_engines; ++e)
        for (uint32_t o = 0; o < n_ops; ++o)
            fprintf(f, "%s$s%u_%u using %s with %s title '%s %s%s'", e || o ? ", " : "", e, o, columns, style,
                    b->engines[e].name, query_op_name(ops[o]), words);
}

static gx_status batch_series(query_bench *b, FILE *f, const gx_op *ops, uint32_t n_ops, uint32_t k, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t o = 0; o < n_ops && st == GX_OK; ++o) {
        st = query_plan_all(b, ops[o], k, err);
        for (uint32_t e = 0; e < b->n_engines && st == GX_OK; ++e) {
            open_series(f, e, o);
            for (uint32_t batch = 1; batch <= MAX_BATCH && st == GX_OK; batch *= 4) {
                query_row row;
                st = query_measure(b, &b->engines[e], GX_ALGORITHM_AUTO, 0, batch, &row, err);
                if (st == GX_OK)
                    fprintf(f, "%u %.1f\n", row.batch, b->n / row.seconds);
                if (batch >= b->n)
                    break;
            }
            fputs("END\n", f);
        }
    }
    return st;
}

/* ---- latency against rate ---- */

static gx_status rate_series(query_bench *b, FILE *f, const gx_op *ops, uint32_t n_ops, uint32_t k, gx_error *err)
{
    static const double shares[N_RATES] = {.05, .1, .2, .4, .6, .8, .9, .95};
    double *latencies = malloc(MAX_OFFERED * sizeof *latencies);
    gx_status st = latencies ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for latencies");
    for (uint32_t o = 0; o < n_ops && st == GX_OK; ++o) {
        st = query_plan_all(b, ops[o], k, err);
        for (uint32_t e = 0; e < b->n_engines && st == GX_OK; ++e) {
            const bool gpu = gx_engine_get_kind(b->engines[e].en) == GX_ENGINE_GPU;
            query_row row;
            st = query_measure(b, &b->engines[e], GX_ALGORITHM_AUTO, 0, gpu ? 1024 : 1, &row, err);
            open_series(f, e, o);
            for (int i = 0; i < N_RATES && st == GX_OK; ++i) {
                const double rate = shares[i] * b->n / row.seconds;
                uint32_t n = 0;
                st = query_offer_load(b, &b->engines[e], &(query_load){rate, 0.5, gpu ? 1024 : 1}, latencies,
                                      MAX_OFFERED, &n, err);
                query_sort(latencies, n);
                if (st == GX_OK && n)
                    fprintf(f, "%.1f %.6g %.6g\n", rate, query_quantile(latencies, n, .5) * 1e3,
                            query_quantile(latencies, n, .99) * 1e3);
            }
            fputs("END\n", f);
        }
    }
    free(latencies);
    return st;
}

/* ---- time against postings ---- */

static gx_status postings_series(query_bench *b, FILE *f, const gx_op *ops, uint32_t n_ops, uint32_t k, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t o = 0; o < n_ops && st == GX_OK; ++o) {
        st = query_plan_all(b, ops[o], k, err);
        for (uint32_t e = 0; e < b->n_engines && st == GX_OK; ++e) {
            query_row row;
            st = query_measure(b, &b->engines[e], GX_ALGORITHM_AUTO, 0, 1, &row, err);
            open_series(f, e, o);
            for (uint32_t i = 0; i < b->n && st == GX_OK; ++i) {
                gx_list_sizes sizes = {0};
                double seconds;
                gx_engine_add_list_sizes(b->engines[e].en, &b->engines[e].plans[i], &sizes);
                st = query_run(b, &b->engines[e], i, 1, &seconds, err);
                if (st == GX_OK && sizes.postings)
                    fprintf(f, "%llu %.6g\n", (unsigned long long)sizes.postings, seconds * 1e3);
            }
            fputs("END\n", f);
        }
    }
    return st;
}

/* ---- all three ---- */

int query_plot(query_bench *b, const char *dir, const gx_op *ops, uint32_t n_ops, uint32_t k)
{
    static const struct {
        const char *name, *what, *x, *y, *style;
        gx_status (*series)(query_bench *, FILE *, const gx_op *, uint32_t, uint32_t, gx_error *);
        bool tail; /* a second curve, of p99 */
    } plots[] = {
        {"batch", "Queries per second by batch size", "queries a batch", "queries/s", "linespoints", batch_series,
         false},
        {"rate", "Latency by rate", "queries/s offered", "ms from when a query is due", "linespoints", rate_series,
         true},
        {"postings", "Time by postings", "postings of the query", "ms, alone", "points", postings_series, false},
    };
    for (size_t i = 0; i < sizeof plots / sizeof *plots; ++i) {
        gx_error err = {0};
        int code = 0;
        cli_note("measuring for the plot %s", plots[i].name);
        FILE *f = draw_begin(dir, plots[i].name, &code);
        if (!f)
            return code;
        fprintf(f,
                "set logscale xy\n"
                "set grid\n"
                "set key outside right\n"
                "set format y '%%g'\n"
                "set xlabel '%s'\n"
                "set ylabel '%s'\n",
                plots[i].x, plots[i].y);
        query_put_title(f, b, plots[i].what, k);
        if (plots[i].series(b, f, ops, n_ops, k, &err)) {
            fclose(f);
            return cli_fail_error(&err);
        }
        for (int t = 0; t < DRAW_FORMATS; ++t) {
            draw_format(f, plots[i].name, t);
            draw_series(f, b, ops, n_ops, "1:2", plots[i].style, plots[i].tail ? ", p50" : "");
            if (plots[i].tail) {
                fputs(", ", f);
                draw_series(f, b, ops, n_ops, "1:3", plots[i].style, ", p99");
            }
            fputs("\nunset output\n", f);
        }
        if ((code = draw_end(f, dir, plots[i].name)) != 0)
            return code;
    }
    return 0;
}
