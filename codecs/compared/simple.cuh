/* simple.cuh: Simple-9, Simple-16 and Simple-8b on the device (decode.cuh). Each lane takes a word.
 * Words are independent once a scan over their counts tells where their integers go. */
#ifndef GX_CODECS_COMPARED_SIMPLE_CUH
#define GX_CODECS_COMPARED_SIMPLE_CUH

#include "codecs/compared/simple.h"
#include "codecs/decode.cuh"

namespace gx {

/* What a lane must know of a selector, in one word: the number n of integers, their width b and,
 * for Simple-16, a set of integers that are one bit wider (bit i: integer i). Simple-8b: n | b <<
 * 8; the others: n | b << 5 | set << 10. */
__host__ __device__ constexpr uint32_t simple_entry(uint32_t n0, uint32_t b0, uint32_t n1, uint32_t b1, uint32_t n2,
                                                    uint32_t b2)
{
    const uint32_t least = n1 == 0 ? b0 : b0 < b1 ? b0 : b1; /* the third of three widths equals the first */
    return (n0 + n1 + n2) | least << 5 |
           ((b0 > least ? (1u << n0) - 1 : 0) | (n1 && b1 > least ? ((1u << n1) - 1) << n0 : 0) |
            (n2 && b2 > least ? ((1u << n2) - 1) << (n0 + n1) : 0))
               << 10;
}

/* Words of 32 bits. VARIED: a word has integers of two widths. */
template <bool VARIED> struct simple_words_32 {
    typedef uint32_t word;
    static constexpr uint32_t SIZE = 1;

    template <bool LDG> static __device__ __forceinline__ word get(const uint32_t *p) { return load<LDG>(p); }
    static __device__ __forceinline__ uint32_t selector(word x) { return x >> 28; }
    static __device__ __forceinline__ uint32_t count(uint32_t entry) { return entry & 31; }
    static __device__ __forceinline__ uint32_t bits(uint32_t entry)
    {
        return (entry >> 5 & 31) + (VARIED && entry >> 10 != 0);
    }

    /* Integer k of a word. */
    static __device__ __forceinline__ uint32_t one(word x, uint32_t entry, uint32_t k)
    {
        const uint32_t b = entry >> 5 & 31;
        if (!VARIED)
            return x >> (k * b) & gx_low_bits(b);
        const uint32_t wide = entry >> 10;
        return x >> (k * b + __popc(wide & gx_low_bits(k))) & gx_low_bits(b + (wide >> k & 1));
    }

    /* Writes the first n integers of a word to out. All lanes call it, each with its own word. */
    static __device__ __forceinline__ void expand(word x, uint32_t entry, uint32_t n, uint32_t *out)
    {
        const uint32_t b = entry >> 5 & 31, above = 0xffffffffu << b;
        uint32_t wide = entry >> 10;
        for (uint32_t k = 0; __any_sync(ALL_LANES, k < n); k += 4) {
#pragma unroll
            for (uint32_t i = 0; i < 4; ++i) {
                const uint32_t more = VARIED ? wide & 1 : 0;
                if (k + i < n)
                    out[k + i] = x & ~(above << more);
                x >>= b + more;
                wide >>= 1;
            }
        }
    }
};

struct simple9_words : simple_words_32<false> {
    static __device__ __forceinline__ bool escape(word x) { return x >> 28 == GX_SIMPLE9_ESCAPE; }

    static __device__ __forceinline__ uint32_t entry(uint32_t selector)
    {
#define GX_ENTRY(s, ...) simple_entry(__VA_ARGS__),
        static const uint32_t entries[16] = {GX_SIMPLE9(GX_ENTRY)};
        return entries[selector];
    }
};

struct simple16_words : simple_words_32<true> {
    static __device__ __forceinline__ bool escape(word x) { return x >> 20 == GX_SIMPLE16_ESCAPE; }

    static __device__ __forceinline__ uint32_t entry(uint32_t selector)
    {
        static const uint32_t entries[16] = {GX_SIMPLE16(GX_ENTRY)};
#undef GX_ENTRY
        return entries[selector];
    }
};

struct simple8b_words {
    typedef uint64_t word;
    static constexpr uint32_t SIZE = 2;

    template <bool LDG> static __device__ __forceinline__ word get(const uint32_t *p)
    {
        return (uint64_t)load<LDG>(p + 1) << 32 | load<LDG>(p);
    }
    static __device__ __forceinline__ uint32_t selector(word x) { return (uint32_t)(x >> 60); }
    static __device__ __forceinline__ bool escape(word) { return false; }
    static __device__ __forceinline__ uint32_t count(uint32_t entry) { return entry & 255; }
    static __device__ __forceinline__ uint32_t bits(uint32_t entry) { return entry >> 8; }

    static __device__ __forceinline__ uint32_t entry(uint32_t selector)
    {
#define GX_ENTRY(s, n, b, ...) (n) | (b) << 8,
        static const uint32_t entries[16] = {GX_SIMPLE8B(GX_ENTRY)};
#undef GX_ENTRY
        return entries[selector];
    }

    static __device__ __forceinline__ uint32_t one(word x, uint32_t entry, uint32_t k)
    {
        const uint32_t b = entry >> 8;
        return (uint32_t)(x >> (k * b & 63)) & gx_low_bits(min(b, 32u));
    }

    static __device__ __forceinline__ void expand(word x, uint32_t entry, uint32_t n, uint32_t *out)
    {
        const uint32_t b = entry >> 8, mask = gx_low_bits(min(b, 32u));
        n = b ? n : 0; /* out is zero already */
        for (uint32_t k = 0; __any_sync(ALL_LANES, k < n); k += 4) {
#pragma unroll
            for (uint32_t i = 0; i < 4; ++i) {
                if (k + i < n)
                    out[k + i] = (uint32_t)x & mask;
                x >>= b;
            }
        }
    }
};

/* What an escape adds to the integer after it. */
template <class WORDS> __device__ __forceinline__ uint32_t simple_high(typename WORDS::word x)
{
    return WORDS::escape(x) ? (uint32_t)(x & GX_SIMPLE_HIGH) << GX_SIMPLE_LOW : 0;
}

template <class WORDS, bool LDG> struct simple {
    static constexpr int BLOCK = 128, SEG = 128, V = 4;
    typedef typename WORDS::word word;

    const uint32_t *words;
    uint32_t n_words, n;

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t w_n, uint32_t n_, uint32_t, uint32_t = 0)
    {
        words = w;
        n_words = w_n;
        n = n_;
    }

    /* The warp takes 32 words at a time, one in each lane. Each lane then finds the word of each of
     * its integers from the positions where the words end. */
    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
        const uint32_t my_entry = WORDS::entry(lane % 16);
        uint32_t begin = 0; /* integers before these words */
        word before = 0;    /* the word before these */
#pragma unroll
        for (int j = 0; j < V; ++j)
            v[j] = 0;
#pragma unroll 1
        for (uint32_t k = 0; k + WORDS::SIZE <= n_words && begin < n; k += 32 * WORDS::SIZE) {
            const uint32_t at_word = k + lane * WORDS::SIZE;
            const bool there = at_word + WORDS::SIZE <= n_words;
            const word x = there ? WORDS::template get<LDG>(words + at_word) : 0;
            const uint32_t entry = __shfl_sync(ALL_LANES, my_entry, WORDS::selector(x));
            const uint32_t count = there && !WORDS::escape(x) ? WORDS::count(entry) : 0;
            const uint32_t end = begin + warp_inclusive(count, lane);
            const bool escapes = __any_sync(ALL_LANES, WORDS::escape(x) || WORDS::escape(before));
#pragma unroll
            for (int j = 0; j < V; ++j) {
                const uint32_t i = lane * V + j;
                uint32_t src = 0; /* the word that holds integer i */
#pragma unroll
                for (uint32_t o = 16; o; o >>= 1)
                    src += __shfl_sync(ALL_LANES, end, src + o - 1) <= i ? o : 0;
                const word y = __shfl_sync(ALL_LANES, x, src);
                const uint32_t e = __shfl_sync(ALL_LANES, entry, src), first = __shfl_sync(ALL_LANES, end - count, src);
                const uint32_t last = __shfl_sync(ALL_LANES, end, src);
                uint32_t high = 0;
                if (escapes) {
                    const word left = __shfl_sync(ALL_LANES, x, (src - 1) & 31);
                    high = i == first ? simple_high<WORDS>(src ? left : before) : 0;
                }
                if (i >= first && i < last && i < n)
                    v[j] = WORDS::one(y, e, i - first) + high;
            }
            begin = __shfl_sync(ALL_LANES, end, 31);
            before = __shfl_sync(ALL_LANES, x, 31);
        }
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t, uint32_t i,
                                                  uint32_t = 0)
    {
        uint32_t high = 0;
        for (uint32_t k = 0; k + WORDS::SIZE <= n_words; k += WORDS::SIZE) {
            const word x = WORDS::template get<LDG>(w + k);
            const uint32_t entry = WORDS::entry(WORDS::selector(x));
            const uint32_t count = WORDS::escape(x) ? 0 : WORDS::count(entry);
            if (i < count)
                return WORDS::one(x, entry, i) + (i == 0 ? high : 0);
            i -= count;
            high = simple_high<WORDS>(x);
        }
        return 0;
    }
};

template <bool LDG> using simple9 = simple<simple9_words, LDG>;
template <bool LDG> using simple16 = simple<simple16_words, LDG>;
template <bool LDG> using simple8b = simple<simple8b_words, LDG>;

} // namespace gx

#endif
