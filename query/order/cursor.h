/* cursor.h: a cursor as text: the place behind a result in the list of a query's results (gpuidx_pages.h).
 *
 *   bytes   "gp1", the query's hash, the index's uuid, commit, the place, the document's id, a checksum
 *   text    the bytes in base64 (RFC 4648, section 5), without padding
 */
#ifndef GX_QUERY_ORDER_CURSOR_H
#define GX_QUERY_ORDER_CURSOR_H

#include "query/order/ordered.h"

typedef struct gx_cursor {
    gx_position place;    /* in the index that is searched; texts are in bytes */
    uint64_t n_before;    /* results up to the one that it names */
    bool moved;           /* it is of another commit of the collection */
    unsigned char *bytes; /* its own */
} gx_cursor;

/* What a cursor names of a query. GX_ENOMEM. */
gx_status gx_cursor_hash(uint64_t *out, const gx_query *q, const gx_query_options *opt, const gx_sort *sort,
                         const gx_page *page, gx_error *err);

/* Read a cursor of a query on ix. GX_EUSAGE: it is damaged, or of another query, order or index. GX_ENOMEM. */
gx_status gx_cursor_read(gx_cursor *out, const char *text, size_t len, const gx_index *ix, const gx_sort *sort,
                         uint64_t hash, gx_error *err);
void gx_cursor_free(gx_cursor *c);

/* Write the cursor behind a document of ix, the n_before-th result: *out [*len], a 0 behind it, which the caller frees.
 * GX_ENOMEM. */
gx_status gx_cursor_write(char **out, size_t *len, const gx_index *ix, const gx_sort *sort, uint64_t hash,
                          uint64_t docid, double score, uint64_t n_before, gx_error *err);

#endif
