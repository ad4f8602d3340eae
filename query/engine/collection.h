/* collection.h: searching a collection: an engine, a session, a mask and a plan of each part,
 * behind one of each of the whole. part_state.h says which file does what.
 *
 *   query --statistics of the live documents--> gx_query_plan --bound to each part--> gx_part_plans
 *   part 0 -> its k best -> threshold -> part 1 -> merged -> threshold -> part 2 -> ... -> the k
 *   best
 *
 * The parts are searched in their order. So a document of a later part that only ties with the k-th
 * best so far is not among the k best: its docid is greater. The threshold that goes to the next
 * part is therefore the k-th best score plus 1. Where parts are spread over GPUs, each session begins
 * at another part, so that sessions do not all wait for one GPU; an earlier part gets the k-th best
 * score itself.
 */
#ifndef GX_QUERY_ENGINE_COLLECTION_H
#define GX_QUERY_ENGINE_COLLECTION_H

#include "index/read/collection.h"
#include "query/engine/joined_parts.h"
#include "query/engine/session.h"
#include "query/exec/exec.h"
#include "query/exec/spare_workspaces.h"
#include "query/exec/wide_hits.h"
#include "query/plan/boolean.h"
#include "query/plan/part_plans.h"
#include "query/plan/text_terms.h"

/* Each part's engine, which the engines of several commits share,
 * and its live documents as a mask. */
typedef struct gx_part_engines {
    uint32_t n;
    gx_part_range range;     /* the parts that are searched; the others have no engines and masks */
    const gx_shard *shard;   /* NULL: all parts are searched here */
    const gx_index *ix;      /* of the collection, or of `joined` */
    gx_joined_parts *joined; /* what the parts of ix are, or NULL: those of the collection */
    gx_engine **engines;     /* [n] */
    gx_mask **live;          /* [n], NULL where all documents of the part are live */
    bool single; /* there is one part, all live: plans of terms are that part's own, without gx_part_plans */
    gx_spare_workspaces *spares; /* of the engines' sessions, shared with those of other commits; may be NULL */
    char *description;           /* of GPUs over which the parts are spread; NULL: that of any part's engine */
    uint32_t n_opened;           /* sessions so far; atomic */
} gx_part_engines;

/* Open an engine on each part; those of parts that `old` has are shared (NULL: none). With
 * GX_ENGINE_AUTO all are on GPUs or all on the CPU. Memory that opt limits is divided by the
 * parts' bytes. A filter of the collection is not one of joined parts: it comes to them as a
 * mask. */
gx_status gx_part_engines_open(gx_part_engines **out, const gx_index *ix, const gx_engine_options *opt,
                               const gx_executor *gpu, const gx_part_engines *old, gx_error *err);
void gx_part_engines_close(gx_part_engines *e); /* accepts NULL */

/* A mask of the collection, [ceil(n_docs / 64)] words, as one mask for each part, [n] of them. */
gx_status gx_part_masks_open(gx_mask ***out, const gx_part_engines *e, const uint64_t *words, gx_error *err);
/* The same documents on the engines of another engine of the collection. */
gx_status gx_part_masks_copy(gx_mask ***out, const gx_part_engines *e, gx_mask *const *masks, gx_error *err);
/* The documents of both masks. */
gx_status gx_part_masks_both(gx_mask ***out, const gx_part_engines *e, gx_mask *const *a, gx_mask *const *b,
                             gx_error *err);
void gx_part_masks_close(gx_mask **masks, uint32_t n); /* accepts NULL */

/* The plan of a query, which has parts unless it is one of e->single or a text on one part; of a boolean
 * query that needs it the masks of what matches among the documents of `mask` (NULL: all); *matches is NULL
 * where no mask is needed. whole: the collection, of which filters are. Statuses of gx_engine_plan. */
gx_status gx_part_plan(gx_plan *out, gx_mask ***matches, const gx_part_engines *e, const gx_index *whole,
                       const gx_query *q, const gx_query_options *opt, gx_error *err);

typedef struct gx_part_sessions gx_part_sessions; /* of one thread */
gx_status gx_part_sessions_open(gx_part_sessions **out, gx_part_engines *e, gx_error *err);
void gx_part_sessions_close(gx_part_sessions *s); /* accepts NULL */
gx_status gx_part_sessions_run(gx_part_sessions *s, const gx_plan *plans, uint32_t n, gx_hits *hits, gx_error *err);
/* How many documents match; words [ceil(n_docs / 64)], unless NULL, become their bits. */
gx_status gx_part_sessions_match(gx_part_sessions *s, const gx_plan *plan, uint64_t *words, uint64_t *n, gx_error *err);
/* What the searches of all parts did. */
void gx_part_sessions_stats(const gx_part_sessions *s, gx_search_stats *out);
/* Of the candidates of a first pass (approximate.h) the plan's k best, by the scores of all its terms; `rest` has those
 * that the first pass left out. GX_ENOMEM. */
gx_status gx_part_sessions_choose_best(gx_part_sessions *s, const gx_plan *plan, const gx_plan *rest,
                                       const gx_hits *candidates, gx_hits *hits, gx_error *err);
/* Add to the scores of documents of the collection, which come by rising docid, what the plan's terms add. */
gx_status gx_part_sessions_add_scores(gx_part_sessions *s, const gx_plan *plan, gx_candidate *documents, uint32_t n,
                                      gx_error *err);
void gx_part_sessions_memory(const gx_part_sessions *s, gx_session_memory *out);

#endif
