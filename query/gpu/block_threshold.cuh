/* block_threshold.cuh: how the kernel for a few queries (small_batch_search.cuh) shares a query's
 * threshold: each block of threads has a copy of it in shared memory. Thousands of warps search for
 * one query there, and wait for each other if all of them read its state at once.
 */
#ifndef GX_QUERY_GPU_BLOCK_THRESHOLD_CUH
#define GX_QUERY_GPU_BLOCK_THRESHOLD_CUH

#include "query/gpu/threshold.cuh"

namespace gx {

/* Of a block of threads that all search for one of a few queries. Warps use it by atomics alone. */
struct block_state {
    /* of the query, as it was when a warp last asked: thousands of warps that ask at once wait for
     * each other */
    uint32_t threshold;
    uint32_t taken;    /* items */
    uint32_t seeded;   /* the first warp has counted what its first item's documents have at least */
    uint32_t finished; /* warps | those of them that wrote, << 16 */
    /* Of a kernel that stays: */
    unsigned long long start_ns; /* ns */
    uint32_t message; /* the number of the last message, which is query; at first what that would have been */
    small_query query;
};

__device__ __forceinline__ block_state &this_block()
{
    __shared__ block_state block;
    return block;
}

/* See global_threshold, whose functions these are. */
struct block_threshold {
    static constexpr bool COUNTS_LOWER_BOUNDS = true, BY_SEGMENT = true;

    static __device__ __forceinline__ uint32_t peek(const gpu_batch &, uint32_t)
    {
        return threadIdx.x % 32 ? 0 : atomicOr(&this_block().threshold, 0);
    }

    static __device__ __forceinline__ void publish(const gpu_batch &R, uint32_t q, uint32_t t)
    {
        atomicMax(&R.states[q].threshold, t);
        atomicMax(&this_block().threshold, t);
    }

    static __device__ __forceinline__ uint32_t prefetch(const gpu_batch &R, uint32_t q, uint32_t lane)
    {
        return lane == 0 ? __ldcg(&R.states[q].threshold) : 0; /* it comes while the look-ups are made */
    }

    static __device__ __forceinline__ uint32_t update(const gpu_batch &, uint32_t, uint32_t asked, bool, uint32_t T,
                                                      uint32_t lane)
    {
        const uint32_t now = __shfl_sync(ALL_LANES, asked, 0);
        if (lane == 0)
            atomicMax(&this_block().threshold, now);
        return max(T, now);
    }

    static __device__ __forceinline__ void bounds_counted(uint32_t lane)
    {
        if (lane == 0)
            atomicOr(&this_block().seeded, 1);
    }

    static __device__ __forceinline__ bool owns(uint32_t shares, uint32_t what, uint32_t lane)
    {
        return (lane & (shares - 1)) == (what >> ITEM_SHARE & (MAX_SHARES - 1));
    }

    /* What documents have at least, one a lane (0: not counted), raises the threshold by a
     * histogram of its own before anything is looked up. Returns the threshold as it is now. */
    static __device__ __forceinline__ uint32_t count_lower_bounds(const gpu_batch &R, const gpu_query &Q, uint32_t q,
                                                                  uint32_t least, uint32_t T, uint32_t lane)
    {
        gpu_query_state *st = R.states + q;
        uint32_t *histogram = R.lower_bound_histograms + (size_t)q * BINS;
        const uint32_t n = __popc(__ballot_sync(ALL_LANES, least > T));
        if (least > T)
            atomicAdd(histogram + score_bin(least, Q.bin_base, Q.bin_shift), 1);
        uint32_t before = 0, now = 0;
        if (lane == 0) {
            now = __ldcg(&st->threshold);
            if (n)
                before = atomicAdd(&st->n_hits, n);
        }
        before = __shfl_sync(ALL_LANES, before, 0);
        T = max(T, __shfl_sync(ALL_LANES, now, 0));
        const uint32_t step = max(before / 8, 1u); /* of thousands that are counted at once, not each raises */
        if (n && before + n >= Q.k && (before < Q.k || before / step != (before + n) / step)) {
            const uint32_t t = raise_threshold(histogram, Q.k, Q.bin_base, Q.bin_shift, lane);
            if (lane == 0 && t > T)
                atomicMax(&st->threshold, t);
            T = max(T, t);
        }
        if (lane == 0)
            atomicMax(&this_block().threshold, T);
        return T;
    }
};

/* Marks the decoders of the kernel for a few queries. */
template <class P> struct in_small_batch : P {
};
template <class P> struct threshold_of<in_small_batch<P>> {
    typedef block_threshold type;
};

} // namespace gx

#endif
