/* bitmap_stages.cuh: range queries over WAH columns as Tran, Schaffner, Sawin, Myre and Chiu have
 * them ("Increasing the Efficiency of GPU Bitmap Index Query Processing"), after Andrzejewski and
 * Wrembel (2010) and Nelson et al. (BDCAT 2019): each column is decompressed in five stages, then
 * the columns are reduced. Our kernel, tools/bench/bitmaps/wah.cuh, is compared with these.
 *
 *   stage 1   DecompSizes[C]      the length of each atom
 *   stage 2   StartingPoints[C]   their exclusive scan
 *   stage 3   EndPoints[D]        zeros, and a 1 at the last word of each atom but the last
 *   stage 4   WordIndex[D]        their exclusive scan: the atom of each word
 *   stage 5   DecompData[D]       the words
 *
 * All stages work on one column, or on several neighbours at once, as if they were one column of
 * all their atoms and words: since each column has D words, the scan over the atoms of all gives
 * every atom its place in the array of all words. `base` is the place of the first column's first
 * word, or of its first atom, in stored metadata, which are those of more columns.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_STAGES_CUH
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_STAGES_CUH

#include <cub/device/device_scan.cuh>
#include <stdint.h>

namespace gx {

constexpr int STAGE_THREADS = 256;

inline uint32_t stage_blocks(uint64_t n)
{
    return (uint32_t)((n + STAGE_THREADS - 1) / STAGE_THREADS);
}

/* ---- the five stages ---- */

/* Stage 1: a thread an atom. */
static __global__ void stage1_sizes(const uint64_t *atoms, uint64_t n_atoms, uint64_t *sizes)
{
    const uint64_t i = blockIdx.x * (uint64_t)STAGE_THREADS + threadIdx.x;
    if (i < n_atoms)
        sizes[i] = atoms[i] >> 63 ? atoms[i] & ((1ull << 62) - 1) : 1;
}

/* Stage 3, after a fill with zeros: a thread an atom. */
template <class START, class END>
__global__ void stage3_ends(const START *starts, uint64_t base, uint64_t n_atoms, END *ends)
{
    const uint64_t i = blockIdx.x * (uint64_t)STAGE_THREADS + threadIdx.x;
    if (i >= 1 && i < n_atoms)
        ends[starts[i] - base - 1] = 1;
}

/* Stage 5: a thread a word. index and out may be the same array. */
template <class INDEX>
__global__ void stage5_words(const uint64_t *atoms, const INDEX *index, uint64_t base, uint64_t n_words, uint64_t *out)
{
    const uint64_t i = blockIdx.x * (uint64_t)STAGE_THREADS + threadIdx.x;
    if (i >= n_words)
        return;
    const uint64_t atom = atoms[index[i] - base];
    out[i] = !(atom >> 63) ? atom : atom >> 62 & 1 ? ~0ull >> 1 : 0;
}

/* Stages 2 and 4. */
template <class FROM, class TO>
cudaError_t stage_scan(void *temp, size_t temp_bytes, const FROM *from, TO *to, uint64_t n, cudaStream_t stream)
{
    return cub::DeviceScan::ExclusiveSum(temp, temp_bytes, from, to, (int)n, stream);
}

/* Words of several types from one another: metadata as they are stored. */
template <class FROM, class TO> __global__ void stage_copy(const FROM *from, uint64_t n, TO *to)
{
    const uint64_t i = blockIdx.x * (uint64_t)STAGE_THREADS + threadIdx.x;
    if (i < n)
        to[i] = (TO)from[i];
}

/* ---- the query engines: reductions of decompressed columns ---- */

/* Columns of n_words words. */
struct plain_columns {
    const uint64_t *base;         /* column i is base + i * n_words; NULL: */
    const uint64_t *const *table; /* column i is table[i] */
    uint64_t n_words;

    __device__ __forceinline__ const uint64_t *operator[](uint32_t i) const
    {
        return base ? base + i * n_words : table[i];
    }
};

/* Column-oriented access, one of ceil(log2(n)) steps: column i |= column i + half, both read and
 * written whole, through global memory. blockIdx.y is i. */
static __global__ void reduce_coa(plain_columns c, uint32_t n, uint32_t half, uint64_t *out)
{
    const uint64_t w = blockIdx.x * (uint64_t)STAGE_THREADS + threadIdx.x;
    const uint32_t i = blockIdx.y;
    if (w < c.n_words)
        out[i * c.n_words + w] = i + half < n ? c[i][w] | c[i + half][w] : c[i][w];
}

/* Row-oriented access: a block a word, a thread a column, a reduction in shared memory. */
static __global__ void reduce_roa(plain_columns c, uint32_t n, uint64_t *out)
{
    extern __shared__ uint64_t row[];
    const uint64_t w = blockIdx.x;
    uint64_t x = 0;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        x |= c[i][w];
    row[threadIdx.x] = x;
    for (uint32_t d = blockDim.x / 2; d; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d)
            row[threadIdx.x] |= row[threadIdx.x + d];
    }
    if (threadIdx.x == 0)
        out[w] = row[0];
}

/* Hybrid: blocks of blockDim.x words of blockDim.y columns, a power of 2, tile words and columns;
 * loads are coalesced along words, and the columns reduced in shared memory. blockIdx.y is the
 * number of the tile of columns; row blockIdx.y of out holds its result. With as many threads along
 * y as there are columns this is the ideal hybrid. */
static __global__ void __launch_bounds__(1024) reduce_hybrid(plain_columns c, uint32_t n, uint64_t *out)
{
    __shared__ uint64_t tile[1024];
    const uint64_t w = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t i = blockIdx.y * blockDim.y + threadIdx.y, at = threadIdx.y * blockDim.x + threadIdx.x;
    tile[at] = w < c.n_words && i < n ? c[i][w] : 0;
    for (uint32_t d = blockDim.y / 2; d; d /= 2) {
        __syncthreads();
        if (threadIdx.y < d)
            tile[at] |= tile[at + d * blockDim.x];
    }
    if (threadIdx.y == 0 && w < c.n_words)
        out[blockIdx.y * c.n_words + w] = tile[at];
}

/* Ours for decompressed columns: a thread ORs one word of all columns in a register, eight loads on
 * their way. It is what decompressed columns can give on this memory. */
static __global__ void __launch_bounds__(STAGE_THREADS) reduce_stream(plain_columns c, uint32_t n, uint64_t *out)
{
    const uint64_t w = blockIdx.x * (uint64_t)STAGE_THREADS + threadIdx.x;
    if (w >= c.n_words)
        return;
    uint64_t x = 0;
#pragma unroll 16
    for (uint32_t i = 0; i < n; ++i)
        x |= __ldcs((const unsigned long long *)c[i] + w);
    out[w] = x;
}

/* ---- */

/* out |= more: when a pool is so small that a query takes its columns in groups. */
static __global__ void or_words(const uint64_t *more, uint64_t n, uint64_t *out)
{
    const uint64_t i = blockIdx.x * (uint64_t)STAGE_THREADS + threadIdx.x;
    if (i < n)
        out[i] |= more[i];
}

} // namespace gx

#endif
