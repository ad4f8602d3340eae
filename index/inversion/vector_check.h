/* vector_check.h: whether a document's vector can be indexed: terms of 1 to GX_MAX_VECTOR_TERM bytes,
 * none of them twice, and weights above 0 and of at most GX_MAX_WEIGHT. */
#ifndef GX_INDEX_INVERSION_VECTOR_CHECK_H
#define GX_INDEX_INVERSION_VECTOR_CHECK_H

#include "engine/api/gpuidx.h"

typedef struct gx_vector_check gx_vector_check; /* belongs to one thread */

bool gx_vector_check_open(gx_vector_check **out); /* false: no memory */
void gx_vector_check_close(gx_vector_check *c);   /* accepts NULL */

/* GX_EINPUT: the message names the term. GX_ENOMEM. */
gx_status gx_vector_check_run(gx_vector_check *c, const gx_weighted_term *vector, uint32_t n, gx_error *err);

#endif
