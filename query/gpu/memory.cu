#include "query/gpu/memory.cuh"

namespace gx {

uint64_t budget_left(const memory_budget *b)
{
    const uint64_t used = __atomic_load_n(&b->used, __ATOMIC_RELAXED);
    return used < b->limit ? b->limit - used : 0;
}

gx_status budget_take(memory_budget *b, const char *what, uint64_t bytes, gx_error *err)
{
    uint64_t used = __atomic_load_n(&b->used, __ATOMIC_RELAXED);
    do {
        if (used > b->limit || bytes > b->limit - used)
            return gx_fail(err, GX_ECUDA,
                           "GPU: %s needs %.1f MiB more of its memory, and of the %.1f MiB that the index and all "
                           "sessions may use %.1f MiB are left; allow more, open fewer sessions, or use the CPU engine",
                           what, (double)bytes / 1048576, (double)b->limit / 1048576, (double)budget_left(b) / 1048576);
    } while (!__atomic_compare_exchange_n(&b->used, &used, used + bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return GX_OK;
}

void budget_give(memory_budget *b, uint64_t bytes)
{
    __atomic_fetch_sub(&b->used, bytes, __ATOMIC_RELAXED);
}

gx_status session_alloc(session_memory *m, void **out, uint64_t bytes, gx_error *err)
{
    *out = NULL;
    TRY_STATUS(budget_take(m->budget, "a session", bytes, err));
    m->calls->allocations += 1;
    const gx_status st = gx_cuda_status(cudaMalloc(out, bytes), "memory for a session", err);
    if (st != GX_OK) {
        *out = NULL;
        budget_give(m->budget, bytes);
        return st;
    }
    m->device += bytes;
    return GX_OK;
}

gx_status session_alloc_pinned(session_memory *m, void **out, uint64_t bytes, gx_error *err)
{
    *out = NULL;
    m->calls->allocations += 1;
    const gx_status st = gx_cuda_status(cudaHostAlloc(out, bytes, cudaHostAllocMapped), "pinned memory", err);
    if (st != GX_OK) {
        *out = NULL;
        return st;
    }
    m->pinned += bytes;
    return GX_OK;
}

void session_free(session_memory *m, void **p, uint64_t bytes)
{
    if (!*p)
        return;
    m->calls->allocations += 1;
    (void)cudaFree(*p);
    budget_give(m->budget, bytes);
    m->device -= bytes;
    *p = NULL;
}

void session_free_pinned(session_memory *m, void **p, uint64_t bytes)
{
    if (!*p)
        return;
    m->calls->allocations += 1;
    (void)cudaFreeHost(*p);
    m->pinned -= bytes;
    *p = NULL;
}

gx_status grow_device(session_memory *m, growing_memory *g, uint64_t least, uint64_t wanted, gx_error *err)
{
    const uint64_t most = g->bytes + budget_left(m->budget);
    uint64_t bytes = wanted < most ? wanted : most;
    if (bytes < least)
        bytes = least; /* session_alloc says that there is not so much */
    if (bytes <= g->bytes || (least <= g->bytes && bytes < g->bytes + LEAST_GROWTH))
        return GX_OK;
    const uint64_t before = g->bytes;
    session_free(m, (void **)&g->base, before);
    g->bytes = 0;
    gx_error first;
    gx_status st = session_alloc(m, (void **)&g->base, bytes, &first);
    if (st == GX_OK) {
        g->bytes = bytes;
        return GX_OK;
    }
    if (before && session_alloc(m, (void **)&g->base, before, NULL) == GX_OK) /* as it was */
        g->bytes = before;
    return least <= g->bytes ? GX_OK : gx_fail(err, st, "%s", first.text);
}

gx_status grow_pinned(session_memory *m, growing_memory *g, uint64_t wanted, gx_error *err)
{
    if (wanted <= g->bytes)
        return GX_OK;
    session_free_pinned(m, (void **)&g->base, g->bytes);
    g->bytes = 0;
    TRY_STATUS(session_alloc_pinned(m, (void **)&g->base, wanted, err));
    g->bytes = wanted;
    return GX_OK;
}

} // namespace gx
