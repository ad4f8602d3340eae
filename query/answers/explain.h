/* explain.h: why a document has its score: the formula with its numbers, term by term, from the
 * lists themselves.
 *
 * It shares the arithmetic of bm25.h and plan.h with the engines but none of their paths through
 * the lists, so the sum is an independent check of a printed score: equal to the bit.
 */
#ifndef GX_QUERY_ANSWERS_EXPLAIN_H
#define GX_QUERY_ANSWERS_EXPLAIN_H

#include "engine/api/gpuidx_advanced.h" /* gx_explain */
#include "index/index.h"
#include "query/plan/phrases.h"

/* A phrase as text, in the syntax of queries, of its terms; _ stands for words that analysis leaves out. Returns the
 * text's length; it is at most bytes long. */
size_t gx_phrase_text_bytes(const gx_query_phrase *p);
size_t gx_phrase_text_write(const gx_query_phrase *p, char *text);

/* The tf of docid in the list, 0 if it is not there. */
uint32_t gx_find_tf(const gx_list *list, uint32_t docid);

/* The df, tf, qtf, idf and unit of a phrase: df is the number of documents that match it, and idf the sum of its
 * words'. The df of a group is the greatest of its words'. GX_ENOMEM, GX_ECORRUPT. */
gx_status gx_explain_phrase(gx_explain_term *x, const struct gx_query_phrases *all, uint32_t number, const gx_index *ix,
                            uint64_t docid, gx_error *err);

#endif
