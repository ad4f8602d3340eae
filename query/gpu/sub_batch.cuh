/* sub_batch.cuh: queries that the GPU searches together: how the host describes them to the
 * kernels and collects their answers. batch.cuh and small_batch.cuh launch the kernels. */
#ifndef GX_QUERY_GPU_SUB_BATCH_CUH
#define GX_QUERY_GPU_SUB_BATCH_CUH

#include "query/gpu/state.cuh"

namespace gx {

constexpr uint32_t MAX_QUERIES = 4096, MAX_TERMS = 1u << 18; /* limits of a sub-batch */
/* keys that fit into pinned memory; the answers of larger sub-batches are copied one by one */
constexpr uint64_t MAX_ANSWERS = 1u << 20;
constexpr uint32_t MAX_BOUNDS = 16; /* sets of bounds that a run uses at a time */

/* A plan that is to be answered, and by which operator. */
struct request {
    uint32_t plan; /* index of the plan */
    gx_op op;
    /* From an earlier search that accepted more documents than it had room for, else 0: how many
     * it accepted, and the threshold at which it ended. A search from that threshold accepts no
     * more. */
    uint32_t candidates, threshold;
    bool tiled;       /* its OR is searched by tiles, as choose_tiles says */
    bool few;         /* the run has so few queries that many of its tiles are searched at the same time */
    uint32_t guesses; /* searches before this one whose likely threshold was too high */
};

/* A request of a sub-batch, and the numbers of its queries. */
struct described_request {
    request of;
    uint32_t first, second; /* AND-then-OR: the AND query and the OR query; else `second` is NO_QUERY */
};

/* A part [begin, end) of a session's memory, in bytes. */
struct segment {
    uint64_t begin, end;
};

/* Queries that the GPU searches together. The host describes them in pinned memory and sends the
 * description by one copy. Each array lies in the sub-batch's segment of the session's pinned or
 * device memory. */
struct sub_batch {
    bool busy;
    segment device, pinned;
    uint32_t n_requests, n_queries, n_first, n_terms, n_program_words, n_ranges, n_items;
    uint32_t items_end[N_LAUNCHES];          /* end of each launch's items */
    bool in_turn;                            /* lists enter the queue in turn (list_queue.cuh), in the only launch */
    uint32_t shared, spread;                 /* see list_queue */
    uint64_t n_later;                        /* the most items of lists but the queries' first ones */
    uint32_t n_tiled, n_first_tiled;         /* queries that are searched by tiles; those without an `after` */
    uint32_t n_documents, n_first_documents; /* queries of which the filter's documents are searched; as above */
    uint32_t document_items[N_DOCUMENT_LAUNCHES];
    uint64_t n_candidates, n_answers;
    bool any_exhaustive, any_select, any_tests;
    bool phrases;                /* the queries are those of programs */
    uint32_t n_early;            /* queries with QUERY_EARLY_MASK */
    bool takes_documents;        /* whether filters' documents can be searched */
    bool direct;                 /* the kernels write the answers to host memory */
    described_request *requests; /* [MAX_QUERIES] */
    /* of each query, the number of its essential lists: those at the front whose postings become
     * items */
    uint32_t n_essential[MAX_QUERIES];
    /* of each query, the documents to which its filter limits it: [first_doc, end_doc); end_doc 0: all */
    uint32_t first_doc[MAX_QUERIES], end_doc[MAX_QUERIES];
    const uint32_t *heads; /* of the index */
    /* Pinned; the first six are contiguous: */
    gpu_query *queries;
    tiled_query *tiled;
    selected_documents *documents;
    gpu_term *terms;
    uint32_t *programs; /* [n_program_words] */
    item_range *ranges;
    gpu_query_state *results;   /* written by the GPU */
    uint64_t *answers;          /* written by the GPU if `direct`; NULL if there are more than MAX_ANSWERS keys */
    unsigned long long *counts; /* [N_COUNTS] */
    /* In device memory: */
    gpu_query *d_queries;
    tiled_query *d_tiled;
    selected_documents *d_documents;
    gpu_term *d_terms;
    uint32_t *d_programs;
    item_range *d_ranges;
    gpu_query_state *d_states;
    uint32_t *d_histograms, *d_next, *d_queue;
    uint2 *d_order; /* of tiles, for the queries of d_tiled */
    uint32_t *d_live;
    unsigned long long *d_candidates, *d_counts;
    unsigned long long *d_answers; /* NULL unless a k is greater than SORTED_K; the same for the sort arrays */
    char *sort_scratch;
    size_t sort_bytes;
    gpu_item *d_items;
    uint64_t item_room;
    cudaStream_t stream;
    cudaEvent_t events[4]; /* copied in, searched, selected, copied out */
};

/* What the searches of a session share. */
struct gpu_session {
    gpu_prepared_index *s;
    gpu_call_counts calls; /* counted over all runs */
    session_memory memory;
    bool was_last;                          /* no other session has started a batch since this session's last one */
    bool fine;                              /* whether the current run has fine items (describe_items) */
    bool alone;                             /* whether no other session searched when the current run began */
    bool retries_run;                       /* whether the current run is of retries */
    bounds *bounds_used[MAX_BOUNDS];        /* sets of bounds that the current run uses */
    uint32_t n_bounds_used, n_tiled_bounds; /* the first ones are of queries that are searched by tiles */
    request *retries;                       /* requests that are to be run again */
    uint32_t n_retries, max_retries;
};

/* The plans of a run, and where the run puts hits and statistics. */
struct plan_batch {
    const gx_plan *plans;
    gx_hits *hits;         /* one for each plan */
    gx_search_stats *work; /* or NULL */
};

/* ---- descriptions ---- */

/* Describes a list of query `query`, without its bounds. */
void describe_term(const gpu_prepared_index *s, const gx_plan_term *t, uint32_t query, gpu_term *out);

/* Whether an OR of the plan, one of n_queries in the run, is searched by tiles: when that is faster than
 * list at a time, or as the plan says. Then all is prepared for it. Called before the run's first
 * description. GX_ENOMEM, GX_ECUDA. */
gx_status choose_tiles(gpu_session *x, const gx_plan *plan, uint32_t n_queries, bool *tiled, gx_error *err);

/* Whether an OR of two and more learned weights, one of n_queries in the run, is likely to be found sooner by
 * tiles; evenness: as in bounds. */
bool tiles_are_faster(const gpu_prepared_index *s, const gx_plan *plan, uint32_t n_queries, float evenness);

/* Returns the most blocks that an item has. */
static inline uint32_t max_item_blocks(const gx_index *ix)
{
    const uint32_t n = 4096 / ix->block_len;
    return n < 1 ? 1 : n > MAX_ITEM_BLOCKS ? MAX_ITEM_BLOCKS : n;
}

/* Empties the sub-batch but keeps its arrays. */
void begin_description(sub_batch *p);

/* A query for a request: its plan, run as AND (conjunctive) or OR. */
struct query_form {
    const gx_plan *plan;
    const request *rq;
    bool conjunctive;
    uint32_t after; /* see gpu_query */
};

/* Adds a query to the sub-batch. Sets *number to the query's number, and p->n_essential of it. */
gx_status add_query(gpu_session *x, sub_batch *p, const query_form &form, uint32_t *number, gx_error *err);

/* Adds the lengths of the plan's lists to work, unless work is NULL. */
void add_list_stats(const gpu_session *x, const gx_plan *plan, gx_search_stats *work);

/* blocks of a list that become items before other lists' do */
constexpr uint32_t FIRST_ROUND_BLOCKS = MAX_ITEM_BLOCKS;
constexpr uint32_t FINE_ITEMS = 3 * FIRST_ROUND_BLOCKS; /* items that a list can have in addition with fine items */
constexpr uint32_t FEW_ITEMS = 6 * FIRST_ROUND_BLOCKS;  /* and still more where few queries' lists go in turn */
/* where lists go in turn, a list of up to so many blocks may be queued in items of a block each */
constexpr uint32_t SPREAD_BLOCKS = 1024;
static_assert(MAX_TERMS <= ITEM_TERM + 1, "an item has its term's number");

/* A list whose remaining blocks are not yet items. */
struct pending_list {
    uint32_t term, first_block, n_blocks; /* n_blocks from first_block on become items */
    bool opens_query;                     /* with fine items: the query's search begins with this list */
};

/* What describe_items works with, for n queries. */
struct item_scratch {
    uint32_t *active;    /* [n] */
    pending_list *lists; /* [n] */
};

/* Adds the item ranges of queries [first, first + n) that are multi-term, or of those that are
 * not. The ranges go list by list, so that the threshold of every query rises early: first 16
 * blocks of a list, then 48, 192, ... Items have item_blocks blocks, a power of two. With `fine`,
 * items at the beginning of a short query have one block and the following ones a quarter of
 * item_blocks. The first candidates of a query need look-ups, one by one. Many warps raise the
 * threshold sooner than one, which pays if few queries keep the warps busy. With p->in_turn each query has the items of
 * its first list alone; with p->shared those of its third round are half as long. Queries with early masks go in groups
 * with those that have the same masks. */
void describe_items(sub_batch *p, uint32_t first, uint32_t n, bool are_multi_term, uint32_t item_blocks, bool fine,
                    const item_scratch &scratch);

/* Returns the room for candidates of a query with k results, in a large collection. A query that
 * exceeds it is run again. An AND-then-OR query needs the room twice: with 3,072 candidates each,
 * a batch of 1,024 such queries fits into a session's memory as one sub-batch. Measured for
 * AND-then-OR on an H200 with 25.2 M documents, top 10, eight sessions:
 *
 *   room          2,048     3,072     4,096
 *   queries/s   767,000   787,000   689,000 */
constexpr uint64_t max_candidates(uint64_t k, bool and_then_or)
{
    return (and_then_or ? 3072 : 4096) + 3 * k;
}

/* Upper bounds of the array elements that requests take in a sub-batch. items: with the longest
 * items. */
struct request_footprint {
    uint64_t queries, terms, ranges, items, candidates, answers, tiled, documents, program_words;
};
request_footprint count_request(const gx_index *ix, const gx_plan *plan, const request *rq, bool fine);

/* ---- answers ---- */

/* Appends a request to those that are to be run again. */
gx_status push_retry(gpu_session *x, request j, gx_error *err);

/* Copies the answer of query q of the sub-batch to hits, or appends a retry if candidates were
 * lost. */
gx_status collect_query(gpu_session *x, sub_batch *p, const described_request *dr, uint32_t q, gx_op op, gx_hits *hits,
                        gx_error *err);

} // namespace gx

#endif
