#include "query/filter/filter_collect.h"

#include <string.h>

#include "index/attributes/attribute_order.h"
#include "query/filter/mask.h"

#define ANY UINT64_MAX /* more than can be counted: the documents cannot be found by an order */
#define SAMPLE 32u     /* of the visited documents: those that are tested to guess how many the filter selects */
#define TRUST 2.0      /* documents in a sample that weigh as much as what independent conditions would select */

/* A filter, and whether a look at the samples of orders is enough. */
typedef struct finder {
    const gx_filter *f;
    bool roughly;
} finder;

/* How a node's documents are found: those of one node below it are visited. */
typedef struct visit {
    uint64_t n;    /* documents at most; ANY */
    uint32_t node; /* whose documents these are: a range, ids or an OR */
    /* Of a range: docids[begin, end) of the order, or roughly some more; of its NOT, all others, or roughly more. */
    const gx_column_order *order;
    uint64_t begin, end;
    bool outside;
    double share; /* of all documents, about what is selected: as if conditions were not correlated */
} visit;

/* outside: all others are meant. */
static visit visit_range(finder by, uint32_t i, bool outside)
{
    const gx_filter_node *n = &by.f->nodes[i];
    gx_column *c = &by.f->ix->columns[n->column];
    visit v = {.node = i, .order = gx_column_get_order(by.f->ix, c)};
    uint64_t low, high;
    if (v.order && gx_filter_range(c, n, &low, &high)) {
        if (by.roughly) {
            const gx_place_bounds b = gx_column_order_bracket(c, v.order, low, high);
            v.begin = outside ? b.begin_most : b.begin_least;
            v.end = outside ? b.end_least : b.end_most;
            v.end = v.end < v.begin ? v.begin : v.end;
        } else {
            gx_column_order_range(c, v.order, low, high, &v.begin, &v.end);
        }
    }
    v.n = v.order ? v.end - v.begin : ANY;
    return v;
}

static visit visit_node(finder by, uint32_t i);

/* Whether the documents of a NOT are those of a range's other values: each has one value. */
static bool is_other_values(const gx_filter *f, const gx_filter_node *n)
{
    const gx_filter_node *child = n->kind == GX_FILTER_NOT ? &f->nodes[n->first] : n;
    const gx_column *c = &f->ix->columns[child->column];
    return child != n && child->kind == GX_FILTER_RANGE && !c->starts && !c->present;
}

static visit visit_not(finder by, uint32_t i)
{
    visit v = visit_range(by, by.f->nodes[i].first, true);
    v.node = i;
    v.outside = true;
    if (v.n != ANY)
        v.n = v.order->n == by.f->ix->n_docs ? v.order->n - v.n : ANY; /* a damaged file may lack some */
    return v;
}

/* Document number i of those visited. */
static uint32_t visited(const visit *v, uint64_t i)
{
    return v->order->docids[!v->outside ? v->begin + i : i < v->begin ? i : v->end + (i - v->begin)];
}

/* The documents of the child that has the fewest. */
static visit visit_and(finder by, const gx_filter_node *n)
{
    visit rarest = visit_node(by, n->first);
    double share = rarest.share;
    for (uint32_t c = by.f->nodes[n->first].next; c != UINT32_MAX; c = by.f->nodes[c].next) {
        const visit v = visit_node(by, c);
        share *= v.share;
        rarest = v.n < rarest.n ? v : rarest;
    }
    rarest.share = share;
    return rarest;
}

/* The documents of all children. */
static visit visit_or(finder by, uint32_t i)
{
    visit all = {.n = 0, .node = i};
    for (uint32_t c = by.f->nodes[i].first; c != UINT32_MAX && all.n != ANY; c = by.f->nodes[c].next) {
        const visit v = visit_node(by, c);
        all.n = v.n == ANY ? ANY : all.n + v.n;
        all.share += v.share - all.share * v.share;
    }
    return all;
}

static visit visit_node(finder by, uint32_t i)
{
    const gx_filter_node *n = &by.f->nodes[i];
    const uint32_t n_docs = by.f->ix->n_docs;
    visit v = {.n = ANY, .node = i};
    if (n->kind == GX_FILTER_AND)
        return visit_and(by, n);
    if (n->kind == GX_FILTER_RANGE)
        v = visit_range(by, i, false);
    else if (n->kind == GX_FILTER_OR)
        v = visit_or(by, i);
    else if (n->kind == GX_FILTER_IDS)
        v.n = n->n_ids;
    else if (is_other_values(by.f, n))
        v = visit_not(by, i);
    if (v.n == ANY) /* most documents, for want of better */
        v.share = 1;
    else if (n->kind != GX_FILTER_OR)
        v.share = v.n < n_docs ? (double)v.n / n_docs : 1;
    return v;
}

/* ---- marking ---- */

typedef struct marks {
    uint32_t *words;
    bool *groups;
    uint32_t n;
} marks;

static void set(marks *out, uint32_t docid)
{
    uint32_t *word = &out->words[docid / 32];
    const uint32_t bit = UINT32_C(1) << docid % 32;
    out->n += !(*word & bit);
    *word |= bit;
    out->groups[docid / GX_MASK_GROUP] = true;
}

static void mark_ids(const gx_filter *f, const gx_filter_node *n, marks *out)
{
    for (uint32_t i = 0; n->docids && i < n->n_ids; ++i)
        set(out, n->docids[i]);
    for (size_t w = 0; n->ids && w < ((size_t)f->ix->n_docs + 63) / 64; ++w)
        for (uint64_t bits = n->ids[w]; bits; bits &= bits - 1)
            set(out, (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(bits));
}

static void mark(const gx_filter *f, const visit *v, marks *out)
{
    const gx_filter_node *n = &f->nodes[v->node];
    if (n->kind == GX_FILTER_IDS)
        mark_ids(f, n, out);
    for (uint64_t at = 0; v->order && at < v->n; ++at)
        set(out, visited(v, at));
    for (uint32_t c = n->kind == GX_FILTER_OR ? n->first : UINT32_MAX; c != UINT32_MAX; c = f->nodes[c].next) {
        const visit child = visit_node((finder){f, false}, c);
        mark(f, &child, out);
    }
}

uint32_t gx_filter_mark(const gx_filter *f, uint32_t *words, bool *groups)
{
    marks out = {words, groups, 0};
    const visit v = visit_node((finder){f, false}, f->root);
    mark(f, &v, &out);
    return out.n;
}

/* ---- finding ---- */

static bool is_exact(const gx_filter *f, uint32_t i)
{
    const gx_filter_node *n = &f->nodes[i];
    bool exact =
        n->kind == GX_FILTER_RANGE || n->kind == GX_FILTER_IDS || n->kind == GX_FILTER_OR || is_other_values(f, n);
    for (uint32_t c = n->first; n->kind == GX_FILTER_OR && exact && c != UINT32_MAX; c = f->nodes[c].next)
        exact = is_exact(f, c);
    return exact;
}

/* Add docids [begin, end) of the order, if there are any. false: these are too many spans. */
static bool add_span(const gx_column_order *o, uint64_t begin, uint64_t end, gx_filter_documents *found)
{
    if (begin == end)
        return true;
    if (found->n_spans == GX_FILTER_SPANS)
        return false;
    found->spans[found->n_spans++] = (gx_filter_span){o->docids + begin, (uint32_t)(end - begin)};
    return true;
}

/* Add the docids of a visited node. false: they do not lie in orders, or in too many spans. */
static bool add_spans(const gx_filter *f, const visit *v, gx_filter_documents *found)
{
    const gx_filter_node *n = &f->nodes[v->node];
    bool added = n->kind == GX_FILTER_OR;
    if (v->order && v->outside)
        return add_span(v->order, 0, v->begin, found) && add_span(v->order, v->end, v->order->n, found);
    if (v->order)
        return add_span(v->order, v->begin, v->end, found);
    for (uint32_t c = added ? n->first : UINT32_MAX; added && c != UINT32_MAX; c = f->nodes[c].next) {
        const visit child = visit_node((finder){f, false}, c);
        added = add_spans(f, &child, found);
    }
    return added;
}

/* Whether the documents of a range are those of one value. */
static bool is_one_value(const gx_filter *f, const visit *v)
{
    const gx_filter_node *n = &f->nodes[v->node];
    uint64_t low, high;
    return n->kind == GX_FILTER_RANGE && v->order && v->order->starts &&
           gx_filter_range(&f->ix->columns[n->column], n, &low, &high) && low == high;
}

static void find_spans(const gx_filter *f, const visit *v, gx_filter_documents *found)
{
    if (v->n == 0 || v->n >= UINT32_MAX || !add_spans(f, v, found)) {
        found->n_spans = 0;
        return;
    }
    const bool one_value = is_one_value(f, v);
    found->rising = one_value;
    found->repeated = !one_value && (!v->order || (!v->outside && f->ix->columns[f->nodes[v->node].column].starts));
}

/* gx_filter_test of n documents of a node, at most SAMPLE, which is not asked again if it is the root or its child. */
static void test_visited(const gx_filter *f, uint32_t node, const uint32_t *docids, uint32_t n, uint8_t *keep)
{
    const bool conjunction = f->nodes[f->root].kind == GX_FILTER_AND;
    uint8_t other[SAMPLE];
    memset(keep, 1, n);
    for (uint32_t c = conjunction ? f->nodes[f->root].first : f->root; c != UINT32_MAX; c = f->nodes[c].next) {
        gx_filter child = *f;
        child.root = c;
        if (c == node)
            continue;
        gx_filter_test(&child, docids, n, other);
        for (uint32_t i = 0; i < n; ++i)
            keep[i] &= other[i];
    }
}

/* About how many of the visited documents the filter selects: as many as of a sample, but few tell little.
 * Then it is as if the other conditions were not correlated with the one whose documents are visited. */
static uint64_t guess_selected(const gx_filter *f, const visit *v)
{
    uint32_t docids[SAMPLE], n = v->n < SAMPLE ? (uint32_t)v->n : SAMPLE, n_kept = 0;
    uint8_t keep[SAMPLE];
    const double independent = v->share * f->ix->n_docs / (double)v->n; /* of one visited */
    for (uint32_t i = 0; i < n; ++i)
        docids[i] = visited(v, v->n * i / n);
    test_visited(f, v->node, docids, n, keep);
    for (uint32_t i = 0; i < n; ++i)
        n_kept += keep[i];
    const double share = independent * (n_kept + TRUST) / (n * independent + TRUST);
    return (uint64_t)((double)v->n * (share < 1 ? share : 1));
}

gx_filter_documents gx_filter_find(const gx_filter *f, uint64_t few)
{
    visit v = visit_node((finder){f, true}, f->root);
    const bool roughly = v.n / 2 >= few;
    if (!roughly)
        v = visit_node((finder){f, false}, f->root);
    gx_filter_documents found = {.n = v.n, .selected = v.n, .exact = is_exact(f, f->root)};
    found.node = is_exact(f, v.node) ? v.node : UINT32_MAX;
    if (v.n == ANY)
        return found;
    if (!roughly)
        find_spans(f, &v, &found);
    if (!found.exact && v.n)
        found.selected = v.order ? guess_selected(f, &v) : (uint64_t)(v.share * f->ix->n_docs);
    found.selected = found.selected < v.n ? found.selected : v.n;
    return found;
}

bool gx_filter_has_orders(const gx_filter *f)
{
    for (uint32_t i = 0; i < f->n_nodes; ++i) {
        const gx_filter_node *n = &f->nodes[i];
        if (n->kind == GX_FILTER_RANGE && !__atomic_load_n(&f->ix->columns[n->column].order, __ATOMIC_ACQUIRE))
            return false;
    }
    return true;
}

void gx_filter_bound(const gx_filter *f, uint32_t *first, uint32_t *end)
{
    const gx_filter_node *root = &f->nodes[f->root];
    const bool conjunction = root->kind == GX_FILTER_AND;
    *first = 0;
    *end = f->ix->n_docs;
    for (uint32_t i = conjunction ? root->first : f->root; i != UINT32_MAX; i = f->nodes[i].next) {
        const gx_filter_node *n = &f->nodes[i];
        uint64_t low, high;
        if (n->kind != GX_FILTER_RANGE || !gx_filter_range(&f->ix->columns[n->column], n, &low, &high))
            continue;
        const gx_column_order *order = __atomic_load_n(&f->ix->columns[n->column].order, __ATOMIC_ACQUIRE);
        uint32_t from = 0, to = f->ix->n_docs;
        if (order)
            gx_column_order_bound(order, f->ix->n_docs, low, high, &from, &to);
        *first = from > *first ? from : *first;
        *end = to < *end ? to : *end;
    }
    if (*end <= *first)
        *first = *end = 0;
}
