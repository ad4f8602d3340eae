/* The kernels in plain C: the reference of the others, and what other processors run. */
#include "query/cpu/vector_portable.h"

#define KERNELS gx_cpu_portable
#define NAME "portable"
#define TITLE "portable"
#include "query/cpu/kernels_template.h"
