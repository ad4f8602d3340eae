#include "engine/cuda.cuh"

extern "C" {
#include "engine/parallel.h"
#include "tools/bench/data/scatter_add.h"
}

namespace {

constexpr uint32_t THREADS = 256, ITEMS = 8; /* postings of a thread */
constexpr uint32_t SCORE_BINS = 4096;        /* of 16 an octave, from 2^-127 on */
constexpr uint32_t CANDIDATES = 1u << 20, NO_LIST = UINT32_MAX;

struct device_list {
    const uint32_t *docids;
    const float *weights;
    uint32_t n;
    float w;
    uint32_t first_block;
};

struct tops {
    uint32_t least_bin, n_candidates;
};

__device__ __forceinline__ uint32_t bin_of(float x)
{
    return __float_as_uint(x) >> 19; /* x >= 0: the exponent and four bits more */
}

__global__ void __launch_bounds__(THREADS) scatter(const device_list *lists, uint32_t n_lists, float *scores)
{
    uint32_t lo = 0, hi = n_lists;
    while (hi - lo > 1) {
        const uint32_t mid = (lo + hi) / 2;
        if (lists[mid].first_block <= blockIdx.x)
            lo = mid;
        else
            hi = mid;
    }
    const device_list l = lists[lo];
    const uint32_t first = (blockIdx.x - l.first_block) * THREADS * ITEMS + threadIdx.x;
#pragma unroll
    for (uint32_t i = 0; i < ITEMS; ++i) {
        const uint32_t p = first + i * THREADS;
        if (p < l.n)
            atomicAdd(scores + __ldg(l.docids + p), l.w * __ldg(l.weights + p));
    }
}

__global__ void __launch_bounds__(1024) count_scores(const float *scores, uint32_t n_docs, uint32_t *histogram)
{
    __shared__ uint32_t bins[SCORE_BINS];
    for (uint32_t i = threadIdx.x; i < SCORE_BINS; i += blockDim.x)
        bins[i] = 0;
    __syncthreads();
    for (uint32_t d = blockIdx.x * blockDim.x + threadIdx.x; d < n_docs; d += gridDim.x * blockDim.x) {
        const float x = scores[d];
        if (x > 0)
            atomicAdd(&bins[bin_of(x)], 1);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < SCORE_BINS; i += blockDim.x) {
        if (bins[i])
            atomicAdd(histogram + i, bins[i]);
    }
}

__global__ void find_bin(uint32_t *histogram, uint32_t k, tops *t, float *best)
{
    uint32_t above = 0, bin = SCORE_BINS - 1;
    for (; bin > 0; --bin) {
        above += histogram[bin];
        if (above >= k)
            break;
    }
    *t = {bin, 0};
    *best = __uint_as_float(bin << 19);
}

__global__ void __launch_bounds__(1024)
    collect_and_clear(float *scores, uint32_t n_docs, uint32_t *histogram, tops *t, uint2 *candidates)
{
    const uint32_t least = t->least_bin, thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (uint32_t d = thread; d < n_docs; d += gridDim.x * blockDim.x) {
        const float x = scores[d];
        if (x > 0) {
            scores[d] = 0;
            if (bin_of(x) >= least) {
                const uint32_t at = atomicAdd(&t->n_candidates, 1);
                if (at < CANDIDATES)
                    candidates[at] = make_uint2(__float_as_uint(x), d);
            }
        }
    }
    if (thread < SCORE_BINS)
        histogram[thread] = 0;
}

} // namespace

struct gx_scatter_add {
    const gx_index *ix;
    uint32_t *number; /* [n_terms] of the list among those on the device, or NO_LIST */
    uint32_t *terms;  /* [n_lists] */
    uint64_t *begins; /* [n_lists + 1] */
    uint32_t n_lists;
    uint32_t *docids; /* host, until they are copied */
    float *weights;
    uint32_t *d_docids;
    float *d_weights, *d_scores, *d_best;
    uint32_t *d_histogram;
    tops *d_tops;
    uint2 *d_candidates;
    device_list *d_lists, *lists;
    uint32_t max_lists;
};

void gx_scatter_add_close(gx_scatter_add *s)
{
    if (!s)
        return;
    void *const device[] = {s->d_docids,    s->d_weights, s->d_scores,     s->d_best,
                            s->d_histogram, s->d_tops,    s->d_candidates, s->d_lists};
    for (void *p : device)
        (void)cudaFree(p);
    (void)cudaFreeHost(s->lists);
    free(s->number);
    free(s->terms);
    free(s->begins);
    free(s->docids);
    free(s->weights);
    free(s);
}

static void decode_list(void *user, uint32_t i)
{
    const gx_scatter_add *s = (const gx_scatter_add *)user;
    const gx_list l = gx_index_list(s->ix, s->terms[i]);
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
    uint64_t at = s->begins[i];
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_docids(&l, j, docids);
        (void)gx_list_decode_tfs(&l, j, tfs);
        for (uint32_t p = 0; p < n; ++p, ++at) {
            s->docids[at] = docids[p];
            s->weights[at] = (float)tfs[p];
        }
    }
}

#define TRY_CUDA(what, call)                                                                                           \
    do {                                                                                                               \
        const gx_status st_ = gx_cuda_status((call), (what), err);                                                     \
        if (st_ != GX_OK)                                                                                              \
            return st_;                                                                                                \
    } while (0)

static gx_status open_lists(gx_scatter_add *s, const gx_scatter_query *queries, uint32_t n, uint32_t threads,
                            gx_error *err)
{
    const uint32_t n_terms = s->ix->n_terms;
    s->number = (uint32_t *)malloc((n_terms + 1ull) * sizeof *s->number);
    s->terms = (uint32_t *)malloc((n_terms + 1ull) * sizeof *s->terms);
    s->begins = (uint64_t *)malloc((n_terms + 1ull) * sizeof *s->begins);
    if (!s->number || !s->terms || !s->begins)
        return gx_fail(err, GX_ENOMEM, "no memory for %u lists", n_terms);
    memset(s->number, 0xff, n_terms * sizeof *s->number);
    uint64_t total = 0;
    for (uint32_t q = 0; q < n; ++q) {
        s->max_lists = queries[q].n > s->max_lists ? queries[q].n : s->max_lists;
        for (uint32_t i = 0; i < queries[q].n; ++i) {
            const uint32_t t = queries[q].lists[i];
            if (s->number[t] != NO_LIST)
                continue;
            s->number[t] = s->n_lists;
            s->terms[s->n_lists] = t;
            s->begins[s->n_lists++] = total;
            total += s->ix->lists[t].df;
        }
    }
    s->begins[s->n_lists] = total;
    s->docids = (uint32_t *)malloc((total + 1) * sizeof *s->docids);
    s->weights = (float *)malloc((total + 1) * sizeof *s->weights);
    if (!s->docids || !s->weights)
        return gx_fail(err, GX_ENOMEM, "no memory for %llu postings", (unsigned long long)total);
    gx_parallel_for(threads, s->n_lists, decode_list, s);
    TRY_CUDA("memory for lists", cudaMalloc((void **)&s->d_docids, total * 4 + 4));
    TRY_CUDA("memory for lists", cudaMalloc((void **)&s->d_weights, total * 4 + 4));
    TRY_CUDA("copying lists", cudaMemcpy(s->d_docids, s->docids, total * 4, cudaMemcpyHostToDevice));
    TRY_CUDA("copying lists", cudaMemcpy(s->d_weights, s->weights, total * 4, cudaMemcpyHostToDevice));
    free(s->docids);
    free(s->weights);
    s->docids = NULL;
    s->weights = NULL;
    const size_t n_docs = s->ix->n_docs;
    TRY_CUDA("memory for scores", cudaMalloc((void **)&s->d_scores, n_docs * 4 + 4));
    TRY_CUDA("clearing memory", cudaMemset(s->d_scores, 0, n_docs * 4));
    TRY_CUDA("memory for a histogram", cudaMalloc((void **)&s->d_histogram, SCORE_BINS * 4));
    TRY_CUDA("clearing memory", cudaMemset(s->d_histogram, 0, SCORE_BINS * 4));
    TRY_CUDA("memory for a threshold", cudaMalloc((void **)&s->d_tops, sizeof *s->d_tops));
    TRY_CUDA("memory for candidates", cudaMalloc((void **)&s->d_candidates, CANDIDATES * sizeof *s->d_candidates));
    TRY_CUDA("memory for scores", cudaMalloc((void **)&s->d_best, n * 4ull + 4));
    TRY_CUDA("memory for queries", cudaMalloc((void **)&s->d_lists, (size_t)n * s->max_lists * sizeof *s->d_lists + 8));
    TRY_CUDA("memory for queries", cudaMallocHost((void **)&s->lists, (size_t)n * s->max_lists * sizeof *s->lists + 8));
    return GX_OK;
}

gx_status gx_scatter_add_open(gx_scatter_add **out, const gx_index *ix, const gx_scatter_query *queries, uint32_t n,
                              uint32_t threads, gx_error *err)
{
    gx_scatter_add *s = (gx_scatter_add *)calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return gx_fail(err, GX_ENOMEM, "no memory for lists");
    s->ix = ix;
    const gx_status st = open_lists(s, queries, n, threads, err);
    if (st != GX_OK)
        gx_scatter_add_close(s);
    else
        *out = s;
    return st;
}

uint64_t gx_scatter_add_bytes(const gx_scatter_add *s)
{
    return 8 * s->begins[s->n_lists];
}

gx_status gx_scatter_add_run(gx_scatter_add *s, const gx_scatter_query *queries, uint32_t n, uint32_t k, float *best,
                             double *seconds, gx_error *err)
{
    const uint32_t n_docs = s->ix->n_docs, grid = 264;
    cudaEvent_t begin, end;
    float ms = 0;
    for (uint32_t q = 0; q < n; ++q) {
        for (uint32_t i = 0, at = 0; i < queries[q].n; ++i) {
            const uint32_t number = s->number[queries[q].lists[i]];
            const uint64_t from = s->begins[number];
            const uint32_t df = (uint32_t)(s->begins[number + 1] - from);
            s->lists[(size_t)q * s->max_lists + i] = {s->d_docids + from, s->d_weights + from, df,
                                                      queries[q].weights[i], at};
            at += (df - 1) / (THREADS * ITEMS) + 1;
        }
    }
    TRY_CUDA("copying queries",
             cudaMemcpy(s->d_lists, s->lists, (size_t)n * s->max_lists * sizeof *s->lists, cudaMemcpyHostToDevice));
    TRY_CUDA("making an event", cudaEventCreate(&begin));
    TRY_CUDA("making an event", cudaEventCreate(&end));
    TRY_CUDA("timing", cudaEventRecord(begin, 0));
    for (uint32_t q = 0; q < n; ++q) {
        const device_list *last = &s->lists[(size_t)q * s->max_lists + queries[q].n - 1];
        const uint32_t blocks = last->first_block + (last->n - 1) / (THREADS * ITEMS) + 1;
        scatter<<<blocks, THREADS, 0, 0>>>(s->d_lists + (size_t)q * s->max_lists, queries[q].n, s->d_scores);
        count_scores<<<grid, 1024, 0, 0>>>(s->d_scores, n_docs, s->d_histogram);
        find_bin<<<1, 1, 0, 0>>>(s->d_histogram, k, s->d_tops, s->d_best + q);
        collect_and_clear<<<grid, 1024, 0, 0>>>(s->d_scores, n_docs, s->d_histogram, s->d_tops, s->d_candidates);
    }
    TRY_CUDA("searching", cudaGetLastError());
    TRY_CUDA("timing", cudaEventRecord(end, 0));
    TRY_CUDA("searching", cudaEventSynchronize(end));
    TRY_CUDA("timing", cudaEventElapsedTime(&ms, begin, end));
    TRY_CUDA("copying scores", cudaMemcpy(best, s->d_best, n * 4ull, cudaMemcpyDeviceToHost));
    (void)cudaEventDestroy(begin);
    (void)cudaEventDestroy(end);
    *seconds = 1e-3 * ms;
    return GX_OK;
}

gx_status gx_device_memory(uint64_t *have, uint64_t *total, gx_error *err)
{
    size_t a = 0, b = 0;
    TRY_CUDA("asking for its memory", cudaMemGetInfo(&a, &b));
    *have = a;
    *total = b;
    return GX_OK;
}
