/* service_guests.c: where nothing waits, a caller that puts one short query answers it itself, as a guest: no
 * thread needs to be told of it then. */
#include "query/schedule/service_state.h"

#include <stdlib.h>

#include "engine/status.h"
#include "engine/thread_number.h"

#define PLACES_A_CALLER 4u /* guests for each caller that may answer at once: a thread finds its last one free */
#define MOST_GUESTS 64u    /* but no more than this number, or one for each caller */

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
static gx_worker *take_guest(gx_service *s)
{
    const uint32_t mine = gx_thread_number();
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

static void leave_guest(gx_service *s, gx_worker *w)
{
    atomic_store(&w->visited, false);
    atomic_fetch_sub(&s->n_visits, 1);
}

/* Take the query of a caller, as a thread of the CPU does. The query waits like any other where the
 * scheduler has another processor for it, or a place that is nearer. NULL: it has not been put. */
static gx_worker *visit(gx_service *s, gx_service_job *job)
{
    gx_worker *w = NULL;
    if (atomic_load(&s->n_held) > 1 || pthread_mutex_trylock(&s->lock))
        return NULL;
    if (is_idle(s) && (w = take_guest(s))) {
        job->next = NULL;
        s->arriving = job;
        w->n = gx_worker_take(w, &w->ns);
    }
    pthread_mutex_unlock(&s->lock);
    return w;
}

/* Answer a query in its caller's thread, without the lock and without the scheduler, where no other
 * waits and the CPU is predicted to be faster. All that other threads write and that is touched here
 * lies in one cache line. false: nothing has been done. */
static bool answer_at_once(gx_service *s, gx_service_job *job)
{
    gx_worker *w;
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
    gx_worker_answer(w);
    leave_guest(s, w);
    atomic_fetch_add(&s->n_at_once, 1);
    if (atomic_fetch_sub(&s->n_pending, 1) == 1 && atomic_load(&s->n_draining)) {
        pthread_mutex_lock(&s->lock);
        pthread_cond_broadcast(&s->drained);
        pthread_mutex_unlock(&s->lock);
    }
    return true;
}

bool gx_service_answer_here(gx_service *s, gx_service_job *job)
{
    gx_worker *w;
    if (!s->n_guests || job->described.cpu > s->opt.caller_seconds * 1e9 || job->described.only == GX_PROCESSOR_GPU)
        return false;
    if (answer_at_once(s, job))
        return true;
    if (!(w = visit(s, job)))
        return false;
    if (w->n)
        gx_worker_answer(w);
    pthread_mutex_lock(&s->lock);
    if (w->n)
        gx_worker_end_work(w);
    pthread_mutex_unlock(&s->lock);
    leave_guest(s, w);
    return true;
}
