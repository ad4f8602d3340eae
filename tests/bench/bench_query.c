/* bench_query: queries/s and latency of one engine on a generated collection
 * (tools/bench/data/collection.h), each answer checked first: pruned against exhaustive on the same
 * engine, and the first ones against the CPU engine.
 *
 *   bench_query [--engine=gpu|cpu] [--docs=N] [--terms=N] [--queries=N] [--codec=NAME] [--seed=N]
 *   [--runs=N]
 *               [--map-memory=BYTES] [--check=N] [--cpu-check=N]
 *               [--only=or|and|and-or|alone|small|memory|filters|residency|residency-brief|
 *               residency-simulated]
 *               [--zipf=X] [--sessions=N] [--linger=US]
 *               [--pair-thresholds=N] [--devices=0,1]
 *
 * kernel: GPU time from the end of the copy in to the end of the search, a query, summed over parts
 * of a batch, which overlap; host: what it takes to describe plans to the GPU and to launch; all:
 * the host's clock from plans to hits. With --sessions as many threads answer the batches again,
 * each with a session of its own, so that one's batch is described, and its last items are waited
 * for, while another's is searched. With --devices the first GPU of the list is measured, and then
 * an engine on all of them, with --sessions a GPU. --only=memory prints what a new session holds before and after
 * a query alone and batches of up to 1,024 queries of several k. --only=filters gives each query a filter of
 * its own, on `r`, which is uniform from 0 to 999, or on `t`, which rises with the docid from 0 to 999: the
 * queries/s of eight sessions, or of --sessions, and beside them those of the same queries without filters.
 * --only=residency does nothing else: see residency_table.h; --zipf is the exponent.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/device.h"
#include "engine/random.h"
#include "index/attributes/attribute_order.h"
#include "query/exec/pairs.h"
#include "tests/bench/residency_table.h"
#include "tools/bench/data/collection.h"

typedef struct options {
    gx_synth_options synth;
    const char *engine, *only;
    uint64_t map_memory;
    uint32_t runs, check, cpu_check, sessions, linger_us, pairs;
    uint32_t n_devices;
    int devices[GX_MAX_DEVICES]; /* [n_devices] */
    double zipf;
} options;

typedef struct bench {
    const options *o;
    gx_synth *s;
    const gx_executor *ops;
    void *state, *exec, *cpu_prepared_index, *cpu_workspace;
    uint32_t n, n_sessions; /* queries; sessions that answer them at once, or 0 */
    gx_plan *plans;
    gx_pair_thresholds *pairs; /* for paired_k; or NULL */
    uint32_t paired_k;
    gx_hits *hits, *want;
    double *times;
    const char *attribute; /* of the filters of the plans; NULL: they have none */
    uint32_t n_values;     /* of 1,000 that each filter selects */
    gx_filter **filters;   /* [n] */
    gx_column columns[2];
    double rate; /* what measure_sessions has measured last, in queries/s */
} bench;

static void die(const char *what, const gx_error *err)
{
    fprintf(stderr, "bench_query: %s: %s\n", what, err->text);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *v, uint32_t n, double q)
{
    qsort(v, n, sizeof *v, by_value);
    const uint32_t i = (uint32_t)(q * n);
    return v[i < n ? i : n - 1];
}

static const gx_executor *find_engine(const char *name)
{
    for (const gx_executor *const *p = gx_executors; *p; ++p) {
        if (strcmp((*p)->name, name) == 0)
            return *p;
    }
    return NULL;
}

/* ---- plans ---- */

static void free_plans(bench *b)
{
    for (uint32_t i = 0; b->plans && i < b->n; ++i) {
        gx_plan_free(&b->plans[i]);
        free(b->hits[i].keys);
        free(b->want[i].keys);
        gx_filter_close(b->filters[i]);
    }
    free(b->filters);
    b->filters = NULL;
    free(b->plans);
    free(b->hits);
    free(b->want);
    b->plans = NULL;
    b->hits = b->want = NULL;
}

/* Give plan i a filter of its own. */
static void add_filter(bench *b, uint32_t i, uint64_t *random)
{
    char text[64];
    gx_error err;
    const uint32_t low = (uint32_t)(gx_random_next(random) % (1001 - b->n_values));
    const int n = snprintf(text, sizeof text, "%s:[%u TO %u]", b->attribute, low, low + b->n_values - 1);
    if (gx_filter_open(&b->filters[i], &b->s->ix, text, (size_t)n, NULL, &err) != GX_OK)
        die("filter", &err);
    b->plans[i].filter = b->filters[i];
    if (b->ops->takes_filter && !b->ops->takes_filter(b->state, &b->plans[i])) {
        fprintf(stderr, "bench_query: the engine does not take the filter %s\n", text);
        exit(1);
    }
}

/* Thresholds of pairs for opt's k, unless they are there. */
static void make_pairs(bench *b, const gx_query_options *opt)
{
    gx_error err;
    if (b->paired_k == opt->k || b->o->pairs == 0)
        return;
    gx_pair_thresholds_free(b->pairs);
    const double t0 = now();
    if (gx_pair_thresholds_make(&b->pairs, &(gx_pair_engine){&b->s->ix, b->ops, b->state}, opt, b->o->pairs,
                                b->ops == &gx_executor_cpu ? 16 : 4, &err) != GX_OK)
        die("pair-thresholds", &err);
    b->paired_k = opt->k;
    printf("thresholds of pairs of %u lists, k %u: %.3f s\n", b->o->pairs, opt->k, now() - t0);
}

static void make_plans(bench *b, gx_op op, uint32_t k)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_error err;
    opt.op = op;
    opt.k = k;
    free_plans(b);
    if (op != GX_OP_AND)
        make_pairs(b, &opt);
    b->plans = calloc(b->n, sizeof *b->plans);
    b->hits = calloc(b->n, sizeof *b->hits);
    b->want = calloc(b->n, sizeof *b->want);
    b->filters = calloc(b->n, sizeof *b->filters);
    uint64_t random = b->s->n_queries + k;
    for (uint32_t i = 0; i < b->n; ++i) {
        const gx_synth_query *q = &b->s->queries[i];
        if (gx_plan_make_ids(&b->plans[i], &b->s->ix, q->terms, NULL, q->n, &opt, &err) != GX_OK)
            die("plan", &err);
        if (b->plans[i].terms[0].w == 0) {
            fprintf(stderr, "bench_query: a term of query %u weighs nothing\n", i);
            exit(1);
        }
        if (b->attribute)
            add_filter(b, i, &random);
        if (b->pairs)
            gx_pair_thresholds_apply(b->pairs, &b->plans[i]);
        b->hits[i].keys = malloc((size_t)b->plans[i].k * 8);
        b->want[i].keys = malloc((size_t)b->plans[i].k * 8);
    }
}

static uint32_t count_different(const bench *b, uint32_t n)
{
    uint32_t different = 0;
    for (uint32_t i = 0; i < n && i < b->n; ++i)
        different +=
            b->hits[i].n != b->want[i].n || memcmp(b->hits[i].keys, b->want[i].keys, (size_t)b->hits[i].n * 8) != 0;
    return different;
}

/* The answers in b->hits against other ways to the same. Returns how many differ. */
static uint32_t check(bench *b)
{
    gx_error err;
    const uint32_t n = b->o->check < b->n ? b->o->check : b->n, m = b->o->cpu_check < b->n ? b->o->cpu_check : b->n;
    uint32_t different = 0;
    for (uint32_t i = 0; i < n; ++i)
        b->plans[i].prune = false;
    if (n && b->ops->run(b->exec, b->plans, n, b->want, NULL, &err) != GX_OK)
        die("exhaustive", &err);
    for (uint32_t i = 0; i < n; ++i)
        b->plans[i].prune = true;
    different += count_different(b, n);
    if (m && b->cpu_workspace) {
        if (gx_executor_cpu.run(b->cpu_workspace, b->plans, m, b->want, NULL, &err) != GX_OK)
            die("CPU", &err);
        different += count_different(b, m);
    }
    return different;
}

/* ---- measurements ---- */

/* A thread that answers all queries in batches, `runs` times. */
typedef struct session {
    const bench *b;
    void *exec;
    gx_hits *hits;
    uint32_t batch;
    pthread_t thread;
} session;

static void run_all(const session *s)
{
    const bench *b = s->b;
    gx_error err;
    for (uint32_t i = 0; i < b->n; i += s->batch) {
        const uint32_t n = b->n - i < s->batch ? b->n - i : s->batch;
        if (b->ops->run(s->exec, b->plans + i, n, s->hits + i, NULL, &err) != GX_OK)
            die("run", &err);
    }
}

static void *run_session(void *arg)
{
    const session *s = arg;
    for (uint32_t r = 0; r < s->b->o->runs; ++r)
        run_all(s);
    return NULL;
}

/* Queries a second of several sessions; b->hits are the answers that theirs are compared with. */
static void measure_sessions(bench *b, const char *name, uint32_t k, uint32_t batch)
{
    const uint32_t n = b->n_sessions;
    session *all = calloc(n, sizeof *all);
    gx_error err;
    for (uint32_t t = 0; t < n; ++t) {
        all[t] = (session){.b = b, .batch = batch, .hits = calloc(b->n, sizeof(gx_hits))};
        for (uint32_t i = 0; i < b->n; ++i)
            all[t].hits[i].keys = malloc((size_t)b->plans[i].k * 8);
        if (b->ops->workspace_open(&all[t].exec, b->state, &err) != GX_OK)
            die("open a session", &err);
        run_all(&all[t]); /* warm */
    }
    const double t0 = now();
    for (uint32_t t = 0; t < n; ++t)
        pthread_create(&all[t].thread, NULL, run_session, &all[t]);
    for (uint32_t t = 0; t < n; ++t)
        pthread_join(all[t].thread, NULL);
    const double seconds = now() - t0;
    uint32_t different = 0;
    for (uint32_t t = 0; t < n; ++t) {
        for (uint32_t i = 0; i < b->n; ++i) {
            different += all[t].hits[i].n != b->hits[i].n ||
                         memcmp(all[t].hits[i].keys, b->hits[i].keys, (size_t)b->hits[i].n * 8) != 0;
            free(all[t].hits[i].keys);
        }
        free(all[t].hits);
        b->ops->workspace_close(all[t].exec);
    }
    free(all);
    b->rate = (double)b->n * n * b->o->runs / seconds;
    printf("%-7s k %-5u batch %-5u %u sessions: %9.0f q/s%s\n", name, k, batch, n, b->rate,
           different ? "; WRONG" : ", same answers");
    fflush(stdout);
}

/* All queries in batches of `batch`, several times; the median. */
static void measure_batches(bench *b, const char *name, gx_op op, uint32_t k, uint32_t batch, uint32_t of)
{
    gx_error err;
    make_plans(b, op, k);
    batch = batch < b->n ? batch : b->n;
    of = of < b->n ? of : b->n;
    if (b->ops->run(b->exec, b->plans, of, b->hits, NULL, &err) != GX_OK)
        die("run", &err);
    uint32_t wrong = 0;
    const uint32_t by_cpu = b->cpu_workspace ? b->o->cpu_check : 0;
    const uint32_t n_checked = b->o->check > by_cpu ? b->o->check : by_cpu; /* of want, all are answers */
    if (of == b->n)
        wrong = check(b);
    double kernel[64], all[64], select[64], host[64];
    const uint32_t runs = b->o->runs < 64 ? b->o->runs : 64;
    gx_search_stats w = {0};
    for (uint32_t r = 0; r < runs; ++r) {
        w = (gx_search_stats){0};
        const double t0 = now();
        for (uint32_t i = 0; i < of; i += batch) {
            const uint32_t n = of - i < batch ? of - i : batch;
            if (b->ops->run(b->exec, b->plans + i, n, b->hits + i, &w, &err) != GX_OK)
                die("run", &err);
        }
        all[r] = (now() - t0) / of;
        kernel[r] = w.seconds[GX_SEARCH_SCORE] / of;
        select[r] = w.seconds[GX_SEARCH_SELECT] / of;
        host[r] = w.seconds[GX_SEARCH_COPY_IN] / of;
    }
    if (of == b->n)
        wrong += count_different(b, n_checked);
    const double a = quantile(all, runs, .5), g = quantile(kernel, runs, .5), s = quantile(select, runs, .5),
                 h = quantile(host, runs, .5);
    printf("%-7s k %-5u batch %-5u %-7s kernel %8.3f us = %9.0f q/s (best %9.0f), select %.3f, host %.3f; all %8.3f "
           "us = %9.0f q/s; %.2f M postings, %.0f blocks, decoded %.0f, look-ups %.0f, fell to OR %.3f; kernel %.3f "
           "ps a posting, %.3f ns a block decoded\n",
           name, k, batch,
           of < b->n ? "-"
           : wrong   ? "WRONG"
                     : "checked",
           g * 1e6, g > 0 ? 1 / g : 0, kernel[0] > 0 ? 1 / kernel[0] : 0, s * 1e6, h * 1e6, a * 1e6, 1 / a,
           (double)w.postings / of / 1e6, (double)w.blocks / of, (double)w.blocks_decoded / of, (double)w.lookups / of,
           (double)w.and_fell_to_or / of, g * 1e12 * of / (double)w.postings,
           w.blocks_decoded ? g * 1e9 * of / (double)w.blocks_decoded : 0);
    if (wrong)
        printf("  %u answers differ\n", wrong);
    fflush(stdout);
    if (b->n_sessions && of == b->n)
        measure_sessions(b, name, k, batch);
}

/* All queries in small batches, which several sessions send at once, as a scheduler does. */
static void measure_small_in_sessions(bench *b)
{
    gx_error err;
    make_plans(b, GX_OP_OR, 10);
    if (b->n_sessions && b->ops->run(b->exec, b->plans, b->n, b->hits, NULL, &err) != GX_OK)
        die("run", &err);
    for (uint32_t n = 16; b->n_sessions && n < 1024; n *= 4)
        measure_sessions(b, "OR", 10, n);
}

/* Queries one at a time. */
static void measure_alone(bench *b, const char *name, gx_op op, uint32_t k)
{
    gx_error err;
    const uint32_t n = b->n < 512 ? b->n : 512;
    double *all = malloc(2 * n * sizeof *all);
    make_plans(b, op, k);
    for (uint32_t round = 0; round < 3; ++round) { /* the first warms up; a query's lists are cold again in the next */
        for (uint32_t i = 0; i < n; ++i) {
            gx_search_stats w = {0};
            const double t0 = now();
            if (b->ops->run(b->exec, b->plans + i, 1, b->hits + i, &w, &err) != GX_OK)
                die("run", &err);
            if (round)
                all[(round - 1) * n + i] = (now() - t0) * 1e6;
        }
    }
    b->n = n < b->n ? n : b->n;
    const uint32_t wrong = check(b);
    b->n = b->s->n_queries;
    printf("%-7s k %-5u alone %-7s all p50 %.1f p90 %.1f p99 %.1f max %.1f us\n", name, k, wrong ? "WRONG" : "checked",
           quantile(all, 2 * n, .5), quantile(all, 2 * n, .9), quantile(all, 2 * n, .99), quantile(all, 2 * n, 1));
    fflush(stdout);
    free(all);
}

/* Two attributes in memory: r and t. */
static void add_columns(bench *b)
{
    gx_index *ix = &b->s->ix;
    uint16_t *r = malloc((size_t)ix->n_docs * sizeof *r), *t = malloc((size_t)ix->n_docs * sizeof *t);
    uint64_t random = 1;
    for (uint32_t d = 0; r && t && d < ix->n_docs; ++d) {
        r[d] = (uint16_t)(gx_random_next(&random) % 1000);
        t[d] = (uint16_t)((uint64_t)d * 1000 / ix->n_docs);
    }
    if (!r || !t)
        exit(1);
    b->columns[0] = (gx_column){.name = "r", .name_len = 1, .type = GX_ATTRIBUTE_INT, .width = 2, .values = r};
    b->columns[1] = (gx_column){.name = "t", .name_len = 1, .type = GX_ATTRIBUTE_INT, .width = 2, .values = t};
    for (uint32_t c = 0; c < 2; ++c)
        b->columns[c].n_values = b->columns[c].n_present = ix->n_docs;
    ix->columns = b->columns;
    ix->n_columns = 2;
}

static void free_columns(bench *b)
{
    for (uint32_t c = 0; c < b->s->ix.n_columns; ++c) {
        gx_column_free_order(&b->columns[c]);
        free((void *)b->columns[c].values);
    }
    b->s->ix.n_columns = 0;
    b->s->ix.columns = NULL;
}

/* A filter a query: sessions at once, answers checked first. */
static void measure_filters(bench *b)
{
    static const gx_op ops[] = {GX_OP_OR, GX_OP_AND, GX_OP_AND_OR, GX_OP_OR};
    static const char *const names[] = {"OR", "AND", "AND-OR", "OR"}, *const attributes[] = {"r", "t"};
    static const uint32_t ks[] = {10, 10, 10, 1000}, n_values[] = {500, 100, 10, 1};
    const uint32_t sessions = b->n_sessions;
    b->n_sessions = sessions ? sessions : 8;
    for (uint32_t o = 0; o < 4; ++o) {
        double unfiltered = 0;
        for (uint32_t f = 0; f < 9; ++f) { /* the first has no filters */
            b->attribute = f ? attributes[(f - 1) / 4] : NULL;
            b->n_values = f ? n_values[(f - 1) % 4] : 1000;
            printf("--- filters: %s, %.1f %% of the documents\n", b->attribute ? b->attribute : "none",
                   b->n_values / 10.0);
            measure_batches(b, names[o], ops[o], ks[o], 1024, UINT32_MAX);
            unfiltered = f ? unfiltered : b->rate;
            printf("%.2f of the speed without filters\n", b->rate / unfiltered);
        }
    }
    b->attribute = NULL;
    b->n_sessions = sessions;
}

/* Bytes that a new session holds on behalf of the engine, by k. */
static void measure_memory(bench *b)
{
    static const uint32_t ks[] = {10, 1000, 10000};
    gx_error err;
    void *exec;
    uint64_t device, pinned;
    if (!b->ops->memory)
        return;
    const uint32_t n = b->n < 1024 ? b->n : 1024;
    for (size_t i = 0; i < sizeof ks / sizeof *ks; ++i) {
        if (b->ops->workspace_open(&exec, b->state, &err) != GX_OK)
            die("open a session", &err);
        make_plans(b, GX_OP_OR, ks[i]);
        for (uint32_t batch = 0; batch <= n; batch = batch ? batch < n ? n : n + 1 : 1) {
            if (batch && b->ops->run(exec, b->plans, batch, b->hits, NULL, &err) != GX_OK)
                die("run", &err);
            b->ops->memory(exec, &device, &pinned);
            printf("memory  k %-5u batch %-5u device %6.1f MB, pinned %5.1f MB, together %6.1f MB\n", ks[i], batch,
                   (double)device / 1e6, (double)pinned / 1e6, (double)(device + pinned) / 1e6);
        }
        b->ops->workspace_close(exec);
    }
    fflush(stdout);
}

static bool wanted(const options *o, const char *what)
{
    return !o->only || strstr(o->only, what);
}

static void measure_all(bench *b)
{
    const options *o = b->o;
    if (wanted(o, "or")) {
        measure_batches(b, "OR", GX_OP_OR, 10, 1024, UINT32_MAX);
        measure_batches(b, "OR", GX_OP_OR, 1000, 1024, UINT32_MAX);
    }
    if (wanted(o, "and"))
        measure_batches(b, "AND", GX_OP_AND, 10, 1024, UINT32_MAX);
    if (wanted(o, "and-or"))
        measure_batches(b, "AND-OR", GX_OP_AND_OR, 10, 1024, UINT32_MAX);
    if (wanted(o, "small")) {
        for (uint32_t n = 4; n < 1024; n *= 4)
            measure_batches(b, "OR", GX_OP_OR, 10, n, n);
        measure_small_in_sessions(b);
    }
    if (o->only && strcmp(o->only, "filters") == 0)
        measure_filters(b);
    if (wanted(o, "memory"))
        measure_memory(b);
    if (wanted(o, "alone")) {
        measure_alone(b, "OR", GX_OP_OR, 10);
        measure_alone(b, "AND", GX_OP_AND, 10);
    }
}

/* ---- the program ---- */

static void read_devices(options *o, const char *list)
{
    for (const char *at = list; at && o->n_devices < GX_MAX_DEVICES; at = at ? at + 1 : NULL) {
        o->devices[o->n_devices++] = atoi(at);
        at = strchr(at, ',');
    }
}

static const struct option longs[] = {
    {"engine", 1, 0, 'e'},  {"docs", 1, 0, 'd'},
    {"terms", 1, 0, 't'},   {"queries", 1, 0, 'q'},
    {"codec", 1, 0, 'c'},   {"seed", 1, 0, 's'},
    {"runs", 1, 0, 'r'},    {"map-memory", 1, 0, 'm'},
    {"check", 1, 0, 'k'},   {"cpu-check", 1, 0, 'u'},
    {"only", 1, 0, 'o'},    {"sessions", 1, 0, 'j'},
    {"linger", 1, 0, 'y'},  {"pair-thresholds", 1, 0, 'p'},
    {"devices", 1, 0, 'g'}, {"zipf", 1, 0, 'z'},
    {0, 0, 0, 0},
};

static void take_option(options *o, int c, const char *value)
{
    const uint64_t n = value ? strtoull(value, NULL, 0) : 0;
    switch (c) {
    case 'e':
        o->engine = value;
        break;
    case 'd':
        o->synth.n_docs = (uint32_t)n;
        break;
    case 't':
        o->synth.n_terms = (uint32_t)n;
        break;
    case 'q':
        o->synth.n_queries = (uint32_t)n;
        break;
    case 'c':
        o->synth.codec = gx_codec_by_name(value);
        break;
    case 's':
        o->synth.seed = n;
        break;
    case 'r':
        o->runs = n ? (uint32_t)n : 1;
        break;
    case 'm':
        o->map_memory = n;
        break;
    case 'k':
        o->check = (uint32_t)n;
        break;
    case 'u':
        o->cpu_check = (uint32_t)n;
        break;
    case 'o':
        o->only = value;
        break;
    case 'j':
        o->sessions = (uint32_t)n;
        break;
    case 'p':
        o->pairs = (uint32_t)n;
        break;
    case 'y':
        o->linger_us = (uint32_t)n;
        break;
    case 'z':
        o->zipf = strtod(value, NULL);
        break;
    case 'g':
        read_devices(o, value);
        break;
    default:
        exit(2);
    }
}

static options parse(int argc, char **argv)
{
    options o = {GX_SYNTH_OPTIONS, "gpu", NULL, UINT64_MAX, 9, 256, 16, 0, GX_DEFAULT_LINGER, 0, 0, {0}, 1};
    o.synth.codec = gx_codec_by_name("gpubp128");
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;)
        take_option(&o, c, optarg);
    return o;
}

static gx_status open_state(bench *b, const gx_executor *ops, const gx_engine_options *eo, gx_error *err)
{
    const bool several = eo->n_devices > 1;
    b->ops = several ? &gx_executor_replicas : ops;
    return several ? gx_replicas_open(&b->state, ops, &b->s->ix, eo, err)
                   : ops->state_open(&b->state, &b->s->ix, eo, err);
}

/* Measure the engine on the first n GPUs of the list; n is 1 on the CPU. False: there is no GPU. */
static bool measure_engine(bench *b, const gx_executor *ops, gx_engine_options eo, uint32_t n)
{
    const gx_index *ix = &b->s->ix;
    gx_error err;
    eo.device = b->o->n_devices ? b->o->devices[0] : 0;
    eo.n_devices = n;
    memcpy(eo.devices, b->o->devices, sizeof eo.devices);
    b->n_sessions = b->o->sessions * n;
    double t = now();
    const gx_status st = open_state(b, ops, &eo, &err);
    if (st == GX_ENOGPU) {
        fprintf(stderr, "bench_query: %s\n", err.text);
        return false;
    }
    if (st != GX_OK || b->ops->workspace_open(&b->exec, b->state, &err) != GX_OK)
        die("open", &err);
    printf("%s: opened in %.3f s (%.1f MB)\n", b->ops->describe(b->state), now() - t,
           (double)ix->header->device_bytes / 1e6);
    double upload;
    if (strcmp(b->o->engine, "gpu") == 0 && gx_device_upload_time(eo.device, ix->file + ix->header->device_offset,
                                                                  ix->header->device_bytes, &upload, &err) == GX_OK)
        printf("its copy to the GPU alone: %.3f s, %.1f GB/s\n", upload,
               (double)ix->header->device_bytes / upload / 1e9);
    t = now();
    make_plans(b, GX_OP_OR, 10);
    const double planned = now();
    if (b->ops->run(b->exec, b->plans, 1, b->hits, NULL, &err) != GX_OK)
        die("run", &err);
    printf("plans %.3f us each; first answer, with bounds, in %.3f s\n", (planned - t) * 1e6 / b->n, now() - planned);
    fflush(stdout);
    measure_all(b);
    free_plans(b);
    gx_pair_thresholds_free(b->pairs);
    b->pairs = NULL;
    b->paired_k = 0;
    b->ops->workspace_close(b->exec);
    b->ops->release_index(b->state);
    return true;
}

int main(int argc, char **argv)
{
    const options o = parse(argc, argv);
    gx_error err;
    bench b = {.o = &o};
    const double t = now();
    if (gx_synth_open(&b.s, &o.synth, &err) != GX_OK)
        die("generate", &err);
    const gx_index *ix = &b.s->ix;
    printf("%u documents, %u lists, %.1f M postings, %s %.2f bits a posting, heads and ends %.2f; average length "
           "%.1f; generated in %.1f s\n",
           ix->n_docs, ix->n_terms, (double)ix->n_postings / 1e6, o.synth.codec->name,
           (double)ix->payload_words * 32 / (double)ix->n_postings, (double)ix->n_blocks * 96 / (double)ix->n_postings,
           ix->avgdl, now() - t);
    if (o.only && strcmp(o.only, "residency-simulated") == 0) {
        simulate_residency(&(residency_bench){.s = b.s, .seed = o.synth.seed, .exponent = o.zipf});
        gx_synth_close(b.s);
        return 0;
    }
    const gx_executor *ops = find_engine(o.engine);
    if (!ops) {
        fprintf(stderr, "bench_query: this build has no engine '%s'\n", o.engine);
        return 77;
    }
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    eo.map_memory = o.map_memory;
    eo.linger_us = o.linger_us;
    if (o.only && strncmp(o.only, "residency", 9) == 0) {
        if (!ops->warm) {
            fprintf(stderr, "bench_query: the lists of the engine '%s' are always in its memory\n", o.engine);
            return 77;
        }
        const residency_bench r = {
            b.s, ops, eo, o.sessions ? o.sessions : 8, strcmp(o.only, "residency-brief") == 0, o.synth.seed, o.zipf};
        const uint64_t n_wrong = measure_residency(&r);
        gx_synth_close(b.s);
        return n_wrong ? 1 : 0;
    }
    if (o.cpu_check && ops != &gx_executor_cpu) {
        gx_engine_options cpu = eo;
        cpu.map_memory = 0;
        if (gx_executor_cpu.state_open(&b.cpu_prepared_index, ix, &cpu, &err) != GX_OK ||
            gx_executor_cpu.workspace_open(&b.cpu_workspace, b.cpu_prepared_index, &err) != GX_OK)
            die("open the CPU engine", &err);
    }
    b.n = b.s->n_queries;
    if (o.only && strcmp(o.only, "filters") == 0)
        add_columns(&b);
    bool there = measure_engine(&b, ops, eo, 1);
    if (there && o.n_devices > 1 && ops != &gx_executor_cpu)
        there = measure_engine(&b, ops, eo, o.n_devices);
    if (b.cpu_prepared_index) {
        gx_executor_cpu.workspace_close(b.cpu_workspace);
        gx_executor_cpu.release_index(b.cpu_prepared_index);
    }
    free_columns(&b);
    gx_synth_close(b.s);
    return there ? 0 : 77;
}
