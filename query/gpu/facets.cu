/* The host side of counting matches: ordinals in device memory, and batches of queries as the kernel reads them. */
#include "query/gpu/matches.cuh"
#include "query/gpu/sub_batch.cuh"

extern "C" {
#include "query/filter/mask.h"
}

#include <stdlib.h>

namespace gx {

/* ---- ordinals ---- */

constexpr uint32_t MAX_ORDINALS_KEPT = 64; /* facets of which a state keeps ordinals */

struct device_ordinals {
    device_ordinals *next;
    gx_facet_ordinals is;    /* its column and grouping */
    gx_facet_ordinals *made; /* NULL: there can be none */
    void *ordinals;          /* in device memory */
    uint32_t *starts;
};

static void close_one(device_ordinals *d)
{
    (void)cudaFree(d->ordinals);
    (void)cudaFree(d->starts);
    gx_facet_ordinals_close(d->made);
    free(d);
}

void close_ordinals(device_columns *c)
{
    for (device_ordinals *d = c->ordinals, *next; d; d = next) {
        next = d->next;
        close_one(d);
    }
    c->ordinals = NULL;
}

/* Copies to new device memory. Returns NULL if there is no room. */
static void *upload_part(const device_columns *c, const void *from, uint64_t bytes)
{
    gx_error ignored;
    void *to = take_column_memory(c, bytes);
    if (to && (bytes == 0 || gx_device_upload(c->owner->device, to, from, bytes, &ignored) == GX_OK))
        return to;
    give_column_memory(c, to, bytes);
    return NULL;
}

/* Copies made ordinals, or drops them if the memory does not suffice. */
static void upload_ordinals(const device_columns *c, device_ordinals *d)
{
    gx_facet_ordinals *o = d->made;
    const uint64_t bytes = o->n_ordinals * o->bytes, starts = (c->ix->n_docs + 1ull) * sizeof *o->starts;
    d->ordinals = upload_part(c, o->ordinals, bytes);
    if (d->ordinals && o->starts && !(d->starts = (uint32_t *)upload_part(c, o->starts, starts))) {
        give_column_memory(c, d->ordinals, bytes);
        d->ordinals = NULL;
    }
    gx_facet_ordinals_drop(o);
    if (!d->ordinals) {
        gx_facet_ordinals_close(o);
        d->made = NULL;
    }
}

/* Finds the ordinals, or makes them. The lock is held. */
static gx_status make_device_ordinals(device_columns *c, uint32_t column, const gx_facet *facet, device_ordinals **out,
                                      gx_error *err)
{
    uint32_t n = 0;
    *out = NULL;
    for (device_ordinals *d = c->ordinals; d; d = d->next, ++n) {
        if (gx_facet_ordinals_suit(&d->is, column, facet)) {
            *out = d;
            return GX_OK;
        }
    }
    if (n >= MAX_ORDINALS_KEPT)
        return GX_OK;
    device_ordinals *d = (device_ordinals *)calloc(1, sizeof *d);
    if (!d)
        return gx_fail(err, GX_ENOMEM, "no memory for the groups of a facet");
    const gx_status st = gx_facet_ordinals_make(&d->made, c->ix, column, facet, err);
    if (st != GX_OK) {
        free(d);
        return st;
    }
    d->is = gx_facet_ordinals_of(column, facet);
    if (d->made)
        upload_ordinals(c, d);
    d->next = c->ordinals;
    c->ordinals = *out = d;
    return GX_OK;
}

gx_status find_ordinals(device_columns *c, uint32_t column, const gx_facet *facet, const gx_facet_ordinals **out,
                        gx_error *err)
{
    device_ordinals *d = NULL;
    *out = NULL;
    if (!gx_facet_has_ordinals(c->ix, column, facet))
        return GX_OK;
    pthread_mutex_lock(&c->lock);
    const gx_status st = make_device_ordinals(c, column, facet, &d, err);
    pthread_mutex_unlock(&c->lock);
    *out = d ? d->made : NULL;
    return st;
}

/* Describes ordinals that find_ordinals has returned. */
static facet_column describe_ordinals(device_columns *c, const gx_facet_ordinals *o)
{
    pthread_mutex_lock(&c->lock);
    const device_ordinals *d = c->ordinals;
    while (d->made != o)
        d = d->next;
    pthread_mutex_unlock(&c->lock);
    return {d->ordinals, d->starts, o->bytes, o->n, 0, false};
}

/* ---- a session's memory ---- */

constexpr uint64_t MATCH_BYTES = 16u << 20; /* of queries that are counted together, if they are several */
constexpr uint32_t BLOCKS_A_PLACE = 4;      /* thread blocks of a launch for each that the device runs at a time */

void close_matches(session_memory *m, match_space *space)
{
    if (space->stream)
        (void)cudaStreamDestroy(space->stream);
    if (space->done)
        (void)cudaEventDestroy(space->done);
    session_free(m, (void **)&space->device.base, space->device.bytes);
    session_free_pinned(m, (void **)&space->pinned.base, space->pinned.bytes);
    *space = {};
}

static gx_status open_matches(const gpu_prepared_index *s, match_space *space, gx_error *err)
{
    if (!space->stream)
        TRY("making a stream", cudaStreamCreateWithFlags(&space->stream, cudaStreamNonBlocking));
    if (!space->done)
        TRY("making an event", cudaEventCreateWithFlags(&space->done, cudaEventDisableTiming));
    if (!space->grid)
        space->grid = match_grid(s->coding, s->multiprocessors);
    return GX_OK;
}

/* Grows both memories. Returns whether there are so many bytes. */
static bool reserve_matches(session_memory *m, match_space *space, uint64_t bytes)
{
    gx_error ignored;
    if (bytes <= space->device.bytes && bytes <= space->pinned.bytes)
        return true;
    const bool good = grow_device(m, &space->device, bytes, bytes, &ignored) == GX_OK &&
                      grow_pinned(m, &space->pinned, bytes, &ignored) == GX_OK;
    (void)cudaGetLastError();
    return good;
}

/* ---- queries ---- */

/* A run of up to MAX_FACETS facets. */
struct match_run {
    gpu_prepared_index *s;
    session_memory *memory;
    match_space *space;
    const match_request *r;
    uint32_t first_facet, first_count; /* of the request's */
    match_batch batch;                 /* its facets, those that are shared first */
    uint32_t order[MAX_FACETS];        /* number of each of them among the run's */
    uint32_t begin[MAX_FACETS + 1];    /* of the run's facets in the request's order: where their counts begin */
};

/* A query to be counted. */
struct match_job {
    uint32_t plan;
    bool conjunctive;
};

/* Arrays of some queries. Those up to terms are copied to the device, the others back. */
struct match_arrays {
    match_query *queries;
    gpu_term *terms;
    uint32_t *counts, *n_matches;
};

static uint64_t lay_out(match_arrays *a, char *base, uint64_t n, uint64_t n_terms, uint64_t n_counts)
{
    bump_allocator b = {base, 0};
    cut(&b, &a->queries, n);
    cut(&b, &a->terms, n_terms);
    cut(&b, &a->counts, n * n_counts);
    cut(&b, &a->n_matches, n);
    return b.used;
}

static uint32_t term_room(const gx_plan *plan)
{
    return plan->n_terms + (plan->filter ? MAX_TESTS / TESTS_A_TERM : 0);
}

static bool has_exact_map(const gpu_prepared_index *s, const gx_plan_term *t)
{
    const uint32_t number = s->aux_of[t->list];
    return number != UINT32_MAX && s->aux_lists[number].map && s->aux_lists[number].map_shift == EXACT_SLOTS;
}

/* Describes a plan, whose terms begin at terms[*n_terms]. Returns false if its filter needs a mask. */
static bool describe_match(gpu_prepared_index *s, const gx_plan *plan, bool conjunctive, match_query *Q,
                           gpu_term *terms, uint32_t *n_terms)
{
    filter_tests tests = {};
    uint32_t n = 0;
    *Q = {};
    if (plan->filter && !make_tests(&s->columns, plan->filter, &tests))
        return false;
    gpu_term *const own = terms + *n_terms;
    for (uint32_t exact = 0; exact < 2 && !plan->fill; ++exact) {
        for (uint32_t i = 0; i < plan->n_terms; ++i) {
            if (has_exact_map(s, &plan->terms[i]) == !exact)
                describe_term(s, &plan->terms[i], 0, &own[n++]);
        }
        Q->n_exact = exact ? Q->n_exact : n;
    }
    memcpy(own + n, tests.of, tests.n * sizeof *tests.of);
    Q->n_terms = n;
    Q->first_term = *n_terms;
    Q->flags = (conjunctive ? QUERY_AND : 0) | (plan->mask ? QUERY_MASKED : 0) | tests.n << QUERY_TESTS |
               (plan->fill ? MATCH_EVERY_DOCUMENT : 0);
    Q->mask = plan->mask ? (const uint32_t *)plan->mask->device : NULL;
    *n_terms += count_room(n, Q->flags);
    return true;
}

/* Enqueues the counting of n described queries and waits for it. */
static gx_status count_described(match_run *run, const match_arrays *h, const match_arrays *d, uint32_t n,
                                 const gx_plan *plan, gx_error *err)
{
    const cudaStream_t stream = run->space->stream;
    match_batch B = run->batch;
    bool cancelled = false;
    const size_t zeroed = (size_t)((char *)(d->n_matches + n) - (char *)d->counts);
    const uint32_t n_tiles = ((run->s->ix->n_docs - 1) >> MATCH_TILE_SHIFT) + 1,
                   wanted = BLOCKS_A_PLACE * run->space->grid / n + 1;
    B.queries = d->queries;
    B.terms = d->terms;
    B.n = n;
    B.n_ranges = wanted < n_tiles ? wanted : n_tiles;
    B.counts = d->counts;
    B.n_matches = d->n_matches;
    TRY("copying queries", cudaMemcpyAsync(d->queries, h->queries, (size_t)((char *)h->counts - (char *)h->queries),
                                           cudaMemcpyHostToDevice, stream));
    TRY("clearing counts", cudaMemsetAsync(d->counts, 0, zeroed, stream));
    count_matches(run->s->X, run->s->coding, B, stream);
    TRY("starting to count matches", cudaGetLastError());
    TRY("copying counts", cudaMemcpyAsync(h->counts, d->counts, zeroed, cudaMemcpyDeviceToHost, stream));
    TRY("waiting", cudaEventRecord(run->space->done, stream));
    TRY("counting matches", wait_for_event(run->memory->calls, run->space->done, plan, &cancelled));
    return cancelled ? gx_fail(err, GX_ECANCELLED, "the search was cancelled while its matches were counted") : GX_OK;
}

static void take_counts(const match_run *run, const match_arrays *h, uint32_t i, gx_match_counts *out)
{
    const uint32_t *counts = h->counts + (size_t)i * run->batch.n_counts;
    out->n_matches = h->n_matches[i];
    for (uint32_t f = 0; f < run->batch.n_facets; ++f) {
        const uint32_t number = run->order[f];
        memcpy(out->counts + run->first_count + run->begin[number], counts + run->batch.facets[f].first,
               (run->begin[number + 1] - run->begin[number]) * sizeof *counts);
    }
}

/* Counts as many of jobs[n] as fit into the memory together, at least one, and sets *taken to their number. */
static gx_status count_some(match_run *run, const match_job *jobs, uint32_t n, uint32_t *taken, bool *counted,
                            gx_error *err)
{
    const match_request *r = run->r;
    uint64_t n_terms = 0, bytes = 0;
    uint32_t m = 0, used = 0;
    match_arrays h, d;
    for (; m < n; ++m) {
        const uint64_t more = n_terms + term_room(&r->plans[jobs[m].plan]);
        const uint64_t all = lay_out(&h, NULL, m + 1ull, more, run->batch.n_counts);
        if (m && all > MATCH_BYTES)
            break;
        n_terms = more;
        bytes = all;
    }
    *taken = m;
    if (!(*counted = reserve_matches(run->memory, run->space, bytes)))
        return GX_OK;
    (void)lay_out(&h, run->space->pinned.base, m, n_terms, run->batch.n_counts);
    (void)lay_out(&d, run->space->device.base, m, n_terms, run->batch.n_counts);
    for (uint32_t i = 0; i < m; ++i) {
        if (!(*counted =
                  describe_match(run->s, &r->plans[jobs[i].plan], jobs[i].conjunctive, &h.queries[i], h.terms, &used)))
            return GX_OK;
    }
    TRY_STATUS(count_described(run, &h, &d, m, &r->plans[jobs[0].plan], err));
    for (uint32_t i = 0; i < m; ++i)
        take_counts(run, &h, i, &r->counts[jobs[i].plan]);
    return GX_OK;
}

static gx_status count_jobs(match_run *run, const match_job *jobs, uint32_t n, bool *counted, gx_error *err)
{
    for (uint32_t at = 0, taken; at < n && *counted; at += taken) {
        const gx_plan *plan = &run->r->plans[jobs[at].plan];
        if (plan->cancel && plan->cancel(plan->user))
            return gx_fail(err, GX_ECANCELLED, "the search was cancelled while its matches were counted");
        TRY_STATUS(count_some(run, jobs + at, n - at, &taken, counted, err));
    }
    return GX_OK;
}

/* First all queries, AND-then-OR as AND; then as OR those that have too few matches. */
static gx_status count_plans(match_run *run, match_job *jobs, bool *counted, gx_error *err)
{
    const match_request *r = run->r;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; ++i) {
        const gx_plan *plan = &r->plans[i];
        if ((plan->n_terms || plan->fill) && run->s->ix->n_docs) {
            jobs[n++] = {i, plan->op != GX_OP_OR};
        } else {
            r->counts[i].n_matches = 0;
            memset(r->counts[i].counts + run->first_count, 0, run->begin[run->batch.n_facets] * sizeof(uint32_t));
        }
    }
    TRY_STATUS(count_jobs(run, jobs, n, counted, err));
    uint32_t again = 0;
    for (uint32_t i = 0; i < n && *counted; ++i) {
        const uint32_t plan = jobs[i].plan;
        if (r->plans[plan].op == GX_OP_AND_OR && r->counts[plan].n_matches < r->plans[plan].k)
            jobs[again++] = {plan, false};
    }
    return *counted ? count_jobs(run, jobs, again, counted, err) : GX_OK;
}

/* ---- facets ---- */

/* Describes n facets of the request from run->first_facet on. */
static void describe_facets(match_run *run, uint32_t n)
{
    match_batch *B = &run->batch;
    uint32_t n_shared = 0, at = 0;
    bool shared[MAX_FACETS];
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t n_counts = (uint32_t)gx_n_counts(run->r->facets[run->first_facet + i]);
        shared[i] = n_shared + n_counts <= SHARED_COUNTS;
        n_shared += shared[i] ? n_counts : 0;
        run->begin[i + 1] = run->begin[i] + n_counts;
    }
    for (uint32_t pass = 0; pass < 2; ++pass) {
        for (uint32_t i = 0; i < n; ++i) {
            if (shared[i] == (pass != 0))
                continue;
            facet_column *c = &B->facets[B->n_facets];
            *c = describe_ordinals(&run->s->columns, run->r->facets[run->first_facet + i]);
            c->first = at;
            c->shared = shared[i];
            at += run->begin[i + 1] - run->begin[i];
            run->order[B->n_facets++] = i;
        }
    }
    B->n_counts = at;
    B->n_shared = n_shared;
    while (B->log_copies < MOST_LOG_COPIES && n_shared << (B->log_copies + 1) <= SHARED_COUNTS)
        B->log_copies += 1;
}

gx_status run_matches(gpu_prepared_index *s, session_memory *m, match_space *space, const match_request *r,
                      bool *counted, gx_error *err)
{
    *counted = true;
    for (uint32_t i = 0; i < r->n; ++i)
        *counted = *counted && (!r->plans[i].mask || r->plans[i].mask->device);
    if (!*counted)
        return GX_OK;
    TRY_STATUS(open_matches(s, space, err));
    match_job *jobs = (match_job *)malloc((r->n + 1ull) * sizeof *jobs);
    if (!jobs)
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", r->n);
    gx_status st = GX_OK;
    uint32_t first_count = 0, f = 0, n;
    do { /* once without facets, too: the matches are counted */
        match_run run = {s, m, space, r, f, first_count, {}, {}, {}};
        n = r->n_facets - f < MAX_FACETS ? r->n_facets - f : MAX_FACETS;
        describe_facets(&run, n);
        st = count_plans(&run, jobs, counted, err);
        first_count += run.begin[n];
        f += n;
    } while (f < r->n_facets && st == GX_OK && *counted);
    free(jobs);
    return st;
}

} // namespace gx
