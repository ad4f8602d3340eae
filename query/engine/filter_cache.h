/* filter_cache.h: masks of the filters that queries have, kept by the filters' canonical texts
 * within a budget of bytes.
 *
 * An entry begins without a mask and counts how often its filter was asked for. An engine that can
 * do without masks gets one when the filter has come so often that its mask would have paid.
 * Entries that were not used for the longest time leave first. A filter that reads files has no
 * entry.
 *
 * Thread-safe.
 */
#ifndef GX_QUERY_ENGINE_FILTER_CACHE_H
#define GX_QUERY_ENGINE_FILTER_CACHE_H

#include "query/filter/filter.h"

typedef struct gx_filter_cache gx_filter_cache;

/* en must outlive the cache. GX_ENOMEM. */
gx_status gx_filter_cache_open(gx_filter_cache **out, gx_engine *en, uint64_t budget, gx_error *err);
void gx_filter_cache_close(gx_filter_cache *c); /* NULL is fine; nothing is held any more */

/* What holds a mask: until the release the mask stays. */
typedef struct gx_filter_hold {
    const gx_mask *mask; /* NULL: none */
    struct gx_filter_entry *entry;
    gx_mask *own; /* the mask, where the cache does not keep it */
} gx_filter_hold;

/* The filter's mask. Where there is none yet and `need` is false, one is made only if the filter
 * has been asked for often; else out->mask is NULL. GX_ENOMEM, GX_ECUDA. */
gx_status gx_filter_cache_get(gx_filter_cache *c, const gx_filter *f, bool need, gx_filter_hold *out, gx_error *err);
void gx_filter_cache_release(gx_filter_cache *c, gx_filter_hold *hold);

/* Let go of all masks that nobody holds. */
void gx_filter_cache_empty(gx_filter_cache *c);

#endif
