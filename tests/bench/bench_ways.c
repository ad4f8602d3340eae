/* bench_ways: time an OR on the CPU engine by its own choice and by each of its ways, by turns in one process.
 *
 *   bench_ways INDEX QUERIES [k] [rounds] [TIMES]
 *
 * QUERIES: a file with a query a line; behind a tab its filter. In each round each query is run by all ways, one after
 * the other, each after a run of its own that is not timed, so that all find its lists in the cache. A query's time by
 * a way is the median of the rounds (5), in microseconds of processor time. Prints, by the number of the query's words
 * that the index has: queries, postings, each way's mean, p50 and p99, and how much longer the engine's choice takes on
 * average than the way that is the best on average. Answers are compared with those of the exhaustive way.
 * TIMES: a file for a line a query with its terms, postings, blocks, documents and medians, for fits of cost models.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "index/index.h"
#include "query/cpu/block_max.h"
#include "query/cpu/choice.h"
#include "query/exec/exec.h"
#include "query/filter/filter.h"
#include "tests/bench/timing.h"

enum { AUTO, LISTS, BLOCK_MAX, ACCUMULATE, EXHAUST, N_WAYS };
static const char *const way_names[N_WAYS] = {"auto", "lists", "block-max", "accumulate", "exhaustive"};

#define MAX_ROUNDS 25
static const uint32_t class_ends[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, GX_MAX_TERMS};
#define N_CLASSES (sizeof class_ends / sizeof *class_ends)

typedef struct query {
    char *text;
    gx_filter *filter;
    gx_plan plan;
    uint64_t n_postings, n_blocks;
    double us[N_WAYS];
} query;

typedef struct bench {
    gx_index *ix;
    void *state, *exec;
    query *queries;
    uint32_t n, k;
    int rounds;
    uint64_t *keys[2]; /* [k] an answer, and the exhaustive one */
} bench;

static void die(const char *what)
{
    fprintf(stderr, "bench_ways: %s\n", what);
    exit(1);
}

static gx_status run(const bench *b, const query *q, int way, gx_hits *hits)
{
    gx_error err = {0};
    gx_plan masked = q->plan;
    bool done = true;
    gx_cpu_searcher *s = b->exec;
    gx_status st = GX_OK;
    hits->n = 0;
    if (q->plan.n_terms == 0)
        return GX_OK;
    if (way == AUTO)
        return gx_cpu_answer(s, &q->plan, GX_OP_OR, q->n_postings, hits, &err);
    if (way == LISTS)
        return gx_cpu_search(s, &q->plan, GX_OP_OR, hits, &err);
    if (way == ACCUMULATE)
        return gx_cpu_accumulate(s, &q->plan, false, hits, &err);
    st = gx_cpu_selection_mask(&s->selection, &q->plan, &masked.mask, &err);
    if (st == GX_OK && way == BLOCK_MAX)
        st = gx_cpu_block_max(s, &masked, hits, &done, &err);
    else if (st == GX_OK)
        st = gx_cpu_exhaust(s, &masked, GX_OP_OR, hits, &err);
    gx_cpu_selection_end(&s->selection);
    return done ? st : GX_ENOMEM;
}

/* Compare all ways' answers, which also makes what is derived of the lists. */
static uint32_t count_wrong(const bench *b)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < b->n; ++i) {
        gx_hits want = {.keys = b->keys[1]}, got = {.keys = b->keys[0]};
        if (run(b, &b->queries[i], EXHAUST, &want) != GX_OK)
            die("the exhaustive way fails");
        for (int way = 0; way < EXHAUST; ++way) {
            if (run(b, &b->queries[i], way, &got) != GX_OK)
                die(way_names[way]);
            wrong += got.n != want.n || memcmp(got.keys, want.keys, got.n * sizeof *got.keys) != 0;
        }
    }
    return wrong;
}

static void time_query(const bench *b, query *q, double clock)
{
    double us[N_WAYS][MAX_ROUNDS];
    for (int r = 0; r < b->rounds; ++r) {
        for (int i = 0; i < N_WAYS; ++i) {
            const int way = (i + r) % N_WAYS;
            gx_hits hits = {.keys = b->keys[0]};
            run(b, q, way, &hits);
            const double t = own_time();
            run(b, q, way, &hits);
            us[way][r] = 1e6 * (own_time() - t - clock);
        }
    }
    for (int way = 0; way < N_WAYS; ++way) {
        qsort(us[way], (size_t)b->rounds, sizeof(double), rising);
        q->us[way] = us[way][b->rounds / 2];
    }
}

static void open_query(bench *b, query *q, const gx_query_options *opt)
{
    gx_error err = {0};
    q->text[strcspn(q->text, "\r\n")] = '\0';
    char *tab = strchr(q->text, '\t');
    const size_t len = tab ? (size_t)(tab - q->text) : strlen(q->text);
    if ((tab && gx_filter_open(&q->filter, b->ix, tab + 1, strlen(tab + 1), NULL, &err) != GX_OK) ||
        gx_plan_make(&q->plan, b->ix, q->text, len, opt, &err) != GX_OK)
        die(err.text);
    q->plan.filter = q->filter;
    for (uint32_t i = 0; i < q->plan.n_terms; ++i) {
        q->n_postings += q->plan.terms[i].df;
        q->n_blocks += (q->plan.terms[i].df + b->ix->block_len - 1) / b->ix->block_len;
    }
}

static void read_queries(bench *b, const char *path)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    uint32_t max = 0;
    size_t cap = 0;
    char *line = NULL;
    FILE *f = fopen(path, "r");
    if (!f)
        die(path);
    opt.op = GX_OP_OR;
    opt.k = b->k;
    if (b->ix->impacts)
        opt.preset = GX_IMPACT;
    for (; getline(&line, &cap, f) >= 0; line = NULL, cap = 0) {
        if (b->n == max && !(b->queries = realloc(b->queries, (max = 2 * max + 64) * sizeof *b->queries)))
            die("no memory");
        b->queries[b->n] = (query){.text = line};
        open_query(b, &b->queries[b->n++], &opt);
    }
    free(line);
    fclose(f);
}

/* The row of the queries with [least, most] terms; a column's cells are mean / p50 / p99. */
static void print_class(const bench *b, uint32_t least, uint32_t most, double *us)
{
    double means[N_WAYS] = {0}, postings = 0, best = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; ++i) {
        const query *q = &b->queries[i];
        n += q->plan.n_terms >= least && q->plan.n_terms <= most;
        postings += q->plan.n_terms >= least && q->plan.n_terms <= most ? (double)q->n_postings : 0;
    }
    if (n == 0)
        return;
    printf("| %u-%u | %u | %.0f |", least, most, n, postings / n);
    for (int way = 0; way < N_WAYS; ++way) {
        uint32_t m = 0;
        for (uint32_t i = 0; i < b->n; ++i) {
            const query *q = &b->queries[i];
            if (q->plan.n_terms >= least && q->plan.n_terms <= most)
                means[way] += (us[m++] = q->us[way]) / n;
        }
        qsort(us, n, sizeof *us, rising);
        printf(" %.1f / %.1f / %.1f |", means[way], us[n / 2], us[n * 99 / 100]);
        if (way && (best == 0 || means[way] < best))
            best = means[way];
    }
    printf(" %+.0f %% |\n", 100 * (means[AUTO] / best - 1));
}

static void print_table(const bench *b)
{
    double *us = malloc((b->n + 1) * sizeof *us);
    if (!us)
        die("no memory");
    printf("| words | queries | postings |");
    for (int way = 0; way < N_WAYS; ++way)
        printf(" %s |", way_names[way]);
    printf(" auto to the best |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t c = 0; c < N_CLASSES; ++c)
        print_class(b, c ? class_ends[c - 1] + 1 : 1, class_ends[c], us);
    free(us);
}

static void write_times(const bench *b, const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f)
        die(path);
    for (uint32_t i = 0; i < b->n; ++i) {
        const query *q = &b->queries[i];
        fprintf(f, "%u\t%llu\t%llu\t%u", q->plan.n_terms, (unsigned long long)q->n_postings,
                (unsigned long long)q->n_blocks, b->ix->n_docs);
        for (int way = 0; way < N_WAYS; ++way)
            fprintf(f, "\t%.2f", q->us[way]);
        for (uint32_t t = 0; t < q->plan.n_terms; ++t)
            fprintf(f, "%c%u", t ? ',' : '\t', q->plan.terms[t].df);
        fprintf(f, "\n");
    }
    if (fclose(f))
        die(path);
}

int main(int argc, char **argv)
{
    gx_error err = {0};
    bench b = {0};
    gx_engine_options eopt = GX_ENGINE_OPTIONS;
    gx_index_options iopt = GX_INDEX_OPTIONS;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_ways INDEX QUERIES [k] [rounds] [TIMES]\n");
        return 2;
    }
    b.k = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 10;
    b.rounds = argc > 4 && atoi(argv[4]) > 0 && atoi(argv[4]) < MAX_ROUNDS ? atoi(argv[4]) : 5;
    iopt.check = GX_CHECK_STRUCTURE;
    if (gx_index_open(&b.ix, argv[1], &iopt, &err) != GX_OK)
        die(err.text);
    if (b.ix->parts)
        die("a collection has parts; give one file");
    if (gx_executor_cpu.state_open(&b.state, b.ix, &eopt, &err) != GX_OK ||
        gx_executor_cpu.workspace_open(&b.exec, b.state, &err) != GX_OK)
        die(err.text);
    read_queries(&b, argv[2]);
    b.keys[0] = malloc(2 * (size_t)b.k * sizeof *b.keys[0]);
    if (!b.keys[0])
        die("no memory");
    b.keys[1] = b.keys[0] + b.k;
    const uint32_t wrong = count_wrong(&b);
    const double clock = clock_cost();
    for (uint32_t i = 0; i < b.n; ++i)
        time_query(&b, &b.queries[i], clock);
    printf("%s, %s, OR top %u, %u queries, medians of %d: mean / p50 / p99 us; %u answers differ\n\n", argv[1],
           gx_executor_cpu.describe(b.state), b.k, b.n, b.rounds, wrong);
    print_table(&b);
    if (argc > 5)
        write_times(&b, argv[5]);
    for (uint32_t i = 0; i < b.n; ++i) {
        free(b.queries[i].text);
        gx_plan_free(&b.queries[i].plan);
        gx_filter_close(b.queries[i].filter);
    }
    free(b.queries);
    free(b.keys[0]);
    gx_executor_cpu.workspace_close(b.exec);
    gx_executor_cpu.release_index(b.state);
    gx_index_close(b.ix);
    return wrong != 0;
}
