#include "query/schedule/scheduler.h"

#include <math.h>
#include <stdlib.h>

#include "engine/heap.h"
#include "engine/status.h"

#define MOST_ADAPTED 64.0 /* the threshold moves by at most this factor */
#define MOST_STALE 64u    /* entries of a heap that may be stale, besides as many as wait */
#define N_POWERS 64u      /* of two, of costs */
#define NEAR 64u          /* places that an entry moves up in a list before the heap is used */
#define NO_SLOT UINT32_MAX

/* A query that waits, in a slot of its own. */
typedef struct waiting_job {
    gx_schedule_job job;
    uint64_t urgent_at;
    uint8_t group;
    bool waits, in_list;
    uint32_t before, next;     /* in the list of its group, by the order in which they were put; next: of a */
                               /* free slot too */
    uint32_t q_before, q_next; /* in_list: in a list of its queue, */
    uint64_t key;              /* by this */
} waiting_job;

/* An entry of a queue. It is stale once its query has left by another queue: then the slot is free
 * or holds another ticket. */
typedef struct entry {
    uint64_t key, ticket;
    uint32_t slot;
} entry;

/* A binary heap, the least key first, then the least ticket. */
typedef struct heap {
    entry *at; /* [n], room for twice the bound and MOST_STALE more */
    uint32_t n;
} heap;

/* A processor's queue, in the order of comes_before: a list for each power of two of the costs.
 * Most queries come in nearly that order, and are linked in from the end. The others are in a heap. */
typedef struct queue {
    uint32_t first[N_POWERS], last[N_POWERS];
    uint64_t filled; /* a bit for each list that is not empty */
    heap others;
} queue;

/* Predicted ns of a processor's queries. */
typedef struct load {
    double waiting;      /* in its queue */
    double underway;     /* taken and not done */
    uint32_t n_underway; /* calls of gx_scheduler_take that are not done */
} load;

struct gx_scheduler {
    gx_scheduler_options opt;
    waiting_job *jobs; /* [bound] */
    uint64_t *tickets; /* [bound] of the query in each slot */
    uint32_t first_free, n_waiting;
    uint64_t n_tickets;
    uint32_t oldest[GX_N_GROUPS], newest[GX_N_GROUPS]; /* lists of all that wait in a group */
    queue queues[2];                                   /* of GX_GROUP_CPU and GX_GROUP_GPU */
    heap urgent[2]; /* by gx_processor, each query in that of the processor that it prefers */
    uint32_t n_in[GX_N_GROUPS];
    load loads[2];
    double fixed;       /* the mean of gpu_alone - gpu of late: what a batch costs besides its queries */
    uint64_t gpu_since; /* when the oldest query that the GPU may take now was put, if there is one */
    bool gpu_usable;
    gx_schedule_counts counts;
};

/* ---- heaps ---- */

static bool comes_before(entry a, entry b)
{
    return a.key != b.key ? a.key < b.key : a.ticket < b.ticket;
}

GX_DEFINE_SIFT_DOWN(sift_down, entry, comes_before)

static void push(heap *h, const entry *e)
{
    uint32_t i = h->n++;
    for (uint32_t parent; i > 0 && comes_before(*e, h->at[parent = (i - 1) / 2]); i = parent)
        h->at[i] = h->at[parent];
    h->at[i] = *e;
}

static void pop(heap *h)
{
    h->at[0] = h->at[--h->n];
    if (h->n)
        sift_down(h->at, h->n, 0);
}

static bool is_stale(const gx_scheduler *s, const entry *e)
{
    return !s->jobs[e->slot].waits || s->tickets[e->slot] != e->ticket;
}

/* Drop the stale entries of a heap that has more of them than of others. A heap has room for twice
 * the bound and more, so there is always room for one entry then. */
static void make_room(gx_scheduler *s, heap *h)
{
    uint32_t n = 0;
    if (h->n < 2 * s->n_waiting + MOST_STALE)
        return;
    for (uint32_t i = 0; i < h->n; ++i) {
        if (!is_stale(s, &h->at[i]))
            h->at[n++] = h->at[i];
    }
    h->n = n;
    for (uint32_t i = n / 2; i-- > 0;)
        sift_down(h->at, h->n, i);
}

/* The first entry that is not stale, or NULL. What is stale before it is dropped. */
static const entry *first_of(gx_scheduler *s, heap *h)
{
    while (h->n && is_stale(s, &h->at[0]))
        pop(h);
    return h->n ? &h->at[0] : NULL;
}

/* The first entry of a queue of urgent ones that is urgent by now, or NULL. */
static const entry *urgent_of(gx_scheduler *s, gx_processor p, uint64_t now)
{
    heap *h = &s->urgent[p];
    if (!h->n || h->at[0].key > now) /* stale or not: the others are no earlier */
        return NULL;
    const entry *e = first_of(s, h);
    return e && e->key <= now ? e : NULL;
}

/* ---- queues ---- */

static entry entry_of(const gx_scheduler *s, uint32_t slot)
{
    return (entry){s->jobs[slot].key, s->tickets[slot], slot};
}

/* Link the newest query into the list of its power, before those that come after it. false: that
 * would be far from the end. */
static bool link_near_end(gx_scheduler *s, queue *q, uint32_t slot)
{
    waiting_job *w = &s->jobs[slot];
    const uint32_t power = (uint32_t)(w->key >> 58);
    uint32_t next = NO_SLOT, before = q->last[power];
    for (uint32_t steps = 0; before != NO_SLOT && s->jobs[before].key > w->key; before = s->jobs[before].q_before) {
        next = before;
        if (++steps > NEAR)
            return false;
    }
    w->q_before = before;
    w->q_next = next;
    *(before == NO_SLOT ? &q->first[power] : &s->jobs[before].q_next) = slot;
    *(next == NO_SLOT ? &q->last[power] : &s->jobs[next].q_before) = slot;
    q->filled |= UINT64_C(1) << power;
    w->in_list = true;
    return true;
}

static void add_to_queue(gx_scheduler *s, queue *q, uint32_t slot)
{
    const entry e = entry_of(s, slot);
    if (link_near_end(s, q, slot))
        return;
    make_room(s, &q->others);
    push(&q->others, &e);
}

/* Take a query out of its list, if it is in one; an entry of the heap becomes stale. */
static void leave_list(gx_scheduler *s, queue *q, uint32_t slot)
{
    waiting_job *w = &s->jobs[slot];
    const uint32_t power = (uint32_t)(w->key >> 58);
    if (!w->in_list)
        return;
    *(w->q_before == NO_SLOT ? &q->first[power] : &s->jobs[w->q_before].q_next) = w->q_next;
    *(w->q_next == NO_SLOT ? &q->last[power] : &s->jobs[w->q_next].q_before) = w->q_before;
    if (q->first[power] == NO_SLOT)
        q->filled &= ~(UINT64_C(1) << power);
    w->in_list = false;
}

/* The slot of the first query of a queue, or NO_SLOT. */
static uint32_t first_in_queue(gx_scheduler *s, queue *q)
{
    const entry *other = first_of(s, &q->others);
    if (!q->filled)
        return other ? other->slot : NO_SLOT;
    const uint32_t slot = q->first[__builtin_ctzll(q->filled)];
    const entry e = entry_of(s, slot);
    return other && comes_before(*other, e) ? other->slot : slot;
}

/* ---- open, close ---- */

void gx_scheduler_close(gx_scheduler *s)
{
    if (!s)
        return;
    for (int i = 0; i < 2; ++i) {
        free(s->queues[i].others.at);
        free(s->urgent[i].at);
    }
    free(s->jobs);
    free(s->tickets);
    free(s);
}

static bool open_heap(heap *h, uint32_t bound)
{
    h->at = malloc((2 * (size_t)bound + MOST_STALE) * sizeof *h->at);
    return h->at != NULL;
}

gx_status gx_scheduler_open(gx_scheduler **out, const gx_scheduler_options *opt, gx_error *err)
{
    *out = NULL;
    if (!opt->cpu_threads && !opt->gpu_threads)
        return gx_fail(err, GX_EUSAGE, "a scheduler needs a processor");
    if (!opt->bound || opt->bound > (1u << 30) || !opt->batch)
        return gx_fail(err, GX_EUSAGE, "the bound of the queue is from 1 to 2^30, and a batch has at least 1 query");
    if (!(opt->threshold > 1) || !(opt->urgent >= 0 && opt->urgent <= 1))
        return gx_fail(err, GX_EUSAGE,
                       "the threshold is above 1, and the share after which a query is urgent from 0 to 1");
    gx_scheduler *s = calloc(1, sizeof *s);
    bool good = s != NULL;
    if (good) {
        s->jobs = calloc(opt->bound, sizeof *s->jobs);
        s->tickets = calloc(opt->bound, sizeof *s->tickets);
        good = s->jobs && s->tickets;
        for (int i = 0; i < 2; ++i)
            good = good && open_heap(&s->queues[i].others, opt->bound) && open_heap(&s->urgent[i], opt->bound);
    }
    if (!good) {
        gx_scheduler_close(s);
        return gx_fail(err, GX_ENOMEM, "no memory for a queue of %u queries", opt->bound);
    }
    s->opt = *opt;
    s->gpu_usable = opt->gpu_threads > 0;
    for (int i = 0; i < GX_N_GROUPS; ++i)
        s->oldest[i] = s->newest[i] = NO_SLOT;
    for (uint32_t i = 0; i < N_POWERS; ++i)
        for (int p = 0; p < 2; ++p)
            s->queues[p].first[i] = s->queues[p].last[i] = NO_SLOT;
    for (uint32_t i = 0; i < opt->bound; ++i)
        s->jobs[i].next = i + 1 < opt->bound ? i + 1 : NO_SLOT;
    *out = s;
    return GX_OK;
}

/* ---- groups ---- */

/* Queries that wait and that a batch may hold without stealing. */
static uint32_t n_for_gpu(const gx_scheduler *s)
{
    return s->n_in[GX_GROUP_GPU] + s->n_in[GX_GROUP_EITHER];
}

static bool has(const gx_scheduler *s, gx_processor p)
{
    return p == GX_PROCESSOR_CPU ? s->opt.cpu_threads > 0 : s->gpu_usable;
}

/* Predicted ns until a processor has done all that waits for it and is under way. */
static double backlog(const gx_scheduler *s, gx_processor p)
{
    const load *l = &s->loads[p];
    if (p == GX_PROCESSOR_CPU)
        return (l->waiting + l->underway) / (s->opt.cpu_threads ? s->opt.cpu_threads : 1);
    return l->waiting + l->underway + (s->n_in[GX_GROUP_GPU] ? s->fixed : 0) + l->n_underway * s->fixed;
}

static bool is_idle(const gx_scheduler *s, gx_processor p)
{
    const uint32_t threads = p == GX_PROCESSOR_CPU ? s->opt.cpu_threads : 1;
    const gx_schedule_group own = p == GX_PROCESSOR_CPU ? GX_GROUP_CPU : GX_GROUP_GPU;
    return s->loads[p].n_underway + s->n_in[own] < threads;
}

/* A query's cost on a processor as it is now: an idle GPU answers it alone, and a busy one in a
 * batch with others. */
static double cost_now(const gx_scheduler *s, const gx_schedule_job *j, gx_processor p)
{
    if (p == GX_PROCESSOR_CPU)
        return j->cpu;
    if (is_idle(s, p))
        return j->gpu_alone;
    return j->gpu + s->fixed / (1.0 + n_for_gpu(s));
}

static gx_schedule_group choose_group(const gx_scheduler *s, const gx_schedule_job *j)
{
    if (j->only >= 0 || !has(s, GX_PROCESSOR_CPU) || !has(s, GX_PROCESSOR_GPU)) {
        const bool gpu = j->only >= 0 ? j->only == GX_PROCESSOR_GPU : has(s, GX_PROCESSOR_GPU);
        return gpu ? GX_GROUP_GPU : GX_GROUP_CPU;
    }
    const double ratio = cost_now(s, j, GX_PROCESSOR_CPU) / cost_now(s, j, GX_PROCESSOR_GPU);
    double moved = 1; /* above 1: the GPU has more to do */
    if (s->opt.adapt) {
        moved = (s->fixed + 1 + backlog(s, GX_PROCESSOR_GPU)) / (s->fixed + 1 + backlog(s, GX_PROCESSOR_CPU));
        moved = moved > MOST_ADAPTED ? MOST_ADAPTED : moved < 1 / MOST_ADAPTED ? 1 / MOST_ADAPTED : moved;
    }
    if (ratio >= s->opt.threshold * moved)
        return GX_GROUP_GPU;
    if (ratio * s->opt.threshold <= moved)
        return GX_GROUP_CPU;
    if (ratio >= moved && is_idle(s, GX_PROCESSOR_GPU)) /* either can answer it, and the better one is free */
        return GX_GROUP_GPU;
    return ratio <= moved && is_idle(s, GX_PROCESSOR_CPU) ? GX_GROUP_CPU : GX_GROUP_EITHER;
}

static double cost_in_queue(const gx_schedule_job *j, uint8_t group)
{
    return group == GX_GROUP_CPU ? j->cpu : group == GX_GROUP_GPU ? j->gpu : 0;
}

static uint64_t clamp(int n, int most)
{
    return n < 0 ? 0 : n > most ? (uint64_t)most : (uint64_t)n;
}

/* The place of a query in its queue: cost by powers of two, then deadline in steps of 65.5 us, then
 * affinity by powers of four, the greatest first. */
static uint64_t queue_key(const gx_schedule_job *j, gx_schedule_group group, uint64_t deadline)
{
    const double affinity = group == GX_GROUP_CPU ? j->gpu / j->cpu : j->cpu / j->gpu;
    return clamp(ilogb(cost_in_queue(j, group) + 1), 63) << 58 | deadline >> 16 << 4 |
           (15 - clamp(8 + ilogb(affinity) / 2, 15));
}

static gx_processor preferred(const gx_scheduler *s, const waiting_job *w)
{
    if (w->group != GX_GROUP_EITHER)
        return w->group == GX_GROUP_CPU ? GX_PROCESSOR_CPU : GX_PROCESSOR_GPU;
    return w->job.cpu <= w->job.gpu + s->fixed ? GX_PROCESSOR_CPU : GX_PROCESSOR_GPU;
}

/* Put a query at the end of its group's list. */
static void append(gx_scheduler *s, uint32_t slot, gx_schedule_group group)
{
    waiting_job *w = &s->jobs[slot];
    w->before = s->newest[group];
    w->next = NO_SLOT;
    if (w->before == NO_SLOT)
        s->oldest[group] = slot;
    else
        s->jobs[w->before].next = slot;
    s->newest[group] = slot;
    ++s->n_in[group];
}

/* Take a query out of its group's list. */
static void unlink_slot(gx_scheduler *s, uint32_t slot)
{
    const waiting_job *w = &s->jobs[slot];
    if (w->before == NO_SLOT)
        s->oldest[w->group] = w->next;
    else
        s->jobs[w->before].next = w->next;
    if (w->next == NO_SLOT)
        s->newest[w->group] = w->before;
    else
        s->jobs[w->next].before = w->before;
    --s->n_in[w->group];
}

/* Put the query of a slot into the queue of its group, and into that of the urgent ones. */
static void enqueue(gx_scheduler *s, uint32_t slot, gx_schedule_group group)
{
    waiting_job *w = &s->jobs[slot];
    const gx_schedule_job *j = &w->job;
    const uint64_t deadline = j->deadline ? j->deadline : j->arrived + s->opt.patience_ns;
    const uint64_t left = deadline > j->arrived ? deadline - j->arrived : 0;
    w->group = (uint8_t)group;
    w->urgent_at = j->arrived + (uint64_t)((double)left * s->opt.urgent);
    append(s, slot, group);
    const entry e = {w->urgent_at, s->tickets[slot], slot};
    heap *urgent = &s->urgent[preferred(s, w)];
    make_room(s, urgent);
    push(urgent, &e);
    if (group == GX_GROUP_EITHER)
        return;
    w->key = queue_key(j, group, deadline);
    add_to_queue(s, &s->queues[group], slot);
    s->loads[group == GX_GROUP_CPU ? GX_PROCESSOR_CPU : GX_PROCESSOR_GPU].waiting += cost_in_queue(j, w->group);
}

bool gx_scheduler_put(gx_scheduler *s, uint64_t now, const gx_schedule_job *job, uint32_t *slot,
                      gx_schedule_group *group)
{
    const uint32_t at = s->first_free;
    if (at == NO_SLOT)
        return false;
    if (!n_for_gpu(s))
        s->gpu_since = now;
    waiting_job *w = &s->jobs[at];
    s->first_free = w->next;
    s->fixed += (job->gpu_alone - job->gpu - s->fixed) * (s->n_tickets ? 0.01 : 1);
    if (!(s->fixed > 0))
        s->fixed = 0;
    s->tickets[at] = ++s->n_tickets;
    w->job = *job;
    w->waits = true;
    ++s->n_waiting;
    *group = choose_group(s, job);
    enqueue(s, at, *group);
    ++s->counts.put[*group];
    *slot = at;
    return true;
}

/* ---- taking ---- */

/* Take a query out of its queue; its entries become stale. */
static void leave_queue(gx_scheduler *s, uint32_t slot)
{
    waiting_job *w = &s->jobs[slot];
    unlink_slot(s, slot);
    w->waits = false;
    w->next = s->first_free;
    s->first_free = slot;
    --s->n_waiting;
    if (w->group == GX_GROUP_EITHER)
        return;
    leave_list(s, &s->queues[w->group], slot);
    load *l = &s->loads[w->group == GX_GROUP_CPU ? GX_PROCESSOR_CPU : GX_PROCESSOR_GPU];
    l->waiting -= cost_in_queue(&w->job, w->group);
    if (l->waiting < 0 || s->n_in[w->group] == 0) /* of rounding */
        l->waiting = 0;
}

/* A batch, or a CPU thread's query, that is being filled. */
typedef struct taking {
    gx_processor p;
    uint32_t *slots;
    uint32_t n, max;
} taking;

static void take_slot(gx_scheduler *s, taking *t, uint32_t slot)
{
    const gx_schedule_job *j = &s->jobs[slot].job;
    s->loads[t->p].underway += t->p == GX_PROCESSOR_CPU ? j->cpu : j->gpu;
    leave_queue(s, slot);
    t->slots[t->n++] = slot;
}

static void take_urgent(gx_scheduler *s, uint64_t now, taking *t)
{
    const entry *e;
    while (t->n < t->max && (e = urgent_of(s, t->p, now))) {
        const uint32_t slot = e->slot;
        pop(&s->urgent[t->p]);
        take_slot(s, t, slot);
        ++s->counts.urgent;
    }
}

/* Take the oldest of a group. */
static void take_oldest(gx_scheduler *s, gx_schedule_group group, taking *t)
{
    while (t->n < t->max && s->n_in[group])
        take_slot(s, t, s->oldest[group]);
}

/* Take from a processor's queue, in its order; where all of it fits, the order is of no matter. */
static void take_own(gx_scheduler *s, gx_schedule_group group, taking *t)
{
    if (s->n_in[group] <= t->max - t->n) {
        take_oldest(s, group, t);
        s->queues[group].others.n = 0;
        return;
    }
    for (uint32_t slot; t->n < t->max && (slot = first_in_queue(s, &s->queues[group])) != NO_SLOT;)
        take_slot(s, t, slot);
}

/* What to steal next: the other processor's urgent query, or the first of its queue. */
static uint32_t next_to_steal(gx_scheduler *s, gx_processor from, gx_schedule_group group, uint64_t now)
{
    const entry *urgent = urgent_of(s, from, now);
    return urgent ? urgent->slot : first_in_queue(s, &s->queues[group]);
}

/* Steal from the other processor while this one answers a query sooner than that one would be
 * through with all that it has. */
static void steal(gx_scheduler *s, uint64_t now, taking *t)
{
    const gx_processor other = t->p == GX_PROCESSOR_CPU ? GX_PROCESSOR_GPU : GX_PROCESSOR_CPU;
    const gx_schedule_group theirs = t->p == GX_PROCESSOR_CPU ? GX_GROUP_GPU : GX_GROUP_CPU;
    uint32_t slot;
    double mine = t->p == GX_PROCESSOR_CPU || t->n ? 0 : s->fixed;
    while (t->n < t->max && (slot = next_to_steal(s, other, theirs, now)) != NO_SLOT) {
        const gx_schedule_job *j = &s->jobs[slot].job;
        mine += t->p == GX_PROCESSOR_CPU ? j->cpu : j->gpu;
        if (j->only >= 0 || (has(s, other) && mine >= backlog(s, other)))
            return;
        take_slot(s, t, slot);
        ++s->counts.stolen;
    }
}

static bool batch_is_closed(gx_scheduler *s, uint64_t now)
{
    const uint32_t n = n_for_gpu(s);
    if (!s->loads[GX_PROCESSOR_GPU].n_underway)
        return true;
    if (s->loads[GX_PROCESSOR_GPU].n_underway >= s->opt.gpu_threads)
        return false;
    if (n >= s->opt.batch || urgent_of(s, GX_PROCESSOR_GPU, now))
        return true;
    return n && now >= s->gpu_since + s->opt.batch_ns;
}

uint32_t gx_scheduler_take(gx_scheduler *s, uint64_t now, gx_processor p, uint32_t *slots, uint32_t max, double *ns)
{
    const gx_schedule_group own = p == GX_PROCESSOR_CPU ? GX_GROUP_CPU : GX_GROUP_GPU;
    taking t = {p, slots, 0, max};
    const double before = s->loads[p].underway;
    *ns = 0;
    if (!s->n_waiting || !has(s, p) || (p == GX_PROCESSOR_GPU && !batch_is_closed(s, now)))
        return 0;
    take_urgent(s, now, &t);
    take_own(s, own, &t);
    take_oldest(s, GX_GROUP_EITHER, &t);
    steal(s, now, &t);
    if (!t.n)
        return 0;
    *ns = s->loads[p].underway - before;
    ++s->loads[p].n_underway;
    s->counts.taken[p] += t.n;
    s->counts.batches += p == GX_PROCESSOR_GPU;
    if (p == GX_PROCESSOR_GPU)
        s->gpu_since = now;
    return t.n;
}

void gx_scheduler_begin(gx_scheduler *s, gx_processor p, uint32_t n, double ns)
{
    s->loads[p].underway += ns;
    ++s->loads[p].n_underway;
    s->counts.taken[p] += n;
    s->counts.batches += p == GX_PROCESSOR_GPU;
}

void gx_scheduler_done(gx_scheduler *s, gx_processor p, double ns)
{
    load *l = &s->loads[p];
    l->underway -= ns;
    if (--l->n_underway == 0 || l->underway < 0) /* of rounding */
        l->underway = 0;
}

bool gx_scheduler_cancel(gx_scheduler *s, uint32_t slot, uint64_t number)
{
    if (slot >= s->opt.bound || !s->jobs[slot].waits || s->jobs[slot].job.number != number)
        return false;
    leave_queue(s, slot);
    return true;
}

uint64_t gx_scheduler_next(const gx_scheduler *s)
{
    if (!s->gpu_usable || !n_for_gpu(s) || s->loads[GX_PROCESSOR_GPU].n_underway >= s->opt.gpu_threads)
        return UINT64_MAX;
    const uint64_t closes = s->gpu_since + s->opt.batch_ns;
    const heap *urgent = &s->urgent[GX_PROCESSOR_GPU]; /* its first entry may be stale: then the time is too early */
    return urgent->n && urgent->at[0].key < closes ? urgent->at[0].key : closes;
}

void gx_scheduler_set_gpu(gx_scheduler *s, bool usable)
{
    s->gpu_usable = usable && s->opt.gpu_threads > 0;
}

uint32_t gx_scheduler_waiting(const gx_scheduler *s)
{
    return s->n_waiting;
}

gx_schedule_counts gx_scheduler_counts(const gx_scheduler *s)
{
    return s->counts;
}
