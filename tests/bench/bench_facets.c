/* bench_facets: what facets cost beside a search, on the CPU.
 *
 *   bench_facets INDEX QUERIES [FACET ...]
 *
 * QUERIES: one a line, of which the first 1,000 are taken. FACET: as gx_facet_read reads it; none: each
 * attribute by value. Prints, in microseconds of processor time a query (the mean of each query's fastest
 * of three rounds): a search of the 10 best; the same with options.count; with each facet and with all of
 * them in its place. Then, of sets of documents drawn at random, the nanoseconds a document that counting
 * takes by documents and by columns (query/facet/facet_counts.h), after comparing their counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/random.h"
#include "index/index.h"
#include "query/facet/facet_counts.h"
#include "tests/bench/timing.h"

enum { MAX_QUERIES = 1000, ROUNDS = 3, MAX_FACETS = GX_MAX_ATTRIBUTES };

static void die(const gx_error *err)
{
    fprintf(stderr, "bench_facets: %s\n", err->text);
    exit(1);
}

typedef struct bench {
    gx_index *ix;
    gx_session *session;
    gx_query queries[MAX_QUERIES];
    uint32_t n_queries;
    gx_facet facets[MAX_FACETS];
    uint32_t n_facets;
    uint64_t n_matches;
} bench;

static void read_queries(bench *b, const char *path)
{
    char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "r");
    for (ssize_t n; f && b->n_queries < MAX_QUERIES && (n = getline(&line, &cap, f)) > 0; line = NULL, cap = 0) {
        line[strcspn(line, "\r\n")] = 0;
        b->queries[b->n_queries++] = (gx_query)GX_TEXT_QUERY(line, strlen(line));
    }
    if (!b->n_queries) {
        fprintf(stderr, "bench_facets: %s has no queries\n", path);
        exit(2);
    }
    fclose(f);
}

/* Search, count if asked to, and count n facets; the time of the query's fastest round. */
static double time_query(bench *b, const gx_query *q, bool count, const gx_facet *facets, uint32_t n)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    uint32_t docids[10], n_hits;
    uint64_t n_matches = 0;
    const gx_results r = {sizeof r, docids, NULL, &n_hits, &n_matches, NULL};
    double best = 1e9;
    opt.count = count;
    for (int round = 0; round < ROUNDS; ++round) {
        gx_facets *answer = NULL;
        gx_error err = {0};
        const double began = own_time();
        if (gx_search(b->session, q, 1, &opt, &r, &err) ||
            (n && gx_count_facets(&answer, b->session, q, &opt, facets, n, &err)))
            die(&err);
        const double took = own_time() - began;
        best = took < best ? took : best;
        gx_facets_close(answer);
    }
    b->n_matches += n_matches;
    return best;
}

static double time_queries(bench *b, bool count, const gx_facet *facets, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < b->n_queries; ++i)
        sum += time_query(b, &b->queries[i], count, facets, n);
    return 1e6 * sum / b->n_queries;
}

static void print_row(const char *what, int len, double us, double before)
{
    printf("| %.*s | %.1f | %+.1f |\n", len, what, us, us - before);
}

static void bench_queries(bench *b)
{
    time_queries(b, true, b->facets, b->n_facets);
    b->n_matches = 0;
    const double plain = time_queries(b, false, NULL, 0), counted = time_queries(b, true, NULL, 0);
    printf("%u queries, %.0f matches each\n\n| what | us a query | against counting |\n| --- | --- | --- |\n",
           b->n_queries, (double)b->n_matches / b->n_queries);
    print_row("top 10", 6, plain, counted);
    print_row("and the number of matches", 25, counted, counted);
    for (uint32_t i = 0; i < b->n_facets; ++i)
        print_row(b->facets[i].name, (int)strlen(b->facets[i].name), time_queries(b, false, &b->facets[i], 1), counted);
    if (b->n_facets > 1)
        print_row("all of them", 11, time_queries(b, false, b->facets, b->n_facets), counted);
}

/* ---- sets of documents ---- */

/* Count in one way; ns a document of the set. */
static double time_way(bench *b, uint32_t column, const gx_facet *facet, gx_facet_way way, const uint64_t *words,
                       uint64_t n, gx_facet_count *out)
{
    uint64_t *scratch = calloc((size_t)b->ix->n_docs / 64 + 2, sizeof *scratch);
    double best = 1e9;
    for (int round = 0; round < 7; ++round) {
        gx_error err = {0};
        gx_facet_count_free(out);
        *out = (gx_facet_count){.facet = *facet, .type = b->ix->columns[column].type, .way = way};
        if (out->type == GX_ATTRIBUTE_DATE && facet->grouping == GX_FACET_VALUES)
            out->facet.grouping = GX_FACET_YEARS;
        const double began = own_time();
        if (facet->grouping == GX_FACET_BINS)
            gx_facet_count_look(out, b->ix, column, words);
        if (!scratch || gx_facet_count_add(out, b->ix, column, words, scratch, &err) || gx_facet_count_end(out, &err))
            die(&err);
        const double took = own_time() - began;
        best = took < best ? took : best;
    }
    free(scratch);
    return 1e9 * best / (double)n;
}

static void compare(const gx_facet_count *a, const gx_facet_count *b)
{
    bool same = a->n_groups == b->n_groups && a->n_present == b->n_present;
    for (size_t i = 0; same && i < a->n_groups; ++i)
        same = a->groups[i].key == b->groups[i].key && a->groups[i].count == b->groups[i].count;
    if (!same) {
        fprintf(stderr, "bench_facets: the two ways count differently\n");
        exit(1);
    }
}

static void bench_sets(bench *b)
{
    static const double shares[] = {0.001, 0.01, 0.1, 0.5, 1};
    uint64_t *words = calloc((size_t)b->ix->n_docs / 64 + 2, sizeof *words);
    printf("\n| facet | share of the documents | by documents, ns a document | by columns, ns a document | chosen |\n"
           "| --- | --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < b->n_facets && words; ++i) {
        char why[GX_NO_ATTRIBUTE_TEXT];
        const uint32_t column = gx_column_find(b->ix, b->facets[i].name, b->facets[i].name_len, why);
        for (size_t s = 0; s < sizeof shares / sizeof *shares; ++s) {
            uint64_t seed = 1, n = 0;
            gx_facet_count by[3] = {0};
            double ns[3];
            for (uint32_t d = 0; d < b->ix->n_docs; ++d) {
                const bool in = (double)(gx_random_next(&seed) >> 11) * 0x1p-53 < shares[s];
                words[d / 64] = (d % 64 ? words[d / 64] : 0) | (uint64_t)in << d % 64;
                n += in;
            }
            const bool columns = gx_facet_bins_are_in_groups(&b->facets[i], &b->ix->columns[column]);
            for (int way = GX_FACET_AUTO; way <= (columns ? GX_FACET_BY_COLUMNS : GX_FACET_BY_DOCUMENTS); ++way)
                ns[way] = time_way(b, column, &b->facets[i], (gx_facet_way)way, words, n, &by[way]);
            compare(&by[0], &by[1]);
            if (columns)
                compare(&by[0], &by[2]);
            printf("| %s | %g | %.2f | ", b->facets[i].name, shares[s], ns[GX_FACET_BY_DOCUMENTS]);
            if (columns)
                printf("%.2f", ns[GX_FACET_BY_COLUMNS]);
            printf(" | %.2f |\n", ns[GX_FACET_AUTO]);
            for (int way = 0; way < 3; ++way)
                gx_facet_count_free(&by[way]);
        }
    }
    free(words);
}

static void read_facets(bench *b, int n, char **texts)
{
    gx_error err = {0};
    gx_attribute_info info = {.size = sizeof info};
    for (uint32_t i = 0; n == 0 && gx_index_get_attribute(b->ix, i, &info) == GX_OK; ++i) {
        b->facets[b->n_facets] = (gx_facet)GX_FACET;
        b->facets[b->n_facets].name = strndup(info.name, info.name_len);
        b->facets[b->n_facets++].name_len = info.name_len;
    }
    for (int i = 0; i < n && i < MAX_FACETS; ++i)
        if (gx_facet_read(&b->facets[b->n_facets++], texts[i], &err))
            die(&err);
    if (gx_facets_check(b->ix, b->facets, b->n_facets, &err))
        die(&err);
}

int main(int argc, char **argv)
{
    static bench b;
    gx_error err = {0};
    gx_engine *en;
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_facets INDEX QUERIES [FACET ...]\n");
        return 2;
    }
    opt.kind = GX_ENGINE_CPU;
    if (gx_index_open(&b.ix, argv[1], NULL, &err) || gx_engine_open(&en, b.ix, &opt, &err) ||
        gx_session_open(&b.session, en, &err))
        die(&err);
    read_queries(&b, argv[2]);
    read_facets(&b, argc - 3, argv + 3);
    bench_queries(&b);
    if (!b.ix->parts)
        bench_sets(&b);
    gx_session_close(b.session);
    gx_engine_close(en);
    gx_index_close(b.ix);
    return 0;
}
