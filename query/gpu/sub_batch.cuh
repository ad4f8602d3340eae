/* sub_batch.cuh: a part of a batch on its way through the GPU: its queries described in pinned
 * memory, and the device memory that they are answered in.
 */
#ifndef GX_QUERY_GPU_SUB_BATCH_CUH
#define GX_QUERY_GPU_SUB_BATCH_CUH

#include "query/gpu/state.cuh"

namespace gx {

constexpr uint32_t MAX_QUERIES = 4096, MAX_TERMS = 1u << 16, MAX_RUNS = 1u << 18; /* of a part */
constexpr uint64_t MAX_ANSWERS = 1u << 20;
constexpr size_t DESCRIBED_BYTES =
    MAX_QUERIES * sizeof(gpu_query) + MAX_TERMS * sizeof(gpu_term) + MAX_RUNS * sizeof(gpu_run);

/* A query to be answered. */
struct job {
    uint32_t plan; /* number of the plan */
    gx_op op;
    bool roomy;         /* room for every document: it overflowed before */
    uint32_t threshold; /* that it reached then */
};

/* Where a job's queries are in its part. */
struct placed {
    job j;
    uint32_t first, second; /* of AND-then-OR: AND, OR; else second is NO_QUERY */
};

struct part {
    bool busy;
    uint32_t n_jobs, n_queries, n_first, n_terms, n_runs, n_items;
    uint32_t items_end[N_LAUNCHES]; /* of each launch */
    uint64_t n_candidates, n_answers;
    bool any_exhaustive, any_select;
    bool direct;     /* answers are written to host memory as they are found */
    placed *jobs;    /* [MAX_QUERIES] */
    char *described; /* pinned, [DESCRIBED_BYTES]: what follows, so that one copy sends it */
    gpu_query *queries;
    gpu_term *terms;
    gpu_run *runs;
    gpu_query_state *results;   /* pinned, [MAX_QUERIES]; written by the device */
    uint64_t *answers;          /* pinned, [MAX_ANSWERS]; written by the device, if direct */
    unsigned long long *counts; /* pinned, [N_COUNTS] */
    char *d_described;
    gpu_item *d_items;
    gpu_query_state *d_states;
    uint32_t *d_histograms, *d_next;
    unsigned long long *d_candidates, *d_answers, *d_counts;
    void *sort_scratch; /* for k > SORTED_K */
    size_t sort_bytes;
    cudaStream_t stream;
    cudaEvent_t events[4]; /* copied in, searched, selected, copied out */
};

/* Blocks of a list; all codecs' blocks are powers of two long, so that it is not divided. */
static inline uint32_t count_blocks(const gx_index *ix, uint32_t df)
{
    const uint32_t len = ix->block_len;
    return (len & (len - 1) ? (df - 1) / len : (df - 1) >> __builtin_ctz(len)) + 1;
}

/* Most blocks of an item. */
static inline uint32_t most_item_blocks(const gx_index *ix)
{
    const uint32_t n = 4096 / ix->block_len;
    return n < 1 ? 1 : n > MAX_ITEM_BLOCKS ? MAX_ITEM_BLOCKS : n;
}

/* Add a query to the part: the job's plan, as AND (all) or OR. after: see gpu_query. *drivers: of
 * how many of its lists, in their order, items are made. b: NULL where the plan is not pruned. */
void describe_query(const gpu_state *s, part *p, const gx_plan *plan, const bounds *b, const job *j, bool all,
                    uint32_t after, uint32_t *drivers);

constexpr uint32_t FIRST_BLOCKS = MAX_ITEM_BLOCKS; /* of a list, before those of others */
constexpr uint32_t FINE_ITEMS = 3 * FIRST_BLOCKS;  /* so many more a list can have where they are fine */

/* A list of which some blocks are yet to become items. */
struct unmade {
    uint32_t term, n_blocks;
    bool begins; /* its query, whose threshold is low; only where items are fine */
};

/* Add the runs that make items of queries [first, first + n), of the long ones or the others: list
 * by list in their order, so that every query's threshold rises early; of a list first 16 blocks,
 * then 48, 192, ... Items are of item_blocks blocks, a power of two. fine: of one where a short
 * query begins, then of a fourth. Its first candidates are looked up one by one; many warps do that
 * and raise its threshold sooner than one, which pays where few queries keep them busy. active,
 * lists: scratch, [n]. */
void describe_items(part *p, uint32_t first, uint32_t n, bool are_long, const uint32_t *drivers, uint32_t item_blocks,
                    bool fine, uint32_t *active, unmade *lists);

/* What a job takes of a part, at most. */
struct need {
    uint64_t queries, terms, runs, items, candidates, answers;
};
need job_need(const gx_index *ix, const gx_plan *plan, const job *j, bool fine);

} // namespace gx

#endif
