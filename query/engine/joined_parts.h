/* joined_parts.h: the parts of a collection as an engine searches them: neighbouring parts joined
 * to one index, so that a search costs what it costs over one file.
 *
 *   parts when first opened   0  1  2  3  4  5  6  7        added later   8  9
 *   as searched               [       joined       ]                      [  ]
 *
 * A joined index lives as long as the collection has all its parts. Documents that are deleted
 * later are a mask of it. Small parts that were added are joined at every commit, larger ones are
 * searched one by one until there are several. Docids are those of the collection.
 */
#ifndef GX_QUERY_ENGINE_JOINED_PARTS_H
#define GX_QUERY_ENGINE_JOINED_PARTS_H

#include "index/read/collection.h"

typedef struct gx_joined_parts gx_joined_parts;

typedef struct gx_part_range {
    uint32_t begin, end;
} gx_part_range;

typedef enum gx_joined_which {
    GX_JOINED_ALL,    /* those that cannot be joined for want of room stay as they are */
    GX_JOINED_NEEDED, /* all; want of room is a failure */
    GX_JOINED_SMALL   /* runs of parts that have up to 2 M postings a processor together, 32 M at most; as for ALL */
} gx_joined_which;

/* Join parts of a collection, those of the range, to one index; if none of them is joined yet, to as
 * many as n_indexes of about the same size. `old` (NULL: none) are those of another commit of it, of which
 * joined indexes are shared. GX_ECORRUPT, GX_EIO, GX_ENOMEM. */
gx_status gx_joined_parts_open(gx_joined_parts **out, const gx_index *collection, gx_part_range range,
                               uint32_t n_indexes, const gx_joined_parts *old, gx_joined_which which, gx_error *err);
void gx_joined_parts_close(gx_joined_parts *j); /* accepts NULL */

/* The collection as it is searched; closed with j. */
const gx_index *gx_joined_parts_index(const gx_joined_parts *j);
gx_part_range gx_joined_parts_range(const gx_joined_parts *j); /* which of its parts are those of the range */

#endif
