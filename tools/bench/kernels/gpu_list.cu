#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "engine/device.h"
#include "engine/status.h"
#include "tools/bench/kernels/gpu_list.h"

struct gx_gpu_list {
    gx_packed packed; /* device arrays */
    uint64_t n_words;
    uint32_t *out, *sums;
    bool paper; /* by the paper's kernels */
};

namespace {

gx_status failed(cudaError_t e, const char *what, gx_error *err)
{
    const bool none = e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver;
    (void)cudaGetLastError();
    return none && gx_device_use(0, err) != GX_OK ? GX_ENOGPU
                                                  : gx_fail(err, GX_ECUDA, "%s: %s", what, cudaGetErrorString(e));
}

#define TRY(call, what)                                                                                                \
    do {                                                                                                               \
        const cudaError_t e_ = (call);                                                                                 \
        if (e_ != cudaSuccess)                                                                                         \
            return failed(e_, what, err);                                                                              \
    } while (0)

gx_status fill(gx_gpu_list *l, const gx_packed *list, gx_error *err)
{
    const uint64_t n_blocks = gx_packed_blocks(list);
    l->packed = *list;
    l->packed.words = l->packed.ends = l->packed.heads = NULL;
    l->packed.params = NULL;
    l->n_words = n_blocks ? list->ends[n_blocks - 1] : 0;
    TRY(cudaMalloc((void **)&l->packed.words, l->n_words * 4 + GX_READ_SLACK), "no GPU memory for a list");
    TRY(cudaMalloc((void **)&l->packed.ends, n_blocks * 4 + 4), "no GPU memory for a list");
    TRY(cudaMalloc(&l->out, std::max<uint64_t>(list->n, 1) * 4), "no GPU memory for what is decoded");
    TRY(cudaMalloc(&l->sums, GX_N_SUMS * 4), "no GPU memory for what is decoded");
    TRY(cudaMemset((void *)(l->packed.words + l->n_words), 0xa5, GX_READ_SLACK), "cannot fill GPU memory");
    TRY(cudaMemcpy((void *)l->packed.words, list->words, l->n_words * 4, cudaMemcpyHostToDevice),
        "cannot copy a list to the GPU");
    TRY(cudaMemcpy((void *)l->packed.ends, list->ends, n_blocks * 4, cudaMemcpyHostToDevice), "cannot copy a list to "
                                                                                              "the GPU");
    if (list->heads) {
        TRY(cudaMalloc((void **)&l->packed.heads, n_blocks * 4 + 4), "no GPU memory for a list");
        TRY(cudaMemcpy((void *)l->packed.heads, list->heads, n_blocks * 4, cudaMemcpyHostToDevice),
            "cannot copy a list to the GPU");
    }
    if (list->params) {
        TRY(cudaMalloc((void **)&l->packed.params, n_blocks + 4), "no GPU memory for a list");
        TRY(cudaMemcpy((void *)l->packed.params, list->params, n_blocks, cudaMemcpyHostToDevice),
            "cannot copy a list to the GPU");
    }
    return GX_OK;
}

/* The median time of `run`, which launches kernels; `before` is launched before each and not timed.
 * */
template <class BEFORE, class RUN>
gx_status median_time(uint32_t repeat, double *seconds, gx_error *err, BEFORE before, RUN run)
{
    std::vector<float> times;
    cudaEvent_t begin = NULL, end = NULL;
    const gx_status st = [&]() -> gx_status {
        TRY(cudaEventCreate(&begin), "cannot make an event");
        TRY(cudaEventCreate(&end), "cannot make an event");
        for (uint32_t i = 0; i < repeat + 2; ++i) { /* two to warm up */
            before();
            TRY(cudaEventRecord(begin), "cannot record an event");
            const gx_status launched = run();
            if (launched != GX_OK)
                return launched;
            TRY(cudaEventRecord(end), "cannot record an event");
            float ms = 0;
            TRY(cudaEventSynchronize(end), "the GPU failed");
            TRY(cudaEventElapsedTime(&ms, begin, end), "the GPU failed");
            if (i >= 2)
                times.push_back(ms);
        }
        return GX_OK;
    }();
    if (begin)
        cudaEventDestroy(begin);
    if (end)
        cudaEventDestroy(end);
    std::sort(times.begin(), times.end());
    if (st == GX_OK)
        *seconds = times[times.size() / 2] * 1e-3;
    return st;
}

/* Each thread of a tile of 1,024 x 16 bytes reads or writes its share: `reads` and `writes` such
 * rows a tile. */
__global__ void __launch_bounds__(256) stream_tiles(const uint4 *from, uint4 *to, uint32_t reads, uint32_t writes)
{
    const uint64_t tile = blockIdx.x;
    uint4 x = make_uint4(threadIdx.x, 1, 2, 3);
    for (uint32_t i = 0; i < reads; ++i) {
        const uint4 y = __ldcs(from + (tile * reads + i) * 256 + threadIdx.x);
        x.x ^= y.x, x.y ^= y.y, x.z ^= y.z, x.w ^= y.w;
    }
    for (uint32_t i = 0; i < writes; ++i)
        __stcs(to + (tile * writes + i) * 256 + threadIdx.x, x);
    if (writes == 0 && (x.x ^ x.y ^ x.z ^ x.w) == 0x5bd1e995)
        to[0] = x;
}

/* Read all, so that the L2 cache holds nothing else and nothing that is still to be written. */
__global__ void __launch_bounds__(256) flush_l2(const uint4 *p, size_t n)
{
    uint32_t x = 0;
    for (size_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        x |= p[i].x ^ p[i].w;
    if (x == 0x5bd1e995)
        ((uint32_t *)p)[0] = x;
}

/* Keep the GPU busy while the host launches what is to be timed, so that launching is not. */
__global__ void spin_for(uint64_t ns)
{
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - begin < ns);
}

} // namespace

gx_status gx_gpu_list_open(gx_gpu_list **out, const gx_packed *list, gx_error *err)
{
    *out = NULL;
    gx_gpu_list *const l = (gx_gpu_list *)calloc(1, sizeof *l);
    if (!l)
        return gx_fail(err, GX_ENOMEM, "no memory for a list");
    const gx_status st = fill(l, list, err);
    if (st != GX_OK) {
        gx_gpu_list_close(l);
        return st;
    }
    *out = l;
    return GX_OK;
}

void gx_gpu_list_close(gx_gpu_list *l)
{
    if (!l)
        return;
    cudaFree((void *)l->packed.words);
    cudaFree((void *)l->packed.ends);
    cudaFree((void *)l->packed.heads);
    cudaFree((void *)l->packed.params);
    cudaFree(l->out);
    cudaFree(l->sums);
    free(l);
}

void gx_gpu_list_use_cikm2019(gx_gpu_list *l)
{
    l->paper = true;
}

static gx_status launch_decode(gx_gpu_list *l, gx_form form, gx_error *err)
{
    return (l->paper ? gx_decode_list_cikm2019_cuda : gx_decode_list_cuda)(&l->packed, form, l->out, NULL, err);
}

gx_status gx_gpu_list_decode(gx_gpu_list *l, gx_form form, uint32_t *out, gx_error *err)
{
    TRY(cudaMemset(l->out, 0xee, l->packed.n * 4), "cannot fill GPU memory");
    const gx_status st = launch_decode(l, form, err);
    if (st != GX_OK)
        return st;
    TRY(cudaMemcpy(out, l->out, l->packed.n * 4, cudaMemcpyDeviceToHost), "the GPU failed while decoding");
    return GX_OK;
}

gx_status gx_gpu_list_sum(gx_gpu_list *l, gx_form form, uint32_t *sum, gx_error *err)
{
    std::vector<uint32_t> sums(GX_N_SUMS);
    TRY(cudaMemset(l->sums, 0, GX_N_SUMS * 4), "cannot fill GPU memory");
    const gx_status st = gx_sum_list_cuda(&l->packed, form, l->sums, NULL, err);
    if (st != GX_OK)
        return st;
    TRY(cudaMemcpy(sums.data(), l->sums, GX_N_SUMS * 4, cudaMemcpyDeviceToHost), "the GPU failed while decoding");
    *sum = 0;
    for (uint32_t x : sums)
        *sum += x;
    return GX_OK;
}

gx_status gx_gpu_list_at(gx_gpu_list *l, uint32_t *out, gx_error *err)
{
    TRY(cudaMemset(l->out, 0xee, l->packed.n * 4), "cannot fill GPU memory");
    const gx_status st = gx_at_list_cuda(&l->packed, l->out, NULL, err);
    if (st != GX_OK)
        return st;
    TRY(cudaMemcpy(out, l->out, l->packed.n * 4, cudaMemcpyDeviceToHost), "the GPU failed while decoding");
    return GX_OK;
}

gx_status gx_gpu_list_time(gx_gpu_list *l, gx_form form, bool fused, bool cold, uint32_t repeat, double *seconds,
                           gx_error *err)
{
    int device = 0, l2 = 0;
    void *flush = NULL; /* larger than the L2 cache */
    TRY(cudaGetDevice(&device), "no GPU can be used");
    TRY(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device), "no GPU can be used");
    const size_t flush_bytes = (size_t)l2 * 2;
    const gx_status st = [&]() -> gx_status {
        if (cold) {
            TRY(cudaMalloc(&flush, flush_bytes), "no GPU memory for flushing the cache");
            TRY(cudaMemset(flush, 0x5a, flush_bytes), "cannot fill GPU memory");
        }
        const auto before = [&] {
            if (cold)
                flush_l2<<<1024, 256>>>((const uint4 *)flush, flush_bytes / 16);
            else
                spin_for<<<1, 1>>>(30000);
        };
        return median_time(repeat, seconds, err, before, [&]() -> gx_status {
            return fused ? gx_sum_list_cuda(&l->packed, form, l->sums, NULL, err) : launch_decode(l, form, err);
        });
    }();
    cudaFree(flush);
    return st;
}

gx_status gx_gpu_memory_speed(uint64_t read_bytes, uint64_t write_bytes, uint32_t repeat, double *bytes_a_second,
                              gx_error *err)
{
    uint4 *from = NULL, *to = NULL;
    /* rows of 4 KiB in the ratio of the two, about eight a thread block */
    const uint64_t sum = read_bytes + write_bytes;
    uint32_t reads = (uint32_t)((8 * read_bytes + sum / 2) / sum), writes = 8 - reads;
    const uint32_t tiles = (uint32_t)(sum / (8 * 4096));
    const gx_status st = [&]() -> gx_status {
        TRY(cudaMalloc(&from, (uint64_t)tiles * reads * 4096 + 4096), "no GPU memory");
        TRY(cudaMalloc(&to, (uint64_t)tiles * writes * 4096 + 4096), "no GPU memory");
        TRY(cudaMemset(from, 0x31, (uint64_t)tiles * reads * 4096), "cannot fill GPU memory");
        double seconds = 0;
        const gx_status timed = median_time(
            repeat, &seconds, err, [] {},
            [&]() -> gx_status {
                stream_tiles<<<tiles, 256>>>(from, to, reads, writes);
                TRY(cudaGetLastError(), "the GPU refused to run");
                return GX_OK;
            });
        if (timed == GX_OK)
            *bytes_a_second = (double)tiles * 8 * 4096 / seconds;
        return timed;
    }();
    cudaFree(from);
    cudaFree(to);
    return st;
}

gx_status gx_gpu_name(char *text, size_t max, gx_error *err)
{
    cudaDeviceProp prop;
    int device = 0;
    TRY(cudaGetDevice(&device), "no GPU can be used");
    TRY(cudaGetDeviceProperties(&prop, device), "no GPU can be used");
    snprintf(text, max, "%s", prop.name);
    return GX_OK;
}

gx_status gx_gpu_pci(char *text, size_t max, gx_error *err)
{
    int device = 0;
    TRY(cudaGetDevice(&device), "no GPU can be used");
    TRY(cudaDeviceGetPCIBusId(text, (int)max, device), "no GPU can be used");
    return GX_OK;
}
