/* The kernels in AVX2 with BMI2. */
#if defined(__x86_64__) && defined(__GNUC__)
#pragma GCC target("avx2,bmi,bmi2,popcnt,lzcnt")
#include "query/cpu/kernels/vector_avx2.h"

#define KERNELS gx_cpu_avx2
#define NAME "avx2"
#define TITLE "AVX2"
#include "query/cpu/kernels/kernels_template.h"
#endif
