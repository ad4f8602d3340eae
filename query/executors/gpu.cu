/* The GPU executor: runs plans as a small batch, as a batch, or by the algorithms of Ding et al.,
 * and runs again the requests whose answers are incomplete. */
#include "query/ding2009/taat.cuh"
#include "query/gpu/batch.cuh"
#include "query/gpu/matches.cuh"
#include "query/gpu/small_batch.cuh"

extern "C" {
#include "query/filter/mask.h"
}

using namespace gx;

/* The workspace of a session. */
struct gpu_workspace {
    gpu_session session;
    batch_space batches;
    small_batch_space small_batches;
    match_space matches;         /* all 0 until it is used */
    taat_space *ding2009;        /* NULL until it is used */
    gx_residency_reader *reader; /* NULL: the index has no pool of lists */
    int device;
    bool failed;            /* a run has failed: what a search begins with may not be as it should */
    memory_budget detached; /* what session.memory counts in while session.s is NULL */
};

static void close_reader(gpu_workspace *x)
{
    if (x->reader)
        gx_residency_reader_close(x->session.s->payload.cache, x->reader);
    x->reader = NULL;
}

static void cuda_workspace_close(void *exec)
{
    gpu_workspace *x = (gpu_workspace *)exec;
    if (!x)
        return;
    (void)cudaSetDevice(x->device);
    close_small_batches(&x->session, &x->small_batches);
    close_batches(&x->session, &x->batches);
    close_matches(&x->session.memory, &x->matches);
    taat_close(&x->session.memory, x->ding2009);
    close_reader(x);
    (void)cudaGetLastError();
    free(x->session.retries);
    free(x);
}

static gx_status cuda_workspace_open(void **out, void *state, gx_error *err)
{
    gpu_prepared_index *s = (gpu_prepared_index *)state;
    *out = NULL;
    TRY("choosing it", cudaSetDevice(s->device));
    stop_lingering(s);
    gpu_workspace *x = (gpu_workspace *)calloc(1, sizeof *x);
    if (!x)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    x->session.s = s;
    x->device = s->device;
    x->session.memory = {&s->budget, &x->session.calls, 0, 0};
    gx_status st = open_batches(&x->session, &x->batches, err);
    if (st == GX_OK)
        st = open_small_batches(&x->session, &x->small_batches, err);
    if (st == GX_OK && s->payload.cache && !(x->reader = gx_residency_reader_open(s->payload.cache)))
        st = gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    if (st != GX_OK) {
        cuda_workspace_close(x);
        return st;
    }
    *out = x;
    return GX_OK;
}

static bool cuda_workspace_detach(void *exec)
{
    gpu_workspace *x = (gpu_workspace *)exec;
    gpu_prepared_index *s = x->session.s;
    (void)cudaSetDevice(x->device);
    stop_lingering(s);
    const bool idle = small_batches_end(&x->small_batches) && batches_end(&x->batches);
    if (x->failed || !idle)
        return false;
    close_matches(&x->session.memory, &x->matches); /* of a grid that suits the index's codec */
    taat_close(&x->session.memory, x->ding2009);
    x->ding2009 = NULL;
    close_reader(x);
    budget_give(&s->budget, x->session.memory.device);
    x->detached = {x->session.memory.device, x->session.memory.device};
    x->session.memory.budget = &x->detached;
    x->session.s = NULL;
    return true;
}

static gx_status cuda_workspace_attach(void *exec, void *state, gx_error *err)
{
    gpu_workspace *x = (gpu_workspace *)exec;
    gpu_prepared_index *s = (gpu_prepared_index *)state;
    if (s->device != x->device || !small_batches_suit(&x->small_batches, s->ix))
        return gx_fail(err, GX_ENOTFOUND, "the workspace is one for another index");
    gx_residency_reader *reader = NULL;
    if (s->payload.cache && !(reader = gx_residency_reader_open(s->payload.cache)))
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    const gx_status st = budget_take(&s->budget, "a session", x->session.memory.device, err);
    if (st != GX_OK) {
        if (reader)
            gx_residency_reader_close(s->payload.cache, reader);
        return st;
    }
    x->reader = reader;
    x->session.s = s;
    x->session.memory.budget = &s->budget;
    return GX_OK;
}

static gx_status run_requests(gpu_workspace *x, const plan_batch *pb, const request *requests, uint32_t n,
                              gx_error *err)
{
    if (n == 0)
        return GX_OK;
    if (is_small_batch(&x->session, pb->plans, requests, n))
        return run_small_batch(&x->session, &x->small_batches, pb, requests, n, err);
    stop_lingering(x->session.s);
    return run_batch(&x->session, &x->batches, pb, requests, n, err);
}

/* Answers requests[n], and then the retries: OR where AND had too few results, and queries that
 * need more room for candidates. */
static gx_status run_all_requests(gpu_workspace *x, const plan_batch *pb, const request *requests, uint32_t n,
                                  gx_error *err)
{
    gpu_session *session = &x->session;
    const plan_batch uncounted = {pb->plans, pb->hits, NULL};
    session->n_retries = 0;
    session->retries_run = false;
    gx_status st = run_requests(x, pb, requests, n, err);
    session->retries_run = true;
    while (st == GX_OK && session->n_retries) {
        request *retries = session->retries;
        const uint32_t n_retries = session->n_retries;
        session->retries = NULL;
        session->n_retries = session->max_retries = 0;
        st = run_requests(x, &uncounted, retries, n_retries, err);
        free(retries);
    }
    return st;
}

/* Runs of up to this many queries are few (request). */
constexpr uint32_t MAX_FEW = 64;

static void add_calls(gx_search_stats *work, const gpu_call_counts *after, const gpu_call_counts *before)
{
    work->parts += after->parts - before->parts;
    work->waits += after->waits - before->waits;
    work->linger_hits += after->linger_hits - before->linger_hits;
    work->allocations += after->allocations - before->allocations;
}

/* Counts the uses of a plan's lists, for the cache and as statistics. */
static void count_uses(gpu_workspace *x, const gx_plan *plan, gx_search_stats *work)
{
    const payload_store *p = &x->session.s->payload;
    const uint64_t tick = x->reader ? gx_residency_tick(p->cache) : 0;
    uint32_t n_resident = 0;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const uint32_t list = plan->terms[i].list;
        const bool there = x->reader && gx_residency_use(p->cache, x->reader, list, tick);
        n_resident += there;
        if (work) {
            const uint64_t bytes = list_bytes(p->ix, list);
            work->list_bytes += bytes;
            work->resident_bytes += there ? bytes : 0;
        }
    }
    if (work) {
        work->lists += plan->n_terms;
        work->resident_lists += n_resident;
        work->resident_queries += n_resident == plan->n_terms;
    }
}

/* Before a run: lists that earlier runs missed are copied to the pool; lists that this run finds there
 * stay until end_uses. */
static void begin_uses(gpu_workspace *x, const gx_plan *plans, uint32_t n, gx_search_stats *work)
{
    payload_store *p = &x->session.s->payload;
    if (!p->pinned)
        return;
    if (x->reader) {
        payload_admit(p, x->reader);
        gx_residency_enter(p->cache, x->reader);
    }
    for (uint32_t i = 0; i < n; ++i) {
        if (plans[i].n_terms && !is_ding2009(&plans[i]))
            count_uses(x, &plans[i], work);
    }
}

static void end_uses(gpu_workspace *x)
{
    if (x->reader)
        gx_residency_leave(x->session.s->payload.cache, x->reader);
}

static gx_status cuda_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work,
                          gx_error *err)
{
    gpu_workspace *x = (gpu_workspace *)exec;
    gpu_session *session = &x->session;
    gpu_prepared_index *s = session->s;
    const gpu_call_counts before = session->calls;
    const plan_batch pb = {plans, hits, work};
    for (uint32_t i = 0; i < n; ++i) {
        if (plans[i].mask && !plans[i].mask->device)
            return gx_fail(err, GX_ECUDA, "GPU: the mask could not be copied to it");
    }
    TRY("choosing it", cudaSetDevice(s->device));
    request *requests = (request *)malloc((n + 1ull) * sizeof *requests);
    if (!requests)
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    uint32_t n_requests = 0;
    for (uint32_t i = 0; i < n; ++i) {
        hits[i].n = 0;
        if (work && plans[i].n_terms) {
            work->tested += plans[i].filter != NULL;
            work->masked += plans[i].mask && !plans[i].filter;
        }
        if (plans[i].n_terms && !is_ding2009(&plans[i]))
            requests[n_requests++] = {i, plans[i].op, 0, 0, false, n <= MAX_FEW, 0};
    }
    session->was_last = __atomic_exchange_n(&s->last, x, __ATOMIC_RELAXED) == x;
    __atomic_fetch_add(&s->running, 1, __ATOMIC_SEQ_CST);
    begin_uses(x, plans, n, work);
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n_requests && st == GX_OK; ++i)
        st = choose_tiles(session, &plans[requests[i].plan], n_requests, &requests[i].tiled, err);
    if (st == GX_OK)
        st = run_all_requests(x, &pb, requests, n_requests, err);
    if (st == GX_OK && n_requests < n)
        stop_lingering(s);
    if (st == GX_OK)
        st = taat_run(&x->ding2009, s, &session->memory, &pb, n, err);
    x->failed = x->failed || st != GX_OK;
    end_uses(x);
    __atomic_fetch_sub(&s->running, 1, __ATOMIC_RELAXED);
    if (work)
        add_calls(work, &session->calls, &before);
    while (session->n_bounds_used)
        release_bounds(s, session->bounds_used[--session->n_bounds_used]);
    session->n_tiled_bounds = 0;
    free(requests);
    return st;
}

static bool cuda_takes_filter(void *state, const gx_plan *plan)
{
    gpu_prepared_index *s = (gpu_prepared_index *)state;
    filter_tests tests;
    return !is_ding2009(plan) && make_tests(&s->columns, plan->filter, &tests);
}

static bool cuda_takes_programs(void *state)
{
    return make_positions((gpu_prepared_index *)state);
}

static void cuda_exec_memory(const void *exec, uint64_t *device, uint64_t *pinned)
{
    const gpu_workspace *x = (const gpu_workspace *)exec;
    *device = x->session.memory.device;
    *pinned = x->session.memory.pinned;
}

static gx_status cuda_warm(void *state, const uint32_t *counts, gx_error *err)
{
    gpu_prepared_index *s = (gpu_prepared_index *)state;
    TRY("choosing it", cudaSetDevice(s->device));
    return s->payload.cache ? payload_warm(&s->payload, counts, err) : GX_OK;
}

static uint64_t cuda_missing_bytes(const void *state, const gx_plan *plan)
{
    const payload_store *p = &((const gpu_prepared_index *)state)->payload;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->n_terms && p->pinned; ++i) {
        const uint32_t list = plan->terms[i].list;
        if (!p->cache || gx_residency_find(p->cache, list) == GX_NOT_RESIDENT)
            bytes += list_bytes(p->ix, list);
    }
    return bytes;
}

static gx_status cuda_facet_ordinals(void *exec, uint32_t column, const gx_facet *facet, const gx_facet_ordinals **out,
                                     gx_error *err)
{
    return find_ordinals(&((gpu_workspace *)exec)->session.s->columns, column, facet, out, err);
}

static gx_status cuda_count_matches(void *exec, const gx_plan *plans, uint32_t n,
                                    const gx_facet_ordinals *const *facets, uint32_t n_facets, gx_match_counts *counts,
                                    bool *counted, gx_error *err)
{
    gpu_workspace *x = (gpu_workspace *)exec;
    const match_request r = {plans, n, facets, n_facets, counts};
    TRY("choosing it", cudaSetDevice(x->session.s->device));
    stop_lingering(x->session.s);
    begin_uses(x, plans, n, NULL);
    const gx_status st = run_matches(x->session.s, &x->session.memory, &x->matches, &r, counted, err);
    x->failed = x->failed || st != GX_OK;
    end_uses(x);
    return st;
}

extern "C" const gx_executor gx_executor_cuda = {
    "gpu",
    gpu_prepare_index,
    gpu_release_index,
    gpu_describe_index,
    cuda_workspace_open,
    cuda_workspace_close,
    cuda_run,
    gpu_mask_open,
    gpu_mask_close,
    cuda_exec_memory,
    NULL,
    cuda_takes_filter,
    cuda_warm,
    NULL,
    cuda_missing_bytes,
    cuda_facet_ordinals,
    cuda_count_matches,
    cuda_workspace_detach,
    cuda_workspace_attach,
    NULL,
    cuda_takes_programs,
};
