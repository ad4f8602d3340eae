/* mcp_command.c: `gpuidx mcp`: the tools of an agent over standard input and output, a message a line. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/serve/catalog.h"
#include "tools/serve/metrics.h"
#include "tools/serve/command/serving_flags.h"

/* The message that is being answered. */
typedef struct turn {
    exchange x; /* first: done() finds the turn by it */
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
} turn;

static void done(exchange *x)
{
    turn *t = (turn *)x;
    pthread_mutex_lock(&t->lock);
    t->is_done = true;
    pthread_cond_signal(&t->done);
    pthread_mutex_unlock(&t->lock);
}

/* Answer a message. false: standard output is closed. */
static bool answer(server *sv, const char *line, size_t len)
{
    turn t = {.x = {.sv = sv, .method = strdup("POST"), .began = serve_clock(), .done = done}};
    pthread_mutex_init(&t.lock, NULL);
    pthread_cond_init(&t.done, NULL);
    gx_text_add(&t.x.body, line, len);
    if (!t.x.method || t.x.body.failed)
        fault_set(&t.x.fault, 503, "no memory for the message");
    if (t.x.fault.status)
        exchange_complete(&t.x);
    else
        exchange_begin(&t.x, "/mcp");
    pthread_mutex_lock(&t.lock);
    while (!t.is_done)
        pthread_cond_wait(&t.done, &t.lock);
    pthread_mutex_unlock(&t.lock);
    if (t.x.reply.len) {
        fwrite(t.x.reply.bytes, 1, t.x.reply.len, stdout);
        fputc('\n', stdout);
    }
    exchange_free(&t.x);
    pthread_mutex_destroy(&t.lock);
    pthread_cond_destroy(&t.done);
    return fflush(stdout) == 0;
}

static int answer_lines(server *sv)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    bool good = true;
    while (good && (len = getline(&line, &cap, stdin)) >= 0)
        if (strspn(line, " \t\r\n") < (size_t)len)
            good = answer(sv, line, (size_t)len);
    free(line);
    return good ? 0 : cli_fail(GX_EIO, "standard output cannot be written to");
}

/* A filter that an index does not take is told now, not to the agent. */
static int check_filter(const server *sv)
{
    const char *filter = sv->anybody.filter, *name;
    gx_error err = {0};
    for (uint32_t i = 0; filter && (name = catalog_name(sv->catalog, i)); ++i) {
        snapshot *s = catalog_get(sv->catalog, name);
        gx_filter *f = NULL;
        const gx_status st = gx_filter_open(&f, s->ix, filter, strlen(filter), NULL, &err);
        gx_filter_close(f);
        snapshot_release(s);
        if (st != GX_OK)
            return cli_fail(st, "--filter: %s: %s", name, err.text);
    }
    return 0;
}

static int run(const cli_args *a)
{
    static server sv;
    gx_error err = {0};
    sv = (server){.started = serve_clock(),
                  .loopback = true,
                  .limits = {.body = 64 << 20,
                             .depth = 64,
                             .k = 10000,
                             .queries = 100,
                             .chars = (uint32_t)cli_count(a, "max-chars"),
                             .waiting = 1000,
                             .jobs = 1000,
                             .max_wait = 60,
                             .timeout = 1e-3 * cli_number(a, "timeout")},
                  .anybody = {.name = "", .level = ACCESS_READ, .filter = cli_text(a, "filter")}};
    cli_json_memory_may_fail();
    int code = serve_read_defaults(&sv.defaults, a);
    if (code == 0 && !(sv.metrics = metrics_open()))
        code = cli_fail(GX_ENOMEM, "no memory");
    if (code == 0 && workers_open(&sv.workers, 2, sv.limits.jobs, &err))
        code = cli_fail_error(&err);
    if (code == 0)
        code = catalog_open(&sv.catalog, &sv, a, 1);
    if (code == 0)
        code = check_filter(&sv);
    if (code == 0)
        code = answer_lines(&sv);
    workers_close(sv.workers);
    catalog_close(sv.catalog);
    metrics_close(sv.metrics);
    return code;
}

/* clang-format off */
static const cli_flag flags[] = {
    {"max-chars", 0, CLI_COUNT, "N", "8000",
     "characters of an answer, at most; a call may ask for fewer", .min = 200, .max = 1 << 24},
    {"filter", 0, CLI_TEXT, "EXPR", NULL,
     "only documents that meet this expression are found and read, whatever the agent asks (see `gpuidx help query`)"},
    {"timeout", 0, CLI_NUMBER, "MS", "10000", "milliseconds that an answer may take", .min = 1, .max = 3.6e6},
    SERVE_SEARCH_FLAGS,
    SERVE_ENGINE_FLAGS,
    {NULL},
};
/* clang-format on */

static const cli_section sections[] = {
    {"Tools",
     "`search` takes `query`, `k`, `offset`, `filter`, `index` and `max_chars`, and answers JSON: results with id, "
     "title, score and the part of the text that matches best; `next_offset` where more may follow. `fetch` takes "
     "`id`, `offset`, `index` and `max_chars`, and answers the document from that character on; `next_offset` where it "
     "goes on. What is wrong with a call is told as its answer, with the argument's name."},
    {"Setting it up",
     "Agents start the command themselves: "
     "`{\"mcpServers\": {\"papers\": {\"command\": \"gpuidx\", \"args\": [\"mcp\", \"papers.gx\"]}}}`. For many "
     "agents, "
     "or across machines, `gpuidx serve` has the same tools at `/mcp`."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx mcp papers.gx", "The tools of an index, a JSON-RPC message a line."},
    {"gpuidx mcp papers=papers.gx news=news/ --max-chars=4000", "Of two indexes, with shorter answers."},
    {NULL},
};

const cli_command cmd_mcp = {
    .name = "mcp",
    .summary = "give an agent tools to search and read (MCP)",
    .synopsis = "[OPTIONS] [NAME=]INDEX...",
    .description = "Speaks the Model Context Protocol on standard input and output until the input ends. Its tools are "
                   "`search` and `fetch`, whose answers keep to a number of characters. Later commits of a collection "
                   "are searched within a second.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .common = "max-chars filter timeout op scorer k1 b engine device check load",
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
