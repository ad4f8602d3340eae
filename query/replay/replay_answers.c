/* replay_answers.c: batches of a replay are planned and answered, and their answers delivered in order. */
#include <inttypes.h>
#include <stdlib.h>

#include "engine/status.h"
#include "query/exec/wide_hits.h"
#include "query/replay/replay_state.h"

/* Plan a query. Where it is to be expanded, `session`, of engine `en`, finds its feedback
 * documents. */
static gx_status plan_query(gx_replay_worker *w, gx_plan *out, const gx_query *query, gx_session *session,
                            gx_engine *en, gx_error *err)
{
    const gx_replay_options *opt = w->r->opt;
    gx_query_options first = opt->query, second = opt->query;
    gx_query expanded = {.size = sizeof expanded, .kind = GX_QUERY_TERMS, .filter = query->filter};
    gx_weighted_term *terms;
    if (!opt->rm3)
        return gx_engine_plan(out, w->r->en, query, &opt->query, err);
    if (en == opt->other)
        first.mask = opt->other_mask;
    gx_status st = gx_rm3_expand(&terms, &expanded.n_terms, session, w->r->ix, query, &first, opt->rm3, err);
    if (st != GX_OK)
        return st;
    expanded.terms = terms;
    second.op = GX_OP_OR;
    st = gx_engine_plan(out, w->r->en, &expanded, &second, err);
    free(terms);
    return st;
}

static void free_plan(gx_replay_worker *w, uint32_t i)
{
    gx_plan_free(&w->plans[i]);
    gx_filter_close(w->filters[i]);
}

/* Plan query i of the batch, with its filter. */
static gx_status plan_filtered(gx_replay_worker *w, uint32_t i, gx_session *session, gx_engine *en, gx_error *err)
{
    const gx_replay_query *q = &w->queries[i];
    gx_status st = GX_OK;
    w->filters[i] = NULL;
    if (q->filter_len)
        st = gx_filter_open(&w->filters[i], w->r->ix, w->bytes + q->filter, q->filter_len, w->r->opt->filter_options,
                            err);
    gx_query query;
    if (st == GX_OK)
        st = gx_replay_query_of(w, i, &query, err);
    if (st == GX_OK)
        st = plan_query(w, &w->plans[i], &query, session, en, err);
    if (st == GX_ENOTFOUND || st == GX_EIO || st == GX_EINPUT) /* a file of ids that cannot be read is its fault, too */
        st = GX_EUSAGE;
    if (st != GX_OK) {
        gx_filter_close(w->filters[i]);
        w->filters[i] = NULL;
    }
    return st;
}

bool gx_replay_plan(gx_replay_worker *w, gx_session *session, gx_engine *en)
{
    gx_replay_pass *r = w->r;
    for (uint32_t i = 0; i < w->n; ++i) {
        const gx_replay_query *q = &w->queries[i];
        gx_error err = {0}, why;
        gx_status st = plan_filtered(w, i, session, en, &err);
        if (st == GX_EUSAGE) { /* the query is at fault, since the options have been checked */
            st = gx_fail(&why, GX_EINPUT, "%s:%" PRIu64 ": %.800s", r->opt->log, q->line, err.text);
            err = why;
            if (r->opt->skip_bad) {
                if (r->kind == GX_REPLAY_MEASURE)
                    gx_replay_say(r, err.text);
                ++w->impossible;
                st = gx_plan_make(&w->plans[i], r->ix, "", 0, &r->opt->query, &err);
            }
        }
        if (st != GX_OK) {
            while (i-- > 0)
                free_plan(w, i);
            return gx_replay_fail(r, st, &err);
        }
    }
    return true;
}

void gx_replay_free_plans(gx_replay_worker *w)
{
    for (uint32_t i = 0; i < w->n; ++i)
        free_plan(w, i);
}

/* With a prior, query by query; scores go to w->scores, and keys have docids alone. */
static bool search_by_prior(gx_replay_worker *w, gx_session *session, gx_hits *hits)
{
    const gx_replay_options *opt = w->r->opt;
    gx_error err = {0};
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < w->n && st == GX_OK; ++i) {
        gx_query query;
        uint32_t n = 0;
        const gx_results results = {.size = sizeof results,
                                    .docids64 = w->docids,
                                    .n_hits = &n,
                                    .exact_scores = w->scores + (size_t)i * w->r->max_k};
        gx_query_options options = opt->query;
        options.k = w->r->max_k;
        if ((st = gx_replay_query_of(w, i, &query, &err)) == GX_OK)
            st = gx_search(session, &query, 1, &options, &results, &err);
        if (st == GX_EUSAGE && opt->skip_bad) { /* which planning has told */
            st = GX_OK;
            n = 0;
        }
        for (uint32_t j = 0; j < n && st == GX_OK; ++j)
            gx_hits_set(&hits[i], j, 0, w->docids[j]);
        hits[i].n = n;
    }
    return st == GX_OK || gx_replay_fail(w->r, st, &err);
}

/* Count the facets of the batch. */
static bool count_facets(gx_replay_worker *w)
{
    const gx_replay_options *opt = w->r->opt;
    gx_query_options options = opt->query;
    gx_error err = {0};
    gx_status st = GX_OK;
    options.prior.weight = 0;
    for (uint32_t i = 0; i < w->n && st == GX_OK && opt->n_facets; ++i) {
        gx_facets *facets = NULL;
        gx_query query;
        if ((st = gx_replay_query_of(w, i, &query, &err)) == GX_OK)
            st = gx_count_facets(&facets, w->session, &query, &options, opt->facets, opt->n_facets, &err);
        if (st == GX_OK)
            w->matches += gx_facets_n_matches(facets);
        else if (st == GX_EUSAGE && opt->skip_bad)
            st = GX_OK;
        gx_facets_close(facets);
    }
    return st == GX_OK || gx_replay_fail(w->r, st, &err);
}

bool gx_replay_search(gx_replay_worker *w, gx_session *session, gx_hits *hits, uint64_t *keys, uint32_t *highs)
{
    const gx_document_prior none = {0};
    gx_error err = {0};
    for (uint32_t i = 0; i < w->n; ++i) {
        const size_t at = (size_t)i * w->r->max_k;
        hits[i] = (gx_hits){keys + at, 0, highs ? highs + at : NULL};
    }
    const gx_sort *sort = &w->r->sort;
    if (w->scores)
        return search_by_prior(w, session, hits);
    gx_status st = sort->n ? GX_OK : gx_session_run(session, w->plans, w->n, hits, &err);
    for (uint32_t i = 0; i < w->n && sort->n && st == GX_OK; ++i)
        st = gx_session_run_ordered(session, &w->plans[i], sort, &none, NULL, w->plans[i].k, &hits[i], &err);
    if (st != GX_OK)
        return gx_replay_fail(w->r, st, &err);
    gx_replay_say(w->r, err.text);
    return true;
}

void gx_replay_count(gx_replay_worker *w, uint64_t begin, const uint64_t *ends, uint64_t end)
{
    for (uint32_t i = 0; i < w->n; ++i) {
        const uint64_t due = w->queries[i].due;
        const uint64_t latency = (ends ? ends[i] : end) - (due ? due : begin);
        gx_histogram_add(&w->latency, latency, 1);
        w->late += w->r->deadline && latency > w->r->deadline;
        w->results += w->hits[i].n;
        w->without_results += w->hits[i].n == 0;
    }
}

bool gx_replay_format(gx_replay_worker *w)
{
    gx_replay_pass *r = w->r;
    gx_error err = {0};
    w->lines.n = 0;
    for (uint32_t i = 0; r->run && i < w->n; ++i) {
        const gx_replay_query *q = &w->queries[i];
        const gx_run_answer answer = {w->bytes + q->id,
                                      q->id_len,
                                      w->hits[i].keys,
                                      w->hits[i].n,
                                      w->plans[i].exponent,
                                      w->hits[i].highs,
                                      w->scores ? w->scores + (size_t)i * r->max_k : NULL};
        const gx_status st = gx_run_append(&w->lines, r->ix, &answer, r->opt->tag, &err);
        if (st != GX_OK)
            return gx_replay_fail(r, st, &err);
    }
    return true;
}

/* Count a batch as delivered. The caller holds the lock. */
static void count_delivered(gx_replay_pass *r, uint32_t n)
{
    static const char *const doing[] = {"warming up", "replaying", "verifying"};
    ++r->delivered;
    r->n_done += n;
    if (r->opt->progress)
        r->opt->progress(r->opt->user, doing[r->kind], r->n_done);
    pthread_cond_broadcast(&r->moved);
}

/* Write the waiting batches that are next in order, unless another thread is writing. The caller
 * holds the lock, which is released during each write. */
static gx_status write_pending(gx_replay_pass *r, gx_error *err)
{
    gx_status st = GX_OK;
    if (r->writing)
        return GX_OK;
    r->writing = true;
    for (gx_replay_pending *next;
         st == GX_OK && r->status == GX_OK && (next = &r->waits[r->delivered % r->n_waits])->n;) {
        pthread_mutex_unlock(&r->lock);
        st = gx_run_write(r->run, &next->lines, err);
        pthread_mutex_lock(&r->lock);
        const uint32_t n = next->n;
        next->n = 0;
        if (st == GX_OK)
            count_delivered(r, n);
    }
    r->writing = false;
    return st;
}

bool gx_replay_deliver(gx_replay_worker *w)
{
    gx_replay_pass *r = w->r;
    gx_error err = {0};
    gx_status st = GX_OK;
    const uint64_t begin = gx_replay_now();
    pthread_mutex_lock(&r->lock);
    while (r->run && w->seq - r->delivered >= r->n_waits && r->status == GX_OK)
        pthread_cond_wait(&r->moved, &r->lock);
    const uint64_t waited = gx_replay_now() - begin;
    if (!r->run) {
        count_delivered(r, w->n);
    } else if (r->status == GX_OK) {
        gx_replay_pending *mine = &r->waits[w->seq % r->n_waits];
        const gx_run_text used = mine->lines;
        *mine = (gx_replay_pending){w->lines, w->n};
        w->lines = used;
        st = write_pending(r, &err);
    }
    const bool go_on = r->status == GX_OK;
    pthread_mutex_unlock(&r->lock);
    w->stages.wait += (double)waited * 1e-9;
    w->stages.write -= (double)waited * 1e-9; /* because the caller counts all of deliver as writing */
    return st == GX_OK ? go_on : gx_replay_fail(r, st, &err);
}

/* The batch's queries are answered elsewhere. */
static gx_status ask(gx_replay_worker *w, gx_text *lines, gx_error *err)
{
    const gx_replay_options *opt = w->r->opt;
    gx_error why = {0};
    gx_replay_question *questions = malloc(w->n * sizeof *questions);
    if (!questions)
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", w->n);
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < w->n && st == GX_OK; ++i) {
        const gx_replay_query *q = &w->queries[i];
        questions[i] = (gx_replay_question){w->bytes + q->id, w->bytes + q->text, w->bytes + q->filter, q->id_len,
                                            q->len,           q->filter_len};
        if (q->weighted)
            st = gx_fail(&why, GX_EINPUT, "a vector, which only an engine answers");
    }
    if (st == GX_OK)
        st = opt->ask(opt->ask_user, w->number, questions, w->n, lines, &why);
    if (st == GX_OK && lines->failed)
        st = gx_fail(&why, GX_ENOMEM, "no memory for answers");
    free(questions);
    return st == GX_EINPUT ? gx_fail(err, st, "%s:%" PRIu64 ": %.800s", opt->log, w->queries[0].line, why.text)
           : st != GX_OK   ? gx_fail(err, st, "%s", why.text)
                           : GX_OK;
}

static bool answer_elsewhere(gx_replay_worker *w)
{
    gx_error err = {0};
    const uint64_t begin = gx_replay_now();
    gx_text lines = {w->lines.bytes, 0, w->lines.cap, false};
    const gx_status st = ask(w, &lines, &err);
    const uint64_t end = gx_replay_now();
    w->lines = (gx_run_text){lines.bytes, lines.len, lines.cap};
    if (st != GX_OK)
        return gx_replay_fail(w->r, st, &err);
    for (uint32_t i = 0; i < w->n; ++i)
        w->hits[i].n = 0;
    const uint64_t without = w->without_results;
    gx_replay_count(w, begin, NULL, end);
    w->without_results = without; /* which is not known */
    for (size_t i = 0; i < lines.len; ++i)
        w->results += lines.bytes[i] == '\n';
    w->stages.search += (double)(end - begin) * 1e-9;
    const bool good = gx_replay_deliver(w);
    w->stages.write += (double)(gx_replay_now() - end) * 1e-9;
    return good;
}

bool gx_replay_answer(gx_replay_worker *w)
{
    if (w->r->opt->ask)
        return answer_elsewhere(w);
    const uint64_t begin = gx_replay_now();
    if (!gx_replay_plan(w, w->session, w->r->en))
        return false;
    const uint64_t planned = gx_replay_now();
    bool good = gx_replay_search(w, w->session, w->hits, w->keys, w->highs);
    const uint64_t found = gx_replay_now();
    good = good && count_facets(w);
    const uint64_t counted = gx_replay_now();
    if (good)
        gx_replay_count(w, begin, NULL, counted);
    good = good && gx_replay_format(w);
    gx_replay_free_plans(w);
    good = good && gx_replay_deliver(w);
    w->stages.plan += (double)(planned - begin) * 1e-9;
    w->stages.search += (double)(found - planned) * 1e-9;
    w->stages.count += (double)(counted - found) * 1e-9;
    w->stages.write += (double)(gx_replay_now() - counted) * 1e-9;
    return good;
}
