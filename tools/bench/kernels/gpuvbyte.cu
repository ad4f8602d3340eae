/* Whole lists of GPU-VByte. */
#include "tools/bench/kernels/list_kernels.cuh"

namespace gx {

namespace {

/* Four integers of a lane, whose selectors are the low byte of `selectors`, from byte p of
 * words[n_words]. */
template <bool LDG>
__device__ __forceinline__ void gather4(const uint32_t *words, uint32_t n_words, uint32_t p, uint32_t selectors,
                                        uint32_t (&v)[4])
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const uint32_t more = selectors >> (2 * i) & 3;
        v[i] = gpuvbyte<128, LDG>::bytes_at(words, n_words, p) & (0xffffffffu >> (24 - 8 * more));
        p += more + 1;
    }
}

/* 1,024 integers in full blocks: eight of 128, or one of 1,024. words[n_words] holds them all; lane
 * e of end has the end of block e - 1 in it. First every lane learns where the bytes of two
 * selector words (32 integers) begin; then segments of 128 follow, a lane taking a quarter of a
 * selector word. */
template <int BLOCK, bool LDG, bool DOCIDS, bool FUSED>
__device__ __forceinline__ void gpuvbyte_group(const uint32_t *words, uint32_t n_words, uint32_t end, uint32_t head,
                                               uint64_t at, uint32_t lane, sink<FUSED> &to)
{
    /* LANES: a block's, at first */
    constexpr uint32_t BLOCKS = 1024 / BLOCK, LANES = 32 / BLOCKS, SELECTORS = BLOCK / 16;
    const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
    end -= begin;
    const uint32_t my_begin = __shfl_sync(ALL_LANES, end, lane / LANES);
    const uint32_t my_words = __shfl_sync(ALL_LANES, end, lane / LANES + 1) - my_begin;
    uint32_t first = 0, second = 0; /* two selector words; a block without words holds zeros */
    if (my_words) {
        first = load<LDG>(words + min(my_begin + lane % LANES * 2, n_words));
        second = load<LDG>(words + min(my_begin + lane % LANES * 2 + 1, n_words));
    }
    const uint32_t wide = __ballot_sync(ALL_LANES, first | second), empty = __ballot_sync(ALL_LANES, my_words == 0);
    const uint32_t bytes = 32 + gx_sum_2bit(first) + gx_sum_2bit(second);
    uint32_t sum = bytes;
#pragma unroll
    for (uint32_t o = 1; o < LANES; o <<= 1) {
        const uint32_t y = __shfl_up_sync(ALL_LANES, sum, o, LANES);
        sum += lane % LANES >= o ? y : 0;
    }
    const uint32_t p_first = (my_begin + SELECTORS) * 4 + sum - bytes;
    uint32_t carry = 0;
#pragma unroll 2
    for (uint32_t s = 0; s < 8; s += 2) {
        uint32_t v[2][4];
        bool narrow = true;
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) {
            const uint32_t segment = s + h, owner = segment * 4 + lane / 8; /* of this lane's selector word */
            uint32_t p = __shfl_sync(ALL_LANES, p_first, owner);
            if (empty >> (segment * 4) & 1) {
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    v[h][i] = 0;
            } else if ((wide >> (segment * 4) & 15) == 0) { /* 128 bytes */
                split4(gpuvbyte<128, LDG>::bytes_at(words, n_words, p + lane % 8 * 4), v[h]);
            } else {
                const uint32_t w0 = __shfl_sync(ALL_LANES, first, owner), w1 = __shfl_sync(ALL_LANES, second, owner);
                const bool odd = lane / 4 & 1;
                const uint32_t w = odd ? w1 : w0, shift = lane % 4 * 8;
                p += (odd ? 16 + gx_sum_2bit(w0) : 0) + lane % 4 * 4 + gx_sum_2bit(w & ((1u << shift) - 1));
                gather4<LDG>(words, n_words, p, w >> shift, v[h]);
                narrow = false;
            }
        }
        if (DOCIDS) {
            uint32_t base_a, base_b;
            if (BLOCK == 128) {
                base_a = __shfl_sync(ALL_LANES, head, s);
                base_b = __shfl_sync(ALL_LANES, head, s + 1);
            } else {
                base_a = s == 0 ? __shfl_sync(ALL_LANES, head, 0) : carry;
                base_b = 0;
            }
            scan_two_segments(v[0], v[1], narrow, base_a, base_b, BLOCK == 1024, lane);
            if (BLOCK == 1024)
                carry = __shfl_sync(ALL_LANES, v[1][3], 31) + 1;
        }
        to.put(at + s * 128, lane, v[0]);
        to.put(at + s * 128 + 128, lane, v[1]);
    }
}

template <int BLOCK_> struct gpuvbyte_groups {
    static constexpr uint32_t BLOCK = BLOCK_, GROUP = 1024, NB = GROUP / BLOCK, STAGE = 456, WARPS_PER_BLOCK = 8,
                              PLACES = 5;
    static constexpr bool WIDE = true;
    typedef gpuvbyte<BLOCK_, true> any;

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t n_words, uint32_t end, uint32_t head,
                                                  uint32_t, uint64_t at, uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        gpuvbyte_group<BLOCK_, LDG, DOCIDS>(words, n_words, end, head, at, lane, to);
    }
};

} // namespace

codec_kernels list_kernels_gpuvbyte128()
{
    return of_groups<gpuvbyte_groups<128>, gpuvbyte_groups<128>>();
}
codec_kernels list_kernels_gpuvbyte1024()
{
    return of_groups<gpuvbyte_groups<1024>, gpuvbyte_groups<1024>>();
}

} // namespace gx
