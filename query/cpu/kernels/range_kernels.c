#include "query/cpu/kernels/range_kernels.h"

#include <string.h>

#include "engine/memory/prefetch.h"

/* The bits before a range of a segment. */
#define ONES UINT64_MAX
#define BELOW(i) ((UINT64_C(1) << 8 * (i)) - 1)
#define BELOW8(...)                                                                                                    \
    {__VA_ARGS__ BELOW(0)}, {__VA_ARGS__ BELOW(1)}, {__VA_ARGS__ BELOW(2)}, {__VA_ARGS__ BELOW(3)},                    \
        {__VA_ARGS__ BELOW(4)}, {__VA_ARGS__ BELOW(5)}, {__VA_ARGS__ BELOW(6)},                                        \
    {                                                                                                                  \
        __VA_ARGS__ BELOW(7)                                                                                           \
    }
#define NONE
static const uint64_t bits_before[GX_SEGMENT_RANGES][4] = {BELOW8(NONE), BELOW8(ONES, ), BELOW8(ONES, ONES, ),
                                                           BELOW8(ONES, ONES, ONES, )};

#define KERNELS portable
#define VECTOR 1
#include "query/cpu/kernels/range_kernels_body.h"

#if GX_X86 || GX_ARM64
/* For every set of 8 documents, where each finds its tf among those of the set, a byte each; 0x80:
 * nowhere. */
#define PLACE(m, i) (((m) >> (i)&1 ? (uint64_t)__builtin_popcount((m) & ((1u << (i)) - 1)) : UINT64_C(0x80)) << 8 * (i))
#define PLACES1(m)                                                                                                     \
    PLACE(m, 0) | PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) | PLACE(m, 6) | PLACE(m, 7)
#define PLACES4(m) PLACES1(m), PLACES1((m) + 1), PLACES1((m) + 2), PLACES1((m) + 3)
#define PLACES16(m) PLACES4(m), PLACES4((m) + 4), PLACES4((m) + 8), PLACES4((m) + 12)
#define PLACES64(m) PLACES16(m), PLACES16((m) + 16), PLACES16((m) + 32), PLACES16((m) + 48)
static const uint64_t places[256] = {PLACES64(0), PLACES64(64), PLACES64(128), PLACES64(192)};
#endif

#if GX_ARM64
#include <arm_neon.h>

#define KERNELS neon
#define VECTOR 16
#include "query/cpu/kernels/range_kernels_body.h"
#endif

#if GX_X86
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt,lzcnt")
#define KERNELS avx2
#define VECTOR 32
#include "query/cpu/kernels/range_kernels_body.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi,bmi2,popcnt,lzcnt")
#define KERNELS avx512
#define VECTOR 64
#include "query/cpu/kernels/range_kernels_body.h"
#pragma GCC pop_options
#endif

const gx_range_kernels *gx_range_kernels_like(const gx_cpu_kernels *kernels)
{
#if GX_X86
    if (kernels == &gx_cpu_avx512)
        return &avx512;
    if (kernels == &gx_cpu_avx2)
        return &avx2;
#elif GX_ARM64
    if (kernels == &gx_cpu_neon)
        return &neon;
#endif
    (void)kernels;
    return &portable;
}
