/* replay.c: a replay's threads and passes. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "engine/parallel.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "query/plan/approximate.h"
#include "query/replay/replay_state.h"

#define BATCH_KEYS ((size_t)4 << 20) /* most results of a batch of more than one query */
#define PENDING_KEYS 65536u          /* for each thread, most results that wait for earlier batches to be written, */
#define MAX_PENDING 64u              /* and most batches */

#define KEPT_BYTES ((size_t)1 << 30) /* of a log that is read before the replay; a longer one is read query by query */

#define MOST_IN_SERVICE 16u      /* batches of a thread that the service may have at once, */
#define SERVICE_KEYS (64u << 20) /* and most results of all threads' batches there */

static void work(void *arg, uint32_t number)
{
    gx_replay_worker *w = (gx_replay_worker *)arg + number;
    w->number = number;
    const int slack = prctl(PR_GET_TIMERSLACK);
    if (w->r->open_loop) /* the system may then wake this thread at most 1 ns late */
        prctl(PR_SET_TIMERSLACK, 1);
    if (w->r->service && w->r->kind != GX_REPLAY_VERIFY)
        gx_replay_feed_service(w);
    else
        while (gx_replay_take(w))
            if (!(w->r->kind == GX_REPLAY_VERIFY ? gx_replay_verify(w) : gx_replay_answer(w)))
                break;
    if (slack > 0)
        prctl(PR_SET_TIMERSLACK, slack);
}

static void close_worker(gx_replay_worker *w)
{
    gx_session_close(w->session);
    gx_session_close(w->other);
    gx_session_close(w->exhaustive);
    free(w->queries);
    free(w->plans);
    free(w->filters);
    free(w->hits);
    free(w->again);
    free(w->keys);
    free(w->keys_again);
    free(w->scores);
    free(w->docids);
    free(w->highs);
    free(w->highs_again);
    free(w->bytes);
    free(w->terms);
    free(w->vector);
    free(w->lines.bytes);
    free(w->jobs);
    free(w->sent);
    free(w->ends);
}

/* A worker, with sessions if it has a thread. */
static gx_status open_worker(gx_replay_worker *w, gx_replay_pass *r, gx_engine *en, bool has_thread, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    const size_t n = r->batch, n_keys = n * r->max_k;
    w->r = r;
    w->queries = malloc(n * sizeof *w->queries);
    w->plans = malloc(n * sizeof *w->plans);
    w->filters = malloc(n * sizeof(gx_filter *));
    w->hits = malloc(n * sizeof *w->hits);
    w->keys = malloc((n_keys + 1) * sizeof *w->keys);
    bool memory = w->queries && w->plans && w->filters && w->hits && w->keys;
    const bool wide = r->ix && gx_index_is_wide(r->ix);
    if (wide)
        memory = (w->highs = malloc((n_keys + 1) * sizeof *w->highs)) && memory;
    if (opt->query.prior.weight != 0) {
        w->scores = malloc((n_keys + 1) * sizeof *w->scores);
        w->docids = malloc((r->max_k + 1ull) * sizeof *w->docids);
        memory = memory && w->scores && w->docids;
    }
    if (r->service) {
        w->jobs = malloc(n * sizeof *w->jobs);
        w->sent = malloc(n * sizeof *w->sent);
        w->ends = malloc(n * sizeof *w->ends);
        memory = memory && w->jobs && w->sent && w->ends;
    }
    if (opt->verify_every && has_thread) {
        w->again = malloc(n * sizeof *w->again);
        w->keys_again = malloc((n_keys + 1) * sizeof *w->keys_again);
        memory = memory && w->again && w->keys_again;
        if (wide)
            memory = (w->highs_again = malloc((n_keys + 1) * sizeof *w->highs_again)) && memory;
    }
    if (!memory)
        return gx_fail(err, GX_ENOMEM, "no memory for a batch of %zu queries with %u results each", n, r->max_k);
    if (!has_thread || opt->ask)
        return GX_OK;
    gx_status st = gx_session_open(&w->session, en, err);
    if (st == GX_OK && opt->verify_every) {
        const bool other_is_cpu = opt->other && gx_engine_get_kind(opt->other) == GX_ENGINE_CPU;
        w->exhaustive_on = other_is_cpu ? opt->other : en;
        st = gx_session_open(&w->exhaustive, other_is_cpu ? opt->other : en, err);
        if (st == GX_OK && opt->other)
            st = gx_session_open(&w->other, opt->other, err);
    }
    return st;
}

/* Run one pass. The caller's thread is the first worker. */
static gx_status run_pass(gx_replay_pass *r, gx_replay_worker *workers, gx_replay_kind kind, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    gx_log_options read = opt->read;
    read.unique = opt->run_path && kind == GX_REPLAY_MEASURE;
    const gx_status st = r->kept ? GX_OK : gx_log_open(&r->log, opt->log, &read, err);
    if (st != GX_OK)
        return st;
    r->kind = kind;
    r->next_kept = 0;
    r->n_read = r->taken = r->delivered = r->n_done = r->borrowed = 0;
    r->ended = r->has_next = false;
    r->status = GX_OK;
    gx_arrivals_begin(&r->arrivals, opt->seed);
    for (uint64_t i = 0; i < r->n_waits; ++i)
        r->waits[i].n = 0;
    const uint64_t cpu_begin = gx_clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    r->begin = gx_replay_now();
    gx_parallel_run(opt->threads, work, workers);
    if (r->service)
        gx_service_drain(r->service);
    const double seconds = (double)(gx_replay_now() - r->begin) * 1e-9;
    if (kind == GX_REPLAY_MEASURE && r->status == GX_OK) {
        gx_replay_report *report = r->report;
        report->queries += r->n_done;
        report->log = r->kept ? r->kept->counts : gx_log_get_counts(r->log);
        report->form = r->kept ? r->kept->form : gx_log_get_form(r->log);
        report->seconds += seconds;
        report->cpu_seconds += (double)(gx_clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin) * 1e-9;
        report->fastest = report->fastest == 0 || seconds < report->fastest ? seconds : report->fastest;
        report->slowest = seconds > report->slowest ? seconds : report->slowest;
    }
    gx_log_close(r->log);
    r->log = NULL;
    if (kind == GX_REPLAY_MEASURE && r->status == GX_OK && !r->n_read)
        return gx_fail(err, GX_EINPUT, "%s has no query", opt->log);
    if (r->status == GX_ECANCELLED)
        return gx_fail(err, GX_ECANCELLED, "interrupted after %" PRIu64 " quer%s of all runs together", r->n_done,
                       r->n_done == 1 ? "y" : "ies");
    return r->status == GX_OK ? GX_OK : gx_fail(err, r->status, "%s", r->err.text);
}

/* Reset the counts, so that those of the warm-up are not reported. */
static void begin_measuring(gx_replay_worker *workers, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        gx_replay_worker *w = &workers[i];
        w->stages = (gx_replay_stages){0};
        w->results = w->without_results = w->impossible = w->late = w->matches = 0;
        memset(&w->latency, 0, sizeof w->latency);
        if (w->session)
            w->work_before = *gx_session_stats(w->session);
    }
}

static void add_work(gx_search_stats *sum, const gx_search_stats *after, const gx_search_stats *before)
{
    sum->postings += after->postings - before->postings;
    sum->blocks += after->blocks - before->blocks;
    sum->blocks_decoded += after->blocks_decoded - before->blocks_decoded;
    sum->lookups += after->lookups - before->lookups;
    sum->and_fell_to_or += after->and_fell_to_or - before->and_fell_to_or;
    sum->cached += after->cached - before->cached;
    sum->driven += after->driven - before->driven;
    sum->binned += after->binned - before->binned;
    sum->masked += after->masked - before->masked;
    sum->tested += after->tested - before->tested;
    sum->parts += after->parts - before->parts;
    sum->waits += after->waits - before->waits;
    sum->allocations += after->allocations - before->allocations;
    for (int i = 0; i < GX_N_SEARCH_STAGES; ++i)
        sum->seconds[i] += after->seconds[i] - before->seconds[i];
    for (int i = 0; i < GX_N_STEPS; ++i)
        sum->steps[i] += after->steps[i] - before->steps[i];
}

static void end_measuring(gx_replay_report *report, const gx_replay_worker *workers, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const gx_replay_worker *w = &workers[i];
        report->stages.wait += w->stages.wait;
        report->stages.read += w->stages.read;
        report->stages.plan += w->stages.plan;
        report->stages.search += w->stages.search;
        report->stages.count += w->stages.count;
        report->stages.write += w->stages.write;
        report->results += w->results;
        report->without_results += w->without_results;
        report->impossible += w->impossible;
        report->late += w->late;
        report->matches += w->matches;
        gx_histogram_merge(&report->latency, &w->latency);
        if (!w->session)
            continue;
        add_work(&report->work, gx_session_stats(w->session), &w->work_before);
        gx_session_memory m = {.size = sizeof m};
        gx_session_get_memory(w->session, &m);
        if (m.device + m.pinned >= report->memory.device + report->memory.pinned)
            report->memory = m;
    }
}

/* What a service did between two of its counts. */
static gx_service_counts subtract_counts(gx_service_counts a, const gx_service_counts *b)
{
    a.submitted -= b->submitted;
    a.answered -= b->answered;
    a.cancelled -= b->cancelled;
    a.refused -= b->refused;
    for (int p = 0; p < GX_N_PROCESSORS; ++p)
        a.by[p] -= b->by[p];
    a.batches -= b->batches;
    a.urgent -= b->urgent;
    a.stolen -= b->stolen;
    a.fell_back -= b->fell_back;
    a.gpu_failures -= b->gpu_failures;
    a.gpu_returns -= b->gpu_returns;
    a.gpu_hung -= b->gpu_hung;
    return a;
}

static gx_status measure(gx_replay_pass *r, gx_replay_worker *workers, uint32_t n_workers, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    gx_status st = GX_OK;
    gx_service_counts before = {0}, after = {0};
    if (r->service)
        gx_service_get_counts(r->service, &before);
    begin_measuring(workers, n_workers);
    for (uint32_t i = 0; i < opt->runs && st == GX_OK; ++i) {
        st = run_pass(r, workers, GX_REPLAY_MEASURE, err);
        if (st == GX_OK && r->run)
            st = gx_run_commit(r->run, err);
        gx_run_close(r->run);
        r->run = NULL;
    }
    end_measuring(r->report, workers, n_workers);
    if (r->service)
        gx_service_get_counts(r->service, &after);
    r->report->service = subtract_counts(after, &before);
    return st;
}

static gx_status run_passes(gx_replay_pass *r, gx_replay_worker *workers, uint32_t n_workers, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    gx_status st = GX_OK;
    if (opt->warmup)
        st = run_pass(r, workers, GX_REPLAY_WARM_UP, err);
    if (st == GX_OK && opt->run_path)
        st = gx_run_open(&r->run, opt->run_path, opt->force, err);
    if (st == GX_OK)
        st = measure(r, workers, n_workers, err);
    if (st == GX_OK && opt->verify_every)
        st = run_pass(r, workers, GX_REPLAY_VERIFY, err);
    for (uint32_t i = 0; i < opt->threads; ++i) {
        r->report->verified += workers[i].verified;
        r->report->other_differs += workers[i].other_differs;
        r->report->exhaustive_differs += workers[i].exhaustive_differs;
        r->report->exact_results += workers[i].exact_results;
        r->report->found_results += workers[i].found_results;
    }
    gx_run_close(r->run);
    return st;
}

/* What is not of every replay: an order, facets, a prior. */
static gx_status check_extras(const gx_replay_options *opt, const gx_engine *en, const gx_index *ix, gx_error *err)
{
    const bool prior = opt->query.prior.weight != 0;
    if (opt->sort && (opt->service || gx_engine_is_shard(en)))
        return gx_fail(err, GX_EUSAGE, "an order by attributes is of one engine that searches all parts");
    if (opt->sort && !gx_query_options_are_exact(&opt->query))
        return gx_fail(err, GX_EUSAGE, "an answer that is not exact has no order by attributes");
    if (opt->n_facets && (opt->service || opt->rm3 || gx_engine_is_shard(en)))
        return gx_fail(err, GX_EUSAGE, "facets are counted by one engine that searches all parts, and without RM3");
    if (prior && (opt->service || opt->rm3 || opt->sort || opt->verify_every))
        return gx_fail(err, GX_EUSAGE,
                       "a prior is of answers by score of one engine, without RM3, and they are not verified");
    return prior ? gx_prior_check(&opt->query.prior, ix, err) : GX_OK;
}

static gx_status check_options(const gx_replay_options *opt, const gx_engine *en, const gx_index *ix, gx_error *err)
{
    if (!opt->batch || !opt->threads || !opt->runs)
        return gx_fail(err, GX_EUSAGE, "batch, threads and runs are at least 1");
    if (!strcmp(opt->log, "-") && (opt->runs > 1 || opt->warmup || opt->verify_every))
        return gx_fail(err, GX_EUSAGE,
                       "standard input can be read only once: for several runs, a warm-up or "
                       "verifying, write the log to a file first");
    if (!en != (opt->ask != NULL) || (opt->ask && (opt->service || opt->verify_every || opt->rm3 || opt->query.mask ||
                                                   opt->sort || opt->n_facets || opt->query.prior.weight != 0)))
        return gx_fail(err, GX_EUSAGE, "a replay has an engine, or asks elsewhere, without what an engine is for");
    if (opt->ask)
        return GX_OK;
    if (opt->service && (opt->service->cpu ? opt->service->cpu : opt->service->gpu) != en)
        return gx_fail(err, GX_EUSAGE, "the replay's engine is another than the service's");
    if (opt->service && opt->service->bound < (uint64_t)opt->batch)
        return gx_fail(err, GX_EUSAGE, "a batch of %u queries does not fit the service, whose bound is %u", opt->batch,
                       opt->service->bound);
    if (opt->other && !opt->query.mask != !opt->other_mask)
        return gx_fail(err, GX_EUSAGE, "of the two engines that are compared only one has a mask");
    gx_query_options query = opt->query;
    query.prior.weight = 0;
    const gx_status st = check_extras(opt, en, ix, err);
    return st == GX_OK ? gx_query_options_check(&query, ix, err) : st;
}

/* Read the log before the replay, where this is wanted or queries have times at which they are due. */
static gx_status keep_log(gx_replay_pass *r, gx_error *err)
{
    const gx_replay_options *opt = r->opt;
    gx_log_options read = opt->read;
    read.unique = opt->run_path != NULL;
    if (r->open_loop || opt->in_memory || opt->queries) {
        const gx_status st = gx_log_memory_read(&r->kept, opt->log, &read, KEPT_BYTES, err);
        if (st != GX_OK)
            return st;
    }
    if (r->kept)
        r->n_queries = opt->queries ? opt->queries : r->kept->n;
    if (r->kept && opt->queries && !r->kept->n)
        return gx_log_memory_free(r->kept), gx_fail(err, GX_EINPUT, "%s has no query", opt->log);
    if (!opt->queries || (r->kept && !(opt->run_path && opt->queries > r->kept->n)))
        return GX_OK;
    const bool kept = r->kept != NULL;
    gx_log_memory_free(r->kept);
    return kept
               ? gx_fail(err, GX_EUSAGE,
                         "a run with more queries than %s has would have queries of the same id; give no run", opt->log)
               : gx_fail(err, GX_EUSAGE,
                         "a number of queries needs a log that memory holds: no vectors, not standard input, no "
                         "malformed line, below 1 GiB");
}

/* How many batches of a thread the service may have at once. */
static uint32_t batches_in_service(const gx_replay_pass *r)
{
    const uint64_t each = (uint64_t)r->batch * r->max_k * r->opt->threads, most = SERVICE_KEYS / (each ? each : 1);
    return most < 2 ? 2 : most < MOST_IN_SERVICE ? (uint32_t)most : MOST_IN_SERVICE;
}

gx_status gx_replay(gx_engine *en, const gx_replay_options *given, gx_replay_report *out, gx_error *err)
{
    gx_replay_options o = GX_REPLAY_OPTIONS;
    const gx_replay_options *const opt = &o;
    gx_status st =
        gx_sized_read(&o, sizeof o, given, GX_SIZE_THROUGH(gx_replay_options, rm3), "gx_replay_options", err);
    if (st != GX_OK)
        return st;
    gx_replay_pass r = {.opt = opt, .en = en, .ix = en ? gx_engine_index(en) : NULL, .report = out};
    st = check_options(opt, en, r.ix, err);
    if (st == GX_OK && opt->sort)
        st = gx_sort_read(&r.sort, r.ix, opt->sort, strlen(opt->sort), err);
    if (st != GX_OK)
        return st;
    st = gx_arrivals_open(&r.arrivals, opt, err);
    if (st != GX_OK)
        return st;
    r.open_loop = opt->rate > 0 || opt->arrivals != GX_ARRIVALS_FIXED;
    r.deadline = opt->deadline * 1e9 < 1e18 ? (uint64_t)ceil(opt->deadline * 1e9) : UINT64_MAX;
    memset(out, 0, sizeof *out);
    if ((st = keep_log(&r, err)) != GX_OK) {
        gx_arrivals_close(&r.arrivals);
        return st;
    }
    if (r.ix)
        r.max_k = opt->query.k < r.ix->n_docs ? opt->query.k : r.ix->n_docs;
    r.max_k += r.max_k == 0;
    const size_t most = BATCH_KEYS / r.max_k;
    r.batch = out->batch = most < 1 ? 1 : most < opt->batch ? (uint32_t)most : opt->batch;
    const uint64_t each = PENDING_KEYS / ((uint64_t)r.batch * r.max_k);
    const uint32_t n_workers = opt->threads * (opt->service ? batches_in_service(&r) : 1);
    r.n_waits = opt->threads * (each < 1 ? 1 : each < MAX_PENDING ? each : MAX_PENDING);
    r.waits = calloc(r.n_waits, sizeof *r.waits);
    gx_replay_worker *workers = calloc(n_workers, sizeof *workers);
    if (!workers || !r.waits)
        st = gx_fail(err, GX_ENOMEM, "no memory for %u threads", opt->threads);
    else if (opt->service)
        st = gx_service_open(&r.service, opt->service, err);
    if (st != GX_OK) {
        free(workers);
        free(r.waits);
        gx_log_memory_free(r.kept);
        gx_arrivals_close(&r.arrivals);
        return st;
    }
    pthread_mutex_init(&r.log_lock, NULL);
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.moved, NULL);
    for (uint32_t i = 0; i < n_workers && st == GX_OK; ++i) {
        st = open_worker(&workers[i], &r, en, i < opt->threads, err);
        workers[i].home = &workers[i % opt->threads];
        workers[i].next = workers[i].home->free;
        workers[i].home->free = &workers[i];
    }
    if (st == GX_OK)
        st = run_passes(&r, workers, n_workers, err);
    gx_service_close(r.service);
    for (uint32_t i = 0; i < n_workers; ++i)
        close_worker(&workers[i]);
    pthread_cond_destroy(&r.moved);
    pthread_mutex_destroy(&r.lock);
    pthread_mutex_destroy(&r.log_lock);
    for (uint64_t i = 0; i < r.n_waits; ++i)
        free(r.waits[i].lines.bytes);
    free(r.waits);
    free(workers);
    gx_log_memory_free(r.kept);
    gx_arrivals_close(&r.arrivals);
    return st;
}
