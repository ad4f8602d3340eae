/* Whole lists of GPU-PFD128. */
#include "codecs/gpupfd.cuh"
#include "tools/bench/kernels/bytes.cuh"

namespace gx {

namespace {

/* 12 bits an integer are staged. */
template <int GROUP_, int WARPS, int PLACES_> struct gpupfd_groups {
    static constexpr uint32_t BLOCK = 128, GROUP = GROUP_, NB = GROUP / BLOCK, STAGE = GROUP * 12 / 32 + 8,
                              WARPS_PER_BLOCK = WARPS, PLACES = PLACES_;
    static constexpr bool WIDE = false;
    typedef gpupfd128<true> any;
};

/* What a lane has of a block of its own, and hands to others. */
struct block {
    uint32_t packed, map;

    /* Lane k reads block k of n; end: as decode() has it (tools/bench/kernels/list_kernels.cuh). */
    static __device__ __forceinline__ block read(const uint32_t *words, uint32_t end, uint32_t n, uint32_t lane)
    {
        const uint32_t n_words = __shfl_down_sync(ALL_LANES, end, 1) - end,
                       begin = end - __shfl_sync(ALL_LANES, end, 0);
        if (lane >= n)
            return {0, 0};
        const gpupfd_header p = gpupfd_header::read<false>(words + begin, n_words);
        return {p.b | p.h << 6 | p.e << 11 | begin << 16, p.e ? words[begin + 4 * p.b] & 0xffffffffu >> (25 - p.e) : 0};
    }

    __device__ __forceinline__ block of(uint32_t lane) const
    {
        return {__shfl_sync(ALL_LANES, packed, lane), __shfl_sync(ALL_LANES, map, lane)};
    }

    __device__ __forceinline__ uint32_t b() const { return packed & 63; }
    __device__ __forceinline__ uint32_t h() const { return packed >> 6 & 31; }
    __device__ __forceinline__ uint32_t e() const { return packed >> 11 & 31; }
    __device__ __forceinline__ uint32_t begin() const { return packed >> 16; }

    /* Bits of the greatest integer there can be. */
    __device__ __forceinline__ uint32_t bits() const { return e() ? b() + h() + 1 : b(); }
};

/* ---- to memory ---- */

/* Two blocks at a time. Exceptions go to 128 words of shared memory, which are zeros before and
 * after, while rows are unpacked to registers; then each lane adds the four words that are its
 * integers'. Where all is narrow enough, one word serves both blocks, in halves. */
struct memory_groups : gpupfd_groups<1024, 8, 4> {
    /* A lane's exception; without one, lanes read what is there and mean nothing by it. */
    struct exception {
        bool mine;
        uint32_t position, above;

        __device__ __forceinline__ exception(const uint32_t *words, const block &k, uint32_t lane, uint32_t below)
        {
            const uint32_t before = __popc(k.map & below), width = k.h() + 4;
            mine = (k.map & (below + 1)) && before < k.e();
            const uint32_t bit = k.b() * 128 + k.e() + 7 + (mine ? before : 0) * width;
            words += bit >> 5;
            const uint32_t x = __funnelshift_r(words[0], words[1], bit);
            position = ((lane - before) << 4 | (x & 15)) & 127;
            above = ((x >> 4 & ~(~0u << k.h())) + 1) << k.b();
        }
    };

    static __device__ __forceinline__ void wide(const uint32_t *p_a, const uint32_t *p_b, const block &k_a,
                                                const block &k_b, uint32_t lane, uint32_t below, uint32_t *added,
                                                uint32_t (&a)[4], uint32_t (&b)[4])
    {
        const exception x_a(p_a, k_a, lane, below), x_b(p_b, k_b, lane, below);
        if (x_a.mine) /* of a damaged block two may have one place */
            atomicAdd(&added[x_a.position], x_a.above);
        if (x_b.mine)
            atomicAdd(&added[128 + x_b.position], x_b.above);
        unpack<4, false>(p_a, lane * 4 * k_a.b(), k_a.b(), a);
        unpack<4, false>(p_b, lane * 4 * k_b.b(), k_b.b(), b);
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
    static __device__ __forceinline__ void narrow(const uint32_t *p_a, const uint32_t *p_b, const block &k_a,
                                                  const block &k_b, uint32_t lane, uint32_t below, uint32_t *added,
                                                  uint32_t (&v)[4])
    {
        const exception x_a(p_a, k_a, lane, below), x_b(p_b, k_b, lane, below);
        if (x_a.mine) /* of a damaged block two may have one place */
            atomicAdd(&added[x_a.position], x_a.above & 0xffff);
        if (x_b.mine)
            atomicAdd(&added[x_b.position], x_b.above << 16);
        const uint32_t bit_a = lane * 4 * k_a.b(), bit_b = lane * 4 * k_b.b(), mask_a = ~(~0u << k_a.b()),
                       mask_b = ~(~0u << k_b.b());
        p_a += bit_a >> 5;
        p_b += bit_b >> 5;
        const uint32_t w_a = __funnelshift_r(p_a[0], p_a[1], bit_a), w_b = __funnelshift_r(p_b[0], p_b[1], bit_b);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            v[i] = (w_a >> (i * k_a.b()) & mask_a) + (w_b >> (i * k_b.b()) & mask_b) * 0x10000;
        __syncwarp();
        const uint4 y = ((const uint4 *)added)[lane];
        __syncwarp();
        if (x_a.mine)
            added[x_a.position] = 0;
        if (x_b.mine)
            added[x_b.position] = 0;
        __syncwarp();
        v[0] += y.x, v[1] += y.y, v[2] += y.z, v[3] += y.w;
    }

    /* Both halves' integers, or docids, from the sums of the lane's integers so far. */
    template <bool DOCIDS>
    static __device__ __forceinline__ void halve(uint32_t (&v)[4], uint32_t base_a, uint32_t base_b, uint32_t lane,
                                                 uint32_t (&a)[4], uint32_t (&b)[4])
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
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head,
                                                  uint32_t, uint64_t at, uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        static_assert(!LDG, "only from the stage");
        __shared__ __align__(16) uint32_t all_added[WARPS_PER_BLOCK][2 * BLOCK];
        uint32_t *const added = all_added[threadIdx.x / 32];
        ((uint4 *)added)[lane] = ((uint4 *)added)[32 + lane] = make_uint4(0, 0, 0, 0);
        __syncwarp();
        const block own = block::read(words, end, NB, lane);
        const uint32_t below = (1u << lane) - 1;
#pragma unroll 1
        for (uint32_t s = 0; s < NB; s += 2) {
            const block k_a = own.of(s), k_b = own.of(s + 1);
            const uint32_t *const p_a = words + k_a.begin(), *const p_b = words + k_b.begin();
            uint32_t a[4], b[4], base_a = 0, base_b = 0;
            if (DOCIDS) {
                base_a = __shfl_sync(ALL_LANES, head, s);
                base_b = __shfl_sync(ALL_LANES, head, s + 1);
            }
            /* a block's sum, or its integers, below 2^16 */
            const bool is_narrow = max(k_a.bits(), k_b.bits()) <= (DOCIDS ? 9 : 16);
            if (is_narrow && max(k_a.b(), k_b.b()) <= 8) {
                uint32_t v[4];
                narrow(p_a, p_b, k_a, k_b, lane, below, added, v);
                halve<DOCIDS>(v, base_a, base_b, lane, a, b);
            } else {
                wide(p_a, p_b, k_a, k_b, lane, below, added, a, b);
                if (DOCIDS)
                    scan_two_segments(a, b, is_narrow, base_a, base_b, false, lane);
            }
            to.put(at + s * 128, lane, a);
            to.put(at + s * 128 + 128, lane, b);
        }
    }
};

/* ---- kept in registers ---- */

/* What stays in registers waits for instructions, so that lanes share the exceptions of a group in
 * one way and its rows in another. First each lane goes through a part of a block's exceptions, and
 * puts what they have above the row among zeros in shared memory, a byte or half a word an integer:
 * no lane asks others for its part. Then four blocks are unpacked at a time, 16 integers in a row a
 * lane, and what is above is added; sums go through 8 lanes instead of 32. */
struct register_groups : gpupfd_groups<2048, 4, 5> {
    /* Whether the block's integers have at most `bits` bits, and the records of its exceptions. */
    static __device__ __forceinline__ bool fits(const block &k, uint32_t bits, uint32_t record)
    {
        return k.bits() <= bits && k.h() + 4 <= record && (uint32_t)__popc(k.map) == k.e();
    }

    /* Zeros to shift out before the highest set bit is the highest bit of all; anything for 0. */
    static __device__ __forceinline__ uint32_t zeros_above(uint32_t x)
    {
        uint32_t n;
        asm("bfind.shiftamt.u32 %0, %1;" : "=r"(n) : "r"(x));
        return n;
    }

    static __device__ __forceinline__ void store(uint32_t to, uint32_t x, uint8_t)
    {
        asm volatile("st.shared.u8 [%0], %1;" ::"r"(to), "r"(x) : "memory");
    }

    static __device__ __forceinline__ void store(uint32_t to, uint32_t x, uint16_t)
    {
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "r"(x) : "memory");
    }

    /* above[GROUP / 4]: what the integers of blocks first, first + 1, .. have above the row, a T
     * each; 0 where that is nothing. */
    template <class T>
    static __device__ __forceinline__ void exceptions(const uint32_t *words, const block &own, uint32_t first,
                                                      uint32_t lane, uint32_t *above)
    {
        /* A block's lanes, of which each has PART of its eight sixteens of integers; records that a
         * word holds. */
        constexpr uint32_t LANES = 32 * sizeof(T) / NB, PART = 8 / LANES, SIXTEEN = 16 * sizeof(T),
                           AT_ONCE = sizeof(T) == 1 ? 3 : 2;
        __syncwarp();
#pragma unroll
        for (uint32_t i = 0; i < NB / 4; ++i)
            ((uint4 *)above)[i * 32 + lane] = make_uint4(0, 0, 0, 0);
        const block k = own.of(first + lane / LANES);
        /* A zero of the map ends a sixteen: behind so many of them the lane's part begins, and that
         * of the lane before ends. */
        const uint32_t part = lane % LANES, before = part * PART;
        uint32_t zeros = ~k.map;
#pragma unroll
        for (uint32_t i = 1; i + PART < 8; ++i)
            zeros &= i < before ? zeros - 1 : ~0u;
        const uint32_t begin = part ? (uint32_t)__ffs((int)zeros) : 0, next = __shfl_down_sync(ALL_LANES, begin, 1);
        /* the highest bit is the first */
        uint32_t map = __brev(k.map & (part + 1 < LANES ? ~(~0u << next) : ~0u)) << begin;
        const uint32_t b = k.b(), h = k.h(), width = h + 4, mask = ~(~0u << h);
        uint32_t bit = k.begin() * 32 + b * 128 + k.e() + 7 + (begin - before) * width, one = 1u << b;
        asm("" : "+r"(one)); /* a factor, which the GPU does beside the logic, not a shift */
        uint32_t to = shared_address(above) + lane * (PART * SIXTEEN);
        __syncwarp();
        for (; map; bit += AT_ONCE * width) {
            const uint32_t *const w = words + (bit >> 5);
            uint32_t x = __funnelshift_r(w[0], w[1], bit);
#pragma unroll
            for (uint32_t i = 0; i < AT_ONCE; ++i, x >>= width) {
                const uint32_t skip = zeros_above(map);
                to += SIXTEEN * skip;
                if (map)
                    store(to | (x & 15) * sizeof(T), (x >> 4 & mask) * one + one, T());
                map = map << (skip & 31) << 1;
            }
        }
        __syncwarp();
    }

    /* Integers below 2^8. */
    template <bool DOCIDS>
    static __device__ __forceinline__ void decode_8_bit(const uint32_t *words, const block &own, uint32_t head,
                                                        uint32_t lane, uint32_t *above, sink<true> &to)
    {
        exceptions<uint8_t>(words, own, 0, lane, above);
#pragma unroll
        for (uint32_t s = 0; s < NB; s += 4) {
            const block k = {__shfl_sync(ALL_LANES, own.packed, s + lane / 8), 0};
            const uint32_t b = k.b();
            const byte_unpacker spread = byte_unpackers[b];
            const uint4 y = ((const uint4 *)above)[s * 8 + lane];
            const uint32_t added[4] = {y.x, y.y, y.z, y.w};
            uint32_t bytes[4], bit = k.begin() * 32 + lane % 8 * 16 * b;
#pragma unroll
            for (int q = 0; q < 4; q += 2, bit += 8 * b) {
                const uint32_t *const w = words + (bit >> 5);
                const uint32_t low = __funnelshift_r(w[0], w[1], bit), high = __funnelshift_r(w[1], w[2], bit);
                bytes[q] = spread(low) + added[q];
                bytes[q + 1] = spread(__funnelshift_rc(low, high, 4 * b)) + added[q + 1];
            }
            if (DOCIDS) {
                const uint32_t sum = sum_of_bytes(bytes);
                sink_docids(bytes, 8, __shfl_sync(ALL_LANES, head, s + lane / 8), warp_inclusive<8>(sum, lane) - sum,
                            lane % 8, to);
            } else {
                sink_bytes(bytes, to);
            }
        }
    }

    /* Integers below 2^16, of half of the group, from block `first` on. */
    template <bool DOCIDS>
    static __device__ __forceinline__ void decode_16_bit(const uint32_t *words, const block &own, uint32_t first,
                                                         uint32_t head, uint32_t lane, uint32_t *above, sink<true> &to)
    {
        exceptions<uint16_t>(words, own, first, lane, above);
#pragma unroll 1
        for (uint32_t s = 0; s < NB / 2; s += 4) {
            const block k = {__shfl_sync(ALL_LANES, own.packed, first + s + lane / 8), 0};
            const uint32_t b = k.b(), mask = gx_low_bits(b);
            uint32_t v[16], bit = k.begin() * 32 + lane % 8 * 16 * b;
#pragma unroll
            for (int i = 0; i < 16; i += 4, bit += 4 * b) {
                const uint32_t *const w = words + (bit >> 5);
                const uint32_t low = __funnelshift_r(w[0], w[1], bit), high = __funnelshift_r(w[1], w[2], bit);
                const uint32_t second = __funnelshift_rc(low, high, 2 * b);
                const uint2 y = ((const uint2 *)above)[s * 32 + lane * 4 + i / 4];
                v[i] = (low & mask) | (y.x & 0xffff);
                v[i + 1] = (low >> b & mask) | y.x >> 16;
                v[i + 2] = (second & mask) | (y.y & 0xffff);
                v[i + 3] = (second >> b & mask) | y.y >> 16;
            }
            if (DOCIDS) {
#pragma unroll
                for (int i = 1; i < 16; ++i)
                    v[i] += v[i - 1];
                const uint32_t before = __shfl_sync(ALL_LANES, head, first + s + lane / 8) +
                                        warp_inclusive<8>(v[15], lane) - v[15] + lane % 8 * 16;
#pragma unroll
                for (int i = 0; i < 16; ++i)
                    v[i] += before + i;
            }
            to.keep(v);
        }
    }

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head,
                                                  uint32_t, uint64_t, uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        static_assert(!LDG && FUSED, "kept, and only from the stage");
        __shared__ __align__(16) uint32_t all_above[WARPS_PER_BLOCK][GROUP / 4];
        uint32_t *const above = all_above[threadIdx.x / 32];
        const block own = block::read(words, end, NB, lane);
        if (__all_sync(ALL_LANES, fits(own, 8, 10))) {
            decode_8_bit<DOCIDS>(words, own, head, lane, above, to);
        } else if (__all_sync(ALL_LANES, fits(own, 16, 16))) {
#pragma unroll 1
            for (uint32_t first = 0; first < NB; first += NB / 2)
                decode_16_bit<DOCIDS>(words, own, first, head, lane, above, to);
        } else {
#pragma unroll 1
            for (uint32_t i = 0; i < NB; ++i) {
                const uint32_t e0 = __shfl_sync(ALL_LANES, end, i), e1 = __shfl_sync(ALL_LANES, end, i + 1);
                decode_block<gpupfd128<false>, DOCIDS>(words + (e0 - __shfl_sync(ALL_LANES, end, 0)), e1 - e0, BLOCK, 0,
                                                       __shfl_sync(ALL_LANES, head, i), 0, lane, to);
            }
        }
    }
};

} // namespace

codec_kernels list_kernels_gpupfd128()
{
    return of_groups<memory_groups, register_groups>();
}

} // namespace gx
