#include "query/gpu/kernels/kernels.cuh"
#include "query/gpu/kernels/list_queue.cuh"
#include "query/gpu/kernels/small_batch_search.cuh"

namespace gx {

constexpr uint32_t THREADS = 256;

/* The queue of lists before the search: empty behind the items that are there from the start. */
static __device__ __forceinline__ void begin_queue(const gpu_batch &R, const list_queue &L, uint32_t thread,
                                                   uint32_t threads)
{
    for (uint32_t i = L.n_first + thread; i < L.room; i += threads)
        L.items[i] = {0, 0, 0, 0};
    for (uint32_t i = thread; i < QUEUE_WORDS; i += threads)
        L.state[i] = i == QUEUE_END ? L.n_first : 0;
}

/* Each warp turns one range at a time into items. All threads also initialize states and
 * histograms. */
static __global__ void __launch_bounds__(THREADS)
    begin(const __grid_constant__ gpu_batch R, const __grid_constant__ batch_beginning b,
          const __grid_constant__ list_queue L)
{
    const uint32_t lane = threadIdx.x & 31, thread = blockIdx.x * THREADS + threadIdx.x, threads = gridDim.x * THREADS;
    for (uint32_t i = thread; i < b.n_queries * (BINS / 4); i += threads)
        reinterpret_cast<uint4 *>(R.histograms)[i] = make_uint4(0, 0, 0, 0);
    for (uint32_t i = thread; i < b.n_queries; i += threads) /* in turn, `done` counts up to 0 */
        R.states[i] = {R.queries[i].initial_threshold, 0, i < L.n_queries ? 0 - R.queries[i].n_items : 0, 0};
    if (thread < N_COUNTS)
        R.counts[thread] = 0;
    if (thread < N_COUNTERS)
        R.next_item[thread] = 0;
    if (L.room)
        begin_queue(R, L, thread, threads);
    for (uint32_t r = thread / 32; r < b.n_ranges; r += threads / 32) {
        const item_range range = b.ranges[r];
        const uint32_t count = (r + 1 < b.n_ranges ? b.ranges[r + 1].item : b.n_items) - range.item;
        const term_blocks at = read(&R.terms[range.term].at);
        const uint32_t query = R.terms[range.term].weight.query;
        const uint32_t opens = L.room ? middle_item(range, at) : count; /* after it the next list may enter the queue */
        for (uint32_t c = lane; c < count; c += 32) {
            gpu_item it = make_range_item(range, at, query, &R.queries[query], c);
            it.packed |= c == opens ? ITEM_OPENS_NEXT : 0;
            b.items[range.item + c] = it;
        }
    }
}

void begin_batch(const gpu_batch &R, const batch_beginning &b, const list_queue &L, cudaStream_t stream)
{
    const uint32_t warps = max(max(b.n_ranges, b.n_queries * 4), max(L.room / 32, 1u)),
                   blocks = (warps + THREADS / 32 - 1) / (THREADS / 32);
    begin<<<min(blocks, 2048u), THREADS, 0, stream>>>(R, b, L);
}

template <class P> static constexpr size_t shared_bytes()
{
    return SEARCH_WARPS * sizeof(warp_shared<P::template doc<true>::V>);
}

/* The codec of the kernel in which lists go in turn: the fastest one. */
typedef in_turn<pair_gpubp128> pair_in_turn;

uint32_t search_grid(uint32_t coding, uint32_t multiprocessors)
{
    int each = 0;
    (void)cudaFuncSetAttribute(search_in_turn<pair_in_turn>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               (int)shared_bytes<pair_in_turn>());
    with_pair(coding, [&](auto pair) {
        constexpr int bytes = (int)shared_bytes<decltype(pair)>();
        (void)cudaFuncSetAttribute(search<decltype(pair), true>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        (void)cudaFuncSetAttribute(search<decltype(pair), false>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        typedef typename tested<decltype(pair)>::type T;
        (void)cudaFuncSetAttribute(search<T, true>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        (void)cudaFuncSetAttribute(search<T, false>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, search<decltype(pair), false>, SEARCH_WARPS * 32,
                                                            bytes);
    });
    return multiprocessors * (uint32_t)(each > 0 ? each : 1);
}

uint32_t small_batch_grid(uint32_t coding, uint32_t multiprocessors)
{
    int each = 0;
    with_pair(coding, [&](auto pair) {
        constexpr int bytes = (int)shared_bytes<decltype(pair)>();
        (void)cudaFuncSetAttribute(search_small<decltype(pair)>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        (void)cudaFuncSetAttribute(search_medium<decltype(pair)>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, search_small<decltype(pair)>, SEARCH_WARPS * 32,
                                                            bytes);
    });
    return multiprocessors * (uint32_t)(each > 0 ? each : 1);
}

bool lists_go_in_turn(uint32_t coding)
{
    bool they_do = false;
    with_pair(coding, [&](auto pair) { they_do = std::is_base_of<decltype(pair), pair_in_turn>::value; });
    return they_do;
}

void search_batch_in_turn(const gpu_index &X, const gpu_batch &R, const list_queue &L, uint32_t grid,
                          cudaStream_t stream)
{
    search_in_turn<pair_in_turn><<<grid, SEARCH_WARPS * 32, shared_bytes<pair_in_turn>(), stream>>>(X, R, L);
}

void search_small_batch(const gpu_index &X, uint32_t coding, const gpu_batch &R, const small_batch &F,
                        uint32_t n_queries, const linger_params &S, uint32_t grid, cudaStream_t stream)
{
    with_pair(coding, [&](auto pair) {
        constexpr size_t bytes = shared_bytes<decltype(pair)>();
        /* thread blocks that wait for the next query must not keep others of the grid from
         * starting */
        if (S.linger_ns) {
            void *args[] = {(void *)&X, (void *)&R, (void *)&F, (void *)&S};
            (void)cudaLaunchCooperativeKernel((const void *)search_small<decltype(pair)>, dim3(grid),
                                              dim3(SEARCH_WARPS * 32), args, bytes, stream);
        } else {
            search_small<decltype(pair)><<<dim3(grid, n_queries), SEARCH_WARPS * 32, bytes, stream>>>(X, R, F, S);
        }
    });
}

void search_medium_batch(const gpu_index &X, uint32_t coding, const gpu_batch &R, const medium_batch *M,
                         uint32_t n_blocks, cudaStream_t stream)
{
    with_pair(coding, [&](auto pair) {
        constexpr size_t bytes = shared_bytes<decltype(pair)>();
        search_medium<decltype(pair)><<<n_blocks, SEARCH_WARPS * 32, bytes, stream>>>(X, R, M);
    });
}

template <class P>
static void launch_search(const gpu_index &X, const gpu_batch &R, bool are_multi_term, uint32_t blocks,
                          cudaStream_t stream)
{
    constexpr size_t bytes = shared_bytes<P>();
    if (are_multi_term)
        search<P, true><<<blocks, SEARCH_WARPS * 32, bytes, stream>>>(X, R);
    else
        search<P, false><<<blocks, SEARCH_WARPS * 32, bytes, stream>>>(X, R);
}

void search_batch(const gpu_index &X, uint32_t coding, const gpu_batch &R, bool are_multi_term, bool any_tests,
                  uint32_t grid, cudaStream_t stream)
{
    const uint32_t blocks = min(grid, (R.n_items + SEARCH_WARPS - 1) / SEARCH_WARPS);
    if (R.n_items == 0)
        return;
    with_pair(coding, [&](auto pair) {
        if (any_tests)
            launch_search<typename tested<decltype(pair)>::type>(X, R, are_multi_term, blocks, stream);
        else
            launch_search<decltype(pair)>(X, R, are_multi_term, blocks, stream);
    });
}

} // namespace gx
