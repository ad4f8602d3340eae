/* small_batch_search.cuh: the ranked search for a few queries alone: one launch and nothing else.
 * What describes them are the kernel's parameters, items are found by their number, and states and
 * histograms are left as they are found: all 0. The kernel of a query alone can stay on the GPU for
 * a while and search for others, one after another, which come to it as query_slot.cuh says.
 *
 * A query has a row of the grid (blockIdx.y). Its items, a block of a list each, or a share of one,
 * in the order of the lists, go to the row's blocks of threads by turns, and to a block's warps as
 * they become free. All of the first list's come first, and once the threshold is above what a list
 * and those after it can give, the warp is finished. The last one to finish selects.
 *
 * The first threshold is weak, so whatever passes the maps is counted at once by what it has at
 * least (count_lower_bounds), and the threshold is near its end before most look-ups are made. Of a
 * large query even the maps would be asked too often: there one warp of each block does so with its
 * first item, before the others begin.
 */
#ifndef GX_QUERY_GPU_SMALL_BATCH_SEARCH_CUH
#define GX_QUERY_GPU_SMALL_BATCH_SEARCH_CUH

#include "query/gpu/query_slot.cuh"
#include "query/gpu/search.cuh"

namespace gx {

/* nothing is spilled */
template <class P> constexpr uint32_t SEARCH_BLOCKS<in_small_batch<P>> = SEARCH_BLOCKS<P> < 3 ? SEARCH_BLOCKS<P> : 3;
template <class P> constexpr bool ALWAYS_STAGED<in_small_batch<P>> = ALWAYS_STAGED<P>;
static_assert(SEARCH_BLOCKS<in_small_batch<pair_gpubp128>> * (BLOCK_BYTES + sizeof(block_state)) <= MOST_SHARED,
              "60 KB are left for L1");

/* of a query of so many, shares counted, only a warp a block begins, and the others once there is a
 * threshold */
constexpr uint32_t SEEDED_ITEMS = 2048;

/* Begin to fetch item `number` of the query that `to` already describes. */
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

/* The query and its lists, to both items of a warp. */
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

/* The block's threshold, which every now and then is asked of the others. */
__device__ __forceinline__ uint32_t refresh_threshold(const gpu_batch &R, uint32_t q, uint32_t taken,
                                                      block_state &block, uint32_t lane)
{
    if (taken % SEARCH_WARPS == 0 && taken > SEARCH_WARPS)
        (void)block_threshold::update(R, q, block_threshold::prefetch(R, q, lane), true, 0, lane);
    __syncwarp();
    return __shfl_sync(ALL_LANES, lane ? 0 : atomicOr(&block.threshold, 0), 0);
}

/* Returns what was there. What this thread knows to be written (if it releases) whoever adds later
 * sees, and it sees what those before released. A fence, which empties L1 besides, takes longer. */
__device__ __forceinline__ uint32_t add_one(uint32_t *to, bool releases)
{
    uint32_t before;
    if (releases)
        asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(to) : "memory");
    else
        asm volatile("atom.add.acquire.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(to) : "memory");
    return before;
}

/* A warp has finished. Not 0 in the first lane of the query's last one, which then sees what all
 * have written. */
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

/* All as it was before. */
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

/* A warp's part in the search for query q, which ws describes. */
template <class P, uint32_t V>
__device__ __forceinline__ void search_query_items(const gpu_index &X, const gpu_batch &R, uint32_t q, uint32_t blocks,
                                                   block_state &block, uint32_t lane, warp_shared<V> &ws)
{
    const uint32_t warp = threadIdx.x >> 5, n_items = ws.items[0].query.n_items;
    uint32_t number = blockIdx.x + blocks * warp; /* of the item */
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
            taken = atomicAdd(&block.taken, 1);
        taken = __shfl_sync(ALL_LANES, taken, 0);
        number = blockIdx.x + blocks * taken;
        wait_copies();
        const uint32_t T = refresh_threshold(R, q, taken, block, lane);
        const gpu_term &list = staged.terms[staged.item.packed & ITEM_TERM];
        if (list.filter.bound + list.weight.remaining_ub < T) { /* and so it is with all that come later */
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
        const uint32_t number = blockIdx.x + blocks * warp; /* of the item */
        const bool takes_part = blockIdx.x < blocks;
        if (takes_part && number < ws.items[0].query.n_items)
            fetch_small_item(X, q, number, ws.items[0], lane);
        if (threadIdx.x == 0) {
            block.threshold = ws.items[0].query.initial_threshold;
            block.taken = SEARCH_WARPS;
            block.seeded = block.finished = 0;
        }
        if (lane == 0)
            ws.wrote = ws.decoded = ws.lookups = ws.buffer = ws.ahead = 0;
        __syncthreads();
        if (takes_part) {
            search_query_items<P, V>(X, R, q, blocks, block, lane, ws);
            const uint32_t last = finish_warp(R, q, blocks, ws.wrote, block, lane);
            if (__shfl_sync(ALL_LANES, last, 0)) {
                __syncwarp();
                select_small_k<SPACE<V>>(R, ws.items[0].query, q, lane,
                                         reinterpret_cast<unsigned long long *>(ws.postings));
                clear_query(R, q, lane);
                if (S.linger_ns)
                    broadcast_query(S, block.message + 1, block.start_ns, lane);
            }
        }
        if (!S.linger_ns)
            return;
        wait_copies();   /* of items that are not needed any more */
        __syncthreads(); /* all have read what is set now */
        if (warp == 0)
            receive_query(S, block, lane);
        __syncthreads();
        blocks = block.query.blocks;
        if (blocks == 0)
            return;
        stage_query(block.query, ws, lane);
    }
}

} // namespace gx

#endif
