/* parallel_merge.h: the lists of several inverters merged by several threads.
 *
 *   ranges of terms -> the next thread that is free: a merger of its own -> sink.add, list by list,
 *   into the range's product
 *                   -> sink.take, by one thread at a time, when all ranges before it have been
 *                   taken
 *
 * Products are a ring: range number i has i % their number, which waits where it has not been taken
 * yet.
 */
#ifndef GX_INDEX_BUILD_PARALLEL_MERGE_H
#define GX_INDEX_BUILD_PARALLEL_MERGE_H

#include "index/build/postings_buffer.h"

typedef struct gx_list_sink {
    void *(*open)(void *user); /* a product, empty; NULL: no memory */
    void (*close)(void *product);
    gx_list_fn *add; /* a list, user being the product */
    /* What a product holds, in the terms' order, and the seconds that it took; it is empty then. */
    gx_status (*take)(void *user, void *product, double seconds, gx_error *err);
    void *user;
} gx_list_sink;

/* By so many threads, >= 1, the caller's included, or as many as the system gives; the inverters
 * are sealed. The sink's statuses, GX_EIO, GX_ENOMEM. */
gx_status gx_crew_merge_lists(gx_inverter *const *inverters, uint32_t n, uint32_t threads, const gx_list_sink *sink,
                              gx_error *err);

#endif
