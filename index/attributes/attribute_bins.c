#include "index/attributes/attribute_bins.h"
#include "engine/lower_bound.h"

#include <stdlib.h>

/* The start of a value that is next to place p. */
static uint64_t nearest_start(const gx_column_order *o, uint64_t p)
{
    GX_FIRST(uint64_t, i, 0, o->n_starts, o->starts[i] > p);
    const uint64_t behind = i < o->n_starts ? o->starts[i] : o->n, before = i ? o->starts[i - 1] : 0;
    return behind - p < p - before ? behind : before;
}

static gx_column_bins *make_bins(const gx_column *c, const gx_column_order *o)
{
    gx_column_bins *bins = calloc(1, sizeof *bins);
    if (!bins)
        return NULL;
    for (uint32_t i = 1; i <= GX_BINS; ++i) {
        const uint64_t even = o->n / GX_BINS * i + o->n % GX_BINS * i / GX_BINS;
        const uint64_t place = i == GX_BINS ? o->n : o->starts ? nearest_start(o, even) : even;
        if (place > bins->places[bins->n] || c->starts)
            bins->places[++bins->n] = place;
    }
    return bins;
}

const gx_column_bins *gx_column_get_bins(const gx_index *ix, gx_column *c)
{
    const gx_column_order *o = gx_column_get_order(ix, c);
    if (!o)
        return NULL;
    gx_column_bins *made = __atomic_load_n(&c->order->bins, __ATOMIC_ACQUIRE);
    return made ? made : gx_column_keep_made((void **)&c->order->bins, make_bins(c, o));
}

/* The bins [*first, *end) of a bitmap. */
static void bins_of_bits(const gx_column *c, uint32_t at, uint32_t *first, uint32_t *end)
{
    *first = 0;
    *end = at;
    if (c->starts) {
        const uint32_t level = 31 - (uint32_t)__builtin_clz(at), shift = GX_BINS_SHIFT - level;
        *first = (at - (1u << level)) << shift;
        *end = *first + (1u << shift);
    }
}

const uint32_t *gx_column_get_bin_bits(const gx_index *ix, gx_column *c, const gx_column_bins *bins, uint32_t at)
{
    uint32_t **const bits = &c->order->bins->bits[at];
    uint32_t *words = __atomic_load_n(bits, __ATOMIC_ACQUIRE), first, end;
    if (words)
        return words;
    bins_of_bits(c, at, &first, &end);
    words = calloc((size_t)ix->n_docs / 32 + 1 + GX_BITS_SLACK, sizeof *words);
    for (uint64_t i = bins->places[first]; words && i < bins->places[end]; ++i)
        words[c->order->docids[i] / 32] |= UINT32_C(1) << c->order->docids[i] % 32;
    return gx_column_keep_made((void **)bits, words);
}

void gx_bins_of(const gx_column_bins *bins, uint64_t begin, uint64_t end, bool inner, uint32_t *first, uint32_t *stop)
{
    uint32_t i = 0, j = bins->n;
    while (i < bins->n && (inner ? bins->places[i] < begin : bins->places[i + 1] <= begin))
        ++i;
    while (j > i && (inner ? bins->places[j] > end : bins->places[j - 1] >= end))
        --j;
    *first = i;
    *stop = j;
}

void gx_column_bins_free(gx_column_bins *bins)
{
    for (uint32_t i = 0; bins && i < 2 * GX_BINS; ++i)
        free(bins->bits[i]);
    free(bins);
}
