/* service.c: threads around a scheduler.
 *
 *   put --> arrived --absorb--> scheduler --take--> a thread's queries --> callbacks
 *           (no lock)           (under the lock)    (no lock)
 *
 * The scheduler is used under one lock, by the threads that answer. Those that put queries only hang
 * them into the list `arrived`, without a lock; whoever next looks for work absorbs them. An idle
 * thread polls `changes`, which counts what may give it something to do, for a while before it
 * sleeps, because waking up takes longer than a short query. Putting then wakes nobody.
 *
 * Where nothing waits, a thread that puts one short query may answer it itself, as a guest: nobody
 * needs to be told of it then. */
#include "query/schedule/service.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "engine/clock.h"
#include "engine/grow.h"
#include "engine/parallel.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "query/schedule/cost_model.h"
#include "query/schedule/decisions.h"
#include "query/session.h"

#define PUT_AT_ONCE 64u  /* queries that are described before they are put */
#define MOST_CPU_TAKE 8u /* queries that a CPU thread takes at once where many wait */
#define CPU_ABSORBS 64u  /* arrivals that a CPU thread absorbs at once */
#define LEFT UINT64_MAX
#define POLLS_PER_LOOK 16 /* at the clock */
#define MOST_RETRY 10.0   /* s */
#define MOST_POLLING 2u   /* threads of a processor that poll at once: more would only hold each other up */
#define CORES_A_POLL 4u   /* and no more than one in as many cores, for others have to run too */
#define PLACES_A_CALLER 4u /* guests for each caller that may answer at once: a thread finds its last one free */
#define MOST_GUESTS 64u    /* but no more than this number, or one for each caller */
#define QUERY_OPTIONS_LEAST GX_SIZE_THROUGH(gx_query_options, mask)

/* A plan's `cancel` while the watchdog may leave the thread that runs it. */
typedef struct guarded_cancel {
    struct worker *w;
    bool (*cancel)(void *user);
    void *user;
} guarded_cancel;

/* A thread that answers. One whose GPU hangs is left behind: then another one has its place, and its
 * queries, and it touches nothing but what is its own. */
typedef struct worker {
    gx_service *s;
    gx_processor p;
    uint32_t place; /* in gx_service.workers */
    gx_threads *thread;
    /* Since when the GPU has the thread's batch, in ns; 0: it has none; LEFT */
    atomic_uint_fast64_t since;
    atomic_bool returned;  /* of one that was left, from the GPU */
    struct worker *next;   /* of those that were left */
    atomic_bool visited;   /* of a guest: a caller has it */
    uint32_t max, absorbs; /* most queries, and arrivals, at once */
    gx_session *session;   /* NULL: the GPU has failed */
    gx_session *fallback;  /* of a GPU thread: on the CPU; NULL until needed */
    uint32_t *slots;       /* [max] */
    gx_service_job **jobs; /* [max] */
    gx_plan *plans;        /* [max] */
    gx_hits *hits;         /* [max] */
    uint64_t retry_at;     /* ns, when a GPU that failed is tried again */
    uint32_t n;            /* queries taken, */
    double ns;             /* which are predicted to take so long */
    bool inherited;        /* from a thread that was left */
    gx_plan_term *terms;   /* copies of those of the plans, and the keys that the GPU finds: */
    uint64_t *keys;        /* a job is the caller's again as soon as it is answered */
    size_t max_terms, max_keys;
    guarded_cancel *cancels; /* [max] of the plans */
    pthread_mutex_t asking;  /* held while one of them is called, and while the thread is left */
} worker;

/* Threads that a GPU kept when their service was closed. */
static _Atomic(worker *) abandoned;

struct gx_service {
    gx_service_options opt;
    gx_cost_profile profile;
    worker **workers; /* [n_workers] those of the CPU first */
    uint32_t n_workers;
    worker **guests; /* [n_guests] without threads: for the callers that answer themselves, opt.callers at once */
    uint32_t n_guests;
    gx_threads *watchdog;
    atomic_bool closing;

    alignas(64) _Atomic(gx_service_job *) arrived; /* the newest first */
    atomic_uint changes;                           /* of what waits */
    atomic_uint n_held;                            /* queries that are put and not taken */
    atomic_uint_fast64_t next_number, n_pending, n_refused, n_at_once;
    atomic_uint n_visits, n_draining; /* guests that a caller has; calls of gx_service_drain */
    alignas(64) atomic_uint n_sleeping[GX_N_PROCESSORS];
    atomic_uint n_polling[GX_N_PROCESSORS];

    alignas(64) pthread_mutex_t lock; /* of the rest */
    pthread_cond_t work[GX_N_PROCESSORS], room, drained, ended;
    worker *left;      /* threads that the GPU keeps, or has kept */
    uint32_t n_active; /* threads that answer */
    uint32_t most_polling;
    bool watches;
    atomic_uint n_wait_for_room;
    gx_scheduler *scheduler;
    gx_service_job **jobs;    /* [opt.bound] by slot */
    gx_service_job *arriving; /* taken from `arrived`, and not yet put; the oldest first */
    double retry;             /* s, after the next failure of the GPU until it is tried again */
    FILE *decisions;
    gx_service_counts counts;
};

static uint64_t now(void)
{
    return gx_clock_nanoseconds(CLOCK_MONOTONIC);
}

void gx_service_options_init(gx_service_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_service_options)GX_SERVICE_OPTIONS, sizeof *o);
}

gx_engine *gx_service_planner(const gx_service *s)
{
    return s->opt.cpu ? s->opt.cpu : s->opt.gpu;
}

/* ---- waking ---- */

/* Something has changed that may give processor p work for n threads: wake so many of those that
 * sleep, less those that poll. The caller holds the lock. */
static void wake(gx_service *s, gx_processor p, uint32_t n)
{
    const uint32_t polling = atomic_load(&s->n_polling[p]), sleeping = atomic_load(&s->n_sleeping[p]);
    for (uint32_t i = polling; i < n && i - polling < sleeping; ++i)
        pthread_cond_signal(&s->work[p]);
}

static void change(gx_service *s)
{
    atomic_fetch_add(&s->changes, 1);
}

static struct timespec time_at(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* Sleep until woken, or until the time `until`. The caller holds the lock. A query that is put after
 * the look at `arrived` finds that somebody sleeps, see wake_for. */
static void sleep_until(gx_service *s, gx_processor p, uint64_t until)
{
    const struct timespec t = time_at(until);
    atomic_fetch_add(&s->n_sleeping[p], 1);
    if (atomic_load(&s->arrived))
        ;
    else if (until == UINT64_MAX)
        pthread_cond_wait(&s->work[p], &s->lock);
    else
        pthread_cond_timedwait(&s->work[p], &s->lock, &t);
    atomic_fetch_sub(&s->n_sleeping[p], 1);
}

/* n queries have been put: see to it that a thread absorbs them. One that polls does, before it
 * sleeps, and wakes others; so does one that is busy. */
static void wake_for(gx_service *s, uint32_t n)
{
    change(s);
    if (atomic_load(&s->n_polling[0]) || atomic_load(&s->n_polling[1]) ||
        !(atomic_load(&s->n_sleeping[0]) || atomic_load(&s->n_sleeping[1])))
        return;
    pthread_mutex_lock(&s->lock);
    wake(s, GX_PROCESSOR_CPU, n);
    wake(s, GX_PROCESSOR_GPU, 1);
    pthread_mutex_unlock(&s->lock);
}

/* ---- answering ---- */

/* n queries are no longer pending. The caller holds the lock. */
static void count_done(gx_service *s, uint32_t n)
{
    if (atomic_fetch_sub(&s->n_pending, n) == n)
        pthread_cond_broadcast(&s->drained);
}

/* Tell the caller that a query is answered. */
static void finish(gx_service *s, gx_service_job *job)
{
    void (*done)(gx_service_job *) = job->done;
    done(job);
    pthread_mutex_lock(&s->lock);
    count_done(s, 1);
    pthread_mutex_unlock(&s->lock);
}

/* Tell the callers that queries are answered. They are counted by end_work. */
static void tell(gx_service_job **jobs, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        void (*done)(gx_service_job *) = jobs[i]->done;
        done(jobs[i]);
    }
}

static void set_answer(gx_service_job *job, gx_status st, const gx_error *err, uint32_t n, gx_processor by)
{
    job->status = st;
    job->err = err;
    job->n = st == GX_OK ? n : 0;
    job->by = by;
}

/* Whether a failure is the GPU's, which the CPU makes good. */
static bool is_gpu_failure(const worker *w, gx_status st)
{
    return w->p == GX_PROCESSOR_GPU && (st == GX_ECUDA || st == GX_ENOGPU || (st == GX_ENOMEM && w->s->opt.cpu));
}

/* Answer a query on the CPU in a GPU thread whose GPU has failed. */
static void answer_by_fallback(worker *w, gx_service_job *job)
{
    gx_error err = {0};
    gx_hits hits = {job->keys, 0};
    gx_status st = w->fallback ? GX_OK : gx_session_open(&w->fallback, w->s->opt.cpu, &err);
    if (st == GX_OK)
        st = gx_session_run(w->fallback, job->plan, 1, &hits, &err);
    set_answer(job, st, &err, hits.n, GX_PROCESSOR_CPU);
    job->fell_back = true;
    tell(&job, 1);
}

/* Put off the next attempt with a GPU that has failed, each time for longer. The caller holds the
 * lock. */
static void put_off(worker *w)
{
    gx_service *s = w->s;
    w->retry_at = now() + (uint64_t)(s->retry * 1e9);
    s->retry = 2 * s->retry < MOST_RETRY ? 2 * s->retry : MOST_RETRY;
}

/* The GPU has failed on n queries. The scheduler sends it nothing until it is tried again. */
static void lose_gpu(worker *w, uint32_t n, const gx_error *err)
{
    gx_service *s = w->s;
    gx_session_close(w->session);
    w->session = NULL;
    pthread_mutex_lock(&s->lock);
    put_off(w);
    gx_scheduler_set_gpu(s->scheduler, false);
    if (s->decisions)
        gx_decisions_gpu(s->decisions, false);
    ++s->counts.gpu_failures;
    change(s);
    wake(s, GX_PROCESSOR_CPU, s->opt.cpu_threads);
    pthread_mutex_unlock(&s->lock);
    uint32_t n_fallen = 0;
    for (uint32_t i = 0; i < n; ++i) {
        gx_service_job *job = w->jobs[i];
        if (job && s->opt.cpu) {
            answer_by_fallback(w, job);
            ++n_fallen;
        } else if (job) {
            set_answer(job, err->status, err, 0, GX_PROCESSOR_GPU);
            tell(&job, 1);
        }
    }
    pthread_mutex_lock(&s->lock);
    s->counts.fell_back += n_fallen;
    s->counts.by[GX_PROCESSOR_CPU] += n_fallen;
    s->counts.by[GX_PROCESSOR_GPU] -= n_fallen;
    pthread_mutex_unlock(&s->lock);
}

/* ---- a GPU that may hang ---- */

static bool reserve_copies(worker *w, size_t n_terms, size_t n_keys)
{
    return gx_reserve(&w->terms, &w->max_terms, n_terms, sizeof *w->terms) &&
           gx_reserve(&w->keys, &w->max_keys, n_keys, sizeof *w->keys);
}

static bool was_left(const worker *w)
{
    return atomic_load(&w->since) == LEFT;
}

/* Ask whether a query is cancelled, but not once the thread is left: what is asked may be gone then. */
static bool ask_unless_left(void *user)
{
    const guarded_cancel *c = user;
    pthread_mutex_lock(&c->w->asking);
    const bool cancelled = was_left(c->w) || c->cancel(c->user);
    pthread_mutex_unlock(&c->w->asking);
    return cancelled;
}

/* Give the plans and hits copies of their own, so that the thread can be left. false: it cannot. */
static bool copy_batch(worker *w, uint32_t n)
{
    size_t n_terms = 0, n_keys = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_plan *p = &w->plans[i];
        if (p->parts || p->mask || p->filter)
            return false;
        n_terms += p->n_terms;
        n_keys += p->k;
    }
    if (!reserve_copies(w, n_terms, n_keys))
        return false;
    n_terms = n_keys = 0;
    for (uint32_t i = 0; i < n; ++i) {
        gx_plan *p = &w->plans[i];
        memcpy(w->terms + n_terms, p->terms, p->n_terms * sizeof *p->terms);
        p->terms = w->terms + n_terms;
        if (p->cancel) {
            w->cancels[i] = (guarded_cancel){w, p->cancel, p->user};
            p->cancel = ask_unless_left;
            p->user = &w->cancels[i];
        }
        w->hits[i].keys = w->keys + n_keys;
        n_terms += p->n_terms;
        n_keys += p->k;
    }
    return true;
}

/* As gx_session_run, under the eyes of the watchdog. GX_EDEADLINE: the thread was left. */
static gx_status run_watched(worker *w, uint32_t first, uint32_t n, gx_error *err)
{
    uint_fast64_t since = now();
    if (w->hits[first].keys == w->jobs[first]->keys) /* not copied */
        return gx_session_run(w->session, w->plans + first, n, w->hits + first, err);
    atomic_store(&w->since, since);
    const gx_status st = gx_session_run(w->session, w->plans + first, n, w->hits + first, err);
    if (!atomic_compare_exchange_strong(&w->since, &since, 0))
        return GX_EDEADLINE;
    for (uint32_t i = first; st == GX_OK && i < first + n; ++i)
        memcpy(w->jobs[i]->keys, w->hits[i].keys, w->hits[i].n * sizeof *w->keys);
    return st;
}

/* Run jobs [first, first + n) of the thread. Where one of a batch is cancelled or cannot be
 * answered, each is run alone, and what failed is finished and leaves jobs. Returns whether the GPU
 * is lost; look at was_left first. */
static bool run_jobs(worker *w, uint32_t first, uint32_t n, gx_error *err)
{
    const gx_status st = run_watched(w, first, n, err);
    if (was_left(w) || is_gpu_failure(w, st))
        return true;
    bool lost = false;
    if (st != GX_OK && n > 1) {
        for (uint32_t i = 0; i < n && !lost; ++i)
            lost = run_jobs(w, first + i, 1, err);
        return lost;
    }
    for (uint32_t i = first; i < first + n; ++i)
        set_answer(w->jobs[i], st, err, w->hits[i].n, w->p);
    if (st != GX_OK) { /* now, because err is the next one's too */
        tell(&w->jobs[first], 1);
        w->jobs[first] = NULL;
    }
    return false;
}

static void answer_on_gpu(worker *w)
{
    gx_error err = {0};
    uint32_t good = 0;
    copy_batch(w, w->n);
    const bool lost = run_jobs(w, 0, w->n, &err);
    if (was_left(w))
        return;
    if (lost) {
        lose_gpu(w, w->n, &err);
        return;
    }
    for (uint32_t i = 0; i < w->n; ++i) {
        if (w->jobs[i])
            w->jobs[good++] = w->jobs[i];
    }
    tell(w->jobs, good);
}

/* Answer the queries that the thread has taken: on the CPU one after the other. */
static void answer(worker *w)
{
    gx_error err = {0};
    for (uint32_t i = 0; i < w->n; ++i) {
        gx_service_job *job = w->jobs[i];
        w->plans[i] = *job->plan;
        if (w->p == GX_PROCESSOR_GPU && w->s->opt.cpu)
            w->plans[i].mask = job->gpu_mask;
        w->hits[i] = (gx_hits){job->keys, 0};
        job->fell_back = false;
        job->status = GX_OK;
    }
    if (w->p == GX_PROCESSOR_GPU) {
        answer_on_gpu(w);
        return;
    }
    for (uint32_t i = 0; i < w->n; ++i) {
        run_jobs(w, i, 1, &err);
        if (w->jobs[i])
            tell(&w->jobs[i], 1);
    }
}

/* ---- taking ---- */

/* The oldest query that has arrived, or NULL. The caller holds the lock. */
static gx_service_job *next_arrival(gx_service *s)
{
    if (!s->arriving) {
        gx_service_job *job = atomic_load(&s->arrived) ? atomic_exchange(&s->arrived, NULL) : NULL;
        for (gx_service_job *before; job; job = before) { /* the newest is first there */
            before = job->next;
            job->next = s->arriving;
            s->arriving = job;
        }
    }
    gx_service_job *job = s->arriving;
    if (job)
        s->arriving = job->next;
    return job;
}

/* Put up to `most` queries that have arrived into the queues; returns how many. The caller holds the
 * lock. */
static uint32_t absorb(gx_service *s, uint64_t t, uint32_t most)
{
    uint32_t n = 0;
    for (gx_service_job *job; n < most && (job = next_arrival(s)); ++n) {
        gx_schedule_group group;
        uint32_t slot = 0;
        if (job->next)
            __builtin_prefetch(&job->next->described, 0);
        const bool put = gx_scheduler_put(s->scheduler, t, &job->described, &slot, &group);
        assert(put); /* n_held is at most the bound */
        (void)put;
        s->jobs[slot] = job;
        if (s->decisions)
            gx_decisions_put(s->decisions, t, &job->described, slot, group);
    }
    return n;
}

static bool has_work(gx_service *s)
{
    return gx_scheduler_waiting(s->scheduler) || s->arriving || atomic_load(&s->arrived);
}

/* n queries no longer wait. The caller holds the lock. */
static void make_room(gx_service *s, uint32_t n)
{
    atomic_fetch_sub(&s->n_held, n);
    if (s->n_wait_for_room)
        pthread_cond_broadcast(&s->room);
}

/* How many queries a thread takes at most. A CPU thread takes several only where there is enough
 * for all of them. */
static uint32_t most_to_take(const worker *w)
{
    if (w->p == GX_PROCESSOR_GPU)
        return w->max;
    const uint32_t share = gx_scheduler_waiting(w->s->scheduler) / (4 * w->s->opt.cpu_threads);
    return share < 1 ? 1 : share < w->max ? share : w->max;
}

/* Take queries for the thread. The caller holds the lock. */
static uint32_t take(worker *w, double *ns)
{
    gx_service *s = w->s;
    const uint64_t t = now();
    uint32_t n = 0, most, absorbed, all = 0;
    do {
        all += absorbed = absorb(s, t, w->absorbs);
        most = most_to_take(w);
        n = gx_scheduler_take(s->scheduler, t, w->p, w->slots, most, ns);
    } while (!n && absorbed);
    for (uint32_t i = 0; i < n; ++i) {
        w->jobs[i] = s->jobs[w->slots[i]];
        s->jobs[w->slots[i]] = NULL;
    }
    if (n && s->decisions)
        gx_decisions_take(s->decisions, t, w->p, most, w->slots, n, *ns);
    s->counts.by[w->p] += n;
    if (n)
        make_room(s, n);
    if (all && has_work(s)) {
        change(s);
        wake(s, GX_PROCESSOR_CPU, s->opt.cpu_threads);
        wake(s, GX_PROCESSOR_GPU, 1);
    } else if (n && w->p == GX_PROCESSOR_CPU && has_work(s)) { /* and so on, one thread after the other */
        wake(s, GX_PROCESSOR_CPU, atomic_load(&s->n_polling[w->p]) + 1);
    }
    return n;
}

static void close_worker(worker *w);

/* Free the threads that were left and have returned. Returns whether all have. The caller holds the
 * lock. */
static bool free_left(gx_service *s)
{
    for (worker **at = &s->left; *at;) {
        worker *w = *at;
        if (!atomic_load(&w->returned)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        gx_threads_join(w->thread);
        close_worker(w);
    }
    return !s->left;
}

/* The GPU has failed: wait, then try it again. Returns false where the service closes meanwhile. */
static bool return_to_gpu(worker *w)
{
    gx_service *s = w->s;
    gx_error err;
    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->closing) && now() < w->retry_at)
        sleep_until(s, GX_PROCESSOR_GPU, w->retry_at);
    const bool all_returned = free_left(s);
    pthread_mutex_unlock(&s->lock);
    if (atomic_load(&s->closing))
        return false;
    if (!all_returned || gx_session_open(&w->session, s->opt.gpu, &err) != GX_OK) {
        pthread_mutex_lock(&s->lock);
        put_off(w);
        pthread_mutex_unlock(&s->lock);
        return true;
    }
    pthread_mutex_lock(&s->lock);
    gx_scheduler_set_gpu(s->scheduler, true);
    if (s->decisions)
        gx_decisions_gpu(s->decisions, true);
    ++s->counts.gpu_returns;
    pthread_mutex_unlock(&s->lock);
    return true;
}

/* Poll until something changes, or until the time `until`. */
static void poll_changes(gx_service *s, unsigned seen, uint64_t until)
{
    for (unsigned turn = 1; atomic_load_explicit(&s->changes, memory_order_acquire) == seen; ++turn) {
        if (turn % POLLS_PER_LOOK == 0 && now() >= until)
            return;
        __builtin_ia32_pause();
    }
}

/* Wait for queries, by polling first. Returns how many the thread has taken; 0: the service
 * closes. The caller holds the lock, which is released while the thread waits. */
static uint32_t wait_for_work(worker *w, double *ns)
{
    gx_service *s = w->s;
    uint64_t spin_until = 0;
    for (;;) {
        const unsigned seen = atomic_load_explicit(&s->changes, memory_order_acquire);
        const uint32_t n = atomic_load(&s->closing) ? 0 : take(w, ns);
        if (n || atomic_load(&s->closing))
            return n;
        const uint64_t next = w->p == GX_PROCESSOR_GPU ? gx_scheduler_next(s->scheduler) : UINT64_MAX, t = now();
        if (!spin_until)
            spin_until = t + (uint64_t)(s->opt.spin * 1e9);
        if (t >= spin_until || atomic_load(&s->n_polling[w->p]) >= s->most_polling) {
            sleep_until(s, w->p, next);
            spin_until = 0;
            continue;
        }
        atomic_fetch_add(&s->n_polling[w->p], 1);
        pthread_mutex_unlock(&s->lock);
        poll_changes(s, seen, next < spin_until ? next : spin_until);
        pthread_mutex_lock(&s->lock);
        atomic_fetch_sub(&s->n_polling[w->p], 1);
    }
}

/* The thread has answered what it took. The caller holds the lock. */
static void end_work(worker *w)
{
    gx_service *s = w->s;
    s->counts.answered += w->n;
    count_done(s, w->n);
    gx_scheduler_done(s->scheduler, w->p, w->ns);
    if (s->decisions)
        gx_decisions_done(s->decisions, w->p, w->ns);
    if (w->p != GX_PROCESSOR_GPU)
        return;
    if (w->session)
        s->retry = s->opt.retry;
    if (has_work(s)) { /* another thread may take now */
        change(s);
        wake(s, GX_PROCESSOR_GPU, 1);
    }
}

/* The thread has the queries of one that was left. */
static void answer_inherited(worker *w)
{
    gx_error err = {0};
    gx_fail(&err, GX_ECUDA, "the GPU has not answered within %g s", w->s->opt.hang);
    lose_gpu(w, w->n, &err);
    pthread_mutex_lock(&w->s->lock);
    end_work(w);
    pthread_mutex_unlock(&w->s->lock);
    w->inherited = false;
}

/* Take queries and answer them, until there is no session, the service closes, or the thread is
 * left. Returns whether the service closes. */
static bool work_with_session(worker *w)
{
    gx_service *s = w->s;
    pthread_mutex_lock(&s->lock);
    while (w->session && (w->n = wait_for_work(w, &w->ns)) > 0) {
        pthread_mutex_unlock(&s->lock);
        answer(w);
        if (was_left(w))
            return false;
        pthread_mutex_lock(&s->lock);
        end_work(w);
    }
    pthread_mutex_unlock(&s->lock);
    return atomic_load(&s->closing);
}

static void work(void *user, uint32_t number)
{
    worker *w = user;
    gx_service *s = w->s;
    (void)number;
    prctl(PR_SET_TIMERSLACK, 1); /* ns: batches close in time */
    if (w->inherited)
        answer_inherited(w);
    for (bool closing = false; !closing;) {
        closing = w->session ? work_with_session(w) : !return_to_gpu(w);
        if (was_left(w)) { /* from here on w is no longer this thread's */
            atomic_store(&w->returned, true);
            return;
        }
    }
    pthread_mutex_lock(&s->lock);
    if (--s->n_active == 0)
        pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->lock);
}

/* ---- threads: starting, leaving ---- */

static void close_worker(worker *w)
{
    if (!w)
        return;
    gx_session_close(w->session);
    gx_session_close(w->fallback);
    free(w->slots);
    free(w->jobs);
    free(w->plans);
    free(w->hits);
    free(w->terms);
    free(w->keys);
    free(w->cancels);
    pthread_mutex_destroy(&w->asking);
    free(w);
}

/* A thread, not yet started, without a session. NULL: no memory. */
static worker *new_worker(gx_service *s, gx_processor p, uint32_t place)
{
    worker *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->s = s;
    w->p = p;
    w->place = place;
    w->max = w->p == GX_PROCESSOR_GPU ? s->opt.batch : MOST_CPU_TAKE;
    w->absorbs = w->p == GX_PROCESSOR_GPU ? 2 * s->opt.batch : CPU_ABSORBS;
    w->slots = malloc(w->max * sizeof *w->slots);
    w->jobs = malloc(w->max * sizeof *w->jobs);
    w->plans = malloc(w->max * sizeof *w->plans);
    w->hits = malloc(w->max * sizeof *w->hits);
    w->cancels = malloc(w->max * sizeof *w->cancels);
    pthread_mutex_init(&w->asking, NULL);
    if (w->slots && w->jobs && w->plans && w->hits && w->cancels)
        return w;
    close_worker(w);
    return NULL;
}

/* Leave a thread that has waited for the GPU since the time `since`, and put another one, which
 * answers its queries, in its place. false: the GPU has answered meanwhile, or there is no memory
 * for another thread. */
static bool leave(worker *w, uint_fast64_t since)
{
    gx_service *s = w->s;
    worker *heir = new_worker(s, w->p, w->place);
    if (!heir)
        return false;
    heir->inherited = true;
    pthread_mutex_lock(&w->asking); /* before the other lock: what is asked may want that */
    pthread_mutex_lock(&s->lock);
    const bool left = atomic_compare_exchange_strong(&w->since, &since, LEFT);
    if (left) {
        memcpy(heir->jobs, w->jobs, w->n * sizeof *w->jobs);
        heir->n = w->n;
        heir->ns = w->ns;
        w->next = s->left;
        s->left = w;
        s->workers[w->place] = heir;
        ++s->counts.gpu_hung;
        heir->thread = gx_threads_start(1, 0, work, heir);
    }
    pthread_mutex_unlock(&w->asking); /* first: with the other lock another thread may free this one */
    pthread_mutex_unlock(&s->lock);
    if (!left) {
        close_worker(heir);
    } else if (!heir->thread) { /* the watchdog answers in its place */
        answer_inherited(heir);
        pthread_mutex_lock(&s->lock);
        if (--s->n_active == 0)
            pthread_cond_broadcast(&s->ended);
        pthread_mutex_unlock(&s->lock);
    }
    return left;
}

/* Look from time to time whether the GPU hangs. */
static void watch(void *user, uint32_t number)
{
    gx_service *s = user;
    const uint64_t most = (uint64_t)(s->opt.hang * 1e9), step = most / 8 < 1000000000u ? most / 8 + 1 : 1000000000u;
    (void)number;
    pthread_mutex_lock(&s->lock);
    while (s->watches) {
        const uint64_t t = now();
        const struct timespec next = time_at(t + step);
        for (uint32_t i = 0; i < s->n_workers; ++i) {
            worker *w = s->workers[i];
            const uint64_t since = atomic_load(&w->since);
            if (!since || since == LEFT || t < since + most)
                continue;
            pthread_mutex_unlock(&s->lock);
            leave(w, since); /* only this thread replaces workers */
            pthread_mutex_lock(&s->lock);
        }
        pthread_cond_timedwait(&s->ended, &s->lock, &next);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Wait until all threads have ended, but those that were left: these once more for `hang`. */
static void end_threads(gx_service *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->n_active)
        pthread_cond_wait(&s->ended, &s->lock);
    s->watches = false;
    pthread_cond_broadcast(&s->ended);
    const uint64_t until = now() + (uint64_t)(s->opt.hang * 1e9);
    for (struct timespec next; !free_left(s) && now() < until;) {
        next = time_at(now() + 1000000);
        pthread_cond_timedwait(&s->ended, &s->lock, &next);
    }
    for (worker *w; (w = s->left);) {
        s->left = w->next;
        w->next = atomic_load(&abandoned);
        while (!atomic_compare_exchange_weak(&abandoned, &w->next, w))
            ;
    }
    pthread_mutex_unlock(&s->lock);
    gx_threads_join(s->watchdog);
    for (uint32_t i = 0; i < s->n_workers; ++i)
        gx_threads_join(s->workers[i]->thread);
}

/* ---- open, close ---- */

static void free_service(gx_service *s)
{
    for (uint32_t i = 0; i < s->n_workers; ++i)
        close_worker(s->workers[i]);
    for (uint32_t i = 0; i < s->n_guests; ++i)
        close_worker(s->guests[i]);
    free(s->workers);
    free(s->guests);
    gx_scheduler_close(s->scheduler);
    free(s->jobs);
    if (s->decisions)
        fclose(s->decisions);
    for (int p = 0; p < GX_N_PROCESSORS; ++p)
        pthread_cond_destroy(&s->work[p]);
    pthread_cond_destroy(&s->room);
    pthread_cond_destroy(&s->drained);
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static gx_status check_options(const gx_service_options *o, gx_error *err)
{
    if (!o->cpu && !o->gpu)
        return gx_fail(err, GX_EUSAGE, "a service needs an engine");
    if (o->cpu && o->gpu && gx_engine_index(o->cpu) != gx_engine_index(o->gpu))
        return gx_fail(err, GX_EUSAGE, "the engines of a service are of different indexes");
    if ((o->cpu && !o->cpu_threads) || (o->gpu && !o->gpu_threads) || o->cpu_threads > 1024 ||
        o->cpu_threads + o->gpu_threads > 1024)
        return gx_fail(err, GX_EUSAGE, "each engine of a service needs a thread, and all together at most 1,024");
    if (o->callers > 1024 || !(o->caller_seconds >= 0))
        return gx_fail(err, GX_EUSAGE, "at most 1,024 callers answer, and queries of at least 0 s");
    if (!(o->batch_seconds >= 0 && o->batch_seconds <= 1) || !(o->spin >= 0 && o->spin <= 10) ||
        !(o->patience > 0 && o->patience <= 1e6) || !(o->retry > 0 && o->retry <= 1e6) ||
        !(o->hang > 0 && o->hang <= 1e6))
        return gx_fail(err, GX_EUSAGE, "a time of the service is out of its range");
    return GX_OK;
}

static gx_status open_scheduler(gx_service *s, gx_error *err)
{
    const gx_service_options *o = &s->opt;
    const gx_scheduler_options opt = {.bound = o->bound,
                                      .cpu_threads = o->cpu ? o->cpu_threads : 0,
                                      .gpu_threads = o->gpu ? o->gpu_threads : 0,
                                      .batch = o->batch,
                                      .batch_ns = (uint64_t)(o->batch_seconds * 1e9),
                                      .threshold = o->threshold,
                                      .adapt = o->adapt,
                                      .urgent = o->urgent,
                                      .patience_ns = (uint64_t)(o->patience * 1e9)};
    const gx_status st = gx_scheduler_open(&s->scheduler, &opt, err);
    if (st != GX_OK || !o->decisions)
        return st;
    s->decisions = fopen(o->decisions, "w");
    if (!s->decisions)
        return gx_fail(err, gx_status_of_errno(errno), "cannot write %s: %s", o->decisions, strerror(errno));
    gx_decisions_begin(s->decisions, &opt);
    return GX_OK;
}

static gx_status open_guests(gx_service *s, gx_error *err)
{
    const uint32_t callers = s->opt.cpu ? s->opt.callers : 0, most = callers > MOST_GUESTS ? callers : MOST_GUESTS,
                   n = PLACES_A_CALLER * callers < most ? PLACES_A_CALLER * callers : most;
    gx_status st = GX_OK;
    s->guests = calloc(n + 1ull, sizeof(worker *));
    if (!s->guests)
        return gx_fail(err, GX_ENOMEM, "no memory for %u callers that answer", n);
    for (; st == GX_OK && s->n_guests < n; ++s->n_guests) {
        worker *w = s->guests[s->n_guests] = new_worker(s, GX_PROCESSOR_CPU, s->n_guests);
        if (!w)
            return gx_fail(err, GX_ENOMEM, "no memory for %u callers that answer", n);
        w->max = 1;
        st = gx_session_open(&w->session, s->opt.cpu, err);
    }
    return st;
}

static gx_status start(gx_service *s, gx_error *err)
{
    const gx_service_options *o = &s->opt;
    const uint32_t n_cpu = o->cpu ? o->cpu_threads : 0, n = n_cpu + (o->gpu ? o->gpu_threads : 0);
    gx_status st = open_scheduler(s, err);
    s->jobs = calloc(o->bound ? o->bound : 1, sizeof *s->jobs);
    s->workers = calloc(n, sizeof *s->workers);
    if (st == GX_OK && (!s->jobs || !s->workers))
        st = gx_fail(err, GX_ENOMEM, "no memory for a service of %u threads", n);
    for (; st == GX_OK && s->n_workers < n; ++s->n_workers) {
        const gx_processor p = s->n_workers < n_cpu ? GX_PROCESSOR_CPU : GX_PROCESSOR_GPU;
        worker *w = s->workers[s->n_workers] = new_worker(s, p, s->n_workers);
        if (!w)
            return gx_fail(err, GX_ENOMEM, "no memory for a thread with batches of %u queries", o->batch);
        st = gx_session_open(&w->session, w->p == GX_PROCESSOR_GPU ? o->gpu : o->cpu, err);
    }
    if (st == GX_OK)
        st = open_guests(s, err);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i) {
        pthread_mutex_lock(&s->lock);
        s->workers[i]->thread = gx_threads_start(1, 0, work, s->workers[i]);
        s->n_active += s->workers[i]->thread != NULL;
        pthread_mutex_unlock(&s->lock);
        if (!s->workers[i]->thread)
            return gx_fail(err, GX_ENOMEM, "the system does not start %u threads", n);
    }
    s->watches = true;
    if (st == GX_OK && o->gpu && !(s->watchdog = gx_threads_start(1, 0, watch, s)))
        return gx_fail(err, GX_ENOMEM, "the system does not start %u threads", n + 1);
    return st;
}

/* How many threads of a processor may poll at once, by the cores that the process may use: none on a single one. */
static uint32_t polling_threads(void)
{
    cpu_set_t cores;
    const int n = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : (int)CORES_A_POLL;
    const uint32_t most = n < 2 ? 0 : ((uint32_t)n + CORES_A_POLL - 1) / CORES_A_POLL;
    return most < MOST_POLLING ? most : MOST_POLLING;
}

gx_status gx_service_open(gx_service **out, const gx_service_options *given, gx_error *err)
{
    gx_service_options o = GX_SERVICE_OPTIONS;
    *out = NULL;
    gx_status st =
        gx_sized_read(&o, sizeof o, given, GX_SIZE_THROUGH(gx_service_options, user), "gx_service_options", err);
    if (st == GX_OK)
        st = check_options(&o, err);
    gx_service *s = st == GX_OK ? aligned_alloc(alignof(gx_service), sizeof *s) : NULL;
    if (!s)
        return st != GX_OK ? st : gx_fail(err, GX_ENOMEM, "no memory for a service");
    memset(s, 0, sizeof *s);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    for (int p = 0; p < GX_N_PROCESSORS; ++p)
        pthread_cond_init(&s->work[p], &monotonic);
    pthread_cond_init(&s->room, NULL);
    pthread_cond_init(&s->drained, NULL);
    pthread_cond_init(&s->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutexattr_t adaptive; /* it is held for microseconds: sleeping takes longer */
    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&s->lock, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
    s->opt = o;
    s->retry = o.retry;
    s->most_polling = polling_threads();
    if (o.profile)
        s->profile = *o.profile;
    else
        gx_cost_profile_init(&s->profile);
    if ((st = start(s, err)) != GX_OK)
        gx_service_close(s);
    else
        *out = s;
    return st;
}

/* Take a query that waits in a slot out of its queue. The caller holds the lock, and calls
 * finish_cancelled after it has let go of it. */
static gx_service_job *cancel_slot(gx_service *s, uint32_t slot)
{
    gx_service_job *job = s->jobs[slot];
    if (!job || !gx_scheduler_cancel(s->scheduler, slot, job->number))
        return NULL;
    if (s->decisions)
        gx_decisions_cancel(s->decisions, slot, job->number);
    s->jobs[slot] = NULL;
    ++s->counts.cancelled;
    make_room(s, 1);
    return job;
}

static void finish_cancelled(gx_service *s, gx_service_job *job)
{
    gx_error err = {0};
    set_answer(job, gx_fail(&err, GX_ECANCELLED, "the query was cancelled"), &err, 0, GX_PROCESSOR_CPU);
    job->fell_back = false;
    finish(s, job);
}

void gx_service_close(gx_service *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->closing, true);
    change(s);
    for (int p = 0; p < GX_N_PROCESSORS; ++p)
        pthread_cond_broadcast(&s->work[p]);
    pthread_cond_broadcast(&s->room);
    pthread_mutex_unlock(&s->lock);
    end_threads(s);
    if (s->scheduler && s->jobs)
        absorb(s, now(), UINT32_MAX);
    for (uint32_t slot = 0; s->scheduler && s->jobs && slot < s->opt.bound; ++slot) {
        pthread_mutex_lock(&s->lock);
        gx_service_job *job = s->jobs[slot] ? cancel_slot(s, slot) : NULL;
        pthread_mutex_unlock(&s->lock);
        if (job)
            finish_cancelled(s, job);
    }
    free_service(s);
}

/* ---- putting ---- */

/* What the scheduler wants to know of a job. */
static gx_schedule_job describe(const gx_service *s, const gx_service_job *job)
{
    const gx_query_features f = gx_plan_features(job->plan);
    gx_schedule_job j = {.number = job->number, .arrived = job->arrived, .deadline = job->deadline, .only = -1};
    const gx_query_costs costs = gx_cost_of_query(&s->profile, &f);
    j.cpu = (float)costs.cpu;
    j.gpu_alone = (float)costs.gpu_alone;
    j.gpu = (float)costs.gpu;
    if (!s->opt.cpu)
        j.only = GX_PROCESSOR_GPU;
    else if (!s->opt.gpu || (job->plan->mask && !job->gpu_mask))
        j.only = GX_PROCESSOR_CPU;
    return j;
}

/* Reserve places for n queries, if there are. */
static bool hold(gx_service *s, uint32_t n)
{
    unsigned held = atomic_load(&s->n_held);
    do {
        if (held + (uint64_t)n > s->opt.bound)
            return false;
    } while (!atomic_compare_exchange_weak(&s->n_held, &held, held + n));
    return true;
}

static void wait_for_room(gx_service *s, uint32_t n, bool *held)
{
    pthread_mutex_lock(&s->lock);
    ++s->n_wait_for_room;
    while (!atomic_load(&s->closing) && !(*held = hold(s, n)))
        pthread_cond_wait(&s->room, &s->lock);
    --s->n_wait_for_room;
    pthread_mutex_unlock(&s->lock);
}

/* ---- a caller that answers ---- */

static bool is_idle(gx_service *s)
{
    return !atomic_load(&s->closing) && !has_work(s);
}

/* Take the guest that the calling thread had last, whose memory is in its core's caches, or another
 * that is free. NULL: there is none. */
static worker *take_guest(gx_service *s)
{
    static atomic_uint n_threads;
    static _Thread_local unsigned mine;
    if (!mine)
        mine = atomic_fetch_add(&n_threads, 1) + 1;
    if (atomic_fetch_add(&s->n_visits, 1) < s->opt.callers) {
        for (uint32_t i = 0; i < s->n_guests; ++i) {
            worker *w = s->guests[(mine + i) % s->n_guests];
            if (!atomic_load(&w->visited) && !atomic_exchange(&w->visited, true))
                return w;
        }
    }
    atomic_fetch_sub(&s->n_visits, 1);
    return NULL;
}

static void leave_guest(gx_service *s, worker *w)
{
    atomic_store(&w->visited, false);
    atomic_fetch_sub(&s->n_visits, 1);
}

/* Take the query of a caller, as a thread of the CPU does. The query waits like any other where the
 * scheduler has another processor for it, or a place that is nearer. NULL: it has not been put. */
static worker *visit(gx_service *s, gx_service_job *job)
{
    worker *w = NULL;
    if (atomic_load(&s->n_held) > 1 || pthread_mutex_trylock(&s->lock))
        return NULL;
    if (is_idle(s) && (w = take_guest(s))) {
        job->next = NULL;
        s->arriving = job;
        w->n = take(w, &w->ns);
    }
    pthread_mutex_unlock(&s->lock);
    return w;
}

/* Answer a query in its caller's thread, without the lock and without the scheduler, where no other
 * waits and the CPU is predicted to be faster. All that other threads write and that is touched here
 * lies in one cache line. false: nothing has been done. */
static bool answer_at_once(gx_service *s, gx_service_job *job)
{
    worker *w;
    if (s->decisions || atomic_load(&s->n_held) != 1 || atomic_load(&s->closing) ||
        (s->opt.gpu && job->described.cpu > job->described.gpu_alone) || !(w = take_guest(s)))
        return false;
    atomic_fetch_sub(&s->n_held, 1);
    if (atomic_load(&s->n_wait_for_room)) {
        pthread_mutex_lock(&s->lock);
        pthread_cond_broadcast(&s->room);
        pthread_mutex_unlock(&s->lock);
    }
    w->n = 1;
    w->jobs[0] = job;
    answer(w);
    leave_guest(s, w);
    atomic_fetch_add(&s->n_at_once, 1);
    if (atomic_fetch_sub(&s->n_pending, 1) == 1 && atomic_load(&s->n_draining)) {
        pthread_mutex_lock(&s->lock);
        pthread_cond_broadcast(&s->drained);
        pthread_mutex_unlock(&s->lock);
    }
    return true;
}

/* Answer a query in its caller's thread, or put it. false: nothing has been done. */
static bool answer_here(gx_service *s, gx_service_job *job)
{
    worker *w;
    if (!s->n_guests || job->described.cpu > s->opt.caller_seconds * 1e9 || job->described.only == GX_PROCESSOR_GPU)
        return false;
    if (answer_at_once(s, job))
        return true;
    if (!(w = visit(s, job)))
        return false;
    if (w->n)
        answer(w);
    pthread_mutex_lock(&s->lock);
    if (w->n)
        end_work(w);
    pthread_mutex_unlock(&s->lock);
    leave_guest(s, w);
    return true;
}

/* Reserve n places and numbers, from *first on. */
static gx_status reserve(gx_service *s, uint32_t n, bool wait, uint64_t *first, gx_error *err)
{
    bool held = !atomic_load(&s->closing) && hold(s, n);
    if (!held && wait && n <= s->opt.bound)
        wait_for_room(s, n, &held);
    if (!held && atomic_load(&s->closing))
        return gx_fail(err, GX_ECANCELLED, "the service is being closed");
    if (!held) {
        atomic_fetch_add(&s->n_refused, n);
        return gx_fail(err, GX_EBUSY, "%u queries wait, and %u is the most; try again later", atomic_load(&s->n_held),
                       s->opt.bound);
    }
    atomic_fetch_add(&s->n_pending, n);
    *first = atomic_fetch_add(&s->next_number, n);
    return GX_OK;
}

gx_status gx_service_put(gx_service *s, gx_service_job *const *jobs, uint32_t n, bool wait, uint64_t *number,
                         gx_error *err)
{
    const gx_status st = reserve(s, n, wait, number, err);
    for (uint32_t first = 0, end; st == GX_OK && first < n; first = end) {
        end = n - first < PUT_AT_ONCE ? n : first + PUT_AT_ONCE;
        for (uint32_t i = first; i < end; ++i) {
            jobs[i]->number = *number + i;
            jobs[i]->described = describe(s, jobs[i]);
            jobs[i]->next = i > first ? jobs[i - 1] : NULL;
        }
        if (n == 1 && answer_here(s, jobs[0]))
            break;
        gx_service_job *oldest = jobs[first], *newest = jobs[end - 1];
        gx_service_job *before = atomic_load(&s->arrived);
        do {
            oldest->next = before;
        } while (!atomic_compare_exchange_weak(&s->arrived, &before, newest));
        wake_for(s, end - first);
    }
    return st;
}

bool gx_service_cancel(gx_service *s, uint64_t number)
{
    gx_service_job *job = NULL;
    pthread_mutex_lock(&s->lock);
    if (absorb(s, now(), UINT32_MAX))
        change(s);
    for (uint32_t slot = 0; slot < s->opt.bound && !job; ++slot) {
        if (s->jobs[slot] && s->jobs[slot]->number == number)
            job = cancel_slot(s, slot);
    }
    pthread_mutex_unlock(&s->lock);
    if (job)
        finish_cancelled(s, job);
    return job != NULL;
}

void gx_service_drain(gx_service *s)
{
    pthread_mutex_lock(&s->lock);
    atomic_fetch_add(&s->n_draining, 1);
    while (atomic_load(&s->n_pending))
        pthread_cond_wait(&s->drained, &s->lock);
    atomic_fetch_sub(&s->n_draining, 1);
    pthread_mutex_unlock(&s->lock);
}

void gx_service_get_counts(gx_service *s, gx_service_counts *out)
{
    pthread_mutex_lock(&s->lock);
    const gx_schedule_counts c = gx_scheduler_counts(s->scheduler);
    *out = s->counts;
    pthread_mutex_unlock(&s->lock);
    out->by[GX_PROCESSOR_CPU] += atomic_load(&s->n_at_once);
    out->answered += atomic_load(&s->n_at_once);
    out->submitted = atomic_load(&s->next_number);
    out->refused = atomic_load(&s->n_refused);
    out->batches = c.batches;
    out->urgent = c.urgent;
    out->stolen = c.stolen;
}

/* ---- texts in, documents out ---- */

/* The queries of one submission share what their answers need. */
struct gx_ticket {
    gx_service_job job;
    gx_service *s;
    gx_plan plan;
    uint64_t submitted; /* ns */
    gx_service_answer answer;
    gx_error err;
    bool is_ticket, answered, closed; /* of a ticket, under its lock */
    pthread_mutex_t lock;
    pthread_cond_t there;
    uint64_t *keys;   /* [k] */
    uint32_t *docids; /* [k] */
    double *scores;   /* [k] */
};

static void free_ticket(gx_ticket *t)
{
    if (!t)
        return;
    if (t->is_ticket) {
        pthread_cond_destroy(&t->there);
        pthread_mutex_destroy(&t->lock);
    }
    gx_plan_free(&t->plan);
    free(t->keys);
    free(t->docids);
    free(t->scores);
    free(t);
}

/* The answer, from the keys. */
static void set_results(gx_ticket *t)
{
    const gx_service_job *job = &t->job;
    if (job->status != GX_OK)
        t->err = *job->err;
    for (uint32_t i = 0; i < job->n; ++i) {
        t->docids[i] = gx_key_docid(job->keys[i]);
        t->scores[i] = ldexp(gx_key_score(job->keys[i]), -t->plan.exponent);
    }
    t->answer = (gx_service_answer){.number = job->number,
                                    .user = t->answer.user,
                                    .status = job->status,
                                    .error = t->err.text,
                                    .n_hits = job->n,
                                    .docids = t->docids,
                                    .scores = t->scores,
                                    .by = job->by,
                                    .fell_back = job->fell_back,
                                    .seconds = (double)(now() - t->submitted) * 1e-9};
}

static void on_done(gx_service_job *job)
{
    gx_ticket *t = job->user;
    set_results(t);
    if (!t->is_ticket) {
        if (t->s->opt.answer)
            t->s->opt.answer(t->s->opt.user, &t->answer);
        free_ticket(t);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->answered = true;
    const bool closed = t->closed;
    pthread_cond_broadcast(&t->there);
    pthread_mutex_unlock(&t->lock);
    if (closed)
        free_ticket(t);
}

gx_status gx_ticket_wait(gx_ticket *t, double seconds, gx_service_answer *answer)
{
    const uint64_t begin = now();
    const struct timespec until =
        time_at(seconds < 0 || seconds > 1e9 ? UINT64_MAX / 4 : begin + (uint64_t)(seconds * 1e9));
    int why = 0;
    pthread_mutex_lock(&t->lock);
    while (!t->answered && why != ETIMEDOUT)
        why = pthread_cond_timedwait(&t->there, &t->lock, &until);
    const bool answered = t->answered;
    pthread_mutex_unlock(&t->lock);
    if (answered)
        *answer = t->answer;
    return answered ? GX_OK : GX_EDEADLINE;
}

void gx_ticket_close(gx_ticket *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    const bool answered = t->answered;
    t->closed = true;
    pthread_mutex_unlock(&t->lock);
    if (answered)
        free_ticket(t);
}

static bool open_ticket(gx_ticket *t, uint32_t max_hits, bool is_ticket)
{
    t->keys = malloc(max_hits * sizeof *t->keys);
    t->docids = malloc(max_hits * sizeof *t->docids);
    t->scores = malloc(max_hits * sizeof *t->scores);
    if (!t->keys || !t->docids || !t->scores)
        return false;
    t->is_ticket = is_ticket;
    if (is_ticket) {
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&t->there, &monotonic);
        pthread_condattr_destroy(&monotonic);
        pthread_mutex_init(&t->lock, NULL);
    }
    return true;
}

/* Plan query number i of a submission. */
static gx_status make_ticket(gx_ticket **out, gx_service *s, const gx_submission *sub, const gx_query_options *opt,
                             uint32_t i, gx_error *err)
{
    const uint32_t n_docs = gx_engine_index(gx_service_planner(s))->n_docs;
    const uint32_t max_hits = opt->k < n_docs ? opt->k : n_docs ? n_docs : 1;
    const size_t size = sub->queries->size;
    gx_query q = {0};
    memcpy(&q, (const char *)sub->queries + i * size, size < sizeof q ? size : sizeof q);
    if (q.size != size)
        return gx_fail(err, GX_EUSAGE, "query %u of the submission has another size than the first", i);
    gx_ticket *t = calloc(1, sizeof *t);
    gx_status st = t && open_ticket(t, max_hits, sub->tickets != NULL)
                       ? gx_engine_plan(&t->plan, gx_service_planner(s), &q, opt, err)
                       : gx_fail(err, GX_ENOMEM, "no memory for a query with %u results", max_hits);
    if (st != GX_OK) {
        free_ticket(t);
        return st;
    }
    t->s = s;
    t->answer.user = sub->users ? sub->users[i] : NULL;
    t->job = (gx_service_job){.plan = &t->plan,
                              .gpu_mask = t->plan.own_mask ? NULL : sub->gpu_mask,
                              .keys = t->keys,
                              .done = on_done,
                              .user = t};
    *out = t;
    return GX_OK;
}

static gx_status submit(gx_service *s, const gx_submission *sub, const gx_query_options *opt, gx_service_job **jobs,
                        uint64_t *first, gx_error *err)
{
    const uint64_t begin = now();
    uint64_t number = 0;
    uint32_t n = 0;
    gx_status st = GX_OK;
    for (gx_ticket *t = NULL; n < sub->n && (st = make_ticket(&t, s, sub, opt, n, err)) == GX_OK; ++n) {
        t->submitted = t->job.arrived = begin;
        t->job.deadline = sub->deadline > 0 ? begin + (uint64_t)(sub->deadline * 1e9) : 0;
        jobs[n] = &t->job;
        if (sub->tickets)
            sub->tickets[n] = t;
    }
    if (st == GX_OK)
        st = gx_service_put(s, jobs, n, false, &number, err);
    if (st == GX_OK && first)
        *first = number;
    if (st != GX_OK) {
        for (uint32_t i = 0; i < n; ++i) {
            free_ticket(jobs[i]->user);
            if (sub->tickets)
                sub->tickets[i] = NULL;
        }
    }
    return st;
}

gx_status gx_service_submit(gx_service *s, const gx_submission *given, uint64_t *first, gx_error *err)
{
    gx_submission sub = GX_SUBMISSION(NULL, 0, NULL);
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_status st =
        gx_sized_read(&sub, sizeof sub, given, GX_SIZE_THROUGH(gx_submission, tickets), "gx_submission", err);
    if (st == GX_OK)
        st = gx_sized_read(&opt, sizeof opt, sub.options, QUERY_OPTIONS_LEAST, "gx_query_options", err);
    if (st == GX_OK)
        st = gx_query_options_check(&opt, gx_engine_index(gx_service_planner(s)), err);
    if (st == GX_OK && (!sub.queries || !sub.n || !(sub.deadline >= 0 && sub.deadline <= 1e6)))
        st = gx_fail(err, GX_EUSAGE, "a submission needs queries, and a deadline from 0 to 1e6 seconds");
    if (st == GX_OK && sub.gpu_mask && (!opt.mask || !s->opt.cpu))
        st = gx_fail(err, GX_EUSAGE, "a mask on the GPU goes with the same mask on the CPU");
    if (st == GX_OK)
        st = gx_sized_check(sub.queries->size, GX_SIZE_THROUGH(gx_query, n_terms), "gx_query", err);
    if (st != GX_OK)
        return st;
    gx_service_job **jobs = malloc(sub.n * sizeof *jobs);
    if (!jobs)
        return gx_fail(err, GX_ENOMEM, "no memory for a submission of %u queries", sub.n);
    st = submit(s, &sub, &opt, jobs, first, err);
    free(jobs);
    return st;
}
