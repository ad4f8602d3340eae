#include "query/replay/histogram.h"

#include <math.h>

/* The bucket of a value: from its ten leading bits and the number of bits behind them. */
static uint32_t bucket_of(uint64_t value)
{
    if (value < 2 * GX_HISTOGRAM_HALF)
        return (uint32_t)value;
    const uint32_t shift = 63u - (uint32_t)__builtin_clzll(value) - 9u;
    return shift * GX_HISTOGRAM_HALF + (uint32_t)(value >> shift);
}

static uint64_t greatest_in(uint32_t bucket)
{
    if (bucket < 2 * GX_HISTOGRAM_HALF)
        return bucket;
    const uint32_t shift = bucket / GX_HISTOGRAM_HALF - 1;
    const uint64_t lead = bucket - shift * GX_HISTOGRAM_HALF;
    return (lead << shift) + ((UINT64_C(1) << shift) - 1);
}

void gx_histogram_add(gx_histogram *h, uint64_t value, uint64_t count)
{
    if (!count)
        return;
    if (!h->n || value < h->min)
        h->min = value;
    if (value > h->max)
        h->max = value;
    h->n += count;
    h->sum += (double)value * (double)count;
    h->buckets[bucket_of(value)] += count;
}

void gx_histogram_merge(gx_histogram *into, const gx_histogram *from)
{
    if (!from->n)
        return;
    if (!into->n || from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
    into->n += from->n;
    into->sum += from->sum;
    for (uint32_t i = 0; i < GX_HISTOGRAM_BUCKETS; ++i)
        into->buckets[i] += from->buckets[i];
}

uint64_t gx_histogram_quantile(const gx_histogram *h, double p)
{
    if (!h->n)
        return 0;
    double rank = ceil(p * (double)h->n);
    if (rank < 1)
        rank = 1;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < GX_HISTOGRAM_BUCKETS; ++i) {
        seen += h->buckets[i];
        if ((double)seen >= rank) {
            const uint64_t value = greatest_in(i);
            return value > h->max ? h->max : value;
        }
    }
    return h->max;
}

double gx_histogram_mean(const gx_histogram *h)
{
    return h->n ? h->sum / (double)h->n : 0;
}
