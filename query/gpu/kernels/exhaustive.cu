/* The exhaustive search scores every posting of every list. A thread block owns one tile of docids
 * of one query. It decodes the blocks that overlap the tile, sums impacts in shared memory, and
 * makes each matching document a candidate. It uses no map, bound or threshold, so the ranked
 * search is tested against it. */
#include "query/gpu/kernels/kernels.cuh"

namespace gx {

constexpr uint32_t TILE = 8192, THREADS = 512;

struct tile_space {
    uint32_t scores[TILE];
    uint32_t holders[TILE / 2]; /* number of lists that hold the document, 16 bits each */
};

/* Returns the first block whose head is >= doc, or n_blocks. */
__device__ __forceinline__ uint32_t first_head(const uint32_t *heads, uint32_t n_blocks, uint32_t doc)
{
    uint32_t lo = 0, hi = n_blocks;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (__ldg(heads + mid) < doc)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Adds the postings of list t in [begin, end) to the tile. */
template <class P>
__device__ __forceinline__ void add_list(const gpu_index &X, const gpu_term *t, gx_scorer norm, uint32_t begin,
                                         uint32_t end, tile_space &s)
{
    const term_blocks at = read(&t->at);
    const term_payload p = read(&t->payload);
    const term_weight weight = read(&t->weight);
    const whole_list l = view_list(X, p.words, at.first_block, p.df, at.n_blocks, weight.codecs);
    const uint32_t from = first_head(l.heads, l.n_blocks, begin), to = first_head(l.heads, l.n_blocks, end);
    for (uint32_t j = (from ? from - 1 : 0) + (threadIdx.x >> 5); j < to; j += THREADS / 32) {
        for_block<P>(X, l, j, threadIdx.x & 31, [&](uint32_t doc, uint32_t tf) {
            if (doc < begin || doc >= end)
                return;
            const float K = gx_bm25_K(norm, __ldg(X.doc_lens + doc));
            atomicAdd(&s.scores[doc - begin], gx_bm25_impact(weight.w, tf, K));
            atomicAdd(&s.holders[(doc - begin) >> 1], 1u << ((doc - begin) & 1) * 16);
        });
    }
}

template <class P>
static __global__ void __launch_bounds__(THREADS)
    exhaust(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R, uint32_t first)
{
    __shared__ tile_space s;
    const uint32_t q = first + blockIdx.y, begin = blockIdx.x * TILE, end = min(begin + TILE, X.n_docs),
                   lane = threadIdx.x & 31;
    const gpu_query Q = R.queries[q];
    gpu_query_state *st = R.states + q;
    if (!(Q.flags & QUERY_EXHAUSTIVE) || (Q.after != NO_QUERY && __ldcg(&R.states[Q.after].count) >= Q.k))
        return;
    for (uint32_t i = threadIdx.x; i < TILE; i += THREADS)
        s.scores[i] = 0;
    for (uint32_t i = threadIdx.x; i < TILE / 2; i += THREADS)
        s.holders[i] = 0;
    __syncthreads();
    const gx_scorer norm = query_scorer(Q);
    for (uint32_t j = 0; j < Q.n_terms; ++j)
        add_list<P>(X, R.terms + Q.first_term + j, norm, begin, end, s);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < TILE; i += THREADS) {
        const uint32_t score = s.scores[i], holders = s.holders[i >> 1] >> (i & 1) * 16 & 0xffff;
        const bool holds = Q.flags & QUERY_AND ? holders == Q.n_terms : score != 0;
        const bool match = holds && is_selected(Q, R.terms + Q.first_term, begin + i);
        const uint32_t who = __ballot_sync(ALL_LANES, match);
        uint32_t at = 0;
        if (lane == 0 && who)
            at = atomicAdd(&st->count, __popc(who));
        at = __shfl_sync(ALL_LANES, at, 0) + __popc(who & ((1u << lane) - 1));
        if (match && at < Q.capacity)
            R.candidates[Q.candidates + at] = (unsigned long long)gx_key(score, begin + i);
    }
}

void search_exhaustively(const gpu_index &X, uint32_t coding, const gpu_batch &R, uint32_t first, uint32_t n,
                         cudaStream_t stream)
{
    if (n == 0 || X.n_docs == 0)
        return;
    with_pair(coding, [&](auto pair) {
        exhaust<decltype(pair)><<<dim3((X.n_docs - 1) / TILE + 1, n), THREADS, 0, stream>>>(X, R, first);
    });
}

} // namespace gx
