/* batch_buffer.h: memory for a batch of plans and their answers, which a session keeps from one
 * batch to the next and which only grows. */
#ifndef GX_QUERY_EXEC_BATCH_BUFFER_H
#define GX_QUERY_EXEC_BATCH_BUFFER_H

#include "query/exec/exec.h"

typedef struct gx_batch_buffer {
    uint32_t max_plans; /* capacities */
    size_t max_keys;
    gx_plan *plans;  /* [max_plans] */
    gx_hits *hits;   /* [max_plans] */
    uint64_t *keys;  /* [max_keys], of all answers */
    bool wide;       /* set by the owner: answers have gx_hits.highs, */
    uint32_t *highs; /* [max_keys]; else NULL */
} gx_batch_buffer;   /* all zeros: empty */

/* Make room for n plans whose answers have n_keys keys together. GX_ENOMEM: the buffer is as large
 * as it was. */
gx_status gx_batch_buffer_reserve(gx_batch_buffer *b, uint32_t n, size_t n_keys, gx_error *err);
void gx_batch_buffer_free(gx_batch_buffer *b);

#endif
