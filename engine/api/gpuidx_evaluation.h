/* gpuidx_evaluation.h: query logs replayed and timed, answers judged. Part of gpuidx_advanced.h. */
#ifndef GPUIDX_EVALUATION_H
#define GPUIDX_EVALUATION_H

#include "gpuidx.h"
#include "gpuidx_logs.h"
#include "gpuidx_searching.h"
#include "gpuidx_service.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- replay: a query log through an engine, timed ---- */

/* When the queries of a replay arrive in an open loop, in which a query does not wait for the
 * answers to those before it. */
typedef enum gx_arrivals {
    GX_ARRIVALS_FIXED,   /* at equal distances */
    GX_ARRIVALS_POISSON, /* a Poisson process, as the requests of many independent users are */
    GX_ARRIVALS_TRACE    /* at the times that a file contains */
} gx_arrivals;

/* A query of a log. */
typedef struct gx_replay_question {
    const char *id, *text, *filter; /* [id_len], [len], [filter_len]; filter_len 0: it has no filter of its own */
    size_t id_len, len, filter_len;
} gx_replay_question;

typedef struct gx_replay_options {
    size_t size;
    const char *log;     /* a path; "-" (stdin) can be read only once: one run, no warm-up, no verifying */
    gx_log_options read; /* unique is set when a run is written: one with an id twice cannot be evaluated */
    gx_query_options query;
    gx_query_kind kind;            /* GX_QUERY_TEXT or GX_QUERY_BOOLEAN */
    uint32_t batch, threads, runs; /* each >= 1 */
    uint64_t warmup;               /* queries to warm up with */
    double rate;                   /* queries that arrive a second; 0: the next as soon as a thread is free */
    bool skip_bad;                 /* skip malformed lines and impossible queries; false: fail */
    const char *run_path, *tag;    /* the TREC run to write, and its last column; run_path NULL: none */
    bool force;                    /* replace a run that exists */
    uint64_t verify_every;         /* n: verify every n-th query; 0: none */
    gx_engine *other;              /* another engine on the same index to verify with, or NULL */
    const gx_mask *other_mask;     /* the documents of query.mask, for `other`; NULL if query.mask is NULL */
    /* Called under a lock, from any thread; each may be NULL. say receives a message: a refused
     * query, a difference, or an engine's message. progress receives the kind of pass and the
     * number of queries that it has answered. */
    void (*say)(void *user, const char *text);
    void (*progress)(void *user, const char *doing, uint64_t n_queries);
    void *user;
    const gx_rm3_options *rm3; /* expand each query; kind is GX_QUERY_TEXT then. NULL: do not */
    gx_arrivals arrivals;      /* how the queries of a rate follow each other; a trace needs no rate */
    /* The file of arrival times of GX_ARRIVALS_TRACE, else NULL: seconds, a number a line, not
     * falling. The first query arrives at once, whatever its time. If there is a rate, the times
     * are stretched so that the whole trace has this rate. */
    const char *trace;
    uint64_t seed;   /* of GX_ARRIVALS_POISSON */
    double deadline; /* seconds: count the queries whose latency is longer. 0: count none */
    /* Answer by a service of these options, which gx_replay opens; its CPU engine, or where it has
     * none its GPU engine, is the replay's. The threads then read, plan and submit. NULL: the
     * threads answer. */
    const gx_service_options *service;
    const gx_mask *service_mask; /* query.mask on the service's GPU engine, or NULL */
    /* Read the log into memory before the runs. Reading it is then no part of them, and no limit to
     * what many threads answer. It is always done with a rate or a trace. A log that is larger than
     * 1 GiB, has vectors or a malformed line, or is standard input, is read as the queries are
     * answered all the same. */
    bool in_memory;
    /* Queries of a run, from memory: the log begins again where it has fewer. GX_EUSAGE where the
     * log cannot be kept in memory, or a run is written and the log has fewer. 0: those of the log. */
    uint64_t queries;
    /* How id:@FILE is read in a query's own filter, and in the text of GX_QUERY_BOOLEAN, by any thread.
     * NULL: it is refused. */
    const gx_filter_options *filter_options;
    /* Answers come from elsewhere, such as a server; the replay has no engine then, and no service, mask, rm3 or
     * verifying. Each thread calls it with its batch: it adds the answers' lines of a run to *lines, in order.
     * GX_EINPUT: a query is at fault. NULL: the engine answers. */
    gx_status (*ask)(void *ask_user, uint32_t thread, const gx_replay_question *questions, uint32_t n,
                     struct gx_text *lines, gx_error *err);
    void *ask_user;
    /* The order of the results (gx_page.sort), which the threads make on the CPU; NULL: by score. A run's scores do
     * not fall then. GX_EUSAGE with a service, and where answers are not exact. */
    const char *sort;
    /* Also count all matches of each query by these facets (gx_count_facets_batch), as a page of results with figures
     * does; latencies then end behind that. GX_EUSAGE with a service, rm3, or answers from elsewhere. A prior, of
     * query.prior, is refused with these, too, and with an order and verifying. */
    const gx_facet *facets; /* [n_facets] */
    uint32_t n_facets;
} gx_replay_options;
#define GX_REPLAY_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_replay_options), NULL, GX_LOG_OPTIONS, GX_QUERY_OPTIONS, GX_QUERY_TEXT, 1, 1, 1, 0, 0, false, NULL,  \
            "gpuidx", false, 0, NULL, NULL, NULL, NULL, NULL, NULL, GX_ARRIVALS_FIXED, NULL, 0, 0, NULL, NULL, false,  \
            0, NULL, NULL, NULL, NULL, NULL, 0                                                                         \
    }
GX_API void gx_replay_options_init(gx_replay_options *o, size_t size);

/* Seconds of the stages, summed over threads. */
typedef struct gx_replay_stages {
    double read, plan, search, write;
    double count; /* of facets */
    double wait;  /* until a query is due (open loop), another thread has read, or earlier batches are written */
} gx_replay_stages;

typedef struct gx_replay_report {
    uint64_t queries;         /* queries answered in all measured runs */
    uint64_t results;         /* documents in all answers */
    uint64_t without_results; /* queries without results */
    uint64_t matches;         /* documents that match, of all answers, where facets are counted */
    uint64_t impossible;      /* queries skipped because no plan can be made of them */
    gx_log_counts log;        /* of one run */
    gx_log_form form;
    uint32_t batch;          /* queries a batch, which is less than asked for when k is large */
    double seconds;          /* of all measured runs, reading and writing included */
    double fastest, slowest; /* seconds of the fastest and the slowest run */
    double cpu_seconds;      /* CPU time of the process in all measured runs */
    gx_replay_stages stages;
    gx_search_stats work;                       /* the sessions' own counts and times */
    gx_session_memory memory;                   /* of the session that took most, before verifying */
    gx_histogram latency;                       /* ns */
    uint64_t late;                              /* queries whose latency is longer than the deadline */
    uint64_t verified;                          /* queries answered again */
    uint64_t other_differs, exhaustive_differs; /* queries whose docids, score bits or number of results differ */
    gx_service_counts service;                  /* of the measured runs; zero without a service */
    /* Where query does not ask for exact answers, of the queries verified: the results of exact answers, and
     * how many results are as good, which are those with at least the last one's score; their
     * quotient is the recall. exhaustive_differs counts answers of which a score is not exact. */
    uint64_t exact_results, found_results;
} gx_replay_report;

/* Answer the queries of a log and time them. *out takes a quarter of a MiB, too much for many
 * stacks. Several replays may share the engine. opt->query.cancel is also called between
 * batches. GX_EUSAGE (opt's size or values), GX_EINPUT (with file and line, or for a log without
 * any query), and the statuses of reading, searching and writing. en: NULL with opt->ask, else not. */
GX_API gx_status gx_replay(gx_engine *en, const gx_replay_options *opt, gx_replay_report *out, gx_error *err);

/* ---- judgements, runs and measures, by the definitions of trec_eval ---- */

typedef enum gx_trec_kind { GX_TREC_QRELS, GX_TREC_RUN } gx_trec_kind;

typedef struct gx_trec_row {
    const char *qid, *docno; /* NUL-terminated; the strings belong to the table */
    float value;             /* the relevance, an integer of at most 2^24 in magnitude, or the score */
    uint32_t line;           /* the line in the file, from 1 */
    double number;           /* the value as the file has it, in double precision */
} gx_trec_row;

typedef struct gx_trec_topic {
    const char *qid;
    size_t first, n; /* rows [first, first + n), n >= 1 */
} gx_trec_topic;

typedef struct gx_trec_table {
    gx_trec_row *rows;     /* [n_rows] by qid, then docno; no pair (qid, docno) occurs twice */
    gx_trec_topic *topics; /* [n_topics] by qid */
    size_t n_rows, n_topics;
    char *text; /* the bytes of the file, cut into fields; rows point into it */
} gx_trec_table;

/* Read the file at path ("-": stdin). An empty file gives an empty table. Free it with
 * gx_trec_free. GX_EINPUT, with "path:line: reason": a line has too few or too many fields, a
 * relevance or a score is not a number, or a query names a document twice. GX_ENOTFOUND, GX_EIO,
 * GX_ENOMEM. */
GX_API gx_status gx_trec_read(gx_trec_table *out, const char *path, gx_trec_kind kind, gx_error *err);
GX_API void gx_trec_free(gx_trec_table *t);

/* ---- several runs as one ---- */

typedef enum gx_fusion_method {
    GX_FUSION_RRF, /* a run adds w / (k + rank), rank 1 the best: by falling score, of equal ones as the lines stand */
    GX_FUSION_SUM  /* a run adds w times its score, normalised among those that it gives to the query's documents */
} gx_fusion_method;
typedef enum gx_fusion_norm {
    GX_FUSION_PLAIN,   /* s */
    GX_FUSION_MIN_MAX, /* (s - least) / (greatest - least); 0 where all are equal */
    GX_FUSION_Z_SCORE  /* (s - mean) / standard deviation of these scores; 0 where all are equal */
} gx_fusion_norm;

typedef struct gx_fusion_options {
    size_t size;
    gx_fusion_method method;
    gx_fusion_norm norm;   /* of GX_FUSION_SUM */
    double k;              /* of GX_FUSION_RRF; at least 0 */
    uint32_t most;         /* documents of a query that are kept, at least 1 */
    const double *weights; /* [n] one for each run, finite; NULL: 1 each */
} gx_fusion_options;
/* clang-format off */
#define GX_FUSION_OPTIONS {sizeof(gx_fusion_options), GX_FUSION_RRF, GX_FUSION_MIN_MAX, 60, 1000, NULL}
/* clang-format on */
#define GX_MAX_FUSED_RUNS 10000u

typedef struct gx_fused_row {
    const char *qid, *docno; /* of the runs, which must stay */
    double score;
} gx_fused_row;
typedef struct gx_fused {
    gx_fused_row *rows; /* [n_rows] by qid, then by falling score, then by docno in byte order */
    size_t n_rows;
} gx_fused;

/* Fuse n runs: a document's score is the sum of what the runs add that have it, in their order, in double precision.
 * opt NULL: the defaults. Free *out with gx_fused_free. GX_EUSAGE (options out of range), GX_EINPUT (a score that is
 * not finite, of GX_FUSION_SUM), GX_ENOMEM. */
GX_API gx_status gx_fuse(gx_fused *out, const gx_trec_table *runs, size_t n, const gx_fusion_options *opt,
                         gx_error *err);
GX_API void gx_fused_free(gx_fused *f);

/* One measure. The manual page gpuidx-eval(1) defines each. */
typedef struct gx_measure {
    const struct gx_measure_kind *kind;
    uint32_t cutoff; /* at least 1; of iprec_at_recall, recall in hundredths; UINT32_MAX: no cutoff */
    char name[32];   /* trec_eval's: "map", "P_10", "ndcg_cut_10" */
} gx_measure;

/* Parse a list of measures, such as "map,ndcg@10,recall@100". The spellings of trec_eval are
 * understood too: "P_5", "P.5,10,20", "ndcg_cut.10", "ndcg_cut_10"; so are "num_q" and "official",
 * which stands for trec_eval's usual measures. A measure that needs a cutoff and has none gets
 * those of trec_eval: 5, 10, 15, 20, 30, 100, 200, 500, 1000. *out receives an array of *n
 * measures, which the caller frees. GX_EUSAGE, GX_ENOMEM. */
GX_API gx_status gx_measures_parse(gx_measure **out, size_t *n, const char *list, gx_error *err);

/* Whether a measure is an integer that is summed, not averaged, over queries. */
GX_API bool gx_measure_is_count(const gx_measure *m);

/* Whether a measure has a meaning for one query; gm_map and num_q have none. */
GX_API bool gx_measure_is_of_one_query(const gx_measure *m);

/* The measures of a run: for every query, and over all queries. */
typedef struct gx_evaluation {
    size_t n_measures, n_queries;
    const char **qids; /* [n_queries] in byte order; the strings belong to the table of qrels */
    double *values;    /* [n_queries * n_measures] */
    double *all;       /* [n_measures] means (of gm_map the geometric one), or sums for counts */
    size_t n_missing;  /* queries that are in the qrels but not in the run */
    size_t n_unjudged; /* queries that are in the run but not in the qrels; they are left out */
} gx_evaluation;

/* Evaluate a run. With complete true, the means are over all queries of the qrels, and a query
 * without answers counts as 0. Else they are over the queries that both qrels and run have. A
 * document is relevant if its judgement is at least `level`. qrels outlives the evaluation; free
 * with gx_evaluation_free. GX_ENOMEM. */
GX_API gx_status gx_evaluate(gx_evaluation *out, const gx_trec_table *qrels, const gx_trec_table *run,
                             const gx_measure *measures, size_t n_measures, int32_t level, bool complete,
                             gx_error *err);
GX_API void gx_evaluation_free(gx_evaluation *ev);

/* ---- runs compared ---- */

/* The tests of one run against the first, two-sided and paired by query; d is a query's value in
 * the run less its value in the first run. The second is Fisher's randomisation test of the
 * means. */
typedef struct gx_paired_test {
    size_t better, worse; /* queries with d > 0, d < 0 */
    double t, t_p;        /* NaN for fewer than two queries; where every d is 0, t is 0 and p is 1 */
    double random_p;
    bool exact; /* random_p is of all assignments */
} gx_paired_test;

typedef struct gx_comparison {
    size_t n_runs, n_queries, n_measures;
    const char **qids;     /* [n_queries] in byte order; the strings belong to the table of qrels */
    double *values;        /* [n_runs][n_queries][n_measures] */
    double *all;           /* [n_runs][n_measures] */
    gx_paired_test *tests; /* [n_runs][n_measures]; those of run 0 are zero */
} gx_comparison;

/* Compare n_runs >= 1 evaluations of the same qrels and measures over the queries that all of them
 * have. Without such a query n_queries is 0 and nothing is tested. seed and trials, at least 1, are
 * of the randomisation test. Free with gx_comparison_free. GX_ENOMEM. */
GX_API gx_status gx_compare(gx_comparison *out, const gx_evaluation *runs, size_t n_runs, const gx_measure *measures,
                            uint64_t seed, uint64_t trials, gx_error *err);
GX_API void gx_comparison_free(gx_comparison *c);

/* ---- sweep: the judged queries of a log by several scorers and parameters ---- */

typedef struct gx_sweep_setting {
    gx_preset preset;
    float k1, b; /* NaN: the preset's own */
} gx_sweep_setting;

/* The members without a default in GX_SWEEP_OPTIONS are set by the caller. */
typedef struct gx_sweep_options {
    size_t size;
    const char *log;
    gx_log_options read;
    const gx_trec_table *qrels;
    const gx_measure *measures; /* [n_measures] */
    size_t n_measures;
    int32_t level; /* the least judgement of a relevant document; default 1 */
    /* true: judged queries that the log lacks, or that have no answers, count as 0; false: they are
     * left out. */
    bool complete;
    gx_query_options query;           /* preset, k1 and b are ignored */
    gx_query_kind kind;               /* GX_QUERY_TEXT or GX_QUERY_BOOLEAN */
    const gx_sweep_setting *settings; /* [n_settings] */
    size_t n_settings;
    uint32_t threads; /* >= 1; default 1 */
    /* Called under a lock, from any thread, with the number of settings that are done. May be
     * NULL. */
    void (*progress)(void *user, size_t n_done);
    void *user;
    /* [n_settings] the fields by which each setting searches, and how (gx_view_options); NULL, or NULL for a setting:
     * the index as it is. `field_scorings` NULL: all GX_FIELDS_BM25F. Such settings are searched by CPU engines. */
    const char *const *fields;
    const gx_field_scoring *field_scorings;
} gx_sweep_options;
#define GX_SWEEP_OPTIONS                                                                                               \
    {                                                                                                                  \
        sizeof(gx_sweep_options), NULL, GX_LOG_OPTIONS, NULL, NULL, 0, 1, false, GX_QUERY_OPTIONS, GX_QUERY_TEXT,      \
            NULL, 0, 1, NULL, NULL, NULL, NULL                                                                         \
    }
GX_API void gx_sweep_options_init(gx_sweep_options *o, size_t size);

typedef struct gx_sweep_report {
    double *values;      /* [n_settings][n_measures], over all queries */
    size_t *n_evaluated; /* [n_settings] queries that the values are over */
    size_t n_searched;   /* queries of the log that are judged */
    size_t n_unjudged;   /* queries of the log that are not, and are not searched */
    size_t n_missing;    /* judged queries that the log lacks */
} gx_sweep_report;

/* Search the judged queries of the log by each setting and evaluate the answers. Free *out with
 * gx_sweep_report_free. GX_EUSAGE (opt's size, no threads, bad options), GX_EINPUT (the log: a bad
 * line, a query id that occurs twice, a query that cannot be searched; each with file and line),
 * GX_ENOMEM, and what gx_search returns. */
GX_API gx_status gx_sweep(gx_sweep_report *out, gx_engine *en, const gx_sweep_options *opt, gx_error *err);
GX_API void gx_sweep_report_free(gx_sweep_report *r);

#ifdef __cplusplus
}
#endif
#endif
