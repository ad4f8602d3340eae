/* codec_plot.c: gnuplot scripts that hold their data, and what gnuplot makes of them. */
#include <stdio.h>

#include "tools/bench/codecs/codec_report.h"
#include "tools/bench/common.h"
#include "tools/cli/cli.h"

static bool has_data(const codec_report *r, codec_data data)
{
    for (size_t i = 0; i < r->n_rows; ++i)
        if (r->rows[i].data == data)
            return true;
    return false;
}

/* The least and the most that is drawn along an axis. */
typedef struct span {
    double least, most;
} span;

static void extend_span(span *s, double x)
{
    s->least = s->most == 0 || x < s->least ? x : s->least;
    s->most = x > s->most ? x : s->most;
}

/* Room round what would be a single point; gnuplot finds every other range by itself, and warns of
 * this. */
static void print_ranges(FILE *f, span x, span y)
{
    if (x.most - x.least < 0.01)
        fprintf(f, "set xrange [%.3f:%.3f]\n", x.least - 1, x.most + 1);
    if (y.most < y.least * 1.01)
        fprintf(f, "set yrange [%.3f:%.3f]\n", y.least / 10, y.most * 10);
}

static double gpu_speed(const codec_row *row)
{
    return row->speed.gpu_integers.memory;
}

/* Write DIR/NAME.gp by body, which draws once for each terminal, and run it. */
typedef void draw_fn(FILE *f, const codec_report *r, codec_data data);
static int draw(const codec_report *r, codec_data data, const char *dir, const char *what, draw_fn *series,
                draw_fn *body)
{
    static const char *const terminals[][2] = {{"pngcairo size 1100,700", "png"}, {"svg size 1100,700", "svg"}};
    char name[64];
    int code = 0;
    snprintf(name, sizeof name, "%s-%s", what, codec_data_name(data));
    FILE *const f = bench_script_begin(dir, name, &code);
    if (!f)
        return code;
    series(f, r, data);
    for (int t = 0; t < 2; ++t) {
        fprintf(f, "set terminal %s\nset output '%s.%s'\nplot ", terminals[t][0], name, terminals[t][1]);
        body(f, r, data);
        fputs("\nunset output\n", f);
    }
    return bench_script_end(dir, name);
}

static void put_title(FILE *f, const codec_report *r, const char *what)
{
    bench_put_title(f, what,
                    &(bench_subject){r->index ? r->index : "generated lists", r->log, r->gpu ? r->gpu_name : NULL});
}

/* ---- speed by length: Figure 3 ---- */

static void length_series(FILE *f, const codec_report *r, codec_data data)
{
    char title[96];
    fputs("set logscale y\n"
          "set xlabel 'length of the list, log2'\n"
          "set ylabel 'millions of integers a second'\n"
          "set key outside right\n"
          "set grid\n"
          "set xtics 1\n"
          "set format y '%g'\n",
          f);
    snprintf(title, sizeof title, "Decoding d-gaps, %s, by length", codec_data_name(data));
    put_title(f, r, title);
    span lengths = {0}, speeds = {0};
    for (uint32_t i = 0; i < r->n_methods; ++i) {
        fprintf(f, "$m%u << END\n", i);
        for (size_t k = 0; k < r->n_rows; ++k) {
            const codec_row *row = &r->rows[k];
            const double speed = (gpu_speed(row) > 0 ? gpu_speed(row) : row->speed.integers) / 1e6;
            if (row->method != &r->methods[i] || row->data != data)
                continue;
            fprintf(f, "%u %.1f\n", row->log2n, speed);
            extend_span(&lengths, row->log2n);
            extend_span(&speeds, speed);
        }
        fputs("END\n", f);
    }
    print_ranges(f, lengths, speeds);
}

static void length_plot(FILE *f, const codec_report *r, codec_data data)
{
    (void)data;
    for (uint32_t i = 0; i < r->n_methods; ++i)
        fprintf(f, "%s$m%u using 1:2 with linespoints title '%s'", i ? ", " : "", i, r->methods[i].title);
}

/* ---- speed by size ---- */

/* The rows of the longest list. */
static uint32_t longest(const codec_report *r, codec_data data)
{
    uint32_t most = 0;
    for (size_t i = 0; i < r->n_rows; ++i)
        most = r->rows[i].data == data && r->rows[i].log2n > most ? r->rows[i].log2n : most;
    return most;
}

static void size_series(FILE *f, const codec_report *r, codec_data data)
{
    const uint32_t log2n = longest(r, data);
    char length[32] = "", title[96];
    if (log2n)
        snprintf(length, sizeof length, ", lists of 2^%u", log2n);
    fputs("set logscale y\n"
          "set xlabel 'bits an integer'\n"
          "set ylabel 'millions of integers a second'\n"
          "set grid\n"
          "set format y '%g'\n"
          "set key outside right\n",
          f);
    snprintf(title, sizeof title, "Decoding %s, %s%s, by size", data == DATA_TFS ? "tfs" : "d-gaps",
             codec_data_name(data), length);
    put_title(f, r, title);
    span bits = {0}, speeds = {0};
    for (int gpu = 0; gpu < 2; ++gpu) {
        fprintf(f, "$%s << END\n", gpu ? "gpu" : "cpu");
        for (size_t k = 0; k < r->n_rows; ++k) {
            const codec_row *row = &r->rows[k];
            const double speed = (gpu ? gpu_speed(row) : row->speed.integers) / 1e6;
            if (row->data != data || row->log2n != log2n || speed == 0)
                continue;
            fprintf(f, "%.3f %.1f %s\n", row->speed.bits, speed, row->method->title);
            extend_span(&bits, row->speed.bits);
            extend_span(&speeds, speed);
        }
        fputs("END\n", f);
    }
    print_ranges(f, bits, speeds);
}

static bool any_on_gpu(const codec_report *r, codec_data data)
{
    for (size_t i = 0; i < r->n_rows; ++i)
        if (r->rows[i].data == data && gpu_speed(&r->rows[i]) > 0)
            return true;
    return false;
}

static void size_plot(FILE *f, const codec_report *r, codec_data data)
{
    fputs("$cpu using 1:2 with points pt 6 lc 1 title 'one core', $cpu using 1:2:3 with labels left offset 0.7,0 "
          "font ',9' notitle",
          f);
    if (any_on_gpu(r, data))
        fputs(", $gpu using 1:2 with points pt 7 lc 2 title 'GPU', $gpu using 1:2:3 with labels left offset 0.7,0 "
              "font ',9' notitle",
              f);
}

int codec_plot(const codec_report *r, const char *dir)
{
    int code = bench_plot_dir(dir);
    for (codec_data data = DATA_UNIFORM; data <= DATA_TFS && code == 0; ++data) {
        if (!has_data(r, data))
            continue;
        if (data == DATA_UNIFORM || data == DATA_CLUSTERED)
            code = draw(r, data, dir, "figure3", length_series, length_plot);
        if (code == 0)
            code = draw(r, data, dir, "size", size_series, size_plot);
    }
    return code;
}
