/* field_view.h: an index or a collection seen through its fields; gx_index_open_view is public. */
#ifndef GX_QUERY_PLAN_FIELD_VIEW_H
#define GX_QUERY_PLAN_FIELD_VIEW_H

#include "index/fields/view.h"

/* The view of a file that ix is, or its first part; NULL: the lists are the file's. */
const gx_index *gx_view_of(const gx_index *ix);

#endif
