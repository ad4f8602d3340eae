/* log.h: the access log: a JSON object a request, a line each. */
#ifndef GX_SERVE_LOG_H
#define GX_SERVE_LOG_H

#include "tools/serve/serve.h"

typedef struct access_log access_log;

gx_status log_open(access_log **out, const char *path, gx_error *err); /* "-": standard error */
void log_request(access_log *l, exchange *x, double seconds);
void log_flush(access_log *l);
/* Open the file again, which may have been renamed. */
void log_reopen(access_log *l);
void log_close(access_log *l);

#endif
