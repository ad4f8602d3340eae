/* topk.h: the k greatest of a stream of keys, kept in the caller's array as a heap with the least
 * on top.
 *
 *   gx_topk top = {keys, k, 0};  for each key: gx_topk_push(&top, key);  gx_topk_sort(&top);
 *   keys[top.n], falling
 */
#ifndef GX_QUERY_SCORE_TOPK_H
#define GX_QUERY_SCORE_TOPK_H

#include <stdint.h>

typedef struct gx_topk {
    uint64_t *keys; /* [k], the caller's */
    uint32_t k, n;
} gx_topk;

/* Put key into the hole at i and let it sink until no child is less. */
static inline void gx_topk_sink(gx_topk *t, uint32_t i, uint64_t key)
{
    for (;;) {
        uint64_t child = 2 * (uint64_t)i + 1;
        if (child >= t->n)
            break;
        if (child + 1 < t->n && t->keys[child + 1] < t->keys[child])
            ++child;
        if (t->keys[child] >= key)
            break;
        t->keys[i] = t->keys[child];
        i = (uint32_t)child;
    }
    t->keys[i] = key;
}

/* Keys below this need not be pushed: 0 until there are k. */
static inline uint64_t gx_topk_threshold(const gx_topk *t)
{
    return t->n < t->k ? 0 : t->keys[0];
}

static inline void gx_topk_push(gx_topk *t, uint64_t key)
{
    if (t->n < t->k) {
        uint32_t i = t->n++;
        for (; i && t->keys[(i - 1) / 2] > key; i = (i - 1) / 2)
            t->keys[i] = t->keys[(i - 1) / 2];
        t->keys[i] = key;
    } else if (key > t->keys[0]) {
        gx_topk_sink(t, 0, key);
    }
}

/* Heap to falling order, in place. Nothing may be pushed afterwards. */
static inline void gx_topk_sort(gx_topk *t)
{
    const uint32_t n = t->n;
    while (t->n > 1) {
        const uint64_t least = t->keys[0], last = t->keys[--t->n];
        gx_topk_sink(t, 0, last);
        t->keys[t->n] = least;
    }
    t->n = n;
}

#endif
