/* threads.h: blocks of threads on the emulated GPU (include/cuda_runtime.h).
 *
 * A block's threads are fibers of one host thread. A thread runs until it meets others: the lanes
 * of its warp at a collective or the block at a barrier; then another one runs. Which warp goes on,
 * for how long, and whether its lanes do so upwards or downwards is drawn by a generator that
 * always begins alike. Blocks run one after another.
 */
#ifndef GX_TESTS_EMULATED_THREADS_H
#define GX_TESTS_EMULATED_THREADS_H

#include <functional>
#include <stddef.h>
#include <stdint.h>

struct uint3 {
    unsigned x, y, z;
};

struct dim3 : uint3 {
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : uint3{a, b, c} {}
};

/* Of the thread that runs. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace emulated {

constexpr unsigned LANES = 32, MAX_THREADS = 1024, MAX_SHARED = 227 << 10;

/* Run a kernel: body in each thread of each block. */
void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body);

/* Say what is wrong with the kernel, and where, and end the program. */
[[noreturn]] void fail(const char *what);

/* What a warp's lanes bring to a collective. There until the lane next calls meet. */
struct meeting {
    const char *collective;
    uint32_t lanes; /* that came; the others had ended */
    uint64_t of[LANES];
};

/* All lanes that have not ended meet at a collective, the same for all. */
const meeting &meet(const char *collective, uint32_t mask, uint64_t value);

/* All threads of the block meet; how many of them bring true. */
unsigned meet_block(bool value);

void let_others_run();

static inline unsigned lane()
{
    return threadIdx.x % LANES;
}

/* ---- shared memory ---- */

void *dynamic_shared();
/* in the block's dynamic shared memory, where alone asynchronous copies go here */
size_t shared_address(const void *p);

/* Declared shared memory holds rubbish when a block begins. */
void begin_shared(void *variable, size_t bytes);
template <class T> static inline void begin_shared(T &variable)
{
    begin_shared(&variable, sizeof variable);
}

/* The thread's asynchronous copy: until it waits there is rubbish at the destination. */
void copy_async(uint32_t shared, const void *global, unsigned bytes);
void wait_copies();

} // namespace emulated

#endif
