/* codec_report.h: what `gpuidx bench codecs` has measured, and how it is told: the rows themselves,
 * the paper's Tables 1 to 4 and Figure 3 (Mallia et al., CIKM 2019), as text, CSV or JSON
 * (codec_report.c), and plots by gnuplot (codec_plot.c).
 */
#ifndef GX_TOOLS_BENCH_CODECS_CODEC_REPORT_H
#define GX_TOOLS_BENCH_CODECS_CODEC_REPORT_H

#include <stdio.h>

#include "tools/bench/codecs/codec_timing.h"

#define MAX_CODEC_METHODS 64

/* A codec or a baseline. */
typedef struct codec_method {
    const gx_codec *codec;
    const gx_baseline *baseline;
    const char *name, *title, *source;
    bool paper; /* the codec by the kernels of its paper, on the GPU alone */
} codec_method;

/* What a row was measured on. */
typedef enum codec_data { DATA_UNIFORM, DATA_CLUSTERED, DATA_DOCIDS, DATA_TFS } codec_data;

typedef struct codec_row {
    const codec_method *method;
    codec_data data;
    uint32_t log2n; /* of a synthetic list; else 0 */
    gx_codec_speed speed;
} codec_row;

typedef struct codec_report {
    codec_method methods[MAX_CODEC_METHODS];
    uint32_t n_methods;
    codec_row *rows;
    size_t n_rows, max_rows;
    const char *index, *log;     /* whose lists; or NULL */
    uint32_t n_queries, n_lists; /* of them */
    uint64_t seed;
    bool gpu;
    char gpu_name[128];
    double read_gbs, mixed_gbs, copy_gbs; /* the GPU's memory, in this run */
} codec_report;

typedef enum codec_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV } codec_format;

const char *codec_data_name(codec_data data); /* "uniform", ... */
/* or NULL */
const codec_row *codec_row_find(const codec_report *r, const char *method, codec_data data, uint32_t log2n);
bool codec_on_gpu(const codec_method *m);

/* The machine, the GPU, and whose lists are measured, in lines. */
void codec_print_setup(const codec_report *r);
/* The codecs; all rows. 0, or the exit code. */
int codec_print_list(const codec_report *r, codec_format format);
int codec_print_rows(const codec_report *r, codec_format format);
/* The paper's; FORMAT_TABLE or FORMAT_CSV. Table 3: lists of 2^from to 2^to. */
void codec_print_table1(const codec_report *r, codec_format format);
void codec_print_table2(const codec_report *r, codec_format format);
void codec_print_table3(const codec_report *r, codec_format format, uint32_t from, uint32_t to);
void codec_print_table4(const codec_report *r, codec_format format);
void codec_print_figure3(const codec_report *r);

/* Draw speed by length, and speed by size, into the folder, as PNG and SVG; 0, or the exit code. */
int codec_plot(const codec_report *r, const char *dir);

#endif
