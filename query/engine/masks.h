/* masks.h: masks of an engine (query/filter/mask.h), which copies them to its device; of a collection's, one for each
 * part. */
#ifndef GX_QUERY_ENGINE_MASKS_H
#define GX_QUERY_ENGINE_MASKS_H

#include "query/filter/mask.h"

/* The same documents on another engine of the same index. */
gx_status gx_mask_copy(gx_mask **out, gx_engine *en, const gx_mask *mask, gx_error *err);

/* The documents of both masks of an engine. Statuses of gx_mask_open. */
gx_status gx_mask_open_both(gx_mask **out, gx_engine *en, const gx_mask *a, const gx_mask *b, gx_error *err);

/* The mask of a collection's engine whose parts have these masks, one each. It takes `parts`, also
 * where it fails: GX_ENOMEM. */
gx_status gx_mask_of_parts(gx_mask **out, const gx_engine *en, gx_mask **parts, gx_error *err);

/* Whether the engine can read it: on a GPU, whether it could be copied there. A collection's always
 * is: a part whose GPU has failed is searched by the CPU. */
bool gx_mask_is_ready(const gx_mask *m);

#endif
