/* The search of the documents that a rare filter selects. They come from the order of an attribute's
 * column, not from a list of the query. They take the place of the query's lists from `position` on:
 *
 *   lists before `position`    read as ever (search.cuh), their postings tested by the filter
 *   the filter's documents     looked up in the maps of the lists from `position` on, best bound first,
 *                              tested, and scored as postings are
 *
 * A document that an earlier list holds is that list's; others have postings in the later lists alone.
 * So the documents are a list of the query, without an impact, in front of the lists that they replace. */
#include "query/gpu/kernels.cuh"
#include "query/gpu/search.cuh"

namespace gx {

/* Marks a decoder pair as that of this kernel. */
template <class P> struct of_documents : P {
};
template <class P> constexpr bool HAS_LIST<of_documents<P>> = false;

constexpr uint32_t DOCUMENTS_V = BATCH / 32, DOCUMENTS_BLOCKS = 4; /* thread blocks per SM */
constexpr uint32_t DOCUMENTS_SPACE = BATCH + MAX_QUEUED;

/* A warp's shared memory. The query's terms have one more, for the documents. */
struct alignas(16) documents_shared {
    staged_item staged; /* its item.query, and the query */
    gpu_term terms[SHORT_QUERY_TERMS + 1 + MAX_TESTS / TESTS_A_TERM];
    uint2 postings[SPACE<DOCUMENTS_V>]; /* the queue, at the end */
    uint32_t n_queued, lookups, wrote;
};
static_assert(DOCUMENTS_SPACE <= SPACE<DOCUMENTS_V>, "the queue has room");

/* Returns the number of the documents, of n in order of first_item, to which the item belongs. */
__device__ __forceinline__ uint32_t find_documents(const selected_documents *of, uint32_t n, uint32_t item,
                                                   uint32_t lane)
{
    uint32_t begin = 0, step = 1;
    while (step * 32 < n)
        step *= 32;
    for (; step; step /= 32) { /* of[begin].first_item <= item */
        const uint32_t i = begin + step * lane;
        const uint32_t who = __ballot_sync(ALL_LANES, i < n && __ldg(&of[i < n ? i : 0].first_item) <= item);
        begin += step * (31 - __clz(who));
    }
    return begin;
}

/* Copies the query, and its terms with one for the documents among them. The tests stay behind. */
__device__ __forceinline__ void stage_documents(const gpu_batch &R, const selected_documents &D, uint32_t lane,
                                                documents_shared &ws)
{
    constexpr uint32_t PIECES = sizeof(gpu_term) / 16;
    const gpu_query *Q = R.queries + D.query;
    if (lane < sizeof(gpu_query) / 16)
        reinterpret_cast<uint4 *>(&ws.staged.query)[lane] = __ldg(reinterpret_cast<const uint4 *>(Q) + lane);
    __syncwarp();
    const gpu_query &own = ws.staged.query;
    const uint4 *from = reinterpret_cast<const uint4 *>(R.terms + own.first_term);
    const uint32_t n = count_room(own.n_terms, own.flags) * PIECES, before = D.position * PIECES;
    for (uint32_t i = lane; i < n; i += 32)
        reinterpret_cast<uint4 *>(ws.terms)[i < before ? i : i + PIECES] = __ldg(from + i);
    if (lane == 0) {
        gpu_term t = {};
        t.filter = {0, NO_MAP_SHIFT, 0, NO_CLASSES};
        t.weight.remaining_ub = D.bound;
        ws.terms[D.position] = t;
        ws.staged.item.query = D.query;
    }
    __syncwarp();
}

/* A warp searches documents [begin, end). */
template <class P>
__device__ __forceinline__ void search_range(const gpu_index &X, const gpu_batch &R, const selected_documents &D,
                                             uint32_t begin, uint32_t end, uint32_t lane, documents_shared &ws)
{
    typedef of_documents<P> documents;
    constexpr uint32_t V = DOCUMENTS_V;
    const gpu_query &Q = ws.staged.query;
    const item_lists L = {ws.terms, Q.n_terms + 1, D.position, (Q.flags & QUERY_AND) != 0};
    uint2 *const queue_end = ws.postings + SPACE<V>;
    uint32_t T = current_threshold(R, D.query), n_queued = 0;
    for (uint32_t at = begin; at < end && D.bound >= T; at += BATCH) {
        uint32_t d[V], f[V];
#pragma unroll
        for (uint32_t v = 0; v < V; ++v) {
            const uint32_t i = at + 32 * v + lane;
            f[v] = i < end;
            d[v] = i < end ? __ldcs(D.docids + i) : 0;
        }
        const uint32_t now = __ldcg(&R.states[D.query].threshold); /* the load ends while the maps are read */
        const int slack = L.conjunctive ? 0 : (int)(D.bound - T);
        n_queued = filter<true, V>(X, Q, L, lane ? slack : -1, d, f, queue_end, &ws.n_queued, n_queued);
        T = max(T, __shfl_sync(ALL_LANES, now, 0));
        const bool ends = at + BATCH >= end;
        while (n_queued > MAX_QUEUED || (n_queued && ends)) {
            const uint32_t take = min(n_queued, 32u);
            const uint2 posting = lane < take ? queue_end[(int)lane - (int)n_queued] : make_uint2(0, 1);
            n_queued -= take;
            T = score<documents, true>(X, R, ws.staged, L, posting, lane < take, T, lane, ws);
            __syncwarp();
        }
    }
}

template <class P>
static __global__ void __launch_bounds__(SEARCH_WARPS * 32, DOCUMENTS_BLOCKS)
    search_selected(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R,
                    const __grid_constant__ documents_batch B)
{
    extern __shared__ uint4 shared[];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    documents_shared &ws = reinterpret_cast<documents_shared *>(shared)[warp];
    uint32_t staged = NO_QUERY;
    if (lane == 0)
        ws.lookups = 0;
    for (;;) {
        uint32_t item = 0;
        if (lane == 0)
            item = atomicAdd(B.next_item, 1);
        item = __shfl_sync(ALL_LANES, item, 0);
        if (item >= B.n_items)
            break;
        const uint32_t number = find_documents(B.of, B.n, item, lane);
        const selected_documents D = B.of[number];
        if (number != staged)
            stage_documents(R, D, lane, ws);
        staged = number;
        if (lane == 0)
            ws.wrote = 0;
        const uint32_t after = ws.staged.query.after, begin = (item - D.first_item) * DOCUMENTS_ITEM;
        if (after == NO_QUERY || __ldcg(&R.states[after].count) < ws.staged.query.k)
            search_range<P>(X, R, D, begin, min(begin + DOCUMENTS_ITEM, D.n), lane, ws);
        __syncwarp();
        finish_item<DOCUMENTS_V>(R, ws.staged, lane, ws);
        __syncwarp();
    }
    if (lane == 0 && ws.lookups)
        atomicAdd(R.counts + COUNT_LOOKUPS, (unsigned long long)ws.lookups);
}

static constexpr size_t SHARED_BYTES = SEARCH_WARPS * sizeof(documents_shared);

uint32_t documents_grid(uint32_t coding, uint32_t multiprocessors)
{
    int each = 0;
    with_pair(coding, [&](auto pair) {
        (void)cudaFuncSetAttribute(search_selected<decltype(pair)>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)SHARED_BYTES);
        (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, search_selected<decltype(pair)>, SEARCH_WARPS * 32,
                                                            SHARED_BYTES);
    });
    return multiprocessors * (uint32_t)(each > 0 ? each : 1);
}

void search_documents(const gpu_index &X, uint32_t coding, const gpu_batch &R, const documents_batch &B, uint32_t grid,
                      cudaStream_t stream)
{
    const uint32_t blocks = min(grid, (B.n_items + SEARCH_WARPS - 1) / SEARCH_WARPS);
    if (B.n_items == 0)
        return;
    with_pair(coding, [&](auto pair) {
        search_selected<decltype(pair)><<<blocks, SEARCH_WARPS * 32, SHARED_BYTES, stream>>>(X, R, B);
    });
}

} // namespace gx
