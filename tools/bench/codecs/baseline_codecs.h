/* baseline_codecs.h: what the GPU codecs are compared with on the CPU (Mallia et al., CIKM 2019):
 * BP32, SIMD-BP128, VarintGB and StreamVByte. Whole lists, without blocks to skip to; for
 * benchmarks alone, not for indexes.
 */
#ifndef GX_TOOLS_BENCH_CODECS_BASELINE_CODECS_H
#define GX_TOOLS_BENCH_CODECS_BASELINE_CODECS_H

#include "engine/api/gpuidx.h"

/* Where a decoder stands. */
typedef struct gx_cursor {
    const uint8_t *control; /* StreamVByte: the next control byte */
    const uint8_t *data;
    uint32_t last; /* docids: the integer before */
} gx_cursor;

#define GX_STEP 2048u /* integers that one step decodes; n is a multiple of it */

typedef struct gx_baseline {
    const char *name, *title, *source;
    /* Bytes for in[n]; out [8 n + 64]. */
    uint64_t (*encode)(const uint32_t *in, uint64_t n, uint8_t *out);
    gx_cursor (*open)(const uint8_t *bytes, uint64_t n);
    /* The next GX_STEP integers; docids: their running sum, from cursor->last. Whatever the bytes
     * are, the steps for n integers read no more than the 8 n + 64 that encode may write. */
    void (*step)(gx_cursor *cursor, uint32_t *out, bool docids);
} gx_baseline;

extern const gx_baseline *const gx_baselines[]; /* ends at NULL */

#endif
