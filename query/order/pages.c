/* pages.c: gx_search_page: a page of the list of all results, in an order. */
#include <stdlib.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "query/order/cursor.h"
#include "query/order/groups.h"
#include "query/plan/approximate.h"

void gx_page_init(gx_page *p, size_t size)
{
    const gx_page defaults = {.size = sizeof defaults};
    gx_sized_init(p, size, &defaults, sizeof defaults);
}

gx_status gx_page_check(const gx_index *ix, const gx_page *page, gx_error *err)
{
    gx_page p = {.size = sizeof p};
    gx_sort sort;
    gx_collapse by;
    gx_status st = gx_sized_read(&p, sizeof p, page, GX_SIZE_THROUGH(gx_page, after_len), "gx_page", err);
    if (st == GX_OK)
        st = gx_sort_read(&sort, ix, p.sort, p.sort_len, err);
    return st == GX_OK ? gx_collapse_read(&by, ix, p.collapse, p.collapse_len, err) : st;
}

/* What is asked, and where the answers go. */
typedef struct paging {
    gx_session *s;
    const gx_index *ix;
    gx_query_options opt;
    gx_page page;
    gx_sort sort;
    gx_collapse by;
    gx_results out;
    gx_page_end *end; /* the caller's [n], or NULL */
    const gx_query *queries;
    uint64_t hash;          /* of the query that has the cursor */
    gx_cursor cursor;       /* bytes NULL: none is given */
    gx_first_results found; /* of one query */
    uint32_t skipped;       /* of these, those that come before the page */
    gx_groups *groups;      /* of the page, or NULL */
} paging;

/* So many results are found, of which the last ones are the page: 1 to the number of documents. */
static uint32_t n_wanted(const paging *p, uint64_t before)
{
    const uint64_t k = p->opt.k, n_docs = gx_index_n_docs(p->ix), most = n_docs < UINT32_MAX ? n_docs : UINT32_MAX - 1;
    const uint64_t n = before > most ? most : before + k > most ? most : before + k;
    return n ? (uint32_t)n : 1;
}

static gx_query query_at(const paging *p, size_t i)
{
    const size_t size = p->queries->size;
    gx_query q = {0};
    memcpy(&q, (const char *)p->queries + i * size, size < sizeof q ? size : sizeof q);
    return q;
}

/* ---- by score ---- */

/* Use of a plan for the number of its matches. */
static gx_status count_plan(void *user, const gx_plan *plans, uint32_t first, uint32_t n, gx_error *err)
{
    uint64_t *counts = ((paging *)user)->out.n_matches;
    (void)n;
    return gx_session_match(((paging *)user)->s, plans, NULL, &counts[first], err);
}

/* AND answers where it has k results in all: pages are cuts of one answer. */
static gx_status settle_op(const paging *p, const gx_query *q, gx_query_options *opt, gx_error *err)
{
    paging counting = *p;
    uint64_t n = 0;
    if (opt->op != GX_OP_AND_OR)
        return GX_OK;
    counting.out.n_matches = &n;
    opt->op = GX_OP_AND;
    const gx_status st = gx_session_plan(p->s, q, 1, opt, count_plan, &counting, err);
    opt->op = n >= p->opt.k ? GX_OP_AND : GX_OP_OR;
    return st;
}

/* The number of hits that are not behind the cursor. */
static uint32_t n_before_cursor(const paging *p)
{
    const gx_position *place = &p->cursor.place;
    uint32_t n = 0;
    for (; n < p->found.n; ++n) {
        const double score = p->found.scores[n];
        if (score < place->score || (score == place->score && p->found.docids[n] >= place->docid))
            break;
    }
    return n;
}

static gx_status find_by_score(paging *p, uint32_t i, gx_error *err)
{
    const gx_query q = query_at(p, i);
    gx_query_options opt = p->opt;
    uint64_t before = p->page.offset + (p->cursor.bytes ? p->cursor.n_before : 0);
    before = before < p->page.offset ? UINT64_MAX : before;
    gx_status st = before ? settle_op(p, &q, &opt, err) : GX_OK;
    for (uint32_t last = 0; st == GX_OK;) {
        opt.k = n_wanted(p, before);
        if ((st = gx_first_results_find(&p->found, p->s, &q, &opt, opt.k, &p->sort, NULL, err)) != GX_OK)
            break;
        const uint64_t passed = p->cursor.bytes ? n_before_cursor(p) : 0, skipped = passed + p->page.offset;
        p->skipped = skipped < p->found.n ? (uint32_t)skipped : p->found.n;
        if (p->found.n < opt.k || p->found.n - p->skipped >= p->opt.k || opt.k == last)
            break;
        last = opt.k; /* the commit is another one, in which more results come before */
        before = 2 * before < skipped ? skipped : 2 * before;
    }
    return st;
}

/* ---- by attributes ---- */

static gx_status find_by_attributes(paging *p, uint32_t i, gx_error *err)
{
    const gx_query q = query_at(p, i);
    const uint32_t k = n_wanted(p, p->page.offset);
    const gx_status st = gx_first_results_find(&p->found, p->s, &q, &p->opt, k, &p->sort,
                                               p->cursor.bytes ? &p->cursor.place : NULL, err);
    p->skipped = st == GX_OK && p->page.offset < p->found.n ? (uint32_t)p->page.offset : p->found.n;
    return st;
}

/* ---- by groups ---- */

/* The number of heads that are not behind the cursor. */
static uint64_t n_heads_before(const paging *p, const gx_list_of_results *l, const gx_heads *h)
{
    uint64_t n = 0;
    while (p->cursor.bytes && n < h->n && !gx_head_is_behind(l, &h->heads[n], &p->cursor.place))
        ++n;
    return n;
}

/* The heads of the page: heads[*first, *first + *n). */
static gx_status find_heads(paging *p, const gx_list_of_results *l, gx_heads *h, size_t *first, uint32_t *n,
                            gx_error *err)
{
    uint64_t before = p->page.offset + (p->cursor.bytes ? p->cursor.n_before : 0);
    before = before < p->page.offset ? UINT64_MAX / 2 : before;
    for (gx_status st;;) {
        const uint64_t wanted = before + p->opt.k;
        if ((st = gx_heads_find(h, l, wanted, err)) != GX_OK)
            return st;
        const uint64_t passed = n_heads_before(p, l, h) + p->page.offset;
        *first = passed < h->n && passed >= p->page.offset ? (size_t)passed : h->n;
        *n = h->n - *first < p->opt.k ? (uint32_t)(h->n - *first) : p->opt.k;
        if (*n == p->opt.k || h->n < wanted)
            return GX_OK;
        before = 2 * before < passed ? passed : 2 * before; /* another commit, in which more come before */
    }
}

static gx_status find_groups(paging *p, uint32_t i, bool members, gx_error *err)
{
    const gx_query q = query_at(p, i);
    gx_list_of_results l = {p->s, &q, p->opt, &p->sort, &p->by};
    gx_heads h = {0};
    size_t first = 0;
    uint32_t n = 0;
    gx_status st = settle_op(p, &q, &l.opt, err);
    if (st == GX_OK)
        st = find_heads(p, &l, &h, &first, &n, err);
    if (st == GX_OK)
        st = gx_first_results_reserve(&p->found, p->s, n + 1ull, err);
    for (uint32_t j = 0; st == GX_OK && j < n; ++j) {
        p->found.docids[j] = h.heads[first + j].docid;
        p->found.scores[j] = h.heads[first + j].score;
    }
    p->found.n = st == GX_OK ? n : 0;
    if (st == GX_OK && members)
        st = gx_groups_find(&p->groups, &l, h.heads ? h.heads + first : NULL, n, err);
    free(h.heads);
    return st;
}

/* ---- the answer ---- */

static void write_hits(const paging *p, size_t at, uint32_t n)
{
    const gx_results *out = &p->out;
    for (uint32_t j = 0; j < n; ++j) {
        const uint64_t docid = p->found.docids[p->skipped + j];
        const double score = p->found.scores[p->skipped + j];
        if (out->docids)
            out->docids[at + j] = (uint32_t)docid;
        if (out->docids64)
            out->docids64[at + j] = docid;
        if (out->scores)
            out->scores[at + j] = (float)score;
        if (out->exact_scores)
            out->exact_scores[at + j] = score;
    }
}

static gx_status write_end(const paging *p, uint32_t i, uint32_t n, gx_page_end *out, gx_error *err)
{
    const gx_query q = query_at(p, i);
    uint64_t hash;
    *out = (gx_page_end){.size = sizeof *out,
                         .first = p->page.offset + (p->cursor.bytes ? p->cursor.n_before : 0),
                         .moved = p->cursor.moved};
    if (n == 0)
        return GX_OK;
    const uint32_t last = p->skipped + n - 1;
    const gx_status st = gx_cursor_hash(&hash, &q, &p->opt, &p->sort, &p->page, err);
    return st != GX_OK ? st
                       : gx_cursor_write(&out->next, &out->next_len, p->ix, &p->sort, hash, p->found.docids[last],
                                         p->found.scores[last], out->first + n, err);
}

static gx_page_end *end_at(const paging *p, size_t i)
{
    return p->end ? (gx_page_end *)(void *)((char *)p->end + i * p->end->size) : NULL;
}

/* Whether the caller takes groups. */
static bool wants_groups(const paging *p, uint32_t i)
{
    return p->by.any && p->end && end_at(p, i)->size >= GX_SIZE_THROUGH(gx_page_end, groups);
}

static gx_status find_page(paging *p, uint32_t i, gx_error *err)
{
    p->found.n = p->skipped = 0;
    if (p->by.any)
        return find_groups(p, i, wants_groups(p, i), err);
    return p->sort.n ? find_by_attributes(p, i, err) : find_by_score(p, i, err);
}

static gx_status answer(paging *p, uint32_t i, gx_error *err)
{
    const gx_query q = query_at(p, i);
    gx_query_options opt = p->opt;
    gx_page_end own;
    gx_status st = find_page(p, i, err);
    if (st != GX_OK)
        return st;
    const uint32_t left = p->found.n - p->skipped, n = left < p->opt.k ? left : p->opt.k;
    write_hits(p, (size_t)i * p->opt.k, n);
    p->out.n_hits[i] = n;
    if (p->opt.count && p->out.n_matches) {
        paging counting = *p;
        counting.out.n_matches += i;
        st = gx_session_plan(p->s, &q, 1, &opt, count_plan, &counting, err);
    }
    if (st == GX_OK && p->end && (st = write_end(p, i, n, &own, err)) == GX_OK) {
        const size_t size = end_at(p, i)->size;
        own.size = size;
        own.groups = p->groups;
        p->groups = NULL;
        memcpy(end_at(p, i), &own, size < sizeof own ? size : sizeof own);
    }
    return st;
}

/* ---- what is asked ---- */

static gx_status check_places(const paging *p, uint32_t n, gx_error *err)
{
    const gx_results *out = &p->out;
    if (n && (!p->queries || !out->n_hits || (!out->docids && !out->docids64 && p->ix->n_docs)))
        return gx_fail(err, GX_EUSAGE,
                       "there are no queries, or no place for the results: docids and n_hits are needed");
    if (n && out->docids && gx_index_is_wide(p->ix))
        return gx_fail(err, GX_EUSAGE,
                       "%s has more than 2^32 - 2 documents: docids is NULL, docids64 takes their docids", p->ix->path);
    for (uint32_t i = 0; p->end && i < n; ++i) {
        const gx_status st =
            gx_sized_check(end_at(p, i)->size, GX_SIZE_THROUGH(gx_page_end, moved), "gx_page_end", err);
        if (st != GX_OK)
            return st;
    }
    return GX_OK;
}

static gx_status check(paging *p, uint32_t n, gx_error *err)
{
    const bool paged = p->page.sort_len || p->page.offset || p->page.after_len || p->page.collapse_len;
    gx_query_options opt = p->opt;
    gx_status st = check_places(p, n, err);
    opt.prior.weight = 0;
    if (st != GX_OK || (st = gx_query_options_check(&opt, p->ix, err)) != GX_OK)
        return st;
    if (p->opt.prior.weight != 0 && (st = gx_prior_check(&p->opt.prior, p->ix, err)) != GX_OK)
        return st;
    if (paged && !gx_query_options_are_exact(&p->opt))
        return gx_fail(err, GX_EUSAGE,
                       "an answer that is not exact has no order by attributes, no groups and no pages");
    if (paged && gx_engine_is_shard(p->s->en))
        return gx_fail(err, GX_EUSAGE, "an engine of a shard sees its own parts alone: it has no order and no pages");
    if (p->page.after_len && n != 1)
        return gx_fail(err, GX_EUSAGE, "a cursor is of one query, and there are %u", n);
    st = gx_sort_read(&p->sort, p->ix, p->page.sort, p->page.sort_len, err);
    return st == GX_OK ? gx_collapse_read(&p->by, p->ix, p->page.collapse, p->page.collapse_len, err) : st;
}

static gx_status read_cursor(paging *p, gx_error *err)
{
    const gx_query q = query_at(p, 0);
    const gx_status st = gx_cursor_hash(&p->hash, &q, &p->opt, &p->sort, &p->page, err);
    return st != GX_OK ? st
                       : gx_cursor_read(&p->cursor, p->page.after, p->page.after_len, p->ix, &p->sort, p->hash, err);
}

/* Take back what the caller would free. */
static void empty_end(const paging *p, uint32_t i)
{
    gx_page_end *end = end_at(p, i);
    free(end->next);
    end->next = NULL;
    if (wants_groups(p, i)) {
        gx_groups_free(end->groups);
        end->groups = NULL;
    }
}

gx_status gx_search_page(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *options,
                         const gx_page *page, const gx_results *results, gx_page_end *end, gx_error *err)
{
    paging p = {.s = s,
                .ix = s->en->ix,
                .opt = GX_QUERY_OPTIONS,
                .page = {.size = sizeof p.page},
                .end = end,
                .queries = queries};
    uint32_t done = 0;
    gx_clear_error(err);
    gx_status st = gx_sized_read(&p.opt, sizeof p.opt, options, GX_QUERY_OPTIONS_LEAST, "gx_query_options", err);
    if (st == GX_OK)
        st = gx_sized_read(&p.out, sizeof p.out, results, GX_SIZE_THROUGH(gx_results, n_matches), "gx_results", err);
    if (st == GX_OK && page)
        st = gx_sized_read(&p.page, sizeof p.page, page, GX_SIZE_THROUGH(gx_page, after_len), "gx_page", err);
    if (st == GX_OK)
        st = check(&p, n, err);
    if (st != GX_OK)
        return st;
    if (!p.end && !p.sort.n && !p.page.offset && !p.page.after_len && !p.by.any)
        return gx_search(s, queries, n, options, results, err);
    if (p.page.after_len)
        st = read_cursor(&p, err);
    for (; st == GX_OK && done < n; done += st == GX_OK)
        st = answer(&p, done, err);
    for (uint32_t i = 0; st != GX_OK && p.end && i < done; ++i)
        empty_end(&p, i);
    gx_groups_free(p.groups);
    gx_cursor_free(&p.cursor);
    gx_first_results_free(&p.found);
    return st;
}
