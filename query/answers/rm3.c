/* rm3.c: pseudo-relevance feedback by RM3, as Anserini's Rm3Reranker has it (gpuidx_advanced.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"

#define LEAST_LETTERS 2u     /* a feedback term has no fewer bytes than this, */
#define MOST_LETTERS 20u     /* and no more */
#define MOST_DOCS_ONE_IN 10u /* no more than one document in ten contains it */

typedef struct feature {
    const char *term; /* not NUL-terminated */
    size_t len;
    double weight;
    size_t order; /* the weights of equal terms are added in this order, so that sums do not depend on the sort */
} feature;

/* A growing array of features. */
typedef struct features {
    feature *items;
    size_t n, cap;
} features;

static bool add(features *f, const char *term, size_t len, double weight)
{
    if (!gx_reserve(&f->items, &f->cap, f->n + 1, sizeof *f->items))
        return false;
    f->items[f->n] = (feature){term, len, weight, f->n};
    ++f->n;
    return true;
}

static int by_bytes(const feature *a, const feature *b)
{
    const int order = memcmp(a->term, b->term, a->len < b->len ? a->len : b->len);
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

static int by_term(const void *pa, const void *pb)
{
    const feature *a = pa, *b = pb;
    const int order = by_bytes(a, b);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static int by_weight(const void *pa, const void *pb)
{
    const feature *a = pa, *b = pb;
    return a->weight != b->weight ? (a->weight < b->weight) - (a->weight > b->weight) : by_bytes(a, b);
}

/* Add up the weights of equal terms. */
static void merge(features *f)
{
    size_t kept = 0;
    if (f->n)
        qsort(f->items, f->n, sizeof *f->items, by_term);
    for (size_t i = 0; i < f->n; ++i)
        if (kept && by_bytes(&f->items[kept - 1], &f->items[i]) == 0)
            f->items[kept - 1].weight += f->items[i].weight;
        else
            f->items[kept++] = f->items[i];
    f->n = kept;
}

/* Keep the k heaviest, by falling weight; of equal weights, the first in byte order. */
static void prune(features *f, size_t k)
{
    if (f->n)
        qsort(f->items, f->n, sizeof *f->items, by_weight);
    f->n = f->n < k ? f->n : k;
}

/* Multiply the weights by a factor that makes their sum `sum`. */
static void scale_to(features *f, double sum)
{
    double all = 0;
    for (size_t i = 0; i < f->n; ++i)
        all += f->items[i].weight;
    for (size_t i = 0; i < f->n && all > 0; ++i)
        f->items[i].weight *= sum / all;
}

/* ---- feedback documents ---- */

typedef struct feedback {
    const gx_index *ix;
    gx_index_stats stats;
    uint32_t n_terms; /* most terms of a document, and of the model */
    char *text, *whole;
    size_t text_cap, whole_cap;
    features doc, model;
} feedback;

static bool is_feedback_term(const feedback *f, const char *term, size_t len, uint32_t id)
{
    if (len < LEAST_LETTERS || len > MOST_LETTERS || id == UINT32_MAX)
        return false;
    for (size_t i = 0; i < len; ++i)
        if (!((term[i] >= 'a' && term[i] <= 'z') || (term[i] >= '0' && term[i] <= '9')))
            return false;
    return gx_index_df(f->ix, id) * MOST_DOCS_ONE_IN <= f->stats.n_documents;
}

/* What a build indexed of the document: title, a blank, text. */
static gx_status read_whole(feedback *f, uint64_t docid, size_t *len, gx_error *err)
{
    size_t title_len, text_len;
    const gx_status st = gx_index_doc_text(f->ix, docid, &f->text, &f->text_cap, &text_len, err);
    if (st != GX_OK)
        return st;
    const char *title = gx_index_doc_title(f->ix, docid, &title_len);
    *len = title_len + (title_len > 0) + text_len;
    if (!gx_reserve(&f->whole, &f->whole_cap, *len + 1, 1))
        return gx_fail(err, GX_ENOMEM, "no memory for the %zu bytes of document %llu", *len, (unsigned long long)docid);
    if (title_len) {
        memcpy(f->whole, title, title_len);
        f->whole[title_len] = ' ';
    }
    if (text_len)
        memcpy(f->whole + *len - text_len, f->text, text_len);
    return GX_OK;
}

/* Add the document's terms to the model: tf / sum of tfs, times the document's score. */
static gx_status add_document(feedback *f, uint64_t docid, float score, gx_error *err)
{
    gx_text_term *terms;
    size_t len, n;
    gx_status st = read_whole(f, docid, &len, err);
    if (st == GX_OK)
        st = gx_index_analyze(f->ix, f->whole, len, &terms, &n, err);
    if (st != GX_OK)
        return st;
    bool room = true;
    f->doc.n = 0;
    for (size_t i = 0; room && i < n; ++i) {
        size_t term_len;
        const uint32_t id = gx_index_find_term(f->ix, terms[i].term, terms[i].len);
        const char *term = gx_index_term(f->ix, id, &term_len); /* its bytes outlive terms */
        if (is_feedback_term(f, terms[i].term, terms[i].len, id))
            room = add(&f->doc, term, term_len, 1);
    }
    free(terms);
    if (n != gx_index_doc_len(f->ix, docid))
        return gx_fail(err, GX_ENOTFOUND,
                       "the stored title and text of document %llu have %zu terms, and the document was indexed with "
                       "%u: feedback needs an index that stores all that it indexes (titles and texts)",
                       (unsigned long long)docid, n, gx_index_doc_len(f->ix, docid));
    merge(&f->doc);
    prune(&f->doc, f->n_terms);
    scale_to(&f->doc, score);
    for (size_t i = 0; room && i < f->doc.n; ++i)
        room = add(&f->model, f->doc.items[i].term, f->doc.items[i].len, f->doc.items[i].weight);
    return room ? GX_OK
                : gx_fail(err, GX_ENOMEM, "no memory for the terms of document %llu", (unsigned long long)docid);
}

/* The relevance model: the terms of the best documents of the query. */
static gx_status make_model(feedback *f, gx_session *s, const gx_query *query, const gx_query_options *opt,
                            uint32_t n_docs, gx_error *err)
{
    gx_query_options first = *opt;
    uint32_t n = 0;
    first.k = n_docs < f->stats.n_docs ? n_docs : f->stats.n_docs ? f->stats.n_docs : 1;
    first.count = false;
    uint64_t *docids = malloc(first.k * sizeof *docids);
    float *scores = malloc(first.k * sizeof *scores);
    const gx_results results = {.size = sizeof results, .docids64 = docids, .scores = scores, .n_hits = &n};
    gx_status st = docids && scores ? gx_search(s, query, 1, &first, &results, err)
                                    : gx_fail(err, GX_ENOMEM, "no memory for %u feedback documents", first.k);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i)
        st = add_document(f, docids[i], scores[i], err);
    free(docids);
    free(scores);
    if (st == GX_OK) {
        merge(&f->model);
        prune(&f->model, f->n_terms);
    }
    return st;
}

/* ---- the expanded query ---- */

/* The query's own terms; *analysed holds the bytes of those of a text, and is the caller's. */
static gx_status read_query(features *out, const gx_index *ix, const gx_query *query, gx_text_term **analysed,
                            gx_error *err)
{
    bool room = true;
    if (query->kind == GX_QUERY_TERMS) {
        for (uint32_t i = 0; room && i < query->n_terms; ++i)
            room = add(out, query->terms[i].term, query->terms[i].len, query->terms[i].weight);
    } else {
        size_t n;
        const gx_status st = gx_index_analyze_query(ix, query->text, query->len, analysed, &n, err);
        if (st != GX_OK)
            return st;
        for (size_t i = 0; room && i < n; ++i)
            room = add(out, (*analysed)[i].term, (*analysed)[i].len, 1);
    }
    return room ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the terms of a query");
}

/* The terms as one allocation, bytes behind them. Those without weight are left out. */
static gx_status write_terms(gx_weighted_term **out, uint32_t *n, const features *f, gx_error *err)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < f->n; ++i)
        n_bytes += f->items[i].len;
    gx_weighted_term *terms = malloc((f->n + 1) * sizeof *terms + n_bytes);
    if (!terms)
        return gx_fail(err, GX_ENOMEM, "no memory for an expanded query of %zu terms", f->n);
    char *bytes = (char *)(terms + f->n + 1);
    *n = 0;
    for (size_t i = 0; i < f->n; ++i) {
        const feature *x = &f->items[i];
        if (!((float)x->weight > 0))
            continue;
        memcpy(bytes, x->term, x->len);
        terms[(*n)++] = (gx_weighted_term){bytes, x->len, (float)x->weight};
        bytes += x->len;
    }
    *out = terms;
    return GX_OK;
}

static gx_status check_options(const gx_rm3_options *o, const gx_query *query, gx_error *err)
{
    if (o->fb_docs == 0 || o->fb_docs > GX_RM3_MAX_DOCS)
        return gx_fail(err, GX_EUSAGE, "RM3: %u feedback documents are asked for; there are 1 to %u", o->fb_docs,
                       GX_RM3_MAX_DOCS);
    if (o->fb_terms == 0 || o->fb_terms > GX_MAX_TERMS)
        return gx_fail(err, GX_EUSAGE, "RM3: %u feedback terms are asked for; there are 1 to %u", o->fb_terms,
                       GX_MAX_TERMS);
    if (!(o->weight >= 0 && o->weight <= 1))
        return gx_fail(err, GX_EUSAGE, "RM3: the weight of the original query is %g; it must lie between 0 and 1",
                       o->weight);
    if (query->kind != GX_QUERY_TEXT && query->kind != GX_QUERY_TERMS)
        return gx_fail(err, GX_EUSAGE, "RM3: only plain text and weighted terms can be expanded, not a boolean query");
    return GX_OK;
}

void gx_rm3_options_init(gx_rm3_options *o, size_t size)
{
    const gx_rm3_options defaults = GX_RM3_OPTIONS;
    gx_sized_init(o, size, &defaults, sizeof defaults);
}

gx_status gx_rm3_expand(gx_weighted_term **out, uint32_t *n, gx_session *s, const gx_index *ix, const gx_query *given,
                        const gx_query_options *options, const gx_rm3_options *rm3, gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_rm3_options own = GX_RM3_OPTIONS;
    gx_query query = GX_TEXT_QUERY(NULL, 0);
    gx_text_term *analysed = NULL;
    features q = {0};
    feedback f = {.ix = ix, .stats.size = sizeof f.stats};
    *out = NULL;
    gx_status st =
        gx_sized_read(&opt, sizeof opt, options, GX_SIZE_THROUGH(gx_query_options, mask), "gx_query_options", err);
    if (st == GX_OK)
        st = gx_sized_read(&query, sizeof query, given, GX_SIZE_THROUGH(gx_query, n_terms), "gx_query", err);
    if (st == GX_OK)
        st = gx_sized_read(&own, sizeof own, rm3, GX_SIZE_THROUGH(gx_rm3_options, weight), "gx_rm3_options", err);
    if (st == GX_OK)
        st = check_options(&own, &query, err);
    if (st == GX_OK)
        st = gx_index_get_quick_stats(ix, &f.stats);
    if (st == GX_OK)
        st = read_query(&q, ix, &query, &analysed, err);
    if (st == GX_OK) {
        f.n_terms = own.fb_terms;
        st = make_model(&f, s, &query, &opt, own.fb_docs, err);
    }
    bool room = true;
    if (st == GX_OK) {
        merge(&q);
        scale_to(&q, own.weight);
        scale_to(&f.model, 1 - own.weight);
    }
    for (size_t i = 0; st == GX_OK && room && i < f.model.n; ++i)
        room = add(&q, f.model.items[i].term, f.model.items[i].len, f.model.items[i].weight);
    if (st == GX_OK && !room)
        st = gx_fail(err, GX_ENOMEM, "no memory for the terms of an expanded query");
    if (st == GX_OK) {
        merge(&q);
        prune(&q, q.n);
        st = write_terms(out, n, &q, err);
    }
    free(analysed);
    free(q.items);
    free(f.doc.items);
    free(f.model.items);
    free(f.text);
    free(f.whole);
    return st;
}
