/* phrases.h: the phrases of a query and of its plans.
 *
 *   gx_phrase_text    a phrase as the query says it: terms and their offsets
 *   gx_query_phrases  for all indexes of a collection: with weights; equal phrases are one
 *   gx_plan_phrases   for one index: with the lists of the words
 *
 * The weight of a phrase is the sum of its words' idf, each as often as the phrase says it, times k1 + 1 where the
 * preset has it, times what the query gives; of a place with several words, the idf of the greatest df. The weight of a
 * constant group is what the query gives. A phrase with a place whose words no document holds is unknown, as such a
 * word is.
 */
#ifndef GX_QUERY_PLAN_PHRASES_H
#define GX_QUERY_PLAN_PHRASES_H

#include "query/phrase/seek.h"
#include "query/plan/plan.h"

typedef struct gx_phrase_text_word {
    const char *term; /* [len] */
    size_t len;
    uint32_t offset;
    bool other; /* as gx_phrase_word.other */
} gx_phrase_text_word;

typedef struct gx_phrase_text {
    gx_phrase_kind kind;
    uint32_t slop, n;
    const gx_phrase_text_word *words; /* [n]; of NEAR they may be in any order */
    double weight;
} gx_phrase_text;

typedef struct gx_query_phrase_word {
    const char *term; /* [len], in the same piece of memory */
    size_t len;
    uint32_t offset;
    uint32_t number; /* as gx_query_term.number */
    bool other;      /* as gx_phrase_word.other */
    uint64_t df;
} gx_query_phrase_word;

typedef struct gx_query_phrase {
    gx_phrase_kind kind;
    uint32_t slop, n;
    gx_query_phrase_word *words; /* [n] */
    double qtf, idf;             /* the sum of the words' idf; of a constant group 1 */
    float w;
} gx_query_phrase;

/* Shared by the plans of a query. */
struct gx_query_phrases {
    uint32_t n_more; /* holders but one, atomic */
    uint32_t n;
    gx_query_phrase phrases[]; /* [n], known ones, in an order of their own */
};

/* Terms of a plan of one index. */
struct gx_plan_phrases {
    uint32_t n;
    gx_sought_phrase phrases[]; /* [n]: those whose words the index has */
};

/* Make the phrases of a query. Their words' dfs are asked for in order, and the first one has the number `number`.
 * *n_unknown: different phrases that are left out because a word is unknown. *out is NULL where there are none.
 * GX_ENOMEM. */
gx_status gx_query_phrases_make(struct gx_query_phrases **out, uint32_t *n_unknown, const gx_phrase_text *phrases,
                                uint32_t n, const gx_collection_stats *stats, uint32_t number, gx_error *err);
struct gx_query_phrases *gx_query_phrases_share(struct gx_query_phrases *p);
void gx_query_phrases_close(struct gx_query_phrases *p); /* accepts NULL */

/* Leave out words of the phrase that the index lacks. Returns how many are left; 0: a place has none. */
uint32_t gx_phrase_keep_known(gx_phrase_word *words, uint32_t n, gx_phrase_kind kind);

/* The phrases of a query in one index; *n_unknown grows by those that it cannot match. ids: as of gx_plan_bind_ids, or
 * NULL: the words are looked up. *out is NULL where none is left. GX_ENOMEM. */
gx_status gx_plan_phrases_make(struct gx_plan_phrases **out, uint32_t *n_unknown, const struct gx_query_phrases *of,
                               const gx_index *ix, const uint32_t *ids, size_t stride, gx_error *err);

/* Add to scores[n] what the plan's phrases add to them in docids[n], which rise and are of the index. GX_ENOMEM,
 * GX_ECORRUPT. */
gx_status gx_phrases_add_scores(const gx_index *ix, const gx_plan *plan, const uint32_t *docids, uint32_t *scores,
                                uint32_t n, gx_error *err);

/* Set the bits of the documents that match in words[ceil(n_docs / 64)]. allowed: no others need be found, NULL: all; a
 * bit a document, of which n_allowed are set. GX_ENOMEM, GX_ECORRUPT, GX_ECANCELLED by the plan's cancel function. */
gx_status gx_phrase_mark(const gx_index *ix, const gx_phrase *p, const gx_plan *plan, const uint64_t *allowed,
                         uint32_t n_allowed, uint64_t *words, gx_error *err);

#endif
