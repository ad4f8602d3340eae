#include "query/gpu/payload.cuh"

extern "C" {
#include "engine/parallel.h"
#include "engine/text/c_locale.h"
}
#include "engine/clock.h"

namespace gx {

/* Copies to the pool get at most this much of PCIe, in bytes a second; the rest is left to searches. */
constexpr double COPY_RATE = 4e9, COPY_BURST = 32 << 20;
constexpr double LEAST_INTERVAL = 50e-6; /* seconds between two admissions */

/* ---- pinned memory ---- */

/* Host memory that the device reads. Engines on one index share it. */
struct pinned_range {
    pinned_range *next;
    const uint32_t *of;   /* the index's payload */
    const uint32_t *host; /* the same, or a copy */
    void *base;           /* what is pinned: the pages around it, or the copy */
    bool copied;
    uint32_t users;
};

static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static pinned_range *pinned_ranges;

static uint64_t payload_bytes(const gx_index *ix)
{
    return ix->payload_words * 4 + GX_READ_SLACK;
}

constexpr uintptr_t PAGE = 4096;

/* Pins the pages of the payload where they are, and returns the first one; NULL where that is refused. Kernels load
 * pieces of 16 bytes. */
static void *pin_in_place(const gx_index *ix)
{
    constexpr unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped;
    const uintptr_t at = (uintptr_t)ix->payload, begin = at / PAGE * PAGE,
                    end = (at + payload_bytes(ix) + PAGE - 1) / PAGE * PAGE;
    void *const base = (void *)begin;
    if (at % 16)
        return NULL;
    if (cudaHostRegister(base, end - begin, flags | cudaHostRegisterReadOnly) == cudaSuccess)
        return base;
    (void)cudaGetLastError();
    if (cudaHostRegister(base, end - begin, flags) == cudaSuccess)
        return base;
    (void)cudaGetLastError();
    return NULL;
}

constexpr uint64_t PIECE = 64 << 20;

struct host_copy {
    char *to;
    const char *from;
    uint64_t bytes;
};

static void copy_piece(void *user, uint32_t i)
{
    const host_copy *c = (const host_copy *)user;
    const uint64_t at = i * PIECE, n = c->bytes - at < PIECE ? c->bytes - at : PIECE;
    memcpy(c->to + at, c->from + at, n);
}

static gx_status pin_copy(const gx_index *ix, void **out, gx_error *err)
{
    const uint64_t bytes = payload_bytes(ix);
    *out = NULL;
    TRY("pinned memory for the lists", cudaHostAlloc(out, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    host_copy c = {(char *)*out, (const char *)ix->payload, bytes};
    gx_parallel_for(16, (uint32_t)((bytes + PIECE - 1) / PIECE), copy_piece, &c);
    return GX_OK;
}

/* Finds or makes the range of the index. The lock is held. */
static gx_status share_range(const gx_index *ix, pinned_range **out, gx_error *err)
{
    pinned_range *r = pinned_ranges;
    while (r && r->of != ix->payload)
        r = r->next;
    if (!r) {
        r = (pinned_range *)calloc(1, sizeof *r);
        if (!r)
            return gx_fail(err, GX_ENOMEM, "no memory for a GPU engine");
        r->of = ix->payload;
        r->base = pin_in_place(ix);
        r->copied = !r->base;
        const gx_status st = r->copied ? pin_copy(ix, &r->base, err) : GX_OK;
        if (st != GX_OK) {
            free(r);
            return st;
        }
        r->host = r->copied ? (const uint32_t *)r->base : ix->payload;
        r->next = pinned_ranges;
        pinned_ranges = r;
    }
    r->users += 1;
    *out = r;
    return GX_OK;
}

static void release_range(pinned_range *r)
{
    pthread_mutex_lock(&pinned_lock);
    if (--r->users == 0) {
        pinned_range **at = &pinned_ranges;
        while (*at != r)
            at = &(*at)->next;
        *at = r->next;
        (void)(r->copied ? cudaFreeHost(r->base) : cudaHostUnregister(r->base));
        free(r);
    }
    pthread_mutex_unlock(&pinned_lock);
}

gx_status payload_pin(payload_store *p, const gx_index *ix, const uint32_t **mapped, gx_error *err)
{
    void *at = NULL;
    pthread_mutex_lock(&pinned_lock);
    const gx_status st = share_range(ix, &p->pinned, err);
    pthread_mutex_unlock(&pinned_lock);
    if (st != GX_OK)
        return st;
    p->ix = ix;
    p->host = p->pinned->host;
    TRY("mapping the lists", cudaHostGetDevicePointer(&at, p->pinned->base, 0));
    *mapped = (const uint32_t *)((const char *)at + ((const char *)p->host - (const char *)p->pinned->base));
    return GX_OK;
}

/* ---- the pool ---- */

static uint64_t bytes_of_list(const void *ix, uint32_t list)
{
    return list_bytes((const gx_index *)ix, list);
}

uint64_t whole_pool_bytes(const gx_index *ix)
{
    return payload_bytes(ix) + (uint64_t)ix->n_terms * (GX_READ_SLACK + GX_RESIDENCY_UNIT);
}

gx_status payload_open_pool(payload_store *p, uint64_t bytes, gx_residency_policy policy, const uint32_t *mapped,
                            gx_error *err)
{
    const gx_residency_rule *const rule = policy == GX_RESIDENCY_STATIC ? NULL : &gx_residency_gdsf;
    const gx_residency_options opt = {rule, bytes, p->ix->n_terms, GX_READ_SLACK, 0, bytes_of_list, p->ix};
    TRY("memory for lists", cudaMalloc((void **)&p->pool, bytes));
    p->pool_bytes = bytes;
    p->pool_words = (uint64_t)(((intptr_t)p->pool - (intptr_t)mapped) / 4);
    TRY("making a stream", cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking));
    for (copy_batch &b : p->batches)
        TRY("making an event", cudaEventCreateWithFlags(&b.done, cudaEventDisableTiming));
    TRY("clearing memory", cudaMemsetAsync(p->pool, 0, bytes, p->stream)); /* slack is read, but means nothing */
    TRY("clearing memory", cudaStreamSynchronize(p->stream));
    pthread_mutex_init(&p->lock, NULL);
    TRY_STATUS(gx_residency_open(&p->cache, &opt, err));
    return policy == GX_RESIDENCY_STATIC ? payload_warm(p, NULL, err) : GX_OK;
}

void payload_close(payload_store *p)
{
    if (p->stream) {
        (void)cudaStreamSynchronize(p->stream);
        (void)cudaStreamDestroy(p->stream);
    }
    for (copy_batch &b : p->batches) {
        if (b.done)
            (void)cudaEventDestroy(b.done);
    }
    (void)cudaFree(p->pool);
    if (p->cache)
        pthread_mutex_destroy(&p->lock);
    gx_residency_close(p->cache);
    if (p->pinned)
        release_range(p->pinned);
    *p = {};
}

/* ---- copies ---- */

static gx_status start_copies(payload_store *p, copy_batch *b, gx_error *err)
{
    for (uint32_t i = 0; i < b->n; ++i) {
        const gx_residency_copy *c = &b->copies[i];
        TRY("copying a list", cudaMemcpyAsync(p->pool + c->at, p->host + first_word(&p->ix->lists[c->list]), c->bytes,
                                              cudaMemcpyHostToDevice, p->stream));
        p->allowance -= (double)c->bytes;
    }
    TRY("copying lists", cudaEventRecord(b->done, p->stream));
    b->busy = true;
    return GX_OK;
}

static void finish_copies(payload_store *p, copy_batch *b, bool complete)
{
    for (uint32_t i = 0; i < b->n; ++i)
        gx_residency_arrive(p->cache, &b->copies[i], complete);
    b->busy = false;
    b->n = 0;
    p->failed = p->failed || !complete;
}

/* Finishes the batches that are complete. Returns one that is idle, or NULL. */
static copy_batch *poll_copies(payload_store *p)
{
    copy_batch *idle = NULL;
    for (copy_batch &b : p->batches) {
        const cudaError_t e = b.busy ? cudaEventQuery(b.done) : cudaSuccess;
        if (b.busy && e != cudaErrorNotReady)
            finish_copies(p, &b, e == cudaSuccess);
        if (!b.busy)
            idle = &b;
    }
    return idle;
}

void payload_admit(payload_store *p, gx_residency_reader *reader)
{
    gx_error ignored;
    if (pthread_mutex_trylock(&p->lock) != 0)
        return;
    const double now = gx_clock_seconds(), since = now - p->last;
    if (since >= LEAST_INTERVAL && !p->failed) {
        p->last = now;
        p->allowance = p->allowance + since * COPY_RATE < COPY_BURST ? p->allowance + since * COPY_RATE : COPY_BURST;
        copy_batch *b = poll_copies(p);
        if (b && p->allowance > 0)
            b->n = gx_residency_admit(p->cache, reader, (uint64_t)p->allowance, b->copies, MAX_COPIES);
        if (b && b->n && start_copies(p, b, &ignored) != GX_OK)
            finish_copies(p, b, false);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Waits for all copies in flight. */
static gx_status wait_for_copies(payload_store *p, gx_error *err)
{
    const cudaError_t e = cudaStreamSynchronize(p->stream);
    for (copy_batch &b : p->batches) {
        if (b.busy)
            finish_copies(p, &b, e == cudaSuccess);
    }
    return gx_cuda_status(e, "copying lists", err);
}

gx_status payload_warm(payload_store *p, const uint32_t *counts, gx_error *err)
{
    pthread_mutex_lock(&p->lock);
    gx_status st = wait_for_copies(p, err);
    if (st == GX_OK)
        st = gx_residency_plan(p->cache, counts, err);
    for (uint32_t turn = 0; st == GX_OK; ++turn) {
        copy_batch *b = &p->batches[turn % N_COPY_BATCHES];
        if (b->busy && (st = wait_for_copies(p, err)) != GX_OK)
            break;
        b->n = gx_residency_next_planned(p->cache, b->copies, MAX_COPIES);
        if (b->n == 0)
            break;
        if ((st = start_copies(p, b, err)) != GX_OK)
            finish_copies(p, b, false);
    }
    if (st == GX_OK)
        st = wait_for_copies(p, err);
    p->allowance = 0;
    pthread_mutex_unlock(&p->lock);
    return st;
}

void payload_describe(const payload_store *p, char *out, size_t bytes)
{
    const double all = (double)payload_bytes(p->ix), share = 100 * (double)p->pool_bytes / all;
    gx_print(out, bytes, "room for %.3g %% of the payload, the rest %s", share < 100 ? share : 100,
             p->pinned->copied ? "copied to pinned host memory" : "in pinned host memory");
}

} // namespace gx
