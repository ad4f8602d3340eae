/* bitmap_measure.c: range queries over WAH bitmaps on the GPU, in the configurations of a paper and
 * in ours, measured and checked. */
#include "tools/bench/bitmaps/bitmap_measure.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "engine/device.h"
#include "engine/parallel.h"
#include "tools/bench/bitmaps/bitmap_gpu.h"
#include "tools/bench/bitmaps/bitmap_pool.h"
#include "tools/bench/bitmaps/bitmap_sets.h"
#include "tools/bench/kernels/energy.h"
#include "tools/bench/kernels/gpu_list.h"

int bitmap_check_answer(const bitmap_data *d, const char *what)
{
    for (uint64_t i = 0; i < d->ix->n_chunks; ++i)
        if (d->got[i] != d->want[i])
            return cli_fail(GX_EINTERNAL, "%s: the rows that \"%s\" finds differ from the CPU's, from row %llu on",
                            d->shape->title, what, (unsigned long long)(i * GX_WAH_ROWS));
    return 0;
}

#if GX_CUDA

enum { KERNEL_RUNS = 21 };
enum { N_CONFIG_ROWS = BITMAP_N_CONFIGS + 2 }; /* and our two kernels */

/* How queries of a configuration can be run: Figures 5 to 7 have one, which the paper does not
 * name. */
static const struct mode {
    const char *name, *title;
    bool a_column, no_calls;
} modes[3] = {
    {"calls-a-column", "stages and memory calls for each column by itself", true, false},
    {"calls-a-query", "stages and memory calls for all columns at once", false, false},
    {"kernels", "kernels alone: all columns at once, no memory calls, by the GPU's clock", false, true},
};

static void add_figure_tables(bitmap_bench *b, const bitmap_data *sets, uint32_t n)
{
    for (int m = 0; m < 3; ++m) {
        b->times[m] = bitmap_add_table(&b->report,
                                       m == 0   ? "times-column"
                                       : m == 1 ? "times-query"
                                                : "times-kernels",
                                       "", "Milliseconds, %s", modes[m].title);
        b->speedups[m] = bitmap_add_table(&b->report, modes[m].name, "",
                                          "Figures 5 to 7: speedup over the baseline, %s", modes[m].title);
        b->speedups[m]->axis = "speedup";
        for (uint32_t i = 0; i < n; ++i) {
            bitmap_add_column(b->times[m], "%s", sets[i].shape->title);
            bitmap_add_column(b->speedups[m], "%s", sets[i].shape->title);
        }
        bitmap_add_column(b->speedups[m], "mean");
        bitmap_add_column(b->speedups[m], "the paper's mean");
        for (int k = 0; k < N_CONFIG_ROWS; ++k) {
            const char *const name = k < BITMAP_N_CONFIGS    ? bitmap_configs[k].name
                                     : k == BITMAP_N_CONFIGS ? "ours, WAH, cold cache"
                                                             : "ours, containers, cold cache";
            double *const v = bitmap_add_row(b->speedups[m], "%s", name);
            bitmap_add_row(b->times[m], "%s", name);
            if (k < BITMAP_N_CONFIGS)
                v[n + 1] = bitmap_configs[k].paper;
        }
    }
}

/* Figures 5 to 7 for a data set: column `place` of the tables. */
static int measure_configs(bitmap_bench *b, bitmap_data *d, bitmap_client *c, uint32_t place)
{
    gx_error err = {0};
    for (int k = 0; k < BITMAP_N_CONFIGS; ++k) {
        for (int m = 0; m < 3; ++m) {
            const bitmap_plan plan = {&bitmap_configs[k], BITMAP_IDEAL_HYBRID, modes[m].a_column, modes[m].no_calls,
                                      false};
            double seconds, kernels;
            if (bitmap_gpu_query(c, &plan, d->n, b->runs, d->got, &seconds, m == 2 ? &kernels : NULL, NULL, &err))
                return cli_fail_error(&err);
            const int code = bitmap_check_answer(d, bitmap_configs[k].name);
            if (code)
                return code;
            b->times[m]->values[k][place] = 1e3 * (m == 2 ? kernels : seconds);
            b->speedups[m]->values[k][place] = b->times[m]->values[0][place] / b->times[m]->values[k][place];
        }
    }
    for (int m = 0; m < 3; ++m)
        for (int k = BITMAP_N_CONFIGS; k < N_CONFIG_ROWS; ++k) {
            const double ours = k == BITMAP_N_CONFIGS ? d->ours : d->sets;
            b->times[m]->values[k][place] = 1e3 * ours;
            b->speedups[m]->values[k][place] = 1e-3 * b->times[m]->values[0][place] / ours;
        }
    return 0;
}

static void fill_means(bitmap_bench *b, uint32_t n)
{
    for (int m = 0; m < 3 && b->speedups[m]; ++m)
        for (int k = 0; k < N_CONFIG_ROWS; ++k) {
            double sum = 0;
            for (uint32_t i = 0; i < n; ++i)
                sum += b->speedups[m]->values[k][i];
            b->speedups[m]->values[k][n] = sum / n;
        }
}

/* Figure 8: where the time goes. */
static int measure_steps(bitmap_bench *b, bitmap_data *d, bitmap_client *c)
{
    static const int profiled[] = {0, 1, 3, 4, 5, 7, 8};
    gx_error err = {0};
    bitmap_table *const t = bitmap_add_table(
        &b->report, "figure8", "memory calls|memory|stage 1|stage 2|stage 3|stage 4|stage 5|reduction",
        "Figure 8: %s, milliseconds a step, steps waiting for one another, memory calls a query", d->shape->title);
    bitmap_table *const u =
        bitmap_add_table(&b->report, "figure8-columns", "memory calls|memory|whole query",
                         "Figure 8: %s, milliseconds, stages and memory calls a column", d->shape->title);
    for (uint32_t i = 0; i < sizeof profiled / sizeof *profiled; ++i) {
        const bitmap_config *const config = &bitmap_configs[profiled[i]];
        const bitmap_plan at_once = {config, BITMAP_IDEAL_HYBRID, .steps = true};
        const bitmap_plan by_column = {config, BITMAP_IDEAL_HYBRID, .a_column = true};
        bitmap_steps s;
        double seconds;
        if (bitmap_gpu_query(c, &at_once, d->n, b->runs, NULL, &seconds, NULL, &s, &err))
            return cli_fail_error(&err);
        double *v = bitmap_add_row(t, "%s", config->name);
        v[0] = s.memory_calls;
        v[1] = 1e3 * s.memory;
        for (int k = 0; k < 5; ++k)
            v[2 + k] = 1e3 * s.stages[k];
        v[7] = 1e3 * s.reduction;
        if (bitmap_gpu_query(c, &by_column, d->n, b->runs, NULL, &seconds, NULL, &s, &err))
            return cli_fail_error(&err);
        v = bitmap_add_row(u, "%s", config->name);
        v[0] = s.memory_calls;
        v[1] = 1e3 * s.memory;
        v[2] = 1e3 * seconds;
    }
    return 0;
}

/* A row of the table of our kernel: time, cold and with what fits in the L2 cache there; bytes. */
static void add_timing(const bitmap_bench *b, bitmap_table *t, const char *name, const double seconds[2], double bytes)
{
    if (!t)
        return;
    double *const v = bitmap_add_row(t, "%s", name);
    v[0] = 1e6 * seconds[0];
    v[1] = 1e6 * seconds[1];
    v[2] = 1e-6 * bytes;
    v[3] = 1e-9 * bytes / seconds[0];
    v[4] = bytes / seconds[0] / b->read_speed;
}

static int measure_ours(bitmap_bench *b, bitmap_data *d, bitmap_client *c)
{
    const double atoms = (double)(d->ix->begins[d->first + d->n] - d->ix->begins[d->first]);
    const double column = 8.0 * (double)d->ix->n_chunks, words = column * d->n;
    gx_error err = {0};
    int code = 0;
    double seconds[2], copy, launch;
    char name[64];
    bitmap_table *t = NULL;
    if (b->figure == 0)
        t = bitmap_add_table(&b->report, "ours", "us cold|us warm|MB read|GB/s|of the memory's speed",
                             "%s: %u columns, %.2f words an atom; the memory reads %.0f GB/s", d->shape->title, d->n,
                             words / 8 / atoms, 1e-9 * b->read_speed);
    for (uint32_t v = 0; bitmap_variants[v].tile && !code && (t || v == 0); ++v) {
        const bitmap_variant *const x = &bitmap_variants[v];
        const double bytes = 8 * atoms + 8.0 * d->n * (bitmap_n_tiles(d->ix, x->tile) + 1);
        const bitmap_answer answer = {d->got, NULL, NULL};
        for (int warm = 0; warm < 2; ++warm)
            if (bitmap_gpu_ours(c, v, d->n, KERNEL_RUNS, !warm, &answer, &seconds[warm], &err))
                return cli_fail_error(&err);
        snprintf(name, sizeof name, "ours: tiles of %u, %u warps, %u rows%s", x->tile, x->warps, x->rows,
                 x->step ? ", early exit" : "");
        add_timing(b, t, name, seconds, bytes);
        code = bitmap_check_answer(d, name);
        if (v == 0)
            d->ours = seconds[0];
    }
    for (int r = 0; r < BITMAP_N_REDUCTIONS && !code && t; ++r) {
        for (int warm = 0; warm < 2; ++warm)
            if (bitmap_gpu_reduce(c, (bitmap_reduction)r, d->n, KERNEL_RUNS, !warm, d->got, &seconds[warm], &err))
                return cli_fail_error(&err);
        snprintf(name, sizeof name, "decompressed columns: %s", bitmap_reduction_name((bitmap_reduction)r));
        add_timing(b, t, name, seconds, words);
        code = bitmap_check_answer(d, name);
        if (r == BITMAP_IDEAL_HYBRID || r == BITMAP_STREAM)
            d->reductions[r == BITMAP_STREAM] = seconds[0];
    }
    if (!code && t && bitmap_gpu_copy_time(c, KERNEL_RUNS, &copy, &err))
        return cli_fail_error(&err);
    if (!code && t && bitmap_launch_time(KERNEL_RUNS, &launch, &err))
        return cli_fail_error(&err);
    if (!code && t) {
        bitmap_add_row(t, "a kernel that does nothing")[1] = 1e6 * launch;
        double *const v = bitmap_add_row(t, "the result to the host");
        v[1] = 1e6 * copy;
        v[2] = 1e-6 * column;
        v[3] = 1e-9 * column / copy;
    }
    return code;
}

/* Queries over columns in containers. */
typedef struct set_query {
    const char *name;
    bitmap_step steps[2];
    uint32_t n_steps;
    bool mask, count, rows;
} set_query;

/* The query's rows, as chunks, by the CPU. */
static void expect_set(const bitmap_data *d, const set_query *q, uint64_t *want, uint64_t *more)
{
    memset(want, 0, d->ix->n_chunks * sizeof *want);
    for (uint32_t k = 0; k < q->n_steps; ++k) {
        memset(more, 0, d->ix->n_chunks * sizeof *more);
        for (uint32_t i = 0; i < q->steps[k].n; ++i) {
            const gx_wah c = bitmap_column(d->ix, d->first + q->steps[k].first + i);
            gx_wah_or_chunks(&c, more);
        }
        for (uint64_t i = 0; i < d->ix->n_chunks; ++i)
            want[i] = q->steps[k].operation == BITMAP_OR    ? want[i] | more[i]
                      : q->steps[k].operation == BITMAP_AND ? want[i] & more[i]
                                                            : want[i] & ~more[i];
    }
}

static int check_set(const bitmap_data *d, const set_query *q, const bitmap_rows *a, const uint64_t *want)
{
    uint64_t n = 0;
    for (uint64_t row = 0; row < d->shape->n_rows; ++row) {
        const uint32_t bit = want[row / GX_WAH_ROWS] >> row % GX_WAH_ROWS & 1;
        if ((q->mask && (a->mask[row / 32] >> row % 32 & 1) != bit) || (q->rows && bit && a->rows[n] != row))
            return cli_fail(GX_EINTERNAL, "%s, containers: the rows that \"%s\" finds differ from the CPU's, at %llu",
                            d->shape->title, q->name, (unsigned long long)row);
        n += bit;
    }
    if (q->count && *a->count != n)
        return cli_fail(GX_EINTERNAL, "%s, containers: \"%s\" counts %llu rows, the CPU %llu", d->shape->title, q->name,
                        (unsigned long long)*a->count, (unsigned long long)n);
    return 0;
}

/* A query measured and checked; the first one is the union. */
static int measure_set(bitmap_bench *b, bitmap_data *d, bitmap_sets *s, const set_query *q, bitmap_table *t,
                       const bitmap_rows *space)
{
    const bitmap_rows answer = {q->mask ? space->mask : NULL, q->count ? space->count : NULL,
                                q->rows ? space->rows : NULL};
    uint64_t *const want = malloc(d->ix->n_chunks * sizeof *want);
    double seconds[2];
    gx_error err = {0};
    int code = want ? 0 : cli_fail(GX_ENOMEM, "no memory for %llu rows", (unsigned long long)d->shape->n_rows);
    for (int warm = 0; warm < 2 && !code; ++warm)
        if (bitmap_sets_query(s, q->steps, q->n_steps, KERNEL_RUNS, !warm, &answer, &seconds[warm], &err))
            code = cli_fail_error(&err);
    if (!code) {
        expect_set(d, q, want, d->got);
        code = check_set(d, q, &answer, want);
    }
    if (!code)
        add_timing(b, t, q->name, seconds, (double)bitmap_sets_bytes(s, d->n));
    for (int r = 0; r < 2 && !code && t && !q->count && q->n_steps == 1; ++r)
        t->values[t->n_rows - 1][5 + r] = d->reductions[r] / seconds[0];
    if (!code && d->sets == 0)
        d->sets = seconds[0];
    free(want);
    return code;
}

static int measure_sets(bitmap_bench *b, bitmap_data *d)
{
    const uint32_t n = d->n, half = (n + 1) / 2;
    const set_query queries[] = {
        {"the union, to a mask", {{BITMAP_OR, 0, n}}, 1, true},
        {"the union, counted", {{BITMAP_OR, 0, n}}, 1, false, true},
        {"the union, to row numbers", {{BITMAP_OR, 0, n}}, 1, true, true, true},
        {"half AND half, to a mask", {{BITMAP_OR, 0, half}, {BITMAP_AND, half, n - half}}, 2, true},
        {"half AND NOT half, to a mask", {{BITMAP_OR, 0, half}, {BITMAP_ANDNOT, half, n - half}}, 2, true},
    };
    const uint64_t n_rows = d->shape->n_rows;
    uint64_t count;
    const bitmap_rows space = {malloc((n_rows + 31) / 32 * 4), &count, malloc(n_rows * 4)};
    bitmap_sets *s = NULL;
    gx_error err = {0};
    int code =
        space.mask && space.rows ? 0 : cli_fail(GX_ENOMEM, "no memory for %llu rows", (unsigned long long)n_rows);
    if (!code && bitmap_sets_open(&s, d->ix, d->first, n, b->n_threads, &err))
        code = cli_fail_error(&err);
    bitmap_table *const t =
        b->figure || code ? NULL
                          : bitmap_add_table(&b->report, "sets",
                                             "us cold|us warm|MB read|GB/s|of the memory's speed|x ideal hybrid|"
                                             "x a thread a word",
                                             "%s: %u columns in containers; x: the time of decompressed columns, cold",
                                             d->shape->title, n);
    for (uint32_t k = 0; k < (t ? sizeof queries / sizeof *queries : 1) && !code; ++k)
        code = measure_set(b, d, s, &queries[k], t, &space);
    bitmap_sets_close(s);
    free(space.mask);
    free(space.rows);
    return code;
}

/* Reductions by the number of columns. */
static int measure_reductions(bitmap_bench *b, bitmap_data *d)
{
    static const uint32_t counts[] = {1, 4, 16, 64, 256, 1024};
    const uint32_t n = d->ix->n_columns < 1024 ? d->ix->n_columns : 1024;
    bitmap_gpu *g = NULL;
    bitmap_client *c = NULL;
    gx_error err = {0};
    double seconds;
    bitmap_table *const t =
        bitmap_add_table(&b->report, "reductions", "",
                         "%s: decompressed columns, us by the number of columns, cold cache", d->shape->title);
    t->axis = "microseconds";
    cli_note("%s: reductions", d->shape->title);
    if (bitmap_gpu_open(&g, d->ix, 0, n, 5, &err) || bitmap_client_open(&c, g, true, &err)) {
        bitmap_gpu_close(g);
        return cli_fail_error(&err);
    }
    gx_status st = GX_OK;
    for (uint32_t k = 0; k < sizeof counts / sizeof *counts; ++k)
        if (counts[k] <= n)
            bitmap_add_column(t, "%u", counts[k]);
    for (int r = 0; r <= BITMAP_N_REDUCTIONS; ++r) {
        const bool ours = r == BITMAP_N_REDUCTIONS;
        double *const v = bitmap_add_row(
            t, "%s", ours ? "ours, from compressed columns" : bitmap_reduction_name((bitmap_reduction)r));
        for (uint32_t k = 0; k < t->n_columns && st == GX_OK; ++k) {
            const bitmap_answer answer = {d->got, NULL, NULL};
            st = ours ? bitmap_gpu_ours(c, 0, counts[k], KERNEL_RUNS, true, &answer, &seconds, &err)
                      : bitmap_gpu_reduce(c, (bitmap_reduction)r, counts[k], KERNEL_RUNS, true, d->got, &seconds, &err);
            v[k] = 1e6 * seconds;
        }
    }
    bitmap_client_close(c);
    bitmap_gpu_close(g);
    return st == GX_OK ? 0 : cli_fail_error(&err);
}

/* A range of bins of the one attribute, by other encodings than a column a bin. */
static int measure_ranges(bitmap_bench *b, bitmap_data *d)
{
    const uint64_t n_rows = d->shape->n_rows;
    gx_error err = {0};
    double seconds[2];
    uint32_t *const mask = malloc((n_rows + 31) / 32 * sizeof *mask);
    if (!mask)
        return cli_fail(GX_ENOMEM, "no memory for %llu rows", (unsigned long long)n_rows);
    bitmap_table *const t = bitmap_add_table(
        &b->report, "ranges", "us cold|us warm|MB read|GB/s|of the memory's speed|times our OR|times it, warm",
        "%s: bins %u to %u of %u; the OR of their columns by our kernel takes %.1f us", d->shape->title, d->first,
        d->first + d->n - 1, d->ix->n_columns, 1e6 * d->ours);
    cli_note("%s: ranges by other encodings", d->shape->title);
    for (int e = 0; e < BITMAP_N_ENCODINGS; ++e) {
        for (int warm = 0; warm < 2; ++warm)
            if (bitmap_gpu_range(d->ix, (bitmap_encoding)e, d->first, d->first + d->n - 1, KERNEL_RUNS, !warm, mask,
                                 &seconds[warm], &err)) {
                free(mask);
                return cli_fail_error(&err);
            }
        add_timing(b, t, bitmap_encoding_name((bitmap_encoding)e), seconds,
                   (double)bitmap_encoding_bytes((bitmap_encoding)e, n_rows, d->ix->n_columns));
        t->values[e][5] = d->ours / seconds[0];
        t->values[e][6] = d->ours / seconds[1];
        memset(d->got, 0, d->ix->n_chunks * sizeof *d->got);
        for (uint64_t row = 0; row < n_rows; ++row)
            d->got[row / GX_WAH_ROWS] |= (uint64_t)(mask[row / 32] >> row % 32 & 1) << row % GX_WAH_ROWS;
        const int code = bitmap_check_answer(d, bitmap_encoding_name((bitmap_encoding)e));
        if (code) {
            free(mask);
            return code;
        }
    }
    free(mask);
    return 0;
}

/* The middle half of the first attribute's bins, from columns as index files have them. */
static int measure_stored(bitmap_bench *b, bitmap_data *d)
{
    const uint64_t n_rows = d->shape->n_rows;
    uint32_t first, n, *const mask = malloc((n_rows + 31) / 32 * sizeof *mask);
    gx_error err = {0};
    if (!mask)
        return cli_fail(GX_ENOMEM, "no memory for %llu rows", (unsigned long long)n_rows);
    bitmap_attribute(d->shape, 0, &first, &n);
    for (int range = 0; range < 2; ++range) {
        bitmap_stored q = {.range = range, .low = n / 4, .high = n / 4 + n / 2};
        q.high = q.high < n ? q.high : n - 1;
        if (bitmap_stored_query(d->ix, &q, KERNEL_RUNS, mask, &err)) {
            free(mask);
            return cli_fail_error(&err);
        }
        for (uint64_t row = 0; row < n_rows; ++row)
            if ((mask[row / 32] >> row % 32 & 1) != (d->ix->values[row] >= q.low && d->ix->values[row] <= q.high)) {
                free(mask);
                return cli_fail(GX_EINTERNAL, "%s: bitmap columns of an index give a wrong row, %llu", d->shape->title,
                                (unsigned long long)row);
            }
        double *const v =
            bitmap_add_row(b->stored, "%s: %s", d->shape->title, range ? "range encoding" : "a column a bin");
        v[0] = q.high - q.low + 1;
        v[1] = 1e-6 * (double)q.bytes;
        v[2] = 1e6 * q.seconds[0];
        v[3] = 1e6 * q.seconds[1];
        v[4] = 1e6 * q.cpu_seconds;
        v[5] = q.cpu_seconds / q.seconds[0];
    }
    free(mask);
    return 0;
}

enum { ENERGY_RUNS = 20 };

/* Clients that ask at once, and share a pool. */
typedef struct clients {
    const bitmap_bench *b;
    bitmap_gpu *g;
    const bitmap_data *d;
    atomic_uint answered, wrong, failed;
    uint32_t queries;
    bool hashed; /* the pool is the paper's: where its arrays do not suffice, a query fails */
} clients;

static void be_client(void *user, uint32_t number)
{
    clients *const cs = user;
    const bitmap_plan plan = {&bitmap_configs[8], BITMAP_IDEAL_HYBRID, .hashed = cs->hashed};
    const size_t bytes = cs->d->ix->n_chunks * sizeof(uint64_t);
    uint64_t *const got = malloc(bytes);
    bitmap_client *c = NULL;
    double seconds;
    (void)number;
    bool ok = got && gx_device_use(cs->b->device, NULL) == GX_OK && bitmap_client_open(&c, cs->g, false, NULL) == GX_OK;
    for (uint32_t i = 0; i < cs->queries; ++i) {
        const bool answered = ok && bitmap_gpu_query(c, &plan, cs->d->n, 1, got, &seconds, NULL, NULL, NULL) == GX_OK;
        atomic_fetch_add(answered ? &cs->answered : &cs->failed, 1);
        if (answered && memcmp(got, cs->d->want, bytes) != 0)
            atomic_fetch_add(&cs->wrong, 1);
    }
    bitmap_client_close(c);
    free(got);
}

static int measure_pool(bitmap_bench *b, bitmap_data *d)
{
    const uint32_t arrays[] = {64 * d->n, d->n, d->n > 4 ? d->n / 4 : 1};
    gx_error err = {0};
    bitmap_table *const t = bitmap_add_table(
        &b->report, "pool", "arrays|answered|failed|wrong|waited|queries/s",
        "%s: 64 clients, 8 queries each, stage 4 in 32 bits, a pool for so many columns", d->shape->title);
    cli_note("%s: 64 clients", d->shape->title);
    for (uint32_t i = 0; i < 6; ++i) {
        static const char *const names[] = {"all clients", "one query", "a quarter of a query"};
        clients cs = {.b = b, .d = d, .queries = 8, .hashed = i % 2};
        if (bitmap_gpu_open(&cs.g, d->ix, d->first, d->n, arrays[i / 2], &err))
            return cli_fail_error(&err);
        const double begin = gx_clock_seconds();
        gx_parallel_run(64, be_client, &cs);
        const double seconds = gx_clock_seconds() - begin;
        double *const v = bitmap_add_row(t, "%s%s", names[i / 2], cs.hashed ? ", the paper's" : "");
        v[0] = arrays[i / 2];
        v[1] = atomic_load(&cs.answered);
        v[2] = atomic_load(&cs.failed);
        v[3] = atomic_load(&cs.wrong);
        v[4] = (double)bitmap_gpu_waits(cs.g);
        v[5] = v[1] / seconds;
        bitmap_gpu_close(cs.g);
        if ((v[2] > 0 && !cs.hashed) || v[3] > 0)
            return cli_fail(GX_EINTERNAL, "of 64 clients' queries %g failed, and %g answers are wrong", v[2], v[3]);
    }
    return 0;
}

/* What a query of each configuration takes of the GPU's energy; configurations differ by the stages that they have. */
static int measure_energy(bitmap_bench *b, bitmap_data *d, bitmap_client *c)
{
    gx_error err = {0};
    if (bench_gpu_joules() < 0) {
        cli_note("no energy is measured: the GPU does not tell it");
        return 0;
    }
    bitmap_table *const t = bitmap_add_table(
        &b->report, "energy", "mJ a query|W|ms a query",
        "%s: a GPU's energy by configuration, memory calls a query, idle power and all", d->shape->title);
    cli_note("%s: energy", d->shape->title);
    for (int k = 0; k < BITMAP_N_CONFIGS; ++k) {
        const bitmap_plan plan = {&bitmap_configs[k], BITMAP_IDEAL_HYBRID};
        const double before = bench_gpu_joules(), begin = gx_clock_seconds();
        double seconds, passed = 0;
        uint32_t n = 0;
        for (; passed < BENCH_ENERGY_SECONDS; n += ENERGY_RUNS, passed = gx_clock_seconds() - begin)
            if (bitmap_gpu_query(c, &plan, d->n, ENERGY_RUNS, NULL, &seconds, NULL, NULL, &err))
                return cli_fail_error(&err);
        const double joules = bench_gpu_joules() - before;
        double *const v = bitmap_add_row(t, "%s", bitmap_configs[k].name);
        v[0] = 1e3 * joules / n;
        v[1] = joules / passed;
        v[2] = 1e3 * passed / n;
    }
    return 0;
}

static int measure_gpu(bitmap_bench *b, bitmap_data *d, uint32_t place)
{
    const char *const name = d->shape->name;
    bitmap_gpu *g = NULL;
    bitmap_client *c = NULL;
    gx_error err = {0};
    cli_note("%s: the GPU", d->shape->title);
    if (bitmap_gpu_open(&g, d->ix, d->first, d->n, 0, &err) || bitmap_client_open(&c, g, true, &err)) {
        bitmap_gpu_close(g);
        return cli_fail_error(&err);
    }
    int code = measure_ours(b, d, c);
    if (!code)
        code = measure_sets(b, d);
    if (!code && b->times[0] && place < b->times[0]->n_columns)
        code = measure_configs(b, d, c, place);
    if (!code && bitmap_wants(b, 8) && strcmp(name, "linkage") == 0)
        code = measure_steps(b, d, c);
    if (!code && b->figure == 0 && strcmp(name, "linkage") == 0)
        code = measure_energy(b, d, c);
    bitmap_client_close(c);
    bitmap_gpu_close(g);
    if (!code && b->figure == 0 && strcmp(name, "bpa") == 0)
        code = measure_reductions(b, d);
    if (!code && b->figure == 0 && strcmp(name, "range") == 0)
        code = measure_ranges(b, d);
    if (!code && b->figure == 0 && d->ix->values && d->shape->n_rows <= UINT32_MAX)
        code = measure_stored(b, d);
    if (!code && b->figure == 0 && strcmp(name, "kddcup") == 0)
        code = measure_pool(b, d);
    return code;
}

int bitmap_measure_gpu(bitmap_bench *b, bitmap_data *sets, uint32_t n, uint32_t n_paper)
{
    int code = 0;
    if (!b->gpu)
        return 0;
    if (b->figure == 0)
        b->stored = bitmap_add_table(&b->report, "stored", "bins|MB read|us cold|us warm|us CPU, one core|x CPU",
                                     "Bins of the first attribute, from bitmap columns as index files have them");
    if (n_paper && (b->figure == 0 || (b->figure >= 5 && b->figure <= 7)))
        add_figure_tables(b, sets, n_paper);
    for (uint32_t i = 0; i < n && !code && b->figure != 4; ++i)
        code = measure_gpu(b, &sets[i], i);
    if (!code && b->figure != 4)
        fill_means(b, n_paper);
    return code;
}

int bitmap_open_gpu(bitmap_bench *b, const cli_args *a)
{
    gx_error err = {0};
    b->device = (int)cli_count(a, "device");
    if (gx_device_use(b->device, &err) || gx_gpu_name(b->report.gpu, sizeof b->report.gpu, &err) ||
        gx_gpu_memory_speed((uint64_t)1 << 30, 0, 9, &b->read_speed, &err)) {
        *b->report.gpu = 0;
        if (cli_choice(a, "engine") == GX_ENGINE_GPU)
            return cli_fail_error(&err);
        cli_note("no GPU is measured: %s", err.text);
        return 0;
    }
    b->gpu = true;
    return 0;
}

#else

int bitmap_measure_gpu(bitmap_bench *b, bitmap_data *sets, uint32_t n, uint32_t n_paper)
{
    (void)b;
    (void)sets;
    (void)n;
    (void)n_paper;
    return 0;
}

int bitmap_open_gpu(bitmap_bench *b, const cli_args *a)
{
    gx_error err = {0};
    (void)b;
    gx_device_use((int)cli_count(a, "device"), &err); /* says why not */
    if (cli_choice(a, "engine") == GX_ENGINE_GPU)
        return cli_fail_error(&err);
    cli_note("no GPU is measured: %s", err.text);
    return 0;
}

#endif
