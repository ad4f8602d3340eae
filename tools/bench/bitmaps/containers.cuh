/* containers.cuh: sets of rows from columns in containers (containers.h), on the GPU. A container is a tile
 * (row_tile.cuh).
 *
 * Bitmaps are taken whole: each thread loads the words that it owns. The lists and runs of a tile are cut into items of
 * eight rows or two runs: of the items of all columns together, thread t takes items t, t + TILE_THREADS, .., and
 * searches for the column of each.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_CONTAINERS_CUH
#define GX_TOOLS_BENCH_BITMAPS_CONTAINERS_CUH

#include "tools/bench/bitmaps/containers.h"
#include "tools/bench/bitmaps/row_tile.cuh"

namespace gx {

/* Containers in GPU memory. Whatever table and data hold, nothing is read beyond them. */
struct container_source {
    const gx_container *table; /* [n_places][n_columns] */
    const uint4 *data;         /* [n_units] */
    uint64_t n_units;
    uint32_t n_columns;

    static constexpr uint32_t UNITS = TILE_WORDS / 4;  /* of a bitmap */
    static constexpr uint32_t LONG = 4 * TILE_THREADS; /* items */

    /* The containers of a tile, TILE_THREADS columns at a time. */
    struct shared {
        uint32_t starts[TILE_THREADS + 1]; /* items before each; then all */
        gx_container containers[TILE_THREADS];
        uint32_t bitmaps[TILE_THREADS]; /* where their data begin */
        uint32_t n_bitmaps, runs, sums[TILE_WARPS];
    };

    static __device__ __forceinline__ gx_container_form form(gx_container c) { return (gx_container_form)(c.n >> 30); }
    static __device__ __forceinline__ uint32_t length(gx_container c) { return c.n & 0x3fffffffu; }

    /* Units of the container's data; 0 if it is damaged. */
    __device__ __forceinline__ uint32_t units_of(gx_container c) const
    {
        const uint32_t n = length(c), kind = c.n >> 30;
        const uint32_t units = kind == GX_CONTAINER_LIST     ? (n + 7) / 8
                               : kind == GX_CONTAINER_BITMAP ? UNITS
                               : kind == GX_CONTAINER_RUNS   ? (n + 3) / 4
                                                             : 0;
        return units <= TILE_ROWS / 4 && c.begin + (uint64_t)units <= n_units ? units : 0;
    }

    static __device__ __forceinline__ uint32_t items_of(gx_container c)
    {
        const uint32_t n = length(c);
        return form(c) == GX_CONTAINER_LIST ? (n + 7) / 8 : form(c) == GX_CONTAINER_RUNS ? (n + 1) / 2 : 0;
    }

    /* All threads: the directory of m columns of the step, from number `begin` of it on. */
    __device__ __forceinline__ void open(shared &s, uint32_t number, const row_step &step, uint32_t begin,
                                         uint32_t m) const
    {
        const uint32_t i = threadIdx.x;
        gx_container c = {0, 0};
        if (i < m) {
            const uint32_t column = step.column(begin + i);
            if (column < n_columns) {
                const uint2 both = __ldg((const uint2 *)table + (uint64_t)number * n_columns + column);
                c = gx_container{both.x, both.y};
            }
        }
        if (i == 0)
            s.n_bitmaps = s.runs = 0;
        __syncthreads(); /* and the tile is clear, and the last directory has been read */
        const bool there = units_of(c) != 0;
        if (there && form(c) == GX_CONTAINER_BITMAP)
            s.bitmaps[atomicAdd(&s.n_bitmaps, 1u)] = c.begin;
        if (there && form(c) == GX_CONTAINER_RUNS)
            atomicOr(&s.runs, 1u);
        const uint32_t items = there ? items_of(c) : 0, before = items_before(items, s.sums);
        s.starts[i] = before;
        s.containers[i] = c;
        if (i == TILE_THREADS - 1)
            s.starts[TILE_THREADS] = before + items;
        __syncthreads();
    }

    static __device__ __forceinline__ void put_list(row_tile &tile, uint4 x, uint32_t left)
    {
        const uint32_t pairs[4] = {x.x, x.y, x.z, x.w};
        uint32_t word = (x.x & 0xffff) / 32, bits = 0;
#pragma unroll
        for (uint32_t i = 0; i < 8; ++i) { /* rows of one word go together */
            const uint32_t row = pairs[i / 2] >> 16 * (i % 2) & 0xffff;
            if (i >= left)
                break;
            if (row / 32 != word) {
                tile.put_bits(word, bits);
                word = row / 32;
                bits = 0;
            }
            bits |= 1u << row % 32;
        }
        tile.put_bits(word, bits);
    }

    static __device__ __forceinline__ void put_run(row_tile &tile, uint32_t run)
    {
        if ((run & 0xffff) <= run >> 16)
            tile.put_run(run & 0xffff, run >> 16);
    }

    __device__ __forceinline__ void gather_bitmaps(const shared &s, own_words &own) const
    {
        const uint32_t n = s.n_bitmaps;
#pragma unroll 4
        for (uint32_t k = 0; k < n; ++k) {
            const uint4 *const from = data + s.bitmaps[k] + threadIdx.x;
            own_words x;
#pragma unroll
            for (uint32_t i = 0; i < OWN_QUADS; ++i)
                x.x[i] = __ldcs(from + i * TILE_THREADS);
            own.combine(x, [](uint32_t a, uint32_t b) { return a | b; });
        }
    }

    __device__ __forceinline__ void gather_items(const shared &s, row_tile &tile, uint32_t m) const
    {
        const uint32_t n = s.starts[m];
        for (uint32_t item = threadIdx.x; item < n; item += TILE_THREADS) {
            const uint32_t k = find_part(s.starts, item, m), skip = item - s.starts[k];
            const gx_container c = s.containers[k];
            if (form(c) == GX_CONTAINER_LIST) {
                put_list(tile, __ldcs(data + c.begin + skip), length(c) - skip * 8);
            } else {
                const uint2 x = __ldcs((const uint2 *)(data + c.begin) + skip);
                put_run(tile, x.x);
                if (length(c) > skip * 2 + 1)
                    put_run(tile, x.y);
            }
        }
    }

    __device__ __forceinline__ bool gather(shared &s, row_tile &tile, uint32_t number, const row_step &step,
                                           own_words &own) const
    {
        bool runs = false;
        uint32_t begin = 0;
        do { /* once without columns, for the barrier */
            const uint32_t m = min(step.n - begin, TILE_THREADS);
            open(s, number, step, begin, m);
            begin += m;
            gather_bitmaps(s, own);
            /* where the bitmaps have all rows, long lists have no more */
            if (s.n_bitmaps && (s.starts[m] > LONG || begin < step.n) && __syncthreads_and(own.full()))
                break;
            gather_items(s, tile, m);
            runs |= s.runs != 0;
        } while (begin < step.n && (__syncthreads(), true));
        return runs;
    }
};

} // namespace gx

#endif
