#include "query/exec/batch_buffer.h"

#include <stdlib.h>

#include "engine/memory/grow.h"
#include "engine/status.h"

gx_status gx_batch_buffer_reserve(gx_batch_buffer *b, uint32_t n, size_t n_keys, gx_error *err)
{
    if (n > b->max_plans) {
        if (!gx_resize(&b->plans, n, sizeof *b->plans) || !gx_resize(&b->hits, n, sizeof *b->hits))
            return gx_fail(err, GX_ENOMEM, "no memory for a batch of %u queries", n);
        b->max_plans = n;
    }
    if (n_keys > b->max_keys) {
        if (!gx_resize(&b->keys, n_keys, sizeof *b->keys) ||
            (b->wide && !gx_resize(&b->highs, n_keys, sizeof *b->highs)))
            return gx_fail(err, GX_ENOMEM, "no memory for %zu results", n_keys);
        b->max_keys = n_keys;
    }
    return GX_OK;
}

void gx_batch_buffer_free(gx_batch_buffer *b)
{
    free(b->plans);
    free(b->hits);
    free(b->keys);
    free(b->highs);
}
