/* gpu_search.cuh: the ranked search: exact top-k of OR and AND queries, list at a time, without accumulators.
 *
 * A query's lists are ordered by their greatest impact (OR) or their length (AND). A document belongs to the first list that
 * holds it and is scored there, once. List i is read only while bound[i] + rest[i] reaches the query's threshold, rest[i]
 * being the sum of the later lists' bounds; of its postings only those matter whose own bound reaches it. AND reads the
 * first list alone, and absence from any list rules a document out.
 *
 * A warp takes an item (a few blocks of one list) from a queue, stages their payload in shared memory, and for each block
 *   1. unpacks tfs: none large enough -> the docids are not decoded;
 *   2. decodes docids; a posting's bound is a table look-up by tf (a shuffle), with the shortest document's K;
 *   3. asks the presence maps of the later lists: absent -> the list's bound leaves the posting's (AND: the posting goes);
 *   4. queues the survivors; 32 at a time, one a lane, get the exact length, the exact own impact, and bounds from the
 *      others' tf classes;
 *   5. looks those that still reach the threshold up exactly, best bound first, later lists first; a document that is about
 *      to be accepted must be in no earlier list.
 * The threshold begins at a bound stored with the lists (gpu_derive.cu) and rises through a histogram of exact scores: each
 * document is counted once, so the lower edge of the bin that holds the k-th best so far is never above the k-th best score.
 * The warp that finishes a query's last item selects the best k, for k <= QUICK_K.
 */
#ifndef GX_GPU_SEARCH_CUH
#define GX_GPU_SEARCH_CUH

#include "query/gpu_lists.cuh"

namespace gx {

constexpr uint32_t SEARCH_WARPS = 8;
constexpr uint32_t STAGE_WORDS = 704;                  /* of payload that a warp stages */
constexpr uint32_t STAGE_BLOCKS = 8;                   /* most blocks staged at once */
constexpr uint32_t STAGE_SLACK = GX_READ_SLACK / 4 + 4;
constexpr uint32_t CODED_LISTS = 8;                    /* of the first lists of a query, a candidate's state is kept */

/* A warp's shared memory. */
template <uint32_t V> struct alignas(16) search_space {
    uint32_t stage[STAGE_WORDS + STAGE_SLACK];
    uint2 queue[32 * V + 32]; /* candidates: docid, tf */
};

struct search_counts {
    uint32_t decoded, lookups;
};

/* The ends and heads of an item's blocks, lane l having block l's; lane 31 has where block 0 begins. */
struct item_blocks {
    uint32_t head, docid_end, tf_end;
};

__device__ __forceinline__ item_blocks load_item(const gpu_index &X, const gpu_batch &R, gpu_item it, uint32_t lane)
{
    item_blocks m = {0, 0, 0};
    const uint32_t n = (it.what >> 24 & (MAX_ITEM_BLOCKS - 1)) + 1;
    if (lane < n) {
        m.head = __ldg(X.heads + it.block + lane);
        m.docid_end = __ldg(X.docid_ends + it.block + lane);
        m.tf_end = __ldg(X.tf_ends + it.block + lane);
    } else if (lane == 31) {
        if (it.what & ITEM_FIRST) {
            m.tf_end = __ldg(&R.terms[it.what & ITEM_TERM].payload.tf_begin);
        } else {
            m.docid_end = __ldg(X.docid_ends + it.block - 1);
            m.tf_end = __ldg(X.tf_ends + it.block - 1);
        }
    }
    return m;
}

__device__ __forceinline__ void copy_16(uint32_t *shared, const uint32_t *global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(global)
                 : "memory");
}

/* The query's threshold as it is now; one value for the warp, whichever way its lanes came here. */
__device__ __forceinline__ uint32_t current_threshold(const gpu_query_state *st)
{
    return __shfl_sync(ALL_LANES, __ldcg(&st->threshold), 0);
}

/* Copy words [begin, begin + n) of payload to stage, 16 bytes at a time; returns the words used. Word begin lies at
 * stage[begin & 3]. */
__device__ __forceinline__ uint32_t stage_words(uint32_t *stage, const uint32_t *payload, uint64_t begin, uint32_t n, uint32_t lane)
{
    const uint32_t *from = payload + (begin & ~(uint64_t)3);
    const uint32_t words = ((uint32_t)(begin & 3) + n + 3) & ~3u;
    for (uint32_t o = lane * 4; o < words; o += 128)
        copy_16(stage + o, from + o);
    return words;
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

/* The threshold by the histogram: the lower edge of the bin that holds the k-th best so far, 0 if there are fewer. */
__device__ __noinline__ uint32_t raise_threshold(const uint32_t *histogram, uint32_t k, uint32_t base, uint32_t shift, uint32_t lane)
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

/* The best k <= QUICK_K of the candidates, in order, to the answer; zeros after them. */
template <uint32_t SPACE>
__device__ __noinline__ void select_few(const gpu_batch &R, uint32_t q, uint32_t lane, unsigned long long *scratch)
{
    const gpu_query *Q = R.queries + q;
    gpu_query_state *st = R.states + q;
    const uint32_t k = __ldg(&Q->k), n = min(__ldcg(&st->count), __ldg(&Q->capacity)), T = __ldcg(&st->threshold);
    const unsigned long long *from = R.candidates + __ldg(&Q->candidates);
    unsigned long long *to = R.answers + __ldg(&Q->answer);
    uint32_t kept = 0; /* what does not reach the last threshold cannot be among the best */
    for (uint32_t i = 0; i < n; i += 32) {
        const unsigned long long key = i + lane < n ? __ldcg(from + i + lane) : 0;
        const bool keep = i + lane < n && (uint32_t)(key >> 32) >= T;
        const uint32_t who = __ballot_sync(ALL_LANES, keep), at = kept + __popc(who & ((1u << lane) - 1));
        if (keep && at < SPACE)
            scratch[at] = key;
        kept += __popc(who);
    }
    __syncwarp();
    const bool fits = kept <= SPACE;
    const uint32_t m = fits ? kept : n;
    unsigned long long last = ~0ull;
    uint32_t hits = 0;
    for (uint32_t r = 0; r < k; ++r) {
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
    if (lane == 0)
        st->n_hits = hits;
    __syncwarp();
}

/* A document of exact score s joins the candidates: lane 0 records it, all raise the threshold. */
__device__ __forceinline__ uint32_t accept(const gpu_batch &R, const gpu_query *Q, uint32_t q, uint32_t s, uint32_t doc, uint32_t T,
                                           uint32_t lane)
{
    gpu_query_state *st = R.states + q;
    uint32_t *histogram = R.histograms + (size_t)q * BINS;
    const uint32_t base = __ldg(&Q->bin_base), shift = __ldg(&Q->bin_shift), k = __ldg(&Q->k);
    uint32_t at = 0;
    if (lane == 0) {
        atomicAdd(histogram + score_bin(s, base, shift), 1);
        at = atomicAdd(&st->count, 1);
        if (at < __ldg(&Q->capacity))
            R.candidates[__ldg(&Q->candidates) + at] = (unsigned long long)gx_key(s, doc);
    }
    at = __shfl_sync(ALL_LANES, at, 0) + 1;
    if (at >= k && (at - k) % __ldg(&Q->step) == 0) {
        const uint32_t t = raise_threshold(histogram, k, base, shift, lane);
        if (lane == 0 && t > T)
            atomicMax(&st->threshold, t);
        T = max(T, t);
    }
    return T;
}

/* Up to 32 candidates of the query's list li, one a lane. Returns the threshold. */
template <class P>
__device__ __forceinline__ uint32_t score(const gpu_index &X, const gpu_batch &R, const gpu_query *Q, uint32_t q, const gpu_term *terms,
                                          uint32_t n, uint32_t li, bool all, uint2 cand, bool valid, uint32_t T, uint32_t lane,
                                          bool &wrote, search_counts &counts)
{
    const uint32_t doc = cand.x;
    const gx_norm norm = {__ldg(&Q->c0), __ldg(&Q->c1), __ldg(&Q->lossy)};
    const float K = valid ? gx_bm25_K(norm, __ldg(X.doc_lens + doc)) : 1.0f;
    uint32_t s = valid ? gx_bm25_impact(__ldg(&terms[li].weight.w), cand.y, K) : 0;
    uint32_t ask = 0; /* of the first lists, 4 bits each: 8 if it must be asked | the tf class */
    for (uint32_t g = 0; g < n; g += CODED_LISTS) {
        uint32_t here = 0;
#pragma unroll
        for (uint32_t u = 0; u < CODED_LISTS; ++u) {
            if (g + u < n && g + u != li && valid)
                here |= (uint32_t)present(X, fetch(&terms[g + u].filter), doc) << u;
        }
#pragma unroll
        for (uint32_t u = 0; u < CODED_LISTS; ++u) {
            const uint32_t j = g + u;
            if (j < n && j != li && valid) {
                if (here >> u & 1) {
                    const term_filter f = fetch(&terms[j].filter);
                    const uint32_t c = present_class(X, f, doc);
                    if (j > li)
                        s += class_bound(f, c, __ldg(&terms[j].weight.w), K);
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

    for (;;) { /* best bound first, the warp together */
        uint32_t best = __reduce_max_sync(ALL_LANES, s);
        if (best < T || best == 0)
            return T;
        const uint32_t src = __ffs(__ballot_sync(ALL_LANES, s == best)) - 1;
        if (lane == src)
            s = 0;
        const uint32_t d = __shfl_sync(ALL_LANES, doc, src), a = __shfl_sync(ALL_LANES, ask, src);
        const float Kd = __shfl_sync(ALL_LANES, K, src);
        bool ok = true;
        for (uint32_t j = li + 1; j < n && ok; ++j) {
            const term_filter f = fetch(&terms[j].filter);
            uint32_t c = a >> 4 * (j & 7) & 15;
            if (j >= CODED_LISTS) {
                c = present(X, f, d) ? 8 | present_class(X, f, d) : 0;
                c = class_exact(f, c & 7) ? 0 : c;
            }
            if (c) {
                const float w = __ldg(&terms[j].weight.w);
                const uint32_t tf = lookup<P>(X, terms + j, d, lane);
                counts.lookups += 1;
                best -= class_bound(f, c & 7, w, Kd);
                if (tf)
                    best += gx_bm25_impact(w, tf, Kd);
                ok = best >= T && (tf || !all);
            }
        }
        for (uint32_t j = 0; j < li && ok; ++j) {
            if (j < CODED_LISTS ? a >> 4 * j & 8 : present(X, fetch(&terms[j].filter), d)) {
                counts.lookups += 1;
                ok = lookup<P>(X, terms + j, d, lane) == 0;
            }
        }
        if (ok) {
            T = accept(R, Q, q, best, d, T, lane);
            wrote = true;
        } else {
            T = max(T, current_threshold(R.states + q));
        }
    }
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
        const term_filter t = fetch(&terms[j].filter);
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
        if (slack[v] >= 0)
            queue[queued + __popc(who & ((1u << lane) - 1))] = make_uint2(d[v], f[v]);
        queued += __popc(who);
    }
    __syncwarp();
    return queued;
}

/* One item, by a warp. */
template <class P, uint32_t V>
__device__ __forceinline__ void scan(const gpu_index &X, const gpu_batch &R, gpu_item it, const item_blocks &m, uint32_t q,
                                     uint32_t lane, search_space<V> &ws, bool &wrote, search_counts &counts)
{
    typedef typename P::template doc<false> D;
    typedef typename P::template tf<false> F;
    const bool single = D::BLOCK == D::SEG; /* a block is one segment */
    const uint32_t cnt = (it.what >> 24 & (MAX_ITEM_BLOCKS - 1)) + 1, len = block_len<P>(X);
    const gpu_query *Q = R.queries + q;
    const uint4 shape = __ldg(reinterpret_cast<const uint4 *>(Q)); /* n_terms, first_term, flags, k */
    const uint32_t n_terms = shape.x, li = (it.what & ITEM_TERM) - shape.y;
    const bool all = shape.z & QUERY_AND;
    const gpu_term *terms = R.terms + shape.y, *own = terms + li;
    const term_payload payload = fetch(&own->payload);
    const term_weight weight = fetch(&own->weight);
    const uint32_t top = fetch(&own->filter).bound + weight.rest;
    const uint32_t *list = X.payload + payload.words;
    uint32_t T = current_threshold(R.states + q), last_T = 0, tf_min = 0;
    if (top < T)
        return;
    /* The bound of a posting whose tf is the lane (the last lane: that or more), all later lists at their bounds. */
    const uint32_t own_bounds = lane == 31 ? top : min(top, gx_bm25_impact(weight.w, lane, __ldg(&Q->least_K)) + weight.rest);

    uint32_t k = 0, i = 0, n = 0, staged = 0, queued = 0, carry = 0; /* block k, of which i of n postings are decoded */
    const uint32_t *docs = list, *tfs = list;
    uint32_t d_begin = 0, d_end = 0;
    D doc;
    F tf;
    for (;;) {
        if (T != last_T) {
            if (top < T)
                return; /* what is queued cannot matter either */
            last_T = T;
            tf_min = max(1, __ffs(__ballot_sync(ALL_LANES, own_bounds >= T)) - 1);
        }
        const bool end = k == cnt;
        if (!end) {
            if (i == 0) {
                d_begin = __shfl_sync(ALL_LANES, m.docid_end, (k - 1) & 31);
                d_end = __shfl_sync(ALL_LANES, m.docid_end, k);
                const uint32_t t_begin = __shfl_sync(ALL_LANES, m.tf_end, (k - 1) & 31), t_end = __shfl_sync(ALL_LANES, m.tf_end, k);
                if (k == staged) { /* stage as many blocks as fit, or read this one where it is */
                    const uint32_t need = (m.docid_end - d_begin) + (m.tf_end - t_begin) + 12;
                    const uint32_t fit = __popc(__ballot_sync(ALL_LANES, lane >= k && lane < min(cnt, k + STAGE_BLOCKS) && need <= STAGE_WORDS));
                    staged = k + max(fit, 1u);
                    docs = list;
                    tfs = list;
                    if (fit) {
                        const uint32_t d_words = __shfl_sync(ALL_LANES, m.docid_end, staged - 1) - d_begin;
                        const uint32_t t_words = __shfl_sync(ALL_LANES, m.tf_end, staged - 1) - t_begin;
                        __syncwarp();
                        uint32_t *second = ws.stage + stage_words(ws.stage, X.payload, payload.words + d_begin, d_words, lane);
                        stage_words(second, X.payload, payload.words + t_begin, t_words, lane);
                        asm volatile("cp.async.wait_all;" ::: "memory");
                        __syncwarp();
                        docs = ws.stage + (uint32_t)((payload.words + d_begin) & 3) - d_begin;
                        tfs = second + (uint32_t)((payload.words + t_begin) & 3) - t_begin;
                    }
                }
                n = len;
                if (it.what & ITEM_LAST && k + 1 == cnt)
                    n = payload.df - (fetch(&own->at).n_blocks - 1) * len;
                tf.open(tfs + t_begin, t_end - t_begin, n, lane, decoder_arg<F>(weight.codecs >> 16));
                if (!single) {
                    doc.open(docs + d_begin, d_end - d_begin, n, lane, decoder_arg<D>(weight.codecs));
                    carry = __shfl_sync(ALL_LANES, m.head, k) - 1;
                }
            }
            const uint32_t T_now = current_threshold(R.states + q);
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
                if (single) {
                    doc.open(docs + d_begin, d_end - d_begin, n, lane, decoder_arg<D>(weight.codecs));
                    carry = __shfl_sync(ALL_LANES, m.head, k) - 1;
                }
                doc.next(lane, d);
                carry = docids(d, carry, lane);
                counts.decoded += i == 0;
                if (go)
                    queued = filter<V>(X, terms, n_terms, li, all, own_bounds, T, i + lane * V, n, single ? n == len : i + D::SEG <= n,
                                       d, f, ws.queue, queued, lane);
            }
            i += D::SEG;
            if (i >= n) {
                i = 0;
                ++k;
            }
            T = max(T, T_now);
        }
        while (queued >= 32 || (queued && end)) {
            const uint32_t take = min(queued, 32u);
            queued -= take;
            const uint2 cand = lane < take ? ws.queue[queued + lane] : make_uint2(0, 1);
            T = score<P>(X, R, Q, q, terms, n_terms, li, all, cand, lane < take, T, lane, wrote, counts);
            __syncwarp();
        }
        if (end)
            return;
    }
}

/* Items come from a queue; an item's number, the item and its block heads are each fetched one item ahead. */
template <class P> __global__ void __launch_bounds__(SEARCH_WARPS * 32, P::template doc<true>::V > 4 ? 3 : 4)
search(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R)
{
    constexpr uint32_t V = P::template doc<true>::V;
    __shared__ search_space<V> spaces[SEARCH_WARPS];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    search_space<V> &ws = spaces[warp];
    search_counts counts = {0, 0};
    const uint32_t first_free = gridDim.x * SEARCH_WARPS; /* items below are given out by place */
    uint32_t next = blockIdx.x + gridDim.x * warp;
    gpu_item it = {0, 0}, it1 = {0, 0};
    bool have = next < R.n_items, have1 = false;
    item_blocks m = {0, 0, 0}, m1 = {0, 0, 0};
    if (have) {
        const uint2 x = __ldg(reinterpret_cast<const uint2 *>(R.items) + next);
        it = {x.x, x.y};
        m = load_item(X, R, it, lane);
        if (lane == 0)
            next = atomicAdd(R.next_item, 1);
        next = __shfl_sync(ALL_LANES, next, 0) + first_free;
    }
    while (have) {
        uint32_t later = 0;
        have1 = next < R.n_items;
        if (have1) {
            const uint2 x = __ldg(reinterpret_cast<const uint2 *>(R.items) + next);
            it1 = {x.x, x.y};
            if (lane == 0)
                later = atomicAdd(R.next_item, 1);
            m1 = load_item(X, R, it1, lane);
        }
        const uint32_t q = __ldg(&R.terms[it.what & ITEM_TERM].weight.query);
        const uint32_t after = __ldg(&R.queries[q].after);
        bool wrote = false;
        if (after == NO_QUERY || __ldcg(&R.states[after].count) < __ldg(&R.queries[q].k))
            scan<P, V>(X, R, it, m, q, lane, ws, wrote, counts);
        if (wrote)
            __threadfence(); /* it empties L1: only where something was written */
        __syncwarp();
        uint32_t last = 0;
        if (lane == 0) {
            last = atomicAdd(&R.states[q].done, 1) + 1 == __ldg(&R.queries[q].n_items);
            if (last)
                __threadfence();
        }
        if (__shfl_sync(ALL_LANES, last, 0) && __ldg(&R.queries[q].k) <= QUICK_K)
            select_few<32 * V + 32>(R, q, lane, reinterpret_cast<unsigned long long *>(ws.queue));
        have = have1;
        it = it1;
        m = m1;
        next = __shfl_sync(ALL_LANES, later, 0) + first_free;
    }
    if (lane == 0 && (counts.decoded | counts.lookups)) {
        atomicAdd(R.counts + COUNT_DECODED, (unsigned long long)counts.decoded);
        atomicAdd(R.counts + COUNT_LOOKUPS, (unsigned long long)counts.lookups);
    }
}

} // namespace gx

#endif
