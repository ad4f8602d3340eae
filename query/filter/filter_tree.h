/* filter_tree.h: an expression that has been read, and the filters that are made of it.
 *
 *   text --gx_filter_open--> gx_filter_tree --gx_filter_make--> gx_filter    filter.c
 *   conditions of a boolean query (boolean.c) -----^
 */
#ifndef GX_QUERY_FILTER_FILTER_TREE_H
#define GX_QUERY_FILTER_FILTER_TREE_H

#include "index/deletes.h"
#include "query/filter/filter.h"
#include "query/syntax/condition.h"

typedef struct gx_filter_item {
    gx_filter_kind kind;  /* GX_FILTER_RANGE: any condition */
    uint32_t first, next; /* of AND, OR and NOT: first child; of a child: the next. UINT32_MAX: none */
    uint32_t condition;   /* its number */
} gx_filter_item;

typedef struct gx_filter_tree {
    const gx_filter_item *items; /* [n] */
    uint32_t n, root;
    const gx_condition *conditions; /* their attributes are numbers of the index */
    const char *values;             /* of the conditions */
} gx_filter_tree;

/* Read an expression. The caller frees the tree, on success. GX_EUSAGE as gx_filter_open, GX_ENOMEM. */
gx_status gx_filter_parse(gx_filter_tree *out, const gx_index *ix, const char *text, size_t len, gx_error *err);
void gx_filter_tree_free(gx_filter_tree *t);

/* Set f->text, which is NULL, to the tree's canonical form. GX_ENOMEM. */
gx_status gx_filter_write(gx_filter *f, const gx_filter_tree *t, gx_error *err);

/* The filter of the tree. `prefix` stands before "column N: ..." in the message of GX_EUSAGE: a value is
 * none of its attribute's type, or there is no opt->read_ids for id:@FILE. opt is full-sized. GX_ENOMEM,
 * and the statuses of read_ids. */
gx_status gx_filter_make(gx_filter **out, const gx_index *ix, const gx_filter_tree *tree, const char *prefix,
                         const gx_filter_options *opt, gx_error *err);

/* The filter that selects what both do, of one index: `own`, which becomes part of the result and is
 * closed if this fails, and `other`, which must outlive it. GX_ENOMEM. */
gx_status gx_filter_both(gx_filter **out, const gx_filter *other, gx_filter *own, gx_error *err);

/* What a condition means in one index file: *out is a RANGE, HAS or IDS, whose docids and ids the caller
 * frees, also where this is false: refused->st and its error say why. live: the documents that an id may
 * mean. */
bool gx_filter_resolve(gx_filter_node *out, const gx_index *ix, const gx_live *live, const gx_condition *c,
                       const char *values, const gx_filter_options *opt, gx_scanner *refused);

#endif
