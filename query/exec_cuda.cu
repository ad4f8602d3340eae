/* The GPU executor: batches of plans on their way through the GPU.
 *
 *   plans -> parts of a batch: descriptors in pinned memory -> copy in -> begin -> search [-> search of AND's failures as OR]
 *         -> select -> copy out -> the caller's keys
 *
 * Up to three parts are under way at a time: while the GPU works on them, the host describes the next. Nothing is allocated and
 * nothing is waited for between a part's first copy and its last. A query whose candidates overflowed their room is run
 * again with room for every document, beginning at the threshold that it reached.
 */
#include "query/gpu_named.cuh"
#include "query/gpu_part.cuh"

#include <time.h>

using namespace gx;

constexpr uint64_t MAX_ITEMS = 3u << 20, MAX_CANDIDATES = 16u << 20; /* of a part, unless a query alone needs more */
constexpr uint32_t FIRST_PART = 192;       /* queries of a run's first part */
constexpr uint32_t FEW_QUERIES = 4, FEW_BYTES = 512u << 10; /* of a part that is sent in one copy */
constexpr int N_PARTS = 3, MAX_BOUNDS = 16; /* sets of bounds in use at a time */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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
    const uint64_t part = MAX_QUERIES * (sizeof(gpu_query) + sizeof(gpu_query_state) + BINS * 4) + MAX_TERMS * sizeof(gpu_term) +
                          MAX_RUNS * sizeof(gpu_run) + item_room(ix) * sizeof(gpu_item) + (candidate_room(ix) + answer_room(ix)) * 8;
    return N_PARTS * part;
}

/* ---- an exec: a thread's workspace ---- */

struct gpu_exec {
    gpu_state *s;
    part parts[N_PARTS];
    uint64_t candidate_room, answer_room, item_room;
    bounds *bounds_used[MAX_BOUNDS]; /* by the run under way */
    uint32_t n_bounds_used;
    named_space *named; /* NULL until needed */
    job *again; /* jobs that overflowed */
    uint32_t n_again, max_again;
};

static void close_part(part *p)
{
    void *const pinned[] = {p->queries, p->terms, p->runs, p->results, p->answers, p->few, p->counts};
    void *const device[] = {p->d_few, p->d_queries, p->d_terms, p->d_runs, p->d_items, p->d_states, p->d_histograms,
                            p->d_next, p->d_candidates, p->d_answers, p->d_counts, p->sort_scratch};
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
    for (part &p : x->parts)
        close_part(&p);
    named_close(x->named);
    (void)cudaGetLastError();
    free(x->again);
    free(x);
}

template <typename T> static cudaError_t pinned_alloc(T **out, uint64_t n)
{
    return cudaHostAlloc((void **)out, n * sizeof(T), cudaHostAllocMapped);
}

static gx_status open_part(gpu_exec *x, part *p, gx_error *err)
{
    const uint64_t answers = x->answer_room < MAX_ANSWERS ? x->answer_room : MAX_ANSWERS;
    p->jobs = (placed *)malloc(MAX_QUERIES * sizeof *p->jobs);
    if (!p->jobs)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    TRY("pinned memory", pinned_alloc(&p->queries, MAX_QUERIES));
    TRY("pinned memory", pinned_alloc(&p->terms, MAX_TERMS));
    TRY("pinned memory", pinned_alloc(&p->runs, MAX_RUNS));
    TRY("pinned memory", pinned_alloc(&p->results, MAX_QUERIES));
    TRY("pinned memory", pinned_alloc(&p->few, FEW_BYTES));
    TRY("memory for a session", device_alloc(&p->d_few, FEW_BYTES));
    TRY("pinned memory", pinned_alloc(&p->answers, answers));
    TRY("pinned memory", pinned_alloc(&p->counts, N_COUNTS));
    TRY("memory for a session", device_alloc(&p->d_queries, MAX_QUERIES));
    TRY("memory for a session", device_alloc(&p->d_terms, MAX_TERMS));
    TRY("memory for a session", device_alloc(&p->d_runs, MAX_RUNS));
    TRY("memory for a session", device_alloc(&p->d_items, x->item_room));
    TRY("memory for a session", device_alloc(&p->d_states, MAX_QUERIES));
    TRY("memory for a session", device_alloc(&p->d_histograms, MAX_QUERIES * BINS));
    TRY("memory for a session", device_alloc(&p->d_next, N_LAUNCHES));
    TRY("memory for a session", device_alloc(&p->d_candidates, x->candidate_room));
    TRY("memory for a session", device_alloc(&p->d_answers, x->answer_room));
    TRY("memory for a session", device_alloc(&p->d_counts, N_COUNTS));
    TRY("making a stream", cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    for (int i = 0; i < 4; ++i)
        TRY("making an event", cudaEventCreateWithFlags(&p->events[i], i == 3 ? cudaEventDisableTiming : cudaEventDefault));
    return GX_OK;
}

static gx_status cuda_exec_open(void **out, void *state, gx_error *err)
{
    gpu_state *s = (gpu_state *)state;
    *out = NULL;
    TRY("choosing it", cudaSetDevice(s->device));
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
    if (st != GX_OK) {
        cuda_exec_close(x);
        return st;
    }
    *out = x;
    return GX_OK;
}

/* ---- running a part ---- */

/* Before the part's first launch; it is not under way. */
static gx_status reserve_sort(part *p, uint32_t k, gx_error *err)
{
    const size_t bytes = sort_scratch_bytes(k);
    if (p->sort_scratch && bytes <= p->sort_bytes)
        return GX_OK;
    (void)cudaFree(p->sort_scratch);
    p->sort_scratch = NULL;
    TRY("memory for sorting results", cudaMalloc(&p->sort_scratch, bytes));
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
    while (n < most && blocks / (2 * n) >= (p->n_jobs <= FEW_QUERIES ? 1ull : 4ull) * warps)
        n *= 2;
    while (n < most && blocks / n + p->n_terms > x->item_room)
        n *= 2;
    return n < most ? n : most;
}

/* A part of a few queries: all of it in one copy, made ready by the host. False: it does not fit. */
static bool pack_few(part *p, uint32_t item_blocks, gpu_batch *R, size_t *bytes)
{
    const size_t n = p->n_queries, terms = n * sizeof(gpu_query), states = terms + p->n_terms * sizeof(gpu_term);
    const size_t next = states + n * sizeof(gpu_query_state), counts = next + N_LAUNCHES * 4;
    const size_t histograms = counts + N_COUNTS * 8, items = histograms + n * BINS * 4;
    static_assert(N_LAUNCHES * 4 % 16 == 0 && N_COUNTS * 8 % 16 == 0, "pieces of 16 bytes");
    *bytes = items + (size_t)p->n_items * sizeof(gpu_item);
    if (p->n_jobs > FEW_QUERIES || *bytes > FEW_BYTES || p->any_exhaustive)
        return false;
    p->watched = p->direct && !p->any_select;
    for (size_t q = 0; q < n; ++q)
        p->watched = p->watched && p->queries[q].n_items > 0;
    for (size_t q = 0; q < n && p->watched; ++q) {
        p->queries[q].flags |= QUERY_WATCHED;
        p->results[q].done = 0;
    }
    memcpy(p->few, p->queries, terms);
    memcpy(p->few + terms, p->terms, states - terms);
    gpu_query_state *st = (gpu_query_state *)(p->few + states);
    for (size_t q = 0; q < n; ++q)
        st[q] = {p->queries[q].first_threshold, 0, 0, 0};
    memset(p->few + next, 0, items - next);
    gpu_item *item = (gpu_item *)(p->few + items);
    for (uint32_t r = 0; r < p->n_runs; ++r) {
        const gpu_run run = p->runs[r];
        const uint32_t end = r + 1 < p->n_runs ? p->runs[r + 1].item : p->n_items;
        const gpu_term *t = &p->terms[run.term];
        for (uint32_t i = run.item; i < end; ++i)
            item[i] = make_item(run.term, t->at, t->weight.query, &p->queries[t->weight.query], run.first + i - run.item, item_blocks);
    }
    char *d = p->d_few;
    R->queries = (const gpu_query *)d;
    R->terms = (const gpu_term *)(d + terms);
    R->states = (gpu_query_state *)(d + states);
    R->next_item = (uint32_t *)(d + next);
    R->counts = (unsigned long long *)(d + counts);
    R->histograms = (uint32_t *)(d + histograms);
    R->items = (const gpu_item *)(d + items);
    return true;
}

/* Copy the part in; its items, states and histograms are made by the device. */
static gx_status send_many(part *p, uint32_t item_blocks, const gpu_batch &R, gx_error *err)
{
    const cudaStream_t stream = p->stream;
    TRY("copying queries", cudaMemcpyAsync(p->d_queries, p->queries, p->n_queries * sizeof *p->queries, cudaMemcpyHostToDevice, stream));
    TRY("copying queries", cudaMemcpyAsync(p->d_terms, p->terms, p->n_terms * sizeof *p->terms, cudaMemcpyHostToDevice, stream));
    TRY("copying queries", cudaMemcpyAsync(p->d_runs, p->runs, p->n_runs * sizeof *p->runs, cudaMemcpyHostToDevice, stream));
    if (p->timed)
        TRY("timing", cudaEventRecord(p->events[0], stream));
    begin_batch(R, p->d_runs, p->n_runs, p->n_queries, p->d_items, p->n_items, item_blocks, stream);
    return GX_OK;
}

/* Sort the answers that select left unsorted, by way of their own candidates, which are not needed any more. */
static gx_status sort_large(part *p, gx_error *err)
{
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        const gpu_query *Q = &p->queries[q];
        if (Q->k <= SORTED_K)
            continue;
        TRY("sorting results", sort_keys(p->sort_scratch, p->sort_bytes, p->d_answers + Q->answer, p->d_candidates + Q->candidates,
                                         Q->k, p->stream));
        TRY("sorting results", cudaMemcpyAsync(p->d_answers + Q->answer, p->d_candidates + Q->candidates, (size_t)Q->k * 8,
                                               cudaMemcpyDeviceToDevice, p->stream));
    }
    return GX_OK;
}

static gx_status launch_part(gpu_exec *x, part *p, const uint32_t *drivers, uint32_t *active, gx_error *err)
{
    const gpu_state *s = x->s;
    const cudaStream_t stream = p->stream;
    gx_status st = GX_OK;
    uint32_t greatest_sorted = 0;
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        if (p->queries[q].k > SORTED_K && p->queries[q].k > greatest_sorted)
            greatest_sorted = p->queries[q].k;
    }
    if (greatest_sorted && (st = reserve_sort(p, greatest_sorted, err)) != GX_OK)
        return st;
    p->direct = !greatest_sorted && p->n_answers <= MAX_ANSWERS;
    p->timed = p->n_jobs > FEW_QUERIES;
    p->watched = false;
    const uint32_t item_blocks = choose_item_blocks(x, p, drivers);
    for (uint32_t l = 0; l < N_LAUNCHES; ++l) {
        const uint32_t first = l < 2 ? 0 : p->n_first, n = l < 2 ? p->n_first : p->n_queries - p->n_first;
        describe_items(p, first, n, l % 2, drivers, item_blocks, active);
        p->items_end[l] = p->n_items;
    }

    gpu_batch R = {p->d_queries, p->d_terms, p->d_items, 0, p->d_next, p->d_states, p->d_histograms, p->d_candidates,
                   p->direct ? (unsigned long long *)p->answers : p->d_answers, p->results, p->d_counts};
    size_t few_bytes = 0;
    if (pack_few(p, item_blocks, &R, &few_bytes))
        TRY("copying queries", cudaMemcpyAsync(p->d_few, p->few, few_bytes, cudaMemcpyHostToDevice, stream));
    else if ((st = send_many(p, item_blocks, R, err)) != GX_OK)
        return st;
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
    if (p->timed)
        TRY("timing", cudaEventRecord(p->events[1], stream));
    if (p->any_select || p->any_exhaustive)
        select_best(R, 0, p->n_queries, stream);
    if (greatest_sorted && (st = sort_large(p, err)) != GX_OK)
        return st;
    if (!p->direct && p->n_answers <= MAX_ANSWERS) /* else collect copies them */
        TRY("copying results", cudaMemcpyAsync(p->answers, p->d_answers, p->n_answers * 8, cudaMemcpyDeviceToHost, stream));
    if (p->timed) {
        TRY("timing", cudaEventRecord(p->events[2], stream));
        TRY("copying results", cudaMemcpyAsync(p->counts, R.counts, N_COUNTS * 8, cudaMemcpyDeviceToHost, stream));
    }
    TRY("timing", cudaEventRecord(p->events[3], stream));
    p->busy = true;
    return GX_OK;
}

static gx_status push_again(gpu_exec *x, job j, gx_error *err)
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

/* The answer of query q of the part to hits, or the query to those to be run again. */
static gx_status collect_query(gpu_exec *x, part *p, const placed *pl, uint32_t q, gx_op op, gx_hits *hits, gx_error *err)
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
        TRY("copying results", cudaMemcpy(h->keys, p->d_answers + Q->answer, (size_t)h->n * 8, cudaMemcpyDeviceToHost));
    return GX_OK;
}

/* Whether a watched part's answers are all there. */
static bool all_done(const part *p)
{
    for (uint32_t q = 0; q < p->n_queries; ++q) {
        if (!__atomic_load_n(&p->results[q].done, __ATOMIC_ACQUIRE))
            return false;
    }
    return true;
}

static gx_status wait_for(part *p, const gx_plan *plan, bool *cancelled, gx_error *err)
{
    cudaError_t e = cudaErrorNotReady;
    if (plan && plan->cancel) {
        const struct timespec nap = {0, 50000};
        for (uint32_t turn = 0; (e = cudaEventQuery(p->events[3])) == cudaErrorNotReady; ++turn) {
            *cancelled = *cancelled || plan->cancel(plan->user);
            if (turn > 1000) /* about a millisecond */
                nanosleep(&nap, NULL);
        }
    } else if (p->watched) { /* sooner than the event; which tells of failures */
        for (uint32_t turn = 0; !all_done(p) && e == cudaErrorNotReady; ++turn)
            e = turn % 256 == 255 ? cudaEventQuery(p->events[3]) : e;
        e = e == cudaErrorNotReady ? cudaSuccess : e;
    } else {
        e = cudaEventSynchronize(p->events[3]);
    }
    TRY("searching", e);
    return GX_OK;
}

static gx_status collect(gpu_exec *x, part *p, const gx_plan *plans, gx_hits *hits, gx_work *work, gx_error *err)
{
    bool cancelled = false;
    if (!p->busy)
        return GX_OK;
    p->busy = false;
    gx_status st = wait_for(p, p->n_jobs ? &plans[p->jobs[0].j.plan] : NULL, &cancelled, err);
    if (st != GX_OK)
        return st;
    if (cancelled)
        return gx_fail(err, GX_ECANCELLED, "cancelled");
    const double t0 = seconds();
    for (uint32_t i = 0; i < p->n_jobs && st == GX_OK; ++i) {
        const placed *pl = &p->jobs[i];
        const bool second = pl->second != NO_QUERY && p->results[pl->first].count < p->queries[pl->first].k;
        st = collect_query(x, p, pl, second ? pl->second : pl->first, pl->second == NO_QUERY ? pl->j.op : second ? GX_OP_OR : GX_OP_AND,
                           hits, err);
        if (work)
            work->and_fell_to_or += second;
    }
    if (work && p->timed) {
        float ms = 0;
        work->blocks_decoded += p->counts[COUNT_DECODED];
        work->lookups += p->counts[COUNT_LOOKUPS];
        if (cudaEventElapsedTime(&ms, p->events[0], p->events[1]) == cudaSuccess)
            work->seconds[1] += 1e-3 * ms;
        if (cudaEventElapsedTime(&ms, p->events[1], p->events[2]) == cudaSuccess)
            work->seconds[2] += 1e-3 * ms;
    }
    if (work)
        work->seconds[3] += seconds() - t0;
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
    const gx_status st = take_bounds(x->s, norm, &b, err);
    if (st == GX_OK)
        *out = x->bounds_used[x->n_bounds_used++] = b;
    return st;
}

/* Describe as many of jobs[n] as a part takes; *taken of them. */
static gx_status fill_part(gpu_exec *x, part *p, const gx_plan *plans, const job *jobs, uint32_t n, uint32_t *drivers, uint32_t *taken,
                           gx_work *work, gx_error *err)
{
    const uint64_t answers = x->answer_room < MAX_ANSWERS ? x->answer_room : MAX_ANSWERS;
    need sum = {0, 0, 0, 0, 0, 0};
    p->n_jobs = p->n_queries = p->n_first = p->n_terms = p->n_runs = p->n_items = 0;
    p->n_candidates = p->n_answers = 0;
    p->any_exhaustive = p->any_select = false;
    uint32_t i = 0;
    for (; i < n; ++i) {
        const gx_plan *plan = &plans[jobs[i].plan];
        const need one = job_need(x->s->ix, plan, &jobs[i]);
        sum.queries += one.queries;
        sum.terms += one.terms;
        sum.runs += one.runs;
        sum.items += one.items;
        sum.candidates += one.candidates;
        sum.answers += one.answers;
        if (i && (sum.queries > MAX_QUERIES || sum.terms > MAX_TERMS || sum.runs > MAX_RUNS || sum.items > x->item_room ||
                  sum.candidates > x->candidate_room || sum.answers > answers))
            break;
        if (one.candidates > x->candidate_room || one.answers > x->answer_room)
            break; /* of AND-then-OR with room for all: run_jobs parts them */
        const bounds *b = NULL;
        if (plan->prune) {
            const gx_status st = find_bounds(x, plan->norm, &b, err);
            if (st != GX_OK)
                return st;
        }
        placed *pl = &p->jobs[p->n_jobs++];
        *pl = {jobs[i], p->n_queries, NO_QUERY};
        uint32_t d;
        describe_query(x->s, p, plan, b, &jobs[i], jobs[i].op != GX_OP_OR, NO_QUERY, &d);
        drivers[pl->first] = d;
        if (work) {
            for (uint32_t t = 0; t < plan->n_terms; ++t) {
                work->postings += plan->terms[t].df;
                work->blocks += (plan->terms[t].df - 1) / x->s->ix->block_len + 1;
            }
        }
    }
    p->n_first = p->n_queries;
    for (uint32_t m = 0; m < p->n_jobs; ++m) {
        placed *pl = &p->jobs[m];
        if (pl->j.op != GX_OP_AND_OR)
            continue;
        const gx_plan *plan = &plans[pl->j.plan];
        const bounds *b = NULL;
        if (plan->prune) {
            const gx_status st = find_bounds(x, plan->norm, &b, err);
            if (st != GX_OK)
                return st;
        }
        pl->second = p->n_queries;
        uint32_t d;
        describe_query(x->s, p, plan, b, &pl->j, false, pl->first, &d);
        drivers[pl->second] = d;
    }
    *taken = i;
    return GX_OK;
}

static gx_status run_jobs(gpu_exec *x, const gx_plan *plans, const job *jobs, uint32_t n, gx_hits *hits, gx_work *work, gx_error *err)
{
    uint32_t drivers[MAX_QUERIES], active[MAX_QUERIES];
    gx_status st = GX_OK;
    /* The first parts are small, so that the GPU begins early; later ones grow, as long as the others take. */
    for (uint32_t at = 0, turn = 0, most = FIRST_PART; at < n && st == GX_OK; turn = (turn + 1) % N_PARTS, most = 2 * most < MAX_QUERIES ? 2 * most : MAX_QUERIES) {
        part *p = &x->parts[turn];
        if ((st = collect(x, p, plans, hits, work, err)) != GX_OK)
            break;
        const gx_plan *plan = &plans[jobs[at].plan];
        if (plan->cancel && plan->cancel(plan->user)) {
            st = gx_fail(err, GX_ECANCELLED, "cancelled");
            break;
        }
        const double t0 = seconds();
        uint32_t taken = 0;
        st = fill_part(x, p, plans, jobs + at, n - at < most + most / 2 ? n - at : most, drivers, &taken, work, err);
        if (st == GX_OK && taken == 0)
            st = gx_fail(err, GX_ECUDA, "GPU: a query of %u terms and k = %u is larger than the session's memory; use the CPU engine",
                         plan->n_terms, plan->k);
        if (st == GX_OK)
            st = launch_part(x, p, drivers, active, err);
        if (work)
            work->seconds[0] += seconds() - t0;
        at += taken;
    }
    for (int i = 0; i < N_PARTS; ++i) { /* in any case: nothing may be under way when this returns */
        part *p = &x->parts[i];
        if (st == GX_OK)
            st = collect(x, p, plans, hits, work, err);
        else
            (void)cudaStreamSynchronize(p->stream);
        p->busy = false;
    }
    return st;
}

static gx_status cuda_run(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_work *work, gx_error *err)
{
    gpu_exec *x = (gpu_exec *)exec;
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
    gx_status st = run_jobs(x, plans, jobs, n_jobs, hits, work, err);
    if (st == GX_OK && x->n_again) {
        job *again = x->again;
        const uint32_t n_again = x->n_again;
        x->again = NULL;
        x->n_again = x->max_again = 0;
        st = run_jobs(x, plans, again, n_again, hits, NULL, err);
        free(again);
    }
    if (st == GX_OK)
        st = named_run(&x->named, x->s, plans, n, hits, work, err);
    while (x->n_bounds_used)
        give_bounds(x->s, x->bounds_used[--x->n_bounds_used]);
    free(jobs);
    return st;
}

extern "C" const gx_exec_ops gx_exec_cuda = {
    "gpu", gpu_state_open, gpu_state_close, gpu_state_describe, cuda_exec_open, cuda_exec_close, cuda_run,
};

