/* replay_state.h: what the files of a replay share: the state of a pass over the log, and its threads'.
 *
 *   replay.c            opens threads, and runs passes: to warm up, to measure, to verify
 *   replay_batches.c    threads take batches of queries from the log
 *   replay_answers.c    they plan and answer them, and deliver the answers
 *   replay_service.c    a service answers them
 *   replay_verify.c     answers are compared with those found in other ways
 */
#ifndef GX_QUERY_REPLAY_REPLAY_STATE_H
#define GX_QUERY_REPLAY_REPLAY_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/clock.h"
#include "query/engine/session.h"
#include "query/log/log_memory.h"
#include "query/order/ordered.h"
#include "query/replay/arrivals.h"
#include "query/replay/replay.h"
#include "query/replay/run_file.h"
#include "query/schedule/service.h"

typedef enum gx_replay_kind { GX_REPLAY_WARM_UP, GX_REPLAY_MEASURE, GX_REPLAY_VERIFY } gx_replay_kind;

/* The lines of a batch that wait until the batches before it are written. */
typedef struct gx_replay_pending {
    gx_run_text lines;
    uint32_t n; /* queries of the batch; 0: no batch waits here */
} gx_replay_pending;

/* One pass over the log: the data that the threads share. */
typedef struct gx_replay_pass {
    const gx_replay_options *opt;
    gx_engine *en;
    const gx_index *ix;
    gx_replay_report *report;
    uint32_t batch, max_k;
    gx_sort sort; /* of no levels: results come by score */
    gx_run *run;  /* NULL: no run is written */

    gx_replay_kind kind;
    uint64_t begin;    /* ns */
    bool open_loop;    /* queries arrive at times of their own */
    uint64_t deadline; /* ns; 0: none */

    gx_log_memory *kept; /* the log, where it has been read; else NULL */
    uint64_t n_queries;  /* of a run of a log that has been read */

    /* Guards the next eight members. Its holder may wait for a query to be due. A thread that needs
     * both locks takes this one first. */
    pthread_mutex_t log_lock;
    gx_log *log;        /* NULL: the log is kept */
    uint64_t next_kept; /* the number of the next query */
    gx_log_query next;  /* has_next: the log's next query, which nobody has taken */
    bool has_next, ended;
    uint64_t n_read, taken; /* queries and batches taken */
    gx_arrival_times arrivals;

    pthread_mutex_t lock;     /* guards the members that follow */
    pthread_cond_t moved;     /* a batch has been delivered, or the pass has failed */
    uint64_t delivered;       /* batches */
    gx_replay_pending *waits; /* [n_waits]: batch number seq waits at seq % n_waits */
    uint64_t n_waits;
    bool writing; /* a thread is writing the batches that wait */
    uint64_t n_done, n_shown;
    gx_status status;
    gx_error err;

    gx_service *service; /* NULL: the threads answer their batches themselves */
    uint64_t borrowed;   /* batches that a thread fills, or has filled */
} gx_replay_pass;

typedef struct gx_replay_query {
    size_t id, text; /* offsets in the batch's bytes */
    size_t id_len, len;
    size_t filter, filter_len; /* likewise; filter_len 0: none */
    size_t first_term;         /* of vectors: its terms in the batch's */
    uint32_t n_terms;
    bool weighted;      /* it is a vector, and has no text */
    uint64_t line, due; /* due: ns of the monotonic clock; 0: it has no time of its own */
} gx_replay_query;

/* A term of a vector. */
typedef struct gx_replay_term {
    size_t at, len; /* in the batch's bytes */
    float weight;
} gx_replay_term;

/* One thread with its sessions and its batch. With a service there are more: each holds a batch that
 * is in the service, and only the first ones have a thread and sessions. */
typedef struct gx_replay_worker {
    gx_replay_pass *r;
    uint32_t number; /* of its thread */
    gx_session *session, *other, *exhaustive;
    gx_engine *exhaustive_on; /* the engine of the session `exhaustive` */
    uint64_t seq;
    uint32_t n;
    gx_replay_query *queries;      /* [batch] */
    gx_plan *plans;                /* [batch] */
    gx_filter **filters;           /* [batch] of the plans; NULL: none */
    gx_hits *hits, *again;         /* [batch] */
    uint64_t *keys, *keys_again;   /* [batch * max_k], */
    double *scores;                /* [batch * max_k] with a prior, whose scores keys do not hold; else NULL */
    uint64_t *docids;              /* [max_k] likewise */
    uint32_t *highs, *highs_again; /* and of a wide collection these (gx_hits); else NULL */
    char *bytes;                   /* ids and texts */
    size_t n_bytes, max_bytes;
    gx_replay_term *terms;    /* [n_terms] of all its vectors */
    gx_weighted_term *vector; /* [max_vector] those of one */
    size_t n_terms, max_terms, max_vector;
    gx_run_text lines;
    gx_replay_stages stages;
    uint64_t results, without_results, impossible, late, matches;
    uint64_t verified, other_differs, exhaustive_differs, exact_results, found_results;
    gx_histogram latency;
    gx_search_stats work_before;

    struct gx_replay_worker *home;     /* the worker with the thread that fills the batch */
    struct gx_replay_worker *free;     /* of a home: workers without a batch, a list by `next`, */
    struct gx_replay_worker *answered; /* and those whose batch is answered and not yet counted */
    uint32_t n_in_service;             /* of a home: workers whose batch is in the service */
    struct gx_replay_worker *next;
    gx_service_job *jobs;  /* [batch] NULL: there is no service */
    gx_service_job **sent; /* [batch] &jobs[i] */
    uint64_t *ends;        /* [batch] ns, when each was answered */
    uint64_t begin;        /* ns, when the batch had been taken */
    atomic_uint n_unanswered;
    bool waited_for; /* the batch's thread waits until it is answered */
} gx_replay_worker;

static inline uint64_t gx_replay_now(void)
{
    return gx_clock_nanoseconds(CLOCK_MONOTONIC);
}

/* ---- replay_batches.c ---- */

/* The pass has failed; all threads end. Returns false. */
bool gx_replay_fail(gx_replay_pass *r, gx_status st, const gx_error *err);
/* Hand a text to the caller, unless it is empty. */
void gx_replay_say(gx_replay_pass *r, const char *text);
/* Take the next batch. false: the log has ended, or the pass has failed. */
bool gx_replay_take(gx_replay_worker *w);
/* The batch's query i as the engines take it; its terms live until the next call. */
gx_status gx_replay_query_of(gx_replay_worker *w, uint32_t i, gx_query *out, gx_error *err);

/* ---- replay_answers.c; false: the pass has failed ---- */

/* Plan the batch; `session`, of engine `en`, finds the feedback documents. */
bool gx_replay_plan(gx_replay_worker *w, gx_session *session, gx_engine *en);
void gx_replay_free_plans(gx_replay_worker *w);
/* Search by the batch's plans; the answers go to keys and highs [n * max_k]. */
bool gx_replay_search(gx_replay_worker *w, gx_session *session, gx_hits *hits, uint64_t *keys, uint32_t *highs);
/* Count the answers. ends: when each query was answered; NULL: all at `end`. */
void gx_replay_count(gx_replay_worker *w, uint64_t begin, const uint64_t *ends, uint64_t end);
/* The lines of the run, if one is written. */
bool gx_replay_format(gx_replay_worker *w);
/* Deliver the batch's lines. They are written when all batches before have been written, by the
 * thread that delivers the last of those. The calling thread waits only if too many batches wait
 * already, so that one slow query does not stop the other threads. */
bool gx_replay_deliver(gx_replay_worker *w);
/* All of that, for a batch that has been taken. */
bool gx_replay_answer(gx_replay_worker *w);

/* ---- replay_service.c ---- */

/* Answer the planned batch by the service, and wait for it. */
bool gx_replay_search_by_service(gx_replay_worker *w);
/* Take batches, plan them, and hand them to the service, without waiting for their answers; then
 * wait for those that are left. */
void gx_replay_feed_service(gx_replay_worker *home);

/* ---- replay_verify.c ---- */

/* Answer a batch that has been taken in all ways, and count what differs. */
bool gx_replay_verify(gx_replay_worker *w);

#endif
