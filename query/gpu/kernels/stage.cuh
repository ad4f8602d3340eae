/* stage.cuh: a warp's shared memory in the search, and the asynchronous copies that fill it:
 * descriptors of the next item, and the payload of its blocks, while the warp works on an item. */
#ifndef GX_QUERY_GPU_KERNELS_STAGE_CUH
#define GX_QUERY_GPU_KERNELS_STAGE_CUH

#include "query/gpu/kernels/lists.cuh"

namespace gx {

/* Payload words of each of a warp's two buffers. search.cuh asserts that they leave room for L1. */
constexpr uint32_t STAGE_WORDS = 268;
constexpr uint32_t STAGE_SLACK = GX_READ_SLACK / 4 + 4;
static_assert((STAGE_WORDS + STAGE_SLACK) % 4 == 0, "both buffers begin with a piece of 16 bytes");

/* Whether the docids and tfs of every block fit into a buffer together, at any alignment. */
template <class P> constexpr bool ALWAYS_STAGED = false;
template <> constexpr bool ALWAYS_STAGED<pair_gpubp128> = true;
template <> constexpr bool ALWAYS_STAGED<pair_raw> = true;
static_assert(STAGE_WORDS >= 2 * (128 + 4), "blocks of 128 words, each with what it has beside it in its pieces of "
                                            "16 bytes");

/* Where a block's docids and tfs begin, in words after the list's first. They end where those of
 * the next block begin. */
struct alignas(8) block_offsets {
    uint32_t docs, tfs;
};

/* An item and all that describes it, in shared memory. */
struct alignas(16) staged_item {
    gpu_item item;
    gpu_query query;
    gpu_term terms[SHORT_QUERY_TERMS]; /* not set for a long query */
    block_offsets blocks[MAX_ITEM_BLOCKS + 1];
    uint32_t heads[MAX_ITEM_BLOCKS]; /* first docid of each block */
    /* the query's threshold when it was copied; L1 may return an older, lower value, which is
     * valid too */
    uint32_t threshold;
};

/* The blocks, up to block `end` of an item, whose payload a buffer holds. Word w of the list is
 * stage[docs + w] or stage[tfs + w]. With `staged` false the block did not fit and the warp reads
 * it from global memory. */
struct alignas(16) chunk {
    uint32_t docs, tfs, end, staged;
};

constexpr uint32_t BATCH = 128; /* postings that the maps filter at a time */
/* Candidates that may wait in the queue. Beyond that the warp scores some. Shared memory has room
 * for no more (search.cuh). */
constexpr uint32_t MAX_QUEUED = 23;
template <uint32_t V> constexpr uint32_t SPACE = 32 * V + BATCH - 1 + MAX_QUEUED;

/* A warp's shared memory. */
template <uint32_t V> struct alignas(16) warp_shared {
    uint32_t stage[2 * (STAGE_WORDS + STAGE_SLACK)]; /* two buffers */
    /* Pairs of docid and tf: from the front those that wait for the maps, from the end the
     * candidates. */
    uint2 postings[SPACE<V>];
    staged_item items[2];     /* the current item and the next, alternating */
    gpu_item fetched;         /* the item after the next */
    chunk chunks[2];          /* of the two buffers of stage */
    chunk current;            /* the chunk that the warp reads */
    uint32_t bound_by_tf[32]; /* of a posting of the item's list, by its tf */
    uint32_t buffer;          /* the buffer that the warp reads, or has read last */
    uint32_t next_staged;     /* whether the other buffer already holds the first blocks of the next item */
    uint32_t n_queued;        /* used while postings are appended to the queue */
    /* counts; and whether the warp accepted candidates, which it must make visible */
    uint32_t decoded, lookups, wrote;
};

/* The same of a search with plain phrases: documents whose bounds by the maps reach the threshold, which wait until
 * the lanes have enough of them. */
template <uint32_t V> struct alignas(16) phrase_shared : warp_shared<V> {
    uint2 bounded[64];
};

/* ---- copies from global to shared memory ---- */

__device__ __forceinline__ void cp_async_4(void *shared, const void *global)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global)
                 : "memory");
}

__device__ __forceinline__ void cp_async_16(void *shared, const void *global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(global)
                 : "memory");
}

__device__ __forceinline__ void wait_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
}

__device__ __forceinline__ uint32_t item_blocks(uint32_t what)
{
    return (what >> 24 & (MAX_ITEM_BLOCKS - 1)) + 1;
}

/* Start copying where an item's blocks are, except where the tfs of an ITEM_FIRST begin. */
__device__ __forceinline__ void fetch_blocks(const gpu_index &X, gpu_item it, staged_item &to, uint32_t lane)
{
    if (lane < item_blocks(it.packed)) {
        cp_async_4(&to.heads[lane], X.heads + it.block + lane);
        cp_async_4(&to.blocks[lane + 1].docs, X.docid_ends + it.block + lane);
        cp_async_4(&to.blocks[lane + 1].tfs, X.tf_ends + it.block + lane);
    }
    if (lane == 0) {
        to.item = it;
        if (it.packed & ITEM_FIRST) {
            to.blocks[0].docs = 0;
        } else {
            cp_async_4(&to.blocks[0].docs, X.docid_ends + it.block - 1);
            cp_async_4(&to.blocks[0].tfs, X.tf_ends + it.block - 1);
        }
    }
}

/* Start copying all that describes an item. */
template <bool LONG>
__device__ __forceinline__ void fetch_item(const gpu_index &X, const gpu_batch &R, gpu_item it, staged_item &to,
                                           uint32_t lane)
{
    fetch_blocks(X, it, to, lane);
    if (lane == 0 && it.packed & ITEM_FIRST)
        cp_async_4(&to.blocks[0].tfs, &R.terms[it.packed & ITEM_TERM].payload.tf_begin);
    constexpr uint32_t PIECES = sizeof(gpu_term) / 16;
    static_assert(SHORT_QUERY_TERMS * PIECES <= 32, "a lane a piece");
    if (!LONG && lane < (it.query_terms >> 24) * PIECES)
        cp_async_16(reinterpret_cast<uint4 *>(to.terms) + lane,
                    reinterpret_cast<const uint4 *>(R.terms + (it.query_terms & ITEM_TERM)) + lane);
    if (lane < sizeof(gpu_query) / 16)
        cp_async_16(reinterpret_cast<uint4 *>(&to.query) + lane,
                    reinterpret_cast<const uint4 *>(R.queries + it.query) + lane);
    else if (lane == 31)
        cp_async_4(&to.threshold, &R.states[it.query].threshold);
}

/* Returns the query's terms: those in shared memory, or for a long query those in global memory. */
template <bool LONG>
__device__ __forceinline__ const gpu_term *item_terms(const gpu_batch &R, const staged_item &staged)
{
    return LONG ? R.terms + staged.query.first_term : staged.terms;
}

/* Start copying the item's blocks from block k on to buffer b, as many as fit, in pieces of 16
 * bytes, docids before tfs. If not even one fits, the warp will read it from global memory. With
 * ALWAYS_STAGED only a damaged block does not fit; then as much is copied as a whole block takes.
 */
template <class P, uint32_t V>
__device__ __forceinline__ void stage_chunk(const gpu_index &X, const staged_item &it, uint64_t list, uint32_t k,
                                            warp_shared<V> &ws, uint32_t b, uint32_t lane)
{
    constexpr uint32_t PIECES = STAGE_WORDS / 4;
    /* words between the list's first piece and its first word */
    const uint32_t cnt = item_blocks(it.item.packed), odd = (uint32_t)list & 3;
    const block_offsets from = it.blocks[k], end = it.blocks[min(k + lane + 1, cnt)];
    /* numbers of pieces, from the list's first piece */
    const uint32_t docs = (from.docs + odd) / 4, tfs = (from.tfs + odd) / 4;
    uint32_t n_docs = (end.docs + odd + 3) / 4 - docs, n_tfs = (end.tfs + odd + 3) / 4 - tfs;
    uint32_t fit = __popc(__ballot_sync(ALL_LANES, lane < cnt - k && n_docs + n_tfs <= PIECES));
    const bool staged = ALWAYS_STAGED<P> || fit;
    if (fit == 0) {
        n_docs = staged ? min(n_docs, PIECES / 2) : 0;
        n_tfs = staged ? min(n_tfs, PIECES / 2) : 0;
        fit = 1;
    }
    n_docs = __shfl_sync(ALL_LANES, n_docs, fit - 1);
    n_tfs = __shfl_sync(ALL_LANES, n_tfs, fit - 1);
    const uint4 *pieces = reinterpret_cast<const uint4 *>(X.payload + (list - odd));
    uint4 *stage = reinterpret_cast<uint4 *>(ws.stage) + b * ((STAGE_WORDS + STAGE_SLACK) / 4);
    const uint32_t tfs_less = tfs - n_docs;
#pragma unroll 1
    for (uint32_t o = lane; o < n_docs + n_tfs; o += 32)
        cp_async_16(stage + o, pieces + (o + (o < n_docs ? docs : tfs_less)));
    if (lane == 0) {
        const uint32_t first = b * (STAGE_WORDS + STAGE_SLACK) + odd;
        ws.chunks[b] = {first - 4 * docs, first - 4 * tfs_less, k + fit, staged};
    }
}

} // namespace gx

#endif
