/* aggs.c: terms, histogram and date_histogram become facets; min, max, sum, avg, stats, value_count, cardinality and
 * percentiles become figures of all matches, or, below one of these, of each group. range, date_range, filter and
 * filters become searches, one a bucket, which count their matches and have facets for what stands below. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols/elastic/elastic.h"

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

/* Days, which are as long as those of the calendar in UTC. */
static bool read_fixed(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    ((agg *)to)->facet.grouping = GX_FACET_DAYS;
    return reader_string(r, value, &text, &len) &&
           (gx_word_index("1d|24h|1440m|86400s", text, len) >= 0 || reader_fail(r, "only 1d is available"));
}

static bool read_zone(reader *r, const json_t *value, void *to)
{
    const char *text;
    size_t len;
    (void)to;
    return reader_string(r, value, &text, &len) &&
           (gx_word_index("UTC|Z|+00:00|Etc/UTC", text, len) >= 0 || reader_fail(r, "only UTC is available"));
}

/* How many terms each shard answers with: ours are exact in any case. */
static bool read_shard_size(reader *r, const json_t *value, void *to)
{
    uint64_t n;
    (void)to;
    return reader_count(r, value, 1, UINT32_MAX, &n);
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
static bool read_kind(reader *r, agg_kind kind, const json_t *value, exchange *x, agg *a)
{
    static const member members[][8] = {
        {{"field", read_field},
         {"size", read_size},
         {"order", read_order},
         {"min_doc_count", read_minimum},
         {"shard_size", read_shard_size}},
        {{"field", read_field}, {"interval", read_interval}, {"min_doc_count", read_minimum}},
        {{"field", read_field},
         {"calendar_interval", read_calendar},
         {"interval", read_calendar},
         {"fixed_interval", read_fixed},
         {"time_zone", read_zone},
         {"min_doc_count", read_minimum}},
    };
    static const size_t n[] = {5, 3, 6};
    const gx_index *ix = x->at->ix;
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
    if (elastic_attribute(ix, a->facet.name, &info) == UINT32_MAX)
        return reader_fail(r, "the index has no attribute '%.60s'", a->facet.name);
    a->typed_dates = info.type == GX_ATTRIBUTE_DATE;
    if (kind == AGG_TERMS && a->typed_dates)
        return reader_fail(r, "the values of a date are counted by date_histogram");
    if (gx_facets_check(ix, &a->facet, 1, &err))
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
static bool read_metric(reader *r, agg_kind kind, const json_t *value, exchange *x, agg *a)
{
    const gx_index *ix = x->at->ix;
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
    if (elastic_attribute(ix, a->facet.name, &info) == UINT32_MAX)
        return reader_fail(r, "the index has no attribute '%.60s'", a->facet.name);
    a->typed_dates = info.type == GX_ATTRIBUTE_DATE;
    const bool numeric = info.type == GX_ATTRIBUTE_INT || info.type == GX_ATTRIBUTE_FLOAT || a->typed_dates;
    if (!numeric && kind == AGG_DISTINCT) {
        a->facet.n = 0; /* all its values, which are counted */
        return gx_facets_check(ix, &a->facet, 1, &err) == GX_OK || reader_fail(r, "%s", err.text);
    }
    a->sum.name = a->facet.name;
    a->sum.name_len = a->facet.name_len;
    a->sum.figures = figures[kind - AGG_MIN];
    a->facet.name = NULL;
    a->facet.name_len = 0;
    a->facet.grouping = GX_FACET_ALL;
    a->facet.sums = &a->sum;
    a->facet.n_sums = 1;
    const gx_status st = gx_facets_check(ix, &a->facet, 1, &err);
    a->facet.sums = NULL; /* the aggregation may move */
    return st == GX_OK || reader_fail(r, "%s", err.text);
}

/* ---- ranges and filters ---- */

typedef struct parts_reader {
    agg *a;
    exchange *x;
    agg_part *part;
    bool has_field;
} parts_reader;

static agg_part *add_part(reader *r, agg *a)
{
    if (a->n_parts == MAX_PARTS) {
        reader_fail(r, "there are at most %d buckets", MAX_PARTS);
        return NULL;
    }
    agg_part *parts = realloc(a->parts, (a->n_parts + 1) * sizeof *parts);
    if (!parts) {
        fault_set(r->fault, 503, "no memory for the request");
        return NULL;
    }
    a->parts = parts;
    parts[a->n_parts] = (agg_part){0};
    return &parts[a->n_parts++];
}

static bool read_part_key(reader *r, const json_t *value, void *to)
{
    size_t len;
    return reader_string(r, value, &((parts_reader *)to)->part->key, &len);
}

static bool read_part_from(reader *r, const json_t *value, void *to)
{
    (void)r;
    ((parts_reader *)to)->part->from = json_is_null(value) ? NULL : value;
    return true;
}

static bool read_part_to(reader *r, const json_t *value, void *to)
{
    (void)r;
    ((parts_reader *)to)->part->to = json_is_null(value) ? NULL : value;
    return true;
}

/* The condition of a range, as the query "range" reads it; what that finds wrong is said of the range. */
static bool set_range(reader *r, parts_reader *p)
{
    agg_part *part = p->part;
    const agg *a = p->a;
    fault own = {0};
    dsl_query q = {0};
    json_t *bounds = json_object(), *range = json_object(), *query = json_object();
    json_object_set(bounds, "gte", part->from ? (json_t *)part->from : json_null());
    json_object_set(bounds, "lt", part->to ? (json_t *)part->to : json_null());
    json_object_set(range, a->facet.name, bounds);
    json_object_set(query, "range", range);
    reader inner = {.fault = &own, .body = "", .root = query};
    const bool good = dsl_read_filter(&inner, p->x, query, &q);
    part->conditions = q.conditions;
    q.conditions = (gx_text){0};
    dsl_free(&q);
    json_decref(bounds);
    json_decref(range);
    json_decref(query);
    return good || reader_fail(r, "%s", own.text);
}

static bool read_range(reader *r, const json_t *value, void *to)
{
    static const member members[] = {{"key", read_part_key}, {"from", read_part_from}, {"to", read_part_to}};
    parts_reader *p = to;
    p->part = add_part(r, p->a);
    return p->part && reader_object(r, value, members, 3, p);
}

static bool read_ranges_member(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_range, to) &&
           (json_array_size(value) || reader_fail(r, "there is no range in it"));
}

static bool read_ranges_field(reader *r, const json_t *value, void *to)
{
    return read_field(r, value, ((parts_reader *)to)->a);
}

static bool read_keyed(reader *r, const json_t *value, void *to)
{
    return reader_bool(r, value, &((parts_reader *)to)->a->keyed);
}

static bool read_ranges(reader *r, agg_kind kind, const json_t *value, exchange *x, agg *a)
{
    static const member members[] = {
        {"field", read_ranges_field}, {"ranges", read_ranges_member}, {"keyed", read_keyed}};
    parts_reader p = {.a = a, .x = x};
    gx_attribute_info info;
    if (!reader_object(r, value, members, 3, &p))
        return false;
    if (!a->facet.name || !a->n_parts)
        return reader_fail(r, "'%s' is missing", a->facet.name ? "ranges" : "field");
    if (elastic_attribute(x->at->ix, a->facet.name, &info) == UINT32_MAX)
        return reader_fail(r, "the index has no attribute '%.60s'", a->facet.name);
    a->typed_dates = info.type == GX_ATTRIBUTE_DATE;
    if (a->typed_dates != (kind == AGG_DATE_RANGE) ||
        (!a->typed_dates && info.type != GX_ATTRIBUTE_INT && info.type != GX_ATTRIBUTE_FLOAT))
        return reader_fail(r, "ranges are of numbers, and date_range of a date; '%.60s' is neither here",
                           a->facet.name);
    reader_enter(r, "ranges", 0);
    for (uint32_t i = 0; i < a->n_parts; ++i) {
        reader_enter(r, NULL, i);
        p.part = &a->parts[i];
        if (!set_range(r, &p))
            return false;
        reader_leave(r);
    }
    reader_leave(r);
    return true;
}

static bool read_filter_part(reader *r, const char *key, const json_t *value, exchange *x, agg *a)
{
    agg_part *part = add_part(r, a);
    dsl_query q = {0};
    const bool good = part && dsl_read_filter(r, x, value, &q);
    if (good) {
        part->key = key;
        part->conditions = q.conditions;
        q.conditions = (gx_text){0};
    }
    dsl_free(&q);
    return good;
}

static bool read_filters_member(reader *r, const json_t *value, void *to)
{
    parts_reader *p = to;
    p->a->keyed = json_is_object(value);
    if (p->a->keyed) {
        for (void *i = json_object_iter((json_t *)value); i; i = json_object_iter_next((json_t *)value, i)) {
            reader_enter(r, json_object_iter_key(i), 0);
            if (!read_filter_part(r, json_object_iter_key(i), json_object_iter_value(i), p->x, p->a))
                return false;
            reader_leave(r);
        }
        return p->a->n_parts || reader_fail(r, "there is no filter in it");
    }
    if (!json_is_array(value) || !json_array_size(value))
        return reader_fail(r, "an object or an array of queries is expected");
    for (size_t i = 0; i < json_array_size(value); ++i) {
        reader_enter(r, NULL, i);
        if (!read_filter_part(r, NULL, json_array_get(value, i), p->x, p->a))
            return false;
        reader_leave(r);
    }
    return true;
}

static bool read_filters(reader *r, agg_kind kind, const json_t *value, exchange *x, agg *a)
{
    static const member members[] = {{"filters", read_filters_member}};
    parts_reader p = {.a = a, .x = x};
    if (kind == AGG_FILTER)
        return read_filter_part(r, NULL, value, x, a);
    return reader_object(r, value, members, 1, &p) && (a->n_parts || reader_fail(r, "'filters' is missing"));
}

/* ---- all of them ---- */

static bool is_metric(const agg *a)
{
    return a->kind >= AGG_MIN && a->kind <= AGG_PERCENTILES;
}

static bool has_parts(const agg *a)
{
    return a->kind >= AGG_RANGE;
}

/* What is counted of each group: figures of its matches, and at most one facet of them. */
static bool set_group(const agg *a, gx_facet *facet, gx_facet *inner, gx_sum *sums)
{
    *facet = a->facet;
    for (uint32_t i = 0; i < a->n_subs; ++i) {
        if (a->subs[i].facet.n_sums) {
            sums[facet->n_sums++] = a->subs[i].sum;
            facet->sums = sums;
        } else if (facet->inner) {
            return false;
        } else {
            *inner = a->subs[i].facet;
            facet->inner = inner;
        }
    }
    return true;
}

static bool read_list(reader *r, const json_t *value, exchange *x, const agg *parent, agg **out, uint32_t *n);

/* "aggs" below one that has buckets. */
static bool read_subs(reader *r, const json_t *value, exchange *x, agg *a)
{
    gx_facet facet, inner;
    gx_sum sums[MAX_AGGS];
    gx_error err = {0};
    if (is_metric(a))
        return reader_fail(r, "'%.60s' has no buckets for aggregations", a->name);
    if (!read_list(r, value, x, a, &a->subs, &a->n_subs))
        return false;
    if (has_parts(a))
        return true;
    if (!set_group(a, &facet, &inner, sums))
        return reader_fail(r, "below one there is at most one with buckets of its own, or of keywords' cardinality");
    return gx_facets_check(x->at->ix, &facet, 1, &err) == GX_OK || reader_fail(r, "%s", err.text);
}

static bool read_agg(reader *r, const char *name, const json_t *value, exchange *x, const agg *parent, agg *a)
{
    static const char kinds[] = "terms|histogram|date_histogram|min|max|sum|avg|stats|value_count|cardinality|"
                                "percentiles|range|date_range|filter|filters";
    const json_t *below = NULL;
    const char *below_name = NULL;
    *a = (agg){.name = name};
    if (!json_is_object(value) || json_object_size(value) == 0)
        return reader_fail(r, "an object with the kind of aggregation is expected");
    void *iter = json_object_iter((json_t *)value);
    for (bool known = false; iter; iter = json_object_iter_next((json_t *)value, iter)) {
        const char *kind = json_object_iter_key(iter);
        const int i = gx_word_index(kinds, kind, strlen(kind));
        const json_t *body = json_object_iter_value(iter);
        if (strcmp(kind, "aggs") == 0 || strcmp(kind, "aggregations") == 0) {
            below = body;
            below_name = kind;
            continue;
        }
        reader_enter(r, kind, 0);
        if (i < 0)
            return reader_fail(r, "the aggregation [%.60s] is not available in this version of gpuidx; there are %s",
                               kind, kinds);
        if (known)
            return reader_fail(r, "an aggregation has one kind");
        known = true;
        a->kind = (agg_kind)i;
        if (parent && has_parts(a))
            return reader_fail(r, "[%.60s] is not available below another aggregation", kind);
        if (!(has_parts(a) ? i < AGG_FILTER ? read_ranges : read_filters
              : is_metric(a) ? read_metric
                             : read_kind)(r, (agg_kind)i, body, x, a))
            return false;
        reader_leave(r);
    }
    if (!below)
        return true;
    reader_enter(r, below_name, 0);
    if (parent && !has_parts(parent))
        return reader_fail(r, "aggregations in aggregations in aggregations are not available");
    if (!read_subs(r, below, x, a))
        return false;
    reader_leave(r);
    return true;
}

static bool read_list(reader *r, const json_t *value, exchange *x, const agg *parent, agg **out, uint32_t *n)
{
    if (!json_is_object(value))
        return reader_fail(r, "an object of aggregations is expected");
    const size_t size = json_object_size(value);
    if (size > MAX_AGGS)
        return reader_fail(r, "there are at most %d aggregations", MAX_AGGS);
    if (*out)
        return reader_fail(r, "aggs and aggregations: one of them");
    if (!(*out = calloc(size + 1, sizeof **out)))
        return fault_set(r->fault, 503, "no memory for the request");
    for (void *i = json_object_iter((json_t *)value); i; i = json_object_iter_next((json_t *)value, i)) {
        reader_enter(r, json_object_iter_key(i), 0);
        if (!read_agg(r, json_object_iter_key(i), json_object_iter_value(i), x, parent, &(*out)[(*n)++]))
            return false;
        reader_leave(r);
    }
    return true;
}

bool aggs_read(reader *r, const json_t *value, void *to)
{
    aggs *a = to;
    return read_list(r, value, a->x, NULL, &a->all, &a->n);
}

static void free_list(agg *all, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        free_list(all[i].subs, all[i].n_subs);
        for (uint32_t k = 0; k < all[i].n_parts; ++k)
            free(all[i].parts[k].conditions.bytes);
        free(all[i].parts);
    }
    free(all);
}

void aggs_free(aggs *a)
{
    free_list(a->all, a->n);
}

/* ---- from aggregations to what counts them ---- */

bool aggs_set_facets(exchange *x, const agg *all, uint32_t n, plan *p)
{
    uint32_t n_sums = 0, n_facets = 0;
    for (uint32_t i = 0; i < n; ++i)
        n_sums += 1 + all[i].n_subs;
    gx_facet *facets = n ? malloc(n * 2 * sizeof *facets + n_sums * sizeof(gx_sum)) : NULL;
    if (n && !facets)
        return fault_set(&x->fault, 503, "no memory for the request");
    gx_facet *inner = facets + n; /* all in one allocation, which the plan frees */
    gx_sum *sums = (gx_sum *)(inner + n);
    for (uint32_t i = 0; i < n; ++i) {
        gx_facet *f = &facets[n_facets];
        if (has_parts(&all[i]))
            continue;
        if (is_metric(&all[i])) {
            *f = all[i].facet;
            *sums = all[i].sum;
            f->sums = f->n_sums ? sums++ : NULL;
        } else {
            set_group(&all[i], f, &inner[n_facets], sums);
            sums += f->n_sums;
        }
        ++n_facets;
    }
    p->facets = facets;
    p->n_facets = n_facets;
    return true;
}

static bool add_search(exchange *x, const agg *a, agg_part *part, size_t search_number, const gx_text *conditions)
{
    const size_t number = x->n_plans;
    gx_text both = {0};
    gx_error err = {0};
    plan *p = exchange_add_plan(x);
    if (!p)
        return false;
    p->setup = x->plans[x->searches[search_number].plan_number].setup;
    p->setup.options.k = 1;
    p->view = view_hold(x->plans[x->searches[search_number].plan_number].view);
    p->count = true;
    const gx_text *parts[] = {conditions, &part->conditions};
    for (size_t i = 0; i < 2; ++i)
        if (parts[i]->len) {
            gx_text_add_string(&both, both.len ? " AND (" : "(");
            gx_text_add(&both, parts[i]->bytes, parts[i]->len);
            gx_text_add_string(&both, ")");
        }
    const gx_status st = both.failed ? GX_ENOMEM
                                     : native_open_filter(x, both.len ? both.bytes : NULL, both.len, &p->filter, &err);
    free(both.bytes);
    if (st != GX_OK)
        return fault_set(&x->fault, http_status(st), "%s", st == GX_ENOMEM ? "no memory for the request" : err.text);
    search *s = aggs_set_facets(x, a->subs, a->n_subs, p) ? exchange_add_search(x, number) : NULL;
    if (!s)
        return false;
    const search *like = &x->searches[search_number];
    s->text = like->text;
    s->len = like->len;
    s->all = like->all;
    part->search = x->n_searches - 1;
    return true;
}

bool aggs_add_searches(exchange *x, aggs *a, size_t search_number, const gx_text *conditions)
{
    for (uint32_t i = 0; i < a->n; ++i)
        for (uint32_t k = 0; k < a->all[i].n_parts; ++k)
            if (!add_search(x, &a->all[i], &a->all[i].parts[k], search_number, conditions))
                return false;
    return true;
}
