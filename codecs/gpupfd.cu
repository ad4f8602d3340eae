/* Whole lists of GPU-PFD128. */
#include "codecs/gpupfd.cuh"
#include "codecs/whole_list.cuh"

namespace gx {

namespace {

/* Two blocks at a time: rows are unpacked to registers, written to shared memory where a lane adds its exception, and
 * read back. */
template <int GROUP_, int BITS, int PLACES_> struct gpupfd_groups { /* BITS an integer are staged */
    static constexpr uint32_t BLOCK = 128, GROUP = GROUP_, NB = GROUP / BLOCK, STAGE = GROUP * BITS / 32 + 8, WARPS_A_BLOCK = 8, PLACES = PLACES_;
    static constexpr bool WIDE = false;
    typedef gpupfd128<true> any;

    static __device__ __forceinline__ void add(const uint32_t *behind, gpupfd_header p, uint32_t lane, uint32_t *row)
    {
        const gpupfd_exception<false> x(behind, p, lane);
        if (x.mine)
            atomicAdd(row + x.position, x.above);
    }

    template <bool NARROW, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void pairs(const uint32_t *words, uint32_t begin, uint32_t head, uint32_t header, uint64_t at,
                                                 uint32_t lane, sink<FUSED> &to, uint32_t *rows)
    {
#pragma unroll 1
        for (uint32_t s = 0; s < NB; s += 2) {
            const uint32_t *const p_a = words + __shfl_sync(ALL_LANES, begin, s), *const p_b = words + __shfl_sync(ALL_LANES, begin, s + 1);
            const uint32_t in_a = __shfl_sync(ALL_LANES, header, s), in_b = __shfl_sync(ALL_LANES, header, s + 1);
            const gpupfd_header h_a = {in_a & 63, in_a >> 6 & 31, in_a >> 11}, h_b = {in_b & 63, in_b >> 6 & 31, in_b >> 11};
            uint32_t a[4], b[4];
            if (NARROW) {
                __builtin_assume(h_a.b <= 8);
                __builtin_assume(h_b.b <= 8);
            }
            unpack<4, false>(p_a, lane * 4 * h_a.b, h_a.b, a);
            unpack<4, false>(p_b, lane * 4 * h_b.b, h_b.b, b);
            if (h_a.e | h_b.e) {
                uint4 *const row_a = (uint4 *)rows + lane, *const row_b = row_a + 32;
                *row_a = make_uint4(a[0], a[1], a[2], a[3]);
                *row_b = make_uint4(b[0], b[1], b[2], b[3]);
                __syncwarp();
                if (h_a.e)
                    add(p_a + 4 * h_a.b, h_a, lane, rows);
                if (h_b.e)
                    add(p_b + 4 * h_b.b, h_b, lane, rows + 128);
                __syncwarp();
                const uint4 x = *row_a, y = *row_b;
                a[0] = x.x, a[1] = x.y, a[2] = x.z, a[3] = x.w;
                b[0] = y.x, b[1] = y.y, b[2] = y.z, b[3] = y.w;
            }
            if (DOCIDS) {
                const uint32_t bits_a = h_a.b + (h_a.e ? h_a.h + 1 : 0), bits_b = h_b.b + (h_b.e ? h_b.h + 1 : 0);
                docids_of_two(a, b, max(bits_a, bits_b) <= 9, __shfl_sync(ALL_LANES, head, s), __shfl_sync(ALL_LANES, head, s + 1), false,
                              lane);
            }
            to.put(at + s * 128, lane, a);
            to.put(at + s * 128 + 128, lane, b);
        }
    }

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head, uint32_t, uint64_t at,
                                                  uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        static_assert(!LDG, "only from the stage");
        __shared__ __align__(16) uint32_t rows[WARPS_A_BLOCK][2 * BLOCK];
        const uint32_t n_words = __shfl_down_sync(ALL_LANES, end, 1) - end, begin = end - __shfl_sync(ALL_LANES, end, 0);
        uint32_t header = 0, b = 0; /* a lane has a block's */
        if (lane < NB) {
            const gpupfd_header p = gpupfd_header::read<false>(words + begin, n_words);
            header = p.b | p.h << 6 | p.e << 11;
            b = p.b;
        }
        uint32_t *const own = rows[threadIdx.x / 32];
        if (__any_sync(ALL_LANES, b > 8))
            pairs<false, DOCIDS>(words, begin, head, header, at, lane, to, own);
        else
            pairs<true, DOCIDS>(words, begin, head, header, at, lane, to, own);
    }
};

} // namespace

bool whole_list_gpupfd(uint8_t id, whole_list_codec *out)
{
    if (id != GX_CODEC_GPUPFD128)
        return false;
    *out = of_groups<gpupfd_groups<1024, 12, 4>, gpupfd_groups<1024, 12, 5>>(id);
    return true;
}

} // namespace gx
