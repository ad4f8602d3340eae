/* eliasfano.cuh: Elias-Fano on the device (decode.cuh). Each lane takes a word of high bits. A scan
 * over their counts tells which sums of the block a word holds; from it a lane finds the bit of
 * each of its own sums. */
#ifndef GX_CODECS_ELIASFANO_CUH
#define GX_CODECS_ELIASFANO_CUH

#include "codecs/decode.cuh"
#include "codecs/words/eliasfano.h"

namespace gx {

template <bool LDG> struct ef128 {
    static constexpr int BLOCK = 128, SEG = 128, V = 4;

    const uint32_t *words;
    uint32_t n_words, n;

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t w_n, uint32_t n_, uint32_t, uint32_t = 0)
    {
        words = w;
        n_words = w_n;
        n = n_;
    }

    /* The lane's word of high bits, without the bits of the field b. */
    static __device__ __forceinline__ uint32_t high_word(const uint32_t *w, gx_ef_block e, uint32_t lane)
    {
        const uint32_t x = lane < min(e.n_high, GX_EF_MAX_HIGH) ? load<LDG>(w + lane) : 0;
        return lane ? x : x & ~gx_low_bits(GX_EF_B_BITS);
    }

    /* The low part of sum i, i < n. */
    static __device__ __forceinline__ uint32_t low_part(const uint32_t *w, gx_ef_block e, uint32_t i)
    {
        if (e.b == 0)
            return 0;
        const uint32_t bit = i * e.b;
        w += e.n_high + (bit >> 5);
        return __funnelshift_r(load<LDG>(w), load<LDG>(w + 1), bit) & gx_low_bits(e.b);
    }

    /* The position of the r-th set bit of x, from 0. x has more than r. */
    static __device__ __forceinline__ uint32_t select(uint32_t x, uint32_t r)
    {
        uint32_t at = 0;
#pragma unroll
        for (uint32_t o = 16; o; o >>= 1) {
            const uint32_t c = __popc(x >> at & gx_low_bits(o));
            at += r >= c ? o : 0;
            r -= r >= c ? c : 0;
        }
        return at;
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = 0;
        if (n_words == 0)
            return;
        const gx_ef_block e = gx_ef_open(load<LDG>(words), n_words, n);
        const uint32_t x = high_word(words, e, lane), end = warp_inclusive(__popc(x), lane), first = lane * V;
        const uint32_t filled = __ballot_sync(ALL_LANES, x), all = __shfl_sync(ALL_LANES, end, 31);
        uint32_t src = 0; /* the word that holds the lane's first sum */
#pragma unroll
        for (uint32_t o = 16; o; o >>= 1)
            src += __shfl_sync(ALL_LANES, end, src + o - 1) <= first ? o : 0;
        uint32_t y = __shfl_sync(ALL_LANES, x, src),
                 at = select(y, first - __shfl_sync(ALL_LANES, end - __popc(x), src));
        y &= 0xffffffffu << (at & 31);
        if (e.b && first < n)
            unpack<V, LDG>(words + e.n_high, first * e.b, e.b, v);
#pragma unroll
        for (int j = 0; j < V; ++j) {
            v[j] += (32 * src + __ffs(y) - 1 - GX_EF_B_BITS - (first + j)) << e.b;
            y &= y - 1;
            const uint32_t behind = filled & (src < 31 ? 0xfffffffeu << src : 0);
            src = y == 0 && behind ? __ffs(behind) - 1 : src;
            const uint32_t z = __shfl_sync(ALL_LANES, x, src);
            y = y ? y : z;
        }
        uint32_t before = __shfl_up_sync(ALL_LANES, v[V - 1], 1);
        before = lane ? before : 0;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            const uint32_t sum = v[j];
            v[j] = first + j < min(n, all) ? sum - before : 0;
            before = sum;
        }
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t i,
                                                  uint32_t = 0)
    {
        if (n_words == 0)
            return 0;
        const gx_ef_block e = gx_ef_open(load<LDG>(w), n_words, n);
        uint32_t count = 0, k = 0, x = 0, last = 0, last_at = 0; /* last, last_at: the last set bit before word k */
        for (; k < min(e.n_high, GX_EF_MAX_HIGH); ++k) {
            x = load<LDG>(w + k) & (k ? 0xffffffffu : ~gx_low_bits(GX_EF_B_BITS));
            const uint32_t c = __popc(x);
            if (i < count + c)
                break;
            if (x) {
                last = 31 - __clz(x);
                last_at = 32 * k;
            }
            count += c;
        }
        if (k == min(e.n_high, GX_EF_MAX_HIGH))
            return 0;
        const uint32_t r = i - count, bit = select(x, r);
        const uint32_t sum = ((32 * k + bit - GX_EF_B_BITS - i) << e.b) + low_part(w, e, i);
        if (i == 0)
            return sum;
        const uint32_t left = r ? 32 * k + 31 - __clz(x & gx_low_bits(bit)) : last_at + last;
        return sum - ((left - GX_EF_B_BITS - (i - 1)) << e.b) - low_part(w, e, i - 1);
    }

    /* Called by the whole warp: the i for which v[0] + .. + v[i] + i, a docid less its head, is
     * `docid`; n if there is none. */
    static __device__ __forceinline__ uint32_t find(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t docid,
                                                    uint32_t lane, uint32_t = 0)
    {
        if (n_words == 0)
            return min(docid, n);
        const gx_ef_block e = gx_ef_open(load<LDG>(w), n_words, n);
        const uint32_t x = high_word(w, e, lane), begin = warp_inclusive(__popc(x), lane) - __popc(x);
        /* the first docid of the lane's word; the docid sought is in the last word whose first is
         * not greater */
        const uint32_t first =
            ((32 * lane + __ffs(x) - 1 - GX_EF_B_BITS - begin) << e.b) + low_part(w, e, min(begin, n - 1)) + begin;
        const uint32_t not_greater = __ballot_sync(ALL_LANES, x && first <= docid);
        if (not_greater == 0)
            return n;
        const uint32_t src = 31 - __clz(not_greater), y = __shfl_sync(ALL_LANES, x, src);
        const uint32_t i = __shfl_sync(ALL_LANES, begin, src) + __popc(y & gx_low_bits(lane));
        const uint32_t d = ((32 * src + lane - GX_EF_B_BITS - i) << e.b) + low_part(w, e, min(i, n - 1)) + i;
        const uint32_t hit = __ballot_sync(ALL_LANES, (y >> lane & 1) && i < n && d == docid);
        return hit ? __shfl_sync(ALL_LANES, i, __ffs(hit) - 1) : n;
    }
};

} // namespace gx

#endif
