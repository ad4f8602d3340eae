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
#include "query/plan/plan.h"

#endif
