/* gpu_stage.cuh: what a warp of the search has in shared memory, and how it comes there while the warp works on something else: items,
 * what describes them, and the payload of their blocks.
 */
#ifndef GX_GPU_STAGE_CUH
#define GX_GPU_STAGE_CUH

#include "query/gpu_lists.cuh"

namespace gx {

constexpr uint32_t STAGE_WORDS = 264;  /* of payload in each of a warp's two buffers */
constexpr uint32_t STAGE_BLOCKS = 8;   /* most blocks in one */
constexpr uint32_t STAGE_SLACK = GX_READ_SLACK / 4 + 4;

/* An item with all that describes it, in shared memory; fetched while the item before is worked on. */
struct alignas(16) near_item {
    gpu_item item;
    gpu_query query;
    gpu_query_state state;       /* as it was then: its threshold is good, if low */
    gpu_term terms[NEAR_TERMS];  /* not for a long query */
    uint32_t heads[MAX_ITEM_BLOCKS];
    uint32_t docid_ends[MAX_ITEM_BLOCKS + 4], tf_ends[MAX_ITEM_BLOCKS + 4]; /* block j is from [j] to [j + 1] */
};

/* Payload of an item's blocks up to end: the list's words as if they began at docs and at tfs. */
struct chunk {
    const uint32_t *docs, *tfs;
    uint32_t end;
};

/* A warp's shared memory. */
template <uint32_t V> struct alignas(16) search_space {
    uint32_t stage[2][STAGE_WORDS + STAGE_SLACK];
    uint2 queue[32 * V + 32];  /* candidates: docid, tf */
    near_item items[2];        /* this one and the next, by turns */
    gpu_item fetched;          /* the one after that */
    chunk chunks[2];           /* of stage */
    uint32_t n_queued;         /* while candidates are queued */
    uint32_t decoded, skipped, lookups, wrote; /* counts (decoded: with those skipped), and whether candidates must be made visible */
};

/* ---- copies from global to shared memory ---- */

__device__ __forceinline__ void copy_4(void *shared, const void *global)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(global) : "memory");
}

__device__ __forceinline__ void copy_16(void *shared, const void *global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(shared)), "l"(global) : "memory");
}

__device__ __forceinline__ void wait_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
}

/* Begin to fetch an item's heads and ends, but for where the tfs of an ITEM_FIRST begin. */
__device__ __forceinline__ void fetch_blocks(const gpu_index &X, gpu_item it, near_item &to, uint32_t lane)
{
    const uint32_t n = (it.what >> 24 & (MAX_ITEM_BLOCKS - 1)) + 1;
    if (lane == 0)
        to.item = it;
    if (lane < n)
        copy_4(&to.heads[lane], X.heads + it.block + lane);
    if (lane == 0 && it.what & ITEM_FIRST) {
        to.docid_ends[0] = 0;
    } else if (lane <= n) {
        copy_4(&to.docid_ends[lane], X.docid_ends + it.block + lane - 1);
        copy_4(&to.tf_ends[lane], X.tf_ends + it.block + lane - 1);
    }
}

/* Begin to fetch all that describes an item. */
template <bool LONG>
__device__ __forceinline__ void fetch_item(const gpu_index &X, const gpu_batch &R, gpu_item it, near_item &to, uint32_t lane)
{
    fetch_blocks(X, it, to, lane);
    if (lane == 0 && it.what & ITEM_FIRST)
        copy_4(&to.tf_ends[0], &R.terms[it.what & ITEM_TERM].payload.tf_begin);
    constexpr uint32_t PIECES = sizeof(gpu_term) / 16;
    static_assert(NEAR_TERMS * PIECES <= 32, "a lane a piece");
    if (!LONG && lane < (it.place >> 24) * PIECES)
        copy_16(reinterpret_cast<uint4 *>(to.terms) + lane,
                reinterpret_cast<const uint4 *>(R.terms + (it.place & ITEM_TERM)) + lane);
    if (lane < sizeof(gpu_query) / 16)
        copy_16(reinterpret_cast<uint4 *>(&to.query) + lane, reinterpret_cast<const uint4 *>(R.queries + it.query) + lane);
    else if (lane == 31)
        copy_16(&to.state, R.states + it.query);
}

/* The query's lists: in shared memory where they are few. */
template <bool LONG> __device__ __forceinline__ const gpu_term *item_terms(const gpu_batch &R, const near_item &near)
{
    return LONG ? R.terms + near.query.first_term : near.terms;
}

/* Begin to copy words [begin, begin + n) of payload to stage, 16 bytes at a time; returns the words used. Word begin will
 * lie at stage[begin & 3]. */
__device__ __forceinline__ uint32_t stage_words(uint32_t *stage, const uint32_t *payload, uint64_t begin, uint32_t n, uint32_t lane)
{
    const uint32_t *from = payload + (begin & ~(uint64_t)3);
    const uint32_t words = ((uint32_t)(begin & 3) + n + 3) & ~3u;
#pragma unroll 1
    for (uint32_t o = lane * 4; o < words; o += 128)
        copy_16(stage + o, from + o);
    return words;
}

/* Begin to stage as many of the item's blocks from k on as fit into buffer b; where not even one fits, it is read where it
 * is. */
template <uint32_t V>
__device__ __forceinline__ void stage_chunk(const gpu_index &X, const near_item &it, uint64_t list, uint32_t k, search_space<V> &ws,
                                            uint32_t b, uint32_t lane)
{
    const uint32_t cnt = (it.item.what >> 24 & (MAX_ITEM_BLOCKS - 1)) + 1, d = it.docid_ends[k], t = it.tf_ends[k];
    const uint32_t to = min(k + lane + 1, cnt), need = (it.docid_ends[to] - d) + (it.tf_ends[to] - t) + 12;
    const uint32_t fit = __popc(__ballot_sync(ALL_LANES, lane < min(cnt - k, STAGE_BLOCKS) && need <= STAGE_WORDS));
    uint32_t *first = ws.stage[b];
    if (fit) {
        uint32_t *second = first + stage_words(first, X.payload, list + d, it.docid_ends[k + fit] - d, lane);
        stage_words(second, X.payload, list + t, it.tf_ends[k + fit] - t, lane);
        if (lane == 0)
            ws.chunks[b] = {first + (uint32_t)((list + d) & 3) - d, second + (uint32_t)((list + t) & 3) - t, k + fit};
    } else if (lane == 0) {
        ws.chunks[b] = {X.payload + list, X.payload + list, k + 1};
    }
}

} // namespace gx

#endif
