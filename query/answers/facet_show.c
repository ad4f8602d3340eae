/* facet_show.c: the groups of a facet, as texts. */
#include "query/answers/facet_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/heap.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/attributes/types.h"

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to count a facet");
}

static bool put_text(gx_facet_made *a, uint32_t i, const char *p, size_t n)
{
    if (!gx_reserve(&a->texts, &a->max_texts, a->n_texts + n + 1, 1))
        return false;
    if (n)
        memcpy(a->texts + a->n_texts, p, n);
    a->texts[a->n_texts + n] = 0;
    a->at[i] = a->n_texts;
    a->n_texts += n + 1;
    a->groups[i].len = n;
    return true;
}

/* "2019", "2019-05", "2019-05-31": the year, month or day that begins with this second. */
static int print_period(char *text, size_t size, gx_facet_grouping by, int64_t first)
{
    const gx_day d = gx_day_of(first / 86400 - (first % 86400 < 0));
    int n = snprintf(text, size, "%04lld", (long long)d.year);
    if (by >= GX_FACET_MONTHS)
        n += snprintf(text + n, size - (size_t)n, "-%02d", d.month);
    if (by == GX_FACET_DAYS)
        n += snprintf(text + n, size - (size_t)n, "-%02d", d.day);
    return n;
}

static int print_range(char *text, size_t size, const char *low, const char *high, bool open)
{
    return strcmp(low, high) == 0 && !open ? snprintf(text, size, "%s", low)
                                           : snprintf(text, size, "[%s TO %s%c", low, high, open ? '}' : ']');
}

/* The text of a group of numbers. */
static int print_group(const gx_facet_count *c, const gx_group_range *r, char *text, size_t size)
{
    char low[GX_VALUE_TEXT], high[GX_VALUE_TEXT];
    const gx_facet_grouping by = c->facet.grouping;
    if (by >= GX_FACET_YEARS && by <= GX_FACET_DAYS)
        return print_period(text, size, by, r->first);
    const gx_type *type = gx_type_of(c->type);
    type->print(gx_value_bits(c->type, &(gx_value){.number = r->first, .real = r->low}), low);
    if (type->has_no_range)
        return snprintf(text, size, "%s", low);
    type->print(gx_value_bits(c->type, &(gx_value){.number = r->last, .real = r->high}), high);
    if (c->type == GX_ATTRIBUTE_DATE && !strchr(high, 'T')) /* the day would mean its last second */
        strcat(high, "T00:00:00Z");
    return print_range(text, size, low, high, r->open);
}

static bool put_group(gx_facet_made *a, uint32_t i, const gx_facet_count *c, const gx_counted_group *g)
{
    char text[2 * GX_VALUE_TEXT + 16];
    a->groups[i].count = g->count;
    if (c->facet.grouping == GX_FACET_ALL)
        return put_text(a, i, "", 0);
    if (gx_is_keyword(c->type))
        return put_text(a, i, c->strings[g->key].p, c->strings[g->key].len);
    const gx_group_range r = gx_facet_group_of(c, g->key);
    a->groups[i].first = r.first;
    a->groups[i].last = r.last;
    a->groups[i].low = r.low;
    a->groups[i].high = r.high;
    return put_text(a, i, text, (size_t)print_group(c, &r, text, sizeof text));
}

/* Whether group a comes after b by count. Keys are in the order of values. */
static bool is_after(gx_counted_group a, gx_counted_group b)
{
    return a.count != b.count ? a.count < b.count : a.key > b.key;
}

static int by_count(const void *x, const void *y)
{
    const gx_counted_group a = *(const gx_counted_group *)x, b = *(const gx_counted_group *)y;
    return is_after(a, b) ? 1 : is_after(b, a) ? -1 : 0;
}

GX_DEFINE_SIFT_DOWN(sift_down, gx_counted_group, is_after)

/* The first n groups by count come first, in order. The heap's first is the last of them. */
static void select_groups(gx_counted_group *groups, size_t n_groups, size_t n)
{
    for (size_t i = n / 2; n < n_groups && i-- > 0;)
        sift_down(groups, n, i);
    for (size_t i = n; i < n_groups; ++i) {
        if (!is_after(groups[0], groups[i]))
            continue;
        groups[0] = groups[i];
        sift_down(groups, n, 0);
    }
    qsort(groups, n, sizeof *groups, by_count);
}

gx_status gx_facet_show(gx_facet_made *a, gx_facet_count *c, const gx_column *column, uint64_t n_matches, gx_error *err)
{
    const size_t name_len = column ? column->name_len : 0;
    const size_t n = c->facet.n && c->facet.n < c->n_groups ? c->facet.n : c->n_groups;
    if (n > UINT32_MAX)
        return no_memory(err);
    if (c->facet.order == GX_FACET_BY_COUNT)
        select_groups(c->groups, c->n_groups, n);
    char *name = malloc(name_len + 1);
    a->groups = calloc(n + 1, sizeof *a->groups);
    a->at = malloc((n + 1) * sizeof *a->at);
    bool good = name && a->groups && a->at;
    for (uint32_t i = 0; i < n && good; ++i)
        good = put_group(a, i, c, &c->groups[i]);
    if (!good) {
        free(name);
        return no_memory(err);
    }
    for (size_t i = 0; i < n; ++i)
        a->groups[i].text = a->texts + a->at[i];
    if (name_len)
        memcpy(name, column->name, name_len);
    name[name_len] = 0;
    a->shown = (gx_facet_answer){.name = name,
                                 .name_len = name_len,
                                 .type = c->type,
                                 .n_present = c->n_present,
                                 .n_missing = n_matches - c->n_present,
                                 .n_groups = c->n_groups,
                                 .n = (uint32_t)n,
                                 .groups = a->groups};
    return GX_OK;
}
