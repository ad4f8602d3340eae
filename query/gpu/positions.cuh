/* positions.cuh: the positions of words on the GPU, which nobody needs before the first phrase comes. Where memory
 * suffices they are made plain there. */
#ifndef GX_QUERY_GPU_POSITIONS_CUH
#define GX_QUERY_GPU_POSITIONS_CUH

#include "query/gpu/kernels/gpu.cuh"

#include <pthread.h>

namespace gx {

struct gpu_prepared_index;

constexpr uint32_t MOST_PARTS = 8;

/* Memory of the budget. */
struct device_part {
    void *at;
    uint64_t bytes;
};

/* All 0: nothing has been asked for yet. */
struct device_positions {
    bool ready, failed;          /* atomic; failed: there is no room, and nobody asks again */
    gpu_positions of;            /* when it is ready */
    const gpu_positions *device; /* the same in device memory */
    device_part parts[MOST_PARTS];
    uint32_t n_parts, n_lasting; /* n_lasting: those that stay when positions become plain */
};

/* Whether the index's positions are in device memory; the first call copies them there. Thread-safe. */
bool make_positions(gpu_prepared_index *s);
void close_positions(gpu_prepared_index *s);

} // namespace gx

#endif
