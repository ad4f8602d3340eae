/* bench_codecs.c: `gpuidx bench codecs`: the papers' tables of codecs, measured on this machine. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codecs/bench.h"
#include "codecs/gpu_list.h"
#include "codecs/synthetic.h"
#include "tools/cli.h"

#define MAX_METHODS 64

/* A codec or a baseline. */
typedef struct method {
    const gx_codec *codec;
    const gx_baseline *baseline;
    const char *name, *title, *source;
} method;

typedef struct row {
    const method *method;
    gx_model model;
    uint32_t log2n;
    gx_codec_speed speed;
} row;

typedef struct bench {
    method methods[MAX_METHODS];
    uint32_t n_methods;
    row *rows;
    size_t n_rows, max_rows;
    bool gpu, speeds;
    char gpu_name[128];
    double read_gbs, mixed_gbs, copy_gbs; /* the GPU's memory; 0: no GPU */
} bench;

static const char *model_name(gx_model m) { return m == GX_UNIFORM ? "uniform" : "clustered"; }

/* ---- what to measure ---- */

/* The paper's order, then the others. */
static void all_methods(bench *b)
{
    static const char *const first[] = {"bp32", "simdbp128", "gpubp128", "gpubp256", "varintgb", "streamvbyte", "gpuvbyte128", "gpuvbyte1024"};
    method all[MAX_METHODS];
    uint32_t n = 0;
    for (const gx_baseline *const *p = gx_baselines; *p; p++)
        all[n++] = (method){NULL, *p, (*p)->name, (*p)->title, (*p)->source};
    for (const gx_codec *const *p = gx_codecs; *p && n < MAX_METHODS; p++)
        all[n++] = (method){*p, NULL, (*p)->name, (*p)->title, (*p)->source};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        for (uint32_t j = 0; j < n; j++) {
            if (strcmp(all[j].name, first[i]) == 0)
                b->methods[b->n_methods++] = all[j];
        }
    }
    const uint32_t n_first = b->n_methods;
    for (uint32_t j = 0; j < n; j++) {
        bool known = false;
        for (uint32_t i = 0; i < n_first; i++)
            known |= b->methods[i].name == all[j].name;
        if (!known)
            b->methods[b->n_methods++] = all[j];
    }
}

/* Keep those of the list "a,b"; 0, or the exit code. */
static int keep_methods(const cli_args *a, bench *b, const char *list)
{
    method kept[MAX_METHODS];
    uint32_t n = 0;
    while (*list) {
        const size_t len = strcspn(list, ",");
        uint32_t i = 0;
        while (i < b->n_methods && (strlen(b->methods[i].name) != len || strncmp(b->methods[i].name, list, len) != 0))
            i++;
        if (i == b->n_methods)
            return cli_usage(a, "there is no codec %.*s; `gpuidx bench codecs --list` has their names", (int)len, list);
        if (n < MAX_METHODS)
            kept[n++] = b->methods[i];
        list += len + (list[len] == ',');
    }
    memcpy(b->methods, kept, n * sizeof *kept);
    b->n_methods = n;
    return 0;
}

static int open_gpu(const cli_args *a, bench *b)
{
    const char *engine = cli_text(a, "engine");
    if (strcmp(engine, "cpu") == 0)
        return 0;
    gx_error err = {0};
#ifdef GX_CUDA
    if (gx_gpu_name(b->gpu_name, sizeof b->gpu_name, &err) == GX_OK) {
        double read, mixed, copy;
        const uint64_t bytes = 512u << 20;
        gx_status st = gx_gpu_memory_speed(bytes, 0, 9, &read, &err);
        if (st == GX_OK)
            st = gx_gpu_memory_speed(bytes / 4, bytes, 9, &mixed, &err);
        if (st == GX_OK)
            st = gx_gpu_memory_speed(bytes, bytes, 9, &copy, &err);
        if (st != GX_OK)
            return cli_fail_error(&err);
        b->gpu = true;
        b->read_gbs = read / 1e9;
        b->mixed_gbs = mixed / 1e9;
        b->copy_gbs = copy / 1e9;
        return 0;
    }
#else
    (void)b;
    snprintf(err.text, sizeof err.text, "this gpuidx was built without CUDA");
#endif
    if (strcmp(engine, "gpu") == 0)
        return cli_fail(GX_ENOGPU, "%s", err.text);
    cli_note("no GPU is measured: %s", err.text);
    return 0;
}

/* ---- measuring ---- */

static int measure_list(bench *b, gx_model model, uint32_t log2n, const uint32_t *docids)
{
    gx_error err = {0};
    for (uint32_t i = 0; i < b->n_methods; i++) {
        row r = {.method = &b->methods[i], .model = model, .log2n = log2n};
        const uint64_t n = 1ull << log2n;
        const gx_status st = r.method->codec ? gx_bench_codec(r.method->codec, docids, n, b->speeds, b->gpu, &r.speed, &err)
                                             : gx_bench_baseline(r.method->baseline, docids, n, b->speeds, &r.speed, &err);
        if (st != GX_OK)
            return cli_fail_error(&err);
        b->rows[b->n_rows++] = r;
    }
    return 0;
}

/* Lists of 2^from, 2^(from + step), .. 2^to integers. Those of 2^26 and more come from [0, 2^31), as 2^29 would be full. */
static int measure(bench *b, const bool models[2], uint32_t from, uint32_t to, uint32_t step, uint32_t seed)
{
    b->max_rows = (size_t)2 * 32 * b->n_methods;
    b->rows = calloc(b->max_rows, sizeof *b->rows);
    uint32_t *const docids = malloc((sizeof *docids << to) + 4096);
    gx_error err = {0};
    int code = 0;
    if (!b->rows || !docids)
        code = cli_fail(GX_ENOMEM, "no memory for lists of 2^%u integers", to);
    for (int m = GX_UNIFORM; m <= GX_CLUSTERED && code == 0; m++) {
        for (uint32_t log2n = from; models[m] && log2n <= to && code == 0; log2n += step) {
            cli_note("%s list of 2^%u integers", model_name((gx_model)m), log2n);
            if (gx_synthetic_list((gx_model)m, seed, 1u << log2n, log2n < 26 ? 1u << 29 : 1u << 31, docids, &err) != GX_OK)
                code = cli_fail_error(&err);
            else
                code = measure_list(b, (gx_model)m, log2n, docids);
        }
    }
    free(docids);
    return code;
}

static const row *find_row(const bench *b, const char *name, gx_model model, uint32_t log2n)
{
    for (size_t i = 0; i < b->n_rows; i++) {
        const row *r = &b->rows[i];
        if (r->model == model && r->log2n == log2n && strcmp(r->method->name, name) == 0)
            return r;
    }
    return NULL;
}

/* ---- printing ---- */

enum { TABLE, JSON, CSV };

static void print_machine(const bench *b)
{
    if (b->gpu)
        printf("%s; memory: read %.0f GB/s, copy %.0f GB/s, read 1 : write 4 %.0f GB/s\n", b->gpu_name, b->read_gbs, b->copy_gbs, b->mixed_gbs);
}

/* A number of millions a second, or a dash. */
static void print_millions(double speed) { speed > 0 ? printf(" %9.0f", speed / 1e6) : printf(" %9s", "-"); }

static void print_rows_table(const bench *b)
{
    print_machine(b);
    printf("%-14s %-9s %4s %6s %9s %9s %9s", "millions/s", "model", "n", "bits", "encode", "integers", "docids");
    if (b->gpu)
        printf(" %9s %9s %9s %9s %9s %6s", "GPU int", "GPU doc", "int kept", "doc kept", "doc in L2", "GB/s");
    putchar('\n');
    for (size_t i = 0; i < b->n_rows; i++) {
        const row *r = &b->rows[i];
        const gx_codec_speed *s = &r->speed;
        printf("%-14s %-9s 2^%-2u %6.2f", r->method->title, model_name(r->model), r->log2n, s->bits);
        const double speeds[] = {s->encode, s->integers, s->docids, s->gpu_integers, s->gpu_docids, s->gpu_integers_kept, s->gpu_docids_kept, s->gpu_docids_l2};
        for (size_t k = 0; k < (b->gpu ? 8u : 3u); k++)
            print_millions(speeds[k]);
        if (b->gpu)
            s->gpu_gbs > 0 ? printf(" %6.0f", s->gpu_gbs) : printf(" %6s", "-");
        putchar('\n');
    }
}

static void print_rows_csv(const bench *b)
{
    puts("method,model,log2n,bits,encode,integers,docids,gpu_integers,gpu_docids,gpu_integers_kept,gpu_docids_kept,gpu_docids_l2,gpu_gbs");
    for (size_t i = 0; i < b->n_rows; i++) {
        const row *r = &b->rows[i];
        const gx_codec_speed *s = &r->speed;
        printf("%s,%s,%u,%.4f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.1f\n", r->method->title, model_name(r->model), r->log2n, s->bits,
               s->encode, s->integers, s->docids, s->gpu_integers, s->gpu_docids, s->gpu_integers_kept, s->gpu_docids_kept,
               s->gpu_docids_l2, s->gpu_gbs);
    }
}

static int print_rows_json(const bench *b)
{
    json_t *list = json_array();
    for (size_t i = 0; i < b->n_rows; i++) {
        const row *r = &b->rows[i];
        const gx_codec_speed *s = &r->speed;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "codec", r->method->name, "method",
                            r->method->title, "model", model_name(r->model), "log2n", (int)r->log2n, "bits", s->bits, "encode", s->encode,
                            "integers", s->integers, "docids", s->docids, "gpu_integers", s->gpu_integers, "gpu_docids", s->gpu_docids,
                            "gpu_integers_kept", s->gpu_integers_kept, "gpu_docids_kept", s->gpu_docids_kept, "gpu_docids_l2",
                            s->gpu_docids_l2, "gpu_gbs", s->gpu_gbs));
    }
    json_t *root = json_pack("{s:i, s:s*, s:f, s:f, s:f, s:o}", "schema", 1, "gpu", b->gpu ? b->gpu_name : NULL, "read_gbs", b->read_gbs,
                             "copy_gbs", b->copy_gbs, "mixed_gbs", b->mixed_gbs, "rows", list);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) : NULL;
    json_decref(root);
    if (!text)
        return cli_fail(GX_ENOMEM, "no memory for the report");
    puts(text);
    free(text);
    return 0;
}

/* Table 1: bits an integer; sparse 2^16, dense 2^25. */
static void print_table1(const bench *b, int format)
{
    puts(format == CSV ? "method,uniform_sparse,uniform_dense,clustered_sparse,clustered_dense"
                       : "bits an integer   uniform           clustered\n"
                         "                  sparse   dense    sparse   dense");
    for (uint32_t i = 0; i < b->n_methods; i++) {
        printf(format == CSV ? "%s" : "%-16s", b->methods[i].title);
        for (int k = 0; k < 4; k++) {
            const row *r = find_row(b, b->methods[i].name, k < 2 ? GX_UNIFORM : GX_CLUSTERED, k % 2 ? 25 : 16);
            printf(format == CSV ? ",%.2f" : " %8.2f", r ? r->speed.paper_bits : 0.0);
        }
        putchar('\n');
    }
}

/* Table 3: how many times faster the GPU is than one core, by length; d-gaps, Uniform. */
static void print_table3(const bench *b, int format, uint32_t from, uint32_t to)
{
    static const char *const against[] = {"bp32", "varintgb", "simdbp128", "streamvbyte"};
    static const char *const gpu[] = {"gpubp128", "gpubp256", "gpuvbyte128", "gpuvbyte1024"};
    printf(format == CSV ? "against,method" : "%-12s %-14s", "against", "method");
    for (uint32_t k = from; k <= to; k++)
        printf(format == CSV ? ",2^%u" : "    2^%-2u", k);
    putchar('\n');
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 2; j++) {
            const char *const name = gpu[i % 2 * 2 + j];
            const row *first = find_row(b, against[i], GX_UNIFORM, from), *second = find_row(b, name, GX_UNIFORM, from);
            if (!first || !second)
                continue;
            printf(format == CSV ? "%s,%s" : "%-12s %-14s", first->method->title, second->method->title);
            for (uint32_t k = from; k <= to; k++) {
                const double slow = find_row(b, against[i], GX_UNIFORM, k)->speed.integers, fast = find_row(b, name, GX_UNIFORM, k)->speed.gpu_integers;
                printf(format == CSV ? ",%.2f" : " %7.2f", slow > 0 ? fast / slow : 0.0);
            }
            putchar('\n');
        }
    }
}

/* Figure 3: decoding speed, d-gaps, in millions of integers a second, by length. GPU codecs on the GPU where there is one. */
static double figure3_speed(const row *r) { return r->speed.gpu_integers > 0 ? r->speed.gpu_integers : r->speed.integers; }

static void print_figure3(const bench *b, FILE *f)
{
    fputs("method,model,log2n,where,millions_a_second\n", f);
    for (size_t i = 0; i < b->n_rows; i++) {
        const row *r = &b->rows[i];
        fprintf(f, "%s,%s,%u,%s,%.1f\n", r->method->title, model_name(r->model), r->log2n, r->speed.gpu_integers > 0 ? "gpu" : "cpu", figure3_speed(r) / 1e6);
    }
}

/* Figure 3 and sizes against speeds, as data and by gnuplot as PNG and SVG. */
static int plot(const bench *b, const char *dir)
{
    char path[4096];
    int code = 0;
    if (mkdir(dir, 0777) != 0 && access(dir, W_OK) != 0)
        return cli_fail(GX_EIO, "cannot write to %s", dir);
    for (int model = GX_UNIFORM; model <= GX_CLUSTERED; model++) {
        if (b->n_rows == 0 || !find_row(b, b->methods[0].name, (gx_model)model, b->rows[0].log2n))
            continue;
        snprintf(path, sizeof path, "%s/figure3-%s.gp", dir, model_name((gx_model)model));
        FILE *const f = cli_open_output(path, false, &code);
        if (!f)
            return code;
        fprintf(f, "set logscale y\nset xlabel 'length of the list, log2'\nset ylabel 'millions of integers a second'\n"
                   "set key outside right\nset grid\nset title 'Decoding, d-gaps, %s'\n", model_name((gx_model)model));
        for (uint32_t i = 0; i < b->n_methods; i++) {
            fprintf(f, "$m%u << END\n", i);
            for (size_t k = 0; k < b->n_rows; k++) {
                const row *r = &b->rows[k];
                if (r->method == &b->methods[i] && r->model == (gx_model)model)
                    fprintf(f, "%u %.3f %.1f\n", r->log2n, r->speed.bits, figure3_speed(r) / 1e6);
            }
            fputs("END\n", f);
        }
        static const char *const terminals[][2] = {{"pngcairo size 1100,700", "png"}, {"svg size 1100,700", "svg"}};
        for (int t = 0; t < 2; t++) {
            fprintf(f, "set terminal %s\nset output '%s/figure3-%s.%s'\nplot ", terminals[t][0], dir, model_name((gx_model)model), terminals[t][1]);
            for (uint32_t i = 0; i < b->n_methods; i++)
                fprintf(f, "%s$m%u using 1:3 with linespoints title '%s'", i ? ", " : "", i, b->methods[i].title);
            fputs("\nunset output\n", f);
        }
        if ((code = cli_close_output(f, path)) != 0)
            return code;
        char command[4200];
        snprintf(command, sizeof command, "gnuplot '%s'", path);
        if (strchr(dir, '\'') || system(command) != 0)
            cli_warn("gnuplot did not draw %s; it is there to be drawn", path);
    }
    return 0;
}

static void list_codecs(const bench *b, int format)
{
    if (format == CSV)
        puts("name,title,id,block_len,random_access,gpu,source");
    else
        printf("%-14s %-14s %3s %6s %7s %4s  %s\n", "name", "title", "id", "block", "random", "GPU", "source");
    for (uint32_t i = 0; i < b->n_methods; i++) {
        const method *m = &b->methods[i];
        bool gpu = false;
#ifdef GX_CUDA
        gpu = m->codec && gx_codec_on_gpu(m->codec);
#endif
        if (m->codec)
            printf(format == CSV ? "%s,%s,%u,%u,%s,%s,\"%s\"\n" : "%-14s %-14s %3u %6u %7s %4s  %s\n", m->name, m->title, m->codec->id,
                   m->codec->block_len, m->codec->random_access ? "yes" : "no", gpu ? "yes" : "no", m->source);
        else
            printf(format == CSV ? "%s,%s,,,%s,%s,\"%s\"\n" : "%-14s %-14s   -      - %7s %4s  %s\n", m->name, m->title, "no", "no", m->source);
    }
}

static int run(const cli_args *a)
{
    bench b = {0};
    const int format = cli_choice(a, "format");
    all_methods(&b);
    int code = cli_given(a, "codecs") ? keep_methods(a, &b, cli_text(a, "codecs")) : 0;
    if (code != 0)
        return code;
    if (cli_switch(a, "list")) {
        list_codecs(&b, format);
        return 0;
    }
    const uint64_t table = cli_given(a, "table") ? cli_count(a, "table") : 0, figure = cli_given(a, "figure") ? cli_count(a, "figure") : 0;
    if (table == 2 || table == 4)
        return cli_usage(a, "tables 2 and 4 are of an index's lists, which are not measured yet");
    if (figure != 0 && figure != 3)
        return cli_usage(a, "the paper has one figure of speeds, --figure=3");
    const char *const model = cli_text(a, "model");
    bool models[2] = {strcmp(model, "clustered") != 0, strcmp(model, "uniform") != 0};
    uint32_t from = (uint32_t)cli_count(a, "from"), to = (uint32_t)cli_count(a, "to"), step = (uint32_t)cli_count(a, "step");
    if (table == 1) {
        models[0] = models[1] = true;
        from = 16, to = 25, step = 9;
    } else if (table == 3 || figure == 3) {
        models[0] = true;
        models[1] = models[1] && figure == 3 && cli_given(a, "model");
        step = 1;
    }
    if (from > to)
        return cli_usage(a, "--from is beyond --to");
    b.speeds = table != 1;
    if (b.speeds && (code = open_gpu(a, &b)) != 0)
        return code;
    code = measure(&b, models, from, to, step, (uint32_t)cli_count(a, "seed"));
    if (code == 0) {
        if (table == 1 && format != JSON)
            print_table1(&b, format);
        else if (table == 3 && format != JSON)
            print_table3(&b, format, from, to);
        else if (figure == 3 && format == CSV)
            print_figure3(&b, stdout);
        else if (format == JSON)
            code = print_rows_json(&b);
        else if (format == CSV)
            print_rows_csv(&b);
        else
            print_rows_table(&b);
    }
    if (code == 0 && cli_given(a, "plot"))
        code = plot(&b, cli_text(a, "plot"));
    free(b.rows);
    return code;
}

static const cli_flag flags[] = {
    {"list", 0, CLI_SWITCH, NULL, NULL, "list the codecs instead: name, id, block length, random access, source"},
    {"codecs", 0, CLI_TEXT, "NAME,..", NULL, "measure only these"},
    {"model", 0, CLI_CHOICE, "both|uniform|clustered", "both", "how the integers are drawn"},
    {"from", 0, CLI_COUNT, "N", "16", "lists of 2^`N` integers and more", .min = 11, .max = 27},
    {"to", 0, CLI_COUNT, "N", "25", "lists of at most 2^`N` integers", .min = 11, .max = 27},
    {"step", 0, CLI_COUNT, "N", "9", "2^`N` times longer from list to list", .min = 1, .max = 16},
    {"seed", 0, CLI_COUNT, "N", "1", "of the random numbers; the paper's sizes come with 1", .max = UINT32_MAX},
    {"table", 0, CLI_COUNT, "N", NULL, "the paper's Table 1 (sizes) or 3 (GPU against one core)", .min = 1, .max = 4},
    {"figure", 0, CLI_COUNT, "N", NULL, "the paper's Figure 3: speed by length", .min = 3, .max = 3},
    {"engine", 0, CLI_CHOICE, "auto|gpu|cpu", "auto", "measure the GPU too; `gpu`: fail without one"},
    {"format", 0, CLI_CHOICE, "table|json|csv", "table", "of the report"},
    {"plot", 0, CLI_TEXT, "DIR", NULL, "draw Figure 3 into `DIR`, as PNG and SVG (needs gnuplot)"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx bench codecs", "Sizes and speeds of all codecs on lists of 2^16 and 2^25 integers."},
    {"gpuidx bench codecs --table=1 --format=csv", "The sizes of Table 1 of Mallia et al. (CIKM 2019)."},
    {"gpuidx bench codecs --figure=3 --plot=plots", "Decoding speeds of lists of 2^16, 2^17, .. 2^25 integers, and a plot of them."},
    {NULL},
};

const cli_command cmd_bench_codecs = {
    .name = "bench codecs",
    .summary = "measure codecs, and print the papers' tables",
    .synopsis = "[OPTIONS]",
    .description = "Measures every codec on lists drawn as Anh and Moffat do (Uniform and Clustered, in [0, 2^29]; from 2^26 integers on "
                   "in [0, 2^31]): bits an integer, and millions of integers a second of one CPU core and, where there is one, of the GPU. "
                   "Everything decoded is compared with the original before it is timed.\n\n"
                   "`encode`, `integers` and `docids` are one core's, decoding block by block into a buffer that stays in cache. `GPU int` and "
                   "`GPU doc` write to memory and start with a cold cache; `kept` stays in registers, as in a query; `GB/s` is what `GPU doc` "
                   "reads and writes, to be compared with the memory's own speed in the first line. BP32, SIMD-BP, VarintGB and StreamVByte are "
                   "the CPU's codecs to compare with; an index cannot use them.",
    .examples = examples,
    .flags = flags,
    .run = run,
};
