/* cuda.cuh: the header that every .cu file of the host side includes first. It includes CUDA and
 * the C headers, with C linkage, and turns CUDA's errors into a gx_error. */
#ifndef GX_ENGINE_CUDA_CUH
#define GX_ENGINE_CUDA_CUH

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

extern "C" {
#include "engine/device.h"
#include "engine/status.h"
}

/* Return GX_OK for cudaSuccess. Else return GX_ECUDA and fill err with `what`, which names the
 * failed step, and CUDA's own message. */
static inline gx_status gx_cuda_status(cudaError_t e, const char *what, gx_error *err)
{
    if (e == cudaSuccess)
        return GX_OK;
    (void)cudaGetLastError(); /* clear the error, so that the next call does not report it again */
    if (e == cudaErrorMemoryAllocation) {
        size_t have = 0, total = 0;
        (void)cudaMemGetInfo(&have, &total);
        return gx_fail(err, GX_ECUDA,
                       "GPU: %s: no memory (%.1f MiB of %.1f MiB are free); use the CPU engine, or "
                       "free memory on the GPU",
                       what, (double)have / 1048576, (double)total / 1048576);
    }
    return gx_fail(err, GX_ECUDA, "GPU: %s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
}

#endif
