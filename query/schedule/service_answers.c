/* service_answers.c: the answers of the queries that a thread of a service has taken: from its own engine, or
 * from the CPU in place of a GPU that has failed. */
#include "query/schedule/service_state.h"

#include "engine/memory/prefetch.h"
#include "engine/status.h"
#include "query/schedule/decisions.h"

#define MOST_RETRY 10.0 /* s */

/* Tell the callers that queries are answered. They are counted by end_work. */
static void tell(gx_service_job **jobs, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        void (*done)(gx_service_job *) = jobs[i]->done;
        done(jobs[i]);
    }
}

void gx_service_set_answer(gx_service_job *job, gx_status st, const gx_error *err, uint32_t n, gx_processor by)
{
    job->status = st;
    job->err = err;
    job->n = st == GX_OK ? n : 0;
    job->by = by;
}

/* Whether a failure is the GPU's, which the CPU makes good. */
static bool is_gpu_failure(const gx_worker *w, gx_status st)
{
    return w->p == GX_PROCESSOR_GPU && (st == GX_ECUDA || st == GX_ENOGPU || (st == GX_ENOMEM && w->s->opt.cpu));
}

/* Answer a query on the CPU in a GPU thread whose GPU has failed. */
static void answer_by_fallback(gx_worker *w, gx_service_job *job)
{
    gx_error err = {0};
    gx_hits hits = {job->keys, 0, job->highs};
    gx_status st = w->fallback ? GX_OK : gx_session_open(&w->fallback, w->s->opt.cpu, &err);
    if (st == GX_OK)
        st = gx_session_run(w->fallback, job->plan, 1, &hits, &err);
    gx_service_set_answer(job, st, &err, hits.n, GX_PROCESSOR_CPU);
    job->fell_back = true;
    tell(&job, 1);
}

void gx_worker_put_off(gx_worker *w)
{
    gx_service *s = w->s;
    w->retry_at = gx_service_now() + (uint64_t)(s->retry * 1e9);
    s->retry = 2 * s->retry < MOST_RETRY ? 2 * s->retry : MOST_RETRY;
}

void gx_worker_lose_gpu(gx_worker *w, uint32_t n, const gx_error *err)
{
    gx_service *s = w->s;
    gx_session_close(w->session);
    w->session = NULL;
    pthread_mutex_lock(&s->lock);
    gx_worker_put_off(w);
    gx_scheduler_set_gpu(s->scheduler, false);
    atomic_store(&s->gpu_lost, true);
    if (s->decisions)
        gx_decisions_gpu(s->decisions, false);
    ++s->counts.gpu_failures;
    gx_service_change(s);
    gx_service_wake(s, GX_PROCESSOR_CPU, s->opt.cpu_threads);
    pthread_mutex_unlock(&s->lock);
    uint32_t n_fallen = 0;
    for (uint32_t i = 0; i < n; ++i) {
        gx_service_job *job = w->jobs[i];
        if (job && s->opt.cpu) {
            answer_by_fallback(w, job);
            ++n_fallen;
        } else if (job) {
            gx_service_set_answer(job, err->status, err, 0, GX_PROCESSOR_GPU);
            tell(&job, 1);
        }
    }
    pthread_mutex_lock(&s->lock);
    s->counts.fell_back += n_fallen;
    s->counts.by[GX_PROCESSOR_CPU] += n_fallen;
    s->counts.by[GX_PROCESSOR_GPU] -= n_fallen;
    pthread_mutex_unlock(&s->lock);
}

/* Run jobs [first, first + n) of the thread. Where one of a batch is cancelled or cannot be
 * answered, each is run alone, and what failed is finished and leaves jobs. Returns whether the GPU
 * is lost; look at was_left first. */
static bool run_jobs(gx_worker *w, uint32_t first, uint32_t n, gx_error *err)
{
    const gx_status st = gx_worker_run_watched(w, first, n, err);
    if (gx_worker_was_left(w) || is_gpu_failure(w, st))
        return true;
    bool lost = false;
    if (st != GX_OK && n > 1) {
        for (uint32_t i = 0; i < n && !lost; ++i)
            lost = run_jobs(w, first + i, 1, err);
        return lost;
    }
    for (uint32_t i = first; i < first + n; ++i)
        gx_service_set_answer(w->jobs[i], st, err, w->hits[i].n, w->p);
    if (st != GX_OK) { /* now, because err is the next one's too */
        tell(&w->jobs[first], 1);
        w->jobs[first] = NULL;
    }
    return false;
}

static void answer_on_gpu(gx_worker *w)
{
    gx_error err = {0};
    uint32_t good = 0;
    gx_worker_copy_batch(w, w->n);
    const bool lost = run_jobs(w, 0, w->n, &err);
    if (gx_worker_was_left(w))
        return;
    if (lost) {
        gx_worker_lose_gpu(w, w->n, &err);
        return;
    }
    for (uint32_t i = 0; i < w->n; ++i) {
        if (w->jobs[i])
            w->jobs[good++] = w->jobs[i];
    }
    tell(w->jobs, good);
}

void gx_worker_answer(gx_worker *w)
{
    gx_error err = {0};
    if (w->chunks)
        gx_chunks_unpack(w);
    for (uint32_t i = 0; i < w->n; ++i) {
        gx_service_job *job = w->jobs[i];
        w->plans[i] = *job->plan;
        gx_prefetch(w->plans[i].terms);
        if (w->p == GX_PROCESSOR_GPU && w->s->opt.cpu)
            w->plans[i].mask = job->gpu_mask;
        w->hits[i] = (gx_hits){job->keys, 0, job->highs};
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
