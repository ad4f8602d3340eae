#include "index/write/quantizer.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define UNIT_BITS 11 /* significant bits of a unit */

void gx_weight_range_add(gx_weight_range *r, double w)
{
    r->most = w > r->most ? w : r->most;
    r->fractions |= w != floor(w);
}

void gx_weight_range_merge(gx_weight_range *r, gx_weight_range other)
{
    r->most = other.most > r->most ? other.most : r->most;
    r->fractions |= other.fractions;
}

double gx_impact_unit(gx_weight_range r, uint32_t bits)
{
    const double levels = (double)((UINT32_C(1) << bits) - 1);
    if (r.most <= 0 || (!r.fractions && r.most <= levels))
        return 1;
    int exponent;
    const double mantissa = frexp(r.most / levels, &exponent);
    const double unit = ldexp(ceil(ldexp(mantissa, UNIT_BITS)), exponent - UNIT_BITS);
    return unit < FLT_MIN ? FLT_MIN : unit;
}

uint32_t gx_quantize(double w, double unit)
{
    const uint32_t impact = (uint32_t)nearbyint(w / unit);
    return impact ? impact : 1;
}

uint32_t gx_weight_bits(float w)
{
    uint32_t bits;
    memcpy(&bits, &w, sizeof bits);
    return bits;
}

float gx_weight_of_bits(uint32_t bits)
{
    float w;
    memcpy(&w, &bits, sizeof w);
    return w;
}
