/* exact_sum.h: sums of doubles and of whole numbers without rounding, rounded once at the end.
 *
 *   bit of the sum    2^-1074 ... 2^-1043   2^-1042 ... 2^-1011   ...
 *   digit             0                     1                     ...   each a signed number of 64 bits, of
 *                                                                       weight 2^(32 i - 1074)
 *
 * A digit has room for the carries of 2^30 additions, so that an addition touches three digits and no more. The
 * order of additions does not matter. (Neal, "Fast exact summation using small and large superaccumulators", 2015, has
 * the same with two digits.)
 */
#ifndef GX_QUERY_FACET_EXACT_SUM_H
#define GX_QUERY_FACET_EXACT_SUM_H

#include <stdint.h>

typedef __int128 gx_wide;

#define GX_SUM_DIGITS 72u
#define GX_SUM_UNIT (-1074) /* the exponent of digit 0's lowest bit */

typedef struct gx_exact_sum {
    int64_t digits[GX_SUM_DIGITS];
    uint32_t n_added; /* since the carries were taken out */
} gx_exact_sum;

/* Add v * 2^exponent; exponent >= GX_SUM_UNIT, and the sum stays below 2^1150. */
void gx_exact_sum_add(gx_exact_sum *s, gx_wide v, int exponent);

/* The sum divided by n, n >= 1, rounded once to the nearest double, of two the even one. Infinite where no double is as
 * large. */
double gx_exact_sum_round(const gx_exact_sum *s, uint64_t n);

/* v * 2^exponent / n, rounded in the same way. */
double gx_wide_round(gx_wide v, int exponent, uint64_t n);

/* A finite double is mantissa * 2^exponent, exponent >= GX_SUM_UNIT. */
typedef struct gx_float_parts {
    int64_t mantissa;
    int exponent;
} gx_float_parts;

static inline gx_float_parts gx_float_split(uint64_t bits)
{
    const int biased = (int)(bits >> 52 & 0x7ff);
    const int64_t m = (int64_t)((bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t)(biased > 0) << 52);
    return (gx_float_parts){bits >> 63 ? -m : m, (biased > 1 ? biased : 1) - 1 + GX_SUM_UNIT};
}

#endif
