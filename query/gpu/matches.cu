/* All documents that match, counted.
 *
 *   a thread block     counts a range of tiles for one query. Neighbouring blocks have the same range and different
 *                      queries, so that the ordinals of a range are read from memory once and then from caches
 *   a tile             MATCH_TILE documents, a bit each in shared memory:
 *     begin_tile       the bits of the lists whose maps have a slot for each document, as whole words
 *     add_lists        postings of the other lists, decoded, set their documents' bits; of an AND they are kept apart,
 *     keep_list        list by list, and the bits of both are left
 *     select           mask and tests of the filter; what is left matches
 *     count_facet      each match counts one ordinal, or several
 *
 * Counts of facets with few groups are kept in shared memory for the whole range, in several copies; the others are
 * counted in device memory. */
#include "query/gpu/matches.cuh"

namespace gx {

constexpr uint32_t THREADS = 256, WARPS = THREADS / 32, BLOCKS = 5; /* thread blocks of an SM */
constexpr uint32_t TILE_WORDS = MATCH_TILE / 32;
constexpr uint32_t GROUP = 32; /* lists of a tile that are decoded between two barriers; a lane each */
constexpr uint32_t AHEAD = 4;  /* matches of a lane whose ordinals are loaded together */

/* The blocks of a list that overlap a tile. */
struct list_part {
    uint32_t first, n;
};

struct match_shared {
    uint32_t bits[TILE_WORDS], other[TILE_WORDS];
    uint32_t counts[SHARED_COUNTS];
    list_part parts[GROUP];
    uint32_t n_matches;
};

/* A tile of a query. */
struct tile_view {
    const gpu_term *terms; /* the query's */
    uint32_t begin, len;   /* docids */
};

/* ---- lists ---- */

/* Called by a warp. Returns how many of the list's blocks have a head that is at most doc. The table may leave out
 * one whose documents are all below doc. */
__device__ __forceinline__ uint32_t heads_up_to(const gpu_index &X, const term_blocks &at, uint32_t doc, uint32_t lane)
{
    uint32_t k = __ldg(X.tables + at.table + (doc >> at.table_shift)), c;
    for (;;) {
        const uint32_t i = k + lane;
        const bool below = i < at.n_blocks && __ldg(X.heads + at.first_block + (i < at.n_blocks ? i : 0)) <= doc;
        c = __popc(__ballot_sync(ALL_LANES, below));
        if (c < 32)
            return k + c;
        k += 31;
    }
}

/* Called by a warp. */
__device__ __forceinline__ list_part find_part(const gpu_index &X, const tile_view &t, uint32_t term, uint32_t lane)
{
    const term_blocks at = read(&t.terms[term].at);
    const uint32_t before = heads_up_to(X, at, t.begin, lane), end = heads_up_to(X, at, t.begin + (t.len - 1), lane);
    const uint32_t first = before ? before - 1 : 0;
    return {first, end > first ? end - first : 0};
}

/* A block to be decoded. */
struct part_block {
    uint32_t term, head, docid_begin, docid_end, n;
};

__device__ __forceinline__ part_block open_block(const gpu_index &X, const tile_view &t, uint32_t term, uint32_t j,
                                                 uint32_t block)
{
    const term_blocks at = read(&t.terms[term].at);
    const uint32_t b = at.first_block + j;
    return {term, __ldg(X.heads + b), j ? __ldg(X.docid_ends + b - 1) : 0, __ldg(X.docid_ends + b),
            j + 1 < at.n_blocks ? block : read(&t.terms[term].payload).df - j * block};
}

__device__ __forceinline__ part_block block_of_lane(const part_block &mine, uint32_t lane)
{
    return {__shfl_sync(ALL_LANES, mine.term, lane), __shfl_sync(ALL_LANES, mine.head, lane),
            __shfl_sync(ALL_LANES, mine.docid_begin, lane), __shfl_sync(ALL_LANES, mine.docid_end, lane),
            __shfl_sync(ALL_LANES, mine.n, lane)};
}

/* Called by a warp. Sets the bits of the block's documents that the tile has. */
template <class P>
__device__ __forceinline__ void add_block(const gpu_index &X, const tile_view &t, const part_block &b, uint32_t lane,
                                          uint32_t *bits)
{
    typedef typename P::template doc<true> D;
    const uint32_t *words = X.payload + read(&t.terms[b.term].payload).words;
    D doc;
    doc.open(words + b.docid_begin, b.docid_end - b.docid_begin, b.n, lane,
             decoder_arg<D>(t.terms[b.term].weight.codecs & 0xffff));
    uint32_t carry = b.head - 1 - t.begin; /* docids are relative to the tile's first, modulo 2^32 */
    for (uint32_t i = 0; i < b.n; i += D::SEG) {
        uint32_t d[D::V];
        doc.next(lane, d);
        carry = docids(d, carry, lane);
        const uint32_t mine = b.n - min(b.n, i + lane * D::V);
#pragma unroll
        for (uint32_t v = 0; v < D::V; ++v) {
            if (d[v] < t.len && v < mine)
                atomicOr(&bits[d[v] >> 5], 1u << (d[v] & 31));
        }
    }
}

/* Sets the bits of the documents of n <= GROUP lists, whose parts are in s.parts. */
template <class P>
__device__ __forceinline__ void add_lists(const gpu_index &X, const tile_view &t, uint32_t first, uint32_t n,
                                          match_shared &s, uint32_t *bits)
{
    const uint32_t warp = threadIdx.x >> 5, lane = threadIdx.x & 31, block = block_len<P>(X);
    const list_part part = lane < n ? s.parts[lane] : list_part{0, 0};
    const uint32_t to = warp_inclusive(part.n, lane), total = __shfl_sync(ALL_LANES, to, 31);
    /* lane l has the l-th of this warp's blocks; the warp decodes one after another */
    for (uint32_t round = 0; round * 32 * WARPS + warp < total; ++round) {
        const uint32_t at = (round * 32 + lane) * WARPS + warp;
        uint32_t list = 0;
        for (uint32_t l = 0; l + 1 < n; ++l)
            list += at >= __shfl_sync(ALL_LANES, to, l);
        const uint32_t begin = __shfl_sync(ALL_LANES, to - part.n, list),
                       from = __shfl_sync(ALL_LANES, part.first, list);
        const part_block mine =
            at < total ? open_block(X, t, first + list, from + (at - begin), block) : part_block{0, 0, 0, 0, 0};
        const uint32_t left = (total - (round * 32 * WARPS + warp) + WARPS - 1) / WARPS, here = min(left, 32u);
        for (uint32_t l = 0; l < here; ++l)
            add_block<P>(X, t, block_of_lane(mine, l), lane, bits);
    }
}

/* ---- a tile ---- */

/* The bits of a word that are of documents of the tile. */
__device__ __forceinline__ uint32_t valid_bits(uint32_t len, uint32_t word)
{
    return 32 * word + 32 <= len ? ~0u : 32 * word < len ? (1u << (len - 32 * word)) - 1 : 0;
}

/* The bits of the lists with a map of one document a slot. */
__device__ __forceinline__ void begin_tile(const gpu_index &X, const match_query &Q, const tile_view &t, uint32_t *bits)
{
    const bool conjunctive = Q.flags & QUERY_AND;
    for (uint32_t w = threadIdx.x; 32 * w < t.len; w += THREADS) {
        uint32_t word = conjunctive || Q.flags & MATCH_EVERY_DOCUMENT ? ~0u : 0;
        for (uint32_t i = 0; i < Q.n_exact; ++i) {
            const uint32_t more = __ldg(X.maps + t.terms[i].filter.map + t.begin / 32 + w);
            word = conjunctive ? word & more : word | more;
        }
        bits[w] = word & valid_bits(t.len, w);
    }
}

/* Finds the parts of n lists in the tile. */
__device__ __forceinline__ void find_parts(const gpu_index &X, const tile_view &t, uint32_t first, uint32_t n,
                                           match_shared &s)
{
    const uint32_t lane = threadIdx.x & 31;
    for (uint32_t i = threadIdx.x >> 5; i < n; i += WARPS) {
        const list_part part = find_part(X, t, first + i, lane);
        if (lane == 0)
            s.parts[i] = part;
    }
}

/* Leaves the documents that the list has too. Returns whether the tile may have any. */
template <class P>
__device__ __forceinline__ bool keep_list(const gpu_index &X, const tile_view &t, uint32_t term, match_shared &s)
{
    for (uint32_t w = threadIdx.x; 32 * w < t.len; w += THREADS)
        s.other[w] = 0;
    find_parts(X, t, term, 1, s);
    __syncthreads();
    add_lists<P>(X, t, term, 1, s, s.other);
    __syncthreads();
    uint32_t any = 0;
    for (uint32_t w = threadIdx.x; 32 * w < t.len; w += THREADS)
        any |= s.bits[w] &= s.other[w];
    return __syncthreads_count(any != 0) != 0;
}

/* The documents that the lists say. Returns false if the tile has none. */
template <class P>
__device__ __forceinline__ bool match_lists(const gpu_index &X, const match_query &Q, const tile_view &t,
                                            match_shared &s)
{
    begin_tile(X, Q, t, s.bits);
    if (Q.flags & MATCH_EVERY_DOCUMENT)
        return true;
    for (uint32_t i = Q.n_exact; i < Q.n_terms && Q.flags & QUERY_AND; ++i) {
        if (!keep_list<P>(X, t, i, s))
            return false;
    }
    for (uint32_t i = Q.n_exact; i < Q.n_terms && !(Q.flags & QUERY_AND); i += GROUP) {
        const uint32_t n = min(Q.n_terms - i, GROUP);
        find_parts(X, t, i, n, s);
        __syncthreads();
        add_lists<P>(X, t, i, n, s, s.bits);
        __syncthreads();
    }
    return true;
}

/* Leaves the documents that mask and tests select. Returns how many this thread has. */
__device__ __forceinline__ uint32_t select(const match_query &Q, const tile_view &t, uint32_t *bits)
{
    uint32_t n = 0;
    gpu_query tested = {};
    tested.n_terms = Q.n_terms;
    tested.flags = Q.flags & ~(uint32_t)QUERY_MASKED;
    for (uint32_t w = threadIdx.x; 32 * w < t.len; w += THREADS) {
        uint32_t word = bits[w];
        if (Q.flags & QUERY_MASKED)
            word &= __ldg(Q.mask + t.begin / 32 + w);
        if (count_tests(Q.flags)) {
            for (uint32_t left = word; left; left &= left - 1) {
                const uint32_t bit = (uint32_t)__ffs((int)left) - 1;
                if (!is_selected(tested, t.terms, t.begin + 32 * w + bit))
                    word &= ~(1u << bit);
            }
        }
        bits[w] = word;
        n += (uint32_t)__popc(word);
    }
    return n;
}

/* ---- counts ---- */

/* Where a facet's ordinals are counted. */
struct count_place {
    uint32_t *counts; /* ordinal i's is counts[i << log_copies] */
    uint32_t log_copies;

    __device__ __forceinline__ void add(uint32_t ordinal) const
    {
        atomicAdd(counts + ((size_t)ordinal << log_copies), 1);
    }
};

/* Calls f(docids, n) for this thread's matches, up to AHEAD of them at a time. */
template <typename F> __device__ __forceinline__ void for_matches(const tile_view &t, const uint32_t *bits, F f)
{
    uint32_t w = threadIdx.x, word = 0, base = 0;
    for (;;) {
        uint32_t d[AHEAD], n = 0;
        while (!word && 32 * w < t.len) {
            word = bits[w];
            base = t.begin + 32 * w;
            w += THREADS;
        }
        if (!word)
            return;
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; ++i) {
            d[i] = base + (uint32_t)__ffs((int)word) - 1;
            n += word != 0;
            word &= word - 1;
        }
        f(d, n);
    }
}

template <typename T>
__device__ __forceinline__ void count_one(const tile_view &t, const uint32_t *bits, const T *ordinals,
                                          const count_place &place)
{
    for_matches(t, bits, [&](const uint32_t(&d)[AHEAD], uint32_t n) {
        uint32_t ordinal[AHEAD];
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; ++i)
            ordinal[i] = i < n ? __ldg(ordinals + d[i]) : 0;
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; ++i) {
            if (i < n)
                place.add(ordinal[i]);
        }
    });
}

template <typename T>
__device__ __forceinline__ void count_several(const tile_view &t, const uint32_t *bits, const facet_column &c,
                                              const T *ordinals, const count_place &place)
{
    for_matches(t, bits, [&](const uint32_t(&d)[AHEAD], uint32_t n) {
        uint32_t begin[AHEAD], end[AHEAD];
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; ++i) {
            begin[i] = i < n ? __ldg(c.starts + d[i]) : 0;
            end[i] = i < n ? __ldg(c.starts + d[i] + 1) : 0;
        }
#pragma unroll
        for (uint32_t i = 0; i < AHEAD; ++i) {
            if (i < n && begin[i] == end[i])
                place.add(c.missing);
            for (uint32_t v = begin[i]; v < end[i]; ++v)
                place.add(__ldg(ordinals + v));
        }
    });
}

template <typename T>
__device__ __forceinline__ void count_typed(const tile_view &t, const uint32_t *bits, const facet_column &c,
                                            const count_place &place)
{
    const T *const ordinals = static_cast<const T *>(c.ordinals);
    if (c.starts)
        count_several(t, bits, c, ordinals, place);
    else
        count_one(t, bits, ordinals, place);
}

/* Counts the tile's matches by a facet. */
__device__ __forceinline__ void count_facet(const match_batch &B, const facet_column &c, uint32_t q, const tile_view &t,
                                            match_shared &s)
{
    const uint32_t copy = threadIdx.x & ((1u << B.log_copies) - 1);
    const count_place place = c.shared ? count_place{s.counts + (c.first << B.log_copies) + copy, B.log_copies}
                                       : count_place{B.counts + (size_t)q * B.n_counts + c.first, 0};
    if (c.bytes == 1)
        count_typed<uint8_t>(t, s.bits, c, place);
    else if (c.bytes == 2)
        count_typed<uint16_t>(t, s.bits, c, place);
    else
        count_typed<uint32_t>(t, s.bits, c, place);
}

/* Adds the counts in shared memory to those of the query. */
__device__ __forceinline__ void flush_counts(const match_batch &B, uint32_t q, const match_shared &s)
{
    for (uint32_t i = threadIdx.x; i < B.n_shared; i += THREADS) {
        uint32_t sum = 0;
        for (uint32_t copy = 0; copy < 1u << B.log_copies; ++copy)
            sum += s.counts[(i << B.log_copies) + copy];
        if (sum)
            atomicAdd(B.counts + (size_t)q * B.n_counts + i, sum);
    }
    if (threadIdx.x == 0 && s.n_matches)
        atomicAdd(B.n_matches + q, s.n_matches);
}

template <class P>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    match_tiles(const __grid_constant__ gpu_index X, const __grid_constant__ match_batch B)
{
    __shared__ match_shared s;
    const uint32_t q = blockIdx.x % B.n, range = blockIdx.x / B.n;
    const uint32_t n_tiles = ((X.n_docs - 1) >> MATCH_TILE_SHIFT) + 1;
    const uint32_t first = (uint32_t)((uint64_t)n_tiles * range / B.n_ranges),
                   end = (uint32_t)((uint64_t)n_tiles * (range + 1) / B.n_ranges);
    const match_query Q = B.queries[q];
    uint32_t n_matches = 0;
    for (uint32_t i = threadIdx.x; i < B.n_shared << B.log_copies; i += THREADS)
        s.counts[i] = 0;
    if (threadIdx.x == 0)
        s.n_matches = 0;
    __syncthreads();
    for (uint32_t tile = first; tile < end; ++tile) {
        const uint32_t begin = tile << MATCH_TILE_SHIFT;
        const tile_view t = {B.terms + Q.first_term, begin, min(X.n_docs - begin, MATCH_TILE)};
        if (!match_lists<P>(X, Q, t, s))
            continue;
        /* from here to the next tile's first barrier a thread reads and writes its own words alone */
        const uint32_t n = select(Q, t, s.bits);
        n_matches += n;
        for (uint32_t f = 0; f < B.n_facets && n; ++f)
            count_facet(B, B.facets[f], q, t, s);
    }
    n_matches = __reduce_add_sync(ALL_LANES, n_matches);
    if ((threadIdx.x & 31) == 0 && n_matches)
        atomicAdd(&s.n_matches, n_matches);
    __syncthreads();
    flush_counts(B, q, s);
}

uint32_t match_grid(uint32_t coding, uint32_t multiprocessors)
{
    int each = 0;
    with_pair(coding, [&](auto pair) {
        (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, match_tiles<decltype(pair)>, THREADS, 0);
    });
    return multiprocessors * (uint32_t)(each > 0 ? each : 1);
}

void count_matches(const gpu_index &X, uint32_t coding, const match_batch &B, cudaStream_t stream)
{
    if (B.n == 0 || X.n_docs == 0)
        return;
    with_pair(coding, [&](auto pair) { match_tiles<decltype(pair)><<<B.n * B.n_ranges, THREADS, 0, stream>>>(X, B); });
}

} // namespace gx
