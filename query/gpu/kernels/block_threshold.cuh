/* block_threshold.cuh: the threshold policy of the small-batch kernel (small_batch_search.cuh).
 * Each thread block keeps a copy of the query's threshold in shared memory, because thousands of
 * warps search for one query there and would queue for the one word in global memory. */
#ifndef GX_QUERY_GPU_KERNELS_BLOCK_THRESHOLD_CUH
#define GX_QUERY_GPU_KERNELS_BLOCK_THRESHOLD_CUH

#include "query/gpu/kernels/threshold.cuh"

namespace gx {

/* State of a thread block that searches for one query of a small batch. Warps access it by atomics
 * only. */
struct block_state {
    /* The query's threshold as a warp of the block last read it. */
    uint32_t threshold;
    uint32_t n_taken;  /* items taken by the block's warps */
    uint32_t seeded;   /* the first warp has counted the lower bounds of its first item's documents */
    uint32_t finished; /* finished warps | finished warps that wrote candidates << 16 */
    /* Used by a lingering kernel: */
    unsigned long long start_ns; /* when the kernel started */
    uint32_t message;            /* number of the message that `query` came with; at first linger_params.number */
    small_query query;
};

__device__ __forceinline__ block_state &this_block()
{
    __shared__ block_state block;
    return block;
}

/* For the functions see global_threshold. */
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
        return lane == 0 ? __ldcg(&R.states[q].threshold) : 0; /* the load ends while the look-ups run */
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

    static __device__ __forceinline__ bool counts_blocks(uint32_t) { return true; }

    /* Counts lower bounds of documents' scores, one a lane (0: not counted), in a histogram of
     * their own. This raises the threshold before any look-up. Returns the threshold as it is now.
     */
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
        /* thousands are counted at once: not every one raises the threshold */
        const uint32_t step = max(before / 8, 1u);
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

/* Marks a decoder pair as that of the small-batch kernel. */
template <class P> struct in_small_batch : P {
};
template <class P> struct threshold_of<in_small_batch<P>> {
    typedef block_threshold type;
};

} // namespace gx

#endif
