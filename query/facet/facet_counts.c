#include "query/facet/facet_counts.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/lower_bound.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "engine/text/c_locale.h"
#include "query/filter/filter_kernels.h"

#define SIGN GX_KEY_SIGN
#define MAX_SECOND INT64_C(300000000000) /* behind year 9999 */

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to count a facet");
}

static size_t n_words_of(const gx_index *ix)
{
    return ((size_t)ix->n_docs + 63) / 64;
}

/* A loop over the documents d of a set. */
#define EACH_DOCUMENT(ix, words, d)                                                                                    \
    for (size_t w_ = 0; w_ < n_words_of(ix); ++w_)                                                                     \
        for (uint64_t left_ = (words)[w_], d = 0; left_ && (d = 64 * w_ + (uint64_t)__builtin_ctzll(left_), true);     \
             left_ &= left_ - 1)

/* ---- groups of whole numbers ---- */

/* A group: its key, and the values from first to last. */
typedef struct group {
    uint64_t key;
    int64_t first, last;
} group;

static group group_of_time(gx_facet_grouping by, int64_t second)
{
    if (second < -MAX_SECOND || second > MAX_SECOND) /* of a damaged file */
        return (group){(uint64_t)second ^ SIGN, second, second};
    const int64_t days = second / 86400 - (second % 86400 < 0);
    const gx_day d = gx_day_of(days);
    int64_t from = days, to = days + 1;
    if (by == GX_FACET_YEARS) {
        from = gx_days_to(d.year, 1, 1);
        to = gx_days_to(d.year + 1, 1, 1);
    } else if (by == GX_FACET_MONTHS) {
        from = gx_days_to(d.year, d.month, 1);
        to = gx_days_to(d.year + d.month / 12, d.month % 12 + 1, 1);
    }
    return (group){(uint64_t)(86400 * from) ^ SIGN, 86400 * from, 86400 * to - 1};
}

/* Ranges of `width` values, one of which begins at 0. The outermost are cut where 64 bits end. */
static group group_of_width(int64_t width, int64_t x)
{
    int64_t from, last;
    const int64_t left = x % width, over = left < 0 ? left + width : left;
    if (__builtin_sub_overflow(x, over, &from))
        from = INT64_MIN;
    if (__builtin_add_overflow(x, width - 1 - over, &last))
        last = INT64_MAX;
    return (group){(uint64_t)from ^ SIGN, from, last};
}

typedef unsigned __int128 wide;

/* The values of bin `bin`, of `bins` that divide [least, least + n). */
static group bin_at(int64_t least, wide n, uint64_t bins, uint64_t bin)
{
    const uint64_t from = (uint64_t)((bin * n + bins - 1) / bins), to = (uint64_t)(((bin + 1) * n + bins - 1) / bins);
    return (group){bin, (int64_t)((uint64_t)least + from), (int64_t)((uint64_t)least + to - 1)};
}

static wide span_of(const gx_facet_count *f)
{
    return (wide)((uint64_t)f->greatest - (uint64_t)f->least) + 1;
}

static uint64_t bins_of_span(const gx_facet_count *f)
{
    const wide n = span_of(f);
    return n < f->facet.bins ? (uint64_t)n : f->facet.bins;
}

/* ---- ranges of as many values ---- */

/* The last range that does not begin above the key. */
static uint32_t quantile_of(const gx_facet_count *f, uint64_t key)
{
    uint32_t low = 0, high = f->n_cuts ? f->n_cuts - 1 : 0;
    while (low < high) {
        const uint32_t middle = high - (high - low) / 2;
        if (f->cuts[2 * middle] <= key)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

gx_status gx_facet_count_gather(gx_facet_count *f, const gx_index *ix, uint32_t column, const uint64_t *words,
                                gx_error *err)
{
    const gx_column *c = &ix->columns[column];
    EACH_DOCUMENT(ix, words, d)
    {
        const gx_value_span span = gx_column_values(c, (uint32_t)d);
        if (!gx_column_has(c, (uint32_t)d))
            continue;
        if (!gx_reserve(&f->values.keys, &f->values.max, f->values.n + (span.end - span.begin), sizeof(uint64_t)))
            return no_memory(err);
        for (uint64_t v = span.begin; v < span.end; ++v)
            f->values.keys[f->values.n++] = gx_value_key(c, gx_column_raw(c, v));
    }
    return GX_OK;
}

gx_status gx_facet_count_cut(gx_facet_count *f, gx_error *err)
{
    const uint64_t n = f->values.n, bins = f->facet.bins;
    const uint64_t *const keys = f->values.keys;
    uint64_t *scratch = malloc((n + 1) * sizeof *scratch);
    f->cuts = malloc((2 * bins + 1) * sizeof *f->cuts);
    if (!scratch || !f->cuts) {
        free(scratch);
        return no_memory(err);
    }
    gx_sort_keys(f->values.keys, scratch, n);
    free(scratch);
    for (uint64_t i = 0; i < bins && n; ++i) {
        uint64_t at = (i * n + bins - 1) / bins;
        if (at >= n || (f->n_cuts && f->cuts[2 * (f->n_cuts - 1)] == keys[at]))
            continue;
        f->cuts[2 * f->n_cuts] = keys[at];
        while (f->n_cuts && keys[at - 1] == keys[at])
            --at;
        if (f->n_cuts)
            f->cuts[2 * f->n_cuts - 1] = keys[at - 1];
        ++f->n_cuts;
    }
    if (n)
        f->cuts[2 * f->n_cuts - 1] = keys[n - 1];
    free(f->values.keys);
    f->values = (gx_keys){0};
    return GX_OK;
}

static group group_of_int(const gx_facet_count *f, int64_t x)
{
    const uint64_t bins = f->facet.grouping == GX_FACET_BINS ? bins_of_span(f) : 0;
    switch (f->facet.grouping) {
    case GX_FACET_YEARS:
    case GX_FACET_MONTHS:
    case GX_FACET_DAYS:
        return group_of_time(f->facet.grouping, x);
    case GX_FACET_WIDTH:
        return group_of_width((int64_t)f->facet.width, x);
    case GX_FACET_BINS:
        return bin_at(f->least, span_of(f), bins,
                      (uint64_t)((wide)((uint64_t)x - (uint64_t)f->least) * bins / span_of(f)));
    case GX_FACET_QUANTILES: {
        const uint32_t i = quantile_of(f, (uint64_t)x ^ SIGN);
        return (group){i, gx_key_number(f->cuts[2 * i]), gx_key_number(f->cuts[2 * i + 1])};
    }
    default:
        return (group){(uint64_t)x ^ SIGN, x, x};
    }
}

/* ---- groups of floats ---- */

static uint64_t key_of_float(double x)
{
    uint64_t bits;
    x += 0; /* -0 is 0 */
    memcpy(&bits, &x, sizeof bits);
    return gx_sort_key(GX_ATTRIBUTE_FLOAT, bits);
}

#define MOST_RANGES 0x1p52 /* up to this number of a range, neighbouring edges are different doubles */

/* The number of 15 decimal digits nearest to an edge, where that is next to it beside the width of a bin: 552.8925, and
 * not 552.8924999999999, which roundings have made of it. */
static double tidy(double edge, long double width)
{
    char text[32];
    gx_print(text, sizeof text, "%.15g", edge);
    const double near = gx_strtod(text, NULL);
    return fabsl((long double)near - edge) < width / 1e6L ? near : edge;
}

/* The lower edge of range n; it is no double where it lies below all of them. Where x is far from it, it is not tidied,
 * which would take most of the time and tell nothing. */
static double edge_of(double width, double n, double x)
{
    const double edge = fmax(n * width, -DBL_MAX);
    return fabs(edge - x) > width / 1e5 || fabs(edge) > DBL_MAX ? edge : tidy(edge, width);
}

static double tidy_edge(double width, double n)
{
    return edge_of(width, n, n * width);
}

/* The number n of the range [n width, (n + 1) width) that x is in. false: it would be smaller than the distance of
 * neighbouring doubles, and x is a group alone. */
static bool find_range(double width, double x, double *n)
{
    double at = floor(x / width);
    if (!(fabs(at) <= MOST_RANGES + 1))
        return false;
    at -= x < edge_of(width, at, x); /* the quotient was rounded */
    at += x >= edge_of(width, at + 1, x);
    *n = at;
    return fabs(at) <= MOST_RANGES && edge_of(width, at, x) <= x && x < edge_of(width, at + 1, x);
}

/* What stands for range n: its lower edge as it is computed. */
static double mark_of(double width, double n)
{
    return fmax(n * width, -DBL_MAX);
}

/* The same of the range that x is in, or x. */
static double mark_of_value(double width, double x)
{
    double n;
    return find_range(width, x, &n) ? mark_of(width, n) : x;
}

static gx_group_range range_of_mark(double width, double mark)
{
    double n = nearbyint(mark / width) + 1;
    gx_group_range r = {.low = mark, .high = mark};
    for (int i = 0; i < 2 && mark_of(width, n) != mark; ++i) /* the quotient is rounded, and the mark may be cut */
        --n;
    if (!(fabs(n) <= MOST_RANGES) || mark_of(width, n) != mark)
        return r;
    const double high = tidy_edge(width, n + 1);
    r.low = tidy_edge(width, n);
    r.high = fmin(high, DBL_MAX);
    r.open = isfinite(high);
    return r;
}

/* The number of edges, the first left out, that are not above x; the last bin has its upper edge. */
static uint32_t bin_of_float(const gx_facet_count *f, double x)
{
    GX_FIRST(uint32_t, bin, 0, f->edges ? f->facet.bins - 1 : 0, f->edges[bin + 1] > x);
    return bin;
}

static uint64_t key_of_double(const gx_facet_count *f, double x)
{
    if (f->facet.grouping == GX_FACET_BINS)
        return bin_of_float(f, x);
    if (f->facet.grouping == GX_FACET_QUANTILES)
        return quantile_of(f, key_of_float(x));
    return key_of_float(f->facet.grouping == GX_FACET_WIDTH ? mark_of_value(f->facet.width, x) : x);
}

static bool make_edges(gx_facet_count *f)
{
    const uint32_t bins = f->facet.bins;
    const long double low = f->least_float, range = f->greatest_float - low;
    if (f->type != GX_ATTRIBUTE_FLOAT || f->edges || !(f->least_float < f->greatest_float))
        return true;
    if (!(f->edges = malloc((bins + 1ull) * sizeof *f->edges)))
        return false;
    for (uint32_t i = 0; i <= bins; ++i)
        f->edges[i] = i == 0      ? f->least_float
                      : i == bins ? f->greatest_float
                                  : tidy((double)(low + range * i / bins), range / bins);
    return true;
}

/* ---- what a key means ---- */

static double as_double(uint64_t raw)
{
    double x;
    memcpy(&x, &raw, sizeof x);
    return x;
}

static gx_group_range stored_bin(const gx_facet_count *f, uint32_t bin)
{
    const gx_column *c = f->bins_column;
    const uint64_t least = gx_bitmaps_least(c, bin), greatest = gx_bitmaps_greatest(c, bin);
    gx_group_range r = {0};
    if (f->type == GX_ATTRIBUTE_FLOAT) {
        r.low = as_double(least);
        r.high = as_double(greatest);
    } else {
        r.first = (int64_t)((uint64_t)c->base + least);
        r.last = (int64_t)((uint64_t)c->base + greatest);
    }
    return r;
}

gx_group_range gx_facet_group_of(const gx_facet_count *f, uint64_t key)
{
    const bool bins = f->facet.grouping == GX_FACET_BINS;
    gx_group_range r = {0};
    if (f->facet.grouping == GX_FACET_STORED)
        return stored_bin(f, (uint32_t)key);
    if (f->facet.grouping == GX_FACET_QUANTILES && f->type != GX_ATTRIBUTE_FLOAT) {
        r.first = gx_key_number(f->cuts[2 * key]);
        r.last = gx_key_number(f->cuts[2 * key + 1]);
    } else if (f->type != GX_ATTRIBUTE_FLOAT) {
        const group g =
            bins ? bin_at(f->least, span_of(f), bins_of_span(f), key) : group_of_int(f, (int64_t)(key ^ SIGN));
        r.first = g.first;
        r.last = g.last;
    } else if (bins) {
        r.low = f->edges ? f->edges[key] : f->least_float;
        r.high = f->edges ? f->edges[key + 1] : f->least_float;
        r.open = f->edges && key + 1 < f->facet.bins;
    } else if (f->facet.grouping == GX_FACET_QUANTILES) {
        r.low = gx_key_float(f->cuts[2 * key]);
        r.high = gx_key_float(f->cuts[2 * key + 1]);
    } else {
        r.low = r.high = gx_key_float(key);
        if (f->facet.grouping == GX_FACET_WIDTH)
            r = range_of_mark(f->facet.width, r.low);
    }
    return r;
}

/* ---- by documents ---- */

/* The documents of the set that have a value: in scratch, or the set itself where all have one, or where
 * the column has starts. */
static const uint64_t *drop_missing(const gx_index *ix, const gx_column *c, const uint64_t *words, uint64_t *scratch)
{
    if (!c->present)
        return words;
    for (size_t w = 0; w < n_words_of(ix); ++w)
        scratch[w] = words[w] & c->present[w];
    return scratch;
}

#define WORDS_AT_ONCE 16u

#define COUNT(NAME, TYPE)                                                                                              \
    static void count_##NAME(const gx_index *ix, const gx_column *c, const uint64_t *words, uint64_t n,                \
                             uint32_t *counts)                                                                         \
    {                                                                                                                  \
        const TYPE *const values = c->values;                                                                          \
        const gx_filter_kernels *kernels = gx_filter_kernels_best();                                                   \
        uint32_t docs[64 * WORDS_AT_ONCE + 16];                                                                        \
        for (size_t w = 0; w < n_words_of(ix); w += WORDS_AT_ONCE) {                                                   \
            const size_t left = n_words_of(ix) - w;                                                                    \
            const uint32_t m = kernels->list(words + w, (uint32_t)(left < WORDS_AT_ONCE ? left : WORDS_AT_ONCE),       \
                                             (uint32_t)(64 * w), docs);                                                \
            for (uint32_t i = 0; i < m; ++i)                                                                           \
                if (values[docs[i]] < n)                                                                               \
                    ++counts[values[docs[i]]];                                                                         \
        }                                                                                                              \
    }
COUNT(u8, uint8_t)
COUNT(u16, uint16_t)
COUNT(u32, uint32_t)

/* counts[raw] becomes the number of the set's documents that have the value raw, below n. */
static void count_raw(const gx_index *ix, const gx_column *c, const uint64_t *words, uint64_t n, uint32_t *counts)
{
    (c->width == 1 ? count_u8 : c->width == 2 ? count_u16 : count_u32)(ix, c, words, n, counts);
}

#define COUNT_SEVERAL(NAME, TYPE)                                                                                      \
    static uint64_t count_several_##NAME(const gx_index *ix, const gx_column *c, const uint64_t *words, uint64_t n,    \
                                         uint32_t *counts)                                                             \
    {                                                                                                                  \
        const TYPE *const values = c->values;                                                                          \
        const uint32_t *const starts = c->starts;                                                                      \
        uint64_t n_present = 0;                                                                                        \
        EACH_DOCUMENT(ix, words, d)                                                                                    \
        {                                                                                                              \
            const uint32_t end = starts[d + 1];                                                                        \
            n_present += starts[d] < end;                                                                              \
            for (uint32_t v = starts[d]; v < end; ++v)                                                                 \
                if (values[v] < n)                                                                                     \
                    ++counts[values[v]];                                                                               \
        }                                                                                                              \
        return n_present;                                                                                              \
    }
COUNT_SEVERAL(u8, uint8_t)
COUNT_SEVERAL(u16, uint16_t)
COUNT_SEVERAL(u32, uint32_t)

/* The same of several values a document; returns the documents that have any. */
static uint64_t count_several(const gx_index *ix, const gx_column *c, const uint64_t *words, uint64_t n,
                              uint32_t *counts)
{
    return (c->width == 1   ? count_several_u8
            : c->width == 2 ? count_several_u16
                            : count_several_u32)(ix, c, words, n, counts);
}

/* Strings of a set that is small beside the dictionary. false: no memory. */
static bool count_few_strings(const gx_index *ix, const gx_column *c, const uint64_t *words, gx_count_table *t,
                              uint64_t *n_present)
{
    bool good = true;
    EACH_DOCUMENT(ix, words, d)
    {
        const gx_value_span span = gx_column_values(c, (uint32_t)d);
        *n_present += span.begin < span.end;
        for (uint64_t v = span.begin; v < span.end; ++v) {
            const uint64_t ordinal = gx_column_raw(c, v);
            good = good && (ordinal >= c->n_strings || gx_count_table_add(t, ordinal, 1));
        }
    }
    return good;
}

static bool push_string(gx_facet_count *f, const gx_index *ix, const gx_column *c, uint32_t ordinal, uint64_t count)
{
    gx_counted_string s = {.count = count, .ordinal = ordinal};
    if (!gx_reserve(&f->strings, &f->max_strings, f->n_strings + 1, sizeof *f->strings))
        return false;
    s.p = gx_column_string(ix, c, ordinal, &s.len);
    f->strings[f->n_strings++] = s;
    return true;
}

static bool add_few_strings(gx_facet_count *f, const gx_index *ix, const gx_column *c, const uint64_t *words)
{
    gx_count_table t = {0};
    bool good = count_few_strings(ix, c, words, &t, &f->n_present);
    gx_counted_group *sorted = good ? gx_count_table_sort(&t) : NULL;
    good = sorted != NULL;
    for (uint32_t i = 0; good && i < t.n; ++i)
        good = push_string(f, ix, c, (uint32_t)sorted[i].key, sorted[i].count);
    free(sorted);
    gx_count_table_free(&t);
    return good;
}

static bool add_strings(gx_facet_count *f, const gx_index *ix, const gx_column *c, const uint64_t *words, uint64_t n)
{
    if (n < c->n_strings / 8)
        return add_few_strings(f, ix, c, words);
    uint32_t *counts = calloc((size_t)c->n_strings + 1, sizeof *counts);
    if (!counts)
        return false;
    if (c->starts) {
        f->n_present += count_several(ix, c, words, c->n_strings, counts);
    } else {
        f->n_present += n;
        count_raw(ix, c, words, c->n_strings, counts);
    }
    bool good = true;
    for (uint32_t i = 0; i < c->n_strings && good; ++i)
        good = !counts[i] || push_string(f, ix, c, i, counts[i]);
    free(counts);
    return good;
}

/* The bin of a value as the column has it. */
static uint32_t stored_bin_of(const gx_column *c, uint64_t raw)
{
    uint32_t first = 0, last;
    return gx_bitmaps_find(c, raw, raw, &first, &last) ? first : 0; /* of a damaged file */
}

uint64_t gx_facet_key_of(const gx_facet_count *f, const gx_column *c, uint64_t raw)
{
    if (f->facet.grouping == GX_FACET_STORED)
        return stored_bin_of(c, raw);
    if (f->type == GX_ATTRIBUTE_FLOAT)
        return key_of_double(f, as_double(raw));
    return group_of_int(f, (int64_t)((uint64_t)c->base + raw)).key;
}

/* One more than the greatest value of 1 or 2 bytes, documents without a value included. */
static uint32_t bound_of(const gx_column *c)
{
    const uint16_t *const values = c->values;
    uint32_t bound = c->width == 1 ? 256 : __atomic_load_n(&c->bound, __ATOMIC_RELAXED);
    if (!bound) {
        for (uint64_t i = 0; i < c->n_values; ++i)
            bound = values[i] > bound ? values[i] : bound;
        __atomic_store_n((uint32_t *)&c->bound, ++bound, __ATOMIC_RELAXED);
    }
    return bound;
}

/* Numbers of 1 or 2 bytes: first a count of each, then the groups of those that occur. Of several values a
 * document, each is a group. */
static bool add_narrow(gx_facet_count *f, const gx_index *ix, const gx_column *c, const uint64_t *words)
{
    const uint32_t n = bound_of(c);
    uint32_t *counts = calloc(n, sizeof *counts);
    bool good = counts != NULL;
    if (good && c->starts)
        f->n_present += count_several(ix, c, words, n, counts);
    else if (good)
        count_raw(ix, c, words, n, counts);
    for (uint32_t raw = 0; raw < n && good; ++raw)
        good = !counts[raw] || gx_count_table_add(&f->table, gx_facet_key_of(f, c, raw), counts[raw]);
    free(counts);
    return good;
}

/* Wide whole numbers. Neighbouring documents often are of one group, of which the sum is kept. */
static bool add_wide(gx_facet_count *f, const gx_index *ix, const gx_column *c, const uint64_t *words)
{
    group last = {0, 1, 0};
    uint64_t n = 0;
    bool good = true;
    EACH_DOCUMENT(ix, words, d)
    {
        const int64_t x = (int64_t)((uint64_t)c->base + gx_column_raw(c, d));
        if (x < last.first || x > last.last) {
            good = gx_count_table_add(&f->table, last.key, n) && good;
            last = group_of_int(f, x);
            n = 0;
        }
        ++n;
    }
    return gx_count_table_add(&f->table, last.key, n) && good;
}

static bool add_one_by_one(gx_facet_count *f, const gx_index *ix, const gx_column *c, const uint64_t *words)
{
    bool good = true;
    EACH_DOCUMENT(ix, words, d)
    good = gx_count_table_add(&f->table, gx_facet_key_of(f, c, gx_column_raw(c, d)), 1) && good;
    return good;
}

/* Several values a document, which rise: the document counts once in each group that has any of them. */
static bool add_several(gx_facet_count *f, const gx_index *ix, const gx_column *c, const uint64_t *words)
{
    bool good = true;
    EACH_DOCUMENT(ix, words, d)
    {
        uint64_t before = 0;
        f->n_present += c->starts[d] < c->starts[d + 1];
        for (uint32_t v = c->starts[d]; v < c->starts[d + 1]; ++v) {
            const uint64_t key = gx_facet_key_of(f, c, gx_column_raw(c, v));
            if (v == c->starts[d] || key != before)
                good = gx_count_table_add(&f->table, key, 1) && good;
            before = key;
        }
    }
    return good;
}

static bool add_by_documents(gx_facet_count *f, const gx_index *ix, const gx_column *c, const uint64_t *words,
                             uint64_t n)
{
    if (gx_is_keyword(c->type))
        return add_strings(f, ix, c, words, n);
    const bool values = f->facet.grouping == GX_FACET_VALUES;
    if (c->starts && !(c->width <= 2 && values && bound_of(c) <= 8 * n + 256))
        return add_several(f, ix, c, words);
    f->n_present += c->starts ? 0 : n;
    if (c->width <= 2 && bound_of(c) <= 8 * n + 256) /* a count for each is smaller than the table */
        return add_narrow(f, ix, c, words);
    return (c->type == GX_ATTRIBUTE_FLOAT || f->facet.grouping == GX_FACET_STORED ? add_one_by_one : add_wide)(f, ix, c,
                                                                                                               words);
}

/* ---- by columns ---- */

/* Times in ns on one core of a server: to read a document's value and count it, of each further string
 * of it; of a word of 64 documents in a bitmap, and to count the bits before each word; of a number in a
 * list or of runs. */
#define DOCUMENT_TIME 1.4
#define STRING_TIME 3.2
#define WORD_TIME 0.4
#define RANK_TIME 0.7
#define NUMBER_TIME 1.6
#define PRESENT_TIME 0.5 /* of a document, whether it has any of several values */

bool gx_facet_bins_are_in_groups(const gx_facet *facet, const gx_column *c)
{
    const gx_bitmaps *b = &c->bitmaps;
    const gx_facet_count f = {.facet = *facet, .type = c->type};
    if (b->encoding == GX_BITMAPS_NONE || facet->grouping == GX_FACET_BINS || facet->grouping == GX_FACET_QUANTILES)
        return false;
    if (gx_is_keyword(c->type) || facet->grouping == GX_FACET_STORED)
        return true;
    for (uint32_t i = 0; i < b->n_bins; ++i) {
        const uint64_t key = gx_facet_key_of(&f, c, gx_bitmaps_least(c, i));
        if (key != gx_facet_key_of(&f, c, gx_bitmaps_greatest(c, i)))
            return false;
        /* a document of several values can be in several bins; it is to count once in a group */
        if (c->starts && i && key == gx_facet_key_of(&f, c, gx_bitmaps_greatest(c, i - 1)))
            return false;
    }
    return true;
}

static double time_by_columns(const gx_index *ix, const gx_column *c)
{
    double time = RANK_TIME * (double)n_words_of(ix);
    for (uint32_t i = 0; i < c->bitmaps.n_columns; ++i) {
        const gx_bitmap_entry e = c->bitmaps.directory[i];
        time +=
            gx_bitmap_form_of(e) == GX_BITMAP_WORDS ? WORD_TIME * (double)n_words_of(ix) : NUMBER_TIME * gx_bitmap_n(e);
    }
    return time;
}

static double time_by_documents(const gx_index *ix, const gx_column *c, uint64_t n)
{
    const double more = c->starts && ix->n_docs ? (double)c->n_values / ix->n_docs : 0;
    return (double)n * (DOCUMENT_TIME + more * STRING_TIME);
}

/* The set's documents below `end`. ranks[w]: those below 64 w. */
static uint64_t rank(const uint64_t *words, const uint32_t *ranks, uint32_t end)
{
    const uint64_t below = end % 64 ? words[end / 64] & ((UINT64_C(1) << end % 64) - 1) : 0;
    return ranks[end / 64] + (uint64_t)__builtin_popcountll(below);
}

static uint64_t count_list(const uint32_t *docids, uint32_t n, const gx_index *ix, const uint64_t *words)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; ++i)
        sum += docids[i] < ix->n_docs ? words[docids[i] / 64] >> docids[i] % 64 & 1 : 0;
    return sum;
}

static uint64_t count_runs(const uint32_t *borders, uint32_t n, const gx_index *ix, const uint64_t *words,
                           const uint32_t *ranks)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i + 1 < n; i += 2) {
        const uint32_t end = borders[i + 1] < ix->n_docs ? borders[i + 1] : ix->n_docs;
        if (borders[i] < end)
            sum += rank(words, ranks, end) - rank(words, ranks, borders[i]);
    }
    return sum;
}

/* The documents that a bitmap column and the set have in common. */
static uint64_t count_column(const gx_index *ix, const gx_bitmaps *b, uint32_t column, const uint64_t *words,
                             const uint32_t *ranks)
{
    const gx_bitmap_form form = gx_bitmap_form_of(b->directory[column]);
    uint32_t numbers[128 + 32];
    uint64_t sum = 0;
    if (form == GX_BITMAP_WORDS)
        return gx_filter_kernels_best()->count_both(words, b->words + (column ? b->directory[column - 1].end : 0),
                                                    ix->n_docs);
    for (uint32_t j = 0, n; (n = gx_bitmap_block(b, column, j, numbers)); ++j)
        sum += form == GX_BITMAP_LIST ? count_list(numbers, n, ix, words) : count_runs(numbers, n, ix, words, ranks);
    return sum;
}

static bool add_bin(gx_facet_count *f, const gx_index *ix, const gx_column *c, uint32_t bin, uint64_t count)
{
    if (gx_is_keyword(c->type))
        return !count || push_string(f, ix, c, bin, count);
    if (f->facet.grouping == GX_FACET_STORED)
        return gx_count_table_add(&f->table, bin, count);
    return gx_count_table_add(&f->table, gx_facet_key_of(f, c, gx_bitmaps_least(c, bin)), count);
}

/* words: of documents that have a value, n of them. */
static bool add_by_columns(gx_facet_count *f, const gx_index *ix, const gx_column *c, const uint64_t *words, uint64_t n)
{
    const gx_bitmaps *b = &c->bitmaps;
    uint32_t *ranks = malloc((n_words_of(ix) + 1) * sizeof *ranks);
    uint64_t before = 0;
    bool good = ranks != NULL;
    if (good)
        gx_filter_kernels_best()->rank(words, n_words_of(ix), ranks);
    f->n_present += n;
    for (uint32_t bin = 0; good && bin < b->n_bins; ++bin) {
        const uint64_t here = bin < b->n_columns ? count_column(ix, b, bin, words, ranks) : n;
        good = add_bin(f, ix, c, bin, here - before);
        before = b->encoding == GX_BITMAPS_RANGE ? here : 0;
    }
    free(ranks);
    return good;
}

/* Of a column with starts, the set's documents that have a value. */
static uint64_t count_present(const gx_index *ix, const gx_column *c, const uint64_t *words)
{
    const uint32_t *const starts = c->starts;
    uint64_t n = 0;
    for (size_t w = 0; w < n_words_of(ix); ++w) {
        const uint32_t first = (uint32_t)(64 * w), some = ix->n_docs - first < 64 ? ix->n_docs - first : 64;
        uint64_t has = 0;
        for (uint32_t i = 0; i < some && words[w]; ++i)
            has |= (uint64_t)(starts[first + i] < starts[first + i + 1]) << i;
        n += (uint64_t)__builtin_popcountll(has & words[w]);
    }
    return n;
}

/* ---- a part ---- */

void gx_facet_count_look(gx_facet_count *f, const gx_index *ix, uint32_t column, const uint64_t *words)
{
    const gx_column *c = &ix->columns[column];
    int64_t least = f->any ? f->least : INT64_MAX, greatest = f->any ? f->greatest : INT64_MIN;
    double low = f->any ? f->least_float : INFINITY, high = f->any ? f->greatest_float : -INFINITY;
    EACH_DOCUMENT(ix, words, d)
    {
        const gx_value_span span = gx_column_values(c, (uint32_t)d);
        for (uint64_t v = span.begin; v < span.end && gx_column_has(c, (uint32_t)d); ++v) {
            const uint64_t raw = gx_column_raw(c, v);
            const int64_t x = (int64_t)((uint64_t)c->base + raw);
            const double y = c->type == GX_ATTRIBUTE_FLOAT ? as_double(raw) : 0;
            f->any = true;
            low = fmin(low, y);
            high = fmax(high, y);
            least = x < least ? x : least;
            greatest = x > greatest ? x : greatest;
        }
    }
    f->least = least;
    f->greatest = greatest;
    f->least_float = low;
    f->greatest_float = high;
}

gx_status gx_facet_count_add(gx_facet_count *f, const gx_index *ix, uint32_t column, const uint64_t *words,
                             uint64_t *scratch, gx_error *err)
{
    const gx_column *c = &ix->columns[column];
    const uint64_t *set = drop_missing(ix, c, words, scratch);
    const uint64_t n = gx_filter_kernels_best()->count(set, n_words_of(ix));
    const bool all_present = !c->starts || c->n_present == ix->n_docs; /* of the set */
    const double more = all_present || n == ix->n_docs ? 0 : PRESENT_TIME * ix->n_docs;
    if (f->facet.grouping == GX_FACET_BINS && !make_edges(f))
        return no_memory(err);
    f->bins_of = ix;
    f->bins_column = c;
    bool columns = f->way == GX_FACET_BY_COLUMNS;
    if (f->way == GX_FACET_AUTO && n && time_by_documents(ix, c, n) > time_by_columns(ix, c) + more)
        columns = gx_facet_bins_are_in_groups(&f->facet, c);
    f->sorted = f->n_strings == 0;
    const uint64_t present = all_present || !columns ? n : n == ix->n_docs ? c->n_present : count_present(ix, c, set);
    return n == 0 || (columns ? add_by_columns : add_by_documents)(f, ix, c, set, present) ? GX_OK : no_memory(err);
}

/* ---- the end ---- */

static int by_string(const void *a, const void *b)
{
    const gx_counted_string *x = a, *y = b;
    const size_t n = x->len < y->len ? x->len : y->len;
    const int order = n ? memcmp(x->p, y->p, n) : 0;
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* The strings of several parts, each once. */
static void merge_strings(gx_facet_count *f)
{
    size_t n = 0;
    qsort(f->strings, f->n_strings, sizeof *f->strings, by_string);
    for (size_t i = 0; i < f->n_strings; ++i) {
        if (n && by_string(&f->strings[n - 1], &f->strings[i]) == 0)
            f->strings[n - 1].count += f->strings[i].count;
        else
            f->strings[n++] = f->strings[i];
    }
    f->n_strings = n;
}

/* All bins, also those without a document. */
static gx_status add_empty_bins(gx_facet_count *f, uint64_t n, gx_error *err)
{
    gx_counted_group *all = malloc((n + 1) * sizeof *all);
    if (!all)
        return no_memory(err);
    size_t at = 0;
    for (uint64_t i = 0; i < n; ++i) {
        const bool there = at < f->n_groups && f->groups[at].key == i;
        all[i] = there ? f->groups[at] : (gx_counted_group){i, 0};
        at += there;
    }
    free(f->groups);
    f->groups = all;
    f->n_groups = n;
    return GX_OK;
}

gx_status gx_facet_count_end(gx_facet_count *f, gx_error *err)
{
    if (gx_is_keyword(f->type)) {
        if (!f->sorted)
            merge_strings(f);
        if (!(f->groups = malloc((f->n_strings + 1) * sizeof *f->groups)))
            return no_memory(err);
        for (size_t i = 0; i < f->n_strings; ++i)
            f->groups[i] = (gx_counted_group){i, f->strings[i].count};
        f->n_groups = f->n_strings;
        return GX_OK;
    }
    if (!(f->groups = gx_count_table_sort(&f->table)))
        return no_memory(err);
    f->n_groups = f->table.n;
    if (f->facet.grouping == GX_FACET_BINS && f->any)
        return add_empty_bins(f, f->type != GX_ATTRIBUTE_FLOAT ? bins_of_span(f) : f->edges ? f->facet.bins : 1, err);
    return GX_OK;
}

static uint64_t bin_of_key(const gx_facet_count *f, uint64_t key)
{
    return f->type == GX_ATTRIBUTE_FLOAT ? key_of_double(f, gx_key_float(key))
                                         : group_of_int(f, (int64_t)(key ^ SIGN)).key;
}

gx_status gx_facet_count_bins(gx_facet_count *f, const uint64_t *keys, const uint32_t *counts, uint32_t n,
                              gx_error *err)
{
    const bool floats = f->type == GX_ATTRIBUTE_FLOAT;
    for (uint32_t i = 0; i < n; ++i) {
        if (!counts[i])
            continue;
        f->greatest = (int64_t)(keys[i] ^ SIGN);
        f->greatest_float = floats ? gx_key_float(keys[i]) : 0;
        f->least = f->any ? f->least : f->greatest;
        f->least_float = f->any ? f->least_float : f->greatest_float;
        f->any = true;
    }
    bool good = make_edges(f);
    for (uint32_t i = 0; i < n && good; ++i)
        good = !counts[i] || gx_count_table_add(&f->table, bin_of_key(f, keys[i]), counts[i]);
    return good ? gx_facet_count_end(f, err) : no_memory(err);
}

void gx_facet_count_free(gx_facet_count *f)
{
    free(f->edges);
    free(f->values.keys);
    free(f->cuts);
    gx_count_table_free(&f->table);
    if (!f->borrowed)
        free(f->strings);
    free(f->groups);
    *f = (gx_facet_count){0};
}
