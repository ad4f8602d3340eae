/* facet_text.c: what a caller asks of facets: read from texts, and checked. */
#include "query/answers/facet_asked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/read/collection.h"

#define MAX_WIDTH 0x1p62 /* of whole numbers */
#define FIGURES_OF_STATS (GX_FIGURE_MIN | GX_FIGURE_MAX | GX_FIGURE_SUM | GX_FIGURE_AVERAGE | STATS)
#define STATS (1u << 31) /* the sum is wanted of what has one */
#define OPTIONS                                                                                                        \
    "neither a number of groups, of at least 1, nor one of all, by=, bins=, quantiles=, width=, order=, exclude-own, " \
    "min=, max=, sum=, avg=, distinct=, stats=, p50="

/* ---- texts ---- */

/* Whether text[len] begins with the key, which ends with '='; *value is then what follows it. */
static bool take_key(const char *text, size_t len, const char *key, const char **value, size_t *n)
{
    const size_t k = strlen(key);
    *value = text + k;
    *n = len - k;
    return len >= k && memcmp(text, key, k) == 0;
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

static bool read_count(const char *text, size_t len, uint64_t most, uint32_t *out)
{
    int64_t n;
    if (gx_parse_int(text, len, &n) || n < 1 || (uint64_t)n > most)
        return false;
    *out = (uint32_t)n;
    return true;
}

/* What has been read of a facet's text. */
typedef struct reader {
    gx_facet *f;
    bool n, order, grouping;    /* they are given */
    struct gx_facet_list *list; /* which has room for sums; NULL: there may be none */
    bool inner;                 /* of an inner facet, which has none for another reason */
    gx_sum *sums;               /* [f->n_sums], f's */
    size_t max_sums;
    gx_error *err;
} reader;

static gx_status read_bins(reader *r, const char *value, size_t n)
{
    r->f->grouping = is_word(value, n, "stored") ? GX_FACET_STORED : GX_FACET_BINS;
    if (r->f->grouping == GX_FACET_BINS && !read_count(value, n, GX_MAX_BINS, &r->f->bins))
        return gx_fail(r->err, GX_EUSAGE, "facet: bins=%.*s is neither a number from 1 to %u nor 'stored'", (int)n,
                       value, GX_MAX_BINS);
    return GX_OK;
}

static gx_status read_period(reader *r, const char *value, size_t n)
{
    static const char *const periods[] = {"year", "month", "day"};
    for (int i = 0; i < 3; ++i)
        if (is_word(value, n, periods[i])) {
            r->f->grouping = (gx_facet_grouping)(GX_FACET_YEARS + i);
            return GX_OK;
        }
    return gx_fail(r->err, GX_EUSAGE, "facet: by=%.*s is none of year, month, day", (int)n, value);
}

/* A whole number that no double is, and so no width of ints either. */
static bool is_rounded(const char *text, size_t len)
{
    int64_t n;
    double x;
    return !gx_parse_int(text, len, &n) && !gx_parse_float(text, len, &x) && (x >= 0x1p63 || (int64_t)x != n);
}

static gx_status read_width(reader *r, const char *value, size_t n)
{
    const int shown = (int)(n < 60 ? n : 60);
    r->f->grouping = GX_FACET_WIDTH;
    if (gx_parse_float(value, n, &r->f->width) || !(r->f->width > 0))
        return gx_fail(r->err, GX_EUSAGE, "facet: 'width=%.*s': the width is no number above 0", shown, value);
    if (is_rounded(value, n))
        return gx_fail(r->err, GX_EUSAGE, "facet: 'width=%.*s': the width is rounded to %.17g; write that", shown,
                       value, r->f->width);
    return GX_OK;
}

static gx_status read_quantiles(reader *r, const char *value, size_t n)
{
    r->f->grouping = GX_FACET_QUANTILES;
    if (!read_count(value, n, GX_MAX_BINS, &r->f->bins))
        return gx_fail(r->err, GX_EUSAGE, "facet: quantiles=%.*s is no number from 1 to %u", (int)n, value,
                       GX_MAX_BINS);
    return GX_OK;
}

static bool is_grouping(const char *text, size_t len)
{
    const char *value;
    size_t n;
    return take_key(text, len, "by=", &value, &n) || take_key(text, len, "bins=", &value, &n) ||
           take_key(text, len, "width=", &value, &n) || take_key(text, len, "quantiles=", &value, &n);
}

/* ---- figures ---- */

/* Add a figure to a sum: "min", "p99.9", "stats". NULL, or what is wrong. */
static const char *add_figure(gx_sum *s, const char *text, size_t len)
{
    static const struct {
        const char *name;
        uint32_t figures;
    } known[] = {{"min", GX_FIGURE_MIN},     {"max", GX_FIGURE_MAX},           {"sum", GX_FIGURE_SUM},
                 {"avg", GX_FIGURE_AVERAGE}, {"distinct", GX_FIGURE_DISTINCT}, {"stats", FIGURES_OF_STATS}};
    double percent;
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        if (is_word(text, len, known[i].name)) {
            s->figures |= known[i].figures;
            return NULL;
        }
    if (!len || *text != 'p' || gx_parse_float(text + 1, len - 1, &percent))
        return "is none of min, max, sum, avg, distinct, stats and a percentile such as p50";
    if (!gx_is_percentile(percent))
        return "is no percentile: they are from p0 to p100, with up to 6 decimal places";
    for (uint32_t i = 0; i < s->n_percentiles; ++i)
        if (s->percentiles[i] == percent)
            return NULL;
    if (s->n_percentiles == GX_MAX_PERCENTILES)
        return "is the seventeenth percentile of the attribute; there are at most 16";
    s->percentiles[s->n_percentiles++] = percent;
    return NULL;
}

/* The sum of an attribute that the facet has, or a new one. NULL: no memory. */
static gx_sum *sum_of(reader *r, const char *name, size_t len)
{
    for (uint32_t i = 0; i < r->f->n_sums; ++i)
        if (r->sums[i].name_len == len && memcmp(r->sums[i].name, name, len) == 0)
            return &r->sums[i];
    if (!gx_reserve(&r->sums, &r->max_sums, r->f->n_sums + 1ull, sizeof *r->sums))
        return NULL;
    gx_sum *s = &r->sums[r->f->n_sums++];
    *s = (gx_sum)GX_SUM;
    s->name = name;
    s->name_len = len;
    r->f->sums = r->sums;
    return s;
}

/* "avg=price" */
static gx_status read_figure(reader *r, const char *text, size_t len)
{
    const size_t key = strcspn(text, "=");
    const int shown = (int)(len < 60 ? len : 60);
    gx_sum trial = GX_SUM;
    const char *fault = add_figure(&trial, text, key);
    if (fault && *text != 'p')
        return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s' is " OPTIONS, shown, text);
    if (fault)
        return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s': '%.*s' %s", shown, text, (int)(key < 60 ? key : 60), text,
                       fault);
    if (r->inner)
        return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s': an inner facet counts, and has no figures", shown, text);
    if (!r->list)
        return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s': a facet with figures is read by gx_facet_list_read", shown,
                       text);
    if (key + 1 == len)
        return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s' names no attribute", shown, text);
    gx_sum *s = sum_of(r, text + key + 1, len - key - 1);
    if (!s)
        return gx_fail(r->err, GX_ENOMEM, "no memory for facets");
    fault = add_figure(s, text, key);
    return fault ? gx_fail(r->err, GX_EUSAGE, "facet: '%.*s' %s", shown, text, fault) : GX_OK;
}

/* ---- a facet ---- */

/* What stands between two colons. */
static gx_status read_option(reader *r, const char *text, size_t len)
{
    const char *value;
    size_t n;
    const int shown = (int)(len < 60 ? len : 60);
    if (!take_key(text, len, "order=", &value, &n) && memchr(text, '=', len) && !is_grouping(text, len))
        return read_figure(r, text, len);
    if (is_grouping(text, len) && r->grouping)
        return gx_fail(r->err, GX_EUSAGE,
                       "facet: '%.*s': a facet has one of by=, bins=, quantiles= and width=, and once", shown, text);
    r->grouping = r->grouping || is_grouping(text, len);
    if (is_grouping(text, len))
        return take_key(text, len, "by=", &value, &n)     ? read_period(r, value, n < 60 ? n : 60)
               : take_key(text, len, "bins=", &value, &n) ? read_bins(r, value, n < 60 ? n : 60)
               : take_key(text, len, "quantiles=", &value, &n)
                   ? read_quantiles(r, value, n < 60 ? n : 60)
                   : (take_key(text, len, "width=", &value, &n), read_width(r, value, n));
    if (is_word(text, len, "exclude-own") && r->inner)
        return gx_fail(r->err, GX_EUSAGE, "facet: exclude-own is not for an inner facet");
    if (is_word(text, len, "exclude-own")) {
        r->f->exclude_own = true;
        return GX_OK;
    }
    if (take_key(text, len, "order=", &value, &n)) {
        r->order = true;
        r->f->order = is_word(value, n, "value") ? GX_FACET_BY_VALUE : GX_FACET_BY_COUNT;
        if (is_word(value, n, "value") || is_word(value, n, "count"))
            return GX_OK;
        return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s' is none of order=count, order=value", shown, text);
    }
    r->n = true;
    r->f->n = 0;
    if (is_word(text, len, "all") || read_count(text, len, UINT32_MAX, &r->f->n))
        return GX_OK;
    return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s' is " OPTIONS, shown, text);
}

/* One level of a facet, text[len]. */
static gx_status read_level(reader *r, gx_facet *out, const char *text, size_t len)
{
    const char *const end = text + len, *colon = memchr(text, ':', len);
    gx_facet f = GX_FACET;
    f.name = text;
    f.name_len = colon ? (size_t)(colon - text) : len;
    r->f = &f;
    r->n = r->order = r->grouping = false;
    if (f.name_len == 0)
        return gx_fail(r->err, GX_EUSAGE, "facet: '%.*s' begins with no name of an attribute",
                       (int)(len < 60 ? len : 60), text);
    for (const char *p = text + f.name_len; p < end;) {
        const char *next = memchr(p + 1, ':', (size_t)(end - p - 1));
        const size_t n = (size_t)((next ? next : end) - ++p);
        const gx_status st = read_option(r, p, n);
        if (st != GX_OK)
            return st;
        p += n;
    }
    if (f.grouping >= GX_FACET_BINS) {
        f.order = r->order ? f.order : GX_FACET_BY_VALUE;
        f.n = r->n ? f.n : 0;
    }
    *out = f;
    return GX_OK;
}

gx_status gx_facet_read(gx_facet *out, const char *text, gx_error *err)
{
    reader r = {.err = err};
    gx_clear_error(err);
    if (strchr(text, '/'))
        return gx_fail(err, GX_EUSAGE, "facet: '%.60s': a facet in a facet is read by gx_facet_list_read", text);
    return read_level(&r, out, text, strlen(text));
}

/* ---- lists ---- */

typedef struct listed {
    gx_facet inner;
    gx_sum *sums; /* of the facet */
} listed;

struct gx_facet_list {
    char *facets, *sums; /* the texts, of which names are part */
    gx_facet *all;       /* [n] */
    listed *of;          /* [n] what belongs to each */
    uint32_t n;
};

void gx_facet_list_close(gx_facet_list *l)
{
    for (uint32_t i = 0; l && i < l->n; ++i)
        free(l->of[i].sums);
    if (l) {
        free(l->facets);
        free(l->sums);
        free(l->all);
        free(l->of);
    }
    free(l);
}

const gx_facet *gx_facet_list_get(const gx_facet_list *l, uint32_t *n)
{
    *n = l->n;
    return l->all;
}

/* Read the facet at text[len] as number l->n. */
static gx_status read_listed(gx_facet_list *l, const char *text, size_t len, gx_error *err)
{
    const char *slash = memchr(text, '/', len);
    const size_t first = slash ? (size_t)(slash - text) : len;
    gx_facet *f = &l->all[l->n];
    listed *of = &l->of[l->n];
    reader r = {.list = l, .err = err}, inner = {.err = err};
    gx_status st = read_level(&r, f, text, first);
    of->sums = r.sums;
    ++l->n;
    if (st != GX_OK || !slash)
        return st;
    if (memchr(slash + 1, '/', len - first - 1))
        return gx_fail(err, GX_EUSAGE, "facet: '%.*s': a facet has one inner facet, and that has none",
                       (int)(len < 60 ? len : 60), text);
    inner.inner = true;
    st = read_level(&inner, &of->inner, slash + 1, len - first - 1);
    f->inner = &of->inner;
    return st;
}

/* Read "price:sum:p50" into the sums of facet l->n - 1. */
static gx_status read_sum(reader *r, const char *text, size_t len)
{
    const char *const end = text + len, *colon = memchr(text, ':', len);
    const size_t name = colon ? (size_t)(colon - text) : len;
    const int shown = (int)(len < 60 ? len : 60);
    if (!name)
        return gx_fail(r->err, GX_EUSAGE, "sums: '%.*s' begins with no name of an attribute", shown, text);
    gx_sum *s = sum_of(r, text, name);
    if (!s)
        return gx_fail(r->err, GX_ENOMEM, "no memory for sums");
    if (!colon)
        s->figures |= FIGURES_OF_STATS;
    for (const char *p = text + name; p < end;) {
        const char *next = memchr(p + 1, ':', (size_t)(end - p - 1));
        const size_t n = (size_t)((next ? next : end) - ++p);
        const char *fault = add_figure(s, p, n);
        if (fault)
            return gx_fail(r->err, GX_EUSAGE, "sums: '%.*s': '%.*s' %s", shown, text, (int)(n < 60 ? n : 60), p, fault);
        p += n;
    }
    return GX_OK;
}

static gx_status read_sums(gx_facet_list *l, gx_error *err)
{
    reader r = {.f = &l->all[l->n], .list = l, .err = err};
    gx_status st = GX_OK;
    *r.f = (gx_facet)GX_FACET;
    r.f->grouping = GX_FACET_ALL;
    for (char *p = l->sums, *next; p && st == GX_OK; p = next) {
        if ((next = strchr(p, ',')))
            *next++ = 0;
        st = read_sum(&r, p, strlen(p));
    }
    l->of[l->n++].sums = r.sums;
    return st;
}

static gx_status read_facets(gx_facet_list *l, gx_error *err)
{
    gx_status st = GX_OK;
    for (char *p = l->facets, *next; p && st == GX_OK; p = next) {
        if ((next = strchr(p, ',')))
            *next++ = 0;
        st = read_listed(l, p, strlen(p), err);
    }
    return st;
}

gx_status gx_facet_list_read(gx_facet_list **out, const gx_index *ix, const char *facets, const char *sums,
                             gx_error *err)
{
    gx_facet_list *l = calloc(1, sizeof *l);
    size_t most = 2;
    *out = NULL;
    gx_clear_error(err);
    for (const char *p = facets; p && (p = strchr(p, ',')); ++p)
        ++most;
    bool good = l != NULL;
    if (good) {
        l->facets = facets ? strdup(facets) : NULL;
        l->sums = sums ? strdup(sums) : NULL;
        l->all = calloc(most, sizeof *l->all);
        l->of = calloc(most, sizeof *l->of);
        good = l->all && l->of && (l->facets || !facets) && (l->sums || !sums);
    }
    gx_status st = good ? read_facets(l, err) : gx_fail(err, GX_ENOMEM, "no memory for facets");
    if (st == GX_OK && sums)
        st = read_sums(l, err);
    if (st == GX_OK)
        st = gx_facets_check(ix, l->all, l->n, err);
    if (st == GX_OK)
        *out = l;
    else
        gx_facet_list_close(l);
    return st;
}

/* ---- checks ---- */

/* What is wrong with a grouping of the column's values. NULL: nothing. */
static const char *fault_of(const gx_facet *f, const gx_index *ix, const gx_column *c)
{
    const bool date = c->type == GX_ATTRIBUTE_DATE, number = c->type <= GX_ATTRIBUTE_FLOAT;
    switch (f->grouping) {
    case GX_FACET_VALUES:
        return NULL;
    case GX_FACET_YEARS:
    case GX_FACET_MONTHS:
    case GX_FACET_DAYS:
        return date ? NULL : "has no years, months and days: by= is for a date";
    case GX_FACET_ALL:
        return "is named, and all matches as one group have no attribute";
    case GX_FACET_QUANTILES:
    case GX_FACET_BINS:
        if (!number && !date)
            return "has no bins: they are for int, float and date";
        return f->bins >= 1 && f->bins <= GX_MAX_BINS ? NULL : "is asked for too many bins, or none";
    case GX_FACET_WIDTH:
        if (!number)
            return "has no ranges of a width: they are for int and float";
        if (!(f->width > 0) || !isfinite(f->width))
            return "is asked for ranges of a width that is not above 0";
        if (c->type == GX_ATTRIBUTE_INT && (f->width != floor(f->width) || f->width > MAX_WIDTH))
            return "has whole numbers, and the width is none, or too large";
        return NULL;
    case GX_FACET_STORED:
        if (!number && !date)
            return "has no bins: they are for int, float and date";
        if (ix->parts && ix->parts->n > 1)
            return "has bins of its own in each file of the collection; give their number, as in bins=10";
        if ((ix->parts ? ix->parts->parts[0].ix->columns[c - ix->columns].bitmaps : c->bitmaps).encoding ==
            GX_BITMAPS_NONE)
            return "has no bitmap columns, and so no stored bins; give their number, as in bins=10";
        return NULL;
    }
    return "is asked for a grouping that does not exist";
}

bool gx_is_percentile(double percent)
{
    return percent >= 0 && percent <= 100 && fabs(percent * 1e6 - round(percent * 1e6)) < 1e-3;
}

/* What is wrong with the figures of a column. NULL: nothing. */
static const char *fault_of_figures(const gx_sum *s, const gx_column *c)
{
    if (c->type == GX_ATTRIBUTE_BOOL || gx_is_keyword(c->type))
        return s->figures == GX_FIGURE_DISTINCT && !s->n_percentiles
                   ? "has no figures; a facet of it has a group for each distinct value"
                   : "has no figures: they are for int, float and date";
    if (c->type == GX_ATTRIBUTE_DATE && s->figures & GX_FIGURE_SUM && !(s->figures & STATS))
        return "has no sum; min, max, avg and percentiles are dates";
    if (s->figures & ~(uint32_t)(FIGURES_OF_STATS | GX_FIGURE_DISTINCT))
        return "is asked for a figure that does not exist";
    if (s->n_percentiles > GX_MAX_PERCENTILES)
        return "is asked for more than 16 percentiles";
    for (uint32_t i = 0; i < s->n_percentiles; ++i)
        if (!gx_is_percentile(s->percentiles[i]))
            return "is asked for a percentile that is not from 0 to 100, with up to 6 decimal places";
    return NULL;
}

gx_status gx_sum_check(gx_sum *out, uint32_t *column, const gx_index *ix, const gx_facet *facet, uint32_t i,
                       gx_error *err)
{
    const char *what = facet->grouping == GX_FACET_ALL ? "sums" : "facet";
    char why[GX_NO_ATTRIBUTE_TEXT];
    gx_sum s = GX_SUM;
    if (!facet->sums)
        return gx_fail(err, GX_EUSAGE, "%s: n_sums is %u, and sums is NULL", what, facet->n_sums);
    gx_status st = gx_sized_check(facet->sums->size, GX_SIZE_THROUGH(gx_sum, percentiles), "gx_sum", err);
    if (st == GX_OK)
        st = gx_sized_read(&s, sizeof s, (const char *)facet->sums + i * facet->sums->size,
                           GX_SIZE_THROUGH(gx_sum, percentiles), "gx_sum", err);
    if (st != GX_OK)
        return st;
    if (!s.name || (*column = gx_column_find(ix, s.name, s.name_len, why)) == UINT32_MAX)
        return gx_fail(err, GX_EUSAGE, "%s: %s", what, s.name ? why : "it has no name");
    const gx_column *c = &ix->columns[*column];
    if (!s.figures && !s.n_percentiles)
        s.figures = FIGURES_OF_STATS;
    const char *fault = fault_of_figures(&s, c);
    if (fault)
        return gx_fail(err, GX_EUSAGE, "%s: %.*s is of type %s and %s", what, (int)c->name_len, c->name,
                       gx_attribute_type_name(c->type), fault);
    if (c->type == GX_ATTRIBUTE_DATE)
        s.figures &= ~(uint32_t)GX_FIGURE_SUM;
    s.figures &= ~STATS;
    *out = s;
    return GX_OK;
}

static gx_status read_sized(gx_facet *out, const gx_facet *facets, uint32_t i, gx_error *err)
{
    const gx_status st = gx_sized_check(facets->size, GX_SIZE_THROUGH(gx_facet, width), "gx_facet", err);
    *out = (gx_facet)GX_FACET;
    return st ? st
              : gx_sized_read(out, sizeof *out, (const char *)facets + i * facets->size,
                              GX_SIZE_THROUGH(gx_facet, width), "gx_facet", err);
}

/* The facet's attribute, grouping and order. */
static gx_status check_level(gx_facet *f, uint32_t *column, const gx_index *ix, gx_error *err)
{
    char why[GX_NO_ATTRIBUTE_TEXT];
    *column = 0;
    if (f->grouping == GX_FACET_ALL && !f->name_len)
        return f->exclude_own ? gx_fail(err, GX_EUSAGE, "sums: all matches have no filter of their own") : GX_OK;
    if (!f->name || (*column = gx_column_find(ix, f->name, f->name_len, why)) == UINT32_MAX)
        return gx_fail(err, GX_EUSAGE, "facet: %s", f->name ? why : "it has no name");
    const gx_column *c = &ix->columns[*column];
    const char *fault = fault_of(f, ix, c);
    if (f->order != GX_FACET_BY_COUNT && f->order != GX_FACET_BY_VALUE)
        fault = "is asked for an order that does not exist";
    if (fault)
        return gx_fail(err, GX_EUSAGE, "facet: %.*s is of type %s and %s", (int)c->name_len, c->name,
                       gx_attribute_type_name(c->type), fault);
    if (f->grouping == GX_FACET_VALUES && c->type == GX_ATTRIBUTE_DATE)
        f->grouping = GX_FACET_YEARS;
    return GX_OK;
}

gx_status gx_facet_check_inner(gx_facet *out, uint32_t *column, const gx_index *ix, const gx_facet *facet,
                               gx_error *err)
{
    gx_status st = read_sized(out, facet->inner, 0, err);
    if (st == GX_OK && (out->n_sums || out->inner || out->exclude_own || out->grouping == GX_FACET_ALL))
        st = gx_fail(err, GX_EUSAGE,
                     "facet: an inner facet counts by an attribute; it has no figures, no inner facet "
                     "and no exclude-own");
    return st == GX_OK ? check_level(out, column, ix, err) : st;
}

gx_status gx_facet_check(gx_facet *out, uint32_t *column, const gx_index *ix, const gx_facet *facets, uint32_t i,
                         gx_error *err)
{
    gx_facet f, inner;
    gx_sum sum;
    uint32_t of;
    gx_status st = read_sized(&f, facets, i, err);
    if (st == GX_OK)
        st = check_level(&f, column, ix, err);
    for (uint32_t s = 0; s < f.n_sums && st == GX_OK; ++s)
        st = gx_sum_check(&sum, &of, ix, &f, s, err);
    if (st == GX_OK && f.inner)
        st = gx_facet_check_inner(&inner, &of, ix, &f, err);
    if (st == GX_OK)
        *out = f;
    return st;
}

gx_status gx_facets_check(const gx_index *ix, const gx_facet *facets, uint32_t n, gx_error *err)
{
    gx_status st = GX_OK;
    gx_clear_error(err);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        gx_facet f;
        uint32_t column;
        st = gx_facet_check(&f, &column, ix, facets, i, err);
    }
    return st;
}
