/* replay_service.c: the batches of a replay are answered by a service. A thread has several there at once. */
#include "query/replay/replay_state.h"

/* Count an answered batch, and deliver its lines. */
static void settle(gx_replay_worker *w)
{
    bool good = true;
    const uint64_t begin = gx_replay_now();
    for (uint32_t i = 0; i < w->n && good; ++i) {
        w->hits[i].n = w->jobs[i].n;
        good = w->jobs[i].status == GX_OK;
    }
    if (good)
        gx_replay_count(w, w->begin, w->ends, 0);
    good = good && gx_replay_format(w);
    gx_replay_free_plans(w);
    if (good)
        gx_replay_deliver(w);
    w->stages.write += (double)(gx_replay_now() - begin) * 1e-9;
}

/* Settle the batches of a home that are answered. The caller holds the lock, which is released
 * meanwhile. */
static void settle_answered(gx_replay_worker *home)
{
    gx_replay_pass *r = home->r;
    for (gx_replay_worker *w; (w = home->answered) != NULL;) {
        home->answered = w->next;
        --home->n_in_service;
        pthread_mutex_unlock(&r->lock);
        settle(w);
        pthread_mutex_lock(&r->lock);
        w->next = home->free;
        home->free = w;
    }
}

/* A worker of the home for the next batch. NULL: the pass has failed. Where a run is written, no
 * more batches are taken than can wait for earlier ones, so that `deliver` never waits. */
static gx_replay_worker *borrow(gx_replay_worker *home)
{
    gx_replay_pass *r = home->r;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        settle_answered(home);
        if (r->status != GX_OK || (home->free && (!r->run || r->borrowed - r->delivered < r->n_waits)))
            break;
        pthread_cond_wait(&r->moved, &r->lock);
    }
    gx_replay_worker *w = r->status == GX_OK ? home->free : NULL;
    if (w) {
        home->free = w->next;
        ++home->n_in_service; /* soon */
        ++r->borrowed;
    }
    pthread_mutex_unlock(&r->lock);
    return w;
}

/* Give back a worker whose batch was not submitted. */
static void give_back(gx_replay_worker *w)
{
    gx_replay_pass *r = w->r;
    pthread_mutex_lock(&r->lock);
    w->next = w->home->free;
    w->home->free = w;
    --w->home->n_in_service;
    --r->borrowed;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
}

/* The whole batch is answered. In a thread of the service: its home counts it. */
static void finish_batch(gx_replay_worker *w)
{
    gx_replay_pass *r = w->r;
    pthread_mutex_lock(&r->lock);
    if (w->waited_for) {
        w->waited_for = false;
    } else {
        w->next = w->home->answered;
        w->home->answered = w;
    }
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
}

static void on_done(gx_service_job *job)
{
    gx_replay_worker *w = job->user;
    w->ends[job - w->jobs] = gx_replay_now();
    if (job->status != GX_OK)
        gx_replay_fail(w->r, job->status, job->err);
    if (atomic_fetch_sub(&w->n_unanswered, 1) == 1)
        finish_batch(w);
}

/* Hand the planned batch to the service, which then owns the worker. */
static bool submit(gx_replay_worker *w, bool wait)
{
    gx_replay_pass *r = w->r;
    gx_error err = {0};
    uint64_t number;
    for (uint32_t i = 0; i < w->n; ++i) {
        const gx_plan *p = &w->plans[i];
        const uint64_t arrived = w->queries[i].due ? w->queries[i].due : w->begin;
        w->jobs[i] =
            (gx_service_job){.plan = p,
                             .gpu_mask = p->own_mask ? NULL : r->opt->service_mask,
                             .keys = w->keys + (size_t)i * r->max_k,
                             .highs = w->highs ? w->highs + (size_t)i * r->max_k : NULL,
                             .arrived = arrived,
                             .deadline = r->deadline && r->deadline < UINT64_MAX / 4 ? arrived + r->deadline : 0,
                             .done = on_done,
                             .user = w};
        w->hits[i] = (gx_hits){w->jobs[i].keys, 0, w->jobs[i].highs};
        w->sent[i] = &w->jobs[i];
    }
    w->waited_for = wait;
    atomic_store(&w->n_unanswered, w->n);
    const gx_status st = gx_service_put(r->service, w->sent, w->n, true, &number, &err);
    return st == GX_OK || gx_replay_fail(r, st, &err);
}

bool gx_replay_search_by_service(gx_replay_worker *w)
{
    gx_replay_pass *r = w->r;
    w->begin = gx_replay_now();
    if (!submit(w, true))
        return false;
    pthread_mutex_lock(&r->lock);
    while (w->waited_for)
        pthread_cond_wait(&r->moved, &r->lock);
    const bool good = r->status == GX_OK;
    pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < w->n && good; ++i)
        w->hits[i].n = w->jobs[i].n;
    return good;
}

/* Fill a worker's batch and hand it to the service. false: the log has ended, or the pass has
 * failed. */
static bool feed(gx_replay_worker *home, gx_replay_worker *w)
{
    gx_replay_pass *r = home->r;
    if (!gx_replay_take(w)) {
        give_back(w);
        return false;
    }
    w->begin = gx_replay_now();
    const bool planned = gx_replay_plan(w, home->session, r->en);
    w->stages.plan += (double)(gx_replay_now() - w->begin) * 1e-9;
    if (planned && submit(w, false))
        return true;
    if (planned)
        gx_replay_free_plans(w);
    give_back(w);
    return false;
}

void gx_replay_feed_service(gx_replay_worker *home)
{
    gx_replay_pass *r = home->r;
    gx_replay_worker *w;
    while ((w = borrow(home)) && feed(home, w))
        ;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        settle_answered(home);
        if (!home->n_in_service)
            break;
        pthread_cond_wait(&r->moved, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
}
