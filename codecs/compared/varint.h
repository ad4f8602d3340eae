/* varint.h: the byte-oriented codes of Stepanov et al. (CIKM 2011), and what their coders share.
 *
 * An integer keeps its significant bits, in whole bytes, lowest first; descriptor bits tell where
 * it ends:
 *
 *                    | length in unary              | length in binary
 *     each byte      | varint-SU: VByte             |
 *     first byte     | varint-PU                    | varint-PB
 *     a byte apart   | varint-GU: G8IU, G8CU        | varint-GB: Group Varint
 *
 * In all of them a block's bytes are followed by zero bytes up to a whole word, and a block of
 * zeros takes no words.
 */
#ifndef GX_CODECS_COMPARED_VARINT_H
#define GX_CODECS_COMPARED_VARINT_H

#include <string.h>

#include "codecs/codec.h"
#include "codecs/words/bits.h"
#include "codecs/words/pack.h"

enum { GX_VARINT_BLOCK = 128, GX_VARINT_MAX_WORDS = 160 }; /* that a block can take: VByte's five bytes an integer */

/* Bytes that x needs, at least one. */
static inline uint32_t gx_bytes_of(uint32_t x)
{
    return (gx_bit_width(x | 1) + 7) / 8;
}

/* The first n bytes at p, at most four; four may be read. */
static inline uint32_t gx_load_bytes(const uint8_t *p, uint32_t n)
{
    uint32_t x;
    memcpy(&x, p, 4);
    return x & gx_low_bits(8 * (n < 4 ? n : 4));
}

/* Zero bytes from the end of a block's bytes to a whole word; returns the block's words. */
uint32_t gx_varint_pad(uint32_t *out, uint8_t *end);

/* gx_codec.valid: a block is valid if its integers, encoded, are its words. */
bool gx_varint_valid(const gx_codec *codec, const uint32_t *words, uint32_t n_words, uint32_t n);

#endif
