/* term_tree.h: what is derived from the terms of a file in memory, when a pattern first asks: a tree of their first
 * bytes, the letters that each has, and the greatest dfs of neighbours.
 *
 *   terms   quark  quarks  quartz  quasar ...   in byte order
 *   tree    q [0, 900) - qu [3, 880) - qua [3, 260) - ...     a node: the terms that begin with its bytes
 *
 * Nodes of at most GX_TREE_LEAF terms, or at depth GX_TREE_DEPTH, have no children: their terms are read one by one.
 * The tree takes about 16 bytes for each 20 terms, the letters 4 bytes a term, the dfs 4 bytes for each 16.
 */
#ifndef GX_INDEX_READ_TERM_TREE_H
#define GX_INDEX_READ_TERM_TREE_H

#include "index/index.h"

#define GX_TREE_LEAF 48u
#define GX_TREE_DEPTH 48u
#define GX_DF_GROUP 16u

typedef struct gx_term_node {
    uint32_t first, end; /* terms that begin with the node's bytes */
    uint32_t children;   /* the first one; they follow each other by rising byte */
    uint16_t n_children; /* 0: a leaf */
    uint8_t byte, depth; /* the last of its `depth` bytes */
} gx_term_node;

/* nodes[0] is the root, of all terms, with depth 0. */
typedef struct gx_term_tree {
    uint32_t n_nodes;
    gx_term_node nodes[]; /* [n_nodes], and behind them the letters of the terms, [ix->terms.n] */
} gx_term_tree;

/* For each term the set of its characters, a bit each: bits 0 to 25 for a to z; other characters, and bytes that are
 * none, share bits 26 to 31. A term with a character has its bit, and an edit of one character changes at most one bit
 * from 0 and one to 0. */
static inline const uint32_t *gx_term_letters(const gx_term_tree *t)
{
    return (const uint32_t *)(const void *)(t->nodes + t->n_nodes);
}

static inline uint32_t gx_letter_of(uint32_t c)
{
    return UINT32_C(1) << (c - 'a' < 26 ? c - 'a' : 26 + c % 6);
}

/* The greatest df of the terms [16 i, 16 i + 16), and of 16 such groups. */
typedef struct gx_df_maxima {
    uint32_t n_groups;
    uint32_t groups[]; /* [n_groups], and behind them [ceil(n_groups / 16)] */
} gx_df_maxima;

static inline const uint32_t *gx_df_maxima_of_groups(const gx_df_maxima *m)
{
    return m->groups + m->n_groups;
}

/* Both belong to the index, which is a file. NULL: no memory. Thread-safe. */
const gx_term_tree *gx_index_term_tree(const gx_index *ix);
const gx_df_maxima *gx_index_df_maxima(const gx_index *ix);

/* The terms that begin with the bytes: [*first, *end). ix is a file. */
void gx_index_prefix_range(const gx_index *ix, const char *prefix, size_t len, uint32_t *first, uint32_t *end);

#endif
