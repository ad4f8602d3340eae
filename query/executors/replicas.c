/* replicas.c: the executor of an engine on several GPUs, each of which holds the whole index.
 *
 * A session belongs to the GPU with the fewest sessions. Where GPUs have no session at all, a large
 * batch is split between the session's own GPU and those, a thread each. Answers do not depend on
 * the GPU.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/parallel.h"
#include "engine/status.h"
#include "query/exec/exec.h"
#include "query/filter/mask.h"

#define LEAST_PIECE 128u /* queries: fewer do not pay for a thread */

typedef struct replicas {
    const gx_executor *ops; /* of each GPU */
    uint32_t n;
    void *states[GX_MAX_DEVICES]; /* [n] */
    char description[GX_MAX_DEVICES * 64];
    pthread_mutex_t lock;                /* of what follows */
    uint32_t n_sessions[GX_MAX_DEVICES]; /* [n] */
} replicas;

/* A mask on each GPU. */
typedef struct replica_masks {
    void *on[GX_MAX_DEVICES];
} replica_masks;

/* What the copy of a plan points at instead of what the plan does. */
typedef struct plan_copy {
    const gx_plan *plan;
    pthread_mutex_t *cancel_lock;
    gx_mask mask;
} plan_copy;

typedef struct replicas_workspace {
    replicas *r;
    uint32_t own;                 /* its GPU */
    void *execs[GX_MAX_DEVICES];  /* its GPU's; another's once a batch was split */
    bool refused[GX_MAX_DEVICES]; /* no workspace could be opened there */
    pthread_mutex_t cancel_lock;  /* held while a plan's cancel function runs */
    gx_plan *plans;               /* [max_plans] copies */
    plan_copy *copies;            /* [max_copies] */
    size_t max_plans, max_copies;
} replicas_workspace;

/* ---- the index ---- */

typedef struct opening {
    replicas *r;
    const gx_index *ix;
    const gx_engine_options *opt;
    gx_status st[GX_MAX_DEVICES];
    gx_error errors[GX_MAX_DEVICES];
} opening;

static void open_one(void *user, uint32_t i)
{
    opening *o = user;
    gx_engine_options own = *o->opt;
    own.device = o->opt->devices[i];
    o->st[i] = o->r->ops->state_open(&o->r->states[i], o->ix, &own, &o->errors[i]);
    if (o->st[i] != GX_OK)
        o->r->states[i] = NULL;
}

static void replicas_release_index(void *state)
{
    replicas *r = state;
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n; ++i) {
        if (r->states[i])
            r->ops->release_index(r->states[i]);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}

gx_status gx_replicas_open(void **state, const gx_executor *ops, const gx_index *ix, const gx_engine_options *opt,
                           gx_error *err)
{
    *state = NULL;
    replicas *r = calloc(1, sizeof *r);
    opening *o = calloc(1, sizeof *o);
    if (!r || !o) {
        free(r);
        free(o);
        return gx_fail(err, GX_ENOMEM, "no memory for an engine on %u GPUs", opt->n_devices);
    }
    pthread_mutex_init(&r->lock, NULL);
    r->ops = ops;
    r->n = opt->n_devices;
    o->r = r;
    o->ix = ix;
    o->opt = opt;
    gx_parallel_for(r->n, r->n, open_one, o);
    gx_status st = GX_OK;
    size_t len = 0;
    for (uint32_t i = 0; i < r->n && st == GX_OK; ++i) {
        if ((st = o->st[i]) != GX_OK)
            gx_fail(err, st, "%s", o->errors[i].text);
        else if (len < sizeof r->description)
            len += (size_t)snprintf(r->description + len, sizeof r->description - len, "%s%s", i ? ", " : "",
                                    ops->describe(r->states[i]));
    }
    free(o);
    if (st == GX_OK)
        *state = r;
    else
        replicas_release_index(r);
    return st;
}

static const char *replicas_describe(const void *state)
{
    return ((const replicas *)state)->description;
}

/* ---- sessions ---- */

static void replicas_workspace_close(void *exec)
{
    replicas_workspace *w = exec;
    if (!w)
        return;
    for (uint32_t i = 0; i < w->r->n; ++i) {
        if (w->execs[i])
            w->r->ops->workspace_close(w->execs[i]);
    }
    pthread_mutex_lock(&w->r->lock);
    w->r->n_sessions[w->own] -= 1;
    pthread_mutex_unlock(&w->r->lock);
    pthread_mutex_destroy(&w->cancel_lock);
    free(w->plans);
    free(w->copies);
    free(w);
}

static gx_status replicas_workspace_open(void **out, void *state, gx_error *err)
{
    replicas *r = state;
    *out = NULL;
    replicas_workspace *w = calloc(1, sizeof *w);
    if (!w)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    pthread_mutex_init(&w->cancel_lock, NULL);
    w->r = r;
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 1; i < r->n; ++i) {
        if (r->n_sessions[i] < r->n_sessions[w->own])
            w->own = i;
    }
    r->n_sessions[w->own] += 1;
    pthread_mutex_unlock(&r->lock);
    const gx_status st = r->ops->workspace_open(&w->execs[w->own], r->states[w->own], err);
    if (st != GX_OK) {
        w->execs[w->own] = NULL;
        replicas_workspace_close(w);
        return st;
    }
    *out = w;
    return GX_OK;
}

static void replicas_memory(const void *exec, uint64_t *device, uint64_t *pinned)
{
    const replicas_workspace *w = exec;
    *device = *pinned = 0;
    for (uint32_t i = 0; i < w->r->n; ++i) {
        uint64_t d = 0, p = 0;
        if (w->execs[i] && w->r->ops->memory)
            w->r->ops->memory(w->execs[i], &d, &p);
        *device += d;
        *pinned += p;
    }
}

/* ---- masks ---- */

static void replicas_mask_close(void *state, void *mask)
{
    replicas *r = state;
    replica_masks *m = mask;
    for (uint32_t i = 0; m && i < r->n; ++i) {
        if (m->on[i])
            r->ops->mask_close(r->states[i], m->on[i]);
    }
    free(m);
}

static gx_status replicas_mask_open(void **out, void *state, const uint32_t *words, gx_error *err)
{
    replicas *r = state;
    replica_masks *m = calloc(1, sizeof *m);
    *out = NULL;
    gx_status st = m ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for a mask");
    for (uint32_t i = 0; i < r->n && st == GX_OK; ++i) {
        if ((st = r->ops->mask_open(&m->on[i], r->states[i], words, err)) != GX_OK)
            m->on[i] = NULL;
    }
    if (st != GX_OK) {
        replicas_mask_close(r, m);
        return st;
    }
    *out = m;
    return GX_OK;
}

static bool replicas_take_filter(void *state, const gx_plan *plan)
{
    const replicas *r = state;
    bool taken = r->ops->takes_filter != NULL;
    for (uint32_t i = 0; i < r->n && taken; ++i)
        taken = r->ops->takes_filter(r->states[i], plan);
    return taken;
}

static bool replicas_take_programs(void *state)
{
    const replicas *r = state;
    bool taken = r->ops->takes_programs != NULL;
    for (uint32_t i = 0; i < r->n && taken; ++i)
        taken = r->ops->takes_programs(r->states[i]);
    return taken;
}

/* ---- a batch ---- */

/* A GPU's share of a batch. */
typedef struct piece {
    const gx_executor *ops;
    void *exec;
    const gx_plan *plans;
    gx_hits *hits;
    uint32_t n;
    gx_status st;
    gx_search_stats work;
    gx_error err;
} piece;

static void run_piece(void *user, uint32_t i)
{
    piece *p = (piece *)user + i;
    p->st = p->ops->run(p->exec, p->plans, p->n, p->hits, &p->work, &p->err);
}

static bool cancel_one_at_a_time(void *user)
{
    const plan_copy *c = user;
    pthread_mutex_lock(c->cancel_lock);
    const bool stop = c->plan->cancel(c->plan->user);
    pthread_mutex_unlock(c->cancel_lock);
    return stop;
}

/* Copy plans [begin, end) for GPU i, with its masks. split: their cancel functions are called from
 * several threads, one at a time. */
static void copy_plans(replicas_workspace *w, const gx_plan *plans, uint32_t begin, uint32_t end, uint32_t i,
                       bool split)
{
    for (uint32_t q = begin; q < end; ++q) {
        gx_plan *p = &w->plans[q];
        plan_copy *c = &w->copies[q];
        *p = plans[q];
        c->plan = &plans[q];
        c->cancel_lock = &w->cancel_lock;
        if (p->mask) {
            const replica_masks *m = p->mask->device;
            c->mask = *p->mask;
            c->mask.device = m ? m->on[i] : NULL;
            p->mask = &c->mask;
        }
        if (p->cancel && split) {
            p->cancel = cancel_one_at_a_time;
            p->user = c;
        }
    }
}

/* The GPUs that search a batch. */
typedef struct device_list {
    uint32_t n, at[GX_MAX_DEVICES];
} device_list;

/* The session's own GPU, and for a large batch those without a session. */
static device_list choose_devices(replicas_workspace *w, uint32_t n)
{
    replicas *r = w->r;
    device_list idle = {0}, out = {.n = 1, .at = {w->own}};
    if (n < 2 * LEAST_PIECE)
        return out;
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->n; ++i) {
        if (r->n_sessions[i] == 0 && !w->refused[i])
            idle.at[idle.n++] = i;
    }
    pthread_mutex_unlock(&r->lock);
    for (uint32_t d = 0; d < idle.n && n / (out.n + 1) >= LEAST_PIECE; ++d) {
        const uint32_t i = idle.at[d];
        gx_error ignored;
        if (!w->execs[i] && r->ops->workspace_open(&w->execs[i], r->states[i], &ignored) != GX_OK) {
            w->execs[i] = NULL;
            w->refused[i] = true;
            continue;
        }
        out.at[out.n++] = i;
    }
    return out;
}

/* Fill the pieces, one for each GPU of the list. */
static void cut_batch(replicas_workspace *w, const device_list *devices, const gx_plan *plans, uint32_t n,
                      gx_hits *hits, piece *pieces)
{
    for (uint32_t d = 0; d < devices->n; ++d) {
        const uint32_t begin = (uint32_t)((uint64_t)n * d / devices->n),
                       end = (uint32_t)((uint64_t)n * (d + 1) / devices->n);
        copy_plans(w, plans, begin, end, devices->at[d], true);
        pieces[d].ops = w->r->ops;
        pieces[d].exec = w->execs[devices->at[d]];
        pieces[d].plans = w->plans + begin;
        pieces[d].hits = hits + begin;
        pieces[d].n = end - begin;
    }
}

/* Search the pieces at once, a thread each. */
static gx_status run_pieces(piece *pieces, uint32_t n, gx_search_stats *work, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t d = gx_parallel_run(n, run_piece, pieces); d < n; ++d)
        run_piece(pieces, d); /* a thread could not be started */
    for (uint32_t d = 0; d < n; ++d) {
        if (work)
            gx_search_stats_add(work, &pieces[d].work);
        if (pieces[d].st != GX_OK && st == GX_OK)
            st = gx_fail(err, pieces[d].st, "%s", pieces[d].err.text);
    }
    return st;
}

static gx_status replicas_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work,
                              gx_error *err)
{
    replicas_workspace *w = exec;
    const device_list devices = choose_devices(w, n);
    bool masked = false;
    for (uint32_t i = 0; i < n; ++i)
        masked = masked || plans[i].mask;
    if (!masked && devices.n == 1)
        return w->r->ops->run(w->execs[w->own], plans, n, hits, work, err);
    piece *pieces = calloc(devices.n, sizeof *pieces);
    if (!pieces || !gx_reserve(&w->plans, &w->max_plans, n, sizeof *w->plans) ||
        !gx_reserve(&w->copies, &w->max_copies, n, sizeof *w->copies)) {
        free(pieces);
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    }
    gx_status st;
    if (devices.n > 1) {
        cut_batch(w, &devices, plans, n, hits, pieces);
        st = run_pieces(pieces, devices.n, work, err);
    } else {
        copy_plans(w, plans, 0, n, w->own, false);
        st = w->r->ops->run(w->execs[w->own], w->plans, n, hits, work, err);
    }
    free(pieces);
    return st;
}

static gx_status replicas_warm(void *state, const uint32_t *counts, gx_error *err)
{
    const replicas *r = state;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < r->n && st == GX_OK && r->ops->warm; ++i)
        st = r->ops->warm(r->states[i], counts, err);
    return st;
}

/* On the first GPU: the pools of all fill with the same uses, a session's each with its own. */
static uint64_t replicas_missing_bytes(const void *state, const gx_plan *plan)
{
    const replicas *r = state;
    return r->ops->missing_bytes ? r->ops->missing_bytes(r->states[0], plan) : 0;
}

/* The session's own GPU counts. */
static gx_status replicas_facet_ordinals(void *exec, uint32_t column, const gx_facet *facet,
                                         const gx_facet_ordinals **out, gx_error *err)
{
    replicas_workspace *w = exec;
    *out = NULL;
    return w->r->ops->facet_ordinals ? w->r->ops->facet_ordinals(w->execs[w->own], column, facet, out, err) : GX_OK;
}

static gx_status replicas_count_matches(void *exec, const gx_plan *plans, uint32_t n,
                                        const gx_facet_ordinals *const *facets, uint32_t n_facets,
                                        gx_match_counts *counts, bool *counted, gx_error *err)
{
    replicas_workspace *w = exec;
    if (!gx_reserve(&w->plans, &w->max_plans, n, sizeof *w->plans) ||
        !gx_reserve(&w->copies, &w->max_copies, n, sizeof *w->copies))
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    copy_plans(w, plans, 0, n, w->own, false);
    return w->r->ops->count_matches(w->execs[w->own], w->plans, n, facets, n_facets, counts, counted, err);
}

const gx_executor gx_executor_replicas = {"gpus",
                                          NULL,
                                          replicas_release_index,
                                          replicas_describe,
                                          replicas_workspace_open,
                                          replicas_workspace_close,
                                          replicas_run,
                                          replicas_mask_open,
                                          replicas_mask_close,
                                          replicas_memory,
                                          NULL,
                                          replicas_take_filter,
                                          replicas_warm,
                                          NULL,
                                          replicas_missing_bytes,
                                          replicas_facet_ordinals,
                                          replicas_count_matches,
                                          .takes_programs = replicas_take_programs};
