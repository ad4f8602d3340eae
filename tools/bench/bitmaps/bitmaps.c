/* bitmaps.c: `gpuidx-bench bitmaps`: range queries over WAH bitmaps on the GPU, in the
 * configurations of a paper and in ours, and on the CPU. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/clock.h"
#include "tools/bench/bitmaps/bitmap_measure.h"
#include "tools/bench/common.h"
#include "tools/cli/cli.h"

#define DATA "bpa,linkage,kddcup,zipf,runs,range"

enum { MAX_DATA = 8, PAPER_DATA = 4 };

/* ---- data and storage ---- */

static double ratio(const bitmap_index *ix, uint32_t first, uint32_t n)
{
    return (double)ix->n_chunks * n / (double)(ix->begins[first + n] - ix->begins[first]);
}

static void describe(bitmap_bench *b, const bitmap_data *d, double seconds)
{
    const bitmap_index *const ix = d->ix;
    const double r = ratio(ix, 0, ix->n_columns), atoms = (double)ix->begins[ix->n_columns];
    const double samples = (double)(bitmap_n_tiles(ix, BITMAP_TILE) + 1) * ix->n_columns;
    double *v = bitmap_add_row(b->data, "%s", d->shape->title);
    const double values[] = {(double)d->shape->n_rows,
                             d->shape->n_attributes,
                             ix->n_columns,
                             d->shape->run,
                             atoms,
                             (double)ix->n_chunks * ix->n_columns,
                             r,
                             ratio(ix, d->first, d->n),
                             atoms * 8e-6,
                             seconds};
    memcpy(v, values, sizeof values);
    if (!b->storage)
        return;
    v = bitmap_add_row(b->storage, "%s", d->shape->title);
    v[0] = 1.5;
    v[1] = 2;
    v[2] = 1 + r / 2;
    v[3] = r;
    v[4] = 1 + samples / atoms;
}

static int open_data(bitmap_bench *b, const bitmap_shape *shape, bitmap_data *d)
{
    gx_error err = {0};
    bitmap_shape s = *shape;
    *d = (bitmap_data){.shape = shape};
    s.n_rows = b->n_rows ? b->n_rows : s.n_rows;
    cli_note("%s: drawing %llu rows", s.title, (unsigned long long)s.n_rows);
    const double begin = gx_clock_seconds();
    if (bitmap_index_open(&d->ix, &s, b->seed, b->n_threads, &err))
        return cli_fail_error(&err);
    const double seconds = gx_clock_seconds() - begin;
    d->n = b->n_columns < s.n_columns ? b->n_columns : s.n_columns;
    d->first = s.n_attributes == 1 ? (s.n_columns - d->n) / 2 : 0; /* a range in the middle of the attribute */
    d->want = calloc(d->ix->n_chunks, sizeof *d->want);
    d->got = malloc(d->ix->n_chunks * sizeof *d->got);
    if (!d->want || !d->got)
        return cli_fail(GX_ENOMEM, "no memory for %llu rows", (unsigned long long)s.n_rows);
    for (uint32_t i = 0; i < d->n; ++i) {
        const gx_wah c = bitmap_column(d->ix, d->first + i);
        gx_wah_or_chunks(&c, d->want);
    }
    d->shape = &d->ix->shape;
    describe(b, d, seconds);
    return 0;
}

static void close_data(bitmap_data *d)
{
    bitmap_index_close(d->ix);
    free(d->want);
    free(d->got);
}

/* ---- the CPU ---- */

static int measure_cpu(bitmap_bench *b, bitmap_data *d)
{
    bitmap_cpu *cpu;
    gx_error err = {0};
    int code = 0;
    cli_note("%s: the CPU", d->shape->title);
    if (bitmap_cpu_open(&cpu, d->ix, d->first, d->n, b->n_threads, &err))
        return cli_fail_error(&err);
    for (int way = 0; way < BITMAP_N_WAYS && !code; ++way) {
        if (!bitmap_cpu_can((bitmap_way)way, 1))
            continue;
        double *const v = bitmap_add_row(b->cpu, "%s: %s", d->shape->title, bitmap_way_name((bitmap_way)way));
        v[0] = (double)bitmap_cpu_bytes(cpu, (bitmap_way)way) * 1e-6;
        for (int all = 0; all < 2 && !code; ++all) {
            const uint32_t threads = all ? b->n_threads : 1;
            double *const seconds = &d->cpu_seconds[all][way];
            if (!bitmap_cpu_can((bitmap_way)way, threads))
                continue;
            if (bitmap_cpu_or(cpu, (bitmap_way)way, threads, b->runs, d->got, seconds, &err))
                code = cli_fail_error(&err);
            else
                code = bitmap_check_answer(d, bitmap_way_name((bitmap_way)way));
            v[1 + all] = *seconds * 1e3;
            if (all && d->ours > 0)
                v[3] = *seconds / d->ours;
            if (all && d->sets > 0)
                v[4] = *seconds / d->sets;
        }
    }
    bitmap_cpu_close(cpu);
    return code;
}

/* ---- the command ---- */

/* The data sets that are named, each once, in the order of bitmap_shapes; 0, or the exit code. */
static int read_data(const cli_args *a, const bitmap_shape **shapes, uint32_t *n)
{
    bool named[MAX_DATA] = {false};
    *n = 0;
    for (const char *list = cli_text(a, "data"); *list;) {
        const size_t len = strcspn(list, ",");
        uint32_t i = 0;
        while (bitmap_shapes[i].name &&
               (strlen(bitmap_shapes[i].name) != len || strncmp(bitmap_shapes[i].name, list, len) != 0))
            ++i;
        if (!bitmap_shapes[i].name)
            return cli_usage(a, "--data: there is no %.*s; it is one of %s, or several with commas", (int)len, list,
                             DATA);
        named[i] = true;
        list += len + (list[len] == ',');
    }
    for (uint32_t i = 0; bitmap_shapes[i].name; ++i)
        if (named[i])
            shapes[(*n)++] = &bitmap_shapes[i];
    return *n ? 0 : cli_usage(a, "--data: none is named");
}

static void add_tables(bitmap_bench *b)
{
    b->data = bitmap_add_table(&b->report, "data",
                               "rows|attributes|columns|mean run|atoms|words|words/atom|of the query|MB|s to draw",
                               "Data sets; the query is the OR of %u neighbouring columns", b->n_columns);
    if (bitmap_wants(b, 4)) {
        b->storage = bitmap_add_table(&b->report, "figure4",
                                      "stage 2 in 32 bits|stage 2 in 64 bits|stage 4 in 32 bits|decompressed|ours",
                                      "Figure 4: storage with metadata relative to the compressed columns; bpa, "
                                      "linkage and kddcup are stand-ins of the paper's rows, bins and sizes, zipf "
                                      "is the paper's own");
        b->storage->axis = "times the compressed columns";
    }
    if (b->figure == 0)
        b->cpu = bitmap_add_table(
            &b->report, "cpu", "MB|ms, one core|ms, all cores|GPU, WAH: x all|GPU, containers: x all",
            "The CPU, %u threads; GPU: our kernels' speed in multiples of all cores, cold cache", b->n_threads);
}

static int measure(bitmap_bench *b, const bitmap_shape **shapes, uint32_t n)
{
    bitmap_data sets[MAX_DATA] = {{0}};
    int code = 0;
    uint32_t n_paper = 0;
    for (uint32_t i = 0; i < n && !code; ++i)
        code = open_data(b, shapes[i], &sets[i]);
    while (n_paper < n && shapes[n_paper] < bitmap_shapes + PAPER_DATA)
        ++n_paper;
    if (!code)
        code = bitmap_measure_gpu(b, sets, n, n_paper);
    for (uint32_t i = 0; i < n && !code && b->cpu; ++i)
        code = measure_cpu(b, &sets[i]);
    for (uint32_t i = 0; i < n; ++i)
        close_data(&sets[i]);
    return code;
}

static int run(const cli_args *a)
{
    bitmap_bench b = {.n_columns = (uint32_t)cli_count(a, "columns"),
                      .runs = (uint32_t)cli_count(a, "runs"),
                      .n_threads = (uint32_t)cli_count(a, "threads"),
                      .figure = cli_given(a, "figure") ? (uint32_t)cli_count(a, "figure") : 0,
                      .seed = cli_count(a, "seed"),
                      .n_rows = cli_given(a, "rows") ? cli_count(a, "rows") : 0};
    const bitmap_shape *shapes[MAX_DATA];
    uint32_t n = 0;
    int code = read_data(a, shapes, &n);
    b.report.seed = b.seed;
    bench_plot_force(cli_switch(a, "force"));
    if (!b.n_threads)
        b.n_threads = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (!code && cli_given(a, "plot"))
        code = bench_plot_dir(cli_text(a, "plot"));
    if (!code && cli_choice(a, "engine") != GX_ENGINE_CPU)
        code = bitmap_open_gpu(&b, a);
    if (!code && b.figure > 4 && !b.gpu)
        code = cli_fail(GX_ENOGPU, "--figure=%u is of a GPU", b.figure);
    if (!code) {
        add_tables(&b);
        code = measure(&b, shapes, n);
    }
    if (!code)
        code = bitmap_print(&b.report, (bitmap_format)cli_choice(a, "format"));
    if (!code && cli_given(a, "plot"))
        code = bitmap_plot(&b.report, cli_text(a, "plot"));
    bitmap_free_report(&b.report);
    return code;
}

static const cli_flag flags[] = {
    {"figure", 0, CLI_COUNT, "N", NULL,
     "print only what a figure of the paper shows: 4: storage; 5 to 7: speedups of the configurations; 8: the time of "
     "each step. Without this flag all tables are printed",
     .min = 4, .max = 8},
    {"data", 0, CLI_TEXT, "NAME,..", DATA,
     "the data sets to measure, separated by commas. `bpa`, `linkage`, `kddcup` and `zipf` are shaped like the "
     "paper's; `runs`: as `zipf`, in runs of equal rows; `range`: one attribute of 128 bins"},
    {"rows", 0, CLI_COUNT, "N", NULL, "give every data set `N` rows instead of its own number", .min = 1, .max = 1e9},
    {"columns", 0, CLI_COUNT, "N", "64", "the number of columns of the query", .min = 1, .max = 1024},
    {"runs", 0, CLI_COUNT, "N", "6",
     "run each query `N` times; the first is not counted, and the mean of the others taken", .min = 2, .max = 1000},
    {"threads", 'j', CLI_COUNT, "N", "0", "how many threads \"all cores\" are; 0: one a processor", .max = 1024},
    {"seed", 0, CLI_COUNT, "N", "1", "the seed of the random numbers: the same seed gives the same rows"},
    {"engine", 0, CLI_CHOICE, "auto|cpu|gpu", "auto",
     "what to measure. `auto`: the CPU, and a GPU where one can be used; `gpu` fails where none can be used"},
    {"device", 0, CLI_COUNT, "N", "0", "the number of the GPU, as `gpuidx devices` lists them", .max = 1023},
    {"format", 0, CLI_CHOICE, "table|json|csv", "table", "how the report is printed"},
    {"plot", 0, CLI_TEXT, "DIR", NULL, "also draw the figures, as PNG and SVG, into the folder `DIR`; needs gnuplot"},
    BENCH_FORCE_FLAG,
    {NULL},
};

static const cli_section sections[] = {
    {"Data",
     "Rows are drawn by random numbers. Zipf is the paper's: 10 attributes of 10 bins, where bin k is drawn with "
     "probability k^-2 over the sum of all, rows independent of one another. BPA, linkage and kddcup stand in for data "
     "that is not public: they have the published numbers of rows, attributes and bins, and runs of equal rows so long "
     "that the sizes of the paper's Figure 4 result; bins are drawn with probability 1/k.\n"
     "\n"
     "The query is the OR of neighbouring columns, one a bin: the first 64, or those in the middle of a single "
     "attribute. The first 64 of Zipf hold whole attributes, each of which has one bit set in every row: the answer "
     "is all rows."},
    {"What is measured",
     "Figures 5 to 7 are given in three ways: with memory calls and kernels for each column by itself, for the whole "
     "query, and for kernels alone. The paper does not say which of the first two its numbers are. Times are by the "
     "host's clock, from the first step to the result in GPU memory, kernels alone by the GPU's clock; copying the "
     "result to the host is told apart. Decompressed columns are reduced by the ideal hybrid. CUB's scratch memory "
     "is allocated beforehand.\n"
     "\n"
     "The pool is measured with 64 clients at once, ours, in which a query waits for its arrays in the order of "
     "arrival or takes its columns in groups, and the paper's, in which a client is hashed to a place, all arrays of "
     "its query are locked behind it, and a query that finds none fails.\n"
     "\n"
     "Our kernels answer from WAH columns, and from columns in containers of 65,536 rows: lists, bitmaps and runs, "
     "each the smallest. From containers they make a mask, a number of rows, or row numbers, of unions combined by "
     "OR, AND and AND NOT. Columns of the first attribute are also read in the forms that index files have, and the "
     "time of one core is given beside.\n"
     "\n"
     "\"Cold\" means that the L2 cache was overwritten before each run. Every answer is compared with the CPU's; if "
     "any differs the program fails."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx-bench bitmaps", "All data sets and all tables."},
    {"gpuidx-bench bitmaps --figure=4", "The storage of metadata; needs no GPU."},
    {"gpuidx-bench bitmaps --data=zipf --engine=cpu -j 4",
     "WAH, containers, CRoaring and decompressed columns on the CPU."},
    {NULL},
};

const cli_command cmd_bench_bitmaps = {
    .name = "bitmaps",
    .summary = "measure range queries over bitmap indexes",
    .synopsis = "[OPTIONS]",
    .description =
        "Measures how fast the columns of a bitmap index, compressed by WAH (Word-Aligned Hybrid coding), are "
        "ORed: on a GPU in the 11 configurations of Tran, Schaffner, Sawin, Myre and Chiu (\"Increasing the "
        "Efficiency of GPU Bitmap Index Query Processing\") and by kernels that decompress no column, and on the "
        "CPU beside CRoaring where it is installed. Queries of an index do not use WAH bitmaps: they test columns "
        "of values, which measured faster.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .min_args = 0,
    .max_args = 0,
    .run = run,
};
