/* bitmap_columns.cuh: sets of documents from an attribute's bitmap columns (index/attributes/bitmap_columns.h), on the
 * GPU, in the forms that index files have: lists and runs in GPU-BP128 blocks, and words. Rows are documents
 * (tools/bench/bitmaps/row_tile.cuh).
 *
 * Eight threads find a column's blocks that reach into the tile, by its heads. The blocks of all columns are then dealt
 * to the warps; a warp decodes a block in registers and puts its documents, or its runs, into the tile.
 *
 * `gpuidx bench bitmaps` measures it. Searches do not use it: they test values, or read masks that the CPU has made.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_COLUMNS_CUH
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_COLUMNS_CUH

#include "index/format.h"
#include "tools/bench/bitmaps/row_tile.cuh"

namespace gx {

/* An attribute's columns in GPU memory. Whatever they hold, nothing is read beyond them. */
struct bitmap_columns {
    const gx_bitmap_entry *directory; /* [n_columns], as in gx_bitmaps */
    const uint32_t *words;            /* [n_words], and GX_READ_SLACK bytes more */
    const uint32_t *present;          /* [ceil(n_docs / 32)] documents that have a value; NULL: all. It counts as
                                       * column n_columns */
    uint32_t n_words, n_columns, n_docs;

    static constexpr uint32_t FINDERS = 8, BLOCK = 128; /* threads that search together; numbers of a block */

    /* What of a column lies in the tile: blocks. */
    struct part {
        uint32_t begin, end; /* the column's words */
        uint32_t n;          /* numbers; | form << 30 */
        uint32_t block;      /* the first */
    };

    /* The columns of a tile, TILE_THREADS at a time. */
    struct shared {
        uint32_t starts[TILE_THREADS + 1]; /* blocks before each; then all */
        part parts[TILE_THREADS];
        uint32_t bitmaps[TILE_THREADS]; /* where their words begin; UINT32_MAX: `present` */
        uint32_t n_bitmaps, runs, sums[TILE_WARPS];
    };

    /* Of heads[n], which rise: how many are below key. Eight neighbouring threads search together, all threads of the
     * warp at once; the groups may search in different heads. */
    static __device__ __forceinline__ uint32_t count_below(const uint32_t *heads, uint32_t n, uint64_t key)
    {
        const uint32_t finder = threadIdx.x % FINDERS, shift = threadIdx.x % 32 / FINDERS * FINDERS;
        uint32_t low = 0, high = n;
        const auto probe = [&](uint32_t i) {
            return low + (uint32_t)((uint64_t)(high - low) * (i + 1) / (FINDERS + 1));
        };
        while (__any_sync(ALL_LANES, low < high)) {
            const bool below = low < high && __ldg(heads + probe(finder)) < key;
            const uint32_t n_below = __popc(__ballot_sync(ALL_LANES, below) >> shift & ((1u << FINDERS) - 1));
            if (low >= high)
                continue;
            const uint32_t next_low = n_below ? probe(n_below - 1) + 1 : low;
            high = n_below < FINDERS ? probe(n_below) : high;
            low = min(next_low, high);
        }
        return low;
    }

    /* Column `number` as a part without blocks; false: it has no documents, or is damaged. */
    __device__ __forceinline__ bool find_column(uint32_t number, part *p) const
    {
        *p = part{0, 0, 0, 0};
        if (number >= n_columns)
            return false;
        const uint2 entry = __ldg((const uint2 *)directory + number);
        const uint32_t begin = number ? __ldg((const uint2 *)directory + number - 1).y : 0;
        const uint32_t n = entry.x & 0x3fffffffu, form = entry.x >> 30, end = entry.y;
        if (begin > end || end > n_words || n == 0)
            return false;
        const uint32_t least = form == GX_BITMAP_WORDS  ? (uint32_t)(((uint64_t)n_docs + 31) / 32)
                               : form <= GX_BITMAP_RUNS ? 2 * ((n + BLOCK - 1) / BLOCK) - 1
                                                        : UINT32_MAX;
        *p = part{begin, end, entry.x, 0};
        return least <= end - begin;
    }

    /* All threads: what the step's m columns from number `from` of it on have in the tile. */
    __device__ __forceinline__ void open(shared &s, uint64_t tile_begin, const row_step &step, uint32_t from,
                                         uint32_t m) const
    {
        if (threadIdx.x == 0)
            s.n_bitmaps = s.runs = 0;
        __syncthreads(); /* and the tile is clear, and the last columns have been read */
        for (uint32_t i = threadIdx.x / FINDERS; i - threadIdx.x / FINDERS < m; i += TILE_THREADS / FINDERS) {
            const uint32_t number = i < m ? step.column(from + i) : UINT32_MAX;
            part p;
            const bool found = find_column(number, &p), bitmap = found && p.n >> 30 == GX_BITMAP_WORDS;
            const bool all = i < m && number == n_columns;
            const uint32_t n_blocks = found && !bitmap ? ((p.n & 0x3fffffffu) + BLOCK - 1) / BLOCK : 0;
            const uint32_t *const heads = words + p.begin;
            const uint32_t upto = count_below(heads, n_blocks, tile_begin + 1);
            p.block = upto ? upto - 1 : 0; /* a block that begins before the tile may reach into it */
            const uint32_t end = p.block + count_below(heads + p.block, n_blocks - p.block, tile_begin + TILE_ROWS);
            if (threadIdx.x % FINDERS || i >= m)
                continue;
            if (bitmap || all)
                s.bitmaps[atomicAdd(&s.n_bitmaps, 1u)] = all ? UINT32_MAX : p.begin;
            if (n_blocks && p.n >> 30 == GX_BITMAP_RUNS)
                atomicOr(&s.runs, 1u);
            s.parts[i] = p;
            s.starts[i] = end - p.block;
        }
        __syncthreads();
        const uint32_t blocks = threadIdx.x < m ? s.starts[threadIdx.x] : 0, before = items_before(blocks, s.sums);
        s.starts[threadIdx.x] = before;
        if (threadIdx.x == TILE_THREADS - 1)
            s.starts[TILE_THREADS] = before + blocks;
        __syncthreads();
    }

    /* Four words from word `at` of the tile that begins at word `first`, of words[n], which need not be aligned. */
    static __device__ __forceinline__ uint4 load_words(const uint32_t *from, uint64_t at, uint64_t n)
    {
        const uint32_t left = at < n ? (uint32_t)min(n - at, (uint64_t)4) : 0;
        from += at;
        return make_uint4(left > 0 ? __ldg(from) : 0, left > 1 ? __ldg(from + 1) : 0, left > 2 ? __ldg(from + 2) : 0,
                          left > 3 ? __ldg(from + 3) : 0);
    }

    __device__ __forceinline__ void gather_bitmaps(const shared &s, uint64_t tile_begin, own_words &own) const
    {
        const uint64_t n = ((uint64_t)n_docs + 31) / 32, at = tile_begin / 32 + threadIdx.x * 4;
        for (uint32_t k = 0; k < s.n_bitmaps; ++k) {
            const uint32_t begin = s.bitmaps[k];
            const uint32_t *const from = begin == UINT32_MAX ? present : words + begin;
            own_words x;
            x.fill(~0u);
#pragma unroll
            for (uint32_t q = 0; q < OWN_QUADS && from; ++q)
                x.x[q] = load_words(from, at + 4 * TILE_THREADS * q, n);
            own.combine(x, [](uint32_t a, uint32_t b) { return a | b; });
        }
    }

    /* A block: where its words begin and how many they are, its first number, how many numbers it has, | form << 30. */
    struct block_place {
        uint32_t begin, n_words, head, n;

        __device__ __forceinline__ block_place of_lane(uint32_t lane) const
        {
            return block_place{__shfl_sync(ALL_LANES, begin, lane), __shfl_sync(ALL_LANES, n_words, lane),
                               __shfl_sync(ALL_LANES, head, lane), __shfl_sync(ALL_LANES, n, lane)};
        }
    };

    /* Block k of a column. */
    __device__ __forceinline__ block_place find_block(const part &p, uint32_t k) const
    {
        const uint32_t n = p.n & 0x3fffffffu, n_blocks = (n + BLOCK - 1) / BLOCK;
        const uint32_t ends = p.begin + n_blocks, blocks = ends + n_blocks - 1, size = p.end - blocks;
        const uint32_t end = min(k + 1 < n_blocks ? __ldg(words + ends + k) : size, size);
        const uint32_t begin = min(k ? __ldg(words + ends + k - 1) : 0, end);
        return block_place{blocks + begin, end - begin, __ldg(words + p.begin + k),
                           min(n - k * BLOCK, BLOCK) | (p.n & 0xc0000000u)};
    }

    /* A warp: the numbers of a block; lanes get four each. */
    __device__ __forceinline__ void load_block(const block_place &b, uint32_t (&x)[4]) const
    {
        gpubp128<true> block;
        static_assert(gpubp128<true>::V == 4, "a block is one segment");
        block.open(words + b.begin, b.n_words, b.n & 0x3fffffffu, threadIdx.x % 32);
        block.next(threadIdx.x % 32, x);
    }

    static __device__ __forceinline__ void put_block(row_tile &tile, uint32_t from, const block_place &b,
                                                     uint32_t (&x)[4])
    {
        const uint32_t lane = threadIdx.x % 32, n = b.n & 0x3fffffffu, mine = n - min(n, lane * 4);
        docids(x, b.head - 1, lane);
        if (b.n >> 30 == GX_BITMAP_LIST) {
#pragma unroll
            for (uint32_t i = 0; i < 4; ++i)
                if (i < mine && x[i] >= from && x[i] - from < TILE_ROWS)
                    tile.put_row(x[i] - from);
            return;
        }
#pragma unroll
        for (uint32_t i = 0; i < 4; i += 2) { /* a run begins and ends in one block */
            const uint32_t first = max(x[i], from) - from, past = min(max(x[i + 1], from) - from, TILE_ROWS);
            if (i + 1 < mine && first < past)
                tile.put_run(first, past - 1);
        }
    }

    /* Each lane finds a block of the warp's; then the warp decodes them, two at a time. */
    __device__ __forceinline__ void gather_blocks(const shared &s, row_tile &tile, uint64_t tile_begin,
                                                  uint32_t m) const
    {
        const uint32_t n = s.starts[m], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        for (uint32_t begin = warp; begin < n; begin += TILE_THREADS) {
            const uint32_t at = begin + lane * TILE_WARPS;
            block_place mine = {0, 0, 0, 0};
            if (at < n) {
                const uint32_t i = find_part(s.starts, at, m);
                mine = find_block(s.parts[i], s.parts[i].block + at - s.starts[i]);
            }
            const uint32_t blocks = __popc(__ballot_sync(ALL_LANES, at < n));
            for (uint32_t k = 0; k < blocks; k += 2) {
                const block_place a = mine.of_lane(k), b = mine.of_lane((k + 1) % 32);
                uint32_t x[4], y[4];
                load_block(a, x);
                if (k + 1 < blocks)
                    load_block(b, y);
                put_block(tile, (uint32_t)tile_begin, a, x);
                if (k + 1 < blocks)
                    put_block(tile, (uint32_t)tile_begin, b, y);
            }
        }
    }

    __device__ __forceinline__ bool gather(shared &s, row_tile &tile, uint32_t number, const row_step &step,
                                           own_words &own) const
    {
        const uint64_t tile_begin = (uint64_t)number * TILE_ROWS;
        bool runs = false;
        uint32_t begin = 0;
        do { /* once without columns, for the barrier */
            const uint32_t m = min(step.n - begin, TILE_THREADS);
            open(s, tile_begin, step, begin, m);
            gather_blocks(s, tile, tile_begin, m);
            gather_bitmaps(s, tile_begin, own);
            runs |= s.runs != 0;
            begin += m;
        } while (begin < step.n && (__syncthreads(), true));
        return runs;
    }
};

} // namespace gx

#endif
