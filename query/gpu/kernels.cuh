/* kernels.cuh: what the .cu files of the GPU engine offer to its host side. Every function only
 * enqueues work on the stream; cudaGetLastError tells whether the launch was good. */
#ifndef GX_QUERY_GPU_KERNELS_CUH
#define GX_QUERY_GPU_KERNELS_CUH

#include "query/gpu/lists.cuh"

namespace gx {

/* ---- derive.cu: what is derived from the lists ---- */

/* A list that is long enough to have a table, a map or k-th impacts. */
struct alignas(16) list_aux {
    uint32_t list;
    uint32_t table, table_shift; /* NO_TABLE_SHIFT: none */
    uint32_t map, map_shift;     /* NO_MAP_SHIFT: none */
    uint32_t classes;            /* NO_CLASSES: none */
    uint32_t tf_begin;           /* where its tf blocks begin: a word of docid_ends that is far from all others */
    uint32_t unused;
};

/* Tables and maps (zeroed before; dense ones with ranks) of lists[n], in tables and maps. */
void derive_tables(const gpu_index &X, const list_aux *lists, uint32_t n, uint32_t *tables, cudaStream_t stream);
void derive_maps(const gpu_index &X, uint32_t coding, const gpu_codings &codings, const list_aux *lists, uint32_t n,
                 uint32_t *maps, cudaStream_t stream);

/* k-th best impacts of a list, of weight 1, at these k: floor(256 * impact), as bytes; by a linear
 * scorer, floor(256 * impact / the list's greatest). */
constexpr uint32_t N_KTH = 28;
extern const uint32_t kth_ranks[N_KTH];

/* For parameters norm: best[list] = the greatest tf / (tf + K) of each of the index's lists, and
 * for the long ones kth[long * N_KTH + i] for kth_ranks[i] (0 where the list is shorter). */
struct bounds_args {
    const uint32_t *aux_of; /* [n_terms]: number of the long list, or UINT32_MAX */
    gx_scorer norm;
    float *best;
    uint8_t *kth;
};
void derive_bounds(const gpu_index &X, uint32_t coding, const gpu_codings &codings, const bounds_args &args,
                   cudaStream_t stream);

/* ---- search.cu ---- */

constexpr uint32_t SEARCH_WARPS = 8; /* of a block of threads */

/* Items of the runs, and the states and histograms of the queries, before a search. */
void begin_batch(const gpu_batch &R, const item_range *ranges, uint32_t n_ranges, uint32_t n_queries, gpu_item *items,
                 uint32_t n_items, cudaStream_t stream);

/* The number of blocks of threads that fill the current device, which is made ready. */
uint32_t search_grid(uint32_t coding, uint32_t multiprocessors);
/* The batch's items, all of long queries (of more than SHORT_QUERY_TERMS terms) or none. */
void search_batch(const gpu_index &X, uint32_t coding, const gpu_batch &R, bool are_multi_term, uint32_t grid,
                  cudaStream_t stream);

/* A few queries, by `grid` blocks of threads each. R.states and both histograms are 0 and become so
 * again. One query's kernel may stay and answer others (linger_params); then grid is what fills the
 * device, and the launch fails where not all of it can be there at once. small_batch_grid: the
 * number of blocks that fill the current device, which is made ready. */
uint32_t small_batch_grid(uint32_t coding, uint32_t multiprocessors);
void search_small_batch(const gpu_index &X, uint32_t coding, const gpu_batch &R, const small_batch &F,
                        uint32_t n_queries, const linger_params &S, uint32_t grid, cudaStream_t stream);

/* ---- exhaustive.cu ---- */

/* Every posting of queries[first .. first + n), all of them QUERY_EXHAUSTIVE; every match becomes a
 * candidate. */
void search_exhaustively(const gpu_index &X, uint32_t coding, const gpu_batch &R, uint32_t first, uint32_t n,
                         cudaStream_t stream);

/* ---- select.cu ---- */

constexpr uint32_t SORTED_K = 4096; /* up to this k, select also sorts */

/* The best k of the candidates of queries[first .. first + n), those with k > SMALL_K or
 * QUERY_EXHAUSTIVE, to their answers, zeros after them; sorted for k <= SORTED_K. */
void select_best(const gpu_batch &R, uint32_t first, uint32_t n, cudaStream_t stream);

/* Sort n keys falling. scratch: sort_scratch_bytes(n) bytes. */
size_t sort_scratch_bytes(uint32_t n);
cudaError_t sort_keys(void *scratch, size_t scratch_bytes, const unsigned long long *keys, unsigned long long *sorted,
                      uint32_t n, cudaStream_t stream);

} // namespace gx

#endif
