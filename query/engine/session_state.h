/* session_state.h: what the files of sessions share: a session's state, and how its batches are run.
 *
 *   gx_search                  search.c           plans queries, and writes answers as docids and scores
 *   gx_session_run             session_run.c      finds answers in the cache of results
 *   gx_session_run_any         session_passes.c   runs an approximate plan in two passes
 *   gx_session_run_exact       session_filters.c  gives plans masks in the place of filters
 *   gx_session_run_phrases     session_phrases.c  finds what phrases match
 *   gx_session_run_best_field  session_passes.c   finds the k best of each field, and of these the k best
 *   gx_session_run_unfiltered  session_run.c      calls the executor, the parts of a collection, or the CPU
 *
 * Each of these calls the next one. session.c opens sessions; session_run.c also finds and counts all documents that
 * match a plan.
 */
#ifndef GX_QUERY_ENGINE_SESSION_STATE_H
#define GX_QUERY_ENGINE_SESSION_STATE_H

#include "query/engine/collection.h"
#include "query/engine/engine.h"
#include "query/engine/session.h"
#include "query/exec/batch_buffer.h"
#include "query/facet/count.h"

struct gx_session {
    gx_engine *en;
    gx_part_sessions *parts; /* of a collection; what follows up to work is NULL then */
    void *exec;              /* of en->ops; NULL once the GPU has failed */
    void *cpu_workspace;     /* stands in for it, or NULL */
    gx_counter *counter;
    gx_facet_engine facet_engine;
    uint64_t n_counted; /* queries whose matches the engine itself has counted */
    gx_search_stats work;
    uint64_t fell_when_planned; /* of work.and_fell_to_or, of a collection */
    gx_batch_buffer batch;      /* of a search */
    gx_batch_buffer missed;     /* the plans of a batch whose answers are not in the cache; has no keys of its own */
    uint32_t *missed_at;        /* [max_missed_at] their places in the batch */
    size_t max_missed_at;
    gx_batch_buffer passes;     /* first passes of a batch */
    uint64_t *candidates;       /* [max_candidates] of one plan: docid << 32 | score */
    uint32_t *candidate_docids; /* [max_candidates], */
    uint32_t *candidate_scores; /* and their scores */
    size_t max_candidates;
};

/* Batches are cut so that a part has no more keys than this, or one query. */
#define GX_SLICE_KEYS ((size_t)4 << 20)

/* Give the session a CPU executor in place of a GPU that failed for the reason in gpu. */
gx_status gx_session_fall_back(gx_session *s, const gx_error *gpu, gx_error *err);

/* Run plans that are good for this session on its engine, or on the CPU that stands in for it. A
 * GPU gets masks in the place of filters that it does not take. */
gx_status gx_session_run_unfiltered(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err);

/* As gx_session_run_unfiltered, for plans with filters too. */
gx_status gx_session_run_exact(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err);

/* As gx_session_run_exact, of a file: plans with phrases and others. */
gx_status gx_session_run_phrases(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err);

/* As gx_session_run_exact, of a file whose documents score as their best field. */
gx_status gx_session_run_best_field(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err);

/* As gx_session_run_exact, for plans that need not be answered exactly too. */
gx_status gx_session_run_any(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err);

#endif
