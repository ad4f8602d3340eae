/* bitmap_ranges.cuh: the rows whose value lies in a range of bins, low to high inclusive, by other
 * encodings of an attribute than a column a bin. All write a mask: bit r % 32 of word r / 32 is row
 * r, n_words of them, four at a time: all arrays are padded to multiples of four words.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_RANGES_CUH
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_RANGES_CUH

#include <stdint.h>

namespace gx {

constexpr int RANGE_THREADS = 256;

/* Range encoding: column b has the rows whose bin is at most b. Two columns answer any range.
 * below: the column of low - 1, or NULL where low is 0. */
static __global__ void __launch_bounds__(RANGE_THREADS)
    range_by_columns(const uint4 *high, const uint4 *below, uint64_t n_quads, uint4 *mask)
{
    const uint64_t i = blockIdx.x * (uint64_t)RANGE_THREADS + threadIdx.x;
    if (i >= n_quads)
        return;
    uint4 x = __ldg(high + i);
    if (below) {
        const uint4 y = __ldg(below + i);
        x.x &= ~y.x, x.y &= ~y.y, x.z &= ~y.z, x.w &= ~y.w;
    }
    mask[i] = x;
}

/* Bit slices: slice k has the rows whose bin has bit k. At most 8 of them, n_quads * 4 words each. */
static __global__ void __launch_bounds__(RANGE_THREADS)
    range_by_slices(const uint4 *slices, uint32_t n_slices, uint32_t low, uint32_t high, uint64_t n_rows,
                    uint64_t n_quads, uint4 *mask)
{
    const uint64_t i = blockIdx.x * (uint64_t)RANGE_THREADS + threadIdx.x;
    if (i >= n_quads)
        return;
    uint4 s[8];
#pragma unroll
    for (uint32_t k = 0; k < 8; ++k)
        s[k] = k < n_slices ? __ldg(slices + k * n_quads + i) : make_uint4(0, 0, 0, 0);
    uint32_t out[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        uint32_t less = 0, more = 0, as_low = ~0u, as_high = ~0u; /* than low, than high, by the bits above */
#pragma unroll
        for (int k = 7; k >= 0; --k) {
            const uint32_t bits = word == 0 ? s[k].x : word == 1 ? s[k].y : word == 2 ? s[k].z : s[k].w;
            less |= low >> k & 1 ? as_low & ~bits : 0;
            as_low &= low >> k & 1 ? bits : ~bits;
            more |= high >> k & 1 ? 0 : as_high & bits;
            as_high &= high >> k & 1 ? bits : ~bits;
        }
        const uint64_t row = (i * 4 + word) * 32;
        out[word] = row >= n_rows ? 0 : ~(less | more) & ~0u >> (n_rows - row < 32 ? 32 - (n_rows - row) : 0);
    }
    mask[i] = make_uint4(out[0], out[1], out[2], out[3]);
}

/* A forward column: the bin of each row, a byte. A warp makes 32 words of the mask at a time; each
 * lane reads 32 bytes. */
static __global__ void __launch_bounds__(RANGE_THREADS)
    range_by_values(const uint4 *values, uint32_t low, uint32_t high, uint64_t n_words, uint32_t *mask)
{
    const uint64_t i = blockIdx.x * (uint64_t)RANGE_THREADS + threadIdx.x;
    if (i >= n_words)
        return;
    const uint4 a = __ldcs(values + 2 * i), b = __ldcs(values + 2 * i + 1);
    const uint32_t words[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    const uint32_t lows = low * 0x01010101u, highs = high * 0x01010101u;
    uint32_t out = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) { /* four bytes of 0 or 1 to four bits */
        const uint32_t in = __vcmpgeu4(words[k], lows) & __vcmpleu4(words[k], highs) & 0x01010101u;
        out |= (in * 0x01020408u >> 24) << 4 * k;
    }
    mask[i] = out;
}

} // namespace gx

#endif
