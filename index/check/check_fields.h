/* check_fields.h: the checks of an index's fields, by the levels of check_parts.h. Without fields they are GX_OK. */
#ifndef GX_INDEX_CHECK_CHECK_FIELDS_H
#define GX_INDEX_CHECK_CHECK_FIELDS_H

#include "index/index.h"

/* Set ix->fields, but for names and counts. GX_ECORRUPT, GX_ENOMEM. */
gx_status gx_fields_bind(gx_index *ix, gx_error *err);
/* Verify all that later reads rely on, and set names and counts. GX_ECORRUPT, GX_ENOMEM. */
gx_status gx_fields_check_structure(gx_index *ix, gx_error *err);
/* Decode all. GX_ECORRUPT, GX_ENOMEM. */
gx_status gx_fields_check_contents(const gx_index *ix, gx_error *err);

#endif
