/* list_sizes.h: `gpuidx-bench codecs --figure=recursion|elias-fano`: the lists of an index by the models of
 * size_models.h, beside what blocks of our codecs take. */
#ifndef GX_TOOLS_BENCH_CODECS_LIST_SIZES_H
#define GX_TOOLS_BENCH_CODECS_LIST_SIZES_H

#include "tools/bench/codecs/codec_report.h"

typedef enum sizes_figure {
    SIZES_RECURSION, /* Figure 3 of Ding, He, Yan and Suel (WWW 2009) */
    SIZES_ELIASFANO  /* whole lists, and blocks with their ends and heads */
} sizes_figure;

/* One form of the lists, and its bits a docid. */
typedef struct sizes_row {
    char form[64];
    double bits;
} sizes_row;

enum { SIZES_MAX_ROWS = 12 };
typedef struct sizes {
    sizes_row rows[SIZES_MAX_ROWS];
    uint32_t n_rows;
    uint64_t n; /* postings */
} sizes;

/* Of each list once. GX_ENOMEM. */
gx_status sizes_count(sizes *out, sizes_figure figure, const gx_bench_lists *docids, gx_error *err);
/* r says whose lists they are. 0, or the exit code. */
int sizes_print(const sizes *s, sizes_figure figure, const codec_report *r, codec_format format);

#endif
