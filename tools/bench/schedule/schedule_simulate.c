#include "tools/bench/schedule/schedule_simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/random.h"
#include "engine/status.h"
#include "query/schedule/scheduler.h"

#define MOST_WAIT (1u << 20)
#define STEP 1.189207115 /* a quarter of an octave */
#define MOST_RATE 1e10   /* queries a second */
#define DEADLINES 40     /* a run is at least so many deadlines long */

const char *sim_system_name(sim_system s)
{
    static const char *const names[N_SIM_SYSTEMS] = {"CPU only",         "GPU only",       "CPU+GPU serialized",
                                                     "CPU+GPU parallel", "GPU in batches", "CPU+GPU, GPU in batches"};
    return names[s];
}

/* ---- what arrives ---- */

typedef struct arrivals {
    const sim_options *opt;
    uint64_t random, n;
    double at;         /* ns, of the next query */
    const sim_cost *q; /* and its costs */
    double predicted[2];
} arrivals;

static double uniform(arrivals *a)
{
    return ((double)(gx_random_next(&a->random) >> 11) + 0.5) * 0x1p-53;
}

static double wrong_by(arrivals *a)
{
    const double z = sqrt(-2 * log(uniform(a))) * cos(6.283185307179586 * uniform(a));
    return exp(a->opt->error * z);
}

static void next_arrival(arrivals *a)
{
    ++a->n;
    a->at -= log(uniform(a)) * 1e9 / a->opt->rate;
    a->q = &a->opt->costs[gx_random_next(&a->random) % a->opt->n_costs];
    a->predicted[0] = wrong_by(a);
    a->predicted[1] = wrong_by(a);
}

/* ---- what is measured ---- */

typedef struct record {
    sim_result *out;
    const sim_options *opt;
    uint64_t length; /* queries of the run */
    double *delays;  /* [capacity] */
    uint64_t capacity;
    bool no_memory;
    double sum;
    uint64_t by_cpu;
} record;

/* If all queries of a run together took less than the deadline, none could be late at any rate, and if they took little
 * more, the system would carry more than it can answer. */
static uint64_t length_of_run(const sim_options *opt)
{
    const double n = opt->deadline < 1e18 ? DEADLINES * opt->deadline * 1e-9 * opt->rate : 0;
    return n > (double)opt->n_queries ? (uint64_t)n : opt->n_queries;
}

/* Few runs that are long by their rate get to their end. */
static bool has_room(record *r)
{
    if (r->out->n_answered < r->capacity)
        return true;
    const uint64_t capacity = 2 * r->capacity + 1024;
    double *const delays = realloc(r->delays, capacity * sizeof *delays);
    if (!delays)
        return false;
    r->delays = delays;
    r->capacity = capacity;
    return true;
}

static void note(record *r, double delay, bool cpu)
{
    if (!has_room(r)) {
        r->no_memory = r->out->late = true; /* so the run ends */
        return;
    }
    r->delays[r->out->n_answered++] = delay;
    r->sum += delay;
    r->by_cpu += cpu;
    r->out->most = delay > r->out->most ? delay : r->out->most;
    r->out->late = r->out->late || delay > r->opt->deadline;
}

static int compare_delays(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void finish(record *r)
{
    const uint64_t n = r->out->n_answered;
    if (!n)
        return;
    qsort(r->delays, n, sizeof *r->delays, compare_delays);
    r->out->mean = r->sum / (double)n;
    r->out->p99 = r->delays[(uint64_t)(0.99 * (double)(n - 1))];
    r->out->cpu_share = (double)r->by_cpu / (double)n;
}

/* ---- first come, first served ---- */

/* By `servers` that are alike. A query costs what its place in sim_cost says, or the least of all. */
static void serve(sim_system system, arrivals *a, double *free_at, uint32_t servers, record *r)
{
    while (a->n <= r->length && !r->out->late) {
        uint32_t first = 0;
        for (uint32_t i = 1; i < servers; ++i)
            first = free_at[i] < free_at[first] ? i : first;
        const bool cpu = system == SIM_CPU || (system == SIM_SERIAL && a->q->cpu <= a->q->alone);
        const double begin = free_at[first] > a->at ? free_at[first] : a->at;
        free_at[first] = begin + (cpu ? a->q->cpu : a->q->alone);
        note(r, free_at[first] - a->at, cpu);
        next_arrival(a);
    }
}

/* ---- scheduled ---- */

/* A processor's queries under way. */
typedef struct busy {
    double until; /* ns; 0: it is free */
    double predicted;
    uint32_t n;
    double *arrived; /* [n] of the queries */
} busy;

typedef struct events {
    const sim_options *opt;
    sim_system system;
    gx_scheduler *s;
    uint32_t bound, n_cpu, batch, n_processors; /* the GPU is the last processor, if there is one */
    busy *processors;
    const sim_cost **costs; /* [bound] by slot */
    double *arrived;        /* [bound] by slot */
    uint32_t *slots;        /* [batch] */
    record *r;
} events;

static bool is_gpu(const events *e, uint32_t p)
{
    return p >= e->n_cpu;
}

/* Let every free processor take. */
static void let_take(events *e, double now)
{
    for (uint32_t p = 0; p < e->n_processors; ++p) {
        busy *b = &e->processors[p];
        if (b->until > 0)
            continue;
        const gx_processor kind = is_gpu(e, p) ? GX_PROCESSOR_GPU : GX_PROCESSOR_CPU;
        b->n = gx_scheduler_take(e->s, (uint64_t)now, kind, e->slots, is_gpu(e, p) ? e->batch : 1, &b->predicted);
        if (!b->n)
            continue;
        double cost = b->n > 1 ? e->opt->fixed : 0;
        for (uint32_t i = 0; i < b->n; ++i) {
            const sim_cost *q = e->costs[e->slots[i]];
            cost += !is_gpu(e, p) ? q->cpu : b->n > 1 ? q->gpu : q->alone;
            b->arrived[i] = e->arrived[e->slots[i]];
        }
        b->until = now + cost;
    }
}

static void complete(events *e, uint32_t p)
{
    busy *b = &e->processors[p];
    gx_scheduler_done(e->s, is_gpu(e, p) ? GX_PROCESSOR_GPU : GX_PROCESSOR_CPU, b->predicted);
    for (uint32_t i = 0; i < b->n; ++i)
        note(e->r, b->until - b->arrived[i], !is_gpu(e, p));
    b->until = 0;
}

static bool arrive(events *e, const arrivals *a)
{
    const double deadline = e->opt->deadline < 1e18 ? a->at + e->opt->deadline : 0;
    const gx_schedule_job j = {.number = a->n,
                               .arrived = (uint64_t)a->at,
                               .deadline = (uint64_t)deadline,
                               .cpu = (float)(a->q->cpu * a->predicted[0]),
                               .gpu_alone = (float)(a->q->alone * a->predicted[1]),
                               .gpu = (float)((e->batch > 1 ? a->q->gpu : a->q->alone) * a->predicted[1]),
                               .only = -1};
    gx_schedule_group group;
    uint32_t slot;
    if (!gx_scheduler_put(e->s, (uint64_t)a->at, &j, &slot, &group))
        return false;
    e->costs[slot] = a->q;
    e->arrived[slot] = a->at;
    return true;
}

/* The processor that is through first, or n_processors. */
static uint32_t first_done(const events *e)
{
    uint32_t first = e->n_processors;
    for (uint32_t p = 0; p < e->n_processors; ++p) {
        if (e->processors[p].until > 0 &&
            (first == e->n_processors || e->processors[p].until < e->processors[first].until))
            first = p;
    }
    return first;
}

static void run_events(events *e, arrivals *a)
{
    for (;;) {
        const uint32_t p = first_done(e);
        const double done = p < e->n_processors ? e->processors[p].until : INFINITY;
        const double arrival = a->n <= e->r->length ? a->at : INFINITY;
        if (e->r->out->late || (done == INFINITY && arrival == INFINITY))
            return;
        if (done <= arrival) {
            complete(e, p);
            let_take(e, done);
        } else {
            if (!arrive(e, a)) {
                e->r->out->late = true;
                return;
            }
            let_take(e, arrival);
            next_arrival(a);
        }
    }
}

static void close_events(events *e)
{
    for (uint32_t p = 0; p < e->n_processors && e->processors; ++p)
        free(e->processors[p].arrived);
    free(e->processors);
    free(e->costs);
    free(e->arrived);
    free(e->slots);
    gx_scheduler_close(e->s);
}

/* Queries that wait at most: of more than come within two deadlines, one is as good as late. */
static uint32_t most_that_wait(const sim_options *opt)
{
    const double n = opt->deadline < 1e18 ? 2 * opt->deadline * 1e-9 * opt->rate + 4096 : 1u << 17;
    return n < MOST_WAIT ? (uint32_t)n : MOST_WAIT;
}

static gx_status open_events(events *e, gx_error *err)
{
    const bool cpu = e->system != SIM_BATCHES;
    const gx_scheduler_options opt = {.bound = e->bound,
                                      .cpu_threads = cpu ? e->opt->cpu_threads : 0,
                                      .gpu_threads = 1,
                                      .batch = e->batch,
                                      .batch_ns = (uint64_t)e->opt->batch_wait,
                                      .threshold = 2,
                                      .adapt = true,
                                      .urgent = 0.5,
                                      .patience_ns = 500000000};
    const gx_status st = gx_scheduler_open(&e->s, &opt, err);
    if (st != GX_OK)
        return st;
    e->n_cpu = opt.cpu_threads;
    e->n_processors = e->n_cpu + 1;
    e->processors = calloc(e->n_processors, sizeof *e->processors);
    e->costs = malloc(e->bound * sizeof *e->costs);
    e->arrived = malloc(e->bound * sizeof *e->arrived);
    e->slots = malloc(e->batch * sizeof *e->slots);
    bool good = e->processors && e->costs && e->arrived && e->slots;
    for (uint32_t p = 0; p < e->n_processors && good; ++p)
        good = (e->processors[p].arrived = malloc(e->batch * sizeof(double))) != NULL;
    return good ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for a simulation");
}

static gx_status run_scheduled(sim_system system, const sim_options *opt, arrivals *a, record *r, gx_error *err)
{
    events e = {.opt = opt,
                .system = system,
                .batch = system == SIM_PARALLEL ? 1 : opt->batch,
                .bound = most_that_wait(opt),
                .r = r};
    const gx_status st = open_events(&e, err);
    if (st == GX_OK)
        run_events(&e, a);
    close_events(&e);
    return st;
}

/* ---- runs ---- */

gx_status sim_run(sim_result *out, sim_system system, const sim_options *opt, gx_error *err)
{
    arrivals a = {.opt = opt, .random = opt->seed};
    record r = {.out = out, .opt = opt, .length = length_of_run(opt)};
    double *free_at = calloc(opt->cpu_threads, sizeof *free_at);
    gx_status st = free_at ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for a simulation");
    *out = (sim_result){0};
    next_arrival(&a);
    if (st == GX_OK && system <= SIM_SERIAL)
        serve(system, &a, free_at, system == SIM_CPU ? opt->cpu_threads : 1, &r);
    else if (st == GX_OK)
        st = run_scheduled(system, opt, &a, &r, err);
    if (st == GX_OK && r.no_memory)
        st = gx_fail(err, GX_ENOMEM, "no memory for the delays of a simulation");
    if (st == GX_OK)
        finish(&r);
    free(free_at);
    free(r.delays);
    return st;
}

static gx_status is_good(bool *good, sim_system system, const sim_options *opt, double rate, gx_error *err)
{
    sim_options o = *opt;
    sim_result r;
    o.rate = rate;
    const gx_status st = sim_run(&r, system, &o, err);
    *good = !r.late;
    return st;
}

gx_status sim_find_rate(double *out, sim_system system, const sim_options *opt, double from, gx_error *err)
{
    double low = 0, high = from;
    bool good = true;
    gx_status st;
    while ((st = is_good(&good, system, opt, high, err)) == GX_OK && good && high < MOST_RATE) {
        low = high;
        high *= STEP;
    }
    if (good)
        low = high;
    while (st == GX_OK && low > 0 && high / low > 1.03) {
        const double middle = sqrt(low * high);
        st = is_good(&good, system, opt, middle, err);
        *(good ? &low : &high) = middle;
    }
    if (st == GX_OK)
        *out = low;
    return st;
}
