/* isa.h: the choice of the CPU's instruction set. gpuidx uses the best one that the CPU has. For
 * tests and measurements, the environment variable GX_CPU names another one: "portable", "avx2",
 * "avx512" or, on aarch64, "neon". The decoders (codecs/words/simd.h) and the search kernels
 * (query/cpu/kernels/kernels.h) both follow it. */
#ifndef GX_ENGINE_ISA_H
#define GX_ENGINE_ISA_H

#include "engine/api/gpuidx.h"

/* The value of GX_CPU. NULL: it is not set, or empty. */
const char *gx_isa_override(void);

/* Return GX_EUSAGE with a message that GX_CPU names no instruction set of this CPU. */
gx_status gx_isa_fail_override(gx_error *err);

#endif
