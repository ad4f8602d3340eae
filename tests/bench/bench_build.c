/* bench_build: what each stage of indexing costs on one core, after checking that the builder's way
 * to terms (a cache of raw tokens) finds as many as the analyzer does.
 *
 *   bench_build TEXT [rounds] [megabytes] [stemmer]
 *
 * TEXT: a document a line; at most `megabytes` of it are read. A stage is timed over 500
 * documents at once; each such piece counts with its fastest round, which leaves out most of what
 * other programs on the machine take.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "index/analysis/analyzer.h"
#include "index/inversion/postings_buffer.h"
#include "index/inversion/term_cache.h"

#define PIECE 500u

enum { SPLIT, CACHE, ADD, MERGE, N_STAGES };

typedef struct corpus {
    char *bytes;
    size_t *begin; /* [n_docs + 1] */
    uint32_t n_docs;
} corpus;

typedef struct totals {
    uint64_t tokens, terms, postings, dropped;
} totals;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void need(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "bench_build: %s\n", what);
        exit(1);
    }
}

static corpus read_corpus(const char *path, size_t most)
{
    FILE *f = fopen(path, "rb");
    need(f, "cannot open the text");
    corpus c = {malloc(most), NULL, 0};
    need(c.bytes, "out of memory");
    const size_t n = fread(c.bytes, 1, most, f);
    fclose(f);
    for (size_t i = 0; i < n; ++i)
        c.n_docs += c.bytes[i] == '\n';
    need(c.n_docs, "the text has no whole line");
    c.begin = malloc((c.n_docs + 1ull) * sizeof *c.begin);
    need(c.begin, "out of memory");
    c.begin[0] = 0;
    for (size_t i = 0, d = 0; d < c.n_docs; ++i)
        if (c.bytes[i] == '\n')
            c.begin[++d] = i + 1;
    return c;
}

static bool count_term(void *user, const gx_found_term *found)
{
    (void)found;
    ++*(uint64_t *)user;
    return true;
}

static gx_status count_list(void *user, const gx_term_postings *l, gx_error *err)
{
    (void)err;
    *(uint64_t *)user += l->df;
    return GX_OK;
}

/* One pass over the corpus; fastest[piece][stage] goes down to what it took. */
static totals pass(const corpus *c, const gx_analyzer *an, double (*fastest)[N_STAGES])
{
    totals all = {0};
    gx_analysis *analysis;
    gx_postings_buffer *postings_buffer;
    gx_term_cache *cache;
    need(gx_analysis_open(&analysis, an, NULL) == GX_OK &&
             gx_postings_buffer_open(&postings_buffer, ".", 512u << 20, 1, NULL) == GX_OK &&
             gx_term_cache_open(&cache, analysis, postings_buffer, NULL) == GX_OK,
         "out of memory");
    uint32_t piece = 0;
    double took[N_STAGES] = {0};
    for (uint32_t d = 0; d < c->n_docs; ++d) {
        const size_t len = c->begin[d + 1] - 1 - c->begin[d];
        const double t0 = now();
        char *p = gx_analysis_buffer(analysis, len);
        need(p, "out of memory");
        memcpy(p, c->bytes + c->begin[d], len);
        gx_tokens tokens;
        gx_status st = gx_analysis_tokenize(analysis, len, &tokens);
        const double t1 = now();
        const uint32_t *terms;
        uint32_t n;
        if (st == GX_OK)
            st = gx_term_cache_document(cache, &tokens, &terms, &n, &all.dropped);
        const double t2 = now();
        if (st == GX_OK)
            st = gx_postings_buffer_add(postings_buffer, d, terms, n);
        const double t3 = now();
        need(st == GX_OK, "out of memory");
        all.tokens += tokens.n;
        all.terms += n;
        took[SPLIT] += t1 - t0;
        took[CACHE] += t2 - t1;
        took[ADD] += t3 - t2;
        if (d % PIECE == PIECE - 1 || d + 1 == c->n_docs) {
            for (int s = SPLIT; s < MERGE; ++s) {
                if (took[s] < fastest[piece][s])
                    fastest[piece][s] = took[s];
                took[s] = 0;
            }
            ++piece;
        }
    }
    const double t = now();
    need(gx_postings_buffer_merge(&postings_buffer, 1, count_list, &all.postings, NULL) == GX_OK, "out of memory");
    if (now() - t < fastest[0][MERGE])
        fastest[0][MERGE] = now() - t;
    gx_term_cache_close(cache);
    gx_postings_buffer_close(postings_buffer);
    gx_analysis_close(analysis);
    return all;
}

int main(int argc, char **argv)
{
    need(argc >= 2, "usage: bench_build TEXT [rounds] [megabytes] [stemmer]");
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    const corpus c = read_corpus(argv[1], (size_t)(argc > 3 ? atoi(argv[3]) : 100) * 1000000);
    gx_analyzer *an;
    gx_error err = {0};
    const gx_analyzer_options opt = {.stemmer = argc > 4 ? argv[4] : NULL};
    need(gx_analyzer_open(&an, &opt, &err) == GX_OK, err.text);

    const uint32_t n_pieces = c.n_docs / PIECE + 1;
    double(*fastest)[N_STAGES] = malloc(n_pieces * sizeof *fastest);
    need(fastest, "out of memory");
    for (uint32_t i = 0; i < n_pieces; ++i)
        for (int s = 0; s < N_STAGES; ++s)
            fastest[i][s] = s == MERGE && i ? 0 : 1e9;
    totals all = pass(&c, an, fastest);
    uint64_t want = 0;
    for (uint32_t d = 0; d < c.n_docs; ++d)
        need(gx_analyze(an, c.bytes + c.begin[d], c.begin[d + 1] - 1 - c.begin[d], count_term, &want) == GX_OK,
             "out of memory");
    need(want == all.terms, "the builder's terms are not the analyzer's");
    for (int r = 1; r < rounds; ++r)
        pass(&c, an, fastest);

    double seconds[N_STAGES] = {0}, sum = 0;
    for (uint32_t i = 0; i < n_pieces; ++i)
        for (int s = 0; s < N_STAGES; ++s)
            if (fastest[i][s] < 1e9)
                seconds[s] += fastest[i][s];
    for (int s = 0; s < N_STAGES; ++s)
        sum += seconds[s];
    const double mb = (double)c.begin[c.n_docs] * 1e-6;
    printf("%u documents, %.1f MB, %llu tokens, %llu terms, %llu postings\n", c.n_docs, mb,
           (unsigned long long)all.tokens, (unsigned long long)all.terms, (unsigned long long)all.postings);
    printf("split    %7.3f s %5.1f %%  %6.2f ns a token\n", seconds[SPLIT], 100 * seconds[SPLIT] / sum,
           1e9 * seconds[SPLIT] / (double)all.tokens);
    printf("cache     %7.3f s %5.1f %%  %6.2f ns a token\n", seconds[CACHE], 100 * seconds[CACHE] / sum,
           1e9 * seconds[CACHE] / (double)all.tokens);
    printf("invert   %7.3f s %5.1f %%  %6.2f ns a term\n", seconds[ADD], 100 * seconds[ADD] / sum,
           1e9 * seconds[ADD] / (double)all.terms);
    printf("merge    %7.3f s %5.1f %%  %6.2f ns a posting\n", seconds[MERGE], 100 * seconds[MERGE] / sum,
           1e9 * seconds[MERGE] / (double)all.postings);
    printf("together %7.3f s %.0f MB/s\n", sum, mb / sum);
    gx_analyzer_close(an);
    free(fastest);
    free(c.begin);
    free(c.bytes);
    return 0;
}
