/* histogram.h: the distribution of values, such as latencies in ns, in constant memory and with
 * three significant digits.
 *
 * The layout is HdrHistogram's. Each value below 1024 has a bucket of its own. Above, every power
 * of two has 512 buckets of equal width, so that the values of a bucket differ by less than 0.2 %.
 * Count, least and greatest value are exact.
 */
#ifndef GX_QUERY_REPLAY_HISTOGRAM_H
#define GX_QUERY_REPLAY_HISTOGRAM_H

#include "engine/api/gpuidx_advanced.h" /* gx_histogram */

/* Add the value `count` times. */
void gx_histogram_add(gx_histogram *h, uint64_t value, uint64_t count);

/* Add all values of `from`. */
void gx_histogram_merge(gx_histogram *into, const gx_histogram *from);

#endif
