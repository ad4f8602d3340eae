/* search.c: gx_search: queries are planned, their plans are run, and the answers are written as docids and scores. */
#include "query/engine/session_state.h"

#include <math.h>
#include <string.h>

#include "engine/api/gpuidx_searching.h"
#include "engine/clock.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "query/exec/wide_hits.h"

#define SLICE_QUERIES 65536u
#define PLANS_SLICE 4096u /* queries that gx_session_plan plans at a time */

/* The i-th of the caller's queries, each as large as the first says. */
static gx_query query_at(const gx_query *queries, size_t i)
{
    const size_t size = queries->size;
    gx_query q = {0};
    memcpy(&q, (const char *)queries + i * size, size < sizeof q ? size : sizeof q);
    return q;
}

/* Every query of a batch has the first one's size. */
static gx_status check_queries(const gx_query *queries, uint32_t n, gx_error *err)
{
    if (n && !queries)
        return gx_fail(err, GX_EUSAGE, "there are no queries: the array is NULL, and n is %u", n);
    gx_status st = n ? gx_sized_check(queries->size, GX_SIZE_THROUGH(gx_query, n_terms), "gx_query", err) : GX_OK;
    for (uint32_t i = 1; i < n && st == GX_OK; ++i) {
        const size_t size = query_at(queries, i).size;
        if (size != queries->size)
            st = gx_fail(err, GX_EUSAGE,
                         "query %u of the batch has size %zu, and the first has %zu; set both to sizeof(gx_query)", i,
                         size, queries->size);
    }
    return st;
}

static gx_status count(gx_session *s, uint32_t n, uint64_t *n_matches, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i)
        st = gx_session_match(s, &s->batch.plans[i], NULL, &n_matches[i], err);
    return st;
}

/* A batch of the caller's: its queries, what is asked of them, and where the answers go. */
typedef struct search_batch {
    const gx_query *queries;
    const gx_query_options *opt;
    const gx_results *out;
    uint32_t max_hits; /* of one query */
} search_batch;

/* From index `at` on. */
static void write_docids(const gx_results *out, size_t at, const gx_hits *h)
{
    for (uint32_t j = 0; out->docids && j < h->n; ++j)
        out->docids[at + j] = gx_key_docid(h->keys[j]);
    for (uint32_t j = 0; out->docids64 && j < h->n; ++j)
        out->docids64[at + j] = gx_hits_docid(h, j);
}

/* Queries [first, first + n) of the batch: plan, run, write the answers. */
static gx_status search_slice(gx_session *s, const search_batch *b, uint32_t first, uint32_t n, gx_error *err)
{
    const gx_query_options *const opt = b->opt;
    const gx_results *const out = b->out;
    const uint32_t max_hits = b->max_hits;
    uint32_t planned = 0;
    gx_status st = gx_batch_buffer_reserve(&s->batch, n, (size_t)n * max_hits, err);
    for (; st == GX_OK && planned < n; ++planned) {
        const gx_query q = query_at(b->queries, (size_t)first + planned);
        if ((st = gx_engine_plan(&s->batch.plans[planned], s->en, &q, opt, err)) != GX_OK)
            break;
        const size_t at = (size_t)planned * max_hits;
        s->batch.hits[planned] = (gx_hits){s->batch.keys + at, 0, s->batch.highs ? s->batch.highs + at : NULL};
    }
    if (st == GX_OK)
        st = gx_session_run(s, s->batch.plans, n, s->batch.hits, err);
    if (st == GX_OK && opt->count && out->n_matches)
        st = count(s, n, out->n_matches + first, err);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i) {
        const gx_hits *h = &s->batch.hits[i];
        const size_t at = ((size_t)first + i) * opt->k;
        if (opt->op == GX_OP_AND_OR && s->batch.plans[i].op == GX_OP_OR && s->batch.plans[i].n_unknown) {
            s->work.and_fell_to_or += 1; /* known when it was planned */
            s->fell_when_planned += s->parts != NULL;
        }
        write_docids(out, at, h);
        for (uint32_t j = 0; j < h->n; ++j) {
            if (out->scores)
                out->scores[at + j] = ldexpf((float)gx_key_score(h->keys[j]), -s->batch.plans[i].exponent);
            if (out->exact_scores)
                out->exact_scores[at + j] = ldexp(gx_key_score(h->keys[j]), -s->batch.plans[i].exponent);
        }
        out->n_hits[first + i] = h->n;
    }
    for (uint32_t i = 0; i < planned; ++i)
        gx_plan_free(&s->batch.plans[i]);
    return st;
}

/* What a search's plans ask: the caller's cancel function, and the time. */
typedef struct time_limit {
    const gx_query_options *opt;
    double until; /* of the monotonic clock */
    bool late;
} time_limit;

static bool is_cancelled_or_late(void *user)
{
    time_limit *l = user;
    if (l->opt->cancel && l->opt->cancel(l->opt->user))
        return true;
    l->late = l->late || gx_clock_seconds() >= l->until;
    return l->late;
}

/* opt, a copy of asked, gets a cancel function that also looks at the time, where that is limited. */
static void begin_time(time_limit *limit, const gx_query_options *asked, gx_query_options *opt)
{
    *limit = (time_limit){asked, 0, false};
    if (asked->seconds > 0) {
        limit->until = gx_clock_seconds() + asked->seconds;
        opt->cancel = is_cancelled_or_late;
        opt->user = limit;
    }
}

static gx_status end_time(const time_limit *limit, gx_status st, gx_error *err)
{
    if (st == GX_ECANCELLED && limit->late)
        return gx_fail(err, GX_EDEADLINE, "the search took longer than the %g s that it was given",
                       limit->opt->seconds);
    return st;
}

gx_status gx_search(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *options,
                    const gx_results *results, gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_results out = {0};
    gx_clear_error(err);
    gx_status st = gx_sized_read(&opt, sizeof opt, options, GX_QUERY_OPTIONS_LEAST, "gx_query_options", err);
    if (st == GX_OK)
        st = gx_sized_read(&out, sizeof out, results, GX_SIZE_THROUGH(gx_results, n_matches), "gx_results", err);
    if (st != GX_OK)
        return st;
    if (n && (!out.n_hits || (!out.docids && !out.docids64 && s->en->ix->n_docs))) /* without documents no results */
        return gx_fail(err, GX_EUSAGE, "there is no place for the results: docids and n_hits are needed");
    if (n && out.docids && gx_index_is_wide(s->en->ix))
        return gx_fail(
            err, GX_EUSAGE,
            "%s has more than 2^32 - 2 documents: gx_results.docids64 takes their docids, and docids is NULL",
            s->en->ix->path);
    if ((st = check_queries(queries, n, err)) != GX_OK)
        return st;
    if (opt.prior.weight != 0)
        return gx_search_by_prior(s, queries, n, &opt, &out, err);
    if ((st = gx_query_options_check(&opt, s->en->ix, err)) != GX_OK)
        return st;

    const gx_query_options asked = opt;
    time_limit limit;
    begin_time(&limit, &asked, &opt);
    const uint32_t n_docs = s->en->ix->n_docs, max_hits = opt.k < n_docs ? opt.k : n_docs ? n_docs : 1;
    const search_batch batch = {queries, &opt, &out, max_hits};
    size_t part = GX_SLICE_KEYS / max_hits;
    part = part < 1 ? 1 : part > SLICE_QUERIES ? SLICE_QUERIES : part;
    for (uint32_t first = 0; first < n && st == GX_OK;) {
        const uint32_t m = n - first < part ? n - first : (uint32_t)part;
        st = search_slice(s, &batch, first, m, err);
        first += m;
    }
    return end_time(&limit, st, err);
}

gx_status gx_session_plan(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *asked,
                          gx_plans_use *use, void *user, gx_error *err)
{
    gx_query_options opt = *asked;
    time_limit limit;
    opt.prior.weight = 0; /* what matches does not depend on it */
    gx_status st = check_queries(queries, n, err);
    if (st != GX_OK || (st = gx_query_options_check(&opt, s->en->ix, err)) != GX_OK)
        return st;
    begin_time(&limit, asked, &opt);
    for (uint32_t first = 0, m; first < n && st == GX_OK; first += m) {
        uint32_t planned = 0;
        m = n - first < PLANS_SLICE ? n - first : PLANS_SLICE;
        st = gx_batch_buffer_reserve(&s->batch, m, 0, err);
        for (; planned < m && st == GX_OK; planned += st == GX_OK) {
            const gx_query q = query_at(queries, (size_t)first + planned);
            st = gx_engine_plan(&s->batch.plans[planned], s->en, &q, &opt, err);
        }
        for (uint32_t i = 0; i < m && st == GX_OK; ++i)
            st = gx_engine_check_mask(s->en, s->batch.plans[i].mask, err);
        if (st == GX_OK)
            st = use(user, s->batch.plans, first, m, err);
        for (uint32_t i = 0; i < planned; ++i)
            gx_plan_free(&s->batch.plans[i]);
    }
    return end_time(&limit, st, err);
}

gx_status gx_search_scorers(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *options,
                            const gx_scorer_choice *scorers, uint32_t n_scorers, const gx_results *results,
                            gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_error why = {0};
    gx_clear_error(err);
    gx_status st = gx_sized_read(&opt, sizeof opt, options, GX_QUERY_OPTIONS_LEAST, "gx_query_options", err);
    if (st != GX_OK)
        return st;
    for (uint32_t i = 0; i < n_scorers && st == GX_OK; ++i) {
        opt.preset = scorers[i].preset;
        opt.k1 = scorers[i].k1;
        opt.b = scorers[i].b;
        st = gx_search(s, queries, n, &opt, &results[i], &why);
        if (st != GX_OK)
            gx_fail(err, st, "scorer %u: %.900s", i + 1, why.text);
    }
    return st;
}
