/* The search of the documents that a rare filter selects. They come from the groups of an attribute's
 * values, not from a list of the query. They take the place of the query's lists from `position` on:
 *
 *   lists before `position`    read as ever (search.cuh), their postings tested by the filter
 *   the filter's documents     looked up in the maps of the lists from `position` on, best bound first,
 *                              tested, and scored as postings are
 *
 * A document that an earlier list holds is that list's; others have postings in the later lists alone.
 * So the documents are a list of the query, without an impact, in front of the lists that they replace.
 * They come in runs (columns.cuh), which a warp reads side by side. */
#include "query/gpu/kernels/kernels.cuh"
#include "query/gpu/kernels/search.cuh"

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
    uint32_t from[MAX_RUNS];            /* of each run: where its documents of this batch begin in docids, less .. */
    uint32_t before[MAX_RUNS];          /* .. the documents that earlier runs have in this batch */
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

/* Returns the first place of docids[begin, end), which rise, whose docid is at least doc. */
__device__ __forceinline__ uint32_t first_docid(const uint32_t *docids, uint32_t begin, uint32_t end, uint32_t doc)
{
    while (begin < end) {
        const uint32_t middle = begin + (end - begin) / 2;
        if (__ldg(docids + middle) < doc)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* The documents of an item, in batches of up to BATCH. A batch has the next documents of all runs up to some
 * docid, so that they share sectors of the maps. Lane r has run r. */
struct document_cursor {
    uint32_t at, stop; /* the run's documents that are left */
    uint32_t quota;    /* documents of a run in a batch, at most */
    uint32_t last; /* docid of the last document that a batch can have of this run; UINT32_MAX: of all that are left */

    __device__ __forceinline__ void open(const selected_documents &D, uint32_t item, uint32_t lane)
    {
        const uint32_t span = D.end - D.begin, number = item - D.first_item;
        const uint32_t begin = D.begin + (uint32_t)((uint64_t)span * number / D.n_items),
                       end = D.begin + (uint32_t)((uint64_t)span * (number + 1) / D.n_items);
        at = stop = 0;
        quota = BATCH / (D.n_runs ? D.n_runs : 1);
        if (lane < D.n_runs) {
            const uint32_t from = __ldg(D.starts + lane), to = __ldg(D.starts + lane + 1);
            at = first_docid(D.docids, from, to, begin);
            stop = first_docid(D.docids, at, to, end);
        }
        look_ahead(D);
    }

    __device__ __forceinline__ void look_ahead(const selected_documents &D)
    {
        last = stop - at > quota ? __ldg(D.docids + at + quota - 1) : UINT32_MAX;
    }

    /* Describes the next batch in ws, and moves behind it. Returns its number of documents, 0 at the end. */
    __device__ __forceinline__ uint32_t next(const selected_documents &D, uint32_t lane, documents_shared &ws)
    {
        const uint32_t up_to = ~__reduce_max_sync(ALL_LANES, ~last), most = min(quota, stop - at);
        uint32_t n = most;
        if (up_to != UINT32_MAX && last != up_to)
            n = first_docid(D.docids, at, at + most, up_to + 1) - at;
        uint32_t sum = n;
#pragma unroll
        for (uint32_t o = 1; o < 32; o <<= 1) {
            const uint32_t y = __shfl_up_sync(ALL_LANES, sum, o);
            sum += lane >= o ? y : 0;
        }
        ws.before[lane] = sum - n;
        ws.from[lane] = at - (sum - n);
        at += n;
        look_ahead(D);
        __syncwarp();
        return __shfl_sync(ALL_LANES, sum, 31);
    }
};

/* Returns document i of the batch. */
__device__ __forceinline__ uint32_t batch_docid(const selected_documents &D, uint32_t i, const documents_shared &ws)
{
    uint32_t run = 0;
    for (uint32_t step = MAX_RUNS / 2; step; step /= 2) {
        if (run + step < D.n_runs && ws.before[run + step] <= i)
            run += step;
    }
    return __ldg(D.docids + (ws.from[run] + i));
}

/* A warp searches the documents of an item. */
template <class P>
__device__ __forceinline__ void search_range(const gpu_index &X, const gpu_batch &R, const selected_documents &D,
                                             uint32_t item, uint32_t lane, documents_shared &ws)
{
    typedef of_documents<P> documents;
    constexpr uint32_t V = DOCUMENTS_V;
    const gpu_query &Q = ws.staged.query;
    const item_lists L = {ws.terms, Q.n_terms + 1, D.position, (Q.flags & QUERY_AND) != 0};
    uint2 *const queue_end = ws.postings + SPACE<V>;
    uint32_t T = current_threshold(R, D.query), n_queued = 0;
    document_cursor cursor;
    if (D.bound < T)
        return;
    cursor.open(D, item, lane);
    for (uint32_t n; D.bound >= T;) {
        n = cursor.next(D, lane, ws);
        uint32_t d[V], f[V];
#pragma unroll
        for (uint32_t v = 0; v < V; ++v) {
            const uint32_t i = 32 * v + lane;
            f[v] = i < n;
            d[v] = i < n ? batch_docid(D, i, ws) : 0;
        }
        const uint32_t now = __ldcg(&R.states[D.query].threshold); /* the load ends while the maps are read */
        const int slack = L.conjunctive ? 0 : (int)(D.bound - T);
        if (n)
            n_queued = filter<true, V>(X, Q, L, lane ? slack : -1, d, f, queue_end, &ws.n_queued, n_queued);
        T = max(T, __shfl_sync(ALL_LANES, now, 0));
        while (n_queued > MAX_QUEUED || (n_queued && n == 0)) {
            const uint32_t take = min(n_queued, 32u);
            const uint2 posting = lane < take ? queue_end[(int)lane - (int)n_queued] : make_uint2(0, 1);
            n_queued -= take;
            T = score<documents, true>(X, R, ws.staged, L, posting, lane < take, T, lane, ws);
            __syncwarp();
        }
        if (n == 0)
            break;
        __syncwarp(); /* all lanes have read the description of the batch */
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
        const uint32_t after = ws.staged.query.after;
        if (after == NO_QUERY || __ldcg(&R.states[after].count) < ws.staged.query.k)
            search_range<P>(X, R, D, item, lane, ws);
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
