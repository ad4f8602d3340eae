/* columns.cuh: attributes on a GPU. A filter becomes
 *
 *   tests      up to MAX_TESTS conditions on values in device memory, in clauses of which a document
 *              meets each: what ranges and `has` joined by AND, OR and NOT are
 *   documents  of a rare condition: those of the groups of values that the condition meets, sorted by docid in
 *              each group
 *
 * Columns come to the device at the first use of their attributes and stay, if the engine's memory budget
 * has room. A filter that has no tests needs a mask. */
#ifndef GX_QUERY_GPU_COLUMNS_CUH
#define GX_QUERY_GPU_COLUMNS_CUH

#include "query/gpu/kernels.cuh"
#include "query/gpu/memory.cuh"

#include <pthread.h>

extern "C" {
#include "query/filter.h"
}

namespace gx {

struct gpu_prepared_index;

enum column_state { COLUMN_UNUSED, COLUMN_READY, COLUMN_REFUSED }; /* REFUSED: the memory does not suffice */

struct device_column {
    int values_state, order_state; /* atomic: column_state. The first is of all but the last two arrays. */
    void *values, *present;        /* present: a bit a document; NULL if every document has a value */
    uint32_t *sample;              /* on the host: [n_sample] values of documents, in order */
    uint32_t n_sample;
    /* Groups of neighbouring values that about n_docs / MAX_GROUPS documents or fewer have, or of one value. */
    uint32_t n_groups;
    uint32_t *least;                      /* on the host: [n_groups] each group's least value; the first is 0 */
    uint32_t *starts;                     /* on the host: [n_groups + 1] places of the groups' documents in `order` */
    uint32_t *first_docids, *last_docids; /* on the host: [n_groups] of each group that has any */
    uint32_t *order;                      /* docids, group by group */
    uint32_t *d_starts;                   /* in device memory, as `starts` */
};

/* The attributes of an index. */
struct device_columns {
    const gx_index *ix;
    gpu_prepared_index *owner;
    device_column *of; /* [n_columns of ix] */
    pthread_mutex_t lock;
};

/* The owner's columns; GX_ENOMEM. */
gx_status open_columns(device_columns *c, const gx_index *ix, gpu_prepared_index *owner, gx_error *err);
void close_columns(device_columns *c); /* also one that is all 0 */

/* Returns the bytes of device memory that all columns take without their orders. */
uint64_t columns_bytes(const gx_index *ix);

struct filter_tests {
    uint32_t n;
    gpu_test of[MAX_TESTS];
    double share; /* about the share of all documents that meet them */
};

/* Makes the tests of a filter. Returns false if it needs a mask. May upload columns. Thread-safe. */
bool make_tests(device_columns *c, const gx_filter *f, filter_tests *out);

/* Finds at most `most` documents of which every one is that the filter selects, and sets what D says of
 * docids and runs. Returns false if there are more, or if they cannot be found. The first use of an attribute
 * groups its values. Thread-safe. */
bool find_documents(device_columns *c, const gx_filter *f, uint64_t most, selected_documents *D);

/* Finds [*first, *end), in which all documents of the filter are; it may hold many others. */
void find_limits(const device_columns *c, const gx_filter *f, uint32_t *first, uint32_t *end);

} // namespace gx

#endif
