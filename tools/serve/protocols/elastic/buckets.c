/* buckets.c: what counted aggregations becomes buckets and figures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/serve/protocols/elastic/elastic.h"

static bool put_subs(gx_text *t, const agg *a, const gx_facet_answer *f, uint32_t g);

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

/* The bucket of an interval: group g of the facet; UINT32_MAX: one without documents. */
static bool put_interval(gx_text *t, const agg *a, int64_t place, const gx_facet_answer *f, uint32_t g)
{
    if (a->kind == AGG_DATES)
        put_date(t, a, place);
    else
        gx_text_add_format(t, "{\"key\":%.17g", (double)place * a->facet.width);
    gx_text_add_format(t, ",\"doc_count\":%llu", (unsigned long long)(g == UINT32_MAX ? 0 : f->groups[g].count));
    const bool good = put_subs(t, a, f, g);
    gx_text_add_string(t, "}");
    return good;
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
            if (!put_interval(t, a, next, f, UINT32_MAX))
                return false;
        }
        next = place + 1;
        if (f->groups[i].count < a->min_count)
            continue;
        gx_text_add_string(t, n++ ? "," : "");
        if (!put_interval(t, a, place, f, i))
            return false;
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

static bool put_terms(gx_text *t, const agg *a, const gx_facet_answer *f)
{
    bool good = true;
    uint64_t n = 0, shown = 0;
    for (uint32_t i = 0; i < f->n && good; ++i) {
        shown += f->groups[i].count;
        if (f->groups[i].count < a->min_count)
            continue;
        gx_text_add_string(t, n++ ? "," : "");
        put_key(t, f, &f->groups[i]);
        gx_text_add_format(t, ",\"doc_count\":%llu", (unsigned long long)f->groups[i].count);
        good = put_subs(t, a, f, i);
        gx_text_add_string(t, "}");
    }
    gx_text_add_format(t, "],\"doc_count_error_upper_bound\":0,\"sum_other_doc_count\":%llu}",
                       (unsigned long long)(f->n_present > shown ? f->n_present - shown : 0));
    return good;
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

static void put_metric(gx_text *t, const agg *a, const gx_figures *f)
{
    static const gx_figures none = {.type = GX_ATTRIBUTE_INT};
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

/* One that a facet answers: its buckets, or how many different keywords there are. */
static bool put_facet(gx_text *t, const agg *a, const gx_facet_answer *f)
{
    if (a->kind == AGG_DISTINCT) {
        gx_text_add_format(t, "{\"value\":%u}", f->n);
        return true;
    }
    gx_text_add_string(t, "{\"buckets\":[");
    if (a->kind == AGG_TERMS)
        return put_terms(t, a, f);
    const bool good = put_intervals(t, a, f);
    gx_text_add_string(t, "]}");
    return good;
}

/* ,"price":{"value":7.5}: what stands below a bucket, group g of a facet; UINT32_MAX: one without documents. */
static bool put_subs(gx_text *t, const agg *a, const gx_facet_answer *f, uint32_t g)
{
    static const gx_facet_answer nothing = {.type = GX_ATTRIBUTE_INT};
    uint32_t sum = 0;
    for (uint32_t i = 0; i < a->n_subs; ++i) {
        const agg *sub = &a->subs[i];
        gx_text_add_string(t, ",");
        gx_text_add_json(t, sub->name, strlen(sub->name));
        gx_text_add_string(t, ":");
        if (sub->facet.n_sums) {
            put_metric(t, sub, g == UINT32_MAX ? NULL : gx_facet_figures(f, g, sum++));
            continue;
        }
        const gx_facet_answer *inner = g == UINT32_MAX ? NULL : gx_facet_inner(f, g);
        if (!put_facet(t, sub, inner ? inner : &nothing))
            return false;
    }
    return true;
}

static bool put_list(gx_text *t, exchange *x, const agg *all, uint32_t n, const gx_facets *facets, fault *f);

/* ---- ranges and filters ---- */

/* A number as Elasticsearch writes it in keys: 10.0 */
static void put_bound_text(gx_text *t, const json_t *bound)
{
    char text[40];
    if (!bound) {
        gx_text_add_string(t, "*");
    } else if (json_is_string(bound)) {
        gx_text_add(t, json_string_value(bound), json_string_length(bound));
    } else {
        snprintf(text, sizeof text, "%.15g", json_number_value(bound));
        gx_text_add_format(t, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
    }
}

static void put_part_key(gx_text *t, const agg_part *part)
{
    gx_text key = {0};
    if (part->key) {
        gx_text_add_json(t, part->key, strlen(part->key));
        return;
    }
    put_bound_text(&key, part->from);
    gx_text_add_string(&key, "-");
    put_bound_text(&key, part->to);
    gx_text_add_json(t, key.bytes ? key.bytes : "", key.len);
    t->failed = t->failed || key.failed;
    free(key.bytes);
}

static void put_bound(gx_text *t, const char *name, const json_t *bound)
{
    if (!bound)
        return;
    if (json_is_string(bound)) {
        gx_text_add_format(t, "\"%s_as_string\":", name);
        gx_text_add_json(t, json_string_value(bound), json_string_length(bound));
    } else {
        gx_text_add_format(t, "\"%s\":", name);
        put_bound_text(t, bound);
    }
    gx_text_add_string(t, ",");
}

static bool put_part(gx_text *t, exchange *x, const agg *a, const agg_part *part, fault *f)
{
    const search *s = &x->searches[part->search];
    if (s->status != GX_OK)
        return fault_set(f, http_status(s->status), "%s", s->error ? s->error : gx_status_name(s->status));
    const bool is_range = a->kind < AGG_FILTER;
    if (a->keyed) {
        put_part_key(t, part);
        gx_text_add_string(t, ":");
    }
    gx_text_add_string(t, "{");
    if (is_range && !a->keyed) {
        gx_text_add_string(t, "\"key\":");
        put_part_key(t, part);
        gx_text_add_string(t, ",");
    }
    put_bound(t, "from", part->from);
    put_bound(t, "to", part->to);
    gx_text_add_format(t, "\"doc_count\":%llu", (unsigned long long)s->n_matches);
    gx_text_add_string(t, a->n_subs ? "," : "");
    const bool good = put_list(t, x, a->subs, a->n_subs, s->facets, f);
    gx_text_add_string(t, "}");
    return good;
}

static bool put_parts(gx_text *t, exchange *x, const agg *a, fault *f)
{
    if (a->kind == AGG_FILTER)
        return put_part(t, x, a, a->parts, f);
    gx_text_add_string(t, a->keyed ? "{\"buckets\":{" : "{\"buckets\":[");
    for (uint32_t i = 0; i < a->n_parts; ++i) {
        gx_text_add_string(t, i ? "," : "");
        if (!put_part(t, x, a, &a->parts[i], f))
            return false;
    }
    gx_text_add_string(t, a->keyed ? "}}" : "]}");
    return true;
}

/* ---- all of them ---- */

static bool put_list(gx_text *t, exchange *x, const agg *all, uint32_t n, const gx_facets *facets, fault *f)
{
    uint32_t facet = 0;
    for (uint32_t i = 0; i < n; ++i) {
        gx_text_add_string(t, i ? "," : "");
        gx_text_add_json(t, all[i].name, strlen(all[i].name));
        gx_text_add_string(t, ":");
        if (all[i].kind >= AGG_RANGE) {
            if (!put_parts(t, x, &all[i], f))
                return false;
            continue;
        }
        const gx_facet_answer *answer = gx_facets_get(facets, facet++);
        if (all[i].facet.n_sums && all[i].kind >= AGG_MIN)
            put_metric(t, &all[i], gx_facet_figures(answer, 0, 0));
        else if (!put_facet(t, &all[i], answer))
            return fault_set(f, 400,
                             "an aggregation has too many buckets; give min_doc_count 1 or a larger interval");
    }
    return true;
}

bool aggs_write(gx_text *t, exchange *x, const aggs *a, const gx_facets *facets, fault *f)
{
    if (!a->n)
        return true;
    gx_text_add_string(t, ",\"aggregations\":{");
    if (!put_list(t, x, a->all, a->n, facets, f))
        return false;
    gx_text_add_string(t, "}");
    return true;
}
