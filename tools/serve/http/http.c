#include "tools/serve/http.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/serve/metrics.h"
#include "tools/serve/searches.h"

/* What a connection is doing, and since when: what is too slow is closed. */
typedef enum activity { NEW, IDLE, RECEIVING, WORKING, SENDING } activity;

typedef struct peer {
    int fd;
    _Atomic activity doing;
    _Atomic double since;
    struct peer *next, **link;
} peer;

struct http {
    server *sv;
    pthread_mutex_t lock; /* of peers */
    peer *peers;
    atomic_uint n_peers, under_way, working;
    atomic_bool draining, closing;
    double last_tick;
    uint32_t n;
    struct MHD_Daemon *daemons[];
};

/* The way of an exchange: its connection's thread suspends the connection where the reply is not there at once, and
 * whoever brings the reply resumes it.
 *
 *   RUNNING --(the thread suspends)--> WAITING --(reply)--> DONE, resumed
 *      '-----------------------------------(reply)--> DONE
 *
 * Where the answers to its searches are there and the reply is quickly written, the connection's thread writes it:
 * ANSWERED comes before DONE then, and the threads that search go on searching. */
enum { FRESH, RUNNING, WAITING, ANSWERED, DONE };

/* ---- the library ---- */

/* libmicrohttpd is loaded by the first server, not linked: it brings GnuTLS and eight more libraries with it, and every
 * other command would wait for them at its start. */
#define MHD_CALLS(call)                                                                                                \
    call(add_response_header) call(create_response_from_buffer) call(destroy_response) call(get_connection_info)       \
        call(get_connection_values) call(lookup_connection_value) call(queue_response) call(quiesce_daemon)            \
            call(resume_connection) call(start_daemon) call(stop_daemon) call(suspend_connection)

static struct {
#define MEMBER(name) __typeof__(&MHD_##name) name;
    MHD_CALLS(MEMBER)
#undef MEMBER
} mhd;

static gx_status load_library(gx_error *err)
{
    const struct {
        const char *name;
        void *place;
    } calls[] = {
#define ENTRY(name) {"MHD_" #name, &mhd.name},
        MHD_CALLS(ENTRY)
#undef ENTRY
    };
    void *library = dlopen(GX_MICROHTTPD, RTLD_NOW);
    bool whole = library;
    for (size_t i = 0; whole && i < sizeof calls / sizeof *calls; ++i) {
        void *const found = dlsym(library, calls[i].name);
        memcpy(calls[i].place, &found, sizeof found); /* a pointer to a function, of which POSIX says so much */
        whole = found;
    }
    if (whole)
        return GX_OK;
    err->status = GX_ENOTFOUND;
    snprintf(err->text, sizeof err->text, "the server needs libmicrohttpd, and it cannot be loaded: %s", dlerror());
    return GX_ENOTFOUND;
}

/* ---- connections ---- */

static void set_activity(struct MHD_Connection *c, activity doing)
{
    const union MHD_ConnectionInfo *info = mhd.get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    peer *p = info ? info->socket_context : NULL;
    if (!p)
        return;
    atomic_store_explicit(&p->since, serve_clock(), memory_order_relaxed);
    atomic_store_explicit(&p->doing, doing, memory_order_relaxed);
}

/* ---- replies ---- */

static void stop_working(http *h, exchange *x)
{
    if (x->working)
        atomic_fetch_sub_explicit(&h->working, 1, memory_order_relaxed);
    x->working = false;
}

static enum MHD_Result send_reply(http *h, struct MHD_Connection *c, exchange *x)
{
    struct MHD_Response *r = mhd.create_response_from_buffer(x->reply.len, x->reply.bytes, MHD_RESPMEM_MUST_FREE);
    if (!r)
        return MHD_NO;
    stop_working(h, x);
    x->reply.bytes = NULL; /* it belongs to the response */
    mhd.add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, x->type);
    for (uint32_t i = 0; i < x->n_headers; ++i)
        mhd.add_response_header(r, x->headers[i].name, x->headers[i].value);
    if (atomic_load_explicit(&h->draining, memory_order_relaxed))
        mhd.add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    metrics_count(x);
    set_activity(c, SENDING);
    const enum MHD_Result result = mhd.queue_response(c, x->status, r);
    mhd.destroy_response(r);
    return result;
}

void http_complete(exchange *x)
{
    struct MHD_Connection *c = x->connection;
    if (atomic_exchange(&x->state, DONE) == WAITING)
        mhd.resume_connection(c); /* from here on *x is its thread's */
}

void http_answered(exchange *x)
{
    struct MHD_Connection *c = x->connection;
    if (atomic_exchange(&x->state, ANSWERED) == WAITING)
        mhd.resume_connection(c);
}

/* ---- requests ---- */

/* The body is too large: say so now, before it is read. */
static enum MHD_Result refuse_body(http *h, struct MHD_Connection *c, exchange *x)
{
    fault_set(&x->fault, 413, "the body has more than %llu bytes", (unsigned long long)h->sv->limits.body);
    exchange_complete(x);
    return send_reply(h, c, x);
}

static enum MHD_Result begin(http *h, struct MHD_Connection *c, const char *method, void **state)
{
    exchange *x = calloc(1, sizeof *x);
    const char *length = mhd.lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (!x || !(x->method = strdup(method))) {
        free(x);
        return MHD_NO;
    }
    *state = x;
    x->sv = h->sv;
    x->connection = c;
    x->began = serve_clock();
    atomic_fetch_add_explicit(&h->under_way, 1, memory_order_relaxed);
    set_activity(c, RECEIVING);
    if (length && strtoull(length, NULL, 10) > h->sv->limits.body)
        return refuse_body(h, c, x);
    return MHD_YES;
}

static enum MHD_Result take_body(http *h, exchange *x, const char *data, size_t *size)
{
    if (x->body.len + *size > h->sv->limits.body)
        fault_set(&x->fault, 413, "the body has more than %llu bytes", (unsigned long long)h->sv->limits.body);
    else
        gx_text_add(&x->body, data, *size);
    *size = 0;
    if (x->body.failed)
        fault_set(&x->fault, 503, "no memory for the body");
    return MHD_YES;
}

static enum MHD_Result dispatch(http *h, struct MHD_Connection *c, exchange *x, const char *url)
{
    int running = RUNNING;
    set_activity(c, WORKING);
    x->working = true;
    atomic_fetch_add(&h->working,
                     1); /* before `closing` is looked at: http_wait sees this one, or this one sees that */
    if (atomic_load(&h->closing))
        fault_set(&x->fault, 503, "the server is ending");
    atomic_store(&x->state, RUNNING);
    if (x->fault.status)
        exchange_complete(x);
    else
        exchange_begin(x, url);
    if (atomic_load(&x->state) == ANSWERED)
        searches_finish(x);
    if (atomic_load(&x->state) == DONE)
        return send_reply(h, c, x);
    mhd.suspend_connection(c);
    if (!atomic_compare_exchange_strong(&x->state, &running, WAITING))
        mhd.resume_connection(c);
    return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **state)
{
    http *h = cls;
    exchange *x = *state;
    (void)version;
    if (!x)
        return begin(h, c, method, state);
    if (*size)
        return take_body(h, x, data, size);
    if (atomic_load(&x->state) == FRESH)
        return dispatch(h, c, x, url);
    if (atomic_load(&x->state) == ANSWERED)
        searches_finish(x);
    return atomic_load(&x->state) == DONE ? send_reply(h, c, x) : MHD_YES;
}

static void on_end(void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
    http *h = cls;
    exchange *x = *state;
    (void)why;
    if (!x)
        return;
    set_activity(c, IDLE);
    stop_working(h, x); /* where the client has gone meanwhile */
    exchange_free(x);
    free(x);
    *state = NULL;
    atomic_fetch_sub_explicit(&h->under_way, 1, memory_order_relaxed);
}

const char *exchange_header(exchange *x, const char *name)
{
    return x->connection ? mhd.lookup_connection_value(x->connection, MHD_HEADER_KIND, name) : NULL;
}

const char *exchange_argument(exchange *x, const char *name)
{
    return x->connection ? mhd.lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, name) : NULL;
}

typedef struct argument_search {
    const char *const *names;
    const char *other;
} argument_search;

static enum MHD_Result look_at_argument(void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
    argument_search *s = cls;
    (void)kind;
    (void)value;
    for (size_t i = 0; s->names[i]; ++i)
        if (strcmp(s->names[i], key) == 0)
            return MHD_YES;
    s->other = key;
    return MHD_NO;
}

const char *http_other_argument(exchange *x, const char *const *names)
{
    argument_search s = {names, NULL};
    mhd.get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, look_at_argument, &s);
    return s.other;
}

/* ---- connections ---- */

static void on_connection(void *cls, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode why)
{
    http *h = cls;
    peer *p = *context;
    if (why == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = mhd.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        p = calloc(1, sizeof *p);
        *context = p;
        atomic_fetch_add(&h->n_peers, 1);
        if (!p)
            return;
        p->fd = info ? info->connect_fd : -1;
        p->since = serve_clock();
        pthread_mutex_lock(&h->lock);
        p->next = h->peers;
        p->link = &h->peers;
        if (p->next)
            p->next->link = &p->next;
        h->peers = p;
        pthread_mutex_unlock(&h->lock);
        return;
    }
    atomic_fetch_sub(&h->n_peers, 1);
    if (!p)
        return;
    pthread_mutex_lock(&h->lock); /* whoever holds it may use the descriptor, which is closed after this */
    *p->link = p->next;
    if (p->next)
        p->next->link = p->link;
    pthread_mutex_unlock(&h->lock);
    free(p);
    *context = NULL;
}

/* Make its thread close the connection. An answer that nobody reads is dropped with it: else the kernel would keep it,
 * and the client would not hear of the end, which comes behind it. */
static void close_peer(int fd, activity doing)
{
    const struct linger drop = {.l_onoff = 1};
    if (doing == SENDING)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
    shutdown(fd, SHUT_RDWR);
}

void http_tick(http *h)
{
    const limits *l = &h->sv->limits;
    const double now = serve_clock();
    if (now - h->last_tick < 1)
        return;
    h->last_tick = now;
    pthread_mutex_lock(&h->lock);
    for (peer *p = h->peers; p; p = p->next) {
        const activity doing = atomic_load_explicit(&p->doing, memory_order_relaxed);
        const double since = atomic_load_explicit(&p->since, memory_order_relaxed);
        const double most = doing == WORKING ? INFINITY : doing == IDLE ? l->idle : l->slow;
        if (now - since > most && p->fd >= 0)
            close_peer(p->fd, doing);
    }
    pthread_mutex_unlock(&h->lock);
}

/* ---- opening and closing ---- */

static void say_nothing(void *cls, const char *format, va_list args)
{
    (void)cls;
    (void)format;
    (void)args;
}

static struct MHD_Daemon *start(http *h, int fd, uint32_t threads)
{
    enum { HEADER_BYTES = 32 << 10 };
    const limits *l = &h->sv->limits;
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    return mhd.start_daemon(flags, 0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,
                            MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)threads,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)l->connections, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)(l->idle < 1 ? 1 : l->idle), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)HEADER_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, on_end,
                            h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
}

gx_status http_open(http **out, server *sv, const int *sockets, uint32_t n, uint32_t threads, gx_error *err)
{
    http *h = calloc(1, sizeof *h + n * sizeof *h->daemons);
    *out = h;
    if (!h) {
        *err = (gx_error){GX_ENOMEM, "no memory for the server"};
        return GX_ENOMEM;
    }
    h->sv = sv;
    pthread_mutex_init(&h->lock, NULL);
    if (load_library(err))
        return err->status;
    for (; h->n < n; ++h->n) {
        h->daemons[h->n] = start(h, sockets[h->n], threads);
        if (h->daemons[h->n])
            continue;
        err->status = GX_EIO;
        snprintf(err->text, sizeof err->text, "libmicrohttpd cannot serve with %u threads and %u connections: %s",
                 threads, sv->limits.connections, strerror(errno));
        return GX_EIO;
    }
    return GX_OK;
}

void http_drain(http *h)
{
    atomic_store(&h->draining, true);
    for (uint32_t i = 0; i < h->n; ++i) {
        const MHD_socket fd = mhd.quiesce_daemon(h->daemons[i]);
        if (fd != MHD_INVALID_SOCKET)
            close(fd); /* not shut down: systemd may hold the socket, too */
    }
}

uint32_t http_under_way(http *h)
{
    return atomic_load(&h->under_way);
}

void http_wait(http *h)
{
    atomic_store(&h->closing, true);
    while (atomic_load(&h->working))
        nanosleep(&(struct timespec){0, 2000000}, NULL);
}

uint32_t http_connections(http *h)
{
    return atomic_load(&h->n_peers);
}

void http_close(http *h)
{
    if (!h)
        return;
    for (uint32_t i = 0; i < h->n; ++i)
        mhd.stop_daemon(h->daemons[i]);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
