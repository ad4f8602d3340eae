/* groups.h: results of which each value of an attribute has one, its best document (gx_page.collapse).
 *
 *   the list of all results    a:3  b:7  c:3  d:-  e:7  f:5  g:-      document:value
 *   heads                      a         b         d         f        the first one of each value
 *   groups                     a c       b e       d g       f        of each as many as are wanted, and their number
 *
 * Heads are found by searches for the first m documents: where these have too few different values, m grows, and the
 * next search leaves out the values that many of the documents had. The groups are found by the scores of all documents
 * that have one of the heads' values (members.h), or by one search of these, where they are few; else the values of all
 * matches are counted, and each group is searched by itself.
 */
#ifndef GX_QUERY_ORDER_GROUPS_H
#define GX_QUERY_ORDER_GROUPS_H

#include "query/order/first_results.h"

/* What groups are asked for. */
typedef struct gx_collapse {
    bool any;
    gx_sort_level level; /* the attribute */
    uint32_t most;       /* documents of a group */
} gx_collapse;

/* Read "ATTRIBUTE[:n]"; len 0: none. GX_EUSAGE: there is no such attribute (the message names the nearest), a document
 * has several values, or n is none of 1 to GX_MAX_GROUP_DOCUMENTS. */
gx_status gx_collapse_read(gx_collapse *out, const gx_index *ix, const char *text, size_t len, gx_error *err);

/* A query whose results are a list. */
typedef struct gx_list_of_results {
    gx_session *s;
    const gx_query *query;
    gx_query_options opt; /* GX_OP_OR or GX_OP_AND; k is of no meaning */
    const gx_sort *sort;  /* n 0: by score */
    const gx_collapse *by;
} gx_list_of_results;

/* The best document of a group. */
typedef struct gx_head {
    uint64_t docid;
    double score;
    gx_sort_value value;
} gx_head;

typedef struct gx_heads {
    gx_head *heads; /* [n] */
    size_t n, max;
    bool all; /* there are no more */
} gx_heads;

/* The first n heads of the list, which may be more than there are. Statuses of gx_search. Free heads->heads. */
gx_status gx_heads_find(gx_heads *heads, const gx_list_of_results *l, uint64_t n, gx_error *err);

/* Whether a head comes behind the place. */
bool gx_head_is_behind(const gx_list_of_results *l, const gx_head *head, const gx_position *place);

/* The groups of n heads. Statuses of gx_search. */
gx_status gx_groups_find(gx_groups **out, const gx_list_of_results *l, const gx_head *heads, uint32_t n, gx_error *err);

#endif
