/* bm25.h: a posting's impact, the one place where a score is computed; the same bits on host and
 * device.
 *
 *   K      = c0 + c1 * dl
 *   impact = max(1, round(w * tf / (s * tf + K)))      an unsigned integer
 *   score  = sum of impacts over the query's terms     < 2^31
 *
 * BM25:    s = 1, c0 = k1 (1 - b), c1 = k1 b / avgdl. No impact is above w.
 * linear:  s = 0, c0 = 1, c1 = 0: impact = round(w * tf). No impact is above w times the list's
 * greatest tf.
 *
 * Other s > 0 add nothing, since w tf / (s tf + K) is (w / s) tf / (tf + K / s). So s is not
 * stored: an s of 0 is written as c0 = GX_LINEAR_K = 2^60 and a w that is 2^60 times as great. tf +
 * 2^60 rounds to 2^60 for every tf below 2^32, and a factor of 2^60 in dividend and divisor changes
 * no bit of the quotient. Every engine therefore computes both shapes by the same instructions, and
 * those of BM25 are what they would be without the linear shape.
 *
 * w is the term's weight times a power of two that depends on the query and the collection's
 * statistics alone (plan.c), so a sum's order never matters and engines agree to the bit. IEEE
 * single precision, one written order, no contraction (-ffp-contract=off, --fmad=false), round to
 * nearest even. The least impact is 1, so a document matches exactly when its score is not 0.
 */
#ifndef GX_QUERY_SCORE_BM25_H
#define GX_QUERY_SCORE_BM25_H

#include <stdint.h>
#ifndef __CUDA_ARCH__
#include <math.h>
#endif

#include "engine/api/gpuidx.h"
#include "engine/hd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A scorer's row in the table of bm25.c. */
typedef struct gx_preset_info {
    const char *name;
    const char *formula; /* of a term's score, for people */
    float k1, b;         /* its own parameters; 0 where it is linear, which has none */
    double (*idf)(double n_docs, double df);
    bool times_k1; /* the weight is idf (k1 + 1) */
    bool lossy;    /* gx_scorer.lossy */
    bool linear;   /* s = 0 */
} gx_preset_info;

const gx_preset_info *gx_preset_get(gx_preset p); /* p < GX_N_PRESETS */

#ifdef __cplusplus
}
#endif

/* The shape of a score: what, besides w, turns a tf and a document's length into an impact. */
typedef struct gx_scorer {
    float c0, c1;   /* GX_LINEAR_K, 0: linear */
    uint32_t lossy; /* 1: the length is first rounded down to what Lucene's one-byte code keeps */
} gx_scorer;

#define GX_LINEAR_EXPONENT 60 /* at least 56, so that half a unit in the last place of K is at least 2^32 */
#define GX_LINEAR_K 0x1p60f

/* True of BM25 with a k1 of 2^60 and b 0, too: what is derived of the lists is the same for both.
 * */
GX_HD bool gx_scorer_is_linear(gx_scorer s)
{
    return s.c0 == GX_LINEAR_K;
}

GX_HD bool gx_scorer_is(gx_scorer a, gx_scorer b)
{
    return a.c0 == b.c0 && a.c1 == b.c1 && a.lossy == b.lossy;
}

/* Lucene's SmallFloat.byte4ToInt(intToByte4(dl)): exact below 40, four significant bits above. */
GX_HD uint32_t gx_lossy_length(uint32_t dl)
{
    if (dl < 40)
        return dl;
    uint32_t x = dl - 24, shift = 0; /* 24 values are kept as they are before the 4-bit floats begin */
    while (x >> shift >= 16)
        ++shift;
    return ((x >> shift) << shift) + 24;
}

GX_HD float gx_bm25_K(gx_scorer norm, uint32_t dl)
{
    const float len = (float)(norm.lossy ? gx_lossy_length(dl) : dl);
#ifdef __CUDA_ARCH__
    return __fadd_rn(norm.c0, __fmul_rn(norm.c1, len));
#else
    const float product = norm.c1 * len;
    return norm.c0 + product;
#endif
}

/* w finite >= 0, no impact above 2^30 (BM25: w <= 2^30; linear: w * tf <= 2^90); tf >= 1; K >= 0.
 * */
GX_HD uint32_t gx_bm25_impact(float w, uint32_t tf, float K)
{
    const float f = (float)tf;
#ifdef __CUDA_ARCH__
    const uint32_t i = __float2uint_rn(__fdiv_rn(__fmul_rn(w, f), __fadd_rn(f, K)));
#else
    const float product = w * f, sum = f + K, x = product / sum;
    const uint32_t i = (uint32_t)lrintf(x);
#endif
    return i ? i : 1;
}

/* Not less than the impact of any tf' <= tf with any K' >= K. An impact itself does not fall as K
 * shrinks, but it can fall, in its last bits, as tf grows: three roundings of 2^-24 each apart, so
 * 2^-21 covers both sides. Whoever bounds postings by a greatest tf uses this, not gx_bm25_impact.
 * */
GX_HD uint32_t gx_bm25_bound(float w, uint32_t tf, float K)
{
    const uint32_t i = gx_bm25_impact(w, tf, K);
    return i + (i >> 21) + 2;
}

#endif
