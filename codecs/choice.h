/* choice.h: which codec a list is packed with, where that is left open: `--codec=auto`.
 *
 * A candidate is a codec of the registry with a decode_cost. A list of n integers costs, packed with it,
 *
 *     32 words + GX_CHOICE_BITS n load (decode_cost - 10) / 10      bits
 *
 * where load says how often the list is asked for: a term's share of all queries, or, if no queries are known, of all
 * documents, since words are asked for about as often as they are written. So a list that every query reads is worth
 * GX_CHOICE_BITS bits an integer if it decodes in GPU-BP128's time rather than in twice that, and a rare word's list is as short
 * as can be.
 */
#ifndef GX_CHOICE_H
#define GX_CHOICE_H

#include "codecs/codec.h"

#define GX_CHOICE_BITS 8.0
#define GX_MAX_CHOICES 8u

/* Stands for any candidate, blocks of 128, where a codec is named; it cannot encode, and no file has its id, 0. */
extern const gx_codec gx_codec_auto;

typedef struct gx_choice {
    const gx_codec *codec;
    uint8_t param;
    double cost; /* in bits */
} gx_choice;

/* The candidates for in[n], n >= 1, in order of id; returns their number, at least 1. */
uint32_t gx_choices(const uint32_t *in, uint64_t n, double load, gx_choice out[GX_MAX_CHOICES]);

#endif
