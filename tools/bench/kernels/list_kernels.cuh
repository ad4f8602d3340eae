/* list_kernels.cuh: kernels that decode whole lists: what every family of codecs shares.
 *
 * A warp takes a block (decode_blocks), or, faster, a group of consecutive blocks, 1,024 integers
 * or more (decode_groups): it reads their ends with one load, has their words, which lie in a row,
 * brought into shared memory by the copy engine, and unpacks from there four integers a lane, so
 * that every store of a warp is 512 bytes in a row. Groups whose words do not fit the stage are
 * read where they are.
 *
 * A .cu file makes a codec's codec_kernels, list_kernels_NAME(), of_blocks<DECODER>() to begin
 * with. What of_groups wants is a struct with
 *
 *   BLOCK, GROUP, NB     integers of a block and of a group; blocks of a group, 31 at most
 *   STAGE                words of a group that are staged, and 8 more; a multiple of 4
 *   WARPS_PER_BLOCK, PLACES   the kernel's __launch_bounds__: warps of a thread block, thread
 *                             blocks of a
 *                           processor
 *   WIDE                 decode<true> serves groups that do not fit the stage; else they are
 *                        decoded block by block
 *   any                  the decoder (decode.cuh) for blocks that are not in a whole group
 *   decode<LDG, DOCIDS, FUSED>(words, n_words, end, head, param, at, lane, to, stage)
 *                        static: decode a whole group to integers at .. at + GROUP - 1 of `to`.
 *                        words[n_words] in shared memory, or, LDG, in global; lane e has the end of
 *                        the group's block e - 1 in end (lane 0: the group's begin), counted from
 *                        the list's start as in gx_packed.ends, and the head and the parameter of
 *                        block e. stage: the warp's own STAGE words of shared memory, words among
 *                        them; NULL if LDG. Ends are whatever the caller had; bytes may be
 *                        anything.
 */
#ifndef GX_TOOLS_BENCH_KERNELS_LIST_KERNELS_CUH
#define GX_TOOLS_BENCH_KERNELS_LIST_KERNELS_CUH

#include "codecs/decode.cuh"
#include "tools/bench/kernels/list_kernels.h"

namespace gx {

constexpr uint32_t BLOCK_WARPS = 8; /* a thread block, where a warp takes a block */

struct list_view {
    const uint32_t *words, *ends, *heads;
    const uint8_t *params;
    uint64_t n;
    uint32_t n_blocks, param;
    uint32_t n_warps; /* that share the groups (decode_groups) */

    /* Block k's parameter. */
    __device__ __forceinline__ uint32_t param_of(uint32_t k) const { return params ? __ldg(params + k) : param; }
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
__device__ __forceinline__ void decode_block(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t param,
                                             uint32_t head, uint64_t at, uint32_t lane, sink<FUSED> &to)
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

template <class DEC, bool DOCIDS, bool FUSED>
__global__ void __launch_bounds__(BLOCK_WARPS * 32) decode_blocks(list_view l, uint32_t *out)
{
    const uint32_t lane = threadIdx.x % 32, k = blockIdx.x * BLOCK_WARPS + threadIdx.x / 32;
    if (k >= l.n_blocks)
        return;
    sink<FUSED> to{out};
    const uint32_t begin = k ? __ldg(l.ends + k - 1) : 0, end = __ldg(l.ends + k);
    const uint64_t at = (uint64_t)k * DEC::BLOCK;
    const uint32_t n = min((uint64_t)DEC::BLOCK, l.n - at);
    decode_block<DEC, DOCIDS>(l.words + begin, end - begin, n, l.param_of(k), DOCIDS ? __ldg(l.heads + k) : 0, at, lane,
                              to);
    to.close(k, lane);
}

template <class DEC> __global__ void __launch_bounds__(BLOCK_WARPS * 32) at_blocks(list_view l, uint32_t *out)
{
    const uint64_t at = (uint64_t)blockIdx.x * (BLOCK_WARPS * 32) + threadIdx.x;
    if (at >= l.n)
        return;
    const uint32_t k = (uint32_t)(at / DEC::BLOCK), begin = k ? __ldg(l.ends + k - 1) : 0, end = __ldg(l.ends + k);
    const uint32_t n = min((uint64_t)DEC::BLOCK, l.n - (uint64_t)k * DEC::BLOCK);
    out[at] = DEC::at(l.words + begin, end - begin, n, (uint32_t)(at % DEC::BLOCK), l.param_of(k));
}

/* Two segments of 128 integers, four a lane, to docids. narrow: a segment's sum is below 2^16, so
 * that one scan serves both. base_a, base_b: head of the block; joined: b follows a in one block,
 * and base_b is not used. */
__device__ __forceinline__ void scan_two_segments(uint32_t (&a)[4], uint32_t (&b)[4], bool narrow, uint32_t base_a,
                                                  uint32_t base_b, bool joined, uint32_t lane)
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

/* ---- groups ---- */

/* A warp's stages in shared memory are filled by the copy engine, in turn; a stage's mbarrier
 * completes when its words are there. GPUs before compute capability 9.0 have no such engine: a lane copies. */
__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void barrier_init(uint64_t *barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(shared_address(barrier))
        : "memory");
#else
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
    __threadfence_block();
#endif
}

/* Copies begin at multiples of 16 bytes: this number of words before is copied too. */
__device__ __forceinline__ uint32_t words_before(const uint32_t *from)
{
    return (uint32_t)(uintptr_t)from % 16 / 4;
}

/* Called by one lane: begin to bring from[n], and up to 3 words on either side, to the stage; n = 0
 * may bring nothing. */
__device__ __forceinline__ void stage_fetch(uint32_t *stage, uint64_t *barrier, const uint32_t *from, uint32_t n)
{
    const uint32_t skip = words_before(from), bytes = n ? (skip + n + 3) / 4 * 16 : 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
    if (bytes)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(stage)),
                     "l"(from - skip), "r"(bytes), "r"(shared_address(barrier))
                     : "memory");
#else
    for (uint32_t i = 0; i < bytes / 16; ++i)
        reinterpret_cast<uint4 *>(stage)[i] = reinterpret_cast<const uint4 *>(from - skip)[i];
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(shared_address(barrier))
                 : "memory");
#endif
}

#if __CUDA_ARCH__ >= 900
#define MBARRIER_WAIT "mbarrier.try_wait.parity.shared::cta.b64" /* which sleeps for a while */
#else
#define MBARRIER_WAIT "mbarrier.test_wait.parity.shared.b64"
#endif

__device__ __forceinline__ void stage_wait(const uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n\t.reg .pred done;\n\t"
                 "again_%=:\n\t" MBARRIER_WAIT " done, [%0], %1;\n\t"
                 "@done bra ready_%=;\n\t"
                 "bra again_%=;\n\t"
                 "ready_%=:\n\t}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

/* What a warp knows of a group before it has the words: lane e has the end of block e - 1 (lane 0:
 * the group's begin), the head of block e and its parameter. */
struct group_ends {
    uint32_t end, head, param;

    template <uint32_t NB, bool DOCIDS>
    __device__ __forceinline__ void fetch(const list_view &l, uint32_t group, uint32_t lane)
    {
        const uint32_t k = group * NB + lane;
        end = head = param = 0;
        if (lane <= NB && k > 0 && k <= l.n_blocks)
            end = __ldg(l.ends + k - 1);
        if (DOCIDS && lane < NB && k < l.n_blocks)
            head = __ldg(l.heads + k);
        if (lane < NB && k < l.n_blocks)
            param = l.param_of(k);
    }

    __device__ __forceinline__ uint32_t begin() const { return __shfl_sync(ALL_LANES, end, 0); }
    template <uint32_t NB> __device__ __forceinline__ uint32_t words() const
    {
        return __shfl_sync(ALL_LANES, end, NB) - begin();
    }
};

/* A group that is not whole, or does not fit the stage; returns what the sum grows by. Kept apart,
 * so that it takes no registers from the others. */
template <class GROUPS, bool DOCIDS, bool FUSED>
__device__ __noinline__ uint32_t decode_unstaged_group(const list_view &l, uint32_t *out, uint32_t g, uint32_t lane)
{
    constexpr uint32_t BLOCK = GROUPS::BLOCK, NB = GROUPS::NB;
    sink<FUSED> to{out};
    group_ends ends;
    ends.fetch<NB, DOCIDS>(l, g, lane);
    const uint64_t at = (uint64_t)g * GROUPS::GROUP;
    if constexpr (GROUPS::WIDE) {
        if (at + GROUPS::GROUP <= l.n) {
            GROUPS::template decode<true, DOCIDS>(l.words + ends.begin(), ends.words<NB>(), ends.end, ends.head,
                                                  ends.param, at, lane, to, nullptr);
            return to.sum;
        }
    }
    for (uint32_t i = 0; i < NB && g * NB + i < l.n_blocks; ++i) {
        const uint32_t e0 = __shfl_sync(ALL_LANES, ends.end, i), e1 = __shfl_sync(ALL_LANES, ends.end, i + 1);
        const uint32_t head = __shfl_sync(ALL_LANES, ends.head, i), param = __shfl_sync(ALL_LANES, ends.param, i);
        const uint64_t first = at + i * BLOCK;
        decode_block<typename GROUPS::any, DOCIDS>(l.words + e0, e1 - e0, (uint32_t)min((uint64_t)BLOCK, l.n - first),
                                                   param, head, first, lane, to);
    }
    return to.sum;
}

/* A warp decodes every l.n_warps-th group. With two stages, the words of its next group come in
 * while it decodes one, and the ends of the group after that. */
template <class GROUPS, int STAGES, bool DOCIDS, bool FUSED>
__global__ void __launch_bounds__(GROUPS::WARPS_PER_BLOCK * 32, GROUPS::PLACES)
    decode_groups(const __grid_constant__ list_view l, uint32_t *out)
{
    constexpr uint32_t GROUP = GROUPS::GROUP, NB = GROUPS::NB, STAGE = GROUPS::STAGE, FITS = STAGE - 8;
    __shared__ __align__(16) uint32_t all_stages[GROUPS::WARPS_PER_BLOCK][STAGES][STAGE];
    __shared__ __align__(8) uint64_t all_barriers[GROUPS::WARPS_PER_BLOCK][STAGES];
    const uint32_t lane = threadIdx.x % 32, warp = blockIdx.x * GROUPS::WARPS_PER_BLOCK + threadIdx.x / 32;
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
            GROUPS::template decode<false, DOCIDS>(stage + skip, n_words, now.end, now.head, now.param,
                                                   (uint64_t)g * GROUP, lane, to, stage);
        } else {
            to.sum += decode_unstaged_group<GROUPS, DOCIDS, FUSED>(l, out, g, lane);
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

struct launch_config {
    kernel_fn *kernel;
    uint32_t group, threads; /* integers of a group; 0: a warp takes a block */
    bool persistent;         /* as many warps as the GPU has places for; they share the groups */
};

/* What tools/bench/kernels/list_kernels.cu knows of a codec. */
struct codec_kernels {
    launch_config to_memory[2], kept[2]; /* integers, docids (enum gx_form) */
    kernel_fn *at;                       /* BLOCK_WARPS * 32 threads a thread block, one an integer */
};

template <class DEC, bool DOCIDS, bool FUSED> launch_config blocks_launch()
{
    return {decode_blocks<DEC, DOCIDS, FUSED>, 0, BLOCK_WARPS * 32, false};
}

/* What is written to memory waits for memory: a warp a group. What is kept in registers waits for
 * instructions: longer runs, larger groups, the next group's words on their way. */
template <class GROUPS, bool DOCIDS, bool FUSED> launch_config groups_launch()
{
    constexpr int STAGES = FUSED ? 2 : 1;
    return {decode_groups<GROUPS, STAGES, DOCIDS, FUSED>, GROUPS::GROUP, GROUPS::WARPS_PER_BLOCK * 32, STAGES > 1};
}

/* A codec whose blocks are decoded a warp each. */
template <class DEC> codec_kernels of_blocks()
{
    return {{blocks_launch<DEC, false, false>(), blocks_launch<DEC, true, false>()},
            {blocks_launch<DEC, false, true>(), blocks_launch<DEC, true, true>()},
            at_blocks<DEC>};
}

/* A codec with its groups, where they go to memory and where they stay in registers. */
template <class GROUPS, class KEPT> codec_kernels of_groups()
{
    return {{groups_launch<GROUPS, false, false>(), groups_launch<GROUPS, true, false>()},
            {groups_launch<KEPT, false, true>(), groups_launch<KEPT, true, true>()},
            at_blocks<typename GROUPS::any>};
}

#define GX_DECLARE(ID, NUMBER, NAME) codec_kernels list_kernels_##NAME();
GX_CODECS(GX_DECLARE)
#undef GX_DECLARE

} // namespace gx

#endif
