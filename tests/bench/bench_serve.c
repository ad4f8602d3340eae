/* bench_serve.c: load `gpuidx serve` on loopback with clients that keep their connections open, and print requests a
 * second, latencies, and the share of the processors that the clients themselves took.
 *
 *   bench_serve PORT NAME QUERIES [--connections=N] [--threads=N] [--seconds=S] [--rate=R] [--batch=N] [--k=N]
 *                                 [--filter=EXPR,...]
 *
 *   QUERIES   a text file, a query a line; a TSV's last column
 *   --rate    requests a second, due at equal distances; latency counts from the due moment. Without it, each
 *             connection sends its next request when the answer to the last is there.
 *   --filter  expressions; the i-th request has the i-th of them
 *
 * Exit code 1: a request failed. Times are ns of the monotonic clock. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/clock.h"
#include "query/replay/histogram.h"

enum { MAX_FILTERS = 64, READ_BYTES = 1 << 16 };

typedef struct options {
    int port;
    const char *name;
    uint32_t connections, threads, batch, k;
    double seconds, rate;
    const char *filters[MAX_FILTERS];
    uint32_t n_filters;
} options;

/* Requests, made before the measurement. */
typedef struct request {
    char *bytes;
    size_t len;
} request;

typedef struct connection {
    int fd;
    const request *sending;
    size_t sent, got, need; /* need: bytes of the whole reply, 0: not known yet */
    char *in;               /* [cap] */
    size_t cap;
    uint64_t begin; /* when the request was due, or sent */
    uint64_t sent_at;
    bool busy;
} connection;

typedef struct client {
    const options *o;
    const request *requests;
    uint32_t n_requests, first, n; /* its connections are n */
    connection *all;
    int poll;
    uint32_t *idle, n_idle;
    uint64_t next, end, begin; /* next: the number of the next request */
    uint64_t done, failed, refused;
    gx_histogram latency, refusals;
    pthread_t thread;
} client;

static uint64_t now(void)
{
    return gx_clock_nanoseconds(CLOCK_MONOTONIC);
}

static void die(const char *what)
{
    fprintf(stderr, "bench_serve: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- requests ---- */

static void put_text(FILE *f, const char *text)
{
    putc('"', f);
    for (const unsigned char *p = (const unsigned char *)text; *p; ++p)
        if (*p == '"' || *p == '\\')
            fprintf(f, "\\%c", *p);
        else if (*p < ' ')
            putc(' ', f);
        else
            putc(*p, f);
    putc('"', f);
}

static char **read_lines(const char *path, size_t *n)
{
    FILE *f = fopen(path, "r");
    char *line = NULL, **lines = NULL;
    size_t cap = 0;
    ssize_t len;
    if (!f)
        die(path);
    for (*n = 0; (len = getline(&line, &cap, f)) >= 0;) {
        line[strcspn(line, "\r\n")] = 0;
        const char *tab = strrchr(line, '\t');
        if (!(lines = realloc(lines, (*n + 1) * sizeof *lines)) || !(lines[(*n)++] = strdup(tab ? tab + 1 : line)))
            die("memory");
    }
    free(line);
    fclose(f);
    return lines;
}

static request make_request(const options *o, char *const *queries, size_t n_queries, size_t number)
{
    char *body = NULL, *head = NULL;
    size_t body_len, head_len;
    FILE *f = open_memstream(&body, &body_len);
    for (uint32_t i = 0; i < o->batch; ++i) {
        fprintf(f, "{\"k\":%u,\"query\":", o->k);
        put_text(f, queries[(number * o->batch + i) % n_queries]);
        if (o->n_filters) {
            fputs(",\"filter\":", f);
            put_text(f, o->filters[number % o->n_filters]);
        }
        fputs(o->batch > 1 ? "}\n" : "}", f);
    }
    fclose(f);
    f = open_memstream(&head, &head_len);
    fprintf(f,
            "POST /v1/%s/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/%s\r\nContent-Length: %zu"
            "\r\n\r\n%s",
            o->name, o->batch > 1 ? "x-ndjson" : "json", body_len, body);
    fclose(f);
    free(body);
    return (request){head, head_len};
}

/* ---- connections ---- */

static void watch(const client *c, uint32_t i, int how, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u32 = i};
    if (epoll_ctl(c->poll, how, c->all[i].fd, &e))
        die("epoll");
}

static void open_connection(client *c, uint32_t i)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)c->o->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    connection *k = &c->all[i];
    k->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (k->fd < 0 || connect(k->fd, (const struct sockaddr *)&to, sizeof to))
        die("connect");
    setsockopt(k->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    k->cap = READ_BYTES;
    if (!(k->in = malloc(k->cap + 1)))
        die("memory");
    watch(c, i, EPOLL_CTL_ADD, EPOLLIN);
    c->idle[c->n_idle++] = i;
}

static void send_more(client *c, uint32_t i)
{
    connection *k = &c->all[i];
    const ssize_t n = send(k->fd, k->sending->bytes + k->sent, k->sending->len - k->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN)
        die("send");
    k->sent += n > 0 ? (size_t)n : 0;
    watch(c, i, EPOLL_CTL_MOD, k->sent < k->sending->len ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void begin_request(client *c, uint32_t i, uint64_t begin)
{
    connection *k = &c->all[i];
    k->sending = &c->requests[(c->first + c->next++) % c->n_requests];
    k->sent = k->got = k->need = 0;
    k->begin = begin;
    k->sent_at = now();
    k->busy = true;
    const ssize_t n = send(k->fd, k->sending->bytes, k->sending->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    k->sent = n > 0 ? (size_t)n : 0;
    if (k->sent < k->sending->len)
        send_more(c, i);
}

/* The reply is whole: count it. */
static void end_request(client *c, uint32_t i)
{
    connection *k = &c->all[i];
    const int status = k->got > 12 ? atoi(k->in + 9) : 0;
    gx_histogram_add(status == 429 ? &c->refusals : &c->latency, now() - (status == 429 ? k->sent_at : k->begin), 1);
    c->done += status == 200;
    c->refused += status == 429;
    c->failed += status != 200 && status != 429;
    k->busy = false;
    c->idle[c->n_idle++] = i;
}

static void read_reply(client *c, uint32_t i)
{
    connection *k = &c->all[i];
    if (k->got == k->cap && !(k->in = realloc(k->in, (k->cap *= 2) + 1)))
        die("memory");
    const ssize_t n = recv(k->fd, k->in + k->got, k->cap - k->got, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        c->failed += k->busy;
        close(k->fd);
        free(k->in);
        k->busy = false;
        open_connection(c, i);
        return;
    }
    k->got += n > 0 ? (size_t)n : 0;
    k->in[k->got] = 0;
    if (k->need == 0) {
        const char *end = strstr(k->in, "\r\n\r\n"), *length = strcasestr(k->in, "\r\nContent-Length:");
        if (end && length)
            k->need = (size_t)(end + 4 - k->in) + strtoul(length + 17, NULL, 10);
    }
    if (k->need && k->got >= k->need)
        end_request(c, i);
}

/* ---- the load ---- */

/* Send what is due, or, without a rate, on every idle connection. The ms until the next is due. */
static int send_due(client *c)
{
    const double distance = c->o->rate > 0 ? 1e9 * c->o->threads / c->o->rate : 0;
    const uint64_t time = now();
    while (c->n_idle && time < c->end) {
        const uint64_t due = c->begin + (uint64_t)(distance * (double)c->next);
        if (distance > 0 && due > time)
            return (int)((due - time) / 1000000);
        begin_request(c, c->idle[--c->n_idle], distance > 0 ? due : time);
    }
    return 10;
}

static void *load(void *arg)
{
    client *c = arg;
    struct epoll_event events[256];
    while (now() < c->end || c->n_idle < c->n) {
        const int wait = send_due(c);
        const int n = epoll_wait(c->poll, events, 256, wait);
        for (int i = 0; i < n; ++i) {
            if (events[i].events & EPOLLOUT)
                send_more(c, events[i].data.u32);
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                read_reply(c, events[i].data.u32);
        }
        if (now() > c->end + UINT64_C(30000000000))
            break;
    }
    return NULL;
}

static void read_options(options *o, int argc, char **argv)
{
    *o = (options){
        .port = atoi(argv[1]), .name = argv[2], .connections = 64, .threads = 1, .batch = 1, .k = 10, .seconds = 5};
    for (int i = 4; i < argc; ++i) {
        char *value = strchr(argv[i], '=');
        const size_t len = value ? (size_t)(value++ - argv[i]) : 0;
        if (len == 13 && !strncmp(argv[i], "--connections", len))
            o->connections = (uint32_t)atoi(value);
        else if (len == 9 && !strncmp(argv[i], "--threads", len))
            o->threads = (uint32_t)atoi(value);
        else if (len == 7 && !strncmp(argv[i], "--batch", len))
            o->batch = (uint32_t)atoi(value);
        else if (len == 3 && !strncmp(argv[i], "--k", len))
            o->k = (uint32_t)atoi(value);
        else if (len == 9 && !strncmp(argv[i], "--seconds", len))
            o->seconds = strtod(value, NULL);
        else if (len == 6 && !strncmp(argv[i], "--rate", len))
            o->rate = strtod(value, NULL);
        else if (len == 8 && !strncmp(argv[i], "--filter", len))
            while (o->n_filters < MAX_FILTERS && (o->filters[o->n_filters] = strsep(&value, ",")))
                ++o->n_filters;
        else {
            fprintf(stderr, "bench_serve: %s is no flag\n", argv[i]);
            exit(2);
        }
    }
    if (!o->connections || !o->threads || !o->batch || o->connections < o->threads) {
        fprintf(stderr, "bench_serve: there are a thread, a connection for each, and a query a request at least\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static gx_histogram latency, refusals;
    options o;
    size_t n_queries;
    if (argc < 4) {
        fprintf(stderr, "usage: bench_serve PORT NAME QUERIES [--connections=N] [--threads=N] [--seconds=S] [--rate=R] "
                        "[--batch=N] [--k=N] [--filter=EXPR,...]\n");
        return 2;
    }
    read_options(&o, argc, argv);
    char **queries = read_lines(argv[3], &n_queries);
    const uint32_t n_requests = n_queries ? (uint32_t)(n_queries < 20000 ? n_queries : 20000) : 0;
    request *requests = calloc(n_requests, sizeof *requests);
    client *clients = calloc(o.threads, sizeof *clients);
    if (!n_requests || !requests || !clients)
        die("queries");
    for (uint32_t i = 0; i < n_requests; ++i)
        requests[i] = make_request(&o, queries, n_queries, i);
    uint64_t done = 0, failed = 0, refused = 0;
    for (uint32_t t = 0; t < o.threads; ++t) {
        client *c = &clients[t];
        *c = (client){.o = &o,
                      .requests = requests,
                      .n_requests = n_requests,
                      .first = t * (n_requests / o.threads),
                      .n = o.connections / o.threads,
                      .poll = epoll_create1(0)};
        c->all = calloc(c->n, sizeof *c->all);
        c->idle = calloc(c->n, sizeof *c->idle);
        if (!c->all || !c->idle)
            die("memory");
        for (uint32_t i = 0; i < c->n; ++i)
            open_connection(c, i);
    }
    const uint64_t begin = now(), cpu = gx_clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t t = 0; t < o.threads; ++t) {
        clients[t].begin = begin;
        clients[t].end = begin + (uint64_t)(1e9 * o.seconds);
        if (pthread_create(&clients[t].thread, NULL, load, &clients[t]))
            die("thread");
    }
    for (uint32_t t = 0; t < o.threads; ++t) {
        pthread_join(clients[t].thread, NULL);
        gx_histogram_merge(&latency, &clients[t].latency);
        gx_histogram_merge(&refusals, &clients[t].refusals);
        done += clients[t].done;
        failed += clients[t].failed;
        refused += clients[t].refused;
    }
    const double seconds = 1e-9 * (double)(now() - begin);
    const double used = 1e-9 * (double)(gx_clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    printf("%.0f requests/s, %.0f queries/s; %llu answered, %llu refused, %llu failed in %.2f s\n",
           (double)done / seconds, (double)done * o.batch / seconds, (unsigned long long)done,
           (unsigned long long)refused, (unsigned long long)failed, seconds);
    printf("latency, us: mean %.0f, p50 %.0f, p90 %.0f, p99 %.0f, p99.9 %.0f, max %.0f\n",
           1e-3 * gx_histogram_mean(&latency), 1e-3 * (double)gx_histogram_quantile(&latency, 0.5),
           1e-3 * (double)gx_histogram_quantile(&latency, 0.9), 1e-3 * (double)gx_histogram_quantile(&latency, 0.99),
           1e-3 * (double)gx_histogram_quantile(&latency, 0.999), 1e-3 * (double)latency.max);
    if (refused)
        printf("refusals, us from the sending: p50 %.0f, p99 %.0f, max %.0f\n",
               1e-3 * (double)gx_histogram_quantile(&refusals, 0.5),
               1e-3 * (double)gx_histogram_quantile(&refusals, 0.99), 1e-3 * (double)refusals.max);
    printf("clients: %.2f processors, %.1f us a request\n", used / seconds, done ? 1e6 * used / (double)done : 0);
    return failed > 0;
}
