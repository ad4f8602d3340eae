#include "index/attribute_order.h"

#include <stdlib.h>
#include <string.h>

#define RADIX_BITS 16u

/* The greatest number of raw values that have starts, or 0: the column is sorted by radix instead. */
static uint64_t count_starts(const gx_column *c)
{
    if (gx_is_keyword(c->type))
        return c->n_strings;
    return c->width <= 2 ? UINT64_C(1) << 8 * c->width : 0;
}

/* Bits that are ordered as the values are. */
static uint64_t sort_key(const gx_column *c, uint64_t raw)
{
    const uint64_t sign = UINT64_C(1) << 63;
    return c->type != GX_ATTRIBUTE_FLOAT ? raw : raw & sign ? ~raw : raw | sign;
}

/* Counting sort; an ordinal without a string, which a damaged file can have, is left out. */
static gx_column_order *order_by_count(const gx_column *c, uint32_t n_docs, uint64_t n_starts)
{
    gx_column_order *o = calloc(1, sizeof *o + (size_t)c->n_values * sizeof o->docids[0]);
    uint32_t *at = o ? o->starts = calloc((size_t)n_starts + 2, sizeof *o->starts) : NULL;
    if (!at) {
        free(o);
        return NULL;
    }
    o->n_starts = n_starts;
    /* at[v + 1] counts value v, then is where its next document goes, and in the end its end */
    for (int pass = 0; pass < 2; ++pass) {
        for (uint32_t d = 0; d < n_docs; ++d) {
            const uint64_t first = c->starts ? c->starts[d] : d, last = c->starts ? c->starts[d + 1] : first + 1;
            for (uint64_t i = first; i < last && gx_column_has(c, d); ++i) {
                const uint64_t v = gx_column_raw(c, i);
                if (v < n_starts && pass == 0)
                    ++at[v + 1];
                else if (v < n_starts)
                    o->docids[at[v + 1]++] = d;
            }
        }
        uint32_t sum = 0;
        for (uint64_t v = 0; pass == 0 && v < n_starts; ++v) {
            const uint32_t n = at[v + 1];
            at[v + 1] = sum;
            sum += n;
        }
    }
    o->n = o->starts[n_starts];
    return o;
}

/* One pass of a radix sort by the bits from `shift` on. false: all are equal there, `to` is not set. */
static bool radix_pass(const gx_column *c, const uint32_t *from, uint64_t n, uint32_t shift, uint32_t *counts,
                       uint32_t *to)
{
    const uint32_t mask = (1u << RADIX_BITS) - 1;
    memset(counts, 0, (mask + 1) * sizeof *counts);
    for (uint64_t i = 0; i < n; ++i)
        ++counts[sort_key(c, gx_column_raw(c, from[i])) >> shift & mask];
    if (n == 0 || counts[sort_key(c, gx_column_raw(c, from[0])) >> shift & mask] == n)
        return false;
    uint32_t sum = 0;
    for (uint32_t v = 0; v <= mask; ++v) {
        const uint32_t m = counts[v];
        counts[v] = sum;
        sum += m;
    }
    for (uint64_t i = 0; i < n; ++i)
        to[counts[sort_key(c, gx_column_raw(c, from[i])) >> shift & mask]++] = from[i];
    return true;
}

/* Radix sort of the documents that have a value, of which each has one. */
static gx_column_order *order_by_radix(const gx_column *c, uint32_t n_docs)
{
    gx_column_order *o = calloc(1, sizeof *o + (size_t)n_docs * sizeof o->docids[0]);
    uint32_t *other = malloc(((size_t)n_docs + 1) * sizeof *other);
    uint32_t *counts = malloc(((size_t)1 << RADIX_BITS) * sizeof *counts);
    const bool ok = o && other && counts;
    for (uint32_t d = 0; ok && d < n_docs; ++d) {
        if (gx_column_has(c, d))
            o->docids[o->n++] = d;
    }
    for (uint32_t shift = 0; ok && shift < 8u * c->width; shift += RADIX_BITS) {
        if (radix_pass(c, o->docids, o->n, shift, counts, other))
            memcpy(o->docids, other, (size_t)o->n * sizeof *other);
    }
    free(other);
    free(counts);
    if (!ok) {
        free(o);
        o = NULL;
    }
    return o;
}

static void free_order(gx_column_order *o)
{
    if (o)
        free(o->starts);
    free(o);
}

const gx_column_order *gx_column_get_order(const gx_index *ix, gx_column *c)
{
    gx_column_order *first = __atomic_load_n(&c->order, __ATOMIC_ACQUIRE);
    if (first)
        return first;
    const uint64_t n_starts = count_starts(c);
    gx_column_order *o =
        n_starts || gx_is_keyword(c->type) ? order_by_count(c, ix->n_docs, n_starts) : order_by_radix(c, ix->n_docs);
    if (!o || __atomic_compare_exchange_n(&c->order, &first, o, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return o;
    free_order(o); /* another thread was sooner */
    return first;
}

void gx_column_free_order(gx_column *c)
{
    free_order(c->order);
    c->order = NULL;
}

/* The first place whose value is at least `key`. */
static uint64_t lower_bound(const gx_column *c, const gx_column_order *o, uint64_t key)
{
    uint64_t low = 0, high = o->n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (sort_key(c, gx_column_raw(c, o->docids[middle])) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void gx_column_order_range(const gx_column *c, const gx_column_order *o, uint64_t low, uint64_t high, uint64_t *begin,
                           uint64_t *end)
{
    if (o->starts) {
        const uint64_t last = high < o->n_starts ? high + 1 : o->n_starts;
        *begin = low < o->n_starts ? o->starts[low] : o->n;
        *end = o->starts[last];
    } else {
        const uint64_t key = sort_key(c, high);
        *begin = lower_bound(c, o, sort_key(c, low));
        *end = key == UINT64_MAX ? o->n : lower_bound(c, o, key + 1);
    }
    *end = *end < *begin ? *begin : *end;
}
