/* bytes.cuh: integers of up to 8 bits as bytes, four to a register, for lists that stay in
 * registers. */
#ifndef GX_TOOLS_BENCH_KERNELS_BYTES_CUH
#define GX_TOOLS_BENCH_KERNELS_BYTES_CUH

#include "tools/bench/kernels/list_kernels.cuh"

namespace gx {

/* Four integers of b <= 8 bits in a row, from the lowest bit of a word, become four bytes: first
 * two to each half, then one to each quarter. Shifts are multiplications, which the GPU does beside
 * the logic. more: what makes each byte the integer and 1, which a docid is at least beyond the one
 * before; below 8 bits that fits. */
struct alignas(16) byte_unpacker {
    uint32_t all, two, two_by, one, one_by, more;

    byte_unpacker() = default;
    explicit constexpr __host__ __device__ byte_unpacker(uint32_t b)
        : all((uint32_t)((1ull << 4 * b) - 1)), two(all & ~((1u << 2 * b) - 1)), two_by((1u << (16 - 2 * b)) - 1),
          one(((1u << b) - 1) * 0x00010001u << b), one_by((1u << (8 - b)) - 1), more(b < 8 ? 0x01010101u : 0)
    {
    }

    __device__ __forceinline__ uint32_t operator()(uint32_t x) const
    {
        x &= all;
        x += (x & two) * two_by;
        return x + (x & one) * one_by;
    }
};

static __constant__ byte_unpacker byte_unpackers[9] = {byte_unpacker(0), byte_unpacker(1), byte_unpacker(2),
                                                       byte_unpacker(3), byte_unpacker(4), byte_unpacker(5),
                                                       byte_unpacker(6), byte_unpacker(7), byte_unpacker(8)};

template <int Q> __device__ __forceinline__ uint32_t sum_of_bytes(const uint32_t (&bytes)[Q])
{
    uint32_t sum = 0;
#pragma unroll
    for (int q = 0; q < Q; ++q)
        sum = __dp4a(bytes[q], 0x01010101u, sum);
    return sum;
}

/* A lane's integers are its bytes: each is a dot product, which the GPU does beside the logic. */
template <int Q> __device__ __forceinline__ void sink_bytes(const uint32_t (&bytes)[Q], sink<true> &to)
{
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        uint32_t v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            v[i] = __dp4a(bytes[q], 1u << (8 * i), 0u);
        to.keep(v);
    }
}

/* A lane's docids, from b-bit integers as bytes (below 8 bits: and 1): each is one dot product, of
 * the bytes up to its own. sum_before: of the bytes of the block's lanes before this one, `lane` of
 * them. */
template <int Q>
__device__ __forceinline__ void sink_docids(const uint32_t (&bytes)[Q], uint32_t b, uint32_t head, uint32_t sum_before,
                                            uint32_t lane, sink<true> &to)
{
    uint32_t v[4], before = head - 1 + sum_before;
    if (b < 8) {
#pragma unroll
        for (int q = 0; q < Q; ++q) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                v[i] = __dp4a(bytes[q], 0x01010101u >> (24 - 8 * i), before);
            before = v[3];
            to.keep(v);
        }
    } else {
        before += lane * (4 * Q);
#pragma unroll
        for (int q = 0; q < Q; ++q) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                v[i] = __dp4a(bytes[q], 0x01010101u >> (24 - 8 * i), before + i + 1);
            before = v[3];
            to.keep(v);
        }
    }
}

} // namespace gx

#endif
