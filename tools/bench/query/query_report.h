/* query_report.h: what `gpuidx bench query` measures (query_measure.c), and how it is told: rows,
 * and Tables 2 and 3 of Ding et al. (WWW 2009), as text, CSV or JSON (query_report.c), and plots by
 * gnuplot (query_plot.c).
 */
#ifndef GX_TOOLS_BENCH_QUERY_QUERY_REPORT_H
#define GX_TOOLS_BENCH_QUERY_QUERY_REPORT_H

#include <stdio.h>

#include "engine/clock.h"
#include "query/engine/list_sizes.h"
#include "query/engine/session.h"
#include "tools/bench/data/collection.h"

enum { QUERY_PERCENTILES = 5 };
extern const double query_percentiles[QUERY_PERCENTILES];          /* 50, .. 99.9 */
extern const uint32_t query_percentile_samples[QUERY_PERCENTILES]; /* the fewest latencies of which it is told */
extern const char *const query_step_names[GX_N_STEPS], *const query_stage_names[4];

/* An engine that is measured, on one thread. */
typedef struct query_engine {
    const char *name; /* "cpu" or "gpu" */
    gx_engine *en;
    gx_session *session;
    double read_speed; /* of its memory, bytes a second, measured now: on the CPU by one core */
    gx_plan *plans;    /* [n queries] of the row under way: of a collection an engine's own, which may join parts */
    double plan_seconds;
} query_engine;

/* One way of answering all queries. */
typedef struct query_row {
    const query_engine *engine;
    gx_op op;
    uint32_t k, batch;
    gx_algorithm algorithm;
    uint32_t recursion;
    double seconds;       /* for all queries, the median run */
    double fixed_seconds; /* for as many of lists of a few postings, in as many parts */
    double plan_seconds;  /* before that */
    uint32_t n_latencies;
    double mean, percentiles[QUERY_PERCENTILES]; /* of a batch's latency, seconds, over all runs; 0: too few for it */
    gx_search_stats work;                        /* of one run */
    double touched;     /* postings of the blocks decoded, at the lists' mean, and those looked up; 0: not counted */
    double bytes;       /* payload of the blocks decoded, at the mean size of the lists' blocks; 0: not counted */
    double joules;      /* a query, on a GPU; 0: not measured */
    uint32_t different; /* answers that are not the exhaustive ones */
} query_row;

typedef struct query_text {
    char *text; /* [len] bytes; of a vector those of its terms */
    size_t len;
    gx_weighted_term *terms; /* [n_terms] of a vector, else NULL */
    uint32_t n_terms;
} query_text;

/* The index, the queries, and the answers of the row under way. */
typedef struct query_bench {
    const gx_index *ix;
    const gx_synth *synth; /* a generated collection, whose queries are its own; or NULL */
    char index[256];       /* what the index is called, for plots */
    const char *log;       /* the path of the queries, or NULL */
    query_text *texts;     /* [n], or NULL */
    uint32_t n;            /* queries */
    uint32_t runs;
    uint32_t pairs; /* terms whose pairs' thresholds were found beforehand */
    uint64_t seed;  /* of a generated collection */
    bool energy;    /* measure it */
    query_engine engines[2];
    uint32_t n_engines;
    gx_hits *hits, *want; /* [n]: the answers; the exhaustive ones of the last engine */
    uint64_t *keys, *want_keys;
    uint32_t *highs, *want_highs; /* of a wide collection, else NULL (query/exec/wide_hits.h) */
    gx_op op;                     /* of the plans */
    uint32_t k;
    query_row *rows;
    size_t n_rows, max_rows;
} query_bench;

const char *query_op_name(gx_op op);
const char *query_algorithm_name(gx_algorithm a);

/* ---- query_measure.c. Each returns GX_OK, or what an engine or memory says ---- */

/* A single core's memory: bytes a second read. */
gx_status query_core_read_speed(double *bytes_a_second, gx_error *err);

/* The engines' plans for op and k, and the exhaustive answers. */
gx_status query_plan_all(query_bench *b, gx_op op, uint32_t k, gx_error *err);
void query_free_plans(query_bench *b);

/* Compare the answers of one way with the exhaustive ones; then time it. */
gx_status query_measure(query_bench *b, const query_engine *e, gx_algorithm algorithm, uint32_t recursion,
                        uint32_t batch, query_row *row, gx_error *err);

/* Queries [i, i + m), as one batch. */
gx_status query_run(query_bench *b, const query_engine *e, uint32_t i, uint32_t m, double *seconds, gx_error *err);

/* Queries that are due `rate` times a second for `seconds`, whether or not earlier ones are
 * answered. All that are due go into one batch, of at most max_batch queries. */
typedef struct query_load {
    double rate, seconds;
    uint32_t max_batch;
} query_load;

/* latencies [max]: seconds from when each query was due to its answer; *n of them. */
gx_status query_offer_load(query_bench *b, const query_engine *e, const query_load *load, double *latencies,
                           uint32_t max, uint32_t *n, gx_error *err);

double query_quantile(double *sorted, uint32_t n, double q);
void query_sort(double *values, uint32_t n);

/* ---- query_report.c ---- */

typedef enum query_format { QUERY_TABLE, QUERY_JSON, QUERY_CSV } query_format;

void query_print_rows(const query_bench *b, query_format format);
/* Table 2: milliseconds a query, by operator. Table 3: shares of the steps. */
void query_print_table2(const query_bench *b, query_format format);
void query_print_table3(const query_bench *b, query_format format);
/* All rows, and that table (0: none); 0, or the exit code. */
int query_print_json(const query_bench *b, uint32_t table);

/* ---- query_plot.c, query_figure.c, query_recall.c. Each returns the exit code ---- */

/* Throughput against batch size, latency against rate, time against postings, into dir. Measures
 * what it draws. */
int query_plot(query_bench *b, const char *dir, const gx_op *ops, uint32_t n_ops, uint32_t k);

/* Intersection of two lists by levels of recursion: of equal length (Figure 6), or ratios: of
 * 200,000 integers with longer ones. dir: for a plot, or NULL. */
int query_figure(bool ratios, const char *gpu_name, uint32_t device, uint32_t seed, query_format format,
                 const char *dir);

/* The title of a plot of what was measured (bench_put_title). */
void query_put_title(FILE *f, const query_bench *b, const char *what, uint32_t k);

/* Recall against speed for series of settings of gx_approximate_read, of a GPU for terms that are left out alone, for
 * the k best, in batches on a GPU. dir: for a plot, or NULL. */
int query_recall(query_bench *b, uint32_t k, uint32_t batch, query_format format, const char *dir);

#endif
