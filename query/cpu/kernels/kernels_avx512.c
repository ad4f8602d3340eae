/* The kernels in AVX-512 with VBMI and VPOPCNTDQ. */
#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vpopcntdq,bmi2,popcnt,lzcnt")
#include "query/cpu/kernels/vector_avx512.h"

#define KERNELS gx_cpu_avx512
#define NAME "avx512"
#define TITLE "AVX-512"
#include "query/cpu/kernels/kernels_template.h"
#endif
