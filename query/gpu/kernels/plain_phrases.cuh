/* plain_phrases.cuh: tests documents for the phrases of their query (query/plan/phrase_program.h), one a lane, where
 * positions are plain (gpu_positions). The search (search.cuh) has found that they hold all the words that they must.
 *
 *   1. The least tf class of a phrase's words bounds its tf. Few documents are left once the threshold has risen; they
 *      wait until there is one for each lane.
 *   2. Each lane finds the posting of its document: it knows that of the item's list, and in a dense list a posting's
 *      number is the docid's rank in the map. In other lists it searches heads and then its block. The least tf of the
 *      words bounds the phrase's.
 *   3. Each lane takes the positions of the word that has the fewest in its document, and looks where the others would
 *      have to stand.
 *   4. What words beside the phrases add to the score is looked up. */
#ifndef GX_QUERY_GPU_KERNELS_PLAIN_PHRASES_CUH
#define GX_QUERY_GPU_KERNELS_PLAIN_PHRASES_CUH

#include "query/gpu/kernels/phrase_words.cuh"

namespace gx {

/* Marks a decoder pair as that of the search of queries with phrases, with plain positions. */
template <class P> struct with_plain_phrases : P {
};
template <class P> constexpr bool HAS_PHRASES<with_plain_phrases<P>> = true;
template <class P> constexpr bool HAS_PLAIN_PHRASES<with_plain_phrases<P>> = true;
template <class P> constexpr bool ALWAYS_STAGED<with_plain_phrases<P>> = ALWAYS_STAGED<P>;

/* Where a word stands in a lane's document: n positions, from S.plain[at / 2^16] on, n = at % 2^16. 0: nowhere. */
typedef unsigned long long plain_places;

__device__ __forceinline__ uint32_t count_places(plain_places at)
{
    return (uint32_t)at & MOST_PLAIN;
}

/* Returns the places of the posting before which `postings` is, of a block. */
__device__ __forceinline__ plain_places read_places(const block_start &b, const uint32_t *postings)
{
    const uint32_t first = __ldg(postings) & 0xffff;
    return (b.value + first) << 16 | ((__ldg(postings + 1) & 0xffff) - first);
}

/* Returns the places of posting number `posting` of a list. */
__device__ __forceinline__ plain_places places_of(const gpu_positions &S, const term_blocks &at, uint32_t len,
                                                  uint32_t posting)
{
    const uint32_t j = posting / len;
    if (j >= at.n_blocks)
        return 0;
    const block_start b = read(S.starts + at.first_block + j);
    return read_places(b, S.postings + b.posting + posting % len);
}

/* Returns the places of a document in a list. *is_far: its block does not tell. */
__device__ __forceinline__ plain_places find_places(const gpu_index &X, const gpu_positions &S, const gpu_term *t,
                                                    uint32_t len, uint32_t doc, bool *is_far)
{
    const term_blocks at = read(&t->at);
    const uint32_t entry = doc >> at.table_shift;
    uint32_t j = __ldg(X.tables + at.table + entry), end = at.n_blocks;
    if (at.table_shift != NO_TABLE_SHIFT && entry < (X.n_docs - 1) >> at.table_shift)
        end = min(end, __ldg(X.tables + at.table + entry + 1) + 1);
    while (end > j + 1) {
        const uint32_t mid = j + (end - j) / 2;
        const bool before = __ldg(X.heads + at.first_block + mid) <= doc;
        j = before ? mid : j;
        end = before ? end : mid;
    }
    const uint32_t head = __ldg(X.heads + at.first_block + j), d = doc - head;
    *is_far = doc >= head && d >= FAR;
    if (doc < head || d >= FAR)
        return 0;
    const block_start b = read(S.starts + at.first_block + j);
    const uint32_t *p = S.postings + b.posting;
    for (uint32_t n = j + 1 < at.n_blocks ? len : read(&t->payload).df - j * len; n > 1;) {
        const uint32_t half = n / 2;
        p += __ldg(p + half) >> 16 <= d ? half : 0;
        n -= half;
    }
    return __ldg(p) >> 16 == d ? read_places(b, p) : 0;
}

/* Whether the word stands at `target`. */
__device__ __forceinline__ bool stands_at(const uint16_t *plain, plain_places at, uint32_t target)
{
    const uint16_t *p = plain + (at >> 16);
    for (uint32_t n = count_places(at); n > 1;) {
        const uint32_t half = n / 2;
        p += __ldg(p + half) <= target ? half : 0;
        n -= half;
    }
    return __ldg(p) == target;
}

/* Returns the tf of an exact phrase in the lane's document. at: places of the phrase's words, the first of them that
 * of place `first`. All words stand somewhere. */
__device__ __forceinline__ uint32_t count_plain(const uint16_t *plain, const program_phrase &p, const plain_places *at,
                                                uint32_t first, uint32_t title)
{
    uint32_t base = 0, least = UINT32_MAX, tf = 0;
    for (uint32_t i = 0; i < p.n; ++i) {
        const uint32_t n = count_places(at[p.place(i) - first]);
        base = n < least ? i : base;
        least = min(least, n);
    }
    const uint16_t *own = plain + (at[p.place(base) - first] >> 16);
    const uint32_t offset = p.offset(base), before = offset - p.offset(0), behind = p.offset(p.n - 1) - offset;
    for (uint32_t u = 0; u < least; ++u) {
        const uint32_t q = __ldg(own + u);
        bool alive = q >= before && (q - before < title) == (q + behind < title);
        for (uint32_t i = 0; i < p.n && alive; ++i) {
            if (i != base)
                alive = stands_at(plain, at[p.place(i) - first], q - offset + p.offset(i));
        }
        tf += alive;
    }
    return tf;
}

/* Documents of the item's list, one a lane, and all that tells their scores. */
template <class P> struct plain_search {
    const gpu_index &X;
    const gpu_positions S;
    const item_lists &L;
    const phrase_program G;
    const uint32_t own_first; /* number of the item's first posting in its list */
    const uint2 posting;      /* docid, and tf with number */
    const float K;
    const uint32_t lane;
    uint32_t s, T; /* s: upper bound of the score; 0: no candidate */
    uint32_t lookups;

    /* ---- bounds by the maps ---- */

    __device__ __forceinline__ uint32_t bound_phrase(const program_phrase &p) const
    {
        uint32_t tf = UINT32_MAX;
        for (uint32_t i = 0; i < p.n; ++i) {
            const uint32_t j = __ldg(G.places + p.place(i));
            if (j == L.li) {
                tf = min(tf, posting.y & NUMBERED_TF);
            } else {
                const uint32_t c = map_tf_class(X, read(&L.terms[j].filter), posting.x);
                tf = c == CLASS_ANY ? tf : min(tf, class_tf(c));
            }
        }
        return gx_bm25_bound(p.w, tf, K);
    }

    /* Of a word beside the phrases; *unknown: its impact may be less. */
    __device__ __forceinline__ uint32_t bound_word(uint32_t j, bool *unknown) const
    {
        const term_filter f = read(&L.terms[j].filter);
        const float w = L.terms[j].weight.w;
        *unknown = false;
        if (j == L.li)
            return gx_bm25_impact(w, posting.y & NUMBERED_TF, K);
        if (!present(X, f, posting.x))
            return 0;
        const uint32_t c = map_tf_class(X, f, posting.x);
        *unknown = !class_exact(f, c);
        return class_bound(f, c, w, K);
    }

    __device__ __forceinline__ void drop_if_below() { s = s < T ? 0 : s; }

    __device__ __forceinline__ void bound_all()
    {
        const uint32_t *at = G.phrases;
        uint32_t sum = 0;
        bool unknown;
        for (uint32_t i = 0; i < G.n_phrases; ++i)
            sum += bound_phrase(next_phrase(at));
        for (uint32_t i = 0; i < G.n_words; ++i)
            sum += bound_word(__ldg(G.words + i), &unknown);
        s = s ? sum : 0;
    }

    /* ---- look-ups ---- */

    /* Returns the places of the document in list j, or 0: the list does not hold it, or the lane has not asked. */
    __device__ __forceinline__ plain_places find(uint32_t j, const term_filter &f, bool asks)
    {
        const gpu_term *t = L.terms + j;
        const uint32_t len = block_len<P>(X);
        bool is_far = false;
        if (j == L.li)
            return asks ? places_of(S, read(&t->at), len, own_first + (posting.y >> NUMBER_SHIFT)) : 0;
        lookups += __popc(__ballot_sync(ALL_LANES, asks));
        if (f.map_shift == EXACT_SLOTS)
            return asks ? places_of(S, read(&t->at), len, dense_posting(X, f, posting.x)) : 0;
        plain_places places = asks ? find_places(X, S, t, len, posting.x, &is_far) : 0;
        for (uint32_t who = __ballot_sync(ALL_LANES, is_far); who; who &= who - 1) {
            const uint32_t src = __ffs(who) - 1;
            const uint32_t x = find_in_list<P, true>(X, t, __shfl_sync(ALL_LANES, posting.x, src), lane);
            if (lane == src && x != UINT32_MAX)
                places = places_of(S, read(&t->at), len, x);
        }
        return places;
    }

    /* Replace the phrase's bound by what it adds. *first: its first place, and then the next phrase's. */
    __device__ __forceinline__ void test_phrase(const program_phrase &p, uint32_t *first)
    {
        plain_places at[GX_MAX_PLACES];
        const uint32_t others = s - bound_phrase(p);
        uint32_t tf = UINT32_MAX, seen = *first;
        for (uint32_t pass = 0; pass < 2; ++pass) { /* first the lists in which each lane finds its posting */
            seen = *first;
            for (uint32_t i = 0; i < p.n; ++i) {
                const uint32_t q = p.place(i), j = __ldg(G.places + q);
                if (q < seen) /* places are numbered as their words come */
                    continue;
                seen = q + 1;
                const term_filter f = read(&L.terms[j].filter);
                if ((j == L.li || f.map_shift == EXACT_SLOTS) == (pass != 0))
                    continue;
                if (!__any_sync(ALL_LANES, s != 0))
                    break;
                const plain_places x = find(j, f, s != 0);
                at[q - *first] = x;
                tf = min(tf, count_places(x));
                s = s && tf ? others + gx_bm25_bound(p.w, tf, K) : 0;
                drop_if_below();
            }
        }
        if (s) {
            tf = count_plain(S.plain, p, at, *first, title_positions(S, posting.x));
            s = tf ? others + gx_bm25_impact(p.w, tf, K) : 0;
            drop_if_below();
        }
        *first = seen;
    }

    /* Replace the bound of a word beside the phrases by its impact. */
    __device__ __forceinline__ void add_word(uint32_t j)
    {
        const term_filter f = read(&L.terms[j].filter);
        bool unknown;
        const uint32_t bound = bound_word(j, &unknown);
        const float w = L.terms[j].weight.w;
        const uint32_t tf = count_places(find(j, f, s && unknown));
        if (s && unknown) {
            s = s - bound + (tf ? gx_bm25_impact(w, tf, K) : 0);
            s = tf == 0 && j < L.n_required ? 0 : s;
        }
        drop_if_below();
    }

    __device__ __forceinline__ void run()
    {
        const uint32_t *at = G.phrases;
        uint32_t first = 0;
        for (uint32_t i = 0; i < G.n_phrases && __any_sync(ALL_LANES, s != 0); ++i)
            test_phrase(next_phrase(at), &first);
        for (uint32_t i = 0; i < G.n_words && __any_sync(ALL_LANES, s != 0); ++i)
            add_word(__ldg(G.words + i));
    }
};

/* Returns the search for a lane's posting, of which nothing is known yet. */
template <class P>
__device__ __forceinline__ plain_search<P> begin_search(const gpu_index &X, const gpu_batch &R,
                                                        const staged_item &staged, const item_lists &L, uint2 posting,
                                                        bool valid, uint32_t T, uint32_t lane)
{
    const gpu_query &Q = staged.query;
    return {X,
            *R.positions,
            L,
            phrase_program(R.programs + Q.program),
            (staged.item.block - L.terms[L.li].at.first_block) * block_len<P>(X),
            posting,
            gx_bm25_K(query_scorer(Q), __ldg(X.doc_lens + posting.x)),
            lane,
            valid,
            T,
            0};
}

template <class P>
__device__ __noinline__ uint32_t bound_phrases(const gpu_index &X, const gpu_batch &R, const staged_item &staged,
                                               const item_lists &L, uint2 posting, bool valid, uint32_t T,
                                               uint32_t lane, uint2 *bounded, uint32_t n)
{
    plain_search<P> c = begin_search<P>(X, R, staged, L, posting, valid, T, lane);
    c.bound_all();
    c.drop_if_below();
    const uint32_t who = __ballot_sync(ALL_LANES, c.s != 0);
    if (c.s)
        bounded[n + __popc(who & ((1u << lane) - 1))] = posting;
    __syncwarp();
    return n + __popc(who);
}

template <class P, class SHARED>
__device__ __noinline__ uint32_t score_phrases(const gpu_index &X, const gpu_batch &R, const staged_item &staged,
                                               const item_lists &L, uint2 posting, bool valid, uint32_t T,
                                               uint32_t lane, SHARED &ws)
{
    const uint32_t q = staged.item.query, now = threshold_policy<P>::peek(R, q); /* loaded while the maps are read */
    plain_search<P> c = begin_search<P>(X, R, staged, L, posting, valid, T, lane);
    c.bound_all();
    c.T = max(T, __shfl_sync(ALL_LANES, now, 0));
    c.drop_if_below();
    c.run();
    const uint32_t who = __ballot_sync(ALL_LANES, c.s != 0);
    if (who) {
        c.T = accept_all<P>(R, staged.query, q, c.s, posting.x, who, c.T, lane);
        if (lane == 0)
            ws.wrote = 1;
    }
    if (lane == 0)
        ws.lookups += c.lookups;
    return c.T;
}

} // namespace gx

#endif
