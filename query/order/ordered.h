/* ordered.h: the first k documents that match a plan in an order by attributes; then by score, then by docid.
 *
 *   ordered.c    of each file of the index, one after another, its first k; then the first k of these
 *   walk.c       in a file: reads the documents in the order of the first attribute, and tests whether they match,
 *                where that takes fewer steps than finding all matches
 *   choose.c     in a file: of documents, the first k
 *
 * All of it runs on the CPU, whatever the session's engine is.
 */
#ifndef GX_QUERY_ORDER_ORDERED_H
#define GX_QUERY_ORDER_ORDERED_H

#include "index/parts.h"
#include "query/engine/session_state.h"
#include "query/order/sort.h"
#include "query/plan/prior.h"

/* A place in the order: documents that come behind it are looked for. */
typedef struct gx_position {
    gx_sort_value values[GX_MAX_SORT_KEYS];
    double score;
    uint64_t docid; /* the first document that is behind it of those with these values and this score */
} gx_position;

/* The first k documents of the plan, behind `after` (NULL: all), in hits, which has room for k, with their scores
 * by the query alone; the prior counts in the order. sort->n >= 1. Statuses of gx_search. */
gx_status gx_session_run_ordered(gx_session *s, const gx_plan *plan, const gx_sort *sort,
                                 const gx_document_prior *prior, const gx_position *after, uint32_t k, gx_hits *hits,
                                 gx_error *err);

/* ---- between the files ---- */

/* A document that may be among the first k. */
typedef struct gx_ordered_hit {
    uint64_t docid; /* of the collection */
    uint32_t file, local;
    uint32_t own; /* its score without the prior */
    uint64_t score;
    gx_sort_value values[GX_MAX_SORT_KEYS]; /* set when the files are merged */
} gx_ordered_hit;

typedef struct gx_keyed {
    uint64_t key;
    uint32_t docid;
} gx_keyed;

typedef struct gx_ordering {
    gx_session *s;
    const gx_plan *plan;
    const gx_sort *sort;
    const gx_document_prior *prior;
    const gx_position *after;
    uint32_t k;
    bool scored;             /* documents may have different scores */
    bool counted;            /* the first attribute's use in the file has been counted */
    uint64_t *words, *local; /* all matches, and those of one file; NULL until needed */
    uint64_t n_matches;      /* of words */
    gx_ordered_hit *hits;    /* [n] */
    size_t n, max;
    uint32_t *docids; /* [max_docids] scratch */
    uint64_t *scores; /* [max_scores] scratch */
    size_t max_docids, max_scores;
    gx_candidate *candidates; /* [max_candidates] scratch */
    size_t max_candidates;
    gx_error *err;
} gx_ordering;

/* One file of the index. */
typedef struct gx_ordered_file {
    const gx_index *ix;
    const gx_part *part; /* NULL: the index is this file */
    uint32_t number;
} gx_ordered_file;

/* Which documents match: those of words, or, where that is NULL, those that these tests leave. */
typedef struct gx_matcher {
    const uint64_t *words;
    const uint32_t *bits[GX_MAX_TERMS]; /* [n_bits] of each list a bit a document */
    uint32_t n_bits;
    bool every; /* documents of no list match, too */
    bool all;   /* those match that all lists have; else those of any */
    const gx_mask *mask;
    const gx_filter *filter; /* beside words, what they have met */
    double share;            /* about how many of the documents match */
} gx_matcher;

/* Keep those of docids[n], n <= 64, that match, in their order. Returns how many. */
uint32_t gx_matcher_keep(const gx_matcher *m, uint32_t *docids, uint32_t n);

/* Find the first `wanted` documents by the order of the first level's attribute, of those that have a value. *done is
 * false where it would take too many steps, or there are fewer; nothing is found then. GX_ENOMEM. */
gx_status gx_ordered_walk(gx_ordering *o, const gx_ordered_file *f, const gx_matcher *m, bool *done);

/* Of documents of the file the first `wanted` at the levels from `level` on, which are added to o->hits; *n_taken how
 * many these are. docids [n], which are overwritten, are equal at the levels before. behind: leave out those that are
 * not behind o->after. */
gx_status gx_ordered_choose(gx_ordering *o, const gx_ordered_file *f, uint32_t *docids, size_t n, uint32_t level,
                            bool behind, uint32_t wanted, uint32_t *n_taken);

/* Of the matches of words [ceil(n_docs / 64)] the first o->k. */
gx_status gx_ordered_scan(gx_ordering *o, const gx_ordered_file *f, const uint64_t *words);

/* Reorder keyed[n] so that the first k, k >= 1, are those that come first by key, then by docid, in any order. */
void gx_keyed_select(gx_keyed *keyed, size_t n, size_t k);

/* Scores, with the prior, of docids[n] of a file, which rise, to o->scores. */
gx_status gx_ordered_score(gx_ordering *o, const gx_ordered_file *f, const uint32_t *docids, size_t n);

static inline uint64_t gx_ordered_docid(const gx_ordered_file *f, uint32_t local)
{
    return f->part ? f->part->base + gx_deletes_rank(f->part->deletes, local) : local;
}

#endif
