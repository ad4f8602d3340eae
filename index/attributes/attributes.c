/* attributes.c: texts to values of attributes. */
#include "index/attributes/attributes.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/text/ascii.h"
#include "engine/text/c_locale.h"
#include "engine/text/edit_distance.h"
#include "index/parts.h"

static bool is_name_start(char c)
{
    return gx_is_letter(c) || c == '_';
}

const char *gx_attribute_name_fault(const char *name, size_t len)
{
    static const char *const taken[] = {"id", "title", "text", "has", "AND", "OR", "NOT", "TO"};
    if (len == 0)
        return "is empty";
    if (len > GX_MAX_ATTRIBUTE_NAME)
        return "has more than 64 bytes";
    if (!is_name_start(name[0]))
        return "does not begin with a letter or _";
    for (size_t i = 1; i < len; ++i)
        if (!is_name_start(name[i]) && !gx_is_digit(name[i]) && name[i] != '-' && name[i] != '.')
            return "has a character that is neither letter nor digit nor one of _ - .";
    for (size_t i = 0; i < sizeof taken / sizeof *taken; ++i)
        if (strlen(taken[i]) == len && memcmp(taken[i], name, len) == 0)
            return "has another meaning and cannot be the name of an attribute";
    return NULL;
}

/* ---- numbers ---- */

const char *gx_parse_int(const char *p, size_t n, int64_t *out)
{
    const bool minus = n > 0 && *p == '-';
    const uint64_t most = (uint64_t)INT64_MAX + minus;
    uint64_t x = 0;
    bool fits = true;
    size_t i = n > 0 && (*p == '-' || *p == '+');
    if (i == n)
        return "is no whole number";
    for (; i < n; ++i) {
        if (!gx_is_digit(p[i]))
            return "is no whole number";
        const uint64_t digit = (uint64_t)(p[i] - '0');
        fits = fits && x <= (most - digit) / 10;
        x = fits ? 10 * x + digit : x;
    }
    if (!fits)
        return "is outside the range of 64 bits";
    *out = minus ? (int64_t)(0 - x) : (int64_t)x;
    return NULL;
}

/* Whether the text is [+-]digits[.digits][e[+-]digits], with a digit before or behind the point. */
static bool is_decimal(const char *p, size_t n)
{
    size_t i = n > 0 && (*p == '-' || *p == '+'), digits = 0, exponent = 0;
    for (; i < n && gx_is_digit(p[i]); ++i)
        ++digits;
    if (i < n && p[i] == '.')
        for (++i; i < n && gx_is_digit(p[i]); ++i)
            ++digits;
    if (digits == 0 || i == n)
        return digits > 0;
    if ((p[i] | 32) != 'e')
        return false;
    for (i += 1 + (i + 1 < n && (p[i + 1] == '-' || p[i + 1] == '+')); i < n && gx_is_digit(p[i]); ++i)
        ++exponent;
    return exponent > 0 && i == n;
}

const char *gx_parse_float(const char *p, size_t n, double *out)
{
    char text[400];
    if (!is_decimal(p, n))
        return "is no number";
    if (n >= sizeof text)
        return "is a number of too many digits";
    memcpy(text, p, n);
    text[n] = 0;
    *out = gx_strtod(text, NULL);
    if (!isfinite(*out))
        return "is outside the range of a double";
    if (*out == 0)
        *out = 0; /* -0 and 0 are one value */
    return NULL;
}

const char *gx_parse_bool(const char *p, size_t n, bool *out)
{
    *out = (n == 4 && memcmp(p, "true", 4) == 0) || (n == 1 && *p == '1');
    return *out || (n == 5 && memcmp(p, "false", 5) == 0) || (n == 1 && *p == '0') ? NULL : "is neither true nor false";
}

/* ---- dates ---- */

/* A year begins with March here, so that a leap day is the last one of its year. An era has 400 years. */
int64_t gx_days_to(int64_t year, int month, int day)
{
    const int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
    const int64_t of_era = y - 400 * era, day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return 146097 * era + 365 * of_era + of_era / 4 - of_era / 100 + day_of_year - 719468;
}

gx_day gx_day_of(int64_t days)
{
    const int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - 146097 * era;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t day_of_year = of_era - (365 * year + year / 4 - year / 100);
    const int month = (int)((5 * day_of_year + 2) / 153); /* 0: March */
    return (gx_day){400 * era + year + (month >= 10), month + (month < 10 ? 3 : -9),
                    (int)(day_of_year - (153 * month + 2) / 5 + 1)};
}

/* n digits at *p as a number, taken; -1: there are other characters. */
static int take_digits(const char **p, const char *end, int n)
{
    int x = 0;
    if (end - *p < n)
        return -1;
    for (int i = 0; i < n; ++i, ++*p) {
        if (!gx_is_digit(**p))
            return -1;
        x = 10 * x + (**p - '0');
    }
    return x;
}

static bool take(const char **p, const char *end, char c)
{
    const bool there = *p < end && **p == c;
    *p += there;
    return there;
}

static int days_in(int year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* Digits behind the point of a second: whether they are a fraction above 0. false: there are none. */
static bool take_fraction(const char **p, const char *end, bool *fraction)
{
    const char *begin = *p;
    while (*p < end && gx_is_digit(**p))
        *fraction = *(*p)++ != '0' || *fraction;
    return *p > begin;
}

/* "12:30", "12:30:59" or "12:30:59.25", and a zone. *first is without the fraction of a second. */
static const char *take_time(const char **p, const char *end, int64_t *first, int64_t *last, bool *fraction)
{
    static const char *const fault = "is no date: its time is not as in 12:30:00Z or 12:30:00+02:00";
    const int hour = take_digits(p, end, 2);
    const int minute = take(p, end, ':') ? take_digits(p, end, 2) : -1;
    int second = 0;
    if (hour < 0 || minute < 0)
        return fault;
    const bool seconds = take(p, end, ':');
    if (seconds && (second = take_digits(p, end, 2)) < 0)
        return fault;
    if (seconds && take(p, end, '.') && !take_fraction(p, end, fraction))
        return fault;
    if (hour > 23 || minute > 59 || second > 59)
        return "is no date: there is no such time";
    *first += 3600 * hour + 60 * minute + second;
    *last = *first + (seconds ? 0 : 59);
    if (take(p, end, 'Z') || *p == end)
        return NULL;
    const int sign = take(p, end, '+') ? 1 : take(p, end, '-') ? -1 : 0;
    const int zone_hour = sign ? take_digits(p, end, 2) : -1;
    take(p, end, ':');
    const int zone_minute = zone_hour >= 0 ? take_digits(p, end, 2) : -1;
    if (zone_minute < 0)
        return fault;
    if (zone_hour > 23 || zone_minute > 59)
        return "is no date: there is no such time zone";
    *first -= sign * (3600 * zone_hour + 60 * zone_minute);
    *last -= sign * (3600 * zone_hour + 60 * zone_minute);
    return NULL;
}

static const char *parse_date(const char *p, size_t n, int64_t *first, int64_t *last, bool *fraction)
{
    static const char *const fault = "is no date as in 2019-05-31 or 2019-05-31T12:30:00Z";
    const char *const end = p + n;
    int month = 1, day = 1, last_month = 12, last_day = 31;
    const int year = take_digits(&p, end, 4);
    if (year < 0)
        return fault;
    if (p < end) {
        if (!take(&p, end, '-') || (month = take_digits(&p, end, 2)) < 0)
            return fault;
        if (month < 1 || month > 12)
            return "is no date: there is no such month";
        last_month = month;
        last_day = days_in(year, month);
    }
    const bool whole_month = p == end;
    if (!whole_month) {
        if (!take(&p, end, '-') || (day = take_digits(&p, end, 2)) < 0)
            return fault;
        if (day < 1 || day > last_day)
            return "is no date: there is no such day";
        last_day = day;
    }
    *first = 86400 * gx_days_to(year, month, day);
    *last = 86400 * (gx_days_to(year, last_month, last_day) + 1) - 1;
    if (p == end)
        return NULL;
    if (!take(&p, end, 'T') && !take(&p, end, ' '))
        return fault;
    const char *why = take_time(&p, end, first, last, fraction);
    return why ? why : p == end ? NULL : fault;
}

bool gx_is_date(int64_t second)
{
    return second >= 86400 * gx_days_to(0, 1, 1) && second < 86400 * gx_days_to(10000, 1, 1);
}

static const char *parse_seconds(const char *p, size_t n, int64_t *first, int64_t *last, bool *fraction)
{
    const char *why = parse_date(p, n, first, last, fraction);
    return why ? why : gx_is_date(*first) && gx_is_date(*last) ? NULL : "is no date of the years 0000 to 9999 in UTC";
}

const char *gx_parse_date(const char *p, size_t n, int64_t *first, int64_t *last)
{
    bool fraction = false;
    return parse_seconds(p, n, first, last, &fraction);
}

const char *gx_parse_date_bound(const char *p, size_t n, int64_t *first, int64_t *last)
{
    bool fraction = false;
    const char *why = parse_seconds(p, n, first, last, &fraction);
    if (!why && fraction)
        ++*first;
    return why;
}

/* ---- values to texts ---- */

void gx_print_float(double x, char text[GX_VALUE_TEXT])
{
    for (int digits = 15; digits <= 17; ++digits) {
        gx_print(text, GX_VALUE_TEXT, "%.*g", digits, x);
        if (gx_strtod(text, NULL) == x)
            break;
    }
}

void gx_print_date(int64_t second, char text[GX_VALUE_TEXT])
{
    const int64_t before = second % 86400 < 0, days = second / 86400 - before, left = second % 86400 + 86400 * before;
    const gx_day d = gx_day_of(days);
    const int n = snprintf(text, GX_VALUE_TEXT, "%04lld-%02d-%02d", (long long)d.year, d.month, d.day);
    if (left)
        snprintf(text + n, GX_VALUE_TEXT - (size_t)n, "T%02d:%02d:%02dZ", (int)(left / 3600), (int)(left / 60 % 60),
                 (int)(left % 60));
}

/* ---- what an index has ---- */

/* The column whose name is nearest to one that no column has; NULL: none is near. */
static const gx_column *find_nearest(const gx_index *ix, const char *name, size_t len)
{
    const gx_column *nearest = NULL;
    uint32_t least = 3;
    for (uint32_t i = 0; i < ix->n_columns && len <= GX_MAX_ATTRIBUTE_NAME; ++i) {
        const gx_column *c = &ix->columns[i];
        const uint32_t d = gx_edit_distance(name, len, c->name, c->name_len);
        if (d < least && d < len) {
            least = d;
            nearest = c;
        }
    }
    return nearest;
}

uint32_t gx_column_find(const gx_index *ix, const char *name, size_t len, char why[GX_NO_ATTRIBUTE_TEXT])
{
    for (uint32_t i = 0; i < ix->n_columns; ++i) {
        const gx_column *c = &ix->columns[i];
        if (c->name_len == len && memcmp(c->name, name, len) == 0)
            return i;
    }
    const gx_column *nearest = find_nearest(ix, name, len);
    const int n = snprintf(why, GX_NO_ATTRIBUTE_TEXT, "the index has no attribute '%.*s'%s", (int)(len < 60 ? len : 60),
                           name, ix->n_columns == 0 ? ", nor any other" : "");
    if (nearest)
        snprintf(why + n, GX_NO_ATTRIBUTE_TEXT - (size_t)n, "; did you mean %.*s?", (int)nearest->name_len,
                 nearest->name);
    return UINT32_MAX;
}

uint32_t gx_index_n_attributes(const gx_index *ix)
{
    return ix->n_columns;
}

typedef struct string_range {
    const char *bytes;
    size_t len;
} string_range;

static void add_extreme(const gx_column *c, uint64_t raw, bool any, gx_attribute_info *info)
{
    if (c->type == GX_ATTRIBUTE_FLOAT) {
        double x;
        memcpy(&x, &raw, sizeof x);
        info->min_float = !any || x < info->min_float ? x : info->min_float;
        info->max_float = !any || x > info->max_float ? x : info->max_float;
    } else {
        const int64_t x = (int64_t)((uint64_t)c->base + raw);
        info->min_int = !any || x < info->min_int ? x : info->min_int;
        info->max_int = !any || x > info->max_int ? x : info->max_int;
    }
}

static void find_extremes(const gx_index *ix, const gx_column *c, const gx_deletes *deletes, gx_attribute_info *info)
{
    bool any = false;
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        const gx_value_span v = gx_column_values(c, d);
        if (!gx_column_has(c, d) || !gx_deletes_is_live(deletes, d))
            continue;
        add_extreme(c, gx_column_raw(c, v.begin), any, info); /* the least, then the greatest */
        add_extreme(c, gx_column_raw(c, v.end - 1), true, info);
        any = true;
    }
}

/* The strings of a column that live documents have, as part of those of a collection. */
static void mark_strings(const gx_part *p, const gx_column *c, uint8_t *used /* [n_strings] */)
{
    for (uint32_t d = 0; d < p->ix->n_docs; ++d) {
        if (!gx_deletes_is_live(p->deletes, d) || !gx_column_has(c, d))
            continue;
        const gx_value_span span = gx_column_values(c, d);
        for (uint64_t v = span.begin; v < span.end; ++v) {
            const uint64_t ordinal = gx_column_raw(c, v);
            if (ordinal < c->n_strings)
                used[ordinal] = 1;
        }
    }
}

static int by_string(const void *a, const void *b)
{
    const string_range *x = a, *y = b;
    const size_t n = x->len < y->len ? x->len : y->len;
    const int order = n ? memcmp(x->bytes, y->bytes, n) : 0;
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Different strings that live documents have in column i. GX_ENOMEM. */
static gx_status count_strings(const gx_index *ix, uint32_t i, uint32_t *n)
{
    uint64_t most = 1, kept = 0;
    for (uint32_t p = 0; p < ix->parts->n; ++p)
        most += ix->parts->parts[p].ix->columns[i].n_strings;
    string_range *all = malloc(most * sizeof *all);
    uint8_t *used = malloc(most);
    for (uint32_t p = 0; all && used && p < ix->parts->n; ++p) {
        const gx_part *part = &ix->parts->parts[p];
        const gx_column *c = &part->ix->columns[i];
        memset(used, 0, c->n_strings);
        mark_strings(part, c, used);
        for (uint32_t s = 0; s < c->n_strings; ++s)
            if (used[s]) {
                all[kept].bytes = gx_column_string(part->ix, c, s, &all[kept].len);
                ++kept;
            }
    }
    const bool ok = all && used;
    if (ok)
        qsort(all, kept, sizeof *all, by_string);
    *n = 0;
    for (uint64_t s = 0; ok && s < kept; ++s)
        *n += s == 0 || by_string(&all[s - 1], &all[s]) != 0;
    free(all);
    free(used);
    return ok ? GX_OK : GX_ENOMEM;
}

static void add_attribute(gx_attribute_info *whole, const gx_part *p, const gx_column *c)
{
    gx_attribute_info one = {.size = sizeof one};
    const bool had = whole->n_present != 0;
    for (uint32_t d = 0; d < p->ix->n_docs; ++d) {
        if (!gx_deletes_is_live(p->deletes, d) || !gx_column_has(c, d))
            continue;
        ++one.n_present;
        one.n_values += c->starts ? c->starts[d + 1] - c->starts[d] : 1;
    }
    if (one.n_present && !gx_is_keyword(c->type)) {
        find_extremes(p->ix, c, p->deletes, &one);
        whole->min_int = !had || one.min_int < whole->min_int ? one.min_int : whole->min_int;
        whole->max_int = !had || one.max_int > whole->max_int ? one.max_int : whole->max_int;
        whole->min_float = !had || one.min_float < whole->min_float ? one.min_float : whole->min_float;
        whole->max_float = !had || one.max_float > whole->max_float ? one.max_float : whole->max_float;
    }
    whole->n_documents += one.n_present;
    whole->n_present = whole->n_documents < UINT32_MAX ? (uint32_t)whole->n_documents : UINT32_MAX;
    whole->n_values += one.n_values;
}

static gx_status get_attribute_of_parts(const gx_index *ix, uint32_t i, gx_attribute_info *info)
{
    const gx_column *first = &ix->columns[i];
    gx_attribute_info whole = {
        .size = sizeof whole, .name = first->name, .name_len = first->name_len, .type = first->type};
    for (uint32_t p = 0; p < ix->parts->n; ++p) {
        const gx_part *part = &ix->parts->parts[p];
        gx_attribute_info one = {.size = sizeof one};
        const gx_status st = gx_index_get_attribute(part->ix, i, &one);
        if (st != GX_OK)
            return st;
        whole.bytes += one.bytes;
        whole.bitmap_bytes += one.bitmap_bytes;
        whole.encoding = p == 0 ? one.encoding : whole.encoding;
        whole.n_bins = p == 0 ? one.n_bins : whole.n_bins;
        add_attribute(&whole, part, &part->ix->columns[i]);
    }
    const gx_status st = gx_is_keyword(first->type) ? count_strings(ix, i, &whole.n_distinct) : GX_OK;
    return st != GX_OK ? st : gx_sized_write(info, &whole, sizeof whole, GX_SIZE_THROUGH(gx_attribute_info, max_float));
}

gx_status gx_index_get_attribute(const gx_index *ix, uint32_t i, gx_attribute_info *info)
{
    if (i >= ix->n_columns)
        return GX_ENOTFOUND;
    if (ix->parts)
        return get_attribute_of_parts(ix, i, info);
    const gx_column *c = &ix->columns[i];
    gx_attribute_info whole = {.size = sizeof whole,
                               .name = c->name,
                               .name_len = c->name_len,
                               .type = c->type,
                               .n_present = c->n_present,
                               .n_documents = c->n_present,
                               .n_values = c->starts ? c->n_values : c->n_present,
                               .n_distinct = c->n_strings,
                               .bytes = sizeof(gx_column_entry) + c->name_len + c->n_values * c->width};
    whole.bytes += c->starts ? ((uint64_t)ix->n_docs + 1) * 4 : 0;
    whole.bytes += c->present ? ((uint64_t)ix->n_docs + 63) / 64 * 8 : 0;
    whole.encoding = c->bitmaps.encoding;
    whole.n_bins = c->bitmaps.n_bins;
    whole.bitmap_bytes = c->bitmaps.encoding != GX_BITMAPS_NONE ? sizeof(gx_bitmaps_entry) + c->bitmaps.bytes : 0;
    whole.bytes += whole.bitmap_bytes;
    for (uint32_t s = 0; s < c->n_strings; ++s) {
        size_t len;
        gx_column_string(ix, c, s, &len);
        whole.bytes += len + ix->column_strings.width;
    }
    if (!gx_is_keyword(c->type))
        find_extremes(ix, c, NULL, &whole);
    return gx_sized_write(info, &whole, sizeof whole, GX_SIZE_THROUGH(gx_attribute_info, max_float));
}
