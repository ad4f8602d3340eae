/* plan.h: a query made concrete: which lists, with what weights, under which operator.
 *
 *   terms, statistics of the collection --gx_query_plan_make--> gx_query_plan   weights, exponent,
 *   K gx_query_plan, an index             --gx_plan_bind-------> gx_plan         lists, for an
 *   engine
 *
 * gx_plan_make does both for text and an index with its own statistics.
 *
 * A collection may be split into parts, an index each, part i beginning at docid base[i] of the
 * whole. The answer over the parts is the answer over one index of the whole, to the bit, unless
 * gx_plan_skips_blocks holds: make the
 * query plan with the statistics of the whole; bind it to each part; set gx_plan.base, so that
 * gx_session_run returns keys with docids of the whole; set gx_plan.initial_threshold to the score
 * of the k-th best key of the parts before (0 while there are fewer); keep the k greatest keys
 * (topk.h). AND and OR need one pass. GX_OP_AND_OR needs two: set gx_query_plan.op to GX_OP_AND and
 * search all parts, and where that gives fewer than k results set it to GX_OP_OR and search all
 * again.
 *
 * Score scale: a term's weight is its idf, times k1 + 1 where the preset has it, times the number
 * of repetitions or the weight that the query gives. W = the sum of what the terms can add to a
 * score: their weights, or by a linear scorer their weights times the greatest tfs of their lists.
 * Where the index holds impacts with a unit (index/FORMAT.md), weights are times the list's unit.
 * w_i = float(weight_i) * 2^e where e is the greatest integer with W * 2^e <= 2^30, so that no
 * score reaches 2^31. A score's float is score * 2^-e. Where W is 0, e is 30, so that scores of 1
 * print as 0. A linear scorer's w_i is 2^60 times as great (bm25.h). e depends on the query and on
 * the statistics of the whole collection alone.
 */
#ifndef GX_QUERY_PLAN_PLAN_H
#define GX_QUERY_PLAN_PLAN_H

#include "engine/api/gpuidx.h"
#include "index/fields/view.h"
#include "query/score/bm25.h"

typedef struct gx_plan_term {
    uint32_t list; /* term id, which is the list's number */
    uint32_t df;   /* >= 1 */
    float w;       /* scaled weight, 0 <= w <= 2^30; of a linear scorer, 2^60 times that */
    double qtf;    /* the query's weight of the term: how often it says it, or as given */
} gx_plan_term;

typedef struct gx_plan {
    /* GX_OP_AND_OR with an unknown term, or of one term, is planned as GX_OP_OR: that is its answer
     * */
    gx_op op;
    uint32_t k;         /* 1 <= k <= max(1, n_docs) and below 2^32 */
    uint32_t n_terms;   /* different known terms, <= GX_MAX_TERMS; 0: no hit */
    uint32_t n_unknown; /* different terms that the index lacks. op == GX_OP_AND and n_unknown > 0: n_terms is 0 */
    bool prune;
    gx_algorithm algorithm; /* with prune */
    uint32_t recursion;
    bool coarse_bounds; /* the CPU engine may take bounds of a scorer with nearly this c1 (cpu/search.c) */
    int exponent;       /* e */
    /* The initial threshold: documents that score less need not be found. 0 unless somebody knows
     * one: the pair thresholds (pairs.h), of an OR without a mask or filter; or the k-th best of
     * other parts of the collection, which holds under masks too. The AND of GX_OP_AND_OR ignores it. */
    uint32_t initial_threshold;
    /* Of an OR: the share of its terms' weight that the first of two passes may leave out
     * (approximate.h); 0: the answer is exact. */
    float approximate;
    uint32_t block_budget; /* of an OR with prune, by bounds of ranges (cpu/block_max.h): gx_query_options has it */
    uint32_t n_left_out;   /* of a first pass: terms that it leaves out */
    uint32_t base;         /* gx_session_run adds it to the docids of the answer's keys; base + n_docs <= 2^32 - 1 */
    const gx_mask *mask;   /* the documents that may be returned; NULL: all */
    gx_mask *own_mask;     /* that mask, where gx_plan_free closes it: a boolean query's; else NULL */
    /* Of a collection: the plans of its parts (collection.h), the plan's own; terms is NULL then.
     * Without parts the terms are those of its only part; where they are NULL too there is no hit. */
    struct gx_part_plans *parts;
    /* Of the mask's documents only those of the filter may be returned; NULL: all of them. The CPU's
     * executor reads filter_mask instead, if it is given. A GPU's runs plans whose filters it takes
     * (gx_executor.takes_filter); of others, `mask` has the filter's documents and filter is NULL. */
    const gx_filter *filter;
    const gx_mask *filter_mask;
    gx_filter *own_filter; /* that filter, where gx_plan_free closes it: of a boolean query's conditions; else NULL */
    /* All documents of `mask` and `filter` match; of a query of all documents there may be neither. Where fewer than
     * k of them hold one of the terms, gx_session_run adds others with score 0, by rising docid. */
    bool fill;
    gx_scorer norm;
    gx_plan_term *terms; /* [n_terms], by rising df, then rising list; the plan's own */
    uint32_t n_phrases;  /* known ones; op == GX_OP_AND and n_unknown > 0: 0 */
    uint32_t way;        /* 1 + the field by which a plan of a view scores (field_way.h); 0: by all that there are */
    /* Of a plan that an engine runs in the place of one with phrases (phrase_program.h); NULL: of none */
    const struct gx_phrase_program *program;
    struct gx_plan_phrases *phrases; /* [n_phrases] (phrases.h), the plan's own; NULL: none, or those of its parts */
    bool (*cancel)(void *user);
    void *user;
} gx_plan;

/* Whether the CPU engine is to answer the plan of some blocks alone. A plan that is to be
 * filled is not: what blocks that are left out have would be given a score of 0. */
static inline bool gx_plan_skips_blocks(const gx_plan *plan)
{
    return plan->prune && !plan->fill && plan->block_budget;
}

struct gx_index;

/* What the scores take from the collection. */
typedef struct gx_collection_stats {
    uint64_t n_docs;
    double avgdl; /* > 0 */
    /* Documents that hold the term, 0: none; an index that holds a part of the collection has no
     * more of them. */
    uint64_t (*df)(const void *user, const char *term, size_t len);
    /* The greatest tf of a term that the collection has, over all its parts; only linear scorers
     * ask. */
    uint32_t (*max_tf)(const void *user, const char *term, size_t len);
    /* The unit of the impacts of the term's list, the same in all parts; 1 where they are tfs. */
    double (*unit)(const void *user, const char *term, size_t len);
    const void *user;
    const struct gx_index *view; /* of fields (index/fields/view.h), whose scorer counts; NULL: none */
} gx_collection_stats;

/* The statistics of an index, which must outlive them. */
gx_collection_stats gx_collection_stats_of(const struct gx_index *ix);

typedef struct gx_query_term {
    const char *term; /* [len] bytes, the plan's own */
    size_t len;
    uint64_t df; /* of the collection, >= 1 */
    float w;     /* as in gx_plan_term */
    double qtf;
    uint32_t number; /* its place among the terms whose df was asked for, in that order */
    double unit;     /* of the list's impacts */
    double idf;      /* of a phrase of a view of fields: the sum of its words'; 0 of others, whose df tells it */
} gx_query_term;

/* What a query says of any index of the collection. */
typedef struct gx_query_plan {
    gx_query_options opt;
    gx_op op;
    uint32_t n_terms;   /* different terms that the collection has */
    uint32_t n_unknown; /* different terms that it lacks */
    int exponent;
    gx_scorer norm;
    gx_query_term *terms;             /* [n_terms], by rising df, then by bytes; the plan's own */
    struct gx_query_phrases *phrases; /* phrases.h; shared. NULL: none */
} gx_query_plan;

/* Whether words of a text are weighed by BM25, too. */
bool gx_query_side_is_on(const gx_query_options *opt);

/* k, preset, k1, b, algorithm and recursion of opt are in their ranges, and the scorer can read the
 * index's lists? Else GX_EUSAGE, saying which is not. */
gx_status gx_query_options_check(const gx_query_options *opt, const struct gx_index *ix, gx_error *err);

/* text -> plan, with the index's analyzer. opt is full-sized and checked. GX_EUSAGE (too many
 * terms; the index holds impacts and the scorer is not linear), GX_ENOMEM: nothing is left to free.
 * Thread-safe. */
gx_status gx_plan_make(gx_plan *out, const struct gx_index *ix, const char *text, size_t len,
                       const gx_query_options *opt, gx_error *err);
/* The same for a collection of one part: the lists are the part's, the statistics those of its live documents. */
gx_status gx_plan_make_live(gx_plan *out, const struct gx_index *collection, const char *text, size_t len,
                            const gx_query_options *opt, gx_error *err);
/* The same from term ids (< n_terms of the index; repetitions add up), qtf each (NULL: 1); for logs
 * of term numbers and tests. */
gx_status gx_plan_make_ids(gx_plan *out, const struct gx_index *ix, const uint32_t *ids, const uint32_t *qtf,
                           uint32_t n, const gx_query_options *opt, gx_error *err);
void gx_plan_free(gx_plan *plan); /* before the engine of own_mask is closed */

/* Terms as the index has them (nothing is analysed) with their weights; those of equal terms add
 * up. opt is full-sized and checked. GX_EUSAGE: a weight that is not finite or not above 0 (the
 * message names the term), more than GX_MAX_TERMS different terms, or a sum of all weights times
 * idf above FLT_MAX. GX_ENOMEM. */
gx_status gx_query_plan_make(gx_query_plan *out, const gx_weighted_term *terms, uint32_t n,
                             const gx_collection_stats *stats, const gx_query_options *opt, gx_error *err);
void gx_query_plan_free(gx_query_plan *q);
/* The same with phrases. GX_EUSAGE: the scorer is linear and there are some. */
struct gx_phrase_text;
gx_status gx_query_plan_make_phrases(gx_query_plan *out, const gx_weighted_term *terms, uint32_t n,
                                     const struct gx_phrase_text *phrases, uint32_t n_phrases,
                                     const gx_collection_stats *stats, const gx_query_options *opt, gx_error *err);
/* Find the weights, exponent and norm of a plan that has all else. GX_EUSAGE: the sum of all weights as above. */
gx_status gx_query_plan_weigh(gx_query_plan *q, const gx_collection_stats *stats, gx_error *err);
/* gx_plan_bind, but for terms (room for [q->n_terms]), which stay the caller's, and with the term
 * ids known: ids[t.number * stride], UINT32_MAX where the index lacks term t. The phrases are the plan's own.
 * GX_ENOMEM. */
gx_status gx_plan_bind_ids(gx_plan *out, const gx_query_plan *q, const struct gx_index *ix, const uint32_t *ids,
                           size_t stride, gx_plan_term *terms, gx_error *err);
/* A copy with terms of its own. GX_ENOMEM. */
gx_status gx_query_plan_copy(gx_query_plan *out, const gx_query_plan *q, gx_error *err);
/* The same of a text, by the index's analyzer and the collection's statistics. */
gx_status gx_query_plan_text(gx_query_plan *out, const struct gx_index *ix, const char *text, size_t len,
                             const gx_collection_stats *stats, const gx_query_options *opt, gx_error *err);
/* The plan of a whole collection, without terms and parts: k, operator, exponent,
 * what is unknown. */
gx_plan gx_query_plan_summary(const gx_query_plan *q, const struct gx_index *ix);
/* The plan of one index, without a threshold and with base 0. It does not refer to q. GX_EUSAGE
 * (the index holds impacts and the scorer is not linear, or their unit is another than that of the
 * collection), GX_ENOMEM. */
gx_status gx_plan_bind(gx_plan *out, const gx_query_plan *q, const struct gx_index *ix, gx_error *err);

/* A selection key: score above, docid below, so that a greater key is a better result. */
GX_HD uint64_t gx_key(uint32_t score, uint32_t docid)
{
    return (uint64_t)score << 32 | (uint32_t)~docid;
}
GX_HD uint32_t gx_key_score(uint64_t key)
{
    return (uint32_t)(key >> 32);
}
GX_HD uint32_t gx_key_docid(uint64_t key)
{
    return ~(uint32_t)key;
}
/* The same score for document base + docid, which is below 2^32. */
GX_HD uint64_t gx_key_rebase(uint64_t key, uint32_t base)
{
    return key - base;
}

#endif
