/* gpu_list.h: a packed list in a GPU's memory, decoded there and timed; for tests and benchmarks.
 *
 * All functions use the current device, wait until they are done, and fail with GX_ENOGPU where no
 * GPU can be used and with GX_ECUDA where it fails.
 */
#ifndef GX_TOOLS_BENCH_KERNELS_GPU_LIST_H
#define GX_TOOLS_BENCH_KERNELS_GPU_LIST_H

#include "tools/bench/kernels/list_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gx_gpu_list gx_gpu_list;

/* Copy the list (host arrays; the words are ends[last], and GX_READ_SLACK bytes behind them) to the
 * GPU. */
gx_status gx_gpu_list_open(gx_gpu_list **out, const gx_packed *list, gx_error *err);
void gx_gpu_list_close(gx_gpu_list *l);

/* From now on gx_gpu_list_decode and gx_gpu_list_time (fused: false) use the paper's kernels
 * (gx_decode_list_cikm2019_cuda). */
void gx_gpu_list_use_cikm2019(gx_gpu_list *l);

/* Decode to memory and copy the n integers to out; the words of the output are filled with noise
 * before. */
gx_status gx_gpu_list_decode(gx_gpu_list *l, gx_form form, uint32_t *out, gx_error *err);
/* Decode into registers; *sum is the sum of all integers modulo 2^32. */
gx_status gx_gpu_list_sum(gx_gpu_list *l, gx_form form, uint32_t *sum, gx_error *err);

/* Every integer by gx_at_list_cuda. */
gx_status gx_gpu_list_at(gx_gpu_list *l, uint32_t *out, gx_error *err);

/* Decode: the median of `repeat` runs in seconds. fused: gx_sum_list_cuda rather than
 * gx_decode_list_cuda. cold: the L2 cache is overwritten before each run; else the list stays in it
 * if it fits. */
gx_status gx_gpu_list_time(gx_gpu_list *l, gx_form form, bool fused, bool cold, uint32_t repeat, double *seconds,
                           gx_error *err);

/* Bytes a second that a kernel reaches which reads read_bytes and writes write_bytes of its own
 * memory, 16 bytes a thread, in a row; the median of `repeat` runs. read_bytes and write_bytes: one
 * may be 0. */
gx_status gx_gpu_memory_speed(uint64_t read_bytes, uint64_t write_bytes, uint32_t repeat, double *bytes_a_second,
                              gx_error *err);

/* The device's name, to text[max]. */
gx_status gx_gpu_name(char *text, size_t max, gx_error *err);
/* Its place on the PCI bus, as NVIDIA's libraries write it. */
gx_status gx_gpu_pci(char *text, size_t max, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
