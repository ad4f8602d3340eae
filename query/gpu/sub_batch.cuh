/* sub_batch.cuh: queries on their way through the GPU together: how they are described to it, and
 * how their answers are taken back. batch.cuh and small_batch.cuh send them.
 */
#ifndef GX_QUERY_GPU_SUB_BATCH_CUH
#define GX_QUERY_GPU_SUB_BATCH_CUH

#include "query/gpu/state.cuh"

namespace gx {

constexpr uint32_t MAX_QUERIES = 4096, MAX_TERMS = 1u << 18; /* of a sub-batch */
constexpr uint64_t MAX_ANSWERS = 1u << 20; /* keys that come to pinned memory; more are copied one by one */
constexpr uint32_t MAX_BOUNDS = 16;        /* sets of bounds in use at a time */

/* A query to be answered. */
struct request {
    uint32_t plan; /* number of the plan */
    gx_op op;
    /* What an earlier search for it tells, of which too many documents were accepted; or 0. No more
     * are accepted of those that reach the threshold at which it ended. */
    uint32_t candidates, threshold;
};

/* Where a job's queries are in its sub-batch. */
struct described_request {
    request of;
    uint32_t first, second; /* of AND-then-OR: AND, OR; else second is NO_QUERY */
};

/* Bytes of a session's memory, [begin, end). */
struct segment {
    uint64_t begin, end;
};

/* Queries that go to the GPU together. What describes them is made in pinned memory and sent by one
 * copy; each array lies in the sub-batch's segment of the session's pinned or device memory. */
struct sub_batch {
    bool busy;
    segment device, pinned;
    uint32_t n_requests, n_queries, n_first, n_terms, n_ranges, n_items;
    uint32_t items_end[N_LAUNCHES]; /* of each launch */
    uint64_t n_candidates, n_answers;
    bool any_exhaustive, any_select;
    bool direct;                 /* answers are written to host memory as they are found */
    described_request *requests; /* [MAX_QUERIES] */
    /* Pinned, the first three one behind the other: */
    gpu_query *queries;
    gpu_term *terms;
    item_range *ranges;
    gpu_query_state *results;   /* written by the device */
    uint64_t *answers;          /* written by the device, if direct; NULL: they are more than MAX_ANSWERS */
    unsigned long long *counts; /* [N_COUNTS] */
    /* On the device: */
    gpu_query *d_queries;
    gpu_term *d_terms;
    item_range *d_ranges;
    gpu_query_state *d_states;
    uint32_t *d_histograms, *d_next;
    unsigned long long *d_candidates, *d_counts;
    unsigned long long *d_answers; /* where a k is greater than SORTED_K, as is what follows; else NULL */
    char *sort_scratch;
    size_t sort_bytes;
    gpu_item *d_items;
    uint64_t item_room;
    cudaStream_t stream;
    cudaEvent_t events[4]; /* copied in, searched, selected, copied out */
};

/* What a session's searches share, whichever way its queries go. */
struct gpu_session {
    gpu_prepared_index *s;
    gpu_call_counts calls; /* of all runs */
    session_memory memory;
    bool was_last;                   /* before the run under way no other session's came since this one's */
    bool fine;                       /* items of the run under way */
    bounds *bounds_used[MAX_BOUNDS]; /* by the run under way */
    uint32_t n_bounds_used;
    request *retries; /* jobs that are to be run again */
    uint32_t n_retries, max_retries;
};

/* What a run answers. */
struct plan_batch {
    const gx_plan *plans;
    gx_hits *hits;         /* of each plan */
    gx_search_stats *work; /* or NULL */
};

/* ---- descriptions ---- */

/* Most blocks of an item. */
static inline uint32_t max_item_blocks(const gx_index *ix)
{
    const uint32_t n = 4096 / ix->block_len;
    return n < 1 ? 1 : n > MAX_ITEM_BLOCKS ? MAX_ITEM_BLOCKS : n;
}

/* Empty the sub-batch, but for where its arrays are. */
void begin_description(sub_batch *p);

/* Add a query to the sub-batch: the job's plan, as AND (all) or OR. after: see gpu_query.
 * n_essential[*number]: of how many of its lists, in their order, items are made. *number: the
 * query's. */
gx_status add_query(gpu_session *x, sub_batch *p, const gx_plan *plan, const request *rq, bool conjunctive,
                    uint32_t after, uint32_t *n_essential, uint32_t *number, gx_error *err);

/* Add what the plan's lists hold to work, if there is one. */
void add_list_stats(const gpu_session *x, const gx_plan *plan, gx_search_stats *work);

constexpr uint32_t FIRST_ROUND_BLOCKS = MAX_ITEM_BLOCKS; /* of a list, before those of others */
constexpr uint32_t FINE_ITEMS = 3 * FIRST_ROUND_BLOCKS;  /* so many more a list can have where they are fine */

/* A list of which some blocks are yet to become items. */
struct pending_list {
    uint32_t term, n_blocks;
    bool opens_query; /* its query, whose threshold is low; only where items are fine */
};

/* Add the runs that make items of queries [first, first + n), of the long ones or the others: list
 * by list in their order, so that every query's threshold rises early; of a list first 16 blocks,
 * then 48, 192, ... Items are of item_blocks blocks, a power of two. fine: of one where a short
 * query begins, then of a fourth. Its first candidates are looked up one by one; many warps do that
 * and raise its threshold sooner than one, which pays where few queries keep them busy. active,
 * lists: scratch, [n]. */
void describe_items(sub_batch *p, uint32_t first, uint32_t n, bool are_multi_term, const uint32_t *n_essential,
                    uint32_t item_blocks, bool fine, uint32_t *active, pending_list *lists);

/* Room for the candidates of a query of k results, in a large collection. A query that overflows
 * its room is run again. An AND-then-OR query needs room twice; with a little less for each, a
 * batch of 1,024 such queries fits into a session's memory as one sub-batch. On an H200, 25.2 M
 * documents, top 10, eight sessions: 787,000 queries/s with 3,072, 689,000 with 4,096, 767,000 with
 * 2,048. */
constexpr uint64_t max_candidates(uint64_t k, bool and_then_or)
{
    return (and_then_or ? 3072 : 4096) + 3 * k;
}

/* What jobs take of a sub-batch, at most; items: of as many blocks as can be. */
struct request_footprint {
    uint64_t queries, terms, ranges, items, candidates, answers;
};
request_footprint count_request(const gx_index *ix, const gx_plan *plan, const request *rq, bool fine);

/* ---- answers ---- */

/* A job to those that are to be run again. */
gx_status push_retry(gpu_session *x, request j, gx_error *err);

/* The answer of query q of the sub-batch to hits, or the query to those to be run again. */
gx_status collect_query(gpu_session *x, sub_batch *p, const described_request *dr, uint32_t q, gx_op op, gx_hits *hits,
                        gx_error *err);

} // namespace gx

#endif
