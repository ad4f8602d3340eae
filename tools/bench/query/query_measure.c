/* query_measure.c: answers compared, then timed. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/clock.h"
#include "engine/status.h"
#include "tools/bench/kernels/energy.h"
#include "tools/bench/query/query_report.h"

const double query_percentiles[QUERY_PERCENTILES] = {50, 90, 95, 99, 99.9};
const uint32_t query_percentile_samples[QUERY_PERCENTILES] = {1, 1, 1, 100, 1000};

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void query_sort(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, by_value);
}

double query_quantile(double *sorted, uint32_t n, double q)
{
    const double i = q * n;
    return n == 0 ? 0 : sorted[i < n - 1 ? (uint32_t)i : n - 1];
}

gx_status query_core_read_speed(double *bytes_a_second, gx_error *err)
{
    enum { TURNS = 5 };
    const size_t n = (size_t)256 << 17; /* 256 MiB: beyond the caches */
    uint64_t *memory = malloc(n * sizeof *memory), sum = 0;
    double times[TURNS];
    if (!memory)
        return gx_fail(err, GX_ENOMEM, "no memory to measure its speed");
    memset(memory, 1, n * sizeof *memory);
    for (int turn = 0; turn < TURNS; ++turn) {
        const double t0 = gx_clock_seconds();
        for (size_t i = 0; i < n; ++i)
            sum += memory[i];
        times[turn] = gx_clock_seconds() - t0;
    }
    query_sort(times, TURNS);
    *bytes_a_second = sum ? (double)(n * sizeof *memory) / times[TURNS / 2] : 0; /* the sum is used, so it is made */
    free(memory);
    return GX_OK;
}

/* ---- plans ---- */

void query_free_plans(query_bench *b)
{
    for (uint32_t e = 0; e < b->n_engines; ++e) {
        for (uint32_t i = 0; b->engines[e].plans && i < b->n; ++i)
            gx_plan_free(&b->engines[e].plans[i]);
        free(b->engines[e].plans);
        b->engines[e].plans = NULL;
    }
    free(b->hits);
    free(b->want);
    free(b->keys);
    free(b->want_keys);
    free(b->highs);
    free(b->want_highs);
    b->hits = b->want = NULL;
    b->keys = b->want_keys = NULL;
    b->highs = b->want_highs = NULL;
}

/* Room for the answers: max_k results a query. */
static bool reserve_answers(query_bench *b, size_t max_k)
{
    const bool wide = gx_index_is_wide(b->ix);
    b->hits = calloc(b->n, sizeof *b->hits);
    b->want = calloc(b->n, sizeof *b->want);
    b->keys = malloc(b->n * max_k * sizeof *b->keys);
    b->want_keys = malloc(b->n * max_k * sizeof *b->want_keys);
    if (wide) {
        b->highs = malloc(b->n * max_k * sizeof *b->highs);
        b->want_highs = malloc(b->n * max_k * sizeof *b->want_highs);
    }
    if (!b->hits || !b->want || !b->keys || !b->want_keys || (wide && (!b->highs || !b->want_highs)))
        return false;
    for (uint32_t i = 0; i < b->n; ++i) {
        b->hits[i] = (gx_hits){b->keys + i * max_k, 0, wide ? b->highs + i * max_k : NULL};
        b->want[i] = (gx_hits){b->want_keys + i * max_k, 0, wide ? b->want_highs + i * max_k : NULL};
    }
    return true;
}

/* The plan of query i on an engine. */
static gx_status plan_one(gx_plan *out, const query_bench *b, const query_engine *e, uint32_t i,
                          const gx_query_options *opt, gx_error *err)
{
    if (!b->texts)
        return gx_plan_make_ids(out, b->ix, b->synth->queries[i].terms, NULL, b->synth->queries[i].n, opt, err);
    const query_text *t = &b->texts[i];
    gx_query q = GX_TEXT_QUERY(t->text, t->len);
    if (t->terms)
        q = (gx_query){.size = sizeof q, .kind = GX_QUERY_TERMS, .terms = t->terms, .n_terms = t->n_terms};
    return gx_engine_plan(out, e->en, &q, opt, err);
}

/* The plans of an engine, raised by what the last engine knows of pairs. */
static gx_status plan_for(query_bench *b, query_engine *e, const gx_query_options *opt, gx_error *err)
{
    gx_status st = GX_OK;
    e->plans = calloc(b->n, sizeof *e->plans);
    if (!e->plans)
        return gx_fail(err, GX_ENOMEM, "no memory for %u queries", b->n);
    const double t0 = gx_clock_seconds();
    for (uint32_t i = 0; i < b->n && st == GX_OK; ++i) {
        st = plan_one(&e->plans[i], b, e, i, opt, err);
        if (st == GX_OK)
            gx_engine_apply_known_threshold(b->engines[b->n_engines - 1].en, &e->plans[i]);
        e->plans[i].prune = false;
    }
    e->plan_seconds = gx_clock_seconds() - t0;
    return st;
}

gx_status query_plan_all(query_bench *b, gx_op op, uint32_t k, gx_error *err)
{
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_status st = GX_OK;
    const uint32_t max_k = k < b->ix->n_docs ? k : b->ix->n_docs ? b->ix->n_docs : 1;
    const query_engine *last = &b->engines[b->n_engines - 1];
    opt.op = op;
    opt.k = k;
    opt.preset = b->ix->impacts ? GX_IMPACT : GX_BM25;
    query_free_plans(b);
    b->op = op;
    b->k = k;
    if (!reserve_answers(b, max_k))
        return gx_fail(err, GX_ENOMEM, "no memory for %u queries of %u results", b->n, k);
    for (uint32_t e = 0; e < b->n_engines && st == GX_OK; ++e)
        st = plan_for(b, &b->engines[e], &opt, err);
    return st == GX_OK ? gx_session_run(last->session, last->plans, b->n, b->want, err) : st;
}

/* ---- running ---- */

gx_status query_run(query_bench *b, const query_engine *e, uint32_t i, uint32_t m, double *seconds, gx_error *err)
{
    const double t0 = gx_clock_seconds();
    const gx_status st = gx_session_run(e->session, e->plans + i, m, b->hits + i, err);
    *seconds = gx_clock_seconds() - t0;
    return st;
}

static bool is_equal(const gx_hits *a, const gx_hits *b)
{
    return a->n == b->n && memcmp(a->keys, b->keys, a->n * sizeof *a->keys) == 0 &&
           (!a->highs || memcmp(a->highs, b->highs, a->n * sizeof *a->highs) == 0);
}

static uint32_t count_different(const query_bench *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; ++i)
        n += !is_equal(&b->hits[i], &b->want[i]);
    return n;
}

/* All queries in batches; latencies[calls] of each. */
static gx_status run_all(query_bench *b, const query_engine *e, uint32_t batch, double *latencies, double *seconds,
                         gx_error *err)
{
    gx_status st = GX_OK;
    *seconds = 0;
    for (uint32_t i = 0; i < b->n && st == GX_OK; i += batch) {
        const uint32_t m = b->n - i < batch ? b->n - i : batch;
        st = query_run(b, e, i, m, &latencies[i / batch], err);
        *seconds += latencies[i / batch];
    }
    return st;
}

static void subtract_stats(gx_search_stats *w, const gx_search_stats *before)
{
    w->postings -= before->postings;
    w->blocks -= before->blocks;
    w->blocks_decoded -= before->blocks_decoded;
    w->lookups -= before->lookups;
    w->and_fell_to_or -= before->and_fell_to_or;
    w->parts -= before->parts;
    w->waits -= before->waits;
    w->allocations -= before->allocations;
    for (int i = 0; i < 4; ++i)
        w->seconds[i] -= before->seconds[i];
    for (int i = 0; i < GX_N_STEPS; ++i)
        w->steps[i] -= before->steps[i];
}

/* Mean bytes of a block of the queries' lists, docids and tfs, in all parts. */
static double mean_block_bytes(const query_bench *b, const query_engine *e)
{
    gx_list_sizes sum = {0};
    for (uint32_t i = 0; i < b->n; ++i)
        gx_engine_add_list_sizes(e->en, &e->plans[i], &sum);
    return sum.blocks ? (double)sum.bytes / (double)sum.blocks : 0;
}

/* What a query takes of the GPU's energy, while all are answered again and again. */
static gx_status measure_energy(query_bench *b, query_row *row, double *latencies, gx_error *err)
{
    const double before = bench_gpu_joules(), begin = gx_clock_seconds();
    gx_status st = GX_OK;
    double unused;
    uint32_t runs = 0;
    for (; before >= 0 && st == GX_OK && gx_clock_seconds() - begin < BENCH_ENERGY_SECONDS; ++runs)
        st = run_all(b, row->engine, row->batch, latencies, &unused, err);
    if (runs)
        row->joules = (bench_gpu_joules() - before) / ((double)runs * b->n);
    return st;
}

gx_status query_measure(query_bench *b, const query_engine *e, gx_algorithm algorithm, uint32_t recursion,
                        uint32_t batch, query_row *row, gx_error *err)
{
    batch = batch < b->n ? batch : b->n;
    const uint32_t calls = (b->n + batch - 1) / batch;
    double *latencies = malloc((size_t)calls * b->runs * sizeof *latencies), *times = malloc(b->runs * sizeof *times),
           unused;
    gx_status st = latencies && times ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for %u latencies", calls);
    *row = (query_row){.engine = e,
                       .op = b->op,
                       .k = b->k,
                       .batch = batch,
                       .algorithm = algorithm,
                       .recursion = recursion,
                       .plan_seconds = e->plan_seconds};
    for (uint32_t i = 0; i < b->n; ++i) {
        e->plans[i].prune = true;
        e->plans[i].algorithm = algorithm;
        e->plans[i].recursion = recursion;
        b->hits[i].n = 0;
    }
    if (st == GX_OK)
        st = run_all(b, e, batch, latencies, &unused, err);
    row->different = count_different(b);
    for (uint32_t r = 0; r < b->runs && st == GX_OK; ++r) {
        const gx_search_stats before = *gx_session_stats(e->session);
        st = run_all(b, e, batch, latencies + (size_t)r * calls, &times[r], err);
        row->work = *gx_session_stats(e->session);
        subtract_stats(&row->work, &before);
    }
    if (st == GX_OK) {
        query_sort(times, b->runs);
        row->seconds = times[b->runs / 2];
        for (uint32_t i = 0; i < calls * b->runs; ++i)
            row->mean += latencies[i] / (calls * b->runs);
        query_sort(latencies, calls * b->runs);
        row->n_latencies = calls * b->runs;
        for (int i = 0; i < QUERY_PERCENTILES; ++i) {
            if (row->n_latencies >= query_percentile_samples[i])
                row->percentiles[i] = query_quantile(latencies, row->n_latencies, query_percentiles[i] / 100);
        }
        row->bytes = (double)row->work.blocks_decoded * mean_block_bytes(b, e);
        if (row->work.blocks_decoded)
            row->touched = (double)row->work.blocks_decoded * (double)row->work.postings / (double)row->work.blocks +
                           (double)row->work.lookups;
        if (b->energy && gx_engine_get_kind(e->en) == GX_ENGINE_GPU)
            st = measure_energy(b, row, latencies, err);
    }
    free(latencies);
    free(times);
    return st;
}

gx_status query_offer_load(query_bench *b, const query_engine *e, const query_load *load, double *latencies,
                           uint32_t max, uint32_t *n, gx_error *err)
{
    const double rate = load->rate, offered = rate * load->seconds;
    const uint32_t total = offered < max ? (uint32_t)offered : max;
    uint32_t next = 0, at = 0; /* query next is the log's query `at` */
    gx_status st = GX_OK;
    const double begin = gx_clock_seconds();
    while (next < total && st == GX_OK) {
        double now = gx_clock_seconds() - begin, unused;
        while (now * rate < next) /* nothing is due */
            now = gx_clock_seconds() - begin;
        const double due = now * rate + 1;
        uint32_t m = (due < total ? (uint32_t)due : total) - next;
        m = m < load->max_batch ? m : load->max_batch;
        m = m < b->n - at ? m : b->n - at;
        st = query_run(b, e, at, m, &unused, err);
        now = gx_clock_seconds() - begin;
        for (uint32_t i = 0; i < m; ++i)
            latencies[next + i] = now - (next + i) / rate;
        next += m;
        at = (at + m) % b->n;
    }
    *n = next;
    return st;
}
