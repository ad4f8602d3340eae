/* boolean.h: a parsed query (parse.h) made into what the engines run: terms with weights, an
 * operator, a filter, and, where these do not say it all, the set of documents that match.
 *
 *   tree --gx_boolean_open--> terms that are not negated -> one flat OR or AND, if that is the query
 *                             conditions that all        -> a filter, which the engines run as any
 *                             documents must meet
 *                             the rest of the structure  -> otherwise a bitmap of the documents that
 *                                                           match, from the lists and from the filters
 *                                                           that are left; the engine runs OR under
 *                                                           it as a mask, which is exact
 *
 * What matches: clauses side by side are required (+), excluded (-) or optional. Where any is
 * required, the optional ones only add to the score; else one of them must match (GX_OP_OR) or all
 * (GX_OP_AND). GX_OP_AND_OR takes words side by side alone. Terms under an odd or even number of
 * negations do not score, and conditions never do.
 *
 * A result holds at least one term that is not negated. But in a query with a condition that is not
 * negated all documents match of which the structure is true; those without such a term have score 0.
 * A query needs a term or condition that is not negated.
 *
 * A pattern (neutrin*) stands for a group of words with OR between, those of the whole collection; they count as one
 * word. Synonyms are such a group, too.
 *
 * A word that analysis drops (a stop word) disappears from its clause, and a clause or group
 * without words likewise. The terms of a word that analysis splits are all needed where the word
 * stands after +, - or NOT or beside AND; as an optional clause, or beside OR, each is as a word of
 * its own, as in plain text.
 */
#ifndef GX_QUERY_PLAN_BOOLEAN_H
#define GX_QUERY_PLAN_BOOLEAN_H

#include "engine/api/gpuidx_expansion.h"
#include "index/index.h"
#include "query/plan/plan.h"

struct gx_text;
typedef struct gx_boolean gx_boolean;

/* attributes: the index whose attributes conditions name, which is ix or the collection that ix is a part
 * of; NULL: names are not looked up, because that was done before. opt: its op and expansion count. whole: the same
 * query on the collection that ix is a part of, which outlives *out; its words of patterns are taken. NULL: those of
 * ix. GX_EUSAGE, naming the column: what the syntax does not allow, or what no index can answer. GX_ENOMEM. */
gx_status gx_boolean_open(gx_boolean **out, const gx_index *ix, const gx_index *attributes, const char *text,
                          size_t len, const gx_query_options *opt, const gx_boolean *whole, gx_error *err);
/* The same of plain text with quotes, pairs or synonyms, as the options have them: words, phrases and groups side by
 * side. Neither asks whether the synonyms fit ix (gx_synonyms_check). */
gx_status gx_boolean_open_text(gx_boolean **out, const gx_index *ix, const char *text, size_t len,
                               const gx_query_options *opt, gx_error *err);
void gx_boolean_close(gx_boolean *b);

/* Whether a query of text is one of these: it has quotes that the options make phrases, and the index has positions; or
 * the options ask for pairs, or have synonyms. */
bool gx_has_phrases(const gx_index *ix, const gx_query *q, const gx_query_options *opt);

/* Whether a plan and its filter say all, without a mask. */
bool gx_boolean_is_flat(const gx_boolean *b);

/* Make the filters of the query's conditions on ix, the index or collection that it was opened with as
 * `attributes`. The plan gets the filter that all results must meet, together with q's own, and whether
 * it is to be filled (gx_plan.fill). GX_EUSAGE (a value, an id:@FILE that q->filter_options does not
 * read), GX_ENOMEM, and the statuses of q->filter_options->read_ids. */
gx_status gx_boolean_make_filters(gx_boolean *b, gx_plan *plan, const gx_index *ix, const gx_query *q, gx_error *err);

/* The documents of the filters that are no part of the plan's. */
typedef struct gx_boolean_leaves {
    const gx_boolean *owner; /* of the filters: those of the same query on the whole collection, or b itself */
    /* The documents of one of them in b's index, as gx_filter_evaluate. NULL: gx_filter_evaluate. */
    gx_status (*evaluate)(void *user, const gx_filter *f, uint64_t *words, gx_error *err);
    void *user;
} gx_boolean_leaves;

/* The documents that match, whether or not the plan's filter selects them: words[ceil(n_docs / 64)],
 * bits at n_docs and above 0. GX_ENOMEM, GX_ECANCELLED when the plan's cancel function says so. */
gx_status gx_boolean_match(const gx_boolean *b, const gx_plan *plan, const gx_boolean_leaves *leaves, uint64_t *words,
                           gx_error *err);

/* Set the bits of a list's documents in words[ceil(n_docs / 64)]. */
void gx_list_mark(const struct gx_index *ix, uint32_t list, uint64_t *words);

/* The plan of a query of any kind on an index file. Of a boolean query it has the filter, too: the
 * conditions and q's own. *matches is what its mask must be made of, NULL where the plan says all; the
 * caller closes it. GX_EUSAGE, GX_ENOMEM. */
gx_status gx_plan_query(gx_plan *out, gx_boolean **matches, const gx_index *ix, const gx_query *q,
                        const gx_query_options *opt, gx_error *err);

/* The part of a query of any kind that is the same for all parts of a collection. *b: the boolean query
 * on ix, without filters, which the caller closes; NULL: it is of another kind. */
gx_status gx_query_plan_any(gx_query_plan *out, gx_boolean **b, const gx_index *ix, const gx_collection_stats *stats,
                            const gx_query *q, const gx_query_options *opt, gx_error *err);

/* Of gx_boolean_n_terms so many are words; those behind them are words of phrases. */
uint32_t gx_boolean_n_words(const gx_boolean *b);

/* The phrases that are not negated, [*n], and behind them their words, in one piece that the caller frees; their bytes
 * are those of b. NULL: no memory. */
struct gx_phrase_text *gx_boolean_phrases(const gx_boolean *b, uint32_t *n);

/* The terms that score, as analysis leaves them, those of patterns among them: of [gx_boolean_n_terms], some of which
 * may be equal. A pattern that no term matches has the term "". */
uint32_t gx_boolean_n_terms(const gx_boolean *b);
const char *gx_boolean_term(const gx_boolean *b, uint32_t i, size_t *len);

/* Patterns, in the query's order, and the words that each stands for. The pattern is added to *pattern as the query has
 * it. */
uint32_t gx_boolean_n_expanded(const gx_boolean *b);
const gx_expansion *gx_boolean_expanded(const gx_boolean *b, uint32_t i, struct gx_text *pattern);

#endif
