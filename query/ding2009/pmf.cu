/* Ding, He, Yan and Suel's kernels (WWW 2009, sections 7 and 8): Parallel Merge Find, decoding of
 * the needed blocks, accumulators, and the best k by levels of maxima. */
#include "query/ding2009/merge_find.cuh"
#include "query/ding2009/taat.cuh"

#include <cub/block/block_scan.cuh>

namespace gx {

constexpr uint32_t THREADS = 256;

/* Returns a grid with a row for each query. The rows have about 8,192 thread blocks together. */
static dim3 grid_for(uint32_t n_queries, uint64_t blocks)
{
    const uint64_t most = 8192 / n_queries > 1 ? 8192 / n_queries : 1;
    return dim3((uint32_t)(blocks < 1 ? 1 : blocks < most ? blocks : most), n_queries);
}

static uint64_t blocks_of(uint64_t n, uint32_t each)
{
    return (n + each - 1) / each;
}

/* Calls f with one of the decoder pairs that are compiled here: the default codec, the paper's, the same with a width
 * for each block, or any. */
template <typename F> static void with_decoders(uint32_t coding, F f)
{
    if (coding == GX_CODEC_GPUBP128)
        f(pair_gpubp128());
    else if (coding == GX_CODEC_PFORDELTA)
        f(decoder_pair<pfordelta>());
    else if (coding == GX_CODEC_GPUPFD128)
        f(decoder_pair<gpupfd128>());
    else
        f(pair_any());
}

/* ---- decoding ---- */

template <int V> __device__ __forceinline__ void store(uint32_t *to, uint32_t i, uint32_t n, const uint32_t (&v)[V])
{
    if (V == 4 && i + 4 <= n) {
        *reinterpret_cast<uint4 *>(to + i) = make_uint4(v[0], v[1 % V], v[2 % V], v[3 % V]);
        return;
    }
#pragma unroll
    for (int j = 0; j < V; ++j) {
        if (i + j < n)
            to[i + j] = v[j];
    }
}

/* A warp decodes block j. Docids go to out[len], with UINT32_MAX past the block's end; tfs go to
 * tfs[len], unless NULL. */
template <class P>
__device__ __forceinline__ void decode_block(const gpu_index &X, const whole_list &l, uint32_t j, uint32_t lane,
                                             uint32_t *out, uint32_t *tfs)
{
    typedef typename P::template doc<true> D;
    typedef typename P::template tf<true> T;
    const uint32_t len = block_len<P>(X), n = j + 1 < l.n_blocks ? len : l.df - j * len;
    const uint32_t d0 = j ? __ldg(l.docid_ends + j - 1) : 0, d1 = __ldg(l.docid_ends + j);
    D doc;
    doc.open(l.words + d0, d1 - d0, n, lane, decoder_arg<D>(l.doc_arg));
    uint32_t carry = __ldg(l.heads + j) - 1;
    for (uint32_t i = 0; i < n; i += D::SEG) {
        uint32_t v[D::V];
        doc.next(lane, v);
        carry = docids(v, carry, lane);
        store<D::V>(out, i + lane * D::V, n, v);
    }
    for (uint32_t i = n + lane; i < len; i += 32)
        out[i] = UINT32_MAX;
    if (!tfs)
        return;
    const uint32_t t0 = j ? __ldg(l.tf_ends + j - 1) : __ldg(l.docid_ends + l.n_blocks - 1), t1 = __ldg(l.tf_ends + j);
    T tf;
    tf.open(l.words + t0, t1 - t0, n, lane, decoder_arg<T>(l.tf_arg));
    for (uint32_t i = 0; i < n; i += T::SEG) {
        uint32_t v[T::V];
        tf.next(lane, v);
#pragma unroll
        for (int x = 0; x < T::V; ++x)
            v[x] += 1;
        store<T::V>(tfs, i + lane * T::V, n, v);
    }
}

template <class P>
static __global__ void __launch_bounds__(THREADS)
    decode_list(const __grid_constant__ gpu_index X, const __grid_constant__ taat_group G, uint32_t t)
{
    const taat_query &Q = G.queries[blockIdx.y];
    if (t >= Q.n_terms)
        return;
    const whole_list l = G.terms[Q.first_term + t].list;
    const uint32_t len = block_len<P>(X), lane = threadIdx.x & 31, warps = gridDim.x * (THREADS / 32);
    uint32_t *const to = Q.docids[0] ? Q.docids[0] : Q.decoded, *const tfs = Q.docids[0] ? Q.scores[1] : Q.tfs;
    for (uint32_t j = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; j < l.n_blocks; j += warps)
        decode_block<P>(X, l, j, lane, to + (size_t)j * len, tfs + (size_t)j * len);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        G.states[blockIdx.y].blocks += l.n_blocks;
}

void taat_decode(const gpu_index &X, uint32_t coding, const taat_group &G, uint32_t t, uint32_t most_blocks,
                 cudaStream_t stream)
{
    with_decoders(coding, [&](auto pair) {
        decode_list<decltype(pair)>
            <<<grid_for(G.n, blocks_of(most_blocks, THREADS / 32)), THREADS, 0, stream>>>(X, G, t);
    });
}

template <class P>
static __global__ void __launch_bounds__(THREADS)
    decode_needed(const __grid_constant__ gpu_index X, const __grid_constant__ taat_group G, uint32_t t)
{
    const taat_query &Q = G.queries[blockIdx.y];
    taat_state *S = &G.states[blockIdx.y];
    if (t >= Q.n_terms)
        return;
    const whole_list l = G.terms[Q.first_term + t].list;
    const uint32_t len = block_len<P>(X), n = S->n_needed, lane = threadIdx.x & 31, warps = gridDim.x * (THREADS / 32);
    for (uint32_t x = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; x < n; x += warps)
        decode_block<P>(X, l, Q.needed[x], lane, Q.decoded + (size_t)x * len, NULL);
}

void taat_decode_needed(const gpu_index &X, uint32_t coding, const taat_group &G, uint32_t t, uint32_t most_needed,
                        cudaStream_t stream)
{
    with_decoders(coding, [&](auto pair) {
        decode_needed<decltype(pair)>
            <<<grid_for(G.n, blocks_of(most_needed, THREADS / 32)), THREADS, 0, stream>>>(X, G, t);
    });
}

/* ---- scores ---- */

__device__ __forceinline__ uint32_t impact(const gpu_index &X, const taat_query &Q, float w, uint32_t tf,
                                           uint32_t docid)
{
    return gx_bm25_impact(w, tf, gx_bm25_K(Q.norm, __ldg(X.doc_lens + docid)));
}

static __global__ void __launch_bounds__(THREADS)
    begin_candidates(const __grid_constant__ gpu_index X, const __grid_constant__ taat_group G)
{
    const taat_query &Q = G.queries[blockIdx.y];
    const taat_term &term = G.terms[Q.first_term];
    const uint32_t n = term.list.df;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        const uint32_t docid = Q.docids[0][i];
        const bool counts =
            docid < X.n_docs && is_allowed(Q.mask, docid); /* the next list drops candidates with score 0 */
        Q.scores[0][i] = counts ? impact(X, Q, term.w, Q.scores[1][i], docid) : 0;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        G.states[blockIdx.y].n_candidates[0] = n;
}

void taat_begin(const gpu_index &X, const taat_group &G, uint32_t most, cudaStream_t stream)
{
    begin_candidates<<<grid_for(G.n, blocks_of(most, THREADS)), THREADS, 0, stream>>>(X, G);
}

static __global__ void __launch_bounds__(THREADS)
    accumulate(const __grid_constant__ gpu_index X, const __grid_constant__ taat_group G, uint32_t t)
{
    const taat_query &Q = G.queries[blockIdx.y];
    if (t >= Q.n_terms)
        return;
    const taat_term &term = G.terms[Q.first_term + t];
    const uint32_t n = term.list.df;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        const uint32_t docid = Q.decoded[i];
        if (docid >= X.n_docs || !is_allowed(Q.mask, docid))
            continue;
        atomicAdd(Q.scores[0] + docid, impact(X, Q, term.w, Q.tfs[i], docid));
        if (Q.holders)
            Q.holders[docid] += 1; /* no atomic add: a list holds a document once */
    }
}

void taat_accumulate(const gpu_index &X, const taat_group &G, uint32_t t, uint32_t most, cudaStream_t stream)
{
    accumulate<<<grid_for(G.n, blocks_of(most, THREADS)), THREADS, 0, stream>>>(X, G, t);
}

/* ---- Parallel Merge Find ---- */

static __global__ void __launch_bounds__(THREADS)
    merge_find(const __grid_constant__ taat_group G, uint32_t t, bool in_heads, uint32_t levels, uint32_t level)
{
    const taat_query &Q = G.queries[blockIdx.y];
    const taat_state *S = &G.states[blockIdx.y];
    if (t >= Q.n_terms)
        return;
    const whole_list &l = G.terms[Q.first_term + t].list;
    find_level(Q.docids[(t - 1) & 1], S->n_candidates[(t - 1) & 1], in_heads ? l.heads : Q.decoded,
               in_heads ? l.n_blocks : S->n_decoded, levels, level, Q.positions);
}

void taat_find(const taat_group &G, uint32_t t, bool in_heads, uint32_t levels, uint32_t most, cudaStream_t stream)
{
    for (uint32_t level = 1; level <= levels + 1; ++level)
        merge_find<<<grid_for(G.n, blocks_of(level_bound(most, levels, level), THREADS)), THREADS, 0, stream>>>(
            G, t, in_heads, levels, level);
}

/* ---- compaction: elements that pass a test are written in order ---- */

/* The blocks of list t that may hold a candidate. The first candidate of each block passes. */
struct needed_blocks {
    static __device__ __forceinline__ uint32_t length(const taat_query &, const taat_state *S, uint32_t t)
    {
        return S->n_candidates[(t - 1) & 1];
    }

    /* Returns the candidate's block, or UINT32_MAX. */
    static __device__ __forceinline__ uint32_t block(const taat_query &Q, const whole_list &l, uint32_t t, uint32_t i)
    {
        const uint32_t p = Q.positions[i];
        return p < l.n_blocks && __ldg(l.heads + p) == Q.docids[(t - 1) & 1][i] ? p : p - 1;
    }

    static __device__ __forceinline__ bool test(const taat_query &Q, const taat_state *, const whole_list &l,
                                                uint32_t t, uint32_t i)
    {
        const uint32_t b = block(Q, l, t, i);
        return b != UINT32_MAX && (i == 0 || block(Q, l, t, i - 1) != b);
    }

    static __device__ __forceinline__ void total(const taat_group &G, const taat_query &Q, taat_state *S, uint32_t,
                                                 uint32_t n)
    {
        S->n_needed = min(n, Q.max_needed); /* n is greater only if docids are not sorted */
        S->n_decoded = S->n_needed * G.block_len;
        S->blocks += S->n_needed;
    }
};

/* The candidates that decoded holds. */
struct surviving_candidates {
    static __device__ __forceinline__ uint32_t length(const taat_query &, const taat_state *S, uint32_t t)
    {
        return S->n_candidates[(t - 1) & 1];
    }

    static __device__ __forceinline__ bool test(const taat_query &Q, const taat_state *S, const whole_list &,
                                                uint32_t t, uint32_t i)
    {
        const uint32_t p = Q.positions[i], from = (t - 1) & 1;
        return p < S->n_decoded && Q.decoded[p] == Q.docids[from][i] && Q.scores[from][i] != 0;
    }

    static __device__ __forceinline__ void total(const taat_group &, const taat_query &, taat_state *S, uint32_t t,
                                                 uint32_t n)
    {
        S->lookups += S->n_candidates[(t - 1) & 1];
        S->n_candidates[t & 1] = n;
    }
};

template <class Test>
static __global__ void __launch_bounds__(THREADS) count_tiles(const __grid_constant__ taat_group G, uint32_t t)
{
    const taat_query &Q = G.queries[blockIdx.y];
    const taat_state *S = &G.states[blockIdx.y];
    if (t >= Q.n_terms)
        return;
    const whole_list &l = G.terms[Q.first_term + t].list;
    const uint32_t n = Test::length(Q, S, t), n_tiles = (n + COMPACT_TILE - 1) / COMPACT_TILE;
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
        uint32_t count = 0;
        for (uint32_t i = tile * COMPACT_TILE + threadIdx.x; i < (tile + 1) * COMPACT_TILE; i += THREADS)
            count += __syncthreads_count(i < n && Test::test(Q, S, l, t, i));
        if (threadIdx.x == 0)
            Q.tiles[tile] = count;
    }
}

template <class Test>
static __global__ void __launch_bounds__(THREADS) scan_tiles(const __grid_constant__ taat_group G, uint32_t t)
{
    typedef cub::BlockScan<uint32_t, THREADS> scan;
    __shared__ typename scan::TempStorage space;
    const taat_query &Q = G.queries[blockIdx.x];
    taat_state *S = &G.states[blockIdx.x];
    if (t >= Q.n_terms)
        return;
    const uint32_t n = Test::length(Q, S, t), n_tiles = (n + COMPACT_TILE - 1) / COMPACT_TILE;
    uint32_t before = 0;
    for (uint32_t first = 0; first < n_tiles; first += THREADS) {
        const uint32_t tile = first + threadIdx.x, count = tile < n_tiles ? Q.tiles[tile] : 0;
        uint32_t rank, total;
        scan(space).ExclusiveSum(count, rank, total);
        if (tile < n_tiles)
            Q.tiles[tile] = before + rank;
        before += total;
        __syncthreads();
    }
    if (threadIdx.x == 0)
        Test::total(G, Q, S, t, before);
}

template <class Test, typename Put>
__device__ __forceinline__ void write_tiles(const taat_query &Q, const taat_state *S, const whole_list &l, uint32_t t,
                                            Put put)
{
    typedef cub::BlockScan<uint32_t, THREADS> scan;
    __shared__ typename scan::TempStorage space;
    const uint32_t n = Test::length(Q, S, t), n_tiles = (n + COMPACT_TILE - 1) / COMPACT_TILE;
    for (uint32_t tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
        uint32_t at = Q.tiles[tile];
        for (uint32_t i = tile * COMPACT_TILE + threadIdx.x; i < (tile + 1) * COMPACT_TILE; i += THREADS) {
            const bool passes = i < n && Test::test(Q, S, l, t, i);
            uint32_t rank, total;
            scan(space).ExclusiveSum(passes, rank, total);
            if (passes)
                put(i, at + rank);
            at += total;
            __syncthreads();
        }
    }
}

static __global__ void __launch_bounds__(THREADS) write_needed(const __grid_constant__ taat_group G, uint32_t t)
{
    const taat_query &Q = G.queries[blockIdx.y];
    if (t >= Q.n_terms)
        return;
    const whole_list &l = G.terms[Q.first_term + t].list;
    write_tiles<needed_blocks>(Q, &G.states[blockIdx.y], l, t, [&](uint32_t i, uint32_t at) {
        if (at < Q.max_needed)
            Q.needed[at] = needed_blocks::block(Q, l, t, i);
    });
}

void taat_choose_blocks(const taat_group &G, uint32_t t, uint32_t most, cudaStream_t stream)
{
    const dim3 grid = grid_for(G.n, blocks_of(most, COMPACT_TILE));
    count_tiles<needed_blocks><<<grid, THREADS, 0, stream>>>(G, t);
    scan_tiles<needed_blocks><<<G.n, THREADS, 0, stream>>>(G, t);
    write_needed<<<grid, THREADS, 0, stream>>>(G, t);
}

void taat_count_kept(const taat_group &G, uint32_t t, uint32_t most, cudaStream_t stream)
{
    count_tiles<surviving_candidates><<<grid_for(G.n, blocks_of(most, COMPACT_TILE)), THREADS, 0, stream>>>(G, t);
    scan_tiles<surviving_candidates><<<G.n, THREADS, 0, stream>>>(G, t);
}

template <class P>
static __global__ void __launch_bounds__(THREADS)
    score_kept(const __grid_constant__ gpu_index X, const __grid_constant__ taat_group G, uint32_t t)
{
    typedef typename P::template tf<true> T;
    const taat_query &Q = G.queries[blockIdx.y];
    if (t >= Q.n_terms)
        return;
    const taat_term &term = G.terms[Q.first_term + t];
    const whole_list &l = term.list;
    const uint32_t len = block_len<P>(X), from = (t - 1) & 1, to = t & 1;
    write_tiles<surviving_candidates>(Q, &G.states[blockIdx.y], l, t, [&](uint32_t i, uint32_t at) {
        const uint32_t p = Q.positions[i], j = Q.needed[p / len], n = j + 1 < l.n_blocks ? len : l.df - j * len;
        const uint32_t docid = Q.docids[from][i],
                       t0 = j ? __ldg(l.tf_ends + j - 1) : __ldg(l.docid_ends + l.n_blocks - 1);
        const bool there = p % len < n && docid < X.n_docs; /* false only for damaged lists */
        const uint32_t tf =
            there ? T::at(l.words + t0, __ldg(l.tf_ends + j) - t0, n, p % len, decoder_arg<T>(l.tf_arg)) + 1 : 0;
        Q.docids[to][at] = docid;
        Q.scores[to][at] = there ? Q.scores[from][i] + impact(X, Q, term.w, tf, docid) : 0;
    });
}

void taat_score_kept(const gpu_index &X, uint32_t coding, const taat_group &G, uint32_t t, uint32_t most,
                     cudaStream_t stream)
{
    with_decoders(coding, [&](auto pair) {
        score_kept<decltype(pair)><<<grid_for(G.n, blocks_of(most, COMPACT_TILE)), THREADS, 0, stream>>>(X, G, t);
    });
}

/* ---- the best ---- */

/* Returns score i as a key, or 0 if there is no document. Keys are distinct: of equal scores the
 * lower position is better. */
__device__ __forceinline__ unsigned long long score_key(const taat_query &Q, const taat_state *S, uint32_t i)
{
    if (Q.docids[0] ? i >= S->n_candidates[(Q.n_terms - 1) & 1] : i >= Q.n_scores)
        return 0;
    const uint32_t score = Q.docids[0] ? Q.scores[(Q.n_terms - 1) & 1][i] : Q.scores[0][i];
    if (score == 0 || (Q.conjunctive && Q.holders[i] != Q.n_terms))
        return 0;
    return (unsigned long long)gx_key(score, i);
}

/* Returns the number of maxima of a level, at least 1. */
__device__ __forceinline__ uint32_t n_maxima(const taat_query &Q, uint32_t level)
{
    uint32_t n = Q.n_scores;
    for (uint32_t l = 0; l <= level; ++l)
        n = (n - 1) / MAXIMA_FANOUT + 1;
    return n;
}

__device__ __forceinline__ unsigned long long warp_max(unsigned long long x)
{
#pragma unroll
    for (int o = 16; o; o >>= 1) {
        const unsigned long long y = __shfl_xor_sync(ALL_LANES, x, o);
        x = y > x ? y : x;
    }
    return x;
}

/* Each warp finds the maximum of one group at a time. */
static __global__ void __launch_bounds__(THREADS) find_maxima(const __grid_constant__ taat_group G, uint32_t level)
{
    const taat_query &Q = G.queries[blockIdx.y];
    const taat_state *S = &G.states[blockIdx.y];
    if (Q.k > EXTRACT_K)
        return;
    const uint32_t n = n_maxima(Q, level), below = level ? n_maxima(Q, level - 1) : 0, lane = threadIdx.x & 31;
    for (uint32_t g = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; g < n; g += gridDim.x * (THREADS / 32)) {
        unsigned long long most = 0;
        for (uint32_t x = lane; x < MAXIMA_FANOUT; x += 32) {
            const uint64_t i = (uint64_t)g * MAXIMA_FANOUT + x;
            const unsigned long long key = level == 0  ? (i < Q.n_scores ? score_key(Q, S, (uint32_t)i) : 0)
                                           : i < below ? Q.maxima[level - 1][i]
                                                       : 0;
            most = key > most ? key : most;
        }
        most = warp_max(most);
        if (lane == 0)
            Q.maxima[level][g] = most;
    }
}

/* Returns the greatest x of MAXIMA_FANOUT threads to all of them. */
__device__ __forceinline__ unsigned long long group_max(unsigned long long x, unsigned long long *space)
{
    x = warp_max(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 0)
        space[threadIdx.x >> 5] = x;
    __syncthreads();
    return warp_max(space[threadIdx.x & (MAXIMA_FANOUT / 32 - 1)]);
}

static __global__ void __launch_bounds__(MAXIMA_FANOUT) extract(const __grid_constant__ taat_group G)
{
    __shared__ unsigned long long space[MAXIMA_FANOUT / 32];
    const taat_query &Q = G.queries[blockIdx.x];
    taat_state *S = &G.states[blockIdx.x];
    if (Q.k > EXTRACT_K)
        return;
    const uint32_t n0 = Q.n_scores, n1 = n_maxima(Q, 0), n2 = n_maxima(Q, 1), n3 = n_maxima(Q, 2);
    uint32_t *const scores = Q.docids[0] ? Q.scores[(Q.n_terms - 1) & 1] : Q.scores[0];
    const uint32_t *const docids = Q.docids[0] ? Q.docids[(Q.n_terms - 1) & 1] : NULL;
    unsigned long long *const to = G.answers + Q.answer;
    uint32_t hits = 0;
    for (; hits < Q.k; ++hits) {
        const unsigned long long best = group_max(threadIdx.x < n3 ? Q.maxima[2][threadIdx.x] : 0, space);
        if (best == 0)
            break;
        const uint32_t place = gx_key_docid(best), g1 = place / MAXIMA_FANOUT, g2 = g1 / MAXIMA_FANOUT,
                       g3 = g2 / MAXIMA_FANOUT;
        const uint64_t i0 = (uint64_t)g1 * MAXIMA_FANOUT + threadIdx.x, i1 = (uint64_t)g2 * MAXIMA_FANOUT + threadIdx.x,
                       i2 = (uint64_t)g3 * MAXIMA_FANOUT + threadIdx.x;
        const unsigned long long x0 = i0 < n0 && i0 != place ? score_key(Q, S, (uint32_t)i0) : 0;
        const unsigned long long x1 = i1 < n1 ? Q.maxima[0][i1] : 0, x2 = i2 < n2 ? Q.maxima[1][i2] : 0;
        const unsigned long long m1 = group_max(x0, space);
        const unsigned long long m2 = group_max(i1 == g1 ? m1 : x1, space);
        const unsigned long long m3 = group_max(i2 == g2 ? m2 : x2, space);
        if (threadIdx.x == 0) {
            to[hits] = gx_key(gx_key_score(best), docids ? docids[place] : place);
            scores[place] = 0;
            Q.maxima[0][g1] = m1;
            Q.maxima[1][g2] = m2;
            Q.maxima[2][g3] = m3;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        S->n_hits = hits;
}

void taat_choose_best(const taat_group &G, uint32_t most, cudaStream_t stream)
{
    uint64_t n = most;
    for (uint32_t level = 0; level < N_MAXIMA; ++level) {
        n = blocks_of(n, MAXIMA_FANOUT);
        find_maxima<<<grid_for(G.n, blocks_of(n, THREADS / 32)), THREADS, 0, stream>>>(G, level);
    }
    extract<<<G.n, MAXIMA_FANOUT, 0, stream>>>(G);
}

static __global__ void __launch_bounds__(THREADS)
    gather(const __grid_constant__ taat_group G, uint32_t q, unsigned long long *keys)
{
    const taat_query &Q = G.queries[q];
    const taat_state *S = &G.states[q];
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < Q.n_scores; i += gridDim.x * THREADS) {
        const unsigned long long key = score_key(Q, S, i);
        keys[i] = key && Q.docids[0] ? gx_key(gx_key_score(key), Q.docids[(Q.n_terms - 1) & 1][i]) : key;
    }
}

void taat_gather(const taat_group &G, uint32_t q, uint32_t n_scores, unsigned long long *keys, cudaStream_t stream)
{
    gather<<<grid_for(1, blocks_of(n_scores, THREADS)), THREADS, 0, stream>>>(G, q, keys);
}

static __global__ void __launch_bounds__(THREADS)
    answer(const __grid_constant__ taat_group G, uint32_t q, const unsigned long long *sorted)
{
    const taat_query &Q = G.queries[q];
    const uint32_t n = min(Q.k, Q.n_scores);
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        G.answers[Q.answer + i] = sorted[i];
        if (sorted[i] && (i + 1 == n || sorted[i + 1] == 0))
            G.states[q].n_hits = i + 1;
    }
}

void taat_answer(const taat_group &G, uint32_t q, uint32_t k, const unsigned long long *sorted, cudaStream_t stream)
{
    answer<<<grid_for(1, blocks_of(k, THREADS)), THREADS, 0, stream>>>(G, q, sorted);
}

} // namespace gx
