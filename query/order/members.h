/* members.h: the documents of groups that are few, found by the order of the attribute (index/attributes/
 * attribute_order.h), and which of them match an OR: those that have a score. */
#ifndef GX_QUERY_ORDER_MEMBERS_H
#define GX_QUERY_ORDER_MEMBERS_H

#include "query/order/groups.h"

/* A document, live and under the query's filter, of one of the groups. */
typedef struct gx_member {
    gx_candidate found; /* first: docid of the index or collection, and score */
    uint32_t group;
    double score; /* with the prior */
} gx_member;

typedef struct gx_members {
    gx_member *members; /* [n] */
    size_t n, max;
} gx_members;

/* Find the documents of n heads' values, if they are at most `most` and the list is one of an OR by score, without
 * phrases, whose documents scores tell. *done: they are found; false: another way must be taken. Free
 * members->members. GX_ENOMEM. */
gx_status gx_members_find(gx_members *members, const gx_list_of_results *l, const gx_head *heads, uint32_t n,
                          uint64_t most, bool *done, gx_error *err);

/* Leave those that match, by group, of each group the best first. Statuses of gx_search. */
gx_status gx_members_score(gx_members *members, const gx_list_of_results *l, gx_error *err);

#endif
