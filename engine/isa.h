/* isa.h: which instruction set of the CPU is used: the best that it has, or the one that the
 * environment's GX_CPU names ("portable", "avx2", "avx512"; for tests and measurements). Decoders
 * (codecs/simd.h) and the search's kernels (query/cpu/kernels.h) look here. */
#ifndef GX_ENGINE_ISA_H
#define GX_ENGINE_ISA_H

#include "engine/gpuidx.h"

/* GX_CPU's value; NULL: it is not set, or empty. */
const char *gx_isa_override(void);

/* GX_EUSAGE: it names nothing that this CPU can run. */
gx_status gx_isa_fail_override(gx_error *err);

#endif
