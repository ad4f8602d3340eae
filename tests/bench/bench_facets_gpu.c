/* bench_facets_gpu: facets counted by a GPU, on a generated collection (tools/bench/data/collection.h).
 *
 *   bench_facets_gpu [--docs=N] [--queries=N] [--sessions=N] [--batch=N] [--runs=N] [--check=N] [--seed=N]
 *
 * Attributes: `c`, 172 values of very different frequency, 1 byte a document; `y`, 34 values that rise with the
 * docid; `r`, 1,000 uniform values; `u`, as many values as there are documents, at most 1,000,000, drawn at random.
 * For OR, AND, and OR with a filter on `r` (half of the documents): the queries/s of all sessions, each with batches
 * of its own, that count the matches alone, then by each attribute, by several, from plans to the 10 largest groups.
 * First the counts of --check queries are compared with the CPU's, whose time on one core is printed beside.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/random.h"
#include "index/attributes/attribute_order.h"
#include "query/engine/session.h"
#include "query/facet/count.h"
#include "query/facet/facet_ordinals.h"
#include "tools/bench/data/collection.h"

enum { N_ATTRIBUTES = 4, MOST_SESSIONS = 64, MOST_FACETS = 4, MOST_COUNTS = 4 << 20 };

typedef struct bench {
    gx_synth *s;
    void *state;
    gx_column columns[N_ATTRIBUTES];
    gx_plan *plans; /* [n] */
    gx_filter **filters;
    uint32_t n, n_sessions, batch, runs, n_check;
} bench;

/* Which attributes are counted. */
typedef struct row {
    const char *what;
    uint32_t n, columns[MOST_FACETS];
} row;

static const row rows[] = {
    {"matches alone", 0, {0}},   {"c", 1, {0}}, {"y", 1, {1}}, {"r", 1, {2}}, {"u", 1, {3}}, {"c and y", 2, {0, 1}},
    {"c, y and r", 3, {0, 1, 2}}};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void die(const char *what, const gx_error *err)
{
    fprintf(stderr, "bench_facets_gpu: %s: %s\n", what, err->text);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the collection ---- */

static void *new_values(size_t n, size_t width)
{
    void *values = calloc(n + 8, width);
    if (!values)
        exit(1);
    return values;
}

static void add_columns(bench *b)
{
    static const char *const names[] = {"c", "y", "r", "u"};
    static const uint8_t widths[] = {1, 1, 2, 4};
    gx_index *ix = &b->s->ix;
    uint64_t random = 1;
    uint8_t *c = new_values(ix->n_docs, 1), *y = new_values(ix->n_docs, 1);
    uint16_t *r = new_values(ix->n_docs, 2);
    uint32_t *u = new_values(ix->n_docs, 4);
    const uint32_t most = ix->n_docs < 1000000 ? ix->n_docs : 1000000;
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        const double x = (double)(gx_random_next(&random) >> 11) * 0x1p-53;
        c[d] = (uint8_t)(171.999 * x * x * x); /* the first has 18 %, the last 0.2 % */
        y[d] = (uint8_t)((uint64_t)d * 34 / ix->n_docs);
        r[d] = (uint16_t)(gx_random_next(&random) % 1000);
        u[d] = (uint32_t)(gx_random_next(&random) % most);
    }
    const void *const values[] = {c, y, r, u};
    for (uint32_t i = 0; i < N_ATTRIBUTES; ++i)
        b->columns[i] = (gx_column){.name = names[i],
                                    .name_len = 1,
                                    .type = GX_ATTRIBUTE_INT,
                                    .width = widths[i],
                                    .values = values[i],
                                    .bitmaps = {.encoding = GX_BITMAPS_NONE},
                                    .n_values = ix->n_docs,
                                    .n_present = ix->n_docs};
    ix->columns = b->columns;
    ix->n_columns = N_ATTRIBUTES;
}

static void free_columns(bench *b)
{
    for (uint32_t i = 0; i < N_ATTRIBUTES; ++i) {
        gx_column_free_order(&b->columns[i]);
        free((void *)b->columns[i].values);
    }
    b->s->ix.n_columns = 0;
    b->s->ix.columns = NULL;
}

static void free_plans(bench *b)
{
    for (uint32_t i = 0; b->plans && i < b->n; ++i) {
        gx_plan_free(&b->plans[i]);
        gx_filter_close(b->filters[i]);
    }
    free(b->plans);
    free(b->filters);
    b->plans = NULL;
}

static void make_plans(bench *b, gx_op op, bool filtered)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_error err;
    uint64_t random = 3;
    free_plans(b);
    b->plans = calloc(b->n, sizeof *b->plans);
    b->filters = calloc(b->n, sizeof *b->filters);
    opt.op = op;
    for (uint32_t i = 0; i < b->n; ++i) {
        const gx_synth_query *q = &b->s->queries[i % b->s->n_queries];
        const uint32_t low = (uint32_t)(gx_random_next(&random) % 501);
        char text[64];
        const int len = snprintf(text, sizeof text, "r:[%u TO %u]", low, low + 499);
        if (gx_plan_make_ids(&b->plans[i], &b->s->ix, q->terms, NULL, q->n, &opt, &err) ||
            (filtered && gx_filter_open(&b->filters[i], &b->s->ix, text, (size_t)len, NULL, &err)))
            die("plan", &err);
        b->plans[i].filter = b->filters[i];
    }
}

/* ---- a session ---- */

typedef struct counts {
    gx_facet facets[MOST_FACETS];
    const gx_facet_ordinals *ordinals[MOST_FACETS];
    uint32_t n;
    uint64_t n_counts;
    uint32_t batch; /* queries that are counted together */
    uint32_t *room; /* [batch * n_counts] */
    gx_match_counts *of;
} counts;

static void open_counts(counts *c, const bench *b, void *exec, const row *w)
{
    gx_error err;
    *c = (counts){.n = w->n};
    for (uint32_t f = 0; f < w->n; ++f) {
        c->facets[f] = (gx_facet)GX_FACET;
        c->facets[f].name = b->columns[w->columns[f]].name;
        c->facets[f].name_len = 1;
        if (gx_executor_cuda.facet_ordinals(exec, w->columns[f], &c->facets[f], &c->ordinals[f], &err))
            die("ordinals", &err);
        if (!c->ordinals[f]) {
            fprintf(stderr, "bench_facets_gpu: the GPU has no room for attribute %s\n", c->facets[f].name);
            exit(1);
        }
        c->n_counts += gx_n_counts(c->ordinals[f]);
    }
    const uint64_t most = c->n_counts ? MOST_COUNTS / c->n_counts + 1 : b->batch;
    c->batch = most < b->batch ? (uint32_t)most : b->batch;
    c->room = malloc((c->batch * c->n_counts + 1) * sizeof *c->room);
    c->of = calloc(c->batch, sizeof *c->of);
    if (!c->room || !c->of)
        exit(1);
    for (uint32_t i = 0; i < c->batch; ++i)
        c->of[i].counts = c->room + i * c->n_counts;
}

static void close_counts(counts *c)
{
    free(c->room);
    free(c->of);
}

static void count_batch(const bench *b, void *exec, counts *c, uint32_t first, uint32_t n)
{
    gx_error err;
    bool counted = false;
    if (gx_executor_cuda.count_matches(exec, b->plans + first, n, c->ordinals, c->n, c->of, &counted, &err))
        die("count", &err);
    if (!counted) {
        fprintf(stderr, "bench_facets_gpu: the GPU has too little memory\n");
        exit(1);
    }
}

/* The groups of facet f of query i of the batch. */
static void take(const bench *b, const counts *c, uint32_t i, uint32_t f, gx_facet_count *out)
{
    gx_error err;
    const uint32_t *at = c->of[i].counts;
    for (uint32_t g = 0; g < f; ++g)
        at += gx_n_counts(c->ordinals[g]);
    *out = (gx_facet_count){.facet = c->facets[f], .type = b->columns[c->ordinals[f]->column].type};
    if (gx_facet_count_take(out, c->ordinals[f], at, c->of[i].n_matches, &err))
        die("groups", &err);
}

/* ---- the CPU ---- */

static double count_on_cpu(bench *b, const row *w, counts *c, uint32_t n, uint64_t *n_matches)
{
    gx_counter *counter;
    gx_error err;
    double took = 0;
    uint64_t *scratch = new_values(b->s->ix.n_docs / 64 + 2, 8);
    if (gx_counter_open(&counter, &b->s->ix, &err))
        die("counter", &err);
    for (uint32_t i = 0; i < n; ++i) {
        uint64_t any = 0, all = 0;
        const bool and = b->plans[i].op == GX_OP_AND;
        const double t0 = now();
        gx_facet_count f[MOST_FACETS] = {0};
        if (gx_count_any_and_all(counter, &b->plans[i], and? NULL : &any, and? &all : NULL, &err))
            die("count", &err);
        for (uint32_t g = 0; g < w->n; ++g) {
            f[g] = (gx_facet_count){.facet = c->facets[g], .type = GX_ATTRIBUTE_INT, .way = GX_FACET_BY_DOCUMENTS};
            if (gx_facet_count_add(&f[g], &b->s->ix, w->columns[g], (and? gx_counter_all : gx_counter_any)(counter),
                                   scratch, &err) ||
                gx_facet_count_end(&f[g], &err))
                die("count", &err);
        }
        took += now() - t0;
        *n_matches += and? all : any;
        bool same = c->of[i].n_matches == (and? all : any);
        for (uint32_t g = 0; g < w->n; ++g) {
            gx_facet_count mine;
            take(b, c, i, g, &mine);
            same = same && mine.n_groups == f[g].n_groups && mine.n_present == f[g].n_present &&
                   memcmp(mine.groups, f[g].groups, mine.n_groups * sizeof *mine.groups) == 0;
            gx_facet_count_free(&mine);
            gx_facet_count_free(&f[g]);
        }
        if (!same) {
            fprintf(stderr,
                    "bench_facets_gpu: query %u, %s: the GPU counts %llu matches, the CPU %llu, or groups differ\n", i,
                    w->what, (unsigned long long)c->of[i].n_matches, (unsigned long long)(and? all : any));
            exit(1);
        }
    }
    gx_counter_close(counter);
    free(scratch);
    return took;
}

/* ---- sessions ---- */

typedef struct worker {
    const bench *b;
    void *exec;
    const row *w;
    pthread_t thread;
    double host; /* seconds from counts to groups */
} worker;

static void *work(void *user)
{
    worker *k = user;
    const bench *b = k->b;
    counts c;
    open_counts(&c, b, k->exec, k->w);
    for (uint32_t run = 0; run < b->runs; ++run)
        for (uint32_t first = 0; first < b->n; first += c.batch) {
            const uint32_t n = b->n - first < c.batch ? b->n - first : c.batch;
            count_batch(b, k->exec, &c, first, n);
            const double t0 = now();
            for (uint32_t i = 0; i < n; ++i)
                for (uint32_t f = 0; f < c.n; ++f) {
                    gx_facet_count groups;
                    take(b, &c, i, f, &groups);
                    gx_facet_count_free(&groups);
                }
            k->host += now() - t0;
        }
    close_counts(&c);
    return NULL;
}

static void measure(bench *b, void **execs, const char *op, const row *w)
{
    static worker workers[MOST_SESSIONS];
    counts c;
    uint64_t n_matches = 0, postings = 0;
    open_counts(&c, b, execs[0], w);
    const uint32_t n = b->n_check < c.batch ? b->n_check : c.batch;
    count_batch(b, execs[0], &c, 0, c.batch);
    const double cpu = count_on_cpu(b, w, &c, n, &n_matches);
    close_counts(&c);
    for (uint32_t i = 0; i < b->n; ++i)
        for (uint32_t t = 0; t < b->plans[i].n_terms; ++t)
            postings += b->plans[i].terms[t].df;
    const double t0 = now();
    double host = 0;
    for (uint32_t i = 0; i < b->n_sessions; ++i) {
        workers[i] = (worker){b, execs[i], w, 0, 0};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            exit(1);
    }
    for (uint32_t i = 0; i < b->n_sessions; ++i) {
        pthread_join(workers[i].thread, NULL);
        host += workers[i].host;
    }
    const double took = now() - t0, all = (double)b->n * b->runs * b->n_sessions;
    printf("| %s | %s | %.0f | %.0f | %.0f queries/s | %.2f us | %.1f | %.1f |\n", op, w->what, (double)postings / b->n,
           (double)n_matches / n, all / took, 1e6 * host / all, 1e6 * cpu / n, cpu / n * all / took);
    fflush(stdout);
}

static void measure_all(bench *b)
{
    static const gx_op ops[] = {GX_OP_OR, GX_OP_OR, GX_OP_AND};
    static const char *const names[] = {"OR", "OR, half of the documents", "AND"};
    static void *execs[MOST_SESSIONS];
    gx_error err;
    for (uint32_t i = 0; i < b->n_sessions; ++i)
        if (gx_executor_cuda.workspace_open(&execs[i], b->state, &err))
            die("session", &err);
    printf(
        "| operator | counted | postings | matches | GPU | host, from counts to groups | one core, us | GPU / core |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (uint32_t o = 0; o < 3; ++o) {
        make_plans(b, ops[o], o == 1);
        for (uint32_t w = 0; w < (o == 0 ? N_ROWS : 3); ++w)
            measure(b, execs, names[o], &rows[w]);
    }
    free_plans(b);
    for (uint32_t i = 0; i < b->n_sessions; ++i)
        gx_executor_cuda.workspace_close(execs[i]);
}

int main(int argc, char **argv)
{
    static const struct option flags[] = {
        {"docs", 1, NULL, 'd'}, {"queries", 1, NULL, 'q'}, {"sessions", 1, NULL, 's'}, {"batch", 1, NULL, 'b'},
        {"runs", 1, NULL, 'r'}, {"check", 1, NULL, 'c'},   {"seed", 1, NULL, 'e'},     {NULL, 0, NULL, 0}};
    gx_synth_options synth = GX_SYNTH_OPTIONS;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    bench b = {.n_sessions = 4, .batch = 1024, .runs = 2, .n_check = 16};
    gx_error err;
    synth.codec = gx_codec_by_name("gpubp128");
    for (int flag; (flag = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        const uint64_t n = optarg ? strtoull(optarg, NULL, 10) : 0;
        uint32_t *const places[256] = {['d'] = &synth.n_docs, ['q'] = &synth.n_queries, ['s'] = &b.n_sessions,
                                       ['b'] = &b.batch,      ['r'] = &b.runs,          ['c'] = &b.n_check};
        if (flag == 'e')
            synth.seed = n;
        else if (flag == '?')
            return 2;
        else
            *places[flag] = n ? (uint32_t)n : 1;
    }
    b.n_sessions = b.n_sessions < MOST_SESSIONS ? b.n_sessions : MOST_SESSIONS;
    if (gx_synth_open(&b.s, &synth, &err))
        die("generate", &err);
    b.n = b.s->n_queries;
    b.batch = b.batch < b.n ? b.batch : b.n;
    add_columns(&b);
    const gx_status st = gx_executor_cuda.state_open(&b.state, &b.s->ix, &o, &err);
    if (st == GX_ENOGPU) {
        fprintf(stderr, "bench_facets_gpu: %s\n", err.text);
        return 77;
    }
    if (st)
        die("open", &err);
    printf("%s; %u documents, %u queries, batches of %u, %u sessions\n", gx_executor_cuda.describe(b.state),
           b.s->ix.n_docs, b.n, b.batch, b.n_sessions);
    measure_all(&b);
    gx_executor_cuda.release_index(b.state);
    free_columns(&b);
    gx_synth_close(b.s);
    return 0;
}
