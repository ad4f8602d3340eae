/* gpu.cuh: what the parts of the GPU engine share: the index as it lies in device memory, and a
 * batch of queries as the host describes it to the kernels.
 *
 *   gpu_query  one a query: operator, k, first threshold, and where its terms, candidates and
 *   answer are
 *   gpu_term   one a query's list: its blocks, its payload, its presence map, its weight and bounds
 *   gpu_item   a few blocks of one list, which is what a warp takes at a time
 *
 * Parts: executor.cu (batches), small_batch.cu (a few queries), state.cu (an index on the device),
 * sub_batch.cu (queries described), derive.cu (tables, maps and bounds from the lists), search.cuh
 * (the ranked search, with stage.cuh, score.cuh and threshold.cuh), small_batch.cuh (the same of a
 * few queries, in one launch or none, with query_slot.cuh), exhaustive.cu (every posting),
 * select.cu (the best of many candidates).
 */
#ifndef GX_QUERY_GPU_GPU_CUH
#define GX_QUERY_GPU_GPU_CUH

#include "engine/cuda.cuh"

extern "C" {
#include "query/exec.h"
}
#include "codecs/decode.cuh"

#include <stddef.h>

namespace gx {

/* ---- the index ---- */

struct gpu_index {
    const gx_list_entry *lists;
    const uint32_t *heads, *docid_ends, *tf_ends; /* [n_blocks], as in the file */
    const uint32_t *payload;
    const uint32_t *doc_lens;
    const uint32_t *tables; /* see term_blocks */
    const uint32_t *maps;   /* see term_filter */
    uint32_t rank_offset;   /* from a dense list's map to its ranks */
    uint32_t n_docs, n_terms, block_len;
};

/* Which decoders the lists need. Where all lists have one pair of equal codecs it is that codec,
 * else ANY. */
enum gpu_coding { CODING_ANY = 0 }; /* the others are enum gx_codec_id */

/* ---- a query's list ---- */

/* Where a docid's block is: blocks tables[table + (docid >> table_shift)] and after. Lists of up to
 * 32 blocks have no table: theirs is tables[0], and all shifts come to 0 or 1 (both entries are 0).
 * */
struct alignas(16) term_blocks {
    uint32_t first_block, n_blocks, table, table_shift;
};

struct alignas(16) term_payload {
    uint64_t words;    /* the list's first word in payload */
    uint32_t tf_begin; /* where its tf blocks begin, in words from there */
    uint32_t df;
};

/* The presence map: bit (docid >> map_shift) from maps[map]. A list without one has map 0 and
 * map_shift 31, whose two bits are set: it may hold anything. A dense list's slots are single
 * documents; its map is followed, at rank_offset, by its ranks: how many of its documents come
 * before 512 g, for each g. The tf classes: two bits a slot from maps[classes] (tf_class), or
 * NO_CLASSES. */
struct alignas(16) term_filter {
    uint32_t map, map_shift;
    uint32_t bound; /* no impact of the list is greater */
    uint32_t classes;
};

struct alignas(16) term_weight {
    float w;
    uint32_t remaining_ub; /* sum of the bounds of the query's later lists */
    uint32_t query;
    uint32_t codecs; /* docids' codec | its parameter << 8 | tfs' codec << 16 | its parameter << 24 */
};

struct gpu_term {
    term_blocks at;
    term_payload payload;
    term_filter filter;
    term_weight weight;
};

constexpr uint32_t NO_CLASSES = UINT32_MAX;
constexpr uint32_t RANK_WORDS = 16; /* of a dense map, to a rank */
constexpr uint32_t EXACT_SLOTS = 0; /* map_shift of a map whose slots are single documents */
constexpr uint32_t NO_MAP_SHIFT = 31, NO_TABLE_SHIFT = 31;

/* ---- a query ---- */

constexpr uint32_t LOG2_BINS = 9, BINS = 1 << LOG2_BINS; /* of the histogram of exact scores */
constexpr uint32_t SMALL_K = 32; /* up to this k the search kernel selects, else the kernel select */
constexpr uint32_t NO_QUERY = UINT32_MAX;
constexpr uint32_t SHORT_QUERY_TERMS = 6; /* a query of more is long, and searched by a kernel of its own */

enum { QUERY_AND = 1, QUERY_EXHAUSTIVE = 2, QUERY_MASKED = 4, QUERY_LOSSY = 8 };

struct alignas(16) gpu_query {
    uint32_t n_terms, first_term, flags, k;
    uint32_t initial_threshold;   /* >= 1; a k-th best score is not lower */
    uint32_t bin_base, bin_shift; /* score_bin */
    uint32_t n_items;
    uint64_t candidates; /* where its candidates are in gpu_batch.candidates */
    uint32_t capacity;   /* room for so many */
    /* answered only if that query (a smaller number) has accepted fewer than k; or NO_QUERY */
    uint32_t after;
    float c0, c1;         /* gx_scorer, with QUERY_LOSSY */
    float min_K;          /* of the collection's shortest document */
    uint32_t shares;      /* of a few queries: each block is so many items, a power of two, at most MAX_SHARES */
    uint64_t answer;      /* where its k keys are in gpu_batch.answers */
    const uint32_t *mask; /* QUERY_MASKED: a bit a document, set where it may be answered; else NULL */
};

__device__ __forceinline__ gx_scorer query_scorer(const gpu_query &Q)
{
    return {Q.c0, Q.c1, (Q.flags & QUERY_LOSSY) != 0};
}

/* Whether a document may be answered, under the mask of a query, or NULL. */
__device__ __forceinline__ bool is_allowed(const uint32_t *mask, uint32_t doc)
{
    return !mask || __ldg(mask + doc / 32) >> doc % 32 & 1;
}

/* What runs keep a query; begin() sets it. */
struct alignas(16) gpu_query_state {
    uint32_t threshold; /* only rises; never above the k-th best score */
    uint32_t count;     /* candidates accepted; those past the capacity were lost, and the query is to be run again */
    uint32_t done;      /* items finished */
    uint32_t n_hits;    /* of the answer, once it is there; before, documents that count_lower_bounds counted */
};

struct alignas(16) gpu_item {
    uint32_t block;  /* the first, in the index */
    uint32_t packed; /* term | (blocks - 1) << 24 | share << ITEM_SHARE | ITEM_LAST | ITEM_FIRST */
    uint32_t query;
    uint32_t query_terms; /* the query's first term | its number of terms, at most 255, << 24 */
};
constexpr uint32_t ITEM_TERM = (1u << 24) - 1, ITEM_LAST = 1u << 30, ITEM_FIRST = 1u << 31;
constexpr uint32_t MAX_ITEM_BLOCKS = 16;
constexpr uint32_t ITEM_SHARE = 28, MAX_SHARES = 4; /* share s of a block is what lanes s, s + shares, ... hold of it */
/* of a search: short queries, long ones; what is answered only after others likewise */
constexpr uint32_t N_LAUNCHES = 4;

/* Items of a list, of item_blocks blocks each. */
__host__ __device__ __forceinline__ uint32_t count_items(uint32_t n_blocks, uint32_t item_blocks)
{
    return (n_blocks - 1) / item_blocks + 1;
}

/* The item of up to n_blocks blocks of a query's list from `block` on. */
__host__ __device__ __forceinline__ gpu_item make_item(uint32_t term, term_blocks at, uint32_t query,
                                                       const gpu_query *Q, uint32_t block, uint32_t n_blocks)
{
    const uint32_t left = at.n_blocks - block, n = n_blocks < left ? n_blocks : left;
    const uint32_t n_terms = Q->n_terms < 255 ? Q->n_terms : 255;
    return {at.first_block + block, term | (n - 1) << 24 | (block == 0 ? ITEM_FIRST : 0) | (n == left ? ITEM_LAST : 0),
            query, Q->first_term | n_terms << 24};
}

/* A term's blocks from `block` on, item_blocks an item, that become items [item, next run's item).
 * */
struct item_range {
    uint32_t term, block, item, item_blocks;
};

/* A few queries, short ones, of k <= SMALL_K: the kernel's parameters are all that describes them.
 * Query i's terms are its own, from 0 on. */
constexpr uint32_t SMALL_BATCH = 4;

struct small_query {
    gpu_query query;
    gpu_term terms[SHORT_QUERY_TERMS];
    uint32_t blocks; /* of threads that search for it: the first ones of the grid */
    uint32_t unused[3];
};

struct small_batch {
    small_query of[SMALL_BATCH];
};

/* Where a kernel that stays finds its next query: host memory that the GPU reads, and a copy in
 * device memory that the kernel's blocks of threads read. Each word of the query has the message's
 * number beside it, so that a message is there when all its numbers are. */
constexpr uint32_t SLOT_PIECES = 64, SLOT_WORDS = sizeof(small_query) / 4; /* pieces of 16 bytes */

struct alignas(128) query_slot {
    uint2 words[2 * SLOT_PIECES - 2];    /* word, number; what is left over numbered too */
    uint32_t stop, unused[3];            /* leave != 0: the host wants the kernel to end */
    alignas(128) uint32_t ended_message; /* the number of the message that the kernel did not wait for */
};
static_assert(SLOT_WORDS >= 64 && SLOT_WORDS <= 2 * SLOT_PIECES - 2 && SLOT_WORDS % 2 == 0 &&
                  offsetof(query_slot, ended_message) == 16 * SLOT_PIECES,
              "a warp reads it at once");

struct linger_params {
    query_slot *slot;   /* as the device sees it */
    uint4 *copy;        /* [SLOT_PIECES], in device memory; no number in it is greater than number */
    uint32_t number;    /* of the message that the kernel's first query would have been */
    uint32_t linger_ns; /* ns that it waits for the next query; 0: it does not stay. */
};

enum { COUNT_DECODED, COUNT_LOOKUPS, N_COUNTS };

struct gpu_batch {
    const gpu_query *queries;
    const gpu_term *terms;
    const gpu_item *items; /* of this launch */
    uint32_t n_items;
    uint32_t *next_item;     /* of this launch; [N_LAUNCHES] in all */
    gpu_query_state *states; /* [n_queries] */
    uint32_t *histograms,
        *lower_bound_histograms;              /* [n_queries * BINS]: of exact scores, of what documents have at least */
    unsigned long long *candidates, *answers; /* keys; answers may be host memory */
    gpu_query_state *results;                 /* [n_queries], host memory: the states at the end, done 0 */
    unsigned long long *counts;               /* [N_COUNTS] */
};

/* ---- scores and bins ---- */

/* Bins of a histogram grow with the score: they are steps of a float's bits, counted from the first
 * threshold. */
__host__ __device__ __forceinline__ uint32_t float_bits(float x)
{
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
#endif
}

__device__ __forceinline__ uint32_t score_bin(uint32_t score, uint32_t base, uint32_t shift)
{
    return min((__float_as_uint(__uint2float_rz(score)) - base) >> shift, BINS - 1);
}

/* The least score of a bin. */
__device__ __forceinline__ uint32_t bin_score(uint32_t bin, uint32_t base, uint32_t shift)
{
    return __float2uint_ru(__uint_as_float(base + (bin << shift)));
}

/* ---- tf classes ---- */

__host__ __device__ __forceinline__ uint32_t tf_class(uint32_t tf)
{
    return tf <= 1 ? 0 : tf == 2 ? 1 : tf < 6 ? 2 : 3;
}
constexpr uint32_t CLASS_ANY = 3; /* no greatest tf */

/* c < CLASS_ANY */
__host__ __device__ __forceinline__ uint32_t class_tf(uint32_t c)
{
    return c == 0 ? 1 : c == 1 ? 2 : 5;
}
__host__ __device__ __forceinline__ uint32_t class_min_tf(uint32_t c)
{
    return c < 2 ? c + 1 : c == 2 ? 3 : 6;
}

/* ---- descriptors ---- */

/* 16 bytes of a descriptor at once, in global or in shared memory; nothing writes it while it is
 * read. */
template <typename T> __device__ __forceinline__ T read(const T *p)
{
    static_assert(sizeof(T) == 16 && alignof(T) == 16, "one vector load");
    const uint4 v = *reinterpret_cast<const uint4 *>(p);
    T t;
    memcpy(&t, &v, sizeof t);
    return t;
}

} // namespace gx

#endif
