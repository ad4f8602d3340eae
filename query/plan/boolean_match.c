/* boolean_match.c: the filters of a boolean query, and the documents that match it. */
#include <stdlib.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "query/plan/boolean_state.h"

#define NONE UINT32_MAX

/* ---- filters ---- */

static gx_status make_piece(gx_filter **out, const gx_boolean *b, uint32_t i, const gx_index *ix,
                            const gx_filter_options *opt, gx_error *err)
{
    const gx_piece *p = &b->pieces[i];
    const gx_filter_tree tree = {b->items + p->begin, p->n, p->n - 1, b->tree.conditions, b->tree.values.p};
    return gx_filter_make(out, ix, &tree, "", opt, err);
}

gx_status gx_boolean_make_filters(gx_boolean *b, gx_plan *plan, const gx_index *ix, const gx_query *q, gx_error *err)
{
    gx_filter_options opt = GX_FILTER_OPTIONS;
    gx_filter *own;
    gx_status st = gx_sized_read(&opt, sizeof opt, q->filter_options, GX_SIZE_THROUGH(gx_filter_options, user),
                                 "gx_filter_options", err);
    plan->fill = b->fill;
    if (st != GX_OK || b->n_pieces == 0)
        return st;
    if (!(b->filters = calloc(b->n_pieces, sizeof(gx_filter *))))
        return gx_fail(err, GX_ENOMEM, "no memory for a boolean query");
    for (uint32_t i = 0; i < b->n_pieces && st == GX_OK; ++i) {
        if (i != b->required)
            st = make_piece(&b->filters[i], b, i, ix, &opt, err);
    }
    if (st != GX_OK || b->required == NONE)
        return st;
    st = make_piece(&own, b, b->required, ix, &opt, err);
    if (st == GX_OK && q->filter)
        st = gx_filter_both(&own, q->filter, own, err);
    if (st == GX_OK)
        plan->filter = plan->own_filter = own;
    return st;
}

/* ---- the documents that match ---- */

typedef struct matching {
    const gx_boolean *b;
    const gx_plan *plan;
    const gx_boolean_leaves *leaves;
    size_t n_words;
    gx_error *err;
} matching;

void gx_list_mark(const gx_index *ix, uint32_t list, uint64_t *words)
{
    uint32_t docids[GX_MAX_BLOCK];
    const gx_list l = gx_index_list(ix, list);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_docids(&l, j, docids);
        for (uint32_t i = 0; i < n; ++i) {
            if (docids[i] < ix->n_docs)
                words[docids[i] / 64] |= UINT64_C(1) << docids[i] % 64;
        }
    }
}

static void invert(const matching *m, uint64_t *words)
{
    const uint32_t tail = m->b->ix->n_docs % 64;
    for (size_t w = 0; w < m->n_words; ++w)
        words[w] = ~words[w];
    if (tail)
        words[m->n_words - 1] &= (UINT64_C(1) << tail) - 1;
}

static gx_status evaluate_filter(const matching *m, uint32_t i, uint64_t *words)
{
    const gx_boolean_leaves *l = m->leaves;
    const gx_filter *f = l->owner->filters[i];
    return l->evaluate ? l->evaluate(l->user, f, words, m->err) : gx_filter_evaluate(f, words, NULL, m->err);
}

/* The recursion is as deep as the tree, which the parser bounds. */
static gx_status match_node(const matching *m, uint32_t node, uint64_t *words)
{
    const gx_match *n = &m->b->nodes[node];
    if (m->plan->cancel && m->plan->cancel(m->plan->user))
        return gx_fail(m->err, GX_ECANCELLED, "the search was cancelled");
    if (n->kind == GX_MATCH_TERM) {
        memset(words, 0, m->n_words * sizeof *words);
        if (n->list != UINT32_MAX)
            gx_list_mark(m->b->ix, n->list, words);
        return GX_OK;
    }
    if (n->kind == GX_MATCH_FILTER)
        return evaluate_filter(m, n->list, words);
    gx_status st = match_node(m, n->first, words);
    if (n->kind == GX_MATCH_NOT) {
        invert(m, words);
        return st;
    }
    uint64_t *other = st == GX_OK ? malloc((m->n_words + 1) * sizeof *other) : NULL;
    if (st == GX_OK && !other)
        st = gx_fail(m->err, GX_ENOMEM, "no memory for the documents of a boolean query");
    for (uint32_t c = m->b->nodes[n->first].next; st == GX_OK && c != NONE; c = m->b->nodes[c].next) {
        st = match_node(m, c, other);
        for (size_t w = 0; st == GX_OK && w < m->n_words; ++w)
            words[w] = n->kind == GX_MATCH_AND ? words[w] & other[w] : words[w] | other[w];
    }
    free(other);
    return st;
}

gx_status gx_boolean_match(const gx_boolean *b, const gx_plan *plan, const gx_boolean_leaves *leaves, uint64_t *words,
                           gx_error *err)
{
    const matching m = {b, plan, leaves, ((size_t)b->ix->n_docs + 63) / 64, err};
    memset(words, 0, m.n_words * sizeof *words);
    return b->root == NONE ? GX_OK : match_node(&m, b->root, words);
}
