/* parallel_merge.h: several threads merge the lists of several postings buffers.
 *
 *   the terms are cut into ranges; a free thread takes the next range and merges it with a merger
 *   of its own, calling sink.add for every list; what sink.add makes of a range is the range's
 *   output sink.drain_output receives the outputs in the order of the ranges, from one thread at a
 *   time
 *
 * The outputs form a ring: range i uses output i % n_outputs, which waits there until its turn.
 */
#ifndef GX_INDEX_INVERSION_PARALLEL_MERGE_H
#define GX_INDEX_INVERSION_PARALLEL_MERGE_H

#include "index/inversion/postings_buffer.h"

typedef struct gx_list_sink {
    void *(*open)(void *user); /* makes an empty output; NULL: no memory */
    void (*close)(void *output);
    gx_list_fn *add; /* adds a list; its user argument is the output */
    /* Takes all that the output holds, and empties it. Called in the order of terms. seconds: the
     * time that the merge of the range took. */
    gx_status (*drain_output)(void *user, void *output, double seconds, gx_error *err);
    void *user;
} gx_list_sink;

/* Merge n finished buffers with up to `threads` threads (at least 1), the caller's included.
 * Statuses of the sink, GX_EIO, GX_ENOMEM. */
gx_status gx_parallel_merge(gx_postings_buffer *const *buffers, uint32_t n, uint32_t threads, const gx_list_sink *sink,
                            gx_error *err);

#endif
