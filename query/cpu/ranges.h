/* ranges.h: lists as the search over ranges of documents reads them (range_kernels.h has the
 * words), derived from the index's lists, each at its first use, and shared by all threads.
 *
 *   form    postings                               found by           bounds of the list's parts
 *   rare    docids and tfs                         binary search      a posting
 *   sparse  docids and tfs                         starts of tiles    a posting, a tile
 *   dense   place in the segment and tf, 2 bytes   starts of segments a range, a tile
 *           (4 where a tf is above 255)
 *
 * A list is rare if it has fewer postings than there are tiles, and dense if a range in eight has a
 * posting, on average.
 *
 * Bounds are of one scorer (c0, c1, lossy): b = ceil(255 part / most), where most is the list's
 * greatest part. So an impact is at most the list's greatest impact times b / 255.
 */
#ifndef GX_QUERY_CPU_RANGES_H
#define GX_QUERY_CPU_RANGES_H

#include "query/cpu/lists.h"
#include "query/cpu/range_kernels.h"

typedef enum gx_range_form { GX_RANGE_RARE, GX_RANGE_SPARSE, GX_RANGE_DENSE } gx_range_form;

typedef struct gx_range_list {
    gx_range_form form;
    bool wide;   /* dense: postings are gx_wide_posting */
    uint32_t df; /* postings that are kept: docids rise and are < n_docs */
    uint32_t max_tf;
    const uint32_t *docids; /* [df] rare, sparse */
    const uint16_t *tfs;    /* [df] rare, sparse */
    const uint32_t *starts; /* sparse: [n_tiles + 1], dense: [segments + 1]: postings before each */
    const void *postings;   /* [df] dense */
} gx_range_list;

typedef struct gx_range_bounds {
    const uint8_t *postings; /* [df] rare, sparse */
    const uint8_t *ranges;   /* [64 n_tiles] dense: a cache line a tile */
    const uint8_t *tiles;    /* [n_tiles, up to a multiple of 64] sparse, dense */
} gx_range_bounds;

typedef struct gx_ranges gx_ranges;

/* memory: a budget in bytes for all that is derived. NULL: no memory. */
gx_ranges *gx_ranges_open(const gx_index *ix, gx_cpu_lists *lists, const gx_cpu_kernels *kernels, uint64_t memory);
void gx_ranges_close(gx_ranges *r);
uint64_t gx_ranges_bytes(const gx_ranges *r); /* derived so far */

static inline uint32_t gx_ranges_n_tiles(const gx_index *ix)
{
    return (uint32_t)(((uint64_t)ix->n_docs + GX_TILE_DOCS - 1) >> GX_TILE_SHIFT);
}

/* Of term's list, made at first use; NULL: no memory, the budget is spent, or a tf is above 65535.
 * Thread-safe; scratch is the caller's. They live as long as r. */
const gx_range_list *gx_ranges_list(gx_ranges *r, uint32_t term, gx_cpu_scratch *scratch);
const gx_range_bounds *gx_ranges_bounds(gx_ranges *r, const gx_range_list *list, gx_cpu_params *params, gx_scorer norm,
                                        uint32_t term, gx_cpu_scratch *scratch);

#endif
