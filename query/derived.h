/* derived.h: the shape of the maps that both engines derive from lists. A map has a bit a slot of
 * 2^shift documents, set where the list holds one of them. With slots slots a posting, at most one
 * in slots documents that the list does not hold meets a set bit.
 */
#ifndef GX_QUERY_DERIVED_H
#define GX_QUERY_DERIVED_H

#include <stdint.h>

#define GX_MAP_MIN_DF 64u /* shorter lists have no map: to search them costs as little */
#define GX_MAP_SLOTS 8u   /* slots a posting, at least, where memory suffices */

/* The greatest shift, at most 24, that leaves this number of slots a posting. */
static inline uint32_t gx_map_shift(uint32_t n_docs, uint32_t df, uint32_t slots)
{
    uint32_t shift = 0;
    while (shift < 24 && n_docs >> (shift + 1) >= (uint64_t)df * slots)
        ++shift;
    return shift;
}

#endif
