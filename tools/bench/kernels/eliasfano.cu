/* Whole lists of Elias-Fano. */
#include "codecs/eliasfano.cuh"
#include "tools/bench/kernels/list_kernels.cuh"

namespace gx {

namespace {

/* 1,024 integers in eight blocks. First four lanes a block take its words of high bits, and put the
 * high part of each sum, bit after bit, into the block's row in shared memory: a byte, for it is
 * below 2 n. Then the rows are read in order and the low parts unpacked beside them. Docids need no
 * scan: the sums are there. Rows are 4 words apart, to keep the banks apart. */
template <int PLACES_> struct ef128_groups {
    static constexpr uint32_t BLOCK = 128, GROUP = 1024, NB = 8, STAGE = 584, WARPS_PER_BLOCK = 8, PLACES = PLACES_;
    static constexpr uint32_t LANES = 4, ROW = BLOCK + 16; /* bytes */
    static constexpr bool WIDE = false;
    typedef ef128<true> any;

    /* The high parts of a block's sums to row; words [n_high] of it. */
    static __device__ __forceinline__ void select_all(const uint32_t *words, uint32_t n_high, uint32_t lane,
                                                      uint8_t *row)
    {
        const uint32_t place = lane % LANES, rounds = __reduce_max_sync(ALL_LANES, (n_high + LANES - 1) / LANES);
        uint32_t before = 0; /* bits of the rounds before */
#pragma unroll 1
        for (uint32_t r = 0; r < rounds; ++r) {
            const uint32_t k = r * LANES + place;
            uint32_t x = k < n_high ? words[k] : 0;
            x = k ? x : x & ~gx_low_bits(GX_EF_B_BITS);
            uint32_t sum = __popc(x);
#pragma unroll
            for (uint32_t o = 1; o < LANES; o <<= 1) {
                const uint32_t y = __shfl_up_sync(ALL_LANES, sum, o, LANES);
                sum += place >= o ? y : 0;
            }
            const uint32_t end = before + sum; /* behind this word's last */
            before += __shfl_sync(ALL_LANES, sum, LANES - 1, LANES);
            x = end <= BLOCK ? x : 0;
            uint8_t *to = row + end - 1;
            uint32_t high = 32 * k - GX_EF_B_BITS - (end - 1);
            while (__any_sync(ALL_LANES, x)) { /* the last bit first */
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const uint32_t bit = 31 - __clz(x);
                    if (x)
                        to[-i] = (uint8_t)(high + i + bit);
                    x &= ~(1u << (bit & 31));
                }
                to -= 4;
                high += 4;
            }
        }
    }

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head,
                                                  uint32_t, uint64_t at, uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        __shared__ __align__(16) uint8_t all_rows[WARPS_PER_BLOCK][NB * ROW];
        uint8_t *const rows = all_rows[threadIdx.x / 32];
        for (uint32_t i = lane; i < NB * ROW / 16; i += 32)
            ((uint4 *)rows)[i] = make_uint4(0, 0, 0, 0);
        end -= __shfl_sync(ALL_LANES, end, 0);
        const uint32_t begin = __shfl_sync(ALL_LANES, end, lane / LANES);
        const uint32_t n_words = __shfl_sync(ALL_LANES, end, lane / LANES + 1) - begin;
        gx_ef_block e = {0, 0};
        if (n_words)
            e = gx_ef_open(words[begin], n_words, BLOCK);
        const uint32_t low = (begin + e.n_high) << 5 | e.b; /* where the low parts are, and their width */
        __syncwarp();
        select_all(words + begin, min(e.n_high, GX_EF_MAX_HIGH), lane, rows + lane / LANES * ROW);
        __syncwarp();
#pragma unroll 2
        for (uint32_t i = 0; i < NB; ++i) {
            const uint32_t high = *(const uint32_t *)(rows + i * ROW + lane * 4);
            const uint32_t where = __shfl_sync(ALL_LANES, low, i * LANES), b = where & 31;
            uint32_t v[4] = {0, 0, 0, 0};
            if (b)
                unpack<4, false>(words + (where >> 5), lane * 4 * b, b, v);
#pragma unroll
            for (int j = 0; j < 4; ++j)
                v[j] += __byte_perm(high, 0, 0x4440 + j) << b;
            if (DOCIDS) {
                const uint32_t base = __shfl_sync(ALL_LANES, head, i) + lane * 4;
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    v[j] += base + j;
            } else {
                const uint32_t before = __shfl_up_sync(ALL_LANES, v[3], 1);
                v[3] -= v[2];
                v[2] -= v[1];
                v[1] -= v[0];
                v[0] -= lane ? before : 0;
            }
            to.put(at + i * BLOCK, lane, v);
        }
        __syncwarp(); /* before the rows are zeros again */
    }
};

} // namespace

codec_kernels list_kernels_ef128()
{
    return of_groups<ef128_groups<5>, ef128_groups<4>>();
}

} // namespace gx
