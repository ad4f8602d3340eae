/* runtime.h: CUDA's host side on the emulated GPU (include/cuda_runtime.h): memory, streams,
 * events, launches.
 *
 * What is enqueued on a stream is done when the host waits for it, or asks again and again, and not
 * before: so nothing can be read early, and what is still to be copied must be left alone. There are
 * two devices, and several threads of the host may use them: one at a time, since one lock is held
 * while anything is done.
 */
#ifndef GX_TESTS_EMULATED_RUNTIME_H
#define GX_TESTS_EMULATED_RUNTIME_H

#include "tests/emulated/threads.h"

#include <tuple>

enum cudaError_t {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorMemoryAllocation,
    cudaErrorInvalidConfiguration,
    cudaErrorInsufficientDriver,
    cudaErrorNoDevice,
    cudaErrorNotReady,
};
const char *cudaGetErrorString(cudaError_t e);
const char *cudaGetErrorName(cudaError_t e);
cudaError_t cudaGetLastError();

/* ---- the device ---- */

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor, multiProcessorCount, l2CacheSize;
    int cooperativeLaunch;
    size_t sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
};
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int number);
cudaError_t cudaSetDevice(int number);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);

/* ---- memory ---- */

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaHostAllocDefault, cudaHostAllocPortable, cudaHostAllocMapped };
enum {
    cudaHostRegisterDefault = 0,
    cudaHostRegisterPortable = 1,
    cudaHostRegisterMapped = 2,
    cudaHostRegisterReadOnly = 8
};
struct gx_emulated_stream;
typedef gx_emulated_stream *cudaStream_t;

cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t cudaFree(void *p);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *p);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemset(void *p, int value, size_t bytes);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream);

/* ---- what is not emulated ---- */

/* Refused, as where a GPU has no room for the whole grid: here a grid's blocks are never there at
 * the same time. */
cudaError_t cudaLaunchCooperativeKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                                        cudaStream_t stream);

/* ---- streams and events ---- */

enum { cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };
struct gx_emulated_event;
typedef gx_emulated_event *cudaEvent_t;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *out);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);

/* ---- kernels ---- */

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
struct cudaFuncAttributes {};
template <class F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, F)
{
    return cudaSuccess;
}
template <class F> cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
template <class F> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F, int, size_t)
{
    *blocks = 1; /* so that a warp has several items, and items several blocks, in small collections */
    return cudaSuccess;
}

namespace emulated {

void enqueue(cudaStream_t stream, std::function<void()> what);
/* Else that is the last error. */
bool launchable(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);

/* kernel<<<grid, block, shared_bytes, stream>>>(args...); arguments are copied now. */
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, A... args)
{
    const std::tuple<std::decay_t<P>...> all(args...);
    if (launchable(grid, block, shared_bytes, stream))
        enqueue(stream, [=] { run(grid, block, shared_bytes, [&] { std::apply(kernel, all); }); });
}

} // namespace emulated

#endif
