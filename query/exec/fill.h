/* fill.h: results without a term that scores, which a boolean query can have by its conditions. */
#ifndef GX_QUERY_EXEC_FILL_H
#define GX_QUERY_EXEC_FILL_H

#include "query/exec/exec.h"

/* Where the plan is to be filled (gx_plan.fill) and hits has fewer than k keys: add documents of its mask
 * and filter that are not among the hits, with score 0, by rising docid. The plan is of one file, and
 * hits->keys have docids of that file. Under an initial threshold there are none to add. GX_ENOMEM. */
gx_status gx_fill(const gx_index *ix, const gx_plan *plan, gx_hits *hits, gx_error *err);

#endif
