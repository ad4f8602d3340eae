/* exec.h: the seam between the engines. Each has a table of the same functions; a session
 * calls one, and nothing above asks which. A state is an index made ready for an engine
 * (uploaded; bounds and maps derived), shared by threads; a workspace is one thread's scratch
 * memory on it.
 */
#ifndef GX_QUERY_EXEC_EXEC_H
#define GX_QUERY_EXEC_EXEC_H

#include "engine/api/gpuidx_advanced.h" /* gx_search_stats */
#include "index/index.h"
#include "query/facet/facet_ordinals.h"
#include "query/plan/plan.h"

/* The answer to one plan: keys (gx_key) falling, n <= plan.k of them. Of a wide collection (index/index.h) a docid
 * is highs[i] << 32 | gx_key_docid(keys[i]), and equal scores come by rising docid; wide_hits.h has more. */
typedef struct gx_hits {
    uint64_t *keys; /* [plan.k], the caller's */
    uint32_t n;
    uint32_t *highs; /* [plan.k], the caller's; NULL: docids take 32 bits */
} gx_hits;

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
    /* Add to scores[n] what rest's terms add to them in docids[n], which rise. NULL: gx_add_scores
     * does it (approximate.h). */
    void (*add_scores)(void *exec, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n);
    /* Whether `run` answers a plan with this filter and algorithm; it needs no mask then. Once true, it stays
     * true. NULL: an engine that reads masks alone, or the CPU engine, which takes every filter. Thread-safe. */
    bool (*takes_filter)(void *state, const gx_plan *plan);
    /* Choose which lists lie in device memory by how often each is used, counts[n_terms]
     * (residency.h). Thread-safe. NULL: all lists are in the memory that the engine searches. */
    gx_status (*warm)(void *state, const uint32_t *counts, gx_error *err);
    /* The plan will be run soon: ask for the cache lines that tell where its lists are; with `known`, which comes
     * when those are there, for the first lines of the lists. NULL: nothing is to be gained. */
    void (*expect)(void *exec, const gx_plan *plan, bool known);
    /* Bytes of the plan's lists that are not in device memory now, without those of its parts. NULL: always 0.
     * Thread-safe, without a lock. */
    uint64_t (*missing_bytes)(const void *state, const gx_plan *plan);
    /* The ordinals by which count_matches counts a facet of the column, which the state keeps; *out is NULL where
     * it cannot. Made at the first call. NULL, as count_matches: the engine does not count. GX_ENOMEM. */
    gx_status (*facet_ordinals)(void *exec, uint32_t column, const gx_facet *facet, const gx_facet_ordinals **out,
                                gx_error *err);
    /* Count all documents that match each of n plans, whose filters the engine takes, and of them those that have
     * each of n_facets ordinals. *counted is false where there is too little memory, or a mask is not where the
     * engine reads it; counts[n] are of no meaning then. GX_ENOMEM, GX_ECUDA, GX_ECANCELLED. */
    gx_status (*count_matches)(void *exec, const gx_plan *plans, uint32_t n, const gx_facet_ordinals *const *facets,
                               uint32_t n_facets, gx_match_counts *counts, bool *counted, gx_error *err);
    /* Part an idle workspace from its state, which may be released then: only attach and workspace_close may follow.
     * false: it can only be closed, which is still the caller's to do. NULL: no workspace can be parted. */
    bool (*workspace_detach)(void *exec);
    /* Make such a workspace one of another state on the same GPU. Any status but GX_OK: it can only be closed. */
    gx_status (*workspace_attach)(void *exec, void *state, gx_error *err);
    /* The documents that a list has, of those that the masks of all plans allow: a bit a document, which stays as long
     * as the state. NULL: the engine has none; the function NULL: of no list. */
    const uint32_t *(*list_bits)(void *exec, uint32_t list);
    /* Whether `run` answers batches of plans with programs (query/plan/phrase_program.h), all of a batch with one. The
     * first call prepares that. It fails with GX_ECORRUPT where positions are damaged, or too many for the engine.
     * NULL: it answers none. Thread-safe. */
    bool (*takes_programs)(void *state);
} gx_executor;

extern const gx_executor gx_executor_cpu;
/* Of a state of the CPU's: documents that the masks of all plans leave out (cpu/lists.h): keep the others, before the
 * first workspace is opened; whether all documents of words (NULL: of the index) are kept. */
void gx_cpu_state_keep(void *state, const uint64_t *words);
bool gx_cpu_state_has_kept(const void *state, const uint64_t *words);
extern const gx_executor gx_executor_cuda; /* where built with CUDA (GX_CUDA) */

/* Several GPUs, each of which has the index whole: opened by gx_replicas_open, on opt->n_devices > 1
 * GPUs that differ, whose executor is ops. Its state_open is NULL. */
extern const gx_executor gx_executor_replicas;
gx_status gx_replicas_open(void **state, const gx_executor *ops, const gx_index *ix, const gx_engine_options *opt,
                           gx_error *err);

/* Add what one search did to the sum. */
static inline void gx_search_stats_add(gx_search_stats *sum, const gx_search_stats *x)
{
    sum->postings += x->postings;
    sum->blocks += x->blocks;
    sum->blocks_decoded += x->blocks_decoded;
    sum->lookups += x->lookups;
    sum->and_fell_to_or += x->and_fell_to_or;
    sum->parts += x->parts;
    sum->waits += x->waits;
    sum->allocations += x->allocations;
    sum->cached += x->cached;
    sum->linger_hits += x->linger_hits;
    for (int i = 0; i < GX_N_SEARCH_STAGES; ++i)
        sum->seconds[i] += x->seconds[i];
    for (int i = 0; i < GX_N_STEPS; ++i)
        sum->steps[i] += x->steps[i];
    sum->driven += x->driven;
    sum->binned += x->binned;
    sum->masked += x->masked;
    sum->tested += x->tested;
    sum->lists += x->lists;
    sum->resident_lists += x->resident_lists;
    sum->list_bytes += x->list_bytes;
    sum->resident_bytes += x->resident_bytes;
    sum->resident_queries += x->resident_queries;
}

/* Every executor of this build, the CPU's first; ends at NULL. Without gx_executor_replicas. */
extern const gx_executor *const gx_executors[];

#endif
