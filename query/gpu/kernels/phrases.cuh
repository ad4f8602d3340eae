/* phrases.cuh: tests a document for the phrases of its query (query/plan/phrase_program.h). The search (search.cuh) has
 * found that the document holds all their words, and that the sum of its impacts reaches the threshold.
 *
 * The warp finds the document's posting in each list of the phrases, and by the tfs of the posting's block where its
 * positions are among the block's (codecs/positions.h): lane i has the place of list i. The least tf of a phrase bounds
 * its matches, so that most documents are dropped before positions are read. Then the lanes take 31 positions at a
 * time of the word that has the fewest in the document, and look where the other words would have to stand. */
#ifndef GX_QUERY_GPU_KERNELS_PHRASES_CUH
#define GX_QUERY_GPU_KERNELS_PHRASES_CUH

#include "query/gpu/kernels/kernels.cuh"
#include "query/gpu/kernels/search.cuh"

extern "C" {
#include "query/plan/phrase_program.h"
}

namespace gx {

/* Marks a decoder pair as that of the search of queries with phrases. */
template <class P> struct with_phrases : P {
};
template <class P> constexpr bool HAS_PHRASES<with_phrases<P>> = true;
template <class P> constexpr bool ALWAYS_STAGED<with_phrases<P>> = ALWAYS_STAGED<P>;

constexpr uint32_t NO_POSITION = UINT32_MAX, MOST_POSITION = INT32_MAX;
constexpr uint32_t MAX_BLOCK_WORDS = 1u << 27; /* of positions; so a block's bits are counted in 32 bits */

/* Where the positions of a posting are. */
struct word_place {
    uint64_t begin;    /* words of the posting's block: the first one, among all */
    uint32_t n_words;  /* and their number */
    uint32_t n_values; /* positions in the block */
    uint32_t first;    /* the posting's first one among them */
    uint32_t tf;       /* 0: the list does not hold the document */
};

/* ---- postings ---- */

/* Returns doc's posting in a list that holds it, or UINT32_MAX. As lookup (lists.cuh). */
template <class P>
__device__ __forceinline__ uint32_t find_posting(const gpu_index &X, const gpu_term *t, uint32_t doc, uint32_t lane)
{
    typedef typename P::template doc<true> D;
    const term_filter f = read(&t->filter);
    if (f.map_shift == EXACT_SLOTS)
        return dense_posting(X, f, doc);
    const term_blocks at = read(&t->at);
    const term_payload p = read(&t->payload);
    uint32_t k = __ldg(X.tables + at.table + (doc >> at.table_shift)), c;
    for (;;) {
        const uint32_t i = k + lane;
        c = __popc(__ballot_sync(ALL_LANES, i < at.n_blocks && __ldg(X.heads + at.first_block + i) <= doc));
        if (c < 32)
            break;
        k += 31;
    }
    if (c == 0)
        return UINT32_MAX;
    const uint32_t j = k + c - 1, len = block_len<P>(X), n = j + 1 < at.n_blocks ? len : p.df - j * len;
    const uint32_t begin = j ? __ldg(X.docid_ends + at.first_block + j - 1) : 0,
                   end = __ldg(X.docid_ends + at.first_block + j);
    uint32_t carry = __ldg(X.heads + at.first_block + j) - 1;
    D dec;
    dec.open(X.payload + p.words + begin, end - begin, n, lane, decoder_arg<D>(t->weight.codecs));
    for (uint32_t i = 0; i < n; i += D::SEG) {
        uint32_t d[D::V], hit = D::V;
        dec.next(lane, d);
        carry = segment_docids(d, carry, lane);
#pragma unroll
        for (int v = 0; v < D::V; ++v)
            hit = d[v] == doc && i + lane * D::V + v < n ? v : hit;
        const uint32_t who = __ballot_sync(ALL_LANES, hit < D::V);
        if (who)
            return j * len + i + __shfl_sync(ALL_LANES, lane * D::V + hit, __ffs(who) - 1);
    }
    return UINT32_MAX;
}

/* Returns the word at which the positions of a block end. */
__device__ __forceinline__ uint64_t positions_end(const gpu_positions &S, uint32_t block)
{
    uint64_t passed = 0;
    while (passed < S.n_wraps && __ldg(S.wraps + passed) <= block)
        ++passed;
    return passed << 32 | __ldg(S.ends + block);
}

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

/* The positions of a posting, in their order. */
struct position_stream {
    const uint32_t *words; /* [n_words] of the block */
    uint32_t n_words, b;   /* b: bits of a value's low part */
    uint32_t high;         /* the bit at which the high parts begin */
    uint32_t next, end;    /* values of the block: the next one, and where the posting's end */
    uint32_t word, before; /* where ones are counted from, a multiple of 32 words behind the first one of high parts;
                              and how many are before it */
    uint32_t carry;        /* the position before the next one; -1 at the beginning */

    /* Begins. false: the block cannot be read. */
    __device__ __forceinline__ bool open(const gpu_positions &S, const word_place &w)
    {
        words = S.words + w.begin;
        n_words = w.n_words;
        b = n_words ? __ldg(words) & 31 : 0;
        const uint64_t bits = 5 + (uint64_t)w.n_values * b;
        high = (uint32_t)bits;
        next = w.first;
        end = w.first + w.tf;
        word = high / 32;
        before = 0;
        carry = UINT32_MAX;
        return bits + w.n_values <= (uint64_t)n_words * 32 && w.tf && end <= w.n_values && end >= w.tf;
    }

    /* Moves up to 31 positions to lanes 1, 2, ...; the other lanes get NO_POSITION. Returns their number; 0: the block
     * is damaged. Called while next < end. */
    __device__ __forceinline__ uint32_t read(uint32_t lane, uint32_t &position)
    {
        const uint32_t n = min(end - next, 31u), rank = next - 1 + lane; /* the ones that end values */
        uint32_t bit = high - 1;
        bool open = lane <= n && rank != UINT32_MAX;
        for (;;) {
            const uint32_t at = word + lane;
            uint32_t w = at < n_words ? __ldg(words + at) : 0;
            if (at == high / 32)
                w &= ~0u << high % 32;
            const uint32_t sum = warp_inclusive(__popc(w), lane), all = __shfl_sync(ALL_LANES, sum, 31);
            const uint32_t wanted = rank - before;
            uint32_t from = 0; /* the lane whose word has it */
#pragma unroll
            for (uint32_t step = 16; step; step >>= 1) {
                const uint32_t y = __shfl_sync(ALL_LANES, sum, from + step - 1);
                from += y <= wanted ? step : 0;
            }
            uint32_t x = __shfl_sync(ALL_LANES, w, from);
            uint32_t k = wanted - (__shfl_sync(ALL_LANES, sum, from) - __popc(x)), place = 0;
#pragma unroll
            for (uint32_t step = 16; step; step >>= 1) {
                const uint32_t c = __popc(x & ((1u << step) - 1));
                const bool above = k >= c;
                k -= above ? c : 0;
                place += above ? step : 0;
                x >>= above ? step : 0;
            }
            if (open && wanted < all) {
                bit = (word + from) * 32 + place;
                open = false;
            }
            if (!__any_sync(ALL_LANES, open))
                break;
            before += all;
            word += 32;
            if (word >= n_words)
                return 0;
        }
        const uint32_t previous = __shfl_up_sync(ALL_LANES, bit, 1);
        const bool mine = lane && lane <= n;
        uint32_t gap = 0;
        if (mine) {
            const uint32_t low = 5 + rank * b, *p = words + low / 32;
            gap = ((bit - previous - 1) << b | (__funnelshift_r(__ldg(p), __ldg(p + 1), low) & gx_low_bits(b))) + 1;
        }
        const uint32_t sum = carry + warp_inclusive(gap, lane);
        position = mine ? sum : NO_POSITION;
        next += n;
        carry = __shfl_sync(ALL_LANES, sum, n);
        return __any_sync(ALL_LANES, mine && (sum > MOST_POSITION || gap > MOST_POSITION + 1)) ? 0 : n;
    }
};

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

/* A phrase of the program: [n] words. */
struct program_phrase {
    const uint32_t *words;
    uint32_t n;
    float w;

    __device__ __forceinline__ uint32_t place(uint32_t i) const { return __ldg(words + i) & (GX_MAX_PLACES - 1); }
    __device__ __forceinline__ uint32_t offset(uint32_t i) const { return __ldg(words + i) >> GX_PLACE_BITS; }
};

/* Reads the phrase at `at` of a program, and moves behind it. */
__device__ __forceinline__ program_phrase next_phrase(const uint32_t *&at)
{
    const program_phrase p = {at + 2, __ldg(at + 1), __uint_as_float(__ldg(at))};
    at += 2 + p.n;
    return p;
}

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

/* Returns the number of positions that a document's title takes. */
__device__ __forceinline__ uint32_t title_positions(const gpu_positions &S, uint32_t doc)
{
    uint32_t n = 0;
    for (uint32_t i = 0; S.titles && i < S.title_width; ++i)
        n |= (uint32_t)__ldg(S.titles + (size_t)doc * S.title_width + i) << 8 * i;
    return n;
}

template <class P>
__device__ __noinline__ bool match_phrases(const gpu_index &X, const gpu_batch &R, const gpu_query &Q,
                                           const gpu_term *terms, candidate &c, uint32_t T, uint32_t lane)
{
    const uint32_t *const program = R.programs + Q.program, n_phrases = __ldg(program + GX_PROGRAM_PHRASES),
                          n_places = __ldg(program + GX_PROGRAM_PLACES), doc = c.doc;
    word_place mine = {0, 0, 0, 0, 0};
    uint32_t score = c.s; /* less what the phrases' lists have added */
    for (uint32_t i = 0; i < n_places; ++i) {
        const gpu_term *t = terms + __ldg(program + GX_PROGRAM_TERMS + i);
        const word_place w = find_place<P>(X, R.positions, t, doc, lane);
        if (w.tf == 0)
            return false;
        score -= gx_bm25_impact(t->weight.w, w.tf, c.K);
        if (lane == i)
            mine = w;
    }
    const uint32_t *at = program + GX_PROGRAM_TERMS + n_places;
    uint32_t bound = score;
    for (uint32_t i = 0; i < n_phrases; ++i) {
        const program_phrase p = next_phrase(at);
        bound += gx_bm25_bound(p.w, __shfl_sync(ALL_LANES, mine.tf, p.place(rarest_word(p, mine.tf))), c.K);
    }
    if (bound < T)
        return false;
    const uint32_t title = title_positions(R.positions, doc);
    bool readable = true;
    at = program + GX_PROGRAM_TERMS + n_places;
    for (uint32_t i = 0; i < n_phrases; ++i) {
        const program_phrase p = next_phrase(at);
        const uint32_t tf = count_phrase(R.positions, p, mine, title, lane, readable);
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
