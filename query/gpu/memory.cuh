/* memory.cuh: the memory of a GPU's sessions: the budget of an engine, the allocations of a
 * session, and the division of a region into arrays.
 *
 * A session begins with SESSION_FIRST_BYTES of device memory. It grows with its batches up to
 * SESSION_DEVICE_BYTES of device memory and SESSION_PINNED_BYTES of pinned host memory. A batch
 * that needs more goes as several sub-batches. The session grows further only for a single query
 * that needs more than that: for a large k (24 bytes a result above SORTED_K), for documents that
 * tie with its k-th (8 bytes each), or for an exhaustive search (8 bytes a matching document). */
#ifndef GX_QUERY_GPU_MEMORY_CUH
#define GX_QUERY_GPU_MEMORY_CUH

#include "engine/cuda.cuh"

namespace gx {

/* Together under 100 MB (1e8 bytes). A batch of 1,024 queries with k = 1,000 fits as one
 * sub-batch. */
constexpr uint64_t SESSION_DEVICE_BYTES = 84u << 20, SESSION_PINNED_BYTES = 10u << 20;
constexpr uint64_t SESSION_FIRST_BYTES = 2u << 20, SESSION_FIRST_PINNED_BYTES = 1u << 20;

/* Return the status of a CUDA call if it failed. For functions with a parameter err. */
#define TRY(what, call)                                                                                                \
    do {                                                                                                               \
        const gx_status st_ = gx_cuda_status((call), (what), err);                                                     \
        if (st_ != GX_OK)                                                                                              \
            return st_;                                                                                                \
    } while (0)

/* The same for a call that returns gx_status. */
#define TRY_STATUS(call)                                                                                               \
    do {                                                                                                               \
        const gx_status st_ = (call);                                                                                  \
        if (st_ != GX_OK)                                                                                              \
            return st_;                                                                                                \
    } while (0)

/* The device memory that an engine may use for its index, derived data, masks and sessions. */
struct memory_budget {
    uint64_t limit;
    uint64_t used; /* atomic */
};

/* What a session's runs do besides enqueuing work. Every call that allocates or frees memory
 * through CUDA, or by which the host waits for the GPU, is counted here. */
struct gpu_call_counts {
    uint64_t parts, waits, allocations, linger_hits; /* see gx_search_stats */
};

/* The memory that a session holds. */
struct session_memory {
    memory_budget *budget;
    gpu_call_counts *calls;
    uint64_t device, pinned; /* bytes */
};

static inline cudaError_t wait_for_stream(gpu_call_counts *c, cudaStream_t stream)
{
    c->waits += 1;
    return cudaStreamSynchronize(stream);
}

/* Copies from device memory when all enqueued work is done. */
static inline cudaError_t wait_and_copy(gpu_call_counts *c, void *host, const void *device, size_t bytes)
{
    c->waits += 1;
    return cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
}

/* Returns the bytes of the budget that are not taken. */
uint64_t budget_left(const memory_budget *b);
/* Takes bytes from the budget, until budget_give returns them. GX_ECUDA if too few are left; the
 * message names `what`. */
gx_status budget_take(memory_budget *b, const char *what, uint64_t bytes, gx_error *err);
void budget_give(memory_budget *b, uint64_t bytes);

/* Allocate device memory within the budget, or pinned host memory that the device can write. *out
 * is NULL after a failure. GX_ECUDA if the budget or CUDA has no more. */
gx_status session_alloc(session_memory *m, void **out, uint64_t bytes, gx_error *err);
gx_status session_alloc_pinned(session_memory *m, void **out, uint64_t bytes, gx_error *err);
/* Free an allocation of `bytes` bytes. *p may be NULL and becomes NULL. */
void session_free(session_memory *m, void **p, uint64_t bytes);
void session_free_pinned(session_memory *m, void **p, uint64_t bytes);

template <typename T> static inline gx_status session_alloc_array(session_memory *m, T **out, uint64_t n, gx_error *err)
{
    return session_alloc(m, (void **)out, n * sizeof(T), err);
}
template <typename T>
static inline gx_status session_alloc_pinned_array(session_memory *m, T **out, uint64_t n, gx_error *err)
{
    return session_alloc_pinned(m, (void **)out, n * sizeof(T), err);
}
template <typename T> static inline void session_free_array(session_memory *m, T **p, uint64_t n)
{
    session_free(m, (void **)p, n * sizeof(T));
}
template <typename T> static inline void session_free_pinned_array(session_memory *m, T **p, uint64_t n)
{
    session_free_pinned(m, (void **)p, n * sizeof(T));
}

/* A region that can grow. Growing loses its contents. */
struct growing_memory {
    char *base;
    uint64_t bytes;
};

constexpr uint64_t LEAST_GROWTH = 1u << 20; /* bytes; smaller growth is skipped if it is not necessary */

/* Grow the region to at least `least` bytes and, within the budget, to `wanted`. No work on the
 * device may use it. GX_ECUDA. */
gx_status grow_device(session_memory *m, growing_memory *g, uint64_t least, uint64_t wanted, gx_error *err);
gx_status grow_pinned(session_memory *m, growing_memory *g, uint64_t wanted, gx_error *err);

/* Divides a region into arrays, each aligned to 256 bytes. With base NULL it only counts bytes. */
struct bump_allocator {
    char *base;
    uint64_t used;
};

constexpr uint64_t CUT_ALIGNMENT = 256;

template <typename T> static inline void cut(bump_allocator *c, T **out, uint64_t n)
{
    *out = c->base ? (T *)(c->base + c->used) : NULL;
    c->used += (n * sizeof(T) + CUT_ALIGNMENT - 1) / CUT_ALIGNMENT * CUT_ALIGNMENT;
}

} // namespace gx

#endif
