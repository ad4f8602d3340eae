#include "query/gpu/positions.cuh"
#include "query/gpu/state.cuh"

extern "C" {
#include "index/positions.h"
}

namespace gx {

/* Copies a part of the positions to new memory of the budget. A NULL `from` has no bytes. */
static gx_status copy_part(gpu_prepared_index *s, const void *from, uint64_t bytes, const void **to, gx_error *err)
{
    void *memory = NULL;
    *to = NULL;
    if (!from)
        return GX_OK;
    TRY_STATUS(budget_take(&s->budget, "the positions of words", bytes, err));
    const cudaError_t e = cudaMalloc(&memory, bytes ? bytes : 1);
    if (e != cudaSuccess) {
        budget_give(&s->budget, bytes);
        return gx_cuda_status(e, "memory for positions", err);
    }
    s->positions.bytes += bytes;
    *to = memory;
    return gx_device_upload(s->device, memory, from, bytes, err);
}

static gx_status copy_positions(gpu_prepared_index *s, gx_error *err)
{
    const gx_index *ix = s->ix;
    gpu_positions *p = &s->positions.of;
    const void *words, *ends, *titles;
    TRY("choosing it", cudaSetDevice(s->device));
    stop_lingering(s);
    TRY_STATUS(copy_part(s, ix->positions, ix->position_words * 4 + GX_READ_SLACK, &words, err));
    p->words = (const uint32_t *)words;
    TRY_STATUS(copy_part(s, ix->position_ends, (ix->n_blocks + ix->n_position_wraps) * 4, &ends, err));
    p->ends = (const uint32_t *)ends;
    TRY_STATUS(copy_part(s, ix->title_positions, (uint64_t)ix->n_docs * ix->title_position_width, &titles, err));
    p->titles = (const uint8_t *)titles;
    p->wraps = p->ends + ix->n_blocks;
    p->n_words = ix->position_words;
    p->n_wraps = ix->n_position_wraps;
    p->title_width = ix->title_position_width;
    return GX_OK;
}

static void free_positions(gpu_prepared_index *s)
{
    device_positions *p = &s->positions;
    (void)cudaFree((void *)p->of.words);
    (void)cudaFree((void *)p->of.ends);
    (void)cudaFree((void *)p->of.titles);
    (void)cudaGetLastError();
    budget_give(&s->budget, p->bytes);
    p->bytes = 0;
    p->of = {};
}

bool make_positions(gpu_prepared_index *s)
{
    device_positions *p = &s->positions;
    gx_error ignored;
    if (__atomic_load_n(&p->ready, __ATOMIC_ACQUIRE))
        return true;
    if (!s->ix->positions || __atomic_load_n(&p->failed, __ATOMIC_RELAXED))
        return false;
    pthread_mutex_lock(&s->lock);
    if (!p->ready && !p->failed) {
        const bool copied = copy_positions(s, &ignored) == GX_OK;
        if (!copied)
            free_positions(s);
        __atomic_store_n(copied ? &p->ready : &p->failed, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&s->lock);
    return p->ready;
}

void close_positions(gpu_prepared_index *s)
{
    free_positions(s);
}

} // namespace gx
