/* auto_codec.h: chooses a codec for each list, for `--codec=auto`.
 *
 * Packing a list of n integers with a codec that has a decode_cost costs
 *
 *     32 words + GX_CHOICE_BITS n load (decode_cost - 10) / 10      bits
 *
 * load says how often queries read the list: the term's share of all queries, or, where no queries
 * are known, of all documents, because people ask for a word about as often as they write it. For a
 * list that every query reads, decoding in GPU-BP128's time rather than in twice that time is worth
 * GX_CHOICE_BITS bits an integer. The list of a rare word gets the shortest codec.
 *
 * Docids and tfs have four candidates each, so that the header's table of codings has room for
 * every pair and no list has to take a worse pair because the table is full. Docids have gpubp128,
 * ef128, varint-su and rice; tfs have gpubp128, gpupfd128, ef128 and rice. On every third list of
 * the arXiv index these cost 7.440 and 1.904 bits an integer, the least of all sets of four. The
 * best of all sixteen codecs with blocks of 128 cost 7.432 and 1.903.
 *
 * The choice of GX_CHOICE_BITS, on these lists, with all sixteen codecs. Bits are bits a posting;
 * time is the sum of decode_cost, gpubp128's being 1:
 *
 *     GX_CHOICE_BITS   2     4     8     16   | gpubp128   gpupfd128   ef128     rice
 *     bits             8.74  8.81  8.91  9.15 | 11.33      9.51        9.15      8.78
 *     time             1.8   1.6   1.4   1.3  | 1.0        1.3         2.1       3.9
 *
 * On a CPU with AVX-512 the order differs: ef128 decodes nearly as fast as gpubp128, and rice at a
 * fifteenth of that speed. There an index of ef128 alone is 2 % longer than one chosen with 8, and
 * a quarter faster.
 */
#ifndef GX_CODECS_AUTO_CODEC_H
#define GX_CODECS_AUTO_CODEC_H

#include "codecs/codec.h"

#define GX_CHOICE_BITS 8.0
#define GX_MAX_CHOICES 4u

/* Stands for "choose for each list" where a codec is named. Its block length is 128. It cannot
 * encode, and its id, 0, is in no file. */
extern const gx_codec gx_codec_auto;

typedef struct gx_choice {
    const gx_codec *codec;
    uint8_t param;
    double cost; /* bits, by the formula above */
} gx_choice;

/* The candidates for in[n], n >= 1: the d-gaps of docids, or tfs. */
void gx_choices(bool is_docids, const uint32_t *in, uint64_t n, double load, gx_choice out[GX_MAX_CHOICES]);

#endif
