/* list_sizes.h: postings, blocks and bytes of a plan's lists: the cost of an exhaustive search.
 *
 * Deleted documents count: a part's lists have their postings until it is merged. A part of a collection that lacks a
 * term of an AND counts nothing: no list of it is read.
 */
#ifndef GX_QUERY_ENGINE_LIST_SIZES_H
#define GX_QUERY_ENGINE_LIST_SIZES_H

#include "index/index.h"
#include "query/plan/plan.h"

typedef struct gx_list_sizes {
    uint64_t postings, blocks;
    uint64_t bytes; /* of the compressed docids and tfs */
} gx_list_sizes;

/* Add those of a plan without parts, whose lists are those of a file. Thread-safe, as is the next one. */
void gx_list_sizes_add(gx_list_sizes *sum, const gx_index *ix, const gx_plan *plan);

/* Add those of any plan that en is to run, of all parts that en searches. */
void gx_engine_add_list_sizes(const gx_engine *en, const gx_plan *plan, gx_list_sizes *sum);

#endif
