/* energy.h: what a GPU has used, as NVIDIA's management library counts it, which is loaded at the first question. */
#ifndef GX_TOOLS_BENCH_KERNELS_ENERGY_H
#define GX_TOOLS_BENCH_KERNELS_ENERGY_H

#include "engine/api/gpuidx.h"

/* So long something is repeated for its energy: the counter moves about ten times a second. */
#define BENCH_ENERGY_SECONDS 1.0

/* The joules that the current GPU has used since its driver was loaded; below 0: nobody tells. */
double bench_gpu_joules(void);

#endif
