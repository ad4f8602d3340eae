/* bench_sort: what pages in an order by attributes take, on the CPU, beside a search by score.
 *
 *   bench_sort INDEX [-k N] QUERY|SORT|FILTER|COLLAPSE ...
 *
 * Each case is a query (none: all documents), an order, a filter and groups, of which any may be empty. Prints a table:
 * matches, and the microseconds of processor time of the first page: the first query of a fresh engine, the second,
 * which derives tables, and the median of 200 later ones; then that of the page behind it, by a cursor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/api/gpuidx_advanced.h"

enum { ROUNDS = 200 };

static double own_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void die(const gx_error *err)
{
    fprintf(stderr, "bench_sort: %s\n", err->text);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct bench {
    gx_index *ix;
    gx_session *s;
    gx_query_options opt;
    gx_query q;
    gx_page page;
    gx_page_end end;
    uint64_t *docids, n_matches;
    double *scores;
    uint32_t n;
} bench;

/* The time of one page. */
static double ask(bench *b)
{
    gx_error err;
    const gx_results r = {.size = sizeof r,
                          .docids64 = b->docids,
                          .n_hits = &b->n,
                          .n_matches = &b->n_matches,
                          .exact_scores = b->scores};
    const double begin = own_time();
    free(b->end.next);
    gx_groups_free(b->end.groups);
    b->end = (gx_page_end){.size = sizeof b->end};
    if (gx_search_page(b->s, &b->q, 1, &b->opt, &b->page, &r, &b->end, &err))
        die(&err);
    return own_time() - begin;
}

static double median(bench *b)
{
    double times[ROUNDS];
    for (int i = 0; i < ROUNDS; ++i)
        times[i] = ask(b);
    qsort(times, ROUNDS, sizeof *times, compare);
    return times[ROUNDS / 2];
}

static void run(bench *b, char *text)
{
    char *fields[4] = {text, "", "", ""}, *next = NULL;
    gx_error err;
    gx_engine *en;
    gx_engine_options o = GX_ENGINE_OPTIONS;
    gx_filter *filter = NULL;
    for (int i = 0; i < 4 && text; ++i)
        fields[i] = strsep(&text, "|");
    o.kind = GX_ENGINE_CPU;
    if (gx_engine_open(&en, b->ix, &o, &err) || gx_session_open(&b->s, en, &err) ||
        (*fields[2] && gx_filter_open(&filter, b->ix, fields[2], strlen(fields[2]), NULL, &err)))
        die(&err);
    b->q = (gx_query)GX_TEXT_QUERY(fields[0], strlen(fields[0]));
    b->q.kind = *fields[0] ? GX_QUERY_TEXT : GX_QUERY_ALL;
    b->q.filter = filter;
    gx_page_init(&b->page, sizeof b->page);
    b->page.sort = fields[1];
    b->page.sort_len = strlen(fields[1]);
    b->page.collapse = fields[3];
    b->page.collapse_len = strlen(fields[3]);
    const double first = ask(b), second = ask(b), later = median(b);
    if ((next = b->end.next)) {
        b->end.next = NULL;
        b->page.after = next;
        b->page.after_len = strlen(next);
    }
    const double behind = median(b);
    b->page.after_len = 0;
    b->opt.count = true;
    ask(b);
    b->opt.count = false;
    printf("%-14s %-16s %-18s %-8s %9llu %9.1f %9.1f %9.1f %9.1f\n", fields[0], fields[1], fields[2], fields[3],
           (unsigned long long)b->n_matches, first, second, later, behind);
    free(next);
    gx_filter_close(filter);
    gx_session_close(b->s);
    gx_engine_close(en);
}

int main(int argc, char **argv)
{
    bench b = {.opt = GX_QUERY_OPTIONS, .end = {.size = sizeof b.end}};
    gx_error err;
    int at = 2;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_sort INDEX [-k N] QUERY|SORT|FILTER|COLLAPSE ...\n");
        return 2;
    }
    if (argc > 4 && strcmp(argv[2], "-k") == 0) {
        b.opt.k = (uint32_t)strtoul(argv[3], NULL, 10);
        at = 4;
    }
    if (gx_index_open(&b.ix, argv[1], NULL, &err))
        die(&err);
    b.docids = calloc(b.opt.k, sizeof *b.docids);
    b.scores = calloc(b.opt.k, sizeof *b.scores);
    printf("%-14s %-16s %-18s %-8s %9s %9s %9s %9s %9s\n", "query", "order", "filter", "groups", "matches", "first us",
           "second", "later", "next page");
    for (; at < argc; ++at)
        run(&b, argv[at]);
    free(b.end.next);
    gx_groups_free(b.end.groups);
    free(b.docids);
    free(b.scores);
    gx_index_close(b.ix);
    return 0;
}
