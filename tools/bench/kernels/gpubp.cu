/* Whole lists of bit-packed blocks: GPU-BP, Lane1024, and words as they are. */
#include "tools/bench/kernels/bytes.cuh"

namespace gx {

namespace {

/* ---- GPU-BP ---- */

/* Four integers of b <= 8 bits from bit `bit`. */
template <bool LDG>
__device__ __forceinline__ void unpack4_narrow(const uint32_t *p, uint32_t bit, uint32_t b, uint32_t *v)
{
    const uint32_t mask = gx_low_bits(b);
    p += bit >> 5;
    const uint32_t x = __funnelshift_r(load<LDG>(p), load<LDG>(p + 1), bit);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = (x >> (i * b)) & mask;
}

template <int BLOCK_, int GROUP_, int BITS, int PLACES_> struct gpubp_groups { /* BITS an integer are staged */
    static constexpr uint32_t BLOCK = BLOCK_, GROUP = GROUP_, NB = GROUP / BLOCK, STAGE = GROUP * BITS / 32 + 8,
                              WARPS_PER_BLOCK = 8, PLACES = PLACES_;
    static constexpr bool WIDE = true; /* decode<true> reads words where they are */
    typedef gpubp<BLOCK_, 128, true> any;

    template <bool NARROW, bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void pairs(const uint32_t *words, uint32_t end, uint32_t head, uint64_t at,
                                                 uint32_t lane, sink<FUSED> &to)
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
                scan_two_segments(a, b, NARROW || max(width_a, width_b) <= 9, base_a, base_b, BLOCK == 256, lane);
            to.put(at + s * 256, lane, a);
            to.put(at + s * 256 + 128, lane, b);
        }
    }

    /* A lane's integers of a block, BLOCK / 32 in a row, as bytes. */
    static constexpr int QUADS = BLOCK_ / 128;
    static __device__ __forceinline__ void bytes_of(const uint32_t *words, uint32_t b, uint32_t lane,
                                                    uint32_t (&bytes)[QUADS])
    {
        const byte_unpacker spread = byte_unpackers[b];
        const uint32_t bit = lane * (BLOCK / 32) * b;
        words += bit / 32;
        uint32_t w[QUADS + 1], x[QUADS];
#pragma unroll
        for (int i = 0; i <= QUADS; ++i)
            w[i] = words[i];
#pragma unroll
        for (int i = 0; i < QUADS; ++i)
            x[i] = __funnelshift_r(w[i], w[i + 1], bit);
        bytes[0] = spread(x[0]) + spread.more;
        if (QUADS == 2)
            bytes[QUADS - 1] = spread(__funnelshift_rc(x[0], x[QUADS - 1], 4 * b)) + spread.more;
    }

    /* Docids that stay in registers, of blocks of up to 8 bits, two blocks at a time: their sums
     * are below 2^16, so that one scan serves both. */
    static __device__ __forceinline__ void decode_8_bit(const uint32_t *words, uint32_t end, uint32_t head,
                                                        uint32_t lane, sink<true> &to)
    {
        uint32_t e0 = __shfl_sync(ALL_LANES, end, 0);
        words -= e0;
#pragma unroll 1
        for (uint32_t k = 0; k < NB; k += 2) {
            const uint32_t e1 = __shfl_sync(ALL_LANES, end, k + 1), e2 = __shfl_sync(ALL_LANES, end, k + 2);
            const uint32_t width_a = (e1 - e0) / (BLOCK / 32), width_b = (e2 - e1) / (BLOCK / 32);
            uint32_t a[QUADS], b[QUADS];
            bytes_of(words + e0, width_a, lane, a);
            bytes_of(words + e1, width_b, lane, b);
            const uint32_t own = sum_of_bytes(a) + sum_of_bytes(b) * 0x10000u;
            const uint32_t before = warp_inclusive(own, lane) - own;
            sink_docids(a, width_a, __shfl_sync(ALL_LANES, head, k), before & 0xffff, lane, to);
            sink_docids(b, width_b, __shfl_sync(ALL_LANES, head, k + 1), before >> 16, lane, to);
            e0 = e2;
        }
    }

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head,
                                                  uint32_t, uint64_t at, uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        const uint32_t n_words = __shfl_down_sync(ALL_LANES, end, 1) - end;
        const bool narrow = !LDG && !__any_sync(ALL_LANES, lane < NB && n_words > BLOCK / 4);
        if constexpr (!LDG && DOCIDS && FUSED) {
            if (narrow) {
                decode_8_bit(words, end, head, lane, to);
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
    static constexpr uint32_t BLOCK = 1024, NB = NB_, GROUP = NB * BLOCK, STAGE = NB == 1 ? 1152 : NB * 256 + 8,
                              WARPS_PER_BLOCK = 4, PLACES = 5;
    static constexpr bool WIDE = false;
    typedef lane1024<true> any;

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head,
                                                  uint32_t, uint64_t at, uint32_t lane, sink<FUSED> &to,
                                                  uint32_t *stage)
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

    /* Lanes hold 32 integers in a row each; they go through the stage, whose words are in registers
     * by now, so that stores are 512 bytes in a row. Rows of 36 words keep the banks apart. */
    static __device__ __forceinline__ void put_rows(uint32_t (&v)[32], uint64_t at, uint32_t lane, sink<false> &to,
                                                    uint32_t *stage)
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

/* Docids that stay in registers: a warp decodes blocks in a row, of which it reads the ends and
 * heads at once. Blocks of up to 8 bits become bytes, and the words of the next one are on their
 * way when their docids are made. */
constexpr uint32_t SUM_WARPS = 4, SUM_PLACES = 8, SUM_ROWS = 8;

/* A lane's first words of a block: as many as the widest of these blocks has. What is not of the
 * block some warp reads soon, too, and it is in cache. left: words from here to the list's end. */
__device__ __forceinline__ void fetch_rows(const uint32_t *words, uint32_t left, uint32_t lane, uint32_t (&w)[SUM_ROWS])
{
    if (left >= SUM_ROWS * 32) {
#pragma unroll
        for (uint32_t i = 0; i < SUM_ROWS; ++i)
            w[i] = __ldg(words + i * 32 + lane);
    } else {
#pragma unroll
        for (uint32_t i = 0; i < SUM_ROWS; ++i)
            w[i] = i * 32 + lane < left ? __ldg(words + i * 32 + lane) : 0;
    }
}

template <int B> __device__ __forceinline__ void row_bytes(const uint32_t (&w)[SUM_ROWS], uint32_t (&bytes)[8])
{
    constexpr byte_unpacker spread(B);
#pragma unroll
    for (int q = 0; q < 8; ++q) {
        const int k = q * B / 8, shift = q * B % 8 * 4;
        bytes[q] = spread(shift + 4 * B <= 32 ? w[k] >> shift : __funnelshift_r(w[k], w[k + 1], shift)) + spread.more;
    }
}

__device__ __forceinline__ void row_bytes_of(const uint32_t (&w)[SUM_ROWS], uint32_t b, uint32_t (&bytes)[8])
{
    switch (b) {
    case 1:
        row_bytes<1>(w, bytes);
        break;
    case 2:
        row_bytes<2>(w, bytes);
        break;
    case 3:
        row_bytes<3>(w, bytes);
        break;
    case 4:
        row_bytes<4>(w, bytes);
        break;
    case 5:
        row_bytes<5>(w, bytes);
        break;
    case 6:
        row_bytes<6>(w, bytes);
        break;
    case 7:
        row_bytes<7>(w, bytes);
        break;
    case 8:
        row_bytes<8>(w, bytes);
        break;
    default:
#pragma unroll
        for (int q = 0; q < 8; ++q)
            bytes[q] = 0x01010101u; /* zeros */
    }
}

__global__ void __launch_bounds__(SUM_WARPS * 32, SUM_PLACES)
    sum_docids_lane1024(const __grid_constant__ list_view l, uint32_t *out)
{
    constexpr uint32_t BLOCK = 1024, RUN = 30; /* RUN: blocks whose ends and heads a warp reads at once */
    const uint32_t lane = threadIdx.x % 32, warp = blockIdx.x * SUM_WARPS + threadIdx.x / 32;
    if (warp >= l.n_warps)
        return;
    sink<true> to{out};
    const uint32_t whole = (uint32_t)(l.n / BLOCK), stop = (uint32_t)((uint64_t)whole * (warp + 1) / l.n_warps);
    const uint32_t n_words = __ldg(l.ends + l.n_blocks - 1);
    for (uint32_t k = (uint32_t)((uint64_t)whole * warp / l.n_warps); k < stop; k += RUN) {
        /* lane i: the end of block k + i - 1, the head of block k + i */
        const uint32_t n = min(RUN, stop - k), e = k + lane;
        const uint32_t end = lane <= n && e > 0 ? __ldg(l.ends + e - 1) : 0, head = lane < n ? __ldg(l.heads + e) : 0;
        uint32_t e0 = __shfl_sync(ALL_LANES, end, 0), e1 = __shfl_sync(ALL_LANES, end, 1), w[SUM_ROWS];
        fetch_rows(l.words + e0, n_words - e0, lane, w);
#pragma unroll 1
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t b = min((e1 - e0) / 32, 32u), e2 = __shfl_sync(ALL_LANES, end, i + 2),
                           own_head = __shfl_sync(ALL_LANES, head, i);
            if (b <= 8) {
                uint32_t bytes[8];
                row_bytes_of(w, b, bytes);
                if (i + 1 < n)
                    fetch_rows(l.words + e1, n_words - e1, lane, w);
                const uint32_t own = sum_of_bytes(bytes);
                sink_docids(bytes, b, own_head, warp_inclusive(own, lane) - own, lane, to);
            } else {
                uint32_t v[32];
                lane1024<true>::whole(l.words + e0 + lane, b, v);
                if (i + 1 < n)
                    fetch_rows(l.words + e1, n_words - e1, lane, w);
                docids(v, own_head - 1, lane);
                to.keep(v);
            }
            e0 = e1;
            e1 = e2;
        }
    }
    if (warp == l.n_warps - 1 && l.n % BLOCK) { /* what follows the whole blocks */
        const uint32_t begin = whole ? __ldg(l.ends + whole - 1) : 0;
        decode_block<lane1024<true>, true>(l.words + begin, n_words - begin, (uint32_t)(l.n % BLOCK), 0,
                                           __ldg(l.heads + whole), (uint64_t)whole * BLOCK, lane, to);
    }
    to.close(warp, lane);
}

} // namespace

codec_kernels list_kernels_raw()
{
    return of_blocks<raw<true>>();
}
codec_kernels list_kernels_gpubp128()
{
    return of_groups<gpubp_groups<128, 1024, 12, 4>, gpubp_groups<128, 2048, 8, 4>>();
}
codec_kernels list_kernels_gpubp256()
{
    return of_groups<gpubp_groups<256, 1024, 12, 4>, gpubp_groups<256, 2048, 8, 4>>();
}

codec_kernels list_kernels_lane1024()
{
    return {{groups_launch<lane1024_groups<1>, false, false>(), groups_launch<lane1024_groups<1>, true, false>()},
            {groups_launch<lane1024_groups<4>, false, true>(), {sum_docids_lane1024, 1024, SUM_WARPS * 32, true}},
            at_blocks<lane1024<true>>};
}

} // namespace gx
