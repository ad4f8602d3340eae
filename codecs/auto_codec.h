/* auto_codec.h: which codec a list is packed with, where that is left open: `--codec=auto`.
 *
 * A list of n integers costs, packed with a codec that has a decode_cost,
 *
 *     32 words + GX_CHOICE_BITS n load (decode_cost - 10) / 10      bits
 *
 * where load says how often the list is asked for: a term's share of all queries, or, if no queries
 * are known, of all documents, since words are asked for about as often as they are written. So a
 * list that every query reads is worth GX_CHOICE_BITS bits an integer if it decodes in GPU-BP128's
 * time rather than in twice that, and a rare word's list is as short as can be.
 *
 * Docids and tfs have four candidates each, so that the header's codings have room for every pair
 * and no list has to take a worse one because others came before it. Docids have gpubp128, ef128,
 * varint-su and rice, tfs gpubp128, gpupfd128, ef128 and rice. Of every third list of the arXiv
 * index (README.md) these cost 7.440 and 1.904 bits an integer, the least of all such fours; the
 * best of all sixteen codecs with blocks of 128 cost 7.432 and 1.903.
 *
 * GX_CHOICE_BITS, on these lists, by the best of all sixteen: bits a posting, and time by
 * decode_cost, gpubp128's being 1.
 *
 *     2        4        8        16       | gpubp128   gpupfd128   ef128     rice
 *     8.74     8.81     8.91     9.15     | 11.33      9.51        9.15      8.78      bits
 *     1.8      1.6      1.4      1.3      | 1.0        1.3         2.1       3.9       time
 *
 * A CPU with AVX-512 decodes ef128 nearly as fast as gpubp128, and rice at a fifteenth: there an
 * index of ef128 alone is 2 % longer than one chosen by 8 and a quarter faster (README.md has
 * both).
 */
#ifndef GX_CODECS_AUTO_CODEC_H
#define GX_CODECS_AUTO_CODEC_H

#include "codecs/codec.h"

#define GX_CHOICE_BITS 8.0
#define GX_MAX_CHOICES 4u

/* Stands for any candidate, blocks of 128, where a codec is named; it cannot encode, and no file
 * has its id, 0. */
extern const gx_codec gx_codec_auto;

typedef struct gx_choice {
    const gx_codec *codec;
    uint8_t param;
    double cost; /* in bits */
} gx_choice;

/* The candidates for in[n], n >= 1, docids' d-gaps or tfs. */
void gx_choices(bool is_docids, const uint32_t *in, uint64_t n, double load, gx_choice out[GX_MAX_CHOICES]);

#endif
