/* lists.cuh: reads lists on the device: codecs chosen at run time, whole blocks decoded by a warp,
 * and a docid looked up by a warp. */
#ifndef GX_QUERY_GPU_KERNELS_LISTS_CUH
#define GX_QUERY_GPU_KERNELS_LISTS_CUH

#include "query/gpu/kernels/decoders.cuh"
#include "query/gpu/kernels/gpu.cuh"

namespace gx {

/* A decoder for any codec, for indexes whose lists have different codecs. `arg` holds codec |
 * parameter << 8. A codec whose blocks have 128 integers decodes a block at once. Integers of
 * longer blocks are decoded one by one. */
template <bool LDG> struct any_codec {
    static constexpr int BLOCK = 0, SEG = 128, V = 4;

    const uint32_t *words;
    uint32_t n_words, n, done, arg;

    __device__ __forceinline__ void open(const uint32_t *w, uint32_t w_n, uint32_t n_, uint32_t, uint32_t arg_)
    {
        words = w;
        n_words = w_n;
        n = n_;
        done = 0;
        arg = arg_;
    }

    __device__ __forceinline__ void next(uint32_t lane, uint32_t (&v)[V])
    {
        const uint4 x = segment(words, n_words, n, done, lane, arg);
        v[0] = x.x;
        v[1] = x.y;
        v[2] = x.z;
        v[3] = x.w;
        done += SEG;
    }

    /* Returns integers first + 4 * lane .. first + 4 * lane + 3 of a block. */
    static __device__ __noinline__ uint4 segment(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t first,
                                                 uint32_t lane, uint32_t arg)
    {
        switch (arg & 0xff) {
#define GX_CASE(ID, NUMBER, DECODER)                                                                                   \
    case GX_CODEC_##ID:                                                                                                \
        return segment_of<DECODER<LDG>>(w, n_words, n, first, lane, arg >> 8);
            GX_CODECS(GX_CASE)
#undef GX_CASE
        }
        return make_uint4(0, 0, 0, 0);
    }

    template <class DEC>
    static __device__ __forceinline__ uint4 segment_of(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t first,
                                                       uint32_t lane, uint32_t param)
    {
        uint32_t v[4];
        if constexpr (DEC::BLOCK == 128 && DEC::V == 4) {
            DEC dec;
            dec.open(w, n_words, n, lane, param);
            dec.next(lane, v);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < 4; ++i) {
                const uint32_t p = first + lane * 4 + i;
                v[i] = p < n ? DEC::at(w, n_words, n, p, param) : 0;
            }
        }
        return make_uint4(v[0], v[1], v[2], v[3]);
    }

    static __device__ __noinline__ uint32_t at(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t i,
                                               uint32_t arg)
    {
        switch (arg & 0xff) {
#define GX_CASE(ID, NUMBER, DECODER)                                                                                   \
    case GX_CODEC_##ID:                                                                                                \
        return DECODER<LDG>::at(w, n_words, n, i, arg >> 8);
            GX_CODECS(GX_CASE)
#undef GX_CASE
        }
        return 0;
    }

    /* finds: whether the codec can find a docid without decoding its block. find: the docid's
     * position (decode.cuh). */
    static __device__ __forceinline__ bool finds(uint32_t arg)
    {
#define GX_CASE(ID, NUMBER, DECODER) || (can_find<DECODER<LDG>>::value && (arg & 0xff) == GX_CODEC_##ID)
        return false GX_CODECS(GX_CASE);
#undef GX_CASE
    }

    static __device__ __noinline__ uint32_t find(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t docid,
                                                 uint32_t lane, uint32_t arg)
    {
        switch (arg & 0xff) {
#define GX_CASE(ID, NUMBER, DECODER)                                                                                   \
    case GX_CODEC_##ID:                                                                                                \
        return find_of<DECODER<LDG>>(w, n_words, n, docid, lane, arg >> 8);
            GX_CODECS(GX_CASE)
#undef GX_CASE
        }
        return n;
    }

    template <class DEC>
    static __device__ __forceinline__ uint32_t find_of(const uint32_t *w, uint32_t n_words, uint32_t n, uint32_t docid,
                                                       uint32_t lane, uint32_t param)
    {
        if constexpr (can_find<DEC>::value)
            return DEC::find(w, n_words, n, docid, lane, param);
        else
            return n;
    }
};

/* The decoders of docids and of tfs that a kernel is compiled for. */
template <template <bool> class DECODER> struct decoder_pair {
    template <bool LDG> using doc = DECODER<LDG>;
    template <bool LDG> using tf = DECODER<LDG>;
};
typedef decoder_pair<raw> pair_raw;
typedef decoder_pair<gpubp128> pair_gpubp128;
typedef decoder_pair<any_codec> pair_any;

/* The codecs for which kernels are compiled. Kernels read lists of the other codecs by any_codec.
 */
#define GX_KERNEL_CODECS(X)                                                                                            \
    X(RAW, raw)                                                                                                        \
    X(GPUBP128, gpubp128)                                                                                              \
    X(GPUBP256, gpubp256)                                                                                              \
    X(GPUVBYTE128, gpuvbyte128)                                                                                        \
    X(GPUVBYTE1024, gpuvbyte1024)                                                                                      \
    X(GPUPFD128, gpupfd128)

/* Calls f with the decoders of an index's coding. */
template <typename F> static inline void with_pair(uint32_t coding, F f)
{
    switch (coding) {
#define GX_CASE(ID, DECODER)                                                                                           \
    case GX_CODEC_##ID:                                                                                                \
        f(decoder_pair<DECODER>());                                                                                    \
        break;
        GX_KERNEL_CODECS(GX_CASE)
#undef GX_CASE
    default:
        f(pair_any());
        break;
    }
}

template <class P> __device__ __forceinline__ uint32_t block_len(const gpu_index &X)
{
    return P::template doc<true>::BLOCK ? P::template doc<true>::BLOCK : X.block_len;
}

/* Does the work of docids() in decode.cuh with shuffles that the compiler may move. They take two
 * instructions more a step. The search uses them for look-ups and for blocks of several segments,
 * where it spills registers with the other version. */
template <int V> __device__ __forceinline__ uint32_t segment_docids(uint32_t (&v)[V], uint32_t carry, uint32_t lane)
{
    v[0] += 1;
#pragma unroll
    for (int i = 1; i < V; ++i)
        v[i] += v[i - 1] + 1;
    uint32_t sum = v[V - 1];
#pragma unroll
    for (uint32_t o = 1; o < 32; o <<= 1) {
        const uint32_t y = __shfl_up_sync(ALL_LANES, sum, o);
        sum += lane >= o ? y : 0;
    }
    const uint32_t before = carry + sum - v[V - 1];
#pragma unroll
    for (int i = 0; i < V; ++i)
        v[i] += before;
    return carry + __shfl_sync(ALL_LANES, sum, 31);
}

/* The `arg` of a decoder's open and at: the parameter, with any_codec also the codec. */
template <class D> __device__ __forceinline__ uint32_t decoder_arg(uint32_t codec_and_param)
{
    return D::BLOCK ? codec_and_param >> 8 & 0xff : codec_and_param & 0xffff;
}

/* A view of a list, for kernels that read whole lists. */
struct whole_list {
    const uint32_t *words;
    const uint32_t *heads, *docid_ends, *tf_ends;
    uint32_t df, n_blocks, doc_arg, tf_arg;
};

struct gpu_codings { /* gx_header.codings */
    gx_coding of[GX_MAX_CODINGS];
};

/* Returns the view of a list from the index of its first payload word, its first block, and its
 * codecs (as in term_weight). */
__host__ __device__ __forceinline__ whole_list view_list(const gpu_index &X, uint64_t word, uint32_t first_block,
                                                         uint32_t df, uint32_t n_blocks, uint32_t codecs)
{
    whole_list l;
    l.words = X.payload + word;
    l.heads = X.heads + first_block;
    l.docid_ends = X.docid_ends + first_block;
    l.tf_ends = X.tf_ends + first_block;
    l.df = df;
    l.n_blocks = n_blocks;
    l.doc_arg = codecs & 0xffff;
    l.tf_arg = codecs >> 16;
    return l;
}

/* Returns a list's codecs and parameters, as in term_weight. */
__host__ __device__ __forceinline__ uint32_t list_codecs(const gx_list_entry &e, gx_coding c)
{
    return c.docids | (uint32_t)e.docid_param << 8 | (uint32_t)c.tfs << 16 | (uint32_t)e.tf_param << 24;
}

__host__ __device__ __forceinline__ whole_list view_entry(const gpu_index &X, const gx_list_entry &e, gx_coding c)
{
    return view_list(X, (uint64_t)e.payload_hi << 32 | e.payload_lo, e.first_block, e.df, (e.df - 1) / X.block_len + 1,
                     list_codecs(e, c));
}

__device__ __forceinline__ whole_list open_list(const gpu_index &X, const gpu_codings &codings, uint32_t list)
{
    const gx_list_entry e = X.lists[list];
    return view_entry(X, e, codings.of[e.coding % GX_MAX_CODINGS]);
}

/* A warp decodes block j of a list. Each lane calls f(docid, tf) for the postings that it holds. A
 * damaged payload can give any docid; docids outside the collection are skipped. */
template <class P, typename F>
__device__ __forceinline__ void for_block(const gpu_index &X, const whole_list &l, uint32_t j, uint32_t lane, F f)
{
    typedef typename P::template doc<true> D;
    typedef typename P::template tf<true> T;
    const uint32_t len = block_len<P>(X), n = j + 1 < l.n_blocks ? len : l.df - j * len;
    const uint32_t d0 = j ? __ldg(l.docid_ends + j - 1) : 0, d1 = __ldg(l.docid_ends + j);
    const uint32_t t0 = j ? __ldg(l.tf_ends + j - 1) : __ldg(l.docid_ends + l.n_blocks - 1), t1 = __ldg(l.tf_ends + j);
    D doc;
    T tf;
    doc.open(l.words + d0, d1 - d0, n, lane, decoder_arg<D>(l.doc_arg));
    tf.open(l.words + t0, t1 - t0, n, lane, decoder_arg<T>(l.tf_arg));
    uint32_t carry = __ldg(l.heads + j) - 1;
    for (uint32_t i = 0; i < n; i += D::SEG) {
        uint32_t d[D::V], t[T::V];
        tf.next(lane, t);
        doc.next(lane, d);
        carry = docids(d, carry, lane);
#pragma unroll
        for (int v = 0; v < D::V; ++v) {
            if (i + lane * D::V + v < n && d[v] < X.n_docs)
                f(d[v], t[v] + 1);
        }
    }
}

/* Returns the tf of doc in a query's list, or 0 if the list does not hold it; with POSTING the number of its posting
 * in the list, or UINT32_MAX. The arguments are the same in all lanes. The table gives the first block to try. The warp
 * compares 32 heads at a time from there and decodes the one block that may hold the docid. */
template <class P, bool POSTING>
__device__ __forceinline__ uint32_t find_in_list(const gpu_index &X, const gpu_term *t, uint32_t doc, uint32_t lane)
{
    constexpr uint32_t NONE = POSTING ? UINT32_MAX : 0;
    typedef typename P::template doc<true> D;
    typedef typename P::template tf<true> T;
    const term_blocks at = read(&t->at);
    const term_payload p = read(&t->payload);
    uint32_t k = __ldg(X.tables + at.table + (doc >> at.table_shift)), c, head, docid_end, tf_end;
    for (;;) { /* lane l reads the head of block k + l and the ends of block k + l - 1 */
        const uint32_t i = k + lane, b = at.first_block + i;
        head = i < at.n_blocks ? __ldg(X.heads + b) : UINT32_MAX;
        docid_end = i == 0 || i > at.n_blocks ? 0 : __ldg(X.docid_ends + b - 1);
        tf_end = i == 0 || i > at.n_blocks ? p.tf_begin : __ldg(X.tf_ends + b - 1);
        c = __popc(__ballot_sync(ALL_LANES, i < at.n_blocks && head <= doc));
        if (c < 32)
            break;
        k += 31;
    }
    if (c == 0)
        return NONE;
    const uint32_t j = k + c - 1, len = block_len<P>(X);
    const uint32_t n = j + 1 < at.n_blocks ? len : p.df - j * len;
    const uint32_t codecs = t->weight.codecs;
    const uint32_t *words = X.payload + p.words;
    const uint32_t d0 = __shfl_sync(ALL_LANES, docid_end, c - 1), d1 = __shfl_sync(ALL_LANES, docid_end, c);
    const uint32_t t0 = __shfl_sync(ALL_LANES, tf_end, c - 1), t1 = __shfl_sync(ALL_LANES, tf_end, c);
    uint32_t carry = __shfl_sync(ALL_LANES, head, c - 1) - 1;
    if constexpr (D::BLOCK == 0) {
        if (D::finds(decoder_arg<D>(codecs))) {
            const uint32_t i = D::find(words + d0, d1 - d0, n, doc - carry - 1, lane, decoder_arg<D>(codecs));
            if (POSTING || i >= n)
                return i < n ? j * len + i : NONE;
            return T::at(words + t0, t1 - t0, n, i, decoder_arg<T>(codecs >> 16)) + 1;
        }
    }
    D dec;
    dec.open(words + d0, d1 - d0, n, lane, decoder_arg<D>(codecs));
    for (uint32_t i = 0; i < n; i += D::SEG) {
        uint32_t d[D::V], hit = D::V;
        dec.next(lane, d);
        carry = segment_docids(d, carry, lane);
#pragma unroll
        for (int v = 0; v < D::V; ++v)
            hit = d[v] == doc && i + lane * D::V + v < n ? v : hit;
        const uint32_t who = __ballot_sync(ALL_LANES, hit < D::V);
        if (who && POSTING)
            return j * len + i + __shfl_sync(ALL_LANES, lane * D::V + hit, __ffs(who) - 1);
        if (who) {
            uint32_t tf = 0;
            if (hit < D::V)
                tf = T::at(words + t0, t1 - t0, n, i + lane * D::V + hit, decoder_arg<T>(codecs >> 16)) + 1;
            return __shfl_sync(ALL_LANES, tf, __ffs(who) - 1);
        }
        if (carry >= doc)
            break;
    }
    return NONE;
}

template <class P>
__device__ __forceinline__ uint32_t lookup(const gpu_index &X, const gpu_term *t, uint32_t doc, uint32_t lane)
{
    return find_in_list<P, false>(X, t, doc, lane);
}

} // namespace gx

#endif
