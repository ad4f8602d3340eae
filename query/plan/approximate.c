#include "query/plan/approximate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/lower_bound.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "engine/text/c_locale.h"
#include "query/plan/field_way.h"
#include "query/plan/part_plans.h"

#define CANDIDATES_A_RESULT 2u
#define MORE_CANDIDATES 40u

/* ---- options ---- */

bool gx_query_options_are_exact(const gx_query_options *opt)
{
    return !(opt->approximate > 0) && opt->block_budget == 0;
}

gx_status gx_approximate_check(const gx_query_options *opt, gx_error *err)
{
    if (!(opt->approximate >= 0 && opt->approximate <= 1))
        return gx_fail(err, GX_EUSAGE, "approximate is %g; it must lie between 0 and 1", (double)opt->approximate);
    if (opt->block_budget > UINT32_MAX)
        return gx_fail(err, GX_EUSAGE, "the budget is %llu blocks; it must be at most %u",
                       (unsigned long long)opt->block_budget, UINT32_MAX);
    return GX_OK;
}

/* The dials of an approximation as a text names them; `whole`: it has no fraction. */
static const struct dial {
    const char *name;
    double least, most;
    bool whole;
} dials[] = {{"terms", 0, 1, false}, {"blocks", 1, UINT32_MAX, true}};
enum { TERMS, BLOCKS, N_DIALS };

/* Read text[0, len) as a value of the dial. */
static gx_status read_value(double *value, const struct dial *d, const char *text, size_t len, gx_error *err)
{
    char number[32], *end = number;
    if (len > 0 && len < sizeof number && strspn(text, "0123456789.eE+-") >= len) {
        memcpy(number, text, len);
        number[len] = 0;
        *value = gx_strtod(number, &end);
    }
    if (end == number || *end)
        return gx_fail(err, GX_EUSAGE, "%s: '%.*s' is no number", d->name, len < 80 ? (int)len : 80, text);
    if (!(*value >= d->least && *value <= d->most))
        return gx_fail(err, GX_EUSAGE, "%s: %s does not lie between %.10g and %.10g", d->name, number, d->least,
                       d->most);
    if (d->whole && *value != floor(*value))
        return gx_fail(err, GX_EUSAGE, "%s: %s is no whole number", d->name, number);
    return GX_OK;
}

/* Read "NAME:VALUE" of text[0, len). */
static gx_status read_dial(double *values, bool *given, const char *text, size_t len, gx_error *err)
{
    const char *colon = memchr(text, ':', len);
    const size_t name_len = colon ? (size_t)(colon - text) : len;
    for (int i = 0; i < N_DIALS; ++i) {
        if (name_len != strlen(dials[i].name) || memcmp(text, dials[i].name, name_len) != 0)
            continue;
        if (given[i])
            return gx_fail(err, GX_EUSAGE, "%s is given twice", dials[i].name);
        given[i] = true;
        if (!colon)
            return gx_fail(err, GX_EUSAGE, "%s has no value; write %s:X", dials[i].name, dials[i].name);
        return read_value(&values[i], &dials[i], colon + 1, len - name_len - 1, err);
    }
    if (name_len == strlen("threshold") && memcmp(text, "threshold", name_len) == 0)
        return gx_fail(err, GX_EUSAGE,
                       "there is no threshold any more; terms:X and blocks:N give up less for more speed");
    return gx_fail(err, GX_EUSAGE,
                   "there is no '%.*s'; it is a number from 0 to 1, or terms:X and blocks:N with a comma between",
                   name_len < 80 ? (int)name_len : 80, text);
}

gx_status gx_approximate_read(gx_query_options *o, const char *text, gx_error *err)
{
    double values[N_DIALS] = {0};
    bool given[N_DIALS] = {false};
    gx_status st = gx_sized_check(o->size, GX_SIZE_THROUGH(gx_query_options, block_budget), "gx_query_options", err);
    if (st == GX_OK && *text && strchr("0123456789.+-", *text))
        st = read_value(&values[TERMS], &dials[TERMS], text, strlen(text), err);
    else if (st == GX_OK)
        for (const char *end; st == GX_OK && text; text = *end ? end + 1 : NULL) {
            end = text + strcspn(text, ",");
            st = read_dial(values, given, text, (size_t)(end - text), err);
        }
    if (st != GX_OK)
        return st;
    o->approximate = (float)values[TERMS];
    o->block_budget = (uint64_t)values[BLOCKS];
    return GX_OK;
}

void gx_approximate_write(const gx_query_options *o, char *text)
{
    size_t n = 0;
    if (o->approximate > 0 || !o->block_budget)
        n += (size_t)gx_print(text, GX_APPROXIMATE_BYTES, "%s%g", o->block_budget ? "terms:" : "",
                              (double)o->approximate);
    if (o->block_budget)
        gx_print(text + n, GX_APPROXIMATE_BYTES - n, "%sblocks:%llu", n ? "," : "",
                 (unsigned long long)o->block_budget);
}

/* ---- which terms ---- */

static uint32_t n_terms_of(const gx_plan *plan)
{
    return plan->parts ? plan->parts->query.n_terms : plan->n_terms;
}

static float weight_of(const gx_plan *plan, uint32_t i)
{
    return plan->parts ? plan->parts->query.terms[i].w : plan->terms[i].w;
}

typedef struct weighed_term {
    float w;
    uint32_t i;
} weighed_term;

/* The lightest first; of equal ones the last of the plan's order. */
static int by_weight(const void *a, const void *b)
{
    const weighed_term *x = a, *y = b;
    return x->w != y->w ? (x->w < y->w ? -1 : 1) : (x->i < y->i) - (x->i > y->i);
}

/* Mark the terms that stay, kept[n]. */
static void choose_terms(const gx_plan *plan, bool *kept)
{
    weighed_term terms[GX_MAX_TERMS];
    const uint32_t n = n_terms_of(plan);
    double total = 0, left_out = 0;
    for (uint32_t i = 0; i < n; ++i) {
        terms[i] = (weighed_term){weight_of(plan, i), i};
        kept[i] = true;
        total += weight_of(plan, i);
    }
    qsort(terms, n, sizeof *terms, by_weight);
    for (uint32_t i = 0; i + 1 < n; ++i) {
        left_out += terms[i].w;
        if (left_out > plan->approximate * total)
            break;
        kept[terms[i].i] = false;
    }
}

bool gx_plan_is_approximate(const gx_plan *plan)
{
    if (plan->n_phrases || !(plan->approximate > 0) || !plan->prune || plan->op != GX_OP_OR || n_terms_of(plan) < 2)
        return false;
    double total = 0, least = weight_of(plan, 0);
    for (uint32_t i = 0; i < n_terms_of(plan); ++i) {
        total += weight_of(plan, i);
        least = weight_of(plan, i) < least ? weight_of(plan, i) : least;
    }
    return least <= plan->approximate * total;
}

uint32_t gx_first_pass_k(const gx_plan *plan, uint32_t n_docs)
{
    const uint64_t k = (uint64_t)plan->k * CANDIDATES_A_RESULT + MORE_CANDIDATES;
    return k < n_docs ? (uint32_t)k : plan->k > n_docs ? plan->k : n_docs;
}

/* ---- dividing ---- */

/* The plan with those of its terms whose mark is `with`. */
static gx_status take_terms(gx_plan *out, const gx_plan *plan, const bool *kept, bool with, uint32_t k, gx_error *err)
{
    gx_plan own = *plan;
    own.k = k;
    own.terms = NULL;
    own.parts = NULL;
    own.own_mask = NULL;
    own.own_filter = NULL;
    own.fill = false; /* a pass that finds fewer than k is repeated exactly */
    own.approximate = 0;
    own.initial_threshold = 0; /* it was one of whole scores */
    own.n_terms = 0;
    own.base = 0;
    if (plan->parts) {
        const gx_status st = gx_part_plans_take(&own.parts, plan->parts, kept, with, own.k, err);
        own.n_terms = st == GX_OK ? own.parts->query.n_terms : 0;
        *out = own;
        return st;
    }
    own.terms = malloc((plan->n_terms + 1) * sizeof *own.terms);
    if (!own.terms)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %u terms", plan->n_terms);
    for (uint32_t i = 0; i < plan->n_terms; ++i) {
        if (kept[i] == with)
            own.terms[own.n_terms++] = plan->terms[i];
    }
    own.n_left_out = plan->n_terms - own.n_terms;
    *out = own;
    return GX_OK;
}

gx_status gx_two_passes_make(gx_two_passes *out, const gx_plan *plan, uint32_t n_docs, gx_error *err)
{
    bool kept[GX_MAX_TERMS];
    choose_terms(plan, kept);
    gx_status st = take_terms(&out->first, plan, kept, true, gx_first_pass_k(plan, n_docs), err);
    if (st == GX_OK && (st = take_terms(&out->rest, plan, kept, false, plan->k, err)) != GX_OK)
        gx_plan_free(&out->first);
    return st;
}

void gx_two_passes_free(gx_two_passes *p)
{
    gx_plan_free(&p->first);
    gx_plan_free(&p->rest);
}

/* ---- scores ---- */

/* A list's block that is decoded. */
typedef struct open_block {
    uint32_t j, n; /* UINT32_MAX: none */
    bool has_tfs;
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK];
} open_block;

/* The last block from `begin` on that begins at or before doc; begin if none does. */
static uint32_t find_block(const gx_list *l, uint32_t begin, uint32_t doc)
{
    GX_FIRST(uint32_t, behind, begin + 1, l->n_blocks, l->heads[behind] > doc);
    return behind - 1;
}

/* The tf of doc in block j of the list; 0: it is not there. */
static uint32_t find_tf(const gx_list *l, uint32_t j, uint32_t doc, open_block *b)
{
    if (b->j != j) {
        b->j = j;
        b->n = gx_list_decode_docids(l, j, b->docids);
        b->has_tfs = false;
    }
    const uint32_t lo = gx_lower_bound(b->docids, 0, b->n, doc);
    if (lo == b->n || b->docids[lo] != doc)
        return 0;
    if (!b->has_tfs)
        gx_list_decode_tfs(l, j, b->tfs);
    b->has_tfs = true;
    return b->tfs[lo];
}

static void add_scores(const gx_index *ix, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n)
{
    open_block b;
    for (uint32_t t = 0; t < rest->n_terms; ++t) {
        const gx_list l = gx_index_list(ix, rest->terms[t].list);
        uint32_t j = 0;
        b.j = UINT32_MAX;
        for (uint32_t i = 0; i < n; ++i) {
            j = find_block(&l, j, docids[i]);
            const uint32_t tf = l.heads[j] <= docids[i] ? find_tf(&l, j, docids[i], &b) : 0;
            if (tf)
                scores[i] +=
                    gx_bm25_impact(rest->terms[t].w, tf, gx_bm25_K(rest->norm, gx_index_length(ix, docids[i])));
        }
    }
}

/* What the best field of each document adds. */
static void add_best_scores(const gx_index *ix, const gx_plan *rest, const uint32_t *docids, uint32_t *scores,
                            uint32_t n)
{
    gx_plan_term terms[GX_MAX_TERMS];
    uint32_t best[256], of_field[256];
    for (uint32_t from = 0, m; from < n; from += m) {
        m = n - from < 256 ? n - from : 256;
        memset(best, 0, sizeof best);
        for (uint32_t f = 0; f < ix->fields->n; ++f) {
            const gx_plan way = gx_plan_way(rest, ix, f, terms);
            memset(of_field, 0, sizeof of_field);
            add_scores(ix, &way, docids + from, of_field, m);
            for (uint32_t i = 0; i < m; ++i)
                best[i] = of_field[i] > best[i] ? of_field[i] : best[i];
        }
        for (uint32_t i = 0; i < m; ++i)
            scores[from + i] += best[i];
    }
}

void gx_add_scores(const gx_index *ix, const gx_plan *rest, const uint32_t *docids, uint32_t *scores, uint32_t n)
{
    (gx_plan_has_ways(rest, ix) ? add_best_scores : add_scores)(ix, rest, docids, scores, n);
}
