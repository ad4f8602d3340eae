/* heap.h: a binary heap in an array. Two heaps are by hand, for what this one lacks: query/score/topk.h, whose keys are
 * compared many times a query, and query/exec/residency.c, which knows the place of each element. */
#ifndef GX_ENGINE_HEAP_H
#define GX_ENGINE_HEAP_H

#include <stddef.h>

/* Define static void sift_down(element *place, size_t n, size_t i): move place[i] of n elements down to its place,
 * where before(a, b) says whether element a is to stand above element b. What is below i is a heap already. */
#define GX_DEFINE_SIFT_DOWN(sift_down, element, before)                                                                \
    static void sift_down(element *place, size_t n, size_t i)                                                          \
    {                                                                                                                  \
        element const moved = place[i];                                                                                \
        for (size_t child; (child = 2 * i + 1) < n; i = child) {                                                       \
            if (child + 1 < n && before(place[child + 1], place[child]))                                               \
                ++child;                                                                                               \
            if (!before(place[child], moved))                                                                          \
                break;                                                                                                 \
            place[i] = place[child];                                                                                   \
        }                                                                                                              \
        place[i] = moved;                                                                                              \
    }

#endif
