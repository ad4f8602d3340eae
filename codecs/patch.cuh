/* patch.cuh: adds exceptions to integers that a warp holds in registers, four in each lane. */
#ifndef GX_CODECS_PATCH_CUH
#define GX_CODECS_PATCH_CUH

#include "codecs/decode.cuh"

namespace gx {

/* The b <= 32 bits at bit `at` of words; 0 if b = 0. Reads the next word, too. */
template <bool LDG> __device__ __forceinline__ uint32_t read_bits(const uint32_t *words, uint32_t at, uint32_t b)
{
    words += at >> 5;
    return __funnelshift_r(load<LDG>(words), load<LDG>(words + 1), at) & gx_low_bits(b);
}

/* Each lane may hold one exception (mine): `above` is to be added to the integer at `position` <
 * 128. Positions rise with the lanes. If SPREAD is false, lane k holds the k-th exception;
 * otherwise the k-th exception, at position p, is in lane k + p / 16. The warp builds a map of the
 * integers that have exceptions. The number of set bits before an integer tells a lane which other
 * lane holds its exception. */
template <bool SPREAD>
__device__ __forceinline__ void patch(uint32_t (&v)[4], bool mine, uint32_t position, uint32_t above, uint32_t lane)
{
    uint32_t map[4];
#pragma unroll
    for (uint32_t w = 0; w < 4; ++w)
        map[w] = __reduce_or_sync(ALL_LANES, mine && position >> 5 == w ? 1u << (position & 31) : 0);
    const uint32_t own = lane >> 3, shift = lane * 4 & 31;
    uint32_t word = map[0], k = 0, before = 0;
#pragma unroll
    for (uint32_t w = 1; w < 4; ++w) {
        before += __popc(map[w - 1]);
        word = own == w ? map[w] : word;
        k = own == w ? before : k;
    }
    k += __popc(word & gx_low_bits(shift));
    k += SPREAD ? lane >> 2 : 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const uint32_t x = __shfl_sync(ALL_LANES, above, k & 31), one = word >> (shift + i) & 1;
        v[i] += one ? x : 0;
        k += one;
    }
}

} // namespace gx

#endif
