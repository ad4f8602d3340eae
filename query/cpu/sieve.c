#include "query/cpu/sieve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "index/attributes/attribute_bins.h"
#include "index/attributes/attribute_codes.h"

#define MOST_PASS 0.8f /* a sieve that lets more documents pass is none */

/* What passes a node. */
typedef enum outcome { ALL, NONE, SOME } outcome;

typedef struct maker {
    const gx_filter *f;
    gx_cpu_sieve *s;
    float share; /* of all documents, about what passes the last node of which SOME does */
} maker;

/* false: no room */
static bool add(maker *m, gx_cpu_sieve_step step)
{
    if (m->s->n_steps == GX_CPU_SIEVE_STEPS)
        return false;
    m->s->steps[m->s->n_steps++] = step;
    return true;
}

/* The bins that may have, or if `inverted` those that have alone, what the node selects. ALL, NONE: it selects all or
 * none, or there is no memory (ALL). */
static outcome find_bins(maker *m, const gx_filter_node *n, bool inverted, const gx_column_bins **bins, uint32_t *first,
                         uint32_t *end)
{
    gx_column *c = &m->f->ix->columns[n->column];
    uint64_t low, high;
    *bins = gx_column_get_bins(m->f->ix, c);
    if (!*bins || (!c->starts && !c->present && c->order->n != m->f->ix->n_docs)) /* a damaged file may lack some */
        return ALL;
    if (!gx_filter_range(c, n, &low, &high))
        return inverted ? ALL : NONE;
    const gx_place_bounds b = gx_column_order_bracket(c, c->order, low, high);
    const uint64_t begin = inverted ? b.begin_most : b.begin_least, stop = inverted ? b.end_least : b.end_most;
    if (begin >= stop)
        return inverted ? ALL : NONE;
    gx_bins_of(*bins, begin, stop, inverted, first, end);
    return *first < *end ? SOME : ALL;
}

/* The bits of bins [first, end) of a column with one value a document: those before `end` and not before `first`. */
static outcome add_difference(maker *m, gx_column *c, const gx_column_bins *bins, uint32_t first, uint32_t end,
                              gx_cpu_sieve_step step)
{
    const gx_index *ix = m->f->ix;
    const bool has_end = end < bins->n || c->order->n < ix->n_docs;
    step.in = has_end ? gx_column_get_bin_bits(ix, c, bins, end) : NULL;
    step.out = first ? gx_column_get_bin_bits(ix, c, bins, first) : NULL;
    if ((has_end && !step.in) || (first && !step.out) || (!step.in && !step.out))
        return ALL;
    m->share = (float)(bins->places[end] - bins->places[first]) / (float)ix->n_docs;
    m->share = step.inverted ? 1 - m->share : m->share;
    return add(m, step) ? SOME : ALL;
}

/* The bits of bins [first, end) of a column with several values a document: any of some bitmaps. */
static outcome add_union(maker *m, gx_column *c, const gx_column_bins *bins, uint32_t first, uint32_t end,
                         gx_cpu_sieve_step step)
{
    const gx_cpu_sieve_how own = step.inverted ? GX_CPU_SIEVE_AND : GX_CPU_SIEVE_OR, whole = step.how;
    const float n = (float)(bins->places[end] - bins->places[first]) / (float)m->f->ix->n_docs;
    bool added = true;
    step.how = GX_CPU_SIEVE_PUSH;
    for (uint32_t i = first; i < end && added; step.how = own) {
        uint32_t shift = 0;
        while (shift < GX_BINS_SHIFT && i % (2u << shift) == 0 && i + (2u << shift) <= end)
            ++shift;
        step.in = gx_column_get_bin_bits(m->f->ix, c, bins, (1u << (GX_BINS_SHIFT - shift)) + (i >> shift));
        added = step.in && add(m, step);
        i += 1u << shift;
    }
    if (added && whole != GX_CPU_SIEVE_PUSH)
        added = add(m, (gx_cpu_sieve_step){.how = whole, .pops = true});
    m->share = step.inverted ? expf(-n) : 1 - expf(-n); /* as if values were not correlated */
    return added ? SOME : ALL;
}

static outcome add_range(maker *m, const gx_filter_node *n, gx_cpu_sieve_step step)
{
    gx_column *c = &m->f->ix->columns[n->column];
    const gx_column_bins *bins;
    uint32_t first, end;
    const outcome o = find_bins(m, n, step.inverted, &bins, &first, &end);
    if (c->starts && o != NONE && !n->none && n->low == n->high &&
        (step.in = gx_column_get_documents(m->f->ix, c, n->low))) {
        m->share = (float)(c->order->starts[n->low + 1] - c->order->starts[n->low]) / (float)m->f->ix->n_docs;
        m->share = step.inverted ? 1 - m->share : m->share;
        return add(m, step) ? SOME : ALL;
    }
    if (o != SOME)
        return o;
    return c->starts ? add_union(m, c, bins, first, end, step) : add_difference(m, c, bins, first, end, step);
}

static outcome add_node(maker *m, uint32_t i, gx_cpu_sieve_step step, uint32_t depth);

/* AND and OR; of what is inverted, the other. */
static outcome add_series(maker *m, const gx_filter_node *n, gx_cpu_sieve_step step, uint32_t depth)
{
    const bool conjunction = (n->kind == GX_FILTER_AND) != step.inverted;
    const gx_cpu_sieve_how own = conjunction ? GX_CPU_SIEVE_AND : GX_CPU_SIEVE_OR;
    float others = 1; /* of the share: of AND what passes, of OR what does not */
    bool any = false;
    for (uint32_t c = n->first; c != UINT32_MAX; c = m->f->nodes[c].next) {
        const gx_cpu_sieve_step child = {.how = any ? own : GX_CPU_SIEVE_PUSH, .inverted = step.inverted};
        const uint32_t before = m->s->n_steps;
        const outcome o = add_node(m, c, child, depth + 1);
        if (o != SOME)
            m->s->n_steps = before;
        if (o == (conjunction ? NONE : ALL))
            return o;
        others *= o != SOME ? 1 : conjunction ? m->share : 1 - m->share;
        any = any || o == SOME;
    }
    m->share = conjunction ? others : 1 - others;
    if (!any)
        return conjunction ? ALL : NONE;
    return step.how == GX_CPU_SIEVE_PUSH || add(m, (gx_cpu_sieve_step){.how = step.how, .pops = true}) ? SOME : ALL;
}

/* Add the steps of a node to what is on the stack. Where not SOME passes, the caller takes them away again. */
static outcome add_node(maker *m, uint32_t i, gx_cpu_sieve_step step, uint32_t depth)
{
    const gx_filter_node *n = &m->f->nodes[i];
    if (depth + 2 > GX_CPU_SIEVE_DEPTH) /* two levels, of several bitmaps of a range too */
        return ALL;
    switch (n->kind) {
    case GX_FILTER_AND:
    case GX_FILTER_OR:
        return add_series(m, n, step, depth);
    case GX_FILTER_NOT:
        step.inverted = !step.inverted;
        return add_node(m, n->first, step, depth);
    case GX_FILTER_RANGE:
        return add_range(m, n, step);
    default:
        return ALL;
    }
}

static bool reserve(gx_cpu_sieve *s, uint32_t n_docs)
{
    const size_t n_groups = n_docs / GX_CPU_GROUP + 1;
    if (!s->bits)
        s->bits = aligned_alloc(64, (n_groups * (GX_CPU_GROUP / 32) + 48) * sizeof *s->bits);
    if (!s->made)
        s->made = calloc(n_groups, sizeof *s->made);
    if (++s->serial == 0 && s->made) {
        memset(s->made, 0, n_groups * sizeof *s->made);
        s->serial = 1;
    }
    return s->bits && s->made;
}

void gx_cpu_sieve_free(gx_cpu_sieve *s)
{
    free(s->bits);
    free(s->made);
}

void gx_cpu_sieve_make(gx_cpu_sieve *s, const gx_filter *f)
{
    maker m = {f, s, 0};
    s->n_steps = 0;
    const outcome o = add_node(&m, f->root, (gx_cpu_sieve_step){.how = GX_CPU_SIEVE_PUSH}, 0);
    s->share = m.share;
    if (o != SOME || m.share > MOST_PASS || !reserve(s, f->ix->n_docs)) {
        s->n_steps = 0;
        return;
    }
    uint32_t n_bitmaps = 0;
    for (uint32_t i = 0; i < s->n_steps; ++i)
        n_bitmaps += (s->steps[i].in != NULL) + (s->steps[i].out != NULL);
    s->cost = GX_CPU_SIEVE_COST + GX_CPU_SIEVE_COST_OF_BITMAP * (float)n_bitmaps;
}
