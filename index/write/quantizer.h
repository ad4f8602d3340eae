/* quantizer.h: weights as impacts: whole numbers times a unit.
 *
 *   unit    greatest weight / (2^bits - 1), rounded up to 11 significant bits; 1 where all weights
 *           are whole numbers of at most 2^bits - 1, which then stay as they are
 *   impact  max(1, weight / unit), rounded to the nearest whole number, to the even one of two; in
 *           double precision. No impact is above 2^bits - 1, or, where the unit is given, GX_MAX_IMPACT
 *
 * A unit of 11 bits times an impact of 13 bits is exact in single precision, so that of weights of
 * up to 13 bits equal sums of impacts have equal scores (query/score/bm25.h).
 */
#ifndef GX_INDEX_WRITE_QUANTIZER_H
#define GX_INDEX_WRITE_QUANTIZER_H

#include <stdbool.h>
#include <stdint.h>

#define GX_MIN_IMPACT_BITS 4u
#define GX_MAX_IMPACT_BITS 16u
#define GX_DEFAULT_IMPACT_BITS 8u

/* What the unit depends on. All zero: there are no weights yet. */
typedef struct gx_weight_range {
    double most;
    bool fractions; /* some weight is not a whole number */
} gx_weight_range;

/* w: finite, above 0. */
void gx_weight_range_add(gx_weight_range *r, double w);
void gx_weight_range_merge(gx_weight_range *r, gx_weight_range other);

/* The unit of weights in this range, a float above 0; 1 where there are none. */
double gx_impact_unit(gx_weight_range r, uint32_t bits);

/* w as an impact, 1 to 2^bits - 1; unit: gx_impact_unit of a range that w is in, or another one. */
uint32_t gx_quantize(double w, double unit);

/* A positive weight as a whole number that is above 0 and orders as the weights do: the bits of the
 * float. The inversion keeps it in the place of a tf until the unit is known. */
uint32_t gx_weight_bits(float w);
float gx_weight_of_bits(uint32_t bits);

#endif
