#include "tests/emulated/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

struct gx_emulated_stream {
    std::deque<std::function<void()>> work;
    int device;
};

struct gx_emulated_event {
    unsigned pending; /* records that are still to be done */
    cudaStream_t stream;
    bool recorded, timed;
    int device;
};

struct allocation {
    size_t bytes;
    int device;
};

constexpr int N_DEVICES = 2;

static std::recursive_mutex all; /* held by every function that reads or changes what follows */
static std::vector<cudaStream_t> streams;
static std::map<void *, allocation> allocations;
static size_t used[N_DEVICES]; /* bytes */
static thread_local cudaError_t last_error;
static thread_local int current; /* device */

typedef std::lock_guard<std::recursive_mutex> lock;

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

/* Of the second, GX_EMULATED_MEMORY MiB where that is set. */
static size_t memory_of(int device)
{
    const char *mib = device == 1 ? getenv("GX_EMULATED_MEMORY") : NULL;
    return mib ? strtoull(mib, NULL, 10) << 20 : MEMORY;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = N_DEVICES;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int number)
{
    const bool good = number >= 0 && number < N_DEVICES;
    *p = {"emulated GPU", memory_of(number), 9, 0, 3, 1 << 20, 1, 227 * 1024, 228 * 1024};
    return check(good);
}

cudaError_t cudaSetDevice(int number)
{
    const bool good = number >= 0 && number < N_DEVICES;
    current = good ? number : current;
    return check(good);
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
    const lock held(all);
    stream->work.push_back(std::move(what));
}

/* As CUDA does, this refuses a launch on a stream of another device than the thread's. */
bool emulated::launchable(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream)
{
    if (stream && stream->device != current)
        return check(false) == cudaSuccess;
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
    const lock held(all);
    *out = new gx_emulated_stream{{}, current};
    streams.push_back(*out);
    return check(flags == cudaStreamNonBlocking); /* the others wait for each other */
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const lock held(all);
    finish(stream);
    streams.erase(std::find(streams.begin(), streams.end(), stream));
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    const lock held(all);
    if (stream) /* the default stream has finished whatever a call began */
        finish(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    const lock held(all);
    if (stream->work.empty())
        return cudaSuccess;
    step(stream);
    return cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    *out = new gx_emulated_event{0, NULL, false, flags != cudaEventDisableTiming, current};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const lock held(all);
    if (event->device != stream->device)
        return check(false);
    ++event->pending;
    event->recorded = true;
    event->stream = stream;
    emulated::enqueue(stream, [event] { --event->pending; });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const lock held(all);
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
    const lock held(all);
    if (!event->pending)
        return cudaSuccess;
    step(event->stream);
    return cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    const lock held(all);
    *ms = 1;
    if (begin->pending || end->pending)
        return cudaErrorNotReady;
    return check(begin->recorded && end->recorded && begin->timed && end->timed);
}

/* ---- memory ---- */

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    const lock held(all);
    *total = memory_of(current);
    *free = *total > used[current] ? *total - used[current] : 0;
    return cudaSuccess;
}

static void *allocate(size_t bytes)
{
    void *const p = bytes ? malloc(bytes) : NULL; /* not rounded up, so that a sanitizer sees the end */
    if (p)
        memset(p, 0xa5, std::min(bytes, SPOILED));
    return p;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    const lock held(all);
    *out = used[current] + bytes <= memory_of(current) ? allocate(bytes) : NULL;
    if (*out) {
        used[current] += bytes;
        allocations[*out] = {bytes, current};
    }
    return check(*out || !bytes, cudaErrorMemoryAllocation);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned)
{
    *out = allocate(bytes);
    return check(*out || !bytes, cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *p)
{
    const lock held(all);
    for (cudaStream_t s : streams)
        finish(s);
    const auto at = allocations.find(p);
    if (at != allocations.end()) {
        used[at->second.device] -= at->second.bytes;
        allocations.erase(at);
    }
    free(p);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    return cudaFree(p);
}

/* Pages that are pinned where they are: [first byte, end). */
static std::map<uintptr_t, uintptr_t> pinned_pages;

/* How many bytes of [begin, end) are pinned. */
static size_t pinned_within(uintptr_t begin, uintptr_t end)
{
    size_t n = 0;
    for (const auto &range : pinned_pages) {
        const uintptr_t first = std::max(begin, range.first), last = std::min(end, range.second);
        n += first < last ? last - first : 0;
    }
    return n;
}

/* As CUDA does, this refuses pages that are pinned already. */
cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned)
{
    const lock held(all);
    const uintptr_t begin = (uintptr_t)p, end = begin + bytes;
    const bool good = bytes && pinned_within(begin, end) == 0;
    if (good)
        pinned_pages[begin] = end;
    return check(good);
}

cudaError_t cudaHostUnregister(void *p)
{
    const lock held(all);
    return check(pinned_pages.erase((uintptr_t)p) == 1);
}

/* As CUDA does, copies refuse a source of which a part is pinned and another is not. */
static bool can_copy(const void *from, size_t bytes)
{
    const lock held(all);
    const size_t n = pinned_within((uintptr_t)from, (uintptr_t)from + bytes);
    return n == 0 || n == bytes;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned)
{
    *device = host;
    return cudaSuccess;
}

/* Does not wait for streams that do not block. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    if (!can_copy(from, bytes))
        return check(false);
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
    if (!can_copy(from, bytes))
        return check(false);
    emulated::enqueue(stream, [=] { memcpy(to, from, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
    emulated::enqueue(stream, [=] { memset(p, value, bytes); });
    return cudaSuccess;
}
