/* query_figure.c: intersection of two lists by levels of recursion, as Ding et al. have it in
 * Figure 6 and beside it: uncompressed lists by Parallel Merge Find; and ours, which answers a
 * query of the same two lists, compressed, for its ten best.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "engine/device.h"
#include "engine/status.h"
#include "query/ding2009/merge_find.h"
#include "tools/bench/common.h"
#include "tools/bench/data/synthetic_lists.h"
#include "tools/bench/query/query_report.h"
#include "tools/bench/query_draw.h"
#include "tools/cli/cli.h"

enum { LEVELS = GX_MAX_RECURSION + 1, MAX_POINTS = 8, TURNS = 7, CPU_TURNS = 3, DOCUMENTS = 1 << 25 };

/* A pair of lists. ns an integer of the shorter one; 0: not measured. */
typedef struct point {
    uint32_t n_a, n_b, common;
    double ns[2][LEVELS], ours[2]; /* [CPU, GPU] */
} point;

typedef struct pair {
    uint32_t *a, *b, *out, *positions;
} pair;

static gx_status measure_on_cpu(const pair *p, point *x, gx_error *err)
{
    double times[CPU_TURNS];
    for (uint32_t levels = 0; levels < LEVELS; ++levels) {
        for (int turn = 0; turn < CPU_TURNS; ++turn) {
            const double t0 = gx_clock_seconds();
            const uint32_t n = gx_intersect_cpu(p->a, x->n_a, p->b, x->n_b, levels, p->positions, p->out);
            times[turn] = gx_clock_seconds() - t0;
            if (levels + (uint32_t)turn == 0)
                x->common = n;
            if (n != x->common)
                return gx_fail(err, GX_EINTERNAL, "%u levels find %u docids in common, not %u", levels, n, x->common);
        }
        query_sort(times, CPU_TURNS);
        x->ns[0][levels] = times[CPU_TURNS / 2] * 1e9 / x->n_a;
    }
    return GX_OK;
}

/* p->out holds what the CPU has found. */
static gx_status measure_on_gpu(const pair *p, uint32_t device, point *x, gx_error *err)
{
#if GX_CUDA
    uint32_t *out = malloc((x->n_a + 1ull) * sizeof *out), n = 0;
    gx_status st = out ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %u integers", x->n_a);
    for (uint32_t levels = 0; levels < LEVELS && st == GX_OK; ++levels) {
        double seconds = 0;
        const gx_list_pair lists = {p->a, p->b, x->n_a, x->n_b, levels};
        st = gx_intersect_cuda((int)device, &lists, TURNS, out, &n, &seconds, err);
        if (st == GX_OK && (n != x->common || memcmp(out, p->out, n * sizeof *out) != 0))
            st = gx_fail(err, GX_EINTERNAL,
                         "on the GPU %u levels find %u docids in common, or others than the CPU's "
                         "%u",
                         levels, n, x->common);
        x->ns[1][levels] = seconds * 1e9 / x->n_a;
    }
    free(out);
    return st;
#else
    (void)p, (void)x;
    return gx_device_use((int)device, err);
#endif
}

/* AND of the two as an index's lists, alone, for its ten best: the median time. */
static gx_status ours(const pair *p, bool gpu, uint32_t device, point *x, gx_error *err)
{
    const uint32_t *const docids[] = {p->a, p->b}, dfs[] = {x->n_a, x->n_b}, terms[] = {0, 1};
    gx_synth_options so = GX_SYNTH_OPTIONS;
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    gx_query_options qo = GX_QUERY_OPTIONS;
    gx_synth *s = NULL;
    gx_engine *en = NULL;
    gx_session *session = NULL;
    gx_plan plan = {0};
    uint64_t keys[10], want[10];
    gx_hits hits = {keys, 0}, wanted = {want, 0};
    double times[TURNS];
    so.n_docs = DOCUMENTS;
    so.n_terms = 2;
    so.codec = gx_codec_by_name("gpubp128");
    eo.kind = gpu ? GX_ENGINE_GPU : GX_ENGINE_CPU;
    eo.device = (int)device;
    qo.op = GX_OP_AND;
    qo.algorithm = GX_ALGORITHM_PMF;
    const gx_synth_lists lists = {docids, dfs, NULL, NULL};
    gx_status st = gx_synth_open_lists(&s, &so, &lists, err);
    if (st == GX_OK)
        st = gx_engine_open(&en, &s->ix, &eo, err);
    if (st == GX_OK)
        st = gx_session_open(&session, en, err);
    if (st == GX_OK)
        st = gx_plan_make_ids(&plan, &s->ix, terms, NULL, 2, &qo, err);
    if (st == GX_OK)
        st = gx_session_run(session, &plan, 1, &wanted, err);
    plan.algorithm = GX_ALGORITHM_AUTO;
    if (st == GX_OK)
        st = gx_session_run(session, &plan, 1, &hits, err);
    if (st == GX_OK && (hits.n != wanted.n || memcmp(keys, want, hits.n * sizeof *keys) != 0))
        st = gx_fail(err, GX_EINTERNAL, "Parallel Merge Find and the fast search find different documents");
    for (int turn = 0; turn < TURNS && st == GX_OK; ++turn) {
        const double t0 = gx_clock_seconds();
        st = gx_session_run(session, &plan, 1, &hits, err);
        times[turn] = gx_clock_seconds() - t0;
    }
    if (st == GX_OK) {
        query_sort(times, TURNS);
        x->ours[gpu] = times[TURNS / 2] * 1e9 / x->n_a;
    }
    gx_plan_free(&plan);
    gx_session_close(session);
    gx_engine_close(en);
    gx_synth_close(s);
    return st;
}

static gx_status measure(bool gpu, uint32_t device, uint32_t seed, point *x, gx_error *err)
{
    pair p = {malloc((x->n_a + 64ull) * 4), malloc((x->n_b + 64ull) * 4), malloc((x->n_a + 64ull) * 4),
              malloc((x->n_a + 64ull) * 4)};
    gx_status st =
        p.a && p.b && p.out && p.positions ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for lists of %u", x->n_b);
    if (st == GX_OK)
        st = gx_synthetic_list(GX_UNIFORM, seed, x->n_a, DOCUMENTS, p.a, err);
    if (st == GX_OK)
        st = gx_synthetic_list(GX_UNIFORM, seed + 1, x->n_b, DOCUMENTS, p.b, err);
    if (st == GX_OK)
        st = measure_on_cpu(&p, x, err);
    if (st == GX_OK && gpu)
        st = measure_on_gpu(&p, device, x, err);
    for (int on = 0; on <= gpu && st == GX_OK; ++on)
        st = ours(&p, on, device, x, err);
    free(p.a);
    free(p.b);
    free(p.out);
    free(p.positions);
    return st;
}

static int print_json(const point *points, uint32_t n, bool gpu, bool ratios, uint32_t seed)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; ++i) {
        for (int on = 0; on <= gpu; ++on) {
            const point *x = &points[i];
            json_t *levels = json_array();
            for (uint32_t level = 0; level < LEVELS; ++level)
                json_array_append_new(levels, bench_json(x->ns[on][level]));
            json_array_append_new(list, json_pack("{s:I, s:I, s:I, s:s, s:o, s:o}", "length", (json_int_t)x->n_a,
                                                  "other_length", (json_int_t)x->n_b, "common", (json_int_t)x->common,
                                                  "engine", on ? "gpu" : "cpu", "levels_ns", levels, "ours_ns",
                                                  bench_json(x->ours[on])));
        }
    }
    json_t *root = json_pack("{s:i, s:s, s:o}", "schema", 2, "figure", ratios ? "ratio" : "recursion", "rows", list);
    bench_put_machine(root, seed);
    return bench_print_json(root);
}

static void print(const point *points, uint32_t n, bool gpu, uint32_t seed, query_format format)
{
    if (format == QUERY_CSV) {
        printf("length,other_length,common,engine");
        for (uint32_t levels = 0; levels < LEVELS; ++levels)
            printf(",levels_%u_ns", levels);
        puts(",ours_ns");
    } else {
        bench_print_machine(seed);
        printf("ns an integer of the shorter list\n%10s %10s %10s %-4s", "length", "other", "common", "");
        for (uint32_t levels = 0; levels < LEVELS; ++levels)
            printf("  %u level%s", levels, levels == 1 ? " " : "s");
        puts("      ours");
    }
    for (uint32_t i = 0; i < n; ++i) {
        for (int on = 0; on <= gpu; ++on) {
            const point *x = &points[i];
            printf(format == QUERY_CSV ? "%u,%u,%u,%s" : "%10u %10u %10u %-4s", x->n_a, x->n_b, x->common,
                   on ? "gpu" : "cpu");
            for (uint32_t levels = 0; levels < LEVELS; ++levels)
                printf(format == QUERY_CSV ? ",%.4f" : " %9.3f", x->ns[on][levels]);
            printf(format == QUERY_CSV ? ",%.4f\n" : " %9.3f\n", x->ours[on]);
        }
    }
}

static int plot(const point *points, uint32_t n, bool gpu, const char *gpu_name, bool ratios, const char *dir)
{
    int code = 0;
    const char *name = ratios ? "ratio" : "figure6";
    FILE *f = draw_begin(dir, name, &code);
    if (!f)
        return code;
    fprintf(f,
            "set logscale xy\n"
            "set grid\n"
            "set key outside right\n"
            "set xlabel '%s'\n"
            "set ylabel 'ns an integer of the shorter list'\n",
            ratios ? "length of the longer list" : "length of either list");
    bench_put_title(f, ratios ? "Merge Find by ratio of lengths" : "Merge Find by length",
                    &(bench_subject){"generated lists", NULL, gpu_name});
    for (int on = 0; on <= gpu; ++on) {
        fprintf(f, "$%s << END\n", on ? "gpu" : "cpu");
        for (uint32_t i = 0; i < n; ++i) {
            fprintf(f, "%u", points[i].n_b);
            for (uint32_t levels = 0; levels < LEVELS; ++levels)
                fprintf(f, " %.5f", points[i].ns[on][levels]);
            fprintf(f, " %.5f\n", points[i].ours[on]);
        }
        fputs("END\n", f);
    }
    for (int t = 0; t < DRAW_FORMATS; ++t) {
        draw_format(f, name, t);
        for (int on = 0; on <= gpu; ++on) {
            const char *which = on ? "gpu" : "cpu";
            for (uint32_t levels = 0; levels < LEVELS; ++levels)
                fprintf(f, "%s$%s using 1:%u with linespoints title '%s, %u levels'", on || levels ? ", " : "", which,
                        levels + 2, on ? "GPU" : "one core", levels);
            fprintf(f, ", $%s using 1:%d with linespoints lw 2 title '%s, ours'", which, LEVELS + 2,
                    on ? "GPU" : "one core");
        }
        fputs("\nunset output\n", f);
    }
    return draw_end(f, dir, name);
}

int query_figure(bool ratios, const char *gpu_name, uint32_t device, uint32_t seed, query_format format,
                 const char *dir)
{
    static const uint32_t lengths[MAX_POINTS] = {5000, 16000, 50000, 160000, 500000, 1600000, 5000000, 16000000};
    gx_error err = {0};
    point points[MAX_POINTS] = {0};
    const bool gpu = gpu_name != NULL;
    uint32_t n = 0;
    for (; n < (ratios ? 7u : MAX_POINTS); ++n) {
        points[n].n_a = ratios ? 200000 : lengths[n];
        points[n].n_b = ratios ? 200000u << n : lengths[n];
        cli_note("lists of %u and %u integers", points[n].n_a, points[n].n_b);
        if (measure(gpu, device, seed, &points[n], &err))
            return cli_fail_error(&err);
    }
    int code = 0;
    if (format == QUERY_JSON)
        code = print_json(points, n, gpu, ratios, seed);
    else
        print(points, n, gpu, seed, format);
    return dir && code == 0 ? plot(points, n, gpu, gpu_name, ratios, dir) : code;
}
