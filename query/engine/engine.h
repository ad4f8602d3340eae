/* engine.h: an engine: an index, the executor that answers, and what its sessions share. Its members
 * are read by engine.c, list_sizes.c, mask.c and the files of sessions (session_state.h) alone. */
#ifndef GX_QUERY_ENGINE_ENGINE_H
#define GX_QUERY_ENGINE_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/sized.h"
#include "query/engine/collection.h"
#include "query/engine/filter_cache.h"
#include "query/engine/result_cache.h"
#include "query/exec/exec.h"
#include "query/exec/pairs.h"
#include "query/exec/spare_workspaces.h"
#include "query/filter/mask.h"

#define GX_MAX_PAIR_TABLES 64u /* tables of pair thresholds: a scorer, k1, b and k each */

/* The size of the first version of gx_query_options. */
#define GX_QUERY_OPTIONS_LEAST GX_SIZE_THROUGH(gx_query_options, mask)

struct gx_engine {
    const gx_index *ix;
    atomic_uint n_more;     /* holders but one; gx_engine_share */
    gx_part_engines *parts; /* of a collection: the engines of its parts; state is NULL then */
    const gx_executor *gpu; /* what gx_engine_reopen opens with */
    gx_engine_options opt;
    const gx_executor *ops;
    void *state;
    gx_pair_thresholds *pairs[GX_MAX_PAIR_TABLES]; /* [n_pairs], by the order in which they were made */
    uint32_t n_pairs;                              /* atomic; what it counts stays until the engine is closed */
    gx_result_cache *cache;                        /* NULL: none */
    pthread_mutex_t pairs_lock;                    /* held while pairs are made */
    gx_filter_cache *filters;
    gx_spare_workspaces *spares; /* of a part of a collection; NULL: its sessions' workspaces are not kept */
    pthread_mutex_t lock;        /* of what follows */
    void *cpu_prepared_index;    /* the CPU engine that stands in when a GPU chosen by AUTO fails; NULL until then */
    gx_error fallback;           /* why it does; GX_OK: it does not */
};

/* Whether a CPU makes good the failure st of the engine's executor: it is a GPU's, and the caller
 * left the choice of the engine to gpuidx. */
bool gx_engine_can_fall_back(const gx_engine *en, gx_status st);

/* Make the index ready for the CPU engine, which stands in for a GPU that failed for the reason in
 * `gpu`. Does nothing where that is done. Thread-safe. */
gx_status gx_engine_fall_back(gx_engine *en, const gx_error *gpu, gx_error *err);

/* The engines that search: those of a collection's parts, or the engine itself; from 0 until NULL. */
gx_engine *gx_engine_of_part(gx_engine *en, uint32_t i);

/* How many those are. */
uint32_t gx_engine_n_searched(const gx_engine *en);

/* Choose which lists lie in device memory by counts[n_terms] of their uses (gx_executor.warm). en has
 * no parts. Does nothing where all lists are in the memory that the engine searches. */
gx_status gx_engine_warm_lists(gx_engine *en, const uint32_t *counts, gx_error *err);

/* Bytes of the plan's lists, of all parts, that are not in the memory that the engine searches (residency.h): a
 * feature of the cost model. 0 where all lists are. Thread-safe, without a lock. */
uint64_t gx_engine_missing_bytes(const gx_engine *en, const gx_plan *plan);

/* GX_EUSAGE if the mask (NULL: none) is another engine's. A mask is read by docid: another engine's
 * may be of another index, or on another GPU. */
gx_status gx_engine_check_mask(const gx_engine *en, const gx_mask *mask, gx_error *err);

#endif
