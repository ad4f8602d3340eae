/* metrics.h: what the server counts, and tells Prometheus. */
#ifndef GX_SERVE_METRICS_H
#define GX_SERVE_METRICS_H

#include "tools/serve/serve.h"

metrics *metrics_open(void);
void metrics_close(metrics *m);

/* A request has been answered. */
void metrics_count(exchange *x);
/* Called five times a second. */
void metrics_tick(server *sv);

/* Routes: Prometheus's text; a JSON object for the page. */
void metrics_reply(exchange *x);
void metrics_status(exchange *x);

#endif
