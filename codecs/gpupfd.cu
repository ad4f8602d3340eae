/* Whole lists of GPU-PFD128. */
#include "codecs/gpupfd.cuh"
#include "codecs/whole_list.cuh"

namespace gx {

namespace {

/* Two blocks at a time. Exceptions go to 128 words of shared memory, which are zeros before and after, while rows are
 * unpacked to registers; then each lane adds the four words that are its integers'. Where all is narrow enough, one word
 * serves both blocks, in halves. */
template <int GROUP_, int BITS, int PLACES_> struct gpupfd_groups { /* BITS an integer are staged */
    static constexpr uint32_t BLOCK = 128, GROUP = GROUP_, NB = GROUP / BLOCK, STAGE = GROUP * BITS / 32 + 8, WARPS_A_BLOCK = 8, PLACES = PLACES_;
    static constexpr bool WIDE = false;
    typedef gpupfd128<true> any;

    /* A lane has a block's, and hands it to all. */
    struct block {
        uint32_t begin, b, h, e, map;

        __device__ __forceinline__ block(uint32_t packed, uint32_t maps, uint32_t s)
        {
            const uint32_t x = __shfl_sync(ALL_LANES, packed, s);
            map = __shfl_sync(ALL_LANES, maps, s);
            b = x & 63;
            h = x >> 6 & 31;
            e = x >> 11 & 31;
            begin = x >> 16;
        }

        /* Bits of the greatest integer there can be. */
        __device__ __forceinline__ uint32_t bits() const { return e ? b + h + 1 : b; }
    };

    /* A lane's exception; without one, lanes read what is there and mean nothing by it. */
    struct exception {
        bool mine;
        uint32_t position, above;

        __device__ __forceinline__ exception(const uint32_t *words, const block &k, uint32_t lane, uint32_t below)
        {
            const uint32_t before = __popc(k.map & below), width = k.h + 4;
            mine = (k.map & (below + 1)) && before < k.e;
            const uint32_t bit = k.b * 128 + k.e + 7 + (mine ? before : 0) * width;
            words += bit >> 5;
            const uint32_t x = __funnelshift_r(words[0], words[1], bit);
            position = ((lane - before) << 4 | (x & 15)) & 127;
            above = ((x >> 4 & ~(~0u << k.h)) + 1) << k.b;
        }
    };

    static __device__ __forceinline__ void wide(const uint32_t *p_a, const uint32_t *p_b, const block &k_a, const block &k_b, uint32_t lane,
                                                uint32_t below, uint32_t *added, uint32_t (&a)[4], uint32_t (&b)[4])
    {
        const exception x_a(p_a, k_a, lane, below), x_b(p_b, k_b, lane, below);
        if (x_a.mine)
            added[x_a.position] = x_a.above;
        if (x_b.mine)
            added[128 + x_b.position] = x_b.above;
        unpack<4, false>(p_a, lane * 4 * k_a.b, k_a.b, a);
        unpack<4, false>(p_b, lane * 4 * k_b.b, k_b.b, b);
        __syncwarp();
        const uint4 y_a = ((const uint4 *)added)[lane], y_b = ((const uint4 *)added)[32 + lane];
        __syncwarp();
        if (x_a.mine)
            added[x_a.position] = 0;
        if (x_b.mine)
            added[128 + x_b.position] = 0;
        __syncwarp();
        a[0] += y_a.x, a[1] += y_a.y, a[2] += y_a.z, a[3] += y_a.w;
        b[0] += y_b.x, b[1] += y_b.y, b[2] += y_b.z, b[3] += y_b.w;
    }

    /* v: the integers of a, and 2^16 times those of b. */
    static __device__ __forceinline__ void narrow(const uint32_t *p_a, const uint32_t *p_b, const block &k_a, const block &k_b,
                                                  uint32_t lane, uint32_t below, uint32_t *added, uint32_t (&v)[4])
    {
        const exception x_a(p_a, k_a, lane, below), x_b(p_b, k_b, lane, below);
        uint16_t *const halves = (uint16_t *)added;
        if (x_a.mine)
            halves[2 * x_a.position] = (uint16_t)x_a.above;
        if (x_b.mine)
            halves[2 * x_b.position + 1] = (uint16_t)x_b.above;
        const uint32_t bit_a = lane * 4 * k_a.b, bit_b = lane * 4 * k_b.b, mask_a = ~(~0u << k_a.b), mask_b = ~(~0u << k_b.b);
        p_a += bit_a >> 5;
        p_b += bit_b >> 5;
        const uint32_t w_a = __funnelshift_r(p_a[0], p_a[1], bit_a), w_b = __funnelshift_r(p_b[0], p_b[1], bit_b);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            v[i] = (w_a >> (i * k_a.b) & mask_a) + (w_b >> (i * k_b.b) & mask_b) * 0x10000;
        __syncwarp();
        const uint4 y = ((const uint4 *)added)[lane];
        __syncwarp();
        if (x_a.mine)
            halves[2 * x_a.position] = 0;
        if (x_b.mine)
            halves[2 * x_b.position + 1] = 0;
        __syncwarp();
        v[0] += y.x, v[1] += y.y, v[2] += y.z, v[3] += y.w;
    }

    /* Both halves' integers, or docids, from the sums of the lane's integers so far. */
    template <bool DOCIDS>
    static __device__ __forceinline__ void halve(uint32_t (&v)[4], uint32_t base_a, uint32_t base_b, uint32_t lane, uint32_t (&a)[4],
                                                 uint32_t (&b)[4])
    {
        if (DOCIDS) {
            v[1] += v[0];
            v[2] += v[1];
            v[3] += v[2];
            const uint32_t before = warp_inclusive(v[3], lane) - v[3];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                v[i] += before;
            base_a += lane * 4;
            base_b += lane * 4;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            a[i] = (v[i] & 0xffff) + (DOCIDS ? base_a + i : 0);
            b[i] = (v[i] >> 16) + (DOCIDS ? base_b + i : 0);
        }
    }

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head, uint32_t, uint64_t at,
                                                  uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        static_assert(!LDG, "only from the stage");
        __shared__ __align__(16) uint32_t all_added[WARPS_A_BLOCK][2 * BLOCK];
        uint32_t *const added = all_added[threadIdx.x / 32];
        ((uint4 *)added)[lane] = ((uint4 *)added)[32 + lane] = make_uint4(0, 0, 0, 0);
        __syncwarp();
        const uint32_t n_words = __shfl_down_sync(ALL_LANES, end, 1) - end, begin = end - __shfl_sync(ALL_LANES, end, 0);
        uint32_t packed = 0, maps = 0;
        if (lane < NB) {
            const gpupfd_header p = gpupfd_header::read<false>(words + begin, n_words);
            packed = p.b | p.h << 6 | p.e << 11 | begin << 16;
            maps = p.e ? words[begin + 4 * p.b] & 0xffffffffu >> (25 - p.e) : 0;
        }
        const uint32_t below = (1u << lane) - 1;
#pragma unroll 1
        for (uint32_t s = 0; s < NB; s += 2) {
            const block k_a(packed, maps, s), k_b(packed, maps, s + 1);
            const uint32_t *const p_a = words + k_a.begin, *const p_b = words + k_b.begin;
            uint32_t a[4], b[4], base_a = 0, base_b = 0;
            if (DOCIDS) {
                base_a = __shfl_sync(ALL_LANES, head, s);
                base_b = __shfl_sync(ALL_LANES, head, s + 1);
            }
            const bool is_narrow = max(k_a.bits(), k_b.bits()) <= (DOCIDS ? 9 : 16); /* a block's sum, or its integers, below 2^16 */
            if (is_narrow && max(k_a.b, k_b.b) <= 8) {
                uint32_t v[4];
                narrow(p_a, p_b, k_a, k_b, lane, below, added, v);
                halve<DOCIDS>(v, base_a, base_b, lane, a, b);
            } else {
                wide(p_a, p_b, k_a, k_b, lane, below, added, a, b);
                if (DOCIDS)
                    docids_of_two(a, b, is_narrow, base_a, base_b, false, lane);
            }
            to.put(at + s * 128, lane, a);
            to.put(at + s * 128 + 128, lane, b);
        }
    }
};

} // namespace

whole_list_codec whole_list_gpupfd128() { return of_groups<gpupfd_groups<1024, 12, 4>, gpupfd_groups<2048, 8, 5>>(); }

} // namespace gx
