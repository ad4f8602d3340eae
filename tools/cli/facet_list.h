/* facet_list.h: the value of --facet: facets (gpuidx_advanced.h) with commas between.
 */
#ifndef GX_TOOLS_CLI_FACET_LIST_H
#define GX_TOOLS_CLI_FACET_LIST_H

#include "engine/api/gpuidx_advanced.h"

typedef struct facet_list {
    char *text, *cut; /* as it was given, and cut into facets, of which names are part */
    gx_facet *facets; /* [n] */
    uint32_t n;
} facet_list;

/* Read the text (NULL: no facets) and check it against the index. *out receives the list, which the
 * caller frees. GX_EUSAGE, GX_ENOMEM: *out is empty. */
gx_status facet_list_read(facet_list *out, const gx_index *ix, const char *text, gx_error *err);
void facet_list_free(facet_list *l);

#endif
