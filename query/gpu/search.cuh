/* search.cuh: the ranked search: exact top-k of OR and AND queries, list at a time, without
 * accumulators.
 *
 * A query's lists are ordered by their greatest impact (OR) or their length (AND). A document
 * belongs to the first list that holds it and is scored there, once. List i is read only while
 * bound[i] + rest[i] reaches the query's threshold, rest[i] being the sum of the later lists'
 * bounds; of its postings only those matter whose own bound reaches it. AND reads the first list
 * alone, and absence from any list rules a document out.
 *
 * A warp takes an item (a few blocks of one list) from a queue; the item, what describes it and the
 * payload of its first blocks come to shared memory while the items before are worked on. The warp
 *   1. decodes a block and collects its postings whose tf is large enough, until there are BATCH of
 *      them, from two or three blocks, so that no lane asks the maps in vain and what is waited for
 *      is waited for less often (of a query alone, a segment at a time);
 *   2. has a bound for each, a table look-up by tf (a shuffle), with the shortest document's K;
 *   3. asks the query's mask, if it has one (absent -> the posting goes), and then the presence
 *      maps of the later lists: absent -> the list's bound leaves the posting's (AND: the posting
 *      goes);
 *   4. queues the survivors; up to 32 at a time, one a lane, get the exact length, the exact own
 *      impact, bounds from the others' tf classes, and from dense lists the tf itself: the map's
 *      rank of the docid is the posting's place;
 *   5. looks those that still reach the threshold up in the other lists, the warp together, best
 *      bound first, later lists first; a document that is about to be accepted must be in no
 *      earlier list.
 * The threshold begins at a bound stored with the lists (derive.cu) and rises through a histogram
 * of exact scores: each document is counted once, so the lower edge of the bin that holds the k-th
 * best so far is never above the k-th best score. The warp that finishes a query's last item
 * selects the best k, for k <= SMALL_K.
 */
#ifndef GX_QUERY_GPU_SEARCH_CUH
#define GX_QUERY_GPU_SEARCH_CUH

#include "query/gpu/score.cuh"

namespace gx {

/* Blocks of threads an SM. What registers are left must do for the loop over an item's blocks:
 * spills there halve the speed. */
template <class P> constexpr uint32_t SEARCH_BLOCKS = P::template doc<true>::V > 4 ? 2 : 3;
template <> constexpr uint32_t SEARCH_BLOCKS<pair_gpubp128> = 4; /* 64 registers; what is spilled, an item needs once */
/* a block of threads takes 1 KB for itself */
constexpr size_t BLOCK_BYTES = SEARCH_WARPS * sizeof(warp_shared<4>) + 1024;
constexpr size_t MOST_SHARED = 196 * 1024; /* of an SM */
static_assert(SEARCH_BLOCKS<pair_gpubp128> * BLOCK_BYTES <= MOST_SHARED, "60 KB are left for L1");

/* ---- postings ---- */

/* words[at] to w if slack is not negative. One 64-bit address a word is computed, which the
 * compiler would not do by itself. */
__device__ __forceinline__ void load_if(int slack, const uint32_t *words, uint32_t at, uint32_t &w)
{
    asm("{\n\t.reg .pred wanted;\n\t.reg .u64 from;\n\t"
        "mad.wide.u32 from, %2, 4, %1;\n\t"
        "setp.ge.s32 wanted, %3, 0;\n\t"
        "@wanted ld.global.nc.u32 %0, [from];\n\t}"
        : "+r"(w)
        : "l"(words), "r"(at), "r"(slack));
}

/* less from slack unless word has that bit. */
__device__ __forceinline__ void subtract_unless(uint32_t word, uint32_t bit, int less, int &slack)
{
    asm("{\n\t.reg .pred absent;\n\t.reg .u32 there;\n\t"
        "and.b32 there, %1, %2;\n\t"
        "setp.eq.u32 absent, there, 0;\n\t"
        "@absent sub.s32 %0, %0, %3;\n\t}"
        : "+r"(slack)
        : "r"(word), "r"(bit), "r"(less));
}

/* What AND takes from the slack of a posting that a list does not hold: it is negative then, and
 * does not come round for any number of lists. */
constexpr int ABSENT = 1 << 20;
static_assert((uint64_t)ABSENT * GX_MAX_TERMS <= 1u << 31, "no sum of them is less than an int can be");

/* Postings of a segment that tf_min lets pass join those that wait for the maps. Returns their new
 * number. */
template <uint32_t V>
__device__ __forceinline__ uint32_t collect(const uint32_t (&d)[V], const uint32_t (&f)[V], uint32_t tf_min,
                                            uint2 *waiting, uint32_t n_waiting, uint32_t lane)
{
#pragma unroll
    for (uint32_t v = 0; v < V; ++v) {
        const bool passes = f[v] >= tf_min;
        const uint32_t who = __ballot_sync(ALL_LANES, passes);
        if (passes)
            waiting[n_waiting + __popc(who & ((1u << lane) - 1))] = make_uint2(d[v], f[v]);
        n_waiting += __popc(who);
    }
    return n_waiting;
}

/* n of those that wait, for the lanes; a tf of 0 where there is none. Their place is free then. */
__device__ __forceinline__ void take_batch(const uint2 *waiting, uint32_t n, uint32_t lane,
                                           uint32_t (&docids)[BATCH / 32], uint32_t (&tfs)[BATCH / 32])
{
    __syncwarp();
#pragma unroll
    for (uint32_t v = 0; v < BATCH / 32; ++v) {
        const uint32_t i = 32 * v + lane;
        const uint2 posting = i < n ? waiting[i] : make_uint2(0, 0);
        docids[v] = posting.x;
        tfs[v] = posting.y;
    }
    __syncwarp();
}

/* Rule out the postings whose documents the mask does not allow. False: none is left. A mask is
 * asked before the maps, as a map that answers for all lists together. */
template <uint32_t V>
__device__ __forceinline__ bool apply_mask(const uint32_t *mask, const uint32_t (&d)[V], int (&slack)[V])
{
    int best = -1;
#pragma unroll
    for (uint32_t v = 0; v < V; ++v) {
        uint32_t word = 0;
        load_if(slack[v], mask, d[v] / 32, word);
        slack[v] = word >> d[v] % 32 & 1 ? slack[v] : -1;
        best = max(best, slack[v]);
    }
    return __any_sync(ALL_LANES, best >= 0);
}

/* Which of up to 32 * V postings pass the query's mask and the presence maps: they join the queue,
 * which grows downwards from its end. Returns its new length. slack_by_tf: in each lane the slack
 * of a posting whose tf is the lane (in the last: or more), which is its bound less the threshold
 * (AND: 0), or negative where it does not reach it. A tf of 0: no posting. */
template <uint32_t V>
__device__ __forceinline__ uint32_t filter(const gpu_index &X, const gpu_query &Q, const gpu_term *terms,
                                           uint32_t n_terms, uint32_t li, bool conjunctive, int slack_by_tf,
                                           uint32_t (&d)[V], const uint32_t (&f)[V], uint2 *queue_end,
                                           uint32_t *n_queued, uint32_t queued)
{
    int slack[V]; /* sums of bounds are under 2^31. Negative: out */
    uint32_t w[V];
#pragma unroll
    for (uint32_t v = 0; v < V; ++v) {
        slack[v] = __shfl_sync(ALL_LANES, slack_by_tf, min(f[v], 31u));
        d[v] = min(d[v], X.n_docs - 1); /* of a damaged list they may be anything */
        w[v] = 0;
    }
    if (Q.flags & QUERY_MASKED && !apply_mask<V>(Q.mask, d, slack))
        return queued;
    for (uint32_t j = li + 1; j < n_terms; ++j) {
        const term_filter t = read(&terms[j].filter);
        const uint32_t *map = X.maps + t.map;
        const int less = conjunctive ? ABSENT : (int)t.bound;
#pragma unroll
        for (uint32_t v = 0; v < V; ++v)
            load_if(slack[v], map, __funnelshift_rc(d[v], 0, t.map_shift + 5), w[v]);
        int best = -1;
#pragma unroll
        for (uint32_t v = 0; v < V; ++v) {
            subtract_unless(w[v], 1u << (d[v] >> t.map_shift & 31), less, slack[v]);
            best = max(best, slack[v]);
        }
        if (!__any_sync(ALL_LANES, best >= 0))
            return queued;
    }
    int mine = V;
#pragma unroll
    for (uint32_t v = 0; v < V; ++v)
        mine += slack[v] >> 31;
    if (threadIdx.x % 32 == 0)
        *n_queued = queued;
    __syncwarp();
    if (mine) { /* seldom more than a few lanes */
        uint2 *to = queue_end - atomicAdd(n_queued, mine);
#pragma unroll
        for (uint32_t v = 0; v < V; ++v) {
            if (slack[v] >= 0)
                *--to = make_uint2(d[v], f[v]);
        }
    }
    __syncwarp();
    return *(volatile uint32_t *)n_queued;
}

/* ---- items ---- */

/* A block of one segment. Whole blocks are most, and to know that the block is one is shorter. */
template <class D>
__device__ __forceinline__ void decode_block(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t lane,
                                             uint32_t arg, uint32_t (&v)[D::V])
{
    D dec;
    if (n == D::BLOCK) {
        dec.open(words, n_words, D::BLOCK, lane, arg);
        dec.next(lane, v);
    } else {
        if (n > D::BLOCK)
            __builtin_unreachable(); /* a list's last block has what is left of the list */
        dec.open(words, n_words, n, lane, arg);
        dec.next(lane, v);
    }
}

/* The block that is read, a segment at a time. */
template <class P> struct block_reader {
    typedef typename P::template doc<false> D;
    typedef typename P::template tf<false> F;
    static constexpr bool single = D::BLOCK == D::SEG; /* a block is one segment */

    uint32_t done = 0; /* of the block's postings, those before the segment */
    uint32_t carry = 0;
    /* all of it set, lest ptxas (13.0) think that what a block's first segment sets ends with that
     * segment */
    D doc = {};
    F tf = {};

    /* The segment's tfs; 0 past the list's end. */
    __device__ __forceinline__ void tfs(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t len,
                                        uint32_t lane, uint32_t arg, uint32_t (&f)[F::V])
    {
        if constexpr (single) {
            decode_block<F>(words, n_words, n, lane, arg, f);
        } else {
            if (done == 0)
                tf.open(words, n_words, n, lane, arg);
            tf.next(lane, f);
        }
#pragma unroll
        for (uint32_t v = 0; v < F::V; ++v)
            f[v] += 1;
        if (single ? n != len : done + D::SEG > n) {
            const uint32_t before = (single ? 0 : done) + lane * F::V, mine = n - min(n, before);
#pragma unroll
            for (uint32_t v = 0; v < F::V; ++v)
                f[v] = v < mine ? f[v] : 0;
        }
    }

    __device__ __forceinline__ void docids(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t head,
                                           uint32_t lane, uint32_t arg, uint32_t (&d)[D::V])
    {
        if constexpr (single) {
            decode_block<D>(words, n_words, n, lane, arg, d);
            (void)gx::docids(d, head - 1, lane);
        } else {
            if (done == 0) {
                doc.open(words, n_words, n, lane, arg);
                carry = head - 1;
            }
            doc.next(lane, d);
            carry = segment_docids(d, carry, lane);
        }
    }

    /* To the next segment; true: that is the next block's. */
    __device__ __forceinline__ bool next(uint32_t n)
    {
        done += D::SEG;
        if (!single && done < n)
            return false;
        done = 0;
        return true;
    }
};

/* The list that an item is of. */
template <bool LONG> __device__ __forceinline__ const gpu_term *item_list(const gpu_batch &R, const staged_item &staged)
{
    return item_terms<LONG>(R, staged) + ((staged.item.packed & ITEM_TERM) - staged.query.first_term);
}

/* Go on to the other buffer; then fill the one that was read, at the item's end with what the next
 * one begins with. */
template <class P, bool LONG, uint32_t V>
__device__ __forceinline__ void next_chunk(const gpu_index &X, const gpu_batch &R, const staged_item &staged,
                                           const staged_item &next_item, bool more, bool &ready, uint32_t lane,
                                           warp_shared<V> &ws)
{
    const uint32_t cnt = item_blocks(staged.item.packed), b = ws.buffer ^ 1;
    if (!ready)
        wait_copies();
    const chunk c = read(&ws.chunks[b]);
    const staged_item *from = &staged;
    bool ahead = false;
    if (c.end == cnt && more && !ready) { /* having waited, the next item's description is there */
        const gpu_term *list = item_list<LONG>(R, next_item);
        ahead = list->filter.bound + list->weight.remaining_ub >= next_item.threshold;
        from = &next_item;
    }
    if (c.end < cnt || ahead)
        stage_chunk<P>(X, *from, item_list<LONG>(R, *from)->payload.words, c.end < cnt ? c.end : 0, ws, b ^ 1, lane);
    ready = false;
    __syncwarp(); /* all have read what is set now */
    if (lane == 0) {
        ws.now = c;
        ws.buffer = b;
        ws.ahead = ahead;
    }
    __syncwarp();
}

/* One item, by a warp. The next one is in following, if there is one. */
template <class P, bool LONG, uint32_t V>
__device__ __forceinline__ void search_item(const gpu_index &X, const gpu_batch &R, const staged_item &staged,
                                            const staged_item &next_item, bool more, uint32_t lane, warp_shared<V> &ws)
{
    typedef block_reader<P> B;
    const uint32_t cnt = item_blocks(staged.item.packed), len = block_len<P>(X);
    const uint32_t n_terms = staged.query.n_terms, li = (staged.item.packed & ITEM_TERM) - staged.query.first_term;
    const bool conjunctive = staged.query.flags & QUERY_AND;
    const gpu_term *terms = item_terms<LONG>(R, staged), *own = terms + li;
    bool ready = ws.ahead;
    uint32_t T = staged.threshold, tf_min = 0; /* 0: the threshold has changed */
    __syncwarp();
    if (lane == 0) {
        ws.ahead = 0;
        ws.now.end = 0;
    }
    if (own->filter.bound + own->weight.remaining_ub < T)
        return;
    {
        /* The bound of a posting whose tf is the lane (the last lane: that or more), all later
         * lists at their bounds; of none, 0. */
        uint32_t bound = own->filter.bound;
        if (lane < 31)
            bound = min(bound, gx_bm25_impact(own->weight.w, lane, staged.query.min_K));
        ws.bound_by_tf[lane] = lane ? bound + own->weight.remaining_ub : 0;
    }
    if (!ready)
        stage_chunk<P>(X, staged, own->payload.words, 0, ws, ws.buffer ^ 1, lane);
    __syncwarp();

    constexpr bool DIRECT = threshold_policy<P>::BY_SEGMENT && V == BATCH / 32;
    uint2 *const queue_end = ws.postings + SPACE<V>;
    uint32_t k = 0, n = 0, waiting = 0, queued = 0; /* block k, of n postings */
    int slack_by_tf = -1;
    B block;
    for (;;) {
        if (tf_min == 0) {
            const uint32_t bound = ws.bound_by_tf[lane], reach = __ballot_sync(ALL_LANES, bound >= T);
            if (reach == 0) /* what waits cannot matter either */
                break;
            tf_min = __ffs(reach) - 1;
            slack_by_tf = max((int)bound - (int)T, -1); /* lest it come round from below */
            slack_by_tf = conjunctive ? min(slack_by_tf, 0) : slack_by_tf;
        }
        uint32_t d[V], f[V];
        while (k < cnt && waiting < (DIRECT ? 1 : BATCH)) {
            chunk c = read(&ws.now);
            if ((B::single || block.done == 0) && k == c.end) {
                next_chunk<P, LONG>(X, R, staged, next_item, more, ready, lane, ws);
                c = read(&ws.now);
            }
            const block_offsets at = staged.blocks[k], next = staged.blocks[k + 1];
            const uint32_t *docs = ws.stage + (int)(c.docs + at.docs), *tfs = ws.stage + (int)(c.tfs + at.tfs);
            if (!ALWAYS_STAGED<P> && !c.staged) {
                docs = X.payload + own->payload.words + at.docs;
                tfs = X.payload + own->payload.words + at.tfs;
            }
            if (B::single || block.done == 0) {
                n = len;
                if (staged.item.packed & ITEM_LAST && k + 1 == cnt)
                    n = own->payload.df - (own->at.n_blocks - 1) * len;
            }
            block.tfs(tfs, next.tfs - at.tfs, n, len, lane, decoder_arg<typename B::F>(own->weight.codecs >> 16), f);
            if (!threshold_policy<P>::owns(staged.query.shares, staged.item.packed, lane)) {
#pragma unroll
                for (uint32_t v = 0; v < V; ++v)
                    f[v] = 0; /* another item's */
            }
            block.docids(docs, next.docs - at.docs, n, staged.heads[k], lane,
                         decoder_arg<typename B::D>(own->weight.codecs), d);
            waiting = DIRECT ? BATCH : collect<V>(d, f, tf_min, ws.postings, waiting, lane);
            k += block.next(n);
        }
        uint32_t now = T;
        if (waiting) {
            const uint32_t T_now = threshold_policy<P>::peek(R, staged.item.query); /* used late */
            const uint32_t take = min(waiting, BATCH);
            waiting -= take;
            if constexpr (DIRECT) {
                queued = filter<V>(X, staged.query, terms, n_terms, li, conjunctive, slack_by_tf, d, f, queue_end,
                                   &ws.n_queued, queued);
            } else {
                uint32_t docids[BATCH / 32], tfs[BATCH / 32];
                take_batch(ws.postings + waiting, take, lane, docids, tfs);
                queued = filter<BATCH / 32>(X, staged.query, terms, n_terms, li, conjunctive, slack_by_tf, docids, tfs,
                                            queue_end, &ws.n_queued, queued);
            }
            now = __shfl_sync(ALL_LANES, T_now, 0);
        }
        const bool ends = k == cnt && waiting == 0;
        while (queued > MAX_QUEUED || (queued && ends)) {
            const uint32_t take = min(queued, 32u);
            const uint2 posting = lane < take ? queue_end[(int)lane - (int)queued] : make_uint2(0, 1);
            queued -= take;
            now = score<P, LONG, V>(X, R, staged, {terms, n_terms, li, conjunctive}, posting, lane < take, max(T, now),
                                    lane, ws);
            __syncwarp();
        }
        if (ends)
            break;
        tf_min = now > T ? 0 : tf_min;
        T = max(T, now);
    }
    if (lane == 0)
        ws.decoded += k;
}

/* Items come from a queue. The number of the third next item, the second next item, and the
 * description of the next one are on their way while an item is worked on. */
template <class P, bool LONG>
__global__ void __launch_bounds__(SEARCH_WARPS * 32, SEARCH_BLOCKS<P>)
    search(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R)
{
    constexpr uint32_t V = P::template doc<true>::V;
    extern __shared__ uint4 shared[];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    warp_shared<V> &ws = reinterpret_cast<warp_shared<V> *>(shared)[warp];
    const uint32_t first_free = gridDim.x * SEARCH_WARPS; /* items below are given out by place */
    uint32_t next = blockIdx.x + gridDim.x * warp, later = 0;
    if (next >= R.n_items)
        return;
    if (lane == 0) {
        ws.decoded = ws.lookups = ws.buffer = ws.ahead = 0;
        later = atomicAdd(R.next_item, 2) + first_free;
    }
    {
        const uint4 x = __ldg(reinterpret_cast<const uint4 *>(R.items) + next);
        fetch_item<LONG>(X, R, {x.x, x.y, x.z, x.w}, ws.items[0], lane);
    }
    next = __shfl_sync(ALL_LANES, later, 0);
    later += 1;
    if (next < R.n_items && lane == 0)
        cp_async_16(&ws.fetched, R.items + next);
    for (uint32_t which = 0;; which ^= 1) {
        wait_copies();
        const staged_item &staged = ws.items[which];
        const bool more = next < R.n_items;
        if (more) {
            const uint4 x = *reinterpret_cast<const uint4 *>(&ws.fetched);
            __syncwarp();
            fetch_item<LONG>(X, R, {x.x, x.y, x.z, x.w}, ws.items[which ^ 1], lane);
            next = __shfl_sync(ALL_LANES, later, 0);
            if (lane == 0) {
                if (next < R.n_items)
                    cp_async_16(&ws.fetched, R.items + next);
                later = atomicAdd(R.next_item, 1) + first_free;
            }
        }
        if (lane == 0)
            ws.wrote = 0;
        const uint32_t after = staged.query.after;
        if (after == NO_QUERY || __ldcg(&R.states[after].count) < staged.query.k)
            search_item<P, LONG, V>(X, R, staged, ws.items[which ^ 1], more, lane, ws);
        else if (lane == 0)
            ws.ahead = 0;
        __syncwarp();
        uint32_t last = 0;
        if (lane == 0) { /* which wrote all there is */
            if (ws.wrote)
                __threadfence(); /* it empties L1: only where something was written */
            last = atomicAdd(&R.states[staged.item.query].done, 1) + 1 == staged.query.n_items;
            if (last)
                __threadfence();
        }
        if (__shfl_sync(ALL_LANES, last, 0) && staged.query.k <= SMALL_K) {
            __syncwarp();
            select_small_k<SPACE<V>>(R, staged.query, staged.item.query, lane,
                                     reinterpret_cast<unsigned long long *>(ws.postings));
        }
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
