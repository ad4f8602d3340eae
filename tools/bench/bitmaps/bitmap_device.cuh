/* bitmap_device.cuh: memory and times of `bench bitmaps` on the GPU. Functions use the current device, and fail with
 * GX_ENOGPU where none can be used. */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_DEVICE_CUH
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_DEVICE_CUH

#include <algorithm>

#include "engine/cuda.cuh"
#include "engine/device.h"

namespace {

inline gx_status failed(cudaError_t e, const char *what, gx_error *err)
{
    const bool none = e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver;
    if (none && gx_device_use(0, err) != GX_OK)
        return GX_ENOGPU;
    return gx_cuda_status(e, what, err);
}

#define TRY(call, what)                                                                                                \
    do {                                                                                                               \
        const cudaError_t e_ = (call);                                                                                 \
        if (e_ != cudaSuccess)                                                                                         \
            return failed(e_, what, err);                                                                              \
    } while (0)

/* GPU memory that is freed with its owner. */
template <class T> struct device_array {
    T *p = NULL;

    device_array() = default;
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;
    ~device_array() { cudaFree(p); }
    gx_status alloc(uint64_t n, gx_error *err)
    {
        TRY(cudaMalloc(&p, std::max<uint64_t>(n, 1) * sizeof(T)), "memory for columns");
        return GX_OK;
    }
    gx_status upload(const T *from, uint64_t n, gx_error *err)
    {
        const gx_status st = alloc(n, err);
        if (st != GX_OK)
            return st;
        TRY(cudaMemcpy(p, from, n * sizeof(T), cudaMemcpyHostToDevice), "copying columns to the GPU");
        /* a copy from pageable memory may return before it has arrived */
        TRY(cudaStreamSynchronize(0), "copying columns to the GPU");
        return GX_OK;
    }
};

#define PASS(call)                                                                                                     \
    do {                                                                                                               \
        const gx_status st_ = (call);                                                                                  \
        if (st_ != GX_OK)                                                                                              \
            return st_;                                                                                                \
    } while (0)

/* ---- timing ---- */

/* Read all, so that the L2 cache holds nothing else and nothing that is still to be written. */
static __global__ void __launch_bounds__(256) read_all(const uint4 *p, size_t n)
{
    uint32_t x = 0;
    for (size_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        x |= p[i].x ^ p[i].w;
    if (x == 0x5bd1e995)
        ((uint32_t *)p)[0] = x;
}

/* Keep the GPU busy while the host launches what is to be timed. */
static __global__ void spin(uint64_t ns)
{
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

struct gpu_timer {
    cudaEvent_t begin = NULL, end = NULL;
    device_array<uint4> flush;
    size_t n_flush = 0;

    ~gpu_timer()
    {
        if (begin)
            cudaEventDestroy(begin);
        if (end)
            cudaEventDestroy(end);
    }
    gx_status open(gx_error *err)
    {
        int device = 0, l2 = 0;
        TRY(cudaGetDevice(&device), "the device");
        TRY(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device), "the device");
        TRY(cudaEventCreate(&begin), "an event");
        TRY(cudaEventCreate(&end), "an event");
        n_flush = (size_t)l2 * 2 / sizeof(uint4);
        PASS(flush.alloc(n_flush, err));
        TRY(cudaMemset(flush.p, 0x5a, n_flush * sizeof(uint4)), "filling memory");
        return GX_OK;
    }
    /* The mean of all runs but the first. */
    template <class LAUNCH>
    gx_status mean(uint32_t runs, bool cold, cudaStream_t stream, double *seconds, gx_error *err, LAUNCH launch)
    {
        *seconds = 0;
        for (uint32_t run = 0; run < runs; ++run) {
            float ms;
            if (cold)
                read_all<<<1024, 256, 0, stream>>>(flush.p, n_flush);
            spin<<<1, 1, 0, stream>>>(30000);
            TRY(cudaEventRecord(begin, stream), "an event");
            launch();
            TRY(cudaEventRecord(end, stream), "an event");
            TRY(cudaGetLastError(), "launching kernels");
            TRY(cudaEventSynchronize(end), "the kernels");
            TRY(cudaEventElapsedTime(&ms, begin, end), "an event");
            if (run || runs == 1)
                *seconds += 1e-3 * ms / std::max(runs - 1, 1u);
        }
        return GX_OK;
    }
};

} // namespace

#endif
