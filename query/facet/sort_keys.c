#include "query/facet/sort_keys.h"

#define FEW 64 /* keys that are sorted by insertion */
#define BITS 8

static void insert(uint64_t *keys, size_t n)
{
    for (size_t i = 1; i < n; ++i) {
        const uint64_t key = keys[i];
        size_t at = i;
        for (; at > 0 && keys[at - 1] > key; --at)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* From the lowest byte to the highest, those left out that all keys have in common. */
void gx_sort_keys(uint64_t *keys, uint64_t *scratch, size_t n)
{
    uint64_t *from = keys, *to = scratch, differ = 0;
    if (n <= FEW) {
        insert(keys, n);
        return;
    }
    for (size_t i = 0; i < n; ++i)
        differ |= keys[i] ^ keys[0];
    for (int shift = 0; shift < 64; shift += BITS) {
        size_t places[1 << BITS] = {0}, sum = 0;
        if (!(differ >> shift & ((1 << BITS) - 1)))
            continue;
        for (size_t i = 0; i < n; ++i)
            ++places[from[i] >> shift & ((1 << BITS) - 1)];
        for (int b = 0; b < 1 << BITS; ++b) {
            const size_t here = places[b];
            places[b] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; ++i)
            to[places[from[i] >> shift & ((1 << BITS) - 1)]++] = from[i];
        uint64_t *const swapped = from;
        from = to;
        to = swapped;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof *keys);
}
