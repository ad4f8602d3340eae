/* filter.h: a filter as a tree, which gx_filter_open (filter.c) makes of an expression, and
 * gx_filter_make (filter_tree.h) of conditions of a boolean query. gx_filter_evaluate
 * (filter_evaluate.c) makes a bit a document of it; gx_filter_test (filter_test.c) tests documents one
 * by one; filter_collect.h finds the documents of a rare one.
 *
 *   filter     = and { "OR" and }
 *   and        = operand { "AND" operand }            binds more than OR
 *   operand    = "NOT" operand | "(" filter ")" | condition
 *
 * condition.h has the conditions.
 */
#ifndef GX_QUERY_FILTER_FILTER_H
#define GX_QUERY_FILTER_FILTER_H

#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "index/attributes/attributes.h"

#define GX_FILTER_MAX_DEPTH 64u    /* parentheses and NOTs, each inside the one before */
#define GX_FILTER_MAX_NODES 16384u /* conditions, and ANDs, ORs and NOTs of a filter */

typedef enum gx_filter_kind {
    GX_FILTER_AND,
    GX_FILTER_OR,
    GX_FILTER_NOT,   /* of one child */
    GX_FILTER_RANGE, /* documents with a value in [low, high] */
    GX_FILTER_HAS,   /* documents with any value */
    GX_FILTER_IDS    /* the documents of `ids` */
} gx_filter_kind;

typedef struct gx_filter_node {
    gx_filter_kind kind;
    uint32_t first, next; /* first child, next sibling; UINT32_MAX: none */
    uint32_t column;      /* number of the attribute */
    bool none;            /* GX_FILTER_RANGE: no value can be in it */
    uint64_t low, high;   /* GX_FILTER_RANGE: as the column has its values; doubles' bits of a float */
    uint32_t *docids;     /* GX_FILTER_IDS: [n_ids], rising; or, if they are many, NULL, and .. */
    uint64_t *ids;        /* .. a bit a document */
    uint32_t n_ids;       /* bits that are set in ids */
} gx_filter_node;

struct gx_filter {
    const gx_index *ix;
    gx_filter **parts;     /* of a collection: the filter of each part; there are no nodes then. NULL: ix is one file */
    gx_filter_node *nodes; /* [n_nodes]; the documents of the first n_borrowed are another filter's */
    uint32_t n_nodes, n_borrowed, root;
    char *text; /* [text_len] */
    size_t text_len;
    bool reads_files; /* a condition is id:@FILE: equal texts need not select the same documents */
};

/* The values of a GX_FILTER_RANGE as the column can hold them. false: none. */
static inline bool gx_filter_range(const gx_column *c, const gx_filter_node *n, uint64_t *low, uint64_t *high)
{
    const uint64_t widest = c->width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * c->width) - 1;
    *low = n->low;
    *high = n->high < widest || c->type == GX_ATTRIBUTE_FLOAT ? n->high : widest;
    return !n->none && (c->type == GX_ATTRIBUTE_FLOAT || n->low <= widest);
}

/* Whether a value of a document is in [low, high], of a column with starts. */
static inline bool gx_filter_meets(const gx_column *c, uint32_t docid, uint64_t low, uint64_t high)
{
    const uint32_t begin = c->starts[docid], end = c->starts[docid + 1];
    const double *const floats = (const double *)c->values;
    double least, most;
    bool any = false;
    if (c->type != GX_ATTRIBUTE_FLOAT) {
        for (uint32_t v = begin; v < end; ++v)
            any |= gx_column_raw(c, v) - low <= high - low;
        return any;
    }
    memcpy(&least, &low, sizeof least);
    memcpy(&most, &high, sizeof most);
    for (uint32_t v = begin; v < end; ++v)
        any |= (floats[v] >= least) & (floats[v] <= most);
    return any;
}

/* Of a filter of one file: keep[i] becomes 1 where it selects docids[i], else 0; all docids[n] are
 * below n_docs. Takes a few ns a document and condition, and no memory. Thread-safe. */
void gx_filter_test(const gx_filter *f, const uint32_t *docids, uint32_t n, uint8_t *keep);

/* About how many documents the filter selects, from a sample of 128. */
uint32_t gx_filter_guess(const gx_filter *f);

#endif
