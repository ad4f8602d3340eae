/* sort.h: an order of documents by the values of attributes.
 *
 *   "price:desc,year"  --gx_sort_read-->  gx_sort   levels, the first one decides
 *
 * Values are compared within one file by keys of 64 bits (gx_sort_local_key), and across the files of a collection by
 * gx_sort_value. Of several values of a document, the least one counts where values rise, and the greatest where they
 * fall: the one that comes first.
 */
#ifndef GX_QUERY_ORDER_SORT_H
#define GX_QUERY_ORDER_SORT_H

#include "engine/api/gpuidx_advanced.h"
#include "index/attributes/attributes.h"

typedef struct gx_sort_level {
    uint32_t column; /* number of the attribute */
    gx_attribute_type type;
    bool falling;       /* greater values come first */
    bool missing_first; /* documents without a value come before all others; else behind them */
} gx_sort_level;

typedef struct gx_sort {
    uint32_t n; /* levels; 0: documents come by score alone */
    gx_sort_level levels[GX_MAX_SORT_KEYS];
} gx_sort;

/* Read "ATTRIBUTE[:asc|:desc][:missing-first|:missing-last],...". len 0: no levels. GX_EUSAGE: no such attribute (the
 * message names the nearest), an unknown word, an attribute twice, too many. */
gx_status gx_sort_read(gx_sort *out, const gx_index *ix, const char *text, size_t len, gx_error *err);

/* The value of a document at one level. */
typedef struct gx_sort_value {
    bool missing;
    uint64_t key;     /* of numbers, dates and bools: rises with the values */
    const char *text; /* [len] of keywords */
    size_t len;
} gx_sort_value;

gx_sort_value gx_sort_value_of(const gx_index *file, const gx_sort_level *level, uint32_t docid);
/* Below 0: a comes before b; 0: they are equal. */
int gx_sort_compare(const gx_sort_level *level, const gx_sort_value *a, const gx_sort_value *b);

/* A raw value (gx_column_raw) as a key that rises in the order of the level. Of one file. */
static inline uint64_t gx_sort_raw_key(const gx_sort_level *level, const gx_column *c, uint64_t raw)
{
    uint64_t key;
    if (gx_is_keyword(c->type)) /* odd, so that a text that lies between two strings has a key, too */
        key = 2 * raw + 1;
    else if (c->type == GX_ATTRIBUTE_FLOAT)
        key = gx_sort_key(c->type, raw);
    else
        key = ((uint64_t)c->base + raw) ^ (UINT64_C(1) << 63);
    return level->falling ? ~key : key;
}

/* The key of a document that has a value. */
static inline uint64_t gx_sort_local_key(const gx_sort_level *level, const gx_column *c, uint32_t docid)
{
    const uint64_t at = !c->starts ? docid : level->falling ? c->starts[docid + 1] - UINT64_C(1) : c->starts[docid];
    return gx_sort_raw_key(level, c, gx_column_raw(c, at));
}

/* The key of a value that is not missing, which need not be in the file. */
uint64_t gx_sort_key_of_value(const gx_index *file, const gx_sort_level *level, const gx_sort_value *value);

#endif
