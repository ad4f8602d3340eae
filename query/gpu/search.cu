#include "query/gpu/kernels.cuh"
#include "query/gpu/small_batch_search.cuh"

namespace gx {

constexpr uint32_t THREADS = 256;

/* Each warp turns one range at a time into items. All threads also initialize states and
 * histograms. */
static __global__ void __launch_bounds__(THREADS)
    begin(const __grid_constant__ gpu_batch R, const item_range *ranges, uint32_t n_ranges, uint32_t n_queries,
          gpu_item *items, uint32_t n_items)
{
    const uint32_t lane = threadIdx.x & 31, thread = blockIdx.x * THREADS + threadIdx.x, threads = gridDim.x * THREADS;
    for (uint32_t i = thread; i < n_queries * (BINS / 4); i += threads)
        reinterpret_cast<uint4 *>(R.histograms)[i] = make_uint4(0, 0, 0, 0);
    for (uint32_t i = thread; i < n_queries; i += threads)
        R.states[i] = {R.queries[i].initial_threshold, 0, 0, 0};
    if (thread < N_COUNTS)
        R.counts[thread] = 0;
    if (thread < N_COUNTERS)
        R.next_item[thread] = 0;
    for (uint32_t r = thread / 32; r < n_ranges; r += threads / 32) {
        const item_range range = ranges[r];
        const uint32_t count = (r + 1 < n_ranges ? ranges[r + 1].item : n_items) - range.item;
        const term_blocks at = read(&R.terms[range.term].at);
        const uint32_t query = R.terms[range.term].weight.query;
        for (uint32_t c = lane; c < count; c += 32)
            items[range.item + c] = make_item(range.term, at, query, &R.queries[query],
                                              range.block + c * range.item_blocks, range.item_blocks);
    }
}

void begin_batch(const gpu_batch &R, const item_range *ranges, uint32_t n_ranges, uint32_t n_queries, gpu_item *items,
                 uint32_t n_items, cudaStream_t stream)
{
    const uint32_t warps = max(max(n_ranges, n_queries * 4), 1u), blocks = (warps + THREADS / 32 - 1) / (THREADS / 32);
    begin<<<min(blocks, 2048u), THREADS, 0, stream>>>(R, ranges, n_ranges, n_queries, items, n_items);
}

template <class P> static constexpr size_t shared_bytes()
{
    return SEARCH_WARPS * sizeof(warp_shared<P::template doc<true>::V>);
}

uint32_t search_grid(uint32_t coding, uint32_t multiprocessors)
{
    int each = 0;
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
