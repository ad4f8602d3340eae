/* facet_asked.h: what a caller asks of facets, checked. */
#ifndef GX_QUERY_ANSWERS_FACET_ASKED_H
#define GX_QUERY_ANSWERS_FACET_ASKED_H

#include "engine/api/gpuidx_advanced.h"
#include "index/attributes/attributes.h"

/* Read and check the caller's facet i, all of the size of the first, with its sums and its inner facet. *out is
 * full-sized, *column the number of its attribute, 0 of GX_FACET_ALL. GX_EUSAGE. */
gx_status gx_facet_check(gx_facet *out, uint32_t *column, const gx_index *ix, const gx_facet *facets, uint32_t i,
                         gx_error *err);
/* The same of the inner facet, and of sum i of a facet. */
gx_status gx_facet_check_inner(gx_facet *out, uint32_t *column, const gx_index *ix, const gx_facet *facet,
                               gx_error *err);
gx_status gx_sum_check(gx_sum *out, uint32_t *column, const gx_index *ix, const gx_facet *facet, uint32_t i,
                       gx_error *err);

bool gx_is_percentile(double percent);

#endif
