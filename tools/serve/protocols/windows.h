/* windows.h: the results of searches, kept so that agents page through them without another search.
 *
 * A window is found by its id, or by what was asked: who asks, the index, the query and the filter. It has the ids of
 * one commit's documents, so that its pages belong together, and holds no index: a later commit may lack some of them.
 * The least recently used windows are dropped, and those that nobody has used for a while. */
#ifndef GX_SERVE_PROTOCOLS_WINDOWS_H
#define GX_SERVE_PROTOCOLS_WINDOWS_H

#include "tools/serve/protocols.h"

typedef struct window {
    atomic_uint refs;
    char id[24];
    char *who, *index, *query, *filter; /* filter: "" */
    double opened;                      /* that of the commit */
    uint32_t n, depth;                  /* n results of at most depth */
    gx_text ids;                        /* each ends with a NUL */
    size_t *begins;                     /* [n] in ids */
    double *scores;                     /* [n] */
    double used;                        /* on serve_clock */
    struct window *next;
} window;

/* Keep the results of a search of the exchange; NULL: no memory. Give it back by window_release. */
window *windows_keep(windows *w, exchange *x, const search *s, const char *filter);
/* The window of an id, or NULL where there is none for who asks. */
window *windows_find(windows *w, const exchange *x, const char *id);
/* The window of a query at the exchange's commit; NULL: none. */
window *windows_find_query(windows *w, const exchange *x, const char *query, const char *filter);
void window_release(window *w);

#endif
