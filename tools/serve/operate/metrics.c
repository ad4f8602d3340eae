#include "tools/serve/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/serve/access.h"
#include "tools/serve/http.h"
#include "tools/serve/log.h"
#include "tools/serve/protocols.h"
#include "tools/serve/writes.h"

/* Upper bounds of the buckets of durations, in us. */
static const unsigned BOUNDS[] = {50,    100,   250,   500,    1000,   2500,    5000,
                                  10000, 25000, 50000, 100000, 250000, 1000000, 10000000};
enum { N_BOUNDS = sizeof BOUNDS / sizeof *BOUNDS, N_ROUTES_MAX = 80, N_CLASSES = 6, N_LATEST = 1000 };

typedef struct route_counts {
    atomic_uint_fast64_t by_class[N_CLASSES]; /* of statuses: 2xx at 2 */
    atomic_uint_fast64_t buckets[N_BOUNDS + 1], us, queries;
} route_counts;

struct metrics {
    route_counts routes[N_ROUTES_MAX + 1]; /* the last: no route */
    atomic_uint_fast64_t n_latest;
    atomic_uint latest[N_LATEST]; /* us */
};

metrics *metrics_open(void)
{
    return calloc(1, sizeof(metrics));
}

void metrics_close(metrics *m)
{
    free(m);
}

static void add(atomic_uint_fast64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static uint64_t get(atomic_uint_fast64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

void metrics_count(exchange *x)
{
    metrics *m = x->sv->metrics;
    size_t n, bucket = 0;
    const route *all = routes_all(&n);
    route_counts *c = &m->routes[x->route ? (size_t)(x->route - all) : N_ROUTES_MAX];
    const double seconds = serve_clock() - x->began;
    const uint64_t us = (uint64_t)(1e6 * seconds);
    while (bucket < N_BOUNDS && us > BOUNDS[bucket])
        ++bucket;
    add(&c->by_class[x->status / 100 % N_CLASSES], 1);
    add(&c->buckets[bucket], 1);
    add(&c->us, us);
    add(&c->queries, x->n_searches);
    if (x->n_searches) {
        const uint64_t at = atomic_fetch_add_explicit(&m->n_latest, 1, memory_order_relaxed);
        atomic_store_explicit(&m->latest[at % N_LATEST], (unsigned)us, memory_order_relaxed);
    }
    if (x->sv->log)
        log_request(x->sv->log, x, seconds);
}

void metrics_tick(server *sv)
{
    if (sv->http)
        http_tick(sv->http);
    if (sv->log)
        log_flush(sv->log);
}

/* ---- Prometheus ---- */

static void put_head(gx_text *t, const char *name, const char *type, const char *help)
{
    gx_text_add_format(t, "# HELP gpuidx_%s %s\n# TYPE gpuidx_%s %s\n", name, help, name, type);
}

static void put_route_label(gx_text *t, size_t i)
{
    size_t n;
    const route *all = routes_all(&n);
    if (i < n)
        gx_text_add_format(t, "{method=\"%s\",route=\"%s\"", all[i].method, all[i].path);
    else
        gx_text_add_string(t, "{method=\"\",route=\"none\"");
}

static bool is_used(metrics *m, size_t i)
{
    uint64_t n = 0;
    for (size_t k = 0; k < N_CLASSES; ++k)
        n += get(&m->routes[i].by_class[k]);
    return n > 0;
}

static void put_requests(gx_text *t, metrics *m)
{
    put_head(t, "requests_total", "counter", "Requests answered, by route and class of status.");
    for (size_t i = 0; i <= N_ROUTES_MAX; ++i) {
        for (size_t k = 0; k < N_CLASSES; ++k) {
            const uint64_t count = get(&m->routes[i].by_class[k]);
            if (count == 0)
                continue;
            gx_text_add_string(t, "gpuidx_requests_total");
            put_route_label(t, i);
            gx_text_add_format(t, ",status=\"%zuxx\"} %llu\n", k, (unsigned long long)count);
        }
    }
    put_head(t, "queries_total", "counter", "Queries of these requests.");
    for (size_t i = 0; i <= N_ROUTES_MAX; ++i) {
        if (!get(&m->routes[i].queries))
            continue;
        gx_text_add_string(t, "gpuidx_queries_total");
        put_route_label(t, i);
        gx_text_add_format(t, "} %llu\n", (unsigned long long)get(&m->routes[i].queries));
    }
}

static void put_durations(gx_text *t, metrics *m)
{
    put_head(t, "request_duration_seconds", "histogram", "From a request's first byte to its answer.");
    for (size_t i = 0; i <= N_ROUTES_MAX; ++i) {
        uint64_t sum = 0;
        if (!is_used(m, i))
            continue;
        for (size_t k = 0; k <= N_BOUNDS; ++k) {
            sum += get(&m->routes[i].buckets[k]);
            gx_text_add_string(t, "gpuidx_request_duration_seconds_bucket");
            put_route_label(t, i);
            if (k < N_BOUNDS)
                gx_text_add_format(t, ",le=\"%g\"} %llu\n", 1e-6 * BOUNDS[k], (unsigned long long)sum);
            else
                gx_text_add_format(t, ",le=\"+Inf\"} %llu\n", (unsigned long long)sum);
        }
        gx_text_add_string(t, "gpuidx_request_duration_seconds_sum");
        put_route_label(t, i);
        gx_text_add_format(t, "} %.6f\ngpuidx_request_duration_seconds_count", 1e-6 * (double)get(&m->routes[i].us));
        put_route_label(t, i);
        gx_text_add_format(t, "} %llu\n", (unsigned long long)sum);
    }
}

/* One line of an index. */
static void put_value(gx_text *t, const char *metric, const char *index, const char *more, double value)
{
    gx_text_add_format(t, "gpuidx_%s{index=\"%s\"%s} %.15g\n", metric, index, more, value);
}

typedef struct index_metric {
    const char *name, *type, *help;
} index_metric;

static void put_index(gx_text *t, const char *name, snapshot *s, int which)
{
    gx_service_counts counts = {0};
    load *l = snapshot_load(s);
    gx_error why;
    gx_service_get_counts(s->service, &counts);
    switch (which) {
    case 0:
        put_value(t, "documents", name, "", (double)s->n_docs);
        break;
    case 1:
        put_value(t, "commit", name, "", (double)gx_index_commit(s->ix));
        break;
    case 2:
        put_value(t, "commit_age_seconds", name, "", serve_clock() - s->opened);
        break;
    case 3:
        put_value(t, "queries_under_way", name, "", (double)atomic_load(&l->under_way));
        break;
    case 4:
        put_value(t, "answers_total", name, ",processor=\"cpu\"", (double)get(&l->by[GX_PROCESSOR_CPU]));
        put_value(t, "answers_total", name, ",processor=\"gpu\"", (double)get(&l->by[GX_PROCESSOR_GPU]));
        break;
    case 5:
        put_value(t, "gpu_batches_total", name, "", (double)counts.batches);
        break;
    case 6:
        put_value(t, "fallbacks_total", name, "", (double)get(&l->fell_back));
        break;
    case 7:
        put_value(t, "gpu_failures_total", name, "", (double)counts.gpu_failures);
        break;
    case 8:
        put_value(t, "gpu_usable", name, "", s->gpu && gx_engine_get_fallback(s->gpu, &why) == GX_OK);
        break;
    default:
        break;
    }
}

static void put_indexes(gx_text *t, exchange *x)
{
    static const index_metric all[] = {
        {"documents", "gauge", "Documents of the index."},
        {"commit", "gauge", "Number of the commit that is served; 0: one file."},
        {"commit_age_seconds", "gauge", "Seconds since this commit was opened."},
        {"queries_under_way", "gauge", "Queries that wait or are searched."},
        {"answers_total", "counter", "Answers of the service, by processor."},
        {"gpu_batches_total", "counter", "Batches of the GPU since this commit was opened."},
        {"fallbacks_total", "counter", "Queries that the GPU failed on and the CPU answered."},
        {"gpu_failures_total", "counter", "Failures of the GPU since this commit was opened."},
        {"gpu_usable", "gauge", "1: a GPU answers."},
    };
    const char *name;
    for (int k = 0; k < (int)(sizeof all / sizeof *all); ++k) {
        put_head(t, all[k].name, all[k].type, all[k].help);
        for (uint32_t i = 0; (name = catalog_name(x->sv->catalog, i)); ++i) {
            if (!access_to(x->who, name))
                continue;
            snapshot *s = catalog_get(x->sv->catalog, name);
            put_index(t, name, s, k);
            snapshot_release(s);
        }
    }
}

/* Of the collections that are written to. */
static void put_writes(gx_text *t, exchange *x)
{
    static const index_metric all[] = {
        {"writes_total", "counter", "Documents written or deleted."},
        {"writes_failed_total", "counter", "Changes of documents that failed."},
        {"commits_total", "counter", "Commits of the server."},
        {"merges_total", "counter", "Merges of parts by the server."},
        {"writes_waiting", "gauge", "Requests that wait for a commit."},
    };
    const char *name;
    for (size_t k = 0; x->sv->writers && k < sizeof all / sizeof *all; ++k) {
        put_head(t, all[k].name, all[k].type, all[k].help);
        for (uint32_t i = 0; (name = catalog_name(x->sv->catalog, i)); ++i) {
            write_counts n;
            if (!access_to(x->who, name) || !writers_count(x->sv->writers, name, &n))
                continue;
            const uint64_t values[] = {n.ops, n.failed, n.commits, n.merges, n.waiting};
            put_value(t, all[k].name, name, "", (double)values[k]);
        }
    }
}

static void put_gpu_memory(gx_text *t)
{
    gx_device *devices = NULL;
    uint32_t n = 0;
    gx_error ignored;
    if (gx_devices(&devices, &n, &ignored))
        return;
    put_head(t, "gpu_memory_free_bytes", "gauge", "Free memory of each GPU.");
    for (uint32_t i = 0; i < n; ++i)
        gx_text_add_format(t, "gpuidx_gpu_memory_free_bytes{gpu=\"%d\"} %llu\n", devices[i].number,
                           (unsigned long long)devices[i].free_memory);
    free(devices);
}

void metrics_reply(exchange *x)
{
    gx_text *t = &x->reply;
    const server *sv = x->sv;
    put_requests(t, sv->metrics);
    put_durations(t, sv->metrics);
    put_indexes(t, x);
    put_writes(t, x);
    put_gpu_memory(t);
    put_head(t, "connections", "gauge", "Open connections.");
    gx_text_add_format(t, "gpuidx_connections %u\n", sv->http ? http_connections(sv->http) : 0);
    put_head(t, "requests_under_way", "gauge", "Requests that are not answered yet.");
    gx_text_add_format(t, "gpuidx_requests_under_way %u\n", sv->http ? http_under_way(sv->http) : 0);
    put_head(t, "jobs_waiting", "gauge", "Requests that wait for a worker.");
    gx_text_add_format(t, "gpuidx_jobs_waiting %u\n", workers_waiting(sv->workers));
    put_head(t, "uptime_seconds", "gauge", "Seconds since the server began.");
    gx_text_add_format(t, "gpuidx_uptime_seconds %.3f\n", serve_clock() - sv->started);
    x->type = "text/plain; version=0.0.4; charset=utf-8";
    exchange_reply(x, 200);
}

/* ---- for the page ---- */

static int by_size(const void *a, const void *b)
{
    const unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* ,"buckets":[{"below_us":64,"requests":3},...]: from the first that has one to the last, each twice as wide. */
static void put_latest(gx_text *t, const unsigned *us /* by size */, uint64_t n)
{
    uint64_t i = 0, below = 16;
    bool any = false;
    gx_text_add_string(t, ",\"buckets\":[");
    while (i < n) {
        const uint64_t from = i;
        while (i < n && us[i] < below)
            ++i;
        if (any || i > from)
            gx_text_add_format(t, "%s{\"below_us\":%llu,\"requests\":%llu}", any ? "," : "",
                               (unsigned long long)below, (unsigned long long)(i - from));
        any = any || i > from;
        below *= 2;
    }
    gx_text_add_string(t, "]");
}

void metrics_status(exchange *x)
{
    metrics *m = x->sv->metrics;
    unsigned us[N_LATEST];
    const uint64_t all = get(&m->n_latest), n = all < N_LATEST ? all : N_LATEST;
    for (uint64_t i = 0; i < n; ++i)
        us[i] = atomic_load_explicit(&m->latest[i], memory_order_relaxed);
    qsort(us, n, sizeof *us, by_size);
    gx_text_add_format(&x->reply, "{\"schema\":1,\"requests\":%llu,\"latest\":%llu", (unsigned long long)all,
                       (unsigned long long)n);
    for (int p = 0; n && p < 3; ++p) {
        static const int percents[] = {50, 90, 99};
        gx_text_add_format(&x->reply, ",\"p%d_us\":%u", percents[p], us[(n - 1) * (uint64_t)percents[p] / 100]);
    }
    put_latest(&x->reply, us, n);
    gx_text_add_string(&x->reply, "}\n");
    exchange_reply(x, 200);
}
