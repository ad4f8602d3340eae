/* gpu.cuh: the structs that the host and the kernels of the GPU engine share: the index in device
 * memory, and the queries of a batch as the host describes them.
 *
 *   gpu_query  a query: operator, k, first threshold; where its terms, candidates and answer are
 *   gpu_term   a list of a query: its blocks, payload, presence map, weight and bounds
 *   gpu_item   a few blocks of one list: the unit of work of a warp
 *
 * The files of the GPU engine:
 *
 *   state.cu        prepares an index: uploads it, plans its maps, keeps its bounds
 *   columns.cu      uploads attributes; describes filters by tests of values and by their documents
 *   derive.cu       kernels that derive tables, maps and bounds from the lists
 *   sub_batch.cu    describes queries to the kernels and collects their answers
 *   batch.cu        runs large batches as a sequence of sub-batches
 *   small_batch.cu  runs up to MEDIUM_BATCH queries with one launch, or one through a lingering kernel
 *   search.cuh      the ranked search, with stage.cuh, score.cuh and threshold.cuh
 *   small_batch_search.cuh  the same for a small batch, with block_threshold.cuh and query_slot.cuh
 *   list_queue.cuh  the same for a few hundred queries, whose lists go in turn
 *   documents.cu    the search of the documents that a rare filter selects
 *   phrases.cu      the search of queries with phrases, with phrases.cuh and plain_phrases.cuh
 *   positions.cu    uploads the positions of words, and makes them plain
 *   tiles.cu        the search by tiles: long queries, with accumulators
 *   exhaustive.cu   scores every posting
 *   facets.cu       describes queries whose matches are counted; keeps the ordinals of facets
 *   matches.cu      counts all matches of queries, and their facets
 *   select.cu       selects the best k of many candidates */
#ifndef GX_QUERY_GPU_KERNELS_GPU_CUH
#define GX_QUERY_GPU_KERNELS_GPU_CUH

#include "engine/cuda.cuh"

extern "C" {
#include "query/exec/exec.h"
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
    uint32_t rank_offset;   /* from the first word of a dense list's map to its ranks */
    uint32_t n_docs, n_terms, block_len;
};

/* The decoders that the lists need: the id of the codec that all lists have for docids and for
 * tfs, or CODING_ANY if they differ. */
enum gpu_coding { CODING_ANY = 0 }; /* other values: enum gx_codec_id */

/* ---- a query's list ---- */

/* Where a list's blocks are. The block that may hold a docid is at or after block tables[table +
 * (docid >> table_shift)]. Lists of up to 32 blocks have no table of their own. They use tables[0]
 * and tables[1], which are 0, and a table_shift that takes every docid to 0 or 1. */
struct alignas(16) term_blocks {
    uint32_t first_block, n_blocks, table, table_shift;
};

struct alignas(16) term_payload {
    uint64_t words;    /* index of the list's first word in payload */
    uint32_t tf_begin; /* where its tf blocks begin: words after the list's first */
    uint32_t df;
};

/* The presence map of a list. Bit (docid >> map_shift) from maps[map] on is set if the list may
 * hold the docid. A list without a map has map 0 and map_shift 31: both bits that a docid can take
 * there are set. In the map of a dense list each slot is one document. The ranks follow such a map
 * at rank_offset: rank g is the number of the list's documents before document 512 g. The tf
 * classes (tf_class) are two bits a slot from maps[classes] on, or NO_CLASSES. In a query with
 * QUERY_TILES, map is the list's row (tiles.cuh) instead. */
struct alignas(16) term_filter {
    uint32_t map, map_shift;
    uint32_t bound; /* the list's impacts are at most this */
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

/* A condition on the value that a document has in a column: (value - low) mod 2^bits <= span. Tests stand
 * in clauses, of which a document meets each: it meets one of the clause's tests. */
struct alignas(16) gpu_test {
    /* the column's address, a multiple of TEST_ALIGNMENT | TEST_OR if the next test is of the same clause |
     * log2 of bits, which are 1, 8, 16 or 32 */
    uint64_t values;
    uint32_t low, span;
};
constexpr uint32_t TEST_ALIGNMENT = 16, TEST_OR = 8;
/* tests of a query, which lie behind its terms, and those that take the room of one */
constexpr uint32_t MAX_TESTS = 8, TESTS_A_TERM = sizeof(gpu_term) / sizeof(gpu_test);

constexpr uint32_t NO_CLASSES = UINT32_MAX;
constexpr uint32_t RANK_WORDS = 16; /* words of a dense map between two ranks */
constexpr uint32_t EXACT_SLOTS = 0; /* map_shift of a map with one document a slot */
constexpr uint32_t NO_MAP_SHIFT = 31, NO_TABLE_SHIFT = 31;

/* ---- a query ---- */

constexpr uint32_t LOG2_BINS = 9, BINS = 1 << LOG2_BINS; /* bins of the histogram of exact scores */
/* up to this k the search kernel selects the best; above it the kernel select does */
constexpr uint32_t SMALL_K = 32;
constexpr uint32_t NO_QUERY = UINT32_MAX;
constexpr uint32_t SHORT_QUERY_TERMS = 6; /* the kernel for short queries takes at most this many terms */

enum { QUERY_AND = 1, QUERY_EXHAUSTIVE = 2, QUERY_MASKED = 4, QUERY_LOSSY = 8, QUERY_TILES = 16 };
/* its first threshold is likely; it is no bound unless k documents reach it */
enum { QUERY_GUESSED = 32 };
/* The mask is read as soon as postings are decoded. With QUERY_MASKED it decides which documents the query may
 * return. Without it the mask only saves time: it has those documents and others, and need not be read. */
enum { QUERY_EARLY_MASK = 64 };
/* from these bits on: the number of tests behind the query's terms; log2 of the documents of an early mask's bit */
constexpr uint32_t QUERY_TESTS = 8, QUERY_MASK_SHIFT = 16;

struct alignas(16) gpu_query {
    uint32_t n_terms, first_term, flags, k;
    uint32_t initial_threshold;   /* at least 1; without QUERY_GUESSED at most the k-th best score */
    uint32_t bin_base, bin_shift; /* score_bin */
    uint32_t n_items;
    uint64_t candidates; /* index of its first candidate in gpu_batch.candidates */
    uint32_t capacity;   /* candidates that it has room for */
    /* Number of an earlier query, or NO_QUERY: this query is answered only if that one has
     * accepted fewer than k documents. */
    uint32_t after;
    float c0, c1; /* gx_scorer, with QUERY_LOSSY */
    float min_K;  /* K of the collection's shortest document */
    union {
        uint32_t shares;  /* in a small batch, items into which each block is divided: a power of two <= MAX_SHARES */
        uint32_t program; /* of a query with phrases: where its program begins in gpu_batch.programs */
    };
    uint64_t answer; /* index of its first key in gpu_batch.answers */
    /* QUERY_MASKED: a bit a document, set if it may be returned; QUERY_EARLY_MASK: see there; else NULL */
    const uint32_t *mask;
};

__device__ __forceinline__ gx_scorer query_scorer(const gpu_query &Q)
{
    return {Q.c0, Q.c1, (Q.flags & QUERY_LOSSY) != 0};
}

/* Returns whether the mask allows the document. A mask of NULL allows all. */
__device__ __forceinline__ bool is_allowed(const uint32_t *mask, uint32_t doc)
{
    return !mask || __ldg(mask + doc / 32) >> doc % 32 & 1;
}

__host__ __device__ __forceinline__ uint32_t count_tests(uint32_t flags)
{
    return flags >> QUERY_TESTS & 0xff;
}

/* Returns how many terms' room a query takes with its tests. */
__host__ __device__ __forceinline__ uint32_t count_room(uint32_t n_terms, uint32_t flags)
{
    return n_terms + (count_tests(flags) + TESTS_A_TERM - 1) / TESTS_A_TERM;
}

/* What a query's search has reached so far. begin() initializes it. */
struct alignas(16) gpu_query_state {
    uint32_t threshold; /* rises only; never above the k-th best score */
    /* Candidates accepted. If they exceed the capacity, the surplus is lost and the host runs the
     * query again. */
    uint32_t count;
    uint32_t done; /* items finished; where lists go in turn, less those that have been queued */
    /* during the search: documents counted by count_lower_bounds; at its end: hits of the answer */
    uint32_t n_hits;
};

struct alignas(16) gpu_item {
    uint32_t block;  /* first block, numbered in the index */
    uint32_t packed; /* term | (n_blocks - 1) << 24 | share << ITEM_SHARE | ITEM_LAST | ITEM_FIRST */
    uint32_t query;
    uint32_t query_terms; /* the query's first term | min(count_room, 255) << 24 */
};
constexpr uint32_t ITEM_TERM = (1u << 22) - 1, ITEM_LAST = 1u << 30, ITEM_FIRST = 1u << 31;
constexpr uint32_t MAX_ITEM_BLOCKS = 16;
/* share s of a block is the postings of lanes s, s + shares, ... */
constexpr uint32_t ITEM_SHARE = 28, MAX_SHARES = 4;
/* Where lists enter the queue in turn (list_queue.cuh): the item is a share of MAX_SHARES; after it the query's next
 * list may enter. */
constexpr uint32_t ITEM_SHARED = 1u << 22, ITEM_OPENS_NEXT = 1u << 23;
/* launches of a search: short queries, long queries, and the same for queries with an `after` */
constexpr uint32_t N_LAUNCHES = 4;
/* launches of a search by tiles: linear scorers, others, and the same for queries with an `after` */
constexpr uint32_t N_TILED_LAUNCHES = 4;
/* launches of a search of filters' documents: queries without an `after`, and with one */
constexpr uint32_t N_DOCUMENT_LAUNCHES = 2;
constexpr uint32_t N_COUNTERS = N_LAUNCHES + N_TILED_LAUNCHES + N_DOCUMENT_LAUNCHES;

/* Returns the number of items of item_blocks blocks into which a list's blocks go. */
__host__ __device__ __forceinline__ uint32_t count_items(uint32_t n_blocks, uint32_t item_blocks)
{
    return (n_blocks - 1) / item_blocks + 1;
}

/* Makes the item of up to n_blocks blocks of a query's list, the first of them `block`. */
__host__ __device__ __forceinline__ gpu_item make_item(uint32_t term, term_blocks at, uint32_t query,
                                                       const gpu_query *Q, uint32_t block, uint32_t n_blocks)
{
    const uint32_t left = at.n_blocks - block, n = n_blocks < left ? n_blocks : left;
    const uint32_t room = count_room(Q->n_terms, Q->flags), n_terms = room < 255 ? room : 255;
    return {at.first_block + block, term | (n - 1) << 24 | (block == 0 ? ITEM_FIRST : 0) | (n == left ? ITEM_LAST : 0),
            query, Q->first_term | n_terms << 24};
}

/* Documents of which every one is that a query's filter selects, in the place of the query's lists from
 * `position` on: a document that an earlier list holds is that list's. They lie in runs, in each of which
 * docids rise. The work on them goes in n_items items, which divide the docids from `begin` to `end` evenly;
 * the first of them is item first_item of the launch. */
struct alignas(16) selected_documents {
    const uint32_t *docids;
    const uint32_t *starts;              /* [n_runs + 1]: run i is docids[starts[i], starts[i + 1]) */
    uint32_t n_runs, n, query, position; /* n_runs <= MAX_RUNS; n: of all runs */
    uint32_t begin, end, n_items, first_item;
    uint32_t bound; /* sum of the bounds of the lists from `position` on */
    uint32_t unused[3];
};
constexpr uint32_t DOCUMENTS_ITEM = 4096; /* documents of an item, on average */
constexpr uint32_t MAX_RUNS = 32;         /* a lane a run */

/* Blocks of a term from `block` on. They become the items from `item` up to the next range's
 * `item`, each of item_blocks blocks; or of SHARED_BLOCK: each block becomes MAX_SHARES of them. */
struct item_range {
    uint32_t term, block, item, item_blocks;
};
constexpr uint32_t SHARED_BLOCK = 0;

/* Makes item number i of the range. */
__host__ __device__ __forceinline__ gpu_item make_range_item(const item_range &range, term_blocks at, uint32_t query,
                                                             const gpu_query *Q, uint32_t i)
{
    if (range.item_blocks != SHARED_BLOCK)
        return make_item(range.term, at, query, Q, range.block + i * range.item_blocks, range.item_blocks);
    gpu_item it = make_item(range.term, at, query, Q, range.block + i / MAX_SHARES, 1);
    it.packed |= ITEM_SHARED | i % MAX_SHARES << ITEM_SHARE;
    return it;
}

/* Returns the number of the range's item that holds the list's middle block; no item has the number if none does. */
__host__ __device__ __forceinline__ uint32_t middle_item(const item_range &range, term_blocks at)
{
    const uint32_t middle = at.n_blocks / 2;
    if (middle < range.block)
        return UINT32_MAX;
    return range.item_blocks == SHARED_BLOCK ? (middle - range.block) * MAX_SHARES
                                             : (middle - range.block) / range.item_blocks;
}

/* A small batch: short queries with k <= SMALL_K. The kernel's parameters describe them
 * completely. Each query has its own terms, numbered from 0. */
constexpr uint32_t SMALL_BATCH = 4;
/* In a medium batch, of up to so many such queries, device memory describes them. */
constexpr uint32_t MEDIUM_BATCH = 32;

struct small_query {
    gpu_query query;
    gpu_term terms[SHORT_QUERY_TERMS];
    uint32_t blocks; /* thread blocks that search for it: the first ones of its row of the grid */
    uint32_t first;  /* in a medium batch, the first of them */
    uint32_t unused[2];
};

struct small_batch {
    small_query of[SMALL_BATCH];
};

constexpr uint32_t MAX_MEDIUM_BLOCKS = 2048; /* thread blocks of a medium batch's launch, at most */

struct medium_batch {
    small_query of[MEDIUM_BATCH];
    uint8_t query_of[MAX_MEDIUM_BLOCKS]; /* of each thread block */
};

/* Where a lingering kernel finds its next query. The host writes the message to this slot in
 * pinned memory, and a warp copies it to device memory, where the kernel's thread blocks read it.
 * Each word has the message's number beside it: the message is complete when all numbers equal its
 * number. */
constexpr uint32_t SLOT_PIECES = 64, SLOT_WORDS = sizeof(small_query) / 4; /* a piece is 16 bytes */

struct alignas(128) query_slot {
    uint2 words[2 * SLOT_PIECES - 2];    /* word, message number; unused words have the number too */
    uint32_t stop, unused[3];            /* not 0: the host asks the kernel to end */
    alignas(128) uint32_t ended_message; /* number of the message that the kernel no longer waited for */
};
static_assert(SLOT_WORDS >= 64 && SLOT_WORDS <= 2 * SLOT_PIECES - 2 && SLOT_WORDS % 2 == 0 &&
                  offsetof(query_slot, ended_message) == 16 * SLOT_PIECES,
              "a warp reads it at once");

struct linger_params {
    query_slot *slot;   /* its address on the device */
    uint4 *copy;        /* [SLOT_PIECES], in device memory; its message numbers are <= number */
    uint32_t number;    /* message number that stands for the query of the launch */
    uint32_t linger_ns; /* how long the kernel waits for the next query; 0: it ends after the first */
};

/* COUNT_UNREADABLE: documents whose positions are damaged, or are so many that the host has to read them */
enum { COUNT_DECODED, COUNT_LOOKUPS, COUNT_UNREADABLE, N_COUNTS };

/* Where a block begins in gpu_positions.postings, and in `plain`. */
struct alignas(16) block_start {
    uint64_t posting, value;
};

constexpr uint32_t FAR = UINT16_MAX;

/* The positions of the index's words, all in device memory: as the file has them (FORMAT.md), or plain where they
 * fit. */
struct gpu_positions {
    const uint32_t *words, *ends, *wraps; /* NULL where they are plain */
    const uint8_t *titles;                /* NULL: no title has words */
    uint64_t n_words;
    uint32_t n_wraps, title_width;
    const block_start *starts; /* [n_blocks] */
    /* Of each posting: the number of its block's positions before its own | FAR or how much its docid is more than the
     * block's first, if that is less, << 16. Behind the block's last one: the number of all | FAR << 16. */
    const uint32_t *postings;
    const uint16_t *plain; /* NULL: they are not plain */
};

struct gpu_batch {
    const gpu_query *queries;
    const gpu_term *terms;
    const gpu_item *items; /* the items of this launch */
    uint32_t n_items;
    uint32_t *next_item;                           /* the counter of this launch; there are N_COUNTERS */
    gpu_query_state *states;                       /* [n_queries] */
    uint32_t *histograms, *lower_bound_histograms; /* [n_queries * BINS]: of exact scores; of lower bounds of scores */
    unsigned long long *candidates, *answers;      /* keys; answers may be host memory */
    gpu_query_state *results;                      /* [n_queries], host memory: the final states, with done = 0 */
    unsigned long long *counts;                    /* [N_COUNTS] */
    const uint32_t *programs;                      /* of queries with phrases (query/plan/phrase_program.h) */
    const gpu_positions *positions;                /* in device memory; set if there are such queries */
};

/* Where a launch whose lists enter the queue in turn finds its items (list_queue.cuh). */
struct list_queue {
    gpu_item *items;  /* [room]: first those of the queries' first lists; the others are 0 until they are written */
    uint32_t *state;  /* [QUEUE_WORDS] */
    uint32_t n_first; /* items that are queued from the start */
    uint32_t room, n_queries, item_blocks;
    uint32_t shared; /* each block of a list of up to so many is MAX_SHARES items */
    uint32_t spread; /* a list of up to so many is queued in items of a block each, if as many warps wait */
};
/* Words of list_queue.state: tickets taken; items queued; queries finished; and words that are 1 when all are. */
enum { QUEUE_TAKEN, QUEUE_END, QUEUE_FINISHED };
constexpr uint32_t QUEUE_STRIDE = 8, QUEUE_ENDED = QUEUE_STRIDE, QUEUE_ENDS = 32,
                   QUEUE_WORDS = QUEUE_ENDED + QUEUE_ENDS * QUEUE_STRIDE;

/* ---- scores and bins ---- */

/* A bin is a range of float values with the same leading bits, so bins widen with the score. Bin 0
 * begins at the query's first threshold. */
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

/* Returns the lowest score of a bin. */
__device__ __forceinline__ uint32_t bin_score(uint32_t bin, uint32_t base, uint32_t shift)
{
    return __float2uint_ru(__uint_as_float(base + (bin << shift)));
}

/* ---- tf classes ---- */

__host__ __device__ __forceinline__ uint32_t tf_class(uint32_t tf)
{
    return tf <= 1 ? 0 : tf == 2 ? 1 : tf < 6 ? 2 : 3;
}
constexpr uint32_t CLASS_ANY = 3; /* its tfs have no upper limit */

/* The greatest and the least tf of a class. class_tf needs c < CLASS_ANY. */
__host__ __device__ __forceinline__ uint32_t class_tf(uint32_t c)
{
    return c == 0 ? 1 : c == 1 ? 2 : 5;
}
__host__ __device__ __forceinline__ uint32_t class_min_tf(uint32_t c)
{
    return c < 2 ? c + 1 : c == 2 ? 3 : 6;
}

/* ---- descriptors and tests ---- */

/* Loads 16 bytes of a descriptor at once, from global or shared memory. No thread may write it
 * meanwhile. */
template <typename T> __device__ __forceinline__ T read(const T *p)
{
    static_assert(sizeof(T) == 16 && alignof(T) == 16, "one vector load");
    const uint4 v = *reinterpret_cast<const uint4 *>(p);
    T t;
    memcpy(&t, &v, sizeof t);
    return t;
}

/* Returns the query's tests. */
__device__ __forceinline__ const gpu_test *query_tests(const gpu_term *terms, uint32_t n_terms)
{
    return reinterpret_cast<const gpu_test *>(terms + n_terms);
}

/* Where a test finds a document's value. */
struct test_column {
    const uint32_t *words;
    uint32_t log_bits, mask;
};

__device__ __forceinline__ test_column column_of(const gpu_test &t)
{
    const uint32_t log_bits = (uint32_t)t.values % TEST_OR;
    return {reinterpret_cast<const uint32_t *>(t.values & ~(uint64_t)(TEST_ALIGNMENT - 1)), log_bits,
            ~0u >> (32 - (1u << log_bits))};
}

/* Returns whether the document meets the test, by the word that has its value. */
__device__ __forceinline__ bool meets(const gpu_test &t, const test_column &c, uint32_t word, uint32_t doc)
{
    return (((word >> ((doc << c.log_bits) & 31)) - t.low) & c.mask) <= t.span;
}

/* Returns whether the query may return the document, which is below n_docs. */
__device__ __forceinline__ bool is_selected(const gpu_query &Q, const gpu_term *terms, uint32_t doc)
{
    bool selected = !(Q.flags & QUERY_MASKED) || is_allowed(Q.mask, doc), met = false;
    for (uint32_t i = 0; i < count_tests(Q.flags) && selected; ++i) {
        const gpu_test t = read(query_tests(terms, Q.n_terms) + i);
        const test_column c = column_of(t);
        met = met || meets(t, c, __ldg(c.words + (doc >> (5 - c.log_bits))), doc);
        if (!(t.values & TEST_OR)) {
            selected = met;
            met = false;
        }
    }
    return selected;
}

} // namespace gx

#endif
