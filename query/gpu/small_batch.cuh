/* small_batch.cuh: up to SMALL_BATCH short queries of small k on the GPU: described by a kernel's
 * parameters, searched for by one launch, and answered into host memory, where the host sees the
 * answer arrive. The kernel that answered a query alone may linger for the session's next one,
 * which it then reads from host memory: that spares the launch, and its instructions are in the
 * caches. small_batch_search.cuh is the kernel.
 */
#ifndef GX_QUERY_GPU_SMALL_BATCH_CUH
#define GX_QUERY_GPU_SMALL_BATCH_CUH

#include "query/gpu/sub_batch.cuh"

namespace gx {

struct small_batch_space {
    sub_batch p;               /* its queries and terms lie in host memory; its answers and results are pinned */
    gpu_query_state *d_states; /* [SMALL_BATCH] */
    uint32_t *d_histograms;    /* [2 * SMALL_BATCH * BINS] */
    uint64_t candidate_room;
    query_slot *slot; /* to a kernel that stays, in pinned memory */
    uint4 *d_slot;    /* [SLOT_PIECES] */
    uint32_t message; /* the number of the last one */
    bool lingers;     /* a kernel was started that may wait for the next */
};

gx_status open_small_batches(gpu_session *x, small_batch_space *b, gx_error *err);
void close_small_batches(gpu_session *x, small_batch_space *b);

/* Whether the jobs can go as a kernel's parameters. */
bool is_small_batch(const gx_plan *plans, const request *requests, uint32_t n);

/* Answer jobs[n], but those that x->again then holds. */
gx_status run_small_batch(gpu_session *x, small_batch_space *b, const plan_batch *pb, const request *requests,
                          uint32_t n, gx_error *err);

} // namespace gx

#endif
