/* gpu_search.cuh: the ranked search: exact top-k of OR and AND queries, list at a time, without accumulators.
 *
 * A query's lists are ordered by their greatest impact (OR) or their length (AND). A document belongs to the first list that
 * holds it and is scored there, once. List i is read only while bound[i] + rest[i] reaches the query's threshold, rest[i]
 * being the sum of the later lists' bounds; of its postings only those matter whose own bound reaches it. AND reads the
 * first list alone, and absence from any list rules a document out.
 *
 * A warp takes an item (a few blocks of one list) from a queue; the item, what describes it and the payload of its first
 * blocks come to shared memory while the items before are worked on. For each block the warp
 *   1. unpacks tfs: none large enough -> the docids are not decoded;
 *   2. decodes docids; a posting's bound is a table look-up by tf (a shuffle), with the shortest document's K;
 *   3. asks the presence maps of the later lists: absent -> the list's bound leaves the posting's (AND: the posting goes);
 *   4. queues the survivors; 32 at a time, one a lane, get the exact length, the exact own impact, bounds from the others' tf
 *      classes, and from dense lists the tf itself: the map's rank of the docid is the posting's place;
 *   5. looks those that still reach the threshold up in the other lists, the warp together, best bound first, later lists
 *      first; a document that is about to be accepted must be in no earlier list.
 * The threshold begins at a bound stored with the lists (gpu_derive.cu) and rises through a histogram of exact scores: each
 * document is counted once, so the lower edge of the bin that holds the k-th best so far is never above the k-th best score.
 * The warp that finishes a query's last item selects the best k, for k <= QUICK_K.
 */
#ifndef GX_GPU_SEARCH_CUH
#define GX_GPU_SEARCH_CUH

#include "query/gpu_lists.cuh"

namespace gx {

/* Blocks of threads an SM. What registers are left must do for the loop over an item's blocks: spills there halve the speed. */
template <class P> constexpr uint32_t SEARCH_BLOCKS = P::template doc<true>::V > 4 ? 2 : 3;
template <> constexpr uint32_t SEARCH_BLOCKS<pair_gpubp128> = 4; /* 64 registers; what is spilled, an item needs once */

/* Marks decoders in the kernel that searches for a few queries (gpu_few.cuh). */
template <class P> struct few : P {};
template <class P> constexpr bool is_few = false;
template <class P> constexpr bool is_few<few<P>> = true;
template <class P> constexpr uint32_t SEARCH_BLOCKS<few<P>> = SEARCH_BLOCKS<P>;

/* Whether the threshold is also raised by what documents have at least (count_least). */
template <class P> constexpr bool COUNTS_LEAST = is_few<P>;

constexpr uint32_t STAGE_WORDS = 320;  /* of payload in each of a warp's two buffers */
constexpr uint32_t STAGE_BLOCKS = 8;   /* most blocks in one */
constexpr uint32_t STAGE_SLACK = GX_READ_SLACK / 4 + 4;
constexpr uint32_t CODED_LISTS = 8;    /* of the first lists of a query, a candidate's state is kept */
static_assert(NEAR_TERMS <= CODED_LISTS, "short queries have no other lists");

/* An item with all that describes it, in shared memory; fetched while the item before is worked on. */
struct alignas(16) near_item {
    gpu_item item;
    gpu_query query;
    gpu_query_state state;       /* as it was then: its threshold is good, if low */
    gpu_term terms[NEAR_TERMS];  /* not for a long query */
    uint32_t heads[MAX_ITEM_BLOCKS];
    uint32_t docid_ends[MAX_ITEM_BLOCKS + 4], tf_ends[MAX_ITEM_BLOCKS + 4]; /* block j is from [j] to [j + 1] */
};

/* Payload of an item's blocks up to end: the list's words as if they began at docs and at tfs. */
struct chunk {
    const uint32_t *docs, *tfs;
    uint32_t end;
};

/* A warp's shared memory. */
template <uint32_t V> struct alignas(16) search_space {
    uint32_t stage[2][STAGE_WORDS + STAGE_SLACK];
    uint2 queue[32 * V + 32];  /* candidates: docid, tf */
    near_item items[2];        /* this one and the next, by turns */
    gpu_item fetched;          /* the one after that */
    chunk chunks[2];           /* of stage */
    uint32_t decoded, lookups, wrote; /* counts, and whether the item's candidates must be made visible */
};

/* ---- copies from global to shared memory ---- */

__device__ __forceinline__ void copy_4(void *shared, const void *global)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(global) : "memory");
}

__device__ __forceinline__ void copy_16(void *shared, const void *global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(global) : "memory");
}

__device__ __forceinline__ void wait_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
}

/* Begin to fetch an item's heads and ends, but for where the tfs of an ITEM_FIRST begin. */
__device__ __forceinline__ void fetch_blocks(const gpu_index &X, gpu_item it, near_item &to, uint32_t lane)
{
    const uint32_t n = (it.what >> 24 & (MAX_ITEM_BLOCKS - 1)) + 1;
    if (lane == 0)
        to.item = it;
    if (lane < n)
        copy_4(&to.heads[lane], X.heads + it.block + lane);
    if (lane == 0 && it.what & ITEM_FIRST) {
        to.docid_ends[0] = 0;
    } else if (lane <= n) {
        copy_4(&to.docid_ends[lane], X.docid_ends + it.block + lane - 1);
        copy_4(&to.tf_ends[lane], X.tf_ends + it.block + lane - 1);
    }
}

/* Begin to fetch all that describes an item. */
template <bool LONG>
__device__ __forceinline__ void fetch_item(const gpu_index &X, const gpu_batch &R, gpu_item it, near_item &to, uint32_t lane)
{
    fetch_blocks(X, it, to, lane);
    if (lane == 0 && it.what & ITEM_FIRST)
        copy_4(&to.tf_ends[0], &R.terms[it.what & ITEM_TERM].payload.tf_begin);
    constexpr uint32_t PIECES = sizeof(gpu_term) / 16;
    static_assert(NEAR_TERMS * PIECES <= 32, "a lane a piece");
    if (!LONG && lane < (it.place >> 24) * PIECES)
        copy_16(reinterpret_cast<uint4 *>(to.terms) + lane,
                reinterpret_cast<const uint4 *>(R.terms + (it.place & ITEM_TERM)) + lane);
    if (lane < sizeof(gpu_query) / 16)
        copy_16(reinterpret_cast<uint4 *>(&to.query) + lane, reinterpret_cast<const uint4 *>(R.queries + it.query) + lane);
    else if (lane == 31)
        copy_16(&to.state, R.states + it.query);
}

/* The query's lists: in shared memory where they are few. */
template <bool LONG> __device__ __forceinline__ const gpu_term *item_terms(const gpu_batch &R, const near_item &near)
{
    return LONG ? R.terms + near.query.first_term : near.terms;
}

/* Begin to copy words [begin, begin + n) of payload to stage, 16 bytes at a time; returns the words used. Word begin will
 * lie at stage[begin & 3]. */
__device__ __forceinline__ uint32_t stage_words(uint32_t *stage, const uint32_t *payload, uint64_t begin, uint32_t n, uint32_t lane)
{
    const uint32_t *from = payload + (begin & ~(uint64_t)3);
    const uint32_t words = ((uint32_t)(begin & 3) + n + 3) & ~3u;
#pragma unroll 1
    for (uint32_t o = lane * 4; o < words; o += 128)
        copy_16(stage + o, from + o);
    return words;
}

/* Begin to stage as many of the item's blocks from k on as fit into buffer b; where not even one fits, it is read where it
 * is. */
template <uint32_t V>
__device__ __forceinline__ void stage_chunk(const gpu_index &X, const near_item &it, uint64_t list, uint32_t k, search_space<V> &ws,
                                            uint32_t b, uint32_t lane)
{
    const uint32_t cnt = (it.item.what >> 24 & (MAX_ITEM_BLOCKS - 1)) + 1, d = it.docid_ends[k], t = it.tf_ends[k];
    const uint32_t to = min(k + lane + 1, cnt), need = (it.docid_ends[to] - d) + (it.tf_ends[to] - t) + 12;
    const uint32_t fit = __popc(__ballot_sync(ALL_LANES, lane < min(cnt - k, STAGE_BLOCKS) && need <= STAGE_WORDS));
    uint32_t *first = ws.stage[b];
    if (fit) {
        uint32_t *second = first + stage_words(first, X.payload, list + d, it.docid_ends[k + fit] - d, lane);
        stage_words(second, X.payload, list + t, it.tf_ends[k + fit] - t, lane);
        if (lane == 0)
            ws.chunks[b] = {first + (uint32_t)((list + d) & 3) - d, second + (uint32_t)((list + t) & 3) - t, k + fit};
    } else if (lane == 0) {
        ws.chunks[b] = {X.payload + list, X.payload + list, k + 1};
    }
}

/* ---- thresholds, maps and bounds ---- */

/* The state as it is now. */
__device__ __forceinline__ gpu_query_state read_now(const gpu_query_state *st)
{
    const uint4 x = __ldcg(reinterpret_cast<const uint4 *>(st));
    return {x.x, x.y, x.z, x.w};
}

/* Of a block of threads that all search for one of a few queries. Warps use it by atomics alone. */
struct few_block {
    uint32_t threshold; /* of the query, as it was when a warp last asked: thousands of warps that ask at once wait for each other */
    uint32_t taken;     /* items */
    uint32_t open;      /* the first warp has counted what its first item's documents have at least */
    uint32_t finished;  /* warps | those of them that wrote, << 16 */
};

__device__ __forceinline__ few_block &this_block()
{
    __shared__ few_block block;
    return block;
}

/* The threshold that a warp goes by, in its first lane; it is used late. */
template <class P> __device__ __forceinline__ uint32_t threshold_now(const gpu_batch &R, uint32_t q)
{
    if constexpr (is_few<P>)
        return threadIdx.x % 32 ? 0 : atomicOr(&this_block().threshold, 0);
    else
        return __ldcg(&R.states[q].threshold);
}

/* The query's threshold as it is now; one value for the warp, whichever way its lanes came here. */
template <class P> __device__ __forceinline__ uint32_t current_threshold(const gpu_batch &R, uint32_t q, uint32_t lane)
{
    const uint32_t T = __shfl_sync(ALL_LANES, __ldcg(&R.states[q].threshold), 0);
    if (is_few<P> && lane == 0)
        atomicMax(&this_block().threshold, T);
    return T;
}

__device__ __forceinline__ bool present(const gpu_index &X, const term_filter &f, uint32_t doc)
{
    const uint32_t slot = doc >> f.map_shift;
    return __ldg(X.maps + f.map + (slot >> 5)) >> (slot & 31) & 1;
}

__device__ __forceinline__ uint32_t present_class(const gpu_index &X, const term_filter &f, uint32_t doc)
{
    if (f.classes == NO_CLASSES)
        return CLASS_ANY;
    const uint32_t slot = doc >> f.map_shift;
    return __ldg(X.maps + f.classes + (slot >> 4)) >> (slot & 15) * 2 & 3;
}

/* A class of a single tf, in a slot of a single document. */
__device__ __forceinline__ bool class_exact(const term_filter &f, uint32_t c) { return c < 2 && f.map_shift == EXACT_SLOTS; }

__device__ __forceinline__ uint32_t class_bound(const term_filter &f, uint32_t c, float w, float K)
{
    if (c == CLASS_ANY)
        return f.bound;
    return class_exact(f, c) ? gx_bm25_impact(w, class_tf(c), K) : min(f.bound, gx_bm25_bound(w, class_tf(c), K));
}

/* What a document that is present has at least: nothing where it may be another one of its slot; see gx_bm25_bound. */
__device__ __forceinline__ uint32_t class_least(const term_filter &f, uint32_t c, float w, float K)
{
    if (f.map_shift != EXACT_SLOTS)
        return 0;
    const uint32_t i = gx_bm25_impact(w, f.classes == NO_CLASSES ? 1 : class_least_tf(c), K);
    return class_exact(f, c) ? i : i - min(i, (i >> 21) + 2);
}

/* The threshold by the histogram: the lower edge of the bin that holds the k-th best so far, 0 if there are fewer. */
__device__ __forceinline__ uint32_t raise_threshold(const uint32_t *histogram, uint32_t k, uint32_t base, uint32_t shift, uint32_t lane)
{
    constexpr uint32_t N = BINS / 32;
    uint32_t c[N], sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < N / 4; ++i) {
        const uint4 h = __ldcg(reinterpret_cast<const uint4 *>(histogram) + lane * (N / 4) + i);
        c[4 * i] = h.x, c[4 * i + 1] = h.y, c[4 * i + 2] = h.z, c[4 * i + 3] = h.w;
        sum += h.x + h.y + h.z + h.w;
    }
    uint32_t s = sum; /* of this lane's bins and all above */
#pragma unroll
    for (uint32_t o = 1; o < 32; o <<= 1) {
        const uint32_t y = __shfl_down_sync(ALL_LANES, s, o);
        s += lane + o < 32 ? y : 0;
    }
    uint32_t above = s - sum, t = 0;
    if (s >= k && above < k) {
        uint32_t bin = 0;
#pragma unroll
        for (int i = N - 1; i >= 0; --i) {
            const bool was = above >= k;
            above += c[i];
            bin = !was && above >= k ? i : bin;
        }
        t = bin_score(lane * N + bin, base, shift);
    }
    return __reduce_max_sync(ALL_LANES, t);
}

/* A key a lane, sorted: the greatest to lane 0 (bitonic). */
__device__ __forceinline__ unsigned long long sort_lanes(unsigned long long key, uint32_t lane)
{
#pragma unroll
    for (uint32_t width = 2; width <= 32; width *= 2) {
#pragma unroll
        for (uint32_t step = width / 2; step; step /= 2) {
            const unsigned long long other = __shfl_xor_sync(ALL_LANES, key, step);
            const bool greater = ((lane & step) == 0) == ((lane & width) == 0); /* it keeps the greater one */
            key = (other > key) == greater ? other : key;
        }
    }
    return key;
}

/* The best k <= QUICK_K of the candidates, in order, to the answer; zeros after them. */
template <uint32_t SPACE>
__device__ __noinline__ void select_few(const gpu_batch &R, const gpu_query &Q, uint32_t q, uint32_t lane, unsigned long long *scratch)
{
    const gpu_query_state st = read_now(R.states + q);
    const uint32_t k = Q.k, n = min(st.count, Q.capacity), T = st.threshold;
    const unsigned long long *from = R.candidates + Q.candidates;
    unsigned long long *to = R.answers + Q.answer;
    uint32_t kept = 0; /* what does not reach the last threshold cannot be among the best */
    constexpr uint32_t AT_ONCE = 8;
    for (uint32_t i = 0; i < n; i += 32 * AT_ONCE) {
        unsigned long long key[AT_ONCE];
#pragma unroll
        for (uint32_t u = 0; u < AT_ONCE; ++u)
            key[u] = i + 32 * u + lane < n ? __ldcg(from + i + 32 * u + lane) : 0;
#pragma unroll
        for (uint32_t u = 0; u < AT_ONCE; ++u) {
            const bool keep = key[u] && (uint32_t)(key[u] >> 32) >= T;
            const uint32_t who = __ballot_sync(ALL_LANES, keep), at = kept + __popc(who & ((1u << lane) - 1));
            if (keep && at < SPACE)
                scratch[at] = key[u];
            kept += __popc(who);
        }
    }
    __syncwarp();
    const bool fits = kept <= SPACE;
    const uint32_t m = fits ? kept : n;
    unsigned long long last = ~0ull;
    uint32_t hits = 0;
    if (kept <= 32) {
        const unsigned long long key = sort_lanes(lane < kept ? scratch[lane] : 0, lane);
        if (lane < k)
            to[lane] = key;
        hits = min(kept, k);
    }
    for (uint32_t r = 0; r < k && kept > 32; ++r) {
        unsigned long long best = 0;
        for (uint32_t i = lane; i < m; i += 32) {
            const unsigned long long key = fits ? scratch[i] : __ldcg(from + i);
            if (key < last && key > best)
                best = key;
        }
#pragma unroll
        for (uint32_t o = 16; o; o >>= 1) {
            const unsigned long long other = __shfl_xor_sync(ALL_LANES, best, o);
            best = other > best ? other : best;
        }
        if (lane == 0)
            to[r] = best;
        hits += best != 0;
        last = best;
    }
    __syncwarp();
    if (lane == 0) {
        R.results[q] = {T, st.count, 0, hits};
        if (Q.flags & QUERY_WATCHED) { /* the host waits for done */
            __threadfence_system();
            *reinterpret_cast<volatile uint32_t *>(&R.results[q].done) = 1;
        }
    }
    __syncwarp();
}

/* The threshold becomes at least t, for all. */
template <class P> __device__ __forceinline__ void publish_threshold(const gpu_batch &R, uint32_t q, uint32_t t)
{
    atomicMax(&R.states[q].threshold, t);
    if constexpr (is_few<P>)
        atomicMax(&this_block().threshold, t);
}

/* What documents have at least, one a lane (0: not counted), raises the threshold by a histogram of its own before anything is
 * looked up. Returns the threshold as it is now. */
template <class P>
__device__ __forceinline__ uint32_t count_least(const gpu_batch &R, const gpu_query &Q, uint32_t q, uint32_t least, uint32_t T, uint32_t lane)
{
    gpu_query_state *st = R.states + q;
    uint32_t *histogram = R.least_histograms + (size_t)q * BINS;
    const uint32_t n = __popc(__ballot_sync(ALL_LANES, least > T));
    if (least > T)
        atomicAdd(histogram + score_bin(least, Q.bin_base, Q.bin_shift), 1);
    uint32_t before = 0, now = 0;
    if (lane == 0) {
        now = __ldcg(&st->threshold);
        if (n)
            before = atomicAdd(&st->n_hits, n);
    }
    before = __shfl_sync(ALL_LANES, before, 0);
    T = max(T, __shfl_sync(ALL_LANES, now, 0));
    const uint32_t step = max(before / 8, 1u); /* of thousands that are counted at once, not each raises */
    if (n && before + n >= Q.k && (before < Q.k || before / step != (before + n) / step)) {
        const uint32_t t = raise_threshold(histogram, Q.k, Q.bin_base, Q.bin_shift, lane);
        if (lane == 0 && t > T)
            atomicMax(&st->threshold, t);
        T = max(T, t);
    }
    if (is_few<P> && lane == 0)
        atomicMax(&this_block().threshold, T);
    return T;
}

/* A document of exact score s joins the candidates: lane 0 records it, all raise the threshold. */
template <class P>
__device__ __forceinline__ uint32_t accept(const gpu_batch &R, const gpu_query &Q, uint32_t q, uint32_t s, uint32_t doc, uint32_t T,
                                           uint32_t lane)
{
    gpu_query_state *st = R.states + q;
    uint32_t *histogram = R.histograms + (size_t)q * BINS;
    const uint32_t base = Q.bin_base, shift = Q.bin_shift, k = Q.k;
    uint32_t at = 0;
    if (lane == 0) {
        atomicAdd(histogram + score_bin(s, base, shift), 1);
        at = atomicAdd(&st->count, 1);
        if (at < Q.capacity)
            R.candidates[Q.candidates + at] = (unsigned long long)gx_key(s, doc);
    }
    at = __shfl_sync(ALL_LANES, at, 0) + 1;
    if (at >= k && (at - k) % Q.step == 0) {
        const uint32_t t = raise_threshold(histogram, k, base, shift, lane);
        if (lane == 0 && t > T)
            publish_threshold<P>(R, q, t);
        T = max(T, t);
    }
    return T;
}

/* ---- candidates ---- */

/* The tf of a document that a dense list holds: by its rank among the list's documents. */
template <class P>
__device__ __forceinline__ uint32_t dense_tf(const gpu_index &X, const gpu_term *t, const term_filter &f, uint32_t doc)
{
    typedef typename P::template tf<true> T;
    const uint32_t group = doc / (32 * RANK_WORDS), last = doc >> 5 & (RANK_WORDS - 1);
    const uint4 *words = reinterpret_cast<const uint4 *>(X.maps + f.map) + group * (RANK_WORDS / 4);
    uint32_t at = __ldg(X.maps + f.map + X.rank_offset + group);
#pragma unroll
    for (uint32_t i = 0; i < RANK_WORDS; i += 4) {
        const uint4 v = i <= last ? __ldg(words + i / 4) : make_uint4(0, 0, 0, 0);
        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (uint32_t u = 0; u < 4; ++u)
            at += i + u < last ? __popc(w[u]) : i + u == last ? __popc(w[u] & ((1u << (doc & 31)) - 1)) : 0;
    }
    const term_blocks blocks = read(&t->at);
    const term_payload p = read(&t->payload);
    const uint32_t len = block_len<P>(X), j = at / len, n = j + 1 < blocks.n_blocks ? len : p.df - j * len;
    const uint32_t begin = j ? __ldg(X.tf_ends + blocks.first_block + j - 1) : p.tf_begin;
    const uint32_t end = __ldg(X.tf_ends + blocks.first_block + j);
    return T::at(X.payload + p.words + begin, end - begin, n, at - j * len, decoder_arg<T>(t->weight.codecs >> 16)) + 1;
}

/* Of a few queries: the lines where look-ups of a lane's document in the lists that are asked begin, on their way to the cache. */
__device__ __forceinline__ void prefetch_lookups(const gpu_index &X, const gpu_term *terms, uint32_t n, uint32_t ask, uint32_t doc)
{
    uint32_t block[NEAR_TERMS];
#pragma unroll
    for (uint32_t j = 0; j < NEAR_TERMS; ++j) {
        block[j] = UINT32_MAX;
        if (j < n && ask >> 4 * j & 8 && terms[j].filter.map_shift != EXACT_SLOTS) {
            const term_blocks at = read(&terms[j].at);
            block[j] = at.first_block + __ldg(X.tables + at.table + (doc >> at.table_shift));
        }
    }
#pragma unroll
    for (uint32_t j = 0; j < NEAR_TERMS; ++j) {
        if (block[j] != UINT32_MAX) {
            prefetch(X.heads + block[j]);
            prefetch(X.docid_ends + block[j]);
            prefetch(X.tf_ends + block[j]);
        }
    }
}

/* Up to 32 candidates of the query's list li, one a lane. Returns the threshold. */
template <class P, bool LONG, uint32_t V>
__device__ __forceinline__ uint32_t score(const gpu_index &X, const gpu_batch &R, const near_item &near, const gpu_term *terms,
                                          uint32_t n, uint32_t li, bool all, uint2 cand, bool valid, uint32_t T, uint32_t lane,
                                          search_space<V> &ws)
{
    const uint32_t doc = cand.x;
    const gx_norm norm = {near.query.c0, near.query.c1, near.query.lossy};
    const float K = valid ? gx_bm25_K(norm, __ldg(X.doc_lens + doc)) : 1.0f;
    uint32_t s = valid ? gx_bm25_impact(terms[li].weight.w, cand.y, K) : 0;
    uint32_t ask = 0; /* of the first lists, 4 bits each: 8 if it must be asked | the tf class */
    uint32_t least = s, held = 0; /* what it has at least; lists that surely hold it */
    bool surely = valid; /* it is this list's */
    for (uint32_t g = 0; g < (LONG ? n : 1); g += CODED_LISTS) {
        uint32_t here = 0;
#pragma unroll
        for (uint32_t u = 0; u < (LONG ? CODED_LISTS : NEAR_TERMS); ++u) {
            if (g + u < n && g + u != li && valid)
                here |= (uint32_t)present(X, read(&terms[g + u].filter), doc) << u;
        }
        uint32_t classes = 0; /* of a few queries: asked for at once, for time; else what is carried costs more */
#pragma unroll
        for (uint32_t u = 0; u < NEAR_TERMS; ++u) {
            if (is_few<P> && here >> u & 1)
                classes |= present_class(X, read(&terms[g + u].filter), doc) << 2 * u;
        }
#pragma unroll 1
        for (uint32_t u = 0; u < min(n - g, CODED_LISTS); ++u) {
            const uint32_t j = g + u;
            if (j < n && j != li && valid) {
                if (here >> u & 1) {
                    const term_filter f = read(&terms[j].filter);
                    const uint32_t c = is_few<P> ? classes >> 2 * u & 3 : present_class(X, f, doc);
                    if (COUNTS_LEAST<P>) {
                        const uint32_t more = class_least(f, c, terms[j].weight.w, K);
                        least += more;
                        held += more != 0;
                        surely &= j > li;
                    }
                    if (j > li)
                        s += class_bound(f, c, terms[j].weight.w, K);
                    else if (f.map_shift == EXACT_SLOTS)
                        valid = false; /* it is an earlier list's */
                    if (g == 0 && !(j > li && class_exact(f, c)))
                        ask |= (8 | c) << 4 * u;
                } else if (all) {
                    valid = false;
                }
            }
        }
    }
    if (!valid || s < T)
        s = 0;
    if (COUNTS_LEAST<P> && __any_sync(ALL_LANES, s != 0)) {
        T = count_least<P>(R, near.query, near.item.query, s && surely && (!all || held + 1 == n) ? least : 0, T, lane);
        s = s < T ? 0 : s;
        if (lane == 0)
            ws.wrote = 1;
    }
    if constexpr (is_few<P>) {
        if (lane == 0)
            atomicOr(&this_block().open, 1);
        prefetch_lookups(X, terms, n, s ? ask : 0, doc);
    }
    uint32_t lookups = 0;
    for (uint32_t j = li + 1; j < min(n, CODED_LISTS) && __any_sync(ALL_LANES, s != 0); ++j) {
        const term_filter f = read(&terms[j].filter);
        if (f.map_shift != EXACT_SLOTS)
            continue;
        const bool mine = s && ask >> 4 * j & 8;
        if (mine) {
            const float w = terms[j].weight.w;
            s -= class_bound(f, ask >> 4 * j & 7, w, K);
            s += gx_bm25_impact(w, dense_tf<P>(X, terms + j, f, doc), K);
            ask &= ~(15u << 4 * j);
            s = s < T ? 0 : s;
        }
        lookups += __popc(__ballot_sync(ALL_LANES, mine));
    }

    for (;;) { /* best bound first, the warp together */
        uint32_t best = __reduce_max_sync(ALL_LANES, s);
        if (best < T || best == 0)
            break;
        const uint32_t src = __ffs(__ballot_sync(ALL_LANES, s == best)) - 1;
        if (lane == src)
            s = 0;
        const uint32_t d = __shfl_sync(ALL_LANES, doc, src), a = __shfl_sync(ALL_LANES, ask, src);
        const float Kd = __shfl_sync(ALL_LANES, K, src);
        bool ok = true;
        for (uint32_t i = li + 1; i < n + li && ok; ++i) { /* the later lists, then the earlier ones */
            const uint32_t j = i < n ? i : i - n;
            uint32_t c = a >> 4 * (j & 7) & 15;
            if (all && j < li)
                break;
            if (LONG && j >= CODED_LISTS) {
                const term_filter f = read(&terms[j].filter);
                c = present(X, f, d) ? 8 | present_class(X, f, d) : 0;
                c = j > li && class_exact(f, c & 7) ? 0 : c;
            }
            if (c == 0)
                continue;
            const uint32_t tf = lookup<P, is_few<P>>(X, terms + j, d, lane);
            ++lookups;
            if (j < li) {
                ok = tf == 0; /* else it is that list's */
            } else {
                const float w = terms[j].weight.w;
                best -= class_bound(read(&terms[j].filter), c & 7, w, Kd);
                if (tf)
                    best += gx_bm25_impact(w, tf, Kd);
                ok = best >= T && (tf || !all);
            }
        }
        if (ok) {
            T = accept<P>(R, near.query, near.item.query, best, d, T, lane);
            if (lane == 0)
                ws.wrote = 1;
        } else {
            T = max(T, current_threshold<P>(R, near.item.query, lane));
        }
    }
    if (lane == 0)
        ws.lookups += lookups;
    return T;
}

/* Which of a segment's postings pass the presence maps: they join the queue. Returns its new length. i: the lane's first
 * posting, of n in the block. */
template <uint32_t V>
__device__ __forceinline__ uint32_t filter(const gpu_index &X, const gpu_term *terms, uint32_t n_terms, uint32_t li, bool all,
                                           uint32_t own_bounds, uint32_t T, uint32_t i, uint32_t n, bool whole,
                                           const uint32_t (&d)[V], const uint32_t (&f)[V], uint2 *queue, uint32_t queued,
                                           uint32_t lane)
{
    int slack[V]; /* bound less threshold; sums of bounds are under 2^31. Negative: out */
#pragma unroll
    for (uint32_t v = 0; v < V; ++v) {
        slack[v] = (int)__shfl_sync(ALL_LANES, own_bounds, min(f[v], 31u)) - (int)T;
        if (d[v] >= X.n_docs || (!whole && i + v >= n))
            slack[v] = -1;
    }
    bool live = true;
    for (uint32_t j = li + 1; j < n_terms && live; ++j) {
        const term_filter t = read(&terms[j].filter);
        const uint32_t *map = X.maps + t.map;
        uint32_t slot[V], w[V];
#pragma unroll
        for (uint32_t v = 0; v < V; ++v) {
            slot[v] = d[v] >> t.map_shift;
            w[v] = slack[v] >= 0 ? __ldg(map + (slot[v] >> 5)) : 0;
        }
        int best = -1;
#pragma unroll
        for (uint32_t v = 0; v < V; ++v) {
            if (!(w[v] >> (slot[v] & 31) & 1))
                slack[v] = all ? -1 : slack[v] - (int)t.bound;
            best = max(best, slack[v]);
        }
        live = __any_sync(ALL_LANES, best >= 0);
    }
    if (!live)
        return queued;
#pragma unroll
    for (uint32_t v = 0; v < V; ++v) {
        const uint32_t who = __ballot_sync(ALL_LANES, slack[v] >= 0);
        if (who == 0)
            continue;
        if (slack[v] >= 0)
            queue[queued + __popc(who & ((1u << lane) - 1))] = make_uint2(d[v], f[v]);
        queued += __popc(who);
    }
    __syncwarp();
    return queued;
}

/* ---- items ---- */

/* What a warp carries from item to item: the buffer that is read, and whether the other one already holds the beginning of
 * the next item. */
struct stage_turn {
    uint32_t buffer;
    bool ahead;
};

/* One item, by a warp. The next one is in following, if there is one. */
template <class P, bool LONG, uint32_t V>
__device__ __forceinline__ void scan(const gpu_index &X, const gpu_batch &R, const near_item &near, const near_item &following, bool more,
                                     uint32_t lane, search_space<V> &ws, stage_turn &turn)
{
    typedef typename P::template doc<false> D;
    typedef typename P::template tf<false> F;
    constexpr bool single = D::BLOCK == D::SEG; /* a block is one segment */
    const uint32_t cnt = (near.item.what >> 24 & (MAX_ITEM_BLOCKS - 1)) + 1, len = block_len<P>(X);
    const uint32_t n_terms = near.query.n_terms, li = (near.item.what & ITEM_TERM) - near.query.first_term;
    const bool all = near.query.flags & QUERY_AND;
    const gpu_term *terms = item_terms<LONG>(R, near), *own = terms + li;
    bool ready = turn.ahead;
    turn.ahead = false;
    uint32_t T = near.state.threshold, tf_min = 0; /* 0: the threshold has changed */
    if (own->filter.bound + own->weight.rest < T)
        return;
    /* The bound of a posting whose tf is the lane (the last lane: that or more), all later lists at their bounds. */
    uint32_t own_bounds = own->filter.bound;
    if (lane < 31)
        own_bounds = min(own_bounds, gx_bm25_impact(own->weight.w, lane, near.query.least_K));
    own_bounds += own->weight.rest;
    if (!ready)
        stage_chunk<V>(X, near, own->payload.words, 0, ws, turn.buffer ^ 1, lane);

    uint32_t k = 0, i = 0, n = 0, staged = 0, queued = 0, carry = 0; /* block k, of which i of n postings are decoded */
    D doc;
    F tf;
    for (;;) {
        if (tf_min == 0) {
            const uint32_t reach = __ballot_sync(ALL_LANES, own_bounds >= T);
            if (reach == 0)
                break; /* what is queued cannot matter either */
            tf_min = max(1, __ffs(reach) - 1);
        }
        const bool end = k == cnt;
        if (!end) {
            if (single || i == 0) {
                if (k == staged) { /* to the other buffer; then fill the one that was read */
                    turn.buffer ^= 1;
                    if (!ready)
                        wait_copies();
                    staged = ws.chunks[turn.buffer].end;
                    const near_item *from = &near;
                    const gpu_term *list = own;
                    if (staged == cnt && more && !ready) { /* the next item's beginning: having waited, its description is there */
                        from = &following;
                        list = item_terms<LONG>(R, following) + ((following.item.what & ITEM_TERM) - following.query.first_term);
                        turn.ahead = list->filter.bound + list->weight.rest >= following.state.threshold;
                    }
                    if (staged < cnt || turn.ahead)
                        stage_chunk<V>(X, *from, list->payload.words, staged < cnt ? staged : 0, ws, turn.buffer ^ 1, lane);
                    ready = false;
                }
                n = len;
                if (near.item.what & ITEM_LAST && k + 1 == cnt)
                    n = own->payload.df - (own->at.n_blocks - 1) * len;
                const uint32_t begin = near.tf_ends[k];
                tf.open(ws.chunks[turn.buffer].tfs + begin, near.tf_ends[k + 1] - begin, n, lane, decoder_arg<F>(own->weight.codecs >> 16));
            }
            const uint32_t T_now = threshold_now<P>(R, near.item.query); /* used late */
            uint32_t f[V], d[V];
            tf.next(lane, f);
            bool any = false;
#pragma unroll
            for (uint32_t v = 0; v < V; ++v) {
                f[v] += 1;
                any |= f[v] >= tf_min;
            }
            const bool go = tf_min == 1 || __any_sync(ALL_LANES, any);
            if (go || !single) {
                if (single || i == 0) {
                    const uint32_t begin = near.docid_ends[k];
                    doc.open(ws.chunks[turn.buffer].docs + begin, near.docid_ends[k + 1] - begin, n, lane,
                             decoder_arg<D>(own->weight.codecs));
                    carry = near.heads[k] - 1;
                    if (lane == 0)
                        atomicAdd(&ws.decoded, 1);
                }
                doc.next(lane, d);
                carry = segment_docids(d, carry, lane);
                if (go)
                    queued = filter<V>(X, terms, n_terms, li, all, own_bounds, T, (single ? 0 : i) + lane * V, n, single ? n == len : i + D::SEG <= n,
                                       d, f, ws.queue, queued, lane);
            }
            i += D::SEG;
            if (single || i >= n) {
                i = 0;
                ++k;
            }
            const uint32_t now = __shfl_sync(ALL_LANES, T_now, 0);
            tf_min = now > T ? 0 : tf_min;
            T = max(T, now);
        }
        while (queued >= 32 || (queued && end)) {
            const uint32_t take = min(queued, 32u);
            queued -= take;
            const uint2 cand = lane < take ? ws.queue[queued + lane] : make_uint2(0, 1);
            const uint32_t now = score<P, LONG, V>(X, R, near, terms, n_terms, li, all, cand, lane < take, T, lane, ws);
            tf_min = now > T ? 0 : tf_min;
            T = now;
            __syncwarp();
        }
        if (end)
            break;
    }
}

/* Items come from a queue. The number of the third next item, the second next item, and the description of the next one are
 * on their way while an item is worked on. */
template <class P, bool LONG> __global__ void __launch_bounds__(SEARCH_WARPS * 32, SEARCH_BLOCKS<P>)
search(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R)
{
    constexpr uint32_t V = P::template doc<true>::V;
    extern __shared__ uint4 shared[];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    search_space<V> &ws = reinterpret_cast<search_space<V> *>(shared)[warp];
    const uint32_t first_free = gridDim.x * SEARCH_WARPS; /* items below are given out by place */
    uint32_t next = blockIdx.x + gridDim.x * warp, later = 0;
    if (next >= R.n_items)
        return;
    if (lane == 0) {
        ws.decoded = ws.lookups = 0;
        later = atomicAdd(R.next_item, 2) + first_free;
    }
    {
        const uint4 x = __ldg(reinterpret_cast<const uint4 *>(R.items) + next);
        fetch_item<LONG>(X, R, {x.x, x.y, x.z, x.w}, ws.items[0], lane);
    }
    next = __shfl_sync(ALL_LANES, later, 0);
    later += 1;
    if (next < R.n_items && lane == 0)
        copy_16(&ws.fetched, R.items + next);
    stage_turn turn = {0, false};
    for (uint32_t which = 0;; which ^= 1) {
        wait_copies();
        const near_item &near = ws.items[which];
        const bool more = next < R.n_items;
        if (more) {
            const uint4 x = *reinterpret_cast<const uint4 *>(&ws.fetched);
            __syncwarp();
            fetch_item<LONG>(X, R, {x.x, x.y, x.z, x.w}, ws.items[which ^ 1], lane);
            next = __shfl_sync(ALL_LANES, later, 0);
            if (lane == 0) {
                if (next < R.n_items)
                    copy_16(&ws.fetched, R.items + next);
                later = atomicAdd(R.next_item, 1) + first_free;
            }
        }
        if (lane == 0)
            ws.wrote = 0;
        const uint32_t after = near.query.after;
        if (after == NO_QUERY || __ldcg(&R.states[after].count) < near.query.k)
            scan<P, LONG, V>(X, R, near, ws.items[which ^ 1], more, lane, ws, turn);
        else
            turn.ahead = false;
        __syncwarp();
        uint32_t last = 0;
        if (lane == 0) { /* which wrote all there is */
            if (ws.wrote)
                __threadfence(); /* it empties L1: only where something was written */
            last = atomicAdd(&R.states[near.item.query].done, 1) + 1 == near.query.n_items;
            if (last)
                __threadfence();
        }
        if (__shfl_sync(ALL_LANES, last, 0) && near.query.k <= QUICK_K)
            select_few<32 * V + 32>(R, near.query, near.item.query, lane, reinterpret_cast<unsigned long long *>(ws.queue));
        if (!more)
            break;
    }
    if (lane == 0 && (ws.decoded | ws.lookups)) {
        atomicAdd(R.counts + COUNT_DECODED, (unsigned long long)ws.decoded);
        atomicAdd(R.counts + COUNT_LOOKUPS, (unsigned long long)ws.lookups);
    }
}

} // namespace gx

#endif
