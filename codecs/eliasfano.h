/* eliasfano.h: a block of Elias-Fano taken apart (eliasfano.c), for the host and the device. */
#ifndef GX_ELIASFANO_H
#define GX_ELIASFANO_H

#include "codecs/bits.h"

#define GX_EF_B_BITS 5u    /* where the high bits begin */
#define GX_EF_MAX_HIGH 13u /* words of high bits, b's among them, that an encoder may write */

typedef struct gx_ef_block {
    uint32_t b, n_high; /* bits of a low part; words before the low parts */
} gx_ef_block;

/* Of words[n_words], the first of which is given; n_words >= 1. Whatever the bytes are, the low parts lie within words. */
GX_HD gx_ef_block gx_ef_open(uint32_t first, uint32_t n_words, uint32_t n)
{
    const uint32_t b = first & 31, n_low = gx_div_up(n * b, 32);
    gx_ef_block e;
    e.b = n_low <= n_words ? b : 0;
    e.n_high = n_low <= n_words ? n_words - n_low : n_words;
    return e;
}

#endif
