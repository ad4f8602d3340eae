/* session.h: what the tools and tests see of engines and sessions beyond gpuidx.h. */
#ifndef GX_QUERY_ENGINE_SESSION_H
#define GX_QUERY_ENGINE_SESSION_H

#include "query/exec/exec.h"

/* gx_engine_open with gpu in the GPU executor's place, NULL: none; for tests. */
gx_status gx_engine_open_with(gx_engine **out, const gx_index *ix, const gx_engine_options *opt, const gx_executor *gpu,
                              gx_error *err);

/* Set the plan's floor by all that the engine has learnt of pairs. Every plan that is to be run on
 * it goes through this. */
void gx_engine_apply_known_threshold(const gx_engine *en, gx_plan *plan);

/* The plan of a query on the engine, thresholds of pairs included. opt is full-sized and checked.
 * GX_EUSAGE (the query), GX_ENOMEM, GX_ECUDA: nothing is left to free. Thread-safe. */
gx_status gx_engine_plan(gx_plan *out, gx_engine *en, const gx_query *q, const gx_query_options *opt, gx_error *err);

/* One holder more, who closes it too. */
gx_engine *gx_engine_share(gx_engine *en);

/* Promise that the mask of every later plan is a subset of words[ceil(n_docs / 64)]. The engine may then drop all other
 * postings; it has no parts and no sessions yet. gx_engine_has_kept: whether the engine has the postings of all these
 * documents (NULL: of all documents). */
void gx_engine_keep(gx_engine *en, const uint64_t *words);
bool gx_engine_has_kept(const gx_engine *en, const uint64_t *words);

struct gx_spare_workspaces; /* spare_workspaces.h */
/* Workspaces of sessions on the engine, which no session is on yet, are kept and taken there. */
void gx_engine_keep_spares(gx_engine *en, struct gx_spare_workspaces *spares);

const gx_index *gx_engine_index(const gx_engine *en);
int gx_engine_device(const gx_engine *en); /* the number of its GPU, or of its first; of no meaning on the CPU */

/* Run plans as gx_search does, falling back to the CPU where that is due. hits[i].keys are the
 * caller's; their docids are those of the index plus plans[i].base. */
gx_status gx_session_run(gx_session *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err);

/* gx_executor.expect of the session's engine. */
void gx_session_expect(const gx_session *s, const gx_plan *plan, bool known);

/* What an engine that counts matches itself (gx_executor.facet_ordinals) counts a facet by; *out is NULL where it
 * cannot count it, or does not count. GX_ENOMEM. */
gx_status gx_session_facet_ordinals(gx_session *s, uint32_t column, const gx_facet *facet,
                                    const gx_facet_ordinals **out, gx_error *err);

/* gx_executor.count_matches of the session's engine, for plans with any filters. facets: of
 * gx_session_facet_ordinals. n >= 1. */
gx_status gx_session_count_matches(gx_session *s, const gx_plan *plans, uint32_t n,
                                   const gx_facet_ordinals *const *facets, uint32_t n_facets, gx_match_counts *counts,
                                   bool *counted, gx_error *err);

/* Who counts facets: tests and measurements choose. */
typedef enum gx_facet_engine { GX_FACETS_AUTO, GX_FACETS_BY_CPU, GX_FACETS_BY_GPU } gx_facet_engine;
void gx_session_set_facet_engine(gx_session *s, gx_facet_engine engine);
gx_facet_engine gx_session_facet_engine(const gx_session *s);
uint64_t gx_session_n_counted(const gx_session *s); /* queries that gx_session_count_matches has counted so far */

/* Plan n queries, some at a time, and call `use` for plans[m] of queries [first, first + m). opt is full-sized.
 * Statuses of gx_search, and those of `use`, after which no more are planned. */
typedef gx_status gx_plans_use(void *user, const gx_plan *plans, uint32_t first, uint32_t m, gx_error *err);
gx_status gx_session_plan(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *opt,
                          gx_plans_use *use, void *user, gx_error *err);

/* The documents that match a plan, as bits in words [ceil(n_docs / 64)], and how many. Statuses of gx_search. */
gx_status gx_session_match(gx_session *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err);
const gx_engine *gx_session_engine(const gx_session *s);
bool gx_engine_is_shard(const gx_engine *en); /* it searches some of the parts */

/* gx_executor.list_bits of the session's engine, which has no parts. */
const uint32_t *gx_session_list_bits(gx_session *s, uint32_t list);
const uint32_t *gx_session_bits(void *session, uint32_t list); /* the same, for a counter */

struct gx_candidate;
/* Add what the plan's terms add to the scores of documents [n] of the index or collection, which come by rising docid.
 * GX_ENOMEM. */
gx_status gx_session_add_scores_of(gx_session *s, const gx_plan *plan, struct gx_candidate *documents, size_t n,
                                   gx_error *err);

/* gx_search of checked queries whose options have a prior (prior.c); opt and out are full-sized. */
gx_status gx_search_by_prior(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *opt,
                             const gx_results *out, gx_error *err);

/* gx_executor.add_scores of the session's engine. */
void gx_session_add_scores(gx_session *s, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n);

#endif
