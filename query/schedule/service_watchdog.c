/* service_watchdog.c: a GPU that may hang. The watchdog leaves a thread that has waited for it too long: another
 * one takes its place, and its queries. So that it can be left, it works on copies. */
#include "query/schedule/service_state.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"

/* Threads that a GPU kept when their service was closed. */
static _Atomic(gx_worker *) abandoned;

/* ---- a batch that can be left ---- */

static bool reserve_copies(gx_worker *w, size_t n_terms, size_t n_keys)
{
    return gx_reserve(&w->terms, &w->max_terms, n_terms, sizeof *w->terms) &&
           gx_reserve(&w->keys, &w->max_keys, n_keys, sizeof *w->keys);
}

/* Ask whether a query is cancelled, but not once the thread is left: what is asked may be gone then. */
static bool ask_unless_left(void *user)
{
    const gx_guarded_cancel *c = user;
    pthread_mutex_lock(&c->w->asking);
    const bool cancelled = gx_worker_was_left(c->w) || c->cancel(c->user);
    pthread_mutex_unlock(&c->w->asking);
    return cancelled;
}

bool gx_worker_copy_batch(gx_worker *w, uint32_t n)
{
    size_t n_terms = 0, n_keys = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_plan *p = &w->plans[i];
        if (p->parts || p->mask || p->filter || p->phrases)
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
            w->cancels[i] = (gx_guarded_cancel){w, p->cancel, p->user};
            p->cancel = ask_unless_left;
            p->user = &w->cancels[i];
        }
        w->hits[i].keys = w->keys + n_keys;
        n_terms += p->n_terms;
        n_keys += p->k;
    }
    return true;
}

gx_status gx_worker_run_watched(gx_worker *w, uint32_t first, uint32_t n, gx_error *err)
{
    uint_fast64_t since = gx_service_now();
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

/* ---- leaving ---- */

bool gx_service_free_left(gx_service *s)
{
    for (gx_worker **at = &s->left; *at;) {
        gx_worker *w = *at;
        if (!atomic_load(&w->returned)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        gx_threads_join(w->thread);
        gx_worker_close(w);
    }
    return !s->left;
}

/* Leave a thread that has waited for the GPU since the time `since`, and put another one, which
 * answers its queries, in its place. false: the GPU has answered meanwhile, or there is no memory
 * for another thread. */
static bool leave(gx_worker *w, uint_fast64_t since)
{
    gx_service *s = w->s;
    gx_worker *heir = gx_worker_open(s, w->p, w->place);
    if (!heir)
        return false;
    heir->inherited = true;
    pthread_mutex_lock(&w->asking); /* before the other lock: what is asked may want that */
    pthread_mutex_lock(&s->lock);
    const bool left = atomic_compare_exchange_strong(&w->since, &since, GX_WORKER_LEFT);
    if (left) {
        memcpy(heir->jobs, w->jobs, w->n * sizeof *w->jobs);
        heir->n = w->n;
        heir->ns = w->ns;
        w->next = s->left;
        s->left = w;
        s->workers[w->place] = heir;
        ++s->counts.gpu_hung;
        heir->thread = gx_threads_start(1, 0, gx_worker_work, heir);
    }
    pthread_mutex_unlock(&w->asking); /* first: with the other lock another thread may free this one */
    pthread_mutex_unlock(&s->lock);
    if (!left) {
        gx_worker_close(heir);
    } else if (!heir->thread) { /* the watchdog answers in its place */
        gx_worker_answer_inherited(heir);
        pthread_mutex_lock(&s->lock);
        if (--s->n_active == 0)
            pthread_cond_broadcast(&s->ended);
        pthread_mutex_unlock(&s->lock);
    }
    return left;
}

void gx_service_watch(void *user, uint32_t number)
{
    gx_service *s = user;
    const uint64_t most = (uint64_t)(s->opt.hang * 1e9), step = most / 8 < 1000000000u ? most / 8 + 1 : 1000000000u;
    (void)number;
    pthread_mutex_lock(&s->lock);
    while (s->watches) {
        const uint64_t t = gx_service_now();
        const struct timespec next = gx_service_time_at(t + step);
        for (uint32_t i = 0; i < s->n_workers; ++i) {
            gx_worker *w = s->workers[i];
            const uint64_t since = atomic_load(&w->since);
            if (!since || since == GX_WORKER_LEFT || t < since + most)
                continue;
            pthread_mutex_unlock(&s->lock);
            leave(w, since); /* only this thread replaces workers */
            pthread_mutex_lock(&s->lock);
        }
        pthread_cond_timedwait(&s->ended, &s->lock, &next);
    }
    pthread_mutex_unlock(&s->lock);
}

void gx_service_give_up_left(gx_service *s)
{
    const uint64_t until = gx_service_now() + (uint64_t)(s->opt.hang * 1e9);
    for (struct timespec next; !gx_service_free_left(s) && gx_service_now() < until;) {
        next = gx_service_time_at(gx_service_now() + 1000000);
        pthread_cond_timedwait(&s->ended, &s->lock, &next);
    }
    for (gx_worker *w; (w = s->left);) {
        s->left = w->next;
        w->next = atomic_load(&abandoned);
        while (!atomic_compare_exchange_weak(&abandoned, &w->next, w))
            ;
    }
}
