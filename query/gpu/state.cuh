/* state.cuh: an index prepared for a GPU: the device sections of its file, the tables and maps
 * derived from them, and the bounds of impacts for the scorers that queries have used. */
#ifndef GX_QUERY_GPU_STATE_CUH
#define GX_QUERY_GPU_STATE_CUH

#include "query/gpu/columns.cuh"
#include "query/gpu/kernels/kernels.cuh"
#include "query/gpu/kernels/tiles.cuh"
#include "query/gpu/memory.cuh"
#include "query/gpu/payload.cuh"
#include "query/gpu/positions.cuh"

#include <pthread.h>

namespace gx {

/* Bounds of impacts for one scorer and its parameters. */
struct bounds {
    bounds *next;
    gx_scorer norm;
    float *best;     /* [n_terms] */
    uint8_t *kth;    /* [n_aux * N_KTH] */
    uint8_t *maxima; /* in device memory: of tiles (tiles.cuh); NULL until a query is searched by tiles */
    int users;
    /* Where there are maxima, of linear scorers: the mean over tiles of a list's greatest impact there, divided
     * by its greatest impact at all; the mean over lists by their postings. It is low where documents of the
     * same topics have neighbouring docids: then most tiles are left out. */
    float evenness;
};

struct gpu_prepared_index {
    const gx_index *ix;
    int device;
    char description[288];
    uint32_t multiprocessors, grid, small_grid, coding; /* grids: thread blocks that fill the device */
    gpu_codings codings;
    memory_budget budget;
    gpu_index X;
    char *arena; /* the device sections, without the payload if that is in host memory */
    payload_store payload;
    uint32_t *tables, *maps;
    uint32_t *aux_of;    /* [n_terms] on the host: number of the list's list_aux, or UINT32_MAX */
    list_aux *aux_lists; /* [n_aux] on the host */
    uint32_t n_aux;
    uint32_t *d_aux_of;
    list_aux *d_aux;
    float *d_best;
    uint8_t *d_kth;
    uint64_t map_words, table_words;
    tile_rows rows;       /* no tiles: the index is not searched by tiles */
    uint32_t *row_of;     /* [n_terms] on the host: the list's row, or NO_ROW */
    uint64_t tile_memory; /* bytes that the rows may still take */
    tiled_grid tiled;
    uint32_t documents; /* grid of search_documents */
    uint32_t phrases;   /* grid of search_phrases */
    device_positions positions;
    device_columns columns;
    cudaStream_t stream;
    uint32_t running;            /* batches in flight in all sessions; atomic */
    const void *last;            /* the session that started the last batch; atomic */
    uint32_t linger_ns;          /* how long a kernel that answered a single query waits for the next one, in ns */
    pthread_mutex_t linger_lock; /* guards `lingering` */
    query_slot *lingering;       /* the slot of the kernel that lingers, may linger or has ended; or NULL */
    pthread_mutex_t lock;        /* guards bounds_sets, d_best, d_kth and stream */
    bounds *bounds_sets;
};

/* gx_executor.state_open, release_index and describe. */
gx_status gpu_prepare_index(void **out, const gx_index *ix, const gx_engine_options *opt, gx_error *err);
void gpu_release_index(void *state);
const char *gpu_describe_index(const void *state);

/* gx_executor.mask_open and mask_close. The mask is the device's copy of the words. */
gx_status gpu_mask_open(void **out, void *state, const uint32_t *words, gx_error *err);
void gpu_mask_close(void *state, void *mask);

/* Stop the kernel that lingers, in any session. It ends after its query, or soon after if its
 * session has sent the next one. Every other use of the GPU calls this first. */
void stop_lingering(gpu_prepared_index *s);

/* Register the slot of a kernel that may linger, before the kernel starts. Stops a kernel that
 * uses another slot. */
void register_lingering(gpu_prepared_index *s, query_slot *slot);

/* Waits for the event. Meanwhile calls the plan's cancel function, and sets *cancelled if that
 * returns true, but waits for the event even so. */
cudaError_t wait_for_event(gpu_call_counts *c, cudaEvent_t event, const gx_plan *plan, bool *cancelled);

/* Get the bounds for norm, computed if they are new. release_bounds gives them back. */
gx_status acquire_bounds(gpu_prepared_index *s, gx_scorer norm, gpu_call_counts *calls, bounds **out, gx_error *err);
void release_bounds(gpu_prepared_index *s, bounds *b);

/* Make what the search by tiles needs for the scorer of b, unless it is there. *there: whether it is
 * now; if not, the index has too many documents or the memory does not suffice. */
gx_status make_tiles(gpu_prepared_index *s, bounds *b, gpu_call_counts *calls, bool *there, gx_error *err);

/* Returns the number of blocks of a list. Block lengths are powers of two, which saves the
 * division. */
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
