/* boolean_match.c: the filters of a boolean query, and the documents that match it. */
#include <stdlib.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "query/plan/boolean_state.h"
#include "query/plan/phrases.h"

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

/* The documents of a phrase, of those that are allowed (NULL: of all). */
static gx_status match_phrase(const matching *m, uint32_t i, const uint64_t *allowed, uint64_t *words)
{
    const gx_read_phrase *r = &m->b->phrases[i];
    uint32_t n = 0;
    gx_phrase_word *in_index = malloc(r->n * sizeof *in_index);
    if (!in_index)
        return gx_fail(m->err, GX_ENOMEM, "no memory for a phrase of %u words", r->n);
    for (uint32_t w = 0; w < r->n; ++w)
        in_index[w] = m->b->words[r->first + w].in_index;
    for (size_t w = 0; allowed && w < m->n_words; ++w)
        n += (uint32_t)__builtin_popcountll(allowed[w]);
    memset(words, 0, m->n_words * sizeof *words);
    const gx_phrase p = {r->kind, r->slop, gx_phrase_keep_known(in_index, r->n, r->kind), in_index};
    const gx_status st = p.n ? gx_phrase_mark(m->b->ix, &p, m->plan, allowed, n, words, m->err) : GX_OK;
    free(in_index);
    return st;
}

static gx_status match_node(const matching *m, uint32_t node, const uint64_t *allowed, uint64_t *words);

static bool holds_phrase(const gx_boolean *b, uint32_t node)
{
    bool holds = b->nodes[node].kind == GX_MATCH_PHRASE;
    for (uint32_t c = b->nodes[node].first; c != NONE && !holds; c = b->nodes[c].next)
        holds = holds_phrase(b, c);
    return holds;
}

/* Join the children, phrases last: of an AND they are sought in what the others have left. */
static gx_status match_children(const matching *m, const gx_match *n, const uint64_t *allowed, uint64_t *words)
{
    gx_status st = GX_OK;
    bool first = true;
    uint64_t *other = malloc((m->n_words + 1) * sizeof *other);
    if (!other)
        return gx_fail(m->err, GX_ENOMEM, "no memory for the documents of a boolean query");
    for (int phrases = 0; phrases < 2; ++phrases)
        for (uint32_t c = n->first; st == GX_OK && c != NONE; c = m->b->nodes[c].next) {
            if (holds_phrase(m->b, c) != phrases)
                continue;
            const bool within = n->kind == GX_MATCH_AND && !first;
            st = match_node(m, c, within ? words : allowed, first ? words : other);
            for (size_t w = 0; st == GX_OK && !first && w < m->n_words; ++w)
                words[w] = n->kind == GX_MATCH_AND ? words[w] & other[w] : words[w] | other[w];
            first = false;
        }
    free(other);
    return st;
}

/* The recursion is as deep as the tree, which the parser bounds. What matches besides `allowed` is not told. */
static gx_status match_node(const matching *m, uint32_t node, const uint64_t *allowed, uint64_t *words)
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
    if (n->kind == GX_MATCH_PHRASE)
        return match_phrase(m, n->list, allowed, words);
    if (n->kind == GX_MATCH_NOT) {
        const gx_status st = match_node(m, n->first, allowed, words);
        invert(m, words);
        return st;
    }
    return match_children(m, n, allowed, words);
}

gx_status gx_boolean_match(const gx_boolean *b, const gx_plan *plan, const gx_boolean_leaves *leaves, uint64_t *words,
                           gx_error *err)
{
    const matching m = {b, plan, leaves, ((size_t)b->ix->n_docs + 63) / 64, err};
    memset(words, 0, m.n_words * sizeof *words);
    return b->root == NONE ? GX_OK : match_node(&m, b->root, NULL, words);
}
