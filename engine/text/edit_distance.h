/* edit_distance.h: how far two names are from each other, for messages that suggest one. */
#ifndef GX_ENGINE_TEXT_EDIT_DISTANCE_H
#define GX_ENGINE_TEXT_EDIT_DISTANCE_H

#include <stddef.h>
#include <stdint.h>

#define GX_MAX_DISTANCE_NAME 255u

/* The number of changes that make one name the other: characters put in, left out or replaced. m is at most
 * GX_MAX_DISTANCE_NAME. */
static inline uint32_t gx_edit_distance(const char *a, size_t n, const char *b, size_t m)
{
    uint32_t row[GX_MAX_DISTANCE_NAME + 1];
    for (size_t j = 0; j <= m; ++j)
        row[j] = (uint32_t)j;
    for (size_t i = 1; i <= n; ++i) {
        uint32_t diagonal = row[0];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; ++j) {
            const uint32_t replaced = diagonal + (a[i - 1] != b[j - 1]), above = row[j];
            const uint32_t least = above < row[j - 1] ? above : row[j - 1];
            row[j] = replaced < least + 1 ? replaced : least + 1;
            diagonal = above;
        }
    }
    return row[m];
}

#endif
