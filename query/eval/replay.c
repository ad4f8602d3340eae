#include "query/eval/replay.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "engine/clock.h"
#include "engine/grow.h"
#include "engine/parallel.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "query/eval/arrivals.h"
#include "query/eval/log_memory.h"
#include "query/eval/run_file.h"
#include "query/mask.h"
#include "query/schedule/service.h"
#include "query/session.h"

#define BATCH_KEYS ((size_t)4 << 20) /* most results of a batch of more than one query */
#define PENDING_KEYS 65536u          /* for each thread, most results that wait for earlier batches to be written, */
#define MAX_PENDING 64u              /* and most batches */
#define MAX_SHOWN_DIFFERENCES 5
#define SLICE_NS 100000000u /* while a thread waits for a query to be due, it asks for cancelling this often */
#define SPIN_NS 100000u     /* the thread spins at the end of that wait, as waking up takes as long as a search */

#define KEPT_BYTES ((size_t)1 << 30) /* of a log that is read before the replay; a longer one is read query by query */

#define MOST_IN_SERVICE 16u      /* batches of a thread that the service may have at once, */
#define SERVICE_KEYS (64u << 20) /* and most results of all threads' batches there */

typedef enum pass_kind { WARM_UP, MEASURE, VERIFY } pass_kind;

/* The lines of a batch that wait until the batches before it are written. */
typedef struct pending_batch {
    gx_run_text lines;
    uint32_t n; /* queries of the batch; 0: no batch waits here */
} pending_batch;

/* One pass over the log: the data that the threads share. */
typedef struct replay {
    const gx_replay_options *opt;
    gx_engine *en;
    const gx_index *ix;
    gx_replay_report *report;
    uint32_t batch, max_k;
    gx_run *run; /* NULL: no run is written */

    pass_kind kind;
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

    pthread_mutex_t lock; /* guards the members that follow */
    pthread_cond_t moved; /* a batch has been delivered, or the pass has failed */
    uint64_t delivered;   /* batches */
    pending_batch *waits; /* [n_waits]: batch number seq waits at seq % n_waits */
    uint64_t n_waits;
    bool writing; /* a thread is writing the batches that wait */
    uint64_t n_done, n_shown;
    gx_status status;
    gx_error err;

    gx_service *service; /* NULL: the threads answer their batches themselves */
    uint64_t borrowed;   /* batches that a thread fills, or has filled */
} replay;

typedef struct batch_query {
    size_t id, text; /* offsets in the batch's bytes */
    size_t id_len, len;
    size_t filter, filter_len; /* likewise; filter_len 0: none */
    size_t first_term;         /* of vectors: its terms in the batch's */
    uint32_t n_terms;
    bool weighted;      /* it is a vector, and has no text */
    uint64_t line, due; /* due: ns of the monotonic clock; 0: it has no time of its own */
} batch_query;

/* A term of a vector. */
typedef struct batch_term {
    size_t at, len; /* in the batch's bytes */
    float weight;
} batch_term;

/* One thread with its sessions and its batch. With a service there are more: each holds a batch that
 * is in the service, and only the first ones have a thread and sessions. */
typedef struct worker {
    replay *r;
    gx_session *session, *other, *exhaustive;
    gx_engine *exhaustive_on; /* the engine of the session `exhaustive` */
    uint64_t seq;
    uint32_t n;
    batch_query *queries;        /* [batch] */
    gx_plan *plans;              /* [batch] */
    gx_filter **filters;         /* [batch] of the plans; NULL: none */
    gx_hits *hits, *again;       /* [batch] */
    uint64_t *keys, *keys_again; /* [batch * max_k] */
    char *bytes;                 /* ids and texts */
    size_t n_bytes, max_bytes;
    batch_term *terms;        /* [n_terms] of all its vectors */
    gx_weighted_term *vector; /* [max_vector] those of one */
    size_t n_terms, max_terms, max_vector;
    gx_run_text lines;
    gx_replay_stages stages;
    uint64_t results, without_results, impossible, late;
    uint64_t verified, other_differs, exhaustive_differs, exact_results, found_results;
    gx_histogram latency;
    gx_search_stats work_before;

    struct worker *home;     /* the worker with the thread that fills the batch */
    struct worker *free;     /* of a home: workers without a batch, a list by `next`, */
    struct worker *answered; /* and those whose batch is answered and not yet counted */
    uint32_t n_in_service;   /* of a home: workers whose batch is in the service */
    struct worker *next;
    gx_service_job *jobs;  /* [batch] NULL: there is no service */
    gx_service_job **sent; /* [batch] &jobs[i] */
    uint64_t *ends;        /* [batch] ns, when each was answered */
    uint64_t begin;        /* ns, when the batch had been taken */
    atomic_uint n_unanswered;
    bool waited_for; /* the batch's thread waits until it is answered */
} worker;

static uint64_t now(void)
{
    return gx_clock_nanoseconds(CLOCK_MONOTONIC);
}

/* ---- failing ---- */

static bool fail_pass(replay *r, gx_status st, const gx_error *err)
{
    pthread_mutex_lock(&r->lock);
    if (r->status == GX_OK) {
        r->status = st;
        r->err = *err;
    }
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
    return false;
}

static void say(replay *r, const char *text)
{
    if (r->opt->say && text[0]) {
        pthread_mutex_lock(&r->lock);
        r->opt->say(r->opt->user, text);
        pthread_mutex_unlock(&r->lock);
    }
}

/* ---- take ---- */

/* Copy the terms of a vector into the batch. */
static gx_status append_terms(worker *w, batch_query *to, const gx_log_query *q, gx_error *err)
{
    gx_status st = gx_grow(&w->terms, &w->max_terms, w->n_terms + q->n_terms, sizeof *w->terms, err);
    size_t need = w->n_bytes;
    for (uint32_t i = 0; i < q->n_terms; ++i)
        need += q->terms[i].len;
    if (st == GX_OK)
        st = gx_grow(&w->bytes, &w->max_bytes, need, 1, err);
    if (st != GX_OK)
        return st;
    to->weighted = true;
    to->first_term = w->n_terms;
    to->n_terms = q->n_terms;
    for (uint32_t i = 0; i < q->n_terms; ++i) {
        const gx_weighted_term *t = &q->terms[i];
        memcpy(w->bytes + w->n_bytes, t->term, t->len);
        w->terms[w->n_terms++] = (batch_term){w->n_bytes, t->len, t->weight};
        w->n_bytes += t->len;
    }
    return GX_OK;
}

/* The batch's query i as the engines take it; its terms live until the next call. */
static gx_status query_of(worker *w, uint32_t i, gx_query *out, gx_error *err)
{
    const batch_query *q = &w->queries[i];
    *out = (gx_query){.size = sizeof *out,
                      .kind = w->r->opt->kind,
                      .text = w->bytes + q->text,
                      .len = q->len,
                      .filter = w->filters[i]};
    if (!q->weighted)
        return GX_OK;
    const gx_status st = gx_grow(&w->vector, &w->max_vector, q->n_terms, sizeof *w->vector, err);
    for (uint32_t t = 0; st == GX_OK && t < q->n_terms; ++t) {
        const batch_term *from = &w->terms[q->first_term + t];
        w->vector[t] = (gx_weighted_term){w->bytes + from->at, from->len, from->weight};
    }
    out->kind = GX_QUERY_TERMS;
    out->terms = w->vector;
    out->n_terms = q->n_terms;
    return st;
}

static gx_status append_query(worker *w, const gx_log_query *q, uint64_t due, gx_error *err)
{
    const size_t need = w->n_bytes + q->id_len + q->len + q->filter_len;
    if (!gx_reserve(&w->bytes, &w->max_bytes, need, 1))
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %zu bytes of queries", need);
    const size_t id = w->n_bytes, text = id + q->id_len, filter = text + q->len;
    memcpy(w->bytes + id, q->id, q->id_len);
    memcpy(w->bytes + text, q->text, q->len);
    if (q->filter_len)
        memcpy(w->bytes + filter, q->filter, q->filter_len);
    w->n_bytes = need;
    batch_query *const to = &w->queries[w->n];
    *to = (batch_query){.id = id,
                        .text = text,
                        .id_len = q->id_len,
                        .len = q->len,
                        .filter = filter,
                        .filter_len = q->filter_len,
                        .line = q->line,
                        .due = due};
    const gx_status st = q->terms ? append_terms(w, to, q, err) : GX_OK;
    w->n += st == GX_OK;
    return st;
}

static gx_status ask_cancel(replay *r, gx_error *err)
{
    const gx_query_options *q = &r->opt->query;
    return q->cancel && q->cancel(q->user) ? gx_fail(err, GX_ECANCELLED, "interrupted") : GX_OK;
}

static bool has_failed(replay *r)
{
    pthread_mutex_lock(&r->lock);
    const bool failed = r->status != GX_OK;
    pthread_mutex_unlock(&r->lock);
    return failed;
}

/* Wait until the time `then`, in ns, or until the pass fails. GX_ECANCELLED. */
static gx_status wait_until(replay *r, uint64_t then, gx_error *err)
{
    gx_status st = GX_OK;
    uint64_t t;
    while ((t = now()) + SPIN_NS < then && st == GX_OK && !has_failed(r)) {
        const uint64_t left = then - SPIN_NS - t, to = t + (left < SLICE_NS ? left : SLICE_NS);
        const struct timespec at = {(time_t)(to / 1000000000u), (long)(to % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL); /* a signal may end it early */
        st = ask_cancel(r, err);
    }
    while (st == GX_OK && now() < then && t + SPIN_NS >= then)
        ;
    return st;
}

/* Read the next query of the log, and skip malformed ones if asked to. The caller holds
 * log_lock. */
static gx_status next_query(replay *r, gx_log_query *q, bool *more, gx_error *err)
{
    if (r->kept) {
        *more = r->next_kept < r->n_queries;
        if (*more)
            *q = r->kept->queries[r->next_kept++ % r->kept->n];
        return GX_OK;
    }
    for (;;) {
        const gx_status st = gx_log_next(r->log, q, more, err);
        if (st != GX_EINPUT || !r->opt->skip_bad)
            return st;
        if (r->kind == MEASURE)
            say(r, err->text);
    }
}

/* Take queries into the batch. In an open loop, take those that are due, and wait for the first.
 * The caller holds log_lock. */
static gx_status fill_batch(worker *w, gx_error *err)
{
    replay *r = w->r;
    const gx_replay_options *opt = r->opt;
    const bool timed = r->open_loop && r->kind == MEASURE;
    uint64_t t = 0; /* the clock is not read for every query */
    while (w->n < r->batch && !r->ended) {
        if (!r->has_next && !(r->kind == WARM_UP && r->n_read == opt->warmup)) {
            const gx_status st = next_query(r, &r->next, &r->has_next, err);
            if (st != GX_OK)
                return st;
        }
        if (!r->has_next) {
            r->ended = true;
            break;
        }
        uint64_t due = 0;
        if (timed) {
            gx_status st = gx_arrivals_next(&r->arrivals, &due, err);
            due += r->begin;
            if (st == GX_OK && due > t && due > (t = now())) {
                if (w->n)
                    break;
                st = wait_until(r, due, err);
                const uint64_t waited = now() - t;
                t += waited;
                w->stages.wait += (double)waited * 1e-9;
            }
            if (st != GX_OK || has_failed(r))
                return st;
            gx_arrivals_advance(&r->arrivals);
        }
        const gx_log_query q = r->next;
        r->has_next = false;
        const bool wanted = r->kind != VERIFY || r->n_read % opt->verify_every == 0;
        ++r->n_read;
        const gx_status kept = wanted ? append_query(w, &q, due, err) : GX_OK;
        if (kept != GX_OK)
            return kept;
    }
    return GX_OK;
}

/* Take the next batch. false: the log has ended, or the pass has failed. */
static bool take(worker *w)
{
    replay *r = w->r;
    gx_error err = {0};
    gx_status st = GX_OK;
    w->n = 0;
    w->n_bytes = w->n_terms = 0;
    const uint64_t asked = now();
    pthread_mutex_lock(&r->log_lock);
    const uint64_t begin = now();
    w->stages.wait += (double)(begin - asked) * 1e-9;
    const double waited = w->stages.wait;
    st = ask_cancel(r, &err);
    if (st == GX_OK && !has_failed(r))
        st = fill_batch(w, &err);
    if (w->n)
        w->seq = r->taken++;
    pthread_mutex_unlock(&r->log_lock);
    w->stages.read += (double)(now() - begin) * 1e-9 - (w->stages.wait - waited);
    if (st != GX_OK)
        return fail_pass(r, st, &err);
    return w->n && !has_failed(r);
}

/* ---- answer ---- */

/* Plan a query. Where it is to be expanded, `session`, of engine `en`, finds its feedback
 * documents. */
static gx_status plan_query(worker *w, gx_plan *out, const gx_query *query, gx_session *session, gx_engine *en,
                            gx_error *err)
{
    const gx_replay_options *opt = w->r->opt;
    gx_query_options first = opt->query, second = opt->query;
    gx_query expanded = {.size = sizeof expanded, .kind = GX_QUERY_TERMS, .filter = query->filter};
    gx_weighted_term *terms;
    if (!opt->rm3)
        return gx_engine_plan(out, w->r->en, query, &opt->query, err);
    if (en == opt->other)
        first.mask = opt->other_mask;
    gx_status st = gx_rm3_expand(&terms, &expanded.n_terms, session, w->r->ix, query, &first, opt->rm3, err);
    if (st != GX_OK)
        return st;
    expanded.terms = terms;
    second.op = GX_OP_OR;
    st = gx_engine_plan(out, w->r->en, &expanded, &second, err);
    free(terms);
    return st;
}

static void free_plan(worker *w, uint32_t i)
{
    gx_plan_free(&w->plans[i]);
    gx_filter_close(w->filters[i]);
}

/* Plan query i of the batch, with its filter. */
static gx_status plan_filtered(worker *w, uint32_t i, gx_session *session, gx_engine *en, gx_error *err)
{
    const batch_query *q = &w->queries[i];
    gx_status st = GX_OK;
    w->filters[i] = NULL;
    if (q->filter_len)
        st = gx_filter_open(&w->filters[i], w->r->ix, w->bytes + q->filter, q->filter_len, w->r->opt->filter_options,
                            err);
    gx_query query;
    if (st == GX_OK)
        st = query_of(w, i, &query, err);
    if (st == GX_OK)
        st = plan_query(w, &w->plans[i], &query, session, en, err);
    if (st != GX_OK) {
        gx_filter_close(w->filters[i]);
        w->filters[i] = NULL;
    }
    return st;
}

/* Plan the batch; `session`, of engine `en`, finds the feedback documents. */
static bool plan(worker *w, gx_session *session, gx_engine *en)
{
    replay *r = w->r;
    for (uint32_t i = 0; i < w->n; ++i) {
        const batch_query *q = &w->queries[i];
        gx_error err = {0}, why;
        gx_status st = plan_filtered(w, i, session, en, &err);
        if (st == GX_EUSAGE) { /* the query is at fault, since the options have been checked */
            st = gx_fail(&why, GX_EINPUT, "%s:%" PRIu64 ": %.800s", r->opt->log, q->line, err.text);
            err = why;
            if (r->opt->skip_bad) {
                if (r->kind == MEASURE)
                    say(r, err.text);
                ++w->impossible;
                st = gx_plan_make(&w->plans[i], r->ix, "", 0, &r->opt->query, &err);
            }
        }
        if (st != GX_OK) {
            while (i-- > 0)
                free_plan(w, i);
            return fail_pass(r, st, &err);
        }
    }
    return true;
}

/* Set the plans' masks for an engine. If a boolean query has a mask of its own, masks[i] receives a
 * copy of it on the other engine, which the caller closes; else masks[i] stays NULL. */
static bool set_masks(worker *w, gx_engine *en, gx_mask **masks)
{
    const gx_replay_options *opt = w->r->opt;
    gx_error err = {0};
    for (uint32_t i = 0; i < w->n; ++i) {
        gx_plan *p = &w->plans[i];
        p->mask = p->own_mask ? p->own_mask : en == opt->other ? opt->other_mask : opt->query.mask;
        if (p->own_mask && en == opt->other) {
            const gx_status st = gx_mask_copy(&masks[i], en, p->own_mask, &err);
            if (st != GX_OK)
                return fail_pass(w->r, st, &err);
            p->mask = masks[i];
        }
    }
    return true;
}

static void free_plans(worker *w)
{
    for (uint32_t i = 0; i < w->n; ++i)
        free_plan(w, i);
}

static bool search(worker *w, gx_session *session, gx_hits *hits, uint64_t *keys)
{
    gx_error err = {0};
    for (uint32_t i = 0; i < w->n; ++i)
        hits[i] = (gx_hits){keys + (size_t)i * w->r->max_k, 0};
    const gx_status st = gx_session_run(session, w->plans, w->n, hits, &err);
    if (st != GX_OK)
        return fail_pass(w->r, st, &err);
    say(w->r, err.text);
    return true;
}

/* ends: when each query was answered; NULL: all at `end`. */
static void count(worker *w, uint64_t begin, const uint64_t *ends, uint64_t end)
{
    for (uint32_t i = 0; i < w->n; ++i) {
        const uint64_t due = w->queries[i].due;
        const uint64_t latency = (ends ? ends[i] : end) - (due ? due : begin);
        gx_histogram_add(&w->latency, latency, 1);
        w->late += w->r->deadline && latency > w->r->deadline;
        w->results += w->hits[i].n;
        w->without_results += w->hits[i].n == 0;
    }
}

static bool format(worker *w)
{
    replay *r = w->r;
    gx_error err = {0};
    w->lines.n = 0;
    for (uint32_t i = 0; r->run && i < w->n; ++i) {
        const batch_query *q = &w->queries[i];
        const gx_run_answer answer = {w->bytes + q->id, q->id_len, w->hits[i].keys, w->hits[i].n, w->plans[i].exponent};
        const gx_status st = gx_run_append(&w->lines, r->ix, &answer, r->opt->tag, &err);
        if (st != GX_OK)
            return fail_pass(r, st, &err);
    }
    return true;
}

/* Count a batch as delivered. The caller holds the lock. */
static void count_delivered(replay *r, uint32_t n)
{
    static const char *const doing[] = {"warming up", "replaying", "verifying"};
    ++r->delivered;
    r->n_done += n;
    if (r->opt->progress)
        r->opt->progress(r->opt->user, doing[r->kind], r->n_done);
    pthread_cond_broadcast(&r->moved);
}

/* Write the waiting batches that are next in order, unless another thread is writing. The caller
 * holds the lock, which is released during each write. */
static gx_status write_pending(replay *r, gx_error *err)
{
    gx_status st = GX_OK;
    if (r->writing)
        return GX_OK;
    r->writing = true;
    for (pending_batch *next; st == GX_OK && r->status == GX_OK && (next = &r->waits[r->delivered % r->n_waits])->n;) {
        pthread_mutex_unlock(&r->lock);
        st = gx_run_write(r->run, &next->lines, err);
        pthread_mutex_lock(&r->lock);
        const uint32_t n = next->n;
        next->n = 0;
        if (st == GX_OK)
            count_delivered(r, n);
    }
    r->writing = false;
    return st;
}

/* Deliver the batch's lines. They are written when all batches before have been written, by the
 * thread that delivers the last of those. The calling thread waits only if too many batches wait
 * already, so that one slow query does not stop the other threads. */
static bool deliver(worker *w)
{
    replay *r = w->r;
    gx_error err = {0};
    gx_status st = GX_OK;
    const uint64_t begin = now();
    pthread_mutex_lock(&r->lock);
    while (r->run && w->seq - r->delivered >= r->n_waits && r->status == GX_OK)
        pthread_cond_wait(&r->moved, &r->lock);
    const uint64_t waited = now() - begin;
    if (!r->run) {
        count_delivered(r, w->n);
    } else if (r->status == GX_OK) {
        pending_batch *mine = &r->waits[w->seq % r->n_waits];
        const gx_run_text used = mine->lines;
        *mine = (pending_batch){w->lines, w->n};
        w->lines = used;
        st = write_pending(r, &err);
    }
    const bool go_on = r->status == GX_OK;
    pthread_mutex_unlock(&r->lock);
    w->stages.wait += (double)waited * 1e-9;
    w->stages.write -= (double)waited * 1e-9; /* because the caller counts all of deliver as writing */
    return st == GX_OK ? go_on : fail_pass(r, st, &err);
}

static bool answer(worker *w)
{
    const uint64_t begin = now();
    if (!plan(w, w->session, w->r->en))
        return false;
    const uint64_t planned = now();
    bool good = search(w, w->session, w->hits, w->keys);
    const uint64_t found = now();
    if (good)
        count(w, begin, NULL, found);
    good = good && format(w);
    free_plans(w);
    good = good && deliver(w);
    w->stages.plan += (double)(planned - begin) * 1e-9;
    w->stages.search += (double)(found - planned) * 1e-9;
    w->stages.write += (double)(now() - found) * 1e-9;
    return good;
}

/* ---- answers of a service ---- */

/* Count an answered batch, and deliver its lines. */
static void settle(worker *w)
{
    bool good = true;
    const uint64_t begin = now();
    for (uint32_t i = 0; i < w->n && good; ++i) {
        w->hits[i].n = w->jobs[i].n;
        good = w->jobs[i].status == GX_OK;
    }
    if (good)
        count(w, w->begin, w->ends, 0);
    good = good && format(w);
    free_plans(w);
    if (good)
        deliver(w);
    w->stages.write += (double)(now() - begin) * 1e-9;
}

/* Settle the batches of a home that are answered. The caller holds the lock, which is released
 * meanwhile. */
static void settle_answered(worker *home)
{
    replay *r = home->r;
    for (worker *w; (w = home->answered) != NULL;) {
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
static worker *borrow(worker *home)
{
    replay *r = home->r;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        settle_answered(home);
        if (r->status != GX_OK || (home->free && (!r->run || r->borrowed - r->delivered < r->n_waits)))
            break;
        pthread_cond_wait(&r->moved, &r->lock);
    }
    worker *w = r->status == GX_OK ? home->free : NULL;
    if (w) {
        home->free = w->next;
        ++r->borrowed;
    }
    pthread_mutex_unlock(&r->lock);
    return w;
}

/* Give back a worker whose batch was not submitted. */
static void give_back(worker *w)
{
    replay *r = w->r;
    pthread_mutex_lock(&r->lock);
    w->next = w->home->free;
    w->home->free = w;
    --r->borrowed;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->lock);
}

/* The whole batch is answered. In a thread of the service: its home counts it. */
static void finish_batch(worker *w)
{
    replay *r = w->r;
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
    worker *w = job->user;
    w->ends[job - w->jobs] = now();
    if (job->status != GX_OK)
        fail_pass(w->r, job->status, job->err);
    if (atomic_fetch_sub(&w->n_unanswered, 1) == 1)
        finish_batch(w);
}

/* Hand the planned batch to the service, which then owns the worker. */
static bool submit(worker *w, bool wait)
{
    replay *r = w->r;
    gx_error err = {0};
    uint64_t number;
    for (uint32_t i = 0; i < w->n; ++i) {
        const gx_plan *p = &w->plans[i];
        const uint64_t arrived = w->queries[i].due ? w->queries[i].due : w->begin;
        w->jobs[i] =
            (gx_service_job){.plan = p,
                             .gpu_mask = p->own_mask ? NULL : r->opt->service_mask,
                             .keys = w->keys + (size_t)i * r->max_k,
                             .arrived = arrived,
                             .deadline = r->deadline && r->deadline < UINT64_MAX / 4 ? arrived + r->deadline : 0,
                             .done = on_done,
                             .user = w};
        w->hits[i] = (gx_hits){w->jobs[i].keys, 0};
        w->sent[i] = &w->jobs[i];
    }
    w->waited_for = wait;
    atomic_store(&w->n_unanswered, w->n);
    const gx_status st = gx_service_put(r->service, w->sent, w->n, true, &number, &err);
    return st == GX_OK || fail_pass(r, st, &err);
}

/* Answer the planned batch by the service, and wait for it. */
static bool search_by_service(worker *w)
{
    replay *r = w->r;
    w->begin = now();
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
static bool feed(worker *home, worker *w)
{
    replay *r = home->r;
    if (!take(w)) {
        give_back(w);
        return false;
    }
    w->begin = now();
    const bool planned = plan(w, home->session, r->en);
    w->stages.plan += (double)(now() - w->begin) * 1e-9;
    pthread_mutex_lock(&r->lock);
    ++home->n_in_service;
    pthread_mutex_unlock(&r->lock);
    if (planned && submit(w, false))
        return true;
    if (planned)
        free_plans(w);
    pthread_mutex_lock(&r->lock);
    --home->n_in_service;
    pthread_mutex_unlock(&r->lock);
    give_back(w);
    return false;
}

/* Take batches, plan them, and hand them to the service, without waiting for their answers; then
 * wait for those that are left. */
static void feed_service(worker *home)
{
    replay *r = home->r;
    worker *w;
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

/* ---- verify ---- */

static void show_difference(worker *w, uint32_t i, const char *how)
{
    replay *r = w->r;
    const gx_hits *a = &w->hits[i], *b = &w->again[i];
    const batch_query *q = &w->queries[i];
    char text[400];
    uint32_t rank = 0;
    while (rank < a->n && rank < b->n && a->keys[rank] == b->keys[rank])
        ++rank;
    int n = snprintf(text, sizeof text, "query %.*s (line %" PRIu64 ") differs %s: %u results and %u", (int)q->id_len,
                     w->bytes + q->id, q->line, how, a->n, b->n);
    if (rank < a->n && rank < b->n)
        snprintf(text + n, sizeof text - (size_t)n, "; at rank %u docid %u, score %u and docid %u, score %u", rank + 1,
                 gx_key_docid(a->keys[rank]), gx_key_score(a->keys[rank]), gx_key_docid(b->keys[rank]),
                 gx_key_score(b->keys[rank]));
    pthread_mutex_lock(&r->lock);
    const bool shown = r->n_shown++ < MAX_SHOWN_DIFFERENCES;
    pthread_mutex_unlock(&r->lock);
    if (shown)
        say(r, text);
}

static bool is_equal(worker *w, const gx_hits *a, const gx_hits *b)
{
    (void)w;
    return a->n == b->n && memcmp(a->keys, b->keys, a->n * sizeof *a->keys) == 0;
}

/* Whether `a` has as many results as the exact answer b, and each is in b or behind it. Counts those
 * that are as good as b's. */
static bool is_approximate(worker *w, const gx_hits *a, const gx_hits *b)
{
    bool good = a->n == b->n;
    w->exact_results += b->n;
    for (uint32_t i = 0, j = 0; i < a->n && b->n; ++i) {
        const uint64_t last = b->keys[b->n - 1];
        while (j < b->n && b->keys[j] > a->keys[i])
            ++j;
        good = good && (a->keys[i] < last || (j < b->n && b->keys[j] == a->keys[i]));
        w->found_results += gx_key_score(a->keys[i]) >= gx_key_score(last);
    }
    return good;
}

/* Answer the batch again in a session of engine en, and compare the answers. */
static bool compare(worker *w, gx_session *session, gx_engine *en, const char *how,
                    bool (*agree)(worker *, const gx_hits *, const gx_hits *), uint64_t *differ)
{
    gx_error err = {0};
    gx_mask **masks = calloc(w->n + 1ull, sizeof *masks);
    if (!masks)
        return fail_pass(w->r, gx_fail(&err, GX_ENOMEM, "no memory to verify %u queries", w->n), &err);
    const bool good = set_masks(w, en, masks) && search(w, session, w->again, w->keys_again);
    for (uint32_t i = 0; i < w->n; ++i)
        gx_mask_close(masks[i]);
    free(masks);
    for (uint32_t i = 0; good && i < w->n; ++i) {
        if (!agree(w, &w->hits[i], &w->again[i])) {
            ++*differ;
            show_difference(w, i, how);
        }
    }
    return good;
}

static bool verify(worker *w)
{
    if (!plan(w, w->session, w->r->en))
        return false;
    bool good = w->r->service ? search_by_service(w) : search(w, w->session, w->hits, w->keys);
    if (good && w->other && w->r->opt->rm3) { /* the other engine finds its own feedback documents */
        free_plans(w);
        if (!plan(w, w->other, w->r->opt->other))
            return false;
    }
    if (good && w->other)
        good = compare(w, w->other, w->r->opt->other, "on the other engine", is_equal, &w->other_differs);
    for (uint32_t i = 0; i < w->n; ++i)
        w->plans[i].prune = false;
    good = good && compare(w, w->exhaustive, w->exhaustive_on, "when every posting is scored",
                           w->r->opt->query.approximate > 0 ? is_approximate : is_equal, &w->exhaustive_differs);
    w->verified += w->n;
    free_plans(w);
    return good && deliver(w);
}

/* ---- workers ---- */

static void work(void *arg, uint32_t number)
{
    worker *w = (worker *)arg + number;
    const int slack = prctl(PR_GET_TIMERSLACK);
    if (w->r->open_loop) /* the system may then wake this thread at most 1 ns late */
        prctl(PR_SET_TIMERSLACK, 1);
    if (w->r->service && w->r->kind != VERIFY)
        feed_service(w);
    else
        while (take(w))
            if (!(w->r->kind == VERIFY ? verify(w) : answer(w)))
                break;
    if (slack > 0)
        prctl(PR_SET_TIMERSLACK, slack);
}

static void close_worker(worker *w)
{
    gx_session_close(w->session);
    gx_session_close(w->other);
    gx_session_close(w->exhaustive);
    free(w->queries);
    free(w->plans);
    free(w->filters);
    free(w->hits);
    free(w->again);
    free(w->keys);
    free(w->keys_again);
    free(w->bytes);
    free(w->terms);
    free(w->vector);
    free(w->lines.bytes);
    free(w->jobs);
    free(w->sent);
    free(w->ends);
}

/* A worker, with sessions if it has a thread. */
static gx_status open_worker(worker *w, replay *r, gx_engine *en, bool has_thread, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    const size_t n = r->batch, n_keys = n * r->max_k;
    w->r = r;
    w->queries = malloc(n * sizeof *w->queries);
    w->plans = malloc(n * sizeof *w->plans);
    w->filters = malloc(n * sizeof(gx_filter *));
    w->hits = malloc(n * sizeof *w->hits);
    w->keys = malloc((n_keys + 1) * sizeof *w->keys);
    bool memory = w->queries && w->plans && w->filters && w->hits && w->keys;
    if (r->service) {
        w->jobs = malloc(n * sizeof *w->jobs);
        w->sent = malloc(n * sizeof *w->sent);
        w->ends = malloc(n * sizeof *w->ends);
        memory = memory && w->jobs && w->sent && w->ends;
    }
    if (opt->verify_every && has_thread) {
        w->again = malloc(n * sizeof *w->again);
        w->keys_again = malloc((n_keys + 1) * sizeof *w->keys_again);
        memory = memory && w->again && w->keys_again;
    }
    if (!memory)
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %zu queries with %u results each", n, r->max_k);
    if (!has_thread)
        return GX_OK;
    gx_status st = gx_session_open(&w->session, en, err);
    if (st == GX_OK && opt->verify_every) {
        const bool other_is_cpu = opt->other && gx_engine_get_kind(opt->other) == GX_ENGINE_CPU;
        w->exhaustive_on = other_is_cpu ? opt->other : en;
        st = gx_session_open(&w->exhaustive, other_is_cpu ? opt->other : en, err);
        if (st == GX_OK && opt->other)
            st = gx_session_open(&w->other, opt->other, err);
    }
    return st;
}

/* ---- passes ---- */

/* Run one pass. The caller's thread is the first worker. */
static gx_status run_pass(replay *r, worker *workers, pass_kind kind, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    gx_log_options read = opt->read;
    read.unique = opt->run_path && kind == MEASURE;
    const gx_status st = r->kept ? GX_OK : gx_log_open(&r->log, opt->log, &read, err);
    if (st != GX_OK)
        return st;
    r->kind = kind;
    r->next_kept = 0;
    r->n_read = r->taken = r->delivered = r->n_done = r->borrowed = 0;
    r->ended = r->has_next = false;
    r->status = GX_OK;
    gx_arrivals_begin(&r->arrivals, opt->seed);
    for (uint64_t i = 0; i < r->n_waits; ++i)
        r->waits[i].n = 0;
    const uint64_t cpu_begin = gx_clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    r->begin = now();
    gx_parallel_run(opt->threads, work, workers);
    if (r->service)
        gx_service_drain(r->service);
    const double seconds = (double)(now() - r->begin) * 1e-9;
    if (kind == MEASURE && r->status == GX_OK) {
        gx_replay_report *report = r->report;
        report->queries += r->n_done;
        report->log = r->kept ? r->kept->counts : gx_log_get_counts(r->log);
        report->form = r->kept ? r->kept->form : gx_log_get_form(r->log);
        report->seconds += seconds;
        report->cpu_seconds += (double)(gx_clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin) * 1e-9;
        report->fastest = report->fastest == 0 || seconds < report->fastest ? seconds : report->fastest;
        report->slowest = seconds > report->slowest ? seconds : report->slowest;
    }
    gx_log_close(r->log);
    r->log = NULL;
    if (kind == MEASURE && r->status == GX_OK && !r->n_read)
        return gx_fail(err, GX_EINPUT, "%s has no query", opt->log);
    if (r->status == GX_ECANCELLED)
        return gx_fail(err, GX_ECANCELLED, "interrupted after %" PRIu64 " quer%s of all runs together", r->n_done,
                       r->n_done == 1 ? "y" : "ies");
    return r->status == GX_OK ? GX_OK : gx_fail(err, r->status, "%s", r->err.text);
}

/* Reset the counts, so that those of the warm-up are not reported. */
static void begin_measuring(worker *workers, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        worker *w = &workers[i];
        w->stages = (gx_replay_stages){0};
        w->results = w->without_results = w->impossible = w->late = 0;
        memset(&w->latency, 0, sizeof w->latency);
        if (w->session)
            w->work_before = *gx_session_stats(w->session);
    }
}

static void add_work(gx_search_stats *sum, const gx_search_stats *after, const gx_search_stats *before)
{
    sum->postings += after->postings - before->postings;
    sum->blocks += after->blocks - before->blocks;
    sum->blocks_decoded += after->blocks_decoded - before->blocks_decoded;
    sum->lookups += after->lookups - before->lookups;
    sum->and_fell_to_or += after->and_fell_to_or - before->and_fell_to_or;
    sum->cached += after->cached - before->cached;
    sum->driven += after->driven - before->driven;
    sum->binned += after->binned - before->binned;
    sum->masked += after->masked - before->masked;
    sum->tested += after->tested - before->tested;
    sum->parts += after->parts - before->parts;
    sum->waits += after->waits - before->waits;
    sum->allocations += after->allocations - before->allocations;
    for (int i = 0; i < GX_N_SEARCH_STAGES; ++i)
        sum->seconds[i] += after->seconds[i] - before->seconds[i];
    for (int i = 0; i < GX_N_STEPS; ++i)
        sum->steps[i] += after->steps[i] - before->steps[i];
}

static void end_measuring(gx_replay_report *report, const worker *workers, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const worker *w = &workers[i];
        report->stages.wait += w->stages.wait;
        report->stages.read += w->stages.read;
        report->stages.plan += w->stages.plan;
        report->stages.search += w->stages.search;
        report->stages.write += w->stages.write;
        report->results += w->results;
        report->without_results += w->without_results;
        report->impossible += w->impossible;
        report->late += w->late;
        gx_histogram_merge(&report->latency, &w->latency);
        if (!w->session)
            continue;
        add_work(&report->work, gx_session_stats(w->session), &w->work_before);
        gx_session_memory m = {.size = sizeof m};
        gx_session_get_memory(w->session, &m);
        if (m.device + m.pinned >= report->memory.device + report->memory.pinned)
            report->memory = m;
    }
}

/* What a service did between two of its counts. */
static gx_service_counts subtract_counts(gx_service_counts a, const gx_service_counts *b)
{
    a.submitted -= b->submitted;
    a.answered -= b->answered;
    a.cancelled -= b->cancelled;
    a.refused -= b->refused;
    for (int p = 0; p < GX_N_PROCESSORS; ++p)
        a.by[p] -= b->by[p];
    a.batches -= b->batches;
    a.urgent -= b->urgent;
    a.stolen -= b->stolen;
    a.fell_back -= b->fell_back;
    a.gpu_failures -= b->gpu_failures;
    a.gpu_returns -= b->gpu_returns;
    a.gpu_hung -= b->gpu_hung;
    return a;
}

static gx_status measure(replay *r, worker *workers, uint32_t n_workers, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    gx_status st = GX_OK;
    gx_service_counts before = {0}, after = {0};
    if (r->service)
        gx_service_get_counts(r->service, &before);
    begin_measuring(workers, n_workers);
    for (uint32_t i = 0; i < opt->runs && st == GX_OK; ++i) {
        st = run_pass(r, workers, MEASURE, err);
        if (st == GX_OK && r->run)
            st = gx_run_commit(r->run, err);
        gx_run_close(r->run);
        r->run = NULL;
    }
    end_measuring(r->report, workers, n_workers);
    if (r->service)
        gx_service_get_counts(r->service, &after);
    r->report->service = subtract_counts(after, &before);
    return st;
}

static gx_status run_passes(replay *r, worker *workers, uint32_t n_workers, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    gx_status st = GX_OK;
    if (opt->warmup)
        st = run_pass(r, workers, WARM_UP, err);
    if (st == GX_OK && opt->run_path)
        st = gx_run_open(&r->run, opt->run_path, opt->force, err);
    if (st == GX_OK)
        st = measure(r, workers, n_workers, err);
    if (st == GX_OK && opt->verify_every)
        st = run_pass(r, workers, VERIFY, err);
    for (uint32_t i = 0; i < opt->threads; ++i) {
        r->report->verified += workers[i].verified;
        r->report->other_differs += workers[i].other_differs;
        r->report->exhaustive_differs += workers[i].exhaustive_differs;
        r->report->exact_results += workers[i].exact_results;
        r->report->found_results += workers[i].found_results;
    }
    gx_run_close(r->run);
    return st;
}

static gx_status check_options(const gx_replay_options *opt, const gx_engine *en, const gx_index *ix, gx_error *err)
{
    if (!opt->batch || !opt->threads || !opt->runs)
        return gx_fail(err, GX_EUSAGE, "batch, threads and runs are at least 1");
    if (!strcmp(opt->log, "-") && (opt->runs > 1 || opt->warmup || opt->verify_every))
        return gx_fail(err, GX_EUSAGE,
                       "standard input can be read only once: for several runs, a warm-up or "
                       "verifying, write the log to a file first");
    if (opt->service && (opt->service->cpu ? opt->service->cpu : opt->service->gpu) != en)
        return gx_fail(err, GX_EUSAGE, "the replay's engine is another than the service's");
    if (opt->service && opt->service->bound < (uint64_t)opt->batch)
        return gx_fail(err, GX_EUSAGE, "a batch of %u queries does not fit the service, whose bound is %u", opt->batch,
                       opt->service->bound);
    if (opt->other && !opt->query.mask != !opt->other_mask)
        return gx_fail(err, GX_EUSAGE, "of the two engines that are compared only one has a mask");
    return gx_query_options_check(&opt->query, ix, err);
}

/* Read the log before the replay, where this is wanted or queries have times at which they are due. */
static gx_status keep_log(replay *r, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    gx_log_options read = opt->read;
    read.unique = opt->run_path != NULL;
    if (r->open_loop || opt->in_memory || opt->queries) {
        const gx_status st = gx_log_memory_read(&r->kept, opt->log, &read, KEPT_BYTES, err);
        if (st != GX_OK)
            return st;
    }
    if (r->kept)
        r->n_queries = opt->queries ? opt->queries : r->kept->n;
    if (r->kept && opt->queries && !r->kept->n)
        return gx_log_memory_free(r->kept), gx_fail(err, GX_EINPUT, "%s has no query", opt->log);
    if (!opt->queries || (r->kept && !(opt->run_path && opt->queries > r->kept->n)))
        return GX_OK;
    const bool kept = r->kept != NULL;
    gx_log_memory_free(r->kept);
    return kept
               ? gx_fail(err, GX_EUSAGE,
                         "a run with more queries than %s has would have queries of the same id; give no run", opt->log)
               : gx_fail(err, GX_EUSAGE,
                         "a number of queries needs a log that memory holds: no vectors, not standard input, no "
                         "malformed line, below 1 GiB");
}

/* How many batches of a thread the service may have at once. */
static uint32_t batches_in_service(const replay *r)
{
    const uint64_t each = (uint64_t)r->batch * r->max_k * r->opt->threads, most = SERVICE_KEYS / (each ? each : 1);
    return most < 2 ? 2 : most < MOST_IN_SERVICE ? (uint32_t)most : MOST_IN_SERVICE;
}

gx_status gx_replay(gx_engine *en, const gx_replay_options *given, gx_replay_report *out, gx_error *err)
{
    gx_replay_options o = GX_REPLAY_OPTIONS;
    const gx_replay_options *const opt = &o;
    gx_status st =
        gx_sized_read(&o, sizeof o, given, GX_SIZE_THROUGH(gx_replay_options, rm3), "gx_replay_options", err);
    if (st != GX_OK)
        return st;
    replay r = {.opt = opt, .en = en, .ix = gx_engine_index(en), .report = out};
    st = check_options(opt, en, r.ix, err);
    if (st != GX_OK)
        return st;
    st = gx_arrivals_open(&r.arrivals, opt, err);
    if (st != GX_OK)
        return st;
    r.open_loop = opt->rate > 0 || opt->arrivals != GX_ARRIVALS_FIXED;
    r.deadline = opt->deadline * 1e9 < 1e18 ? (uint64_t)(opt->deadline * 1e9) : UINT64_MAX;
    memset(out, 0, sizeof *out);
    if ((st = keep_log(&r, err)) != GX_OK) {
        gx_arrivals_close(&r.arrivals);
        return st;
    }
    r.max_k = opt->query.k < r.ix->n_docs ? opt->query.k : r.ix->n_docs;
    r.max_k += r.max_k == 0;
    const size_t most = BATCH_KEYS / r.max_k;
    r.batch = out->batch = most < 1 ? 1 : most < opt->batch ? (uint32_t)most : opt->batch;
    const uint64_t each = PENDING_KEYS / ((uint64_t)r.batch * r.max_k);
    const uint32_t n_workers = opt->threads * (opt->service ? batches_in_service(&r) : 1);
    r.n_waits = opt->threads * (each < 1 ? 1 : each < MAX_PENDING ? each : MAX_PENDING);
    r.waits = calloc(r.n_waits, sizeof *r.waits);
    worker *workers = calloc(n_workers, sizeof *workers);
    if (!workers || !r.waits)
        st = gx_fail(err, GX_ENOMEM, "no memory for %u threads", opt->threads);
    else if (opt->service)
        st = gx_service_open(&r.service, opt->service, err);
    if (st != GX_OK) {
        free(workers);
        free(r.waits);
        gx_log_memory_free(r.kept);
        gx_arrivals_close(&r.arrivals);
        return st;
    }
    pthread_mutex_init(&r.log_lock, NULL);
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.moved, NULL);
    for (uint32_t i = 0; i < n_workers && st == GX_OK; ++i) {
        st = open_worker(&workers[i], &r, en, i < opt->threads, err);
        workers[i].home = &workers[i % opt->threads];
        workers[i].next = workers[i].home->free;
        workers[i].home->free = &workers[i];
    }
    if (st == GX_OK)
        st = run_passes(&r, workers, n_workers, err);
    gx_service_close(r.service);
    for (uint32_t i = 0; i < n_workers; ++i)
        close_worker(&workers[i]);
    pthread_cond_destroy(&r.moved);
    pthread_mutex_destroy(&r.lock);
    pthread_mutex_destroy(&r.log_lock);
    for (uint64_t i = 0; i < r.n_waits; ++i)
        free(r.waits[i].lines.bytes);
    free(r.waits);
    free(workers);
    gx_log_memory_free(r.kept);
    gx_arrivals_close(&r.arrivals);
    return st;
}
