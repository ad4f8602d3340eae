/* decode.cuh: decoders on the device, for kernels that decode and process in one pass. The integers
 * arrive in registers; nothing is written to memory.
 *
 * A warp decodes a block. Each codec has a decoder, a struct with these members:
 *
 *   BLOCK   the most integers in a block
 *   SEG     the integers that one next() yields; SEG divides BLOCK
 *   V       SEG / 32: lane l gets integers l * V .. l * V + V - 1 of the segment
 *   open(words, n_words, n, lane, param)
 *           begins a block of n <= BLOCK integers
 *   next(lane, v)
 *           yields the next segment; integers past n are 0. Called at most ceil(n / SEG) times
 *   at(words, n_words, n, i, param)
 *           static, called by a single lane: returns the i-th integer
 *   find(words, n_words, n, docid, lane, param)
 *           static, optional (can_find), called by all lanes together: in a block of docids,
 *           returns the i whose docid, less the block's head, is docid; n if there is none
 *
 * All 32 lanes call open and next together, for the same block. words may be in shared or in global
 * memory. LDG says that it is in global memory and that nothing writes to it while the kernel runs.
 * Whatever the bytes are, a decoder reads nothing beyond words[n_words] + GX_READ_SLACK.
 *
 *   gx::gpubp128<true> dec;
 *   dec.open(payload + begin, end - begin, n, lane);
 *   uint32_t carry = head - 1, v[dec.V];
 *   for (uint32_t i = 0; i < n; i += dec.SEG) {
 *       dec.next(lane, v);
 *       carry = gx::docids(v, carry, lane);     // v[j]: the docid of posting i + lane * V + j
 *   }
 */
#ifndef GX_CODECS_DECODE_CUH
#define GX_CODECS_DECODE_CUH

#include "codecs/codec.h"
#include "codecs/words/bits.h"

namespace gx {

constexpr uint32_t ALL_LANES = 0xffffffffu;

template <bool LDG> __device__ __forceinline__ uint32_t load(const uint32_t *p)
{
    return LDG ? __ldg(p) : *p;
}

template <class DEC, class = void> struct can_find {
    static constexpr bool value = false;
};
template <class DEC> struct can_find<DEC, decltype((void)&DEC::find)> {
    static constexpr bool value = true;
};

/* The sum of x over the lanes up to and including this one, within groups of LANES lanes (a power
 * of two). The shuffle returns a predicate, "the source lane exists", which guards the addition. A
 * step thus takes two instructions. */
template <int LANES = 32> __device__ __forceinline__ uint32_t warp_inclusive(uint32_t x, uint32_t)
{
#pragma unroll
    for (int o = 1; o < LANES; o <<= 1)
        asm volatile("{\n\t.reg .u32 y;\n\t.reg .pred there;\n\t"
                     "shfl.sync.up.b32 y|there, %0, %1, %2, 0xffffffff;\n\t"
                     "@there add.u32 %0, %0, y;\n\t}"
                     : "+r"(x)
                     : "r"(o), "n"((32 - LANES) << 8));
    return x;
}

/* Turns a segment of coded docids (index/format.h) into docids, in place: d[i] = carry + (v[0] + 1)
 * + .. + (v[i] + 1). For a block's first segment carry is head - 1, later the result of the
 * previous call. Docids past n are meaningless. */
template <int V> __device__ __forceinline__ uint32_t docids(uint32_t (&v)[V], uint32_t carry, uint32_t lane)
{
#pragma unroll
    for (int i = 1; i < V; ++i)
        v[i] += v[i - 1];
    const uint32_t sum = warp_inclusive(v[V - 1], lane);
    const uint32_t before = carry + sum - v[V - 1] + lane * V + 1;
#pragma unroll
    for (int i = 0; i < V; ++i)
        v[i] += before + i;
    return carry + 32 * V + __shfl_sync(ALL_LANES, sum, 31);
}

/* Splits x into its four bytes, the lowest first. */
__device__ __forceinline__ void split4(uint32_t x, uint32_t (&v)[4])
{
#pragma unroll
    for (int j = 0; j < 4; ++j)
        v[j] = x >> (8 * j) & 0xff;
}

/* The integer of b bits at bit `bit` of p. Always reads the word after the one with the first bit,
 * too. */
template <bool LDG> __device__ __forceinline__ uint32_t unpack_one(const uint32_t *p, uint32_t bit, uint32_t b)
{
    p += bit >> 5;
    return __funnelshift_r(load<LDG>(p), load<LDG>(p + 1), bit) & gx_low_bits(b);
}

/* V integers of b bits from bit `bit` of p on. b is the same in all lanes, so the branches do not
 * diverge. Reads up to V words past the one with the first bit. */
template <int V, bool LDG>
__device__ __forceinline__ void unpack(const uint32_t *p, uint32_t bit, uint32_t b, uint32_t (&v)[V])
{
    const uint32_t mask = gx_low_bits(b);
    if (b <= 8 && V % 4 == 0) { /* one 32-bit window holds four */
#pragma unroll
        for (int j = 0; j < V; j += 4) {
            const uint32_t *w = p + (bit >> 5);
            const uint32_t x = __funnelshift_r(load<LDG>(w), load<LDG>(w + 1), bit);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                v[j + i] = (x >> (i * b)) & mask;
            bit += 4 * b;
        }
    } else if (b <= 16 && V % 2 == 0) {
#pragma unroll
        for (int j = 0; j < V; j += 2) {
            const uint32_t *w = p + (bit >> 5);
            const uint32_t x = __funnelshift_r(load<LDG>(w), load<LDG>(w + 1), bit);
            v[j] = x & mask;
            v[j + 1] = (x >> b) & mask;
            bit += 2 * b;
        }
    } else {
#pragma unroll
        for (int j = 0; j < V; ++j) {
            v[j] = unpack_one<LDG>(p, bit, b);
            bit += b;
        }
    }
}

/* GPU-BP: n integers packed at b bits each. b follows from the lengths (gpubp.c). */
template <int BLOCK_, int SEG_, bool LDG> struct gpubp {
    static constexpr int BLOCK = BLOCK_, SEG = SEG_, V = SEG / 32;
    static_assert(BLOCK % SEG == 0 && SEG % 32 == 0, "whole segments");

    const uint32_t *words;
    uint32_t b, left; /* left: integers not decoded yet */

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t, uint32_t = 0)
    {
        words = w;
        left = n;
        b = n == BLOCK ? min(32u, n_words / (BLOCK / 32)) : gx_packed_width(n_words, n);
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
        if (left >= SEG) { /* if b = 0 there are no words, and the mask clears what is read */
            unpack<V, LDG>(words, lane * V * b, b, v);
            words += SEG / 32 * b;
            left -= SEG;
        } else {
            const uint32_t mine = left - min(left, lane * V);
#pragma unroll
            for (int i = 0; i < V; ++i)
                v[i] = i < mine ? unpack_one<LDG>(words, (lane * V + i) * b, b) : 0;
            left = 0;
        }
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t i,
                                                  uint32_t = 0)
    {
        const uint32_t width = n == BLOCK ? min(32u, n_words / (BLOCK / 32)) : gx_packed_width(n_words, n);
        return width ? unpack_one<LDG>(w, i * width, width) : 0;
    }
};

/* GPU-VByte: 2-bit selectors (bytes of an integer, less one), 16 in a word; then the bytes
 * (gpuvbyte.c). */
template <int BLOCK_, bool LDG> struct gpuvbyte {
    static constexpr int BLOCK = BLOCK_, SEG = 128, V = 4;

    const uint32_t *words;
    uint32_t n_words, n, done; /* done: integers decoded */
    uint32_t at_byte;          /* where the next segment's bytes begin */

    /* The word at byte p of the block, p clamped to the block. */
    static __device__ __forceinline__ uint32_t bytes_at(const uint32_t *w, uint32_t n_words, uint32_t p)
    {
        w += min(p >> 2, n_words);
        return __funnelshift_r(load<LDG>(w), load<LDG>(w + 1), p * 8);
    }

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t w_n, uint32_t n_, uint32_t, uint32_t = 0)
    {
        words = w;
        n_words = w_n;
        n = n_;
        done = 0;
        at_byte = gx_div_up(n_, 16) * 4;
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
        const uint32_t first = done + lane * V;
        const uint32_t mine = n_words == 0 || first >= n ? 0 : min(n - first, (uint32_t)V);
        uint32_t selectors = 0;
        if (mine) {
            const uint32_t *w = words + min(first >> 4, n_words - 1);
            selectors = load<LDG>(w) >> (first * 2 & 31) & gx_low_bits(2 * mine);
        }
        const uint32_t bytes = mine + (uint32_t)__popc(selectors & 0x55) + 2 * (uint32_t)__popc(selectors & 0xaa);
        const uint32_t sum = warp_inclusive(bytes, lane);
        uint32_t p = at_byte + sum - bytes;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const uint32_t more = selectors >> (2 * i) & 3;
            v[i] = (uint32_t)i < mine ? bytes_at(words, n_words, p) & (0xffffffffu >> (24 - 8 * more)) : 0;
            p += more + 1;
        }
        at_byte += __shfl_sync(ALL_LANES, sum, 31);
        done += SEG;
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t i,
                                                  uint32_t = 0)
    {
        if (n_words == 0)
            return 0;
        uint32_t p = gx_div_up(n, 16) * 4 + i;
        const uint32_t last = min(i >> 4, n_words - 1);
        for (uint32_t k = 0; k < last; ++k)
            p += gx_sum_2bit(load<LDG>(w + k));
        const uint32_t selectors = load<LDG>(w + last);
        p += gx_sum_2bit(selectors & gx_low_bits(2 * (i & 15)));
        const uint32_t more = selectors >> (2 * (i & 15)) & 3;
        return bytes_at(w, n_words, p) & (0xffffffffu >> (24 - 8 * more));
    }
};

/* raw: each integer is a word. */
template <bool LDG> struct raw {
    static constexpr int BLOCK = 128, SEG = 128, V = 4;

    const uint32_t *words;
    uint32_t n; /* integers that have a word */

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t n_words, uint32_t n_, uint32_t, uint32_t = 0)
    {
        words = w;
        n = min(n_, n_words);
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
#pragma unroll
        for (int i = 0; i < V; ++i)
            v[i] = lane * V + i < n ? load<LDG>(words + lane * V + i) : 0;
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t, uint32_t i,
                                                  uint32_t = 0)
    {
        return i < n_words ? load<LDG>(w + i) : 0;
    }
};

/* Lane1024: lane l has integers 32 l .. 32 l + 31 in words l, l + 32, .. (lane1024.c). One segment,
 * 32 registers. */
template <bool LDG> struct lane1024 {
    static constexpr int BLOCK = 1024, SEG = 1024, V = 32;

    const uint32_t *words;
    uint32_t n_words, n, b;

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t w_n, uint32_t n_, uint32_t, uint32_t = 0)
    {
        words = w;
        n_words = w_n;
        n = n_;
        b = gx_packed_width(w_n, n_);
    }

    /* Unpacks 32 integers of B bits whose words are 32 apart. */
    template <int B> static __device__ __forceinline__ void unpack32(const uint32_t *p, uint32_t (&v)[V])
    {
        uint32_t w[B + 1];
#pragma unroll
        for (int i = 0; i < B; ++i)
            w[i] = load<LDG>(p + i * 32);
        w[B] = 0;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const int k = i * B / 32, shift = i * B % 32;
            v[i] =
                (shift + B <= 32 ? w[k] >> shift : __funnelshift_r(w[k], w[k + 1], shift)) & (0xffffffffu >> (32 - B));
        }
    }

    /* Unpacks a whole block. b is the same in all lanes. */
    static __device__ __forceinline__ void whole(const uint32_t *p, uint32_t b, uint32_t (&v)[V])
    {
        // clang-format off
        switch (b) {
#define GX_CASE(B)                                                                                                     \
    case B:                                                                                                            \
        unpack32<B>(p, v);                                                                                             \
        break;
            GX_CASE(1) GX_CASE(2) GX_CASE(3) GX_CASE(4) GX_CASE(5) GX_CASE(6) GX_CASE(7) GX_CASE(8)
            GX_CASE(9) GX_CASE(10) GX_CASE(11) GX_CASE(12) GX_CASE(13) GX_CASE(14) GX_CASE(15) GX_CASE(16)
            GX_CASE(17) GX_CASE(18) GX_CASE(19) GX_CASE(20) GX_CASE(21) GX_CASE(22) GX_CASE(23) GX_CASE(24)
            GX_CASE(25) GX_CASE(26) GX_CASE(27) GX_CASE(28) GX_CASE(29) GX_CASE(30) GX_CASE(31) GX_CASE(32)
#undef GX_CASE
        default:
#pragma unroll
            for (int i = 0; i < V; ++i)
                v[i] = 0;
        }
        // clang-format on
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
        if (n == BLOCK) {
            whole(words + lane, b, v);
            return;
        }
#pragma unroll
        for (int i = 0; i < V; ++i) {
            const uint32_t k = lane * V + i;
            v[i] = k < n ? gpubp<BLOCK, 128, LDG>::at(words, n_words, n, k) : 0;
        }
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t i,
                                                  uint32_t = 0)
    {
        const uint32_t width = gx_packed_width(n_words, n);
        if (width == 0)
            return 0;
        const bool whole = n == BLOCK;
        const uint32_t bit = whole ? i % 32 * width : i * width;
        w += whole ? bit / 32 * 32 + i / 32 : bit / 32;
        const uint32_t high = bit % 32 + width > 32 ? load<LDG>(w + (whole ? 32 : 1)) : 0;
        return __funnelshift_r(load<LDG>(w), high, bit) & gx_low_bits(width);
    }
};

template <bool LDG> using gpubp128 = gpubp<128, 128, LDG>;
template <bool LDG> using gpubp256 = gpubp<256, 256, LDG>;
template <bool LDG> using gpuvbyte128 = gpuvbyte<128, LDG>;
template <bool LDG> using gpuvbyte1024 = gpuvbyte<1024, LDG>;

} // namespace gx

#endif
