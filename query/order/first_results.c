#include "query/order/first_results.h"

#include <math.h>
#include <stdlib.h>

#include "engine/status.h"
#include "query/exec/wide_hits.h"
#include "query/plan/prior.h"

void gx_first_results_free(gx_first_results *f)
{
    free(f->docids);
    free(f->scores);
    free(f->hits.keys);
    free(f->hits.highs);
    *f = (gx_first_results){0};
}

gx_status gx_first_results_reserve(gx_first_results *f, const gx_session *s, uint64_t n, gx_error *err)
{
    const bool wide = gx_index_is_wide(s->en->ix);
    if (n <= f->max)
        return GX_OK;
    gx_first_results_free(f);
    f->docids = malloc(n * sizeof *f->docids);
    f->scores = malloc(n * sizeof *f->scores);
    f->hits.keys = malloc(n * sizeof *f->hits.keys);
    f->hits.highs = wide ? malloc(n * sizeof *f->hits.highs) : NULL;
    if (!f->docids || !f->scores || !f->hits.keys || (wide && !f->hits.highs)) {
        gx_first_results_free(f);
        return gx_fail(err, GX_ENOMEM, "no memory for %llu results", (unsigned long long)n);
    }
    f->max = n;
    return GX_OK;
}

typedef struct finding {
    gx_first_results *f;
    gx_session *s;
    const gx_sort *sort;
    const gx_position *after;
    uint32_t k;
    gx_document_prior prior;
} finding;

/* Use of a plan for its results. */
static gx_status run_plan(void *user, const gx_plan *plans, uint32_t first, uint32_t n, gx_error *err)
{
    const finding *x = user;
    gx_first_results *f = x->f;
    (void)first, (void)n;
    f->hits.n = 0;
    const gx_status st = x->sort->n
                             ? gx_session_run_ordered(x->s, plans, x->sort, &x->prior, x->after, x->k, &f->hits, err)
                             : gx_session_run(x->s, plans, 1, &f->hits, err);
    f->n = st == GX_OK ? f->hits.n : 0;
    for (uint32_t i = 0; i < f->n; ++i) {
        const uint64_t docid = gx_hits_docid(&f->hits, i);
        const uint64_t more = gx_document_prior_units(&x->prior, x->s->en->ix, docid, plans->exponent);
        f->docids[i] = docid;
        f->scores[i] = ldexp((double)(gx_key_score(f->hits.keys[i]) + more), -plans->exponent);
    }
    return st;
}

gx_status gx_first_results_find(gx_first_results *f, gx_session *s, const gx_query *q, const gx_query_options *asked,
                                uint32_t k, const gx_sort *sort, const gx_position *after, gx_error *err)
{
    gx_query_options opt = *asked;
    finding x = {f, s, sort, after, k, {0}};
    gx_status st = gx_first_results_reserve(f, s, k, err);
    f->n = 0;
    opt.count = false;
    opt.k = sort->n ? opt.k : k;
    if (st == GX_OK && opt.prior.weight != 0 && !sort->n) {
        const gx_results results = {
            .size = sizeof results, .docids64 = f->docids, .n_hits = &f->n, .exact_scores = f->scores};
        return gx_search_by_prior(s, q, 1, &opt, &results, err);
    }
    if (st == GX_OK && opt.prior.weight != 0) {
        x.prior.prior = &opt.prior;
        st = gx_prior_find(&x.prior.column, &opt.prior, s->en->ix, err);
    }
    return st == GX_OK ? gx_session_plan(s, q, 1, &opt, run_plan, &x, err) : st;
}
