/* Whole lists on the GPU.
 *
 * A warp takes a group of consecutive blocks, 1,024 integers where it can. It reads their ends with one load, brings
 * their words, which lie in a row, into shared memory with 16-byte copies that are all in flight at once, and unpacks
 * from there four integers a lane, so that every store of a warp is 512 bytes in a row. Wide blocks, whose words
 * do not fit the stage, are read where they are.
 */
#include "codecs/decode.cuh"
#include "codecs/decode.h"
#include "engine/status.h"

namespace {

using namespace gx;

constexpr uint32_t WARPS = 8; /* a thread block */

struct list_view {
    const uint32_t *words, *ends, *heads;
    uint64_t n;
    uint32_t n_blocks, param;
};

/* Where decoded integers go: to memory, or into a sum. */
template <bool FUSED> struct sink {
    uint32_t *out;
    uint32_t sum = 0;

    __device__ __forceinline__ void put(uint64_t at, uint32_t lane, uint32_t (&v)[4])
    {
        if (FUSED) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                asm volatile("" : "+r"(v[i])); /* each integer comes to be */
                sum += v[i];
            }
        } else {
            __stcs((uint4 *)(out + at) + lane, make_uint4(v[0], v[1], v[2], v[3]));
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

/* Bring words[n] into the stage; returns where they begin there. Begins at the multiple of 16 bytes at or before words;
 * the stage has room for n + 3 words rounded up to 4. */
__device__ __forceinline__ const uint32_t *stage_words(uint32_t *stage, const uint32_t *words, uint32_t n, uint32_t lane)
{
    const uint32_t skip = ((uint32_t)(uintptr_t)words & 15) / 4;
    const uint32_t quads = (skip + n + 3) / 4;
    const uint4 *from = (const uint4 *)(words - skip);
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(stage);
    for (uint32_t i = lane; i < quads; i += 32)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + 16 * i), "l"(from + i) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
    return stage + skip;
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

/* GROUP integers from full blocks that begin at words; lane e holds the end of block e - 1 (lane 0: the begin), head
 * that of block `lane`. */
template <int BLOCK, int GROUP, bool LDG, bool DOCIDS, bool FUSED>
__device__ __forceinline__ void gpubp_group(const uint32_t *words, uint32_t end, uint32_t head, uint64_t at, uint32_t lane, sink<FUSED> &to)
{
    const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
#pragma unroll
    for (int s = 0; s < GROUP / 256; ++s) {
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
        unpack<4, LDG>(p_a, lane * 4 * width_a, width_a, a);
        unpack<4, LDG>(p_b, lane * 4 * width_b, width_b, b);
        if (DOCIDS)
            docids_of_two(a, b, max(width_a, width_b) <= 9, base_a, base_b, BLOCK == 256, lane);
        to.put(at + s * 256, lane, a);
        to.put(at + s * 256 + 128, lane, b);
    }
}

template <int BLOCK, int GROUP, bool DOCIDS, bool FUSED> __global__ void __launch_bounds__(WARPS * 32) decode_gpubp(list_view l, uint32_t *out)
{
    constexpr uint32_t NB = GROUP / BLOCK, STAGE = GROUP / 2 + 8; /* up to 16 bits an integer */
    __shared__ __align__(16) uint32_t stages[WARPS][STAGE];
    const uint32_t lane = threadIdx.x % 32, warp = blockIdx.x * WARPS + threadIdx.x / 32, k = warp * NB;
    if (k >= l.n_blocks)
        return;
    sink<FUSED> to{out};
    uint32_t end = 0, head = 0;
    if (lane <= NB && k + lane <= l.n_blocks && k + lane > 0)
        end = __ldg(l.ends + k + lane - 1);
    if (DOCIDS && lane < NB && k + lane < l.n_blocks)
        head = __ldg(l.heads + k + lane);
    const uint64_t at = (uint64_t)k * BLOCK;
    const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
    if (at + GROUP <= l.n) {
        const uint32_t n_words = __shfl_sync(ALL_LANES, end, NB) - begin;
        if (n_words <= STAGE - 8) {
            const uint32_t *p = stage_words(stages[threadIdx.x / 32], l.words + begin, n_words, lane);
            gpubp_group<BLOCK, GROUP, false, DOCIDS>(p, end, head, at, lane, to);
        } else {
            gpubp_group<BLOCK, GROUP, true, DOCIDS>(l.words + begin, end, head, at, lane, to);
        }
    } else {
        for (uint32_t i = 0; i < NB && k + i < l.n_blocks; ++i) {
            const uint32_t e0 = __shfl_sync(ALL_LANES, end, i), e1 = __shfl_sync(ALL_LANES, end, i + 1);
            const uint32_t h = __shfl_sync(ALL_LANES, head, i);
            const uint64_t first = at + i * BLOCK;
            decode_block<gpubp<BLOCK, 128, true>, DOCIDS>(l.words + e0, e1 - e0, min((uint64_t)BLOCK, l.n - first), 0, h, first, lane, to);
        }
    }
    to.close(warp, lane);
}

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

template <int BLOCK, bool DOCIDS, bool FUSED> __global__ void __launch_bounds__(WARPS * 32) decode_gpuvbyte(list_view l, uint32_t *out)
{
    constexpr uint32_t GROUP = 1024, NB = GROUP / BLOCK, STAGE = 648; /* up to 20 bits an integer */
    __shared__ __align__(16) uint32_t stages[WARPS][STAGE];
    const uint32_t lane = threadIdx.x % 32, warp = blockIdx.x * WARPS + threadIdx.x / 32, k = warp * NB;
    if (k >= l.n_blocks)
        return;
    sink<FUSED> to{out};
    uint32_t end = 0, head = 0;
    if (lane <= NB && k + lane <= l.n_blocks && k + lane > 0)
        end = __ldg(l.ends + k + lane - 1);
    if (DOCIDS && lane < NB && k + lane < l.n_blocks)
        head = __ldg(l.heads + k + lane);
    const uint64_t at = (uint64_t)k * BLOCK;
    const uint32_t begin = __shfl_sync(ALL_LANES, end, 0);
    if (at + GROUP <= l.n) {
        const uint32_t n_words = __shfl_sync(ALL_LANES, end, NB) - begin;
        if (n_words <= STAGE - 8) {
            const uint32_t *p = stage_words(stages[threadIdx.x / 32], l.words + begin, n_words, lane);
            gpuvbyte_group<BLOCK, false, DOCIDS>(p, n_words, end, head, at, lane, to);
        } else {
            gpuvbyte_group<BLOCK, true, DOCIDS>(l.words + begin, n_words, end, head, at, lane, to);
        }
    } else {
        for (uint32_t i = 0; i < NB && k + i < l.n_blocks; ++i) {
            const uint32_t e0 = __shfl_sync(ALL_LANES, end, i), e1 = __shfl_sync(ALL_LANES, end, i + 1);
            const uint32_t h = __shfl_sync(ALL_LANES, head, i);
            const uint64_t first = at + i * BLOCK;
            decode_block<gpuvbyte<BLOCK, true>, DOCIDS>(l.words + e0, e1 - e0, min((uint64_t)BLOCK, l.n - first), 0, h, first, lane, to);
        }
    }
    to.close(warp, lane);
}

/* ---- Lane1024 ---- */

template <bool DOCIDS, bool FUSED, bool LDG>
__device__ __forceinline__ void lane1024_block(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t head, uint64_t at,
                                               uint32_t lane, sink<FUSED> &to)
{
    lane1024<LDG> dec;
    dec.open(words, n_words, n, lane);
    uint32_t v[32];
    dec.next(lane, v);
    if (DOCIDS)
        docids(v, head - 1, lane);
    if (!FUSED && n == 1024) {
        uint4 *const o = (uint4 *)(to.out + at) + lane * 8;
#pragma unroll
        for (int i = 0; i < 32; i += 4)
            o[i / 4] = make_uint4(v[i], v[i + 1], v[i + 2], v[i + 3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        asm volatile("" : "+r"(v[i]));
        if (n == 1024 || lane * 32 + i < n)
            to.put_one(at + lane * 32 + i, v[i]);
    }
}

template <bool DOCIDS, bool FUSED> __global__ void __launch_bounds__(128) decode_lane1024(list_view l, uint32_t *out)
{
    constexpr uint32_t NB = 4, STAGE = NB * 1024 / 4 + 8; /* up to 8 bits an integer */
    __shared__ __align__(16) uint32_t stages[4][STAGE];
    const uint32_t lane = threadIdx.x % 32, warp = blockIdx.x * 4 + threadIdx.x / 32, k = warp * NB;
    if (k >= l.n_blocks)
        return;
    sink<FUSED> to{out};
    uint32_t end = 0, head = 0;
    if (lane <= NB && k + lane <= l.n_blocks && k + lane > 0)
        end = __ldg(l.ends + k + lane - 1);
    if (DOCIDS && lane < NB && k + lane < l.n_blocks)
        head = __ldg(l.heads + k + lane);
    const uint32_t m = min(NB, l.n_blocks - k), begin = __shfl_sync(ALL_LANES, end, 0);
    const uint32_t n_words = __shfl_sync(ALL_LANES, end, m) - begin;
    const bool at_once = n_words <= STAGE - 8; /* else block by block; one always fits */
    uint32_t *const stage = stages[threadIdx.x / 32];
    const uint32_t *p = stage;
    if (at_once)
        p = stage_words(stage, l.words + begin, n_words, lane);
#pragma unroll 1
    for (uint32_t i = 0; i < m; ++i) {
        const uint32_t e0 = __shfl_sync(ALL_LANES, end, i), e1 = __shfl_sync(ALL_LANES, end, i + 1);
        const uint32_t h = __shfl_sync(ALL_LANES, head, i), words = min(e1 - e0, 1024u);
        const uint64_t at = (uint64_t)(k + i) * 1024;
        const uint32_t n = min((uint64_t)1024, l.n - at);
        if (!at_once) {
            __syncwarp();
            p = stage_words(stage, l.words + e0, words, lane) - (e0 - begin);
        }
        lane1024_block<DOCIDS, FUSED, false>(p + (e0 - begin), words, n, h, at, lane, to);
    }
    to.close(warp, lane);
}

/* ---- launching ---- */

typedef void kernel_fn(list_view, uint32_t *);

struct launch {
    kernel_fn *kernel;
    uint32_t blocks_a_warp, threads;
};

template <bool DOCIDS, bool FUSED> launch launch_of(uint8_t id)
{
    switch (id) {
    case GX_CODEC_RAW:
        return {decode_blocks<raw<true>, DOCIDS, FUSED>, 1, WARPS * 32};
    case GX_CODEC_GPUBP128:
        return {decode_gpubp<128, 1024, DOCIDS, FUSED>, 8, WARPS * 32};
    case GX_CODEC_GPUBP256:
        return {decode_gpubp<256, 1024, DOCIDS, FUSED>, 4, WARPS * 32};
    case GX_CODEC_GPUVBYTE128:
        return {decode_gpuvbyte<128, DOCIDS, FUSED>, 8, WARPS * 32};
    case GX_CODEC_GPUVBYTE1024:
        return {decode_gpuvbyte<1024, DOCIDS, FUSED>, 1, WARPS * 32};
    case GX_CODEC_LANE1024:
        return {decode_lane1024<DOCIDS, FUSED>, 4, 128};
    default:
        return {nullptr, 1, 0};
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

gx_status start(kernel_fn *kernel, const gx_packed *list, uint64_t threads, uint32_t block, uint32_t *out, void *stream, gx_error *err)
{
    if (!kernel)
        return gx_fail(err, GX_EUSAGE, "codec %s cannot be decoded on the GPU", list->codec->name);
    if (list->n == 0)
        return GX_OK;
    const list_view view = {list->words, list->ends, list->heads, list->n, (uint32_t)gx_packed_blocks(list), list->param};
    kernel<<<(uint32_t)((threads + block - 1) / block), block, 0, (cudaStream_t)stream>>>(view, out);
    const cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess)
        return gx_fail(err, GX_ECUDA, "the GPU refused to decode a list of %llu integers: %s", (unsigned long long)list->n,
                       cudaGetErrorString(e));
    return GX_OK;
}

template <bool FUSED> gx_status run(const gx_packed *list, gx_form form, uint32_t *out, void *stream, gx_error *err)
{
    const launch l = form == GX_FORM_DOCIDS ? launch_of<true, FUSED>(list->codec->id) : launch_of<false, FUSED>(list->codec->id);
    const uint64_t warps = (gx_packed_blocks(list) + l.blocks_a_warp - 1) / l.blocks_a_warp;
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
