#include "engine/cuda.cuh"
#include "engine/parallel.h"

#include <atomic>
#include <chrono>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
        return gx_fail(err, GX_ENOGPU,
                       "there is no NVIDIA driver on this machine (libcuda.so.1 does not load); "
                       "install the driver, or use the CPU engine");
    if (e == cudaErrorInsufficientDriver)
        return gx_fail(err, GX_ENOGPU,
                       "the NVIDIA driver serves CUDA %d.%d and this gpuidx needs %d.%d; update the "
                       "driver, or use the CPU engine",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (e == cudaErrorNoDevice || e == cudaSuccess)
        return gx_fail(err, GX_ENOGPU,
                       "the NVIDIA driver is there and shows no GPU (is CUDA_VISIBLE_DEVICES "
                       "empty?); use the CPU engine");
    return gx_fail(err, GX_ENOGPU, "no GPU can be used: %s (%s); use the CPU engine", cudaGetErrorString(e),
                   cudaGetErrorName(e));
}

/* An empty kernel. It is compiled for the same GPUs as all kernels, so it tells whether this
 * program holds code for a GPU. */
static __global__ void probe() {}

static void query_device(int number, gx_device *d)
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
    if (p.major < 8) {
        snprintf(d->why, sizeof d->why,
                 "its compute capability is %d.%d, and gpuidx needs 8.0 (Ampere) or newer: its kernels copy to shared "
                 "memory in the background",
                 p.major, p.minor);
        return;
    }
    if ((e = cudaSetDevice(number)) != cudaSuccess || (e = cudaMemGetInfo(&have, &total)) != cudaSuccess) {
        snprintf(d->why, sizeof d->why, "it cannot be opened: %s (another process may hold it alone)",
                 cudaGetErrorString(e));
    } else if ((e = cudaFuncGetAttributes(&a, probe)) != cudaSuccess) {
        snprintf(d->why, sizeof d->why,
                 "its compute capability is %d.%d and this gpuidx holds no code for it (%s); "
                 "build with -Dgpu_arch=%d%d",
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
        query_device(i, &all[i]);
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
    query_device(number, &d);
    if (!d.usable)
        return gx_fail(err, GX_ENOGPU, "GPU %d (%s) cannot be used: %s", number, d.name, d.why);
    const cudaError_t e = cudaSetDevice(number);
    if (e != cudaSuccess)
        return gx_fail(err, GX_ENOGPU, "GPU %d (%s) cannot be used: %s", number, d.name, cudaGetErrorString(e));
    return GX_OK;
}

/* ---- host to device ---- */

/* The host's memory is cut into pieces. Several filler threads copy the pieces into the buffers of
 * a ring, each thread the next piece that none has taken. The caller's thread sends the buffers to
 * the GPU in order on one stream, because copies on several streams, and copies of smaller pieces,
 * leave the link idle between them. Pinning fresh memory takes long (0.5 ms per MB where it was
 * measured). Pinning huge pages that are already present takes little, so the buffers are huge
 * pages, and the caller's thread pins them when the first pieces lie in them. */
constexpr size_t PIECE_BYTES = 2u << 20; /* a huge page */
constexpr uint32_t MAX_FILLERS = 12, MORE_BUFFERS = 4, IN_FLIGHT = 2;
constexpr uint32_t MAX_BUFFERS = MAX_FILLERS + MORE_BUFFERS;

struct upload {
    const char *host;
    size_t bytes, n_pieces;
    char *buffers; /* [n_buffers] pieces */
    uint32_t n_buffers;
    std::atomic<size_t> next, n_sent;          /* the next piece to fill; the pieces whose buffer is free again */
    std::atomic<size_t> n_filled[MAX_BUFFERS]; /* for each buffer: the number of the last piece in it, plus 1 */
    std::atomic<bool> stop;
};

static size_t piece_bytes(const upload *u, size_t piece)
{
    return piece + 1 < u->n_pieces ? PIECE_BYTES : u->bytes - piece * PIECE_BYTES;
}

static void fill_buffers(void *arg, uint32_t)
{
    upload *u = (upload *)arg;
    for (size_t piece; (piece = u->next.fetch_add(1)) < u->n_pieces;) {
        const size_t at = piece % u->n_buffers;
        while (piece >= u->n_sent + u->n_buffers) {
            if (u->stop)
                return;
            sched_yield();
        }
        memcpy(u->buffers + at * PIECE_BYTES, u->host + piece * PIECE_BYTES, piece_bytes(u, piece));
        u->n_filled[at] = piece + 1;
    }
}

static void wait_for_piece(const upload *u, size_t piece)
{
    while (u->n_filled[piece % u->n_buffers] != piece + 1)
        sched_yield();
}

/* Send all pieces in order, each as soon as it is filled. */
static cudaError_t send_pieces(upload *u, char *device, cudaStream_t stream, const cudaEvent_t *sent)
{
    cudaError_t e = cudaSuccess;
    for (size_t piece = 0; piece < u->n_pieces && e == cudaSuccess; ++piece) {
        const size_t at = piece % u->n_buffers;
        wait_for_piece(u, piece);
        e = cudaMemcpyAsync(device + piece * PIECE_BYTES, u->buffers + at * PIECE_BYTES, piece_bytes(u, piece),
                            cudaMemcpyHostToDevice, stream);
        if (e == cudaSuccess)
            e = cudaEventRecord(sent[at], stream);
        if (e == cudaSuccess && piece + 1 >= IN_FLIGHT) {
            e = cudaEventSynchronize(sent[(piece + 1 - IN_FLIGHT) % u->n_buffers]);
            u->n_sent = piece + 2 - IN_FLIGHT;
        }
    }
    return e;
}

/* While filler threads copy: make the stream and the events, pin the buffers, and send all
 * pieces. */
static cudaError_t pin_and_send(upload *u, char *device)
{
    cudaEvent_t sent[MAX_BUFFERS] = {};
    cudaStream_t stream = NULL;
    cudaError_t e = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (uint32_t i = 0; i < u->n_buffers && e == cudaSuccess; ++i)
        e = cudaEventCreateWithFlags(&sent[i], cudaEventDisableTiming);
    for (uint32_t i = 0; i < u->n_buffers && i < u->n_pieces; ++i)
        wait_for_piece(u, i);
    const bool pinned =
        cudaHostRegister(u->buffers, u->n_buffers * PIECE_BYTES, cudaHostRegisterDefault) == cudaSuccess;
    if (!pinned)
        (void)cudaGetLastError(); /* copies from buffers that are not pinned are slower, but right */
    if (e == cudaSuccess)
        e = send_pieces(u, device, stream, sent);
    if (stream) {
        const cudaError_t end = cudaStreamSynchronize(stream);
        e = e == cudaSuccess ? end : e;
        (void)cudaStreamDestroy(stream);
    }
    for (uint32_t i = 0; i < u->n_buffers && sent[i]; ++i)
        (void)cudaEventDestroy(sent[i]);
    if (pinned)
        (void)cudaHostUnregister(u->buffers);
    return e;
}

/* Map n bytes, aligned to PIECE_BYTES, as huge pages if the system gives them. The caller unmaps
 * n + PIECE_BYTES bytes from *mapping on. NULL: no memory. */
static char *map_huge(size_t n, void **mapping)
{
    *mapping = mmap(NULL, n + PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*mapping == MAP_FAILED)
        return NULL;
    char *const aligned = (char *)(((uintptr_t)*mapping + PIECE_BYTES - 1) & ~(uintptr_t)(PIECE_BYTES - 1));
    (void)madvise(aligned, n, MADV_HUGEPAGE);
    return aligned;
}

/* Copy without threads, through memory of our own: the host's memory may be pinned in part, by an engine that reads
 * lists from it (payload_pin), and the runtime refuses to copy from such memory. */
static cudaError_t copy_in_turn(const upload *u, char *device)
{
    if (u->n_pieces == 0)
        return cudaSuccess;
    char *const buffer = (char *)malloc(u->bytes < PIECE_BYTES ? u->bytes : PIECE_BYTES);
    cudaError_t e = buffer ? cudaSuccess : cudaErrorMemoryAllocation;
    for (size_t piece = 0; piece < u->n_pieces && e == cudaSuccess; ++piece) {
        memcpy(buffer, u->host + piece * PIECE_BYTES, piece_bytes(u, piece));
        e = cudaMemcpy(device + piece * PIECE_BYTES, buffer, piece_bytes(u, piece), cudaMemcpyHostToDevice);
    }
    free(buffer);
    return e;
}

gx_status gx_device_upload(int number, void *device, const void *host, size_t bytes, gx_error *err)
{
    upload u = {};
    void *mapping = NULL;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint32_t want = cores > 16 ? MAX_FILLERS : cores > 1 ? (uint32_t)cores * 3 / 4 : 1;
    u.host = (const char *)host;
    u.bytes = bytes;
    u.n_pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    u.n_buffers = want + MORE_BUFFERS;
    cudaError_t e = cudaSetDevice(number);
    if (e == cudaSuccess && u.n_pieces > MORE_BUFFERS) /* for fewer pieces a plain copy is as fast */
        u.buffers = map_huge(u.n_buffers * PIECE_BYTES, &mapping);
    gx_threads *fillers = u.buffers ? gx_threads_start(want, 0, fill_buffers, &u) : NULL;
    if (e == cudaSuccess)
        e = fillers ? pin_and_send(&u, (char *)device) : copy_in_turn(&u, (char *)device);
    if (e == cudaSuccess && !fillers) /* a copy from pageable memory may return before it has arrived */
        e = cudaStreamSynchronize(0);
    u.stop = true;
    gx_threads_join(fillers);
    if (u.buffers)
        (void)munmap(mapping, (u.n_buffers + 1) * PIECE_BYTES);
    return gx_cuda_status(e, "copying the index to it", err);
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
