/* bench_service: what a service costs besides the answers: engines that answer at once stand in for
 * the CPU and the GPU, and queries are planned beforehand.
 *
 *   bench_service [--queries=N] [--submitters=N] [--chunk=N] [--in-service=N] [--cpu-threads=N] [--cpu-us=US]
 *                 [--gpu-threads=N] [--gpu-us=US] [--batch=N] [--deadline=US] [--decisions=FILE]
 *
 * --chunk: queries that are put at once; --in-service: chunks that a submitter has in the service;
 * --cpu-threads=0: the GPU alone. --cpu-us, --gpu-us: microseconds that each query of the CPU and
 * each batch of the GPU takes. Prints queries/s, processor time a query without what the engines
 * take, and who answered.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/clock.h"
#include "engine/pause.h"
#include "query/engine/session.h"
#include "query/schedule/service.h"
#include "tests/support/gen.h"

enum { N_TERMS = 2000, N_DOCS = 20000, N_PLANS = 4096, K = 10 };

typedef struct options {
    uint64_t queries;
    uint32_t submitters, chunk, in_service, cpu_threads, gpu_threads, batch;
    double cpu_us, gpu_us, deadline_us;
    const char *decisions;
} options;

static options o = {2000000, 2, 256, 16, 0, 2, 1024, 0, 0, 0, NULL};
static gx_plan plans[N_PLANS];
static gx_service *service;
static atomic_uint_fast64_t n_wrong;

static void check(gx_status st, const char *what, const gx_error *err)
{
    if (st == GX_OK)
        return;
    fprintf(stderr, "bench_service: %s: %s\n", what, err->text);
    exit(1);
}

/* ---- engines that answer at once ---- */

static void busy(double us)
{
    const double until = gx_clock_seconds() + us * 1e-6;
    while (us > 0 && gx_clock_seconds() < until)
        gx_pause();
}

static gx_status answer(const gx_plan *p, uint32_t n, gx_hits *hits, double us)
{
    busy(us);
    for (uint32_t i = 0; i < n; ++i) {
        hits[i].keys[0] = p[i].terms[0].list;
        hits[i].n = 1;
    }
    return GX_OK;
}

static gx_status run_cpu(void *exec, const gx_plan *p, uint32_t n, gx_hits *hits, gx_search_stats *work, gx_error *err)
{
    (void)exec, (void)work, (void)err;
    return answer(p, n, hits, o.cpu_us * n);
}

static gx_status run_gpu(void *exec, const gx_plan *p, uint32_t n, gx_hits *hits, gx_search_stats *work, gx_error *err)
{
    (void)exec, (void)work, (void)err;
    return answer(p, n, hits, o.gpu_us);
}

/* ---- submitting ---- */

typedef struct chunk {
    gx_service_job *jobs, **sent; /* [o.chunk] */
    uint64_t *keys;               /* [o.chunk * K] */
    atomic_uint left;
} chunk;

static void on_done(gx_service_job *job)
{
    chunk *c = job->user;
    if (job->status != GX_OK || job->n != 1 || job->keys[0] != job->plan->terms[0].list)
        atomic_fetch_add(&n_wrong, 1);
    atomic_fetch_sub(&c->left, 1);
}

static void put(chunk *c, uint64_t first)
{
    gx_error err;
    uint64_t number;
    const uint64_t t = gx_clock_nanoseconds(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < o.chunk; ++i) {
        c->jobs[i] = (gx_service_job){.plan = &plans[(first + i) % N_PLANS],
                                      .keys = c->keys + (size_t)i * K,
                                      .arrived = t,
                                      .deadline = o.deadline_us > 0 ? t + (uint64_t)(o.deadline_us * 1e3) : 0,
                                      .done = on_done,
                                      .user = c};
        c->sent[i] = &c->jobs[i];
    }
    atomic_store(&c->left, o.chunk);
    check(gx_service_put(service, c->sent, o.chunk, true, &number, &err), "putting", &err);
}

static void *submit(void *user)
{
    const uint64_t number = *(const uint32_t *)user, n = o.queries / o.chunk / o.submitters;
    chunk *chunks = calloc(o.in_service, sizeof *chunks);
    for (uint32_t i = 0; chunks && i < o.in_service; ++i) {
        chunks[i].jobs = malloc(o.chunk * sizeof *chunks[i].jobs);
        chunks[i].sent = malloc(o.chunk * sizeof *chunks[i].sent);
        chunks[i].keys = malloc((size_t)o.chunk * K * sizeof *chunks[i].keys);
        if (!chunks[i].jobs || !chunks[i].sent || !chunks[i].keys)
            abort();
    }
    for (uint64_t i = 0; chunks && i < n; ++i) {
        chunk *c = &chunks[i % o.in_service];
        while (atomic_load(&c->left))
            usleep(20);
        put(c, i * o.chunk + number * 977);
    }
    gx_service_drain(service);
    for (uint32_t i = 0; chunks && i < o.in_service; ++i) {
        free(chunks[i].jobs);
        free(chunks[i].sent);
        free(chunks[i].keys);
    }
    free(chunks);
    return NULL;
}

/* ---- the whole ---- */

static void make_plans(gx_engine *en)
{
    gen_rng rng = {1};
    gx_error err;
    for (uint32_t i = 0; i < N_PLANS; ++i) {
        char text[128] = "";
        for (uint32_t n = 2 + gen_below(&rng, 4); n; --n) {
            char term[16];
            gen_term_name(gen_below(&rng, N_TERMS), term);
            strcat(strcat(text, " "), term);
        }
        const gx_query q = GX_TEXT_QUERY(text, strlen(text));
        const gx_query_options opt = GX_QUERY_OPTIONS;
        check(gx_engine_plan(&plans[i], en, &q, &opt, &err), "planning", &err);
        if (!plans[i].n_terms)
            check(gx_engine_plan(&plans[i], en, &(gx_query)GX_TEXT_QUERY("t0000000", 8), &opt, &err), "planning", &err);
    }
}

static void run(gx_engine *cpu, gx_engine *gpu)
{
    gx_error err;
    gx_service_counts c;
    pthread_t threads[64];
    uint32_t numbers[64];
    gx_service_options so = GX_SERVICE_OPTIONS;
    so.cpu = o.cpu_threads ? cpu : NULL;
    so.gpu = gpu;
    so.cpu_threads = o.cpu_threads;
    so.gpu_threads = o.gpu_threads;
    so.batch = o.batch;
    so.decisions = o.decisions;
    check(gx_service_open(&service, &so, &err), "opening", &err);
    const double begin = gx_clock_seconds();
    const uint64_t cpu_begin = gx_clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t i = 0; i < o.submitters; ++i) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, submit, &numbers[i]))
            exit(1);
    }
    for (uint32_t i = 0; i < o.submitters; ++i)
        pthread_join(threads[i], NULL);
    const double seconds = gx_clock_seconds() - begin;
    const double cpu_s = 1e-9 * (double)(gx_clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin);
    gx_service_get_counts(service, &c);
    const double engines = 1e-6 * ((double)c.by[0] * o.cpu_us + (double)c.batches * o.gpu_us);
    printf("%.2f M queries/s; %.0f ns of processor time a query; by the CPU %.1f %%; batches of %.0f; wrong %llu\n",
           (double)c.answered / seconds * 1e-6, (cpu_s - engines) * 1e9 / (double)c.answered,
           100.0 * (double)c.by[0] / (double)c.answered, c.batches ? (double)c.by[1] / (double)c.batches : 0.0,
           (unsigned long long)atomic_load(&n_wrong));
    gx_service_close(service);
}

static void read_options(int argc, char **argv)
{
    static const struct option known[] = {{"queries", 1, 0, 'q'},     {"submitters", 1, 0, 's'},  {"chunk", 1, 0, 'c'},
                                          {"in-service", 1, 0, 'i'},  {"cpu-threads", 1, 0, 'C'}, {"cpu-us", 1, 0, 'u'},
                                          {"gpu-threads", 1, 0, 'G'}, {"gpu-us", 1, 0, 'v'},      {"batch", 1, 0, 'b'},
                                          {"decisions", 1, 0, 'd'},   {"deadline", 1, 0, 'D'},    {0}};
    uint32_t *const counts[] = {['s'] = &o.submitters,  ['c'] = &o.chunk,       ['i'] = &o.in_service,
                                ['C'] = &o.cpu_threads, ['G'] = &o.gpu_threads, ['b'] = &o.batch};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == '?')
            exit(2);
        if (c == 'q')
            o.queries = strtoull(optarg, NULL, 10);
        else if (c == 'u' || c == 'v' || c == 'D')
            *(c == 'u' ? &o.cpu_us : c == 'v' ? &o.gpu_us : &o.deadline_us) = atof(optarg);
        else if (c == 'd')
            o.decisions = optarg;
        else
            *counts[c] = (uint32_t)atoi(optarg);
    }
    if (!o.submitters || o.submitters > 64 || !o.chunk || !o.in_service)
        exit(2);
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/gpuidx-bench-service-XXXXXX";
    gx_error err;
    gx_index *ix;
    gx_engine *engines[2];
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    static gx_executor executors[2];
    read_options(argc, argv);
    const int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    unlink(path);
    gen_collection *c = gen_open(5, GEN_UNIFORM, N_DOCS, N_TERMS);
    const gx_codec *codec = gx_codec_by_name("gpubp128");
    check(gen_write(c, path, codec, codec, &err), "writing", &err);
    gen_close(c);
    check(gx_index_open(&ix, path, NULL, &err), "opening", &err);
    unlink(path);
    opt.kind = GX_ENGINE_GPU;
    for (int e = 0; e < 2; ++e) {
        executors[e] = gx_executor_cpu;
        executors[e].name = "gpu";
        executors[e].run = e ? run_gpu : run_cpu;
        check(gx_engine_open_with(&engines[e], ix, &opt, &executors[e], &err), "an engine", &err);
    }
    make_plans(engines[0]);
    run(engines[0], engines[1]);
    for (uint32_t i = 0; i < N_PLANS; ++i)
        gx_plan_free(&plans[i]);
    gx_engine_close(engines[0]);
    gx_engine_close(engines[1]);
    gx_index_close(ix);
    return atomic_load(&n_wrong) != 0;
}
