/* A few short queries on the GPU: described by a kernel's parameters, searched for by one launch,
 * and answered into host memory, where the host sees the answer arrive. The kernel that answered a
 * query alone may stay for the session's next one, which it then reads from host memory: that
 * spares the launch, and its instructions are in the caches.
 */
#include "query/executors/gpu.cuh"

using namespace gx;

constexpr int UNSET = 0xff; /* each byte of what answers are before the device writes them */

/* ---- room ---- */

gx_status gx::open_few(gpu_exec *x, gx_error *err)
{
    const cudaStream_t stream = x->parts[0].stream;
    TRY("memory for a session", device_alloc(&x->few.d_states, FEW_QUERIES));
    TRY("memory for a session", device_alloc(&x->few.d_histograms, 2 * FEW_QUERIES * BINS));
    TRY("pinned memory", pinned_alloc(&x->few.mail, 1));
    TRY("memory for a session", device_alloc(&x->few.d_mail, MAIL_PIECES));
    memset(x->few.mail, 0, sizeof *x->few.mail);
    TRY("clearing memory", cudaMemsetAsync(x->few.d_mail, 0, MAIL_PIECES * sizeof *x->few.d_mail, stream));
    TRY("clearing memory", cudaMemsetAsync(x->few.d_states, 0, FEW_QUERIES * sizeof *x->few.d_states, stream));
    TRY("clearing memory",
        cudaMemsetAsync(x->few.d_histograms, 0, 2 * FEW_QUERIES * BINS * sizeof *x->few.d_histograms, stream));
    return GX_OK;
}

void gx::close_few(gpu_exec *x)
{
    const few_room *f = &x->few;
    send_away(x->s);
    if (x->parts[0].stream)
        (void)cudaStreamSynchronize(x->parts[0].stream);
    (void)cudaFree(f->d_states);
    (void)cudaFree(f->d_histograms);
    (void)cudaFreeHost(f->mail);
    (void)cudaFree(f->d_mail);
}

/* ---- queries ---- */

bool gx::are_few(const gx_plan *plans, const job *jobs, uint32_t n)
{
    for (uint32_t i = 0; i < n && n <= FEW_QUERIES; ++i) {
        const gx_plan *plan = &plans[jobs[i].plan];
        if (!plan->prune || plan->n_terms > NEAR_TERMS || plan->k > QUICK_K || jobs[i].roomy)
            return false;
    }
    return n <= FEW_QUERIES;
}

/* Of how many items each of a query's n_blocks blocks is made, where it has `room` blocks of
 * threads to itself: while warps are left over, they share a block and its look-ups, each some of
 * the lanes. To decode it once more takes less. */
static uint32_t count_shares(uint32_t n_blocks, uint32_t room)
{
    uint32_t shares = 1;
    while (shares < MAX_SHARES && (uint64_t)n_blocks * shares * 2 <= (uint64_t)room * SEARCH_WARPS)
        shares *= 2;
    return shares;
}

/* Describe jobs[n]. */
static gx_status fill_few(gpu_exec *x, part *p, const gx_plan *plans, const job *jobs, uint32_t n, few_batch *F,
                          gx_work *work, gx_error *err)
{
    const uint32_t room = x->s->few_grid > n ? x->s->few_grid / n : 1; /* a slice of a GPU may have little */
    uint32_t drivers[FEW_QUERIES], most = 0;
    empty_part(p, FEW_QUERIES, FEW_QUERIES * NEAR_TERMS);
    for (uint32_t i = 0; i < n; ++i) {
        const gx_plan *plan = &plans[jobs[i].plan];
        placed *pl = &p->jobs[p->n_jobs++];
        *pl = {jobs[i], 0, NO_QUERY};
        gpu_query *Q = &p->queries[i];
        const gpu_term *terms = &p->terms[p->n_terms];
        const gx_status st =
            add_query(x, p, plan, &jobs[i], jobs[i].op != GX_OP_OR, NO_QUERY, drivers, &pl->first, err);
        if (st != GX_OK)
            return st;
        Q->first_term = 0;
        for (uint32_t t = 0; t < drivers[i]; ++t)
            Q->n_items += terms[t].at.n_blocks;
        Q->shares = count_shares(Q->n_items, room);
        Q->n_items *= Q->shares;
        most = most > Q->n_items ? most : Q->n_items;
        F->of[i].query = *Q;
        memcpy(F->of[i].terms, terms, plan->n_terms * sizeof *terms);
        memset(&p->results[i], UNSET, sizeof p->results[i]);
        memset(&p->answers[Q->answer], UNSET, Q->k * sizeof *p->answers);
        count_lists(x, plan, work);
    }
    const uint32_t blocks = most > SEARCH_WARPS ? (most + SEARCH_WARPS - 1) / SEARCH_WARPS : 1;
    for (uint32_t i = 0; i < n; ++i)
        F->of[i].blocks = blocks < room ? blocks : room;
    return GX_OK;
}

/* Whether the answer to query q of a few is there, all of it: no word that the device writes has
 * every bit set. */
static bool is_there(const part *p, uint32_t q)
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

/* Whether the kernel that was to wait for the last message has left without it. */
static bool has_left(const gpu_exec *x)
{
    return __atomic_load_n(&x->few.mail->left, __ATOMIC_ACQUIRE) == x->few.message;
}

/* Until the answers to a few queries are there, which is sooner than the stream has come to its
 * end; that is asked only of failures. Or, if the query was sent to a kernel that stays, until
 * *missed: it has left without it. */
static gx_status wait_for_few(gpu_exec *x, const part *p, const gx_plan *plan, bool sent, bool *missed, bool *cancelled,
                              gx_error *err)
{
    bool ended = false;
    *missed = false;
    for (uint32_t q = 0, turn = 1;; ++turn) {
        while (q < p->n_queries && is_there(p, q))
            ++q;
        if (q == p->n_queries)
            return GX_OK;
        if (sent && has_left(x)) {
            *missed = true;
            return GX_OK;
        }
        if (ended)
            return gx_fail(err, GX_ECUDA, "GPU: a search ended without an answer");
        if (turn % 4096 == 0) {
            const cudaError_t e = cudaStreamQuery(p->stream);
            if (e != cudaErrorNotReady)
                TRY("searching", e);
            ended = e == cudaSuccess; /* what it has written is there */
            *cancelled = *cancelled || (plan->cancel && plan->cancel(plan->user));
        }
    }
}

/* The query to the kernel that stays, if it is still there. */
static bool send_query(gpu_exec *x, const few_query *Q)
{
    uint32_t words[2 * MAIL_PIECES - 2] = {0};
    x->few.message += 1;
    if (!x->few.waits || has_left(x))
        return false;
    memcpy(words, Q, sizeof *Q);
    for (uint32_t i = 0; i < 2 * MAIL_PIECES - 2; ++i)
        __atomic_store_n((uint64_t *)&x->few.mail->words[i], words[i] | (uint64_t)x->few.message << 32,
                         __ATOMIC_RELEASE);
    return true;
}

/* Start the search for n queries. A kernel for one stays if nobody else seems to need the GPU. */
static gx_status start_few(gpu_exec *x, const part *p, const few_batch &F, uint32_t n, bool may_stay, gx_error *err)
{
    gpu_state *s = x->s;
    const gpu_batch R = {NULL,
                         NULL,
                         NULL,
                         0,
                         NULL,
                         x->few.d_states,
                         x->few.d_histograms,
                         x->few.d_histograms + FEW_QUERIES * BINS,
                         p->d_candidates,
                         (unsigned long long *)p->answers,
                         p->results,
                         NULL};
    const few_stay S = {x->few.mail, x->few.d_mail, x->few.message, may_stay ? s->patience : 0};
    x->few.waits = false;
    if (S.patience) {
        let_stay(s, x->few.mail);
        search_few(s->X, s->coding, R, F, n, S, s->few_grid, p->stream);
        x->few.waits = cudaGetLastError() == cudaSuccess;
        if (x->few.waits)
            return GX_OK;
    } /* all of a kernel cannot be there at once now: it need not stay */
    send_away(s);
    search_few(s->X, s->coding, R, F, n, {S.mail, S.copy, S.number, 0}, F.of[0].blocks, p->stream);
    TRY("starting a search", cudaGetLastError());
    return GX_OK;
}

/* Search for n queries; their answers are there when this returns. */
static gx_status search_described(gpu_exec *x, const part *p, const few_batch &F, uint32_t n, const gx_plan *plan,
                                  bool *cancelled, gx_error *err)
{
    bool missed;
    do {
        const bool wanted = __atomic_load_n(&x->s->running, __ATOMIC_SEQ_CST) != 1; /* by somebody else */
        const bool may_stay = n == 1 && x->was_last && !wanted;
        const bool sent = n == 1 && send_query(x, &F.of[0]);
        gx_status st = GX_OK;
        missed = false;
        if (!sent)
            st = start_few(x, p, F, n, may_stay, err);
        if (__atomic_load_n(&x->s->running, __ATOMIC_SEQ_CST) != 1)
            send_away(x->s); /* once the query is answered */
        x->calls.stayed += sent;
        if (st == GX_OK)
            st = wait_for_few(x, p, plan, sent, &missed, cancelled, err);
        if (st != GX_OK) {
            x->few.waits = false;
            return st;
        }
        x->few.waits = x->few.waits && !missed;
        x->calls.stayed -= missed;
    } while (missed);
    return GX_OK;
}

/* A few short queries: one launch, nothing copied; or none, if the last one's kernel has stayed.
 * AND that falls to OR is run again. */
gx_status gx::run_few(gpu_exec *x, const gx_plan *plans, const job *jobs, uint32_t n, gx_hits *hits, gx_work *work,
                      gx_error *err)
{
    part *p = &x->parts[0];
    const gx_plan *plan = &plans[jobs[0].plan];
    bool cancelled = plan->cancel && plan->cancel(plan->user);
    few_batch F;
    if (cancelled)
        return gx_fail(err, GX_ECANCELLED, "cancelled");
    gx_status st = fill_few(x, p, plans, jobs, n, &F, work, err);
    if (st == GX_OK)
        st = search_described(x, p, F, n, plan, &cancelled, err);
    if (st != GX_OK)
        return st;
    x->calls.parts += 1;
    x->calls.waits += 1;
    if (cancelled)
        return gx_fail(err, GX_ECANCELLED, "cancelled");
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        const bool falls = jobs[i].op == GX_OP_AND_OR && p->results[i].count < p->queries[i].k;
        st = falls ? push_again(x, {jobs[i].plan, GX_OP_OR, false, 0}, err)
                   : collect_query(x, p, &p->jobs[i], i, jobs[i].op == GX_OP_OR ? GX_OP_OR : GX_OP_AND, hits, err);
        if (work)
            work->and_fell_to_or += falls;
    }
    return st;
}
