/* bench_changes: a collection is searched while another process adds documents to it.
 *
 *   bench_changes [--engine=cpu|gpu] [--join=auto|never|always] [--docs=N] [--add=N] [--batch=N]
 *                 [--rate=N] [--readers=N] [--queries=N] [--poll=MS] [--writer-threads=N] [--seconds=S] DIR
 *
 * Documents are of random words, 60 on average, by Zipf's law. First the readers answer queries of
 * the collection as it is; then again while the writer adds N documents and commits after each
 * batch; with --rate, not more than so many documents a second. One thread looks for a new commit
 * every few milliseconds, and opens it; the readers take it with their next query, and the thread
 * closes what no reader holds any more. A commit is visible
 * when a reader has an answer from it: the time from the writer's return from gx_collection_commit to
 * there. At the end the answers are compared with those of an engine that is opened anew on the last
 * commit. Then all parts are merged into one, whose speed and that of the first part are averaged: the
 * speed of a collection that does not change, of the size that this one has on average. The queries are
 * answered in batches of 1 on the CPU and of 256 on a GPU.
 */
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/random.h"

enum { VOCABULARY = 200000, MOST_COMMITS = 4096, K = 10 };

typedef struct options {
    gx_engine_kind engine;
    gx_join join;
    uint32_t docs, add, batch, rate, readers, queries, poll_ms, writer_threads;
    double seconds;
    const char *dir;
} options;

/* What the two processes share. */
typedef struct board {
    atomic_int begin, done;
    double commit_at[MOST_COMMITS]; /* when the commit's call returned; 0: not yet */
    double adding, adding_cpu;      /* seconds of the writer, and of processor time */
    double in_commits, in_merges;   /* of its seconds */
    uint32_t n_merges;
} board;

/* A commit that is open. The thread that looks for new ones closes it when nobody holds it. */
typedef struct version {
    gx_index *ix;
    gx_engine *en;
    atomic_int holders;
    struct version *older;
} version;

typedef struct bench {
    options o;
    board *board;
    char path[512];
    char (*texts)[96]; /* [o.queries] */
    pthread_mutex_t lock;
    version *now;
    atomic_bool stop;
    _Atomic(double) seen_at[MOST_COMMITS]; /* when a reader first had an answer of it */
    uint32_t n_reloads;
    double reload_seconds, slowest_reload;
    version *old; /* those that may still be held */
    pthread_mutex_t stats_lock;
    double session_seconds; /* in which readers opened and closed sessions */
    uint32_t n_sessions;
} bench;

static void check(gx_status st, const char *what, const gx_error *err)
{
    if (st == GX_OK)
        return;
    fprintf(stderr, "bench_changes: %s: %s\n", what, err->text);
    exit(st == GX_ENOGPU ? 77 : 1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double uniform(uint64_t *r)
{
    return (double)(gx_random_next(r) >> 11) * 0x1p-53;
}

/* A word's number, by Zipf's law: P(rank < x) = log x / log VOCABULARY. */
static uint32_t draw_word(uint64_t *r)
{
    return (uint32_t)exp(uniform(r) * log(VOCABULARY));
}

/* Document number i: its id and text. */
static size_t make_text(uint32_t i, char id[16], char text[1024])
{
    uint64_t r = i + 1;
    size_t len = 0;
    sprintf(id, "d%u", i);
    for (uint32_t n = 20 + (uint32_t)(uniform(&r) * 80); n; --n)
        len += (size_t)sprintf(text + len, "w%u ", draw_word(&r));
    return len;
}

static gx_document document_of(const char *id, const char *text, size_t len)
{
    return (gx_document){.size = sizeof(gx_document), .id = id, .id_len = strlen(id), .text = text, .text_len = len};
}

/* Of this process, all its threads. */
static double processor_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the writer ---- */

static void make_base(const bench *b)
{
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_builder *builder;
    gx_error err = {0};
    char file[600], id[16], text[1024];
    snprintf(file, sizeof file, "%s.base.gx", b->path);
    o.path = file;
    o.analyzer = "whitespace";
    o.threads = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    check(gx_builder_open(&builder, &o, &err), "build", &err);
    for (uint32_t i = 0; i < b->o.docs; ++i) {
        const size_t len = make_text(i, id, text);
        const gx_document d = document_of(id, text, len);
        check(gx_builder_add(builder, &d, &err), "build", &err);
    }
    check(gx_builder_finish(builder, &err), "build", &err);
    gx_builder_abort(builder);
    const char *files[] = {file};
    check(gx_collect(b->path, files, 1, &err), "collect", &err);
    unlink(file);
}

/* The documents are made beforehand. Merging is part of adding. */
static void write_all(bench *b)
{
    const options *o = &b->o;
    char(*ids)[16] = malloc((size_t)o->add * sizeof *ids), **texts = malloc((size_t)o->add * sizeof *texts), text[1024];
    gx_collection_options co = GX_COLLECTION_OPTIONS;
    gx_collection *c;
    gx_error err = {0};
    for (uint32_t i = 0; i < o->add; ++i) {
        make_text(o->docs + i, ids[i], text);
        texts[i] = strdup(text);
    }
    co.threads = o->writer_threads;
    atomic_store(&b->board->done, -1); /* ready */
    while (!atomic_load(&b->board->begin))
        usleep(1000);
    const double t = now(), cpu = processor_time();
    check(gx_collection_open(&c, b->path, &co, &err), "open to add", &err);
    for (uint32_t i = 0; i < o->add; ++i) {
        const gx_document d = document_of(ids[i], texts[i], strlen(texts[i]));
        while (o->rate && now() < t + (double)i / o->rate) /* as a source would that gives them so fast */
            usleep(200);
        check(gx_collection_add(c, &d, &err), "add", &err);
        if ((i + 1) % o->batch && i + 1 < o->add)
            continue;
        const double begin = now();
        check(gx_collection_commit(c, &err), "commit", &err);
        const double committed = now();
        b->board->commit_at[gx_index_commit(gx_collection_index(c)) % MOST_COMMITS] = committed;
        check(gx_collection_merge(c, GX_MERGE_TIERS, &err), "merge", &err);
        b->board->in_commits += committed - begin;
        b->board->in_merges += now() - committed;
    }
    b->board->adding = now() - t;
    b->board->adding_cpu = processor_time() - cpu;
    gx_collection_counts counts = {.size = sizeof counts};
    gx_collection_get_counts(c, &counts);
    b->board->n_merges = (uint32_t)counts.merges;
    gx_collection_close(c);
    atomic_store(&b->board->done, 1);
    _exit(0);
}

/* ---- the readers ---- */

static version *hold(bench *b)
{
    pthread_mutex_lock(&b->lock);
    version *v = b->now;
    atomic_fetch_add(&v->holders, 1);
    pthread_mutex_unlock(&b->lock);
    return v;
}

static void let_go(version *v)
{
    atomic_fetch_sub(&v->holders, 1);
}

static void close_old(bench *b)
{
    for (version **at = &b->old; *at;) {
        version *v = *at;
        if (atomic_load(&v->holders)) {
            at = &v->older;
            continue;
        }
        *at = v->older;
        gx_engine_close(v->en);
        gx_index_close(v->ix);
        free(v);
    }
}

static version *new_version(gx_index *ix, gx_engine *en)
{
    version *v = calloc(1, sizeof *v);
    v->ix = ix;
    v->en = en;
    atomic_store(&v->holders, 1);
    return v;
}

/* Open the last commit if it is new. */
static void reload(bench *b)
{
    gx_index *ix;
    gx_engine *en;
    gx_error err = {0};
    const double t = now();
    check(gx_index_reopen(&ix, b->now->ix, NULL, &err), "reload", &err);
    if (!ix)
        return;
    check(gx_engine_reopen(&en, b->now->en, ix, &err), "reload", &err);
    const double seconds = now() - t;
    version *old = b->now, *v = new_version(ix, en);
    pthread_mutex_lock(&b->lock);
    b->now = v;
    pthread_mutex_unlock(&b->lock);
    old->older = b->old;
    b->old = old;
    let_go(old);
    ++b->n_reloads;
    b->reload_seconds += seconds;
    b->slowest_reload = seconds > b->slowest_reload ? seconds : b->slowest_reload;
}

static void *watch(void *arg)
{
    bench *b = arg;
    while (!atomic_load(&b->stop)) {
        reload(b);
        close_old(b);
        usleep(1000 * b->o.poll_ms);
    }
    return NULL;
}

typedef struct reader {
    bench *b;
    uint64_t n;
    pthread_t thread;
} reader;

static uint32_t batch_of(const gx_engine *en)
{
    return gx_engine_get_kind(en) == GX_ENGINE_CPU ? 1 : 256;
}

static void *read_on(void *arg)
{
    reader *r = arg;
    bench *b = r->b;
    uint32_t docids[256 * K], n_hits[256], at = (uint32_t)(uintptr_t)r % b->o.queries;
    float scores[256 * K];
    gx_query queries[256];
    gx_query_options q = GX_QUERY_OPTIONS;
    const gx_results out = {sizeof out, docids, scores, n_hits, NULL, NULL};
    gx_error err = {0};
    version *v = NULL;
    gx_session *s = NULL;
    q.k = K;
    while (!atomic_load(&b->stop)) {
        if (v != __atomic_load_n(&b->now, __ATOMIC_ACQUIRE)) {
            const double t = now();
            gx_session_close(s);
            if (v)
                let_go(v);
            v = hold(b);
            check(gx_session_open(&s, v->en, &err), "session", &err);
            pthread_mutex_lock(&b->stats_lock);
            b->session_seconds += now() - t;
            ++b->n_sessions;
            pthread_mutex_unlock(&b->stats_lock);
        }
        const uint32_t n = batch_of(v->en);
        for (uint32_t i = 0; i < n; ++i, at = (at + 1) % b->o.queries)
            queries[i] = (gx_query){.size = sizeof *queries, .text = b->texts[at], .len = strlen(b->texts[at])};
        check(gx_search(s, queries, n, &q, &out, &err), "search", &err);
        r->n += n;
        _Atomic(double) *seen = &b->seen_at[gx_index_commit(v->ix) % MOST_COMMITS];
        double none = 0;
        if (atomic_load(seen) == 0)
            atomic_compare_exchange_strong(seen, &none, now());
    }
    gx_session_close(s);
    if (v)
        let_go(v);
    return NULL;
}

/* Queries a second, for some seconds, or until the writer is done and its last commit is seen;
 * *cpu_us: processor time a query, reloads included. */
static double search_on(bench *b, bool adding, double *cpu_us)
{
    reader *readers = calloc(b->o.readers, sizeof *readers);
    pthread_t watcher;
    uint64_t n = 0;
    atomic_store(&b->stop, false);
    const double t = now(), cpu = processor_time();
    if (adding)
        pthread_create(&watcher, NULL, watch, b);
    for (uint32_t i = 0; i < b->o.readers; ++i) {
        readers[i].b = b;
        pthread_create(&readers[i].thread, NULL, read_on, &readers[i]);
    }
    if (adding) {
        atomic_store(&b->board->begin, 1);
        while (atomic_load(&b->board->done) != 1 && waitpid(-1, NULL, WNOHANG) == 0)
            usleep(1000);
    } else {
        usleep((useconds_t)(1e6 * b->o.seconds));
    }
    const double seconds = now() - t;
    for (uint32_t i = 0; i < b->o.readers; ++i)
        n += __atomic_load_n(&readers[i].n, __ATOMIC_RELAXED);
    *cpu_us = 1e6 * (processor_time() - cpu) / (double)(n ? n : 1);
    if (adding)
        usleep(500000 + 2000 * b->o.poll_ms);
    atomic_store(&b->stop, true);
    for (uint32_t i = 0; i < b->o.readers; ++i)
        pthread_join(readers[i].thread, NULL);
    if (adding)
        pthread_join(watcher, NULL);
    free(readers);
    return (double)n / seconds;
}

/* ---- the program ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report_lags(const bench *b)
{
    double lags[MOST_COMMITS];
    uint32_t n = 0, skipped = 0;
    for (uint32_t c = 0; c < MOST_COMMITS; ++c) {
        if (b->board->commit_at[c] == 0)
            continue;
        double seen = 0; /* of it, or of the next one that was seen: a merge may replace it at once */
        for (uint32_t d = c; d < MOST_COMMITS && seen == 0; ++d)
            seen = b->seen_at[d];
        if (seen)
            lags[n++] = seen > b->board->commit_at[c] ? seen - b->board->commit_at[c] : 0;
        else
            ++skipped;
    }
    qsort(lags, n, sizeof *lags, by_value);
    if (n)
        printf("visible after its commit: median %.0f ms, most %.0f ms, of %u commits; %u never seen\n",
               1e3 * lags[n / 2], 1e3 * lags[n - 1], n, skipped);
}

/* Merge all parts into one, and open it. */
static void merge_all(bench *b)
{
    gx_collection_options co = GX_COLLECTION_OPTIONS;
    gx_collection *c;
    gx_error err = {0};
    co.threads = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    check(gx_collection_open(&c, b->path, &co, &err), "open to merge", &err);
    check(gx_collection_merge(c, GX_MERGE_ALL, &err), "merge", &err);
    gx_collection_close(c);
    reload(b);
    close_old(b);
}

/* Answers of the engine that followed all commits, and of one opened anew. */
static uint32_t count_different(bench *b)
{
    gx_index *ix;
    gx_engine *en;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_query_options q = GX_QUERY_OPTIONS;
    gx_error err = {0};
    uint32_t different = 0;
    o.kind = GX_ENGINE_CPU;
    q.k = K;
    reload(b);
    check(gx_index_open(&ix, b->path, NULL, &err), "open", &err);
    check(gx_engine_open(&en, ix, &o, &err), "engine", &err);
    gx_engine *const engines[] = {b->now->en, en};
    gx_session *sessions[2];
    for (int e = 0; e < 2; ++e)
        check(gx_session_open(&sessions[e], engines[e], &err), "session", &err);
    for (uint32_t i = 0; i < b->o.queries; ++i) {
        uint32_t docids[2][K] = {{0}}, n[2];
        double scores[2][K] = {{0}};
        const gx_query query = {.size = sizeof query, .text = b->texts[i], .len = strlen(b->texts[i])};
        for (int e = 0; e < 2; ++e) {
            const gx_results out = {sizeof out, docids[e], NULL, &n[e], NULL, scores[e]};
            check(gx_search(sessions[e], &query, 1, &q, &out, &err), "search", &err);
        }
        different += n[0] != n[1] || memcmp(docids[0], docids[1], n[0] * sizeof **docids) ||
                     memcmp(scores[0], scores[1], n[0] * sizeof **scores);
    }
    for (int e = 0; e < 2; ++e)
        gx_session_close(sessions[e]);
    gx_engine_close(en);
    gx_index_close(ix);
    return different;
}

static options parse(int argc, char **argv)
{
    static const struct option longs[] = {
        {"engine", 1, 0, 'e'},  {"join", 1, 0, 'j'},           {"docs", 1, 0, 'd'},    {"add", 1, 0, 'a'},
        {"batch", 1, 0, 'b'},   {"readers", 1, 0, 'r'},        {"queries", 1, 0, 'q'}, {"poll", 1, 0, 'p'},
        {"seconds", 1, 0, 's'}, {"writer-threads", 1, 0, 'w'}, {"rate", 1, 0, 'R'},    {0, 0, 0, 0},
    };
    options o = {.engine = GX_ENGINE_CPU,
                 .docs = 500000,
                 .add = 200000,
                 .batch = 10000,
                 .readers = 1,
                 .queries = 1000,
                 .poll_ms = 10,
                 .writer_threads = 1,
                 .seconds = 2};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        const uint32_t n = optarg ? (uint32_t)strtoul(optarg, NULL, 0) : 0;
        switch (c) {
        case 'e':
            o.engine = strcmp(optarg, "gpu") ? GX_ENGINE_CPU : GX_ENGINE_GPU;
            break;
        case 'j':
            o.join = *optarg == 'n' ? GX_JOIN_NEVER : strcmp(optarg, "always") ? GX_JOIN_AUTO : GX_JOIN_ALWAYS;
            break;
        case 'd':
            o.docs = n;
            break;
        case 'a':
            o.add = n;
            break;
        case 'b':
            o.batch = n;
            break;
        case 'r':
            o.readers = n;
            break;
        case 'q':
            o.queries = n;
            break;
        case 'p':
            o.poll_ms = n;
            break;
        case 's':
            o.seconds = atof(optarg);
            break;
        case 'w':
            o.writer_threads = n;
            break;
        case 'R':
            o.rate = n;
            break;
        default:
            exit(2);
        }
    }
    if (optind + 1 != argc || o.readers == 0 || o.queries == 0 || o.batch == 0 || o.docs == 0) {
        fprintf(stderr, "usage: bench_changes [OPTIONS] DIR\n");
        exit(2);
    }
    o.dir = argv[optind];
    return o;
}

int main(int argc, char **argv)
{
    static bench b;
    gx_engine_options eo = GX_ENGINE_OPTIONS;
    gx_index *ix;
    gx_engine *en;
    gx_error err = {0};
    uint64_t r = 99;
    b.o = parse(argc, argv);
    snprintf(b.path, sizeof b.path, "%s/changes-%d", b.o.dir, getpid());
    b.board = mmap(NULL, sizeof *b.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b.board == MAP_FAILED)
        return 1;
    const pid_t writer = fork(); /* before there are threads and a GPU */
    if (writer == 0)
        write_all(&b);
    make_base(&b);
    b.texts = calloc(b.o.queries, sizeof *b.texts);
    for (uint32_t i = 0; i < b.o.queries; ++i) {
        size_t len = 0;
        for (uint32_t n = 2 + (uint32_t)(uniform(&r) * 4); n; --n)
            len += (size_t)sprintf(b.texts[i] + len, "w%u ", draw_word(&r));
    }
    pthread_mutex_init(&b.lock, NULL);
    pthread_mutex_init(&b.stats_lock, NULL);
    eo.kind = b.o.engine;
    eo.join = b.o.join;
    check(gx_index_open(&ix, b.path, NULL, &err), "open", &err);
    check(gx_engine_open(&en, ix, &eo, &err), "engine", &err);
    b.now = new_version(ix, en);
    while (atomic_load(&b.board->done) != -1)
        usleep(1000);
    double cpu[4];
    search_on(&b, false, &cpu[0]);
    const double before = search_on(&b, false, &cpu[0]);
    b.session_seconds = 0;
    b.n_sessions = 0;
    const double during = search_on(&b, true, &cpu[1]);
    waitpid(writer, NULL, 0);
    const double session_ms = 1e3 * b.session_seconds / b.n_sessions;
    const uint32_t n_sessions = b.n_sessions;
    const double after = search_on(&b, false, &cpu[2]);
    printf("%s, %u readers: %u documents, %u added in batches of %u\n", gx_engine_describe(b.now->en), b.o.readers,
           b.o.docs, b.o.add, b.o.batch);
    printf(
        "added: %.0f documents/s, %.0f a second of processor time; of %.2f s %.2f s in commits, %.2f s in %u merges\n",
        b.o.add / b.board->adding, b.o.add / b.board->adding_cpu, b.board->adding, b.board->in_commits,
        b.board->in_merges, b.board->n_merges);
    printf("queries/s: %.0f before, %.0f while adding, %.0f afterwards, of %u parts\n", before, during, after,
           gx_index_n_parts(b.now->ix));
    printf("processor time a query: %.1f us before, %.1f us while adding, reloads included, %.1f us afterwards\n",
           cpu[0], cpu[1], cpu[2]);
    printf("%u reloads of %.1f ms on average, %.1f ms at most\n", b.n_reloads,
           b.n_reloads ? 1e3 * b.reload_seconds / b.n_reloads : 0, 1e3 * b.slowest_reload);
    printf("%u sessions opened, in %.2f ms each\n", n_sessions, session_ms);
    report_lags(&b);
    const uint32_t different = count_different(&b);
    printf("%u of %u answers differ from those of the last commit opened anew\n", different, b.o.queries);
    merge_all(&b);
    search_on(&b, false, &cpu[3]);
    const double merged = search_on(&b, false, &cpu[3]), fixed = (before + merged) / 2;
    printf("%.0f queries/s of one part of all documents; while adding %.3f of the mean of that and before\n", merged,
           during / fixed);
    let_go(b.now);
    b.now->older = b.old;
    b.old = b.now;
    close_old(&b);
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", b.path);
    free(b.texts);
    return system(command) != 0 || different != 0;
}
