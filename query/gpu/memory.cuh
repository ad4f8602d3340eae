/* memory.cuh: the memory that sessions on a GPU take: what an engine may use in all, what a session
 * has taken of it, and how a region is cut into arrays.
 *
 * A session begins with SESSION_FIRST_BYTES of device memory. Batches make it grow, up to
 * SESSION_DEVICE_BYTES of device and SESSION_PINNED_BYTES of pinned host memory; a batch that needs
 * more goes in several sub-batches. Only a query that alone needs more than that makes it grow
 * further: by its k (24 bytes a result, above SORTED_K), by the documents that tie with its k-th
 * (8 bytes each), or since every posting is scored (8 bytes a document that matches).
 */
#ifndef GX_QUERY_GPU_MEMORY_CUH
#define GX_QUERY_GPU_MEMORY_CUH

#include "engine/cuda.cuh"

namespace gx {

/* Together less than 100 MB (1e8 bytes); a batch of 1,024 queries of k = 1,000 goes as one. */
constexpr uint64_t SESSION_DEVICE_BYTES = 84u << 20, SESSION_PINNED_BYTES = 10u << 20;
constexpr uint64_t SESSION_FIRST_BYTES = 2u << 20, SESSION_FIRST_PINNED_BYTES = 1u << 20;

/* Return with what CUDA says of a call, if that is not success. For functions that have an err. */
#define TRY(what, call)                                                                                                \
    do {                                                                                                               \
        const gx_status st_ = gx_cuda_status((call), (what), err);                                                     \
        if (st_ != GX_OK)                                                                                              \
            return st_;                                                                                                \
    } while (0)

/* The same for a call that returns a gx_status. */
#define TRY_STATUS(call)                                                                                               \
    do {                                                                                                               \
        const gx_status st_ = (call);                                                                                  \
        if (st_ != GX_OK)                                                                                              \
            return st_;                                                                                                \
    } while (0)

/* Device memory that an engine may use: its index, what is derived from it, masks, and all its
 * sessions. */
struct memory_budget {
    uint64_t limit;
    uint64_t used; /* atomic */
};

/* What a session's runs do besides work that is enqueued: all calls by which CUDA gets or gives
 * back memory, or the host waits for the GPU, are counted here. */
struct gpu_call_counts {
    uint64_t parts, waits, allocations, linger_hits; /* see gx_search_stats */
};

/* What a session holds. */
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

/* A copy of device memory, once all that was enqueued is done. */
static inline cudaError_t wait_and_copy(gpu_call_counts *c, void *host, const void *device, size_t bytes)
{
    c->waits += 1;
    return cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
}

/* Bytes of the budget that nobody has taken yet. */
uint64_t budget_left(const memory_budget *b);
/* Take so many bytes, to be given back. GX_ECUDA where there are not so many; what names them. */
gx_status budget_take(memory_budget *b, const char *what, uint64_t bytes, gx_error *err);
void budget_give(memory_budget *b, uint64_t bytes);

/* Device memory within the budget, and pinned host memory that the device can write; *out is NULL
 * after a failure. GX_ECUDA where the budget or CUDA has no more. */
gx_status session_alloc(session_memory *m, void **out, uint64_t bytes, gx_error *err);
gx_status session_alloc_pinned(session_memory *m, void **out, uint64_t bytes, gx_error *err);
/* Give back what session_alloc gave, of so many bytes; *p becomes NULL, and may be NULL. */
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

/* Memory of one kind that grows: what it held is lost then. */
struct growing_memory {
    char *base;
    uint64_t bytes;
};

constexpr uint64_t LEAST_GROWTH = 1u << 20; /* bytes; for less nothing is done, where nothing must be */

/* Make it hold at least `least` bytes and, where the budget allows it, `wanted`. The caller sees to
 * it that nothing on the device uses it. GX_ECUDA. */
gx_status grow_device(session_memory *m, growing_memory *g, uint64_t least, uint64_t wanted, gx_error *err);
gx_status grow_pinned(session_memory *m, growing_memory *g, uint64_t wanted, gx_error *err);

/* Cuts arrays off a region, each on a boundary of 256 bytes; without a region (base NULL) it counts
 * their bytes. */
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
