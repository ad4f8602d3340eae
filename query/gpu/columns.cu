#include "query/gpu/columns.cuh"
#include "query/gpu/state.cuh"

#include "engine/lower_bound.h"

#include <stdlib.h>

namespace gx {

constexpr uint32_t SAMPLE = 16384;    /* documents of which a column's values are known on the host */
constexpr uint32_t MAX_GROUPS = 1024; /* of a column; more only if values are unevenly frequent */
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
        (void)cudaFree(c->of[i].d_starts);
        for (uint32_t l = 0; l < N_BIN_LEVELS; ++l) {
            (void)cudaFree(c->of[i].bin_maps[l]);
            free(c->of[i].bins[l]);
        }
        free(c->of[i].sample);
        free(c->of[i].least);
        free(c->of[i].starts);
        free(c->of[i].limits);
        free(c->of[i].chunks);
    }
    close_ordinals(c);
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

void *take_column_memory(const device_columns *c, uint64_t bytes)
{
    memory_budget *budget = &c->owner->budget;
    const uint64_t sessions = LEFT_SESSIONS * SESSION_DEVICE_BYTES, half = budget->limit / 2,
                   kept = sessions < half ? sessions : half;
    void *memory = NULL;
    gx_error ignored;
    if (budget_left(budget) < bytes + kept || budget_take(budget, "a column", bytes, &ignored) != GX_OK)
        return NULL;
    stop_lingering(c->owner);
    if (cudaSetDevice(c->owner->device) == cudaSuccess && cudaMalloc(&memory, bytes ? bytes : 1) == cudaSuccess)
        return memory;
    (void)cudaGetLastError();
    budget_give(budget, bytes);
    return NULL;
}

void give_column_memory(const device_columns *c, void *memory, uint64_t bytes)
{
    if (!memory)
        return;
    (void)cudaFree(memory);
    (void)cudaGetLastError();
    budget_give(&c->owner->budget, bytes);
}

/* Copies to `room` bytes of new device memory. Returns NULL if there is no room. The lock is held. */
static void *upload(const device_columns *c, const void *from, uint64_t bytes, uint64_t room)
{
    gx_error ignored;
    void *to = take_column_memory(c, room);
    if (to && gx_device_upload(c->owner->device, to, from, bytes, &ignored) == GX_OK)
        return to;
    give_column_memory(c, to, room);
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

/* ---- groups of values ---- */

/* Returns how many of the values, which rise, are below `value`. */
static uint32_t count_below(const uint32_t *values, uint32_t n, uint64_t value)
{
    return value > UINT32_MAX ? n : gx_lower_bound(values, 0, n, (uint32_t)value);
}

static uint32_t group_of(const device_column *d, uint64_t value)
{
    return count_below(d->least, d->n_groups, value + 1) - 1;
}

/* Begins groups at values that are found in order, with the documents that have each of them. */
struct group_maker {
    device_column *d;
    uint64_t quota, in_group;
};

static void add_value(group_maker *m, uint32_t value, uint64_t n)
{
    device_column *d = m->d;
    if (d->n_groups == 0 || (m->in_group && m->in_group + n > m->quota)) {
        d->least[d->n_groups] = d->n_groups ? value : 0;
        d->n_groups += 1;
        m->in_group = 0;
    }
    m->in_group += n;
}

/* Chooses the groups by how many documents of the sample have each value. Two neighbouring groups have more
 * than the quota together, so there are at most 2 MAX_GROUPS and a few. */
static bool choose_groups(device_column *d)
{
    group_maker m = {d, d->n_sample / MAX_GROUPS + 1, 0};
    d->least = (uint32_t *)malloc((2 * MAX_GROUPS + 4) * sizeof *d->least);
    if (!d->least)
        return false;
    d->n_groups = 0;
    for (uint32_t i = 0, n; i < d->n_sample; i += n) {
        for (n = 1; i + n < d->n_sample && d->sample[i + n] == d->sample[i];)
            ++n;
        add_value(&m, d->sample[i], n);
    }
    if (d->n_groups == 0)
        add_value(&m, 0, 1);
    return true;
}

/* Finds the group of each document, UINT16_MAX if it has no value. Short values are looked up. */
static void find_groups_of_documents(const gx_index *ix, const gx_column *c, const device_column *d, uint16_t *groups)
{
    uint16_t *of_value = c->width <= 2 ? (uint16_t *)malloc((1u << 16) * sizeof *of_value) : NULL;
    for (uint32_t v = 0; of_value && v < 1u << 16; ++v)
        of_value[v] = (uint16_t)group_of(d, v);
    for (uint32_t i = 0; i < ix->n_docs; ++i) {
        const uint32_t value = (uint32_t)gx_column_raw(c, i);
        groups[i] = !gx_column_has(c, i) ? (uint16_t)UINT16_MAX
                    : of_value           ? of_value[value]
                                         : (uint16_t)group_of(d, value);
    }
    free(of_value);
}

static void add_document(doc_limits *l, uint32_t docid)
{
    l->first = docid < l->first ? docid : l->first;
    l->end = docid >= l->end ? docid + 1 : l->end;
}

static doc_limits *no_limits(uint32_t n)
{
    doc_limits *l = (doc_limits *)malloc(n * sizeof *l);
    for (uint32_t i = 0; l && i < n; ++i)
        l[i] = {UINT32_MAX, 0};
    return l;
}

/* Counts the documents of each group, and finds the first and the last of groups and chunks. false: no memory. */
static bool count_groups(const gx_index *ix, const gx_column *c, device_column *d)
{
    uint16_t *groups = (uint16_t *)malloc((ix->n_docs + 1ull) * sizeof *groups);
    d->starts = (uint32_t *)calloc(d->n_groups + 1ull, sizeof *d->starts);
    d->limits = no_limits(d->n_groups);
    d->chunks = no_limits(d->n_groups / GROUPS_A_CHUNK + 1);
    const bool ok = groups && d->starts && d->limits && d->chunks;
    if (ok)
        find_groups_of_documents(ix, c, d, groups);
    for (uint32_t i = 0; ok && i < ix->n_docs; ++i) {
        const uint32_t g = groups[i];
        if (g == UINT16_MAX)
            continue;
        d->starts[g + 1] += 1;
        add_document(&d->limits[g], i);
        add_document(&d->chunks[g / GROUPS_A_CHUNK], i);
    }
    for (uint32_t g = 0; ok && g < d->n_groups; ++g)
        d->starts[g + 1] += d->starts[g];
    free(groups);
    return ok;
}

/* Sorts the documents by group, then docid. Returns their docids, NULL: no memory. */
static uint32_t *group_documents(const gx_index *ix, const gx_column *c, const device_column *d)
{
    uint16_t *groups = (uint16_t *)malloc((ix->n_docs + 1ull) * sizeof *groups);
    uint32_t *docids = (uint32_t *)malloc((ix->n_docs + 1ull) * sizeof *docids);
    uint32_t *at = (uint32_t *)malloc((d->n_groups + 1ull) * sizeof *at);
    if (groups && docids && at) {
        memcpy(at, d->starts, (d->n_groups + 1ull) * sizeof *at);
        find_groups_of_documents(ix, c, d, groups);
        for (uint32_t i = 0; i < ix->n_docs; ++i) {
            if (groups[i] != UINT16_MAX)
                docids[at[groups[i]]++] = i;
        }
    } else {
        free(docids);
        docids = NULL;
    }
    free(groups);
    free(at);
    return docids;
}

/* Uploads the documents of the column's groups. Returns whether they are there. The lock is held. */
static bool upload_order(const device_columns *all, const gx_column *c, device_column *d)
{
    uint32_t *docids = group_documents(all->ix, c, d);
    if (!docids)
        return false;
    const uint64_t n = d->starts[d->n_groups], n_starts = d->n_groups + 1;
    d->d_starts = (uint32_t *)upload(all, d->starts, n_starts * sizeof *d->starts, n_starts * sizeof *d->starts);
    if (d->d_starts)
        d->order = (uint32_t *)upload(all, docids, n * sizeof *docids, (n + 1) * sizeof *docids);
    free(docids);
    return d->order != NULL;
}

/* Uploads the column's values. Returns whether they are there. The lock is held. */
static bool upload_values(const device_columns *all, const gx_column *c, device_column *d)
{
    const gx_index *ix = all->ix;
    const uint64_t values = values_bytes(ix, c), present = present_bytes(ix, c);
    if (!sample_values(ix, c, d) || !choose_groups(d) || !count_groups(ix, c, d))
        return false;
    d->values = upload(all, c->values, (uint64_t)ix->n_docs * c->width, values);
    if (d->values && present && !(d->present = upload(all, c->present, present, present))) {
        give_column_memory(all, d->values, values);
        d->values = NULL;
    }
    return d->values != NULL;
}

/* Returns whether a part of attribute i is in device memory; brings it there at the first call. That of the
 * values comes before the others. */
static bool have(device_columns *all, uint32_t i, column_part part)
{
    static bool (*const bring[N_COLUMN_PARTS])(const device_columns *, const gx_column *,
                                               device_column *) = {upload_values, upload_order, make_bins};
    gx_column *c = &all->ix->columns[i];
    device_column *d = &all->of[i];
    int *state = &d->states[part];
    int now = __atomic_load_n(state, __ATOMIC_ACQUIRE);
    if (now != COLUMN_UNUSED)
        return now == COLUMN_READY;
    pthread_mutex_lock(&all->lock);
    if ((now = *state) == COLUMN_UNUSED) {
        now = bring[part](all, c, d) ? COLUMN_READY : COLUMN_REFUSED;
        __atomic_store_n(state, now, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&all->lock);
    return now == COLUMN_READY;
}

/* ---- tests ---- */

/* About the share of all documents with a value in [low, high]. */
static double range_share(const device_columns *all, uint32_t i, uint64_t low, uint64_t high)
{
    const gx_column *c = &all->ix->columns[i];
    const device_column *d = &all->of[i];
    if (d->n_sample == 0)
        return 0;
    const uint32_t n = count_below(d->sample, d->n_sample, high + 1) - count_below(d->sample, d->n_sample, low);
    const double present = c->present ? (double)c->n_present / all->ix->n_docs : 1;
    return present * n / d->n_sample;
}

/* What a part of a filter selects: its tests, in clauses. None: all documents. */
struct clauses {
    uint32_t n;
    gpu_test of[MAX_TESTS];
};

static gpu_test make_test(const void *values, uint32_t bits, uint64_t low, uint64_t span)
{
    return {(uint64_t)(uintptr_t)values | (uint32_t)__builtin_ctz(bits), (uint32_t)low, (uint32_t)span};
}

gpu_test column_test(const void *values, uint32_t bits)
{
    return make_test(values, bits, 0, UINT32_MAX);
}

/* Adds tests[n] as a clause. false: no room. */
static bool add_clause(clauses *c, const gpu_test *tests, uint32_t n)
{
    if (c->n + n > MAX_TESTS)
        return false;
    for (uint32_t i = 0; i < n; ++i) {
        gpu_test *to = &c->of[c->n++];
        *to = tests[i];
        to->values = (tests[i].values & ~(uint64_t)TEST_OR) | (i + 1 < n ? TEST_OR : 0);
    }
    return true;
}

static uint32_t clause_length(const gpu_test *tests)
{
    uint32_t n = 1;
    while (tests[n - 1].values & TEST_OR)
        ++n;
    return n;
}

/* The documents of either: each clause of a with each of b. */
static bool join_clauses(const clauses *a, const clauses *b, clauses *out)
{
    out->n = 0;
    for (uint32_t i = 0, n; i < a->n; i += n) {
        n = clause_length(a->of + i);
        for (uint32_t j = 0, m; j < b->n; j += m) {
            gpu_test both[2 * MAX_TESTS];
            m = clause_length(b->of + j);
            memcpy(both, a->of + i, n * sizeof *both);
            memcpy(both + n, b->of + j, m * sizeof *both);
            if (!add_clause(out, both, n + m))
                return false;
        }
    }
    return true;
}

/* No document: its value would be 0 and 1. */
static void select_nothing(const device_column *d, uint32_t bits, clauses *out)
{
    out->n = 2;
    out->of[0] = make_test(d->values, bits, 0, 0);
    out->of[1] = make_test(d->values, bits, 1, 0);
}

static bool range_clauses(device_columns *all, const gx_filter_node *n, bool negated, clauses *out, double *share)
{
    const gx_column *c = &all->ix->columns[n->column];
    const device_column *d = &all->of[n->column];
    uint64_t low, high;
    if (!is_testable(c) || !have(all, n->column, COLUMN_VALUES))
        return false;
    const uint32_t bits = 8 * c->width;
    const uint64_t most = (UINT64_C(1) << bits) - 1;
    out->n = 0;
    if (!gx_filter_range(c, n, &low, &high)) {
        *share = negated;
        if (!negated)
            select_nothing(d, bits, out);
        return true;
    }
    *share = range_share(all, n->column, low, high);
    if (!negated) {
        if (d->present)
            out->of[out->n++] = make_test(d->present, 1, 1, 0);
        out->of[out->n++] = make_test(d->values, bits, low, high - low);
        return true;
    }
    *share = 1 - *share;
    gpu_test either[2]; /* no value, or one from high + 1 to low - 1, past the greatest */
    uint32_t m = 0;
    if (d->present)
        either[m++] = make_test(d->present, 1, 0, 0);
    if (high - low < most)
        either[m++] = make_test(d->values, bits, (high + 1) & most, most - 1 - (high - low));
    if (m == 0)
        select_nothing(d, bits, out);
    return add_clause(out, either, m);
}

static bool presence_clauses(device_columns *all, const gx_filter_node *n, bool negated, clauses *out, double *share)
{
    const gx_column *c = &all->ix->columns[n->column];
    if (!is_testable(c) || !have(all, n->column, COLUMN_VALUES))
        return false;
    const device_column *d = &all->of[n->column];
    const double present = d->present ? (double)c->n_present / all->ix->n_docs : 1;
    *share = negated ? 1 - present : present;
    out->n = 0;
    if (d->present)
        out->of[out->n++] = make_test(d->present, 1, !negated, 0);
    else if (negated)
        select_nothing(d, 8 * c->width, out);
    return true;
}

static bool find_clauses(device_columns *all, const gx_filter *f, uint32_t i, bool negated, clauses *out,
                         double *share);

/* Of an AND or OR, or of its negation, which is the other of them with negated children. */
static bool series_clauses(device_columns *all, const gx_filter *f, const gx_filter_node *n, bool negated, clauses *out,
                           double *share)
{
    const bool conjunction = (n->kind == GX_FILTER_AND) != negated;
    if (!find_clauses(all, f, n->first, negated, out, share))
        return false;
    for (uint32_t c = f->nodes[n->first].next; c != UINT32_MAX; c = f->nodes[c].next) {
        clauses child, both;
        double part;
        if (!find_clauses(all, f, c, negated, &child, &part))
            return false;
        if (!conjunction) {
            if (!join_clauses(out, &child, &both))
                return false;
            *out = both;
            *share = 1 - (1 - *share) * (1 - part);
            continue;
        }
        if (out->n + child.n > MAX_TESTS)
            return false;
        memcpy(out->of + out->n, child.of, child.n * sizeof *child.of);
        out->n += child.n;
        *share *= part;
    }
    return true;
}

/* Finds the clauses of node i, or of its negation, and about the share of all documents that meet them.
 * false: it cannot be tested, or takes too many tests. The tree is not deep: GX_FILTER_MAX_DEPTH. */
static bool find_clauses(device_columns *all, const gx_filter *f, uint32_t i, bool negated, clauses *out, double *share)
{
    const gx_filter_node *n = &f->nodes[i];
    switch (n->kind) {
    case GX_FILTER_NOT:
        return find_clauses(all, f, n->first, !negated, out, share);
    case GX_FILTER_AND:
    case GX_FILTER_OR:
        return series_clauses(all, f, n, negated, out, share);
    case GX_FILTER_RANGE:
        return range_clauses(all, n, negated, out, share);
    case GX_FILTER_HAS:
        return presence_clauses(all, n, negated, out, share);
    default:
        return false;
    }
}

bool make_tests(device_columns *c, const gx_filter *f, filter_tests *out)
{
    clauses found;
    if (f->parts || !find_clauses(c, f, f->root, false, &found, &out->share))
        return false;
    out->n = found.n;
    memcpy(out->of, found.of, found.n * sizeof *found.of);
    return true;
}

/* ---- groups of documents ---- */

/* Where the documents of groups [from, to) are. */
static void group_limits(const device_column *d, uint32_t from, uint32_t to, uint32_t *first, uint32_t *end)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t g = from, n; g < to; g += n) {
        const bool whole = g % GROUPS_A_CHUNK == 0 && to - g >= GROUPS_A_CHUNK;
        const doc_limits l = whole ? d->chunks[g / GROUPS_A_CHUNK] : d->limits[g];
        n = whole ? GROUPS_A_CHUNK : 1;
        least = l.first < least ? l.first : least;
        most = l.end > most ? l.end : most;
    }
    *first = most ? least : 0;
    *end = most;
}

/* Adds the conditions that all documents of node i meet. */
static void add_conditions(const device_columns *all, const gx_filter *f, uint32_t i, filter_groups *out)
{
    const gx_filter_node *n = &f->nodes[i];
    uint64_t low, high;
    if (n->kind == GX_FILTER_AND) {
        for (uint32_t c = n->first; c != UINT32_MAX; c = f->nodes[c].next)
            add_conditions(all, f, c, out);
    } else if (n->kind == GX_FILTER_RANGE && is_testable(&f->ix->columns[n->column]) &&
               gx_filter_range(&f->ix->columns[n->column], n, &low, &high)) {
        const device_column *d = &all->of[n->column];
        const uint32_t first = group_of(d, low), end = group_of(d, high) + 1,
                       n_docs = d->starts[end] - d->starts[first];
        uint32_t begin, stop;
        if (out->column == UINT32_MAX || n_docs < out->n) {
            out->column = n->column;
            out->first = first;
            out->end = end;
            out->n = n_docs;
        }
        group_limits(d, first, end, &begin, &stop);
        out->first_doc = begin > out->first_doc ? begin : out->first_doc;
        out->end_doc = stop < out->end_doc ? stop : out->end_doc;
    }
}

void find_groups(const device_columns *c, const gx_filter *f, filter_groups *out)
{
    *out = {UINT32_MAX, 0, 0, c->ix->n_docs, 0, c->ix->n_docs};
    add_conditions(c, f, f->root, out);
    if (out->end_doc < out->first_doc)
        out->end_doc = out->first_doc;
}

bool find_documents(device_columns *c, const filter_groups *G, selected_documents *D)
{
    if (G->column == UINT32_MAX || G->end - G->first > MAX_RUNS || !have(c, G->column, COLUMN_ORDER))
        return false;
    const device_column *d = &c->of[G->column];
    *D = {};
    D->docids = d->order;
    D->starts = d->d_starts + G->first;
    D->n_runs = G->end - G->first;
    D->n = G->n;
    group_limits(d, G->first, G->end, &D->begin, &D->end);
    D->n_items = D->n / DOCUMENTS_ITEM + 1;
    return true;
}

bool find_bin(device_columns *c, const filter_groups *G, document_map *out)
{
    constexpr uint32_t MOST = BIN_LEVELS[N_BIN_LEVELS - 1].log_share; /* the largest bins' */
    return G->column != UINT32_MAX && G->n <= c->ix->n_docs >> MOST && have(c, G->column, COLUMN_BINS) &&
           find_bin_of_groups(&c->of[G->column], G->first, G->end, c->ix->n_docs, out);
}

} // namespace gx
