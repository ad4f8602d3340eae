/* query_slot.cuh: how a kernel that stays gets its next query.
 *
 * The host writes a message into pinned memory. The warp that finished the query before reads that
 * until the message is there, and writes it to device memory, which one warp of each block of
 * threads reads until it is there. Each word has the message's number beside it, in the same 8
 * bytes, and only when all the numbers are the new one is the message whole: nobody waits for a
 * flag first and for the words then.
 */
#ifndef GX_QUERY_GPU_QUERY_SLOT_CUH
#define GX_QUERY_GPU_QUERY_SLOT_CUH

#include "query/gpu/block_threshold.cuh"

namespace gx {

__device__ __forceinline__ uint64_t nanoseconds()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/* As others wrote it, be it the host. */
__device__ __forceinline__ uint4 read_slot(const uint4 *from)
{
    uint4 x;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}

/* The same, and with it all that was visible to the thread of this device that wrote it. */
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

constexpr uint64_t MAX_RESIDENT_NS = 10000000; /* then other kernels have a turn */

/* Run by one warp after the previous answer is written and its state cleared. Polls the host's
 * query slot for the message of that number and broadcasts it to all blocks of threads. Broadcasts
 * an empty query (blocks = 0), which ends the kernel, when none comes within linger_ns, when the
 * host asks it to leave, or when the kernel, which began at `begun`, has run for MAX_RESIDENT_NS.
 * */
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

/* The newest message to the block, by one warp. Only messages that need not this block may have
 * been missed. */
__device__ __forceinline__ void receive_query(const linger_params &S, block_state &block, uint32_t lane)
{
    const uint32_t last = block.message;
    for (;;) {
        const uint4 a = acquire_slot(S.copy + lane), b = acquire_slot(S.copy + 32 + (lane < 31 ? lane : 0));
        const uint32_t number = __shfl_sync(ALL_LANES, a.y, 0);
        const bool here = a.y == number && a.w == number && b.y == number && b.w == number && (int)(number - last) > 0;
        if (__all_sync(ALL_LANES, here)) {
            uint2 *words = reinterpret_cast<uint2 *>(&block.query);
            __syncwarp(); /* all have read the last one's number */
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
