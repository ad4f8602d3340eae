/* score.cuh: scores the candidates of the ranked search (steps 4 and 5 of search.cuh): bounds from
 * the exact length and the maps, look-ups, and acceptance. */
#ifndef GX_QUERY_GPU_KERNELS_SCORE_CUH
#define GX_QUERY_GPU_KERNELS_SCORE_CUH

#include "query/gpu/kernels/stage.cuh"
#include "query/gpu/kernels/threshold.cuh"

namespace gx {

constexpr uint32_t CODED_LISTS = 8; /* a candidate keeps a code for each of the query's first 8 lists */
static_assert(SHORT_QUERY_TERMS <= CODED_LISTS, "short queries have no other lists");

/* ---- maps and bounds ---- */

__device__ __forceinline__ bool present(const gpu_index &X, const term_filter &f, uint32_t doc)
{
    const uint32_t slot = doc >> f.map_shift;
    return __ldg(X.maps + f.map + (slot >> 5)) >> (slot & 31) & 1;
}

__device__ __forceinline__ uint32_t map_tf_class(const gpu_index &X, const term_filter &f, uint32_t doc)
{
    if (f.classes == NO_CLASSES)
        return CLASS_ANY;
    const uint32_t slot = doc >> f.map_shift;
    return __ldg(X.maps + f.classes + (slot >> 4)) >> (slot & 15) * 2 & 3;
}

/* A class of a single tf, in a slot of a single document, gives the exact tf. */
__device__ __forceinline__ bool class_exact(const term_filter &f, uint32_t c)
{
    return c < 2 && f.map_shift == EXACT_SLOTS;
}

__device__ __forceinline__ uint32_t class_bound(const term_filter &f, uint32_t c, float w, float K)
{
    if (c == CLASS_ANY)
        return f.bound;
    return class_exact(f, c) ? gx_bm25_impact(w, class_tf(c), K) : min(f.bound, gx_bm25_bound(w, class_tf(c), K));
}

/* Returns a lower bound of the impact of a document whose slot is set, or 0 if another document of
 * the slot may have set it. See gx_bm25_bound. */
__device__ __forceinline__ uint32_t class_lower_bound(const term_filter &f, uint32_t c, float w, float K)
{
    if (f.map_shift != EXACT_SLOTS)
        return 0;
    const uint32_t i = gx_bm25_impact(w, f.classes == NO_CLASSES ? 1 : class_min_tf(c), K);
    return class_exact(f, c) ? i : i - min(i, (i >> 21) + 2);
}

/* ---- candidates ---- */

/* Whether the documents come from one of the query's lists (documents.cu). */
template <class P> constexpr bool HAS_LIST = true;

/* Whether the queries have phrases, which documents are tested for last (phrases.cuh). */
template <class P> constexpr bool HAS_PHRASES = false;
/* Whether they have and positions are plain: then postings have their numbers in the item beside their tfs, so
 * that documents are tested one a lane (plain_phrases.cuh). */
template <class P> constexpr bool HAS_PLAIN_PHRASES = false;
constexpr uint32_t NUMBER_SHIFT = 20, NUMBERED_TF = (1u << NUMBER_SHIFT) - 1;

/* Returns the posting of a document that a dense list holds: its rank in the map. */
__device__ __forceinline__ uint32_t dense_posting(const gpu_index &X, const term_filter &f, uint32_t doc)
{
    /* number of the rank, and bits between that rank and the document */
    const uint32_t group = doc / (32 * RANK_WORDS), below = doc % (32 * RANK_WORDS);
    const uint4 *words = reinterpret_cast<const uint4 *>(X.maps + f.map) + group * (RANK_WORDS / 4);
    uint32_t at = __ldg(X.maps + f.map + X.rank_offset + group);
#pragma unroll 1
    for (uint32_t i = 0; i <= below / 128; ++i) {
        const uint4 v = __ldg(words + i);
        const int n = (int)(below - i * 128); /* bits that count, of this piece and the following ones */
        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int u = 0; u < 4; ++u)
            /* mask of the low bits that count, at most 32 */
            at += __popc(w[u] & __funnelshift_lc(~0u, 0, max(n - 32 * u, 0)));
    }
    return at;
}

/* Returns the tf of a document that a dense list holds. */
template <class P>
__device__ __forceinline__ uint32_t dense_tf(const gpu_index &X, const gpu_term *t, const term_filter &f, uint32_t doc)
{
    typedef typename P::template tf<true> T;
    const uint32_t at = dense_posting(X, f, doc);
    const term_blocks blocks = read(&t->at);
    const term_payload p = read(&t->payload);
    const uint32_t len = block_len<P>(X), j = at / len, n = j + 1 < blocks.n_blocks ? len : p.df - j * len;
    const uint32_t begin = j ? __ldg(X.tf_ends + blocks.first_block + j - 1) : p.tf_begin;
    const uint32_t end = __ldg(X.tf_ends + blocks.first_block + j);
    return T::at(X.payload + p.words + begin, end - begin, n, at - j * len, decoder_arg<T>(t->weight.codecs >> 16)) + 1;
}

/* The lists of an item's query. */
struct item_lists {
    const gpu_term *terms; /* the query's */
    uint32_t n, li;        /* number of lists; index of the item's list */
    bool conjunctive;      /* the query is an AND */
    uint32_t n_required;   /* with HAS_PHRASES, the lists that must hold a document: the first ones */
};

/* Whether a document that list j does not hold is no answer. */
template <class P> __device__ __forceinline__ bool is_required(const item_lists &L, uint32_t j)
{
    return HAS_PHRASES<P> ? j < L.n_required : L.conjunctive;
}

/* A document of the item's list. Each lane has one. */
struct candidate {
    uint32_t doc;
    float K;
    uint32_t s;     /* upper bound of its score; 0: no candidate */
    uint32_t codes; /* 4 bits for each of the first lists: 8 if a look-up is needed | tf class */
};

/* Returns the candidate of a posting (docid, tf). Its bound s is 0 if the posting is not valid or
 * the maps show that it cannot reach T. *least: a lower bound of the document's score, or 0 if an
 * earlier list may own the document. */
template <class P, bool LONG>
__device__ __forceinline__ candidate bound_candidate(const gpu_index &X, const gpu_query &Q, const item_lists &L,
                                                     uint2 posting, bool valid, uint32_t T, uint32_t *least)
{
    typedef threshold_policy<P> policy;
    const gpu_term *terms = L.terms;
    const uint32_t n = L.n, li = L.li, doc = posting.x;
    const float K = valid ? gx_bm25_K(query_scorer(Q), __ldg(X.doc_lens + doc)) : 1.0f;
    uint32_t s = valid && HAS_LIST<P> ? gx_bm25_impact(terms[li].weight.w, posting.y, K) : 0;
    uint32_t codes = 0, lower_bound = s, held = 0; /* held: number of other lists that hold the document for certain */
    bool is_own = valid;                           /* no earlier list holds the document */
    for (uint32_t g = 0; g < (LONG ? n : 1); g += CODED_LISTS) {
        uint32_t here = 0;
#pragma unroll
        for (uint32_t u = 0; u < (LONG ? CODED_LISTS : SHORT_QUERY_TERMS); ++u) {
            if (g + u < n && g + u != li && valid)
                here |= (uint32_t)present(X, read(&terms[g + u].filter), doc) << u;
        }
#pragma unroll 1
        for (uint32_t u = 0; u < min(n - g, CODED_LISTS); ++u) {
            const uint32_t j = g + u;
            if (j < n && j != li && valid) {
                if (here >> u & 1) {
                    const term_filter f = read(&terms[j].filter);
                    const uint32_t c = map_tf_class(X, f, doc);
                    if (policy::COUNTS_LOWER_BOUNDS) {
                        const uint32_t more = class_lower_bound(f, c, terms[j].weight.w, K);
                        lower_bound += more;
                        held += more != 0;
                        is_own &= j > li;
                    }
                    if (j > li)
                        s += class_bound(f, c, terms[j].weight.w, K);
                    else if (f.map_shift == EXACT_SLOTS)
                        valid = false; /* an earlier list holds the document and scores it */
                    if (g == 0 && !(j > li && class_exact(f, c)))
                        codes |= (8 | c) << 4 * u;
                } else if (is_required<P>(L, j)) {
                    valid = false;
                }
            }
        }
    }
    if (!valid || s < T)
        s = 0;
    *least = s && is_own && (!L.conjunctive || held + 1 == n) ? lower_bound : 0;
    return {doc, K, s, codes};
}

/* Replaces bounds by exact impacts in the later lists that are dense. Returns the number of
 * look-ups. */
template <class P>
__device__ __forceinline__ uint32_t look_up_dense(const gpu_index &X, const item_lists &L, uint32_t T, candidate &c)
{
    uint32_t lookups = 0;
    for (uint32_t j = L.li + 1; j < min(L.n, CODED_LISTS) && __any_sync(ALL_LANES, c.s != 0); ++j) {
        const gpu_term *term = L.terms + j;
        const term_filter f = read(&term->filter);
        if (f.map_shift != EXACT_SLOTS)
            continue;
        const bool mine = c.s && c.codes >> 4 * j & 8;
        if (mine) {
            const float w = term->weight.w;
            c.s -= class_bound(f, c.codes >> 4 * j & 7, w, c.K);
            c.s += gx_bm25_impact(w, dense_tf<P>(X, term, f, c.doc), c.K);
            c.codes &= ~(15u << 4 * j);
            c.s = c.s < T ? 0 : c.s;
        }
        lookups += __popc(__ballot_sync(ALL_LANES, mine));
    }
    return lookups;
}

/* The warp looks one candidate up in the later lists and then in the earlier ones, as long as it
 * can reach T. Returns false if it cannot, or if an earlier list holds it. Else c.s is its score.
 */
template <class P, bool LONG>
__device__ __forceinline__ bool look_up_rest(const gpu_index &X, const item_lists &L, uint32_t T, candidate &c,
                                             uint32_t &lookups, uint32_t lane)
{
    bool ok = true;
    for (uint32_t i = L.li + 1; i < L.n + L.li && ok; ++i) {
        const uint32_t j = i < L.n ? i : i - L.n;
        uint32_t code = c.codes >> 4 * (j & 7) & 15;
        if (L.conjunctive && j < L.li)
            break;
        if (LONG && j >= CODED_LISTS) {
            const term_filter f = read(&L.terms[j].filter);
            code = present(X, f, c.doc) ? 8 | map_tf_class(X, f, c.doc) : 0;
            code = j > L.li && class_exact(f, code & 7) ? 0 : code;
        }
        if (code == 0)
            continue;
        const uint32_t tf = lookup<P>(X, L.terms + j, c.doc, lane);
        ++lookups;
        if (j < L.li) {
            ok = tf == 0; /* else the earlier list scores it */
        } else {
            const float w = L.terms[j].weight.w;
            c.s -= class_bound(read(&L.terms[j].filter), code & 7, w, c.K);
            if (tf)
                c.s += gx_bm25_impact(w, tf, c.K);
            ok = c.s >= T && (tf || !is_required<P>(L, j));
        }
    }
    return ok;
}

/* Whether a document that the required lists hold matches the query's phrases, and its score reaches T. c.s is the
 * sum of all lists' impacts, and becomes the score. */
template <class P>
__device__ __noinline__ bool match_phrases(const gpu_index &X, const gpu_batch &R, const gpu_query &Q,
                                           const gpu_term *terms, candidate &c, uint32_t T, uint32_t lane);

/* With HAS_PLAIN_PHRASES score goes in two steps. Those of up to 32 postings whose bounds by the maps reach T are
 * appended to bounded[n]; returns their new number. Then up to 32 of them are scored as score does it. */
template <class P>
__device__ __noinline__ uint32_t bound_phrases(const gpu_index &X, const gpu_batch &R, const staged_item &staged,
                                               const item_lists &L, uint2 posting, bool valid, uint32_t T,
                                               uint32_t lane, uint2 *bounded, uint32_t n);
template <class P, class SHARED>
__device__ __noinline__ uint32_t score_phrases(const gpu_index &X, const gpu_batch &R, const staged_item &staged,
                                               const item_lists &L, uint2 posting, bool valid, uint32_t T,
                                               uint32_t lane, SHARED &ws);

/* Scores up to 32 postings of the item's list, one a lane. Documents that reach T become
 * candidates. Returns the threshold. SHARED is warp_shared or has its `wrote` and `lookups`. */
template <class P, bool LONG, class SHARED>
__device__ __forceinline__ uint32_t score(const gpu_index &X, const gpu_batch &R, const staged_item &staged,
                                          const item_lists &L, uint2 posting, bool valid, uint32_t T, uint32_t lane,
                                          SHARED &ws)
{
    typedef threshold_policy<P> policy;
    const gpu_query &Q = staged.query;
    uint32_t least;
    candidate own = bound_candidate<P, LONG>(X, Q, L, posting, valid, T, &least);
    if constexpr (policy::COUNTS_LOWER_BOUNDS) {
        if (__any_sync(ALL_LANES, own.s != 0)) {
            T = policy::count_lower_bounds(R, Q, staged.item.query, least, T, lane);
            own.s = own.s < T ? 0 : own.s;
            if (lane == 0)
                ws.wrote = 1;
        }
    }
    policy::bounds_counted(lane);
    uint32_t lookups = look_up_dense<P>(X, L, T, own);
    for (;;) { /* the warp takes the candidate with the best bound */
        const uint32_t best = __reduce_max_sync(ALL_LANES, own.s);
        if (best < T || best == 0)
            break;
        const uint32_t src = __ffs(__ballot_sync(ALL_LANES, own.s == best)) - 1;
        if (lane == src)
            own.s = 0;
        candidate c = {__shfl_sync(ALL_LANES, own.doc, src), 0, best, __shfl_sync(ALL_LANES, own.codes, src)};
        c.K = __shfl_sync(ALL_LANES, own.K, src);
        const uint32_t asked = policy::prefetch(R, staged.item.query, lane);
        bool ok = look_up_rest<P, LONG>(X, L, T, c, lookups, lane);
        if constexpr (HAS_PHRASES<P>)
            ok = ok && match_phrases<P>(X, R, Q, L.terms, c, T, lane);
        /* for a large k the threshold rises steadily, and the room for candidates is small */
        const bool rises = Q.k > SMALL_K;
        T = policy::update(R, staged.item.query, asked, !ok || rises, T, lane);
        if (ok && c.s >= T) {
            T = accept<P>(R, Q, staged.item.query, c.s, c.doc, T, lane);
            if (lane == 0)
                ws.wrote = 1;
        }
    }
    if (lane == 0)
        ws.lookups += lookups;
    return T;
}

} // namespace gx

#endif
