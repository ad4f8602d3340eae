/* position_stream.cuh: reads the positions of a block of postings (codecs/positions.h), 31 at a time, by a warp. */
#ifndef GX_QUERY_GPU_KERNELS_POSITION_STREAM_CUH
#define GX_QUERY_GPU_KERNELS_POSITION_STREAM_CUH

#include "query/gpu/kernels/lists.cuh"

namespace gx {

constexpr uint32_t NO_POSITION = UINT32_MAX, MOST_POSITION = INT32_MAX;
constexpr uint32_t MAX_BLOCK_WORDS = 1u << 27; /* of positions; so a block's bits are counted in 32 bits */

/* Where the positions of a posting are. */
struct word_place {
    uint64_t begin;    /* words of the posting's block: the first one, among all */
    uint32_t n_words;  /* and their number */
    uint32_t n_values; /* positions in the block */
    uint32_t first;    /* the posting's first one among them */
    uint32_t tf;       /* 0: the list does not hold the document */
};

/* Returns the word at which the positions of a block end. */
__device__ __forceinline__ uint64_t positions_end(const gpu_positions &S, uint32_t block)
{
    uint64_t passed = 0;
    while (passed < S.n_wraps && __ldg(S.wraps + passed) <= block)
        ++passed;
    return passed << 32 | __ldg(S.ends + block);
}

/* The positions of a posting, in their order. */
struct position_stream {
    const uint32_t *words; /* [n_words] of the block */
    uint32_t n_words, b;   /* b: bits of a value's low part */
    uint32_t high;         /* the bit at which the high parts begin */
    uint32_t next, end;    /* values of the block: the next one, and where the posting's end */
    uint32_t word, before; /* where ones are counted from, a multiple of 32 words behind the first one of high parts;
                              and how many are before it */
    uint32_t carry;        /* the position before the next one; -1 at the beginning */

    /* Begins. false: the block cannot be read. */
    __device__ __forceinline__ bool open(const gpu_positions &S, const word_place &w)
    {
        words = S.words + w.begin;
        n_words = w.n_words;
        b = n_words ? __ldg(words) & 31 : 0;
        const uint64_t bits = 5 + (uint64_t)w.n_values * b;
        high = (uint32_t)bits;
        next = w.first;
        end = w.first + w.tf;
        word = high / 32;
        before = 0;
        carry = UINT32_MAX;
        return bits + w.n_values <= (uint64_t)n_words * 32 && w.tf && end <= w.n_values && end >= w.tf;
    }

    /* Moves what up to 31 positions are more than those before them, the first of a posting more than -1, to lanes 1,
     * 2, ...; the other lanes get 0. Returns their number; 0: the block is damaged. Called while next < end. */
    __device__ __forceinline__ uint32_t read_gaps(uint32_t lane, uint32_t &gap)
    {
        const uint32_t n = min(end - next, 31u), rank = next - 1 + lane; /* the ones that end values */
        uint32_t bit = high - 1;
        bool open = lane <= n && rank != UINT32_MAX;
        for (;;) {
            const uint32_t at = word + lane;
            uint32_t w = at < n_words ? __ldg(words + at) : 0;
            if (at == high / 32)
                w &= ~0u << high % 32;
            const uint32_t sum = warp_inclusive(__popc(w), lane), all = __shfl_sync(ALL_LANES, sum, 31);
            const uint32_t wanted = rank - before;
            uint32_t from = 0; /* the lane whose word has it */
#pragma unroll
            for (uint32_t step = 16; step; step >>= 1) {
                const uint32_t y = __shfl_sync(ALL_LANES, sum, from + step - 1);
                from += y <= wanted ? step : 0;
            }
            uint32_t x = __shfl_sync(ALL_LANES, w, from);
            uint32_t k = wanted - (__shfl_sync(ALL_LANES, sum, from) - __popc(x)), place = 0;
#pragma unroll
            for (uint32_t step = 16; step; step >>= 1) {
                const uint32_t c = __popc(x & ((1u << step) - 1));
                const bool above = k >= c;
                k -= above ? c : 0;
                place += above ? step : 0;
                x >>= above ? step : 0;
            }
            if (open && wanted < all) {
                bit = (word + from) * 32 + place;
                open = false;
            }
            if (!__any_sync(ALL_LANES, open))
                break;
            before += all;
            word += 32;
            if (word >= n_words)
                return 0;
        }
        const uint32_t previous = __shfl_up_sync(ALL_LANES, bit, 1);
        const bool mine = lane && lane <= n;
        gap = 0;
        if (mine) {
            const uint32_t low = 5 + rank * b, *p = words + low / 32;
            gap = ((bit - previous - 1) << b | (__funnelshift_r(__ldg(p), __ldg(p + 1), low) & gx_low_bits(b))) + 1;
        }
        next += n;
        return n;
    }

    /* Moves up to 31 positions of a posting to lanes 1, 2, ...; the other lanes get NO_POSITION. As read_gaps. */
    __device__ __forceinline__ uint32_t read(uint32_t lane, uint32_t &position)
    {
        uint32_t gap;
        const uint32_t n = read_gaps(lane, gap), sum = carry + warp_inclusive(gap, lane);
        const bool mine = lane && lane <= n;
        position = mine ? sum : NO_POSITION;
        carry = __shfl_sync(ALL_LANES, sum, n);
        return __any_sync(ALL_LANES, mine && (sum > MOST_POSITION || gap > MOST_POSITION + 1)) ? 0 : n;
    }
};

} // namespace gx

#endif
