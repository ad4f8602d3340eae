/* bench_search: time a query a thread on the engine of your choice, after checking its answers
 * against the exhaustive ones.
 *
 *   bench_search INDEX QUERIES[,QUERIES..] [or|and|block-max] [k] [n_queries] [rounds] [map_memory] [TIMES|-] [X]
 *
 * QUERIES: a file with a query a line; behind a tab its filter, of which no mask is kept. Prints, in
 * microseconds of processor time a query, the search of a plan that is ready, and the same from text,
 * the plan and the filter made and freed (each query's fastest round; their mean, p50, p95, p99); and
 * what the searches did. Several files, of n_queries each, are timed in turn in each round: what else
 * the machine does then slows all alike. GX_CPU chooses the instruction set. TIMES: a file for each
 * query's two fastest rounds, a line each; -: none. X: a text of gx_approximate_read, of which the
 * recall is told instead of what is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "index/index.h"
#include "query/engine/session.h"
#include "query/plan/approximate.h"
#include "tests/bench/timing.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const gx_error *err)
{
    fprintf(stderr, "bench_search: %s\n", err->text);
    exit(1);
}

/* A query, and its plan. */
typedef struct query {
    char *text;
    size_t len;
    const char *filter_text; /* in text; NULL: none */
    gx_filter *filter;
    gx_plan plan;
} query;

/* Split the line, which may end in a newline, and open its filter. */
static void open_query(query *q, const gx_index *ix, size_t len)
{
    gx_error err = {0};
    char *end = q->text + len, *tab;
    while (end > q->text && (end[-1] == '\n' || end[-1] == '\r'))
        *--end = '\0';
    tab = memchr(q->text, '\t', (size_t)(end - q->text));
    q->len = (size_t)((tab ? tab : end) - q->text);
    q->filter_text = tab && tab[1] ? tab + 1 : NULL;
    if (q->filter_text && gx_filter_open(&q->filter, ix, tab + 1, strlen(tab + 1), NULL, &err) != GX_OK)
        die(&err);
}

/* The files, whose names are separated by commas, and what is known of them. */
typedef struct query_set {
    query *queries; /* [n] */
    uint32_t n;
    double *ready, *text; /* [n] the least time of all rounds, in microseconds, of the plan and from text */
} query_set;

#define MAX_SETS 64u

/* The file's first n lines. */
static query_set read_queries(const char *path, const gx_index *ix, const gx_query_options *opt, uint32_t n)
{
    gx_error err = {0};
    size_t cap = 0;
    query_set set = {calloc(n, sizeof(query)), 0, NULL, NULL};
    FILE *f = fopen(path, "r");
    if (!f || !set.queries) {
        perror(path);
        exit(1);
    }
    for (ssize_t len; set.n < n && (cap = 0, len = getline(&set.queries[set.n].text, &cap, f)) >= 0; ++set.n) {
        query *q = &set.queries[set.n];
        open_query(q, ix, (size_t)len);
        if (gx_plan_make(&q->plan, ix, q->text, q->len, opt, &err) != GX_OK)
            die(&err);
        q->plan.filter = q->filter;
    }
    if (set.n < n)
        free(set.queries[set.n].text);
    fclose(f);
    set.ready = malloc(2 * (size_t)(set.n + 1) * sizeof *set.ready);
    if (!set.ready)
        exit(1);
    set.text = set.ready + set.n;
    return set;
}

static void free_queries(query_set *set)
{
    for (uint32_t i = 0; i < set->n; ++i) {
        free(set->queries[i].text);
        gx_plan_free(&set->queries[i].plan);
        gx_filter_close(set->queries[i].filter);
    }
    free(set->queries);
    free(set->ready);
}

static void write_times(const char *path, const query_set *sets, uint32_t n_sets)
{
    FILE *f = fopen(path, "w");
    for (uint32_t i = 0; f && i < n_sets; ++i) {
        for (uint32_t q = 0; q < sets[i].n; ++q)
            fprintf(f, "%.3f %.3f\n", sets[i].ready[q], sets[i].text[q]);
    }
    if (!f || fclose(f)) {
        perror(path);
        exit(1);
    }
}

/* Hits that are as good as the exhaustive search's, which are those with at least the last one's score. */
static uint32_t count_found(const gx_hits *fast, const gx_hits *slow)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < fast->n; ++i)
        n += gx_key_score(fast->keys[i]) >= gx_key_score(slow->keys[slow->n - 1]);
    return n;
}

/* Queries whose hits differ from those of the exhaustive search; keys has room for 2 k; *hits, *found:
 * of all. */
static uint32_t count_wrong(gx_session *s, const query *queries, uint32_t n, uint32_t k, uint64_t *keys, uint64_t *hits,
                            uint64_t *found)
{
    gx_error err = {0};
    uint32_t wrong = 0;
    *hits = *found = 0;
    for (uint32_t i = 0; i < n; ++i) {
        gx_hits fast = {keys, 0}, slow = {keys + k, 0};
        gx_plan plain = queries[i].plan;
        plain.prune = false;
        if (gx_session_run(s, &queries[i].plan, 1, &fast, &err) != GX_OK ||
            gx_session_run(s, &plain, 1, &slow, &err) != GX_OK)
            die(&err);
        wrong += fast.n != slow.n || memcmp(fast.keys, slow.keys, fast.n * sizeof *keys) != 0;
        *hits += slow.n;
        *found += slow.n ? count_found(&fast, &slow) : 0;
    }
    return wrong;
}

/* The plan of a query and its filter, both from text. */
static void make_plan(gx_plan *out, const gx_index *ix, const query *q, const gx_query_options *opt)
{
    gx_error err = {0};
    gx_filter *filter = NULL;
    if (gx_plan_make(out, ix, q->text, q->len, opt, &err) != GX_OK ||
        (q->filter_text && gx_filter_open(&filter, ix, q->filter_text, strlen(q->filter_text), NULL, &err) != GX_OK))
        die(&err);
    out->filter = filter;
}

/* What times queries: their plans, or with an index to plan with, their texts. */
typedef struct timer {
    gx_session *s;
    const gx_index *ix;          /* NULL: the plans are run */
    const gx_query_options *opt; /* of plans */
    uint64_t *keys;              /* room for the answers of one query */
    double clock;                /* what reading the clock costs, in seconds */
} timer;

/* One round of a file; us [n]: each query's least time of all rounds, in microseconds. */
static void time_round(const timer *with, const query_set *set, bool first, double *us)
{
    gx_error err = {0};
    for (uint32_t i = 0; i < set->n; ++i) {
        gx_hits h = {with->keys, 0};
        gx_plan made;
        const double t = own_time();
        if (with->ix)
            make_plan(&made, with->ix, &set->queries[i], with->opt);
        gx_session_run(with->s, with->ix ? &made : &set->queries[i].plan, 1, &h, &err);
        if (with->ix) {
            gx_filter_close((gx_filter *)(uintptr_t)made.filter);
            gx_plan_free(&made);
        }
        const double took = 1e6 * (own_time() - t - with->clock);
        us[i] = !first && us[i] < took ? us[i] : took;
    }
}

/* Sorts us [n]. */
static void print_times(const char *name, double *us, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; ++i)
        sum += us[i];
    qsort(us, n, sizeof *us, rising);
    printf("  %s mean %.2f p50 %.2f p95 %.2f p99 %.2f max %.0f us\n", name, sum / n, us[n / 2], us[n * 95 / 100],
           us[n * 99 / 100], us[n - 1]);
}

static void print_checked(const char *path, const query_set *set, gx_session *s, uint64_t *keys, uint32_t k,
                          const char *approximate, bool *ok)
{
    const double t = now();
    uint64_t hits, found;
    const uint32_t wrong = count_wrong(s, set->queries, set->n, k, keys, &hits, &found);
    if (approximate)
        printf("approximate %s, recall %.4f; ", approximate, hits ? (double)found / (double)hits : 1);
    printf("%s: %u queries: %u wrong, %.1f hits a query; check %.1f s\n", path, set->n, wrong, (double)hits / set->n,
           now() - t);
    *ok = *ok && (approximate || !wrong);
}

/* Print what the searches of n_searches plans did. */
static void print_stats(const gx_search_stats *before, const gx_search_stats *after, double n_searches)
{
    printf("  a query: %.0f postings, %.0f blocks, %.1f decoded, %.1f look-ups\n",
           (double)(after->postings - before->postings) / n_searches,
           (double)(after->blocks - before->blocks) / n_searches,
           (double)(after->blocks_decoded - before->blocks_decoded) / n_searches,
           (double)(after->lookups - before->lookups) / n_searches);
}

/* Time and print all files; returns whether all answers are right. */
static bool bench(const gx_index *ix, gx_session *s, const gx_query_options *opt, char *const *argv, int argc)
{
    const uint32_t n = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 2000;
    const int rounds = argc > 6 && atoi(argv[6]) > 0 ? atoi(argv[6]) : 5;
    const char *const approximate = argc > 9 && !gx_query_options_are_exact(opt) ? argv[9] : NULL;
    query_set sets[MAX_SETS];
    const char *paths[MAX_SETS];
    uint32_t n_sets = 0;
    bool ok = true;
    uint64_t *keys = malloc(2 * (size_t)opt->k * sizeof *keys);
    if (!keys)
        return false;
    for (char *path = strtok(argv[2], ","); path && n_sets < MAX_SETS; path = strtok(NULL, ",")) {
        paths[n_sets] = path;
        sets[n_sets] = read_queries(path, ix, opt, n);
        print_checked(path, &sets[n_sets++], s, keys, opt->k, approximate, &ok);
    }
    const timer plans = {s, NULL, opt, keys, clock_cost()}, texts = {s, ix, opt, keys, plans.clock};
    const gx_search_stats before = *gx_session_stats(s);
    double n_searches = 0;
    for (int r = 0; r < rounds; ++r) {
        for (uint32_t i = 0; i < n_sets; ++i)
            time_round(&plans, &sets[i], r == 0, sets[i].ready);
        for (uint32_t i = 0; i < n_sets; ++i)
            time_round(&texts, &sets[i], r == 0, sets[i].text);
        for (uint32_t i = 0; i < n_sets; ++i)
            n_searches += 2 * sets[i].n;
    }
    print_stats(&before, gx_session_stats(s), n_searches);
    if (argc > 8 && strcmp(argv[8], "-") != 0)
        write_times(argv[8], sets, n_sets);
    for (uint32_t i = 0; i < n_sets; ++i) {
        if (n_sets > 1)
            printf("%s\n", paths[i]);
        print_times("search", sets[i].ready, sets[i].n);
        print_times("from text", sets[i].text, sets[i].n);
        free_queries(&sets[i]);
    }
    free(keys);
    return ok;
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
        fprintf(stderr, "usage: bench_search INDEX QUERIES[,QUERIES..] [or|and|block-max] [k] [n_queries] [rounds] "
                        "[map_memory] [TIMES|-] [X]\n");
        return 2;
    }
    opt.op = argc > 3 && strcmp(argv[3], "and") == 0 ? GX_OP_AND : GX_OP_OR;
    if (argc > 3 && strcmp(argv[3], "block-max") == 0)
        opt.algorithm = GX_ALGORITHM_BLOCK_MAX;
    opt.k = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 10;
    if (argc > 7)
        eopt.map_memory = strtoull(argv[7], NULL, 10);
    if (argc > 9 && gx_approximate_read(&opt, argv[9], &err) != GX_OK)
        die(&err);
    eopt.kind = GX_ENGINE_CPU;
    eopt.filter_memory = 1;
    iopt.check = GX_CHECK_STRUCTURE;
    const double t = now();
    if (gx_index_open(&ix, argv[1], &iopt, &err) != GX_OK || gx_engine_open(&en, ix, &eopt, &err) != GX_OK ||
        gx_session_open(&s, en, &err) != GX_OK)
        die(&err);
    printf("%s %s, %s top-%u, open %.2f ms\n", argv[1], gx_engine_describe(en), opt.op == GX_OP_AND ? "AND" : "OR",
           opt.k, 1e3 * (now() - t));
    if (ix->impacts)
        opt.preset = GX_IMPACT;
    const bool ok = bench(ix, s, &opt, argv, argc);
    gx_session_close(s);
    gx_engine_close(en);
    gx_index_close(ix);
    return !ok;
}
