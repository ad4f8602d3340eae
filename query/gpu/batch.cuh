/* batch.cuh: the host side of large batches: a sequence of sub-batches.
 *
 *   plans -> sub-batches: descriptors in pinned memory -> copy in -> begin -> search
 *                         [-> search as OR what AND did not answer] -> select -> copy out -> hits
 *
 * Up to three sub-batches are in flight. While the GPU works on them, the host describes the next.
 * Sub-batches take segments of the session's memory in turn. Between a sub-batch's first copy and
 * its last the host neither allocates memory nor waits. If a query has more candidates than room,
 * the host runs it again with room for all of them, starting at the threshold that it reached. */
#ifndef GX_QUERY_GPU_BATCH_CUH
#define GX_QUERY_GPU_BATCH_CUH

#include "query/gpu/sub_batch.cuh"

namespace gx {

constexpr uint32_t N_SUB_BATCHES = 3;

struct batch_space {
    growing_memory device, pinned;
    sub_batch sub_batches[N_SUB_BATCHES];
};

gx_status open_batches(gpu_session *x, batch_space *b, gx_error *err);
void close_batches(gpu_session *x, batch_space *b);
/* Wait until the GPU does nothing more for the session. false: it has failed. */
bool batches_end(batch_space *b);

/* Answer requests[n], except those that are in x->retries afterwards. */
gx_status run_batch(gpu_session *x, batch_space *b, const plan_batch *pb, const request *requests, uint32_t n,
                    gx_error *err);

} // namespace gx

#endif
