/* serve.c: `gpuidx serve`: the command line, and a server's life from its indexes to its last answer. */
#include "tools/serve/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/search_flags.h"
#include "tools/serve/access.h"
#include "tools/serve/catalog.h"
#include "tools/serve/http.h"
#include "tools/serve/listen.h"
#include "tools/serve/log.h"
#include "tools/serve/metrics.h"
#include "tools/serve/protocols.h"
#include "tools/serve/command/serving_flags.h"
#include "tools/serve/writes.h"

/* ---- the command line ---- */

static void read_limits(limits *l, const cli_args *a)
{
    *l = (limits){
        .body = cli_count(a, "max-body"),
        .depth = 64,
        .k = (uint32_t)cli_count(a, "max-k"),
        .queries = (uint32_t)cli_count(a, "max-queries"),
        .ops = (uint32_t)cli_count(a, "max-documents"),
        .chars = (uint32_t)cli_count(a, "max-chars"),
        .window = (uint32_t)cli_count(a, "window"),
        .waiting = (uint32_t)cli_count(a, "max-waiting"),
        .jobs = (uint32_t)cli_count(a, "max-waiting"),
        .max_wait = 1e-3 * cli_number(a, "max-wait"),
        .timeout = 1e-3 * cli_number(a, "timeout"),
        .idle = cli_number(a, "idle-timeout"),
        .slow = cli_number(a, "slow-timeout"),
        .drain = cli_number(a, "drain"),
        .connections = (uint32_t)cli_count(a, "max-connections"),
    };
}

/* The names of a list with commas between, at most MAX_NAMES; they live as long as the program. */
enum { MAX_NAMES = 32 };

static int read_names(const cli_args *a, const char *flag, const char **names, uint32_t *n)
{
    const char *text = cli_text(a, flag);
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        return cli_fail(GX_ENOMEM, "no memory for --%s", flag);
    for (char *rest = copy, *name; (name = strsep(&rest, ","));) {
        if (*n == MAX_NAMES)
            return cli_usage(a, "--%s: these are more than %d names", flag, MAX_NAMES);
        names[(*n)++] = name;
    }
    return 0;
}

int serve_read_defaults(gx_search_setup *s, const cli_args *a)
{
    static const char *const names[] = {"op", "scorer", "k1", "b"};
    gx_error err = {0};
    gx_search_setup_init(s, sizeof *s);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        const char *text = cli_text(a, names[i]);
        if (text && (cli_given(a, names[i]) || strcmp(names[i], "scorer")) &&
            gx_search_setup_set(s, names[i], strlen(names[i]), text, strlen(text), &err))
            return cli_usage(a, "--%s=%s: %s", names[i], text, err.text);
    }
    return 0;
}

static uint32_t processors(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

/* ---- signals ---- */

/* Signals are waited for by the main thread alone. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void reload(server *sv)
{
    gx_error err = {0};
    if (sv->tokens && tokens_reload(sv->tokens, &err))
        cli_warn("the old tokens stay: %s", err.text);
    if (sv->log)
        log_reopen(sv->log);
}

static void wait_for_end(server *sv, const sigset_t *set)
{
    int signal = 0;
    while (sigwait(set, &signal) == 0 && signal == SIGHUP)
        reload(sv);
}

/* Seconds without a request after which there are no more: what a client had sent before the signal is read by then. */
#define STILL 0.2

/* Requests under way are answered; a second signal, or the time for it, ends the wait for those that are still being
 * read or sent. */
static void drain(server *sv, const sigset_t *set)
{
    const double end = serve_clock() + sv->limits.drain;
    atomic_store(&sv->draining, true);
    notify_systemd("STOPPING=1");
    http_drain(sv->http);
    writers_drain(sv->writers);
    for (double busy = serve_clock(), now = busy; now < end && now < busy + STILL; now = serve_clock()) {
        const struct timespec moment = {0, 20 * 1000000};
        if (http_under_way(sv->http))
            busy = now;
        if (sigtimedwait(set, NULL, &moment) > 0)
            break;
    }
}

/* ---- its life ---- */

static int open_parts(server *sv, const cli_args *a, uint32_t threads)
{
    gx_error err = {0};
    const char *path = cli_text(a, "tokens"), *log = cli_text(a, "access-log");
    uint32_t n_workers = (uint32_t)cli_count(a, "workers");
    if (path && tokens_open(&sv->tokens, path, &err))
        return cli_fail_error(&err);
    if (log && log_open(&sv->log, log, &err))
        return cli_fail_error(&err);
    sv->windows = windows_open((uint32_t)cli_count(a, "windows"), 600);
    if (!(sv->metrics = metrics_open()) || !sv->windows)
        return cli_fail(GX_ENOMEM, "no memory for the server");
    n_workers = n_workers ? n_workers : processors() < 2 ? 2 : processors();
    if (workers_open(&sv->workers, n_workers, sv->limits.jobs, &err))
        return cli_fail_error(&err);
    const int code = catalog_open(&sv->catalog, sv, a, threads);
    return code ? code : writers_open(&sv->writers, sv, a);
}

static void close_parts(server *sv)
{
    workers_close(sv->workers);
    writers_close(sv->writers);
    windows_close(sv->windows);
    catalog_close(sv->catalog);
    tokens_close(sv->tokens);
    log_close(sv->log);
    metrics_close(sv->metrics);
}

static int serve(server *sv, listeners *l, uint32_t threads, const sigset_t *signals)
{
    gx_error err = {0};
    char name[300];
    sv->loopback = l->loopback;
    if (http_open(&sv->http, sv, l->sockets, l->n, threads, &err)) {
        http_close(sv->http);
        return cli_fail_error(&err);
    }
    for (uint32_t i = 0; i < l->n; ++i) {
        listeners_name(l, i, name, sizeof name);
        cli_note("listening at %s", name);
    }
    notify_systemd("READY=1");
    wait_for_end(sv, signals);
    drain(sv, signals);
    http_wait(sv->http);
    http_close(sv->http);
    sv->http = NULL;
    return 0;
}

static int run(const cli_args *a)
{
    static const char *hosts[MAX_NAMES], *origins[MAX_NAMES];
    static server sv; /* whose size no stack should hold */
    uint32_t threads = (uint32_t)cli_count(a, "threads");
    listeners l = {0};
    sigset_t signals;
    gx_error err = {0};
    sv = (server){
        .hosts = hosts, .origins = origins, .anybody = {.name = "", .level = ACCESS_WRITE}, .started = serve_clock()};
    threads = threads ? threads : processors();
    read_limits(&sv.limits, a);
    cli_json_memory_may_fail();
    block_signals(&signals);
    int code = serve_read_defaults(&sv.defaults, a);
    if (code == 0 && (code = read_names(a, "allow-host", hosts, &sv.n_hosts)) == 0)
        code = read_names(a, "allow-origin", origins, &sv.n_origins);
    if (code == 0)
        code = open_parts(&sv, a, threads);
    if (code == 0 && listeners_open(&l, cli_given(a, "listen") ? cli_text(a, "listen") : "127.0.0.1:7700", &err))
        code = cli_fail_error(&err);
    if (code == 0) {
        code = serve(&sv, &l, threads, &signals);
        listeners_close(&l, false);
    } else {
        listeners_close(&l, true);
    }
    close_parts(&sv);
    return code;
}

/* clang-format off */
static const cli_flag flags[] = {
    {"listen", 'l', CLI_LIST, "ADDRESS", NULL,
     "where to listen: `ADDR:PORT`, `[ADDR]:PORT` or `unix:PATH`, or several, separated by commas. Port 0: one that is "
     "free. Sockets that systemd passes are taken in its place. Without it, 127.0.0.1:7700"},
    {"threads", 'j', CLI_COUNT, "N", "0",
     "threads that read requests, search where that is quickest, and send answers; 0: one for each processor",
     .max = 512},
    {"workers", 0, CLI_COUNT, "N", "0",
     "threads for what takes longer: facets, counts, feedback, snippets, texts; 0: one for each processor", .max = 512},
    SERVE_SEARCH_FLAGS,
    {"tokens", 0, CLI_TEXT, "FILE", NULL,
     "ask every client for a token of this file, which says what each may do (see Tokens). SIGHUP reads it again"},
    {"allow-host", 0, CLI_LIST, "NAME", NULL,
     "names by which clients may call the server. Without it, a server on loopback is called localhost, 127.0.0.1 or "
     "[::1]; any other by any name"},
    {"allow-origin", 0, CLI_LIST, "ORIGIN", NULL,
     "web sites whose pages may ask the server, such as `https://search.example.org`; without it, none may"},
    {"writable", 0, CLI_LIST, "NAME", NULL,
     "collections that clients may write to: names, separated by commas; without it, none (see Writing)"},
    {"commit-every", 0, CLI_NUMBER, "MS", "100",
     "milliseconds that what clients write is gathered for one commit, at most", .max = 60000},
    {"access-log", 0, CLI_TEXT, "FILE", NULL,
     "write a JSON object for each request, a line each; `-`: to standard error. SIGHUP opens the file again"},
    {"timeout", 0, CLI_NUMBER, "MS", "10000",
     "milliseconds from a request to its answer, unless the request asks for less; a later answer is an error",
     .min = 1,
     .max = 3.6e6},
    {"max-wait", 0, CLI_NUMBER, "MS", "1000",
     "once queries wait longer than this many milliseconds, refuse others by status 429 until they do not", .min = 1,
     .max = 3.6e6},
    {"max-waiting", 0, CLI_COUNT, "N", "65536", "queries of an index that may wait; others are refused by status 429",
     .min = 1, .max = 1 << 24},
    {"max-body", 0, CLI_BYTES, "SIZE", "64M", "bytes of a request's body", .min = 1024, .max = 4e9},
    {"max-k", 0, CLI_COUNT, "N", "10000", "results of a query, with those before its offset", .min = 1, .max = 1 << 24},
    {"max-queries", 0, CLI_COUNT, "N", "10000", "queries of a request", .min = 1, .max = 1 << 20},
    {"max-documents", 0, CLI_COUNT, "N", "100000", "documents that a request may write", .min = 1, .max = 1 << 24},
    {"max-chars", 0, CLI_COUNT, "N", "8000", "characters of an answer of `/mcp`", .min = 200, .max = 1 << 24},
    {"window", 0, CLI_COUNT, "N", "1000", "results that the first page of `/agents/NAME/search` keeps for the others",
     .min = 1, .max = 1 << 20},
    {"windows", 0, CLI_COUNT, "N", "1000", "windows of results that are kept, each for 10 minutes after its last page",
     .min = 1, .max = 1 << 20},
    {"max-connections", 0, CLI_COUNT, "N", "20000", "connections at once", .min = 1, .max = 1 << 20},
    {"idle-timeout", 0, CLI_NUMBER, "S", "75", "seconds after which a connection without a request is closed", .min = 1,
     .max = 86400},
    {"slow-timeout", 0, CLI_NUMBER, "S", "20",
     "seconds that a client may take to send a request or to read its answer", .min = 1, .max = 86400},
    {"drain", 0, CLI_NUMBER, "S", "30", "seconds that requests under way have after SIGTERM", .max = 86400},
    SERVE_ENGINE_FLAGS,
    {NULL},
};
/* clang-format on */

static const cli_section sections[] = {
    {"Indexes",
     "Each `INDEX` is an index file or a collection. Its name in requests is `NAME`, or, without one, that of the file "
     "up to the first dot. Commits of a collection by other processes are served within a second, and so is a file "
     "that takes the place of an index file by renaming; each request is answered from one commit. Nothing else is "
     "ever "
     "read."},
    {"Protocols",
     "`GET /openapi.json` lists all routes; a browser finds a page for people at `/`. `POST /v1/NAME/search` takes "
     "a JSON object with `query` (or `queries`, or `vector`), `k`, `offset`, `op`, `syntax`, `scorer`, `k1`, `b`, "
     "`prior`, `filter`, `facets`, `sums`, `sort`, `collapse`, `cursor` and `after`, `snippets`, `attributes`, "
     "`explain`, `rm3`, `count`, `fields` and `timeout_ms`, named as the flags of `gpuidx query`, and answers as "
     "`gpuidx query --format=jsonl` does. With the media type `application/x-ndjson` each line is a search, and so "
     "is each line of the answer. With `?format=trec` the answer is lines of a TREC run, whose last column is "
     "`tag`. `GET /v1/NAME/search?query=...&hits=10` and `/v1/NAME/doc/ID` are those of Anserini's server; `POST "
     "/retrieve` is Search-R1's. `POST /mcp` and `/mcp/NAME` speak the Model Context Protocol, whose tools "
     "`search` and `fetch` answer in at most `--max-chars` characters.\n"
     "\n"
     "A malformed request is answered by status 400 with the line, the column and the member that is wrong."},
    {"Writing",
     "What clients write to the collections of `--writable` goes to one writer a collection. It gathers changes for "
     "`--commit-every` milliseconds, commits them, and answers: what is acknowledged is on disk, and survives a crash. "
     "With `refresh=true` it commits at once; with `refresh=true` or `wait_for` the answer comes when searches see the "
     "commit, else that takes up to a second more. `PUT`, `PATCH` and `DELETE /v1/NAME/doc/ID` write one document; "
     "`POST /v1/NAME/docs` takes many operations, `{\"put\": {\"id\": ...}}`, `add`, `update` and `delete`; "
     "Elasticsearch's routes are `_doc`, `_create`, `_update` and `_bulk`. A document has `title`, `text` and the "
     "collection's attributes; another member is refused by name. Of a collection of vectors (`add --create --unit=X`) "
     "it has `vector` besides, an object of terms and weights, in an update, too. Operations fail one by one. The "
     "server holds the "
     "collection's lock only while it writes, so that `gpuidx add --wait` works beside it. Without `--tokens`, "
     "whoever reaches the server may write."},
    {"Tokens",
     "The file of `--tokens` is a JSON object: `{\"tokens\": [{\"name\": \"tenant7\", \"token\": \"...\", \"indexes\": "
     "[\"papers\"], \"access\": \"read\", \"filter\": \"tenant:7\"}]}`. `indexes` absent: all; `access`: `read` or "
     "`write` (no filter may go with it); the server adds `filter` to every route, so that its owner sees only the "
     "documents that it selects. Frequencies of terms, which scores are made of, are those of all documents. Clients "
     "send `Authorization: Bearer TOKEN`, `ApiKey TOKEN`, or the token as password of `Basic`. TLS "
     "is left to a proxy before the server."},
    {"Signals",
     "SIGTERM and SIGINT: no more connections are taken, what is under way is answered, then the server ends. SIGHUP: "
     "the file of tokens is read again, and the access log opened again."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx serve papers=papers.gx", "Serve an index at http://127.0.0.1:7700/v1/papers/search."},
    {"curl -d '{\"query\": \"inverted index\", \"k\": 3}' http://127.0.0.1:7700/v1/papers/search", "Ask it."},
    {"gpuidx serve papers=papers.gx news=news/ --listen=0.0.0.0:80 --tokens=tokens.json",
     "An index and a collection, for clients with tokens."},
    {NULL},
};

const cli_command cmd_serve = {
    .name = "serve",
    .summary = "answer searches over HTTP",
    .synopsis = "[OPTIONS] [NAME=]INDEX...",
    .description =
        "Serves indexes until it is ended: to programs by our own protocol and those of Elasticsearch, Anserini's "
        "server "
        "and Search-R1, and to agents by the Model Context Protocol. Queries of many clients are answered in batches, "
        "on a GPU where there is one.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .common = "listen threads op scorer tokens allow-host writable access-log max-waiting max-k drain engine device",
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
