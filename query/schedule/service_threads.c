/* service_threads.c: the threads of a service: they take queries, and wait for them. An idle thread polls
 * `changes` for a while before it sleeps. */
#include "query/schedule/service_state.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "engine/pause.h"
#include "engine/status.h"
#include "query/schedule/decisions.h"

#define MOST_CPU_TAKE 8u  /* queries that a CPU thread takes at once where many wait */
#define CPU_ABSORBS 64u   /* arrivals that a CPU thread absorbs at once */
#define POLLS_PER_LOOK 16 /* at the clock */

/* ---- waking ---- */

void gx_service_wake(gx_service *s, gx_processor p, uint32_t n)
{
    const uint32_t polling = atomic_load(&s->n_polling[p]), sleeping = atomic_load(&s->n_sleeping[p]);
    for (uint32_t i = polling; i < n && i - polling < sleeping; ++i)
        pthread_cond_signal(&s->work[p]);
}

/* Whether something has been put that a thread of the processor may take, or watch, without being woken. */
static bool has_arrived(gx_service *s, gx_processor p, bool watches)
{
    if (atomic_load(&s->arrived))
        return true;
    return !watches && atomic_load(&s->n_chunked) && !(p == GX_PROCESSOR_GPU && atomic_load(&s->gpu_lost));
}

/* Sleep until woken, or until the time `until`; but not where something has arrived that the thread has not seen. The
 * caller holds the lock. A query that is put after that look finds that somebody sleeps, see wake_for (service.c) and
 * push (service_chunks.c): both sides tell first and look then, so that one of them sees the other. */
static void sleep_until(gx_service *s, gx_processor p, uint64_t until)
{
    const struct timespec t = gx_service_time_at(until);
    const bool watches = p == GX_PROCESSOR_CPU && until != UINT64_MAX;
    atomic_fetch_add(&s->n_watching, watches);
    atomic_fetch_add(&s->n_sleeping[p], 1);
    if (has_arrived(s, p, watches))
        ;
    else if (until == UINT64_MAX)
        pthread_cond_wait(&s->work[p], &s->lock);
    else
        pthread_cond_timedwait(&s->work[p], &s->lock, &t);
    atomic_fetch_sub(&s->n_sleeping[p], 1);
    atomic_fetch_sub(&s->n_watching, watches);
}

void gx_service_count_done(gx_service *s, uint32_t n)
{
    if (atomic_fetch_sub(&s->n_pending, n) == n)
        pthread_cond_broadcast(&s->drained);
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

uint32_t gx_service_absorb(gx_service *s, uint64_t t, uint32_t most)
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

void gx_service_make_room(gx_service *s, uint32_t n)
{
    atomic_fetch_sub(&s->n_held, n);
    if (s->n_wait_for_room)
        pthread_cond_broadcast(&s->room);
}

/* How many queries a thread takes at most. A CPU thread takes several only where there is enough
 * for all of them. */
static uint32_t most_to_take(const gx_worker *w)
{
    if (w->p == GX_PROCESSOR_GPU)
        return w->max;
    const uint32_t share = gx_scheduler_waiting(w->s->scheduler) / (4 * w->s->opt.cpu_threads);
    return share < 1 ? 1 : share < w->max ? share : w->max;
}

/* Take what the scheduler decides, after it has been told of what has arrived: *all queries. */
static uint32_t take_scheduled(gx_worker *w, uint64_t t, double *ns, uint32_t *all)
{
    gx_service *s = w->s;
    uint32_t n = 0, most, absorbed;
    do {
        *all += absorbed = gx_service_absorb(s, t, w->absorbs);
        most = most_to_take(w);
        n = gx_scheduler_take(s->scheduler, t, w->p, w->slots, most, ns);
    } while (!n && absorbed);
    for (uint32_t i = 0; i < n; ++i) {
        w->jobs[i] = s->jobs[w->slots[i]];
        s->jobs[w->slots[i]] = NULL;
    }
    if (n && s->decisions)
        gx_decisions_take(s->decisions, t, w->p, most, w->slots, n, *ns);
    return n;
}

/* A thread of the GPU leaves chunks: the next one takes them, or, where all are busy and perhaps hang, a thread of the
 * CPU watches them. A thread of the CPU that leaves anything wakes the next one. */
static void wake_next(gx_worker *w)
{
    gx_service *s = w->s;
    if (w->p == GX_PROCESSOR_CPU ? !gx_service_has_work(s) : !atomic_load(&s->n_chunked))
        return;
    gx_service_wake(s, w->p, atomic_load(&s->n_polling[w->p]) + 1); /* and so on, one thread after the other */
    if (w->p == GX_PROCESSOR_GPU && !atomic_load(&s->n_sleeping[w->p]) && !atomic_load(&s->n_polling[w->p]) &&
        !atomic_load(&s->n_watching))
        gx_service_wake(s, GX_PROCESSOR_CPU, 1);
}

uint32_t gx_worker_take(gx_worker *w, double *ns)
{
    gx_service *s = w->s;
    const uint64_t t = gx_service_now();
    uint32_t all = 0, n = 0;
    w->turn = !w->turn;
    if (w->turn)
        n = gx_chunks_take(w, t, ns);
    if (!n)
        n = take_scheduled(w, t, ns, &all);
    if (!n && !w->turn)
        n = gx_chunks_take(w, t, ns);
    s->counts.by[w->p] += n;
    if (n)
        gx_service_make_room(s, n);
    if (all && gx_service_has_work(s)) {
        gx_service_change(s);
        gx_service_wake(s, GX_PROCESSOR_CPU, s->opt.cpu_threads);
        gx_service_wake(s, GX_PROCESSOR_GPU, 1);
    } else if (n) {
        wake_next(w);
    }
    return n;
}

/* ---- working ---- */

/* The GPU has failed: wait, then try it again. Returns false where the service closes meanwhile. */
static bool return_to_gpu(gx_worker *w)
{
    gx_service *s = w->s;
    gx_error err;
    const struct timespec t = gx_service_time_at(w->retry_at);
    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->closing) && gx_service_now() < w->retry_at)
        pthread_cond_timedwait(&s->retries, &s->lock, &t);
    const bool all_returned = gx_service_free_left(s);
    pthread_mutex_unlock(&s->lock);
    if (atomic_load(&s->closing))
        return false;
    if (!all_returned || gx_session_open(&w->session, s->opt.gpu, &err) != GX_OK) {
        pthread_mutex_lock(&s->lock);
        gx_worker_put_off(w);
        pthread_mutex_unlock(&s->lock);
        return true;
    }
    pthread_mutex_lock(&s->lock);
    gx_scheduler_set_gpu(s->scheduler, true);
    atomic_store(&s->gpu_lost, false);
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
        if (turn % POLLS_PER_LOOK == 0 && gx_service_now() >= until)
            return;
        gx_pause();
    }
}

/* Wait for queries, by polling first. Returns how many the thread has taken; 0: the service
 * closes. The caller holds the lock, which is released while the thread waits. */
static uint32_t wait_for_work(gx_worker *w, double *ns)
{
    gx_service *s = w->s;
    uint64_t spin_until = 0;
    for (;;) {
        const unsigned seen = atomic_load_explicit(&s->changes, memory_order_acquire);
        const uint32_t n = atomic_load(&s->closing) ? 0 : gx_worker_take(w, ns);
        if (n || atomic_load(&s->closing))
            return n;
        const uint64_t t = gx_service_now(),
                       next = w->p == GX_PROCESSOR_GPU ? gx_scheduler_next(s->scheduler) : gx_chunks_next(s, t);
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

void gx_worker_end_work(gx_worker *w)
{
    gx_service *s = w->s;
    s->counts.answered += w->n;
    gx_service_count_done(s, w->n);
    gx_scheduler_done(s->scheduler, w->p, w->ns);
    if (s->decisions)
        gx_decisions_done(s->decisions, w->p, w->ns);
    if (w->p != GX_PROCESSOR_GPU)
        return;
    if (w->session)
        s->retry = s->opt.retry;
    if (gx_service_has_work(s)) { /* another thread may take now */
        gx_service_change(s);
        gx_service_wake(s, GX_PROCESSOR_GPU, 1);
    }
}

void gx_worker_answer_inherited(gx_worker *w)
{
    gx_error err = {0};
    gx_fail(&err, GX_ECUDA, "the GPU has not answered within %g s", w->s->opt.hang);
    gx_worker_lose_gpu(w, w->n, &err);
    pthread_mutex_lock(&w->s->lock);
    gx_worker_end_work(w);
    pthread_mutex_unlock(&w->s->lock);
    w->inherited = false;
}

/* Take queries and answer them, until there is no session, the service closes, or the thread is
 * left. Returns whether the service closes. */
static bool work_with_session(gx_worker *w)
{
    gx_service *s = w->s;
    pthread_mutex_lock(&s->lock);
    while (w->session && (w->n = wait_for_work(w, &w->ns)) > 0) {
        pthread_mutex_unlock(&s->lock);
        gx_worker_answer(w);
        if (gx_worker_was_left(w))
            return false;
        pthread_mutex_lock(&s->lock);
        gx_worker_end_work(w);
    }
    pthread_mutex_unlock(&s->lock);
    return atomic_load(&s->closing);
}

void gx_worker_work(void *user, uint32_t number)
{
    gx_worker *w = user;
    gx_service *s = w->s;
    (void)number;
    prctl(PR_SET_TIMERSLACK, 1); /* ns: batches close in time */
    if (w->inherited)
        gx_worker_answer_inherited(w);
    for (bool closing = false; !closing;) {
        closing = w->session ? work_with_session(w) : !return_to_gpu(w);
        if (gx_worker_was_left(w)) { /* from here on w is no longer this thread's */
            atomic_store(&w->returned, true);
            return;
        }
    }
    pthread_mutex_lock(&s->lock);
    if (--s->n_active == 0)
        pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->lock);
}

/* ---- opening, ending ---- */

void gx_worker_close(gx_worker *w)
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

gx_worker *gx_worker_open(gx_service *s, gx_processor p, uint32_t place)
{
    gx_worker *w = calloc(1, sizeof *w);
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
    gx_worker_close(w);
    return NULL;
}

void gx_service_end_threads(gx_service *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->n_active)
        pthread_cond_wait(&s->ended, &s->lock);
    s->watches = false;
    pthread_cond_broadcast(&s->ended);
    gx_service_give_up_left(s);
    pthread_mutex_unlock(&s->lock);
    gx_threads_join(s->watchdog);
    for (uint32_t i = 0; i < s->n_workers; ++i)
        gx_threads_join(s->workers[i]->thread);
}
