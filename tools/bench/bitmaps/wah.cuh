/* wah.cuh: the OR of many WAH columns (wah.h) on the GPU, in one kernel.
 *
 * The result is cut into tiles of TILE chunks; a thread block makes one. Each of its warps has a
 * copy of the tile in shared memory, takes a share of the columns, one after another, and reads the
 * atoms of the column that reach into the tile, 32 at a time: a warp scan of their lengths says at
 * which chunk each of them begins, and there a literal is ORed in and a fill of ones stored. No
 * column is decompressed, and fills of zeros cost nothing. In the end the block ORs the copies and
 * writes the tile once.
 *
 * Where a tile begins in a column is a sample, 8 bytes a tile and column, made once:
 *
 *   atoms     | literal | fill of 9 | literal | literal | ...
 *   chunks      0         1 ... 9     10        11
 *   tile of 8   ^--- sample {0, 0}  ^--- the second tile begins at chunk 8: sample {1, 7}
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_WAH_CUH
#define GX_TOOLS_BENCH_BITMAPS_WAH_CUH

#include "codecs/decode.cuh"

namespace gx {

/* Where a tile begins: at chunk number `skip` of an atom, counted from the column's first. */
struct wah_sample {
    uint32_t atom, skip;
};

/* The columns of an index of fewer than 2^32 chunks each. */
struct wah_columns {
    const uint64_t *atoms;     /* of all columns, one column behind another */
    const uint64_t *begins;    /* [n_columns] where a column's atoms begin */
    const wah_sample *samples; /* [n_tiles + 1][n_columns]; the last row: {number of atoms, 0} */
    uint32_t n_columns, n_tiles;
    uint64_t n_chunks;
};

constexpr uint64_t wah_ones = ~0ull >> 1;
constexpr uint64_t wah_nothing = 1ull << 63; /* a fill of no zeros */

/* The atoms of one column that reach into a tile. */
struct wah_part {
    const uint64_t *from;
    int n;         /* atoms that are left */
    uint32_t skip; /* chunks of the first that lie before the tile */
};

template <int ROWS> struct wah_rows {
    uint64_t x[ROWS];

    __device__ __forceinline__ void load(const wah_part &p, int lane)
    {
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            x[r] = r * 32 + lane < p.n ? __ldcs((const unsigned long long *)p.from + r * 32 + lane) : wah_nothing;
    }
};

/* OR ROWS rows of 32 atoms into the tile from chunk `at` of it on; returns the chunk behind them.
 * Each lane holds one atom a row. The lengths of two rows are summed as halves of a word: all atoms
 * but the tile's last lie within it, so that no sum exceeds 2 * TILE. */
template <int TILE, int ROWS>
__device__ __forceinline__ uint32_t wah_or_rows(const wah_rows<ROWS> &rows, uint32_t skip, uint32_t at, uint64_t *tile,
                                                int lane)
{
    static_assert(ROWS % 2 == 0 && 2 * TILE <= 65536, "two sums in a word");
    uint32_t starts[ROWS], lengths[ROWS];
    bool ones = false;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const uint64_t x = rows.x[r];
        const uint32_t low = (uint32_t)x - (r == 0 && lane == 0 ? skip : 0);
        lengths[r] = (int64_t)x < 0 ? min(low, (uint32_t)TILE) : 1;
        ones |= x >> 62 == 3;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r += 2) {
        const uint32_t own = lengths[r] | lengths[r + 1] << 16;
        uint32_t sum = warp_inclusive(own, lane);
        const uint32_t all = __shfl_sync(0xffffffffu, sum, 31);
        sum -= own;
        starts[r] = at + (sum & 0xffff);
        at += all & 0xffff;
        starts[r + 1] = at + (sum >> 16);
        at += all >> 16;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if ((int64_t)rows.x[r] >= 0)
            tile[starts[r]] |= rows.x[r];
    if (__any_sync(0xffffffffu, ones)) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            for (uint32_t lanes = __ballot_sync(0xffffffffu, rows.x[r] >> 62 == 3); lanes; lanes &= lanes - 1) {
                const int who = __ffs(lanes) - 1;
                const uint32_t begin = __shfl_sync(0xffffffffu, starts[r], who);
                const uint32_t n = __shfl_sync(0xffffffffu, lengths[r], who), end = min(begin + n, (uint32_t)TILE);
                for (uint32_t i = begin + lane; i < end; i += 32)
                    tile[i] = wah_ones;
            }
        }
    }
    __syncwarp(); /* the next atoms may fall on the same chunks */
    return at;
}

/* A warp: OR columns [first, last) into its tile. All lanes call it. */
template <int TILE, int ROWS>
__device__ __forceinline__ void wah_or_columns(const wah_columns &c, uint32_t tile_number, uint32_t first,
                                               uint32_t last, uint64_t *tile, int lane)
{
    for (; first < last; first += 32) {
        const int n = min(last - first, 32u);
        wah_part mine = {};
        if (lane < n) {
            const wah_sample *const s = c.samples + (uint64_t)tile_number * c.n_columns + first + lane;
            const wah_sample begin = s[0], end = s[c.n_columns];
            mine = {c.atoms + c.begins[first + lane] + begin.atom, (int)(end.atom - begin.atom + (end.skip != 0)),
                    begin.skip};
        }
        const auto part_of = [&](int k) {
            return wah_part{(const uint64_t *)__shfl_sync(0xffffffffu, (unsigned long long)mine.from, k),
                            __shfl_sync(0xffffffffu, mine.n, k), __shfl_sync(0xffffffffu, mine.skip, k)};
        };
        wah_part p = part_of(0);
        wah_rows<ROWS> rows, ahead;
        rows.load(p, lane);
        uint32_t at = 0;
        for (int k = 0; k < n;) { /* while these rows are worked on, the next are on their way */
            wah_part next = {p.from + ROWS * 32, p.n - ROWS * 32, 0};
            const bool done = next.n <= 0;
            if (done) {
                ++k;
                next = part_of(min(k, n - 1));
                next.n = k < n ? next.n : 0;
            }
            ahead.load(next, lane);
            at = wah_or_rows<TILE, ROWS>(rows, p.skip, at, tile, lane);
            at = done ? 0 : at;
            p = next;
            rows = ahead;
        }
    }
}

/* What the kernel writes; each may be NULL. */
struct wah_result {
    uint64_t *chunks;          /* [n_chunks] */
    uint32_t *mask;            /* [ceil(n_rows / 32)] bit r % 32 of word r / 32 is row r */
    unsigned long long *count; /* the number of rows that are set is added */
    uint64_t n_rows;
};

/* 32 rows of the tile, beginning with row 32 i. */
__device__ __forceinline__ uint32_t wah_mask_word(const uint64_t *tile, uint32_t i)
{
    const uint32_t chunk = i * 32 / 63, bit = i * 32 % 63;
    const uint64_t low = tile[chunk] >> bit;
    return (uint32_t)(bit > 31 ? low | tile[chunk + 1] << (63 - bit) : low);
}

/* A block: write its tile, chunks from tile * TILE on. A tile is a whole number of mask words. */
template <int TILE>
__device__ __forceinline__ void wah_write(const wah_columns &c, const wah_result &out, uint32_t tile_number,
                                          const uint64_t *tile)
{
    static_assert(TILE % 32 == 0, "a tile is a whole number of mask words");
    const uint64_t begin = (uint64_t)tile_number * TILE;
    const uint32_t n = (uint32_t)min(c.n_chunks - begin, (uint64_t)TILE);
    if (out.chunks)
        for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
            out.chunks[begin + i] = tile[i];
    if (out.mask) {
        const uint64_t first = begin / 32 * 63, words = min((out.n_rows + 31) / 32 - first, (uint64_t)TILE / 32 * 63);
        for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
            out.mask[first + i] = wah_mask_word(tile, i);
    }
    if (out.count) {
        uint32_t count = 0;
        for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
            count += __popcll(tile[i]);
        count = __reduce_add_sync(0xffffffffu, count);
        if (threadIdx.x % 32 == 0)
            atomicAdd(out.count, (unsigned long long)count);
    }
}

/* The OR of columns [first, first + n) to out: a block of WARPS warps a tile, WARPS * TILE * 8 bytes
 * of shared memory. STEP columns a round, or 0: all; after each round but the last, a block whose
 * tile is all ones leaves the other columns out. */
template <int TILE, int WARPS, int ROWS, int STEP>
__global__ void __launch_bounds__(WARPS * 32) wah_or(wah_columns c, uint32_t first, uint32_t n, wah_result out)
{
    extern __shared__ uint64_t tiles[];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, step = STEP ? STEP : n;
    uint64_t *const mine = tiles + warp * TILE;
    for (uint32_t i = lane; i < TILE / 2; i += 32)
        ((ulonglong2 *)mine)[i] = make_ulonglong2(0, 0);
    __syncwarp();
    for (uint32_t begin = 0; begin < n; begin += step) {
        const uint32_t m = min(step, n - begin);
        wah_or_columns<TILE, ROWS>(c, blockIdx.x, first + begin + m * warp / WARPS,
                                   first + begin + m * (warp + 1) / WARPS, mine, lane);
        if (STEP && begin + step < n) {
            const uint64_t left = c.n_chunks - (uint64_t)blockIdx.x * TILE;
            bool full = true;
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < min(left, (uint64_t)TILE); i += WARPS * 32) {
                uint64_t x = 0;
                for (int w = 0; w < WARPS; ++w)
                    x |= tiles[w * TILE + i];
                full &= x == wah_ones;
            }
            if (__syncthreads_and(full))
                break;
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < TILE; i += WARPS * 32) {
        uint64_t x = tiles[i];
        for (int w = 1; w < WARPS; ++w)
            x |= tiles[w * TILE + i];
        tiles[i] = x;
    }
    __syncthreads();
    wah_write<TILE>(c, out, blockIdx.x, tiles);
}

} // namespace gx

#endif
