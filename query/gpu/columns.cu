#include "query/gpu/columns.cuh"
#include "query/gpu/state.cuh"

extern "C" {
#include "index/attribute_order.h"
}

#include <stdlib.h>

namespace gx {

constexpr uint32_t SAMPLE = 4096;     /* documents of which a column's values are known on the host */
constexpr uint32_t ORDER_SLACK = 32;  /* docids that may be read behind an order */
constexpr uint64_t LEFT_SESSIONS = 8; /* the budget leaves so many sessions' memory to them, but at most half */

gx_status open_columns(device_columns *c, const gx_index *ix, gpu_prepared_index *owner, gx_error *err)
{
    c->ix = ix;
    c->owner = owner;
    c->of = (device_column *)calloc(ix->n_columns + 1ull, sizeof *c->of);
    if (!c->of)
        return gx_fail(err, GX_ENOMEM, "no memory for %u attributes", ix->n_columns);
    pthread_mutex_init(&c->lock, NULL);
    return GX_OK;
}

void close_columns(device_columns *c)
{
    if (!c->of)
        return;
    for (uint32_t i = 0; i < c->ix->n_columns; ++i) {
        (void)cudaFree(c->of[i].values);
        (void)cudaFree(c->of[i].present);
        (void)cudaFree(c->of[i].order);
        free(c->of[i].sample);
    }
    free(c->of);
    pthread_mutex_destroy(&c->lock);
    *c = {};
}

/* ---- columns to the device ---- */

/* Whether kernels can test the column's values. */
static bool is_testable(const gx_column *c)
{
    return !c->starts && c->width <= 4 && c->type != GX_ATTRIBUTE_FLOAT;
}

static uint64_t values_bytes(const gx_index *ix, const gx_column *c)
{
    return ((uint64_t)ix->n_docs * c->width + 7) / 8 * 8;
}

static uint64_t present_bytes(const gx_index *ix, const gx_column *c)
{
    return c->present ? ((uint64_t)ix->n_docs + 63) / 64 * 8 : 0;
}

uint64_t columns_bytes(const gx_index *ix)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ix->n_columns; ++i) {
        const gx_column *c = &ix->columns[i];
        bytes += is_testable(c) ? values_bytes(ix, c) + present_bytes(ix, c) : 0;
    }
    return bytes;
}

/* Copies to `room` bytes of new device memory. Returns NULL if there is no room. */
static void *upload(const device_columns *c, const void *from, uint64_t bytes, uint64_t room)
{
    memory_budget *budget = &c->owner->budget;
    const uint64_t sessions = LEFT_SESSIONS * SESSION_DEVICE_BYTES, half = budget->limit / 2,
                   kept = sessions < half ? sessions : half;
    void *to = NULL;
    gx_error ignored;
    if (budget_left(budget) < room + kept || budget_take(budget, "a column", room, &ignored) != GX_OK)
        return NULL;
    stop_lingering(c->owner);
    if (cudaSetDevice(c->owner->device) == cudaSuccess && cudaMalloc(&to, room ? room : 1) == cudaSuccess &&
        gx_device_upload(c->owner->device, to, from, bytes, &ignored) == GX_OK)
        return to;
    (void)cudaFree(to);
    (void)cudaGetLastError();
    budget_give(budget, room);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Samples the values of documents that have one. false: no memory. */
static bool sample_values(const gx_index *ix, const gx_column *c, device_column *d)
{
    const uint32_t n = ix->n_docs < SAMPLE ? ix->n_docs : SAMPLE;
    d->sample = (uint32_t *)malloc((n + 1ull) * sizeof *d->sample);
    for (uint32_t i = 0; d->sample && i < n; ++i) {
        const uint32_t docid = (uint32_t)((uint64_t)i * ix->n_docs / n);
        if (gx_column_has(c, docid))
            d->sample[d->n_sample++] = (uint32_t)gx_column_raw(c, docid);
    }
    if (d->sample)
        qsort(d->sample, d->n_sample, sizeof *d->sample, by_value);
    return d->sample != NULL;
}

/* Uploads the column's values. Returns whether they are there. The lock is held. */
static bool upload_values(device_columns *all, const gx_column *c, device_column *d)
{
    const gx_index *ix = all->ix;
    const uint64_t values = values_bytes(ix, c), present = present_bytes(ix, c);
    if (!sample_values(ix, c, d))
        return false;
    d->values = upload(all, c->values, (uint64_t)ix->n_docs * c->width, values);
    if (d->values && present && !(d->present = upload(all, c->present, present, present))) {
        (void)cudaFree(d->values);
        d->values = NULL;
        budget_give(&all->owner->budget, values);
    }
    return d->values != NULL;
}

static bool upload_order(device_columns *all, gx_column *c, device_column *d)
{
    const gx_column_order *o = gx_column_get_order(all->ix, c);
    if (o)
        d->order =
            (uint32_t *)upload(all, o->docids, o->n * sizeof *o->docids, (o->n + ORDER_SLACK) * sizeof *o->docids);
    return d->order != NULL;
}

/* Returns whether the values, or the order, of attribute i are in device memory; brings them there at the
 * first call. */
static bool have(device_columns *all, uint32_t i, bool order)
{
    gx_column *c = &all->ix->columns[i];
    device_column *d = &all->of[i];
    int *state = order ? &d->order_state : &d->values_state;
    int now = __atomic_load_n(state, __ATOMIC_ACQUIRE);
    if (now != COLUMN_UNUSED)
        return now == COLUMN_READY;
    pthread_mutex_lock(&all->lock);
    if ((now = *state) == COLUMN_UNUSED) {
        now = (order ? upload_order(all, c, d) : upload_values(all, c, d)) ? COLUMN_READY : COLUMN_REFUSED;
        __atomic_store_n(state, now, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&all->lock);
    return now == COLUMN_READY;
}

/* ---- tests ---- */

static uint32_t count_below(const uint32_t *values, uint32_t n, uint64_t value)
{
    uint32_t low = 0;
    while (low < n) {
        const uint32_t middle = low + (n - low) / 2;
        if (values[middle] < value)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* About the share of all documents with a value in [low, high]. */
static double range_share(const device_columns *all, uint32_t i, uint64_t low, uint64_t high)
{
    const gx_column *c = &all->ix->columns[i];
    const device_column *d = &all->of[i];
    const gx_column_order *o = __atomic_load_n(&c->order, __ATOMIC_ACQUIRE);
    if (o) {
        uint64_t begin, end;
        gx_column_order_range(c, o, low, high, &begin, &end);
        return (double)(end - begin) / all->ix->n_docs;
    }
    if (d->n_sample == 0)
        return 0;
    const uint32_t n = count_below(d->sample, d->n_sample, high + 1) - count_below(d->sample, d->n_sample, low);
    const double present = c->present ? (double)c->n_present / all->ix->n_docs : 1;
    return present * n / d->n_sample;
}

static bool add_test(filter_tests *t, const void *values, uint32_t bits, uint64_t low, uint64_t span)
{
    if (t->n == MAX_TESTS)
        return false;
    t->of[t->n++] = {(uint64_t)(uintptr_t)values | (uint32_t)__builtin_ctz(bits), (uint32_t)low, (uint32_t)span};
    return true;
}

/* Two tests that no document meets both. */
static bool add_nothing(filter_tests *t, const device_column *d, uint32_t bits)
{
    t->share = 0;
    return add_test(t, d->values, bits, 0, 0) && add_test(t, d->values, bits, 1, 0);
}

static bool add_range(device_columns *all, const gx_filter_node *n, bool negated, filter_tests *t)
{
    const gx_column *c = &all->ix->columns[n->column];
    const device_column *d = &all->of[n->column];
    uint64_t low, high;
    if (!is_testable(c) || (negated && c->present) || !have(all, n->column, false))
        return false;
    const uint32_t bits = 8 * c->width;
    const uint64_t most = (UINT64_C(1) << bits) - 1;
    if (!gx_filter_range(c, n, &low, &high))
        return negated || add_nothing(t, d, bits);
    const double share = range_share(all, n->column, low, high);
    t->share *= negated ? 1 - share : share;
    if (!negated)
        return (!d->present || add_test(t, d->present, 1, 1, 0)) && add_test(t, d->values, bits, low, high - low);
    /* the values from high + 1 to low - 1, past the greatest */
    return high - low == most ? add_nothing(t, d, bits)
                              : add_test(t, d->values, bits, (high + 1) & most, most - 1 - (high - low));
}

static bool add_presence(device_columns *all, const gx_filter_node *n, bool negated, filter_tests *t)
{
    const gx_column *c = &all->ix->columns[n->column];
    if (!is_testable(c) || !have(all, n->column, false))
        return false;
    const device_column *d = &all->of[n->column];
    if (!d->present)
        return !negated || add_nothing(t, d, 8 * c->width);
    const double share = (double)c->n_present / all->ix->n_docs;
    t->share *= negated ? 1 - share : share;
    return add_test(t, d->present, 1, !negated, 0);
}

/* Adds the tests of node i, or of its negation. false: there are none, or too many. */
static bool add_tests(device_columns *all, const gx_filter *f, uint32_t i, bool negated, filter_tests *t)
{
    const gx_filter_node *n = &f->nodes[i];
    bool all_added = true;
    switch (n->kind) {
    case GX_FILTER_NOT:
        return add_tests(all, f, n->first, !negated, t);
    case GX_FILTER_AND:
    case GX_FILTER_OR: /* NOT of an OR is an AND of NOTs */
        if ((n->kind == GX_FILTER_OR) != negated)
            return false;
        for (uint32_t c = n->first; c != UINT32_MAX && all_added; c = f->nodes[c].next)
            all_added = add_tests(all, f, c, negated, t);
        return all_added;
    case GX_FILTER_RANGE:
        return add_range(all, n, negated, t);
    case GX_FILTER_HAS:
        return add_presence(all, n, negated, t);
    default:
        return false;
    }
}

bool make_tests(device_columns *c, const gx_filter *f, filter_tests *out)
{
    out->n = 0;
    out->share = 1;
    return !f->parts && add_tests(c, f, f->root, false, out);
}

/* ---- documents ---- */

/* A condition that every document of the filter meets. */
struct rarest_range {
    const gx_filter_node *node; /* NULL: none */
    uint64_t low, high;
    double share;
};

static void find_rarest(const device_columns *all, const gx_filter *f, uint32_t i, rarest_range *r)
{
    const gx_filter_node *n = &f->nodes[i];
    uint64_t low, high;
    if (n->kind == GX_FILTER_AND) {
        for (uint32_t c = n->first; c != UINT32_MAX; c = f->nodes[c].next)
            find_rarest(all, f, c, r);
    } else if (n->kind == GX_FILTER_RANGE && is_testable(&f->ix->columns[n->column]) &&
               gx_filter_range(&f->ix->columns[n->column], n, &low, &high)) {
        const double share = range_share(all, n->column, low, high);
        if (!r->node || share < r->share)
            *r = {n, low, high, share};
    }
}

bool find_documents(device_columns *c, const gx_filter *f, uint64_t most, const uint32_t **docids, uint32_t *n)
{
    rarest_range r = {};
    uint64_t begin, end;
    find_rarest(c, f, f->root, &r);
    if (!r.node || r.share * c->ix->n_docs > (double)most || !have(c, r.node->column, true))
        return false;
    const gx_column *column = &c->ix->columns[r.node->column];
    gx_column_order_range(column, column->order, r.low, r.high, &begin, &end);
    *docids = c->of[r.node->column].order + begin;
    *n = (uint32_t)(end - begin);
    return end - begin <= most;
}

} // namespace gx
