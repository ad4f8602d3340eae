#include "query/cpu/kernels/kernels.h"

#include <string.h>

#include "engine/isa.h"

static bool runs_here(const gx_cpu_kernels *k)
{
#if GX_X86
    __builtin_cpu_init();
    /* Virtual machines may leave out some of what every processor with AVX2 has. */
    const bool bits = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                      __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("lzcnt");
    const bool avx2 = bits && __builtin_cpu_supports("avx2");
    if (k == &gx_cpu_avx512)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
               __builtin_cpu_supports("avx512vpopcntdq");
    if (k == &gx_cpu_avx2)
        return avx2;
#elif GX_ARM64
    if (k == &gx_cpu_neon)
        return true;
#endif
    return k == &gx_cpu_portable;
}

static const gx_cpu_kernels *const forms[] = {
/* best first */
#if GX_X86
    &gx_cpu_avx512,
    &gx_cpu_avx2,
#elif GX_ARM64
    &gx_cpu_neon,
#endif
    &gx_cpu_portable,
};

const gx_cpu_kernels *gx_cpu_choose(void)
{
    const char *const asked = gx_isa_override();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i) {
        if (asked ? strcmp(asked, forms[i]->name) == 0 : runs_here(forms[i]))
            return runs_here(forms[i]) ? forms[i] : NULL;
    }
    return NULL;
}
