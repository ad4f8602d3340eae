#include "tests/emulated/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <deque>
#include <vector>

struct gx_emulated_stream {
    std::deque<std::function<void()>> work;
};

struct gx_emulated_event {
    unsigned pending; /* records that are still to be done */
    cudaStream_t stream;
    bool recorded, timed;
};

static std::vector<cudaStream_t> streams;
static cudaError_t last_error;

constexpr size_t MEMORY = (size_t)8 << 30, SPOILED = 4 << 20; /* of an allocation, so much is filled with rubbish */

/* ---- errors, the device ---- */

const char *cudaGetErrorName(cudaError_t e)
{
    static const char *const names[] = {"cudaSuccess",
                                        "cudaErrorInvalidValue",
                                        "cudaErrorMemoryAllocation",
                                        "cudaErrorInvalidConfiguration",
                                        "cudaErrorInsufficientDriver",
                                        "cudaErrorNoDevice",
                                        "cudaErrorNotReady"};
    return names[e];
}

const char *cudaGetErrorString(cudaError_t e)
{
    return cudaGetErrorName(e);
}

cudaError_t cudaGetLastError()
{
    const cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

static cudaError_t check(bool good, cudaError_t otherwise = cudaErrorInvalidValue)
{
    if (!good)
        last_error = otherwise;
    return good ? cudaSuccess : otherwise;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int number)
{
    *p = {"emulated GPU", MEMORY, 9, 0, 3, 1 << 20, 1};
    return check(number == 0);
}

cudaError_t cudaSetDevice(int number)
{
    return check(number == 0);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

/* ---- streams and events ---- */

static void step(cudaStream_t stream)
{
    const std::function<void()> what = std::move(stream->work.front());
    stream->work.pop_front();
    what();
}

static void finish(cudaStream_t stream)
{
    while (!stream->work.empty())
        step(stream);
}

void emulated::enqueue(cudaStream_t stream, std::function<void()> what)
{
    stream->work.push_back(std::move(what));
}

bool emulated::launchable(dim3 grid, dim3 block, size_t shared_bytes)
{
    const bool good = grid.x && grid.y && grid.z && grid.y <= 65535 && grid.z <= 65535 && block.x &&
                      block.x <= MAX_THREADS && block.y == 1 && block.z == 1 && shared_bytes <= MAX_SHARED;
    return check(good, cudaErrorInvalidConfiguration) == cudaSuccess;
}

cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t)
{
    return check(false, cudaErrorInvalidConfiguration);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    *out = new gx_emulated_stream;
    streams.push_back(*out);
    return check(flags == cudaStreamNonBlocking); /* the others wait for each other */
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    finish(stream);
    streams.erase(std::find(streams.begin(), streams.end(), stream));
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (stream) /* the default stream has finished whatever a call began */
        finish(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (stream->work.empty())
        return cudaSuccess;
    step(stream);
    return cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    *out = new gx_emulated_event{0, NULL, false, flags != cudaEventDisableTiming};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ++event->pending;
    event->recorded = true;
    event->stream = stream;
    emulated::enqueue(stream, [event] { --event->pending; });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    while (event->pending)
        step(event->stream);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    (void)cudaEventSynchronize(event);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (!event->pending)
        return cudaSuccess;
    step(event->stream);
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    *ms = 1;
    if (begin->pending || end->pending)
        return cudaErrorNotReady;
    return check(begin->recorded && end->recorded && begin->timed && end->timed);
}

/* ---- memory ---- */

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    *free = *total = MEMORY;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    *out = bytes ? malloc(bytes) : NULL; /* not rounded up, so that a sanitizer sees the end */
    if (*out)
        memset(*out, 0xa5, std::min(bytes, SPOILED));
    return check(*out || !bytes, cudaErrorMemoryAllocation);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned)
{
    return cudaMalloc(out, bytes);
}

cudaError_t cudaFree(void *p)
{
    for (cudaStream_t s : streams)
        finish(s);
    free(p);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    return cudaFree(p);
}

cudaError_t cudaHostRegister(void *, size_t, unsigned)
{
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *)
{
    return cudaSuccess;
}

/* Does not wait for streams that do not block. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    memset(p, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
    emulated::enqueue(stream, [=] { memcpy(to, from, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
    emulated::enqueue(stream, [=] { memset(p, value, bytes); });
    return cudaSuccess;
}
