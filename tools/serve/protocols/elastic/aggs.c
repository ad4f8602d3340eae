/* aggs.c: terms, histogram and date_histogram become facets, and facets buckets; min, max, sum, avg, stats,
 * value_count, cardinality and percentiles become figures of all matches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/serve/protocols/elastic/elastic.h"

enum { MAX_BUCKETS = 65536 };

/* ---- reading ---- */

static bool read_field(reader *r, const json_t *value, void *to)
{
    agg *a = to;
    size_t len;
    if (!reader_string(r, value, &a->facet.name, &len))
        return false;
    a->facet.name_len = len;
    return true;
}

static bool read_size(reader *r, const json_t *value, void *to)
{
    uint64_t n;
    if (!reader_count(r, value, 1, MAX_BUCKETS, &n))
        return false;
    ((agg *)to)->facet.n = (uint32_t)n;
    return true;
}

/* {"_count": "desc"}, {"_key": "asc"}, or an array of one. */
static bool read_order(reader *r, const json_t *value, void *to)
{
    agg *a = to;
    if (json_is_array(value) && json_array_size(value) == 1)
        value = json_array_get(value, 0);
    const char *count = json_string_value(json_object_get(value, "_count"));
    const char *key = json_string_value(json_object_get(value, "_key"));
    if (json_object_size(value) == 1 && count && strcmp(count, "desc") == 0)
        a->facet.order = GX_FACET_BY_COUNT;
    else if (json_object_size(value) == 1 && key && strcmp(key, "asc") == 0)
        a->facet.order = GX_FACET_BY_VALUE;
    else
        return reader_fail(r, "only {\"_count\": \"desc\"} and {\"_key\": \"asc\"} are available");
    return true;
}

static bool read_minimum(reader *r, const json_t *value, void *to)
{
    agg *a = to;
    if (!reader_count(r, value, 0, INT64_MAX, &a->min_count))
        return false;
    if (a->min_count == 0 && a->kind == AGG_TERMS)
        return reader_fail(r, "terms have buckets of documents alone: at least 1");
    a->keep_empty = a->min_count == 0;
    return true;
}

static bool read_interval(reader *r, const json_t *value, void *to)
{
    double *width = &((agg *)to)->facet.width;
    return reader_number(r, value, width) && (*width > 0 || reader_fail(r, "an interval is above 0"));
}

static bool read_calendar(reader *r, const json_t *value, void *to)
{
    static const gx_facet_grouping groupings[] = {GX_FACET_YEARS,  GX_FACET_YEARS, GX_FACET_MONTHS,
                                                  GX_FACET_MONTHS, GX_FACET_DAYS,  GX_FACET_DAYS};
    const char *text;
    size_t len;
    if (!reader_string(r, value, &text, &len))
        return false;
    const int i = gx_word_index("year|1y|month|1M|day|1d", text, len);
    if (i < 0)
        return reader_fail(r, "'%.40s' is not available; there are year, month and day", text);
    ((agg *)to)->facet.grouping = groupings[i];
    return true;
}

static bool check_grouping(reader *r, const agg *a)
{
    if (a->kind == AGG_HISTOGRAM && !(a->facet.width > 0))
        return reader_fail(r, "'interval' is missing");
    if (a->kind == AGG_DATES && a->facet.grouping == GX_FACET_VALUES)
        return reader_fail(r, "'calendar_interval' is missing");
    return true;
}

/* The body of one kind. */
static bool read_kind(reader *r, agg_kind kind, const json_t *value, const aggs *all, agg *a)
{
    static const member members[][8] = {
        {{"field", read_field}, {"size", read_size}, {"order", read_order}, {"min_doc_count", read_minimum}},
        {{"field", read_field}, {"interval", read_interval}, {"min_doc_count", read_minimum}},
        {{"field", read_field},
         {"calendar_interval", read_calendar},
         {"interval", read_calendar},
         {"min_doc_count", read_minimum}},
    };
    static const size_t n[] = {4, 3, 4};
    gx_attribute_info info;
    gx_error err = {0};
    a->kind = kind;
    a->min_count = kind == AGG_TERMS;
    a->keep_empty = kind != AGG_TERMS;
    a->facet = (gx_facet)GX_FACET;
    if (kind != AGG_TERMS) {
        a->facet.n = 0;
        a->facet.order = GX_FACET_BY_VALUE;
        a->facet.grouping = kind == AGG_HISTOGRAM ? GX_FACET_WIDTH : GX_FACET_VALUES;
    }
    if (!reader_object(r, value, members[kind], n[kind], a))
        return false;
    if (!a->facet.name)
        return reader_fail(r, "'field' is missing");
    if (!check_grouping(r, a))
        return false;
    if (elastic_attribute(all->ix, a->facet.name, &info) == UINT32_MAX)
        return reader_fail(r, "the index has no attribute '%.60s'", a->facet.name);
    a->typed_dates = info.type == GX_ATTRIBUTE_DATE;
    if (kind == AGG_TERMS && a->typed_dates)
        return reader_fail(r, "the values of a date are counted by date_histogram");
    if (gx_facets_check(all->ix, &a->facet, 1, &err))
        return reader_fail(r, "%s", err.text);
    return true;
}

static bool read_percent(reader *r, const json_t *value, void *to)
{
    gx_sum *s = &((agg *)to)->sum;
    if (s->n_percentiles == GX_MAX_PERCENTILES)
        return reader_fail(r, "there are at most %u percentiles", GX_MAX_PERCENTILES);
    return reader_number(r, value, &s->percentiles[s->n_percentiles++]);
}

static bool read_percents(reader *r, const json_t *value, void *to)
{
    ((agg *)to)->sum.n_percentiles = 0;
    return reader_array(r, value, read_percent, to) &&
           (json_array_size(value) || reader_fail(r, "there is no percentile in it"));
}

/* A figure of all matches. */
static bool read_metric(reader *r, agg_kind kind, const json_t *value, const aggs *all, agg *a)
{
    static const member members[] = {{"field", read_field}, {"percents", read_percents}};
    static const uint32_t figures[] = {
        GX_FIGURE_MIN, GX_FIGURE_MAX, GX_FIGURE_SUM, GX_FIGURE_AVERAGE, 0, GX_FIGURE_MIN, GX_FIGURE_DISTINCT, 0};
    static const double percents[] = {1, 5, 25, 50, 75, 95, 99};
    gx_attribute_info info;
    gx_error err = {0};
    a->kind = kind;
    a->facet = (gx_facet)GX_FACET;
    a->sum = (gx_sum)GX_SUM;
    if (kind == AGG_PERCENTILES) {
        memcpy(a->sum.percentiles, percents, sizeof percents);
        a->sum.n_percentiles = sizeof percents / sizeof *percents;
    }
    if (!reader_object(r, value, members, kind == AGG_PERCENTILES ? 2 : 1, a))
        return false;
    if (!a->facet.name)
        return reader_fail(r, "'field' is missing");
    if (elastic_attribute(all->ix, a->facet.name, &info) == UINT32_MAX)
        return reader_fail(r, "the index has no attribute '%.60s'", a->facet.name);
    a->typed_dates = info.type == GX_ATTRIBUTE_DATE;
    const bool numeric = info.type == GX_ATTRIBUTE_INT || info.type == GX_ATTRIBUTE_FLOAT || a->typed_dates;
    if (!numeric && kind == AGG_DISTINCT) {
        a->facet.n = 0; /* all its values, which are counted */
        return gx_facets_check(all->ix, &a->facet, 1, &err) == GX_OK || reader_fail(r, "%s", err.text);
    }
    a->sum.name = a->facet.name;
    a->sum.name_len = a->facet.name_len;
    a->sum.figures = figures[kind - AGG_MIN];
    a->facet.name = NULL;
    a->facet.name_len = 0;
    a->facet.grouping = GX_FACET_ALL;
    a->facet.sums = &a->sum;
    a->facet.n_sums = 1;
    const gx_status st = gx_facets_check(all->ix, &a->facet, 1, &err);
    a->facet.sums = NULL; /* the aggregation may move */
    return st == GX_OK || reader_fail(r, "%s", err.text);
}

static bool read_agg(reader *r, const char *name, const json_t *value, aggs *all)
{
    static const char kinds[] =
        "terms|histogram|date_histogram|min|max|sum|avg|stats|value_count|cardinality|percentiles";
    if (all->n == MAX_AGGS)
        return reader_fail(r, "there are at most %d aggregations", MAX_AGGS);
    agg *a = &all->all[all->n++];
    *a = (agg){.name = name};
    if (!json_is_object(value) || json_object_size(value) == 0)
        return reader_fail(r, "an object with the kind of aggregation is expected");
    void *iter = json_object_iter((json_t *)value);
    for (bool known = false; iter; iter = json_object_iter_next((json_t *)value, iter)) {
        const char *kind = json_object_iter_key(iter);
        const int i = gx_word_index(kinds, kind, strlen(kind));
        reader_enter(r, kind, 0);
        if (strcmp(kind, "aggs") == 0 || strcmp(kind, "aggregations") == 0)
            return reader_fail(r, "aggregations in aggregations are not available in this version of gpuidx");
        if (i < 0)
            return reader_fail(r, "the aggregation [%.60s] is not available in this version of gpuidx; there are %s",
                               kind, kinds);
        if (known)
            return reader_fail(r, "an aggregation has one kind");
        known = true;
        if (!(i < AGG_MIN ? read_kind : read_metric)(r, (agg_kind)i, json_object_iter_value(iter), all, a))
            return false;
        reader_leave(r);
    }
    return true;
}

bool aggs_read(reader *r, const json_t *value, void *to)
{
    if (!json_is_object(value))
        return reader_fail(r, "an object of aggregations is expected");
    for (void *i = json_object_iter((json_t *)value); i; i = json_object_iter_next((json_t *)value, i)) {
        reader_enter(r, json_object_iter_key(i), 0);
        if (!read_agg(r, json_object_iter_key(i), json_object_iter_value(i), to))
            return false;
        reader_leave(r);
    }
    return true;
}

/* ---- writing ---- */

/* A bucket's place: in units of the interval, or in years, months or days. */
static int64_t place_of(const agg *a, const gx_facet_answer *f, const gx_facet_group *g)
{
    const time_t seconds = (time_t)g->first;
    struct tm tm;
    if (a->kind == AGG_HISTOGRAM)
        return f->type == GX_ATTRIBUTE_FLOAT ? (int64_t)floor(g->low / a->facet.width + 0.5)
                                             : (int64_t)floor((double)g->first / a->facet.width);
    gmtime_r(&seconds, &tm);
    if (a->facet.grouping == GX_FACET_YEARS)
        return tm.tm_year;
    if (a->facet.grouping == GX_FACET_MONTHS)
        return 12 * (int64_t)tm.tm_year + tm.tm_mon;
    return (int64_t)floor((double)g->first / 86400);
}

static void put_date(gx_text *t, const agg *a, int64_t place)
{
    struct tm tm = {.tm_mday = 1};
    char text[40];
    if (a->facet.grouping == GX_FACET_YEARS)
        tm.tm_year = (int)place;
    else if (a->facet.grouping == GX_FACET_MONTHS) {
        tm.tm_year = (int)(place >= 0 ? place / 12 : -((11 - place) / 12));
        tm.tm_mon = (int)(place - 12 * (int64_t)tm.tm_year);
    }
    const time_t seconds = a->facet.grouping == GX_FACET_DAYS ? (time_t)(place * 86400) : timegm(&tm);
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000Z", &tm);
    gx_text_add_format(t, "{\"key_as_string\":\"%s\",\"key\":%lld", text, (long long)seconds * 1000);
}

/* The bucket of an interval. */
static void put_interval(gx_text *t, const agg *a, int64_t place, uint64_t count)
{
    if (a->kind == AGG_DATES)
        put_date(t, a, place);
    else
        gx_text_add_format(t, "{\"key\":%.17g", (double)place * a->facet.width);
    gx_text_add_format(t, ",\"doc_count\":%llu}", (unsigned long long)count);
}

static bool put_intervals(gx_text *t, const agg *a, const gx_facet_answer *f)
{
    int64_t next = 0;
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->n; ++i) {
        const int64_t place = place_of(a, f, &f->groups[i]);
        if (n && a->keep_empty && (uint64_t)(place - next) > MAX_BUCKETS - n)
            return false;
        for (; n && a->keep_empty && next < place; ++next, ++n) {
            gx_text_add_string(t, ",");
            put_interval(t, a, next, 0);
        }
        next = place + 1;
        if (f->groups[i].count < a->min_count)
            continue;
        gx_text_add_string(t, n++ ? "," : "");
        put_interval(t, a, place, f->groups[i].count);
    }
    return true;
}

/* The key of a value, by its type. */
static void put_key(gx_text *t, const gx_facet_answer *f, const gx_facet_group *g)
{
    if (f->type == GX_ATTRIBUTE_KEYWORD || f->type == GX_ATTRIBUTE_KEYWORDS) {
        gx_text_add_string(t, "{\"key\":");
        gx_text_add_json(t, g->text, g->len);
    } else if (f->type == GX_ATTRIBUTE_BOOL) {
        gx_text_add_format(t, "{\"key\":%d,\"key_as_string\":\"%s\"", g->first != 0, g->first ? "true" : "false");
    } else if (f->type == GX_ATTRIBUTE_FLOAT) {
        gx_text_add_format(t, "{\"key\":%.17g", g->low);
    } else {
        gx_text_add_format(t, "{\"key\":%lld", (long long)g->first);
    }
}

static void put_terms(gx_text *t, const agg *a, const gx_facet_answer *f)
{
    uint64_t n = 0, shown = 0;
    for (uint32_t i = 0; i < f->n; ++i) {
        shown += f->groups[i].count;
        if (f->groups[i].count < a->min_count)
            continue;
        gx_text_add_string(t, n++ ? "," : "");
        put_key(t, f, &f->groups[i]);
        gx_text_add_format(t, ",\"doc_count\":%llu}", (unsigned long long)f->groups[i].count);
    }
    gx_text_add_format(t, "],\"doc_count_error_upper_bound\":0,\"sum_other_doc_count\":%llu}",
                       (unsigned long long)(f->n_present > shown ? f->n_present - shown : 0));
}

/* A value as a number: of a date, milliseconds. */
static void put_value(gx_text *t, const agg *a, const gx_figures *f, const gx_value *v)
{
    if (f->n == 0)
        gx_text_add_string(t, "null");
    else if (f->type == GX_ATTRIBUTE_FLOAT)
        gx_text_add_format(t, "%.17g", v->real);
    else
        gx_text_add_format(t, "%lld", (long long)v->number * (a->typed_dates ? 1000 : 1));
}

static void put_double(gx_text *t, const gx_figures *f, double x, bool needs_values)
{
    if (!isfinite(x) || (needs_values && f->n == 0))
        gx_text_add_string(t, "null");
    else
        gx_text_add_format(t, "%.17g", x);
}

static void put_stats(gx_text *t, const agg *a, const gx_figures *f)
{
    gx_text_add_format(t, "{\"count\":%llu,\"min\":", (unsigned long long)f->n);
    put_value(t, a, f, &f->least);
    gx_text_add_string(t, ",\"max\":");
    put_value(t, a, f, &f->greatest);
    gx_text_add_string(t, ",\"avg\":");
    put_double(t, f, f->average * (a->typed_dates ? 1000 : 1), true);
    gx_text_add_string(t, ",\"sum\":");
    put_double(t, f, a->typed_dates ? INFINITY : f->sum, false); /* dates have none */
    gx_text_add_string(t, "}");
}

static void put_percentiles(gx_text *t, const agg *a, const gx_figures *f)
{
    gx_text_add_string(t, "{\"values\":{");
    for (uint32_t i = 0; i < f->n_percentiles; ++i) {
        char name[32];
        snprintf(name, sizeof name, "%.10g", f->asked[i]);
        gx_text_add_format(t, "%s\"%s%s\":", i ? "," : "", name, strchr(name, '.') ? "" : ".0");
        put_value(t, a, f, &f->percentiles[i]);
    }
    gx_text_add_string(t, "}}");
}

static void put_metric(gx_text *t, const agg *a, const gx_facet_answer *answer)
{
    const gx_figures *f = a->facet.n_sums ? gx_facet_figures(answer, 0, 0) : NULL;
    static const gx_figures none = {.type = GX_ATTRIBUTE_INT};
    if (a->kind == AGG_DISTINCT && !a->facet.n_sums) {
        gx_text_add_format(t, "{\"value\":%u}", answer->n);
        return;
    }
    f = f ? f : &none;
    if (a->kind == AGG_STATS || a->kind == AGG_PERCENTILES) {
        (a->kind == AGG_STATS ? put_stats : put_percentiles)(t, a, f);
        return;
    }
    gx_text_add_string(t, "{\"value\":");
    if (a->kind == AGG_MIN || a->kind == AGG_MAX)
        put_value(t, a, f, a->kind == AGG_MIN ? &f->least : &f->greatest);
    else if (a->kind == AGG_AVG)
        put_double(t, f, f->average * (a->typed_dates ? 1000 : 1), true);
    else if (a->kind == AGG_SUM)
        put_double(t, f, f->sum, false);
    else
        gx_text_add_number(t, a->kind == AGG_COUNT ? f->n : f->distinct);
    gx_text_add_string(t, "}");
}

bool aggs_write(gx_text *t, const aggs *a, const gx_facets *facets)
{
    for (uint32_t i = 0; i < a->n; ++i) {
        const gx_facet_answer *f = gx_facets_get(facets, i);
        gx_text_add_string(t, i ? "," : ",\"aggregations\":{");
        gx_text_add_json(t, a->all[i].name, strlen(a->all[i].name));
        if (a->all[i].kind >= AGG_MIN) {
            gx_text_add_string(t, ":");
            put_metric(t, &a->all[i], f);
            continue;
        }
        gx_text_add_string(t, ":{\"buckets\":[");
        if (a->all[i].kind == AGG_TERMS)
            put_terms(t, &a->all[i], f);
        else if (!put_intervals(t, &a->all[i], f))
            return false;
        else
            gx_text_add_string(t, "]}");
    }
    gx_text_add_string(t, a->n ? "}" : "");
    return true;
}
