#include "query/replay/sweep.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/parallel.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "query/engine/session.h"

#define BATCH_QUERIES 256u
#define BATCH_RESULTS ((size_t)1 << 20) /* most results of a batch of more than one query */

/* A judged query that the log has. */
typedef struct judged_query {
    char *text;              /* NULL: the log lacks it */
    gx_weighted_term *terms; /* [n_terms] of a vector, which has no text, and behind them their bytes; or NULL */
    uint32_t n_terms;
    size_t len;
    uint64_t line;
} judged_query;

typedef struct sweep {
    const gx_sweep_options *opt;
    gx_sweep_report *report;
    gx_engine *en;
    const gx_index *ix;
    judged_query *queries; /* [qrels->n_topics] */
    int32_t max_grade;
    uint32_t max_k, batch;
    pthread_mutex_t lock; /* of what follows */
    size_t next, n_done;
    gx_status status;
    gx_error err;
} sweep;

/* One thread. */
typedef struct worker {
    sweep *s;
    gx_session *session;
    gx_query *queries; /* [batch] */
    size_t *topics;    /* [batch] */
    uint64_t *docids;
    uint32_t *n_hits;
    float *scores;
    gx_trec_row *rows; /* [max_k] of one query */
    char *docnos;      /* of one query, each ending in NUL */
    size_t docnos_cap;
    double *values; /* [n_topics][n_measures] of the setting */
    size_t n_values;
} worker;

/* ---- the log ---- */

static bool copy_terms(judged_query *j, const gx_log_query *q)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < q->n_terms; ++i)
        bytes += q->terms[i].len;
    j->terms = malloc((q->n_terms + (size_t)1) * sizeof *j->terms + bytes);
    if (!j->terms)
        return false;
    char *to = (char *)(j->terms + q->n_terms + 1);
    j->n_terms = q->n_terms;
    for (uint32_t i = 0; i < q->n_terms; to += q->terms[i++].len) {
        memcpy(to, q->terms[i].term, q->terms[i].len);
        j->terms[i] = (gx_weighted_term){to, q->terms[i].len, q->terms[i].weight};
    }
    return true;
}

static gx_status keep_query(sweep *s, const gx_log_query *q, gx_error *err)
{
    const gx_trec_table *qrels = s->opt->qrels;
    const gx_trec_topic *topic = gx_trec_find(qrels, q->id);
    if (!topic) {
        ++s->report->n_unjudged;
        return GX_OK;
    }
    judged_query *j = &s->queries[topic - qrels->topics];
    if (j->text)
        return gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": query %s occurs twice (first in line %" PRIu64 ")", s->opt->log,
                       q->line, q->id, j->line);
    *j = (judged_query){.text = malloc(q->len + 1), .len = q->len, .line = q->line};
    if (!j->text || (q->terms && !copy_terms(j, q)))
        return gx_fail(err, GX_ENOMEM, "no memory for query %s", q->id);
    memcpy(j->text, q->text, q->len);
    j->text[q->len] = 0;
    ++s->report->n_searched;
    return GX_OK;
}

static gx_status read_log(sweep *s, gx_error *err)
{
    gx_log *log;
    gx_log_query q;
    bool more = true;
    gx_status st = gx_log_open(&log, s->opt->log, &s->opt->read, err);
    if (st != GX_OK)
        return st;
    while (st == GX_OK && (st = gx_log_next(log, &q, &more, err)) == GX_OK && more)
        st = keep_query(s, &q, err);
    gx_log_close(log);
    s->report->n_missing = s->opt->qrels->n_topics - s->report->n_searched;
    return st;
}

/* ---- one setting ---- */

static int by_docno(const void *a, const void *b)
{
    return strcmp(((const gx_trec_row *)a)->docno, ((const gx_trec_row *)b)->docno);
}

/* The answers of one query as rows in the order of docnos, as a run is read. */
static gx_status make_rows(worker *w, const char *qid, const uint64_t *docids, const float *scores, uint32_t n,
                           gx_error *err)
{
    size_t bytes = 0, len;
    for (uint32_t i = 0; i < n; ++i) {
        gx_index_doc_id(w->s->ix, docids[i], &len);
        bytes += len + 1;
    }
    if (!gx_reserve(&w->docnos, &w->docnos_cap, bytes, 1))
        return gx_fail(err, GX_ENOMEM, "no memory for the answers to query %s", qid);
    char *p = w->docnos;
    for (uint32_t i = 0; i < n; ++i) {
        const char *id = gx_index_doc_id(w->s->ix, docids[i], &len);
        w->rows[i] = (gx_trec_row){qid, p, scores[i], i + 1};
        if (len)
            memcpy(p, id, len);
        p[len] = 0;
        p += len + 1;
    }
    qsort(w->rows, n, sizeof *w->rows, by_docno);
    return GX_OK;
}

/* Evaluate the answers to a judged query, n of them. */
static gx_status evaluate(worker *w, size_t topic, const uint64_t *docids, const float *scores, uint32_t n,
                          gx_error *err)
{
    const gx_sweep_options *opt = w->s->opt;
    const gx_trec_topic *judged = &opt->qrels->topics[topic];
    gx_trec_topic answers = {judged->qid, 0, n};
    const gx_trec_table run = {.rows = w->rows, .topics = &answers, .n_rows = n, .n_topics = 1};
    if (n == 0 && !opt->complete)
        return GX_OK;
    const gx_status st = make_rows(w, judged->qid, docids, scores, n, err);
    if (st != GX_OK)
        return st;
    const gx_evaluation_setup setup = {opt->qrels, opt->measures, opt->n_measures, opt->level, w->s->max_grade};
    return gx_evaluate_topic(w->values + w->n_values++ * opt->n_measures, &setup, judged, &run, n ? &answers : NULL,
                             err);
}

/* Of the batch's n queries, name the one that cannot be searched. */
static gx_status name_bad_query(worker *w, uint32_t n, const gx_query_options *query, gx_error *err)
{
    const gx_results results = {
        .size = sizeof results, .docids64 = w->docids, .scores = w->scores, .n_hits = w->n_hits};
    gx_error why = {0};
    for (uint32_t i = 0; i < n; ++i)
        if (gx_search(w->session, &w->queries[i], 1, query, &results, &why) == GX_EUSAGE)
            return gx_fail(err, GX_EINPUT, "%s:%" PRIu64 ": %.800s", w->s->opt->log, w->s->queries[w->topics[i]].line,
                           why.text);
    return GX_EUSAGE;
}

/* Answer and evaluate the n queries of the batch. */
static gx_status run_batch(worker *w, uint32_t n, const gx_query_options *query, gx_error *err)
{
    const gx_results results = {
        .size = sizeof results, .docids64 = w->docids, .scores = w->scores, .n_hits = w->n_hits};
    gx_status st = gx_search(w->session, w->queries, n, query, &results, err);
    if (st == GX_EUSAGE)
        st = name_bad_query(w, n, query, err);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i)
        st = evaluate(w, w->topics[i], w->docids + (size_t)i * query->k, w->scores + (size_t)i * query->k, w->n_hits[i],
                      err);
    return st;
}

/* A session on a view by the fields of a setting; *ix and *en are closed behind it. */
static gx_status open_fields(const sweep *s, size_t number, gx_index **ix, gx_engine **en, gx_session **session,
                             gx_error *err)
{
    const gx_sweep_options *opt = s->opt;
    const gx_sweep_setting *setting = &opt->settings[number];
    gx_view_options view = GX_VIEW_OPTIONS;
    gx_engine_options engine = GX_ENGINE_OPTIONS;
    view.fields = opt->fields[number];
    view.preset = setting->preset;
    view.k1 = setting->k1;
    view.b = setting->b;
    view.scoring = opt->field_scorings ? opt->field_scorings[number] : GX_FIELDS_BM25F;
    engine.kind = GX_ENGINE_CPU;
    gx_status st = gx_index_open_view(ix, (gx_index *)s->ix, &view, err);
    if (st == GX_OK)
        st = gx_engine_open(en, *ix, &engine, err);
    return st == GX_OK ? gx_session_open(session, *en, err) : st;
}

static gx_status search_setting(worker *w, size_t number, gx_error *err)
{
    sweep *s = w->s;
    const gx_sweep_options *opt = s->opt;
    const gx_sweep_setting *setting = &opt->settings[number];
    gx_query_options query = opt->query;
    gx_status st = GX_OK;
    uint32_t n = 0;
    query.preset = setting->preset;
    query.k1 = setting->k1;
    query.b = setting->b;
    query.k = s->max_k;
    w->n_values = 0;
    for (size_t t = 0; st == GX_OK && t < opt->qrels->n_topics; ++t) {
        const judged_query *q = &s->queries[t];
        if (q->text) {
            w->queries[n] = (gx_query){.size = sizeof(gx_query),
                                       .kind = q->terms ? GX_QUERY_TERMS : opt->kind,
                                       .text = q->text,
                                       .len = q->len,
                                       .terms = q->terms,
                                       .n_terms = q->n_terms};
            w->topics[n++] = t;
        } else if (opt->complete) {
            st = evaluate(w, t, NULL, NULL, 0, err);
        }
        if (st == GX_OK && n == s->batch) {
            st = run_batch(w, n, &query, err);
            n = 0;
        }
    }
    if (st == GX_OK && n)
        st = run_batch(w, n, &query, err);
    if (st == GX_OK) {
        gx_measures_total(s->report->values + number * opt->n_measures, opt->measures, opt->n_measures, w->values,
                          w->n_values);
        s->report->n_evaluated[number] = w->n_values;
    }
    return st;
}

static gx_status run_setting(worker *w, size_t number, gx_error *err)
{
    const sweep *s = w->s;
    gx_session *const whole = w->session;
    gx_index *ix = NULL;
    gx_engine *en = NULL;
    gx_status st = GX_OK;
    if (!s->opt->fields || !s->opt->fields[number])
        return search_setting(w, number, err);
    w->session = NULL;
    st = open_fields(s, number, &ix, &en, &w->session, err);
    if (st == GX_OK)
        st = search_setting(w, number, err);
    gx_session_close(w->session);
    gx_engine_close(en);
    gx_index_close(ix);
    w->session = whole;
    return st;
}

/* ---- threads ---- */

static void work(void *arg, uint32_t number)
{
    worker *w = (worker *)arg + number;
    sweep *s = w->s;
    gx_error err = {0};
    for (;;) {
        pthread_mutex_lock(&s->lock);
        const size_t setting = s->next++;
        const bool go_on = s->status == GX_OK && setting < s->opt->n_settings;
        pthread_mutex_unlock(&s->lock);
        if (!go_on)
            return;
        const gx_status st = run_setting(w, setting, &err);
        pthread_mutex_lock(&s->lock);
        ++s->n_done;
        if (st != GX_OK && s->status == GX_OK) {
            s->status = st;
            s->err = err;
        }
        if (st == GX_OK && s->opt->progress)
            s->opt->progress(s->opt->user, s->n_done);
        pthread_mutex_unlock(&s->lock);
    }
}

static gx_status open_worker(worker *w, sweep *s, gx_error *err)
{
    const size_t n = s->batch, n_results = n * s->max_k;
    w->s = s;
    w->queries = malloc(n * sizeof *w->queries);
    w->topics = malloc(n * sizeof *w->topics);
    w->docids = malloc(n_results * sizeof *w->docids);
    w->scores = malloc(n_results * sizeof *w->scores);
    w->n_hits = malloc(n * sizeof *w->n_hits);
    w->rows = malloc(s->max_k * sizeof *w->rows);
    w->values = malloc((s->opt->qrels->n_topics * s->opt->n_measures + 1) * sizeof *w->values);
    if (!w->queries || !w->topics || !w->docids || !w->scores || !w->n_hits || !w->rows || !w->values)
        return gx_fail(err, GX_ENOMEM, "no memory for a thread with %zu results", n_results);
    return gx_session_open(&w->session, s->en, err);
}

static void close_worker(worker *w)
{
    gx_session_close(w->session);
    free(w->queries);
    free(w->topics);
    free(w->docids);
    free(w->scores);
    free(w->n_hits);
    free(w->rows);
    free(w->docnos);
    free(w->values);
}

static gx_status run_all(sweep *s, gx_error *err)
{
    const uint32_t n = s->opt->threads < s->opt->n_settings ? s->opt->threads : (uint32_t)s->opt->n_settings;
    worker *workers = calloc(n + 1ull, sizeof *workers);
    gx_status st = workers ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %u threads", n);
    for (uint32_t i = 0; st == GX_OK && i < n; ++i)
        st = open_worker(&workers[i], s, err);
    if (st == GX_OK)
        gx_parallel_run(n, work, workers);
    for (uint32_t i = 0; workers && i < n; ++i)
        close_worker(&workers[i]);
    free(workers);
    if (st == GX_OK && s->status != GX_OK)
        st = gx_fail(err, s->status, "%s", s->err.text);
    return st;
}

gx_status gx_sweep(gx_sweep_report *out, gx_engine *en, const gx_sweep_options *opt, gx_error *err)
{
    gx_sweep_report report = {0};
    gx_index_stats stats = {.size = sizeof stats};
    gx_sweep_options own = GX_SWEEP_OPTIONS;
    gx_status st =
        gx_sized_read(&own, sizeof own, opt, GX_SIZE_THROUGH(gx_sweep_options, user), "gx_sweep_options", err);
    if (st == GX_OK && (!opt || !own.log || !own.qrels || !own.measures || !own.settings || own.threads == 0))
        st = gx_fail(err, GX_EUSAGE, "gx_sweep_options: log, qrels, measures, settings and threads are to be set");
    if (st != GX_OK)
        return st;
    opt = &own;
    sweep s = {.opt = opt, .report = &report, .en = en, .ix = gx_engine_index(en)};
    gx_index_get_quick_stats(s.ix, &stats);
    s.max_k = opt->query.k < stats.n_docs ? opt->query.k : stats.n_docs ? stats.n_docs : 1;
    s.batch = BATCH_RESULTS / s.max_k < 1               ? 1
              : BATCH_RESULTS / s.max_k > BATCH_QUERIES ? BATCH_QUERIES
                                                        : (uint32_t)(BATCH_RESULTS / s.max_k);
    s.max_grade = gx_greatest_grade(opt->qrels);
    s.queries = calloc(opt->qrels->n_topics + 1, sizeof *s.queries);
    report.values = calloc(opt->n_settings * opt->n_measures + 1, sizeof *report.values);
    report.n_evaluated = calloc(opt->n_settings + 1, sizeof *report.n_evaluated);
    st = s.queries && report.values && report.n_evaluated
             ? read_log(&s, err)
             : gx_fail(err, GX_ENOMEM, "no memory for %zu settings", opt->n_settings);
    pthread_mutex_init(&s.lock, NULL);
    if (st == GX_OK)
        st = run_all(&s, err);
    pthread_mutex_destroy(&s.lock);
    for (size_t t = 0; s.queries && t < opt->qrels->n_topics; ++t)
        free(s.queries[t].text), free(s.queries[t].terms);
    free(s.queries);
    if (st != GX_OK)
        gx_sweep_report_free(&report);
    else
        *out = report;
    return st;
}

void gx_sweep_report_free(gx_sweep_report *r)
{
    free(r->values);
    free(r->n_evaluated);
    *r = (gx_sweep_report){0};
}
