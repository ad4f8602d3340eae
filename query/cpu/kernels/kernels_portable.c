/* The kernels in plain C: the reference of the others, and what other processors run. */
#include "query/cpu/kernels/vector_portable.h"

#define KERNELS gx_cpu_portable
#define NAME "portable"
#define TITLE "portable"
#include "query/cpu/kernels/kernels_template.h"
