/* tiles.cuh: the search by tiles, for an OR of many terms. The host side enqueues it with these
 * functions; tiles.cu has the kernels and says how it works.
 *
 * A tile is TILE_DOCS documents with neighbouring docids. A list of at least tile_rows::min_df
 * postings has a row: in which block each tile begins, and for a scorer a bound of its impacts in
 * each tile. */
#ifndef GX_QUERY_GPU_KERNELS_TILES_CUH
#define GX_QUERY_GPU_KERNELS_TILES_CUH

#include "query/gpu/kernels/kernels.cuh"

namespace gx {

constexpr uint32_t TILE_SHIFT = 14, TILE_DOCS = 1u << TILE_SHIFT;
constexpr uint32_t MAX_TILES = 4096; /* larger indexes are not searched by tiles */
/* Payload words of the docids, or of the tfs, of a block are counted in so many bits. */
constexpr uint32_t TILE_WORD_BITS = 12;

__host__ __device__ __forceinline__ uint32_t count_tiles(uint32_t n_docs)
{
    return n_docs ? ((n_docs - 1) >> TILE_SHIFT) + 1 : 0;
}

/* ---- rows ---- */

constexpr uint32_t NO_ROW = UINT32_MAX; /* in term_filter.map of a query that is searched by tiles */

struct tile_rows {
    uint32_t n_tiles, n_rows;
    const uint32_t *lists;  /* [n_rows] */
    const uint32_t *starts; /* [n_rows][n_tiles + 1]: the last block whose head is <= the tile's first docid, or 0 */
};

/* Fill the starts of all rows. */
void derive_tile_starts(const gpu_index &X, const tile_rows &rows, uint32_t *starts, cudaStream_t stream);

/* Fill maxima[n_rows][n_tiles] for a scorer. 0: the list has no posting in the tile. m: none of its
 * impacts there is above (m + 1) / 256 of the list's greatest. */
void derive_tile_maxima(const gpu_index &X, uint32_t coding, const gpu_codings &codings, const tile_rows &rows,
                        gx_scorer norm, uint8_t *maxima, cudaStream_t stream);

/* ---- queries ---- */

struct alignas(16) tiled_query {
    const uint8_t *maxima; /* for its scorer */
    uint32_t query;        /* its number in the batch */
    uint32_t linear;       /* whether the scorer is linear */
};

/* Queries of a batch that are searched by tiles. All are linear, or none is. */
struct tiled_batch {
    const tiled_query *queries;
    uint32_t n;
    uint2 *order;        /* [n][n_tiles]: the bound of a tile, and the tile, by falling bound */
    uint32_t *n_live;    /* [n]: how many of them reach the query's first threshold */
    uint32_t *next_item; /* the counter of this launch, 0 before */
};

/* What a GPU has for thread blocks. */
struct gpu_room {
    uint32_t multiprocessors;
    size_t block_shared, shared; /* bytes of shared memory: of a thread block, of a multiprocessor */
};

/* Prepare the kernels on the current device. Returns how many thread blocks fill it, of queries
 * with a linear scorer and of others; 0: there is not enough shared memory for one. Of others that is so
 * where compute capability is 8.6, 8.9 or 12.0: they have 99 KB a block. */
struct tiled_grid {
    uint32_t linear, other;
};
tiled_grid find_tiled_grid(uint32_t coding, const gpu_room &room);

/* Search for the queries; what reaches their thresholds becomes their candidates. */
void search_by_tiles(const gpu_index &X, uint32_t coding, const gpu_batch &R, const tile_rows &rows,
                     const tiled_batch &B, bool linear, tiled_grid grid, cudaStream_t stream);

} // namespace gx

#endif
