/* bench_search: time a query a thread on the engine of your choice, after checking its answers against the exhaustive
 * ones.
 *
 *   bench_search INDEX QUERIES [or|and] [k] [n_queries] [rounds] [map_memory] [TIMES]
 *
 * QUERIES: one a line. Prints, in microseconds a query: planning, and searching (each query's fastest round, which
 * leaves out what other programs on the machine take; their mean, p50, p95, p99); and what the searches did. GX_CPU
 * chooses the instruction set. TIMES: a file for each query's fastest round, a line each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "index/index.h"
#include "query/session.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void die(const gx_error *err)
{
    fprintf(stderr, "bench_search: %s\n", err->text);
    exit(1);
}

/* The plans of the file's first n lines. */
static gx_plan *read_plans(const char *path, const gx_index *ix, const gx_query_options *opt, uint32_t *n,
                           double *seconds)
{
    gx_error err = {0};
    char *line = NULL;
    size_t cap = 0;
    uint32_t got = 0;
    FILE *f = fopen(path, "r");
    gx_plan *plans = calloc(*n, sizeof *plans);
    if (!f || !plans) {
        perror(path);
        exit(1);
    }
    *seconds = 0;
    for (ssize_t len; got < *n && (len = getline(&line, &cap, f)) >= 0; ++got) {
        const double t = now();
        if (gx_plan_make(&plans[got], ix, line, (size_t)len, opt, &err) != GX_OK)
            die(&err);
        *seconds += now() - t;
    }
    free(line);
    fclose(f);
    *n = got;
    return plans;
}

static void write_times(const char *path, const double *us, uint32_t n)
{
    FILE *f = fopen(path, "w");
    for (uint32_t i = 0; f && i < n; ++i)
        fprintf(f, "%.3f\n", us[i]);
    if (!f || fclose(f)) {
        perror(path);
        exit(1);
    }
}

/* Queries whose hits differ from those of the exhaustive search; keys has room for 2 k; *hits: of all. */
static uint32_t count_wrong(gx_session *s, const gx_plan *plans, uint32_t n, uint32_t k, uint64_t *keys, uint64_t *hits)
{
    gx_error err = {0};
    uint32_t wrong = 0;
    *hits = 0;
    for (uint32_t i = 0; i < n; ++i) {
        gx_hits fast = {keys, 0}, slow = {keys + k, 0};
        gx_plan plain = plans[i];
        plain.prune = false;
        if (gx_session_run(s, &plans[i], 1, &fast, &err) != GX_OK || gx_session_run(s, &plain, 1, &slow, &err) != GX_OK)
            die(&err);
        wrong += fast.n != slow.n || memcmp(fast.keys, slow.keys, fast.n * sizeof *keys) != 0;
        *hits += fast.n;
    }
    return wrong;
}

/* Each query's least time of so many rounds over all, in microseconds, to us [n]. */
static void time_queries(gx_session *s, const gx_plan *plans, uint32_t n, int rounds, uint64_t *keys, double *us)
{
    gx_error err = {0};
    for (int r = 0; r < rounds; ++r) {
        for (uint32_t i = 0; i < n; ++i) {
            gx_hits h = {keys, 0};
            const double t = now();
            gx_session_run(s, &plans[i], 1, &h, &err);
            const double took = 1e6 * (now() - t);
            us[i] = r && us[i] < took ? us[i] : took;
        }
    }
}

int main(int argc, char **argv)
{
    gx_error err = {0};
    gx_index *ix;
    gx_engine *en;
    gx_session *s;
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_engine_options eopt = GX_ENGINE_OPTIONS;
    gx_index_options iopt = GX_INDEX_OPTIONS;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_search INDEX QUERIES [or|and] [k] [n_queries] [rounds] [map_memory] [TIMES]\n");
        return 2;
    }
    opt.op = argc > 3 && strcmp(argv[3], "and") == 0 ? GX_OP_AND : GX_OP_OR;
    opt.k = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 10;
    uint32_t n = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 2000;
    const int rounds = argc > 6 && atoi(argv[6]) > 0 ? atoi(argv[6]) : 5;
    if (argc > 7)
        eopt.map_memory = strtoull(argv[7], NULL, 10);
    eopt.kind = GX_ENGINE_CPU;
    iopt.check = GX_CHECK_STRUCTURE;
    const double t_open = now();
    if (gx_index_open(&ix, argv[1], &iopt, &err) != GX_OK || gx_engine_open(&en, ix, &eopt, &err) != GX_OK ||
        gx_session_open(&s, en, &err) != GX_OK)
        die(&err);
    double planning, sum = 0, *kept;
    gx_plan *plans = read_plans(argv[2], ix, &opt, &n, &planning);
    uint64_t *keys = malloc(2 * (size_t)opt.k * sizeof *keys);
    kept = malloc(n * sizeof *kept);
    if (!keys || !kept)
        return 1;
    const double t_first = now();
    uint64_t hits;
    const uint32_t wrong = count_wrong(s, plans, n, opt.k, keys, &hits);
    printf("%s %s, %s top-%u, %u queries: %u wrong, %.1f hits a query; check %.1f s, open %.2f ms\n", argv[1],
           gx_engine_describe(en), opt.op == GX_OP_AND ? "AND" : "OR", opt.k, n, wrong, (double)hits / n,
           now() - t_first, 1e3 * (t_first - t_open - planning));
    gx_work before = *gx_session_work(s);
    time_queries(s, plans, n, rounds, keys, kept);
    for (uint32_t i = 0; i < n; ++i)
        sum += kept[i];
    const gx_work *w = gx_session_work(s);
    if (argc > 8)
        write_times(argv[8], kept, n);
    qsort(kept, n, sizeof *kept, rising);
    const double m = (double)n * rounds;
    printf("  plan %.2f us; search mean %.2f p50 %.2f p95 %.2f p99 %.2f max %.0f us; a query: %.0f postings, %.0f "
           "blocks, %.1f decoded, %.1f look-ups\n",
           1e6 * planning / n, sum / n, kept[n / 2], kept[n * 95 / 100], kept[n * 99 / 100], kept[n - 1],
           (double)(w->postings - before.postings) / m, (double)(w->blocks - before.blocks) / m,
           (double)(w->blocks_decoded - before.blocks_decoded) / m, (double)(w->lookups - before.lookups) / m);
    for (uint32_t i = 0; i < n; ++i)
        gx_plan_free(&plans[i]);
    free(plans);
    free(keys);
    free(kept);
    gx_session_close(s);
    gx_engine_close(en);
    gx_index_close(ix);
    return wrong != 0;
}
