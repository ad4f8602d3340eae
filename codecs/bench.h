/* bench.h: measure a codec on a list: size, and speeds on one CPU core and on the GPU. What is decoded is compared with
 * the original before it is timed.
 */
#ifndef GX_BENCH_H
#define GX_BENCH_H

#include "codecs/baseline.h"
#include "codecs/codec.h"

/* Integers a second; 0: not measured. */
typedef struct gx_codec_speed {
    double bits;       /* an integer, of the list's d-gaps, endpoints included (one more than there are blocks, as in the paper) */
    double paper_bits; /* the same, with GPU-VByte's last block bit-packed, as the paper's encoder has it */
    double encode, integers, docids;          /* one core; decoding goes block by block into a buffer that stays in L1 */
    double gpu_integers, gpu_docids;          /* to memory, the list not in cache */
    double gpu_integers_kept, gpu_docids_kept; /* kept in registers */
    double gpu_docids_l2;                     /* to memory, again and again */
    double gpu_gbs;                           /* bytes a second, read and written, of gpu_docids */
} gx_codec_speed;

/* docids [n], rising. gpu: measure on the current GPU too, where the codec has a decoder for it. GX_ENOMEM, GX_ECUDA,
 * GX_EINTERNAL (a decoder is wrong). */
gx_status gx_bench_codec(const gx_codec *codec, const uint32_t *docids, uint64_t n, bool speed, bool gpu, gx_codec_speed *out, gx_error *err);
/* n: a multiple of GX_STEP. */
gx_status gx_bench_baseline(const gx_baseline *baseline, const uint32_t *docids, uint64_t n, bool speed, gx_codec_speed *out, gx_error *err);

#endif
