/* batch.cuh: batches of plans on their way through the GPU.
 *
 *   plans -> sub-batches: descriptors in pinned memory -> copy in -> begin -> search [-> search of
 *   AND's failures as OR] -> select -> copy out -> the caller's keys
 *
 * Up to three sub-batches are under way at a time: while the GPU works on them, the host describes
 * the next. Each has a segment of the session's memory, which is given out in turn. Nothing is
 * allocated and nothing is waited for between a sub-batch's first copy and its last. A query whose
 * candidates overflowed their room is run again with room for all of them, beginning at the
 * threshold that it reached.
 */
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

/* Answer jobs[n], but those that x->again then holds. */
gx_status run_batch(gpu_session *x, batch_space *b, const plan_batch *pb, const request *requests, uint32_t n,
                    gx_error *err);

} // namespace gx

#endif
