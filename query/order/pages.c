/* pages.c: gx_search_page: a page of the list of all results, in an order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "query/order/cursor.h"
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
    const gx_status st = gx_sized_read(&p, sizeof p, page, GX_SIZE_THROUGH(gx_page, after_len), "gx_page", err);
    return st == GX_OK ? gx_sort_read(&sort, ix, p.sort, p.sort_len, err) : st;
}

/* What is asked, and where the answers go. */
typedef struct paging {
    gx_session *s;
    const gx_index *ix;
    gx_query_options opt;
    gx_page page;
    gx_sort sort;
    gx_results out;
    gx_page_end *end; /* the caller's [n], or NULL */
    const gx_query *queries;
    uint64_t hash;    /* of the query that has the cursor */
    gx_cursor cursor; /* bytes NULL: none is given */
    gx_hits hits;     /* of one query, room for max_hits */
    size_t max_hits;
    uint32_t skipped; /* of these hits, those that come before the page */
    int exponent;     /* of their scores */
} paging;

static gx_status no_memory(gx_error *err, uint64_t n)
{
    return gx_fail(err, GX_ENOMEM, "no memory for %llu results", (unsigned long long)n);
}

static gx_status reserve_hits(paging *p, uint64_t n, gx_error *err)
{
    if (n <= p->max_hits)
        return GX_OK;
    free(p->hits.keys);
    free(p->hits.highs);
    p->max_hits = 0;
    p->hits.keys = malloc(n * sizeof *p->hits.keys);
    p->hits.highs = gx_index_is_wide(p->ix) ? malloc(n * sizeof *p->hits.highs) : NULL;
    if (!p->hits.keys || (gx_index_is_wide(p->ix) && !p->hits.highs))
        return no_memory(err, n);
    p->max_hits = n;
    return GX_OK;
}

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

/* Use of a plan for its results, which go to p->hits. */
static gx_status run_plan(void *user, const gx_plan *plans, uint32_t first, uint32_t n, gx_error *err)
{
    paging *p = user;
    (void)first, (void)n;
    p->exponent = plans->exponent;
    return gx_session_run(p->s, plans, 1, &p->hits, err);
}

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
    for (; n < p->hits.n; ++n) {
        const double score = ldexp(gx_key_score(p->hits.keys[n]), -p->exponent);
        if (score < place->score || (score == place->score && gx_hits_docid(&p->hits, n) >= place->docid))
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
        if ((st = reserve_hits(p, opt.k, err)) == GX_OK)
            st = gx_session_plan(p->s, &q, 1, &opt, run_plan, p, err);
        if (st != GX_OK)
            break;
        const uint64_t passed = p->cursor.bytes ? n_before_cursor(p) : 0, skipped = passed + p->page.offset;
        p->skipped = skipped < p->hits.n ? (uint32_t)skipped : p->hits.n;
        if (p->hits.n < opt.k || p->hits.n - p->skipped >= p->opt.k || opt.k == last)
            break;
        last = opt.k; /* the commit is another one, in which more results come before */
        before = 2 * before < skipped ? skipped : 2 * before;
    }
    return st;
}

/* ---- by attributes ---- */

static gx_status order_plan(void *user, const gx_plan *plans, uint32_t first, uint32_t n, gx_error *err)
{
    paging *p = user;
    const uint32_t k = n_wanted(p, p->page.offset);
    (void)first, (void)n;
    gx_status st = reserve_hits(p, k, err);
    if (st == GX_OK)
        st = gx_session_run_ordered(p->s, plans, &p->sort, p->cursor.bytes ? &p->cursor.place : NULL, k, &p->hits, err);
    p->exponent = plans->exponent;
    p->skipped = st == GX_OK && p->page.offset < p->hits.n ? (uint32_t)p->page.offset : p->hits.n;
    return st;
}

/* ---- the answer ---- */

static void write_hits(const paging *p, size_t at, uint32_t n)
{
    const gx_results *out = &p->out;
    for (uint32_t j = 0; j < n; ++j) {
        const uint64_t key = p->hits.keys[p->skipped + j], docid = gx_hits_docid(&p->hits, p->skipped + j);
        const double score = ldexp(gx_key_score(key), -p->exponent);
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
    return st != GX_OK
               ? st
               : gx_cursor_write(&out->next, &out->next_len, p->ix, &p->sort, hash, gx_hits_docid(&p->hits, last),
                                 ldexp(gx_key_score(p->hits.keys[last]), -p->exponent), out->first + n, err);
}

static gx_page_end *end_at(const paging *p, size_t i)
{
    return p->end ? (gx_page_end *)(void *)((char *)p->end + i * p->end->size) : NULL;
}

static gx_status answer(paging *p, uint32_t i, gx_error *err)
{
    const gx_query q = query_at(p, i);
    gx_query_options opt = p->opt;
    gx_page_end own;
    p->hits.n = p->skipped = 0;
    gx_status st = p->sort.n ? gx_session_plan(p->s, &q, 1, &opt, order_plan, p, err) : find_by_score(p, i, err);
    if (st != GX_OK)
        return st;
    const uint32_t left = p->hits.n - p->skipped, n = left < p->opt.k ? left : p->opt.k;
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
    const bool paged = p->page.sort_len || p->page.offset || p->page.after_len;
    gx_status st = check_places(p, n, err);
    if (st != GX_OK || (st = gx_query_options_check(&p->opt, p->ix, err)) != GX_OK)
        return st;
    if (paged && !gx_query_options_are_exact(&p->opt))
        return gx_fail(err, GX_EUSAGE, "an answer that is not exact has neither an order by attributes nor pages");
    if (paged && gx_engine_is_shard(p->s->en))
        return gx_fail(err, GX_EUSAGE, "an engine of a shard sees its own parts alone: it has no order and no pages");
    if (p->page.after_len && n != 1)
        return gx_fail(err, GX_EUSAGE, "a cursor is of one query, and there are %u", n);
    return gx_sort_read(&p->sort, p->ix, p->page.sort, p->page.sort_len, err);
}

static gx_status read_cursor(paging *p, gx_error *err)
{
    const gx_query q = query_at(p, 0);
    const gx_status st = gx_cursor_hash(&p->hash, &q, &p->opt, &p->sort, &p->page, err);
    return st != GX_OK ? st
                       : gx_cursor_read(&p->cursor, p->page.after, p->page.after_len, p->ix, &p->sort, p->hash, err);
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
    if (!p.end && !p.sort.n && !p.page.offset && !p.page.after_len)
        return gx_search(s, queries, n, options, results, err);
    if (p.page.after_len)
        st = read_cursor(&p, err);
    for (; st == GX_OK && done < n; done += st == GX_OK)
        st = answer(&p, done, err);
    for (uint32_t i = 0; st != GX_OK && p.end && i < done; ++i) {
        free(end_at(&p, i)->next);
        end_at(&p, i)->next = NULL;
    }
    gx_cursor_free(&p.cursor);
    free(p.hits.keys);
    free(p.hits.highs);
    return st;
}
