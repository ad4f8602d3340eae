/* ranges.h: lists as the search over ranges of documents reads them (range_kernels.h has the
 * words), derived from the index's lists, each at its first use, and shared by all threads.
 *
 *   form    postings                              found by              bounds of the list's parts
 *   rare    docids and tfs                        binary search         a posting
 *   sparse  place in the segment and tf, 2 bytes  starts of segments    a range and a segment that have
 *           (4 where a tf is above 255)           that have postings    postings, which bits tell
 *   common  the same                              starts of segments    a range that has postings, which
 *                                                                       a bit tells; a segment
 *   dense   a bit a document; tfs, a byte each    starts of segments    a range, a segment
 *
 * A tile tells where a sparse list's segments begin, and has a bit each of those that have postings.
 * A list is rare if it has fewer postings than there are tiles, common if it has one a segment on
 * average, and dense if it has 8 and no tf above 255.
 *
 * Postings of documents that the lists do not keep (lists.h) are left out.
 *
 * Bounds are of one scorer (c0, c1, lossy): b = ceil(levels part / most), where most is the list's
 * greatest part. So an impact is at most the list's greatest impact times b / levels. For a linear
 * scorer, the bound of a tf below 256 is the tf times a whole number, and not stored with the posting.
 */
#ifndef GX_QUERY_CPU_RANGES_H
#define GX_QUERY_CPU_RANGES_H

#include "query/cpu/kernels/range_kernels.h"
#include "query/cpu/lists.h"

typedef enum gx_range_form {
    GX_RANGE_DENSE,
    GX_RANGE_COMMON,
    GX_RANGE_SPARSE,
    GX_RANGE_RARE,
    GX_N_RANGE_FORMS
} gx_range_form;

typedef struct gx_range_list {
    gx_range_form form;
    bool wide;   /* a tf is above 255: postings of common and sparse lists are gx_wide_posting */
    uint32_t df; /* postings that are kept: docids rise and are < n_docs */
    uint32_t max_tf;
    uint32_t n_segments;    /* common: all, sparse: those that have postings */
    const uint32_t *docids; /* [df] rare */
    const uint32_t *tfs;    /* [df] rare */
    const uint32_t *starts; /* sparse: [n_tiles] of segments, dense: [n_segments + 1] of postings, before each */
    const gx_segment_start *segments; /* common: [n_segments + 1], sparse: of those that have postings, and the end */
    const uint8_t *present;           /* [n_tiles, up to a multiple of 64] sparse: a bit a segment that has postings */
    const void *postings;             /* [df] sparse, common; readable 32 bytes past the end */
    const uint64_t *bits;             /* [4 n_segments] dense */
    const uint8_t *bytes;             /* [df] dense: tfs; readable 32 bytes past the end */
} gx_range_list;

typedef struct gx_range_bounds {
    uint32_t levels;         /* no bound is greater */
    uint32_t scale;          /* bounds of postings are tf * scale; or 0 */
    const uint8_t *postings; /* [df] rare; NULL: there is a scale */
    const uint8_t *ranges;   /* dense: [n_segments][GX_SEGMENT_RANGES]; common, sparse: [df] of the ranges that
                              * have postings, a segment's from its first posting's place on; readable 32
                              * bytes past the end */
    const uint8_t *segments; /* dense, common: [n_segments, up to a multiple of 64]; sparse: of those that have
                              * postings, in the order of the list's starts; readable 32 bytes past the end */
} gx_range_bounds;

typedef struct gx_ranges gx_ranges;

/* memory: a budget in bytes for all that is derived. NULL: no memory. */
gx_ranges *gx_ranges_open(const gx_index *ix, gx_cpu_lists *lists, const gx_cpu_kernels *kernels, uint64_t memory);
void gx_ranges_set_memory(gx_ranges *r, uint64_t memory); /* another budget, before all other calls */
void gx_ranges_close(gx_ranges *r);
uint64_t gx_ranges_bytes(const gx_ranges *r); /* derived so far */

static inline uint32_t gx_ranges_n_tiles(const gx_index *ix)
{
    return (uint32_t)(((uint64_t)ix->n_docs + GX_TILE_DOCS - 1) >> GX_TILE_SHIFT);
}

static inline uint32_t gx_ranges_n_segments(const gx_index *ix) /* whole tiles of them */
{
    return gx_ranges_n_tiles(ix) * GX_TILE_SEGMENTS;
}

/* Where a common list's postings of a segment begin, or a sparse one's: NULL if it has none there. */
static inline const gx_segment_start *gx_range_list_start(const gx_range_list *l, uint32_t segment)
{
    static const uint8_t n_bits[128] = {
#define BITS4(n) n, n + 1, n + 1, n + 2
#define BITS16(n) BITS4(n), BITS4(n + 1), BITS4(n + 1), BITS4(n + 2)
        BITS16(0), BITS16(1), BITS16(1), BITS16(2), BITS16(1), BITS16(2), BITS16(2), BITS16(3),
#undef BITS4
#undef BITS16
    };
    const uint32_t tile = segment / GX_TILE_SEGMENTS, bit = 1u << segment % GX_TILE_SEGMENTS;
    if (l->form == GX_RANGE_COMMON)
        return l->segments + segment;
    if (!(l->present[tile] & bit))
        return NULL;
    return l->segments + l->starts[tile] + n_bits[l->present[tile] & (bit - 1)];
}

/* Of term's list, made at first use; NULL: no memory, the budget is spent, or a tf is 2^24 or above.
 * Thread-safe; scratch is the caller's. They live as long as r. */
const gx_range_list *gx_ranges_list(gx_ranges *r, uint32_t term, gx_cpu_scratch *scratch);
const gx_range_bounds *gx_ranges_bounds(gx_ranges *r, const gx_range_list *list, gx_cpu_params *params, gx_scorer norm,
                                        uint32_t term, gx_cpu_scratch *scratch);

#endif
