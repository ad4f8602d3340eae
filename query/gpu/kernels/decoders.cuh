/* decoders.cuh: every decoder on the device, gx::NAME<LDG> for each row of GX_CODECS, for kernels
 * that choose a decoder at run time. */
#ifndef GX_QUERY_GPU_KERNELS_DECODERS_CUH
#define GX_QUERY_GPU_KERNELS_DECODERS_CUH

#include "codecs/compared/pfordelta.cuh"
#include "codecs/compared/simple.cuh"
#include "codecs/compared/varint.cuh"
#include "codecs/eliasfano.cuh"
#include "codecs/gpupfd.cuh"
#include "codecs/rice.cuh"

#endif
