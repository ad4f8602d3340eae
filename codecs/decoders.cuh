/* decoders.cuh: every decoder on the device, gx::NAME<LDG> for each row of GX_CODECS, for kernels
 * that choose a decoder at run time. */
#ifndef GX_CODECS_DECODERS_CUH
#define GX_CODECS_DECODERS_CUH

#include "codecs/eliasfano.cuh"
#include "codecs/gpupfd.cuh"
#include "codecs/pfordelta.cuh"
#include "codecs/rice.cuh"
#include "codecs/simple.cuh"
#include "codecs/varint.cuh"

#endif
