/* Whole lists of Simple-9, Simple-16 and Simple-8b. */
#include "codecs/compared/simple.cuh"
#include "tools/bench/kernels/list_kernels.cuh"

namespace gx {

namespace {

/* 1,024 integers in eight blocks, four lanes a block: a round takes four words of each. Their
 * integers go to rows in shared memory, a block each, from where they are read in order. Rows are 4
 * words apart, to keep the banks apart. */
template <class WORDS, int WARPS_PER_BLOCK_, int PLACES_> struct simple_groups {
    static constexpr uint32_t BLOCK = 128, GROUP = 1024, NB = 8, STAGE = 392, WARPS_PER_BLOCK = WARPS_PER_BLOCK_,
                              PLACES = PLACES_;
    static constexpr uint32_t LANES = 4, ROW = BLOCK + 4;
    static constexpr bool WIDE = false;
    typedef simple<WORDS, true> any;
    typedef typename WORDS::word word;

    /* Returns whether no block's sum reaches 2^16. */
    static __device__ __forceinline__ bool expand(const uint32_t *words, uint32_t end, uint32_t lane, uint32_t *rows)
    {
        const uint32_t my_entry = WORDS::entry(lane % 16), place = lane % LANES;
        uint32_t *const row = rows + lane / LANES * ROW;
        end -= __shfl_sync(ALL_LANES, end, 0);
        const uint32_t my_begin = __shfl_sync(ALL_LANES, end, lane / LANES),
                       my_end = __shfl_sync(ALL_LANES, end, lane / LANES + 1);
        const uint32_t rounds =
            __reduce_max_sync(ALL_LANES, (my_end - my_begin + LANES * WORDS::SIZE - 1) / (LANES * WORDS::SIZE));
        /* before: integers of the rounds before */
        uint32_t at = my_begin + place * WORDS::SIZE, before = 0, widest = 0;
        bool escapes = false;
#pragma unroll 1
        for (uint32_t r = 0; r < rounds; ++r) {
            const bool there = at + WORDS::SIZE <= my_end;
            const word x = there ? WORDS::template get<false>(words + at) : 0;
            const uint32_t entry = __shfl_sync(ALL_LANES, my_entry, WORDS::selector(x));
            const bool escape = WORDS::escape(x);
            const uint32_t count = there && !escape ? WORDS::count(entry) : 0;
            uint32_t sum = count;
#pragma unroll
            for (uint32_t o = 1; o < LANES; o <<= 1) {
                const uint32_t y = __shfl_up_sync(ALL_LANES, sum, o, LANES);
                sum += place >= o ? y : 0;
            }
            const uint32_t first = before + sum - count;
            const uint32_t take = first < BLOCK ? min(count, BLOCK - first) : 0;
            before += __shfl_sync(ALL_LANES, sum, LANES - 1, LANES);
            widest = max(widest, there ? WORDS::bits(entry) : 0);
            WORDS::expand(x, entry, take, row + first);
            escapes = escapes || __any_sync(ALL_LANES, escape);
            if (escapes) {
                widest = 32;
                if (take && at >= my_begin + WORDS::SIZE)
                    row[first] += simple_high<WORDS>(WORDS::template get<false>(words + at - WORDS::SIZE));
            }
            at += LANES * WORDS::SIZE;
        }
        return !__any_sync(ALL_LANES, widest > 9);
    }

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head,
                                                  uint32_t, uint64_t at, uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        __shared__ __align__(16) uint32_t all_rows[WARPS_PER_BLOCK][NB * ROW];
        uint32_t *const rows = all_rows[threadIdx.x / 32];
        for (uint32_t i = lane; i < NB * ROW / 4; i += 32)
            ((uint4 *)rows)[i] = make_uint4(0, 0, 0, 0);
        __syncwarp();
        const bool narrow = expand(words, end, lane, rows);
        __syncwarp();
#pragma unroll 2
        for (uint32_t i = 0; i < NB; i += 2) {
            const uint4 x = *(const uint4 *)(rows + i * ROW + lane * 4),
                        y = *(const uint4 *)(rows + i * ROW + ROW + lane * 4);
            uint32_t a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w};
            if (DOCIDS)
                scan_two_segments(a, b, narrow, __shfl_sync(ALL_LANES, head, i), __shfl_sync(ALL_LANES, head, i + 1),
                                  false, lane);
            to.put(at + i * BLOCK, lane, a);
            to.put(at + i * BLOCK + BLOCK, lane, b);
        }
        __syncwarp(); /* before the rows are zeros again */
    }
};

template <class WORDS> codec_kernels of_words()
{
    return of_groups<simple_groups<WORDS, 8, 4>, simple_groups<WORDS, 4, 7>>();
}

} // namespace

codec_kernels list_kernels_simple9()
{
    return of_words<simple9_words>();
}
codec_kernels list_kernels_simple16()
{
    return of_words<simple16_words>();
}
codec_kernels list_kernels_simple8b()
{
    return of_words<simple8b_words>();
}

} // namespace gx
