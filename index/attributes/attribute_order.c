#include "index/attributes/attribute_order.h"

#include <stdlib.h>
#include <string.h>

#include "engine/lower_bound.h"
#include "index/attributes/attribute_bins.h"
#include "index/attributes/attribute_rows.h"
#include "index/attributes/attribute_sets.h"

#define RADIX_BITS 16u
#define SLACK 16u /* docids behind the last that may be read */

/* The greatest number of raw values that have starts, or 0: the column is sorted by radix instead. */
static uint64_t count_starts(const gx_column *c)
{
    if (gx_is_keyword(c->type))
        return c->n_strings;
    return c->width <= 2 ? UINT64_C(1) << 8 * c->width : 0;
}

/* Counting sort; an ordinal without a string, which a damaged file can have, is left out. */
static gx_column_order *order_by_count(const gx_column *c, uint32_t n_docs, uint64_t n_starts)
{
    gx_column_order *o = calloc(1, sizeof *o + ((size_t)c->n_values + SLACK) * sizeof o->docids[0]);
    uint32_t *at = o ? o->starts = calloc((size_t)n_starts + 2, sizeof *o->starts) : NULL;
    if (!at) {
        free(o);
        return NULL;
    }
    o->n_starts = n_starts;
    /* at[v + 1] counts value v, then is where its next document goes, and in the end its end */
    for (int pass = 0; pass < 2; ++pass) {
        for (uint32_t d = 0; d < n_docs; ++d) {
            const gx_value_span values = gx_column_values(c, d);
            for (uint64_t i = values.begin; i < values.end && gx_column_has(c, d); ++i) {
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
        ++counts[gx_sort_key(c->type, gx_column_raw(c, from[i])) >> shift & mask];
    if (n == 0 || counts[gx_sort_key(c->type, gx_column_raw(c, from[0])) >> shift & mask] == n)
        return false;
    uint32_t sum = 0;
    for (uint32_t v = 0; v <= mask; ++v) {
        const uint32_t m = counts[v];
        counts[v] = sum;
        sum += m;
    }
    for (uint64_t i = 0; i < n; ++i)
        to[counts[gx_sort_key(c->type, gx_column_raw(c, from[i])) >> shift & mask]++] = from[i];
    return true;
}

/* The places become docids; the places are kept. documents: [n_values] scratch. */
static void find_documents(gx_column_order *o, const gx_column *c, uint32_t n_docs, uint32_t *documents)
{
    for (uint32_t d = 0; d < n_docs; ++d)
        for (uint32_t v = c->starts[d]; v < c->starts[d + 1]; ++v)
            documents[v] = d;
    for (uint64_t i = 0; i < o->n; ++i) {
        o->places[i] = o->docids[i];
        o->docids[i] = documents[o->places[i]];
    }
}

/* The sort key of the value at a place of the order. */
static uint64_t key_at(const gx_column *c, const gx_column_order *o, uint64_t place)
{
    return gx_sort_key(c->type, gx_column_raw(c, o->places ? o->places[place] : o->docids[place]));
}

static bool add_samples(gx_column_order *o, const gx_column *c)
{
    const uint64_t n = (o->n + GX_SAMPLE_PLACES - 1) / GX_SAMPLE_PLACES;
    o->samples = malloc(((size_t)n + 1) * sizeof *o->samples);
    for (uint64_t i = 0; o->samples && i < n; ++i)
        o->samples[i] = key_at(c, o, i * GX_SAMPLE_PLACES);
    return o->samples != NULL;
}

/* Radix sort of the places of values: they are docids where a document has one value. */
static gx_column_order *order_by_radix(const gx_column *c, uint32_t n_docs)
{
    gx_column_order *o = calloc(1, sizeof *o + ((size_t)c->n_values + SLACK) * sizeof o->docids[0]);
    uint32_t *other = malloc(((size_t)c->n_values + 1) * sizeof *other);
    uint32_t *counts = malloc(((size_t)1 << RADIX_BITS) * sizeof *counts);
    uint32_t *places = c->starts ? malloc(((size_t)c->n_values + 1) * sizeof *places) : NULL;
    const bool ok = o && other && counts && (places || !c->starts);
    for (uint64_t i = 0; ok && i < c->n_values; ++i) {
        if (c->starts || gx_column_has(c, (uint32_t)i))
            o->docids[o->n++] = (uint32_t)i;
    }
    for (uint32_t shift = 0; ok && shift < 8u * c->width; shift += RADIX_BITS) {
        if (radix_pass(c, o->docids, o->n, shift, counts, other))
            memcpy(o->docids, other, (size_t)o->n * sizeof *other);
    }
    if (ok && places) {
        o->places = places;
        find_documents(o, c, n_docs, other);
    }
    free(other);
    free(counts);
    if (ok && add_samples(o, c))
        return o;
    free(places);
    free(o);
    return NULL;
}

static gx_zone make_zone(const gx_column *c, uint32_t begin, uint32_t end)
{
    gx_zone z = {.least = UINT64_MAX, .most = 0};
    for (uint32_t d = begin; d < end; ++d) {
        if (!gx_column_has(c, d))
            continue;
        const uint64_t raw = gx_column_raw(c, d);
        z.least = raw < z.least ? raw : z.least;
        z.most = raw > z.most ? raw : z.most;
    }
    return z;
}

/* Make the zones, if they are narrow: an eighth of the range of all values, on average. Without memory
 * there are none. */
static void add_zones(gx_column_order *o, const gx_column *c, uint32_t n_docs)
{
    const uint32_t n = (uint32_t)(((uint64_t)n_docs + GX_ZONE_DOCS - 1) / GX_ZONE_DOCS);
    uint64_t least = UINT64_MAX, most = 0;
    double sum = 0;
    if (c->starts || c->type == GX_ATTRIBUTE_FLOAT || !(o->zones = malloc(((size_t)n + 1) * sizeof *o->zones)))
        return;
    for (uint32_t z = 0; z < n; ++z) {
        const uint32_t begin = z * GX_ZONE_DOCS, left = n_docs - begin;
        gx_zone *zone = &o->zones[z];
        *zone = make_zone(c, begin, begin + (left < GX_ZONE_DOCS ? left : GX_ZONE_DOCS));
        most = zone->most > most ? zone->most : most;
        zone->most_before = most;
        sum += zone->least <= zone->most ? (double)(zone->most - zone->least) : 0;
    }
    for (uint32_t z = n; z--; o->zones[z].least_behind = least)
        least = o->zones[z].least < least ? o->zones[z].least : least;
    if (least >= most || sum > (double)(most - least) * n / 8) {
        free(o->zones);
        o->zones = NULL;
    }
}

static void free_order(gx_column_order *o)
{
    if (o) {
        for (uint64_t i = 0; o->documents && i < o->n_starts; ++i)
            free(o->documents[i]);
        free(o->documents);
        free(o->starts);
        free(o->places);
        free(o->zones);
        free(o->samples);
        free(o->codes);
        gx_column_bins_free(o->bins);
        gx_column_sets_free(o->sets);
    }
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
    if (o)
        add_zones(o, c, ix->n_docs);
    if (!o || __atomic_compare_exchange_n(&c->order, &first, o, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return o;
    free_order(o); /* another thread was sooner */
    return first;
}

void *gx_column_keep_made(void **at, void *made)
{
    void *first = NULL;
    if (!made || __atomic_compare_exchange_n(at, &first, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    free(made);
    return first;
}

void gx_column_free_order(gx_column *c)
{
    free_order(c->order);
    gx_attribute_rows_free(c->rows);
    c->order = NULL;
    c->rows = NULL;
}

/* The first place whose value is at least `key` is in [*least, *most]: by the samples. */
static void bracket(const gx_column_order *o, uint64_t key, uint64_t *least, uint64_t *most)
{
    GX_FIRST(uint64_t, i, 0, (o->n + GX_SAMPLE_PLACES - 1) / GX_SAMPLE_PLACES, o->samples[i] >= key);
    *most = i * GX_SAMPLE_PLACES < o->n ? i * GX_SAMPLE_PLACES : o->n;
    *least = i ? (i - 1) * GX_SAMPLE_PLACES + 1 : 0;
}

/* The first place whose value is at least `key`: among the samples, then between two of them. */
static uint64_t lower_bound(const gx_column *c, const gx_column_order *o, uint64_t key)
{
    uint64_t low, high;
    bracket(o, key, &low, &high);
    GX_FIRST(uint64_t, place, low, high, key_at(c, o, place) >= key);
    return place;
}

void gx_column_order_range(const gx_column *c, const gx_column_order *o, uint64_t low, uint64_t high, uint64_t *begin,
                           uint64_t *end)
{
    if (o->starts) {
        const uint64_t last = high < o->n_starts ? high + 1 : o->n_starts;
        *begin = low < o->n_starts ? o->starts[low] : o->n;
        *end = o->starts[last];
    } else {
        const uint64_t key = gx_sort_key(c->type, high);
        *begin = lower_bound(c, o, gx_sort_key(c->type, low));
        *end = key == UINT64_MAX ? o->n : lower_bound(c, o, key + 1);
    }
    *end = *end < *begin ? *begin : *end;
}

gx_place_bounds gx_column_order_bracket(const gx_column *c, const gx_column_order *o, uint64_t low, uint64_t high)
{
    gx_place_bounds b;
    if (o->starts) {
        gx_column_order_range(c, o, low, high, &b.begin_least, &b.end_least);
        b.begin_most = b.begin_least;
        b.end_most = b.end_least;
        return b;
    }
    const uint64_t key = gx_sort_key(c->type, high);
    bracket(o, gx_sort_key(c->type, low), &b.begin_least, &b.begin_most);
    if (key == UINT64_MAX)
        b.end_least = b.end_most = o->n;
    else
        bracket(o, key + 1, &b.end_least, &b.end_most);
    return b;
}

/* The first zone that has, or has before it, a value of at least `low`; n: none. */
static uint32_t first_zone(const gx_zone *zones, uint32_t n, uint64_t low)
{
    GX_FIRST(uint32_t, i, 0, n, zones[i].most_before >= low);
    return i;
}

/* The end of the zones that have, or have behind them, a value of at most `high`; 0: none. */
static uint32_t end_zone(const gx_zone *zones, uint32_t n, uint64_t high)
{
    GX_FIRST(uint32_t, i, 0, n, zones[i].least_behind > high);
    return i;
}

static bool meets(const gx_zone *z, uint64_t low, uint64_t high)
{
    return z->least <= high && z->most >= low;
}

void gx_column_order_bound(const gx_column_order *o, uint32_t n_docs, uint64_t low, uint64_t high, uint32_t *first,
                           uint32_t *end)
{
    const uint32_t n_zones = (uint32_t)(((uint64_t)n_docs + GX_ZONE_DOCS - 1) / GX_ZONE_DOCS);
    *first = 0;
    *end = n_docs;
    if (!o->zones)
        return;
    uint32_t begin = first_zone(o->zones, n_zones, low), n = end_zone(o->zones, n_zones, high);
    while (begin < n && !meets(&o->zones[begin], low, high))
        ++begin;
    while (n > begin && !meets(&o->zones[n - 1], low, high))
        --n;
    *first = begin < n ? begin * GX_ZONE_DOCS : 0;
    *end = begin >= n ? 0 : n_docs / GX_ZONE_DOCS < n ? n_docs : n * GX_ZONE_DOCS;
}

/* The first zone from which on all values are at least `low`; n: none. */
static uint32_t first_zone_inside(const gx_zone *zones, uint32_t n, uint64_t low)
{
    GX_FIRST(uint32_t, i, 0, n, zones[i].least_behind >= low);
    return i;
}

/* The end of the zones up to which all values are at most `high`; 0: none. */
static uint32_t end_zone_inside(const gx_zone *zones, uint32_t n, uint64_t high)
{
    GX_FIRST(uint32_t, i, 0, n, zones[i].most_before > high);
    return i;
}

void gx_column_order_inside(const gx_column_order *o, uint32_t n_docs, uint64_t low, uint64_t high, uint32_t *first,
                            uint32_t *end)
{
    const uint32_t n_zones = (uint32_t)(((uint64_t)n_docs + GX_ZONE_DOCS - 1) / GX_ZONE_DOCS);
    const uint32_t begin = o->zones ? first_zone_inside(o->zones, n_zones, low) : 0,
                   stop = o->zones ? end_zone_inside(o->zones, n_zones, high) : 0;
    *first = begin < stop ? begin * GX_ZONE_DOCS : 0;
    *end = begin >= stop ? 0 : n_docs / GX_ZONE_DOCS < stop ? n_docs : stop * GX_ZONE_DOCS;
}
