#include "query/cpu/range_kernels.h"

#define KERNELS portable
#define VECTOR 16
#include "query/cpu/range_kernels_body.h"

#if GX_X86
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt,lzcnt")
#define KERNELS avx2
#define VECTOR 32
#include "query/cpu/range_kernels_body.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,popcnt,lzcnt")
#define KERNELS avx512
#define VECTOR 64
#include "query/cpu/range_kernels_body.h"
#pragma GCC pop_options
#endif

const gx_range_kernels *gx_range_kernels_like(const gx_cpu_kernels *kernels)
{
#if GX_X86
    if (kernels == &gx_cpu_avx512)
        return &avx512;
    if (kernels == &gx_cpu_avx2)
        return &avx2;
#endif
    (void)kernels;
    return &portable;
}
