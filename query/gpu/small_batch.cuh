/* small_batch.cuh: the host side of small and medium batches: up to SMALL_BATCH and MEDIUM_BATCH short
 * queries with small k. A launch's parameters describe the queries of a small batch, and a copy to
 * device memory those of a medium one. The kernel writes the answers to pinned host memory,
 * which the host polls. The kernel of a single query may linger for the session's next query,
 * which it reads from host memory: this saves the launch, and the instruction caches are warm.
 * small_batch_search.cuh is the kernel. */
#ifndef GX_QUERY_GPU_SMALL_BATCH_CUH
#define GX_QUERY_GPU_SMALL_BATCH_CUH

#include "query/gpu/sub_batch.cuh"

namespace gx {

struct small_batch_space {
    sub_batch p;          /* queries and terms in ordinary memory; answers and results pinned */
    medium_batch *medium; /* pinned */
    medium_batch *d_medium;
    gpu_query_state *d_states; /* [MEDIUM_BATCH] */
    uint32_t *d_histograms;    /* [2 * MEDIUM_BATCH * BINS] */
    uint64_t candidate_room;
    query_slot *slot; /* the slot that a lingering kernel polls, in pinned memory */
    uint4 *d_slot;    /* [SLOT_PIECES] */
    uint32_t message; /* number of the last message */
    bool lingers;     /* a kernel was started that may still linger */
};

gx_status open_small_batches(gpu_session *x, small_batch_space *b, gx_error *err);
void close_small_batches(gpu_session *x, small_batch_space *b);

/* Wait until the GPU does nothing more for the session; no kernel of it lingers. false: it has failed. */
bool small_batches_end(small_batch_space *b);
/* Whether the room is that for another index. */
bool small_batches_suit(const small_batch_space *b, const gx_index *ix);

/* Returns whether the requests can go as a small or medium batch. */
bool is_small_batch(gpu_session *x, const gx_plan *plans, const request *requests, uint32_t n);

/* Answer requests[n], except those that are in x->retries afterwards. */
gx_status run_small_batch(gpu_session *x, small_batch_space *b, const plan_batch *pb, const request *requests,
                          uint32_t n, gx_error *err);

} // namespace gx

#endif
