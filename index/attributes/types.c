/* types.c: the types of attributes. */
#include "index/attributes/types.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t bits_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double real_of(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static const char *parse_int(const char *p, size_t n, bool is_bound, int64_t *first, int64_t *last)
{
    const char *fault = gx_parse_int(p, n, first);
    (void)is_bound;
    *last = *first;
    return fault;
}

static void print_int(int64_t value, char text[GX_VALUE_TEXT])
{
    snprintf(text, GX_VALUE_TEXT, "%" PRId64, value);
}

static const char *parse_float(const char *p, size_t n, bool is_bound, int64_t *first, int64_t *last)
{
    double x = 0;
    const char *fault = gx_parse_float(p, n, &x);
    (void)is_bound;
    *first = *last = bits_of(x);
    return fault;
}

static void print_float(int64_t value, char text[GX_VALUE_TEXT])
{
    gx_print_float(real_of(value), text);
}

static const char *float_fault(int64_t value)
{
    return isfinite(real_of(value)) ? NULL : "is not finite";
}

static const char *parse_date(const char *p, size_t n, bool is_bound, int64_t *first, int64_t *last)
{
    return (is_bound ? gx_parse_date_bound : gx_parse_date)(p, n, first, last);
}

static const char *date_fault(int64_t value)
{
    return gx_is_date(value) ? NULL : "is no date of the years 0000 to 9999";
}

static const char *parse_bool(const char *p, size_t n, bool is_bound, int64_t *first, int64_t *last)
{
    bool truth = false;
    const char *fault = gx_parse_bool(p, n, &truth);
    (void)is_bound;
    *first = *last = truth;
    return fault;
}

static void print_bool(int64_t value, char text[GX_VALUE_TEXT])
{
    snprintf(text, GX_VALUE_TEXT, "%s", value ? "true" : "false");
}

static const char *bool_fault(int64_t value)
{
    return value == 0 || value == 1 ? NULL : "is neither 0 nor 1";
}

static const gx_type types[] = {
    [GX_ATTRIBUTE_INT] = {.name = "int", .parse = parse_int, .print = print_int},
    [GX_ATTRIBUTE_FLOAT] = {.name = "float",
                            .width = 8,
                            .is_real = true,
                            .parse = parse_float,
                            .print = print_float,
                            .fault = float_fault},
    [GX_ATTRIBUTE_DATE] =
        {.name = "date", .is_quoted = true, .parse = parse_date, .print = gx_print_date, .fault = date_fault},
    [GX_ATTRIBUTE_KEYWORD] = {.name = "keyword", .is_string = true, .is_quoted = true},
    [GX_ATTRIBUTE_KEYWORDS] = {.name = "keywords", .is_string = true, .is_set = true, .is_quoted = true},
    [GX_ATTRIBUTE_BOOL] = {.name = "bool",
                           .width = 1,
                           .has_no_range = true,
                           .parse = parse_bool,
                           .print = print_bool,
                           .fault = bool_fault},
};
enum { N_TYPES = sizeof types / sizeof *types };

const gx_type *gx_type_of(unsigned type)
{
    return type >= GX_ATTRIBUTE_INT && type < N_TYPES ? &types[type] : NULL;
}

bool gx_attribute_type_find(const char *name, gx_attribute_type *out)
{
    for (unsigned t = GX_ATTRIBUTE_INT; t < N_TYPES; ++t)
        if (strcmp(name, types[t].name) == 0) {
            *out = (gx_attribute_type)t;
            return true;
        }
    return false;
}

const char *gx_attribute_type_name(gx_attribute_type t)
{
    return gx_type_of(t) ? types[t].name : "unknown";
}

int64_t gx_value_bits(gx_attribute_type type, const gx_value *value)
{
    return types[type].is_real ? bits_of(value->real) : value->number;
}

gx_value gx_value_of_bits(gx_attribute_type type, int64_t bits)
{
    return types[type].is_real ? (gx_value){.real = real_of(bits)} : (gx_value){.number = bits};
}
