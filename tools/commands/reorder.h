/* reorder.h: an index written with its documents in another order, with progress; for `gpuidx
 * reorder` and `build --order`. */
#ifndef GX_TOOLS_COMMANDS_REORDER_H
#define GX_TOOLS_COMMANDS_REORDER_H

#include "engine/api/gpuidx_advanced.h"

typedef struct reordering {
    gx_order_options order;     /* cancel and progress are set here */
    gx_rewrite_options rewrite; /* new_docids and cancel are set here */
    bool (*cancel)(void *user);
    double order_seconds, write_seconds; /* out */
} reordering;

/* Statuses and words of gx_order_make and gx_index_rewrite. */
gx_status reorder(const gx_index *ix, const char *path, reordering *r, gx_error *err);

/* A note: sizes of the lists before and after, and seconds. */
void reorder_report(const gx_index *before, const char *path, const reordering *r);

#endif
