#include "query/order/members.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/attributes/attribute_order.h"
#include "index/read/collection.h"
#include "query/filter/filter.h"
#include "query/plan/phrases.h"

static gx_status no_memory(gx_error *err, uint64_t n)
{
    return gx_fail(err, GX_ENOMEM, "no memory for %llu documents of groups", (unsigned long long)n);
}

/* The value as the column has it; false: no document has it. */
static bool raw_value(const gx_index *file, const gx_collapse *by, const gx_sort_value *v, uint64_t *raw)
{
    const gx_column *c = &file->columns[by->level.column];
    const uint64_t key = gx_sort_key_of_value(file, &by->level, v), sign = UINT64_C(1) << 63;
    if (gx_is_keyword(c->type)) {
        *raw = key / 2;
        return key % 2;
    }
    if (c->type == GX_ATTRIBUTE_FLOAT) {
        *raw = gx_raw_of_sort_key(c->type, key);
        return true;
    }
    const int64_t number = (int64_t)(key ^ sign);
    *raw = (uint64_t)number - (uint64_t)c->base;
    return number >= c->base && (c->width == 8 || *raw >> 8 * c->width == 0);
}

/* Add documents docids[n] of a file that are live and under the filter. */
static bool add(gx_members *m, const gx_part *part, const gx_filter *filter, const uint32_t *docids, uint32_t n,
                uint32_t group)
{
    uint8_t *keep = filter ? malloc(n + 1ull) : NULL;
    if ((filter && !keep) || !gx_reserve(&m->members, &m->max, m->n + n + 1, sizeof *m->members)) {
        free(keep);
        return false;
    }
    if (filter)
        gx_filter_test(filter, docids, n, keep);
    for (uint32_t i = 0; i < n; ++i) {
        if ((filter && !keep[i]) || (part && !gx_deletes_is_live(part->deletes, docids[i])))
            continue;
        const uint64_t docid = part ? part->base + gx_deletes_rank(part->deletes, docids[i]) : docids[i];
        m->members[m->n++] = (gx_member){{docid, 0}, group, 0};
    }
    free(keep);
    return true;
}

/* Those of one file; *left is how many more there may be. */
static gx_status add_of_file(gx_members *m, const gx_list_of_results *l, const gx_index *file, const gx_part *part,
                             const gx_filter *filter, const gx_head *heads, uint32_t n, uint64_t *left, bool *done,
                             gx_error *err)
{
    gx_column *c = &file->columns[l->by->level.column];
    const gx_column_order *order = file->n_docs ? gx_column_get_order(file, c) : NULL;
    *done = order || !file->n_docs;
    for (uint32_t g = 0; order && g < n && *done; ++g) {
        uint64_t raw, begin = 0, end = 0;
        if (!raw_value(file, l->by, &heads[g].value, &raw))
            continue;
        gx_column_order_range(c, order, raw, raw, &begin, &end);
        *done = end - begin <= *left;
        if (*done && !add(m, part, filter, order->docids + begin, (uint32_t)(end - begin), g))
            return no_memory(err, end - begin);
        *left -= *done ? end - begin : 0;
    }
    return GX_OK;
}

/* Whether the documents that match are those with a score, by which they are ordered. */
static bool has_scores(const gx_list_of_results *l)
{
    const gx_query *q = l->query;
    return l->opt.op == GX_OP_OR && !l->sort->n && !l->opt.mask &&
           (q->kind == GX_QUERY_TEXT || q->kind == GX_QUERY_TERMS) && !gx_has_phrases(l->s->en->ix, q, &l->opt);
}

gx_status gx_members_find(gx_members *members, const gx_list_of_results *l, const gx_head *heads, uint32_t n,
                          uint64_t most, bool *done, gx_error *err)
{
    const gx_index *ix = l->s->en->ix;
    const gx_filter *filter = l->query->filter;
    gx_status st = GX_OK;
    *done = has_scores(l);
    members->n = 0;
    for (uint32_t g = 0; g < n && *done; ++g)
        *done = !heads[g].value.missing; /* which are in no order */
    for (uint32_t i = 0; i < (ix->parts ? ix->parts->n : 1) && *done && st == GX_OK; ++i) {
        const gx_part *part = ix->parts ? &ix->parts->parts[i] : NULL;
        st = add_of_file(members, l, part ? part->ix : ix, part, filter && part ? filter->parts[i] : filter, heads, n,
                         &most, done, err);
    }
    return st;
}

/* ---- scores ---- */

static int by_docid(const void *a, const void *b)
{
    const gx_member *x = a, *y = b;
    return (x->found.docid > y->found.docid) - (x->found.docid < y->found.docid);
}

static int by_group(const void *a, const void *b)
{
    const gx_member *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->score != y->score ? (x->score < y->score ? 1 : -1) : by_docid(a, b);
}

typedef struct scoring {
    gx_members *members;
    const gx_list_of_results *l;
    gx_candidate *candidates; /* [members->n] */
    int exponent;
} scoring;

static gx_status score_by_plan(void *user, const gx_plan *plans, uint32_t first, uint32_t n, gx_error *err)
{
    scoring *s = user;
    (void)first, (void)n;
    s->exponent = plans->exponent;
    return gx_session_add_scores_of(s->l->s, plans, s->candidates, s->members->n, err);
}

gx_status gx_members_score(gx_members *members, const gx_list_of_results *l, gx_error *err)
{
    scoring s = {.members = members, .l = l, .candidates = malloc((members->n + 1) * sizeof *s.candidates)};
    size_t n = 0;
    if (!s.candidates)
        return no_memory(err, members->n);
    qsort(members->members, members->n, sizeof *members->members, by_docid);
    for (size_t i = 0; i < members->n; ++i)
        s.candidates[i] = members->members[i].found;
    gx_document_prior prior = {l->opt.prior.weight != 0 ? &l->opt.prior : NULL, 0};
    gx_status st = prior.prior ? gx_prior_find(&prior.column, prior.prior, l->s->en->ix, err) : GX_OK;
    if (st == GX_OK)
        st = gx_session_plan(l->s, l->query, 1, &l->opt, score_by_plan, &s, err);
    for (size_t i = 0; st == GX_OK && i < members->n; ++i) {
        if (!s.candidates[i].score)
            continue;
        members->members[n] = members->members[i];
        members->members[n].found = s.candidates[i];
        members->members[n++].score =
            ldexp((double)(s.candidates[i].score +
                           gx_document_prior_units(&prior, l->s->en->ix, s.candidates[i].docid, s.exponent)),
                  -s.exponent);
    }
    members->n = n;
    free(s.candidates);
    if (n)
        qsort(members->members, n, sizeof *members->members, by_group);
    return st;
}
