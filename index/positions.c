#include "index/positions.h"

#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/joined_lists.h"
#include "index/parts.h"

bool gx_index_has_positions(const gx_index *ix)
{
    bool any = false;
    if (!ix->parts)
        return ix->positions != NULL;
    for (uint32_t i = 0; i < ix->parts->n; ++i) {
        const gx_index *part = ix->parts->parts[i].ix;
        if (part->n_docs)
            return part->positions != NULL; /* they agree */
        any = any || part->positions;
    }
    return any;
}

/* The word at which a block ends. */
static uint64_t end_of(const gx_index *ix, uint64_t block)
{
    uint64_t passed = 0;
    while (passed < ix->n_position_wraps && ix->position_wraps[passed] <= block)
        ++passed;
    return passed << 32 | ix->position_ends[block];
}

gx_block_positions gx_index_block_positions(const gx_index *ix, uint64_t block)
{
    if (ix->joined && block >= ix->n_blocks)
        return gx_joined_positions(ix, block - ix->n_blocks);
    const uint64_t begin = block ? end_of(ix, block - 1) : 0;
    return (gx_block_positions){ix->positions + begin, (size_t)(end_of(ix, block) - begin)};
}

gx_status gx_index_decode_positions(const gx_index *ix, uint32_t term, uint32_t j, const uint32_t *tfs, uint32_t n,
                                    uint32_t **positions, size_t *max, size_t at, size_t *end, gx_error *err)
{
    const gx_block_positions b = gx_index_block_positions(ix, ix->lists[term].first_block + (uint64_t)j);
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; ++i)
        all += tfs[i];
    if (all / 32 <= b.n_words) { /* a position takes a bit at least; else the tfs may want any memory */
        if (!gx_reserve(positions, max, at + (size_t)all, sizeof **positions))
            return gx_fail(err, GX_ENOMEM, "%s: no memory for %llu positions", ix->path, (unsigned long long)all);
        if (gx_positions_decode(b, all, 0, all, *positions + at)) {
            uint32_t *p = *positions + at;
            for (uint32_t i = 0; i < n; ++i)
                for (const uint32_t *const behind = ++p + tfs[i] - 1; p < behind; ++p)
                    *p += p[-1] + 1;
            *end = at + (size_t)all;
            return GX_OK;
        }
    }
    return gx_fail(err, GX_ECORRUPT, "%s: section POSN: block %u of list %u is no block of %llu positions", ix->path, j,
                   term, (unsigned long long)all);
}

uint32_t gx_index_title_positions(const gx_index *ix, uint32_t docid)
{
    uint32_t n = 0;
    if (ix->title_positions && !ix->fields) /* little-endian: the low bytes come first */
        memcpy(&n, ix->title_positions + (size_t)docid * ix->title_position_width, ix->title_position_width);
    return n;
}
