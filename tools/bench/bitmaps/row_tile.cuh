/* row_tile.cuh: sets of rows on the GPU, a bit a row, made tile by tile: unions of columns, combined by OR, AND and
 * ANDNOT, to a mask, to a count and to row numbers.
 *
 * A thread block makes a tile of 65,536 rows. Each of its threads owns some words of 32 rows and keeps the result of
 * these in registers; nobody else writes them. A step takes the union of some columns:
 *
 *   columns' words        loaded by the threads that own them, into registers
 *   rows, short runs      ORed into the tile in shared memory, by atomics
 *   the middle of a run   the whole words within a run are counted, not written: 1 is added at the first and
 *                         subtracted behind the last; a word whose sum over the words before it is above 0 is all ones
 *   barrier               then each thread collects its own words of the tile and clears them
 *
 * A run thus costs four atomics, however long it is. What the columns are is a SOURCE's affair (containers.cuh):
 *
 *   n_columns             columns with greater numbers have no rows
 *   shared                a struct of shared memory, for `gather` alone
 *   gather(s, tile, number, step, own)
 *                         all threads: the union of the step's columns in tile `number`: words into own, rows and runs
 *                         into the tile by put_row and put_run. The tile may only be written behind a barrier within;
 *                         no barrier is needed behind. Returns whether runs may have been put, the same in all threads
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_ROW_TILE_CUH
#define GX_TOOLS_BENCH_BITMAPS_ROW_TILE_CUH

#include "codecs/decode.cuh"

namespace gx {

constexpr uint32_t TILE_ROWS = 65536, TILE_WORDS = TILE_ROWS / 32, TILE_THREADS = 512, TILE_WARPS = TILE_THREADS / 32;
constexpr uint32_t OWN_QUADS = TILE_WORDS / 4 / TILE_THREADS; /* of four words, that a thread owns */
constexpr uint32_t MAX_ROW_STEPS = 16;

enum row_operation : uint32_t { ROWS_OR, ROWS_AND, ROWS_ANDNOT };

/* The rows so far OR, AND, or AND NOT the union of n columns. */
struct row_step {
    row_operation operation;
    uint32_t first, n;       /* columns [first, first + n), or */
    const uint32_t *columns; /* columns[n], in GPU memory, unless NULL */

    __device__ __forceinline__ uint32_t column(uint32_t i) const { return columns ? __ldg(columns + i) : first + i; }
};

struct row_steps {
    row_step steps[MAX_ROW_STEPS];
    uint32_t n;
    bool all; /* begin with all rows; false: with none */
};

/* What is written; each may be NULL. */
struct row_result {
    uint32_t *mask;            /* [ceil(n_rows / 32)], aligned to 16 bytes: bit r % 32 of word r / 32 is row r */
    unsigned long long *count; /* the number of rows is added */
    uint32_t *tile_counts;     /* [ceil(n_rows / TILE_ROWS)] the rows of each tile */
};

/* A tile; all zero between the steps. */
struct row_tile {
    uint4 words[TILE_WORDS / 4];
    uint4 borders[TILE_WORDS / 4]; /* of the whole words within runs: those that begin less those that ended */
    uint32_t sums[OWN_QUADS][TILE_WARPS];

    __device__ __forceinline__ void put_bits(uint32_t word, uint32_t bits) { atomicOr((uint32_t *)words + word, bits); }

    __device__ __forceinline__ void put_row(uint32_t row) { put_bits(row / 32, 1u << row % 32); }

    /* Rows first to last, inclusive, first <= last < TILE_ROWS. */
    __device__ __forceinline__ void put_run(uint32_t first, uint32_t last)
    {
        const uint32_t begin = first / 32, end = last / 32;
        const uint32_t head = ~0u << first % 32, tail = ~0u >> (31 - last % 32);
        put_bits(begin, begin == end ? head & tail : head);
        if (begin == end)
            return;
        put_bits(end, tail);
        if (begin + 1 < end) {
            atomicAdd((uint32_t *)borders + begin + 1, 1u);
            atomicAdd((uint32_t *)borders + end, ~0u);
        }
    }
};

/* The words that thread t owns: words 4 t to 4 t + 3 of each OWN_QUADS-th part of the tile. */
struct own_words {
    uint4 x[OWN_QUADS];

    template <class F> __device__ __forceinline__ void combine(const own_words &with, F f)
    {
#pragma unroll
        for (uint32_t i = 0; i < OWN_QUADS; ++i)
            x[i] = make_uint4(f(x[i].x, with.x[i].x), f(x[i].y, with.x[i].y), f(x[i].z, with.x[i].z),
                              f(x[i].w, with.x[i].w));
    }
    __device__ __forceinline__ void fill(uint32_t value)
    {
#pragma unroll
        for (uint32_t i = 0; i < OWN_QUADS; ++i)
            x[i] = make_uint4(value, value, value, value);
    }
    __device__ __forceinline__ bool full() const
    {
        uint32_t all = ~0u;
#pragma unroll
        for (uint32_t i = 0; i < OWN_QUADS; ++i)
            all &= x[i].x & x[i].y & x[i].z & x[i].w;
        return all == ~0u;
    }
};

/* Which of n parts has item `item`: part i has the items from starts[i] to starts[i + 1], and starts[0] is 0. A round
 * leaves a quarter, by three loads that do not wait for one another. */
__device__ __forceinline__ uint32_t find_part(const uint32_t *starts, uint32_t item, uint32_t n)
{
    uint32_t low = 0; /* starts[low] <= item < starts[low + n] */
    while (n > 1) {
        const uint32_t quarter = (n + 3) / 4, last = low + n;
        const uint32_t a = starts[min(low + quarter, last)], b = starts[min(low + 2 * quarter, last)];
        const uint32_t c = starts[min(low + 3 * quarter, last)];
        low += quarter * ((a <= item) + (b <= item) + (c <= item));
        n = min(quarter, last - low);
    }
    return low;
}

/* Items before those of this thread, and all, in thread order. All threads; sums is the block's, and free. */
__device__ __forceinline__ uint32_t items_before(uint32_t own, uint32_t *sums)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, all = warp_inclusive(own, lane);
    if (lane == 31)
        sums[warp] = all;
    __syncthreads();
    uint32_t before = all - own;
#pragma unroll
    for (uint32_t w = 0; w < TILE_WARPS; ++w)
        before += w < warp ? sums[w] : 0;
    return before;
}

/* Whether a word is within runs: ~0, or 0. Sums of four words in place. */
__device__ __forceinline__ uint4 inner_words(uint4 borders, uint32_t before)
{
    const uint32_t a = before + borders.x, b = a + borders.y, c = b + borders.z, d = c + borders.w;
    return make_uint4(a ? ~0u : 0, b ? ~0u : 0, c ? ~0u : 0, d ? ~0u : 0);
}

/* All threads, behind a barrier: the tile's own words are ORed to own and cleared. */
__device__ __forceinline__ void take_tile(row_tile &t, bool runs, own_words &own)
{
    own_words more;
#pragma unroll
    for (uint32_t i = 0; i < OWN_QUADS; ++i) {
        more.x[i] = t.words[i * TILE_THREADS + threadIdx.x];
        t.words[i * TILE_THREADS + threadIdx.x] = make_uint4(0, 0, 0, 0);
    }
    own.combine(more, [](uint32_t a, uint32_t b) { return a | b; });
    if (!runs)
        return;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t before[OWN_QUADS];
#pragma unroll
    for (uint32_t i = 0; i < OWN_QUADS; ++i) {
        more.x[i] = t.borders[i * TILE_THREADS + threadIdx.x];
        t.borders[i * TILE_THREADS + threadIdx.x] = make_uint4(0, 0, 0, 0);
        const uint32_t sum = more.x[i].x + more.x[i].y + more.x[i].z + more.x[i].w, all = warp_inclusive(sum, lane);
        before[i] = all - sum;
        if (lane == 31)
            t.sums[i][warp] = all;
    }
    __syncthreads();
    uint32_t sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < OWN_QUADS; ++i)
#pragma unroll
        for (uint32_t w = 0; w < TILE_WARPS; ++w) {
            before[i] += w == warp ? sum : 0;
            sum += t.sums[i][w];
        }
#pragma unroll
    for (uint32_t i = 0; i < OWN_QUADS; ++i)
        more.x[i] = inner_words(more.x[i], before[i]);
    own.combine(more, [](uint32_t a, uint32_t b) { return a | b; });
}

/* Four words of the tile that begins at row `begin`, from row `row` on, without what lies behind n_rows. */
__device__ __forceinline__ uint4 within_rows(uint4 x, uint64_t row, uint64_t n_rows)
{
    const auto keep = [=](uint32_t word, uint64_t from) {
        return from + 32 <= n_rows ? word : from >= n_rows ? 0 : word & ~(~0u << (n_rows - from));
    };
    return make_uint4(keep(x.x, row), keep(x.y, row + 32), keep(x.z, row + 64), keep(x.w, row + 96));
}

__device__ __forceinline__ void write_mask(uint32_t *mask, uint4 x, uint64_t row, uint64_t n_rows)
{
    uint32_t *const to = mask + row / 32;
    const uint64_t words = row < n_rows ? (n_rows - row + 31) / 32 : 0;
    if (words >= 4) {
        *(uint4 *)to = x;
        return;
    }
    if (words > 0)
        to[0] = x.x;
    if (words > 1)
        to[1] = x.y;
    if (words > 2)
        to[2] = x.z;
}

/* All threads: the tile's result. The tile's sums are free. */
__device__ __forceinline__ void write_tile(row_tile &t, uint32_t number, uint64_t n_rows, own_words &own,
                                           const row_result &out)
{
    uint32_t count = 0;
#pragma unroll
    for (uint32_t i = 0; i < OWN_QUADS; ++i) {
        const uint64_t row = (uint64_t)number * TILE_ROWS + (i * TILE_THREADS + threadIdx.x) * 128;
        const uint4 x = within_rows(own.x[i], row, n_rows);
        if (out.mask)
            write_mask(out.mask, x, row, n_rows);
        count += __popc(x.x) + __popc(x.y) + __popc(x.z) + __popc(x.w);
    }
    if (!out.count && !out.tile_counts)
        return;
    __syncthreads(); /* the sums of the last step have been read */
    count = __reduce_add_sync(ALL_LANES, count);
    if (threadIdx.x % 32 == 0)
        t.sums[0][threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x)
        return;
#pragma unroll
    for (uint32_t w = 1; w < TILE_WARPS; ++w)
        count += t.sums[0][w];
    if (out.tile_counts)
        out.tile_counts[number] = count;
    if (out.count && count)
        atomicAdd(out.count, (unsigned long long)count);
}

/* A block of TILE_THREADS threads a tile. */
template <class SOURCE>
__global__ void __launch_bounds__(TILE_THREADS, 1024 / TILE_THREADS)
    select_rows(SOURCE source, const __grid_constant__ row_steps steps, uint64_t n_rows, row_result out)
{
    __shared__ row_tile tile;
    __shared__ typename SOURCE::shared space;
    own_words rows;
    rows.fill(steps.all ? ~0u : 0);
    for (uint32_t i = 0; i < OWN_QUADS; ++i)
        tile.words[i * TILE_THREADS + threadIdx.x] = tile.borders[i * TILE_THREADS + threadIdx.x] =
            make_uint4(0, 0, 0, 0);
    for (uint32_t k = 0; k < steps.n; ++k) {
        own_words own;
        own.fill(0);
        const bool runs = source.gather(space, tile, blockIdx.x, steps.steps[k], own);
        __syncthreads();
        take_tile(tile, runs, own);
        if (steps.steps[k].operation == ROWS_OR)
            rows.combine(own, [](uint32_t a, uint32_t b) { return a | b; });
        else if (steps.steps[k].operation == ROWS_AND)
            rows.combine(own, [](uint32_t a, uint32_t b) { return a & b; });
        else
            rows.combine(own, [](uint32_t a, uint32_t b) { return a & ~b; });
    }
    write_tile(tile, blockIdx.x, n_rows, rows, out);
}

/* The numbers of a mask's rows, rising, to rows[max_rows]; what does not fit is left out. LIST_PARTS blocks of
 * LIST_THREADS threads a tile, a word a thread, after the kernel that wrote mask and tile_counts. */
constexpr uint32_t LIST_THREADS = 256, LIST_PARTS = TILE_WORDS / LIST_THREADS, LIST_WARPS = LIST_THREADS / 32;

static __global__ void __launch_bounds__(LIST_THREADS)
    list_rows(const uint32_t *mask, const uint32_t *tile_counts, uint64_t n_rows, uint64_t max_rows, uint32_t *rows)
{
    __shared__ unsigned long long earlier[LIST_WARPS];
    __shared__ uint32_t sums[LIST_WARPS];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = blockIdx.x / LIST_PARTS;
    const uint64_t n_words = (n_rows + 31) / 32, first = (uint64_t)blockIdx.x * LIST_THREADS, own = first + threadIdx.x;
    const uint32_t bits = own < n_words ? __ldg(mask + own) : 0;
    unsigned long long before = 0; /* rows of the tiles before, and of this tile's words before the block's */
    for (uint32_t i = threadIdx.x; i < tile; i += LIST_THREADS)
        before += __ldg(tile_counts + i);
    for (uint64_t w = (uint64_t)tile * TILE_WORDS + threadIdx.x; w < min(first, n_words); w += LIST_THREADS)
        before += __popc(__ldg(mask + w));
#pragma unroll
    for (int o = 16; o; o /= 2)
        before += __shfl_xor_sync(ALL_LANES, before, o);
    const uint32_t n = __popc(bits), sum = warp_inclusive(n, lane);
    if (lane == 31) {
        sums[warp] = sum;
        earlier[warp] = before;
    }
    __syncthreads();
    unsigned long long at = 0; /* of the warp's first row */
#pragma unroll
    for (uint32_t w = 0; w < LIST_WARPS; ++w)
        at += earlier[w] + (w < warp ? sums[w] : 0);
#pragma unroll 8
    for (uint32_t k = 0; k < 32; ++k) { /* the warp writes the rows of its words, one word after another */
        const uint32_t word = __shfl_sync(ALL_LANES, bits, k), start = __shfl_sync(ALL_LANES, sum - n, k);
        const uint64_t to = at + start + __popc(word & ((1u << lane) - 1));
        if (word >> lane & 1 && to < max_rows)
            __stcs(rows + to, (uint32_t)((first + warp * 32 + k) * 32 + lane));
    }
}

} // namespace gx

#endif
