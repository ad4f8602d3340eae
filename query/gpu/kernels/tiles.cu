/* The search by tiles: an OR of many terms, exact, with accumulators.
 *
 * A query of many terms touches a large part of all documents, and lists at a time would look up
 * most of them in most lists. Here a thread block takes one tile of one query and adds the impacts
 * of all postings there in shared memory, list by list. It leaves out what cannot matter:
 *
 *   bound_tiles   bounds each tile's scores by the lists' greatest impacts in the tile, and sorts
 *                 the tiles by falling bound, so that the threshold rises early
 *   search_tiles  takes the tiles of all queries in that order, the best tile of each query first.
 *                 A tile's lists are read by falling bound in several phases. After each of them,
 *                 what the remaining lists can add is known, and ranges of SUB_DOCS documents of
 *                 which none can reach the threshold any more are dead. Blocks of postings that
 *                 overlap no live range are not decoded.
 *
 * Leaving out tiles by bounds, the best first, is after Mallia, Suel and Tonellotto, "Faster Learned
 * Sparse Retrieval with Block-Max Pruning" (SIGIR 2024), section 3; that the lists of a window of
 * documents need not be read once the rest of their bounds is small, after Turtle and Flood, "Query
 * Evaluation: Strategies and Optimizations" (IPM 1995), their MaxScore.
 *
 * The documents of the live ranges have their exact scores. Those that reach the threshold become
 * candidates. If there are many more of them than k, a histogram of the tile first raises the
 * tile's own threshold. All candidates are counted in the query's histogram, which gives the
 * threshold for the other tiles as in the search by lists (threshold.cuh). */
#include "query/gpu/kernels/threshold.cuh"
#include "query/gpu/kernels/tiles.cuh"

namespace gx {

constexpr uint32_t SUB_SHIFT = 8, SUB_DOCS = 1u << SUB_SHIFT, N_SUBS = TILE_DOCS / SUB_DOCS;
static_assert(N_SUBS == 64, "two words of live ranges");
constexpr uint32_t GROUP = 64;        /* lists whose descriptions are in shared memory at a time */
constexpr uint32_t MAX_ENTRIES = 384; /* blocks that are decoded between two barriers, at most */
constexpr uint32_t PHASES = 4, LEAST_PHASE_BLOCKS = 96;
constexpr uint32_t NO_LENGTH = UINT16_MAX; /* a document's length is not known here */

/* ---- rows ---- */

constexpr uint32_t ROW_THREADS = 256;

static __global__ void __launch_bounds__(ROW_THREADS)
    fill_starts(const __grid_constant__ gpu_index X, const __grid_constant__ tile_rows rows, uint32_t *starts)
{
    const gx_list_entry e = X.lists[rows.lists[blockIdx.x]];
    const uint32_t *heads = X.heads + e.first_block, n_blocks = (e.df - 1) / X.block_len + 1;
    for (uint32_t t = threadIdx.x; t <= rows.n_tiles; t += ROW_THREADS) {
        const uint64_t doc = (uint64_t)t << TILE_SHIFT;
        uint32_t lo = 0, hi = n_blocks; /* heads[lo] <= doc or lo == 0; heads[hi] > doc */
        while (hi - lo > 1) {
            const uint32_t mid = lo + (hi - lo) / 2;
            if (__ldg(heads + mid) <= doc)
                lo = mid;
            else
                hi = mid;
        }
        starts[(size_t)blockIdx.x * (rows.n_tiles + 1) + t] = lo;
    }
}

void derive_tile_starts(const gpu_index &X, const tile_rows &rows, uint32_t *starts, cudaStream_t stream)
{
    if (rows.n_rows)
        fill_starts<<<rows.n_rows, ROW_THREADS, 0, stream>>>(X, rows, starts);
}

/* m of (m + 1) / 256, rounded up; the factor covers three roundings. */
__device__ __forceinline__ uint8_t maximum_of(float part, float best)
{
    const float levels = part / best * (256 * (1 + 0x1p-20f));
    const uint32_t m = __float2uint_ru(levels);
    return (uint8_t)(m < 2 ? 1 : m > 256 ? 255 : m - 1);
}

template <class P>
static __global__ void __launch_bounds__(ROW_THREADS)
    fill_maxima(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_codings codings,
                const __grid_constant__ tile_rows rows, gx_scorer norm, uint8_t *maxima)
{
    extern __shared__ uint4 shared[];
    __shared__ uint32_t best;
    uint32_t *const most = reinterpret_cast<uint32_t *>(shared); /* [n_tiles], bits of floats */
    const uint32_t lane = threadIdx.x & 31;
    for (uint32_t t = threadIdx.x; t < rows.n_tiles; t += ROW_THREADS)
        most[t] = 0;
    if (threadIdx.x == 0)
        best = 0;
    __syncthreads();
    const whole_list w = open_list(X, codings, rows.lists[blockIdx.x]);
    for (uint32_t j = threadIdx.x >> 5; j < w.n_blocks; j += ROW_THREADS / 32) {
        for_block<P>(X, w, j, lane, [&](uint32_t doc, uint32_t tf) {
            const float f = (float)tf, x = __fdiv_rn(f, __fadd_rn(f, gx_bm25_K(norm, __ldg(X.doc_lens + doc))));
            atomicMax(&most[doc >> TILE_SHIFT], __float_as_uint(x));
        });
    }
    __syncthreads();
    for (uint32_t t = threadIdx.x; t < rows.n_tiles; t += ROW_THREADS)
        atomicMax(&best, most[t]);
    __syncthreads();
    for (uint32_t t = threadIdx.x; t < rows.n_tiles; t += ROW_THREADS)
        maxima[(size_t)blockIdx.x * rows.n_tiles + t] =
            most[t] ? maximum_of(__uint_as_float(most[t]), __uint_as_float(best)) : 0;
}

void derive_tile_maxima(const gpu_index &X, uint32_t coding, const gpu_codings &codings, const tile_rows &rows,
                        gx_scorer norm, uint8_t *maxima, cudaStream_t stream)
{
    if (rows.n_rows == 0)
        return;
    with_pair(coding, [&](auto pair) {
        fill_maxima<decltype(pair)>
            <<<rows.n_rows, ROW_THREADS, rows.n_tiles * 4, stream>>>(X, codings, rows, norm, maxima);
    });
}

/* Returns a bound of a list's impacts in a tile with maximum m; bound: of all its impacts. It is 0
 * only where there are none. */
__device__ __forceinline__ uint32_t tile_bound(uint32_t bound, uint32_t m)
{
    return m ? (uint32_t)((uint64_t)bound * (m + 1) >> 8) + 2 : 0;
}

/* ---- the order of a query's tiles ---- */

constexpr uint32_t BOUND_THREADS = 512, BOUND_WARPS = BOUND_THREADS / 32;

__host__ __device__ static inline uint32_t power_of_two(uint32_t n)
{
    uint32_t m = 1;
    while (m < n)
        m *= 2;
    return m;
}

static size_t bound_bytes(uint32_t n_tiles)
{
    return (size_t)power_of_two(n_tiles) * 8 + n_tiles * 4 + BOUND_WARPS * ((n_tiles + 31) / 32) * 4;
}

/* Adds the bound of a list without a row to the tiles in which it has postings. `seen` has a bit a
 * tile. */
template <class P>
__device__ __forceinline__ void bound_short_list(const gpu_index &X, const gpu_term *t, uint32_t n_tiles,
                                                 uint32_t *sums, uint32_t *seen, uint32_t lane)
{
    const term_blocks at = read(&t->at);
    const term_payload p = read(&t->payload);
    const whole_list l = view_list(X, p.words, at.first_block, p.df, at.n_blocks, t->weight.codecs);
    const uint32_t bound = t->filter.bound;
    for (uint32_t i = lane; i < (n_tiles + 31) / 32; i += 32)
        seen[i] = 0;
    __syncwarp();
    for (uint32_t j = 0; j < at.n_blocks; ++j) {
        for_block<P>(X, l, j, lane, [&](uint32_t doc, uint32_t) {
            const uint32_t tile = doc >> TILE_SHIFT, bit = 1u << (tile & 31);
            if (!(atomicOr(&seen[tile >> 5], bit) & bit))
                atomicAdd(&sums[tile], bound);
        });
    }
    __syncwarp();
}

/* A thread block bounds and sorts the tiles of a query. */
template <class P>
static __global__ void __launch_bounds__(BOUND_THREADS)
    bound_tiles(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R,
                const __grid_constant__ tile_rows rows, const __grid_constant__ tiled_batch B)
{
    extern __shared__ uint4 shared[];
    const uint32_t n = rows.n_tiles, m = power_of_two(n), warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    unsigned long long *const keys = reinterpret_cast<unsigned long long *>(shared); /* [m] */
    uint32_t *const sums = reinterpret_cast<uint32_t *>(keys + m);                   /* [n] */
    uint32_t *const seen = sums + n;
    const tiled_query tq = B.queries[blockIdx.x];
    const gpu_query Q = R.queries[tq.query];
    const gpu_term *terms = R.terms + Q.first_term;
    if (Q.after != NO_QUERY && __ldcg(&R.states[Q.after].count) >= Q.k) {
        if (threadIdx.x == 0)
            B.n_live[blockIdx.x] = 0;
        return;
    }
    for (uint32_t t = threadIdx.x; t < n; t += BOUND_THREADS) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < Q.n_terms; ++i) {
            const term_filter f = read(&terms[i].filter);
            if (f.map != NO_ROW)
                sum += tile_bound(f.bound, __ldg(tq.maxima + (size_t)f.map * n + t));
        }
        sums[t] = sum;
    }
    __syncthreads();
    for (uint32_t i = warp; i < Q.n_terms; i += BOUND_WARPS) {
        if (terms[i].filter.map == NO_ROW)
            bound_short_list<P>(X, terms + i, n, sums, seen + warp * ((n + 31) / 32), lane);
    }
    __syncthreads();
    uint32_t live = 0;
    for (uint32_t t = threadIdx.x; t < m; t += BOUND_THREADS) {
        const bool reaches = t < n && sums[t] >= Q.initial_threshold;
        keys[t] = reaches ? (unsigned long long)sums[t] << 32 | t : 0;
        live += reaches;
    }
    if (threadIdx.x == 0)
        sums[0] = 0;
    for (uint32_t width = 2; width <= m; width *= 2) {
        for (uint32_t step = width / 2; step; step /= 2) {
            __syncthreads();
            for (uint32_t i = threadIdx.x; i < m / 2; i += BOUND_THREADS) {
                const uint32_t a = (i / step) * 2 * step + i % step, b = a + step;
                const unsigned long long x = keys[a], y = keys[b];
                if (a & width ? x > y : x < y) {
                    keys[a] = y;
                    keys[b] = x;
                }
            }
        }
    }
    __syncthreads();
    atomicAdd(&sums[0], live);
    __syncthreads();
    if (threadIdx.x == 0)
        B.n_live[blockIdx.x] = sums[0];
    for (uint32_t t = threadIdx.x; t < sums[0]; t += BOUND_THREADS)
        B.order[(size_t)blockIdx.x * n + t] = make_uint2((uint32_t)(keys[t] >> 32), (uint32_t)keys[t]);
}

/* ---- a tile ---- */

/* A list of the query, in the tile. */
struct tile_list {
    const uint32_t *words;          /* its payload */
    uint32_t first_block, n_blocks; /* of the whole list */
    uint32_t df, tf_begin, codecs;
    uint32_t begin;   /* the first block that may have postings in the tile */
    uint32_t entries; /* blocks of the group's lists before this one's */
    uint32_t rest;    /* what the lists after this one can add */
    float w;
    uint32_t unused;
};

/* A block that is to be decoded: where its docids and tfs begin in the list's payload; its first
 * docid, less that of the tile; the list, the words of both, and whether it is the list's last
 * block. */
constexpr uint32_t ENTRY_LIST = 6, ENTRY_LAST = 1u << 31;
static_assert(GROUP == 1u << ENTRY_LIST && ENTRY_LIST + 2 * TILE_WORD_BITS < 32, "a word has room for all");

/* Whole blocks of GPU-BP128 of which docids have up to 16 bits and tfs up to 8 are short, if no impact
 * rounds to 0: a lane reads them by few loads, and before it needs them. */
template <class P> constexpr bool HAS_SHORT = false;
template <> constexpr bool HAS_SHORT<pair_gpubp128> = true;
constexpr uint32_t SHORT_DOCID_WORDS = 16 * 128 / 32, SHORT_TF_WORDS = 8 * 128 / 32;

template <bool LINEAR> struct tile_shape {
    static constexpr uint32_t BLOCKS = LINEAR ? 3 : 2; /* thread blocks an SM, by their shared memory */
    static constexpr uint32_t THREADS = LINEAR ? 384 : 512, WARPS = THREADS / 32;
};

template <bool LINEAR> struct tile_space {
    uint32_t scores[TILE_DOCS];            /* all 0 between tiles */
    uint32_t beside[32];                   /* where a lane adds what is not of the tile */
    uint16_t lens[LINEAR ? 8 : TILE_DOCS]; /* of documents, as the scorer counts them, or NO_LENGTH */
    uint4 entries[MAX_ENTRIES];            /* n_short and, from the end, n_entries; or a histogram */
    tile_list lists[GROUP];
    uint32_t live[2][2];        /* bits of ranges, two sets in turn */
    uint32_t n_lists, n_blocks; /* of the group */
    uint32_t n_entries, n_short, n_found, T, slot, tile, bound, decoded;
    uint32_t any_long; /* not linear: whether a document of the tile has NO_LENGTH */
};

/* What a warp of the thread block has taken from the queue: items of which a tile each is still to
 * be searched. */
struct item_queue {
    uint32_t mask, slot; /* the lanes that have one, and each lane's */
    uint2 entry;
};

/* Called by one warp. Finds the next tile that reaches its query's threshold. s.slot is NO_QUERY if
 * there is none. */
template <bool LINEAR>
__device__ __forceinline__ void next_tile(const gpu_batch &R, const tile_rows &rows, const tiled_batch &B,
                                          uint32_t chunk, item_queue &queue, tile_space<LINEAR> &s, uint32_t lane)
{
    const uint64_t total = (uint64_t)B.n * rows.n_tiles;
    for (;;) {
        while (!queue.mask) {
            uint32_t first = 0;
            if (lane == 0)
                first = atomicAdd(B.next_item, chunk);
            const uint64_t item = (uint64_t)__shfl_sync(ALL_LANES, first, 0) + lane;
            if (item - lane >= total) {
                if (lane == 0)
                    s.slot = NO_QUERY;
                return;
            }
            const uint32_t rank = (uint32_t)(item / B.n);
            bool live = lane < chunk && item < total;
            queue.slot = (uint32_t)(item % B.n);
            live = live && rank < __ldcg(B.n_live + queue.slot);
            if (live) {
                queue.entry = __ldcg(B.order + (size_t)queue.slot * rows.n_tiles + rank);
                live = queue.entry.x >= __ldcg(&R.states[B.queries[queue.slot].query].threshold);
            }
            queue.mask = __ballot_sync(ALL_LANES, live);
        }
        const uint32_t from = (uint32_t)__ffs((int)queue.mask) - 1, slot = __shfl_sync(ALL_LANES, queue.slot, from);
        const uint32_t bound = __shfl_sync(ALL_LANES, queue.entry.x, from),
                       tile = __shfl_sync(ALL_LANES, queue.entry.y, from);
        queue.mask &= queue.mask - 1;
        const uint32_t T = __ldcg(&R.states[B.queries[slot].query].threshold);
        if (bound < T)
            continue;
        if (lane == 0) {
            s.slot = slot;
            s.tile = tile;
            s.bound = bound;
            s.T = T;
            s.n_entries = s.n_short = s.n_found = s.any_long = 0;
        }
        return;
    }
}

/* Called by one warp. Describes up to GROUP lists from terms[first] on. *rest: what these and the
 * later lists can add. */
template <bool LINEAR>
__device__ __forceinline__ void open_group(const gpu_index &X, const tile_rows &rows, const tiled_query &tq,
                                           const gpu_term *terms, uint32_t n_terms, uint32_t first, uint32_t tile,
                                           uint32_t &rest, tile_space<LINEAR> &s, uint32_t lane)
{
    const uint32_t n = min(n_terms - first, GROUP);
    uint32_t before = 0;
#pragma unroll
    for (uint32_t half = 0; half < GROUP; half += 32) {
        const uint32_t i = half + lane;
        uint32_t blocks = 0, ub = 0;
        tile_list l = {};
        if (i < n) {
            const gpu_term *t = terms + first + i;
            const term_blocks at = read(&t->at);
            const term_payload p = read(&t->payload);
            const term_filter f = read(&t->filter);
            const term_weight weight = read(&t->weight);
            l.words = X.payload + p.words;
            l.first_block = at.first_block;
            l.n_blocks = at.n_blocks;
            l.df = p.df;
            l.tf_begin = p.tf_begin;
            l.codecs = weight.codecs;
            l.w = LINEAR ? weight.w * 0x1p-60f : weight.w; /* GX_LINEAR_K is 2^60 */
            blocks = at.n_blocks;
            if (f.map != NO_ROW) {
                const uint32_t *starts = rows.starts + (size_t)f.map * (rows.n_tiles + 1) + tile;
                const uint32_t m = __ldg(tq.maxima + (size_t)f.map * rows.n_tiles + tile);
                l.begin = __ldg(starts);
                blocks = m ? __ldg(starts + 1) + 1 - l.begin : 0;
                ub = tile_bound(f.bound, m);
            }
        }
        const uint32_t to = warp_inclusive(blocks, lane), added = warp_inclusive(ub, lane);
        l.entries = before + to - blocks;
        l.rest = rest - added;
        before += __shfl_sync(ALL_LANES, to, 31);
        rest -= __shfl_sync(ALL_LANES, added, 31);
        s.lists[i] = l;
    }
    if (lane == 0) {
        s.n_lists = n;
        s.n_blocks = before;
    }
}

/* Returns the list to which block `at` of the group's belongs. */
template <bool LINEAR> __device__ __forceinline__ uint32_t list_of(const tile_space<LINEAR> &s, uint32_t at)
{
    uint32_t lo = 0, hi = s.n_lists; /* lists[lo].entries <= at < lists[hi].entries */
    while (hi - lo > 1) {
        const uint32_t mid = (lo + hi) / 2;
        if (s.lists[mid].entries <= at)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* The bits of a tile's ranges that overlap documents [first, last] of it. */
__device__ __forceinline__ uint2 bits_of(uint32_t first, uint32_t last)
{
    const uint64_t bits = (~(uint64_t)0 >> (63 - (last >> SUB_SHIFT))) & (~(uint64_t)0 << (first >> SUB_SHIFT));
    return make_uint2((uint32_t)bits, (uint32_t)(bits >> 32));
}

/* A thread adds block `at` of the group's to the entries if it overlaps a live range. */
template <class P, bool LINEAR>
__device__ __forceinline__ void add_entry(const gpu_index &X, tile_space<LINEAR> &s, uint32_t at, uint32_t begin,
                                          uint32_t len, float least_w, uint2 live)
{
    const uint32_t number = list_of(s, at);
    const tile_list &l = s.lists[number];
    const uint32_t j = l.begin + (at - l.entries), b = l.first_block + j;
    const bool last = j + 1 == l.n_blocks;
    const uint32_t head = __ldg(X.heads + b), next = last ? X.n_docs : __ldg(X.heads + b + 1);
    const uint32_t d0 = j ? __ldg(X.docid_ends + b - 1) : 0, d1 = __ldg(X.docid_ends + b);
    const uint32_t t0 = j ? __ldg(X.tf_ends + b - 1) : l.tf_begin, t1 = __ldg(X.tf_ends + b);
    if (head >= begin + len || next <= begin)
        return;
    const uint2 bits = bits_of(head > begin ? head - begin : 0, min(next - begin, len) - 1);
    if (!(bits.x & live.x) && !(bits.y & live.y))
        return;
    constexpr uint32_t most = (1u << TILE_WORD_BITS) - 1;
    const bool is_short = HAS_SHORT<P> && !last && d1 - d0 <= SHORT_DOCID_WORDS && t1 - t0 <= SHORT_TF_WORDS &&
                          (LINEAR || !s.any_long) && l.w >= least_w;
    s.entries[is_short ? atomicAdd(&s.n_short, 1) : MAX_ENTRIES - 1 - atomicAdd(&s.n_entries, 1)] =
        make_uint4(d0, t0, head - begin,
                   number | min(d1 - d0, most) << ENTRY_LIST | min(t1 - t0, most) << (ENTRY_LIST + TILE_WORD_BITS) |
                       (last ? ENTRY_LAST : 0));
}

/* The quotient a / b as __fdiv_rn rounds it, for 1 <= b and quotients from 2^-60 to 2^60; other
 * quotients of a >= 0 may be anything below 2^-50. It has the instructions of __fdiv_rn without its
 * test for numbers that need more of them. */
__device__ __forceinline__ float divide(float a, float b)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(b));
    y = __fmaf_rn(__fmaf_rn(-b, y, 1), y, y);
    float q = __fmul_rn(a, y);
    q = __fmaf_rn(__fmaf_rn(-b, q, a), y, q);
    return __fmaf_rn(__fmaf_rn(-b, q, a), y, q);
}

/* x as a float, for x < 2^23, by instructions of the pipe that has most of them. */
constexpr uint32_t FLOAT_2_23 = 0x4b000000;
__device__ __forceinline__ float small_float(uint32_t x)
{
    return __fadd_rn(__uint_as_float(x | FLOAT_2_23), -0x1p23f);
}

/* What a lane reads of a short block: its four docids lie in three words, its four tfs in two. */
struct short_block {
    uint32_t docids[3], tfs[2];
};

/* Loads the short block of an entry. */
template <bool LINEAR>
__device__ __forceinline__ short_block fetch_short(const tile_space<LINEAR> &s, uint4 e, uint32_t lane)
{
    short_block b;
    constexpr uint32_t most = (1u << TILE_WORD_BITS) - 1;
    const uint32_t *words = s.lists[e.w & (GROUP - 1)].words;
    /* a block of n words has n / 4 bits an integer, so that a lane's begin at bit n * lane */
    const uint32_t *d = words + (e.x + ((e.w >> ENTRY_LIST & most) * lane >> 5));
    const uint32_t *t = words + (e.y + ((e.w >> (ENTRY_LIST + TILE_WORD_BITS) & most) * lane >> 5));
#pragma unroll
    for (uint32_t i = 0; i < 3; ++i)
        b.docids[i] = __ldg(d + i);
#pragma unroll
    for (uint32_t i = 0; i < 2; ++i)
        b.tfs[i] = __ldg(t + i);
    return b;
}

/* A warp adds the impacts of a short block's postings. */
template <bool LINEAR>
__device__ __forceinline__ void add_short(tile_space<LINEAR> &s, gx_scorer norm, uint4 e, const short_block &b,
                                          uint32_t lane)
{
    constexpr uint32_t most = (1u << TILE_WORD_BITS) - 1;
    const uint32_t d_bit = (e.w >> ENTRY_LIST & most) * lane, d_bits = e.w >> (ENTRY_LIST + 2) & most >> 2;
    const uint32_t t_bit = (e.w >> (ENTRY_LIST + TILE_WORD_BITS) & most) * lane,
                   t_bits = e.w >> (ENTRY_LIST + TILE_WORD_BITS + 2) & most >> 2;
    const float w = s.lists[e.w & (GROUP - 1)].w;
    const uint32_t low = __funnelshift_r(b.docids[0], b.docids[1], d_bit),
                   high = __funnelshift_r(b.docids[1], b.docids[2], d_bit), mask = (1u << d_bits) - 1;
    const uint32_t half_low = __funnelshift_rc(low, high, 2 * d_bits),
                   half_high = __funnelshift_rc(high, 0, 2 * d_bits);
    uint32_t d[4] = {low & mask, __funnelshift_r(low, high, d_bits) & mask, half_low & mask,
                     __funnelshift_r(half_low, half_high, d_bits) & mask};
    (void)docids(d, e.z - 1, lane);
    const uint32_t x = __funnelshift_r(b.tfs[0], b.tfs[1], t_bit), t_mask = (1u << t_bits) - 1;
    uint32_t impacts[4];
#pragma unroll
    for (uint32_t v = 0; v < 4; ++v) {
        /* tfs are stored less 1 */
        const float f = __fadd_rn(__uint_as_float((x >> (v * t_bits) & t_mask) | FLOAT_2_23), 1 - 0x1p23f);
        float part = __fmul_rn(w, f);
        if constexpr (!LINEAR) {
            const float len_of = small_float(s.lens[min(d[v], TILE_DOCS - 1)]);
            part = divide(part, __fadd_rn(f, __fadd_rn(norm.c0, __fmul_rn(norm.c1, len_of))));
        }
        impacts[v] = __float2uint_rn(part);
    }
#pragma unroll
    for (uint32_t v = 0; v < 4; ++v) /* without a branch; beside follows scores */
        atomicAdd(s.scores + min(d[v], TILE_DOCS + lane), impacts[v]);
}

template <bool LINEAR>
__device__ __forceinline__ uint32_t tile_impact(const gpu_index &X, const tile_space<LINEAR> &s, gx_scorer norm,
                                                float w, uint32_t tf, uint32_t at, uint32_t doc)
{
    const float f = (float)tf;
    float x;
    if constexpr (LINEAR) {
        x = __fmul_rn(w, f); /* bm25.h: a factor of 2^60 in dividend and divisor changes no bit */
    } else {
        const uint32_t len = s.lens[at];
        const float K = len != NO_LENGTH ? __fadd_rn(norm.c0, __fmul_rn(norm.c1, (float)len))
                                         : gx_bm25_K(norm, __ldg(X.doc_lens + doc));
        x = __fdiv_rn(__fmul_rn(w, f), __fadd_rn(f, K));
    }
    const uint32_t i = __float2uint_rn(x);
    return i ? i : 1;
}

/* A warp adds the impacts of a block's postings. */
template <class P, bool LINEAR>
__device__ __forceinline__ void add_block(const gpu_index &X, tile_space<LINEAR> &s, gx_scorer norm, uint4 e,
                                          uint32_t begin, uint32_t len, uint32_t lane)
{
    typedef typename P::template doc<true> D;
    typedef typename P::template tf<true> T;
    const tile_list &l = s.lists[e.w & (GROUP - 1)];
    constexpr uint32_t most = (1u << TILE_WORD_BITS) - 1;
    const uint32_t block = block_len<P>(X), n = e.w & ENTRY_LAST ? l.df - (l.n_blocks - 1) * block : block;
    const uint32_t codecs = l.codecs;
    const float w = l.w;
    const uint32_t *words = l.words;
    D doc;
    T tf;
    doc.open(words + e.x, e.w >> ENTRY_LIST & most, n, lane, decoder_arg<D>(codecs & 0xffff));
    tf.open(words + e.y, e.w >> (ENTRY_LIST + TILE_WORD_BITS) & most, n, lane, decoder_arg<T>(codecs >> 16));
    uint32_t carry = e.z - 1; /* docids are relative to the tile's first, modulo 2^32 */
    for (uint32_t i = 0; i < n; i += D::SEG) {
        uint32_t d[D::V], t[T::V];
        doc.next(lane, d);
        tf.next(lane, t);
        carry = docids(d, carry, lane);
        const uint32_t mine = n - min(n, i + lane * D::V);
#pragma unroll
        for (uint32_t v = 0; v < D::V; ++v) {
            if (d[v] < len && v < mine)
                atomicAdd(&s.scores[d[v]], tile_impact<LINEAR>(X, s, norm, w, t[v] + 1, d[v], begin + d[v]));
        }
    }
}

/* A warp adds every WARPS-th of n short blocks, each loaded while the one before it is added. It is
 * not inlined, so that all registers are free for it; it names the shared memory again, so that the
 * compiler knows what that is. */
template <bool LINEAR> __device__ __noinline__ void add_short_blocks(gx_scorer norm, uint32_t n)
{
    extern __shared__ uint4 shared[];
    tile_space<LINEAR> &s = *reinterpret_cast<tile_space<LINEAR> *>(shared);
    constexpr uint32_t WARPS = tile_shape<LINEAR>::WARPS;
    const uint32_t warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    uint32_t i = warp;
    if (i >= n)
        return;
    uint4 e = s.entries[i];
    short_block b = fetch_short(s, e, lane);
    for (;;) { /* two blocks in turn, so that none is moved while it is loaded */
        if ((i += WARPS) >= n) {
            add_short(s, norm, e, b, lane);
            return;
        }
        const uint4 e2 = s.entries[i];
        const short_block b2 = fetch_short(s, e2, lane);
        add_short(s, norm, e, b, lane);
        if ((i += WARPS) >= n) {
            add_short(s, norm, e2, b2, lane);
            return;
        }
        e = s.entries[i];
        b = fetch_short(s, e, lane);
        add_short(s, norm, e2, b2, lane);
    }
}

/* The live ranges in which some document can still reach T, to live[to]. */
template <bool LINEAR>
__device__ __forceinline__ void keep_live(tile_space<LINEAR> &s, uint32_t from, uint32_t rest, uint32_t T,
                                          uint32_t warp, uint32_t lane)
{
    const uint4 *scores = reinterpret_cast<const uint4 *>(s.scores);
    for (uint32_t sub = warp; sub < N_SUBS; sub += tile_shape<LINEAR>::WARPS) {
        if (!(s.live[from][sub >> 5] >> (sub & 31) & 1))
            continue;
        const uint4 a = scores[sub * (SUB_DOCS / 4) + lane], b = scores[sub * (SUB_DOCS / 4) + 32 + lane];
        const uint32_t most = max(max(max(a.x, a.y), max(a.z, a.w)), max(max(b.x, b.y), max(b.z, b.w)));
        if (__reduce_max_sync(ALL_LANES, most) + rest >= T && lane == 0)
            atomicOr(&s.live[from ^ 1][sub >> 5], 1u << (sub & 31));
    }
}

/* Calls f(score, place in the tile) for this thread's documents of live ranges that reach T. In a
 * damaged index some places are those of no document. */
template <bool LINEAR, typename F>
__device__ __forceinline__ void for_reached(const tile_space<LINEAR> &s, uint32_t set, uint32_t T, uint32_t warp,
                                            uint32_t lane, F f)
{
    const uint4 *scores = reinterpret_cast<const uint4 *>(s.scores);
    for (uint32_t sub = warp; sub < N_SUBS; sub += tile_shape<LINEAR>::WARPS) {
        if (!(s.live[set][sub >> 5] >> (sub & 31) & 1))
            continue;
#pragma unroll
        for (uint32_t half = 0; half < 2; ++half) {
            const uint32_t i = sub * (SUB_DOCS / 4) + half * 32 + lane;
            const uint4 x = scores[i];
            if (x.x >= T)
                f(x.x, 4 * i);
            if (x.y >= T)
                f(x.y, 4 * i + 1);
            if (x.z >= T)
                f(x.z, 4 * i + 2);
            if (x.w >= T)
                f(x.w, 4 * i + 3);
        }
    }
}

/* Returns whether the query may return doc. */
__device__ __forceinline__ bool is_answer(const gpu_index &X, const gpu_batch &R, const gpu_query &Q, uint32_t doc)
{
    return doc < X.n_docs && is_selected(Q, R.terms + Q.first_term, doc);
}

/* Returns the threshold that the tile's own documents give: at least T. All threads call it. */
template <bool LINEAR>
__device__ __forceinline__ uint32_t tile_threshold(const gpu_index &X, const gpu_batch &R, tile_space<LINEAR> &s,
                                                   const gpu_query &Q, uint32_t set, uint32_t begin, uint32_t T,
                                                   uint32_t warp, uint32_t lane)
{
    uint32_t *const histogram = reinterpret_cast<uint32_t *>(s.entries);
    static_assert(BINS * 4 <= sizeof s.entries, "it has room there");
    for (uint32_t i = threadIdx.x; i < BINS; i += tile_shape<LINEAR>::THREADS)
        histogram[i] = 0;
    __syncthreads();
    for_reached(s, set, T, warp, lane, [&](uint32_t score, uint32_t at) {
        if (is_answer(X, R, Q, begin + at))
            atomicAdd(&histogram[score_bin(score, Q.bin_base, Q.bin_shift)], 1);
    });
    __syncthreads();
    if (warp == 0) {
        uint32_t sum = 0, bin = 0;
        for (uint32_t i = 0; i < BINS / 32; ++i)
            sum += histogram[lane * (BINS / 32) + i];
        uint32_t above = sum; /* documents in this lane's bins and all higher ones */
        for (uint32_t o = 1; o < 32; o <<= 1) {
            const uint32_t y = __shfl_down_sync(ALL_LANES, above, o);
            above += lane + o < 32 ? y : 0;
        }
        const bool here = above >= Q.k && above - sum < Q.k;
        above -= sum;
        for (uint32_t i = BINS / 32; here && i-- > 0 && above < Q.k;) {
            bin = lane * (BINS / 32) + i;
            above += histogram[bin];
        }
        if (here)
            s.T = max(T, bin_score(bin, Q.bin_base, Q.bin_shift));
    }
    __syncthreads();
    return s.T;
}

/* The tile's documents that reach T become candidates. */
template <bool LINEAR>
__device__ __forceinline__ void push_candidates(const gpu_index &X, const gpu_batch &R, const gpu_query &Q, uint32_t q,
                                                const tile_space<LINEAR> &s, uint32_t set, uint32_t begin, uint32_t T,
                                                uint32_t warp, uint32_t lane)
{
    uint32_t mine = 0;
    for_reached(s, set, T, warp, lane, [&](uint32_t, uint32_t at) { mine += is_answer(X, R, Q, begin + at); });
    const uint32_t to = warp_inclusive(mine, lane);
    uint32_t first = 0;
    if (__shfl_sync(ALL_LANES, to, 31) == 0)
        return;
    if (lane == 31)
        first = atomicAdd(&R.states[q].count, to);
    uint32_t at = __shfl_sync(ALL_LANES, first, 31) + to - mine;
    uint32_t *const histogram = R.histograms + (size_t)q * BINS;
    for_reached(s, set, T, warp, lane, [&](uint32_t score, uint32_t place) {
        if (!is_answer(X, R, Q, begin + place))
            return;
        if (at < Q.capacity)
            R.candidates[Q.candidates + at] = (unsigned long long)gx_key(score, begin + place);
        ++at;
        atomicAdd(histogram + score_bin(score, Q.bin_base, Q.bin_shift), 1);
    });
}

/* The ranges of a tile that have documents, and of them those of which the mask allows some. */
template <bool LINEAR>
__device__ __forceinline__ void first_live(tile_space<LINEAR> &s, const uint32_t *mask, uint32_t begin, uint32_t len)
{
    const uint32_t sub = threadIdx.x, first = begin / 32 + sub * (SUB_DOCS / 32);
    if (sub >= N_SUBS || sub << SUB_SHIFT >= len)
        return;
    bool allowed = mask == NULL;
    for (uint32_t i = 0; !allowed && i < SUB_DOCS / 32 && (first + i) * 32 < begin + len; ++i)
        allowed = __ldg(mask + first + i) != 0;
    if (allowed)
        atomicOr(&s.live[0][sub >> 5], 1u << (sub & 31));
}

/* Decodes the blocks of the group's lists, in phases. Returns the set of live ranges. */
template <class P, bool LINEAR>
__device__ __forceinline__ uint32_t add_group(const gpu_index &X, const gpu_batch &R, const gpu_query &Q, uint32_t q,
                                              tile_space<LINEAR> &s, uint32_t set, uint32_t begin, uint32_t len,
                                              bool is_last, uint32_t warp, uint32_t lane)
{
    typedef tile_shape<LINEAR> shape;
    const gx_scorer norm = query_scorer(Q);
    /* with this weight no impact rounds to 0: BM25's are at least w / (1 + K) */
    const float least_w = LINEAR ? 1 : 2 * (1 + norm.c0 + norm.c1 * NO_LENGTH);
    const uint32_t n_blocks = s.n_blocks, phase = max(LEAST_PHASE_BLOCKS, (n_blocks - 1) / PHASES + 1);
    for (uint32_t at = 0; at < n_blocks;) {
        /* a phase ends with a list, if the entries have room */
        const uint32_t wanted = min(at + phase, n_blocks) - 1, number = list_of(s, wanted);
        const uint32_t list_end = number + 1 < s.n_lists ? s.lists[number + 1].entries : n_blocks;
        const uint32_t end = min(list_end, at + MAX_ENTRIES);
        const uint2 live = make_uint2(s.live[set][0], s.live[set][1]);
        for (uint32_t i = at + threadIdx.x; i < end; i += shape::THREADS)
            add_entry<P>(X, s, i, begin, len, least_w, live);
        if (threadIdx.x == 0) {
            s.live[set ^ 1][0] = s.live[set ^ 1][1] = 0;
            s.T = max(s.T, __ldcg(&R.states[q].threshold));
        }
        __syncthreads();
        const uint32_t n = s.n_entries, n_short = s.n_short, T = s.T;
        if constexpr (HAS_SHORT<P>)
            add_short_blocks<LINEAR>(norm, n_short);
        for (uint32_t i = warp; i < n; i += shape::WARPS)
            add_block<P>(X, s, norm, s.entries[MAX_ENTRIES - 1 - i], begin, len, lane);
        const uint32_t rest = s.lists[number].rest;
        __syncthreads();
        if (threadIdx.x == 0) {
            s.n_entries = s.n_short = 0;
            s.decoded += n + n_short;
        }
        at = end;
        if (end == list_end && rest < T && !(is_last && end == n_blocks)) {
            keep_live(s, set, rest, T, warp, lane);
            set ^= 1;
        }
        __syncthreads();
        if (!(s.live[set][0] | s.live[set][1]))
            break;
    }
    return set;
}

/* The lengths of the tile's documents. */
__device__ __forceinline__ void load_lengths(const gpu_index &X, tile_space<false> &s, bool lossy, uint32_t begin,
                                             uint32_t len)
{
    for (uint32_t i = threadIdx.x; i < len; i += tile_shape<false>::THREADS) {
        const uint32_t dl = __ldg(X.doc_lens + begin + i), counted = lossy ? gx_lossy_length(dl) : dl;
        s.lens[i] = (uint16_t)min(counted, NO_LENGTH);
        if (counted >= NO_LENGTH)
            atomicOr(&s.any_long, 1);
    }
}

template <class P, bool LINEAR>
static __global__ void __launch_bounds__(tile_shape<LINEAR>::THREADS, tile_shape<LINEAR>::BLOCKS)
    search_tiles(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R,
                 const __grid_constant__ tile_rows rows, const __grid_constant__ tiled_batch B, uint32_t chunk)
{
    extern __shared__ uint4 shared[];
    tile_space<LINEAR> &s = *reinterpret_cast<tile_space<LINEAR> *>(shared);
    constexpr uint32_t THREADS = tile_shape<LINEAR>::THREADS, WARPS = tile_shape<LINEAR>::WARPS;
    const uint32_t warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    item_queue queue = {};
    uint32_t raises = NO_QUERY; /* the query whose histogram has grown */
    for (uint32_t i = threadIdx.x; i < TILE_DOCS / 4; i += THREADS)
        reinterpret_cast<uint4 *>(s.scores)[i] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x == 0)
        s.decoded = 0;
    for (;;) {
        if (warp == 0)
            next_tile(R, rows, B, chunk, queue, s, lane);
        if (warp == 1 && raises != NO_QUERY) {
            const gpu_query *Q = R.queries + raises;
            const uint32_t t =
                raise_threshold(R.histograms + (size_t)raises * BINS, Q->k, Q->bin_base, Q->bin_shift, lane);
            if (lane == 0 && t)
                atomicMax(&R.states[raises].threshold, t);
        }
        if (threadIdx.x < 4)
            s.live[threadIdx.x >> 1][threadIdx.x & 1] = 0;
        __syncthreads();
        const uint32_t slot = s.slot;
        if (slot == NO_QUERY)
            break;
        const tiled_query tq = B.queries[slot];
        const gpu_query &Q = R.queries[tq.query];
        const gpu_term *terms = R.terms + Q.first_term;
        const uint32_t tile = s.tile, begin = tile << TILE_SHIFT, len = min(X.n_docs - begin, TILE_DOCS);
        uint32_t set = 0, rest = s.bound;
        first_live(s, Q.mask, begin, len);
        if constexpr (!LINEAR)
            load_lengths(X, s, Q.flags & QUERY_LOSSY, begin, len);
        for (uint32_t first = 0; first < Q.n_terms; first += GROUP) {
            if (warp == WARPS - 1)
                open_group(X, rows, tq, terms, Q.n_terms, first, tile, rest, s, lane);
            __syncthreads();
            if (s.n_blocks)
                set = add_group<P>(X, R, Q, tq.query, s, set, begin, len, first + GROUP >= Q.n_terms, warp, lane);
            if (!(s.live[set][0] | s.live[set][1]))
                break;
            __syncthreads();
        }
        /* all warps have the same live ranges and T here */
        uint32_t T = max(s.T, 1u), found = 0;
        for_reached(s, set, T, warp, lane, [&](uint32_t, uint32_t at) { found += is_answer(X, R, Q, begin + at); });
        found = __reduce_add_sync(ALL_LANES, found);
        if (lane == 0 && found)
            atomicAdd(&s.n_found, found);
        __syncthreads();
        found = s.n_found;
        if (found > Q.k + Q.k / 4 + 64)
            T = tile_threshold(X, R, s, Q, set, begin, T, warp, lane);
        if (found)
            push_candidates(X, R, Q, tq.query, s, set, begin, T, warp, lane);
        raises = found ? tq.query : NO_QUERY;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < TILE_DOCS / 4; i += THREADS)
            reinterpret_cast<uint4 *>(s.scores)[i] = make_uint4(0, 0, 0, 0);
    }
    if (threadIdx.x == 0 && s.decoded)
        atomicAdd(&R.counts[COUNT_DECODED], (unsigned long long)s.decoded);
}

/* ---- launches ---- */

constexpr size_t LEAST_BLOCK_SHARED = 99 * 1024; /* of a thread block, of all GPUs from compute capability 8.0 on */
static_assert(sizeof(tile_space<true>) <= LEAST_BLOCK_SHARED, "every GPU has room for a tile of a linear scorer");

template <class P, bool LINEAR> static uint32_t resident_blocks(const gpu_room &room)
{
    constexpr size_t bytes = sizeof(tile_space<LINEAR>), reserved = 1024; /* of each block */
    int each = 0;
    if (bytes > room.block_shared ||
        cudaFuncSetAttribute(search_tiles<P, LINEAR>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes) !=
            cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, search_tiles<P, LINEAR>, tile_shape<LINEAR>::THREADS,
                                                      bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    const uint32_t most = (uint32_t)(room.shared / (bytes + reserved));
    return room.multiprocessors * ((uint32_t)each < most ? (uint32_t)each : most);
}

tiled_grid find_tiled_grid(uint32_t coding, const gpu_room &room)
{
    tiled_grid grid = {1, 1};
    with_pair(coding, [&](auto pair) {
        const int bytes = (int)bound_bytes(MAX_TILES);
        (void)cudaFuncSetAttribute(bound_tiles<decltype(pair)>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        grid.linear = resident_blocks<decltype(pair), true>(room);
        grid.other = resident_blocks<decltype(pair), false>(room);
    });
    return grid;
}

constexpr uint32_t CHUNKS_A_BLOCK = 16; /* at least; a chunk has up to 32 items */

template <class P, bool LINEAR>
static void launch_tiles(const gpu_index &X, const gpu_batch &R, const tile_rows &rows, const tiled_batch &B,
                         uint32_t grid, cudaStream_t stream)
{
    const uint64_t items = (uint64_t)B.n * rows.n_tiles, chunk = items / (CHUNKS_A_BLOCK * grid);
    search_tiles<P, LINEAR>
        <<<grid, tile_shape<LINEAR>::THREADS, sizeof(tile_space<LINEAR>), stream>>>(X, R, rows, B,
                                                                                    chunk < 1    ? 1
                                                                                    : chunk > 32 ? 32
                                                                                                 : (uint32_t)chunk);
}

void search_by_tiles(const gpu_index &X, uint32_t coding, const gpu_batch &R, const tile_rows &rows,
                     const tiled_batch &B, bool linear, tiled_grid grid, cudaStream_t stream)
{
    if (B.n == 0 || rows.n_tiles == 0)
        return;
    with_pair(coding, [&](auto pair) {
        typedef decltype(pair) P;
        bound_tiles<P><<<B.n, BOUND_THREADS, bound_bytes(rows.n_tiles), stream>>>(X, R, rows, B);
        if (linear)
            launch_tiles<P, true>(X, R, rows, B, grid.linear, stream);
        else
            launch_tiles<P, false>(X, R, rows, B, grid.other, stream);
    });
}

} // namespace gx
