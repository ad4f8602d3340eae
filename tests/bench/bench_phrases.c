/* bench_phrases: queries/s of phrases on the CPU and on the GPU, in batches, and whether both give the same answers.
 *
 *   bench_phrases [--threads=N] [--sessions=N] [--batch=N] [--k=N] [--runs=N] [--check=N] [--engine=cpu|gpu]
 *                 INDEX QUERIES...
 *
 * A line of a file is a query in the boolean syntax ("a b" is a phrase). Each file is measured by itself: plans are
 * made first and timed apart; then --sessions threads on the GPU, and --threads on the CPU, answer all of them. The
 * GPU's do so --runs times, the best of which counts; the CPU's once, the first --check. Their answers are compared.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "index/index.h"
#include "query/engine/session.h"

enum { MOST_SESSIONS = 64 };

typedef struct options {
    uint32_t threads, sessions, batch, k, runs, check;
    bool cpu, gpu;
} options;

typedef struct bench {
    const options *o;
    gx_engine *engine;
    gx_plan *plans;
    gx_hits *hits;
    uint32_t n, n_threads, batch;
    uint32_t next; /* atomic: the next batch */
    pthread_barrier_t barrier;
} bench;

static void check(gx_status st, const char *what, const gx_error *err)
{
    if (st == GX_OK)
        return;
    fprintf(stderr, "bench_phrases: %s: %s\n", what, err->text);
    exit(st == GX_ENOGPU ? 77 : 1);
}

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) {
        fprintf(stderr, "bench_phrases: no memory\n");
        exit(1);
    }
    return p;
}

/* ---- queries ---- */

static char **read_lines(const char *path, uint32_t *n)
{
    char **lines = NULL, *line = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "r");
    *n = 0;
    if (!f) {
        perror(path);
        exit(1);
    }
    for (ssize_t len; (len = getline(&line, &room, f)) > 0;) {
        if (*n % 1024 == 0)
            lines = realloc(lines, (*n + 1024ull) * sizeof *lines);
        line[strcspn(line, "\n")] = 0;
        lines[(*n)++] = strdup(line);
    }
    free(line);
    fclose(f);
    return lines;
}

static double make_plans(bench *b, char **lines, uint32_t n)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_error err = {0};
    opt.k = b->o->k;
    b->n = n;
    b->plans = allocate(n, sizeof *b->plans);
    b->hits = allocate(n, sizeof *b->hits);
    const double t0 = gx_clock_seconds();
    for (uint32_t i = 0; i < n; ++i) {
        gx_query q = GX_TEXT_QUERY(lines[i], strlen(lines[i]));
        q.kind = GX_QUERY_BOOLEAN;
        check(gx_engine_plan(&b->plans[i], b->engine, &q, &opt, &err), lines[i], &err);
    }
    const double t = gx_clock_seconds() - t0;
    for (uint32_t i = 0; i < n; ++i)
        b->hits[i].keys = allocate(b->plans[i].k, sizeof *b->hits[i].keys);
    return t;
}

static void free_plans(bench *b)
{
    for (uint32_t i = 0; i < b->n; ++i) {
        gx_plan_free(&b->plans[i]);
        free(b->hits[i].keys);
    }
    free(b->plans);
    free(b->hits);
}

/* ---- measuring ---- */

static void *run_thread(void *user)
{
    bench *b = user;
    gx_error err = {0};
    gx_session *s;
    check(gx_session_open(&s, b->engine, &err), "open a session", &err);
    for (uint32_t run = 0; run < b->o->runs; ++run) {
        pthread_barrier_wait(&b->barrier);
        for (;;) {
            const uint32_t begin = __atomic_fetch_add(&b->next, b->batch, __ATOMIC_RELAXED);
            if (begin >= b->n)
                break;
            const uint32_t m = b->n - begin < b->batch ? b->n - begin : b->batch;
            check(gx_session_run(s, b->plans + begin, m, b->hits + begin, &err), "run", &err);
        }
        pthread_barrier_wait(&b->barrier);
    }
    gx_session_close(s);
    return NULL;
}

/* The best run's queries/s. */
static double measure(bench *b, uint32_t n_threads, uint32_t batch, double *first)
{
    pthread_t threads[MOST_SESSIONS];
    double best = 1e9;
    b->batch = batch;
    pthread_barrier_init(&b->barrier, NULL, n_threads + 1);
    for (uint32_t i = 0; i < n_threads; ++i)
        pthread_create(&threads[i], NULL, run_thread, b);
    for (uint32_t run = 0; run < b->o->runs; ++run) {
        b->next = 0;
        const double t0 = gx_clock_seconds();
        pthread_barrier_wait(&b->barrier);
        pthread_barrier_wait(&b->barrier);
        const double t = gx_clock_seconds() - t0;
        *first = run ? *first : t;
        best = t < best ? t : best;
    }
    for (uint32_t i = 0; i < n_threads; ++i)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&b->barrier);
    return b->n / best;
}

static uint32_t count_different(const bench *x, const bench *y, uint32_t n)
{
    uint32_t different = 0;
    for (uint32_t i = 0; i < n; ++i)
        different += x->hits[i].n != y->hits[i].n ||
                     memcmp(x->hits[i].keys, y->hits[i].keys, x->hits[i].n * sizeof *x->hits[i].keys) != 0;
    return different;
}

static gx_engine *open_engine(const gx_index *ix, gx_engine_kind kind)
{
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_error err = {0};
    gx_engine *e;
    o.kind = kind;
    check(gx_engine_open(&e, ix, &o, &err), "open an engine", &err);
    return e;
}

static void measure_file(const options *o, gx_engine *cpu, gx_engine *gpu, const char *path)
{
    options once = *o;
    uint32_t n;
    char **lines = read_lines(path, &n);
    const uint32_t n_checked = n < o->check ? n : o->check;
    double first;
    once.runs = 1;
    bench g = {.o = o, .engine = gpu}, c = {.o = &once, .engine = cpu};
    if (gpu) {
        const double t = make_plans(&g, lines, n), of_one = measure(&g, 1, o->batch, &first);
        printf("%-24s %6u queries, planned in %.2f us each; GPU: 1 session %9.0f/s (first run %.0f ms)", path, n,
               1e6 * t / n, of_one, 1e3 * first);
        printf(", %u sessions %9.0f/s\n", o->sessions, measure(&g, o->sessions, o->batch, &first));
        fflush(stdout);
    }
    if (cpu && n_checked) {
        (void)make_plans(&c, lines, n_checked);
        const double speed = measure(&c, o->threads, 8, &first);
        printf("%-24s %6u queries; CPU: %u threads %9.0f/s", path, n_checked, o->threads, speed);
        if (gpu)
            printf("; %u differ", count_different(&g, &c, n_checked));
        printf("\n");
        fflush(stdout);
        free_plans(&c);
    }
    if (gpu)
        free_plans(&g);
    for (uint32_t i = 0; i < n; ++i)
        free(lines[i]);
    free(lines);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"threads", 1, 0, 't'}, {"sessions", 1, 0, 's'}, {"batch", 1, 0, 'b'},  {"k", 1, 0, 'k'},
        {"runs", 1, 0, 'r'},    {"check", 1, 0, 'c'},    {"engine", 1, 0, 'e'}, {0, 0, 0, 0}};
    options o = {
        .threads = 16, .sessions = 8, .batch = 1024, .k = 10, .runs = 3, .check = 256, .cpu = true, .gpu = true};
    gx_error err = {0};
    gx_index *ix;
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        const uint32_t n = (uint32_t)strtoul(optarg ? optarg : "0", NULL, 0);
        uint32_t *const to = c == 't'   ? &o.threads
                             : c == 's' ? &o.sessions
                             : c == 'b' ? &o.batch
                             : c == 'k' ? &o.k
                             : c == 'r' ? &o.runs
                             : c == 'c' ? &o.check
                                        : NULL;
        if (c == 'e') {
            o.cpu = optarg[0] == 'c';
            o.gpu = optarg[0] == 'g';
        } else if (to) {
            *to = n;
        } else {
            return 2;
        }
    }
    o.threads = o.threads < MOST_SESSIONS ? o.threads : MOST_SESSIONS;
    o.sessions = o.sessions < MOST_SESSIONS ? o.sessions : MOST_SESSIONS;
    if (argc - optind < 2 || !o.threads || !o.sessions || !o.batch || !o.runs)
        return 2;
    check(gx_index_open(&ix, argv[optind], NULL, &err), "open", &err);
    gx_engine *const cpu = o.cpu ? open_engine(ix, GX_ENGINE_CPU) : NULL, *const gpu =
                                                                              o.gpu ? open_engine(ix, GX_ENGINE_GPU)
                                                                                    : NULL;
    for (int i = optind + 1; i < argc; ++i)
        measure_file(&o, cpu, gpu, argv[i]);
    gx_engine_close(cpu);
    gx_engine_close(gpu);
    gx_index_close(ix);
    return 0;
}
