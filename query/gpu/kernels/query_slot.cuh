/* query_slot.cuh: how a lingering kernel receives its next query.
 *
 *   host -> slot (pinned memory) -> one warp -> S.copy (device memory) -> a warp of each block
 *
 * The host writes the message to pinned memory. The warp that finished the previous query polls it
 * there and copies it to device memory. One warp of each thread block polls that copy. Each word
 * has the message's number beside it in the same 8 bytes. A reader has the whole message when all
 * numbers are the new one, so it needs no flag and no second read. */
#ifndef GX_QUERY_GPU_KERNELS_QUERY_SLOT_CUH
#define GX_QUERY_GPU_KERNELS_QUERY_SLOT_CUH

#include "query/gpu/kernels/block_threshold.cuh"

namespace gx {

__device__ __forceinline__ uint64_t nanoseconds()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/* Loads what another thread or the host wrote last. */
__device__ __forceinline__ uint4 read_slot(const uint4 *from)
{
    uint4 x;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}

/* The same, with acquire semantics towards the thread of this device that wrote it. */
__device__ __forceinline__ uint4 acquire_slot(const uint4 *from)
{
    uint4 x;
    asm volatile("ld.acquire.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}

__device__ __forceinline__ void write_slot(uint4 *to, uint4 x)
{
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
}

constexpr uint64_t MAX_RESIDENT_NS = 10000000; /* the kernel then ends, so that other kernels run */

/* Run by one warp after the previous answer is written and its state cleared. Polls the host's
 * query slot for message `number` and broadcasts it to all thread blocks. Broadcasts an empty
 * query (blocks = 0), which ends the kernel, when no message comes within linger_ns, when the host
 * sets `stop`, or when the kernel has run for MAX_RESIDENT_NS since start_ns. */
__device__ __forceinline__ void broadcast_query(const linger_params &S, uint32_t number, uint64_t start_ns,
                                                uint32_t lane)
{
    const uint4 *slot = reinterpret_cast<const uint4 *>(S.slot);
    const uint64_t begin = nanoseconds();
    const bool may_linger = begin - start_ns < MAX_RESIDENT_NS;
    __threadfence();
    for (;;) {
        const uint4 a = read_slot(slot + lane), b = read_slot(slot + 32 + lane);
        const bool here =
            may_linger && a.y == number && a.w == number && (lane == 31 || (b.y == number && b.w == number));
        if (__all_sync(ALL_LANES, here)) {
            write_slot(S.copy + lane, a);
            if (lane < 31)
                write_slot(S.copy + 32 + lane, b);
            return;
        }
        const bool leaves = !may_linger || (lane == 31 && b.x) || nanoseconds() - begin > S.linger_ns;
        if (__any_sync(ALL_LANES, leaves)) {
            const uint4 none = make_uint4(0, number, 0, number);
            write_slot(S.copy + lane, none);
            if (lane < 31)
                write_slot(S.copy + 32 + lane, none);
            else
                *(volatile uint32_t *)&S.slot->ended_message = number;
            return;
        }
    }
}

/* Run by one warp of a thread block. Waits for a newer message and stores it in block.query. A
 * block can miss messages only of queries that it takes no part in. */
__device__ __forceinline__ void receive_query(const linger_params &S, block_state &block, uint32_t lane)
{
    const uint32_t last = block.message;
    for (;;) {
        const uint4 a = acquire_slot(S.copy + lane), b = acquire_slot(S.copy + 32 + (lane < 31 ? lane : 0));
        const uint32_t number = __shfl_sync(ALL_LANES, a.y, 0);
        const bool here = a.y == number && a.w == number && b.y == number && b.w == number && (int)(number - last) > 0;
        if (__all_sync(ALL_LANES, here)) {
            uint2 *words = reinterpret_cast<uint2 *>(&block.query);
            __syncwarp(); /* all lanes have read the previous message number */
            words[lane] = make_uint2(a.x, a.z);
            if (2 * (lane + 32) < SLOT_WORDS)
                words[lane + 32] = make_uint2(b.x, b.z);
            if (lane == 0)
                block.message = number;
            return;
        }
    }
}

} // namespace gx

#endif
