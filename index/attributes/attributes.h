/* attributes.h: the attributes of documents: texts to values, and an open index's columns.
 *
 *   text --gx_parse_...--> value --index/write/columns.c--> ATTR, ATTV, ATTS --> gx_column
 *
 * format.h describes how a column lies in the file. The check of the structure has verified that
 * all of a column's parts lie inside their sections. Only GX_CHECK_FULL verifies the values
 * themselves: whoever uses an ordinal as an index compares it with n_strings first.
 */
#ifndef GX_INDEX_ATTRIBUTES_ATTRIBUTES_H
#define GX_INDEX_ATTRIBUTES_ATTRIBUTES_H

#include "index/attributes/bitmap_columns.h"
#include "index/index.h"

#define GX_MAX_ATTRIBUTE_NAME 64u /* bytes */

typedef struct gx_column {
    const char *name;
    size_t name_len;
    gx_attribute_type type;
    uint8_t width; /* bytes of a value */
    int64_t base;
    const void *values; /* [n_values] */
    uint64_t n_values;
    const uint32_t *starts;  /* [n_docs + 1]; of keywords, and where a document has several values; else NULL */
    const uint64_t *present; /* [ceil(n_docs / 64)]; NULL: every document has a value, or there are starts */
    uint32_t n_present;
    uint32_t first_string, n_strings; /* in gx_index.column_strings */
    gx_bitmaps bitmaps;               /* encoding GX_BITMAPS_NONE: none */
    struct gx_column_order *order;    /* atomic; NULL until needed (attribute_order.h) */
    struct gx_attribute_rows *rows;   /* atomic; of all columns, at the first; NULL until needed (attribute_rows.h) */
    uint32_t n_scans;                 /* atomic: evaluations that read all values for want of the order */
    uint64_t greatest;                /* atomic; of numbers, what prior.c notes of them; 0 until needed */
    uint32_t exponents;               /* atomic; of floats, what figures.c notes of them; 0 until needed */
    uint32_t bound;                   /* atomic; of values of 2 bytes, one more than the greatest; 0 until needed */
} gx_column;

/* Number i of an array of numbers of 1, 2, 4 or 8 bytes. */
static inline uint64_t gx_raw_value(const void *values, uint8_t width, uint64_t i)
{
    switch (width) {
    case 1:
        return ((const uint8_t *)values)[i];
    case 2:
        return ((const uint16_t *)values)[i];
    case 4:
        return ((const uint32_t *)values)[i];
    default:
        return ((const uint64_t *)values)[i];
    }
}

/* Value i as the file has it: an offset from the base, a double's bits, an ordinal, 0 or 1. */
static inline uint64_t gx_column_raw(const gx_column *c, uint64_t i)
{
    return gx_raw_value(c->values, c->width, i);
}

/* Bits that are ordered as the values are, of a value as the file has it. */
static inline uint64_t gx_sort_key(gx_attribute_type type, uint64_t raw)
{
    const uint64_t sign = UINT64_C(1) << 63;
    return type != GX_ATTRIBUTE_FLOAT ? raw : raw & sign ? ~raw : raw | sign;
}

static inline bool gx_column_has(const gx_column *c, uint32_t docid)
{
    return c->starts ? c->starts[docid] < c->starts[docid + 1]
                     : !c->present || c->present[docid / 64] >> docid % 64 & 1;
}

/* Where the values of a document lie that has any: values [begin, end) of the column. */
typedef struct gx_value_span {
    uint64_t begin, end;
} gx_value_span;

static inline gx_value_span gx_column_values(const gx_column *c, uint32_t docid)
{
    return c->starts ? (gx_value_span){c->starts[docid], c->starts[docid + 1]}
                     : (gx_value_span){docid, (uint64_t)docid + 1};
}

/* String `ordinal` < n_strings of a column. */
static inline const char *gx_column_string(const gx_index *ix, const gx_column *c, uint32_t ordinal, size_t *len)
{
    return gx_strings_get(&ix->column_strings, c->first_string + ordinal, len);
}

static inline bool gx_is_keyword(gx_attribute_type t)
{
    return t == GX_ATTRIBUTE_KEYWORD || t == GX_ATTRIBUTE_KEYWORDS;
}

/* A sort key of a float, or of a number that is at least 0, as the raw value. */
static inline uint64_t gx_raw_of_sort_key(gx_attribute_type type, uint64_t key)
{
    const uint64_t sign = UINT64_C(1) << 63;
    return type != GX_ATTRIBUTE_FLOAT ? key : key & sign ? key & ~sign : ~key;
}

/* Bytes of a column's part, with the padding behind it. */
static inline uint64_t gx_column_padded(uint64_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* What is wrong with a name, to stand behind it in a message, or NULL. */
const char *gx_attribute_name_fault(const char *name, size_t len);

/* Read a text of n bytes, all of it. NULL, or what is wrong, to stand behind the text in a message.
 * A date that names no second means all seconds from *first to *last. */
const char *gx_parse_int(const char *p, size_t n, int64_t *out);
const char *gx_parse_float(const char *p, size_t n, double *out);
const char *gx_parse_date(const char *p, size_t n, int64_t *first, int64_t *last);
/* As a bound of a range: a fraction of a second above 0 lies between two seconds, so that *first is one more than
 * *last. gx_parse_date drops the fraction: *first and *last are the second. */
const char *gx_parse_date_bound(const char *p, size_t n, int64_t *first, int64_t *last);
const char *gx_parse_bool(const char *p, size_t n, bool *out);
bool gx_is_date(int64_t second); /* of the years 0000 to 9999 */

/* A text of at most 17 digits that gx_parse_float reads as x, which is finite; and one that gx_parse_date
 * reads as the second, of the years 0000 to 9999. A day's first second is written as the day. */
#define GX_VALUE_TEXT 40u /* bytes of such a text, NUL included, at most */
void gx_print_float(double x, char text[GX_VALUE_TEXT]);
void gx_print_date(int64_t second, char text[GX_VALUE_TEXT]);

/* A day of the Gregorian calendar, and back: days since 1970-01-01. Of any date that a second in 64 bits
 * stands for. */
typedef struct gx_day {
    int64_t year;
    int month, day; /* from 1 */
} gx_day;
gx_day gx_day_of(int64_t days);
int64_t gx_days_to(int64_t year, int month, int day);

/* The number of the attribute of that name, or UINT32_MAX, and why[] says that there is none, and which
 * may be meant. */
#define GX_NO_ATTRIBUTE_TEXT 256u
uint32_t gx_column_find(const gx_index *ix, const char *name, size_t len, char why[GX_NO_ATTRIBUTE_TEXT]);

/* Set ix->columns, from the sections; gx_check_header calls it. The sections' lengths agree with
 * the entries afterwards. GX_ECORRUPT, GX_ENOMEM. */
gx_status gx_columns_bind(gx_index *ix, gx_error *err);

/* The checks of the structure and of the contents (check_parts.h). */
gx_status gx_columns_check_structure(const gx_index *ix, gx_error *err);
gx_status gx_columns_check_contents(const gx_index *ix, gx_error *err);

#endif
