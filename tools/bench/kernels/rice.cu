/* Whole lists of Rice. */
#include "codecs/rice.cuh"
#include "tools/bench/kernels/list_kernels.cuh"

namespace gx {

namespace {

/* Each block is decoded from the stage by the codec's decoder. */
struct rice_groups {
    static constexpr uint32_t BLOCK = 128, GROUP = 1024, NB = GROUP / BLOCK, STAGE = GROUP * 12 / 32 + 8,
                              WARPS_PER_BLOCK = 8, PLACES = 4;
    static constexpr bool WIDE = false;
    typedef rice<true> any;

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head,
                                                  uint32_t param, uint64_t at, uint32_t lane, sink<FUSED> &to,
                                                  uint32_t *)
    {
        const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
#pragma unroll 1
        for (uint32_t i = 0; i < NB; ++i) {
            const uint32_t e0 = __shfl_sync(ALL_LANES, end, i), e1 = __shfl_sync(ALL_LANES, end, i + 1);
            rice<LDG> dec;
            uint32_t v[4];
            dec.open(words + (e0 - begin), e1 - e0, BLOCK, lane, __shfl_sync(ALL_LANES, param, i));
            dec.next(lane, v);
            if (DOCIDS)
                docids(v, __shfl_sync(ALL_LANES, head, i) - 1, lane);
            to.put(at + i * BLOCK, lane, v);
        }
    }
};

} // namespace

codec_kernels list_kernels_rice()
{
    return of_groups<rice_groups, rice_groups>();
}

} // namespace gx
