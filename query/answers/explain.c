#include "query/answers/explain.h"

#include <math.h>
#include <stdlib.h>

#include "engine/lower_bound.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/fields/view.h"
#include "index/read/collection.h"
#include "query/plan/approximate.h"
#include "query/plan/boolean.h"
#include "query/plan/field_way.h"
#include "query/plan/prior.h"

uint32_t gx_find_tf(const gx_list *list, uint32_t docid)
{
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
    GX_FIRST(uint32_t, behind, 0, list->n_blocks, list->heads[behind] > docid);
    if (behind == 0)
        return 0;
    const uint32_t block = behind - 1, n = gx_list_decode_docids(list, block, docids);
    for (uint32_t i = 0; i < n; ++i)
        if (docids[i] == docid) {
            gx_list_decode_tfs(list, block, tfs);
            return tfs[i];
        }
    return 0;
}

/* x has the term, df, qtf, tf, idf and unit. */
static void explain_term(gx_explain_term *x, float w, gx_scorer scorer, const gx_explanation *e,
                         const gx_preset_info *preset)
{
    x->weight = x->idf * (preset->times_k1 ? e->k1 + 1 : 1) * x->qtf * x->unit;
    if (x->tf)
        x->impact = gx_bm25_impact(w, x->tf, gx_bm25_K(scorer, e->dl));
    x->score = ldexpf((float)x->impact, -e->exponent);
}

/* Of a constant group, which adds its weight as it is. */
static void explain_constant(gx_explain_term *x, float w, const gx_explanation *e)
{
    x->weight = x->qtf;
    x->impact = x->tf ? (uint32_t)lrintf(w) : 0;
    x->score = ldexpf((float)x->impact, -e->exponent);
}

static gx_explain_term term_of_index(const gx_index *ix, const gx_plan_term *t, uint32_t docid)
{
    gx_explain_term x = {.df = t->df, .qtf = t->qtf};
    const gx_list list = gx_index_list(ix, t->list);
    x.term = gx_index_term(ix, t->list, &x.term_len);
    x.tf = gx_find_tf(&list, docid);
    x.unit = gx_index_unit(ix, t->list);
    return x;
}

/* The bytes are those of any part that has the term. */
static gx_explain_term term_of_collection(const gx_index *ix, const gx_query_term *t, uint64_t docid)
{
    gx_explain_term x = {.df = t->df, .qtf = t->qtf, .unit = t->unit};
    uint32_t local;
    const gx_index *holder = gx_parts_find(ix->parts, docid, &local)->ix;
    uint32_t id = gx_index_find_term(holder, t->term, t->len);
    if (id != UINT32_MAX) {
        const gx_list list = gx_index_list(holder, id);
        x.tf = gx_find_tf(&list, local);
    }
    for (uint32_t i = 0; id == UINT32_MAX && i < ix->parts->n; ++i) {
        holder = ix->parts->parts[i].ix;
        id = gx_index_find_term(holder, t->term, t->len);
    }
    x.term = gx_index_term(holder, id, &x.term_len);
    return x;
}

/* The file that has the document, and its docid there; *id: the term's number there, or UINT32_MAX. */
static const gx_index *find_holder(const gx_index *ix, uint64_t docid, uint32_t *local)
{
    *local = (uint32_t)docid;
    return ix->parts ? gx_parts_find(ix->parts, docid, local)->ix : ix;
}

/* A term of a view of which `best` is asked, as the field at hand has it; e has the rest. */
static void look_in_field(gx_explain_term *x, const gx_explanation *e, const gx_index *holder, uint32_t list,
                          uint32_t field, uint32_t docid)
{
    uint32_t own;
    x->tf = x->impact = 0;
    x->unit = 0;
    if (list != UINT32_MAX && gx_view_in_field(holder, list, field, &own)) {
        const gx_list l = gx_index_list(holder, own);
        const float w = gx_way_weight(holder, own, x->qtf, e->exponent);
        x->unit = gx_index_unit(holder, own);
        x->tf = gx_find_tf(&l, docid);
        if (x->tf)
            x->impact = gx_bm25_impact(w, x->tf, GX_LINEAR_K);
    }
    x->weight = x->qtf * x->unit;
    x->score = ldexpf((float)x->impact, -e->exponent);
}

/* lists[n_terms]: of the holder's, UINT32_MAX: it lacks the term. Each field's sum, and the terms in the best field. */
static void explain_best(gx_explanation *e, const gx_index *holder, const uint32_t *lists, uint32_t local)
{
    gx_plan_term terms[GX_MAX_TERMS], of_way[GX_MAX_TERMS];
    gx_plan plan = {.terms = terms, .exponent = e->exponent, .norm = {GX_LINEAR_K, 0, false}};
    for (uint32_t i = 0; i < e->n_terms && plan.n_terms < GX_MAX_TERMS; ++i)
        if (lists[i] != UINT32_MAX)
            terms[plan.n_terms++] = (gx_plan_term){.list = lists[i], .qtf = e->terms[i].qtf};
    e->sum = 0;
    for (uint32_t f = 0; f < e->n_fields; ++f) {
        const gx_plan way = gx_plan_way(&plan, holder, f, of_way);
        gx_add_scores(holder, &way, &local, &e->fields[f].sum, 1);
        if (e->fields[f].sum > e->sum) {
            e->best_field = f;
            e->sum = e->fields[f].sum;
        }
    }
    for (uint32_t i = 0; i < e->n_terms; ++i) {
        look_in_field(&e->terms[i], e, holder, lists[i], e->best_field, local);
        e->terms[i].df = e->terms[i].field_dfs[e->best_field];
    }
}

/* The name of term i, which is a phrase; NULL: it is a word. */
static const char *phrase_name(const gx_index *ix, const gx_plan *plan, const gx_query_plan *whole, uint32_t i,
                               size_t *len)
{
    if (!ix->parts)
        return gx_view_phrase_of(ix, plan->terms[i].list, len);
    *len = whole->terms[i].len;
    return *len && whole->terms[i].term[0] == GX_PHRASE_MARK ? whole->terms[i].term : NULL;
}

static uint64_t df_of(void *user, const char *term, size_t len)
{
    return gx_index_df_of(user, term, len);
}

/* Tell the fields of a view. whole: the terms as they are looked up, of a collection. */
static gx_status explain_fields(gx_explanation *e, const gx_index *ix, const gx_plan *plan, const gx_query_plan *whole,
                                gx_error *err)
{
    uint32_t local, lens[GX_MAX_FIELDS] = {0};
    const gx_index *holder = find_holder(ix, e->docid, &local);
    const gx_view_profile *p = gx_view_get_profile(holder);
    const uint32_t n = holder->fields->n;
    const size_t n_counts = (size_t)e->n_terms * n;
    char *memory = calloc(1, n * sizeof *e->fields + n_counts * (sizeof(uint64_t) + sizeof(uint32_t)) +
                                 e->n_terms * sizeof(uint32_t));
    if (!memory)
        return gx_fail(err, GX_ENOMEM, "no memory to explain %u terms", e->n_terms);
    e->fields = (gx_explain_field *)(void *)memory;
    uint64_t *dfs = (uint64_t *)(void *)(e->fields + n);
    uint32_t *tfs = (uint32_t *)(dfs + n_counts), *lists = tfs + n_counts;
    e->n_fields = n;
    e->field_scoring = p->scoring;
    gx_view_lens(holder, local, lens);
    for (uint32_t f = 0; f < n; ++f)
        e->fields[f] = (gx_explain_field){holder->fields->names[f],
                                          p->fields[f].used,
                                          p->fields[f].weight,
                                          p->fields[f].b,
                                          p->fields[f].avglen,
                                          lens[f],
                                          0};
    for (uint32_t i = 0; i < e->n_terms; ++i, tfs += n, dfs += n) {
        lists[i] =
            ix->parts ? gx_index_find_term(holder, whole->terms[i].term, whole->terms[i].len) : plan->terms[i].list;
        if (lists[i] != UINT32_MAX)
            gx_view_explain(holder, lists[i], local, tfs);
        e->terms[i].field_tfs = tfs;
        size_t len = e->terms[i].term_len;
        const char *phrase = phrase_name(ix, plan, whole, i, &len);
        if (phrase && p->scoring == GX_FIELDS_BM25F) {
            e->terms[i].idf = gx_view_phrase_idf(phrase, len, p->idf, p->n_docs, df_of, (void *)(uintptr_t)ix);
            e->terms[i].weight = e->terms[i].idf * (e->times_k1 ? e->k1 + 1 : 1) * e->terms[i].qtf * e->terms[i].unit;
        }
        if (p->scoring == GX_FIELDS_BM25F)
            continue;
        gx_view_dfs(holder, phrase ? phrase : e->terms[i].term, phrase ? len : e->terms[i].term_len, dfs);
        e->terms[i].field_dfs = dfs;
        e->terms[i].idf = 1;
        e->terms[i].weight = e->terms[i].qtf * e->terms[i].unit;
    }
    if (p->scoring == GX_FIELDS_BEST)
        explain_best(e, holder, lists, local);
    return GX_OK;
}

gx_status gx_explain(gx_explanation *out, const gx_index *ix, const gx_query *given, const gx_query_options *options,
                     uint64_t docid, gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_query query = GX_TEXT_QUERY(NULL, 0);
    gx_plan plan;
    gx_boolean *match = NULL; /* whether the document matches is not asked */
    gx_status st =
        gx_sized_read(&opt, sizeof opt, options, GX_SIZE_THROUGH(gx_query_options, mask), "gx_query_options", err);
    if (st == GX_OK)
        st = gx_sized_read(&query, sizeof query, given, GX_SIZE_THROUGH(gx_query, n_terms), "gx_query", err);
    const gx_prior prior = opt.prior;
    uint32_t column = 0;
    opt.prior.weight = 0;
    if (st == GX_OK)
        st = gx_query_options_check(&opt, ix, err);
    if (st == GX_OK && prior.weight != 0)
        st = gx_prior_find(&column, &prior, ix, err);
    if (st != GX_OK)
        return st;
    const gx_preset_info *preset = gx_preset_get(opt.preset);
    opt.op = GX_OP_OR; /* AND would drop all terms when one is unknown; of a boolean query the text has the operators */
    gx_query_plan whole = {0}; /* of a collection */
    const gx_collection_stats stats = gx_collection_stats_of(ix);
    if (ix->parts && (st = gx_query_plan_any(&whole, &match, ix, &stats, &query, &opt, err)) == GX_OK)
        plan = gx_query_plan_summary(&whole, ix);
    else if (!ix->parts)
        st = gx_plan_query(&plan, &match, ix, &query, &opt, err);
    gx_boolean_close(match);
    if (st == GX_OK && plan.n_phrases && !ix->parts) {
        st = gx_query_plan_any(&whole, &match, ix, &stats, &query, &opt, err);
        gx_boolean_close(match);
        if (st != GX_OK)
            gx_plan_free(&plan);
    }
    if (st != GX_OK)
        return st;

    gx_explanation e = {
        .docid = docid,
        .n_docs = gx_index_n_docs(ix),
        .dl = gx_index_length(ix, docid),
        .avgdl = ix->avgdl,
        .k1 = gx_view_of(ix)  ? gx_view_get_profile(gx_view_of(ix))->k1
              : isnan(opt.k1) ? preset->k1
                              : opt.k1,
        .b = isnan(opt.b) ? preset->b : opt.b,
        .times_k1 = preset->times_k1,
        .linear = preset->linear,
        .preset = preset->name,
        .formula = preset->formula,
        .exponent = plan.exponent,
        .n_unknown = plan.n_unknown,
        .n_terms = plan.n_terms,
    };
    e.counted_dl = plan.norm.lossy ? gx_lossy_length(e.dl) : e.dl;
    e.K = e.linear ? 0 : gx_bm25_K(plan.norm, e.dl);
    const uint32_t n_words = e.n_terms, n_phrases = whole.phrases ? whole.phrases->n : 0;
    size_t n_bytes = 0;
    for (uint32_t i = 0; i < n_phrases; ++i)
        n_bytes += gx_phrase_text_bytes(&whole.phrases->phrases[i]);
    e.n_terms += n_phrases;
    e.terms = malloc((e.n_terms + 1) * sizeof *e.terms + n_bytes);
    if (!e.terms)
        st = gx_fail(err, GX_ENOMEM, "no memory to explain %u terms", e.n_terms);
    for (uint32_t i = 0; st == GX_OK && i < n_words; ++i) {
        e.terms[i] = ix->parts ? term_of_collection(ix, &whole.terms[i], docid)
                               : term_of_index(ix, &plan.terms[i], (uint32_t)docid);
        e.terms[i].idf = preset->idf((double)e.n_docs, (double)e.terms[i].df);
        explain_term(&e.terms[i], ix->parts ? whole.terms[i].w : plan.terms[i].w, plan.norm, &e, preset);
        e.sum += e.terms[i].impact;
    }
    char *text = e.terms ? (char *)(e.terms + e.n_terms + 1) : NULL;
    for (uint32_t i = 0; st == GX_OK && i < n_phrases; ++i) {
        gx_explain_term *x = &e.terms[n_words + i];
        *x = (gx_explain_term){.term = text};
        x->term_len = gx_phrase_text_write(&whole.phrases->phrases[i], text);
        text += x->term_len;
        st = gx_explain_phrase(x, whole.phrases, i, ix, docid, err);
        explain_term(x, whole.phrases->phrases[i].w, plan.norm, &e, preset);
        if (whole.phrases->phrases[i].kind == GX_PHRASE_CONSTANT)
            explain_constant(x, whole.phrases->phrases[i].w, &e);
        e.sum += x->impact;
    }
    if (st == GX_OK && gx_view_of(ix))
        st = explain_fields(&e, ix, &plan, &whole, err);
    e.prior = prior;
    if (prior.weight != 0 && (e.has_prior = gx_prior_value(ix, column, docid, &e.prior_value)))
        e.prior_impact = gx_prior_units(&prior, e.prior_value, e.exponent);
    e.score = (float)ldexp((double)(e.sum + e.prior_impact), -e.exponent);
    gx_plan_free(&plan);
    gx_query_plan_free(&whole);
    if (st == GX_OK)
        *out = e;
    else
        gx_explanation_free(&e);
    return st;
}

void gx_explanation_free(gx_explanation *e)
{
    free(e->terms);
    free(e->fields);
    e->fields = NULL;
    e->n_fields = 0;
    e->terms = NULL;
    e->n_terms = 0;
}
