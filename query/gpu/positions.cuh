/* positions.cuh: the positions of words on the GPU, which nobody needs before the first phrase comes. */
#ifndef GX_QUERY_GPU_POSITIONS_CUH
#define GX_QUERY_GPU_POSITIONS_CUH

#include "query/gpu/kernels/gpu.cuh"

#include <pthread.h>

namespace gx {

struct gpu_prepared_index;

/* All 0: nothing has been asked for yet. */
struct device_positions {
    bool ready, failed; /* atomic; failed: there is no room, and nobody asks again */
    gpu_positions of;   /* when it is ready */
    uint64_t bytes;     /* of the budget */
};

/* Whether the index's positions are in device memory; the first call copies them there. Thread-safe. */
bool make_positions(gpu_prepared_index *s);
void close_positions(gpu_prepared_index *s);

} // namespace gx

#endif
