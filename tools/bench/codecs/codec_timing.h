/* codec_timing.h: measure a codec on lists: size, and speeds on one CPU core and on the GPU. What
 * is decoded is compared with the original before it is timed.
 *
 * Lists are decoded one after another, as a log of queries asks for them: `order` says which, as
 * often as it says. For timing their blocks lie in that order in memory, each list's last block
 * filled up to a whole one, so that all are decoded in one launch on the GPU; what fills up is not
 * counted, neither in sizes nor in speeds.
 */
#ifndef GX_TOOLS_BENCH_CODECS_CODEC_TIMING_H
#define GX_TOOLS_BENCH_CODECS_CODEC_TIMING_H

#include "codecs/codec.h"
#include "tools/bench/codecs/baseline_codecs.h"

typedef struct gx_bench_lists {
    const uint32_t *values; /* list after list */
    const uint64_t *begins; /* [n_lists + 1] where each begins in values; none is empty */
    uint32_t n_lists;
    const uint32_t *order; /* [n_order] lists, as they are decoded */
    uint64_t n_order;      /* >= 1 */
    bool docids;           /* every list rises: measured as d-gaps and as docids. Else as integers alone */
} gx_bench_lists;

/* Integers a second on the GPU, decoded to memory, or kept in registers as by a query; l2: again
 * and again, so that what fits is in the L2 cache, else that holds nothing of the lists. */
typedef struct gx_gpu_speed {
    double memory, kept, memory_l2, kept_l2;
    double bytes; /* a second, read and written, of `memory` */
} gx_gpu_speed;

/* Integers a second; 0: not measured. `integers` are d-gaps where lists hold docids. */
typedef struct gx_codec_speed {
    uint64_t n; /* integers decoded */
    /* an integer, of lists each taken once, endpoints included (one more than there are blocks, as
     * in the paper) */
    double bits;
    /* the same, with GPU-VByte's last block bit-packed, as the paper's encoder has it: for its
     * Table 1 */
    double paper_bits;
    double docid_bits; /* a docid as an index stores it, with heads and endpoints; 0: no docids, or a baseline */
    double encode, integers, docids; /* one core; decoding goes block by block into a buffer that stays in L1 */
    gx_gpu_speed gpu_integers, gpu_docids;
} gx_codec_speed;

typedef enum gx_bench_gpu {
    GX_BENCH_CPU, /* the CPU alone */
    GX_BENCH_GPU, /* the current GPU too, where the codec has a decoder for it */
    /* the current GPU alone, by the kernels of the paper (gx_decode_list_cikm2019_cuda), to memory
     * */
    GX_BENCH_GPU_PAPER
} gx_bench_gpu;

/* Measure the codec: sizes, and speeds if speed is true. GX_ENOMEM, GX_ECUDA,
 * GX_EUSAGE (lists of more than 2^32 words), GX_EINTERNAL (a decoder is wrong). */
gx_status gx_bench_codec(const gx_codec *codec, const gx_bench_lists *lists, bool speed, gx_bench_gpu gpu,
                         gx_codec_speed *out, gx_error *err);
/* A baseline takes the lists as one. */
gx_status gx_bench_baseline(const gx_baseline *baseline, const gx_bench_lists *lists, bool speed, gx_codec_speed *out,
                            gx_error *err);

#endif
