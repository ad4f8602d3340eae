/* Whole lists on the GPU.
 *
 * A warp takes a group of consecutive blocks, 1,024 integers or more. It reads their ends with one load, has their words,
 * which lie in a row, brought into shared memory by the copy engine, and unpacks from there four integers a lane, so that
 * every store of a warp is 512 bytes in a row. Groups whose words do not fit the stage are read where they are.
 */
#include <algorithm>

#include "codecs/decode.cuh"
#include "codecs/decode.h"
#include "engine/status.h"

namespace {

using namespace gx;

constexpr uint32_t WARPS = 8; /* a thread block, where a warp takes a block */

struct list_view {
    const uint32_t *words, *ends, *heads;
    uint64_t n;
    uint32_t n_blocks, param;
    uint32_t n_warps; /* that share the groups (decode_groups) */
};

/* Where decoded integers go: to memory, or into a sum. */
template <bool FUSED> struct sink {
    uint32_t *out;
    uint32_t sum = 0;

    __device__ __forceinline__ void put(uint64_t at, uint32_t lane, uint32_t (&v)[4])
    {
        if (FUSED) {
            keep(v);
        } else {
            __stcs((uint4 *)(out + at) + lane, make_uint4(v[0], v[1], v[2], v[3]));
        }
    }

    /* Each integer comes to be, and into the sum. */
    template <int V> __device__ __forceinline__ void keep(uint32_t (&v)[V])
    {
#pragma unroll
        for (int i = 0; i < V; ++i) {
            asm volatile("" : "+r"(v[i]));
            sum += v[i];
        }
    }

    __device__ __forceinline__ void put_one(uint64_t at, uint32_t v)
    {
        if (FUSED)
            sum += v;
        else
            out[at] = v;
    }

    __device__ __forceinline__ void close(uint32_t warp, uint32_t lane)
    {
        if (FUSED) {
            sum = __reduce_add_sync(ALL_LANES, sum);
            if (lane == 0)
                atomicAdd(out + warp % GX_N_SUMS, sum);
        }
    }
};

/* Any block of any codec, by its decoder. */
template <class DEC, bool DOCIDS, bool FUSED>
__device__ __forceinline__ void decode_block(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t param, uint32_t head,
                                             uint64_t at, uint32_t lane, sink<FUSED> &to)
{
    DEC dec;
    dec.open(words, n_words, n, lane, param);
    uint32_t v[DEC::V], carry = head - 1;
    for (uint32_t i = 0; i < n; i += DEC::SEG) {
        dec.next(lane, v);
        if (DOCIDS)
            carry = docids(v, carry, lane);
#pragma unroll
        for (int j = 0; j < DEC::V; ++j) {
            const uint32_t k = i + lane * DEC::V + j;
            if (k < n)
                to.put_one(at + k, v[j]);
        }
    }
}

template <class DEC, bool DOCIDS, bool FUSED> __global__ void __launch_bounds__(WARPS * 32) decode_blocks(list_view l, uint32_t *out)
{
    const uint32_t lane = threadIdx.x % 32, k = blockIdx.x * WARPS + threadIdx.x / 32;
    if (k >= l.n_blocks)
        return;
    sink<FUSED> to{out};
    const uint32_t begin = k ? __ldg(l.ends + k - 1) : 0, end = __ldg(l.ends + k);
    const uint64_t at = (uint64_t)k * DEC::BLOCK;
    const uint32_t n = min((uint64_t)DEC::BLOCK, l.n - at);
    decode_block<DEC, DOCIDS>(l.words + begin, end - begin, n, l.param, DOCIDS ? __ldg(l.heads + k) : 0, at, lane, to);
    to.close(k, lane);
}

template <class DEC> __global__ void __launch_bounds__(WARPS * 32) at_blocks(list_view l, uint32_t *out)
{
    const uint64_t at = (uint64_t)blockIdx.x * (WARPS * 32) + threadIdx.x;
    if (at >= l.n)
        return;
    const uint32_t k = (uint32_t)(at / DEC::BLOCK), begin = k ? __ldg(l.ends + k - 1) : 0, end = __ldg(l.ends + k);
    const uint32_t n = min((uint64_t)DEC::BLOCK, l.n - (uint64_t)k * DEC::BLOCK);
    out[at] = DEC::at(l.words + begin, end - begin, n, (uint32_t)(at % DEC::BLOCK), l.param);
}

/* Two segments of 128 integers, four a lane, to docids. narrow: a segment's sum is below 2^16, so that one scan serves
 * both. base_a, base_b: head of the block; joined: b follows a in one block, and base_b is not used. */
__device__ __forceinline__ void docids_of_two(uint32_t (&a)[4], uint32_t (&b)[4], bool narrow, uint32_t base_a, uint32_t base_b,
                                              bool joined, uint32_t lane)
{
#pragma unroll
    for (int i = 1; i < 4; ++i) {
        a[i] += a[i - 1];
        b[i] += b[i - 1];
    }
    uint32_t before_a, before_b, all_a;
    if (narrow) {
        const uint32_t own = a[3] | b[3] << 16;
        const uint32_t sum = warp_inclusive(own, lane);
        before_a = (sum - own) & 0xffff;
        before_b = (sum - own) >> 16;
        all_a = joined ? __shfl_sync(ALL_LANES, sum, 31) & 0xffff : 0;
    } else {
        const uint32_t sum_a = warp_inclusive(a[3], lane), sum_b = warp_inclusive(b[3], lane);
        before_a = sum_a - a[3];
        before_b = sum_b - b[3];
        all_a = joined ? __shfl_sync(ALL_LANES, sum_a, 31) : 0;
    }
    before_a += base_a + lane * 4;
    before_b += (joined ? base_a + all_a + 128 : base_b) + lane * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        a[i] += before_a + i;
        b[i] += before_b + i;
    }
}

/* ---- GPU-BP ---- */

/* Four integers of b <= 8 bits from bit `bit`. */
template <bool LDG> __device__ __forceinline__ void unpack4_narrow(const uint32_t *p, uint32_t bit, uint32_t b, uint32_t *v)
{
    const uint32_t mask = gx_mask(b);
    p += bit >> 5;
    const uint32_t x = __funnelshift_r(load<LDG>(p), load<LDG>(p + 1), bit);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = (x >> (i * b)) & mask;
}

template <int BLOCK_, int GROUP_, int BITS, int PLACES_> struct gpubp_groups { /* BITS an integer are staged */
    static constexpr uint32_t BLOCK = BLOCK_, GROUP = GROUP_, NB = GROUP / BLOCK, STAGE = GROUP * BITS / 32 + 8, WARPS_A_BLOCK = 8, PLACES = PLACES_;
    static constexpr bool WIDE = true; /* decode<true> reads words where they are */
    typedef gpubp<BLOCK_, 128, true> any;

    template <bool NARROW, bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void pairs(const uint32_t *words, uint32_t end, uint32_t head, uint64_t at, uint32_t lane, sink<FUSED> &to)
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
                docids_of_two(a, b, NARROW || max(width_a, width_b) <= 9, base_a, base_b, BLOCK == 256, lane);
            to.put(at + s * 256, lane, a);
            to.put(at + s * 256 + 128, lane, b);
        }
    }

    /* Blocks of 256 whose docids stay in registers: eight a lane, so that one plain scan serves. */
    static __device__ __forceinline__ void eights(const uint32_t *words, uint32_t end, uint32_t head, uint32_t lane, sink<true> &to)
    {
        const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
#pragma unroll 1
        for (uint32_t s = 0; s < GROUP / 256; ++s) {
            const uint32_t e0 = __shfl_sync(ALL_LANES, end, s), e1 = __shfl_sync(ALL_LANES, end, s + 1);
            const uint32_t width = (e1 - e0) / 8;
            uint32_t v[8];
            unpack4_narrow<false>(words + (e0 - begin), lane * 8 * width, width, v);
            unpack4_narrow<false>(words + (e0 - begin), lane * 8 * width + 4 * width, width, v + 4);
            docids(v, __shfl_sync(ALL_LANES, head, s) - 1, lane);
            to.keep(v);
        }
    }

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head, uint64_t at, uint32_t lane,
                                                  sink<FUSED> &to, uint32_t *)
    {
        const uint32_t n_words = __shfl_down_sync(ALL_LANES, end, 1) - end;
        const bool narrow = !LDG && !__any_sync(ALL_LANES, lane < NB && n_words > BLOCK / 4);
        if constexpr (!LDG && DOCIDS && FUSED && BLOCK == 256) {
            if (narrow) {
                eights(words, end, head, lane, to);
                return;
            }
        }
        if (narrow)
            pairs<true, LDG, DOCIDS>(words, end, head, at, lane, to);
        else
            pairs<false, LDG, DOCIDS>(words, end, head, at, lane, to);
    }
};

/* ---- GPU-VByte ---- */

/* Four integers of a lane, whose selectors are the low byte of `selectors`, from byte p of words[n_words]. */
template <bool LDG>
__device__ __forceinline__ void gather4(const uint32_t *words, uint32_t n_words, uint32_t p, uint32_t selectors, uint32_t (&v)[4])
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const uint32_t more = selectors >> (2 * i) & 3;
        v[i] = gpuvbyte<128, LDG>::bytes_at(words, n_words, p) & (0xffffffffu >> (24 - 8 * more));
        p += more + 1;
    }
}

__device__ __forceinline__ void split4(uint32_t x, uint32_t (&v)[4])
{
#pragma unroll
    for (int j = 0; j < 4; ++j)
        v[j] = x >> (8 * j) & 0xff;
}

/* 1,024 integers in full blocks: eight of 128, or one of 1,024. words[n_words] holds them all; lane e of end has the
 * end of block e - 1 in it. First every lane learns where the bytes of two selector words (32 integers) begin; then
 * segments of 128 follow, a lane taking a quarter of a selector word. */
template <int BLOCK, bool LDG, bool DOCIDS, bool FUSED>
__device__ __forceinline__ void gpuvbyte_group(const uint32_t *words, uint32_t n_words, uint32_t end, uint32_t head, uint64_t at,
                                               uint32_t lane, sink<FUSED> &to)
{
    constexpr uint32_t BLOCKS = 1024 / BLOCK, LANES = 32 / BLOCKS, SELECTORS = BLOCK / 16; /* LANES: a block's, at first */
    const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
    end -= begin;
    const uint32_t my_begin = __shfl_sync(ALL_LANES, end, lane / LANES);
    const uint32_t my_words = __shfl_sync(ALL_LANES, end, lane / LANES + 1) - my_begin;
    uint32_t first = 0, second = 0; /* two selector words; a block without words holds zeros */
    if (my_words) {
        first = load<LDG>(words + min(my_begin + lane % LANES * 2, n_words));
        second = load<LDG>(words + min(my_begin + lane % LANES * 2 + 1, n_words));
    }
    const uint32_t wide = __ballot_sync(ALL_LANES, first | second), empty = __ballot_sync(ALL_LANES, my_words == 0);
    const uint32_t bytes = 32 + gx_sum_2bit(first) + gx_sum_2bit(second);
    uint32_t sum = bytes;
#pragma unroll
    for (uint32_t o = 1; o < LANES; o <<= 1) {
        const uint32_t y = __shfl_up_sync(ALL_LANES, sum, o, LANES);
        sum += lane % LANES >= o ? y : 0;
    }
    const uint32_t p_first = (my_begin + SELECTORS) * 4 + sum - bytes;
    uint32_t carry = 0;
#pragma unroll 2
    for (uint32_t s = 0; s < 8; s += 2) {
        uint32_t v[2][4];
        bool narrow = true;
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) {
            const uint32_t segment = s + h, owner = segment * 4 + lane / 8; /* of this lane's selector word */
            uint32_t p = __shfl_sync(ALL_LANES, p_first, owner);
            if (empty >> (segment * 4) & 1) {
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    v[h][i] = 0;
            } else if ((wide >> (segment * 4) & 15) == 0) { /* 128 bytes */
                split4(gpuvbyte<128, LDG>::bytes_at(words, n_words, p + lane % 8 * 4), v[h]);
            } else {
                const uint32_t w0 = __shfl_sync(ALL_LANES, first, owner), w1 = __shfl_sync(ALL_LANES, second, owner);
                const bool odd = lane / 4 & 1;
                const uint32_t w = odd ? w1 : w0, shift = lane % 4 * 8;
                p += (odd ? 16 + gx_sum_2bit(w0) : 0) + lane % 4 * 4 + gx_sum_2bit(w & ((1u << shift) - 1));
                gather4<LDG>(words, n_words, p, w >> shift, v[h]);
                narrow = false;
            }
        }
        if (DOCIDS) {
            uint32_t base_a, base_b;
            if (BLOCK == 128) {
                base_a = __shfl_sync(ALL_LANES, head, s);
                base_b = __shfl_sync(ALL_LANES, head, s + 1);
            } else {
                base_a = s == 0 ? __shfl_sync(ALL_LANES, head, 0) : carry;
                base_b = 0;
            }
            docids_of_two(v[0], v[1], narrow, base_a, base_b, BLOCK == 1024, lane);
            if (BLOCK == 1024)
                carry = __shfl_sync(ALL_LANES, v[1][3], 31) + 1;
        }
        to.put(at + s * 128, lane, v[0]);
        to.put(at + s * 128 + 128, lane, v[1]);
    }
}

template <int BLOCK_> struct gpuvbyte_groups {
    static constexpr uint32_t BLOCK = BLOCK_, GROUP = 1024, NB = GROUP / BLOCK, STAGE = 456, WARPS_A_BLOCK = 8, PLACES = 5;
    static constexpr bool WIDE = true;
    typedef gpuvbyte<BLOCK_, true> any;

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t n_words, uint32_t end, uint32_t head, uint64_t at,
                                                  uint32_t lane, sink<FUSED> &to, uint32_t *)
    {
        gpuvbyte_group<BLOCK_, LDG, DOCIDS>(words, n_words, end, head, at, lane, to);
    }
};

/* ---- Lane1024 ---- */

template <int NB_> struct lane1024_groups {
    static constexpr uint32_t BLOCK = 1024, NB = NB_, GROUP = NB * BLOCK, STAGE = NB == 1 ? 1152 : NB * 256 + 8, WARPS_A_BLOCK = 4, PLACES = 5;
    static constexpr bool WIDE = false;
    typedef lane1024<true> any;

    template <bool LDG, bool DOCIDS, bool FUSED>
    static __device__ __forceinline__ void decode(const uint32_t *words, uint32_t, uint32_t end, uint32_t head, uint64_t at,
                                                  uint32_t lane, sink<FUSED> &to, uint32_t *stage)
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

    /* Lanes hold 32 integers in a row each; they go through the stage, whose words are in registers by now, so that
     * stores are 512 bytes in a row. Rows of 36 words keep the banks apart. */
    static __device__ __forceinline__ void put_rows(uint32_t (&v)[32], uint64_t at, uint32_t lane, sink<false> &to, uint32_t *stage)
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

/* ---- groups, one after another ---- */

/* A warp's stages in shared memory are filled by the copy engine, in turn; a stage's mbarrier completes when its words
 * are there. */
__device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_init(uint64_t *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(shared_address(barrier)) : "memory");
}

/* Copies begin at multiples of 16 bytes: so many words before come along. */
__device__ __forceinline__ uint32_t words_before(const uint32_t *from) { return (uint32_t)(uintptr_t)from % 16 / 4; }

/* Called by one lane: begin to bring from[n], and up to 3 words on either side, to the stage; n = 0 may bring nothing. */
__device__ __forceinline__ void stage_fetch(uint32_t *stage, uint64_t *barrier, const uint32_t *from, uint32_t n)
{
    const uint32_t skip = words_before(from), bytes = n ? (skip + n + 3) / 4 * 16 : 0;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
    if (bytes)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(stage)),
                     "l"(from - skip), "r"(bytes), "r"(shared_address(barrier))
                     : "memory");
}

__device__ __forceinline__ void stage_wait(const uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n\t.reg .pred done;\n\t"
                 "again_%=:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                 "@done bra ready_%=;\n\t"
                 "bra again_%=;\n\t"
                 "ready_%=:\n\t}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* What a warp knows of a group before it has the words: lane e has the end of block e - 1 (lane 0: the group's begin)
 * and the head of block e. */
struct group_ends {
    uint32_t end, head;

    template <uint32_t NB, bool DOCIDS> __device__ __forceinline__ void fetch(const list_view &l, uint32_t group, uint32_t lane)
    {
        const uint32_t k = group * NB + lane;
        end = head = 0;
        if (lane <= NB && k > 0 && k <= l.n_blocks)
            end = __ldg(l.ends + k - 1);
        if (DOCIDS && lane < NB && k < l.n_blocks)
            head = __ldg(l.heads + k);
    }

    __device__ __forceinline__ uint32_t begin() const { return __shfl_sync(ALL_LANES, end, 0); }
    template <uint32_t NB> __device__ __forceinline__ uint32_t words() const { return __shfl_sync(ALL_LANES, end, NB) - begin(); }
};

/* A group that is not whole, or does not fit the stage; returns what the sum grows by. Kept apart, so that it takes no
 * registers from the others. */
template <class GROUPS, bool DOCIDS, bool FUSED>
__device__ __noinline__ uint32_t decode_aside(const list_view &l, uint32_t *out, uint32_t g, uint32_t lane)
{
    constexpr uint32_t BLOCK = GROUPS::BLOCK, NB = GROUPS::NB;
    sink<FUSED> to{out};
    group_ends ends;
    ends.fetch<NB, DOCIDS>(l, g, lane);
    const uint64_t at = (uint64_t)g * GROUPS::GROUP;
    if (GROUPS::WIDE && at + GROUPS::GROUP <= l.n) {
        GROUPS::template decode<true, DOCIDS>(l.words + ends.begin(), ends.words<NB>(), ends.end, ends.head, at, lane, to, nullptr);
        return to.sum;
    }
    for (uint32_t i = 0; i < NB && g * NB + i < l.n_blocks; ++i) {
        const uint32_t e0 = __shfl_sync(ALL_LANES, ends.end, i), e1 = __shfl_sync(ALL_LANES, ends.end, i + 1);
        const uint32_t head = __shfl_sync(ALL_LANES, ends.head, i);
        const uint64_t first = at + i * BLOCK;
        decode_block<typename GROUPS::any, DOCIDS>(l.words + e0, e1 - e0, (uint32_t)min((uint64_t)BLOCK, l.n - first), 0, head, first,
                                                   lane, to);
    }
    return to.sum;
}

/* A warp decodes every l.n_warps-th group. With two stages, the words of its next group come in while it decodes one,
 * and the ends of the group after that. */
template <class GROUPS, int STAGES, bool DOCIDS, bool FUSED>
__global__ void __launch_bounds__(GROUPS::WARPS_A_BLOCK * 32, GROUPS::PLACES) decode_groups(const __grid_constant__ list_view l, uint32_t *out)
{
    constexpr uint32_t GROUP = GROUPS::GROUP, NB = GROUPS::NB, STAGE = GROUPS::STAGE, FITS = STAGE - 8;
    __shared__ __align__(16) uint32_t all_stages[GROUPS::WARPS_A_BLOCK][STAGES][STAGE];
    __shared__ __align__(8) uint64_t all_barriers[GROUPS::WARPS_A_BLOCK][STAGES];
    const uint32_t lane = threadIdx.x % 32, warp = blockIdx.x * GROUPS::WARPS_A_BLOCK + threadIdx.x / 32;
    uint32_t *const stages = all_stages[threadIdx.x / 32][0];
    uint64_t *const barriers = all_barriers[threadIdx.x / 32];
    const uint32_t whole = (uint32_t)(l.n / GROUP), n_groups = (uint32_t)((l.n + GROUP - 1) / GROUP);
    if (warp >= min(n_groups, l.n_warps))
        return;
    if (lane == 0) {
        for (int i = 0; i < STAGES; ++i)
            barrier_init(barriers + i);
    }
    __syncwarp();
    sink<FUSED> to{out};
    const auto fetch = [&](const group_ends &ends, uint32_t g, uint32_t i) {
        const uint32_t begin = ends.begin(), n_words = ends.words<NB>();
        if (lane == 0)
            stage_fetch(stages + i * STAGE, barriers + i, l.words + begin, g < whole && n_words <= FITS ? n_words : 0);
    };
    group_ends now, next = {}, after = {};
    now.fetch<NB, DOCIDS>(l, warp, lane);
    fetch(now, warp, 0);
    if (STAGES == 2)
        next.fetch<NB, DOCIDS>(l, warp + l.n_warps, lane);
    uint32_t turn = 0;
    for (uint32_t g = warp; g < n_groups; g += l.n_warps, ++turn) {
        const uint32_t i = STAGES == 1 ? 0 : turn % 2;
        if (STAGES == 2 && g + l.n_warps < n_groups) {
            fetch(next, g + l.n_warps, i ^ 1);
            after.fetch<NB, DOCIDS>(l, g + 2 * l.n_warps, lane);
        }
        const uint32_t n_words = now.words<NB>(), skip = words_before(l.words + now.begin());
        stage_wait(barriers + i, STAGES == 1 ? 0 : turn / 2 % 2);
        if (g < whole && n_words <= FITS) {
            uint32_t *const stage = stages + i * STAGE;
            GROUPS::template decode<false, DOCIDS>(stage + skip, n_words, now.end, now.head, (uint64_t)g * GROUP, lane, to, stage);
        } else {
            to.sum += decode_aside<GROUPS, DOCIDS, FUSED>(l, out, g, lane);
        }
        if (STAGES == 1)
            break;
        __syncwarp();
        now = next;
        next = after;
    }
    to.close(warp, lane);
}

/* ---- launching ---- */

typedef void kernel_fn(const list_view, uint32_t *);

struct launch {
    kernel_fn *kernel;
    uint32_t group, threads; /* integers of a group; 0: a warp takes a block */
    bool stays; /* as many warps as the GPU has places for; they share the groups */
};

template <class GROUPS, int STAGES, bool DOCIDS, bool FUSED> launch groups_launch()
{
    return {decode_groups<GROUPS, STAGES, DOCIDS, FUSED>, GROUPS::GROUP, GROUPS::WARPS_A_BLOCK * 32, STAGES > 1};
}

/* What is written to memory waits for memory: a warp a group. What stays in registers waits for instructions: longer
 * runs, larger groups, the next group's words on their way. */
template <bool DOCIDS, bool FUSED> launch launch_of(uint8_t id)
{
    constexpr int STAGES = FUSED ? 2 : 1;
    switch (id) {
    case GX_CODEC_RAW:
        return {decode_blocks<raw<true>, DOCIDS, FUSED>, 0, WARPS * 32, false};
    case GX_CODEC_GPUBP128:
        return groups_launch<gpubp_groups<128, FUSED ? 2048 : 1024, FUSED ? 8 : 12, FUSED ? 5 : 4>, STAGES, DOCIDS, FUSED>();
    case GX_CODEC_GPUBP256:
        return groups_launch<gpubp_groups<256, FUSED ? 2048 : 1024, FUSED ? 8 : 12, FUSED ? 5 : 4>, STAGES, DOCIDS, FUSED>();
    case GX_CODEC_GPUVBYTE128:
        return groups_launch<gpuvbyte_groups<128>, STAGES, DOCIDS, FUSED>();
    case GX_CODEC_GPUVBYTE1024:
        return groups_launch<gpuvbyte_groups<1024>, STAGES, DOCIDS, FUSED>();
    case GX_CODEC_LANE1024:
        return groups_launch<lane1024_groups<FUSED ? 4 : 1>, STAGES, DOCIDS, FUSED>();
    default:
        return {nullptr, 0, 0, false};
    }
}

kernel_fn *at_kernel_of(uint8_t id)
{
    switch (id) {
    case GX_CODEC_RAW:
        return at_blocks<raw<true>>;
    case GX_CODEC_GPUBP128:
        return at_blocks<gpubp128<true>>;
    case GX_CODEC_GPUBP256:
        return at_blocks<gpubp256<true>>;
    case GX_CODEC_GPUVBYTE128:
        return at_blocks<gpuvbyte128<true>>;
    case GX_CODEC_GPUVBYTE1024:
        return at_blocks<gpuvbyte1024<true>>;
    case GX_CODEC_LANE1024:
        return at_blocks<lane1024<true>>;
    default:
        return nullptr;
    }
}

gx_status start(kernel_fn *kernel, const gx_packed *list, uint64_t threads, uint32_t block, uint32_t *out, void *stream,
                gx_error *err)
{
    if (!kernel)
        return gx_fail(err, GX_EUSAGE, "codec %s cannot be decoded on the GPU", list->codec->name);
    if (list->n == 0)
        return GX_OK;
    const list_view view = {list->words, list->ends, list->heads, list->n, (uint32_t)gx_packed_blocks(list), list->param,
                            (uint32_t)(threads / 32)};
    kernel<<<(uint32_t)((threads + block - 1) / block), block, 0, (cudaStream_t)stream>>>(view, out);
    const cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess)
        return gx_fail(err, GX_ECUDA, "the GPU refused to decode a list of %llu integers: %s", (unsigned long long)list->n,
                       cudaGetErrorString(e));
    return GX_OK;
}

/* How many warps of the kernel the current GPU runs at once. */
uint64_t warp_places(const launch &l)
{
    int device = 0, processors = 0, blocks = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, l.kernel, (int)l.threads, 0) != cudaSuccess)
        return 0;
    return (uint64_t)processors * (uint64_t)blocks * (l.threads / 32);
}

template <bool FUSED> gx_status run(const gx_packed *list, gx_form form, uint32_t *out, void *stream, gx_error *err)
{
    const launch l = form == GX_FORM_DOCIDS ? launch_of<true, FUSED>(list->codec->id) : launch_of<false, FUSED>(list->codec->id);
    if (l.group == 0)
        return start(l.kernel, list, gx_packed_blocks(list) * 32, l.threads, out, stream, err);
    const uint64_t groups = (list->n + l.group - 1) / l.group;
    uint64_t warps = groups;
    if (l.stays) { /* all take the same number of turns, or one less */
        const uint64_t places = std::max<uint64_t>(warp_places(l), 1), turns = (groups + places - 1) / places;
        warps = turns ? (groups + turns - 1) / turns : 0;
    }
    return start(l.kernel, list, warps * 32, l.threads, out, stream, err);
}

} // namespace

gx_status gx_decode_list_cuda(const gx_packed *list, gx_form form, uint32_t *out, void *stream, gx_error *err)
{
    return run<false>(list, form, out, stream, err);
}

gx_status gx_sum_list_cuda(const gx_packed *list, gx_form form, uint32_t *sums, void *stream, gx_error *err)
{
    return run<true>(list, form, sums, stream, err);
}

gx_status gx_at_list_cuda(const gx_packed *list, uint32_t *out, void *stream, gx_error *err)
{
    return start(at_kernel_of(list->codec->id), list, list->n, WARPS * 32, out, stream, err);
}

bool gx_codec_on_gpu(const gx_codec *codec) { return launch_of<false, false>(codec->id).kernel != nullptr; }
