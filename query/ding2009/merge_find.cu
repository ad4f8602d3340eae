#include "engine/cuda.cuh"
#include "query/ding2009/merge_find.cuh"

#include <cub/device/device_select.cuh>
#include <stdlib.h>

#include "engine/device.h"

namespace gx {

constexpr uint32_t THREADS = 256;

static __global__ void __launch_bounds__(THREADS) find(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b,
                                                       uint32_t levels, uint32_t level, uint32_t *positions)
{
    find_level(a, n_a, b, n_b, levels, level, positions);
}

static __global__ void __launch_bounds__(THREADS)
    flag(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, const uint32_t *positions, uint8_t *flags)
{
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n_a; i += gridDim.x * THREADS)
        flags[i] = positions[i] < n_b && b[positions[i]] == a[i];
}

/* Two lists on the device, and the arrays of their intersection. */
struct pair_space {
    uint32_t *a, *b, *positions, *out, *n_out;
    uint8_t *flags;
    void *scratch;
    size_t scratch_bytes;
    cudaEvent_t begin, end;
    float *times;
};

static void close_space(pair_space *s)
{
    void *const memory[] = {s->a, s->b, s->positions, s->out, s->n_out, s->flags, s->scratch};
    for (void *p : memory)
        (void)cudaFree(p);
    if (s->begin)
        (void)cudaEventDestroy(s->begin);
    if (s->end)
        (void)cudaEventDestroy(s->end);
    free(s->times);
}

static uint32_t grid(uint64_t n)
{
    const uint64_t blocks = (n + THREADS - 1) / THREADS;
    return (uint32_t)(blocks < 1 ? 1 : blocks < 1u << 20 ? blocks : 1u << 20);
}

static cudaError_t intersect(pair_space *s, uint32_t n_a, uint32_t n_b, uint32_t levels)
{
    for (uint32_t level = 1; level <= levels + 1; ++level)
        find<<<grid(level_bound(n_a, levels, level)), THREADS>>>(s->a, n_a, s->b, n_b, levels, level, s->positions);
    flag<<<grid(n_a), THREADS>>>(s->a, n_a, s->b, n_b, s->positions, s->flags);
    return cub::DeviceSelect::Flagged(s->scratch, s->scratch_bytes, s->a, s->flags, s->out, s->n_out, n_a);
}

#define TRY(what, call)                                                                                                \
    do {                                                                                                               \
        const gx_status st_ = gx_cuda_status((call), (what), err);                                                     \
        if (st_ != GX_OK)                                                                                              \
            return st_;                                                                                                \
    } while (0)

static gx_status open_space(pair_space *s, const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b,
                            uint32_t repeat, gx_error *err)
{
    s->times = (float *)malloc((repeat + 1ull) * sizeof *s->times);
    if (!s->times)
        return gx_fail(err, GX_ENOMEM, "no memory for %u times", repeat);
    TRY("sizing an intersection",
        cub::DeviceSelect::Flagged(NULL, s->scratch_bytes, s->a, s->flags, s->out, s->n_out, n_a));
    TRY("memory for lists", cudaMalloc((void **)&s->a, n_a * 4ull + 4));
    TRY("memory for lists", cudaMalloc((void **)&s->b, n_b * 4ull + 4));
    TRY("memory for lists", cudaMalloc((void **)&s->positions, n_a * 4ull + 4));
    TRY("memory for lists", cudaMalloc((void **)&s->out, n_a * 4ull + 4));
    TRY("memory for lists", cudaMalloc((void **)&s->n_out, 4));
    TRY("memory for lists", cudaMalloc((void **)&s->flags, n_a + 1ull));
    TRY("memory for lists", cudaMalloc(&s->scratch, s->scratch_bytes + 1));
    TRY("making an event", cudaEventCreate(&s->begin));
    TRY("making an event", cudaEventCreate(&s->end));
    TRY("copying lists", cudaMemcpy(s->a, a, n_a * 4ull, cudaMemcpyHostToDevice));
    TRY("copying lists", cudaMemcpy(s->b, b, n_b * 4ull, cudaMemcpyHostToDevice));
    TRY("clearing memory", cudaMemset(s->positions, 0xee, n_a * 4ull));
    return GX_OK;
}

static int by_time(const void *x, const void *y)
{
    const float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

static gx_status run(pair_space *s, const gx_list_pair *lists, uint32_t repeat, uint32_t *out, uint32_t *n_out,
                     double *seconds, gx_error *err)
{
    const uint32_t n_a = lists->n_a, n_b = lists->n_b, levels = lists->levels;
    TRY("intersecting", intersect(s, n_a, n_b, levels)); /* a warm-up, whose result is returned */
    TRY("intersecting", cudaMemcpy(n_out, s->n_out, 4, cudaMemcpyDeviceToHost));
    TRY("copying results", cudaMemcpy(out, s->out, *n_out * 4ull, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < repeat; ++i) {
        TRY("timing", cudaEventRecord(s->begin));
        TRY("intersecting", intersect(s, n_a, n_b, levels));
        TRY("timing", cudaEventRecord(s->end));
        TRY("intersecting", cudaEventSynchronize(s->end));
        TRY("timing", cudaEventElapsedTime(&s->times[i], s->begin, s->end));
    }
    qsort(s->times, repeat, sizeof *s->times, by_time);
    *seconds = repeat ? 1e-3 * s->times[repeat / 2] : 0;
    return GX_OK;
}

} // namespace gx

extern "C" gx_status gx_intersect_cuda(int device, const gx_list_pair *lists, uint32_t repeat, uint32_t *out,
                                       uint32_t *n_out, double *seconds, gx_error *err)
{
    gx::pair_space s = {};
    gx_status st = gx_device_use(device, err);
    if (st == GX_OK)
        st = gx::open_space(&s, lists->a, lists->n_a, lists->b, lists->n_b, repeat, err);
    if (st == GX_OK)
        st = gx::run(&s, lists, repeat, out, n_out, seconds, err);
    gx::close_space(&s);
    (void)cudaGetLastError();
    return st;
}
