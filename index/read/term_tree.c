#include "index/read/term_tree.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "index/read/characters.h"

/* Publish `made` at *at, or free it and return what another thread has published first. */
static const void *publish(void **at, void *made)
{
    void *first = NULL;
    if (!made || __atomic_compare_exchange_n(at, &first, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    free(made);
    return first;
}

/* ---- ranges ---- */

/* The first term of [lo, hi) that does not come before prefix[len]; with `behind`, that neither begins with it. */
static uint32_t find_bound(const gx_index *ix, uint32_t lo, uint32_t hi, const char *prefix, size_t len, bool behind)
{
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        size_t n;
        const char *term = gx_strings_get(&ix->terms, mid, &n);
        const int order = memcmp(term, prefix, n < len ? n : len);
        if (order < 0 || (order == 0 && (n < len || behind)))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void gx_index_prefix_range(const gx_index *ix, const char *prefix, size_t len, uint32_t *first, uint32_t *end)
{
    *first = len ? find_bound(ix, 0, ix->terms.n, prefix, len, false) : 0;
    *end = len ? find_bound(ix, *first, ix->terms.n, prefix, len, true) : ix->terms.n;
}

/* ---- the tree ---- */

typedef struct tree_maker {
    const gx_index *ix;
    gx_term_tree *tree;
    size_t max; /* nodes that there is room for */
} tree_maker;

static bool add_node(tree_maker *m, gx_term_node node)
{
    const size_t n = m->tree ? m->tree->n_nodes : 0;
    if (n == m->max) {
        const size_t max = 2 * m->max + 64;
        gx_term_tree *tree = realloc(m->tree, sizeof *tree + max * sizeof *tree->nodes);
        if (!tree)
            return false;
        m->tree = tree;
        m->max = max;
    }
    m->tree->nodes[n] = node;
    m->tree->n_nodes = (uint32_t)n + 1;
    return true;
}

static uint8_t byte_at(const gx_index *ix, uint32_t term, uint32_t depth)
{
    size_t len;
    return (uint8_t)gx_strings_get(&ix->terms, term, &len)[depth];
}

/* Where the terms of [first, end) end that have the first one's byte at this depth. */
static uint32_t end_of_byte(const gx_index *ix, uint32_t first, uint32_t end, uint32_t depth)
{
    const uint8_t byte = byte_at(ix, first, depth);
    uint32_t step = 1, lo = first, hi = end;
    while (step < end - lo && byte_at(ix, lo + step, depth) == byte) {
        lo += step;
        step *= 2;
    }
    if (step < end - lo)
        hi = lo + step;
    while (lo + 1 < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        *(byte_at(ix, mid, depth) == byte ? &lo : &hi) = mid;
    }
    return hi;
}

static bool add_children(tree_maker *m, uint32_t number)
{
    const gx_term_node parent = m->tree->nodes[number];
    uint32_t at = parent.first, n = 0;
    const uint32_t children = m->tree->n_nodes;
    size_t len;
    gx_strings_get(&m->ix->terms, at, &len);
    at += len == parent.depth; /* the node's bytes are a term themselves */
    while (at < parent.end) {
        const uint32_t end = end_of_byte(m->ix, at, parent.end, parent.depth);
        if (!add_node(m, (gx_term_node){.first = at,
                                        .end = end,
                                        .byte = byte_at(m->ix, at, parent.depth),
                                        .depth = (uint8_t)(parent.depth + 1)}))
            return false;
        ++n;
        at = end;
    }
    m->tree->nodes[number].children = children;
    m->tree->nodes[number].n_children = (uint16_t)n;
    return true;
}

static uint32_t letters_of(const gx_index *ix, uint32_t term)
{
    size_t len;
    const char *p = gx_strings_get(&ix->terms, term, &len);
    uint32_t letters = 0, used;
    for (size_t at = 0; at < len; at += used)
        letters |= gx_letter_of(gx_first_character(p + at, len - at, true, &used));
    return letters;
}

static gx_term_tree *make_tree(const gx_index *ix)
{
    tree_maker m = {.ix = ix};
    bool good = add_node(&m, (gx_term_node){.end = ix->terms.n});
    for (uint32_t i = 0; good && i < m.tree->n_nodes; ++i) {
        const gx_term_node n = m.tree->nodes[i];
        if (n.end - n.first > GX_TREE_LEAF && n.depth < GX_TREE_DEPTH)
            good = add_children(&m, i);
    }
    if (!good) {
        free(m.tree);
        return NULL;
    }
    gx_term_tree *tree =
        realloc(m.tree, sizeof *tree + m.tree->n_nodes * sizeof *tree->nodes + (ix->terms.n + 1ull) * sizeof(uint32_t));
    if (!tree) {
        free(m.tree);
        return NULL;
    }
    uint32_t *letters = (uint32_t *)(void *)(tree->nodes + tree->n_nodes);
    for (uint32_t t = 0; t < ix->terms.n; ++t)
        letters[t] = letters_of(ix, t);
    return tree;
}

const gx_term_tree *gx_index_term_tree(const gx_index *ix)
{
    gx_term_tree *const *at = &ix->term_tree;
    const gx_term_tree *tree = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    return tree ? tree : publish((void **)at, make_tree(ix));
}

/* ---- dfs ---- */

static gx_df_maxima *make_maxima(const gx_index *ix)
{
    const uint32_t n = ix->n_terms / GX_DF_GROUP + (ix->n_terms % GX_DF_GROUP != 0);
    gx_df_maxima *m = calloc(1, sizeof *m + (n + n / GX_DF_GROUP + 1ull) * sizeof *m->groups);
    if (!m)
        return NULL;
    m->n_groups = n;
    for (uint32_t i = 0; i < ix->n_terms; ++i) {
        uint32_t *group = &m->groups[i / GX_DF_GROUP];
        *group = *group < ix->lists[i].df ? ix->lists[i].df : *group;
    }
    for (uint32_t i = 0; i < n; ++i) {
        uint32_t *whole = &m->groups[n + i / GX_DF_GROUP];
        *whole = *whole < m->groups[i] ? m->groups[i] : *whole;
    }
    return m;
}

const gx_df_maxima *gx_index_df_maxima(const gx_index *ix)
{
    gx_df_maxima *const *at = &ix->df_maxima;
    const gx_df_maxima *m = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    return m ? m : publish((void **)at, make_maxima(ix));
}
