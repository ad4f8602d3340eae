/* replay.h: run a query log through an engine and time it, in memory that does not depend on the
 * length of the log.
 *
 *   log --take--> batch --plan--> plans --search--> keys --format--> lines --deliver--> run file
 *                      \____________ latency ___________/
 *
 * One thread at a time takes a batch. Each thread then answers its batch on its own, with its own
 * session. The lines of the batches are written in the order of the log.
 *
 * A replay passes over the log up to three times or more:
 *   warm up   answers the first queries and measures nothing
 *   measure   answers all queries, once or several times (`runs`)
 *   verify    answers queries in other ways and compares the answers
 *
 * The latency of a query ends when the answers of its batch are in host memory. It begins when the
 * batch has been taken, or, at a fixed rate (open loop), at the moment at which the query was due,
 * so that it includes waiting.
 */
#ifndef GX_QUERY_EVAL_REPLAY_H
#define GX_QUERY_EVAL_REPLAY_H

#include "query/eval/histogram.h"
#include "query/eval/query_log.h"
#include "query/exec.h"

typedef struct gx_replay_options {
    const char *log;     /* a path; "-" (stdin) can be read only once: one run, no warm-up, no verifying */
    gx_log_options read; /* unique is set when a run is written: one with an id twice cannot be evaluated */
    gx_query_options query;
    gx_query_kind kind;            /* GX_QUERY_TEXT or GX_QUERY_BOOLEAN */
    uint32_t batch, threads, runs; /* each >= 1 */
    uint64_t warmup;               /* queries to warm up with */
    double rate;                   /* queries a second; 0: the next as soon as a thread is free */
    bool skip_bad;                 /* skip malformed lines and impossible queries; false: fail */
    const char *run_path, *tag;    /* the TREC run to write; run_path NULL: none */
    uint64_t verify_every;         /* n: verify every n-th query; 0: none */
    gx_engine *other;              /* another engine on the same index to verify with, or NULL */
    const gx_mask *other_mask;     /* the documents of query.mask, for `other`; NULL if query.mask is NULL */
    /* Called under a lock, from any thread; each may be NULL. say receives a message: a refused
     * query, a difference, or an engine's message. progress receives the kind of pass and the
     * number of queries that it has answered. */
    void (*say)(void *user, const char *text);
    void (*progress)(void *user, const char *doing, uint64_t n_queries);
    void *user;
} gx_replay_options;

/* Seconds of the stages, summed over threads. */
typedef struct gx_replay_stages {
    double read, plan, search, write;
    double wait; /* until a query is due (open loop), another thread has read, or earlier batches are written */
} gx_replay_stages;

typedef struct gx_replay_report {
    uint64_t queries;         /* queries answered in all measured runs */
    uint64_t results;         /* documents in all answers */
    uint64_t without_results; /* queries without results */
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
    uint64_t verified;                          /* queries answered again */
    uint64_t other_differs, exhaustive_differs; /* queries whose docids, score bits or number of results differ */
} gx_replay_report;

/* Replay a log and fill *out, which is too large for the stack. Several replays may share the
 * engine. opt->query.cancel is also called between batches. GX_EUSAGE, GX_EINPUT (with file and
 * line, or for a log without any query), and the statuses of reading, searching and writing. */
gx_status gx_replay(gx_engine *en, const gx_replay_options *opt, gx_replay_report *out, gx_error *err);

#endif
