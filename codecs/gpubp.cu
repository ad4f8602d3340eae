/* Whole lists of bit-packed blocks: GPU-BP, Lane1024, and words as they are. */
#include "codecs/whole_list.cuh"

namespace gx {

namespace {

/* Four integers of b <= 8 bits from bit `bit`. */
template <bool LDG> __device__ __forceinline__ void unpack4_narrow(const uint32_t *p, uint32_t bit, uint32_t b, uint32_t *v)
{
    const uint32_t mask = gx_mask(b);
    p += bit >> 5;
    const uint32_t x = __funnelshift_r(load<LDG>(p), load<LDG>(p + 1), bit);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = (x >> (i * b)) & mask;
}

template <int BLOCK_, int GROUP_, int BITS, int PLACES_> struct gpubp_groups { /* BITS an integer are staged */
    static constexpr uint32_t BLOCK = BLOCK_, GROUP = GROUP_, NB = GROUP / BLOCK, STAGE = GROUP * BITS / 32 + 8, WARPS_A_BLOCK = 8, PLACES = PLACES_;
    static constexpr bool WIDE = true; /* decode<true> reads words where they are */
    typedef gpubp<BLOCK_, 128, true> any;

    template <bool NARROW, bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void pairs(const uint32_t *words, uint32_t end, uint32_t head, uint64_t at, uint32_t lane, sink<FUSED> &to)
    {
        const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
#pragma unroll 1
        for (uint32_t s = 0; s < GROUP / 256; ++s) {
            uint32_t a[4], b[4], width_a, width_b, base_a = 0, base_b = 0;
            const uint32_t *p_a, *p_b;
            if (BLOCK == 128) {
                const uint32_t e0 = __shfl_sync(ALL_LANES, end, 2 * s), e1 = __shfl_sync(ALL_LANES, end, 2 * s + 1),
                               e2 = __shfl_sync(ALL_LANES, end, 2 * s + 2);
                width_a = min(32u, (e1 - e0) / 4);
                width_b = min(32u, (e2 - e1) / 4);
                p_a = words + (e0 - begin);
                p_b = words + (e1 - begin);
                if (DOCIDS) {
                    base_a = __shfl_sync(ALL_LANES, head, 2 * s);
                    base_b = __shfl_sync(ALL_LANES, head, 2 * s + 1);
                }
            } else {
                const uint32_t e0 = __shfl_sync(ALL_LANES, end, s), e1 = __shfl_sync(ALL_LANES, end, s + 1);
                width_a = width_b = min(32u, (e1 - e0) / 8);
                p_a = words + (e0 - begin);
                p_b = p_a + 4 * width_a;
                if (DOCIDS)
                    base_a = __shfl_sync(ALL_LANES, head, s);
            }
            if (NARROW) {
                unpack4_narrow<LDG>(p_a, lane * 4 * width_a, width_a, a);
                unpack4_narrow<LDG>(p_b, lane * 4 * width_b, width_b, b);
            } else {
                unpack<4, LDG>(p_a, lane * 4 * width_a, width_a, a);
                unpack<4, LDG>(p_b, lane * 4 * width_b, width_b, b);
            }
            if (DOCIDS)
                docids_of_two(a, b, NARROW || max(width_a, width_b) <= 9, base_a, base_b, BLOCK == 256, lane);
            to.put(at + s * 256, lane, a);
            to.put(at + s * 256 + 128, lane, b);
        }
    }

    /* Blocks of 256 whose docids stay in registers: eight a lane, so that one plain scan serves. */
    static __device__ __forceinline__ void eights(const uint32_t *words, uint32_t end, uint32_t head, uint32_t lane, sink<true> &to)
    {
        const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
#pragma unroll 1
        for (uint32_t s = 0; s < GROUP / 256; ++s) {
            const uint32_t e0 = __shfl_sync(ALL_LANES, end, s), e1 = __shfl_sync(ALL_LANES, end, s + 1);
            const uint32_t width = (e1 - e0) / 8;
            uint32_t v[8];
            unpack4_narrow<false>(words + (e0 - begin), lane * 8 * width, width, v);
            unpack4_narrow<false>(words + (e0 - begin), lane * 8 * width + 4 * width, width, v + 4);
            docids(v, __shfl_sync(ALL_LANES, head, s) - 1, lane);
            to.keep(v);
        }
    }

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head, uint32_t, uint64_t at,
                                                  uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        const uint32_t n_words = __shfl_down_sync(ALL_LANES, end, 1) - end;
        const bool narrow = !LDG && !__any_sync(ALL_LANES, lane < NB && n_words > BLOCK / 4);
        if constexpr (!LDG && DOCIDS && FUSED && BLOCK == 256) {
            if (narrow) {
                eights(words, end, head, lane, to);
                return;
            }
        }
        if (narrow)
            pairs<true, LDG, DOCIDS>(words, end, head, at, lane, to);
        else
            pairs<false, LDG, DOCIDS>(words, end, head, at, lane, to);
    }
};

/* ---- Lane1024 ---- */

template <int NB_> struct lane1024_groups {
    static constexpr uint32_t BLOCK = 1024, NB = NB_, GROUP = NB * BLOCK, STAGE = NB == 1 ? 1152 : NB * 256 + 8, WARPS_A_BLOCK = 4, PLACES = 5;
    static constexpr bool WIDE = false;
    typedef lane1024<true> any;

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head, uint32_t, uint64_t at,
                                                  uint32_t lane, sink<FUSED> &to, uint32_t *stage)
    {
        const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
#pragma unroll 1
        for (uint32_t i = 0; i < NB; ++i) {
            const uint32_t e0 = __shfl_sync(ALL_LANES, end, i), e1 = __shfl_sync(ALL_LANES, end, i + 1);
            uint32_t v[32];
            lane1024<false>::whole(words + (e0 - begin) + lane, min((e1 - e0) / 32, 32u), v);
            if (DOCIDS)
                docids(v, __shfl_sync(ALL_LANES, head, i) - 1, lane);
            if constexpr (FUSED)
                to.keep(v);
            else
                put_rows(v, at + i * BLOCK, lane, to, stage);
        }
    }

    /* Lanes hold 32 integers in a row each; they go through the stage, whose words are in registers by now, so that
     * stores are 512 bytes in a row. Rows of 36 words keep the banks apart. */
    static __device__ __forceinline__ void put_rows(uint32_t (&v)[32], uint64_t at, uint32_t lane, sink<false> &to, uint32_t *stage)
    {
        static_assert(NB > 1 || STAGE >= 32 * 36, "room for the rows");
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 32; i += 4)
            *(uint4 *)(stage + lane * 36 + i) = make_uint4(v[i], v[i + 1], v[i + 2], v[i + 3]);
        __syncwarp();
#pragma unroll
        for (uint32_t i = 0; i < 8; ++i) {
            const uint4 q = *(const uint4 *)(stage + (i * 4 + lane / 8) * 36 + lane % 8 * 4);
            __stcs((uint4 *)(to.out + at) + i * 32 + lane, q);
        }
        __syncwarp();
    }
};

} // namespace

bool whole_list_gpubp(uint8_t id, whole_list_codec *out)
{
    switch (id) {
    case GX_CODEC_RAW: *out = of_blocks<raw<true>>(id); break;
    case GX_CODEC_GPUBP128: *out = of_groups<gpubp_groups<128, 1024, 12, 4>, gpubp_groups<128, 2048, 8, 5>>(id); break;
    case GX_CODEC_GPUBP256: *out = of_groups<gpubp_groups<256, 1024, 12, 4>, gpubp_groups<256, 2048, 8, 5>>(id); break;
    case GX_CODEC_LANE1024: *out = of_groups<lane1024_groups<1>, lane1024_groups<4>>(id); break;
    default: return false;
    }
    return true;
}

} // namespace gx
