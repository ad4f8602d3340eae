/* The host side of Ding et al.'s algorithms: plans go in groups that fit the memory, and each step
 * of a group is timed. */
#include "query/ding2009/taat.cuh"

extern "C" {
#include "query/filter/mask.h"
#include "query/gpu/sub_batch.cuh"
}

namespace gx {

constexpr uint32_t MAX_GROUP = 256;        /* queries */
constexpr uint64_t GROUP_BYTES = 1u << 30; /* of a group's arrays, unless a single query needs more */
constexpr uint64_t MAX_GROUP_TERMS = 1u << 14;
constexpr uint32_t MAX_MARKS = 1u << 13;

/* A request: a plan, and AND or OR. */
struct taat_request {
    uint32_t plan;
    gx_op op;
};

/* The end of a step. */
struct mark {
    cudaEvent_t event;
    gx_step step;
};

struct taat_space {
    session_memory *memory;
    growing_memory arrays;
    taat_query *queries, *d_queries; /* pinned, [MAX_GROUP]; on the device */
    taat_term *terms, *d_terms;      /* [MAX_GROUP_TERMS] */
    taat_state *states, *d_states;   /* [MAX_GROUP] */
    unsigned long long *answers;     /* pinned, [max_answers] */
    uint64_t max_answers;
    growing_memory sort_scratch;
    cudaStream_t stream;
    cudaEvent_t done;
    gpu_call_counts *calls; /* the counters of `memory` */
    mark *marks;            /* [MAX_MARKS]; the first marks the beginning */
    uint32_t n_marks, n_events;
};

void taat_close(session_memory *m, taat_space *s)
{
    if (!s)
        return;
    if (s->stream)
        (void)cudaStreamSynchronize(s->stream);
    session_free(m, (void **)&s->arrays.base, s->arrays.bytes);
    session_free(m, (void **)&s->sort_scratch.base, s->sort_scratch.bytes);
    session_free_array(m, &s->d_queries, MAX_GROUP);
    session_free_array(m, &s->d_terms, MAX_GROUP_TERMS);
    session_free_array(m, &s->d_states, MAX_GROUP);
    session_free_pinned_array(m, &s->queries, MAX_GROUP);
    session_free_pinned_array(m, &s->terms, MAX_GROUP_TERMS);
    session_free_pinned_array(m, &s->states, MAX_GROUP);
    session_free_pinned_array(m, &s->answers, s->max_answers);
    for (uint32_t i = 0; i < s->n_events; ++i)
        (void)cudaEventDestroy(s->marks[i].event);
    if (s->done)
        (void)cudaEventDestroy(s->done);
    if (s->stream)
        (void)cudaStreamDestroy(s->stream);
    free(s->marks);
    free(s);
}

static gx_status open_space(taat_space *s, gx_error *err)
{
    s->marks = (mark *)calloc(MAX_MARKS, sizeof *s->marks);
    if (!s->marks)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    session_memory *m = s->memory;
    TRY_STATUS(session_alloc_pinned_array(m, &s->queries, MAX_GROUP, err));
    TRY_STATUS(session_alloc_pinned_array(m, &s->terms, MAX_GROUP_TERMS, err));
    TRY_STATUS(session_alloc_pinned_array(m, &s->states, MAX_GROUP, err));
    TRY_STATUS(session_alloc_array(m, &s->d_queries, MAX_GROUP, err));
    TRY_STATUS(session_alloc_array(m, &s->d_terms, MAX_GROUP_TERMS, err));
    TRY_STATUS(session_alloc_array(m, &s->d_states, MAX_GROUP, err));
    TRY("making a stream", cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    TRY("making an event", cudaEventCreateWithFlags(&s->done, cudaEventDisableTiming));
    return GX_OK;
}

static gx_status reserve_answers(taat_space *s, uint64_t n, gx_error *err)
{
    if (n <= s->max_answers)
        return GX_OK;
    session_free_pinned_array(s->memory, &s->answers, s->max_answers);
    s->max_answers = 0;
    TRY_STATUS(session_alloc_pinned_array(s->memory, &s->answers, n, err));
    s->max_answers = n;
    return GX_OK;
}

/* ---- a query's arrays ---- */

static whole_list view_list_of(const gpu_prepared_index *s, const gx_plan_term *t)
{
    const gx_list_entry *e = &s->ix->lists[t->list];
    return view_entry(s->X, *e, s->ix->header->codings[e->coding]);
}

/* PMF, which stands for document at a time here, answers AND by candidates. Everything else uses accumulators. */
static bool by_candidates(const gx_plan *plan, gx_op op)
{
    return op == GX_OP_AND && (plan->algorithm == GX_ALGORITHM_PMF || plan->algorithm == GX_ALGORITHM_DAAT);
}

/* Lays out the query's arrays with their greatest lengths. */
static void layout_query(bump_allocator *c, const gx_index *ix, const gx_plan *plan, gx_op op, taat_query *Q)
{
    const uint32_t len = ix->block_len, shortest = plan->terms[0].df, longest = plan->terms[plan->n_terms - 1].df;
    memset(Q, 0, sizeof *Q);
    Q->n_terms = plan->n_terms;
    Q->k = plan->k;
    Q->norm = plan->norm;
    Q->mask = plan->mask ? (const uint32_t *)plan->mask->device : NULL;
    if (by_candidates(plan, op)) {
        const uint64_t room = (uint64_t)count_blocks(ix, shortest) * len; /* whole blocks are decoded */
        Q->n_scores = shortest;
        Q->max_needed = plan->n_terms > 1 ? count_blocks(ix, longest) : 0;
        Q->max_needed = Q->max_needed < shortest ? Q->max_needed : shortest;
        for (int i = 0; i < 2; ++i) {
            cut(c, &Q->docids[i], room);
            cut(c, &Q->scores[i], room);
        }
        cut(c, &Q->positions, shortest);
        cut(c, &Q->tiles, shortest / COMPACT_TILE + 1);
        cut(c, &Q->needed, Q->max_needed);
        cut(c, &Q->decoded, (uint64_t)Q->max_needed * len);
    } else {
        const uint64_t room = (uint64_t)count_blocks(ix, longest) * len;
        Q->n_scores = ix->n_docs;
        Q->conjunctive = op == GX_OP_AND;
        cut(c, &Q->scores[0], ix->n_docs);
        if (Q->conjunctive)
            cut(c, &Q->holders, ix->n_docs);
        cut(c, &Q->decoded, room);
        cut(c, &Q->tfs, room);
    }
    uint64_t n = Q->n_scores;
    for (uint32_t level = 0; level < N_MAXIMA; ++level) {
        n = (n - 1) / MAXIMA_FANOUT + 1;
        cut(c, &Q->maxima[level], n);
    }
}

/* Returns the bytes of a query's arrays and answer. */
static uint64_t query_bytes(const gx_index *ix, const gx_plan *plan, gx_op op)
{
    bump_allocator c = {NULL, 0};
    taat_query Q;
    layout_query(&c, ix, plan, op, &Q);
    unsigned long long *keys;
    cut(&c, &keys, plan->k);
    return c.used;
}

static uint64_t sort_keys_bytes(uint32_t n_scores)
{
    return 2 * ((uint64_t)n_scores * 8 + CUT_ALIGNMENT);
}

/* ---- a group ---- */

/* Requests that go through the steps together. They all use candidates, with the same number of
 * levels, or all use accumulators. */
struct group {
    bool candidates;
    uint32_t levels, n, n_terms, deepest, longest_answer;
    uint64_t n_answers, sort_n;
    taat_group G;
};

static bool same_kind(const gx_plan *plans, const taat_request *a, const taat_request *b)
{
    const gx_plan *x = &plans[a->plan], *y = &plans[b->plan];
    const bool candidates = by_candidates(x, a->op);
    return candidates == by_candidates(y, b->op) && (!candidates || x->recursion == y->recursion);
}

/* Describes as many of requests[n] as fit. */
static gx_status fill_group(taat_space *sp, const gpu_prepared_index *s, const gx_plan *plans,
                            const taat_request *requests, uint32_t n, group *g, gx_error *err)
{
    const gx_index *ix = s->ix;
    const uint64_t most = sp->arrays.bytes + budget_left(sp->memory->budget),
                   room = most < GROUP_BYTES ? most : GROUP_BYTES;
    uint64_t bytes = 0, keys = 0;
    uint32_t terms = 0, taken = 0;
    for (; taken < n && taken < MAX_GROUP && same_kind(plans, &requests[0], &requests[taken]); ++taken) {
        const gx_plan *plan = &plans[requests[taken].plan];
        const uint64_t more = query_bytes(ix, plan, requests[taken].op);
        uint64_t sort = keys;
        if (plan->k > EXTRACT_K) {
            const uint64_t own =
                sort_keys_bytes(by_candidates(plan, requests[taken].op) ? plan->terms[0].df : ix->n_docs);
            sort = own > keys ? own : keys;
        }
        if (taken && (bytes + more + sort + CUT_ALIGNMENT > room || terms + plan->n_terms > MAX_GROUP_TERMS))
            break;
        bytes += more;
        keys = sort;
        terms += plan->n_terms;
    }
    gx_status st =
        grow_device(sp->memory, &sp->arrays, bytes + keys + CUT_ALIGNMENT, bytes + keys + CUT_ALIGNMENT, err);
    if (st != GX_OK)
        return st;
    memset(g, 0, sizeof *g);
    g->candidates = by_candidates(&plans[requests[0].plan], requests[0].op);
    g->levels = plans[requests[0].plan].recursion;
    g->n = taken;
    bump_allocator c = {sp->arrays.base, 0};
    for (uint32_t i = 0; i < taken; ++i) {
        const gx_plan *plan = &plans[requests[i].plan];
        taat_query *Q = &sp->queries[i];
        layout_query(&c, ix, plan, requests[i].op, Q);
        Q->first_term = g->n_terms;
        Q->answer = g->n_answers;
        for (uint32_t t = 0; t < plan->n_terms; ++t)
            sp->terms[g->n_terms + t] = {view_list_of(s, &plan->terms[t]), plan->terms[t].w};
        g->n_terms += plan->n_terms;
        g->n_answers += plan->k;
        g->deepest = g->deepest > plan->n_terms ? g->deepest : plan->n_terms;
        if (plan->k > EXTRACT_K)
            g->sort_n = g->sort_n > Q->n_scores ? g->sort_n : Q->n_scores;
    }
    unsigned long long *answers;
    cut(&c, &answers, g->n_answers);
    g->G = {sp->d_queries, sp->d_terms, sp->d_states, answers, taken, ix->block_len};
    if ((st = reserve_answers(sp, g->n_answers, err)) != GX_OK)
        return st;
    const size_t scratch = g->sort_n ? sort_scratch_bytes((uint32_t)g->sort_n) : 0;
    return grow_device(sp->memory, &sp->sort_scratch, scratch, scratch, err);
}

/* Records the end of a step. When the marks run out, later steps are not told apart. */
static gx_status end_step(taat_space *sp, gx_step step, gx_error *err)
{
    if (sp->n_marks == MAX_MARKS)
        return GX_OK;
    mark *m = &sp->marks[sp->n_marks];
    if (sp->n_marks == sp->n_events) {
        TRY("making an event", cudaEventCreate(&m->event));
        ++sp->n_events;
    }
    m->step = step;
    TRY("timing", cudaEventRecord(m->event, sp->stream));
    ++sp->n_marks;
    return GX_OK;
}

#define END(step)                                                                                                      \
    do {                                                                                                               \
        const gx_status st_ = end_step(sp, (step), err);                                                               \
        if (st_ != GX_OK)                                                                                              \
            return st_;                                                                                                \
    } while (0)

static gx_status launch_candidates(taat_space *sp, const gpu_prepared_index *s, const group *g, gx_error *err)
{
    const taat_group &G = g->G;
    const cudaStream_t stream = sp->stream;
    uint32_t most = 0, most_needed = 0;
    for (uint32_t i = 0; i < g->n; ++i) {
        most = most > sp->queries[i].n_scores ? most : sp->queries[i].n_scores;
        most_needed = most_needed > sp->queries[i].max_needed ? most_needed : sp->queries[i].max_needed;
    }
    END(GX_STEP_INITIALIZE);
    taat_decode(s->X, s->coding, G, 0, count_blocks(s->ix, most), stream);
    END(GX_STEP_DECOMPRESS);
    taat_begin(s->X, G, most, stream);
    END(GX_STEP_SCORE);
    for (uint32_t t = 1; t < g->deepest; ++t) {
        taat_find(G, t, true, g->levels, most, stream);
        taat_choose_blocks(G, t, most, stream);
        END(GX_STEP_INTERSECT);
        taat_decode_needed(s->X, s->coding, G, t, most_needed, stream);
        END(GX_STEP_DECOMPRESS);
        taat_find(G, t, false, g->levels, most, stream);
        taat_count_kept(G, t, most, stream);
        END(GX_STEP_INTERSECT);
        taat_score_kept(s->X, s->coding, G, t, most, stream);
        END(GX_STEP_SCORE);
    }
    taat_choose_best(G, most, stream);
    return GX_OK;
}

static gx_status launch_accumulators(taat_space *sp, const gpu_prepared_index *s, const group *g, gx_error *err)
{
    const taat_group &G = g->G;
    const cudaStream_t stream = sp->stream;
    for (uint32_t i = 0; i < g->n; ++i) {
        const taat_query *Q = &sp->queries[i];
        TRY("clearing accumulators", cudaMemsetAsync(Q->scores[0], 0, Q->n_scores * sizeof *Q->scores[0], stream));
        if (Q->holders)
            TRY("clearing accumulators", cudaMemsetAsync(Q->holders, 0, Q->n_scores * sizeof *Q->holders, stream));
    }
    END(GX_STEP_INITIALIZE);
    for (uint32_t t = 0; t < g->deepest; ++t) {
        uint32_t most = 0;
        for (uint32_t i = 0; i < g->n; ++i) {
            const taat_query *Q = &sp->queries[i];
            if (t < Q->n_terms && sp->terms[Q->first_term + t].list.df > most)
                most = sp->terms[Q->first_term + t].list.df;
        }
        taat_decode(s->X, s->coding, G, t, count_blocks(s->ix, most), stream);
        END(GX_STEP_DECOMPRESS);
        taat_accumulate(s->X, G, t, most, stream);
        END(GX_STEP_SCORE);
    }
    taat_choose_best(G, s->ix->n_docs, stream);
    return GX_OK;
}

/* Sorts all keys of the queries with k > EXTRACT_K. */
static gx_status sort_all(taat_space *sp, const group *g, gx_error *err)
{
    unsigned long long *const keys =
        g->G.answers + (g->n_answers + CUT_ALIGNMENT / 8 - 1) / (CUT_ALIGNMENT / 8) * (CUT_ALIGNMENT / 8);
    unsigned long long *const sorted =
        keys + (g->sort_n + CUT_ALIGNMENT / 8 - 1) / (CUT_ALIGNMENT / 8) * (CUT_ALIGNMENT / 8);
    for (uint32_t q = 0; q < g->n; ++q) {
        const taat_query *Q = &sp->queries[q];
        if (Q->k <= EXTRACT_K)
            continue;
        taat_gather(g->G, q, Q->n_scores, keys, sp->stream);
        TRY("sorting results",
            sort_keys(sp->sort_scratch.base, sp->sort_scratch.bytes, keys, sorted, Q->n_scores, sp->stream));
        taat_answer(g->G, q, Q->k, sorted, sp->stream);
    }
    return GX_OK;
}

static gx_status launch_group(taat_space *sp, const gpu_prepared_index *s, const group *g, gx_error *err)
{
    const cudaStream_t stream = sp->stream;
    sp->n_marks = 0;
    END(GX_STEP_INITIALIZE);
    TRY("copying queries",
        cudaMemcpyAsync(sp->d_queries, sp->queries, g->n * sizeof *sp->queries, cudaMemcpyHostToDevice, stream));
    TRY("copying queries",
        cudaMemcpyAsync(sp->d_terms, sp->terms, g->n_terms * sizeof *sp->terms, cudaMemcpyHostToDevice, stream));
    TRY("clearing counts", cudaMemsetAsync(sp->d_states, 0, g->n * sizeof *sp->states, stream));
    gx_status st = g->candidates ? launch_candidates(sp, s, g, err) : launch_accumulators(sp, s, g, err);
    if (st == GX_OK && g->sort_n)
        st = sort_all(sp, g, err);
    if (st != GX_OK)
        return st;
    END(GX_STEP_TOP_K);
    TRY("starting a search", cudaGetLastError());
    TRY("copying results",
        cudaMemcpyAsync(sp->answers, g->G.answers, g->n_answers * 8, cudaMemcpyDeviceToHost, stream));
    TRY("copying results",
        cudaMemcpyAsync(sp->states, sp->d_states, g->n * sizeof *sp->states, cudaMemcpyDeviceToHost, stream));
    TRY("timing", cudaEventRecord(sp->done, stream));
    sp->calls->parts += 1;
    return GX_OK;
}

static gx_status wait_for(taat_space *sp, const gx_plan *plan, gx_error *err)
{
    bool cancelled = false;
    TRY("searching", wait_for_event(sp->calls, sp->done, plan, &cancelled));
    return cancelled ? gx_fail(err, GX_ECANCELLED, "cancelled") : GX_OK;
}

static void add_work(const taat_space *sp, const group *g, gx_search_stats *work)
{
    for (uint32_t i = 1; i < sp->n_marks; ++i) {
        float ms = 0;
        if (cudaEventElapsedTime(&ms, sp->marks[i - 1].event, sp->marks[i].event) == cudaSuccess)
            work->steps[sp->marks[i].step] += 1e-3 * ms;
    }
    for (uint32_t i = 0; i < g->n; ++i) {
        work->blocks_decoded += sp->states[i].blocks;
        work->lookups += sp->states[i].lookups;
    }
}

struct taat_requests {
    taat_request *requests; /* [n] */
    uint32_t n;
};

/* Answers the requests. The AND-then-OR requests that AND does not answer are added to retries as
 * ORs. */
static gx_status run_requests(taat_space *sp, const gpu_prepared_index *s, const plan_batch *pb, taat_requests of,
                              taat_requests *retries, gx_error *err)
{
    const gx_plan *const plans = pb->plans;
    const taat_request *const requests = of.requests;
    const uint32_t n = of.n;
    gx_status st = GX_OK;
    group g;
    for (uint32_t at = 0; at < n && st == GX_OK; at += g.n) {
        const gx_plan *first = &plans[requests[at].plan];
        if (first->cancel && first->cancel(first->user))
            return gx_fail(err, GX_ECANCELLED, "cancelled");
        if ((st = fill_group(sp, s, plans, requests + at, n - at, &g, err)) != GX_OK)
            break;
        if ((st = launch_group(sp, s, &g, err)) == GX_OK)
            st = wait_for(sp, first, err);
        else
            (void)wait_for_stream(sp->calls, sp->stream); /* nothing may be in flight when this returns */
        for (uint32_t i = 0; i < g.n && st == GX_OK; ++i) {
            const taat_request j = requests[at + i];
            const taat_query *Q = &sp->queries[i];
            gx_hits *h = &pb->hits[j.plan];
            h->n = sp->states[i].n_hits < Q->k ? sp->states[i].n_hits : Q->k;
            memcpy(h->keys, sp->answers + Q->answer, (size_t)h->n * 8);
            if (j.op == GX_OP_AND && plans[j.plan].op == GX_OP_AND_OR && h->n < Q->k)
                retries->requests[retries->n++] = {j.plan, GX_OP_OR};
        }
        if (st == GX_OK && pb->work)
            add_work(sp, &g, pb->work);
    }
    return st;
}

gx_status taat_run(taat_space **space, const gpu_prepared_index *s, session_memory *m, const plan_batch *pb, uint32_t n,
                   gx_error *err)
{
    const gx_plan *const plans = pb->plans;
    gx_search_stats *const work = pb->work;
    gx_status st = GX_OK;
    uint32_t n_requests = 0;
    for (uint32_t i = 0; i < n; ++i)
        n_requests += is_ding2009(&plans[i]) && plans[i].n_terms;
    if (n_requests == 0)
        return GX_OK;
    if (!*space) {
        taat_space *sp = (taat_space *)calloc(1, sizeof *sp);
        if (!sp)
            return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
        sp->memory = m;
        sp->calls = m->calls;
        if ((st = open_space(sp, err)) != GX_OK) {
            taat_close(m, sp);
            return st;
        }
        *space = sp;
    }
    taat_request *requests = (taat_request *)malloc(2ull * n_requests * sizeof *requests);
    if (!requests)
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
    taat_requests retries = {requests + n_requests, 0}, none = {};
    n_requests = 0;
    for (int conjunctive = 1; conjunctive >= 0; --conjunctive) { /* requests of one kind together */
        for (uint32_t i = 0; i < n; ++i) {
            const gx_plan *plan = &plans[i];
            if (!is_ding2009(plan) || plan->n_terms == 0 || (plan->op != GX_OP_OR) != conjunctive)
                continue;
            requests[n_requests++] = {i, conjunctive ? GX_OP_AND : GX_OP_OR};
            for (uint32_t t = 0; work && t < plan->n_terms; ++t) {
                work->postings += plan->terms[t].df;
                work->blocks += count_blocks(s->ix, plan->terms[t].df);
            }
        }
    }
    st = run_requests(*space, s, pb, {requests, n_requests}, &retries, err);
    if (st == GX_OK)
        st = run_requests(*space, s, pb, retries, &none, err);
    if (st == GX_OK && work)
        work->and_fell_to_or += retries.n;
    free(requests);
    return st;
}

} // namespace gx
