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
__device__ __forceinline__ uint4 read_mail(const uint4 *from)
{
    uint4 x;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}

/* The same, and with it all that was visible to the thread of this device that wrote it. */
__device__ __forceinline__ uint4 acquire_mail(const uint4 *from)
{
    uint4 x;
    asm volatile("ld.acquire.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}

__device__ __forceinline__ void write_mail(uint4 *to, uint4 x)
{
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
}

constexpr uint64_t LONGEST_STAY = 10000000; /* ns; then others have a turn, whatever the host has missed */

/* By one warp, when the query before is answered and all is as it was: the host's message of that
 * number to all blocks of threads; one of 0 blocks if it does not come in time, or the GPU is
 * wanted for something else, or the kernel, which began then, has stayed long enough. */
__device__ __forceinline__ void pass_mail(const few_stay &S, uint32_t number, uint64_t begun, uint32_t lane)
{
    const uint4 *mail = reinterpret_cast<const uint4 *>(S.mail);
    const uint64_t begin = nanoseconds();
    const bool stays = begin - begun < LONGEST_STAY;
    __threadfence();
    for (;;) {
        const uint4 a = read_mail(mail + lane), b = read_mail(mail + 32 + lane);
        const bool here = stays && a.y == number && a.w == number && (lane == 31 || (b.y == number && b.w == number));
        if (__all_sync(ALL_LANES, here)) {
            write_mail(S.copy + lane, a);
            if (lane < 31)
                write_mail(S.copy + 32 + lane, b);
            return;
        }
        const bool leaves = !stays || (lane == 31 && b.x) || nanoseconds() - begin > S.patience;
        if (__any_sync(ALL_LANES, leaves)) {
            const uint4 none = make_uint4(0, number, 0, number);
            write_mail(S.copy + lane, none);
            if (lane < 31)
                write_mail(S.copy + 32 + lane, none);
            else
                *(volatile uint32_t *)&S.mail->left = number;
            return;
        }
    }
}

/* The newest message to the block, by one warp. Only messages that need not this block may have
 * been missed. */
__device__ __forceinline__ void take_mail(const few_stay &S, few_block &block, uint32_t lane)
{
    const uint32_t last = block.mail;
    for (;;) {
        const uint4 a = acquire_mail(S.copy + lane), b = acquire_mail(S.copy + 32 + (lane < 31 ? lane : 0));
        const uint32_t number = __shfl_sync(ALL_LANES, a.y, 0);
        const bool here = a.y == number && a.w == number && b.y == number && b.w == number && (int)(number - last) > 0;
        if (__all_sync(ALL_LANES, here)) {
            uint2 *words = reinterpret_cast<uint2 *>(&block.query);
            __syncwarp(); /* all have read the last one's number */
            words[lane] = make_uint2(a.x, a.z);
            if (2 * (lane + 32) < MAIL_WORDS)
                words[lane + 32] = make_uint2(b.x, b.z);
            if (lane == 0)
                block.mail = number;
            return;
        }
    }
}

} // namespace gx

#endif
