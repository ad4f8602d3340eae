/* kernels.cuh: the functions by which the host side of the GPU engine launches its kernels. A
 * function only enqueues work on the stream. cudaGetLastError tells whether the launch succeeded.
 */
#ifndef GX_QUERY_GPU_KERNELS_KERNELS_CUH
#define GX_QUERY_GPU_KERNELS_KERNELS_CUH

#include "query/gpu/kernels/lists.cuh"

namespace gx {

/* ---- derive.cu: tables, maps and bounds derived from the lists ---- */

/* A list long enough to have a table, a map or k-th impacts. */
struct alignas(16) list_aux {
    uint32_t list;
    uint32_t table, table_shift; /* NO_TABLE_SHIFT: none */
    uint32_t map, map_shift;     /* NO_MAP_SHIFT: none */
    uint32_t classes;            /* NO_CLASSES: none */
    uint32_t tf_begin;           /* where its tf blocks begin; kept here because docid_ends is a cache miss away */
    uint32_t unused;
};

/* Fill the tables and maps of lists[n]. Both are zero before. A dense map gets its ranks too. */
void derive_tables(const gpu_index &X, const list_aux *lists, uint32_t n, uint32_t *tables, cudaStream_t stream);
void derive_maps(const gpu_index &X, uint32_t coding, const gpu_codings &codings, const list_aux *lists, uint32_t n,
                 uint32_t *maps, cudaStream_t stream);

/* The ranks k for which a list's k-th best impact is stored, for weight 1: as a byte, floor(256 *
 * impact), or with a linear scorer floor(256 * impact / the list's greatest). */
constexpr uint32_t N_KTH = 28;
extern const uint32_t kth_ranks[N_KTH];

/* Results for the scorer `norm`: best[list] is the greatest tf / (tf + K) of each list. For lists
 * with a list_aux, kth[number * N_KTH + i] is the impact of rank kth_ranks[i], or 0 if the list is
 * shorter. */
struct bounds_args {
    const uint32_t *aux_of; /* [n_terms]: number of the list's list_aux, or UINT32_MAX */
    gx_scorer norm;
    float *best;
    uint8_t *kth;
};
void derive_bounds(const gpu_index &X, uint32_t coding, const gpu_codings &codings, const bounds_args &args,
                   cudaStream_t stream);

/* ---- search.cu ---- */

constexpr uint32_t SEARCH_WARPS = 8; /* warps of a thread block */

/* The arrays that a batch begins with: its ranges, which become items[n_items], and its queries. */
struct batch_beginning {
    const item_range *ranges;
    uint32_t n_ranges, n_queries;
    gpu_item *items;
    uint32_t n_items;
};

/* Initialize the queries' states and histograms, and turn the ranges into items; and the queue L, unless its room
 * is 0. */
void begin_batch(const gpu_batch &R, const batch_beginning &b, const list_queue &L, cudaStream_t stream);

/* Prepare the search kernels on the current device. Returns how many thread blocks fill it. */
uint32_t search_grid(uint32_t coding, uint32_t multiprocessors);
/* Search the batch's items. Their queries all have room for more than SHORT_QUERY_TERMS terms
 * (count_room; are_multi_term), or none has. any_tests: some may have tests. */
void search_batch(const gpu_index &X, uint32_t coding, const gpu_batch &R, bool are_multi_term, bool any_tests,
                  uint32_t grid, cudaStream_t stream);

/* The same for short queries without tests, of an index whose coding lists_go_in_turn: their lists enter the queue L
 * one after the other. */
bool lists_go_in_turn(uint32_t coding);
void search_batch_in_turn(const gpu_index &X, const gpu_batch &R, const list_queue &L, uint32_t grid,
                          cudaStream_t stream);

/* Search for a small batch with `grid` thread blocks a query. R.states and both histograms must be
 * 0 and are 0 afterwards. With S.linger_ns the kernel of a single query lingers for others. It
 * then needs a grid of small_batch_grid thread blocks, and the launch fails if they cannot all be
 * resident at once. small_batch_grid prepares the kernels on the current device and returns how
 * many thread blocks fill it. */
uint32_t small_batch_grid(uint32_t coding, uint32_t multiprocessors);
void search_small_batch(const gpu_index &X, uint32_t coding, const gpu_batch &R, const small_batch &F,
                        uint32_t n_queries, const linger_params &S, uint32_t grid, cudaStream_t stream);
/* Search for a medium batch, which lies in device memory, with n_blocks thread blocks in all. The
 * rest is as for a small batch, without lingering. */
void search_medium_batch(const gpu_index &X, uint32_t coding, const gpu_batch &R, const medium_batch *M,
                         uint32_t n_blocks, cudaStream_t stream);

/* ---- phrases.cu ---- */

/* Prepare the kernels on the current device. Returns how many thread blocks fill it. */
uint32_t phrases_grid(uint32_t coding, uint32_t multiprocessors);
/* Search the batch's items, all of queries with phrases. plain: whether the positions are. */
void search_phrases(const gpu_index &X, uint32_t coding, bool plain, const gpu_batch &R, uint32_t grid,
                    cudaStream_t stream);

/* ---- plain_positions.cu ---- */

constexpr uint32_t MOST_PLAIN = UINT16_MAX; /* the greatest plain position; positions of a block are no more */
/* blocks of more postings have no plain positions: a posting's number in its item takes 12 bits */
constexpr uint32_t MOST_PLAIN_BLOCK = 4096;

/* Count the positions of each of the index's n blocks: the sums of their tfs. */
void count_positions(const gpu_index &X, const gpu_codings &codings, uint32_t *counts, uint32_t n, cudaStream_t stream);
/* Write the postings and positions of n blocks that begin where S.starts says, to S.postings and S.plain. *failed
 * becomes 1 where a position is above MOST_PLAIN or a block is damaged. */
void write_plain_positions(const gpu_index &X, const gpu_codings &codings, const gpu_positions &S, uint32_t n,
                           uint32_t *failed, cudaStream_t stream);

/* ---- documents.cu ---- */

/* Documents of filters that a launch searches. */
struct documents_batch {
    const selected_documents *of; /* [n], by first_item */
    uint32_t n, n_items;
    uint32_t *next_item; /* the counter of this launch, 0 before */
};

/* Prepare the kernel on the current device. Returns how many thread blocks fill it. */
uint32_t documents_grid(uint32_t coding, uint32_t multiprocessors);
/* Search the documents in the lists of their queries, which have at most SHORT_QUERY_TERMS lists. The
 * items are part of the queries' n_items. */
void search_documents(const gpu_index &X, uint32_t coding, const gpu_batch &R, const documents_batch &B, uint32_t grid,
                      cudaStream_t stream);

/* ---- exhaustive.cu ---- */

/* Score every posting of queries[first .. first + n), all of them QUERY_EXHAUSTIVE. Every match
 * becomes a candidate. */
void search_exhaustively(const gpu_index &X, uint32_t coding, const gpu_batch &R, uint32_t first, uint32_t n,
                         cudaStream_t stream);

/* ---- select.cu ---- */

constexpr uint32_t SORTED_K = 4096; /* up to this k, select_best sorts too */

/* Select the best k candidates of queries[first .. first + n), where k > SMALL_K, QUERY_EXHAUSTIVE
 * or QUERY_TILES, and write them to the answers, followed by zeros. Answers with k <= SORTED_K
 * are sorted. */
void select_best(const gpu_batch &R, uint32_t first, uint32_t n, cudaStream_t stream);

/* Sort n keys in descending order. scratch has sort_scratch_bytes(n) bytes. */
size_t sort_scratch_bytes(uint32_t n);
cudaError_t sort_keys(void *scratch, size_t scratch_bytes, const unsigned long long *keys, unsigned long long *sorted,
                      uint32_t n, cudaStream_t stream);

} // namespace gx

#endif
