/* small_batch_search.cuh: the ranked search for a small or medium batch, by one launch and nothing else. The
 * kernel's parameters describe the queries, and the kernel computes items from their numbers. It
 * leaves states and histograms as it finds them: all 0. The kernel of a single query can linger on
 * the GPU and answer more queries, which reach it through query_slot.cuh.
 *
 * Each query has a row of the grid (blockIdx.y). An item is one block of a list, or a share of
 * one. The items, in the order of the lists, go to the row's thread blocks in turn. In a thread
 * block each item goes to the next free warp. A warp ends when the threshold exceeds what the
 * item's list and all later lists can contribute. The last warp to end selects the best k.
 *
 * The first threshold is weak. So the warps count the lower bound of every document that passes
 * the maps (count_lower_bounds), and the threshold is close to its final value before most
 * look-ups. In a large query even the maps would be read too often. There one warp of each block
 * searches its first item before the other warps begin. */
#ifndef GX_QUERY_GPU_KERNELS_SMALL_BATCH_SEARCH_CUH
#define GX_QUERY_GPU_KERNELS_SMALL_BATCH_SEARCH_CUH

#include "query/gpu/kernels/query_slot.cuh"
#include "query/gpu/kernels/search.cuh"

namespace gx {

/* without register spills */
template <class P> constexpr uint32_t SEARCH_BLOCKS<in_small_batch<P>> = SEARCH_BLOCKS<P> < 3 ? SEARCH_BLOCKS<P> : 3;
template <class P> constexpr bool ALWAYS_STAGED<in_small_batch<P>> = ALWAYS_STAGED<P>;
static_assert(SEARCH_BLOCKS<in_small_batch<pair_gpubp128>> * (BLOCK_BYTES + sizeof(block_state)) <= MOST_SHARED,
              "60 KB are left for L1");

/* In a query of this many items, shares included, one warp of each thread block begins alone, and
 * the others begin when it has raised the threshold. */
constexpr uint32_t SEEDED_ITEMS = 2048;

/* Start copying the description of item `number` of the query that `to` already describes. */
__device__ __forceinline__ void fetch_small_item(const gpu_index &X, uint32_t q, uint32_t number, staged_item &to,
                                                 uint32_t lane)
{
    const uint32_t shares = to.query.shares, share = number & (shares - 1);
    uint32_t t = 0;
    for (number >>= __ffs(shares) - 1; number >= to.terms[t].at.n_blocks; ++t)
        number -= to.terms[t].at.n_blocks;
    gpu_item it = make_item(t, to.terms[t].at, q, &to.query, number, 1);
    it.packed |= share << ITEM_SHARE;
    fetch_blocks(X, it, to, lane);
    if (lane == 0 && it.packed & ITEM_FIRST)
        to.blocks[0].tfs = to.terms[t].payload.tf_begin;
}

/* Copies the query and its terms to both items of a warp. */
template <uint32_t V>
__device__ __forceinline__ void stage_query(const small_query &Q, warp_shared<V> &ws, uint32_t lane)
{
    constexpr uint32_t QUERY_PIECES = sizeof(gpu_query) / 16, PIECES = QUERY_PIECES + sizeof Q.terms / 16;
    static_assert(PIECES <= 32, "a lane a piece");
    if (lane < PIECES) {
        const uint4 x = reinterpret_cast<const uint4 *>(&Q)[lane];
        for (staged_item &to : ws.items) {
            if (lane < QUERY_PIECES)
                reinterpret_cast<uint4 *>(&to.query)[lane] = x;
            else
                reinterpret_cast<uint4 *>(to.terms)[lane - QUERY_PIECES] = x;
        }
    }
    __syncwarp();
}

/* Returns the block's threshold. Once every SEARCH_WARPS items it first reads the query's. */
__device__ __forceinline__ uint32_t refresh_threshold(const gpu_batch &R, uint32_t q, uint32_t taken,
                                                      block_state &block, uint32_t lane)
{
    if (taken % SEARCH_WARPS == 0 && taken > SEARCH_WARPS)
        (void)block_threshold::update(R, q, block_threshold::prefetch(R, q, lane), true, 0, lane);
    __syncwarp();
    return __shfl_sync(ALL_LANES, lane ? 0 : atomicOr(&block.threshold, 0), 0);
}

/* Adds one and returns the value before. With `releases` the add has release semantics, and always
 * acquire semantics: a thread that adds later sees what this thread knows to be written. A fence
 * takes longer, and it empties L1. */
__device__ __forceinline__ uint32_t add_one(uint32_t *to, bool releases)
{
    uint32_t before;
    if (releases)
        asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(to) : "memory");
    else
        asm volatile("atom.add.acquire.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(to) : "memory");
    return before;
}

/* A warp has finished. Returns non-zero in the first lane of the query's last warp, which then
 * sees what all warps have written. */
__device__ __forceinline__ uint32_t finish_warp(const gpu_batch &R, uint32_t q, uint32_t blocks, bool wrote,
                                                block_state &block, uint32_t lane)
{
    constexpr uint32_t WROTE = 1 << 16;
    uint32_t last = 0;
    if (wrote)
        __threadfence_block();
    __syncwarp();
    if (lane == 0) {
        const uint32_t before = atomicAdd(&block.finished, wrote ? 1 + WROTE : 1);
        if (before % WROTE + 1 == SEARCH_WARPS) {
            __threadfence_block();
            last = add_one(&R.states[q].done, wrote || before >= WROTE) + 1 == blocks;
        }
    }
    return last;
}

/* Resets the query's state and histograms to 0. */
__device__ __forceinline__ void clear_query(const gpu_batch &R, uint32_t q, uint32_t lane)
{
    const uint4 zero = make_uint4(0, 0, 0, 0);
    for (uint32_t i = lane; i < BINS / 4; i += 32) {
        reinterpret_cast<uint4 *>(R.histograms + (size_t)q * BINS)[i] = zero;
        reinterpret_cast<uint4 *>(R.lower_bound_histograms + (size_t)q * BINS)[i] = zero;
    }
    if (lane == 0)
        R.states[q] = {0, 0, 0, 0};
}

/* A query of the launch, and which of its thread blocks this one is. */
struct query_share {
    uint32_t q, rank, blocks; /* rank < blocks */
};

/* Searches the items that this warp takes of the query, which ws describes. */
template <class P, uint32_t V>
__device__ __forceinline__ void search_query_items(const gpu_index &X, const gpu_batch &R, const query_share &own,
                                                   block_state &block, uint32_t lane, warp_shared<V> &ws)
{
    const uint32_t warp = threadIdx.x >> 5, n_items = ws.items[0].query.n_items, q = own.q, blocks = own.blocks;
    uint32_t number = own.rank + blocks * warp; /* item number */
    if (warp && n_items >= SEEDED_ITEMS) {
        while (lane == 0 && !atomicOr(&block.seeded, 0))
            __nanosleep(100);
        __syncwarp();
    }
    bool more = number < n_items;
    for (uint32_t which = 0; more; which ^= 1) {
        staged_item &staged = ws.items[which], &next_item = ws.items[which ^ 1];
        uint32_t taken = 0;
        if (lane == 0)
            taken = atomicAdd(&block.n_taken, 1);
        taken = __shfl_sync(ALL_LANES, taken, 0);
        number = own.rank + blocks * taken;
        wait_copies();
        const uint32_t T = refresh_threshold(R, q, taken, block, lane);
        const gpu_term &list = staged.terms[staged.item.packed & ITEM_TERM];
        if (list.filter.bound + list.weight.remaining_ub < T) { /* all later items are below the threshold too */
            if (lane == 0)
                atomicOr(&block.seeded, 1);
            break;
        }
        more = number < n_items;
        if (lane == 0)
            staged.threshold = next_item.threshold = T;
        if (more)
            fetch_small_item(X, q, number, next_item, lane);
        __syncwarp();
        search_item<in_small_batch<P>, false, V>(X, R, staged, next_item, more, lane, ws);
        if (warp == 0 && lane == 0)
            atomicOr(&block.seeded, 1);
        __syncwarp();
    }
}

/* Sets the block's and the warps' state for the query that ws describes. For all threads of the
 * block. */
template <uint32_t V> __device__ __forceinline__ void begin_query(block_state &block, uint32_t lane, warp_shared<V> &ws)
{
    if (threadIdx.x == 0) {
        block.threshold = ws.items[0].query.initial_threshold;
        block.n_taken = SEARCH_WARPS;
        block.seeded = block.finished = 0;
    }
    if (lane == 0)
        ws.wrote = ws.decoded = ws.lookups = ws.buffer = ws.next_staged = 0;
    __syncthreads();
}

/* Searches this warp's part of the query. Returns true in the query's last warp, which has written
 * the answer. */
template <class P, uint32_t V>
__device__ __forceinline__ bool search_query(const gpu_index &X, const gpu_batch &R, const query_share &own,
                                             block_state &block, uint32_t lane, warp_shared<V> &ws)
{
    search_query_items<P, V>(X, R, own, block, lane, ws);
    const uint32_t last = finish_warp(R, own.q, own.blocks, ws.wrote, block, lane);
    if (!__shfl_sync(ALL_LANES, last, 0))
        return false;
    __syncwarp();
    select_small_k<SPACE<V>>(R, ws.items[0].query, own.q, lane, reinterpret_cast<unsigned long long *>(ws.postings));
    clear_query(R, own.q, lane);
    return true;
}

template <class P>
__global__ void __launch_bounds__(SEARCH_WARPS * 32, SEARCH_BLOCKS<in_small_batch<P>>)
    search_small(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R,
                 const __grid_constant__ small_batch F, const __grid_constant__ linger_params S)
{
    constexpr uint32_t V = P::template doc<true>::V;
    extern __shared__ uint4 shared[];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, q = blockIdx.y;
    warp_shared<V> &ws = reinterpret_cast<warp_shared<V> *>(shared)[warp];
    block_state &block = this_block();
    uint32_t blocks = F.of[q].blocks;
    if (threadIdx.x == 0) {
        block.message = S.number;
        block.start_ns = nanoseconds();
    }
    stage_query(F.of[q], ws, lane);
    for (;;) {
        const uint32_t number = blockIdx.x + blocks * warp; /* item number */
        const bool takes_part = blockIdx.x < blocks;
        if (takes_part && number < ws.items[0].query.n_items)
            fetch_small_item(X, q, number, ws.items[0], lane);
        begin_query(block, lane, ws);
        if (takes_part && search_query<P, V>(X, R, {q, blockIdx.x, blocks}, block, lane, ws) && S.linger_ns)
            broadcast_query(S, block.message + 1, block.start_ns, lane);
        if (!S.linger_ns)
            return;
        wait_copies();   /* copies for items that were not searched */
        __syncthreads(); /* all warps have read the block's state */
        if (warp == 0)
            receive_query(S, block, lane);
        __syncthreads();
        blocks = block.query.blocks;
        if (blocks == 0)
            return;
        stage_query(block.query, ws, lane);
    }
}

/* The search of a medium batch, whose queries have different numbers of thread blocks. */
template <class P>
__global__ void __launch_bounds__(SEARCH_WARPS * 32, SEARCH_BLOCKS<in_small_batch<P>>)
    search_medium(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R, const medium_batch *M)
{
    constexpr uint32_t V = P::template doc<true>::V;
    extern __shared__ uint4 shared[];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, q = M->query_of[blockIdx.x];
    warp_shared<V> &ws = reinterpret_cast<warp_shared<V> *>(shared)[warp];
    block_state &block = this_block();
    const query_share own = {q, blockIdx.x - M->of[q].first, M->of[q].blocks};
    stage_query(M->of[q], ws, lane);
    const uint32_t number = own.rank + own.blocks * warp;
    if (number < ws.items[0].query.n_items)
        fetch_small_item(X, q, number, ws.items[0], lane);
    begin_query(block, lane, ws);
    (void)search_query<P, V>(X, R, own, block, lane, ws);
    wait_copies(); /* for an item that was not searched */
}

} // namespace gx

#endif
