/* replay_batches.c: the threads of a replay take batches of queries from the log. */
#include <string.h>
#include <time.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/replay/replay_state.h"

#define SLICE_NS 100000000u /* while a thread waits for a query to be due, it asks for cancelling this often */
/* With a service, whose queries are answered one by one, a query that has been due for less time is left for the next
 * thread: clients of their own would not wait for each other. */
#define LEFT_NS 20000u
#define SPIN_NS 100000u /* the thread spins at the end of that wait, as waking up takes as long as a search */

bool gx_replay_fail(gx_replay_pass *r, gx_status st, const gx_error *err)
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

void gx_replay_say(gx_replay_pass *r, const char *text)
{
    if (r->opt->say && text[0]) {
        pthread_mutex_lock(&r->lock);
        r->opt->say(r->opt->user, text);
        pthread_mutex_unlock(&r->lock);
    }
}

/* Copy the terms of a vector into the batch. */
static gx_status append_terms(gx_replay_worker *w, gx_replay_query *to, const gx_log_query *q, gx_error *err)
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
        w->terms[w->n_terms++] = (gx_replay_term){w->n_bytes, t->len, t->weight};
        w->n_bytes += t->len;
    }
    return GX_OK;
}

gx_status gx_replay_query_of(gx_replay_worker *w, uint32_t i, gx_query *out, gx_error *err)
{
    const gx_replay_query *q = &w->queries[i];
    *out = (gx_query){.size = sizeof *out,
                      .kind = w->r->opt->kind,
                      .text = w->bytes + q->text,
                      .len = q->len,
                      .filter = w->filters[i],
                      .filter_options = w->r->opt->filter_options};
    if (!q->weighted)
        return GX_OK;
    const gx_status st = gx_grow(&w->vector, &w->max_vector, q->n_terms, sizeof *w->vector, err);
    for (uint32_t t = 0; st == GX_OK && t < q->n_terms; ++t) {
        const gx_replay_term *from = &w->terms[q->first_term + t];
        w->vector[t] = (gx_weighted_term){w->bytes + from->at, from->len, from->weight};
    }
    out->kind = GX_QUERY_TERMS;
    out->terms = w->vector;
    out->n_terms = q->n_terms;
    return st;
}

static gx_status append_query(gx_replay_worker *w, const gx_log_query *q, uint64_t due, gx_error *err)
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
    gx_replay_query *const to = &w->queries[w->n];
    *to = (gx_replay_query){.id = id,
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

static gx_status ask_cancel(gx_replay_pass *r, gx_error *err)
{
    const gx_query_options *q = &r->opt->query;
    return q->cancel && q->cancel(q->user) ? gx_fail(err, GX_ECANCELLED, "interrupted") : GX_OK;
}

static bool has_failed(gx_replay_pass *r)
{
    pthread_mutex_lock(&r->lock);
    const bool failed = r->status != GX_OK;
    pthread_mutex_unlock(&r->lock);
    return failed;
}

/* Wait until the time `then`, in ns, or until the pass fails. GX_ECANCELLED. */
static gx_status wait_until(gx_replay_pass *r, uint64_t then, gx_error *err)
{
    gx_status st = GX_OK;
    uint64_t t;
    while ((t = gx_replay_now()) + SPIN_NS < then && st == GX_OK && !has_failed(r)) {
        const uint64_t left = then - SPIN_NS - t, to = t + (left < SLICE_NS ? left : SLICE_NS);
        const struct timespec at = {(time_t)(to / 1000000000u), (long)(to % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL); /* a signal may end it early */
        st = ask_cancel(r, err);
    }
    while (st == GX_OK && gx_replay_now() < then && t + SPIN_NS >= then)
        ;
    return st;
}

/* Read the next query of the log, and skip malformed ones if asked to. The caller holds
 * log_lock. */
static gx_status next_query(gx_replay_pass *r, gx_log_query *q, bool *more, gx_error *err)
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
        if (r->kind == GX_REPLAY_MEASURE)
            gx_replay_say(r, err->text);
    }
}

/* Take queries into the batch. In an open loop, take those that are due, and wait for the first.
 * The caller holds log_lock. */
static gx_status fill_batch(gx_replay_worker *w, gx_error *err)
{
    gx_replay_pass *r = w->r;
    const gx_replay_options *opt = r->opt;
    const bool timed = r->open_loop && r->kind == GX_REPLAY_MEASURE;
    uint64_t t = 0; /* the clock is not read for every query */
    while (w->n < r->batch && !r->ended) {
        if (!r->has_next && !(r->kind == GX_REPLAY_WARM_UP && r->n_read == opt->warmup)) {
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
            if (st == GX_OK && w->n && r->service && due + LEFT_NS > t)
                break;
            if (st == GX_OK && due > t && due > (t = gx_replay_now())) {
                if (w->n)
                    break;
                st = wait_until(r, due, err);
                const uint64_t waited = gx_replay_now() - t;
                t += waited;
                w->stages.wait += (double)waited * 1e-9;
            }
            if (st != GX_OK || has_failed(r))
                return st;
            gx_arrivals_advance(&r->arrivals);
        }
        const gx_log_query q = r->next;
        r->has_next = false;
        const bool wanted = r->kind != GX_REPLAY_VERIFY || r->n_read % opt->verify_every == 0;
        ++r->n_read;
        const gx_status kept = wanted ? append_query(w, &q, due, err) : GX_OK;
        if (kept != GX_OK)
            return kept;
    }
    return GX_OK;
}

bool gx_replay_take(gx_replay_worker *w)
{
    gx_replay_pass *r = w->r;
    gx_error err = {0};
    gx_status st = GX_OK;
    w->n = 0;
    w->n_bytes = w->n_terms = 0;
    const uint64_t asked = gx_replay_now();
    pthread_mutex_lock(&r->log_lock);
    const uint64_t begin = gx_replay_now();
    w->stages.wait += (double)(begin - asked) * 1e-9;
    const double waited = w->stages.wait;
    st = ask_cancel(r, &err);
    if (st == GX_OK && !has_failed(r))
        st = fill_batch(w, &err);
    if (w->n)
        w->seq = r->taken++;
    pthread_mutex_unlock(&r->log_lock);
    w->stages.read += (double)(gx_replay_now() - begin) * 1e-9 - (w->stages.wait - waited);
    if (st != GX_OK)
        return gx_replay_fail(r, st, &err);
    return w->n && !has_failed(r);
}
