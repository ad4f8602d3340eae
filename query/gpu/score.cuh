/* score.cuh: candidates of the ranked search: a document's bound from its exact length and the maps
 * of the query's lists, look-ups, and acceptance (steps 4 and 5 of search.cuh).
 */
#ifndef GX_QUERY_GPU_SCORE_CUH
#define GX_QUERY_GPU_SCORE_CUH

#include "query/gpu/stage.cuh"
#include "query/gpu/threshold.cuh"

namespace gx {

constexpr uint32_t CODED_LISTS = 8; /* of the first lists of a query, a candidate's state is kept */
static_assert(NEAR_TERMS <= CODED_LISTS, "short queries have no other lists");

/* ---- maps and bounds ---- */

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

/* What a document that is present has at least: nothing where it may be another one of its slot;
 * see gx_bm25_bound. */
__device__ __forceinline__ uint32_t class_least(const term_filter &f, uint32_t c, float w, float K)
{
    if (f.map_shift != EXACT_SLOTS)
        return 0;
    const uint32_t i = gx_bm25_impact(w, f.classes == NO_CLASSES ? 1 : class_least_tf(c), K);
    return class_exact(f, c) ? i : i - min(i, (i >> 21) + 2);
}

/* ---- candidates ---- */

/* The tf of a document that a dense list holds: by its rank among the list's documents. */
template <class P>
__device__ __forceinline__ uint32_t dense_tf(const gpu_index &X, const gpu_term *t, const term_filter &f, uint32_t doc)
{
    typedef typename P::template tf<true> T;
    /* bits of the group before the document's */
    const uint32_t group = doc / (32 * RANK_WORDS), below = doc % (32 * RANK_WORDS);
    const uint4 *words = reinterpret_cast<const uint4 *>(X.maps + f.map) + group * (RANK_WORDS / 4);
    uint32_t at = __ldg(X.maps + f.map + X.rank_offset + group);
#pragma unroll 1
    for (uint32_t i = 0; i <= below / 128; ++i) {
        const uint4 v = __ldg(words + i);
        const int n = (int)(below - i * 128); /* of these bits so many count */
        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int u = 0; u < 4; ++u)
            at += __popc(w[u] & __funnelshift_lc(~0u, 0, max(n - 32 * u, 0))); /* so many low bits, at most 32 */
    }
    const term_blocks blocks = read(&t->at);
    const term_payload p = read(&t->payload);
    const uint32_t len = block_len<P>(X), j = at / len, n = j + 1 < blocks.n_blocks ? len : p.df - j * len;
    const uint32_t begin = j ? __ldg(X.tf_ends + blocks.first_block + j - 1) : p.tf_begin;
    const uint32_t end = __ldg(X.tf_ends + blocks.first_block + j);
    return T::at(X.payload + p.words + begin, end - begin, n, at - j * len, decoder_arg<T>(t->weight.codecs >> 16)) + 1;
}

/* Up to 32 candidates of the query's list li, one a lane. Returns the threshold. */
template <class P, bool LONG, uint32_t V>
__device__ __forceinline__ uint32_t score(const gpu_index &X, const gpu_batch &R, const near_item &near,
                                          const gpu_term *terms, uint32_t n, uint32_t li, bool all, uint2 cand,
                                          bool valid, uint32_t T, uint32_t lane, search_space<V> &ws)
{
    typedef threshold_policy<P> policy;
    const uint32_t doc = cand.x;
    const gx_scorer norm = query_scorer(near.query);
    const float K = valid ? gx_bm25_K(norm, __ldg(X.doc_lens + doc)) : 1.0f;
    uint32_t s = valid ? gx_bm25_impact(terms[li].weight.w, cand.y, K) : 0;
    uint32_t ask = 0;             /* of the first lists, 4 bits each: 8 if it must be asked | the tf class */
    uint32_t least = s, held = 0; /* what it has at least; lists that surely hold it */
    bool surely = valid;          /* it is this list's */
    for (uint32_t g = 0; g < (LONG ? n : 1); g += CODED_LISTS) {
        uint32_t here = 0;
#pragma unroll
        for (uint32_t u = 0; u < (LONG ? CODED_LISTS : NEAR_TERMS); ++u) {
            if (g + u < n && g + u != li && valid)
                here |= (uint32_t)present(X, read(&terms[g + u].filter), doc) << u;
        }
#pragma unroll 1
        for (uint32_t u = 0; u < min(n - g, CODED_LISTS); ++u) {
            const uint32_t j = g + u;
            if (j < n && j != li && valid) {
                if (here >> u & 1) {
                    const term_filter f = read(&terms[j].filter);
                    const uint32_t c = present_class(X, f, doc);
                    if (policy::COUNTS_LEAST) {
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
    if constexpr (policy::COUNTS_LEAST) {
        if (__any_sync(ALL_LANES, s != 0)) {
            const bool counts = s && surely && (!all || held + 1 == n);
            T = policy::count_least(R, near.query, near.item.query, counts ? least : 0, T, lane);
            s = s < T ? 0 : s;
            if (lane == 0)
                ws.wrote = 1;
        }
    }
    policy::bounds_counted(lane);
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
        const uint32_t asked = policy::ask(R, near.item.query, lane);
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
            const uint32_t tf = lookup<P>(X, terms + j, d, lane);
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
        const bool rises = near.query.k > QUICK_K; /* all the time; and room is small beside what would pass */
        T = policy::renew(R, near.item.query, asked, !ok || rises, T, lane);
        if (ok && best >= T) {
            T = accept<P>(R, near.query, near.item.query, best, d, T, lane);
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
