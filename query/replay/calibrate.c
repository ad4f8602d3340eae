/* calibrate.c: measure what queries cost, and fit the cost model to it.
 *
 *   log, test --plan--> plans --run, timed--> costs --fit--> profile --predict--> errors
 *
 * Each query is timed on the CPU and alone on the GPU, and random batches of queries on the GPU, by
 * every operator and by a small and a large k. A scheduler sends batches of 1 to 64 queries but when it
 * is overloaded; so there are as many batches of 2, 4, .. 64 queries each, and fewer of 128 to 1,024. A
 * query's runs lie a pass over all queries apart, so that its lists are no more in the caches than
 * those of any other query; and both logs are measured in the same passes, so that a machine that
 * becomes slower does so for both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/clock.h"
#include "engine/files/atomic_file.h"
#include "engine/memory/grow.h"
#include "engine/random.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "engine/text/c_locale.h"
#include "query/engine/engine.h"
#include "query/engine/session.h"
#include "query/log/query_log.h"
#include "query/schedule/cost_model.h"

#define N_OPS 3
#define LEAST_BATCH 2u
#define MOST_BATCH 1024u
#define USUAL_BATCH 64u /* up to this size a scheduler sends most batches; */
#define N_USUAL 256u    /* so many are measured of each size */
#define N_LARGE 16u     /* and of each size above */
#define MOST_LISTS 8u   /* of queries that are drawn by their number of lists */
#define BATCH_KEYS (1u << 20)

void gx_calibrate_options_init(gx_calibrate_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_calibrate_options)GX_CALIBRATE_OPTIONS, sizeof *o);
}

/* The queries of a log. */
typedef struct query_text {
    char *text; /* of a text, its bytes; of a vector, the bytes of its terms */
    size_t len;
    gx_weighted_term *terms; /* [n_terms]; NULL: a text */
    uint32_t n_terms;
    bool held_out;
} query_text;

/* A measured cost: of one query, or of a batch. */
typedef struct cost {
    gx_cost_kind kind;
    size_t first; /* in members */
    uint32_t n;   /* queries */
    gx_op op;
    bool held_out;
    double ns;
} cost;

/* How long a run took, and how many bytes of its lists were not in the GPU's memory when it began. */
typedef struct timed_run {
    uint64_t ns, missing;
} timed_run;

/* Plans by one operator and k. */
typedef struct plan_set {
    gx_plan *plans; /* [n] first those that the model is fitted to */
    uint32_t n, n_fitted;
    gx_plan *batch; /* [MOST_BATCH] copies */
    gx_op op;
} plan_set;

typedef struct calibration {
    const gx_calibrate_options *opt;
    gx_engine *engines[2]; /* the CPU's and the GPU's */
    gx_session *sessions[2];
    gx_preset preset;
    query_text *queries; /* [n_queries] of a log */
    size_t n_queries, max_queries;
    gx_query_features *members; /* [n_members] of all costs */
    size_t n_members, max_members;
    cost *costs; /* [n_costs] */
    size_t n_costs, max_costs;
    uint64_t random, n_done;
    uint64_t *keys;
    uint32_t *highs; /* of a wide collection's keys; else NULL */
    gx_hits *hits;   /* [MOST_BATCH] */
    timed_run *runs; /* [opt->runs] */
} calibration;

/* ---- the queries ---- */

static gx_status copy_query(query_text *out, const gx_log_query *q, gx_error *err)
{
    size_t bytes = q->terms ? 0 : q->len;
    for (uint32_t i = 0; i < q->n_terms && q->terms; ++i)
        bytes += q->terms[i].len;
    *out = (query_text){malloc(bytes + 1), bytes, NULL, q->terms ? q->n_terms : 0};
    if (q->terms)
        out->terms = malloc((q->n_terms + 1) * sizeof *out->terms);
    if (!out->text || (q->terms && !out->terms)) {
        free(out->text);
        free(out->terms);
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %zu bytes", bytes);
    }
    if (!q->terms)
        memcpy(out->text, q->text, bytes);
    char *at = out->text;
    for (uint32_t i = 0; i < out->n_terms; ++i) {
        memcpy(at, q->terms[i].term, q->terms[i].len);
        out->terms[i] = (gx_weighted_term){at, q->terms[i].len, q->terms[i].weight};
        at += q->terms[i].len;
    }
    return GX_OK;
}

static void free_queries(calibration *c)
{
    for (size_t i = 0; i < c->n_queries; ++i) {
        free(c->queries[i].text);
        free(c->queries[i].terms);
    }
    c->n_queries = 0;
}

/* Read the queries of a log, behind those read before. */
static gx_status read_queries(calibration *c, const char *path, bool held_out, gx_error *err)
{
    gx_log *log;
    gx_log_query q;
    bool more = true;
    const size_t first = c->n_queries;
    gx_status st = gx_log_open(&log, path, &c->opt->read, err);
    if (st != GX_OK)
        return st;
    while (c->n_queries - first < c->opt->n_queries && (st = gx_log_next(log, &q, &more, err)) == GX_OK && more) {
        if ((st = gx_grow(&c->queries, &c->max_queries, c->n_queries + 1, sizeof *c->queries, err)) != GX_OK ||
            (st = copy_query(&c->queries[c->n_queries], &q, err)) != GX_OK)
            break;
        c->queries[c->n_queries++].held_out = held_out;
    }
    gx_log_close(log);
    if (st == GX_OK && c->n_queries == first)
        st = gx_fail(err, GX_EINPUT, "%s has no query", path);
    return st;
}

/* Without a log to test on, hold out every second query; these come last. */
static gx_status hold_out_half(calibration *c, gx_error *err)
{
    query_text *sorted = malloc((c->n_queries + 1) * sizeof *sorted);
    if (!sorted)
        return gx_fail(err, GX_ENOMEM, "no memory for %zu queries", c->n_queries);
    const size_t n_fitted = (c->n_queries + 1) / 2;
    for (size_t i = 0; i < c->n_queries; ++i) {
        const size_t to = i % 2 ? n_fitted + i / 2 : i / 2;
        sorted[to] = c->queries[i];
        sorted[to].held_out = i % 2;
    }
    memcpy(c->queries, sorted, c->n_queries * sizeof *sorted);
    free(sorted);
    return GX_OK;
}

/* Plan the queries; those without a known term, or that cannot be planned, are left out. */
static gx_status make_plans(calibration *c, gx_op op, uint32_t k, plan_set *p, gx_error *err)
{
    gx_query_options o = GX_QUERY_OPTIONS;
    gx_engine *en = c->engines[0] ? c->engines[0] : c->engines[1];
    o.op = op;
    o.k = k;
    o.preset = c->preset;
    o.algorithm = c->opt->algorithm;
    p->n = p->n_fitted = 0;
    p->op = op;
    for (size_t i = 0; i < c->n_queries; ++i) {
        const query_text *t = &c->queries[i];
        const gx_query q = {.size = sizeof q,
                            .kind = t->terms ? GX_QUERY_TERMS : GX_QUERY_TEXT,
                            .text = t->text,
                            .len = t->len,
                            .terms = t->terms,
                            .n_terms = t->n_terms};
        const gx_status st = gx_engine_plan(&p->plans[p->n], en, &q, &o, err);
        if (st != GX_OK && st != GX_EUSAGE)
            return st;
        if (st == GX_OK && !gx_plan_features(&p->plans[p->n]).n_terms) {
            gx_plan_free(&p->plans[p->n]);
        } else if (st == GX_OK) {
            p->n += 1;
            p->n_fitted += !t->held_out;
        }
    }
    return GX_OK;
}

/* ---- measuring ---- */

static int compare_times(const void *a, const void *b)
{
    const timed_run *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

/* The run of the median time, the shorter one of two. */
static timed_run median(timed_run *runs, uint32_t n)
{
    qsort(runs, n, sizeof *runs, compare_times);
    return runs[(n - 1) / 2];
}

static gx_status run_timed(calibration *c, int engine, const gx_plan *plans, uint32_t n, timed_run *run, gx_error *err)
{
    run->missing = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const size_t at = (size_t)i * plans[0].k;
        c->hits[i] = (gx_hits){c->keys + at, 0, c->highs ? c->highs + at : NULL};
        run->missing += engine ? gx_engine_missing_bytes(c->engines[engine], &plans[i]) : 0;
    }
    const uint64_t begin = gx_clock_nanoseconds(CLOCK_MONOTONIC);
    const gx_status st = gx_session_run(c->sessions[engine], plans, n, c->hits, err);
    run->ns = gx_clock_nanoseconds(CLOCK_MONOTONIC) - begin;
    return st;
}

/* Add the cost of the median of some runs. */
static gx_status add_cost(calibration *c, const cost *what, timed_run *runs, const gx_plan *plans, gx_error *err)
{
    const timed_run run = median(runs, c->opt->runs);
    gx_status st = gx_grow(&c->members, &c->max_members, c->n_members + what->n, sizeof *c->members, err);
    if (st == GX_OK)
        st = gx_grow(&c->costs, &c->max_costs, c->n_costs + 1, sizeof *c->costs, err);
    if (st != GX_OK)
        return st;
    cost *to = &c->costs[c->n_costs++];
    *to = *what;
    to->first = c->n_members;
    to->ns = (double)run.ns + 1;
    for (uint32_t i = 0; i < what->n; ++i) {
        gx_query_features *f = &c->members[c->n_members++];
        *f = gx_plan_features(&plans[i]);
        f->missing = (double)run.missing / what->n;
        if (what->n > 1) /* an AND-then-OR that is planned as an OR is still one of a batch of those */
            f->op = what->op;
    }
    return GX_OK;
}

static gx_status tell(calibration *c, const char *doing, uint64_t n, gx_error *err)
{
    c->n_done += n;
    if (c->opt->progress)
        c->opt->progress(c->opt->user, doing, c->n_done);
    return c->opt->cancel && c->opt->cancel(c->opt->user) ? gx_fail(err, GX_ECANCELLED, "interrupted") : GX_OK;
}

/* Time each plan alone. */
static gx_status time_alone(calibration *c, int engine, const plan_set *p, gx_error *err)
{
    const uint32_t runs = c->opt->runs;
    timed_run *times = malloc((size_t)p->n * runs * sizeof *times);
    gx_status st = times ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the times of %u queries", p->n);
    timed_run ignored;
    for (uint32_t i = 0; i < p->n && st == GX_OK; ++i) /* what the first run derives is not timed */
        st = run_timed(c, engine, &p->plans[i], 1, &ignored, err);
    for (uint32_t r = 0; r < runs && st == GX_OK; ++r) {
        for (uint32_t i = 0; i < p->n && st == GX_OK; ++i)
            st = run_timed(c, engine, &p->plans[i], 1, &times[(size_t)i * runs + r], err);
        if (st == GX_OK)
            st = tell(c, engine ? "timing on the GPU" : "timing on the CPU", p->n, err);
    }
    for (uint32_t i = 0; i < p->n && st == GX_OK; ++i) {
        const cost what = {.kind = engine ? GX_COST_GPU_ALONE : GX_COST_CPU,
                           .n = 1,
                           .op = p->plans[i].op,
                           .held_out = i >= p->n_fitted};
        st = add_cost(c, &what, &times[(size_t)i * runs], &p->plans[i], err);
    }
    free(times);
    return st;
}

/* A query of a batch, of n from the first on, at random. Every second batch of a usual size that the model is
 * fitted to has queries of 1, 2, .. lists about equally often: so the model knows those that are rare in the
 * log. */
static uint32_t draw_query(calibration *c, const plan_set *p, uint32_t first, uint32_t n, bool evenly)
{
    uint32_t i = (uint32_t)(gx_random_next(&c->random) % n);
    const uint32_t wanted = 1 + (uint32_t)(gx_random_next(&c->random) % MOST_LISTS);
    for (uint32_t tries = 0; evenly && tries < n && p->plans[first + i].n_terms != wanted; ++tries)
        i = i + 1 < n ? i + 1 : 0;
    return first + i;
}

/* Time random batches of `size` queries, of those held out or of the others. */
static gx_status time_batches(calibration *c, const plan_set *p, uint32_t size, bool held_out, gx_error *err)
{
    const uint32_t n_batches = size <= USUAL_BATCH ? N_USUAL : N_LARGE;
    const uint32_t first = held_out ? p->n_fitted : 0, n = held_out ? p->n - p->n_fitted : p->n_fitted;
    gx_status st = GX_OK;
    for (uint32_t b = 0; n && b < n_batches && st == GX_OK; ++b) {
        for (uint32_t i = 0; i < size; ++i)
            p->batch[i] = p->plans[draw_query(c, p, first, n, !held_out && size <= USUAL_BATCH && b % 2)];
        for (uint32_t r = 0; r < c->opt->runs && st == GX_OK; ++r)
            st = run_timed(c, 1, p->batch, size, &c->runs[r], err);
        const cost what = {.kind = GX_COST_GPU_BATCH, .n = size, .op = p->op, .held_out = held_out};
        if (st == GX_OK)
            st = add_cost(c, &what, c->runs, p->batch, err);
        if (st == GX_OK)
            st = tell(c, "timing batches on the GPU", size, err);
    }
    return st;
}

static gx_status time_plans(calibration *c, const plan_set *p, gx_error *err)
{
    gx_status st = GX_OK;
    for (int e = 0; e < 2 && st == GX_OK; ++e) {
        if (c->engines[e])
            st = time_alone(c, e, p, err);
    }
    const uint32_t k = p->plans[0].k, most = BATCH_KEYS / k < MOST_BATCH ? BATCH_KEYS / k : MOST_BATCH;
    const bool batches = c->engines[1] && c->opt->algorithm == GX_ALGORITHM_AUTO;
    for (uint32_t size = LEAST_BATCH; size <= most && batches && st == GX_OK; size *= 2) {
        for (int held_out = 0; held_out < 2 && st == GX_OK; ++held_out)
            st = time_batches(c, p, size, held_out, err);
    }
    return st;
}

/* Measure the queries by every operator and k. */
static gx_status measure(calibration *c, gx_calibration *report, gx_error *err)
{
    const uint32_t ks[2] = {c->opt->small_k, c->opt->large_k};
    plan_set p = {.plans = malloc((c->n_queries + 1) * sizeof *p.plans), .batch = malloc(MOST_BATCH * sizeof *p.batch)};
    gx_status st = p.plans && p.batch ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %zu plans", c->n_queries);
    for (int op = 0; op < N_OPS; ++op) {
        if (c->opt->only_op >= 0 && c->opt->only_op != op)
            continue;
        for (int i = 0; i < (ks[0] == ks[1] ? 1 : 2) && st == GX_OK; ++i) {
            st = make_plans(c, (gx_op)op, ks[i], &p, err);
            if (st == GX_OK && p.n)
                st = time_plans(c, &p, err);
            report->n_fitted = p.n_fitted > report->n_fitted ? p.n_fitted : report->n_fitted;
            report->n_held_out = p.n - p.n_fitted > report->n_held_out ? p.n - p.n_fitted : report->n_held_out;
            while (p.n > 0)
                gx_plan_free(&p.plans[--p.n]);
        }
    }
    free(p.batch);
    free(p.plans);
    return st;
}

/* ---- fitting ---- */

static int compare_errors(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static gx_cost_error summarize(double *errors, size_t n)
{
    gx_cost_error e = {.n = n};
    if (!n)
        return e;
    qsort(errors, n, sizeof *errors, compare_errors);
    for (size_t i = 0; i < n; ++i)
        e.mean += errors[i] / (double)n;
    e.median = errors[n / 2];
    e.p90 = errors[(size_t)(0.9 * (double)(n - 1))];
    return e;
}

static bool is_wanted(const cost *t, gx_cost_kind kind, bool held_out, int op)
{
    return t->kind == kind && t->held_out == held_out && (op < 0 || (int)t->op == op);
}

/* Which costs: of a kind, and of an operator (below 0: of all), and of one size (0: of all). */
typedef struct cost_choice {
    gx_cost_kind kind;
    bool held_out;
    int op;
    uint32_t size;
} cost_choice;

/* The errors of a model on some costs. */
static gx_cost_error errors_of(const calibration *c, const gx_cost_profile *p, cost_choice of, uint32_t without,
                               double *errors)
{
    const gx_cost_kind kind = of.kind;
    size_t n = 0;
    for (size_t i = 0; i < c->n_costs; ++i) {
        const cost *t = &c->costs[i];
        if (!is_wanted(t, kind, of.held_out, of.op) || (of.size && t->n != of.size))
            continue;
        double basis[GX_COST_TERMS], ns = 0;
        gx_cost_basis(p, &c->members[t->first], t->n, kind, without, basis);
        const double *w = p->weights[kind][gx_cost_leaf(&c->members[t->first], t->n, kind, without)];
        for (uint32_t j = 0; j < GX_COST_TERMS; ++j)
            ns += w[j] * basis[j];
        const double error = ns / t->ns - 1;
        errors[n++] = error < 0 ? -error : error;
    }
    return summarize(errors, n);
}

/* Fit one kind of p. The model of batches stands on that of queries alone, which is fitted before. */
static gx_status fit_kind(const calibration *c, gx_cost_kind kind, uint32_t without, gx_cost_sample *samples,
                          gx_cost_profile *p, gx_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_costs; ++i) {
        const cost *t = &c->costs[i];
        if (!is_wanted(t, kind, false, -1))
            continue;
        gx_cost_basis(p, &c->members[t->first], t->n, kind, without, samples[n].basis);
        samples[n].ns = t->ns;
        samples[n++].leaf = gx_cost_leaf(&c->members[t->first], t->n, kind, without);
    }
    return gx_cost_fit(p->weights[kind], samples, n, kind != GX_COST_GPU_BATCH, err);
}

/* Where a model's fit works. */
typedef struct fit_space {
    gx_cost_sample *samples;  /* [n_costs] */
    double *errors;           /* [n_costs] */
    gx_cost_profile *without; /* models that lack a feature */
} fit_space;

static void report_kind(const calibration *c, gx_cost_kind kind, const gx_cost_profile *p, gx_calibration *report,
                        double *errors)
{
    report->fitted[kind] = errors_of(c, p, (cost_choice){kind, false, -1, 0}, 0, errors);
    report->held_out[kind] = errors_of(c, p, (cost_choice){kind, true, -1, 0}, 0, errors);
    for (int op = 0; op < N_OPS; ++op)
        report->by_op[kind][op] = errors_of(c, p, (cost_choice){kind, true, op, 0}, 0, errors);
    for (int s = 0; s < GX_N_BATCH_SIZES && kind == GX_COST_GPU_BATCH; ++s)
        report->by_size[s] = errors_of(c, p, (cost_choice){kind, true, -1, LEAST_BATCH << s}, 0, errors);
}

static bool is_measured(const calibration *c, gx_cost_kind kind)
{
    return c->engines[kind != GX_COST_CPU] && (kind != GX_COST_GPU_BATCH || c->opt->algorithm == GX_ALGORITHM_AUTO);
}

/* Fit models that lack a feature, for each feature in turn. */
static gx_status ablate(const calibration *c, const fit_space *space, gx_calibration *report, gx_error *err)
{
    gx_status st = GX_OK;
    for (int f = 0; f < GX_N_COST_FEATURES && st == GX_OK; ++f) {
        for (int kind = 0; kind < GX_N_COST_KINDS && st == GX_OK; ++kind) {
            if (!is_measured(c, (gx_cost_kind)kind))
                continue;
            st = fit_kind(c, (gx_cost_kind)kind, 1u << f, space->samples, space->without, err);
            if (st == GX_OK && (f != GX_COST_FEATURE_BATCH || kind == GX_COST_GPU_BATCH))
                report->without[kind][f] = errors_of(c, space->without, (cost_choice){(gx_cost_kind)kind, true, -1, 0},
                                                     1u << f, space->errors);
        }
    }
    return st;
}

static gx_status fit_all(calibration *c, gx_cost_profile *out, gx_calibration *report, gx_error *err)
{
    const fit_space space = {malloc((c->n_costs + 1) * sizeof *space.samples),
                             malloc((c->n_costs + 1) * sizeof *space.errors), malloc(sizeof *space.without)};
    gx_status st = space.samples && space.errors && space.without
                       ? GX_OK
                       : gx_fail(err, GX_ENOMEM, "no memory for %zu costs", c->n_costs);
    for (int kind = 0; kind < GX_N_COST_KINDS && st == GX_OK; ++kind) {
        if (!is_measured(c, (gx_cost_kind)kind))
            continue;
        st = fit_kind(c, (gx_cost_kind)kind, 0, space.samples, out, err);
        out->measured[kind] = true;
        if (st == GX_OK)
            report_kind(c, (gx_cost_kind)kind, out, report, space.errors);
    }
    if (st == GX_OK && c->opt->ablate)
        st = ablate(c, &space, report, err);
    free(space.samples);
    free(space.errors);
    free(space.without);
    return st;
}

/* ---- the costs as text ---- */

static void put_names(FILE *f)
{
    fputs("kind\top\tk\theld_out\tqueries\tns\tpredicted", f);
    for (uint32_t i = 0; gx_cost_term_name(GX_COST_CPU, i); ++i)
        fprintf(f, "\t%s", gx_cost_term_name(GX_COST_CPU, i));
    for (uint32_t i = 0; gx_cost_term_name(GX_COST_GPU_BATCH, i); ++i)
        fprintf(f, "\t%s", gx_cost_term_name(GX_COST_GPU_BATCH, i));
    fputc('\n', f);
}

/* A line for each cost: its kind, operator, k, whether it is held out, queries, ns measured and predicted; the
 * sums over its queries of the functions of a query's basis; the functions of a batch's basis, which are 0 for a
 * query alone. */
static gx_status write_costs(const calibration *c, const gx_cost_profile *p, gx_atomic_file *to, gx_error *err)
{
    FILE *f = to->file;
    const gx_c_locale l = gx_c_locale_begin();
    put_names(f);
    for (size_t i = 0; i < c->n_costs; ++i) {
        const cost *t = &c->costs[i];
        const gx_query_features *of = &c->members[t->first];
        double sums[GX_COST_TERMS] = {0}, basis[GX_COST_TERMS] = {0};
        fprintf(f, "%s\t%d\t%u\t%d\t%u\t%.0f\t%.0f", gx_cost_kind_name(t->kind), (int)t->op, of->k, t->held_out, t->n,
                t->ns, gx_cost_predict(p, t->kind, of, t->n));
        for (uint32_t q = 0; q < t->n; ++q) {
            gx_cost_basis(p, &of[q], 1, GX_COST_CPU, 0, basis);
            for (uint32_t j = 0; j < GX_COST_TERMS; ++j)
                sums[j] += basis[j];
        }
        for (uint32_t j = 0; gx_cost_term_name(GX_COST_CPU, j); ++j)
            fprintf(f, "\t%.7g", sums[j]);
        memset(basis, 0, sizeof basis);
        if (t->kind == GX_COST_GPU_BATCH)
            gx_cost_basis(p, of, t->n, t->kind, 0, basis);
        for (uint32_t j = 0; gx_cost_term_name(GX_COST_GPU_BATCH, j); ++j)
            fprintf(f, "\t%.7g", basis[j]);
        fputc('\n', f);
    }
    gx_c_locale_end(l);
    const gx_status st = gx_atomic_file_sync(to, err);
    return st == GX_OK ? gx_atomic_file_commit(to, err) : st;
}

/* Before anything is measured. */
static gx_status open_costs(gx_atomic_file *f, const gx_calibrate_options *o, gx_error *err)
{
    gx_status st = o->costs ? gx_atomic_file_open(f, o->costs, o->force ? GX_ATOMIC_FILE_FORCE : 0, err) : GX_OK;
    return o->costs && st == GX_OK ? gx_atomic_file_stream(f, err) : st;
}

/* ---- the whole ---- */

static gx_status open_sessions(calibration *c, gx_error *err)
{
    gx_status st = GX_OK;
    gx_index_stats stats = {.size = sizeof stats};
    for (int e = 0; e < 2 && st == GX_OK; ++e) {
        if (c->engines[e])
            st = gx_session_open(&c->sessions[e], c->engines[e], err);
    }
    gx_index_get_quick_stats(gx_engine_index(c->engines[0] ? c->engines[0] : c->engines[1]), &stats);
    c->preset = stats.impacts ? GX_IMPACT : GX_BM25;
    const size_t most = c->opt->large_k > c->opt->small_k ? c->opt->large_k : c->opt->small_k;
    c->keys = malloc((most > BATCH_KEYS ? most : BATCH_KEYS) * sizeof *c->keys);
    c->hits = malloc(MOST_BATCH * sizeof *c->hits);
    c->runs = malloc(c->opt->runs * sizeof *c->runs);
    const bool wide = stats.n_docs == UINT32_MAX;
    if (wide)
        c->highs = malloc((most > BATCH_KEYS ? most : BATCH_KEYS) * sizeof *c->highs);
    if (st == GX_OK && (!c->keys || !c->hits || !c->runs || (wide && !c->highs)))
        st = gx_fail(err, GX_ENOMEM, "no memory for %zu results", most);
    return st;
}

static void close_calibration(calibration *c)
{
    free_queries(c);
    gx_session_close(c->sessions[0]);
    gx_session_close(c->sessions[1]);
    free(c->queries);
    free(c->members);
    free(c->costs);
    free(c->keys);
    free(c->highs);
    free(c->hits);
    free(c->runs);
}

gx_status gx_calibrate(gx_cost_profile *out, gx_calibration *report, gx_engine *cpu, gx_engine *gpu,
                       const gx_calibrate_options *given, gx_error *err)
{
    gx_calibrate_options o = GX_CALIBRATE_OPTIONS;
    gx_status st =
        gx_sized_read(&o, sizeof o, given, GX_SIZE_THROUGH(gx_calibrate_options, user), "gx_calibrate_options", err);
    if (st != GX_OK)
        return st;
    if ((uint32_t)o.algorithm >= GX_N_ALGORITHMS || o.only_op >= N_OPS)
        return gx_fail(err, GX_EUSAGE, "there is no algorithm %u or no operator %d", (uint32_t)o.algorithm, o.only_op);
    if (!o.log || !o.n_queries || !o.runs || !o.small_k || !o.large_k || (!cpu && !gpu))
        return gx_fail(err, GX_EUSAGE, "a calibration needs a log, an engine, and n_queries, runs and k of at least 1");
    calibration c = {.opt = &o, .engines = {cpu, gpu}, .random = o.seed};
    gx_cost_profile *p = malloc(sizeof *p);
    const double begin = gx_clock_seconds();
    gx_atomic_file costs = GX_ATOMIC_FILE_INIT;
    memset(report, 0, sizeof *report);
    st = open_costs(&costs, &o, err);
    if (st == GX_OK)
        st = p ? open_sessions(&c, err) : gx_fail(err, GX_ENOMEM, "no memory for a profile");
    if (st == GX_OK)
        st = read_queries(&c, o.log, false, err);
    if (st == GX_OK)
        st = o.test ? read_queries(&c, o.test, true, err) : hold_out_half(&c, err);
    if (st == GX_OK)
        st = measure(&c, report, err);
    if (st == GX_OK && !report->n_fitted)
        st = gx_fail(err, GX_EINPUT, "%s has no query with a term of the index", o.log);
    if (st == GX_OK) {
        gx_cost_profile_init(p);
        st = fit_all(&c, p, report, err);
    }
    if (st == GX_OK && o.costs)
        st = write_costs(&c, p, &costs, err);
    if (st == GX_OK) {
        *out = *p;
        report->seconds = gx_clock_seconds() - begin;
    }
    gx_atomic_file_close(&costs);
    close_calibration(&c);
    free(p);
    return st;
}
