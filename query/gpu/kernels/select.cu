/* Selects the best k of a query's candidates where the search kernel does not: by radix select on
 * the 64-bit keys, eight bits a pass, and a sort of the k in shared memory. Keys are distinct, so
 * exactly k keys are at least the k-th best. */
#include "query/gpu/kernels/kernels.cuh"

#include <cub/device/device_radix_sort.cuh>

namespace gx {

constexpr uint32_t THREADS = 512;

/* Sorts m = 2^x keys in shared memory in descending order (bitonic). */
__device__ void sort_shared(unsigned long long *keys, uint32_t m)
{
    for (uint32_t width = 2; width <= m; width *= 2) {
        for (uint32_t step = width / 2; step; step /= 2) {
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < m / 2; i += THREADS) {
                const uint32_t a = (i / step) * 2 * step + i % step, b = a + step;
                const unsigned long long x = keys[a], y = keys[b];
                if ((a & width ? x > y : x < y)) {
                    keys[a] = y;
                    keys[b] = x;
                }
            }
        }
    }
    __syncthreads();
}

/* Returns the k-th greatest of keys[n], k <= n. */
__device__ unsigned long long kth_key(const unsigned long long *keys, uint32_t n, uint32_t k, uint32_t *histogram,
                                      uint32_t *found)
{
    unsigned long long prefix = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        for (uint32_t i = threadIdx.x; i < 256; i += THREADS)
            histogram[i] = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const unsigned long long key = __ldcg(keys + i);
            if (shift == 56 || key >> (shift + 8) == prefix)
                atomicAdd(&histogram[key >> shift & 255], 1);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            uint32_t above = 0;
            int digit = 255;
            while (digit > 0 && above + histogram[digit] < k)
                above += histogram[digit--];
            found[0] = (uint32_t)digit;
            found[1] = above;
        }
        __syncthreads();
        prefix = prefix << 8 | found[0];
        k -= found[1];
        __syncthreads();
    }
    return prefix;
}

/* Writes the best k of n keys in shared memory to the answer, followed by zeros. */
__device__ void sort_and_write(unsigned long long *keys, uint32_t n, uint32_t k, uint32_t room, unsigned long long *to)
{
    uint32_t m = 1;
    while (m < n)
        m *= 2;
    for (uint32_t i = n + threadIdx.x; i < m; i += THREADS)
        keys[i] = 0;
    sort_shared(keys, m);
    for (uint32_t i = threadIdx.x; i < room; i += THREADS)
        to[i] = i < k ? keys[i] : 0;
}

static __global__ void __launch_bounds__(THREADS) select(const __grid_constant__ gpu_batch R, uint32_t first)
{
    __shared__ unsigned long long sorted[SORTED_K];
    __shared__ uint32_t histogram[256], found[2], kept;
    const uint32_t q = first + blockIdx.x;
    const gpu_query Q = R.queries[q];
    if (Q.k <= SMALL_K && !(Q.flags & (QUERY_EXHAUSTIVE | QUERY_TILES)))
        return;
    gpu_query_state *st = R.states + q;
    const uint32_t n = min(__ldcg(&st->count), Q.capacity), k = min(Q.k, n);
    const unsigned long long *from = R.candidates + Q.candidates;
    unsigned long long *to = R.answers + Q.answer;
    const bool sort = Q.k <= SORTED_K;
    /* Candidates below the final threshold cannot be among the best. Often so few reach it that
     * they can be sorted at once. */
    const unsigned long long threshold = (unsigned long long)__ldcg(&st->threshold) << 32;
    if (threadIdx.x == 0) {
        kept = 0;
        R.results[q] = {__ldcg(&st->threshold), __ldcg(&st->count), 0, k};
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; sort && i < n; i += THREADS) {
        const unsigned long long key = __ldcg(from + i);
        if (key >= threshold) {
            const uint32_t at = atomicAdd(&kept, 1);
            if (at < SORTED_K)
                sorted[at] = key;
        }
    }
    __syncthreads();
    const uint32_t reached = kept;
    if (sort && reached >= k && reached <= SORTED_K) {
        sort_and_write(sorted, reached, k, Q.k, to);
        return;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        kept = 0;
    const unsigned long long least = n > k ? kth_key(from, n, k, histogram, found) : 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
        const unsigned long long key = __ldcg(from + i);
        if (key >= least) {
            const uint32_t at = atomicAdd(&kept, 1);
            if (at < k) {
                if (sort)
                    sorted[at] = key;
                else
                    to[at] = key;
            }
        }
    }
    __syncthreads();
    if (sort) {
        sort_and_write(sorted, k, k, Q.k, to);
    } else {
        for (uint32_t i = k + threadIdx.x; i < Q.k; i += THREADS)
            to[i] = 0;
    }
}

void select_best(const gpu_batch &R, uint32_t first, uint32_t n, cudaStream_t stream)
{
    if (n)
        select<<<n, THREADS, 0, stream>>>(R, first);
}

size_t sort_scratch_bytes(uint32_t n)
{
    size_t bytes = 0;
    const unsigned long long *in = NULL;
    unsigned long long *out = NULL;
    if (cub::DeviceRadixSort::SortKeysDescending(NULL, bytes, in, out, n) != cudaSuccess)
        return 0;
    return bytes;
}

cudaError_t sort_keys(void *scratch, size_t scratch_bytes, const unsigned long long *keys, unsigned long long *sorted,
                      uint32_t n, cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortKeysDescending(scratch, scratch_bytes, keys, sorted, n, 0, 64, stream);
}

} // namespace gx
