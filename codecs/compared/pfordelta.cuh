/* pfordelta.cuh: PForDelta (pfordelta.c) on the device. */
#ifndef GX_CODECS_COMPARED_PFORDELTA_CUH
#define GX_CODECS_COMPARED_PFORDELTA_CUH

#include "codecs/patch.cuh"

namespace gx {

/* The exceptions of a block: two arrays of e integers, each with its own exceptions
 * (pfordelta.c). */
struct pfordelta_exceptions {
    struct inner {
        uint32_t slots, width, deep, n_deep, deep_width; /* slots, deep: where low bits and exceptions begin, in bits */

        /* Integer k of the array. Lanes may ask for different k. */
        template <bool LDG> __device__ __forceinline__ uint32_t at(const uint32_t *words, uint32_t k) const
        {
            uint32_t x = read_bits<LDG>(words, slots + k * width, width);
#pragma unroll 1
            for (uint32_t d = 0; d < n_deep; ++d) {
                const uint32_t y = read_bits<LDG>(words, deep + d * (7 + deep_width), 7 + deep_width);
                x += (y & 127) == k ? ((y >> 7) + 1) << width : 0;
            }
            return x;
        }
    };

    const uint32_t *words;
    uint32_t e;
    inner gaps, high_parts;

    /* behind[n_words]: the words after the packed integers. e = 0 if no encoder can have written
     * them. */
    template <bool LDG>
    static __device__ __forceinline__ pfordelta_exceptions read(const uint32_t *behind, uint32_t n_words, uint32_t n)
    {
        const uint32_t x = load<LDG>(behind), e = (x & 127) + 1, g = x >> 7 & 7, a = x >> 10 & 31;
        const uint32_t n_g = x >> 15 & 15, w_g = x >> 19 & 7, n_a = x >> 22 & 15, w_a = x >> 26 & 31;
        const uint32_t deep_g = e * (g + a), deep_a = deep_g + n_g * (7 + w_g), bits = deep_a + n_a * (7 + w_a);
        const bool good = 1 + gx_div_up(bits, 32) == n_words && e <= n && w_a <= 25;
        return {behind + 1, good ? e : 0, {0, g, deep_g, n_g, w_g}, {e * g, a, deep_a, n_a, w_a}};
    }
};

template <bool LDG> struct pfordelta {
    static constexpr int BLOCK = 128, SEG = 128, V = 4;

    const uint32_t *words;
    uint32_t n_words, n, b;
    uint32_t row; /* words before the exceptions */

    static __device__ __forceinline__ uint32_t row_words(uint32_t n_words, uint32_t n, uint32_t b)
    {
        return n_words < n && b < 32 ? gx_div_up(n * b, 32) : n_words + 1;
    }

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t w_n, uint32_t n_, uint32_t, uint32_t param)
    {
        words = w;
        n_words = w_n;
        n = n_;
        b = param;
        row = row_words(n_words, n, b);
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
        const uint32_t first = lane * V;
        if (row > n_words || b == 0 || first >= n) {
#pragma unroll
            for (int i = 0; i < V; ++i)
                v[i] = n_words >= n && first + i < n ? load<LDG>(words + first + i) : 0;
        } else {
            unpack<V, LDG>(words, first * b, b, v);
            if (n < BLOCK) {
#pragma unroll
                for (int i = 1; i < V; ++i)
                    v[i] = first + i < n ? v[i] : 0;
            }
        }
        if (row >= n_words)
            return;
        const pfordelta_exceptions x = pfordelta_exceptions::read<LDG>(words + row, n_words - row, n);
        uint32_t next_position = 0;
#pragma unroll 1
        for (uint32_t k = 0; k < x.e; k += 32) {
            const bool there = k + lane < x.e;
            const uint32_t own = there ? k + lane : 0;
            const uint32_t gap = x.gaps.at<LDG>(x.words, own), above = (x.high_parts.at<LDG>(x.words, own) + 1) << b;
            const uint32_t behind = next_position + warp_inclusive(there ? gap + 1 : 0, lane);
            patch<false>(v, there && behind <= n, behind - 1, above, lane);
            next_position = __shfl_sync(ALL_LANES, behind, 31);
        }
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t i,
                                                  uint32_t b)
    {
        if (n_words >= n)
            return load<LDG>(w + i);
        const uint32_t row = row_words(n_words, n, b);
        if (row > n_words || n_words == 0)
            return 0;
        uint32_t v = b ? read_bits<LDG>(w, i * b, b) : 0;
        if (row == n_words)
            return v;
        const pfordelta_exceptions x = pfordelta_exceptions::read<LDG>(w + row, n_words - row, n);
        for (uint32_t k = 0, position = 0; k < x.e && position <= i; ++k, ++position) {
            position += x.gaps.at<LDG>(x.words, k);
            if (position == i)
                v += (x.high_parts.at<LDG>(x.words, k) + 1) << b;
        }
        return v;
    }
};

} // namespace gx

#endif
