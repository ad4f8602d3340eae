/* service_state.h: what the files of a service share: its state, and its threads'.
 *
 *   service.c            opens and closes it; takes queries from callers
 *   service_threads.c    threads take queries, and wait for them
 *   service_answers.c    they answer what they have taken
 *   service_watchdog.c   a thread whose GPU hangs is left, and another one takes its place
 *   service_guests.c     a caller answers its query itself
 *   service_chunks.c     many queries of one submission
 *   tickets.c            queries as texts, answers as documents
 */
#ifndef GX_QUERY_SCHEDULE_SERVICE_STATE_H
#define GX_QUERY_SCHEDULE_SERVICE_STATE_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>

#include "engine/clock.h"
#include "engine/files/atomic_file.h"
#include "engine/parallel.h"
#include "query/engine/session.h"
#include "query/schedule/cost_model.h"
#include "query/schedule/service.h"

#define GX_WORKER_LEFT UINT64_MAX

/* A plan's `cancel` while the watchdog may leave the thread that runs it. */
typedef struct gx_guarded_cancel {
    struct gx_worker *w;
    bool (*cancel)(void *user);
    void *user;
} gx_guarded_cancel;

/* A thread that answers. One whose GPU hangs is left behind: then another one has its place, and its
 * queries, and it touches nothing but what is its own. */
typedef struct gx_worker {
    gx_service *s;
    gx_processor p;
    uint32_t place; /* in gx_service.workers */
    gx_threads *thread;
    /* Since when the GPU has the thread's batch, in ns; 0: it has none; GX_WORKER_LEFT */
    atomic_uint_fast64_t since;
    atomic_bool returned;   /* of one that was left, from the GPU */
    struct gx_worker *next; /* of those that were left */
    atomic_bool visited;    /* of a guest: a caller has it */
    uint32_t max, absorbs;  /* most queries, and arrivals, at once */
    gx_session *session;    /* NULL: the GPU has failed */
    gx_session *fallback;   /* of a GPU thread: on the CPU; NULL until needed */
    uint32_t *slots;        /* [max] */
    gx_service_job **jobs;  /* [max] */
    gx_plan *plans;         /* [max] */
    gx_hits *hits;          /* [max] */
    uint64_t retry_at;      /* ns, when a GPU that failed is tried again */
    gx_service_job *chunks; /* taken, and not yet in `jobs` */
    bool turn;              /* chunks come before the scheduler's queries the next time */
    uint32_t n;             /* queries taken, */
    double ns;              /* which are predicted to take so long */
    bool inherited;         /* from a thread that was left */
    gx_plan_term *terms;    /* copies of those of the plans, and the keys that the GPU finds: */
    uint64_t *keys;         /* a job is the caller's again as soon as it is answered */
    size_t max_terms, max_keys;
    gx_guarded_cancel *cancels; /* [max] of the plans */
    pthread_mutex_t asking;     /* held while one of them is called, and while the thread is left */
} gx_worker;

struct gx_service {
    gx_service_options opt;
    gx_cost_profile profile;
    gx_worker **workers; /* [n_workers] those of the CPU first */
    uint32_t n_workers;
    gx_worker **guests; /* [n_guests] without threads: for the callers that answer themselves, opt.callers at once */
    uint32_t n_guests;
    gx_threads *watchdog;
    atomic_bool closing;

    alignas(64) atomic_uint changes;               /* of what waits; threads that poll read it all the time */
    alignas(64) _Atomic(gx_service_job *) arrived; /* the newest first */
    atomic_uint n_held;                            /* queries that are put and not taken */
    atomic_uint_fast64_t next_number, n_pending, n_refused, n_at_once;
    atomic_uint n_visits, n_draining;         /* guests that a caller has; calls of gx_service_drain */
    alignas(64) pthread_mutex_t chunk_lock;   /* of the next two; whoever needs `lock` too takes that first */
    gx_service_job *first_chunk, *last_chunk; /* the oldest, and the newest if there is one */
    atomic_uint n_chunked;                    /* queries in chunks */
    atomic_uint n_watching;                   /* CPU threads that sleep no longer than until a chunk is stale */
    atomic_bool gpu_lost;                     /* the scheduler sends the GPU nothing */
    alignas(64) atomic_uint n_sleeping[GX_N_PROCESSORS];
    atomic_uint n_polling[GX_N_PROCESSORS];

    alignas(64) pthread_mutex_t lock; /* of the rest */
    pthread_cond_t work[GX_N_PROCESSORS], room, drained, ended;
    pthread_cond_t retries; /* threads whose GPU has failed wait here: they do not take what `work` tells of */
    gx_worker *left;        /* threads that the GPU keeps, or has kept */
    uint32_t n_active;      /* threads that answer */
    uint32_t most_polling;
    bool watches;
    atomic_uint n_wait_for_room;
    gx_scheduler *scheduler;
    gx_service_job **jobs;    /* [opt.bound] by slot */
    gx_service_job *arriving; /* taken from `arrived`, and not yet put; the oldest first */
    double retry;             /* s, after the next failure of the GPU until it is tried again */
    gx_atomic_file decisions_file;
    FILE *decisions; /* its stream; NULL: none is written */
    bool is_started;
    gx_service_counts counts;
};

static inline uint64_t gx_service_now(void)
{
    return gx_clock_nanoseconds(CLOCK_MONOTONIC);
}

static inline struct timespec gx_service_time_at(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

static inline void gx_service_change(gx_service *s)
{
    atomic_fetch_add(&s->changes, 1);
}

static inline bool gx_worker_was_left(const gx_worker *w)
{
    return atomic_load(&w->since) == GX_WORKER_LEFT;
}

static inline bool gx_service_has_work(gx_service *s)
{
    return gx_scheduler_waiting(s->scheduler) || s->arriving || atomic_load(&s->arrived) || atomic_load(&s->n_chunked);
}

/* ---- service_threads.c: threads take queries and answer them ---- */

/* A thread, not yet started, without a session. NULL: no memory. */
gx_worker *gx_worker_open(gx_service *s, gx_processor p, uint32_t place);
void gx_worker_close(gx_worker *w); /* NULL is fine */

/* What a thread does, as gx_threads_start wants it: until the service closes, or the thread is left. */
void gx_worker_work(void *worker, uint32_t number);

/* Something has changed that may give processor p work for n threads: wake so many of those that
 * sleep, less those that poll. The caller holds the lock. */
void gx_service_wake(gx_service *s, gx_processor p, uint32_t n);

/* Put up to `most` queries that have arrived into the queues; returns how many. The caller holds the
 * lock. */
uint32_t gx_service_absorb(gx_service *s, uint64_t t, uint32_t most);

/* n queries no longer wait; n are no longer pending. The caller holds the lock. */
void gx_service_make_room(gx_service *s, uint32_t n);
void gx_service_count_done(gx_service *s, uint32_t n);

/* Take queries for the thread; it has answered what it took. The caller holds the lock. */
uint32_t gx_worker_take(gx_worker *w, double *ns);
void gx_worker_end_work(gx_worker *w);

/* The thread has the queries of one that was left: answer them. */
void gx_worker_answer_inherited(gx_worker *w);

/* Wait until all threads have ended, but those that were left: these once more for `hang`. */
void gx_service_end_threads(gx_service *s);

/* ---- service_answers.c: the answers of the queries that a thread has taken ---- */

/* Answer them: on the CPU one after the other. Where the thread was left meanwhile, they are another's. */
void gx_worker_answer(gx_worker *w);
void gx_service_set_answer(gx_service_job *job, gx_status st, const gx_error *err, uint32_t n, gx_processor by);

/* The GPU has failed on n queries. The scheduler sends it nothing until it is tried again. */
void gx_worker_lose_gpu(gx_worker *w, uint32_t n, const gx_error *err);

/* Put off the next attempt with a GPU that has failed, each time for longer. The caller holds the
 * lock. */
void gx_worker_put_off(gx_worker *w);

/* ---- service_watchdog.c: a GPU that may hang ---- */

/* Give the plans and hits of n queries copies of their own, so that the thread can be left. false: it
 * cannot. */
bool gx_worker_copy_batch(gx_worker *w, uint32_t n);

/* As gx_session_run, under the eyes of the watchdog. GX_EDEADLINE: the thread was left. */
gx_status gx_worker_run_watched(gx_worker *w, uint32_t first, uint32_t n, gx_error *err);

/* Look from time to time whether the GPU hangs: what the watchdog's thread does, with a gx_service. */
void gx_service_watch(void *service, uint32_t number);

/* Free the threads that were left and have returned. Returns whether all have. The caller holds the
 * lock. */
bool gx_service_free_left(gx_service *s);

/* The service closes: wait for the threads that were left, up to `hang`, and give up the others. The
 * caller holds the lock. */
void gx_service_give_up_left(gx_service *s);

/* ---- service_guests.c: callers that answer their queries themselves ---- */

/* Their places. GX_ENOMEM, and what gx_session_open returns. */
gx_status gx_service_open_guests(gx_service *s, gx_error *err);

/* Answer the n queries of a submission in its caller's thread, or put the query where it is one. false: nothing has
 * been done. */
bool gx_service_answer_here(gx_service *s, gx_service_job *const *jobs, uint32_t n);

/* A guest for the calling thread, or NULL; and the end of its visit, where there was one. */
gx_worker *gx_service_take_guest(gx_service *s);
void gx_service_leave_guest(gx_service *s, gx_worker *w);

/* A guest by which the caller helps to answer, once it has put n queries, or NULL; it answers about as many of those
 * that wait, the oldest first, and leaves. */
gx_worker *gx_service_take_helper(gx_service *s, uint32_t n);
void gx_service_help(gx_service *s, gx_worker *w, uint32_t n);

/* Answer a query by a guest. Of those that were put, n no longer wait, because guests answer them; n are answered. */
void gx_guest_answer(gx_worker *w, gx_service_job *job);
void gx_guests_take(gx_service *s, uint32_t n);
void gx_guests_done(gx_service *s, uint32_t n);

/* ---- service_chunks.c: many queries of one submission ---- */

/* Put n queries that have been described, in chunks, and answer some of them in the calling thread. false: they are
 * for the scheduler, and nothing has been done. */
bool gx_service_put_chunks(gx_service *s, gx_service_job *const *jobs, uint32_t n);

/* Take queries for the thread; gx_chunks_unpack then puts them into w->jobs. The caller of the first one holds the
 * lock, that of the second one need not. */
uint32_t gx_chunks_take(gx_worker *w, uint64_t now, double *ns);
void gx_chunks_unpack(gx_worker *w);

/* When a CPU thread may find a chunk that it does not find now; UINT64_MAX: there is none. */
uint64_t gx_chunks_next(gx_service *s, uint64_t now);

/* Take the query of that number out of its chunk; or look at a query that is in one. NULL: there is none. */
gx_service_job *gx_chunks_cancel(gx_service *s, uint64_t number);
gx_service_job *gx_chunks_first(gx_service *s);

#endif
