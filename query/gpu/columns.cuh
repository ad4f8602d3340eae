/* columns.cuh: attributes on a GPU. A filter becomes
 *
 *   tests      up to MAX_TESTS conditions on values in device memory, in clauses of which a document
 *              meets each: what ranges and `has` joined by AND, OR and NOT are
 *   documents  of a rare condition: those of the groups of values that the condition meets, sorted by docid in
 *              each group
 *   a bin      of values that has all those that a condition selects and few others: a map in which postings are
 *              looked up as soon as they are decoded
 *
 * Columns come to the device at the first use of their attributes and stay, if the engine's memory budget
 * has room. A filter that has no tests needs a mask. */
#ifndef GX_QUERY_GPU_COLUMNS_CUH
#define GX_QUERY_GPU_COLUMNS_CUH

#include "query/gpu/kernels/kernels.cuh"
#include "query/gpu/memory.cuh"

#include <pthread.h>

extern "C" {
#include "query/filter/filter.h"
}

namespace gx {

struct gpu_prepared_index;

/* What of a column comes to the device by itself, each at its first use. */
enum column_part { COLUMN_VALUES, COLUMN_ORDER, COLUMN_BINS, N_COLUMN_PARTS };
enum column_state { COLUMN_UNUSED, COLUMN_READY, COLUMN_REFUSED }; /* REFUSED: the memory does not suffice */

/* Bins of a level have about n / 2^log_share of the n documents that have a value, and begin every quarter of
 * that. So any values that three quarters of a bin have lie in one bin. A bit of a bin's map is of 2^shift
 * documents, one of which may have a value of the bin. Fewer bits are read faster, but leave more documents. */
struct bin_level {
    uint32_t log_share, shift;
};
constexpr bin_level BIN_LEVELS[] = {{6, 2}, {3, 1}}; /* the smallest bins first */
constexpr uint32_t N_BIN_LEVELS = sizeof BIN_LEVELS / sizeof *BIN_LEVELS, BINS_A_SHARE = 4;
constexpr uint32_t NO_BIN_MAP = UINT32_MAX;

struct column_bin {
    uint32_t first, end; /* its groups */
    uint32_t map;        /* number of its map among those of the level, NO_BIN_MAP: too many documents for one */
};

/* All documents of a set are in [first, end); end 0: there are none. */
struct doc_limits {
    uint32_t first, end;
};
constexpr uint32_t GROUPS_A_CHUNK = 32;

struct device_column {
    int states[N_COLUMN_PARTS]; /* atomic: column_state */
    /* COLUMN_VALUES, with all that is on the host but the bins: */
    void *values, *present; /* present: a bit a document; NULL if every document has a value */
    uint32_t *sample;       /* on the host: [n_sample] values of documents, in order */
    uint32_t n_sample;
    /* Groups of neighbouring values that about n_docs / MAX_GROUPS documents or fewer have, or of one value. */
    uint32_t n_groups;
    uint32_t *least;  /* on the host: [n_groups] each group's least value; the first is 0 */
    uint32_t *starts; /* on the host: [n_groups + 1] places of the groups' documents in `order` */
    /* on the host: where documents are, of each group, and of each GROUPS_A_CHUNK groups */
    doc_limits *limits, *chunks;
    /* COLUMN_ORDER: */
    uint32_t *order;    /* docids, group by group */
    uint32_t *d_starts; /* in device memory, as `starts` */
    /* COLUMN_BINS, of each level: */
    column_bin *bins[N_BIN_LEVELS]; /* on the host; NULL: none */
    uint32_t *bin_maps[N_BIN_LEVELS];
};

struct device_ordinals; /* of a facet (facets.cu) */

/* The attributes of an index. */
struct device_columns {
    const gx_index *ix;
    gpu_prepared_index *owner;
    device_column *of;         /* [n_columns of ix] */
    device_ordinals *ordinals; /* of facets, the last made first */
    pthread_mutex_t lock;
};

/* Takes device memory of the owner's budget for a column. Returns NULL if the budget has no room. */
void *take_column_memory(const device_columns *c, uint64_t bytes);
void give_column_memory(const device_columns *c, void *memory, uint64_t bytes); /* also NULL */

/* A test that every value meets, from which kernels learn where the values are. */
gpu_test column_test(const void *values, uint32_t bits);

/* bins.cu: makes the bins of a column whose values are on the device, or of a level of them if memory does not
 * suffice. Returns whether there are any. The lock is held. */
bool make_bins(const device_columns *all, const gx_column *c, device_column *d);

/* The owner's columns; GX_ENOMEM. */
gx_status open_columns(device_columns *c, const gx_index *ix, gpu_prepared_index *owner, gx_error *err);
void close_columns(device_columns *c);  /* also one that is all 0 */
void close_ordinals(device_columns *c); /* facets.cu: of columns that are being closed */

/* Returns the bytes of device memory that all columns take without their orders. */
uint64_t columns_bytes(const gx_index *ix);

struct filter_tests {
    uint32_t n;
    gpu_test of[MAX_TESTS];
    double share; /* about the share of all documents that meet them */
};

/* Makes the tests of a filter. Returns false if it needs a mask. May upload columns. Thread-safe. */
bool make_tests(device_columns *c, const gx_filter *f, filter_tests *out);

/* What a filter that has tests says of groups: */
struct filter_groups {
    /* of the conditions that every document of the filter meets, that of the fewest documents: its attribute, or
     * UINT32_MAX if there is none; groups [first, end), in which all its documents are; documents of these groups */
    uint32_t column, first, end, n;
    uint32_t first_doc, end_doc; /* all documents of the filter are in [first_doc, end_doc) */
};

/* make_tests has returned true for the filter. Thread-safe. */
void find_groups(const device_columns *c, const gx_filter *f, filter_groups *out);

/* Sets what D says of docids and runs to the documents of the groups. Returns false if they cannot be found. The
 * first use of an attribute sorts its documents. Thread-safe. */
bool find_documents(device_columns *c, const filter_groups *G, selected_documents *D);

/* A map of documents among which are all that a filter selects. */
struct document_map {
    const uint32_t *words; /* in device memory */
    uint32_t shift;        /* bit docid >> shift is set if the document may be one of them */
    double share;          /* of all documents, those whose bit is set, at most about */
};

/* bins.cu: finds the smallest bin that has groups [first, end) of a column with bins. Returns false if none has. */
bool find_bin_of_groups(const device_column *d, uint32_t first, uint32_t end, uint32_t n_docs, document_map *out);

/* Finds the smallest bin that has the groups. Returns false if there is none. The first use of an attribute makes
 * its bins. Thread-safe. */
bool find_bin(device_columns *c, const filter_groups *G, document_map *out);

} // namespace gx

#endif
