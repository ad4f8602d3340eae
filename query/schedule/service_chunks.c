/* service_chunks.c: submissions of many queries pass the scheduler by, which takes a lock for each query.
 *
 *   put --> chunk, chunk, chunk --> a batch of a GPU thread; a few queries of a CPU thread, where many wait
 *      '--> the cheapest are answered by their caller: more of them where many wait
 *
 * A chunk is a list of queries by `next`; its first one has its length. Whoever takes chunks takes the oldest. Where
 * the GPU keeps up, callers answer what they can until the GPU's batch is there; where it does not, they answer
 * instead of planning more, cheap queries first, since these cost the CPU the least for each that the GPU is spared. */
#include "query/schedule/service_state.h"

#include <string.h>

#include "engine/memory/prefetch.h"

#define LEAST_QUERIES 8u   /* a submission of at least this many queries passes the scheduler by */
#define MOST_QUERIES 256u  /* the most queries of a chunk */
#define FEW 8u             /* queries that a CPU thread takes at once */
#define AHEAD 8u           /* a thread prefetches the query this many places ahead */
#define SATURATED 64u      /* a submission of more queries shows that they arrive faster than they are answered */
#define CHEAP_NS 700.0     /* ns: under saturation a caller answers queries that cost less than to hand them over */
#define TIMES_MANY 2u      /* under saturation a caller helps where this many full batches wait for the GPU */
#define TIMES_AT_MOST 10.0 /* a caller answers for this many caller_seconds at most, though many queries wait */
#define STALE_NS 1000000u  /* ns: CPU threads take a chunk that waits longer, since the GPU may hang */
#define N_COSTS 64u        /* classes of costs, by which queries are sorted */

/* Whether at least so many full batches wait for the GPU. */
static bool many_wait(gx_service *s, uint32_t batches)
{
    return atomic_load(&s->n_chunked) >= batches * s->opt.batch;
}

/* ---- taking ---- */

/* Take whole chunks, up to `most` queries. The caller holds chunk_lock. */
static uint32_t take_whole(gx_service *s, gx_worker *w, uint32_t most, double *ns)
{
    uint32_t n = 0;
    gx_service_job *last = NULL;
    w->chunks = s->first_chunk;
    for (gx_service_job *c; (c = s->first_chunk) && n + c->n_chunk <= most; last = c) {
        n += c->n_chunk;
        *ns += c->chunk_ns;
        s->first_chunk = c->next_chunk;
    }
    if (last)
        last->next_chunk = NULL;
    return n;
}

/* Take the first queries of the oldest chunk, for the CPU. The caller holds chunk_lock. */
static uint32_t take_some(gx_service *s, gx_worker *w, uint32_t most, double *ns)
{
    gx_service_job *const c = s->first_chunk, *last = NULL, *rest = c;
    double gpu_ns = 0; /* of those that are taken */
    uint32_t n = 0;
    for (; rest && n < most; rest = rest->next, ++n) {
        *ns += rest->described.cpu;
        gpu_ns += rest->described.gpu;
        last = rest;
    }
    if (rest) {
        rest->n_chunk = c->n_chunk - n;
        rest->chunk_ns = c->chunk_ns - gpu_ns;
        rest->chunk_put_at = c->chunk_put_at;
        rest->next_chunk = c->next_chunk;
        if (s->last_chunk == c)
            s->last_chunk = rest;
    }
    s->first_chunk = rest ? rest : c->next_chunk;
    last->next = c->next_chunk = NULL;
    c->n_chunk = n;
    w->chunks = c;
    return n;
}

uint64_t gx_chunks_next(gx_service *s, uint64_t now)
{
    return atomic_load(&s->n_chunked) ? now + STALE_NS : UINT64_MAX;
}

uint32_t gx_chunks_take(gx_worker *w, uint64_t now, double *ns)
{
    gx_service *s = w->s;
    const bool gpu = w->p == GX_PROCESSOR_GPU, always = gpu || many_wait(s, 1) || atomic_load(&s->gpu_lost);
    uint32_t n = 0;
    *ns = 0;
    if (!atomic_load(&s->n_chunked))
        return 0;
    pthread_mutex_lock(&s->chunk_lock);
    const gx_service_job *c = s->first_chunk;
    if (c && (always || now >= c->chunk_put_at + STALE_NS))
        n = gpu ? take_whole(s, w, w->max, ns) : take_some(s, w, FEW < w->max ? FEW : w->max, ns);
    atomic_fetch_sub(&s->n_chunked, n);
    pthread_mutex_unlock(&s->chunk_lock);
    if (n)
        gx_scheduler_begin(s->scheduler, w->p, n, *ns);
    return n;
}

/* Ask for n bytes. */
static void expect(const void *p, size_t n)
{
    for (size_t at = 0; at < n; at += 64)
        gx_prefetch((const char *)p + at);
}

void gx_chunks_unpack(gx_worker *w)
{
    uint32_t n = 0;
    for (gx_service_job *c = w->chunks, *next; c; c = next) {
        next = c->next_chunk;
        for (gx_service_job *job = c; job; job = job->next) { /* another thread has written it and its plan */
            w->jobs[n++] = job;
            if (job->ahead)
                expect(job->ahead, sizeof *job->ahead);
            expect(job->plan, sizeof *job->plan);
        }
    }
    w->chunks = NULL;
}

/* ---- putting ---- */

/* Append jobs[order[from]], .. jobs[order[to - 1]] as a chunk, and see to it that a thread takes it. */
static void push(gx_service *s, gx_service_job *const *jobs, const uint16_t *order, uint32_t from, uint32_t to)
{
    if (from == to)
        return;
    gx_service_job *c = jobs[order[from]];
    double ns = 0;
    for (uint32_t i = from; i < to; ++i) {
        gx_service_job *job = jobs[order[i]];
        job->next = i + 1 < to ? jobs[order[i + 1]] : NULL;
        job->ahead = i + AHEAD < to ? jobs[order[i + AHEAD]] : NULL;
        ns += job->described.gpu;
    }
    c->n_chunk = to - from;
    c->chunk_ns = ns;
    c->chunk_put_at = gx_service_now();
    c->next_chunk = NULL;
    pthread_mutex_lock(&s->chunk_lock);
    const bool stale = s->first_chunk && c->chunk_put_at >= s->first_chunk->chunk_put_at + STALE_NS;
    if (s->first_chunk)
        s->last_chunk->next_chunk = c;
    else
        s->first_chunk = c;
    s->last_chunk = c;
    atomic_fetch_add(&s->n_chunked, to - from);
    pthread_mutex_unlock(&s->chunk_lock);
    gx_service_change(s);
    const bool gpu_polls = atomic_load(&s->n_polling[GX_PROCESSOR_GPU]),
               gpu_sleeps = !gpu_polls && atomic_load(&s->n_sleeping[GX_PROCESSOR_GPU]),
               watched = gpu_polls || gpu_sleeps || atomic_load(&s->n_watching);
    const uint32_t n_cpu = stale || many_wait(s, 1) || atomic_load(&s->gpu_lost) ? s->opt.cpu_threads : !watched;
    if (!gpu_sleeps && !(n_cpu && atomic_load(&s->n_sleeping[GX_PROCESSOR_CPU])))
        return;
    pthread_mutex_lock(&s->lock);
    gx_service_wake(s, GX_PROCESSOR_CPU, n_cpu);
    gx_service_wake(s, GX_PROCESSOR_GPU, 1);
    pthread_mutex_unlock(&s->lock);
}

/* The class of a cost: half of a power of two. */
static uint32_t cost_class(float cost)
{
    uint32_t bits;
    memcpy(&bits, &cost, sizeof bits);
    const int class = (int)(bits >> 22) - (127 + 6) * 2; /* from 64 ns on */
    return class < 0 ? 0 : (uint32_t) class < N_COSTS ? (uint32_t) class : N_COSTS - 1;
}

/* Sort n queries by their cost on the CPU, the cheapest first. */
static void sort_by_cost(gx_service_job *const *jobs, uint32_t n, uint16_t *order)
{
    uint32_t at[N_COSTS + 1] = {0};
    for (uint32_t i = 0; i < n; ++i)
        ++at[cost_class(jobs[i]->described.cpu) + 1];
    for (uint32_t c = 0; c < N_COSTS; ++c)
        at[c + 1] += at[c];
    for (uint32_t i = 0; i < n; ++i)
        order[at[cost_class(jobs[i]->described.cpu)]++] = (uint16_t)i;
}

/* How many of n queries, which are sorted, their caller answers in any case: those that it has answered before the GPU
 * has answered the others; or, where it has better things to do (`busy`), those that cost less than to hand them
 * over. */
static uint32_t count_own(gx_service_job *const *jobs, const uint16_t *order, uint32_t n, bool busy, double most)
{
    uint32_t own = 0;
    for (double all = 0; own < n; ++own) {
        const double ns = jobs[order[own]]->described.cpu;
        if ((all += ns) > most || (busy && ns > CHEAP_NS))
            break;
    }
    return own;
}

/* Answer some of n queries, and push the others. */
static void put_sorted(gx_service *s, gx_worker *guest, gx_service_job *const *jobs, uint32_t n, bool busy)
{
    uint16_t order[MOST_QUERIES];
    const double most = s->opt.caller_seconds * 1e9;
    sort_by_cost(jobs, n, order);
    const uint32_t own = guest ? count_own(jobs, order, n, busy, most) : 0;
    const bool helps = guest && many_wait(s, TIMES_MANY);
    if (!helps)
        push(s, jobs, order, own, n);
    const uint64_t until = gx_service_now() + (uint64_t)(TIMES_AT_MOST * most);
    uint32_t answered = 0;
    while ((answered < own || (helps && answered < n && many_wait(s, TIMES_MANY))) && gx_service_now() < until)
        gx_guest_answer(guest, jobs[order[answered++]]);
    push(s, jobs, order, answered, helps ? n : own > answered ? own : answered);
    if (answered) {
        gx_guests_take(s, answered);
        gx_guests_done(s, answered);
    }
}

bool gx_service_put_chunks(gx_service *s, gx_service_job *const *jobs, uint32_t n)
{
    const uint32_t most = s->opt.batch < MOST_QUERIES ? s->opt.batch : MOST_QUERIES;
    if (n < LEAST_QUERIES || !s->opt.cpu || !s->opt.gpu || s->decisions || atomic_load(&s->gpu_lost))
        return false;
    for (uint32_t i = 0; i < n; ++i) {
        if (jobs[i]->described.only >= 0 || jobs[i]->lacks_lists)
            return false;
    }
    gx_worker *guest = gx_service_take_guest(s);
    for (uint32_t first = 0; first < n; first += most)
        put_sorted(s, guest, jobs + first, n - first < most ? n - first : most, n >= SATURATED);
    gx_service_leave_guest(s, guest);
    return true;
}

/* ---- cancelling ---- */

/* Take a query out of the chunk that *link points to, which goes where the query was its only one. `before`: the chunk
 * before it, or NULL. NULL: the chunk does not have the query. */
static gx_service_job *unlink_query(gx_service *s, gx_service_job **link, gx_service_job *before, uint64_t number)
{
    gx_service_job *const head = *link, *previous = NULL, *job = head;
    for (; job && job->number != number; job = job->next)
        previous = job;
    if (!job)
        return NULL;
    if (previous) {
        previous->next = job->next;
        --head->n_chunk;
        head->chunk_ns -= job->described.gpu;
        return job;
    }
    gx_service_job *const heir = head->next;
    if (heir) {
        heir->n_chunk = head->n_chunk - 1;
        heir->chunk_ns = head->chunk_ns - head->described.gpu;
        heir->chunk_put_at = head->chunk_put_at;
        heir->next_chunk = head->next_chunk;
    }
    *link = heir ? heir : head->next_chunk;
    if (s->last_chunk == head)
        s->last_chunk = heir ? heir : before;
    return head;
}

gx_service_job *gx_chunks_cancel(gx_service *s, uint64_t number)
{
    gx_service_job *found = NULL, *before = NULL;
    pthread_mutex_lock(&s->chunk_lock);
    for (gx_service_job **link = &s->first_chunk; *link && !found; link = &before->next_chunk) {
        gx_service_job *const chunk = *link;
        found = unlink_query(s, link, before, number);
        before = chunk;
    }
    atomic_fetch_sub(&s->n_chunked, found != NULL);
    pthread_mutex_unlock(&s->chunk_lock);
    return found;
}

gx_service_job *gx_chunks_first(gx_service *s)
{
    pthread_mutex_lock(&s->chunk_lock);
    gx_service_job *const first = s->first_chunk;
    pthread_mutex_unlock(&s->chunk_lock);
    return first;
}
