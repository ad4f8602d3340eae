/* walk.c: reads the documents of a file in the order of an attribute, and tests whether they match. */
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/attributes/attribute_order.h"
#include "query/filter/filter.h"
#include "query/filter/mask.h"
#include "query/order/ordered.h"

#define AT_ONCE 64u
#define STEPS_AT_ONCE 1024u
/* Steps of a walk: a document that is tested by its bits, and one that is also tested by a filter, take about as long
 * as this many documents of all matches that are found and looked through. */
#define STEP_COST 2
#define FILTER_STEP_COST 12
#define FREE_STEPS 2048u

static bool is_in_lists(const gx_matcher *m, uint32_t docid)
{
    for (uint32_t i = 0; i < m->n_bits; ++i)
        if ((m->bits[i][docid / 32] >> docid % 32 & 1) != m->all)
            return !m->all;
    return m->all;
}

uint32_t gx_matcher_keep(const gx_matcher *m, uint32_t *docids, uint32_t n)
{
    uint8_t keep[AT_ONCE];
    uint32_t kept = 0;
    if (m->words) { /* which are under mask and filter */
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t docid = docids[i];
            docids[kept] = docid;
            kept += m->words[docid / 64] >> docid % 64 & 1;
        }
        return kept;
    }
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t docid = docids[i];
        docids[kept] = docid;
        kept += (m->every || is_in_lists(m, docid)) && (!m->mask || gx_mask_has(m->mask, docid));
    }
    if (!m->filter || !kept)
        return kept;
    n = kept;
    kept = 0;
    gx_filter_test(m->filter, docids, n, keep);
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t docid = docids[i];
        docids[kept] = docid;
        kept += keep[i];
    }
    return kept;
}

/* A walk along the order of the first level's attribute. */
typedef struct walk {
    const gx_ordered_file *f;
    const gx_matcher *m;
    const gx_sort_level *level;
    const gx_column *c;
    const gx_column_order *order;
    uint64_t at, end; /* places that are left: [at, end) */
    uint64_t n_left;  /* steps that may still be taken */
    bool several;     /* a document may be at several places, of which the first one counts */
    bool by_docid;    /* of equal values documents come by rising docid, and no more are read than are wanted */
    uint64_t group, group_end; /* with by_docid: the places [group, group_end) of one value, of which `at` is one */
    bool whole;                /* all matches are at these places */
} walk;

/* The document of a place, counted from the end that comes first. */
static uint32_t docid_at(const walk *w, uint64_t at)
{
    return w->order->docids[w->level->falling ? w->order->n - 1 - at : at];
}

/* The same in the group that the place is in, whose docids rise. */
static uint32_t docid_in_group(const walk *w, uint64_t at)
{
    return w->order->docids[w->level->falling ? w->order->n - w->group_end + (at - w->group) : at];
}

/* The key of the value at a place. */
static uint64_t key_at(const walk *w, uint64_t at)
{
    const gx_column_order *o = w->order;
    if (!w->several)
        return gx_sort_local_key(w->level, w->c, docid_at(w, at));
    const uint64_t place = w->level->falling ? o->n - 1 - at : at;
    if (o->places)
        return gx_sort_raw_key(w->level, w->c, gx_column_raw(w->c, o->places[place]));
    uint64_t low = 0, high = o->n_starts - 1; /* the last value that starts at the place or before */
    while (low < high) {
        const uint64_t middle = low + (high - low + 1) / 2;
        if (o->starts[middle] <= place)
            low = middle;
        else
            high = middle - 1;
    }
    return gx_sort_raw_key(w->level, w->c, low);
}

/* The first place whose key is at least `key`. */
static uint64_t find_place(const walk *w, uint64_t key)
{
    uint64_t low = w->at, high = w->end;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (key_at(w, middle) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The place `at` is the first one of a group: find its end, by steps that double. */
static void find_group(walk *w)
{
    const uint64_t key = key_at(w, w->at);
    uint64_t low = w->at, step = 1;
    while (w->end - low > step && key_at(w, low + step) == key) {
        low += step;
        step *= 2;
    }
    uint64_t high = w->end - low > step ? low + step : w->end; /* the end is in (low, high] */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (key_at(w, middle) == key)
            low = middle;
        else
            high = middle;
    }
    w->group = w->at;
    w->group_end = high;
}

/* Pass the documents of the group at `at` that do not come behind the place of a cursor. */
static void pass_group(walk *w, uint64_t docid)
{
    find_group(w);
    uint64_t low = w->group, high = w->group_end;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (gx_ordered_docid(w->f, docid_in_group(w, middle)) < docid)
            low = middle + 1;
        else
            high = middle;
    }
    w->at = low;
}

/* Take the next places, as far as their keys are `last` (bounded: else any): the documents that match go to
 * docids[AT_ONCE], of which there are *n. false: no places are left. */
static bool step(walk *w, bool bounded, uint64_t last, uint32_t *docids, uint32_t *n)
{
    uint32_t n_read = 0, n_steps = 0;
    while (n_read < AT_ONCE && n_steps < STEPS_AT_ONCE && w->at < w->end) {
        const uint64_t key = bounded || w->several ? key_at(w, w->at) : 0;
        if (bounded && key != last)
            break;
        if (w->by_docid && w->at >= w->group_end)
            find_group(w);
        docids[n_read] = w->by_docid ? docid_in_group(w, w->at) : docid_at(w, w->at);
        ++w->at;
        n_read += !w->several || gx_sort_local_key(w->level, w->c, docids[n_read]) == key;
        ++n_steps;
    }
    *n = n_read ? gx_matcher_keep(w->m, docids, n_read) : 0;
    w->n_left -= n_steps < w->n_left ? n_steps : w->n_left;
    return n_steps > 0;
}

/* Documents that a walk has found. */
typedef struct found {
    uint32_t *docids; /* [n] */
    size_t n, max;
} found;

static bool add(found *x, const uint32_t *docids, uint32_t n)
{
    if (!n)
        return true;
    if (!gx_reserve(&x->docids, &x->max, x->n + n, sizeof *x->docids))
        return false;
    memcpy(x->docids + x->n, docids, n * sizeof *docids);
    x->n += n;
    return true;
}

/* Find all documents with the key; false: no memory, or the steps are spent, which w->n_left tells. */
static bool find_equal(walk *w, uint64_t key, found *x)
{
    uint32_t docids[AT_ONCE], n;
    while (step(w, true, key, docids, &n)) {
        if (!add(x, docids, n) || !w->n_left)
            return false;
    }
    return true;
}

/* Find `wanted` documents, and all with the key of the last one; as find_equal. *few: there are not so many. */
static bool find_first(walk *w, size_t wanted, found *x, bool *few)
{
    uint32_t docids[AT_ONCE], n = 0;
    *few = false;
    while (x->n < wanted && (*few = !step(w, false, 0, docids, &n), !*few)) {
        if (!add(x, docids, n) || !w->n_left)
            return false;
    }
    if (*few || wanted == 0 || w->by_docid)
        return true;
    const uint64_t last = gx_sort_local_key(w->level, w->c, x->docids[wanted - 1]);
    return key_at(w, w->at - 1) != last || find_equal(w, last, x);
}

/* The steps that a walk may take before finding all matches would have been better; 0: none. */
static uint64_t most_steps(const gx_ordering *o, const walk *w)
{
    const double n_docs = w->f->ix->n_docs, share = w->m->share > 1 / n_docs ? w->m->share : 1 / n_docs;
    const double cost = w->m->filter && !w->m->words ? FILTER_STEP_COST : STEP_COST;
    const double all = w->m->words ? n_docs / 64 + n_docs * share : n_docs / 8 + n_docs * share;
    const double steps = all / cost + FREE_STEPS;
    const double expected = o->k / share * (double)(w->end - w->at) / n_docs;
    return expected <= steps || w->end - w->at <= steps ? (uint64_t)steps : 0;
}

/* The order of the attribute: the second query that wants it makes it. */
static const gx_column_order *find_order(gx_ordering *o, const gx_ordered_file *f, gx_column *c)
{
    const gx_column_order *order = __atomic_load_n(&c->order, __ATOMIC_ACQUIRE);
    if (!order && !o->counted && __atomic_fetch_add(&c->n_scans, 1, __ATOMIC_RELAXED) > 0)
        order = gx_column_get_order(f->ix, c);
    o->counted = true;
    return order;
}

static bool has_all(const gx_column *c, const gx_ordered_file *f)
{
    return (!c->starts && !c->present) || c->n_present == f->ix->n_docs;
}

static bool is_walkable(const gx_ordering *o, const gx_ordered_file *f, const gx_column *c)
{
    const gx_position *after = o->after;
    return (has_all(c, f) || !o->sort->levels[0].missing_first) && !(after && after->values[0].missing);
}

/* A condition on the attribute that all matches meet; NULL: there is none. */
static const gx_filter_node *find_range(const gx_filter *f, uint32_t column)
{
    const gx_filter_node *node = f ? &f->nodes[f->root] : NULL;
    uint32_t child = node && node->kind == GX_FILTER_AND ? node->first : UINT32_MAX;
    if (node && node->kind == GX_FILTER_RANGE && node->column == column)
        return node;
    for (; child != UINT32_MAX; child = f->nodes[child].next)
        if (f->nodes[child].kind == GX_FILTER_RANGE && f->nodes[child].column == column)
            return &f->nodes[child];
    return NULL;
}

/* The places where matches may be. */
static void set_places(walk *w)
{
    const gx_column_order *o = w->order;
    const gx_filter_node *range = w->several ? NULL : find_range(w->m->filter, w->level->column);
    uint64_t low, high, begin = 0, end = 0;
    w->end = o->n;
    w->whole = range || has_all(w->c, w->f);
    if (!range)
        return;
    if (gx_filter_range(w->c, range, &low, &high))
        gx_column_order_range(w->c, o, low, high, &begin, &end);
    w->at = w->level->falling ? o->n - end : begin;
    w->end = w->level->falling ? o->n - begin : end;
}

gx_status gx_ordered_walk(gx_ordering *o, const gx_ordered_file *f, const gx_matcher *m, bool *done)
{
    const gx_sort_level *level = &o->sort->levels[0];
    gx_column *c = &f->ix->columns[level->column];
    *done = false;
    if (!is_walkable(o, f, c))
        return GX_OK;
    walk w = {.f = f,
              .m = m,
              .level = level,
              .c = c,
              .order = find_order(o, f, c),
              .several = c->starts && c->type != GX_ATTRIBUTE_KEYWORD,
              .by_docid = !o->scored && o->sort->n == 1};
    if (w.order)
        set_places(&w);
    if (!w.order || !(w.n_left = most_steps(o, &w)))
        return GX_OK;
    found x = {0};
    bool few = false;
    uint32_t n_taken = 0, n_more = 0;
    gx_status st = GX_OK;
    const size_t n_before = o->n;
    if (o->after) {
        const uint64_t key = gx_sort_key_of_value(f->ix, level, &o->after->values[0]);
        w.at = find_place(&w, key);
        if (w.by_docid && w.at < w.end && key_at(&w, w.at) == key)
            pass_group(&w, o->after->docid);
        *done = w.by_docid || find_equal(&w, key, &x);
        if (*done)
            st = gx_ordered_choose(o, f, x.docids, x.n, 1, true, o->k, &n_taken);
        x.n = 0;
    }
    if (st == GX_OK && (*done || !o->after))
        *done = find_first(&w, o->k - n_taken, &x, &few) && (!few || w.whole);
    if (st == GX_OK && *done)
        st = gx_ordered_choose(o, f, x.docids, x.n, 0, false, o->k - n_taken, &n_more);
    if (!*done) /* without memory, what the caller does instead says so */
        o->n = n_before;
    free(x.docids);
    return st;
}
