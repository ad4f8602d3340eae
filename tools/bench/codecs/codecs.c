/* codecs.c: `gpuidx-bench codecs`: the papers' tables of codecs, measured on this machine. Here is
 * what is measured; lists.c reads an index's lists, codec_report.c tells and codec_plot.c draws
 * what came out. */
#include <stdlib.h>
#include <string.h>

#include "codecs/words/simd.h"
#include "engine/device.h"
#include "engine/isa.h"
#include "tools/bench/codecs/codec_report.h"
#include "tools/bench/codecs/list_sizes.h"
#include "tools/bench/codecs/lists.h"
#include "tools/bench/common.h"
#include "tools/bench/data/synthetic_lists.h"
#include "tools/bench/kernels/gpu_list.h"
#include "tools/cli/cli.h"

/* ---- what to measure ---- */

#define FIGURES "3|recursion|lengths|elias-fano"
typedef enum codec_figure { /* 1 more than its place in FIGURES */
                            FIGURE_NONE,
                            FIGURE_3,         /* Mallia et al. 2019: speed by length, of lists drawn at random */
                            FIGURE_RECURSION, /* Ding et al. 2009, Figure 3 */
                            FIGURE_LENGTHS,   /* their Figure 4 */
                            FIGURE_ELIASFANO
} codec_figure;

enum { LEAST_LENGTH = 7 }; /* the shortest lists of FIGURE_LENGTHS have more than 2^6 postings */

/* The paper's order, then the others. */
static void all_methods(codec_report *r)
{
    static const char *const first[] = {"bp32",     "simdbp128",   "gpubp128",    "gpubp256",
                                        "varintgb", "streamvbyte", "gpuvbyte128", "gpuvbyte1024"};
    static const char *const papers[][4] = {
        {"gpubp128", "gpubp128-paper", "BP128-2019", "Mallia et al. 2019, 3.1, its own kernel: a thread an integer"},
        {"gpubp256", "gpubp256-paper", "BP256-2019", "Mallia et al. 2019, 3.1, its own kernel: a thread an integer"},
        {"gpuvbyte128", "gpuvbyte128-paper", "VByte128-2019", "Mallia et al. 2019, 3.2, its own kernel: BlockScan"},
        {"gpuvbyte1024", "gpuvbyte1024-paper", "VByte1024-2019", "Mallia et al. 2019, 3.2, its own kernel: BlockScan"},
    };
    codec_method all[MAX_CODEC_METHODS];
    uint32_t n = 0;
    for (const gx_baseline *const *p = gx_baselines; *p; ++p)
        all[n++] = (codec_method){NULL, *p, (*p)->name, (*p)->title, (*p)->source, false};
    for (const gx_codec *const *p = gx_codecs; *p && n < MAX_CODEC_METHODS; ++p)
        all[n++] = (codec_method){*p, NULL, (*p)->name, (*p)->title, (*p)->source, false};

    for (uint32_t i = 0, n_codecs = n; i < n_codecs; ++i)
        for (size_t k = 0; k < sizeof papers / sizeof *papers; ++k)
            if (strcmp(all[i].name, papers[k][0]) == 0)
                all[n++] = (codec_method){all[i].codec, NULL, papers[k][1], papers[k][2], papers[k][3], true};
    for (size_t i = 0; i < sizeof first / sizeof *first; ++i) {
        for (uint32_t j = 0; j < n; ++j) {
            if (strcmp(all[j].name, first[i]) == 0)
                r->methods[r->n_methods++] = all[j];
        }
    }
    const uint32_t n_first = r->n_methods;
    for (uint32_t j = 0; j < n; ++j) {
        bool known = false;
        for (uint32_t i = 0; i < n_first; ++i)
            known |= r->methods[i].name == all[j].name;
        if (!known)
            r->methods[r->n_methods++] = all[j];
    }
}

/* Keep those of the list "a,b", each once; 0, or the exit code. */
static int keep_methods(const cli_args *a, codec_report *r, const char *list)
{
    codec_method kept[MAX_CODEC_METHODS];
    uint32_t n = 0;
    while (*list) {
        const size_t len = strcspn(list, ",");
        uint32_t i = 0;
        while (i < r->n_methods && (strlen(r->methods[i].name) != len || strncmp(r->methods[i].name, list, len) != 0))
            ++i;
        if (i == r->n_methods)
            return cli_usage(a, "there is no codec %.*s; `gpuidx-bench codecs --list` has their names", (int)len, list);
        bool known = false;
        for (uint32_t k = 0; k < n; ++k)
            known |= kept[k].name == r->methods[i].name;
        if (!known)
            kept[n++] = r->methods[i];
        list += len + (list[len] == ',');
    }
    if (n == 0)
        return cli_usage(a, "--codecs: none is named");
    memcpy(r->methods, kept, n * sizeof *kept);
    r->n_methods = n;
    return 0;
}

static int open_gpu(const cli_args *a, codec_report *r)
{
    const char *engine = cli_text(a, "engine");
    if (strcmp(engine, "cpu") == 0)
        return 0;
    gx_error err = {0};
#ifdef GX_CUDA
    if (gx_gpu_name(r->gpu_name, sizeof r->gpu_name, &err) == GX_OK) {
        double read, mixed, copy;
        const uint64_t bytes = 512u << 20;
        gx_status st = gx_gpu_memory_speed(bytes, 0, 9, &read, &err);
        if (st == GX_OK)
            st = gx_gpu_memory_speed(bytes / 4, bytes, 9, &mixed, &err);
        if (st == GX_OK)
            st = gx_gpu_memory_speed(bytes, bytes, 9, &copy, &err);
        if (st != GX_OK)
            return cli_fail_error(&err);
        r->gpu = true;
        r->read_gbs = read / 1e9;
        r->mixed_gbs = mixed / 1e9;
        r->copy_gbs = copy / 1e9;
        return 0;
    }
#else
    (void)r;
    gx_device_use(0, &err); /* says why not */
#endif
    if (strcmp(engine, "gpu") == 0)
        return cli_fail(GX_ENOGPU, "%s", err.text);
    cli_note("no GPU is measured: %s", err.text);
    return 0;
}

/* ---- measuring ---- */

/* All methods on the lists; a row each. */
static int measure_lists(codec_report *r, const gx_bench_lists *lists, codec_data data, uint32_t log2n, bool speeds)
{
    gx_error err = {0};
    for (uint32_t i = 0; i < r->n_methods; ++i) {
        const gx_bench_gpu gpu = !r->gpu ? GX_BENCH_CPU : r->methods[i].paper ? GX_BENCH_GPU_PAPER : GX_BENCH_GPU;
        if (r->methods[i].paper && gpu != GX_BENCH_GPU_PAPER)
            continue;
        codec_row row = {.method = &r->methods[i], .data = data, .log2n = log2n};
        const gx_status st = row.method->codec
                                 ? gx_bench_codec(row.method->codec, lists, speeds, gpu, &row.speed, &err)
                                 : gx_bench_baseline(row.method->baseline, lists, speeds, &row.speed, &err);
        if (st != GX_OK)
            return cli_fail_error(&err);
        if (r->n_rows == r->max_rows) {
            codec_row *const more = realloc(r->rows, (r->max_rows * 2 + 64) * sizeof *more);
            if (!more)
                return cli_fail(GX_ENOMEM, "no memory for the report");
            r->rows = more;
            r->max_rows = r->max_rows * 2 + 64;
        }
        r->rows[r->n_rows++] = row;
    }
    return 0;
}

/* Lists of 2^from, 2^(from + step), .. 2^to integers. Those of 2^26 and more come from [0, 2^31),
 * as 2^29 would be full. */
static int measure_synthetic(codec_report *r, const bool models[2], uint32_t from, uint32_t to, uint32_t step,
                             uint32_t seed, bool speeds)
{
    uint32_t *const docids = malloc(sizeof *docids << to);
    gx_error err = {0};
    int code = docids ? 0 : cli_fail(GX_ENOMEM, "no memory for lists of 2^%u integers", to);
    for (int m = GX_UNIFORM; m <= GX_CLUSTERED && code == 0; ++m) {
        for (uint32_t log2n = from; models[m] && log2n <= to && code == 0; log2n += step) {
            const uint64_t begins[] = {0, 1ull << log2n};
            const gx_bench_lists lists = {docids, begins, 1, (const uint32_t[]){0}, 1, true};
            const codec_data data = m == GX_UNIFORM ? DATA_UNIFORM : DATA_CLUSTERED;
            cli_note("%s list of 2^%u integers", codec_data_name(data), log2n);
            if (gx_synthetic_list((gx_model)m, seed, 1u << log2n, log2n < 26 ? 1u << 29 : 1u << 31, docids, &err) !=
                GX_OK)
                code = cli_fail_error(&err);
            else
                code = measure_lists(r, &lists, data, log2n, speeds);
        }
    }
    free(docids);
    return code;
}

/* Lists of an index by length, as Figure 4 of Ding et al. has them: of those of 2^(k-1) + 1 to 2^k postings, some
 * are decoded, each alone, since a GPU's launch counts for short lists. */
enum { OF_A_LENGTH = 3 };

/* Add a list's speeds to a row of several: their times add up. */
static void add_speed(codec_row *row, const codec_row *one)
{
    double *const to[] = {&row->speed.encode,
                          &row->speed.integers,
                          &row->speed.docids,
                          &row->speed.gpu_integers.memory,
                          &row->speed.gpu_docids.memory,
                          &row->speed.gpu_integers.kept,
                          &row->speed.gpu_docids.kept};
    const double of[] = {one->speed.encode,
                         one->speed.integers,
                         one->speed.docids,
                         one->speed.gpu_integers.memory,
                         one->speed.gpu_docids.memory,
                         one->speed.gpu_integers.kept,
                         one->speed.gpu_docids.kept};
    const double before = (double)row->speed.n, n = (double)one->speed.n;
    for (size_t i = 0; i < sizeof of / sizeof *of; ++i)
        *to[i] = of[i] > 0 && *to[i] > 0 ? (before + n) / (before / *to[i] + n / of[i]) : 0;
    row->speed.bits = (row->speed.bits * before + one->speed.bits * n) / (before + n);
    row->speed.docid_bits = (row->speed.docid_bits * before + one->speed.docid_bits * n) / (before + n);
    row->speed.n += one->speed.n;
}

static int measure_length(codec_report *r, const gx_bench_lists *all, uint32_t log2n, const uint32_t *lists, uint32_t n)
{
    const size_t first = r->n_rows;
    int code = 0;
    cli_note("lists of up to 2^%u docids", log2n);
    for (uint32_t i = 0; i < OF_A_LENGTH && i < n && code == 0; ++i) {
        const uint32_t list = lists[n < OF_A_LENGTH ? i : (2 * i + 1) * (uint64_t)n / (2 * OF_A_LENGTH)];
        const uint64_t begins[] = {0, all->begins[list + 1] - all->begins[list]};
        const gx_bench_lists one = {all->values + all->begins[list], begins, 1, (const uint32_t[]){0}, 1, true};
        const size_t before = r->n_rows;
        code = measure_lists(r, &one, DATA_DOCIDS, log2n, true);
        for (size_t k = before; i && code == 0 && k < r->n_rows; ++k)
            add_speed(&r->rows[first + k - before], &r->rows[k]);
        r->n_rows = i ? before : r->n_rows;
    }
    return code;
}

static int measure_by_length(codec_report *r, const gx_bench_lists *all)
{
    uint32_t *const lists = malloc((all->n_lists + 1ull) * sizeof *lists);
    int code = lists ? 0 : cli_fail(GX_ENOMEM, "no memory for %u lists", all->n_lists);
    for (uint32_t log2n = LEAST_LENGTH; log2n <= 32 && code == 0; ++log2n) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < all->n_lists; ++i) {
            const uint64_t length = all->begins[i + 1] - all->begins[i];
            if (length > UINT64_C(1) << (log2n - 1) && length <= UINT64_C(1) << log2n)
                lists[n++] = i;
        }
        if (n)
            code = measure_length(r, all, log2n, lists, n);
    }
    free(lists);
    if (code == 0 && r->n_rows == 0)
        return cli_fail(GX_EUSAGE, "no list is to be measured: %s has none of more than %u postings", r->index,
                        1u << (LEAST_LENGTH - 1));
    return code;
}

static int count_sizes(codec_report *r, const gx_bench_lists *lists, codec_figure figure, codec_format format)
{
    sizes s;
    gx_error err = {0};
    const sizes_figure which = figure == FIGURE_RECURSION ? SIZES_RECURSION : SIZES_ELIASFANO;
    if (sizes_count(&s, which, lists, &err) != GX_OK)
        return cli_fail_error(&err);
    return sizes_print(&s, which, r, format);
}

static int measure_index(codec_report *r, const cli_args *a, codec_figure figure, codec_format format, bool speeds)
{
    const bool table4 = cli_given(a, "table") && cli_count(a, "table") == 4;
    bench_lists lists;
    gx_error err = {0};
    const uint32_t min_df = speeds && !figure ? GX_MAX_BLOCK : 1, sample = (uint32_t)cli_count(a, "sample");
    r->index = cli_text(a, "index");
    r->log = cli_text(a, "queries");
    if (cli_given(a, "documents")) {
        r->index = "a generated collection of GOV2's shape";
        cli_note("making a collection of %u documents", (uint32_t)cli_count(a, "documents"));
        if (bench_lists_make(&lists, (uint32_t)cli_count(a, "documents"), table4 ? sample : 0, r->seed, min_df, &err) !=
            GX_OK)
            return cli_fail_error(&err);
    } else if (bench_lists_read(&lists, r->index, r->log, sample, (uint32_t)cli_count(a, "seed"), min_df, &err) !=
               GX_OK) {
        return cli_fail_error(&err);
    }
    r->n_queries = lists.n_queries;
    r->n_lists = lists.docids.n_lists;
    int code = 0;
    if (figure == FIGURE_LENGTHS)
        code = measure_by_length(r, &lists.docids);
    else if (figure)
        code = count_sizes(r, &lists.docids, figure, format);
    else
        code = measure_lists(r, &lists.docids, DATA_DOCIDS, 0, speeds);
    if (code == 0 && !figure)
        code = measure_lists(r, &lists.tfs, DATA_TFS, 0, speeds);
    bench_lists_free(&lists);
    return code;
}

/* Whether the lists are an index's, of a file or made. */
static bool has_lists(const cli_args *a)
{
    return cli_given(a, "index") || cli_given(a, "documents");
}

/* Sizes that do not exist, and flags that say nothing of what is asked for, are refused before
 * anything is measured; 0, or the exit code. */
static int check_flags(const cli_args *a, uint64_t table, codec_figure figure)
{
    const bool of_index = figure > FIGURE_3;
    int code = 0;
    if (cli_switch(a, "list"))
        return BENCH_REFUSE(a, "--list", "the list of codecs measures nothing", "table", "figure", "index", "queries",
                            "sample", "model", "from", "to", "step", "seed", "engine", "plot");
    if (figure && table)
        return cli_usage(a, "--table and --figure: one of them");
    if (cli_given(a, "index") && cli_given(a, "documents"))
        return cli_usage(a, "--index and --documents: one of them");
    if ((table == 2 || table == 4) && !has_lists(a))
        return cli_usage(a, "Table %d is of an index's lists: --index=INDEX, or --documents=N", (int)table);
    if (of_index && !has_lists(a))
        return cli_usage(a, "--figure=%s is of an index's lists: --index=INDEX, or --documents=N",
                         cli_text(a, "figure"));
    if (figure == FIGURE_RECURSION || figure == FIGURE_ELIASFANO) {
        code = BENCH_REFUSE(a, figure == FIGURE_RECURSION ? "--figure=recursion" : "--figure=elias-fano",
                            "sizes are counted, of forms of its own", "codecs", "engine", "plot", "from", "to", "step",
                            "model");
        if (code != 0)
            return code;
    }
    if (figure == FIGURE_LENGTHS && cli_given(a, "plot"))
        return cli_usage(a, "--figure=lengths and --plot: Figure 3 alone is drawn");
    if ((table == 1 || table == 3 || figure == FIGURE_3) && has_lists(a))
        return cli_usage(a, "Tables 1 and 3 and Figure 3 are of lists drawn at random, not of an index's");
    if (cli_given(a, "queries") && !cli_given(a, "index"))
        return cli_usage(a, "--queries: whose terms' lists? --index=INDEX");
    if (cli_given(a, "sample") && !cli_given(a, "queries") && !(table == 4 && cli_given(a, "documents")))
        return cli_usage(a, "--sample: of which log's queries? --queries=LOG");
    if (has_lists(a))
        code = BENCH_REFUSE(a, cli_given(a, "index") ? "--index" : "--documents",
                            "an index's lists are as they are, not drawn at random", "model", "from", "to", "step");
    else if (table == 1)
        code = BENCH_REFUSE(a, "--table=1", "Table 1 is of lists of 2^16 and 2^25 integers, of both models", "model",
                            "from", "to", "step");
    else if (table == 3)
        code = BENCH_REFUSE(a, "--table=3", "Table 3 is of Uniform lists of every length", "model", "step");
    if (code == 0 && (table == 1 || table == 2))
        code = BENCH_REFUSE(a, table == 1 ? "--table=1" : "--table=2",
                            "plots are of speeds, and the table has sizes alone", "plot");
    if (code != 0)
        return code;
    if (cli_count(a, "from") > cli_count(a, "to"))
        return cli_usage(a, "--from is beyond --to");
    return 0;
}

static int run(const cli_args *a)
{
    codec_report r = {.seed = cli_count(a, "seed")};
    const codec_format format = (codec_format)cli_choice(a, "format");
    const uint64_t table = cli_given(a, "table") ? cli_count(a, "table") : 0;
    const codec_figure figure = cli_given(a, "figure") ? (codec_figure)(cli_choice(a, "figure") + 1) : FIGURE_NONE;
    all_methods(&r);
    int code = cli_given(a, "codecs") ? keep_methods(a, &r, cli_text(a, "codecs")) : 0;
    bench_plot_force(cli_switch(a, "force"));
    if (code != 0 || (code = check_flags(a, table, figure)) != 0)
        return code;
    if (cli_switch(a, "list"))
        return codec_print_list(&r, format);
    if (cli_given(a, "plot") && (code = bench_plot_dir(cli_text(a, "plot"))) != 0)
        return code;
    const char *const model = cli_text(a, "model");
    bool models[2] = {strcmp(model, "clustered") != 0, strcmp(model, "uniform") != 0};
    uint32_t from = (uint32_t)cli_count(a, "from"), to = (uint32_t)cli_count(a, "to"),
             step = (uint32_t)cli_count(a, "step");
    if (table == 1) {
        from = 16, to = 25, step = 9;
    } else if (table == 3 || figure == FIGURE_3) {
        models[1] = models[1] && cli_given(a, "model");
        step = cli_given(a, "step") ? step : 1;
    }
    const bool speeds = table != 1 && table != 2 && figure != FIGURE_RECURSION && figure != FIGURE_ELIASFANO;
    if (!gx_simd_choose()) {
        gx_error err;
        gx_isa_fail_override(&err);
        return cli_fail_error(&err);
    }
    if (speeds && (code = open_gpu(a, &r)) != 0)
        return code;
    if (table == 3 && !r.gpu)
        cli_warn("no GPU is measured, and Table 3 is how many times faster one is: it has no factors");
    code = has_lists(a) ? measure_index(&r, a, figure, format, speeds)
                        : measure_synthetic(&r, models, from, to, step, (uint32_t)cli_count(a, "seed"), speeds);
    if (code == 0 && (speeds || table)) {
        if (format == FORMAT_JSON || (table == 0 && (figure != FIGURE_3 || format == FORMAT_TABLE)))
            code = codec_print_rows(&r, format);
        else if (table == 1)
            codec_print_table1(&r, format);
        else if (table == 2)
            codec_print_table2(&r, format);
        else if (table == 3)
            codec_print_table3(&r, format, from, to);
        else if (table == 4)
            codec_print_table4(&r, format);
        else
            codec_print_figure3(&r);
    }
    if (code == 0 && cli_given(a, "plot"))
        code = codec_plot(&r, cli_text(a, "plot"));
    free(r.rows);
    return code;
}

static const cli_flag flags[] = {
    {"list", 0, CLI_SWITCH, NULL, NULL, "measure nothing, and list the codecs; see List"},
    {"codecs", 0, CLI_TEXT, "NAME,..", NULL,
     "measure only these codecs, separated by commas. Without this flag, all of them"},
    {"model", 0, CLI_CHOICE, "both|uniform|clustered", "both",
     "how the integers of the lists are drawn: evenly, or in clusters as in real lists. Table 3 has `uniform` alone, "
     "and "
     "so has Figure 3 without this flag"},
    {"from", 0, CLI_COUNT, "N", "16", "the shortest lists have 2^`N` integers", .min = 11, .max = 27},
    {"to", 0, CLI_COUNT, "N", "25", "the longest lists have at most 2^`N` integers", .min = 11, .max = 27},
    {"step", 0, CLI_COUNT, "N", "9",
     "each list is 2^`N` times as long as the one before it. Table 3 takes 1, and so does Figure 3 without this flag",
     .min = 1, .max = 16},
    {"index", 0, CLI_TEXT, "INDEX", NULL, "measure the lists of this index, docids and term frequencies, instead"},
    {"documents", 0, CLI_COUNT, "N", NULL,
     "measure the lists of a collection of GOV2's shape with `N` documents instead, which is made as `gpuidx bench "
     "generate` does; Table 4 then has the lists of `--sample` queries of its own. GOV2 has 25205179; its postings "
     "take 12 bytes each here",
     .min = 1000, .max = 4e9},
    {"queries", 0, CLI_TEXT, "LOG", NULL,
     "with `--index`: only the lists of the terms in this query log, each as often as the log has its term"},
    {"sample", 0, CLI_COUNT, "N", "1000", "with `--queries`: take `N` queries of the log, drawn at random; 0: all",
     .max = UINT32_MAX},
    {"seed", 0, CLI_COUNT, "N", "1",
     "the seed of the random numbers. The same seed gives the same lists; 1 gives the sizes that the paper has",
     .max = UINT32_MAX},
    {"table", 0, CLI_COUNT, "N", NULL,
     "print a table as Mallia et al. (CIKM 2019) have it: 1: sizes; 2: sizes of the lists of `--index`; 3: speeds of "
     "the "
     "GPU and of one core; 4: speeds on the lists of `--index`",
     .min = 1, .max = 4},
    {"figure", 0, CLI_CHOICE, FIGURES, NULL,
     "print the numbers of a figure. `3`: theirs, decoding speed by the length of the list. Of Ding et al. (WWW 2009), "
     "with `--index`: `recursion`: sizes of PForDelta with one width a list, by levels of recursion, counted without "
     "writing it (their Figure 3); `lengths`: decoding speed of an index's own lists by length (their Figure 4). "
     "`elias-fano`: sizes of whole lists by Elias-Fano, beside blocks with their ends and heads"},
    {"engine", 0, CLI_CHOICE, "auto|gpu|cpu", "auto",
     "which decoders to measure. `auto`: the CPU's, and the GPU's where there is a GPU; `gpu`: both, and fail where "
     "there "
     "is none; `cpu`: the CPU's"},
    {"format", 0, CLI_CHOICE, "table|json|csv", "table",
     "how the report is printed. `json` always has all that was measured"},
    {"plot", 0, CLI_TEXT, "DIR", NULL,
     "also draw speed by length (Figure 3) and speed by size into the folder `DIR`, as PNG and SVG; needs gnuplot"},
    BENCH_FORCE_FLAG,
    {NULL},
};

static const cli_section sections[] = {
    {"Columns",
     "  encode     one core encodes, d-gaps and term frequencies\n"
     "  integers   one core decodes d-gaps, or term frequencies\n"
     "  docids     one core decodes docids, with their sums\n"
     "  to memory  the GPU decodes, and writes what it has decoded\n"
     "  kept       the GPU decodes into registers, as a query does\n"
     "  in L2      the same, with lists that fit into the GPU's cache\n"
     "  GB/s       what decoding docids (or term frequencies) to memory reads and\n"
     "             writes, beside copy, the memory's own speed in the same run\n"
     "\n"
     "A core decodes block by block into a buffer that stays in its cache. BP32, SIMD-BP, VarintGB and StreamVByte are "
     "here to compare with; no index can use them."},
    {"Lists of an index",
     "With `--index`, sizes count every list once, with the table of where its blocks end. Speeds are those of the "
     "lists "
     "one behind another, in the order and as often as the log of `--queries` has their terms; without a log, of all "
     "lists of 1,024 postings and more, once each. The GPU decodes all of them in one launch, as it does a batch of "
     "queries; the zeros that fill the last block of each list are not counted. BP32, SIMD-BP, VarintGB and "
     "StreamVByte "
     "take a list as a whole, without blocks. Of a collection the lists are those of all its parts, as they are "
     "stored: with the postings of deleted documents.\n"
     "\n"
     "Sizes are those of what gpuidx writes. Table 1 alone counts the last block of GPU-VByte as the encoder of the "
     "paper packs it. In Table 4, as in the paper, `docids` are d-gaps, and `summed up` are docids; factors are "
     "against "
     "BP32, and for codecs of whole bytes against VarintGB, on one core of this machine."},
    {"List",
     "`--list` prints for each codec its name; the `id` that it has in an index (none: an index cannot use it); the "
     "length of its blocks; `slack bits`, which a decoder may read behind a block, and ignores; whether single "
     "integers "
     "can be decoded; how the CPU decodes it (`yes`: to integers; `docids`: also sums them up; `find`: also finds the "
     "first docid from some docid on without decoding the block); whether this build decodes it on the GPU; of "
     "codecs of whole bytes, their place in the taxonomy of Stepanov et al. (CIKM 2011): where the descriptor bits lie "
     "that tell lengths (`split` over an integer's bytes, `packed` beside each integer, in a `group` for several), how "
     "they tell them (`unary`, `binary`), and the codec's names in the literature; and where it was published."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx-bench codecs", "Sizes and speeds of all codecs on lists of 2^16 and 2^25 integers."},
    {"gpuidx-bench codecs --table=1 --format=csv", "The sizes of Table 1 of Mallia et al. (CIKM 2019)."},
    {"gpuidx-bench codecs --figure=3 --plot=plots", "Decoding speeds of lists of 2^16, 2^17, .. 2^25 integers, and "
                                                    "a plot of them."},
    {"gpuidx-bench codecs --figure=recursion --index=corpus.gx --queries=log.txt --sample=0",
     "PForDelta by levels of recursion, of the lists that a log reads."},
    {"gpuidx-bench codecs --figure=lengths --index=corpus.gx --codecs=pfordelta",
     "How fast lists of each length are decoded, each alone."},
    {"gpuidx-bench codecs --table=2 --documents=2520518", "Their sizes on lists of GOV2's shape, a tenth as long."},
    {"gpuidx-bench codecs --table=2 --index=corpus.gx", "Sizes of all lists of an index."},
    {"gpuidx-bench codecs --table=4 --index=corpus.gx --queries=log.txt", "Decoding speeds of the lists of 1,000 "
                                                                          "queries' terms."},
    {NULL},
};

const cli_command cmd_bench_codecs = {
    .name = "codecs",
    .summary = "measure codecs, and print the papers' tables",
    .synopsis = "[OPTIONS]",
    .description = "Measures how small codecs make lists of integers and how fast they decode them: bits for each "
                   "integer, and millions of integers per second, of one CPU core and of the GPU where there is one. "
                   "All that is decoded is compared with the original before it is timed. The lists are drawn as Anh "
                   "and Moffat do it: rising integers up to 2^29, or up to 2^31 for lists of 2^26 and more.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .run = run,
};
