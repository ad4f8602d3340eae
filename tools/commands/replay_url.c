/* replay_url.c: a log is replayed through a server: each thread of the replay is a client with a connection of its own,
 * which stays open. The server writes the lines of the run itself (format=trec), so that they are those of a replay of
 * its index. */
#include "tools/commands/replay_url.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/progress.h"

#ifdef GX_CURL
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdatomic.h>

#include "tools/commands/replay_report.h"

enum { SHOWN = 20 };

/* ---- the library ---- */

/* libcurl is loaded by the first use, so that other commands start without it. */
#define CURL_CALLS(call)                                                                                               \
    call(easy_cleanup) call(easy_getinfo) call(easy_init) call(easy_perform) call(easy_setopt) call(easy_strerror)     \
        call(global_init) call(slist_append) call(slist_free_all)

static struct {
#define MEMBER(name) __typeof__(curl_##name) *name;
    CURL_CALLS(MEMBER)
#undef MEMBER
} lib;

static int load_library(void)
{
    const struct {
        const char *name;
        void *place;
    } calls[] = {
#define ENTRY(name) {"curl_" #name, &lib.name},
        CURL_CALLS(ENTRY)
#undef ENTRY
    };
    void *library = dlopen(GX_CURL, RTLD_NOW);
    bool whole = library;
    for (size_t i = 0; whole && i < sizeof calls / sizeof *calls; ++i) {
        void *const found = dlsym(library, calls[i].name);
        memcpy(calls[i].place, &found, sizeof found);
        whole = found;
    }
    if (!whole)
        return cli_fail(GX_ENOTFOUND, "--url needs libcurl, and it cannot be loaded: %s", dlerror());
    return (lib.global_init)(CURL_GLOBAL_DEFAULT) ? cli_fail(GX_ENOMEM, "libcurl does not start") : 0;
}

/* ---- what all threads share ---- */

typedef struct client {
    struct url_clients *of;
    CURL *curl;
    struct curl_slist *headers;
    gx_text body, answer;
    char fault[CURL_ERROR_SIZE];
} client;

struct url_clients {
    const cli_args *a;
    bool skip;           /* queries that the server refuses */
    char *url, *options; /* options: members of each body, ",\"k\":10" */
    atomic_uint_fast64_t failed, told;
    uint32_t n;
    client all[];
};

/* ---- bodies ---- */

/* What the server is asked for besides the query: what the command line gives. */
static void put_options(gx_text *t, const cli_args *a)
{
    static const char *const words[] = {"op", "syntax", "scorer", "sdm", "rm3"}, *const numbers[] = {"k1", "b"};
    gx_text_add_format(t, ",\"k\":%llu,\"quotes\":\"%s\"", (unsigned long long)cli_count(a, "top"),
                       cli_given(a, "quotes") ? cli_text(a, "quotes") : "words");
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (cli_given(a, words[i])) {
            const char *text = cli_text(a, words[i]);
            gx_text_add_format(t, ",\"%s\":", words[i]);
            gx_text_add_json(t, text, strlen(text));
        }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (cli_given(a, numbers[i]))
            gx_text_add_format(t, ",\"%s\":%.9g", numbers[i], cli_number(a, numbers[i]));
}

static void put_filter(gx_text *t, const cli_args *a, const gx_replay_question *q)
{
    const char *all = cli_text(a, "filter");
    gx_text both = {0};
    if (all && q->filter_len)
        gx_text_add_format(&both, "(%s) AND (%.*s)", all, (int)q->filter_len, q->filter);
    else if (all || q->filter_len)
        gx_text_add(&both, all ? all : q->filter, all ? strlen(all) : q->filter_len);
    if (both.len) {
        gx_text_add_string(t, ",\"filter\":");
        gx_text_add_json(t, both.bytes, both.len);
    }
    t->failed = t->failed || both.failed;
    free(both.bytes);
}

/* The searches of a request, a line each. */
static void make_body(client *c, const gx_replay_question *questions, uint32_t n)
{
    gx_text *t = &c->body;
    t->len = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_replay_question *q = &questions[i];
        gx_text_add_string(t, "{\"qid\":");
        gx_text_add_json(t, q->id, q->id_len);
        gx_text_add_string(t, ",\"query\":");
        gx_text_add_json(t, q->text, q->len);
        put_filter(t, c->of->a, q);
        gx_text_add_string(t, c->of->options);
        gx_text_add_string(t, "}\n");
    }
}

/* ---- requests ---- */

static size_t on_data(char *data, size_t size, size_t n, void *user)
{
    gx_text *t = user;
    gx_text_add(t, data, size * n);
    return t->failed ? 0 : size * n;
}

static bool open_client(client *c, struct url_clients *r)
{
    c->of = r;
    c->curl = lib.easy_init();
    c->headers = lib.slist_append(NULL, "Content-Type: application/x-ndjson");
    if (!c->curl || !c->headers)
        return false;
    struct curl_slist *more = lib.slist_append(c->headers, "Expect:");
    const char *token = getenv("GPUIDX_TOKEN");
    if (more && token) {
        gx_text line = {0};
        gx_text_add_format(&line, "Authorization: Bearer %s", token);
        gx_text_add(&line, "", 1);
        more = line.failed ? NULL : lib.slist_append(c->headers, line.bytes);
        free(line.bytes);
    }
    (lib.easy_setopt)(c->curl, CURLOPT_URL, r->url);
    (lib.easy_setopt)(c->curl, CURLOPT_HTTPHEADER, c->headers);
    (lib.easy_setopt)(c->curl, CURLOPT_WRITEFUNCTION, on_data);
    (lib.easy_setopt)(c->curl, CURLOPT_WRITEDATA, &c->answer);
    (lib.easy_setopt)(c->curl, CURLOPT_ERRORBUFFER, c->fault);
    (lib.easy_setopt)(c->curl, CURLOPT_NOSIGNAL, 1l);
    (lib.easy_setopt)(c->curl, CURLOPT_TCP_NODELAY, 1l);
    (lib.easy_setopt)(c->curl, CURLOPT_TIMEOUT, 600l);
    (lib.easy_setopt)(c->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    return more != NULL;
}

static void close_client(client *c)
{
    if (c->curl)
        lib.easy_cleanup(c->curl);
    if (c->headers)
        lib.slist_free_all(c->headers);
    free(c->body.bytes);
    free(c->answer.bytes);
}

/* The message of a fault, {"error":{"message":"..."}}, or all of it. */
static gx_status read_fault(const gx_text *t, long status, gx_error *err)
{
    const char *begin = t->bytes ? t->bytes : "", *message = t->len ? memmem(begin, t->len, "\"message\":", 10) : NULL;
    const char *from = message ? message + 10 : begin;
    const size_t left = (size_t)(begin + t->len - from);
    err->status = status == 404 ? GX_ENOTFOUND : status >= 500 || status == 401 || status == 403 ? GX_EIO : GX_EINPUT;
    snprintf(err->text, sizeof err->text, "the server says %ld: %.*s", status, (int)(left < 500 ? left : 500), from);
    return err->status;
}

static gx_status send_request(client *c, const gx_replay_question *questions, uint32_t n, gx_error *err)
{
    long status = 0;
    make_body(c, questions, n);
    if (c->body.failed) {
        *err = (gx_error){GX_ENOMEM, "no memory for a request"};
        return GX_ENOMEM;
    }
    c->answer.len = 0;
    (lib.easy_setopt)(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.len);
    (lib.easy_setopt)(c->curl, CURLOPT_POSTFIELDS, c->body.bytes);
    const CURLcode code = lib.easy_perform(c->curl);
    if (code != CURLE_OK) {
        err->status = GX_EIO;
        snprintf(err->text, sizeof err->text, "%s: %s", c->of->url, c->fault[0] ? c->fault : lib.easy_strerror(code));
        return GX_EIO;
    }
    (lib.easy_getinfo)(c->curl, CURLINFO_RESPONSE_CODE, &status);
    return status == 200 ? GX_OK : read_fault(&c->answer, status, err);
}

/* Of a request that was refused, the queries that can be answered. */
static gx_status send_singly(client *c, const gx_replay_question *questions, uint32_t n, gx_text *lines, gx_error *err)
{
    for (uint32_t i = 0; i < n; ++i) {
        const gx_status st = send_request(c, &questions[i], 1, err);
        if (st == GX_OK)
            gx_text_add(lines, c->answer.bytes, c->answer.len);
        else if (st != GX_EINPUT)
            return st;
        else if (atomic_fetch_add(&c->of->failed, 1) < SHOWN)
            cli_warn("query %.*s: %s", (int)questions[i].id_len, questions[i].id, err->text);
    }
    return GX_OK;
}

static gx_status ask(void *user, uint32_t thread, const gx_replay_question *questions, uint32_t n, gx_text *lines,
                     gx_error *err)
{
    struct url_clients *of = user;
    client *c = &of->all[thread];
    const gx_status st = send_request(c, questions, n, err);
    if (st == GX_EINPUT && of->skip)
        return send_singly(c, questions, n, lines, err);
    if (st == GX_OK)
        gx_text_add(lines, c->answer.bytes, c->answer.len);
    return st;
}

/* ---- the report ---- */

static double rate_of(const gx_replay_report *r)
{
    return r->seconds > 0 ? (double)r->queries / r->seconds : 0;
}

static void put_report(FILE *out, const url_clients *c, const gx_replay_options *opt, const gx_replay_report *r)
{
    const gx_histogram *h = &r->latency;
    fprintf(out, "Server %s\nLog %s: %s queries; k %llu, requests of %u, %u connections%s\n", c->url, opt->log,
            show_count(r->queries), (unsigned long long)cli_count(c->a, "top"), r->batch, opt->threads,
            replay_is_open_loop(opt) ? ", open loop" : "");
    fprintf(out, "  %.1f queries/s, %.3f s; %s results; ", rate_of(r), r->seconds, show_count(r->results));
    fprintf(out, "%s failed\n", show_count(atomic_load(&c->failed)));
    fprintf(out, "  latency, us: mean %.1f", 1e-3 * gx_histogram_mean(h));
    for (size_t i = 0; i < REPLAY_N_PERCENTILES; ++i)
        fprintf(out, ", p%g %.1f", replay_percentiles[i],
                1e-3 * (double)gx_histogram_quantile(h, replay_percentiles[i] / 100));
    fprintf(out, ", max %.1f\n", 1e-3 * (double)h->max);
    if (opt->deadline > 0)
        fprintf(out, "  %s later than %g ms\n", show_count(r->late), 1e3 * opt->deadline);
    fprintf(out, "  this client took %.2f s of processor time, %.1f us a query\n", r->cpu_seconds,
            r->queries ? 1e6 * r->cpu_seconds / (double)r->queries : 0);
}

static int write_report(const url_clients *c, const gx_replay_options *opt, const gx_replay_report *r, const char *path)
{
    gx_text t = {0};
    gx_error err = {0};
    int code = 0;
    gx_text_add_format(&t, "{\"schema\":1,\"gpuidx\":\"%s\",\"url\":", gx_version());
    gx_text_add_json(&t, c->url, strlen(c->url));
    gx_text_add_format(&t, ",\"queries\":%llu,\"batch\":%u,\"threads\":%u,\"seconds\":%.6f",
                       (unsigned long long)r->queries, r->batch, opt->threads, r->seconds);
    gx_text_add_format(&t, ",\"queries_per_second\":%.3f,\"cpu_seconds\":%.6f,\"results\":%llu,\"failed\":%llu",
                       rate_of(r), r->cpu_seconds, (unsigned long long)r->results,
                       (unsigned long long)atomic_load(&c->failed));
    gx_text_add_format(&t, ",\"late\":%llu,\"latency_us\":{\"mean\":%.3f", (unsigned long long)r->late,
                       1e-3 * gx_histogram_mean(&r->latency));
    for (size_t i = 0; i < REPLAY_N_PERCENTILES; ++i)
        gx_text_add_format(&t, ",\"p%g\":%.3f", replay_percentiles[i],
                           1e-3 * (double)gx_histogram_quantile(&r->latency, replay_percentiles[i] / 100));
    gx_text_add_format(&t, ",\"max\":%.3f}}\n", 1e-3 * (double)r->latency.max);
    if (t.failed)
        code = cli_fail(GX_ENOMEM, "no memory for the report");
    else if (strcmp(path, "-") == 0)
        fwrite(t.bytes, 1, t.len, stdout);
    else if (gx_write_file(path, t.bytes, t.len, cli_switch(c->a, "force"), &err))
        code = cli_fail_error(&err);
    free(t.bytes);
    return code;
}

int url_report(const url_clients *c, const gx_replay_options *opt, const gx_replay_report *r)
{
    const char *path = cli_text(c->a, "report");
    const int code = path ? write_report(c, opt, r, path) : 0;
    if (!path || (strcmp(path, "-") && !cli_quiet()))
        put_report(opt->run_path && !strcmp(opt->run_path, "-") ? stderr : stdout, c, opt, r);
    return code;
}

/* ---- the command ---- */

/* What only an index can be asked for. */
static int check_flags(const cli_args *a)
{
    static const char *const others[] = {
        "only",           "sort",   "not",     "engine",    "verify",    "result-cache", "facet",
        "sums",           "prior",  "prune",   "algorithm", "recursion", "approximate",  "pair-thresholds",
        "allow-id-files", "device", "devices", "check",     "load",      "decisions",    "profile"};
    const char *url = cli_text(a, "url");
    if (a->argc != 1)
        return cli_usage(a, "with --url, the log is the only argument");
    if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
        return cli_usage(a, "--url=%s: it has the form http://HOST:PORT/NAME", url);
    const char *name = strchr(strstr(url, "://") + 3, '/');
    if (!name || !name[1] || strpbrk(name + 1, "/?#"))
        return cli_usage(a, "--url=%s: the name of an index is missing: http://HOST:PORT/NAME", url);
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        if (cli_given(a, others[i]))
            return cli_usage(a, "--%s is of an index that this program opens; with --url the server has it", others[i]);
    return 0;
}

/* http://HOST/NAME becomes the address of its searches. */
static char *search_url(const cli_args *a)
{
    const char *url = cli_text(a, "url"), *name = strchr(strstr(url, "://") + 3, '/');
    gx_text t = {0};
    gx_text_add(&t, url, (size_t)(name - url));
    gx_text_add_format(&t, "/v1%s/search?format=trec&tag=", name);
    for (const unsigned char *p = (const unsigned char *)cli_text(a, "run-tag"); *p; ++p)
        gx_text_add_format(&t, (*p | 32) >= 'a' && (*p | 32) <= 'z' ? "%c" : "%%%02x", *p);
    gx_text_add(&t, "", 1);
    return t.failed ? NULL : t.bytes;
}

int url_clients_open(url_clients **out, const cli_args *a, gx_replay_options *opt)
{
    gx_text options = {0};
    int code = check_flags(a);
    if (code == 0)
        code = load_library();
    if (code)
        return code;
    url_clients *c = calloc(1, sizeof *c + opt->threads * sizeof *c->all);
    *out = c;
    if (!c)
        return cli_fail(GX_ENOMEM, "no memory for %u connections", opt->threads);
    c->a = a;
    c->skip = opt->skip_bad;
    put_options(&options, a);
    gx_text_add(&options, "", 1);
    c->options = options.bytes;
    c->url = search_url(a);
    bool good = c->url && !options.failed;
    for (; good && c->n < opt->threads; ++c->n)
        good = open_client(&c->all[c->n], c);
    opt->ask = ask;
    opt->ask_user = c;
    return good ? 0 : cli_fail(GX_ENOMEM, "no memory for %u connections", opt->threads);
}

void url_clients_close(url_clients *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n; ++i)
        close_client(&c->all[i]);
    free(c->options);
    free(c->url);
    free(c);
}

#else

int url_clients_open(url_clients **out, const cli_args *a, gx_replay_options *opt)
{
    (void)a;
    (void)opt;
    *out = NULL;
    return cli_fail(GX_EUSAGE, "--url is not in this build of gpuidx, which was made without libcurl");
}

int url_report(const url_clients *c, const gx_replay_options *opt, const gx_replay_report *r)
{
    (void)c;
    (void)opt;
    (void)r;
    return 0;
}

void url_clients_close(url_clients *c)
{
    (void)c;
}

#endif
