/* boolean.h: a parsed query (parse.h) made into what the engines run: terms with weights, an
 * operator, and, where these do not say it all, the set of documents that match.
 *
 *   tree --gx_boolean_open--> terms that are not negated -> one flat OR or AND, if that is the
 *   query
 *                             the boolean structure      -> otherwise a bitmap of the documents
 *                             that
 *                                                           match, from the lists; the engine runs
 *                                                           OR under it as a mask, which is exact
 *
 * What matches: clauses side by side are required (+), excluded (-) or optional. Where any is
 * required, the optional ones only add to the score; else one of them must match (GX_OP_OR) or all
 * (GX_OP_AND). GX_OP_AND_OR takes words side by side alone. A result holds at least one term that
 * is not negated, and a query needs one. Terms under an odd or even number of negations do not
 * score.
 *
 * A word that analysis drops (a stop word) disappears from its clause, and a clause or group
 * without words likewise. The terms of a word that analysis splits are all needed where the word
 * stands after +, - or NOT or beside AND; as an optional clause, or beside OR, each is as a word of
 * its own, as in plain text.
 */
#ifndef GX_QUERY_BOOLEAN_H
#define GX_QUERY_BOOLEAN_H

#include "index/index.h"
#include "query/plan.h"

typedef struct gx_boolean gx_boolean;

/* GX_EUSAGE, naming the column: what the syntax does not allow, or what no index can answer.
 * GX_ENOMEM. */
gx_status gx_boolean_open(gx_boolean **out, const gx_index *ix, const char *text, size_t len, gx_op op, gx_error *err);
void gx_boolean_close(gx_boolean *b);

/* The documents that match: words[ceil(n_docs / 64)], bits at n_docs and above 0. GX_ENOMEM,
 * GX_ECANCELLED when the plan's cancel function says so. */
gx_status gx_boolean_match(const gx_boolean *b, const gx_plan *plan, uint64_t *words, gx_error *err);

/* The plan of a query of any kind. *matches is what its mask must be made of, NULL where the plan
 * says all; the caller closes it. GX_EUSAGE, GX_ENOMEM. */
gx_status gx_plan_query(gx_plan *out, gx_boolean **matches, const gx_index *ix, const gx_query *q,
                        const gx_query_options *opt, gx_error *err);

/* The part of a query of any kind that is the same for all parts of a collection. *flat: the plan
 * says all; else what matches is a boolean query of each part (gx_boolean_open). */
gx_status gx_query_plan_any(gx_query_plan *out, bool *flat, const gx_index *ix, const gx_collection_stats *stats,
                            const gx_query *q, const gx_query_options *opt, gx_error *err);

/* The words of a boolean query that are not negated, with blanks between; the caller frees. */
gx_status gx_boolean_words(char **out, size_t *out_len, const char *text, size_t len, gx_error *err);

#endif
