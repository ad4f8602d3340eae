/* matches.cuh: all documents that match queries, not the best alone, counted by the ordinals of facets
 * (query/facet/facet_ordinals.h). matches.cu has the kernel, facets.cu the host side. */
#ifndef GX_QUERY_GPU_MATCHES_CUH
#define GX_QUERY_GPU_MATCHES_CUH

#include "query/gpu/memory.cuh"
#include "query/gpu/state.cuh"

namespace gx {

constexpr uint32_t MAX_FACETS = 16; /* of a launch */

/* In gpu_query.flags beside QUERY_AND, QUERY_MASKED and the number of tests: all documents match. */
constexpr uint32_t MATCH_EVERY_DOCUMENT = 1u << 20;

/* A query whose matches are counted. Lists with a map of one document a slot are the first of its terms; its
 * tests lie behind its terms. */
struct alignas(16) match_query {
    uint32_t n_terms, first_term, n_exact, flags;
    const uint32_t *mask; /* with QUERY_MASKED */
    uint64_t unused;
};

/* Ordinals in device memory. */
struct facet_column {
    const void *ordinals;
    const uint32_t *starts; /* NULL: each document has one ordinal */
    uint32_t bytes;         /* of an ordinal */
    uint32_t missing;       /* the count of documents without any, where there are starts */
    uint32_t first;         /* of its counts among those of the query */
    bool shared;            /* counted in shared memory first */
};

/* Queries of a launch and their facets. */
struct match_batch {
    const match_query *queries;
    const gpu_term *terms;
    uint32_t n, n_ranges; /* queries; ranges of tiles, each of which a thread block counts of each query */
    uint32_t n_facets;
    uint32_t n_counts;   /* of a query */
    uint32_t n_shared;   /* those of `shared` facets, which are the first ones */
    uint32_t log_copies; /* of the counts in shared memory, so that lanes seldom meet */
    uint32_t *counts;    /* [n][n_counts], 0 before */
    uint32_t *n_matches; /* [n], 0 before */
    facet_column facets[MAX_FACETS];
};

constexpr uint32_t MATCH_TILE_SHIFT = 16, MATCH_TILE = 1u << MATCH_TILE_SHIFT; /* documents of a tile */
constexpr uint32_t SHARED_COUNTS = 4096, MOST_LOG_COPIES = 3;

/* Returns how many thread blocks fill the current device. */
uint32_t match_grid(uint32_t coding, uint32_t multiprocessors);

/* Enqueue the counting. */
void count_matches(const gpu_index &X, uint32_t coding, const match_batch &B, cudaStream_t stream);

/* ---- facets.cu ---- */

/* What a session counts with. All 0: nothing yet. */
struct match_space {
    growing_memory device, pinned;
    cudaStream_t stream;
    cudaEvent_t done;
    uint32_t grid; /* thread blocks that fill the device */
};

void close_matches(session_memory *m, match_space *space);

/* gx_executor.facet_ordinals */
gx_status find_ordinals(device_columns *c, uint32_t column, const gx_facet *facet, const gx_facet_ordinals **out,
                        gx_error *err);

/* gx_executor.count_matches. The device has been chosen, and no kernel lingers. */
struct match_request {
    const gx_plan *plans;
    uint32_t n;
    const gx_facet_ordinals *const *facets;
    uint32_t n_facets;
    gx_match_counts *counts;
};
gx_status run_matches(gpu_prepared_index *s, session_memory *m, match_space *space, const match_request *r,
                      bool *counted, gx_error *err);

} // namespace gx

#endif
