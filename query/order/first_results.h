/* first_results.h: the first results of a query's list, by score or by attributes, with a prior or without. */
#ifndef GX_QUERY_ORDER_FIRST_RESULTS_H
#define GX_QUERY_ORDER_FIRST_RESULTS_H

#include "query/order/ordered.h"

/* All zero at first. */
typedef struct gx_first_results {
    uint64_t *docids; /* [n] */
    double *scores;   /* [n], which gx_results.exact_scores are */
    uint32_t n;
    size_t max;
    gx_hits hits; /* scratch, room for max */
} gx_first_results;

/* Find the first k results, where sort->n is above 0 those behind `after` (NULL: all). opt is full-sized; its k says
 * what AND-then-OR is in an order by attributes. Statuses of gx_search. */
gx_status gx_first_results_find(gx_first_results *f, gx_session *s, const gx_query *q, const gx_query_options *opt,
                                uint32_t k, const gx_sort *sort, const gx_position *after, gx_error *err);

/* Room for so many results. GX_ENOMEM. */
gx_status gx_first_results_reserve(gx_first_results *f, const gx_session *s, uint64_t n, gx_error *err);
void gx_first_results_free(gx_first_results *f);

#endif
