/* histogram.h: the distribution of values, such as latencies in ns, in constant memory and with
 * three significant digits.
 *
 * The layout is HdrHistogram's. Each value below 1024 has a bucket of its own. Above, every power
 * of two has 512 buckets of equal width, so that the values of a bucket differ by less than 0.2 %.
 * Count, least and greatest value are exact.
 */
#ifndef GX_QUERY_EVAL_HISTOGRAM_H
#define GX_QUERY_EVAL_HISTOGRAM_H

#include <stdint.h>

#define GX_HISTOGRAM_HALF 512u
#define GX_HISTOGRAM_BUCKETS ((64u - 9u + 1u) * GX_HISTOGRAM_HALF)

typedef struct gx_histogram {
    uint64_t n, min, max;
    double sum;
    uint64_t buckets[GX_HISTOGRAM_BUCKETS];
} gx_histogram; /* all zero: empty */

/* Add the value `count` times. */
void gx_histogram_add(gx_histogram *h, uint64_t value, uint64_t count);

/* Add all values of `from`. */
void gx_histogram_merge(gx_histogram *into, const gx_histogram *from);

/* The least value v such that a share p (0 to 1) of all values is <= v, rounded up to the end of
 * v's bucket but not above the greatest value; 0 when the histogram is empty. */
uint64_t gx_histogram_quantile(const gx_histogram *h, double p);

/* The mean; 0 when the histogram is empty. */
double gx_histogram_mean(const gx_histogram *h);

#endif
