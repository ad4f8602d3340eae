/* simd.h: the inner loops of decoding on the CPU, in one version for each instruction set. All
 * versions give the same results.
 *
 * They trust their arguments: widths are <= 32, and the words are there. They read up to
 * GX_READ_SLACK bytes past the last word and write up to n rounded up to 16.
 */
#ifndef GX_CODECS_WORDS_SIMD_H
#define GX_CODECS_WORDS_SIMD_H

#include "engine/api/gpuidx.h"

typedef struct gx_simd {
    const char *name, *title; /* as "avx512" and "AVX-512" */
    bool (*usable)(void);     /* whether this CPU can run it. Call it before the others: it also fills tables */

    /* n integers of b bits in a row (pack.h); as docids: out[i] = head - 1 + (v[0] + 1) + .. +
     * (v[i] + 1), modulo 2^32. */
    void (*unpack)(const uint32_t *words, uint32_t n, uint32_t b, uint32_t *out);
    void (*unpack_docids)(const uint32_t *words, uint32_t n, uint32_t b, uint32_t head, uint32_t *out);

    /* n integers of 1 to 4 bytes in a row. Their lengths less one are 2-bit selectors, sixteen to a
     * word. Returns false, and out is meaningless, where the integers would reach well beyond end.
     * Up to GX_READ_SLACK bytes past end are read. */
    bool (*bytes)(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out);
    bool (*bytes_docids)(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t head,
                         uint32_t *out);
    /* Encode: selectors [ceil(n / 16)], data [4 n]. Returns the end of the data. Bytes between that
     * end and data + 4 n may be overwritten. */
    uint8_t *(*put_bytes)(const uint32_t *in, uint32_t n, uint32_t *selectors, uint8_t *data);

    /* Turn coded docids into docids, in place. */
    void (*prefix_sum)(uint32_t *v, uint32_t n, uint32_t head);

    /* n integers of the codes of varint.h: varint-SU, varint-GB, and n_groups groups of varint-GU,
     * complete or not. They return false, as `bytes` does, where the integers would reach well
     * beyond the end, and where the bytes are not of that code. */
    bool (*su)(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out);
    bool (*gb)(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out);
    bool (*gu)(const uint8_t *groups, uint32_t n_groups, bool complete, uint32_t n, uint32_t *out);

    /* Add the high parts of Elias-Fano's sums (eliasfano.c). If the i-th set bit of words[n_words]
     * after the first GX_EF_B_BITS is bit h + i, then out[i] += (h << b) + first + i * step. n <=
     * 128, h is modulo 256. Where bits are missing, h + i is 0. */
    void (*add_high_parts)(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t b, uint32_t first,
                           uint32_t step, uint32_t *out);
} gx_simd;

/* Best last; ends at NULL. The first is usable everywhere. */
extern const gx_simd *const gx_simds[];

/* The best version that this CPU can run, or the one that the environment variable GX_CPU names
 * (isa.h). NULL: the named one cannot run here. */
const gx_simd *gx_simd_choose(void);

/* The same, chosen once for the process, for decoders. Where GX_CPU names a version that cannot
 * run, this is the best one that can: commands and engines have refused such a GX_CPU before. */
const gx_simd *gx_simd_best(void);

#endif
