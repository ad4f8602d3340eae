/* simd.h: the inner loops of decoding on the CPU, in as many versions as there are kinds of CPU.
 * All give the same.
 *
 * They trust their arguments: widths are <= 32 and the words are there. Reads go up to
 * GX_READ_SLACK bytes past the last word, writes up to n rounded up to 16.
 */
#ifndef GX_CODECS_SIMD_H
#define GX_CODECS_SIMD_H

#include "engine/gpuidx.h"

typedef struct gx_simd {
    const char *name, *title; /* "avx512", "AVX-512" */
    bool (*usable)(void);     /* on this CPU; asked before anything else is used, as it also makes tables */

    /* n integers of b bits in a row (pack.h); as docids: out[i] = head - 1 + (v[0] + 1) + .. +
     * (v[i] + 1), modulo 2^32. */
    void (*unpack)(const uint32_t *words, uint32_t n, uint32_t b, uint32_t *out);
    void (*unpack_docids)(const uint32_t *words, uint32_t n, uint32_t b, uint32_t head, uint32_t *out);

    /* n integers of 1 to 4 bytes in a row, their lengths less one in 2-bit selectors, sixteen a
     * word. false, and out means nothing, if they would go well beyond end; GX_READ_SLACK bytes
     * past end may be read. */
    bool (*bytes)(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out);
    bool (*bytes_docids)(const uint32_t *selectors, const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t head,
                         uint32_t *out);
    /* The reverse: selectors [ceil(n / 16)], data [4 n]; returns the end of the data. Bytes between
     * it and data + 4 n may be written. */
    uint8_t *(*put_bytes)(const uint32_t *in, uint32_t n, uint32_t *selectors, uint8_t *data);

    /* Coded docids to docids in place. */
    void (*sum)(uint32_t *v, uint32_t n, uint32_t head);

    /* n integers of the codes of varint.h: varint-SU, varint-GB, and n_groups groups of varint-GU,
     * complete or not. As `bytes`: false if they would go well beyond the end, or are no such
     * bytes. */
    bool (*su)(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out);
    bool (*gb)(const uint8_t *data, const uint8_t *end, uint32_t n, uint32_t *out);
    bool (*gu)(const uint8_t *groups, uint32_t n_groups, bool complete, uint32_t n, uint32_t *out);

    /* The high parts of Elias-Fano's sums (eliasfano.c): the i-th set bit of words[n_words] behind
     * GX_EF_B_BITS is bit h + i; out[i] += (h << b) + first + i * step, n <= 128, h modulo 256.
     * Where bits are missing, h + i is 0. */
    void (*add_high)(const uint32_t *words, uint32_t n_words, uint32_t n, uint32_t b, uint32_t first, uint32_t step,
                     uint32_t *out);
} gx_simd;

/* Best last; ends at NULL. The first is usable everywhere. */
extern const gx_simd *const gx_simds[];

/* The best that this CPU can use, or the one that the environment's GX_CPU names (isa.h); NULL if
 * that cannot run here. */
const gx_simd *gx_simd_choose(void);

/* The same, chosen once, for decoders; the best that there is where it cannot run: who measures or
 * searches has refused that. */
const gx_simd *gx_simd_best(void);

#endif
