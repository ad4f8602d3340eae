#include "query/facet/count_table.h"

#include <stdlib.h>

bool gx_count_table_grow(gx_count_table *t)
{
    gx_count_table more = {.bits = t->bits ? t->bits + 2 : 8, .n = t->n};
    more.keys = malloc(sizeof *more.keys << more.bits);
    more.counts = calloc((size_t)1 << more.bits, sizeof *more.counts);
    if (!more.keys || !more.counts) {
        free(more.keys);
        free(more.counts);
        return false;
    }
    for (uint64_t i = 0; t->bits && i < UINT64_C(1) << t->bits; ++i) {
        if (!t->counts[i])
            continue;
        const uint64_t slot = gx_count_table_slot(&more, t->keys[i]);
        more.keys[slot] = t->keys[i];
        more.counts[slot] = t->counts[i];
    }
    free(t->keys);
    free(t->counts);
    *t = more;
    return true;
}

static int by_key(const void *a, const void *b)
{
    const gx_counted_group *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

gx_counted_group *gx_count_table_sort(const gx_count_table *t)
{
    gx_counted_group *out = malloc((t->n + 1ull) * sizeof *out);
    size_t n = 0;
    for (uint64_t i = 0; out && t->bits && i < UINT64_C(1) << t->bits; ++i)
        if (t->counts[i])
            out[n++] = (gx_counted_group){t->keys[i], t->counts[i]};
    if (out)
        qsort(out, n, sizeof *out, by_key);
    return out;
}

void gx_count_table_free(gx_count_table *t)
{
    free(t->keys);
    free(t->counts);
    *t = (gx_count_table){0};
}
