#include "tests/bench/residency_table.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/clock.h"
#include "engine/random.h"
#include "tests/support/residency_rules.h"

enum { N_LOG = 8192, BATCH = 1024, K = 10, MAX_SESSIONS = 64 };

/* How long sessions warm up, with a pool filled by a log or an empty one; and how long they are measured. */
static const double WARM_SECONDS = 0.3, COLD_SECONDS = 1.5, SECONDS = 0.8;

static const char *const policies[] = {"gdsf", "static"};

/* A log's plans; where the answers of the whole index are kept. */
typedef struct query_log {
    gx_plan plans[N_LOG];
    gx_hits want[N_LOG];
    gx_op op;
} query_log;

typedef struct table {
    const residency_bench *b;
    uint32_t *order;  /* [n_terms] lists, the most drawn first */
    double *sums;     /* [n_terms] of probabilities */
    uint32_t *counts; /* [n_terms] uses in the warming log */
    uint64_t random;
    query_log log;
    double full; /* queries/s of the engine whose payload is in GPU memory */
    uint64_t n_different;
} table;

static void die(const char *what, const gx_error *err)
{
    fprintf(stderr, "bench_query: residency: %s: %s\n", what, err->text);
    exit(1);
}

/* ---- the log ---- */

static double uniform(table *t)
{
    return ((double)(gx_random_next(&t->random) >> 11) + 0.5) / 9007199254740992.0;
}

static void order_lists(table *t)
{
    const uint32_t n = t->b->s->ix.n_terms;
    t->order = malloc(n * sizeof *t->order);
    t->sums = malloc(n * sizeof *t->sums);
    t->counts = calloc(n, sizeof *t->counts);
    double sum = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t j = (uint32_t)(uniform(t) * (i + 1));
        t->order[i] = t->order[j];
        t->order[j] = i;
        t->sums[i] = sum += pow(i + 1, -t->b->exponent);
    }
}

static uint32_t draw_list(table *t)
{
    const uint32_t n = t->b->s->ix.n_terms;
    const double x = uniform(t) * t->sums[n - 1];
    uint32_t lo = 0, hi = n - 1;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (t->sums[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return t->order[lo];
}

/* A query's lists; returns their number. */
static uint32_t draw_query(table *t, uint32_t lists[GX_SYNTH_MAX_TERMS])
{
    const double u = uniform(t);
    const uint32_t n = u < .35 ? 2 : u < .60 ? 3 : u < .82 ? 4 : 5;
    for (uint32_t m = 0; m < n;) {
        uint32_t i = 0;
        lists[m] = draw_list(t);
        while (lists[i] != lists[m])
            ++i;
        m += i == m;
    }
    return n;
}

static void make_log(table *t)
{
    const gx_index *ix = &t->b->s->ix;
    gx_query_options opt = GX_QUERY_OPTIONS;
    uint32_t lists[GX_SYNTH_MAX_TERMS];
    gx_error err;
    opt.k = K;
    order_lists(t);
    for (uint32_t i = 0; i < N_LOG; ++i) {
        for (uint32_t n = draw_query(t, lists); n > 0; --n)
            t->counts[lists[n - 1]] += 1;
    }
    for (uint32_t i = 0; i < N_LOG; ++i) {
        const uint32_t n = draw_query(t, lists);
        if (gx_plan_make_ids(&t->log.plans[i], ix, lists, NULL, n, &opt, &err) != GX_OK)
            die("plan", &err);
        t->log.want[i].keys = malloc(K * sizeof(uint64_t));
    }
}

static void set_op(table *t, gx_op op)
{
    for (uint32_t i = 0; i < N_LOG; ++i)
        t->log.plans[i].op = op;
}

/* ---- bytes over PCIe ---- */

/* A thread that asks NVML what the GPU receives, in KB/s, as long as it runs. */
typedef struct pcie_meter {
    int (*throughput)(void *device, int counter, unsigned *kb_a_second);
    void *device;
    atomic_bool stop;
    pthread_t thread;
    double sum;
    uint32_t n;
} pcie_meter;

static void *run_meter(void *arg)
{
    pcie_meter *m = arg;
    unsigned kb;
    while (!atomic_load(&m->stop)) {
        if (m->throughput(m->device, 1 /* NVML_PCIE_UTIL_RX_BYTES */, &kb) == 0) {
            m->sum += kb;
            m->n += 1;
        } else {
            nanosleep(&(struct timespec){0, 10000000}, NULL);
        }
    }
    return NULL;
}

static void start_meter(pcie_meter *m, int device)
{
    static void *library;
    *m = (pcie_meter){0};
    if (!library)
        library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library)
        return;
    int (*init)(void), (*find)(unsigned, void **);
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&find = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&m->throughput = dlsym(library, "nvmlDeviceGetPcieThroughput");
    if (!init || !find || !m->throughput || init() != 0 || find((unsigned)device, &m->device) != 0 ||
        pthread_create(&m->thread, NULL, run_meter, m) != 0)
        m->throughput = NULL;
}

/* GB/s, or NaN where there is no meter. */
static double stop_meter(pcie_meter *m)
{
    if (!m->throughput)
        return NAN;
    atomic_store(&m->stop, true);
    pthread_join(m->thread, NULL);
    return m->n ? m->sum / m->n * 1e3 / 1e9 : NAN;
}

/* ---- a run ---- */

/* A thread that answers the log over and over until a time, beginning at a batch of its own. */
typedef struct session {
    const table *t;
    void *exec;
    uint32_t first;
    double until;
    uint64_t n_queries, n_different;
    gx_search_stats work;
    pthread_t thread;
} session;

static void *run_session(void *arg)
{
    session *s = arg;
    const query_log *log = &s->t->log;
    gx_hits *hits = calloc(BATCH, sizeof *hits);
    gx_error err;
    for (uint32_t i = 0; i < BATCH; ++i)
        hits[i].keys = malloc(K * sizeof(uint64_t));
    for (uint32_t batch = s->first; gx_clock_seconds() < s->until; ++batch) {
        const uint32_t at = batch % (N_LOG / BATCH) * BATCH;
        if (s->t->b->ops->run(s->exec, log->plans + at, BATCH, hits, &s->work, &err) != GX_OK)
            die("run", &err);
        for (uint32_t i = 0; i < BATCH; ++i)
            s->n_different += hits[i].n != log->want[at + i].n ||
                              memcmp(hits[i].keys, log->want[at + i].keys, hits[i].n * sizeof(uint64_t)) != 0;
        s->n_queries += BATCH;
    }
    for (uint32_t i = 0; i < BATCH; ++i)
        free(hits[i].keys);
    free(hits);
    return NULL;
}

typedef struct outcome {
    double rate, pcie; /* queries/s, GB/s */
    gx_search_stats work;
    uint64_t n_queries, n_different;
} outcome;

/* All sessions answer the log for that number of seconds. */
static outcome run_sessions(table *t, session *all, uint32_t n, double seconds)
{
    const double t0 = gx_clock_seconds();
    outcome out = {0};
    for (uint32_t i = 0; i < n; ++i) {
        all[i] = (session){.t = t, .exec = all[i].exec, .first = i, .until = t0 + seconds};
        pthread_create(&all[i].thread, NULL, run_session, &all[i]);
    }
    for (uint32_t i = 0; i < n; ++i) {
        pthread_join(all[i].thread, NULL);
        out.n_queries += all[i].n_queries;
        out.n_different += all[i].n_different;
        gx_search_stats_add(&out.work, &all[i].work);
    }
    out.rate = (double)out.n_queries / (gx_clock_seconds() - t0);
    t->n_different += out.n_different;
    return out;
}

/* The sessions warm up, and then they are measured. */
static outcome run_log(table *t, void *state, double warm_seconds)
{
    const uint32_t n = t->b->n_sessions < MAX_SESSIONS ? t->b->n_sessions : MAX_SESSIONS;
    session all[MAX_SESSIONS] = {0};
    pcie_meter meter;
    gx_error err;
    for (uint32_t i = 0; i < n; ++i) {
        if (t->b->ops->workspace_open(&all[i].exec, state, &err) != GX_OK)
            die("open a session", &err);
    }
    (void)run_sessions(t, all, n, warm_seconds);
    start_meter(&meter, t->b->options.device);
    outcome out = run_sessions(t, all, n, SECONDS);
    out.pcie = stop_meter(&meter);
    for (uint32_t i = 0; i < n; ++i)
        t->b->ops->workspace_close(all[i].exec);
    return out;
}

static void *open_state(const table *t, const gx_engine_options *opt, const uint32_t *counts)
{
    gx_error err;
    void *state;
    if (t->b->ops->state_open(&state, &t->b->s->ix, opt, &err) != GX_OK)
        die("open", &err);
    if (counts && t->b->ops->warm(state, counts, &err) != GX_OK)
        die("warm", &err);
    return state;
}

static double share(uint64_t n, uint64_t of)
{
    return of ? 100 * (double)n / (double)of : 100;
}

static void put_outcome(const table *t, const char *name, const outcome *o)
{
    const gx_search_stats *w = &o->work;
    printf("  %-30s %9.0f q/s = %.3f; ", name, o->rate, t->full > 0 ? o->rate / t->full : 1);
    if (w->lists)
        printf("hits: lists %.1f %%, bytes %.1f %%, queries %.1f %%; ", share(w->resident_lists, w->lists),
               share(w->resident_bytes, w->list_bytes), share(w->resident_queries, o->n_queries));
    printf("decoded %.0f, look-ups %.0f, PCIe %.1f GB/s%s\n", (double)w->blocks_decoded / (double)o->n_queries,
           (double)w->lookups / (double)o->n_queries, o->pcie, o->n_different ? "; WRONG" : "");
    fflush(stdout);
}

/* Open an engine, let it answer the log, print what came of it. */
static void measure(table *t, const char *name, const gx_engine_options *opt, const uint32_t *counts)
{
    void *state = open_state(t, opt, counts);
    const outcome o = run_log(t, state, counts ? WARM_SECONDS : COLD_SECONDS);
    put_outcome(t, name, &o);
    t->b->ops->release_index(state);
}

/* ---- the tables ---- */

/* The answers of an engine with all lists in GPU memory, and its speed. */
static void measure_whole(table *t, void *state)
{
    gx_error err;
    void *exec;
    if (t->b->ops->workspace_open(&exec, state, &err) != GX_OK)
        die("open a session", &err);
    for (uint32_t i = 0; i < N_LOG; i += BATCH) {
        if (t->b->ops->run(exec, t->log.plans + i, BATCH, t->log.want + i, NULL, &err) != GX_OK)
            die("run", &err);
    }
    t->b->ops->workspace_close(exec);
    t->full = 0;
    const outcome o = run_log(t, state, WARM_SECONDS);
    put_outcome(t, "whole", &o);
    t->full = o.rate;
}

/* counts: of the log that the engine is warmed by, or NULL. */
static void measure_share(table *t, gx_residency_policy policy, double share_of_payload, const uint32_t *counts)
{
    gx_engine_options opt = t->b->options;
    char name[64];
    opt.residency_policy = policy;
    opt.resident_share = share_of_payload;
    snprintf(name, sizeof name, "%s, %g %%%s", policies[policy], 100 * share_of_payload, counts ? "" : ", not warmed");
    measure(t, name, &opt, counts);
}

static void measure_shares(table *t)
{
    static const double shares[] = {.5, .25, .1, .05};
    measure_share(t, GX_RESIDENCY_GDSF, 0, t->counts);
    for (int policy = 0; policy < GX_N_RESIDENCY_POLICIES; ++policy) {
        for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i)
            measure_share(t, (gx_residency_policy)policy, shares[i], t->counts);
        measure_share(t, (gx_residency_policy)policy, .25, NULL);
    }
}

/* How memory that does not suffice is divided: so much of what lists and maps want together goes to lists. */
static void measure_divisions(table *t)
{
    const gx_index *ix = &t->b->s->ix;
    gx_engine_options opt = t->b->options;
    char name[64];
    for (uint64_t part = 1; part <= 2; ++part) {
        opt.device_memory = part * ix->header->device_bytes / 2;
        printf(" %.0f MB of GPU memory, the index has %.0f MB\n", (double)opt.device_memory / 1e6,
               (double)ix->header->device_bytes / 1e6);
        for (uint32_t eighths = 0; eighths <= 8; eighths += 2) {
            opt.resident_memory = eighths * opt.device_memory / 8;
            snprintf(name, sizeof name, "up to %.0f MB for lists", (double)opt.resident_memory / 1e6);
            measure(t, name, &opt, t->counts);
        }
        opt.resident_memory = UINT64_MAX;
        measure(t, "auto", &opt, t->counts);
    }
}

/* A quarter of the index's bytes in GPU memory. */
static void measure_quarter(table *t, void *whole, gx_op last)
{
    static const char *const names[] = {"OR", "AND", "AND-OR"};
    gx_engine_options opt = t->b->options;
    opt.device_memory = t->b->s->ix.header->device_bytes / 4;
    for (int op = GX_OP_OR; op <= (int)last; ++op) {
        printf(" %s with %.0f MB of GPU memory, a quarter of the index\n", names[op], (double)opt.device_memory / 1e6);
        set_op(t, (gx_op)op);
        measure_whole(t, whole);
        measure(t, "a quarter", &opt, t->counts);
    }
    set_op(t, GX_OP_OR);
}

uint64_t measure_residency(const residency_bench *b)
{
    table *t = calloc(1, sizeof *t);
    t->b = b;
    t->random = b->seed * 77 + 5;
    make_log(t);
    gx_engine_options none = b->options;
    none.resident_share = 0;
    void *whole = open_state(t, &b->options, NULL), *pinned = open_state(t, &none, NULL); /* the pages stay pinned */
    printf("%s\n%s\nlists resident in part: OR top 10, %u sessions, batches of %u, %u queries, Zipf %g\n",
           b->ops->describe(whole), b->ops->describe(pinned), b->n_sessions, BATCH, N_LOG, b->exponent);
    measure_whole(t, whole);
    if (b->brief) {
        measure_share(t, GX_RESIDENCY_GDSF, .25, t->counts);
        measure_share(t, GX_RESIDENCY_GDSF, .1, t->counts);
        measure_share(t, GX_RESIDENCY_GDSF, .25, NULL);
    } else {
        measure_shares(t);
        measure_divisions(t);
    }
    measure_quarter(t, whole, b->brief ? GX_OP_OR : GX_OP_AND_OR);
    b->ops->release_index(pinned);
    b->ops->release_index(whole);
    const uint64_t n = t->n_different;
    for (uint32_t i = 0; i < N_LOG; ++i) {
        gx_plan_free(&t->log.plans[i]);
        free(t->log.want[i].keys);
    }
    free(t->order);
    free(t->sums);
    free(t->counts);
    free(t);
    return n;
}

/* ---- the cache alone ---- */

enum { PASSES = 12, MAX_COPIES = 64 };

static uint64_t bytes_of_list(const void *ix, uint32_t list)
{
    const gx_list l = gx_index_list(ix, list);
    return l.n_blocks ? 4 * (uint64_t)l.tf_ends[l.n_blocks - 1] : 1;
}

typedef struct found {
    uint64_t lists, lists_there, bytes, bytes_there, whole, queries;
} found;

static void use_lists(gx_residency *r, gx_residency_reader *reader, const table *t, const gx_plan *plan, found *f)
{
    const uint64_t tick = gx_residency_tick(r);
    bool whole = true;
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        const uint32_t list = plan->terms[i].list;
        const bool there = gx_residency_use(r, reader, list, tick);
        const uint64_t bytes = bytes_of_list(&t->b->s->ix, list);
        f->lists += 1;
        f->lists_there += there;
        f->bytes += bytes;
        f->bytes_there += there ? bytes : 0;
        whole = whole && there;
    }
    f->whole += whole;
    f->queries += 1;
}

static void copy_planned(gx_residency *r)
{
    gx_residency_copy copies[MAX_COPIES];
    for (uint32_t n; (n = gx_residency_next_planned(r, copies, MAX_COPIES)) > 0;)
        for (uint32_t i = 0; i < n; ++i)
            gx_residency_arrive(r, &copies[i], true);
}

static void admit_missed(gx_residency *r, gx_residency_reader *reader)
{
    gx_residency_copy copies[MAX_COPIES];
    for (uint32_t n; (n = gx_residency_admit(r, reader, UINT64_MAX, copies, MAX_COPIES)) > 0;)
        for (uint32_t i = 0; i < n; ++i)
            gx_residency_arrive(r, &copies[i], true);
}

static void simulate(const table *t, const char *name, const gx_residency_rule *rule, double share, bool warmed)
{
    const gx_index *ix = &t->b->s->ix;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ix->n_terms; ++i)
        bytes += bytes_of_list(ix, i) + GX_READ_SLACK;
    const gx_residency_options opt = {
        rule, (uint64_t)(share * (double)bytes), ix->n_terms, GX_READ_SLACK, 0, bytes_of_list, ix};
    gx_residency *r;
    gx_residency_reader *reader = NULL;
    gx_error err;
    found f = {0};
    uint64_t copied = 0;
    if (gx_residency_open(&r, &opt, &err) != GX_OK ||
        ((warmed || !rule) && gx_residency_plan(r, warmed ? t->counts : NULL, &err) != GX_OK))
        die("open a cache", &err);
    copy_planned(r);
    if (!(reader = gx_residency_reader_open(r)))
        die("open a reader", &err);
    for (uint32_t pass = 0; pass < PASSES; ++pass) {
        if (pass == 1) { /* the first one fills the pool */
            f = (found){0};
            copied = gx_residency_get_counts(r).bytes_copied;
        }
        for (uint32_t i = 0; i < N_LOG; ++i) {
            use_lists(r, reader, t, &t->log.plans[i], &f);
            if (i % BATCH == BATCH - 1)
                admit_missed(r, reader);
        }
    }
    copied = gx_residency_get_counts(r).bytes_copied - copied;
    printf("  %-8s %3.0f %%%s %6.1f %6.1f %6.1f %8.1f\n", name, 100 * share, warmed ? "         " : ", unwarmed",
           100 * (double)f.lists_there / (double)f.lists, 100 * (double)f.bytes_there / (double)f.bytes,
           100 * (double)f.whole / (double)f.queries, (double)copied / 1e3 / (double)f.queries);
    gx_residency_reader_close(r, reader);
    gx_residency_close(r);
}

void simulate_residency(const residency_bench *b)
{
    static const char *const names[N_RESIDENCY_RULES] = {"gdsf", "landlord", "lfu", "lru", "static"};
    static const double shares[] = {.5, .25, .1, .05};
    table *t = calloc(1, sizeof *t);
    t->b = b;
    t->random = b->seed * 77 + 5;
    make_log(t);
    printf("the list cache without a GPU: %u passes over %u queries, Zipf %g; lists, bytes and whole queries that are "
           "there, %%; KB copied a query\n",
           PASSES, N_LOG, b->exponent);
    for (int rule = 0; rule < N_RESIDENCY_RULES; ++rule) {
        for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i)
            simulate(t, names[rule], residency_rule(rule), shares[i], true);
        simulate(t, names[rule], residency_rule(rule), .25, false);
    }
    for (uint32_t i = 0; i < N_LOG; ++i) {
        gx_plan_free(&t->log.plans[i]);
        free(t->log.want[i].keys);
    }
    free(t->order);
    free(t->sums);
    free(t->counts);
    free(t);
}
