#include "tools/bench/codecs/lists.h"

#include <stdlib.h>
#include <string.h>

#include "engine/lower_bound.h"
#include "engine/memory/grow.h"
#include "engine/random.h"
#include "engine/status.h"
#include "index/read/collection.h"
#include "query/log/query_log.h"
#include "query/plan/plan.h"
#include "tools/bench/data/collection.h"

#define MAX_INTEGERS (UINT64_C(1) << 31) /* decoded in one go */

/* ---- the lists of all parts, with one number each ---- */

typedef struct index_lists {
    uint32_t n_parts;       /* 1 of a file */
    const gx_index **parts; /* [n_parts] */
    uint64_t *first;        /* [n_parts + 1] the number of the part's first list */
} index_lists;

static void free_index_lists(index_lists *x)
{
    free(x->parts);
    free(x->first);
}

static gx_status number_lists(index_lists *out, const gx_index *ix, gx_error *err)
{
    const uint32_t n = ix->parts ? ix->parts->n : 1;
    *out = (index_lists){n, malloc(n * sizeof *out->parts), malloc((n + 1ull) * sizeof *out->first)};
    if (!out->parts || !out->first)
        return gx_fail(err, GX_ENOMEM, "no memory for %u parts", n);
    out->first[0] = 0;
    for (uint32_t i = 0; i < n; ++i) {
        out->parts[i] = ix->parts ? ix->parts->parts[i].ix : ix;
        out->first[i + 1] = out->first[i] + out->parts[i]->n_terms;
    }
    if (out->first[n] >= UINT32_MAX)
        return gx_fail(err, GX_EUSAGE, "%s has %llu lists, too many to be measured at once", ix->path,
                       (unsigned long long)out->first[n]);
    return GX_OK;
}

static gx_list get_list(const index_lists *x, uint32_t number)
{
    GX_FIRST(uint32_t, behind, 1, x->n_parts, x->first[behind] > number);
    return gx_index_list(x->parts[behind - 1], number - (uint32_t)x->first[behind - 1]);
}

/* ---- the lists of a log, query after query ---- */

typedef struct logged_queries {
    uint32_t *terms;  /* of all queries: the numbers of their lists */
    uint64_t *begins; /* [n_queries + 1] where each query's begin */
    uint64_t n_terms, max_terms, n_queries, max_queries;
} logged_queries;

static gx_status add_lists(logged_queries *a, const index_lists *x, uint32_t part, const gx_log_query *q, gx_error *err)
{
    const gx_query_options opt = GX_QUERY_OPTIONS;
    gx_plan plan;
    gx_status st = gx_plan_make(&plan, x->parts[part], q->text, q->len, &opt, err);
    if (st != GX_OK)
        return st;
    if (!gx_reserve(&a->terms, &a->max_terms, a->n_terms + plan.n_terms, sizeof *a->terms))
        st = gx_fail(err, GX_ENOMEM, "no memory for the queries' terms");
    for (uint32_t i = 0; i < plan.n_terms && st == GX_OK; ++i)
        a->terms[a->n_terms++] = (uint32_t)x->first[part] + plan.terms[i].list;
    gx_plan_free(&plan);
    return st;
}

static gx_status add_query(logged_queries *a, const index_lists *x, const gx_log_query *q, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < x->n_parts && st == GX_OK; ++i)
        st = add_lists(a, x, i, q, err);
    if (st == GX_OK && !gx_reserve(&a->begins, &a->max_queries, a->n_queries + 2, sizeof *a->begins))
        st = gx_fail(err, GX_ENOMEM, "no memory for the queries' terms");
    if (st != GX_OK)
        return st;
    a->begins[0] = 0;
    a->begins[++a->n_queries] = a->n_terms;
    return GX_OK;
}

static gx_status read_log(logged_queries *a, const index_lists *x, const char *path, gx_error *err)
{
    gx_log *log;
    gx_log_query q;
    bool more = true;
    gx_status st = gx_log_open(&log, path, NULL, err);
    while (st == GX_OK && (st = gx_log_next(log, &q, &more, err)) == GX_OK && more)
        st = add_query(a, x, &q, err);
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

static uint32_t *draw_from_log(const index_lists *x, const char *log, uint32_t *n, uint32_t seed, uint64_t *n_terms,
                               gx_error *err)
{
    logged_queries a = {0};
    uint32_t *terms = NULL;
    if (read_log(&a, x, log, err) == GX_OK) {
        if (a.n_queries == 0)
            gx_fail(err, GX_EINPUT, "%s has no query", log);
        else if (!(terms = draw(&a, n, seed, n_terms)))
            gx_fail(err, GX_ENOMEM, "no memory for the queries' terms");
    }
    free(a.terms);
    free(a.begins);
    return terms;
}

static uint32_t *all_lists(const index_lists *x, uint32_t min_df, uint64_t *n, gx_error *err)
{
    const uint64_t n_lists = x->first[x->n_parts];
    uint32_t *const numbers = malloc((n_lists + 1) * sizeof *numbers);
    *n = 0;
    if (!numbers)
        gx_fail(err, GX_ENOMEM, "no memory for %llu lists", (unsigned long long)n_lists);
    for (uint32_t i = 0; numbers && i < n_lists; ++i) {
        if (get_list(x, i).df >= min_df)
            numbers[(*n)++] = i;
    }
    return numbers;
}

/* ---- their postings ---- */

static void decode_list(const index_lists *x, uint32_t number, uint32_t *docids, uint32_t *tfs)
{
    const gx_list list = get_list(x, number);
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

/* order[n]: lists of the index; becomes the numbers of the lists that are measured, each decoded once. */
static gx_status decode_all(bench_lists *out, const index_lists *x, uint32_t *order, uint64_t n, gx_error *err)
{
    uint32_t *const number = calloc(x->first[x->n_parts] + 1, sizeof *number); /* of the index's list, from 1 */
    uint32_t n_lists = 0;
    uint64_t n_integers = 0, n_decoded = 0;
    gx_status st = GX_ENOMEM;
    for (uint64_t i = 0; number && i < n; ++i) {
        const uint32_t df = get_list(x, order[i]).df;
        n_decoded += df;
        if (number[order[i]] == 0) {
            number[order[i]] = ++n_lists;
            n_integers += df;
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
            const uint32_t list = order[i];
            order[i] = number[list] - 1;
            if (order[i] < made)
                continue;
            decode_list(x, list, out->docid_values + out->begins[made], out->tf_values + out->begins[made]);
            out->begins[made + 1] = out->begins[made] + get_list(x, list).df;
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
    index_lists lists = {0};
    uint64_t n = 0;
    memset(out, 0, sizeof *out);
    gx_status st = gx_index_open(&ix, index, &opt, err);
    if (st != GX_OK)
        return st;
    st = number_lists(&lists, ix, err);
    out->n_queries = log ? n_queries : 0;
    if (st == GX_OK && log)
        out->order = draw_from_log(&lists, log, &out->n_queries, seed, &n, err);
    else if (st == GX_OK)
        out->order = all_lists(&lists, min_df, &n, err);
    if (!out->order)
        st = err->status;
    else if (n == 0 && log)
        st = gx_fail(err, GX_EUSAGE, "no list is to be measured: no term of the queries drawn from %s is in %s", log,
                     index);
    else if (n == 0)
        st = gx_fail(err, GX_EUSAGE, "no list is to be measured: %s has none of %u postings or more", index, min_df);
    else
        st = decode_all(out, &lists, out->order, n, err);
    if (st != GX_OK)
        bench_lists_free(out);
    free_index_lists(&lists);
    gx_index_close(ix);
    return st;
}

/* The terms of a generated collection's queries, or all of min_df postings or more. NULL: no memory. */
static uint32_t *order_of_made(const index_lists *x, const gx_synth *s, uint32_t min_df, uint64_t *n, gx_error *err)
{
    if (!s->n_queries)
        return all_lists(x, min_df, n, err);
    uint32_t *const terms = malloc((uint64_t)s->n_queries * GX_SYNTH_MAX_TERMS * sizeof *terms);
    *n = 0;
    if (!terms)
        gx_fail(err, GX_ENOMEM, "no memory for the queries' terms");
    for (uint32_t q = 0; terms && q < s->n_queries; ++q)
        for (uint32_t i = 0; i < s->queries[q].n; ++i)
            terms[(*n)++] = s->queries[q].terms[i];
    return terms;
}

gx_status bench_lists_make(bench_lists *out, uint32_t n_docs, uint32_t n_queries, uint64_t seed, uint32_t min_df,
                           gx_error *err)
{
    gx_synth_options opt = GX_SYNTH_OPTIONS;
    gx_synth *s;
    index_lists lists = {0};
    uint64_t n = 0;
    memset(out, 0, sizeof *out);
    opt.n_docs = n_docs;
    opt.n_queries = n_queries;
    opt.seed = seed;
    opt.codec = gx_codec_by_name("gpubp128");
    gx_status st = gx_synth_open(&s, &opt, err);
    if (st != GX_OK)
        return st;
    st = number_lists(&lists, &s->ix, err);
    out->n_queries = n_queries;
    out->order = st == GX_OK ? order_of_made(&lists, s, min_df, &n, err) : NULL;
    if (st == GX_OK && !out->order)
        st = err->status;
    if (st == GX_OK)
        st = decode_all(out, &lists, out->order, n, err);
    if (st != GX_OK)
        bench_lists_free(out);
    free_index_lists(&lists);
    gx_synth_close(s);
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
