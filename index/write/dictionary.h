/* dictionary.h: the different strings of an attribute, numbered as they come, in an open-addressed hash table;
 * and their order when the last has come. For one thread. */
#ifndef GX_INDEX_WRITE_DICTIONARY_H
#define GX_INDEX_WRITE_DICTIONARY_H

#include "engine/api/gpuidx.h"

typedef struct gx_dictionary {
    char *bytes;
    size_t n_bytes, max_bytes, max_ends;
    uint64_t *ends; /* [n] */
    uint32_t n;
    uint32_t *slots; /* [1 << bits] number + 1, or 0 */
    uint32_t bits;
    uint64_t seed;
    uint32_t *ordinals, *order; /* when the strings are sorted: number to ordinal and back */
    uint32_t n_used;            /* ordinals */
} gx_dictionary;

gx_dictionary gx_dictionary_make(void); /* an empty one */
void gx_dictionary_free(gx_dictionary *d);

/* String number i < n: [*len] bytes, which the next new string may move. */
const char *gx_dictionary_get(const gx_dictionary *d, uint32_t i, size_t *len);

/* The number of a string. A string that is not in the dictionary yet gets the next number. GX_EINPUT (there are
 * 2^31 - 1), GX_ENOMEM. */
gx_status gx_dictionary_number(gx_dictionary *d, const char *p, size_t n, uint32_t *number, gx_error *err);

/* Give ordinals, by byte order, to the strings whose number has a 1 in d->ordinals [n], which the caller has
 * allocated; order[ordinal] is the number. No string comes afterwards. GX_ENOMEM. */
gx_status gx_dictionary_sort(gx_dictionary *d, gx_error *err);

#endif
