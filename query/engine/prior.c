/* prior.c: searches whose scores have a prior (gx_query_options.prior).
 *
 *   the best m by the query alone --values--> their scores with the prior --> the best k of them
 *
 * A document that is not among the m has at most the score of the last one and the greatest prior. Where the k-th of
 * the best k is above that, the answer is exact; else m becomes 8 times as large. The searches are those of the
 * session's engine, which prune as without a prior.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "query/engine/session.h"
#include "query/plan/prior.h"

#define FIRST_FACTOR 2u /* of k documents, and */
#define FIRST_MORE 64u  /* so many more are searched at first, */
#define GROWTH 8u       /* and then this many times as many */

/* A document and its score with the prior. */
typedef struct ranked {
    uint64_t units, docid;
} ranked;

typedef struct prior_search {
    gx_session *s;
    const gx_index *ix;
    gx_query_options opt; /* without the prior */
    gx_prior prior;
    uint32_t column;
    uint32_t k;
    double greatest, until; /* of the prior's values; the time that it may take, 0: any */
    uint64_t *docids;
    double *scores;
    ranked *hits;
    size_t max_docids, max_scores, max_hits;
} prior_search;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->units != y->units)
        return x->units < y->units ? 1 : -1;
    return (x->docid > y->docid) - (x->docid < y->docid);
}

/* The best m documents by the query alone, *n of them. */
static gx_status search(prior_search *p, const gx_query *q, uint32_t m, uint32_t *n, uint64_t *n_matches, gx_error *err)
{
    gx_query_options opt = p->opt;
    opt.k = m;
    opt.count = n_matches != NULL;
    if (p->until > 0 && (opt.seconds = p->until - gx_clock_seconds()) <= 0)
        return gx_fail(err, GX_EDEADLINE, "the search took longer than the %g s that it was given", p->opt.seconds);
    if (!gx_reserve(&p->docids, &p->max_docids, m, sizeof *p->docids) ||
        !gx_reserve(&p->scores, &p->max_scores, m, sizeof *p->scores) ||
        !gx_reserve(&p->hits, &p->max_hits, m, sizeof *p->hits))
        return gx_fail(err, GX_ENOMEM, "no memory for a search with a prior");
    const gx_results results = {
        .size = sizeof results, .docids64 = p->docids, .n_hits = n, .n_matches = n_matches, .exact_scores = p->scores};
    return gx_search(p->s, q, 1, &opt, &results, err);
}

static void rank(prior_search *p, uint32_t n, int exponent)
{
    for (uint32_t i = 0; i < n; ++i) {
        double x;
        const bool any = gx_prior_value(p->ix, p->column, p->docids[i], &x);
        p->hits[i].docid = p->docids[i];
        p->hits[i].units = (uint64_t)ldexp(p->scores[i], exponent) + (any ? gx_prior_units(&p->prior, x, exponent) : 0);
    }
    qsort(p->hits, n, sizeof *p->hits, by_rank);
}

/* Whether no document behind the n that are ranked can be among the best k. */
static bool is_whole(const prior_search *p, uint32_t n, int exponent)
{
    if (n < p->k)
        return false;
    const uint64_t last = (uint64_t)ldexp(p->scores[n - 1], exponent),
                   most = gx_prior_units(&p->prior, p->greatest, exponent) + 1; /* of a logarithm's last bit */
    return p->hits[p->k - 1].units > last + most;
}

static gx_status find_exponent(const prior_search *p, const gx_query *q, int *exponent, gx_error *err)
{
    gx_plan plan;
    const gx_status st = gx_engine_plan(&plan, (gx_engine *)gx_session_engine(p->s), q, &p->opt, err);
    if (st != GX_OK)
        return st;
    *exponent = plan.exponent;
    gx_plan_free(&plan);
    return GX_OK;
}

/* The best k of one query: p->hits[*n]. */
static gx_status search_one(prior_search *p, const gx_query *q, uint32_t *n, uint64_t *n_matches, int *exponent,
                            gx_error *err)
{
    const gx_op asked = p->opt.op;
    const uint64_t n_docs = gx_index_n_docs(p->ix), all = n_docs < UINT32_MAX ? n_docs : UINT32_MAX;
    uint64_t m = FIRST_FACTOR * (uint64_t)p->k + FIRST_MORE;
    gx_status st = find_exponent(p, q, exponent, err);
    if (asked == GX_OP_AND_OR) /* it is AND where that has k results */
        p->opt.op = GX_OP_AND;
    for (*n = 0; st == GX_OK; m *= GROWTH) {
        m = m < all ? m : all ? all : 1;
        st = search(p, q, (uint32_t)m, n, n_matches, err);
        if (st == GX_OK && p->opt.op != asked && p->opt.op == GX_OP_AND && *n < p->k) {
            p->opt.op = GX_OP_OR;
            st = search(p, q, (uint32_t)m, n, n_matches, err);
        }
        if (st != GX_OK)
            break;
        n_matches = NULL; /* they are counted */
        rank(p, *n, *exponent);
        if (*n < m || m == all || is_whole(p, *n, *exponent))
            break;
    }
    p->opt.op = asked;
    *n = *n < p->k ? *n : p->k;
    return st;
}

static void write(const prior_search *p, const gx_results *out, size_t at, uint32_t n, int exponent)
{
    for (uint32_t i = 0; i < n; ++i) {
        const double score = ldexp((double)p->hits[i].units, -exponent);
        if (out->docids)
            out->docids[at + i] = (uint32_t)p->hits[i].docid;
        if (out->docids64)
            out->docids64[at + i] = p->hits[i].docid;
        if (out->scores)
            out->scores[at + i] = (float)score;
        if (out->exact_scores)
            out->exact_scores[at + i] = score;
    }
}

gx_status gx_search_by_prior(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *opt,
                             const gx_results *out, gx_error *err)
{
    prior_search p = {.s = s, .ix = gx_engine_index(gx_session_engine(s)), .opt = *opt, .prior = opt->prior};
    p.opt.prior.weight = 0;
    gx_status st = gx_query_options_check(&p.opt, p.ix, err);
    if (st == GX_OK && (opt->approximate > 0 || opt->block_budget))
        st = gx_fail(err, GX_EUSAGE, "prior: answers are exact; leave out approximate and block_budget");
    if (st == GX_OK && gx_engine_is_shard(gx_session_engine(s)))
        st = gx_fail(err, GX_EUSAGE, "prior: an engine of a shard sees its own parts alone");
    if (st == GX_OK)
        st = gx_prior_find(&p.column, &opt->prior, p.ix, err);
    if (st != GX_OK)
        return st;
    p.k = opt->k;
    p.greatest = gx_prior_greatest(p.ix, p.column);
    p.until = opt->seconds > 0 ? gx_clock_seconds() + opt->seconds : 0;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        gx_query q = GX_TEXT_QUERY(NULL, 0);
        int exponent = 0;
        uint32_t found = 0;
        memcpy(&q, (const char *)queries + i * queries->size, queries->size < sizeof q ? queries->size : sizeof q);
        q.size = sizeof q;
        st = search_one(&p, &q, &found, opt->count && out->n_matches ? &out->n_matches[i] : NULL, &exponent, err);
        if (st == GX_OK)
            write(&p, out, (size_t)i * opt->k, found, exponent);
        out->n_hits[i] = st == GX_OK ? found : 0;
    }
    free(p.docids);
    free(p.scores);
    free(p.hits);
    return st;
}
