/* service.c: threads around a scheduler.
 *
 *   put --> arrived --absorb--> scheduler --take--> a thread's queries --> callbacks
 *           (no lock)           (under the lock)    (no lock)
 *
 * The scheduler is used under one lock, by the threads that answer. Those that put queries only hang
 * them into the list `arrived`, without a lock; whoever next looks for work absorbs them. An idle
 * thread polls `changes`, which counts what may give it something to do, for a while before it
 * sleeps, because waking up takes longer than a short query. Putting then wakes nobody.
 *
 * Where nothing waits, a thread that puts one short query may answer it itself, as a guest: nobody
 * needs to be told of it then. */
#include "query/schedule/service_state.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "query/engine/engine.h"
#include "query/schedule/decisions.h"

#define PUT_AT_ONCE 256u /* queries that are described before they are put */
#define MOST_POLLING 2u  /* threads of a processor that poll at once: more would only hold each other up */
#define CORES_A_POLL 4u  /* and no more than one in as many cores, for others have to run too */

void gx_service_options_init(gx_service_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_service_options)GX_SERVICE_OPTIONS, sizeof *o);
}

gx_engine *gx_service_planner(const gx_service *s)
{
    return s->opt.cpu ? s->opt.cpu : s->opt.gpu;
}

/* ---- open, close ---- */

static void free_service(gx_service *s)
{
    for (uint32_t i = 0; i < s->n_workers; ++i)
        gx_worker_close(s->workers[i]);
    for (uint32_t i = 0; i < s->n_guests; ++i)
        gx_worker_close(s->guests[i]);
    free(s->workers);
    free(s->guests);
    gx_scheduler_close(s->scheduler);
    free(s->jobs);
    if (s->is_started && s->decisions && gx_atomic_file_sync(&s->decisions_file, NULL) == GX_OK)
        gx_atomic_file_commit(&s->decisions_file, NULL);
    gx_atomic_file_close(&s->decisions_file);
    for (int p = 0; p < GX_N_PROCESSORS; ++p)
        pthread_cond_destroy(&s->work[p]);
    pthread_cond_destroy(&s->room);
    pthread_cond_destroy(&s->drained);
    pthread_cond_destroy(&s->ended);
    pthread_cond_destroy(&s->retries);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->chunk_lock);
    free(s);
}

static gx_status check_options(const gx_service_options *o, gx_error *err)
{
    if (!o->cpu && !o->gpu)
        return gx_fail(err, GX_EUSAGE, "a service needs an engine");
    if (o->cpu && o->gpu && gx_engine_index(o->cpu) != gx_engine_index(o->gpu))
        return gx_fail(err, GX_EUSAGE, "the engines of a service are of different indexes");
    if ((o->cpu && !o->cpu_threads) || (o->gpu && !o->gpu_threads) || o->cpu_threads > 1024 ||
        o->cpu_threads + o->gpu_threads > 1024)
        return gx_fail(err, GX_EUSAGE, "each engine of a service needs a thread, and all together at most 1,024");
    if (o->callers > 1024 || !(o->caller_seconds >= 0))
        return gx_fail(err, GX_EUSAGE, "at most 1,024 callers answer, and queries of at least 0 s");
    if (!(o->batch_seconds >= 0 && o->batch_seconds <= 1) || !(o->spin >= 0 && o->spin <= 10) ||
        !(o->patience > 0 && o->patience <= 1e6) || !(o->retry > 0 && o->retry <= 1e6) ||
        !(o->hang > 0 && o->hang <= 1e6))
        return gx_fail(err, GX_EUSAGE, "a time of the service is out of its range");
    return GX_OK;
}

static gx_status open_scheduler(gx_service *s, gx_error *err)
{
    const gx_service_options *o = &s->opt;
    const gx_scheduler_options opt = {.bound = o->bound,
                                      .cpu_threads = o->cpu ? o->cpu_threads : 0,
                                      .gpu_threads = o->gpu ? o->gpu_threads : 0,
                                      .batch = o->batch,
                                      .batch_ns = (uint64_t)(o->batch_seconds * 1e9),
                                      .threshold = o->threshold,
                                      .adapt = o->adapt,
                                      .urgent = o->urgent,
                                      .patience_ns = (uint64_t)(o->patience * 1e9)};
    const gx_status st = gx_scheduler_open(&s->scheduler, &opt, err);
    if (st != GX_OK || !o->decisions)
        return st;
    gx_status written = gx_atomic_file_open(&s->decisions_file, o->decisions, o->force ? GX_ATOMIC_FILE_FORCE : 0, err);
    if (written == GX_OK)
        written = gx_atomic_file_stream(&s->decisions_file, err);
    if (written != GX_OK)
        return written;
    s->decisions = s->decisions_file.file;
    gx_decisions_begin(s->decisions, &opt);
    return GX_OK;
}

static gx_status start(gx_service *s, gx_error *err)
{
    const gx_service_options *o = &s->opt;
    const uint32_t n_cpu = o->cpu ? o->cpu_threads : 0, n = n_cpu + (o->gpu ? o->gpu_threads : 0);
    gx_status st = open_scheduler(s, err);
    s->jobs = calloc(o->bound ? o->bound : 1, sizeof *s->jobs);
    s->workers = calloc(n, sizeof *s->workers);
    if (st == GX_OK && (!s->jobs || !s->workers))
        st = gx_fail(err, GX_ENOMEM, "no memory for a service of %u threads", n);
    for (; st == GX_OK && s->n_workers < n; ++s->n_workers) {
        const gx_processor p = s->n_workers < n_cpu ? GX_PROCESSOR_CPU : GX_PROCESSOR_GPU;
        gx_worker *w = s->workers[s->n_workers] = gx_worker_open(s, p, s->n_workers);
        if (!w)
            return gx_fail(err, GX_ENOMEM, "no memory for a thread with batches of %u queries", o->batch);
        st = gx_session_open(&w->session, w->p == GX_PROCESSOR_GPU ? o->gpu : o->cpu, err);
    }
    if (st == GX_OK)
        st = gx_service_open_guests(s, err);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i) {
        pthread_mutex_lock(&s->lock);
        s->workers[i]->thread = gx_threads_start(1, 0, gx_worker_work, s->workers[i]);
        s->n_active += s->workers[i]->thread != NULL;
        pthread_mutex_unlock(&s->lock);
        if (!s->workers[i]->thread)
            return gx_fail(err, GX_ENOMEM, "the system does not start %u threads", n);
    }
    s->watches = true;
    if (st == GX_OK && o->gpu && !(s->watchdog = gx_threads_start(1, 0, gx_service_watch, s)))
        return gx_fail(err, GX_ENOMEM, "the system does not start %u threads", n + 1);
    return st;
}

/* How many threads of a processor may poll at once, by the cores that the process may use: none on a single one. */
static uint32_t polling_threads(void)
{
    cpu_set_t cores;
    const int n = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : (int)CORES_A_POLL;
    const uint32_t most = n < 2 ? 0 : ((uint32_t)n + CORES_A_POLL - 1) / CORES_A_POLL;
    return most < MOST_POLLING ? most : MOST_POLLING;
}

gx_status gx_service_open(gx_service **out, const gx_service_options *given, gx_error *err)
{
    gx_service_options o = GX_SERVICE_OPTIONS;
    *out = NULL;
    gx_status st =
        gx_sized_read(&o, sizeof o, given, GX_SIZE_THROUGH(gx_service_options, user), "gx_service_options", err);
    if (st == GX_OK)
        st = check_options(&o, err);
    gx_service *s = st == GX_OK ? aligned_alloc(alignof(gx_service), sizeof *s) : NULL;
    if (!s)
        return st != GX_OK ? st : gx_fail(err, GX_ENOMEM, "no memory for a service");
    memset(s, 0, sizeof *s);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    for (int p = 0; p < GX_N_PROCESSORS; ++p)
        pthread_cond_init(&s->work[p], &monotonic);
    pthread_cond_init(&s->room, NULL);
    pthread_cond_init(&s->drained, NULL);
    pthread_cond_init(&s->ended, &monotonic);
    pthread_cond_init(&s->retries, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutexattr_t adaptive; /* it is held for microseconds: sleeping takes longer */
    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&s->lock, &adaptive);
    pthread_mutex_init(&s->chunk_lock, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
    s->decisions_file = GX_ATOMIC_FILE_INIT;
    s->opt = o;
    s->retry = o.retry;
    s->most_polling = polling_threads();
    if (o.profile)
        s->profile = *o.profile;
    else
        gx_cost_profile_init(&s->profile);
    if ((st = start(s, err)) != GX_OK) {
        gx_service_close(s);
        return st;
    }
    s->is_started = true;
    *out = s;
    return st;
}

/* Tell the caller that a query is answered. */
static void finish(gx_service *s, gx_service_job *job)
{
    void (*done)(gx_service_job *) = job->done;
    done(job);
    pthread_mutex_lock(&s->lock);
    gx_service_count_done(s, 1);
    pthread_mutex_unlock(&s->lock);
}

/* Take a query that waits in a slot out of its queue. The caller holds the lock, and calls
 * finish_cancelled after it has let go of it. */
static gx_service_job *cancel_slot(gx_service *s, uint32_t slot)
{
    gx_service_job *job = s->jobs[slot];
    if (!job || !gx_scheduler_cancel(s->scheduler, slot, job->number))
        return NULL;
    if (s->decisions)
        gx_decisions_cancel(s->decisions, slot, job->number);
    s->jobs[slot] = NULL;
    ++s->counts.cancelled;
    gx_service_make_room(s, 1);
    return job;
}

static void finish_cancelled(gx_service *s, gx_service_job *job)
{
    gx_error err = {0};
    gx_service_set_answer(job, gx_fail(&err, GX_ECANCELLED, "the query was cancelled"), &err, 0, GX_PROCESSOR_CPU);
    job->fell_back = false;
    finish(s, job);
}

void gx_service_close(gx_service *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->closing, true);
    gx_service_change(s);
    for (int p = 0; p < GX_N_PROCESSORS; ++p)
        pthread_cond_broadcast(&s->work[p]);
    pthread_cond_broadcast(&s->retries);
    pthread_cond_broadcast(&s->room);
    pthread_mutex_unlock(&s->lock);
    gx_service_end_threads(s);
    if (s->scheduler && s->jobs)
        gx_service_absorb(s, gx_service_now(), UINT32_MAX);
    for (uint32_t slot = 0; s->scheduler && s->jobs && slot < s->opt.bound; ++slot) {
        pthread_mutex_lock(&s->lock);
        gx_service_job *job = s->jobs[slot] ? cancel_slot(s, slot) : NULL;
        pthread_mutex_unlock(&s->lock);
        if (job)
            finish_cancelled(s, job);
    }
    for (gx_service_job *job; (job = gx_chunks_first(s));)
        gx_service_cancel(s, job->number);
    free_service(s);
}

/* ---- putting ---- */

/* Find out what the scheduler wants to know of a job. */
static void describe(const gx_service *s, gx_service_job *job)
{
    gx_query_features f = gx_plan_features(job->plan);
    if (s->opt.gpu)
        f.missing = (double)gx_engine_missing_bytes(s->opt.gpu, job->plan);
    job->lacks_lists = f.missing > 0;
    gx_schedule_job j = {.number = job->number, .arrived = job->arrived, .deadline = job->deadline, .only = -1};
    const gx_query_costs costs = gx_cost_of_query(&s->profile, &f);
    j.cpu = (float)costs.cpu;
    j.gpu_alone = (float)costs.gpu_alone;
    j.gpu = (float)costs.gpu;
    if (!s->opt.cpu)
        j.only = GX_PROCESSOR_GPU;
    else if (!s->opt.gpu || (job->plan->mask && !job->gpu_mask))
        j.only = GX_PROCESSOR_CPU;
    job->described = j;
}

/* Reserve places for n queries, if there are. */
static bool hold(gx_service *s, uint32_t n)
{
    unsigned held = atomic_load(&s->n_held);
    do {
        if (held + (uint64_t)n > s->opt.bound)
            return false;
    } while (!atomic_compare_exchange_weak(&s->n_held, &held, held + n));
    return true;
}

static void wait_for_room(gx_service *s, uint32_t n, bool *held)
{
    pthread_mutex_lock(&s->lock);
    ++s->n_wait_for_room;
    while (!atomic_load(&s->closing) && !(*held = hold(s, n)))
        pthread_cond_wait(&s->room, &s->lock);
    --s->n_wait_for_room;
    pthread_mutex_unlock(&s->lock);
}

/* n queries have been put: see to it that a thread absorbs them. One that polls does, before it
 * sleeps, and wakes others; so does one that is busy. */
static void wake_for(gx_service *s, uint32_t n)
{
    gx_service_change(s);
    if (atomic_load(&s->n_polling[0]) || atomic_load(&s->n_polling[1]) ||
        !(atomic_load(&s->n_sleeping[0]) || atomic_load(&s->n_sleeping[1])))
        return;
    pthread_mutex_lock(&s->lock);
    gx_service_wake(s, GX_PROCESSOR_CPU, n);
    gx_service_wake(s, GX_PROCESSOR_GPU, 1);
    pthread_mutex_unlock(&s->lock);
}

/* Reserve n places and numbers, from *first on. */
static gx_status reserve(gx_service *s, uint32_t n, bool wait, uint64_t *first, gx_error *err)
{
    bool held = !atomic_load(&s->closing) && hold(s, n);
    if (!held && wait && n <= s->opt.bound)
        wait_for_room(s, n, &held);
    if (!held && atomic_load(&s->closing))
        return gx_fail(err, GX_ECANCELLED, "the service is being closed");
    if (!held) {
        atomic_fetch_add(&s->n_refused, n);
        return gx_fail(err, GX_EBUSY, "%u queries wait, and %u is the most; try again later", atomic_load(&s->n_held),
                       s->opt.bound);
    }
    atomic_fetch_add(&s->n_pending, n);
    *first = atomic_fetch_add(&s->next_number, n);
    return GX_OK;
}

gx_status gx_service_put(gx_service *s, gx_service_job *const *jobs, uint32_t n, bool wait, uint64_t *number,
                         gx_error *err)
{
    const gx_status st = reserve(s, n, wait, number, err);
    for (uint32_t first = 0, end; st == GX_OK && first < n; first = end) {
        end = n - first < PUT_AT_ONCE ? n : first + PUT_AT_ONCE;
        for (uint32_t i = first; i < end; ++i) {
            jobs[i]->number = *number + i;
            describe(s, jobs[i]);
            jobs[i]->next = i > first ? jobs[i - 1] : NULL;
        }
        if (gx_service_answer_here(s, jobs, n))
            break;
        if (gx_service_put_chunks(s, jobs + first, end - first))
            continue;
        gx_worker *helper = gx_service_take_helper(s, n);
        gx_service_job *oldest = jobs[first], *newest = jobs[end - 1];
        gx_service_job *before = atomic_load(&s->arrived);
        do {
            oldest->next = before;
        } while (!atomic_compare_exchange_weak(&s->arrived, &before, newest));
        if (!helper || end - first > 1)
            wake_for(s, end - first);
        if (helper) /* which wakes others, where it leaves something */
            gx_service_help(s, helper, end - first);
    }
    return st;
}

bool gx_service_cancel(gx_service *s, uint64_t number)
{
    gx_service_job *job = NULL;
    pthread_mutex_lock(&s->lock);
    if (gx_service_absorb(s, gx_service_now(), UINT32_MAX))
        gx_service_change(s);
    for (uint32_t slot = 0; slot < s->opt.bound && !job; ++slot) {
        if (s->jobs[slot] && s->jobs[slot]->number == number)
            job = cancel_slot(s, slot);
    }
    if (!job && (job = gx_chunks_cancel(s, number))) {
        ++s->counts.cancelled;
        gx_service_make_room(s, 1);
    }
    pthread_mutex_unlock(&s->lock);
    if (job)
        finish_cancelled(s, job);
    return job != NULL;
}

void gx_service_drain(gx_service *s)
{
    pthread_mutex_lock(&s->lock);
    atomic_fetch_add(&s->n_draining, 1);
    while (atomic_load(&s->n_pending))
        pthread_cond_wait(&s->drained, &s->lock);
    atomic_fetch_sub(&s->n_draining, 1);
    pthread_mutex_unlock(&s->lock);
}

void gx_service_get_counts(gx_service *s, gx_service_counts *out)
{
    pthread_mutex_lock(&s->lock);
    const gx_schedule_counts c = gx_scheduler_counts(s->scheduler);
    *out = s->counts;
    pthread_mutex_unlock(&s->lock);
    out->by[GX_PROCESSOR_CPU] += atomic_load(&s->n_at_once);
    out->answered += atomic_load(&s->n_at_once);
    out->submitted = atomic_load(&s->next_number);
    out->refused = atomic_load(&s->n_refused);
    out->batches = c.batches;
    out->urgent = c.urgent;
    out->stolen = c.stolen;
}
