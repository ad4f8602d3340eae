/* count_table.h: a hash table of counts. For one thread. */
#ifndef GX_QUERY_FACET_COUNT_TABLE_H
#define GX_QUERY_FACET_COUNT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* A key whose count is 0 is not there. All zero: empty. */
typedef struct gx_count_table {
    uint64_t *keys, *counts; /* [1 << bits] */
    uint32_t bits, n;
} gx_count_table;

typedef struct gx_counted_group {
    uint64_t key, count;
} gx_counted_group;

bool gx_count_table_grow(gx_count_table *t); /* makes it 4 times as large. false: no memory */

/* Where the key is, or would be put, of a table that is not empty. */
static inline uint64_t gx_count_table_slot(const gx_count_table *t, uint64_t key)
{
    const uint64_t mask = (UINT64_C(1) << t->bits) - 1;
    uint64_t slot = key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - t->bits);
    while (t->counts[slot] && t->keys[slot] != key)
        slot = (slot + 1) & mask;
    return slot;
}

/* Add to the count of a key. false: no memory. */
static inline bool gx_count_table_add(gx_count_table *t, uint64_t key, uint64_t count)
{
    if (!count)
        return true;
    if ((!t->bits || 2 * (uint64_t)t->n >= UINT64_C(1) << t->bits) && !gx_count_table_grow(t))
        return false;
    const uint64_t slot = gx_count_table_slot(t, key);
    t->n += t->counts[slot] == 0;
    t->keys[slot] = key;
    t->counts[slot] += count;
    return true;
}

/* The entries [t->n] by key, which the caller frees. NULL: no memory. */
gx_counted_group *gx_count_table_sort(const gx_count_table *t);

void gx_count_table_free(gx_count_table *t); /* makes it empty */

#endif
