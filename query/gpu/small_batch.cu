#include "query/gpu/small_batch.cuh"

namespace gx {

constexpr uint32_t SMALL_BATCH_CANDIDATES = max_candidates(SMALL_K, false);
constexpr int UNSET = 0xff; /* value of each byte of an answer before the GPU writes it */

/* ---- room ---- */

static uint64_t count_candidates(const gx_index *ix)
{
    return MEDIUM_BATCH * (uint64_t)(ix->n_docs < SMALL_BATCH_CANDIDATES ? ix->n_docs : SMALL_BATCH_CANDIDATES);
}

bool small_batches_suit(const small_batch_space *b, const gx_index *ix)
{
    return b->candidate_room == count_candidates(ix);
}

bool small_batches_end(small_batch_space *b)
{
    b->lingers = false;
    return cudaStreamSynchronize(b->p.stream) == cudaSuccess;
}

gx_status open_small_batches(gpu_session *x, small_batch_space *b, gx_error *err)
{
    sub_batch *p = &b->p;
    session_memory *m = &x->memory;
    b->candidate_room = count_candidates(x->s->ix);
    p->requests = (described_request *)malloc(MEDIUM_BATCH * sizeof *p->requests);
    p->queries = (gpu_query *)malloc(MEDIUM_BATCH * sizeof *p->queries);
    p->terms = (gpu_term *)malloc(MEDIUM_BATCH * SHORT_QUERY_TERMS * sizeof *p->terms);
    if (!p->requests || !p->queries || !p->terms)
        return gx_fail(err, GX_ENOMEM, "no memory for a GPU session");
    TRY("making a stream", cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    TRY_STATUS(session_alloc_array(m, &p->d_candidates, b->candidate_room, err));
    TRY_STATUS(session_alloc_array(m, &b->d_states, MEDIUM_BATCH, err));
    TRY_STATUS(session_alloc_array(m, &b->d_histograms, 2 * MEDIUM_BATCH * BINS, err));
    TRY_STATUS(session_alloc_array(m, &b->d_slot, SLOT_PIECES, err));
    TRY_STATUS(session_alloc_pinned_array(m, &p->results, MEDIUM_BATCH, err));
    TRY_STATUS(session_alloc_pinned_array(m, &p->answers, MEDIUM_BATCH * SMALL_K, err));
    TRY_STATUS(session_alloc_pinned_array(m, &b->slot, 1, err));
    TRY_STATUS(session_alloc_pinned_array(m, &b->medium, 1, err));
    TRY_STATUS(session_alloc_array(m, &b->d_medium, 1, err));
    memset(b->slot, 0, sizeof *b->slot);
    TRY("clearing memory", cudaMemsetAsync(b->d_slot, 0, SLOT_PIECES * sizeof *b->d_slot, p->stream));
    TRY("clearing memory", cudaMemsetAsync(b->d_states, 0, MEDIUM_BATCH * sizeof *b->d_states, p->stream));
    TRY("clearing memory",
        cudaMemsetAsync(b->d_histograms, 0, 2 * MEDIUM_BATCH * BINS * sizeof *b->d_histograms, p->stream));
    return GX_OK;
}

void close_small_batches(gpu_session *x, small_batch_space *b)
{
    sub_batch *p = &b->p;
    session_memory *m = &x->memory;
    if (x->s)
        stop_lingering(x->s);
    if (p->stream) {
        (void)cudaStreamSynchronize(p->stream);
        (void)cudaStreamDestroy(p->stream);
    }
    session_free_array(m, &p->d_candidates, b->candidate_room);
    session_free_array(m, &b->d_states, MEDIUM_BATCH);
    session_free_array(m, &b->d_histograms, 2 * MEDIUM_BATCH * BINS);
    session_free_array(m, &b->d_slot, SLOT_PIECES);
    session_free_pinned_array(m, &p->results, MEDIUM_BATCH);
    session_free_pinned_array(m, &p->answers, MEDIUM_BATCH * SMALL_K);
    session_free_pinned_array(m, &b->slot, 1);
    session_free_pinned_array(m, &b->medium, 1);
    session_free_array(m, &b->d_medium, 1);
    free(p->requests);
    free(p->queries);
    free(p->terms);
}

/* ---- queries ---- */

/* Returns the room for terms that a plan's query takes. */
static uint32_t plan_room(gpu_session *x, const gx_plan *plan)
{
    filter_tests tests;
    const bool tested = plan->filter && make_tests(&x->s->columns, plan->filter, &tests);
    return count_room(plan->n_terms, tested ? tests.n << QUERY_TESTS : 0);
}

bool is_small_batch(gpu_session *x, const gx_plan *plans, const request *requests, uint32_t n)
{
    for (uint32_t i = 0; i < n && n <= MEDIUM_BATCH; ++i) {
        const gx_plan *plan = &plans[requests[i].plan];
        if (!plan->prune || plan->program || plan->k > SMALL_K || requests[i].candidates ||
            plan_room(x, plan) > SHORT_QUERY_TERMS || (requests[i].tiled && requests[i].op != GX_OP_AND))
            return false;
    }
    return n <= MEDIUM_BATCH;
}

/* Returns into how many items each of a query's n_blocks blocks is divided, if the query has
 * `room` thread blocks. While there are idle warps, several of them share a block and its
 * look-ups, each with some of the lanes. Decoding the block several times costs less than the
 * look-ups by one warp. */
static uint32_t count_shares(uint32_t n_blocks, uint32_t room)
{
    uint32_t shares = 1;
    while (shares < MAX_SHARES && (uint64_t)n_blocks * shares * 2 <= (uint64_t)room * SEARCH_WARPS)
        shares *= 2;
    return shares;
}

/* Describes request i of the batch, as items of whole blocks. Its thread blocks are not chosen yet. */
static gx_status describe_short_query(gpu_session *x, sub_batch *p, const plan_batch *pb, const request *rq, uint32_t i,
                                      small_query *to, gx_error *err)
{
    const gx_plan *plan = &pb->plans[rq->plan];
    described_request *dr = &p->requests[p->n_requests++];
    *dr = {*rq, 0, NO_QUERY};
    gpu_query *Q = &p->queries[i];
    const gpu_term *terms = &p->terms[p->n_terms];
    const query_form form = {plan, rq, rq->op != GX_OP_OR, NO_QUERY};
    TRY_STATUS(add_query(x, p, form, &dr->first, err));
    Q->first_term = 0;
    for (uint32_t t = 0; t < p->n_essential[i]; ++t)
        Q->n_items += terms[t].at.n_blocks;
    memcpy(to->terms, terms, count_room(Q->n_terms, Q->flags) * sizeof *terms);
    memset(&p->results[i], UNSET, sizeof p->results[i]);
    memset(&p->answers[Q->answer], UNSET, Q->k * sizeof *p->answers);
    add_list_stats(x, plan, pb->work);
    return GX_OK;
}

/* Divides the query's blocks into items for `room` thread blocks. */
static void divide_blocks(gpu_query *Q, uint32_t room, small_query *to)
{
    Q->shares = count_shares(Q->n_items, room);
    Q->n_items *= Q->shares;
    to->query = *Q;
}

/* Describes requests[n]. */
static gx_status describe_small_batch(gpu_session *x, sub_batch *p, const plan_batch *pb, const request *requests,
                                      uint32_t n, small_batch *F, gx_error *err)
{
    /* a MIG slice may have room for few blocks */
    const uint32_t room = x->s->small_grid > n ? x->s->small_grid / n : 1;
    uint32_t most = 0;
    begin_description(p);
    for (uint32_t i = 0; i < n; ++i) {
        gpu_query *Q = &p->queries[i];
        TRY_STATUS(describe_short_query(x, p, pb, &requests[i], i, &F->of[i], err));
        divide_blocks(Q, room, &F->of[i]);
        most = most > Q->n_items ? most : Q->n_items;
    }
    const uint32_t blocks = most > SEARCH_WARPS ? (most + SEARCH_WARPS - 1) / SEARCH_WARPS : 1;
    for (uint32_t i = 0; i < n; ++i)
        F->of[i].blocks = blocks < room ? blocks : room;
    return GX_OK;
}

/* Describes requests[n] as a medium batch. Sets *n_blocks to the thread blocks that it takes: about
 * twice as many as fill the device, half of them for all queries alike and half by the blocks of
 * their lists. With as many as fill it, or with all by the lists' blocks, a batch of 16 took longer
 * (query/MEASURED.md). */
static gx_status describe_medium_batch(gpu_session *x, small_batch_space *b, const plan_batch *pb,
                                       const request *requests, uint32_t n, uint32_t *n_blocks, gx_error *err)
{
    sub_batch *p = &b->p;
    medium_batch *M = b->medium;
    const uint32_t all = x->s->small_grid < MAX_MEDIUM_BLOCKS / 2 ? x->s->small_grid : MAX_MEDIUM_BLOCKS / 2;
    uint64_t items = 1;
    begin_description(p);
    for (uint32_t i = 0; i < n; ++i) {
        TRY_STATUS(describe_short_query(x, p, pb, &requests[i], i, &M->of[i], err));
        items += p->queries[i].n_items;
    }
    *n_blocks = 0;
    for (uint32_t i = 0; i < n; ++i) {
        gpu_query *Q = &p->queries[i];
        const uint64_t most = Q->n_items / SEARCH_WARPS + 1, left = MAX_MEDIUM_BLOCKS - *n_blocks - (n - i - 1);
        uint64_t blocks = all / n + all * (uint64_t)Q->n_items / items;
        blocks = blocks < most ? blocks : most;
        blocks = blocks < left ? blocks : left;
        blocks = blocks ? blocks : 1;
        divide_blocks(Q, (uint32_t)blocks, &M->of[i]);
        M->of[i].first = *n_blocks;
        M->of[i].blocks = (uint32_t)blocks;
        memset(M->query_of + *n_blocks, (int)i, blocks);
        *n_blocks += (uint32_t)blocks;
    }
    return GX_OK;
}

/* Returns whether the whole answer to query q has arrived. No word that the GPU writes has all
 * bits set. */
static bool is_answered(const sub_batch *p, uint32_t q)
{
    const uint32_t *result = (const uint32_t *)&p->results[q];
    const uint64_t *keys = p->answers + p->queries[q].answer;
    bool there = true;
    for (uint32_t i = 0; i < sizeof p->results[q] / sizeof *result; ++i)
        there = there && __atomic_load_n(&result[i], __ATOMIC_ACQUIRE) != UINT32_MAX;
    for (uint32_t i = 0; i < p->queries[q].k && there; ++i)
        there = __atomic_load_n(&keys[i], __ATOMIC_ACQUIRE) != UINT64_MAX;
    return there;
}

/* Returns whether the kernel ended before it received the last message. */
static bool has_ended(const small_batch_space *b)
{
    return __atomic_load_n(&b->slot->ended_message, __ATOMIC_ACQUIRE) == b->message;
}

/* Polls until all answers have arrived, which is earlier than the end of the stream. The stream is
 * queried only to find failures. If the query was sent to a lingering kernel that ended without
 * it, returns with *missed. */
static gx_status wait_for_answers(const small_batch_space *b, const gx_plan *plan, bool sent, bool *missed,
                                  bool *cancelled, gx_error *err)
{
    const sub_batch *p = &b->p;
    bool ended = false;
    *missed = false;
    for (uint32_t q = 0, turn = 1;; ++turn) {
        while (q < p->n_queries && is_answered(p, q))
            ++q;
        if (q == p->n_queries)
            return GX_OK;
        if (sent && has_ended(b)) {
            *missed = true;
            return GX_OK;
        }
        if (ended)
            return gx_fail(err, GX_ECUDA, "GPU: a search ended without an answer");
        if (turn % 4096 == 0) {
            const cudaError_t e = cudaStreamQuery(p->stream);
            if (e != cudaErrorNotReady)
                TRY("searching", e);
            ended = e == cudaSuccess; /* the kernel's writes are visible now */
            *cancelled = *cancelled || (plan->cancel && plan->cancel(plan->user));
        }
    }
}

/* Sends the query to the lingering kernel. Returns false if it has ended. */
static bool send_query(small_batch_space *b, const small_query *Q)
{
    uint32_t words[2 * SLOT_PIECES - 2] = {0};
    b->message += 1;
    if (!b->lingers || has_ended(b))
        return false;
    memcpy(words, Q, sizeof *Q);
    for (uint32_t i = 0; i < 2 * SLOT_PIECES - 2; ++i)
        __atomic_store_n((uint64_t *)&b->slot->words[i], words[i] | (uint64_t)b->message << 32, __ATOMIC_RELEASE);
    return true;
}

static gpu_batch batch_of(const small_batch_space *b)
{
    const sub_batch *p = &b->p;
    return {NULL,
            NULL,
            NULL,
            0,
            NULL,
            b->d_states,
            b->d_histograms,
            b->d_histograms + MEDIUM_BATCH * BINS,
            p->d_candidates,
            (unsigned long long *)p->answers,
            p->results,
            NULL};
}

/* Launches the search for n queries. With may_linger the kernel of a single query lingers. */
static gx_status start_search(gpu_session *x, small_batch_space *b, const small_batch &F, uint32_t n, bool may_linger,
                              gx_error *err)
{
    gpu_prepared_index *s = x->s;
    const sub_batch *p = &b->p;
    const gpu_batch R = batch_of(b);
    const linger_params S = {b->slot, b->d_slot, b->message, may_linger ? s->linger_ns : 0};
    b->lingers = false;
    if (S.linger_ns) {
        register_lingering(s, b->slot);
        search_small_batch(s->X, s->coding, R, F, n, S, s->small_grid, p->stream);
        b->lingers = cudaGetLastError() == cudaSuccess;
        if (b->lingers)
            return GX_OK;
    } /* not all thread blocks can be resident now, so the kernel must not linger */
    stop_lingering(s);
    search_small_batch(s->X, s->coding, R, F, n, {S.slot, S.copy, S.number, 0}, F.of[0].blocks, p->stream);
    TRY("starting a search", cudaGetLastError());
    return GX_OK;
}

/* Searches for n queries. Their answers have arrived when this returns. */
static gx_status search_described(gpu_session *x, small_batch_space *b, const small_batch &F, uint32_t n,
                                  const gx_plan *plan, bool *cancelled, gx_error *err)
{
    bool missed;
    do {
        const bool wanted = __atomic_load_n(&x->s->running, __ATOMIC_SEQ_CST) != 1; /* by another session */
        const bool may_linger = n == 1 && x->was_last && !wanted;
        const bool sent = n == 1 && send_query(b, &F.of[0]);
        gx_status st = GX_OK;
        missed = false;
        if (!sent)
            st = start_search(x, b, F, n, may_linger, err);
        if (__atomic_load_n(&x->s->running, __ATOMIC_SEQ_CST) != 1)
            stop_lingering(x->s); /* after it has answered this query */
        x->calls.linger_hits += sent;
        if (st == GX_OK)
            st = wait_for_answers(b, plan, sent, &missed, cancelled, err);
        if (st != GX_OK) {
            b->lingers = false;
            return st;
        }
        b->lingers = b->lingers && !missed;
        x->calls.linger_hits -= missed;
    } while (missed);
    return GX_OK;
}

/* Searches for the queries of a medium batch. Their answers have arrived when this returns. */
static gx_status search_medium_described(gpu_session *x, small_batch_space *b, uint32_t n_blocks, const gx_plan *plan,
                                         bool *cancelled, gx_error *err)
{
    gpu_prepared_index *s = x->s;
    bool missed;
    b->lingers = false;
    stop_lingering(s);
    TRY("copying queries", cudaMemcpyAsync(b->d_medium, b->medium, offsetof(medium_batch, query_of) + n_blocks,
                                           cudaMemcpyHostToDevice, b->p.stream));
    search_medium_batch(s->X, s->coding, batch_of(b), b->d_medium, n_blocks, b->p.stream);
    TRY("starting a search", cudaGetLastError());
    return wait_for_answers(b, plan, false, &missed, cancelled, err);
}

gx_status run_small_batch(gpu_session *x, small_batch_space *b, const plan_batch *pb, const request *requests,
                          uint32_t n, gx_error *err)
{
    sub_batch *p = &b->p;
    const gx_plan *plan = &pb->plans[requests[0].plan];
    bool cancelled = plan->cancel && plan->cancel(plan->user);
    if (cancelled)
        return gx_fail(err, GX_ECANCELLED, "cancelled");
    if (n <= SMALL_BATCH) {
        small_batch F;
        TRY_STATUS(describe_small_batch(x, p, pb, requests, n, &F, err));
        TRY_STATUS(search_described(x, b, F, n, plan, &cancelled, err));
    } else {
        uint32_t n_blocks;
        TRY_STATUS(describe_medium_batch(x, b, pb, requests, n, &n_blocks, err));
        TRY_STATUS(search_medium_described(x, b, n_blocks, plan, &cancelled, err));
    }
    x->calls.parts += 1;
    x->calls.waits += 1;
    if (cancelled)
        return gx_fail(err, GX_ECANCELLED, "cancelled");
    for (uint32_t i = 0; i < n; ++i) {
        const bool falls = requests[i].op == GX_OP_AND_OR && p->results[i].count < p->queries[i].k;
        if (pb->work)
            pb->work->and_fell_to_or += falls;
        if (falls)
            TRY_STATUS(push_retry(x, {requests[i].plan, GX_OP_OR, 0, 0, false, false, 0}, err));
        else
            TRY_STATUS(collect_query(x, p, &p->requests[i], i, requests[i].op == GX_OP_OR ? GX_OP_OR : GX_OP_AND,
                                     pb->hits, err));
    }
    return GX_OK;
}

} // namespace gx
