/* varint.cuh: the byte-oriented codes (varint.h) on the device.
 *
 * Lane l of a warp decodes integers 4 l .. 4 l + 3 of a block one after another, from the place
 * where the first begins. A code is a struct that knows how to find places and how to read four
 * integers. Places are found in one of two ways:
 *
 *   varint-SU, varint-GU   by a scan: over the counts of integers that begin in each word, or that
 *                          end in each group
 *   varint-PU, -PB, -GB    by a walk: a place depends on all lengths before it
 *
 * Members of a code:
 *
 *   NARROW                 words of a block of 128 integers of one byte each
 *   narrow(words, lane)    integers 4 l .. 4 l + 3 of such a block, a byte each
 *   is_uncompressed(n_words, n)   whether a block is plain words (varint-PB)
 *   SCANS                  true: places are found by a scan, false: by a walk
 *   if SCANS:
 *     place(words, n_words, n, lane)   where integer 4 l begins, 4 l < n; all lanes together
 *     place_of(words, n_words, i)      where integer i begins; called by a single lane
 *     put_places(words, n_words, lane, pitch, places)
 *                          place() for a block of 128; writes that of lane l to places[l * pitch]
 *   else:
 *     length(first)        bytes from one place to the next, given the first of them
 *   STEP                   integers from one place to the next: 4 in varint-GB, else 1
 *   read(words, n_words, p, v)         the integers v[N] from place p on; varint-GB: four
 *
 * A place is a byte of the block; in varint-GU it is a data byte, and descriptors are not counted.
 * Places beyond the block are clamped to it.
 */
#ifndef GX_CODECS_COMPARED_VARINT_CUH
#define GX_CODECS_COMPARED_VARINT_CUH

#include "codecs/decode.cuh"

namespace gx {

/* Byte p of a block. */
template <bool LDG> __device__ __forceinline__ uint32_t load_byte(const uint32_t *words, uint32_t p)
{
    const uint8_t *const bytes = (const uint8_t *)words + p;
    return LDG ? __ldg(bytes) : *bytes;
}

/* Four bytes of the block from byte p on; p is clamped to the block. */
template <bool LDG>
__device__ __forceinline__ uint32_t load_4_bytes(const uint32_t *words, uint32_t n_words, uint32_t p)
{
    return gpuvbyte<128, LDG>::bytes_at(words, n_words, p);
}

/* The lane that has the `target`-th item of a count over the warp; sums is the lane's inclusive
 * prefix sum. 31 if no lane has it. */
__device__ __forceinline__ uint32_t owner_lane(uint32_t sums, uint32_t target)
{
    uint32_t k = 0;
#pragma unroll
    for (uint32_t step = 16; step > 0; step >>= 1)
        k += __shfl_sync(ALL_LANES, sums, k + step - 1) <= target ? step : 0;
    return k;
}

/* x without its r lowest set bits, r <= MAX. */
template <uint32_t MAX> __device__ __forceinline__ uint32_t clear_lowest_bits(uint32_t x, uint32_t r)
{
#pragma unroll
    for (uint32_t i = 0; i < MAX; ++i)
        x &= i < r ? x - 1 : x;
    return x;
}

__device__ __forceinline__ uint32_t lowest_set_bit(uint32_t x)
{
    return (uint32_t)__ffs((int)x) - 1;
} /* x > 0 */

template <bool LDG> struct code_su {
    static constexpr uint32_t NARROW = 32, STEP = 1;
    static constexpr bool SCANS = true;

    static __device__ __forceinline__ bool is_uncompressed(uint32_t, uint32_t) { return false; }

    static __device__ __forceinline__ uint32_t narrow(const uint32_t *words, uint32_t lane)
    {
        return load<LDG>(words + lane) & 0x7f7f7f7fu;
    }

    /* The bytes that begin an integer, in the lane's word of the 32 from word k on. Each sets the
     * top bit of its byte. ended: whether the byte before word k ends an integer; updated for the
     * next 32 words. */
    static __device__ __forceinline__ uint32_t begins(const uint32_t *words, uint32_t n_words, uint32_t k,
                                                      uint32_t lane, bool &ended)
    {
        const uint32_t ends = k + lane < n_words ? ~load<LDG>(words + k + lane) & 0x80808080u : 0;
        const uint32_t last = __ballot_sync(ALL_LANES, ends >> 31);
        const bool before = lane ? last >> (lane - 1) & 1 : ended;
        ended = last >> 31;
        return k + lane < n_words ? ends << 8 | (before ? 0x80 : 0) : 0;
    }

    static __device__ __forceinline__ uint32_t place(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t lane)
    {
        uint32_t p = 0, before = 0;
        bool ended = true;
        for (uint32_t k = 0; k < n_words && before < n; k += 32) {
            const uint32_t here = begins(words, n_words, k, lane, ended), count = (uint32_t)__popc(here);
            const uint32_t sums = before + warp_inclusive(count, lane), owner = owner_lane(sums, 4 * lane);
            const uint32_t first = __shfl_sync(ALL_LANES, sums - count, owner),
                           bits = __shfl_sync(ALL_LANES, here, owner);
            const uint32_t left = clear_lowest_bits<4>(bits, min(4 * lane - first, 4u));
            if (4 * lane >= first && left)
                p = (k + owner) * 4 + lowest_set_bit(left) / 8;
            before = __shfl_sync(ALL_LANES, sums, 31);
        }
        return p;
    }

    /* Two words for each lane, because most blocks have more than 32 words and few more than 64. At
     * most one of the integers that begin in a word is the first of a lane's four. */
    static __device__ __forceinline__ void put_places(const uint32_t *words, uint32_t n_words, uint32_t lane,
                                                      uint32_t pitch, uint16_t *places)
    {
        uint32_t before = 0;
        bool ended = true;
        for (uint32_t first = 0; first < n_words && before < 128; first += 64) {
            const uint32_t k = first + 2 * lane;
            const uint32_t ends_0 = k < n_words ? ~load<LDG>(words + k) & 0x80808080u : 0;
            const uint32_t ends_1 = k + 1 < n_words ? ~load<LDG>(words + k + 1) & 0x80808080u : 0;
            const uint32_t last = __ballot_sync(ALL_LANES, ends_1 >> 31);
            const uint32_t begin_0 = ends_0 << 8 | ((last << 1 | (ended ? 1u : 0u)) >> lane & 1) << 7;
            const uint32_t begin_1 = ends_1 << 8 | ends_0 >> 31 << 7;
            const uint32_t count_0 = (uint32_t)__popc(begin_0), count = count_0 + (uint32_t)__popc(begin_1);
            const uint32_t sums = before + warp_inclusive(count, lane);
            put_place(begin_0, sums - count, k, pitch, places);
            put_place(begin_1, sums - count + count_0, k + 1, pitch, places);
            before = __shfl_sync(ALL_LANES, sums, 31);
            ended = last >> 31;
        }
    }

    /* begins: the result of begins() for word k; before: how many integers begin before that
     * word. */
    static __device__ __forceinline__ void put_place(uint32_t begins, uint32_t before, uint32_t k, uint32_t pitch,
                                                     uint16_t *places)
    {
        const uint32_t left = clear_lowest_bits<3>(begins, (0 - before) & 3), l = (before + 3) / 4;
        if (left && l < 32)
            places[l * pitch] = (uint16_t)(k * 4 + lowest_set_bit(left) / 8);
    }

    static __device__ __forceinline__ uint32_t place_of(const uint32_t *words, uint32_t n_words, uint32_t i)
    {
        for (uint32_t k = 0; k < n_words; ++k) {
            const uint32_t ends = ~load<LDG>(words + k) & 0x80808080u, count = (uint32_t)__popc(ends);
            if (i <= count)
                return k * 4 + (i ? (lowest_set_bit(clear_lowest_bits<3>(ends, i - 1)) + 1) / 8 : 0);
            i -= count;
        }
        return 4 * n_words;
    }

    template <int N>
    static __device__ __forceinline__ void read(const uint32_t *words, uint32_t n_words, uint32_t p, uint32_t (&v)[N])
    {
#pragma unroll
        for (int i = 0; i < N; ++i)
            v[i] = one(words, n_words, p);
    }

    static __device__ __forceinline__ uint32_t one(const uint32_t *words, uint32_t n_words, uint32_t &p)
    {
        const uint32_t x = load_4_bytes<LDG>(words, n_words, p), ends = ~x & 0x80808080u;
        const uint32_t mine = ends ^ (ends - 1); /* the bits up to the end of the first byte that ends an integer */
        const uint32_t sevens = x & mine & 0x7f7f7f7fu, pairs = (sevens & 0x007f007fu) | (sevens >> 1 & 0x3f803f80u);
        uint32_t v = (pairs & 0x3fff) | (pairs >> 2 & 0x0fffc000u);
        p += (uint32_t)__popc(mine) / 8;
        if (ends == 0) {
            v |= load_4_bytes<LDG>(words, n_words, p) << 28;
            p += 1;
        }
        return v;
    }
};

template <bool LDG> struct code_pu {
    static constexpr uint32_t NARROW = 32, STEP = 1;
    static constexpr bool SCANS = false;

    static __device__ __forceinline__ bool is_uncompressed(uint32_t, uint32_t) { return false; }

    static __device__ __forceinline__ uint32_t narrow(const uint32_t *words, uint32_t lane)
    {
        return load<LDG>(words + lane) >> 1 & 0x7f7f7f7fu;
    }

    /* The length of an integer, given its first byte. */
    static __device__ __forceinline__ uint32_t length(uint32_t first)
    {
        return (uint32_t)__popc((first ^ (first + 1)) & 31);
    }

    template <int N>
    static __device__ __forceinline__ void read(const uint32_t *words, uint32_t n_words, uint32_t p, uint32_t (&v)[N])
    {
#pragma unroll
        for (int i = 0; i < N; ++i)
            v[i] = one(words, n_words, p);
    }

    static __device__ __forceinline__ uint32_t one(const uint32_t *words, uint32_t n_words, uint32_t &p)
    {
        const uint32_t x = load_4_bytes<LDG>(words, n_words, p), bytes = length(x);
        uint32_t v = (x & 0xffffffffu >> (bytes < 4 ? 32 - 8 * bytes : 0)) >> bytes;
        p += bytes;
        if (bytes == 5)
            v |= load_4_bytes<LDG>(words, n_words, p - 1) << 27;
        return v;
    }
};

template <bool LDG> struct code_pb {
    static constexpr uint32_t NARROW = 32, STEP = 1;
    static constexpr bool SCANS = false;

    static __device__ __forceinline__ bool is_uncompressed(uint32_t n_words, uint32_t n) { return n_words > n; }

    static __device__ __forceinline__ uint32_t narrow(const uint32_t *words, uint32_t lane)
    {
        return load<LDG>(words + lane) >> 2 & 0x3f3f3f3fu;
    }

    static __device__ __forceinline__ uint32_t length(uint32_t first) { return (first & 3) + 1; }

    template <int N>
    static __device__ __forceinline__ void read(const uint32_t *words, uint32_t n_words, uint32_t p, uint32_t (&v)[N])
    {
#pragma unroll
        for (int i = 0; i < N; ++i)
            v[i] = one(words, n_words, p);
    }

    static __device__ __forceinline__ uint32_t one(const uint32_t *words, uint32_t n_words, uint32_t &p)
    {
        const uint32_t x = load_4_bytes<LDG>(words, n_words, p);
        p += length(x);
        return (x & 0xffffffffu >> (24 - 8 * (x & 3))) >> 2;
    }
};

template <bool LDG> struct code_gb {
    static constexpr uint32_t NARROW = 40, STEP = 4;
    static constexpr bool SCANS = false;

    static __device__ __forceinline__ bool is_uncompressed(uint32_t, uint32_t) { return false; }

    static __device__ __forceinline__ uint32_t narrow(const uint32_t *words, uint32_t lane)
    {
        return load_4_bytes<LDG>(words, NARROW, 5 * lane + 1);
    }

    /* The length of a group, given its descriptor. */
    static __device__ __forceinline__ uint32_t length(uint32_t descriptor)
    {
        return 5 + gx_sum_2bit(descriptor & 0xff);
    }

    static __device__ __forceinline__ void read(const uint32_t *words, uint32_t n_words, uint32_t p, uint32_t (&v)[4])
    {
        const uint32_t x = load_4_bytes<LDG>(words, n_words, p++);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint32_t more = x >> (2 * i) & 3;
            v[i] = load_4_bytes<LDG>(words, n_words, p) & 0xffffffffu >> (24 - 8 * more);
            p += more + 1;
        }
    }
};

template <bool COMPLETE, bool LDG> struct code_gu {
    static constexpr uint32_t NARROW = 36, STEP = 1;
    static constexpr bool SCANS = true;

    static __device__ __forceinline__ bool is_uncompressed(uint32_t, uint32_t) { return false; }

    static __device__ __forceinline__ uint32_t narrow(const uint32_t *words, uint32_t lane)
    {
        return load_4_bytes<LDG>(words, NARROW, lane / 2 * 9 + lane % 2 * 4 + 1);
    }

    static __device__ __forceinline__ uint32_t groups(uint32_t n_words) { return 4 * n_words / 9; }

    /* The inverted descriptor of a group: ones where integers end. 0 past the last group. */
    static __device__ __forceinline__ uint32_t ends_of(const uint32_t *words, uint32_t n_words, uint32_t group)
    {
        return group < groups(n_words) ? ~load_byte<LDG>(words, 9 * group) & 0xff : 0;
    }

    /* The number of data bytes of a group that belong to an integer of the next one. */
    static __device__ __forceinline__ uint32_t rest(uint32_t ends) { return COMPLETE ? 8 - gx_bit_width(ends) : 0; }

    /* Where the r-th of the integers that end in a group begins. The first of them has `left` bytes
     * in the group before. */
    static __device__ __forceinline__ uint32_t begin(uint32_t group, uint32_t ends, uint32_t r, uint32_t left)
    {
        return 8 * group + (r ? lowest_set_bit(clear_lowest_bits<6>(ends, r - 1)) + 1 : 0 - left);
    }

    static __device__ __forceinline__ uint32_t place(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t lane)
    {
        uint32_t p = 0, before = 0, left = 0;
        for (uint32_t g = 0; g < groups(n_words) && before < n; g += 32) {
            const uint32_t ends = ends_of(words, n_words, g + lane), count = (uint32_t)__popc(ends);
            const uint32_t sums = before + warp_inclusive(count, lane), owner = owner_lane(sums, 4 * lane);
            const uint32_t first = __shfl_sync(ALL_LANES, sums - count, owner),
                           last = __shfl_sync(ALL_LANES, sums, owner);
            const uint32_t of_owner = __shfl_sync(ALL_LANES, ends, owner),
                           of_before = __shfl_sync(ALL_LANES, ends, owner ? owner - 1 : 0);
            if (4 * lane >= first && 4 * lane < last)
                p = begin(g + owner, of_owner, 4 * lane - first, owner ? rest(of_before) : left);
            before = __shfl_sync(ALL_LANES, sums, 31);
            left = rest(__shfl_sync(ALL_LANES, ends, 31));
        }
        return p;
    }

    /* At most two of the integers that end in a group are the first of a lane's four. */
    static __device__ __forceinline__ void put_places(const uint32_t *words, uint32_t n_words, uint32_t lane,
                                                      uint32_t pitch, uint16_t *places)
    {
        uint32_t before = 0, left = 0;
        for (uint32_t g = 0; g < groups(n_words) && before < 128; g += 32) {
            const uint32_t ends = ends_of(words, n_words, g + lane), count = (uint32_t)__popc(ends);
            const uint32_t sums = before + warp_inclusive(count, lane), first = sums - count;
            uint32_t to_the_left = COMPLETE ? __shfl_up_sync(ALL_LANES, rest(ends), 1) : 0;
            to_the_left = lane ? to_the_left : left;
            const uint32_t r = (0 - first) & 3, l = (first + r) / 4;
            uint32_t later =
                clear_lowest_bits<2>(ends, max(r, 1u) - 1); /* lowest bit: the r-th end; the first if r = 0 */
            const uint32_t begun = r ? lowest_set_bit(later) + 1 : 0 - to_the_left;
            if (r < count && l < 32)
                places[l * pitch] = (uint16_t)(8 * (g + lane) + begun);
            if (r + 4 < count && l + 1 < 32) {
                later = clear_lowest_bits<4>(later, r ? 4 : 3);
                places[(l + 1) * pitch] = (uint16_t)(8 * (g + lane) + lowest_set_bit(later) + 1);
            }
            before = __shfl_sync(ALL_LANES, sums, 31);
            left = rest(__shfl_sync(ALL_LANES, ends, 31));
        }
    }

    static __device__ __forceinline__ uint32_t place_of(const uint32_t *words, uint32_t n_words, uint32_t i)
    {
        uint32_t left = 0;
        for (uint32_t g = 0; g < groups(n_words); ++g) {
            const uint32_t ends = ends_of(words, n_words, g), count = (uint32_t)__popc(ends);
            if (i < count)
                return begin(g, ends, i, left);
            i -= count;
            left = rest(ends);
        }
        return 8 * groups(n_words);
    }

    template <int N>
    static __device__ __forceinline__ void read(const uint32_t *words, uint32_t n_words, uint32_t p, uint32_t (&v)[N])
    {
        uint32_t at = p / 8 * 9, from = p % 8; /* at: the byte of the group; from: the data byte in it */
        uint32_t ends = (~load_byte<LDG>(words, min(at, 4 * n_words)) & 0xff) >> from;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            uint32_t low = 0, bits = 0; /* low: the bits of an integer that began in the group before; bits: how many */
            if (ends == 0) {
                if (COMPLETE) {
                    bits = 8 * min(8 - from, 3u);
                    low = load_4_bytes<LDG>(words, n_words, at + from + 1) & ((1u << bits) - 1);
                }
                at += 9;
                from = 0;
                ends = ~load_byte<LDG>(words, min(at, 4 * n_words)) & 0xff;
            }
            const uint32_t more = lowest_set_bit(ends | 8);
            v[i] = low | (load_4_bytes<LDG>(words, n_words, at + from + 1) & 0xffffffffu >> (24 - 8 * more)) << bits;
            ends >>= more + 1;
            from += more + 1;
        }
    }
};

/* Walks to integer i, a multiple of CODE::STEP, and returns where it begins. */
template <class CODE, bool LDG>
__device__ __forceinline__ uint32_t walk(const uint32_t *words, uint32_t n_words, uint32_t i)
{
    uint32_t p = 0;
    for (; i > 0; i -= CODE::STEP)
        p += CODE::length(load_byte<LDG>(words, min(p, 4 * n_words)));
    return p;
}

/* Where integer 4 l of a block begins, for lane l. */
template <class CODE, bool LDG>
__device__ __forceinline__ uint32_t lane_place(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t lane)
{
    if constexpr (CODE::SCANS) {
        return CODE::place(words, n_words, n, lane);
    } else {
        uint32_t p = 0, mine = 0;
        for (uint32_t i = 0; i < n; i += 4) {
            mine = i == 4 * lane ? p : mine;
#pragma unroll
            for (uint32_t k = 0; k < 4; k += CODE::STEP)
                p += CODE::length(load_byte<LDG>(words, min(p, 4 * n_words)));
        }
        return mine;
    }
}

template <class CODE, bool LDG> struct varint {
    static constexpr int BLOCK = 128, SEG = 128, V = 4;

    const uint32_t *words;
    uint32_t n_words, n;

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t w_n, uint32_t n_, uint32_t, uint32_t = 0)
    {
        words = w;
        n_words = w_n;
        n = n_;
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
        if (n_words == 0) {
#pragma unroll
            for (int i = 0; i < V; ++i)
                v[i] = 0;
        } else if (CODE::is_uncompressed(n_words, n)) {
#pragma unroll
            for (int i = 0; i < V; ++i)
                v[i] = load<LDG>(words + min(lane * V + i, n_words));
        } else if (n == BLOCK && n_words == CODE::NARROW) {
            split4(CODE::narrow(words, lane), v);
        } else {
            CODE::read(words, n_words, lane_place<CODE, LDG>(words, n_words, n, lane), v);
        }
#pragma unroll
        for (int i = 0; i < V; ++i)
            v[i] = lane * V + i < n ? v[i] : 0;
    }

    static __device__ __forceinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t i,
                                                  uint32_t = 0)
    {
        if (n_words == 0)
            return 0;
        if (CODE::is_uncompressed(n_words, n))
            return load<LDG>(w + i);
        if constexpr (CODE::STEP == 4) {
            uint32_t p = walk<CODE, LDG>(w, n_words, i & ~3u);
            const uint32_t x = load_4_bytes<LDG>(w, n_words, p), before = x & gx_low_bits(2 * (i & 3));
            return load_4_bytes<LDG>(w, n_words, p + 1 + (i & 3) + gx_sum_2bit(before)) &
                   0xffffffffu >> (24 - 8 * (x >> 2 * (i & 3) & 3));
        } else {
            uint32_t v[1];
            if constexpr (CODE::SCANS)
                CODE::read(w, n_words, CODE::place_of(w, n_words, i), v);
            else
                CODE::read(w, n_words, walk<CODE, LDG>(w, n_words, i), v);
            return v[0];
        }
    }
};

template <bool LDG> using varintsu = varint<code_su<LDG>, LDG>;
template <bool LDG> using varintpu = varint<code_pu<LDG>, LDG>;
template <bool LDG> using varintg8iu = varint<code_gu<false, LDG>, LDG>;
template <bool LDG> using varintg8cu = varint<code_gu<true, LDG>, LDG>;
template <bool LDG> using varintpb = varint<code_pb<LDG>, LDG>;
template <bool LDG> using varintgb = varint<code_gb<LDG>, LDG>;

} // namespace gx

#endif
