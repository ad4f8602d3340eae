/* bench_long: queries/s and latency of long queries on the GPU, each answer of the first ones
 * compared with the CPU engine's; or on the CPU, compared with the exhaustive answers.
 *
 *   bench_long [--shape=splade|unicoil|inference-free] [--docs=N] [--scattered] [--seed=N]
 *   bench_long --index=FILE --log=FILE [--times=N]
 *              [--queries=N] [--terms=N,..] [--k=N,..] [--algorithm=auto,block-max,exhaustive]
 *              [--groups=N] [--runs=N] [--sessions=N] [--check=N] [--alone=N] [--scatter-add=N]
 *              [--map-memory=BYTES,..] [--codec=NAME] [--engine=gpu|cpu] [--approximate='X;..']
 *
 * Without --index the collection is generated (tools/bench/data/sparse_collection.h), documents by their
 * places unless --scattered; a query is --terms of the terms of a generated one that has so many.
 * With it, the lists of FILE are taken --times times, one after the other, and a query is a line of
 * the log: its first --terms different terms that the index has. 0 terms: all of them. --groups: the
 * queries sorted by postings, in so many groups, each measured by itself. --scatter-add: so many
 * queries by the plain way (tools/bench/data/scatter_add.h), too. On the CPU a session is a thread, and
 * queries/s without sessions are those of one thread. GX_CPU chooses its instruction set.
 * --approximate: texts of gx_approximate_read, each with its speed and its recall.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/clock.h"
#include "engine/parallel.h"
#include "query/engine/session.h"
#include "tests/bench/bench_long_options.h"
#ifdef GX_CUDA
#include "tools/bench/data/scatter_add.h"
#endif

/* A query as it is drawn or read: its lists, with a weight of each. */
typedef struct long_query {
    uint32_t n, *lists, *weights;
} long_query;

typedef struct bench {
    options o;
    gx_synth *s;
    gx_index *source; /* of --index */
    const gx_executor *ops;
    void *state, *exec;
    long_query *queries;
    uint32_t n;
    gx_algorithm algorithm; /* of the plans */
    uint64_t map_memory;    /* of the engine */
    gx_plan *plans;
    gx_hits *hits, *want;
} bench;

static void die(const char *what, const gx_error *err)
{
    fprintf(stderr, "bench_long: %s: %s\n", what, err->text);
    exit(1);
}

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) {
        fprintf(stderr, "bench_long: no memory\n");
        exit(1);
    }
    return p;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- collections ---- */

/* What the threads that copy the lists of --index share. */
typedef struct copies {
    const gx_index *ix;
    uint32_t times, **docids, *dfs;
    uint16_t **tfs;
} copies;

static void copy_list(void *user, uint32_t t)
{
    const copies *c = user;
    const gx_list l = gx_index_list(c->ix, t);
    uint32_t block[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK], n = 0;
    c->docids[t] = allocate((size_t)l.df * c->times, sizeof **c->docids);
    c->tfs[t] = allocate((size_t)l.df * c->times, sizeof **c->tfs);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t m = gx_list_decode_docids(&l, j, block);
        gx_list_decode_tfs(&l, j, tfs);
        for (uint32_t i = 0; i < m; ++i, ++n) {
            c->docids[t][n] = block[i];
            c->tfs[t][n] = tfs[i] < UINT16_MAX ? (uint16_t)tfs[i] : UINT16_MAX;
        }
    }
    for (uint32_t i = n; i < n * c->times; ++i) {
        c->docids[t][i] = c->docids[t][i - n] + c->ix->n_docs;
        c->tfs[t][i] = c->tfs[t][i - n];
    }
    c->dfs[t] = n * c->times;
}

static void open_copies(bench *b)
{
    gx_error err = {0};
    if (gx_index_open(&b->source, b->o.index, NULL, &err) != GX_OK)
        die("open", &err);
    const gx_index *ix = b->source;
    const uint32_t times = b->o.times, n_docs = ix->n_docs;
    copies c = {ix, times, allocate(ix->n_terms, sizeof *c.docids), allocate(ix->n_terms, sizeof *c.dfs),
                allocate(ix->n_terms, sizeof *c.tfs)};
    uint32_t *lens = allocate((size_t)n_docs * times, sizeof *lens);
    for (uint32_t i = 0; i < times; ++i)
        memcpy(lens + (size_t)i * n_docs, ix->doc_lens, n_docs * sizeof *lens);
    gx_parallel_for(64, ix->n_terms, copy_list, &c);
    gx_synth_options so = GX_SYNTH_OPTIONS;
    so.n_docs = n_docs * times;
    so.n_terms = ix->n_terms;
    so.codec = b->o.sparse.codec;
    const gx_synth_lists lists = {(const uint32_t *const *)c.docids, c.dfs, (const uint16_t *const *)c.tfs, lens};
    if (gx_synth_open_lists(&b->s, &so, &lists, &err) != GX_OK)
        die("copy lists", &err);
    b->s->ix.impacts = ix->impacts;
    b->s->ix.impact_unit = ix->impact_unit;
    if (!gx_max_tfs_open(&b->s->ix.max_tfs, ix->n_terms))
        exit(1);
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        free(c.docids[t]);
        free(c.tfs[t]);
    }
    free(c.docids);
    free(c.tfs);
    free(c.dfs);
    free(lens);
}

/* ---- queries ---- */

static void free_queries(bench *b)
{
    for (uint32_t i = 0; i < b->n; ++i) {
        free(b->queries[i].lists);
        free(b->queries[i].weights);
    }
    free(b->queries);
    b->queries = NULL;
    b->n = 0;
}

/* The first generated queries that have n_terms terms. Their terms come by rising number, which is by falling
 * frequency; here in an order that has nothing to do with it, so that --terms takes some of all frequencies. */
static void draw_queries(bench *b, uint32_t n_terms)
{
    gx_sparse_vectors *g = gx_sparse_vectors_open(b->o.sparse.shape, b->o.sparse.seed);
    uint32_t lists[GX_SPARSE_MAX_VECTOR], weights[GX_SPARSE_MAX_VECTOR];
    free_queries(b);
    b->queries = allocate(b->o.queries, sizeof *b->queries);
    for (uint64_t number = 0; g && b->n < b->o.queries && number < 1000ull * b->o.queries; ++number) {
        long_query *q = &b->queries[b->n];
        const uint32_t n = gx_sparse_collection_query(g, number, lists, weights);
        if (n < n_terms)
            continue;
        *q = (long_query){n, allocate(n, sizeof *q->lists), allocate(n, sizeof *q->weights)};
        for (uint32_t i = 0; i < n; ++i) {
            q->lists[i] = lists[(i * 7919u + 13u) % n];
            q->weights[i] = weights[(i * 7919u + 13u) % n];
        }
        ++b->n;
    }
    gx_sparse_vectors_close(g);
    if (b->n == 0) {
        fprintf(stderr, "bench_long: no query has %u terms\n", n_terms);
        exit(1);
    }
}

/* The terms of a line that the index has, in any order. */
static void read_queries(bench *b)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_error err = {0};
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen(b->o.log, "r");
    if (!f) {
        perror(b->o.log);
        exit(1);
    }
    if (b->source->impacts)
        opt.preset = GX_IMPACT;
    b->queries = allocate(b->o.queries, sizeof *b->queries);
    for (ssize_t len; b->n < b->o.queries && (len = getline(&line, &room, f)) > 0;) {
        gx_plan plan;
        long_query *q = &b->queries[b->n];
        if (gx_plan_make(&plan, b->source, line, (size_t)len, &opt, &err) != GX_OK)
            die("plan", &err);
        q->n = plan.n_terms;
        q->lists = allocate(q->n, sizeof *q->lists);
        q->weights = allocate(q->n, sizeof *q->weights);
        for (uint32_t i = 0; i < q->n; ++i) { /* not by df: longer queries then begin as shorter ones do */
            const uint32_t from = (i * 7919u + 13u) % q->n;
            q->lists[i] = plan.terms[from].list;
            q->weights[i] = (uint32_t)plan.terms[from].qtf;
        }
        for (uint32_t i = 0; i < q->n; ++i) { /* 7919 may divide their number */
            for (uint32_t j = 0; j < i; ++j) {
                if (q->lists[i] == q->lists[j])
                    q->lists[i] = plan.terms[i].list;
            }
        }
        b->n += q->n > 0;
        gx_plan_free(&plan);
    }
    free(line);
    fclose(f);
}

static void free_plans(bench *b)
{
    for (uint32_t i = 0; b->plans && i < b->n; ++i) {
        gx_plan_free(&b->plans[i]);
        free(b->hits[i].keys);
        free(b->want[i].keys);
    }
    free(b->plans);
    free(b->hits);
    free(b->want);
    b->plans = NULL;
    b->hits = b->want = NULL;
}

static void make_plans(bench *b, uint32_t n_terms, uint32_t k)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_error err = {0};
    opt.k = k;
    opt.prune = b->algorithm != EXHAUSTIVE;
    opt.algorithm = opt.prune ? b->algorithm : GX_ALGORITHM_AUTO;
    if (b->s->ix.impacts)
        opt.preset = GX_IMPACT;
    free_plans(b);
    b->plans = allocate(b->n, sizeof *b->plans);
    b->hits = allocate(b->n, sizeof *b->hits);
    b->want = allocate(b->n, sizeof *b->want);
    for (uint32_t i = 0; i < b->n; ++i) {
        const long_query *q = &b->queries[i];
        const uint32_t n = n_terms && n_terms < q->n ? n_terms : q->n;
        if (gx_plan_make_ids(&b->plans[i], &b->s->ix, q->lists, q->weights, n, &opt, &err) != GX_OK)
            die("plan", &err);
        b->hits[i].keys = allocate(b->plans[i].k, sizeof *b->hits[i].keys);
        b->want[i].keys = allocate(b->plans[i].k, sizeof *b->want[i].keys);
    }
}

/* ---- measuring ---- */

/* The first answers against the CPU engine's, which scores exhaustively if its own are checked, by
 * several threads. */
typedef struct checker {
    bench *b;
    void *state;
    uint32_t wrong, n;
} checker;

static void check_part(void *user, uint32_t part)
{
    checker *c = user;
    bench *b = c->b;
    gx_error err = {0};
    void *exec;
    if (gx_executor_cpu.workspace_open(&exec, c->state, &err) != GX_OK)
        die("open the CPU engine", &err);
    for (uint32_t i = part; i < c->n; i += 16) {
        gx_plan plan = b->plans[i];
        plan.prune = !b->o.on_cpu;
        if (gx_executor_cpu.run(exec, &plan, 1, b->want + i, NULL, &err) != GX_OK)
            die("run on the CPU", &err);
        if (b->hits[i].n != b->want[i].n ||
            memcmp(b->hits[i].keys, b->want[i].keys, b->hits[i].n * sizeof *b->hits[i].keys) != 0)
            __atomic_fetch_add(&c->wrong, 1, __ATOMIC_RELAXED);
    }
    gx_executor_cpu.workspace_close(exec);
}

static uint32_t check(bench *b, void *cpu, uint32_t n)
{
    checker c = {b, cpu, 0, n < b->n ? n : b->n};
    if (cpu && c.n)
        gx_parallel_for(16, 16, check_part, &c);
    return c.wrong;
}

/* A session that answers all queries again and again. */
typedef struct runner {
    bench *b;
    pthread_barrier_t *start;
    gx_hits *hits;
} runner;

static void *run_session(void *user)
{
    runner *r = user;
    bench *b = r->b;
    gx_error err = {0};
    void *exec;
    if (b->ops->workspace_open(&exec, b->state, &err) != GX_OK)
        die("open a session", &err);
    for (uint32_t i = 0; i <= b->o.runs; ++i) { /* the first warms up */
        if (i == 1)
            pthread_barrier_wait(r->start);
        if (b->ops->run(exec, b->plans, b->n, r->hits, NULL, &err) != GX_OK)
            die("run", &err);
    }
    pthread_barrier_wait(r->start);
    b->ops->workspace_close(exec);
    return NULL;
}

static double measure_sessions(bench *b, uint32_t k)
{
    const uint32_t n = b->o.sessions;
    pthread_t threads[64];
    pthread_barrier_t start;
    runner runners[64];
    pthread_barrier_init(&start, NULL, n + 1);
    for (uint32_t i = 0; i < n; ++i) {
        runners[i] = (runner){b, &start, allocate(b->n, sizeof *runners[i].hits)};
        for (uint32_t q = 0; q < b->n; ++q)
            runners[i].hits[q].keys = allocate(k, sizeof(uint64_t));
        pthread_create(&threads[i], NULL, run_session, &runners[i]);
    }
    pthread_barrier_wait(&start);
    const double t0 = gx_clock_seconds();
    pthread_barrier_wait(&start);
    const double t = gx_clock_seconds() - t0;
    for (uint32_t i = 0; i < n; ++i) {
        pthread_join(threads[i], NULL);
        for (uint32_t q = 0; q < b->n; ++q)
            free(runners[i].hits[q].keys);
        free(runners[i].hits);
    }
    pthread_barrier_destroy(&start);
    return (double)n * b->n * b->o.runs / t;
}

static void measure(bench *b, void *cpu, uint32_t n_terms, uint32_t k)
{
    gx_error err = {0};
    gx_search_stats w = {0};
    double best = 1e9, mean_terms = 0;
    make_plans(b, n_terms, k);
    for (uint32_t i = 0; i < b->n; ++i)
        mean_terms += b->plans[i].n_terms;
    for (uint32_t i = 0; i <= b->o.runs; ++i) {
        gx_search_stats work = {0};
        const double t0 = gx_clock_seconds();
        if (b->ops->run(b->exec, b->plans, b->n, b->hits, &work, &err) != GX_OK)
            die("run", &err);
        const double t = gx_clock_seconds() - t0;
        if (i && t < best) {
            best = t;
            w = work;
        }
    }
    const uint32_t wrong = check(b, cpu, b->o.check);
    printf("%-9s terms %5.1f k %5u: %8.0f queries/s", algorithm_names[b->algorithm], mean_terms / b->n, k, b->n / best);
    if (b->o.sessions)
        printf(", %u sessions %8.0f", b->o.sessions, measure_sessions(b, k));
    printf("; of %u checked %u differ; a query: %.2f M postings, %.0f blocks, %.1f%% decoded; us: search %.2f select "
           "%.2f host in %.2f out %.2f; parts %llu\n",
           cpu ? b->o.check : 0, wrong, (double)w.postings / b->n / 1e6, (double)w.blocks / b->n,
           100.0 * (double)w.blocks_decoded / (double)w.blocks, w.seconds[GX_SEARCH_SCORE] / b->n * 1e6,
           w.seconds[GX_SEARCH_SELECT] / b->n * 1e6, w.seconds[GX_SEARCH_COPY_IN] / b->n * 1e6,
           w.seconds[GX_SEARCH_COPY_OUT] / b->n * 1e6, (unsigned long long)w.parts);
    fflush(stdout);
}

/* The host's clock; on the CPU what the thread has run, which leaves out what other programs take. */
static double seconds_of(const bench *b)
{
    struct timespec t;
    if (!b->o.on_cpu)
        return gx_clock_seconds();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One query after the other, of each the faster of two rounds. */
static void measure_alone(bench *b, uint32_t n_terms, uint32_t k)
{
    gx_error err = {0};
    const uint32_t n = b->o.alone < b->n ? b->o.alone : b->n;
    double *all = allocate(n, sizeof *all), sum = 0;
    make_plans(b, n_terms, k);
    for (uint32_t round = 0; round < 2; ++round) {
        for (uint32_t i = 0; i < n; ++i) {
            const double t0 = seconds_of(b);
            if (b->ops->run(b->exec, b->plans + i, 1, b->hits + i, NULL, &err) != GX_OK)
                die("run", &err);
            const double us = (seconds_of(b) - t0) * 1e6;
            all[i] = round && all[i] < us ? all[i] : us;
        }
    }
    qsort(all, n, sizeof *all, by_value);
    for (uint32_t i = 0; i < n; ++i)
        sum += all[i];
    printf("alone, k %5u: mean %.0f p50 %.0f p90 %.0f p99 %.0f us\n", k, sum / n, all[n / 2], all[n * 9 / 10],
           all[n * 99 / 100]);
    fflush(stdout);
    free(all);
}

/* The results that are as good as the exact answers of b->want, and all that are wanted. */
static double recall_of(const bench *b)
{
    uint64_t found = 0, wanted = 0;
    for (uint32_t i = 0; i < b->n; ++i) {
        wanted += b->want[i].n;
        for (uint32_t j = 0; j < b->hits[i].n; ++j)
            found += gx_key_score(b->hits[i].keys[j]) >= gx_key_score(b->want[i].keys[b->want[i].n - 1]);
    }
    return wanted ? (double)found / (double)wanted : 1;
}

/* What a text of --approximate says, to all plans. */
static void set_approximate(bench *b, const char *text)
{
    gx_error err = {0};
    gx_query_options o = GX_QUERY_OPTIONS;
    if (gx_approximate_read(&o, text, &err) != GX_OK)
        die("--approximate", &err);
    for (uint32_t q = 0; q < b->n; ++q) {
        b->plans[q].approximate = o.approximate;
        b->plans[q].block_budget = (uint32_t)o.block_budget;
    }
}

/* All queries, on the CPU one after the other: of each the fastest time so far to best[b->n], of a batch to best[0]. */
static void time_round(bench *b, gx_session *session, double *best)
{
    gx_error err = {0};
    const uint32_t n = b->o.on_cpu ? 1 : b->n;
    for (uint32_t q = 0; q < b->n; q += n) {
        const double t0 = seconds_of(b);
        if (gx_session_run(session, b->plans + q, n, b->hits + q, &err) != GX_OK)
            die("run", &err);
        const double t = seconds_of(b) - t0;
        best[q] = t < best[q] ? t : best[q];
    }
}

/* The settings of --approximate on a session of an engine of its own, in turn, as many rounds as there are runs. */
static void measure_approximate(bench *b, uint32_t n_terms, uint32_t k)
{
    gx_error err = {0};
    gx_engine *en;
    gx_session *session;
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    double *best = allocate((size_t)b->o.n_approximate * b->n, sizeof *best), recall[MAX_SETTINGS];
    eo.kind = b->o.on_cpu ? GX_ENGINE_CPU : GX_ENGINE_GPU;
    eo.map_memory = b->map_memory;
    if (gx_engine_open(&en, &b->s->ix, &eo, &err) != GX_OK || gx_session_open(&session, en, &err) != GX_OK)
        die("open an engine", &err);
    make_plans(b, n_terms, k);
    if (gx_session_run(session, b->plans, b->n, b->want, &err) != GX_OK)
        die("run", &err);
    for (size_t i = 0; i < (size_t)b->o.n_approximate * b->n; ++i)
        best[i] = 1e9;
    for (uint32_t r = 0; r < b->o.runs; ++r) {
        for (uint32_t i = 0; i < b->o.n_approximate; ++i) {
            set_approximate(b, b->o.approximate[i]);
            time_round(b, session, best + (size_t)i * b->n);
            recall[i] = recall_of(b);
        }
    }
    for (uint32_t i = 0; i < b->o.n_approximate; ++i) {
        double sum = 0;
        for (uint32_t q = 0; q < b->n; q += b->o.on_cpu ? 1 : b->n)
            sum += best[(size_t)i * b->n + q];
        printf("approximate %-28s k %5u: %8.0f queries/s, %.1f us each, recall %.4f\n", b->o.approximate[i], k,
               b->n / sum, sum / b->n * 1e6, recall[i]);
    }
    fflush(stdout);
    free(best);
    gx_session_close(session);
    gx_engine_close(en);
}

static uint64_t device_memory(void)
{
    uint64_t have = 0;
#ifdef GX_CUDA
    uint64_t total = 0;
    gx_error err;
    (void)gx_device_memory(&have, &total, &err);
#endif
    return have;
}

static void measure_scatter_add(bench *b, uint32_t k)
{
#ifdef GX_CUDA
    const uint32_t n = b->o.scatter_add < b->n ? b->o.scatter_add : b->n;
    gx_scatter_query *queries = allocate(n, sizeof *queries);
    float *best = allocate(n, sizeof *best);
    gx_error err = {0};
    gx_scatter_add *s;
    double seconds = 0;
    uint32_t low = 0, high = 0;
    make_plans(b, 0, k);
    if (b->ops->run(b->exec, b->plans, n, b->hits, NULL, &err) != GX_OK)
        die("run", &err);
    for (uint32_t i = 0; i < n; ++i) {
        const long_query *q = &b->queries[i];
        float *weights = allocate(q->n, sizeof *weights);
        for (uint32_t t = 0; t < q->n; ++t)
            weights[t] = (float)((double)q->weights[t] * b->s->ix.impact_unit);
        queries[i] = (gx_scatter_query){q->lists, weights, q->n};
    }
    if (gx_scatter_add_open(&s, &b->s->ix, queries, n, 16, &err) != GX_OK)
        die("scatter-add", &err);
    for (int round = 0; round < 2; ++round) {
        if (gx_scatter_add_run(s, queries, n, k, best, &seconds, &err) != GX_OK)
            die("scatter-add", &err);
    }
    for (uint32_t i = 0; i < n; ++i) {
        const double kth = ldexp((double)gx_key_score(b->hits[i].keys[b->hits[i].n - 1]), -b->plans[i].exponent);
        low += best[i] < kth * .93;
        high += best[i] > kth * 1.001;
    }
    printf("scatter-add, k %5u: %.0f queries/s (%u queries), %.2f GB of lists; k-th scores: %u too low, %u too high\n",
           k, n / seconds, n, (double)gx_scatter_add_bytes(s) / 1e9, low, high);
    fflush(stdout);
    gx_scatter_add_close(s);
    for (uint32_t i = 0; i < n; ++i)
        free((float *)queries[i].weights);
    free(queries);
    free(best);
#else
    (void)b;
    (void)k;
#endif
}

/* ---- what is measured ---- */

/* The postings of the query's first n_terms terms, or of all of them. */
static uint64_t count_postings(const gx_index *ix, const long_query *q, uint32_t n_terms)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < q->n && (i < n_terms || !n_terms); ++i)
        n += ix->lists[q->lists[i]].df;
    return n;
}

typedef struct sized_query {
    uint64_t postings;
    long_query query;
} sized_query;

static int by_postings(const void *a, const void *b)
{
    const uint64_t x = ((const sized_query *)a)->postings, y = ((const sized_query *)b)->postings;
    return (x > y) - (x < y);
}

static void sort_queries(bench *b, uint32_t n_terms)
{
    sized_query *sized = allocate(b->n, sizeof *sized);
    for (uint32_t i = 0; i < b->n; ++i)
        sized[i] = (sized_query){count_postings(&b->s->ix, &b->queries[i], n_terms), b->queries[i]};
    qsort(sized, b->n, sizeof *sized, by_postings);
    for (uint32_t i = 0; i < b->n; ++i)
        b->queries[i] = sized[i].query;
    free(sized);
}

/* All algorithms, in turn, on all values of k. */
static void measure_all(bench *b, void *cpu, uint32_t n_terms)
{
    const options *o = &b->o;
    for (uint32_t j = 0; j < o->k.n; ++j) {
        for (uint32_t a = 0; a < o->algorithms.n; ++a) {
            b->algorithm = (gx_algorithm)o->algorithms.of[a];
            measure(b, cpu, n_terms, (uint32_t)o->k.of[j]);
            if (o->alone)
                measure_alone(b, n_terms, (uint32_t)o->k.of[j]);
            if (o->n_approximate)
                measure_approximate(b, n_terms, (uint32_t)o->k.of[j]);
        }
    }
}

static void measure_groups(bench *b, void *cpu, uint32_t n_terms)
{
    free_plans(b);
    if (!b->source)
        draw_queries(b, n_terms);
    long_query *const all = b->queries;
    const uint32_t n = b->n, groups = b->o.groups < n ? b->o.groups : n;
    if (groups > 1)
        sort_queries(b, n_terms);
    for (uint32_t g = 0; g < groups; ++g) {
        const uint32_t begin = (uint32_t)((uint64_t)n * g / groups), end = (uint32_t)((uint64_t)n * (g + 1) / groups);
        free_plans(b);
        b->queries = all + begin;
        b->n = end - begin;
        measure_all(b, cpu, n_terms);
    }
    free_plans(b);
    b->queries = all;
    b->n = n; /* of all groups */
}

/* ---- the program ---- */

/* Opens the engine with b->map_memory, and measures. Returns 77 if there is no GPU, else 0. */
static int run_engine(bench *b)
{
    const options *o = &b->o;
    const gx_index *ix = &b->s->ix;
    gx_error err = {0};
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    void *cpu = NULL;
    eo.map_memory = b->map_memory;
    double t = gx_clock_seconds();
    const uint64_t before = device_memory();
    const gx_status st = b->ops->state_open(&b->state, ix, &eo, &err);
    if (st == GX_ENOGPU) {
        fprintf(stderr, "bench_long: %s\n", err.text);
        return 77;
    }
    if (st != GX_OK || b->ops->workspace_open(&b->exec, b->state, &err) != GX_OK)
        die("open", &err);
    printf("%s: opened in %.2f s\n", b->ops->describe(b->state), gx_clock_seconds() - t);
    eo.map_memory = 0;
    if (o->check && gx_executor_cpu.state_open(&cpu, ix, &eo, &err) != GX_OK)
        die("open the CPU engine", &err);
    t = gx_clock_seconds();
    b->algorithm = (gx_algorithm)o->algorithms.of[0];
    make_plans(b, 0, 10);
    printf("plans %.1f us each;", (gx_clock_seconds() - t) * 1e6 / b->n);
    t = gx_clock_seconds();
    if (b->ops->run(b->exec, b->plans, 1, b->hits, NULL, &err) != GX_OK)
        die("run", &err);
    printf(" first answer in %.3f s; device memory for all of it %.2f GB\n", gx_clock_seconds() - t,
           (double)(before - device_memory()) / 1e9);
    fflush(stdout);
    for (uint32_t i = 0; i < o->terms.n; ++i)
        measure_groups(b, cpu, (uint32_t)o->terms.of[i]);
    for (uint32_t j = 0; j < o->k.n && o->scatter_add; ++j)
        measure_scatter_add(b, (uint32_t)o->k.of[j]);
    free_plans(b);
    gx_executor_cpu.release_index(cpu);
    b->ops->workspace_close(b->exec);
    b->ops->release_index(b->state);
    return 0;
}

int main(int argc, char **argv)
{
    gx_error err = {0};
    bench b = {.o = parse_options(argc, argv)};
    const options *o = &b.o;
    int exit_code = 0;
    const double t = gx_clock_seconds();
    if (!o->sparse.codec || (o->index && !o->log)) {
        fprintf(stderr, "bench_long: no such codec, or --index without --log\n");
        return 2;
    }
    if (o->index)
        open_copies(&b);
    else if (gx_sparse_collection_open(&b.s, &o->sparse, &err) != GX_OK)
        die("generate", &err);
    if (o->index)
        read_queries(&b);
    else
        draw_queries(&b, 0);
    const gx_index *ix = &b.s->ix;
    printf("%u documents, %u lists, %.1f M postings, %.2f bits a posting; made in %.1f s\n", ix->n_docs, ix->n_terms,
           (double)ix->n_postings / 1e6, (double)ix->header->device_bytes * 8 / (double)ix->n_postings,
           gx_clock_seconds() - t);
    fflush(stdout);
    for (const gx_executor *const *p = gx_executors; *p && !(o->on_cpu && b.ops); ++p)
        b.ops = *p;
    for (uint32_t i = 0; i < o->map_memory.n && exit_code == 0; ++i) {
        b.map_memory = o->map_memory.of[i];
        exit_code = run_engine(&b);
    }
    free_queries(&b);
    gx_synth_close(b.s);
    if (b.source)
        gx_index_close(b.source);
    return exit_code;
}
