#include "tools/bench/lists.h"

#include <stdlib.h>
#include <string.h>

#include "engine/grow.h"
#include "engine/random.h"
#include "engine/status.h"
#include "index/index.h"
#include "query/eval/query_log.h"
#include "query/plan.h"

#define MAX_INTEGERS (UINT64_C(1) << 31) /* decoded in one go */

/* ---- the lists of a log, query after query ---- */

typedef struct logged_queries {
    uint32_t *terms;  /* of all queries */
    uint64_t *begins; /* [n_queries + 1] where each query's begin */
    uint64_t n_terms, max_terms, n_queries, max_queries;
} logged_queries;

static gx_status add_query(logged_queries *a, const gx_index *ix, const gx_log_query *q, gx_error *err)
{
    const gx_query_options opt = GX_QUERY_OPTIONS;
    gx_plan plan;
    gx_status st = gx_plan_make(&plan, ix, q->text, q->len, &opt, err);
    if (st != GX_OK)
        return st;
    if (gx_reserve(&a->terms, &a->max_terms, a->n_terms + plan.n_terms, sizeof *a->terms) &&
        gx_reserve(&a->begins, &a->max_queries, a->n_queries + 2, sizeof *a->begins)) {
        for (uint32_t i = 0; i < plan.n_terms; ++i)
            a->terms[a->n_terms++] = plan.terms[i].list;
        a->begins[0] = 0;
        a->begins[++a->n_queries] = a->n_terms;
    } else {
        st = gx_fail(err, GX_ENOMEM, "no memory for the queries' terms");
    }
    gx_plan_free(&plan);
    return st;
}

static gx_status read_log(logged_queries *a, const gx_index *ix, const char *path, gx_error *err)
{
    gx_log *log;
    gx_log_query q;
    bool more = true;
    gx_status st = gx_log_open(&log, path, NULL, err);
    while (st == GX_OK && (st = gx_log_next(log, &q, &more, err)) == GX_OK && more)
        st = add_query(a, ix, &q, err);
    gx_log_close(log);
    return st;
}

/* The terms of n of the queries, drawn at random; all if n is 0. *n_terms of them; NULL: no memory.
 * */
static uint32_t *draw(const logged_queries *a, uint32_t *n, uint32_t seed, uint64_t *n_terms)
{
    uint64_t state = seed;
    uint32_t *const terms = malloc((a->n_terms + 1) * sizeof *terms);
    uint64_t *const queries = malloc((a->n_queries + 1) * sizeof *queries);
    *n_terms = 0;
    if (*n == 0 || *n > a->n_queries)
        *n = (uint32_t)a->n_queries;
    for (uint64_t i = 0; queries && i < a->n_queries; ++i)
        queries[i] = i;
    for (uint64_t i = 0; terms && queries && i < *n; ++i) {
        const uint64_t k = i + gx_random_next(&state) % (a->n_queries - i), q = queries[k];
        queries[k] = queries[i];
        for (uint64_t t = a->begins[q]; t < a->begins[q + 1]; ++t)
            terms[(*n_terms)++] = a->terms[t];
    }
    if (!queries) {
        free(terms);
        return NULL;
    }
    free(queries);
    return terms;
}

static uint32_t *draw_from_log(const gx_index *ix, const char *log, uint32_t *n, uint32_t seed, uint64_t *n_terms,
                               gx_error *err)
{
    logged_queries a = {0};
    uint32_t *terms = NULL;
    if (read_log(&a, ix, log, err) == GX_OK) {
        if (a.n_queries == 0)
            gx_fail(err, GX_EINPUT, "%s has no query", log);
        else if (!(terms = draw(&a, n, seed, n_terms)))
            gx_fail(err, GX_ENOMEM, "no memory for the queries' terms");
    }
    free(a.terms);
    free(a.begins);
    return terms;
}

static uint32_t *all_terms(const gx_index *ix, uint32_t min_df, uint64_t *n_terms, gx_error *err)
{
    uint32_t *const terms = malloc((ix->n_terms + 1ull) * sizeof *terms);
    *n_terms = 0;
    if (!terms)
        gx_fail(err, GX_ENOMEM, "no memory for %u lists", ix->n_terms);
    for (uint32_t t = 0; terms && t < ix->n_terms; ++t) {
        if (ix->lists[t].df >= min_df)
            terms[(*n_terms)++] = t;
    }
    return terms;
}

/* ---- their postings ---- */

static void decode_list(const gx_index *ix, uint32_t term, uint32_t *docids, uint32_t *tfs)
{
    const gx_list list = gx_index_list(ix, term);
    uint32_t block[GX_MAX_BLOCK];
    uint64_t at = 0;
    for (uint32_t j = 0; j < list.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_docids(&list, j, block);
        memcpy(docids + at, block, n * sizeof *block);
        gx_list_decode_tfs(&list, j, block);
        for (uint32_t i = 0; i < n; ++i)
            tfs[at + i] = block[i] - 1;
        at += n;
    }
}

/* order[n]: terms; becomes the numbers of the lists, each decoded once. */
static gx_status decode_all(bench_lists *out, const gx_index *ix, uint32_t *order, uint64_t n, gx_error *err)
{
    uint32_t *const number = calloc(ix->n_terms + 1ull, sizeof *number); /* of the term's list, from 1 */
    uint32_t n_lists = 0;
    uint64_t n_integers = 0, n_decoded = 0;
    gx_status st = GX_ENOMEM;
    for (uint64_t i = 0; number && i < n; ++i) {
        n_decoded += ix->lists[order[i]].df;
        if (number[order[i]] == 0) {
            number[order[i]] = ++n_lists;
            n_integers += ix->lists[order[i]].df;
        }
    }
    out->begins = malloc((n_lists + 1ull) * sizeof *out->begins);
    out->docid_values = malloc(n_integers * 4 + 4);
    out->tf_values = malloc(n_integers * 4 + 4);
    if (n_decoded > MAX_INTEGERS) {
        st = gx_fail(err, GX_EUSAGE,
                     "%llu postings are too many to be decoded in one go; draw fewer queries, by "
                     "--sample",
                     (unsigned long long)n_decoded);
    } else if (number && out->begins && out->docid_values && out->tf_values) {
        uint32_t made = 0;
        out->begins[0] = 0;
        for (uint64_t i = 0; i < n; ++i) {
            const uint32_t term = order[i];
            order[i] = number[term] - 1;
            if (order[i] < made)
                continue;
            decode_list(ix, term, out->docid_values + out->begins[made], out->tf_values + out->begins[made]);
            out->begins[made + 1] = out->begins[made] + ix->lists[term].df;
            ++made;
        }
        out->docids = (gx_bench_lists){out->docid_values, out->begins, n_lists, order, n, true};
        out->tfs = (gx_bench_lists){out->tf_values, out->begins, n_lists, order, n, false};
        st = GX_OK;
    }
    if (st == GX_ENOMEM)
        gx_fail(err, st, "no memory for %llu postings", (unsigned long long)n_integers);
    free(number);
    return st;
}

gx_status bench_lists_read(bench_lists *out, const char *index, const char *log, uint32_t n_queries, uint32_t seed,
                           uint32_t min_df, gx_error *err)
{
    const gx_index_options opt = GX_INDEX_OPTIONS;
    gx_index *ix;
    uint64_t n = 0;
    memset(out, 0, sizeof *out);
    gx_status st = gx_index_open(&ix, index, &opt, err);
    if (st != GX_OK)
        return st;
    out->n_queries = n_queries;
    out->order = log ? draw_from_log(ix, log, &out->n_queries, seed, &n, err) : all_terms(ix, min_df, &n, err);
    if (!log)
        out->n_queries = 0;
    if (!out->order)
        st = err->status;
    else if (n == 0 && log)
        st = gx_fail(err, GX_EUSAGE, "no list is to be measured: no term of the queries drawn from %s is in %s", log,
                     index);
    else if (n == 0)
        st = gx_fail(err, GX_EUSAGE, "no list is to be measured: %s has none of %u postings or more", index, min_df);
    else
        st = decode_all(out, ix, out->order, n, err);
    if (st != GX_OK)
        bench_lists_free(out);
    gx_index_close(ix);
    return st;
}

void bench_lists_free(bench_lists *l)
{
    free(l->docid_values);
    free(l->tf_values);
    free(l->order);
    free(l->begins);
    memset(l, 0, sizeof *l);
}
