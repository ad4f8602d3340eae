/* list_kernels.h: whole lists decoded on the GPU, by each codec's own kernels: what `bench codecs`
 * measures. Queries fuse the decoders of codecs/NAME.cuh into their kernels instead.
 * list_kernels.cuh tells how the kernels are made.
 */
#ifndef GX_TOOLS_BENCH_KERNELS_LIST_KERNELS_H
#define GX_TOOLS_BENCH_KERNELS_LIST_KERNELS_H

#include "codecs/decode.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gx_decode_list_cpu on the GPU: params, words, ends, heads and out lie in device memory, words in
 * an allocation that begins at a multiple of 16 bytes, out at such a multiple; [n] integers are
 * written. stream: a cudaStream_t. Asynchronous. GX_EUSAGE: the codec has no GPU decoder. GX_ECUDA.
 * */
gx_status gx_decode_list_cuda(const gx_packed *list, gx_form form, uint32_t *out, void *stream, gx_error *err);

/* gx_decode_list_cuda by the kernels of the paper that GPU-BP and GPU-VByte come from (Mallia et
 * al., CIKM 2019): a thread an integer, sums by CUB's BlockScan. GX_EUSAGE: the paper has no kernel
 * for the codec. */
gx_status gx_decode_list_cikm2019_cuda(const gx_packed *list, gx_form form, uint32_t *out, void *stream, gx_error *err);

/* Decode into registers and write nothing but sums, as a fused kernel would: sums [GX_N_SUMS] are
 * added to, and their total grows by the sum of all integers (or docids), modulo 2^32. */
#define GX_N_SUMS 1024u
gx_status gx_sum_list_cuda(const gx_packed *list, gx_form form, uint32_t *sums, void *stream, gx_error *err);

/* Every integer of the list by random access, a lane each, to out [n]. */
gx_status gx_at_list_cuda(const gx_packed *list, uint32_t *out, void *stream, gx_error *err);

/* Whether the functions above can decode the codec. */
bool gx_codec_on_gpu(const gx_codec *codec);

#ifdef __cplusplus
}
#endif
#endif
