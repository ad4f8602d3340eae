/* threshold.cuh: a query's threshold, which all warps that search for it go by: read, and raised by
 * histograms of scores; documents accepted; and the best of them chosen in the end.
 */
#ifndef GX_QUERY_GPU_THRESHOLD_CUH
#define GX_QUERY_GPU_THRESHOLD_CUH

#include "query/gpu/lists.cuh"

namespace gx {

/* The state as it is now. */
__device__ __forceinline__ gpu_query_state load_query_state(const gpu_query_state *st)
{
    const uint4 x = __ldcg(reinterpret_cast<const uint4 *>(st));
    return {x.x, x.y, x.z, x.w};
}

/* The query's threshold as it is now: one value for the warp. */
__device__ __forceinline__ uint32_t current_threshold(const gpu_batch &R, uint32_t q)
{
    return __shfl_sync(ALL_LANES, __ldcg(&R.states[q].threshold), 0);
}

/* How the warps that search for a query share its threshold, and what follows from that. This is
 * the policy of batches: the query's state is all they share. Kernels of other policies pass a P
 * for which threshold_of is specialised (block_threshold.cuh). */
struct global_threshold {
    /* Whether the threshold is also raised, by count_lower_bounds, by what documents have at least,
     * before any of them is looked up. */
    static constexpr bool COUNTS_LOWER_BOUNDS = false;
    /* Whether postings ask the maps a segment at a time, from registers. */
    static constexpr bool BY_SEGMENT = false;

    /* The threshold that a warp goes by, in its first lane; it is used late. */
    static __device__ __forceinline__ uint32_t peek(const gpu_batch &R, uint32_t q)
    {
        return __ldcg(&R.states[q].threshold);
    }

    /* The threshold becomes at least t, for all; by one lane. */
    static __device__ __forceinline__ void publish(const gpu_batch &R, uint32_t q, uint32_t t)
    {
        atomicMax(&R.states[q].threshold, t);
    }

    /* Before a candidate's look-ups: what renew is told after them. */
    static __device__ __forceinline__ uint32_t prefetch(const gpu_batch &, uint32_t, uint32_t) { return 0; }

    /* After a candidate's look-ups, the warp's threshold T made newer. wanted: it has changed
     * since, or the room for candidates is small beside what would pass. */
    static __device__ __forceinline__ uint32_t update(const gpu_batch &R, uint32_t q, uint32_t, bool wanted, uint32_t T,
                                                      uint32_t)
    {
        return wanted ? max(T, current_threshold(R, q)) : T;
    }

    /* The bounds of a warp's first candidates have been counted. */
    static __device__ __forceinline__ void bounds_counted(uint32_t) {}

    /* Whether the lane's postings belong to the item, of a query whose blocks are so many items
     * each. */
    static __device__ __forceinline__ bool owns(uint32_t, uint32_t, uint32_t) { return true; }
};

template <class P> struct threshold_of {
    typedef global_threshold type;
};
template <class P> using threshold_policy = typename threshold_of<P>::type;

/* The threshold by the histogram: the lower edge of the bin that holds the k-th best so far, 0 if
 * there are fewer. It is read once, into registers; the sum over lanes stays a loop, since the
 * search's instructions barely fit into their cache. */
__device__ __forceinline__ uint32_t raise_threshold(const uint32_t *histogram, uint32_t k, uint32_t base,
                                                    uint32_t shift, uint32_t lane)
{
    constexpr uint32_t N = BINS / 128; /* four bins each, of a lane */
    const uint4 *mine = reinterpret_cast<const uint4 *>(histogram) + lane * N;
    uint32_t h[4 * N], sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < N; ++i) {
        const uint4 x = __ldcg(mine + i);
        h[4 * i] = x.x;
        h[4 * i + 1] = x.y;
        h[4 * i + 2] = x.z;
        h[4 * i + 3] = x.w;
    }
#pragma unroll
    for (uint32_t i = 0; i < 4 * N; ++i)
        sum += h[i];
    uint32_t s = sum; /* of this lane's bins and all above */
#pragma unroll 1
    for (uint32_t o = 1; o < 32; o <<= 1) {
        const uint32_t y = __shfl_down_sync(ALL_LANES, s, o);
        s += lane + o < 32 ? y : 0;
    }
    uint32_t above = s - sum, bin = 0;
    const uint32_t who = __ballot_sync(ALL_LANES, s >= k && above < k); /* one lane */
    if (who == 0)
        return 0;
#pragma unroll
    for (uint32_t i = 4 * N; i-- > 0;) {
        bin += above < k;
        above += h[i];
    }
    bin = __shfl_sync(ALL_LANES, 4 * N * (lane + 1) - bin, __ffs(who) - 1);
    return bin_score(bin, base, shift);
}

/* A key a lane, sorted: the greatest to lane 0 (bitonic). */
__device__ __forceinline__ unsigned long long sort_lanes(unsigned long long key, uint32_t lane)
{
#pragma unroll
    for (uint32_t width = 2; width <= 32; width *= 2) {
#pragma unroll
        for (uint32_t step = width / 2; step; step /= 2) {
            const unsigned long long other = __shfl_xor_sync(ALL_LANES, key, step);
            const bool greater = ((lane & step) == 0) == ((lane & width) == 0); /* it keeps the greater one */
            key = (other > key) == greater ? other : key;
        }
    }
    return key;
}

/* All of a key at once: the host may be waiting for it. */
__device__ __forceinline__ void write_key(unsigned long long *to, unsigned long long key)
{
    *(volatile unsigned long long *)to = key;
}

/* The best k <= SMALL_K of the candidates, in order, to the answer; zeros after them. */
template <uint32_t ROOM>
__device__ __noinline__ void select_small_k(const gpu_batch &R, const gpu_query &Q, uint32_t q, uint32_t lane,
                                            unsigned long long *scratch)
{
    constexpr uint32_t AT_ONCE = 8;
    const unsigned long long *from = R.candidates + Q.candidates;
    unsigned long long key[AT_ONCE];
#pragma unroll
    for (uint32_t u = 0; u < AT_ONCE; ++u) /* before it is known how many there are */
        key[u] = 32 * u + lane < Q.capacity ? __ldcg(from + 32 * u + lane) : 0;
    const gpu_query_state st = load_query_state(R.states + q);
    const uint32_t k = Q.k, n = min(st.count, Q.capacity), T = st.threshold;
    unsigned long long *to = R.answers + Q.answer;
    uint32_t kept = 0; /* what does not reach the last threshold cannot be among the best */
    for (uint32_t i = 0; i < n; i += 32 * AT_ONCE) {
#pragma unroll
        for (uint32_t u = 0; u < AT_ONCE && i; ++u)
            key[u] = i + 32 * u + lane < n ? __ldcg(from + i + 32 * u + lane) : 0;
#pragma unroll
        for (uint32_t u = 0; u < AT_ONCE; ++u) {
            const bool keep = i + 32 * u + lane < n && key[u] && (uint32_t)(key[u] >> 32) >= T;
            const uint32_t who = __ballot_sync(ALL_LANES, keep), at = kept + __popc(who & ((1u << lane) - 1));
            if (keep && at < ROOM)
                scratch[at] = key[u];
            kept += __popc(who);
        }
    }
    __syncwarp();
    const bool fits = kept <= ROOM;
    const uint32_t m = fits ? kept : n;
    unsigned long long last = ~0ull;
    uint32_t hits = 0;
    if (kept <= 32) {
        const unsigned long long key = sort_lanes(lane < kept ? scratch[lane] : 0, lane);
        if (lane < k)
            write_key(to + lane, key);
        hits = min(kept, k);
    }
    for (uint32_t r = 0; r < k && kept > 32; ++r) {
        unsigned long long best = 0;
        for (uint32_t i = lane; i < m; i += 32) {
            const unsigned long long key = fits ? scratch[i] : __ldcg(from + i);
            if (key < last && key > best)
                best = key;
        }
#pragma unroll
        for (uint32_t o = 16; o; o >>= 1) {
            const unsigned long long other = __shfl_xor_sync(ALL_LANES, best, o);
            best = other > best ? other : best;
        }
        if (lane == 0)
            write_key(to + r, best);
        hits += best != 0;
        last = best;
    }
    __syncwarp();
    if (lane == 0) /* who waits for it sees each word arrive */
        *reinterpret_cast<uint4 *>(&R.results[q]) = make_uint4(T, st.count, 0, hits);
    __syncwarp();
}

/* A document of exact score s joins the candidates: lane 0 records it, all raise the threshold. */
template <class P>
__device__ __forceinline__ uint32_t accept(const gpu_batch &R, const gpu_query &Q, uint32_t q, uint32_t s, uint32_t doc,
                                           uint32_t T, uint32_t lane)
{
    gpu_query_state *st = R.states + q;
    uint32_t *histogram = R.histograms + (size_t)q * BINS;
    const uint32_t base = Q.bin_base, shift = Q.bin_shift, k = Q.k;
    uint32_t at = 0;
    if (lane == 0) {
        atomicAdd(histogram + score_bin(s, base, shift), 1);
        at = atomicAdd(&st->count, 1);
        if (at < Q.capacity)
            R.candidates[Q.candidates + at] = (unsigned long long)gx_key(s, doc);
    }
    at = __shfl_sync(ALL_LANES, at, 0) + 1;
    if (at >= k && (at - k) % max(k / 8, 1u) == 0) { /* of many, not each raises it */
        const uint32_t t = raise_threshold(histogram, k, base, shift, lane);
        if (lane == 0 && t > T)
            threshold_policy<P>::publish(R, q, t);
        T = max(T, t);
    }
    return T;
}

} // namespace gx

#endif
