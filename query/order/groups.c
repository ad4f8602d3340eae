#include "query/order/groups.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/read/collection.h"
#include "query/facet/sort_keys.h"
#include "query/filter/filter_collect.h"
#include "query/filter/filter_tree.h"
#include "query/order/collapse.h"
#include "query/order/members.h"

#define FIRST_FACTOR 2u     /* of n heads that are wanted, and */
#define FIRST_MORE 8u       /* so many more, documents are found first */
#define FREQUENT 8u         /* a value of so many of the documents found is left out of the next search */
#define MOST_LEFT_OUT 512u  /* values */
#define MOST_TOGETHER 1024u /* documents of all groups that are found by one search */

static gx_status no_memory(gx_error *err, uint64_t n)
{
    return gx_fail(err, GX_ENOMEM, "no memory for the groups of %llu results", (unsigned long long)n);
}

/* ---- a list's first documents ---- */

typedef struct finding {
    const gx_list_of_results *l;
    gx_first_results found;
    uint64_t *words; /* of matches */
    uint64_t n_matches;
} finding;

static void free_finding(finding *f)
{
    gx_first_results_free(&f->found);
    free(f->words);
}

/* The first k documents that the filter selects (NULL: the query's own), to f->found. */
static gx_status run(finding *f, const gx_filter *filter, uint64_t k, gx_error *err)
{
    const gx_index *ix = f->l->s->en->ix;
    const uint64_t n_docs = gx_index_n_docs(ix), most = n_docs < UINT32_MAX ? n_docs : UINT32_MAX - 1;
    gx_query q = *f->l->query;
    gx_query_options opt = f->l->opt;
    opt.k = k < most ? (uint32_t)k : most ? (uint32_t)most : 1;
    q.filter = filter ? filter : q.filter;
    return gx_first_results_find(&f->found, f->l->s, &q, &opt, opt.k, f->l->sort, NULL, err);
}

/* ---- heads ---- */

typedef struct search {
    finding f;
    gx_heads *heads;
    gx_value_table table;
    uint8_t *left_out; /* [max_left_out] of each head: its value is left out of the next searches */
    uint32_t *counts;  /* [max_counts] of each head: documents of the last search */
    size_t max_left_out, max_counts, n_left_out;
} search;

static gx_status add_head(search *s, const gx_head *head, gx_error *err)
{
    gx_heads *h = s->heads;
    const size_t n = h->n + 1;
    if (!gx_reserve(&h->heads, &h->max, n, sizeof *h->heads) ||
        !gx_reserve(&s->left_out, &s->max_left_out, n, sizeof *s->left_out) ||
        !gx_reserve(&s->counts, &s->max_counts, n, sizeof *s->counts))
        return no_memory(err, n);
    h->heads[h->n] = *head;
    s->left_out[h->n] = 0;
    s->counts[h->n] = 0;
    return gx_value_table_add(&s->table, h->heads, ++h->n, s->f.l->by) ? GX_OK : no_memory(err, n);
}

/* Take what is new among the documents found, until there are n heads. */
static gx_status take_heads(search *s, uint64_t n, gx_error *err)
{
    const gx_list_of_results *l = s->f.l;
    const gx_first_results *found = &s->f.found;
    gx_status st = GX_OK;
    if (s->heads->n)
        memset(s->counts, 0, s->heads->n * sizeof *s->counts);
    for (uint32_t i = 0; i < found->n && s->heads->n < n && st == GX_OK; ++i) {
        gx_head head = {.docid = found->docids[i], .score = found->scores[i]};
        head.value = gx_collapse_value(l->s->en->ix, l->by, head.docid);
        size_t at = gx_value_table_find(&s->table, s->heads->heads, l->by, &head.value);
        if (at == SIZE_MAX) {
            at = s->heads->n;
            st = add_head(s, &head, err);
        }
        if (st == GX_OK)
            ++s->counts[at];
    }
    return st;
}

/* The filter of the next search: without the values that many of the last documents had. */
static gx_status leave_out(search *s, gx_filter **filter, gx_error *err)
{
    bool more = false;
    for (size_t i = 0; i < s->heads->n && s->n_left_out < MOST_LEFT_OUT; ++i) {
        if (s->left_out[i] || s->counts[i] < FREQUENT)
            continue;
        s->left_out[i] = 1;
        ++s->n_left_out;
        more = true;
    }
    if (!more)
        return GX_OK;
    gx_filter_close(*filter);
    *filter = NULL;
    return gx_collapse_filter(filter, s->f.l->s->en->ix, s->f.l->by, s->heads->heads, s->heads->n, s->left_out, true,
                              s->f.l->query->filter, err);
}

gx_status gx_heads_find(gx_heads *heads, const gx_list_of_results *l, uint64_t n, gx_error *err)
{
    const uint64_t n_docs = gx_index_n_docs(l->s->en->ix);
    search s = {.f = {.l = l}, .heads = heads};
    gx_filter *filter = NULL;
    gx_status st = GX_OK;
    heads->n = 0;
    heads->all = false;
    n = n < n_docs ? n : n_docs;
    for (uint64_t wanted = FIRST_FACTOR * n + FIRST_MORE; st == GX_OK; wanted *= 2) {
        if ((st = run(&s.f, filter, wanted, err)) != GX_OK || (st = take_heads(&s, n, err)) != GX_OK)
            break;
        heads->all = heads->n < n && s.f.found.n < wanted;
        if (heads->n >= n || heads->all)
            break;
        st = leave_out(&s, &filter, err);
    }
    gx_filter_close(filter);
    free_finding(&s.f);
    free(s.table.slots);
    free(s.left_out);
    free(s.counts);
    return st;
}

bool gx_head_is_behind(const gx_list_of_results *l, const gx_head *head, const gx_position *place)
{
    const gx_index *ix = l->s->en->ix;
    const double score = head->score;
    uint32_t local = (uint32_t)head->docid;
    const gx_index *file = l->sort->n && ix->parts ? gx_parts_find(ix->parts, head->docid, &local)->ix : ix;
    int order = 0;
    for (uint32_t i = 0; i < l->sort->n && order == 0; ++i) {
        const gx_sort_value v = gx_sort_value_of(file, &l->sort->levels[i], local);
        order = gx_sort_compare(&l->sort->levels[i], &v, &place->values[i]);
    }
    return order ? order > 0 : score < place->score || (score == place->score && head->docid >= place->docid);
}

/* ---- groups ---- */

/* What gx_groups_free frees. */
typedef struct whole_groups {
    gx_groups groups; /* first */
    gx_group *own;    /* [n] */
    uint64_t *docids; /* [n * most], of each group `most` */
    double *scores;
} whole_groups;

void gx_groups_free(gx_groups *g)
{
    whole_groups *w = (whole_groups *)(void *)g;
    if (!w)
        return;
    free(w->own);
    free(w->docids);
    free(w->scores);
    free(w);
}

static gx_value value_of(const gx_collapse *by, const gx_sort_value *v)
{
    gx_value out = {0};
    if (v->missing)
        return out;
    if (gx_is_keyword(by->level.type)) {
        out.string = v->text;
        out.len = v->len;
    } else if (by->level.type == GX_ATTRIBUTE_FLOAT) {
        out.real = gx_key_float(v->key);
    } else {
        out.number = gx_key_number(v->key);
    }
    return out;
}

static whole_groups *open_groups(const gx_list_of_results *l, const gx_head *heads, uint32_t n)
{
    const gx_collapse *by = l->by;
    whole_groups *w = calloc(1, sizeof *w);
    const size_t room = (size_t)n * by->most + 1;
    if (!w || !(w->own = calloc(n + 1ull, sizeof *w->own)) || !(w->docids = malloc(room * sizeof *w->docids)) ||
        !(w->scores = malloc(room * sizeof *w->scores))) {
        gx_groups_free((gx_groups *)w);
        return NULL;
    }
    w->groups = (gx_groups){by->level.column, by->level.type, n, by->most, w->own};
    for (uint32_t i = 0; i < n; ++i)
        w->own[i] = (gx_group){.missing = heads[i].value.missing,
                               .value = value_of(by, &heads[i].value),
                               .docids = w->docids + (size_t)i * by->most,
                               .scores = w->scores + (size_t)i * by->most};
    return w;
}

/* Add hit number i to its group where there is room. */
static void add_document(whole_groups *w, uint32_t group, const finding *f, uint32_t i)
{
    gx_group *g = &w->own[group];
    const size_t at = (size_t)group * w->groups.most + g->n;
    if (g->n == w->groups.most)
        return;
    w->docids[at] = f->found.docids[i];
    w->scores[at] = f->found.scores[i];
    ++g->n;
}

/* About how many documents of the index have these values. */
static uint64_t count_documents(const gx_filter *values)
{
    uint64_t n = 0;
    if (!values->parts)
        return gx_filter_find(values, MOST_TOGETHER).n;
    for (uint32_t i = 0; i < values->ix->parts->n && n <= MOST_TOGETHER; ++i) {
        const uint64_t more = gx_filter_find(values->parts[i], MOST_TOGETHER).n;
        n = more > MOST_TOGETHER ? more : n + more;
    }
    return n;
}

/* By one search of all documents of the groups, which are few. */
static gx_status find_together(whole_groups *w, finding *f, const gx_head *heads, const gx_filter *filter,
                               uint64_t n_documents, gx_error *err)
{
    const gx_list_of_results *l = f->l;
    gx_value_table t = {0};
    bool good = true;
    for (uint32_t i = 0; i < w->groups.n && good; ++i)
        good = gx_value_table_add(&t, heads, i + 1ull, l->by);
    const gx_status st = good ? run(f, filter, n_documents, err) : no_memory(err, w->groups.n);
    for (uint32_t i = 0; st == GX_OK && i < f->found.n; ++i) {
        const gx_sort_value v = gx_collapse_value(l->s->en->ix, l->by, f->found.docids[i]);
        const size_t g = gx_value_table_find(&t, heads, l->by, &v);
        if (g == SIZE_MAX)
            continue; /* of a damaged file */
        ++w->own[g].n_matches;
        add_document(w, (uint32_t)g, f, i);
    }
    free(t.slots);
    return st;
}

static gx_status match_plan(void *user, const gx_plan *plans, uint32_t first, uint32_t n, gx_error *err)
{
    finding *f = user;
    (void)first, (void)n;
    return gx_session_match(f->l->s, plans, f->words, &f->n_matches, err);
}

/* Which group a file's documents belong to, by the keys of their values. */
typedef struct key_table {
    uint64_t *keys;   /* [n_slots], a power of two */
    uint32_t *groups; /* [n_slots]: the group's number plus 1, or 0 */
    size_t n_slots;
    uint32_t missing; /* the group of documents without a value, plus 1, or 0 */
} key_table;

static size_t key_slot(const key_table *t, uint64_t key)
{
    size_t s = (key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (t->n_slots - 1);
    while (t->groups[s] && t->keys[s] != key)
        s = (s + 1) & (t->n_slots - 1);
    return s;
}

static void set_keys(key_table *t, const gx_collapse *by, const gx_index *file, const gx_head *heads, uint32_t n)
{
    memset(t->groups, 0, t->n_slots * sizeof *t->groups);
    t->missing = 0;
    for (uint32_t g = 0; g < n; ++g) {
        if (heads[g].value.missing) {
            t->missing = g + 1;
            continue;
        }
        const uint64_t key = gx_sort_key_of_value(file, &by->level, &heads[g].value);
        const size_t s = key_slot(t, key);
        t->keys[s] = key;
        t->groups[s] = g + 1;
    }
}

/* Add the numbers of matches of one file. */
static void tally(whole_groups *w, const gx_collapse *by, const key_table *t, const gx_index *file,
                  const uint64_t *words)
{
    const gx_column *c = &file->columns[by->level.column];
    for (size_t i = 0; i < ((size_t)file->n_docs + 63) / 64; ++i)
        for (uint64_t left = words[i]; left; left &= left - 1) {
            const uint32_t docid = (uint32_t)(64 * i) + (uint32_t)__builtin_ctzll(left);
            const uint32_t group =
                gx_column_has(c, docid) ? t->groups[key_slot(t, gx_sort_local_key(&by->level, c, docid))] : t->missing;
            if (group)
                ++w->own[group - 1].n_matches;
        }
}

static gx_status tally_all(whole_groups *w, const finding *f, key_table *t, const gx_head *heads, gx_error *err)
{
    const gx_collapse *by = f->l->by;
    const gx_index *ix = f->l->s->en->ix;
    if (!ix->parts) {
        set_keys(t, by, ix, heads, w->groups.n);
        tally(w, by, t, ix, f->words);
        return GX_OK;
    }
    for (uint32_t i = 0; i < ix->parts->n; ++i) {
        const gx_part *part = &ix->parts->parts[i];
        uint64_t *local = calloc((size_t)part->ix->n_docs / 64 + 2, sizeof *local);
        if (!local)
            return no_memory(err, w->groups.n);
        gx_part_scatter(part, f->words, local);
        set_keys(t, by, part->ix, heads, w->groups.n);
        tally(w, by, t, part->ix, local);
        free(local);
    }
    return GX_OK;
}

/* By the values of all matches. */
static gx_status count_all(whole_groups *w, finding *f, const gx_head *heads, gx_error *err)
{
    const gx_list_of_results *l = f->l;
    key_table t = {.n_slots = 8};
    while (t.n_slots < 4 * (size_t)w->groups.n)
        t.n_slots *= 2;
    t.keys = malloc(t.n_slots * sizeof *t.keys);
    t.groups = malloc(t.n_slots * sizeof *t.groups);
    f->words = malloc((gx_index_n_words(l->s->en->ix) + 1) * sizeof *f->words);
    gx_status st = t.keys && t.groups && f->words ? GX_OK : no_memory(err, w->groups.n);
    if (st == GX_OK)
        st = gx_session_plan(l->s, l->query, 1, &l->opt, match_plan, f, err);
    if (st == GX_OK)
        st = tally_all(w, f, &t, heads, err);
    free(t.keys);
    free(t.groups);
    return st;
}

/* By a search of each group. */
static gx_status find_each(whole_groups *w, finding *f, const gx_head *heads, gx_error *err)
{
    const gx_list_of_results *l = f->l;
    gx_status st = GX_OK;
    for (uint32_t g = 0; g < w->groups.n && st == GX_OK; ++g) {
        gx_filter *filter;
        st = gx_collapse_filter(&filter, l->s->en->ix, l->by, &heads[g], 1, NULL, false, l->query->filter, err);
        if (st == GX_OK)
            st = run(f, filter, w->groups.most, err);
        for (uint32_t i = 0; st == GX_OK && i < f->found.n; ++i)
            add_document(w, g, f, i);
        gx_filter_close(filter);
    }
    return st;
}

/* The heads are the only documents that are asked for. */
static void take_the_heads(whole_groups *w, const gx_head *heads)
{
    for (uint32_t g = 0; g < w->groups.n; ++g) {
        w->docids[g] = heads[g].docid;
        w->scores[g] = heads[g].score;
        w->own[g].n = 1;
    }
}

/* By the scores of the documents of the groups, which are few. *done: they are. */
static gx_status find_members(whole_groups *w, const gx_list_of_results *l, const gx_head *heads, bool *done,
                              gx_error *err)
{
    gx_members m = {0};
    gx_status st = gx_members_find(&m, l, heads, w->groups.n, MOST_TOGETHER, done, err);
    if (st == GX_OK && *done)
        st = gx_members_score(&m, l, err);
    for (size_t i = 0; st == GX_OK && *done && i < m.n; ++i) {
        gx_group *g = &w->own[m.members[i].group];
        const size_t at = (size_t)m.members[i].group * w->groups.most + g->n;
        ++g->n_matches;
        if (g->n == w->groups.most)
            continue;
        w->docids[at] = m.members[i].found.docid;
        w->scores[at] = m.members[i].score;
        ++g->n;
    }
    free(m.members);
    return st;
}

/* By searches of the groups' documents. */
static gx_status find_by_filters(whole_groups *w, finding *f, const gx_head *heads, gx_error *err)
{
    const gx_list_of_results *l = f->l;
    const gx_index *ix = l->s->en->ix;
    gx_filter *values = NULL, *both = NULL;
    uint64_t n_documents = UINT64_MAX;
    gx_status st = GX_OK;
    if (w->groups.n <= MOST_TOGETHER &&
        (st = gx_collapse_filter(&values, ix, l->by, heads, w->groups.n, NULL, false, NULL, err)) == GX_OK)
        n_documents = count_documents(values);
    if (st == GX_OK && n_documents <= MOST_TOGETHER) {
        if (l->query->filter)
            st = gx_filter_both(&both, l->query->filter, values, err);
        values = l->query->filter ? NULL : values;
        if (st == GX_OK)
            st = find_together(w, f, heads, both ? both : values, n_documents, err);
    } else if (st == GX_OK) {
        st = count_all(w, f, heads, err);
        if (st == GX_OK && w->groups.most > 1)
            st = find_each(w, f, heads, err);
        else if (st == GX_OK)
            take_the_heads(w, heads);
    }
    gx_filter_close(values);
    gx_filter_close(both);
    return st;
}

gx_status gx_groups_find(gx_groups **out, const gx_list_of_results *l, const gx_head *heads, uint32_t n, gx_error *err)
{
    finding f = {.l = l};
    whole_groups *w = open_groups(l, heads, n);
    bool done = n == 0;
    *out = NULL;
    gx_status st = w ? GX_OK : no_memory(err, n);
    if (st == GX_OK && !done)
        st = find_members(w, l, heads, &done, err);
    if (st == GX_OK && !done)
        st = find_by_filters(w, &f, heads, err);
    if (st == GX_OK)
        *out = &w->groups;
    else
        gx_groups_free((gx_groups *)w);
    free_finding(&f);
    return st;
}
