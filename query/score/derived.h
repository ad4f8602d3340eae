/* derived.h: which lists have a map, and how fine it is, for both engines.
 *
 * A map has a bit a slot of 2^shift documents, set where the list holds one of them. With slots
 * slots a posting, at most one in slots documents that the list does not hold meets a set bit.
 *
 * An engine gives maps to its lists within a budget of memory, by three rules:
 *
 *   1. Longer lists come first. Of lists of one length, the one with the lower id comes first.
 *   2. A map has GX_MAP_SLOTS slots a posting or more. Where not all lists can have such a map, the
 *      policy may allow coarser maps: half the slots for all lists, then a quarter, and so on.
 *   3. Where all those maps leave memory, the policy may allow fine maps: finer slots with the tf
 *      classes of their postings.
 *
 *   policy          coarsest map           fine map
 *   gx_maps_cpu     4 slots a posting      none: to read an exact tf costs the CPU as little
 *   gx_maps_gpu     1 slot a posting       16 slots a posting
 *
 * With maps of 1 or 2 slots the CPU engine is slower than with fewer maps of 8: query/MEASURED.md,
 * "What do coarser maps give the CPU engine?".
 */
#ifndef GX_QUERY_SCORE_DERIVED_H
#define GX_QUERY_SCORE_DERIVED_H

#include "index/index.h"

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

typedef struct gx_map_policy {
    uint32_t coarsest_slots; /* slots a posting; GX_MAP_SLOTS or a lower power of two */
    uint32_t fine_slots;     /* of maps with tf classes; 0: there are none */
} gx_map_policy;

extern const gx_map_policy gx_maps_cpu, gx_maps_gpu;

/* What an engine needs for a map with slots of 2^shift documents: words of 32 bits, with the ranks
 * where shift is 0; and the words of its tf classes beside it (NULL: there are none). */
typedef struct gx_map_sizes {
    uint64_t (*map_words)(uint32_t n_docs, uint32_t shift);
    uint64_t (*class_words)(uint32_t n_docs, uint32_t shift);
} gx_map_sizes;

typedef struct gx_map_plan {
    uint32_t *lists;  /* [n_lists] all lists from GX_MAP_MIN_DF postings on, longest first */
    uint32_t n_lists; /* n_fine <= n_maps <= n_lists */
    uint32_t n_maps;  /* lists[0] to lists[n_maps - 1] have a map */
    uint32_t n_fine;  /* lists[0] to lists[n_fine - 1] have a fine map with tf classes */
    uint32_t slots;   /* slots a posting of the maps that are not fine */
} gx_map_plan;

#ifdef __cplusplus
extern "C" {
#endif

/* Plan maps of ix that take at most `words` words. GX_ENOMEM; *plan is then empty. The caller frees it. */
gx_status gx_map_plan_make(gx_map_plan *plan, const gx_index *ix, const gx_map_policy *policy,
                           const gx_map_sizes *sizes, uint64_t words, gx_error *err);
void gx_map_plan_free(gx_map_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
