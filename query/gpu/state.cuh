/* state.cuh: an index made ready for a GPU: the device sections of its file, what is derived from
 * them (tables, maps), and bounds of impacts for the parameters that queries have asked for.
 */
#ifndef GX_QUERY_GPU_STATE_CUH
#define GX_QUERY_GPU_STATE_CUH

#include "query/gpu/kernels.cuh"
#include "query/gpu/memory.cuh"

#include <pthread.h>

namespace gx {

/* Bounds of impacts for one set of parameters. */
struct bounds {
    bounds *next;
    gx_scorer norm;
    float *best;  /* [n_terms] */
    uint8_t *kth; /* [n_aux * N_KTH] */
    int users;
};

struct gpu_prepared_index {
    const gx_index *ix;
    int device;
    char description[288];
    uint32_t multiprocessors, grid, small_grid, coding; /* grids: blocks of threads that fill the device */
    gpu_codings codings;
    memory_budget budget;
    gpu_index X;
    char *arena;
    uint32_t *tables, *maps;
    uint32_t *aux_of;    /* [n_terms] on the host: number of the long list, or UINT32_MAX */
    list_aux *aux_lists; /* [n_aux] on the host */
    uint32_t n_aux;
    uint32_t *d_aux_of;
    list_aux *d_aux;
    float *d_best;
    uint8_t *d_kth;
    uint64_t map_words, table_words;
    cudaStream_t stream;
    uint32_t running;            /* batches under way in all sessions; atomic */
    const void *last;            /* the session whose batch was the last to begin; atomic */
    uint32_t linger_ns;          /* ns that a kernel which answered a query alone waits for the next one */
    pthread_mutex_t linger_lock; /* of what follows */
    query_slot *lingering;       /* of the kernel that waits so, or may, or has ended; or NULL */
    pthread_mutex_t lock;        /* of what follows, d_best, d_kth and stream */
    bounds *bounds_sets;
};

/* gx_executor.state_open, release_index and describe. */
gx_status gpu_prepare_index(void **out, const gx_index *ix, const gx_engine_options *opt, gx_error *err);
void gpu_release_index(void *state);
const char *gpu_describe_index(const void *state);

/* gx_executor.mask_open and mask_close. The mask is the device's copy of the words. */
gx_status gpu_mask_open(void **out, void *state, const uint32_t *words, gx_error *err);
void gpu_mask_close(void *state, void *mask);

/* Stop a kernel that lingers, of any session: it ends once its query is answered, or soon after if
 * its session has sent the next one. Called before anything else is done on the GPU. */
void stop_lingering(gpu_prepared_index *s);

/* Before a kernel is started that may linger for the next query in that slot; another one is
 * stopped. */
void register_lingering(gpu_prepared_index *s, query_slot *slot);

/* Until the event, or until the plan, whose cancel function is asked meanwhile, says so: then
 * *cancelled, but not sooner. */
cudaError_t wait_for_event(gpu_call_counts *c, cudaEvent_t event, const gx_plan *plan, bool *cancelled);

/* The bounds for norm, computed if they are new; to be given back. */
gx_status acquire_bounds(gpu_prepared_index *s, gx_scorer norm, gpu_call_counts *calls, bounds **out, gx_error *err);
void release_bounds(gpu_prepared_index *s, bounds *b);

/* Blocks of a list; all codecs' blocks are powers of two long, so that it is not divided. */
static inline uint32_t count_blocks(const gx_index *ix, uint32_t df)
{
    const uint32_t len = ix->block_len;
    return (len & (len - 1) ? (df - 1) / len : (df - 1) >> __builtin_ctz(len)) + 1;
}

template <typename T> static cudaError_t device_alloc(T **out, uint64_t n)
{
    return cudaMalloc((void **)out, n ? n * sizeof(T) : sizeof(T));
}

} // namespace gx

#endif
