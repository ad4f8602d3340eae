/* list_queue.cuh: the ranked search (search.cuh) of a batch of few queries that has the GPU to itself when it begins.
 * In a larger batch all lists' items are in the queue from the start, and most items of later lists are taken in vain:
 * in a batch of 256 queries that took a quarter of the time. Here a query's lists enter the queue in turn. When the
 * item of a list's middle block is finished (ITEM_OPENS_NEXT), the next list enters, unless the threshold exceeds what
 * it and all later lists can contribute; then no later list enters either. A query is finished with its last item:
 * gpu_query_state.done begins at minus the number of its queued items, and counts up to 0.
 *
 * Items have tickets. A warp has one ticket besides the item that it searches, so that a warp that is late holds back
 * few items. It waits until the ticket's item is written or all queries are finished. Only warps that run have
 * tickets, and none waits before its own items are finished. So the wait ends even if some of the grid's thread blocks
 * cannot run before others end.
 *
 * If the queries are so few that warps would be idle, each block of a short list is MAX_SHARES items (ITEM_SHARED).
 * Its terms are rare, many of its postings need look-ups, and look-ups of one item are made one by one. */
#ifndef GX_QUERY_GPU_KERNELS_LIST_QUEUE_CUH
#define GX_QUERY_GPU_KERNELS_LIST_QUEUE_CUH

#include "query/gpu/kernels/query_slot.cuh"
#include "query/gpu/kernels/search.cuh"

namespace gx {

/* The policy of its threshold: that of large batches, with shares of blocks. */
struct shared_blocks_threshold : global_threshold {
    static __device__ __forceinline__ bool owns(uint32_t, uint32_t what, uint32_t lane)
    {
        return !(what & ITEM_SHARED) || lane % MAX_SHARES == (what >> ITEM_SHARE & (MAX_SHARES - 1));
    }
    static __device__ __forceinline__ bool counts_blocks(uint32_t what)
    {
        return !(what & ITEM_SHARED) || (what >> ITEM_SHARE & (MAX_SHARES - 1)) == 0;
    }
};

/* Marks a decoder pair as that of this kernel. */
template <class P> struct in_turn : P {
};
template <class P> struct threshold_of<in_turn<P>> {
    typedef shared_blocks_threshold type;
};
template <class P> constexpr uint32_t SEARCH_BLOCKS<in_turn<P>> = SEARCH_BLOCKS<P>;
template <class P> constexpr bool ALWAYS_STAGED<in_turn<P>> = ALWAYS_STAGED<P>;
template <class P> constexpr bool READS_TESTS<in_turn<P>> = READS_TESTS<P>;
/* the kernel has a word more */
static_assert(SEARCH_BLOCKS<in_turn<pair_gpubp128>> * (BLOCK_BYTES + 128) <= MOST_SHARED, "60 KB are left for L1");

/* Whether an item has been written. The queue's room is 0 before, and neither half of an item is: 8 bytes are
 * written at once. */
__device__ __forceinline__ bool is_written(uint4 item)
{
    return (item.x | item.y) && item.w;
}

/* Returns the word that says whether all queries are finished. Thread blocks have different ones, because thousands
 * of warps may read it at the same time. */
__device__ __forceinline__ volatile uint32_t *end_of_queue(const list_queue &L, uint32_t block)
{
    return L.state + QUEUE_ENDED + block % QUEUE_ENDS * QUEUE_STRIDE;
}

/* Waits for the item of a ticket, and puts it to `fetched`. Returns false if all queries are finished before it is
 * written. */
__device__ __noinline__ bool await_item(const list_queue &L, uint32_t ticket, gpu_item *fetched, uint32_t lane)
{
    uint32_t there = 0, ended = ticket >= L.room;
    while (!there && !ended) {
        if (lane == 0) {
            const uint4 item = read_slot(reinterpret_cast<const uint4 *>(L.items) + ticket);
            there = is_written(item);
            ended = *end_of_queue(L, blockIdx.x);
            if (there)
                *reinterpret_cast<uint4 *>(fetched) = item;
            else if (!ended)
                __nanosleep(200);
        }
        there = __shfl_sync(ALL_LANES, there, 0);
        ended = __shfl_sync(ALL_LANES, ended, 0);
    }
    __syncwarp();
    return there;
}

/* Queues list number `list` of the query. Its items are the shorter, the more warps wait. */
__device__ __forceinline__ void queue_list(const gpu_batch &R, const list_queue &L, const staged_item &staged,
                                           uint32_t list, uint32_t lane)
{
    const term_blocks at = read(&staged.terms[list].at);
    const uint32_t q = staged.item.query;
    uint32_t taken = 0, end = 0, first = 0;
    if (lane == 0) {
        taken = *(volatile uint32_t *)(L.state + QUEUE_TAKEN);
        end = *(volatile uint32_t *)(L.state + QUEUE_END);
    }
    const int waiting = (int)(__shfl_sync(ALL_LANES, taken, 0) - __shfl_sync(ALL_LANES, end, 0));
    item_range range = {staged.query.first_term + list, 0, 0, L.item_blocks};
    uint32_t n = count_items(at.n_blocks, L.item_blocks);
    if (at.n_blocks <= L.shared) {
        n = at.n_blocks * MAX_SHARES;
        range.item_blocks = SHARED_BLOCK;
    } else if (at.n_blocks <= L.spread) {
        while (range.item_blocks > 1 && (int)count_items(at.n_blocks, range.item_blocks / 2) <= waiting)
            range.item_blocks /= 2;
        n = count_items(at.n_blocks, range.item_blocks);
    }
    if (lane == 0) {
        atomicAdd(&R.states[q].done, 0 - n);
        __threadfence();
        first = atomicAdd(L.state + QUEUE_END, n);
    }
    __syncwarp(); /* `done` is known before the items */
    first = __shfl_sync(ALL_LANES, first, 0);
    for (uint32_t i = lane; i < n; i += 32) {
        const gpu_item it = make_range_item(range, at, q, &staged.query, i);
        const uint32_t opens = i == n / 2 ? ITEM_OPENS_NEXT : 0;
        write_slot(reinterpret_cast<uint4 *>(L.items) + first + i,
                   make_uint4(it.block, it.packed | opens, it.query, it.query_terms));
    }
    __syncwarp();
}

/* Queues the query's next list, if it can contribute to the answer. */
__device__ __forceinline__ void open_next_list(const gpu_batch &R, const list_queue &L, const staged_item &staged,
                                               uint32_t lane)
{
    const uint32_t next = (staged.item.packed & ITEM_TERM) - staged.query.first_term + 1;
    if (next == staged.query.n_terms || staged.query.flags & QUERY_AND)
        return;
    const uint32_t most = staged.terms[next].filter.bound + staged.terms[next].weight.remaining_ub;
    if (most >= current_threshold(R, staged.item.query))
        queue_list(R, L, staged, next, lane);
}

/* Counts a finished item. Returns, in the first lane, whether all items of the query are finished; the lane then sees
 * what they wrote. */
__device__ __forceinline__ bool count_item(const gpu_batch &R, uint32_t q, bool wrote)
{
    if (wrote)
        __threadfence();
    const bool last = atomicAdd(&R.states[q].done, 1) + 1 == 0;
    if (last)
        __threadfence();
    return last;
}

/* After an item with ITEM_OPENS_NEXT, which is not counted yet, or the last item of a query. */
template <uint32_t V>
__device__ __noinline__ void advance_query(const gpu_batch &R, const list_queue &L, const staged_item &staged,
                                           uint32_t lane, warp_shared<V> &ws)
{
    bool last = true;
    if (staged.item.packed & ITEM_OPENS_NEXT) {
        open_next_list(R, L, staged, lane);
        last = lane == 0 && count_item(R, staged.item.query, ws.wrote);
        last = __shfl_sync(ALL_LANES, last, 0);
    }
    if (!last)
        return;
    __syncwarp();
    if (staged.query.k <= SMALL_K)
        select_small_k<SPACE<V>>(R, staged.query, staged.item.query, lane,
                                 reinterpret_cast<unsigned long long *>(ws.postings));
    uint32_t finished = 0;
    if (lane == 0)
        finished = atomicAdd(L.state + QUEUE_FINISHED, 1) + 1;
    if (__shfl_sync(ALL_LANES, finished, 0) == L.n_queries)
        *end_of_queue(L, lane) = 1;
}

/* Takes a ticket and starts copying its item. Returns the ticket in the first lane. */
__device__ __forceinline__ uint32_t take_ticket(const list_queue &L, gpu_item *fetched)
{
    const uint32_t ticket = atomicAdd(L.state + QUEUE_TAKEN, 1);
    if (ticket < L.room)
        cp_async_16(fetched, L.items + ticket);
    else
        *fetched = {0, 0, 0, 0};
    return ticket;
}

template <class P>
__global__ void __launch_bounds__(SEARCH_WARPS * 32, SEARCH_BLOCKS<P>)
    search_in_turn(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R,
                   const __grid_constant__ list_queue L)
{
    constexpr uint32_t V = P::template doc<true>::V;
    extern __shared__ uint4 shared[];
    __shared__ uint32_t first_ticket;
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    warp_shared<V> &ws = reinterpret_cast<warp_shared<V> *>(shared)[warp];
    if (threadIdx.x == 0)
        first_ticket = atomicAdd(L.state + QUEUE_TAKEN, SEARCH_WARPS);
    if (lane == 0) {
        ws.decoded = ws.lookups = ws.buffer = ws.next_staged = 0;
        ws.fetched = {0, 0, 0, 0};
    }
    __syncthreads();
    /* The warp has one ticket besides the item that it searches, so that it holds back few items if it is late. */
    uint32_t ticket = first_ticket + warp;
    bool has_item = false; /* items[which] is described */
    for (uint32_t which = 0;; which ^= 1) {
        wait_copies();
        const uint4 *const fetched = reinterpret_cast<const uint4 *>(&ws.fetched);
        bool more = __all_sync(ALL_LANES, is_written(*fetched)); /* all lanes have read it */
        if (!has_item && !more) {
            if (!await_item(L, ticket, &ws.fetched, lane))
                break;
            more = true;
        }
        if (more) {
            const uint4 x = *fetched;
            __syncwarp();
            fetch_item<false>(X, R, {x.x, x.y, x.z, x.w}, ws.items[which ^ 1], lane);
        }
        uint32_t special = 0;
        if (has_item) {
            if (lane == 0)
                ws.wrote = 0;
            search_item<P, false, V>(X, R, ws.items[which], ws.items[which ^ 1], more, lane, ws);
            __syncwarp();
            special = ws.items[which].item.packed & ITEM_OPENS_NEXT;
            if (!special && lane == 0)
                special = count_item(R, ws.items[which].item.query, ws.wrote);
        }
        if (more && lane == 0)
            ticket = take_ticket(L, &ws.fetched);
        ticket = __shfl_sync(ALL_LANES, ticket, 0);
        if (__shfl_sync(ALL_LANES, special, 0))
            advance_query<V>(R, L, ws.items[which], lane, ws);
        has_item = more;
    }
    wait_copies();
    if (lane == 0 && (ws.decoded | ws.lookups)) {
        atomicAdd(R.counts + COUNT_DECODED, (unsigned long long)ws.decoded);
        atomicAdd(R.counts + COUNT_LOOKUPS, (unsigned long long)ws.lookups);
    }
}

} // namespace gx

#endif
