#include "query/ding2009/merge_find.h"

typedef struct finder {
    const uint32_t *a, *b;
    uint32_t n_a, levels, *pos;
} finder;

/* Finds elements [first, end) of a, which belong in [lo, hi) of b. */
static void find(const finder *f, uint32_t level, uint32_t first, uint32_t end, uint32_t lo, uint32_t hi)
{
    const uint32_t shift = gx_merge_find_shift(f->n_a, f->levels, level);
    uint32_t at = gx_lower_bound(f->b, lo, hi, f->a[first]);
    for (uint32_t i = first; i < end;) {
        const uint32_t next = end - i > UINT32_C(1) << shift ? i + (UINT32_C(1) << shift) : end;
        const uint32_t upto = next < end ? gx_lower_bound(f->b, at, hi, f->a[next]) : hi;
        if (shift == 0)
            f->pos[i] = at;
        else
            find(f, level + 1, i, next, at, upto);
        at = upto;
        i = next;
    }
}

void gx_merge_find_cpu(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, uint32_t levels, uint32_t *pos)
{
    const finder f = {a, b, n_a, levels, pos};
    if (n_a)
        find(&f, 1, 0, n_a, 0, n_b);
}

uint32_t gx_intersect_cpu(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b, uint32_t levels,
                          uint32_t *positions, uint32_t *out)
{
    uint32_t n = 0;
    gx_merge_find_cpu(a, n_a, b, n_b, levels, positions);
    for (uint32_t i = 0; i < n_a; ++i) {
        if (positions[i] < n_b && b[positions[i]] == a[i])
            out[n++] = a[i];
    }
    return n;
}
