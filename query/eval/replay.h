/* replay.h: a query log run through an engine and timed, in memory that does not depend on the
 * log's length.
 *
 *   log --take--> batch --plan--> plans --search--> keys --format--> lines --deliver--> run file,
 *   in the log's order
 *         |            \____________ latency ___________/                     |
 *         one thread at a time; the rest by every thread on its own, with its own session
 *
 * A replay is up to three kinds of pass over the log: warm up (its first queries, not measured),
 * measure (once or several times), verify (answer again in other ways, and compare).
 *
 * Latency of a query: from the moment that its batch has been taken until the batch's answers are
 * in host memory, or, at a fixed rate (open loop), from the moment that the query was due, so that
 * waiting counts.
 */
#ifndef GX_QUERY_EVAL_REPLAY_H
#define GX_QUERY_EVAL_REPLAY_H

#include "query/eval/histogram.h"
#include "query/eval/query_log.h"
#include "query/exec.h"

typedef struct gx_replay_options {
    const char *log; /* a path; "-" (stdin) can be read once only: one run, no warm-up, no verifying */
    gx_log_form form;
    gx_log_encoding encoding;
    gx_query_options query;
    gx_query_kind kind;            /* GX_QUERY_TEXT or GX_QUERY_BOOLEAN */
    uint32_t batch, threads, runs; /* each >= 1 */
    uint64_t warmup;               /* queries */
    double rate;                   /* queries a second; 0: as fast as answers come */
    bool skip_bad;                 /* pass over malformed lines and impossible queries rather than fail */
    const char *run_path, *tag;    /* the TREC run; NULL: none */
    uint64_t verify_every;         /* verify each so many-th query; 0: none */
    gx_engine *other;              /* another engine on the same index to verify with, or NULL */
    const gx_mask *other_mask;     /* the documents of query.mask, on that engine; NULL where query.mask is */
    /* Under a lock, from any thread; either may be NULL. say: a refused query, a difference, an
     * engine's message. */
    void (*say)(void *user, const char *text);
    void (*progress)(void *user, const char *doing, uint64_t n_queries);
    void *user;
} gx_replay_options;

/* Where time went, summed over threads. */
typedef struct gx_replay_stages {
    double read, plan, search, write;
    double wait; /* idle: until a query is due (open loop), another thread has read, earlier batches are written */
} gx_replay_stages;

typedef struct gx_replay_report {
    uint64_t queries;         /* answered in all measured runs */
    uint64_t results;         /* documents in all answers */
    uint64_t without_results; /* queries with none */
    uint64_t impossible;      /* passed over: too many terms */
    gx_log_counts log;        /* of one run */
    gx_log_form form;
    uint32_t batch;          /* as used: smaller than asked for when k is large */
    double seconds;          /* of all measured runs, reading and writing included */
    double fastest, slowest; /* run, in seconds */
    double cpu_seconds;      /* the process's time on processors meanwhile: what others do does not change it */
    gx_replay_stages stages;
    gx_search_stats work;                       /* the engines' own counts and times */
    gx_session_memory memory;                   /* of the session that took most, before verifying */
    gx_histogram latency;                       /* ns */
    uint64_t verified;                          /* queries answered again */
    uint64_t other_differs, exhaustive_differs; /* queries whose docids, score bits or number of results differ */
} gx_replay_report;

/* Fills *out (large: not for the stack). The engine is shared; opt->query.cancel is asked between
 * batches too. GX_EUSAGE, GX_EINPUT (naming file and line; a log without any query too), and what
 * reading, searching and writing can fail with. */
gx_status gx_replay(gx_engine *en, const gx_replay_options *opt, gx_replay_report *out, gx_error *err);

#endif
