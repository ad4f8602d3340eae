#include "query/exec/residency.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/clock.h"
#include "engine/status.h"

#define NONE UINT32_MAX
#define ON_ITS_WAY UINT32_MAX /* value of `where` of a list that is being copied */
#define MAX_MISSED 512u       /* lists that a reader notes */
#define MAX_WANTED 64u        /* lists that wait until readers have left */
#define N_CLASSES 32u         /* of free extents, by the binary logarithm of their units */
#define MOST_TRIED 64u        /* extents of a class that are looked at */
#define MOST_LEAVING 8u       /* at most this part of the pool waits for readers, besides what one list needs */
#define IDLE UINT64_MAX
#define DEFAULT_HALVING (UINT64_C(1) << 28)

typedef enum extent_state { UNUSED, FREE, COPYING, RESIDENT, LEAVING } extent_state;

/* Neighbouring units of the pool. Those that are free and those that wait for readers are in lists. */
typedef struct extent {
    extent_state state;
    uint32_t begin, n; /* units */
    uint32_t list;
    uint32_t before, after;  /* neighbours in the pool, or NONE */
    uint32_t previous, next; /* in the list of its state, or NONE */
    uint32_t place;          /* RESIDENT: in the heap */
    uint64_t left_at;        /* LEAVING: the epoch that readers must have entered in */
    double key;              /* as the heap knows it: at most the present one */
    uint64_t seen;           /* the same of `used` */
    _Atomic double credit;   /* the key at its last use */
    atomic_uint_fast64_t used;
} extent;

struct gx_residency_reader {
    gx_residency_reader *next;
    _Atomic uint64_t since; /* the epoch in which it entered, or IDLE */
    uint32_t n_missed, missed[MAX_MISSED];
};

struct gx_residency {
    gx_residency_options opt;
    uint32_t n_units;
    _Atomic uint32_t *where;                 /* [n_lists] number of its extent + 1; 0: it is not there; or ON_ITS_WAY */
    _Atomic uint32_t *counts;                /* [n_lists] f */
    extent *extents;                         /* [max_extents] */
    uint32_t n_extents, max_extents, unused; /* unused: list of extents to be used again */
    uint32_t *heap, n_heap;                  /* the resident extents, the least key first */
    uint32_t free_of[N_CLASSES];
    uint32_t leaving, last_leaving; /* the oldest and the newest that waits for readers */
    uint64_t leaving_units;
    uint32_t *plan; /* [n_planned] */
    uint32_t n_planned, next_planned;
    uint32_t wanted[MAX_WANTED], n_wanted;
    gx_residency_reader *readers;
    gx_residency_counts total;
    _Atomic double inflation; /* L */
    _Atomic uint64_t tick, epoch;
    uint64_t halved_at;   /* tick */
    pthread_mutex_t lock; /* of all that is not atomic, but the readers' missed lists */
};

/* ---- keys ---- */

static uint64_t bytes_of(const gx_residency *r, uint32_t list)
{
    return r->opt.bytes_of(r->opt.user, list);
}

static uint32_t units_of(const gx_residency *r, uint32_t list)
{
    const uint64_t n = (bytes_of(r, list) + r->opt.slack + GX_RESIDENCY_UNIT - 1) / GX_RESIDENCY_UNIT;
    return n < NONE ? (uint32_t)n : NONE;
}

static double frequency(const gx_residency *r, uint32_t list)
{
    return atomic_load_explicit(&r->counts[list], memory_order_relaxed);
}

static double gdsf(double inflation, double uses, double bytes, uint64_t tick)
{
    (void)tick;
    return inflation + uses / bytes;
}

const gx_residency_rule gx_residency_gdsf = {gdsf, 1. / 4096};

/* The key that the list has if it is used now. */
static double key_of_use(const gx_residency *r, uint32_t list, uint64_t tick)
{
    if (!r->opt.rule)
        return 0;
    return r->opt.rule->key(atomic_load_explicit(&r->inflation, memory_order_relaxed), frequency(r, list),
                            (double)bytes_of(r, list), tick);
}

/* The key that a resident extent has now. */
static double key_of(const extent *e)
{
    return atomic_load_explicit(&e->credit, memory_order_relaxed);
}

/* Raise L, since a list with this key was evicted or refused. */
static void inflate(gx_residency *r, double key)
{
    const double floor = atomic_load_explicit(&r->inflation, memory_order_relaxed);
    if (key > floor)
        atomic_store_explicit(&r->inflation, floor + (key - floor) * r->opt.rule->aging, memory_order_relaxed);
}

/* ---- the heap ---- */

static bool is_less(const extent *a, const extent *b)
{
    return a->key < b->key || (a->key == b->key && a->seen < b->seen);
}

static void put_in_heap(gx_residency *r, uint32_t place, uint32_t number)
{
    r->heap[place] = number;
    r->extents[number].place = place;
}

static void sift_up(gx_residency *r, uint32_t place)
{
    const uint32_t number = r->heap[place];
    while (place && is_less(&r->extents[number], &r->extents[r->heap[(place - 1) / 2]])) {
        put_in_heap(r, place, r->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put_in_heap(r, place, number);
}

static void sift_down(gx_residency *r, uint32_t place)
{
    const uint32_t number = r->heap[place];
    for (uint32_t child; (child = 2 * place + 1) < r->n_heap; place = child) {
        if (child + 1 < r->n_heap && is_less(&r->extents[r->heap[child + 1]], &r->extents[r->heap[child]]))
            ++child;
        if (!is_less(&r->extents[r->heap[child]], &r->extents[number]))
            break;
        put_in_heap(r, place, r->heap[child]);
    }
    put_in_heap(r, place, number);
}

static void see(extent *e)
{
    e->key = key_of(e);
    e->seen = atomic_load_explicit(&e->used, memory_order_relaxed);
}

static void add_to_heap(gx_residency *r, uint32_t number)
{
    see(&r->extents[number]);
    put_in_heap(r, r->n_heap++, number);
    sift_up(r, r->n_heap - 1);
}

static void remove_from_heap(gx_residency *r, uint32_t number)
{
    const uint32_t place = r->extents[number].place, last = r->heap[--r->n_heap];
    if (place == r->n_heap)
        return;
    put_in_heap(r, place, last);
    sift_up(r, place);
    sift_down(r, r->extents[last].place);
}

/* The resident extent with the least key, or NONE. Keys rise with uses, which the heap does not
 * see; so an extent whose key has risen is put where it belongs, until the first one is right. */
static uint32_t least(gx_residency *r)
{
    while (r->n_heap) {
        extent *e = &r->extents[r->heap[0]];
        const double key = e->key;
        const uint64_t seen = e->seen;
        see(e);
        if (e->key == key && e->seen == seen)
            return r->heap[0];
        sift_down(r, 0);
    }
    return NONE;
}

/* ---- extents ---- */

static uint32_t class_of(uint32_t units)
{
    return 31 - (uint32_t)__builtin_clz(units);
}

static uint32_t new_extent(gx_residency *r)
{
    uint32_t number = r->unused;
    if (number != NONE)
        r->unused = r->extents[number].next;
    else
        number = r->n_extents++;
    return number;
}

static void drop_extent(gx_residency *r, uint32_t number)
{
    r->extents[number].state = UNUSED;
    r->extents[number].next = r->unused;
    r->unused = number;
}

static void list_free(gx_residency *r, uint32_t number)
{
    extent *e = &r->extents[number];
    uint32_t *first = &r->free_of[class_of(e->n)];
    e->state = FREE;
    e->previous = NONE;
    e->next = *first;
    if (*first != NONE)
        r->extents[*first].previous = number;
    *first = number;
}

static void unlist_free(gx_residency *r, uint32_t number)
{
    const extent *e = &r->extents[number];
    if (e->previous != NONE)
        r->extents[e->previous].next = e->next;
    else
        r->free_of[class_of(e->n)] = e->next;
    if (e->next != NONE)
        r->extents[e->next].previous = e->previous;
}

/* Append the units of `number`'s neighbour behind it, which is free, to those of `number`. */
static void take_in(gx_residency *r, uint32_t number)
{
    extent *e = &r->extents[number];
    const uint32_t gone = e->after;
    e->n += r->extents[gone].n;
    e->after = r->extents[gone].after;
    if (e->after != NONE)
        r->extents[e->after].before = number;
    drop_extent(r, gone);
}

static void free_extent(gx_residency *r, uint32_t number)
{
    const uint32_t after = r->extents[number].after, before = r->extents[number].before;
    if (after != NONE && r->extents[after].state == FREE) {
        unlist_free(r, after);
        take_in(r, number);
    }
    if (before != NONE && r->extents[before].state == FREE) {
        unlist_free(r, before);
        take_in(r, before);
        number = before;
    }
    list_free(r, number);
}

/* The smallest of some free extents that suffice, or NONE. */
static uint32_t find_free(const gx_residency *r, uint32_t units)
{
    uint32_t best = NONE;
    for (uint32_t c = class_of(units); c < N_CLASSES && best == NONE; ++c) {
        uint32_t number = r->free_of[c];
        for (uint32_t tried = 0; number != NONE && tried < MOST_TRIED; ++tried, number = r->extents[number].next) {
            const uint32_t n = r->extents[number].n;
            if (n >= units && (best == NONE || n < r->extents[best].n))
                best = number;
        }
    }
    return best;
}

/* Returns an extent of that number of units for a list that is to be copied, or NONE. */
static uint32_t take_extent(gx_residency *r, uint32_t units, uint32_t list)
{
    const uint32_t number = find_free(r, units);
    if (number == NONE)
        return NONE;
    unlist_free(r, number);
    if (r->extents[number].n > units) {
        const uint32_t rest = new_extent(r);
        extent *e = &r->extents[number], *x = &r->extents[rest];
        x->begin = e->begin + units;
        x->n = e->n - units;
        x->before = number;
        x->after = e->after;
        if (x->after != NONE)
            r->extents[x->after].before = rest;
        e->n = units;
        e->after = rest;
        list_free(r, rest);
    }
    r->extents[number].state = COPYING;
    r->extents[number].list = list;
    return number;
}

/* ---- readers ---- */

gx_residency_reader *gx_residency_reader_open(gx_residency *r)
{
    gx_residency_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    atomic_init(&reader->since, IDLE);
    pthread_mutex_lock(&r->lock);
    reader->next = r->readers;
    r->readers = reader;
    pthread_mutex_unlock(&r->lock);
    return reader;
}

void gx_residency_reader_close(gx_residency *r, gx_residency_reader *reader)
{
    if (!reader)
        return;
    pthread_mutex_lock(&r->lock);
    gx_residency_reader **at = &r->readers;
    while (*at != reader)
        at = &(*at)->next;
    *at = reader->next;
    pthread_mutex_unlock(&r->lock);
    free(reader);
}

/* Either a reader that enters finds that a list has left, or reclaim finds that the reader entered
 * before: the order of the four accesses is the same for all threads. */
void gx_residency_enter(gx_residency *r, gx_residency_reader *reader)
{
    atomic_store(&reader->since, atomic_load(&r->epoch));
}

void gx_residency_leave(gx_residency *r, gx_residency_reader *reader)
{
    (void)r;
    atomic_store(&reader->since, IDLE);
}

/* Free the extents for which no reader is left that had entered before they were evicted. */
static void reclaim(gx_residency *r)
{
    uint64_t oldest = IDLE;
    if (r->leaving == NONE)
        return;
    for (const gx_residency_reader *reader = r->readers; reader; reader = reader->next) {
        const uint64_t since = atomic_load(&reader->since);
        oldest = since < oldest ? since : oldest;
    }
    while (r->leaving != NONE && r->extents[r->leaving].left_at <= oldest) {
        const uint32_t number = r->leaving;
        r->leaving = r->extents[number].next;
        r->leaving_units -= r->extents[number].n;
        free_extent(r, number);
    }
    if (r->leaving == NONE)
        r->last_leaving = NONE;
}

static void evict(gx_residency *r, uint32_t number)
{
    extent *e = &r->extents[number];
    remove_from_heap(r, number);
    atomic_store(&r->where[e->list], 0);
    e->state = LEAVING;
    e->left_at = atomic_fetch_add(&r->epoch, 1) + 1;
    e->next = NONE;
    if (r->last_leaving == NONE)
        r->leaving = number;
    else
        r->extents[r->last_leaving].next = number;
    r->last_leaving = number;
    r->leaving_units += e->n;
    r->total.lists -= 1;
    r->total.bytes -= bytes_of(r, e->list);
    r->total.evicted += 1;
}

/* ---- queries ---- */

uint64_t gx_residency_find(const gx_residency *r, uint32_t list)
{
    const uint32_t where = atomic_load(&r->where[list]);
    if (where == 0 || where == ON_ITS_WAY)
        return GX_NOT_RESIDENT;
    return (uint64_t)r->extents[where - 1].begin * GX_RESIDENCY_UNIT;
}

uint64_t gx_residency_tick(gx_residency *r)
{
    return atomic_fetch_add_explicit(&r->tick, 1, memory_order_relaxed) + 1;
}

bool gx_residency_use(gx_residency *r, gx_residency_reader *reader, uint32_t list, uint64_t tick)
{
    /* a use that two threads count at the same time may count once, which costs less than an atomic addition */
    const uint32_t f = atomic_load_explicit(&r->counts[list], memory_order_relaxed),
                   where = atomic_load(&r->where[list]);
    if (f < UINT32_MAX)
        atomic_store_explicit(&r->counts[list], f + 1, memory_order_relaxed);
    if (where == 0 || where == ON_ITS_WAY) {
        if (where == 0 && reader->n_missed < MAX_MISSED)
            reader->missed[reader->n_missed++] = list;
        return false;
    }
    extent *e = &r->extents[where - 1];
    atomic_store_explicit(&e->used, tick, memory_order_relaxed);
    if (r->opt.rule)
        atomic_store_explicit(&e->credit, key_of_use(r, list, tick), memory_order_relaxed);
    return true;
}

/* ---- admission ---- */

typedef enum verdict { ADMITTED, REFUSED, LATER } verdict;

/* Start the copy of a list to an extent. */
static gx_residency_copy begin_copy(gx_residency *r, uint32_t number, uint64_t tick)
{
    extent *e = &r->extents[number];
    atomic_store_explicit(&e->credit, key_of_use(r, e->list, tick), memory_order_relaxed);
    atomic_store_explicit(&e->used, tick, memory_order_relaxed);
    atomic_store(&r->where[e->list], ON_ITS_WAY);
    const gx_residency_copy c = {e->list, number, (uint64_t)e->begin * GX_RESIDENCY_UNIT, bytes_of(r, e->list)};
    r->total.bytes_copied += c.bytes;
    return c;
}

/* Whether the rule refuses the list rather than evict the extent. A list that is refused counts as
 * admitted and evicted at once. */
static bool refuses(gx_residency *r, uint32_t list, const extent *e, uint64_t tick)
{
    const double key = key_of_use(r, list, tick);
    if (key < e->key)
        inflate(r, key);
    return key < e->key;
}

static verdict admit(gx_residency *r, uint32_t list, gx_residency_copy *copy)
{
    const uint32_t units = units_of(r, list);
    const uint64_t tick = atomic_load_explicit(&r->tick, memory_order_relaxed);
    if (atomic_load(&r->where[list]) != 0 || units > r->n_units)
        return REFUSED;
    for (;;) {
        const uint32_t number = take_extent(r, units, list);
        if (number != NONE) {
            *copy = begin_copy(r, number, tick);
            r->total.admitted += 1;
            return ADMITTED;
        }
        const uint32_t victim = least(r);
        if (victim == NONE)
            return r->leaving == NONE ? REFUSED : LATER;
        if (refuses(r, list, &r->extents[victim], tick)) {
            r->total.refused += 1;
            return REFUSED;
        }
        if (r->leaving_units >= units + r->n_units / MOST_LEAVING)
            return LATER;
        inflate(r, r->extents[victim].key);
        evict(r, victim);
        reclaim(r);
    }
}

/* Halve all f, so that what was used long ago counts less. Keys may fall, so the heap is made
 * anew. */
static void halve_counts(gx_residency *r)
{
    r->halved_at = atomic_load_explicit(&r->tick, memory_order_relaxed);
    for (uint32_t i = 0; i < r->opt.n_lists; ++i)
        atomic_store_explicit(&r->counts[i], atomic_load_explicit(&r->counts[i], memory_order_relaxed) / 2,
                              memory_order_relaxed);
    for (uint32_t i = 0; i < r->n_heap; ++i)
        see(&r->extents[r->heap[i]]);
    for (uint32_t i = r->n_heap / 2; i-- > 0;)
        sift_down(r, i);
}

/* Admit lists[n] while there is room in copies. Those for which extents wait for readers are wanted. */
static uint32_t admit_all(gx_residency *r, const uint32_t *lists, uint32_t n, uint64_t most_bytes,
                          gx_residency_copy *copies, uint32_t max)
{
    uint64_t bytes = 0;
    uint32_t n_copies = 0;
    for (uint32_t i = 0; i < n && n_copies < max && bytes < most_bytes; ++i) {
        switch (admit(r, lists[i], &copies[n_copies])) {
        case ADMITTED:
            bytes += copies[n_copies++].bytes;
            break;
        case LATER:
            if (r->n_wanted < MAX_WANTED)
                r->wanted[r->n_wanted++] = lists[i];
            break;
        case REFUSED:
            break;
        }
    }
    return n_copies;
}

uint32_t gx_residency_admit(gx_residency *r, gx_residency_reader *reader, uint64_t most_bytes,
                            gx_residency_copy *copies, uint32_t max)
{
    uint32_t lists[MAX_WANTED + MAX_MISSED], n = 0;
    if (!r->opt.rule) {
        reader->n_missed = 0;
        return 0;
    }
    pthread_mutex_lock(&r->lock);
    if (atomic_load_explicit(&r->tick, memory_order_relaxed) - r->halved_at >= r->opt.halve_after)
        halve_counts(r);
    reclaim(r);
    memcpy(lists, r->wanted, r->n_wanted * sizeof *lists);
    n = r->n_wanted;
    r->n_wanted = 0;
    memcpy(lists + n, reader->missed, reader->n_missed * sizeof *lists);
    n += reader->n_missed;
    reader->n_missed = 0;
    const uint32_t n_copies = admit_all(r, lists, n, most_bytes, copies, max);
    pthread_mutex_unlock(&r->lock);
    return n_copies;
}

void gx_residency_arrive(gx_residency *r, const gx_residency_copy *copy, bool complete)
{
    pthread_mutex_lock(&r->lock);
    extent *e = &r->extents[copy->extent];
    if (complete) {
        e->state = RESIDENT;
        add_to_heap(r, copy->extent);
        r->total.lists += 1;
        r->total.bytes += copy->bytes;
        atomic_store(&r->where[copy->list], copy->extent + 1);
    } else {
        atomic_store(&r->where[copy->list], 0);
        free_extent(r, copy->extent);
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- planning ---- */

typedef struct ranked_list {
    double value;
    uint32_t list;
} ranked_list;

static int compare_values(const void *a, const void *b)
{
    const ranked_list *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return (x->list > y->list) - (x->list < y->list);
}

/* What it is worth, by its f, that the list is in the pool. */
static double value_of(const gx_residency *r, uint32_t list)
{
    return frequency(r, list) / (double)bytes_of(r, list);
}

/* Evict all lists, and wait until their places are free. */
static void evict_all(gx_residency *r)
{
    const struct timespec nap = {0, 50000};
    while (r->n_heap)
        evict(r, r->heap[r->n_heap - 1]);
    for (reclaim(r); r->leaving != NONE; reclaim(r)) {
        pthread_mutex_unlock(&r->lock);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&r->lock);
    }
}

/* The lists that have been used, the best first. */
static gx_status rank_lists(gx_residency *r, gx_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->opt.n_lists; ++i)
        n += frequency(r, i) > 0;
    ranked_list *ranked = malloc((n + 1ull) * sizeof *ranked);
    uint32_t *plan = malloc((n + 1ull) * sizeof *plan);
    if (!ranked || !plan) {
        free(ranked);
        free(plan);
        return gx_fail(err, GX_ENOMEM, "no memory to plan which of %u lists lie in the GPU's memory", n);
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < r->opt.n_lists && at < n; ++i) { /* searches may count meanwhile */
        if (frequency(r, i) > 0)
            ranked[at++] = (ranked_list){value_of(r, i), i};
    }
    qsort(ranked, at, sizeof *ranked, compare_values);
    for (uint32_t i = 0; i < at; ++i)
        plan[i] = ranked[i].list;
    free(ranked);
    free(r->plan);
    r->plan = plan;
    r->n_planned = at;
    r->next_planned = 0;
    return GX_OK;
}

gx_status gx_residency_plan(gx_residency *r, const uint32_t *counts, gx_error *err)
{
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->opt.n_lists; ++i) {
        const uint32_t f = atomic_load_explicit(&r->counts[i], memory_order_relaxed), more = counts ? counts[i] : 1;
        atomic_store_explicit(&r->counts[i], f + more < f ? UINT32_MAX : f + more, memory_order_relaxed);
    }
    if (!r->opt.rule)
        evict_all(r);
    const gx_status st = rank_lists(r, err);
    pthread_mutex_unlock(&r->lock);
    return st;
}

uint32_t gx_residency_next_planned(gx_residency *r, gx_residency_copy *copies, uint32_t max)
{
    uint32_t n = 0;
    pthread_mutex_lock(&r->lock);
    const uint64_t tick = atomic_load_explicit(&r->tick, memory_order_relaxed);
    while (n < max && r->next_planned < r->n_planned) {
        const uint32_t list = r->plan[r->next_planned++];
        if (atomic_load(&r->where[list]) != 0)
            continue;
        const uint32_t number = take_extent(r, units_of(r, list), list);
        if (number != NONE)
            copies[n++] = begin_copy(r, number, tick);
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}

/* ---- the cache ---- */

/* One free extent of all units. */
static void begin_empty(gx_residency *r)
{
    r->unused = r->leaving = r->last_leaving = NONE;
    for (uint32_t c = 0; c < N_CLASSES; ++c)
        r->free_of[c] = NONE;
    if (r->n_units == 0)
        return;
    const uint32_t all = new_extent(r);
    r->extents[all].n = r->n_units;
    r->extents[all].before = r->extents[all].after = NONE;
    list_free(r, all);
}

gx_status gx_residency_open(gx_residency **out, const gx_residency_options *opt, gx_error *err)
{
    gx_residency *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return gx_fail(err, GX_ENOMEM, "no memory for a list cache");
    pthread_mutex_init(&r->lock, NULL);
    r->opt = *opt;
    if (r->opt.halve_after == 0)
        r->opt.halve_after = DEFAULT_HALVING;
    const uint64_t units = opt->bytes / GX_RESIDENCY_UNIT, lists = 2ull * opt->n_lists + 2;
    r->n_units = units < NONE - 1 ? (uint32_t)units : NONE - 1;
    r->max_extents = lists < r->n_units + 1ull ? (uint32_t)lists : r->n_units + 1;
    r->where = calloc(opt->n_lists + 1ull, sizeof *r->where);
    r->counts = calloc(opt->n_lists + 1ull, sizeof *r->counts);
    r->extents = calloc(r->max_extents, sizeof *r->extents);
    r->heap = calloc(r->max_extents, sizeof *r->heap);
    if (!r->where || !r->counts || !r->extents || !r->heap) {
        gx_residency_close(r);
        return gx_fail(err, GX_ENOMEM, "no memory for a cache of %u lists", opt->n_lists);
    }
    begin_empty(r);
    *out = r;
    return GX_OK;
}

void gx_residency_close(gx_residency *r)
{
    if (!r)
        return;
    pthread_mutex_destroy(&r->lock);
    free(r->where);
    free(r->counts);
    free(r->extents);
    free(r->heap);
    free(r->plan);
    free(r);
}

gx_residency_counts gx_residency_get_counts(gx_residency *r)
{
    pthread_mutex_lock(&r->lock);
    const gx_residency_counts c = r->total;
    pthread_mutex_unlock(&r->lock);
    return c;
}
