#include "index/positions.h"

#include <string.h>

#include "index/parts.h"

bool gx_index_has_positions(const gx_index *ix)
{
    for (uint32_t i = 0; ix->parts && i < ix->parts->n; ++i)
        if (!ix->parts->parts[i].ix->positions)
            return false;
    return ix->parts ? ix->parts->n > 0 : ix->positions != NULL;
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
    const uint64_t begin = block ? end_of(ix, block - 1) : 0;
    return (gx_block_positions){ix->positions + begin, (size_t)(end_of(ix, block) - begin)};
}

uint32_t gx_index_title_positions(const gx_index *ix, uint32_t docid)
{
    uint32_t n = 0;
    if (ix->title_positions) /* little-endian: the low bytes come first */
        memcpy(&n, ix->title_positions + (size_t)docid * ix->title_position_width, ix->title_position_width);
    return n;
}
