/* scatter_add.h: the plainest way to search learned sparse weights on a GPU, to compare with: lists
 * as arrays of docids and of weights, uncompressed; an accumulator a document in global memory; an
 * atomic addition a posting; then the k best. So search GPUSparse and others.
 */
#ifndef GX_TOOLS_BENCH_DATA_SCATTER_ADD_H
#define GX_TOOLS_BENCH_DATA_SCATTER_ADD_H

#include "index/index.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_scatter_add gx_scatter_add;

/* A query: its lists, and a weight of each. */
typedef struct gx_scatter_query {
    const uint32_t *lists;
    const float *weights;
    uint32_t n;
} gx_scatter_query;

/* Decode the lists that the queries have and copy them to the current device, with `threads`
 * threads. GX_ENOMEM, GX_ENOGPU, GX_ECUDA. */
gx_status gx_scatter_add_open(gx_scatter_add **out, const gx_index *ix, const gx_scatter_query *queries, uint32_t n,
                              uint32_t threads, gx_error *err);
void gx_scatter_add_close(gx_scatter_add *s);
uint64_t gx_scatter_add_bytes(const gx_scatter_add *s); /* of its lists in device memory */

/* Answer queries[n], one after the other without waiting between them. best[i]: the k-th best score
 * of query i, from a histogram, so it is up to 1/16 too low. *seconds: for all. GX_ECUDA. */
gx_status gx_scatter_add_run(gx_scatter_add *s, const gx_scatter_query *queries, uint32_t n, uint32_t k, float *best,
                             double *seconds, gx_error *err);

/* Free and total memory of the current device. */
gx_status gx_device_memory(uint64_t *have, uint64_t *total, gx_error *err);

#ifdef __cplusplus
}
#endif

#endif
