/* vector_query.h: a query that is a JSON object of weights, {"land": 1.5, "rover": 0.25}, as indexes of learned weights
 * are asked, and as logs have it. */
#ifndef GX_TOOLS_VECTOR_QUERY_H
#define GX_TOOLS_VECTOR_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/api/gpuidx.h"

typedef struct vector_query {
    void *object;            /* which holds the terms */
    gx_weighted_term *terms; /* [n]; NULL: the query is no vector */
    uint32_t n;
} vector_query; /* all zeros: none */

/* Read the query, if it begins as such an object does, in place of the one that *v has. GX_EUSAGE: it is none, or a
 * weight is no number. GX_ENOMEM. */
gx_status vector_query_read(vector_query *v, const char *text, size_t len, gx_error *err);
void vector_query_free(vector_query *v);

#endif
