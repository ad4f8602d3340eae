/* phrases.cuh: tests a document for the phrases of its query (query/plan/phrase_program.h), where positions are not
 * plain. The search (search.cuh) has found that the document holds all their words, and that the sum of its impacts
 * reaches the threshold.
 *
 * The warp finds the document's posting in each list of the phrases, and by the tfs of the posting's block where its
 * positions are among the block's (codecs/positions.h): lane i has the place of list i. The least tf of a phrase bounds
 * its matches, so that most documents are dropped before positions are read. Then the lanes take 31 positions at a
 * time of the word that has the fewest in the document, and look where the other words would have to stand. */
#ifndef GX_QUERY_GPU_KERNELS_PHRASES_CUH
#define GX_QUERY_GPU_KERNELS_PHRASES_CUH

#include "query/gpu/kernels/phrase_words.cuh"
#include "query/gpu/kernels/position_stream.cuh"

namespace gx {

/* Marks a decoder pair as that of the search of queries with phrases. */
template <class P> struct with_phrases : P {
};
template <class P> constexpr bool HAS_PHRASES<with_phrases<P>> = true;
template <class P> constexpr bool ALWAYS_STAGED<with_phrases<P>> = ALWAYS_STAGED<P>;

/* Returns the place of a document that the list holds, the same in all lanes. */
template <class P>
__device__ __forceinline__ word_place find_place(const gpu_index &X, const gpu_positions &S, const gpu_term *t,
                                                 uint32_t doc, uint32_t lane)
{
    typedef typename P::template tf<true> T;
    const uint32_t posting = find_posting<P>(X, t, doc, lane);
    const term_blocks at = read(&t->at);
    const term_payload p = read(&t->payload);
    const uint32_t len = block_len<P>(X), j = posting / len, own = posting - j * len;
    word_place w = {0, 0, 0, 0, 0};
    if (posting == UINT32_MAX || j >= at.n_blocks)
        return w;
    const uint32_t n = j + 1 < at.n_blocks ? len : p.df - j * len, block = at.first_block + j;
    const uint32_t begin = j ? __ldg(X.tf_ends + block - 1) : p.tf_begin, end = __ldg(X.tf_ends + block);
    uint32_t before = 0, all = 0, tf = 0;
    T dec;
    dec.open(X.payload + p.words + begin, end - begin, n, lane, decoder_arg<T>(t->weight.codecs >> 16));
    for (uint32_t i = 0; i < n; i += T::SEG) {
        uint32_t v[T::V];
        dec.next(lane, v);
#pragma unroll
        for (uint32_t u = 0; u < T::V; ++u) {
            const uint32_t q = i + lane * T::V + u, x = q < n ? v[u] + 1 : 0;
            all += x;
            before += q < own ? x : 0;
            tf = q == own ? x : tf;
        }
    }
    w.n_values = __reduce_add_sync(ALL_LANES, all);
    w.first = __reduce_add_sync(ALL_LANES, before);
    w.tf = __reduce_max_sync(ALL_LANES, tf);
    w.begin = block ? positions_end(S, block - 1) : 0;
    const uint64_t words_end = positions_end(S, block), words = words_end - w.begin;
    w.n_words = w.begin <= words_end && words_end <= S.n_words && words < MAX_BLOCK_WORDS ? (uint32_t)words : 0;
    return w;
}

/* ---- positions ---- */

/* Whether q, of which lanes 1 .. 31 have rising values, has the value. */
__device__ __forceinline__ bool has_position(uint32_t q, uint32_t value)
{
    uint32_t at = 0;
#pragma unroll
    for (uint32_t step = 16; step; step >>= 1)
        at += __shfl_sync(ALL_LANES, q, at + step) <= value ? step : 0;
    return __shfl_sync(ALL_LANES, q, at) == value && at;
}

/* ---- a phrase ---- */

__device__ __forceinline__ word_place shuffle(const word_place &w, uint32_t from)
{
    return {__shfl_sync(ALL_LANES, w.begin, from), __shfl_sync(ALL_LANES, w.n_words, from),
            __shfl_sync(ALL_LANES, w.n_values, from), __shfl_sync(ALL_LANES, w.first, from),
            __shfl_sync(ALL_LANES, w.tf, from)};
}

/* Returns the word of the phrase that has the fewest positions. */
__device__ __forceinline__ uint32_t rarest_word(const program_phrase &p, uint32_t tf_of_place)
{
    uint32_t rarest = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < p.n; ++i) {
        const uint32_t tf = __shfl_sync(ALL_LANES, tf_of_place, p.place(i));
        rarest = tf < least ? i : rarest;
        least = min(least, tf);
    }
    return rarest;
}

/* Whether the word of a place stands at `target`, of each lane that asks. */
__device__ __forceinline__ bool stands_at(const gpu_positions &S, const word_place &w, uint32_t target, bool asks,
                                          uint32_t lane, bool &readable)
{
    position_stream s;
    bool found = false;
    readable = readable && s.open(S, w);
    while (readable && s.next < s.end &&
           __any_sync(ALL_LANES, asks && !found && (s.carry == UINT32_MAX || target > s.carry))) {
        uint32_t q;
        readable = s.read(lane, q) != 0;
        found = has_position(q, target) || found;
    }
    return asks && found;
}

/* Returns the tf of an exact phrase in the document. Lane i has the place of list i. readable: whether all positions
 * could be read. */
__device__ __forceinline__ uint32_t count_phrase(const gpu_positions &S, const program_phrase &p,
                                                 const word_place &mine, uint32_t title, uint32_t lane, bool &readable)
{
    const uint32_t base = rarest_word(p, mine.tf), before = p.offset(base) - p.offset(0),
                   behind = p.offset(p.n - 1) - p.offset(base);
    position_stream s;
    uint32_t tf = 0;
    readable = readable && s.open(S, shuffle(mine, p.place(base)));
    while (readable && s.next < s.end) {
        uint32_t at;
        readable = s.read(lane, at) != 0;
        bool alive = at != NO_POSITION && at >= before && (at - before < title) == (at + behind < title);
        for (uint32_t i = 0; i < p.n && __any_sync(ALL_LANES, alive); ++i) {
            if (i != base)
                alive =
                    stands_at(S, shuffle(mine, p.place(i)), at - p.offset(base) + p.offset(i), alive, lane, readable);
        }
        tf += __popc(__ballot_sync(ALL_LANES, alive));
    }
    return tf;
}

template <class P>
__device__ __noinline__ bool match_phrases(const gpu_index &X, const gpu_batch &R, const gpu_query &Q,
                                           const gpu_term *terms, candidate &c, uint32_t T, uint32_t lane)
{
    const phrase_program G(R.programs + Q.program);
    const gpu_positions S = *R.positions;
    const uint32_t doc = c.doc;
    word_place mine = {0, 0, 0, 0, 0};
    uint32_t score = c.s; /* less what the phrases' lists have added */
    for (uint32_t i = 0; i < G.n_places; ++i) {
        const gpu_term *t = terms + __ldg(G.places + i);
        const word_place w = find_place<P>(X, S, t, doc, lane);
        if (w.tf == 0)
            return false;
        score -= gx_bm25_impact(t->weight.w, w.tf, c.K);
        if (lane == i)
            mine = w;
    }
    const uint32_t *at = G.phrases;
    uint32_t bound = score;
    for (uint32_t i = 0; i < G.n_phrases; ++i) {
        const program_phrase p = next_phrase(at);
        bound += gx_bm25_bound(p.w, __shfl_sync(ALL_LANES, mine.tf, p.place(rarest_word(p, mine.tf))), c.K);
    }
    if (bound < T)
        return false;
    const uint32_t title = title_positions(S, doc);
    bool readable = true;
    at = G.phrases;
    for (uint32_t i = 0; i < G.n_phrases; ++i) {
        const program_phrase p = next_phrase(at);
        const uint32_t tf = count_phrase(S, p, mine, title, lane, readable);
        if (!readable && lane == 0)
            atomicAdd(R.counts + COUNT_UNREADABLE, 1ull);
        if (!readable || tf == 0)
            return false;
        score += gx_bm25_impact(p.w, tf, c.K);
    }
    c.s = score;
    return score >= T;
}

} // namespace gx

#endif
