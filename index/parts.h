/* parts.h: the parts of a collection: index files that are open, each with its deletes
 * (index/read/collection.h opens and joins them). */
#ifndef GX_INDEX_PARTS_H
#define GX_INDEX_PARTS_H

#include "index/deletes.h"

typedef struct gx_part {
    gx_index *ix;        /* of a file; shared by all collections that have it open */
    gx_deletes *deletes; /* NULL: all its documents are live */
    uint64_t base;       /* live documents of the parts before */
    uint32_t n_live;
} gx_part;

typedef struct gx_parts {
    uint32_t n; /* at least 1 */
    gx_part *parts;
    uint64_t commit;
    uint64_t checksum; /* of the commit's manifest */
    uint8_t uuid[16];
    struct gx_lexicon_of_parts *lexicon; /* made at first use; thread-safe */
} gx_parts;

/* Live documents of a part that hold its term number `term`. */
static inline uint32_t gx_part_df(const gx_part *p, uint32_t term)
{
    return p->ix->lists[term].df - (p->deletes ? p->deletes->dfs[term] : 0);
}

/* The deletes of an index that joins the live documents of parts as they were, was[n], now that
 * they are now[n], of which more may be deleted. *out is NULL where none is. GX_ENOMEM. */
gx_status gx_deletes_of_joined(gx_deletes **out, const gx_index *joined, const gx_part *was, const gx_part *now,
                               uint32_t n, gx_error *err);

#endif
