/* cuda_runtime.h: CUDA for a machine that has neither a GPU nor CUDA: the GPU engine's own sources,
 * kernels and host side, run by the CPU, for tests.
 *
 *   query/x.cu -> translate.py -> x.cpp -> the C++ compiler -> with this in place of CUDA's:
 *   test_query
 *
 * translate.py rewrites what is no C++: launches, shared memory, instructions in asm. The rest
 * means here what it means in CUDA: the language (this file), threads (tests/emulated/threads.h),
 * memory and streams (tests/emulated/runtime.h), and what is used of CUB (cub/).
 *
 * It finds wrong results of the code as it is written, a collective that not all lanes reach,
 * copies that are not waited for, memory that nobody has set, results that the host reads before
 * they are there. It does not find races between warps but by luck, nor those between blocks, which
 * run one after another; nor what the order of memory accesses does to them; nor mistakes of nvcc
 * and ptxas; and of speed it says nothing. tests/gpu.sh is for these.
 *
 * What is missing is found by the compiler, or by translate.py: a function comes here, an
 * instruction of asm into translate.py's table. Keep them as narrow as their use: what is not
 * emulated must not compile.
 */
#ifndef GX_EMULATED_CUDA_RUNTIME_H
#define GX_EMULATED_CUDA_RUNTIME_H

#include <fenv.h>
#include <math.h>
#include <string.h>

#include <chrono>
#include <type_traits>

#include "tests/emulated/runtime.h"

/* ---- qualifiers ---- */

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

/* ---- types ---- */

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}
static inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y)
{
    return {x, y};
}

/* ---- arithmetic ---- */

template <class A, class B> constexpr std::common_type_t<A, B> min(A a, B b)
{
    const std::common_type_t<A, B> x = a, y = b;
    return y < x ? y : x;
}
template <class A, class B> constexpr std::common_type_t<A, B> max(A a, B b)
{
    const std::common_type_t<A, B> x = a, y = b;
    return x < y ? y : x;
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __ffs(unsigned x)
{
    return __builtin_ffs((int)x);
}
static inline int __clz(unsigned x)
{
    return x ? __builtin_clz(x) : 32;
}
static inline uint64_t gx_emulated_pair(unsigned low, unsigned high)
{
    return (uint64_t)high << 32 | low;
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n)
{
    return (unsigned)(gx_emulated_pair(low, high) >> (n & 31));
}
static inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned n)
{
    return (unsigned)(gx_emulated_pair(low, high) >> min(n, 32));
}
static inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned n)
{
    return (unsigned)(gx_emulated_pair(low, high) >> (32 - min(n, 32)));
}

static inline unsigned __float_as_uint(float x)
{
    unsigned u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float __uint_as_float(unsigned u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline unsigned __float2uint_rn(float x)
{
    return (unsigned)llrintf(x);
}
static inline unsigned __float2uint_ru(float x)
{
    return (unsigned)ceilf(x);
}
static inline float __uint2float_rz(unsigned x) /* the bits past the first 24 go */
{
    const int drop = x >> 24 ? 8 - __clz(x) : 0;
    return (float)(x >> drop << drop);
}

/* ---- memory ---- */

template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcg(const T *p)
{
    return *p;
}
template <class T> static inline void __stcs(T *p, std::common_type_t<T> x)
{
    *p = x;
}
template <class T> static inline T __ldcs(const T *p)
{
    return *p;
}
static inline size_t __cvta_generic_to_shared(const void *p)
{
    return emulated::shared_address(p);
}
static inline void __threadfence_block() {}
static inline void __threadfence() {}
static inline void __threadfence_system() {}

/* T from p alone, as CUDA has one function a type. */
template <class T> static inline T atomicAdd(T *p, std::common_type_t<T> x)
{
    const T old = *p;
    *p = old + x;
    return old;
}
template <class T> static inline T atomicOr(T *p, std::common_type_t<T> x)
{
    const T old = *p;
    *p = old | x;
    return old;
}
template <class T> static inline T atomicMax(T *p, std::common_type_t<T> x)
{
    const T old = *p;
    *p = max(old, x);
    return old;
}
template <class T> static inline T atomicCAS(T *p, std::common_type_t<T> expected, std::common_type_t<T> x)
{
    const T old = *p;
    if (old == expected)
        *p = x;
    return old;
}

/* ---- threads ---- */

static inline void __syncthreads()
{
    (void)emulated::meet_block(false);
}
static inline int __syncthreads_count(int p)
{
    return (int)emulated::meet_block(p != 0);
}
static inline int __syncthreads_and(int p)
{
    return emulated::meet_block(p == 0) == 0;
}
static inline void __syncwarp()
{
    (void)emulated::meet("syncwarp", ~0u, 0);
}
static inline void __nanosleep(unsigned)
{
    emulated::let_others_run();
}

/* The value of another lane, if there is one; else this lane's. */
template <class T> static inline T gx_emulated_shuffle(const char *name, uint32_t mask, T value, unsigned from)
{
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "a shuffle moves up to 64 bits");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    const emulated::meeting &m = emulated::meet(name, mask, bits);
    if (from >= emulated::LANES)
        return value;
    if (!(m.lanes >> from & 1))
        emulated::fail("a shuffle from a lane that has ended");
    memcpy(&value, &m.of[from], sizeof value);
    return value;
}
template <class T> static inline T __shfl_sync(uint32_t mask, T value, unsigned from)
{
    return gx_emulated_shuffle("shfl", mask, value, from % emulated::LANES);
}
template <class T> static inline T __shfl_up_sync(uint32_t mask, T value, unsigned by)
{
    return gx_emulated_shuffle("shfl_up", mask, value, emulated::lane() - by);
}
template <class T> static inline T __shfl_down_sync(uint32_t mask, T value, unsigned by)
{
    return gx_emulated_shuffle("shfl_down", mask, value, emulated::lane() + by);
}
template <class T> static inline T __shfl_xor_sync(uint32_t mask, T value, unsigned bits)
{
    return gx_emulated_shuffle("shfl_xor", mask, value, emulated::lane() ^ bits);
}

template <class F> static inline uint32_t gx_emulated_reduce(const char *name, uint32_t mask, uint32_t value, F f)
{
    const emulated::meeting &m = emulated::meet(name, mask, value);
    uint32_t all = 0;
    for (unsigned i = 0; i < emulated::LANES; ++i) /* 0 for lanes that have ended */
        all = f(all, (uint32_t)m.of[i], i);
    return all;
}
static inline uint32_t __ballot_sync(uint32_t mask, int p)
{
    return gx_emulated_reduce("ballot", mask, p != 0, [](uint32_t a, uint32_t x, unsigned i) { return a | x << i; });
}
static inline int __any_sync(uint32_t mask, int p)
{
    return gx_emulated_reduce("any", mask, p != 0, [](uint32_t a, uint32_t x, unsigned) { return a | x; }) != 0;
}
static inline int __all_sync(uint32_t mask, int p)
{
    return !__any_sync(mask, !p);
}
static inline uint32_t __reduce_or_sync(uint32_t mask, uint32_t value)
{
    return gx_emulated_reduce("reduce_or", mask, value, [](uint32_t a, uint32_t x, unsigned) { return a | x; });
}
static inline uint32_t __reduce_add_sync(uint32_t mask, uint32_t value)
{
    return gx_emulated_reduce("reduce_add", mask, value, [](uint32_t a, uint32_t x, unsigned) { return a + x; });
}
static inline uint32_t __reduce_max_sync(uint32_t mask, uint32_t value)
{
    return gx_emulated_reduce("reduce_max", mask, value, [](uint32_t a, uint32_t x, unsigned) { return max(a, x); });
}

/* ---- instructions, which translate.py puts in the place of asm ---- */

namespace emulated {

/* shfl.up within groups of lanes, and an addition where there is such a lane. */
static inline uint32_t add_from_below(uint32_t x, unsigned by, unsigned clamp_and_mask)
{
    const unsigned group = LANES - (clamp_and_mask >> 8);
    const uint32_t y = gx_emulated_shuffle("shfl_up", ~0u, x, lane() - by);
    return lane() % group >= by ? x + y : x;
}

static inline uint64_t nanoseconds()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* Four words at once. */
static inline void load_4(uint32_t &x, uint32_t &y, uint32_t &z, uint32_t &w, const uint4 *from)
{
    x = from->x;
    y = from->y;
    z = from->z;
    w = from->w;
}

static inline void store_4(uint4 *to, uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    *to = {x, y, z, w};
}

} // namespace emulated

/* From here on sources take their ways for the device. */
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900

#endif
