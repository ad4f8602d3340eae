/* service_guests.c: where nothing waits, a caller that puts a few short queries answers them itself, as a guest: no
 * thread needs to be told of them then. Where there is no GPU, a caller answers as many queries as it has put also
 * where others wait: it is the oldest that it answers. */
#include "query/schedule/service_state.h"

#include <stdlib.h>

#include "engine/status.h"
#include "engine/thread_number.h"

#define PLACES_A_CALLER 4u /* guests for each caller that may answer at once: a thread finds its last one free */
#define MOST_AT_ONCE 4u    /* queries of a submission that its caller answers */
#define MOST_GUESTS 16u    /* but no more than this number, or one for each caller */

gx_status gx_service_open_guests(gx_service *s, gx_error *err)
{
    const uint32_t callers = s->opt.cpu ? s->opt.callers : 0, most = callers > MOST_GUESTS ? callers : MOST_GUESTS,
                   n = PLACES_A_CALLER * callers < most ? PLACES_A_CALLER * callers : most;
    gx_status st = GX_OK;
    s->guests = calloc(n + 1ull, sizeof(gx_worker *));
    if (!s->guests)
        return gx_fail(err, GX_ENOMEM, "no memory for %u callers that answer", n);
    for (; st == GX_OK && s->n_guests < n; ++s->n_guests) {
        gx_worker *w = s->guests[s->n_guests] = gx_worker_open(s, GX_PROCESSOR_CPU, s->n_guests);
        if (!w)
            return gx_fail(err, GX_ENOMEM, "no memory for %u callers that answer", n);
        w->max = 1;
        st = gx_session_open(&w->session, s->opt.cpu, err);
    }
    return st;
}

static bool is_idle(gx_service *s)
{
    return !atomic_load(&s->closing) && !gx_service_has_work(s);
}

/* Take the guest that the calling thread had last, whose memory is in its core's caches, or another
 * that is free. NULL: there is none. */
gx_worker *gx_service_take_guest(gx_service *s)
{
    const uint32_t mine = gx_thread_number();
    if (!s->n_guests)
        return NULL;
    if (atomic_fetch_add(&s->n_visits, 1) < s->opt.callers) {
        for (uint32_t i = 0; i < s->n_guests; ++i) {
            gx_worker *w = s->guests[(mine + i) % s->n_guests];
            if (!atomic_load(&w->visited) && !atomic_exchange(&w->visited, true))
                return w;
        }
    }
    atomic_fetch_sub(&s->n_visits, 1);
    return NULL;
}

void gx_service_leave_guest(gx_service *s, gx_worker *w)
{
    if (!w)
        return;
    atomic_store(&w->visited, false);
    atomic_fetch_sub(&s->n_visits, 1);
}

void gx_guest_answer(gx_worker *w, gx_service_job *job)
{
    w->n = 1;
    w->jobs[0] = job;
    gx_worker_answer(w);
}

static void broadcast(gx_service *s, pthread_cond_t *to)
{
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(to);
    pthread_mutex_unlock(&s->lock);
}

void gx_guests_take(gx_service *s, uint32_t n)
{
    atomic_fetch_sub(&s->n_held, n);
    if (atomic_load(&s->n_wait_for_room))
        broadcast(s, &s->room);
}

void gx_guests_done(gx_service *s, uint32_t n)
{
    atomic_fetch_add(&s->n_at_once, n);
    if (atomic_fetch_sub(&s->n_pending, n) == n && atomic_load(&s->n_draining))
        broadcast(s, &s->drained);
}

/* Take the query of a caller, as a thread of the CPU does. The query waits like any other where the
 * scheduler has another processor for it, or a place that is nearer. NULL: it has not been put. */
static gx_worker *visit(gx_service *s, gx_service_job *job)
{
    gx_worker *w = NULL;
    if (atomic_load(&s->n_held) > 1 || pthread_mutex_trylock(&s->lock))
        return NULL;
    if (is_idle(s) && (w = gx_service_take_guest(s))) {
        job->next = NULL;
        s->arriving = job;
        w->n = gx_worker_take(w, &w->ns);
    }
    pthread_mutex_unlock(&s->lock);
    return w;
}

/* Answer n queries in their caller's thread, one after the other, without the lock and without the
 * scheduler, where no other waits. All that other threads write and that is touched here lies in one
 * cache line. false: nothing has been done. */
static bool answer_at_once(gx_service *s, gx_service_job *const *jobs, uint32_t n)
{
    gx_worker *w;
    if (s->decisions || atomic_load(&s->n_held) != n || atomic_load(&s->closing) || !(w = gx_service_take_guest(s)))
        return false;
    gx_guests_take(s, n); /* others find that nothing waits */
    for (uint32_t i = 0; i < n; ++i)
        gx_guest_answer(w, jobs[i]);
    gx_service_leave_guest(s, w);
    gx_guests_done(s, n);
    return true;
}

/* Whether a caller may answer its queries: together they are short. *at_once: and the CPU is to answer each, if
 * nothing else waits. */
static bool are_short(const gx_service *s, gx_service_job *const *jobs, uint32_t n, bool *at_once)
{
    double all = 0;
    *at_once = true;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_schedule_job *j = &jobs[i]->described;
        if (j->only == GX_PROCESSOR_GPU)
            return false;
        *at_once = *at_once && (!s->opt.gpu || j->cpu <= j->gpu_alone);
        all += j->cpu;
    }
    return all <= s->opt.caller_seconds * 1e9;
}

bool gx_service_answer_here(gx_service *s, gx_service_job *const *jobs, uint32_t n)
{
    gx_worker *w;
    bool at_once;
    if (!s->n_guests || n > MOST_AT_ONCE || !are_short(s, jobs, n, &at_once))
        return false;
    if (at_once && answer_at_once(s, jobs, n))
        return true;
    if (n > 1 || !(w = visit(s, jobs[0])))
        return false;
    if (w->n)
        gx_worker_answer(w);
    pthread_mutex_lock(&s->lock);
    if (w->n)
        gx_worker_end_work(w);
    pthread_mutex_unlock(&s->lock);
    gx_service_leave_guest(s, w);
    return true;
}

/* Whether a thread of the CPU waits for a query, so that one that takes long is better left to it. */
static bool has_idle_thread(gx_service *s)
{
    return atomic_load(&s->n_polling[GX_PROCESSOR_CPU]) || atomic_load(&s->n_sleeping[GX_PROCESSOR_CPU]);
}

/* Take queries that wait, and answer them. Returns how many; 0: none waits. */
static uint32_t help_once(gx_service *s, gx_worker *w)
{
    pthread_mutex_lock(&s->lock);
    w->n = atomic_load(&s->closing) ? 0 : gx_worker_take(w, &w->ns);
    pthread_mutex_unlock(&s->lock);
    if (w->n == 0)
        return 0;
    gx_worker_answer(w);
    pthread_mutex_lock(&s->lock);
    gx_worker_end_work(w);
    pthread_mutex_unlock(&s->lock);
    return w->n;
}

gx_worker *gx_service_take_helper(gx_service *s, uint32_t n)
{
    const bool never = s->opt.gpu || !(s->opt.caller_seconds > 0);
    return never || (n == 1 && has_idle_thread(s)) ? NULL : gx_service_take_guest(s);
}

void gx_service_help(gx_service *s, gx_worker *w, uint32_t n)
{
    for (uint32_t done = 0, now; done < n && (now = help_once(s, w)); done += now)
        ;
    gx_service_leave_guest(s, w);
}
