/* filter_collect.c: the documents of rare filters, without a look at the others. */
#include "index/attribute_order.h"
#include "query/filter.h"
#include "query/mask.h"

#define ANY UINT64_MAX /* more than can be counted: the documents cannot be found by an order */
#define LEAST_RUN 16u  /* documents of a value, on average, that make its run worth its while */

typedef struct marks {
    uint32_t *words;
    bool *groups;
    uint32_t n;
} marks;

/* Where the documents of a range are in its column's order. false: no memory. */
static bool find_range(const gx_filter *f, const gx_filter_node *n, const gx_column_order **order, uint64_t *begin,
                       uint64_t *end)
{
    gx_column *c = &f->ix->columns[n->column];
    uint64_t low, high;
    *begin = *end = 0;
    if (!(*order = gx_column_get_order(f->ix, c)))
        return false;
    if (gx_filter_range(c, n, &low, &high))
        gx_column_order_range(c, *order, low, high, begin, end);
    return true;
}

/* The most documents that are visited for a node. */
static uint64_t count_visited(const gx_filter *f, uint32_t i)
{
    const gx_filter_node *n = &f->nodes[i];
    const gx_column_order *order;
    uint64_t begin, end, sum = 0, least = ANY;
    switch (n->kind) {
    case GX_FILTER_RANGE:
        return find_range(f, n, &order, &begin, &end) ? end - begin : ANY;
    case GX_FILTER_IDS:
        return n->n_ids;
    case GX_FILTER_AND:
    case GX_FILTER_OR:
        for (uint32_t c = n->first; c != UINT32_MAX; c = f->nodes[c].next) {
            const uint64_t visited = count_visited(f, c);
            least = visited < least ? visited : least;
            sum = visited == ANY || sum == ANY ? ANY : sum + visited;
        }
        return n->kind == GX_FILTER_AND ? least : sum;
    default:
        return ANY;
    }
}

static void set(marks *out, uint32_t docid)
{
    uint32_t *word = &out->words[docid / 32];
    const uint32_t bit = UINT32_C(1) << docid % 32;
    out->n += !(*word & bit);
    *word |= bit;
    out->groups[docid / GX_MASK_GROUP] = true;
}

static void mark_ids(const gx_filter *f, const uint64_t *ids, marks *out)
{
    for (size_t w = 0; w < ((size_t)f->ix->n_docs + 63) / 64; ++w)
        for (uint64_t bits = ids[w]; bits; bits &= bits - 1)
            set(out, (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(bits));
}

/* The child of an AND of which the fewest documents are visited. */
static uint32_t find_rarest(const gx_filter *f, const gx_filter_node *n)
{
    uint32_t rarest = n->first;
    uint64_t least = ANY;
    for (uint32_t c = n->first; c != UINT32_MAX; c = f->nodes[c].next) {
        const uint64_t visited = count_visited(f, c);
        if (visited < least) {
            least = visited;
            rarest = c;
        }
    }
    return rarest;
}

/* The node can be visited. */
static void mark(const gx_filter *f, uint32_t i, marks *out)
{
    const gx_filter_node *n = &f->nodes[i];
    const gx_column_order *order;
    uint64_t begin, end;
    if (n->kind == GX_FILTER_RANGE) {
        find_range(f, n, &order, &begin, &end);
        for (uint64_t at = begin; at < end; ++at)
            set(out, order->docids[at]);
    } else if (n->kind == GX_FILTER_IDS) {
        mark_ids(f, n->ids, out);
    } else if (n->kind == GX_FILTER_OR) {
        for (uint32_t c = n->first; c != UINT32_MAX; c = f->nodes[c].next)
            mark(f, c, out);
    } else {
        mark(f, find_rarest(f, n), out);
    }
}

uint32_t gx_filter_mark(const gx_filter *f, uint32_t *words, bool *groups)
{
    marks out = {words, groups, 0};
    mark(f, f->root, &out);
    return out.n;
}

static bool is_exact(const gx_filter *f, uint32_t i)
{
    const gx_filter_node *n = &f->nodes[i];
    bool exact = n->kind == GX_FILTER_RANGE || n->kind == GX_FILTER_IDS || n->kind == GX_FILTER_OR;
    for (uint32_t c = n->first; n->kind == GX_FILTER_OR && exact && c != UINT32_MAX; c = f->nodes[c].next)
        exact = is_exact(f, c);
    return exact;
}

/* The docids of a range, if they are different and in long runs: those of one value, or of a few values
 * that no document shares. */
static void find_runs(const gx_filter *f, const gx_filter_node *n, gx_filter_documents *found)
{
    const gx_column *c = &f->ix->columns[n->column];
    const gx_column_order *order;
    uint64_t begin, end, low, high;
    if (!find_range(f, n, &order, &begin, &end) || !order->starts || !gx_filter_range(c, n, &low, &high))
        return;
    high = high < order->n_starts ? high : order->n_starts - 1;
    const uint64_t more_values = high - low; /* than one */
    if (end == begin || (more_values && (c->starts || (end - begin) / LEAST_RUN <= more_values)))
        return;
    found->docids = order->docids + begin;
    found->n_runs = (uint32_t)more_values + 1;
}

gx_filter_documents gx_filter_find(const gx_filter *f)
{
    uint32_t i = f->root;
    gx_filter_documents found = {count_visited(f, i), NULL, 0, is_exact(f, i)};
    while (found.n != ANY && f->nodes[i].kind == GX_FILTER_AND)
        i = find_rarest(f, &f->nodes[i]);
    if (found.n != ANY && f->nodes[i].kind == GX_FILTER_RANGE)
        find_runs(f, &f->nodes[i], &found);
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
