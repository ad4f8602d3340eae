/* sort_keys.h: the values of a set of documents as numbers that are ordered as the values are, and their order. */
#ifndef GX_QUERY_FACET_SORT_KEYS_H
#define GX_QUERY_FACET_SORT_KEYS_H

#include <string.h>

#include "index/attributes/attributes.h"

#define GX_KEY_SIGN (UINT64_C(1) << 63)

/* The key of a value as the column, of int, float or date, has it; -0.0 has that of 0.0. Keys of all files of an index
 * can be compared. */
static inline uint64_t gx_value_key(const gx_column *c, uint64_t raw)
{
    if (c->type != GX_ATTRIBUTE_FLOAT)
        return ((uint64_t)c->base + raw) ^ GX_KEY_SIGN;
    return gx_sort_key(GX_ATTRIBUTE_FLOAT, raw == GX_KEY_SIGN ? 0 : raw);
}

static inline int64_t gx_key_number(uint64_t key)
{
    return (int64_t)(key ^ GX_KEY_SIGN);
}

static inline double gx_key_float(uint64_t key)
{
    const uint64_t bits = gx_raw_of_sort_key(GX_ATTRIBUTE_FLOAT, key);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Sort keys[n]; scratch[n]. */
void gx_sort_keys(uint64_t *keys, uint64_t *scratch, size_t n);

/* Keys on the heap; all zero at first, and freed by free(keys). */
typedef struct gx_keys {
    uint64_t *keys; /* [n] */
    size_t n, max;
} gx_keys;

#endif
