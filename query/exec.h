/* exec.h: the seam between the engines. Each has a table of the same functions; session.c
 * chooses one, and nothing above asks which. A state is an index made ready for an engine
 * (uploaded; bounds and maps derived), shared by threads; a workspace is one thread's scratch
 * memory on it.
 */
#ifndef GX_QUERY_EXEC_H
#define GX_QUERY_EXEC_H

#include "index/index.h"
#include "query/plan.h"

/* The answer to one plan: keys (gx_key) falling, n <= plan.k of them. */
typedef struct gx_hits {
    uint64_t *keys; /* [plan.k], the caller's */
    uint32_t n;
} gx_hits;

/* The steps of Ding et al.'s algorithms. */
typedef enum gx_step {
    GX_STEP_INITIALIZE,
    GX_STEP_DECOMPRESS,
    GX_STEP_INTERSECT,
    GX_STEP_SCORE,
    GX_STEP_TOP_K,
    GX_N_STEPS
} gx_step;

/* What a run did, added to by each run; for reports. All counts, summed over its queries. */
typedef struct gx_search_stats {
    uint64_t postings; /* sum of the plans' dfs: what an exhaustive engine touches */
    uint64_t blocks;   /* sum of the plans' blocks */
    /* of which docids were decoded (0 where an engine does not count, as a GPU for a few queries)
     * */
    uint64_t blocks_decoded;
    uint64_t lookups;        /* exact look-ups of a docid in a list */
    uint64_t and_fell_to_or; /* AND-then-OR queries that needed OR */
    /* Of a GPU: parts that batches went in, each sent, searched and brought back by itself; how
     * often the host waited for the GPU, which is once a part, for its end, and no more where
     * nothing is in the way; and device or pinned memory got or given back meanwhile. */
    uint64_t parts, waits, allocations;
    uint64_t linger_hits; /* single queries answered by a kernel that lingered after the query before */
    /* 0 plan and copy in, 1 search, 2 select, 3 copy out; 0 where not measured, as for a few
     * queries on a GPU. Parts of a batch overlap there, so these can add up to more than the time
     * that passed. */
    double seconds[4];
    double steps[GX_N_STEPS]; /* seconds of each; a search by GX_ALGORITHM_AUTO has no such steps where it prunes */
} gx_search_stats;

typedef struct gx_executor {
    const char *name; /* "cpu", "gpu" */
    gx_status (*state_open)(void **state, const gx_index *ix, const gx_engine_options *opt, gx_error *err);
    void (*release_index)(void *state);
    const char *(*describe)(const void *state);
    gx_status (*workspace_open)(void **exec, void *state, gx_error *err);
    void (*workspace_close)(void *exec);
    /* Run n plans, any mixture of operators and k. hits[i] answers plans[i]. work may be NULL. */
    gx_status (*run)(void *exec, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_search_stats *work, gx_error *err);
    /* Copy a mask's words (mask.h) to where the engine reads them. Both are NULL for an engine that
     * reads them in host memory. No search under way uses a mask that is closed. Thread-safe. */
    gx_status (*mask_open)(void **mask, void *state, const uint32_t *words, gx_error *err);
    void (*mask_close)(void *state, void *mask);
    /* Bytes of device memory, and of host memory pinned for it, that the exec holds. NULL: none. */
    void (*memory)(const void *exec, uint64_t *device, uint64_t *pinned);
} gx_executor;

extern const gx_executor gx_executor_cpu;
extern const gx_executor gx_executor_cuda; /* where built with CUDA (GX_CUDA) */

/* Every executor of this build, the CPU's first; ends at NULL. */
extern const gx_executor *const gx_executors[];

#endif
