/* http.h: HTTP by libmicrohttpd: its threads, connections, bodies and replies. */
#ifndef GX_SERVE_HTTP_H
#define GX_SERVE_HTTP_H

#include "tools/serve/serve.h"

typedef struct http http;

/* Serve on n listening sockets, which it closes, by `threads` threads each. */
gx_status http_open(http **out, server *sv, const int *sockets, uint32_t n, uint32_t threads, gx_error *err);
/* Take no more connections, and tell clients to close theirs. */
void http_drain(http *h);
uint32_t http_under_way(http *h); /* requests, until their answers are sent */
uint32_t http_connections(http *h);
/* Take no more requests, and wait until those that have been read have their answers. To be called before
 * http_close: libmicrohttpd must not end while requests wait. */
void http_wait(http *h);
void http_close(http *h);
/* Close connections that are too slow. Called now and then. */
void http_tick(http *h);

void http_complete(exchange *x); /* the reply is there */
/* The answers to the searches are there: the connection's thread calls searches_finish. */
void http_answered(exchange *x);
/* The name of an argument of the URL that is none of `names`. */
const char *http_other_argument(exchange *x, const char *const *names);

#endif
