#include "query/order/ordered.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/read/collection.h"
#include "query/engine/part_state.h"
#include "query/filter/filter.h"
#include "query/filter/mask.h"

static gx_status no_memory(gx_ordering *o)
{
    return gx_fail(o->err, GX_ENOMEM, "no memory to sort the matches of a query");
}

/* ---- which documents match ---- */

/* The tests of a plan of one file; false: a list has no bits. */
static bool make_matcher(gx_matcher *m, gx_session *s, const gx_plan *plan)
{
    const double n_docs = gx_session_engine(s)->ix->n_docs;
    double none = 1, all = 1;
    m->every = plan->fill;
    m->all = plan->op == GX_OP_AND;
    m->mask = plan->mask;
    m->filter = plan->filter;
    if (plan->n_phrases && !plan->fill)
        return false;
    for (uint32_t i = 0; i < plan->n_terms && !plan->fill; ++i) {
        if (!(m->bits[i] = gx_session_list_bits(s, plan->terms[i].list)))
            return false;
        all *= plan->terms[i].df / n_docs;
        none *= 1 - plan->terms[i].df / n_docs;
        ++m->n_bits;
    }
    m->share = plan->fill ? 1 : m->all ? all : 1 - none;
    if (m->mask)
        m->share *= m->mask->n / n_docs;
    if (m->filter)
        m->share *= gx_filter_guess(m->filter) / n_docs + .004; /* it may select what the sample of 128 does not have */
    return true;
}

/* The plan of a file, and the session that has its lists; false: there are none, because the index has joined its
 * files. */
static bool plan_of_file(const gx_ordering *o, const gx_ordered_file *f, gx_plan *here, gx_session **session)
{
    gx_part_sessions *parts = o->s->parts;
    *here = *o->plan;
    *session = o->s;
    if (!parts)
        return true;
    if (parts->e->joined)
        return false;
    if (o->plan->parts)
        *here = o->plan->parts->plans[f->number];
    gx_part_sessions_give_documents(parts, o->plan, f->number, here);
    here->op = o->plan->op;
    *session = parts->sessions[f->number];
    return true;
}

static gx_status find_matches(gx_ordering *o)
{
    if (o->words)
        return GX_OK;
    o->words = malloc((gx_index_n_words(o->s->en->ix) + 1) * sizeof *o->words);
    return o->words ? gx_session_match(o->s, o->plan, o->words, &o->n_matches, o->err) : no_memory(o);
}

/* The matches of the file in *words, which belong to o. */
static gx_status matches_of_file(gx_ordering *o, const gx_ordered_file *f, const uint64_t **words)
{
    const gx_status st = find_matches(o);
    if (st != GX_OK)
        return st;
    *words = o->words;
    if (!f->part)
        return GX_OK;
    gx_part_scatter(f->part, o->words, o->local);
    *words = o->local;
    return GX_OK;
}

static gx_status choose_in_file(gx_ordering *o, const gx_ordered_file *f)
{
    gx_matcher *m = calloc(1, sizeof *m);
    gx_plan here;
    gx_session *session;
    bool done = false;
    const uint64_t *words;
    o->counted = false;
    if (!m)
        return no_memory(o);
    const bool lazy = o->plan->op != GX_OP_AND_OR && plan_of_file(o, f, &here, &session);
    const bool none =
        lazy && !here.fill && (here.n_terms + here.n_phrases == 0 || (here.op == GX_OP_AND && here.n_unknown));
    gx_status st = GX_OK;
    if (!none && lazy && make_matcher(m, session, &here))
        st = gx_ordered_walk(o, f, m, &done);
    if (st == GX_OK && !none && !done && (st = matches_of_file(o, f, &words)) == GX_OK) {
        *m = (gx_matcher){.words = words,
                          .filter = lazy ? here.filter : NULL,
                          .share = (double)o->n_matches / (double)gx_index_n_docs(o->s->en->ix)};
        st = gx_ordered_walk(o, f, m, &done);
        if (st == GX_OK && !done)
            st = gx_ordered_scan(o, f, words);
    }
    free(m);
    return st;
}

/* ---- the files together ---- */

static int compare_values(const gx_sort *sort, const gx_ordered_hit *a, const gx_ordered_hit *b)
{
    int order = 0;
    for (uint32_t i = 0; i < sort->n && order == 0; ++i)
        order = gx_sort_compare(&sort->levels[i], &a->values[i], &b->values[i]);
    return order;
}

static int by_values(const void *a, const void *b, void *user)
{
    const gx_ordered_hit *x = a, *y = b;
    const int order = compare_values(user, x, y);
    return order ? order : (x->docid > y->docid) - (x->docid < y->docid);
}

static int by_all(const void *a, const void *b, void *user)
{
    const gx_ordered_hit *x = a, *y = b;
    const int order = compare_values(user, x, y);
    return order                  ? order
           : x->score != y->score ? (x->score < y->score ? 1 : -1)
                                  : (x->docid > y->docid) - (x->docid < y->docid);
}

static int by_docid(const void *a, const void *b)
{
    const uint64_t x = ((const gx_candidate *)a)->docid, y = ((const gx_candidate *)b)->docid;
    return (x > y) - (x < y);
}

/* Set the scores of the first n hits. */
static gx_status score_hits(gx_ordering *o, size_t n)
{
    if (!gx_reserve(&o->candidates, &o->max_candidates, n + 1, sizeof *o->candidates))
        return no_memory(o);
    for (size_t i = 0; i < n; ++i)
        o->candidates[i] = (gx_candidate){o->hits[i].docid, 0};
    qsort(o->candidates, n, sizeof *o->candidates, by_docid);
    const gx_status st = o->scored ? gx_session_add_scores_of(o->s, o->plan, o->candidates, n, o->err) : GX_OK;
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        size_t low = 0, high = n;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (o->candidates[middle].docid < o->hits[i].docid)
                low = middle + 1;
            else
                high = middle;
        }
        o->hits[i].own = o->candidates[low].score;
        o->hits[i].score =
            o->hits[i].own + gx_document_prior_units(o->prior, o->s->en->ix, o->hits[i].docid, o->plan->exponent);
    }
    return st;
}

/* The first k of all hits, in order. */
static gx_status put_hits(gx_ordering *o, gx_hits *hits)
{
    const gx_sort *sort = o->sort;
    const gx_index *ix = o->s->en->ix;
    for (size_t i = 0; i < o->n; ++i)
        for (uint32_t l = 0; l < sort->n; ++l)
            o->hits[i].values[l] = gx_sort_value_of(ix->parts ? ix->parts->parts[o->hits[i].file].ix : ix,
                                                    &sort->levels[l], o->hits[i].local);
    hits->n = 0;
    if (!o->n)
        return GX_OK;
    qsort_r(o->hits, o->n, sizeof *o->hits, by_values, (void *)sort);
    size_t n = o->n < o->k ? o->n : o->k;
    while (n && n < o->n && compare_values(sort, &o->hits[n - 1], &o->hits[n]) == 0)
        ++n;
    const gx_status st = score_hits(o, n);
    if (st != GX_OK)
        return st;
    if (o->scored)
        qsort_r(o->hits, n, sizeof *o->hits, by_all, (void *)sort);
    hits->n = (uint32_t)(n < o->k ? n : o->k);
    for (uint32_t i = 0; i < hits->n; ++i)
        gx_hits_set(hits, i, o->hits[i].own, o->hits[i].docid);
    return GX_OK;
}

static gx_status choose(gx_ordering *o, gx_hits *hits)
{
    const gx_index *ix = o->s->en->ix;
    gx_status st = GX_OK;
    if (ix->parts) {
        uint32_t most = 0;
        for (uint32_t i = 0; i < ix->parts->n; ++i)
            most = ix->parts->parts[i].ix->n_docs > most ? ix->parts->parts[i].ix->n_docs : most;
        if (!(o->local = malloc(((size_t)most / 64 + 2) * sizeof *o->local)))
            return no_memory(o);
    }
    for (uint32_t i = 0; i < (ix->parts ? ix->parts->n : 1) && st == GX_OK; ++i) {
        const gx_part *part = ix->parts ? &ix->parts->parts[i] : NULL;
        const gx_ordered_file f = {part ? part->ix : ix, part, i};
        if (o->plan->cancel && o->plan->cancel(o->plan->user))
            st = gx_fail(o->err, GX_ECANCELLED, "the search was cancelled");
        else if (f.ix->n_docs)
            st = choose_in_file(o, &f);
    }
    return st == GX_OK ? put_hits(o, hits) : st;
}

/* A plan of a collection whose parts' plans are those of an AND, in which a part that lacks a term has no terms: the
 * scores are found by those of an OR. */
static gx_status plan_of_scores(gx_plan *out, const gx_plan *plan, gx_part_plans **own, gx_error *err)
{
    *out = *plan;
    *own = NULL;
    if (!plan->parts || plan->op != GX_OP_AND_OR)
        return GX_OK;
    const gx_status st = gx_part_plans_rebind(own, plan->parts->ix, &plan->parts->query, GX_OP_OR, err);
    out->parts = *own;
    return st;
}

gx_status gx_session_run_ordered(gx_session *s, const gx_plan *plan, const gx_sort *sort,
                                 const gx_document_prior *prior, const gx_position *after, uint32_t k, gx_hits *hits,
                                 gx_error *err)
{
    gx_plan scores;
    gx_part_plans *own;
    hits->n = 0;
    gx_status st = gx_engine_check_mask(s->en, plan->mask, err);
    if (st != GX_OK || (st = plan_of_scores(&scores, plan, &own, err)) != GX_OK)
        return st;
    gx_ordering o = {.s = s,
                     .plan = &scores,
                     .sort = sort,
                     .prior = prior,
                     .after = after,
                     .k = k,
                     .scored = prior->prior || plan->n_terms || plan->n_phrases ||
                               (plan->parts && plan->parts->query.n_terms),
                     .err = err};
    if (k && s->en->ix->n_docs)
        st = choose(&o, hits);
    gx_part_plans_free(own);
    free(o.words);
    free(o.local);
    free(o.hits);
    free(o.docids);
    free(o.scores);
    free(o.candidates);
    return st;
}
