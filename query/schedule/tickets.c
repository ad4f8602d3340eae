/* tickets.c: queries as texts to a service, and its answers as documents. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "query/exec/wide_hits.h"
#include "query/schedule/service_state.h"

#define QUERY_OPTIONS_LEAST GX_SIZE_THROUGH(gx_query_options, mask)

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
    uint64_t *keys;     /* [k] */
    uint32_t *docids;   /* [k]; of a wide collection NULL, */
    uint64_t *docids64; /* [k] and else this */
    uint32_t *highs;    /* [k] of the keys, in a wide collection; else NULL */
    double *scores;     /* [k] */
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
    free(t->docids64);
    free(t->highs);
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
        if (t->docids64)
            t->docids64[i] = gx_wide_docid(job->keys, job->highs, i);
        else
            t->docids[i] = gx_key_docid(job->keys[i]);
        t->scores[i] = ldexp(gx_key_score(job->keys[i]), -t->plan.exponent);
    }
    t->answer = (gx_service_answer){.number = job->number,
                                    .user = t->answer.user,
                                    .status = job->status,
                                    .error = t->err.text,
                                    .n_hits = job->n,
                                    .docids = t->docids,
                                    .docids64 = t->docids64,
                                    .scores = t->scores,
                                    .by = job->by,
                                    .fell_back = job->fell_back,
                                    .seconds = (double)(gx_service_now() - t->submitted) * 1e-9};
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
    const uint64_t begin = gx_service_now();
    const struct timespec until =
        gx_service_time_at(seconds < 0 || seconds > 1e9 ? UINT64_MAX / 4 : begin + (uint64_t)(seconds * 1e9));
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

static bool open_ticket(gx_ticket *t, uint32_t max_hits, bool wide, bool is_ticket)
{
    t->keys = malloc(max_hits * sizeof *t->keys);
    t->scores = malloc(max_hits * sizeof *t->scores);
    if (wide) {
        t->highs = malloc(max_hits * sizeof *t->highs);
        t->docids64 = malloc(max_hits * sizeof *t->docids64);
    } else {
        t->docids = malloc(max_hits * sizeof *t->docids);
    }
    if (!t->keys || !t->scores || (wide ? !t->highs || !t->docids64 : !t->docids))
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
    const gx_index *ix = gx_engine_index(gx_service_planner(s));
    const uint32_t n_docs = ix->n_docs;
    const uint32_t max_hits = opt->k < n_docs ? opt->k : n_docs ? n_docs : 1;
    const size_t size = sub->queries->size;
    gx_query q = {0};
    memcpy(&q, (const char *)sub->queries + i * size, size < sizeof q ? size : sizeof q);
    if (q.size != size)
        return gx_fail(err, GX_EUSAGE, "query %u of the submission has another size than the first", i);
    gx_ticket *t = calloc(1, sizeof *t);
    gx_status st = t && open_ticket(t, max_hits, gx_index_is_wide(ix), sub->tickets != NULL)
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
                              .highs = t->highs,
                              .done = on_done,
                              .user = t};
    *out = t;
    return GX_OK;
}

static gx_status submit(gx_service *s, const gx_submission *sub, const gx_query_options *opt, gx_service_job **jobs,
                        uint64_t *first, gx_error *err)
{
    const uint64_t begin = gx_service_now();
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
