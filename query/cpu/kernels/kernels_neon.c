/* The kernels in NEON. */
#if defined(__aarch64__) && defined(__GNUC__)
#include "query/cpu/kernels/vector_neon.h"

#define KERNELS gx_cpu_neon
#define NAME "neon"
#define TITLE "NEON"
#include "query/cpu/kernels/kernels_template.h"
#endif
