/* threshold.cuh: the threshold that the warps of a query share. The warps read it, raise it by a
 * histogram of scores, and accept candidates against it. The last warp selects the best k. */
#ifndef GX_QUERY_GPU_KERNELS_THRESHOLD_CUH
#define GX_QUERY_GPU_KERNELS_THRESHOLD_CUH

#include "query/gpu/kernels/lists.cuh"

namespace gx {

/* Loads the state, past L1. */
__device__ __forceinline__ gpu_query_state load_query_state(const gpu_query_state *st)
{
    const uint4 x = __ldcg(reinterpret_cast<const uint4 *>(st));
    return {x.x, x.y, x.z, x.w};
}

/* Returns the query's threshold as it is now, the same in all lanes. */
__device__ __forceinline__ uint32_t current_threshold(const gpu_batch &R, uint32_t q)
{
    return __shfl_sync(ALL_LANES, __ldcg(&R.states[q].threshold), 0);
}

/* A policy: how the warps of a query share its threshold. Batches use this one: the warps share
 * only the query's state in global memory. A kernel with another policy passes a P for which
 * threshold_of is specialised (block_threshold.cuh). */
struct global_threshold {
    /* Whether lower bounds of documents' scores raise the threshold, by count_lower_bounds, before
     * any look-up. */
    static constexpr bool COUNTS_LOWER_BOUNDS = false;
    /* Whether the maps filter postings one segment at a time, from registers. */
    static constexpr bool BY_SEGMENT = false;

    /* Loads the threshold into the first lane. The warp uses the value later. */
    static __device__ __forceinline__ uint32_t peek(const gpu_batch &R, uint32_t q)
    {
        return __ldcg(&R.states[q].threshold);
    }

    /* Raises the shared threshold to at least t. Called by one lane. */
    static __device__ __forceinline__ void publish(const gpu_batch &R, uint32_t q, uint32_t t)
    {
        atomicMax(&R.states[q].threshold, t);
    }

    /* Called before a candidate's look-ups. update gets the value that it returns. */
    static __device__ __forceinline__ uint32_t prefetch(const gpu_batch &, uint32_t, uint32_t) { return 0; }

    /* Called after a candidate's look-ups. Returns the warp's threshold T, raised to the shared
     * one. wanted: the shared one may have risen, or the room for candidates is small beside their
     * number. */
    static __device__ __forceinline__ uint32_t update(const gpu_batch &R, uint32_t q, uint32_t, bool wanted, uint32_t T,
                                                      uint32_t)
    {
        return wanted ? max(T, current_threshold(R, q)) : T;
    }

    /* Called when the warp has counted the lower bounds of its first candidates. */
    static __device__ __forceinline__ void bounds_counted(uint32_t) {}

    /* Whether the lane's postings belong to the item. Blocks of the query are divided into
     * `shares` items. */
    static __device__ __forceinline__ bool owns(uint32_t, uint32_t, uint32_t) { return true; }
    /* Whether the item's blocks are counted as decoded, where other items have them too. */
    static __device__ __forceinline__ bool counts_blocks(uint32_t) { return true; }
};

template <class P> struct threshold_of {
    typedef global_threshold type;
};
template <class P> using threshold_policy = typename threshold_of<P>::type;

/* Returns the threshold that the histogram gives: the lower edge of the bin that holds the k-th
 * best score so far, or 0 if there are fewer than k. The histogram is read once, into registers.
 * The sum over lanes is not unrolled, because the search barely fits into the instruction cache. */
__device__ __forceinline__ uint32_t raise_threshold(const uint32_t *histogram, uint32_t k, uint32_t base,
                                                    uint32_t shift, uint32_t lane)
{
    constexpr uint32_t N = BINS / 128; /* loads a lane, each of four bins */
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
    uint32_t s = sum; /* sum over this lane's bins and all higher ones */
#pragma unroll 1
    for (uint32_t o = 1; o < 32; o <<= 1) {
        const uint32_t y = __shfl_down_sync(ALL_LANES, s, o);
        s += lane + o < 32 ? y : 0;
    }
    uint32_t above = s - sum, bin = 0;
    const uint32_t who = __ballot_sync(ALL_LANES, s >= k && above < k); /* true in one lane at most */
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

/* Sorts one key a lane, the greatest to lane 0 (bitonic). */
__device__ __forceinline__ unsigned long long sort_lanes(unsigned long long key, uint32_t lane)
{
#pragma unroll
    for (uint32_t width = 2; width <= 32; width *= 2) {
#pragma unroll
        for (uint32_t step = width / 2; step; step /= 2) {
            const unsigned long long other = __shfl_xor_sync(ALL_LANES, key, step);
            /* whether this lane keeps the greater key */
            const bool greater = ((lane & step) == 0) == ((lane & width) == 0);
            key = (other > key) == greater ? other : key;
        }
    }
    return key;
}

/* Writes a key by one store, since the host may be polling it. */
__device__ __forceinline__ void write_key(unsigned long long *to, unsigned long long key)
{
    *(volatile unsigned long long *)to = key;
}

/* Writes the best k <= SMALL_K of the candidates to the answer, in order, followed by zeros. */
template <uint32_t ROOM>
__device__ __noinline__ void select_small_k(const gpu_batch &R, const gpu_query &Q, uint32_t q, uint32_t lane,
                                            unsigned long long *scratch)
{
    constexpr uint32_t AT_ONCE = 8;
    const unsigned long long *from = R.candidates + Q.candidates;
    unsigned long long key[AT_ONCE];
#pragma unroll
    for (uint32_t u = 0; u < AT_ONCE; ++u) /* loaded before the number of candidates is known */
        key[u] = 32 * u + lane < Q.capacity ? __ldcg(from + 32 * u + lane) : 0;
    const gpu_query_state st = load_query_state(R.states + q);
    const uint32_t k = Q.k, n = min(st.count, Q.capacity), T = st.threshold;
    unsigned long long *to = R.answers + Q.answer;
    uint32_t kept = 0; /* only keys that reach the final threshold can be among the best */
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
    if (lane == 0) /* the host polls each word */
        *reinterpret_cast<uint4 *>(&R.results[q]) = make_uint4(T, st.count, 0, hits);
    __syncwarp();
}

/* Accepts a document of exact score s: lane 0 records the candidate, and the warp may raise the
 * threshold. Returns the threshold. */
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
    if (at >= k && (at - k) % max(k / 8, 1u) == 0) { /* for a large k, not every candidate raises it */
        const uint32_t t = raise_threshold(histogram, k, base, shift, lane);
        if (lane == 0 && t > T)
            threshold_policy<P>::publish(R, q, t);
        T = max(T, t);
    }
    return T;
}

/* Accepts the documents of the lanes in `who`, at least one. As accept. */
template <class P>
__device__ __forceinline__ uint32_t accept_all(const gpu_batch &R, const gpu_query &Q, uint32_t q, uint32_t s,
                                               uint32_t doc, uint32_t who, uint32_t T, uint32_t lane)
{
    gpu_query_state *st = R.states + q;
    uint32_t *histogram = R.histograms + (size_t)q * BINS;
    const uint32_t k = Q.k, n = __popc(who), leader = __ffs(who) - 1, step = max(k / 8, 1u);
    uint32_t first = 0;
    if (lane == leader)
        first = atomicAdd(&st->count, n);
    first = __shfl_sync(ALL_LANES, first, leader);
    if (who >> lane & 1) {
        const uint32_t at = first + __popc(who & ((1u << lane) - 1));
        atomicAdd(histogram + score_bin(s, Q.bin_base, Q.bin_shift), 1);
        if (at < Q.capacity)
            R.candidates[Q.candidates + at] = (unsigned long long)gx_key(s, doc);
    }
    __syncwarp();
    if (first + n >= k && (first < k || (first + n - k) / step != (first - k) / step)) {
        const uint32_t t = raise_threshold(histogram, k, Q.bin_base, Q.bin_shift, lane);
        if (lane == 0 && t > T)
            threshold_policy<P>::publish(R, q, t);
        T = max(T, t);
    }
    return T;
}

} // namespace gx

#endif
