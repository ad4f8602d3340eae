/* Whole lists of PForDelta. */
#include "codecs/compared/pfordelta.cuh"
#include "tools/bench/kernels/list_kernels.cuh"

namespace gx {

namespace {

/* A lane an exception, which goes to 128 words of shared memory, zeros before and after; then each
 * lane adds the four words that are its integers'. */
struct pfordelta_groups {
    static constexpr uint32_t BLOCK = 128, GROUP = 1024, NB = GROUP / BLOCK, STAGE = GROUP * 12 / 32 + 8,
                              WARPS_PER_BLOCK = 8, PLACES = 4;
    static constexpr bool WIDE = false;
    typedef pfordelta<true> any;

    static __device__ __forceinline__ void patch_all(const pfordelta_exceptions &x, uint32_t b, uint32_t lane,
                                                     uint32_t *added, uint32_t (&v)[4])
    {
        uint32_t next_position = 0;
#pragma unroll 1
        for (uint32_t k = 0; k < x.e; k += 32) {
            const bool there = k + lane < x.e;
            const uint32_t own = there ? k + lane : 0;
            const uint32_t gap = x.gaps.at<false>(x.words, own), above = (x.high_parts.at<false>(x.words, own) + 1)
                                                                         << b;
            const uint32_t behind = next_position + warp_inclusive(there ? gap + 1 : 0, lane);
            if (there && behind - 1 < BLOCK)
                added[behind - 1] = above;
            if (k + 32 < x.e)
                next_position = __shfl_sync(ALL_LANES, behind, 31);
        }
        __syncwarp();
        const uint4 y = ((const uint4 *)added)[lane];
        ((uint4 *)added)[lane] = make_uint4(0, 0, 0, 0);
        __syncwarp();
        v[0] += y.x, v[1] += y.y, v[2] += y.z, v[3] += y.w;
    }

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head,
                                                  uint32_t param, uint64_t at, uint32_t lane, sink<FUSED> &to,
                                                  uint32_t *)
    {
        static_assert(!LDG, "only from the stage");
        __shared__ __align__(16) uint32_t all_added[WARPS_PER_BLOCK][BLOCK];
        uint32_t *const added = all_added[threadIdx.x / 32];
        ((uint4 *)added)[lane] = make_uint4(0, 0, 0, 0);
        __syncwarp();
        uint32_t e0 = __shfl_sync(ALL_LANES, end, 0);
#pragma unroll 1
        for (uint32_t i = 0; i < NB; ++i) {
            const uint32_t e1 = __shfl_sync(ALL_LANES, end, i + 1), b = __shfl_sync(ALL_LANES, param, i),
                           n_words = e1 - e0;
            const uint32_t row = pfordelta<false>::row_words(n_words, BLOCK, b);
            uint32_t v[4] = {0, 0, 0, 0};
            if (n_words >= BLOCK)
                unpack<4, false>(words, lane * 128, 32, v);
            else if (row <= n_words && b != 0)
                unpack<4, false>(words, lane * 4 * b, b, v);
            if (row < n_words) {
                const pfordelta_exceptions x = pfordelta_exceptions::read<false>(words + row, n_words - row, BLOCK);
                if (x.e)
                    patch_all(x, b, lane, added, v);
            }
            if (DOCIDS)
                docids(v, __shfl_sync(ALL_LANES, head, i) - 1, lane);
            to.put(at + i * BLOCK, lane, v);
            words += n_words;
            e0 = e1;
        }
    }
};

} // namespace

codec_kernels list_kernels_pfordelta()
{
    return of_groups<pfordelta_groups, pfordelta_groups>();
}

} // namespace gx
