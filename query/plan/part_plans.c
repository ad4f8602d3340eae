#include "query/plan/part_plans.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/parts.h"
#include "index/read/collection.h"
#include "query/plan/phrases.h"

void gx_part_plans_free(gx_part_plans *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n; ++i)
        free(p->plans[i].phrases);
    if (p->own_terms)
        gx_query_plan_free(&p->query);
    free(p);
}

gx_status gx_part_plans_bind(gx_part_plans **out, const gx_index *ix, gx_query_plan *query, bool takes, gx_op op,
                             const uint32_t *ids, gx_error *err)
{
    const uint32_t n = ix->parts->n;
    const size_t plans_bytes = sizeof(gx_part_plans) + n * sizeof(gx_plan);
    const size_t terms_bytes = (size_t)n * query->n_terms * sizeof(gx_plan_term);
    gx_part_plans *p = malloc(plans_bytes + terms_bytes + (takes ? 0 : query->n_terms * sizeof *query->terms));
    *out = NULL;
    if (!p) {
        if (takes)
            gx_query_plan_free(query);
        return gx_fail(err, GX_ENOMEM, "no memory for the plans of %u parts", n);
    }
    gx_plan_term *terms = (gx_plan_term *)(void *)((char *)p + plans_bytes);
    gx_status st = GX_OK;
    p->ix = ix;
    p->n = 0;
    p->query = *query;
    p->query.op = op;
    p->own_terms = takes;
    if (!takes) {
        p->query.terms = (gx_query_term *)(void *)((char *)p + plans_bytes + terms_bytes);
        memcpy(p->query.terms, query->terms, query->n_terms * sizeof *query->terms);
    }
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        st = gx_plan_bind_ids(&p->plans[i], &p->query, ix->parts->parts[i].ix, ids + i, n,
                              terms + (size_t)i * query->n_terms, err);
        p->n += st == GX_OK;
        p->plans[i].mask = NULL;
        p->plans[i].coarse_bounds = true;
        p->plans[i].approximate = 0; /* passes are those of the whole */
    }
    if (st == GX_OK)
        *out = p;
    else
        gx_part_plans_free(p);
    return st;
}

/* The numbers of the terms of the query's phrases in the parts, from term `number` on; the phrases keep theirs, which
 * are the same. */
static void find_phrase_ids(const gx_index *ix, const struct gx_query_phrases *phrases, uint32_t *ids)
{
    for (uint32_t i = 0; phrases && i < phrases->n; ++i)
        for (uint32_t w = 0; w < phrases->phrases[i].n; ++w) {
            const gx_query_phrase_word *x = &phrases->phrases[i].words[w];
            gx_parts_find_ids(ix->parts, x->term, x->len, ids + (size_t)x->number * ix->parts->n);
        }
}

/* Terms and phrases' words that have numbers: more than the greatest. */
static size_t count_numbers(const gx_query_plan *query)
{
    size_t n = query->n_terms;
    for (uint32_t i = 0; query->phrases && i < query->phrases->n; ++i)
        for (uint32_t w = 0; w < query->phrases->phrases[i].n; ++w)
            if (query->phrases->phrases[i].words[w].number >= n)
                n = query->phrases->phrases[i].words[w].number + 1ull;
    return n;
}

gx_status gx_part_plans_rebind(gx_part_plans **out, const gx_index *ix, const gx_query_plan *query, gx_op op,
                               gx_error *err)
{
    gx_query_plan copy;
    uint32_t *ids = malloc((count_numbers(query) * ix->parts->n + 1) * sizeof *ids);
    gx_status st =
        ids ? gx_query_plan_copy(&copy, query, err) : gx_fail(err, GX_ENOMEM, "no memory for the terms of a query");
    *out = NULL;
    for (uint32_t i = 0; st == GX_OK && i < copy.n_terms; ++i) {
        copy.terms[i].number = i;
        gx_parts_find_ids(ix->parts, copy.terms[i].term, copy.terms[i].len, ids + (size_t)i * ix->parts->n);
    }
    if (st == GX_OK) {
        find_phrase_ids(ix, copy.phrases, ids);
        st = gx_part_plans_bind(out, ix, &copy, true, op, ids, err);
    }
    free(ids);
    return st;
}

gx_status gx_part_plans_take(gx_part_plans **out, const gx_part_plans *p, const bool *taken, bool with, uint32_t k,
                             gx_error *err)
{
    gx_query_plan some = p->query;
    *out = NULL;
    some.terms = malloc((p->query.n_terms + 1ull) * sizeof *some.terms);
    if (!some.terms)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", p->query.n_terms);
    some.n_terms = 0;
    some.opt.k = k;
    for (uint32_t i = 0; i < p->query.n_terms; ++i) {
        if (taken[i] == with)
            some.terms[some.n_terms++] = p->query.terms[i];
    }
    const gx_status st = gx_part_plans_rebind(out, p->ix, &some, p->query.op, err);
    for (uint32_t i = 0; st == GX_OK && i < (*out)->n; ++i)
        (*out)->plans[i].n_left_out = p->query.n_terms - some.n_terms;
    free(some.terms);
    return st;
}
