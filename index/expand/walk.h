/* walk.h: all terms of a file through an automaton that reads characters. Terms with equal beginnings share the steps
 * of them, and where the automaton cannot go on, all terms of the subtree are passed over.
 *
 * The automaton keeps a stack of states, of which state 0 is its first:
 *   step    makes state k + 1 of state k and a character; false: no word that goes on like this matches
 *   accept  whether the word that led to state k matches, and its distance; else GX_NO_MATCH
 *   leads   quickly, whether state k may go on with a character below 128
 *   leaf    looks at terms [first, end), which begin with the `depth` bytes of w->path that led to state w->k
 * All are constants where gx_walk is called, and so become part of the loop. */
#ifndef GX_INDEX_EXPAND_WALK_H
#define GX_INDEX_EXPAND_WALK_H

#include "index/expand/patterns.h"
#include "index/read/term_tree.h"

#define GX_WALK_DEPTH 1000u /* states but the first */
#define GX_NO_MATCH UINT32_MAX

typedef bool gx_step_fn(void *automaton, uint32_t k, uint32_t character);
typedef uint32_t gx_accept_fn(const void *automaton, uint32_t k);
typedef bool gx_leads_fn(const void *automaton, uint32_t k, uint32_t character);

typedef struct gx_walk gx_walk;
typedef void gx_leaf_fn(gx_walk *w, uint32_t first, uint32_t end, uint32_t depth);

struct gx_walk {
    void *automaton;
    gx_found *found;
    const gx_term_tree *tree;
    size_t least_bytes, most_bytes; /* of a match */
    const char *before;             /* the bytes that the states were made of */
    size_t before_len;
    uint32_t k;    /* the last state */
    uint32_t read; /* bytes of `before` that decided that the automaton stops; 0: it did not */
    char path[GX_TREE_DEPTH + 1];
    uint32_t starts[GX_WALK_DEPTH + 1]; /* [k + 1] bytes before each state */
    struct {
        uint32_t node, k;
    } stack[GX_TREE_DEPTH * 256 + 1]; /* nodes to visit */
};

/* Bytes that were looked at for the character of state k - 1. */
static inline uint32_t gx_walk_looked(const gx_walk *w, uint32_t k)
{
    return (unsigned char)w->before[w->starts[k]] < 0x80 ? w->starts[k] + 1 : w->starts[k] + 4;
}

/* Read p up to n bytes. false: the automaton stops. */
static inline __attribute__((always_inline)) bool gx_walk_read(gx_walk *w, const char *p, size_t n, bool ended,
                                                               gx_step_fn *step)
{
    w->before = p;
    w->before_len = n;
    while (w->starts[w->k] < n) {
        const uint32_t at = w->starts[w->k];
        uint32_t used = 1, c = (unsigned char)p[at];
        if (c >= 0x80)
            c = gx_first_character(p + at, n - at, ended, &used);
        if (used == 0)
            break;
        if (w->k == GX_WALK_DEPTH || !step(w->automaton, w->k, c)) {
            w->read = gx_walk_looked(w, w->k);
            return false;
        }
        w->starts[++w->k] = at + used;
    }
    w->read = 0;
    return true;
}

/* A term, whose first `shared` bytes are those of w->before. */
static inline __attribute__((always_inline)) void gx_walk_term(gx_walk *w, uint32_t term, uint32_t depth,
                                                               uint32_t least_k, gx_step_fn *step, gx_accept_fn *accept)
{
    size_t len;
    const char *p = gx_strings_get(&w->found->ix->terms, term, &len);
    uint32_t shared = depth;
    if (len < w->least_bytes || len > w->most_bytes)
        return;
    const uint32_t most = w->read ? w->read : w->starts[w->k];
    while (shared < most && shared < len && shared < w->before_len && p[shared] == w->before[shared])
        ++shared;
    if (w->read && shared == w->read)
        return;
    while (w->k > least_k && gx_walk_looked(w, w->k - 1) > shared)
        --w->k;
    if (!gx_walk_read(w, p, len, true, step))
        return;
    const uint32_t distance = accept(w->automaton, w->k);
    if (distance != GX_NO_MATCH)
        gx_found_add(w->found, term, distance);
}

/* The terms of a leaf, or the one that is a node's bytes. w->path has them. */
static inline __attribute__((always_inline)) void gx_walk_terms(gx_walk *w, uint32_t first, uint32_t end,
                                                                uint32_t depth, gx_step_fn *step, gx_accept_fn *accept)
{
    const uint32_t k = w->k;
    w->before = w->path;
    w->before_len = depth;
    w->read = 0;
    for (uint32_t term = first; term < end; ++term)
        gx_walk_term(w, term, depth, k, step, accept);
    w->k = k;
}

/* GX_ENOMEM. */
static inline __attribute__((always_inline)) gx_status gx_walk_all(gx_walk *w, gx_step_fn *step, gx_leads_fn *leads,
                                                                   gx_leaf_fn *leaf)
{
    uint32_t n = 0;
    w->tree = gx_index_term_tree(w->found->ix);
    if (!w->tree)
        return GX_ENOMEM;
    const uint32_t *letters = gx_term_letters(w->tree);
    if (w->found->ix->terms.n == 0)
        return GX_OK;
    w->starts[0] = 0;
    w->stack[n].node = 0;
    w->stack[n++].k = 0;
    while (n) {
        const gx_term_node *node = &w->tree->nodes[w->stack[--n].node];
        w->k = w->stack[n].k;
        if (node->depth) {
            w->path[node->depth - 1] = (char)node->byte;
            if (!gx_walk_read(w, w->path, node->depth, false, step))
                continue;
        }
        const gx_term_node *child = &w->tree->nodes[node->children];
        leaf(w, node->first, node->n_children ? child->first : node->end, node->depth);
        const bool between = w->starts[w->k] == node->depth; /* and not in a character */
        for (uint32_t i = node->n_children; i--;) {
            if (between && child[i].byte < 0x80 && !leads(w->automaton, w->k, child[i].byte))
                continue;
            __builtin_prefetch(child[i].n_children ? (const void *)&w->tree->nodes[child[i].children]
                                                   : (const void *)&letters[child[i].first]);
            w->stack[n].node = node->children + i;
            w->stack[n++].k = w->k;
        }
    }
    return w->found->failed ? GX_ENOMEM : GX_OK;
}

#endif
