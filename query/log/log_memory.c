#include "query/log/log_memory.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"

#define PIECE_BYTES ((size_t)1 << 20)

typedef struct gx_log_piece {
    struct gx_log_piece *before;
    size_t n, max;
    char bytes[]; /* [max] */
} gx_log_piece;

/* Copy n bytes and a NUL into the newest piece, or a new one. NULL: no memory. */
static const char *keep(gx_log_memory *m, const char *bytes, size_t n)
{
    gx_log_piece *p = m->pieces;
    if (!p || p->max - p->n <= n) {
        const size_t max = n < PIECE_BYTES ? PIECE_BYTES : n + 1;
        p = malloc(sizeof *p + max);
        if (!p)
            return NULL;
        *p = (gx_log_piece){m->pieces, 0, max};
        m->pieces = p;
    }
    char *to = p->bytes + p->n;
    memcpy(to, bytes, n);
    to[n] = 0;
    p->n += n + 1;
    return to;
}

static bool keep_query(gx_log_memory *m, size_t *max, const gx_log_query *q)
{
    if (!gx_reserve(&m->queries, max, m->n + 1, sizeof *m->queries))
        return false;
    gx_log_query *to = &m->queries[m->n];
    *to = *q;
    to->id = keep(m, q->id, q->id_len);
    to->text = keep(m, q->text, q->len);
    to->filter = q->filter ? keep(m, q->filter, q->filter_len) : NULL;
    if (!to->id || !to->text || !to->filter != !q->filter)
        return false;
    ++m->n;
    return true;
}

gx_status gx_log_memory_read(gx_log_memory **out, const char *path, const gx_log_options *opt, size_t max_bytes,
                             gx_error *err)
{
    gx_log *log;
    gx_log_query q;
    gx_error why;
    size_t bytes = 0, max = 0;
    bool more = true;
    *out = NULL;
    if (strcmp(path, "-") == 0)
        return GX_OK;
    const gx_status st = gx_log_open(&log, path, opt, err);
    if (st != GX_OK)
        return st;
    gx_log_memory *m = calloc(1, sizeof *m);
    bool good = m != NULL;
    while (good && (good = gx_log_next(log, &q, &more, &why) == GX_OK) && more) {
        bytes += sizeof q + q.id_len + q.len + q.filter_len + 3;
        good = !q.terms && bytes <= max_bytes && keep_query(m, &max, &q);
    }
    if (good) {
        m->counts = gx_log_get_counts(log);
        m->form = gx_log_get_form(log);
    } else {
        gx_log_memory_free(m);
        m = NULL;
    }
    gx_log_close(log);
    *out = m;
    return GX_OK;
}

void gx_log_memory_free(gx_log_memory *m)
{
    if (!m)
        return;
    for (gx_log_piece *p; (p = m->pieces);) {
        m->pieces = p->before;
        free(p);
    }
    free(m->queries);
    free(m);
}
