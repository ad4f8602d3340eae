/* search.cuh: the ranked search: the exact top k of OR and AND queries, list by list, without
 * accumulators.
 *
 * A query's lists are ordered by falling bound on their impacts (OR) or by rising length (AND). A
 * document belongs to the first list that holds it and is scored there, once. The search reads
 * list i only while bound[i] + remaining_ub[i] reaches the query's threshold; remaining_ub[i] is
 * the sum of the later lists' bounds. It skips postings whose own bound does not reach the
 * threshold. An AND reads the first list alone and drops documents that any list does not hold.
 *
 * A warp takes an item (a few blocks of one list) from a queue. The item, its description and the
 * payload of its first blocks are copied to shared memory while the warp works on earlier items.
 * For each item the warp
 *   1. decodes blocks and collects the postings whose tf is large enough, until it has BATCH of
 *      them from two or three blocks. All lanes then have postings when the warp reads the maps,
 *      and the warp waits for memory less often. (The small-batch kernel takes one segment at a
 *      time.) A filter's early mask drops postings before they are collected: most of them, so
 *      that a batch comes from many blocks.
 *   2. gets a bound for each posting from a table by tf (a shuffle), computed with the shortest
 *      document's K.
 *   3. reads the query's mask, if there is one, and drops postings that it does not allow. Then it
 *      reads the presence maps of the later lists. Where a list is absent, its bound is subtracted
 *      from the posting's (AND: the posting is dropped).
 *      Of the documents that are left it reads the values that the query's filter tests.
 *   4. queues the postings that remain. It takes up to 32 at a time, one a lane, and computes the
 *      exact impact in the item's list from the document's length. The other lists' tf classes
 *      give bounds. Dense lists give the exact tf: the docid's rank in the map is the posting's
 *      position.
 *   5. looks up in the other lists the documents that still reach the threshold. The warp does
 *      this together, best bound first, later lists first. A document is accepted only if no
 *      earlier list holds it.
 *
 * The threshold begins at a bound stored with the lists (derive.cu). It rises by a histogram of
 * exact scores. Each document is counted once, so the lower edge of the bin that holds the k-th
 * best score so far never exceeds the k-th best score. The warp that finishes a query's last item
 * selects the best k, if k <= SMALL_K. */
#ifndef GX_QUERY_GPU_KERNELS_SEARCH_CUH
#define GX_QUERY_GPU_KERNELS_SEARCH_CUH

#include "query/gpu/kernels/score.cuh"

#include <type_traits>

namespace gx {

/* Thread blocks per SM. This limits the registers of a thread. They must suffice for the loop over
 * an item's blocks: spills in that loop halve the speed. */
template <class P> constexpr uint32_t SEARCH_BLOCKS = P::template doc<true>::V > 4 ? 2 : 3;
/* 64 registers; spilled values are used once an item */
template <> constexpr uint32_t SEARCH_BLOCKS<pair_gpubp128> = 4;

/* Whether a kernel reads the tests of its queries. The fastest one does not: it has a twin that does. */
template <class P> constexpr bool READS_TESTS = true;
template <> constexpr bool READS_TESTS<pair_gpubp128> = false;

/* Marks a decoder pair as that of a twin. */
template <class P> struct with_tests : P {
};
template <class P> struct tested {
    typedef P type;
};
template <> struct tested<pair_gpubp128> {
    typedef with_tests<pair_gpubp128> type;
};
template <class P> constexpr uint32_t SEARCH_BLOCKS<with_tests<P>> = SEARCH_BLOCKS<P>;
template <class P> constexpr bool ALWAYS_STAGED<with_tests<P>> = ALWAYS_STAGED<P>;
/* the hardware reserves 1 KB for each thread block */
constexpr size_t BLOCK_BYTES = SEARCH_WARPS * sizeof(warp_shared<4>) + 1024;
constexpr size_t MOST_SHARED = 196 * 1024; /* of an SM, which leaves 60 KB for L1 */
static_assert(SEARCH_BLOCKS<pair_gpubp128> * BLOCK_BYTES <= MOST_SHARED, "60 KB are left for L1");

/* ---- postings ---- */

/* Loads words[at] to w if slack is not negative. One multiply-add computes the 64-bit address; the
 * compiler does not do that by itself. */
__device__ __forceinline__ void load_if(int slack, const uint32_t *words, uint32_t at, uint32_t &w)
{
    asm("{\n\t.reg .pred wanted;\n\t.reg .u64 from;\n\t"
        "mad.wide.u32 from, %2, 4, %1;\n\t"
        "setp.ge.s32 wanted, %3, 0;\n\t"
        "@wanted ld.global.nc.u32 %0, [from];\n\t}"
        : "+r"(w)
        : "l"(words), "r"(at), "r"(slack));
}

/* Subtracts less from slack unless the word has the bit. */
__device__ __forceinline__ void subtract_unless(uint32_t word, uint32_t bit, int less, int &slack)
{
    asm("{\n\t.reg .pred absent;\n\t.reg .u32 there;\n\t"
        "and.b32 there, %1, %2;\n\t"
        "setp.eq.u32 absent, there, 0;\n\t"
        "@absent sub.s32 %0, %0, %3;\n\t}"
        : "+r"(slack)
        : "r"(word), "r"(bit), "r"(less));
}

/* What an AND subtracts from the slack of a posting that a list does not hold. The slack is then
 * negative, and stays so for any number of lists. */
constexpr int ABSENT = 1 << 20;
static_assert((uint64_t)ABSENT * GX_MAX_TERMS <= 1u << 31, "no sum of them is less than an int can be");

/* Appends the postings of a segment with f >= tf_min to those that wait for the maps. Returns
 * their new number. NUMBERED: each has its number in the item, the lane's first one `number`, beside its tf. */
template <bool NUMBERED, uint32_t V>
__device__ __forceinline__ uint32_t collect(const uint32_t (&d)[V], const uint32_t (&f)[V], uint32_t tf_min,
                                            uint2 *waiting, uint32_t n_waiting, uint32_t lane, uint32_t number)
{
#pragma unroll
    for (uint32_t v = 0; v < V; ++v) {
        const bool passes = f[v] >= tf_min;
        const uint32_t who = __ballot_sync(ALL_LANES, passes);
        if (passes)
            waiting[n_waiting + __popc(who & ((1u << lane) - 1))] =
                make_uint2(d[v], NUMBERED ? min(f[v], NUMBERED_TF) | (number + v) << NUMBER_SHIFT : f[v]);
        n_waiting += __popc(who);
    }
    return n_waiting;
}

/* Loads words[at] to w if f >= least. */
__device__ __forceinline__ void load_if_reached(uint32_t f, uint32_t least, const uint32_t *words, uint32_t at,
                                                uint32_t &w)
{
    asm("{\n\t.reg .pred wanted;\n\t.reg .u64 from;\n\t"
        "mad.wide.u32 from, %2, 4, %1;\n\t"
        "setp.ge.u32 wanted, %3, %4;\n\t"
        "@wanted ld.global.nc.u32 %0, [from];\n\t}"
        : "+r"(w)
        : "l"(words), "r"(at), "r"(f), "r"(least));
}

/* Sets the f of a segment's postings that the query's early mask does not allow to 0. Few are left, so that the
 * maps of lists are seldom read. */
template <uint32_t V>
__device__ __forceinline__ void apply_early_mask(const gpu_query &Q, uint32_t n_docs, uint32_t tf_min,
                                                 const uint32_t (&d)[V], uint32_t (&f)[V])
{
    const uint32_t shift = Q.flags >> QUERY_MASK_SHIFT;
    uint32_t slot[V], w[V];
#pragma unroll
    for (uint32_t v = 0; v < V; ++v) {
        slot[v] = min(d[v], n_docs - 1) >> shift; /* a damaged list can have any docid */
        w[v] = 0;
        load_if_reached(f[v], tf_min, Q.mask, slot[v] / 32, w[v]);
    }
#pragma unroll
    for (uint32_t v = 0; v < V; ++v)
        f[v] *= __funnelshift_r(w[v], 0, slot[v]) & 1;
}

/* Takes n waiting postings, up to BATCH / 32 a lane. Lanes without one get a tf of 0. The
 * postings' places are free afterwards. */
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

/* Drops the postings of documents that the mask does not allow. Returns false if none is left. The
 * mask is read before the maps because it decides for all lists. */
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

/* Drops the postings of documents that do not meet the tests. Returns false if none is left. A value
 * has more bits than a document has in a map, so the tests come behind the maps, which leave few. */
template <uint32_t V>
__device__ __forceinline__ bool apply_tests(const gpu_test *tests, uint32_t n, const uint32_t (&d)[V], int (&slack)[V])
{
    uint32_t met = 0; /* bit v: posting v meets a test of this clause */
    int best = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < n && best >= 0; ++i) {
        const gpu_test t = read(tests + i);
        const test_column c = column_of(t);
        const bool ends = !(t.values & TEST_OR);
        best = ends ? -1 : 0;
#pragma unroll
        for (uint32_t v = 0; v < V; ++v) {
            uint32_t word = 0;
            load_if(slack[v], c.words, d[v] >> (5 - c.log_bits), word);
            met |= (uint32_t)meets(t, c, word, d[v]) << v;
            slack[v] = ends && !(met >> v & 1) ? -1 : slack[v];
            best = max(best, slack[v]);
        }
        met = ends ? 0 : met;
        best = __any_sync(ALL_LANES, best >= 0) ? 0 : -1;
    }
    return best >= 0;
}

/* Appends those of up to 32 * V postings that pass the query's mask, the presence maps and, if
 * TESTED, the query's tests to the queue, which grows down from queue_end. Returns its new length. A
 * tf of 0 marks no posting. Lane i of slack_by_tf has the slack of a posting with tf i (lane 31: of
 * 31 and more): its bound minus the threshold (AND: 0), or a negative value if the bound does not
 * reach the threshold. With SOME_REQUIRED the lists of an AND from L.n_required on need not hold a document.
 * NUMBERED: as collect has it. */
template <bool TESTED, uint32_t V, bool SOME_REQUIRED = false, bool NUMBERED = false>
__device__ __forceinline__ uint32_t filter(const gpu_index &X, const gpu_query &Q, const item_lists &L, int slack_by_tf,
                                           uint32_t (&d)[V], const uint32_t (&f)[V], uint2 *queue_end,
                                           uint32_t *n_queued, uint32_t queued)
{
    int slack[V]; /* negative: dropped. Sums of bounds are below 2^31. */
    uint32_t w[V];
#pragma unroll
    for (uint32_t v = 0; v < V; ++v) {
        slack[v] = __shfl_sync(ALL_LANES, slack_by_tf, min(NUMBERED ? f[v] & NUMBERED_TF : f[v], 31u));
        d[v] = min(d[v], X.n_docs - 1); /* a damaged list can have any docid */
        w[v] = 0;
    }
    if (Q.flags & QUERY_MASKED && !apply_mask<V>(Q.mask, d, slack))
        return queued;
    for (uint32_t j = L.li + 1; j < (SOME_REQUIRED ? L.n_required : L.n); ++j) {
        const term_filter t = read(&L.terms[j].filter);
        const uint32_t *map = X.maps + t.map;
        const int less = L.conjunctive ? ABSENT : (int)t.bound;
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
    if (TESTED && !apply_tests<V>(query_tests(L.terms, L.n), count_tests(Q.flags), d, slack))
        return queued;
    int mine = V;
#pragma unroll
    for (uint32_t v = 0; v < V; ++v)
        mine += slack[v] >> 31;
    const uint32_t n = __reduce_add_sync(ALL_LANES, mine);
    if (threadIdx.x % 32 == 0)
        *n_queued = queued;
    __syncwarp();
    if (mine) { /* true in few lanes as a rule */
        uint2 *to = queue_end - atomicAdd(n_queued, mine);
#pragma unroll
        for (uint32_t v = 0; v < V; ++v) {
            if (slack[v] >= 0)
                *--to = make_uint2(d[v], f[v]);
        }
    }
    __syncwarp();
    return queued + n;
}

/* ---- items ---- */

/* Decodes a block of one segment. Most blocks are whole, and the code for those is shorter. */
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
            __builtin_unreachable(); /* a list's last block has the rest of the list */
        dec.open(words, n_words, n, lane, arg);
        dec.next(lane, v);
    }
}

/* Decodes a block, one segment at a time. */
template <class P> struct block_reader {
    typedef typename P::template doc<false> D;
    typedef typename P::template tf<false> F;
    static constexpr bool single = D::BLOCK == D::SEG; /* a block is one segment */

    uint32_t done = 0; /* the block's postings before the segment */
    uint32_t carry = 0;
    /* ptxas (13.0) takes members that are not initialized here for dead after the first segment. */
    D doc = {};
    F tf = {};

    /* Decodes the segment's tfs. They are 0 past the list's end. */
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

    /* Advances to the next segment. Returns true if that begins the next block. */
    __device__ __forceinline__ bool next(uint32_t n)
    {
        done += D::SEG;
        if (!single && done < n)
            return false;
        done = 0;
        return true;
    }
};

/* Returns the list of an item. */
template <bool LONG> __device__ __forceinline__ const gpu_term *item_list(const gpu_batch &R, const staged_item &staged)
{
    return item_terms<LONG>(R, staged) + ((staged.item.packed & ITEM_TERM) - staged.query.first_term);
}

/* Switches to the other buffer. Then starts filling the buffer that was read: with the item's next
 * blocks, or at the item's end with the first blocks of the next item. */
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
    bool stages_next = false;
    if (c.end == cnt && more && !ready) { /* the warp has waited, so the next item's description is complete */
        const gpu_term *list = item_list<LONG>(R, next_item);
        stages_next = list->filter.bound + list->weight.remaining_ub >= next_item.threshold;
        from = &next_item;
    }
    if (c.end < cnt || stages_next)
        stage_chunk<P>(X, *from, item_list<LONG>(R, *from)->payload.words, c.end < cnt ? c.end : 0, ws, b ^ 1, lane);
    ready = false;
    __syncwarp(); /* all lanes have read what lane 0 sets now */
    if (lane == 0) {
        ws.current = c;
        ws.buffer = b;
        ws.next_staged = stages_next;
    }
    __syncwarp();
}

/* A warp's search of one item: the item, and how far the warp has come.
 *
 *    decode_segment -> postings that wait -> filter_waiting -> queue -> score_queued
 *
 * With DIRECT, filter_waiting takes a segment's postings from registers and none wait. */
template <class P, bool LONG, uint32_t V> struct item_search {
    typedef block_reader<P> reader;
    typedef threshold_policy<P> policy;
    static constexpr bool DIRECT = policy::BY_SEGMENT && V == BATCH / 32;

    const gpu_index &X;
    const gpu_batch &R;
    const staged_item &staged, &next_item; /* next_item is set if `more` */
    const bool more;
    const uint32_t lane;
    warp_shared<V> &ws;
    const uint32_t n_blocks, block_size; /* blocks of the item; postings of a whole block */
    const item_lists L;
    const gpu_term *const own; /* the item's list */

    bool ready;      /* the copies of the item's first chunk are complete */
    uint32_t T;      /* the threshold */
    uint32_t tf_min; /* the least tf whose bound reaches T; 0: T has changed */
    int slack_by_tf = -1;
    uint32_t k = 0, n = 0; /* the block that is read, and its postings */
    uint32_t n_waiting = 0, n_queued = 0, n_bounded = 0;
    reader block;

    /* Store the bound of a posting by its tf, lane i that of tf i (lane 31: of 31 and more), with
     * all later lists at their bounds. A tf of 0 is no posting. */
    __device__ __forceinline__ void store_bounds()
    {
        uint32_t bound = own->filter.bound;
        if (lane < 31)
            bound = min(bound, gx_bm25_impact(own->weight.w, lane, staged.query.min_K));
        ws.bound_by_tf[lane] = lane ? bound + own->weight.remaining_ub : 0;
    }

    /* Derive tf_min and slack_by_tf from T. Returns false if no posting of the list reaches T: then
     * neither do those that wait. */
    __device__ __forceinline__ bool apply_threshold()
    {
        const uint32_t bound = ws.bound_by_tf[lane], reach = __ballot_sync(ALL_LANES, bound >= T);
        if (reach == 0)
            return false;
        tf_min = __ffs(reach) - 1;
        slack_by_tf = max((int)bound - (int)T, -1); /* a difference below INT_MIN would wrap */
        slack_by_tf = L.conjunctive ? min(slack_by_tf, 0) : slack_by_tf;
        return true;
    }

    /* Decode the next segment to d and f; its postings with tf >= tf_min wait, of which an early mask
     * drops some. */
    __device__ __forceinline__ void decode_segment(uint32_t (&d)[V], uint32_t (&f)[V])
    {
        const bool begins = reader::single || block.done == 0;
        chunk c = read(&ws.current);
        if (begins && k == c.end) {
            next_chunk<P, LONG>(X, R, staged, next_item, more, ready, lane, ws);
            c = read(&ws.current);
        }
        const block_offsets at = staged.blocks[k], next = staged.blocks[k + 1];
        const uint32_t *docs = ws.stage + (int)(c.docs + at.docs), *tfs = ws.stage + (int)(c.tfs + at.tfs);
        if (!ALWAYS_STAGED<P> && !c.staged) {
            docs = X.payload + own->payload.words + at.docs;
            tfs = X.payload + own->payload.words + at.tfs;
        }
        if (begins) {
            n = block_size;
            if (staged.item.packed & ITEM_LAST && k + 1 == n_blocks)
                n = own->payload.df - (own->at.n_blocks - 1) * block_size;
        }
        block.tfs(tfs, next.tfs - at.tfs, n, block_size, lane,
                  decoder_arg<typename reader::F>(own->weight.codecs >> 16), f);
        if (!policy::owns(staged.query.shares, staged.item.packed, lane)) {
#pragma unroll
            for (uint32_t v = 0; v < V; ++v)
                f[v] = 0; /* another item scores it */
        }
        block.docids(docs, next.docs - at.docs, n, staged.heads[k], lane,
                     decoder_arg<typename reader::D>(own->weight.codecs), d);
        if (READS_TESTS<P> && !DIRECT && staged.query.flags & QUERY_EARLY_MASK)
            apply_early_mask<V>(staged.query, X.n_docs, tf_min, d, f);
        n_waiting = DIRECT ? BATCH
                           : collect<HAS_PLAIN_PHRASES<P>>(d, f, tf_min, ws.postings, n_waiting, lane,
                                                           k * block_size + block.done + lane * V);
        k += block.next(n);
    }

    /* Pass up to BATCH postings (with DIRECT: the segment d, f) to the maps, and those that remain
     * to the queue. Returns the query's threshold, or T if it is not known to be higher. */
    __device__ __forceinline__ uint32_t filter_waiting(uint32_t (&d)[V], uint32_t (&f)[V])
    {
        const uint32_t read_early = policy::peek(R, staged.item.query); /* the load ends while the maps are read */
        const uint32_t take = min(n_waiting, BATCH);
        n_waiting -= take;
        if constexpr (DIRECT) {
            n_queued = filter<READS_TESTS<P>, V, HAS_PHRASES<P>>(X, staged.query, L, slack_by_tf, d, f,
                                                                 ws.postings + SPACE<V>, &ws.n_queued, n_queued);
        } else {
            uint32_t docids[BATCH / 32], tfs[BATCH / 32];
            take_batch(ws.postings + n_waiting, take, lane, docids, tfs);
            n_queued = filter<READS_TESTS<P>, BATCH / 32, HAS_PHRASES<P>, HAS_PLAIN_PHRASES<P>>(
                X, staged.query, L, slack_by_tf, docids, tfs, ws.postings + SPACE<V>, &ws.n_queued, n_queued);
        }
        return __shfl_sync(ALL_LANES, read_early, 0);
    }

    /* Score up to 32 queued postings. Returns the threshold, at least `now`. */
    __device__ __forceinline__ uint32_t score_queued(uint32_t now)
    {
        const uint32_t take = min(n_queued, 32u);
        const uint2 *const queue_end = ws.postings + SPACE<V>;
        const uint2 posting = lane < take ? queue_end[(int)lane - (int)n_queued] : make_uint2(0, 1);
        n_queued -= take;
        if constexpr (HAS_PLAIN_PHRASES<P>) {
            n_bounded = bound_phrases<P>(X, R, staged, L, posting, lane < take, max(T, now), lane,
                                         static_cast<phrase_shared<V> &>(ws).bounded, n_bounded);
            now = n_bounded >= 32 ? score_bounded(now) : now;
        } else {
            now = score<P, LONG>(X, R, staged, L, posting, lane < take, max(T, now), lane, ws);
        }
        __syncwarp();
        return now;
    }

    /* Score up to 32 documents of phrase_shared.bounded. As score_queued. */
    __device__ __forceinline__ uint32_t score_bounded(uint32_t now)
    {
        const uint32_t take = min(n_bounded, 32u);
        const uint2 *const bounded = static_cast<phrase_shared<V> &>(ws).bounded;
        n_bounded -= take;
        const uint2 posting = lane < take ? bounded[n_bounded + lane] : make_uint2(0, 1);
        __syncwarp();
        return score_phrases<P>(X, R, staged, L, posting, lane < take, max(T, now), lane, ws);
    }

    __device__ __forceinline__ void run()
    {
        for (;;) {
            if (tf_min == 0 && !apply_threshold())
                break;
            uint32_t d[V], f[V];
            while (k < n_blocks && n_waiting < (DIRECT ? 1 : BATCH))
                decode_segment(d, f);
            uint32_t now = T;
            if (n_waiting)
                now = filter_waiting(d, f);
            const bool ends = k == n_blocks && n_waiting == 0;
            while (n_queued > MAX_QUEUED || (n_queued && ends))
                now = score_queued(now);
            if constexpr (HAS_PLAIN_PHRASES<P>) {
                if (ends && n_bounded)
                    now = score_bounded(now);
            }
            if (ends)
                break;
            tf_min = now > T ? 0 : tf_min;
            T = max(T, now);
        }
    }
};

/* Search one item, by a warp. next_item describes the item after it, if there is more. */
template <class P, bool LONG, uint32_t V>
__device__ __forceinline__ void search_item(const gpu_index &X, const gpu_batch &R, const staged_item &staged,
                                            const staged_item &next_item, bool more, uint32_t lane, warp_shared<V> &ws)
{
    const item_lists L = {
        item_terms<LONG>(R, staged), staged.query.n_terms, (staged.item.packed & ITEM_TERM) - staged.query.first_term,
        (staged.query.flags & QUERY_AND) != 0, HAS_PHRASES<P> ? __ldg(R.programs + staged.query.program) : 0};
    const gpu_term *own = L.terms + L.li;
    const bool ready = ws.next_staged;
    const uint32_t T = staged.threshold;
    __syncwarp();
    if (lane == 0) {
        ws.next_staged = 0;
        ws.current.end = 0;
    }
    if (own->filter.bound + own->weight.remaining_ub < T)
        return;
    item_search<P, LONG, V> s = {
        X, R, staged, next_item, more, lane, ws, item_blocks(staged.item.packed), block_len<P>(X), L, own, ready, T, 0};
    s.store_bounds();
    if (!ready)
        stage_chunk<P>(X, staged, own->payload.words, 0, ws, ws.buffer ^ 1, lane);
    __syncwarp();
    s.run();
    if (lane == 0 && threshold_policy<P>::counts_blocks(staged.item.packed))
        ws.decoded += s.k;
}

/* A warp has finished an item. The warp that finishes a query's last item selects the query's best
 * k, if k <= SMALL_K. */
template <uint32_t V, class SHARED>
__device__ __forceinline__ void finish_item(const gpu_batch &R, const staged_item &staged, uint32_t lane, SHARED &ws)
{
    uint32_t last = 0;
    if (lane == 0) { /* the lane that wrote all that the warp wrote */
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
}

/* Searches the items of a batch, which come from a queue. While a warp works on an item, the next
 * item's description, the item after it, and the number of the one after that are being loaded. */
template <class P, bool LONG>
__global__ void __launch_bounds__(SEARCH_WARPS * 32, SEARCH_BLOCKS<P>)
    search(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_batch R)
{
    constexpr uint32_t V = P::template doc<true>::V;
    extern __shared__ uint4 shared[];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    typedef typename std::conditional<HAS_PLAIN_PHRASES<P>, phrase_shared<V>, warp_shared<V>>::type space;
    warp_shared<V> &ws = reinterpret_cast<space *>(shared)[warp];
    const uint32_t first_free = gridDim.x * SEARCH_WARPS; /* the first items are assigned by position */
    uint32_t next = blockIdx.x + gridDim.x * warp, later = 0;
    if (next >= R.n_items)
        return;
    if (lane == 0) {
        ws.decoded = ws.lookups = ws.buffer = ws.next_staged = 0;
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
            ws.next_staged = 0;
        __syncwarp();
        finish_item<V>(R, staged, lane, ws);
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
