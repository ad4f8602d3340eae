#include "engine/cuda.cuh"

#include <atomic>
#include <chrono>
#include <new>
#include <pthread.h>
#include <unistd.h>

/* ---- which GPUs there are ---- */

static gx_status count_devices(int *n, gx_error *err)
{
    const cudaError_t e = cudaGetDeviceCount(n);
    if (e == cudaSuccess && *n > 0)
        return GX_OK;
    (void)cudaGetLastError();
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    if (e == cudaErrorInsufficientDriver && driver == 0)
        return gx_fail(err, GX_ENOGPU, "there is no NVIDIA driver on this machine (libcuda.so.1 does not load); install the "
                                       "driver, or use the CPU engine");
    if (e == cudaErrorInsufficientDriver)
        return gx_fail(err, GX_ENOGPU, "the NVIDIA driver serves CUDA %d.%d and this gpuidx needs %d.%d; update the driver, or "
                                       "use the CPU engine",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (e == cudaErrorNoDevice || e == cudaSuccess)
        return gx_fail(err, GX_ENOGPU, "the NVIDIA driver is there and shows no GPU (is CUDA_VISIBLE_DEVICES empty?); use the "
                                       "CPU engine");
    return gx_fail(err, GX_ENOGPU, "no GPU can be used: %s (%s); use the CPU engine", cudaGetErrorString(e), cudaGetErrorName(e));
}

/* Whether this program holds code for the device. Asked of an empty kernel, which is compiled for what all are. */
static __global__ void probe() {}

static void examine(int number, gx_device *d)
{
    cudaDeviceProp p;
    memset(d, 0, sizeof *d);
    d->number = number;
    cudaError_t e = cudaGetDeviceProperties(&p, number);
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        snprintf(d->name, sizeof d->name, "GPU %d", number);
        snprintf(d->why, sizeof d->why, "it does not answer: %s", cudaGetErrorString(e));
        return;
    }
    snprintf(d->name, sizeof d->name, "%s", p.name);
    d->memory = p.totalGlobalMem;
    d->major = p.major;
    d->minor = p.minor;
    d->multiprocessors = (uint32_t)p.multiProcessorCount;
    d->l2_bytes = (uint64_t)p.l2CacheSize;
    cudaFuncAttributes a;
    size_t have = 0, total = 0;
    if ((e = cudaSetDevice(number)) != cudaSuccess || (e = cudaMemGetInfo(&have, &total)) != cudaSuccess) {
        snprintf(d->why, sizeof d->why, "it cannot be opened: %s (another process may hold it alone)", cudaGetErrorString(e));
    } else if ((e = cudaFuncGetAttributes(&a, probe)) != cudaSuccess) {
        snprintf(d->why, sizeof d->why, "its compute capability is %d.%d and this gpuidx holds no code for it (%s); build with "
                                        "-Dgpu_arch=%d%d",
                 p.major, p.minor, cudaGetErrorString(e), p.major, p.minor);
    } else {
        d->usable = true;
    }
    (void)cudaGetLastError();
    d->free_memory = have;
}

gx_status gx_devices(gx_device **out, uint32_t *n, gx_error *err)
{
    int count = 0;
    *out = NULL;
    *n = 0;
    const gx_status st = count_devices(&count, err);
    if (st != GX_OK)
        return st;
    gx_device *all = (gx_device *)calloc((size_t)count, sizeof *all);
    if (!all)
        return gx_fail(err, GX_ENOMEM, "no memory for a list of %d GPUs", count);
    for (int i = 0; i < count; ++i)
        examine(i, &all[i]);
    *out = all;
    *n = (uint32_t)count;
    return GX_OK;
}

gx_status gx_device_use(int number, gx_error *err)
{
    int count = 0;
    const gx_status st = count_devices(&count, err);
    if (st != GX_OK)
        return st;
    if (number < 0 || number >= count)
        return gx_fail(err, GX_ENOGPU, "there is no GPU %d; this machine has %d, numbered from 0", number, count);
    gx_device d;
    examine(number, &d);
    if (!d.usable)
        return gx_fail(err, GX_ENOGPU, "GPU %d (%s) cannot be used: %s", number, d.name, d.why);
    const cudaError_t e = cudaSetDevice(number);
    if (e != cudaSuccess)
        return gx_fail(err, GX_ENOGPU, "GPU %d (%s) cannot be used: %s", number, d.name, cudaGetErrorString(e));
    return GX_OK;
}

/* ---- host to device ---- */

/* A thread fills one pinned buffer while the other is on its way; 8 threads read the page cache faster than PCIe 5 takes
 * it (one alone copies about 10 GB/s). Pinning takes long (0.6 ms a MB where it was measured), and so does starting a copy,
 * so pieces are neither large nor small, and all buffers are pinned at once. */
constexpr size_t PIECE = 1u << 20;
constexpr int MAX_FILLERS = 8;

struct upload {
    int number;
    char *device;
    const char *host;
    size_t bytes;
    char *pinned; /* two pieces a thread */
    std::atomic<size_t> next;
    std::atomic<int> fillers;
    std::atomic<int> error; /* the first cudaError_t */
};

static void *fill(void *arg)
{
    upload *u = (upload *)arg;
    char *const first = u->pinned + 2 * PIECE * u->fillers.fetch_add(1), *const pinned[2] = {first, first + PIECE};
    cudaEvent_t sent[2] = {NULL, NULL};
    cudaStream_t stream = NULL;
    cudaError_t e = cudaSetDevice(u->number);
    if (e == cudaSuccess)
        e = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int i = 0; i < 2 && e == cudaSuccess; ++i)
        e = cudaEventCreateWithFlags(&sent[i], cudaEventDisableTiming);
    for (int turn = 0; e == cudaSuccess && u->error == cudaSuccess; turn ^= 1) {
        const size_t at = u->next.fetch_add(PIECE);
        if (at >= u->bytes)
            break;
        const size_t n = u->bytes - at < PIECE ? u->bytes - at : PIECE;
        if ((e = cudaEventSynchronize(sent[turn])) != cudaSuccess)
            break;
        memcpy(pinned[turn], u->host + at, n);
        if ((e = cudaMemcpyAsync(u->device + at, pinned[turn], n, cudaMemcpyHostToDevice, stream)) == cudaSuccess)
            e = cudaEventRecord(sent[turn], stream);
    }
    if (stream) {
        const cudaError_t end = cudaStreamSynchronize(stream);
        e = e == cudaSuccess ? end : e;
        (void)cudaStreamDestroy(stream);
    }
    for (int i = 0; i < 2; ++i) {
        if (sent[i])
            (void)cudaEventDestroy(sent[i]);
    }
    if (e != cudaSuccess) {
        int none = cudaSuccess;
        u->error.compare_exchange_strong(none, (int)e);
    }
    return NULL;
}

gx_status gx_device_upload(int number, void *device, const void *host, size_t bytes, gx_error *err)
{
    upload u = {number, (char *)device, (const char *)host, bytes, NULL, {0}, {0}, {(int)cudaSuccess}};
    pthread_t threads[MAX_FILLERS];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t want = (bytes + 4 * PIECE - 1) / (4 * PIECE); /* a thread's two buffers should pay */
    want = want > MAX_FILLERS ? MAX_FILLERS : want;
    want = cores > 0 && want > (size_t)cores ? (size_t)cores : want;
    want = want ? want : 1;
    const cudaError_t e = cudaHostAlloc((void **)&u.pinned, 2 * PIECE * want, cudaHostAllocPortable);
    if (e != cudaSuccess)
        return gx_cuda_status(e, "pinning memory", err);
    size_t started = 0;
    while (started + 1 < want && pthread_create(&threads[started], NULL, fill, &u) == 0)
        ++started;
    fill(&u);
    for (size_t i = 0; i < started; ++i)
        pthread_join(threads[i], NULL);
    (void)cudaFreeHost(u.pinned);
    return gx_cuda_status((cudaError_t)(int)u.error, "copying the index to it", err);
}

gx_status gx_device_upload_time(int number, const void *host, size_t bytes, double *seconds, gx_error *err)
{
    void *device = NULL;
    gx_status st = gx_device_use(number, err);
    if (st != GX_OK)
        return st;
    if ((st = gx_cuda_status(cudaMalloc(&device, bytes + 1), "memory for a copy", err)) != GX_OK)
        return st;
    const auto begin = std::chrono::steady_clock::now();
    st = gx_device_upload(number, device, host, bytes, err);
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    (void)cudaFree(device);
    return st;
}
