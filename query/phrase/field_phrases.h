/* field_phrases.h: the documents that match a phrase, and how often in each field, for a view of fields
 * (index/fields/view.h). */
#ifndef GX_QUERY_PHRASE_FIELD_PHRASES_H
#define GX_QUERY_PHRASE_FIELD_PHRASES_H

#include "index/fields/view.h"

/* name: of a phrase whose words the file has (gx_phrase_name_read). */
gx_view_find_fn gx_field_phrase_find;

#endif
