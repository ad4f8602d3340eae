/* The GPU executor: batches of plans on their way through the GPU.
 *
 *   plans -> parts of a batch: descriptors in pinned memory -> copy in -> begin -> search [->
 *   search of AND's failures as OR]
 *         -> select -> copy out -> the caller's keys
 *
 * Up to three parts are under way at a time: while the GPU works on them, the host describes the
 * next. Nothing is allocated and nothing is waited for between a part's first copy and its last. A
 * query whose candidates overflowed their room is run again with room for every document, beginning
 * at the threshold that it reached.
 */
#include "query/executors/gpu.cuh"

extern "C" {
#include "query/mask.h"
}

using namespace gx;

constexpr uint64_t MAX_ITEMS = 3u << 20, MAX_CANDIDATES = 16u << 20; /* of a part, unless a query alone needs more */
/* queries of a run's first part; how many times larger the next may be */
constexpr uint32_t FIRST_PART = 128, PART_GROWTH = 8;
constexpr uint32_t FINE_MOST = 512; /* a run of so many queries has fine items (describe_items) */

/* ---- room ---- */

static uint64_t candidate_room(const gx_index *ix)
{
    const uint64_t all = (uint64_t)ix->n_docs * 1024;
    const uint64_t room = all < MAX_CANDIDATES ? all : MAX_CANDIDATES, two = 2ull * ix->n_docs + 1; /* AND, then OR */
    return room > two ? room : two;
}

static uint64_t answer_room(const gx_index *ix)
{
    return 2ull * ix->n_docs > MAX_ANSWERS ? 2ull * ix->n_docs : MAX_ANSWERS;
}

static uint64_t item_room(const gx_index *ix)
{
    const uint64_t one = 2 * (ix->n_blocks / most_item_blocks(ix) + 2 * GX_MAX_TERMS); /* any one query, twice */
    const uint64_t many = one < MAX_ITEMS / 64 ? 64 * one : MAX_ITEMS;
    return one > many ? one : many;
}

uint64_t gx::exec_bytes(const gx_index *ix)
{
    const uint64_t part = DESCRIBED_BYTES + MAX_QUERIES * (sizeof(gpu_query_state) + BINS * 4) +
                          item_room(ix) * sizeof(gpu_item) + (candidate_room(ix) + answer_room(ix)) * 8;
    return N_PARTS * part;
}

/* ---- an exec: a thread's workspace ---- */

static void close_part(part *p)
{
    void *const pinned[] = {p->described, p->results, p->answers, p->counts};
    void *const device[] = {p->d_described,  p->d_items,   p->d_states, p->d_histograms, p->d_next,
                            p->d_candidates, p->d_answers, p->d_counts, p->sort_scratch};
    if (p->stream)
        (void)cudaStreamSynchronize(p->stream);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; ++i)
        (void)cudaFreeHost(pinned[i]);
    for (size_t i = 0; i < sizeof device / sizeof *device; ++i)
        (void)cudaFree(device[i]);
    for (cudaEvent_t e : p->events) {
        if (e)
            (void)cudaEventDestroy(e);
    }
    if (p->stream)
        (void)cudaStreamDestroy(p->stream);
    free(p->jobs);
}

static void cuda_exec_close(void *exec)
{
    gpu_exec *x = (gpu_exec *)exec;
    if (!x)
        return;
    (void)cudaSetDevice(x->s->device);
    close_few(x);
    for (part &p : x->parts)
        close_part(&p);
    named_close(x->named);
    (void)cudaGetLastError();
    free(x->again);
    free(x);
}

static gx_status open_part(gpu_exec *x, part *p, gx_error *err)
{
    const uint64_t answers = x->answer_room < MAX_ANSWERS ? x->answer_room : MAX_ANSWERS;
    p->jobs = (placed *)malloc(MAX_QUERIES * sizeof *p->jobs);
    if (!p->jobs)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    TRY("pinned memory", pinned_alloc(&p->described, DESCRIBED_BYTES));
    TRY("pinned memory", pinned_alloc(&p->results, MAX_QUERIES));
    TRY("pinned memory", pinned_alloc(&p->answers, answers));
    TRY("pinned memory", pinned_alloc(&p->counts, N_COUNTS));
    TRY("memory for a session", device_alloc(&p->d_described, DESCRIBED_BYTES));
    TRY("memory for a session", device_alloc(&p->d_items, x->item_room));
    TRY("memory for a session", device_alloc(&p->d_states, MAX_QUERIES));
    TRY("memory for a session", device_alloc(&p->d_histograms, MAX_QUERIES * BINS));
    TRY("memory for a session", device_alloc(&p->d_next, N_LAUNCHES));
    TRY("memory for a session", device_alloc(&p->d_candidates, x->candidate_room));
    TRY("memory for a session", device_alloc(&p->d_answers, x->answer_room));
    TRY("memory for a session", device_alloc(&p->d_counts, N_COUNTS));
    TRY("making a stream", cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    for (int i = 0; i < 4; ++i)
        TRY("making an event",
            cudaEventCreateWithFlags(&p->events[i], i == 3 ? cudaEventDisableTiming : cudaEventDefault));
    return GX_OK;
}

static gx_status cuda_exec_open(void **out, void *state, gx_error *err)
{
    gpu_state *s = (gpu_state *)state;
    *out = NULL;
    TRY("choosing it", cudaSetDevice(s->device));
    send_away(s);
    gpu_exec *x = (gpu_exec *)calloc(1, sizeof *x);
    if (!x)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    x->s = s;
    x->candidate_room = candidate_room(s->ix);
    x->answer_room = answer_room(s->ix);
    x->item_room = item_room(s->ix);
    gx_status st = GX_OK;
    for (int i = 0; i < N_PARTS && st == GX_OK; ++i)
        st = open_part(x, &x->parts[i], err);
    if (st == GX_OK)
        st = open_few(x, err);
    if (st != GX_OK) {
        cuda_exec_close(x);
        return st;
    }
    *out = x;
    return GX_OK;
}

/* ---- running a part ---- */

/* Before the part's first launch; it is not under way. */
static gx_status reserve_sort(gpu_exec *x, part *p, uint32_t k, gx_error *err)
{
    const size_t bytes = sort_scratch_bytes(k);
    if (p->sort_scratch && bytes <= p->sort_bytes)
        return GX_OK;
    counted_free(&x->calls, p->sort_scratch);
    p->sort_scratch = NULL;
    TRY("memory for sorting results", counted_alloc(&x->calls, &p->sort_scratch, bytes));
    p->sort_bytes = bytes;
    return GX_OK;
}

static uint32_t choose_item_blocks(const gpu_exec *x, const part *p, const uint32_t *drivers)
{
    uint64_t blocks = 0;
    const uint32_t most = most_item_blocks(x->s->ix), warps = x->s->grid * 8;
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        for (uint32_t i = 0; i < drivers[q]; ++i)
            blocks += p->terms[p->queries[q].first_term + i].at.n_blocks;
    }
    uint32_t n = 1;
    while (n < most && blocks / (2 * n) >= 4ull * warps)
        n *= 2;
    while (n < most && blocks / n + p->n_terms * (x->fine ? 1 + FINE_ITEMS : 1) > x->item_room)
        n *= 2;
    return n < most ? n : most;
}

/* Sort the answers that select left unsorted, by way of their own candidates, which are not needed
 * any more. */
static gx_status sort_large(part *p, gx_error *err)
{
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        const gpu_query *Q = &p->queries[q];
        if (Q->k <= SORTED_K)
            continue;
        TRY("sorting results", sort_keys(p->sort_scratch, p->sort_bytes, p->d_answers + Q->answer,
                                         p->d_candidates + Q->candidates, Q->k, p->stream));
        TRY("sorting results", cudaMemcpyAsync(p->d_answers + Q->answer, p->d_candidates + Q->candidates,
                                               (size_t)Q->k * 8, cudaMemcpyDeviceToDevice, p->stream));
    }
    return GX_OK;
}

/* Where the copy of what is described at here will be. */
static char *on_device(const part *p, void *here)
{
    return p->d_described + ((char *)here - p->described);
}

static gx_status launch_part(gpu_exec *x, part *p, const uint32_t *drivers, uint32_t *active, unmade *lists,
                             gx_error *err)
{
    const gpu_state *s = x->s;
    const cudaStream_t stream = p->stream;
    gx_status st = GX_OK;
    uint32_t greatest_sorted = 0;
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        if (p->queries[q].k > SORTED_K && p->queries[q].k > greatest_sorted)
            greatest_sorted = p->queries[q].k;
    }
    if (greatest_sorted && (st = reserve_sort(x, p, greatest_sorted, err)) != GX_OK)
        return st;
    p->direct = !greatest_sorted && p->n_answers <= MAX_ANSWERS;
    const uint32_t item_blocks = choose_item_blocks(x, p, drivers);
    for (uint32_t l = 0; l < N_LAUNCHES; ++l) {
        const uint32_t first = l < 2 ? 0 : p->n_first, n = l < 2 ? p->n_first : p->n_queries - p->n_first;
        describe_items(p, first, n, l % 2, drivers, item_blocks, x->fine, active, lists);
        p->items_end[l] = p->n_items;
    }

    gpu_batch R = {(gpu_query *)on_device(p, p->queries),
                   (gpu_term *)on_device(p, p->terms),
                   p->d_items,
                   0,
                   p->d_next,
                   p->d_states,
                   p->d_histograms,
                   NULL,
                   p->d_candidates,
                   p->direct ? (unsigned long long *)p->answers : p->d_answers,
                   p->results,
                   p->d_counts};
    TRY("copying queries",
        cudaMemcpyAsync(p->d_described, p->described, (size_t)((char *)(p->runs + p->n_runs) - p->described),
                        cudaMemcpyHostToDevice, stream));
    TRY("timing", cudaEventRecord(p->events[0], stream));
    begin_batch(R, (gpu_run *)on_device(p, p->runs), p->n_runs, p->n_queries, p->d_items, p->n_items, stream);
    const gpu_item *items = R.items;
    uint32_t *next_item = R.next_item;
    for (uint32_t l = 0; l < N_LAUNCHES; ++l) {
        const uint32_t begin = l ? p->items_end[l - 1] : 0;
        R.items = items + begin;
        R.n_items = p->items_end[l] - begin;
        R.next_item = next_item + l;
        search_batch(s->X, s->coding, R, l % 2, s->grid, stream);
        if (p->any_exhaustive && l == 1)
            search_exhaustively(s->X, s->coding, R, 0, p->n_first, stream);
        if (p->any_exhaustive && l == 3)
            search_exhaustively(s->X, s->coding, R, p->n_first, p->n_queries - p->n_first, stream);
    }
    TRY("starting a search", cudaGetLastError());
    TRY("timing", cudaEventRecord(p->events[1], stream));
    if (p->any_select || p->any_exhaustive)
        select_best(R, 0, p->n_queries, stream);
    if (greatest_sorted && (st = sort_large(p, err)) != GX_OK)
        return st;
    if (!p->direct && p->n_answers <= MAX_ANSWERS) /* else collect copies them */
        TRY("copying results",
            cudaMemcpyAsync(p->answers, p->d_answers, p->n_answers * 8, cudaMemcpyDeviceToHost, stream));
    TRY("timing", cudaEventRecord(p->events[2], stream));
    TRY("copying results", cudaMemcpyAsync(p->counts, R.counts, N_COUNTS * 8, cudaMemcpyDeviceToHost, stream));
    TRY("timing", cudaEventRecord(p->events[3], stream));
    x->calls.parts += 1;
    p->busy = true;
    return GX_OK;
}

gx_status gx::push_again(gpu_exec *x, job j, gx_error *err)
{
    if (x->n_again == x->max_again) {
        const uint32_t max = x->max_again ? 2 * x->max_again : 64;
        job *more = (job *)realloc(x->again, max * sizeof *more);
        if (!more)
            return gx_fail(err, GX_ENOMEM, "no memory for %u queries to be run again", max);
        x->again = more;
        x->max_again = max;
    }
    x->again[x->n_again++] = j;
    return GX_OK;
}

gx_status gx::collect_query(gpu_exec *x, part *p, const placed *pl, uint32_t q, gx_op op, gx_hits *hits, gx_error *err)
{
    const gpu_query *Q = &p->queries[q];
    const gpu_query_state st = p->results[q];
    if (st.count > Q->capacity && !pl->j.roomy && !(Q->flags & QUERY_EXHAUSTIVE))
        return push_again(x, {pl->j.plan, op, true, st.threshold}, err);
    gx_hits *h = &hits[pl->j.plan];
    h->n = st.n_hits < Q->k ? st.n_hits : Q->k;
    if (p->n_answers <= MAX_ANSWERS)
        memcpy(h->keys, p->answers + Q->answer, (size_t)h->n * 8);
    else
        TRY("copying results", wait_and_copy(&x->calls, h->keys, p->d_answers + Q->answer, (size_t)h->n * 8));
    return GX_OK;
}

static gx_status collect(gpu_exec *x, part *p, const gx_plan *plans, gx_hits *hits, gx_work *work, gx_error *err)
{
    bool cancelled = false;
    if (!p->busy)
        return GX_OK;
    p->busy = false;
    TRY("searching", wait_for_event(&x->calls, p->events[3], &plans[p->jobs[0].j.plan], &cancelled));
    if (cancelled)
        return gx_fail(err, GX_ECANCELLED, "cancelled");
    const double t0 = gx_clock_seconds();
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < p->n_jobs && st == GX_OK; ++i) {
        const placed *pl = &p->jobs[i];
        const bool second = pl->second != NO_QUERY && p->results[pl->first].count < p->queries[pl->first].k;
        st = collect_query(x, p, pl, second ? pl->second : pl->first,
                           pl->second == NO_QUERY ? pl->j.op
                           : second               ? GX_OP_OR
                                                  : GX_OP_AND,
                           hits, err);
        if (work)
            work->and_fell_to_or += second;
    }
    if (work) {
        float ms = 0;
        work->blocks_decoded += p->counts[COUNT_DECODED];
        work->lookups += p->counts[COUNT_LOOKUPS];
        if (cudaEventElapsedTime(&ms, p->events[0], p->events[1]) == cudaSuccess)
            work->seconds[1] += 1e-3 * ms;
        if (cudaEventElapsedTime(&ms, p->events[1], p->events[2]) == cudaSuccess)
            work->seconds[2] += 1e-3 * ms;
    }
    if (work)
        work->seconds[3] += gx_clock_seconds() - t0;
    return st;
}

/* ---- runs ---- */

static gx_status find_bounds(gpu_exec *x, gx_norm norm, const bounds **out, gx_error *err)
{
    for (uint32_t i = 0; i < x->n_bounds_used; ++i) {
        if (same_norm(x->bounds_used[i]->norm, norm)) {
            *out = x->bounds_used[i];
            return GX_OK;
        }
    }
    if (x->n_bounds_used == MAX_BOUNDS) /* described queries need theirs no more */
        give_bounds(x->s, x->bounds_used[--x->n_bounds_used]);
    bounds *b = NULL;
    const gx_status st = take_bounds(x->s, norm, &x->calls, &b, err);
    if (st == GX_OK)
        *out = x->bounds_used[x->n_bounds_used++] = b;
    return st;
}

void gx::count_lists(const gpu_exec *x, const gx_plan *plan, gx_work *work)
{
    for (uint32_t t = 0; work && t < plan->n_terms; ++t) {
        work->postings += plan->terms[t].df;
        work->blocks += count_blocks(x->s->ix, plan->terms[t].df);
    }
}

void gx::empty_part(part *p, uint64_t n_queries, uint64_t n_terms)
{
    p->queries = (gpu_query *)p->described;
    p->terms = (gpu_term *)(p->queries + n_queries);
    p->runs = (gpu_run *)(p->terms + n_terms);
    p->n_jobs = p->n_queries = p->n_first = p->n_terms = p->n_runs = p->n_items = 0;
    p->n_candidates = p->n_answers = 0;
    p->any_exhaustive = p->any_select = false;
}

/* How many of jobs[n] a part takes, made ready for them. */
static uint32_t size_part(const gpu_exec *x, part *p, const gx_plan *plans, const job *jobs, uint32_t n)
{
    const uint64_t answers = x->answer_room < MAX_ANSWERS ? x->answer_room : MAX_ANSWERS;
    need sum = {0, 0, 0, 0, 0, 0};
    uint64_t n_queries = 0, n_terms = 0;
    uint32_t i = 0;
    for (; i < n; ++i) {
        const need one = job_need(x->s->ix, &plans[jobs[i].plan], &jobs[i], x->fine);
        sum.queries += one.queries;
        sum.terms += one.terms;
        sum.runs += one.runs;
        sum.items += one.items;
        sum.candidates += one.candidates;
        sum.answers += one.answers;
        if (i && (sum.queries > MAX_QUERIES || sum.terms > MAX_TERMS || sum.runs > MAX_RUNS ||
                  sum.items > x->item_room || sum.candidates > x->candidate_room || sum.answers > answers))
            break;
        if (one.candidates > x->candidate_room || one.answers > x->answer_room)
            break; /* of AND-then-OR with room for all: run_jobs parts them */
        n_queries = sum.queries;
        n_terms = sum.terms;
    }
    empty_part(p, n_queries, n_terms);
    return i;
}

gx_status gx::add_query(gpu_exec *x, part *p, const gx_plan *plan, const job *j, bool all, uint32_t after,
                        uint32_t *drivers, uint32_t *number, gx_error *err)
{
    const bounds *b = NULL;
    const gx_status st = plan->prune ? find_bounds(x, plan->norm, &b, err) : GX_OK;
    if (st != GX_OK)
        return st;
    *number = p->n_queries;
    describe_query(x->s, p, plan, b, j, all, after, &drivers[*number]);
    return GX_OK;
}

/* Describe as many of jobs[n] as a part takes; *taken of them. */
static gx_status fill_part(gpu_exec *x, part *p, const gx_plan *plans, const job *jobs, uint32_t n, uint32_t *drivers,
                           uint32_t *taken, gx_work *work, gx_error *err)
{
    gx_status st = GX_OK;
    *taken = size_part(x, p, plans, jobs, n);
    for (uint32_t i = 0; i < *taken && st == GX_OK; ++i) {
        const gx_plan *plan = &plans[jobs[i].plan];
        placed *pl = &p->jobs[p->n_jobs++];
        *pl = {jobs[i], 0, NO_QUERY};
        st = add_query(x, p, plan, &jobs[i], jobs[i].op != GX_OP_OR, NO_QUERY, drivers, &pl->first, err);
        count_lists(x, plan, work);
    }
    p->n_first = p->n_queries;
    for (uint32_t i = 0; i < p->n_jobs && st == GX_OK; ++i) {
        placed *pl = &p->jobs[i];
        if (pl->j.op == GX_OP_AND_OR)
            st = add_query(x, p, &plans[pl->j.plan], &pl->j, false, pl->first, drivers, &pl->second, err);
    }
    return st;
}

static gx_status run_jobs(gpu_exec *x, const gx_plan *plans, const job *jobs, uint32_t n, gx_hits *hits, gx_work *work,
                          gx_error *err)
{
    uint32_t drivers[MAX_QUERIES], active[MAX_QUERIES];
    unmade lists[MAX_QUERIES];
    gx_status st = GX_OK;
    if (n && are_few(plans, jobs, n))
        return run_few(x, plans, jobs, n, hits, work, err);
    send_away(x->s);
    x->fine = n <= FINE_MOST;
    /* The first part is small, so that the GPU begins early; the next is large, since few launches
     * are better than many. Where other sessions keep the GPU busy, one launch of all is best. */
    const bool busy = __atomic_load_n(&x->s->running, __ATOMIC_RELAXED) > 1;
    for (uint32_t at = 0, turn = 0, most = busy ? MAX_QUERIES : FIRST_PART; at < n && st == GX_OK;
         turn = (turn + 1) % N_PARTS, most = PART_GROWTH * most < MAX_QUERIES ? PART_GROWTH * most : MAX_QUERIES) {
        part *p = &x->parts[turn];
        if ((st = collect(x, p, plans, hits, work, err)) != GX_OK)
            break;
        const gx_plan *plan = &plans[jobs[at].plan];
        if (plan->cancel && plan->cancel(plan->user)) {
            st = gx_fail(err, GX_ECANCELLED, "cancelled");
            break;
        }
        const double t0 = gx_clock_seconds();
        uint32_t taken = 0;
        st = fill_part(x, p, plans, jobs + at, n - at < most + most / 2 ? n - at : most, drivers, &taken, work, err);
        if (st == GX_OK && taken == 0)
            st = gx_fail(err, GX_ECUDA,
                         "GPU: a query of %u terms and k = %u is larger than the session's memory; "
                         "use the CPU engine",
                         plan->n_terms, plan->k);
        if (st == GX_OK)
            st = launch_part(x, p, drivers, active, lists, err);
        if (work)
            work->seconds[0] += gx_clock_seconds() - t0;
        at += taken;
    }
    for (int i = 0; i < N_PARTS; ++i) { /* in any case: nothing may be under way when this returns */
        part *p = &x->parts[i];
        if (st == GX_OK)
            st = collect(x, p, plans, hits, work, err);
        else
            (void)wait_for_stream(&x->calls, p->stream);
        p->busy = false;
    }
    return st;
}

static gx_status cuda_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_work *work, gx_error *err)
{
    gpu_exec *x = (gpu_exec *)exec;
    const gpu_calls before = x->calls;
    for (uint32_t i = 0; i < n; ++i) {
        if (plans[i].mask && !plans[i].mask->device)
            return gx_fail(err, GX_ECUDA, "GPU: the mask could not be copied to it");
    }
    TRY("choosing it", cudaSetDevice(x->s->device));
    job *jobs = (job *)malloc((n + 1ull) * sizeof *jobs);
    if (!jobs)
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    uint32_t n_jobs = 0;
    for (uint32_t i = 0; i < n; ++i) {
        hits[i].n = 0;
        if (plans[i].n_terms && !is_named(&plans[i]))
            jobs[n_jobs++] = {i, plans[i].op, false, 0};
    }
    x->n_again = 0;
    x->was_last = __atomic_exchange_n(&x->s->last, x, __ATOMIC_RELAXED) == x;
    __atomic_fetch_add(&x->s->running, 1, __ATOMIC_SEQ_CST);
    gx_status st = run_jobs(x, plans, jobs, n_jobs, hits, work, err);
    while (st == GX_OK && x->n_again) { /* AND that falls to OR, and then what needs more room */
        job *again = x->again;
        const uint32_t n_again = x->n_again;
        x->again = NULL;
        x->n_again = x->max_again = 0;
        st = run_jobs(x, plans, again, n_again, hits, NULL, err);
        free(again);
    }
    if (st == GX_OK && n_jobs < n)
        send_away(x->s);
    if (st == GX_OK)
        st = named_run(&x->named, x->s, &x->calls, plans, n, hits, work, err);
    __atomic_fetch_sub(&x->s->running, 1, __ATOMIC_RELAXED);
    if (work) {
        work->parts += x->calls.parts - before.parts;
        work->waits += x->calls.waits - before.waits;
        work->stayed += x->calls.stayed - before.stayed;
        work->allocations += x->calls.allocations - before.allocations;
    }
    while (x->n_bounds_used)
        give_bounds(x->s, x->bounds_used[--x->n_bounds_used]);
    free(jobs);
    return st;
}

extern "C" const gx_exec_ops gx_exec_cuda = {
    "gpu",           gpu_state_open, gpu_state_close, gpu_state_describe, cuda_exec_open,
    cuda_exec_close, cuda_run,       gpu_mask_open,   gpu_mask_close,
};
