/* rice.cuh: Rice (rice.c) on the device. */
#ifndef GX_CODECS_RICE_CUH
#define GX_CODECS_RICE_CUH

#include "codecs/patch.cuh"

namespace gx {

/* The position of the k-th set bit of x, k < popc(x). */
__device__ __forceinline__ uint32_t select_bit(uint32_t x, uint32_t k)
{
    uint32_t at = 0;
#pragma unroll
    for (uint32_t half = 16; half > 0; half >>= 1) {
        const uint32_t below = __popc(x >> at & gx_low_bits(half));
        const bool above = k >= below;
        k -= above ? below : 0;
        at += above ? half : 0;
    }
    return at;
}

/* The lanes count the ones of the unary part, one word each, and scan the counts. Each lane then
 * finds where its four integers begin, and reads on from there. */
template <bool LDG> struct rice {
    static constexpr int BLOCK = 128, SEG = 128, V = 4;

    const uint32_t *words;
    uint32_t n_words, n, b;
    uint32_t row; /* words before the unary part; n_words if there is none */

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t w_n, uint32_t n_, uint32_t, uint32_t param)
    {
        words = w;
        n_words = w_n;
        n = n_;
        b = param;
        row = n_words < n && b < 32 ? min(gx_div_up(n * b, 32), n_words) : n_words;
    }

    /* The bit at which the unary part of integer `first` begins: after the one that ends the
     * integer before it. Past the end if there are fewer integers. */
    __device__ __forceinline__ uint32_t begin_of(uint32_t first, uint32_t lane) const
    {
        uint32_t at = first ? (n_words - row) * 32 : 0, ones = 0;
        for (uint32_t k = row; k < n_words; k += 32) {
            const uint32_t word = k + lane < n_words ? load<LDG>(words + k + lane) : 0, c = __popc(word);
            const uint32_t sum = warp_inclusive(c, lane) + ones;
            uint32_t j = 0; /* words that end before integer `first` begins */
#pragma unroll
            for (uint32_t step = 16; step > 0; step >>= 1)
                j += __shfl_sync(ALL_LANES, sum, j + step - 1) < first ? step : 0;
            const uint32_t x = __shfl_sync(ALL_LANES, word, j), before = __shfl_sync(ALL_LANES, sum - c, j);
            if (before < first && first <= before + __popc(x))
                at = (k - row + j) * 32 + select_bit(x, first - 1 - before) + 1;
            ones = __shfl_sync(ALL_LANES, sum, 31);
            if (ones >= n)
                break;
        }
        return at;
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
        const uint32_t first = lane * V;
        if (row >= n_words) { /* a block of zeros, of plain words, or a damaged one */
#pragma unroll
            for (int i = 0; i < V; ++i)
                v[i] = n_words >= n && first + i < n ? load<LDG>(words + first + i) : 0;
            return;
        }
        if (b != 0 && first < n) {
            unpack<V, LDG>(words, first * b, b, v);
        } else {
#pragma unroll
            for (int i = 0; i < V; ++i)
                v[i] = 0;
        }
        uint32_t at = begin_of(first, lane);
        const uint32_t end = (n_words - row) * 32;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            uint32_t zeros = 0, x = 0;
            while (at + zeros < end) {
                const uint32_t *const w = words + row + ((at + zeros) >> 5);
                x = __funnelshift_r(load<LDG>(w), load<LDG>(w + 1), at + zeros);
                if (x)
                    break;
                zeros += 32;
            }
            zeros += x ? (uint32_t)__ffs((int)x) - 1 : 0;
            v[i] = first + i < n ? v[i] + (zeros << b) : 0;
            at += zeros + 1;
        }
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t i,
                                                  uint32_t b)
    {
        if (n_words >= n)
            return load<LDG>(w + i);
        const uint32_t row = b < 32 ? gx_div_up(n * b, 32) : n_words;
        if (row >= n_words)
            return 0;
        uint32_t ones = 0, before = 0; /* before: where integer i begins */
        for (uint32_t k = row; k < n_words; ++k) {
            const uint32_t x = load<LDG>(w + k), c = __popc(x), base = (k - row) * 32;
            if (i > 0 && ones < i && i <= ones + c)
                before = base + select_bit(x, i - 1 - ones) + 1;
            if (i < ones + c)
                return read_bits<LDG>(w, i * b, b) + ((base + select_bit(x, i - ones) - before) << b);
            ones += c;
        }
        return read_bits<LDG>(w, i * b, b);
    }
};

} // namespace gx

#endif
