/* Kernels that make positions plain: 16 bits each, in the place of the code of the file (codecs/positions.h), of which
 * a lane cannot read a few by itself. */
#include "query/gpu/kernels/kernels.cuh"
#include "query/gpu/kernels/position_stream.cuh"

namespace gx {

constexpr uint32_t THREADS = 256;
typedef any_codec<true> tf_decoder;
constexpr uint32_t SEG_V = tf_decoder::V; /* integers that a lane decodes at a time */

/* A block of a list. */
struct list_block {
    whole_list list;
    uint32_t j, n; /* number in the list; postings */

    __device__ __forceinline__ tf_decoder open_tfs(uint32_t lane) const
    {
        const uint32_t begin = j ? __ldg(list.tf_ends + j - 1) : __ldg(list.docid_ends + list.n_blocks - 1);
        tf_decoder dec;
        dec.open(list.words + begin, __ldg(list.tf_ends + j) - begin, n, lane, list.tf_arg);
        return dec;
    }

    __device__ __forceinline__ any_codec<true> open_docids(uint32_t lane) const
    {
        const uint32_t begin = j ? __ldg(list.docid_ends + j - 1) : 0;
        any_codec<true> dec;
        dec.open(list.words + begin, __ldg(list.docid_ends + j) - begin, n, lane, list.doc_arg);
        return dec;
    }
};

/* Returns block number `block` of the index. */
__device__ __forceinline__ list_block open_block(const gpu_index &X, const gpu_codings &codings, uint32_t block)
{
    uint32_t lo = 0, hi = X.n_terms; /* the list's number is in [lo, hi) */
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (__ldg(&X.lists[mid].first_block) <= block)
            lo = mid;
        else
            hi = mid;
    }
    const whole_list l = open_list(X, codings, lo);
    const uint32_t j = block - X.lists[lo].first_block;
    return {l, j, j + 1 < l.n_blocks ? X.block_len : l.df - j * X.block_len};
}

/* Decodes the next tfs of a block of n postings, from number `at` on in the lane. Past the end they are 0. Returns
 * their sum. */
__device__ __forceinline__ uint32_t next_tfs(tf_decoder &dec, uint32_t at, uint32_t n, uint32_t lane,
                                             uint32_t (&tfs)[SEG_V])
{
    uint32_t sum = 0;
    dec.next(lane, tfs);
#pragma unroll
    for (uint32_t u = 0; u < SEG_V; ++u) {
        tfs[u] = at + u < n ? tfs[u] + 1 : 0;
        sum += tfs[u];
    }
    return sum;
}

static __global__ void __launch_bounds__(THREADS)
    count(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_codings codings, uint32_t *counts,
          uint32_t n)
{
    const uint32_t lane = threadIdx.x & 31, block = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (block >= n)
        return;
    const list_block b = open_block(X, codings, block);
    tf_decoder dec = b.open_tfs(lane);
    uint32_t all = 0, tfs[SEG_V];
    for (uint32_t i = lane * SEG_V; i - lane * SEG_V < b.n; i += 32 * SEG_V)
        all = min(all + min(next_tfs(dec, i, b.n, lane, tfs), MOST_PLAIN + 1), MOST_PLAIN + 1);
    all = __reduce_add_sync(ALL_LANES, all);
    if (lane == 0)
        counts[block] = all;
}

/* Writes the block's postings. Returns its number of positions. */
__device__ __forceinline__ uint32_t write_postings(const gpu_index &X, const list_block &b, uint32_t *postings,
                                                   uint32_t lane)
{
    tf_decoder tf = b.open_tfs(lane);
    any_codec<true> doc = b.open_docids(lane);
    const uint32_t head = __ldg(b.list.heads + b.j);
    uint32_t before = 0, carry = head - 1;
    for (uint32_t i = lane * SEG_V; i - lane * SEG_V < b.n; i += 32 * SEG_V) {
        uint32_t tfs[SEG_V], docids[SEG_V];
        const uint32_t sum = next_tfs(tf, i, b.n, lane, tfs), through = warp_inclusive(sum, lane);
        doc.next(lane, docids);
        carry = segment_docids(docids, carry, lane);
        uint32_t first = before + through - sum;
#pragma unroll
        for (uint32_t u = 0; u < SEG_V; ++u) {
            if (i + u < b.n)
                postings[i + u] = (first & 0xffff) | min(docids[u] - head, FAR) << 16;
            first += tfs[u];
        }
        before += __shfl_sync(ALL_LANES, through, 31);
    }
    if (lane == 0)
        postings[b.n] = (before & 0xffff) | FAR << 16;
    __syncwarp();
    return before;
}

/* Writes the block's positions. Returns whether they can be read, and are not too great. */
__device__ __forceinline__ bool write_values(const gpu_positions &S, const word_place &w, const uint32_t *postings,
                                             uint32_t n, uint16_t *plain, uint32_t lane)
{
    position_stream s;
    if (!s.open(S, w))
        return false;
    for (uint32_t carry = UINT32_MAX; s.next < s.end;) {
        const uint32_t at = s.next;
        uint32_t gap, begins = 0; /* bit i: lane i has a posting's first position */
        const uint32_t m = s.read_gaps(lane, gap);
        for (uint32_t p = lane; p < n; p += 32) {
            const uint32_t i = (postings[p] & 0xffff) - at;
            begins |= i < 31 ? 2u << i : 0;
        }
        begins = __reduce_or_sync(ALL_LANES, begins);
        const uint32_t through = warp_inclusive(gap, lane), mine = begins & ((2u << lane) - 1);
        const uint32_t start = mine ? 31 - __clz(mine) : 0,
                       before = __shfl_sync(ALL_LANES, through, start ? start - 1 : 0);
        const uint32_t position = start ? through - before - 1 : carry + through;
        if (m == 0 || __any_sync(ALL_LANES, lane && lane <= m && (position > MOST_PLAIN || gap > MOST_PLAIN + 1)))
            return false;
        if (lane && lane <= m)
            plain[at + lane - 1] = (uint16_t)position;
        carry = __shfl_sync(ALL_LANES, position, m);
    }
    return true;
}

static __global__ void __launch_bounds__(THREADS)
    write(const __grid_constant__ gpu_index X, const __grid_constant__ gpu_codings codings,
          const __grid_constant__ gpu_positions S, uint32_t n, uint32_t *failed)
{
    const uint32_t lane = threadIdx.x & 31, block = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (block >= n)
        return;
    const list_block b = open_block(X, codings, block);
    const block_start start = S.starts[block];
    uint32_t *postings = (uint32_t *)S.postings + start.posting;
    word_place w;
    w.n_values = w.tf = write_postings(X, b, postings, lane);
    w.first = 0;
    w.begin = block ? positions_end(S, block - 1) : 0;
    const uint64_t end = positions_end(S, block), words = end - w.begin;
    w.n_words = w.begin <= end && end <= S.n_words && words < MAX_BLOCK_WORDS ? (uint32_t)words : 0;
    if (!write_values(S, w, postings, b.n, (uint16_t *)S.plain + start.value, lane) && lane == 0)
        *failed = 1;
}

static uint32_t thread_blocks(uint32_t n)
{
    return (n + THREADS / 32 - 1) / (THREADS / 32);
}

void count_positions(const gpu_index &X, const gpu_codings &codings, uint32_t *counts, uint32_t n, cudaStream_t stream)
{
    count<<<thread_blocks(n), THREADS, 0, stream>>>(X, codings, counts, n);
}

void write_plain_positions(const gpu_index &X, const gpu_codings &codings, const gpu_positions &S, uint32_t n,
                           uint32_t *failed, cudaStream_t stream)
{
    write<<<thread_blocks(n), THREADS, 0, stream>>>(X, codings, S, n, failed);
}

} // namespace gx
