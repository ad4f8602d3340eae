/* The byte-oriented codes, whole lists. A warp takes eight blocks. First the places where each four
 * integers begin are found and left in shared memory, by a scan a block, or by walking, a lane a
 * block; then the blocks follow, four integers a lane.
 *
 * Limits: blocks of one-byte integers, which their number of words tells apart, cost about 60 warp
 * instructions, and memory bounds them: 4 bytes an integer written, 1 (SU, PU, PB), 1.125 (GU) or
 * 1.25 (GB) read. Others are bound by instructions, counted in the compiled kernels, docids to
 * memory, a block of one to two bytes an integer:
 *
 *                    places                           integers   in all   thread instructions an
 *                    integer
 *     SU             107 for 64 words                 160        320      80
 *     G8IU, G8CU     74, 86 for 32 groups             125, 205   255, 345 64, 86
 *     PU, PB         28, 23 each four, an eighth      150, 80    315, 225 79, 56
 *     GB             15 a descriptor, an eighth        95        210      52
 */
#include "codecs/compared/varint.cuh"
#include "tools/bench/kernels/list_kernels.cuh"

namespace gx {

namespace {

constexpr uint32_t BLOCKS = 8, WARPS = 8; /* of a group, of a thread block */
constexpr uint32_t PITCH = BLOCKS + 2;    /* of the places of a lane: keeps the banks apart */

/* Places of a block, found by one lane while others do the same for theirs. */
template <class CODE>
__device__ __forceinline__ void write_places(const uint32_t *words, uint32_t n_words, uint16_t *places)
{
    uint32_t p = 0;
#pragma unroll 1
    for (uint32_t l = 0; l < 32; ++l) {
        p = min(p, 4 * n_words);
        places[l * PITCH] = (uint16_t)p;
#pragma unroll
        for (uint32_t k = 0; k < 4; k += CODE::STEP)
            p += CODE::length(load_byte<false>(words, p)); /* 15 bytes past the block at most */
    }
}

template <class CODE, class ANY, int STAGE_, int PLACES_> struct varint_groups {
    static constexpr uint32_t BLOCK = 128, GROUP = BLOCKS * BLOCK, NB = BLOCKS, STAGE = STAGE_, WARPS_PER_BLOCK = WARPS,
                              PLACES = PLACES_;
    static constexpr bool WIDE = false;
    typedef ANY any;

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t n_words, uint32_t end, uint32_t head,
                                                  uint32_t, uint64_t at, uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        __shared__ uint16_t all_places[WARPS][32 * PITCH];
        uint16_t *const places = all_places[threadIdx.x / 32];
        end = min(end - __shfl_sync(ALL_LANES, end, 0), n_words);
        const uint32_t next = __shfl_down_sync(ALL_LANES, end, 1), my_words = next > end ? next - end : 0;
        const bool by_places =
            lane < NB && my_words != 0 && my_words != CODE::NARROW && !CODE::is_uncompressed(my_words, BLOCK);
        uint32_t blocks = __ballot_sync(ALL_LANES, by_places);
        if (blocks) {
            __syncwarp();
            if constexpr (CODE::SCANS) {
                for (; blocks; blocks &= blocks - 1) {
                    const uint32_t b = lowest_set_bit(blocks);
                    CODE::put_places(words + __shfl_sync(ALL_LANES, end, b), __shfl_sync(ALL_LANES, my_words, b), lane,
                                     PITCH, places + b);
                }
            } else if (by_places) {
                write_places<CODE>(words + end, my_words, places + lane);
            }
            __syncwarp();
        }
#pragma unroll 1
        for (uint32_t b = 0; b < NB; b += 2) {
            uint32_t v[2][4];
            bool narrow = true;
#pragma unroll
            for (uint32_t h = 0; h < 2; ++h) {
                const uint32_t *const block = words + __shfl_sync(ALL_LANES, end, b + h);
                const uint32_t its_words = __shfl_sync(ALL_LANES, my_words, b + h);
                if (its_words == CODE::NARROW) {
                    split4(CODE::narrow(block, lane), v[h]);
                } else if (its_words == 0 || CODE::is_uncompressed(its_words, BLOCK)) {
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        v[h][i] = its_words ? block[lane * 4 + i] : 0;
                    narrow &= its_words == 0;
                } else {
                    CODE::read(block, its_words, places[lane * PITCH + b + h], v[h]);
                    narrow = false;
                }
            }
            if (DOCIDS)
                scan_two_segments(v[0], v[1], narrow, __shfl_sync(ALL_LANES, head, b),
                                  __shfl_sync(ALL_LANES, head, b + 1), false, lane);
            to.put(at + b * BLOCK, lane, v[0]);
            to.put(at + b * BLOCK + BLOCK, lane, v[1]);
        }
    }
};

/* One stage holds up to 3.75 bytes an integer, each of two 2.6. */
template <template <bool> class CODE> codec_kernels groups_of()
{
    typedef varint<CODE<true>, true> any;
    return of_groups<varint_groups<CODE<false>, any, 968, 5>, varint_groups<CODE<false>, any, 680, 4>>();
}

template <bool LDG> using code_g8iu = code_gu<false, LDG>;
template <bool LDG> using code_g8cu = code_gu<true, LDG>;

} // namespace

codec_kernels list_kernels_varintsu()
{
    return groups_of<code_su>();
}
codec_kernels list_kernels_varintpu()
{
    return groups_of<code_pu>();
}
codec_kernels list_kernels_varintg8iu()
{
    return groups_of<code_g8iu>();
}
codec_kernels list_kernels_varintg8cu()
{
    return groups_of<code_g8cu>();
}
codec_kernels list_kernels_varintpb()
{
    return groups_of<code_pb>();
}
codec_kernels list_kernels_varintgb()
{
    return groups_of<code_gb>();
}

} // namespace gx
