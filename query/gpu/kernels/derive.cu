/* Kernels that derive look-up tables, presence maps with tf classes, and bounds of impacts from
 * the lists. Tables and maps are derived when an index is prepared, bounds at the first use of a
 * scorer and its parameters. Each takes one pass over the lists at decode speed. */
#include "query/gpu/kernels/kernels.cuh"

#include <cub/block/block_scan.cuh>

namespace gx {

constexpr uint32_t THREADS = 256;

/* ---- tables ---- */

/* Entry e is the last block whose head is <= e << shift, or block 0. For a docid of the entry no
 * search needs to begin at an earlier block. */
static __global__ void fill_tables(const __grid_constant__ gpu_index X, const list_aux *lists, uint32_t *tables)
{
    const list_aux l = lists[blockIdx.x];
    if (l.table_shift == NO_TABLE_SHIFT)
        return;
    const gx_list_entry e = X.lists[l.list];
    const uint32_t *heads = X.heads + e.first_block, n_blocks = (e.df - 1) / X.block_len + 1;
    const uint32_t entries = ((X.n_docs - 1) >> l.table_shift) + 1;
    for (uint32_t i = threadIdx.x; i < entries; i += THREADS) {
        const uint32_t doc = i << l.table_shift;
        uint32_t lo = 0, hi = n_blocks; /* heads[lo] <= doc or lo == 0; heads[hi] > doc */
        while (hi - lo > 1) {
            const uint32_t mid = lo + (hi - lo) / 2;
            if (__ldg(heads + mid) <= doc)
                lo = mid;
            else
                hi = mid;
        }
        tables[l.table + i] = lo;
    }
}

void derive_tables(const gpu_index &X, const list_aux *lists, uint32_t n, uint32_t *tables, cudaStream_t stream)
{
    if (n)
        fill_tables<<<n, THREADS, 0, stream>>>(X, lists, tables);
}

/* ---- maps ---- */

/* Raises the 2-bit class of a slot to at least c. */
__device__ __forceinline__ void raise_class(uint32_t *classes, uint32_t slot, uint32_t c)
{
    uint32_t *word = classes + (slot >> 4);
    const uint32_t shift = (slot & 15) * 2;
    uint32_t old = __ldcg(word);
    while ((old >> shift & 3) < c) {
        const uint32_t was = atomicCAS(word, old, (old & ~(3u << shift)) | c << shift);
        if (was == old)
            break;
        old = was;
    }
}

constexpr uint32_t BLOCKS_PER_MAP = 8; /* thread blocks a list */

template <class P>
static __global__ void __launch_bounds__(THREADS)
    fill_maps(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_codings codings, const list_aux *lists,
              uint32_t *maps)
{
    const list_aux l = lists[blockIdx.x];
    const uint32_t lane = threadIdx.x & 31, warps = BLOCKS_PER_MAP * THREADS / 32;
    if (l.map_shift == NO_MAP_SHIFT)
        return;
    const whole_list w = open_list(X, codings, l.list);
    for (uint32_t j = blockIdx.y * (THREADS / 32) + (threadIdx.x >> 5); j < w.n_blocks; j += warps) {
        for_block<P>(X, w, j, lane, [&](uint32_t doc, uint32_t tf) {
            const uint32_t slot = doc >> l.map_shift;
            atomicOr(maps + l.map + (slot >> 5), 1u << (slot & 31));
            if (l.classes != NO_CLASSES && tf_class(tf))
                raise_class(maps + l.classes, slot, tf_class(tf));
        });
    }
}

/* Fills the ranks of dense maps: the bits set before each group. */
static __global__ void __launch_bounds__(THREADS)
    fill_ranks(const __grid_constant__ gpu_index X, const list_aux *lists, uint32_t *maps)
{
    typedef cub::BlockScan<uint32_t, THREADS> scan;
    __shared__ typename scan::TempStorage space;
    const list_aux l = lists[blockIdx.x];
    if (l.map_shift != EXACT_SLOTS)
        return;
    const uint32_t n_groups = (X.n_docs - 1) / (32 * RANK_WORDS) + 1;
    uint32_t before = 0;
    for (uint32_t first = 0; first < n_groups; first += THREADS) {
        const uint32_t g = first + threadIdx.x;
        uint32_t bits = 0, rank, total;
        for (uint32_t i = 0; g < n_groups && i < RANK_WORDS; ++i)
            bits += __popc(maps[l.map + g * RANK_WORDS + i]);
        scan(space).ExclusiveSum(bits, rank, total);
        if (g < n_groups)
            maps[l.map + X.rank_offset + g] = before + rank;
        before += total;
        __syncthreads();
    }
}

void derive_maps(const gpu_index &X, uint32_t coding, const gpu_codings &codings, const list_aux *lists, uint32_t n,
                 uint32_t *maps, cudaStream_t stream)
{
    if (n == 0)
        return;
    with_pair(coding, [&](auto pair) {
        fill_maps<decltype(pair)><<<dim3(n, BLOCKS_PER_MAP), THREADS, 0, stream>>>(X, codings, lists, maps);
    });
    fill_ranks<<<n, THREADS, 0, stream>>>(X, lists, maps);
}

/* ---- bounds ---- */

const uint32_t kth_ranks[N_KTH] = {1,    2,    3,     5,     7,     10,     14,     20,     30,   50,
                                   70,   100,  140,   200,   300,   500,    700,    1000,   1400, 2000,
                                   3000, 5000, 10000, 20000, 50000, 100000, 200000, 1000000};

struct kth_levels {
    uint32_t at[N_KTH];
};

constexpr uint32_t LEVELS = 256;

template <class P>
static __global__ void __launch_bounds__(THREADS)
    fill_bounds(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_codings codings,
                const __grid_constant__ bounds_args args, const __grid_constant__ kth_levels levels)
{
    __shared__ uint32_t histogram[LEVELS], best;
    const uint32_t lane = threadIdx.x & 31, list = blockIdx.x, number = args.aux_of[list];
    const bool is_long = number != UINT32_MAX;
    static_assert(LEVELS == THREADS, "a thread a level");
    histogram[threadIdx.x] = 0;
    if (threadIdx.x == 0)
        best = 0;
    __syncthreads();
    const whole_list w = open_list(X, codings, list);
    const bool linear = gx_scorer_is_linear(args.norm);
    float most = 0;
    if (linear && is_long) { /* levels are fractions of the list's greatest impact, which must be known first */
        for (uint32_t j = threadIdx.x >> 5; j < w.n_blocks; j += THREADS / 32)
            for_block<P>(X, w, j, lane, [&](uint32_t, uint32_t tf) { most = fmaxf(most, (float)tf / GX_LINEAR_K); });
        atomicMax(&best, __float_as_uint(most));
        __syncthreads();
        most = __uint_as_float(best);
    }
    const float levels_a_unit = linear ? LEVELS / most : LEVELS;
    for (uint32_t j = threadIdx.x >> 5; j < w.n_blocks; j += THREADS / 32) {
        for_block<P>(X, w, j, lane, [&](uint32_t doc, uint32_t tf) {
            const float f = (float)tf, x = __fdiv_rn(f, __fadd_rn(f, gx_bm25_K(args.norm, __ldg(X.doc_lens + doc))));
            most = fmaxf(most, x);
            if (is_long)
                atomicAdd(&histogram[min((uint32_t)(x * levels_a_unit), LEVELS - 1)], 1);
        });
    }
    const uint32_t bits = __reduce_max_sync(ALL_LANES, __float_as_uint(most));
    if (lane == 0)
        atomicMax(&best, bits);
    __syncthreads();
    if (threadIdx.x == 0)
        args.best[list] = __uint_as_float(best);
    if (!is_long)
        return;
    if (threadIdx.x < N_KTH) { /* from the highest level down */
        const uint32_t k = levels.at[threadIdx.x];
        uint32_t sum = 0;
        int level = LEVELS - 1;
        for (; level > 0; --level) {
            sum += histogram[level];
            if (sum >= k)
                break;
        }

        /* 0: the list has fewer postings, or the level is 0 */
        args.kth[(size_t)number * N_KTH + threadIdx.x] = (uint8_t)level;
    }
}

void derive_bounds(const gpu_index &X, uint32_t coding, const gpu_codings &codings, const bounds_args &args,
                   cudaStream_t stream)
{
    kth_levels levels;
    memcpy(levels.at, kth_ranks, sizeof levels.at);
    if (X.n_terms == 0)
        return;
    with_pair(coding, [&](auto pair) {
        fill_bounds<decltype(pair)><<<X.n_terms, THREADS, 0, stream>>>(X, codings, args, levels);
    });
}

} // namespace gx
