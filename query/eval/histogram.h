/* histogram.h: how values (latencies in ns) are distributed, in constant memory, to three digits.
 *
 * Values below 1024 have a bucket each; above, every power of two has 512 buckets of equal width,
 * so that a bucket's ends differ by less than 0.2 % (HdrHistogram's layout). Count, sum, least and
 * greatest value are exact.
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

/* The value, count times. */
void gx_histogram_add(gx_histogram *h, uint64_t value, uint64_t count);
void gx_histogram_merge(gx_histogram *into, const gx_histogram *from);

/* The least value v such that a share p (0 to 1) of all values is <= v, but for the bucket's width;
 * 0 when empty. */
uint64_t gx_histogram_quantile(const gx_histogram *h, double p);
double gx_histogram_mean(const gx_histogram *h);

#endif
