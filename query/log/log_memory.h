/* log_memory.h: a log that has been read, so that its queries can be taken without reading it: a
 * reader gives at most about 2 million queries a second, however many threads wait for it.
 */
#ifndef GX_QUERY_LOG_LOG_MEMORY_H
#define GX_QUERY_LOG_LOG_MEMORY_H

#include "query/log/query_log.h"

typedef struct gx_log_memory {
    gx_log_query *queries; /* [n] in the order of the log */
    size_t n;
    gx_log_counts counts;
    gx_log_form form;
    struct gx_log_piece *pieces; /* the bytes of the queries */
} gx_log_memory;

/* Read the whole log. *out is NULL if it is to be read query by query instead. That is so for
 * standard input, for vectors, for more than max_bytes, and for a log with a malformed line, which
 * the reader then tells of when the queries before it have been answered. Statuses as those of
 * gx_log_open. */
gx_status gx_log_memory_read(gx_log_memory **out, const char *path, const gx_log_options *opt, size_t max_bytes,
                             gx_error *err);
void gx_log_memory_free(gx_log_memory *m);

#endif
