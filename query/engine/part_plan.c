/* part_plan.c: the plan of a query of a collection: one for each part, with the weights of the whole. */
#include "query/engine/part_state.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "query/filter/filter.h"
#include "query/filter/mask.h"
#include "query/plan/sdm.h"

#define FEW_IDS GX_FEW_IDS

/* The numbers of a query's terms in the parts, by the order in which their dfs are asked for. */
typedef struct term_ids {
    const gx_parts *parts;
    double unit;          /* of impacts, the same in all lists of a collection, */
    const gx_index *view; /* unless it is a view of fields; else NULL */
    uint32_t n, max;
    bool failed;    /* memory lacked */
    uint32_t *many; /* [max][parts->n]; NULL: they are in `few`, of which the first max * parts->n are used */
    uint32_t few[FEW_IDS];
} term_ids;

static bool reserve_id(term_ids *t)
{
    if (t->n < t->max)
        return true;
    const uint32_t max = 2 * t->max + 8;
    const size_t bytes = (size_t)max * t->parts->n * sizeof *t->many;
    uint32_t *ids = realloc(t->many, bytes);
    if (!ids)
        return false;
    if (!t->many)
        memcpy(ids, t->few, (size_t)t->n * t->parts->n * sizeof *ids);
    t->many = ids;
    t->max = max;
    return true;
}

static uint64_t find_df(const void *user, const char *term, size_t len)
{
    term_ids *t = (term_ids *)user;
    t->failed = t->failed || !reserve_id(t);
    if (t->failed)
        return 0;
    return gx_parts_find_ids(t->parts, term, len, (t->many ? t->many : t->few) + (size_t)t->n++ * t->parts->n);
}

static uint32_t find_max_tf(const void *user, const char *term, size_t len)
{
    return gx_parts_max_tf(((const term_ids *)user)->parts, term, len);
}

static double find_unit(const void *user, const char *term, size_t len)
{
    const term_ids *t = user;
    return t->view ? gx_view_unit(t->view, term, len) : t->unit;
}

/* A part whose documents a filter of the collection selects. */
typedef struct part_leaf {
    const gx_part_engines *e;
    uint32_t part;
} part_leaf;

static gx_status evaluate_leaf(void *user, const gx_filter *f, uint64_t *words, gx_error *err)
{
    const part_leaf *l = user;
    const gx_part *part = &l->e->ix->parts->parts[l->part];
    if (!l->e->joined)
        return gx_filter_evaluate(f->parts[l->part], words, NULL, err);
    uint64_t *whole = malloc((gx_index_n_words(l->e->ix) + 1) * sizeof *whole);
    gx_status st = whole ? gx_filter_evaluate(f, whole, NULL, err)
                         : gx_fail(err, GX_ENOMEM, "no memory for the documents of a boolean query");
    if (st == GX_OK) {
        memset(words, 0, ((size_t)part->ix->n_docs + 63) / 64 * sizeof *words);
        gx_part_scatter(part, whole, words);
    }
    free(whole);
    return st;
}

/* What of a boolean query matches, as masks of the parts. */
static gx_status match_parts(gx_mask ***out, const gx_part_engines *e, const gx_boolean *whole, const gx_query *q,
                             const gx_query_options *opt, const gx_plan *plan, gx_error *err)
{
    gx_mask **masks = calloc(e->n, sizeof *masks);
    uint64_t *words = gx_part_words_alloc(e);
    gx_status st = masks && words ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the documents of a boolean query");
    *out = NULL;
    for (uint32_t i = e->range.begin; st == GX_OK && i < e->range.end; ++i) {
        const gx_mask *allowed = opt->mask ? opt->mask->parts[i] : e->live[i];
        const gx_index *part = e->ix->parts->parts[i].ix;
        gx_boolean *b;
        part_leaf leaf = {e, i};
        const gx_boolean_leaves leaves = {whole, evaluate_leaf, &leaf};
        st = q->kind == GX_QUERY_TEXT ? gx_boolean_open_text(&b, part, q->text, q->len, opt, err)
                                      : gx_boolean_open(&b, part, NULL, q->text, q->len, opt, whole, err);
        if (st != GX_OK)
            break;
        st = gx_boolean_match(b, plan, &leaves, words, err);
        gx_boolean_close(b);
        for (size_t w = 0; allowed && st == GX_OK && w * 64 < part->n_docs; ++w)
            words[w] &= gx_mask_word(allowed, w);
        if (st == GX_OK)
            st = gx_mask_open(&masks[i], e->engines[i], words, err);
    }
    free(words);
    if (st == GX_OK)
        *out = masks;
    else
        gx_part_masks_close(masks, e->n);
    return st;
}

/* The plan of a text, if its terms are few; else *few is false. */
static gx_status plan_few_terms(gx_plan *out, bool *few, const gx_index *ix, const gx_query *q,
                                const gx_query_options *opt, gx_error *err)
{
    const term_ids parts = {.parts = ix->parts};
    const gx_collection_stats stats = {.n_docs = gx_index_n_docs(ix),
                                       .avgdl = ix->avgdl,
                                       .max_tf = find_max_tf,
                                       .user = &parts,
                                       .view = gx_view_of(ix)};
    gx_text_terms t;
    gx_status st = gx_text_terms_find(&t, few, ix, q->text, q->len, err);
    if (st != GX_OK || !*few)
        return st;
    for (uint32_t i = 0; i < t.n; ++i)
        t.terms[i].unit = gx_view_of(ix) ? gx_view_unit(ix, t.terms[i].term, t.terms[i].len) : ix->impact_unit;
    gx_query_plan query = {.opt = *opt, .op = opt->op, .n_terms = t.n, .n_unknown = t.n_unknown, .terms = t.terms};
    if ((st = gx_query_plan_weigh(&query, &stats, err)) != GX_OK)
        return st;
    gx_plan plan = gx_query_plan_summary(&query, ix);
    st = gx_part_plans_bind(&plan.parts, ix, &query, false, plan.op == GX_OP_AND_OR ? GX_OP_AND : plan.op, t.ids, err);
    if (st == GX_OK)
        *out = plan;
    return st;
}

gx_status gx_part_plan(gx_plan *out, gx_mask ***matches, const gx_part_engines *e, const gx_index *whole,
                       const gx_query *q, const gx_query_options *opt, gx_error *err)
{
    const gx_index *ix = e->ix;
    const bool may_mask = q->kind == GX_QUERY_BOOLEAN || opt->synonyms || gx_sdm_is_on(&opt->sdm);
    if (e->single && !may_mask) {
        gx_boolean *none;
        *matches = NULL;
        return gx_plan_query(out, &none, ix->parts->parts[0].ix, q, opt, err);
    }
    const bool text = q->kind == GX_QUERY_TEXT && !gx_has_phrases(whole, q, opt) && !gx_query_side_is_on(opt);
    if (e->n == 1 && !e->shard && text && !(opt->approximate > 0)) {
        *matches = NULL;
        const gx_status of_text = gx_plan_make_live(out, ix, q->text, q->len, opt, err);
        if (of_text == GX_OK)
            out->coarse_bounds = true;
        return of_text;
    }
    if (text) {
        bool few;
        *matches = NULL;
        const gx_status of_text = plan_few_terms(out, &few, ix, q, opt, err);
        if (of_text != GX_OK || few)
            return of_text;
    }
    term_ids ids = {
        .parts = ix->parts, .unit = ix->impact_unit, .view = gx_view_of(ix) ? ix : NULL, .max = FEW_IDS / ix->parts->n};
    const gx_collection_stats stats = {.n_docs = gx_index_n_docs(ix),
                                       .avgdl = ix->avgdl,
                                       .df = find_df,
                                       .max_tf = find_max_tf,
                                       .unit = find_unit,
                                       .user = &ids,
                                       .view = gx_view_of(ix)};
    gx_query_plan query;
    gx_boolean *b;
    *matches = NULL;
    gx_status st = gx_query_plan_any(&query, &b, whole, &stats, q, opt, err);
    if (st == GX_OK && ids.failed) {
        gx_query_plan_free(&query);
        st = gx_fail(err, GX_ENOMEM, "no memory for the terms of a query");
    }
    if (st != GX_OK) {
        free(ids.many);
        gx_boolean_close(b);
        return st;
    }
    gx_plan plan = gx_query_plan_summary(&query, ix);
    st = gx_part_plans_bind(&plan.parts, ix, &query, true, plan.op == GX_OP_AND_OR ? GX_OP_AND : plan.op,
                            ids.many ? ids.many : ids.few, err);
    free(ids.many);
    if (st == GX_OK && b)
        st = gx_boolean_make_filters(b, &plan, whole, q, err);
    if (st == GX_OK && b && !gx_boolean_is_flat(b))
        st = match_parts(matches, e, b, q, opt, &plan, err);
    gx_boolean_close(b);
    if (st != GX_OK) {
        gx_plan_free(&plan);
        return st;
    }
    *out = plan;
    return st;
}
